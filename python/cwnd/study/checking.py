"""Check of a study: its format, and a repeated part beside its page and records."""

from __future__ import annotations

import csv
import io
from typing import TYPE_CHECKING

from cwnd.study import page as pages
from cwnd.study import registry, tables
from cwnd.study.format import IMAGES, PAGE
from cwnd.study.inputs import Inputs
from cwnd.study.runner import all_experiments, all_figures, check_overrides, computed_tables, run

if TYPE_CHECKING:
    import os
    from collections.abc import Iterable, Sequence

    from cwnd.study.format import Product, Study
    from cwnd.study.inputs import Bars


def faults(study: Study) -> list[str]:
    """Finds faults that show without running anything.

    Each table has a block on the page and a function, each figure a function and an image that the
    page shows; nothing else is there. Tables of recorded files are those of the page.

    Raises:
        InputError: There is no page, or an override is wrong.
        ScenarioError: A scenario is wrong.
    """
    if study.claims and not (study.folder / PAGE).is_file():
        return [f"{study.folder / PAGE} is not there; `cwnd study page {study.folder}` writes it"]
    page = tables.page_text(study.folder / PAGE, study.tables)
    shown = set(tables.images(page))
    # Other pages show those in deeper folders, too.
    there = {file.name for file in (study.folder / IMAGES).glob("*.*")}
    there |= {name for name in shown if (study.folder / IMAGES / name).is_file()}
    figures = all_figures(study)
    own = {name for name, each in study.records.items() if not each.program}
    found = [
        *tables.page_faults(study.folder / PAGE, page, list(study.tables)),
        *_unequal("images of the page", shown, "files", there),
        *_functions(study, "tables", "TABLES", study.tables),
        *_functions(study, "figures", "FIGURES", figures),
        *_functions(study, "records", "RECORDS", own),
        *(
            f"figure `{name}` is not shown by the page"
            for name in figures
            if f"{name}.png" not in shown
        ),
        *(
            f"figure `{name}` has no caption; add `[figure.{name}]` with `caption`"
            for name in figures
            if study.claims and not study.figure(name).caption
        ),
        *(
            f"figure `{name}` has no number; add `number` to `[figure.{name}]`"
            for name in figures
            if study.claims and study.figure(name).label == name
        ),
        *(
            f"record `{name}` is missing"
            for name in study.records
            if not (study.folder / name).is_file()
        ),
    ]
    if study.claims:
        found += [f"the page has no line {line}" for line in pages.stale(page, study)]
    for name in all_experiments(study):
        check_overrides(study, name)
    if not found:
        stands = tables.blocks(page)
        of_files = [name for name, table in study.tables.items() if table.runs]
        for name, lines in computed_tables(study, Inputs(study, {}), of_files).items():
            found += _table_differences(name, lines, stands[name], part=False)
    return found


def _functions(study: Study, what: str, kind: str, names: Iterable[str]) -> list[str]:
    """Faults of products without a function, and of functions without a product."""
    measures = study.folder / "measures.py"
    faults = _unequal(what, names, kind, registry.functions(study, kind))
    return [f"{measures}: {fault}" for fault in faults]


def _unequal(what: str, some: Iterable[str], other: str, others: Iterable[str]) -> list[str]:
    some, others = set(some), set(others)
    return [
        *(f"`{name}` is in {what} and not in {other}" for name in sorted(some - others)),
        *(f"`{name}` is in {other} and not in {what}" for name in sorted(others - some)),
    ]


def check(
    study: Study,
    *,
    directory: str | os.PathLike[str] | None = None,
    threads: int | None = None,
    progress: Bars | None = None,
) -> list[str]:
    """Repeats the samples of a study, and compares with its page and records.

    Args:
        study: The study.
        directory: Directory of the runs; out/study/NAME-sample if not given.
        threads: Runs at a time; all cores if not given.
        progress: Makes the progress bar of an experiment.

    Returns:
        The faults and differences; none if the study is as it says.

    Raises:
        ScenarioError: A scenario cannot be run.
        InputError: There is no page, or code or an override of the study is wrong.
        CwndError: Runs failed.
    """
    found = faults(study)
    if found:
        return found
    sampled = run(study, sample=True, directory=directory, threads=threads, progress=progress)
    page = (study.folder / PAGE).read_text(encoding="utf-8")
    stands = tables.blocks(page)
    for name, lines in sampled.tables.items():
        part = _is_part(study, study.tables[name], sampled.records)
        found += _table_differences(name, lines, stands[name], part=part)
    for name, text in sampled.records.items():
        found += _record_differences(study, name, text)
    return found


def _table_differences(
    name: str, lines: Sequence[str], stands: Sequence[str], *, part: bool
) -> list[str]:
    wrong = tables.differences(lines, stands, part=part)
    found = [f"table `{name}`: the page has no line {each}" for each in wrong]
    if not part and list(lines) != list(stands) and not wrong:
        found.append(f"table `{name}`: the page has more lines, or another order")
    return found


def _record_differences(study: Study, name: str, text: str) -> list[str]:
    stands = (study.folder / name).read_text(encoding="utf-8")
    if not _is_part(study, study.records[name], ()):
        return [] if text == stands else [f"record `{name}` differs"]
    if not name.endswith(".csv"):
        return []
    wrong = tables.differences(_as_table(text), _as_table(stands), part=True)
    return [f"record `{name}`: there is no row {each}" for each in wrong]


def _as_table(text: str) -> list[str]:
    return [tables.line(each) for each in csv.reader(io.StringIO(text))]


def _is_part(study: Study, product: Product, computed: Iterable[str]) -> bool:
    """`True` if a check computes a part of a product: of an experiment, or of a computed record."""
    return any(
        _is_part(study, study.records[name], computed)
        if name in computed
        else not study.is_file(name) and bool(study.experiment(name).sample)
        for name in product.runs
    )
