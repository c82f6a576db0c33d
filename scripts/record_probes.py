"""Records what this kernel's TCP does about the probes: `make probes`, as root, a minute.

    record_probes.py crates/tcp/tests/probes/linux-6.18.txt [--only FAMILY]

Each probe is played three times, and kept if all agree: what left, and the state after each event.
Takes that differ are played once more.
"""

from __future__ import annotations

import argparse
import multiprocessing
import statistics
import sys
from pathlib import Path

from probes import kernel, recording
from probes.connection import Connection, Event, ProbeError
from probes.families import all_probes

TIMES = 3
#: Attempts at a probe until its takes agree.
ATTEMPTS = 2
#: Probes that are played beside each other; they sleep most of the time.
WORKERS = 12


def main() -> int:
    """Writes the file."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("file", type=Path)
    parser.add_argument("--only", default="", help="probes whose names begin so")
    options = parser.parse_args()
    names = [probe.name for probe in all_probes() if probe.name.startswith(options.only)]
    texts, left_out = record(names)
    for name, reason in left_out.items():
        print(f"left out: {name}: {reason}", file=sys.stderr)
    options.file.write_text(recording.header(TIMES) + "".join(texts.values()))
    print(f"{len(texts)} probes, {len(left_out)} left out", file=sys.stderr)
    return 0


def record(names: list[str]) -> tuple[dict[str, str], dict[str, str]]:
    """The text of each of these probes, or why there is none."""
    # Its caller may have threads, which a fork does not copy, and locks that they hold.
    context = multiprocessing.get_context("spawn")
    with context.Pool(min(WORKERS, len(names)), initializer=_begin) as pool:
        outcomes = dict(zip(names, pool.map(_record, names, chunksize=1), strict=True))
    texts = {name: text for name, (text, _) in outcomes.items() if text}
    return texts, {name: reason for name, (text, reason) in outcomes.items() if not text}


_DEVICE: list[int] = []


def _begin() -> None:
    _DEVICE.append(kernel.enter_namespace())


def _record(name: str) -> tuple[str, str]:
    probes = all_probes()
    number = next(n for n, probe in enumerate(probes) if probe.name == name)
    probe = probes[number]
    reason = ""
    for attempt in range(ATTEMPTS):
        takes = []
        for take in range(TIMES):
            address = number * ATTEMPTS * TIMES + attempt * TIMES + take
            try:
                connection = Connection(_DEVICE[0], address, probe.options)
                try:
                    probe.play(connection)
                finally:
                    connection.close()
            except ProbeError as error:
                return "", str(error)
            takes.append(connection.events)
        reason = recording.differ(takes[0], takes[1]) or recording.differ(takes[0], takes[2])
        if not reason:
            return recording.text_of(name, str(probe.options), middle(takes)), ""
    return "", reason


def middle(takes: list[list[Event]]) -> list[Event]:
    """Returns the take of median duration, the sum of the times between its events.

    The number of takes is odd.
    """
    spans = [sum(event.after for event in take) for take in takes]
    return takes[spans.index(statistics.median(spans))]


if __name__ == "__main__":
    sys.exit(main())
