"""Runs scenarios on the testbed of another kernel in QEMU, and stores results: `make kernel-rows`.

    record.py 6.12 path/to/vegas.toml --module tcp_vegas

`vegas.toml` gives two files beside it. `vegas.csv` has a row for each flow of each cell, with
measures of its bottleneck. `vegas-windows.csv` has the windows at each second. Without
virtualization a guest's clock advances with its instructions (run.py), so that a slow machine
measures the same as a fast one.
"""

from __future__ import annotations

import argparse
import csv
import json
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from packages import Archives, MissingError

from run import OUT, ROOT, bare, qemu_command, tried

if TYPE_CHECKING:
    from collections.abc import Iterator

#: Module through which the testbed reads the state of sockets.
DIAG = "tcp_diag"
PROGRAM = "run_on_linux"


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("version")
    parser.add_argument("scenarios", nargs="+", type=Path, metavar="SCENARIO")
    parser.add_argument("--module", action="append", default=[])
    options = parser.parse_args()
    try:
        qemu, archives = qemu_command(), Archives(OUT / "apt")
        releases = archives.releases()
        if options.version not in releases:
            parser.error(f"no kernel {options.version}; there are {', '.join(releases)}")
        kernel = archives.kernel(releases[options.version], DIAG, *options.module)
        made = bare()
        made.program(built(), PROGRAM)
        for scenario in options.scenarios:
            made.write("/scenario.toml", scenario.read_bytes())
            said = tried(qemu, kernel, made, [f"{PROGRAM} /scenario.toml"]).said
            write(scenario, kernel.release, list(results(said)))
    except MissingError as error:
        print(f"error: {error}", file=sys.stderr)
        return 3
    return 0


def built() -> Path:
    package = ["cargo", "build", "--release", "-p", "cwnd-testbed", "--example", PROGRAM]
    told = subprocess.run(
        [*package, "--quiet", "--message-format=json"],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        check=True,
        text=True,
    ).stdout
    messages = map(json.loads, told.splitlines())
    return Path(next(found for one in messages if (found := one.get("executable"))))


def results(said: str) -> Iterator[dict[str, Any]]:
    """Iterates over the results of the cells, in the order of the scenario."""
    if "\nexit 0\n" not in said:
        raise MissingError(f"the run did not end well:\n{said[-2000:]}")
    for line in said.splitlines():
        if line.startswith("{"):
            told = json.loads(line)
            if not told["facts"]["valid"]:
                raise MissingError(f"a run is not valid: {told['facts']['flaws']}")
            yield told


def write(scenario: Path, release: str, cells: list[dict[str, Any]]) -> None:
    rows, windows = [], []
    for number, cell in enumerate(cells):
        bottleneck = {name: values[0] for name, values in cell["links"].items()}
        for flow, group, goodput, retrans in across(
            cell["flows"], "flow_id", "group", "goodput_bit_s", "retrans"
        ):
            row = [release, number, flow, group, round(goodput / 1e6, 4), retrans]
            row += [round(bottleneck[f"qdelay_{what}_us"] / 1e3, 3) for what in ("mean", "max")]
            rows.append([*row, round(bottleneck["utilisation"], 5), bottleneck["dropped_pkts"]])
        seen = set()
        for time, flow, cwnd, ssthresh in across(
            cell["flow_series"], "time_s", "flow_id", "snd_cwnd_pkts", "snd_ssthresh_pkts"
        ):
            if (flow, int(time)) not in seen:
                seen.add((flow, int(time)))
                threshold = "" if ssthresh is None else int(ssthresh)
                windows.append([number, round(time, 3), flow, int(cwnd), threshold])
    head = (
        "kernel,cell,flow,group,goodput_mbit_s,retrans,"
        "qdelay_mean_ms,qdelay_max_ms,utilisation,drops"
    )
    table(scenario.with_suffix(".csv"), head, rows)
    over_time = scenario.with_name(f"{scenario.stem}-windows.csv")
    table(over_time, "cell,time_s,flow,cwnd,ssthresh", windows)


def across(columns: dict[str, list[Any]], *names: str) -> Iterator[tuple[Any, ...]]:
    return zip(*(columns[name] for name in names), strict=True)


def table(path: Path, head: str, rows: list[list[Any]]) -> None:
    with path.open("w", encoding="utf-8", newline="") as file:
        out = csv.writer(file, lineterminator="\n")
        out.writerows([head.split(","), *rows])
    print(f"{path}: {len(rows)} rows", flush=True)


if __name__ == "__main__":
    sys.exit(main())
