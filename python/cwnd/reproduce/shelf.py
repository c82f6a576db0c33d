"""The papers that come with cwnd: a folder for each, with all that is its own."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

from cwnd.errors import InputError
from cwnd.reproduce import claims

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from cwnd.figures import Picture
    from cwnd.reproduce.claims import Paper, Sides
    from cwnd.reproduce.measures import Measure

    #: What draws each figure, by the name of its scenario; from its run and those of `drawn_with`.
    Drawings: TypeAlias = Mapping[str, Callable[..., Picture]]

PAPERS = Path(__file__).resolve().parents[1] / "papers"


def papers() -> list[str]:
    """The papers that can be reproduced."""
    return sorted(file.parent.name for file in PAPERS.glob("*/claims.toml"))


def paper(name: str) -> Paper:
    """The claims of a paper; `InputError` if there is no such paper."""
    if name not in papers():
        raise InputError(f"there is no paper `{name}`; there are {', '.join(papers())}")
    return claims.read(PAPERS / name)


def own_measures(name: str) -> Mapping[str, Measure]:
    """The measures that only this paper has: `MEASURES` of the `measures.py` in its folder."""
    if not (PAPERS / name / "measures.py").is_file():
        return {}
    found: Mapping[str, Measure] = import_module(f"cwnd.papers.{name}.measures").MEASURES
    return found


def own_sides(name: str) -> Mapping[str, Callable[..., list[Sides]]]:
    """What those of them compare that order something: `SIDES` of the same file."""
    if not own_measures(name):
        return {}
    found: Mapping[str, Callable[..., list[Sides]]] = import_module(
        f"cwnd.papers.{name}.measures"
    ).SIDES
    return found


def drawings(name: str) -> Drawings:
    """What draws a paper's figures: `FIGURES` of the `figures.py` in its folder."""
    figures: Drawings = import_module(f"cwnd.papers.{name}.figures").FIGURES
    return figures
