"""Tables of steered senders: every setting, and experiments."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cwnd.studies.peers.recorded.ours import described
from cwnd.studies.peers.recorded.steered import NAMES, Compared, Figures, mean

if TYPE_CHECKING:
    from cwnd.studies.peers.recorded.ours import Ours, Overrides

#: Settings that do not hold; the page explains them.
EXPLAINED = {
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
}
#: Experiments by the names of their tables: a setting by its key, and changes to it.
EXPERIMENTS: dict[str, tuple[str, tuple[Overrides, ...]]] = {
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


def experiments(name: str, found: list[Compared], figures: Ours[Figures]) -> list[str]:
    """Table of a setting with some keys of its scenario changed."""
    key, changes = EXPERIMENTS[name]
    (one,) = (c for c in found if c.setting.key == key)
    lines = [
        f"| {key}: {one.setting.text} | {' | '.join(NAMES.values())} |",
        f"|---|{'---|' * len(NAMES)}",
        f"| theirs | {_cells(one.setting.theirs)} |",
        f"| ours | {_cells(one.ours)} |",
    ]
    with_changes = ((changed, mean(figures[key, changed])) for changed in map(described, changes))
    return lines + [f"| with {changed} | {_cells(each)} |" for changed, each in with_changes]


def every(table: str, found: list[Compared]) -> list[str]:
    """Table of the settings of a file."""
    lines = [
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
