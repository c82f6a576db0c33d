"""A result directory is complete or not there; a second run replaces only what cwnd wrote."""

from __future__ import annotations

import errno
import hashlib
import os
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

import duckdb
import polars as pl
import pytest
from conftest import SHORT, Cli
from polars.testing import assert_frame_equal

import cwnd
from cwnd.errors import CwndError, DamageError, InputError
from cwnd.files import Sums, atomic, checksums, read_object
from cwnd.running import executor, verify
from cwnd.store import assembly, read, write
from cwnd.store.layout import TABLES


def test_what_is_saved_is_loaded(sweep: cwnd.Run, tmp_path: Path):
    sweep.save(tmp_path / "result", plots=False)

    again = cwnd.Run.load(tmp_path / "result")

    for name in TABLES:
        assert_frame_equal(getattr(again, name), getattr(sweep, name))
    assert again.manifest == sweep.manifest
    assert again.source == sweep.source
    assert list(again.resolved) == list(sweep.resolved)


def test_resolved_scenarios_are_written_and_read_in_blocks(
    sweep: cwnd.Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    for module in (write, read):
        monkeypatch.setattr(module, "TEXTS", 4)

    target = sweep.save(tmp_path / "result", plots=False)

    groups = duckdb.execute(
        "select distinct row_group_id, row_group_num_rows from parquet_metadata(?) order by all",
        [str(target / "runs.parquet")],
    ).fetchall()
    assert [rows for _, rows in groups] == [4, 4, 4, 4, 2]
    assert list(cwnd.Run.load(target).resolved) == list(sweep.resolved)


def test_the_summary_is_there_for_a_spreadsheet(sweep: cwnd.Run, tmp_path: Path):
    sweep.save(tmp_path / "result", plots=False)

    summary = pl.read_csv(tmp_path / "result" / "summary.csv")

    assert summary.height == 6
    assert {"arm", "rtt", "n", "goodput_bit_s", "goodput_bit_s_ci95"} <= set(summary.columns)


def test_parquet_is_compressed_with_zstd(short: cwnd.Run, tmp_path: Path):
    parquet = pytest.importorskip("pyarrow.parquet")
    short.save(tmp_path / "result", plots=False)

    for name in TABLES:
        metadata = parquet.ParquetFile(tmp_path / "result" / f"{name}.parquet").metadata
        if metadata.num_rows:
            assert metadata.row_group(0).column(0).compression == "ZSTD"


def test_a_block_that_fails_leaves_nothing(tmp_path: Path):
    with pytest.raises(ZeroDivisionError), atomic.atomic_directory(tmp_path / "a") as place:
        (place / "half").write_text("half")
        1 / 0  # noqa: B018

    assert list(tmp_path.iterdir()) == []


def test_a_block_that_fails_leaves_the_old_result(short: cwnd.Run, tmp_path: Path):
    target = short.save(tmp_path / "a", plots=False)

    with pytest.raises(ZeroDivisionError), atomic.atomic_directory(target) as place:
        (place / "half").write_text("half")
        1 / 0  # noqa: B018

    assert cwnd.Run.load(target).manifest == short.manifest
    assert [path.name for path in tmp_path.iterdir()] == ["a"]


def test_without_an_exchange_of_names_the_old_result_is_moved_aside(
    short: cwnd.Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(atomic, "_exchange", lambda _a, _b: False)
    short.save(tmp_path / "a", plots=False)
    (tmp_path / "a" / "series.parquet").write_text("old")

    short.save(tmp_path / "a", plots=False)

    assert_frame_equal(cwnd.load(tmp_path / "a").series, short.series)
    assert [path.name for path in tmp_path.iterdir()] == ["a"]


def test_names_are_exchanged_in_one_step_where_the_kernel_can(tmp_path: Path):
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        (tmp_path / name / name).touch()

    if not atomic._exchange(tmp_path / "a", tmp_path / "b"):
        pytest.skip("this file system cannot exchange names")

    assert (tmp_path / "a" / "b").exists()
    assert (tmp_path / "b" / "a").exists()


def test_a_link_to_a_result_is_followed(short: cwnd.Run, tmp_path: Path):
    (tmp_path / "far").mkdir()
    (tmp_path / "link").symlink_to("far")

    short.save(tmp_path / "link", plots=False)

    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "far" / "manifest.json").exists()


def test_parents_are_made(short: cwnd.Run, tmp_path: Path):
    short.save(tmp_path / "a" / "b" / "c", plots=False)
    assert cwnd.Run.load(tmp_path / "a" / "b" / "c").name == "short"


def test_other_directories_are_refused(short: cwnd.Run, tmp_path: Path):
    (tmp_path / "home").mkdir()
    (tmp_path / "home" / "work").touch()

    with pytest.raises(InputError, match="not a cwnd result"):
        short.save(tmp_path / "home")

    assert (tmp_path / "home" / "work").exists()


def test_a_name_with_wildcards_is_only_a_name(short: cwnd.Run, tmp_path: Path):
    short.save(tmp_path / "a[b]*?", plots=False)
    assert [path.name for path in tmp_path.iterdir()] == ["a[b]*?"]


def test_no_space_left_is_a_failure_in_words(
    short: cwnd.Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    def full(*_: object, **__: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device", str(tmp_path / "a"))

    monkeypatch.setattr(pl.LazyFrame, "sink_parquet", full)
    with pytest.raises(CwndError, match="no space left on device"):
        short.save(tmp_path / "a")
    assert list(tmp_path.iterdir()) == []


def test_a_file_is_replaced_in_one_step(tmp_path: Path):
    file = tmp_path / "plot.svg"
    file.write_bytes(b"old")

    atomic.write_atomically(file, b"new")

    assert file.read_bytes() == b"new"
    assert [path.name for path in tmp_path.iterdir()] == ["plot.svg"]


def files(directory: Path) -> dict[str, bytes]:
    paths = [path for path in directory.rglob("*") if path.is_file()]
    return {str(path.relative_to(directory)): path.read_bytes() for path in paths}


def test_records_that_do_not_fit_in_memory_are_the_same_on_disk(
    scenarios: Path, sweep: cwnd.Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    # Three of the eighteen runs fill a batch.
    rows = sum(getattr(sweep, name).height for name in TABLES if name != "runs")
    monkeypatch.setattr(assembly, "PART_ROWS", rows // 6)
    monkeypatch.setattr(executor, "PART_ROWS", rows // 6)
    saved = []
    for threads in (1, 2):
        place = tmp_path / f"result-{threads}"
        parts = Counter[str]()
        part = assembly._Ordered._part

        def counted(
            ordered: assembly._Ordered, name: str, runs: range, parts=parts, part=part
        ) -> pl.DataFrame:
            parts[name] += 1
            return part(ordered, name, runs)

        with monkeypatch.context() as patched:
            patched.setattr(assembly._Ordered, "_part", counted)
            cwnd.sweep(scenarios / "sweep.toml", place, threads=threads)
        assert parts["series"] > 3
        saved.append({n: data for n, data in files(place).items() if "activity" not in n})

    assert saved[0] == saved[1]
    again = cwnd.Run.load(tmp_path / "result-1")
    for name in TABLES:
        assert_frame_equal(getattr(again, name), getattr(sweep, name))
    assert again.manifest.records_sha256 == sweep.manifest.records_sha256


def test_samples_on_disk_are_read_when_they_are_asked_for(sweep: cwnd.Run, tmp_path: Path):
    directory = sweep.save(tmp_path / "result", plots=False)

    again = cwnd.load(directory, samples_on_disk=True)
    assert_frame_equal(again.qdelay, sweep.qdelay)

    (directory / "series.parquet").write_bytes(b"no table")
    with pytest.raises(DamageError, match=r"series\.parquet: damaged"):
        _ = cwnd.load(directory, samples_on_disk=True).series


def test_nothing_is_left_of_a_directory_that_was_made_for_nothing(tmp_path: Path):
    with pytest.raises(ZeroDivisionError), atomic.scratch_directory(tmp_path / "a" / "b" / "c"):
        1 / 0  # noqa: B018

    assert list(tmp_path.iterdir()) == []


def test_many_files_are_as_safe_as_few(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(atomic, "_MANY_FILES", 0)
    with atomic.atomic_directory(tmp_path / "a") as place:
        (place / "file").write_text("text")

    assert (tmp_path / "a" / "file").read_text() == "text"


def hidden(folder: Path) -> list[str]:
    return [path.name for path in folder.iterdir() if path.name.startswith(".")]


def test_notes_stay_when_a_result_is_replaced(cli: Cli):
    assert cli("run", "short.toml").code == 0
    out = cli.directory / "out" / "short"
    (out / "notes.md").write_text("mine")
    (out / "talk" / "figures").mkdir(parents=True)
    (out / "talk" / "figures" / "one.tex").write_text("mine too")
    (out / "talk" / "figures").chmod(0o750)
    (out / "empty").mkdir()
    (out / "plots" / "paper.pdf").write_bytes(b"%PDF")
    for old in ("sweep-old", "graph", "responses"):
        (out / "plots" / f"{old}.svg").write_text("of the old numbers")
    (out / "where").symlink_to("nowhere")
    os.mkfifo(out / "pipe")
    assert cli("report", out).code == 0
    inode = (out / "notes.md").stat().st_ino

    answer = cli("run", "short.toml", "--seed", 2)

    assert answer.code == 0, answer.err
    assert cwnd.load(out).manifest.seeds == [2]
    assert (out / "notes.md").read_text() == "mine"
    assert (out / "notes.md").stat().st_ino == inode
    assert (out / "talk" / "figures" / "one.tex").read_text() == "mine too"
    assert (out / "talk" / "figures").stat().st_mode & 0o777 == 0o750
    assert (out / "empty").is_dir()
    assert (out / "plots" / "paper.pdf").read_bytes() == b"%PDF"
    assert (out / "where").readlink() == Path("nowhere")
    assert (out / "pipe").is_fifo()
    # Of the old result nothing is left that would be taken for the new one's.
    for old in ("sweep-old", "graph", "responses"):
        assert not (out / "plots" / f"{old}.svg").exists()
    assert not (out / "report.html").exists()
    assert verify(out).sound
    assert hidden(cli.directory / "out") == []


def test_a_file_of_ours_that_was_edited_is_kept_beside_the_new_one(cli: Cli):
    assert cli("run", "short.toml", "-o", "a", "--no-plots").code == 0
    summary = cli.directory / "a" / "summary.csv"
    for edit in ("first", "second"):
        summary.write_text(edit)
        assert cli("run", "short.toml", "-o", "a", "--no-plots").code == 0

    assert summary.read_text().startswith("scenario") or "goodput" in summary.read_text()
    assert (cli.directory / "a" / "summary.csv.edited").read_text() == "first"
    assert (cli.directory / "a" / "summary.csv.edited-2").read_text() == "second"
    assert verify(cli.directory / "a").sound


def test_a_damaged_result_is_replaced_by_the_remedy(cli: Cli):
    assert cli("run", "short.toml", "--no-plots").code == 0
    out = cli.directory / "out" / "short"
    (out / "notes.md").write_text("mine")
    for damaged in ("manifest.json", checksums.SUMS, "flows.parquet"):
        (out / damaged).write_bytes(b"{")
        with pytest.raises(DamageError, match="run its scenario again"):
            cwnd.load(out)
        assert cli("run", "short.toml", "--no-plots").code == 0
        assert verify(out).sound
        assert (out / "notes.md").read_text() == "mine"


def test_a_result_from_before_there_were_checksums_is_replaced_alike(cli: Cli):
    assert cli("run", "short.toml", "--no-plots").code == 0
    out = cli.directory / "out" / "short"
    (out / checksums.SUMS).unlink()
    (out / "notes.md").write_text("mine")

    assert cli("run", "short.toml", "--no-plots").code == 0

    assert (out / "notes.md").read_text() == "mine"
    assert not list(out.rglob("*edited*"))
    assert verify(out).sound


def test_the_result_of_another_scenario_is_not_replaced_unasked(cli: Cli):
    cli.write("other.toml", SHORT.replace('"short"', '"other"'))
    assert cli("run", "short.toml", "-o", "a", "--no-plots").code == 0
    before = (cli.directory / "a" / "manifest.json").read_bytes()

    answer = cli("run", "other.toml", "-o", "a", "--no-plots")

    assert answer.code == 2
    assert "a: holds the result of scenario `short`; --force replaces it, -o puts" in answer.err
    assert (cli.directory / "a" / "manifest.json").read_bytes() == before
    assert cli("run", "other.toml", "-o", "a", "--no-plots", "--force").code == 0
    assert cwnd.load(cli.directory / "a").name == "other"


def test_another_file_of_the_same_name_is_another_scenario_unless_it_says_the_same(cli: Cli):
    (cli.directory / "there").mkdir()
    other = cli.directory / "there" / "short.toml"
    assert cli("run", "short.toml", "--no-plots").code == 0

    other.write_text(SHORT.replace("10 Mbit/s", "20 Mbit/s"))
    answer = cli("run", other, "--no-plots")
    assert answer.code == 2
    assert "another scenario of that name, ../../short.toml seen from there" in answer.err
    # A copy is the same scenario, and so is a file that was edited.
    other.write_text(SHORT)
    assert cli("run", other, "--no-plots").code == 0
    other.write_text(SHORT.replace("10 Mbit/s", "20 Mbit/s"))
    assert cli("run", other, "--no-plots").code == 0


def test_without_links_files_are_copied_once(
    short: cwnd.Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    def refuse(*_: object, **__: object) -> None:
        raise OSError(1, "Operation not permitted")

    monkeypatch.setattr(write.os, "link", refuse)
    short.save(tmp_path / "a", plots=False)
    (tmp_path / "a" / "notes").write_text("mine")
    short.save(tmp_path / "a", plots=False)

    assert [file.name for file in (tmp_path / "a").glob("notes*")] == ["notes"]
    assert (tmp_path / "a" / "notes").read_text() == "mine"


def test_what_comes_while_the_new_result_takes_its_place_stays(tmp_path: Path):
    target = tmp_path / "a"
    target.mkdir()
    calls = []

    def keeping(old: Path, new: Path) -> None:
        if not calls:
            (target / "late").write_text("mine")
        else:
            write.keep(old, new)
        calls.append(old)

    with atomic.atomic_directory(target, keep=keeping) as place:
        (place / "manifest.json").write_text("{}")

    assert len(calls) == 2
    assert (target / "late").read_text() == "mine"


#: Replaces a result again and again, each time killed one step later, and checks what is left.
KILLED = """
import os, signal, sys
from pathlib import Path
from cwnd.files import atomic, checksums
from cwnd.store import write

folder, exchanges = Path(sys.argv[1]), sys.argv[2] == "exchange"
if not exchanges:
    atomic._exchange = lambda _a, _b: False
target = folder / "a"

def put(text):
    with atomic.atomic_directory(target, keep=write.keep) as place:
        for name in ("manifest.json", "runs.parquet", "summary.csv"):
            (place / name).write_text(text)
        checksums.write(place)
    atomic.write_atomically(folder / "page.html", text.encode())

put("0")
(target / "notes").write_text("mine")
steps = seen = 0
while True:
    steps += 1
    child = os.fork()
    if child == 0:
        left = [steps]
        def step(event, arguments):
            if event.split(".")[0] in ("os", "shutil", "open", "fcntl", "ctypes"):
                left[0] -= 1
                if left[0] == 0:
                    os.kill(os.getpid(), signal.SIGKILL)
        sys.addaudithook(step)
        put(str(steps))
        os._exit(0)
    _, status = os.waitpid(child, 0)
    seen += len([name for name in os.listdir(folder) if name.startswith(".")]) > 0
    # Whoever writes anything next in this folder cleans up.
    atomic.write_atomically(folder / "other", b"")
    names = sorted(os.listdir(folder))
    assert names == ["a", "other", "page.html"], (steps, names)
    assert (target / "notes").read_text() == "mine", steps
    files = checksums.Sums.at(target)
    text = {files.data(name) for name in files.of}
    assert len(text) == 1, (steps, text)
    if status == 0:
        break
print(steps, seen)
"""


@pytest.mark.parametrize("how", ["exchange", "two-steps"])
def test_a_kill_at_any_step_leaves_a_result_the_notes_and_nothing_hidden(tmp_path: Path, how: str):
    done = subprocess.run(
        [sys.executable, "-c", KILLED, tmp_path, how],
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert done.returncode == 0, done.stderr
    steps, seen = map(int, done.stdout.split())
    # Most kills leave something for the next writer.
    assert steps > 40
    assert seen > steps / 2


#: Holds a directory and a file that are not complete, until it is ended.
WRITER = """
import sys
from pathlib import Path
from cwnd.files import atomic
with atomic.scratch_directory(Path(sys.argv[1])) as place:
    (place / "half").touch()
    print(place, flush=True)
    sys.stdin.read()
"""


def test_what_a_living_writer_has_not_finished_is_left_alone(tmp_path: Path):
    writer = subprocess.Popen(
        [sys.executable, "-c", WRITER, tmp_path / "a"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert writer.stdout is not None
    place = Path(writer.stdout.readline().strip())
    for _ in range(3):
        atomic.write_atomically(tmp_path / "b", b"")
        with atomic.scratch_directory(tmp_path / "c"):
            pass
    assert (place / "half").exists()
    writer.communicate("", timeout=10)
    assert writer.returncode == 0
    assert [path.name for path in tmp_path.iterdir()] == ["b"]


def test_an_error_names_what_was_to_be_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    with pytest.raises(FileNotFoundError) as missing:
        atomic.write_atomically(tmp_path / "nowhere" / "b", b"")
    assert missing.value.filename == str(tmp_path / "nowhere" / "b")
    with (
        pytest.raises(FileNotFoundError) as inside,
        atomic.scratch_directory(tmp_path / "c") as new,
    ):
        (new / "d" / "e").write_bytes(b"")
    assert inside.value.filename == str(tmp_path / "c" / "d" / "e")

    def full(_descriptor: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space left") as unnamed:
        atomic.write_atomically(tmp_path / "f", b"")
    assert unnamed.value.filename == str(tmp_path / "f")


def test_what_nobody_holds_is_removed_if_it_is_old_and_looks_like_ours(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    for name in (".a.partial-01234567", ".mine.partial", ".git", ".a.partial-0123456x"):
        (tmp_path / name).mkdir()
    atomic.remove_abandoned(tmp_path)
    assert len(hidden(tmp_path)) == 4

    monkeypatch.setattr(atomic, "_FORGOTTEN_S", 0.0)
    time.sleep(0.02)
    atomic.remove_abandoned(tmp_path)

    assert sorted(hidden(tmp_path)) == [".a.partial-0123456x", ".git", ".mine.partial"]


@pytest.mark.parametrize(
    "text",
    ["", "[1]", "1", '{"a": ', "[" * 100_000, '{"a":' * 100_000, '{"a": "\\ud800"}', b"\xff{}"],
)
def test_what_is_no_object_is_told(text: str | bytes):
    with pytest.raises(ValueError, match=r"."):
        read_object(text)


def test_an_object_is_read():
    assert read_object('{"a": ["ä", "\\ud83d\\ude00"]}') == {"a": ["ä", "😀"]}


def test_a_text_that_is_none_is_damage(tmp_path: Path):
    (tmp_path / "scenario.toml").write_bytes(b"\xda\xff")
    sums = Sums(tmp_path, {"scenario.toml": hashlib.sha256(b"\xda\xff").hexdigest()}, "run it")
    with pytest.raises(DamageError, match="no text in UTF-8; run it"):
        sums.text("scenario.toml")
