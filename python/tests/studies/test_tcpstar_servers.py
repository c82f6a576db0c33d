"""Figure of TCP*(n) with real servers, read back."""

from __future__ import annotations

import polars as pl

from cwnd import study
from cwnd.figures import line_style
from cwnd.studies.questions.tcpstar_servers import measures


def test_answers_of_real_servers_are_drawn_beside_those_of_the_simulator():
    folder = study.study("tcpstar_servers").folder
    curves, runs = (pl.read_csv(folder / name) for name in ("curves.csv", "runs.csv"))
    *traces, bursts = measures.web(curves, runs).panels
    stars = list(measures.STARS)
    for panel, case in zip(traces, measures.cases(runs, "T3"), strict=True):
        assert len(panel.lines) == 2 * len(stars)
        for line in panel.lines:
            n = measures.STARS[stars[line_style.COLOURS.index(line.colour)]]
            world = "simulator" if line.dashes else "Linux"
            of = curves.filter(pl.col("s").is_finite(), case=case, n=n, world=world)
            assert (line.x, line.y) == (of["s"].to_list(), of["share"].to_list())
            assert len(line.x) > 10
    keys = {line.label: line for line in bursts.lines if line.label}
    assert list(keys) == list(measures.RATIOS)
    for line in bursts.lines:
        (world,) = (name for name, key in keys.items() if key.dashes == line.dashes)
        for case, value in zip(measures.cases(runs, "T5"), line.y, strict=bool(line.x)):
            n = measures.STARS[stars[line_style.COLOURS.index(line.colour)]]
            of = runs.filter(claim="T5", n=n, world=world, case=case)
            assert value == of["p99_s"].mean()
