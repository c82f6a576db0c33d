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
    from collections.abc import Callable, Sequence

#: Crates that a controller in Rust depends on, and a whole stack.
_OF_CONTROLLERS = ("cc", "extension", "quantity", "schema")
_OF_ENDPOINTS = ("packet", "quantity", "scenario", "sim", "tables")
#: Keys of a controller in Python, in the template of its scenario, with an argument.
_IN_PYTHON = 'kind = "python", path = "controller.py", class = "Controller"'
_ARGUMENT = ", gain = 1.0"
#: Characters of the longest name that a controller has in Linux.
_LONGEST_NAME = 15
#: Names that no crate can have: keywords, crates that each program has, those of cwnd (Rust
#: Reference, "Keywords"), and names that are none of a package (PEP 508).
_NO_CRATE = (
    r"cwnd[-_].*|.*[-_]|abstract|alloc|as|async|await|become|box|break|const|continue|core|crate|do"
    r"|dyn|else|enum|extern|false|final|fn|for|gen|if|impl|in|let|loop|macro|match|mod|move|mut"
    r"|override|priv|pub|ref|return|self|Self|static|std|struct|super|trait|true|try|type|typeof"
    r"|unsafe|unsized|use|virtual|where|while|yield"
)

Kind = Literal["scenario", "controller", "endpoint", "lessons"]


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
    mine.py`. `cwnd new controller mine.bpf.c` writes one in C, which also runs in Linux.

    `cwnd new controller mine --rust` writes a folder with a controller in Rust, a package of its
    own: `pip install ./mine`, `cwnd run mine/mine.toml`, `python -m pytest mine`.

    `cwnd new endpoint mine` writes a folder with a transport in Rust, a program of its own, which
    runs beside CUBIC in simulated time: `cargo run --release` in it.

    `cwnd new lessons class/` writes six notebooks for a class, whose tasks are checked by
    simulations.

    Args:
        kind: What to write.
        path: File, NAME.toml, NAME.py or NAME.bpf.c; folder of lessons, or NAME of a crate.
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
    if file.name.endswith(".c"):
        return _controller_in_c(file)
    name = _name(file, ".py")
    words = re.split(r"[_-]+", name)
    class_name = "".join(word[:1].upper() + word[1:] for word in words if word)

    def filled(template: str) -> str:
        text = re.sub(r"\bController\b", class_name, _template(template))
        text = re.sub(r"\bcontroller(\.(?:py|toml))", rf"{name}\1", text)
        return text.replace('name = "controller"', f'name = "{name}"')

    return {file: filled("controller.py.in"), file.with_suffix(".toml"): filled("controller.toml")}


def _controller_in_c(file: Path) -> dict[Path, str]:
    name = _name(file, ".bpf.c")
    scenario = _template("controller.toml").replace(_IN_PYTHON, f'kind = "c", path = "{file.name}"')
    scenario = scenario.replace(_ARGUMENT, ", divisor = 2").replace("in Python", "in C")
    scenario = scenario.replace("[0.5, 1.0, 2.0]", "[2, 3, 4]")
    scenario = re.sub(r"\bgain\b", "divisor", scenario)
    in_linux = name.replace("-", "_")[:_LONGEST_NAME]
    return {
        file: _template("controller.bpf.c").replace('"own_reno"', f'"{in_linux}"'),
        file.with_name(f"{name}.toml"): scenario.replace('"controller"', f'"{name}"', 1),
    }


def _crate(folder: Path) -> dict[Path, str]:
    from cwnd._core import kinds

    name = _crate_name(folder)
    if _is_of_another(name):
        raise InputError(f"{name!r} is installed, or a module of Python's own; take another name")
    if name in {kind for kind, _, _ in kinds()["controller"]}:
        raise InputError(f"{name!r} is a controller of cwnd's; take another name")
    sources = Path(str(resources.files("cwnd") / "rust"))

    def filled(template: str) -> str:
        text = _template(f"rust/{template}").replace("controller_module", name.replace("-", "_"))
        return re.sub(r"\bcontroller(?=[\"/.`]| = )", name, text)

    scenario = _template("controller.toml").replace(_IN_PYTHON, f'kind = "{name}"')
    scenario = scenario.replace('name = "controller"', f'name = "{name}"')
    return {
        folder / "Cargo.toml": filled("Cargo.toml.in")
        + _dependencies(sources, _OF_CONTROLLERS, ", default-features = false"),
        # The versions of other crates that cwnd was built with.
        folder / "Cargo.lock": (sources / "Cargo.lock").read_text(encoding="utf-8"),
        folder / "pyproject.toml": filled("pyproject.toml.in"),
        folder / "src" / "lib.rs": filled("lib.rs.in"),
        folder / f"{name}.toml": scenario.replace("in Python", "in Rust"),
        folder / f"test_{name.replace('-', '_')}.py": filled("test.py.in"),
    }


def _crate_name(folder: Path) -> str:
    name = _name(folder, "")
    if re.fullmatch(_NO_CRATE, name):
        raise InputError(
            f"a crate cannot have the name {name!r}: Rust's keywords are not allowed, and neither"
            " are names that begin with cwnd- or end with - or _"
        )
    return name


def _is_of_another(name: str) -> bool:
    """`True` if what is installed under this name, or a module of Python, is no controller."""
    from importlib import metadata, util

    try:
        installed = metadata.distribution(name)
    except metadata.PackageNotFoundError:
        found = util.find_spec(name.replace("-", "_"))
        # A folder without code, such as the new one, has no origin.
        return found is not None and found.origin is not None
    return not installed.entry_points.select(group="cwnd.controllers")


def _endpoint(folder: Path) -> dict[Path, str]:
    name = _crate_name(folder)
    sources = Path(str(resources.files("cwnd") / "rust"))

    def filled(template: str) -> str:
        text = _template(f"endpoint/{template}").replace("endpoint.toml", f"{name}.toml")
        return text.replace('name = "endpoint"', f'name = "{name}"')

    scenario = _template("controller.toml").replace(f"{{ {_IN_PYTHON}{_ARGUMENT} }}", '"newreno"')
    scenario = scenario.replace('name = "controller"', f'name = "{name}"')
    scenario = scenario.partition("\n[sweep]")[0]
    scenario = scenario.replace("A controller in Python", "A transport in Rust")
    return {
        folder / "Cargo.toml": filled("Cargo.toml.in") + _dependencies(sources, _OF_ENDPOINTS),
        folder / "Cargo.lock": (sources / "Cargo.lock").read_text(encoding="utf-8"),
        folder / "src" / "main.rs": filled("main.rs.in"),
        folder / f"{name}.toml": scenario.replace("A controller of", "A transport of"),
    }


def _dependencies(sources: Path, crates: Sequence[str], features: str = "") -> str:
    paths = [(sources / "crates" / crate).resolve() for crate in crates]
    return "".join(f"cwnd-{path.name} = {{ path = '{path}'{features} }}\n" for path in paths)


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
    "endpoint": _endpoint,
    "lessons": _lessons,
}


def _name(file: Path, suffix: str) -> str:
    stem = file.name.removesuffix(suffix)
    known = file.name.endswith(suffix) and re.fullmatch(r"[A-Za-z][A-Za-z0-9_-]*", stem)
    if not known:
        what = "file" if suffix else "folder"
        raise InputError(
            f"the {what} is NAME{suffix}, a name of letters, digits, _ and -; not {file}"
        )
    return stem


def _template(name: str) -> str:
    return (resources.files("cwnd") / "templates" / name).read_text(encoding="utf-8")
