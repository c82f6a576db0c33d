"""Repeats a paper's figures on Linux: `cwnd study run papers/NAME --record linux/claims.json`.

The simulator's side, with its pictures and numbers, is repeated beside what is recorded of Linux.
With `--on linux`, as root and in real time, both worlds run, as by `cwnd reproduce NAME --on
linux`. The last part of the page is written again.
"""

from __future__ import annotations

import json
import shutil
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from cwnd.running import bar
from cwnd.store import LINUX, load
from cwnd.study import images, linux, page, paper, reproduce_on_linux
from cwnd.study.agreement import SIMULATOR, TABLE, renew

if TYPE_CHECKING:
    from collections.abc import Sequence


def main(arguments: Sequence[str]) -> None:
    """Runs the figures, and keeps their tables, pictures, outcomes and engines."""
    kept = Path(arguments[0])
    study = paper(kept.parents[1].name)
    runs = Path("out") / "reproduce" / f"{study.name}-{LINUX}"
    tables = {name: kept.with_name(f"{name}.csv") for name in linux.available(study)}
    pictures: list[Path] = []
    if LINUX in arguments:
        found = reproduce_on_linux(study.name, directory=runs, progress=bar)
        shutil.copy(runs / kept.name, kept)
        for figure in found.figures:
            shutil.copy(figure.agreement.directory / TABLE, tables[figure.name])
            pictures += figure.files
    else:
        for name, table in tables.items():
            directory = runs / name / SIMULATOR
            renew(kept.with_name(f"{name}.toml"), table, directory)
            pictures += linux.draw(study, name, {SIMULATOR: load(directory)}, runs)
    for picture in pictures:
        name, _, world = picture.stem.rpartition("-")
        if picture.suffix == ".png":
            pair = study.folder / "images" / LINUX / f"{name}.png"
            images.write_half(picture.read_bytes(), pair, (SIMULATOR, LINUX).index(world))
    engines = {name: load(runs / name / SIMULATOR).manifest.engine for name in tables}
    outcomes = json.loads(kept.read_text(encoding="utf-8"))
    if LINUX not in arguments:
        simulated = {
            each: load(runs / name / SIMULATOR)
            for name in tables
            for each in linux.drawn_from(study, name)
        }
        outcomes = linux.with_simulator(study, outcomes, simulated)
    text = json.dumps(outcomes | {"engines": engines}, indent=2, ensure_ascii=False)
    kept.write_text(f"{text}\n", encoding="utf-8")
    page.write_linux(study)


if __name__ == "__main__":
    main(sys.argv[1:])
