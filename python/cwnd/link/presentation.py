"""Table of a link's statistics, and figure of its queues over time."""

from __future__ import annotations

import shlex
import textwrap
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import polars as pl

from cwnd import _core
from cwnd.figures import Line, Panel, Picture, line_style
from cwnd.link.logs import add_to, interval_s
from cwnd.link.settings import MIN_RTT
from cwnd.results import LINK, TextTable, number
from cwnd.store import LINKED, SCENARIO

if TYPE_CHECKING:
    from collections.abc import Mapping

    from cwnd._core import Link
    from cwnd.link.logs import Logs
    from cwnd.link.settings import LinkOutcome
    from cwnd.store import Records

#: Units of rates; the largest unit that is at most the rate is used.
_RATES = ((1e9, "Gbit/s"), (1e6, "Mbit/s"), (1e3, "kbit/s"), (1.0, "bit/s"))
#: Colour of the area that is a link's capacity.
_CAPACITY = "#999999"
#: Maximum length of the command in the title, in characters.
_TITLE = 80
_HEADINGS = [
    "direction",
    "rate",
    "carried",
    "packets",
    "dropped",
    "marked",
    "qdelay\np50",
    "qdelay\np99",
    "late\np50",
    "late\np99",
]


class Meter:
    """Throughput, drops and marks of both directions between readings of a running link.

    The delay is that of the last packet. With `total_s`, lines show the end of the link.
    """

    def __init__(self, total_s: float | None = None) -> None:
        self._total = "" if total_s is None else f" of {total_s:.0f}"
        self._before: dict[str, tuple[float, int, int, int]] = {}

    def line(self, link: Link) -> str:
        """Formats what happened since the last line; empty until there is a new sample."""
        parts, now = [], {}
        for name, row in zip(("up", "down"), link.live(), strict=True):
            before = self._before.get(name, (0.0, 0, 0, 0))
            if row is None or row[0] <= before[0]:
                return ""
            time_s, sent, waiting, delay_us, drops, marks = row
            now[name] = (time_s, sent, drops, marks)
            rate = 8 * (sent - before[1]) / (time_s - before[0]) / 1e6
            delay = delay_us / 1e3 if delay_us is not None and waiting else 0.0
            counts = zip((drops, marks), before[2:], ("dropped", "marked"), strict=True)
            hits = "".join(f" {n - old} {what}" for n, old, what in counts if n > old)
            parts.append(f"{name} {rate:.2f} Mbit/s {delay:.0f} ms{hits}")
        self._before = now
        return f"{time_s:.0f}{self._total} s  {'  '.join(parts)}"


def table(outcome: LinkOutcome) -> TextTable:
    """Formats a row for each direction."""
    summary = outcome.summary
    rows = [_row(row, summary["directions"][row["link"]]) for row in outcome.links()]
    about = [
        f"{summary['elapsed_s']:.1f} s",
        "qdelay, late: ms",
        "late: from when a packet was due to when the router sent it",
    ]
    title = textwrap.shorten(shlex.join(outcome.command), _TITLE, placeholder=" …")
    return TextTable(title, about, 1, _HEADINGS, rows)


def facts(records: Records) -> list[tuple[str, str]]:
    """Describes a link and its command by its scenario, and a real one by what it recorded."""
    scenario = _core.read_toml(records.files.text(SCENARIO), name=SCENARIO)
    # All flows have the same, of which links may have a part.
    links, flow = scenario["link"], next(iter(scenario["flow"].values()))
    delays = [flow["edge_rtt"], *(links[name].get("delay", "0 s") for name in _DIRECTIONS)]
    *parts_s, least_s = (_core.read_quantity("time", text) for text in (*delays, MIN_RTT))
    rtt_s = sum(parts_s)
    found = [
        *((name, _settings(links[name])) for name in _DIRECTIONS),
        ("RTT", f"{rtt_s * 1e3:.4g} ms" if rtt_s > least_s else "none"),
    ]
    if records.kind != LINK:
        return [*found, ("duration", scenario["run"]["duration"])]
    document = records.document(LINKED)
    waited = f"yes: the router waited {document['idle']:.0%} of the time"
    return [
        ("command", shlex.join(document["command"])),
        *found,
        ("duration", f"{document['elapsed_s']:.1f} s"),
        ("exit code", str(document["exit_code"])),
        ("valid", waited if document["valid"] else "; ".join(["no", *document["flaws"]])),
    ]


def _settings(link: dict[str, Any]) -> str:
    """Describes one direction by the keys that are not their defaults."""
    rate = link.get("rate") or (f"trace {link['trace']}" if "trace" in link else "no rate")
    parts = [rate if rate != "none" else "no rate", _part(link["queue"])]
    plain = (0.0, "0 ms", None)
    impairments = ("loss", "jitter", "reorder", "reorder_delay")
    parts += [f"{key} {link[key]}" for key in impairments if link.get(key) not in plain]
    parts += [
        f"{key} {_part(link[key])}"
        for key in ("meter", "messenger")
        if link.get(key, {"kind": "none"})["kind"] != "none"
    ]
    return ", ".join(parts)


def _part(table: dict[str, Any]) -> str:
    more = ", ".join(
        f"{key} = {str(value).lower() if isinstance(value, bool) else value}"
        for key, value in table.items()
        if key != "kind"
    )
    return f"{table['kind']} ({more})" if more else str(table["kind"])


def _row(link: dict[str, Any], direction: dict[str, Any]) -> tuple[str, ...]:
    used = link["utilisation"]
    return (
        link["link"],
        "none" if link["rate_bit_s"] is None else _rate(link["rate_bit_s"]),
        _rate(direction["sent_bit_s"]) + ("" if used is None else f" ({used:.1%})"),
        str(link["arrived_total_pkts"]),
        _counts(direction["drops"]),
        _counts(direction["marks"]),
        *(_ms(link[f"qdelay_{q}_us"]) for q in ("p50", "p99")),
        *(_ms(direction[f"late_{q}_us"]) for q in ("p50", "p99")),
    )


def _counts(by_reason: dict[str, int]) -> str:
    if len(by_reason) <= 1:
        return "".join(f"{count} ({reason})" for reason, count in by_reason.items()) or "0"
    each = ", ".join(f"{reason} {count}" for reason, count in by_reason.items())
    return f"{sum(by_reason.values())} ({each})"


def _rate(bit_s: float) -> str:
    scale, unit = next((found for found in _RATES if bit_s >= found[0]), _RATES[-1])
    return f"{number(round(bit_s / scale, 3))} {unit}"


def _ms(us: float | None) -> str:
    return "" if us is None else f"{us / 1000:.2f}"


_DIRECTIONS = ("downlink", "uplink")
#: Height of a panel in inches.
_PANEL = 1.3


def picture(samples: pl.DataFrame, logs: Logs | None = None) -> Picture | None:
    """Draws throughput within the link's capacity, delay, backlog, and drops and marks so far.

    Throughput and capacity have panels of their own for each direction, as the plots of
    mm-throughput-graph. Records of version 1 lack them. Connections of `logs` add their windows and
    RTTs, captures the throughput where they were made.

    `samples` is the table `link_series` of a link. The result is `None` without samples.
    """
    if samples.is_empty():
        return None
    hits = pl.col("drop") + pl.col("mark")
    panels = [
        *(_throughput(samples, name) for name in _DIRECTIONS if "sent_bytes" in samples.columns),
        _panel(samples, "Queueing delay (ms)", pl.col("sojourn_us") / 1e3),
        _panel(samples, "Waiting (packets)", pl.col("qlen_pkts")),
        _panel(samples, "Drops, marks\nso far", hits),
    ]
    if logs is not None:
        add_to(panels, logs, _DIRECTIONS)
    return Picture(panels, height=_PANEL * len(panels) + 0.5, x_label="Time (s)", shared_y="row")


def _throughput(samples: pl.DataFrame, name: str) -> Panel:
    """Throughput of a direction, in Mbit/s, over an area that is its capacity."""
    mine = samples.filter(pl.col("link") == name).select("time_s", "sent_bytes", "capacity_bytes")
    width = interval_s(mine["time_s"].last() or 0.0)  # type: ignore[arg-type]
    bins = (
        mine.group_by((pl.col("time_s") / width).floor().alias("bin"), maintain_order=True)
        .first()
        .vstack(mine.tail(1).select(pl.lit(-1.0).alias("bin"), pl.all()))
        .unique("time_s", keep="first", maintain_order=True)
    )
    seconds = pl.col("time_s").diff().shift(-1)
    rates = bins.select(
        "time_s",
        *(
            (pl.col(f"{what}_bytes").diff().shift(-1) * 8 / seconds / 1e6).alias(what)
            for what in ("sent", "capacity")
        ),
    )
    # The last value lasts to the end, as each does until the next point.
    rates = rates.with_columns(pl.col("sent", "capacity").forward_fill())
    time, sent, capacity = (rates[each].to_list() for each in rates.columns)
    index = _DIRECTIONS.index(name)
    colour, dashes = line_style.colour(index), line_style.dashes(index)
    marks = [Line(time, sent, colour=colour, dashes=dashes, steps=True, label=name)]
    if any(each is not None for each in capacity):
        # Both corners of each step, as bands have straight edges.
        edge = [each for value in capacity[:-1] for each in (value, value)]
        corners = [each for pair in pairwise(time) for each in pair]
        band = ([0.0] * len(edge), edge)
        nowhere: list[float | None] = [None] * len(edge)
        marks.insert(0, Line(corners, nowhere, colour=_CAPACITY, label="capacity", band=band))
    label = f"{name.capitalize()}\n(Mbit/s)"
    return Panel(marks, y_label=label, x_tight=True, y_limits=(0, None))


def _panel(samples: pl.DataFrame, label: str, value: pl.Expr) -> Panel:
    lines = []
    for index, name in enumerate(_DIRECTIONS):
        mine = samples.filter(pl.col("link") == name).select("time_s", value.alias("value"))
        lines.append(
            Line(
                mine["time_s"].to_list(),
                mine["value"].cast(pl.Float64).to_list(),
                colour=line_style.colour(index),
                dashes=line_style.dashes(index),
                steps=True,
                label=name,
            )
        )
    return Panel(lines, y_label=label, x_tight=True, y_limits=(0, None))


def rrul_tables(test: Mapping[str, Any]) -> list[TextTable]:
    """Formats the content of `rrul.json`: goodput of each DSCP, and delays of each ping."""
    goodputs = test["goodput_mbit_s"]
    names = list(goodputs["download"])
    of_flows = [
        (name, *(f"{goodputs[way][name]:.2f}" for way in ("download", "upload"))) for name in names
    ]
    sums = (f"{sum(goodputs[way].values()):.2f}" for way in ("download", "upload"))
    pings = [
        (
            row["ping"],
            *(_milliseconds(row[name]) for name in _DELAYS[:4]),
            "–" if row["lost_ratio"] is None else f"{row['lost_ratio']:.1%}",
            *(_milliseconds(row[name]) for name in _DELAYS[4:]),
        )
        for row in test["pings"]
    ]
    return [
        TextTable(
            test["title"],
            ["Mbit/s"],
            1,
            ["DSCP", "download", "upload"],
            [*of_flows, ("sum", *sums)],
        ),
        TextTable(
            "",
            ["ms; up, down: one way, under load"],
            1,
            [
                *("ping", "idle\np50", "load\np50", "load\np95", "increase\np50"),
                *("load\nlost", "load\njitter", "up\np95", "down\np95"),
            ],
            pings,
        ),
    ]


#: Times of a row of `Rrul.delays`, in the order of the table.
_DELAYS = (
    *("idle_p50_ms", "load_p50_ms", "load_p95_ms", "increase_ms"),
    *("jitter_ms", "up_p95_ms", "down_p95_ms"),
)


def _milliseconds(ms: float | None) -> str:
    return "–" if ms is None else f"{ms:.1f}"


#: Series of Flent's figure `all_scaled`: beginning of their names, and label of their axis.
_SCALED = (
    ("TCP download ", "Download\n(Mbit/s)"),
    ("TCP upload ", "Upload\n(Mbit/s)"),
    ("Ping (ms) ", "Ping (ms)"),
)
_MEAN, _MEAN_COLOUR = "avg", "#000000"
#: Height of a panel of an RRUL test, in inches.
_RRUL_PANEL = 1.6


def rrul_picture(document: dict[str, Any]) -> Picture:
    """Draws downloads, uploads and pings of a file of Flent over time, as its `all_scaled`."""
    times, results = document["x_values"], document["results"]
    labels = list(
        dict.fromkeys(
            name.removeprefix(begin).removeprefix("UDP ")
            for begin, _ in _SCALED
            for name in results
            if name.startswith(begin) and not name.endswith((" avg", " sum"))
        )
    )
    panels = []
    for begin, y_label in _SCALED:
        lines = []
        for name, values in results.items():
            label = name.removeprefix(begin).removeprefix("UDP ")
            if not name.startswith(begin) or label not in (*labels, _MEAN):
                continue
            mean = label == _MEAN
            index = 0 if mean else labels.index(label)
            lines.append(
                Line(
                    times,
                    values,
                    colour=_MEAN_COLOUR if mean else line_style.colour(index),
                    width=1.6 if mean else 0.8,
                    dashes=() if mean else line_style.dashes(index),
                    label="mean" if mean else label,
                )
            )
        panels.append(Panel(lines, y_label=y_label, x_tight=True, y_limits=(0, None)))
    return Picture(
        panels, height=_RRUL_PANEL * len(panels) + 0.5, x_label="Time (s)", shared_y="none"
    )
