"""Conditions on the change of a metric between two results, such as `goodput < -5 %`."""

from __future__ import annotations

import re
from dataclasses import asdict, dataclass
from statistics import fmean
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from cwnd import _core
from cwnd.errors import InputError
from cwnd.results.stats import change_of
from cwnd.results.table import with_interval

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

#: Metric, comparison, bound and unit.
_FORM = re.compile(r"\s*([A-Za-z]\w*)\s*([<>])\s*([+-]?)\s*(\d+(?:\.\d+)?)\s*(\S.*?)?\s*")
_EXAMPLE = "`goodput < -5 %` or `qdelay_p95 > +2 ms`"
#: Ends of columns, with the kind of their quantities, the factor from its unit, and an example.
_QUANTITIES = (
    ("_bit_s", "rate", 1.0, "Mbit/s"),
    ("_us", "time", 1e6, "ms"),
    ("_s", "time", 1.0, "ms"),
    ("_bytes", "bytes", 1.0, "kB"),
    ("bytes_received", "bytes", 1.0, "kB"),
)
#: Ends of columns with shares, whose changes are percent or percentage points.
_SHARES = ("_ratio", "_share", "utilisation")
_POINTS = "pp"

#: A `regression` lies beyond the bound with its whole interval; what is `kept` does not with any of
#: it; `missing` is a value that the later result lacks.
Outcome: TypeAlias = Literal["regression", "undecided", "kept", "missing"]


@dataclass(frozen=True)
class Condition:
    """A change of a metric that is a regression."""

    text: str
    #: Column of the metric.
    metric: str
    #: `True` if changes below the bound are regressions, else those above it.
    below: bool
    #: A share of the earlier value if `relative`, else in the unit of the column.
    bound: float
    relative: bool
    #: Unit of the bound, and its size in that of the column; of a relative one a percent.
    unit: str
    scale: float

    @classmethod
    def parse(cls, text: str, column: Callable[[str], str]) -> Condition:
        """Parses a condition.

        Args:
            text: Such as `goodput < -5 %`.
            column: Finds the column of a metric by its name; may raise an `InputError`.

        Raises:
            InputError: It has another form, or the bound no sign or not the metric's unit.
        """
        found = _FORM.fullmatch(text.replace("−", "-"))
        if found is None:
            raise InputError(f"`{text}` is no condition; write {_EXAMPLE}")
        name, comparison, sign, number, unit = found.groups()
        unit = unit or ""
        if not sign and float(number):
            raise InputError(
                f"`{text}`: the bound is a change and needs its sign, as in `{name}"
                f" {comparison} {'-' if comparison == '<' else '+'}{number} {unit}`".rstrip("` ")
                + "`"
            )
        metric = column(name)
        relative = unit == "%"
        scale = 0.01 if relative else _scale(text, metric, unit)
        bound = float(sign + number) * scale
        if relative and bound < -1:
            raise InputError(f"`{text}`: nothing falls by more than 100 %")
        return cls(text.strip(), metric, comparison == "<", bound, relative, unit, scale)

    def judge(
        self,
        point: dict[str, str],
        group: str,
        before: Mapping[int, float],
        after: Mapping[int, float],
    ) -> Verdict:
        """Judges the change between values by seed, of which the first result has some.

        The bound is added to the earlier values, seed by seed, and the later ones are compared with
        these limits. The interval thereby includes the variation of the earlier values.
        """
        if not after:
            return Verdict(self, point, group, "missing", None, None)
        limits = {
            seed: value + self.bound * (abs(value) if self.relative else 1.0)
            for seed, value in before.items()
        }
        excess, _ = change_of(limits, after)
        half_width = excess.half_width or 0.0
        beyond = -excess.mean if self.below else excess.mean
        outcome: Outcome = "undecided"
        if beyond > half_width:
            outcome = "regression"
        elif beyond <= -half_width:
            outcome = "kept"
        unit = fmean(map(abs, before.values())) if self.relative else 1.0
        if unit == 0:
            return Verdict(self, point, group, outcome, None, None)
        half = None if excess.half_width is None else excess.half_width / unit
        return Verdict(self, point, group, outcome, excess.mean / unit + self.bound, half)


@dataclass(frozen=True)
class Verdict:
    """Outcome of a condition at a point of the sweep, for a group of flows."""

    condition: Condition
    point: dict[str, str]
    group: str
    outcome: Outcome
    #: Relative change, or that in the unit of the column; `None` if a value is missing, or for a
    #: relative change from zero.
    change: float | None
    #: Half the width of its 95 % interval; `None` with one seed, whose value decides.
    half_width: float | None

    @property
    def fails(self) -> bool:
        """`True` if the change is a regression, or a value was lost."""
        return self.outcome in ("regression", "missing")

    def text(self) -> str:
        """Formats the change in the unit of the condition, with its interval."""
        if self.outcome == "missing":
            return "no value in the other result"
        if self.change is None:
            return "from zero"
        scale, unit = self.condition.scale, self.condition.unit
        half_width = None if self.half_width is None else self.half_width / scale
        sign = "+" if self.change > 0 else ""
        return f"{sign}{with_interval(self.change / scale, half_width)} {unit}".rstrip()

    def to_json(self) -> dict[str, Any]:
        """Returns the verdict as a JSON object."""
        return {**asdict(self), "condition": self.condition.text, "metric": self.condition.metric}


def _scale(text: str, metric: str, unit: str) -> float:
    """Size of a unit in that of a column."""
    if metric.endswith(_SHARES) and metric != "goodput_ratio":
        if unit != _POINTS:
            raise InputError(
                f"`{text}`: {metric} is a share; write `%` for a relative change or `{_POINTS}` for"
                " percentage points"
            )
        return 0.01
    for end, kind, factor, example in _QUANTITIES:
        if metric.endswith(end):
            try:
                return factor * _core.read_quantity(kind, f"1 {unit}")
            except ValueError:
                raise InputError(
                    f"`{text}`: {metric} needs a unit; write `%` for a relative change, or such as"
                    f" `{example}`"
                ) from None
    if unit:
        raise InputError(
            f"`{text}`: {metric} has no unit; write `%` for a relative change, or only a number"
        )
    return 1.0
