"""What fuzzers run of Python: any bytes are claims or a manifest, or an error of the input.

`make fuzz TARGET=claims` runs it with atheris; `test_fuzz.py` without, on what was found before.
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
    from cwnd.reproduce.claims import parse

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
    from cwnd.results.manifest import Manifest

    try:
        found = json.loads(data)
    except (ValueError, RecursionError):
        return
    try:
        read = Manifest.from_json(found, "manifest.json")
    except InputError:
        return
    again = json.loads(json.dumps(read.to_json()))
    assert Manifest.from_json(again, "again").to_json() == read.to_json()


TARGETS: dict[str, Callable[[bytes], None]] = {"claims": claims, "manifest": manifest}

#: Modules whose branches the fuzzer counts.
INSTRUMENTED = ("cwnd.results.manifest", "cwnd.reproduce.claims")


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
