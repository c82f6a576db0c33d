"""Arms of a sweep whose mechanism cannot act, or never did, named in tables and figures."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING

from cwnd import _core
from cwnd.results.manifest import Axis
from cwnd.results.mechanisms import (
    OF_ECN,
    OF_QUENCHES,
    asked_for,
    is_reported,
    mechanisms_of,
    totals,
    where,
)

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import polars as pl

    from cwnd.results.data import Data
    from cwnd.results.mechanisms import Totals

#: Signals that mechanisms answer to, by the column that counts their answers.
_HEARD = {OF_ECN: ("ECN", "marks"), OF_QUENCHES: ("quench", "came")}
#: The labels of a point of the sweep.
_Point = tuple[str, ...]


@dataclass(frozen=True)
class RemarkedAxis(Axis):
    """An axis with remarks on some of its labels."""

    remarks: Mapping[str, str] = field(default_factory=dict)

    def shown(self, label: str) -> str:
        """A label with its remark."""
        return f"{label} ({self.remarks[label]})" if label in self.remarks else label


@dataclass(frozen=True)
class Remarks:
    """Remarks on the points of a sweep: groups whose mechanism did nothing there, in all seeds."""

    #: With remarks on the labels at all of whose points they hold.
    axes: list[RemarkedAxis]
    #: Remarks on groups, by point.
    silent: dict[_Point, dict[str, str]]
    #: The labels of these points with the remarks.
    labels: dict[_Point, _Point]
    #: Sentences about points whose labels act elsewhere.
    rest: list[str]

    @classmethod
    def of(cls, run: Data) -> Remarks:
        """Finds mechanisms of controllers that did nothing, and the labels that decide it."""
        asking, silent = _silent(run)
        # By axis, label and remark, the points that bear the remark there, as an ordered set.
        borne: dict[tuple[int, str, str], dict[_Point, None]] = defaultdict(dict)
        # By group and remark, the points at which no axis decides.
        rest: dict[tuple[str, str], list[_Point]] = defaultdict(list)
        # Points that ask for the mechanism of a group, and those at which it does nothing.
        alike = {
            group: [{at for at, there in of.items() if group in there} for of in (asking, silent)]
            for group in {group for groups in silent.values() for group in groups}
        }
        for point, groups in silent.items():
            for group, remark in groups.items():
                place = _deciding(run, point, asking, alike[group])
                if place is None:
                    rest[group, remark].append(point)
                else:
                    borne[place, point[place], remark][point] = None
        labels: dict[_Point, list[str]] = {}
        remarks: dict[int, dict[str, str]] = defaultdict(dict)
        for (place, label, remark), points in borne.items():
            for point in points:
                shown = labels.setdefault(point, list(point))
                shown[place] += f" ({remark})"
            if all(point in points for point in asking if point[place] == label):
                remarks[place][label] = remark
            else:
                rest[label, remark] += points
        axes = [_with(axis, remarks[place]) for place, axis in enumerate(run.axes)]
        return cls(
            axes,
            silent,
            {point: tuple(shown) for point, shown in labels.items()},
            [f"{what}: {r} {where(run, at, len(asking))}" for (what, r), at in rest.items()],
        )

    def keys(self, rows: pl.DataFrame) -> dict[str, list[str]]:
        """The columns of a table that say which point a row is, by the names of the axes."""
        columns = [axis.column for axis in self.axes]
        points = rows.select(columns).iter_rows() if columns else ()
        shown = [self.labels.get(point, point) for point in points]
        return {axis.name: [each[i] for each in shown] for i, axis in enumerate(self.axes)}

    def group(self, point: _Point, name: str) -> str:
        """The remark after the name of a group; none if a label of the point has it."""
        remark = None if point in self.labels else self.silent.get(point, {}).get(name)
        return "" if remark is None else f", {remark}"

    def groups(self, axis: Axis) -> Axis:
        """An axis of groups with the remarks that hold at all points."""
        points = list(self.silent.values())
        common = {
            group: remark
            for group, remark in (points[0] if points else {}).items()
            if not self.labels and all(at.get(group) == remark for at in points)
        }
        return _with(axis, common)


def _silent(run: Data) -> tuple[dict[_Point, set[str]], dict[_Point, dict[str, str]]]:
    """The groups at each point that ask for a mechanism, and remarks on those without effect."""
    asking: dict[_Point, set[str]] = {}
    found: dict[_Point, dict[str, list[str]]] = {}
    counts: dict[str, Totals] = {}
    unable: dict[tuple[str, str, str], bool] = {}
    for point, indices in run.rows_by_point.items():
        resolved = run.resolved[indices[0]]
        scenario = asked_for(resolved)
        asking[point] = set()
        for group, flow in scenario.get("flow", {}).items():
            controller = flow.get("controller", {})
            for mechanism, column in mechanisms_of(controller):
                # Linux reports the marks that came, and not what a window was reduced for.
                linux = column == OF_ECN and not is_reported(run.flows, column)
                acted = "ce_received" if linux else column
                if not is_reported(run.flows, acted):
                    continue
                asking[point].add(group)
                if acted not in counts:
                    counts[acted] = totals(run, run.flows, "group", acted)
                if counts[acted].get((point, group), 0):
                    continue
                heard, what = _HEARD.get(column, ("", ""))
                variant = (str(scenario), group, heard)
                if variant not in unable:
                    unable[variant] = bool(heard) and _cannot(resolved, group, heard)
                verb = "cannot act" if unable[variant] else "never acted"
                why = f": no {heard} {what}" if heard else ""
                remarks = found.setdefault(point, {}).setdefault(group, [])
                remarks.append(f"{mechanism} {verb}{why}")
    silent = {
        point: {group: "; ".join(remarks) for group, remarks in groups.items()}
        for point, groups in found.items()
    }
    return asking, silent


def _cannot(resolved: str, group: str, heard: str) -> bool:
    """`True` if the path of a group does not give what its mechanism answers to."""
    keys = (f"flow.{group}.controller", f"flow.{group}.endpoint")
    warnings = _core.parse(resolved, name="resolved").warnings
    return any(each["key"] in keys and heard in each["message"] for each in warnings)


def _deciding(
    run: Data, point: _Point, points: dict[_Point, set[str]], alike: Sequence[set[_Point]]
) -> int | None:
    """The first axis another label of which leads out of the first of these sets, else the next."""
    for those in alike:
        for place, axis in enumerate(run.axes):
            others = ((*point[:place], label, *point[place + 1 :]) for label in axis.labels)
            if any(other in points and other not in those for other in others):
                return place
    return None


def _with(axis: Axis, remarks: dict[str, str]) -> RemarkedAxis:
    own = {each.name: getattr(axis, each.name) for each in fields(Axis)}
    return RemarkedAxis(**own, remarks=remarks)
