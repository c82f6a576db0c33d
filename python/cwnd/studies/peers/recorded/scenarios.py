"""Mappings from a row's columns to a scenario, one for each peer."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from cwnd import _core
from cwnd.studies.peers.recorded.rows import DATA

if TYPE_CHECKING:
    from cwnd.studies.peers.recorded.rows import Row

Table = dict[str, Any]

#: Runs of each setting, with seeds 1, 2, …; settings of ns-2's Vegas have one.
SEEDS = 5

#: Interval of queue samples where the peer sampled, too (every 5 ms, `sample_s` in ns-2's rows).
SAMPLE = "50 ms"


class NotExpressibleError(Exception):
    """A row that no scenario can express; says why."""


def scenario(row: Row) -> Table:
    """The scenario of a row, as the tables of a scenario file."""
    if row.table.startswith("ns3"):
        return _ns3(row)
    if row.table == "ns2-timeouts.csv":
        return _timeouts(row)
    if row.table == "ns2-vegas.csv":
        return _vegas(row)
    return _linux(row) if row.table.startswith("linux") else ns2_bulk(row)


def sampled(row: Row) -> bool:
    """`True` if the peer's delay is a median over time, not over packets."""
    return row.table.startswith("ns2")


def _run(duration_s: float, warmup_s: float, sample: str = "none") -> Table:
    return {"duration": f"{duration_s:g} s", "warmup": f"{warmup_s:g} s", "sample": sample}


def _with(base: str, *parts: str) -> Table:
    """A stack with further parts."""
    return {"base": base, "with": list(parts)}


def _ns3(row: Row) -> Table:
    controllers: dict[str, Table] = {
        # It adds for each ACK, but not until a window that ECN halved is acknowledged.
        "TcpNewReno": {
            "kind": "newreno",
            "increase": "per-ack-whole-bytes",
            "grow_in_cwr": False,
            # max(2 segments) whatever the cause.
            "least_window_ecn": 2,
        },
        "TcpLinuxReno": {"kind": "newreno", "base": "cwnd", "least_window_ecn": 2},
        # Without UseAbe.
        "TcpCubic": {"kind": "cubic", "preset": "ns-3", "beta_ecn": "none"},
        # tcp-vegas.cc is Linux's, but rounds diff up: below α of 2 is what is at most 1.
        # A loss takes a segment off the window (GetSsThresh): a part of what path and queue hold.
        "TcpVegas": {
            "kind": "vegas",
            "preset": "linux",
            "rates": "window",
            "rounding": "none",
            "alpha": 1,
            "loss_beta": round(1 - row.int("n_flows") / (2 * row.int("bdp_pkts")), 2),
        },
        # tcp-htcp.cc bounds β from below only, and has no scaling by the round-trip time.
        "TcpHtcp": {
            "kind": "htcp",
            "rtt_scaling": False,
            "most_beta": 0.99,
            "grow_in_cwr": False,
        },
    }
    if row.cells["cc"] not in controllers:
        raise NotExpressibleError(f"ns-3's {row.cells['cc'].removeprefix('Tcp')} is no preset here")
    controller = controllers[row.cells["cc"]]
    if row.flag("hystart"):
        controller["slow_start"] = "hystart-ns-3"
    segment, packet = row.int("segment_bytes"), row.int("ip_packet_bytes")
    header = packet - segment + row.int("link_overhead_bytes")
    rate, edge = f"{row.cells['rate_mbps']} Mbit/s", f"{row.cells['access_rate_mbps']} Mbit/s"
    near, far = f"{row.cells['access_delay_ms']} ms", f"{row.cells['bottleneck_delay_ms']} ms"

    def hop(start: str, end: str, speed: str, delay: str, queue: Table) -> Table:
        return {"from": start, "to": end, "rate": speed, "delay": delay, "queue": queue}

    # The hosts' own device queues never fill.
    wide = {"kind": "fifo", "limit": "100000 packets"}
    # One host a side, as the column `topo` says: all flows share its access link.
    if row.cells["topo"] != "shared":
        raise NotExpressibleError(f"topology {row.cells['topo']}")
    return {
        "schema": 1,
        "run": _run(row.float("sim_s"), row.float("warmup_s")),
        "link": {
            "access": hop("sender", "r1", edge, near, wide),
            "bottleneck": hop("r1", "r2", rate, far, _ns3_queue(row))
            | {"device_queue": row.int("device_queue_pkts")},
            "exit": hop("r2", "receiver", edge, near, wide),
            "access-back": hop("receiver", "r2", edge, near, wide),
            "bottleneck-back": hop("r2", "r1", rate, far, wide),
            "exit-back": hop("r1", "sender", edge, near, wide),
        },
        "flow": {
            "main": {
                "count": row.int("n_flows"),
                "from": "sender",
                "to": "receiver",
                "start": "uniform(0 s, 20 ms)",
                "spacing": f"{row.cells['start_spacing_s']} s",
                # Shown, not judged: ns-3's PRR is not RFC 6937's.
                "stack": _with(
                    "rfc6675",
                    "exit-growth",
                    *(["prr-rfc6937"] if row.cells["recovery"] == "TcpPrrRecovery" else []),
                ),
                "controller": controller,
                "endpoint": {
                    "mss": f"{segment} B",
                    "header": f"{header} B",
                    "ack_size": f"{header} B",
                    "initial_window": row.int("initial_cwnd"),
                    "recovery": "sack" if row.flag("sack") else "newreno",
                    "flight_size": "pipe",
                    "timestamps": row.flag("timestamps"),
                    "ack_every": row.int("delack_count"),
                    "rto_min": f"{row.cells['min_rto_s']} s",
                    "ecn": row.flag("ecn"),
                    "receive_window": f"{_ns3_buffer(row)} B",
                    "pipe_rule": "ns-3",
                    "ecn_in_recovery": True,
                    "reduced_window_ends_recovery": True,
                },
            }
        },
        "sweep": {"repeat": SEEDS},
    }


def _ns3_buffer(row: Row) -> int:
    """Each socket's send and receive buffer, which bound what is outstanding alike."""
    bdp_bytes = row.float("rate_mbps") * row.float("base_rtt_ms") * 1000 / 8
    return max(4_000_000, int(8 * bdp_bytes))


def _ns3_queue(row: Row) -> Table:
    limit = row.int("qdisc_limit_pkts")
    kind = row.cells["aqm"]
    if kind == "fifo":
        return {"kind": "fifo", "limit": f"{limit} packets"}
    if kind == "red":
        if row.cells["red_min_th"] == row.cells["red_max_th"]:
            raise NotExpressibleError("a step: max_th = min_th")
        return {
            "kind": "red",
            "limit": f"{limit} packets",
            "min_th": f"{row.int('red_min_th')} packets",
            "max_th": f"{row.int('red_max_th')} packets",
            "w_q": row.float("red_qw"),
            "max_p": 1 / row.float("red_linterm"),
            "gentle": row.flag("red_gentle"),
            "forced": "drop" if row.flag("red_hard_drop") else "mark",
            "wait": True,
            "exempt_short_queue": True,
            "exempt_first": True,
            "idle": "unanswered",
            # ns-3's default, which no column overrides; in packets it ages the average only.
            "mean_packet": "500 B",
        }
    queue: Table = {
        "kind": "fq-codel" if kind == "fqcodel" else kind,
        "limit": f"{limit} packets",
    }
    if kind == "pie":
        # It spares a queue of two packets, whatever their size.
        wire = row.int("ip_packet_bytes") + row.int("link_overhead_bytes")
        queue["mean_packet"] = f"{wire} B"
        # Calm arrivals earn no new burst allowance (pie-queue-disc.cc).
        queue["burst_renewal"] = "rest"
    return queue


#: Parts of ns-2's TCP-Linux. Lost is what is four below the highest SACK, again and again
#: (scoreboard1.cc). It comes down by rate halving, after losses and ECN-echoes.
TCP_LINUX_PARTS = ("fack", "lost-retransmissions", "rate-halving", "prr-on-ecn")

#: The endpoint of ns-2's TCP-Linux.
TCP_LINUX: Table = {
    # What is lost is in flight no more (packets_in_flight).
    "pipe_rule": "rfc6675",
    # It comes down to two segments at the least.
    "ecn_at_one": "sends",
    "dup_thresh": 4,
}


def ns2_bulk(row: Row) -> Table:
    """Flows without end between host pairs of ns-2's dumbbell."""
    wire = row.int("wire_bytes")
    tick = f"{row.float('tick_s') * 1000:g} ms"
    # ns-2 adds per ACK and halves its window, whatever is in flight.
    # Down to one segment (slowdown).
    reno = {"kind": "newreno", "increase": "per-ack", "base": "cwnd", "least_window": 1}
    controllers = {
        "TCP/Newreno": reno,
        "TCP/Sack1": reno,
        # The CUBIC of Linux 2.6.22, which ns-2.35 has inside.
        "TCP/Linux/cubic": {"kind": "cubic", "preset": "linux-2.6.22"},
    }
    newreno = row.cells["tcp"] == "TCP/Newreno"
    flows: Table = {
        "count": row.int("n_flows"),
        "rtt": f"{row.cells['base_rtt_ms']} ms",
        "stack": _with("ns2", *(["exit-growth"] if newreno else [])),
        "controller": controllers[row.cells["tcp"]],
        "endpoint": {
            "mss": f"{wire} B",
            "ack_size": f"{row.cells['ack_bytes']} B",
            "recovery": "newreno" if newreno else "sack",
            # singledup_, on in ns-2 since November 2001.
            "limited_transmit": True,
            "max_window": f"{row.int('max_window_pkts') * wire} B",
            "clock": tick,
            "rto_granularity": tick,
            "rto_min": f"{row.float('min_rto_s') * 1000:g} ms",
            "timestamps": row.flag("timestamps"),
            "ack_every": 2 if row.flag("delack") else 1,
            "ecn": row.flag("ecn"),
        },
    }
    if row.cells["tcp"].startswith("TCP/Linux/"):
        flows["stack"] = _with("ns2", *TCP_LINUX_PARTS)
        flows["endpoint"] |= TCP_LINUX
    if row.cells["start_mode"] == "uniform":
        flows["start"] = f"uniform(0 s, {row.cells['start_span_s']} s)"
    else:
        spacing = row.float("start_span_s") / row.int("n_flows")
        flows |= {"start": "uniform(0 s, 20 ms)", "spacing": f"{spacing * 1000:g} ms"}
        flows["endpoint"]["initial_window"] = row.int("init_window_pkts")
    return {
        "schema": 1,
        "run": _run(row.float("sim_s"), row.float("warmup_s"), SAMPLE),
        "dumbbell": {
            "rate": f"{row.float('rate_mbps'):g} Mbit/s",
            "edge_rate": f"{row.float('access_rate_mbps'):g} Mbit/s",
            "queue": ns2_queue(row, wire),
        },
        "flow": {"main": flows},
        "sweep": {"repeat": SEEDS},
    }


def ns2_queue(row: Row, wire: int) -> Table:
    """The queue of ns-2's rows."""
    if row.cells["aqm"] == "fifo":
        # ns-2's DropTail drops what would fill its last place.
        return {"kind": "fifo", "limit": f"{row.int('buffer_pkts') - 1} packets"}
    by_bytes = row.flag("byte_mode")

    def size(column: str) -> str:
        return f"{row.int(column) * wire} B" if by_bytes else f"{row.int(column)} packets"

    return {
        "kind": "red",
        "min_th": size("minth_pkts"),
        "max_th": size("maxth_pkts"),
        "limit": size("buffer_pkts"),
        "w_q": row.float("wq"),
        "max_p": 1 / row.float("linterm"),
        "mode": "bytes" if by_bytes else "packets",
        "mean_packet": f"{wire} B",
        "gentle": row.flag("gentle"),
        "wait": True,
        "exempt_short_queue": True,
        "exempt_first": True,
        "idle": "unanswered",
        "mark_p": 0.1 if row.flag("use_mark_p") else "none",
        "ecn": row.flag("ecn"),
    }


def ns2_timer(row: Row) -> Table:
    """The endpoint of ns-2's SACK sender in its rows about timeouts and transfers."""
    wire, tick = row.int("wire_bytes"), f"{row.float('tick_s') * 1000:g} ms"
    # `cap`: the largest timeout is the smallest, so that none is ever backed off.
    rto_max = row.cells["min_rto_s" if row.cells["rto_mode"] == "cap" else "max_rto_s"]
    return {
        "preset": "ns2",
        "mss": f"{wire} B",
        "ack_size": f"{row.cells['ack_bytes']} B",
        "initial_window": row.int("init_window_pkts"),
        "recovery": "sack",
        "max_window": f"{row.int('max_window_pkts') * wire} B",
        "clock": tick,
        "rto_granularity": tick,
        "rto_min": f"{row.cells['min_rto_s']} s",
        "rto_initial": f"{row.cells['init_rto_s']} s",
        "rto_max": f"{rto_max} s",
        "timestamps": row.flag("timestamps"),
        # ts_resetRTO_ is off.
        "rto_backoff_until": "sent-once",
    }


def _timeouts(row: Row) -> Table:
    wire = row.int("wire_bytes")
    group: Table = {
        "start": f"uniform(0 s, {row.cells['start_span_s']} s)",
        "controller": {
            "kind": "newreno",
            "increase": "per-ack",
            "base": "cwnd",
            "least_window": 1,
        },
        "endpoint": ns2_timer(row),
    }
    # The flows take turns among host pairs, each with a round-trip time of its own.
    rtts = row.cells["rtt_list_ms"].split(";")
    n_flows = row.int("n_long")
    flows = {
        f"pair{i}": group | {"count": len(range(i, n_flows, len(rtts))), "rtt": f"{rtt} ms"}
        for i, rtt in enumerate(rtts)
    }
    queue = row.cells | {"aqm": "fifo" if row.cells["queue"] == "droptail" else "red"}
    return {
        "schema": 1,
        "run": _run(row.float("sim_s"), row.float("warmup_s"), SAMPLE),
        "dumbbell": {
            "rate": f"{row.float('rate_mbps'):g} Mbit/s",
            "edge_rate": f"{row.float('access_rate_mbps'):g} Mbit/s",
            "queue": ns2_queue(replace(row, cells=queue), wire),
        },
        "flow": flows,
        "sweep": {"repeat": SEEDS},
    }


def _vegas(row: Row) -> Table:
    wire = row.int("wire_bytes")
    linux = row.cells["proto"] == "linux-vegas"
    endpoint: Table = {
        "mss": f"{wire} B",
        "ack_size": f"{row.cells['ack_bytes']} B",
        "initial_window": row.int("init_window_pkts"),
        "max_window": f"{row.int('max_window_pkts') * wire} B",
        "recovery": "sack" if linux else "reno",
        # Each packet is timed by a clock of its own (v_sendtime_, net_timedelta), not in ticks.
        "clock": "1 us",
        "rto_min": f"{row.float('min_rto_s') * 1000:g} ms",
        "timestamps": True,
        "ack_every": 1,
        # ns-2's Vegas has a send routine of its own, which sends no SYN.
        "handshake": linux,
    }
    group: Table = {
        "rtt": f"{row.float('base_rtt_ms'):g} ms",
        "stack": _with("ns2", *(TCP_LINUX_PARTS if linux else ())),
        "controller": {"kind": "vegas", "preset": "linux-2.6.22", "base_from_handshake": True}
        if linux
        else {"kind": "vegas", "preset": "ns2"},
        "endpoint": endpoint | TCP_LINUX if linux else endpoint,
    }
    starts = row.cells["start_list_s"].split(";")
    return {
        "schema": 1,
        "run": _run(row.float("sim_s"), row.float("warmup_s"), SAMPLE),
        "dumbbell": {
            "rate": f"{row.float('rate_mbps'):g} Mbit/s",
            "edge_rate": f"{row.float('access_rate_mbps'):g} Mbit/s",
            "queue": {"kind": "fifo", "limit": f"{row.int('buffer_pkts') - 1} packets"},
        },
        # The recorded start time decides which flows measure a baseRTT that includes a queue.
        "flow": {f"from{i}": group | {"start": f"{start} s"} for i, start in enumerate(starts)},
    }


def _linux(row: Row) -> Table:
    """The cell of the recorded scenario; the older rows are of the same settings."""
    text = (DATA / "linux-testbed.toml").read_text(encoding="utf-8")
    recorded = _core.read_toml(text, name="linux-testbed.toml")
    arms = recorded["sweep"]["axis"]["arm"]["values"]
    setting = (row.cells["cc"], row.flag("ecn"), row.cells["queue"])
    controller, ecn, queue = next(arm for arm in arms if _called_in_rows(*arm) == setting)
    return {
        "schema": 1,
        "run": recorded["run"] | {"duration": f"{row.float('dur_s'):g} s"},
        "dumbbell": {"rate": f"{row.float('rate_mbps'):g} Mbit/s", "queue": queue},
        "flow": {
            "main": {
                **recorded["flow"]["main"],
                "count": row.int("n_flows"),
                "rtt": f"{row.float('rtt_ms'):g} ms",
                "controller": controller,
                "endpoint": {**recorded["flow"]["main"]["endpoint"], "ecn": ecn},
            }
        },
        "sweep": {"repeat": SEEDS},
    }


def _called_in_rows(controller: Table, ecn: bool, queue: Table) -> tuple[str, bool, str]:
    names = {"newreno": "reno", "cubic": "cubic"}
    cc = "bpf_abe" if "beta_ecn" in controller else names[controller["kind"]]
    return cc, ecn, queue["kind"]
