"""A result of `cwnd run`: its data, metrics, notes, figures and files."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

from cwnd.lazy import registered
from cwnd.results import idle, metrics, notes, summaries
from cwnd.results.data import Data
from cwnd.results.mechanisms import Remarks

if TYPE_CHECKING:
    import os
    from pathlib import Path

    from cwnd.figures import Figure


@dataclass(repr=False)
class Run(Data):
    """A result of `cwnd.run` or `cwnd.sweep`: data frames over the finished runs of a scenario.

    Every frame starts with `run_id`, `scenario`, `seed` and the axes of the sweep.
    """

    per_run = metrics.per_run
    summary = summaries.summary

    @cached_property
    def remarks(self) -> Remarks:
        """Remarks on points whose mechanisms did nothing, for tables and figures."""
        return Remarks.of(self)

    @property
    def notes(self) -> list[str]:
        """Caveats for the reader of the numbers, such as a mechanism that never acted."""
        return [
            *self.flaws,
            *notes.linux_notes(self),
            *notes.silent_mechanisms(self),
            *notes.given_up(self),
            *notes.rows_left_out(self),
            *idle.idle_lines(self),
            *notes.idle_seeds(self),
            *notes.loads(self),
        ]

    @property
    def flaws(self) -> list[str]:
        """Reasons why the result is incomplete or, on Linux, not valid."""
        return [*notes.missing_runs(self), *notes.invalid_runs(self)]

    def plot(self, kind: str | None = None, **options: Any) -> Figure:
        """Draws one figure: its `spec` is the specification of Vega-Lite, `save` writes it.

        `kind` is "timeseries", "windows", "qdelay", "delay", "responses", "sweep" or "graph".

        Without a kind it is the sweep if there is one, else the first of time series, queueing
        delay and responses that has data. The options are those of the functions in `cwnd.plots`:
        `lines="group"` and `lines="flow"` draw groups or flows separately, `group=` only one group,
        `"*"` all flows together.

        Raises:
            InputError: There is nothing of the kind to draw.
        """
        figure: Figure = registered("draw a figure")(self, kind, **options)
        return figure

    def save(
        self, directory: str | os.PathLike[str], *, plots: bool = True, pcap: Path | None = None
    ) -> Path:
        """Writes the result to a directory, atomically, and then its figures.

        A figure that cannot be drawn is a `FigureWarning`; the result is complete all the same.
        `pcap` is a directory of capture files on the same disk, which moves into the result.
        """
        place: Path = registered("save a result")(self, directory, pcap=pcap)
        if plots:
            registered("draw a result")(self, place, quick=False)
        return place

    @classmethod
    def load(cls, directory: str | os.PathLike[str]) -> Run:
        """Reads a result of `cwnd run` from its directory.

        Raises:
            InputError: There is no such result, or it was written by a newer version.
            DamageError: A file is missing or damaged.
        """
        run: Run = registered("load a result")(directory)
        return run

    def __repr__(self) -> str:
        axes = ", ".join(axis.name for axis in self.axes) or "none"
        count = self.manifest.runs
        return f"<cwnd.Run {self.name!r}: {count} run{'s' * (count != 1)}, axes: {axes}>"

    def _repr_html_(self) -> str:
        text: str = registered("show in a notebook")(self)
        return text
