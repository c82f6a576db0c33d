"""Controllers alone on a line fill it, or a note or a warning says why they cannot.

Each controller with its presets over three stacks, one and four flows, on lines of 1 and 20 Mbit/s
and 20 and 200 ms, with a FIFO of a BDP and CoDel. Lines of 20 Mbit/s and presets that are not the
default run with `LONG` in the environment.
"""

from __future__ import annotations

import json
import os
from pathlib import Path

import polars as pl
import pytest

import cwnd
from cwnd.results import notes

LONG = "LONG" in os.environ
SCHEMA = Path(__file__).parents[2] / "schema" / "scenario.schema.json"
#: Meter and echo of those that routers guide.
GUIDES = {
    "dctcp": ("step", "changes"),
    "rcp": ("rcp", "last"),
    "xcp": ("xcp", "sum"),
    "vcp": ("vcp", "changes"),
    "mlcp": ("mlcp", "level"),
    "bmcc": ("adpm", "load"),
}
#: Less of a line is not filled.
FILLED = 0.7


def presets() -> dict[str, list[str | None]]:
    """Each kind of controller, and its presets; none is its default."""
    _, *kinds = json.loads(SCHEMA.read_text("utf-8"))["$defs"]["controller"]["anyOf"]
    found = {}
    for kind in kinds:
        properties = kind["properties"]
        names = properties.get("preset", {}).get("oneOf", [])
        named = properties["kind"]
        # Other names of a kind follow its own.
        found[named.get("const") or named["enum"][0]] = [None, *(name["const"] for name in names)]
    return found


PAIRS = [
    (kind, preset, stack)
    for kind, names in presets().items()
    for preset in names
    if LONG or preset is None or kind == "delay-aimd"
    for stack in ("rfc", "linux", "freebsd")
]


def scenario(kind: str, preset: str | None, stack: str) -> str:
    """The lines that one pair runs over, as a sweep."""
    meter, echo = GUIDES.get(kind, (None, None))
    beside = f'meter = "{meter}"\nreverse_meter = "{meter}"' if meter else ""
    told = f', ecn = true, echo = "{echo}"' if echo else ""
    named = f', preset = "{preset}"' if preset else ""
    rates = ["1 Mbit/s", "20 Mbit/s"] if LONG else ["1 Mbit/s"]
    return f"""
[run]
duration = "120 s"
warmup = "20 s"
sample = "none"
[dumbbell]
rate = "1 Mbit/s"
{beside}
[flow.main]
rtt = "20 ms"
start = "uniform(0 s, 1 s)"
controller = {{ kind = "{kind}"{named} }}
endpoint = {{ preset = "{stack}"{told} }}
[sweep.axis.rate]
path = "dumbbell.rate"
values = {json.dumps(rates)}
[sweep.axis.rtt]
path = "flow.main.rtt"
values = ["20 ms", "200 ms"]
[sweep.axis.queue]
path = "dumbbell.queue"
values = [{{ kind = "fifo", limit = "1 BDP" }}, {{ kind = "codel", limit = "1000 packets" }}]
labels = ["fifo", "codel"]
[sweep.axis.count]
path = "flow.main.count"
values = [1, 4]
"""


@pytest.mark.parametrize(("kind", "preset", "stack"), PAIRS)
def test_a_controller_alone_fills_its_line_or_is_said_why_not(
    kind: str, preset: str | None, stack: str, tmp_path: Path
):
    (tmp_path / "pair.toml").write_text(scenario(kind, preset, stack), "utf-8")
    warned = [w for w in cwnd.check(tmp_path / "pair.toml") if "hold back" in w["message"]]
    # The default pair of each controller works.
    assert preset is not None or not warned
    run = cwnd.run(tmp_path / "pair.toml")
    reasons = notes.idle_points(run)
    used = run.links.filter(pl.col("link") == "bottleneck").join(run.runs, on="run_id")
    idle = {
        point: row["utilisation"]
        for row in used.iter_rows(named=True)
        for point in [tuple(row[column] for column in run.axis_columns)]
        if row["utilisation"] < FILLED and not reasons[point] and not warned
    }
    assert not idle


def test_a_line_that_a_short_queue_leaves_idle_is_noted(tmp_path: Path):
    text = scenario("newreno", None, "rfc").split("[sweep.")[0]
    short = text.replace('rate = "1 Mbit/s"', 'rate = "1 Mbit/s"\nqueue = "fifo"')
    for name, limit, noted in (("short", "1 BDP", True), ("long", "20 packets", False)):
        queue = f'queue = {{ kind = "fifo", limit = "{limit}" }}'
        (tmp_path / f"{name}.toml").write_text(short.replace('queue = "fifo"', queue), "utf-8")
        found = notes.idle_lines(cwnd.run(tmp_path / f"{name}.toml"))
        assert bool(found) == noted
        assert not noted or "its queue holds 1.7 packets" in found[0]
