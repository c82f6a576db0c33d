"""Commands `cwnd check`, `schema` and `reference`: scenario files and their format."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated, Any

from cyclopts import Parameter

from cwnd.cli import output
from cwnd.errors import InputError


def check(
    files: Annotated[list[Path], Parameter(negative=(), consume_multiple=True)],
    /,
    *,
    seed: int | None = None,
    set_: Annotated[
        list[str],
        Parameter(name="--set", negative=(), consume_multiple=False),
    ] = [],  # noqa: B006 - cyclopts shows an empty list as no default
    json: output.Json = False,
) -> int:
    """Check scenario files without running them.

    The errors of all files are shown, up to fifty of each, with their lines, and a remedy if there
    is one.

    Args:
        files: Scenario files.
        seed: Replaces the scenario's seed.
        set_: Replaces a value: PATH=VALUE, as in "flow.main.rtt=200 ms"; may be given again.
        json: Machine-readable output.
    """
    from cwnd._core import ScenarioError
    from cwnd.running import plans

    if not files:
        raise InputError("which scenario? give a file, as in `cwnd check my.toml`")
    documents: list[dict[str, Any]] = []
    for file in files:
        found: dict[str, Any] = {"file": str(file), "ok": True, "runs": 0}
        found |= {"diagnostics": [], "total": 0, "notes": []}
        documents.append(found)
        try:
            plan = plans.plan(file, seed=seed, overrides=set_)
        except ScenarioError as error:
            found.update(ok=False, diagnostics=error.diagnostics, total=error.total)
            if not json:
                output.rendered(error)
            continue
        except InputError as error:
            found.update(ok=False, message=str(error))
            if not json:
                output.fail(str(error))
            continue
        warnings, total = plan.scenario.warnings, plan.scenario.warnings_total
        found.update(runs=plan.runs, diagnostics=warnings, total=total, notes=plan.scenario.notes)
        if not json:
            output.warnings(plan.scenario)
            output.scenario_notes(plan.scenario)
            runs = f"{plan.runs} run{'s' * (plan.runs != 1)}"
            output.line(f"{file}: ok, {runs}")
    if json:
        output.document({"files": documents})
    return 0 if all(found["ok"] for found in documents) else InputError.exit_code


def schema(*, json: output.Json = False) -> int:
    """Print the JSON Schema of scenario files, for editors that complete and check.

    Args:
        json: Changes nothing: the schema is JSON.
    """
    del json
    from cwnd._core import json_schema
    from cwnd.running import all_described

    text = json_schema(all_described())
    sys.stdout.write(text if text.endswith("\n") else text + "\n")
    return 0


def reference(*, json: output.Json = False) -> int:
    """Print the reference of scenario files, in Markdown.

    Args:
        json: The Markdown as the member `markdown` of a JSON document.
    """
    from cwnd._core import reference_markdown
    from cwnd.running import all_described

    text = reference_markdown(all_described())
    if json:
        output.document({"markdown": text})
    else:
        sys.stdout.write(text if text.endswith("\n") else text + "\n")
    return 0
