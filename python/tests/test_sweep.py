"""Sweeps on disk: the same as a run, cell by cell, and never computed twice."""

from __future__ import annotations

import json
import shutil
import signal
import time
from collections.abc import Callable
from pathlib import Path

import polars as pl
import pytest
from conftest import SHORT, SWEEP, Cli, wait_until
from polars.testing import assert_frame_equal

import cwnd
from cwnd import _core
from cwnd.errors import CwndError, InputError
from cwnd.files import checksums
from cwnd.running import Progress, cells, executor, plans
from cwnd.running.cells import name_cells
from cwnd.store import JOURNAL, activity, cell_id, content, status, tables
from cwnd.store.activity import Shard
from cwnd.store.dataset import Dataset
from cwnd.store.layout import TABLES


def files(directory: Path) -> dict[str, bytes]:
    """All that belongs to the result."""
    return {
        str(path.relative_to(directory)): path.read_bytes()
        for path in sorted(directory.rglob("*"))
        if path.is_file() and "activity" not in path.relative_to(directory).parts
    }


@pytest.fixture(scope="session")
def dataset(scenarios: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An uninterrupted sweep; tests that change it take a copy."""
    directory = tmp_path_factory.mktemp("dataset") / "sweep"
    cwnd.sweep(scenarios / "sweep.toml", directory, threads=2)
    return directory


@pytest.fixture
def copy(dataset: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(dataset, tmp_path / "copy"))


class Counted:
    """Counts the cells that are computed, and lets some fail."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, failing: tuple[int, ...] = ()):
        self.seeds: list[int] = []
        simulate = cells.simulate

        def counted(cell: _core.Cell, control: _core.Control | None = None) -> _core.Result:
            self.seeds.append(cell.seed)
            if cell.seed in failing:
                raise ArithmeticError("the window is imaginary")
            return simulate(cell, control)

        monkeypatch.setattr(cells, "simulate", counted)


def test_a_sweep_gives_what_a_run_gives(dataset: Path, sweep: cwnd.Run):
    found = cwnd.load(dataset)

    for name in TABLES:
        assert_frame_equal(getattr(found, name), getattr(sweep, name))
    assert list(found.resolved) == list(sweep.resolved)
    assert found.source == sweep.source
    for what in ("name", "axes", "seeds", "runs", "activity", "records_sha256", "warnings"):
        assert getattr(found.manifest, what) == getattr(sweep.manifest, what)
    assert_frame_equal(found.summary(), sweep.summary())
    assert found.notes == sweep.notes


def test_threads_do_not_change_a_byte(dataset: Path, scenarios: Path, tmp_path: Path):
    cwnd.sweep(scenarios / "sweep.toml", tmp_path / "one", threads=1)
    assert files(tmp_path / "one") == files(dataset)


def test_what_is_there_is_not_computed_again(
    tmp_path: Path, dataset: Path, scenarios: Path, monkeypatch: pytest.MonkeyPatch
):
    counted = Counted(monkeypatch)
    plan, some = plans.plan(scenarios / "sweep.toml"), [0, 4, 11, 12, 17]
    executor.fill(plan, tmp_path / "a", only=[n for n in range(18) if n not in some])
    assert len(counted.seeds) == 13

    cwnd.sweep(scenarios / "sweep.toml", tmp_path / "a")

    assert len(counted.seeds) == 18
    assert files(tmp_path / "a") == files(dataset)
    cwnd.sweep(scenarios / "sweep.toml", tmp_path / "a")
    assert len(counted.seeds) == 18


def test_names_and_labels_are_not_what_is_simulated(
    copy: Path, scenarios: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    counted = Counted(monkeypatch)
    other = tmp_path / "other.toml"
    other.write_text(SWEEP.replace('"sweep"', '"renamed"').replace('"NewReno+ABE"', '"ABE"'))

    found = cwnd.sweep(other, copy)

    assert counted.seeds == []
    assert found.name == "renamed"
    assert set(found.runs["arm"]) == {"NewReno", "ABE"}


def test_a_longer_axis_computes_only_what_is_new(
    copy: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    counted = Counted(monkeypatch)
    longer = tmp_path / "longer.toml"
    longer.write_text(SWEEP.replace('"40 ms"]', '"40 ms", "80 ms"]'))

    found = cwnd.sweep(longer, copy)

    assert len(counted.seeds) == 2 * 3
    assert found.runs.height == 24
    for name in TABLES:
        assert_frame_equal(getattr(found, name), getattr(cwnd.run(longer), name))


def test_cells_of_another_sweep_are_kept_unless_they_may_go(copy: Path, tmp_path: Path):
    shorter = tmp_path / "shorter.toml"
    shorter.write_text(SWEEP.replace(', "40 ms"]', "]"))
    before = files(copy)

    with pytest.raises(InputError, match="holds 6 cells that this sweep has not; --replan"):
        cwnd.sweep(shorter, copy)
    assert files(copy) == before

    cwnd.sweep(shorter, copy, replan=True)
    cwnd.sweep(shorter, tmp_path / "fresh")
    assert files(copy) == files(tmp_path / "fresh")


def test_cells_of_another_sweep_beside_a_complete_one_go_if_they_may(
    copy: Path, scenarios: Path, tmp_path: Path
):
    longer = tmp_path / "longer.toml"
    longer.write_text(SWEEP.replace('"40 ms"]', '"40 ms", "80 ms"]'))
    before = files(copy)
    # As if it had been stopped.
    executor.fill(plans.plan(longer), copy, only=[9], replace=True)
    assert files(copy) != before

    plan = plans.plan(scenarios / "sweep.toml")
    assert executor.fill(plan, copy, replace=True).made == 0
    assert (copy / JOURNAL).exists()
    executor.fill(plan, copy, replace=True, replan=True)
    assert files(copy) == before


def test_another_simulator_makes_other_cells(
    copy: Path, scenarios: Path, monkeypatch: pytest.MonkeyPatch
):
    text = content(_core.parse(SHORT, name="short.toml").cell(0).resolved)
    assert cell_id(text) != cell_id(text, "0.2.0")

    for name in ("manifest.json", "runs.parquet"):
        older(copy / name)
    with pytest.raises(InputError, match=r"another version of the simulator \(0\.0\.1\+older\)"):
        cwnd.sweep(scenarios / "sweep.toml", copy)


def older(file: Path) -> None:
    """Makes a file of a sweep that of an older simulator."""
    if file.suffix == ".json":
        manifest = json.loads(file.read_text())
        file.write_text(json.dumps({**manifest, "engine": "0.0.1+older"}))
    else:
        names = [f"{number:032x}" for number in range(18)]
        pl.read_parquet(file).with_columns(cell_id=pl.Series(names)).write_parquet(file)
    relist(file)


def relist(file: Path) -> None:
    """Writes the present hash of a file into its result's SHA256SUMS."""
    sums = checksums.Sums.at(file.parent).of
    assert sums is not None
    new = {**sums, file.name: checksums.sha256(file.read_bytes())}
    (file.parent / checksums.SUMS).write_bytes(checksums.listed(list(new.items())))


def test_runs_that_are_the_same_are_computed_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    twice = tmp_path / "twice.toml"
    text = SWEEP.replace('"newreno", preset = "abe" }]', '"newreno" }]')
    # No value of the axis has a preset any more, so the start of the sweep may have none.
    twice.write_text(text.replace('{ kind = "newreno", preset = "abe" }', '"newreno"', 1))
    expected = cwnd.run(twice)
    counted = Counted(monkeypatch)

    found = cwnd.sweep(twice, tmp_path / "sweep")

    assert len(counted.seeds) == 9
    for name in TABLES:
        assert_frame_equal(getattr(found, name), getattr(expected, name))


class Gathered:
    """Gathers what results record, of `Own` ones, too."""

    def __init__(self) -> None:
        self._gathered = _core.Gathered()

    def add(self, result: object) -> None:
        self._gathered.add(result._result if isinstance(result, Own) else result)

    def __getattr__(self, name: str) -> object:
        return getattr(self._gathered, name)


class Own:
    """A result in which a mechanism counted by a name of its own."""

    def __init__(self, result: _core.Result, count: int):
        self._result = result
        self.activity = {**result.activity, "toy_acted": count}

    def __getattr__(self, name: str) -> object:
        return getattr(self._result, name)


@pytest.mark.parametrize("of", [lambda seed: seed % 3 == 1, lambda seed: seed % 3 != 1])
def test_counters_that_only_some_cells_have_are_zero_in_the_others(
    of: Callable[[int], bool],
    scenarios: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    cli: Cli,
):
    simulate = cells.simulate

    def own(cell: _core.Cell, control: _core.Control | None = None) -> object:
        result = simulate(cell, control)
        return Own(result, cell.seed + 1) if of(cell.seed) else result

    monkeypatch.setattr(cells, "simulate", own)
    monkeypatch.setattr(tables, "GATHERED", Gathered)
    found = cwnd.sweep(scenarios / "sweep.toml", tmp_path / "sweep")
    counts = {seed: seed + 1 if of(seed) else 0 for seed in found.runs["seed"]}
    assert set(counts.values()) > {0}
    told = found.runs["activity_toy_acted"].to_list()
    assert told == [counts[seed] for seed in found.runs["seed"]]
    assert found.manifest.activity["toy_acted"] == sum(told)
    loaded = cwnd.load(tmp_path / "sweep")
    assert_frame_equal(loaded.runs, found.runs)
    assert loaded.resolved[0] == found.resolved[0]
    sql = "select seed, activity_toy_acted as n from runs order by run_id"
    asked = cwnd.query(tmp_path / "sweep", sql)
    assert asked["n"].to_list() == [counts[seed] for seed in asked["seed"]]
    # Computed again they would not be the same: the toy is here only.
    answer = cli("verify", tmp_path / "sweep", "--sample", "0")
    assert answer.code == 0, answer.out[:700]


def test_axes_that_have_the_names_of_columns_are_told_apart(tmp_path: Path):
    scenario = tmp_path / "names.toml"
    scenario.write_text(SWEEP.replace("axis.arm", "axis.cell_id").replace("axis.rtt", "axis.link"))

    found = cwnd.sweep(scenario, tmp_path / "sweep")

    expected = cwnd.run(scenario)
    assert found.axis_columns == expected.axis_columns
    for name in TABLES:
        assert_frame_equal(getattr(found, name), getattr(expected, name))


def test_a_failing_cell_is_recorded_and_the_others_go_on(
    scenarios: Path, dataset: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    with monkeypatch.context() as patched:
        Counted(patched, failing=(2,))
        with pytest.raises(CwndError, match="6 cells failed, the first with ArithmeticError"):
            cwnd.sweep(scenarios / "sweep.toml", tmp_path / "sweep")

    errors = sorted((tmp_path / "sweep" / "errors").glob("*.json"))
    assert len(errors) == 6
    said = json.loads(errors[0].read_text())
    assert said == {
        "cell_id": errors[0].stem,
        "error": "ArithmeticError",
        "message": "the window is imaginary",
    }
    # The scenario beside it is that cell, and runs alone.
    (alone,) = cwnd.run(errors[0].with_suffix(".toml")).resolved
    assert cell_id(content(alone)) == errors[0].stem
    found = cwnd.load(tmp_path / "sweep")
    assert found.runs.height == 12
    assert found.notes[0] == "6 of 18 runs are missing: the sweep is not complete"

    # Another call tries them again, and leaves no trace of the failures.
    counted = Counted(monkeypatch)
    cwnd.sweep(scenarios / "sweep.toml", tmp_path / "sweep")
    assert counted.seeds == [2] * 6
    assert files(tmp_path / "sweep") == files(dataset)


def test_the_exit_code_says_that_a_cell_failed(cli: Cli, monkeypatch: pytest.MonkeyPatch):
    Counted(monkeypatch, failing=(1,))
    answer = cli("sweep", "sweep.toml", "--json")

    assert answer.code == 1
    (found,) = answer.json["results"]
    assert (found["made"], len(found["failed"]), found["missing"]) == (12, 6, 6)


def test_shards_are_disjoint_and_together_complete(scenarios: Path):
    names = name_cells(plans.plan(scenarios / "sweep.toml")).cells().keys()
    parts = [Shard(number, 5).mine(names) for number in range(1, 6)]

    assert sorted(cell for part in parts for cell in part) == sorted(names)
    assert {len(part) for part in parts} == {3, 4}


def test_shards_that_are_copied_together_are_the_sweep(cli: Cli, dataset: Path):
    for number in (1, 2, 3):
        arguments = ("sweep", "sweep.toml", "-o", f"part{number}", "--no-plots", "--json")
        answer = cli(*arguments, "--shard", f"{number}/3")
        (said,) = answer.json["results"]
        assert (answer.code, said["made"], said["missing"]) == (0, 6, 12)
        shutil.copytree(cli.directory / f"part{number}", cli.directory / "all", dirs_exist_ok=True)

    (said,) = cli("run", "sweep.toml", "-o", "all", "--no-plots", "--json").json["results"]
    assert (said["before"], said["made"]) == (18, 0)
    assert files(cli.directory / "all") == files(dataset)


@pytest.mark.parametrize("shard", ["0/3", "4/3", "1", "a/b", "1/0"])
def test_a_shard_that_is_none_is_refused(cli: Cli, shard: str):
    answer = cli("sweep", "sweep.toml", "--shard", shard)
    assert answer.code == 2
    assert "--shard takes I/N" in answer.err


def test_a_sweep_ends_with_table_and_picture(cli: Cli):
    answer = cli("sweep", "sweep.toml")

    assert answer.code == 0
    assert "NewReno+ABE" in answer.out
    assert "18 runs in" in answer.out
    assert (cli.directory / "out/sweep/plots/sweep.svg").exists()
    summary = pl.read_csv(cli.directory / "out/sweep/summary.csv")
    assert summary.height == 6
    assert cli("plot", "out/sweep", "--kind", "sweep").code == 0
    assert cli("report", "out/sweep").code == 0


def test_other_directories_are_not_written_into(cli: Cli):
    (cli.directory / "home").mkdir()
    (cli.directory / "home" / "work").touch()

    answer = cli("sweep", "sweep.toml", "-o", "home")

    assert answer.code == 2
    assert "is not a cwnd result" in answer.err
    assert [path.name for path in (cli.directory / "home").iterdir()] == ["work"]
    assert cli("sweep", "sweep.toml", "-o", "short.toml").code == 2


def test_a_second_run_finds_what_the_first_made(cli: Cli):
    assert cli("sweep", "sweep.toml").code == 0
    before = files(cli.directory / "out" / "sweep")

    answer = cli("run", "sweep.toml")

    assert answer.code == 0
    assert "18 runs there before, 0 runs in 0.00 s" in answer.out
    assert files(cli.directory / "out" / "sweep") == before
    anew = cli("run", "sweep.toml", "--again", "--json").json["results"][0]
    assert (anew["before"], anew["made"]) == (0, 18)
    assert files(cli.directory / "out" / "sweep") == before


def test_the_old_result_can_be_read_until_the_new_one_is_complete(
    copy: Path, scenarios: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    before = {name: data for name, data in files(copy).items() if name != "plots"}
    plan = plans.plan(scenarios / "sweep.toml", overrides={"flow.main.start": "0 s"})
    with monkeypatch.context() as patched:
        Counted(patched, failing=(2,))
        found = executor.fill(plan, copy, replace=True)
    assert (found.made, len(found.failed), found.missing) == (12, 6, 6)
    assert found.run is not None
    assert found.run.runs.height == 12
    assert {name: files(copy)[name] for name in before} == before
    assert cwnd.load(copy).runs.height == 18

    assert executor.fill(plan, copy, replace=True).before == 12
    fresh = executor.fill(plan, tmp_path / "fresh")
    assert fresh.run is not None
    assert files(copy) == files(tmp_path / "fresh")


def test_nothing_to_load_yet_is_said(scenarios: Path, tmp_path: Path):
    with pytest.raises(InputError, match="not a cwnd sweep"):
        Dataset.open(tmp_path)
    with pytest.raises(InputError, match="no such directory"):
        Dataset.open(tmp_path / "nowhere")


def test_the_second_writer_is_refused_and_status_says_who_the_first_is(cli: Cli):
    first = cli.start("sweep", "long.toml")
    try:
        wait_for(cli.directory / "out" / "long" / "dataset.json")
        second = cli("sweep", "long.toml")
        seen = cli("status", "out/long", "--json").json
        said = cli("status", "out/long").out
    finally:
        first.send_signal(signal.SIGINT)
        _, err = first.communicate(timeout=30)

    assert second.code == 2
    assert f"process {first.pid}" in second.err
    assert (seen["cells"], seen["done"], seen["left"]) == (1, 0, 1)
    assert [f"process {first.pid}" in writer["who"] for writer in seen["writers"]] == [True]
    assert "1 left" in said
    assert first.returncode == 130
    # Nothing was finished.
    assert "interrupted; nothing was written" in err
    assert not (cli.directory / "out").exists()


def test_shards_write_side_by_side_but_not_one_twice(cli: Cli):
    cli.write("long.toml", (cli.directory / "long.toml").read_text() + "\n[sweep]\nrepeat = 4\n")
    first = cli.start("sweep", "long.toml", "--shard", "1/2")
    second = cli.start("sweep", "long.toml", "--shard", "2/2")
    try:
        wait_for(cli.directory / "out" / "long" / "dataset.json")
        wait_until(lambda: len(status.read_status(cli.directory / "out" / "long").writers) == 2)
        again = cli("sweep", "long.toml", "--shard", "1/2")
        alone = cli("sweep", "long.toml")
    finally:
        for process in (first, second):
            process.send_signal(signal.SIGTERM)
            process.communicate(timeout=30)

    assert (again.code, alone.code) == (2, 2)


def wait_for(file: Path) -> None:
    wait_until(file.exists)


def test_status_tells_rate_and_time_left(dataset: Path, monkeypatch: pytest.MonkeyPatch):
    start = {"host": "here", "pid": 7, "threads": 2, "unix_s": 1000.0, "time": "then"}
    progress = [
        {"unix_s": 1010.0, "done": 10, "failed": 0, "fraction": 0.25},
        {"unix_s": 1020.0, "done": 30, "failed": 1, "fraction": 0.5},
    ]
    for older, rate, eta in ((False, 1.5, 20.0), (True, 2.0, 20.0)):
        past = activity.SessionLog("a", start, progress, older, None, live=True)
        monkeypatch.setattr(status, "sessions", lambda _root, past=past: [past])

        (writer,) = status.read_status(dataset, now=1020.0).writers

        assert writer.cells_per_s == rate
        assert writer.eta_s == pytest.approx(eta)


def test_outcomes_do_not_wait_for_a_slow_cell(scenarios: Path, tmp_path: Path):
    # The first cell is a million times as long as the others; more than may wait follow it.
    slow = tmp_path / "slow.toml"
    slow.write_text(
        SHORT
        + "\n[sweep]\nrepeat = 100\n[sweep.axis.duration]\n"
        + 'path = "run.duration"\nvalues = ["2000000 s", "1 s", "2 s"]\n'
        + '[sweep.axis.sample]\npath = "run.sample"\nvalues = ["none"]\n'
    )
    planned = plans.plan(slow)
    # Without the long runs but the last.
    some = _Some(planned.scenario, 99)
    plan = plans.Plan(planned.source, some, [], None)  # type: ignore[arg-type]
    begin = time.monotonic()

    def enough(now: Progress) -> None:
        if now.done == 200 or time.monotonic() > begin + 20:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        executor.fill(plan, tmp_path / "sweep", threads=2, on_progress=enough)
    assert len(Dataset.open(tmp_path / "sweep").done()) == 200


class _Some:
    """A scenario without its first runs."""

    def __init__(self, scenario: _core.Scenario, skipped: int):
        self._scenario, self._skipped = scenario, skipped

    def __getattr__(self, name: str) -> object:
        return getattr(self._scenario, name)

    @property
    def runs(self) -> int:
        return self._scenario.runs - self._skipped

    def cell(self, index: int) -> _core.Cell:
        return self._scenario.cell(index + self._skipped)

    def duration_s(self, index: int) -> float:
        return self._scenario.duration_s(index + self._skipped)
