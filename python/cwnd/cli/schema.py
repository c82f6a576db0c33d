"""Command `cwnd schema`: JSON Schema of scenario files."""

from __future__ import annotations

import sys

from cwnd.cli import output


def schema(*, json: output.Json = False) -> int:
    """Print the JSON Schema of scenario files, for editors that complete and check.

    Args:
        json: Changes nothing: the schema is JSON.
    """
    del json
    from cwnd._core import json_schema

    text = json_schema()
    sys.stdout.write(text if text.endswith("\n") else text + "\n")
    return 0
