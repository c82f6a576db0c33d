"""What stays when a result is written in the place of an older one: all that cwnd did not write."""

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

#: What else cwnd writes into a result: figures, and the page of `cwnd report`.
_FIGURE = re.compile(rf"{PLOTS}/(timeseries|windows|qdelay|sweep(-[^/]*)?)\.(svg|png)")
_REPORT, _GENERATOR = "report.html", b'<meta name="generator" content="cwnd">'
#: A page says at its beginning what made it.
_HEAD = 4096
#: What results had before they listed their files.
_KNOWN = {SCENARIO, SUMMARY, MANIFEST, *(f"{name}.parquet" for name in TABLES)}
_KNOWN_FILES = re.compile(rf"{CELLS}/[^/]*\.toml|{PCAP}/[^/]*/[^/]*\.pcapng")
_FOLDERS = {CELLS, PLOTS, PCAP, JOURNAL, ERRORS}
#: What a sweep has besides while cells are missing.
_UNFINISHED = re.compile(
    rf"{DATASET}|plan\.(parquet|toml)|{JOURNAL}/.*|{ERRORS}/[0-9a-f]+\.(json|toml)"
    rf"|{ACTIVITY}/partial-.*"
)
#: What people may edit, and what their edit is kept as.
_TEXT = (".csv", ".toml")
EDITED = ".edited"


def keep(old: Path, new: Path) -> None:
    """Adds to a new result what is not cwnd's in the old one, and what was edited there.

    Files are linked, not copied, so that a program that writes one goes on writing it, and so that
    both results have it until the old one goes.
    """
    try:
        listed = Sums.at(old).of
    except DamageError:
        listed = None
    edited = []
    for name in _files(old):
        file = old / name
        if not _is_ours(name, file, listed):
            _add(file, new, name)
        elif listed is not None and name.endswith(_TEXT) and _is_edited(file, listed.get(name)):
            edited.append(name)
    # What was edited before has its name by now.
    for name in edited:
        _add(old / name, new, f"{name}{EDITED}")


def _files(root: Path) -> Iterator[str]:
    """Files, links, empty folders and whatever else there is, by name."""
    for directory, folders, files in os.walk(root):
        here = Path(directory)
        links = [name for name in folders if (here / name).is_symlink()]
        empty = [] if here == root or folders or files else [""]
        for name in (*files, *links, *empty):
            yield (here / name).relative_to(root).as_posix()


def _is_ours(name: str, file: Path, listed: Mapping[str, str] | None) -> bool:
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
    """Links a file into the new result, under another name if that one is taken."""
    place, number = new / name, 1
    while os.path.lexists(place):
        if _is_same(file, place):
            return
        number += 1
        place = new / f"{name}-{number}"
    missing = [parent for parent in place.parents if new in parent.parents and not parent.exists()]
    for parent in reversed(missing):
        parent.mkdir()
        above = len(place.relative_to(parent).parts) - 1
        shutil.copystat(file.parents[above], parent)
    if file.is_dir() and not file.is_symlink():
        place.mkdir()
        return
    try:
        os.link(file, place, follow_symlinks=False)
    except OSError:  # this file system has no links
        shutil.copy2(file, place, follow_symlinks=False)


def _is_same(file: Path, place: Path) -> bool:
    """Whether a file is there already, as a link or, where there are none, as a copy."""
    if file.is_dir() and not file.is_symlink():
        return place.is_dir()
    one, other = file.lstat(), place.lstat()
    same = (one.st_size, one.st_mtime_ns) == (other.st_size, other.st_mtime_ns)
    return same or os.path.samestat(one, other)
