"""Runs a command in a mount namespace where every user can read the tree and the interpreter.

A clone may lie in a home that only its owner may enter, and so may a Python: a test that starts as
somebody else would fail there for no reason of its own. Here nothing of that is changed: what is in
the way is covered, in a mount namespace that nobody else sees, by empty directories that hold what
is needed. Run as root under `unshare --mount`.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

#: Holds bind mounts of needed paths while their parents are covered by empty directories.
_STAGE = Path("/mnt")


def closed(path: Path) -> Path | None:
    """The first directory on the way to a path, itself included, that others may not enter."""
    for directory in (*reversed(path.parents), path):
        if directory.is_dir() and directory.stat().st_mode & 0o005 != 0o005:
            return directory
    return None


def needed() -> list[Path]:
    """Returns the directories that a start of cwnd reads, without those under `/usr`."""
    root = Path(__file__).resolve().parents[2]
    interpreter = Path(sys.executable).resolve().parents[1]
    found = [root, Path(sys.prefix), Path(sys.base_prefix), interpreter]
    found = [path.resolve() for path in found]
    return [path for path in dict.fromkeys(found) if not path.is_relative_to("/usr")]


def command() -> tuple[str, ...]:
    """Returns the prefix of commands that run as another user; empty if all is reachable."""
    if all(closed(path) is None for path in needed()):
        return ()
    return ("unshare", "--mount", "--propagation", "private", sys.executable, __file__)


def _mount(*arguments: str) -> None:
    subprocess.run(["mount", *arguments], check=True)


def main() -> None:
    """Opens the ways, then becomes the command."""
    here = Path.cwd()
    by_cover: dict[Path, list[Path]] = {}
    for path in needed():
        cover = closed(path)
        if cover is not None:
            inside = sorted(path.iterdir()) if cover == path else [path]
            by_cover.setdefault(cover, []).extend(inside)
    _mount("-t", "tmpfs", "none", str(_STAGE))
    for cover, paths in by_cover.items():
        for number, path in enumerate(paths):
            stage = _STAGE / str(number)
            stage.mkdir(exist_ok=True) if path.is_dir() else stage.touch()
            _mount("--rbind", str(path), str(stage))
        _mount("-t", "tmpfs", "-o", "mode=755", "none", str(cover))
        for number, path in enumerate(paths):
            stage = _STAGE / str(number)
            path.parent.mkdir(parents=True, exist_ok=True)
            if stage.is_dir():
                path.mkdir(parents=True, exist_ok=True)
            else:
                path.touch()
            _mount("--rbind", str(stage), str(path))
    os.chdir(here)
    os.execvp(sys.argv[1], sys.argv[1:])


if __name__ == "__main__":
    main()
