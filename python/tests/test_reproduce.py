"""Papers reproduced: claims as data, the numbers they come down to, verdicts."""

from __future__ import annotations

import json
import shutil
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import cwnd
from cwnd import InputError, ScenarioError, study
from cwnd.models import utilisation
from cwnd.studies.papers.abe.figures import FIGURES
from cwnd.study import registry
from cwnd.study.claims import Check, Counts, Outcome, Reading, verdict_of, with_interval
from cwnd.study.format import Product, read
from cwnd.study.measures import MEASURES, convergence_s, measure

if TYPE_CHECKING:
    from collections.abc import Callable

#: One flow, two RTTs, two factors, two seeds: small enough for a test.
SCENARIO = cwnd.Scenario(
    name="small",
    run={"duration": "5 s", "sample": "100 ms"},
    dumbbell={"rate": "5 Mbit/s", "queue": "codel"},
    flow={
        "main": {
            "rtt": "100 ms",
            "start": "uniform(0 s, 100 ms)",
            "controller": {"kind": "newreno", "preset": "paper"},
            "endpoint": {"preset": "linux", "ecn": True},
        }
    },
    sweep={
        "repeat": 2,
        "axis": {
            "rtt": {"path": "flow.main.rtt", "values": ["20 ms", "160 ms"]},
            "beta_ecn": {"path": "flow.main.controller.beta_ecn", "values": [0.5, 0.9]},
        },
    },
)


@pytest.fixture(scope="module")
def results() -> dict[str, cwnd.Run]:
    return {"small": cwnd.run(SCENARIO)}


def goodput(run: cwnd.Run, rtt: str, beta_ecn: str) -> list[float]:
    rows = run.per_run()
    return [
        row["goodput_bit_s"] / 1e6
        for row in rows.iter_rows(named=True)
        if row["rtt"] == rtt and row["beta_ecn"] == beta_ecn
    ]


@pytest.mark.parametrize("name", study.papers())
def test_every_claim_of_a_paper_names_a_measure_and_scenarios_that_are_there(name: str) -> None:
    paper = study.paper(name)
    own = registry.functions(paper, "MEASURES")
    assert not {*own} & {*MEASURES}, "a name is one measure"
    for claim in paper.claims:
        assert all(paper.scenario(figure).is_file() for figure in claim.figures)
        for check in claim.checks:
            assert measure(check.measure, own)
            assert all(measure(reading.measure, own) for reading in check.readings)


def test_all_claims_are_there() -> None:
    ids = {name: [claim.id for claim in study.paper(name).claims] for name in study.papers()}
    assert ids["abe"] == [f"A{i}" for i in range(1, 11)]
    figures = {figure for claim in study.paper("abe").claims for figure in claim.figures}
    assert figures == set(FIGURES) == {*(f"fig{i:02d}" for i in range(1, 13)), "flows"}
    assert ids["becn"] == [f"B{i}" for i in range(1, 6)]
    becn = {figure for claim in study.paper("becn").claims for figure in claim.figures}
    assert becn == {*(f"fig{i:02d}" for i in range(2, 20)), "readings"}
    assert ids["bmcc"] == [f"M{i}" for i in range(1, 13)]
    assert ids["dbaimd"] == [f"D{i}" for i in range(1, 17)]


@pytest.mark.parametrize("name", study.papers())
def test_a_claim_that_does_not_hold_says_why_in_a_line(name: str) -> None:
    paper = study.paper(name)
    page = (paper.folder / "page.md").read_text(encoding="utf-8")
    failed = [claim for claim in paper.claims if f"## {claim.id}: **" in page]
    assert [claim.id for claim in failed] == [claim.id for claim in paper.claims if claim.reason]
    reasons = {claim.id: " ".join(claim.reason.split()) for claim in failed}
    assert all(f"\n- {name}: {reason}\n" in page for name, reason in reasons.items())
    assert all(len(reason) <= 160 for reason in reasons.values())


#: Numbers of each paper that were listed on 26 November 2026.
FIXED = {"abe": 76, "becn": 35, "bmcc": 105, "dbaimd": 61, "tcpstar": 64}


@pytest.mark.parametrize("name", study.papers())
def test_the_numbers_with_a_fixed_id_are_all_counted(name: str) -> None:
    paper = study.paper(name)
    checks = [check for claim in paper.claims for check in claim.checks]
    kept = [each.id for each in checks if not (each.added or each.beyond)]
    assert len({*kept, *paper.dropped}) == FIXED[name]


def edited(tmp_path: Path, old: str, new: str) -> Path:
    """Returns a copy of ABE's folder, with a text of its `study.toml` replaced once."""
    folder = Path(shutil.copytree(study.paper("abe").folder, tmp_path / "abe"))
    file = folder / "study.toml"
    file.write_text(file.read_text().replace(old, new, 1))
    return folder


@pytest.mark.parametrize(
    ("old", "new", "line"),
    [
        ("uses the whole link", "uses half of the link", "*Over DropTail a flow uses half"),
        ("tolerance = 2.0", "tolerance = 1.0", "| A1.1 | largest distance between simulation"),
        ("Our utilisation is within", "It is within", "It is within"),
        ("the buffer. Lines are", "its buffer. Lines are", "**Fig. 1.** Throughput"),
        ('"ten flows in all"', '"nine flows in all"', "| | other reading: nine flows"),
    ],
)
def test_a_page_of_other_claims_is_a_fault(tmp_path: Path, old: str, new: str, line: str) -> None:
    folder = edited(tmp_path, old, new)
    (fault, *_) = study.faults(study.study(folder))
    assert fault.startswith(f"the page has no line {line}")


def test_a_change_and_a_gain_are_taken_seed_by_seed(results: dict[str, cwnd.Run]) -> None:
    run = results["small"]
    small, large = goodput(run, "160 ms", "0.5"), goodput(run, "160 ms", "0.9")
    point, base = {"rtt": "160 ms", "beta_ecn": "0.9"}, {"rtt": "160 ms", "beta_ecn": "0.5"}
    change = measure("change")(results, "small", "goodput", **{"of": point, "from": base})
    gain = measure("gain")(results, "small", "goodput", of=point, over=base)
    assert change == pytest.approx([b - a for a, b in zip(small, large, strict=True)])
    assert gain == pytest.approx([100 * (b / a - 1) for a, b in zip(small, large, strict=True)])


def test_the_extremes_along_an_axis_are_those_of_its_labels(results: dict[str, cwnd.Run]) -> None:
    run = results["small"]
    both = list(zip(goodput(run, "20 ms", "0.5"), goodput(run, "20 ms", "0.9"), strict=True))
    arguments = {"of": {"rtt": "20 ms"}, "along": "beta_ecn"}
    least = measure("least")(results, "small", "goodput", **arguments)
    most = measure("most")(results, "small", "goodput", **arguments)
    step = measure("least_step")(results, "small", "goodput", **arguments)
    assert least == pytest.approx([min(pair) for pair in both])
    assert most == pytest.approx([max(pair) for pair in both])
    assert step == pytest.approx([b - a for a, b in both])


def test_the_window_is_counted_below_the_bdp_from_the_first_reduction_on(
    results: dict[str, cwnd.Run],
) -> None:
    # Everything is below ten times the BDP and nothing below a thousandth of it.
    points = {
        "of": {"rtt": "160 ms", "beta_ecn": "0.9"},
        "from": {"rtt": "160 ms", "beta_ecn": "0.9"},
    }
    count = measure("change_of_rounds_below_bdp")
    assert count(results, "small", share=10.0, **points) == [0.0, 0.0]
    from cwnd.study.measures import _rounds_below_bdp

    run = results["small"]
    everything = _rounds_below_bdp(run, points["of"], 10.0)
    nothing = _rounds_below_bdp(run, points["of"], 0.001)
    assert set(nothing.values()) == {0.0}
    # 5 s are 31 round trips of 160 ms, less slow start.
    assert all(15 < rounds < 31.25 for rounds in everything.values())


def test_the_distance_from_the_saw_tooth_is_the_largest() -> None:
    scenario = cwnd.Scenario(
        name="fifo",
        run={"duration": "30 s", "warmup": "10 s", "sample": None},
        dumbbell={"rate": "5 Mbit/s"},
        flow={"main": {"rtt": "50 ms", "controller": {"kind": "newreno", "base": "cwnd"}}},
        sweep={
            "axis": {
                "buffer": {"path": "dumbbell.queue.limit", "values": ["0.2 BDP", "1.5 BDP"]},
                "beta": {"path": "flow.main.controller.beta", "values": [0.5, 0.8]},
            }
        },
    )
    run = cwnd.run(scenario)
    far = [
        100 * abs(row["utilisation"] - utilisation(row["beta_value"], row["buffer_BDP"]))
        for row in run.per_run().iter_rows(named=True)
    ]
    columns = {"buffer": "buffer_BDP", "beta": "beta_value"}
    assert measure("distance_from_sawtooth")({"f": run}, "f", **columns) == [max(far)]
    # eq. 2 holds for 1.5 BDP with both factors, and for 0.2 BDP with neither.
    full = [
        100 * row["utilisation"]
        for row in run.per_run().iter_rows(named=True)
        if row["buffer_BDP"] > 1
    ]
    assert measure("utilisation_where_full")({"f": run}, "f", **columns) == [min(full)]


def check(kind: Any, **keys: Any) -> Check:
    return Check("T1.1", "what", kind, "%", "gain", {}, **keys)


@pytest.mark.parametrize(
    ("values", "verdict"),
    [
        ([23.0, 24.0, 25.0], "holds"),
        ([15.5, 16.5, 17.0], "holds"),  # the interval leaves the band, the mean does not
        ([14.0, 24.0, 34.0], "undecided"),  # an interval of 50 in a band of 16
        ([31.0, 33.0, 34.0], "undecided"),  # the mean is outside, the interval not wholly
        ([33.0, 33.1, 33.2], "contradicted"),
        ([15.0, 15.1, 15.2], "contradicted"),
        ([24.0], "undecided"),
        ([], "undecided"),
    ],
)
def test_a_value_is_judged_by_its_mean_and_the_width_of_its_interval(
    values: list[float], verdict: str
) -> None:
    assert check("value", paper=24.0, tolerance=8.0).judge(values).verdict == verdict
    assert check("value", paper=(16.0, 32.0)).judge(values).verdict == verdict


@pytest.mark.parametrize(
    ("values", "verdict"),
    [
        ([1.0, 1.1, 0.9], "holds"),
        ([3.0, -1.0, 1.0], "undecided"),
        ([-1.0, -1.1, -0.9], "contradicted"),
        ([0.0, 0.0], "undecided"),
        ([1.0], "undecided"),
    ],
)
def test_an_order_is_judged_by_the_interval_of_the_differences(
    values: list[float], verdict: str
) -> None:
    assert check("order").judge(values).verdict == verdict


@pytest.mark.parametrize(
    ("values", "verdict", "outside"),
    [
        ([1.0, 1.1, 1.2, 2.1], "undecided", 0.25),
        ([1.0, 1.1, 1.2, 1.3], "holds", 0.0),
        ([1.0] * 99 + [2.1], "holds", 0.01),  # one seed of 100 breaks it
        ([2.5, 2.6, 2.7], "contradicted", 1.0),
        ([1.0], "undecided", 0.0),
    ],
)
def test_a_bound_is_judged_by_the_interval_of_the_mean(
    values: list[float], verdict: str, outside: float
) -> None:
    found = check("bound", at_most=2.0).judge(values)
    assert (found.verdict, found.outside) == (verdict, outside)
    shown = f"{100 * outside:.0f} % of seeds outside"
    assert (shown in found.text) == (outside > 0)


def test_one_run_decides_where_nothing_varies_with_the_seed() -> None:
    assert check("bound", at_most=2.0, deterministic=True).judge([1.0]).verdict == "holds"
    assert check("order", deterministic=True).judge([-1.0]).verdict == "contradicted"
    single = check("value", paper=1.0, tolerance=0.0)
    assert single.verdict(single.judge([1.0]).ours, single=True) == "holds"


@pytest.mark.parametrize(
    ("verdicts", "verdict"),
    [
        (["holds", "holds"], "holds"),
        (["holds", "contradicted"], "holds in part"),
        (["holds", "undecided"], "holds in part"),
        (["undecided", "contradicted"], "contradicted"),
        (["undecided"], "undecided"),
    ],
)
def test_a_claim_has_one_of_four_verdicts(verdicts: list[Any], verdict: str) -> None:
    assert verdict_of(Outcome(check("order"), None, each) for each in verdicts) == verdict
    beyond = Outcome(check("order", beyond="ours"), None, "undecided")
    others = [Outcome(check("order"), None, each) for each in verdicts]
    assert verdict_of([*others, beyond]) == verdict


def test_a_reading_replaces_each_argument_that_names_a_figure() -> None:
    claim = study.paper("abe").chosen(["A10"])[0]
    both = [each for each in claim.checks if "beside" in each.arguments]
    assert both
    for each in both:
        (reading,) = each.readings
        assert reading.arguments["figure"] == "fig11_mixes"
        assert reading.arguments == {
            **each.arguments,
            "figure": "fig11_mixes",
            "beside": "fig12_mixes",
        }


def test_numbers_are_counted_by_reading_and_added_ones_apart() -> None:
    def outcome(verdict: Any, *others: tuple[bool, Any], **keys: Any) -> Outcome:
        found = check("order", **keys)
        readings = tuple(
            (Reading("other", departs, "gain", {}), Outcome(found, None, each))
            for departs, each in others
        )
        return Outcome(found, None, verdict, readings=readings)

    counts = Counts.of(
        [
            outcome("holds"),
            outcome("undecided", (False, "holds")),
            outcome("contradicted", (False, "undecided"), (True, "holds")),
            outcome("contradicted"),
            outcome("holds", added="new"),
            outcome("undecided", (False, "holds"), added="new"),
            outcome("holds", beyond="ours"),
        ],
        dropped=2,
    )
    assert counts == Counts(
        numbers=6, dropped=2, headline=1, readings=2, departures=3, added=2, added_hold=1
    )


@pytest.mark.parametrize(
    ("values", "text"),
    [
        ([31.0, 251.0], "100 ± 1400"),
        ([140.0, 141.0, 142.0, 300.0], "180 ± 130"),
        ([24.0, 24.2], "24.1 ± 1.3"),
        ([0.0101, 0.0103], "0.0102 ± 0.0013"),
        ([2.0, 2.0], "2.00 ± 0.00"),
        ([89123.0], "89100"),
        ([1.234], "1.23"),
        ([0.0], "0"),
    ],
)
def test_an_interval_has_two_digits_and_no_exponent(values: list[float], text: str) -> None:
    ours = check("order").judge(values).ours
    assert ours is not None
    assert with_interval(ours) == text


@pytest.mark.parametrize(
    ("name", "label"),
    [("fig04", "Fig. 4"), ("fig4_10", "Fig. 4.10"), ("fig06a", "Fig. 6a"), ("steps", "steps")],
)
def test_a_figure_has_the_number_of_its_name(name: str, label: str) -> None:
    assert Product("figure", name, ()).label == label
    assert Product("figure", name, (), number="Fig. S1").label == "Fig. S1"


def test_chance_is_the_ratio_of_two_seeds_and_never_more_than_allowed(
    results: dict[str, cwnd.Run],
) -> None:
    run = results["small"]
    base = {"beta_ecn": "0.5"}
    times = {
        (row["seed"], row["rtt"]): row["time_s"]
        for row in convergence_s(run).iter_rows(named=True)
        if row["beta_ecn"] == "0.5"
    }
    (a, b) = sorted({seed for seed, _ in times})
    ratios = [times[a, rtt] / times[b, rtt] for rtt in ("20 ms", "160 ms")]
    larger = max(sum(ratios) / 2, sum(1 / ratio for ratio in ratios) / 2)
    chance = measure("median_by_chance")
    assert chance(results, "small", {}, base, 100.0) == pytest.approx([larger])
    assert chance(results, "small", {}, base, 0.5) == [0.5]


def test_the_fastest_is_the_value_with_most_cases_below_one(results: dict[str, cwnd.Run]) -> None:
    found = measure("fastest")(results, "small", {}, {"beta_ecn": "0.5"}, "beta_ecn")
    assert found == [0.9, 0.9], "there is no other"


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('kind = "value"', 'kind = "valu"', "kind is one of value, order, bound"),
        ("tolerance = 2.0", "tolerence = 2.0", "has no `tolerence`"),
        ("tolerance = 2.0", "", "needs `paper`, and `tolerance` unless"),
        ("paper = 0.0", "paper = [2, 1]", r"a range `paper` is \[smallest, largest\]"),
        ("paper = 0.0", "paper = [1, 2]", "needs `paper`, and `tolerance` unless"),
        ('id = "A1.2"', 'id = "A1.1"', "two numbers have the id `A1.1`"),
        ('["fig01"]', '["fig99"]', "A1 needs fig99.toml, which is not there"),
        ('title = "', '# title = "', "`title` is missing"),
        ('title = "', 'titel = "', r"no key `titel` \(did you mean `title`\?\)"),
        ("[[claim]]", "[claim", "study.toml"),
        ('set = ["sweep', '# set = ["sweep', "quick 1: `set` is missing"),
        ('set = ["sweep', 'sett = ["sweep', r"quick 1: .* `sett` \(did you mean `set`\?\)"),
        ('id = "A1"', "id = 1", "claim 1: `id` is text in quotes, not 1"),
        ("tolerance = 2.0", "tolerance = true", "`tolerance` is a number, not True"),
        ('figures = ["fig01"]', "figures = [1]", "`figures` is a list of texts"),
        ('measure = { name = "', 'measure = { nome = "', "measure: `name` is missing"),
    ],
)
def test_a_fault_in_the_claims_is_named(tmp_path: Path, old: str, new: str, message: str) -> None:
    folder = edited(tmp_path, old, new)
    with pytest.raises((InputError, ScenarioError), match=message):
        read(folder)


def test_unknown_papers_claims_and_points_are_refused_with_what_there_is(
    results: dict[str, cwnd.Run],
) -> None:
    with pytest.raises(InputError, match="there is no paper `abc`; there are abe"):
        study.paper("abc")
    with pytest.raises(InputError, match="abe has no claim `A11`; it has A1, A2"):
        study.paper("abe").chosen(["A11"])
    with pytest.raises(InputError, match="no run at"):
        measure("least")(results, "small", "goodput", of={"rtt": "1 ms"}, along="beta_ecn")
    with pytest.raises(InputError, match="has no axis `rrt`"):
        measure("least")(results, "small", "goodput", of={"rrt": "1 ms"}, along="beta_ecn")


def test_a_reproduction_is_resumed_and_says_the_same(tmp_path: Path) -> None:
    told: list[str] = []

    def bars(name: str):
        from contextlib import nullcontext

        told.append(name)
        return nullcontext(lambda *_: None)

    first = study.run(study.paper("abe"), claims=["a3"], directory=tmp_path, progress=bars)
    written = {file: file.stat().st_mtime_ns for file in tmp_path.glob("runs/**/*.parquet")}
    again = study.run(study.paper("abe"), claims=["A3"], directory=tmp_path, progress=bars)
    assert told == ["abe-fig03", "abe-fig03"]
    assert {file: file.stat().st_mtime_ns for file in written} == written, "nothing is run again"
    assert first.to_json() == again.to_json() == json.loads((tmp_path / "claims.json").read_text())
    assert [file.name for file in first.figures] == ["fig03.png", "fig03.svg"]
    assert all(file.stat().st_size > 1000 for file in first.figures)
    assert [len(outcomes) for outcomes in first.outcomes.values()] == [2]


@pytest.mark.parametrize(
    ("same", "message"),
    [
        ("more = 1", "`figure.more` is a table, not 1"),
        ('more = { run = ["fig01"] }', "figure.more: there is no key `run`"),
        ('more = { runs = "fig01" }', "`runs` is a list of texts"),
        ('more = { runs = ["fig99"] }', "needs fig99.toml, which is not there"),
    ],
)
def test_a_fault_in_what_has_the_same_runs_is_named(
    tmp_path: Path, same: str, message: str
) -> None:
    folder = tmp_path / "abe"
    shutil.copytree(study.paper("abe").folder, folder)
    file = folder / "study.toml"
    file.write_text(f"{file.read_text()}\n[figure]\n{same}\n")
    with pytest.raises(InputError, match=message):
        read(folder)


TOY = """
title = "A toy"
authors = "A. Author"
venue = "Nowhere"

[figure]
fig02 = { runs = ["fig01"] }

[[quick]]
set = ["sweep.repeat=1", "run.duration=4 s"]

[[quick]]
experiments = ["fig01"]
set = ["run.duration=2 s"]

[[claim]]
id = "T1"
figures = ["fig01", "fig02"]
text = "Larger factors carry more"

[[claim.check]]
what = "gain of 0.9 over 0.5 at 160 ms"
kind = "order"
unit = "%"

[claim.check.measure]
name = "gain"
metric = "goodput"
of = { rtt = "160 ms", beta_ecn = "0.9" }
over = { rtt = "160 ms", beta_ecn = "0.5" }

[[claim.check]]
what = "runs"
kind = "value"
unit = ""
paper = 8
tolerance = 0.1
measure = { name = "runs" }
"""
RUNS = """
def runs(results, figure):
    return [float(results[figure].runs.height)]


MEASURES = {"runs": runs}
"""


def test_a_paper_is_all_in_its_folder(
    make_paper: Callable[[str, str, str], Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    folder = make_paper("toy", TOY, RUNS)
    (folder / "fig01.toml").write_text(SCENARIO.to_toml())

    assert study.papers() == ["toy"]
    found = study.run(study.paper("toy"), directory=tmp_path / "out")

    assert found.outcomes["T1"][0].check.what == "gain of 0.9 over 0.5 at 160 ms"
    names = {"fig01.png", "fig01.svg", "fig02.png", "fig02.svg"}
    assert {file.name for file in found.figures} == names
    assert [folder.name for folder in (tmp_path / "out" / "runs").iterdir()] == ["small"]
    assert "cwnd_study_toy.figures" in sys.modules
    assert found.outcomes["T1"][1].ours.mean == 8, "a measure of the paper's own"
    assert not found.to_json()["quick"]

    monkeypatch.chdir(tmp_path)
    quick = study.run(study.paper("toy"), quick=True)
    assert quick.directory == Path("out/study/toy-quick")
    assert quick.to_json()["quick"]
    ours = quick.outcomes["T1"][1].ours
    assert ours is not None
    assert ours.mean == 4, "one seed"
    runs = cwnd.load(quick.directory / "runs" / "small")
    assert set(runs.flows["duration_s"].round()) == {2.0}, "the last of two says how long"
