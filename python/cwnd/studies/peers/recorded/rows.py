"""The recorded rows: what was run, what came out, whether it is judged by value.

Rows that differ in their seeds only form a setting.
"""

from __future__ import annotations

import csv
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, Protocol, TypeVar

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


#: Folder of the recorded rows.
DATA = Path(__file__).resolve().parent

#: File, and how its rows are called.
TABLES = {
    "ns3-classic.csv": "ns-3",
    "ns3-prr-trend.csv": "ns-3 PRR",
    "ns3-extra-trend.csv": "ns-3 more",
    "ns2.csv": "ns-2",
    "ns2-red-ecn.csv": "ns-2 RED",
    "ns2-timeouts.csv": "ns-2 timeouts",
    "ns2-vegas.csv": "ns-2 Vegas",
    "linux-testbed.csv": "Linux",
    "linux-kernel.csv": "Linux, coarse router",
}


#: File → its first column of results; the columns before it are parameters.
FIRST_RESULT = dict.fromkeys(TABLES, "goodput_total_mbps") | {
    "ns2.csv": "goodput_total_pps",
    "ns2-red-ecn.csv": "goodput_total_pps",
    "ns2-timeouts.csv": "transfers_started",
    "ns2-fct.csv": "transfers_started",
    "ns2-xcp.csv": "goodput_total_mbps",
    "ns2-rcp.csv": "goodput_total_mbps",
    "ns2-vcp.csv": "goodput_total_mbps",
    "ns2-sackred.csv": "goodput_total_mbps",
    "linux-testbed.csv": "goodput_mbps",
    "linux-kernel.csv": "goodput_mbps",
}


#: Tables of which no row is compared by value.
TRENDS = ("ns3-prr-trend.csv", "ns3-extra-trend.csv", "linux-kernel.csv")


@dataclass(frozen=True)
class Measures:
    """Measures of one run, or their means over runs, that are compared."""

    goodput_mbit_s: float
    qdelay_p50_ms: float
    drops: float
    marks: float
    #: Counts of the whole run, the warm-up included; `None` if the peer's were not recorded.
    drops_whole: float | None = None
    marks_whole: float | None = None


@dataclass(frozen=True, eq=False)
class Row:
    """One recorded run, or the mean of the runs of a setting (`load`)."""

    table: str
    #: Number from 1, in the order of the file.
    number: int
    cells: dict[str, str]
    measured: Measures
    #: Compared with bounds; otherwise only shown.
    by_value: bool

    @property
    def key(self) -> str:
        """Names the row on the page and in tests."""
        return f"{TABLES[self.table]} {self.number}"

    def int(self, column: str) -> int:
        """A column as a whole number."""
        return int(float(self.cells[column]))

    def float(self, column: str) -> float:
        """A column as a number."""
        return float(self.cells[column])

    def flag(self, column: str) -> bool:
        """A column that is 0 or 1."""
        return self.cells[column] == "1"

    @property
    def same_setting(self) -> tuple[str, ...]:
        """Returns the file and parameters that runs of one setting share, whatever their seeds."""
        parameters = list(self.cells.items())[: list(self.cells).index(FIRST_RESULT[self.table])]
        # The one parameter that is recorded behind the results.
        last = self.cells.get("vcp_ack_priority", "")
        return (self.table, last, *(v for k, v in parameters if k != "seed"))

    @property
    def setting(self) -> str:
        """Returns the setting in words, for the page."""
        cells = self.cells
        if self.table == "ns2-vegas.csv":
            started = "one after the other" if cells["set"] == "staggered" else "together"
            parts = [cells["proto"], f"{self.float('base_rtt_ms'):g} ms", f"{cells['n_fwd']}×"]
            return ", ".join([*parts, started, f"seed {cells['seed']}"])
        if self.table == "ns2-timeouts.csv":
            backoff = "no backoff" if cells["rto_mode"] == "cap" else "backoff"
            parts = [f"{cells['n_long']} endless flows", cells["queue"]]
            parts += [f"min RTO {cells['min_rto_s']} s", backoff, f"seed {cells['seed']}"]
            return ", ".join(parts)
        cc = cells.get("cc") or cells["tcp"]
        short = cc.removeprefix("Tcp").removeprefix("TCP/").removeprefix("Linux/")
        queue = cells.get("aqm") or cells["queue"]
        rtt = float(cells.get("base_rtt_ms") or cells["rtt_ms"])
        parts = [short.lower(), queue + ("+ecn" if self.flag("ecn") else "")]
        if self.table.startswith("linux"):
            parts.append(f"{self.float('rate_mbps'):g} Mbit/s")
        parts += [f"{rtt:g} ms", f"{cells['n_flows']}×"]
        if cells.get("delack_count") == "2":
            parts.append("delayed ACKs")
        if cells.get("recovery") == "TcpPrrRecovery":
            parts.append("PRR")
        if self.table == "ns3-extra-trend.csv":
            parts.append(f"limit {cells['qdisc_limit_pkts']}")
        if self.table == "ns2-red-ecn.csv":
            parts += ["gentle"] * self.flag("gentle") + ["mark_p"] * self.flag("use_mark_p")
        if cells.get("min_rto_s", "1.0") not in ("1", "1.0"):
            parts.append(f"min RTO {cells['min_rto_s']} s")
        seeds = cells.get("seed", "1") != "1" and self.table != "linux-testbed.csv"
        if seeds or cells["aqm" if "aqm" in cells else "queue"] == "red":
            parts.append(f"seed {cells['seed']}")
        return ", ".join(parts)


def mean(each: list[Measures]) -> Measures:
    """The mean of several runs."""
    count = len(each)
    return Measures(
        sum(m.goodput_mbit_s for m in each) / count,
        sum(m.qdelay_p50_ms for m in each) / count,
        sum(m.drops for m in each) / count,
        sum(m.marks for m in each) / count,
        _mean_of_known([m.drops_whole for m in each]),
        _mean_of_known([m.marks_whole for m in each]),
    )


def _mean_of_known(each: list[float | None]) -> float | None:
    known = [value for value in each if value is not None]
    return sum(known) / len(known) if known else None


def load(table: str) -> list[Row]:
    """The rows of one file; of Linux's newer one a mean row for each setting."""
    return _settings(load_runs(table)) if table == "linux-testbed.csv" else load_runs(table)


def load_runs(table: str) -> list[Row]:
    """Returns the rows of one file, one for each run."""
    text = (DATA / table).read_text(encoding="utf-8")
    return [
        Row(table, number, cells, _measured(table, cells), _by_value(table, cells))
        for number, cells in enumerate(_cells(text), start=1)
    ]


def _cells(text: str) -> list[dict[str, str]]:
    """The cells of each row; a first line with `#` has the parameters that all rows share."""
    lines = text.splitlines()
    shared = lines.pop(0).split(" ")[1:] if text.startswith("#") else []
    cells = dict(cell.split("=", 1) for cell in shared)
    return [cells | row for row in csv.DictReader(lines)]


def _settings(runs: list[Row]) -> list[Row]:
    """A row for each setting, the mean of its runs, in the order of the file."""
    alike: dict[tuple[str, ...], list[Row]] = {}
    for run in runs:
        alike.setdefault(run.same_setting, []).append(run)
    return [
        replace(each[0], number=number, measured=mean([run.measured for run in each]))
        for number, each in enumerate(alike.values(), start=1)
    ]


def load_all() -> list[Row]:
    """All rows of flows without end, file by file."""
    rows = (row for table in TABLES for row in load(table))
    return [row for row in rows if row.cells.get("load", "long") == "long"]


def _measured(table: str, cells: dict[str, str]) -> Measures:
    linux = table.startswith("linux")
    goodput = "ftp_goodput_total_mbps" if table == "ns2-web.csv" else "goodput_total_mbps"
    return Measures(
        float(cells["goodput_mbps" if linux else goodput]),
        float(cells["qdelay_ms_p50" if linux else "qdelay_median_ms"]),
        float(cells["drops"]),
        float(cells["marks"]),
        *(
            float(cells[column]) if column in cells else None
            for column in ("drops_whole_run", "marks_whole_run")
        ),
    )


def _by_value(table: str, cells: dict[str, str]) -> bool:
    if table == "ns3-classic.csv":
        # CUBIC under CoDel and PIE has no second implementation that confirms it.
        return cells["cc"] == "TcpNewReno" or cells["aqm"] in ("fifo", "red")
    return cells.get("use", "value") == "value" and table not in TRENDS


@dataclass(frozen=True, eq=False)
class Recorded:
    """Recorded runs that differ in their seeds only."""

    rows: tuple[Row, ...]

    #: File → name of its rows on the page.
    tables: ClassVar[Mapping[str, str]]

    @property
    def row(self) -> Row:
        """The first of the recorded runs."""
        return self.rows[0]

    @property
    def key(self) -> str:
        """Names it on the page and in tests, by the first of its rows."""
        return f"{self.tables[self.row.table]} {self.row.number}"

    @property
    def numbers(self) -> str:
        """Numbers of its rows in the file."""
        return ", ".join(str(row.number) for row in self.rows)

    @property
    def by_value(self) -> bool:
        """`True` if the setting is judged by bounds; otherwise it is only shown."""
        return True

    @property
    def missing(self) -> str | None:
        """Reason why no scenario can express the setting, if none can."""
        return None


class Beside(Protocol):
    """A setting, and ours beside it."""

    @property
    def setting(self) -> Recorded:
        """The recorded setting."""

    @property
    def holds(self) -> bool:
        """`True` if ours is within the bounds."""


B = TypeVar("B", bound=Beside)


def judged(found: Sequence[B]) -> list[B]:
    """Returns those that are judged by value."""
    return [c for c in found if c.setting.by_value]


def counts(found: Sequence[Beside]) -> tuple[int, int]:
    """Recorded rows that are judged by value, and that hold."""
    each = [(len(c.setting.rows), c.holds) for c in judged(found)]
    return sum(n for n, _ in each), sum(n for n, holds in each if holds)


def summary(found: Sequence[Beside]) -> list[str]:
    """Returns the lines of the table of all peers, one for each file."""
    tables: dict[str, list[Beside]] = {}
    for each in found:
        tables.setdefault(each.setting.row.table, []).append(each)
    lines = []
    for table, here in tables.items():
        rows = sum(len(c.setting.rows) for c in here)
        n, hold = counts(here)
        missing = sum(len(c.setting.rows) for c in here if c.setting.missing)
        name = here[0].setting.tables[table]
        lines.append(f"| {name} | {rows} | {n} | {hold} | {rows - n - missing} | {missing} |")
    return lines
