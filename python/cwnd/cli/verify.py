"""`cwnd verify`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Parameter

from cwnd.cli import output
from cwnd.errors import InputError

if TYPE_CHECKING:
    from cwnd.sweeps import Verified


def verify(
    directories: Annotated[list[Path], Parameter(negative=(), consume_multiple=True)],
    /,
    *,
    sample: int = 16,
    seed: int = 0,
    threads: Annotated[int | None, Parameter(name=["--threads", "-j"])] = None,
    mend: Annotated[bool, Parameter(negative="")] = False,
    json: output.Json = False,
) -> int:
    """Compare all files of results with their hashes, and compute some runs of sweeps again.

    Exit code 1 if a file is damaged or missing, or a run that is computed again gives other bytes.
    Commands that read a result compare the files that they read by themselves.

    Args:
        directories: What `cwnd run` or `cwnd sweep` wrote.
        sample: Runs of a sweep that are computed again, 16 if not given.
        seed: Chooses which.
        threads: Runs at a time; all cores if not given.
        mend: Take out the runs of a sweep of which something is wrong, so that `cwnd sweep`
            computes them again.
        json: Machine-readable output.
    """
    from cwnd.sweeps import Dataset
    from cwnd.sweeps import verify as verify_result

    if not directories:
        raise InputError("which result? give its directory, as in `cwnd verify out/first`")
    documents = []
    for directory in directories:
        found = verify_result(directory, sample=sample, seed=seed, threads=threads, mend=mend)
        documents.append({"directory": str(directory), **document(found)})
        if not json:
            show(found, directory, sweep=Dataset.is_at(directory))
    if json:
        output.document({"results": documents})
    return 0 if all(each["sound"] for each in documents) else 1


def document(found: Verified) -> dict[str, Any]:
    """What was found, for programs."""
    return {
        "sound": found.sound,
        "checked": found.checked,
        "recomputed": found.recomputed,
        "missing": found.missing,
        "mended": found.mended,
        "problems": [{"file": str(p.file), "what": p.what} for p in found.problems],
    }


def show(found: Verified, directory: Path, *, sweep: bool) -> None:
    """What was found, for people."""
    for problem in found.problems:
        output.line(f"{problem.file}: {problem.what}")
    verdict = "sound" if found.sound else f"{len(found.problems)} problems"
    if not sweep:
        output.line(f"{directory}: {found.checked} files compared with their hashes: {verdict}")
        if found.problems:
            output.line(f"run its scenario again, with `cwnd run SCENARIO -o {directory}`")
        return
    if found.missing:
        output.line(f"{found.missing} cells are not there; `cwnd sweep` computes them")
    output.line(
        f"{found.checked} cells compared with their hashes, {found.recomputed} computed again:"
        f" {verdict}"
    )
    if found.mended:
        output.line(f"{found.mended} cells taken out; `cwnd sweep` computes them again")
    elif found.problems:
        output.line(
            "`cwnd sweep verify --mend` takes damaged cells out, to be computed again;"
            " other files `cwnd sweep` writes again"
        )
