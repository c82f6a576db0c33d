"""Sizes of letters and lines, in points."""

from __future__ import annotations

#: Titles, labels of axes and legends.
TEXT_PT = 8.0
#: Labels of ticks.
TICK_TEXT_PT = 7.0
#: A line of text, with what separates it from the next.
LINE_PT = 11.0
#: A line of a tick's label.
TICK_LINE_PT = 9.5
#: From an axis to the labels of its ticks.
TICK_PT = 5.0
