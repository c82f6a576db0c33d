"""Closed forms beside simulations of what they describe.

Every comparison has scenarios, a formula of `cwnd.models`, and a bound on the relative error.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import polars as pl

from cwnd import _core, models
from cwnd.figures import Line, Panel, Picture, line_style
from cwnd.results import Estimate, interval_ends

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from cwnd.results import Run

#: Losses as rare as this leave windows that are large beside a packet.
RARE = 0.001
#: Payload of the segments of all TCP scenarios, bytes.
MSS = 1000


@dataclass(frozen=True)
class Point:
    """One point of the model, and the simulation's estimate there."""

    series: str
    x: float
    model: float
    found: Estimate
    #: `True` if the bound applies; points outside the model's range are drawn hollow.
    judged: bool
    #: Largest relative error allowed, beyond half the confidence interval.
    bound: float

    @property
    def error(self) -> float:
        """The relative error of the simulation's mean."""
        return self.found.mean / self.model - 1

    @property
    def holds(self) -> bool:
        """`True` if the error is within its bound, or if the point is not judged."""
        interval = (self.found.half_width or 0.0) / self.model
        return not self.judged or abs(self.error) <= self.bound + interval


@dataclass(frozen=True)
class Comparison:
    """A closed form beside simulations, and the look of their figure."""

    xlabel: str
    ylabel: str
    points: Callable[[Sequence[Run]], list[Point]]
    #: The model between the points: series → x → y.
    curve: Callable[[str, float], float]
    logarithmic: bool = False

    def caption(self, *runs: Run) -> list[str]:
        """Caption of the figure, with the largest relative error, and points beyond their bound."""
        points = self.points(runs)
        judged = [p for p in points if p.judged]
        text = f"Lines: the model. Points: the simulation. Largest relative error {worst(judged)}"
        if self.logarithmic:
            text += f", of losses up to {RARE:g} {worst([p for p in judged if p.x <= RARE])}"
        text += "."
        seeds = max(p.found.n for p in points)
        if seeds > 1:
            text += f" Means of {seeds} seeds with 95 % confidence intervals."
        hollow = [p for p in points if not p.judged]
        if hollow:
            text += f" Hollow: what the model leaves out, {worst(hollow)}."
        broken = [p for p in points if not p.holds]
        return [f"*{text}*", *(f"Beyond the bound: {worst([each])}." for each in broken)]

    def draw(self, *runs: Run) -> Picture:
        """Model and simulation."""
        points = self.points(runs)
        marks: list[Line] = []
        for index, series in enumerate(dict.fromkeys(p.series for p in points)):
            marks += _series(self, index, [p for p in points if p.series == series])
        intervals = any(p.found.half_width for p in points)
        simulation = "simulation, 95 % confidence" if intervals else "simulation"
        marks.append(Line([], [], GREY, label="model"))
        marks.append(Line([], [], GREY, joined=False, marker="o", label=simulation))
        panel = Panel(marks, x_label=self.xlabel, y_label=self.ylabel)
        panel.x_log = panel.y_log = self.logarithmic
        return Picture([panel], 3.1, 5.6)


def worst(points: list[Point]) -> str:
    """The point with the largest relative error, in words."""
    point = max(points, key=lambda p: abs(p.error))
    return f"{percent(point.error)} ({point.series}, at {point.x:g})"


def percent(share: float) -> str:
    """Formats a relative error: `+1.5 %`."""
    return f"{100 * share:+.1f} %".replace("-", "−")


def cells(run: Run) -> Iterable[tuple[dict[str, Any], pl.DataFrame, pl.DataFrame]]:
    """Each point of a sweep: its scenario, its flows and its links, of all seeds together."""
    rows = list(zip(run.runs.iter_rows(named=True), run.resolved, strict=True))
    grouped: dict[tuple[str, ...], list[int]] = {}
    for index, (row, _) in enumerate(rows):
        grouped.setdefault(tuple(row[c] for c in run.axis_columns), []).append(index)
    for members in grouped.values():
        ids = [rows[i][0]["run_id"] for i in members]
        mine = pl.col("run_id").is_in(ids)
        resolved = _core.read_toml(rows[members[0]][1], name="resolved")
        yield resolved, run.flows.filter(mine), run.links.filter(mine)


def per_seed(frame: pl.DataFrame, value: pl.Expr) -> Estimate:
    """The mean over seeds of the mean over the rows of each."""
    values = frame.group_by("run_id", maintain_order=True).agg(value.mean().alias("v"))["v"]
    distinct = values.to_list()
    estimate = Estimate.of(distinct)
    if estimate is None:
        raise ValueError("a comparison without a run")
    return estimate


def seconds(text: str) -> float:
    """A resolved duration in seconds."""
    number, unit = text.split()
    return float(number) * {"s": 1.0, "ms": 1e-3, "us": 1e-6, "ns": 1e-9}[unit]


def delivered_window(rtt_s: float) -> pl.Expr:
    """Packets delivered per round trip."""
    return pl.col("goodput_bit_s") / 8 / MSS * rtt_s


# Mathis et al. -----------------------------------------------------------------------------------


def mathis_c(series: str) -> float:
    """C of a series: table 1 of the paper, over √b."""
    c = models.MATHIS_PERIODIC if series.startswith("periodic") else models.MATHIS_RANDOM
    return c / 2**0.5 if series.endswith("second") else c


def mathis_points(runs: Sequence[Run]) -> list[Point]:
    """Packets per round trip against p."""
    points = []
    for run in runs:
        for scenario, flows, _ in cells(run):
            link, flow = scenario["dumbbell"], scenario["flow"]["main"]
            every = link["loss_every"]
            p = link["loss"] if every == "none" else 1 / every
            pattern = "random loss" if every == "none" else "periodic loss"
            acks = {1: "every packet", 2: "every second"}[flow["endpoint"]["ack_every"]]
            series = f"{pattern}, ACK for {acks}"
            found = per_seed(flows, delivered_window(seconds(flow["rtt"])))
            bound = MATHIS_BOUND * p**0.5
            points.append(
                Point(series, p, models.mathis_window(p, mathis_c(series)), found, True, bound)
            )
    return points


#: Times √p: a tooth lasts 0.82·√(b/p) round trips, and up to three of them (the round of the loss,
#: the recovery, the first delayed ACK after it) are not in the model.
MATHIS_BOUND = 2.5

MATHIS = Comparison(
    xlabel="Loss probability p",
    ylabel="Window (packets per RTT)",
    points=mathis_points,
    curve=lambda series, p: models.mathis_window(p, mathis_c(series)),
    logarithmic=True,
)

# Padhye et al. -----------------------------------------------------------------------------------

#: Round-trip time and first timeout of padhye.toml, s.
PADHYE_RTT, PADHYE_TIMEOUT = 0.1, 1.0
#: The model takes windows for real numbers and rounds for independent; its authors find errors of
#: this size between model and measurements (§ 3).
PADHYE_BOUND = 0.15


def padhye_rate(series: str, p: float) -> float:
    """The model for a series."""
    b = 2 if series.endswith("second packet") else 1
    return models.padhye_throughput(p, PADHYE_RTT, PADHYE_TIMEOUT, b)


def padhye_points(runs: Sequence[Run]) -> list[Point]:
    """Packets sent per second against p."""
    points = []
    for scenario, flows, _ in cells(runs[0]):
        p = scenario["dumbbell"]["loss"]
        b = scenario["flow"]["main"]["endpoint"]["ack_every"]
        series = {1: "ACK for every packet", 2: "ACK for every second packet"}[b]
        found = per_seed(flows, pl.col("segments_sent") / pl.col("duration_s"))
        points.append(Point(series, p, padhye_rate(series, p), found, True, PADHYE_BOUND))
    return points


PADHYE = Comparison(
    xlabel="Loss probability p",
    ylabel="Sending rate (packets/s)",
    points=padhye_points,
    curve=padhye_rate,
    logarithmic=True,
)

# The saw-tooth -----------------------------------------------------------------------------------

#: The path holds 125 packets: the fluid limit is off by about one of them.
SAW_TOOTH_BOUND = 0.01


def saw_tooth_points(runs: Sequence[Run]) -> list[Point]:
    """Utilisation against the buffer."""
    points = []
    for scenario, _, links in cells(runs[0]):
        buffer = float(scenario["dumbbell"]["queue"]["limit"].removesuffix(" BDP"))
        beta = scenario["flow"]["main"]["controller"]["beta"]
        found = per_seed(links.filter(pl.col("link") == "bottleneck"), pl.col("utilisation"))
        model = models.utilisation(beta, buffer)
        points.append(Point(f"β = {beta}", buffer, model, found, True, SAW_TOOTH_BOUND))
    return points


SAW_TOOTH = Comparison(
    xlabel="Buffer, in bandwidth-delay products",
    ylabel="Utilisation",
    points=saw_tooth_points,
    curve=lambda series, buffer: models.utilisation(float(series.removeprefix("β = ")), buffer),
)

# CUBIC -------------------------------------------------------------------------------------------

#: A window that is off by a share x comes nearer by 0.7·x³ a cycle, so that x = 12 % after slow
#: start is still 9 % after 40 cycles.
CUBIC_BOUND = 0.1
#: Bound times √p, but at least 3 %: recovery is not in the model.
CUBIC_RENO_BOUND = 2.0


def cubic_points(runs: Sequence[Run]) -> list[Point]:
    """Packets per round trip against p."""
    points = []
    for scenario, flows, _ in cells(runs[0]):
        flow = scenario["flow"]["main"]
        rtt_s, p = seconds(flow["rtt"]), 1 / scenario["dumbbell"]["loss_every"]
        fast = flow["controller"]["fast_convergence"]
        series = f"RTT {1000 * rtt_s:.0f} ms{', fast convergence' if fast else ''}"
        reno = models.cubic_window(p, rtt_s) < models.reno_friendly_window(p)
        bound = max(CUBIC_RENO_BOUND * p**0.5, 0.03) if reno else CUBIC_BOUND
        found = per_seed(flows, delivered_window(rtt_s))
        model = models.response_window(p, rtt_s)
        points.append(Point(series, p, model, found, not fast, bound))
    return points


def cubic_curve(series: str, p: float) -> float:
    """The model for a series."""
    return models.response_window(p, float(series.split()[1]) / 1000)


CUBIC = Comparison(
    xlabel="Loss probability p",
    ylabel="Window (packets per RTT)",
    points=cubic_points,
    curve=cubic_curve,
    logarithmic=True,
)

# M/D/1 -------------------------------------------------------------------------------------------

#: Bound beyond the confidence interval: waits are whole nanoseconds, the rate is exact.
MD1_BOUND = 0.005
#: Service time of md1.toml, s.
MD1_SERVICE = 0.001


def md1_points(runs: Sequence[Run]) -> list[Point]:
    """Mean wait against the load."""
    points = []
    for scenario, _, links in cells(runs[0]):
        number, unit = scenario["flow"]["main"]["workload"]["rate"].split()
        load = float(number) * {"kbit/s": 1e3, "Mbit/s": 1e6}[unit] / 8e6
        link = links.filter(pl.col("link") == "bottleneck")
        found = per_seed(link, pl.col("qdelay_mean_us") / 1000)
        model = 1000 * models.md1_wait(load, MD1_SERVICE)
        points.append(Point("M/D/1", load, model, found, True, MD1_BOUND))
    return points


MD1 = Comparison(
    xlabel="Load ρ",
    ylabel="Mean wait (ms)",
    points=md1_points,
    curve=lambda _, load: 1000 * models.md1_wait(load, MD1_SERVICE),
)

# M/G/1 with processor sharing --------------------------------------------------------------------

#: The link sends packets and not fluid: a response ends up to a round of turns late, a packet of
#: each transfer that is there, ρ/(1 − ρ) on the mean. Of the response time, x/(C·(1 − ρ)), that is
#: ρ in 69, the packets of a mean response.
PS_BOUND = 0.015
#: Mean size of the responses of ps.toml and ps-tcp.toml on the wire, bit, and rate of the link.
PS_BITS, PS_RATE = 100_000 * (1448 + 52) / 1448 * 8, 20e6
#: Their round-trip times: the handshake takes one, the request and the first byte another, s.
PS_RTT, PS_TCP_RTT = 0.001, 0.02


def ps_time(rtt_s: float, load: float) -> float:
    """The mean response time, ms."""
    return 1000 * (2 * rtt_s + models.ps_response(PS_BITS, PS_RATE, load))


def ps_points(runs: Sequence[Run]) -> list[Point]:
    """Mean response time against the load."""
    points = []
    for run, rtt_s in zip(runs, (PS_RTT, PS_TCP_RTT), strict=True):
        times = run.per_run().group_by(run.axis_columns, maintain_order=True)
        for (series, label), rows in times:
            found = Estimate.of([1000 * each for each in rows["response_mean_s"]])
            assert found is not None
            load = float(str(label))
            model = ps_time(rtt_s, load)
            judged = rtt_s == PS_RTT
            points.append(Point(str(series), load, model, found, judged, PS_BOUND))
    return points


PS = Comparison(
    xlabel="Load ρ",
    ylabel="Mean response time (ms)",
    points=ps_points,
    curve=lambda _, load: ps_time(PS_RTT, load),
)

COMPARISONS = {
    "mathis": MATHIS,
    "padhye": PADHYE,
    "saw-tooth": SAW_TOOTH,
    "cubic": CUBIC,
    "md1": MD1,
    "ps": PS,
}
TABLES = {name: each.caption for name, each in COMPARISONS.items()}
FIGURES = {name: each.draw for name, each in COMPARISONS.items()}

#: Points of a model's line.
STEPS = 200
GREY = "#777777"


def _series(comparison: Comparison, index: int, points: list[Point]) -> list[Line]:
    """The model's line and the simulation's points; these alone, hollow, where it has no model."""
    points = sorted(points, key=lambda p: p.x)
    judged = all(p.judged for p in points)
    label, colour, marker = points[0].series, line_style.colour(index), line_style.marker(index)
    found = Line([p.x for p in points], [p.found.mean for p in points], colour, joined=False)
    found.interval = interval_ends(p.found for p in points)
    found.marker, found.hollow = marker, not judged
    if not judged:
        found.label = label
        return [found]
    start, end = points[0].x, points[-1].x
    steps = [i / STEPS for i in range(STEPS + 1)]
    if comparison.logarithmic:
        xs = [start * (end / start) ** s for s in steps]
    else:
        xs = [start + (end - start) * s for s in steps]
    dashes = line_style.dashes(index)
    model = Line(xs, [comparison.curve(label, x) for x in xs], colour, dashes=dashes)
    # The legend has a line through a marker.
    key = Line([], [], colour, dashes=dashes, marker=marker, label=label)
    return [key, model, found]
