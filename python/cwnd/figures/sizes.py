"""Sizes of letters and lines, in points."""

from __future__ import annotations

#: Font size of titles, labels of axes and legends.
TEXT_PT = 8.0
#: Font size of ticks' labels.
TICK_TEXT_PT = 7.0
#: Height of a line of text, with its leading.
LINE_PT = 11.0
#: Height of a line of a tick's label.
TICK_LINE_PT = 9.5
#: Distance from an axis to the labels of its ticks.
TICK_PT = 5.0
