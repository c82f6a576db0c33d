"""The part of the page on senders that routers tell what to do."""

from __future__ import annotations

from typing import TYPE_CHECKING

from peers.explicit import BOUNDS, JOIN_BINS, NAMES, QUEUE_PKTS, TABLES, Compared, Figures, compare

if TYPE_CHECKING:
    from peers.judge import Overrides

#: What explains settings that do not hold, by their keys, and what is changed in the first to see it.
EXPLANATIONS: tuple[tuple[tuple[str, ...], str, tuple[Overrides, ...]], ...] = (
    (
        ("ns-2 RCP 1",),
        "**RCP over 0.1 Mbit/s, traffic both ways: explained in part.** A packet takes 80 ms of the line there, eight times as long as the time between two rates, and a quarter of all packets is lost in ns-2. "
        "Its senders ask for the rate with packets of 40 B besides, once a round trip where a flow has less than a packet in one; and what is lost is never repeated. Here little is lost. With ten flows of such packets "
        "at 4 kbit/s beside them ours gets 0.070 Mbit/s; what makes ns-2 lose packets where half of its link is idle is not known.",
        (),
    ),
    (
        ("ns-2 RCP 16",),
        "**RCP, 30 flows over 10 Mbit/s and 20 ms: explained.** A flow has less than a packet in a round trip, and ns-2's senders ask with packets of 40 B in between: 30 · 40 B / 20 ms are 0.48 Mbit/s, the difference of "
        "goodput (9.21) and utilisation (9.69) in the recorded rows. With as many datagrams beside the flows ours gets 9.13 Mbit/s and a mean queue of 1.16 ms.",
        (),
    ),
    (
        ("ns-2 RCP 49",),
        "**RCP, 30 flows over 155 Mbit/s: explained.** Flows are paced, and how their packets fall together stays as it was when they started; the row is one run. Other starts:",
        tuple((("flow.*.start", "uniform(0 s, 1 s)"), ("run.seed", seed)) for seed in (2, 3, 4)),
    ),
    (
        ("ns-2 XCP 43",),
        "**XCP, 30 flows over 45 Mbit/s and 80 ms: explained in part.** The recorded means are 0.62, 0.83 and 0.77 ms. What waits hangs on how finely a sender smooths its round trip: ns-2's XCP in parts of 1/256 ms, as here, and TCP's timer in eighths of 1 ms. ns-2 multiplies feedback with its newest round trip, where ours has the packet's:",
        (
            (("flow.*.endpoint.clock", "1 us"),),
            (("flow.*.endpoint.rtt_arithmetic", "ticks"),),
        ),
    ),
)


def section(found: list[Compared]) -> list[str]:
    """All of it."""
    return [*_rules(), *_explained(found), *_all(found)]


def _rules() -> list[str]:
    said = {
        "goodput_mbit_s": "goodput within {share:.0%};",
        "qdelay_mean_ms": f"the mean queue over time, in the link's time, within {{share:.0%}} or {QUEUE_PKTS:g} packets;",
        "drops": "drops within {share:.0%} or {least:g};",
        "jain": "Jain's index of the flows' goodputs within {least:g};",
        "joined_s": f"where a flow joins, the time until it has 95 % of the mean rate within {{share:.0%}} or {JOIN_BINS} of the recorded bins (0.1 or 0.16 s).",
    }
    bounds = [
        f"- {said[n].format(share=share, least=least)}" for n, (share, least) in BOUNDS.items()
    ]
    return [
        "## Senders that routers steer",
        "",
        "XCP and RCP: each recorded run is run with its own starts, and means are compared. Mappings: `python/tests/peers/explicit.py`. Judged are:",
        *bounds,
        "",
        "Rows that are only shown are those of which recorded runs differ: with XCP's traffic both ways ACKs come in bursts, queues swing and flows time out, there and here.",
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
        lines += [f"| {keys[0]}: {one.setting.text} | {names} |", "|---|---|---|---|---|---|"]
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
            "Ours / theirs; goodput in Mbit/s, the mean queue in ms, the time until who joins has its share in s.",
            "",
            f"| rows | setting | {' | '.join(NAMES.values())} | verdict |",
            "|---|---|---|---|---|---|---|---|",
        ]
        for each in found:
            if each.setting.row.table != table:
                continue
            pairs = zip(_values(each.ours), _values(each.setting.theirs), strict=True)
            values = " | ".join(f"{mine} / {peer}" for mine, peer in pairs)
            lines.append(
                f"| {each.setting.numbers} | {each.setting.text} | {values} | {verdict(each)} |"
            )
        lines.append("")
    return lines


def verdict(each: Compared) -> str:
    """Whether it holds."""
    if not each.setting.by_value:
        return "shown"
    return "holds" if each.holds else "differs: " + ", ".join(each.differs)


def _values(f: Figures) -> tuple[str, ...]:
    joined = f"{f.joined_s:.2f}" if f.joined_s else "–"
    queue = f"{f.qdelay_mean_ms:.2f}"
    return f"{f.goodput_mbit_s:.3f}", queue, f"{f.drops:.0f}", f"{f.jain:.3f}", joined


def _cells(f: Figures) -> str:
    return " | ".join(_values(f))
