"""Command `cwnd new`: starts of a user's own files."""

from __future__ import annotations

import re
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from cyclopts import Parameter

from cwnd.cli import output
from cwnd.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Callable

#: Crates that a controller in Rust depends on.
_CRATES = ("cc", "extension", "quantity", "schema")
#: Keys of a controller in Python, in the template of its scenario.
_IN_PYTHON = 'kind = "python", path = "controller.py", class = "Controller"'

Kind = Literal["scenario", "controller", "lessons"]


def new(
    kind: Kind,
    path: Path,
    /,
    *,
    rust: Annotated[bool, Parameter(negative=())] = False,
    force: Annotated[bool, Parameter(negative=())] = False,
) -> None:
    """Write a commented, runnable start.

    `cwnd new scenario mine.toml` writes a scenario.

    `cwnd new controller mine.py` writes a controller in Python with its test, mine.py, and
    mine.toml, in which it competes with CUBIC: `cwnd run mine.toml --trust`, `python -m pytest
    mine.py`.

    `cwnd new controller mine --rust` writes a folder with a controller in Rust, a package of its
    own: `pip install ./mine`, `cwnd run mine/mine.toml`, `python -m pytest mine`.

    `cwnd new lessons class/` writes six notebooks for a class, whose tasks are checked by
    simulations.

    Args:
        kind: What to write.
        path: File, NAME.toml or NAME.py; folder of lessons, or NAME of a controller in Rust.
        rust: Write a controller in Rust.
        force: Replace existing files, too.
    """
    if rust and kind != "controller":
        raise InputError(f"--rust is for controllers: a start of {kind} has no other language")
    written = _crate(path) if rust else _FILES[kind](path)
    for file in written:
        if file.exists() and not force:
            raise InputError(f"{file} exists: give another name, or --force to replace it")
    for file, text in written.items():
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")
        output.line(str(file))


def _scenario(file: Path) -> dict[Path, str]:
    name = _name(file, ".toml")
    return {file: _template("scenario.toml").replace('name = "scenario"', f'name = "{name}"')}


def _controller(file: Path) -> dict[Path, str]:
    name = _name(file, ".py")
    words = re.split(r"[_-]+", name)
    class_name = "".join(word[:1].upper() + word[1:] for word in words if word)

    def filled(template: str) -> str:
        text = re.sub(r"\bController\b", class_name, _template(template))
        text = re.sub(r"\bcontroller(\.(?:py|toml))", rf"{name}\1", text)
        return text.replace('name = "controller"', f'name = "{name}"')

    return {file: filled("controller.py.in"), file.with_suffix(".toml"): filled("controller.toml")}


def _crate(folder: Path) -> dict[Path, str]:
    from cwnd._core import kinds

    name = _name(folder, "")
    if name in {kind for kind, _, _ in kinds()["controller"]}:
        raise InputError(f"{name!r} is a controller of cwnd's; take another name")
    sources = Path(str(resources.files("cwnd") / "rust"))

    def filled(template: str) -> str:
        text = _template(f"rust/{template}").replace("controller_module", name.replace("-", "_"))
        return re.sub(r"\bcontroller(?=[\"/.`]| = )", name, text)

    scenario = _template("controller.toml").replace(_IN_PYTHON, f'kind = "{name}"')
    scenario = scenario.replace('name = "controller"', f'name = "{name}"')
    return {
        folder / "Cargo.toml": filled("Cargo.toml.in") + _dependencies(sources),
        # The versions of other crates that cwnd was built with.
        folder / "Cargo.lock": (sources / "Cargo.lock").read_text(encoding="utf-8"),
        folder / "pyproject.toml": filled("pyproject.toml.in"),
        folder / "src" / "lib.rs": filled("lib.rs.in"),
        folder / f"{name}.toml": scenario.replace("in Python", "in Rust"),
        folder / f"test_{name.replace('-', '_')}.py": filled("test.py.in"),
    }


def _dependencies(sources: Path) -> str:
    paths = [(sources / "crates" / crate).resolve() for crate in _CRATES]
    lines = [
        f"cwnd-{path.name} = {{ path = '{path}', default-features = false }}" for path in paths
    ]
    return "".join(f"{line}\n" for line in lines)


def _lessons(folder: Path) -> dict[Path, str]:
    from cwnd.lessons import NAMES

    source = resources.files("cwnd.lessons")
    return {
        folder / f"{number}-{name}.ipynb": (source / f"{name}.ipynb").read_text(encoding="utf-8")
        for number, name in enumerate(NAMES, 1)
    }


_FILES: dict[str, Callable[[Path], dict[Path, str]]] = {
    "scenario": _scenario,
    "controller": _controller,
    "lessons": _lessons,
}


def _name(file: Path, suffix: str) -> str:
    if file.suffix != suffix or not re.fullmatch(r"[A-Za-z][A-Za-z0-9_-]*", file.stem):
        what = "file" if suffix else "folder"
        raise InputError(
            f"the {what} is NAME{suffix}, a name of letters, digits, _ and -; not {file}"
        )
    return file.stem


def _template(name: str) -> str:
    return (resources.files("cwnd") / "templates" / name).read_text(encoding="utf-8")
