"""BECN's choices, BECN beyond its paper, and forged source quenches: tables and figures."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

from cwnd.figures import Image, Line, Panel, Picture, line_style
from cwnd.study import head, line, table

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from cwnd.results import Run

#: Gain that is as blue as can be, per cent.
_LIMIT = 25.0
#: Columns under each number of flows.
_COMPARED = ("ECN", "BECN", "goodput")
#: Attackers whose lines lie under those of others.
_UNDERNEATH = ("blind", "knows the ports, all believed")


def beside(run: Run) -> list[str]:
    """Gain in goodput over as many plain flows beside them, per cent, by choice."""
    (choice,) = (axis.column for axis in run.axes)
    goodput = pl.col("goodput_bit_s")
    is_plain = pl.col("group").cast(pl.String) == "plain"
    rows = run.flows.group_by(choice, maintain_order=True).agg(
        (100 * (goodput.filter(~is_plain).sum() / goodput.filter(is_plain).sum() - 1)).alias("more")
    )
    lines = [line([str(label), _change(more)]) for label, more in rows.iter_rows()]
    return head(["", "goodput, more than plain flows"]) + lines


def gateways(run: Run) -> list[str]:
    """Goodput of flows over three routers and over one; mean use and loss of the routers."""
    count, scheme = (axis.column for axis in run.axes)
    lines = head(["", "", "over three", "over one", "ratio", "utilisation", "loss"])
    goodput, group = pl.col("goodput_bit_s") / 1e6, pl.col("group").cast(pl.String)
    flows = run.flows.group_by(count, scheme, maintain_order=True).agg(
        all=goodput.filter(group == "all").mean(), one=goodput.filter(group != "all").mean()
    )
    hops = run.links.filter(pl.col("link").cast(pl.String).is_in(["hop1", "hop2", "hop3"]))
    both = flows.join(_means(hops, [count, scheme]), on=[count, scheme], maintain_order="left")
    for row in both.iter_rows(named=True):
        texts = [row[count], row[scheme], f"{row['all']:.2f} Mbit/s", f"{row['one']:.2f} Mbit/s"]
        texts += [f"{row['all'] / row['one']:.2f}", f"{row['used']:.1f} %", _percent(row["loss"])]
        lines.append(line([str(text) for text in texts]))
    return lines


def position(run: Run) -> list[str]:
    """BECN and ECN by where the bottleneck lies: how long each loop is, and what that gives."""
    flows, scheme, x = (axis.column for axis in run.axes)
    links = run.links.filter(pl.col("link").cast(pl.String) == "bottleneck")
    means = _means(links, [x, flows, scheme])
    round_trip_ms = max(run.flows["rtt_base_us"].to_list()) / 1e3
    counts = run.axes[0].labels
    lines = head(["x", "x R", *(f"{label}: {name}" for label in counts for name in _COMPARED)])
    for (label,), part in means.group_by(x, maintain_order=True):
        texts = [str(label), f"{float(label) * round_trip_ms:.0f} ms"]
        for (_,), cell in part.group_by(flows, maintain_order=True):
            ecn, becn = cell.sort(pl.col(scheme).cast(pl.String) == "BECN").to_dicts()
            gain = _change(100 * (becn["carried"] / ecn["carried"] - 1), 1)
            texts += [_of_link(ecn), _of_link(becn), gain]
        lines.append(line(texts))
    return lines


def before(run: Run) -> list[str]:
    """BECN and ECN with a router that quenches before the bottleneck, by that router's rate."""
    flows, scheme, rate = (axis.column for axis in run.axes)
    links = run.links.filter(pl.col("link").cast(pl.String).is_in(["before", "bottleneck"]))
    counts = run.axes[0].labels
    columns = ("ECN", "BECN", "quenches, before and at it", "goodput")
    lines = head(["before, Mbit/s", *(f"{label}: {name}" for label in counts for name in columns)])
    by = [rate, flows, scheme]
    both = _means(links, [*by, "link"], told=pl.col("quenches_total_pkts").mean())
    for (label,), part in both.group_by(rate, maintain_order=True):
        texts = [str(label)]
        for (_,), cell in part.group_by(flows, maintain_order=True):
            rows = {(str(row[scheme]), str(row["link"])): row for row in cell.iter_rows(named=True)}
            # What the receivers got is what the last link carried.
            gain = rows["BECN", "bottleneck"]["carried"] / rows["ECN", "bottleneck"]["carried"]
            queues = {
                name: " and ".join(
                    f"{rows[name, link]['queue_kb']:.0f}" for link in ("before", "bottleneck")
                )
                for name in ("ECN", "BECN")
            }
            used = {name: rows[name, "bottleneck"]["used"] for name in queues}
            texts += [f"{used[name]:.1f} %, {queues[name]}" for name in ("ECN", "BECN")]
            told = (rows["BECN", link]["told"] for link in ("before", "bottleneck"))
            texts += [" and ".join(f"{each:,.0f}" for each in told), _change(100 * (gain - 1), 1)]
        lines.append(line(texts))
    return lines


def mixtures(run: Run) -> list[str]:
    """Gain in goodput of BECN flows over other flows beside them, per cent."""
    becn, other, delay = (axis.column for axis in run.axes)
    goodput, group = pl.col("goodput_bit_s"), pl.col("group").cast(pl.String)
    more = goodput.filter(group == "becn").sum() / goodput.filter(group == "other").sum() - 1
    rows = run.flows.group_by(other, delay, becn, maintain_order=True).agg(more=100 * more)
    kinds, delays = run.axes[0].labels, run.axes[2].labels
    lines = head(["beside", *(f"{kind}; {each}" for kind in kinds for each in delays)])
    for (label,), part in rows.group_by(other, maintain_order=True):
        cells = {(str(a), str(b)): c for a, b, c in part.select(becn, delay, "more").iter_rows()}
        texts = [_change(cells[kind, each]) for kind in kinds for each in delays]
        lines.append(line([str(label), *texts]))
    return lines


def rates(run: Run) -> list[str]:
    """Goodput of BECN over ECN by RTT and rate, and the utilisation of both."""
    found = by_rate(run)
    lines = head(["RTT", *(f"{rate} Mbit/s" for rate in found["rate"].unique(maintain_order=True))])
    for (rtt,), part in found.group_by("rtt", maintain_order=True):
        texts = [
            f"{_change(row['gain'], 1)} ({row['ecn']:.0f} → {row['becn']:.0f} %)"
            for row in part.iter_rows(named=True)
        ]
        lines.append(line([f"{rtt} ms", *texts]))
    return lines


def by_rate(run: Run) -> pl.DataFrame:
    """BECN's `gain` in goodput over ECN, and the utilisation with `ecn` and `becn`, in per cent.

    A row for each `rtt`, ms, and `rate`, Mbit/s, as they are called in the scenario.
    """
    scheme, rtt, rate = (axis.column for axis in run.axes)
    links = run.links.filter(pl.col("link").cast(pl.String) == "bottleneck")
    means = _means(links, [rtt, rate, scheme])
    ecn, becn = (means.filter(pl.col(scheme).cast(pl.String) == name) for name in ("ECN", "BECN"))
    return becn.join(ecn, on=[rtt, rate], suffix="_ecn", maintain_order="left").select(
        rtt=pl.col(rtt).cast(pl.String),
        rate=pl.col(rate).cast(pl.String),
        gain=100 * (pl.col("carried") / pl.col("carried_ecn") - 1),
        ecn="used_ecn",
        becn="used",
    )


def draw_map(run: Run) -> Picture:
    """The gains as a grid with their numbers: blue where BECN carries more than ECN."""
    found = by_rate(run)
    rtts, rates = (found[name].unique(maintain_order=True).to_list() for name in ("rtt", "rate"))
    # As the table shows them.
    gains = [found.filter(rtt=rtt)["gain"].round(1).to_list() for rtt in rtts]
    texts = [[_change(gain, 1).removesuffix(" %") for gain in row] for row in gains]
    image = Image(gains, _LIMIT, texts, key="BECN's goodput over ECN's (%)")
    panel = Panel([image], ticks=list(enumerate(rates)), y_ticks=list(enumerate(rtts)))
    panel.x_label = "Rate of the bottleneck (Mbit/s); a flow for each Mbit/s"
    panel.y_label = "RTT (ms)"
    return Picture([panel], 3.2, 5.2)


def goodput(run: Run) -> dict[str, list[float]]:
    """Goodput under each attacker by quenches a second, Mbit/s: means over seeds."""
    attack, rate = (axis.column for axis in run.axes)
    mean = (pl.col("goodput_bit_s") / 1e6).mean()
    means = run.flows.group_by(attack, rate, maintain_order=True).agg(mbit_s=mean)
    parts = means.group_by(attack, maintain_order=True)
    return {str(label): part["mbit_s"].to_list() for (label,), part in parts}


def attack(run: Run) -> list[str]:
    """Goodput, Mbit/s: rows of attackers by quenches a second."""
    rows = ([label, *(f"{m:.2f}" for m in means)] for label, means in goodput(run).items())
    return table(["quenches a second", *run.axes[1].labels], rows)


def draw_attack(run: Run) -> Picture:
    """Goodput by rate on a logarithmic axis, a line for each attacker."""
    rates = [float(label.replace(",", "")) for label in run.axes[1].labels]
    lines = [
        Line(
            rates,
            means,
            line_style.colour(index),
            width=2.4 if label in _UNDERNEATH else 1.0,
            marker=line_style.marker(index),
            label=label,
        )
        for index, (label, means) in enumerate(goodput(run).items())
    ]
    panel = Panel(lines, x_log=True, y_limits=(0, 10))
    panel.x_label, panel.y_label = "Forged source quenches a second", "Goodput (Mbit/s)"
    return Picture([panel], 3.1, 6.2)


def _means(links: pl.DataFrame, by: list[str], **more: pl.Expr) -> pl.DataFrame:
    """Means of links over seeds: `used` and `loss` in per cent, `queue_kb`, `carried` packets."""
    return links.group_by(by, maintain_order=True).agg(
        (100 * pl.col("utilisation")).mean().alias("used"),
        (100 * pl.col("dropped_pkts") / pl.col("arrived_pkts")).mean().alias("loss"),
        (pl.col("qlen_mean_bytes") / 1e3).mean().alias("queue_kb"),
        pl.col("delivered_data_pkts").mean().alias("carried"),
        **more,
    )


def _grid(run: Run, links: tuple[str, ...]) -> list[str]:
    """A table of the run's two axes; cells are utilisation, loss and mean queue of some links."""
    row, column = (axis.column for axis in run.axes)
    named = run.links.filter(pl.col("link").cast(pl.String).is_in(links))
    parts = _means(named, [row, column]).group_by(row, maintain_order=True)
    rows = (
        [str(label), *(_of_link(cell) for cell in part.iter_rows(named=True))]
        for (label,), part in parts
    )
    return table(["", *run.axes[1].labels], rows)


def _of_link(cell: dict[str, Any]) -> str:
    return f"{cell['used']:.1f} %, {_percent(cell['loss'])}, {cell['queue_kb']:.0f}"


def _change(percent: float, digits: int = 0) -> str:
    # Adding a zero leaves no minus before one.
    return f"{round(percent, digits) + 0.0:+.{digits}f} %".replace("-", "−")


def _percent(value: float) -> str:
    text = f"{value:.1f} %"
    return "0" if text == "0.0 %" else text


TABLES: dict[str, Callable[[Run], list[str]]] = {
    "choices": lambda run: _grid(run, ("bottleneck",)),
    "beside": beside,
    "rates": rates,
    "position": position,
    "before": before,
    "quench-loss": lambda run: _grid(run, ("bottleneck",)),
    "two-way": lambda run: _grid(run, ("bottleneck", "back")),
    "gateways": gateways,
    "mixtures": mixtures,
    "attack": attack,
}
FIGURES = {"map": draw_map, "attack": draw_attack}
