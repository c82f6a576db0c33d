"""A paper's figures on real Linux, beside the simulator's."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from cwnd.agreement import SIMULATOR, agree
from cwnd.errors import InputError
from cwnd.plots import attempt
from cwnd.reproduce.run import FIGURES
from cwnd.reproduce.shelf import PAPERS, drawings, paper
from cwnd.running import LINUX
from cwnd.sweeps import load

if TYPE_CHECKING:
    import os
    from collections.abc import Callable, Mapping, Sequence
    from contextlib import AbstractContextManager

    from cwnd.agreement import Agreement
    from cwnd.results import Run
    from cwnd.running import OnProgress


@dataclass(frozen=True)
class Figure:
    """A figure in both worlds."""

    name: str
    agreement: Agreement
    #: The files of both.
    files: tuple[Path, ...]


def available(name: str) -> list[str]:
    """The figures of a paper that Linux can run."""
    return sorted(file.stem for file in (PAPERS / name / LINUX).glob("*.toml"))


def drawn_from(name: str, figure: str) -> list[str]:
    """The figures that are drawn from the runs of one on Linux: itself, and others of the same."""
    others = paper(name).same_runs_on_linux.items()
    return [figure, *(other for other, runs in others if runs == figure)]


def reproduce_on_linux(
    name: str,
    ids: Sequence[str] = (),
    *,
    directory: str | os.PathLike[str] | None = None,
    threads: int | None = None,
    progress: Callable[[str], AbstractContextManager[OnProgress]] | None = None,
) -> list[Figure]:
    """Runs the figures of a paper that Linux can run in both worlds, and draws them.

    Args:
        name: The paper, such as "abe".
        ids: The claims whose figures are wanted, such as "A4"; all if not given.
        directory: Where results go; out/reproduce/NAME-linux if not given.
        threads: Runs on Linux at a time; as many as the machine can route for if not given.
        progress: Makes the progress bar of a world.

    Raises:
        InputError: There is no such paper or claim, or none of its figures can run on Linux.
        MachineError: This machine cannot run the testbed.
    """
    chosen = [figure for claim in paper(name).chosen(ids) for figure in claim.figures]
    figures = [each for each in available(name) if set(drawn_from(name, each)) & set(chosen)]
    if not figures:
        there = ", ".join(available(name)) or "none"
        raise InputError(f"Linux cannot run the figures of these claims; it can run {there}")
    place = Path("out") / "reproduce" / f"{name}-{LINUX}" if directory is None else Path(directory)
    return [_figure(name, figure, place, threads, progress) for figure in figures]


def _figure(
    name: str,
    figure: str,
    place: Path,
    threads: int | None,
    progress: Callable[[str], AbstractContextManager[OnProgress]] | None,
) -> Figure:
    scenario = PAPERS / name / LINUX / f"{figure}.toml"
    found = agree(scenario, place / figure, threads=threads, progress=progress)
    worlds = {world: load(place / figure / world) for world in (SIMULATOR, LINUX)}
    return Figure(figure, found, tuple(draw(name, figure, worlds, place / FIGURES)))


def draw(name: str, figure: str, worlds: Mapping[str, Run], place: Path) -> list[Path]:
    """Draws a figure of a paper, and those of the same runs, once for each world."""
    from cwnd.plots import style, write

    drawing = drawings(name)
    files = []
    for world, run in worlds.items():
        then = f"its numbers are complete in {place.parent / figure / world}"
        for each in drawn_from(name, figure):
            with attempt(f"figure `{each}-{world}`", then), style.styled():
                files += write(drawing[each](run), place, f"{each}-{world}")
    return files
