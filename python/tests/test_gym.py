"""Environments of reinforcement learning: their APIs, what agents observe, and what they refuse."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pytest
from conftest import ROOT
from gymnasium.utils.env_checker import check_env
from gymnasium.vector import AutoresetMode
from pettingzoo.test import parallel_api_test

import cwnd
from cwnd import _core
from cwnd.errors import InputError
from cwnd.gym import Env, Fact, ParallelEnv, VectorEnv, power
from cwnd.running import plan

MSS = 1448
DATAGRAMS = {"kind": "udp", "rate": "1 Mbit/s", "size": "1 kB"}
HOLD = np.zeros(1, np.float32)


def one_flow(window: int = 10, **flow: Any) -> cwnd.Scenario:
    """One bulk flow over 10 Mbit/s and 40 ms; its window stays at `window` segments."""
    endpoint = {
        "initial_window": window,
        "max_window": f"{window * MSS} B",
        "ack_every": 1,
        "ecn": True,
        "echo": "ce-count",
    }
    return cwnd.Scenario(
        run={"duration": "10 s"},
        dumbbell={"rate": "10 Mbit/s", "queue": {"kind": "fifo", "limit": "4 BDP"}},
        flow={"main": {"rtt": "40 ms", "controller": "newreno", "endpoint": endpoint, **flow}},
    )


def beside(**other: Any) -> cwnd.Scenario:
    """Two flows over one bottleneck with random losses."""
    return cwnd.Scenario(
        run={"duration": "5 s"},
        dumbbell={"rate": "10 Mbit/s", "queue": "fifo", "loss": 0.01},
        flow={"main": {"rtt": "40 ms"}, "other": {"rtt": "60 ms", **other}},
    )


def episode(env: Env, seed: int = 1, action: float = 0.0) -> np.ndarray:
    """Observations of a whole episode."""
    env.reset(seed=seed)
    found = []
    over = False
    while not over:
        observation, _, _, over, _ = env.step([action])
        found.append(observation)
    return np.array(found)


@pytest.mark.parametrize("step", ["rtt", "20 ms"])
def test_the_environment_passes_gymnasiums_checker(step: str):
    arguments = {"scenario": beside(), "agent": "main", "step": step}
    gymnasium.register("cwnd/Test-v0", entry_point="cwnd.gym:Env", kwargs=arguments)
    try:
        check_env(gymnasium.make("cwnd/Test-v0").unwrapped)
    finally:
        del gymnasium.registry["cwnd/Test-v0"]


def test_several_agents_pass_pettingzoos_test(capsys: pytest.CaptureFixture[str]):
    parallel_api_test(ParallelEnv(beside()), num_cycles=1000)
    assert "Passed" in capsys.readouterr().out


def test_equal_seeds_and_actions_give_equal_observations():
    env = Env(beside(), agent="main")
    random = np.random.default_rng(3).uniform(-1, 1, 1000)

    def observed(seed: int) -> list[bytes]:
        env.reset(seed=seed)
        found = []
        for action in random:
            observation, reward, _, over, _ = env.step([action])
            found.append(observation.tobytes() + np.float64(reward).tobytes())
            if over:
                break
        return found

    assert observed(1) == observed(1)
    assert observed(1) != observed(2)


@pytest.mark.parametrize("window", [10, 60])
def test_a_constant_window_gives_the_flows_of_a_plain_run(window: int):
    scenario = one_flow(window, start="uniform(0 s, 1 s)")
    env = Env(scenario)
    _, info = env.reset(seed=5)
    over = False
    while not over:
        over = env.step(HOLD)[3]
    flows = env.flows()
    plain = cwnd.run(scenario, seed=info["seed"]).flows.select(flows.columns)
    assert flows["controller"].to_list() == ["agent"]
    assert flows.drop("controller").equals(plain.drop("controller"))


@pytest.mark.parametrize("window", [10, 60])
def test_throughput_and_rtt_of_a_window_are_those_of_the_closed_form(window: int):
    last = episode(Env(one_flow(window)))[-2]
    sent_s = 1500 * 8 / 10e6
    # Below one BDP each round trip delivers a window, above it the link is the limit.
    rtt_s = max(40e-3 + sent_s, window * sent_s)
    assert last[Fact.WINDOW] == window
    assert last[Fact.RTT] == pytest.approx(rtt_s, rel=0.005)
    assert last[Fact.THROUGHPUT] == pytest.approx(window * MSS * 8e-6 / rtt_s, rel=0.02)
    assert last[Fact.MIN_RTT] == pytest.approx(40e-3, rel=0.005)
    assert last[Fact.IN_FLIGHT] == pytest.approx(window - 1, abs=0.1)
    assert last[[Fact.LOSS, Fact.MARKS]].tolist() == [0.0, 0.0]


def test_observed_bytes_and_time_add_up_to_those_of_the_run():
    env = Env(one_flow(30), set={"dumbbell.loss": 0.01})
    seen = episode(env)
    flow = env.flows().row(0, named=True)
    assert seen[:, Fact.DURATION].sum() == pytest.approx(10.0)
    delivered = seen[:, Fact.THROUGHPUT] * seen[:, Fact.DURATION] * 1e6 / 8 / MSS
    # ACKs of the last round trip are still under way.
    assert 0 <= flow["bytes_received"] / MSS - delivered.sum() <= 30
    lost = delivered * seen[:, Fact.LOSS] / (1 - seen[:, Fact.LOSS])
    assert flow["retrans"] > 50
    assert lost.sum() == pytest.approx(flow["retrans"], rel=0.05)


def test_marks_are_those_that_the_receiver_counted_or_the_acks_with_an_echo():
    counted = Env(one_flow(60), set={"dumbbell.queue": "codel"})
    echoed = Env(
        one_flow(60), set={"dumbbell.queue": "codel", "flow.main.endpoint.echo": "classic"}
    )

    def marks(env: Env) -> float:
        seen = episode(env)
        assert seen[:, Fact.LOSS].max() == 0.0
        weights = seen[:, Fact.THROUGHPUT] * seen[:, Fact.DURATION]
        return float(np.average(seen[:, Fact.MARKS], weights=weights))

    assert marks(counted) == pytest.approx(counted.flows()["ce_ratio"][0], rel=0.03)
    # ECE goes on from a mark to CWR, a round trip later.
    assert 0.5 < marks(echoed) < 1.0


def test_an_action_multiplies_the_window_within_its_bounds():
    env = Env(one_flow(10), set={"flow.main.endpoint.max_window": "none"})
    env.reset()
    windows = [float(env.step([a])[0][Fact.WINDOW]) for a in (1.0, 0.5, -1.0, 7.0)]
    assert windows == pytest.approx([20, 20 * 2**0.5, 10 * 2**0.5, 20 * 2**0.5])
    # Ten BDP of 1,448-byte segments: 50,000 B · 10 / 1,448 B.
    assert episode(env, action=1.0)[20][Fact.WINDOW] == pytest.approx(500_000 / MSS, rel=0.02)
    assert episode(env, action=-1.0)[-1][Fact.WINDOW] == 1.0
    assert Env(one_flow(7)).reset()[0][Fact.WINDOW] == 7.0


def test_the_reward_is_power_less_losses_or_any_function():
    seen = np.zeros((2, len(Fact)), np.float32)
    seen[:, Fact.THROUGHPUT] = 8.0
    seen[:, Fact.RTT] = 0.1
    seen[:, Fact.MIN_RTT] = 0.05
    seen[1, Fact.LOSS] = 0.1
    assert power(seen) == pytest.approx([np.log(8 / 2), np.log(8 / 2) - 1])
    env = Env(one_flow(), reward=lambda seen: -seen[..., Fact.RTT])
    env.reset()
    for _ in range(2):
        env.step(HOLD)
    observation, reward, *_ = env.step(HOLD)
    assert reward == -observation[Fact.RTT] < 0


def test_an_episode_is_a_run_of_the_sweep_or_what_its_options_set():
    sweep = {"axis": {"rtt": {"path": "flow.main.rtt", "values": ["20 ms", "80 ms"]}}}
    scenario = cwnd.Scenario(
        run={"duration": "1 s"},
        dumbbell={"rate": "10 Mbit/s"},
        flow={"main": {"rtt": "1 ms"}},
        sweep=sweep,
    )
    env = Env(scenario)
    found = {}
    for seed in range(8):
        _, info = env.reset(seed=seed)
        found[info["run"]] = round(env.flows()["rtt_base_us"][0])
    assert found == {0: 20_000, 1: 80_000}
    plain = Env(one_flow(), set={"run.duration": "1 s", "flow.main.rtt": "30 ms"})
    plain.reset(options={"set": {"flow.main.rtt": "50 ms"}})
    assert plain.flows()["rtt_base_us"].to_list() == [50_000]
    plain.reset()
    assert plain.flows()["rtt_base_us"].to_list() == [30_000]


@pytest.mark.parametrize("threads", [1, 2])
def test_episodes_side_by_side_are_those_of_their_seeds(threads: int):
    many = VectorEnv(beside(), 5, threads=threads, agent="main", step="100 ms")
    assert many.metadata["autoreset_mode"] is AutoresetMode.NEXT_STEP
    first, info = many.reset(seed=9)
    assert len(set(info["seed"])) == 5
    cell = plan(beside()).scenario.cell(0)
    alone = [_core.Episode(cell, ["main"], seed=int(n), step_s=0.1) for n in info["seed"]]
    actions = np.linspace(-0.3, 0.3, 5)[:, None]
    for step in range(50):
        seen, rewards, _, truncated, _ = many.step(actions)
        assert many.observation_space.contains(seen)
        stepped = [each.step(action)[0] for each, action in zip(alone, actions, strict=True)]
        assert seen.tobytes() == b"".join(stepped)
        assert rewards == pytest.approx(power(seen))
        assert truncated.all() == truncated.any() == (step == 49)
    seen, rewards, _, truncated, info = many.step(actions)
    assert seen.tolist() == first.tolist()
    assert rewards.tolist() == [0.0] * 5
    assert info["_seed"].all()
    assert not truncated.any()


def test_episodes_side_by_side_end_each_at_its_time():
    durations = {"path": "run.duration", "values": ["1 s", "2 s"]}
    sweep = {"axis": {"duration": durations}}
    scenario = cwnd.Scenario(
        run={"duration": "1 s"},
        dumbbell={"rate": "10 Mbit/s"},
        flow={"main": {"rtt": "40 ms"}},
        sweep=sweep,
    )
    many = VectorEnv(scenario, 8, step="500 ms", threads=2)
    _, info = many.reset(seed=2)
    ends = 2 + 2 * info["run"]
    assert set(ends) == {2, 4}
    for step in range(1, 5):
        seen, rewards, _, truncated, began = many.step(np.zeros((8, 1)))
        if step <= 2:
            assert (truncated == (ends == step)).all()
        if step == 3:
            assert (began["_run"] == (ends == 2)).all()
            assert (seen[:, Fact.DURATION] == np.where(ends == 2, 0.0, 0.5)).all()
            assert ((rewards == 0.0) == (ends == 2)).all()


def test_agents_share_a_bottleneck_and_only_they_are_set():
    both = ParallelEnv(beside(controller="cubic"), agents=["main"], step="50 ms")
    seen, _ = both.reset(seed=1)
    assert list(seen) == both.possible_agents == ["main"]
    while both.agents:
        both.step({"main": [0.0]})
    flows = both.flows()
    assert dict(flows.select("group", "controller").rows()) == {"main": "agent", "other": "cubic"}
    held, other = flows["goodput_bit_s"]
    # A window of ten segments, whatever is lost.
    assert held == pytest.approx(10 * MSS * 8 / 45e-3, rel=0.15)
    assert other > 0


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Env(beside()), "the agent is one of main, other: name it by `agent`"),
        (lambda: Env(beside(), agent="mian"), "there is no flow group `mian`; there are main"),
        (lambda: ParallelEnv(beside(), agents=["main", "main"]), "agents are different"),
        (lambda: ParallelEnv(beside(), agents=[]), "agents are different flow groups, at least"),
        (lambda: Env(one_flow(), step="soon"), 'a step is "rtt" or a time such as "20 ms"'),
        (lambda: Env(one_flow(), step="0 s"), "a step is longer than 0 s"),
        (lambda: VectorEnv(one_flow(), 0), "episodes and threads are whole numbers from 1"),
        (lambda: VectorEnv(one_flow(), 2, threads=0), "episodes and threads are whole"),
        (lambda: VectorEnv(one_flow(), 2).step([[0], [0]]), "there is no episode yet: call"),
        (lambda: Env(one_flow()).step([0]), "there is no episode yet: call `reset`"),
        (
            lambda: Env(beside(workload=DATAGRAMS), agent="other"),
            "flow.other has no connections of TCP",
        ),
        (lambda: Env(beside(stack="quic"), agent="other"), "flow.other has no connections of TCP"),
    ],
)
def test_a_wrong_use_is_a_sentence(make: Any, message: str):
    with pytest.raises(InputError, match=message):
        make()


def test_code_of_a_scenario_is_refused(tmp_path: Path):
    (tmp_path / "mine.py").write_text("raise SystemExit\n", encoding="utf-8")
    file = tmp_path / "mine.toml"
    controller = '{ kind = "python", path = "mine.py", class = "Mine" }'
    text = f"""
        schema = 1
        run.duration = "1 s"
        dumbbell.rate = "10 Mbit/s"
        flow.main.rtt = "40 ms"
        flow.main.controller = {controller}
        """
    file.write_text(text, encoding="utf-8")
    with pytest.raises(InputError, match=r"runs no code of a scenario, .* names mine\.py"):
        Env(file)


def test_steps_that_cannot_be_taken_are_refused():
    env = Env(one_flow(), step="10 s")
    env.reset()
    with pytest.raises(ValueError, match="an action is a number from -1 to 1, not NaN"):
        env.step([np.nan])
    assert env.step(HOLD)[3]
    with pytest.raises(ValueError, match="the episode is over: call `reset`"):
        env.step(HOLD)
    env.flows()
    with pytest.raises(InputError, match="were taken before"):
        env.flows()


@pytest.mark.parametrize(
    ("action", "found"),
    [(0.5, r"not of \(\)"), ([0.0, 0.0], r"not of \(2,\)"), (["left"], r"not \['left'\]")],
)
def test_actions_of_another_shape_are_refused(action: Any, found: str):
    env = Env(one_flow())
    env.reset()
    with pytest.raises(InputError, match=r"^actions are an array of shape \(1,\), " + found):
        env.step(action)
    several = VectorEnv(one_flow(), 2, threads=1)
    several.reset()
    with pytest.raises(InputError, match=r"^actions are an array of shape \(2, 1\), " + found):
        several.step(action)
    together = ParallelEnv(beside())
    together.reset()
    with pytest.raises(InputError, match=r"^actions are an array of shape \(1,\), " + found):
        together.step({"main": HOLD, "other": action})
    with pytest.raises(InputError, match=r"^there is no action of other$"):
        together.step({"main": HOLD})


@pytest.mark.skipif(sys.platform != "linux", reason="it counts threads in /proc")
def test_a_forked_process_steps_with_threads_of_its_own():
    code = """
import os
import numpy as np
from test_gym import one_flow
from cwnd.gym import VectorEnv
envs = VectorEnv(one_flow(), 4, threads=2)
envs.reset(seed=1)
child = os.fork()
for _ in range(3):
    envs.step(np.zeros((4, 1), np.float32))
if child:
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
else:
    os._exit(len(os.listdir("/proc/self/task")) - 2)
"""
    subprocess.run([sys.executable, "-c", code], cwd=Path(__file__).parent, check=True, timeout=60)


@pytest.mark.parametrize(
    ("library", "name", "message"),
    [
        ("gymnasium", "Env", "cwnd.gym needs Gymnasium: pip install 'cwnd[gym]'"),
        ("pettingzoo", "ParallelEnv", "ParallelEnv needs PettingZoo: pip install 'cwnd[gym]'"),
    ],
)
def test_a_missing_library_is_a_sentence(library: str, name: str, message: str):
    code = (
        f"import sys, cwnd; cwnd.run; assert not {{'gymnasium', 'pettingzoo'}} & set(sys.modules)\n"
        f"sys.modules['{library}'] = None\n"
        f"from cwnd.gym import {name}"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, check=False, text=True)
    assert done.stderr.splitlines()[-1] == f"cwnd.errors.MachineError: {message}"


def test_the_example_trains_and_compares_on_all_links():
    example = ROOT / "examples" / "train_policy.py"
    command = [sys.executable, str(example), "--seeds", "2", "--generations", "1"]
    done = subprocess.run(command, capture_output=True, check=False, text=True)
    assert done.returncode == 0, done.stderr
    trained, rows = done.stdout.split("| link |")
    assert len(re.findall(r"seed \d: weights( -?\d\.\d\d){5} in", trained)) == 2
    assert len(re.findall(r"^\| .+ \|( \d+\.\d ±\d+\.\d \|){4}$", rows, re.MULTILINE)) == 6
