"""Scenarios, from files or built in Python, and plans: parsed scenarios with their runs."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

import tomli_w

from cwnd import _core
from cwnd.errors import InputError, explain
from cwnd.running.code import GivenClass, SourceCode, sources
from cwnd.running.compiling import kernel_object
from cwnd.running.installed import described, described_as

if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import TypeAlias

#: Types of a scenario argument: a path, or a `Scenario`.
ScenarioLike: TypeAlias = "str | os.PathLike[str] | Scenario"
#: Replacements of values: `{"flow.main.rtt": "200 ms"}` or `["flow.main.rtt=200 ms"]`.
Overrides: TypeAlias = "Mapping[str, object] | Sequence[str]"


class Scenario:
    """A scenario built in Python; sections and keys are those of the scenario file.

    `schema=2` selects the defaults of that version of the file.

    Values have types of TOML, quantities are text with a unit (`"10 Mbit/s"`). `None` as an
    argument leaves it out; as a value in a section it stands for `"none"`.

    Examples:
        >>> Scenario(
        ...     name="short",
        ...     run={"duration": "5 s"},
        ...     dumbbell={"rate": "10 Mbit/s", "queue": "codel"},
        ...     flow={"main": {"rtt": "40 ms"}},
        ... ).to_toml().splitlines()[:2]
        ['schema = 1', 'name = "short"']
    """

    def __init__(
        self,
        *,
        schema: int = 1,
        name: str = "scenario",
        description: str | None = None,
        run: Mapping[str, object] | None = None,
        dumbbell: Mapping[str, object] | None = None,
        link: Mapping[str, Mapping[str, object]] | None = None,
        node: Mapping[str, Mapping[str, object]] | None = None,
        flow: Mapping[str, Mapping[str, object]] | None = None,
        sweep: Mapping[str, object] | None = None,
    ) -> None:
        sections = {
            "schema": schema,
            "name": name,
            "description": description,
            "run": run,
            "dumbbell": dumbbell,
            "link": link,
            "node": node,
            "flow": flow,
            "sweep": sweep,
        }
        self._document = {
            key: _plain(value, key) for key, value in sections.items() if value is not None
        }

    def to_toml(self) -> str:
        """Formats the scenario as the text of its file."""
        return tomli_w.dumps(self._document)

    def __repr__(self) -> str:
        return f"cwnd.Scenario(name={self._document['name']!r})"


@dataclass(frozen=True)
class Source:
    """Text of a scenario and its origin."""

    text: str
    #: Name in error messages.
    name: str
    #: Directory of files that the scenario names; `None` for the working directory.
    base_dir: str | None

    @classmethod
    def of(cls, scenario: ScenarioLike) -> Source:
        """Reads a scenario file, or formats a scenario built in Python.

        Raises:
            InputError: The file cannot be read.
        """
        if isinstance(scenario, Scenario):
            return cls(scenario.to_toml(), "<python>", None)
        path = Path(scenario)
        return cls(read_text(path, "a scenario file, a `.toml`"), str(path), str(path.parent))

    def parse(
        self,
        *,
        seed: int | None = None,
        overrides: Overrides = (),
        given: Sequence[GivenClass] = (),
    ) -> _core.Scenario:
        """Parses the text into a scenario.

        Raises:
            InputError: The seed or an override is malformed.
            ScenarioError: The scenario is invalid.
        """
        if seed is not None and not 0 <= seed <= _MAX_SEED:
            raise InputError(f"a seed is a whole number from 0 to {_MAX_SEED}, not {seed}")
        listed = override_list(overrides)
        return _core.parse(
            self.text,
            name=self.name,
            base_dir=self.base_dir,
            overrides=listed,
            seed=seed,
            classes=[each.words for each in given],
            installed=described,
        )


def read_text(path: Path, wanted: str) -> str:
    """Reads a text file of a user; `wanted` names the expected kind in the error.

    Raises:
        InputError: The file cannot be read, is no text, or is too long.
    """
    try:
        str(path).encode()
        return _core.read_text(path)
    except UnicodeEncodeError as error:
        raise InputError(f"{path}: the name is not in UTF-8; rename the file or folder") from error
    except ValueError as error:  # a NUL in the name
        raise InputError(f"{path!s:.80}: {error}; give {wanted}") from error
    except OSError as error:
        raise InputError(f"{explain(error)}; give {wanted}") from error


def override_list(overrides: Overrides) -> list[str]:
    """Formats overrides as the command line takes them: `path=value`, the value in TOML.

    Raises:
        InputError: An override has no path or no value.
        TypeError: A single string was given, or a value is of no type of TOML.
    """
    if isinstance(overrides, str):
        raise TypeError("overrides are a mapping, or a list of 'path=value'")
    if isinstance(overrides, Mapping):
        return [f"{path}={_inline(value, path)}" for path, value in overrides.items()]
    for override in overrides:
        path, equals, _ = override.partition("=")
        if not equals or not path.strip():
            raise InputError(
                f"--set takes PATH=VALUE, as in flow.main.rtt=200 ms; not {override!r}"
            )
    return list(overrides)


def run_id(cell: _core.Cell) -> str:
    """Formats the name of a run: its index in the sweep, and 12 hex digits of its hash."""
    return f"{cell.index:04d}-{cell.id[:12]}"


#: Largest seed: TOML integers are signed 64-bit.
_MAX_SEED = 2**63 - 1


def _inline(value: object, path: str) -> str:
    # tomli_w writes a table inline only inside a list of lists, which is stripped again.
    text = tomli_w.dumps({"v": [[_plain(value, path)]]}, indent=0).removeprefix("v = ")
    for _ in range(2):
        text = text.strip().removeprefix("[").removesuffix("]").strip().removesuffix(",")
    return text.replace("\n", " ")


def _plain(value: object, where: str) -> object:
    """Converts a Python value to a type of TOML; `None` becomes "none".

    Raises:
        TypeError: TOML has no such type.
    """
    if value is None:
        return "none"
    if isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, os.PathLike):
        return os.fspath(value)
    if isinstance(value, Mapping):
        return {str(key): _plain(item, f"{where}.{key}") for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item, f"{where}[{i}]") for i, item in enumerate(value)]
    item = getattr(value, "item", None)  # scalars of NumPy
    if callable(item):
        return _plain(item(), where)
    raise TypeError(f"{where}: a scenario holds text, numbers, lists and tables, not {value!r}")


@dataclass(frozen=True)
class Plan:
    """A parsed and validated scenario with its text, overrides and seed."""

    source: Source
    scenario: _core.Scenario
    overrides: list[str]
    seed: int | None
    #: Classes of this process that the scenario names.
    given: tuple[GivenClass, ...] = ()

    @property
    def runs(self) -> int:
        """Number of runs of the scenario."""
        return self.scenario.runs

    @cached_property
    def code(self) -> list[SourceCode]:
        """Source files that the scenario names, each once."""
        return sources(self.points) if self.scenario.may_have_code else []

    @property
    def installed(self) -> list[str] | None:
        """Installed packages whose controllers run: name, version and hash of the library."""
        found = [described_as(source.text) for source in self.code if source.is_installed]
        return found or None

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
    """Parses a scenario without running it, and returns its warnings, at most fifty.

    Raises:
        ScenarioError: The scenario is invalid.
        InputError: The file cannot be read, or the seed or an override is malformed.
    """
    return plan(scenario, seed=seed, overrides=set or ()).scenario.warnings


def plan(
    scenario: ScenarioLike,
    *,
    seed: int | None = None,
    overrides: Overrides = (),
    given: Sequence[GivenClass] = (),
) -> Plan:
    """Parses a scenario with its overrides into a plan; raises the errors of `check`."""
    source = Source.of(scenario)
    listed = override_list(overrides)
    parsed = source.parse(seed=seed, overrides=listed, given=given)
    return Plan(source, parsed, listed, seed, tuple(given))


def kernel_object_of(file: Path) -> str:
    """Compiles a controller in C for the kernel; returns the path of the object, in memory.

    Raises:
        InputError: There is no such file.
        CodeError: It does not compile.
        MachineError: The compiler is missing.
    """
    if not file.is_file():
        raise InputError(f"there is no {file}")
    # A scenario reads the file, and the headers of its folder.
    scenario = Scenario(
        schema=2,
        run={"duration": "1 s"},
        dumbbell={"rate": "1 Mbit/s"},
        flow={"main": {"rtt": "1 s", "controller": {"kind": "c", "path": file}}},
    )
    (source,) = plan(scenario).code
    return kernel_object(source.name, source.text)
