"""Exceptions and warnings of cwnd, by the person who can fix the cause."""

from __future__ import annotations

from errno import EMFILE
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path


class CwndError(Exception):
    """Base class of cwnd's errors except `ScenarioError`; `exit_code` is that of the command."""

    exit_code = 1


class InputError(CwndError):
    """Wrong input or usage, such as a missing file or a directory without a result."""

    exit_code = 2


class CodeError(CwndError):
    """The code of a scenario's part cannot be loaded, or raised an exception."""


class DamageError(CwndError):
    """A file of a result that is missing, unreadable or damaged."""

    exit_code = 2

    def __init__(self, file: Path, what: str, remedy: str) -> None:
        super().__init__(file, what, remedy)
        self.file = file
        #: Description of the damage.
        self.what = what
        #: Action that repairs or replaces the file.
        self.remedy = remedy

    def __str__(self) -> str:
        return f"{self.file}: {self.what}; {self.remedy}"


class MachineError(CwndError):
    """Something that this machine lacks, such as a privilege, a program or a kernel feature."""

    exit_code = 3


class DivergedError(CwndError):
    """Two runs of one scenario with one seed that took different steps."""


class CwndWarning(UserWarning):
    """Base class of warnings to the user; the command line prints them."""


class FigureWarning(CwndWarning):
    """A figure that could not be drawn; the result it shows is complete."""


class UncheckedWarning(CwndWarning):
    """Data that cannot be compared with a recorded hash, or a damaged log of a writer."""


#: Message of an internal error: asks the user to report the bug.
REPORT = "this is a bug of cwnd; CWND_DEBUG=1 shows where, please report it"


def explain(error: OSError) -> str:
    """Formats an `OSError` in one line: the file, if known, and the system's reason."""
    reason = error.strerror or str(error)
    reason = reason[:1].lower() + reason[1:]
    if error.errno == EMFILE:
        reason += " (`ulimit -n` raises their number)"
    return f"{error.filename}: {reason}" if error.filename else reason
