"""Measures the cost of loss recovery: user CPU time per delivered packet, by path size.

A path is a link and a FIFO queue of one BDP each; its size is the number of packets that both hold.
The overshoot of slow start loses about as many packets as the queue holds. A window that persists
under loss or reordering keeps the path full. Each point has its own process, which counts only the
runs and repeats them with further seeds until there are enough packets. All points run in turn,
repeatedly; the least time counts. Limits: growth from the shortest to the longest path, and a
multiple of (b).
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from dataclasses import asdict, dataclass, field

from run import HERE, measure_file, progress

#: Path sizes: packets that the link and the queue hold together.
PATHS = (100, 1_000, 10_000, 100_000)
#: Presets of the endpoint; `rfc6675` is the plain stack.
STACKS = ("rfc6675", "linux", "freebsd")
#: Least number of packets that a point delivers, over runs with several seeds.
PACKETS = 500_000
SEEDS = 100_000
#: End of a run with loss or reordering, s: 20 RTTs after 4 s. A longer run hides the cost.
END_S = 6.0
#: Time from the end of the first recovery to the end of a run with overshoot, s.
AFTER_RECOVERY_S = 1.0
#: Durations in which the end of the first recovery is searched, s.
SEARCHED_S = (4, 8, 16, 32, 64)
#: Limit: cost on the longest path over that on the shortest one.
GROWTH_LIMIT = 3.0
#: Limit: cost relative to (b), on paths up to this size.
B_LIMIT, B_LIMIT_PATH = 4.0, 10_000
B = HERE / "scenarios" / "b.toml"

LOSS = "loss = 0.01\n"
REORDERING = 'reorder = 0.01\nreorder_delay = "20 ms"\n'
#: NewReno that hardly reduces: the receive window limits it, not the congestion window.
HOLDS = '{ kind = "newreno", preset = "rfc", beta = 0.9999, base = "cwnd" }'
#: Changes without which a stack's window does not persist under loss. The plain stack detects a
#: lost retransmission only by its timer, and the timeout resets the window. PRR in Linux conserves
#: packets during losses, so a flight made small by a hole in the sequence stays small.
HOLDS_UNDER_LOSS = {"rfc6675": 'with = ["lost-retransmissions"]', "linux": 'without = ["prr"]'}

#: Runs cells until there are enough packets; prints packets and user CPU seconds of the runs.
CHILD = """
import json, resource, sys
from cwnd import _core
scenario = _core.parse(sys.stdin.read(), name="recovery")
packets, cpu_s = 0, 0.0
for index in range(scenario.runs):
    cell = scenario.cell(index)
    before_s = resource.getrusage(resource.RUSAGE_SELF).ru_utime
    packets += cell.run().delivered_packets
    cpu_s += resource.getrusage(resource.RUSAGE_SELF).ru_utime - before_s
    if packets >= int(sys.argv[1]):
        break
json.dump([packets, cpu_s], sys.stdout)
"""


@dataclass(frozen=True)
class Case:
    """A controller and an impairment; without an impairment, the overshoot of slow start."""

    controller: str
    impairment: str = ""
    #: Parts added to and removed from a stack, by its name.
    parts: dict[str, str] = field(default_factory=dict)
    #: True if the receive window limits the sender to 0.7 of the path.
    by_receiver: bool = False


#: BBR keeps the presets as they are: under loss, the plain stack has timeouts and idles in between.
CASES = {
    "overshoot-newreno": Case('"newreno"'),
    "overshoot-cubic": Case('"cubic"'),
    "loss-bbr": Case('"bbr"', LOSS),
    "loss-window": Case(HOLDS, LOSS, HOLDS_UNDER_LOSS, by_receiver=True),
    "reordering-bbr": Case('"bbr"', REORDERING),
    "reordering-window": Case(HOLDS, REORDERING, by_receiver=True),
}


@dataclass(frozen=True)
class Row:
    """Costs of a case with a stack, by path size."""

    case: str
    stack: str
    duration_s: dict[int, float]
    ns_per_packet: dict[int, float]
    #: Cost on the longest path over the shortest one, if both were measured.
    growth: float | None
    #: Descriptions of exceeded limits.
    missed: list[str]


def main() -> int:
    """Runs the grid."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("cases", nargs="*", metavar="CASE", help=f"of {', '.join(CASES)}")
    parser.add_argument("--most", type=int, default=PATHS[-1], help="largest path, packets")
    parser.add_argument("--repeats", type=int, default=3, help="the fastest of so many counts")
    parser.add_argument("--json", action="store_true", help="one JSON document on stdout")
    options = parser.parse_args()
    if options.repeats < 1:
        parser.error("--repeats takes a number from 1 on")
    if unknown := set(options.cases) - set(CASES):
        parser.error(f"no such case: {', '.join(sorted(unknown))}")
    paths = [path for path in PATHS if path <= options.most]
    if not paths:
        parser.error(f"--most takes a number from {PATHS[0]} on")

    names = [name for name in CASES if not options.cases or name in options.cases]
    scenarios: dict[tuple[str, str, int], tuple[float, str]] = {}
    for name, stack, path in ((n, s, p) for n in names for s in STACKS for p in paths):
        progress(f"{name} over {stack}, {path:,} packets: end")
        duration_s = end_s(CASES[name], path, stack)
        text = scenario(CASES[name], path, stack, duration_s)
        scenarios[name, stack, path] = duration_s, text
    b_ns = float("inf")
    costs = dict.fromkeys(scenarios, float("inf"))
    for repeat in range(options.repeats):
        progress(f"b, {repeat + 1} of {options.repeats}")
        run = measure_file(B)
        b_ns = min(b_ns, 1e9 * run.cpu_s / run.delivered_packets)
        for point, (_, text) in scenarios.items():
            name, stack, path = point
            progress(f"{name} over {stack}, {path:,} packets: {repeat + 1} of {options.repeats}")
            costs[point] = min(costs[point], ns_per_packet(text))
    progress("")

    rows = []
    for name, stack in ((name, stack) for name in names for stack in STACKS):
        durations = {path: scenarios[name, stack, path][0] for path in paths}
        row_costs = {path: costs[name, stack, path] for path in paths}
        rows.append(judge(name, stack, durations, row_costs, b_ns))
    if options.json:
        document = {"b_ns_per_packet": b_ns, "rows": [asdict(row) for row in rows]}
        print(json.dumps(document, indent=2))
    else:
        show(rows, paths, b_ns)
    if missed := [
        f"{row.case} over {row.stack} ({', '.join(row.missed)})" for row in rows if row.missed
    ]:
        print(f"error: limits missed: {'; '.join(missed)}", file=sys.stderr)
    return 1 if missed else 0


def scenario(case: Case, path: int, stack: str, duration_s: float, sample: str = "none") -> str:
    """Returns a flow over a path of this size, with an RTT of 100 ms."""
    # Half of the path in 100 ms, packets of 1500 bytes.
    rate_kbit = path * 60
    keys = [f'preset = "{stack}"']
    dumbbell = f'rate = "{rate_kbit} kbit/s"\n'
    if case.by_receiver:
        # The initial window exceeds the receive window. The host sends this burst at twice the rate
        # of the link, so that the queue drops nothing.
        dumbbell += f'edge_rate = "{2 * rate_kbit} kbit/s"\n'
        keys += [f"initial_window = {path}", f'receive_window = "{7 * path // 10 * 1448} B"']
    else:
        keys.append('receive_window = "1 GB"')
    parts = case.parts.get(stack)
    changed = f'stack = {{ base = "{stack}", {parts} }}\n' if parts else ""
    return (
        f'schema = 1\n[run]\nduration = "{duration_s:g} s"\nsample = "{sample}"\n'
        f'[dumbbell]\n{dumbbell}queue = {{ kind = "fifo", limit = "1 BDP" }}\n'
        f'bdp_rtt = "100 ms"\n{case.impairment}'
        f'[flow.main]\nrtt = "100 ms"\ncontroller = {case.controller}\n{changed}'
        f"endpoint = {{ {', '.join(keys)} }}\n"
    )


def end_s(case: Case, path: int, stack: str) -> float:
    """Returns the duration of a run; after an overshoot, a sampled run finds the first recovery."""
    if case.impairment:
        return END_S
    for duration_s in SEARCHED_S:
        text = scenario(case, path, stack, duration_s, sample="10 ms")
        if (recovered_s := first_recovery_end_s(text)) is not None:
            return recovered_s + AFTER_RECOVERY_S
    sys.exit(f"error: no end of the first recovery over {stack}, {path} packets")


def first_recovery_end_s(text: str) -> float | None:
    """Returns the time of the first sample in state Open after one in recovery or loss."""
    import polars as pl

    from cwnd import _core

    result = _core.parse(text, name="recovery").cell(0).run()
    samples = pl.DataFrame(result.flow_series)
    recovers = False
    for time_s, state in zip(samples["time_s"], samples["ca_state"].cast(pl.String), strict=True):
        if recovers and state == "Open":
            return float(time_s)
        recovers = recovers or state in {"Recovery", "Loss"}
    return None


def ns_per_packet(text: str) -> float:
    """Returns the user CPU time per delivered packet of a scenario, in a new process."""
    command = [sys.executable, "-c", CHILD, str(PACKETS)]
    text += f"[sweep]\nrepeat = {SEEDS}\n"
    done = subprocess.run(command, input=text, stdout=subprocess.PIPE, text=True, check=True)
    packets, cpu_s = json.loads(done.stdout)
    return 1e9 * float(cpu_s) / int(packets)


def judge(
    case: str, stack: str, durations: dict[int, float], costs: dict[int, float], b_ns: float
) -> Row:
    """Compares the costs with the limits."""
    growth = costs[PATHS[-1]] / costs[PATHS[0]] if PATHS[-1] in costs else None
    missed = [] if growth is None or growth <= GROWTH_LIMIT else [f"growth {growth:.1f}"]
    ratios = {path: cost / b_ns for path, cost in costs.items() if path <= B_LIMIT_PATH}
    missed += [f"{r:.1f} b at {path:,}" for path, r in ratios.items() if r > B_LIMIT]
    return Row(case, stack, durations, costs, growth, missed)


def show(rows: list[Row], paths: list[int], b_ns: float) -> None:
    """Prints a table."""
    print(
        f"b takes {b_ns:.0f} ns a packet; the limits are {B_LIMIT:g} b up to {B_LIMIT_PATH:,}"
        f" packets and a growth of {GROWTH_LIMIT:g}; ns a packet:"
    )
    sizes = "".join(f" {path:>8,}" for path in paths)
    print(f"{'case':<18} {'stack':<8}{sizes} {'growth':>7}  limits")
    for row in rows:
        costs = "".join(f" {row.ns_per_packet[path]:>8.0f}" for path in paths)
        growth = "" if row.growth is None else f"{row.growth:.2f}"
        verdict = f"missed: {', '.join(row.missed)}" if row.missed else "met"
        print(f"{row.case:<18} {row.stack:<8}{costs} {growth:>7}  {verdict}")


if __name__ == "__main__":
    sys.exit(main())
