"""Axes of sweeps and columns of tables: neither takes the other's name."""

from __future__ import annotations

import tomllib
from typing import TYPE_CHECKING

import pytest
from conftest import ROOT, SWEEP

import cwnd
from cwnd.errors import CwndWarning, InputError
from cwnd.results import METRICS
from cwnd.store.dataset import KEYS, RUN_COLUMNS, name_axes

if TYPE_CHECKING:
    from pathlib import Path

#: Axes of our scenarios that a table had a column for when they were named; whoever reads their
#: results asks `Run.axes` for the column.
ASKED_FOR = {"controller", "flows", "link", "drops"}


def columns_of(run: cwnd.Run) -> set[str]:
    """The columns of all tables that are not the run's keys."""
    tables = [run.runs, run.flows, run.links, *(t.collect() for t in run.samples.values())]
    own = {column for table in tables for column in table.columns}
    return own - {c for axis in run.axes for c in (axis.column, axis.value_column)}


def ours() -> set[str]:
    """The axes of the scenario files of the repository."""
    names: set[str] = set()
    for room in ("scenarios", "python/cwnd/studies", "docs", "benches", "tests"):
        for file in (ROOT / room).rglob("*.toml"):
            text = file.read_text()
            if "[sweep.axis." in text:
                names |= set(tomllib.loads(text)["sweep"]["axis"])
    return names


def test_no_column_has_the_name_of_an_axis_that_our_scenarios_have(short: cwnd.Run):
    axes = ours()
    assert {"load", "rtt", "scheme"} <= axes
    taken = axes & (columns_of(short) | METRICS.keys())
    # A column that is new with such a name would rename the axis in everybody's results.
    assert taken == ASKED_FOR, "another name for these columns, please"


def test_an_axis_with_the_name_of_a_column_renames_neither_columns_nor_other_axes(short: cwnd.Run):
    columns = columns_of(short) | {*KEYS, *RUN_COLUMNS}
    for name in [*columns, "activity_of_a_mechanism_to_come"]:
        taken = set(columns)
        others = [("speed", ["1"], True, "bit/s"), ("arm", ["b"], False, None)]
        named, speed, arm = name_axes([(name, ["a"], True, "s"), *others], taken)
        assert (speed.column, speed.value_column) == ("speed", "speed_bit_s"), name
        assert (arm.column, arm.value_column) == ("arm", None), name
        assert named.name == name
        assert named.column == f"axis_{name}"
        assert named.value_column not in columns | {named.column}


@pytest.mark.parametrize("name", ["load_factor", "activity_flows", "unrecorded"])
def test_a_sweep_and_its_tables_keep_their_names_beside_each_other(
    tmp_path: Path, short: cwnd.Run, name: str
):
    (tmp_path / "named.toml").write_text(SWEEP.replace("axis.arm", f"axis.{name}"))
    run = cwnd.run(tmp_path / "named.toml")
    (axis, _) = run.axes
    for table in (run.runs, run.flows, run.links, run.series, run.link_series):
        assert set(table[axis.column].cast(str)) == {"NewReno", "NewReno+ABE"}
    assert columns_of(short) <= columns_of(run)
    assert axis.column == (name if name == "unrecorded" else f"axis_{name}")


def test_a_statement_that_means_a_renamed_axis_is_answered_with_a_warning(tmp_path: Path):
    (tmp_path / "named.toml").write_text(SWEEP.replace("axis.rtt", "axis.flows"))
    cwnd.run(tmp_path / "named.toml").save(tmp_path / "run")
    warned = r"the axis `flows` is the column `axis_flows`"
    with pytest.warns(CwndWarning, match=warned):
        # To DuckDB it is the whole row of the table.
        cwnd.query(tmp_path / "run", "select flows, sum(delivered_bytes) from flows group by all")
    for sql in (
        "select count(*) from flows",
        "select flows.delivered_bytes from flows",
        "select axis_flows, flows.flow_id from flows",
        "select count(*) from runs r, flows f where f.run_id = r.run_id",
        "select 'flows' as what, count(*) -- over all flows\n from runs",
        'select count(*) from "flows"',
    ):
        cwnd.query(tmp_path / "run", sql)


def test_a_statement_about_a_column_with_the_name_of_an_axis_has_no_warning(tmp_path: Path):
    (tmp_path / "named.toml").write_text(SWEEP.replace("axis.rtt", "axis.retrans"))
    cwnd.run(tmp_path / "named.toml").save(tmp_path / "run")
    cwnd.query(tmp_path / "run", "select sum(retrans) from flows")
    # Links have no such column.
    warned = r"the axis `retrans` is the column `axis_retrans`, if you mean that"
    with pytest.warns(CwndWarning, match=warned), pytest.raises(InputError, match="retrans"):
        cwnd.query(tmp_path / "run", "select retrans, utilisation from links")
