"""Effect of each part of the preset `linux`, beside Linux's numbers over the same paths."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

from cwnd.study import interval, table

if TYPE_CHECKING:
    from cwnd.results import Run

#: Setting → index of the recorded file, and the queue, round-trip time and arm of its row.
_LINUX = {
    "CUBIC, FIFO, 20 ms": (0, "FIFO 1 BDP", "20 ms", "CUBIC"),
    "CUBIC, FIFO, 200 ms": (0, "FIFO 1 BDP", "200 ms", "CUBIC"),
    "Reno, PIE, 100 ms": (0, "PIE", "100 ms", "Reno"),
    "Reno, PIE, 200 ms": (0, "PIE", "200 ms", "Reno"),
    "Reno, PIE, 50 Mbit/s, 100 ms": (1, "PIE", "100 ms", "Reno"),
    "Reno+ABE, PIE, 50 Mbit/s, 100 ms": (1, "PIE", "100 ms", "Reno+ABE"),
}


def parts(run: Run, *recorded: pl.DataFrame) -> list[str]:
    """Settings by parts left out: retransmissions over FIFO, which all fill, or goodput."""
    names = [pl.col(axis.column).cast(pl.String) for axis in run.axes]
    found: dict[str, list[str]] = {}
    for row in run.summary(["goodput_bit_s", "retrans"]).with_columns(names).to_dicts():
        again = "FIFO" in row["setting"]
        column, scale = ("retrans", 1.0) if again else ("goodput_bit_s", 1e-6)
        mean, error = scale * row[column], scale * (row[f"{column}_ci95"] or 0.0)
        cell = interval(mean, error, 0 if again else 2)
        found.setdefault(row["setting"], []).append(cell)
    head = (f"without {part}" for part in run.axes[1].labels[1:])
    rows = (
        [
            f"{setting}: {'sent again' if 'FIFO' in setting else 'Mbit/s'}",
            _linux(setting, recorded),
            *cells,
        ]
        for setting, cells in found.items()
    )
    return table(["", "Linux", "preset `linux`", *head], rows)


def _linux(setting: str, recorded: tuple[pl.DataFrame, ...]) -> str:
    file, queue, rtt, arm = _LINUX[setting]
    again = "FIFO" in setting
    metric = "Retransmissions" if again else "Goodput"
    row = recorded[file].filter(queue=queue, rtt=rtt, arm=arm, group="*", metric=metric)
    # Points that ran more often come last.
    return interval(row["linux"][-1], row["linux_ci95"][-1], 0 if again else 2)


TABLES = {"parts": parts}
