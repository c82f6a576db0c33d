"""Formatting of a graph with its traffic and queues as a scenario file."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from decimal import Decimal
from typing import TYPE_CHECKING

from cwnd import _core
from cwnd.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from cwnd.topology.graph import Graph

#: Packet size in bytes that converts a rate into packets per second: ns-2's `mean_pktsize_`.
MEAN_PACKET = 500
#: Minimum lower threshold, in packets: ns-2, `initialize_params` of red.cc.
_MIN_THRESHOLD_PACKETS = 5.0
#: Minimum round-trip time in seconds that ns-2 assumes for the link.
_RTT_S = 0.1


def red(rate_bit_s: float, delay_s: float, target_s: float = 0.005) -> str:
    """Computes RED's settings for a target delay, like the automatic configuration of ns-2.

    With `c` packets of 500 B per second (Floyd, Gummadi & Shenker 2001, section 5; ns-2.35,
    red.cc): `min_th = max(5, c · target / 2)` packets, `max_th = 3 min_th`, and `w_q = 1 - exp(-1 /
    (10 · RTT · c))` with an RTT of 100 ms, or 3 (delay + 1/c) if longer.
    `max_p` stays 0.1, without adaptation. The limit is four times `max_th`. Packets are dropped,
    not marked.

    Args:
        rate_bit_s: Rate of the link, in bit/s.
        delay_s: Propagation delay of the link, in seconds.
        target_s: Mean queueing delay in the middle of the thresholds, in seconds.

    Returns:
        The value of `queue` in a scenario file.
    """
    per_s = rate_bit_s / (8 * MEAN_PACKET)
    low = max(_MIN_THRESHOLD_PACKETS, per_s * target_s / 2)
    rtt = max(_RTT_S, 3 * (delay_s + 1 / per_s))
    weight = -math.expm1(-1 / (10 * rtt * per_s))
    low_bytes = round(low * MEAN_PACKET)
    sizes = f'min_th = "{low_bytes} B", max_th = "{3 * low_bytes} B", limit = "{12 * low_bytes} B"'
    rest = 'ecn = false, mark_p = "none"'
    return f'{{ kind = "red", preset = "ns-2", {sizes}, w_q = {weight!r}, {rest} }}'


#: Units of rates from the largest, in bit/s.
_RATES = ((10**9, "Gbit/s"), (10**6, "Mbit/s"), (10**3, "kbit/s"), (1, "bit/s"))
#: Range of the interval between arrivals that a scenario accepts, in seconds.
_SHORTEST_S, _LONGEST_S = 1e-9, 1e9
_TIMES = ((10**9, "s"), (10**6, "ms"), (10**3, "us"), (1, "ns"))


@dataclass(frozen=True)
class Traffic:
    """A group of flows."""

    name: str
    #: Pairs of nodes with their shares; empty if `senders` and `receivers` are given.
    pairs: Sequence[tuple[str, str, float | None]] = ()
    senders: Sequence[str] = ()
    receivers: Sequence[str] = ()
    #: Sizes of transfers that arrive at random; `None` for flows that last as long as the run.
    sizes: str | None = None
    #: Rate that all transfers together offer, in bit/s.
    offered_bit_s: float = 0.0
    #: Load of the busiest link as a fraction of its rate if receivers request the transfers;
    #: replaces the offered rate.
    asked_load: float | None = None
    #: Number of randomly drawn senders from which each receiver has lasting flows.
    peers: int | None = None
    #: Number of lasting flows.
    flows: int = 1

    @property
    def interval_s(self) -> float:
        """Mean time between two arrivals, in seconds."""
        assert self.sizes is not None
        return 8 * quantity("sizes", self.sizes, "--size") / self.offered_bit_s


def quantity(kind: str, text: str, option: str) -> float:
    """Parses a quantity in bit/s, seconds or (mean) bytes; `kind` is `rate`, `time` or `sizes`.

    Raises:
        InputError: It is malformed; the message begins with `option`.
    """
    try:
        return _core.read_quantity(kind, text)
    except ValueError as error:
        raise InputError(f"{option} {text!r}: {error}") from error


def scenario(
    graph: Graph,
    traffic: Sequence[Traffic],
    *,
    made_by: str,
    duration: str,
    backoffs: bool = False,
) -> str:
    """Formats the text of a scenario file; equal arguments give equal text.

    Args:
        graph: Graph with unique names.
        traffic: At least one group.
        made_by: The command that generates the file.
        duration: Duration of the run, as in "60 s".
        backoffs: `True` makes a sweep of TCP and TCP*(∞) for all groups.

    Raises:
        InputError: Sizes are malformed, or the interval between arrivals is outside the accepted
            range.
    """
    lines = [f"# {line}" for line in _comments(graph, made_by)]
    lines += ["schema = 2"]
    lines += [f"description = {_text(f'Traffic over {graph.name}')}"]
    lines += ["", "[run]", f"duration = {_text(duration)}", 'sample = "1 s"']
    for name, link in zip(graph.link_names(), graph.links, strict=True):
        lines += ["", f"[link.{_text(name)}]"]
        lines += [f"from = {_text(link.source)}", f"to = {_text(link.target)}"]
        lines += [
            f"rate = {_text(rate_text(link.rate_bit_s))}",
            f"delay = {_text(time_text(link.delay_s))}",
        ]
        lines += [f"queue = {link.queue}"]
        lines += [] if link.one_way else ["duplex = true"]
    placed = [node for node in graph.nodes if node.x is not None and node.y is not None]
    lines += ["", "[node]"] if placed else []
    lines += [f"{_text(node.name)} = {{ x = {node.x!r}, y = {node.y!r} }}" for node in placed]
    for group in traffic:
        lines += ["", f"[flow.{_text(group.name)}]", *_group(group)]
    if backoffs:
        paths = [f"flow.{group.name}.endpoint.rto_backoff" for group in traffic]
        values = [[value] * len(paths) for value in ("exponential", "off")]
        lines += ["", "[sweep.axis.stack]", f"path = {json.dumps(paths)}"]
        lines += [f"values = {json.dumps(values)}", 'labels = ["TCP", "TCP*(inf)"]']
    return "\n".join(lines) + "\n"


def _comments(graph: Graph, made_by: str) -> list[str]:
    lines = [f"Made by `{made_by}` of cwnd {_core.__version__}.", *graph.remarks]
    lines += [f"Warning: {warning}" for warning in graph.warnings]
    # Names from an imported file must not end the comment.
    return ["".join(c if c.isprintable() else " " for c in line) for line in lines]


def _group(group: Traffic) -> list[str]:
    lines = []
    if group.pairs:
        lines.append("pairs = [")
        for source, target, share in group.pairs:
            more = "" if share is None else f", share = {share!r}"
            lines.append(f"  {{ from = {_text(source)}, to = {_text(target)}{more} }},")
        lines.append("]")
        if all(share is None for _, _, share in group.pairs):
            lines.append('ends = "round-robin"')
    else:
        lines += [f"from = {_names(group.senders)}", f"to = {_names(group.receivers)}"]
    if group.peers is not None:
        return [*lines, f"peers = {group.peers}", 'start = "uniform(0 s, 1 s)"']
    if group.asked_load is not None:
        sizes = _text(str(group.sizes))
        lines.append(f'workload = {{ kind = "web", size = {sizes} }}')
        return [*lines, f'arrivals = {{ kind = "poisson", load = {group.asked_load:.6g} }}']
    if group.sizes is None:
        return [*lines, f"count = {group.flows}", 'start = "uniform(0 s, 1 s)"']
    interval = group.interval_s
    if not _SHORTEST_S <= interval <= _LONGEST_S:
        raise InputError(
            f"{rate_text(group.offered_bit_s)} in transfers of {group.sizes} make one every"
            f" {interval:.3g} s: ask for another total, or other sizes"
        )
    every, sizes = _text(time_text(interval)), _text(group.sizes)
    return [*lines, f'workload = {{ kind = "poisson", interval = {every}, size = {sizes} }}']


def _names(names: Sequence[str]) -> str:
    return f"[{', '.join(_text(name) for name in names)}]"


def _text(text: str) -> str:
    # TOML reads JSON's escapes; names have no other control characters.
    return json.dumps(text, ensure_ascii=False)


def rate_text(bit_s: float) -> str:
    """Formats a rate for a scenario file, rounded to whole bits per second."""
    return _in_largest_unit(max(1, round(bit_s)), _RATES)


def time_text(seconds: float) -> str:
    """Formats a time for a scenario file, rounded to nanoseconds."""
    return _in_largest_unit(round(seconds * 1e9), _TIMES)


def _in_largest_unit(value: int, units: Sequence[tuple[int, str]]) -> str:
    for size, unit in units:
        if value >= size:
            return f"{(Decimal(value) / size).normalize():f} {unit}"
    return f"0 {units[-2][1]}"
