"""Counts the bytes that a flow takes at the peak of a run, and compares with those accepted before.

Each case is simulated with two numbers of flows; the difference in bytes over that in flows leaves
out what a run takes whatever its flows. Valgrind's dhat counts what is asked of the allocator: the
same bytes each time, where what the kernel tells of a process comes in pages. Flows have a full
receive window in flight, and lose what `loss` says, so that what they note of it is there.
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
from pathlib import Path

HERE = Path(__file__).resolve().parent
PROGRAM = HERE.parent / "target" / "release" / "examples" / "simulate"
BASELINE = HERE / "memory.toml"
#: A flow may take so much more before it has to be accepted: of 5 kB two cache lines.
TOLERANCE = 0.02
#: Numbers of flows. Twice as many: vectors that double are as full in both.
FLOWS = (100, 200)
#: Twenty segments in flight each.
SCENARIO = """
schema = 1

[run]
duration = "1.2 s"
sample = "none"

[dumbbell]
rate = "10 Gbit/s"
queue = "fifo"
loss = {loss}

[flow.main]
count = {count}
rtt = "100 ms"
controller = "cubic"
endpoint = {{ preset = "{endpoint}", receive_window = "28960 B" }}
start = "uniform(0 s, 0.2 s)"
"""
#: Name, preset of the endpoint, and what is lost.
CASES = (
    ("rfc", "rfc", 0.0),
    ("rfc-loss", "rfc", 0.01),
    ("linux", "linux", 0.0),
    ("linux-loss", "linux", 0.01),
)


def main() -> int:
    """Counts and compares."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--accept", action="store_true", help="make these counts the baseline")
    options = parser.parse_args()
    valgrind = shutil.which("valgrind")
    if valgrind is None:
        print("skipped: memory per flow (valgrind is not installed)")
        return 0
    with ThreadPoolExecutor() as pool:
        each = pool.map(lambda case: per_flow(valgrind, *case[1:]), CASES)
        counts = {name: count for (name, *_), count in zip(CASES, each, strict=True)}
    accepted = read_baseline()
    show(counts, accepted)
    if options.accept:
        write_baseline(counts)
        return 0
    grown = [
        name for name, count in counts.items() if count > accepted.get(name, 0) * (1 + TOLERANCE)
    ]
    if grown:
        print(
            f"error: flows take more memory than was accepted: {', '.join(grown)}; if it is worth"
            " it, run make bench-accept and say why in the commit",
            file=sys.stderr,
        )
    return 1 if grown else 0


def per_flow(valgrind: str, endpoint: str, loss: float) -> float:
    """Bytes for each further flow."""
    few, many = (peak(valgrind, endpoint, loss, count) for count in FLOWS)
    return (many - few) / (FLOWS[1] - FLOWS[0])


def peak(valgrind: str, endpoint: str, loss: float, count: int) -> int:
    """The most bytes of one run at a time."""
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory) / "scenario.toml"
        path.write_text(
            SCENARIO.format(endpoint=endpoint, loss=loss, count=count), encoding="utf-8"
        )
        command = [valgrind, "--tool=dhat", "--dhat-out-file=/dev/null", str(PROGRAM), str(path)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    found = re.search(r"At t-gmax: ([\d,]+) bytes", done.stderr)
    if done.returncode != 0 or found is None:
        sys.exit(f"error: {endpoint}, {count} flows: {done.stderr or done.stdout}")
    return int(found[1].replace(",", ""))


def read_baseline() -> dict[str, int]:
    """The accepted counts."""
    if not BASELINE.is_file():
        return {}
    return tomllib.loads(BASELINE.read_text(encoding="utf-8"))["bytes_per_flow"]


def write_baseline(counts: dict[str, float]) -> None:
    """Accepts counts."""
    lines = [f"{name} = {count:.0f}\n" for name, count in counts.items()]
    head = "# What a flow may take; `make bench-accept` writes it.\n"
    BASELINE.write_text(f"{head}[bytes_per_flow]\n{''.join(lines)}", encoding="utf-8")


def show(counts: dict[str, float], accepted: dict[str, int]) -> None:
    """Prints a table."""
    print(f"{'bytes per flow':<24} {'now':>8} {'accepted':>9} {'change':>8}")
    for name, now in counts.items():
        before = accepted.get(name)
        change = "" if before is None else f"{100 * (now / before - 1):+.1f} %"
        print(f"{name:<24} {now:>8.0f} {before or 0:>9} {change:>8}")


if __name__ == "__main__":
    sys.exit(main())
