"""Tables of a page besides those of `cwnd run`, and the command that repeats the runs."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING, Any

import polars as pl
import tomli_w

from cwnd import _core
from cwnd.results import (
    METRICS,
    Metric,
    MetricUnit,
    TextTable,
    groups,
    number,
    summarise,
    summary_table,
)
from cwnd.store import SCENARIO

if TYPE_CHECKING:
    from cwnd.results import Axis, Run

#: Number of flows at all points above which they are summarised by quantiles.
_MAX_ROWS = 200
_LINK_METRICS = (
    METRICS["utilisation"],
    METRICS["qdelay_p50_us"],
    METRICS["qdelay_p90_us"],
    METRICS["qdelay_p99_us"],
    Metric("qdelay_max_us", "Queueing delay, longest", "ms", 1e-3),
    METRICS["drop_ratio"],
    METRICS["mark_ratio"],
    Metric("dropped_pkts", "Drops"),
    Metric("marked_pkts", "Marks"),
)
_FLOW_METRICS = (
    METRICS["goodput_bit_s"],
    Metric("rtt_base_us", "RTT without queues", "ms", 1e-3),
    METRICS["rtt_p50_us"],
    METRICS["rtt_p95_us"],
    METRICS["retrans"],
    Metric("cwnd_reductions_loss", "Reductions by loss"),
    Metric("cwnd_reductions_ecn", "Reductions by ECN"),
    METRICS["rto_count"],
    Metric("fct_s", "Completion time", "s"),
)
#: Metrics that most runs lack; shown if they are not zero.
_RARE_LINK_METRICS = (Metric("quenches_total_pkts", "Source quenches sent"),)
_RARE_FLOW_METRICS = (
    Metric("quenches", "Source quenches believed"),
    Metric("quenches_refused", "Source quenches refused"),
    Metric("cwnd_reductions_quench", "Reductions by source quench"),
    Metric("cwnd_reductions_delay", "Reductions by delay"),
)
#: Metrics and quantiles that summarise many flows.
_SPREAD_METRICS = (
    METRICS["goodput_bit_s"],
    METRICS["rtt_p50_us"],
    Metric("fct_s", "Completion time", "s"),
)
_QUANTILES = (0.1, 0.5, 0.9)
#: Words of the activity that are written in capitals.
_ACRONYMS = ("ce", "ecn", "ece", "syn")


def links_table(run: Run) -> TextTable:
    """Builds a row per point of the sweep and link."""
    by = [*run.axis_columns, "link"]
    links = run.links.with_columns(pl.col("link").cast(pl.String))
    metrics = (*_LINK_METRICS, *_some(links, _RARE_LINK_METRICS))
    summary = summarise(links, by, metrics, run.per_run())
    keys = run.remarks.keys(summary)
    keys["link"] = summary["link"].to_list()
    about = ["data and ACKs of all flows, after the warm-up"]
    return summary_table("Links", about, keys, summary, metrics)


def flows_table(run: Run) -> TextTable:
    """Builds a row per point and flow; with many flows one per group, with quantiles."""
    flows = run.flows.with_columns(pl.col("group", "controller").cast(pl.String))
    by = [*run.axis_columns, "flow_id", "group", "controller"]
    if flows.select(by).n_unique() > _MAX_ROWS:
        return _spread_table(run, flows)
    metrics = (*_FLOW_METRICS, *_some(flows, _RARE_FLOW_METRICS))
    summary = summarise(flows, by, metrics, run.per_run())
    keys = run.remarks.keys(summary)
    keys["flow"] = [str(flow) for flow in summary["flow_id"]]
    keys["group"] = summary["group"].to_list()
    keys["controller"] = summary["controller"].to_list()
    return summary_table("Flows", [], keys, summary, metrics)


def _some(frame: pl.DataFrame, rare: tuple[Metric, ...]) -> list[Metric]:
    return [each for each in rare if each.column in frame.columns and frame[each.column].sum()]


def _spread_table(run: Run, flows: pl.DataFrame) -> TextTable:
    by = [*run.axis_columns, "group"]
    shown = [m for m in _SPREAD_METRICS if flows[m.column].null_count() < flows.height]
    units = [MetricUnit.of(metric, flows[metric.column].to_list()) for metric in shown]
    names = [f"{q:.0%} of flows below".replace("50% of flows below", "median") for q in _QUANTILES]
    headings = [
        f"{each.metric.label}, {name}{f' {each.unit}' if each.unit else ''}"
        for each in units
        for name in names
    ]
    rows = []
    for key, part in groups(flows, by):
        cells = []
        for each in units:
            for q in _QUANTILES:
                value = part[each.metric.column].quantile(q, "linear")
                cells.append("–" if value is None else number(value * each.scale))
        labels = [str(value) for value in key.values()]
        rows.append((*labels, str(part.height), *cells))
    return TextTable(
        title="Flows",
        caption_parts=[
            "quantiles over the flows of all seeds; each flow is a row of flows.parquet"
        ],
        keys=len(by),
        headings=[*(axis.name for axis in run.axes), "group", "flows", *headings],
        rows=rows,
    )


def activity_table(run: Run) -> TextTable:
    """Counters of the mechanisms, and the number of runs with some."""
    rows: list[tuple[str, ...]] = []
    for name, count in run.activity.items():
        column = f"activity_{name}"
        acted = ""
        if column in run.runs.columns:
            acted = f"{int((run.runs[column] > 0).sum())} of {run.runs.height}"
        words = [word.upper() if word in _ACRONYMS else word for word in name.split("_")]
        rows.append((" ".join(words), f"{count:,}".replace(",", "\u202f"), acted))
    return TextTable(
        title="Activity",
        caption_parts=["warm-up included; a comparison rests only on mechanisms that acted"],
        keys=1,
        headings=["what happened", "times", "in runs"],
        rows=rows,
    )


#: Text for a key that a label lacks.
_ABSENT = "–"
#: Number of labels above which a table has a row for each label instead of a column.
_MAX_LABEL_COLUMNS = 8
#: Maximum number of labels.
_MAX_LABELS = 100


def axis_tables(run: Run) -> list[TextTable]:
    """Tables of the keys that each axis changes: a column per label, or a row if there are many."""
    base = {axis.column: axis.labels[0] for axis in run.axes}
    at_point: dict[tuple[str, ...], int] = {}
    for index, row in enumerate(run.runs.select(*base).iter_rows() if base else ()):
        at_point.setdefault(row, index)
    return [_axis_table(run, axis, base, at_point) for axis in run.axes]


def _axis_table(
    run: Run, axis: Axis, base: dict[str, str], at_point: dict[tuple[str, ...], int]
) -> TextTable:
    # Compares one run per label, with the other axes at their first label; it has all defaults.
    labels = axis.labels[:_MAX_LABELS]
    columns = []
    for label in labels:
        index = at_point.get(tuple({**base, axis.column: label}.values()))
        resolved = {} if index is None else _core.read_toml(run.resolved[index], name="resolved")
        columns.append(dict(_flat(resolved)))
    keys = list(dict.fromkeys(key for column in columns for key in column))
    rows: list[tuple[str, ...]] = [
        (key, *(column.get(key, _ABSENT) for column in columns)) for key in keys
    ]
    rows = [row for row in rows if len(set(row[1:])) > 1]
    others = [a.name for a in run.axes if a is not axis and len(a.labels) > 1]
    about = ["what differs in the resolved scenarios"]
    about += [f"{' and '.join(others)} at the first label"] if others else []
    if len(labels) < len(axis.labels):
        about.append(f"the first {len(labels)} of {len(axis.labels)} labels")
    title, headings = f"Axis {axis.name}", ["key", *labels]
    if len(labels) <= _MAX_LABEL_COLUMNS:
        return TextTable(title, about, 1, headings, rows)
    _, *by_label = zip(*rows, strict=True) if rows else [()]
    changed = [row[0] for row in rows]
    lines = [(label, *values) for label, values in zip(labels, by_label, strict=False)]
    return TextTable(title, about, 1, ["label", *changed], lines)


def rerun_command(run: Run) -> str:
    """Formats the command that repeats the runs in the directory of the result."""
    manifest = run.manifest
    words = ["cwnd", "run", SCENARIO, *([] if manifest.world is None else ["--on", "linux"])]
    words += [] if manifest.seed_override is None else ["--seed", str(manifest.seed_override)]
    words += [word for override in manifest.overrides for word in ("--set", override)]
    return shlex.join(words)


def _flat(table: dict[str, Any], prefix: str = "") -> list[tuple[str, str]]:
    pairs = []
    for key, value in table.items():
        if isinstance(value, dict):
            pairs += _flat(value, f"{prefix}{key}.")
        else:
            pairs.append((f"{prefix}{key}", _toml(value)))
    return pairs


def _toml(value: object) -> str:
    if isinstance(value, str):
        return value
    text = tomli_w.dumps({"v": [value]}, indent=0).partition("=")[2].strip()
    return " ".join(text.removeprefix("[").removesuffix("]").split()).removesuffix(",")
