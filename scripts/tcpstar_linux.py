"""Claims T3 and T5 of the TCP*(n) paper with a real server and real clients on Linux.

nginx answers clients behind `cwnd link`, who ask at the times and for the sizes that the simulator
drew; all connections of a run, the clients' too, are those of a control group of its own, for which
`cwnd-kernel load tcpstar --cgroup` bounds timeouts. Beside it are the simulator's curves for the
same requests. Each run has a network namespace of its own. It needs root, control groups of version
2, `cwnd-kernel` and nginx (`--nginx`, if it is not in PATH); `--page` writes the tables, the figure
and the section of the paper's page from the results.
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
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import polars as pl

import cwnd
from cwnd.machine import kernel_helper
from cwnd.plots import style

ROOT = Path(__file__).resolve().parents[1]
FOLDER = ROOT / "python" / "cwnd" / "papers" / "tcpstar" / "web"
SCENARIO = FOLDER / "clients.toml"
IMAGES = ROOT / "docs" / "images" / "papers" / "tcpstar"
RESULTS = ROOT / "out" / "tcpstar-linux"
CWND = Path(sys.executable).with_name("cwnd")
PORT = 8080
#: The groups of the scenario, and their round-trip times.
GROUPS = {"near": "33.75ms", "middle": "81.25ms", "far": "128.75ms", "farthest": "176.25ms"}
RED = '{ kind = "red", limit = "262.5 kB", min_th = "43.7 kB", max_th = "131.25 kB" }'
#: TCP*(6) is TCP*(∞).
STARS = {"TCP": 0, "TCP*(1)": 1, "TCP*(3)": 3, "TCP*(∞)": 6}
#: When the last clients come, and when nobody waits any longer, s.
UNTIL_S, END_S = 40, 80
#: Server and clients come before what else the machine does, as the testbed's.
REAL_TIME = "chrt -r 10"
#: After so many seconds all links are there.
LINKS_S = 240


@dataclass(frozen=True)
class Case:
    """A setting, in which all arms have the same requests."""

    name: str
    claim: str
    #: What the scenario has in place of its own, for each group.
    workload: str = '{ kind = "web", size = "mondal-trace-1" }'
    arrivals: str = '{ kind = "poisson", load = 0.275 }'
    rto_min_ms: int = 200
    #: What the server is told besides.
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


#: Of what was found: T3's first with answers whose headers have no segment of their own.
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
    """Where control groups of version 2 are."""
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


#: Worlds as the tables call them, and where their requests are.
WORLDS = {"Linux": "linux.json", "simulator": "after.parquet", "as Linux can": "bounded.parquet"}
#: Shares of requests that are answered later: what a curve is drawn from.
LEVELS = [10 ** (-exponent / 15) for exponent in range(46)]
#: Quantiles of the table.
QUANTILES = (0.5, 0.9, 0.99, 0.999)


def waits(file: Path) -> tuple[pl.Series, dict[str, Any]]:
    """How long each request waited, s, null for those without an answer; and what else is known."""
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
    """How long the slowest `share` of all wait at least; `None` where these have no answer."""
    return waited.fill_null(float("inf")).quantile(1 - share, "higher")


def collect() -> None:
    """The tables, from what there is."""
    runs, curves = [], []
    for case in CASES:
        for star in case.stars:
            n = STARS[star]
            for world, ending in WORLDS.items():
                pooled = []
                for seed in range(1, case.seeds + 1):
                    # Without TCP*(n) there is one simulator.
                    file = RESULTS / case.name / f"{n}-{seed}-{ending}"
                    file = (
                        file if n or world == "Linux" else file.with_name(f"0-{seed}-after.parquet")
                    )
                    if not file.exists():
                        continue
                    waited, known = waits(file)
                    pooled.append(waited)
                    row = {"claim": case.claim, "case": case.name, "n": n, "world": world}
                    row |= {"seed": seed, "asked": len(waited)}
                    row |= {"answered": len(waited) - waited.null_count(), "mean_s": waited.mean()}
                    row |= {f"p{100 * q:g}_s": beyond(waited, 1 - q) for q in QUANTILES}
                    runs.append(row | known)
                if pooled:
                    waited = pl.concat(pooled)
                    where = {"case": case.name, "n": n, "world": world}
                    curves += [where | {"share": p, "s": beyond(waited, p)} for p in LEVELS]
    FOLDER.mkdir(exist_ok=True)
    pl.DataFrame(runs, infer_schema_length=None).write_csv(FOLDER / "runs.csv", float_precision=4)
    pl.DataFrame(curves, infer_schema_length=None).write_csv(
        FOLDER / "curves.csv", float_precision=5
    )


def _mean(runs: pl.DataFrame, column: str, **of: object) -> float | None:
    found = runs.filter(**of)[column].mean()
    return found if isinstance(found, float) else None


def _shown(value: float | None) -> str:
    return "–" if value is None else f"{value:.3g}"


def _table_of_traces(runs: pl.DataFrame) -> str:
    rows = [
        "| trace | arm | runs | answers a run | median, s | 90 % | 99 % | 99.9 % | dropped |",
        "|---|---|---:|---:|---:|---:|---:|---:|---:|",
    ]
    for case in traces():
        for star, n in STARS.items():
            of = runs.filter(case=case.name, n=n, world="Linux")
            if of.is_empty():
                continue
            cells = []
            for q in QUANTILES:
                both = (
                    _mean(runs, f"p{100 * q:g}_s", case=case.name, n=n, world=world)
                    for world in ("simulator", "Linux")
                )
                cells.append(" → ".join(map(_shown, both)))
            drops = of["drops"].sum() / (of["drops"].sum() + of["delivered_pkts"].sum())
            rows.append(
                f"| {'I' * int(case.name[-1])} | {star} | {of.height} |"
                f" {of['answered'].mean():.0f} |"
                f" {' | '.join(cells)} | {100 * drops:.0f} % |"
            )
    return "\n".join(rows)


def _table_of_bursts(runs: pl.DataFrame) -> str:
    rows = [
        "| on and off for | TCP | TCP\\*(∞) | Linux: TCP ÷ TCP\\*(∞) | as Linux can | simulator |",
        "|---|---:|---:|---:|---:|---:|",
    ]
    for case in bursts():
        ratios, shown = [], []
        for world in WORLDS:
            pair = [
                _mean(runs, "p99_s", case=case.name, n=n, world=world)
                for n in (0, STARS["TCP*(∞)"])
            ]
            shown.append(pair)
            ratios.append(pair[0] / pair[1] if pair[0] and pair[1] else None)
        if shown[0][0] is None:
            continue
        period = float(case.name.removeprefix("period-"))
        cells = [f"{period:g} s", *(f"{_shown(value)} s" for value in shown[0])]
        rows.append(f"| {' | '.join([*cells, *map(_shown, ratios)])} |")
    return "\n".join(rows)


def page() -> str:
    """The page, by its template and the tables beside it."""
    runs = pl.read_csv(FOLDER / "runs.csv")
    text = (FOLDER / "template.md").read_text(encoding="utf-8")
    text = text.replace("{traces}", _table_of_traces(runs))
    return text.replace("{bursts}", _table_of_bursts(runs))


def picture() -> dict[str, bytes]:
    """Response times of the traces, and the 99th percentile where connections come in bursts."""
    curves, runs = pl.read_csv(FOLDER / "curves.csv"), pl.read_csv(FOLDER / "runs.csv")
    curves = curves.filter(pl.col("s").is_finite())
    with style.styled():
        figure = style.figure(5.4, width=7.2)
        panels = figure.subplots(2, 2).flatten()
        for panel, case in zip(panels, traces(), strict=False):
            for index, (star, n) in enumerate(STARS.items()):
                for world, dash in (("Linux", "-"), ("simulator", ":")):
                    of = curves.filter(case=case.name, n=n, world=world)
                    label = star if world == "Linux" else None
                    panel.plot(of["s"], of["share"], dash, color=style.colour(index), label=label)
            panel.set_xscale("log")
            panel.set_yscale("log")
            panel.set_xlabel(f"response time, s (Trace {'I' * int(case.name[-1])})")
            panel.set_ylabel("share that waits longer")
        panels[0].legend()
        panel = panels[3]
        periods = [float(case.name.removeprefix("period-")) for case in bursts()]
        for index, (world, dash) in enumerate(
            (("Linux", "-"), ("as Linux can", "--"), ("simulator", ":"))
        ):
            for star in ("TCP", "TCP*(∞)"):
                of = runs.filter(claim="T5", n=STARS[star], world=world)
                found = dict(of.group_by("case").agg(pl.col("p99_s").mean()).iter_rows())
                values = [found.get(case.name) for case in bursts()]
                colour = style.colour(0 if star == "TCP" else 3)
                if star == "TCP" and index == 1:
                    continue
                panel.plot(
                    periods,
                    values,
                    dash,
                    color=colour,
                    marker=style.MARKERS[index],
                    label=f"{star}, {world}",
                )
        panel.set_xscale("log")
        panel.set_ylim(bottom=0)
        panel.set_xlabel("on and off for so many seconds (Trace I)")
        panel.set_ylabel("99th percentile, s")
        panel.legend()
        return style.render(figure, "png", "svg")


def main() -> None:
    """Runs what is missing, or writes the page."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--one", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("--nginx", default=shutil.which("nginx") or "nginx")
    parser.add_argument("--python", default=sys.executable, help="of the clients")
    parser.add_argument("--simulator", action="store_true", help="the simulator's side only")
    parser.add_argument("--jobs", "-j", type=int, default=2)
    parser.add_argument("--only", nargs="*", help="cases")
    parser.add_argument("--page", action="store_true", help="tables and figure of what there is")
    options = parser.parse_args()
    if options.page:
        collect()
        for kind, data in picture().items():
            if kind == "png":
                (IMAGES / f"web.{kind}").write_bytes(data)
        (FOLDER / "README.md").write_text(page(), encoding="utf-8")
        return
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
