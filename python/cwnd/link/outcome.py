"""Outcome of a command behind a link."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from cwnd import _core
    from cwnd.running import Scenario


@dataclass(frozen=True)
class LinkOutcome:
    """Results of a link and its command after the command has ended."""

    #: Exit code of the command, in the convention of a shell.
    code: int
    report: _core.LinkReport
    scenario: Scenario
    command: list[str]
    #: `True` if the command had a `/proc` of its own.
    own_proc: bool = True

    @property
    def summary(self) -> dict[str, Any]:
        """Statistics of the router, and of the packets in each direction."""
        return self.report.summary()

    def links(self) -> list[dict[str, Any]]:
        """Returns a row for each direction, with the columns of the simulator's table of links."""
        import polars as pl

        return pl.DataFrame(self.report.links).to_dicts()

    def to_json(self) -> dict[str, Any]:
        """Returns everything but the samples as one JSON object."""
        return {
            "command": self.command,
            "exit_code": self.code,
            **self.summary,
            "links": self.links(),
        }
