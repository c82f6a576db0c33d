"""Names in a result's directory: files, folders and columns, and the identifiers of cells."""

from __future__ import annotations

import hashlib

from cwnd import _core

MANIFEST = "manifest.json"
#: Key of the manifest with the name of the list of hashes.
SUMS_KEY = "checksums"
SCENARIO = "scenario.toml"
#: Folder of the resolved scenarios in results of version 1.
CELLS = "cells"
PLOTS = "plots"
#: Folders of what runs recorded: captures of links, and logs of senders.
PCAP, QLOG = "pcap", "qlog"
SUMMARY = "summary.csv"
#: Documents of `cwnd link`, `cwnd infer` and `cwnd agree`.
LINKED, INFERRED, AGREEMENT = "link.json", "inferred.json", "agreement.json"
#: Document of `cwnd rrul` beside the records of its link or of its simulated run.
RRUL = "rrul.json"
#: The same for Flent, its figure, and all files of such a test.
RRUL_FLENT, RRUL_FIGURE = "rrul.flent.gz", "rrul.svg"
RRUL_FILES = (RRUL, RRUL_FLENT, RRUL_FIGURE)
#: Description of an incomplete sweep, or of one of version 1.
DATASET = "dataset.json"
#: Folders of an incomplete sweep: finished cells, and the errors and scenarios of failed cells.
JOURNAL, ERRORS = "journal", "errors"
#: Columns of the file of runs that the frame lacks: the cell's identifier, and the run as a
#: resolved scenario.
CELL_ID, RESOLVED = "cell_id", "resolved"
#: Folder and file of the writers' logs and locks; no part of the result.
ACTIVITY, LOCK = "activity", "lock"
#: Tables with a row for each run, flow or link.
ROWS = ("runs", "flows", "links")
#: Name of runs on Linux in manifests and engines.
LINUX = "linux"
#: Table of runs, and its column with the facts of a run on Linux, as JSON.
RUNS, FACTS = "runs", "facts"
#: Table of drops and marks of links by reason.
REASONS = "reasons"
#: Table of delays by group.
DELAYS = "delays"
#: Tables that are read on request: reasons, samples, histograms, a row for each request, and sums
#: over flows without a row.
SAMPLES = (
    *(REASONS, "series", "link_series", "qdelay", DELAYS),
    *("requests", "sketches", "unrecorded"),
)
#: Tables of samples that older results lack.
LATER = (REASONS, DELAYS)
#: Data frames of a result, each in a Parquet file of its name.
TABLES = (*ROWS, *SAMPLES)


#: Version of the naming rule.
_VERSION = 1
_ID_DIGITS = 32


def content(resolved: str) -> str:
    """Returns the part of a resolved scenario that determines its result.

    This is the whole text except the lines with its name and description.

    Raises:
        ValueError: The text does not begin with schema, name and description.
    """
    schema, name, description, rest = resolved.split("\n", 3)
    if not (name.startswith("name = ") and description.startswith("description = ")):
        raise ValueError("a resolved scenario begins with its name and description")
    return f"{schema}\n{rest}"


def heading(resolved: str) -> str:
    """Returns the lines of a resolved scenario with its name and description."""
    _, name, description, _ = resolved.split("\n", 3)
    return f"{name}\n{description}\n"


def named(text: str, heading: str) -> str:
    """Joins the results of `content` and `heading` to a resolved scenario."""
    schema, rest = text.split("\n", 1)
    return f"{schema}\n{heading}{rest}"


def cell_id(text: str, engine: str = _core.engine) -> str:
    """Computes the identifier of a cell from its content, with the seed, and its engine."""
    parts = f"cwnd cell {_VERSION}\n{engine}\n{text}"
    return hashlib.sha256(parts.encode()).hexdigest()[:_ID_DIGITS]
