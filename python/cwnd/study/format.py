"""Format of a study: `study.toml` parsed into experiments, products, claims and checks."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal, TypeAlias

from cwnd import _core
from cwnd.errors import InputError
from cwnd.running import read_text
from cwnd.study.claims import Claim, claim
from cwnd.study.toml_table import TomlTable, line_of, meant

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

#: Files of a study.
STUDY, PAGE, IMAGES = "study.toml", "page.md", "images"
Kind: TypeAlias = Literal["table", "figure", "record"]

_TEXTS = (
    *("title", "question", "authors", "venue", "left", "fixed"),
    *("setting_on_linux", "found_on_linux"),
)
_KEYS = {
    *(*_TEXTS, "experiment", "table", "figure", "record", "claim", "quick"),
    *("dropped", "minutes", "same_runs_on_linux"),
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
    #: For a figure of a paper: its number, if the name does not have it, and its caption.
    number: str = ""
    caption: str = ""

    @property
    def label(self) -> str:
        """Number of a figure, such as "Fig. 4.10" for `fig4_10`; else its name."""
        found = re.fullmatch(r"fig(\d+)(?:_(\d+))?([a-z]?)", self.name)
        if self.number or found is None:
            return self.number or self.name
        parts = ".".join(str(int(part)) for part in found.groups()[:2] if part)
        return f"Fig. {parts}{found[3]}"


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
    #: Numbers with a fixed id that are no longer judged: the reasons by id.
    dropped: Mapping[str, str] = field(repr=False, default_factory=dict)
    #: Date at which the ids were fixed; numbers added later are counted apart.
    fixed: str = ""
    #: Minutes that the whole takes on two cores.
    minutes: float | None = None
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

    @property
    def has_readings(self) -> bool:
        """`True` if a number is judged by another reading of the paper, too."""
        return any(check.readings for claim in self.claims for check in claim.checks)

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
    for i, each in enumerate(study.claims):
        figures = [*each.figures, *each.experiments()]
        for name in (name for figure in figures for name in study.figure(figure).runs):
            _check_input(study, name, each.id, ("claim", i, "figures"))
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
    claims = tuple(claim(each) for each in top.tables("claim", []))
    dropped = {each.string("id"): each.string("reason") for each in top.tables("dropped", [])}
    ids = [*(check.id for each in claims for check in each.checks), *dropped]
    if twice := next((each for each in ids if ids.count(each) > 1), None):
        raise top.error(f"two numbers have the id `{twice}`")
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
        claims=claims,
        dropped=dropped,
        fixed=top.string("fixed", ""),
        minutes=top.number("minutes"),
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
        own = {"record": ("program",), "figure": ("number", "caption")}.get(kind, ())
        table.only({"runs", *own})
        runs = [] if "program" in table.data else [name]
        found[name] = Product(
            kind,
            name,
            table.strings("runs", runs),
            *(table.string(key, "") for key in ("program", "number", "caption")),
        )
    return found
