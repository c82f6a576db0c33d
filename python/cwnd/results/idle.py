"""Reasons for which senders that always have data leave a dumbbell's bottleneck idle."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import polars as pl

from cwnd import _core
from cwnd.results.mechanisms import describe_points, is_aqm, packet_sizes, read_bytes, read_lines
from cwnd.results.unsampled import row_counts

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from cwnd.results.data import Data

#: Lines of a resolved scenario about the dumbbell's queue, its link's impairments, and limits of
#: its senders.
_LINES = re.compile(
    r"^(?:\[.+\]|(?:kind|direction|limit|target|interval|bdp_rtt|mss|max_datagram_size|header"
    r"|max_window|receive_window|edge_rate|rate|loss|loss_every|burst_loss|reorder|delay_steps"
    r"|option_loss|option_damage) = .*)$",
    re.MULTILINE,
)
#: Utilisation below which a link counts as idle.
IDLE = 0.7
#: Buffer in packets below which a FIFO drops from each burst: delayed ACKs release two or three
#: packets at once.
_SHORT_BUFFER_PACKETS = 4
#: Fraction of the measured time below which a flow counts as absent.
_THROUGHOUT = 0.95
#: Values of keys without loss, reordering and changed headers; jitter causes none of them.
_LOSSLESS = {"loss": 0.0, "loss_every": "none", "burst_loss": "none"}
_UNDISTURBED: dict[str, Any] = {"reorder": 0.0, "delay_steps": []}
_UNDISTURBED |= {"option_loss": 0.0, "option_damage": 0.0}
#: Columns with the number of window reductions after drops and marks.
_REDUCTIONS = ("cwnd_reductions_loss", "cwnd_reductions_ecn", "cwnd_reductions_rto")
_BY_DELAY = "cwnd_reductions_delay"
#: Columns of the flows that the diagnosis reads.
_OF_FLOWS = ("run_id", "group", "duration_s", "rtt_base_us", *_REDUCTIONS, _BY_DELAY)

#: Cause of an idle link, if the run shows one. In the order of the values: flows that are absent
#: for a time; windows or interfaces that allow no more; loss on the link; a rate that changes;
#: windows reduced for delay; a FIFO of few packets that overflowed; a queue that dropped or marked
#: before it held a round trip.
Cause = Literal["absent", "bounded", "loss", "rate", "delay", "overflow", "queue", "unknown"]


class Idle(NamedTuple):
    """An idle link and its cause."""

    cause: Cause
    #: Text for the reader; it states a cause only if the run shows it.
    sentence: str


def idle_lines(run: Data) -> list[str]:
    """Sentences about a dumbbell's link that senders without end left idle, with the points."""
    found: dict[str, list[tuple[str, ...]]] = {}
    points = idle_points(run)
    for point, idle in points.items():
        if idle is not None:
            found.setdefault(idle.sentence, []).append(point)
    return [f"{sentence} {describe_points(run, at, len(points))}" for sentence, at in found.items()]


def idle_points(run: Data) -> dict[tuple[str, ...], Idle | None]:
    """Diagnoses the first idle run at each point of the sweep.

    The value is `None` where no run was idle, or where some flow is finite or limits its window.
    """
    found: dict[tuple[str, ...], Idle | None] = dict.fromkeys(run.rows_by_point)
    idle = _first_idle(run)
    ids = idle.select("run_id")
    dropped = _dropped(run, ids)
    known = [name for name in _OF_FLOWS if name in run.flows.columns]
    of_runs = run.flows.select(known).join(ids, on="run_id", how="semi", maintain_order="left")
    flows = of_runs.partition_by("run_id", as_dict=True) if idle.height else {}
    recorded = row_counts(run, "flows") is None
    for line in idle.iter_rows(named=True):
        scenario = read_lines("\n".join(_LINES.findall(run.resolved[line["n"]])))
        sending = _endless(scenario)
        if not sending:
            continue
        rows = flows.get((line["run_id"],), of_runs.clear())
        rows = rows.filter(pl.col("group").cast(pl.String).is_in(list(sending)))
        cause: Cause = "unknown"
        reason = ""
        if recorded and not rows.is_empty():
            line["reasons"] = dropped.get(line["run_id"], set())
            measured_s = line["duration_s"] - line["warmup_s"]
            cause, reason = _find_cause(scenario["dumbbell"], sending, line, rows, measured_s)
        percent = f"{1 - IDLE:.0%}"
        sentence = f"`bottleneck` was idle for more than {percent} of the time"
        point = tuple(line[column] for column in run.axis_columns)
        found[point] = Idle(cause, f"{sentence}: {reason}" if reason else sentence)
    return found


def _first_idle(run: Data) -> pl.DataFrame:
    """Returns the bottleneck's row of the first run that left it idle, at each point.

    The column `n` is the index of the run. One run suffices, as the scenario of a point is the same
    for all seeds.
    """
    lines = run.links.filter(pl.col("link") == "bottleneck", pl.col("utilisation") < IDLE)
    runs = run.runs.select("run_id", "duration_s", "warmup_s").with_row_index("n")
    idle = runs.join(lines, on="run_id", maintain_order="left")
    if not run.axis_columns:
        return idle.head(1)
    return idle.unique(run.axis_columns, keep="first", maintain_order=True)


def _dropped(run: Data, ids: pl.DataFrame) -> dict[str, set[str]]:
    """Reasons of the bottleneck's drops after the warm-up, by run."""
    rows = run.samples["reasons"].filter(
        pl.col("link") == "bottleneck", pl.col("verdict") == "dropped", pl.col("packets") > 0
    )
    of_runs = rows.select("run_id", "reason").join(ids.lazy(), on="run_id", how="semi")
    found: dict[str, set[str]] = {}
    for run_id, reason in of_runs.collect().iter_rows():
        found.setdefault(run_id, set()).add(reason)
    return found


def _endless(scenario: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """Groups that send forward over a dumbbell; empty if one is finite or limits its window."""
    if "dumbbell" not in scenario:
        return {}
    forward = {
        name: flow
        for name, flow in scenario.get("flow", {}).items()
        if flow.get("direction", "forward") == "forward"
    }
    endless = all(
        flow.get("workload", {}).get("kind") == "bulk"
        and flow.get("arrivals", {}).get("kind", "none") == "none"
        and flow.get("endpoint", {}).get("max_window") == "none"
        for flow in forward.values()
    )
    return forward if endless else {}


def _find_cause(
    dumbbell: Mapping[str, Any],
    groups: Mapping[str, dict[str, Any]],
    line: Mapping[str, Any],
    flows: pl.DataFrame,
    measured_s: float,
) -> tuple[Cause, str]:
    """Finds the cause that a run shows for an idle link, and its wording.

    The order of the tests matters: each assumes that the earlier causes are excluded.
    """
    if flows["duration_s"].min() < _THROUGHOUT * measured_s:  # type: ignore[operator]
        return "absent", "not all of its flows sent through all of it"
    if _rate_bound(dumbbell, groups, flows) < IDLE * line["rate_bit_s"]:
        return "bounded", "`receive_window` or `edge_rate` of its flows allows no more"
    if not _has_values(dumbbell, _LOSSLESS):
        return (
            ("loss", "its line lost packets") if "link_loss" in line["reasons"] else ("unknown", "")
        )
    rate = dumbbell.get("rate")
    if not isinstance(rate, dict) or rate.get("steps"):
        return "rate", "its rate changes"
    forged = any(flow.get("attacker", {}).get("kind", "none") != "none" for flow in groups.values())
    if forged or not _has_values(dumbbell, _UNDISTURBED):
        return "unknown", ""
    return _find_queue_cause(dumbbell, groups, line, flows)


def _find_queue_cause(
    dumbbell: Mapping[str, Any],
    groups: Mapping[str, dict[str, Any]],
    line: Mapping[str, Any],
    flows: pl.DataFrame,
) -> tuple[Cause, str]:
    """Finds the cause in the actions of queue and senders."""
    reductions, delays = _total(flows, _REDUCTIONS), _total(flows, [_BY_DELAY])
    if delays > reductions:
        reason = "its senders reduced their windows for delays more often than for drops and marks"
        return "delay", reason
    if not line["dropped_pkts"] and not line["marked_pkts"]:
        return "unknown", "its queue dropped and marked nothing"
    queue = dumbbell.get("queue", {})
    if not is_aqm(queue) and "overlimit" in line["reasons"]:
        packets = limit_packets(
            queue["limit"], line["rate_bit_s"], dumbbell.get("bdp_rtt"), groups.values()
        )
        if packets < _SHORT_BUFFER_PACKETS:
            return "overflow", f"its queue holds {packets:.1f} packets and overflowed"
    rtt_us = flows["rtt_base_us"].min()
    longest_us = line["qdelay_max_us"]
    if reductions and rtt_us is not None and longest_us is not None and longest_us < rtt_us:
        kind = queue.get("kind")
        if "target" in queue and "interval" in queue:
            kind = f"{kind}, target {queue['target']}, interval {queue['interval']}"
        return "queue", (
            f"packets were dropped or marked before its queue ({kind}) held a round trip of"
            f" {rtt_us / 1e3:g} ms, and senders reduced their windows"  # type: ignore[operator]
        )
    return "unknown", ""


def _has_values(section: Mapping[str, Any], values: Mapping[str, Any]) -> bool:
    """`True` if the keys that are present have these values."""
    return all(section.get(key, value) == value for key, value in values.items())


def _total(flows: pl.DataFrame, columns: Iterable[str]) -> int:
    """Sums counts over flows; columns that a result does not report count as zero."""
    return sum(int(flows[column].sum() or 0) for column in columns if column in flows.columns)


def _rate_bound(
    dumbbell: Mapping[str, Any], groups: Mapping[str, dict[str, Any]], flows: pl.DataFrame
) -> float:
    """Upper bound in bit/s of the rate that windows and interfaces allow, without queueing."""
    edge = dumbbell.get("edge_rate", "none")
    interface = float("inf") if edge == "none" else _core.read_quantity("rate", edge)
    total = 0.0
    for group, rtt_us in flows.select(pl.col("group").cast(pl.String), "rtt_base_us").iter_rows():
        endpoint = groups[group]["endpoint"]
        # QUIC endpoints have no receive window here.
        text = endpoint.get("receive_window")
        window = read_bytes(text) if text else float("inf")
        # Windows count payload; the rate of the link includes headers.
        payload, headers = packet_sizes(endpoint)
        window *= 1 + headers / payload
        total += min(interface, window * 8e6 / rtt_us if rtt_us else float("inf"))
    return total


def limit_packets(
    limit: str, rate: float, bdp_rtt: str | None, groups: Iterable[Mapping[str, Any]]
) -> float:
    """Converts the limit of a queue to a number of the largest packets of these groups."""
    number, unit = limit.split()
    if unit.startswith("packet"):
        return float(number)
    if unit == "BDP":
        size = float(number) * rate * _core.read_quantity("time", bdp_rtt or "0 s") / 8
    elif unit.endswith("B"):
        size = read_bytes(limit)
    else:
        size = rate * _core.read_quantity("time", limit) / 8
    return size / max(sum(packet_sizes(group["endpoint"])) for group in groups)
