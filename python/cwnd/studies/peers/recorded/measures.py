"""Tables and figure of recorded rows and ours."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from cwnd.studies.peers.recorded import (
    endless,
    endless_tables,
    ours,
    rows,
    setting_tables,
    steered,
    transfers,
    trends,
    web,
)
from cwnd.studies.peers.recorded.endless_tables import EXPLANATIONS
from cwnd.studies.peers.recorded.setting_tables import STEERED, TRANSFERS, WEB

if TYPE_CHECKING:
    from collections.abc import Callable

    import polars as pl

    from cwnd.figures import Picture
    from cwnd.studies.peers.recorded.endless import Comparison


def of_endless(table: pl.DataFrame) -> tuple[list[Comparison], ours.Ours[rows.Measures]]:
    """Rows of flows without end beside ours, and all of ours."""
    figures = ours.read(table, rows.Measures)
    return endless.compare(rows.load_all(), figures), figures


def of_transfers(
    table: pl.DataFrame,
) -> tuple[list[transfers.Compared], ours.Ours[transfers.Figures]]:
    """Transfers beside ours, and all of ours."""
    figures = ours.read(table, transfers.Figures)
    return transfers.compare(transfers.settings(), figures), figures


def of_web(table: pl.DataFrame) -> tuple[list[web.Compared], ours.Ours[web.Figures]]:
    """Web users beside ours, and all of ours."""
    figures = ours.read(table, web.Figures)
    return web.compare(web.settings(), figures), figures


def of_steered(table: pl.DataFrame) -> tuple[list[steered.Compared], ours.Ours[steered.Figures]]:
    """Steered senders beside ours, and all of ours."""
    figures = ours.read(table, steered.Figures)
    return steered.compare(steered.settings(), figures), figures


def counts(*tables: pl.DataFrame) -> list[str]:
    """Counts the rows of all peers that are judged, and that hold."""
    found, others = _all(*tables)
    judged = endless_tables.judged(found)
    each = [(len(judged), sum(c.holds for c in judged)), *map(rows.counts, others)]
    count, holding = (sum(of) for of in zip(*each, strict=True))
    return [
        f"{holding} of {count} recorded rows that are firm enough to be judged by value hold "
        f"({holding / count:.0%})."
    ]


def summary(*tables: pl.DataFrame) -> list[str]:
    """Table of all peers, a row for each file."""
    found, others = _all(*tables)
    return [
        "| peer | rows | judged | hold | shown only | not expressible |",
        "|---|---|---|---|---|---|",
        *endless_tables.summary(found),
        *(line for each in others for line in rows.summary(each)),
    ]


def _all(
    in_endless: pl.DataFrame,
    in_transfers: pl.DataFrame,
    in_web: pl.DataFrame,
    in_steered: pl.DataFrame,
) -> tuple[list[Comparison], list[Any]]:
    others = [of_transfers(in_transfers)[0], of_web(in_web)[0], of_steered(in_steered)[0]]
    return of_endless(in_endless)[0], others


def figure(table: pl.DataFrame) -> Picture:
    """Draws ours against theirs."""
    return endless_tables.draw(of_endless(table)[0])


def _table(
    compared: Callable[[pl.DataFrame], tuple[Any, Any]],
    lines: Callable[..., list[str]],
    *names: Any,
    experiments: bool = False,
) -> Callable[[pl.DataFrame], list[str]]:
    """A table of comparisons; one of experiments takes all of ours, too."""

    def made(table: pl.DataFrame) -> list[str]:
        found, figures = compared(table)
        return lines(*names, found, figures) if experiments else lines(*names, found)

    return made


_in_endless = partial(_table, of_endless)
_in_transfers = partial(_table, of_transfers)
_in_steered = partial(_table, of_steered)

TABLES: dict[str, Callable[..., list[str]]] = {
    "counts": counts,
    "summary": summary,
    **{
        name: _in_endless(endless_tables.explained, name, experiments=True) for name in EXPLANATIONS
    },
    "differing": _in_endless(endless_tables.differing),
    "accuracy": endless_tables.accuracy,
    "recordings": _in_endless(endless_tables.recordings),
    "orders": _in_endless(trends.lines),
    "other-controllers": _in_endless(trends.experiments, experiments=True),
    **{
        name: _in_transfers(setting_tables.experiments, TRANSFERS, experiment, experiments=True)
        for name, experiment in setting_tables.OF_TRANSFERS.items()
    },
    "tails": _in_transfers(setting_tables.tails),
    "web": _table(of_web, setting_tables.every, WEB, web.TABLE),
    "web-experiments": _table(of_web, setting_tables.web_experiments, experiments=True),
    **{
        name: _in_steered(setting_tables.experiments, STEERED, experiment, experiments=True)
        for name, experiment in setting_tables.OF_STEERED.items()
    },
    **{
        name: _in_transfers(setting_tables.every, TRANSFERS, table)
        for table, name in transfers.TABLES.items()
    },
    **{
        name: _in_steered(setting_tables.every, STEERED, table)
        for table, name in steered.TABLES.items()
    },
}
FIGURES = {"peers": figure}
