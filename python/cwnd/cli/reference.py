"""Command `cwnd reference`: documentation of scenario files."""

from __future__ import annotations

import sys

from cwnd.cli import output


def reference(*, json: output.Json = False) -> int:
    """Print the reference of scenario files, in Markdown.

    Args:
        json: The Markdown as the member `markdown` of a JSON document.
    """
    from cwnd._core import reference_markdown

    text = reference_markdown()
    if json:
        output.document({"markdown": text})
    else:
        sys.stdout.write(text if text.endswith("\n") else text + "\n")
    return 0
