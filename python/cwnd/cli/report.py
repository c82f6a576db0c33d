"""Command `cwnd report`: an HTML page of results."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from cwnd.cli import output
from cwnd.errors import InputError

if TYPE_CHECKING:
    from cwnd.report import Recorded
    from cwnd.results import Run

#: File name of a report without `-o`.
_REPORT = "report.html"


def report(
    directories: Annotated[list[Path], Parameter(negative=(), consume_multiple=True)],
    /,
    *,
    output_file: Annotated[Path | None, Parameter(name=["--output", "-o"])] = None,
    json: output.Json = False,
) -> int:
    """Write results as one HTML page: tables, figures to zoom and hover, origin.

    The page needs no network and no other file: it can be mailed, printed, and read on a phone.

    Args:
        directories: Result directories of `cwnd run`, `cwnd link`, `cwnd infer` or `cwnd agree`;
            the page shows several one below the other.
        output_file: The page, DIRECTORY/report.html if not given.
        json: Machine-readable output.
    """
    if output_file is None and len(directories) > 1:
        raise InputError("several results on one page: say where it goes, with -o FILE")
    from cwnd.report import write

    file = write(
        [_result(directory) for directory in directories], output_file or directories[0] / _REPORT
    )
    if json:
        output.document({"report": str(file)})
    else:
        output.line(str(file))
    return 0


def _result(directory: Path) -> Run | Recorded:
    from cwnd.cli import recorded
    from cwnd.report import Recorded
    from cwnd.store import load, open_records

    records = open_records(directory)
    if records is None:
        return load(directory, samples_on_disk=True)
    return Recorded(records, recorded.TITLES[records.kind], recorded.picture(records))
