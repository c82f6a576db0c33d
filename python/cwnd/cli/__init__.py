"""Command line `cwnd COMMAND`, with the commands in modules of this package."""

from __future__ import annotations

import contextlib
import gc
import inspect
import os
import re
import signal
import sys
import warnings
from typing import TYPE_CHECKING, Any, NoReturn

from cyclopts import App, CycloptsError, Parameter

from cwnd.cli import output
from cwnd.errors import REPORT, CwndError, CwndWarning, explain

if TYPE_CHECKING:
    from collections.abc import Sequence
    from types import FrameType

#: Exit codes that `cwnd --help` documents.
OK, FAILED, USAGE, LACKING = 0, 1, 2, 3
#: Base of the exit code after a signal: shells report 128 + its number.
_SIGNALLED = 128
#: Python's own display of warnings, for those that are not `CwndWarning`.
_show_warning = warnings.showwarning


def _version() -> str:
    from cwnd._core import __version__

    return f"cwnd {__version__}"


app = App(
    name="cwnd",
    help="A laboratory for congestion control: simulate, compare, plot.",
    help_epilogue="Exit codes: 0 ok, 1 failed, 2 usage or input, 3 the machine lacks something.",
    help_format="plaintext",
    version=_version,
    default_parameter=Parameter(show_default=False),
    version_flags=["--version"],
    suppress_keyboard_interrupt=False,
)
#: Modules of commands that share one; the others are in a module of their own name.
_MODULES = {
    **dict.fromkeys(("check", "schema", "reference"), "scenario"),
    **dict.fromkeys(("cell", "export", "query", "status", "verify"), "stored"),
    **dict.fromkeys(("doctor", "testbed"), "machine"),
    "report": "plot",
    "reproduce": "study",
}
# A command's module is imported when the command, or its help, is called.
for _name, _help in {
    "run": "Simulate scenarios: table, plots and Parquet files.",
    "sweep": "Another name of `run`, for one version.",
    "status": "Show the progress of a sweep, from another terminal.",
    "query": "Ask a result with SQL.",
    "cell": "Print one run of a result as a scenario of its own.",
    "export": "Write one run of a result as a file of Flent.",
    "verify": "Tell whether results on disk are what was written.",
    "check": "Check scenario files without running them.",
    "new": "Write a start: a scenario, a controller of one's own, lessons.",
    "play": "Play with a scenario in the browser: every change simulates at once.",
    "plot": "Draw the figures of a result.",
    "animate": "Animate the packets of a run: queue, marks, drops, source quenches.",
    "compare": "Compare results, metric by metric, each with the first.",
    "agree": "Run a scenario in the simulator and on real Linux, and compare them.",
    "topology": "Make scenarios of graphs: HOT-like ones, GraphML and GML files.",
    "testbed": "Calibrate the testbed of real endpoints, or clean up after it.",
    "report": "Write results as one HTML page: tables, figures to zoom and hover, origin.",
    "study": "Run, check and write studies: experiments, tables, figures, claims.",
    "reproduce": "Reproduce a paper: its experiments, claims and figures.",
    "link": "Run a program behind an emulated link.",
    "rrul": "Measure responsiveness under load (Flent's RRUL), behind a link or simulated.",
    "infer": "Read captures: find timeouts of servers, draw a connection, write a scenario.",
    "kernel": "Put congestion controllers into this machine's Linux kernel.",
    "doctor": "Show what this machine can do, and what to install.",
    "schema": "Print the JSON Schema of scenario files.",
    "reference": "Print the reference of scenario files, in Markdown.",
    "completion": "Install completion for a shell: bash, zsh, fish or PowerShell.",
}.items():
    app.command(f"cwnd.cli.{_MODULES.get(_name, _name)}:{_name}", name=_name, help=_help)


def main(arguments: Sequence[str] | None = None) -> NoReturn:
    """Runs the command `cwnd` and exits with its code; no error shows a traceback.

    `CWND_DEBUG=1` shows the traceback of an internal error.
    """
    tokens = list(sys.argv[1:] if arguments is None else arguments)
    # Usage errors are JSON, too.
    output.as_json = output.has_option(tokens, "--json")
    output.as_latex = output.has_option(tokens, "--latex")
    if output.has_option(tokens, "--help") or output.has_option(tokens, "-h"):
        _describe(tokens)
    if output.as_json and output.as_latex:
        output.fail("one form of output at a time: --json or --latex")
        _exit(USAGE)
    signals = _Signals()
    warnings.simplefilter("always", CwndWarning)
    warnings.showwarning = _warned
    try:
        code = app(tokens, exit_on_error=False, print_error=False, result_action="return_value")
        sys.stdout.flush()
    except CycloptsError as error:
        output.fail(f"{error}", "see `cwnd --help`, or `cwnd COMMAND --help`")
        code = USAGE
    except KeyboardInterrupt:
        code = _stopped(signals.arrived or signal.SIGINT)
    except CwndError as error:
        output.fail(str(error))
        code = error.exit_code
    except BrokenPipeError:
        # The reader of stdout has closed the pipe (`cwnd … | head`). The interpreter would flush
        # into it again at exit, which /dev/null prevents.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        code = FAILED
    except OSError as error:
        output.fail(explain(error))
        code = FAILED
    except MemoryError:
        output.fail("out of memory", "run fewer cells at a time (--threads), or sample less often")
        code = FAILED
    except BaseException as error:  # a panic of the extension is a BaseException
        # A signal during an import may surface as an error of the imported library.
        code = _stopped(signals.arrived) if signals.arrived else _unexpected(error)
    code = code if isinstance(code, int) else OK
    if signals.arrived:
        _leave(code)
    _exit(code)


def _describe(tokens: list[str]) -> None:
    """Gives the command of these words its whole docstring, up to the arguments, as help.

    The list of commands has the first line only. Lines of a paragraph are joined unless they are
    indented.
    """
    command = app
    for word in tokens:
        if word.startswith("-") or word not in set(command):
            break
        command = command[word]
    if command is app:
        return
    described = inspect.getdoc(command.default_command) if command.default_command else None
    if described is None:
        return
    paragraphs = re.split(r"\n\nArgs:", described)[0].split("\n\n")
    command.help = "\n\n".join(
        each if "\n  " in each or each.startswith(" ") else each.replace("\n", " ")
        for each in paragraphs
    )


class _Signals:
    """Handlers of Ctrl-C and SIGTERM, which end a command in the same way."""

    def __init__(self) -> None:
        #: Number of the last signal; 0 if there was none.
        self.arrived = 0
        signal.signal(signal.SIGTERM, self._stop)
        # Shells start background jobs with Ctrl-C ignored; that setting is kept.
        if signal.getsignal(signal.SIGINT) is not signal.SIG_IGN:
            signal.signal(signal.SIGINT, self._stop)

    def _stop(self, number: int, _frame: FrameType | None) -> None:
        if not self.arrived:
            _silence_libraries()
        self.arrived = number
        raise KeyboardInterrupt


def _silence_libraries() -> None:
    """Redirects stderr of libraries to /dev/null and keeps it for this command.

    Libraries would report the interruption as an error of their own.
    """
    try:
        ours = os.dup(sys.stderr.fileno())
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stderr.fileno())
        sys.stderr = os.fdopen(ours, "w", buffering=1, errors="backslashreplace")
    except (OSError, ValueError, AttributeError):  # there is no stderr
        return


def _stopped(by: int) -> int:
    output.fail(
        f"{'terminated' if by == signal.SIGTERM else 'interrupted'}; {output.interrupt_message}"
    )
    return _SIGNALLED + by


def _warned(message: Warning | str, category: type[Warning], *place: Any, **named: Any) -> None:
    if issubclass(category, CwndWarning):
        output.warn(str(message))
    else:
        _show_warning(message, category, *place, **named)


def _leave(code: int) -> None:
    """Exits without waiting for threads of libraries, which may not be interruptible.

    It returns if Ray is imported.
    """
    if "ray" in sys.modules:  # Ray's processes are stopped by exit handlers of this process
        return
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(OSError, ValueError):
            stream.flush()
    os._exit(code)


def _exit(code: int) -> NoReturn:
    # The process releases its memory anyway; two collections at exit would take 30 ms.
    gc.freeze()
    sys.exit(code)


def _unexpected(error: BaseException) -> int:
    from cwnd._core import ScenarioError

    if isinstance(error, SystemExit):
        return error.code if isinstance(error.code, int) else FAILED
    if isinstance(error, ScenarioError):
        output.fail_scenario(error)
        return USAGE
    if os.environ.get("CWND_DEBUG"):
        raise error
    output.fail(
        f"internal error: {type(error).__name__}: {error}",
        REPORT,
    )
    return FAILED
