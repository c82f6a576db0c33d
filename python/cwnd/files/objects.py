"""Objects in JSON, from files that anybody may have written."""

from __future__ import annotations

import json
from typing import Any


def read_object(text: str | bytes) -> dict[str, Any]:
    """Reads an object.

    Raises:
        ValueError: It is no JSON, is nested beyond all use, is no object, or has text that is none.
    """
    try:
        found = json.loads(text)
        # A half of a surrogate pair can be shown nowhere.
        json.dumps(found, ensure_ascii=False).encode()
    except RecursionError as error:
        raise ValueError("it is nested too deeply") from error
    if not isinstance(found, dict):
        raise ValueError("it is no object of JSON")  # noqa: TRY004 - as all else that is damaged
    return found
