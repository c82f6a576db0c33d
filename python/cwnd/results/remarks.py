"""Remarks in tables and figures on labels of a sweep whose mechanism cannot act, or never did."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING

from cwnd import _core
from cwnd.results.manifest import Axis
from cwnd.results.mechanisms import (
    OF_ECN,
    OF_QUENCHES,
    describe_points,
    is_reported,
    mechanism_keys,
    mechanisms_of,
    totals,
)

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import polars as pl

    from cwnd.results.data import Data
    from cwnd.results.mechanisms import Totals

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
