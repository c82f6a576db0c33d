"""Our results beside those of ns-2, ns-3 and Linux.

Each sixth setting of flows without end runs, and web users beside up to 15 flows; all of them with
`LONG` in the environment.
"""

import itertools
import re

import polars as pl
import pytest
from conftest import IS_LONG
from polars.testing import assert_frame_equal

from cwnd import _core
from cwnd.studies.peers.recorded import (
    endless,
    endless_tables,
    measures,
    ours,
    record_linux,
    rows,
    setting_tables,
    steered,
    transfers,
    trends,
    web,
)
from cwnd.studies.peers.recorded.endless_tables import EXPLANATIONS

#: A few of each kind: users without losses, RED and DropTail, backoff and none, both smallest
#: timeouts; Pareto.
REPLAYED = (64, 67, 69, 70, 71, 74, 76, 79, 82, 83, 97, 104)
#: A few of each kind that take no time: one flow and several, two round trips, one that joins.
STEERED = {
    "ns-2 XCP": (10, 13, 16, 19, 22, 58, 61, 85),
    "ns-2 RCP": (1, 10, 13, 16, 25, 34, 53, 73),
    "ns-2 VCP": (10, 13, 19, 25, 62, 68, 85),
    # Both ways.
    "ns-2 SACK": (1, 4),
}


def recorded(name: str) -> pl.DataFrame:
    return pl.read_csv(rows.DATA / f"ours-{name}.csv", infer_schema_length=None)


def of_endless() -> list[ours.Job]:
    every = [row for row in rows.load_all() if row.by_value]
    step = 1 if IS_LONG else 6
    chosen = [*dict.fromkeys(row.same_setting for row in every)][::step]
    found = endless.jobs(row for row in every if row.same_setting in chosen)
    assert len(found) > 40
    return found


def of_transfers() -> list[ours.Job]:
    chosen = [
        s for s in transfers.settings() if s.row.number in REPLAYED or s.row.table == "ns2-fct.csv"
    ]
    chosen = [s for s in chosen if s.by_value and s.row.cells["rate_mbps"] == "10.0"]
    # Of files that arrive those of SACK, of XCP, of RCP and of VCP.
    assert len(chosen) == len(REPLAYED) + 4
    return [transfers.job(setting) for setting in chosen]


def of_web() -> list[ours.Job]:
    chosen = [s for s in web.settings() if IS_LONG or s.row.int("n_ftp") <= 15]
    assert {s.row.cells["ecn"] for s in chosen} == {"0", "1"}
    return [web.job(setting) for setting in chosen]


def of_steered() -> list[ours.Job]:
    chosen = [
        s
        for s in steered.settings()
        if s.by_value and s.row.number in STEERED[steered.TABLES[s.row.table]]
    ]
    assert len(chosen) == sum(map(len, STEERED.values()))
    return [job for setting in chosen for job in steered.jobs(setting)]


@pytest.mark.parametrize("jobs", [of_endless, of_transfers, of_web, of_steered])
def test_ours_are_as_they_are_recorded(jobs) -> None:
    name = jobs.__name__.removeprefix("of_")
    found = ours.run(jobs())
    if name == "endless":
        found = endless.means(found)
    again = ours.table(found)
    stands = recorded(name).with_columns(pl.col("with").fill_null(""))
    there = stands.join(
        again.select("setting", "with").unique(), on=["setting", "with"], how="semi"
    )
    columns = ["setting", "with"]
    assert_frame_equal(
        there.sort(columns, maintain_order=True),
        again.sort(columns, maintain_order=True),
        check_dtypes=False,
    )


COMPARED = {
    "transfers": measures.of_transfers,
    "web": measures.of_web,
    "steered": measures.of_steered,
}


@pytest.mark.parametrize("name", COMPARED)
def test_settings_that_do_not_hold_are_those_that_are_explained(name: str) -> None:
    found, _ = COMPARED[name](recorded(name))
    failing = {c.setting.key for c in rows.judged(found) if not c.holds}
    assert failing == setting_tables.EXPLAINED[name]


def test_rows_that_do_not_hold_are_those_that_are_explained() -> None:
    found, _ = measures.of_endless(recorded("endless"))
    failing = {c.row.key for c in endless_tables.judged(found) if not c.holds}
    assert failing == {key for explanation in EXPLANATIONS.values() for key in explanation.rows}
    assert not [c.row.key for c in endless_tables.judged(found) if c.missing]


def test_the_figure_has_every_row_that_is_judged_by_value() -> None:
    found, _ = measures.of_endless(recorded("endless"))
    wanted: list[list[tuple[str, bool, float, float]]] = [[], []]
    for each in endless_tables.judged(found):
        theirs, mine = each.theirs, each.ours
        assert mine is not None
        told = rows.TABLES[each.row.table], each.holds
        wanted[0].append((*told, theirs.goodput_mbit_s, mine.goodput_mbit_s))
        delays = (max(of.qdelay_p50_ms, 0.1) for of in (theirs, mine))
        wanted[1].append((*told, *delays))
    for panel, points in zip(endless_tables.draw(found).panels, wanted, strict=True):
        drawn = [
            (line.label, line.marker == "o", x, y)
            for line in panel.lines
            if not line.joined
            for x, y in zip(line.x, line.y, strict=True)
        ]
        assert sorted(drawn) == sorted(points)


@pytest.mark.parametrize(("shape", "mean", "most"), [(1.2, 12, 10_000), (1.4, 30, 1_000_000)])
def test_sizes_are_whole_packets_with_the_mean_of_what_is_rounded_up(
    shape: float, mean: int, most: int
) -> None:
    points = transfers.whole_packets(shape, mean, most)
    assert all(later[1] >= before[1] for before, later in itertools.pairwise(points))
    found = sum(
        (before[0] + later[0]) / 2 * (later[1] - before[1])
        for before, later in itertools.pairwise(points)
    )
    # The mean of a number that is rounded up is the sum of the probabilities of more than 0, 1, …
    least = mean * (shape - 1) / shape
    rounded = sum(min(1.0, (least / n) ** shape) for n in range(1, most)) + 1
    assert found == pytest.approx(rounded, rel=2e-3)
    small = {n: p for n, p in points if n <= transfers.EACH}
    assert all(n == round(n) for n in small)
    assert small[50] == pytest.approx(1 - (least / 50) ** shape)


def test_linux_rows_are_what_their_scenario_asks_for_and_say_how_good_the_router_was() -> None:
    text = (rows.DATA / "linux-testbed.toml").read_text(encoding="utf-8")
    asked = _core.parse(text, name="rows")
    runs = rows.load_runs("linux-testbed.csv")
    assert len(runs) == asked.runs
    # The mapping is the scenario that was recorded, seed by seed.
    ours_there = {}
    for row in rows.load("linux-testbed.csv"):
        for cell in _core.parse(endless.job(row).text, name="rows").cells:
            ours_there[_without_names(cell.resolved)] = row.setting
    there = sorted((row.setting, row.int("seed")) for row in runs)
    assert there == sorted((ours_there[_without_names(c.resolved)], c.seed) for c in asked.cells)
    for row in runs:
        assert row.cells["valid"] == "True"
        assert row.cells["kernel"]
        late = [row.float(name) for name in row.cells if name.endswith("late_max_us")]
        assert len(late) == 2
        assert max(late) <= record_linux.LATEST_US
        measured = [row.float(name) for name in row.cells if name.endswith("_measured")]
        assert len(measured) == 6


def _without_names(resolved: str) -> str:
    return re.sub(r"^(name|description) = .*$", "", resolved, flags=re.MULTILINE)


def test_vegas_and_htcp_have_the_orders_of_ns3_but_those_that_are_explained() -> None:
    found, figures = measures.of_endless(recorded("endless"))
    pairs = trends.orders(found)
    assert len(pairs) > 40
    failing = {(p.more.row.number, p.less.row.number, p.measure) for p in pairs if not p.holds}
    assert failing == {(85, 86, "drops"), (85, 87, "drops"), (86, 88, "drops")}
    # What ns-3's Vegas does at a loss, and what its H-TCP adds, turn them round.
    drops = {key: of.drops for key, (of, *_) in figures.items()}
    for more, less in ((85, 87), (86, 88)):
        vegas = drops[f"ns-3 more {more}", "`loss_beta = 0.8`"]
        assert vegas > drops[f"ns-3 more {less}", "NewReno that adds for each ACK"]


def test_what_makes_a_tail_longer_there_does_so_here() -> None:
    pairs = transfers.orders(measures.of_transfers(recorded("transfers"))[0])
    assert len(pairs) >= 4
    assert all(pair.holds for pair in pairs)


def test_senders_that_begin_with_one_packet_explain_the_medians() -> None:
    found, figures = measures.of_web(recorded("web"))
    for each in found:
        if each.setting.key in setting_tables.EXPLAINED["web"]:
            half = figures[each.setting.key, "half of the sessions begin with one packet"]
            assert not {"median", "90 %"} & {*web.Compared(each.setting, tuple(half)).differs}
