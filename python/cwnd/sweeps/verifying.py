"""Whether a result on disk is what was written: that of a run, or a sweep."""

from __future__ import annotations

import random
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from cwnd import _core
from cwnd.errors import CwndError, DamageError, InputError, explain
from cwnd.files import SUMS, Sums, checksums
from cwnd.results import AGREEMENT, CELL_ID, MANIFEST, read
from cwnd.running import LINUX, Workers, runner
from cwnd.sweeps.cells import FILES, MARK, RECORDS, Mark, attempt, same_values
from cwnd.sweeps.layout import Dataset

if TYPE_CHECKING:
    import os
    from collections.abc import Callable

#: Cells that are computed again when nothing else is asked for.
SAMPLE = 16


@dataclass(frozen=True)
class Problem:
    """What is wrong, and with which file."""

    file: Path
    what: str


@dataclass(frozen=True)
class Verified:
    """What a check found."""

    #: Cells whose files were compared with their hashes.
    checked: int
    #: Cells that were computed again.
    recomputed: int
    #: Cells that are not complete.
    missing: int
    problems: list[Problem]
    #: Cells that were taken out, so that the next sweep computes them again.
    mended: int = 0

    @property
    def sound(self) -> bool:
        """Whether everything is there and as it should be."""
        return not self.problems and not self.missing


def verify(
    directory: str | os.PathLike[str],
    *,
    sample: int = SAMPLE,
    seed: int = 0,
    threads: int | None = None,
    mend: bool = False,
) -> Verified:
    """Compares all files of a result with their hashes; of a sweep some runs are computed again.

    Args:
        directory: What `cwnd run` or `cwnd sweep` wrote.
        sample: How many runs of a sweep are computed again; their files must have the same bytes.
        seed: Chooses which.
        threads: Runs at a time; all cores if not given.
        mend: Takes out the runs of a sweep of which something is wrong: the next sweep computes
            them.

    Raises:
        InputError: There is no result, or it cannot be mended.
    """
    path = Path(directory)
    if Dataset.is_at(path):
        return _sweep(path, sample=sample, seed=seed, threads=threads, mend=mend)
    read.require_directory(path)
    if not read.is_result(path):
        raise InputError(f"{path}: not a cwnd result (it has neither {SUMS} nor {MANIFEST})")
    if mend:
        raise InputError(
            f"{path}: only a sweep can be mended; run the scenario again with `cwnd run SCENARIO"
            f" -o {path}`"
        )
    return _with_worlds(path, _run(path), sample=sample, seed=seed, threads=threads)


def _with_worlds(
    path: Path, found: Verified, *, sample: int, seed: int, threads: int | None
) -> Verified:
    """Adds the results of both worlds to what was found in the directory of a comparison."""
    if not (path / AGREEMENT).exists():
        return found
    for place in sorted(each for each in path.iterdir() if each.is_dir()):
        if Dataset.is_at(place):
            other = _sweep(place, sample=sample, seed=seed, threads=threads, mend=False)
            found = Verified(
                found.checked + other.checked,
                found.recomputed + other.recomputed,
                found.missing + other.missing,
                found.problems + other.problems,
            )
    return found


def _sweep(path: Path, *, sample: int, seed: int, threads: int | None, mend: bool) -> Verified:
    try:
        dataset = Dataset.open(path)
        plan = dataset.plan()
    except DamageError as error:
        # Without them nobody knows which cells there should be.
        return Verified(0, 0, 0, [Problem(error.file, error.what)])
    if dataset.info.engine.startswith(LINUX):
        # Real time does not repeat itself.
        sample = 0
    if sample and dataset.info.engine != _core.engine:
        raise InputError(
            f"{dataset.path}: computed by cwnd {dataset.info.engine}, and this is {_core.engine}:"
            " it cannot compute the same; --sample 0 only compares the files with their hashes"
        )
    planned = plan[CELL_ID].unique(maintain_order=True).to_list()
    done = dataset.done()
    there = [cell for cell in planned if cell in done]
    chosen = set(random.Random(seed).sample(there, min(sample, len(there))))  # noqa: S311 - no secret

    def work(index: int) -> list[Problem]:
        return _check(dataset, there[index], again=there[index] in chosen)

    problems = _described(dataset)
    workers = Workers(len(there), min(runner.thread_count(threads), max(1, len(there))), work)
    try:
        workers.start()
        for found in workers.results(_nothing):
            problems += found
    finally:
        workers.stop()
        workers.join()
    files = [problem.file for problem in problems] if mend else []
    bad = {file.stem for file in files if file.parent != dataset.path}
    for cell in bad:
        # A cell is there when its mark is.
        try:
            dataset.file(MARK, cell).unlink(missing_ok=True)
        except OSError as error:
            raise CwndError(f"{cell} could not be taken out: {explain(error)}") from error
    return Verified(len(there), len(chosen), len(planned) - len(there), problems, len(bad))


def _run(path: Path) -> Verified:
    try:
        files = Sums.at(path)
    except DamageError as error:
        return Verified(0, 0, 0, [Problem(error.file, error.what)])
    if files.of is None:
        what = "missing, as in what older versions wrote: nobody can tell what is damaged"
        return Verified(0, 0, 0, [Problem(path / SUMS, what)])
    problems = []
    for name, expected in files.of.items():
        try:
            checksums.check(path / name, expected, "")
        except DamageError as error:
            problems.append(Problem(error.file, error.what))
    return Verified(len(files.of), 0, 0, problems)


def _described(dataset: Dataset) -> list[Problem]:
    """What is wrong with the files that belong to no cell."""
    problems: list[Problem] = []

    def look(one: Callable[..., object], *arguments: str) -> None:
        try:
            one(*arguments)
        except DamageError as error:
            if error.file not in [problem.file for problem in problems]:
                problems.append(Problem(error.file, error.what))

    def summed() -> None:
        files = Sums.at(dataset.path)
        for name in files.of or ():
            look(files.data, name)

    look(dataset.source)
    look(summed)
    return problems


def _check(dataset: Dataset, cell: str, *, again: bool) -> list[Problem]:
    mark_file = dataset.file(MARK, cell)
    try:
        data = checksums.read(mark_file, None, "")
        mark = Mark.read(data)
    except DamageError as error:
        return [Problem(mark_file, error.what)]
    except InputError as error:
        return [Problem(mark_file, str(error))]
    if mark.cell_id != cell:
        return [Problem(mark_file, f"holds another cell, {mark.cell_id}")]
    files, problems = {MARK: data}, []
    for table in RECORDS:
        file = dataset.file(table, cell)
        try:
            files[table] = checksums.read(file, mark.sha256.get(table, "none"), "")
        except DamageError as error:
            problems.append(Problem(file, error.what))
    if problems or not again:
        return problems
    return _compare(dataset, mark, files)


def _compare(dataset: Dataset, mark: Mark, files: dict[str, bytes]) -> list[Problem]:
    """Computes a cell from its scenario alone."""
    outcome = attempt(mark.text)
    if outcome.files is None:
        reason = outcome.failure.message if outcome.failure is not None else "no reason"
        return [Problem(dataset.file(MARK, mark.cell_id), f"cannot be computed again: {reason}")]
    problems = []
    for table in FILES:
        ours, theirs = outcome.files[table], files[table]
        if ours == theirs or (mark.other_writer and same_values(ours, theirs)):
            continue
        file = dataset.file(table, mark.cell_id)
        problems.append(Problem(file, "not what the cell gives when it is computed again"))
    return problems


def _nothing() -> None:
    pass
