"""Format of a study: `study.toml` parsed into experiments, products, claims and checks."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, cast

from cwnd import _core
from cwnd.errors import InputError
from cwnd.results import Estimate
from cwnd.running import read_text
from cwnd.study.toml_table import TomlTable, line_of, meant

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

CheckKind: TypeAlias = Literal["value", "order", "bound"]
#: Values of an order that must be above others, and those others, one value for each seed.
Sides: TypeAlias = "tuple[Sequence[float], Sequence[float]]"

#: Keys of a claim.
_OF_CLAIM = {"id", "text", "figures", "check", "setting", "found", "found_on_linux"}
#: Keys of a check in addition to those of its kind.
_COMMON = {"id", "what", "kind", "unit", "measure", "paper", "paper_text", "linux"}
_OF_KIND: dict[str, set[str]] = {
    "value": {"tolerance"},
    "order": set(),
    "bound": {"at_least", "at_most"},
}


@dataclass(frozen=True)
class Check:
    """A number of a claim, and the condition under which it counts as reproduced."""

    what: str
    kind: CheckKind
    #: Unit of the paper's number and of ours; empty for a ratio.
    unit: str
    #: Name of the function in `cwnd.study.measures`, or in `MEASURES` or `SIDES` of the study.
    measure: str
    arguments: Mapping[str, Any]
    #: Number in the paper; `None` if the check has none.
    paper: float | None = None
    #: Text of the paper's value, if it is not just a number.
    paper_text: str | None = None
    #: For a value: largest difference of our number from the paper's.
    tolerance: float | None = None
    #: For a bound: limits that all values of the measure must keep.
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
        kind=cast("CheckKind", kind),
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


#: Files of a study.
STUDY, PAGE, IMAGES = "study.toml", "page.md", "images"
Kind: TypeAlias = Literal["table", "figure", "record"]

_TEXTS = (
    *("title", "question", "authors", "venue", "left"),
    *("setting_on_linux", "found_on_linux"),
)
_KEYS = {
    *(*_TEXTS, "experiment", "table", "figure", "record", "claim", "quick"),
    "same_runs_on_linux",
}


@dataclass(frozen=True)
class Experiment:
    """A scenario with overrides."""

    name: str
    #: Name of the scenario's file.
    scenario: str
    #: Keys and values, as arguments of `--set`, that always apply.
    set: tuple[str, ...] = ()
    #: Further ones for a check that repeats a part; `None` if a check runs nothing.
    sample: tuple[str, ...] | None = None
    #: Environments that can run it.
    on: tuple[str, ...] = ("simulator",)


@dataclass(frozen=True)
class Product:
    """A table, figure or record: the result of a function of runs and records."""

    kind: Kind
    name: str
    #: Experiments, records and other files of the folder that the function takes.
    runs: tuple[str, ...]
    #: Program that measures a record on a prepared machine.
    program: str = ""


@dataclass(frozen=True)
class Quick:
    """Overrides of scenarios for a quick run."""

    #: Experiments to which they apply; all if empty.
    experiments: tuple[str, ...]
    #: Keys and values, as arguments of `--set`.
    set: tuple[str, ...]


@dataclass(frozen=True)
class Study:
    """A study: its folder, experiments, products and claims."""

    #: Names of its folder and of the folder around it.
    name: str
    group: str
    folder: Path
    title: str
    question: str
    experiments: Mapping[str, Experiment] = field(repr=False)
    tables: Mapping[str, Product] = field(repr=False)
    figures: Mapping[str, Product] = field(repr=False)
    records: Mapping[str, Product] = field(repr=False)
    claims: tuple[Claim, ...] = field(repr=False, default=())
    quick: tuple[Quick, ...] = field(repr=False, default=())
    authors: str = ""
    venue: str = ""
    #: Parts of a paper that are not reproduced.
    left: str = ""
    #: Figures of Linux's runs (folder `linux`) that share runs, and the name of those.
    same_runs_on_linux: Mapping[str, str] = field(repr=False, default_factory=dict)
    #: Settings on Linux, and our findings there.
    setting_on_linux: str = ""
    found_on_linux: str = ""

    @property
    def products(self) -> tuple[Product, ...]:
        """Records, tables and figures."""
        return (*self.records.values(), *self.tables.values(), *self.figures.values())

    def experiment(self, name: str, needed_by: str = "", where: str = "") -> Experiment:
        """Returns an experiment; one without a table has the scenario of its name.

        `needed_by` and `where` name the product that takes it, and its line, in an error.

        Raises:
            InputError: There is no such experiment.
        """
        found = self.experiments.get(name, Experiment(name, f"{name}.toml"))
        if not (self.folder / found.scenario).is_file():
            known = sorted({*self.experiments, *self._scenarios()})
            raise InputError(
                f"{where or self.line('experiment', name)}: {needed_by or name} needs"
                f" {found.scenario}, which is not there{meant(name, known)}; experiments are"
                f" {', '.join(known) or 'not there yet'}"
            )
        return found

    def _scenarios(self) -> list[str]:
        """Names of the files that are scenarios of experiments without a table."""
        files = self.folder.glob("*.toml")
        return [file.stem for file in files if file.name not in (STUDY, *self.records)]

    def line(self, *path: str | int) -> str:
        """File and line of a key or table of `study.toml`."""
        file = self.folder / STUDY
        text = file.read_text(encoding="utf-8") if file.is_file() else ""
        return f"{file}:{line_of(text, path)}"

    def figure(self, name: str) -> Product:
        """Returns a figure; one without a table is drawn from the experiment of its name."""
        return self.figures.get(name, Product("figure", name, (name,)))

    def runs_of(self, name: str) -> str:
        """Returns an experiment, or the experiment whose run a figure shows first."""
        if name in self.experiments or (self.folder / f"{name}.toml").is_file():
            return name
        return next(iter(self.figure(name).runs), name)

    def scenario(self, name: str) -> Path:
        """Path of the scenario of an experiment or figure."""
        return self.folder / self.experiment(self.runs_of(name)).scenario

    def is_file(self, name: str) -> bool:
        """`True` if an input of a product is a file of the study, not an experiment."""
        return name in self.records or (self.folder / name).suffix != ""

    def overrides(self, experiment: str) -> list[str]:
        """Overrides of an experiment's scenario in a quick run; the last one of a key applies."""
        ours = (q for q in self.quick if not q.experiments or experiment in q.experiments)
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


def read(folder: Path) -> Study:
    """Reads the study of a folder.

    Raises:
        InputError: The file cannot be read, or an entry is wrong; the error names both.
        ScenarioError: The file is not TOML; the error shows where.
    """
    study = parse(read_text(folder / STUDY, "a study"), folder)
    for product in study.products:
        for name in product.runs:
            _check_input(study, name, product.name, (product.kind, product.name, "runs"))
    for i, claim in enumerate(study.claims):
        for name in (name for figure in claim.figures for name in study.figure(figure).runs):
            _check_input(study, name, claim.id, ("claim", i, "figures"))
    return study


def _check_input(study: Study, name: str, by: str, path: tuple[str | int, ...]) -> None:
    """Checks that an input of a product is an experiment, or a file that is there or a record."""
    if not study.is_file(name):
        study.experiment(name, by, study.line(*path))
    elif name not in study.records and not (study.folder / name).is_file():
        raise InputError(
            f"{study.line(*path)}: {by} needs {name}, which is not there"
            f'{meant(name, study.records)}; add the file, or `[record."{name}"]`'
        )


def parse(text: str, folder: Path) -> Study:
    """Parses the text of `study.toml`, without checking that its scenarios exist.

    Raises:
        InputError: An entry is wrong; the error names it.
        ScenarioError: The text is not TOML; the error shows where.
    """
    file = str(folder / STUDY)
    top = TomlTable(_core.read_toml(text, name=file), file, text)
    top.only(_KEYS)
    return Study(
        name=folder.name,
        group=folder.parent.name,
        folder=folder,
        title=top.string("title"),
        question=top.string("question", ""),
        experiments={name: _experiment(name, t) for name, t in top.named("experiment")},
        tables=_products(top, "table"),
        figures=_products(top, "figure"),
        records=_products(top, "record"),
        claims=tuple(claim(each) for each in top.tables("claim", [])),
        quick=tuple(_quick(each) for each in top.tables("quick", [])),
        authors=top.string("authors", ""),
        venue=top.string("venue", ""),
        left=top.string("left", ""),
        same_runs_on_linux=top.table("same_runs_on_linux", {}),
        setting_on_linux=top.string("setting_on_linux", ""),
        found_on_linux=top.string("found_on_linux", ""),
    )


def _experiment(name: str, table: TomlTable) -> Experiment:
    table.only({"scenario", "set", "sample", "on"})
    return Experiment(
        name,
        table.string("scenario", f"{name}.toml"),
        table.strings("set", []),
        table.strings("sample") if "sample" in table.data else None,
        table.choices("on", ["simulator", "linux"], ["simulator"]),
    )


def _quick(table: TomlTable) -> Quick:
    table.only({"experiments", "set"})
    return Quick(table.strings("experiments", []), table.strings("set"))


def _products(top: TomlTable, kind: Kind) -> Mapping[str, Product]:
    found = {}
    for name, table in top.named(kind):
        table.only({"runs", *(["program"] if kind == "record" else [])})
        runs = [] if "program" in table.data else [name]
        found[name] = Product(kind, name, table.strings("runs", runs), table.string("program", ""))
    return found
