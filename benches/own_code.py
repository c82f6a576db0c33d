"""Measures controllers of one's own: calls of `on_ack` a second, their cost, gain of two processes.

One flow of 100 Mbit/s and 40 ms gets an ACK for each packet. Calls a second are those of the whole
process, from its start to its end. The cost of a call is the time of a run beyond that of the same
run with the built-in NewReno. The least of several runs counts. With `--check` it fails below the
limits.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
import zipfile
from pathlib import Path

import cwnd

OWN = Path(__file__).resolve().parent / "own"
TEMPLATES = Path(cwnd.__file__).parent / "templates"
#: Least number of calls of `on_ack` a second; `mine` is the template in Rust.
LIMITS = {"aimd.py": 400_000, "cubic.py": 250_000, "controller.bpf.c": 100_000, "mine": 500_000}
#: Least gain of two processes over one.
GAIN_LIMIT = 1.7
SCENARIO = """
schema = 2
name = "own-code"

[run]
duration = "{duration} s"

[dumbbell]
rate = "100 Mbit/s"
queue = {{ kind = "fifo", limit = "1 BDP" }}

[flow.main]
rtt = "40 ms"
stack = "rfc"
endpoint = {{ ack_every = 1 }}
controller = {controller}

[sweep]
repeat = {repeat}
"""


def run(scenario: Path, threads: int, config: Path) -> tuple[float, int]:
    """Runs `cwnd run`; returns its seconds and the ACKs."""
    out = Path(tempfile.mkdtemp(dir=config)) / "out"
    words = ["run", str(scenario), "-o", str(out), "--no-plots", "--trust"]
    words += ["--threads", str(threads)]
    began = time.perf_counter()
    subprocess.run(
        [sys.executable, "-m", "cwnd", *words],
        check=True,
        stdout=subprocess.DEVNULL,
        env={**os.environ, "XDG_CONFIG_HOME": str(config), "PYTHONPATH": str(config / "site")},
    )
    took = time.perf_counter() - began
    # Each packet has an ACK of its own.
    return took, int(cwnd.load(out).runs["delivered_packets"].sum())


def write(folder: Path, name: str, controller: str, *, duration: int, repeat: int) -> Path:
    """Writes a scenario."""
    file = folder / f"{name}.toml"
    file.write_text(SCENARIO.format(controller=controller, duration=duration, repeat=repeat))
    return file


def own(file: str) -> str:
    """Returns a controller of the folder as a scenario names it."""
    if file == "mine":
        return '{ kind = "mine", gain = 1.0 }'
    if file.endswith(".c"):
        return f'{{ kind = "c", path = "{TEMPLATES / file}" }}'
    return f'{{ kind = "python", path = "{OWN / file}", class = "{Path(file).stem.title()}" }}'


def install(folder: Path) -> None:
    """Builds the template in Rust, and installs it into `site` of a folder."""
    for words in (
        ["cwnd", "new", "controller", str(folder / "mine"), "--rust"],
        ["maturin", "build", "--release", "-m", str(folder / "mine" / "Cargo.toml"), "-o", folder],
    ):
        # The folder of what cargo compiles is that of the tests.
        environment = {**os.environ, "CARGO_TARGET_DIR": str(OWN.parents[1] / "target/extension")}
        command = [sys.executable, "-m", *words]
        subprocess.run(command, check=True, capture_output=True, env=environment)
    (wheel,) = folder.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(folder / "site")


def main() -> int:
    """Prints the measurements; returns 1 if one is beyond its limit and that is asked for."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="fail beyond the limits")
    parser.add_argument("--repeat", type=int, default=3, help="runs, of which the least counts")
    arguments = parser.parse_args()
    fails = []
    with tempfile.TemporaryDirectory(prefix="cwnd-") as made:
        folder = Path(made)
        install(folder)
        scenario = write(folder, "newreno", '"newreno"', duration=120, repeat=1)
        base, _ = min(run(scenario, 1, folder) for _ in range(arguments.repeat))
        for name, limit in LIMITS.items():
            scenario = write(folder, name, own(name), duration=120, repeat=1)
            took, acks = min(run(scenario, 1, folder) for _ in range(arguments.repeat))
            print(
                f"{name}: {acks / took / 1e3:.0f} thousand on_ack/s (at least {limit / 1e3:.0f}),"
                f" {(took - base) / acks * 1e6:.2f} µs each beyond NewReno in Rust"
            )
            if acks / took < limit:
                fails.append(name)
        scenario = write(folder, "two", own("aimd.py"), duration=120, repeat=16)
        # In turn, as other programs slow both down.
        pairs = [[run(scenario, n, folder)[0] for n in (1, 2)] for _ in range(arguments.repeat)]
        one, two = map(min, zip(*pairs, strict=True))
        print(f"two processes: {one:.2f} s to {two:.2f} s, {one / two:.2f} times (at least 1.7)")
        if one / two < GAIN_LIMIT:
            fails.append("two processes")
    for fail in fails:
        print(f"beyond its limit: {fail}", file=sys.stderr)
    return 1 if fails and arguments.check else 0


if __name__ == "__main__":
    sys.exit(main())
