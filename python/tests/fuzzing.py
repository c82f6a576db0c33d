"""Entry points for fuzzers: any bytes give claims, a graph or a manifest, or an error.

`make fuzz TARGET=claims` runs it with atheris; `test_scripts.py` without, on what was found before.
"""

from __future__ import annotations

import json
import sys
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable


def claims(data: bytes) -> None:
    """Claims that can be read can be shown; all else is an error of the input."""
    from cwnd import ScenarioError
    from cwnd.errors import InputError
    from cwnd.study.format import parse

    try:
        paper = parse(data.decode(errors="replace"), Path("nowhere"))
    except (InputError, ScenarioError):
        return
    for claim in paper.claims:
        assert claim.text is not None
        for check in claim.checks:
            assert isinstance(check.stated + check.allowed + check.measure, str)


def manifest(data: bytes) -> None:
    """A manifest that can be read is the same when it is written and read again."""
    from cwnd.errors import InputError
    from cwnd.files import read_object
    from cwnd.results.manifest import Manifest

    try:
        found = read_object(data)
    except ValueError:
        return
    try:
        read = Manifest.from_json(found, "manifest.json")
    except InputError:
        return
    again = json.loads(json.dumps(read.to_json()))
    assert Manifest.from_json(again, "again").to_json() == read.to_json()


def graph(data: bytes) -> None:
    """A graph that can be read makes a scenario without an error; all else is one of the input."""
    from cwnd import _core
    from cwnd.errors import InputError
    from cwnd.topology import Defaults, Traffic, gravity, scenario
    from cwnd.topology.importing import graph_of

    text = data.decode(errors="replace")
    name = "a.graphml" if text.lstrip().startswith("<") else "a.gml"
    try:
        found = graph_of(text, Path(name), Defaults(scale=0.001, largest_part=True))
        matrix = gravity(found)
    except InputError:
        return
    made = [Traffic("all", pairs=list(matrix.pairs))]
    _core.parse(scenario(found, made, made_by="a fuzzer", duration="1 s"), name="made")


TARGETS: dict[str, Callable[[bytes], None]] = {
    "claims": claims,
    "graph": graph,
    "manifest": manifest,
}

#: Modules whose branches the fuzzer counts.
INSTRUMENTED = ("cwnd.results.manifest", "cwnd.study.format", "cwnd.topology.importing")


def main() -> None:
    """Gives libFuzzer's arguments on to it."""
    import atheris

    with atheris.instrument_imports(include=list(INSTRUMENTED)):
        for module in INSTRUMENTED:
            import_module(module)
    name = sys.argv.pop(1)
    atheris.Setup(sys.argv, TARGETS[name])
    atheris.Fuzz()


if __name__ == "__main__":
    main()
