"""Tables of transfers: every setting, and experiments."""

from __future__ import annotations

import statistics
from typing import TYPE_CHECKING

from cwnd.studies.peers.recorded.ours import described
from cwnd.studies.peers.recorded.transfers import CLEARLY, Compared, Figures, means, orders

if TYPE_CHECKING:
    from cwnd.studies.peers.recorded.ours import Ours, Overrides

ENDPOINT = "flow.*.endpoint"

#: Experiments by the names of their tables: a setting by its key, and changes to it.
EXPERIMENTS: dict[str, tuple[str, tuple[Overrides, ...]]] = {
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

#: Settings that do not hold; the page explains them.
EXPLAINED = {
    *(f"ns-2 users {number}" for number in (70, 103, 105, 106)),
    "ns-2 open load 4",
}


def experiments(name: str, found: list[Compared], figures: Ours[Figures]) -> list[str]:
    """Table of a setting with some keys of its scenario changed."""
    key, changes = EXPERIMENTS[name]
    (here,) = (c for c in found if c.setting.key == key)
    lines = [
        *(f"{key} ({here.setting.text}):", ""),
        "| | median s | mean s | 99 % s | loss % | utilisation % | goodput Mbit/s |",
        "|---|---|---|---|---|---|---|",
        f"| theirs | {_cells(means(here.setting.theirs))} |",
        f"| ours | {_cells(means(here.ours))} |",
    ]
    with_changes = ((changed, means(figures[key, changed])) for changed in map(described, changes))
    return lines + [f"| with {changed} | {_cells(each)} |" for changed, each in with_changes]


def _cells(f: Figures) -> str:
    return (
        f"{f.response_p50_s:.3f} | {f.response_mean_s:.3f} | {f.response_p99_s:.2f} | "
        f"{f.loss_pct:.2f} | {f.utilisation_pct:.1f} | {f.goodput_mbit_s:.3f}"
    )


def tails(found: list[Compared]) -> list[str]:
    """Counts orders of the 99th percentiles of settings that differ in their timeouts."""
    pairs = orders(found)
    ratios = [pair.ours / pair.theirs for pair in pairs]
    hold = sum(pair.holds for pair in pairs)
    return [
        f"Among settings that differ in their timeouts only there are {len(pairs)} pairs whose "
        f"99th percentiles differ by {CLEARLY - 1:.0%} or more there; in {hold} of them they "
        "differ in the same sense here. How many times as long the longer one is differs by a "
        f"factor of {min(ratios):.2f} to {max(ratios):.2f} (median "
        f"{statistics.median(ratios):.2f}).",
    ]


def every(table: str, found: list[Compared]) -> list[str]:
    """Table of the settings of a file."""
    lines = [
        "| rows | setting | median s | mean s | 99 % s | loss % | utilisation % | goodput "
        "Mbit/s | verdict |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    for each in found:
        if each.setting.row.table == table:
            pairs = zip(
                _cells(means(each.ours)).split(" | "),
                _cells(means(each.setting.theirs)).split(" | "),
                strict=True,
            )
            values = " | ".join(f"{mine} / {peer}" for mine, peer in pairs)
            lines.append(
                f"| {each.setting.numbers} | {each.setting.text} | {values} | {verdict(each)} |"
            )
    return lines


def verdict(each: Compared) -> str:
    """Returns the verdict on a setting, as the page shows it."""
    if not each.setting.by_value:
        return "shown"
    return "holds" if each.holds else "differs: " + ", ".join(each.differs)
