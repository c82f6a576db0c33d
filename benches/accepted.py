"""Comparison of valgrind's counts with those accepted before."""

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
PROGRAM = HERE.parent / "target" / "release" / "bench"


@dataclass(frozen=True)
class Baseline:
    """File of accepted counts, and the growth that is permitted."""

    #: Quantity counted, such as `bytes per flow`.
    quantity: str
    path: Path
    #: First line of the file.
    head: str
    #: Relative growth of a count that needs no acceptance.
    tolerance: float
    #: Digits after the decimal point.
    digits: int

    def read(self) -> dict[str, float]:
        """Returns the accepted counts, none if there is no file."""
        if not self.path.is_file():
            return {}
        counts: dict[str, float] = tomllib.loads(self.path.read_text(encoding="utf-8"))[self._key]
        return counts

    def write(self, counts: dict[str, float]) -> None:
        """Accepts these counts."""
        lines = [f"{name} = {count:.{self.digits}f}\n" for name, count in counts.items()]
        head = f"# {self.head}; `make bench-accept` writes it.\n"
        self.path.write_text(f"{head}[{self._key}]\n{''.join(lines)}", encoding="utf-8")

    def show(self, counts: dict[str, float], accepted: dict[str, float]) -> None:
        """Prints a table of counts and accepted counts."""
        print(f"{self.quantity:<24} {'now':>8} {'accepted':>9} {'change':>8}")
        for name, now in counts.items():
            before = accepted.get(name)
            change = "" if before is None else f"{100 * (now / before - 1):+.1f} %"
            columns = f"{now:>8.{self.digits}f} {before or 0:>9.{self.digits}f} {change:>8}"
            print(f"{name:<24} {columns}")

    def grown(self, counts: dict[str, float], accepted: dict[str, float]) -> list[str]:
        """Returns the cases whose count grew too much or was never accepted."""
        most = {name: accepted.get(name, 0.0) * (1 + self.tolerance) for name in counts}
        return [name for name, count in counts.items() if count > most[name]]

    @property
    def _key(self) -> str:
        return self.quantity.replace(" ", "_")


def main(about: str | None, baseline: Baseline, count: Callable[[str], dict[str, float]]) -> int:
    """Counts with valgrind, whose path `count` gets, and compares or accepts the counts.

    Returns the exit code: 1 if a count grew too much or was never accepted, 0 also without
    valgrind.
    """
    parser = argparse.ArgumentParser(description=about)
    parser.add_argument("--accept", action="store_true", help="make these counts the baseline")
    options = parser.parse_args()
    valgrind = shutil.which("valgrind")
    if valgrind is None:
        print(f"skipped: {baseline.quantity} (valgrind is not installed)")
        return 0
    counts, accepted = count(valgrind), baseline.read()
    baseline.show(counts, accepted)
    if options.accept:
        baseline.write(counts)
        return 0
    grown = baseline.grown(counts, accepted)
    if grown:
        print(
            f"error: more {baseline.quantity} than were accepted: {', '.join(grown)}; if they are"
            " worth it, run make bench-accept and say why in the commit",
            file=sys.stderr,
        )
    return 1 if grown else 0


def simulate(command: list[str], scenario: str) -> subprocess.CompletedProcess[str]:
    """Runs a scenario under valgrind, with this command line."""
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory) / "scenario.toml"
        path.write_text(scenario, encoding="utf-8")
        whole = [*command, str(PROGRAM), "simulate", str(path)]
        return subprocess.run(whole, capture_output=True, text=True, check=False)
