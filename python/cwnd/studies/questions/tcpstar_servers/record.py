"""Claims T3 and T5 of the TCP*(n) paper with a real server and real clients on Linux.

nginx answers clients behind `cwnd link`, who ask at the times and for the sizes that the simulator
drew; all connections of a run, the clients' too, are those of a control group of its own, for which
`cwnd-kernel load tcpstar --cgroup` bounds timeouts. Beside it are the simulator's curves for the
same requests. Each run has a network namespace of its own. It needs root, control groups of version
2, `cwnd-kernel` and nginx (`--nginx`, if it is not in PATH); `scripts/tcpstar_page.py` shows what
came of it.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict
from pathlib import Path
from typing import Any

import polars as pl

import cwnd
from cwnd.machine import kernel_helper
from tcpstar_cases import CASES, FOLDER, RESULTS, ROOT, STARS, Case

SCENARIO = FOLDER / "clients.toml"
CWND = Path(sys.executable).with_name("cwnd")
PORT = 8080
#: The groups of the scenario, and their round-trip times.
GROUPS = {"near": "33.75ms", "middle": "81.25ms", "far": "128.75ms", "farthest": "176.25ms"}
RED = '{ kind = "red", limit = "262.5 kB", min_th = "43.7 kB", max_th = "131.25 kB" }'
#: Time of the last arrivals of clients, and end of the run, s.
UNTIL_S, END_S = 40, 80
#: Server and clients come before what else the machine does, as the testbed's.
REAL_TIME = "chrt -r 10"
#: Timeout until all links are up, s.
LINKS_S = 240


def simulated(case: Case, star: str, seed: int, backoff: str) -> pl.DataFrame:
    """The simulator's requests, with `after` (the paper's) or `bounded` (as Linux can)."""
    n = STARS[star]
    endpoint = f'preset = "linux", rto_min = "{case.rto_min_ms} ms"'
    # Linux's least timeout is what is above the round trip.
    endpoint += f', rto_variation_min = "{case.rto_min_ms} ms"'
    if n > 0:
        endpoint += f', rto_backoff = "{backoff}", rto_backoff_after = {n}'
        endpoint += f", syn_backoff_after = {max(4, n)}"
    changes = []
    for group in GROUPS:
        changes += [
            f"flow.{group}.workload={case.workload}",
            f"flow.{group}.arrivals={case.arrivals}",
            f"flow.{group}.endpoint={{ {endpoint} }}",
        ]
    run = cwnd.run(SCENARIO, seed=seed, set=changes)
    columns = ("group", "start_s", "response_bytes", "response_s")
    return run.requests.select(pl.col("group").cast(pl.String), *columns[1:])


def sides(case: Case, seed: int) -> None:
    """The simulator's side of a case."""
    for star in case.stars:
        for backoff in ("after", "bounded"):
            file = RESULTS / case.name / f"{STARS[star]}-{seed}-{backoff}.parquet"
            if not file.exists() and (STARS[star] > 0 or backoff == "after"):
                file.parent.mkdir(parents=True, exist_ok=True)
                simulated(case, star, seed, backoff).write_parquet(file)


def asked_for(case: Case, seed: int) -> pl.DataFrame:
    """The requests of a seed: all arms have the same."""
    return pl.read_parquet(RESULTS / case.name / f"0-{seed}-after.parquet")


def on_linux(case: Case, star: str, seed: int, options: argparse.Namespace) -> None:
    """A run in a network namespace and a control group of its own; nothing if it was done."""
    file = RESULTS / case.name / f"{STARS[star]}-{seed}-linux.json"
    if file.exists():
        return
    requests = asked_for(case, seed)
    spec = {
        "case": asdict(case),
        "n": STARS[star],
        "seed": seed,
        "requests": {
            group: requests.filter(pl.col("group") == group)
            .select("start_s", "response_bytes")
            .rows()
            for group in GROUPS
        },
        "python": options.python,
        "nginx": options.nginx,
        "to": str(file),
    }
    with tempfile.TemporaryDirectory(prefix="cwnd-star-") as folder:
        (Path(folder) / "spec.json").write_text(json.dumps(spec), encoding="utf-8")
        command = ["unshare", "-n", sys.executable, __file__, "--one", folder]
        subprocess.run(command, check=True)
    sys.stderr.write(f"{file}\n")


def groups_of_processes() -> Path:
    """Returns the mount point of control groups of version 2."""
    for line in Path("/proc/self/mounts").read_text(encoding="utf-8").splitlines():
        _, path, kind, *_ = line.split()
        if kind == "cgroup2":
            return Path(path)
    raise SystemExit("there are no control groups of version 2")


def one(folder: Path) -> None:
    """A run, in the namespace of this process."""
    spec = json.loads((folder / "spec.json").read_text(encoding="utf-8"))
    group = groups_of_processes() / f"cwnd-star-{os.getpid()}"
    before = Path("/proc/self/cgroup").read_text(encoding="utf-8").split("0::")[-1].strip()
    group.mkdir()
    (group / "cgroup.procs").write_text(str(os.getpid()))
    try:
        found = _served(spec, folder, group)
    finally:
        home = groups_of_processes() / before.lstrip("/") / "cgroup.procs"
        home.write_text(str(os.getpid()))
        for _ in range(100):
            try:
                group.rmdir()
                break
            except OSError:
                time.sleep(0.1)
    Path(spec["to"]).write_text(json.dumps(found), encoding="utf-8")


def _served(spec: dict[str, Any], folder: Path, group: Path) -> dict[str, Any]:
    subprocess.run(["ip", "link", "set", "lo", "up"], check=True)
    sysctls = {
        "net.ipv4.tcp_congestion_control": "reno",
        "net.ipv4.tcp_no_metrics_save": "1",
        "net.ipv4.tcp_rto_min_us": str(spec["case"]["rto_min_ms"] * 1000),
    }
    for name, value in sysctls.items():
        Path(f"/proc/sys/{name.replace('.', '/')}").write_text(value, encoding="utf-8")
    held = None
    if spec["n"] > 0:
        helper = kernel_helper() or "cwnd-kernel"
        name = f"star_{os.getpid()}"
        words = [helper, "hold", "tcpstar", "--name", name, "--cgroup", str(group)]
        words += ["--backoff-after", str(spec["n"])]
        held = subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        assert held.stdout
        assert json.loads(held.stdout.readline())["event"] == "ready"
    server = _server(spec["nginx"], folder, spec["case"]["nginx"])
    _say(folder, "server")
    try:
        headers = _headers()
        link = _clients(spec, folder, headers, sysctls)
    finally:
        _say(folder, "clients are done")
        server.terminate()
        server.wait()
        _say(folder, "server is done")
        counted = None
        if held:
            held.terminate()
            assert held.stdout
            counted = json.loads(held.stdout.readline())["counters"]
            held.wait()
    answers, asked = [], 0
    for each in GROUPS:
        told = json.loads((folder / f"{each}.answers").read_text(encoding="utf-8"))
        answers += told["answers"]
        asked += told["asked"]
    return {
        "headers": headers,
        "asked": asked,
        "answers": answers,
        "tcpstar": counted,
        "link": {key: link[key] for key in ("valid", "flaws") if key in link},
        "directions": link.get("directions"),
    }


def _say(folder: Path, what: str) -> None:
    sys.stderr.write(f"{time.strftime('%H:%M:%S')} {folder.name}: {what}\n")


def _server(nginx: str, folder: Path, more: str) -> subprocess.Popen[bytes]:
    with (folder / "file").open("wb") as file:
        # Larger than any object, and of zeros.
        file.truncate(1 << 32)
    # Its worker may be another user.
    folder.chmod(0o755)
    conf = folder / "nginx.conf"
    conf.write_text(
        f"""
        daemon off; worker_processes 1; pid {folder}/pid; error_log {folder}/error.log; user root;
        events {{ worker_connections 20000; }}
        http {{
            access_log off; server_tokens off; etag off; sendfile on; tcp_nodelay on; {more}
            client_body_temp_path {folder}/a; proxy_temp_path {folder}/b;
            fastcgi_temp_path {folder}/c; uwsgi_temp_path {folder}/d; scgi_temp_path {folder}/e;
            server {{ listen {PORT} backlog=4096; root {folder}; }}
        }}
        """,
        encoding="utf-8",
    )
    server = subprocess.Popen(
        [*REAL_TIME.split(), nginx, "-c", str(conf), "-e", str(folder / "error.log")]
    )
    for _ in range(200):
        time.sleep(0.05)
        try:
            socket.create_connection(("127.0.0.1", PORT), timeout=1).close()
        except OSError:
            continue
        return server
    raise SystemExit((folder / "error.log").read_text(encoding="utf-8"))


def _headers() -> int:
    """Bytes of an answer before the object."""
    with socket.create_connection(("127.0.0.1", PORT)) as connection:
        connection.sendall(
            b"GET /file HTTP/1.1\r\nHost: server\r\nConnection: close\r\n"
            b"Range: bytes=0-1999\r\n\r\n"
        )
        answer = b""
        while data := connection.recv(1 << 16):
            answer += data
    head, separator, _ = answer.partition(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 206"), head
    return len(head) + len(separator)


def _clients(
    spec: dict[str, Any], folder: Path, headers: int, sysctls: dict[str, str]
) -> dict[str, Any]:
    lines = ["export SERVER=$CWND_LINK_CALLER"]
    for group, rtt in GROUPS.items():
        plan = {
            "headers": headers,
            "port": PORT,
            "ready": str(folder / f"{group}.ready"),
            "go": str(folder / "go"),
            "until": END_S,
            "sysctls": {name: value for name, value in sysctls.items() if "rto_min" in name},
        }
        given = {"plan": plan, "requests": spec["requests"][group]}
        (folder / group).write_text(json.dumps(given), encoding="utf-8")
        client = f"{REAL_TIME} {spec['python']} {ROOT}/scripts/tcpstar_client.py {folder}/{group}"
        lines.append(
            f"{CWND} link --quiet --rtt {rtt} --"
            f" sh -c '{client} {folder}/{group}.answers '$SERVER &"
        )
    (folder / "clients.sh").write_text("\n".join([*lines, "wait"]), encoding="utf-8")
    options = [
        "--rate",
        "10Mbit/s",
        "--queue",
        RED,
        "--uplink-queue",
        '{ kind = "fifo", limit = "1 MB" }',
    ]
    options += ["--seed", str(spec["seed"]), "--quiet", "-o", str(folder / "link")]
    with subprocess.Popen([CWND, "link", *options, "--", "sh", folder / "clients.sh"]) as link:
        end = time.monotonic() + LINKS_S
        while not all((folder / f"{group}.ready").exists() for group in GROUPS):
            if time.monotonic() > end or link.poll() is not None:
                link.terminate()
                raise SystemExit("the clients do not start")
            time.sleep(0.1)
        part = folder / "go.part"
        part.write_text(str(time.monotonic() + 1.0), encoding="utf-8")
        part.rename(folder / "go")
        _say(folder, "go")
        link.wait()
    told: dict[str, Any] = json.loads((folder / "link" / "link.json").read_text(encoding="utf-8"))
    return told


def main() -> None:
    """Runs what is missing."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--one", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("--nginx", default=shutil.which("nginx") or "nginx")
    parser.add_argument("--python", default=sys.executable, help="of the clients")
    parser.add_argument("--simulator", action="store_true", help="the simulator's side only")
    parser.add_argument("--jobs", "-j", type=int, default=2)
    parser.add_argument("--only", nargs="*", help="cases")
    options = parser.parse_args()
    if options.one:
        one(options.one)
        return
    chosen = [case for case in CASES if not options.only or case.name in options.only]
    if options.simulator:
        for case in chosen:
            for seed in range(1, case.seeds + 1):
                sides(case, seed)
        return
    with ThreadPoolExecutor(options.jobs) as pool:
        for seed in range(1, max(case.seeds for case in chosen) + 1):
            for case in chosen:
                for star in case.stars if seed <= case.seeds else ():
                    pool.submit(on_linux, case, star, seed, options)


if __name__ == "__main__":
    main()
