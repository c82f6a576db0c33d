"""Counts the instructions per delivered packet, and compares with those accepted before.

Unlike seconds, instructions are the same on a busy machine and nearly the same on any machine with
the same compiler. Each case is simulated for two durations. The difference in instructions over the
difference in packets excludes the cost of a run's start and end.
"""

from __future__ import annotations

import re
import sys
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import recovery
from accepted import HERE, Baseline, main, simulate
from cwnd import _core

BASELINE = Baseline(
    quantity="instructions per packet",
    path=HERE / "instructions.toml",
    head="What a delivered packet may cost",
    tolerance=0.05,
    digits=1,
)
#: Similar to (b), at a rate for which a short run is enough.
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
    """A scenario, and the two simulated durations."""

    name: str
    scenario: str
    seconds: tuple[float, float]


def small(
    name: str,
    queue: str = '"codel"',
    controller: str = "newreno",
    link: str = "",
    endpoint: str = "rfc6675",
) -> Case:
    """Returns a short scenario with one thing different."""
    text = SMALL.format(name=name, queue=queue, controller=controller, link=link, endpoint=endpoint)
    return Case(name, text, (2, 6))


def bench(name: str, seconds: tuple[int, int]) -> Case:
    """Returns a scenario of the benchmark, shortened."""
    text = (HERE / "scenarios" / f"{name}.toml").read_text(encoding="utf-8")
    return Case(name, text, seconds)


def recovering(
    name: str, case: recovery.Case, stack: str, seconds: tuple[float, float] = (1, 3)
) -> Case:
    """Returns a case of the grid in recovery.py, on a path of a thousand packets."""
    text = recovery.scenario(case, 1_000, stack, seconds[1])
    return Case(name, text, seconds)


def queues() -> list[str]:
    """Returns every queue except the default one and CoDel, which most cases have."""
    (_, *others), most = _core.kinds()["queue"], "codel"
    return [kind for kind, *_ in others if kind != most]


def cases() -> list[Case]:
    """Returns all cases."""
    overshoot = recovery.CASES["overshoot-newreno"]
    bbr = recovery.CASES["loss-bbr"]
    reordering = recovery.Case('"cubic"', recovery.REORDERING)
    return [
        bench("a", (2, 6)),
        bench("b", (2, 3)),
        bench("c", (2, 3)),
        small("cubic", controller="cubic"),
        *(small(kind, queue=f'"{kind}"') for kind in queues()),
        small("loss", link="loss = 0.01"),
        small("linux", controller="cubic", endpoint="linux"),
        small("linux-loss", controller="cubic", endpoint="linux", link="loss = 0.01"),
        # From just before the first drop until a second after the end of the first recovery.
        recovering("overshoot-linux", overshoot, "linux", (0.8, 2.5)),
        recovering("overshoot-freebsd", overshoot, "freebsd", (0.8, 2.7)),
        recovering("bbr-loss-linux", bbr, "linux"),
        recovering("bbr-loss-rfc6675", bbr, "rfc6675"),
        recovering("reordering-linux", reordering, "linux", (2, 4)),
    ]


def counts(valgrind: str) -> dict[str, float]:
    """Returns the instructions per packet of each case."""
    with ThreadPoolExecutor() as pool:
        all_cases = cases()
        each = pool.map(lambda case: per_packet(valgrind, case), all_cases)
        return {case.name: count for case, count in zip(all_cases, each, strict=True)}


def per_packet(valgrind: str, case: Case) -> float:
    """Returns the instructions per additional packet."""
    short, long = (count(valgrind, case, seconds) for seconds in case.seconds)
    return (long[0] - short[0]) / (long[1] - short[1])


def count(valgrind: str, case: Case, seconds: float) -> tuple[int, int]:
    """Returns the instructions and delivered packets of one run."""
    text = re.sub(r'duration = ".*"', f'duration = "{seconds:g} s"', case.scenario)
    options = ["--tool=cachegrind", "--cache-sim=no", "--cachegrind-out-file=/dev/null"]
    done = simulate([valgrind, *options], text)
    instructions = re.search(r"I +refs: +([\d,]+)", done.stderr)
    packets = re.search(r"(\d+) packets", done.stdout)
    if done.returncode != 0 or instructions is None or packets is None:
        sys.exit(f"error: {case.name}: {done.stderr or done.stdout}")
    return int(instructions[1].replace(",", "")), int(packets[1])


if __name__ == "__main__":
    sys.exit(main(__doc__, BASELINE, counts))
