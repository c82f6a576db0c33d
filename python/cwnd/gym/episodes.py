"""Episodes: simulated runs of a scenario, drawn at random, whose agents set windows."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np
from gymnasium.spaces import Box

from cwnd import _core
from cwnd.errors import InputError
from cwnd.running import override_list, plan

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import polars as pl

    from cwnd.gym.facts import Observation
    from cwnd.running import Overrides, ScenarioLike

#: Name of the steps that last a round trip.
RTT = "rtt"


class Episodes:
    """Source of episodes: each is a run of the scenario, drawn at random, with a random seed."""

    def __init__(
        self,
        scenario: ScenarioLike,
        agents: Sequence[str] | None,
        step: str,
        overrides: Overrides | None,
    ) -> None:
        self._scenario = scenario
        self._overrides = overrides or ()
        self._step_s = None if step == RTT else _seconds(step)
        self._parsed = self._parse(self._overrides)
        groups = list(_core.read_toml(self._parsed.cell(0).resolved, name="cell.toml")["flow"])
        #: Names of the flow groups whose windows agents set.
        self.agents = groups if agents is None else list(agents)
        for name in self.agents:
            if name not in groups:
                raise InputError(f"there is no flow group `{name}`; there are {', '.join(groups)}")
        if not self.agents or len(set(self.agents)) < len(self.agents):
            raise InputError("agents are different flow groups, at least one")
        self._episode(self._parsed.cell(0), 0)

    def draw(
        self, random: np.random.Generator, options: Mapping[str, Any] | None
    ) -> tuple[_core.Episode, dict[str, int]]:
        """Begins an episode; returns it with its run and its seed.

        `options["set"]` replaces values of the scenario for this episode.
        """
        parsed = self._parsed
        if options and options.get("set"):
            parsed = self._parse([*override_list(self._overrides), *override_list(options["set"])])
        run = int(random.integers(parsed.runs))
        seed = int(random.integers(2**63))
        return self._episode(parsed.cell(run), seed), {"run": run, "seed": seed}

    def _parse(self, overrides: Overrides) -> _core.Scenario:
        planned = plan(self._scenario, overrides=overrides)
        if planned.code:
            names = ", ".join(source.name for source in planned.code)
            raise InputError(f"cwnd.gym runs no code of a scenario, and this one names {names}")
        return planned.scenario

    def _episode(self, cell: _core.Cell, seed: int) -> _core.Episode:
        try:
            return _core.Episode(cell, self.agents, seed=seed, step_s=self._step_s)
        except ValueError as error:
            raise InputError(str(error)) from error


def one_agent(agent: str | None) -> list[str] | None:
    """Returns the list of an agent, `None` for the only flow group."""
    return None if agent is None else [agent]


def observation_space() -> Box:
    """Returns the space of what an agent observes."""
    bounds = np.array(_core.observation_bounds, np.float32)
    return Box(np.zeros_like(bounds), bounds)


def shaped(action: Any, shape: tuple[int, ...]) -> Any:
    """Returns an action, or those of several episodes, as an array of this shape.

    Raises:
        InputError: It has another shape, or is no number.
    """
    if getattr(action, "shape", None) == shape:
        return action
    try:
        action = np.asarray(action, np.float64)
    except (TypeError, ValueError) as error:
        raise InputError(f"actions are an array of shape {shape}, not {action!r:.80}") from error
    if action.shape != shape:
        raise InputError(f"actions are an array of shape {shape}, not of {action.shape}")
    return action


def action_space() -> Box:
    """Returns the space of actions: binary logarithms of the factors of a window."""
    return Box(-1.0, 1.0, (1,))


def read(observed: bytearray) -> Observation:
    """Returns the observations of a step, a row for each agent."""
    return np.frombuffer(observed, np.float32).reshape(-1, len(_core.observation_bounds))


def flows(episode: _core.Episode, agents: list[str]) -> pl.DataFrame:
    """Runs an episode to its end with the windows as they are; returns its flows.

    Raises:
        InputError: They were returned before.
    """
    import polars as pl

    try:
        table = pl.DataFrame(episode.finish().flows)
    except ValueError as error:
        raise InputError(str(error)) from error
    of_agents = pl.col("group").cast(pl.String).is_in(agents)
    controller = pl.when(of_agents).then(pl.lit("agent")).otherwise(pl.col("controller"))
    return table.with_columns(controller=controller)


def _seconds(step: str) -> float:
    try:
        seconds = _core.read_quantity("time", step)
    except ValueError as error:
        raise InputError(f'a step is "{RTT}" or a time such as "20 ms": {error}') from error
    if not (0.0 < seconds < math.inf):
        raise InputError(f"a step is longer than {step}")
    return seconds
