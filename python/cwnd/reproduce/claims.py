"""What a paper claims, as data: `claims.toml` read into claims, checks and verdicts."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from cwnd.errors import InputError, explain
from cwnd.stats import Estimate

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

Kind: TypeAlias = Literal["value", "order", "bound"]
#: What an order puts above, and what below, one value for each seed.
Sides: TypeAlias = "tuple[Sequence[float], Sequence[float]]"

#: Keys of a check besides those that its kind asks for.
_COMMON = {"what", "kind", "unit", "measure", "paper", "paper_text"}
_OF_KIND: dict[str, set[str]] = {
    "value": {"tolerance"},
    "order": set(),
    "bound": {"at_least", "at_most"},
}


@dataclass(frozen=True)
class Check:
    """One number of a claim, and what makes it count as reproduced."""

    what: str
    kind: Kind
    #: Unit of the paper's number and of ours; empty for a ratio.
    unit: str
    #: Name of the function of `cwnd.reproduce.measures`.
    measure: str
    arguments: Mapping[str, Any]
    #: What the paper states; `None` where it states an ordering only.
    paper: float | None = None
    #: How the paper's value is written, where a number does not say it.
    paper_text: str | None = None
    #: Of a value: how far ours may be from the paper's.
    tolerance: float | None = None
    #: Of a bound: what every run keeps.
    at_least: float | None = None
    at_most: float | None = None
    #: Of a bound: the measure that says what `at_most` is, and its arguments.
    limit: tuple[str, Mapping[str, Any]] | None = None

    @property
    def stated(self) -> str:
        """The paper's value, as it is shown."""
        if self.paper_text is not None:
            text = self.paper_text
        elif self.paper is not None:
            text = f"{self.paper:g}"
        else:
            return "more" if self.kind == "order" else ""
        return f"{text} {self.unit}".strip()

    @property
    def allowed(self) -> str:
        """What counts as reproduced, as it is shown."""
        if self.kind == "value":
            return f"± {self.tolerance:g}"
        if self.kind == "order":
            return "above 0"
        parts = [f"≥ {self.at_least:g}"] if self.at_least is not None else []
        parts += [f"≤ {self.at_most:.4g}"] if self.at_most is not None else []
        return ", ".join(parts)

    def limited(self, at_most: float) -> Check:
        """The same with what its `limit` came to."""
        return replace(self, at_most=at_most)

    def judge(self, values: Sequence[float], sides: Sequence[Sides] = ()) -> Outcome:
        """Compares our values, one for each seed, with the paper's.

        Args:
            values: What the measure gives.
            sides: Of an order: what is to lie above and what below, whose intervals must not meet.
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
    """Whether one mean lies above another, and their 95 % confidence intervals do not meet."""
    high, low = Estimate.of(above), Estimate.of(below)
    # Without an interval there is no telling.
    if high is None or high.half_width is None or low is None or low.half_width is None:
        return False
    return high.mean - high.half_width > low.mean + low.half_width


@dataclass(frozen=True)
class Outcome:
    """A check and what we found."""

    check: Check
    #: Our mean over seeds; `None` where the runs have no such number.
    ours: Estimate | None
    holds: bool

    @property
    def text(self) -> str:
        """Our value with its confidence interval, as it is shown."""
        if self.ours is None:
            return "–"
        width = self.ours.half_width
        interval = "" if width is None else f" ± {width:.2g}"
        return f"{self.ours.mean:.3g}{interval} {self.check.unit}".strip()


@dataclass(frozen=True)
class Claim:
    """A claim of the paper, and the numbers that it comes down to."""

    id: str
    text: str
    #: Scenarios that it needs, named as their files.
    figures: tuple[str, ...]
    checks: tuple[Check, ...]
    #: What of the setting we chose, where the paper leaves it open.
    setting: str = ""
    #: What we found when we looked into it.
    found: str = ""


@dataclass(frozen=True)
class Paper:
    """A paper: its folder, and what it claims."""

    name: str
    title: str
    authors: str
    venue: str
    folder: Path
    claims: tuple[Claim, ...] = field(repr=False)

    def chosen(self, ids: Sequence[str]) -> tuple[Claim, ...]:
        """The claims with these names, in the paper's order; all if none are given."""
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
        """The scenario file of a figure."""
        return self.folder / f"{figure}.toml"


def read(folder: Path) -> Paper:
    """Reads the claims of a paper's folder; `InputError` names what is wrong in the file."""
    file = folder / "claims.toml"
    try:
        with file.open("rb") as stream:
            data = tomllib.load(stream)
    except OSError as error:
        raise InputError(explain(error)) from error
    except tomllib.TOMLDecodeError as error:
        raise InputError(f"{file}: {error}") from error
    try:
        claims = tuple(
            _claim(each, f"{file}: claim {i + 1}") for i, each in enumerate(data["claim"])
        )
        paper = Paper(
            **{key: data[key] for key in ("name", "title", "authors", "venue")},
            folder=folder,
            claims=claims,
        )
    except KeyError as error:
        raise InputError(f"{file}: `{error.args[0]}` is missing") from error
    for claim in paper.claims:
        for figure in claim.figures:
            if not paper.scenario(figure).is_file():
                raise InputError(f"{file}: {claim.id} needs {figure}.toml, which is not there")
    return paper


def _claim(data: Mapping[str, Any], where: str) -> Claim:
    try:
        where = f"{where} ({data['id']})"
        return Claim(
            id=data["id"],
            text=data["text"],
            figures=tuple(data["figures"]),
            checks=tuple(_check(each, where) for each in data["check"]),
            setting=data.get("setting", ""),
            found=data.get("found", ""),
        )
    except KeyError as error:
        raise InputError(f"{where}: `{error.args[0]}` is missing") from error


def _check(data: Mapping[str, Any], where: str) -> Check:
    where = f"{where}, check `{data['what']}`"
    kind = data["kind"]
    if kind not in _OF_KIND:
        raise InputError(f"{where}: kind is one of {', '.join(_OF_KIND)}, not `{kind}`")
    unknown = set(data) - _COMMON - _OF_KIND[kind]
    if unknown:
        raise InputError(f"{where}: a check of kind {kind} has no `{min(unknown)}`")
    if kind == "value" and not {"paper", "tolerance"} <= set(data):
        raise InputError(f"{where}: a value needs `paper` and `tolerance`")
    if kind == "bound" and not {"at_least", "at_most"} & set(data):
        raise InputError(f"{where}: a bound needs `at_least` or `at_most`")
    arguments = dict(data["measure"])
    rest = {key: value for key, value in data.items() if key != "measure"}
    if isinstance(data.get("at_most"), dict):
        of = dict(rest.pop("at_most"))
        rest["limit"] = (of.pop("name"), of)
    return Check(measure=arguments.pop("name"), arguments=arguments, **rest)
