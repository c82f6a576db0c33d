"""Tables of Linux: accuracy of the recording, and an older one beside it."""

from __future__ import annotations

import json
import statistics
from typing import TYPE_CHECKING, Any

from cwnd.studies.peers.recorded.rows import Measures, Row, load_runs

if TYPE_CHECKING:
    from collections.abc import Sequence

    from cwnd.studies.peers.recorded.endless import Comparison

NEW, OLD = "linux-testbed.jsonl", "linux-kernel.jsonl"


def recordings(found: Sequence[Comparison]) -> list[str]:
    """Table of both recordings, and ours."""
    ours = {c.row.setting: c for c in found if c.row.table == NEW}
    before = _by_setting(load_runs(OLD))
    after = _by_setting(load_runs(NEW))
    lines = [
        "| setting | | goodput Mbit/s | median delay ms | drops | marks |",
        "|---|---|---|---|---|---|",
    ]
    for setting, old in before.items():
        lines += [
            f"| {setting} | whole milliseconds | {_cells([r.measured for r in old])} |",
            f"| | our router | {_cells([r.measured for r in after[setting]])} |",
        ]
        mine = ours[setting].ours
        if mine is not None:
            lines.append(f"| | simulator | {_cells([mine])} |")
    return lines


def accuracy(text: str) -> list[str]:
    """Describes the runs and the accuracy of the router."""
    rows: list[dict[str, Any]] = [json.loads(line) for line in text.splitlines()]
    late = {q: [max(d[q] for d in row["late_us"].values()) for row in rows] for q in ("p50", "p99")}
    most = max(d["max"] for row in rows for d in row["late_us"].values())
    kernels = sorted({row["kernel"] for row in rows})
    rates = [
        abs(measured / given - 1)
        for row in rows
        for what, (given, measured) in row["calibration"].items()
        if what.endswith("rate")
    ]
    settings = len(_by_setting(load_runs(NEW)))
    return [
        f"{settings} settings, {len(rows)} runs (Linux {', '.join(kernels)}). Packets were late by "
        f"{statistics.median(late['p50']):.0f} µs (median of the runs' medians), by "
        f"{statistics.median(late['p99']):.0f} µs at the 99th percentile ({max(late['p99']):.0f} "
        f"µs in the worst run), and by {most / 1000:.1f} ms at most. "
        f"Rates were within {max(rates):.1%} of what was set."
    ]


def _by_setting(runs: Sequence[Row]) -> dict[str, list[Row]]:
    alike: dict[str, list[Row]] = {}
    for run in runs:
        alike.setdefault(run.setting, []).append(run)
    return alike


def _cells(each: list[Measures]) -> str:
    told = (
        ([m.goodput_mbit_s for m in each], 2),
        ([m.qdelay_p50_ms for m in each], 1),
        ([m.drops for m in each], 0),
        ([m.marks for m in each], 0),
    )
    return " | ".join(_span(values, digits) for values, digits in told)


def _span(values: list[float], digits: int) -> str:
    low, high = f"{min(values):.{digits}f}", f"{max(values):.{digits}f}"
    return low if low == high else f"{low} – {high}"
