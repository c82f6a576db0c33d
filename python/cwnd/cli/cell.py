"""Command `cwnd cell`: one run of a result as a scenario."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

from cwnd.cli import output
from cwnd.errors import InputError

if TYPE_CHECKING:
    from cwnd.results import Run


def cell(directory: Path, run: str, /, *, json: output.Json = False) -> int:
    """Print one run of a result as a scenario of its own, all defaults written out.

    `cwnd cell out/my 17 > one.toml` and `cwnd run one.toml` run it again.

    Args:
        directory: Result directory of `cwnd run`.
        run: The run's number (column `cell` of the view `runs`), or its `run_id`.
        json: Machine-readable output.
    """
    from cwnd.store import load

    result = load(directory, samples_on_disk=True)
    row = _row(result, run, directory)
    resolved = result.resolved[row]
    if json:
        output.document({"run_id": result.runs["run_id"][row], "resolved": resolved})
    else:
        sys.stdout.write(resolved)
    return 0


def _row(result: Run, run: str, directory: Path) -> int:
    column = "cell" if run.isdecimal() else "run_id"
    wanted = int(run) if run.isdecimal() else run
    known = result.runs[column].to_list()
    if wanted in known:
        return int(known.index(wanted))
    raise InputError(
        f"{directory}: no run {run}; it has {known[0]} to {known[-1]}, and `cwnd query` lists them"
    )
