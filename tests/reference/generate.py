"""Writes vectors/*.json, or only those named; with --check reports which differ instead."""

from __future__ import annotations

import argparse
import json
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import cases_bbr
import cases_delay_targets
import cases_delays
import cases_explicit_feedback
import cases_kernels
import cases_quenches
import cases_quic
import cases_round_trips
import cases_routers
import cases_timers
import cases_windows

VECTORS = Path(__file__).parents[2] / "vectors"

EXACT = {"cwnd": 0, "ssthresh": 0, "reason": "whole bytes, and rational factors"}
REAL = {
    "cwnd": 1e-6,
    "ssthresh": 0,
    "reason": "the window is a real number, given to seven places: "
    "whole bytes are those of a number within 1e-6 of it",
}
REAL_THRESHOLD = {**REAL, "reason": REAL["reason"] + "; so is the threshold, which is the window"}
METERS = {
    "factor": 1e-12,
    "reason": "relative; no field of a packet hangs on less than 1e-9",
}
QUIC = {
    "srtt_ns": 8,
    "deadline_ns": 57,
    "reason": "integer nanoseconds, as for the retransmission timeout: 8 and 12 of the RTT's two "
    "averages, 56 = 8 + 4 · 12, and 1 of 9/8; times 2 for each doubling. Timers are fired a "
    "microsecond late, and no loss hangs on less than 100 ns",
}
VERDICTS = {
    "verdicts": 0,
    "state": 1e-9,
    "reason": "no verdict hangs on less; the state is a real number",
}


def distributions() -> list[dict[str, Any]]:
    """Returns the cases of distributions, the only ones that need SciPy."""
    from distributions import distributions as cases

    return cases()


FILES: dict[str, tuple[str, dict[str, Any], Any]] = {
    "newreno": ("controller", EXACT, cases_windows.newreno),
    "cubic": (
        "controller",
        REAL,
        lambda: [*cases_windows.cubic(), *cases_kernels.cubic()],
    ),
    "hystart": (
        "controller",
        REAL,
        lambda: [*cases_windows.hystart(), *cases_kernels.hystart_classic()],
    ),
    "becn": ("controller", REAL, cases_quenches.becn),
    "dctcp": ("controller", EXACT, cases_explicit_feedback.dctcp),
    "delay": (
        "controller",
        {
            **REAL,
            "spacing_ns": 1,
            "reason": REAL["reason"] + "; the time between segments is cut off to nanoseconds",
        },
        cases_delays.delay,
    ),
    "htcp": ("controller", REAL, cases_delays.htcp),
    "vegas": ("controller", REAL, cases_delay_targets.vegas),
    "ledbat": ("controller", REAL, cases_delay_targets.ledbat),
    "copa": ("controller", REAL, cases_delay_targets.copa),
    "fast": ("controller", REAL, cases_delay_targets.fast),
    "bbr": (
        "controller",
        {**REAL, "pace_bit_per_s": 1, "reason": REAL["reason"] + "; the pace is cut off to bits"},
        cases_bbr.cases,
    ),
    "delivery-rate": (
        "delivery-rate",
        {"interval_ns": 0, "reason": "whole bytes and nanoseconds"},
        cases_bbr.rates,
    ),
    "vcp": ("controller", REAL_THRESHOLD, cases_explicit_feedback.vcp),
    "mlcp": ("controller", REAL_THRESHOLD, cases_explicit_feedback.mlcp),
    "bmcc": ("controller", REAL_THRESHOLD, cases_explicit_feedback.bmcc),
    "xcp-sender": ("controller", EXACT, cases_explicit_feedback.xcp),
    "rcp-sender": ("controller", EXACT, cases_explicit_feedback.rcp),
    "load": ("load", METERS, cases_explicit_feedback.routers),
    "rto": (
        "rto",
        {
            "srtt_ns": 8,
            "rttvar_ns": 12,
            "rto_ns": 56,
            "reason": "integer nanoseconds lose less than 1 a sample, and an error shrinks to 7/8 "
            "or 3/4 with each: 8 = 1 / (1/8), 12 = (1 + 8/4) / (1/4), 56 = 8 + 4 · 12, times 2 for "
            "each doubling; 0 where a bound, a clock's tick or Linux's integers decide",
        },
        cases_timers.rto,
    ),
    "prr": ("prr", {"sndcnt": 0, "reason": "whole bytes"}, cases_timers.prr),
    "frto": ("frto", {"reason": "whole bytes"}, cases_timers.frto),
    "round-trips": (
        "round-trips",
        {"seen_ns": 0, "reason": "whole nanoseconds"},
        cases_round_trips.cases,
    ),
    "quic-loss": ("quic", QUIC, cases_quic.loss),
    "quic-pto": ("quic", QUIC, cases_quic.pto),
    "quic-rtt": ("quic", QUIC, cases_quic.rtt),
    "quic-persistent": ("quic", QUIC, cases_quic.persistent),
    "squid": ("squid", {"pause_ns": 0, "reason": "whole nanoseconds"}, cases_quenches.squid),
    "red": ("queue", VERDICTS, cases_routers.red),
    "codel": ("queue", VERDICTS, cases_routers.codel),
    "pie": ("queue", VERDICTS, cases_routers.pie),
    "fq-codel": ("queue", VERDICTS, cases_routers.fq_codel),
    "xcp": (
        "meter",
        {
            "feedback": 0,
            "time_ns": 0,
            "reason": "whole bytes and nanoseconds of numbers that are near no whole one",
        },
        cases_routers.xcp,
    ),
    "rcp": (
        "meter",
        {
            "rate": 1e-9,
            "time_ns": 0,
            "reason": "relative; the rate is a real number, and a header cuts off a part of a bit",
        },
        cases_routers.rcp,
    ),
    "distributions": (
        "distribution",
        {
            "ccdf": 1e-10,
            "limited_mean": 1e-8,
            "mean": 1e-8,
            "reason": "relative; SciPy integrates by number, to some 1e-10 a piece",
        },
        distributions,
    ),
}


def text(algorithm: str) -> str:
    """Returns the file of an algorithm: one event per line."""
    kind, tolerance, cases = FILES[algorithm]
    made = cases()
    columns = columns_of([event for case in made for event in case["events"]])
    head = {
        "$schema": "schema.json",
        "kind": kind,
        "algorithm": algorithm,
        "generated_by": "tests/reference/generate.py; do not edit",
        "tolerance": tolerance,
        **({"columns": columns} if columns else {}),
    }
    lines = [f"{json.dumps(k)}: {dump(v)}," for k, v in head.items()]
    blocks = []
    for case in made:
        parts = []
        for key, value in case.items():
            if key == "events":
                rows = ",\n".join(f"{dump(row(columns, event))}" for event in value)
                parts.append(f'  "events": [\n{rows}\n  ]')
            else:
                parts.append(f"  {json.dumps(key)}: {dump(value)}")
        blocks.append(" {\n" + ",\n".join(parts) + "\n }")
    return "{\n" + "\n".join(lines) + '\n"cases": [\n' + ",\n".join(blocks) + "\n]\n}\n"


def columns_of(events: list[Any]) -> dict[str, list[str]]:
    """Returns the columns of each kind of event and of values that are objects, common ones first.

    Events that are lists have none.
    """
    used: dict[str, Counter[str]] = {}
    for event in events:
        for name, fields in objects(event):
            counts = used.setdefault(name, Counter())
            counts.update(key for key, value in fields.items() if value is not None)
    return {name: [key for key, _ in counts.most_common()] for name, counts in used.items()}


def objects(event: Any) -> list[tuple[str, dict[str, Any]]]:
    """Returns an event and the objects in it, each by its name; none if the event is a list."""
    if not isinstance(event, dict):
        return []
    fields = {key: value for key, value in event.items() if key != "event"}
    inner = [(key, value) for key, value in fields.items() if isinstance(value, dict)]
    return [(event["event"], fields), *inner]


def row(columns: dict[str, list[str]], event: Any) -> list[Any]:
    """Returns an event as a list: its kind, then its columns up to the last that it has."""
    if not isinstance(event, dict):
        return [number(value) for value in event]
    return [event["event"], *values(columns, event["event"], event)]


def values(columns: dict[str, list[str]], name: str, fields: dict[str, Any]) -> list[Any]:
    """Returns the values of the columns, without missing ones at the end."""
    found = [fields.get(key) for key in columns[name]]
    while found and found[-1] is None:
        found.pop()
    return [
        values(columns, key, value) if isinstance(value, dict) else number(value)
        for key, value in zip(columns[name], found, strict=False)
    ]


def number(value: Any) -> Any:
    """Returns a whole number without a decimal point."""
    return int(value) if isinstance(value, float) and value.is_integer() else value


def dump(value: Any) -> str:
    """Returns compact JSON."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def path(algorithm: str) -> Path:
    """Returns the path of an algorithm's vectors."""
    return VECTORS / f"{algorithm}.json"


def is_stale(algorithm: str) -> bool:
    """Returns True if the file differs from the generated text."""
    file = path(algorithm)
    return not file.is_file() or file.read_text(encoding="utf-8") != text(algorithm)


def main() -> int:
    """Runs the command."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help="a file, without .json")
    parser.add_argument("--check", action="store_true", help="write nothing")
    arguments = parser.parse_args()
    names = arguments.names or list(FILES)
    if unknown := [name for name in names if name not in FILES]:
        parser.error(f"FILES has no {', '.join(unknown)}, but {', '.join(FILES)}")
    if arguments.check:
        found = [name for name in names if is_stale(name)]
        for name in found:
            sys.stderr.write(f"error: vectors/{name}.json is stale; run make vectors\n")
        return 1 if found else 0
    for name in names:
        path(name).write_text(text(name), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
