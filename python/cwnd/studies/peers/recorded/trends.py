"""Orders of ns-3's Vegas and H-TCP: settings with longer queues and more drops, there and here."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from itertools import permutations
from typing import TYPE_CHECKING

import tomli_w

from cwnd.studies.peers.recorded.endless import measure
from cwnd.studies.peers.recorded.ours import Job
from cwnd.studies.peers.recorded.scenarios import scenario

if TYPE_CHECKING:
    from collections.abc import Iterable

    from cwnd.studies.peers.recorded.endless import Comparison
    from cwnd.studies.peers.recorded.ours import Ours
    from cwnd.studies.peers.recorded.rows import Measures, Row
    from cwnd.studies.peers.recorded.scenarios import Table

TABLE = "ns3-extra-trend.csv"
CONTROLLERS = ("TcpVegas", "TcpHtcp")
#: Two settings are beside each other if they differ in one of these.
AXES = ("cc", "aqm", "n_flows")
#: Measure → its name, and the least difference in ns-3 that counts, if it is `CLEARLY`, too.
MEASURES = {"qdelay_p50_ms": ("median delay", 1.0), "drops": ("drops", 25.0)}
CLEARLY = 1.2

#: Controller that `EXPERIMENTS` puts in place of a row's: NewReno as in ns-3.
NS3_RENO: Table = {
    "kind": "newreno",
    "increase": "per-ack-whole-bytes",
    "grow_in_cwr": False,
    "least_window_ecn": 2,
}
EXPERIMENTS: dict[int, tuple[tuple[str, Table], ...]] = {
    50: (("`exit = eighth`", {"exit": "eighth"}),),
    85: (
        ("`loss_beta = 0.5`", {"loss_beta": 0.5}),
        ("`loss_beta = 0.8`", {"loss_beta": 0.8}),
    ),
    86: (("`loss_beta = 0.8`", {"loss_beta": 0.8}),),
    87: (("NewReno that adds for each ACK", NS3_RENO),),
    88: (("NewReno that adds for each ACK", NS3_RENO),),
}


@dataclass(frozen=True)
class Order:
    """Two settings of which one has more of a measure in ns-3."""

    more: Comparison
    less: Comparison
    measure: str

    @property
    def holds(self) -> bool:
        """`True` if that one has more in our runs, too."""
        return _value(self.more.ours, self.measure) > _value(self.less.ours, self.measure)

    @property
    def text(self) -> str:
        """Returns the order in words, for the page."""
        name, _ = MEASURES[self.measure]
        values = [
            f"{_value(c.ours, self.measure):.{1 if self.measure != 'drops' else 0}f} / "
            f"{_value(c.theirs, self.measure):.{1 if self.measure != 'drops' else 0}f}"
            for c in (self.more, self.less)
        ]
        rows = " and ".join(str(c.row.number) for c in (self.more, self.less))
        return f"rows {rows}, {name}: {values[0]} and {values[1]}"


def _value(measures: Measures | None, name: str) -> float:
    assert measures is not None
    return float(getattr(measures, name))


def orders(found: Iterable[Comparison]) -> list[Order]:
    """All pairs of neighbours that differ beyond doubt there."""
    here = [c for c in found if c.row.table == TABLE and c.row.cells["cc"] in CONTROLLERS]
    pairs = []
    for more, less in permutations(here, 2):
        if sum(more.row.cells[axis] != less.row.cells[axis] for axis in AXES) != 1:
            continue
        for name, (_, floor) in MEASURES.items():
            first, second = _value(more.theirs, name), _value(less.theirs, name)
            if first - second >= max(floor, (CLEARLY - 1) * second):
                pairs.append(Order(more, less, name))
    return pairs


def lines(found: list[Comparison]) -> list[str]:
    """Counts the orders that are theirs, and lists the others."""
    pairs = orders(found)
    failing = [pair for pair in pairs if not pair.holds]
    return [
        f"Of {len(pairs)} pairs that differ there by {CLEARLY - 1:.0%} or more, and by 1 ms or 25"
        f" drops, {len(pairs) - len(failing)} do so here. The others, ours / theirs:",
        "",
        *(f"- {pair.text}" for pair in failing),
    ]


def experiments(found: list[Comparison], figures: Ours[Measures]) -> list[str]:
    """Table of rows with other controllers."""
    rows = [
        "| row | setting | with | goodput Mbit/s | median delay ms | drops |",
        "|---|---|---|---|---|---|",
    ]
    by_number = {c.row.number: c for c in found if c.row.table == TABLE}
    for number, changes in EXPERIMENTS.items():
        here = by_number[number]
        rows.append(_line(here, "the mapping", here.ours))
        rows += [_line(here, said, figures[here.row.key, said][0]) for said, _ in changes]
    return rows


def jobs(rows: Iterable[Row]) -> list[Job]:
    """Jobs of the experiments."""
    by_number = {row.number: row for row in rows if row.table == TABLE}
    return [
        _job(by_number[number], said, changed)
        for number, changes in EXPERIMENTS.items()
        for said, changed in changes
    ]


def _job(row: Row, said: str, changed: Table) -> Job:
    """The job of a row with another controller, or another parameter of its own."""
    table = scenario(row)
    main = table["flow"]["main"]
    main["controller"] = changed if "kind" in changed else main["controller"] | changed
    return Job(row.key, tomli_w.dumps(table), partial(measure, median_over_time=False), said)


def _line(here: Comparison, said: str, ours: Measures | None) -> str:
    pairs = (
        f"{_value(ours, name):.{digits}f} / {_value(here.theirs, name):.{digits}f}"
        for name, digits in (("goodput_mbit_s", 2), ("qdelay_p50_ms", 1), ("drops", 0))
    )
    return f"| {here.row.number} | {here.row.setting} | {said} | {' | '.join(pairs)} |"
