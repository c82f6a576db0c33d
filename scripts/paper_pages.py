"""Reproduces papers and writes their pages, with small copies of the figures under docs.

`scripts/paper_pages.py` does all of them, `scripts/paper_pages.py becn` one. With `--linux` the
papers are not simulated: what `cwnd reproduce NAME --on linux` left is recorded, and the section of
the page that is of Linux is written again.
"""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

from cwnd import reproduce
from cwnd.reproduce import recorded
from cwnd.reproduce.page import markdown
from cwnd.reproduce.run import FIGURES
from cwnd.running import LINUX, bar

ROOT = Path(__file__).resolve().parents[1]
RESULTS = ROOT / "out" / "reproduce"
PICTURES = Path("docs") / "images" / "papers"


def main() -> int:
    """Writes the pages; runs that are there from before are not simulated again."""
    arguments = sys.argv[1:]
    names = [each for each in arguments if each != "--linux"] or reproduce.papers()
    for name in names:
        page = _linux(name) if "--linux" in arguments else _all(name)
        sys.stderr.write(f"{page}\n")
    return 0


def _all(name: str) -> Path:
    found = reproduce.reproduce(name, directory=RESULTS / name, progress=bar)
    _take(found.figures, ROOT / PICTURES / name)
    page = found.paper.folder / "README.md"
    page.write_text(markdown(found, _images(name)), encoding="utf-8")
    return page


def _linux(name: str) -> Path:
    place = RESULTS / f"{name}-{LINUX}"
    recorded.record(name, place)
    _take(sorted((place / FIGURES).iterdir()), ROOT / PICTURES / name / LINUX)
    of = reproduce.paper(name)
    page = of.folder / "README.md"
    before = page.read_text(encoding="utf-8").partition(recorded.BEGINS)[0].rstrip("\n")
    section = recorded.section(of, _images(name))
    page.write_text(f"{before}\n\n{section}", encoding="utf-8")
    return page


def _images(name: str) -> str:
    return f"../../../../{(PICTURES / name).as_posix()}"


def _take(files: list[Path] | tuple[Path, ...], place: Path) -> None:
    place.mkdir(parents=True, exist_ok=True)
    for file in files:
        if file.suffix == ".png":
            shutil.copyfile(file, place / file.name)


if __name__ == "__main__":
    sys.exit(main())
