"""Tables of web users: every setting, and experiments."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from cwnd.studies.peers.recorded import web

if TYPE_CHECKING:
    from collections.abc import Callable

    from cwnd.studies.peers.recorded.ours import Ours
    from cwnd.studies.peers.recorded.scenarios import Table

#: Settings that do not hold; the page explains them in part.
EXPLAINED = {"ns-2 web 5", "ns-2 web 6"}


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


def every(found: list[web.Compared]) -> list[str]:
    """Table of every setting, ours beside theirs."""
    lines = [f"| rows | setting {HEAD[0]} verdict |", f"|---|---{HEAD[1]}---|"]
    for each in found:
        pairs = zip(
            _cells(web.means(each.ours)), _cells(web.means(each.setting.theirs)), strict=True
        )
        values = " | ".join(f"{mine} / {peer}" for mine, peer in pairs)
        lines.append(
            f"| {each.setting.numbers} | {each.setting.text} | {values} | {verdict(each)} |"
        )
    return lines


def verdict(each: web.Compared) -> str:
    """Returns the verdict on a setting, as the page shows it."""
    return "holds" if each.holds else "differs: " + ", ".join(each.differs)


def experiments(found: list[web.Compared], figures: Ours[web.Figures]) -> list[str]:
    """Table of the settings with most bulk flows, with changes."""
    lines = [f"| setting {HEAD[0]}", f"|---{HEAD[1]}"]
    for each in found:
        if each.setting.row.cells["n_ftp"] != web.MOST_BULK_FLOWS:
            continue
        text = each.setting.text
        lines.append(_line(f"{text}: theirs", each.setting.theirs))
        lines.append(_line(f"{text}: ours", list(each.ours)))
        lines += [
            _line(f"{text}: {said}", figures[each.setting.key, said]) for said, _ in EXPERIMENTS
        ]
    return lines


def _line(what: str, figures: list[web.Figures]) -> str:
    return f"| {what} | {' | '.join(_cells(web.means(figures)))} |"
