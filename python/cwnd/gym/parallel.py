"""Several agents in one network, by PettingZoo's parallel API."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from cwnd.errors import InputError, MachineError
from cwnd.gym import episodes
from cwnd.gym.facts import power

try:
    import pettingzoo
except ImportError as missing:
    raise MachineError("ParallelEnv needs PettingZoo: pip install 'cwnd[gym]'") from missing

if TYPE_CHECKING:
    from collections.abc import Sequence

    import polars as pl
    from gymnasium.spaces import Box

    from cwnd import _core
    from cwnd.gym.facts import Observation, Reward
    from cwnd.running import Overrides, ScenarioLike


class ParallelEnv(pettingzoo.ParallelEnv[str, Any, Any]):  # type: ignore[misc]  # untyped
    """Agents that set the windows of flow groups in one network, step by step together.

    Actions, observations and episodes are those of `Env`. A step of `"rtt"` lasts the longest of
    the agents' smoothed round-trip times.

    Args:
        scenario: Path of a scenario file, or a `cwnd.Scenario`.
        agents: Flow groups whose controllers agents replace; `None` are all groups.
        step: See `Env`.
        reward: Function of the observation of an agent.
        set: Values that replace those of the scenario.
    """

    metadata: dict[str, Any] = {"render_modes": [], "name": "cwnd"}  # noqa: RUF012 - as PettingZoo

    def __init__(
        self,
        scenario: ScenarioLike,
        *,
        agents: Sequence[str] | None = None,
        step: str = episodes.RTT,
        reward: Reward = power,
        set: Overrides | None = None,  # noqa: A002
    ) -> None:
        self._episodes = episodes.Episodes(scenario, agents, step, set)
        self._reward = reward
        self._random = np.random.default_rng()
        self._episode: _core.Episode | None = None
        self.possible_agents = list(self._episodes.agents)
        self.agents: list[str] = []
        self.observation_spaces = {
            name: episodes.observation_space() for name in self.possible_agents
        }
        self.action_spaces = {name: episodes.action_space() for name in self.possible_agents}

    def observation_space(self, agent: str) -> Box:
        """Returns the space of what an agent observes."""
        return self.observation_spaces[agent]

    def action_space(self, agent: str) -> Box:
        """Returns the space of an agent's actions."""
        return self.action_spaces[agent]

    def reset(
        self, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[dict[str, Observation], dict[str, dict[str, Any]]]:
        """Begins an episode, as that of `Env` does."""
        if seed is not None:
            self._random = np.random.default_rng(seed)
        self._episode, info = self._episodes.draw(self._random, options)
        self.agents = list(self.possible_agents)
        observed = episodes.read(self._episode.observe())
        return dict(zip(self.agents, observed, strict=True)), {
            name: dict(info) for name in self.agents
        }

    def step(
        self, actions: dict[str, Any]
    ) -> tuple[
        dict[str, Observation],
        dict[str, float],
        dict[str, bool],
        dict[str, bool],
        dict[str, dict[str, Any]],
    ]:
        """Sets the windows, and simulates a step. The last step truncates all agents."""
        if self._episode is None:
            raise InputError("there is no episode yet: call `reset`")
        names = self.possible_agents
        if missing := [name for name in names if name not in actions]:
            raise InputError(f"there is no action of {', '.join(missing)}")
        given = [episodes.shaped(actions[name], (1,))[0] for name in names]
        observed, is_over = self._episode.step(given)
        if is_over:
            self.agents = []
        observations = dict(zip(names, episodes.read(observed), strict=True))
        return (
            observations,
            {name: float(self._reward(seen)) for name, seen in observations.items()},
            dict.fromkeys(names, False),
            dict.fromkeys(names, is_over),
            {name: {} for name in names},
        )

    def flows(self) -> pl.DataFrame:
        """Runs to the end of the episode with the windows as they are; returns its flows, once.

        The table has the columns of `Run.flows`, without those that name a run.
        """
        if self._episode is None:
            raise InputError("there is no episode yet: call `reset`")
        self.agents = []
        return episodes.flows(self._episode, self.possible_agents)
