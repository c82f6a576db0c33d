"""Packets of a run, each with its passage through one link."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import polars as pl

from cwnd import _core
from cwnd.errors import CwndError, InputError
from cwnd.running import runner
from cwnd.running.cells import PACKETS, Logged, Outcome, PendingCells, simulate
from cwnd.running.code import check_trust, sources
from cwnd.running.plans import Source
from cwnd.running.processes import computed

if TYPE_CHECKING:
    from cwnd.results import Run
    from cwnd.running.cells import Work

#: Longest window of time, in seconds.
MAX_WINDOW_S = 60.0
#: Number of packets from which a log ends; a minute at 10 Mbit/s has about 100,000 with its ACKs.
MAX_PACKETS = 250_000
#: Samples of windows in the window of time.
_SAMPLES = 600
_NS = 1_000_000_000
#: Columns of links that a run and its repetition have in common.
_COUNTS = ("arrived_total_pkts", "delivered_total_pkts", "dropped_total_pkts")
_CHOOSE = "choose a part of the run with --from and --to, as in --from 2s --to 5s"


@dataclass(frozen=True)
class PacketLog:
    """Packets of a run that were under way in a window of time, and tables of the run."""

    #: Name of the scenario, and its point of the sweep.
    name: str
    point: str
    resolved: dict[str, Any]
    #: Link whose queue the packets pass.
    link: str
    #: Both ends of the window, in nanoseconds.
    window: tuple[int, int]
    #: Columns of `PacketRow` in `crates/tables/src/rows.rs`, in the order in which they were sent.
    packets: pl.DataFrame
    flows: pl.DataFrame
    links: pl.DataFrame
    series: pl.DataFrame

    @property
    def settings(self) -> dict[str, Any]:
        """Section of the link in the resolved scenario, with the keys of a link."""
        found: dict[str, Any] | None = self.resolved.get("link", {}).get(self.link)
        if found is not None:
            return found
        dumbbell: dict[str, Any] = self.resolved["dumbbell"]
        if self.link == "bottleneck":
            return dumbbell
        prefix = f"{self.link}_"
        own = {
            key.removeprefix(prefix): of for key, of in dumbbell.items() if key.startswith(prefix)
        }
        return dumbbell | own


def log_packets(
    resolved: str,
    *,
    point: str = "",
    link: str | None = None,
    begin_s: float = 0.0,
    end_s: float | None = None,
    trust: bool = False,
) -> PacketLog:
    """Simulates a run and logs its packets.

    Windows of flows are sampled more often than the scenario says, which changes no packet.

    Args:
        resolved: Text of the run's resolved scenario.
        point: Its point of the sweep, for titles.
        link: Link whose queue the packets pass; the busiest if not given.
        begin_s: Start of the window of time.
        end_s: End of the window; that of the run if not given.
        trust: Trusts the code that the run names from now on.

    Raises:
        InputError: The link or the window does not fit the run, there are too many packets, or
            code is not trusted.
        CodeError: The code of the run cannot be loaded, or raised an exception.
    """
    cell = _core.parse(resolved, name="resolved").cell(0)
    window = _window(cell.duration_s, begin_s, end_s)
    check_trust(sources([cell]), "the run", trust=trust)
    every = max((window[1] - window[0]) // _SAMPLES, 1_000_000)
    parsed = Source(resolved, "resolved", None).parse(overrides=[f"run.sample={every} ns"])
    chosen = _link(parsed, cell.links, link)
    tables = _run(parsed, Logged((chosen, window, MAX_PACKETS)))
    packets = tables[PACKETS].sort("sent_ns", maintain_order=True)
    if packets.height >= MAX_PACKETS:
        raise InputError(f"there are more than {MAX_PACKETS:,} packets: {_CHOOSE}")
    return PacketLog(
        parsed.name,
        point,
        _core.read_toml(resolved, name="resolved"),
        chosen,
        window,
        packets,
        flows=tables["flows"],
        links=tables["links"],
        series=tables["series"],
    )


def check_same_run(log: PacketLog, run: Run, row: int) -> None:
    """Compares the links of a repeated run with those of a result.

    Raises:
        CwndError: They differ.
    """
    run_id = run.runs["run_id"][row]
    before = run.links.filter(pl.col("run_id") == run_id).select("link", *_COUNTS)
    if not before.equals(log.links.select(pl.col("link").cast(pl.String), *_COUNTS)):
        raise CwndError(
            f"the run {run_id} gives other numbers than those stored: the result is of another"
            " version of cwnd, or of real Linux; simulate its scenario again with `cwnd run`"
        )


def _window(duration_s: float, begin_s: float, end_s: float | None) -> tuple[int, int]:
    end_s = duration_s if end_s is None else end_s
    if not 0 <= begin_s < end_s <= duration_s:
        raise InputError(
            f"the run lasts from 0 s to {duration_s:g} s, and {begin_s:g} s to {end_s:g} s is no"
            " part of it"
        )
    if end_s - begin_s > MAX_WINDOW_S:
        raise InputError(
            f"{end_s - begin_s:g} s are more than {MAX_WINDOW_S:g} s of packets: {_CHOOSE}"
        )
    return round(begin_s * _NS), round(end_s * _NS)


def _link(parsed: _core.Scenario, links: list[str], wanted: str | None) -> str:
    """Returns the link, or the busiest of a run if none is wanted."""
    if wanted is not None and wanted not in links:
        raise InputError(f"there is no link `{wanted}`; there are {', '.join(links)}")
    rates = _run(parsed, simulate)["links"].filter(pl.col("utilisation").is_not_null())
    queues = rates.sort("utilisation", descending=True, maintain_order=True)["link"].to_list()
    if not queues:
        raise InputError("no link of this scenario has a rate, so there is no queue to show")
    if wanted is not None and wanted not in queues:
        raise InputError(f"link `{wanted}` has no rate, so no queue; {', '.join(queues)} have one")
    return str(queues[0] if wanted is None else wanted)


def _run(parsed: _core.Scenario, work: Work) -> dict[str, pl.DataFrame]:
    """Computes the only run of a scenario; returns its tables. Ctrl-C stops it."""
    pending = PendingCells(parsed, [0])
    if pending.may_have_code:
        (outcome,) = computed(pending, 1, None, work)
    else:
        with runner.running(pending, work, 1) as (results, _):
            ((cell, result),) = results
        outcome = Outcome("", (cell.resolved, cell, result)).tabled()
    if isinstance(outcome, Outcome):
        assert outcome.failure is not None
        raise outcome.failure.exception()
    return outcome.tables
