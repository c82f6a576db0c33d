"""All that figures show, read back from the files; every figure can be drawn and read."""

from __future__ import annotations

import json
import math
import tempfile
from pathlib import Path
from statistics import fmean, stdev
from typing import NamedTuple

import polars as pl
import pytest
import svgs
from conftest import SHORT
from hypothesis import Phase, given, settings
from hypothesis import strategies as st
from specs import intervals, points
from test_responses import WEB

import cwnd
from cwnd import plots
from cwnd.figures import Figure, Line, Panel, Picture, line_style
from cwnd.plots import kinds
from cwnd.report.figures import qdelay_figure, runs_figure, sweep_figure, windows_figure

#: Quantile of Student's t at 97.5 % for two degrees of freedom, from any table.
T_975_2 = 4.302653
#: Between a mark and its value, in points.
FAR_PT = 0.1
#: A line is thinned to what is seen of it.
THINNED_PT = 0.5

#: Two groups and three lines.
SWEPT = """\
schema = 1
name = "swept"

[run]
duration = "2 s"
warmup = "500 ms"

[dumbbell]
rate = "5 Mbit/s"

[flow.main]
rtt = "20 ms"
start = "uniform(0 ms, 100 ms)"
endpoint = { ecn = true }

[flow.call]
rtt = "20 ms"
workload = { kind = "udp", rate = "20 kbit/s", size = "100 B" }

[sweep]
repeat = 3

[sweep.axis.queue]
path = "dumbbell.queue"
values = ["fifo", "codel", "pie"]
"""
#: Two flows that meet on the second of two links.
GRAPH = """\
schema = 1
name = "graph"

[run]
duration = "2 s"

[link.a]
from = "west"
to = "middle"
rate = "10 Mbit/s"
delay = "5 ms"
duplex = true

[link.b]
from = "middle"
to = "east"
rate = "5 Mbit/s"
delay = "5 ms"
duplex = true

[flow.main]
from = "west"
to = "east"
count = 2
"""
#: Axes along x: path, values, labels, and the true places of the points.
AXES = {
    "linear": ('"dumbbell.rate"', '["4 Mbit/s", "5 Mbit/s", "10 Mbit/s"]', "", [4, 5, 10]),
    "close": ('"dumbbell.rate"', '["1 Mbit/s", "10 Mbit/s", "10.1 Mbit/s"]', "", [1, 10, 10.1]),
    "logarithmic": ('"flow.main.count"', "[1, 4, 16, 64]", "", [1, 4, 16, 64]),
    "wide": ('"flow.main.rtt"', '["1 ms", "10 ms", "1 s"]', "", [0.001, 0.01, 1]),
    "labels": (
        '"flow.main.controller"',
        '["newreno", { kind = "newreno", preset = "abe" }]',
        'labels = ["x", "y"]',
        [0, 1],
    ),
    "doubled": (
        '"flow.main.rtt"',
        '["10 ms", "20 ms", "20000 us"]',
        'labels = ["a", "b", "c"]',
        [10, 20, 20],
    ),
}
#: Metrics, and from their columns to what is shown.
METRICS = {"goodput_bit_s": 1e-6, "drops": 1.0, "qdelay_p50_us": 1e-3}


class Point(NamedTuple):
    """A marker with the ends of its interval; those of none are its own."""

    x: float
    y: float
    low: float
    high: float


def swept(tmp_path: Path, kind: str, *, lines: bool = True) -> cwnd.Run:
    path, values, labels, _ = AXES[kind]
    text = SWEPT if lines else SWEPT.partition("\n[sweep.axis")[0]
    text += f"\n[sweep.axis.along]\npath = {path}\nvalues = {values}\n{labels}\n"
    (tmp_path / "swept.toml").write_text(text)
    return cwnd.run(tmp_path / "swept.toml")


def expected(run: cwnd.Run, metric: str, line: dict[str, str], true: list[float]) -> list[Point]:
    """The points of a line, from the runs themselves."""
    rows = run.per_run(by="group" if metric == "goodput_bit_s" else "all")
    for column, label in line.items():
        rows = rows.filter(pl.col(column) == label)
    found = []
    for x, label in zip(true, next(a.labels for a in run.axes if a.name == "along"), strict=True):
        values = sorted(rows.filter(pl.col("along") == label)[metric] * METRICS[metric])
        assert len(values) == 3
        if metric == "drops":
            low, middle, high = fmean(values[:2]), values[1], fmean(values[1:])
        else:
            middle, half = fmean(values), T_975_2 * stdev(values) / math.sqrt(3)
            low, high = middle - half, middle + half
        found.append(Point(x, middle, low, high))
    return found


def nearest(x: float, true: list[float], *, log: bool) -> float:
    """The value that a reader takes a place for."""
    return min(true, key=lambda value: abs(math.log(x / value)) if log else abs(x - value))


def of_svg(read: svgs.Read, colour: str) -> list[Point]:
    """Markers of a colour with the bars through them, in points but for x."""
    found, bars = [], list(read.bars.get(colour, []))
    for x, y in read.markers.get(colour, []):
        own = [bar for bar in bars if abs(bar[0] - x) < FAR_PT and bar[2] <= y + FAR_PT]
        own = [bar for bar in own if y - FAR_PT <= bar[1]][:1]
        for bar in own:
            bars.remove(bar)
        _, low, high = own[0] if own else (x, y, y)
        found.append(Point(read.x.number(x), y, low, high))
    assert not bars, "a bar without a marker"
    return found


def check(found: list[Point], wanted: list[Point], *, log: bool, near: float) -> None:
    """Each point is there once, nearest to its own value, with its interval."""
    true, left = [point.x for point in wanted], list(wanted)
    for point in found:
        x = nearest(point.x, true, log=log)
        same = (p for p in left if p.x == x and p[1:] == pytest.approx(point[1:], abs=near))
        own = next(same, None)
        assert own is not None, f"{point} is none of {left}"
        left.remove(own)
    assert not left


@pytest.mark.parametrize("kind", AXES)
@pytest.mark.parametrize("lines", [True, False], ids=["lines", "groups"])
def test_every_marker_and_bar_of_a_sweep_is_at_its_value(tmp_path: Path, kind: str, lines: bool):
    run = swept(tmp_path, kind, lines=lines)
    true = AXES[kind][3]
    for metric in METRICS:
        by_group = metric == "goodput_bit_s"
        for group in ("main", "call") if by_group and lines else (None,):
            picture = plots.describe(run, "sweep", metrics=[metric], x="along", group=group)
            (panel,), (read,) = picture.panels, svgs.read(picture)
            colours = [line.colour for line in panel.lines]
            assert len(set(colours)) == len(colours) == (3 if lines else 2 if by_group else 1)
            # All that is drawn is of a line.
            assert set(read.markers) == set(colours)
            for line in panel.lines:
                point = {"queue": line.label} if lines else {}
                point |= {"group": group or line.label} if by_group else {}
                wanted = [
                    each._replace(
                        y=read.y.of(each.y), low=read.y.of(each.low), high=read.y.of(each.high)
                    )
                    for each in expected(run, metric, point, true)
                ]
                check(of_svg(read, line.colour), wanted, log=panel.x_log, near=FAR_PT)


@pytest.mark.parametrize("kind", AXES)
def test_every_point_of_a_report_is_at_its_value(tmp_path: Path, kind: str):
    lines = kind != "labels"
    run = swept(tmp_path, kind, lines=lines)
    figure = sweep_figure(run)
    assert figure is not None
    true, log = AXES[kind][3], kind in ("logarithmic", "wide")
    for label, metric in (("Goodput (Mbit/s)", "goodput_bit_s"), ("Drops", "drops")):
        (drawn,) = (
            zip(choice.picture.panels, panels, strict=True)
            for choice, panels in zip(figure.choices, figure.panels, strict=True)
            if (choice.label, choice.view) == (label, "By group")
        )
        by_group = metric == "goodput_bit_s"
        count = 0
        for described, panel in drawn:
            count += 1
            assert panel.log["x"] == log
            assert panel.spec["encoding"]["x"]["scale"].get("type") == ("log" if log else None)
            low, high = panel.ends["y"]
            read = {"labels": panel.labels, "spec": panel.spec}
            bars = {
                name: {row["at"]: row for row in rows} for name, rows in intervals(read).items()
            }
            assert points(read)
            for name, rows in points(read).items():
                point = {"queue": name} if lines else {}
                point |= {"group": described.title or name} if by_group else {}
                found = []
                for row in rows:
                    x, y = row["x"], row["y"]
                    # Where all seeds give the same value there is no interval.
                    ends = bars.get(name, {}).get(x, {"low": y, "high": y})
                    found.append(Point(x, y, ends["low"], ends["high"]))
                check(found, expected(run, metric, point, true), log=log, near=1e-6)
                assert all(low <= each.low <= each.high <= high for each in found)
        assert count == (2 if by_group and lines else 1)


FIGURES = {
    "sweep": SWEPT,
    "windows": SWEPT,
    "qdelay": SWEPT,
    "delay": SWEPT,
    "timeseries": SHORT,
    "responses": WEB,
    "graph": GRAPH,
}


@pytest.mark.parametrize("kind", FIGURES)
def test_every_line_is_drawn_through_its_points_and_none_is_cut(tmp_path: Path, kind: str):
    (tmp_path / "figure.toml").write_text(FIGURES[kind])
    picture = plots.describe(cwnd.run(tmp_path / "figure.toml"), kind)
    assert set(FIGURES) == set(kinds.KINDS)
    count = 0
    for panel, read in zip(picture.panels, svgs.read(picture), strict=True):
        for line in panel.lines:
            for x, y in zip(line.x, line.y, strict=True):
                if y is None:
                    continue
                place = read.x.of(x), read.y.of(y)
                assert read.holds(place), f"{place} is outside of the panel"
                if line.joined:
                    assert read.distance(line.colour, place) <= THINNED_PT
                if line.marker is not None:
                    assert any(
                        math.dist(place, marker) <= FAR_PT for marker in read.markers[line.colour]
                    )
                count += 1
    assert count > 10


def test_windows_are_those_of_the_samples_to_the_last(tmp_path: Path):
    (tmp_path / "figure.toml").write_text(SWEPT)
    run = cwnd.run(tmp_path / "figure.toml")
    picture = plots.describe(run, "windows")
    first = run.series.filter(pl.col("seed") == 1)
    for panel, read in zip(picture.panels, svgs.read(picture), strict=True):
        samples = first.filter(pl.col("queue") == panel.title)
        for time, window in samples.select("time_s", "snd_cwnd_pkts").iter_rows():
            place = read.x.of(time), read.y.of(window)
            assert read.holds(place)
            assert read.distance(line_style.COLOURS[0], place) <= THINNED_PT


#: A figure that fails is named as it is: making it small would take minutes.
PHASES = [Phase.explicit, Phase.generate]

#: Letters as users write them: of the font's own tables, beyond them, and none at all.
LETTERS = st.one_of(
    st.characters(min_codepoint=0x20, max_codepoint=0x7E),
    st.characters(min_codepoint=0xA0, max_codepoint=0x17F),
    st.sampled_from("βμΩж漢字…→\u2028\x01\n\t$\\{}_^%<>&\"'"),
)
LABELS = st.one_of(
    st.sampled_from(["NewReno+ABE", "uniform(10 ms, 40 ms), uniform(10 ms, 40 ms)", "_hidden"]),
    st.text(LETTERS, min_size=1, max_size=80),
    st.integers(1, 80).map("m".__mul__),
)
NUMBERS = st.one_of(
    st.floats(-1e3, 1e3),
    st.floats(),
    st.sampled_from([0.0, 1e-300, 5e-324, 1e300, math.inf, -math.inf, math.nan]),
)
MAYBE = st.one_of(st.none(), NUMBERS)


@st.composite
def lines(draw: st.DrawFn, index: int) -> Line:
    count = draw(st.sampled_from([0, 1, 2, 7]))
    some = lambda each: st.lists(each, min_size=count, max_size=count)  # noqa: E731
    y = draw(some(MAYBE))
    interval = None
    if draw(st.booleans()):
        around = draw(some(st.none() | st.tuples(st.floats(0, 1e3), st.floats(0, 1e3))))
        both = list(zip(y, around, strict=True))
        interval = tuple(
            [None if at is None or each is None else at + sign * each[end] for at, each in both]
            for end, sign in ((0, -1), (1, 1))
        )
    return Line(
        sorted(draw(some(st.floats(0, 1e4)))) if draw(st.booleans()) else draw(some(NUMBERS)),
        y,
        colour=line_style.colour(index),
        dashes=line_style.dashes(index),
        joined=draw(st.booleans()),
        steps=draw(st.booleans()),
        marker=draw(st.sampled_from([None, *line_style.MARKERS])),
        label=draw(st.none() | LABELS),
        interval=interval,
        band=draw(st.none() | st.tuples(some(MAYBE), some(MAYBE))),
    )


@st.composite
def panels(draw: st.DrawFn) -> Panel:
    ends = st.none() | st.floats(-1e3, 1e3)
    ticks = st.lists(st.tuples(st.floats(0, 1e3), LABELS), max_size=12)
    return Panel(
        [draw(lines(index)) for index in range(draw(st.integers(0, 4)))],
        title=draw(st.just("") | LABELS),
        title_left=draw(st.booleans()),
        x_label=draw(st.just("") | LABELS),
        y_label=draw(st.just("") | LABELS),
        x_log=draw(st.booleans()),
        x_tight=draw(st.booleans()),
        x_limits=draw(st.tuples(ends, ends)),
        y_limits=draw(st.tuples(ends, ends)),
        ticks=draw(st.none() | ticks),
        shown=draw(st.sampled_from([True, True, True, False])),
    )


@st.composite
def pictures(draw: st.DrawFn) -> Picture:
    different = draw(st.lists(panels(), max_size=4))
    count = draw(st.sampled_from([1, 1, 2, 3, 5, 12, 60])) if different else 0
    shared = st.sampled_from(["all", "row", "col", "none"])
    return Picture(
        [different[index % len(different)] for index in range(count)],
        height=draw(st.floats(0.5, 8.0)),
        width=draw(st.sampled_from([4.5, line_style.WIDTH])),
        columns=draw(st.integers(1, 6)),
        x_label=draw(st.just("") | LABELS),
        y_label=draw(st.just("") | LABELS),
        shared_x=draw(shared),
        shared_y=draw(shared),
        legend_above=draw(st.booleans()),
    )


def check_figure(figure: Figure) -> None:
    document = figure.svg()
    found = svgs.complaints(*svgs.texts(document))
    assert not found, "\n".join(found)
    assert svgs.numbers(document) == []


@settings(max_examples=60, derandomize=True, phases=PHASES)
@given(pictures())
def test_texts_of_any_picture_lie_inside_of_it_and_apart(picture: Picture):
    check_figure(Figure(picture))


#: Names as a scenario takes them.
NAMES = st.from_regex(r"[a-z][a-z0-9_-]{0,79}", fullmatch=True)


@st.composite
def scenarios(draw: st.DrawFn) -> str:
    groups = draw(st.lists(NAMES, min_size=1, max_size=9, unique=True))
    duration_ms = draw(st.sampled_from([1, 50, 300]))
    parts = [
        f'schema = 1\nname = "{draw(NAMES)}"\n[run]\nduration = "{duration_ms} ms"',
        f'sample = "{draw(st.sampled_from([1, 10, 1000]))} ms"',
        '[dumbbell]\nrate = "10 Mbit/s"\nqueue = "codel"',
    ]
    for group in groups:
        parts.append(f'[flow."{group}"]\nrtt = "{draw(st.sampled_from([2, 20, 200]))} ms"')
        parts.append(f"count = {draw(st.sampled_from([1, 1, 2, 7, 40]))}")
        if draw(st.booleans()):
            parts.append(f'start = "{draw(st.integers(0, duration_ms - 1))} ms"')
        if draw(st.integers(0, 3)) == 0:
            parts.append('workload = { kind = "udp", rate = "1 Mbit/s", size = "1000 B" }')
    axes = draw(st.integers(0, 3))
    for number, path in enumerate(["dumbbell.rate", "flow.*.rtt", "dumbbell.queue"][:axes]):
        values = {
            "dumbbell.rate": ['"8 Mbit/s"', '"9 Mbit/s"', '"30 Mbit/s"', '"100 Mbit/s"'],
            "flow.*.rtt": ['"uniform(10 ms, 40 ms)"', '"30 ms"', '"150 ms"', '"33 ms"'],
            "dumbbell.queue": ['"codel"', '"pie"', '"fifo"', '{ kind = "codel", target = "9 ms" }'],
        }[path][: draw(st.integers(1, 4))]
        parts.append(f'[sweep.axis.x{number}]\npath = "{path}"\nvalues = [{", ".join(values)}]')
        if draw(st.booleans()):
            unique = st.lists(LABELS, min_size=len(values), max_size=len(values), unique=True)
            parts.append(f"labels = {json.dumps(draw(unique))}")
    return "\n".join(parts) + "\n"


def check_report(run: cwnd.Run) -> None:
    """Checks the figures of the report: JSON has no NaN."""
    for of in (sweep_figure, runs_figure, windows_figure, qdelay_figure):
        figure = of(run)
        if figure is not None:
            assert figure.choices
            for panels in figure.panels:
                for panel in panels:
                    json.dumps([panel.spec, panel.texts, panel.ends], allow_nan=False)


@settings(max_examples=16, derandomize=True, phases=PHASES)
@given(scenarios())
def test_figures_of_any_scenario_can_be_drawn_and_read(text: str):
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory) / "scenario.toml"
        path.write_text(text, encoding="utf-8")
        run = cwnd.run(path)
    for kind in plots.default_kinds(run):
        check_figure(plots.draw(run, kind))
    check_report(run)
