"""SHA-256 checksums of files, compared when a file is read, and JSON objects in such files."""

from __future__ import annotations

import errno
import hashlib
import json
import os
import re
import stat
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cwnd.errors import DamageError, explain
from cwnd.files.portable import READ

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

#: File that lists a result's files and their hashes in the format of `sha256sum`. It is written
#: last.
SUMS = "SHA256SUMS"

_TITLE = "# What cwnd wrote; `cwnd verify` or `sha256sum -c` compares it.\n"
_OWN_HASH = "# SHA-256 of the lines above: "
_LINE = re.compile(r"^([0-9a-f]{64})  (.+)$", re.MULTILINE)
#: Pattern of a hash that a file holds of itself: the hash of the file with zeros in its place.
_SIGNATURE = re.compile(rb'"file_sha256": "([0-9a-f]{64})"')
UNSIGNED = '"file_sha256": "' + "0" * 64 + '"'

#: Bytes read at a time.
_CHUNK = 1 << 20
#: Age in nanoseconds below which a file may change again with the same timestamp.
_RACY_NS = 2_000_000_000
#: Files that matched their hash in this process, each as a hash of path, identity and expected
#: hash.
_verified: set[int] = set()


def sha256(data: bytes) -> str:
    """Computes the SHA-256 of data, in hexadecimal."""
    return hashlib.sha256(data).hexdigest()


def signed(data: bytes) -> bytes:
    """Replaces `UNSIGNED`, or an older hash in its place, by the hash of the file itself."""
    blank = _SIGNATURE.sub(UNSIGNED.encode(), data)
    return _SIGNATURE.sub(f'"file_sha256": "{sha256(blank)}"'.encode(), blank)


def signature_matches(data: bytes) -> bool | None:
    """`True` if a file matches the hash that it holds of itself; `None` if it holds none."""
    found = _SIGNATURE.search(data)
    if found is None:
        return None
    begin, end = found.span(1)
    hashed = hashlib.sha256(data[:begin])
    hashed.update(b"0" * (end - begin))
    hashed.update(data[end:])
    return hashed.hexdigest().encode() == found[1]


def read(file: str | Path, expected: str | None, remedy: str) -> bytes:
    """Reads a file and compares it with its SHA-256, unless `expected` is `None`.

    Raises:
        DamageError: The file is missing, unreadable, or has another hash.
    """
    try:
        descriptor, found = _open(file)
        try:
            data = _rest(descriptor, found.st_size)
        finally:
            os.close(descriptor)
    except OSError as error:
        raise _unreadable(file, error, remedy) from error
    if expected is not None and sha256(data) != expected:
        raise DamageError(Path(file), DAMAGED, remedy)
    return data


def check(file: str | Path, expected: str, remedy: str) -> None:
    """Compares a file with its SHA-256, once in a process while the file is unchanged.

    A file that changed in the last two seconds is compared again by the next call.

    Raises:
        DamageError: As `read`.
    """
    try:
        descriptor, found = _open(file)
        try:
            changed = max(found.st_mtime_ns, found.st_ctime_ns)
            same = (found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns)
            key = hash((str(file), *same, expected))
            if key in _verified:
                return
            hashed = hashlib.sha256()
            while True:
                data = os.read(descriptor, _CHUNK)
                hashed.update(data)
                if len(data) < _CHUNK:
                    break
        finally:
            os.close(descriptor)
    except OSError as error:
        raise _unreadable(file, error, remedy) from error
    if hashed.hexdigest() != expected:
        raise DamageError(Path(file), DAMAGED, remedy)
    if changed < time.time_ns() - _RACY_NS:
        _verified.add(key)


@dataclass(frozen=True)
class Sums:
    """SHA-256 hashes of a result's files, as its list records them."""

    root: Path
    #: Hashes by name, with `/` between folders; `None` for results without a list.
    of: Mapping[str, str] | None
    #: Action that repairs or replaces a damaged file.
    remedy: str

    @classmethod
    def at(cls, root: Path, remedy: str | None = None) -> Sums:
        """Reads the list of hashes of a result.

        Raises:
            DamageError: The list is unreadable, or does not match its own hash.
        """
        file, remedy = root / SUMS, remedy or _remedy(root)
        if not file.exists() and not file.is_symlink():
            return cls(root, None, remedy)
        data = read(file, None, remedy)
        lines, mark, own = data.decode(errors="surrogateescape").rpartition(_OWN_HASH)
        if not mark or own != f"{_hash(lines)}\n":
            raise DamageError(file, DAMAGED, remedy)
        return cls(root, {name: digest for digest, name in _LINE.findall(lines)}, remedy)

    def data(self, name: str) -> bytes:
        """Reads a file of the result and compares it with its hash, if there is a list.

        Raises:
            DamageError: The file is missing or damaged, or the list lacks it.
        """
        return read(self.root / name, self._expected(name), self.remedy)

    def text(self, name: str) -> str:
        """Reads a file of the result as text in UTF-8.

        Raises:
            DamageError: The file is missing, damaged or no UTF-8.
        """
        try:
            return self.data(name).decode()
        except UnicodeDecodeError as error:
            raise DamageError(self.root / name, "no text in UTF-8", self.remedy) from error

    def file(self, name: str) -> Path:
        """Returns the path of a file after comparing it with its hash, if there is a list.

        Raises:
            DamageError: The file is missing or damaged, or the list lacks it.
        """
        file, expected = self.root / name, self._expected(name)
        if expected is not None:
            check(file, expected, self.remedy)
        elif not file.is_file():
            raise DamageError(file, "missing", self.remedy)
        return file

    def missing_list(self) -> DamageError:
        """Builds the error for a missing list of hashes."""
        return DamageError(self.root / SUMS, "missing", self.remedy)

    def _expected(self, name: str) -> str | None:
        if self.of is None:
            return None
        if name not in self.of:
            raise DamageError(self.root / SUMS, f"does not list {name}", self.remedy)
        return self.of[name]


def is_listed(root: Path) -> bool:
    """`True` if a directory holds a list of hashes that cwnd wrote, intact or damaged."""
    try:
        with (root / SUMS).open("rb") as opened:
            return opened.read(len(_TITLE)) == _TITLE.encode()
    except OSError:
        return False


def write(root: Path, known: Mapping[str, str] | None = None) -> None:
    """Lists all files of a directory with their hashes; hashes in `known` are not recomputed."""
    known = known or {}
    found = [
        Path(directory, name).relative_to(root).as_posix()
        for directory, _, names in os.walk(root)
        for name in names
    ]
    text = listed(
        (name, known.get(name) or _of_file(root / name)) for name in sorted(found) if name != SUMS
    )
    (root / SUMS).write_bytes(text)


def listed(sums: Iterable[tuple[str, str]]) -> bytes:
    """Formats the list of hashes, with its own hash in the last line."""
    text = _TITLE + "".join(f"{digest}  {name}\n" for name, digest in sums)
    return f"{text}{_OWN_HASH}{_hash(text)}\n".encode(errors="surrogateescape")


def _hash(text: str) -> str:
    return sha256(text.encode(errors="surrogateescape"))


def _of_file(file: Path) -> str:
    with file.open("rb", buffering=0) as opened:
        return hashlib.file_digest(opened, "sha256").hexdigest()


def _open(file: str | Path) -> tuple[int, os.stat_result]:
    # A pipe or a device is no file of a result, and reading it might never end.
    descriptor = os.open(file, READ)
    found = os.fstat(descriptor)
    if not stat.S_ISREG(found.st_mode):
        os.close(descriptor)
        raise OSError(errno.EINVAL, "not a regular file")
    return descriptor, found


def _rest(descriptor: int, size: int) -> bytes:
    """Reads a file to its end, with one call if its size is still `size`."""
    parts = []
    while part := os.read(descriptor, size + 1):
        parts.append(part)
        if len(part) == size:
            break
    return b"".join(parts)


def _unreadable(path: str | Path, error: OSError, remedy: str) -> DamageError:
    file = Path(path)
    if isinstance(error, FileNotFoundError | NotADirectoryError):
        return DamageError(file, "missing", remedy)
    reason = explain(OSError(error.errno, error.strerror))
    return DamageError(file, f"cannot be read ({reason})", remedy)


def _remedy(root: Path) -> str:
    return (
        f"run its scenario again with `cwnd run SCENARIO -o {root}`;"
        f" `cwnd verify {root}` names all that is damaged"
    )


#: Message for a file with another hash.
DAMAGED = "damaged: it is not what was written"


def read_object(text: str | bytes) -> dict[str, Any]:
    """Parses a JSON object.

    Raises:
        ValueError: The text is no JSON object, is nested too deeply, or holds a lone surrogate.
    """
    try:
        found = json.loads(text)
        # A lone surrogate cannot be encoded in UTF-8, so no output could show it.
        json.dumps(found, ensure_ascii=False).encode()
    except RecursionError as error:
        raise ValueError("it is nested too deeply") from error
    if not isinstance(found, dict):
        raise ValueError("it is no object of JSON")  # noqa: TRY004 - as all else that is damaged
    return found
