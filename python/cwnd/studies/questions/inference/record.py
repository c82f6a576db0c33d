"""Timeouts of real servers as `cwnd infer` finds them, beside those that their kernel counted.

Servers of this machine answer requests of clients behind `cwnd link`, whose packets are captured at
the clients. The servers' kernel has the truth: TCP_INFO of each socket counts timeouts, and a
capture at the servers shows the retransmissions. Needs root, as `cwnd link` does, and Linux 6.7,
which counts timeouts.
"""

from __future__ import annotations

import contextlib
import json
import os
import random
import socket
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import polars as pl

from cwnd.infer import infer
from cwnd.studies.questions.inference.servers import Case, Server, Truth

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import TypeAlias

    from cwnd.infer import Inferred

CWND = Path(sys.executable).with_name("cwnd")
#: Seeds of the record, evaluated once, after the rules were settled.
SEEDS = range(51, 59)

#: Timeout of a client's socket, s.
MOST_S = 15.0


CASES = (
    Case("2 % loss", "--rate 20Mbit/s --rtt 50ms --loss 0.02", ((100_000, 200_000),)),
    Case("10 % loss", "--rate 20Mbit/s --rtt 50ms --loss 0.1"),
    Case("20 % loss", "--rate 20Mbit/s --rtt 50ms --loss 0.2"),
    Case(
        "30 % loss",
        "--rate 20Mbit/s --rtt 50ms --loss 0.3 --uplink-loss 0.05",
        ((15_000, 30_000),),
        at_once=40,
    ),
    Case(
        "20 % loss, 10 % of ACKs, 100 ms",
        "--rate 20Mbit/s --rtt 100ms --loss 0.2 --uplink-loss 0.1",
        at_once=40,
    ),
    Case("small answers, 20 % loss", "--rate 20Mbit/s --rtt 80ms --loss 0.2", ((500, 4000),) * 6),
    Case("FIFO of 20 packets, overrun", "--rate 4Mbit/s --rtt 80ms --buffer 20packets"),
    Case("CoDel, ECN, 5 % loss", "--rate 4Mbit/s --rtt 60ms --queue codel --ecn --loss 0.05"),
    Case(
        "pauses of the server, 10 % loss",
        "--rate 20Mbit/s --rtt 50ms --loss 0.1",
        part=6000,
        pause_s=(0.1, 0.9),
    ),
    Case(
        "pauses of the server, no loss", "--rate 20Mbit/s --rtt 50ms", part=6000, pause_s=(0.1, 0.9)
    ),
    Case(
        "slow readers, 5 % loss",
        "--rate 20Mbit/s --rtt 50ms --loss 0.05",
        ((60_000, 90_000),),
        reads=(6000, 0.12),
    ),
    Case(
        "reordering, 5 % loss",
        "--rate 20Mbit/s --rtt 60ms --loss 0.05 --reorder 0.05 --reorder-delay 30ms",
    ),
    Case("many requests, 25 % loss", "--rate 20Mbit/s --rtt 60ms --loss 0.25", ((1000, 4000),) * 4),
)


# --- the clients, behind the link --------------------------------------------------------------


def be_clients(case: Case, port: int, seed: int) -> None:
    """Asks the server for answers, over many connections."""
    where = (os.environ["CWND_LINK_CALLER"], port)

    def ask(number: int) -> None:
        draw = random.Random(f"{seed} {number}")
        # Not all at the same time.
        time.sleep(draw.random())
        with contextlib.suppress(OSError), socket.socket() as server:
            if case.reads is not None:
                server.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 8192)
            server.settimeout(MOST_S)
            server.connect(where)
            for least, most in case.answers:
                size = draw.randint(least, most)
                server.sendall(json.dumps({"size": size, "seed": draw.random()}).encode() + b"\n")
                while size > 0:
                    most_bytes, rest_s = case.reads or (1 << 16, 0.0)
                    data = server.recv(min(size, most_bytes))
                    if not data:
                        return
                    size -= len(data)
                    if rest_s:
                        time.sleep(rest_s)

    with ThreadPoolExecutor(case.at_once) as threads:
        list(threads.map(ask, range(case.connections)))


# --- both, and what `cwnd infer` finds ---------------------------------------------------------


def measure(case: Case, seed: int, capture: Path) -> dict[int, Truth]:
    """Runs clients and servers; returns the ground truth by the client's port."""
    with Server(case) as server:
        told = json.dumps(asdict(case))
        clients = [str(Path(__file__)), "--be-clients", told, str(server.port), str(seed)]
        subprocess.run(
            [
                *(str(CWND), "link", "--quiet", *case.path.split(), "--seed", str(seed)),
                *("--pcap", str(capture), "--pcap-at", "command"),
                *("--", sys.executable, *clients),
            ],
            check=True,
        )
    return server.truths


#: A connection and the first byte of it that was not acknowledged, and how often it timed out.
Places: TypeAlias = "dict[tuple[int, int], int]"


def there(truths: dict[int, Truth], last: dict[int, float]) -> Places:
    """Timeouts by place, of data; those after which something arrived."""
    places: Places = defaultdict(int)
    for port, truth in truths.items():
        for at, offset, count in truth.places():
            if at < last.get(port, 0.0) and offset < truth.written:
                places[port, offset] += count
    return dict(places)


def said(found: Inferred, kind: str = "timeout") -> Places:
    """Returns the inferred counts of a kind of silence, by client port and offset."""
    of_data = found.silences.filter((pl.col("kind") == kind) & (pl.col("what") == "data"))
    rows = of_data.join(found.connections.select("connection", "client_port"), on="connection")
    places: Places = defaultdict(int)
    for port, offset, count in rows.select("client_port", "offset", "timeouts").iter_rows():
        places[port, offset] += count
    return dict(places)


@dataclass
class Score:
    """Right ones, of those that were there and of those that were said."""

    right: int = 0
    there: int = 0
    said: int = 0

    @property
    def recall(self) -> float | None:
        """Share of the true ones that were inferred; `None` if there were none."""
        return self.right / self.there if self.there else None

    @property
    def precision(self) -> float | None:
        """Share of the inferred ones that are true; `None` if there were none."""
        return self.right / self.said if self.said else None

    def add(self, right: int, there: int, said: int) -> None:
        """Adds counts."""
        self.right, self.there, self.said = self.right + right, self.there + there, self.said + said


@dataclass
class Outcome:
    """Scores of a case: inferred against true."""

    silences: Score = field(default_factory=Score)
    timeouts: Score = field(default_factory=Score)
    rows: Score = field(default_factory=Score)
    growth: Score = field(default_factory=Score)
    #: Silences with a timeout that the inference reports as ambiguous.
    untold: int = 0

    def add(self, other: Outcome) -> None:
        """Adds the scores of another outcome."""
        for name in ("silences", "timeouts", "rows", "growth"):
            score: Score = getattr(other, name)
            getattr(self, name).add(score.right, score.there, score.said)
        self.untold += other.untold


def compare(truths: dict[int, Truth], found: Inferred) -> Outcome:
    """Counts what is right."""
    last = dict(found.connections.select("client_port", "server_last_s").iter_rows())
    true, inferred, ambiguous = there(truths, last), said(found), said(found, "ambiguous")
    outcome = Outcome()
    both = true.keys() & inferred.keys()
    outcome.untold = len((true.keys() & ambiguous.keys()) - both)
    outcome.silences.add(len(both), len(true), len(inferred))
    right = sum(min(true[place], inferred[place]) for place in both)
    outcome.timeouts.add(right, sum(true.values()), sum(inferred.values()))
    rows = [{port for (port, _), n in places.items() if n > 1} for places in (true, inferred)]
    outcome.rows.add(len(rows[0] & rows[1]), len(rows[0]), len(rows[1]))
    backoff = pl.col("backoff").cast(pl.String)
    grew = dict(found.connections.select("client_port", backoff).iter_rows())
    told = [grew[port] for port in rows[1] if grew[port] not in ("none", "unclear")]
    # Linux doubles.
    outcome.growth.add(told.count("doubled"), len(rows[0]), len(told))
    return outcome


def run(case: Case, seed: int) -> Outcome:
    """Measures, infers, compares."""
    with tempfile.TemporaryDirectory() as scratch:
        capture = Path(scratch) / "clients.pcapng"
        truths = measure(case, seed, capture)
        return compare(truths, infer(capture))


def run_all(cases: Sequence[Case], seeds: Sequence[int], at_once: int = 3) -> list[Outcome]:
    """Several cases, some at a time; of each the sum over its seeds."""

    def total(case: Case) -> Outcome:
        outcome = Outcome()
        for seed in seeds:
            outcome.add(run(case, seed))
        return outcome

    with ThreadPoolExecutor(at_once) as threads:
        return list(threads.map(total, cases))


def rows(cases: Sequence[Case], outcomes: Sequence[Outcome]) -> pl.DataFrame:
    """The scores of each case, and of all together."""
    every = Outcome()
    for outcome in outcomes:
        every.add(outcome)
    named = [(case.name, outcome) for case, outcome in zip(cases, outcomes, strict=True)]
    return pl.DataFrame([_row(*each) for each in [*named, ("all", every)]])


def _row(name: str, outcome: Outcome) -> dict[str, str | int | None]:
    def share(value: float | None) -> str | None:
        return None if value is None else f"{value:.3f}"

    found: dict[str, str | int | None] = {"case": name}
    scores = {"silences": outcome.silences, "timeouts": outcome.timeouts, "rows": outcome.rows}
    for key, score in scores.items():
        found[key] = score.there
        found[f"{key}_recall"] = share(score.recall)
        found[f"{key}_precision"] = share(score.precision)
    found["doubled"] = f"{outcome.growth.right}/{outcome.growth.said}"
    return found | {"ambiguous": outcome.untold}


if __name__ == "__main__":
    if sys.argv[1] == "--be-clients":
        told, port, seed = sys.argv[2:]
        be_clients(Case(**json.loads(told)), int(port), int(seed))
    else:
        rows(CASES, run_all(CASES, SEEDS)).write_csv(sys.argv[1])
