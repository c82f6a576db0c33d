"""Records this kernel's pacing and chunks behind `cwnd link`, as root: `--record linux.csv`.

A sender in the link's namespace gets the settings of a run: `gso_max_segs` of its device,
SO_MAX_PACING_RATE, a congestion controller. Runs whose router was late are repeated, three tries at
most; recorded runs are kept.
"""

from __future__ import annotations

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
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cwnd import _core

FOLDER = Path(__file__).parent
#: A pace that bounds nothing, but switches the kernel's own pacing on (`sk_pacing_status`).
FAST_BYTE_S = 1_250_000_000
RUNS, RUNS_BESIDE = 2, 5
#: Runs at a time.
AT_ONCE = 3
#: Largest lateness of the router in a run that counts, µs.
LATEST_US = 20_000.0
SO_MAX_PACING_RATE = 47
#: Name of the device inside the namespace of `cwnd link`.
DEVICE = "cwnd0"
QUANTILES = ("mean", "p50", "p90")
COLUMNS = (
    "path", "controller", "setting", "run", "goodput_mbit_s", "share", "retrans", "drops", "marks",
    "qdelay_mean_ms", "qdelay_p50_ms", "qdelay_p90_ms", "late_p50_us", "late_p99_us", "late_max_us",
    "kernel",
)  # fmt: skip


@dataclass(frozen=True)
class Job:
    """A run: of one flow, or of several side by side (`bbr+cubic`)."""

    path: str
    controllers: str
    setting: str
    run: int
    #: Options of `cwnd link`.
    link: tuple[str, ...]
    warmup_s: float = 0.0
    duration_s: float = 30.0

    @property
    def key(self) -> tuple[str, ...]:
        """The columns that name it."""
        return (self.path, self.controllers, self.setting, str(self.run))


def axis(file: str, name: str) -> dict[str, Any]:
    """Returns labels and values of an axis of a scenario."""
    scenario = _core.read_toml((FOLDER / file).read_text(encoding="utf-8"), name=file)
    found = scenario["sweep"]["axis"][name]
    return dict(zip(found["labels"], found["values"], strict=True))


def options(rate: str, rtt: str, queue: dict[str, str], *, ecn: bool) -> tuple[str, ...]:
    """Options of `cwnd link`."""
    path = ("--rate", rate.replace(" ", ""), "--rtt", rtt.replace(" ", ""))
    return (
        *path,
        "--ecn" if ecn else "--no-ecn",
        "--queue",
        queue["kind"],
        "--buffer",
        queue["limit"],
    )


def jobs() -> list[Job]:
    """Returns the runs that are recorded."""
    values = axis("cubic.toml", "path").items()
    paths = {name: options(*path, ecn=ecn) for name, (*path, ecn) in values}
    slow = {
        name: options("10 Mbit/s", "40 ms", queue, ecn=False)
        for name, queue in axis("beside.toml", "buffer").items()
    }
    settings = {name: tuple(axis(f"{name}.toml", "setting")) for name in ("cubic", "reno")}
    alone = [
        Job(path, controller, setting, run, link)
        for run in range(1, RUNS + 1)
        for path, link in paths.items()
        for controller, names in {**settings, "bbr": ("chunks", "segments")}.items()
        for setting in names
    ]
    beside = [
        Job(f"10 Mbit/s, 40 ms, {buffer}", "bbr+cubic", setting, run, link, 10.0, 60.0)
        for run in range(1, RUNS_BESIDE + 1)
        for buffer, link in slow.items()
        for setting in ("chunks", "segments")
    ]
    once = len(alone) // RUNS
    return [*alone[:once], *beside, *alone[once:]]


def record(file: Path) -> None:
    """Records the runs that are missing."""
    there = set()
    if file.exists():
        with file.open() as lines:
            there = {tuple(row[c] for c in COLUMNS[:4]) for row in csv.DictReader(lines)}
    else:
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
    with ThreadPoolExecutor(AT_ONCE) as pool:
        list(pool.map(one, left))


def _run(job: Job) -> dict[str, Any]:
    """Runs one job on this kernel and returns its row."""
    controllers = job.controllers.split("+")
    with socket.create_server(("", 0)) as server, tempfile.TemporaryDirectory() as folder:
        for _ in controllers:
            _Sink(server).start()
        told = {
            "port": server.getsockname()[1],
            "controllers": controllers,
            "paced": "paced" in job.setting,
            "segments": 1 if "segments" in job.setting else None,
            "warmup_s": job.warmup_s,
            "duration_s": job.duration_s,
        }
        program = [sys.executable, __file__, "--be-sender", json.dumps(told)]
        behind = [sys.executable, "-m", "cwnd", "link", "--quiet", *job.link, "-o", folder]
        done = subprocess.run(
            [*behind, "--", *program], stdout=subprocess.PIPE, text=True, check=True
        )
        said = json.loads(done.stdout)
        link = json.loads((Path(folder) / "link.json").read_text(encoding="utf-8"))
    line = next(each for each in link["links"] if each["link"] == "uplink")
    late = link["directions"]
    total = sum(said["acked"])
    return {
        "path": job.path,
        "controller": job.controllers,
        "setting": job.setting,
        "run": job.run,
        "goodput_mbit_s": round(total * 8 / (job.duration_s - job.warmup_s) / 1e6, 4),
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


if __name__ == "__main__":
    if sys.argv[1] == "--be-sender":
        send(json.loads(sys.argv[2]))
    else:
        record(Path(sys.argv[1]))
