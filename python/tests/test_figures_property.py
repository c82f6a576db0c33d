"""Every figure can be drawn, whatever it is of, and all that is written on it can be read."""

from __future__ import annotations

import json
import math
import tempfile
from pathlib import Path

import boxes
import svgs
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

import cwnd
from cwnd import plots
from cwnd.figures import Figure, Line, Panel, Picture, line_style
from cwnd.report.figures import qdelay_figure, runs_figure, sweep_figure, windows_figure

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


def check(figure: Figure) -> None:
    document = figure.svg()
    found = boxes.complaints(*svgs.texts(document))
    assert not found, "\n".join(found)
    assert svgs.numbers(document) == []


@settings(max_examples=150, derandomize=True, phases=PHASES)
@given(pictures())
def test_texts_of_any_picture_lie_inside_of_it_and_apart(picture: Picture):
    check(Figure(picture))


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


@settings(max_examples=40, derandomize=True, phases=PHASES)
@given(scenarios())
def test_figures_of_any_scenario_can_be_drawn_and_read(text: str):
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory) / "scenario.toml"
        path.write_text(text, encoding="utf-8")
        run = cwnd.run(path)
    for kind in plots.default_kinds(run):
        check(plots.draw(run, kind))
    check_report(run)
