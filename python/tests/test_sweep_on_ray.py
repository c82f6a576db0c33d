"""Sweeps on Ray: the same bytes, also when a machine of the cluster is lost."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest
from conftest import SHORT, SWEEP
from test_sweep import files

import cwnd
from cwnd import _core
from cwnd.errors import InputError, MachineError
from cwnd.running import Progress, on_ray, plans
from cwnd.running.cells import Outcome, PendingCells
from cwnd.running.on_ray import Ray
from cwnd.store import cell_id, content
from cwnd.store.tables import Batch

pytestmark = pytest.mark.real_time

#: Cells of 20 ms or so: enough of them that a machine is lost in the midst.
MANY = SWEEP.replace("repeat = 3", "repeat = 10").replace('"2 s"', '"400 s"')


@pytest.fixture(scope="module")
def cluster() -> Any:
    """A cluster of one machine without cores, for the driver; a test adds machines."""
    pytest.importorskip("ray", reason="Ray is not installed: pip install 'cwnd[ray]'")
    os.environ["RAY_AUTH_MODE"] = "disabled"
    os.environ["RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO"] = "0"
    from ray.cluster_utils import Cluster

    # A machine that is silent for a second is lost.
    health = {
        "health_check_initial_delay_ms": 0,
        "health_check_period_ms": 250,
        "health_check_failure_threshold": 4,
    }
    head = {"num_cpus": 0, "include_dashboard": False, "_system_config": health}
    made = Cluster(initialize_head=True, head_node_args=head)
    yield made
    made.shutdown()


@pytest.mark.filterwarnings("default")
def test_a_machine_that_is_lost_costs_only_its_cells_time(cluster: Any, tmp_path: Path):
    machines = [cluster.add_node(num_cpus=1) for _ in range(2)]
    scenario = tmp_path / "many.toml"
    scenario.write_text(MANY)
    lost_at: list[int] = []

    def progress(now: Progress) -> None:
        assert 0 <= now.fraction <= 1
        assert now.total == 60
        if now.done >= 5 and not lost_at:
            cluster.remove_node(machines[0], allow_graceful=False)
            lost_at.append(now.done)

    found = cwnd.sweep(scenario, tmp_path / "ray", on=f"ray:{cluster.address}", progress=progress)

    assert found.runs.height == 60
    assert 5 <= lost_at[0] < 60 - 5
    cwnd.sweep(scenario, tmp_path / "here")
    assert files(tmp_path / "ray") == files(tmp_path / "here")


OWN = """
class Steady:
    def __init__(self, start):
        self.window = 10 * start.mss

    def on_ack(self, path, ack):
        pass

    def on_signal(self, path, signal):
        pass
"""


@pytest.mark.filterwarnings("default")
def test_code_gives_the_same_bytes_there(
    cluster: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    cluster.add_node(num_cpus=1)
    (tmp_path / "own.py").write_text(OWN)
    built_in = '{ kind = "newreno", preset = "abe" }'
    own = '{ kind = "python", path = "own.py", class = "Steady" }'
    scenario = tmp_path / "own.toml"
    scenario.write_text(SHORT.replace(built_in, own))

    cwnd.sweep(scenario, tmp_path / "ray", on=f"ray:{cluster.address}", trust=True)
    cwnd.sweep(scenario, tmp_path / "here")

    assert files(tmp_path / "ray") == files(tmp_path / "here")


@pytest.mark.filterwarnings("default")
def test_a_cluster_that_is_not_there_is_said(tmp_path: Path, scenarios: Path):
    pytest.importorskip("ray", reason="Ray is not installed: pip install 'cwnd[ray]'")
    with pytest.raises(MachineError, match=r"Ray at 127\.0\.0\.1:9"):
        cwnd.sweep(scenarios / "short.toml", tmp_path / "a", on="ray:127.0.0.1:9")


def test_where_ray_is_not_installed_it_is_said(
    tmp_path: Path, scenarios: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setitem(__import__("sys").modules, "ray", None)
    with pytest.raises(MachineError, match=r"pip install 'cwnd\[ray\]'"):
        cwnd.sweep(scenarios / "short.toml", tmp_path / "a", on="ray")


def test_addresses():
    assert Ray.at("ray") == Ray(None)
    assert Ray.at("ray:10.0.0.1:6379") == Ray("10.0.0.1:6379")
    assert Ray.at("ray://10.0.0.1:10001") == Ray("ray://10.0.0.1:10001")
    for wrong in ("ray://", "ray:", "dask", ""):
        with pytest.raises(InputError, match="--on takes ray"):
            Ray.at(wrong)


def test_a_worker_gives_back_what_failed_beside_what_did_not():
    text = content(_core.parse(SHORT, name="short.toml").cell(0).resolved)

    engine, (bad, good), _ = on_ray._compute(
        _core.engine, ["schema = 1\nnonsense = 1\n", text], has_code=False
    )

    assert engine == _core.engine
    assert isinstance(bad, Outcome)
    assert (bad.made, bad.failure is not None) == (None, True)
    assert isinstance(good, Batch)
    assert good.cells == [cell_id(text)]


def test_a_worker_with_another_simulator_computes_nothing():
    assert on_ray._compute("0.0.1+older", ["anything"], has_code=False) == (_core.engine, [], 0.0)


class Slow:
    """Ray as far as batches need it, on a clock of its own: each cell takes `cell_s`."""

    def __init__(self, cores: int, cell_s: float):
        self.cores, self.cell_s = cores, cell_s
        self.sizes: list[int] = []

    def remote(self, _work: object) -> Slow:
        self.begin = self._begin
        return self

    def options(self, **_: object) -> Any:
        class Remote:
            remote = staticmethod(self._begin)

        return Remote

    def _begin(self, _engine: str, texts: list[str], *, has_code: bool) -> int:
        assert not has_code
        self.sizes.append(len(texts))
        return len(self.sizes) - 1

    def cluster_resources(self) -> dict[str, float]:
        return {"CPU": self.cores}

    def wait(self, begun: list[int], **_: object) -> tuple[list[int], list[int]]:
        return begun[:1], begun[1:]

    def get(self, reference: int) -> tuple[str, list[object], float]:
        return _core.engine, [], self.sizes[reference] * self.cell_s


@pytest.mark.parametrize(("cell_s", "size"), [(0.01, 100), (0.1, 10), (3.0, 1), (1e-5, 256)])
def test_batches_take_a_second(tmp_path: Path, cell_s: float, size: int):
    scenario = tmp_path / "many.toml"
    scenario.write_text(SWEEP.replace("repeat = 3", "repeat = 700"))
    planned = plans.plan(scenario).scenario
    pending = PendingCells(planned, list(range(planned.runs)))
    slow = Slow(cores=4, cell_s=cell_s)
    batches = on_ray._Batches(slow, pending)

    while batches.left:
        for _ in batches.wait():
            pass

    assert sum(slow.sizes) == 4200
    # The first ones measure.
    assert slow.sizes[:8] == [1] * 8
    assert max(slow.sizes) == pytest.approx(size, abs=1)
    # The last ones are small: all cores end together.
    assert slow.sizes[-1] == 1
