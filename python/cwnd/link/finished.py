"""What a link and its command came to."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from cwnd import _core
    from cwnd.running import Scenario


@dataclass(frozen=True)
class Finished:
    """What is known when the command has ended."""

    #: The command's exit code, as a shell gives it.
    code: int
    report: _core.LinkReport
    scenario: Scenario
    command: list[str]
    #: Whether it had a `/proc` of its own.
    own_proc: bool = True

    @property
    def summary(self) -> dict[str, Any]:
        """How the router did, and what each direction's packets met."""
        return self.report.summary()

    def links(self) -> list[dict[str, Any]]:
        """A row for each direction, with the columns of the simulator's links."""
        import polars as pl

        return pl.DataFrame(self.report.links).to_dicts()

    def to_json(self) -> dict[str, Any]:
        """All of it but the samples."""
        return {
            "command": self.command,
            "exit_code": self.code,
            **self.summary,
            "links": self.links(),
        }
