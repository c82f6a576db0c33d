"""Command `cwnd verify`: results against their hashes."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Parameter

from cwnd.cli import output
from cwnd.errors import InputError

if TYPE_CHECKING:
    from cwnd.store import Verified


@Parameter(name="*")
@dataclass(frozen=True)
class Depth:
    """Extent of a check, and the treatment of damage."""

    sample: int | None = None
    """Runs that are computed again; 16, or none of another version or of Linux, if not given."""
    seed: int = 0
    """Seed of the choice of these runs."""
    threads: Annotated[int | None, Parameter(name=["--threads", "-j"])] = None
    """Runs at a time; all cores if not given."""
    mend: Annotated[bool, Parameter(negative="")] = False
    """Remove damaged runs of a sweep: `cwnd run` computes them again."""


#: Extent of a check without options.
DEPTH = Depth()


def verify(
    directories: Annotated[list[Path], Parameter(negative=(), consume_multiple=True)],
    /,
    *,
    depth: Depth = DEPTH,
    json: output.Json = False,
) -> int:
    """Compare all files of results with their hashes, and compute some runs of sweeps again.

    Runs are computed again only if no file of their result is damaged.

    Exit code 1 if a file is damaged or missing, or a run that is computed again gives other values.
    Commands that read a result compare the files that they read by themselves.

    Args:
        directories: Result directories of any command of cwnd.
        depth: Extent of the check.
        json: Machine-readable output.
    """
    if not directories:
        raise InputError("which result? give its directory, as in `cwnd verify out/first`")
    found = [check_result(directory, depth, quiet=json) for directory in directories]
    if json:
        output.document({"results": found})
    return 0 if all(each["sound"] for each in found) else 1


def check_result(directory: Path, depth: Depth, *, quiet: bool) -> dict[str, Any]:
    """Verifies one result, prints the outcome unless quiet, and returns it as a JSON object."""
    from cwnd.running import verifying

    of_cells = verifying.has_cells(directory)
    found = verifying.verify(directory, **vars(depth))
    if not quiet:
        _show(found, directory, of_cells=of_cells)
    return {"directory": str(directory), **_document(found)}


def _document(found: Verified) -> dict[str, Any]:
    """Formats the outcome of a check as a JSON object."""
    return {
        "sound": found.sound,
        "checked": found.checked,
        "recomputed": found.recomputed,
        "missing": found.missing,
        "mended": found.mended,
        "problems": [{"file": str(p.file), "what": p.what} for p in found.problems],
    }


def _show(found: Verified, directory: Path, *, of_cells: bool) -> None:
    """Prints the outcome of a check for people."""
    for problem in found.problems:
        output.line(f"{problem.file}: {problem.what}")
    verdict = "sound" if found.sound else f"{len(found.problems)} problems"
    if not of_cells:
        output.line(f"{directory}: {found.checked} files compared with their hashes: {verdict}")
        if found.problems:
            output.line(f"run its scenario again, with `cwnd run SCENARIO -o {directory}`")
        return
    if found.missing:
        output.line(f"{found.missing} cells are not there; `cwnd run` computes them")
    output.line(
        f"{directory}: {found.checked} cells compared with their hashes,"
        f" {found.recomputed} computed again: {verdict}"
    )
    if found.mended:
        output.line(f"{found.mended} cells taken out; `cwnd run` computes them again")
    elif found.problems:
        output.line(
            "`cwnd verify --mend` takes damaged cells out, to be computed again;"
            " other files `cwnd run` writes again"
        )
