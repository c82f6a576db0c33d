"""Measures steps a second of `cwnd.gym`: one episode, and many of them in one and two threads.

One flow, 10 Mbit/s, 40 ms, a step a round trip, a constant window of one bandwidth-delay product.
The simulation alone is the same run by `Cell.run`. Rows run in turn; each is its fastest turn, as
other programs only slow it down. Two threads are also compared by the CPU time that a step takes,
which other programs hardly change.
"""

from __future__ import annotations

import argparse
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

import cwnd
from cwnd.gym import Env, VectorEnv
from cwnd.running import plan

if TYPE_CHECKING:
    from collections.abc import Callable

#: Window of one bandwidth-delay product, segments.
WINDOW = 34
EPISODES = 256
#: Limits: steps a second of one episode, µs of a step beside its simulation, speed of two threads.
LEAST_STEPS, MOST_US, LEAST_SPEEDUP = 20_000, 25.0, 1.7


@dataclass
class Best:
    """Fastest turn of a row, µs a step."""

    wall_us: float = float("inf")
    cpu_us: float = float("inf")

    def take(self, turn: Callable[[], int]) -> None:
        """Measures a turn, which returns its number of steps."""
        wall, cpu = time.perf_counter(), time.process_time()
        steps = turn()
        self.cpu_us = min(self.cpu_us, (time.process_time() - cpu) / steps * 1e6)
        self.wall_us = min(self.wall_us, (time.perf_counter() - wall) / steps * 1e6)


def main() -> None:
    """Runs the benchmark."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--turns", type=int, default=40)
    turns = parser.parse_args().turns

    scenario = cwnd.Scenario(
        run={"duration": "20 s"},
        dumbbell={"rate": "10 Mbit/s", "queue": "fifo"},
        flow={
            "main": {
                "rtt": "40 ms",
                "controller": "newreno",
                "endpoint": {"initial_window": WINDOW, "max_window": f"{WINDOW * 1448} B"},
            }
        },
    )
    cell = plan(scenario).scenario.cell(0)
    env = Env(scenario)
    hold = np.zeros(1, np.float32)

    def one_episode() -> int:
        env.reset(seed=1)
        steps = 1
        while not env.step(hold)[3]:
            steps += 1
        return steps

    steps = one_episode()

    def simulation() -> int:
        cell.run()
        return steps

    def vector(threads: int) -> Callable[[], int]:
        many = VectorEnv(scenario, EPISODES, threads=threads)
        many.reset(seed=1)
        hold_all = np.zeros((EPISODES, 1))

        def turn() -> int:
            for _ in range(20):
                many.step(hold_all)
            return 20 * EPISODES

        return turn

    rows = {
        "simulation alone": simulation,
        "one episode": one_episode,
        f"{EPISODES} episodes, 1 thread": vector(1),
        f"{EPISODES} episodes, 2 threads": vector(2),
    }
    found = {what: Best() for what in rows}
    for _ in range(turns):
        for what, turn in rows.items():
            found[what].take(turn)
    for what, best in found.items():
        print(
            f"{what:<24} {1e6 / best.wall_us:>9,.0f} steps/s {best.wall_us:>7.2f} µs"
            f" {best.cpu_us:>7.2f} µs of CPU"
        )
    alone, one, single, double = found.values()
    print(f"steps a second           {1e6 / one.wall_us:>9,.0f} (at least {LEAST_STEPS:,})")
    over_us = one.wall_us - alone.wall_us
    print(f"beside the simulation    {over_us:>9.1f} µs (at most {MOST_US:g})")
    speedup = single.wall_us / double.wall_us
    print(f"two threads              {speedup:>9.2f}x (at least {LEAST_SPEEDUP:g})")
    print(f"two threads by CPU time  {2 * single.cpu_us / double.cpu_us:>9.2f}x")


if __name__ == "__main__":
    main()
