"""The settings in which real servers answer with TCP*(n), and where results and pages of them are.

`scripts/tcpstar_linux.py` runs them, `scripts/tcpstar_page.py` shows what came of them.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
FOLDER = ROOT / "python" / "cwnd" / "studies" / "papers" / "tcpstar" / "web"
RESULTS = ROOT / "out" / "tcpstar-linux"
#: TCP*(6) is TCP*(∞).
STARS = {"TCP": 0, "TCP*(1)": 1, "TCP*(3)": 3, "TCP*(∞)": 6}


@dataclass(frozen=True)
class Case:
    """A setting, in which all arms have the same requests."""

    name: str
    claim: str
    #: Workload and arrivals that replace the scenario's, for each group.
    workload: str = '{ kind = "web", size = "mondal-trace-1" }'
    arrivals: str = '{ kind = "poisson", load = 0.275 }'
    rto_min_ms: int = 200
    #: Further directives of the server's configuration.
    nginx: str = ""
    stars: tuple[str, ...] = tuple(STARS)
    seeds: int = 3


def traces() -> list[Case]:
    """T3: with a least timeout of 1 s, of which the kernel lets a program do all of TCP*(n)."""
    return [
        Case(
            f"trace-{k}",
            "T3",
            workload=f'{{ kind = "web", size = "mondal-trace-{k}" }}',
            rto_min_ms=1000,
        )
        for k in (1, 2, 3)
    ]


def bursts() -> list[Case]:
    """T5: Linux's own least timeout; a program can keep it from growing beyond 1 s."""
    return [
        Case(
            f"period-{ms / 1000:g}",
            "T5",
            arrivals=f'{{ kind = "on-off", load = 0.275, on = "{ms} ms", off = "{ms} ms" }}',
            stars=("TCP", "TCP*(∞)"),
            seeds=2,
        )
        for ms in (50, 100, 200, 500, 1000, 2000)
    ]


#: The first case of T3 with answers whose headers share a segment with the data.
WHOLE = Case(
    "trace-1-whole",
    "whole answers",
    rto_min_ms=1000,
    nginx="tcp_nopush on;",
    stars=("TCP", "TCP*(∞)"),
    seeds=1,
)
CASES = [*traces(), *bursts(), WHOLE]
