"""Commands `cwnd doctor`, `cwnd testbed calibrate` and `cwnd testbed clean`: this machine."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Any, Literal

from cyclopts import App, Parameter

from cwnd.cli import output
from cwnd.errors import MachineError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rich.table import Table

    from cwnd.machine import Check

Purpose = Literal["simulator", "testbed", "kernel", "capture", "rrul"]


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
            in the kernel, reading of packet captures, or the programs of cwnd rrul; may be given
            again.
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


testbed = App(
    name="testbed", default_parameter=Parameter(show_default=False), help_format="plaintext"
)


@testbed.command
def calibrate(
    *,
    rate: str | None = None,
    rtt: str | None = None,
    json: output.Json = False,
) -> int:
    """Measure the router's rate, delay and buffer, and compare them with their settings.

    Every run on Linux does this for its own links first and keeps the numbers in its manifest. The
    exit code is 1 if something is out of its tolerance.

    Args:
        rate: Rate of the links, as in "10 Mbit/s", which is the default with --rtt; without both
            options several links are measured.
        rtt: Round-trip time, as in "100 ms", which is the default with --rate.
        json: Machine-readable output.
    """
    from cwnd.running import testbed as beside

    chosen: Sequence[tuple[str, str]] = beside.SETTINGS
    if rate is not None or rtt is not None:
        chosen = ((rate or "10 Mbit/s", rtt or "100 ms"),)
    found = [(f"{rate}, {rtt}", beside.calibrate(rate, rtt)) for rate, rtt in chosen]
    if json:
        output.document({"calibration": dict(found)})
    else:
        output.show(_calibration_table(found))
    return 0 if all(row["holds"] for _, rows in found for row in rows) else 1


@testbed.command
def clean(*, json: output.Json = False) -> int:
    """Remove what runs left that did not end by themselves.

    Namespaces, TUN devices and sockets belong to their process and end with it, even after kill -9.
    Only a controller in the kernel may stay.

    Args:
        json: Machine-readable output.
    """
    from cwnd.running import testbed as beside

    removed = beside.clean()
    if json:
        output.document({"removed": removed})
    else:
        for each in removed:
            output.line(f"removed {each}")
        if not removed:
            output.line("nothing was left")
    return 0


def _calibration_table(found: list[tuple[str, list[dict[str, Any]]]]) -> Table:
    from rich import box
    from rich.table import Table

    table = Table("link", "what", box=box.SIMPLE_HEAD, pad_edge=False)
    for heading in ("set", "measured", "tolerance", ""):
        table.add_column(heading, justify="right", no_wrap=True)
    for link, rows in found:
        table.add_section()
        for row in rows:
            unit = row["unit"]
            table.add_row(
                link,
                row["what"],
                f"{row['set']:.3f} {unit}",
                f"{row['measured']:.3f} {unit}",
                f"±{row['tolerance']:g} {unit}",
                "[green]ok[/]" if row["holds"] else "[red]off[/]",
            )
    return table
