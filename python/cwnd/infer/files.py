"""Output files of inferred timeouts."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING

from cwnd.errors import InputError
from cwnd.files import SUMS, write_atomically
from cwnd.plots import attempt
from cwnd.results import INFER
from cwnd.store import INFERRED, pack

if TYPE_CHECKING:
    from pathlib import Path

    from cwnd.infer.inferred import Inferred

#: Names of the summary file and of the figure.
SUMMARY, FIGURE = INFERRED, "backoff.svg"


def write(found: Inferred, directory: Path) -> None:
    """Writes tables, summary and figure; each file appears complete or not at all.

    Raises:
        InputError: if the directory exists and holds something else.
    """
    if directory.exists() and (
        not directory.is_dir() or (any(directory.iterdir()) and not (directory / SUMMARY).exists())
    ):
        raise InputError(f"{directory} is there and holds something else than inferred timeouts")
    directory.mkdir(parents=True, exist_ok=True)
    summary = json.dumps(found.to_json(), indent=2, ensure_ascii=False) + "\n"
    # Graphs of connections of other captures.
    old = directory / SUMMARY
    if old.exists() and old.read_bytes() != summary.encode():
        for file in directory.iterdir():
            if re.fullmatch(r"connection-\d+\.(png|svg)", file.name):
                file.unlink()
    tables = {"connections": found.connections, "silences": found.silences}
    (directory / SUMS).unlink(missing_ok=True)
    for name, content in pack(INFER, "captures", tables, {SUMMARY: summary.encode()}).items():
        write_atomically(directory / name, content)
    then = f"the tables are complete in {directory}"
    with attempt(f"figure `{FIGURE}`", then):
        from cwnd.figures import Figure
        from cwnd.infer.figure import picture

        described = picture(found.silences)
        if described is None:
            (directory / FIGURE).unlink(missing_ok=True)
        else:
            Figure(described).save(directory / FIGURE)
