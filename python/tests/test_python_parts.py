"""Queues and workloads in Python, classes that a program passes, and the processes of code."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import cwnd
from cwnd.errors import CodeError, InputError
from cwnd.running import plans
from cwnd.running.cells import PendingCells
from cwnd.running.processes import computed

if TYPE_CHECKING:
    from conftest import Cli

pytestmark = pytest.mark.usefixtures("untrusted")

PARTS = '''
import random
from collections import deque


class Fifo:
    def __init__(self, link, limit=50):
        self.limit, self.waiting, self.counters = limit, deque(), {"seen": 0}

    def enqueue(self, now, packet):
        self.counters["seen"] += 1
        if len(self.waiting) >= self.limit:
            packet.drop("overlimit")
        else:
            self.waiting.append(packet)

    def dequeue(self, now):
        return self.waiting.popleft() if self.waiting else None


class CoDel(Fifo):
    """RFC 8289 § 5, in nanoseconds; marks as it drops."""

    target, interval = 5_000_000, 100_000_000

    def __init__(self, link, limit=1000):
        super().__init__(link, limit)
        self.bytes, self.mtu = 0, 1500
        self.first_above, self.drop_next, self.count, self.last = 0, 0, 0, 0
        self.dropping = False

    def enqueue(self, now, packet):
        self.mtu = max(self.mtu, packet.size)
        before = len(self.waiting)
        super().enqueue(now, packet)
        self.bytes += packet.size * (len(self.waiting) - before)

    def head(self, now):
        if not self.waiting:
            self.first_above = 0
            return None, False
        packet = self.waiting.popleft()
        self.bytes -= packet.size
        if now - round(packet.arrived * 1e9) < self.target or self.bytes <= self.mtu:
            self.first_above = 0
            return packet, False
        if not self.first_above:
            self.first_above = now + self.interval
            return packet, False
        return packet, now >= self.first_above

    def law(self, since):
        return since + int(self.interval / self.count**0.5)

    def dequeue(self, now):
        now = round(now * 1e9)
        packet, drop = self.head(now)
        if not drop:
            self.dropping = False
        elif self.dropping:
            while now >= self.drop_next and self.dropping:
                kept = packet.mark("codel")
                if not kept:
                    packet.drop("codel")
                    packet, self.dropping = self.head(now)
                if kept or self.dropping:
                    self.count += 1
                    self.drop_next = self.law(self.drop_next)
                if kept:
                    break
        else:
            if not packet.mark("codel"):
                packet.drop("codel")
                packet, _ = self.head(now)
            self.dropping = True
            made, recent = self.count - self.last, now - self.drop_next < 16 * self.interval
            self.count = made if made > 1 and recent else 1
            self.drop_next, self.last = self.law(now), self.count
        return packet


class Transfers:
    def __init__(self, start, size=20_000, off=0.1, last=None):
        self.size, self.off, self.left = size, off, last

    def next(self, now):
        if self.left is not None:
            self.left -= 1
            if self.left < 0:
                return None
        return (self.off if now > 0 else 0.0), self.size


class Chunks(Transfers):
    open_loop = True


class Random:
    def __init__(self, start):
        self.random = random.Random(start.seed)

    def next(self, now):
        return self.random.expovariate(10), self.random.randrange(1, 30_000)
'''
SCENARIO = """
schema = 2
name = "parts"

[run]
duration = "10 s"

[dumbbell]
rate = "10 Mbit/s"
queue = { kind = "python", path = "parts.py", class = "Fifo" }

[flow.main]
count = 2
rtt = "40 ms"

[flow.other]
rtt = "40 ms"
workload = { kind = "python", path = "parts.py", class = "Transfers" }

[sweep]
repeat = 2
"""
COLUMNS = ["goodput_bit_s", "cwnd_reductions_loss", "cwnd_reductions_ecn", "retrans", "rto_count"]


@pytest.fixture
def parts(tmp_path: Path) -> Path:
    """A scenario with a queue and a workload of one's own."""
    (tmp_path / "parts.py").write_text(PARTS)
    (tmp_path / "parts.toml").write_text(SCENARIO)
    return tmp_path / "parts.toml"


def own(name: str, **arguments: object) -> dict[str, object]:
    return {"kind": "python", "path": "parts.py", "class": name, **arguments}


@pytest.mark.parametrize(
    ("in_python", "built_in", "endpoint"),
    [
        (own("Fifo", limit=30), {"kind": "fifo", "limit": "30 packets"}, {}),
        (own("CoDel"), {"kind": "codel"}, {}),
        (own("CoDel"), {"kind": "codel"}, {"ecn": True}),
    ],
)
def test_a_queue_in_python_is_the_built_in_one(
    parts: Path,
    in_python: dict[str, object],
    built_in: dict[str, object],
    endpoint: dict[str, object],
) -> None:
    sets: dict[str, object] = {"dumbbell.rate": "5 Mbit/s"}
    if endpoint:
        sets["flow.main.endpoint"] = endpoint
    mine = cwnd.run(parts, trust=True, set={**sets, "dumbbell.queue": in_python})
    theirs = cwnd.run(parts, trust=True, set={**sets, "dumbbell.queue": built_in})
    assert mine.flows.select(COLUMNS).equals(theirs.flows.select(COLUMNS))
    assert mine.reasons.drop("run_id").equals(theirs.reasons.drop("run_id"))
    assert mine.reasons["packets"].sum() > 0


def test_a_workload_in_python_is_the_built_in_one(parts: Path) -> None:
    on_off = {"kind": "on-off", "size": "20 kB", "off": "100 ms"}
    mine = cwnd.run(parts, trust=True)
    theirs = cwnd.run(parts, trust=True, set={"flow.other.workload": on_off})
    assert mine.flows.select(COLUMNS).equals(theirs.flows.select(COLUMNS))


def test_an_open_loop_does_not_wait_for_acknowledgements(parts: Path) -> None:
    def delivered(name: str, **arguments: object) -> int:
        sets = {"flow.other.workload": own(name, **arguments), "sweep.repeat": 1}
        run = cwnd.run(parts, trust=True, set=sets)
        return int(run.flows.filter(run.flows["group"] == "other")["delivered_bytes"].sum())

    # In 10 s, 20 kB each 100 ms are 2 MB; a round trip between transfers makes it less.
    assert delivered("Chunks") == pytest.approx(2e6, rel=0.1)
    assert delivered("Transfers") < 1.6e6
    assert delivered("Chunks", last=3) == delivered("Transfers", last=3) == 60_000


def test_random_numbers_follow_from_the_seed(parts: Path) -> None:
    sets = {"flow.other.workload": own("Random"), "flow.other.count": 2}
    one = cwnd.run(parts, trust=True, set=sets).flows
    assert one.equals(cwnd.run(parts, trust=True, set=sets).flows)
    other = one.filter(one["group"] == "other")["goodput_bit_s"]
    assert other.n_unique() == 4, "each flow of each seed draws its own"


def test_counters_of_parts_are_those_of_the_run(parts: Path) -> None:
    run = cwnd.run(parts, trust=True, set={"sweep.repeat": 1})
    arrived = run.links.filter(run.links["link"] == "bottleneck")["arrived_pkts"].item()
    assert run.manifest.activity["own_seen"] >= arrived > 0


@pytest.mark.parametrize(
    ("old", "new", "told"),
    [
        ("packet.drop(", "packet.dropp(", "no attribute 'dropp'"),
        ('packet.drop("overlimit")', 'packet.drop("Over")', "no name of lower-case letters"),
        ('packet.drop("overlimit")', "packet.drop(); packet.drop()", "already sent or dropped"),
        ("return self.waiting.popleft()", "return self.waiting[0]", "already sent or dropped"),
        ("self.waiting.append(packet)", "pass", "the queue forgot a packet"),
        ("return self.waiting.popleft()", "return self.waiting.clear()", "forgot a packet"),
        ("0.0), self.size", "0.0) * 0, self.size\n    open_loop = True", "delay of 0 s"),
        ("return self.waiting.popleft()", "return 3", "`dequeue` returned 3, not a packet"),
        ("def dequeue", "def dequeu", "no method `dequeue`"),
        ("limit=50", "limt=50", "at a start of link.bottleneck.queue"),
        ("return (self.off if", "return -1, (self.off if", "`next` returned (-1"),
        ("0.0), self.size", "0.0), None", "not a pair of seconds and bytes"),
        ('{"seen": 0}', '{"seen": -1e9}', "at the end of link.bottleneck.queue"),
        ('{"seen": 0}', '{"Seen": 0, "seen": 0}', "the counter `Seen` is no name"),
        ('{"seen": 0}', "[0]; self.counters.seen = 0", "list"),
    ],
)
def test_wrong_code_is_a_sentence(parts: Path, old: str, new: str, told: str) -> None:
    code = parts.with_name("parts.py")
    assert old in PARTS
    code.write_text(PARTS.replace(old, new))
    sets = {"dumbbell.queue": own("Fifo", limit=20)}
    with pytest.raises(CodeError) as raised:
        cwnd.run(parts, trust=True, set=sets)
    assert told in str(raised.value)
    assert "panicked" not in str(raised.value)


class Steady:
    """A controller whose window never changes."""

    def __init__(self, start: object, segments: int = 10) -> None:
        self.window = segments * start.mss  # type: ignore[attr-defined]

    def on_ack(self, path: object, ack: object) -> None:
        """Nothing."""

    def on_signal(self, path: object, signal: object) -> None:
        """Nothing."""


GIVEN = cwnd.Scenario(
    schema=2,
    run={"duration": "5 s"},
    dumbbell={"rate": "10 Mbit/s"},
    flow={"main": {"rtt": "100 ms", "controller": "steady"}},
    sweep={
        "axis": {
            "controller": {
                "path": "flow.main.controller",
                "values": ["steady", {"kind": "steady", "segments": 20}],
            }
        }
    },
)


def test_a_program_passes_its_class(tmp_path: Path) -> None:
    run = cwnd.run(GIVEN, controllers={"steady": Steady})
    assert run.summary()["axis_controller"].to_list() == ["steady", "steady segments=20"]
    ten, twenty = run.summary()["goodput_bit_s"]
    # A window of ten segments of 1448 bytes each 100 ms.
    assert ten == pytest.approx(10 * 1448 * 8 / 0.1, rel=0.05)
    assert twenty == pytest.approx(2 * ten, rel=0.05)
    checked = cwnd.run(GIVEN, controllers={"steady": Steady}, check=True)
    assert len(checked.manifest.steps_hashes or []) == 2
    cwnd.run(GIVEN, controllers={"steady": Steady}, pcap="all", pcap_dir=tmp_path)
    assert len(list(tmp_path.glob("*/bottleneck.pcapng"))) == 2


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({"steady": Steady, "other": Steady}, "names none of controllers['other']"),
        ({"cubic": Steady}, "'cubic' is a controller of cwnd's"),
        ({"steady": 3}, "'steady' is 3, not a class"),
    ],
)
def test_classes_that_cannot_be_passed(given: dict[str, type], told: str) -> None:
    with pytest.raises(InputError) as raised:
        cwnd.run(GIVEN, controllers=given)
    assert told in str(raised.value)


def test_a_result_of_a_passed_class_is_verified_by_its_files(tmp_path: Path, cli: Cli) -> None:
    cwnd.run(GIVEN, controllers={"steady": Steady}).save(tmp_path / "saved")
    answer = cli("verify", tmp_path / "saved", "--mend")
    assert answer.code == 0, answer.err
    assert (tmp_path / "saved" / "runs.parquet").exists()


def test_what_cannot_be_computed_again_is_not_damage(
    parts: Path, tmp_path: Path, cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    code = parts.with_name("parts.py")
    code.write_text(f"import os\nassert 'GONE' not in os.environ\n{PARTS}")
    cwnd.sweep(parts, tmp_path / "out", trust=True)
    monkeypatch.setenv("GONE", "1")
    answer = cli("verify", tmp_path / "out", "--mend")
    assert answer.code == 1
    assert "cannot be computed again" in answer.out + answer.err
    assert (tmp_path / "out" / "runs.parquet").exists()


def test_processes_agree_on_hashes_and_end_with_their_threads(parts: Path) -> None:
    code = parts.with_name("parts.py")
    code.write_text(
        "import threading, time\nthreading.Thread(target=time.sleep, args=(1000,)).start()\n"
        + PARTS.replace(
            "return self.random.expovariate(10),", "return 0.01 + hash('text') % 97 / 1e3,"
        )
    )
    sets = {"flow.other.workload": own("Random"), "sweep.repeat": 1}
    one = cwnd.run(parts, trust=True, set=sets).flows
    assert one.equals(cwnd.run(parts, trust=True, set=sets).flows)


def test_a_run_tells_its_progress(parts: Path) -> None:
    code = parts.with_name("parts.py")
    code.write_text(
        "import time\n"
        + PARTS.replace("def head", "def never").replace(
            'self.counters["seen"] += 1', 'self.counters["seen"] += 1; time.sleep(2e-4)'
        )
    )
    told: list[float] = []
    cwnd.run(
        parts,
        trust=True,
        threads=1,
        progress=lambda now: told.append(now.fraction),
        set={"sweep.repeat": 1},
    )
    assert len({fraction for fraction in told if 0 < fraction < 1}) > 3
    assert told == sorted(told)


def test_a_process_that_ends_takes_no_other_cell_with_it(parts: Path) -> None:
    code = parts.with_name("parts.py")
    code.write_text(
        "import os\n"
        + PARTS.replace(
            'self.counters["seen"] += 1',
            'self.counters["seen"] += 1\n        if self.limit == 7 and now > 1: os.abort()',
        )
    )
    with parts.open("a") as file:
        file.write('axis.limit = { path = "dumbbell.queue.limit", values = [5, 6, 7, 8, 9] }\n')
    plan = plans.plan(parts, overrides={"sweep.repeat": 1})
    made = list(computed(PendingCells(plan.scenario, list(range(5))), 2, None))
    failed = [each for each in made if getattr(each, "failure", None)]
    assert len(made) == 5
    assert len(failed) == 1
    assert "SIGABRT" in failed[0].failure.message


@pytest.mark.parametrize("part", ["queue", "workload"])
def test_linux_has_no_part_of_the_simulator(parts: Path, cli: Cli, part: str) -> None:
    built_in = {"queue": "dumbbell.queue=fifo", "workload": "flow.other.workload=bulk"}
    others = [text for name, text in built_in.items() if name != part]
    words = [word for text in others for word in ("--set", text)]
    refused = cli("run", parts, "--trust", "--on", "linux", "-o", parts.parent / "out", *words)
    assert refused.code == 2
    assert f"Linux has no {part} `python`" in refused.err


def test_a_link_has_no_queue_of_ones_own(parts: Path, cli: Cli) -> None:
    queue = f'{{ kind = "python", path = "{parts.with_name("parts.py")}", class = "Fifo" }}'
    refused = cli("link", "--rate", "10 Mbit/s", "--queue", queue, "--", "true")
    assert refused.code != 0
    assert "no queue `python`" in refused.err
