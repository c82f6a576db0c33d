"""ns-2's senders that routers steer: its XCP, its authors' RCP and VCP; and SACK beside them."""

from __future__ import annotations

import math
import statistics
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any

import polars as pl
import tomli_w

from cwnd.studies.peers.recorded.ours import Job, described
from cwnd.studies.peers.recorded.rows import Recorded, Row, load
from cwnd.studies.peers.recorded.scenarios import ns2_queue

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from cwnd import _core
    from cwnd.studies.peers.recorded.ours import Ours, Overrides
    from cwnd.studies.peers.recorded.scenarios import Table

#: File → name of its rows on the page.
TABLES = {
    "ns2-xcp.csv": "ns-2 XCP",
    "ns2-rcp.csv": "ns-2 RCP",
    "ns2-vcp.csv": "ns-2 VCP",
    "ns2-sackred.csv": "ns-2 SACK",
}

#: Runs of each setting whose result depends on random draws.
RUNS = 6
#: Allowed difference of means over such runs, in standard errors of the difference.
STANDARD_ERRORS = 3

BITS_PER_BYTE = 8


@dataclass(frozen=True)
class Figures:
    """Results of one run, counted after the warm-up unless stated otherwise."""

    goodput_mbit_s: float
    #: Mean queue over time, as the time that the link needs to send it.
    qdelay_mean_ms: float
    drops: float
    #: Drops of the whole run, the warm-up included.
    drops_whole: float
    #: Packets that left with CE.
    marks: float
    #: Jain's index of the flows' goodputs.
    jain: float
    #: Time from the start of the joining flow until it has 95 % of the mean rate; 0 if no flow
    #: joins, -1 if it never has.
    joined_s: float


#: Allowed difference of each mean: a share of the peer's value, or an absolute amount.
BOUNDS = {
    "goodput_mbit_s": (0.02, 0.0),
    "qdelay_mean_ms": (0.15, 0.0),
    "drops": (0.25, 5.0),
    "drops_whole": (0.25, 5.0),
    "marks": (0.25, 5.0),
    "jain": (0.0, 0.01),
    "joined_s": (0.25, 0.0),
}
#: Name of each compared figure, as a verdict lists those out of bounds.
NAMES = {
    "goodput_mbit_s": "goodput",
    "qdelay_mean_ms": "queue",
    "drops": "drops",
    "drops_whole": "drops of the whole run",
    "marks": "marks",
    "jain": "Jain",
    "joined_s": "joined",
}
#: Allowed difference of the mean queue, packets.
QUEUE_PKTS = 0.5
#: Allowed difference of `joined_s`, in bins of the recording.
JOIN_BINS = 2


@dataclass(frozen=True, eq=False)
class Setting(Recorded):
    """Recorded runs of one setting, which differ in their seeds only."""

    tables = TABLES

    @property
    def by_value(self) -> bool:
        """`True` if every recorded run is marked `value` and a scenario can express it."""
        return not self.missing and all(row.cells["use"] == "value" for row in self.rows)

    @property
    def missing(self) -> str | None:
        """Reason why no scenario can express the setting, if none can."""
        if self.row.cells["proto"] == "vcp" and not self.row.flag("vcp_qavg_fixed"):
            return "its mean queue is 16 times too small: a slip of the program"
        return "ACKs have a queue of their own" if self.row.flag("vcp_ack_priority") else None

    @property
    def drawn(self) -> bool:
        """`True` if the result depends on random draws.

        RED draws, and so do the starts of VCP's flows back, whose ACKs come in bursts.
        """
        cells = self.row.cells
        return cells["queue"] == "red" or (cells["proto"] == "vcp" and cells["n_rev"] != "0")

    @property
    def joins(self) -> bool:
        """`True` if the last flow joins flows that already run."""
        return self.row.cells["set"] == "join"

    @property
    def text(self) -> str:
        """Returns the setting in words, for the page."""
        cells = self.row.cells
        rtts = dict.fromkeys(f"{float(rtt):g}" for rtt in cells["rtt_list_ms"].split(";"))
        flows = f"{cells['n_fwd']}×" + (
            f" and {cells['n_rev']}× back" if cells["n_rev"] != "0" else ""
        )
        parts = [f"{self.row.float('rate_mbps'):g} Mbit/s", f"{' and '.join(rtts)} ms", flows]
        if cells["queue"] == "red":
            parts.append(
                f"RED from {self.row.int('minth_pkts')} to {self.row.int('maxth_pkts')} packets"
            )
        return ", ".join(parts + ["the last joins at 20 s"] * self.joins)

    @property
    def theirs(self) -> list[Figures]:
        """The mean of the recorded runs."""
        columns = ["goodput_total_mbps", "qdelay_mean_ms", "drops"]
        columns += ["drops_whole_run", "marks", "jain"]
        columns += ["t_join95_s"] * self.joins
        each = [sum(r.float(c) for r in self.rows) / len(self.rows) for c in columns]
        return [Figures(*each, *[0.0] * (not self.joins))]


def settings() -> list[Setting]:
    """All settings, file by file."""
    found: dict[tuple[str, ...], list[Row]] = {}
    for table in TABLES:
        for row in load(table):
            # Runs of a setting differ in their start times, and may in `use`.
            same = row.same_setting
            names = [k for k in row.cells if k != "seed"]
            skip = {2 + names.index(k) for k in ("start_list_s", "use")}
            key = tuple(v for i, v in enumerate(same) if i not in skip)
            found.setdefault(key, []).append(row)
    return [Setting(tuple(rows)) for rows in found.values()]


def scenario(row: Row) -> Table:
    """The scenario of a row, as tables: forward flows start when the recorded ones did."""
    wire, joins = row.int("wire_bytes"), row.cells["set"] == "join"
    parts = PARTS[row.cells["proto"]](row)
    cells = row.cells | {"aqm": "red" if row.cells["queue"] == "red" else "fifo"}
    queue = ns2_queue(replace(row, cells=cells), wire)
    endpoint = {
        "preset": "ns2",
        "mss": f"{wire} B",
        "ack_size": f"{row.cells['ack_bytes']} B",
        "initial_window": row.int("init_window_pkts"),
        "max_window": f"{row.int('max_window_pkts') * wire} B",
        "clock": f"{row.float('tick_s') * 1000:g} ms",
        "rto_granularity": f"{row.float('tick_s') * 1000:g} ms",
        "rto_min": f"{row.float('min_rto_s') * 1000:g} ms",
        "timestamps": row.flag("timestamps"),
        # ts_resetRTO_ is off.
        "rto_backoff_until": "sent-once",
        "ack_every": 2 if row.flag("delack") else 1,
    }
    rtts = row.cells["rtt_list_ms"].split(";")
    starts = row.cells["start_list_s"].split(";")
    # What a round trip has beyond the links is between its hosts and their routers.
    graph_ms = 2 * row.float("bottleneck_delay_ms") + 4 * row.float("access_delay_ms")
    flows = {}
    for i in range(row.int("n_fwd") + row.int("n_rev")):
        back = i >= len(starts)
        # Of flows on the way back the starts were not written down.
        span = f"uniform(0 s, {row.cells['start_span_s']} s)"
        flows[f"from{i}"] = {
            "start": span if back else f"{starts[i]} s",
            "from": "far" if back else "near",
            "to": "near" if back else "far",
            "edge_rtt": f"{float(rtts[i % len(rtts)]) - graph_ms:g} ms",
            "edge_rate": f"{row.float('access_rate_mbps'):g} Mbit/s",
            "controller": parts["controller"],
            "endpoint": endpoint | parts["endpoint"],
        }
    return {
        "schema": 1,
        "run": {
            "duration": f"{row.float('sim_s'):g} s",
            "warmup": f"{row.float('warmup_s'):g} s",
            "sample": f"{row.float('join_bin_s') * 1000:g} ms" if joins else "none",
        },
        "link": _links(row, {"queue": queue} | {k: v for k, v in parts.items() if k == "meter"}),
        "flow": flows,
    }


def _links(row: Row, router: Table) -> Table:
    """Bottleneck and way back, each between its access links.

    Where traffic goes both ways it matters when data meets the others' ACKs, so each delay is
    where the peer has it.
    """

    def link(start: str, end: str, column: str, more: Table) -> Table:
        delay = f"{row.float(column):g} ms"
        return {"from": start, "to": end, "delay": delay, "rate": "none"} | more

    line = {"rate": f"{row.float('rate_mbps'):g} Mbit/s"} | router
    return {
        "bottleneck": link("left", "right", "bottleneck_delay_ms", line),
        "reverse": link("right", "left", "bottleneck_delay_ms", line),
        "near": link("near", "left", "access_delay_ms", {}),
        "far": link("right", "far", "access_delay_ms", {}),
        "far-back": link("far", "right", "access_delay_ms", {}),
        "near-back": link("left", "near", "access_delay_ms", {}),
    }


def _gains(row: Row) -> Table:
    return {name: row.float(name) for name in ("alpha", "beta", "gamma") if name in row.cells}


def _xcp(row: Row) -> Table:
    gains = _gains(row)
    return {
        "meter": {"kind": "xcp", "preset": "ns2"} | gains,
        "controller": {"kind": "xcp", "preset": "ns2"},
        # Its own smoothed round trip has more bits than TCP's.
        "endpoint": {"echo": "sum", "recovery": "reno", "rtt_arithmetic": "exact"},
    }


def _rcp(row: Row) -> Table:
    gains = _gains(row)
    update = {"update": f"{row.float('rate_update_s') * 1000:g} ms"}
    return {
        "meter": {"kind": "rcp", "preset": "ns2"} | gains | update,
        "controller": {"kind": "rcp", "preset": "ns2"},
        # A SYN asks for the rate. Nothing is repeated there; here what is lost is, as SACK says.
        "endpoint": {
            "echo": "last",
            "recovery": "sack",
            "pipe_rule": "rfc6675",
            "handshake": True,
            "clock": "1 us",
        },
    }


def _vcp(row: Row) -> Table:
    meter: Table = {"kind": "vcp", "preset": "ns2"}
    controller: Table = {"kind": "vcp", "preset": "ns2"}
    controller |= {name: row.float(name) for name in ("alpha", "beta")}
    # Of transfers the rest was not written down: it is the program's.
    if "gamma" in row.cells:
        # κ (1 / 0.8 − 1): `xi_by_lf_`.
        controller["xi"] = row.float("gamma") * 0.25
        meter["interval"] = f"{row.float('vcp_t_rho_s') * 1000:g} ms"
        meter |= {
            "target": row.float("vcp_target_util"),
            "queue_weight": row.float("vcp_k_q"),
        }
    return {
        "meter": meter,
        "controller": controller,
        "endpoint": {
            "ecn": True,
            # The program's field is no ECN field: it is in retransmissions, too.
            "ecn_retransmissions": True,
            "echo": "changes",
            "recovery": "reno",
            # Its Reno halves a window for a loss, whatever the load did to it.
            "loss_reduces_again": True,
            # The round trip that it scales by is measured in parts of a millisecond.
            "clock": "1 us",
        },
    }


def _sack(row: Row) -> Table:
    return {
        # ns-2 adds per ACK and halves its window, whatever is in flight, down to one segment.
        "controller": {"kind": "newreno", "increase": "per-ack", "base": "cwnd", "least_window": 1},
        "endpoint": {"recovery": "sack", "limited_transmit": True, "ecn": row.flag("ecn")},
    }


#: Sender, what of its endpoint is special, and the router if it has one, by the column `proto`.
PARTS: dict[str, Callable[[Row], Table]] = {"xcp": _xcp, "rcp": _rcp, "vcp": _vcp, "sack": _sack}


@dataclass(frozen=True)
class Compared:
    """A setting beside each of our runs of it; no run if no scenario can express it."""

    setting: Setting
    runs: tuple[Figures, ...]

    @property
    def ours(self) -> Figures:
        """Mean over our runs."""
        return mean(self.runs)

    @property
    def differs(self) -> tuple[str, ...]:
        """Returns the names of the figures out of bounds."""
        if self.setting.missing:
            return ()
        row, ours, (theirs,) = self.setting.row, self.ours, self.setting.theirs
        packet_ms = row.int("wire_bytes") * BITS_PER_BYTE / row.float("rate_mbps") / 1e3

        def near(name: str) -> bool:
            share, least = BOUNDS[name]
            peer = float(getattr(theirs, name))
            if name == "qdelay_mean_ms":
                least = QUEUE_PKTS * packet_ms
            elif name == "joined_s" and self.setting.joins:
                least = JOIN_BINS * row.float("join_bin_s")
            if self.setting.drawn:
                least = max(least, STANDARD_ERRORS * self.standard_error(name))
            return abs(float(getattr(ours, name)) - peer) <= max(share * peer, least)

        return tuple(word for name, word in NAMES.items() if not near(name))

    def standard_error(self, name: str) -> float:
        """Standard error of the difference of means, if the peer's runs scatter as ours do."""
        of_one = statistics.variance(getattr(figures, name) for figures in self.runs)
        return math.sqrt(of_one * (1 / len(self.runs) + 1 / len(self.setting.rows)))

    @property
    def holds(self) -> bool:
        """`True` if every figure is within its bounds, or no scenario can express the setting."""
        return not self.differs


def compare(chosen: Iterable[Setting], figures: Ours[Figures]) -> list[Compared]:
    """Compares settings with ours."""
    return [Compared(setting, tuple(figures.get((setting.key, ""), ()))) for setting in chosen]


def jobs(setting: Setting, overrides: Overrides = ()) -> list[Job]:
    """Jobs of a setting: each recorded run, and several seeds of those that draw."""
    return [
        Job(setting.key, tomli_w.dumps(text), partial(measure, row), described(overrides))
        for row in ([] if setting.missing else setting.rows)
        for seed in _seeds(setting)
        for text in [with_changes(scenario(row), (*overrides, *seed))]
    ]


def _seeds(setting: Setting) -> list[Overrides]:
    if not setting.drawn:
        return [()]
    return [(("run.seed", seed),) for seed in range(1, RUNS // len(setting.rows) + 1)]


def mean(each: Sequence[Figures]) -> Figures:
    """The mean of several runs."""
    return Figures(*(sum(getattr(f, name) for f in each) / len(each) for name in BOUNDS))


def measure(row: Row, cell: _core.Cell) -> Figures:
    """Measures a run of a row."""
    result = cell.run()
    flows = pl.DataFrame(result.flows)[: row.int("n_fwd")]["goodput_bit_s"]
    link = pl.DataFrame(result.links).row(by_predicate=pl.col("link") == "bottleneck", named=True)
    squares = float((flows**2).sum())
    return Figures(
        float(flows.sum()) / 1e6,
        link["qlen_mean_bytes"] * BITS_PER_BYTE / link["rate_bit_s"] * 1e3,
        float(link["dropped_pkts"]),
        float(link["dropped_total_pkts"]),
        # VCP's program has no ECN field.
        0.0 if row.cells["proto"] == "vcp" else float(link["marked_pkts"]),
        float(flows.sum()) ** 2 / (len(flows) * squares) if squares else 1.0,
        _joined(row, pl.DataFrame(result.flow_series)) if row.cells["set"] == "join" else 0.0,
    )


def _joined(row: Row, series: pl.DataFrame) -> float:
    """Time from the joining flow's start to the first bin with 95 % of the mean rate, s; or -1."""
    last = row.int("n_fwd") - 1
    start = max(float(s) for s in row.cells["start_list_s"].split(";"))
    got = pl.col("delivered").diff().over("flow_id")
    of = series.sort("flow_id", "time_s").with_columns(got=got).filter(pl.col("time_s") > start)
    bins = of.group_by("time_s").agg(
        mean=pl.col("got").mean(), mine=pl.col("got").filter(pl.col("flow_id") == last).first()
    )
    reached = bins.filter(pl.col("mine") >= 0.95 * pl.col("mean"))["time_s"].min()
    return float(reached) - start if isinstance(reached, float) else -1.0


def with_changes(table: Table, overrides: Overrides) -> Table:
    """The scenario with some keys changed; `flow.*` is every flow."""
    for path, value in overrides:
        *way, last = path.split(".")
        places: list[Any] = [table]
        for key in way:
            places = [inner for p in places for inner in (p.values() if key == "*" else [p[key]])]
        for place in places:
            place[last] = value
    return table
