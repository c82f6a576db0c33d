"""Code of a scenario's own parts: its loading, and the user's trust in it.

A scenario that names code is a program. It runs only if the user has trusted that text once, or
installed it as a package, and never with root's rights.
"""

from __future__ import annotations

import inspect
import linecache
import os
import sys
import traceback
import types
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

from cwnd import _core
from cwnd.errors import CodeError, InputError
from cwnd.files import write_atomically
from cwnd.machine import is_root
from cwnd.results import sha256
from cwnd.running.compiling import files, private_copy, private_object
from cwnd.running.installed import INSTALLED, content_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

#: Folder of this package.
_PACKAGE = str(Path(__file__).parents[1])
#: File of trusted hashes in the user's folder of settings.
_TRUSTED = Path("cwnd", "trusted")


@dataclass(frozen=True)
class SourceCode:
    """Text of a source file that a scenario names."""

    name: str
    text: str
    #: `True` if it is the description of a controller that an installed package has.
    is_installed: bool = False

    @property
    def sha256(self) -> str:
        """Hash of the text, in hexadecimal digits."""
        return sha256([self.text])


def sources(cells: Iterable[_core.Cell]) -> list[SourceCode]:
    """Returns the source files that cells name, each once."""
    found = (
        SourceCode(name, text, is_installed=kind == INSTALLED)
        for cell in cells
        for _, kind, name, text, _ in cell.code
    )
    return list(dict.fromkeys(found))


@dataclass(frozen=True)
class GivenClass:
    """A class of this process for a kind that a scenario names."""

    #: Part of the scenario: `controller`, `queue` or `workload`.
    part: str
    name: str
    value: type

    @property
    def file(self) -> str:
        """Name in place of a file's."""
        return f"{self.part}s[{self.name!r}]"

    @property
    def words(self) -> tuple[str, str, str, str]:
        """Key, name in the scenario, name of the class, and its text, as the parser takes them."""
        try:
            text = inspect.getsource(self.value)
        except (OSError, TypeError):  # it was typed in, or built
            text = ""
        return self.part, self.name, self.value.__name__, f"{self.file}\n{text}"


def is_of_given_class(text: str) -> bool:
    """`True` if the content of a cell has a class that a program passed."""
    return any(f'path = "{part}s[' in text for part in ("controller", "queue", "workload"))


def given_classes(**parts: Mapping[str, type] | None) -> list[GivenClass]:
    """Lists classes by part and name.

    Raises:
        InputError: A name is that of a kind of cwnd's, or its value is no class.
    """
    found = []
    for part, named in parts.items():
        kinds = [kind for kind, _, _ in _core.kinds()[part]]
        for name, value in (named or {}).items():
            if name in kinds:
                raise InputError(f"{part}s: {name!r} is a {part} of cwnd's; take another name")
            if not isinstance(value, type):
                raise InputError(f"{part}s: {name!r} is {value!r}, not a class")
            found.append(GivenClass(part, name, value))
    return found


class _Process:
    """State of this process."""

    #: `True` if it may run code of scenarios.
    runs_code = False
    #: `True` if it had root's rights before.
    gave_up_root = False
    #: Libraries of installed packages by their descriptions, or why they are not there.
    libraries: ClassVar[dict[str, bytes | str]] = {}


def libraries(cell: _core.Cell) -> dict[str, bytes | str]:
    """Reads the libraries of a cell's installed controllers, for `provide`."""
    code = cell.code
    return {text: content_of(name, text) for _, kind, name, text, _ in code if kind == INSTALLED}


def provide(found: dict[str, bytes | str]) -> None:
    """Gives this process libraries that it may not be able to read."""
    _Process.libraries = found


def allow(*, gave_up_root: bool = False) -> None:
    """Lets this process run code of scenarios from now on.

    Args:
        gave_up_root: This process had root's rights before.

    Raises:
        CodeError: It has root's rights.
    """
    if is_root():
        raise CodeError("code of a scenario never runs with root's rights")
    _Process.runs_code = True
    _Process.gave_up_root = gave_up_root


def classes(cell: _core.Cell, given: Sequence[GivenClass] = ()) -> list[type | Path]:
    """Loads the classes of a cell's code, in the order of `cell.code`, if they are not given.

    Code in C is compiled; its place is the path of an object, as that of an installed library.

    Each call executes the files anew, so that none of their state passes from one run to another.

    Raises:
        CodeError: A file has no such class, or this process may not run code.
        Exception: What the code raises while it is loaded.
    """
    known = {each.file: each.value for each in given}
    modules: dict[tuple[str, str], types.ModuleType] = {}
    found: list[type | Path] = []
    for place, kind, name, text, wanted in cell.code:
        if name in known:
            found.append(known[name])
            continue
        if not _Process.runs_code:
            raise CodeError(
                "code of a scenario runs in a process of its own without root's rights, which could"
                " not be given up here: run cwnd as another user"
            )
        if kind == "c":
            found.append(private_object(name, text))
            continue
        if kind == INSTALLED:
            library = _Process.libraries.get(text) or content_of(name, text)
            if isinstance(library, str):
                raise CodeError(library)
            found.append(private_copy(library))
            continue
        if (name, text) not in modules:
            modules[name, text] = _module(name, text)
        made = getattr(modules[name, text], wanted, None)
        if not isinstance(made, type) or made.__module__ != modules[name, text].__name__:
            raise CodeError(f"{place}: {name} has no class `{wanted}`")
        found.append(made)
    return found


def _module(name: str, text: str) -> types.ModuleType:
    # `dataclass` looks its module up while the code is loaded. The name is that of no other module.
    module = types.ModuleType(f"{Path(name).stem} of a scenario")
    module.__file__ = name
    # Tracebacks show the lines of a file that may not be on this machine.
    linecache.cache[name] = (len(text), None, text.splitlines(keepends=True), name)
    sys.modules[module.__name__] = module
    try:
        exec(compile(text, name, "exec"), module.__dict__)  # noqa: S102 - trusted by the user
    finally:
        sys.modules.pop(module.__name__, None)
    return module


@contextmanager
def explained(cell: _core.Cell) -> Iterator[None]:
    """Turns an exception of a cell's code into an error with the traceback of that code.

    Raises:
        CodeError: The code raised an exception.
    """
    try:
        yield
    except (CodeError, _core.Cancelled, _core.Diverged):
        raise
    except BaseException as error:  # Ctrl-C does not reach a thread that runs code
        names = {name for _, _, name, _, _ in cell.code}
        described = traceback.TracebackException.from_exception(error)
        frames = [frame for frame in described.stack if frame.filename in names]
        # A given class is in any file but those of cwnd.
        frames = frames or [frame for frame in described.stack if _PACKAGE not in frame.filename]
        is_ours = isinstance(error, OSError) or not isinstance(error, Exception | SystemExit)
        if not frames and is_ours:  # a capture cannot be written, or the extension panicked
            raise
        lines = [*traceback.format_list(frames), *described.format_exception_only()]
        if isinstance(error, ImportError) and _Process.gave_up_root:
            user = f"user {os.getuid()} runs the code and may not read all modules of root's Python"
            lines.append(f"{user}; run cwnd as another user than root")
        text = "".join(lines).strip("\n")
        raise CodeError(f"code of the scenario raised an exception:\n{text}") from error


def trusted_file() -> Path:
    """Path of the file of trusted hashes: in `$XDG_CONFIG_HOME`, or in `~/.config`."""
    settings = os.environ.get("XDG_CONFIG_HOME") or Path.home() / ".config"
    return Path(settings) / _TRUSTED


def check_trust(found: list[SourceCode], scenario: str, *, trust: bool = False) -> None:
    """Refuses code that the user has not trusted; with `trust` trusts it from now on.

    Args:
        found: Source files of a scenario.
        scenario: Name of the scenario, for the error.
        trust: Adds the hashes of the files to the trusted ones.

    Raises:
        InputError: Code is not trusted.
    """
    found = [source for source in found if not source.is_installed]
    if not found:
        return
    file = trusted_file()
    known = _known(file)
    new = [source for source in found if source.sha256 not in known]
    if not new:
        return
    if not trust:
        names = ", ".join(_described(source, scenario, known) for source in new)
        raise InputError(f"{scenario} runs code: {names}; read it, and give --trust once")
    lines = _lines(file)
    lines += [f"{source.sha256}  {_place(source, scenario)}" for source in new]
    file.parent.mkdir(parents=True, exist_ok=True)
    write_atomically(file, "".join(f"{line}\n" for line in lines).encode())


def _known(file: Path) -> dict[str, str]:
    """Returns the trusted hashes, each with the path of its file."""
    try:
        lines = _lines(file)
    except OSError:  # nothing that cannot be read is trusted
        return {}
    return {digest: name for line in lines for digest, _, name in [line.strip().partition("  ")]}


def _lines(file: Path) -> list[str]:
    try:
        return file.read_text(encoding="utf-8").splitlines()
    except FileNotFoundError:
        return []


def _printable(name: str) -> str:
    """Replaces characters of a name that could end a line, or control a terminal."""
    return "".join(char if char.isprintable() else "?" for char in name)


def _described(source: SourceCode, scenario: str, known: dict[str, str]) -> str:
    """Returns the name of a source file, and what a reader of it must know."""
    name = _printable(source.name)
    folder = Path(scenario).parent
    try:
        there = files(source.name, source.text).items()
        same = all((folder / file).read_bytes().decode() == text for file, text in there)
    except (CodeError, OSError, ValueError):
        same = False
    if not same:
        return f"{name} (the text is in {scenario} itself)"
    was_trusted = _place(source, scenario) in known.values()
    return f"{name} (not the text that you trusted)" if was_trusted else name


def _place(source: SourceCode, scenario: str) -> str:
    """Returns the path of a source file."""
    return _printable(str((Path(scenario).parent / source.name).resolve()))
