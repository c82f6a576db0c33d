"""Figures of a paper on Linux beside those in the simulator."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cwnd.errors import InputError
from cwnd.files import write_atomically
from cwnd.plots import attempt
from cwnd.results import Estimate
from cwnd.store import LINUX, load
from cwnd.study.agreement import SIMULATOR, agree
from cwnd.study.claims import Outcome
from cwnd.study.drawing import save
from cwnd.study.registry import function, paper
from cwnd.study.runner import CLAIMS, FIGURES, judge

if TYPE_CHECKING:
    import os
    from collections.abc import Callable, Mapping, Sequence
    from contextlib import AbstractContextManager

    from cwnd.results import Run
    from cwnd.running import OnProgress
    from cwnd.study.agreement import Agreement
    from cwnd.study.claims import Check, Claim
    from cwnd.study.format import Study


@dataclass(frozen=True)
class Figure:
    """A figure in the simulator and on Linux."""

    name: str
    agreement: Agreement
    #: Files of both drawings.
    files: tuple[Path, ...]


@dataclass(frozen=True)
class OnLinux:
    """Results of a paper's figures on Linux."""

    figures: tuple[Figure, ...]
    #: Outcomes of each claim's checks in the simulator and on Linux, if these runs decide them.
    outcomes: Mapping[str, list[tuple[Outcome, Outcome]]]

    def to_json(self) -> dict[str, Any]:
        """Returns the outcomes as the JSON object that `recorded` reads from the paper's folder."""
        kernels = [kernel for f in self.figures for kernel in f.agreement.world.get("kernel", [])]
        return {
            "kernel": list(dict.fromkeys(kernels)),
            "claims": {
                claim: [
                    {
                        "id": simulator.check.id,
                        SIMULATOR: _numbers(simulator),
                        LINUX: _numbers(linux),
                    }
                    for simulator, linux in both
                ]
                for claim, both in self.outcomes.items()
            },
        }


def _numbers(outcome: Outcome) -> dict[str, Any]:
    limit = {} if outcome.check.limit is None else {"at_most": outcome.check.at_most}
    return {"ours": None if outcome.ours is None else asdict(outcome.ours), **limit}


def recorded(study: Study) -> dict[str, list[tuple[Outcome, Outcome]]]:
    """Outcomes that are stored in a study's folder; empty without a file.

    `cwnd study run papers/NAME --record linux/claims.json --on linux` writes them.
    """
    file = study.folder / LINUX / CLAIMS
    if not file.is_file():
        return {}
    checks = {check.id: check for claim in study.claims for check in claim.checks}
    claims = json.loads(file.read_text(encoding="utf-8"))["claims"]
    return {
        claim: [
            (
                _outcome(checks[each["id"]], each[SIMULATOR]),
                _outcome(checks[each["id"]], each[LINUX]),
            )
            for each in both
            if each["id"] in checks
        ]
        for claim, both in claims.items()
    }


def _outcome(check: Check, numbers: Mapping[str, Any]) -> Outcome:
    if check.limit is not None:
        check = check.limited(numbers["at_most"])
    ours = None if numbers["ours"] is None else Estimate(**numbers["ours"])
    return Outcome(check, ours, check.verdict(ours, single=True))


def available(study: Study) -> list[str]:
    """Figures of a study that Linux can run."""
    return sorted(file.stem for file in (study.folder / LINUX).glob("*.toml"))


def drawn_from(study: Study, figure: str) -> list[str]:
    """Figures drawn from the runs of one on Linux: itself, and those of `same_runs_on_linux`."""
    others = study.same_runs_on_linux.items()
    return [figure, *(other for other, runs in others if runs == figure)]


def reproduce_on_linux(
    name: str,
    ids: Sequence[str] = (),
    *,
    directory: str | os.PathLike[str] | None = None,
    threads: int | None = None,
    progress: Callable[[str], AbstractContextManager[OnProgress]] | None = None,
) -> OnLinux:
    """Runs a paper's figures in the simulator and on Linux, draws them, and checks the claims.

    Args:
        name: The paper, such as "abe".
        ids: The claims whose figures are wanted, such as "A4"; all if not given.
        directory: Directory of the results; out/reproduce/NAME-linux if not given.
        threads: Runs on Linux at a time; as many as the machine can route for if not given.
        progress: Makes the progress bar of the simulator or of Linux.

    Raises:
        InputError: There is no such paper or claim, or none of its figures can run on Linux.
        MachineError: This machine cannot run the testbed.
        CwndError: Runs failed.
    """
    study = paper(name)
    claims = study.chosen(ids)
    chosen = [figure for claim in claims for figure in claim.figures]
    figures = [each for each in available(study) if set(drawn_from(study, each)) & set(chosen)]
    if not figures:
        known = ", ".join(available(study)) or "none"
        raise InputError(f"Linux cannot run the figures of these claims; it can run {known}")
    root = Path("out") / "reproduce" / f"{name}-{LINUX}" if directory is None else Path(directory)
    found = tuple(_figure(study, figure, root, threads, progress) for figure in figures)
    results = [
        {
            each: load(root / runs / environment)
            for runs in figures
            for each in drawn_from(study, runs)
        }
        for environment in (SIMULATOR, LINUX)
    ]
    outcomes = {claim.id: _judged(claim, results, study) for claim in claims}
    result = OnLinux(found, {claim: both for claim, both in outcomes.items() if both})
    text = json.dumps(result.to_json(), indent=2, ensure_ascii=False) + "\n"
    write_atomically(root / CLAIMS, text.encode())
    return result


def _judged(
    claim: Claim, results: Sequence[Mapping[str, Run]], study: Study
) -> list[tuple[Outcome, Outcome]]:
    """Judges the checks of a claim whose figures and numbers the runs of both have."""
    checked = [each for each in claim.checks if each.linux and claim.figure_of(each) in results[0]]
    simulator, linux = (
        map(_judged_alone, judge(replace(claim, checks=tuple(checked)), runs, study))
        for runs in results
    )
    both = zip(simulator, linux, strict=True)
    return [each for each in both if each[0].ours is not None and each[1].ours is not None]


def with_simulator(
    study: Study, outcomes: dict[str, Any], results: Mapping[str, Run]
) -> dict[str, Any]:
    """Replaces the simulator's numbers in recorded outcomes by those of these runs, by figure.

    Numbers whose checks now need other runs are left out.
    """
    claims = {}
    for claim in study.claims:
        recorded = {each["id"]: each for each in outcomes["claims"].get(claim.id, ())}
        checks = [each for each in claim.checks if each.linux and each.id in recorded]
        checks = [each for each in checks if claim.figure_of(each) in results]
        if not checks:
            continue
        judged = judge(replace(claim, checks=tuple(checks)), results, study)
        claims[claim.id] = [
            recorded[each.check.id] | {SIMULATOR: _numbers(_judged_alone(each))} for each in judged
        ]
    return outcomes | {"claims": claims}


def _judged_alone(outcome: Outcome) -> Outcome:
    """Judges a mean of a single run by its value: runs on Linux take real time."""
    verdict = outcome.check.verdict(outcome.ours, single=True)
    return replace(outcome, verdict=verdict, outside=None, readings=())


def _figure(
    study: Study,
    figure: str,
    root: Path,
    threads: int | None,
    progress: Callable[[str], AbstractContextManager[OnProgress]] | None,
) -> Figure:
    scenario = study.folder / LINUX / f"{figure}.toml"
    found = agree(scenario, root / figure, threads=threads, progress=progress)
    results = {environment: load(root / figure / environment) for environment in (SIMULATOR, LINUX)}
    return Figure(figure, found, tuple(draw(study, figure, results, root / FIGURES)))


def draw(study: Study, figure: str, results: Mapping[str, Run], root: Path) -> list[Path]:
    """Draws a figure of a study, and those of the same runs, for the simulator and for Linux."""
    files = []
    for environment, run in results.items():
        then = f"its numbers are complete in {root.parent / figure / environment}"
        for each in drawn_from(study, figure):
            with attempt(f"figure `{each}-{environment}`", then):
                picture = function(study, "FIGURES", each)(run)
                files += save(picture, root, f"{each}-{environment}")
    return files
