"""Layout of the directory of a result."""

from __future__ import annotations

MANIFEST = "manifest.json"
#: Key of the manifest that says where the checksums are.
SUMS_KEY = "checksums"
SCENARIO = "scenario.toml"
#: Folder of the resolved scenarios in results of version 1.
CELLS = "cells"
PLOTS = "plots"
PCAP = "pcap"
SUMMARY = "summary.csv"
#: Documents of results that are not of runs: of a link, of captures, of a comparison of worlds.
LINKED, INFERRED, AGREEMENT = "link.json", "inferred.json", "agreement.json"
#: Description of a sweep in place of a manifest: while cells are missing, and in version 1.
DATASET = "dataset.json"
#: Folders of finished cells, while others are missing, and of cells that failed: why, and the
#: scenario.
JOURNAL, ERRORS = "journal", "errors"
#: Columns of the file of runs that the frame of runs does not have: the name of the cell, and the
#: run as a scenario of its own, all defaults written out.
CELL_ID, RESOLVED = "cell_id", "resolved"
#: Log and locks of those who write into a directory; part of no result.
ACTIVITY, LOCK = "activity", "lock"
#: Tables with a row for each run, flow or link.
ROWS = ("runs", "flows", "links")
#: The world of runs on Linux, in manifests and names of engines.
LINUX = "linux"
#: The table of runs, and its column with more facts about a run on Linux, as JSON.
MARK, FACTS = "runs", "facts"
#: Drops and marks of links by reason.
REASONS = "reasons"
#: Tables that are read when they are asked for: reasons, samples, distributions, a row for each
#: request, and what stands for requests and flows that have no row.
SAMPLES = (REASONS, "series", "link_series", "qdelay", "requests", "sketches", "unrecorded")
#: The data frames of a result, each in a Parquet file of its name.
TABLES = (*ROWS, *SAMPLES)
