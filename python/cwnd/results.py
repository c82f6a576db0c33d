"""A result: the tables of all runs of a scenario, side by side."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, overload

from cwnd import drawing, metrics, notes, store

if TYPE_CHECKING:
    import os
    from collections.abc import Callable, Iterator
    from pathlib import Path

    import polars as pl
    from matplotlib.figure import Figure

    from cwnd.manifest import Axis, Manifest
    from cwnd.metrics import By


class Resolved(Sequence[str]):
    """Each run as a scenario of its own; made, or read, when it is asked for."""

    def __init__(self, count: int, one: Callable[[int], str]) -> None:
        self._count = count
        self._one = one

    def __len__(self) -> int:
        return self._count

    @overload
    def __getitem__(self, index: int) -> str: ...
    @overload
    def __getitem__(self, index: slice) -> list[str]: ...
    def __getitem__(self, index: int | slice) -> str | list[str]:
        if isinstance(index, slice):
            return [self[i] for i in range(*index.indices(len(self)))]
        return self._one(range(len(self))[index])


class OnDisk(Mapping[str, "pl.LazyFrame"]):
    """Tables that are looked at when they are asked for."""

    def __init__(self, names: Sequence[str], one: Callable[[str], pl.LazyFrame]) -> None:
        self._names = names
        self._one = one

    def __len__(self) -> int:
        return len(self._names)

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __getitem__(self, name: str) -> pl.LazyFrame:
        if name not in self._names:
            raise KeyError(name)
        return self._one(name)


@dataclass(repr=False)
class Run:
    """What `cwnd.run` returns: data frames over all runs of a scenario, its sweep and its seeds.

    Every frame starts with `run_id`, `scenario`, `seed` and the axes of the sweep.
    """

    manifest: Manifest
    #: The scenario as given.
    source: str
    #: One row per run: what varies, what it cost, how often each mechanism acted.
    runs: pl.DataFrame
    #: One row per flow.
    flows: pl.DataFrame
    #: One row per link.
    links: pl.DataFrame
    #: What grows with time, in memory or on disk: `series`, `link_series` and `qdelay`.
    samples: Mapping[str, pl.LazyFrame]
    #: Reads the samples of some runs, where that is cheaper than to leave out the others.
    pick: Callable[[str, list[str]], pl.LazyFrame] | None = None
    #: Each run as a scenario of its own, all defaults written out.
    resolved: Sequence[str] = ()

    @cached_property
    def series(self) -> pl.DataFrame:
        """Samples of the flows over time."""
        return self.samples["series"].collect()

    @cached_property
    def link_series(self) -> pl.DataFrame:
        """Samples of the links over time."""
        return self.samples["link_series"].collect()

    @cached_property
    def qdelay(self) -> pl.DataFrame:
        """Histogram of the queueing delay of each link."""
        return self.samples["qdelay"].collect()

    def samples_of(self, name: str, run_ids: list[str]) -> pl.LazyFrame:
        """The samples of some runs."""
        if self.pick is not None:
            return self.pick(name, run_ids)
        import polars as pl

        return self.samples[name].filter(pl.col("run_id").is_in(run_ids))

    @property
    def name(self) -> str:
        """The scenario's name."""
        return self.manifest.name

    @property
    def axes(self) -> list[Axis]:
        """The axes of the sweep."""
        return self.manifest.axes

    @property
    def axis_columns(self) -> list[str]:
        """The columns that hold the labels of the axes."""
        return [axis.column for axis in self.axes]

    @property
    def key_columns(self) -> list[str]:
        """The columns that say which run a row belongs to."""
        values = [axis.value_column for axis in self.axes if axis.value_column is not None]
        return ["scenario", "seed", *self.axis_columns, *values]

    @property
    def activity(self) -> dict[str, int]:
        """How often each mechanism acted, over all runs."""
        return self.manifest.activity

    @property
    def notes(self) -> list[str]:
        """What a reader of the numbers should know, such as a mechanism that never acted."""
        return [
            *notes.missing_runs(self),
            *notes.invalid_runs(self),
            *notes.silent_mechanisms(self),
            *notes.idle_seeds(self),
        ]

    @cached_property
    def groups(self) -> list[str]:
        """The groups of flows, in the order of the scenario."""
        import polars as pl

        flows = self.flows.select("run_id", "group")
        found = flows["group"].unique(maintain_order=True)
        if len(found) > 1:
            # Of a group whose flows arrive at random a run may have none: the run with the most
            # groups tells their order.
            first = flows.group_by("run_id", maintain_order=True).agg(
                pl.col("group").unique(maintain_order=True)
            )
            most = first.sort(pl.col("group").list.len(), descending=True, maintain_order=True)
            found = pl.concat([most["group"][0], found]).unique(maintain_order=True)
        return [str(group) for group in found]

    def per_run(
        self,
        link: str | None = None,
        group: str | None = None,
        *,
        by: By | None = None,
        relative_to: str | None = None,
    ) -> pl.DataFrame:
        """One row per run, or per run and group or flow, with every metric.

        See `cwnd.metrics.per_run`.
        """
        return metrics.per_run(self, link, group, by=by, relative_to=relative_to)

    def summary(
        self,
        metrics: Sequence[str] | None = None,
        *,
        link: str | None = None,
        group: str | None = None,
        by: By | None = None,
        relative_to: str | None = None,
    ) -> pl.DataFrame:
        """The mean of each metric over the seeds, with its 95 % half-width, at each point.

        A row of all flows, whose `group` is `*`, and where there are several groups one of each;
        see `cwnd.metrics.summary`.

        Args:
            metrics: Which, by their columns; all if not given.
            link: Whose utilisation, queueing delay, drops and marks; the busiest if not given.
            group: Only this group; `*` for all flows together.
            by: "all", "group" or "flow": only rows of these.
            relative_to: The group that `goodput_ratio` compares with; the first if not given.

        Raises:
            InputError: There is no such metric, link or group.
        """
        from cwnd.metrics import metric, summary

        columns = None if metrics is None else [metric(name).column for name in metrics]
        return summary(self, columns, link=link, group=group, by=by, relative_to=relative_to)

    def plot(self, kind: str | None = None, **options: Any) -> Figure:
        """Draws one figure; `kind` is "timeseries", "windows", "qdelay" or "sweep".

        Without a kind: the sweep if there is one, else the time series. The options are those of
        the functions in `cwnd.plots`: `lines="group"` and `lines="flow"` draw groups or flows
        apart, `group=` only one group, `"*"` all flows together.

        Raises:
            InputError: There is nothing of the kind to draw.
        """
        from cwnd import plots

        return plots.draw(self, kind, **options)

    def save(
        self, directory: str | os.PathLike[str], *, plots: bool = True, pcap: Path | None = None
    ) -> Path:
        """Writes everything to a directory, at once or not at all; then its figures.

        A figure that cannot be drawn is a `FigureWarning`: the result is there all the same.
        `pcap` is a directory of capture files on the same disk, which moves into the result.
        """
        place = store.save(self, directory, pcap=pcap)
        if plots:
            drawing.draw(self, place, quick=False)
        return place

    @classmethod
    def load(cls, directory: str | os.PathLike[str]) -> Run:
        """Reads a result back, of `cwnd run` or `cwnd sweep`."""
        return store.load(directory)

    def __repr__(self) -> str:
        axes = ", ".join(axis.name for axis in self.axes) or "none"
        count = self.manifest.runs
        return f"<cwnd.Run {self.name!r}: {count} run{'s' * (count != 1)}, axes: {axes}>"

    def _repr_html_(self) -> str:
        from cwnd.notebook import html

        return html(self)
