"""Content of round-trip samples, on Linux and in the simulator: docs/explanation/rtt.md.

    rtt_linux.py record [EXPERIMENT…]    # as root: this kernel, docs/rtt/linux.csv
    rtt_linux.py simulate [EXPERIMENT…]  # the simulator beside it, the same file
    rtt_linux.py page                    # tables and the figure

The scenarios are in `studies/papers/dbaimd/linux/chapter5`. A point that is there is not run again.
"""

from __future__ import annotations

import argparse
import itertools
import json
import sys
import tempfile
import tomllib
from pathlib import Path
from typing import TYPE_CHECKING, Any

import polars as pl

import captured_rtt
import cwnd
import page_tables
from cwnd.figures import Figure, Panel, Picture, Rule
from cwnd.results import Estimate
from cwnd.study import across, row_ticks

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

ROOT = Path(__file__).resolve().parents[1]
SCENARIOS = ROOT / "python" / "cwnd" / "studies" / "papers" / "dbaimd" / "linux" / "chapter5"
PAGE = ROOT / "docs" / "explanation" / "rtt.md"
RECORDED = PAGE.with_suffix("") / "linux.csv"
FIGURE = ROOT / "docs" / "images" / "rtt-linux.png"
BOTH = "bottleneck+reverse"
#: Undone reductions, as Linux counts them: all connections of a host together.
UNDONE = ("TCPFullUndo", "TCPPartialUndo", "TCPDSACKUndo", "TCPLossUndo")
COLUMNS = ("experiment", "point", "world", "seed", "group", "what", "value", "kernel")
WORLDS = {"simulator": None, "Linux": "linux"}

Row = tuple[str, str, str, int, str, str, float, str]
#: A flow's group, a quantity of it, and its value.
Value = tuple[str, str, float]


def cheat(run: cwnd.Run, row: Mapping[str, Any], _: Path) -> Iterator[Value]:
    """Shares of what both carry, and what was undone."""
    mine = run.flows.filter(pl.col("run_id") == row["run_id"])
    total = mine["goodput_bit_s"].sum()
    for flow in mine.iter_rows(named=True):
        yield flow["group"], "share", 100 * flow["goodput_bit_s"] / total
        yield flow["group"], "goodput", flow["goodput_bit_s"] / 1e6
        yield flow["group"], "retransmitted", 100 * flow["retrans"] / flow["segments_sent"]
    yield from _undone(row)


def ack_noise(run: cwnd.Run, row: Mapping[str, Any], captured: Path) -> Iterator[Value]:
    """Goodput, backoffs, and what each way of measuring sees beyond the queue, if captured."""
    mine = run.flows.filter(pl.col("run_id") == row["run_id"])
    for flow in mine.iter_rows(named=True):
        yield flow["group"], "goodput", flow["goodput_bit_s"] / 1e6
        minutes = flow["duration_s"] / 60
        yield flow["group"], "backoffs", flow["cwnd_reductions_delay"] / minutes
    if not captured.exists():
        return
    seen = captured_rtt.flows(captured)
    for flow, key in zip(mine.iter_rows(named=True), _senders(seen, mine), strict=True):
        lone = [sample.segments == 1 for sample in seen[key].samples]
        yield flow["group"], "lone ACKs", 100 * sum(lone) / len(lone)
        for way in captured_rtt.WAYS:
            noise = seen[key].noise_ms(way)
            # Where every ACK is of one segment, nothing is seen without these.
            if noise:
                mean, most = captured_rtt.mean_and_95(noise)
                yield flow["group"], f"{way}, mean", mean
                yield flow["group"], f"{way}, 95th", most


def chunks(run: cwnd.Run, row: Mapping[str, Any], captured: Path) -> Iterator[Value]:
    """The saw-tooth of the round trip within 0.2 s, and how many segments go at once."""
    mine = run.flows.filter(pl.col("run_id") == row["run_id"])
    seen = captured_rtt.flows(captured)
    for flow, key in zip(mine.iter_rows(named=True), _senders(seen, mine), strict=True):
        yield flow["group"], "goodput", flow["goodput_bit_s"] / 1e6
        mean, most = captured_rtt.mean_and_95(seen[key].swings_ms(row["warmup_s"]))
        yield flow["group"], "swing, mean", mean
        yield flow["group"], "swing, 95th", most
        at_once = sorted(seen[key].chunks())
        # As a segment meets them.
        yield flow["group"], "chunk", sum(n * n for n in at_once) / sum(at_once)
        yield flow["group"], "largest chunk", at_once[-1]


#: Experiments whose packets are captured, each with its world.
CAPTURED = (("ack_noise", "Linux"), ("chunks", "Linux"))
#: Experiments without runs of the simulator, which the page shows elsewhere.
ONLY_ON_LINUX = ("chunks",)
#: Experiment → the function that reads its values from a run.
EXPERIMENTS: dict[str, Callable[[cwnd.Run, Mapping[str, Any], Path], Iterator[Value]]] = {
    "cheat": cheat,
    "ack_noise": ack_noise,
    "chunks": chunks,
}


def _senders(
    seen: Mapping[tuple[bytes, int], captured_rtt.Flow], flows: pl.DataFrame
) -> list[tuple[bytes, int]]:
    """Senders of the capture in the order of the table: addresses rise with the groups."""
    order = sorted(seen)
    if len(order) != flows.height:
        raise ValueError(f"{len(order)} senders in the capture, {flows.height} flows")
    return order


def _undone(row: Mapping[str, Any]) -> Iterator[Value]:
    facts = json.loads(row.get("facts") or "{}")
    counters = facts.get("tcp_counters", {}).get("left")
    if counters is not None:
        yield "*", "undone", float(sum(counters.get(name, 0) for name in UNDONE))


def points(experiment: str) -> Iterator[tuple[str, dict[str, object]]]:
    """The points of an experiment's sweep: their labels, and overrides that leave just that one."""
    text = (SCENARIOS / f"{experiment}.toml").read_text(encoding="utf-8")
    axes = tomllib.loads(text)["sweep"]["axis"]
    for chosen in itertools.product(*(range(len(axis["values"])) for axis in axes.values())):
        overrides: dict[str, object] = {}
        labels = []
        for (name, axis), index in zip(axes.items(), chosen, strict=True):
            labels.append(axis["labels"][index])
            overrides[f"sweep.axis.{name}.values"] = [axis["values"][index]]
            overrides[f"sweep.axis.{name}.labels"] = [axis["labels"][index]]
        yield "; ".join(labels), overrides


def measure(experiment: str, label: str, overrides: Mapping[str, object], world: str) -> list[Row]:
    """Runs a point in a world; invalid runs do not count."""
    with tempfile.TemporaryDirectory() as place:
        run = cwnd.run(
            SCENARIOS / f"{experiment}.toml",
            set=dict(overrides),
            on=WORLDS[world],
            threads=2 if world == "Linux" else 1,
            pcap=BOTH if (experiment, world) in CAPTURED else (),
            pcap_dir=place,
        )
        rows: list[Row] = []
        for row in run.runs.iter_rows(named=True):
            facts = json.loads(row.get("facts") or "{}")
            if not facts.get("valid", True):
                sys.stderr.write(f"not valid: {label}, {row['seed']}: {facts['flaws']}\n")
                continue
            file = Path(place) / row["run_id"] / f"{BOTH}.pcapng"
            rows.extend(
                (experiment, label, world, row["seed"], *value, facts.get("kernel", ""))
                for value in EXPERIMENTS[experiment](run, row, file)
            )
    return rows


def record(world: str, names: Sequence[str]) -> None:
    """Measures what is not there yet; each point is safe when it is done."""
    for experiment in names or EXPERIMENTS:
        if experiment in ONLY_ON_LINUX and world != "Linux":
            continue
        for label, overrides in points(experiment):
            there = recorded()
            if there.filter(
                pl.col("experiment") == experiment,
                pl.col("point") == label,
                pl.col("world") == world,
            ).height:
                continue
            rows = measure(experiment, label, overrides, world)
            schema = there.schema
            fresh = pl.DataFrame(rows, schema=schema, orient="row")
            order = ["experiment", "point", "world", "seed", "group", "what"]
            RECORDED.parent.mkdir(exist_ok=True)
            table = pl.concat([there, fresh]).with_columns(pl.col("value").round(4))
            table.sort(order, maintain_order=True).write_csv(RECORDED)
            sys.stderr.write(f"{world}, {experiment}: {label}\n")


def recorded() -> pl.DataFrame:
    """All that was measured, a quantity of a run in each row."""
    types = {name: {"seed": pl.Int64, "value": pl.Float64}.get(name, pl.String) for name in COLUMNS}
    if not RECORDED.exists():
        return pl.DataFrame(schema=types)
    return pl.read_csv(RECORDED, schema=types).with_columns(pl.col("kernel").fill_null(""))


#: An experiment, a point of it, and a world.
Place = tuple[str, str, str]


def of(rows: pl.DataFrame, place: Place, group: str, what: str) -> list[float]:
    """The values of a quantity, one a seed."""
    experiment, point, world = place
    found = rows.filter(
        pl.col("experiment") == experiment,
        pl.col("point") == point,
        pl.col("world") == world,
        pl.col("group") == group,
        pl.col("what") == what,
    )
    return found.sort("seed")["value"].to_list()


def shown(values: Sequence[float], digits: int = 1) -> str:
    """A mean with its 95 % confidence interval, or what there is."""
    found = Estimate.of(values)
    return "–" if found is None else page_tables.interval(found.mean, found.half_width, digits)


def _cheat_table(rows: pl.DataFrame) -> list[str]:
    found = page_tables.head(
        ["senders", "share, simulator", "share, Linux", "retransmitted, Linux", "undone, Linux"]
    )
    for label, _ in points("cheat"):
        places = [("cheat", label, world) for world in WORLDS]
        retransmitted = (
            shown(of(rows, places[1], group, "retransmitted")) for group in ("cheat", "honest")
        )
        cells = [
            label,
            *(shown(of(rows, place, "cheat", "share"), 0) for place in places),
            " / ".join(retransmitted),
            shown(of(rows, places[1], "*", "undone"), 0),
        ]
        found.append(page_tables.line(cells))
    return found


def _noise_table(rows: pl.DataFrame) -> list[str]:
    found = page_tables.head(
        ["τ0; it goes by", "goodput", "backoffs a minute", "lone ACKs, %", *captured_rtt.WAYS]
    )
    for label, _ in points("ack_noise"):
        places = [("ack_noise", label, world) for world in WORLDS]
        cells = [label]
        for what, digits in (("goodput", 2), ("backoffs", 0)):
            cells.append(" / ".join(_mean(of(rows, one, "far", what), digits) for one in places))
        cells.append(_mean(of(rows, places[1], "far", "lone ACKs"), 0))
        for way in captured_rtt.WAYS:
            pair = (of(rows, places[1], "far", f"{way}, {what}") for what in ("mean", "95th"))
            cells.append(", ".join(_mean(values, 1) for values in pair))
        found.append(page_tables.line(cells))
    return found


def _chunk_table(rows: pl.DataFrame) -> list[str]:
    found = page_tables.head(
        ["controller; chunks", "goodput", "swing", "swing, 95th", "segments at once", "at most"]
    )
    for label, _ in points("chunks"):
        place = ("chunks", label, "Linux")
        cells = [label]
        for what, digits in (
            ("goodput", 2),
            ("swing, mean", 1),
            ("swing, 95th", 1),
            ("chunk", 1),
            ("largest chunk", 0),
        ):
            cells.append(_mean(of(rows, place, "main", what), digits))
        found.append(page_tables.line(cells))
    return found


def tables(rows: pl.DataFrame) -> dict[str, list[str]]:
    """The tables of the page, by their names."""
    return {
        "cheat": _cheat_table(rows),
        "ack_noise": _noise_table(rows),
        "chunks": _chunk_table(rows),
    }


def _mean(values: Sequence[float], digits: int) -> str:
    return f"{sum(values) / len(values):.{digits}f}" if values else "–"


def page() -> None:
    """Writes the tables, and draws the figure."""
    rows = recorded()
    for name, lines in tables(rows).items():
        page_tables.write(PAGE, f"scripts/rtt_linux.py {name}", lines)
    Figure(draw(rows)).save(FIGURE)


#: Panels of the figure: an experiment, a group of flows, a quantity of it, the label of its axis.
PANELS = (
    ("cheat", "cheat", "share", "Share of the flow whose receiver cheats (%)"),
    ("ack_noise", "far", "backoffs", "Backoffs for delay a minute of the far flow"),
    ("chunks", "main", "swing, mean", "Swing of the round trip within 0.2 s (ms)"),
)


def draw(rows: pl.DataFrame) -> Picture:
    """Draws shares of misbehaving receivers, noise by delayed ACKs, and the saw-tooth of chunks."""
    panels = [_panel(rows, *asked) for asked in PANELS]
    share = panels[0]
    share.marks, share.x_limits = [Rule(x=50), *share.marks], (0, 100)
    heights = [len(panel.y_ticks or ()) for panel in panels]
    return Picture(panels, 6.5, 5.6, heights=heights, shared_x="none", shared_y="none")


def _panel(rows: pl.DataFrame, experiment: str, group: str, what: str, text: str) -> Panel:
    """Means over seeds with their intervals in both worlds; the first point is uppermost."""
    labels = [label for label, _ in points(experiment)]
    marks = []
    for index, world in enumerate(WORLDS):
        columns = [of(rows, (experiment, label, world), group, what) for label in labels]
        if any(columns):
            marks.append(across(columns, index, world, shift=0.3 * index))
    return Panel(marks, x_label=text, y_ticks=row_ticks(labels), x_limits=(0, None))


def main() -> int:
    """The command."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("what", choices=["record", "simulate", "page"])
    parser.add_argument("experiments", nargs="*", choices=[[], *EXPERIMENTS])
    asked = parser.parse_args()
    if asked.what == "page":
        page()
    else:
        record("Linux" if asked.what == "record" else "simulator", asked.experiments)
    return 0


if __name__ == "__main__":
    sys.exit(main())
