"""Initial file system of a guest: some programs of this machine, with their libraries."""

from __future__ import annotations

import re
import shutil
import stat
import subprocess
import sys
import sysconfig
from pathlib import Path

#: Programs that the tests and path.py call.
PROGRAMS = (
    *("sh", "ip", "unshare", "nsenter", "setpriv", "mount", "umount", "grep"),
    *("cat", "ls", "sleep", "touch"),
)
FOLDERS = ("dev", "proc", "sys", "tmp", "run", "root", "etc")
#: Large parts of Python's library that no test imports.
LEFT_OUT = re.compile(
    r"/(test|tests|idlelib|tkinter|lib2to3|ensurepip|turtledemo|pydoc_data|site-packages"
    r"|dist-packages|config-[^/]*)(/|$)"
    r"|/(_tkinter|_sqlite3|_decimal|_test\w*|_codecs_\w+|unicodedata)\.cpython[^/]*$|\.opt-\d\.pyc$"
)


class Initramfs:
    """An archive of files, under the paths that they have on this machine."""

    def __init__(self) -> None:
        self.files: dict[str, Path | bytes] = {}
        self.links: dict[str, str] = {}
        self.modes: dict[str, int] = {}

    def add(self, path: Path) -> None:
        """Adds a file, or a directory with its files, except those that LEFT_OUT matches."""
        if path.is_dir():
            for inner in sorted(path.rglob("*")):
                if inner.is_file() and not LEFT_OUT.search(str(inner)):
                    self.files[str(inner)] = inner
                    if inner.suffix == ".so":
                        self.libraries(inner)
        else:
            self.files[str(path)] = path

    def write(self, path: str, content: bytes, mode: int = 0o644) -> None:
        self.files[path] = content
        self.modes[path] = mode

    def program(self, path: Path, name: str | None = None) -> None:
        """Adds a program with its libraries, and a link to it in PATH."""
        self.add(path.resolve())
        self.libraries(path.resolve())
        place = f"/usr/bin/{name or path.name}"
        if place != str(path.resolve()):
            self.links[place] = str(path.resolve())

    def libraries(self, path: Path) -> None:
        told = subprocess.run(["ldd", path], capture_output=True, text=True, check=False).stdout
        for library in re.findall(r"(?:=> |^\s*)(/\S+) \(", told, re.MULTILINE):
            self.add(Path(library))

    def python(self) -> None:
        """Adds the running Python with its standard library."""
        interpreter = Path(sys.executable).resolve()
        self.program(interpreter, "python3")
        self.add(Path(sysconfig.get_path("stdlib", vars={"installed_base": sys.base_prefix})))

    def tools(self) -> list[str]:
        """Adds PROGRAMS; returns those that this machine lacks."""
        missing = []
        for name in PROGRAMS:
            path = shutil.which(name, path="/usr/bin:/usr/sbin:/bin:/sbin")
            if path is None:
                missing.append(name)
            else:
                self.program(Path(path), name)
        return missing

    def archive(self) -> bytes:
        """Returns the archive as the kernel unpacks it: cpio, "newc" (Linux, buffer-format.rst)."""
        entries: dict[str, tuple[int, bytes]] = {}
        times: dict[str, int] = {}

        def folders_of(path: str) -> None:
            for parent in reversed(Path(path).parents):
                entries.setdefault(str(parent), (stat.S_IFDIR | 0o755, b""))

        for folder in FOLDERS:
            entries[f"/{folder}"] = (stat.S_IFDIR | 0o1777, b"")
        for path, content in self.files.items():
            folders_of(path)
            if isinstance(content, Path):
                told = content.stat()
                entries[path] = (stat.S_IFREG | told.st_mode & 0o777, content.read_bytes())
                # Python compares the time of a source with the one in its compiled file.
                times[path] = int(told.st_mtime)
            else:
                entries[path] = (stat.S_IFREG | self.modes[path], content)
        for path, target in self.links.items():
            folders_of(path)
            entries.setdefault(path, (stat.S_IFLNK | 0o777, target.encode()))
        del entries["/"]
        out = bytearray()
        for number, (path, (mode, content)) in enumerate(entries.items(), 1):
            out += record(number, path.lstrip("/"), mode, content, times.get(path, 0))
        return bytes(out + record(0, "TRAILER!!!", 0, b""))


def record(number: int, name: str, mode: int, content: bytes, modified: int = 0) -> bytes:
    encoded = name.encode() + b"\0"
    links = 2 if stat.S_ISDIR(mode) else 1
    fields = [number, mode, 0, 0, links, modified, len(content), 0, 0, 0, 0, len(encoded), 0]
    head = b"070701" + b"".join(b"%08X" % field for field in fields) + encoded
    return padded(head) + padded(content)


def padded(data: bytes) -> bytes:
    return data + b"\0" * (-len(data) % 4)
