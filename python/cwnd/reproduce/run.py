"""Runs the experiments of a paper and judges its claims."""

from __future__ import annotations

import json
from collections.abc import Mapping
from contextlib import nullcontext
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from cwnd import _core
from cwnd.errors import CwndError
from cwnd.files import write_atomically
from cwnd.plots import attempt
from cwnd.reproduce import measures, registry
from cwnd.reproduce.drawing import save
from cwnd.running import plans, sweep
from cwnd.store import load

if TYPE_CHECKING:
    import os
    from collections.abc import Callable, Iterator, Sequence
    from contextlib import AbstractContextManager

    from cwnd.reproduce.claims import Check, Claim, Outcome, Paper, Sides
    from cwnd.reproduce.measures import Measure
    from cwnd.results import Run
    from cwnd.running import OnProgress

    #: Shows the progress of one experiment, given its name.
    Bars: TypeAlias = Callable[[str], AbstractContextManager[OnProgress]]

#: Folders and file that a reproduction leaves in its directory.
RUNS, FIGURES, CLAIMS = "runs", "figures", "claims.json"


@dataclass(frozen=True)
class Reproduction:
    """Result of reproducing a paper."""

    paper: Paper
    #: Outcomes of each claim's checks.
    outcomes: Mapping[str, tuple[Outcome, ...]]
    #: `True` for a quick run: fewer seeds, shorter runs.
    quick: bool
    #: Files of the drawn figures.
    figures: tuple[Path, ...]
    directory: Path

    def holds(self, claim: Claim) -> bool:
        """`True` if every number of a claim is reproduced."""
        return all(outcome.holds for outcome in self.outcomes[claim.id])

    def to_json(self) -> dict[str, Any]:
        """Returns the claims, the paper's numbers and ours, and the verdicts as a JSON object."""
        return {
            "paper": self.paper.name,
            "quick": self.quick,
            "title": self.paper.title,
            "cwnd_version": _core.__version__,
            "claims": [
                {
                    "id": claim.id,
                    "claim": claim.text,
                    "reproduced": self.holds(claim),
                    "checks": [_outcome_json(each) for each in self.outcomes[claim.id]],
                }
                for claim in self.paper.claims
                if claim.id in self.outcomes
            ],
        }


def reproduce(
    name: str,
    ids: Sequence[str] = (),
    *,
    quick: bool = False,
    directory: str | os.PathLike[str] | None = None,
    threads: int | None = None,
    progress: Bars | None = None,
) -> Reproduction:
    """Runs the scenarios behind a paper's claims, judges the claims, and draws the figures.

    Existing runs in the directory are not simulated again: an interrupted reproduction continues.

    Args:
        name: The paper, such as "abe".
        ids: The claims to check, such as "A4"; all if not given.
        quick: Fewer seeds and shorter runs, as `[[quick]]` of the claims defines.
        directory: Directory of the results; out/reproduce/NAME if not given, NAME-quick if quick.
        threads: Runs at a time; all cores if not given.
        progress: Makes the progress bar of an experiment.

    Raises:
        InputError: There is no such paper or claim.
        CwndError: A result could not be written.
    """
    chosen_paper = registry.paper(name)
    chosen = chosen_paper.chosen(ids)
    default = Path("out") / "reproduce" / (f"{name}-quick" if quick else name)
    place = default if directory is None else Path(directory)
    figures = dict.fromkeys(figure for claim in chosen for figure in claim.figures)
    results = _Results()
    simulated: dict[Path, Path] = {}
    for figure in figures:
        overrides = chosen_paper.overrides(figure) if quick else []
        scenario = chosen_paper.scenario(figure)
        if scenario not in simulated:
            simulated[scenario] = _simulated(scenario, overrides, place / RUNS, threads, progress)
        results.add(figure, simulated[scenario])
    outcomes = {}
    for claim in chosen:
        outcomes[claim.id] = judge(claim, results, name)
        results.forget()
    found = Reproduction(chosen_paper, outcomes, quick, (), place)
    text = json.dumps(found.to_json(), indent=2, ensure_ascii=False) + "\n"
    try:
        write_atomically(place / CLAIMS, text.encode())
    except OSError as error:
        raise CwndError(f"the claims could not be written: {error}") from error
    return replace(found, figures=tuple(_draw(chosen_paper, results, place)))


class _Results(Mapping[str, "Run"]):
    """Results by figure, each read on request, as all of a paper may exceed the memory."""

    def __init__(self) -> None:
        self._directories: dict[str, Path] = {}
        self._read: dict[str, Run] = {}

    def add(self, figure: str, directory: Path) -> None:
        """Registers the directory of a figure's result."""
        self._directories[figure] = directory

    def forget(self) -> None:
        """Frees the results in memory."""
        self._read.clear()

    def __getitem__(self, figure: str) -> Run:
        if figure not in self._read:
            self._read[figure] = load(self._directories[figure])
        return self._read[figure]

    def __len__(self) -> int:
        return len(self._directories)

    def __iter__(self) -> Iterator[str]:
        return iter(self._directories)


def _simulated(
    scenario: Path,
    overrides: list[str],
    runs: Path,
    threads: int | None,
    progress: Bars | None,
) -> Path:
    """Runs the scenario of a figure, and returns the directory of the result."""
    # Scenarios of figures with the same runs have the same name.
    name = plans.plan(scenario).scenario.name
    with nullcontext(False) if progress is None else progress(name) as on_progress:
        sweep(
            scenario,
            runs / name,
            set=overrides,
            threads=threads,
            replan=True,
            progress=on_progress,
        )
    return runs / name


def judge(claim: Claim, results: Mapping[str, Run], paper: str) -> tuple[Outcome, ...]:
    """Judges the checks of a claim by the results of its figures."""
    paper_measures, compared_values = registry.paper_measures(paper), registry.paper_sides(paper)

    def measure(name: str) -> Measure:
        return paper_measures[name] if name in paper_measures else measures.measure(name)

    def sides(name: str, **arguments: Any) -> list[Sides]:
        if name in compared_values:
            return compared_values[name](results, **arguments)
        return measures.sides(name, results, **arguments)

    def outcome(check: Check) -> Outcome:
        figure = claim.figure_of(check)
        arguments = {"figure": figure, **check.arguments}
        if check.limit is not None:
            name, of = check.limit
            check = check.limited(measure(name)(results, **{"figure": figure, **of})[0])
        sides_of_order = sides(check.measure, **arguments) if check.kind == "order" else ()
        return check.judge(measure(check.measure)(results, **arguments), sides_of_order)

    return tuple(outcome(check) for check in claim.checks)


def _draw(of: Paper, results: _Results, place: Path) -> list[Path]:
    then = (
        f"runs and claims are complete in {place}, and the same command tries again without running"
        " anything twice"
    )
    drawing = registry.drawings(of.name)
    files = []
    for figure in results:
        with attempt(f"figure `{figure}`", then):
            runs = [results[name] for name in (figure, *of.drawn_with.get(figure, ()))]
            files += save(drawing[figure](*runs), place / FIGURES, figure)
        results.forget()
    return files


def _outcome_json(outcome: Outcome) -> dict[str, Any]:
    check, ours = outcome.check, outcome.ours
    return {
        "what": check.what,
        "kind": check.kind,
        "unit": check.unit,
        "paper": check.stated,
        "allowed": check.allowed,
        "ours": None if ours is None else ours.mean,
        "ci95": None if ours is None else ours.half_width,
        "n": 0 if ours is None else ours.n,
        "reproduced": outcome.holds,
    }
