"""Counts that valgrind makes of runs, held against those that were accepted before."""

from __future__ import annotations

import argparse
import shutil
import subprocess
import sys
import tempfile
import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

HERE = Path(__file__).resolve().parent
PROGRAM = HERE.parent / "target" / "release" / "simulate"


@dataclass(frozen=True)
class Accepted:
    """Where counts stand that were accepted, and how much more may pass."""

    #: What is counted: `bytes per flow`.
    what: str
    path: Path
    #: What the file begins with.
    head: str
    #: A count may grow by this part of it before it has to be accepted.
    tolerance: float
    #: After the decimal point.
    digits: int

    def read(self) -> dict[str, float]:
        """The accepted counts."""
        if not self.path.is_file():
            return {}
        counts: dict[str, float] = tomllib.loads(self.path.read_text(encoding="utf-8"))[self._key]
        return counts

    def write(self, counts: dict[str, float]) -> None:
        """Accepts counts."""
        lines = [f"{name} = {count:.{self.digits}f}\n" for name, count in counts.items()]
        head = f"# {self.head}; `make bench-accept` writes it.\n"
        self.path.write_text(f"{head}[{self._key}]\n{''.join(lines)}", encoding="utf-8")

    def show(self, counts: dict[str, float], accepted: dict[str, float]) -> None:
        """Prints a table."""
        print(f"{self.what:<24} {'now':>8} {'accepted':>9} {'change':>8}")
        for name, now in counts.items():
            before = accepted.get(name)
            change = "" if before is None else f"{100 * (now / before - 1):+.1f} %"
            columns = f"{now:>8.{self.digits}f} {before or 0:>9.{self.digits}f} {change:>8}"
            print(f"{name:<24} {columns}")

    def grown(self, counts: dict[str, float], accepted: dict[str, float]) -> list[str]:
        """What takes more than may pass; nothing passes that was never accepted."""
        most = {name: accepted.get(name, 0.0) * (1 + self.tolerance) for name in counts}
        return [name for name, count in counts.items() if count > most[name]]

    @property
    def _key(self) -> str:
        return self.what.replace(" ", "_")


def main(about: str | None, kept: Accepted, count: Callable[[str], dict[str, float]]) -> int:
    """Counts with valgrind, whose path `count` is given, and compares, or accepts."""
    parser = argparse.ArgumentParser(description=about)
    parser.add_argument("--accept", action="store_true", help="make these counts the baseline")
    options = parser.parse_args()
    valgrind = shutil.which("valgrind")
    if valgrind is None:
        print(f"skipped: {kept.what} (valgrind is not installed)")
        return 0
    counts, accepted = count(valgrind), kept.read()
    kept.show(counts, accepted)
    if options.accept:
        kept.write(counts)
        return 0
    grown = kept.grown(counts, accepted)
    if grown:
        print(
            f"error: more {kept.what} than were accepted: {', '.join(grown)}; if they are worth"
            " it, run make bench-accept and say why in the commit",
            file=sys.stderr,
        )
    return 1 if grown else 0


def simulate(command: list[str], scenario: str) -> subprocess.CompletedProcess[str]:
    """One run of a scenario under valgrind, which is called like this."""
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory) / "scenario.toml"
        path.write_text(scenario, encoding="utf-8")
        whole = [*command, str(PROGRAM), str(path)]
        return subprocess.run(whole, capture_output=True, text=True, check=False)
