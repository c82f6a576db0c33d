"""Figure 1 of the TCP*(n) paper from simulations: the figure of docs/explanation/timeouts.md.

A. Mondal, A. Kuzmanovic: Removing exponential backoff from TCP. ACM CCR 38(5), 2008. `make docs`
runs this; a test compares what it reads off with the paper.
"""

from __future__ import annotations

from pathlib import Path

import polars as pl

import cwnd
from cwnd.figures import Figure, Line, Panel, Picture, line_style
from cwnd.plots import save

DOCS = Path(__file__).resolve().parents[1] / "docs"
SCENARIO = DOCS / "timeouts" / "backoff.toml"
#: Rounds of backoff that the paper's figure has.
ROUNDS = 7
#: Timeout of the scenario before the first sample, s.
FIRST_S = 1.0


def rounds() -> dict[int, list[float]]:
    """The timeout of each round of backoff in multiples of the first, by the n of TCP*(n)."""
    series = cwnd.run(SCENARIO).series
    found: dict[int, list[float]] = {}
    for n in range(ROUNDS):
        of_n = series.filter(pl.col("star").cast(pl.String) == str(n))
        # After so many retransmissions in a row the timer is set to this.
        waits = of_n.group_by("retrans").agg(
            pl.col("rto_us").n_unique().alias("kinds"), pl.col("rto_us").first()
        )
        assert waits["kinds"].max() == 1, "a timeout does not change while it runs"
        sizes = dict(waits.select("retrans", "rto_us").iter_rows())
        found[n] = [sizes[k] / 1e6 / FIRST_S for k in range(ROUNDS)]
    return found


def draw(found: dict[int, list[float]]) -> Picture:
    """The figure, as the paper has it: the multiple over the round."""
    lines = [
        Line(
            range(1, ROUNDS + 1),
            multiples,
            line_style.colour(index),
            dashes=line_style.dashes(index),
            marker=line_style.marker(index),
            label={0: "TCP", ROUNDS - 1: "TCP*(∞)"}.get(n, f"TCP*({n})"),
        )
        for index, (n, multiples) in enumerate(found.items())
    ]
    panel = Panel(lines, x_label="backoff round", y_label="timeout / RTO", y_log=True)
    panel.y_ticks = [(2.0**k, f"{2**k}") for k in range(ROUNDS)]
    return Picture([panel], 3.1, 5.6)


def main() -> None:
    """Writes the figure."""
    save(Figure(draw(rounds())), DOCS / "images" / "timeouts", "backoff")


if __name__ == "__main__":
    main()
