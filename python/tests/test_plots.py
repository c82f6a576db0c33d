"""Figures: what is on them, and that they can be printed."""

from __future__ import annotations

import subprocess
import sys
import xml.etree.ElementTree as ET
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING

import polars as pl
import pytest
import svgs
from conftest import QUENCHED, SHORT

import cwnd
from cwnd import plots
from cwnd.errors import InputError
from cwnd.figures import Figure, line_style
from cwnd.figures import layout as figure_layout
from cwnd.figures.layout import lay_out
from cwnd.plots.layout import Layout, display_unit
from cwnd.results.manifest import Axis
from cwnd.store import PLOTS

if TYPE_CHECKING:
    from conftest import Cli

    from cwnd.figures import Picture


def labels(picture: Picture) -> list[str]:
    """The names in a legend above all panels."""
    return figure_layout.names(picture.panels)


def texts(figure: Figure) -> list[str]:
    return [box.text for box in svgs.texts(figure.svg())[0]]


def drawn(run: cwnd.Run, result: Path, *, quick: bool = True) -> list[Path]:
    """The files of all figures of a result."""
    plots.draw_result(run, result, quick=quick)
    files = sorted((result / PLOTS).iterdir())
    assert files
    return files


def test_time_series_show_window_rtt_and_queue_with_units(short: cwnd.Run):
    picture = plots.describe(short, "timeseries")
    window, rtt, queue = picture.panels
    assert window.y_label == "Window (packets)"
    assert rtt.y_label == "Smoothed RTT (ms)"
    assert queue.y_label == "Queueing delay\nof bottleneck (ms)"
    assert queue.x_label == "Time (s)"
    assert labels(picture) == ["cwnd", "ssthresh"]
    assert list(window.lines[0].y) == short.series["snd_cwnd_pkts"].to_list()
    written = texts(short.plot("timeseries"))
    for each in (window.y_label, queue.y_label, queue.x_label, "cwnd", "ssthresh"):
        assert set(each.split("\n")) <= set(written)


def test_time_series_have_source_quenches_where_some_came(tmp_path: Path):
    (tmp_path / "quenched.toml").write_text(QUENCHED)
    run = cwnd.run(tmp_path / "quenched.toml", set={"run.duration": "5 s"})
    *_, queue, quenches = plots.describe(run, "timeseries").panels
    assert (queue.x_label, quenches.x_label) == ("", "Time (s)")
    assert quenches.y_label == "Quenches\nso far"
    drawn = list(quenches.lines[0].y)
    assert drawn == run.series["quenches"].to_list()
    sent = run.link_series.filter(pl.col("link").cast(pl.String) == "bottleneck")["quenches"]
    # What was sent comes to the only flow, a little later.
    assert drawn[-1] is not None
    assert 0 < drawn[-1] <= sent[-1] == run.links["quenches_total_pkts"].max()


@pytest.mark.parametrize(
    ("kind", "endpoint", "label", "columns"),
    [
        (
            ("adpm", "bmcc"),
            'ecn = true, echo = "load"',
            "Load factor",
            ("load_factor", "load_factor_seen"),
        ),
        (
            ("rcp", "rcp"),
            'echo = "last"',
            "Rate offered\n(Mbit/s)",
            ("offered_bit_s", "offered_bit_s"),
        ),
        (
            ("xcp", "xcp"),
            'echo = "sum"',
            "Feedback\n(Mbit/s)",
            ("feedback_bit_s", "feedback_bytes"),
        ),
    ],
)
def test_time_series_have_what_routers_tell_senders(
    tmp_path: Path, kind: tuple[str, str], endpoint: str, label: str, columns: tuple[str, str]
):
    (meter, controller), (of_link, of_flow) = kind, columns
    (tmp_path / "steered.toml").write_text(
        f"""
        run = {{ duration = "3 s", sample = "100 ms" }}
        dumbbell = {{ rate = "5 Mbit/s", meter = "{meter}", reverse_meter = "{meter}" }}
        [flow.main]
        rtt = "40 ms"
        controller = "{controller}"
        endpoint = {{ {endpoint} }}
        """
    )
    run = cwnd.run(tmp_path / "steered.toml")
    told = plots.describe(run, "timeseries").panels[-1]
    assert told.y_label == f"{label}\nof bottleneck"
    link = run.link_series.filter(pl.col("link").cast(pl.String) == "bottleneck")
    unit = 1e6 if "Mbit/s" in label else 1.0
    assert list(told.lines[-1].y) == pytest.approx((link[of_link] / unit).to_list())
    heard = run.series[of_flow].drop_nulls()
    if of_link == "feedback_bit_s":
        assert heard.abs().max() > 0
    else:
        # Senders learn the value of the link a while later.
        assert heard[-1] == pytest.approx(link[of_link][-1], rel=0.1)


def test_an_initial_threshold_that_is_out_of_sight_does_not_flatten_the_window(short: cwnd.Run):
    window = lay_out(plots.describe(short, "timeseries")).places[0]
    assert window.y.high <= 2 * short.series["snd_cwnd_pkts"].max()


def test_a_sweep_is_a_grid_of_metrics_with_intervals(sweep: cwnd.Run):
    picture = plots.describe(sweep)
    assert [panel.y_label for panel in picture.panels] == [
        "Goodput (Mbit/s)",
        "Queueing delay,\nmedian (ms)",
        "Queueing delay,\n90th percentile (ms)",
    ]
    assert picture.panels[-1].x_label == "RTT (ms)"
    assert labels(picture) == ["NewReno", "NewReno+ABE"]
    goodput, read = picture.panels[0], svgs.read(picture)[0]
    assert len(read.markers) == len(goodput.lines) == 2
    summary = sweep.summary().filter(pl.col("arm") == "NewReno")
    colour = goodput.lines[0].colour
    found = [read.at(place)[1] for place in read.markers[colour]]
    assert found == pytest.approx([v / 1e6 for v in summary["goodput_bit_s"]], rel=1e-3)
    heights = [read.y.number(high) - read.y.number(low) for _, low, high in read.bars[colour]]
    assert heights == pytest.approx([2 * v / 1e6 for v in summary["goodput_bit_s_ci95"]], rel=1e-2)


def test_any_metric_is_drawn_against_any_axis(sweep: cwnd.Run):
    picture = plots.describe(sweep, "sweep", metrics=["marks"], x="arm")
    (panel,) = picture.panels
    assert panel.x_label == "arm"
    assert panel.ticks == [(0, "NewReno"), (1, "NewReno+ABE")]
    assert labels(picture) == ["rtt = 10 ms", "rtt = 20 ms", "rtt = 40 ms"]


def many(tmp_path: Path, *counts: int) -> cwnd.Run:
    """A sweep with axes of so many values, and the smallest of runs."""
    text = SHORT.replace('"2 s"', '"200 ms"').replace('"uniform(0 ms, 100 ms)"', '"0 ms"')
    paths = ("flow.main.rtt", "dumbbell.rate", "flow.main.start")
    units = ("ms", "Mbit/s", "us")
    for path, unit, count in zip(paths, units, counts, strict=False):
        values = ", ".join(f'"{10 + n} {unit}"' for n in range(count))
        name = path.rpartition(".")[2]
        text += f'\n[sweep.axis.{name}]\npath = "{path}"\nvalues = [{values}]\n'
    (tmp_path / "many.toml").write_text(text)
    return cwnd.run(tmp_path / "many.toml")


def test_columns_that_do_not_fit_the_width_of_a_page_are_continued_below(tmp_path: Path):
    picture = plots.describe(many(tmp_path, 9, 8), "sweep")
    titles = [panel.title for panel in picture.panels if panel.title]
    assert titles == [f"rate = {10 + n} Mbit/s" for n in range(8)]
    assert (picture.columns, len(picture.panels)) == (4, 4 * 3 * 2)
    # Both parts of a row have the same ends, and the last panels of each the name of their axis.
    assert picture.panels[0].y_limits == picture.panels[3 * 4].y_limits
    assert [index // 4 for index, p in enumerate(picture.panels) if p.x_label][::4] == [2, 5]


def test_more_panels_than_a_page_is_long_are_counted(tmp_path: Path):
    run = many(tmp_path, 9, 8, 8)
    assert plots.default_kinds(run) == ["sweep", "windows", "qdelay"]
    for kind in plots.default_kinds(run):
        picture = plots.describe(run, kind)
        names = {picture.below, *(panel.x_label for panel in picture.panels)}
        said = {"sweep": "the first 24 of 64 columns"}
        said["windows"] = said["qdelay"] = (
            "the first 36 of 576 panels, without rate = 10 Mbit/s, start = 14 us, rtt = 10 ms"
            " to rate = 17 Mbit/s, start = 17 us, rtt = 18 ms"
        )
        assert any(said[kind] in name for name in names), names
        assert svgs.complaints(*svgs.texts(Figure(picture).svg())) == []


def test_the_distribution_of_the_delay_rises_from_zero_to_one(sweep: cwnd.Run):
    picture = plots.describe(sweep, "qdelay")
    assert len(picture.panels) == 3
    assert picture.x_label == "Queueing delay of bottleneck (ms; below 0.1 ms at the left edge)"
    for panel in svgs.read(picture):
        assert len(panel.paths) == 2
        for (path,) in panel.paths.values():
            ys = [panel.at(place)[1] for place in path]
            assert (ys[0], ys[-1]) == pytest.approx((0, 1), abs=1e-4)
            assert all(a <= b for a, b in pairwise(ys))


def test_the_distribution_is_that_of_the_link_table(short: cwnd.Run):
    (panel,) = plots.describe(short, "qdelay").panels
    xs, ys = panel.lines[0].x, panel.lines[0].y
    # Waits below 0.1 ms are drawn at the edge; this one is far above.
    median_us = short.links.filter(pl.col("link") == "bottleneck")["qdelay_p50_us"][0]
    drawn = next(x for x, y in zip(xs, ys, strict=True) if y is not None and y >= 0.5)
    # The table's median is exact or of the same bins; bins are a few percent wide.
    assert drawn * 1e3 == pytest.approx(median_us, rel=0.1, abs=100)


def test_the_windows_of_a_sweep_have_a_panel_for_each_point(sweep: cwnd.Run):
    picture = plots.describe(sweep, "windows")
    assert [p.title for p in picture.panels] == ["rtt = 10 ms", "rtt = 20 ms", "rtt = 40 ms"]
    assert labels(picture) == ["NewReno", "NewReno+ABE"]
    assert picture.y_label == "Congestion window (packets)"
    assert picture.x_label == "Time (s), seed 1"


def test_many_flows_are_drawn_as_median_and_band(scenarios: Path):
    run = cwnd.run(scenarios / "short.toml", set={"flow.main.count": 10})
    picture = plots.describe(run, "timeseries")
    assert picture.panels[0].title == "short: median and middle 80 % of flows"
    window = svgs.read(picture)[0]
    assert len(window.paths) == len(window.bands) == 1


def test_figures_are_written_as_png_and_svg(sweep: cwnd.Run, tmp_path: Path):
    files = drawn(sweep, tmp_path, quick=False)

    names = {file.name for file in files}
    assert names == {
        f"{kind}.{suffix}" for kind in ("sweep", "windows", "qdelay") for suffix in ("png", "svg")
    }
    for file in files:
        content = file.read_bytes()
        if file.suffix == ".png":
            assert content.startswith(b"\x89PNG\r\n\x1a\n")
            assert len(content) > 10_000
        else:
            assert ET.fromstring(content).tag.endswith("svg")
            assert b"NewReno+ABE" in content


def test_a_first_look_has_all_texts_of_its_description(sweep: cwnd.Run, tmp_path: Path):
    files = drawn(sweep, tmp_path)

    assert {file.name for file in files} == {"sweep.svg", "windows.svg", "qdelay.svg"}
    for file in files:
        texts = {box.text for box in svgs.texts(file.read_text(encoding="utf-8"))[0]}
        shown = plots.describe(sweep, file.stem)
        names = {shown.below, shown.y_label}
        for panel in shown.panels:
            names |= {panel.title, panel.x_label, *panel.y_label.split("\n")}
            names |= {line.label for line in panel.lines if line.label}
        assert names - {""} <= texts


def test_a_command_that_simulates_does_not_import_numpy(scenarios: Path, tmp_path: Path):
    code = (
        "import sys; from cwnd.cli import main\n"
        "try: main(sys.argv[1:])\n"
        "except SystemExit: print('numpy' in sys.modules)"
    )
    command = [sys.executable, "-c", code, "run", str(scenarios / "short.toml"), "-o", "out", "-q"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "False"
    assert (tmp_path / "out/plots/timeseries.svg").stat().st_size > 0


def test_figures_of_a_run_that_fills_memory_are_drawn_from_disk(scenarios: Path, tmp_path: Path):
    code = (
        "import sys; from cwnd.store import assembly; assembly.PART_ROWS = 100;"
        " from cwnd.running import simulating; assert simulating.PART_ROWS == 100;"
        " from cwnd.cli import main; main(sys.argv[1:])"
    )
    command = [sys.executable, "-c", code, "run", str(scenarios / "sweep.toml"), "-o", "out", "-q"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True)
    assert "could not be drawn" not in done.stderr
    assert {file.stem for file in (tmp_path / "out/plots").iterdir()} == {
        *("sweep", "windows", "qdelay")
    }


def test_the_same_result_gives_the_same_picture(sweep: cwnd.Run, tmp_path: Path):
    assert sweep.plot().png() == sweep.plot().png()
    one, other = drawn(sweep, tmp_path / "1"), drawn(sweep, tmp_path / "2")
    assert [file.read_bytes() for file in one] == [file.read_bytes() for file in other]


def test_neighbouring_lines_differ_in_grey():
    # Lightness by the weights of ITU-R BT.709; equal ones need other dashes.
    def lightness(colour: str) -> float:
        red, green, blue = (int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5))
        return 0.2126 * red + 0.7152 * green + 0.0722 * blue

    indices = range(len(line_style.COLOURS))
    for one, other in pairwise(indices):
        apart = abs(lightness(line_style.colour(one)) - lightness(line_style.colour(other)))
        assert apart > 0.1 or line_style.dashes(one) != line_style.dashes(other)
    assert len({line_style.marker(index) for index in indices}) == len(indices)


def test_distributions_of_one_axis_share_a_panel(tmp_path: Path):
    axis = '[sweep.axis.rtt]\npath = "flow.main.rtt"\nvalues = ["10 ms", "20 ms"]\n'
    (tmp_path / "one.toml").write_text(f"{SHORT}\n{axis}")
    picture = plots.describe(cwnd.run(tmp_path / "one.toml"), "qdelay")
    assert len(picture.panels) == 1
    assert labels(picture) == ["rtt = 10 ms", "rtt = 20 ms"]


def axis(name: str, labels: list[str], numeric: bool = False) -> Axis:
    return Axis(name, name, f"{name}_s" if numeric else None, "s" if numeric else None, labels)


def test_numbers_go_along_x_and_the_longest_other_axis_becomes_lines():
    arm, queue = axis("arm", ["a", "b", "c", "d"]), axis("queue", ["codel", "pie"])
    rtt = axis("rtt", ["100 ms", "200 ms"], numeric=True)
    layout = Layout.of([arm, queue, rtt])
    assert (layout.x, layout.lines, layout.panels) == (rtt, arm, (queue,))
    assert Layout.of([arm, queue, rtt], x="queue", lines="rtt").panels == (arm,)
    assert Layout.of([axis("one", ["only"])]).x is None


def test_an_unknown_axis_is_answered_with_the_known_ones():
    with pytest.raises(InputError, match="it has rtt"):
        Layout.of([axis("rtt", ["1 s", "2 s"], numeric=True)], x="delay")


def test_quantities_are_shown_in_units_that_people_read():
    assert display_unit("s", [0.1, 0.4]) == ("ms", 1e3)
    assert display_unit("bit/s", [1e6, 1e9]) == ("Gbit/s", 1e-9)
    assert display_unit(None, [0.5]) == ("", 1.0)


def test_there_is_no_sweep_to_draw_without_axes(short: cwnd.Run):
    with pytest.raises(InputError, match="no sweep"):
        short.plot("sweep")


def test_cwnd_plot_draws_again_from_the_files(saved: Cli):
    answer = saved("plot", "sweep")
    assert answer.code == 0, answer.err
    assert all((saved.directory / line).stat().st_size > 0 for line in answer.out.splitlines())

    answer = saved("plot", "sweep", "--metric", "marks", "--x", "rtt", "-o", "mine", "--json")
    assert answer.json == {"plots": ["mine/sweep-marks.png", "mine/sweep-marks.svg"]}
    answer = saved("plot", "sweep", "--at", "arm=NewReno", "--at", "rtt=40 ms", "--seed", 2)
    assert answer.code == 0, answer.err
    assert "timeseries.png" in answer.out


@pytest.mark.parametrize(
    "options",
    [
        ["--metric", "speed"],
        ["--x", "delay"],
        ["--at", "arm"],
        ["--at", "arm=Vegas"],
        ["--at", "leg=NewReno"],
        ["--at", "rtt=20 ms", "--at", "rtt=40 ms"],
        ["--kind", "timeseries", "--seed", "99"],
        ["--link", "wireless"],
        ["--kind", "pie"],
        ["--metric", "fct"],
        ["--kind", "delay", "--x", "rtt"],
        ["--kind", "timeseries", "--metric", "marks"],
        ["--kind", "qdelay", "--lines", "group"],
        ["--kind", "timeseries", "--lines", "arm"],
        ["--x", "arm", "--lines", "arm"],
        ["--kind", "sweep", "--seed", "1"],
        ["--kind", "sweep", "--at", "rtt=40 ms"],
    ],
    ids=" ".join,
)
def test_cwnd_plot_answers_what_it_cannot_draw(saved: Cli, options: list[str]):
    answer = saved("plot", "sweep", *options)
    assert answer.code == 2
    assert answer.err.startswith("error: ")


def test_datagrams_have_no_windows_to_draw(tmp_path: Path):
    path = tmp_path / "crowd.toml"
    crowd = 'workload = { kind = "udp", rate = "9 Mbit/s", size = "1000 B", arrivals = "poisson" }'
    path.write_text(SHORT.split("[flow.main]")[0] + f'[flow.crowd]\nrtt = "20 ms"\n{crowd}\n')
    run = cwnd.run(path)
    with pytest.raises(InputError, match="all of its flows are datagrams"):
        run.plot("timeseries")
    run.save(tmp_path / "out")
    assert {p.stem for p in (tmp_path / "out/plots").iterdir()} == {"qdelay"}


@pytest.mark.parametrize("name", ["short", "sweep"])
def test_a_command_draws_what_the_library_draws(saved: Cli, tmp_path: Path, name: str):
    assert saved("plot", name).code == 0
    cwnd.Run.load(saved.directory / name).save(tmp_path / "library")

    files = sorted((tmp_path / "library" / "plots").iterdir())
    assert len(files) >= 4
    for file in files:
        assert (saved.directory / name / "plots" / file.name).read_bytes() == file.read_bytes()


def test_bands_have_gaps_where_a_group_has_no_round_trip_time_yet(tmp_path: Path):
    # One group begins when the other is half done: until then it has no RTT.
    late = SHORT.replace("[flow.main]", "[flow.main]\ncount = 7") + (
        '\n[flow.late]\nrtt = "20 ms"\nstart = "1 s"\n'
    )
    (tmp_path / "late.toml").write_text(late)
    run = cwnd.run(tmp_path / "late.toml")

    picture = plots.describe(run, "timeseries")
    rtts = picture.panels[1].lines
    assert all(None in (line.band or ([],))[0] for line in rtts)
    read = svgs.read(picture)[1]
    assert set(read.bands) == {line.colour for line in rtts}
    assert svgs.numbers(run.plot("timeseries").svg()) == []
