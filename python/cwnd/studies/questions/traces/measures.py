"""The three traces of the TCP*(n) paper: closed forms, draws, and PackMime's curve."""

from __future__ import annotations

from math import erfc, exp, log
from typing import TYPE_CHECKING

import polars as pl

from cwnd.figures import Line, Panel, Picture, line_style
from cwnd.study import table

if TYPE_CHECKING:
    from collections.abc import Callable

    from cwnd.results import Run

#: Sizes in bytes that responses of ns-2's PackMime-HTTP exceed with these probabilities: its curve
#: of responses without validation (packmime_HTTP_rng.cc, fsize0), 66.5 % of all.
PACKMIME = {
    0.499: 691,
    0.3325: 2_258,
    0.16625: 8_895,
    0.0665: 20_311,
    0.03325: 35_871,
    0.00665: 93_104,
    0.000665: 604_286,
}
#: Shares, medians in bytes and σ of the log-normal parts; share, α and scale of the Pareto part.
LOGNORMAL = ((0.335, 145.0, 0.3), (0.565, 1600.0, 1.3))
PARETO = (0.1, 1.23, 9000.0)
#: Trace-I is truncated here; Trace-III replaces a share below a limit by exponential sizes.
MOST = 10e3
BELOW, REPLACED, LONG = 4999.5, 0.01, 10e6


def _normal_tail(z: float) -> float:
    return erfc(z / 2**0.5) / 2


def trace_2(x: float) -> float:
    """P(X > x) of Trace-II."""
    share, alpha, scale = PARETO
    tails = (part * _normal_tail(log(x / median) / sigma) for part, median, sigma in LOGNORMAL)
    return sum(tails) + share * float(min(1.0, (scale / x) ** alpha))


def trace_1(x: float) -> float:
    """P(X > x) of Trace-I."""
    return trace_2(x) if x < MOST else 0.0


def trace_3(x: float) -> float:
    """P(X > x) of Trace-III."""
    kept = trace_2(x) - REPLACED * max(0.0, trace_2(x) - trace_2(BELOW))
    return kept + REPLACED * (1 - trace_2(BELOW)) * exp(-x / LONG)


def limited_mean(most: float) -> float:
    """E[min(X, most)] of Trace-II."""
    share, alpha, scale = PARETO
    mean = share * scale
    if most > scale:
        mean += share * scale * (1 - (scale / most) ** (alpha - 1)) / (alpha - 1)
    elif most < scale:
        mean = share * most
    for part, median, sigma in LOGNORMAL:
        z = log(most / median) / sigma
        inner = median * exp(sigma**2 / 2) * (1 - _normal_tail(z - sigma))
        mean += part * (inner + most * _normal_tail(z))
    return mean


TRACES: dict[str, tuple[str, Callable[[float], float], float]] = {
    "trace-1": ("Trace I", trace_1, limited_mean(MOST)),
    "trace-2": ("Trace II", trace_2, limited_mean(1e30)),
    "trace-3": (
        "Trace III",
        trace_3,
        limited_mean(1e30)
        - REPLACED * (limited_mean(BELOW) - BELOW * trace_2(BELOW))
        + REPLACED * (1 - trace_2(BELOW)) * LONG,
    ),
}


def quantiles() -> list[str]:
    """Means and quantiles in bytes, and the share above a gigabyte."""
    shares = {"Median": 0.5, "90 %": 0.9, "99 %": 0.99, "99.9 %": 0.999, "99.99 %": 0.9999}
    rows = []
    for title, tail, mean in TRACES.values():
        above = f"{tail(1e9):.1e}".replace("e-08", "·10⁻⁸") if tail(1e9) else "0"
        found = (quantile(tail, p) for p in shares.values())
        rows.append([title, *(f"{size:,.0f}" for size in (mean, *found)), above])
    return table(["", "Mean (B)", *shares, "above 1 GB"], rows)


def quantile(tail: Callable[[float], float], p: float) -> float:
    """Returns the quantile `p`, by bisection of the logarithm."""
    low, high = 1.0, 1e12
    while high / low > 1 + 1e-9:
        middle = (low * high) ** 0.5
        low, high = (middle, high) if tail(middle) > 1 - p else (low, middle)
    return high


def draw(run: Run) -> Picture:
    """Shares of transfers larger than a size: closed forms, draws and PackMime."""
    drawn = []
    xs = [10 ** (1 + i / 40) for i in range(361)]
    for index, (name, (_, tail, _)) in enumerate(TRACES.items()):
        of_trace = run.flows.filter(pl.col("group").cast(pl.String) == name)
        colour = line_style.colour(index)
        # A tail falls to none through the end of the axis.
        drawn.append(Line(xs, [max(tail(x), 1e-12) for x in xs], colour, label=name))
        sizes, shares = ranks(of_trace["size_bytes"].sort().to_list())
        drawn.append(Line(sizes, shares, colour, joined=False, marker="o", size=1.5))
    sizes, shares = list(PACKMIME.values()), list(PACKMIME)
    cross = Line(sizes, shares, "#000000", joined=False, marker="x", hollow=True, size=5.0)
    cross.label = "PackMime-HTTP in ns-2"
    panel = Panel([*drawn, cross], x_log=True, y_log=True, x_limits=(10, 1e10))
    panel.x_label, panel.y_label = "Size (bytes)", "Share of transfers that are larger"
    panel.y_limits = (1e-8, 1.5)
    return Picture([panel], 3.1, 5.6)


def ranks(drawn: list[int]) -> tuple[list[int], list[float]]:
    """Some of the draws, evenly spaced in the logarithm of the share that is larger."""
    of_rank = {min(len(drawn) - 1, int(len(drawn) * 10 ** (-i / 12))) for i in range(60)}
    sizes = [drawn[len(drawn) - 1 - rank] for rank in sorted(of_rank)]
    return sizes, [max(rank, 0.5) / len(drawn) for rank in sorted(of_rank)]


TABLES = {"quantiles": quantiles}
FIGURES = {"traces": draw}
