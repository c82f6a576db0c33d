"""Command `cwnd sweep`, the former name of `cwnd run`, and `cwnd sweep verify`."""

from __future__ import annotations

from pathlib import Path

from cyclopts import App, Parameter

from cwnd.cli import output, stored
from cwnd.cli.run import run

sweep = App(
    name="sweep",
    help="Another name of `cwnd run`, for one version; `cwnd run --help` describes it.",
    default_parameter=Parameter(show_default=False),
    help_format="plaintext",
)
sweep.default(run)


@sweep.command
def verify(
    directory: Path,
    /,
    *,
    depth: stored.Depth = stored.DEPTH,
    json: output.Json = False,
) -> int:
    """Another name of `cwnd verify`, for one version.

    Args:
        directory: Result directory of `cwnd run`.
        depth: Extent of the check.
        json: Machine-readable output.
    """
    found = stored.check_result(directory, depth, quiet=json)
    if json:
        output.document(found)
    return 0 if found["sound"] else 1
