"""A scenario: a file, or the same thing built in Python with the same field names."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import tomli_w

from cwnd import _core
from cwnd.errors import InputError, explain

if TYPE_CHECKING:
    from typing import TypeAlias

#: What a scenario can be given as.
ScenarioLike: TypeAlias = "str | os.PathLike[str] | Scenario"
#: What replaces values: `{"flow.main.rtt": "200 ms"}` or `["flow.main.rtt=200 ms"]`.
Overrides: TypeAlias = "Mapping[str, object] | Sequence[str]"


class Scenario:
    """A scenario built in Python; sections and keys are those of the scenario file.

    `schema=2` has the defaults of that version of the file.

    Values are what TOML holds, quantities are text with a unit (`"10 Mbit/s"`); `None` stands for
    `"none"`.

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
        """Writes it as the scenario file it stands for."""
        return tomli_w.dumps(self._document)

    def __repr__(self) -> str:
        return f"cwnd.Scenario(name={self._document['name']!r})"


@dataclass(frozen=True)
class Source:
    """The text of a scenario and where it came from."""

    text: str
    #: What error messages call it.
    name: str
    #: Where files that it names are looked for.
    base_dir: str | None

    @classmethod
    def of(cls, scenario: ScenarioLike) -> Source:
        """Reads a scenario file, or writes out a scenario built in Python."""
        if isinstance(scenario, Scenario):
            return cls(scenario.to_toml(), "<python>", None)
        path = Path(scenario)
        return cls(read_text(path, "a scenario file, a `.toml`"), str(path), str(path.parent))

    def parse(self, *, seed: int | None = None, overrides: Overrides = ()) -> _core.Scenario:
        """Reads it into the runs it asks for; `ScenarioError` if it cannot be run."""
        if seed is not None and not 0 <= seed <= _MAX_SEED:
            raise InputError(f"a seed is a whole number from 0 to {_MAX_SEED}, not {seed}")
        listed = override_list(overrides)
        return _core.parse(
            self.text, name=self.name, base_dir=self.base_dir, overrides=listed, seed=seed
        )


def read_text(path: Path, wanted: str) -> str:
    """Reads a text that people write; `InputError` if it cannot be had, or is no text that ends."""
    try:
        return _core.read_text(path)
    except ValueError as error:  # a NUL in the name
        raise InputError(f"{path!s:.80}: {error}; give {wanted}") from error
    except OSError as error:
        raise InputError(f"{explain(error)}; give {wanted}") from error


def override_list(overrides: Overrides) -> list[str]:
    """Writes overrides as the command line takes them: `path=value`, the value in TOML."""
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
    """Names a run: its place in the sweep, and the beginning of the hash of what was run."""
    return f"{cell.index:04d}-{cell.id[:12]}"


#: TOML integers are signed 64-bit.
_MAX_SEED = 2**63 - 1


def _inline(value: object, path: str) -> str:
    # tomli_w writes a table inline where it stands in a list of lists: so we write it there, and
    # take the lists away.
    text = tomli_w.dumps({"v": [[_plain(value, path)]]}, indent=0).removeprefix("v = ")
    for _ in range(2):
        text = text.strip().removeprefix("[").removesuffix("]").strip().removesuffix(",")
    return text.replace("\n", " ")


def _plain(value: object, where: str) -> object:
    """Turns what Python users write into what TOML holds."""
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
    item = getattr(value, "item", None)  # NumPy's scalars
    if callable(item):
        return _plain(item(), where)
    raise TypeError(f"{where}: a scenario holds text, numbers, lists and tables, not {value!r}")
