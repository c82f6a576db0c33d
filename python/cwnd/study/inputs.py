"""Inputs of a study's products: runs of experiments, and recorded files."""

from __future__ import annotations

import json
from collections.abc import Mapping
from contextlib import nullcontext
from typing import TYPE_CHECKING, Any, TypeAlias

import polars as pl

from cwnd import _core
from cwnd.errors import InputError
from cwnd.running import override_list, plans, sweep
from cwnd.store import load
from cwnd.study import registry

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from contextlib import AbstractContextManager
    from pathlib import Path

    from cwnd.running import OnProgress
    from cwnd.study.format import Product, Study

#: Shows the progress of one experiment, given its name.
Bars: TypeAlias = "Callable[[str], AbstractContextManager[OnProgress]]"


def simulate(
    study: Study,
    names: Sequence[str],
    runs: Path,
    *,
    overrides: Callable[[str], Sequence[str]] = lambda _: (),
    on: str | None = None,
    threads: int | None = None,
    progress: Bars | None = None,
) -> dict[str, Path]:
    """Runs experiments into a folder, and returns the directory of each one's result.

    Existing runs are not simulated again. Experiments without overrides of their own share a
    directory if their scenarios have the same name.

    Args:
        study: The study.
        names: Names of the experiments.
        runs: Folder of the results.
        overrides: Further overrides of an experiment, given its name.
        on: Environment, the simulator if not given.
        threads: Runs at a time; if not given all cores, or on Linux as many as they can route.
        progress: Makes the progress bar of an experiment.

    Raises:
        InputError: There is no such experiment, or code or an override of the study is wrong.
        ScenarioError: A scenario cannot be run.
        CwndError: Runs failed, or could not be written.
    """
    found: dict[str, Path] = {}
    computed = registry.functions(study, "OVERRIDES")
    for name in names:
        experiment = study.experiment(name)
        file = study.folder / experiment.scenario
        # Scenarios of figures with the same runs have the same name.
        shown = plans.plan(file).scenario.name
        drawn = _drawn(study, name) if name in computed else ()
        ours = [*drawn, *experiment.set]
        directory = runs / (f"{shown}-{name}" if ours else shown)
        if directory not in found.values():
            with nullcontext(False) if progress is None else progress(shown) as on_progress:
                sweep(
                    file,
                    directory,
                    set=[*ours, *overrides(name)],
                    on=on,
                    threads=threads,
                    replan=True,
                    progress=on_progress,
                )
        found[name] = directory
    return found


def _drawn(study: Study, name: str) -> list[str]:
    """Overrides of an experiment that code of the study makes."""

    def as_overrides(made: Any) -> list[str]:
        if not isinstance(made, Mapping):
            raise InputError(f"overrides are a dictionary from path to value, not {made!r:.80}")
        return override_list(made)

    made = registry.function(study, "OVERRIDES", name)()
    found: list[str] = registry.checked(study, "OVERRIDES", name, as_overrides, made)
    return found


class Inputs(Mapping[str, Any]):
    """Runs and recorded files by name, each read on request, as all may exceed the memory."""

    def __init__(self, study: Study, directories: Mapping[str, Path]) -> None:
        """Reads runs from these directories, by experiment."""
        self._study = study
        self._directories = directories
        self._read: dict[str, Any] = {}
        #: Records that were computed anew, by name; they replace the files of the folder.
        self.computed: dict[str, str] = {}

    def of(self, product: Product) -> list[Any] | None:
        """Returns the arguments of a product's function, or `None` if some are missing."""
        if not all(name in self for name in product.runs):
            return None
        return [self[name] for name in product.runs]

    def forget(self) -> None:
        """Frees the results in memory."""
        self._read.clear()

    def __contains__(self, name: object) -> bool:
        if not isinstance(name, str):
            return False
        name = self._read_from(name)
        if self._study.is_file(name):
            return name in self.computed or (self._study.folder / name).is_file()
        return name in self._directories

    def _read_from(self, name: str) -> str:
        """Name of the experiment or file, also of those that a figure shows first."""
        return name if self._study.is_file(name) else self._study.runs_of(name)

    def __getitem__(self, name: str) -> Any:
        if name not in self._read:
            source = self._read_from(name)
            if self._study.is_file(source):
                self._read[name] = self._recorded(source)
            else:
                self._read[name] = load(self._directories[source])
        return self._read[name]

    def _recorded(self, name: str) -> Any:
        text = self.computed.get(name)
        if text is None:
            text = (self._study.folder / name).read_text(encoding="utf-8")
        return parsed(name, text)

    def __len__(self) -> int:
        return len(self._directories)

    def __iter__(self) -> Iterator[str]:
        return iter(self._directories)


def parsed(name: str, text: str) -> Any:
    """Parses a recorded file: CSV into a data frame, JSON and TOML into data; others stay text."""
    match name.rpartition(".")[2]:
        case "csv":
            return pl.read_csv(text.encode(), infer_schema_length=None)
        case "json":
            return json.loads(text)
        case "toml":
            return _core.read_toml(text, name=name)
    return text


def written(value: Any) -> str:
    """Text of a record's file.

    Raises:
        InputError: It is neither a data frame nor a text.
    """
    if isinstance(value, pl.DataFrame):
        return value.write_csv()
    if isinstance(value, str):
        return value
    raise InputError(f"a record is a data frame or a text, not {type(value).__name__}")
