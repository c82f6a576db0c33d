"""Mechanisms that scenarios ask for, and how often they acted."""

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

    #: Counts by the labels of a point of the sweep and the name of a group or link.
    Totals: TypeAlias = dict[tuple[tuple[str, ...], str], int]

#: Mechanisms as controllers state them: kind, name, the parameter that asks for it, the one
#: that holds otherwise, the column that counts what it does (each empty if none does); or else the
#: counters that do, and what it means that they are zero.
_ALL = _core.mechanisms()
OF_CONTROLLERS = [words for words, counters, _ in _ALL if not counters]
#: By kind: what it goes by, the counters, and what it means that they are zero.
STEERED = {words[0]: (words[1], counters, silence) for words, counters, silence in _ALL if counters}
_OF_ENDPOINTS = {"ecn", "obey_ece", "obey_quench", "quench_answer"}
_OF_KINDS = {key for mechanism in OF_CONTROLLERS for key in mechanism[2:4] if key}
_KEYS = "|".join(sorted({"kind", *_OF_ENDPOINTS, *_OF_KINDS}))
#: The lines of a resolved scenario that say what is to act: a sweep has few variants of them.
_MECHANISMS = re.compile(rf"^(?:\[.+\]|(?:{_KEYS}) = .*)$", re.MULTILINE)
#: Counts what answers to ECN did.
OF_ECN = "cwnd_reductions_ecn"
#: Counts what answers to source quenches did.
OF_QUENCHES = "cwnd_reductions_quench"
#: Points of a sweep that are named before the rest is counted.
NAMED = 3


def asked_for(resolved: str) -> dict[str, Any]:
    """The mechanisms of a resolved scenario."""
    return read_lines("\n".join(_MECHANISMS.findall(resolved)))


@lru_cache(maxsize=1024)
def read_lines(text: str) -> dict[str, Any]:
    """Some lines of a resolved scenario; many runs have the same."""
    return _core.read_toml(text, name="resolved")


def read_bytes(text: str) -> float:
    """A size as a resolved scenario writes it."""
    return _core.read_quantity("bytes", text)


def packet_sizes(endpoint: Mapping[str, Any]) -> tuple[float, float]:
    """Payload of a full packet and its headers, of an endpoint of TCP or QUIC."""
    header = read_bytes(endpoint["header"])
    if "max_datagram_size" in endpoint:
        payload = read_bytes(endpoint["max_datagram_size"]) - _core.quic_overhead
        return payload, header + _core.quic_overhead
    return read_bytes(endpoint["mss"]), header


def is_reported(flows: pl.DataFrame, column: str) -> bool:
    """`True` if a result has this count of each flow; Linux does not report all."""
    return column in flows.columns and flows[column].null_count() == 0


def totals(run: Data, frame: pl.DataFrame, by: str, *columns: str) -> Totals:
    """The sums over all seeds, by point and name; none of columns that a result does not have."""
    if not set(columns) <= set(frame.columns):
        return {}
    total = pl.sum_horizontal(pl.col(column).cast(pl.Int64).sum() for column in columns)
    found = frame.group_by(*run.axis_columns, by, maintain_order=True).agg(total.alias("n"))
    return {(tuple(point), name): count for *point, name, count in found.iter_rows()}


def manages(queue: dict[str, Any]) -> bool:
    """`True` if a queue of a resolved scenario has more to it than a limit: an AQM."""
    return not set(queue) <= {"kind", "limit"}


def mechanisms_of(controller: dict[str, Any]) -> Iterable[tuple[str, str]]:
    """The mechanisms that a controller is asked for, and the columns that count what they do."""
    for kind, name, key, base, column in OF_CONTROLLERS:
        if kind != controller.get("kind"):
            continue
        if controller.get(key) not in (None, "none", controller.get(base)):
            yield name, column


def where(run: Data, found: list[tuple[str, ...]], points: int) -> str:
    """Names some of so many points of the sweep."""
    if len(found) == points:
        return "(in all runs)" if run.manifest.runs > 1 else "(in this run)"
    labels = [list(dict.fromkeys(column)) for column in zip(*found, strict=True)]
    if len(list(product(*labels))) == len(found):
        # They fill a block of the sweep: only the axes that bound it are named.
        bounds = [
            f"{axis.name} {' or '.join(some)}"
            for axis, some in zip(run.axes, labels, strict=True)
            if len(some) < len(axis.labels)
        ]
        return f"(at {', '.join(bounds)})"
    named = [
        ", ".join(f"{axis.name} {label}" for axis, label in zip(run.axes, point, strict=True))
        for point in found[:NAMED]
    ]
    more = f" and {len(found) - NAMED} more" if len(found) > NAMED else ""
    return f"(at {'; '.join(named)}{more})"
