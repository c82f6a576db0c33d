"""A result directory is complete or not there."""

from __future__ import annotations

import errno
from collections import Counter
from pathlib import Path

import duckdb
import polars as pl
import pytest
from polars.testing import assert_frame_equal

import cwnd
from cwnd.errors import CwndError, DamageError, InputError
from cwnd.files import atomic
from cwnd.running import executor
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
