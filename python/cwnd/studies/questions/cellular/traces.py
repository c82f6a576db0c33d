"""Traces of a cellular link: packets pass as a Poisson process of a rate in Brownian motion.

Winstein, Sivaraman, Balakrishnan, *Stochastic Forecasts Achieve High Throughput and Low Delay over
Cellular Networks*, NSDI 2013, § 3.1.
"""

from __future__ import annotations

from dataclasses import dataclass
from random import Random

#: Interval between changes of the rate, as in § 3.2, s.
STEP_S = 0.02
#: The trace repeats after this time, s.
TRACE_S = 60
#: Rate of recovery from an outage, a second (λ_z of § 3.1).
OUTAGE_ENDS_PER_S = 1.0


@dataclass(frozen=True)
class Link:
    """A cellular link, in packets of 1500 bytes."""

    #: Packets a second, at the most and at first.
    most: float
    first: float
    #: Standard deviation of the change in a second, packets a second.
    sigma: float
    seed: int

    def rate(self) -> dict[str, object]:
        """Returns the rate of a scenario's link that follows this one's trace."""
        return {"trace_ms": self.trace(TRACE_S)}

    def trace(self, duration_s: float) -> list[int]:
        """The milliseconds at which a packet may pass: a mahimahi trace."""
        draw = Random(self.seed)  # noqa: S311 - a link, no secret
        rate, passes = self.first, []
        for step in range(round(duration_s / STEP_S)):
            change = draw.gauss(0, self.sigma * STEP_S**0.5)
            if rate > 0:
                rate = max(min(rate + change, self.most), 0)
            elif draw.random() < OUTAGE_ENDS_PER_S * STEP_S:
                rate = min(abs(change), self.most)
            at = step * STEP_S
            while rate > 0 and (at := at + draw.expovariate(rate)) < (step + 1) * STEP_S:
                passes.append(round(at * 1000))
        return passes


#: σ and the most are of the paper, § 3.1; and of a slower link a quarter of them.
LINKS = {
    "fast": Link(most=1000, first=500, sigma=200, seed=1),
    "slow": Link(most=250, first=125, sigma=50, seed=2),
}
