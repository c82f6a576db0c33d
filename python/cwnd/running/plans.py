"""A scenario that was read: the runs that it asks for."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from cwnd.running.scenario import Overrides, ScenarioLike, Source, override_list

if TYPE_CHECKING:
    from collections.abc import Iterator

    from cwnd import _core


@dataclass(frozen=True)
class Plan:
    """A scenario that was read and found valid, with all that decides its result."""

    source: Source
    scenario: _core.Scenario
    overrides: list[str]
    seed: int | None

    @property
    def runs(self) -> int:
        """How many runs it asks for."""
        return self.scenario.runs

    @property
    def points(self) -> Iterator[_core.Cell]:
        """One run for each point of the sweep."""
        for index in range(0, self.scenario.runs, self.scenario.repeat):
            yield self.scenario.cell(index)


def check(
    scenario: ScenarioLike,
    *,
    seed: int | None = None,
    set: Overrides | None = None,  # noqa: A002
) -> list[_core.Diagnostic]:
    """Reads a scenario without running it; returns its warnings, or raises `ScenarioError`."""
    return plan(scenario, seed=seed, overrides=set or ()).scenario.warnings


def plan(scenario: ScenarioLike, *, seed: int | None = None, overrides: Overrides = ()) -> Plan:
    """Reads a scenario into the runs it asks for."""
    source = Source.of(scenario)
    listed = override_list(overrides)
    parsed = source.parse(seed=seed, overrides=listed)
    return Plan(source, parsed, listed, seed)
