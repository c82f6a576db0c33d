"""Reports: one page that holds a result, needs nothing else, and takes no orders from it."""

from __future__ import annotations

import base64
import gzip
import json
import re
import subprocess
import sys
from dataclasses import dataclass, field, replace
from html.parser import HTMLParser
from pathlib import Path
from typing import TYPE_CHECKING, Any

import polars as pl
import pytest
import specs
from conftest import QUENCHED, ROOT, SHORT, SWEEP

import cwnd
from cwnd import report
from cwnd.errors import InputError
from cwnd.report.colours import page_colours
from cwnd.report.figures import sweep_figure, windows_figure
from cwnd.report.tables import rerun_command

if TYPE_CHECKING:
    from conftest import Cli

#: Elements that have no end.
VOID = {"meta", "link", "br", "img", "input", "hr", "line"}
#: Text of a scenario that must not act as HTML, as a template or as a format.
HOSTILE = "Is <script>window.hacked = 1</script> & \"<b>\" text? '{{ 7 * 7 }}' %{x}"


@dataclass
class Page(HTMLParser):
    """A page as a reader finds it: its text, its tables, its figures."""

    source: str
    tags: list[str] = field(default_factory=list)
    text: str = ""
    tables: dict[str, list[list[str]]] = field(default_factory=dict)
    data: dict[str, str] = field(default_factory=dict)
    attributes: list[tuple[str, str, str]] = field(default_factory=list)
    _open: list[str] = field(default_factory=list)
    _script: str | None = None
    _table: list[list[str]] | None = None

    def __post_init__(self) -> None:
        super().__init__()
        self.feed(self.source)
        self.close()
        assert self._open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        of = {name: value or "" for name, value in attrs}
        self.tags.append(tag)
        self.attributes += [(tag, name, value) for name, value in of.items()]
        if tag not in VOID:
            self._open.append(tag)
        if tag == "script":
            self._script = of.get("id", "code")
        elif tag == "table":
            self._table = self.tables.setdefault(of["aria-label"], [])
        elif tag == "tr":
            assert self._table is not None
            self._table.append([])
        elif tag in ("th", "td"):
            assert self._table is not None
            self._table[-1].append("")
            assert tag == "td" or of.get("scope") in ("col", "row")

    def handle_endtag(self, tag: str) -> None:
        if tag in VOID:
            return
        assert self._open.pop() == tag
        if tag == "script":
            self._script = None

    def handle_data(self, data: str) -> None:
        if self._script is not None:
            self.data[self._script] = self.data.get(self._script, "") + data
            return
        if "style" in self._open:
            return
        self.text += data
        if self._open and self._open[-1] in ("th", "td"):
            assert self._table is not None
            self._table[-1][-1] += data

    @property
    def figures(self) -> dict[str, Any]:
        figures: dict[str, Any] = json.loads(self.data["figures-data"])
        return figures


def page_of(*runs: cwnd.Run) -> Page:
    return Page(report.html(runs))


@pytest.fixture(scope="session")
def sweep_page(sweep: cwnd.Run) -> Page:
    return page_of(sweep)


def test_a_page_holds_the_question_the_tables_and_where_it_comes_from(
    scenarios: Path, sweep: cwnd.Run, sweep_page: Page
):
    header, *rows = sweep_page.tables["sweep"]
    assert header[:3] == ["arm", "rtt", "goodput\nMbit/s"]
    assert [row[:2] for row in rows] == [list(row) for row in sweep.summary()["arm", "rtt"].rows()]
    goodput = sweep.summary()["goodput_bit_s"][0] / 1e6
    mean, _, width = rows[0][2].partition(" ±")
    assert float(mean) == pytest.approx(goodput, abs=0.5 * 10.0 ** -len(mean.partition(".")[2]))
    assert float(width) >= 0
    for name in ("Links", "Flows", "Activity"):
        assert len(sweep_page.tables[name]) > 1
    assert {row[2] for row in sweep_page.tables["Links"][1:]} == {"bottleneck", "reverse"}
    manifest = sweep.manifest
    for fact in (
        manifest.cwnd_version,
        manifest.scenario_sha256,
        manifest.records_sha256,
        manifest.machine["cpu"],
        manifest.started_at,
        "18 runs · 6 points, 3 seeds",
    ):
        assert fact in sweep_page.text
    assert sweep.source.strip() in sweep_page.text
    assert sweep.resolved[0].strip() in sweep_page.text
    on_linux = replace(sweep, manifest=replace(manifest, world={"kernel": "6.18"}))
    assert rerun_command(on_linux) == "cwnd run scenario.toml --on linux"
    asked = SHORT.replace('name = "short"', 'description = "How fast is it?"')
    (scenarios / "asked.toml").write_text(asked)
    assert "How fast is it?" in page_of(cwnd.run(scenarios / "asked.toml")).text


def test_each_axis_says_which_keys_it_changes(sweep_page: Page):
    assert sweep_page.tables["Axis arm"] == [
        ["key", "NewReno", "NewReno+ABE"],
        ["flow.main.controller.beta_ecn", "none", "0.8"],
    ]
    # Keys that follow from it as well: a BDP is that of the longest RTT.
    assert ["flow.main.rtt", "10 ms", "20 ms", "40 ms"] in sweep_page.tables["Axis rtt"]


def test_a_large_sweep_stays_readable(tmp_path: Path):
    rates = [f"{rate} Mbit/s" for rate in range(1, 31)]
    rtts = [f"{rtt} ms" for rtt in range(5, 100, 5)]
    text = SHORT.replace('"2 s"', '"200 ms"') + (
        f"""
[sweep.axis.rate]
path = "dumbbell.rate"
values = {rates}

[sweep.axis.rtt]
path = "flow.main.rtt"
values = {rtts}
"""
    )
    (tmp_path / "large.toml").write_text(text)
    page = page_of(cwnd.run(tmp_path / "large.toml"))
    assert len(page.source) < 6_000_000
    assert len(page.tables["short"]) == 1 + 500
    assert "the first 500 of 570 rows" in page.text
    # An axis of many labels is a row for each.
    header, *rows = page.tables["Axis rtt"]
    assert "flow.main.rtt" in header
    column = header.index("flow.main.rtt")
    assert [(row[0], row[column]) for row in rows] == [(rtt, rtt) for rtt in rtts]
    # 19 lines look alike: each of the usual metrics has as many panels.
    (usual,) = page.figures["r1-sweep"]["choices"]
    assert len(usual["panels"]) == 3 * len(rtts)
    assert len(page.figures["r1-timeseries"]["choices"]) == 60
    assert "The first 60 of 570 points." in page.text


def test_the_activity_is_that_of_the_manifest(sweep: cwnd.Run, sweep_page: Page):
    rows = {name: (times, runs) for name, times, runs in sweep_page.tables["Activity"][1:]}
    assert len(rows) == len(sweep.activity)
    marks = sweep.activity["queue_marks"]
    assert marks > 0
    assert int(rows["queue marks"][0].replace("\u202f", "")) == marks
    acted = int((sweep.runs["activity_queue_marks"] > 0).sum())
    assert rows["queue marks"][1] == f"{acted} of 18"


def test_the_sweep_is_drawn_as_the_summary_says(sweep: cwnd.Run, sweep_page: Page):
    usual = sweep_page.figures["r1-sweep"]["choices"][0]["panels"]
    assert len(usual) == 3
    summary = sweep.summary().sort("rtt")
    for index, arm in enumerate(("NewReno", "NewReno+ABE")):
        of_arm = summary.filter(pl.col("arm") == arm)
        means = [v / 1e6 for v in of_arm["goodput_bit_s"]]
        widths = [v / 1e6 for v in of_arm["goodput_bit_s_ci95"]]
        assert list(usual[0]["labels"].values())[index] == arm
        for rows in (specs.points(usual[0])[arm], specs.lines(usual[0])[arm]):
            assert [row["y"] for row in rows] == pytest.approx(means, rel=1e-6)
            # Moved aside by little, so that intervals do not hide each other.
            assert [row["x"] for row in rows] == pytest.approx([10, 20, 40], abs=0.5)
        drawn = specs.intervals(usual[0])[arm]
        ends = [(row["low"], row["high"]) for row in drawn]
        for (low, high), mean, width in zip(ends, means, widths, strict=True):
            assert (low, high) == pytest.approx((mean - width, mean + width), rel=1e-6)
        texts = [text for *_, text, label in usual[0]["texts"] if label == arm]
        assert len(texts) == 3
        assert texts[0].startswith(f"{arm}\nrtt 10 ms\nGoodput: ")
    metrics = [specs.title(c["panels"][0]) for c in sweep_page.figures["r1-sweep"]["choices"]]
    assert "Marks" in metrics


def test_a_caption_keeps_the_capitals_of_names_and_units(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    (tmp_path / "named.toml").write_text(SWEEP.replace("axis.rtt", "axis.RTT"))
    monkeypatch.setattr("cwnd.plots.layout.MAX_PANELS", 1)
    figure = windows_figure(cwnd.run(tmp_path / "named.toml"))
    assert figure is not None
    assert "The first 1 of 3 panels, without RTT = 20 ms to RTT = 40 ms." in figure.caption


def test_a_caption_speaks_of_axes_of_their_own_only_where_they_differ(tmp_path: Path):
    for name, rates, apart in (
        ("near", '["9 Mbit/s", "10 Mbit/s"]', False),
        ("far", '["1 Mbit/s", "100 Mbit/s"]', True),
    ):
        axis = f'[sweep.axis.rate]\npath = "dumbbell.rate"\nvalues = {rates}\n'
        other = '[sweep.axis.rtt]\npath = "flow.main.rtt"\nvalues = ["10 ms", "12 ms"]\n'
        (tmp_path / f"{name}.toml").write_text(SHORT + axis + other)
        run = cwnd.run(tmp_path / f"{name}.toml")
        figure = windows_figure(run)
        assert figure is not None
        assert ("y axes of their own" in figure.caption) == apart
        figure = sweep_figure(run)
        assert figure is not None
        # Both rates are along x: each panel holds both.
        assert "y axes of their own" not in figure.caption


def test_the_windows_are_those_of_the_samples(short: cwnd.Run):
    figures = page_of(short).figures
    assert set(figures) == {"r1-timeseries", "r1-qdelay"}
    window, rtt, queue = figures["r1-timeseries"]["choices"][0]["panels"]
    assert list(window["labels"].values()) == ["cwnd", "ssthresh"]
    drawn = specs.lines(window)["cwnd"]
    assert [row["x"] for row in drawn] == pytest.approx(short.series["time_s"].to_list())
    windows = short.series["snd_cwnd_pkts"].to_list()
    assert [row["y"] for row in drawn] == pytest.approx(windows, rel=1e-4)
    assert specs.title(rtt) == "Smoothed RTT (ms)"
    assert specs.title(queue) == "Queueing delay of bottleneck (ms)"


def test_source_quenches_are_shown_where_some_came(tmp_path: Path):
    (tmp_path / "quenched.toml").write_text(QUENCHED)
    run = cwnd.run(tmp_path / "quenched.toml", set={"run.duration": "5 s"})
    page = page_of(run)
    *_, quenches = page.figures["r1-timeseries"]["choices"][0]["panels"]
    assert specs.title(quenches) == "Quenches so far"
    (drawn,) = specs.lines(quenches).values()
    assert [row["y"] for row in drawn] == pytest.approx(run.series["quenches"].to_list(), rel=1e-4)
    links, flows = ([row[-1] for row in page.tables[name]] for name in ("Links", "Flows"))
    assert links[0] == "Source quenches sent"
    assert links[1] == str(run.links["quenches_total_pkts"].max())
    assert flows == ["Reductions by source quench", str(run.flows["cwnd_reductions_quench"][0])]


def test_each_point_of_a_sweep_can_be_chosen_to_be_shown_over_time(sweep_page: Page):
    assert len(sweep_page.figures["r1-timeseries"]["choices"]) == 6
    for label in ("NewReno, rtt = 10 ms", "NewReno+ABE, rtt = 40 ms"):
        assert label in sweep_page.text


def test_the_text_of_users_stays_text(tmp_path: Path):
    text = SWEEP.replace("[run]", f"description = {json.dumps(HOSTILE)}\n\n[run]").replace(
        '"NewReno+ABE"]', '"</script><script>window.hacked = 1</script>"]'
    )
    (tmp_path / "hostile.toml").write_text(text)
    run = cwnd.run(tmp_path / "hostile.toml")
    page = page_of(run)
    assert HOSTILE in page.text
    # The palettes, the figures, the library and our own script; none by the scenario.
    assert page.tags.count("script") == 4
    label = run.axes[0].labels[1]
    assert label in page.tables["Axis arm"][0]
    panel = page.figures["r1-sweep"]["choices"][0]["panels"][0]
    assert list(panel["labels"].values())[1] == label
    # Expressions and tables know lines by their numbers.
    assert "hacked" not in json.dumps(panel["spec"])


def test_a_page_needs_nothing_but_itself(sweep_page: Page):
    assert "link" not in sweep_page.tags
    assert "img" not in sweep_page.tags
    for tag, name, value in sweep_page.attributes:
        if name in ("src", "href", "action", "data", "srcset", "poster"):
            assert (tag, name) == ("a", "href")
            assert value.startswith("#")
    assert "url(" not in sweep_page.source
    assert "@import" not in sweep_page.source
    # What is written into the page cannot be fetched, whoever wrote it.
    policy = next(v for t, n, v in sweep_page.attributes if v.startswith("default-src"))
    assert "http" not in policy
    library = gzip.decompress(base64.b64decode(sweep_page.data["library"])).decode()
    assert "window.vegaEmbed=" in library
    assert re.search(r"Vega \d+\.\d+\.\d+ and Vega-Lite .*BSD-3-Clause", sweep_page.text)


def test_links_within_a_page_lead_somewhere(sweep_page: Page):
    ids = [value for _, name, value in sweep_page.attributes if name == "id"]
    assert len(ids) == len(set(ids))
    referred = [v[1:] for _, name, v in sweep_page.attributes if name == "href"]
    referred += [v for _, name, v in sweep_page.attributes if name == "aria-labelledby"]
    assert referred
    assert set(referred) <= set(ids)


def test_the_same_result_gives_the_same_page(sweep: cwnd.Run, sweep_page: Page):
    assert report.html([sweep]) == sweep_page.source


def test_several_results_stand_under_each_other(short: cwnd.Run, sweep: cwnd.Run):
    page = page_of(short, sweep)
    assert page.tags.count("h1") == 2
    assert {name.partition("-")[0] for name in page.figures} == {"r1", "r2"}
    # What draws is there once.
    assert page.tags.count("script") == 4


def test_notes_are_shown(tmp_path: Path):
    # Too short for the queue to have to act.
    silent = SHORT.replace('"2 s"', '"200 ms"')
    (tmp_path / "silent.toml").write_text(silent)
    run = cwnd.run(tmp_path / "silent.toml")
    assert run.notes
    for note in run.notes:
        assert note in page_of(run).text


def test_a_result_without_samples_has_no_figure_over_time(tmp_path: Path):
    (tmp_path / "bare.toml").write_text(SHORT.replace('sample = "50 ms"', 'sample = "none"'))
    assert set(page_of(cwnd.run(tmp_path / "bare.toml")).figures) == {"r1-qdelay"}


def test_many_flows_are_summarised_by_their_quantiles(tmp_path: Path):
    (tmp_path / "crowd.toml").write_text(
        SHORT.replace("[flow.main]", "[flow.main]\ncount = 201").replace('"2 s"', '"4 s"')
    )
    run = cwnd.run(tmp_path / "crowd.toml")
    header, row = page_of(run).tables["Flows"]
    assert header[:2] == ["group", "flows"]
    assert row[:2] == ["main", "201"]
    column = header.index("Goodput, median kbit/s")
    median = run.flows["goodput_bit_s"].median()
    assert isinstance(median, float)
    assert float(row[column]) == pytest.approx(median / 1e3, rel=0.01)


def test_the_page_of_the_largest_scenario_can_be_mailed(tmp_path: Path):
    run = cwnd.run(ROOT / "scenarios" / "abe-codel-pie.toml")
    file = report.write([run], tmp_path / "report.html")
    assert file.stat().st_size < 6_000_000
    # It is thinned, and says so.
    assert "the least and the greatest sample are drawn" in file.read_text(encoding="utf-8")


def luminance(colour: str) -> float:
    # WCAG 2.2, relative luminance.
    parts = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    linear = [p / 12.92 if p <= 0.04045 else ((p + 0.055) / 1.055) ** 2.4 for p in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(one: str, other: str) -> float:
    light, dark = sorted((luminance(one), luminance(other)), reverse=True)
    return (light + 0.05) / (dark + 0.05)


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_text_and_lines_stand_out_from_the_page(scheme: str):
    palette = page_colours(scheme)
    # WCAG 2.2: 4.5 for text (1.4.3).
    assert contrast(palette["ink"], palette["paper"]) >= 4.5
    assert contrast(palette["muted"], palette["paper"]) >= 4.5
    for index in range(7):
        # 3 for parts of figures (1.4.11); on white two colours of Okabe & Ito's are lighter, there
        # dashes, markers and the legend distinguish lines.
        least = 3.0 if scheme == "dark" else 2.0
        assert contrast(palette[str(index)], palette["paper"]) >= least


def test_cwnd_report_writes_the_page_beside_the_result(saved: Cli):
    answer = saved("report", "sweep")
    assert (answer.code, answer.out, answer.err) == (0, "sweep/report.html\n", "")
    page = Page((saved.directory / "sweep/report.html").read_text())
    assert "r1-sweep" in page.figures
    # The result is as good as before, with and without its report.
    assert saved("compare", "sweep", "sweep").code == 0


def test_cwnd_report_writes_where_it_is_told(saved: Cli):
    answer = saved("report", "short", "sweep", "-o", "new/both.html", "--json")
    assert answer.json == {"report": "new/both.html"}
    page = Page((saved.directory / "new/both.html").read_text())
    assert page.tags.count("article") == 2
    assert not (saved.directory / "short/report.html").exists()


def test_cwnd_report_answers_what_it_cannot_write(saved: Cli):
    (saved.directory / "empty").mkdir()
    (saved.directory / "sweep/links.parquet").write_bytes(b"PAR1 no more")
    for arguments, said in {
        (): "DIRECTORIES requires an argument",
        ("nowhere",): "there is no such directory",
        ("empty",): "not a cwnd result",
        ("short.toml",): "not a directory",
        ("sweep",): "damaged",
        ("short", "short"): "-o FILE",
        ("short", "-o", "empty"): "a directory is in the way",
    }.items():
        answer = saved("report", *arguments)
        assert answer.code == 2, arguments
        assert said in answer.err, answer.err
        assert not list(saved.directory.glob("**/report.html"))
    answer = saved("report", "short", "-o", "short.toml/report.html")
    assert answer.code == 1
    assert answer.err.startswith("error: ")


def test_an_unwritable_place_leaves_the_old_page(short: cwnd.Run, tmp_path: Path):
    file = tmp_path / "report.html"
    file.write_text("old")
    (tmp_path / "directory").mkdir()
    with pytest.raises(InputError, match="name a file"):
        report.write([short], tmp_path / "directory")
    report.write([short], file)
    assert file.read_text() != "old"
    assert sorted(p.name for p in tmp_path.iterdir()) == ["directory", "report.html"]


def test_what_draws_is_loaded_by_reports_only():
    script = (
        "import sys, cwnd, cwnd.cli, cwnd.cli.run, cwnd.cli.plot, cwnd.running.runner;"
        "print(sorted({'vl_convert', 'jinja2', 'cwnd.report'} & set(sys.modules)))"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    assert done.stdout == "[]\n"
