"""Measures the router: one TCP connection with packets of 1500 bytes through CoDel, at each rate.

Needs root, for network namespaces and TUN devices. Prints a table, or with `--json` a line for each
rate; the exit code is 1 if a limit is missed.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

BLAST = Path(__file__).resolve().parents[1] / "target" / "release" / "examples" / "blast"
RATES = ("1 Gbit/s", "100 Mbit/s", "10 Mbit/s")
#: Limit: 99th percentile of the lateness of packets in µs, at this rate.
LATE_P99_US, LATE_AT = 500.0, "100 Mbit/s"
#: Propagation delay of the link in each direction.
_DELAY = "5 ms"


def measure(rate: str, queue: str, seconds: int) -> dict[str, Any]:
    """Measures one run."""
    command = [str(BLAST), rate, queue, _DELAY, str(seconds)]
    found: dict[str, Any] = json.loads(subprocess.check_output(command, text=True))
    return found


def main() -> int:
    """Measures all rates and prints the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--queue", default="codel")
    parser.add_argument("--seconds", type=int, default=5)
    parser.add_argument("--json", action="store_true", help="one line of JSON for each rate")
    options = parser.parse_args()
    if not options.json:
        print("rate         carried Mbit/s   late p50   p99   max us   waited   processor   valid")
    missed = False
    for rate in RATES:
        found = measure(rate, options.queue, options.seconds)
        # At the first of the rates the router itself must not be the bottleneck.
        missed |= rate == RATES[0] and not found["valid"]
        missed |= rate == LATE_AT and found["late_p99_us"] >= LATE_P99_US
        if options.json:
            print(json.dumps(found))
            continue
        print(
            f"{rate:<12} {found['wire_mbit_s']:>14.1f} {found['late_p50_us']:>10.1f}"
            f" {found['late_p99_us']:>5.0f} {found['late_max_us']:>8.0f} {found['idle']:>8.0%}"
            f" {found['cpu']:>11.0%}   {'yes' if found['valid'] else '; '.join(found['flaws'])}"
        )
    return int(missed)


if __name__ == "__main__":
    sys.exit(main())
