"""Plans: parsed scenarios with the runs that they define."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from cwnd.running.scenario import Overrides, ScenarioLike, Source, override_list

if TYPE_CHECKING:
    from collections.abc import Iterator

    from cwnd import _core


@dataclass(frozen=True)
class Plan:
    """A parsed and validated scenario, with all inputs that determine its result."""

    source: Source
    scenario: _core.Scenario
    overrides: list[str]
    seed: int | None

    @property
    def runs(self) -> int:
        """Number of runs of the scenario."""
        return self.scenario.runs

    @property
    def points(self) -> Iterator[_core.Cell]:
        """Cells of the first seed at each point of the sweep."""
        for index in range(0, self.scenario.runs, self.scenario.repeat):
            yield self.scenario.cell(index)


def check(
    scenario: ScenarioLike,
    *,
    seed: int | None = None,
    set: Overrides | None = None,  # noqa: A002
) -> list[_core.Diagnostic]:
    """Parses a scenario without running it, and returns its warnings.

    Raises:
        ScenarioError: The scenario is invalid.
        InputError: The file cannot be read, or the seed or an override is malformed.
    """
    return plan(scenario, seed=seed, overrides=set or ()).scenario.warnings


def plan(scenario: ScenarioLike, *, seed: int | None = None, overrides: Overrides = ()) -> Plan:
    """Parses a scenario with its overrides into a plan; raises the errors of `check`."""
    source = Source.of(scenario)
    listed = override_list(overrides)
    parsed = source.parse(seed=seed, overrides=listed)
    return Plan(source, parsed, listed, seed)
