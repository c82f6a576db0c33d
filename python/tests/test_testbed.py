"""Runs on real Linux: short, as root; skipped by name elsewhere."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import polars as pl
import pytest
import reachable
from conftest import ROOT, real, wait_until, with_kernel

import cwnd
from cwnd.errors import MachineError
from cwnd.running import plans
from cwnd.running.environments import Linux, kernel_helper
from cwnd.store import journal

if TYPE_CHECKING:
    from collections.abc import Sequence

pytestmark = pytest.mark.testbed

CLI = [sys.executable, "-m", "cwnd"]
RENO = {"kind": "newreno", "preset": "linux"}
CUBIC = {"kind": "cubic", "preset": "linux"}


def scenario(
    *,
    duration: str = "5 s",
    queue: object = "codel",
    rtt: str = "40 ms",
    controller: object = RENO,
    ecn: bool = True,
    obey_quench: bool = False,
    ack_every: int = 2,
    echo: str | None = None,
    router: dict[str, object] | None = None,
    **flow: object,
) -> cwnd.Scenario:
    endpoint: dict[str, object] = {"preset": "linux", "ecn": ecn, "ack_every": ack_every}
    endpoint |= ({"obey_quench": True} if obey_quench else {}) | ({"echo": echo} if echo else {})
    return cwnd.Scenario(
        name="real",
        run={"duration": duration, "sample": "10 ms"},
        dumbbell={"rate": "10 Mbit/s", "queue": queue, **(router or {})},
        flow={
            "main": {
                "rtt": rtt,
                "controller": controller,
                "endpoint": endpoint,
                **flow,
            }
        },
    )


def valid_run(asked: cwnd.Scenario | Path, **how: Any) -> cwnd.Run:
    """Runs a scenario on Linux, again if it is invalid: one pause of this machine makes it so."""
    for _ in range(3):
        run = cwnd.run(asked, on="linux", **how)
        if not run.flaws:
            return run
    raise AssertionError(run.flaws)


def facts(run: cwnd.Run) -> dict[str, Any]:
    told: dict[str, Any] = json.loads(run.runs["facts"][0])
    return told


@real
@pytest.mark.parametrize("kind", ["vegas", "htcp"])
def test_a_controller_runs_where_the_kernel_has_it_and_is_refused_by_name_elsewhere(
    kind: str,
) -> None:
    asked = scenario(duration="2 s", controller={"kind": kind, "preset": "linux"}, ecn=False)
    # A module that is there is loaded when it is asked for.
    with socket.socket() as probe:
        try:
            probe.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, kind.encode())
            there = True
        except FileNotFoundError:
            there = False
    if there:
        result = cwnd.run(asked, on="linux")
        assert result.flows["goodput_bit_s"].item() > 1e6
    else:
        with pytest.raises(MachineError, match=f"no congestion controller `{kind}`, but .*reno"):
            cwnd.run(asked, on="linux")


@real
def test_a_real_flow_fills_the_link_and_every_table_has_the_simulators_columns() -> None:
    asked = scenario(queue={"kind": "fifo", "limit": "1 BDP"}, ecn=False)
    run, simulated = valid_run(asked), cwnd.run(asked)
    assert facts(run)["valid"]
    assert 8.5e6 < run.flows["goodput_bit_s"][0] < 9.7e6
    for name in ("flows", "links", "series", "link_series", "qdelay", "delays"):
        assert getattr(run, name).columns == getattr(simulated, name).columns, name
    # The router measures what data waits; a packet in transmission has left the queue.
    assert run.delays["what"].cast(pl.String).unique().to_list() == ["queueing"]
    assert run.delays["packets"].sum() - run.links["delivered_data_pkts"][0] in {0, 1}
    ours, theirs = (each.summary(["delay_p50"])["delay_p50_us"][0] for each in (simulated, run))
    assert theirs == pytest.approx(ours, rel=0.2)
    assert run.flows["rtt_base_us"][0] == 40_000
    assert run.flows["rtt_min_us"][0] == pytest.approx(40_000, abs=1500)
    # Each drop is repaired once, but for those of the last moments.
    samples = run.link_series.filter(pl.col("link") == "bottleneck", pl.col("time_s") < 4.8)
    assert 0 < samples["drop"][-1] <= run.flows["retrans"][0] <= run.links["dropped_pkts"][0]
    # Columns that Linux does not report are null.
    for column in ("rtt_p50_us", "cwnd_reductions_loss", "cwnd_reductions_ecn", "rto_nth_2"):
        assert run.flows[column][0] is None, column
    # The window is looked at every 10 ms.
    gaps = run.series["time_s"].diff().drop_nulls()
    assert gaps.median() == pytest.approx(0.01)
    assert run.series["snd_cwnd_pkts"].max() > run.series["snd_ssthresh_pkts"].min() > 2


@real
def test_marks_arrive_and_the_sender_answers_them_without_a_loss() -> None:
    run = cwnd.run(scenario(duration="3 s", controller=CUBIC), on="linux")
    marks = run.links["marked_pkts"][0]
    assert marks > 0
    assert run.flows["retrans"][0] == run.links["dropped_pkts"][0] == 0
    assert abs(run.flows["ce_received"][0] - marks) <= 1
    assert "Cwr" in run.series["ca_state"].unique().to_list()
    assert run.activity["ece_acks"] >= marks


@with_kernel
def test_timeouts_are_bounded_for_the_flows_of_a_group_and_a_note_says_what_linux_cannot() -> None:
    # Six flows and hardly room for a packet of each.
    crowded = scenario(
        duration="4 s",
        queue={"kind": "fifo", "limit": "3 packets"},
        ecn=False,
        router={"rate": "300 kbit/s"},
        count=6,
        endpoint={"preset": "linux", "rto_backoff": "after", "rto_backoff_after": 3},
    )
    run = cwnd.run(crowded, on="linux")
    (told,) = facts(run)["timeouts"]
    assert (told["group"], told["backoff_after"], told["syn_backoff_after"]) == ("main", 3, 4)
    counted = told["counters"]
    # The receivers, and whatever else this machine has, are left alone.
    assert counted["opened"] == 6
    assert counted["bounded_above"] > 0
    assert counted["refused"] == 0 or not facts(run)["valid"]
    said = [note for note in run.notes if "TCP*(3) Linux does what" in note]
    assert len(said) == 1, run.notes


@real
def test_the_router_tells_the_sender_of_each_mark_which_linux_ignores() -> None:
    run = cwnd.run(scenario(duration="3 s", router={"messenger": "quench"}), on="linux")
    marks = run.links["marked_pkts"][0]
    assert marks > 0
    assert run.links["quenches_total_pkts"].to_list() == [marks, 0]
    assert run.activity["quenches_sent"] == marks
    assert run.flows["quenches"][0] is None
    assert any("changed nothing: no flow obeys them" in note for note in run.notes), run.notes


@real
@pytest.mark.parametrize("meter", ["vcp", {"kind": "adpm", "identification": "drawn"}])
def test_meters_write_into_packets_of_linux_which_takes_overload_for_congestion(
    meter: object,
) -> None:
    run = cwnd.run(scenario(duration="4 s", queue="fifo", router={"meter": meter}), on="linux")
    assert run.reasons.filter(pl.col("reason") == "overload")["total_packets"].sum() > 0
    assert run.flows["ce_received"][0] > 0
    assert run.link_series["load_factor"].max() > 1
    told = "packets_below_load" if isinstance(meter, dict) else "load_intervals_high"
    assert run.activity[told] > 0


#: A controller, what it is called in `cwnd-kernel`, and what counts that it acted.
ARMS = [
    ({**RENO, "adaptive_delta": 0.8}, "adaptive_reno", "cwnd_reductions_ecn"),
    ({**CUBIC, "adaptive_delta": 0.8}, "adaptive_cubic", "cwnd_reductions_ecn"),
    (
        {"kind": "delay-aimd", "preset": "linux", "threshold": "10 ms"},
        "delay_aimd",
        "cwnd_reductions_delay",
    ),
    ({**RENO, "beta_quench": 0.5}, "becn_reno", "cwnd_reductions_quench"),
    ({**CUBIC, "beta_quench": 0.7}, "becn_cubic", "cwnd_reductions_quench"),
]


@with_kernel
@pytest.mark.parametrize(("arm", "name", "counts"), ARMS, ids=[name for _, name, _ in ARMS])
def test_a_controller_of_ours_acts_in_the_kernel_and_is_not_left(
    arm: dict[str, object], name: str, counts: str
) -> None:
    if name not in _controllers_that_can_be_loaded():
        pytest.skip(f"this cwnd-kernel has no {name}")
    hears = "beta_quench" in arm
    by_least = counts == "cwnd_reductions_delay" or "adaptive_delta" in arm
    router: dict[str, object] = {"messenger": "quench"} if hears else {}
    queue = "fifo" if name == "delay_aimd" else "codel"
    # A receiver that delays ACKs would look like a queue.
    ack_every = 1 if name == "delay_aimd" else 2
    asked = scenario(
        duration="3 s",
        queue=queue,
        controller=arm,
        ecn=queue != "fifo",
        obey_quench=hears,
        ack_every=ack_every,
        router=router,
    )
    run = cwnd.run(asked, on="linux")
    assert run.flows[counts][0] > 0
    data, acks = run.links["delivered_pkts"]
    assert (acks > 0.95 * data) == (ack_every == 1)
    least = run.flows["rtt_min_us"] if by_least else pl.Series([None])
    assert run.flows["min_rtt_us"].to_list() == least.to_list()
    assert run.series["min_rtt_us"].is_null().all() != by_least
    if hears:
        told = run.links["quenches_total_pkts"][0]
        # Those of one window make it smaller once, and the last may still be unread.
        assert 0 < run.flows["quenches"][0] <= told
        assert run.flows["quenches_refused"][0] == 0
        assert run.flows[counts][0] <= run.flows["quenches"][0]
    assert not _controllers_of_this_process()


@with_kernel
def test_bmcc_goes_by_the_load_that_its_receiver_tells_and_is_not_left() -> None:
    if "bmcc" not in _controllers_that_can_be_loaded():
        pytest.skip("this cwnd-kernel has no bmcc")
    asked = scenario(
        duration="6 s",
        queue={"kind": "fifo", "limit": "1 BDP"},
        controller={"kind": "bmcc", "preset": "linux"},
        router={"meter": "adpm", "reverse_meter": "adpm"},
        echo="load",
    )
    run = valid_run(asked)
    for acted in ("load_acks_heard", "load_acks_multiplied", "load_acks_added", "load_decreases"):
        assert run.activity[acted] > 0, acted
    # The start takes its part of 6 s. The FIFO drops nothing, and an ECN-echo takes no window.
    assert run.flows["goodput_bit_s"][0] > 6e6
    assert run.links["dropped_pkts"][0] == run.flows["cwnd_reductions_ecn"][0] == 0
    assert not any("never acted" in note for note in run.notes), run.notes
    assert not _controllers_of_this_process()


def _controllers_that_can_be_loaded() -> str:
    helper = kernel_helper()
    assert helper is not None
    return subprocess.run(
        [helper, "hold", "--help"], check=True, capture_output=True, text=True
    ).stdout


@real
def test_transfers_and_arrivals_are_those_of_the_simulator() -> None:
    web = scenario(
        duration="4 s",
        workload={"kind": "poisson", "interval": "200 ms", "size": "pareto(1.5, 20 kB)"},
        rtt="uniform(20 ms, 60 ms)",
    )
    run, simulated = cwnd.run(web, on="linux"), cwnd.run(web)
    ours, theirs = (
        each.flows.sort("flow_id").select("start_s", "size_bytes", "rtt_base_us")
        for each in (run, simulated)
    )
    assert ours.equals(theirs)
    done = run.flows.filter(pl.col("fct_s").is_not_null())
    assert done.height >= run.flows.height - 2
    assert (done["bytes_received"] == done["size_bytes"]).all()
    # A handshake and half a round trip at least.
    assert (done["fct_s"] * 1e6 >= 1.5 * done["rtt_base_us"]).all()


@with_kernel
@pytest.mark.parametrize("base", [RENO, CUBIC])
def test_abe_acts_in_the_kernel_and_no_controller_is_left(base: dict[str, object]) -> None:
    arm = {**base, "beta_ecn": 0.85, "ecn_in_slow_start": "beta-ecn"}
    run = cwnd.run(scenario(duration="3 s", controller=arm), on="linux")
    assert run.flows["cwnd_reductions_ecn"][0] > 0
    assert run.flows["cwnd_reductions_loss"][0] == 0
    assert not _controllers_of_this_process()


def _controllers_of_this_process() -> list[str]:
    file = Path("/proc/sys/net/ipv4/tcp_available_congestion_control")
    ours = f"cw{os.getpid():x}_"
    return [name for name in file.read_text(encoding="ascii").split() if name.startswith(ours)]


@with_kernel
def test_the_scenario_of_the_readme_runs_on_linux_with_abe(tmp_path: Path) -> None:
    file = _readme(tmp_path)
    short = ["run.duration=4 s", "run.warmup=1 s", "sweep.repeat=1"]
    run = cwnd.run(file, on="linux", set=short)
    assert run.runs["beta_ecn"].to_list() == ["0.7", "0.8", "0.85", "0.9"]
    assert run.manifest.world is not None
    assert run.manifest.world["controllers"] == ["of cwnd-kernel"], "each β is ABE's"
    marks = run.links.filter(pl.col("link") == "bottleneck")["marked_pkts"]
    assert (marks > 0).all()
    assert not _controllers_of_this_process()


def test_a_remedy_keeps_abe_and_the_scenario_then_runs_on_linux(tmp_path: Path) -> None:
    file = _readme(tmp_path)
    ours = '{ kind = "cubic", beta_ecn = 0.85 }'
    text = file.read_text(encoding="utf-8")
    assert ours in text
    file.write_text(text.replace(ours, '{ kind = "cubic", preset = "abe" }'), encoding="utf-8")
    with pytest.raises(cwnd.ScenarioError) as refused:
        cwnd.run(file, on="linux")
    (problem,) = refused.value.diagnostics
    remedy = problem["help"].split("`")[1]
    assert remedy == 'controller = { kind = "cubic", preset = "linux", beta_ecn = 0.7 }'
    file.write_text(text.replace(f"controller = {ours}", remedy), encoding="utf-8")
    # Whatever this machine lacks: of the scenario nothing is refused any more.
    with contextlib.suppress(cwnd.MachineError):
        Linux().check(plans.plan(file).scenario)


@real
def test_without_what_loads_abe_nothing_runs_in_its_place(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("cwnd.running.environments.kernel_helper", lambda: None)
    with pytest.raises(cwnd.MachineError, match="make kernel"):
        cwnd.run(_readme(tmp_path), on="linux")


def _readme(directory: Path) -> Path:
    """The scenario that the README shows."""
    file = directory / "readme.toml"
    page = (ROOT / "README.md").read_text(encoding="utf-8")
    file.write_text(page.split("```toml\n")[1].split("```")[0], encoding="utf-8")
    return file


def test_data_both_ways_counts_twice_in_how_many_runs_go_at_once() -> None:
    def at_once(*groups: dict[str, object], asked: int | None = None) -> int:
        flows = {f"group{i}": {"rtt": "40 ms", **group} for i, group in enumerate(groups)}
        asked_for = cwnd.Scenario(
            run={"duration": "5 s"}, dumbbell={"rate": "40 Mbit/s"}, flow=flows
        )
        return Linux().threads(plans.plan(asked_for).scenario, asked)

    both_ways = at_once({}, {"direction": "reverse"})
    assert at_once({}, {}) == 2 * both_ways > 2
    assert at_once({}, asked=3) == 3
    datagrams = {"kind": "udp", "rate": "10 Mbit/s", "size": "1500 B"}
    assert at_once({"count": 4, "workload": datagrams}) == both_ways * 2
    assert at_once({"count": 8, "workload": datagrams}) == both_ways
    assert at_once({"workload": {**datagrams, "rate": "8 Mbit/s", "size": "150 B"}}) == both_ways


@real
def test_two_runs_at_once_do_not_meet() -> None:
    asked = cwnd.Scenario(
        name="pair",
        run={"duration": "4 s", "sample": "none"},
        dumbbell={"rate": "10 Mbit/s", "queue": {"kind": "fifo", "limit": "1 BDP"}},
        flow={"main": {"rtt": "40 ms", "controller": RENO, "endpoint": "linux"}},
        sweep={"repeat": 2},
    )
    run = valid_run(asked, threads=2)
    # One after the other they would take longer.
    assert run.manifest.wall_s < 8
    assert (run.flows["goodput_bit_s"] > 8.5e6).all()
    assert run.manifest.world is not None
    assert run.manifest.world["invalid_runs"] == 0


@real
# It looks at all devices of the host, and a link of another test is one.
@pytest.mark.real_time
def test_a_run_that_is_killed_leaves_nothing(tmp_path: Path) -> None:
    file = tmp_path / "real.toml"
    file.write_text(scenario(duration="30 s").to_toml(), encoding="utf-8")
    orphans, devices = _orphans(), _devices()
    victim = _start(["run", str(file), "--on", "linux", "-o", str(tmp_path / "out")])
    wait_until(lambda: len(_namespaces_of(victim.pid)) == 3)
    # The calibration is over by then, and the flow runs.
    time.sleep(2)
    assert _devices() == devices, "nothing is to be seen in the host's namespace"
    victim.kill()
    victim.wait()
    wait_until(lambda: _orphans() <= orphans)
    assert _devices() == devices
    # What describes the sweep is there, and no run.
    with pytest.raises(cwnd.InputError, match="no run of this sweep is complete yet"):
        cwnd.load(tmp_path / "out")


@real
def test_ctrl_c_leaves_the_runs_that_are_finished(tmp_path: Path) -> None:
    file = tmp_path / "real.toml"
    asked = scenario().to_toml().replace('duration = "5 s"', 'duration = "2 s"')
    axis = '\n[sweep.axis.length]\npath = "run.duration"\nvalues = ["1 s", "60 s"]\n'
    file.write_text(asked + axis, encoding="utf-8")
    out = tmp_path / "out"
    running = _start(
        ["run", str(file), "--on", "linux", "-j", "2", "-o", str(out), "--no-plots", "-q"]
    )
    wait_until(lambda: any(journal.frames(out / "journal")))
    running.send_signal(signal.SIGINT)
    assert running.wait(10) == 128 + signal.SIGINT
    kept = cwnd.Run.load(out)
    assert kept.runs["length"].to_list() == ["1 s"]
    assert kept.manifest.missing == 1


@real
def test_calibration_measures_what_was_set() -> None:
    from cwnd.running.testbed import calibrate

    rows = {row["what"]: row for row in calibrate("20 Mbit/s", "60 ms")}
    assert rows["bottleneck: rate"]["measured"] == pytest.approx(20, rel=0.01)
    assert rows["bottleneck: one-way delay"]["measured"] == pytest.approx(30, abs=1.1)
    assert all(row["holds"] for row in rows.values())


@real
@pytest.mark.parametrize("mss", [536, 100])
def test_calibration_sends_packets_as_large_as_the_runs(mss: int) -> None:
    from cwnd.running.testbed import calibrate

    # Larger ones would be cut into several on their way.
    rows = {row["what"]: row for row in calibrate("10 Mbit/s", "20 ms", f"{mss} B")}
    # Headers of Linux are 52 B.
    assert rows["bottleneck: buffer"]["set"] == -(-60_000 // (mss + 52))
    assert all(row["holds"] for row in rows.values()), rows


def test_what_linux_cannot_provide_is_refused_with_its_place_before_anything_starts(
    tmp_path: Path,
) -> None:
    file = tmp_path / "real.toml"
    text = scenario(controller={**CUBIC, "c": 0.3}).to_toml()
    file.write_text(text, encoding="utf-8")
    with pytest.raises(cwnd.ScenarioError) as refused:
        cwnd.run(file, on="linux")
    (problem,) = refused.value.diagnostics
    assert (problem["file"], problem["key"]) == (str(file), "flow.main.controller.c")
    assert text.splitlines()[problem["line"] - 1].strip() == "c = 0.3"
    assert "0.4" in problem["message"]


@pytest.mark.skipif(
    os.geteuid() != 0 or shutil.which("setpriv") is None, reason="needs root and setpriv"
)
def test_without_root_the_exit_code_is_3_and_the_message_says_why() -> None:
    file = ROOT / "python/cwnd/studies/worlds/kernel/10mbit.toml"
    done = subprocess.run(
        [
            *(*reachable.command(), "setpriv", "--reuid", "65534"),
            *(*CLI, "run", str(file), "--on", "linux", "-o", "not-there"),
        ],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 3, done.stderr
    assert "root" in done.stderr


@real
def test_results_of_who_called_sudo_are_his_and_nothing_of_roots_is_read() -> None:
    nobody = 65534
    with tempfile.TemporaryDirectory(prefix="cwnd-room-") as name:
        room = Path(name)
        room.chmod(0o755)
        (own := room / "own").mkdir()
        os.chown(own, nobody, nobody)
        (own / "real.toml").write_text(scenario(duration="1 s").to_toml(), encoding="utf-8")
        (secret := room / "secret.toml").write_text("the secret of root", encoding="utf-8")
        secret.chmod(0o600)

        # As udev makes it: containers may have one that is root's alone.
        make = 'mknod -m 666 "$0" c 10 200 && mount --bind "$0" /dev/net/tun && exec "$@"'
        with_device = ("unshare", "--mount", "sh", "-c", make, str(room / "tun"))

        def run(*arguments: str) -> subprocess.CompletedProcess[str]:
            return subprocess.run(
                [
                    *(*with_device, *reachable.command(), *CLI, "run", *arguments),
                    *("--on", "linux", "--no-plots"),
                ],
                cwd=own,
                env={**os.environ, "SUDO_UID": str(nobody)},
                capture_output=True,
                text=True,
                check=False,
            )

        done = run("real.toml", "-o", "out")
        (room / "tun").unlink()
        assert done.returncode == 0, done.stderr
        written = [own / "out", *(own / "out").rglob("*")]
        assert {file.stat().st_uid for file in written} == {nobody}
        refused = run(str(secret), "-o", "out")
        assert refused.returncode == 2
        assert "the secret" not in refused.stderr
        refused = run("real.toml", "-o", str(room / "out"))
        assert refused.returncode != 0
        assert not (room / "out").exists()


def _start(arguments: Sequence[str]) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [*CLI, *arguments], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )


def _namespaces_of(process: int) -> set[str]:
    found = set()
    for link in Path(f"/proc/{process}/task").glob("*/ns/net"):
        with contextlib.suppress(OSError):  # a thread that has ended
            found.add(str(link.readlink()))
    return found


def _orphans() -> int:
    """TCP sockets that no process has any more; each would keep its namespace alive."""
    words = Path("/proc/net/sockstat").read_text(encoding="ascii").split()
    return int(words[words.index("orphan") + 1])


def _devices() -> set[str]:
    return {entry.name for entry in Path("/sys/class/net").iterdir()}
