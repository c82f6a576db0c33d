"""The part of the page on web users: what is compared, every setting, what explains the rest."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from peers import web
from peers.transfers import STANDARD_ERRORS

if TYPE_CHECKING:
    from collections.abc import Callable

    from peers.scenarios import Table

#: Explanations of settings that do not hold, by their keys.
EXPLANATIONS: dict[str, str] = {
    "ns-2 web 5": (
        "explained in part: senders that begin with one packet, after they were used for a SYN "
        "that was lost."
    ),
    "ns-2 web 6": "explained in part: the same.",
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


#: Changes to every setting with most bulk flows: a description, and the function.
EXPERIMENTS: tuple[tuple[str, Callable[[Table], Table]], ...] = (
    ("a sixth of the sessions begins with one packet", _sixth),
    ("half of the sessions begin with one packet", _half),
    ("`count = packets`, `forced = drop`", _queue(count="packets", forced="drop")),
)

HEAD = (
    "| median s | 90 % s | mean s | 99 % s | loss % | marks % | utilisation % | bulk Mbit/s |",
    "|---|---|---|---|---|---|---|---|",
)


def section(found: list[web.Compared]) -> list[str]:
    """Returns the section of the page."""
    return [*_rules(), *table(found), *_explained(found)]


def _rules() -> list[str]:
    bounds = [
        f"{web.NAMES[name]} within {share:.0%}"
        + (f" or {floor:g} percentage points" if floor else "")
        for name, (share, floor) in web.BOUNDS.items()
    ]
    return [
        "## Web users",
        "",
        "The users of the BECN paper's Table I (`web`, preset `becn-table-1`) beside 5, 15 and 35 "
        "bulk flows over RED of 10 Mbit/s. ns-2 asks over one connection, and answers over "
        "another when the client has the ACK of its request; a response time is from the start to "
        "the last ACK of the answer. Ours has one connection for both: its server waits as long "
        "as the rest takes on an empty path (`server_time` of 1.5 round trips), and what the "
        "request's ACK and the answer's SYN would have waited at the bottleneck is added to the "
        f"response time, from the queue at that time. Ours is the mean of {web.SEEDS} seeds:",
        *(f"- {bound};" for bound in bounds),
        f"- or within {STANDARD_ERRORS} standard errors of the difference, from the seeds of "
        "both: sizes have a heavy tail.",
        "",
    ]


def _cells(f: web.Figures) -> list[str]:
    return [
        f"{f.response_p50_s:.3f}",
        f"{f.response_p90_s:.3f}",
        f"{f.response_mean_s:.3f}",
        f"{f.response_p99_s:.2f}",
        f"{f.loss_pct:.2f}",
        f"{f.mark_pct:.2f}",
        f"{f.utilisation_pct:.1f}",
        f"{f.bulk_mbit_s:.2f}",
    ]


def table(found: list[web.Compared]) -> list[str]:
    """Every setting, ours beside theirs."""
    lines = [
        f"### {web.TABLES[web.TABLE]} (`{web.TABLE}`)",
        "",
        "Ours / theirs.",
        "",
        f"| rows | setting {HEAD[0]} verdict |",
        f"|---|---{HEAD[1]}---|",
    ]
    for each in found:
        pairs = zip(
            _cells(web.means(each.ours)), _cells(web.means(each.setting.theirs)), strict=True
        )
        values = " | ".join(f"{mine} / {peer}" for mine, peer in pairs)
        lines.append(
            f"| {each.setting.numbers} | {each.setting.text} | {values} | {verdict(each)} |"
        )
    return [*lines, ""]


def verdict(each: web.Compared) -> str:
    """Returns the verdict on a setting, as the page shows it."""
    return "holds" if each.holds else "differs: " + ", ".join(each.differs)


def _explained(found: list[web.Compared]) -> list[str]:
    failing = [c for c in found if not c.holds]
    lines = ["### Web users that do not hold, and what makes the others do", ""]
    lines += [
        f"- {each.setting.key} ({each.setting.text}): {EXPLANATIONS[each.setting.key]}"
        for each in failing
    ]
    lines += [
        "",
        "**Who sends with one packet.** ns-2's web traffic takes senders from a pool and puts "
        "them back, last in, first out. A sender whose SYN was lost begins with one packet for "
        "ever after (see [Transfers](#transfers)). Over a queue of 35 bulk flows two or three "
        "SYNs in a thousand are lost here; with as many, a pool of that kind has 15 to 18 % of "
        "its answers sent by such senders, in the mean over the time that counts (4 to 12 % "
        "beside fewer flows). With half of them the median and the 90 % are theirs. Why so many "
        "of theirs would be of that kind is not known: their pool was not recorded.",
        "",
        "**Why responses are not longer.** ns-2's RED spares small packets for two reasons. In "
        "byte mode it counts bytes between drops, in whole packets of the mean size, and the size "
        "of the arriving one comes last (`count = bytes`): what is small and follows a drop is "
        "let in for certain. With `use_mark_p_`, which is on, that is so above the upper "
        "threshold, too (`forced = spaced`). As in the paper, with `count = packets` and `forced "
        "= drop`, SYNs are dropped with all others while the average is above it, and each that "
        "is costs three seconds:",
        "",
        f"| setting {HEAD[0]}",
        f"|---{HEAD[1]}",
    ]
    chosen = [c for c in found if c.setting.row.cells["n_ftp"] == MOST_BULK_FLOWS]
    measured = web.run_all(
        change(web.scenario(each.setting)) for each in chosen for _, change in EXPERIMENTS
    )
    told = iter(measured)
    for each in chosen:
        text = each.setting.text
        lines.append(_line(f"{text}: theirs", each.setting.theirs))
        lines.append(_line(f"{text}: ours", list(each.ours)))
        lines += [_line(f"{text}: {said}", next(told)) for said, _ in EXPERIMENTS]
    return [*lines, ""]


MOST_BULK_FLOWS = "35"


def _line(what: str, figures: list[web.Figures]) -> str:
    return f"| {what} | {' | '.join(_cells(web.means(figures)))} |"
