"""Command `cwnd doctor`: checks of this machine."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Literal

from cyclopts import Parameter

from cwnd.cli import output
from cwnd.errors import MachineError

if TYPE_CHECKING:
    from rich.table import Table

    from cwnd.machine import Check

Purpose = Literal["simulator", "testbed", "kernel", "capture"]


def doctor(
    *,
    require: Annotated[
        list[Purpose],
        Parameter(negative=(), consume_multiple=False),
    ] = [],  # noqa: B006 - cyclopts shows an empty list as no default
    json: output.Json = False,
) -> int:
    """Show what this machine can do, and what to install.

    It returns 3 if the machine lacks something for the simulator, or for a part named by --require.

    Args:
        require: Part that must work: the simulator, the testbed of real TCP endpoints, controllers
            in the kernel, or reading of packet captures; may be given again.
        json: Machine-readable output.
    """
    from cwnd.machine import PURPOSES, examine, missing

    checks = examine()
    able = {purpose: not missing(checks, purpose) for purpose in PURPOSES}
    if json:
        output.document({"able": able, "checks": [asdict(check) for check in checks]})
    else:
        output.show(_table(checks))
        for purpose, fine in able.items():
            output.line(f"{purpose}: {'ready' if fine else 'lacks something'}")
    needed = ["simulator", *require]
    return 0 if all(able[purpose] for purpose in needed) else MachineError.exit_code


def _table(checks: list[Check]) -> Table:
    from rich import box
    from rich.table import Table

    table = Table("", "check", "needed for", "found", "how to get it", box=box.SIMPLE_HEAD)
    for check in checks:
        mark = "[green]ok[/]" if check.status == "ok" else "[yellow]missing[/]"
        table.add_row(mark, check.name, check.needed_for, check.found, check.fix)
    return table
