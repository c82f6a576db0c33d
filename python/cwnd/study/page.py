"""Page of a study: its tables, records and images, written into its folder."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cwnd.errors import CwndError, InputError
from cwnd.study import paper_page, tables
from cwnd.study.format import IMAGES, PAGE
from cwnd.study.images import write_images
from cwnd.study.runner import run

if TYPE_CHECKING:
    import os
    from pathlib import Path

    from cwnd.study.format import Study
    from cwnd.study.inputs import Bars


def write(
    study: Study,
    *,
    directory: str | os.PathLike[str] | None = None,
    threads: int | None = None,
    progress: Bars | None = None,
) -> list[Path]:
    """Runs a study, and writes the tables of its page, its records and images.

    Args:
        study: The study.
        directory: Directory of the runs; out/study/NAME if not given.
        threads: Runs at a time; all cores if not given.
        progress: Makes the progress bar of an experiment.

    Returns:
        The written files.

    Raises:
        InputError: The page lacks a block, or Pillow or pyoxipng is not installed.
        CwndError: Runs failed, or a figure could not be drawn.
    """
    page = study.folder / PAGE
    if not study.claims:
        stands = tables.page_text(page, study.tables)
        if faults := tables.page_faults(page, stands, list(study.tables)):
            raise InputError(faults[0])
    found = run(study, directory=directory, threads=threads, progress=progress)
    files = [page]
    for name, text in found.records.items():
        (study.folder / name).write_text(text, encoding="utf-8")
        files.append(study.folder / name)
    if study.claims:
        page.write_text(paper_page.markdown(found, IMAGES), encoding="utf-8")
    else:
        stands = page.read_text(encoding="utf-8")
        page.write_text(tables.replaced(stands, dict(found.tables)), encoding="utf-8")
    files += write_images(found.figures, study.folder / IMAGES)
    if found.undrawn:
        raise CwndError(
            f"{page} is written without {', '.join(found.undrawn)}: the warnings above say why"
        )
    return list(dict.fromkeys(files))
