"""Notes on a result: mechanisms that never acted, invalid or missing runs, offered loads.

A comparison that rests on a mechanism without any action is meaningless.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import polars as pl

from cwnd import _core
from cwnd.results.mechanisms import (
    EXPLICIT_FEEDBACK,
    MAX_NAMED,
    OF_CONTROLLERS,
    OF_ECN,
    OF_QUENCHES,
    describe_points,
    is_aqm,
    is_reported,
    mechanism_keys,
    mechanisms_of,
    packet_sizes,
    read_bytes,
    read_lines,
    totals,
)
from cwnd.results.unsampled import row_counts, unsampled_flows

if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import TypeAlias

    from cwnd.results.data import Data
    from cwnd.results.mechanisms import Totals

    #: Labels of a point of the sweep.
    Point: TypeAlias = tuple[str, ...]

#: Lines of a resolved scenario from which the load of arriving connections follows.
_LOADS = re.compile(r"^load = [0-9]", re.MULTILINE)
_ARRIVALS = re.compile(
    r"^(?:\[.+\]|(?:load|link|from|to|start|stop|mss|max_datagram_size|header|ack_size|handshake)"
    r" = .*)$",
    re.MULTILINE,
)

#: A time in a resolved scenario, as opposed to a distribution or a file of times.
_TIME = re.compile(r"[0-9.]+ [a-z]+")


def missing_runs(run: Data) -> list[str]:
    """Sentence for an incomplete sweep."""
    missing, present = run.manifest.missing, run.manifest.runs
    if not missing:
        return []
    return [f"{missing} of {missing + present} runs are missing: the sweep is not complete"]


def invalid_runs(run: Data) -> list[str]:
    """Sentence for runs on Linux that were invalid."""
    facts = run.manifest.world or {}
    invalid = facts.get("invalid_runs", 0)
    if not invalid:
        return []
    first, *more = facts["flaws"]
    others = f" (and {len(more)} more reasons)" if more else ""
    return [f"{invalid} of {run.manifest.runs} runs are not valid: {first}{others}"]


def linux_notes(run: Data) -> list[str]:
    """Notes on settings that Linux applies differently."""
    notes: list[str] = (run.manifest.world or {}).get("notes", [])
    return notes


def silent_mechanisms(run: Data) -> list[str]:
    """Sentences on mechanisms that did nothing in all seeds of a point of the sweep."""
    points = run.rows_by_point
    silent: dict[str, list[tuple[str, ...]]] = {}
    # Linux does not report the cause of a window reduction, but counts segments received with CE.
    acted = OF_ECN if is_reported(run.flows, OF_ECN) else "ce_received"
    reductions = totals(run, run.flows, "group", acted)
    # Linux does not report the quenches that its senders accepted.
    quenches_reported = is_reported(run.flows, "quenches")
    quenches = totals(run, run.flows, "group", "quenches") if quenches_reported else None
    answers = totals(run, run.flows, "group", OF_QUENCHES)
    quenches_sent = totals(run, run.links, "link", "quenches_total_pkts")
    # Most links sent none; the filter saves a search through all links at each point.
    quenches_sent = {place: count for place, count in quenches_sent.items() if count}
    # ECN's mechanisms are not expected to act without ECN, and quenches depend on the endpoint.
    of_others = {mechanism[4] for mechanism in OF_CONTROLLERS} - {OF_ECN, OF_QUENCHES}
    acts = {c: totals(run, run.flows, "group", c) for c in of_others if is_reported(run.flows, c)}
    # A queue with only ACKs is not the object of the study.
    with_data = run.links.filter(pl.col("delivered_data_pkts") > 0)
    verdicts = totals(run, with_data, "link", "dropped_total_pkts", "marked_total_pkts")
    # Counters of flows start at the end of the warm-up.
    since = " after the warm-up" if (run.runs["warmup_s"] > 0).any() else ""
    for point, indices in points.items():
        scenario = mechanism_keys(run.resolved[indices[0]])
        found = (
            *_silent_ecn(scenario, point, reductions, since),
            *(
                _silent_quenches(scenario, point, quenches, answers, since)
                if quenches is not None
                else ()
            ),
            *_ignored_quenches(scenario, point, quenches_sent),
            *_silent_queues(scenario, point, verdicts),
            *_silent_controllers(scenario, point, acts, since),
            *_silent_routers(scenario, run.manifest.activity),
        )
        for sentence in _join_sentences(found):
            silent.setdefault(sentence, []).append(point)
    return [
        f"{sentence} {describe_points(run, found, len(points))}"
        for sentence, found in silent.items()
    ]


def given_up(run: Data) -> list[str]:
    """Sentence for connections that were given up, which have no completion time."""
    if "gave_up" not in run.flows.columns:
        return []
    where = run.flows["gave_up"].cast(pl.String)
    syn, data = int((where == "syn").sum()), int((where == "data").sum())
    flows, rest = run.flows.height, unsampled_flows(run)
    if not rest.is_empty():
        syn += int(rest["gave_up_at_syn"].sum())
        data += int(rest["gave_up_at_data"].sum())
        flows += int(rest["flows"].sum())
    if not syn + data:
        return []
    named = [f"{n} {what}" for n, what in ((syn, "at the SYN"), (data, "at data")) if n]
    return [
        f"{syn + data} of {flows} connections were given up ({', '.join(named)}):"
        " no mean of completion times has them"
    ]


def rows_left_out(run: Data) -> list[str]:
    """Sentences for requests or flows without a row, as the scenario asks for."""
    sentences = []
    for table, exact in (
        ("requests", "metrics are of all, quantiles of response times to 0.4 %"),
        ("flows", "metrics are of all"),
    ):
        found = row_counts(run, table)
        if found is None:
            continue
        some, every = found
        which = f"{some} of {every} {table} ({some / every:.2%}), drawn at random, have a row"
        sentences.append(f"{which if some else f'none of {every} {table} has a row'}: {exact}")
    return sentences


def idle_seeds(run: Data) -> list[str]:
    """Sentence for a result that is independent of the seed, which voids confidence intervals."""
    if len(run.manifest.seeds) < 2:  # noqa: PLR2004 - nothing to compare
        return []
    points = pl.struct(run.axis_columns) if run.axis_columns else pl.lit(0)
    spread = run.runs.group_by(points.alias("point")).agg(pl.col("digest").n_unique())
    if spread["digest"].max() != 1:
        return []
    return [
        "all seeds gave the same records: nothing in this scenario is random;"
        ' write noise = "path" under [run], give flows a random start, as in'
        ' start = "uniform(0 s, 1 s)", or leave out repeat'
    ]


def _join_sentences(found: Iterable[tuple[str, str]]) -> list[str]:
    """Formats sentences from templates with the names of groups or links.

    More than a few names with the same template share one sentence: a graph of a thousand links has
    one sentence for the links that were never full.
    """
    names_by_template: dict[tuple[str, str], list[str]] = {}
    for words, name in found:
        before, _, after = words.partition("{}")
        names_by_template.setdefault((before, after), []).append(name)
    sentences = []
    for (before, after), names in names_by_template.items():
        if len(names) <= MAX_NAMED:
            sentences += [f"{before}`{name}`{after}" for name in names]
            continue
        named = ", ".join(f"`{name}`" for name in names[:MAX_NAMED])
        sentences.append(f"{before}{named} and {len(names) - MAX_NAMED} more{after}")
    return sentences


def loads(run: Data) -> list[str]:
    """Sentences that compare the intended load of arriving groups with offered and carried load."""
    points = run.rows_by_point
    found: dict[str, list[tuple[str, ...]]] = {}
    ids = run.runs["run_id"].to_list()
    for point, indices in points.items():
        resolved = run.resolved[indices[0]]
        if not _LOADS.search(resolved):
            continue
        flows = read_lines("\n".join(_ARRIVALS.findall(resolved))).get("flow", {})
        for group, flow in flows.items():
            arrivals = flow.get("arrivals", {})
            if not isinstance(arrivals.get("load"), float):
                continue
            offered = _offered(run, [ids[i] for i in indices], group, flow, arrivals["link"])
            if offered is not None:
                asked = f"`{group}` is to load `{arrivals['link']}` with {arrivals['load']:.1%}"
                found.setdefault(f"{asked}: {offered}", []).append(point)
    return [f"{sentence} {describe_points(run, at, len(points))}" for sentence, at in found.items()]


def _offered(run: Data, ids: list[str], group: str, flow: dict[str, Any], link: str) -> str | None:
    """Offered load over all seeds, with headers and SYNs as the scenario counts them."""
    runs = run.runs.filter(pl.col("run_id").is_in(ids))
    rated = run.links.filter(pl.col("run_id").is_in(ids) & (pl.col("link") == link))
    began = (
        run.flows.filter(pl.col("run_id").is_in(ids) & (pl.col("group").cast(pl.String) == group))
        .join(runs.select("run_id", "warmup_s"), on="run_id")
        .filter(pl.col("start_s") >= pl.col("warmup_s"))
    )
    rate, used = rated["rate_bit_s"].mean(), rated["utilisation"].mean()
    seconds = _arrival_seconds(runs, flow)
    if not isinstance(rate, float) or not isinstance(used, float) or seconds <= 0:
        return None
    connections, rest = began.height, unsampled_flows(run)
    if not rest.is_empty():
        rest = rest.filter(pl.col("run_id").is_in(ids) & (pl.col("group") == group))
        connections += int(rest["began"].sum())
    # Results do not record which connections of a group between several nodes crossed the link.
    if any(isinstance(flow.get(end), list) for end in ("from", "to")):
        return f"{connections} connections began, and the link carried {used:.1%} in all"
    end = flow["endpoint"]
    mss, header = packet_sizes(end)
    syn = read_bytes(end.get("ack_size", "0 B"))
    total = float((began["size_bytes"] + (began["size_bytes"] / mss).ceil() * header).sum())
    if not rest.is_empty():
        total += float((rest["offered_bytes"] + rest["offered_segments"] * header).sum())
    total += connections * syn * bool(end.get("handshake"))
    return (
        f"{connections} connections began and offered {total * 8 / (rate * seconds):.1%},"
        f" and the link carried {used:.1%} in all"
    )


def _arrival_seconds(runs: pl.DataFrame, flow: dict[str, Any]) -> float:
    """Time with arrivals after the warm-up, over all runs, s."""
    start, stop = flow.get("start", "0 s"), flow.get("stop", "none")
    # The result does not record a drawn start.
    begin = _core.read_quantity("time", start) if _TIME.fullmatch(start) else 0.0
    end = float("inf") if stop == "none" else _core.read_quantity("time", stop)
    seconds = pl.min_horizontal("duration_s", pl.lit(end)) - pl.max_horizontal(
        "warmup_s", pl.lit(begin)
    )
    return float(runs.select(seconds.clip(0).sum()).item())


def _silent_ecn(
    scenario: dict[str, Any], point: Point, reductions: Totals, since: str
) -> Iterable[tuple[str, str]]:
    for name, flow in scenario.get("flow", {}).items():
        endpoint, controller = flow.get("endpoint", {}), flow.get("controller", {})
        if not isinstance(endpoint, dict) or not endpoint.get("ecn"):
            continue
        if reductions.get((point, name), 0):
            continue
        if not isinstance(controller, dict):
            continue
        # Controllers that follow router feedback use the two ECN bits for that feedback.
        if controller.get("kind") in EXPLICIT_FEEDBACK:
            continue
        asked = _asked_of(controller)
        if asked is not None:
            yield f"{asked} never acted: no window of {{}} was reduced by ECN{since}", name
        # An ECN-capable sender that ignores echoes is no test of ECN.
        elif endpoint.get("obey_ece", True):
            yield f"ECN never acted: no window of {{}} was reduced by it{since}", name


def _silent_quenches(
    scenario: dict[str, Any], point: Point, quenches: Totals, answers: Totals, since: str
) -> Iterable[tuple[str, str]]:
    """Flows that obey source quenches but received none, or did not reduce their window."""
    for name, flow in scenario.get("flow", {}).items():
        endpoint = flow.get("endpoint", {})
        if not isinstance(endpoint, dict) or not endpoint.get("obey_quench"):
            continue
        reduces = endpoint.get("quench_answer", "reduce") == "reduce"
        if not quenches.get((point, name), 0):
            yield f"source quenches never acted: none came to {{}}{since}", name
        elif reduces and not answers.get((point, name), 0):
            yield f"source quenches never acted: no window of {{}} was reduced by one{since}", name


def _ignored_quenches(
    scenario: dict[str, Any], point: Point, quenches_sent: Totals
) -> Iterable[tuple[str, str]]:
    """Links whose routers sent source quenches that no flow obeys."""
    endpoints = [flow.get("endpoint") for flow in scenario.get("flow", {}).values()]
    if any(isinstance(each, dict) and each.get("obey_quench") for each in endpoints):
        return
    for (at, link), sent in quenches_sent.items():
        if at == point:
            yield f"{sent} source quenches of {{}} changed nothing: no flow obeys them", link


def _asked_of(controller: dict[str, Any]) -> str | None:
    """Returns the name of the enabled mechanism that answers ECN, or `None`."""
    return next((name for name, column in mechanisms_of(controller) if column == OF_ECN), None)


def _silent_controllers(
    scenario: dict[str, Any], point: Point, acts: dict[str, Totals], since: str
) -> Iterable[tuple[str, str]]:
    """Mechanisms of controllers without any action, except those that answer ECN or quenches."""
    for name, flow in scenario.get("flow", {}).items():
        controller = flow.get("controller", {})
        for mechanism, column in mechanisms_of(controller if isinstance(controller, dict) else {}):
            if acts.get(column, {}).get((point, name)) == 0:
                yield f"{mechanism} never acted: no window of {{}} was reduced by it{since}", name


def _silent_routers(
    scenario: dict[str, Any], activity: dict[str, int]
) -> Iterable[tuple[str, str]]:
    """Flows that follow router feedback but received none in any run."""
    for name, flow in scenario.get("flow", {}).items():
        controller = flow.get("controller", {})
        kind = controller.get("kind") if isinstance(controller, dict) else None
        if kind not in EXPLICIT_FEEDBACK:
            continue
        mechanism, counters, silence = EXPLICIT_FEEDBACK[kind]
        if not any(activity.get(counter, 0) for counter in counters):
            yield f"{mechanism} never acted for {{}}: {silence}", name


def _silent_queues(
    scenario: dict[str, Any], point: Point, verdicts: Totals
) -> Iterable[tuple[str, str]]:
    queues = {name: link.get("queue") for name, link in scenario.get("link", {}).items()}
    dumbbell = scenario.get("dumbbell", {})
    queues["bottleneck"] = dumbbell.get("queue")
    queues["reverse"] = dumbbell.get("reverse_queue")
    for name, queue in queues.items():
        # A FIFO that drops nothing is long enough; an AQM that does nothing was not tested.
        if not isinstance(queue, dict) or not is_aqm(queue):
            continue
        if verdicts.get((point, name)) == 0:
            yield f"{queue['kind']} never acted: it dropped and marked nothing on {{}}", name
