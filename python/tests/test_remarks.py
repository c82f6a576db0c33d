"""Notes on results: mechanisms that cannot act, and controllers that leave a line idle.

Each controller runs with its presets over three stacks, one and four flows, on lines of 1 and 20
Mbit/s and 20 and 200 ms, with a FIFO of a BDP and CoDel. Lines of 20 Mbit/s and presets that are
not the default, but for those of `delay-aimd`, run with `LONG` in the environment.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import polars as pl
import pytest
import svgs
from conftest import IS_LONG, SHORT

import cwnd
from cwnd import plots
from cwnd._core import json_schema
from cwnd.figures import Figure
from cwnd.report.figures import sweep_figure
from cwnd.results import group_table, result_table
from cwnd.results.idle import idle_lines, idle_points

if TYPE_CHECKING:
    from collections.abc import Callable


CANNOT = "ABE cannot act: no ECN marks"
NEVER = "ABE never acted: no ECN marks"
ARMS = """
[sweep.axis.arm]
path = "flow.main.controller"
values = ["newreno", { kind = "newreno", preset = "abe" }]
labels = ["plain", "abe"]
"""
RATES = '\n[sweep.axis.rate]\npath = "dumbbell.rate"\nvalues = ["5 Mbit/s", "10 Mbit/s"]\n'
QUEUES = '\n[sweep.axis.queue]\npath = "dumbbell.queue"\nvalues = ["fifo", "codel"]\n'


def run(tmp_path: Path, *axes: str, **changed: str) -> cwnd.Run:
    text = SHORT
    for old, new in changed.items():
        assert old in text
        text = text.replace(f"{old} = ", f"{old} = {new} #", 1)
    (tmp_path / "arms.toml").write_text(text + "".join(axes))
    return cwnd.run(tmp_path / "arms.toml")


def first(tmp_path: Path, *axes: str, **changed: str) -> tuple[cwnd.Run, list[str]]:
    """The result and the labels in the first column of its table."""
    found = run(tmp_path, *axes, **changed)
    return found, [row[0] for row in result_table(found).rows]


def test_an_arm_that_cannot_act_says_so_in_tables_and_figures(tmp_path: Path):
    over_fifo, labels = first(tmp_path, ARMS, RATES, queue='"fifo"')
    assert labels == ["plain", "plain", f"abe ({CANNOT})", f"abe ({CANNOT})"]
    for kind in ("sweep", "windows", "qdelay"):
        picture = plots.describe(over_fifo, kind)
        shown = {line.label for panel in picture.panels for line in panel.lines}
        assert shown == {"plain", f"abe ({CANNOT})"}
        assert svgs.complaints(*svgs.texts(Figure(picture).svg())) == []
    figure = sweep_figure(over_fifo)
    assert figure is not None
    assert set(figure.legends[""]) == {"plain", f"abe ({CANNOT})"}
    along = plots.describe(over_fifo, "sweep", x="arm").panels[0]
    assert along.ticks == [(0, "plain"), (1, f"abe ({CANNOT})")]


def test_an_arm_without_ecn_cannot_act_either(tmp_path: Path):
    _, labels = first(tmp_path, ARMS, endpoint="{ ecn = false }")
    assert labels == ["plain", f"abe ({CANNOT})"]


def test_an_arm_that_could_have_acted_never_did(tmp_path: Path):
    # A queue that marks, and a receive window that never fills it.
    endpoint = '{ ecn = true, receive_window = "3 kB" }'
    _, labels = first(tmp_path, ARMS, endpoint=endpoint)
    assert labels == ["plain", f"abe ({NEVER})"]


def test_an_arm_that_acts_has_no_remark(tmp_path: Path):
    acting, labels = first(tmp_path, ARMS)
    assert labels == ["plain", "abe"]
    assert acting.remarks.rest == []


def test_a_remark_stands_at_the_points_that_it_is_of(tmp_path: Path):
    found, labels = first(tmp_path, ARMS, QUEUES)
    assert labels == ["plain", "plain", f"abe ({CANNOT})", "abe"]
    # The label acts elsewhere: the figure says where not.
    picture = plots.describe(found, "sweep", lines="arm")
    assert {line.label for panel in picture.panels for line in panel.lines} == {"plain", "abe"}
    assert f"abe: {CANNOT} (at arm abe, queue fifo)" in picture.note


def test_the_axis_that_stops_a_mechanism_has_the_remark_if_none_asks_for_it(tmp_path: Path):
    _, labels = first(tmp_path, QUEUES)
    assert labels == [f"fifo ({CANNOT})", "codel"]


def test_groups_are_arms_too(tmp_path: Path):
    other = '\n[flow.plain]\nrtt = "20 ms"\ncontroller = "newreno"\n'
    found = run(tmp_path, other, RATES, queue='"fifo"')
    picture = plots.describe(found, "sweep")
    names = {line.label for panel in picture.panels for line in panel.lines}
    assert {f"main ({CANNOT})", "plain"} <= names
    text_table = group_table(found)
    assert text_table is not None
    assert {row[1] for row in text_table.rows} == {f"main (1), {CANNOT}", "plain (1)"}


def test_two_silent_mechanisms_of_a_group_are_both_named_each_with_its_own_verb(tmp_path: Path):
    # No queue marks, and a receive window that never fills one: ABE cannot act, the other did not.
    controller = '{ kind = "newreno", preset = "abe", adaptive_delta = 0.5 }'
    endpoint = '{ ecn = true, receive_window = "3 kB" }'
    both = {"controller": controller, "endpoint": endpoint, "queue": '"fifo"'}
    found = run(tmp_path, RATES, **both)
    (remarks,) = {tuple(each.items()) for each in found.remarks.silent.values()}
    assert remarks == (("main", f"{CANNOT}; adaptive backoff never acted"),)


#: Meter and echo of those that routers guide.
GUIDES = {
    "dctcp": ("step", "changes"),
    "rcp": ("rcp", "last"),
    "xcp": ("xcp", "sum"),
    "vcp": ("vcp", "changes"),
    "mlcp": ("mlcp", "level"),
    "bmcc": ("adpm", "load"),
}
#: Least utilisation of a line that counts as filled.
FILLED = 0.7


def presets() -> dict[str, list[str | None]]:
    """Each kind of controller, and its presets; none is its default."""
    _, *kinds = json.loads(json_schema())["$defs"]["controller"]["anyOf"]
    found = {}
    for kind in kinds:
        properties = kind["properties"]
        if kind["additionalProperties"]:  # code of one's own
            continue
        names = properties.get("preset", {}).get("oneOf", [])
        named = properties["kind"]
        # Other names of a kind follow its own.
        found[named.get("const") or named["enum"][0]] = [None, *(name["const"] for name in names)]
    return found


PAIRS = [
    (kind, preset, stack)
    for kind, names in presets().items()
    for preset in names
    if IS_LONG or preset is None or kind == "delay-aimd"
    for stack in ("rfc", "linux", "freebsd")
]


def scenario(kind: str, preset: str | None, stack: str) -> str:
    """The lines that one pair runs over, as a sweep."""
    meter, echo = GUIDES.get(kind, (None, None))
    beside = f'meter = "{meter}"\nreverse_meter = "{meter}"' if meter else ""
    told = f', ecn = true, echo = "{echo}"' if echo else ""
    named = f', preset = "{preset}"' if preset else ""
    rates = ["1 Mbit/s", "20 Mbit/s"] if IS_LONG else ["1 Mbit/s"]
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
def test_a_controller_alone_fills_its_line_or_a_note_names_a_checked_cause(
    kind: str, preset: str | None, stack: str, tmp_path: Path
):
    (tmp_path / "pair.toml").write_text(scenario(kind, preset, stack), "utf-8")
    warned = [w for w in cwnd.check(tmp_path / "pair.toml") if "hold back" in w["message"]]
    # The default pair of each controller works.
    assert preset is not None or not warned
    run = cwnd.run(tmp_path / "pair.toml")
    reasons = idle_points(run)
    counts = run.flows.group_by("run_id").agg(pl.col("^cwnd_reductions_.*$").sum())
    full = run.reasons.filter(pl.col("link") == "bottleneck", pl.col("reason") == "overlimit")
    overflowed = set(full.filter(pl.col("packets") > 0)["run_id"])
    used = run.links.filter(pl.col("link") == "bottleneck").join(run.runs, on="run_id")
    for row in used.join(counts, on="run_id").iter_rows(named=True):
        reason = reasons[tuple(row[column] for column in run.axis_columns)]
        assert (reason is not None) == (row["utilisation"] < FILLED)
        if reason is not None:
            assert reason.cause in CHECKED, (row, reason)
            told = {**row, "overflowed": row["run_id"] in overflowed}
            assert CHECKED[reason.cause](told), (told, reason)
            # Only a stack of which a warning says so leaves a line idle by itself.
            assert warned or reason.cause not in ("delay", "unknown")


#: Cause → the condition on counts that shows it.
CHECKED: dict[str, Callable[[dict[str, Any]], bool]] = {
    "overflow": lambda row: row["queue"] == "fifo" and row["overflowed"],
    "queue": lambda row: (
        row["dropped_pkts"] + row["marked_pkts"] > 0
        and row["cwnd_reductions_loss"] + row["cwnd_reductions_ecn"] > 0
        and row["qdelay_max_us"] < {"20 ms": 20e3, "200 ms": 200e3}[row["rtt"]]
    ),
    "delay": lambda row: (
        row["cwnd_reductions_delay"]
        > row["cwnd_reductions_loss"] + row["cwnd_reductions_ecn"] + row["cwnd_reductions_rto"]
    ),
    # The queue did nothing: Vegas held its window.
    "unknown": lambda row: row["dropped_pkts"] + row["marked_pkts"] == 0,
}


def test_a_line_that_a_short_queue_leaves_idle_is_noted(tmp_path: Path):
    text = scenario("newreno", None, "rfc").split("[sweep.")[0]
    short = text.replace('rate = "1 Mbit/s"', 'rate = "1 Mbit/s"\nqueue = "fifo"')
    for name, limit, noted in (("short", "1 BDP", True), ("long", "20 packets", False)):
        queue = f'queue = {{ kind = "fifo", limit = "{limit}" }}'
        (tmp_path / f"{name}.toml").write_text(short.replace('queue = "fifo"', queue), "utf-8")
        found = idle_lines(cwnd.run(tmp_path / f"{name}.toml"))
        assert bool(found) == noted
        assert not noted or "its queue holds 1.7 packets" in found[0]


#: One flow on 20 Mbit/s over 200 ms: CoDel's interval is below the round trip.
CODEL = """
[run]
duration = "40 s"
warmup = "20 s"
sample = "none"
[dumbbell]
rate = "20 Mbit/s"
queue = { kind = "codel" }
LINE
[flow.main]
rtt = "200 ms"
controller = { kind = "CONTROLLER" }
FLOW
[flow.main.endpoint]
preset = "rfc"
END
"""


@pytest.mark.parametrize(
    ("changed", "cause", "words"),
    [
        # Drops at a queue far below a round trip.
        ({"CONTROLLER": "fast"}, "queue", "held a round trip of 200 ms"),
        # Jitter keeps the order of packets.
        ({"CONTROLLER": "fast", "LINE": 'jitter = "100 us"'}, "queue", "held a round trip"),
        ({"LINE": "loss = 0.01"}, "loss", "its line lost packets"),
        ({"LINE": "burst_loss = { p = 0.005, r = 0.5 }"}, "loss", "its line lost packets"),
        ({"LINE": "loss_every = 300"}, "loss", "its line lost packets"),
        ({"LINE": "loss = 0.01", "STACK": "quic"}, "loss", "its line lost packets"),
        ({"LINE": 'edge_rate = "5 Mbit/s"'}, "bounded", "`edge_rate`"),
        ({"END": 'receive_window = "64 kB"'}, "bounded", "`receive_window`"),
        ({"FLOW": 'start = "32 s"'}, "absent", "not all of its flows sent"),
        ({"FLOW": 'stop = "25 s"'}, "absent", "not all of its flows sent"),
        # Additive growth from a small threshold: nothing was dropped.
        ({"END": 'initial_ssthresh = "20 kB"'}, "unknown", "dropped and marked nothing"),
        ({"CONTROLLER": "vegas", "END": 'initial_ssthresh = "20 kB"'}, "unknown", "nothing"),
    ],
)
def test_a_note_names_only_a_cause_that_the_run_shows(
    changed: dict[str, str], cause: str, words: str, tmp_path: Path
):
    text = CODEL
    for key in ("LINE", "CONTROLLER", "FLOW", "END"):
        text = text.replace(key, changed.get(key, "newreno" if key == "CONTROLLER" else ""))
    if "STACK" in changed:
        text = text.replace('preset = "rfc"', f'preset = "{changed["STACK"]}"')
        text = text.replace("rtt =", f'stack = "{changed["STACK"]}"\nrtt =')
    (tmp_path / "line.toml").write_text(text, "utf-8")
    run = cwnd.run(tmp_path / "line.toml")
    (idle,) = idle_points(run).values()
    assert idle is not None
    assert (idle.cause, words in idle.sentence) == (cause, True), idle
    assert f"{idle.sentence} (in this run)" in run.notes


def test_flows_with_an_end_or_a_bound_of_their_own_leave_lines_idle_without_a_note(tmp_path: Path):
    text = CODEL.replace("CONTROLLER", "newreno").replace("LINE", "").replace("END", "")
    (tmp_path / "line.toml").write_text(text.replace("FLOW", "") + 'max_window = "64 kB"\n')
    assert idle_lines(cwnd.run(tmp_path / "line.toml")) == []
    for workload in (
        '{ kind = "bytes", size = "1 MB" }',
        '{ kind = "bulk" }\ndirection = "reverse"',
    ):
        own = text.replace("FLOW", f"workload = {workload}")
        (tmp_path / "line.toml").write_text(own, "utf-8")
        assert idle_lines(cwnd.run(tmp_path / "line.toml")) == []


def test_a_link_called_bottleneck_in_a_graph_has_no_note(tmp_path: Path):
    text = """
[run]
duration = "20 s"
[link.bottleneck]
from = "a"
to = "b"
rate = "20 Mbit/s"
duplex = true
[flow.main]
from = "a"
to = "b"
edge_rtt = "200 ms"
endpoint = { receive_window = "64 kB" }
"""
    (tmp_path / "graph.toml").write_text(text, "utf-8")
    run = cwnd.run(tmp_path / "graph.toml")
    assert run.links.filter(pl.col("link") == "bottleneck")["utilisation"].item() < FILLED
    assert run.notes == []
