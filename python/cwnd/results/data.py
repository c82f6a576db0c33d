"""Data frames of a result's runs, with the axes and groups of their rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, overload

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    import polars as pl

    from cwnd.results.manifest import Axis, Manifest


class Resolved(Sequence[str]):
    """The resolved scenarios of all runs, each computed or read when it is requested."""

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


class LazyTables(Mapping[str, "pl.LazyFrame"]):
    """Tables on disk by name, each opened when it is requested."""

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
class Data:
    """Data frames over the finished runs of a scenario, its sweep and its seeds.

    Every frame starts with `run_id`, `scenario`, `seed` and the axes of the sweep.
    """

    manifest: Manifest
    #: Text of the scenario as given.
    source: str
    #: One row per run: point of the sweep, seed, cost, and counters of the mechanisms.
    runs: pl.DataFrame
    #: One row per flow; a scenario may ask for the rows of some flows only.
    flows: pl.DataFrame
    #: One row per link.
    links: pl.DataFrame
    #: Other tables, in memory or on disk: `reasons`, `series`, `link_series`, `qdelay`, `delays`,
    #: `requests`; `sketches`, which includes requests and flows without a row; `unrecorded`, only
    #: such flows.
    samples: Mapping[str, pl.LazyFrame]
    #: Reads the samples of some runs; `None` if filtering the whole table is as cheap.
    read_samples_of: Callable[[str, list[str]], pl.LazyFrame] | None = None
    #: Each run as a scenario of its own, all defaults written out.
    resolved: Sequence[str] = ()
    #: Cache of data frames derived from the tables, by name and arguments.
    derived: dict[tuple[str, ...], pl.DataFrame] = field(
        default_factory=dict, init=False, compare=False
    )

    @cached_property
    def reasons(self) -> pl.DataFrame:
        """Drops and marks of links by reason, a row for each reason that occurred.

        `verdict` is "dropped" or "marked"; `packets` counts after the warm-up, `total_packets` in
        the whole run, which is null in results of version 1.
        """
        return self.samples["reasons"].collect()

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

    @cached_property
    def delays(self) -> pl.DataFrame:
        """Histograms of the delays of each group: `queueing`, `jitter` and `round_trip`."""
        return self.samples["delays"].collect()

    @cached_property
    def requests(self) -> pl.DataFrame:
        """Recorded requests on connections that clients opened, with their response times."""
        return self.samples["requests"].collect()

    @cached_property
    def sketches(self) -> pl.DataFrame:
        """Histograms of response and completion times, also of requests and flows without a row."""
        return self.samples["sketches"].collect()

    @cached_property
    def unrecorded(self) -> pl.DataFrame:
        """Sums over the flows without a row, a row for each run and group."""
        return self.samples["unrecorded"].collect()

    def samples_of(self, name: str, run_ids: list[str]) -> pl.LazyFrame:
        """Returns a table of samples, restricted to some runs."""
        if self.read_samples_of is not None:
            return self.read_samples_of(name, run_ids)
        import polars as pl

        return self.samples[name].filter(pl.col("run_id").is_in(run_ids))

    @property
    def name(self) -> str:
        """Name of the scenario."""
        return self.manifest.name

    @property
    def axes(self) -> list[Axis]:
        """Axes of the sweep."""
        return self.manifest.axes

    @property
    def axis_columns(self) -> list[str]:
        """Columns with the labels of the axes."""
        return [axis.column for axis in self.axes]

    @cached_property
    def rows_by_point(self) -> dict[tuple[str, ...], list[int]]:
        """Indices of `runs` at each point of the sweep, by its labels."""
        if not self.axes:
            return {(): list(range(self.runs.height))}
        points: dict[tuple[str, ...], list[int]] = {}
        for index, point in enumerate(self.runs.select(self.axis_columns).iter_rows()):
            points.setdefault(point, []).append(index)
        return points

    @property
    def key_columns(self) -> list[str]:
        """Columns that identify the run of a row: scenario, seed, and labels and values of axes."""
        values = [axis.value_column for axis in self.axes if axis.value_column is not None]
        return ["scenario", "seed", *self.axis_columns, *values]

    @property
    def activity(self) -> dict[str, int]:
        """Counters of the mechanisms, summed over all runs."""
        return self.manifest.activity

    @cached_property
    def groups(self) -> list[str]:
        """Names of the groups of flows; those without a row in `flows` come last."""
        import polars as pl

        flows = self.flows.select("run_id", "group")
        found = flows["group"].unique(maintain_order=True)
        if len(found) > 1:
            # A run may have no flow of a group with random arrivals, so the run with the most
            # groups determines the order.
            first = flows.group_by("run_id", maintain_order=True).agg(
                pl.col("group").unique(maintain_order=True)
            )
            most = first.sort(pl.col("group").list.len(), descending=True, maintain_order=True)
            found = pl.concat([most["group"][0], found]).unique(maintain_order=True)
        names = [str(group) for group in found]
        if self.manifest.activity.get("flows", 0) > self.flows.height:
            # Groups whose flows have no rows follow, in the order of the table `unrecorded`.
            named = dict.fromkeys(self.unrecorded["group"].cast(pl.String))
            return names + [name for name in named if name not in names]
        return names
