"""Arms whose mechanism cannot act are not shown as results like others."""

from __future__ import annotations

from typing import TYPE_CHECKING

import boxes
import svgs
from conftest import SHORT

import cwnd
from cwnd import plots
from cwnd.figures import Figure
from cwnd.report.figures import sweep_figure
from cwnd.results import group_table, result_table

if TYPE_CHECKING:
    from pathlib import Path

CANNOT = "ABE cannot act: no ECN marks"
NEVER = "ABE never acted: no ECN marks"
ARMS = """
[sweep.axis.arm]
path = "flow.main.controller"
values = ["newreno", { kind = "newreno", preset = "abe" }]
labels = ["plain", "abe"]
"""
RATES = '\n[sweep.axis.rate]\npath = "dumbbell.rate"\nvalues = ["5 Mbit/s", "10 Mbit/s"]\n'
QUEUES = '\n[sweep.axis.queue]\npath = "dumbbell.queue"\nvalues = ["fifo", "codel"]\n'


def run(tmp_path: Path, *axes: str, **changed: str) -> cwnd.Run:
    text = SHORT
    for old, new in changed.items():
        assert old in text
        text = text.replace(f"{old} = ", f"{old} = {new} #", 1)
    (tmp_path / "arms.toml").write_text(text + "".join(axes))
    return cwnd.run(tmp_path / "arms.toml")


def first(tmp_path: Path, *axes: str, **changed: str) -> tuple[cwnd.Run, list[str]]:
    """The result and the labels in the first column of its table."""
    found = run(tmp_path, *axes, **changed)
    return found, [row[0] for row in result_table(found).rows]


def test_an_arm_that_cannot_act_says_so_in_tables_and_figures(tmp_path: Path):
    over_fifo, labels = first(tmp_path, ARMS, RATES, queue='"fifo"')
    assert labels == ["plain", "plain", f"abe ({CANNOT})", f"abe ({CANNOT})"]
    for kind in ("sweep", "windows", "qdelay"):
        picture = plots.describe(over_fifo, kind)
        shown = {line.label for panel in picture.panels for line in panel.lines}
        assert shown == {"plain", f"abe ({CANNOT})"}
        assert boxes.complaints(*svgs.texts(Figure(picture).svg())) == []
    figure = sweep_figure(over_fifo)
    assert figure is not None
    assert set(figure.legends[""]) == {"plain", f"abe ({CANNOT})"}
    along = plots.describe(over_fifo, "sweep", x="arm").panels[0]
    assert along.ticks == [(0, "plain"), (1, f"abe ({CANNOT})")]


def test_an_arm_without_ecn_cannot_act_either(tmp_path: Path):
    _, labels = first(tmp_path, ARMS, endpoint="{ ecn = false }")
    assert labels == ["plain", f"abe ({CANNOT})"]


def test_an_arm_that_could_have_acted_never_did(tmp_path: Path):
    # A queue that marks, and a receive window that never fills it.
    endpoint = '{ ecn = true, receive_window = "3 kB" }'
    _, labels = first(tmp_path, ARMS, endpoint=endpoint)
    assert labels == ["plain", f"abe ({NEVER})"]


def test_an_arm_that_acts_has_no_remark(tmp_path: Path):
    acting, labels = first(tmp_path, ARMS)
    assert labels == ["plain", "abe"]
    assert acting.remarks.rest == []


def test_a_remark_stands_at_the_points_that_it_is_of(tmp_path: Path):
    found, labels = first(tmp_path, ARMS, QUEUES)
    assert labels == ["plain", "plain", f"abe ({CANNOT})", "abe"]
    # The label acts elsewhere: the figure says where not.
    picture = plots.describe(found, "sweep", lines="arm")
    assert {line.label for panel in picture.panels for line in panel.lines} == {"plain", "abe"}
    assert f"abe: {CANNOT} (at arm abe, queue fifo)" in picture.note


def test_the_axis_that_stops_a_mechanism_has_the_remark_if_none_asks_for_it(tmp_path: Path):
    _, labels = first(tmp_path, QUEUES)
    assert labels == [f"fifo ({CANNOT})", "codel"]


def test_groups_are_arms_too(tmp_path: Path):
    other = '\n[flow.plain]\nrtt = "20 ms"\ncontroller = "newreno"\n'
    found = run(tmp_path, other, RATES, queue='"fifo"')
    picture = plots.describe(found, "sweep")
    names = {line.label for panel in picture.panels for line in panel.lines}
    assert {f"main ({CANNOT})", "plain"} <= names
    text_table = group_table(found)
    assert text_table is not None
    assert {row[1] for row in text_table.rows} == {f"main (1), {CANNOT}", "plain (1)"}


def test_two_silent_mechanisms_of_a_group_are_both_named_each_with_its_own_verb(tmp_path: Path):
    # No queue marks, and a receive window that never fills one: ABE cannot act, the other did not.
    controller = '{ kind = "newreno", preset = "abe", adaptive_delta = 0.5 }'
    endpoint = '{ ecn = true, receive_window = "3 kB" }'
    both = {"controller": controller, "endpoint": endpoint, "queue": '"fifo"'}
    found = run(tmp_path, RATES, **both)
    (remarks,) = {tuple(each.items()) for each in found.remarks.silent.values()}
    assert remarks == (("main", f"{CANNOT}; adaptive backoff never acted"),)
