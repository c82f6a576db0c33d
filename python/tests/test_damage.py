"""Numbers that are read are those that were written, or there is an error that names the file."""

from __future__ import annotations

import json
import os
import random
import shutil
import subprocess
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from conftest import Cli

import cwnd
from cwnd import plots, report
from cwnd.errors import DamageError, InputError, UncheckedWarning
from cwnd.files import checksums
from cwnd.results import compare
from cwnd.running import executor, plans, verify
from cwnd.store import sql
from cwnd.store.dataset import Dataset
from cwnd.store.layout import TABLES
from cwnd.store.status import read_status

#: Loads of each kind of result.
LOADS = 60


def everything(path: Path) -> object:
    """All numbers that a result gives, however it is asked for them."""
    run = cwnd.load(path)
    return numbers(run)


def numbers(run: cwnd.Run) -> object:
    tables = [getattr(run, name).write_json() for name in TABLES]
    return [run.manifest, run.source, list(run.resolved), *tables]


def loaded_from_disk(path: Path) -> object:
    return numbers(cwnd.load(path, samples_on_disk=True))


def reported(path: Path) -> object:
    return report.html([cwnd.load(path, samples_on_disk=True)])


def plotted(path: Path) -> object:
    run = cwnd.load(path, samples_on_disk=True)
    return [repr(plots.describe(run, kind)) for kind in plots.default_kinds(run)]


def compared(path: Path) -> object:
    runs = [cwnd.load(path, samples_on_disk=True) for _ in range(2)]
    return compare(runs[0], runs[1]).to_json()


def asked(path: Path) -> object:
    order = "select * from {} order by all"
    is_old = Dataset.is_at(path) and Dataset.open(path).is_old
    tables = [name for name in TABLES if not (is_old and name in ("reasons", "delays"))]
    return [sql.query(path, order.format(name)).write_json() for name in tables]


def summed(path: Path) -> object:
    return sql.query(path, "select sum(goodput_bit_s), count(*) from Flows").rows()


READERS = (everything, loaded_from_disk, reported, plotted, compared, asked, summed)


@pytest.fixture(scope="session")
def small(tmp_path_factory: pytest.TempPathFactory, scenarios: Path) -> dict[str, Path]:
    """A run and sweeps of two seeds: one that is complete, one that lacks a run, an old one."""
    place = tmp_path_factory.mktemp("small")
    scenario = place / "two.toml"
    scenario.write_text(
        (scenarios / "short.toml").read_text() + "\n[sweep]\nrepeat = 2\n", encoding="utf-8"
    )
    cwnd.run(scenario).save(place / "run", plots=False)
    cwnd.sweep(scenario, place / "sweep")
    executor.fill(plans.plan(scenario), place / "part", only=[0])
    return {
        "run": place / "run",
        "sweep": place / "sweep",
        "part": place / "part",
        "old": Path(__file__).parent / "data" / "v1" / "sweep",
    }


@pytest.fixture(params=["sweep", "part", "old"])
def result(request: pytest.FixtureRequest, small: dict[str, Path], tmp_path: Path) -> Path:
    return Path(shutil.copytree(small[request.param], tmp_path / request.param))


@pytest.fixture(params=["sweep", "old"])
def complete(request: pytest.FixtureRequest, small: dict[str, Path], tmp_path: Path) -> Path:
    return Path(shutil.copytree(small[request.param], tmp_path / request.param))


def of_flows(path: Path) -> Path:
    """A file that has flows."""
    there = files(path)
    return next(file for file in there if "flows" in str(file) or file.parent.name == "journal")


def files(path: Path) -> list[Path]:
    return sorted(file for file in path.rglob("*") if file.is_file() and file.name != "lock")


def named(error: DamageError, path: Path) -> Path:
    """The file that an error names, which says in one line what is wrong and what to do."""
    assert error.file.is_relative_to(path)
    assert "cwnd" in error.remedy
    assert len(str(error).splitlines()) == 1
    return error.file


def told(reader: Callable[[Path], object], path: Path) -> object:
    """Returns the result of a reader, or the file that its error or warning names."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            found = reader(path)
        except DamageError as error:
            return named(error, path)
    for each in caught:
        assert each.category is UncheckedWarning
        return Path(str(each.message).partition(": ")[0])
    return found


def damages(path: Path, count: int) -> Iterator[tuple[Path, Callable[[bytes], bytes]]]:
    """Files, each as often as the others, and what becomes of their content."""
    chance = random.Random(1)
    there = files(path)
    for number in range(count):
        file = there[number % len(there)]

        def flip(data: bytes) -> bytes:
            turned = bytearray(data)
            turned[chance.randrange(len(data))] ^= 1 << chance.randrange(8)
            return bytes(turned)

        def cut(data: bytes) -> bytes:
            return data[: chance.randrange(len(data))]

        # A log or a journal that ends early is that of a writer that was killed.
        cuts = number // len(there) % 4 == 3 and file.parent.name not in ("activity", "journal")
        if file.stat().st_size:
            yield file, cut if cuts else flip


def test_a_run_has_the_tables_of_a_sweep_which_the_other_tests_damage(small: dict[str, Path]):
    run, sweep = (
        {file.relative_to(small[kind]): file.read_bytes() for file in files(small[kind])}
        for kind in ("run", "sweep")
    )
    # A run that was in memory has the machine and its times in the manifest, a sweep in activity/.
    apart = (Path("manifest.json"), Path(checksums.SUMS))
    assert run.keys() == {file for file in sweep if file.parent.name != "activity"}
    assert len(run) > 8
    assert all(run[file] == sweep[file] for file in run if file not in apart)


@pytest.mark.parametrize("name", ["manifest.json", checksums.SUMS])
def test_a_bit_that_turns_in_what_a_run_has_of_its_own_is_noticed(
    small: dict[str, Path], tmp_path: Path, name: str
):
    run = Path(shutil.copytree(small["run"], tmp_path / "run"))
    data = (run / name).read_bytes()
    draw = random.Random(name)
    for _ in range(30):
        turned = bytearray(data)
        turned[draw.randrange(len(data))] ^= 1 << draw.randrange(8)
        (run / name).write_bytes(turned)
        assert isinstance(told(everything, run), Path)


def test_a_bit_that_turns_changes_no_number_unnoticed(result: Path):
    sound = {reader: told(reader, result) for reader in READERS}
    assert not any(isinstance(each, Path) for each in sound.values())
    loads = noticed = 0
    readers = [everything, loaded_from_disk]
    while loads < LOADS:
        for file, damage in damages(result, LOADS):
            data = file.read_bytes()
            file.write_bytes(damage(data))
            reader = readers[loads % len(readers)]
            found = told(reader, result)
            file.write_bytes(data)
            loads += 1
            if isinstance(found, Path):
                assert found in (file, result / checksums.SUMS)
                noticed += 1
            else:
                assert found == sound[reader], (file, reader)
    # Nothing reads the summary, which is for spreadsheets, nor the list of a sweep.
    assert noticed > 0.8 * loads


@pytest.mark.parametrize("reader", READERS)
def test_every_reader_notices_what_it_reads(result: Path, reader: Callable[[Path], object]):
    sound = told(reader, result)
    noticed = set()
    for file, damage in damages(result, len(files(result))):
        data = file.read_bytes()
        file.write_bytes(damage(data))
        found = told(reader, result)
        file.write_bytes(data)
        if isinstance(found, Path):
            noticed.add(file)
        else:
            assert found == sound, file
    assert {file.suffix for file in noticed} >= {".parquet", ".json"}
    if (result / "journal").exists():
        assert any(file.parent.name == "journal" for file in noticed)
    assert told(reader, result) == sound


def remove(file: Path, other: Path) -> None:
    file.unlink()


def add_a_byte(file: Path, other: Path) -> None:
    file.write_bytes(file.read_bytes() + b"\0")


def empty(file: Path, other: Path) -> None:
    file.write_bytes(b"")


def put_another_there(file: Path, other: Path) -> None:
    file.write_bytes(other.read_bytes())


def make_a_pipe(file: Path, other: Path) -> None:
    file.unlink()
    os.mkfifo(file)


def make_a_directory(file: Path, other: Path) -> None:
    file.unlink()
    file.mkdir()


@pytest.mark.parametrize(
    "damage", [remove, add_a_byte, empty, put_another_there, make_a_pipe, make_a_directory]
)
def test_other_damage_is_named_too(result: Path, damage: Callable[[Path, Path], None]):
    kept = result.with_name("kept")
    shutil.copytree(result, kept)
    for file in [each for each in files(result) if each.suffix == ".parquet"]:
        if damage is remove and file.parent.parent.name == "runs":
            continue  # a cell without its mark is one that is not computed yet
        others = [each for each in files(kept) if each.read_bytes() != file.read_bytes()]
        alike = [each for each in others if each.parent.parent.name == file.parent.parent.name]
        # Tables without a row are the same in all cells.
        damage(file, (alike or others)[0])
        for reader in (everything, asked):
            found = told(reader, result)
            assert isinstance(found, Path), (file, reader)
            # A mark of another cell is found out by the files that are beside it.
            assert found == file or found.name == file.name
        shutil.rmtree(file) if file.is_dir() else file.unlink(missing_ok=True)
        shutil.copy(kept / file.relative_to(result), file)


def test_a_file_that_may_not_be_read_is_named(result: Path, monkeypatch: pytest.MonkeyPatch):
    opened = os.open
    victim = of_flows(result)

    def refuse(path: Any, *arguments: Any, **options: Any) -> int:
        if str(path) == str(victim):
            raise PermissionError(13, "Permission denied", str(path))
        return opened(path, *arguments, **options)

    monkeypatch.setattr(os, "open", refuse)
    with pytest.raises(DamageError, match=rf"{victim.name}: cannot be read \(permission denied\)"):
        cwnd.load(result)


def test_two_marks_that_changed_places_are_noticed(small: dict[str, Path], tmp_path: Path):
    sweep = Path(shutil.copytree(small["old"], tmp_path / "sweep"))
    one, two = sorted(sweep.glob("runs/*/*.parquet"))
    data = one.read_bytes(), two.read_bytes()
    one.write_bytes(data[1])
    two.write_bytes(data[0])
    for reader in READERS:
        assert isinstance(told(reader, sweep), Path), reader


def test_a_damaged_description_of_a_sweep_is_named_by_status(
    small: dict[str, Path], tmp_path: Path
):
    sweep = Path(shutil.copytree(small["part"], tmp_path / "sweep"))
    file = sweep / "dataset.json"
    file.write_bytes(file.read_bytes().replace(b'"runs": 2', b'"runs": 3'))
    with pytest.raises(DamageError, match=r"dataset\.json: damaged.*cwnd run SCENARIO -o"):
        read_status(sweep)


def test_verify_names_all_that_is_damaged(result: Path, cli: Cli):
    assert cli("verify", result, "--sample", 0, "--json").json["results"][0]["problems"] == []
    damaged = [file for file in files(result) if file.name.endswith(".parquet")][:2]
    if (result / "summary.csv").exists():
        damaged.append(result / "summary.csv")
    for file in damaged:
        file.write_bytes(file.read_bytes() + b" ")

    answer = cli("verify", result, "--sample", 0)
    found = cli("verify", result, "--sample", 0, "--json").json["results"][0]

    assert answer.code == 1
    assert {problem["file"] for problem in found["problems"]} == {str(each) for each in damaged}
    for file in damaged:
        assert f"{file}: damaged" in answer.out


def test_what_is_damaged_is_one_error_on_the_command_line(result: Path, cli: Cli):
    victim = of_flows(result)
    victim.write_bytes(victim.read_bytes()[:-100] + bytes(100))
    other = result.with_name("other")
    shutil.copytree(result, other)
    for arguments in (
        ["plot", result],
        ["report", result],
        ["compare", result, other],
        ["query", result, "select count(*) from flows"],
    ):
        answer = cli(*arguments)
        assert answer.code == 2, answer
        assert answer.err.startswith(f"error: {victim}: damaged")
        assert len(answer.err.splitlines()) == 1
        assert answer.out == ""


def test_sha256sum_reads_the_list(complete: Path):
    listed = (complete / checksums.SUMS).read_text()
    assert "summary.csv" in listed
    subprocess.run(["sha256sum", "--check", "--strict", checksums.SUMS], cwd=complete, check=True)


def test_a_result_that_has_no_checksums_yet_is_read_with_a_note(
    small: dict[str, Path], tmp_path: Path, cli: Cli
):
    run = Path(shutil.copytree(small["run"], tmp_path / "run"))
    (run / checksums.SUMS).unlink()
    with pytest.raises(DamageError, match="SHA256SUMS: missing"):
        cwnd.load(run)
    manifest = json.loads((run / "manifest.json").read_text())
    del manifest["checksums"]
    (run / "manifest.json").write_text(json.dumps(manifest))

    with pytest.warns(UncheckedWarning, match="written before results had checksums") as notes:
        again = [cwnd.load(run) for _ in range(2)]

    assert len(notes) == 1
    assert again[0].flows.height == cwnd.load(small["run"]).flows.height
    answer = cli("verify", run)
    assert answer.code == 1
    assert "SHA256SUMS: missing" in answer.out
    assert "warning: " in cli("compare", run, run).err


def test_a_sweep_is_damaged_only_where_it_is_read(small: dict[str, Path], tmp_path: Path):
    sweep = Path(shutil.copytree(small["old"], tmp_path / "sweep"))
    # The columns are read from the tables of the first run.
    cell = pl.read_parquet(sweep / "plan.parquet")["cell_id"][-1]
    (victim,) = sweep.glob(f"series/*/{cell}.parquet")
    victim.write_bytes(b"")

    run = cwnd.load(sweep)
    found = [
        told(
            lambda _, one=each: run.samples_of("series", [one]).collect(),  # type: ignore[misc]
            sweep,
        )
        for each in run.runs["run_id"]
    ]

    assert [isinstance(each, pl.DataFrame) for each in found] == [True, False]
    with pytest.raises(DamageError, match="--replan"):
        _ = run.series
    # Nobody would compute what was taken out.
    with pytest.raises(InputError, match=r"not mended.*--replan"):
        verify(sweep, sample=0, mend=True)
    assert verify(sweep, sample=0).checked == len(run.runs)


def test_a_file_is_hashed_once_in_a_process(
    small: dict[str, Path], monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(checksums, "_RACY_NS", 0)
    cwnd.load(small["run"])
    sizes: list[int] = []
    original = os.read

    def read(descriptor: int, size: int) -> bytes:
        sizes.append(size)
        return original(descriptor, size)

    monkeypatch.setattr(os, "read", read)
    cwnd.load(small["run"])
    assert sizes
    assert checksums._CHUNK not in sizes


def test_runs_that_were_saved_are_cells(short: cwnd.Run, tmp_path: Path, cli: Cli):
    saved = short.save(tmp_path / "saved", plots=False)
    answer = cli("verify", saved)
    assert answer.out == f"{saved}: 1 cells compared with their hashes, 1 computed again: sound\n"


def test_what_is_no_result_cannot_be_verified(small: dict[str, Path]):
    with pytest.raises(InputError, match=r"scenario\.toml: not a directory; give the directory"):
        verify(small["run"] / "scenario.toml")
    with pytest.raises(InputError, match="there is no such directory"):
        verify("nowhere")
