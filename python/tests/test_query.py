"""SQL over results, against what polars says of the same frames."""

from __future__ import annotations

import csv
import io
import json
import os
import signal
import time
from pathlib import Path

import polars as pl
import pytest
from conftest import SWEEP, Cli
from polars.testing import assert_frame_equal

import cwnd
from cwnd.errors import InputError
from cwnd.running import executor, plans
from cwnd.store import sql
from cwnd.store.layout import TABLES

#: Half a second, and what a busy machine needs to free memory.
AT_ONCE_S = 1.0


@pytest.fixture(scope="module")
def dataset(scenarios: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    # A quote, a wildcard and a comma are letters of a name like others.
    directory = tmp_path_factory.mktemp("query") / "it's [a] *sweep*, so"
    cwnd.sweep(scenarios / "sweep.toml", directory)
    return directory


@pytest.fixture(params=["sweep", "run"])
def result(request: pytest.FixtureRequest, dataset: Path, sweep: cwnd.Run, tmp_path: Path) -> Path:
    return dataset if request.param == "sweep" else sweep.save(tmp_path / "a[b]", plots=False)


@pytest.mark.parametrize("table", TABLES)
def test_a_view_is_the_frame(result: Path, sweep: cwnd.Run, table: str):
    expected: pl.DataFrame = getattr(sweep, table)

    found = cwnd.query(result, f"select * exclude (run_id), run_id from {table}")

    assert found.columns == [*expected.columns[1:], "run_id"]
    found = found.select(expected.columns)
    names = [c for c, kind in expected.schema.items() if kind == pl.Categorical]
    expected = expected.with_columns(pl.col(names).cast(pl.String))
    for frame in (found, expected):
        assert frame.schema["seed"] == pl.UInt64
    by = expected.columns
    assert_frame_equal(found.sort(by), expected.sort(by), check_dtypes=True)


def test_axes_are_columns_with_types(dataset: Path, sweep: cwnd.Run):
    found = cwnd.query(
        dataset,
        "select arm, rtt_s, avg(goodput_bit_s) as goodput from flows"
        " where rtt_s > 0.015 group by all order by arm, rtt_s",
    )

    expected = (
        sweep.flows.filter(pl.col("rtt_s") > 0.015)
        .group_by("arm", "rtt_s")
        .agg(pl.col("goodput_bit_s").mean().alias("goodput"))
        .sort("arm", "rtt_s")
    )
    assert found.schema == {"arm": pl.String, "rtt_s": pl.Float64, "goodput": pl.Float64}
    assert_frame_equal(found, expected)


def test_what_a_killed_writer_left_of_a_cell_is_not_seen(scenarios: Path, tmp_path: Path):
    copy = tmp_path / "copy"
    executor.fill(plans.plan(scenarios / "sweep.toml"), copy, only=range(1, 18))
    (file,) = (copy / "journal").iterdir()
    (copy / "journal" / "killed").write_bytes(file.read_bytes()[:-1])

    counts = cwnd.query(
        copy, "select (select count(*) from runs) r, (select count(*) from flows) f"
    )

    assert counts.rows() == [(17, 17)]
    assert cwnd.load(copy).flows.height == 17


def test_axes_that_have_the_names_of_columns_are_told_apart(tmp_path: Path):
    scenario = tmp_path / "names.toml"
    scenario.write_text(
        SWEEP.replace("axis.arm", "axis.cell_id").replace("axis.rtt", "axis.resolved")
    )
    cwnd.sweep(scenario, tmp_path / "a")

    found = cwnd.query(tmp_path / "a", "select distinct axis_cell_id, resolved_s from flows")

    assert found.height == 6


def test_forms_of_output(cli: Cli, dataset: Path):
    sql = "select arm, seed, rtt_s from runs where seed = 2 order by arm, rtt_s"
    expected = cwnd.query(dataset, sql)

    table = cli("query", dataset, sql)
    values = cli("query", dataset, sql, "--csv")
    document = cli("query", dataset, sql, "--json")
    file = cli("query", dataset, sql, "--parquet", "answer.parquet")

    assert [a.code for a in (table, values, document, file)] == [0, 0, 0, 0]
    assert [a.err for a in (table, values, document, file)] == ["", "", "", ""]
    assert "NewReno+ABE" in table.out
    assert list(csv.reader(io.StringIO(values.out)))[1:] == [
        [arm, str(seed), str(rtt)] for arm, seed, rtt in expected.rows()
    ]
    assert document.json["columns"] == ["arm", "seed", "rtt_s"]
    assert [tuple(row) for row in document.json["rows"]] == expected.rows()
    assert_frame_equal(pl.read_parquet(cli.directory / "answer.parquet"), expected)
    again = cli("query", dataset, "select 1 as a", "--parquet", "answer.parquet")
    assert again.code == 0, again.err
    assert pl.read_parquet(cli.directory / "answer.parquet")["a"].to_list() == [1]


@pytest.mark.parametrize(
    ("sql", "said"),
    [
        ("selct 1", "syntax error"),
        ("select nothing from runs", "nothing"),
        ("create table a (b int)", "must be one that reads, such as select, describe or summarize"),
        ("copy runs to 'runs.csv'", "and is: copy; or ask with --unsafe"),
        ("attach 'other.db'", "is: attach"),
        ("set memory_limit = '1 TB'", "is: set"),
        ("install httpfs", "is: load"),
        ("select 1; select 2", "is: select, select"),
        ("", "is: nothing"),
        ("pivot runs on seed using count(*)", "only with the values of its columns"),
        ("select 1 as a, 2 as a", "two columns are called `a`"),
        ("select interval 1 day as x", "the column `x` is of the type interval"),
        ("select [union_value(a := 1)] as x", "the column `x` is of the type"),
        ("select * from read_text('/etc/hostname')", 'Cannot access file "/etc/hostname"'),
        ("select * from read_text('secret.txt')", 'Cannot access file "secret.txt"'),
        ("select * from glob('/etc/*')", 'Cannot access file "/etc/*"'),
        ("select * from 'https://localhost/a.parquet'", "Cannot access file"),
        # DuckDB reads and runs its files while it parses it.
        ("import database '.'", "`import` reads files that are no result's"),
        ("/* é */ Import database '.'", "`import` reads files"),
        ("select 1; import database '.'", "`import` reads files"),
    ],
)
def test_a_wrong_statement_is_told(cli: Cli, dataset: Path, sql: str, said: str):
    cli.write("secret.txt", "a secret")
    cli.write("load.sql", "a secret")
    os.mkfifo(cli.directory / "schema.sql")
    before = sorted(cli.directory.iterdir())

    answer = cli("query", dataset, sql)

    assert answer.code == 2
    assert said in answer.err
    assert "a secret" not in answer.err
    assert sorted(cli.directory.iterdir()) == before


@pytest.mark.parametrize("sql", ["describe flows", "summarize runs", "from runs", "values (1)"])
def test_what_reads_is_answered(dataset: Path, sql: str):
    assert cwnd.query(dataset, sql).height > 0
    assert cwnd.query(dataset, "pivot runs on seed in (1) using count(*)").height > 0


def test_a_statement_takes_half_of_the_memory_and_loads_nothing(dataset: Path):
    def setting(name: str) -> str:
        sql = f"select value from duckdb_settings() where name = '{name}'"
        return str(cwnd.query(dataset, sql).item())

    gib, unit = setting("memory_limit").split()
    assert unit == "GiB"
    assert float(gib) == pytest.approx(sql.memory_limit_bytes() / 2**30, abs=0.1)
    assert setting("lock_configuration") == "true"
    for name in ("autoinstall_known_extensions", "autoload_known_extensions"):
        assert setting(name) == "false"


def test_unsafe_statements_do_what_duckdb_can(cli: Cli, dataset: Path):
    cli.write("a.txt", "some text")

    answer = cli(
        "query", dataset, "create table a as from read_text('a.txt'); from a", "--unsafe", "--csv"
    )

    assert "some text" in answer.out
    assert "DuckDB" not in answer.err


#: Counting, sorting and building lists without end.
ENDLESS = (
    (signal.SIGINT, "select count(*) from range(100000000000) a, range(1000) b"),
    (
        signal.SIGTERM,
        "select range r from range(300000000) order by hash(r) limit 9 offset 100000000",
    ),
    (
        signal.SIGINT,
        "with recursive t as (select 1 n union all select n + 1 from t) select max(n) from t",
    ),
)


@pytest.mark.real_time
@pytest.mark.parametrize(("number", "sql"), ENDLESS)
def test_a_signal_ends_a_statement_at_once(
    cli: Cli, dataset: Path, number: signal.Signals, sql: str
):
    before = sorted(cli.directory.iterdir())
    asked = cli.start("query", dataset, sql)
    time.sleep(2)
    assert asked.poll() is None, asked.communicate()
    begin = time.monotonic()
    asked.send_signal(number)
    _, err = asked.communicate(timeout=30)

    assert time.monotonic() - begin < AT_ONCE_S
    assert asked.returncode == 128 + number
    assert "Traceback" not in err
    assert sorted(cli.directory.iterdir()) == before


def test_lists_have_a_form_of_output(cli: Cli, dataset: Path):
    assert json.loads(cli("query", dataset, "select [1, 2] as z", "--json").out)["rows"] == [
        [[1, 2]]
    ]
    answer = cli("query", dataset, "select [1, 2] as z", "--csv")
    assert answer.code == 2
    assert "the column `z` is a list or bytes" in answer.err


def test_two_forms_at_once_are_refused(cli: Cli, dataset: Path):
    answer = cli("query", dataset, "select 1", "--csv", "--parquet", "a.parquet")
    assert answer.code == 2
    assert not (cli.directory / "a.parquet").exists()


def test_what_is_no_result_is_refused(tmp_path: Path):
    with pytest.raises(InputError, match="not a cwnd result"):
        cwnd.query(tmp_path, "select 1")
