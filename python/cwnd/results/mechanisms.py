"""Mechanisms that scenarios enable, their number of actions, and remarks on those without any."""

from __future__ import annotations

import re
from collections import defaultdict
from dataclasses import dataclass, field, fields
from functools import lru_cache
from itertools import product
from typing import TYPE_CHECKING, Any

import polars as pl

from cwnd import _core
from cwnd.results.manifest import Axis

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
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


#: Signals that mechanisms answer, with the verb for their absence, by the column that counts the
#: answers.
_SIGNALS = {OF_ECN: ("ECN", "marks"), OF_QUENCHES: ("quench", "came")}
#: Labels of a point of the sweep.
_Point = tuple[str, ...]


@dataclass(frozen=True)
class RemarkedAxis(Axis):
    """An axis with remarks on some of its labels."""

    remarks: Mapping[str, str] = field(default_factory=dict)

    def shown(self, label: str) -> str:
        """Text of a label with its remark."""
        return f"{label} ({self.remarks[label]})" if label in self.remarks else label


@dataclass(frozen=True)
class Remarks:
    """Remarks on the points of a sweep: groups whose mechanism did nothing there, in all seeds."""

    #: Axes, with a remark on a label if it holds at all points of that label.
    axes: list[RemarkedAxis]
    #: Remarks on groups, by point.
    silent: dict[_Point, dict[str, str]]
    #: Labels with remarks, by point, for the points that have some.
    labels: dict[_Point, _Point]
    #: Sentences about remarks that hold at a part of a label's points, and about groups at points
    #: for which no axis is responsible.
    rest: list[str]

    @classmethod
    def of(cls, run: Data) -> Remarks:
        """Finds mechanisms of controllers that did nothing, and the labels responsible for that."""
        enabling, silent = _silent(run)
        # Points with a remark on a label, by axis, label and remark, as an ordered set.
        remarked_points: dict[tuple[int, str, str], dict[_Point, None]] = defaultdict(dict)
        # Points at which no axis is responsible, by group and remark.
        rest: dict[tuple[str, str], list[_Point]] = defaultdict(list)
        # For each group, the points that enable its mechanism, and those at which it does nothing.
        points_of = {
            group: [{at for at, names in of.items() if group in names} for of in (enabling, silent)]
            for group in {group for groups in silent.values() for group in groups}
        }
        for point, groups in silent.items():
            for group, remark in groups.items():
                index = _responsible_axis(run, point, enabling, points_of[group])
                if index is None:
                    rest[group, remark].append(point)
                else:
                    remarked_points[index, point[index], remark][point] = None
        labels: dict[_Point, list[str]] = {}
        remarks: dict[int, dict[str, str]] = defaultdict(dict)
        for (index, label, remark), points in remarked_points.items():
            for point in points:
                shown = labels.setdefault(point, list(point))
                shown[index] += f" ({remark})"
            if all(point in points for point in enabling if point[index] == label):
                remarks[index][label] = remark
            else:
                rest[label, remark] += points
        axes = [_with(axis, remarks[index]) for index, axis in enumerate(run.axes)]
        return cls(
            axes,
            silent,
            {point: tuple(shown) for point, shown in labels.items()},
            [
                f"{what}: {r} {describe_points(run, at, len(enabling))}"
                for (what, r), at in rest.items()
            ],
        )

    def keys(self, rows: pl.DataFrame) -> dict[str, list[str]]:
        """Key columns of a table: the labels of each row with their remarks, by axis."""
        columns = [axis.column for axis in self.axes]
        points = rows.select(columns).iter_rows() if columns else ()
        shown = [self.labels.get(point, point) for point in points]
        return {axis.name: [each[i] for each in shown] for i, axis in enumerate(self.axes)}

    def group(self, point: _Point, name: str) -> str:
        """Text after the name of a group; empty if a label of the point has a remark."""
        remark = None if point in self.labels else self.silent.get(point, {}).get(name)
        return "" if remark is None else f", {remark}"

    def groups(self, axis: Axis) -> Axis:
        """Adds to an axis of groups the remarks that all points with remarks share.

        It adds none if labels have remarks.
        """
        points = list(self.silent.values())
        common = {
            group: remark
            for group, remark in (points[0] if points else {}).items()
            if not self.labels and all(at.get(group) == remark for at in points)
        }
        return _with(axis, common)


def _silent(run: Data) -> tuple[dict[_Point, set[str]], dict[_Point, dict[str, str]]]:
    """Groups at each point that enable a mechanism, and remarks on mechanisms without effect."""
    enabling: dict[_Point, set[str]] = {}
    found: dict[_Point, dict[str, list[str]]] = {}
    counts: dict[str, Totals] = {}
    unable: dict[tuple[str, str, str], bool] = {}
    for point, indices in run.rows_by_point.items():
        resolved = run.resolved[indices[0]]
        scenario = mechanism_keys(resolved)
        enabling[point] = set()
        for group, flow in scenario.get("flow", {}).items():
            controller = flow.get("controller", {})
            for mechanism, column in mechanisms_of(controller):
                # Linux reports segments received with CE, but not the cause of window reductions.
                linux = column == OF_ECN and not is_reported(run.flows, column)
                acted = "ce_received" if linux else column
                if not is_reported(run.flows, acted):
                    continue
                enabling[point].add(group)
                if acted not in counts:
                    counts[acted] = totals(run, run.flows, "group", acted)
                if counts[acted].get((point, group), 0):
                    continue
                signal, what = _SIGNALS.get(column, ("", ""))
                variant = (str(scenario), group, signal)
                if variant not in unable:
                    unable[variant] = bool(signal) and _lacks_signal(resolved, group, signal)
                verb = "cannot act" if unable[variant] else "never acted"
                reason = f": no {signal} {what}" if signal else ""
                remarks = found.setdefault(point, {}).setdefault(group, [])
                remarks.append(f"{mechanism} {verb}{reason}")
    silent = {
        point: {group: "; ".join(remarks) for group, remarks in groups.items()}
        for point, groups in found.items()
    }
    return enabling, silent


def _lacks_signal(resolved: str, group: str, signal: str) -> bool:
    """`True` if the path of a group never sends the signal that its mechanism answers.

    The warnings of the scenario's parser decide that.
    """
    keys = (f"flow.{group}.controller", f"flow.{group}.endpoint")
    warnings = _core.parse(resolved, name="resolved").warnings
    return any(each["key"] in keys and signal in each["message"] for each in warnings)


def _responsible_axis(
    run: Data, point: _Point, points: dict[_Point, set[str]], points_of: Sequence[set[_Point]]
) -> int | None:
    """Returns the index of the first axis whose other labels lead out of a set of points.

    The first set is tried on all axes before the second. The result is `None` if no axis does.
    """
    for those in points_of:
        for index, axis in enumerate(run.axes):
            others = ((*point[:index], label, *point[index + 1 :]) for label in axis.labels)
            if any(other in points and other not in those for other in others):
                return index
    return None


def _with(axis: Axis, remarks: dict[str, str]) -> RemarkedAxis:
    own = {each.name: getattr(axis, each.name) for each in fields(Axis)}
    return RemarkedAxis(**own, remarks=remarks)
