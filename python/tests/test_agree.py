"""Comparisons of the simulator with Linux, on results whose differences are known."""

from __future__ import annotations

import csv
import io
from dataclasses import replace
from typing import TYPE_CHECKING

import polars as pl
import pytest
import svgs
from conftest import SHORT

import cwnd
from cwnd import _core, report
from cwnd.cli import agree as command
from cwnd.cli import plot
from cwnd.errors import InputError
from cwnd.figures import Figure
from cwnd.results import METRICS
from cwnd.results.stats import Estimate, welch
from cwnd.running.environments import Simulator
from cwnd.store import open_records
from cwnd.store.manifest import summary
from cwnd.study.agreement import (
    COMPLETION,
    GOODPUT,
    REPEATED,
    SHARE,
    TIMEOUTS,
    Agreement,
    agree,
    compare,
    rerun_simulator,
    table,
    undecided,
    write,
)
from cwnd.study.agreement import figure as agreement
from cwnd.study.agreement.files import DIGITS
from cwnd.study.agreement.run import rounded_difference

if TYPE_CHECKING:
    from pathlib import Path

    from cwnd.running.environments import CaptureFiles

ARMS = (
    SHORT.replace('controller = { kind = "newreno", preset = "abe" }\n', "")
    + """
[sweep]
repeat = 3

[sweep.axis.rtt]
path = "flow.main.rtt"
values = ["20 ms", "80 ms"]

[sweep.axis.arm]
path = "flow.main.controller"
values = [{ kind = "newreno" }, { kind = "newreno", preset = "paper" }]
labels = ["Reno", "Reno+ABE"]
"""
)


@pytest.fixture(scope="module")
def simulated(tmp_path_factory: pytest.TempPathFactory) -> cwnd.Run:
    file = tmp_path_factory.mktemp("agree") / "arms.toml"
    file.write_text(ARMS, encoding="utf-8")
    return cwnd.run(file)


def with_goodput(run: cwnd.Run, factor: pl.Expr) -> cwnd.Run:
    """Returns a result whose flows received `factor` times as much."""
    flows = run.flows.with_columns((pl.col("delivered_bytes") * factor).round().cast(pl.UInt64))
    return replace(run, flows=flows)


def compared(ours: cwnd.Run, theirs: cwnd.Run, directory: Path) -> Agreement:
    return compare(ours, theirs, directory)


def test_a_world_agrees_with_itself(simulated: cwnd.Run, tmp_path: Path) -> None:
    found = compared(simulated, simulated, tmp_path)
    assert found.holds
    assert found.share == 1
    assert len(found.deciding) == 4
    assert all(row.difference.mean == 0 for row in found.rows)
    # The gain is that of each seed over its own base.
    means = simulated.summary(["goodput"])
    for gain in found.gains:
        rows = means.filter(pl.col("rtt") == gain.point["rtt"])
        base, abe = (rows.filter(pl.col("arm") == arm)[GOODPUT][0] for arm in ("Reno", "Reno+ABE"))
        assert gain.simulator.mean == pytest.approx(100 * (abe / base - 1), abs=0.5)
        assert gain.difference.mean == 0


def test_a_tenth_less_goodput_is_the_edge_of_what_agrees(
    simulated: cwnd.Run, tmp_path: Path
) -> None:
    within = compared(simulated, with_goodput(simulated, pl.lit(0.901)), tmp_path)
    beyond = compared(simulated, with_goodput(simulated, pl.lit(0.899)), tmp_path)
    assert within.holds
    assert not beyond.holds
    assert beyond.share == 0
    # What both arms lose alike changes no gain.
    assert all(gain.holds for gain in beyond.gains)


#: Transfers that end, over a link that loses some of their packets.
TRANSFERS = (
    SHORT.replace('controller = { kind = "newreno", preset = "abe" }\n', "").replace(
        'rtt = "20 ms"\n', 'rtt = "20 ms"\nworkload = { kind = "bytes", size = "100 kB" }\n'
    )
    + """count = 5
spacing = "200 ms"

[sweep]
repeat = 3

[sweep.axis.loss]
path = "dumbbell.loss"
values = [0.0, 0.1]
"""
)


def changed(run: cwnd.Run, **columns: pl.Expr) -> cwnd.Run:
    """Returns a result with other columns of flows."""
    return replace(run, flows=run.flows.with_columns(**columns))


def test_of_transfers_the_completion_time_decides_and_not_goodput(tmp_path: Path) -> None:
    file = tmp_path / "transfers.toml"
    file.write_text(TRANSFERS, encoding="utf-8")
    ours = cwnd.run(file)
    found = compared(ours, with_goodput(ours, pl.lit(0.5)), tmp_path)
    assert found.holds
    assert [(row.metric, row.point["loss"]) for row in found.deciding] == [
        (COMPLETION, "0"),
        (COMPLETION, "0.1"),
    ]
    assert {row.tolerance for row in found.rows if row.metric == GOODPUT} == {None}
    for factor, share in ((1.09, 1), (1.11, 0)):
        slower = changed(ours, fct_s=pl.col("fct_s") * factor)
        assert compared(ours, slower, tmp_path).share == share
    # Where none was complete nothing is known of when they are.
    never = changed(ours, fct_s=pl.lit(None, pl.Float64))
    assert {row.metric for row in compared(never, never, tmp_path).deciding} == {GOODPUT}
    write(found)
    drawn = agreement.figure(found)
    assert svgs.complaints(*svgs.texts(Figure(drawn).svg())) == []
    assert drawn.panels[0].y_label == "Completion time on Linux (s)"
    # What is on the disk draws the same, and goes on a page.
    records = open_records(tmp_path)
    assert records is not None
    assert plot.picture(records) == drawn
    page = report.html([report.Recorded(records, "Worlds", plot.picture(records))])
    assert ">Completion time, mean<" in page


def test_goodput_decides_where_some_flows_have_no_end(tmp_path: Path) -> None:
    file = tmp_path / "both.toml"
    bulk = '[flow.bulk]\nrtt = "20 ms"\n\n[sweep]\n'
    file.write_text(TRANSFERS.replace("[sweep]\n", bulk), encoding="utf-8")
    ours = cwnd.run(file)
    found = compared(ours, ours, tmp_path)
    assert {(row.group, row.metric) for row in found.deciding} == {
        ("*", GOODPUT),
        ("main", COMPLETION),
        ("bulk", GOODPUT),
    }
    drawn = agreement.figure(found)
    assert svgs.complaints(*svgs.texts(Figure(drawn).svg())) == []


def test_timeouts_may_differ_by_a_quarter_or_by_one_a_run(tmp_path: Path) -> None:
    file = tmp_path / "transfers.toml"
    file.write_text(TRANSFERS, encoding="utf-8")
    ours = cwnd.run(file)
    first = pl.col("flow_id") == pl.col("flow_id").min().over("run_id")

    def with_timeouts(of_the_first: int) -> cwnd.Run:
        many = pl.when(first).then(of_the_first).otherwise(0).cast(ours.flows["rto_count"].dtype)
        return changed(ours, rto_count=many, rto_syn=pl.lit(0, pl.UInt64))

    for mine, theirs, share in (
        (0, 1, 1),
        (0, 2, 0),
        (8, 10, 1),
        (8, 11, 0),
        (2, 1, 1),
        (40, 31, 1),
        (40, 29, 0),
    ):
        found = compared(with_timeouts(mine), with_timeouts(theirs), tmp_path)
        assert len(found.deciding_timeouts) == 2
        assert found.timeouts_share == share, (mine, theirs)
        assert found.share == 1
        assert found.holds is (share >= SHARE)
    row = next(row for row in csv.DictReader(io.StringIO(table(found))) if row["within"] == "false")
    assert (row["metric"], row["tolerance"], row["tolerance_least"]) == ("Timeouts", "25", "1")
    # Linux counts those of SYNs among them, the simulator apart.
    apart = changed(with_timeouts(3), rto_syn=pl.when(first).then(5).otherwise(0).cast(pl.UInt64))
    among = changed(with_timeouts(8), rto_syn=pl.lit(None, pl.UInt64))
    rows = compared(apart, among, tmp_path).deciding_timeouts
    assert [(row.simulator.mean, row.linux.mean) for row in rows] == [(8, 8)] * 2
    # A kernel that does not count them is not asked.
    silent = changed(ours, rto_count=pl.lit(None, pl.UInt64))
    found = compared(ours, silent, tmp_path)
    assert found.timeouts_share is None
    assert found.holds
    assert TIMEOUTS not in {row.metric for row in found.rows}


def test_a_table_is_made_again_beside_what_it_has_of_linux(
    other: type[Counting], tmp_path: Path
) -> None:
    file, recorded = tmp_path / "lossy.toml", tmp_path / "recorded.csv"
    file.write_text(LOSSY, encoding="utf-8")
    first = agree(file, tmp_path / "out", up_to=5)
    assert first.repeated is not None
    for made in (first, first.repeated):
        # Linux is as it was, with other numbers than the simulator's of then; the simulator is new.
        rows = list(csv.DictReader(io.StringIO(table(made))))
        for row in rows:
            row["linux"] = f"{2 * float(row['linux']):.4f}"
            row["simulator"] = row["simulator_ci95"] = "0"
        with recorded.open("w", encoding="utf-8", newline="") as out:
            writer = csv.DictWriter(out, rows[0], lineterminator="\n")
            writer.writeheader()
            writer.writerows(rows)
        again = rerun_simulator(file, recorded, tmp_path / "again")
        assert len(again.rows) == len(made.rows)
        for new, old in zip(again.rows, made.rows, strict=True):
            assert (new.point, new.group, new.metric) == (old.point, old.group, old.metric)
            assert (new.tolerance, new.least) == (old.tolerance, old.least)
            assert new.simulator == old.simulator
            assert new.linux.mean == pytest.approx(2 * old.linux.mean, rel=1e-4, abs=1e-3)
            assert new.linux.sd == pytest.approx(old.linux.sd, rel=1e-3, abs=1e2)
            digit = 10**-DIGITS / METRICS[new.metric].scale
            between = pytest.approx(new.linux.mean - new.simulator.mean, abs=digit)
            assert new.difference.mean == between
        assert [gain.simulator for gain in again.gains] == [g.simulator for g in made.gains]
        for gain, before in zip(again.gains, made.gains, strict=True):
            assert gain.point == before.point
            assert gain.linux.mean == pytest.approx(2 * before.linux.mean, rel=1e-3, abs=1e-3)
        assert again.share == 0


def test_a_gain_that_is_six_points_larger_does_not_agree(
    simulated: cwnd.Run, tmp_path: Path
) -> None:
    more = pl.when(pl.col("arm").cast(pl.String) == "Reno+ABE").then(1.06).otherwise(1.0)
    found = compared(simulated, with_goodput(simulated, more), tmp_path)
    assert found.share == 1
    assert not any(gain.holds for gain in found.gains)
    assert not found.holds


def test_the_table_has_a_row_for_each_metric_and_gain(simulated: cwnd.Run, tmp_path: Path) -> None:
    found = compared(simulated, with_goodput(simulated, pl.lit(1.02)), tmp_path)
    rows = list(csv.DictReader(io.StringIO(table(found))))
    assert len(rows) == len(found.rows) + len(found.gains)
    goodput = [row for row in rows if row["metric"] == "Goodput"]
    assert {row["within"] for row in goodput} == {"true"}
    for row in goodput:
        assert float(row["linux"]) == pytest.approx(1.02 * float(row["simulator"]), rel=1e-3)
        assert float(row["difference_percent"]) == pytest.approx(2, abs=0.05)
    write(found)
    assert {file.name for file in tmp_path.iterdir()} == {
        "agreement.csv",
        "agreement.json",
        "agreement.png",
        "agreement.svg",
        "differences.parquet",
        "gains.parquet",
        "manifest.json",
        "SHA256SUMS",
    }


#: A sweep over random loss of 0 and 3 %: only runs with loss scatter.
LOSSY = (
    ARMS[: ARMS.index("[sweep.axis.rtt]")]
    + """
[sweep.axis.loss]
path = "dumbbell.loss"
values = [0.0, 0.03]

"""
    + ARMS[ARMS.index("[sweep.axis.arm]") :]
)


class Counting(Simulator):
    """The simulator as the other world; it counts its runs."""

    runs = 0

    def run(
        self, cell: _core.Cell, control: _core.Control | None, captures: CaptureFiles = ()
    ) -> _core.Result:
        Counting.runs += 1
        return super().run(cell, control, captures)


@pytest.fixture
def other(monkeypatch: pytest.MonkeyPatch) -> type[Counting]:
    """Stands in for Linux, which takes root and real time."""
    monkeypatch.setattr(Counting, "runs", 0)
    monkeypatch.setattr("cwnd.study.agreement.run.Linux", Counting)
    monkeypatch.setattr(
        "cwnd.study.agreement.run.environment_of",
        lambda on: Counting() if on is not None else Simulator(),
    )
    return Counting


def test_points_whose_runs_scatter_are_run_more_often_and_the_others_are_not(
    other: type[Counting], tmp_path: Path
) -> None:
    file = tmp_path / "lossy.toml"
    file.write_text(LOSSY, encoding="utf-8")
    found = agree(file, tmp_path / "out", up_to=8)
    # The worlds are the same one here: nothing differs, and that is not what decides.
    assert all(row.difference.mean == 0 for row in found.rows)
    assert {row.simulator.n for row in found.rows} == {row.linux.n for row in found.rows} == {3}
    assert found.repeated is not None
    assert {row.point["loss"] for row in found.repeated.rows} == {"0.03"}
    assert {row.linux.n for row in found.repeated.rows} == {8}
    assert [gain.linux.n for gain in found.repeated.gains] == [8]
    assert other.runs == 2 * 3 + 2 * 8
    # What is asked of the worlds is asked of all the runs that there are.
    assert [row.linux.n for row in found.deciding] == [3, 3, 8, 8]
    assert [gain.linux.n for gain in found.deciding_gains] == [3, 8]
    # Nothing is run again, and the table says how many runs there are.
    again = agree(file, tmp_path / "out", up_to=8)
    assert other.runs == 2 * 3 + 2 * 8
    assert again == found
    with (tmp_path / "out" / REPEATED).open(encoding="utf-8", newline="") as rows:
        assert {row["runs"] for row in csv.DictReader(rows)} == {"8"}


#: Half Reno, half Reno with ABE at one bottleneck: together they fill it whatever their shares are.
HALVES = (
    SHORT.replace(
        'controller = { kind = "newreno", preset = "abe" }\n',
        'controller = { kind = "newreno" }\n',
    )
    + """
[flow.half]
rtt = "20 ms"
controller = { kind = "newreno", preset = "abe" }

[sweep]
repeat = 3
"""
)


def test_worlds_whose_groups_have_other_shares_of_the_same_sum_do_not_agree(tmp_path: Path) -> None:
    file = tmp_path / "halves.toml"
    file.write_text(HALVES, encoding="utf-8")
    ours = cwnd.run(file)
    assert ours.groups == ["main", "half"]
    assert compared(ours, ours, tmp_path).holds
    # A fifth of what one group has goes to the other.
    moved = ours.flows.select("run_id", "group", "delivered_bytes").pivot(
        "group", index="run_id", values="delivered_bytes"
    )
    flows = ours.flows.join(moved, on="run_id", maintain_order="left").with_columns(
        (
            pl.col("delivered_bytes")
            + pl.when(pl.col("group").cast(pl.String) == "half").then(-0.2).otherwise(0.2)
            * pl.col("half")
        )
        .round()
        .cast(pl.UInt64)
        .alias("delivered_bytes")
    )
    theirs = replace(ours, flows=flows.drop("main", "half"))
    found = compared(ours, theirs, tmp_path)
    of = {(row.group, row.metric): row for row in found.rows}
    assert of["*", GOODPUT].relative == pytest.approx(0, abs=1e-6)
    assert of["half", GOODPUT].relative == pytest.approx(-0.2, abs=1e-6)
    share = of["half", "goodput_share"]
    assert share.linux.mean == pytest.approx(0.8 * share.simulator.mean)
    assert [row.group for row in found.deciding] == ["*", "main", "half"]
    assert not found.holds
    # What a link does is not a group's.
    assert ("half", "qdelay_mean_us") not in of
    rows = list(csv.DictReader(io.StringIO(table(found))))
    assert {row["group"] for row in rows} == {"*", "main", "half"}
    # One group by itself, or all flows.
    for group, holds in (("half", False), ("*", True)):
        alone = compare(ours, theirs, tmp_path, group=group)
        assert {row.group for row in alone.rows} == {group}
        assert alone.holds is holds
    ratio = compare(ours, ours, tmp_path, ["goodput_ratio"], relative_to="half")
    assert [row.group for row in ratio.rows if row.metric == "goodput_ratio"] == ["main"]
    write(found)
    drawn = agreement.figure(found)
    assert svgs.complaints(*svgs.texts(Figure(drawn).svg())) == []
    assert {line.label for line in drawn.panels[0].lines} == {None, "all flows", "main", "half"}


def test_an_unknown_group_is_refused_before_anything_runs(
    other: type[Counting], tmp_path: Path
) -> None:
    file = tmp_path / "halves.toml"
    file.write_text(HALVES, encoding="utf-8")
    for asked in ({"group": "hlaf"}, {"relative_to": "hlaf"}):
        with pytest.raises(
            InputError, match="no group `hlaf` in this scenario; there are main, half"
        ):
            agree(file, tmp_path / "out", **asked)
    assert other.runs == 0
    assert not (tmp_path / "out").exists()


def test_a_gain_is_over_the_longest_label_that_something_is_added_to(tmp_path: Path) -> None:
    file = tmp_path / "arms.toml"
    arms = ARMS.replace(
        'values = [{ kind = "newreno" }, { kind = "newreno", preset = "paper" }]',
        'values = [{ kind = "newreno" }, { kind = "newreno", preset = "abe" },'
        ' { kind = "newreno", preset = "paper" }]',
    )
    arms = arms.replace('["Reno", "Reno+ABE"]', '["Reno", "Reno+ABE", "Reno+ABE+more"]')
    file.write_text(arms, encoding="utf-8")
    run = cwnd.run(file)
    found = compared(run, run, tmp_path)
    assert [(gain.base, gain.additions) for gain in found.gains] == [
        ("Reno", "ABE"),
        ("Reno+ABE", "more"),
    ] * 2


def test_an_arm_is_over_what_its_axis_says_and_made_again_over_the_same(
    other: type[Counting], tmp_path: Path
) -> None:
    file, recorded = tmp_path / "arms.toml", tmp_path / "recorded.csv"
    arms = ARMS.replace(
        'values = [{ kind = "newreno" }, { kind = "newreno", preset = "paper" }]',
        'values = ["newreno", "cubic", { kind = "newreno", preset = "paper" }, "vegas"]',
    ).replace(
        'labels = ["Reno", "Reno+ABE"]',
        'labels = ["Reno", "CUBIC", "Reno+ABE", "Vegas"]\n'
        'over = { Vegas = ["Reno", "CUBIC"], "Reno+ABE" = "CUBIC" }',
    )
    file.write_text(arms, encoding="utf-8")
    found = agree(file, tmp_path / "out")
    said = [
        ("Reno+ABE", "CUBIC", "Reno+ABE"),
        ("Vegas", "Reno", "Vegas"),
        ("Vegas", "CUBIC", "Vegas"),
    ]
    assert [(gain.arm, gain.base, gain.additions) for gain in found.gains] == said * 2
    recorded.write_text(table(found), encoding="utf-8")
    again = rerun_simulator(file, recorded, tmp_path / "again")
    assert [(gain.arm, gain.base, gain.additions) for gain in again.gains] == said * 2
    assert [gain.simulator for gain in again.gains] == [gain.simulator for gain in found.gains]
    # A result of before there was `over` has none.
    run = cwnd.load(tmp_path / "out" / "simulator")
    assert next(axis.over for axis in run.axes if axis.name == "arm")["Vegas"] == ["Reno", "CUBIC"]
    data = run.manifest.to_json()
    for axis in data["axes"]:
        del axis["over"]
    assert not any(axis.over for axis in type(run.manifest).from_json(data, "here").axes)


def test_without_up_to_every_point_has_the_scenarios_runs_or_those_of_set(
    other: type[Counting], tmp_path: Path
) -> None:
    file = tmp_path / "lossy.toml"
    file.write_text(LOSSY, encoding="utf-8")
    found = agree(file, tmp_path / "out")
    assert found.repeated is None
    assert other.runs == 4 * 3
    with pytest.raises(InputError, match="3 runs of each point already"):
        agree(file, tmp_path / "out", up_to=2)
    command.agree(file, output_dir=tmp_path / "set", seed=7, set_=["sweep.repeat=2"], up_to=3)
    assert set(cwnd.load(tmp_path / "set" / "linux").runs["seed"]) >= {7, 8}


def test_points_are_chosen_by_how_runs_scatter_not_by_how_the_worlds_differ(
    simulated: cwnd.Run, tmp_path: Path
) -> None:
    shifted = compared(simulated, with_goodput(simulated, pl.lit(0.5)), tmp_path)
    assert not any(row.holds for row in shifted.deciding)
    assert undecided(shifted) == set()
    # Runs of one arm at one RTT a fifth apart: its gain is not known either, nor what it is over.
    here = (pl.col("arm").cast(pl.String) == "Reno+ABE") & (
        pl.col("rtt").cast(pl.String) == "20 ms"
    )
    apart = pl.when(here).then(1 + 0.1 * (pl.col("seed") % 3)).otherwise(1.0)
    scattered = compared(simulated, with_goodput(simulated, apart), tmp_path)
    assert {tuple(label for _, label in point) for point in undecided(scattered)} == {
        ("20 ms", "Reno"),
        ("20 ms", "Reno+ABE"),
    }


def test_a_manifest_says_how_many_runs_were_not_valid_and_why() -> None:
    def facts(flaws: list[str], lateness: float, *, measured: bool = True) -> str:
        import json

        direction = {"name": "bottleneck", "lateness_us": {"p99": lateness}}
        found = 10 + lateness if measured else None
        calibration = {"what": "rate", "unit": "Mbit/s", "set": 10.0, "measured": found}
        return json.dumps(
            {
                "kernel": "6.18.0",
                "valid": not flaws,
                "flaws": flaws,
                "notes": ["no timer expired"] if flaws else [],
                "controllers": ["reno", "cw1f_0"],
                "sysctls": {"left": {}, "right": {}},
                "calibration": [calibration],
                "router": {"idle": 1 - lateness, "directions": [direction]},
            }
        )

    told = summary([facts([], 0.01), facts(["late"], 0.4), facts(["late", "lost"], 0.2)])
    assert told is not None
    assert told["invalid_runs"] == 2
    assert told["flaws"] == ["late", "lost"]
    assert told["notes"] == ["no timer expired (in 2 of 3 runs)"]
    assert told["controllers"] == ["of cwnd-kernel", "reno"]
    assert told["lateness_p99_us"] == 0.4
    assert told["idle_least"] == 0.6
    # Of the calibrations the worst is kept.
    assert told["calibration"][0]["measured"] == 10.4
    nothing = summary([facts([], 0.01), facts(["lost"], 0.1, measured=False), facts([], 0.2)])
    assert nothing is not None
    assert nothing["calibration"][0]["measured"] is None
    assert summary([]) is None


def test_a_last_digit_of_a_table_takes_nothing_beyond_its_tolerance() -> None:
    simulator = Estimate.of([1, 1, 2])
    assert simulator is not None
    # A third, as a table has it.
    linux = Estimate.of_interval(3, 0.3333, 1.4342)
    found = rounded_difference(simulator, linux, 1)
    assert found.mean == -1
    # Of two equal spreads Welch's degrees of freedom are 4, not 3.
    assert found.half_width == pytest.approx(2.7764 * 0.4714, rel=1e-3)
    assert abs(welch(simulator, linux).mean) > 1
