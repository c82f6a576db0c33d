"""ns-2's web users: the BECN paper's Table I beside bulk flows, with ECN and without."""

from __future__ import annotations

import copy
import statistics
from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING, Any

import polars as pl
import tomli_w

from cwnd.studies.peers.recorded.ours import Job
from cwnd.studies.peers.recorded.rows import Recorded, Row, load
from cwnd.studies.peers.recorded.scenarios import ns2_bulk
from cwnd.studies.peers.recorded.transfers import STANDARD_ERRORS, standard_error

if TYPE_CHECKING:
    from collections.abc import Iterable

    from cwnd import _core
    from cwnd.studies.peers.recorded.ours import Ours
    from cwnd.studies.peers.recorded.scenarios import Table

TABLE = "ns2-web.csv"
#: File → name of its rows on the page.
TABLES = {TABLE: "ns-2 web"}
#: Runs of each setting; sizes have a heavy tail.
SEEDS = 12
#: Interval of queue samples, half a round trip.
SAMPLE = "50 ms"
RATE_BIT_S = 10e6
#: Bulk flows beside the users in the settings of the experiments, as recorded.
MOST_BULK_FLOWS = "35"


@dataclass(frozen=True)
class Figures:
    """Results of one run, or their means; all but the last two are compared."""

    response_p50_s: float
    response_p90_s: float
    loss_pct: float
    mark_pct: float
    utilisation_pct: float
    bulk_mbit_s: float
    response_mean_s: float
    response_p99_s: float


#: Allowed difference of each mean: a share of the peer's value, or an absolute amount.
BOUNDS = {
    "response_p50_s": (0.05, 0.0),
    "response_p90_s": (0.10, 0.0),
    "loss_pct": (0.10, 0.25),
    "mark_pct": (0.10, 0.25),
    "utilisation_pct": (0.02, 0.0),
    "bulk_mbit_s": (0.05, 0.0),
}
#: Name of each compared figure, as a verdict lists those out of bounds.
NAMES = {
    "response_p50_s": "median",
    "response_p90_s": "90 %",
    "loss_pct": "loss",
    "mark_pct": "marks",
    "utilisation_pct": "utilisation",
    "bulk_mbit_s": "bulk",
}


@dataclass(frozen=True, eq=False)
class Setting(Recorded):
    """Recorded runs of one setting, which differ in their seeds only."""

    tables = TABLES

    @property
    def text(self) -> str:
        """Returns the setting in words, for the page."""
        return f"{self.row.cells['n_ftp']} bulk flows, {'ECN' if self.row.flag('ecn') else 'RED'}"

    @property
    def theirs(self) -> list[Figures]:
        """The recorded runs."""
        return [
            Figures(
                row.float("response_p50_s"),
                row.float("response_p90_s"),
                row.float("loss_pct"),
                row.float("mark_pct"),
                row.float("utilisation_pct"),
                row.float("ftp_goodput_total_mbps"),
                row.float("response_mean_s"),
                row.float("response_p99_s"),
            )
            for row in self.rows
        ]


def settings() -> list[Setting]:
    """All settings, in the order of their first rows."""
    found: dict[tuple[str, str], list[Row]] = {}
    for row in load(TABLE):
        found.setdefault((row.cells["n_ftp"], row.cells["ecn"]), []).append(row)
    return [Setting(tuple(rows)) for rows in found.values()]


def scenario(setting: Setting) -> Table:
    """The scenario of a setting, as the tables of a scenario file."""
    row = setting.row
    # What the file leaves out is as in the rows of bulk flows over the same queue.
    same = {"n_flows": row.cells["n_ftp"], "aqm": "red", "start_mode": "uniform"}
    same |= {"start_span_s": row.cells["ftp_start_span_s"], "delack": "0", "timestamps": "0"}
    table = ns2_bulk(replace(row, cells=row.cells | same))
    # modify_p and, with use_mark_p_, enque: small packets are spared, however long the queue. Where
    # all have one size that changes nothing.
    table["dumbbell"]["queue"] |= {
        "count": "bytes",
        "forced": "spaced" if row.flag("use_mark_p") else "drop",
    }
    bulk = table["flow"].pop("main")
    web = bulk | {
        "count": 1,
        "start": f"{row.cells['web_start_s']} s",
        # Theirs asks over one connection and answers over another (webtraf.tcl): that begins when
        # the client has the request's ACK, half a round trip after the server, and its SYN takes
        # one. What the two wait in the queue is added where responses are measured.
        "workload": {
            "kind": "web",
            "preset": "becn-table-1",
            "server_time": f"{1.5 * row.float('base_rtt_ms'):g} ms",
        },
    }
    # To ns-2 a SYN is the first packet like any other: it is sent again for ever.
    web["endpoint"] = bulk["endpoint"] | {"handshake": True, "syn_retries": 1_000_000}
    table["flow"] = {"bulk": bulk, "web": web}
    table["run"]["sample"] = SAMPLE
    table["sweep"] = {"repeat": SEEDS}
    return table


@dataclass(frozen=True)
class Compared:
    """A setting, and our runs of it."""

    setting: Setting
    #: One for each seed.
    runs: tuple[Figures, ...]

    @property
    def differs(self) -> tuple[str, ...]:
        """Returns the names of the means out of bounds and further apart than seeds explain."""
        found = []
        for name, (share, floor) in BOUNDS.items():
            peers = [getattr(each, name) for each in self.setting.theirs]
            each = [getattr(figures, name) for figures in self.runs]
            mine, peer = statistics.mean(each), statistics.mean(peers)
            few = STANDARD_ERRORS * standard_error(peers, each)
            if abs(mine - peer) > max(share * peer, floor, few):
                found.append(NAMES[name])
        return tuple(found)

    @property
    def holds(self) -> bool:
        """`True` if every compared measure is within its bounds."""
        return not self.differs


def beginning_with_one(share: float, table: Table) -> Table:
    """The scenario with so many of its sessions beginning with a window of one packet."""
    web = table["flow"]["web"]
    mean_s = 0.5
    groups = {"web": (web, 1 - share), "web-one": (copy.deepcopy(web), share)}
    groups["web-one"][0]["endpoint"]["initial_window"] = 1
    for name, (group, of) in groups.items():
        group["workload"]["interval"] = f"{mean_s / of * 1e3:g} ms"
        table["flow"][name] = group
    return table


def compare(chosen: Iterable[Setting], figures: Ours[Figures]) -> list[Compared]:
    """Compares settings with ours."""
    return [Compared(setting, tuple(figures[setting.key, ""])) for setting in chosen]


def job(setting: Setting, changed: str = "", table: Table | None = None) -> Job:
    """The job of a setting, perhaps by another scenario than its own."""
    return Job(setting.key, tomli_w.dumps(table or scenario(setting)), measure, changed)


def _waited_s(result: _core.Result, at_s: pl.Series) -> pl.Series:
    """Wait at the bottleneck of a packet that arrives at each of these times, s; from samples."""
    queue = (
        pl.DataFrame(result.link_series)
        .filter(pl.col("link").cast(pl.String) == "bottleneck")
        .select("time_s", waited_s=pl.col("qlen_bytes") * 8 / RATE_BIT_S)
        .sort("time_s")
    )
    asked = pl.DataFrame({"time_s": at_s}).with_row_index().sort("time_s")
    found = asked.join_asof(queue, on="time_s", strategy="nearest")
    return found.sort("index")["waited_s"]


def measure(cell: _core.Cell) -> Figures:
    """Measures a run."""
    result = cell.run()
    flows = pl.DataFrame(result.flows)
    link = pl.DataFrame(result.links).row(by_predicate=pl.col("link") == "bottleneck", named=True)
    requests = pl.DataFrame(result.requests)
    done = requests.filter((pl.col("start_s") >= cell.warmup_s) & pl.col("acked_s").is_not_null())
    bulk = flows.filter(pl.col("group").cast(pl.String) == "bulk")
    # The request's ACK goes through the queue when the server has the request, the SYN of the
    # answer a round trip later; both wait for what is before them.
    rtt_s = _number(flows["rtt_base_us"].max()) / 1e6
    handshake_s = done["start_s"] + _waited_s(result, done["start_s"] + rtt_s / 2)
    at_server_s = handshake_s + 1.5 * rtt_s
    ack_s = _waited_s(result, at_server_s)
    syn_s = _waited_s(result, at_server_s + ack_s + rtt_s)
    response_s = done["acked_s"] + ack_s + syn_s
    arrived = max(1, link["arrived_pkts"])
    return Figures(
        _number(response_s.median()),
        _number(response_s.quantile(0.9)),
        100 * link["dropped_pkts"] / arrived,
        100 * link["marked_pkts"] / arrived,
        100 * link["utilisation"],
        _number(bulk["goodput_bit_s"].sum()) / 1e6,
        _number(response_s.mean()),
        _number(response_s.quantile(0.99)),
    )


def _number(value: Any) -> float:
    return float(value or 0)


def means(figures: Iterable[Figures]) -> Figures:
    """The mean of each figure over the seeds."""
    each = list(figures)
    return Figures(*(statistics.mean(getattr(f, x.name) for f in each) for x in fields(Figures)))
