"""Counts the instructions that a delivered packet takes, and compares with those accepted before.

Unlike seconds, instructions are the same on a busy machine and nearly the same on any machine with
the same compiler. Each case is simulated for two lengths of time; the difference in instructions
over the difference in packets leaves out what a run costs at its start and at its end.
"""

from __future__ import annotations

import argparse
import re
import shutil
import subprocess
import sys
import tempfile
import tomllib
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).resolve().parent
PROGRAM = HERE.parent / "target" / "release" / "examples" / "simulate"
BASELINE = HERE / "instructions.toml"
#: A count may grow by so much before it has to be accepted.
TOLERANCE = 0.05
#: What is like (b), at a rate that a short run is enough for.
SMALL = """
schema = 1
name = "{name}"

[run]
duration = "0 s"
sample = "none"

[dumbbell]
rate = "100 Mbit/s"
queue = {queue}
{link}

[flow.main]
count = 10
rtt = "40 ms"
controller = "{controller}"
endpoint = "{endpoint}"
start = "uniform(0 s, 1 s)"
"""


@dataclass(frozen=True)
class Case:
    """A scenario, and the two lengths of time."""

    name: str
    scenario: str
    seconds: tuple[int, int]


def small(
    name: str,
    queue: str = '"codel"',
    controller: str = "newreno",
    link: str = "",
    endpoint: str = "rfc",
) -> Case:
    """A short scenario with one thing different."""
    text = SMALL.format(name=name, queue=queue, controller=controller, link=link, endpoint=endpoint)
    return Case(name, text, (2, 6))


def bench(name: str, seconds: tuple[int, int]) -> Case:
    """A scenario of the benchmark, shorter."""
    text = (HERE / "scenarios" / f"{name}.toml").read_text(encoding="utf-8")
    return Case(name, text, seconds)


def cases() -> list[Case]:
    """All of them."""
    return [
        bench("a", (2, 6)),
        bench("b", (2, 3)),
        bench("c", (2, 3)),
        small("cubic", controller="cubic"),
        small("red", queue='"red"'),
        small("pie", queue='"pie"'),
        small("fq-codel", queue='"fq-codel"'),
        small("loss", link="loss = 0.01"),
        small("linux", controller="cubic", endpoint="linux"),
        small("linux-loss", controller="cubic", endpoint="linux", link="loss = 0.01"),
    ]


def main() -> int:
    """Counts and compares."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--accept", action="store_true", help="make these counts the baseline")
    options = parser.parse_args()
    valgrind = shutil.which("valgrind")
    if valgrind is None:
        print("skipped: instructions per packet (valgrind is not installed)")
        return 0
    with ThreadPoolExecutor() as pool:
        all_cases = cases()
        counts = dict(
            zip(
                [case.name for case in all_cases],
                pool.map(lambda case: per_packet(valgrind, case), all_cases),
                strict=True,
            )
        )
    accepted = read_baseline()
    show(counts, accepted)
    if options.accept:
        write_baseline(counts)
        return 0
    grown = [name for name, count in counts.items() if count > limit(accepted, name)]
    if grown:
        print(
            f"error: more instructions per packet than were accepted: {', '.join(grown)}; if they"
            " are worth it, run make bench-accept and say why in the commit",
            file=sys.stderr,
        )
    return 1 if grown else 0


def per_packet(valgrind: str, case: Case) -> float:
    """Instructions for each further packet."""
    short, long = (count(valgrind, case, seconds) for seconds in case.seconds)
    return (long[0] - short[0]) / (long[1] - short[1])


def count(valgrind: str, case: Case, seconds: int) -> tuple[int, int]:
    """Instructions and delivered packets of one run."""
    text = re.sub(r'duration = ".*"', f'duration = "{seconds} s"', case.scenario)
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory) / "scenario.toml"
        path.write_text(text, encoding="utf-8")
        command = [
            valgrind,
            "--tool=cachegrind",
            "--cache-sim=no",
            "--cachegrind-out-file=/dev/null",
            str(PROGRAM),
            str(path),
        ]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    instructions = re.search(r"I +refs: +([\d,]+)", done.stderr)
    packets = re.search(r"(\d+) packets", done.stdout)
    if done.returncode != 0 or instructions is None or packets is None:
        sys.exit(f"error: {case.name}: {done.stderr or done.stdout}")
    return int(instructions[1].replace(",", "")), int(packets[1])


def read_baseline() -> dict[str, float]:
    """The accepted counts."""
    if not BASELINE.is_file():
        return {}
    return tomllib.loads(BASELINE.read_text(encoding="utf-8"))["instructions_per_packet"]


def write_baseline(counts: dict[str, float]) -> None:
    """Accepts counts."""
    lines = [f"{name} = {count:.1f}\n" for name, count in counts.items()]
    head = "# What a delivered packet may cost; `make bench-accept` writes it.\n"
    BASELINE.write_text(f"{head}[instructions_per_packet]\n{''.join(lines)}", encoding="utf-8")


def limit(accepted: dict[str, float], name: str) -> float:
    """The highest count that passes; nothing does that was never accepted."""
    return accepted.get(name, 0.0) * (1 + TOLERANCE)


def show(counts: dict[str, float], accepted: dict[str, float]) -> None:
    """Prints a table."""
    print(f"{'instructions per packet':<24} {'now':>8} {'accepted':>9} {'change':>8}")
    for name, now in counts.items():
        before = accepted.get(name)
        change = "" if before is None else f"{100 * (now / before - 1):+.1f} %"
        print(f"{name:<24} {now:>8.1f} {before or 0:>9.1f} {change:>8}")


if __name__ == "__main__":
    sys.exit(main())
