"""Command `cwnd play`: the simulator in a page of its own."""

from __future__ import annotations

import os
import sys
import webbrowser
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from cwnd.cli import output


def play(
    scenario: Path | None = None,
    /,
    *,
    output_file: Annotated[Path, Parameter(name=["--output", "-o"])] = Path("play.html"),
    browser: bool = True,
    json: output.Json = False,
) -> int:
    """Play with a scenario in the browser: every change simulates again, at once.

    It writes the page to a file and opens that. The simulator is part of the page, which needs no
    network, server or other file: it can be mailed and put on any site.

    Args:
        scenario: Scenario to start with, such as that of "cwnd new scenario my.toml"; two flows
            over a FIFO if not given.
        output_file: The page, play.html if not given.
        browser: Open the page; --no-browser writes it only.
        json: Machine-readable output.
    """
    from cwnd.playground import write

    file = write(scenario, output_file)
    if json:
        output.document({"page": str(file)})
    else:
        output.line(str(file))
    if browser and _has_screen():
        webbrowser.open(file.resolve().as_uri())
    return 0


def _has_screen() -> bool:
    """`True` if a window can open; without a screen Python starts a browser in the terminal."""
    on_screen = ("DISPLAY", "WAYLAND_DISPLAY")
    return sys.platform != "linux" or any(os.environ.get(name) for name in on_screen)
