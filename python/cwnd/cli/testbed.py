"""Commands `cwnd testbed calibrate` and `cwnd testbed clean`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from cyclopts import App, Parameter

from cwnd.cli import output

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rich.table import Table

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
        output.show(_table(found))
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


def _table(found: list[tuple[str, list[dict[str, Any]]]]) -> Table:
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
