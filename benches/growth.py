"""Measures the growth of cost: CPU time per delivered packet and memory, by scenario size.

Each axis enlarges one thing at constant load per part: flows of several controllers, flows with
their own round-trip times, links side by side, links in a row, packets in a queue. Each point runs
twice, in separate processes: for the first seconds, and for some more. The difference is the cost
after the start and its losses, whatever the size. `--million` adds a million short flows,
`--figure FILE` draws a figure.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from cwnd.figures import Figure, Line, Panel, Picture, line_style
from cwnd.study.images import palette_png
from run import measure_file, progress

if TYPE_CHECKING:
    from collections.abc import Callable

#: Least number of packets that a point delivers in the seconds that count.
PACKETS = 2_000_000
#: Simulated time before them, s: all flows have started, and slow start is over.
START_S = 4.0
#: Packets of 1500 bytes per second of a flow of 1 Mbit/s.
FLOW = 1e6 / 8 / 1500
#: Least simulated time that counts, s.
SHORTEST_S = 4.0
#: Limits: CPU time in s and memory in bytes of a million flows.
MILLION_CPU_S, MILLION_BYTES = 60.0, 4e9
#: Limit: memory of an idle flow, bytes.
IDLE_FLOW_BYTES = 2000
IDLE_FLOWS = 100_000


@dataclass(frozen=True)
class Axis:
    """A quantity that grows from point to point."""

    name: str
    label: str
    sizes: tuple[int, ...]
    #: Returns the scenario of a size and a duration.
    scenario: Callable[[int, float], str]
    #: Approximate number of packets that a size delivers per second.
    packets_per_s: Callable[[int], float]
    #: Number of links that a packet crosses, by which the time is divided.
    links: Callable[[int], int] = lambda _: 1
    #: True if the figure has a curve for it; there is no room for all.
    drawn: bool = True


@dataclass(frozen=True)
class Point:
    """Cost of one size."""

    size: int
    delivered_packets: int
    ns_per_packet: float
    peak_bytes: int


def run_table(duration_s: float) -> str:
    """Returns the `[run]` section."""
    return f'schema = 1\n[run]\nduration = "{duration_s:g} s"\nsample = "none"\n'


def flows(rtt: str) -> Callable[[int, float], str]:
    """Returns a dumbbell with 1 Mbit/s per flow."""

    def scenario(count: int, duration_s: float) -> str:
        return run_table(duration_s) + (
            f'[dumbbell]\nrate = "{count} Mbit/s"\nqueue = "codel"\n'
            f'[flow.main]\ncount = {count}\nrtt = "{rtt}"\n'
            'endpoint = { preset = "rfc6675", recovery = "sack" }\nstart = "uniform(0 s, 1 s)"\n'
        )

    return scenario


def source_quenched(count: int, duration_s: float) -> str:
    """Returns a dumbbell with RED (2 and 6 packets per flow) whose flows get source quenches."""
    least, most = f"{2 * count} packets", f"{6 * count} packets"
    queue = f'kind = "red", ecn = true, min_th = "{least}", max_th = "{most}"'
    return run_table(duration_s) + (
        f'[dumbbell]\nrate = "{count} Mbit/s"\nmessenger = "quench"\n'
        f'queue = {{ {queue}, limit = "{20 * count} packets" }}\n'
        f'[flow.main]\ncount = {count}\nrtt = "100 ms"\nstart = "uniform(0 s, 1 s)"\n'
        'endpoint = { preset = "rfc6675", ecn = true, obey_ece = false, echo = "none",'
        " obey_quench = true }\n"
    )


def delay_based(
    rate_mbit: float, controller: str, queue: Callable[[int], int]
) -> Callable[[int, float], str]:
    """Returns flows with delay-based control, over a queue of `queue(count)` packets."""

    def scenario(count: int, duration_s: float) -> str:
        return run_table(duration_s) + (
            f'[dumbbell]\nrate = "{count * rate_mbit:g} Mbit/s"\n'
            f'queue = {{ kind = "fifo", limit = "{queue(count)} packets" }}\n'
            f'[flow.main]\ncount = {count}\nrtt = "100 ms"\nstart = "uniform(0 s, 1 s)"\n'
            f"controller = {controller}\n"
            'endpoint = { preset = "rfc6675", ack_every = 1, clock = "1 us", initial_window = 2 }\n'
        )

    return scenario


def explicit_feedback(kind: str, meter: str, echo: str) -> Callable[[int, float], str]:
    """Returns flows with explicit feedback, over a FIFO of one BDP."""

    def scenario(count: int, duration_s: float) -> str:
        return run_table(duration_s) + (
            f'[dumbbell]\nrate = "{count} Mbit/s"\nmeter = "{meter}"\n'
            'queue = { kind = "fifo", limit = "1 BDP" }\nbdp_rtt = "100 ms"\n'
            f'[flow.main]\ncount = {count}\nrtt = "100 ms"\nstart = "uniform(0 s, 1 s)"\n'
            f'controller = "{kind}"\n'
            'endpoint = { preset = "rfc6675", ecn = true, obey_ece = false,'
            f' echo = "{echo}" }}\n'
        )

    return scenario


def link(name: str, ends: tuple[str, str], rate: str) -> str:
    """Returns a link and its reverse."""
    return (
        f'[link.{name}]\nfrom = "{ends[0]}"\nto = "{ends[1]}"\nrate = "{rate}"\n'
        'delay = "5 ms"\nqueue = "codel"\nduplex = true\n'
    )


def side_by_side(count: int, duration_s: float) -> str:
    """Returns links of 10 Mbit/s with one flow each."""
    text = run_table(duration_s)
    for i in range(count):
        text += link(f"l{i}", (f"a{i}", f"b{i}"), "10 Mbit/s")
        text += (
            f'[flow.f{i}]\nfrom = "a{i}"\nto = "b{i}"\nedge_rtt = "40 ms"\nendpoint = "rfc6675"\n'
        )
    return text


def in_a_row(count: int, duration_s: float) -> str:
    """Returns ten flows through a whole chain of links."""
    text = run_table(duration_s)
    for i in range(count):
        text += link(f"l{i}", (f"n{i}", f"n{i + 1}"), "100 Mbit/s")
    return text + f'[flow.main]\ncount = 10\nfrom = "n0"\nto = "n{count}"\nendpoint = "rfc6675"\n'


def full_queue(limit: int, duration_s: float) -> str:
    """Returns datagrams that keep a queue of this many packets full."""
    return run_table(duration_s) + (
        f'[dumbbell]\nrate = "1.2 Gbit/s"\nqueue = {{ kind = "fifo", limit = "{limit} packets" }}\n'
        '[flow.main]\nrtt = "2 ms"\n'
        'workload = { kind = "udp", rate = "1.3 Gbit/s", size = "1500 B" }\n'
    )


def idle(count: int) -> str:
    """Returns flows that have sent one segment and are idle."""
    return run_table(3) + (
        f'[dumbbell]\nrate = "10 Gbit/s"\n[flow.main]\ncount = {count}\nrtt = "100 ms"\n'
        'start = "uniform(0 s, 1 s)"\nworkload = { kind = "bytes", size = "1448 B" }\n'
        'endpoint = "rfc6675"\n'
    )


#: A million flows of ten segments, one every 100 µs on average, for 100 s.
MILLION = run_table(100) + (
    '[dumbbell]\nrate = "2 Gbit/s"\nqueue = "codel"\n[flow.main]\nrtt = "50 ms"\n'
    'workload = { kind = "poisson", size = "14480 B", interval = "100 us" }\n'
    'endpoint = "rfc6675"\n'
)

#: Controllers with explicit feedback, with the meter and the echo of each.
EXPLICIT_FEEDBACK = {
    "xcp": ("xcp", "sum"),
    "rcp": ("rcp", "last"),
    "vcp": ("vcp", "changes"),
    "mlcp": ("mlcp", "level"),
    "bmcc": ("adpm", "load"),
}
DECADES = (10, 100, 1_000, 10_000, 100_000)
AXES = (
    Axis("flows", "flows, 1 Mbit/s each", DECADES, flows("100 ms"), lambda n: n * FLOW),
    Axis("becn", "BECN flows, 1 Mbit/s each", DECADES, source_quenched, lambda n: n * FLOW),
    Axis(
        "delay",
        "delay-based AIMD flows, 1 Mbit/s each",
        DECADES,
        delay_based(1, '"delay-aimd"', lambda n: 20 * n),
        lambda n: n * FLOW,
    ),
    Axis(
        "below",
        "the same below one segment, 50 kbit/s each",
        DECADES[2:],
        delay_based(0.05, '{ kind = "delay-aimd", preset = "below-one" }', lambda n: 20 * n),
        lambda n: n * FLOW / 20,
    ),
    *(
        Axis(
            kind,
            f"{kind.upper()} flows, 1 Mbit/s each",
            DECADES,
            explicit_feedback(kind, *of_router),
            lambda n: n * FLOW,
            drawn=False,
        )
        for kind, of_router in EXPLICIT_FEEDBACK.items()
    ),
    Axis(
        "rtts",
        "flows with RTTs of their own",
        DECADES,
        flows("uniform(50 ms, 150 ms)"),
        lambda n: n * FLOW,
    ),
    Axis(
        "links",
        "links side by side, a flow each",
        (1, 10, 100, 1_000),
        side_by_side,
        lambda n: n * 10 * FLOW,
    ),
    Axis(
        "hops",
        "links in a row (per link)",
        (1, 3, 10, 30),
        in_a_row,
        lambda _: 100 * FLOW,
        lambda n: n,
    ),
    Axis("queue", "packets in a full queue", DECADES, full_queue, lambda _: 1200 * FLOW),
)


def main() -> int:
    """Runs the sweep."""
    parser = argparse.ArgumentParser(description=__doc__)
    names = [axis.name for axis in AXES]
    parser.add_argument("axes", nargs="*", metavar="AXIS", help=f"of {', '.join(names)}")
    parser.add_argument("--most", type=int, default=DECADES[-1], help="largest size")
    parser.add_argument("--repeats", type=int, default=1, help="the fastest of so many counts")
    parser.add_argument("--million", action="store_true", help="a million short flows as well")
    parser.add_argument("--figure", type=Path, help="draw into this PNG file")
    options = parser.parse_args()
    if unknown := set(options.axes) - set(names):
        parser.error(f"no such axis: {', '.join(sorted(unknown))}")
    wanted = [axis for axis in AXES if not options.axes or axis.name in options.axes]

    print(
        f"{'axis':<7} {'size':>8} {'packets':>12} {'ns/packet':>10} {'to first':>9} {'peak MiB':>9}"
    )
    curves: dict[str, list[Point]] = {}
    for axis in wanted:
        points = curves[axis.label] = []
        for size in (size for size in axis.sizes if size <= options.most):
            progress(f"{axis.label}: {size:,}")
            points.append(measure_point(axis, size, options.repeats))
            progress("")
            show(axis, points)
    show_idle()
    if options.million:
        show_million()
    if options.figure:
        drawn = {axis.label for axis in AXES if axis.drawn}
        shown = {label: curves[label] for label in curves if label in drawn}
        options.figure.write_bytes(palette_png(Figure(draw(shown)).png()))
    return 0


def cost(scenario: str, repeats: int) -> tuple[int, float, int]:
    """Returns packets, CPU seconds of the fastest repeat and peak bytes of the first."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "growth.toml"
        path.write_text(scenario, encoding="utf-8")
        runs = [measure_file(path) for _ in range(repeats)]
    first = runs[0]
    return first.delivered_packets, min(run.cpu_s for run in runs), first.peak_bytes


def measure_point(axis: Axis, size: int, repeats: int) -> Point:
    """Measures one size."""
    counted_s = max(SHORTEST_S, PACKETS / axis.packets_per_s(size))
    before, before_s, _ = cost(axis.scenario(size, START_S), repeats)
    after, after_s, peak_bytes = cost(axis.scenario(size, START_S + counted_s), repeats)
    packets = after - before
    ns = 1e9 * (after_s - before_s) / max(1, packets) / axis.links(size)
    return Point(size, packets, ns, peak_bytes)


def show(axis: Axis, points: list[Point]) -> None:
    """Prints the latest point."""
    point, first = points[-1], points[0]
    print(
        f"{axis.name:<7} {point.size:>8,} {point.delivered_packets:>12,}"
        f" {point.ns_per_packet:>10.0f} {point.ns_per_packet / first.ns_per_packet:>9.2f}"
        f" {point.peak_bytes / 2**20:>9.1f}",
        flush=True,
    )


def show_idle() -> None:
    """Prints the memory of idle flows."""
    (_, _, one), (_, _, many) = cost(idle(1), 1), cost(idle(IDLE_FLOWS), 1)
    each = (many - one) / IDLE_FLOWS
    print(f"an idle flow takes {each:,.0f} B; the limit is {IDLE_FLOW_BYTES:,} B")


def show_million() -> None:
    """Measures a million short flows."""
    packets, cpu_s, peak_bytes = cost(MILLION, 1)
    print(
        f"a million flows of 10 packets ({packets:,} packets) take {cpu_s:.1f} s of CPU and"
        f" {peak_bytes / 1e9:.2f} GB; the limits are {MILLION_CPU_S:.0f} s and"
        f" {MILLION_BYTES / 1e9:.0f} GB"
    )


def draw(curves: dict[str, list[Point]]) -> Picture:
    """Draws time per packet against size."""
    lines = [
        Line(
            [point.size for point in points],
            [point.ns_per_packet for point in points],
            line_style.colour(index),
            dashes=line_style.dashes(index),
            marker=line_style.marker(index),
            label=label,
        )
        for index, (label, points) in enumerate(curves.items())
    ]
    panel = Panel(lines, x_label="Size (flows, links or packets)", x_log=True, y_log=True)
    panel.y_label = "CPU time per delivered packet (ns)"
    return Picture([panel], 3.1, 5.6)


if __name__ == "__main__":
    sys.exit(main())
