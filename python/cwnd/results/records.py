"""Results of commands that make no runs, in the layout of a run's: manifest, tables, hashes."""

from __future__ import annotations

import io
import json
from typing import TYPE_CHECKING

from cwnd import _core
from cwnd.files import SUMS, checksums
from cwnd.machine import machine
from cwnd.results.layout import MANIFEST, SUMS_KEY
from cwnd.results.manifest import FORMAT, FORMAT_VERSION

if TYPE_CHECKING:
    from collections.abc import Mapping

    import polars as pl


def pack(
    kind: str, name: str, tables: Mapping[str, pl.DataFrame], documents: Mapping[str, bytes]
) -> dict[str, bytes]:
    """Makes the files of a result, by name.

    They are to be written in their order: `SHA256SUMS` is last, and no older one may be there
    meanwhile.

    Args:
        kind: One of the kinds of `results.manifest`.
        name: Name of the scenario, or of what was measured.
        tables: Data frames; each becomes a Parquet file of its name.
        documents: Other files, by name.
    """
    files = dict(documents)
    for table, frame in tables.items():
        columns = io.BytesIO()
        frame.write_parquet(columns, compression="zstd")
        files[f"{table}.parquet"] = columns.getvalue()
    manifest = {
        "format": FORMAT,
        "format_version": FORMAT_VERSION,
        "kind": kind,
        "name": name,
        "cwnd_version": _core.__version__,
        "axes": [],
        "tables": {table: frame.height for table, frame in tables.items()},
        "machine": machine(),
        SUMS_KEY: SUMS,
    }
    files[MANIFEST] = (json.dumps(manifest, indent=2, ensure_ascii=False) + "\n").encode()
    sums = [(file, checksums.sha256(content)) for file, content in files.items()]
    return {**files, SUMS: checksums.listed(sums)}
