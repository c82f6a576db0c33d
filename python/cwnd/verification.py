"""Whether a result on disk is what was written: that of a run, or a sweep."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from cwnd import checksums
from cwnd.checksums import SUMS, Sums
from cwnd.dataset.layout import Dataset
from cwnd.dataset.verify import SAMPLE, Problem, Verified
from cwnd.dataset.verify import verify as verify_sweep
from cwnd.errors import DamageError, InputError
from cwnd.store import MANIFEST

if TYPE_CHECKING:
    import os


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
        sample: How many runs of a sweep are computed again.
        seed: Chooses which.
        threads: Runs at a time; all cores if not given.
        mend: Takes out the runs of a sweep of which something is wrong.

    Raises:
        InputError: There is no result, or it cannot be mended.
    """
    path = Path(directory)
    if Dataset.is_at(path):
        return verify_sweep(path, sample=sample, seed=seed, threads=threads, mend=mend)
    if not path.is_dir():
        raise InputError(f"{path}: there is no such directory")
    if not (path / SUMS).exists() and not (path / MANIFEST).exists():
        raise InputError(f"{path}: not a cwnd result (it has neither {SUMS} nor {MANIFEST})")
    if mend:
        raise InputError(
            f"{path}: only a sweep can be mended; run the scenario again with `cwnd run SCENARIO"
            f" -o {path}`"
        )
    return _verify_run(path)


def _verify_run(path: Path) -> Verified:
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
