"""Figures: every kind of mark read back from the SVG, and the promises of the files."""

from __future__ import annotations

import itertools
import json
import logging
import math
import re
import time
from typing import TYPE_CHECKING, Any

import altair as alt
import pytest
import svgs
import vl_convert

from cwnd.errors import InputError
from cwnd.figures import (
    Bars,
    Figure,
    Image,
    Line,
    Note,
    Panel,
    Picture,
    Rule,
    Span,
    line_style,
    text,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from cwnd.figures import Mark

BLUE, ORANGE, GREEN, *_ = line_style.COLOURS
#: Tolerance of numbers read back: Vega rounds paths to a thousandth of a point.
NEAR = 1e-3


def one(*marks: Mark, **options: Any) -> Picture:
    """A figure of one panel."""
    return Picture([Panel(list(marks), **options)], height=2.6, width=4.5)


def read(picture: Picture) -> svgs.Read:
    """The only panel of a figure."""
    (panel,) = svgs.read(picture)
    return panel


def near(places: Sequence[tuple[float, ...]]) -> Any:
    return [pytest.approx(place, rel=NEAR, abs=NEAR) for place in places]


def every_kind() -> Picture:
    """Each kind of mark, linear and logarithmic axes, upright labels, a legend."""
    steps = Line(
        [0, 1, 3], [0, 0.5, 1], GREEN, steps=True, label="steps", dashes=line_style.DASHES[1]
    )
    names = [(float(n), f"a controller with the name {n}") for n in range(4)]
    return Picture(
        [
            Panel([Bars([0, 1], [3, 1], BLUE, label="bars")], y_label="Delay (ms)", ticks=names),
            Panel([Bars([0, 1], [3, 1], ORANGE, upright=False), Rule(x=2.5)]),
            Panel(
                [
                    Rule(y=2.2, label="a reference"),
                    Span(y=(4.5, 5.0), label="a range"),
                    Note(0.1, 6.5, "a note"),
                ]
            ),
            Panel([Image([[0, 1], [None, 3]], 3, key="β", texts=["ab", "cd"])]),
            Panel([steps, Line([1, 2], [1, 0.2], BLUE, marker="D", label="points")]),
            Panel([every_part()], title="all of them", x_log=True, y_log=True),
        ],
        height=5.0,
        columns=3,
        shared_x="none",
        shared_y="none",
        x_label="Time (s)",
        y_label="of all kinds",
    )


def every_part() -> Line:
    return Line(
        [1, 10, 100],
        [1, 0.1, 0.02],
        ORANGE,
        marker="o",
        hollow=True,
        label="parts",
        interval=([0.5, -1, 0.01], [2, 0.2, None]),
        x_interval=([0.5, 5, 80], [2, 15, 200]),
        band=([0.9, 0, -1], [1, 0.2, 0.1]),
    )


def test_lines_and_markers_are_at_their_values():
    line = Line([0, 1, 4], [0, 2, 8], BLUE, marker="s")
    panel = read(one(line))
    (path,) = panel.paths[BLUE]
    assert [panel.at(place) for place in path] == near([(0, 0), (1, 2), (4, 8)])
    assert [panel.at(place) for place in panel.markers[BLUE]] == near([(0, 0), (1, 2), (4, 8)])


@pytest.mark.parametrize("gap", [None, math.nan, math.inf])
def test_a_line_is_broken_where_it_has_no_value(gap: float | None):
    panel = read(one(Line([0, 1, 2, 3, 4], [1, 1, gap, 2, 2], BLUE)))
    parts = [[panel.at(place) for place in path] for path in panel.paths[BLUE]]
    assert parts == [near([(0, 1), (1, 1)]), near([(3, 2), (4, 2)])]


def test_lines_are_drawn_in_the_order_of_their_points():
    panel = read(one(Line([0, 2, 1], [0, 1, 2], BLUE)))
    (path,) = panel.paths[BLUE]
    assert [panel.at(place) for place in path] == near([(0, 0), (2, 1), (1, 2)])


def test_a_step_lasts_until_the_next_value():
    panel = read(one(Line([0, 1, 3], [0, 0.5, 1], BLUE, steps=True)))
    (path,) = panel.paths[BLUE]
    corners = [(0, 0), (1, 0), (1, 0.5), (3, 0.5), (3, 1)]
    assert [panel.at(place) for place in path] == near(corners)


def test_intervals_reach_from_end_to_end():
    line = Line(
        [0, 1, 2],
        [1, 2, 3],
        BLUE,
        joined=False,
        marker="o",
        interval=([None, 1.5, 3.0], [None, 3.25, 3.0 + 1e-12]),
        x_interval=([-0.5, None, 2.0], [1.0, None, 2.5]),
    )
    panel = read(one(line))
    ends = [(*panel.at(a), *panel.at(b)) for a, b in panel.strokes[BLUE]]
    # What has no length, or no ends, is not drawn.
    upright, level, last = sorted(ends, key=lambda each: (each[0] == each[2], each[0]))[::-1]
    assert [upright] == near([(1, 1.5, 1, 3.25)])
    assert [last, level] == near([(-0.5, 1, 1, 1), (2, 3, 2.5, 3)])
    assert len(panel.rectangles[BLUE]) == 6, "a stroke at each end"


def test_a_band_with_gaps_is_drawn_in_parts():
    low = [None, 1.0, 1.0, math.nan, 1.0, 1.5]
    high = [None if edge is None else edge + 1.0 for edge in low]
    panel = read(one(Line(range(6), [1.5] * 6, BLUE, band=(low, high))))
    parts = [[panel.at(place) for place in band] for band in panel.bands[BLUE]]
    assert parts == [
        near([(1, 1), (2, 1), (2, 2), (1, 2)]),
        near([(4, 1), (5, 1.5), (5, 2.5), (4, 2)]),
    ] or parts == [
        near([(1, 2), (2, 2), (2, 1), (1, 1)]),
        near([(4, 2), (5, 2.5), (5, 1.5), (4, 1)]),
    ]


def corners(panel: svgs.Read, colour: str) -> list[tuple[float, float, float, float]]:
    """Rectangles by their least and greatest numbers."""
    found = []
    for left, top, right, bottom in panel.rectangles[colour]:
        (x1, y1), (x2, y2) = panel.at((left, bottom)), panel.at((right, top))
        found.append((x1, y1, x2, y2))
    return found


def test_bars_begin_at_zero_and_end_at_their_values():
    panel = read(one(Bars([0, 1, 2], [3, -1, None], BLUE, width=0.5)))
    assert corners(panel, BLUE) == near([(-0.25, 0, 0.25, 3), (0.75, -1, 1.25, 0)])
    panel = read(one(Bars([0, 1], [3, 1], BLUE, upright=False)))
    assert corners(panel, BLUE) == near([(0, -0.4, 3, 0.4), (0, 0.6, 1, 1.4)])


def test_rules_and_spans_cross_the_panel():
    marks = [Rule(y=1.0, colour=ORANGE), Rule(x=2.0, colour=GREEN), Span(y=(0.5, 3.0))]
    picture = one(*marks, x_limits=(0, 4), y_limits=(0, 2))
    panel = read(picture)
    assert [(*panel.at(a), *panel.at(b)) for a, b in panel.strokes[ORANGE]] == near([(0, 1, 4, 1)])
    assert [(*panel.at(a), *panel.at(b)) for a, b in panel.strokes[GREEN]] == near([(2, 0, 2, 2)])
    assert corners(panel, "#E6E6E6") == near([(0, 0.5, 4, 2)])


def test_an_axis_holds_references_at_whole_numbers_too():
    panel = read(one(Line([5, 6], [5, 6], BLUE), Rule(y=0), Rule(x=10)))
    assert panel.y.scale.contains(0)
    assert panel.x.scale.contains(10)


def test_cells_of_an_image_leave_no_seam_and_cells_without_a_value_are_left_out():
    panel = read(one(Image([[0, 1, 2], [None, 4, 5]], 5)))
    cells = [cell for colour in panel.rectangles for cell in corners(panel, colour)]
    assert len(cells) == 5
    for x1, y1, x2, y2 in cells:
        assert (x1, y1) in near([(i - 0.5, j - 0.5) for i in range(3) for j in range(2)])
        # Cells reach into their neighbours, and not beyond the image.
        assert x2 == pytest.approx(min(x1 + 1.1, 2.5), abs=NEAR)
        assert y2 == pytest.approx(min(y1 + 1.1, 1.5), abs=NEAR)
    assert (0, 1) not in [(round(x + 0.5), round(y + 0.5)) for x, y, *_ in cells]
    assert len(panel.rectangles) == 5, "each value has its colour"
    assert (panel.x.scale.domain, panel.y.scale.domain) == ([-0.5, 2.5], [-0.5, 1.5])


def test_an_image_of_ten_thousand_cells_is_drawn():
    rows = [[math.sin(i * j / 900) for i in range(100)] for j in range(100)]
    picture = one(Image(rows, 1, key="sin"))
    began = time.perf_counter()
    panel = read(picture)
    assert time.perf_counter() - began < 30
    assert sum(map(len, panel.rectangles.values())) == 10_000


def test_decades_of_logarithmic_axes_have_the_same_length_also_for_shifted_series():
    marks = [
        Line([x * 1.05**shift for x in (1, 10, 100)], [5, 0.5, 0.05], colour, marker="o")
        for shift, colour in ((-1, BLUE), (1, ORANGE))
    ]
    panel = read(one(*marks, x_log=True, y_log=True))
    for line in marks:
        found = [panel.at(place) for place in panel.markers[line.colour]]
        assert found == near(list(zip(line.x, line.y, strict=True)))  # type: ignore[arg-type]
    places = panel.markers[BLUE]
    steps = [b[0] - a[0] for a, b in itertools.pairwise(places)]
    assert steps[0] == pytest.approx(steps[1], abs=0.02)
    assert panel.markers[ORANGE][0][0] - places[0][0] == pytest.approx(
        panel.markers[ORANGE][2][0] - places[2][0], abs=0.02
    )


def test_an_interval_that_reaches_zero_ends_at_a_logarithmic_axis():
    line = Line([1, 2], [1.0, 0.1], BLUE, marker="o", interval=([-3.0, 0.0], [2.0, 0.2]))
    band = Line([1, 2], [1.0, 0.5], ORANGE, band=([0.0, -1.0], [1.0, 1.0]))
    panel = read(one(line, band, y_log=True, y_limits=(0.01, 10)))
    for (x, low), (_, high) in panel.strokes[BLUE]:
        assert panel.holds((x, low))
        assert panel.holds((x, high))
        assert max(low, high) == pytest.approx(panel.y.start, abs=svgs.NEAR), "down to the axis"
    assert len(panel.rectangles[BLUE]) == 2, "the ends beyond the axis have no stroke"
    (edge,) = panel.bands[ORANGE]
    assert sorted(y for _, y in edge)[-2:] == pytest.approx([panel.y.start] * 2, abs=svgs.NEAR)


def test_marks_beyond_the_limits_are_cut_at_the_panel_and_points_there_are_left_out():
    # Rounding moves a mark from the edge.
    line = Line([0, 1, 2, 3], [-1e-6, 100, 1, -0.1], BLUE, marker="o")
    document = Figure(one(line, y_limits=(0, 2))).svg()
    panel = read(one(line, y_limits=(0, 2)))
    assert 'clip-path="url(' in document
    assert [panel.at(place) for place in panel.markers[BLUE]] == near([(0, 0), (2, 1)])
    # A panel that holds all its marks is not cut: markers at the edge stay whole.
    assert "clip-path" not in Figure(one(line)).svg()


def test_a_line_keeps_its_dashes_unless_it_is_too_dense_in_the_panel():
    saw = Line(range(1000), [0, 1] * 500, BLUE, dashes=line_style.DASHES[1])
    assert "stroke-dasharray" not in Figure(one(saw)).svg()
    assert "stroke-dasharray" in Figure(one(saw, x_limits=(0, 20))).svg()


def test_panels_that_share_an_axis_are_drawn_to_one_scale_and_labelled_once():
    panels = [Panel([Line([0, 1], [0, top], BLUE)]) for top in (10, 20)]
    picture = Picture(panels, height=2, columns=2)
    rises = [
        panel.paths[BLUE][0][0][1] - panel.paths[BLUE][0][1][1] for panel in svgs.read(picture)
    ]
    assert rises[1] == pytest.approx(2 * rises[0], rel=NEAR)
    found, *_ = svgs.texts(Figure(picture).svg())
    assert [box.text for box in found].count("20") == 1
    picture.shared_y = "none"
    found, *_ = svgs.texts(Figure(picture).svg())
    assert [box.text for box in found].count("10") == 2


def test_labels_of_ticks_are_in_the_middle_of_their_ticks():
    marks = Line([0.013, 0.7, 33], [0.3, 1, 2], BLUE)
    picture = one(marks, x_log=True, x_limits=(0.01, 33), y_limits=(0, 2))
    panel = read(picture)
    found = {box.text: box for box in svgs.texts(Figure(picture).svg())[0]}
    for label in ("0.01", "0.1", "1", "10"):
        box = found[label]
        assert (box.left + box.right) / 2 == pytest.approx(panel.x.of(float(label)), abs=0.1)
    beside = [box for box in found.values() if box.right < panel.x.start and box.top > 0]
    assert len(beside) > 4
    for box in beside:
        assert (box.top + box.bottom) / 2 == pytest.approx(panel.y.of(float(box.text)), abs=0.6)


def test_decades_have_short_ticks_between_their_ends_without_a_grid():
    picture = one(Line([1, 1000], [1, 2], BLUE), x_log=True, x_tight=True)
    document = Figure(picture).svg()
    ticks, grid = (
        re.search(rf'role-axis-{kind}".*?</g>', document)[0]  # type: ignore[index]
        for kind in ("tick", "grid")
    )
    assert [ticks.count(f'y2="{length}"') for length in (3, 1.5)] == [4, 24]
    assert [grid.count(f'opacity="{shown}"') for shown in (1, 0)] == [4, 24]


def test_a_short_logarithmic_axis_has_numbers():
    for low, high in ((7.4, 9.3), (0.0061, 0.0068), (2.1e6, 2.2e6)):
        line = Line([1, 2], [low, high], line_style.colour(0))
        picture = Picture([Panel([line], y_log=True)], height=2.0)
        texts = {box.text for box in svgs.texts(Figure(picture).svg())[0]} - {"1.0", "2.0"}
        values = [float(text) for text in texts if low * 0.9 < float(text) < high * 1.1]
        assert len(values) > 1, texts


def test_a_million_points_are_thinned_and_keep_their_peaks():
    count = 1_000_000
    x = [n / 1000 for n in range(count)]
    y: list[float | None] = [math.sin(n / 9e4) + (n % 7) / 7 for n in range(count)]
    y[654_321], y[123_456] = 9.0, -5.0
    picture = one(Line(x, y, BLUE))
    began = time.perf_counter()
    figure = Figure(picture)
    panel = read(picture)
    assert time.perf_counter() - began < 60
    assert len(json.dumps(figure.spec)) < 200_000
    places = [panel.at(place) for path in panel.paths[BLUE] for place in path]
    assert len(places) < 10_000
    (low, high) = (end(places, key=lambda place: place[1]) for end in (min, max))
    assert [low, high] == near([(123.456, -5.0), (654.321, 9.0)])


def test_thinned_steps_of_a_distribution_are_where_they_were():
    x = [1.001**n for n in range(20_000)]
    y = [n / 20_000 for n in range(20_000)]
    panel = read(one(Line(x, y, BLUE, steps=True), x_log=True))
    (path,) = panel.paths[BLUE]
    assert len(path) < 10_000
    for n in range(0, 20_000, 500):
        assert panel.distance(BLUE, (panel.x.of(x[n]), panel.y.of(y[n]))) < 0.5


def test_many_markers_at_one_place_are_drawn_once():
    panel = read(
        one(Line([n % 5 for n in range(10**5)], [1.0] * 10**5, BLUE, joined=False, marker="o"))
    )
    assert len(panel.markers[BLUE]) == 5


def test_a_legend_shows_each_line_through_its_marker():
    lines = [
        Line(
            [0, 1],
            [n, n],
            line_style.colour(n),
            dashes=line_style.dashes(n),
            marker=line_style.marker(n),
            label=f"n{n}",
        )
        for n in range(3)
    ]
    document = Figure(one(*lines)).svg()
    words = {box.text: box for box in svgs.texts(document)[0]}
    for n in range(3):
        box = words[f"n{n}"]
        middle = (box.top + box.bottom) / 2
        keys = [
            (kind, place)
            for kind, node, place in svgs.elements(document)
            if line_style.colour(n) in (node.get("fill"), node.get("stroke"))
            and box.left - 21 < place[0] < box.left
            and abs(place[1] - middle) < 3
        ]
        assert [kind for kind, _ in keys] == ["rule", "symbol"]
        (_, (left, y)), (_, (x, marker_y)) = keys
        assert (x, marker_y) == pytest.approx((left + 8, y), abs=0.1)


def test_one_line_needs_no_legend_and_a_name_twice_is_one():
    alone = Figure(one(Line([0, 1], [0, 1], BLUE, label="alone"))).svg()
    assert ">alone<" not in alone
    lines = [Line([0, 1], [n, n], BLUE, label=f"n{n}") for n in range(2)]
    twice = Figure(Picture([Panel(lines), Panel(lines)], height=2, columns=2)).svg()
    assert (twice.count(">n0<"), twice.count(">n1<")) == (1, 1)


def test_the_same_name_may_have_another_look_in_another_panel():
    panels = [Panel([Line([0, 1], [0, 1], colour, label="a")]) for colour in (BLUE, ORANGE)]
    one_, other = svgs.read(Picture(panels, height=2, columns=2))
    assert (set(one_.paths), set(other.paths)) == ({BLUE}, {ORANGE})


def test_texts_of_every_kind_of_mark_lie_inside_of_the_figure_and_apart():
    document = Figure(every_kind()).svg()
    assert svgs.complaints(*svgs.texts(document)) == []
    assert svgs.numbers(document) == []


def test_long_titles_and_names_are_broken_into_lines():
    titles = [f"fq-codel, rate = {n} Mbit/s, rtt = uniform(10 ms, 40 ms)" for n in range(5)]
    panels = [Panel([Line([0, 1], [0, 1], BLUE)], title=title) for title in titles]
    document = Figure(Picture(panels, height=2, columns=5)).svg()
    found, *size = svgs.texts(document)
    assert svgs.complaints(found, *size) == []
    written = [box.text for box in found]
    assert written.count("fq-codel,") == 5


def test_every_text_may_be_a_word_of_vegas_language():
    lines = [Line([1, 2], [1, 2], BLUE, label="if"), Line([1, 2], [2, 3], BLUE, label="else")]
    panel = Panel(lines, title="if", x_label="if", y_label="if", ticks=[(1, "if"), (2, "then")])
    found, *_ = svgs.texts(Figure(Picture([panel], 2.6, 4.5, note="if")).svg())
    # Title, names of both axes, a tick, a line, the note.
    assert [box.text.strip() for box in found].count("if") == 6


def test_the_size_of_a_figure_is_that_of_its_description():
    for width in (4.5, line_style.WIDTH):
        picture = one(Line([0, 1], [0, 1], BLUE), x_label="Time (s)", y_label="Window")
        picture.width = width
        found, wide, high = svgs.texts(Figure(picture).svg())
        assert (wide, high) == pytest.approx((72 * width, 2.6 * 72), abs=1.5)
        png = Figure(picture).png()
        assert int.from_bytes(png[16:20]) == pytest.approx(width * 200, abs=2)
        # What is at the edges is there, and no margin is wasted.
        assert min(box.left for box in found) == pytest.approx(4, abs=3)


def test_the_font_of_all_texts_is_the_shipped_one():
    document = Figure(every_kind()).svg()
    assert document.count("<text") == document.count('font-family="DejaVu Sans, Verdana')
    assert missing_letters(document) == set()
    assert missing_letters(document.replace("β", "漢")) == {"漢"}
    assert "DejaVu" in (text.FONT_DIRECTORY / "LICENSE_DEJAVU").read_text(encoding="utf-8")


def missing_letters(document: str) -> set[str]:
    """Letters that the font lacks: the whole text would be written in another one."""
    return {
        letter
        for box in svgs.texts(document)[0]
        for letter in box.text
        if not text.is_in_font(letter)
    }


def test_letters_of_the_font_have_its_widths():
    # DejaVu Sans 2.37: digits are 1303 of 2048 units wide, `i` 569, `W` 2025.
    units = {"1": 1303, "i": 569, "W": 2025, "β": 1307, "⁶": 821}
    for letter, wide in units.items():
        assert text.width(letter, 2048 / 1.01) == pytest.approx(wide, rel=1e-6), letter
    assert text.width("漢字", 8.0) >= 16.0, "what the font lacks is wide"


def test_lines_are_broken_between_members_of_a_list_then_words_then_anywhere():
    list_ = "pie target=10 ms, uniform(10 ms, 40 ms)"
    assert text.wrapped(list_, 90, 8) == ["pie target=10 ms,", "uniform(10 ms,", "40 ms)"]
    assert text.wrapped("first_part-second", 60, 8) == ["first_part-", "second"]
    letters = text.wrapped("m" * 30, 60, 8)
    assert "".join(letters) == "m" * 30
    for most in (20, 35, 80, 150):
        assert all(text.width(line, 8) <= most for line in text.wrapped(list_, most, 8))


def test_the_middle_of_a_text_that_is_far_too_long_is_left_out_and_read_aloud():
    title = "the beginning of " + "a long story " * 200 + "and its end"
    shown = text.Text.fitted(title, 100, 8, 1)
    assert shown.lines[0].startswith("the be")
    assert shown.lines[0].endswith("end")
    document = Figure(one(title=title, y_label=title)).svg()
    # The title, and the axis with its label.
    assert document.count(f'aria-label="{title}"') == 2
    assert "…" in document


def test_letters_that_xml_forbids_are_no_part_of_a_text():
    assert text.Text.fitted("a\x01b\tc\ufffe", 100, 8, 1).lines == ("a b c",)
    assert text.Text.fitted(" \x02", 100, 8, 1).lines == ()


def test_the_same_figure_gives_the_same_bytes(tmp_path: Path):
    one_, other = Figure(every_kind()), Figure(every_kind())
    for kind in ("svg", "png"):
        files = [figure.save(tmp_path / f"{n}.{kind}") for n, figure in enumerate((one_, other))]
        assert files[0].read_bytes() == files[1].read_bytes()


def test_a_figure_is_saved_in_the_format_of_its_name(tmp_path: Path):
    figure = Figure(every_kind())
    begins = {".svg": b"<svg", ".png": b"\x89PNG", ".pdf": b"%PDF", ".json": b'{"$schema"'}
    for suffix, beginning in begins.items():
        assert figure.save(tmp_path / f"a{suffix}").read_bytes().startswith(beginning)
    with pytest.raises(InputError, match=r"a\.gif: figures are written as \.svg"):
        figure.save(tmp_path / "a.gif")


def test_a_changed_specification_is_what_is_drawn():
    figure = Figure(one(Line([0, 1], [0, 1], BLUE)))
    (view,) = figure.spec["concat"]
    view["layer"][0]["mark"]["color"] = ORANGE
    view["encoding"]["color"] = {"value": ORANGE}
    assert ORANGE in figure.svg()


def test_a_notebook_gets_a_picture_and_the_specification():
    figure = Figure(one(Line([0, 1], [0, 1], BLUE)))
    bundle, about = figure._repr_mimebundle_()
    assert bundle["image/png"].startswith(b"\x89PNG")
    assert bundle["application/vnd.vegalite.v6+json"] is figure.spec
    assert about["image/png"]["width"] == round(4.5 * 120)


def specifications() -> Iterator[dict[str, Any]]:
    yield Figure(every_kind()).spec
    yield Figure(Picture([], height=2, x_label="nothing")).spec
    yield Figure(Picture([Panel([]), Panel([], shown=False)], height=2)).spec


def test_specifications_are_valid_and_vega_lite_has_nothing_to_say(
    caplog: pytest.LogCaptureFixture,
):
    with caplog.at_level(logging.WARNING):
        for spec in specifications():
            assert alt.Chart.from_dict(spec).to_dict(validate=False)
        Figure(every_kind()).svg()
    assert caplog.messages == []


def test_a_figure_is_a_chart_of_altair():
    figure = Figure(one(Line([0, 1], [0, 1], BLUE)))
    assert figure.altair().to_dict(validate=False)["concat"][0]["width"] > 100


def test_figures_without_anything_are_figures():
    for panels in ([], [Panel([])], [Panel([Line([], [], BLUE)])], [Panel([Line([1], [1], BLUE)])]):
        document = Figure(Picture(list(panels), height=2)).svg()
        assert svgs.numbers(document) == []


def test_a_specification_that_is_too_large_is_an_error_not_the_end_of_the_process():
    Figure(one(Line([0, 1], [0, 1], BLUE))).svg()
    assert vl_convert.get_config()["max_v8_heap_size_mb"] == 1024
    vl_convert.configure(max_v8_heap_size_mb=64)
    try:
        figure = Figure(one(Line([0, 1], [0, 1], BLUE)))
        rows = [{"x": n, "y": n} for n in range(300_000)]
        x = {"field": "x", "type": "quantitative"}
        figure.spec = {"data": {"values": rows}, "mark": "point", "encoding": {"x": x}}
        with pytest.raises(ValueError, match=r"(?i)memory|heap"):
            figure.svg()
    finally:
        vl_convert.configure(max_v8_heap_size_mb=1024)
