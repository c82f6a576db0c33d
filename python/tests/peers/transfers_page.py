"""The part of the page on transfers: what is compared, what explains differences, every setting."""

from __future__ import annotations

import statistics
from typing import TYPE_CHECKING

from peers.recorded import judged
from peers.transfers import (
    BOUNDS,
    CLEARLY,
    NAMES,
    SEEDS,
    SEEDS_OF_HEAVY_TAILS,
    STANDARD_ERRORS,
    TABLES,
    Compared,
    Figures,
    means,
    orders,
    run_all,
)

if TYPE_CHECKING:
    from peers.judge import Overrides

ENDPOINT = "flow.*.endpoint"

#: A setting by its key, and what is changed in it to see what it does.
EXPERIMENTS: tuple[tuple[str, str, tuple[Overrides, ...]], ...] = (
    (
        "ns-2 users 70",
        "**What of ns-2 matters when SYNs are lost.** Its first window is an option of the sender "
        "(`windowInit_`). A lost SYN sets it to one packet (`bugfix_ss_`), and nothing sets it "
        "back: a user whose connections have one sender begins all that follow with one packet. "
        "(Seen in ns-2 itself: after a SYN is lost and the sender is `reset`, `windowInit_` stays "
        "1; without a loss it is 2.) So as many users have `initial_window = 1` as will have lost "
        "a SYN, at the recorded loss. A lost SYN leaves a threshold of two packets "
        "(`ssthresh_after_syn_loss`), and its backoff lasts until a segment that went once is "
        "acknowledged (`rto_backoff_until`). After a timeout ns-2's Sack1 goes back and sends all "
        "again, what was SACKed, too: so does ours without SACK (`recovery = reno`), and has the "
        "same median.",
        (
            ((f"{ENDPOINT}.initial_window", 2),),
            ((f"{ENDPOINT}.ssthresh_after_syn_loss", "none"),),
            ((f"{ENDPOINT}.rto_backoff_until", "sample"),),
            ((f"{ENDPOINT}.recovery", "reno"),),
        ),
    ),
    (
        "ns-2 users 100",
        "**What large files lose.** A large file's slow start fills the queue and loses half a "
        "window. ns-2's Sack1 takes one packet off its pipe for each duplicate ACK, and stops; so "
        "does ours (`pipe_rule = sack1`). RFC 6675's pipe leaves out what is taken for lost, so "
        "that new data goes on while holes wait for the timer, and is lost, too:",
        (
            ((f"{ENDPOINT}.pipe_rule", "rfc6675"),),
            ((f"{ENDPOINT}.recovery", "newreno"),),
        ),
    ),
    (
        "ns-2 users 103",
        "**Who has lost a SYN.** Over DropTail packets are lost where a large file fills the "
        "queue, so that fewer users have lost a SYN than one packet in so many would make. If "
        "none has, or all have, the medians lie on both sides of theirs:",
        (
            ((f"{ENDPOINT}.initial_window", 2),),
            ((f"{ENDPOINT}.initial_window", 1),),
        ),
    ),
)

#: Explanations of settings that do not hold, by their keys.
EXPLANATIONS: dict[str, str] = {
    "ns-2 users 70": (
        "explained: without SACK, as ns-2's Sack1 after a timeout, the median is theirs."
    ),
    "ns-2 users 103": (
        "explained: who has lost a SYN; a goodput 7.7 % above three recorded seeds is not "
        "explained."
    ),
    "ns-2 users 105": "explained: who has lost a SYN (median 0.154 s if none has, 0.172 s if all "
    "have).",
    "ns-2 users 106": "explained: who has lost a SYN (median 0.155 s if none has, 0.175 s if all "
    "have).",
    "ns-2 open load 4": "not explained: 7 % (3.3 standard errors) above three recorded seeds.",
}


def section(found: list[Compared]) -> list[str]:
    """Returns the section of the page."""
    return [*_rules(), *_experiments(found), *_explained(found), *_orders(found), *_all(found)]


def _rules() -> list[str]:
    bounds = [
        f"{NAMES[name]} within {share:.0%}" + (f" or {floor:g} percentage points" if floor else "")
        for name, (share, floor) in BOUNDS.items()
    ]
    return [
        "## Transfers",
        "",
        'Users who fetch a file, pause and fetch the next (`arrivals = { kind = "closed" }`), and '
        "files that arrive for a load of 0.8. A response time is from the SYN, which the sender "
        "of the data sends, to the last ACK. ns-2 sends whole packets, and sizes are rounded up "
        "to them. Ours is from the start to the last byte, and half a propagation round trip for "
        f"the ACK, whose way is never full. Ours is the mean of {SEEDS} seeds, of "
        f"{SEEDS_OF_HEAVY_TAILS} where sizes have a heavy tail:",
        *(f"- {bound};" for bound in bounds),
        f"- where sizes have a heavy tail, also within {STANDARD_ERRORS} standard errors of the "
        "difference, from the seeds of both. The mean is compared in the open load only.",
        "",
        "Files of 300 and 3,000 packets are shown: a minute of them is no more than a few large "
        "ones. Of XCP and RCP the mappings are those of endless flows below.",
        "",
    ]


def _experiments(found: list[Compared]) -> list[str]:
    by_key = {c.setting.key: c for c in found}
    lines: list[str] = []
    for key, text, experiments in EXPERIMENTS:
        here = by_key[key]
        lines += [text, "", f"{key} ({here.setting.text}):", "", *TABLE_HEAD]
        lines.append(f"| theirs | {_cells(means(here.setting.theirs))} |")
        lines.append(f"| ours | {_cells(means(here.ours))} |")
        measured = run_all((here.setting, each) for each in experiments)
        for overrides, figures in zip(experiments, measured, strict=True):
            said = ", ".join(f"`{path.split('.')[-1]} = {value}`" for path, value in overrides)
            lines.append(f"| with {said} | {_cells(means(figures))} |")
        lines.append("")
    return lines


TABLE_HEAD = (
    "| | median s | mean s | 99 % s | loss % | utilisation % | goodput Mbit/s |",
    "|---|---|---|---|---|---|---|",
)


def _cells(f: Figures) -> str:
    return (
        f"{f.response_p50_s:.3f} | {f.response_mean_s:.3f} | {f.response_p99_s:.2f} | "
        f"{f.loss_pct:.2f} | {f.utilisation_pct:.1f} | {f.goodput_mbit_s:.3f}"
    )


def _explained(found: list[Compared]) -> list[str]:
    failing = [c for c in judged(found) if not c.holds]
    if not failing:
        return []
    lines = ["### Settings that do not hold", ""]
    for each in failing:
        lines += [f"- {each.setting.key} ({each.setting.text}): {EXPLANATIONS[each.setting.key]}"]
    return [*lines, ""]


def _orders(found: list[Compared]) -> list[str]:
    pairs = orders(found)
    ratios = [pair.ours / pair.theirs for pair in pairs]
    hold = sum(pair.holds for pair in pairs)
    return [
        "### Which timeouts make the tail longer",
        "",
        f"Among settings that differ in their timeouts only there are {len(pairs)} pairs whose "
        f"99th percentiles differ by {CLEARLY - 1:.0%} or more there; in {hold} of them they "
        "differ in the same sense here. How many times as long the longer one is differs by a "
        f"factor of {min(ratios):.2f} to {max(ratios):.2f} (median "
        f"{statistics.median(ratios):.2f}).",
        "",
    ]


def _all(found: list[Compared]) -> list[str]:
    lines = []
    for table, name in TABLES.items():
        lines += [
            f"### {name} (`{table}`)",
            "",
            "Ours / theirs.",
            "",
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
        lines.append("")
    return lines


def verdict(each: Compared) -> str:
    """Returns the verdict on a setting, as the page shows it."""
    if not each.setting.by_value:
        return "shown"
    return "holds" if each.holds else "differs: " + ", ".join(each.differs)
