"""Output of commands: tables for people, or one JSON document on stdout."""

from __future__ import annotations

import json
import math
import re
import sys
from typing import TYPE_CHECKING, Annotated, Any, TypeAlias

from cyclopts import Parameter
from rich.console import Console

if TYPE_CHECKING:
    from collections.abc import Callable

    from rich.console import RenderableType

    from cwnd._core import Diagnostic, Scenario, ScenarioError
    from cwnd.results import TextTable

#: Option `--json`: stdout carries one JSON document and nothing else.
Json: TypeAlias = Annotated[
    bool,
    Parameter(name="--json", negative=(), help="Write one JSON document to stdout, nothing else."),
]

#: Option `--latex`: stdout carries tables for LaTeX and nothing else.
Latex: TypeAlias = Annotated[
    bool,
    Parameter(
        name="--latex",
        negative=(),
        help="Write the tables to stdout for LaTeX (package booktabs), all else to stderr.",
    ),
]

#: `True` if the command line has `--json`; set before anything can fail.
as_json = False
#: `True` if the command line has `--latex`.
as_latex = False
#: Description of the files that remain if the command is interrupted.
interrupt_message = "nothing was written"

#: Width of tables in files and pipes, in columns: no cell is cut.
_FILE_WIDTH = 1000


def has_option(tokens: list[str], option: str) -> bool:
    """`True` if an option without a value is among the arguments of the command."""
    options = tokens[: tokens.index("--")] if "--" in tokens else tokens
    return option in options


def stdout() -> Console:
    """Returns the console for results, which is that of stderr beside tables for LaTeX."""
    return _console(stderr=as_latex)


def stderr() -> Console:
    """Returns the console for progress, warnings and errors."""
    return _console(stderr=True)


def show(*renderables: RenderableType) -> None:
    """Prints results for people to stdout, tables for LaTeX if it is asked for."""
    console = stdout()
    for each in renderables:
        if as_latex:
            from rich.table import Table

            from cwnd.cli.latex import tabular

            if isinstance(each, Table):
                sys.stdout.write(tabular(each))
                continue
        console.print(each)


def show_fitting(make: Callable[[bool], TextTable | None]) -> None:
    """Prints a table with its intervals, or without them where the terminal is too narrow.

    It prints nothing if `make`, given `True` for intervals, returns `None`.
    """
    width = _FILE_WIDTH if as_latex else stdout().width
    text_table = make(True)
    if text_table is not None and text_table.width > width:
        text_table = make(False)
    if text_table is not None:
        show(*text_table.fitting(width))


def line(text: str) -> None:
    """Prints a line unwrapped, so that names of files stay intact."""
    stdout().print(text, markup=False, highlight=False, soft_wrap=True)


def document(data: object) -> None:
    """Writes the JSON document to stdout."""
    sys.stdout.write(json.dumps(finite(data), indent=2, ensure_ascii=False, allow_nan=False) + "\n")


def finite(data: Any) -> Any:
    """Converts data to JSON's types, other objects to their text.

    NaN and infinity, which JSON lacks, become null.
    """
    if isinstance(data, float):
        return data if math.isfinite(data) else None
    if isinstance(data, dict):
        return {str(key): finite(value) for key, value in data.items()}
    if isinstance(data, list | tuple):
        return [finite(value) for value in data]
    if data is None or isinstance(data, bool | int | str):
        return data
    return str(data)


#: Words that are cut in messages, such as a long number or a label of a user's file.
_LONG_WORD = re.compile(r"\S{300,}")
#: Characters of a longer message that are shown.
_MAX_SHOWN = 5000


def brief(text: str) -> str:
    """Shortens long words and long messages, which quote a user's file or argument."""

    def cut(found: re.Match[str]) -> str:
        word = found[0]
        return f"{word[:150]}…{word[-50:]} ({len(word)} characters)"

    text = _LONG_WORD.sub(cut, text)
    return text if len(text) <= _MAX_SHOWN else f"{text[:_MAX_SHOWN]} …"


def fail(message: str, help: str | None = None) -> None:  # noqa: A002 - as in a diagnostic
    """Prints an error with its remedy, or writes it as JSON."""
    message = brief(message)
    if as_json:
        found: dict[str, Any] = {"diagnostics": [], "total": 0}
        document({"error": {"message": message, "help": help, **found}})
        return
    console = stderr()
    console.print(f"[bold red]error[/]: {_escape(message)}", highlight=False, soft_wrap=True)
    if help is not None:
        console.print(f"  [cyan]help[/]: {_escape(help)}", highlight=False, soft_wrap=True)


def fail_scenario(error: ScenarioError) -> None:
    """Prints the errors of a scenario with their lines, or writes them as JSON."""
    if as_json:
        message = f"{error.total} problem{'s' * (error.total != 1)} in the scenario"
        found = {"diagnostics": error.diagnostics, "total": error.total}
        document({"error": {"message": message, "help": None, **found}})
        return
    rendered(error)


def rendered(error: ScenarioError) -> None:
    """Prints a scenario's errors as its parser formatted them."""
    console = stderr()
    text = error.rendered(console.color_system is not None)
    console.file.write(text if text.endswith("\n") else text + "\n")


def warn(text: str) -> None:
    """Prints a warning to stderr."""
    labelled("warning", text, "yellow", stderr())


def warnings(scenario: Scenario) -> None:
    """Prints the warnings of a scenario, and the number of those beyond the parser's limit."""
    for each in scenario.warnings:
        warn(_located(each))
    more = scenario.warnings_total - len(scenario.warnings)
    if more:
        warn(f"{more} more warning{'s are' if more > 1 else ' is'} not shown")


def scenario_notes(scenario: Scenario) -> None:
    """Prints the notes of a scenario to stderr."""
    for each in scenario.notes:
        note(_located(each), stderr())


def _located(each: Diagnostic) -> str:
    """Formats a warning or note in one line: position, message, and help."""
    help_text = f" ({each['help']})" if each["help"] else ""
    return f"{each['file']}:{each['line']}:{each['column']}: {each['message']}{help_text}"


def note(text: str, console: Console | None = None) -> None:
    """Prints a note to stdout, or to the given console."""
    labelled("note", text, "yellow", console)


def labelled(label: str, text: str, colour: str, console: Console | None = None) -> None:
    """Prints a line after a coloured label, to stdout or the given console."""
    console = console or stdout()
    text = _escape(brief(text))
    console.print(f"[{colour}]{label}[/]: {text}", highlight=False, soft_wrap=True)


def _console(*, stderr: bool) -> Console:
    console = Console(stderr=stderr, highlight=False)
    if not console.is_terminal:
        console.width = _FILE_WIDTH
    return console


def _escape(text: str) -> str:
    return text.replace("[", "\\[")
