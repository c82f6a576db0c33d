"""Tables of settings that were recorded with several seeds: every setting, and experiments."""

from __future__ import annotations

import statistics
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from cwnd.studies.peers.recorded import steered, transfers, web
from cwnd.studies.peers.recorded.ours import described
from cwnd.study import line

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from cwnd.studies.peers.recorded.ours import Ours, Overrides
    from cwnd.studies.peers.recorded.scenarios import Table

#: Settings that do not hold, by kind; the page explains them.
EXPLAINED: dict[str, set[str]] = {
    "transfers": {
        *(f"ns-2 users {number}" for number in (70, 103, 105, 106)),
        "ns-2 open load 4",
    },
    "web": {"ns-2 web 5", "ns-2 web 6"},
    "steered": {
        "ns-2 RCP 1",
        "ns-2 RCP 16",
        "ns-2 RCP 47",
        "ns-2 XCP 43",
        "ns-2 VCP 34",
        "ns-2 VCP 68",
        "ns-2 SACK 1",
        "ns-2 SACK 9",
        "ns-2 SACK 4",
        "ns-2 SACK 13",
        "ns-2 SACK 14",
    },
}

ENDPOINT = "flow.*.endpoint"
#: Experiments on transfers by the names of their tables: a setting by its key, and changes to it.
OF_TRANSFERS: dict[str, tuple[str, tuple[Overrides, ...]]] = {
    "lost-syns": (
        "ns-2 users 70",
        (
            ((f"{ENDPOINT}.initial_window", 2),),
            ((f"{ENDPOINT}.ssthresh_after_syn_loss", "none"),),
            ((f"{ENDPOINT}.rto_backoff_until", "sample"),),
            ((f"{ENDPOINT}.recovery", "reno"),),
        ),
    ),
    "large-files": (
        "ns-2 users 100",
        (
            ((f"{ENDPOINT}.pipe_rule", "rfc6675"),),
            ((f"{ENDPOINT}.recovery", "newreno"),),
        ),
    ),
    "who-lost-syns": (
        "ns-2 users 103",
        (
            ((f"{ENDPOINT}.initial_window", 2),),
            ((f"{ENDPOINT}.initial_window", 1),),
        ),
    ),
}

#: Other starts of flows.
ANY_START = "uniform(0 s, 1 s)"
#: The same of steered senders.
OF_STEERED: dict[str, tuple[str, tuple[Overrides, ...]]] = {
    "rcp-starts": (
        "ns-2 RCP 47",
        tuple((("flow.*.start", "uniform(0 s, 1 s)"), ("run.seed", seed)) for seed in (2, 3, 4)),
    ),
    "xcp-clock": (
        "ns-2 XCP 43",
        (
            (("flow.*.endpoint.clock", "1 us"),),
            (("flow.*.endpoint.rtt_arithmetic", "ticks"),),
        ),
    ),
    "vcp-clock": (
        "ns-2 VCP 34",
        (
            (("flow.*.endpoint.clock", "1 ms"),),
            (("flow.*.endpoint.clock", "10 ms"),),
        ),
    ),
    "vcp-join": (
        "ns-2 VCP 68",
        (
            (("flow.*.endpoint.clock", "1 ms"),),
            (("flow.*.endpoint.initial_window", 3),),
            (("flow.*.endpoint.initial_window", 4),),
        ),
    ),
    "sack-slow": (
        "ns-2 SACK 1",
        (
            (("flow.*.endpoint.limited_transmit", False),),
            (("flow.*.endpoint.recovery", "newreno"),),
        ),
    ),
}


def _queue(**changed: Any) -> Callable[[Table], Table]:
    def change(table: Table) -> Table:
        table["dumbbell"]["queue"] |= changed
        return table

    return change


def _half(table: Table) -> Table:
    return web.beginning_with_one(0.5, table)


def _sixth(table: Table) -> Table:
    return web.beginning_with_one(1 / 6, table)


#: Changes to every setting of web users with most bulk flows: a description, and the function.
OF_WEB: tuple[tuple[str, Callable[[Table], Table]], ...] = (
    ("a sixth of the sessions begins with one packet", _sixth),
    ("half of the sessions begin with one packet", _half),
    ("`count = packets`, `forced = drop`", _queue(count="packets", forced="drop")),
)


@dataclass(frozen=True)
class Kind:
    """Columns of a kind of settings, and their cells from the figures of runs."""

    columns: tuple[str, ...]
    cells: Callable[[Sequence[Any]], list[str]]


def _of_transfers(each: Sequence[transfers.Figures]) -> list[str]:
    f = transfers.means(each)
    times = [f"{f.response_p50_s:.3f}", f"{f.response_mean_s:.3f}", f"{f.response_p99_s:.2f}"]
    return [*times, f"{f.loss_pct:.2f}", f"{f.utilisation_pct:.1f}", f"{f.goodput_mbit_s:.3f}"]


def _of_web(each: Sequence[web.Figures]) -> list[str]:
    f = web.means(each)
    times = [f"{f.response_p50_s:.3f}", f"{f.response_p90_s:.3f}", f"{f.response_mean_s:.3f}"]
    shares = [f"{f.loss_pct:.2f}", f"{f.mark_pct:.2f}", f"{f.utilisation_pct:.1f}"]
    return [*times, f"{f.response_p99_s:.2f}", *shares, f"{f.bulk_mbit_s:.2f}"]


def _of_steered(each: Sequence[steered.Figures]) -> list[str]:
    if not each:
        return ["–"] * len(steered.NAMES)
    f = steered.mean(each)
    joined = "never" if f.joined_s < 0 else f"{f.joined_s:.2f}" if f.joined_s else "–"
    counts = [f"{count:.0f}" for count in (f.drops, f.drops_whole, f.marks)]
    return [f"{f.goodput_mbit_s:.3f}", f"{f.qdelay_mean_ms:.2f}", *counts, f"{f.jain:.3f}", joined]


TRANSFERS = Kind(
    ("median s", "mean s", "99 % s", "loss %", "utilisation %", "goodput Mbit/s"), _of_transfers
)
WEB = Kind(
    (
        *("median s", "90 % s", "mean s", "99 % s"),
        *("loss %", "marks %", "utilisation %", "bulk Mbit/s"),
    ),
    _of_web,
)
STEERED = Kind(tuple(steered.NAMES.values()), _of_steered)


def _head(columns: Iterable[str]) -> list[str]:
    found = line(columns)
    return [found, f"|{'---|' * (found.count(' | ') + 1)}"]


def every(kind: Kind, table: str, found: Iterable[Any]) -> list[str]:
    """Table of the settings of a file, ours beside theirs."""
    lines = _head(["rows", "setting", *kind.columns, "verdict"])
    for each in found:
        if each.setting.row.table == table:
            pairs = zip(kind.cells(each.runs), kind.cells(each.setting.theirs), strict=True)
            values = [f"{mine} / {peer}" for mine, peer in pairs]
            lines.append(line([each.setting.numbers, each.setting.text, *values, _verdict(each)]))
    return lines


def _verdict(each: Any) -> str:
    if each.setting.missing:
        return f"not expressible: {each.setting.missing}"
    if not each.setting.by_value:
        return "shown"
    return "holds" if each.holds else "differs: " + ", ".join(each.differs)


def experiments(
    kind: Kind,
    experiment: tuple[str, tuple[Overrides, ...]],
    found: Iterable[Any],
    figures: Ours[Any],
) -> list[str]:
    """Table of a setting with some keys of its scenario changed."""
    key, changes = experiment
    (one,) = (each for each in found if each.setting.key == key)
    rows = [("theirs", one.setting.theirs), ("ours", one.runs)]
    rows += [(f"with {text}", figures[key, text]) for text in map(described, changes)]
    return [
        *_head([f"{key}: {one.setting.text}", *kind.columns]),
        *(line([text, *kind.cells(each)]) for text, each in rows),
    ]


def web_experiments(found: Iterable[web.Compared], figures: Ours[web.Figures]) -> list[str]:
    """Table of the settings of web users with most bulk flows, with changes."""
    lines = _head(["setting", *WEB.columns])
    for each in found:
        if each.setting.row.cells["n_ftp"] == web.MOST_BULK_FLOWS:
            rows = [("theirs", each.setting.theirs), ("ours", list(each.runs))]
            rows += [(said, figures[each.setting.key, said]) for said, _ in OF_WEB]
            lines += [line([f"{each.setting.text}: {text}", *_of_web(of)]) for text, of in rows]
    return lines


def tails(found: list[transfers.Compared]) -> list[str]:
    """Counts orders of the 99th percentiles of settings that differ in their timeouts."""
    pairs = transfers.orders(found)
    ratios = [pair.ours / pair.theirs for pair in pairs]
    hold = sum(pair.holds for pair in pairs)
    return [
        f"Among settings that differ in their timeouts only there are {len(pairs)} pairs whose "
        f"99th percentiles differ by {transfers.CLEARLY - 1:.0%} or more there; in {hold} of them "
        "they differ in the same sense here. How many times as long the longer one is differs by a "
        f"factor of {min(ratios):.2f} to {max(ratios):.2f} (median "
        f"{statistics.median(ratios):.2f}).",
    ]
