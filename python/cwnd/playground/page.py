"""The page with a scenario, as a file or in a notebook."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

from cwnd.errors import InputError, MachineError
from cwnd.files import write_atomically
from cwnd.running import Scenario, plan, read_text

if TYPE_CHECKING:
    from cwnd.playground.widget import Playground
    from cwnd.running import ScenarioLike

#: Parts of the page, and the page that `make play` builds of them.
ASSETS = Path(__file__).parent / "assets"
FILE = Path(__file__).parent / "playground.html"
#: Element of the page for the scenarios that it starts with.
_GIVEN = '<script type="application/json" id="given">{}</script>'


def html(scenario: ScenarioLike | None = None) -> str:
    """Formats the page, which starts with this scenario, or with one of its own.

    Raises:
        InputError: The scenario cannot be read.
        MachineError: The page has not been built.
        ScenarioError: The scenario is invalid.
    """
    if not FILE.exists():
        raise MachineError(
            "the playground has not been built; `make play` in the source tree builds it, with "
            "npm and Rust's target wasm32-unknown-unknown (`rustup target add "
            "wasm32-unknown-unknown`)"
        )
    given = []
    if scenario is not None:
        plan(scenario)
        given.append({"text": _text(scenario), "index": 0})
    # A script ends at the first `</script`, even in a string.
    written = json.dumps(given).replace("<", "\\u003c")
    return FILE.read_text("utf-8").replace(_GIVEN.format("[]"), _GIVEN.format(written), 1)


def write(scenario: ScenarioLike | None, file: Path) -> Path:
    """Writes the page atomically.

    Raises:
        InputError: The path is a directory; as `html`.
    """
    if file.is_dir():
        raise InputError(f"{file}: a directory is in the way; name a file with -o")
    content = html(scenario).encode()
    file.parent.mkdir(parents=True, exist_ok=True)
    write_atomically(file, content)
    return file


def play(scenario: ScenarioLike | None = None, *, height: str = "50rem") -> Playground:
    """Shows the playground in a notebook (Jupyter, marimo): the simulator, in the browser.

    Its attribute `scenarios` has the texts of its set-ups, as they are edited.

    Args:
        scenario: A scenario to start with: a path, or a `Scenario`.
        height: Height in the notebook, as in CSS.

    Raises:
        InputError: anywidget is not installed; as `html`.
    """
    try:
        from cwnd.playground.widget import Playground
    except ImportError as error:
        raise InputError(
            "anywidget is not installed; `pip install 'cwnd[notebook]'` does it"
        ) from error
    given = [] if scenario is None else [_text(scenario)]
    return Playground(page=html(scenario), height=height, scenarios=given)


def _text(scenario: ScenarioLike) -> str:
    if isinstance(scenario, Scenario):
        return scenario.to_toml()
    return read_text(Path(scenario), "a scenario file, a `.toml`")
