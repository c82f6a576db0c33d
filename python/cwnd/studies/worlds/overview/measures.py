"""Counts of all comparisons of the worlds: by group, before and after a change, and of papers."""

from __future__ import annotations

import json
from itertools import product
from typing import TYPE_CHECKING

import polars as pl

from cwnd.store import LINUX
from cwnd.study import module, studies, study
from cwnd.study.agreement import tables

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from cwnd.study import Study


def groups() -> list[Study]:
    """Studies of comparisons, in the order of their `ORDER`."""
    names = [name for name in studies("worlds") if name != "worlds/overview"]
    found = [study(name) for name in names]
    return sorted(found, key=lambda of: (module(of, "measures").ORDER, of.name))


def read(file: Path) -> pl.DataFrame:
    """Reads a recorded table."""
    return pl.read_csv(file, infer_schema_length=None)


def of_papers() -> list[Path]:
    """Recorded tables of papers' figures on Linux."""
    folders = [study(name).folder / LINUX for name in studies("papers")]
    return [file for folder in folders for file in sorted(folder.glob("*.csv"))]


def by_group() -> list[str]:
    """A row for each group, by all runs of each point."""
    lines = [
        "| by all runs of each point | goodput or completion time | goal | timeouts | gains |",
        "|---|---:|---:|---:|---:|",
    ]
    for of in groups():
        recorded = [read(of.folder / name) for name in of.tables["verdict"].runs]
        rows = [row for table in recorded for row in tables.best(table)]
        decides, timeouts, gains = (
            tables.within(found, share=True) if (found := list(filter(chosen, rows))) else "–"
            for chosen in (tables.decides, tables.is_timeouts, tables.is_gain)
        )
        title, goal = f"[{of.title}](../{of.name}/page.md)", module(of, "measures").GOAL
        lines.append(f"| {title} | {decides} | {100 * goal:g} % | {timeouts} | {gains} |")
    return lines


def reseeded(counts: pl.DataFrame) -> list[str]:
    """Counts within tolerances before noise and recovery changed and after."""
    lines = [
        "| within their tolerances | of | before | ten seedings | now, `none` | now, `path` |"
        " ten seedings |",
        "|---|" + "---:|" * 6,
    ]
    parts = [(of.title, list(of.figures)) for of in groups()]
    papers = [f"{file.parents[1].name}-{file.stem}" for file in of_papers()]
    parts.append(("Figures of papers", papers))
    for (title, names), what in product(parts, ("goodput", "timeouts", "gains")):
        mine = counts.filter(pl.col("set").is_in(names), what=what)
        if mine.is_empty():
            continue
        before, none, path = (_sums(mine.filter(noise=n)["within"]) for n in ("-", "none", "path"))
        points = mine.filter(noise="path")["points"].sum()
        off = " **✗**" if path[0] < min(before) else ""
        lines.append(
            f"| {title}: {what} | {points} | {before[0]} | {_range(before)} | {none[0]} |"
            f" {path[0]}{off} | {_range(path)} |"
        )
    return lines


def _sums(counts: Iterable[str]) -> list[int]:
    """Counts of several comparisons together, seeding by seeding."""
    return [sum(map(int, of)) for of in zip(*(each.split() for each in counts), strict=True)]


def _range(counts: list[int]) -> str:
    return f"{min(counts)} to {max(counts)}, {sum(counts) / len(counts):.1f}"


def figures_of_papers() -> list[str]:
    """A row for each figure of a paper that ran in both worlds."""
    lines = [
        "| paper | figure | goodput within 10 % | farthest apart | there | simulator |",
        "|---|---|---:|---|---:|---|",
    ]
    for file in of_papers():
        paper = study(file.parents[1])
        kept = json.loads((file.parent / "claims.json").read_text(encoding="utf-8"))
        rows = [row for row in tables.best(read(file)) if tables.decides(row)]
        worst = max(rows, key=lambda row: abs(row["difference_percent"]))
        place = ", ".join(tables.key_of(worst, tables.axes_of(rows)))
        lines.append(
            f"| [{paper.name}](../../papers/{paper.name}/page.md)"
            f" | {paper.figure(file.stem).label} | {tables.within(rows)} | {place}"
            f" | {worst['difference_percent']:+.1f} % | {kept['engines'][file.stem]} |"
        )
    return lines


TABLES = {"groups": by_group, "reseeded": reseeded, "papers": figures_of_papers}
