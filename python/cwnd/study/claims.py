"""Claims of a study: the numbers that decide them, and their verdicts."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from math import floor, inf, log10
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, cast

from cwnd.results import Estimate
from cwnd.study.toml_table import TomlTable, meant

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

CheckKind: TypeAlias = Literal["value", "order", "bound"]
Verdict: TypeAlias = Literal["holds", "holds in part", "contradicted", "undecided"]

#: Keys of a claim.
_OF_CLAIM = {
    *("id", "text", "figures", "check", "reading", "setting"),
    *("found", "reason", "detail", "found_on_linux"),
}
#: Keys of a check in addition to those of its kind.
_COMMON = {
    *("id", "what", "kind", "unit", "measure", "paper", "paper_text", "linux", "reading"),
    *("ours", "deterministic", "changed", "added", "beyond"),
}
_OF_KIND: dict[str, set[str]] = {
    "value": {"tolerance"},
    "order": set(),
    "bound": {"at_least", "at_most"},
}


@dataclass(frozen=True)
class Reading:
    """Another reading of the paper, under which a number is judged a second time."""

    name: str
    #: `True` if it departs from the paper's text.
    departs: bool
    #: Name and arguments of the measure.
    measure: str
    arguments: Mapping[str, Any]


@dataclass(frozen=True)
class Check:
    """A number of a claim, and the condition under which it counts as reproduced."""

    id: str
    what: str
    kind: CheckKind
    #: Unit of the paper's number and of ours; empty for a ratio.
    unit: str
    #: Name of the function in `cwnd.study.measures`, or in `MEASURES` of the study.
    measure: str
    arguments: Mapping[str, Any]
    #: Number in the paper, or the paper's range; `None` if the check has none.
    paper: float | tuple[float, float] | None = None
    #: Text of the paper's value, if it is not just a number.
    paper_text: str | None = None
    #: For a value without a range: largest difference of our number from the paper's.
    tolerance: float | None = None
    #: For a bound: limits that the interval of the mean must keep.
    at_least: float | None = None
    at_most: float | None = None
    #: For a bound: measure that gives `at_most`, and its arguments.
    limit: tuple[str, Mapping[str, Any]] | None = None
    #: `True` if the threshold is ours and not the paper's.
    ours: bool = False
    #: `True` if one run decides: the setting has nothing that varies with the seed.
    deterministic: bool = False
    #: Change of the condition since the ids were fixed, and its reason.
    changed: str = ""
    #: Reason of a number without a fixed id; it is counted apart.
    added: str = ""
    #: Reason of a number that is shown and never counted.
    beyond: str = ""
    readings: tuple[Reading, ...] = ()
    #: `True` if runs on Linux can be checked, too.
    linux: bool = True
    #: File and line of its measure.
    place: str = field(default="", compare=False)

    @property
    def stated(self) -> str:
        """Text of the paper's value."""
        if self.paper_text is not None:
            text = self.paper_text
        elif isinstance(self.paper, tuple):
            text = f"{self.paper[0]:g}–{self.paper[1]:g}"
        elif self.paper is not None:
            text = f"{self.paper:g}"
        else:
            return "more" if self.kind == "order" else ""
        return f"{text} {self.unit}".strip()

    @property
    def allowed(self) -> str:
        """Text of the condition for a reproduction."""
        return f"{self._condition} (ours)" if self.ours else self._condition

    @property
    def _condition(self) -> str:
        if isinstance(self.paper, tuple) and self.kind == "value":
            return f"{self.paper[0]:g} to {self.paper[1]:g}"
        if self.kind == "value":
            return f"± {self.tolerance:g}"
        if self.kind == "order":
            return "above 0"
        parts = [f"≥ {self.at_least:g}"] if self.at_least is not None else []
        parts += [f"≤ {self.at_most:.4g}"] if self.at_most is not None else []
        return ", ".join(parts)

    @property
    def band(self) -> tuple[float, float]:
        """Smallest and largest number that counts."""
        if self.kind == "order":
            return 0.0, inf
        if self.kind == "bound":
            low = -inf if self.at_least is None else self.at_least
            return low, inf if self.at_most is None else self.at_most
        if isinstance(self.paper, tuple):
            return self.paper
        assert self.paper is not None
        assert self.tolerance is not None
        return self.paper - self.tolerance, self.paper + self.tolerance

    def limited(self, at_most: float) -> Check:
        """Returns the check with the value of its `limit`."""
        return replace(self, at_most=at_most)

    def verdict(self, ours: Estimate | None, *, single: bool = False) -> Verdict:
        """Judges our mean and its 95 % confidence interval.

        A value holds if the mean lies in the band and the interval is no wider than it. An order
        holds if the interval of the paired differences lies above zero, a bound if the interval
        keeps it. A number is contradicted if its whole interval lies outside of the band.
        Otherwise it is undecided, as is a mean without an interval unless the check is
        `deterministic`.

        Args:
            ours: The estimate; `None` if the runs have no such number.
            single: `True` judges a mean without an interval, of a single run, by its value.
        """
        if ours is None:
            return "undecided"
        half = ours.half_width
        if half is None:
            if not (self.deterministic or single):
                return "undecided"
            half = 0.0
        (low, high), first, last = self.band, ours.mean - half, ours.mean + half
        if last < low or first > high:
            return "contradicted"
        if self.kind == "value":
            holds = low <= ours.mean <= high and last - first <= high - low
        elif self.kind == "order":
            holds = first > low
        else:
            holds = low <= first and last <= high
        return "holds" if holds else "undecided"

    def judge(self, values: Sequence[float]) -> Outcome:
        """Judges our values, one for each seed; differences of the same seed for an order."""
        estimate = Estimate.of(values)
        low, high = self.band
        outside = None
        if self.kind == "bound" and values:
            outside = sum(not low <= value <= high for value in values) / len(values)
        return Outcome(self, estimate, self.verdict(estimate), outside)


@dataclass(frozen=True)
class Outcome:
    """A check with our number and the verdict."""

    check: Check
    #: Our mean over seeds; `None` if the runs have no such number.
    ours: Estimate | None
    verdict: Verdict
    #: For a bound: share of the seeds that break it.
    outside: float | None = None
    #: Outcomes under the other readings.
    readings: tuple[tuple[Reading, Outcome], ...] = ()

    @property
    def holds(self) -> bool:
        """`True` if the number is reproduced."""
        return self.verdict == "holds"

    @property
    def text(self) -> str:
        """Text of our value with its confidence interval, and of the seeds that break a bound."""
        if self.ours is None:
            return "–"
        text = f"{with_interval(self.ours)} {self.check.unit}".strip()
        return f"{text}; {100 * self.outside:.0f} % of seeds outside" if self.outside else text

    def holds_with(self, *, departures: bool) -> bool:
        """`True` if the number is reproduced by a reading of the paper.

        With `departures` readings count that depart from its text.
        """
        others = (each for reading, each in self.readings if departures or not reading.departs)
        return self.holds or any(each.holds for each in others)


def with_interval(ours: Estimate) -> str:
    """Formats a mean and half of its interval: two digits of this, three without one."""
    half = ours.half_width
    digits = _digits(ours.mean, 3) if not half else _digits(half, 2)
    mean = f"{round(ours.mean, digits):.{max(digits, 0)}f}".replace("-", "−")
    return mean if half is None else f"{mean} ± {round(half, digits):.{max(digits, 0)}f}"


def _digits(value: float, significant: int) -> int:
    """Decimal places, negative before the point, that show so many digits of a value; at most 6."""
    return min(6, significant - 1 - floor(log10(abs(value)))) if value else 0


def verdict_of(outcomes: Iterable[Outcome]) -> Verdict:
    """Verdict of a claim by its numbers, without those beyond the paper."""
    found = {each.verdict for each in outcomes if not each.check.beyond}
    if found == {"holds"}:
        return "holds"
    if "holds" in found:
        return "holds in part"
    return "contradicted" if "contradicted" in found else "undecided"


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
    #: The short answer.
    found: str = ""
    #: One line: the cause of what is not reproduced.
    reason: str = ""
    #: The experiments behind the answer.
    detail: str = ""
    #: Our findings about the claim on Linux.
    found_on_linux: str = ""

    def figure_of(self, check: Check) -> str:
        """Returns the figure whose runs a check uses: the claim's first unless it names one."""
        figure: str = check.arguments.get("figure", self.figures[0])
        return figure

    def experiments(self, *, readings: bool = True) -> list[str]:
        """Experiments and figures whose runs the checks use beside those of the claim's figures.

        Without `readings` those of the fixed reading alone.
        """
        named = [self.figure_of(check) for check in self.checks]
        if readings:
            others = (each for check in self.checks for each in check.readings)
            named += [reading.arguments["figure"] for reading in others]
        return [name for name in dict.fromkeys(named) if name not in self.figures]


def claim(table: TomlTable) -> Claim:
    """Parses a table `[[claim]]`.

    Raises:
        InputError: The claim is wrong; the error names it.
    """
    name = table.string("id")
    table = replace(table, name=f"{table.name} ({name})")
    table.only(_OF_CLAIM)
    figures = table.strings("figures")
    if not figures:
        raise table.error("`figures` names at least one figure", "figures")
    checks = [
        _check(each, f"{name}.{i}", figures[0]) for i, each in enumerate(table.tables("check"), 1)
    ]
    for reading in table.tables("reading", []):
        checks = _with_reading(checks, reading, figures[0])
    return Claim(
        id=name,
        text=table.string("text"),
        figures=figures,
        checks=tuple(checks),
        **{
            key: table.string(key, "")
            for key in ("setting", "found", "reason", "detail", "found_on_linux")
        },
    )


def _with_reading(checks: list[Check], table: TomlTable, figure: str) -> list[Check]:
    """Adds a reading, which runs other experiments in place of figures, to checks of these.

    The experiments replace all arguments of a measure that name one of the figures.
    """
    table.only({"name", "departs", "figures", "checks"})
    name, departs = table.string("name"), table.flag("departs", default=False)
    others, all_ids = table.table("figures"), [check.id for check in checks]
    ids = table.choices("checks", all_ids, all_ids)
    found = []
    for check in checks:
        of = check.arguments.get("figure", figure)
        if of in others and check.id in ids:
            named = {"figure": of, **check.arguments}
            arguments = {
                key: others.get(value, value) if isinstance(value, str) else value
                for key, value in named.items()
            }
            reading = Reading(name, departs, check.measure, arguments)
            check = replace(check, readings=(*check.readings, reading))  # noqa: PLW2901
        found.append(check)
    return found


def _check(table: TomlTable, name: str, figure: str) -> Check:
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
    paper = _paper(table)
    if kind == "value" and (paper is None or isinstance(paper, tuple) == ("tolerance" in data)):
        raise table.error("a value needs `paper`, and `tolerance` unless that is a range")
    if kind == "bound" and not {"at_least", "at_most"} & set(data):
        raise table.error("a bound needs `at_least` or `at_most`")
    limited = isinstance(data.get("at_most"), dict)
    measure, arguments = _measure(table, "measure")
    return Check(
        id=table.string("id", name),
        what=what,
        kind=cast("CheckKind", kind),
        unit=table.string("unit"),
        measure=measure,
        arguments=arguments,
        paper=paper,
        paper_text=table.string("paper_text") if "paper_text" in data else None,
        tolerance=table.number("tolerance"),
        at_least=table.number("at_least"),
        at_most=None if limited else table.number("at_most"),
        limit=_measure(table, "at_most") if limited else None,
        ours=table.flag("ours", default=False),
        deterministic=table.flag("deterministic", default=False),
        changed=table.string("changed", ""),
        added=table.string("added", ""),
        beyond=table.string("beyond", ""),
        readings=tuple(_reading(each, figure) for each in table.tables("reading", [])),
        linux=table.flag("linux", default=True),
        place=table.line("measure"),
    )


def _paper(table: TomlTable) -> float | tuple[float, float] | None:
    found = table.data.get("paper")
    if not isinstance(found, list):
        return table.number("paper")
    match found:
        case [int() | float() as low, int() | float() as high] if low < high:
            return low, high
    raise table.error(f"a range `paper` is [smallest, largest], not {found!r:.80}", "paper")


def _reading(table: TomlTable, figure: str) -> Reading:
    table.only({"name", "departs", "measure"})
    measure, arguments = _measure(table, "measure")
    return Reading(
        table.string("name"),
        table.flag("departs", default=False),
        measure,
        {"figure": figure, **arguments},
    )


def _measure(table: TomlTable, key: str) -> tuple[str, Mapping[str, Any]]:
    """Name and arguments of a measure."""
    arguments = table.table(key)
    name = table.inner(key).string("name")
    del arguments["name"]
    return name, arguments


@dataclass(frozen=True)
class Counts:
    """Numbers of a paper that hold, by how its text is read."""

    #: Numbers with a fixed id, and how many of these were dropped since.
    numbers: int
    dropped: int
    #: Those that hold by the fixed reading, by any honest one, and with departures from the text.
    headline: int
    readings: int
    departures: int
    #: Numbers that were added since, and those that hold of them.
    added: int
    added_hold: int

    @classmethod
    def of(cls, outcomes: Iterable[Outcome], dropped: int) -> Counts:
        """Counts the outcomes of all checks."""
        every = [each for each in outcomes if not each.check.beyond]
        fixed = [each for each in every if not each.check.added]
        added = [each for each in every if each.check.added]
        return cls(
            numbers=len(fixed) + dropped,
            dropped=dropped,
            headline=sum(each.holds for each in fixed),
            readings=sum(each.holds_with(departures=False) for each in fixed),
            departures=sum(each.holds_with(departures=True) for each in fixed),
            added=len(added),
            added_hold=sum(each.holds for each in added),
        )
