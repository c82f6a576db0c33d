"""Sweeps that are killed, that run out of disk, and whose files are damaged afterwards."""

from __future__ import annotations

import random
import resource
import shutil
import signal
import subprocess
import time
from pathlib import Path

import pytest
from conftest import CWND, SHORT, SWEEP, Cli
from test_sweep import files

import cwnd
from cwnd.errors import CwndError, DamageError, InputError
from cwnd.files import checksums
from cwnd.results import content, heading, named
from cwnd.sweeps import cells, writer
from cwnd.sweeps.cells import FILES, Mark
from cwnd.sweeps.layout import Dataset
from cwnd.sweeps.verifying import verify
from cwnd.sweeps.writer import Writer

#: So many cells that a kill comes in the middle of them.
MANY = SWEEP.replace("repeat = 3", "repeat = 50").replace('"2 s"', '"20 s"')


@pytest.fixture(scope="module")
def dataset(scenarios: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("dataset") / "sweep"
    cwnd.sweep(scenarios / "sweep.toml", directory)
    return directory


@pytest.fixture
def copy(dataset: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(dataset, tmp_path / "copy"))


def marks(directory: Path) -> int:
    return len(list(directory.glob("runs/*/*.parquet")))


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
            while marks(killed) <= progress[-1] and process.poll() is None:
                assert time.monotonic() < end
                time.sleep(0.002)
            time.sleep(moments.uniform(0, 0.15))
        process.kill()
        process.wait()
        progress.append(marks(killed))
        # What is marked is whole, at any moment.
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


def test_ctrl_c_keeps_what_is_finished(cli: Cli):
    cli.write("sweep.toml", MANY)
    process = cli.start("sweep", "sweep.toml", "--no-plots")
    end = time.monotonic() + 20
    while not marks(cli.directory / "out/sweep"):
        assert time.monotonic() < end
        time.sleep(0.01)
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=20)

    assert process.returncode == 130
    assert "what was finished is safe, and the same command goes on" in err
    assert "Traceback" not in err
    kept = marks(cli.directory / "out/sweep")
    assert kept
    assert cli("status", "out/sweep", "--json").json["done"] == kept


def test_a_disk_that_takes_no_more_costs_nothing_that_was_finished(cli: Cli, dataset: Path):
    # The third table of a cell does not fit: no cell can be completed.
    limit = min(len(data) for name, data in files(dataset).items() if name.startswith("links/"))

    def limited() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (limit - 1, resource.RLIM_INFINITY))

    answer = cli("sweep", "sweep.toml", "-o", "a", "--no-plots", preexec_fn=limited)

    assert answer.code == 1
    assert "file too large; what was finished is safe, and the next call goes on" in answer.err
    assert marks(cli.directory / "a") == 0
    assert not list((cli.directory / "a").glob("activity/partial-*"))
    assert cli("sweep", "sweep.toml", "-o", "a", "--no-plots").code == 0
    assert files(cli.directory / "a") == files(dataset)


#: A disk of its own that is too small, then is not.
FULL = """
mkdir disk && mount -t tmpfs -o size=600k tmpfs disk || exit 42
"$1" sweep sweep.toml -o disk/a --quiet --no-plots > said 2> full; echo $? >> full
find disk/a/runs -name '*.parquet' | wc -l >> full
find disk/a/activity -name 'partial-*' | wc -l >> full
mount -o remount,size=64m disk
"$1" sweep sweep.toml -o disk/a --quiet --no-plots > said && cp -a disk/a copied
"""


def test_a_full_disk_costs_nothing_that_was_finished(cli: Cli, dataset: Path, tmp_path: Path):
    unshare = shutil.which("unshare")
    if unshare is None:
        pytest.skip("there is no unshare(1)")
    command = [unshare, "--user", "--map-root-user", "--mount", "bash", "-c", FULL, "bash", CWND]
    done = subprocess.run(command, cwd=cli.directory, check=False, timeout=60)
    if done.returncode in (1, 42):
        pytest.skip("this machine lets nobody mount a disk of his own")

    message, code, complete, partial = (cli.directory / "full").read_text().splitlines()
    assert "no space left on device; what was finished is safe" in message
    assert code == "1"
    assert 0 < int(complete) < 18
    assert partial == "0"
    assert done.returncode == 0
    assert files(cli.directory / "copied") == files(dataset)


def test_a_mark_comes_only_when_the_disk_has_the_rest(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    root, partial = tmp_path / "a", tmp_path / "a" / "partial"
    partial.mkdir(parents=True)
    seen: list[set[str]] = []

    def synced(where: Path) -> bool:
        seen.append({path.parts[-3] for path in where.glob("*/*/*.parquet")})
        return True

    monkeypatch.setattr(writer, "sync_file_system", synced)
    with Writer(root, partial) as writing:
        writing.put("c" * 32, dict.fromkeys(FILES, b"table"))

    assert seen == [set(FILES) - {"runs"}]
    assert marks(root) == 1


def test_a_disk_that_fails_while_it_is_waited_for_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    def failed(_: Path) -> bool:
        raise OSError(5, "Input/output error")

    monkeypatch.setattr(writer, "sync_file_system", failed)
    with pytest.raises(OSError, match="Input/output error"), Writer(tmp_path, tmp_path) as writing:
        writing.put("c" * 32, dict.fromkeys(FILES, b"table"))
    assert marks(tmp_path) == 0


def test_where_whole_file_systems_are_not_synchronised_files_are(
    scenarios: Path, dataset: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(writer, "sync_file_system", lambda _: False)
    cwnd.sweep(scenarios / "sweep.toml", tmp_path / "a")
    assert files(tmp_path / "a") == files(dataset)


def test_any_bit_of_a_mark_that_turns_is_noticed(dataset: Path):
    data = next(dataset.glob("runs/*/*.parquet")).read_bytes()
    assert Mark.read(data).cell_id
    for place in random.Random(3).sample(range(len(data)), 300):
        turned = bytearray(data)
        turned[place] ^= 1 << (place % 8)
        with pytest.raises(InputError):
            Mark.read(bytes(turned))


@pytest.mark.parametrize("table", FILES)
def test_verify_names_the_file_in_which_a_byte_was_turned(copy: Path, table: str):
    victim = random.Random(7).choice(sorted(copy.glob(f"{table}/*/*.parquet")))
    data = bytearray(victim.read_bytes())
    data[random.Random(8).randrange(len(data))] ^= 0x20
    victim.write_bytes(bytes(data))

    found = verify(copy, sample=0)

    assert [problem.file for problem in found.problems] == [victim]
    assert not found.sound


def test_verify_names_what_is_missing(copy: Path, cli: Cli):
    victim = sorted(copy.glob("qdelay/*/*.parquet"))[4]
    victim.unlink()

    answer = cli("sweep", "verify", copy)
    said = cli("sweep", "verify", copy, "--json").json

    assert answer.code == 1
    assert f"{victim}: missing" in answer.out
    assert [problem["file"] for problem in said["problems"]] == [str(victim)]


def test_what_verify_takes_out_the_next_sweep_computes_to_the_same_bytes(
    scenarios: Path, dataset: Path, copy: Path, cli: Cli
):
    lost = sorted(copy.glob("qdelay/*/*.parquet"))[4]
    turned = sorted(copy.glob("flows/*/*.parquet"))[2]
    lost.unlink()
    turned.write_bytes(turned.read_bytes()[:-1])

    assert "2 cells taken out" in cli("sweep", "verify", copy, "--sample", 0, "--mend").out
    cwnd.sweep(scenarios / "sweep.toml", copy)

    assert verify(copy, sample=0).sound
    assert files(copy) == files(dataset)


def test_a_result_with_a_file_too_few_is_not_loaded(copy: Path):
    sorted(copy.glob("flows/*/*.parquet"))[4].unlink()
    with pytest.raises(DamageError, match="`cwnd sweep verify"):
        cwnd.load(copy)


def test_verify_says_how_many_cells_are_not_there(copy: Path, cli: Cli):
    sorted(copy.glob("runs/*/*.parquet"))[4].unlink()

    answer = cli("sweep", "verify", copy, "--sample", 2)

    assert answer.code == 1
    assert "1 cells are not there" in answer.out


def test_verify_computes_again_what_was_forged(copy: Path):
    # A cell that another seed gave, with hashes that are right.
    dataset = Dataset.open(copy)
    victim = sorted(dataset.done())[3]
    text = Mark.read(dataset.file("runs", victim).read_bytes()).text
    other = text.replace("seed = ", "seed = 10")
    true, false = (cells._core.parse(each, name="a.toml").cell(0) for each in (text, other))
    for table, data in cells.encode(text, true, false.run()).items():
        dataset.file(table, victim).write_bytes(data)

    assert verify(copy, sample=0).problems == []
    named = {problem.file for problem in verify(copy, sample=18).problems}

    assert dataset.file("flows", victim) in named
    assert {file.stem for file in named} == {victim}


def test_another_writer_of_parquet_gives_other_bytes_and_the_same_values(
    copy: Path, monkeypatch: pytest.MonkeyPatch
):
    # As if all of it had been written by another version.
    monkeypatch.setattr(cells.pl, "__version__", "0.0.1")
    monkeypatch.setattr(cells, "_ROW_GROUP", 16)
    for mark in sorted(copy.glob("runs/*/*.parquet"))[:4]:
        text = Mark.read(mark.read_bytes()).text
        outcome = cells.attempt(text)
        assert outcome.files is not None
        for table, data in outcome.files.items():
            Dataset.open(copy).file(table, mark.stem).write_bytes(data)
    monkeypatch.undo()

    assert verify(copy, sample=18).sound


def test_another_simulator_cannot_verify(copy: Path):
    info = copy / "dataset.json"
    other = info.read_bytes().replace(b'"engine": "', b'"engine": "0.0.1-')
    info.write_bytes(checksums.signed(other))
    with pytest.raises(InputError, match="it cannot compute the same; --sample 0"):
        verify(copy)


def test_a_damaged_plan_is_told_and_mended_by_the_next_call(
    copy: Path, dataset: Path, scenarios: Path
):
    (copy / "plan.parquet").write_bytes(b"PAR1 of nothing")
    with pytest.raises(DamageError, match=r"plan\.parquet: damaged"):
        cwnd.load(copy)

    cwnd.sweep(scenarios / "sweep.toml", copy)

    assert files(copy) == files(dataset)


def test_a_disk_that_cannot_be_written_is_a_failure_in_words(
    scenarios: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    def full(self: Writer, _cell: str, _files: object) -> None:
        raise OSError(28, "No space left on device", str(tmp_path / "a"))

    monkeypatch.setattr(Writer, "put", full)
    with pytest.raises(CwndError, match="no space left on device; what was finished is safe"):
        cwnd.sweep(scenarios / "sweep.toml", tmp_path / "a")


def test_cells_are_computed_alike_from_their_scenario_alone():
    cell = cells._core.parse(SHORT, name="short.toml").cell(0)
    text = content(cell.resolved)
    again = cells.attempt(text)

    assert cells.encode(text, cell, cell.run()) == again.files
    assert named(text, heading(cell.resolved)) == cell.resolved
