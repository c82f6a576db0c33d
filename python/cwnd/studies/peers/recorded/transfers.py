"""ns-2's transfers: users who fetch file after file, and files that arrive for a load."""

from __future__ import annotations

import math
import statistics
from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING, Any

import polars as pl
import tomli_w

from cwnd.studies.peers.recorded.ours import Job, described
from cwnd.studies.peers.recorded.rows import Recorded, Row, load
from cwnd.studies.peers.recorded.scenarios import ns2_queue, ns2_timer
from cwnd.studies.peers.recorded.steered import PARTS

if TYPE_CHECKING:
    from collections.abc import Iterable

    from cwnd import _core
    from cwnd.studies.peers.recorded.ours import Ours, Overrides
    from cwnd.studies.peers.recorded.scenarios import Table

#: File → name of its transfers on the page.
TABLES = {"ns2-timeouts.csv": "ns-2 users", "ns2-fct.csv": "ns-2 open load"}

#: Runs of each setting.
SEEDS = 5
#: Runs of each setting whose sizes have a heavy tail.
SEEDS_OF_HEAVY_TAILS = 12

#: Size of a packet without payload on the wire, such as a SYN.
ACK_BITS = 40 * 8


@dataclass(frozen=True)
class Figures:
    """Results of one run, or their means; the four that are always compared come first."""

    response_p50_s: float
    loss_pct: float
    utilisation_pct: float
    goodput_mbit_s: float
    response_mean_s: float
    response_p99_s: float


#: Allowed difference of each mean: a share of the peer's value, or an absolute amount.
BOUNDS = {
    "response_p50_s": (0.05, 0.0),
    "loss_pct": (0.10, 0.25),
    "utilisation_pct": (0.02, 0.0),
    "goodput_mbit_s": (0.02, 0.0),
    "response_mean_s": (0.05, 0.0),
}
#: Name of each compared figure, as a verdict lists those out of bounds.
NAMES = {
    "response_p50_s": "median",
    "loss_pct": "loss",
    "utilisation_pct": "utilisation",
    "goodput_mbit_s": "goodput",
    "response_mean_s": "mean",
}


@dataclass(frozen=True, eq=False)
class Setting(Recorded):
    """Recorded runs of one setting, which differ in their seeds only."""

    tables = TABLES

    @property
    def steered(self) -> bool:
        """`True` if routers set the rate or window of the senders."""
        return self.row.cells["proto"] != "sack"

    @property
    def heavy(self) -> bool:
        """`True` if file sizes have a tail so heavy that seeds differ by it."""
        return self.row.cells["size_law"] != "const"

    @property
    def compared(self) -> tuple[str, ...]:
        """Names of the figures judged by bounds: for an open load also the mean response."""
        four = ("response_p50_s", "loss_pct", "utilisation_pct", "goodput_mbit_s")
        return (*four, "response_mean_s") if self.row.cells["set"] == "fct" else four

    @property
    def by_value(self) -> bool:
        """`True` if the recorded seeds suffice for the file sizes."""
        return self.row.cells["set"] != "fct" or self.row.int("mean_size_pkts") == SHORTEST_PKTS

    @property
    def theirs(self) -> list[Figures]:
        """The recorded runs."""
        return [
            Figures(
                row.float("response_p50_s"),
                row.float("loss_pct"),
                row.float("utilisation_pct"),
                row.float("goodput_total_mbps"),
                row.float("response_mean_s"),
                row.float("response_p99_s"),
            )
            for row in self.rows
        ]

    @property
    def text(self) -> str:
        """Returns the setting in words, for the page."""
        cells = self.row.cells
        if cells["set"] == "fct":
            sizes = f"files of {cells['mean_size_pkts']} packets"
            steered = f", {cells['proto'].upper()}" if self.steered else ""
            rate = f"{self.row.float('rate_mbps'):g} Mbit/s"
            return f"{sizes}, {rate}, load {cells['rho']}{steered}"
        what = "10 packets" if cells["size_law"] == "const" else "Pareto"
        backoff = "no backoff" if cells["rto_mode"] == "cap" else "backoff"
        parts = [
            f"{cells['n_users']} users ({what})",
            cells["queue"],
            f"min RTO {cells['min_rto_s']} s",
        ]
        return ", ".join([*parts, backoff, f"first RTO {cells['init_rto_s']} s"])


#: Size of files for which three seeds of a minute suffice.
SHORTEST_PKTS = 30


def settings() -> list[Setting]:
    """All settings, file by file, in the order of their first rows."""
    found: dict[tuple[str, ...], list[Row]] = {}
    for row in _rows():
        found.setdefault(row.same_setting, []).append(row)
    return [Setting(tuple(rows)) for rows in found.values()]


def _rows() -> Iterable[Row]:
    for table in TABLES:
        for row in load(table):
            if row.cells["set"] != "long":
                yield row


def scenario(setting: Setting) -> Table:
    """The scenario of a setting, as the tables of a scenario file."""
    row = setting.row
    wire = row.int("wire_bytes")
    group: Table = {
        "workload": {"kind": "bytes", "size": _size(row, wire)},
        "controller": {
            "kind": "newreno",
            "increase": "per-ack",
            "base": "cwnd",
            "least_window": 1,
        },
        "endpoint": ns2_timer(row)
        | {
            # The sender opens the connection. To ns-2 a SYN is the first packet like any other: if
            # it is lost, ssthresh becomes two packets, and it is sent again for ever.
            "handshake": True,
            "syn_retries": 1_000_000,
            "ssthresh_after_syn_loss": f"{2 * wire} B",
            "initial_window": row.int("init_window_pkts"),
            "ecn": row.flag("ecn"),
        },
    }
    rtts = row.cells["rtt_list_ms"].split(";")
    flows: Table
    if row.cells["set"] == "fct":
        bits = row.float("mean_size_pkts") * wire * BITS_PER_BYTE
        interval_s = bits / (row.float("rho") * row.float("rate_mbps") * 1e6)
        arrivals = {"kind": "poisson", "interval": f"{interval_s * 1e6:.3f} us"}
        flows = {"main": group | {"arrivals": arrivals, "rtt": f"{rtts[0]} ms"}}
    else:
        arrivals = {"kind": "closed", "pause": f"exponential({row.cells['think_mean_s']} s)"}
        group |= {"arrivals": arrivals, "start": f"uniform(0 s, {row.cells['start_span_s']} s)"}
        # The users take turns among host pairs, each with a round-trip time of its own.
        flows = {}
        for i, rtt in enumerate(rtts):
            count = len(range(i, row.int("n_users"), len(rtts)))
            lost = round(count * _share_after_loss(row))
            after_loss = group | {"endpoint": group["endpoint"] | {"initial_window": 1}}
            for name, users, of in (("kept", count - lost, group), ("lost", lost, after_loss)):
                if users:
                    flows[f"pair{i}-{name}"] = of | {"count": users, "rtt": f"{rtt} ms"}
    dumbbell: Table = {
        "rate": f"{row.float('rate_mbps'):g} Mbit/s",
        "edge_rate": f"{row.float('access_rate_mbps'):g} Mbit/s",
    }
    if setting.steered:
        parts = PARTS[row.cells["proto"]](row)
        queue: Table = {"kind": "fifo", "limit": f"{row.int('buffer_pkts') - 1} packets"}
        dumbbell |= {"queue": queue, "meter": parts["meter"], "reverse_meter": parts["meter"]}
        # Whose SYN is lost has no threshold that matters.
        endpoint = flows["main"]["endpoint"] | {"ssthresh_after_syn_loss": "none"}
        flows["main"] |= {
            "controller": parts["controller"],
            "endpoint": endpoint | parts["endpoint"],
        }
    else:
        dumbbell["queue"] = _queue(row, wire)
    return {
        "schema": 1,
        "run": {
            "duration": f"{row.cells['sim_s']} s",
            "warmup": f"{row.cells['warmup_s']} s",
            "sample": "none",
        },
        "dumbbell": dumbbell,
        "flow": flows,
        "sweep": {"repeat": SEEDS_OF_HEAVY_TAILS if setting.heavy else SEEDS},
    }


def _share_after_loss(row: Row) -> float:
    """Share of the users that have lost a SYN, averaged over the time after the warm-up.

    In ns-2 the first window is an option of the sender, which a lost SYN sets to one packet
    (bugfix_ss_) and nothing sets back: a user, whose connections have one sender, begins all that
    follow with one. SYNs are taken to be lost like other packets.
    """
    lost, cycle_s = (
        row.float("loss_pct") / 100,
        row.float("think_mean_s") + row.float("response_mean_s"),
    )
    begin, end = row.float("warmup_s") / cycle_s, row.float("sim_s") / cycle_s
    rate = -math.log1p(-lost)
    if rate == 0:
        return 0
    return 1 - (math.exp(-rate * begin) - math.exp(-rate * end)) / (rate * (end - begin))


def _size(row: Row, wire: int) -> str:
    mean, most = row.int("mean_size_pkts"), row.int("max_size_pkts")
    if row.cells["size_law"] == "const":
        return f"{mean * wire} B"
    points = whole_packets(row.float("shape"), mean, most)
    return f"cdf({', '.join(f'{round(n * wire)} B: {p:.9g}' for n, p in points)})"


def whole_packets(shape: float, mean: float, most: int) -> list[tuple[float, float]]:
    """The distribution of a Pareto size, rounded up to whole packets as ns-2 does; at most `most`.

    Larger sizes count as `most`. Each size up to `EACH` is a step; beyond, sizes are half a packet
    larger than drawn.
    """
    least = mean * (shape - 1) / shape

    def below(packets: float) -> float:
        more: float = (least / packets) ** shape
        return max(0.0, 1 - more)

    points = []
    for n in range(math.ceil(least), EACH + 1):
        points += [(float(n), below(n - 1) if n > 1 else 0.0), (float(n), below(n))]
    packets = float(EACH)
    while (packets := packets * TAIL_STEP) < most:
        points.append((packets + 0.5, below(packets)))
    last = points[-1][1]
    return [*points, (float(most), last), (float(most), 1.0)]


#: Packets up to which each size has a step of its own, and the ratio of those beyond.
EACH, TAIL_STEP = 100, 1.1


def _queue(row: Row, wire: int) -> Table:
    cells = row.cells | {"aqm": "fifo" if row.cells["queue"] == "droptail" else "red"}
    if row.cells["queue"] == "red" and row.float("minth_pkts") == 0:
        # ns-2's red.cc, initParams(): thresholds for a delay of 5 ms, and an average over ten round
        # trips of three times the link's.
        packets_per_s = row.float("rate_mbps") * 1e6 / (BITS_PER_BYTE * wire)
        least = round(max(5, TARGET_DELAY_S * packets_per_s / 2))
        # The links at both sides of the bottleneck have a fortieth of the round trip each, one way.
        delay_s = row.float("rtt_list_ms") / 1e3 * (0.5 - 2 / 40)
        rtt_s = max(0.1, 3 * (delay_s + 1 / packets_per_s))
        weight = 1 - math.exp(-1 / (10 * rtt_s * packets_per_s))
        cells |= {"minth_pkts": f"{least}", "maxth_pkts": f"{3 * least}", "wq": f"{weight:.3g}"}
    return ns2_queue(replace(row, cells=cells), wire)


TARGET_DELAY_S = 0.005
BITS_PER_BYTE = 8


@dataclass(frozen=True)
class Compared:
    """A setting, our runs of it, and the names of the figures that differ."""

    setting: Setting
    #: One for each seed.
    runs: tuple[Figures, ...]
    differs: tuple[str, ...]

    @property
    def holds(self) -> bool:
        """`True` if every compared measure is within its bounds."""
        return not self.differs


def differences(setting: Setting, ours: list[Figures]) -> tuple[str, ...]:
    """Returns the names of the means out of bounds; of heavy tails, also of `STANDARD_ERRORS`."""
    found = []
    for name in setting.compared:
        peers = [getattr(each, name) for each in setting.theirs]
        each = [getattr(figures, name) for figures in ours]
        mine, peer = statistics.mean(each), statistics.mean(peers)
        share, floor = BOUNDS[name]
        few = STANDARD_ERRORS * standard_error(peers, each) if setting.heavy else 0.0
        if abs(mine - peer) > max(share * peer, floor, few):
            found.append(NAMES[name])
    return tuple(found)


#: Allowed difference of means over seeds, in standard errors of the difference.
STANDARD_ERRORS = 3


def standard_error(theirs: list[float], ours: list[float]) -> float:
    """Standard error of the difference of two means over seeds."""
    return math.sqrt(sum(statistics.variance(each) / len(each) for each in (theirs, ours)))


def compare(chosen: Iterable[Setting], figures: Ours[Figures]) -> list[Compared]:
    """Compares settings with ours."""
    each = ((setting, figures[setting.key, ""]) for setting in chosen)
    return [Compared(setting, tuple(mine), differences(setting, mine)) for setting, mine in each]


def job(setting: Setting, overrides: Overrides = ()) -> Job:
    """The job of a setting, perhaps with some keys of its scenario changed."""
    table = scenario(setting)
    for path, value in overrides:
        _set(table, path.split("."), value)
    return Job(setting.key, tomli_w.dumps(table), measure, described(overrides))


def _set(table: Any, path: list[str], value: Any) -> None:
    """Sets a key; `*` is every key of a table."""
    first, *rest = path
    for key in list(table) if first == "*" else [first]:
        if rest:
            _set(table[key], rest, value)
        else:
            table[key] = value


def measure(cell: _core.Cell) -> Figures:
    """Measures a run."""
    result = cell.run()
    flows = pl.DataFrame(result.flows)
    link = pl.DataFrame(result.links).row(by_predicate=pl.col("link") == "bottleneck", named=True)
    # Theirs begin and end after the warm-up.
    done = flows.filter((pl.col("start_s") >= cell.warmup_s) & pl.col("fct_s").is_not_null())
    # And they end with the last ACK, half a round trip after the last byte came; on a way back that
    # is never full, through two access links of ten times the rate.
    ack_s = ACK_BITS / link["rate_bit_s"] * (1 + 2 / 10)
    response_s = done["fct_s"] + done["rtt_base_us"] / 2e6 + ack_s
    return Figures(
        _number(response_s.median()),
        100 * link["dropped_pkts"] / max(1, link["arrived_pkts"]),
        100 * link["utilisation"],
        _number(flows["delivered_bytes"].sum()) * BITS_PER_BYTE / _counted_s(cell) / 1e6,
        _number(response_s.mean()),
        _number(response_s.quantile(0.99)),
    )


def _counted_s(cell: _core.Cell) -> float:
    return cell.duration_s - cell.warmup_s


def _number(value: Any) -> float:
    return float(value or 0)


def means(figures: Iterable[Figures]) -> Figures:
    """The mean of each figure over the seeds."""
    each = list(figures)
    return Figures(*(statistics.mean(getattr(f, x.name) for f in each) for x in fields(Figures)))


@dataclass(frozen=True)
class Order:
    """Two settings that differ in their timeouts only, with their 99th percentiles."""

    longer: Compared
    shorter: Compared

    @property
    def theirs(self) -> float:
        """Ratio of the two 99th percentiles in the peer's runs, the longer first."""
        first, second = (
            means(c.setting.theirs).response_p99_s for c in (self.longer, self.shorter)
        )
        return first / second

    @property
    def ours(self) -> float:
        """Ratio of the two 99th percentiles in our runs."""
        first, second = (means(c.runs).response_p99_s for c in (self.longer, self.shorter))
        return first / second

    @property
    def holds(self) -> bool:
        """`True` if the longer one is longer in our runs, too."""
        return self.ours > 1


#: Least ratio of two 99th percentiles that counts as a difference.
CLEARLY = 1.25


def orders(found: Iterable[Compared]) -> list[Order]:
    """Returns the pairs that differ in timeouts only and clearly in the peer's 99th percentile."""
    alike: dict[tuple[str, ...], list[Compared]] = {}
    for each in found:
        cells = each.setting.row.cells
        if cells["set"] != "fct":
            what = tuple(cells[c] for c in ("set", "n_users", "queue"))
            alike.setdefault(what, []).append(each)
    pairs = (Order(a, b) for group in alike.values() for a in group for b in group if a is not b)
    return [pair for pair in pairs if pair.theirs >= CLEARLY]
