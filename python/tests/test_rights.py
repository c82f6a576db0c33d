"""Files named by a command line or a scenario are opened with the rights of the sudo caller."""

from __future__ import annotations

import subprocess
import sys

import pytest
import reachable
from conftest import SHORT
from test_link import needs_root
from test_link_security import BY_SUDO, NOBODY, Room, room

# Each starts in a mount namespace of its own.
pytestmark = needs_root

__all__ = ["room"]

GRAPH = """graph [
  node [ id 0 label "a" ]
  node [ id 1 label "b" ]
  edge [ source 0 target 1 ]
]
"""
START = 'start = "uniform(0 ms, 100 ms)"'
#: Name of a case → the arguments of a command that reads the secret.
READERS = {
    "run": ("run", "secret"),
    "run sizes": ("run", "sizes.toml"),
    "run rows": ("run", "rows.toml"),
    "run rate": ("run", "rate.toml"),
    "sweep": ("sweep", "secret"),
    "check": ("check", "secret"),
    "infer": ("infer", "secret"),
    "topology": ("topology", "import", "secret.gml"),
    "matrix": ("topology", "import", "graph.gml", "--matrix", "secret"),
    "link": ("link", "--trace", "secret", "--", "true"),
    "agree": ("agree", "secret"),
    "run on Linux": ("run", "--on=linux", "secret"),
}


def _fill(room: Room) -> None:
    files = {
        "graph.gml": GRAPH,
        "sizes.toml": SHORT.replace(
            START,
            'workload = { kind = "bytes", size = "cdf(../secret.csv)" }\narrivals = "poisson"',
        ),
        "rows.toml": SHORT.replace(
            START,
            'workload = { kind = "bytes", size = "10 kB" }\n'
            'arrivals = { kind = "list", rows = "../secret.csv" }',
        ),
        "rate.toml": SHORT.replace('"10 Mbit/s"', '{ trace = "../secret" }'),
    }
    for name, text in files.items():
        (room.own / name).write_text(text)
    for name in ("secret.csv", "secret.gml"):
        (room.root / name).write_text("the secret of root\n")
        (room.root / name).chmod(0o600)


@pytest.mark.parametrize("name", READERS)
def test_no_file_that_the_caller_may_not_read_is_read(room: Room, name: str) -> None:
    _fill(room)
    arguments = [f"../{word}" if word.startswith("secret") else word for word in READERS[name]]
    answer = room.cli(*arguments, under=reachable.command(), env=BY_SUDO)
    assert answer.code in {1, 2}, answer.err
    assert "the secret" not in answer.out + answer.err
    assert "ermission denied" in answer.err
    assert room.is_untouched()
    # As root each of them is read.
    answer = room.cli(*arguments)
    assert "ermission denied" not in answer.err


def test_what_is_written_is_the_callers(room: Room) -> None:
    (room.own / "short.toml").write_text(SHORT)
    by_nobody = {"under": reachable.command(), "env": BY_SUDO}
    assert room.cli("run", "short.toml", "--no-plots", **by_nobody).code == 0
    owners = {file.stat().st_uid for file in (room.own / "out").rglob("*")}
    assert owners == {NOBODY}
    refused = room.cli("run", "short.toml", "--no-plots", "-o", room.root / "out", **by_nobody)
    assert refused.code == 1
    assert "ermission denied" in refused.err
    assert not (room.root / "out").exists()


def test_an_installation_that_the_caller_cannot_read_is_named_at_once(room: Room) -> None:
    hide = (
        "mount -t tmpfs -o mode=700 none /mnt && mkdir /mnt/python"
        ' && mount --bind "$0" /mnt/python && exec "$@"'
    )
    start = f"import sys; sys.path[:0] = {sys.path}; from cwnd.__main__ import main; main()"
    done = subprocess.run(
        [
            *("unshare", "--mount", "--propagation", "private", "sh", "-c", hide, sys.base_prefix),
            *("/mnt/python/bin/python3", "-c", start, "link", "--rtt", "10ms", "--", "true"),
        ],
        cwd=room.own,
        env=BY_SUDO,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 3, done.stderr
    assert "error: nobody may not read /mnt/python/" in done.stderr
    assert "/opt/cwnd/bin/pip install ." in done.stderr
