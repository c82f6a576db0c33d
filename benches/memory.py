"""Counts the bytes per flow at the peak of a run, and compares with those accepted before.

Each case is simulated with two numbers of flows; the difference in bytes over that in flows
excludes the memory that does not depend on flows. Valgrind's dhat counts the bytes requested from
the allocator: they are the same each time, while the kernel reports a process's memory in pages.
Flows have a full receive window in flight and lose a fraction `loss`, so that their loss recovery
state exists.
"""

from __future__ import annotations

import re
import sys
from concurrent.futures import ThreadPoolExecutor

from accepted import HERE, Baseline, main, simulate

#: A flow takes 4 to 7 kB and may grow by 2 %: one or two cache lines.
BASELINE = Baseline(
    quantity="bytes per flow",
    path=HERE / "memory.toml",
    head="What a flow may take",
    tolerance=0.02,
    digits=0,
)
#: Numbers of flows. The second is twice the first, so that vectors which double are as full in
#: both.
FLOWS = (100, 200)
#: Each flow has twenty segments in flight.
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
#: Name, preset of the endpoint, and loss probability.
CASES = (
    ("rfc6675", "rfc6675", 0.0),
    ("rfc6675-loss", "rfc6675", 0.01),
    ("linux", "linux", 0.0),
    ("linux-loss", "linux", 0.01),
)


def counts(valgrind: str) -> dict[str, float]:
    """Returns the bytes per flow of each case."""
    with ThreadPoolExecutor() as pool:
        each = pool.map(lambda case: per_flow(valgrind, *case[1:]), CASES)
        return {name: count for (name, *_), count in zip(CASES, each, strict=True)}


def per_flow(valgrind: str, endpoint: str, loss: float) -> float:
    """Returns the bytes per additional flow."""
    few, many = (peak(valgrind, endpoint, loss, count) for count in FLOWS)
    return (many - few) / (FLOWS[1] - FLOWS[0])


def peak(valgrind: str, endpoint: str, loss: float, count: int) -> int:
    """Returns the peak memory of one run, bytes."""
    text = SCENARIO.format(endpoint=endpoint, loss=loss, count=count)
    done = simulate([valgrind, "--tool=dhat", "--dhat-out-file=/dev/null"], text)
    found = re.search(r"At t-gmax: ([\d,]+) bytes", done.stderr)
    if done.returncode != 0 or found is None:
        sys.exit(f"error: {endpoint}, {count} flows: {done.stderr or done.stdout}")
    return int(found[1].replace(",", ""))


if __name__ == "__main__":
    sys.exit(main(__doc__, BASELINE, counts))
