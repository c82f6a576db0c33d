"""JSON objects in files from an untrusted source."""

from __future__ import annotations

import json
from typing import Any


def read_object(text: str | bytes) -> dict[str, Any]:
    """Parses a JSON object.

    Raises:
        ValueError: The text is no JSON object, is nested too deeply, or holds a lone surrogate.
    """
    try:
        found = json.loads(text)
        # A lone surrogate cannot be encoded in UTF-8, so no output could show it.
        json.dumps(found, ensure_ascii=False).encode()
    except RecursionError as error:
        raise ValueError("it is nested too deeply") from error
    if not isinstance(found, dict):
        raise ValueError("it is no object of JSON")  # noqa: TRY004 - as all else that is damaged
    return found
