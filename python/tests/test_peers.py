"""Our results beside those of ns-2, ns-3 and Linux.

Each third setting runs, all of them with `LONG` in the environment; `make docs` runs all.
"""

import ast
import itertools
import os
import re
from pathlib import Path

import pytest
from peers.explain import EXPLANATIONS
from peers.judge import Comparison, compare, job
from peers.page import draw, fingerprint
from peers.rows import DATA, TABLES, load, load_all, load_runs

from cwnd import _core
from peers import explicit, explicit_page, transfers, transfers_page, trends, web, web_page

PAGE = Path(__file__).resolve().parents[2] / "docs" / "peers.md"


@pytest.fixture(scope="module")
def judged() -> list[Comparison]:
    rows = [row for row in load_all() if row.by_value]
    step = 1 if os.environ.get("LONG") else 3
    settings = [*dict.fromkeys(row.same_setting for row in rows)][::step]
    found = compare(row for row in rows if row.same_setting in settings)
    assert len(found) > 100
    assert not [c.row.key for c in found if c.missing]
    return found


def test_the_rows_that_do_not_hold_are_those_that_are_explained(judged: list[Comparison]) -> None:
    explained = {key for explanation in EXPLANATIONS for key in explanation.rows}
    keys = {c.row.key for c in judged}
    assert {c.row.key for c in judged if not c.holds} == explained & keys
    # What is explained is a row that is judged.
    assert explained <= {row.key for row in load_all() if row.by_value}


def test_the_page_says_what_the_runs_give(judged: list[Comparison]) -> None:
    page = PAGE.read_text(encoding="utf-8")
    assert f"inputs {fingerprint()} " in page, "docs/peers.md is stale; run make docs"
    rows = page[page.index("## Every row") :]
    judged_there = [row for row in load_all() if row.by_value]
    verdicts = re.findall(r"^\| \d+ \|.*\| (holds|differs: .*) \|$", rows, re.MULTILINE)
    told = dict(zip((row.key for row in judged_there), verdicts, strict=True))
    for each in judged:
        verdict = "holds" if each.holds else "differs: " + ", ".join(each.differs)
        assert told[each.row.key] == verdict, each.row.key


def test_the_figure_has_every_row_that_is_judged_by_value(judged: list[Comparison]) -> None:
    wanted: list[list[tuple[str, bool, float, float]]] = [[], []]
    for each in judged:
        theirs, ours = each.theirs, each.ours
        assert ours is not None
        told = TABLES[each.row.table], each.holds
        wanted[0].append((*told, theirs.goodput_mbit_s, ours.goodput_mbit_s))
        delays = (max(of.qdelay_p50_ms, 0.1) for of in (theirs, ours))
        wanted[1].append((*told, *delays))
    for panel, rows in zip(draw(judged).panels, wanted, strict=True):
        points = [
            (line.label, line.marker == "o", x, y)
            for line in panel.lines
            if not line.joined
            for x, y in zip(line.x, line.y, strict=True)
        ]
        assert sorted(points) == sorted(rows)


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
    asked = _core.parse((DATA / "linux-testbed.toml").read_text(encoding="utf-8"), name="rows")
    runs = load_runs("linux-testbed.jsonl")
    assert len(runs) == asked.runs
    # The mapping is the scenario that was recorded, seed by seed.
    ours = {}
    for row in load("linux-testbed.jsonl"):
        for cell in _core.parse(job(row).text, name="rows").cells:
            ours[_without_names(cell.resolved)] = row.setting
    there = sorted((row.setting, row.int("seed")) for row in runs)
    assert there == sorted((ours[_without_names(c.resolved)], c.seed) for c in asked.cells)
    for row in runs:
        cells = {name: ast.literal_eval(row.cells[name]) for name in ("late_us", "calibration")}
        assert row.cells["valid"] == "True"
        assert row.cells["kernel"]
        assert all(late["max"] <= 20_000 for late in cells["late_us"].values())
        assert len(cells["calibration"]) == 6


def _without_names(resolved: str) -> str:
    return re.sub(r"^(name|description) = .*$", "", resolved, flags=re.MULTILINE)


def test_vegas_and_htcp_have_the_orders_of_ns3_but_those_that_are_explained() -> None:
    rows = [row for row in load_all() if row.table == trends.TABLE]
    pairs = trends.orders(compare(r for r in rows if r.cells["cc"] in trends.CONTROLLERS))
    assert len(pairs) > 40
    failing = {(p.more.row.number, p.less.row.number, p.measure) for p in pairs if not p.holds}
    assert failing == {(85, 86, "drops"), (85, 87, "drops"), (86, 88, "drops")}
    # What ns-3's Vegas does at a loss, and what its H-TCP adds, turn them round.
    here = {p.more.row.number: p.more for p in pairs} | {p.less.row.number: p.less for p in pairs}
    for more, less in ((85, 87), (86, 88)):
        vegas = trends.measured(here[more], {"loss_beta": 0.8})
        assert vegas.drops > trends.measured(here[less], trends.NS3_RENO).drops


#: A few of each kind: users who lose nothing, RED and DropTail, backoff and none, both smallest
#: timeouts; Pareto.
REPLAYED = (64, 67, 69, 70, 71, 74, 76, 79, 82, 83, 97, 104)


@pytest.fixture(scope="module")
def fetched() -> list[transfers.Compared]:
    chosen = [
        s for s in transfers.settings() if s.row.number in REPLAYED or s.row.table == "ns2-fct.csv"
    ]
    return transfers.compare(s for s in chosen if s.by_value and s.row.cells["rate_mbps"] == "10.0")


def test_transfers_that_do_not_hold_are_those_that_are_explained(
    fetched: list[transfers.Compared],
) -> None:
    # Of files that arrive those of SACK, of XCP, of RCP and of VCP.
    assert len(fetched) == len(REPLAYED) + 4
    keys = {c.setting.key for c in fetched}
    explained = keys & transfers_page.EXPLANATIONS.keys()
    assert {c.setting.key for c in fetched if not c.holds} == explained


def test_what_makes_a_tail_longer_there_does_so_here(fetched: list[transfers.Compared]) -> None:
    pairs = transfers.orders(fetched)
    assert len(pairs) >= 4
    assert all(pair.holds for pair in pairs)


def test_the_page_says_of_transfers_what_the_runs_give(fetched: list[transfers.Compared]) -> None:
    page = PAGE.read_text(encoding="utf-8")
    for each in fetched:
        line = next(
            line
            for line in page[page.index("## Transfers") :].splitlines()
            if line.startswith(f"| {each.setting.numbers} | {each.setting.text} | ")
        )
        assert line.endswith(f"| {transfers_page.verdict(each)} |"), line


@pytest.fixture(scope="module")
def browsed() -> list[web.Compared]:
    return web.compare(web.settings())


def test_web_users_that_do_not_hold_are_those_that_are_explained(
    browsed: list[web.Compared],
) -> None:
    assert len(browsed) == 6
    assert {c.setting.key for c in browsed if not c.holds} == web_page.EXPLANATIONS.keys()


def test_the_page_says_of_web_users_what_the_runs_give(browsed: list[web.Compared]) -> None:
    page = PAGE.read_text(encoding="utf-8")
    assert "\n".join(web_page.table(browsed)) in page


def test_senders_that_begin_with_one_packet_explain_the_medians() -> None:
    most = [s for s in web.settings() if s.key in web_page.EXPLANATIONS]
    tables = [web.beginning_with_one(0.5, web.scenario(setting)) for setting in most]
    for setting, ours in zip(most, web.run_all(tables), strict=True):
        found = web.Compared(setting, tuple(ours)).differs
        assert not {"median", "90 %"} & {*found}, setting.key


#: A few of each kind that take no time: one flow and several, two round trips, one that joins.
STEERED = {
    "ns-2 XCP": (10, 13, 16, 19, 22, 58, 61, 85),
    "ns-2 RCP": (1, 10, 13, 16, 25, 34, 53, 73),
    "ns-2 VCP": (10, 13, 19, 25, 62, 68, 85),
    # Both ways.
    "ns-2 SACK": (1, 4),
}


@pytest.fixture(scope="module")
def steered() -> list[explicit.Compared]:
    chosen = [
        s
        for s in explicit.settings()
        if s.by_value and s.row.number in STEERED[explicit.TABLES[s.row.table]]
    ]
    return explicit.compare(chosen)


def test_steered_senders_that_do_not_hold_are_those_that_are_explained(
    steered: list[explicit.Compared],
) -> None:
    assert len(steered) == sum(map(len, STEERED.values()))
    explained = {key for keys, _, _ in explicit_page.EXPLANATIONS for key in keys}
    keys = {c.setting.key for c in steered}
    assert {c.setting.key for c in steered if not c.holds} == explained & keys


def test_the_page_says_of_steered_senders_what_the_runs_give(
    steered: list[explicit.Compared],
) -> None:
    page = PAGE.read_text(encoding="utf-8")
    for each in steered:
        table = page[page.index(f"### {explicit.TABLES[each.setting.row.table]} (`") :]
        start = f"| {each.setting.numbers} | {each.setting.text} | "
        line = next(line for line in table.splitlines() if line.startswith(start))
        assert line.endswith(f"| {explicit_page.verdict(each)} |"), line
