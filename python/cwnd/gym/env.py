"""Gymnasium environments with one agent: one episode at a time, or many side by side."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import gymnasium
import numpy as np
from gymnasium.vector import AutoresetMode
from gymnasium.vector.utils import batch_space

from cwnd import _core
from cwnd.errors import InputError
from cwnd.gym import episodes
from cwnd.gym.episodes import Episodes, action_space, observation_space, one_agent
from cwnd.gym.facts import power
from cwnd.machine import usable_cores

if TYPE_CHECKING:
    import polars as pl
    from numpy.typing import NDArray

    from cwnd.gym.facts import Observation, Reward
    from cwnd.running import Overrides, ScenarioLike


class Env(gymnasium.Env[Any, Any]):
    """A Gymnasium environment in which an agent sets the window of a flow group.

    An action `a`, -1 to 1, multiplies the window of each of the group's connections by 2ᵃ. It lies
    between one segment and the endpoint's `max_window`, or without that ten bandwidth-delay
    products, at least 100 segments. The window holds during loss recovery and after timeouts, too.

    An observation has the facts of `Fact`, in their units. An episode is one run of the scenario,
    drawn at random from its sweep, with a random seed. It ends truncated.

    Args:
        scenario: Path of a scenario file, or a `cwnd.Scenario`.
        agent: Flow group whose controller the agent replaces; `None` is the only group.
        step: Length of a step: a time such as `"20 ms"`, or `"rtt"` for the smoothed round-trip
            time at its beginning.
        reward: Function of the observation.
        set: Values that replace those of the scenario.

    Raises:
        InputError: The scenario cannot be read or names code, or an argument is wrong.
        ScenarioError: The scenario is invalid.
    """

    metadata: dict[str, Any] = {"render_modes": []}  # noqa: RUF012 - as Gymnasium declares it

    def __init__(
        self,
        scenario: ScenarioLike,
        *,
        agent: str | None = None,
        step: str = episodes.RTT,
        reward: Reward = power,
        set: Overrides | None = None,  # noqa: A002
    ) -> None:
        self._episodes = _of_one_agent(scenario, agent, step, set)
        self._reward = reward
        self._episode: _core.Episode | None = None
        self.observation_space = observation_space()
        self.action_space = action_space()

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Observation, dict[str, Any]]:
        """Begins an episode; `info` has the number of its run and its seed.

        Args:
            seed: Seed of this episode and those that follow.
            options: `{"set": {...}}` replaces values of the scenario for this episode.
        """
        super().reset(seed=seed)
        self._episode, info = self._episodes.draw(self.np_random, options)
        return episodes.read(self._episode.observe())[0], info

    def step(self, action: Any) -> tuple[Observation, float, bool, bool, dict[str, Any]]:
        """Sets the window, and simulates a step."""
        action = episodes.shaped(action, (1,))
        observed, is_over = _begun(self._episode).step([action[0]])
        observation = episodes.read(observed)[0]
        return observation, float(self._reward(observation)), False, is_over, {}

    def flows(self) -> pl.DataFrame:
        """Runs to the end of the episode with the windows as they are; returns its flows, once.

        The table has the columns of `Run.flows`, without those that name a run.
        """
        return episodes.flows(_begun(self._episode), self._episodes.agents)


class VectorEnv(gymnasium.vector.VectorEnv[Any, Any, Any]):
    """Many episodes of `Env` side by side, which threads step together.

    An episode that is over begins anew in the step after its last one, whose action is ignored
    (Gymnasium's `AutoresetMode.NEXT_STEP`).

    Args:
        scenario: As for `Env`, like `agent`, `step`, `reward` and `set`.
        num_envs: Number of episodes.
        threads: Number of threads; `None` is one for each core.
        agent: See `Env`.
        step: See `Env`.
        reward: Function of all observations, a row each.
        set: See `Env`.
    """

    metadata: dict[str, Any] = {  # noqa: RUF012 - as Gymnasium declares it
        "render_modes": [],
        "autoreset_mode": AutoresetMode.NEXT_STEP,
    }

    def __init__(
        self,
        scenario: ScenarioLike,
        num_envs: int,
        *,
        threads: int | None = None,
        agent: str | None = None,
        step: str = episodes.RTT,
        reward: Reward = power,
        set: Overrides | None = None,  # noqa: A002
    ) -> None:
        threads = usable_cores() if threads is None else threads
        if num_envs < 1 or threads < 1:
            raise InputError("episodes and threads are whole numbers from 1 on")
        self._source = _of_one_agent(scenario, agent, step, set)
        self._reward = reward
        self._stepper = _core.Stepper(min(threads, num_envs))
        self._running: list[_core.Episode] = []
        self._over = np.zeros(num_envs, np.bool_)
        self.num_envs = num_envs
        self.single_observation_space = observation_space()
        self.single_action_space = action_space()
        self.observation_space = batch_space(self.single_observation_space, num_envs)
        self.action_space = batch_space(self.single_action_space, num_envs)

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Observation, dict[str, Any]]:
        """Begins all episodes; arguments and `info` are as for `Env`, with an array for each."""
        super().reset(seed=seed)
        drawn = [self._source.draw(self.np_random, options) for _ in range(self.num_envs)]
        self._running = [episode for episode, _ in drawn]
        self._over[:] = False
        observed = [episodes.read(episode.observe()) for episode in self._running]
        info = {key: np.array([info[key] for _, info in drawn]) for key in ("run", "seed")}
        return np.concatenate(observed), info

    def step(
        self, actions: Any
    ) -> tuple[Observation, NDArray[np.floating], NDArray[np.bool_], NDArray[np.bool_], Any]:
        """Sets the windows, and simulates a step of each episode."""
        if not self._running:
            raise InputError("there is no episode yet: call `reset`")
        actions = np.asarray(episodes.shaped(actions, (self.num_envs, 1)), np.float64)[:, 0]
        nobody = np.zeros(self.num_envs, np.bool_)
        begins = np.flatnonzero(self._over)
        if not begins.size:
            observed, over = self._stepper.step(self._running, actions.tolist())
            self._over = np.array(over)
            observations = episodes.read(observed)
            return observations, self._rewards(observations), nobody, self._over.copy(), {}
        info: dict[str, Any] = {}
        for place in begins:
            self._running[place], of_episode = self._source.draw(self.np_random, None)
            info = self._add_info(info, of_episode, int(place))
        goes_on = np.flatnonzero(~self._over)
        running = [self._running[place] for place in goes_on]
        observed, over = self._stepper.step(running, actions[goes_on].tolist())
        observations = np.empty(self.observation_space.shape or (), np.float32)
        observations[goes_on] = episodes.read(observed)
        for place in begins:
            observations[place] = episodes.read(self._running[place].observe())
        rewards = self._rewards(observations)
        rewards[begins] = 0.0
        self._over = nobody.copy()
        self._over[goes_on] = over
        return observations, rewards, nobody, self._over.copy(), info

    def _rewards(self, observations: Observation) -> NDArray[np.floating]:
        return np.array(self._reward(observations), np.float64)


def _of_one_agent(
    scenario: ScenarioLike, agent: str | None, step: str, overrides: Overrides | None
) -> Episodes:
    found = Episodes(scenario, one_agent(agent), step, overrides)
    if len(found.agents) > 1:
        raise InputError(f"the agent is one of {', '.join(found.agents)}: name it by `agent`")
    return found


def _begun(episode: _core.Episode | None) -> _core.Episode:
    if episode is None:
        raise InputError("there is no episode yet: call `reset`")
    return episode
