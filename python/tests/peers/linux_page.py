"""The section of the page about Linux: how its rows were recorded, and older ones beside them."""

from __future__ import annotations

import json
import statistics
from typing import TYPE_CHECKING, Any

from peers.rows import DATA, Measures, Row, load_runs

if TYPE_CHECKING:
    from collections.abc import Sequence

    from peers.judge import Comparison

NEW, OLD = "linux-testbed.jsonl", "linux-kernel.jsonl"


def section(found: Sequence[Comparison]) -> list[str]:
    """Returns the section: how the rows were recorded, and the first recording beside them."""
    ours = {c.row.setting: c for c in found if c.row.table == NEW}
    before = _by_setting(load_runs(OLD))
    after = _by_setting(load_runs(NEW))
    lines = [
        "## Linux, recorded behind our router",
        "",
        _how(),
        "",
        "The first recording (`linux-kernel.jsonl`, two runs each) went through a router that "
        "slept in whole milliseconds. That tears trains of ACKs, lets packets go in bursts, and "
        "takes up to a millisecond from every wait: what few events decide is off. Its rows are "
        "shown, not judged, and the mapping has no jitter for them any more.",
        "",
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
    return [*lines, "", "Least and most of the runs, where they differ.", ""]


def _how() -> str:
    rows: list[dict[str, Any]] = [
        json.loads(line) for line in (DATA / NEW).read_text(encoding="utf-8").splitlines()
    ]
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
    return (
        "`make linux-rows` runs [linux-testbed.toml](../tests/golden/peers/linux-testbed.toml) on "
        "this machine's kernel around [our router](how-to/testbed.md), three runs of each of "
        f"{settings} settings, {len(rows)} in all (Linux {', '.join(kernels)}). Each row "
        "has the kernel, the seed, the goodput of each flow, how late the router was and its "
        "calibration. Late were "
        f"packets by {statistics.median(late['p50']):.0f} µs (median of the runs' medians), by "
        f"{statistics.median(late['p99']):.0f} µs at the 99th percentile ({max(late['p99']):.0f} "
        f"µs in the worst run), and by {most / 1000:.1f} ms at most, in a busy hour of the "
        "machine; runs that were not valid, or in which anything was later than 20 ms, were made "
        f"again. Rates were within {max(rates):.1%} of what was set. A row below is the mean of "
        "its runs."
    )


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
