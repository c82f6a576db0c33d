"""Reproduces papers and writes their pages, with small copies of the figures under docs.

`scripts/paper_pages.py` does all of them, `scripts/paper_pages.py becn` one.
"""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

from cwnd import reproduce
from cwnd.reproduce.page import markdown
from cwnd.running import bar

ROOT = Path(__file__).resolve().parents[1]


def main() -> int:
    """Writes the pages; runs that are there from before are not simulated again."""
    for name in sys.argv[1:] or reproduce.papers():
        found = reproduce.reproduce(name, directory=ROOT / "out" / "reproduce" / name, progress=bar)
        images = ROOT / "docs" / "images" / "papers" / name
        images.mkdir(parents=True, exist_ok=True)
        for file in found.figures:
            if file.suffix == ".png":
                shutil.copyfile(file, images / file.name)
        folder = ROOT / "python" / "cwnd" / "papers" / name
        page = markdown(found, f"../../../../docs/images/papers/{name}")
        (folder / "README.md").write_text(page, encoding="utf-8")
        sys.stderr.write(f"{folder / 'README.md'}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
