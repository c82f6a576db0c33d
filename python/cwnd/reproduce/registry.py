"""Registry of the papers in the package: a folder for each, with its own measures and figures."""

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

    #: Functions that draw figures, by the name of the scenario; their arguments are its run and
    #: those of `drawn_with`.
    Drawings: TypeAlias = Mapping[str, Callable[..., Picture]]

PAPERS = Path(__file__).resolve().parents[1] / "papers"


def papers() -> list[str]:
    """Names of the papers that can be reproduced."""
    return sorted(file.parent.name for file in PAPERS.glob("*/claims.toml"))


def paper(name: str) -> Paper:
    """Reads the claims of a paper.

    Raises:
        InputError: There is no such paper.
    """
    if name not in papers():
        raise InputError(f"there is no paper `{name}`; there are {', '.join(papers())}")
    return claims.read(PAPERS / name)


def paper_measures(name: str) -> Mapping[str, Measure]:
    """Measures of this paper only: `MEASURES` of the `measures.py` in its folder."""
    if not (PAPERS / name / "measures.py").is_file():
        return {}
    found: Mapping[str, Measure] = import_module(f"cwnd.papers.{name}.measures").MEASURES
    return found


def paper_sides(name: str) -> Mapping[str, Callable[..., list[Sides]]]:
    """Values that this paper's measures of orders compare: `SIDES` of the same file."""
    if not paper_measures(name):
        return {}
    found: Mapping[str, Callable[..., list[Sides]]] = import_module(
        f"cwnd.papers.{name}.measures"
    ).SIDES
    return found


def drawings(name: str) -> Drawings:
    """Functions that draw a paper's figures: `FIGURES` of the `figures.py` in its folder."""
    figures: Drawings = import_module(f"cwnd.papers.{name}.figures").FIGURES
    return figures
