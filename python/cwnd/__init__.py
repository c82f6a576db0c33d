"""A laboratory for congestion control and queue management.

>>> import cwnd
>>> result = cwnd.run("scenarios/fifo-one-flow.toml")  # doctest: +SKIP
>>> result.summary()  # doctest: +SKIP
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from cwnd.lazy import lazy_exports, register

if TYPE_CHECKING:
    from cwnd._core import Cancelled, ScenarioError, __version__, json_schema, reference_markdown
    from cwnd.errors import CwndError, DamageError, DivergedError, InputError, MachineError
    from cwnd.playground import play
    from cwnd.results import Run
    from cwnd.running import Scenario, check, run, sweep
    from cwnd.store import load, query

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
    "play",
    "query",
    "reference_markdown",
    "run",
    "sweep",
]

# Names are imported at first use: `cwnd --help` then imports no polars.
__getattr__, __dir__ = lazy_exports(
    __name__,
    {
        "_core": "Cancelled ScenarioError __version__ json_schema reference_markdown",
        "errors": "CwndError DamageError DivergedError InputError MachineError",
        "playground": "play",
        "results": "Run",
        "running": "Scenario check run sweep",
        "store": "load query",
    },
)
# Functions of higher packages that methods of `Run` call.
register(
    {
        "load a result": "cwnd.store:load",
        "save a result": "cwnd.store:save",
        "draw a figure": "cwnd.plots:draw",
        "draw a result": "cwnd.plots:draw_result",
        "show in a notebook": "cwnd.report.notebook:html",
    }
)
