"""Groups of flows in figures, reports and comparisons."""

from __future__ import annotations

import shlex
import subprocess
import sys
import warnings
from pathlib import Path
from typing import TYPE_CHECKING

import chromium
import polars as pl
import pytest
import specs
from conftest import HALF, ROOT

import cwnd
from cwnd import plots, report
from cwnd.errors import InputError
from cwnd.figures import line_style
from cwnd.plots import sweep as sweep_of
from cwnd.results.comparing import compare

if TYPE_CHECKING:
    from conftest import Cli

    from cwnd.figures import Panel

#: `HALF` with another axis, whose labels become the lines.
TWO_AXES = (
    HALF
    + """
[sweep.axis.queue]
path = "dumbbell.queue"
values = ["codel", "pie"]
"""
)
CUBIC, ABE, TOGETHER = line_style.colour(0), line_style.colour(1), line_style.colour(6)


@pytest.fixture(scope="module")
def crossed(tmp_path_factory: pytest.TempPathFactory) -> cwnd.Run:
    path = tmp_path_factory.mktemp("crossed") / "crossed.toml"
    path.write_text(TWO_AXES)
    return cwnd.run(path)


@pytest.fixture
def saved(cli: Cli, half: cwnd.Run, short: cwnd.Run) -> Cli:
    half.save(cli.directory / "half", plots=False)
    short.save(cli.directory / "short", plots=False)
    return cli


def labels(panel: Panel) -> list[str | None]:
    return [line.label for line in panel.lines]


def colours(panel: Panel) -> list[str]:
    return [line.colour for line in panel.lines]


def test_groups_are_the_lines_where_no_other_axis_is(half: cwnd.Run):
    goodput, median, _ = plots.describe(half, "sweep").panels
    assert labels(goodput) == ["cubic", "abe"]
    assert colours(goodput) == [CUBIC, ABE]
    for line in goodput.lines:
        rows = half.summary(["goodput"], group=line.label)
        assert list(line.y) == pytest.approx([v / 1e6 for v in rows["goodput_bit_s"]])
    assert labels(median) == ["all flows"], "a queue has no groups"
    assert colours(median) == [TOGETHER]
    delays = half.summary(["qdelay_p50_us"], by="all")["qdelay_p50_us"]
    assert list(median.lines[0].y) == pytest.approx([v / 1e3 for v in delays])


def test_groups_have_rows_of_their_own_where_another_axis_is_the_lines(crossed: cwnd.Run):
    figure = plots.describe(crossed, "sweep")
    assert [panel.y_label for panel in figure.panels] == [
        "Goodput of cubic\n(Mbit/s)",
        "Goodput of abe\n(Mbit/s)",
        "Queueing delay,\nmedian (ms)",
        "Queueing delay,\n90th percentile (ms)",
    ]
    assert all(labels(panel) == ["codel", "pie"] for panel in figure.panels)
    cubic, abe, *_ = figure.panels
    assert cubic.y_limits == abe.y_limits, "they are compared"
    assert cubic.lines[0].y != abe.lines[0].y
    lines = plots.describe(crossed, "sweep", lines="group", metrics=["goodput"])
    assert [panel.title for panel in lines.panels] == ["codel", "pie"]
    assert all(labels(panel) == ["cubic", "abe"] for panel in lines.panels)


def test_shares_and_ratios_are_drawn_and_say_relative_to_what(half: cwnd.Run):
    chosen = ["goodput_share", "goodput_ratio"]
    share, ratio = plots.describe(half, "sweep", metrics=chosen).panels
    assert share.y_label == "Share of goodput (%)"
    for values in zip(*(line.y for line in share.lines), strict=True):
        assert sum(values) == pytest.approx(100)
    assert ratio.y_label == "Goodput per flow,\nrelative to cubic"
    assert [len(line.y) for line in ratio.lines] == [0, 2]
    _, other = plots.describe(half, "sweep", metrics=chosen, relative_to="abe").panels
    assert other.y_label.endswith("relative to abe")


def test_groups_stand_along_x_and_flows_are_lines_where_asked(half: cwnd.Run):
    (panel,) = plots.describe(half, "sweep", x="group").panels
    assert panel.ticks == [(0, "cubic"), (1, "abe")]
    assert labels(panel) == ["rate = 5 Mbit/s", "rate = 10 Mbit/s"]
    (panel,) = plots.describe(half, "sweep", lines="flow", metrics=["goodput"]).panels
    assert labels(panel) == ["cubic, flow 0", "cubic, flow 1", "abe, flow 2"]
    assert colours(panel) == [CUBIC, CUBIC, ABE]
    assert len({(line.colour, line.dashes) for line in panel.lines}) == 3
    (panel,) = plots.describe(half, "sweep", lines="flow", group="abe", metrics=["rtt_p50"]).panels
    assert labels(panel) == ["abe, flow 2"] or labels(panel) == ["abe"]
    with pytest.raises(InputError, match="qdelay_p50_us: of a link"):
        half.plot("sweep", x="group", metrics=["qdelay_p50"])


def test_one_group_or_all_flows_together_are_drawn_where_asked(half: cwnd.Run):
    one = plots.describe(half, "sweep", group="abe").panels[0]
    assert (labels(one), colours(one)) == (["abe"], [ABE])
    together = plots.describe(half, "sweep", group="*").panels[0]
    assert labels(together) == [None]
    rows = half.summary(by="all")
    assert list(together.lines[0].y) == pytest.approx([v / 1e6 for v in rows["goodput_bit_s"]])
    with pytest.raises(InputError, match="neither groups nor flows apart"):
        half.plot("sweep", group="*", lines="group")
    with pytest.raises(InputError, match="--lines group"):
        half.plot("sweep", group="*", metrics=["goodput_share"])


def test_the_windows_of_a_sweep_have_a_line_for_each_group(half: cwnd.Run):
    figure = plots.describe(half, "windows")
    assert [panel.title for panel in figure.panels] == ["rate = 5 Mbit/s", "rate = 10 Mbit/s"]
    assert figure.y_label == "Mean congestion window (packets)"
    at = half.series.filter(pl.col("seed") == 1, pl.col("rate") == "5 Mbit/s")
    for line in figure.panels[0].lines:
        mine = at.filter(pl.col("group") == line.label)
        mean = mine.group_by("time_s").agg(pl.col("snd_cwnd_pkts").mean()).sort("time_s")
        assert list(line.y) == pytest.approx(mean["snd_cwnd_pkts"].to_list())
    assert labels(figure.panels[0]) == ["cubic", "abe"]
    assert colours(figure.panels[0]) == [CUBIC, ABE]
    flows = plots.describe(half, "windows", lines="flow").panels[0]
    assert labels(flows) == ["cubic, flow 0", "cubic, flow 1", "abe, flow 2"]
    assert colours(flows) == [CUBIC, CUBIC, ABE]
    assert flows.lines[0].dashes != flows.lines[1].dashes
    assert labels(plots.describe(half, "windows", group="abe").panels[0]) == ["abe"]


def test_lines_over_time_have_the_colours_of_their_groups(half: cwnd.Run):
    window, rtt, queue = plots.describe(half, "timeseries").panels
    assert labels(window) == ["cubic, flow 0", "cubic, flow 1", "abe, flow 2"]
    assert colours(window) == colours(rtt) == [CUBIC, CUBIC, ABE]
    assert colours(queue) == [TOGETHER]
    window, *_ = plots.describe(half, "timeseries", lines="group").panels
    assert (labels(window), colours(window)) == (["cubic", "abe"], [CUBIC, ABE])
    assert all(line.band is not None for line in window.lines)
    window, *_ = plots.describe(half, "timeseries", group="abe").panels
    assert labels(window) == ["cwnd of abe", "ssthresh"]
    assert window.lines[0].colour == ABE
    with pytest.raises(InputError, match="`flow` or `group`, not `rate`"):
        half.plot("timeseries", lines="rate")


def test_more_flows_than_look_different_are_not_drawn_one_by_one(half: cwnd.Run, tmp_path: Path):
    (tmp_path / "many.toml").write_text(HALF)
    run = cwnd.run(tmp_path / "many.toml", set={"flow.cubic.count": 28, "run.duration": "600 ms"})
    for kind in ("sweep", "windows", "timeseries"):
        with pytest.raises(InputError, match="29 flows are more than"):
            run.plot(kind, lines="flow")
        assert run.plot(kind, lines="flow", group="abe")
        assert run.plot(kind)


def test_cwnd_plot_draws_groups(saved: Cli):
    for options in (
        ["--lines", "group"],
        ["--x", "group"],
        ["--lines", "flow", "--group", "abe", "--metric", "goodput_ratio"],
        ["--group", "*"],
        ["--kind", "windows", "--lines", "flow"],
        ["--metric", "goodput_ratio", "--relative-to", "abe"],
    ):
        answer = saved("plot", "half", *options, "--json")
        assert answer.code == 0, answer.err
        assert answer.json["plots"]
    answer = saved("plot", "short", "--lines", "group", "--json")
    assert [Path(file).stem for file in answer.json["plots"]] == ["timeseries"] * 2


def test_cwnd_plot_has_no_lines_along_x(saved: Cli):
    answer = saved("plot", "half", "--lines", "rate")
    assert answer.code == 2
    assert "axis `rate` is along x and cannot be the lines as well" in " ".join(answer.err.split())


@pytest.mark.parametrize(
    "options",
    [["--group", "reno"], ["--relative-to", "reno"], ["--kind", "qdelay", "--group", "reno"]],
    ids=" ".join,
)
def test_cwnd_plot_names_the_groups_there_are(saved: Cli, options: list[str]):
    answer = saved("plot", "half", *options)
    assert answer.code == 2
    assert "there is no group `reno` in this result; there are cubic, abe" in answer.err


def test_a_comparison_has_rows_of_groups(half: cwnd.Run, tmp_path: Path):
    (tmp_path / "half.toml").write_text(HALF)
    other = cwnd.run(tmp_path / "half.toml", set={"dumbbell.queue": "pie"})
    found = compare(half, other, ["goodput_bit_s", "goodput_share", "qdelay_p50_us"])
    assert [(each.group, each.metric) for each in found.differences[:6]] == [
        ("*", "goodput_bit_s"),
        ("*", "qdelay_p50_us"),
        ("cubic", "goodput_bit_s"),
        ("cubic", "goodput_share"),
        ("abe", "goodput_bit_s"),
        ("abe", "goodput_share"),
    ]
    for each in found.differences:
        for run, estimate in ((half, each.before), (other, each.after)):
            row = run.summary().filter(rate=each.point["rate"], group=each.group)
            assert estimate.mean == pytest.approx(row[each.metric][0])
        assert each.paired
    assert found.groups_only_before == found.groups_only_after == []
    only = compare(half, other, ["goodput_bit_s"], group="abe")
    assert {each.group for each in only.differences} == {"abe"}
    with pytest.raises(InputError, match="there are cubic, abe"):
        compare(half, other, group="reno")


def test_a_group_that_one_result_lacks_is_said(saved: Cli, tmp_path: Path):
    renamed = HALF.replace("flow.abe", "flow.reno")
    cwnd.run(saved.write("renamed.toml", renamed)).save(saved.directory / "renamed", plots=False)
    answer = saved("compare", "half", "renamed")
    assert answer.code == 0, answer.err
    assert "note: renamed lacks the group abe" in answer.out
    assert "note: half lacks the group reno" in answer.out
    goodputs = [line for line in answer.out.splitlines() if "Goodput (Mbit/s)" in line]
    assert ["cubic" in line for line in goodputs] == [False, True] * 2
    document = saved("compare", "half", "renamed", "--json").json
    assert document["groups_only_after"] == ["reno"]
    assert {each["group"] for each in document["differences"]} == {"*", "cubic"}


def test_a_report_lets_readers_choose_groups_all_flows_or_flows(half: cwnd.Run):
    figures = specs.figures(report.html([half]))
    views = ["By group", "All flows together", "Flow by flow"]
    for name, expected in (("r1-sweep", views), ("r1-windows", views)):
        assert list(dict.fromkeys(c["view"] for c in figures[name]["choices"])) == expected
    choices = {(c["view"], c["label"]): c for c in figures["r1-sweep"]["choices"]}
    (panel,) = choices["By group", "Goodput (Mbit/s)"]["panels"]
    points = specs.points(panel)
    assert list(points) == ["cubic", "abe"]
    for group, drawn in points.items():
        rows = half.summary(["goodput"], group=group)
        means = [v / 1e6 for v in rows["goodput_bit_s"]]
        assert [row["y"] for row in drawn] == pytest.approx(means, rel=1e-6)
    assert specs.colours(panel) == {"cubic": CUBIC, "abe": ABE}
    assert ("By group", "Goodput per flow, relative to cubic") in choices
    assert ("All flows together", "Share of goodput (%)") not in choices
    (panel,) = choices["All flows together", "Goodput (Mbit/s)"]["panels"]
    assert list(specs.points(panel)) == [""]
    over_time = figures["r1-timeseries"]["choices"]
    assert [c["view"] for c in over_time[:2]] == ["Flow by flow", "By group"]
    windows = {c["view"]: c for c in figures["r1-windows"]["choices"]}
    for view, count in (("By group", 2), ("All flows together", 1), ("Flow by flow", 3)):
        drawn = sum(len(specs.lines(panel)) for panel in windows[view]["panels"])
        # All flows together: the axis along x becomes nothing else, so each panel has one line.
        assert drawn == 2 * count


def test_a_number_is_of_the_group_that_has_it_where_a_sweep_varies_how_many_flows_there_are(
    tmp_path: Path,
):
    # Of one flow each the second is of `b`, of two each it is of `a`.
    file = tmp_path / "counts.toml"
    file.write_text(
        """
[run]
duration = "2 s"
[dumbbell]
rate = "10 Mbit/s"
[flow.a]
rtt = "20 ms"
[flow.b]
rtt = "80 ms"
[sweep.axis.each]
path = "flow.*.count"
values = [1, 2]
""",
        encoding="utf-8",
    )
    run = cwnd.run(file)
    content = sweep_of.prepare(run, metrics=["goodput"], by="flow")
    assert content.summary.select("each", "flow_id").rows() == [
        ("1", "a, flow 0"),
        ("1", "b, flow 1"),
        *(("2", name) for name in ("a, flow 0", "a, flow 1", "b, flow 2", "b, flow 3")),
    ]
    for (each, name), found in zip(
        content.summary.select("each", "flow_id").rows(),
        content.summary["goodput_bit_s"],
        strict=True,
    ):
        group, number = name.split(", flow ")
        flows = run.flows.filter(
            (pl.col("each").cast(pl.String) == each)
            & (pl.col("group").cast(pl.String) == group)
            & (pl.col("flow_id") == int(number))
        )
        assert flows["goodput_bit_s"].to_list() == [found]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert "Over the sweep" in report.html([run])


def test_a_report_of_one_group_has_nothing_to_choose(sweep: cwnd.Run):
    page = report.html([sweep])
    assert '<select class="views">' not in page
    assert {c["view"] for c in specs.figures(page)["r1-sweep"]["choices"]} == {""}


@pytest.mark.skipif(
    chromium.find() is None, reason=f"none of {', '.join(chromium.NAMES)} is installed"
)
def test_a_reader_chooses_in_a_browser(half: cwnd.Run, tmp_path: Path):
    file = report.write([half], tmp_path / "report.html")
    choose = (
        "(() => { const s = document.querySelector('#r1-sweep select.%s');"
        "s.value = '%s'; s.dispatchEvent(new Event('change')); })()"
    )
    lines = (
        "[...document.querySelectorAll('#r1-sweep .plot')].map((plot) =>"
        "[...new Set([...plot.querySelectorAll('.mark-symbol path')].map((point) =>"
        "[point.getAttribute('d'), point.getAttribute('fill')].join()))]"
        ".map((each) => each.split(',').at(-1)).join())"
    )
    legend = (
        "[...document.querySelectorAll('#r1-sweep .legend:not([hidden]) button')]"
        ".map((b) => b.textContent.trim())"
    )
    with chromium.Chromium(tmp_path / "profile") as page:
        page.show_as(1280, 900)
        page.open(file)
        page.until("document.documentElement.dataset.figures === 'ready'")
        page.until("document.querySelector('#r1-sweep .mark-symbol') !== null")
        assert page.evaluate(lines) == [f"{CUBIC},{ABE}", TOGETHER, TOGETHER]
        assert page.evaluate(legend) == ["cubic", "abe", "all flows"]
        page.evaluate(choose % ("labels", "Share of goodput (%)"))
        page.until(f"{lines}.join() === '{CUBIC},{ABE}'")
        # All flows have no share: the first of what they have is shown.
        page.evaluate(choose % ("views", "All flows together"))
        page.until(f"{lines}.join('|') === '{'|'.join([CUBIC] * 3)}'")
        assert page.evaluate(legend) == []
        page.evaluate(choose % ("labels", "Goodput (Mbit/s)"))
        page.evaluate(choose % ("views", "Flow by flow"))
        page.until(f"{lines}.join('|') === '{CUBIC},{CUBIC},{ABE}'")
        names = ["cubic, flow 0", "cubic, flow 1", "abe, flow 2", "all flows"]
        assert page.evaluate(legend) == names
        page.screenshot(tmp_path / "flows.png")
        assert page.complaints() == []


def test_the_tutorials_study_of_two_groups_runs_as_it_is_written(cli: Cli):
    page = (ROOT / "docs/start/own-question.md").read_text()
    section = page.partition("## Half CUBIC, half ABE")[2]
    section = section.partition("\n## ")[0]
    toml, shell, python = (
        section.partition(f"```{kind}\n")[2].partition("```")[0]
        for kind in ("toml", "sh", "python")
    )
    cli.write("mixed.toml", toml.replace('"60 s"', '"4 s"').replace('"10 s"', '"1 s"'))
    for line in shell.splitlines():
        program, *words = shlex.split(line, comments=True)
        assert program == "cwnd"
        answer = cli(*words)
        assert answer.code == 0, answer.err
    script = f"import cwnd\n{python}print(run.summary(by='group').height)"
    done = subprocess.run(
        [sys.executable, "-c", script],
        cwd=cli.directory,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.stdout.strip(), done.stderr) == ("6", "")
