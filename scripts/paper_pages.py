"""Reproduces papers and writes their pages, with small copies of the figures under docs.

`scripts/paper_pages.py` does all of them, `scripts/paper_pages.py becn` one. With `--linux` it runs
nothing, and writes only what was recorded of Linux again: the last part of a page.
"""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

from cwnd import reproduce
from cwnd.reproduce.page import markdown, with_linux
from cwnd.running import bar

ROOT = Path(__file__).resolve().parents[1]


def main() -> int:
    """Writes the pages; runs that are there from before are not simulated again."""
    names = [name for name in sys.argv[1:] if not name.startswith("--")] or reproduce.papers()
    for name in names:
        page = ROOT / "python" / "cwnd" / "papers" / name / "README.md"
        seen = f"../../../../docs/images/papers/{name}"
        if "--linux" in sys.argv:
            written = page.read_text(encoding="utf-8")
            page.write_text(with_linux(written, reproduce.paper(name), seen), encoding="utf-8")
            continue
        found = reproduce.reproduce(name, directory=ROOT / "out" / "reproduce" / name, progress=bar)
        images = ROOT / "docs" / "images" / "papers" / name
        images.mkdir(parents=True, exist_ok=True)
        for file in found.figures:
            if file.suffix == ".png":
                shutil.copyfile(file, images / file.name)
        page.write_text(markdown(found, seen), encoding="utf-8")
        sys.stderr.write(f"{page}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
