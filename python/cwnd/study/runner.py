"""Runs the experiments of a study; makes its records, tables and figures, and judges its claims."""

from __future__ import annotations

import json
import subprocess
import sys
import warnings
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cwnd import _core
from cwnd.errors import CwndError, CwndWarning, InputError
from cwnd.files import write_atomically
from cwnd.plots import attempt
from cwnd.running import plans
from cwnd.study import measures, registry
from cwnd.study.claims import Counts, verdict_of
from cwnd.study.drawing import save
from cwnd.study.format import STUDY
from cwnd.study.inputs import Inputs, simulate, written
from cwnd.study.tables import as_lines

if TYPE_CHECKING:
    import os
    from collections.abc import Iterable, Mapping, Sequence

    from cwnd.results import Run
    from cwnd.study.claims import Check, Claim, Outcome, Reading, Verdict
    from cwnd.study.format import Study
    from cwnd.study.inputs import Bars

#: Folders and file that a run leaves in its directory.
RUNS, FIGURES, CLAIMS = "runs", "figures", "claims.json"


@dataclass(frozen=True)
class Result:
    """Result of running a study."""

    study: Study
    #: Outcomes of each claim's checks.
    outcomes: Mapping[str, tuple[Outcome, ...]]
    #: `True` for a quick run: fewer seeds, shorter runs.
    quick: bool
    #: Files of the drawn figures.
    figures: tuple[Path, ...]
    directory: Path
    #: Lines of the tables, and texts of the records.
    tables: Mapping[str, list[str]] = field(default_factory=dict)
    records: Mapping[str, str] = field(default_factory=dict)
    #: Names of the figures that could not be drawn.
    undrawn: tuple[str, ...] = ()

    def verdict(self, claim: Claim) -> Verdict:
        """Verdict of a claim by its numbers."""
        return verdict_of(self.outcomes[claim.id])

    @property
    def counts(self) -> Counts:
        """Numbers that hold, of the claims that were judged."""
        judged = [each.id for each in self.study.claims if each.id in self.outcomes]
        dropped = [name for name in self.study.dropped if name.partition(".")[0] in judged]
        every = [outcome for name in judged for outcome in self.outcomes[name]]
        return Counts.of(every, len(dropped))

    def to_json(self) -> dict[str, Any]:
        """Returns tables, claims, the paper's numbers and ours, and verdicts as a JSON object."""
        found: dict[str, Any] = {
            "paper" if self.study.claims else "study": self.study.name,
            "quick": self.quick,
            "title": self.study.title,
            "cwnd_version": _core.__version__,
        }
        if self.tables:
            found["tables"] = dict(self.tables)
        if self.study.claims:
            found["counts"] = asdict(self.counts)
            found["claims"] = [
                {
                    "id": claim.id,
                    "claim": claim.text,
                    "verdict": self.verdict(claim),
                    "checks": [_outcome_json(each) for each in self.outcomes[claim.id]],
                }
                for claim in self.study.claims
                if claim.id in self.outcomes
            ]
        return found


def run(
    study: Study,
    experiments: Sequence[str] = (),
    *,
    claims: Sequence[str] = (),
    quick: bool = False,
    sample: bool = False,
    on: str | None = None,
    directory: str | os.PathLike[str] | None = None,
    threads: int | None = None,
    progress: Bars | None = None,
) -> Result:
    """Runs a study's experiments, makes its products, and judges its claims.

    Existing runs in the directory are not simulated again: an interrupted run continues.

    Args:
        study: The study.
        experiments: Names of experiments; all, or those of `claims`, if not given.
        claims: Claims whose experiments run, such as "A4"; all if not given.
        quick: Fewer seeds and shorter runs, as `[[quick]]` of the study defines, and no experiments
            that only other readings of the paper need.
        sample: Runs the part that the experiments' `sample` defines, and no others.
        on: Environment of the runs, the simulator if not given.
        directory: Directory of the results; if not given out/study/NAME, with the suffixes -quick,
            -sample and the environment of `on`.
        threads: Runs at a time; if not given all cores, or on Linux as many as they can route.
        progress: Makes the progress bar of an experiment.

    Raises:
        InputError: There is no such experiment or claim, or code or an override of the study is
            wrong.
        ScenarioError: A scenario cannot be run.
        CwndError: Runs failed, or a result could not be written.
    """
    chosen = study.chosen(claims)
    suffix = "".join(f"-{name}" for name in ("quick" * quick, "sample" * sample, on) if name)
    default = Path("out") / "study" / f"{study.name}{suffix}"
    place = default if directory is None else Path(directory)
    figures = [figure for claim in chosen for figure in claim.figures]
    judged = [name for claim in chosen for name in claim.experiments(readings=not quick)]
    needed = _needed(study, [*figures, *judged])
    if not claims:
        of_claims = {name for claim in chosen for name in claim.experiments()}
        others = [name for name in all_experiments(study) if not quick or name not in of_claims]
        needed = [*needed, *others]
    names = list(experiments or dict.fromkeys(needed))
    if sample:
        names = [name for name in names if study.experiment(name).sample is not None]
    if on is not None:
        names = [name for name in names if on in study.experiment(name).on]
        if not names:
            raise InputError(f"no experiment of {study.name} runs on {on}")

    def overrides(name: str) -> Sequence[str]:
        part = study.experiment(name).sample or () if sample else ()
        return [*part, *(study.overrides(name) if quick else ())]

    for name in names:
        check_overrides(study, name)
    _warn_of_missing(study)
    directories = simulate(
        study,
        names,
        place / RUNS,
        overrides=overrides,
        on=on,
        threads=threads,
        progress=progress,
    )
    inputs = Inputs(study, directories)
    records = computed_records(study, inputs)
    outcomes = {}
    for claim in chosen:
        if not sample and all(figure in inputs for figure in claim.figures):
            outcomes[claim.id] = judge(claim, inputs, study)
            inputs.forget()
    tables = computed_tables(study, inputs)
    wanted = dict.fromkeys(figures) if claims else all_figures(study)
    if sample:
        wanted = {}
    found = Result(study, outcomes, quick, (), place, tables, records)
    if study.claims:
        text = json.dumps(found.to_json(), indent=2, ensure_ascii=False) + "\n"
        try:
            write_atomically(place / CLAIMS, text.encode())
        except OSError as error:
            raise CwndError(f"the claims could not be written: {error}") from error
    files, undrawn = _draw(study, wanted, inputs, place)
    return replace(found, figures=tuple(files), undrawn=tuple(undrawn))


def check_overrides(study: Study, name: str) -> None:
    """Parses the scenario of an experiment with its overrides of all kinds.

    Raises:
        InputError: An override is wrong; the error names its line in `study.toml`.
        ScenarioError: The scenario is wrong.
    """
    experiment = study.experiment(name)
    file = study.folder / experiment.scenario
    plans.plan(file)
    kinds = {
        "set": experiment.set,
        "sample": [*experiment.set, *(experiment.sample or ())],
        "quick": [*experiment.set, *study.overrides(name)],
    }
    for key, overrides in kinds.items():
        if not overrides:
            continue
        try:
            plans.plan(file, overrides=overrides)
        except (_core.ScenarioError, InputError) as error:
            # Overrides drawn by code and a scenario's own errors are not of this file.
            reason = str(error)
            if isinstance(error, _core.ScenarioError):
                first = error.diagnostics[0]
                if not first["file"].startswith("--set"):
                    raise
                reason = f"{first['key']}: {first['message']}"
            path = ("quick", 0, "set") if key == "quick" else ("experiment", name, key)
            shown = "quick, set" if key == "quick" else f"experiment.{name}, {key}"
            raise InputError(f"{study.line(*path)}: {shown}: {reason}") from error


def _warn_of_missing(study: Study) -> None:
    """Warns of records that a program must measure first, and that products need."""
    for product in (*study.tables.values(), *study.figures.values()):
        for name in product.runs:
            record = study.records.get(name)
            if record and record.program and not (study.folder / name).is_file():
                warnings.warn(
                    f"{product.kind} `{product.name}` is left out: {name} is not recorded yet;"
                    f" `cwnd study run {study.folder} --record {name}` does it",
                    CwndWarning,
                    stacklevel=3,
                )


def _needed(study: Study, names: Iterable[str]) -> list[str]:
    """Experiments that these figures need."""
    runs = (run for name in names for run in study.figure(name).runs)
    return list(dict.fromkeys(run for run in runs if not study.is_file(run)))


def all_experiments(study: Study) -> list[str]:
    """Names of all experiments: those with a table, and those that products and claims need."""
    figures = _needed(study, [figure for claim in study.claims for figure in claim.figures])
    judged = _needed(study, [name for claim in study.claims for name in claim.experiments()])
    runs = (name for product in study.products for name in product.runs)
    others = [name for name in runs if not study.is_file(name)]
    return list(dict.fromkeys([*study.experiments, *figures, *judged, *others]))


def all_figures(study: Study) -> dict[str, None]:
    """Names of all figures of a study, those of its claims first."""
    of_claims = (figure for claim in study.claims for figure in claim.figures)
    return dict.fromkeys([*of_claims, *study.figures])


def computed_records(study: Study, inputs: Inputs) -> dict[str, str]:
    """Computes the records whose inputs are there; later products take them as inputs."""
    for name, product in study.records.items():
        arguments = None if product.program else inputs.of(product)
        if arguments is not None:
            make = registry.function(study, "RECORDS", name)
            inputs.computed[name] = registry.checked(
                study, "RECORDS", name, written, make(*arguments)
            )
    inputs.forget()
    return dict(inputs.computed)


def computed_tables(
    study: Study, inputs: Inputs, names: Sequence[str] | None = None
) -> dict[str, list[str]]:
    """Computes the tables whose inputs are there; all or those with these names."""
    found = {}
    for name in study.tables if names is None else names:
        arguments = inputs.of(study.tables[name])
        if arguments is not None:
            made = registry.function(study, "TABLES", name)(*arguments)
            found[name] = registry.checked(study, "TABLES", name, as_lines, made)
    return found


def record(study: Study, name: str, *, on: str | None = None) -> Path:
    """Measures a record by its program, on a machine that is prepared for it.

    The program takes the file to write, and `--on` with the environment if one is given.

    Raises:
        InputError: There is no such record.
        CwndError: The program failed.
    """
    programs = [each.name for each in study.records.values() if each.program]
    if name not in programs:
        known = ", ".join(programs) or "none"
        raise InputError(f"{study.name} has no record `{name}` with a program; it has {known}")
    file = study.folder / name
    program = study.folder / study.records[name].program
    asked = [] if on is None else ["--on", on]
    done = subprocess.run([sys.executable, program, file, *asked], check=False)  # noqa: S603 - ours
    if done.returncode != 0:
        raise CwndError(f"{program} failed with exit code {done.returncode}")
    return file


def judge(claim: Claim, results: Mapping[str, Run], study: Study) -> tuple[Outcome, ...]:
    """Judges the checks of a claim by the results of its figures, and by those of readings."""
    own = {
        name: registry.named(study, f'MEASURES["{name}"]', call)
        for name, call in registry.functions(study, "MEASURES").items()
    }

    def values(name: str, arguments: Mapping[str, Any]) -> list[float]:
        found = measures.measure(name, own)(results, **arguments)
        return measures.as_numbers(name, found)

    def judged(check: Check) -> Outcome:
        figure = claim.figure_of(check)
        if check.limit is not None:
            name, of = check.limit
            check = check.limited(values(name, {"figure": figure, **of})[0])
        found = check.judge(values(check.measure, {"figure": figure, **check.arguments}))
        return replace(found, readings=tuple(read(check, each) for each in check.readings))

    def read(check: Check, reading: Reading) -> tuple[Reading, Outcome]:
        # A quick run, and Linux, run the fixed reading alone.
        there = reading.arguments["figure"] in results
        return reading, check.judge(values(reading.measure, reading.arguments) if there else [])

    def outcome(check: Check) -> Outcome:
        what = f"{claim.id} `{check.what}`, measure `{check.measure}`"
        where = check.place or str(study.folder / STUDY)
        found: Outcome = registry.named(study, what, judged, where)(check)
        return found

    return tuple(outcome(check) for check in claim.checks)


def _draw(
    study: Study, names: Mapping[str, None], inputs: Inputs, place: Path
) -> tuple[list[Path], list[str]]:
    """Draws figures; returns their files, and the names of those that could not be drawn."""
    complete = "runs and claims are" if study.claims else "the runs are"
    then = (
        f"{complete} complete in {place}, and the same command tries again without running"
        " anything twice"
    )
    files, failed = [], []
    for figure in names:
        failed.append(figure)
        with attempt(f"figure `{figure}`", then):
            arguments = inputs.of(study.figure(figure))
            if arguments is not None:
                picture = registry.function(study, "FIGURES", figure)(*arguments)

                def saved(made: Any, name: str = figure) -> list[Path]:
                    return save(made, place / FIGURES, name)

                files += registry.checked(study, "FIGURES", figure, saved, picture)
            failed.remove(figure)
        inputs.forget()
    return files, failed


def _outcome_json(outcome: Outcome) -> dict[str, Any]:
    check = outcome.check
    return {
        "id": check.id,
        "what": check.what,
        "kind": check.kind,
        "unit": check.unit,
        "paper": check.stated,
        "allowed": check.allowed,
        **_judged_json(outcome),
        "readings": [
            {"name": reading.name, "departs": reading.departs, **_judged_json(each)}
            for reading, each in outcome.readings
        ],
    }


def _judged_json(outcome: Outcome) -> dict[str, Any]:
    ours = outcome.ours
    return {
        "ours": None if ours is None else ours.mean,
        "ci95": None if ours is None else ours.half_width,
        "n": 0 if ours is None else ours.n,
        "seeds_outside": outcome.outside,
        "verdict": outcome.verdict,
    }
