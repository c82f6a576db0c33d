"""Reinforcement learning over the simulator: agents set the congestion windows of flow groups.

`Env` is a Gymnasium environment of one agent, `VectorEnv` steps many of them in threads, and
`ParallelEnv` has several agents in one network (PettingZoo). `pip install 'cwnd[gym]'` installs
both libraries.
"""

from __future__ import annotations

from importlib.util import find_spec
from typing import TYPE_CHECKING

from cwnd.errors import MachineError
from cwnd.lazy import lazy_exports

if TYPE_CHECKING:
    from cwnd.gym.env import Env, VectorEnv
    from cwnd.gym.facts import Fact, power
    from cwnd.gym.parallel import ParallelEnv

if find_spec("gymnasium") is None:
    raise MachineError("cwnd.gym needs Gymnasium: pip install 'cwnd[gym]'")

__all__ = ["Env", "Fact", "ParallelEnv", "VectorEnv", "power"]

__getattr__, __dir__ = lazy_exports(
    __name__, {"env": "Env VectorEnv", "facts": "Fact power", "parallel": "ParallelEnv"}
)
