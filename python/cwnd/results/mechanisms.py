"""Mechanisms that scenarios enable, and the number of their actions."""

from __future__ import annotations

import re
from functools import lru_cache
from itertools import product
from typing import TYPE_CHECKING, Any

import polars as pl

from cwnd import _core

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from typing import TypeAlias

    from cwnd.results.data import Data

    #: Sums by the labels of a point of the sweep and the name of a group or link.
    Totals: TypeAlias = dict[tuple[tuple[str, ...], str], int]

#: Mechanisms as controllers declare them: kind, name, the parameter that enables it, its base
#: parameter, and the column that counts its actions (empty if there is none). Others have counters,
#: and a text for counters of zero.
_ALL = _core.mechanisms()
OF_CONTROLLERS = [words for words, counters, _ in _ALL if not counters]
#: Mechanisms of controllers that follow router feedback, by kind: name, counters, and the text for
#: counters of zero.
EXPLICIT_FEEDBACK = {
    words[0]: (words[1], counters, silence) for words, counters, silence in _ALL if counters
}
_OF_ENDPOINTS = {"ecn", "obey_ece", "obey_quench", "quench_answer"}
_OF_KINDS = {key for mechanism in OF_CONTROLLERS for key in mechanism[2:4] if key}
_KEYS = "|".join(sorted({"kind", *_OF_ENDPOINTS, *_OF_KINDS}))
#: Lines of a resolved scenario that enable mechanisms; a sweep has few variants of them.
_MECHANISMS = re.compile(rf"^(?:\[.+\]|(?:{_KEYS}) = .*)$", re.MULTILINE)
#: Column that counts window reductions after ECN echoes.
OF_ECN = "cwnd_reductions_ecn"
#: Column that counts window reductions after source quenches.
OF_QUENCHES = "cwnd_reductions_quench"
#: Number of points, groups or links that a note names; the rest is counted.
MAX_NAMED = 3


def mechanism_keys(resolved: str) -> dict[str, Any]:
    """Extracts the keys of a resolved scenario that enable mechanisms."""
    return read_lines("\n".join(_MECHANISMS.findall(resolved)))


@lru_cache(maxsize=1024)
def read_lines(text: str) -> dict[str, Any]:
    """Parses selected lines of a resolved scenario; cached, since many runs have the same."""
    return _core.read_toml(text, name="resolved")


def read_bytes(text: str) -> float:
    """Parses a size of a resolved scenario, in bytes."""
    return _core.read_quantity("bytes", text)


def packet_sizes(endpoint: Mapping[str, Any]) -> tuple[float, float]:
    """Payload of a full packet and its headers in bytes, of an endpoint of TCP or QUIC."""
    header = read_bytes(endpoint["header"])
    if "max_datagram_size" in endpoint:
        payload = read_bytes(endpoint["max_datagram_size"]) - _core.quic_overhead
        return payload, header + _core.quic_overhead
    return read_bytes(endpoint["mss"]), header


def is_reported(flows: pl.DataFrame, column: str) -> bool:
    """`True` if a result has this count for every flow; Linux does not report all counts."""
    return column in flows.columns and flows[column].null_count() == 0


def totals(run: Data, frame: pl.DataFrame, by: str, *columns: str) -> Totals:
    """Sums columns over all seeds, by point and name; empty if the result lacks one of them."""
    if not set(columns) <= set(frame.columns):
        return {}
    total = pl.sum_horizontal(pl.col(column).cast(pl.Int64).sum() for column in columns)
    found = frame.group_by(*run.axis_columns, by, maintain_order=True).agg(total.alias("n"))
    return {(tuple(point), name): count for *point, name, count in found.iter_rows()}


def is_aqm(queue: dict[str, Any]) -> bool:
    """`True` if a queue of a resolved scenario is an AQM: it has keys besides kind and limit."""
    return not set(queue) <= {"kind", "limit"}


def mechanisms_of(controller: dict[str, Any]) -> Iterable[tuple[str, str]]:
    """Yields the mechanisms that a controller enables, and the columns that count their actions."""
    for kind, name, key, base, column in OF_CONTROLLERS:
        if kind != controller.get("kind"):
            continue
        if controller.get(key) not in (None, "none", controller.get(base)):
            yield name, column


def describe_points(run: Data, found: list[tuple[str, ...]], points: int) -> str:
    """Describes points of the sweep in parentheses; `points` is the number of all points."""
    if len(found) == points:
        return "(in all runs)" if run.manifest.runs > 1 else "(in this run)"
    labels = [list(dict.fromkeys(column)) for column in zip(*found, strict=True)]
    if len(list(product(*labels))) == len(found):
        # The points form a block of the sweep: naming the axes that bound it is enough.
        bounds = [
            f"{axis.name} {' or '.join(some)}"
            for axis, some in zip(run.axes, labels, strict=True)
            if len(some) < len(axis.labels)
        ]
        return f"(at {', '.join(bounds)})"
    named = [
        ", ".join(f"{axis.name} {label}" for axis, label in zip(run.axes, point, strict=True))
        for point in found[:MAX_NAMED]
    ]
    more = f" and {len(found) - MAX_NAMED} more" if len(found) > MAX_NAMED else ""
    return f"(at {'; '.join(named)}{more})"
