"""Effects of pacing and of TSO chunks, on Linux and in the simulator: docs/explanation/pacing.md.

    pacing.py record    # as root: what this kernel does behind `cwnd link`, docs/pacing/linux.csv
    pacing.py page      # the simulator beside it, into the page

A sender in the link's namespace is given what a setting says: `gso_max_segs` of its device,
SO_MAX_PACING_RATE, a congestion controller. Runs that the router was
too late for are made again; those that are there are not.
"""

from __future__ import annotations

import argparse
import contextlib
import csv
import json
import os
import platform
import select
import socket
import struct
import subprocess
import sys
import tempfile
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import polars as pl

import cwnd
import page_tables
from cwnd.results.stats import Estimate

if TYPE_CHECKING:
    from collections.abc import Sequence

PAGE = Path(__file__).resolve().parents[1] / "docs" / "explanation" / "pacing.md"
RECORDED = PAGE.with_suffix("") / "linux.csv"
#: A pace that bounds nothing, but switches the kernel's own pacing on (`sk_pacing_status`).
FAST_BYTE_S = 1_250_000_000
RUNS, RUNS_BESIDE = 2, 5
#: A run counts if the router was never later than this.
LATEST_US = 20_000.0
SO_MAX_PACING_RATE = 47
#: Name of the device inside the namespace of `cwnd link`.
DEVICE = "cwnd0"
QUANTILES = ("mean", "p50", "p90")


@dataclass(frozen=True)
class Bottleneck:
    """A bottleneck."""

    name: str
    rate_mbit_s: int
    rtt_ms: int
    #: Packets that may wait; none is CoDel with ECN.
    packets: int | None
    warmup_s: float = 0.0
    duration_s: float = 30.0

    @property
    def link(self) -> list[str]:
        """Options of `cwnd link`."""
        queue = "codel" if self.packets is None else "fifo"
        limit = 1000 if self.packets is None else self.packets
        ecn = "--ecn" if self.packets is None else "--no-ecn"
        options = ["--rate", f"{self.rate_mbit_s}Mbit/s", "--rtt", f"{self.rtt_ms}ms", ecn]
        return [*options, "--queue", queue, "--buffer", f"{limit} packets"]


def _bdp(rate: int, rtt: int, share: float) -> int:
    """Packets of 1500 B in a part of a bandwidth-delay product."""
    return max(2, round(rate * rtt * 1000 / 8 / 1500 * share))


PATHS = (
    Bottleneck("50 Mbit/s, 40 ms, 0.05 BDP", 50, 40, _bdp(50, 40, 0.05)),
    Bottleneck("50 Mbit/s, 40 ms, 0.25 BDP", 50, 40, _bdp(50, 40, 0.25)),
    Bottleneck("50 Mbit/s, 40 ms, 1 BDP", 50, 40, _bdp(50, 40, 1)),
    Bottleneck("50 Mbit/s, 40 ms, CoDel", 50, 40, None),
    Bottleneck("10 Mbit/s, 40 ms, 0.25 BDP", 10, 40, _bdp(10, 40, 0.25)),
    Bottleneck("10 Mbit/s, 40 ms, CoDel", 10, 40, None),
    Bottleneck("100 Mbit/s, 10 ms, 0.1 BDP", 100, 10, _bdp(100, 10, 0.1)),
)

#: Bottlenecks for BBR beside CUBIC, as in docs/controllers/bbr/linux.toml; both start together.
BESIDE = tuple(
    Bottleneck(f"10 Mbit/s, 40 ms, {x} BDP", 10, 40, _bdp(10, 40, x), 10.0, 60.0) for x in (2, 4)
)


@dataclass(frozen=True)
class Setting:
    """Segmentation and pacing of a sender."""

    #: `gso_max_segs` of its device; `None` is the kernel's default.
    segments: int | None = None
    #: `true` if the kernel paces it.
    paced: bool = False
    #: Keys of the endpoint in a scenario, beside its preset.
    endpoint: dict[str, str] = field(default_factory=dict)


SETTINGS = {
    "segments": Setting(segments=1),
    "chunks": Setting(endpoint={"tso": "64 kB", "tso_sizing": "rate-unpaced"}),
    "segments, paced": Setting(
        segments=1, paced=True, endpoint={"tso": "1448 B", "tso_sizing": "rate"}
    ),
    "chunks, paced": Setting(paced=True, endpoint={"tso": "64 kB", "tso_sizing": "rate"}),
}
#: Controller → its settings. BBR paces itself; pacing changes Reno as it changes CUBIC.
ASKED = {
    "cubic": ("chunks", "segments", "chunks, paced", "segments, paced"),
    "reno": ("chunks", "segments", "chunks, paced"),
    "bbr": ("chunks", "segments"),
}
COLUMNS = (
    "path", "controller", "setting", "run", "goodput_mbit_s", "share", "retrans", "drops", "marks",
    "qdelay_mean_ms", "qdelay_p50_ms", "qdelay_p90_ms", "late_p50_us", "late_p99_us", "late_max_us",
    "kernel",
)  # fmt: skip


@dataclass(frozen=True)
class Job:
    """A run: of one flow, or of several side by side (`bbr+cubic`)."""

    path: Bottleneck
    controllers: str
    #: Key of `SETTINGS`.
    setting: str
    run: int

    @property
    def key(self) -> tuple[str, ...]:
        """The columns that name it."""
        return (self.path.name, self.controllers, self.setting, str(self.run))


def jobs() -> list[Job]:
    """Returns the runs that are recorded."""
    alone = [
        Job(path, controller, name, run)
        for run in range(1, RUNS + 1)
        for path in PATHS
        for controller, names in ASKED.items()
        for name in names
    ]
    beside = [
        Job(path, "bbr+cubic", name, run)
        for run in range(1, RUNS_BESIDE + 1)
        for path in BESIDE
        for name in ("chunks", "segments")
    ]
    once = len(alone) // RUNS
    return [*alone[:once], *beside, *alone[once:]]


def record(file: Path, at_once: int) -> None:
    """Records what is not there yet."""
    there = set()
    if file.exists():
        with file.open() as lines:
            there = {tuple(row[c] for c in COLUMNS[:4]) for row in csv.DictReader(lines)}
    else:
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(",".join(COLUMNS) + "\n")
    left = [job for job in jobs() if job.key not in there]
    lock = threading.Lock()

    def one(job: Job) -> None:
        for _ in range(3):
            row = _run(job)
            if row["late_max_us"] <= LATEST_US:
                break
        else:
            print(f"late: {job}", file=sys.stderr, flush=True)
            return
        with lock, file.open("a") as out:
            csv.DictWriter(out, COLUMNS, lineterminator="\n").writerow(row)
            print(*(row[c] for c in COLUMNS[:9]), file=sys.stderr, flush=True)

    print(f"{len(left)} runs", file=sys.stderr, flush=True)
    # As the testbed's own threads: other work on the machine must not hold senders up.
    os.sched_setscheduler(0, os.SCHED_RR, os.sched_param(10))
    with ThreadPoolExecutor(at_once) as pool:
        list(pool.map(one, left))


def _run(job: Job) -> dict[str, Any]:
    """Runs one job on this kernel and returns its row."""
    path, setting = job.path, SETTINGS[job.setting]
    controllers = job.controllers.split("+")
    with socket.create_server(("", 0)) as server, tempfile.TemporaryDirectory() as folder:
        for _ in controllers:
            _Sink(server).start()
        told = {
            "port": server.getsockname()[1],
            "controllers": controllers,
            "paced": setting.paced,
            "segments": setting.segments,
            "warmup_s": path.warmup_s,
            "duration_s": path.duration_s,
        }
        program = [sys.executable, __file__, "--be-sender", json.dumps(told)]
        behind = [sys.executable, "-m", "cwnd", "link", "--quiet", *path.link, "-o", folder]
        done = subprocess.run(
            [*behind, "--", *program], stdout=subprocess.PIPE, text=True, check=True
        )
        said = json.loads(done.stdout)
        link = json.loads((Path(folder) / "link.json").read_text(encoding="utf-8"))
    line = next(each for each in link["links"] if each["link"] == "uplink")
    late = link["directions"]
    total = sum(said["acked"])
    return {
        "path": path.name,
        "controller": job.controllers,
        "setting": job.setting,
        "run": job.run,
        "goodput_mbit_s": round(total * 8 / (path.duration_s - path.warmup_s) / 1e6, 4),
        "share": round(said["acked"][0] / total, 4),
        "retrans": said["retrans"],
        "drops": line["dropped_pkts"],
        "marks": line["marked_pkts"],
        **{f"qdelay_{q}_ms": round(line[f"qdelay_{q}_us"] / 1e3, 3) for q in QUANTILES},
        **{
            f"late_{q}_us": max(late[d][f"late_{q}_us"] for d in late)
            for q in ("p50", "p99", "max")
        },
        "kernel": platform.release(),
    }


class _Sink(threading.Thread):
    """Takes what one connection sends."""

    def __init__(self, server: socket.socket) -> None:
        super().__init__(daemon=True)
        self.server = server

    def run(self) -> None:
        self.server.settimeout(30)
        try:
            connection, _ = self.server.accept()
        except OSError:
            return
        room = bytearray(1 << 18)
        with connection:
            try:
                while connection.recv_into(room):
                    pass
            except OSError:
                pass


def send(told: dict[str, Any]) -> None:
    """Inside the link: sends for a while, then says how far each connection came."""
    if told["segments"]:
        command = ["ip", "link", "set", "dev", DEVICE, "gso_max_segs", str(told["segments"])]
        subprocess.run(command, check=True)
    with contextlib.ExitStack() as stack:
        flows = [stack.enter_context(_connected(name, told)) for name in told["controllers"]]
        data = bytes(1 << 16)
        start = time.monotonic()
        begin, end = (start + told[name] for name in ("warmup_s", "duration_s"))
        before = [0] * len(flows)
        while (now := time.monotonic()) < end:
            if now < begin:
                before = [_info(flow)[1] for flow in flows]
            for ready in select.select((), flows, (), 0.05)[1]:
                with contextlib.suppress(BlockingIOError):
                    ready.send(data)
        infos = [_info(flow) for flow in flows]
        acked = [info[1] - earlier for info, earlier in zip(infos, before, strict=True)]
        print(json.dumps({"retrans": sum(info[0] for info in infos), "acked": acked}))


def _connected(controller: str, told: dict[str, Any]) -> socket.socket:
    flow = socket.socket()
    flow.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, controller.encode())
    if told["paced"]:
        pace = FAST_BYTE_S.to_bytes(8, sys.byteorder)
        flow.setsockopt(socket.SOL_SOCKET, SO_MAX_PACING_RATE, pace)
    flow.connect((os.environ["CWND_LINK_CALLER"], told["port"]))
    flow.setblocking(False)
    # What is under way when all is over is of no use.
    flow.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    return flow


def _info(flow: socket.socket) -> tuple[int, int]:
    """`tcpi_total_retrans` and `tcpi_bytes_acked`."""
    info = flow.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 256)
    return struct.unpack_from("=I", info, 100)[0], struct.unpack_from("=Q", info, 120)[0]


KINDS = {"reno": "newreno", "cubic": "cubic", "bbr": "bbr"}
#: Seeds of each.
SEEDS = 3
SHOWN = (("goodput_mbit_s", 1), ("qdelay_mean_ms", 1), ("drops", 0), ("marks", 0))


def scenario(path: Bottleneck, controllers: str, setting: str) -> cwnd.Scenario:
    """Returns the scenario of a setting. BBR paces segments itself, whatever the setting."""
    limit = f"{1000 if path.packets is None else path.packets} packets"
    kind = "codel" if path.packets is None else "fifo"
    return cwnd.Scenario(
        name="pacing",
        run={
            "duration": f"{path.duration_s:g} s",
            "warmup": f"{path.warmup_s:g} s",
            "sample": None,
        },
        dumbbell={
            "rate": f"{path.rate_mbit_s} Mbit/s",
            "queue": {"kind": kind, "limit": limit},
        },
        flow={
            name: {
                "rtt": f"{path.rtt_ms} ms",
                "start": "uniform(0 s, 20 ms)",
                "controller": _controller(name, setting),
                "endpoint": {
                    "preset": "linux",
                    "ecn": path.packets is None,
                    **({} if name == "bbr" else SETTINGS[setting].endpoint),
                },
            }
            for name in controllers.split("+")
        },
        sweep={"repeat": SEEDS if "+" not in controllers else 2 * RUNS_BESIDE},
    )


def _controller(name: str, setting: str) -> dict[str, str]:
    """Linux's controller: with pacing by the kernel, HyStart's trains last a whole round trip."""
    paced = name == "cubic" and SETTINGS[setting].paced
    trains = {"slow_start": "hystart-paced"} if paced else {}
    return {"kind": KINDS[name], "preset": "linux", **trains}


def simulated(path: Bottleneck, controllers: str, setting: str) -> pl.DataFrame:
    """A row for each seed, as Linux's rows are."""
    run = cwnd.run(scenario(path, controllers, setting))
    first = controllers.split("+", maxsplit=1)[0]
    flows = run.flows.group_by("run_id", maintain_order=True).agg(
        goodput_mbit_s=pl.col("goodput_bit_s").sum() / 1e6,
        share=pl.col("goodput_bit_s").filter(pl.col("group").cast(pl.String) == first).sum()
        / pl.col("goodput_bit_s").sum(),
    )
    line = run.links.filter(pl.col("link").cast(pl.String) == "bottleneck")
    return flows.join(line, on="run_id").select(
        "goodput_mbit_s",
        "share",
        drops=pl.col("dropped_pkts").cast(pl.Float64),
        marks=pl.col("marked_pkts").cast(pl.Float64),
        qdelay_mean_ms=pl.col("qdelay_mean_us") / 1e3,
    )


def alone() -> list[str]:
    """The table of single flows: the simulator's mean, Linux's mean."""
    head = ["path", "", "sent as", "goodput, Mbit/s", "mean delay, ms", "drops", "marks"]
    return [*page_tables.head(head), *lines_of(PATHS)]


def lines_of(paths: Sequence[Bottleneck]) -> list[str]:
    """Returns the lines of the table for some paths."""
    lines = []
    recorded = pl.read_csv(RECORDED)
    for path in paths:
        for controller, names in ASKED.items():
            for name in names:
                theirs = _of(recorded, path, controller, name)
                ours = simulated(path, controller, name)
                cells = [
                    f"{ours[column].mean():.{digits}f} / {theirs[column].mean():.{digits}f}"
                    for column, digits in SHOWN
                ]
                lines.append(page_tables.line([path.name, controller, name, *cells]))
    return lines


def beside() -> list[str]:
    """The table of BBR beside CUBIC: shares with their 95 % intervals."""
    lines = page_tables.head(["buffer", "CUBIC sends", "simulator, %", "Linux, %"])
    recorded = pl.read_csv(RECORDED)
    for path in BESIDE:
        for name in ("segments", "chunks"):
            both = (simulated(path, "bbr+cubic", name), _of(recorded, path, "bbr+cubic", name))
            cells = [_interval(100 * each["share"]) for each in both]
            lines.append(page_tables.line([path.name.rsplit(", ", maxsplit=1)[-1], name, *cells]))
    return lines


def _of(recorded: pl.DataFrame, path: Bottleneck, controllers: str, name: str) -> pl.DataFrame:
    return recorded.filter(
        (pl.col("path") == path.name)
        & (pl.col("controller") == controllers)
        & (pl.col("setting") == name)
    )


def _interval(values: pl.Series) -> str:
    found = Estimate.of(values.to_list())
    assert found is not None
    return page_tables.interval(found.mean, found.half_width, 1)


def main() -> None:
    """Records, or writes the page."""
    if sys.argv[1] == "--be-sender":
        send(json.loads(sys.argv[2]))
        return
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("what", choices=("record", "page"))
    parser.add_argument("file", type=Path, nargs="?", default=RECORDED)
    parser.add_argument("-j", "--at-once", type=int, default=3)
    options = parser.parse_args()
    if options.what == "record":
        record(options.file, options.at_once)
    else:
        page_tables.write(PAGE, "scripts/pacing.py alone", alone())
        page_tables.write(PAGE, "scripts/pacing.py beside", beside())


if __name__ == "__main__":
    main()
