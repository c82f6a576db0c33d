"""What can go wrong, told apart by who can mend it."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path


class CwndError(Exception):
    """Something that cwnd can explain; `exit_code` is what the command line returns for it."""

    exit_code = 1


class InputError(CwndError):
    """The input or the usage is wrong: a file that is not there, a directory that is no result."""

    exit_code = 2


class DamageError(CwndError):
    """A file of a result is missing, cannot be read, or is not what was written."""

    exit_code = 2

    def __init__(self, file: Path, what: str, remedy: str) -> None:
        super().__init__(file, what, remedy)
        self.file = file
        #: What is wrong with it.
        self.what = what
        #: What mends it.
        self.remedy = remedy

    def __str__(self) -> str:
        return f"{self.file}: {self.what}; {self.remedy}"


class MachineError(CwndError):
    """This machine lacks something that was asked for."""

    exit_code = 3


class DivergedError(CwndError):
    """Two runs of one scenario with one seed were not the same."""


class CwndWarning(UserWarning):
    """Something that a user should know; the command line prints it."""


class FigureWarning(CwndWarning):
    """A figure could not be drawn; the result that it shows is complete."""


class UncheckedWarning(CwndWarning):
    """Whether something is what was written cannot be told."""


#: Asks for a report of what should not have happened.
REPORT = "this is a bug of cwnd; CWND_DEBUG=1 shows where, please report it"


def explain(error: OSError) -> str:
    """Says in one line what the operating system refused, and for which file."""
    reason = error.strerror or str(error)
    reason = reason[:1].lower() + reason[1:]
    return f"{error.filename}: {reason}" if error.filename else reason
