"""Controllers of installed packages: libraries in Rust, which entry points name.

A library is loaded in processes without root's rights only: in one that describes its controllers,
and in those that run cells. A scenario has the description, with the hash of the library.
"""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
from dataclasses import dataclass
from functools import cache
from pathlib import Path, PurePosixPath

from cwnd import _core
from cwnd.errors import CodeError, explain
from cwnd.machine import code_user
from cwnd.running.compiling import private_copy

#: Group of the entry points: the name is that of the controller, the value that of a module.
GROUP = "cwnd.controllers"
#: Kind of a part's code that an installed package has, as the extension names it.
INSTALLED = "installed"
#: Ends of the names of libraries.
_SUFFIXES = (".so", ".dylib", ".pyd", ".dll")
#: Time limit for the description of a library, in seconds.
_LIMIT_S = 20.0


@dataclass(frozen=True)
class Library:
    """Library of an installed package."""

    package: str
    version: str
    path: Path

    def read(self) -> bytes:
        """Reads the library.

        Raises:
            CodeError: It cannot be read.
        """
        try:
            return self.path.read_bytes()
        except OSError as error:
            raise CodeError(f"{self}: {self.path} cannot be read: {explain(error)}") from error

    def __str__(self) -> str:
        return f"{self.package} {self.version}"


def described(kind: str) -> str | None:
    """Returns the description of a controller that an installed package has; `None` without one.

    It is JSON; its member `error` says why a package that claims the controller cannot be used. For
    an empty name it is a line for each controller that there is.
    """
    if not kind:
        return "\n".join(_names())
    try:
        library = _library(kind)
        if library is None:
            return None
        content = library.read()
        digest = hashlib.sha256(content).hexdigest()
        found = _described(library, digest)
    except CodeError as error:
        return json.dumps({"error": str(error)})
    one = next((one for one in found if one["name"] == kind), None)
    if one is None:
        why = f"{library} has no controller `{kind}`, which its entry point names"
        return json.dumps({"error": why})
    about = {"package": library.package, "version": library.version, "sha256": digest}
    return json.dumps({**about, "kind": one}, ensure_ascii=False)


def all_described() -> list[str]:
    """Returns the descriptions of all controllers of installed packages that can be used."""
    found = [text for name in _names() if (text := described(name)) is not None]
    return [text for text in found if "error" not in json.loads(text)]


def _names() -> list[str]:
    from importlib.metadata import entry_points

    return sorted({entry.name for entry in entry_points(group=GROUP)})


def content_of(kind: str, description: str) -> bytes | str:
    """Returns the library that a description is of, or a sentence that says why it is not there."""
    about = json.loads(description)
    wanted = f"{about['package']} {about['version']}"
    try:
        library = _library(kind)
        if library is None:
            return f"no installed package has the controller `{kind}`: install {wanted}"
        content = library.read()
    except CodeError as error:
        return str(error)
    if hashlib.sha256(content).hexdigest() != about["sha256"]:
        return f"{library} is installed, which is another build than that of `{kind}`: {wanted}"
    return content


def described_as(description: str) -> str:
    """Returns package, version and hash of a description."""
    about = json.loads(description)
    return f"{about['package']} {about['version']} (sha256 {about['sha256']})"


def _library(kind: str) -> Library | None:
    """Finds the library of a controller, without importing anything of its package.

    Raises:
        CodeError: The package has no library, or several.
    """
    from importlib.metadata import entry_points

    entry = next(iter(entry_points(group=GROUP, name=kind)), None)
    if entry is None:
        return None
    assert entry.dist is not None
    folder = PurePosixPath(*entry.module.split("."))
    libraries = [
        file
        for file in entry.dist.files or ()
        if file.suffix in _SUFFIXES
        and (file.parent == folder or file.name.partition(".")[0] == entry.module)
    ]
    name, version = entry.dist.name, entry.dist.version
    if len(libraries) != 1:
        raise CodeError(f"{name} {version} has {len(libraries)} libraries in {folder}, not one")
    return Library(name, version, Path(str(entry.dist.locate_file(libraries[0]))))


@cache
def _described(library: Library, digest: str) -> list[dict[str, object]]:
    """Returns the controllers of a library, each with its parameters, from a process of its own.

    Raises:
        CodeError: It has another version of the tables, or crashed.
    """
    del digest  # another build is described again
    where = str(Path(__file__).parents[2])
    try:
        done = subprocess.run(  # noqa: S603 - Python, and this module
            [sys.executable, "-m", __name__, str(library.path)],
            capture_output=True,
            text=True,
            timeout=_LIMIT_S,
            check=False,
            env={**os.environ, "PYTHONPATH": where, "PYTHONSAFEPATH": "1"},
        )
    except subprocess.TimeoutExpired as late:
        raise CodeError(f"{library} did not describe its controllers in {_LIMIT_S:g} s") from late
    if done.returncode:
        raise CodeError(f"{library} cannot be described: its process crashed")
    answer = json.loads(done.stdout)
    if isinstance(answer, str):
        raise CodeError(f"{library} {answer}")
    return list(answer)


def _describe(path: Path) -> None:
    """Prints the description of a library, or the end of a sentence that says why there is none."""
    content, person = path.read_bytes(), code_user()
    if person is not None:
        try:
            os.setgroups([])
            os.setgid(person.pw_gid)
            os.setuid(person.pw_uid)
        except OSError as error:  # in a namespace without other users
            why = f"cannot be described as another user than root: {explain(error)}"
            sys.stdout.write(json.dumps(why))
            return
    elif hasattr(_core, "give_up_capabilities"):
        _core.give_up_capabilities()
    copy = private_copy(content)
    try:
        answer = _core.describe_library(copy)
    except ValueError as error:
        answer = json.dumps(str(error))
    finally:
        copy.unlink()
    sys.stdout.write(answer)


if __name__ == "__main__":
    _describe(Path(sys.argv[1]))
