"""Registry of studies: those in the package, and users' folders."""

from __future__ import annotations

import importlib.machinery
import importlib.util
import sys
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cwnd.errors import InputError
from cwnd.study import format as format_of_studies

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from types import ModuleType

    from cwnd.study.format import Study

#: Folder of the groups of studies.
STUDIES = Path(__file__).resolve().parents[1] / "studies"
#: Modules of a study in which its functions are.
_MODULES = ("measures", "figures")


def studies(group: str = "*") -> list[str]:
    """Names of the studies in the package, with their group."""
    files = STUDIES.glob(f"{group}/*/{format_of_studies.STUDY}")
    return sorted(file.parent.relative_to(STUDIES).as_posix() for file in files)


def study(name: str | Path) -> Study:
    """Reads a study: GROUP/NAME or NAME in the package, or a path of a folder.

    Raises:
        InputError: There is no such study, or it is wrong.
    """
    folder = Path(name)
    if (folder / format_of_studies.STUDY).is_file():
        return format_of_studies.read(folder.resolve())
    wanted = str(name).replace("-", "_")
    found = [each for each in studies() if wanted in (each, each.partition("/")[2])]
    if len(found) != 1:
        known = ", ".join(found or studies())
        raise InputError(f"there is no study `{name}`; there are {known}")
    return format_of_studies.read(STUDIES / found[0])


def papers() -> list[str]:
    """Names of the papers that can be reproduced."""
    return [name.partition("/")[2] for name in studies("papers")]


def paper(name: str) -> Study:
    """Reads the study of a paper.

    Raises:
        InputError: There is no such paper.
    """
    if name not in papers():
        raise InputError(f"there is no paper `{name}`; there are {', '.join(papers())}")
    return format_of_studies.read(STUDIES / "papers" / name)


def functions(of: Study, kind: str) -> Mapping[str, Callable[..., Any]]:
    """Functions of a study by name: `TABLES`, `FIGURES`, `RECORDS`, `MEASURES` or `SIDES`.

    Those of `OVERRIDES` return overrides of an experiment that are too long for its file.
    """
    found: dict[str, Callable[..., Any]] = {}
    for name in _MODULES:
        if (of.folder / f"{name}.py").is_file():
            found |= getattr(module(of, name), kind, {})
    return found


def function(of: Study, kind: str, name: str) -> Callable[..., Any]:
    """A function of a study.

    Raises:
        InputError: There is none.
    """
    known = functions(of, kind)
    if name not in known:
        raise InputError(f"{of.folder}: {kind} has no `{name}`")
    return known[name]


def module(of: Study, name: str) -> ModuleType:
    """Imports a module of a study's folder, which is a package of its own outside of cwnd."""
    if of.folder.parents[1] == Path(__file__).resolve().parents[1] / "studies":
        return import_module(f"cwnd.studies.{of.group}.{of.name}.{name}")
    package = f"cwnd_study_{of.name}"
    loaded = sys.modules.get(package)
    if loaded is None or list(loaded.__path__) != [str(of.folder)]:
        for each in [each for each in sys.modules if each.partition(".")[0] == package]:
            del sys.modules[each]
        spec = importlib.machinery.ModuleSpec(package, None, is_package=True)
        spec.submodule_search_locations = [str(of.folder)]
        sys.modules[package] = importlib.util.module_from_spec(spec)
    return import_module(f"{package}.{name}")
