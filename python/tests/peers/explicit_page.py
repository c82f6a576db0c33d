"""The part of the page on senders that routers tell what to do."""

from __future__ import annotations

from typing import TYPE_CHECKING

from peers.explicit import (
    BOUNDS,
    JOIN_BINS,
    NAMES,
    QUEUE_PKTS,
    RUNS,
    STANDARD_ERRORS,
    TABLES,
    Compared,
    Figures,
    compare,
)

if TYPE_CHECKING:
    from peers.judge import Overrides

#: Keys of settings that do not hold, their explanation, and changes to try on the first of them.
EXPLANATIONS: tuple[tuple[tuple[str, ...], str, tuple[Overrides, ...]], ...] = (
    (
        ("ns-2 RCP 1",),
        "**RCP over 0.1 Mbit/s, traffic both ways: explained in part.** A packet takes 80 ms of "
        "the line there, eight times as long as the time between two rates, and a quarter of all "
        "packets is lost in ns-2. Its senders ask for the rate with packets of 40 B besides, once "
        "a round trip where a flow has less than a packet in one; and what is lost is never "
        "repeated. Here little is lost. With ten flows of such packets at 4 kbit/s beside them "
        "ours gets 0.070 Mbit/s; what makes ns-2 lose packets where half of its link is idle is "
        "not known.",
        (),
    ),
    (
        ("ns-2 RCP 16",),
        "**RCP, 30 flows over 10 Mbit/s and 20 ms: explained.** A flow has less than a packet in "
        "a round trip, and ns-2's senders ask with packets of 40 B in between: 30 · 40 B / 20 ms "
        "are 0.48 Mbit/s, the difference of goodput (9.21) and utilisation (9.69) in the recorded "
        "rows. With as many datagrams beside the flows ours gets 9.13 Mbit/s and a mean queue of "
        "1.16 ms.",
        (),
    ),
    (
        ("ns-2 RCP 47",),
        "**RCP, 30 flows over 155 Mbit/s and 20 ms: explained.** Flows are paced, and how their "
        "packets fall together stays as it was when they started; the row is one run. Other "
        "starts:",
        tuple((("flow.*.start", "uniform(0 s, 1 s)"), ("run.seed", seed)) for seed in (2, 3, 4)),
    ),
    (
        ("ns-2 XCP 43",),
        "**XCP, 30 flows over 45 Mbit/s and 80 ms: explained in part.** The recorded means are "
        "0.62, 0.83 and 0.77 ms. What waits hangs on how finely a sender smooths its round trip: "
        "ns-2's XCP in parts of 1/256 ms, as here, and TCP's timer in eighths of 1 ms. ns-2 "
        "multiplies feedback with its newest round trip, where ours has the packet's:",
        (
            (("flow.*.endpoint.clock", "1 us"),),
            (("flow.*.endpoint.rtt_arithmetic", "ticks"),),
        ),
    ),
    (
        ("ns-2 VCP 34",),
        "**VCP, 30 flows over 45 Mbit/s and 20 ms: explained in part.** Half a millisecond of "
        "queue is three packets. How long it is hangs on how finely a sender measures the round "
        "trip that it scales by:",
        (
            (("flow.*.endpoint.clock", "1 ms"),),
            (("flow.*.endpoint.clock", "10 ms"),),
        ),
    ),
    (
        ("ns-2 VCP 68",),
        "**VCP, a flow that joins five others: explained in part.** Windows go up and down "
        "together, and who joins reaches 95 % in the mean at the top of one swing or of the next; "
        "the recorded three runs are one, with the same starts. VCP's own round trip is measured "
        "as finely as the program does it; in milliseconds the join is theirs, but then the slow "
        "joins of rows 71 and 80 are not, where with the fine clock Jain's index is 0.913 and "
        "0.677 here, 0.910 and 0.677 there.",
        (
            (("flow.*.endpoint.clock", "1 ms"),),
            (("flow.*.endpoint.initial_window", 3),),
            (("flow.*.endpoint.initial_window", 4),),
        ),
    ),
    (
        ("ns-2 SACK 1", "ns-2 SACK 9"),
        "**SACK over 0.1 Mbit/s, traffic both ways: explained in part.** Ten packets fill the "
        "buffer, and what is lost waits for timers. ns-2 itself, run again with other starts of "
        "the flows back, has 0.087 to 0.090 Mbit/s, and without limited transmit (`singledup_`) "
        "0.082 to 0.088; ours without it has theirs with it.",
        (
            (("flow.*.endpoint.limited_transmit", False),),
            (("flow.*.endpoint.recovery", "newreno"),),
        ),
    ),
    (
        ("ns-2 SACK 4", "ns-2 SACK 13"),
        "**SACK, traffic both ways, rows of one to three runs: explained in part.** ns-2 itself, "
        "run again with other starts of the flows back, has Jain's indices from 0.580 to 0.938 in "
        "five runs (row 11), and 48.3, 50.2 and 55.2 Mbit/s of row 12, "
        "recorded with 52.5. Goodputs of rows 4 and 13 are 2.6 and 6.7 % above the recorded ones; "
        "where any measurement ends a backoff (`rto_backoff_until = sample`) they are 6.5 and 8.1 "
        "% above.",
        (),
    ),
    (
        ("ns-2 SACK 14",),
        "**SACK, 100 flows over 155 Mbit/s: not explained.** Flows share more evenly here: Jain's "
        "index is from 0.961 to 0.968 in six runs, and 0.954 with RFC 6675's pipe, which ns-2's "
        "Sack1 has not; one run was recorded with 0.931.",
        (),
    ),
)


def section(found: list[Compared]) -> list[str]:
    """Returns the section of the page."""
    return [*_rules(), *_explained(found), *_all(found)]


def _rules() -> list[str]:
    said = {
        "goodput_mbit_s": "goodput within {share:.0%};",
        "qdelay_mean_ms": (
            f"the mean queue over time, in the link's time, within {{share:.0%}} or "
            f"{QUEUE_PKTS:g} packets;"
        ),
        "drops": "drops within {share:.0%} or {least:g};",
        "drops_whole": (
            "drops of the whole run, slow start included, within {share:.0%} or {least:g};"
        ),
        "jain": "Jain's index of the flows' goodputs within {least:g};",
        "marks": "marks within {share:.0%} or {least:g};",
        "joined_s": (
            "where a flow joins, the time until it has 95 % of the mean rate within "
            f"{{share:.0%}} or {JOIN_BINS} of the recorded bins (0.1 or 0.16 s)."
        ),
    }
    bounds = [
        f"- {said[n].format(share=share, least=least)}" for n, (share, least) in BOUNDS.items()
    ]
    return [
        "## Senders that routers steer",
        "",
        "XCP, RCP and VCP, and SACK over RED with ECN beside them: each recorded run is run with "
        "its own starts, and means are compared. Mappings: `python/tests/peers/explicit.py`. "
        "Judged are:",
        *bounds,
        "- SACK over RED, and VCP both ways, where RED draws and the starts of the flows back "
        f"were not recorded: each setting is run {RUNS} times, and a mean may also be "
        f"{STANDARD_ERRORS} standard errors off, by how ours scatter.",
        "",
        "**Where delays are matters as soon as data goes both ways.** ns-2's access links have a "
        "twentieth of a round trip on each side of the bottleneck. With all of the delay at the "
        "hosts behind the bottleneck, as a `dumbbell` has it, data meets the ACKs of the others "
        "in another part of their window: ACKs then hardly wait behind data in bursts, and queues "
        "are half of theirs or less. In these mappings each link has the delay that it has there.",
        "",
        "Rows that are only shown are those of which recorded runs differ: with XCP's traffic "
        "both ways ACKs come in bursts, queues swing and flows time out, there and here.",
        "",
    ]


def _explained(found: list[Compared]) -> list[str]:
    by_key = {c.setting.key: c for c in found}
    lines: list[str] = []
    for keys, text, experiments in EXPLANATIONS:
        lines += [text, ""]
        if not experiments:
            continue
        one = by_key[keys[0]]
        names = " | ".join(NAMES.values())
        lines += [f"| {keys[0]}: {one.setting.text} | {names} |", f"|---|{'---|' * len(NAMES)}"]
        lines += [f"| theirs | {_cells(one.setting.theirs)} |", f"| ours | {_cells(one.ours)} |"]
        for overrides in experiments:
            said = ", ".join(f"`{path.split('.')[-1]} = {value}`" for path, value in overrides)
            (changed,) = compare([one.setting], overrides)
            lines.append(f"| with {said} | {_cells(changed.ours)} |")
        lines.append("")
    return lines


def _all(found: list[Compared]) -> list[str]:
    lines = []
    for table, name in TABLES.items():
        lines += [
            f"### {name} (`{table}`)",
            "",
            "Ours / theirs; goodput in Mbit/s, the mean queue in ms, the time until who joins has "
            "its share in s.",
            "",
            f"| rows | setting | {' | '.join(NAMES.values())} | verdict |",
            f"|---|---|{'---|' * len(NAMES)}---|",
        ]
        for each in found:
            if each.setting.row.table != table:
                continue
            ours = ("–",) * len(NAMES) if each.setting.missing else _values(each.ours)
            pairs = zip(ours, _values(each.setting.theirs), strict=True)
            values = " | ".join(f"{mine} / {peer}" for mine, peer in pairs)
            lines.append(
                f"| {each.setting.numbers} | {each.setting.text} | {values} | {verdict(each)} |"
            )
        lines.append("")
    return lines


def verdict(each: Compared) -> str:
    """Returns the verdict on a setting, as the page shows it."""
    if each.setting.missing:
        return f"not expressible: {each.setting.missing}"
    if not each.setting.by_value:
        return "shown"
    return "holds" if each.holds else "differs: " + ", ".join(each.differs)


def _values(f: Figures) -> tuple[str, ...]:
    joined = "never" if f.joined_s < 0 else f"{f.joined_s:.2f}" if f.joined_s else "–"
    queue = f"{f.qdelay_mean_ms:.2f}"
    drops, whole, marks = f"{f.drops:.0f}", f"{f.drops_whole:.0f}", f"{f.marks:.0f}"
    return f"{f.goodput_mbit_s:.3f}", queue, drops, whole, marks, f"{f.jain:.3f}", joined


def _cells(f: Figures) -> str:
    return " | ".join(_values(f))
