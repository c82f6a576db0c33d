"""A laboratory for congestion control and queue management.

>>> import cwnd
>>> result = cwnd.run("scenarios/fifo-one-flow.toml")  # doctest: +SKIP
>>> result.summary()  # doctest: +SKIP
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from cwnd._core import Cancelled, ScenarioError, __version__, json_schema, reference_markdown
    from cwnd.dataset.fill import sweep
    from cwnd.dataset.query import query
    from cwnd.errors import CwndError, DamageError, DivergedError, InputError, MachineError
    from cwnd.results import Run
    from cwnd.runner import check, run
    from cwnd.scenario import Scenario
    from cwnd.store import load

__all__ = [
    "Cancelled",
    "CwndError",
    "DamageError",
    "DivergedError",
    "InputError",
    "MachineError",
    "Run",
    "Scenario",
    "ScenarioError",
    "__version__",
    "check",
    "json_schema",
    "load",
    "query",
    "reference_markdown",
    "run",
    "sweep",
]

# Names are imported when first used, so that `cwnd --help` does not wait for polars and matplotlib.
_HOME = {
    "Cancelled": "cwnd._core",
    "ScenarioError": "cwnd._core",
    "__version__": "cwnd._core",
    "json_schema": "cwnd._core",
    "reference_markdown": "cwnd._core",
    "CwndError": "cwnd.errors",
    "DamageError": "cwnd.errors",
    "DivergedError": "cwnd.errors",
    "InputError": "cwnd.errors",
    "MachineError": "cwnd.errors",
    "Run": "cwnd.results",
    "check": "cwnd.runner",
    "load": "cwnd.store",
    "query": "cwnd.dataset.query",
    "run": "cwnd.runner",
    "sweep": "cwnd.dataset.fill",
    "Scenario": "cwnd.scenario",
}


def __getattr__(name: str) -> object:
    if name not in _HOME:
        raise AttributeError(f"module 'cwnd' has no attribute {name!r}")
    value = getattr(import_module(_HOME[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return __all__
