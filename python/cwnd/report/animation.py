"""Animation of packets: an HTML page that plays the packets of one run, or of two, at one link."""

from __future__ import annotations

import base64
import gzip
import json
from typing import TYPE_CHECKING, Any

import polars as pl

from cwnd.errors import InputError
from cwnd.report import ladder
from cwnd.report.colours import palettes
from cwnd.report.page import asset, environment
from cwnd.results import limit_packets

if TYPE_CHECKING:
    from collections.abc import Sequence

    from cwnd.running import PacketLog

#: Maximum number of flows that have colours and windows of their own.
MAX_FLOWS = 5
#: Colours of flows, as indices into `line_style.COLOURS`, in the order of figures but for vermilion
#: and purple, which are for signals.
FLOW_COLOURS = (0, 1, 2, 4, 6)
#: Colours of marks with their echoes, and of source quenches.
MARK_COLOUR, QUENCH_COLOUR = 3, 5
#: Maximum number of packets in a diagram.
MAX_LINES = 3000
#: Bits of a packet's flags in the page, above its kind.
_AGAIN, _ECHO = 4, 8
#: Parameters of queues and meters that are drawn at the queue, and their labels.
_THRESHOLDS = {
    "min_th": "min threshold",
    "max_th": "max threshold",
    "threshold": "threshold",
    "target": "target",
    "limit": "limit",
}
#: Queues whose target is for each of several queues.
_SEVERAL = ("fq_codel",)


def shown_packets(log: PacketLog) -> pl.DataFrame:
    """Selects the packets of a picture: those at the link's queue, and the way back of its flows.

    The column `start_ns` is the start of their transmission: a link transmits as soon as it can.
    """
    found = log.packets
    at_queue = pl.col("arrived_ns").is_not_null()
    flows = found.filter(at_queue & (pl.col("kind") == "data"))["flow_id"].unique()
    back = ~at_queue & pl.col("flow_id").is_in(flows.implode())
    # Data that was lost before the link is in no part of the picture.
    unseen = (pl.col("kind") == "quench") | ((pl.col("kind") == "data") & (pl.col("lost") != ""))
    found = found.filter(at_queue | (back & ~unseen)).with_row_index("packet")
    sent = found.filter(pl.col("left_ns").is_not_null()).sort("left_ns", maintain_order=True)
    # The end of the run may come during a transmission.
    waiting = found.filter(
        at_queue, pl.col("kind") != "quench", pl.col("left_ns").is_null(), pl.col("lost") == ""
    ).sort("arrived_ns", maintain_order=True)
    rate = log.links.row(by_predicate=pl.col("link") == log.link, named=True)["rate_bit_s"]
    first = (pl.col("left_ns") - pl.col("wire_bytes") * 8e9 / rate).clip(0).cast(pl.UInt64)
    start = pl.max_horizontal("arrived_ns", pl.col("left_ns").shift(1).fill_null(first))
    starts = pl.concat([sent, waiting.head(1)]).select("packet", start_ns=start)
    return found.join(starts, "packet", "left", maintain_order="left")


def counts(packets: pl.DataFrame) -> dict[str, int]:
    """Counts packets at the link's queue, their marks and losses there and later, and quenches."""
    at_queue = packets.filter(pl.col("arrived_ns").is_not_null(), pl.col("kind") != "quench")
    lost = at_queue.filter(pl.col("lost") != "")
    dropped = lost["left_ns"].null_count()
    return {
        "arrived": at_queue.height,
        "left": at_queue["left_ns"].count(),
        "marked": at_queue.filter(pl.col("marked") != "").height,
        "dropped": dropped,
        "lost_later": lost.height - dropped,
        "quenches": packets.filter(pl.col("kind") == "quench").height,
        "again": int(at_queue["again"].sum()),
        "echoes": packets.filter(pl.col("kind") == "ack", pl.col("echo") == 1).height,
    }


def html(logs: Sequence[PacketLog]) -> str:
    """Formats the page; equal logs give equal bytes.

    Raises:
        InputError: A window has no packets at the link.
    """
    scenes = [_scene(log) for log in logs]
    return (
        environment()
        .get_template("animation.html")
        .render(
            title=logs[0].name,
            description=logs[0].resolved.get("description", ""),
            scenes=scenes,
            style=asset("page.css") + asset("animation.css"),
            script=asset("scene.js") + asset("player.js"),
            palettes=palettes(),
            data=_packed([{**scene, "id": number} for number, scene in enumerate(scenes)]),
        )
    )


def _packed(value: object) -> str:
    # Without a time stamp, equal logs give equal pages.
    text = json.dumps(value, separators=(",", ":"), ensure_ascii=False)
    return base64.b64encode(gzip.compress(text.encode(), mtime=0)).decode()


def _scene(log: PacketLog) -> dict[str, Any]:
    packets = shown_packets(log)
    if packets.filter(pl.col("arrived_ns").is_not_null()).is_empty():
        begin_s, end_s = (at / 1e9 for at in log.window)
        raise InputError(f"no packet is at link `{log.link}` from {begin_s:g} s to {end_s:g} s")
    flows = labelled_flows(log, packets)
    return {
        "title": log.point or log.link,
        "link": log.link,
        "window": log.window,
        "flows": [{"label": label, "colour": colour} for label, colour in flows.values()],
        "thresholds": thresholds(log, packets),
        "counts": counts(packets),
        "reasons": (reasons := sorted({"", *packets["marked"], *packets["lost"]})),
        "packets": _columns(packets, list(flows), reasons),
        "windows": _windows(log, list(flows)),
    }


def labelled_flows(log: PacketLog, packets: pl.DataFrame) -> dict[int, tuple[str, int]]:
    """Label and colour of each flow at the link, or of its group if flows are many."""
    at_queue = packets.filter(pl.col("arrived_ns").is_not_null())["flow_id"].unique().sort()
    group_of = dict(log.flows.select("flow_id", pl.col("group").cast(pl.String)).iter_rows())
    # A scenario may keep rows of some flows only.
    named = {flow: group_of.get(flow, "others") for flow in at_queue}
    own = len(set(named.values())) < len(named) <= MAX_FLOWS
    labels = {flow: f"{group} {flow}" if own else group for flow, group in named.items()}
    order = list(dict.fromkeys(labels.values()))
    if len(order) > MAX_FLOWS:
        first = order[: MAX_FLOWS - 1]
        labels = {flow: label if label in first else "others" for flow, label in labels.items()}
        order = list(dict.fromkeys(labels.values()))
    return {flow: (label, FLOW_COLOURS[order.index(label)]) for flow, label in labels.items()}


def _columns(packets: pl.DataFrame, flows: list[int], reasons: list[str]) -> dict[str, list[int]]:
    """Columns for the page: send times by their differences, others since the time of sending."""

    def since_sent(name: str) -> pl.Expr:
        return (pl.col(name).cast(pl.Int64) - pl.col("sent_ns").cast(pl.Int64)).fill_null(-1)

    kinds = {"data": 0, "ack": 1, "quench": 2}
    flags = pl.sum_horizontal(
        pl.col("kind").cast(pl.String).replace_strict(kinds, return_dtype=pl.Int64),
        pl.col("again").cast(pl.Int64) * _AGAIN,
        pl.col("echo").cast(pl.Int64) * _ECHO,
    )
    number = {flow: index for index, flow in enumerate(flows)}
    found = packets.select(
        sent=pl.col("sent_ns").cast(pl.Int64).diff().fill_null(pl.col("sent_ns").cast(pl.Int64)),
        arrived=since_sent("arrived_ns"),
        start=since_sent("start_ns"),
        left=since_sent("left_ns"),
        ended=since_sent("ended_ns"),
        ce=since_sent("ce_ns"),
        flow=pl.col("flow_id").replace_strict(number, return_dtype=pl.Int64),
        flags=flags,
        marked=pl.col("marked").cast(pl.String).replace_strict(_numbered(reasons)),
        lost=pl.col("lost").cast(pl.String).replace_strict(_numbered(reasons)),
    )
    return {name: found[name].to_list() for name in found.columns}


def _numbered(names: list[str]) -> dict[str, int]:
    return {name: number for number, name in enumerate(names)}


def _windows(log: PacketLog, flows: list[int]) -> list[dict[str, list[float]]]:
    """Windows of the flows over time, if they are few."""
    if len(flows) > MAX_FLOWS:
        return []
    begin, end = (at / 1e9 for at in log.window)
    rows = log.series.filter(pl.col("time_s").is_between(begin, end))
    found = []
    for flow in flows:
        own = rows.filter(pl.col("flow_id") == flow)
        found.append({"time_s": own["time_s"].to_list(), "packets": own["snd_cwnd_pkts"].to_list()})
    return found


def thresholds(log: PacketLog, packets: pl.DataFrame) -> list[dict[str, Any]]:
    """Thresholds of the queue and its meter, in packets as they are at this link.

    Those in other units are omitted if packets have no one size there, or the rate changes.
    """
    rate = log.links.row(by_predicate=pl.col("link") == log.link, named=True)["rate_bit_s"]
    endpoints = [group for group in log.resolved["flow"].values() if "endpoint" in group]
    acks = packets.filter(pl.col("arrived_ns").is_not_null(), pl.col("kind") == "ack")
    speed = log.settings["rate"]
    is_constant = isinstance(speed, str) or speed.get("steps") == []
    # Datagrams have no size of their own in the scenario.
    has_size = endpoints and acks.is_empty() and is_constant
    found = []
    for part in (log.settings["queue"], log.settings.get("meter", {})):
        for key, label in _THRESHOLDS.items():
            value = part.get(key)
            if not isinstance(value, str) or value == "none" or part["kind"] in _SEVERAL:
                continue
            if not has_size and "packet" not in value:
                continue
            size = limit_packets(value, rate, log.settings.get("bdp_rtt"), endpoints)
            found.append({"label": f"{part['kind']} {label}", "value": value, "packets": size})
    return found


def svg(logs: Sequence[PacketLog]) -> str:
    """Formats a diagram of the packets, one part for each run: time runs down.

    Each packet is a line from sender to router and from there to the receiver, as in textbooks. A
    whole round trip is in sight at once, in print, too, which no moving picture offers.

    Raises:
        InputError: A window has no packets at the link, or too many to tell apart.
    """
    return ladder.svg([_ladder(log) for log in logs], logs[0].name)


def _ladder(log: PacketLog) -> ladder.Part:
    packets = shown_packets(log)
    if packets.height > MAX_LINES:
        raise InputError(
            f"a diagram of {packets.height:,} packets is black; {MAX_LINES} are the most, so choose"
            " a part with --from and --to, as in --from 2s --to 2200ms"
        )
    flows = labelled_flows(log, packets)
    return ladder.Part(log.point or log.link, log.link, log.window, packets, flows)
