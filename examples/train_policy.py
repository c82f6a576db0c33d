"""Trains a small congestion controller by evolution, and compares it with CUBIC on other links.

The policy is linear: five numbers give the change of the window once a round trip. CMA-ES finds its
weights on random links in about a minute. Each seed trains a policy of its own, and runs it and
CUBIC on links that training has not seen:

    pip install 'cwnd[gym]'
    python examples/train_policy.py
"""

from __future__ import annotations

import argparse
import time
from typing import TYPE_CHECKING, Any

import cma
import numpy as np

import cwnd
from cwnd.gym import Env, Fact, VectorEnv
from cwnd.results import Estimate
from cwnd.study import interval

if TYPE_CHECKING:
    import polars as pl
    from numpy.typing import NDArray

#: Links of the training: each episode draws a rate, an RTT, a buffer and a loss.
TRAINING = {
    "rate": ("dumbbell.rate", ["4 Mbit/s", "12 Mbit/s", "40 Mbit/s"]),
    "rtt": ("flow.main.rtt", ["15 ms", "45 ms", "120 ms"]),
    "buffer": ("dumbbell.queue.limit", ["0.5 BDP", "2 BDP", "6 BDP"]),
    "loss": ("dumbbell.loss", [0.0, 0.005]),
}
#: Links of the comparison: changes of 20 Mbit/s, 30 ms and a buffer of one BDP.
HELD_OUT: dict[str, dict[str, Any]] = {
    "20 Mbit/s, 30 ms, 1 BDP": {},
    "100 Mbit/s": {"dumbbell.rate": "100 Mbit/s"},
    "90 ms, 0.2 BDP": {"flow.main.rtt": "90 ms", "dumbbell.queue.limit": "0.2 BDP"},
    "10 BDP": {"dumbbell.queue.limit": "10 BDP"},
    "1 % random loss": {"dumbbell.loss": 0.01},
    "beside a flow of CUBIC": {"flow.other.start": "0 s"},
}
EPISODES, STEPS = 24, 150


def act(weights: NDArray[np.float64], seen: NDArray[np.float32]) -> NDArray[np.float64]:
    """Returns the binary logarithm of the factor of the window, -1 to 1.

    The policy observes the queue, losses, the part of the window in flight, and the window.
    """
    rtt, min_rtt = (np.maximum(seen[..., fact], 1e-6) for fact in (Fact.RTT, Fact.MIN_RTT))
    window = seen[..., Fact.WINDOW]
    observed = (
        np.log2(rtt / min_rtt),
        10 * seen[..., Fact.LOSS],
        seen[..., Fact.IN_FLIGHT] / window,
        np.log2(window) / 10,
        np.ones_like(rtt),
    )
    return np.tanh(np.stack(observed, axis=-1) @ weights)[..., None]


def train(seed: int, generations: int) -> NDArray[np.float64]:
    """Returns weights found by CMA-ES; candidates of a generation see the same links."""
    axes = {name: {"path": path, "values": values} for name, (path, values) in TRAINING.items()}
    scenario = cwnd.Scenario(
        run={"duration": "120 s"},
        dumbbell={"rate": "10 Mbit/s", "queue": "fifo"},
        flow={"main": {"rtt": "40 ms"}},
        sweep={"axis": axes},
    )
    env = VectorEnv(scenario, EPISODES)

    def cost(weights: NDArray[np.float64], links: int) -> float:
        seen, _ = env.reset(seed=links)
        total = 0.0
        for _ in range(STEPS):
            seen, rewards, *_ = env.step(act(weights, seen))
            total += float(rewards.mean())
        return -total / STEPS

    search = cma.CMAEvolutionStrategy(np.zeros(5), 0.5, {"seed": seed, "verbose": -9})
    for generation in range(generations):
        found = search.ask()
        search.tell(found, [cost(weights, 1000 * seed + generation) for weights in found])
    return np.asarray(search.mean)


def compare(weights: NDArray[np.float64], seed: int, link: dict[str, Any]) -> list[float]:
    """Returns goodputs in Mbit/s and mean RTTs in ms, each of the policy and of CUBIC."""
    flow = {"rtt": "30 ms", "controller": "cubic", "start": "uniform(0 s, 1 s)"}
    scenario = cwnd.Scenario(
        run={"duration": "30 s"},
        dumbbell={"rate": "20 Mbit/s", "queue": {"kind": "fifo", "limit": "1 BDP"}},
        flow={"main": flow, "other": {**flow, "start": "29.999 s"}},
    )
    env = Env(scenario, agent="main", set=link)
    seen, info = env.reset(seed=seed)
    over = False
    while not over:
        seen, _, _, over, _ = env.step(act(weights, seen))
    both = [env.flows(), cwnd.run(scenario, seed=info["seed"], set=link).flows]
    return [
        *(value(flows, "goodput_bit_s") / 1e6 for flows in both),
        *(value(flows, "rtt_mean_us") / 1e3 for flows in both),
    ]


def value(flows: pl.DataFrame, column: str) -> float:
    """Returns a value of the flow `main`."""
    return float(dict(flows.select("group", column).rows())["main"])


def formatted(values: tuple[float, ...]) -> str:
    """Formats a mean with its 95 % interval."""
    estimate = Estimate.of(values)
    assert estimate is not None
    return interval(estimate.mean, estimate.half_width, 1)


def main() -> None:
    """Trains for each seed, and prints a table."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--generations", type=int, default=40)
    options = parser.parse_args()

    policies = {}
    for seed in range(1, options.seeds + 1):
        began = time.perf_counter()
        policies[seed] = train(seed, options.generations)
        weights = " ".join(f"{weight:.2f}" for weight in policies[seed])
        print(f"seed {seed}: weights {weights} in {time.perf_counter() - began:.0f} s")
    print("| link | goodput, Mbit/s | CUBIC | mean RTT, ms | CUBIC |\n|---|---|---|---|---|")
    for name, link in HELD_OUT.items():
        found = [compare(weights, seed, link) for seed, weights in policies.items()]
        print(f"| {name} |", " | ".join(map(formatted, zip(*found, strict=True))), "|")


if __name__ == "__main__":
    main()
