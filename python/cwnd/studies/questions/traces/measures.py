"""The three traces of the TCP*(n) paper: what is drawn, the closed forms, and PackMime's curve.

Draws docs/images/arrivals/traces.png and .svg, and prints the table of docs/reference/arrivals.md.
`make docs` runs this.
"""

from __future__ import annotations

import sys
from pathlib import Path

import polars as pl

import cwnd
from cwnd.figures import Figure, Line, Panel, Picture, line_style
from cwnd.plots import save

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "tests" / "reference"))

import distributions  # noqa: E402 - it is found by the line above

#: Sizes in bytes that responses of ns-2's PackMime-HTTP exceed with these probabilities: its curve
#: of what is no validation (packmime_HTTP_rng.cc, fsize0), which are 66.5 % of its responses.
PACKMIME = {
    0.499: 691,
    0.3325: 2_258,
    0.16625: 8_895,
    0.0665: 20_311,
    0.03325: 35_871,
    0.00665: 93_104,
    0.000665: 604_286,
}
#: Means in bytes, in closed form.
MEANS = {
    "trace-1": distributions.TRACE_2.limited_mean(10e3),
    "trace-2": distributions.TRACE_2_MEAN,
    "trace-3": distributions.TRACE_3_MEAN,
}
IMAGES = ROOT / "docs" / "images" / "arrivals"
TRACES = {
    "trace-1": distributions.at_most(distributions.TRACE_2, 10e3),
    "trace-2": distributions.TRACE_2,
    "trace-3": distributions.TRACE_3,
}


def main() -> None:
    """Draws the figure and prints the table."""
    run = cwnd.run(ROOT / "docs" / "arrivals" / "traces.toml")
    drawn = []
    for index, (name, trace) in enumerate(TRACES.items()):
        of_trace = run.flows.filter(pl.col("group").cast(pl.String) == name)
        xs = [10 ** (1 + i / 40) for i in range(361)]
        colour = line_style.colour(index)
        # A tail falls to none through the end of the axis.
        tail = [max(trace.tail(x), 1e-12) for x in xs]
        drawn.append(Line(xs, tail, colour, label=name))
        sizes, shares = ranks(of_trace["size_bytes"].sort().to_list())
        drawn.append(Line(sizes, shares, colour, joined=False, marker="o", size=1.5))
        sys.stdout.write(f"| {name} | {MEANS[name]:,.0f} | {' | '.join(row(trace))} |\n")
    sizes, shares = list(PACKMIME.values()), list(PACKMIME)
    cross = Line(sizes, shares, "#000000", joined=False, marker="x", hollow=True, size=5.0)
    cross.label = "PackMime-HTTP in ns-2"
    panel = Panel(
        [*drawn, cross],
        x_label="Size (bytes)",
        y_label="Share of transfers that are larger",
        x_log=True,
        y_log=True,
        x_limits=(10, 1e10),
        y_limits=(1e-8, 1.5),
    )
    save(Figure(Picture([panel], 3.1, 5.6)), IMAGES, "traces")


def ranks(drawn: list[int]) -> tuple[list[int], list[float]]:
    """Some of the draws, evenly spaced in the logarithm of the share that is larger."""
    of_rank = {min(len(drawn) - 1, int(len(drawn) * 10 ** (-i / 12))) for i in range(60)}
    sizes = [drawn[len(drawn) - 1 - rank] for rank in sorted(of_rank)]
    return sizes, [max(rank, 0.5) / len(drawn) for rank in sorted(of_rank)]


def row(trace: distributions.Distribution) -> list[str]:
    """Quantiles in bytes, and the share above a gigabyte."""
    quantiles = [quantile(trace, p) for p in (0.5, 0.9, 0.99, 0.999, 0.9999)]
    return [*(f"{q:,.0f}" for q in quantiles), f"{trace.tail(1e9):.1e}"]


def quantile(trace: distributions.Distribution, p: float) -> float:
    """Returns the quantile `p` of a trace, by bisection of the logarithm."""
    low, high = 1.0, 1e12
    while high / low > 1 + 1e-9:
        middle = (low * high) ** 0.5
        low, high = (middle, high) if trace.tail(middle) > 1 - p else (low, middle)
    return high


if __name__ == "__main__":
    main()
