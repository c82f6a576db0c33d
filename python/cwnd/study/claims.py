"""Claims of a study: tables of `study.toml` parsed into claims, checks and verdicts."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, cast

from cwnd.results import Estimate
from cwnd.study.toml_table import meant

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from cwnd.study.toml_table import TomlTable

Kind: TypeAlias = Literal["value", "order", "bound"]
#: Values of an order that must be above others, and those others, one value for each seed.
Sides: TypeAlias = "tuple[Sequence[float], Sequence[float]]"

#: Keys of a claim.
_OF_CLAIM = {"id", "text", "figures", "check", "setting", "found", "found_on_linux"}
#: Keys of a check in addition to those of its kind.
_COMMON = {"what", "kind", "unit", "measure", "paper", "paper_text", "linux"}
_OF_KIND: dict[str, set[str]] = {
    "value": {"tolerance"},
    "order": set(),
    "bound": {"at_least", "at_most"},
}


@dataclass(frozen=True)
class Check:
    """A number of a claim, and the condition under which it counts as reproduced."""

    what: str
    kind: Kind
    #: Unit of the paper's number and of ours; empty for a ratio.
    unit: str
    #: Name of the function in `cwnd.study.measures`, or in `MEASURES` or `SIDES` of the study.
    measure: str
    arguments: Mapping[str, Any]
    #: Number in the paper; `None` if it states an ordering only.
    paper: float | None = None
    #: Text of the paper's value, if it is not just a number.
    paper_text: str | None = None
    #: For a value: largest difference of our number from the paper's.
    tolerance: float | None = None
    #: For a bound: limits that every run must keep.
    at_least: float | None = None
    at_most: float | None = None
    #: For a bound: measure that gives `at_most`, and its arguments.
    limit: tuple[str, Mapping[str, Any]] | None = None
    #: `True` if runs on Linux can be checked, too.
    linux: bool = True
    #: File and line of its measure.
    place: str = field(default="", compare=False)

    @property
    def stated(self) -> str:
        """Text of the paper's value."""
        if self.paper_text is not None:
            text = self.paper_text
        elif self.paper is not None:
            text = f"{self.paper:g}"
        else:
            return "more" if self.kind == "order" else ""
        return f"{text} {self.unit}".strip()

    @property
    def allowed(self) -> str:
        """Text of the condition for a reproduction."""
        if self.kind == "value":
            return f"± {self.tolerance:g}"
        if self.kind == "order":
            return "above 0"
        parts = [f"≥ {self.at_least:g}"] if self.at_least is not None else []
        parts += [f"≤ {self.at_most:.4g}"] if self.at_most is not None else []
        return ", ".join(parts)

    def limited(self, at_most: float) -> Check:
        """Returns the check with the value of its `limit`."""
        return replace(self, at_most=at_most)

    def judge(self, values: Sequence[float], sides: Sequence[Sides] = ()) -> Outcome:
        """Compares our values, one for each seed, with the paper's.

        Args:
            values: Values of the measure.
            sides: For an order: values above and values below, whose intervals must not overlap.
        """
        estimate = Estimate.of(values)
        if estimate is None:
            return Outcome(self, None, holds=False)
        if self.kind == "bound":
            low = -float("inf") if self.at_least is None else self.at_least
            high = float("inf") if self.at_most is None else self.at_most
            holds = all(low <= value <= high for value in values)
        elif self.kind == "order":
            holds = _apart(values, [0.0] * len(values)) and all(_apart(*side) for side in sides)
        else:
            assert self.paper is not None
            assert self.tolerance is not None
            holds = abs(estimate.mean - self.paper) <= self.tolerance
        return Outcome(self, estimate, holds=holds)


def _apart(above: Sequence[float], below: Sequence[float]) -> bool:
    """`True` if one mean is above another, and their 95 % confidence intervals do not overlap."""
    high, low = Estimate.of(above), Estimate.of(below)
    # Without an interval the order is undecided.
    if high is None or high.half_width is None or low is None or low.half_width is None:
        return False
    return high.mean - high.half_width > low.mean + low.half_width


@dataclass(frozen=True)
class Outcome:
    """A check with our number and the verdict."""

    check: Check
    #: Our mean over seeds; `None` if the runs have no such number.
    ours: Estimate | None
    holds: bool

    @property
    def text(self) -> str:
        """Text of our value with its confidence interval."""
        if self.ours is None:
            return "–"
        width = self.ours.half_width
        interval = "" if width is None else f" ± {width:.2g}"
        return f"{self.ours.mean:.3g}{interval} {self.check.unit}".strip()


@dataclass(frozen=True)
class Claim:
    """A claim of a paper, and the numbers that decide it."""

    id: str
    text: str
    #: Figures whose scenarios it needs, by file name.
    figures: tuple[str, ...]
    checks: tuple[Check, ...]
    #: Settings that we chose because the paper leaves them open.
    setting: str = ""
    #: Our findings about the claim.
    found: str = ""
    #: Our findings about the claim on Linux.
    found_on_linux: str = ""

    def figure_of(self, check: Check) -> str:
        """Returns the figure whose runs a check uses: the claim's first unless it names one."""
        figure: str = check.arguments.get("figure", self.figures[0])
        return figure


def claim(table: TomlTable) -> Claim:
    """Parses a table `[[claim]]`.

    Raises:
        InputError: The claim is wrong; the error names it.
    """
    name = table.string("id")
    table = replace(table, name=f"{table.name} ({name})")
    table.only(_OF_CLAIM)
    if not table.strings("figures"):
        raise table.error("`figures` names at least one figure", "figures")
    return Claim(
        id=name,
        text=table.string("text"),
        figures=table.strings("figures"),
        checks=tuple(_check(each) for each in table.tables("check")),
        setting=table.string("setting", ""),
        found=table.string("found", ""),
        found_on_linux=table.string("found_on_linux", ""),
    )


def _check(table: TomlTable) -> Check:
    what = table.string("what")
    table = replace(table, name=f"{table.name} `{what}`")
    data, kind = table.data, table.string("kind")
    if kind not in _OF_KIND:
        raise table.error(f"kind is one of {', '.join(_OF_KIND)}, not `{kind}`", "kind")
    known = _COMMON | _OF_KIND[kind]
    for key in data:
        if key not in known:
            keys = ", ".join(sorted(known))
            raise table.error(
                f"a check of kind {kind} has no `{key}`{meant(key, known)}; keys are {keys}", key
            )
    if kind == "value" and not {"paper", "tolerance"} <= set(data):
        raise table.error("a value needs `paper` and `tolerance`")
    if kind == "bound" and not {"at_least", "at_most"} & set(data):
        raise table.error("a bound needs `at_least` or `at_most`")
    limited = isinstance(data.get("at_most"), dict)
    measure, arguments = _measure(table, "measure")
    return Check(
        what=what,
        kind=cast("Kind", kind),
        unit=table.string("unit"),
        measure=measure,
        arguments=arguments,
        paper=table.number("paper"),
        paper_text=table.string("paper_text") if "paper_text" in data else None,
        tolerance=table.number("tolerance"),
        at_least=table.number("at_least"),
        at_most=None if limited else table.number("at_most"),
        limit=_measure(table, "at_most") if limited else None,
        linux=table.flag("linux", default=True),
        place=table.line("measure"),
    )


def _measure(table: TomlTable, key: str) -> tuple[str, Mapping[str, Any]]:
    """Name and arguments of a measure."""
    arguments = table.table(key)
    name = table.inner(key).string("name")
    del arguments["name"]
    return name, arguments
