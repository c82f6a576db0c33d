"""Choice of the capture files and of the links that each records."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from cwnd.errors import InputError

if TYPE_CHECKING:
    import os
    from collections.abc import Iterable, Sequence
    from typing import TypeAlias

    from cwnd import _core

#: Links to capture, as the command line names them: `"bottleneck"`, `"there+back"`, `"all"`, or a
#: list.
LinksLike: TypeAlias = "str | Sequence[str]"

#: Word for all links, each in a file of its own.
ALL = "all"
#: Separator of links that share a file.
LINK_SEPARATOR = "+"
#: Separator of files.
FILE_SEPARATOR = ","
SUFFIX = ".pcapng"


@dataclass(frozen=True)
class Captures:
    """Capture files of the runs of a scenario, in a directory for each run."""

    #: Links by name of file.
    files: dict[str, list[str]]
    directory: Path

    def of(self, run_id: str) -> list[tuple[Path, list[str]]]:
        """Returns paths and links of one run's files, and creates their directory."""
        run_directory = self.directory / run_id
        run_directory.mkdir(parents=True, exist_ok=True)
        return [(run_directory / name, links) for name, links in self.files.items()]


def captures(
    wanted: LinksLike, cells: Iterable[_core.Cell], directory: str | os.PathLike[str]
) -> Captures:
    """Parses the links to capture into files.

    Raises:
        InputError: A link is missing in at least one run.
    """
    # A sweep normally changes no set of links; if it does, only common links can be captured.
    every = [cell.links for cell in cells]
    common = [link for link in every[0] if all(link in links for links in every)]
    listed = [wanted] if isinstance(wanted, str) else list(wanted)
    files: dict[str, list[str]] = {}
    for group in (group for text in listed for group in _groups(text, common)):
        name = _file_name(LINK_SEPARATOR.join(group), set(files))
        if group not in files.values():
            files[name] = group
    return Captures(files, Path(directory))


def _groups(text: str, links: list[str]) -> list[list[str]]:
    if text in links:  # a name that holds one of the separators
        return [[text]]
    groups: list[list[str]] = []
    for part in (part.strip() for part in text.split(FILE_SEPARATOR)):
        groups += [[link] for link in links] if part == ALL else [_group(part, links)]
    return groups


def _group(text: str, links: list[str]) -> list[str]:
    if text in links:
        return [text]
    group = [name.strip() for name in text.split(LINK_SEPARATOR)]
    for name in group:
        if name not in links:
            known = ", ".join(links)
            raise InputError(
                f"there is no link `{name}` to capture; there are {known}, or `{ALL}` of them"
            )
    return list(dict.fromkeys(group))


def _file_name(links: str, taken: set[str]) -> str:
    # Names of links may hold any character, those of files may not.
    stem = re.sub(r"[^A-Za-z0-9._+-]", "_", links).lstrip(".") or "_"
    name, number = stem + SUFFIX, 2
    while name in taken:
        name, number = f"{stem}-{number}{SUFFIX}", number + 1
    return name
