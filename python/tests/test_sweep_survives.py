"""Sweeps that are killed, that run out of disk, and whose files are damaged afterwards."""

from __future__ import annotations

import json
import random
import resource
import shutil
import signal
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import polars as pl
import pytest
from conftest import CWND, SHORT, SWEEP, Cli
from test_sweep import Counted, files, older, relist

import cwnd
from cwnd.errors import CwndError, DamageError, InputError
from cwnd.files import checksums
from cwnd.running import cells, executor, plans
from cwnd.running.verifying import verify
from cwnd.store import content, heading, journal, named, packing, write
from cwnd.store.dataset import is_packed
from cwnd.store.journal import Writer, frames
from cwnd.store.layout import TABLES
from cwnd.store.tables import Batch, BatchBuilder

#: A sweep with enough cells that a kill comes in the middle of them.
MANY = SWEEP.replace("repeat = 3", "repeat = 50").replace('"2 s"', '"80 s"')


@pytest.fixture(scope="module")
def dataset(scenarios: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("dataset") / "sweep"
    cwnd.sweep(scenarios / "sweep.toml", directory)
    return directory


@pytest.fixture
def copy(dataset: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(dataset, tmp_path / "copy"))


@pytest.fixture
def part(scenarios: Path, tmp_path: Path) -> Path:
    """A sweep that lacks one cell."""
    executor.fill(plans.plan(scenarios / "sweep.toml"), tmp_path / "part", only=range(17))
    return tmp_path / "part"


def done(directory: Path) -> int:
    """Counts the cells that are safe."""
    if is_packed(directory):
        return len(packing.cells_of(directory))
    return len({cell for frame in frames(directory / "journal") for cell in frame.cells})


def test_a_sweep_that_is_killed_again_and_again_ends_up_the_same(cli: Cli):
    cli.write("sweep.toml", MANY)
    command = [CWND, "sweep", "sweep.toml", "-o", "killed", "--quiet", "--no-plots"]
    killed = cli.directory / "killed"
    moments = random.Random(5)
    progress = [0]
    for kill in range(5):
        process = subprocess.Popen(command, cwd=cli.directory, stdout=subprocess.DEVNULL)
        if kill % 3 == 0:
            # Anywhere: while it starts, while it plans, while it runs.
            time.sleep(moments.uniform(0.2, 1.2))
        else:
            # In the midst of its work.
            end = time.monotonic() + 20
            while done(killed) <= progress[-1] and process.poll() is None:
                assert time.monotonic() < end
                time.sleep(0.002)
            time.sleep(moments.uniform(0, 0.15))
        process.kill()
        process.wait()
        progress.append(done(killed))
        # What is safe is whole, at any moment.
        if progress[-1]:
            assert verify(killed, sample=2, seed=kill).problems == []
    assert progress == sorted(progress)
    # A fast machine may be done before the last kill.
    amid = [done for done in progress if 0 < done < 300]
    assert amid, f"kills came too early or too late: {progress}"

    assert subprocess.run(command, cwd=cli.directory, check=False).returncode == 0

    cwnd.sweep(cli.directory / "sweep.toml", cli.directory / "whole")
    assert files(killed) == files(cli.directory / "whole")
    assert not list(killed.glob("activity/partial-*"))
    assert not (killed / "journal").exists()


def test_ctrl_c_keeps_what_is_finished(cli: Cli):
    cli.write("sweep.toml", MANY)
    process = cli.start("sweep", "sweep.toml", "--no-plots")
    end = time.monotonic() + 20
    while not done(cli.directory / "out/sweep"):
        assert time.monotonic() < end
        time.sleep(0.01)
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=20)

    assert process.returncode == 130
    assert "what was finished is safe, and the same command goes on" in err
    assert "Traceback" not in err
    kept = done(cli.directory / "out/sweep")
    assert kept
    assert cli("status", "out/sweep", "--json").json["done"] == kept


def test_a_disk_that_takes_no_more_costs_nothing_that_was_finished(cli: Cli, dataset: Path):
    # What describes the sweep fits, and no cell.
    limit = 8 << 10

    def limited() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (limit, resource.RLIM_INFINITY))

    answer = cli("sweep", "sweep.toml", "-o", "a", "--no-plots", preexec_fn=limited)

    assert answer.code == 1
    assert answer.err.rstrip().endswith(": file too large"), "nothing was finished"
    assert done(cli.directory / "a") == 0
    assert not list((cli.directory / "a").glob("activity/partial-*"))
    assert cli("sweep", "sweep.toml", "-o", "a", "--no-plots").code == 0
    assert files(cli.directory / "a") == files(dataset)


#: A disk of its own that is too small, then is not.
FULL = """
mkdir disk && mount -t tmpfs -o size=1m tmpfs disk || exit 42
"$1" sweep sweep.toml -o disk/a --quiet --no-plots > said 2> full; echo $? >> full
"$1" status disk/a --json > status
find disk/a/activity -name 'partial-*' | wc -l >> full
mount -o remount,size=64m disk
"$1" sweep sweep.toml -o disk/a --quiet --no-plots > said && cp -a disk/a copied
"""


def test_a_full_disk_costs_nothing_that_was_finished(cli: Cli):
    unshare = shutil.which("unshare")
    if unshare is None:
        pytest.skip("there is no unshare(1)")
    cli.write("sweep.toml", MANY)
    command = [unshare, "--user", "--map-root-user", "--mount", "bash", "-c", FULL, "bash", CWND]
    ended = subprocess.run(command, cwd=cli.directory, check=False, timeout=60)
    if ended.returncode in (1, 42):
        pytest.skip("this machine lets nobody mount a disk of his own")

    message, code, partial = (cli.directory / "full").read_text().splitlines()
    assert "no space left on device; what was finished is safe" in message
    assert code == "1"
    assert 0 < json.loads((cli.directory / "status").read_text())["done"] < 300
    assert partial == "0"
    assert ended.returncode == 0
    cwnd.sweep(cli.directory / "sweep.toml", cli.directory / "whole")
    assert files(cli.directory / "copied") == files(cli.directory / "whole")


def test_an_error_is_forgotten_only_when_the_disk_has_the_cell(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    error = tmp_path / "errors" / "cell.json"
    error.parent.mkdir()
    error.touch()
    seen: list[bool] = []
    synchronise = journal.os.fdatasync

    def synced(descriptor: int) -> None:
        seen.append(error.exists())
        synchronise(descriptor)

    monkeypatch.setattr(journal.os, "fdatasync", synced)
    with Writer(tmp_path, "a", tmp_path, "engine") as writing:
        writing.put(Batch(["cell"], [1], b"tables"))

    assert seen == [True]
    assert not error.exists()
    assert done(tmp_path) == 1


def test_a_disk_that_fails_while_it_is_waited_for_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    def failed(_: int) -> None:
        raise OSError(5, "Input/output error")

    monkeypatch.setattr(journal.os, "fdatasync", failed)
    with (
        pytest.raises(OSError, match="Input/output error"),
        Writer(tmp_path, "a", tmp_path, "engine") as writing,
    ):
        writing.put(Batch(["cell"], [1], b"tables"))
    assert done(tmp_path) == 0


def test_any_bit_of_a_journal_that_turns_is_noticed(part: Path):
    (file,) = (part / "journal").iterdir()
    data = file.read_bytes()
    for place in random.Random(3).sample(range(len(data)), 60):
        turned = bytearray(data)
        turned[place] ^= 1 << (place % 8)
        file.write_bytes(turned)
        found = verify(part, sample=0)
        assert found.problems or found.missing > 1
    file.write_bytes(data)
    assert verify(part, sample=0).missing == 1


def test_a_damaged_frame_is_named_taken_out_and_computed_again(
    part: Path, dataset: Path, scenarios: Path
):
    (file,) = (part / "journal").iterdir()
    data = bytearray(file.read_bytes())
    data[-7] ^= 1
    file.write_bytes(data)
    with pytest.raises(DamageError, match="damaged: it is not what was written"):
        cwnd.load(part)
    found = verify(part, sample=0, mend=True)
    assert [problem.file for problem in found.problems] == [file]
    assert found.mended == found.missing - 1 > 0
    assert verify(part, sample=0).problems == []

    cwnd.sweep(scenarios / "sweep.toml", part)

    assert files(part) == files(dataset)


def test_a_damaged_frame_is_computed_again_without_being_taken_out(
    part: Path, dataset: Path, scenarios: Path
):
    (file,) = (part / "journal").iterdir()
    file.write_bytes(file.read_bytes()[:-7])
    cwnd.sweep(scenarios / "sweep.toml", part)
    assert files(part) == files(dataset)


@pytest.mark.parametrize("table", TABLES)
def test_verify_names_the_file_in_which_a_byte_was_turned(copy: Path, table: str):
    victim = copy / f"{table}.parquet"
    data = bytearray(victim.read_bytes())
    data[random.Random(8).randrange(len(data))] ^= 0x20
    victim.write_bytes(bytes(data))

    found = verify(copy, sample=0)

    assert [problem.file for problem in found.problems] == [victim]
    assert not found.sound


def test_verify_names_what_is_missing(copy: Path, cli: Cli):
    victim = copy / "qdelay.parquet"
    victim.unlink()

    answer = cli("sweep", "verify", copy)
    said = cli("sweep", "verify", copy, "--json").json

    assert answer.code == 1
    assert f"{victim}: missing" in answer.out
    assert [problem["file"] for problem in said["problems"]] == [str(victim)]


def test_what_verify_takes_out_the_next_sweep_computes_to_the_same_bytes(
    scenarios: Path, dataset: Path, copy: Path, cli: Cli
):
    (copy / "qdelay.parquet").unlink()
    turned = copy / "flows.parquet"
    turned.write_bytes(turned.read_bytes()[:-1])

    assert "18 cells taken out" in cli("sweep", "verify", copy, "--sample", 0, "--mend").out
    cwnd.sweep(scenarios / "sweep.toml", copy)

    assert verify(copy, sample=0).sound
    assert files(copy) == files(dataset)


def test_a_result_with_a_file_too_few_is_not_loaded(copy: Path):
    (copy / "flows.parquet").unlink()
    with pytest.raises(DamageError, match="`cwnd verify --mend"):
        cwnd.load(copy)


def test_verify_says_how_many_cells_are_not_there(part: Path, cli: Cli):
    answer = cli("sweep", "verify", part, "--sample", 2)

    assert answer.code == 1
    assert "1 cells are not there" in answer.out
    assert verify(part, sample=17).problems == []


def test_verify_computes_again_what_was_forged(copy: Path):
    # A cell has the flows of another seed, with hashes that are right.
    file = copy / "flows.parquet"
    flows = pl.read_parquet(file)
    runs = flows["run_id"].unique(maintain_order=True).to_list()
    forged = flows.filter(pl.col("run_id") == runs[4]).with_columns(
        run_id=pl.lit(runs[3]), seed=pl.lit(1, pl.UInt64)
    )
    pl.concat([flows.filter(pl.col("run_id") != runs[3]), forged]).write_parquet(file)
    relist(file)

    assert verify(copy, sample=0).problems == []
    (problem,) = verify(copy, sample=18).problems

    assert problem.file == file


def test_another_writer_of_parquet_gives_other_bytes_and_the_same_values(copy: Path):
    for table in TABLES:
        file = copy / f"{table}.parquet"
        before = file.read_bytes()
        pl.read_parquet(file).write_parquet(file, row_group_size=16, compression="lz4")
        assert file.read_bytes() != before or table in ("requests", "sketches", "unrecorded")
        relist(file)

    assert verify(copy, sample=18).sound


def test_another_simulator_cannot_verify(copy: Path):
    older(copy / "manifest.json")
    with pytest.raises(InputError, match="it cannot compute the same; --sample 0"):
        verify(copy, sample=16)
    # Unasked, nothing is computed again.
    assert verify(copy).recomputed == 0


@pytest.mark.parametrize("name", ["manifest.json", "summary.csv", "scenario.toml"])
def test_a_damaged_description_is_told_and_mended_by_the_next_call(
    copy: Path, dataset: Path, scenarios: Path, name: str, monkeypatch: pytest.MonkeyPatch
):
    counted = Counted(monkeypatch)
    (copy / name).write_bytes(b"nothing")
    found = verify(copy, sample=0, mend=True)
    assert [problem.file for problem in found.problems] == [copy / name]
    assert found.mended == 0

    cwnd.sweep(scenarios / "sweep.toml", copy)

    assert files(copy) == files(dataset)
    assert counted.seeds == []


def test_cells_without_their_hashes_are_computed_again_only_when_they_are_taken_out(
    copy: Path, dataset: Path, scenarios: Path
):
    (copy / checksums.SUMS).unlink()
    left = files(copy)
    with pytest.raises(DamageError, match=r"SHA256SUMS: missing.*verify --mend"):
        cwnd.sweep(scenarios / "sweep.toml", copy)
    assert files(copy) == left

    assert verify(copy, sample=0, mend=True).mended == 18
    cwnd.sweep(scenarios / "sweep.toml", copy)

    assert files(copy) == files(dataset)


def test_a_damaged_plan_is_told_and_mended_by_the_next_call(
    part: Path, dataset: Path, scenarios: Path
):
    (part / "plan.parquet").write_bytes(b"PAR1 of nothing")
    with pytest.raises(DamageError, match=r"plan\.parquet: damaged"):
        cwnd.load(part)

    cwnd.sweep(scenarios / "sweep.toml", part)

    assert files(part) == files(dataset)


def test_a_disk_that_cannot_be_written_is_a_failure_in_words(
    scenarios: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    def full(*_: object, **__: object) -> None:
        raise OSError(28, "No space left on device", str(tmp_path / "a"))

    monkeypatch.setattr(journal.Journal, "append", full)
    monkeypatch.setattr(write, "write_into", full)
    with pytest.raises(CwndError, match=r"no space left on device$"):
        cwnd.sweep(scenarios / "sweep.toml", tmp_path / "a")


class Killed(BaseException):
    """Stands for SIGKILL: `except Exception` does not catch it."""


@pytest.mark.parametrize("longer", [False, True])
def test_a_kill_at_any_step_of_packing_costs_no_cell(
    longer: bool,
    dataset: Path,
    part: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
):
    scenario = tmp_path / "scenario.toml"
    scenario.write_text(SWEEP)
    if longer:
        # First the result becomes a journal again.
        part = dataset
        scenario.write_text(SWEEP.replace('"40 ms"]', '"40 ms", "80 ms"]'))
        cwnd.sweep(scenario, tmp_path / "expected")
    expected = files(tmp_path / "expected" if longer else dataset)
    counted = Counted(monkeypatch)
    step = kills = 0
    while True:
        step += 1
        place = Path(shutil.copytree(part, tmp_path / f"{step}"))
        left = [step]
        with monkeypatch.context() as patched:
            for owner, name in ((Path, "rename"), (Path, "unlink"), (shutil, "rmtree")):
                patched.setattr(owner, name, _killing(getattr(owner, name), left, place))
            try:
                cwnd.sweep(scenario, place)
            except Killed:
                kills += 1
        before = len(counted.seeds)
        cwnd.sweep(scenario, place)
        # A kill may come before cells were computed, never between them and the journal.
        assert len(counted.seeds) - before in (0, 6 if longer else 1)
        assert files(place) == expected, step
        shutil.rmtree(place)
        if left[0] > 0:
            break
    assert kills > 10


def _killing(call: Callable[..., object], left: list[int], place: Path) -> Callable[..., object]:
    def one(path: Path, *arguments: object, **options: object) -> object:
        if Path(path).is_relative_to(place) and left[0] > 0:
            left[0] -= 1
            if left[0] == 0:
                raise Killed
        return call(path, *arguments, **options)

    return one


def test_cells_are_computed_alike_from_their_scenario_alone():
    cell = cells._core.parse(SHORT, name="short.toml").cell(0)
    text = content(cell.resolved)
    bodies = []
    for outcome in (cells.attempt(text, cell), cells.attempt(text)):
        assert outcome.made is not None
        finished = BatchBuilder(cells._core.engine)
        finished.add(*outcome.made)
        bodies.append(finished.take().packed())

    assert bodies[0] == bodies[1]
    assert named(text, heading(cell.resolved)) == cell.resolved
