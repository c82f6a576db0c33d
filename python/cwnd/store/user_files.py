"""Files of users in a result's directory, which stay when a new result replaces the old one."""

from __future__ import annotations

import os
import re
import shutil
from pathlib import Path
from typing import TYPE_CHECKING

from cwnd.errors import DamageError
from cwnd.files import PARTIAL, SUMS, Sums, checksums
from cwnd.store.layout import (
    ACTIVITY,
    CELLS,
    DATASET,
    ERRORS,
    JOURNAL,
    MANIFEST,
    PCAP,
    PLOTS,
    SCENARIO,
    SUMMARY,
    TABLES,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

#: Other files that cwnd writes into a result: most kinds of figures, and the page of
#: `cwnd report`.
_FIGURE = re.compile(rf"{PLOTS}/(timeseries|windows|qdelay|sweep(-[^/]*)?)\.(svg|png)")
_REPORT, _GENERATOR = "report.html", b'<meta name="generator" content="cwnd">'
#: Bytes at the start of a page that contain the name of its generator.
_HEAD = 4096
#: Files of results that have no list of files.
_KNOWN = {SCENARIO, SUMMARY, MANIFEST, *(f"{name}.parquet" for name in TABLES)}
_KNOWN_FILES = re.compile(rf"{CELLS}/[^/]*\.toml|{PCAP}/[^/]*/[^/]*\.pcapng")
_FOLDERS = {CELLS, PLOTS, PCAP, JOURNAL, ERRORS}
#: Additional files of an incomplete sweep.
_UNFINISHED = re.compile(
    rf"{DATASET}|plan\.(parquet|toml)|{JOURNAL}/.*|{ERRORS}/[0-9a-f]+\.(json|toml)"
    rf"|{ACTIVITY}/partial-.*"
)
#: Suffixes of files that people may edit, and the suffix under which an edited one is kept.
_TEXT = (".csv", ".toml")
EDITED = ".edited"


def keep(old: Path, new: Path) -> None:
    """Adds files of users and edited files from an old result to a new one.

    Files are linked, not copied. A program that writes one thus continues to write it, and both
    results have it until the old one is removed.
    """
    try:
        listed = Sums.at(old).of
    except DamageError:
        listed = None
    edited = []
    for name in _files(old):
        file = old / name
        if not _is_written_by_cwnd(name, file, listed):
            _add(file, new, name)
        elif listed is not None and name.endswith(_TEXT) and _is_edited(file, listed.get(name)):
            edited.append(name)
    # Files edited earlier have been added with their own name by now.
    for name in edited:
        _add(old / name, new, f"{name}{EDITED}")


def _files(root: Path) -> Iterator[str]:
    """Yields relative paths of files, links, empty folders and special files."""
    for directory, folders, files in os.walk(root):
        folder = Path(directory)
        links = [name for name in folders if (folder / name).is_symlink()]
        empty = [] if folder == root or folders or files else [""]
        for name in (*files, *links, *empty):
            yield (folder / name).relative_to(root).as_posix()


def _is_written_by_cwnd(name: str, file: Path, listed: Mapping[str, str] | None) -> bool:
    if PARTIAL.fullmatch(file.name):
        return True
    if file.is_symlink() or not file.is_file():
        return name in _FOLDERS and not file.is_symlink()
    if name in {SUMS, MANIFEST} or _FIGURE.fullmatch(name) or _UNFINISHED.fullmatch(name):
        return True
    if name == _REPORT:
        with file.open("rb") as opened:
            return _GENERATOR in opened.read(_HEAD)
    if listed is not None:
        return name in listed
    return name in _KNOWN or _KNOWN_FILES.fullmatch(name) is not None


def _is_edited(file: Path, expected: str | None) -> bool:
    return expected is not None and checksums.sha256(file.read_bytes()) != expected


def _add(file: Path, new: Path, name: str) -> None:
    """Links a file into the new result, under another name if its name is taken."""
    destination, number = new / name, 1
    while os.path.lexists(destination):
        if _is_same(file, destination):
            return
        number += 1
        destination = new / f"{name}-{number}"
    missing = [
        parent for parent in destination.parents if new in parent.parents and not parent.exists()
    ]
    for parent in reversed(missing):
        parent.mkdir()
        above = len(destination.relative_to(parent).parts) - 1
        shutil.copystat(file.parents[above], parent)
    if file.is_dir() and not file.is_symlink():
        destination.mkdir()
        return
    try:
        os.link(file, destination, follow_symlinks=False)
    except OSError:  # this file system has no links
        shutil.copy2(file, destination, follow_symlinks=False)


def _is_same(file: Path, destination: Path) -> bool:
    """`True` if a file is already there, as a link or as a copy of equal size and time."""
    if file.is_dir() and not file.is_symlink():
        return destination.is_dir()
    one, other = file.lstat(), destination.lstat()
    same = (one.st_size, one.st_mtime_ns) == (other.st_size, other.st_mtime_ns)
    return same or os.path.samestat(one, other)
