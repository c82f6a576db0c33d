"""The library: data frames of a run, names of axes and columns, and tables on terminals."""

from __future__ import annotations

import io
import tomllib
import xml.etree.ElementTree as ET
from pathlib import Path

import polars as pl
import pytest
from conftest import ROOT, SHORT, SWEEP
from hypothesis import given, settings
from hypothesis import strategies as st
from rich.cells import cell_len
from rich.console import Console

import cwnd
from cwnd import _core
from cwnd.errors import CwndWarning, InputError
from cwnd.results import METRICS
from cwnd.results.table import TextTable
from cwnd.running import Progress, bar, simulating
from cwnd.store import tables
from cwnd.store.dataset import KEYS, RUN_COLUMNS, name_axes

KEY_COLUMNS = ["run_id", "scenario", "seed"]
FLOWS = """flow_id group controller start_s duration_s goodput_bit_s throughput_bit_s
    delivered_bytes rtt_base_us rtt_min_us rtt_mean_us rtt_p50_us rtt_p95_us rtt_p99_us
    segments_sent retrans loss_ratio ce_ratio ce_received rto_count rto_nth_1 rto_nth_2 rto_nth_3
    rto_nth_4 rto_nth_5_plus cwnd_reductions_loss cwnd_reductions_ecn cwnd_reductions_rto
    size_bytes fct_s bytes_received rto_syn rto_request rto_under_way rto_ack_late rto_ack_lost
    duplicates gave_up quenches quenches_refused cwnd_reductions_quench qdelay_seen_us
    qdelay_true_us cwnd_reductions_delay min_rtt_us forged_echoes lost_ratio""".split()
LINKS = """link_id link rate_bit_s utilisation qdelay_mean_us qdelay_p50_us qdelay_p90_us
    qdelay_p95_us qdelay_p99_us qdelay_max_us qlen_mean_pkts qlen_mean_bytes arrived_pkts
    delivered_pkts dropped_pkts marked_pkts queued_pkts drop_ratio mark_ratio arrived_total_pkts
    delivered_total_pkts dropped_total_pkts marked_total_pkts dead_pkts dead_bytes
    duplicate_pkts quenches_total_pkts""".split()
SERIES = """time_s flow_id group snd_cwnd_pkts snd_ssthresh_pkts bytes_in_flight srtt_us rttvar_us
    rto_us delivered retrans ca_state quenches quenches_refused rtt_seen_us
    min_rtt_us load_factor_seen offered_bit_s feedback_bytes""".split()
LINK_SERIES = """time_s link_id link qlen_pkts qlen_bytes sojourn_us enq deq drop mark
    aqm_prob quenches load_factor offered_bit_s feedback_bit_s""".split()
QDELAY = ["link_id", "link", "qdelay_us", "packets"]


def test_every_frame_has_its_columns(short: cwnd.Run):
    expected = {
        "flows": FLOWS,
        "links": LINKS,
        "series": SERIES,
        "link_series": LINK_SERIES,
        "qdelay": QDELAY,
    }
    for name, columns in expected.items():
        frame: pl.DataFrame = getattr(short, name)
        assert frame.columns[:3] == KEY_COLUMNS
        assert set(columns) <= set(frame.columns), set(columns) - set(frame.columns)
        assert frame.height > 0, name


def test_every_row_says_which_run_it_belongs_to(sweep: cwnd.Run):
    assert sweep.runs.height == 18
    assert sweep.runs["run_id"].n_unique() == 18
    assert sweep.runs["seed"].to_list() == [1, 2, 3] * 6
    for frame in (sweep.flows, sweep.links, sweep.series, sweep.link_series, sweep.qdelay):
        assert frame.columns[:6] == [*KEY_COLUMNS, "arm", "rtt", "rtt_s"]
        assert frame["run_id"].n_unique() == 18
    values = sweep.flows.select("rtt", "rtt_s").unique(maintain_order=True).rows()
    assert values == [("10 ms", 0.01), ("20 ms", 0.02), ("40 ms", 0.04)]


def test_the_numbers_are_those_of_a_ten_megabit_link(short: cwnd.Run):
    (flow,) = short.flows.to_dicts()
    assert 5e6 < flow["goodput_bit_s"] < 1e7
    assert flow["goodput_bit_s"] <= flow["throughput_bit_s"]
    assert flow["rtt_base_us"] == pytest.approx(20_000)
    assert 20_000 <= flow["rtt_min_us"] <= flow["rtt_p50_us"] <= flow["rtt_p99_us"]
    assert flow["controller"] == "newreno"


def test_packets_are_conserved_on_every_link(sweep: cwnd.Run):
    links = sweep.links
    gone = links["delivered_total_pkts"] + links["dropped_total_pkts"] + links["queued_pkts"]
    assert (links["arrived_total_pkts"] == gone).all()


def test_drops_and_marks_are_the_sum_of_their_reasons(sweep: cwnd.Run):
    for column in ("packets", "total_packets"):
        counted = dict.fromkeys(sweep.links.select("run_id", "link").rows(), (0, 0))
        sums = sweep.reasons.group_by("run_id", "link").agg(
            pl.col(column).filter(pl.col("verdict") == verdict).sum().alias(verdict)
            for verdict in ("dropped", "marked")
        )
        counted |= {(run, link): tuple(both) for run, link, *both in sums.iter_rows()}
        end = "pkts" if column == "packets" else "total_pkts"
        rows = sweep.links.select("run_id", "link", f"dropped_{end}", f"marked_{end}")
        assert {(run, link): tuple(both) for run, link, *both in rows.iter_rows()} == counted
        assert any(sum(both) for both in counted.values())


def test_the_histogram_counts_every_packet_that_left_the_queue(short: cwnd.Run):
    counted = short.qdelay.group_by("link", maintain_order=True).agg(pl.col("packets").sum())
    delivered = dict(short.links.select("link", "delivered_pkts").iter_rows())
    for link, packets in counted.iter_rows():
        # A packet that is being sent has left the queue and has not arrived.
        assert packets - delivered[link] in {0, 1}


def test_samples_come_at_the_sampling_interval(short: cwnd.Run):
    times = short.link_series.filter(pl.col("link") == "bottleneck")["time_s"]
    steps = times.diff().drop_nulls()
    assert times.len() >= 39
    assert steps.min() == pytest.approx(0.05)
    assert steps.max() == pytest.approx(0.05)


def test_the_same_seed_gives_the_same_frames(scenarios: Path, short: cwnd.Run):
    again = cwnd.run(scenarios / "short.toml", threads=2)
    assert again.manifest.records_sha256 == short.manifest.records_sha256
    assert again.series.equals(short.series)


def test_all_seeds_of_a_scenario_without_a_sweep_are_one_point(tmp_path: Path):
    (tmp_path / "seeds.toml").write_text(SHORT + "\n[sweep]\nrepeat = 3\n")
    assert cwnd.run(tmp_path / "seeds.toml").rows_by_point == {(): [0, 1, 2]}


def test_progress_is_told_until_the_end(scenarios: Path):
    told: list[Progress] = []
    cwnd.run(scenarios / "sweep.toml", progress=told.append)
    assert told[-1] == Progress(1.0, 18, 0, 18)
    fractions = [each.fraction for each in told]
    assert fractions == sorted(fractions)


def test_arrow_is_handed_over_without_a_copy(scenarios: Path):
    pyarrow = pytest.importorskip("pyarrow")
    text = (scenarios / "short.toml").read_text()
    (cell,) = _core.parse(text, name="short.toml").cells
    table = cell.run().flow_series

    arrow = pyarrow.table(table)
    frame = pl.DataFrame(table)

    assert arrow.num_rows == frame.height == table.num_rows
    assert arrow.column_names == frame.columns == table.column_names
    address = arrow["time_s"].chunk(0).buffers()[1].address
    # The same memory, seen by two libraries that know nothing of each other.
    array = frame["time_s"].to_numpy(allow_copy=False)
    assert array.__array_interface__["data"][0] == address
    assert arrow["time_s"].to_pylist() == frame["time_s"].to_list()


def test_a_result_says_what_it_is(short: cwnd.Run, sweep: cwnd.Run):
    assert repr(short) == "<cwnd.Run 'short': 1 run, axes: none>"
    assert repr(sweep) == "<cwnd.Run 'sweep': 18 runs, axes: arm, rtt>"


def test_a_notebook_shows_a_table_and_a_picture(sweep: cwnd.Run):
    html = sweep._repr_html_()
    assert "NewReno+ABE" in html
    assert "goodput" in html
    assert 'src="data:image/png;base64,iVBORw0KGgo' in html
    # Well-formed, so that it does not break the page around it.
    ET.fromstring(f"<div>{html.replace('&nbsp;', ' ')}</div>")


def test_activity_is_counted_over_all_runs(sweep: cwnd.Run):
    columns = [name for name in sweep.runs.columns if name.startswith("activity_")]
    assert columns
    for column in columns:
        assert sweep.activity[column.removeprefix("activity_")] == sweep.runs[column].sum()


@pytest.mark.parametrize("rows", [0, 1_000_000])
def test_a_count_that_some_runs_know_is_none_in_the_others(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, rows: int
):
    """Tests runs whose rows share a batch, and runs with a batch each."""

    class Told:
        """A run in which a mechanism of its own acted, unless it was the first."""

        def __init__(self, result: _core.Result, index: int):
            self.result = result
            self.activity = result.activity | ({"quenches": index} if index else {})

        def __getattr__(self, name: str) -> object:
            return getattr(self.result, name)

    class Gathered:
        def __init__(self):
            self.inner = real()
            self.take = self.inner.take

        def add(self, told: Told) -> None:
            self.inner.add(told.result)

        @property
        def rows(self) -> int:
            return self.inner.rows

    real, add = _core.Gathered, tables.BatchBuilder.add
    monkeypatch.setattr(simulating, "PART_ROWS", rows)
    monkeypatch.setattr(tables, "GATHERED", Gathered)
    monkeypatch.setattr(
        tables.BatchBuilder,
        "add",
        lambda self, text, cell, result: add(self, text, cell, Told(result, cell.index)),
    )
    scenario = tmp_path / "counted.toml"
    scenario.write_text(SHORT + "[sweep]\nrepeat = 3\n")
    run = cwnd.run(scenario)
    assert run.runs["activity_quenches"].to_list() == [0, 1, 2]
    assert run.activity["quenches"] == 3


def test_a_file_that_is_not_there_is_an_input_error(tmp_path: Path):
    with pytest.raises(cwnd.InputError, match="no such file"):
        cwnd.run(tmp_path / "nowhere.toml")


def test_connections_that_are_given_up_are_noted(tmp_path: Path):
    path = tmp_path / "lossy.toml"
    path.write_text(
        """
        schema = 1
        [run]
        duration = "60 s"
        [dumbbell]
        rate = "10 Mbit/s"
        loss = 0.6
        [flow.web]
        rtt = "10 ms"
        workload = { kind = "poisson", interval = "500 ms", size = "10 kB" }
        endpoint = { syn_retries = 1, data_retries = 2, rto_backoff = "off" }
        """
    )
    run = cwnd.run(path)
    counts = dict(run.flows["gave_up"].cast(pl.String).value_counts().iter_rows())
    assert counts["syn"] > 0
    assert counts["data"] > 0
    total = counts["syn"] + counts["data"]
    assert run.flows.filter(pl.col("gave_up") == "syn")["fct_s"].null_count() == counts["syn"]
    assert any(
        note.startswith(f"{total} of {run.flows.height} connections were given up")
        and f"{counts['syn']} at the SYN, {counts['data']} at data" in note
        for note in run.notes
    )


def test_a_bar_shows_runs_that_failed():
    with io.StringIO() as out:
        console = Console(file=out, force_terminal=True, width=200)
        with bar("name", console) as on_progress:
            on_progress(Progress(0.5, 3, 0, 8))
            on_progress(Progress(0.75, 5, 1, 8))
        assert "5/8 runs, 1 failed" in out.getvalue()


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


CELLS = ["0", "12.5", "9.31 ±0.25", "1234567"]


@st.composite
def text_tables(draw: st.DrawFn) -> TextTable:
    keys, metrics = draw(st.integers(0, 3)), draw(st.integers(1, 12))
    letters = st.text(st.characters(min_codepoint=0x20, max_codepoint=0x7E), min_size=1)
    label = letters.map(lambda text: text[:80]) | st.integers(1, 80).map("m".__mul__)
    rows = [
        (
            *(draw(label) for _ in range(keys)),
            *(draw(st.sampled_from(CELLS)) for _ in range(metrics)),
        )
        for _ in range(draw(st.integers(1, 4)))
    ]
    headings = [*(f"axis {n}" for n in range(keys)), *(f"metric {n}\nms" for n in range(metrics))]
    return TextTable("a title", ["about [it]"], keys, headings, rows)


def shown(text_table: TextTable, width: int) -> list[str]:
    console = Console(width=width, color_system=None)
    with console.capture() as captured:
        for table in text_table.fitting(width):
            console.print(table)
    return captured.get().splitlines()


@settings(max_examples=60, derandomize=True)
@given(text_tables(), st.sampled_from([60, 80, 200]))
def test_no_column_is_pushed_out_and_no_number_is_cut(text_table: TextTable, width: int):
    lines = shown(text_table, width)
    text = "\n".join(lines)
    assert max(map(cell_len, lines)) <= width
    assert "…" not in text
    words = text.split()
    for row in text_table.rows:
        for cell in row[text_table.keys :]:
            assert cell in text
    for number in range(len(text_table.headings) - text_table.keys):
        assert f"metric {number}" in text
    # Each letter of a label is there, however it is broken.
    letters = {
        letter for row in text_table.rows for key in row[: text_table.keys] for letter in key
    }
    assert letters - set(" ") <= set("".join(words))


def test_a_label_that_is_too_long_is_broken_into_lines():
    label = "uniform(10 ms, 40 ms), uniform(10 ms, 41 ms)"
    row = (label, *(["95.8"] * 12))
    headings = ["rtts", *(f"number {n}" for n in range(12))]
    text_table = TextTable("title", ["after the warm-up"], 1, headings, [row])
    lines, parts = shown(text_table, 80), len(text_table.fitting(80))
    assert parts > 1
    first = " ".join(line[:44].strip() for line in lines[4:8])
    assert "uniform(10 ms, 40 ms)," in first
    assert sum("rtts" in line for line in lines) == parts, "each part says what it is of"
    assert sum("after the warm-up" in line for line in lines) == 1


def test_a_table_that_fits_is_one():
    text_table = TextTable("title", [], 1, ["arm", "goodput"], [("[bold]x[/]", "9.5")])
    assert len(text_table.fitting(80)) == 1
    assert any("[bold]x[/]" in line for line in shown(text_table, 80)), "a label is no markup"
