"""Registry of studies: those in the package, and users' folders."""

from __future__ import annotations

import importlib.machinery
import importlib.util
import os
import sys
import traceback
from collections.abc import Mapping
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cwnd._core import ScenarioError
from cwnd.errors import CwndError, InputError
from cwnd.study import format as format_of_studies

if TYPE_CHECKING:
    from collections.abc import Callable
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
    """Functions of a study by name: `TABLES`, `FIGURES`, `RECORDS` or `MEASURES`.

    Those of `OVERRIDES` return overrides of an experiment that are too long for its file.

    Raises:
        InputError: A module of the study cannot be imported, or has something else.
    """
    found: dict[str, Callable[..., Any]] = {}
    for name in _MODULES:
        file = of.folder / f"{name}.py"
        if file.is_file():
            known = getattr(module(of, name), kind, {})
            if not isinstance(known, Mapping) or not all(map(callable, known.values())):
                raise InputError(
                    f'{file}: {kind} is a dictionary of functions, {{"NAME": function}}'
                )
            found |= known
    return found


def function(of: Study, kind: str, name: str) -> Callable[..., Any]:
    """A function of a study; its exceptions are an `InputError` that names file and line.

    Raises:
        InputError: There is none.
    """
    known = functions(of, kind)
    if name not in known:
        file, has = of.folder / "measures.py", f"it has {', '.join(known)}" if known else ""
        raise InputError(f'{file}: {kind} has no `{name}`; add `{kind}["{name}"]`. {has}'.strip())
    return named(of, f'{kind}["{name}"]', known[name])


def checked(of: Study, kind: str, name: str, convert: Callable[[Any], Any], value: Any) -> Any:
    """Converts the value that a function of a study returned.

    Raises:
        InputError: It is of another type; the error names the function.
    """
    try:
        return convert(value)
    except InputError as error:
        where = place(of, functions(of, kind)[name])
        raise InputError(f'{where}: {kind}["{name}"] returned a wrong value: {error}') from error


def named(
    of: Study, what: str, call: Callable[..., Any], where: str | None = None
) -> Callable[..., Any]:
    """Returns the function with exceptions that name the study's file, its line and `what`.

    Errors of scenarios and of the machine pass unchanged. `where` is the place of an exception that
    no line of the study's code raised.
    """

    def called(*arguments: Any, **keywords: Any) -> Any:
        try:
            return call(*arguments, **keywords)
        except (MemoryError, ScenarioError):
            raise
        except Exception as error:
            if isinstance(error, CwndError) and not isinstance(error, InputError):
                raise
            raise _explained(of, what, error, where or place(of, call)) from error

    return called


def place(of: Study, call: Callable[..., Any]) -> str:
    """File and line of a function of a study."""
    code = getattr(call, "__code__", None)
    return f"{code.co_filename}:{code.co_firstlineno}" if code else f"{of.folder / 'measures.py'}"


def _explained(of: Study, what: str, error: Exception, where: str | None = None) -> InputError:
    """Error of a study's own code, with the last line of it that ran; debugging shows all."""
    if os.environ.get("CWND_DEBUG"):
        traceback.print_exception(error)
    lines = [
        f"{each.filename}:{each.lineno}"
        for each in traceback.extract_tb(error.__traceback__)
        if Path(each.filename).is_relative_to(of.folder)
    ]
    if isinstance(error, SyntaxError) and error.filename:
        lines.append(f"{error.filename}:{error.lineno}")
    shown = lines[-1] if lines else where or of.folder / "measures.py"
    text = (error.msg if isinstance(error, SyntaxError) else str(error)).strip().split("\n")[0]
    kind = "" if isinstance(error, InputError) else f"{type(error).__name__}: "
    return InputError(f"{shown}: {what}: {kind}{text}")


def module(of: Study, name: str) -> ModuleType:
    """Imports a module of a study's folder, which is a package of its own outside of cwnd.

    Raises:
        InputError: The module of a folder outside cannot be imported.
    """
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
    try:
        return import_module(f"{package}.{name}")
    except Exception as error:
        raise _explained(of, "the file cannot be imported", error) from error
