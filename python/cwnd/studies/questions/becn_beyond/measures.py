"""Effects of BECN's choices, and BECN beyond its paper: tables of two pages.

They are quench.md and docs/becn.md. `scripts/becn_choices.py --page` measures again
and writes them, and draws the map of docs/becn.md; with names, only these. The tests run a part
again.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import polars as pl

import cwnd
import page_tables
from cwnd.figures import Figure, Image, Panel, Picture
from cwnd.plots import save
from page_tables import head, line

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any

DOCS = Path(__file__).resolve().parents[1] / "docs"
PAGE = DOCS / "reference" / "messengers" / "quench.md"
BEYOND = DOCS / "becn.md"
IMAGES = DOCS / "images" / "becn"
#: Gains beyond this are as blue as can be, per cent.
_LIMIT = 25.0


def choices(overrides: Mapping[str, object] | None = None) -> list[str]:
    """Utilisation, loss and mean queue of flows of one kind: rows of choices by settings."""
    run = cwnd.run(PAGE.parent / "choices.toml", set=dict(overrides or {}))
    return _grid(run, ("bottleneck",), _of_link)


def beside(overrides: Mapping[str, object] | None = None) -> list[str]:
    """Gain in goodput over as many plain flows beside them, per cent, by choice."""
    run = cwnd.run(PAGE.parent / "beside.toml", set=dict(overrides or {}))
    (choice,) = (axis.column for axis in run.axes)
    goodput = pl.col("goodput_bit_s")
    is_plain = pl.col("group").cast(pl.String) == "plain"
    rows = run.flows.group_by(choice, maintain_order=True).agg(
        (100 * (goodput.filter(~is_plain).sum() / goodput.filter(is_plain).sum() - 1)).alias("more")
    )
    lines = [line([str(label), _change(more)]) for label, more in rows.iter_rows()]
    return head(["", "goodput, more than plain flows"]) + lines


def two_way(overrides: Mapping[str, object] | None = None) -> list[str]:
    """Utilisation, loss and mean queue with bulk flows both ways, the mean of both links."""
    return _grid(_run("two-way", overrides), ("bottleneck", "back"), _of_link)


def quench_loss(overrides: Mapping[str, object] | None = None) -> list[str]:
    """Utilisation, loss and mean queue of BECN flows by the share of lost quenches."""
    return _grid(_run("quench-loss", overrides), ("bottleneck",), _of_link)


def gateways(overrides: Mapping[str, object] | None = None) -> list[str]:
    """Goodput of flows over three routers and over one, and what each router loses."""
    run = _run("gateways", overrides)
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


def position(overrides: Mapping[str, object] | None = None) -> list[str]:
    """BECN and ECN by where the bottleneck lies: how long each loop is, and what that gives."""
    run = _run("position", overrides)
    flows, scheme, x = (axis.column for axis in run.axes)
    links = run.links.filter(pl.col("link").cast(pl.String) == "bottleneck")
    means = _means(links, [x, flows, scheme])
    round_trip_ms = run.flows["rtt_base_us"].max() / 1e3
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


def before(overrides: Mapping[str, object] | None = None) -> list[str]:
    """BECN and ECN with a router that quenches before the bottleneck: rows of that one's rate."""
    run = _run("before", overrides)
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


def mixtures(overrides: Mapping[str, object] | None = None) -> list[str]:
    """Gain in goodput of BECN flows over other flows beside them, per cent."""
    run = _run("mixtures", overrides)
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


def rates(overrides: Mapping[str, object] | None = None) -> list[str]:
    """Goodput of BECN over ECN by RTT and rate, and the utilisation of both."""
    found = by_rate(overrides)
    lines = head(["RTT", *(f"{rate} Mbit/s" for rate in found["rate"].unique(maintain_order=True))])
    for (rtt,), part in found.group_by("rtt", maintain_order=True):
        texts = [
            f"{_change(row['gain'], 1)} ({row['ecn']:.0f} → {row['becn']:.0f} %)"
            for row in part.iter_rows(named=True)
        ]
        lines.append(line([f"{rtt} ms", *texts]))
    return lines


def by_rate(overrides: Mapping[str, object] | None = None) -> pl.DataFrame:
    """BECN's `gain` in goodput over ECN, and the utilisation with `ecn` and `becn`, in per cent.

    A row for each `rtt`, ms, and `rate`, Mbit/s, as they are called in the scenario.
    """
    run = _run("map", overrides)
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


def gains() -> tuple[list[str], dict[str, list[float]]]:
    """Rates, and of each RTT the gains at them in per cent, as the page's table has them."""
    table = page_tables.written(BEYOND, _named("rates"))
    names, _, *cells = ([cell.strip() for cell in row.split("|")] for row in table)
    rows = {
        row[1].removesuffix(" ms"): [
            float(cell.partition(" %")[0].replace("−", "-")) for cell in row[2:-1]
        ]
        for row in cells
    }
    return [name.removesuffix(" Mbit/s") for name in names[2:-1]], rows


def draw_map() -> Picture:
    """The gains as a grid with their numbers: blue where BECN carries more than ECN."""
    rates, rows = gains()
    texts = [[_change(gain, 1).removesuffix(" %") for gain in row] for row in rows.values()]
    image = Image(list(rows.values()), _LIMIT, texts, key="BECN's goodput over ECN's (%)")
    panel = Panel([image], ticks=list(enumerate(rates)), y_ticks=list(enumerate(rows)))
    panel.x_label = "Rate of the bottleneck (Mbit/s); a flow for each Mbit/s"
    panel.y_label = "RTT (ms)"
    return Picture([panel], 3.2, 5.2)


#: Columns under each number of flows.
_COMPARED = ("ECN", "BECN", "goodput")

#: Table → the function that measures it, and its page.
TABLES = {
    "choices": (choices, PAGE),
    "beside": (beside, PAGE),
    "rates": (rates, BEYOND),
    "position": (position, BEYOND),
    "before": (before, BEYOND),
    "quench_loss": (quench_loss, BEYOND),
    "two_way": (two_way, BEYOND),
    "gateways": (gateways, BEYOND),
    "mixtures": (mixtures, BEYOND),
}


def _named(table: str) -> str:
    return f"scripts/becn_choices.py: {table}"


def _run(name: str, overrides: Mapping[str, object] | None) -> cwnd.Run:
    return cwnd.run(DOCS / "becn" / f"{name}.toml", set=dict(overrides or {}))


def _means(links: pl.DataFrame, by: list[str], **more: pl.Expr) -> pl.DataFrame:
    """Means of links over seeds: `used` and `loss` in per cent, `queue_kb`, `carried` packets."""
    return links.group_by(by, maintain_order=True).agg(
        (100 * pl.col("utilisation")).mean().alias("used"),
        (100 * pl.col("dropped_pkts") / pl.col("arrived_pkts")).mean().alias("loss"),
        (pl.col("qlen_mean_bytes") / 1e3).mean().alias("queue_kb"),
        pl.col("delivered_data_pkts").mean().alias("carried"),
        **more,
    )


def _grid(
    run: cwnd.Run, links: tuple[str, ...], text: Callable[[dict[str, Any]], str]
) -> list[str]:
    """A table of the run's two axes; cells are what `text` makes of the means of some links."""
    row, column = (axis.column for axis in run.axes)
    named = run.links.filter(pl.col("link").cast(pl.String).is_in(links))
    cells = _means(named, [row, column])
    lines = head(["", *run.axes[1].labels])
    for (label,), part in cells.group_by(row, maintain_order=True):
        lines.append(line([str(label), *(text(cell) for cell in part.iter_rows(named=True))]))
    return lines


def _of_link(cell: dict[str, Any]) -> str:
    return _three(cell["used"], cell["loss"], cell["queue_kb"])


def _three(used: float, loss: float, queue_kb: float) -> str:
    return f"{used:.1f} %, {_percent(loss)}, {queue_kb:.0f}"


def _change(percent: float, digits: int = 0) -> str:
    # Adding a zero leaves no minus before one.
    return f"{round(percent, digits) + 0.0:+.{digits}f} %".replace("-", "−")


def _percent(value: float) -> str:
    text = f"{value:.1f} %"
    return "0" if text == "0.0 %" else text


def main() -> None:
    """Measures the tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", help="of tables; all if none")
    parser.add_argument("--page", action="store_true", help="write them into their pages")
    given = parser.parse_args()
    if unknown := set(given.names) - set(TABLES):
        parser.error(f"there is no {min(unknown)}; there are {', '.join(TABLES)}")
    for name in given.names or TABLES:
        table, page = TABLES[name]
        lines = table()
        sys.stdout.write("\n".join(lines) + "\n\n")
        if given.page:
            page_tables.write(page, _named(name), lines)
    if given.page:
        save(Figure(draw_map()), IMAGES, "map")


if __name__ == "__main__":
    main()
