"""Records claims T3 and T5 of the TCP*(n) paper with a real server and real clients on Linux.

nginx answers clients behind `cwnd link`, which ask at the times and for the sizes that the
simulator drew. All connections of a run are those of a control group of its own, for which
`cwnd-kernel hold tcpstar --cgroup` bounds timeouts. Each run has a network namespace of its own.

`cwnd study run tcpstar_servers --record runs.csv` repeats the simulator's side; `--on linux`, as
root and in real time, runs what is missing of Linux. It needs control groups of version 2,
`cwnd-kernel` and nginx. Both CSV files are written.
"""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import polars as pl

from cwnd import running
from cwnd.machine import kernel_helper
from cwnd.studies.questions.tcpstar_servers.measures import QUANTILES, STARS

FOLDER = Path(__file__).resolve().parent
RESULTS = Path("out").resolve() / "tcpstar-linux"
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
#: Runs on Linux at a time.
JOBS = 2
#: World, as the tables name it → the file with its requests.
WORLDS = {"Linux": "linux.json", "simulator": "after.parquet", "as Linux can": "bounded.parquet"}
#: Shares of requests that are answered later: what a curve is drawn from.
LEVELS = [10 ** (-exponent / 15) for exponent in range(46)]


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
    run = running.run(SCENARIO, seed=seed, set=changes)
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


def on_linux(case: Case, star: str, seed: int) -> None:
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
    server = _server(folder, spec["case"]["nginx"])
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


def _server(folder: Path, more: str) -> subprocess.Popen[bytes]:
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
        [*REAL_TIME.split(), "nginx", "-c", str(conf), "-e", str(folder / "error.log")]
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
        client = f"{REAL_TIME} {sys.executable} {FOLDER}/client.py {folder}/{group}"
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


def waits(file: Path) -> tuple[pl.Series, dict[str, Any]]:
    """Returns response times, s, null for requests without an answer; and facts about the run."""
    if file.suffix == ".parquet":
        return pl.read_parquet(file)["response_s"], {"valid": True}
    told = json.loads(file.read_text(encoding="utf-8"))
    answers = pl.DataFrame(
        told["answers"], schema=["start_s", "size", "response_s", "late_s"], orient="row"
    )
    response = pl.when(pl.col("response_s") > 0).then("response_s")
    waited = answers.select(response.alias("response_s"))["response_s"]
    rest = pl.Series("response_s", [None] * (told["asked"] - len(waited)), dtype=pl.Float64)
    down = told["directions"]["downlink"]
    known = {
        "valid": told["link"]["valid"],
        "drops": sum(down["drops"].values()),
        "delivered_pkts": down["delivered_pkts"],
        "late_p99_s": answers["late_s"].quantile(0.99),
        **{name: (told["tcpstar"] or {}).get(name) for name in ("timeouts", "bounded")},
        "to_1_s": (told["tcpstar"] or {}).get("bounded_above"),
    }
    return waited.append(rest), known


def beyond(waited: pl.Series, share: float) -> float | None:
    """Least response time of the slowest `share` of requests, s; infinite without an answer."""
    return waited.fill_null(float("inf")).quantile(1 - share, "higher")


def collect() -> None:
    """The tables, from what there is; runs that are not there stay as the tables have them."""
    known, drawn = (_kept(name) for name in ("runs.csv", "curves.csv"))
    runs, curves = [], []
    for case in CASES:
        for star in case.stars:
            n, seeds = STARS[star], []
            for world, ending in WORLDS.items():
                where = {"case": case.name, "n": n, "world": world}
                there: list[dict[str, Any]] = []
                pooled = []
                for seed in range(1, case.seeds + 1):
                    # Without TCP*(n) there is one simulator.
                    file = RESULTS / case.name / f"{n}-{seed}-{ending}"
                    file = (
                        file if n or world == "Linux" else file.with_name(f"0-{seed}-after.parquet")
                    )
                    if file.exists() and (world == "Linux" or seed in seeds):
                        waited, more = waits(file)
                        pooled.append(waited)
                        there.append(_row(case, where, seed, waited) | more)
                if not pooled:
                    there = _of(known, where)
                    curves += _of(drawn, where)
                else:
                    waited = pl.concat(pooled)
                    curves.append(where | {f"{p:.5f}": beyond(waited, p) for p in LEVELS})
                runs += there
                if world == "Linux":
                    # The simulator is beside Linux with the same requests.
                    seeds = [row["seed"] for row in there]
    pl.DataFrame(runs, infer_schema_length=None).write_csv(FOLDER / "runs.csv", float_precision=4)
    pl.DataFrame(curves, infer_schema_length=None).write_csv(
        FOLDER / "curves.csv", float_precision=5
    )


def _row(case: Case, where: dict[str, Any], seed: int, waited: pl.Series) -> dict[str, Any]:
    """Returns the row of a run: counts, mean and quantiles of response times."""
    row = {"claim": case.claim, **where, "seed": seed, "asked": len(waited)}
    row |= {"answered": len(waited) - waited.null_count(), "mean_s": waited.mean()}
    return row | {f"p{100 * q:g}_s": beyond(waited, 1 - q) for q in QUANTILES}


def _kept(name: str) -> list[dict[str, Any]]:
    """The rows of a table, if there is one."""
    file = FOLDER / name
    return pl.read_csv(file, infer_schema_length=None).to_dicts() if file.exists() else []


def _of(rows: list[dict[str, Any]], where: dict[str, Any]) -> list[dict[str, Any]]:
    return [row for row in rows if all(row[name] == value for name, value in where.items())]


def main() -> None:
    """Runs what is missing, of Linux with `--on linux` only, and writes both tables."""
    if sys.argv[1] == "--one":
        one(Path(sys.argv[2]))
        return
    for case in CASES:
        for seed in range(1, case.seeds + 1):
            sides(case, seed)
    if "linux" in sys.argv:
        with ThreadPoolExecutor(JOBS) as pool:
            for seed in range(1, max(case.seeds for case in CASES) + 1):
                for case in CASES:
                    for star in case.stars if seed <= case.seeds else ():
                        pool.submit(on_linux, case, star, seed)
    collect()


if __name__ == "__main__":
    main()
