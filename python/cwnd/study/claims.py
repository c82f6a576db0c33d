"""Claims of a paper: `claims.toml` parsed into claims, checks and verdicts."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, cast

from cwnd import _core
from cwnd.errors import InputError
from cwnd.results import Estimate
from cwnd.running import read_text

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

Kind: TypeAlias = Literal["value", "order", "bound"]
#: Values of an order that must be above others, and those others, one value for each seed.
Sides: TypeAlias = "tuple[Sequence[float], Sequence[float]]"

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
    #: Name of the function in `cwnd.reproduce.measures`.
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
    """A claim of the paper, and the numbers that decide it."""

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


@dataclass(frozen=True)
class Quick:
    """Overrides of scenarios for a quick run."""

    #: Figures to which they apply; all if empty.
    figures: tuple[str, ...]
    #: Keys and values, as arguments of `--set`.
    set: tuple[str, ...]


@dataclass(frozen=True)
class Paper:
    """A paper: its folder and its claims."""

    name: str
    title: str
    authors: str
    venue: str
    folder: Path
    claims: tuple[Claim, ...] = field(repr=False)
    quick: tuple[Quick, ...] = field(repr=False, default=())
    #: Parts of the paper that are not reproduced.
    left: str = ""
    #: Figures that are drawn from the runs of another figure, and that figure.
    same_runs: Mapping[str, str] = field(repr=False, default_factory=dict)
    #: The same for figures that Linux can run, in the folder `linux`.
    same_runs_on_linux: Mapping[str, str] = field(repr=False, default_factory=dict)
    #: Settings on Linux, and our findings there.
    setting_on_linux: str = ""
    found_on_linux: str = ""
    #: Figures that also need runs of other figures, and those figures.
    drawn_with: Mapping[str, tuple[str, ...]] = field(repr=False, default_factory=dict)

    def runs_of(self, figure: str) -> str:
        """Returns the figure whose runs a figure uses: itself, or that of `same_runs`."""
        return self.same_runs.get(figure, figure)

    def overrides(self, figure: str) -> list[str]:
        """Overrides of a figure's scenario in a quick run; the last one of a key applies."""
        figure = self.runs_of(figure)
        ours = (each for each in self.quick if not each.figures or figure in each.figures)
        return [text for each in ours for text in each.set]

    def chosen(self, ids: Sequence[str]) -> tuple[Claim, ...]:
        """Returns the claims with these names, in the paper's order; all if none are given.

        Raises:
            InputError: There is no such claim.
        """
        known = {claim.id.lower(): claim for claim in self.claims}
        unknown = [name for name in ids if name.lower() not in known]
        if unknown:
            raise InputError(
                f"{self.name} has no claim `{unknown[0]}`; it has"
                f" {', '.join(claim.id for claim in self.claims)}"
            )
        asked = {name.lower() for name in ids}
        return tuple(c for c in self.claims if not asked or c.id.lower() in asked)

    def scenario(self, figure: str) -> Path:
        """Path of the scenario of a figure."""
        return self.folder / f"{self.runs_of(figure)}.toml"


def read(folder: Path) -> Paper:
    """Reads the claims of a paper's folder.

    Raises:
        InputError: The file cannot be read, or a claim in it is wrong; the error names both.
        ScenarioError: The file is not TOML; the error shows where.
    """
    file = folder / "claims.toml"
    paper = parse(read_text(file, "a file of claims"), folder)
    for claim in paper.claims:
        for figure in claim.figures:
            if not paper.scenario(figure).is_file():
                missing = paper.scenario(figure).name
                raise InputError(f"{file}: {claim.id} needs {missing}, which is not there")
            for other in paper.drawn_with.get(figure, ()):
                if other not in claim.figures:
                    raise InputError(f"{file}: {claim.id} has {figure} and not {other} beside it")
    return paper


def parse(text: str, folder: Path) -> Paper:
    """Parses the text of `claims.toml`, without checking that its scenarios exist.

    Raises:
        InputError: A claim is wrong; the error names it.
        ScenarioError: The text is not TOML; the error shows where.
    """
    file = str(folder / "claims.toml")
    top = _Table(_core.read_toml(text, name=file), file)
    return Paper(
        name=top.text("name"),
        title=top.text("title"),
        authors=top.text("authors"),
        venue=top.text("venue"),
        folder=folder,
        claims=tuple(_claim(each) for each in top.tables("claim", file)),
        quick=tuple(_quick(each) for each in top.tables("quick", file, [])),
        left=top.text("left", ""),
        same_runs=_same_runs(top, "same_runs"),
        same_runs_on_linux=_same_runs(top, "same_runs_on_linux"),
        setting_on_linux=top.text("setting_on_linux", ""),
        found_on_linux=top.text("found_on_linux", ""),
        drawn_with=_drawn_with(top),
    )


@dataclass(frozen=True)
class _Table:
    """A table of the file, and its name in errors."""

    data: Mapping[str, Any]
    where: str

    def text(self, key: str, default: str | None = None) -> str:
        return cast("str", self._get(key, str, "text in quotes", default))

    def number(self, key: str) -> float | None:
        if key not in self.data:
            return None
        value = self.data[key]
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise InputError(f"{self.where}: `{key}` is a number, not {value!r:.80}")
        return value

    def flag(self, key: str, *, default: bool) -> bool:
        return cast("bool", self._get(key, bool, "true or false", default))

    def table(self, key: str, default: dict[str, Any] | None = None) -> dict[str, Any]:
        return dict(self._get(key, dict, "a table", default))

    def texts(self, key: str, default: list[str] | None = None) -> tuple[str, ...]:
        found = self._get(key, list, "a list of texts", default)
        if not all(isinstance(each, str) for each in found):
            raise InputError(f"{self.where}: `{key}` is a list of texts, not {found!r:.80}")
        return tuple(found)

    def tables(self, key: str, where: str, default: list[Any] | None = None) -> list[_Table]:
        found = self._get(key, list, f"a list of tables [[{key}]]", default)
        if not all(isinstance(each, dict) for each in found):
            raise InputError(f"{self.where}: `{key}` is a list of tables [[{key}]]")
        return [_Table(each, f"{where}: {key} {i + 1}") for i, each in enumerate(found)]

    def _get(self, key: str, kind: type, wanted: str, default: Any = None) -> Any:
        value = self.data.get(key, default)
        if value is None:
            raise InputError(f"{self.where}: `{key}` is missing")
        if not isinstance(value, kind):
            raise InputError(f"{self.where}: `{key}` is {wanted}, not {value!r:.80}")
        return value


def _same_runs(table: _Table, key: str) -> Mapping[str, str]:
    found = table.table(key, {})
    for figure, of in found.items():
        if not isinstance(of, str):
            raise InputError(f"{table.where}: `{key}.{figure}` names a figure, not {of!r:.80}")
        if of in found:
            raise InputError(f"{table.where}: `{key}.{figure}`: {of} has no runs of its own")
    return found


def _drawn_with(table: _Table) -> Mapping[str, tuple[str, ...]]:
    inner = _Table(table.table("drawn_with", {}), f"{table.where}: drawn_with")
    return {figure: inner.texts(figure) for figure in inner.data}


def _quick(table: _Table) -> Quick:
    return Quick(figures=table.texts("figures", []), set=table.texts("set"))


def _claim(table: _Table) -> Claim:
    name = table.text("id")
    table = replace(table, where=f"{table.where} ({name})")
    return Claim(
        id=name,
        text=table.text("text"),
        figures=table.texts("figures"),
        checks=tuple(_check(each) for each in table.tables("check", table.where)),
        setting=table.text("setting", ""),
        found=table.text("found", ""),
        found_on_linux=table.text("found_on_linux", ""),
    )


def _check(table: _Table) -> Check:
    what = table.text("what")
    table = replace(table, where=f"{table.where} `{what}`")
    where, data, kind = table.where, table.data, table.text("kind")
    if kind not in _OF_KIND:
        raise InputError(f"{where}: kind is one of {', '.join(_OF_KIND)}, not `{kind}`")
    unknown = set(data) - _COMMON - _OF_KIND[kind]
    if unknown:
        raise InputError(f"{where}: a check of kind {kind} has no `{min(unknown)}`")
    if kind == "value" and not {"paper", "tolerance"} <= set(data):
        raise InputError(f"{where}: a value needs `paper` and `tolerance`")
    if kind == "bound" and not {"at_least", "at_most"} & set(data):
        raise InputError(f"{where}: a bound needs `at_least` or `at_most`")
    limited = isinstance(data.get("at_most"), dict)
    measure, arguments = _measure(table, "measure")
    return Check(
        what=what,
        kind=cast("Kind", kind),
        unit=table.text("unit"),
        measure=measure,
        arguments=arguments,
        paper=table.number("paper"),
        paper_text=table.text("paper_text") if "paper_text" in data else None,
        tolerance=table.number("tolerance"),
        at_least=table.number("at_least"),
        at_most=None if limited else table.number("at_most"),
        limit=_measure(table, "at_most") if limited else None,
        linux=table.flag("linux", default=True),
    )


def _measure(table: _Table, key: str) -> tuple[str, Mapping[str, Any]]:
    """Name and arguments of a measure."""
    arguments = table.table(key)
    name = _Table(arguments, f"{table.where}, {key}").text("name")
    del arguments["name"]
    return name, arguments
