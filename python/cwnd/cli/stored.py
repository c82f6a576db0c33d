"""Commands `cwnd query`, `cell`, `export`, `status` and `verify`: results on disk."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Parameter

from cwnd.cli import output
from cwnd.errors import CwndError, InputError, explain

if TYPE_CHECKING:
    import polars as pl

    from cwnd.results import Run
    from cwnd.store import Verified


def query(
    directory: Path,
    sql: str,
    /,
    *,
    csv: Annotated[bool, Parameter(negative=())] = False,
    parquet: Annotated[Path | None, Parameter(negative=())] = None,
    unsafe: Annotated[bool, Parameter(negative=())] = False,
    latex: output.Latex = False,
    json: output.Json = False,
) -> int:
    """Ask a result with SQL.

    The views of a run or sweep are runs, flows, links, reasons, series, link_series, qdelay,
    delays, requests, sketches and unrecorded. Each row has the axes of the sweep as columns: labels
    as text, values as numbers in SI units. "describe flows" shows the columns of a view. Views of
    other results are their tables. A statement reads nothing but the result, and takes at most half
    of the machine's memory, unless --unsafe is given.

    Args:
        directory: Result directory of any command of cwnd.
        sql: One statement in DuckDB's SQL, as in "select rtt, avg(goodput_bit_s) from flows group
            by rtt".
        csv: Comma-separated values on stdout.
        parquet: Write the answer to this file.
        unsafe: Allow everything that DuckDB can do: several statements, other files, databases and
            extensions.
        latex: The table for LaTeX.
        json: Machine-readable output.
    """
    import polars as pl

    from cwnd.store import sql as engine

    if csv + json + latex + (parquet is not None) > 1:
        raise InputError("one form of output at a time: --csv, --json, --latex or --parquet FILE")
    if parquet is not None:
        try:
            engine.write_parquet(directory, sql, parquet, unsafe=unsafe)
        except OSError as error:
            raise CwndError(explain(error)) from error
        output.line(str(parquet))
        return 0
    answer = engine.query(directory, sql, unsafe=unsafe)
    if json:
        output.document({"columns": answer.columns, "rows": answer.rows()})
    elif csv:
        for name, kind in answer.schema.items():
            if kind.is_nested() or kind == pl.Binary:
                raise InputError(f"the column `{name}` is a list or bytes: --json can hold it")
        sys.stdout.write(answer.write_csv())
    else:
        _show_answer(answer)
    return 0


def _show_answer(answer: pl.DataFrame) -> None:
    from rich import box
    from rich.table import Table
    from rich.text import Text

    table = Table(box=box.SIMPLE_HEAD)
    for name, kind in answer.schema.items():
        table.add_column(Text(name), justify="right" if kind.is_numeric() else "left")
    for row in answer.iter_rows():
        table.add_row(*(Text(_text(value)) for value in row))
    output.show(table)


def _text(value: object) -> str:
    if value is None:
        return "–"
    if isinstance(value, float):
        return f"{value:.6g}"
    return str(value)


def cell(directory: Path, run: str, /, *, json: output.Json = False) -> int:
    """Print one run of a result as a scenario of its own, all defaults written out.

    `cwnd cell out/my 17 > one.toml` and `cwnd run one.toml` run it again.

    Args:
        directory: Result directory of `cwnd run`.
        run: The run's number (column `cell` of the view `runs`), or its `run_id`.
        json: Machine-readable output.
    """
    from cwnd.store import load

    result = load(directory, samples_on_disk=True)
    row = _row(result, run, directory)
    resolved = result.resolved[row]
    if json:
        output.document({"run_id": result.runs["run_id"][row], "resolved": resolved})
    else:
        sys.stdout.write(resolved)
    return 0


def export(
    directory: Path,
    run: str = "0",
    /,
    *,
    output_file: Annotated[Path, Parameter(name=["--output", "-o"])],
    json: output.Json = False,
) -> int:
    """Write one run of a result as a file of Flent, to draw it beside measurements.

    Downloads are the flows in the direction of the first group, uploads the others, pings the
    requests. "flent -i FILE -p all_scaled" draws it.

    Args:
        directory: Result directory of `cwnd run`.
        run: The run's number (column `cell` of the view `runs`), or its `run_id`.
        output_file: The file, named *.flent.gz.
        json: Machine-readable output.
    """
    from cwnd.files import write_atomically
    from cwnd.results import flent_data
    from cwnd.store import load

    if not output_file.name.endswith(".flent.gz"):
        raise InputError(f"{output_file}: Flent opens files named *.flent.gz")
    result = load(directory, samples_on_disk=True)
    content = flent_data(result, _row(result, run, directory)).file()
    output_file.parent.mkdir(parents=True, exist_ok=True)
    write_atomically(output_file, content)
    if json:
        output.document({"flent": str(output_file)})
    else:
        output.line(str(output_file))
    return 0


def _row(result: Run, run: str, directory: Path) -> int:
    column = "cell" if run.isdecimal() else "run_id"
    wanted = int(run) if run.isdecimal() else run
    known = result.runs[column].to_list()
    if wanted in known:
        return int(known.index(wanted))
    raise InputError(
        f"{directory}: no run {run}; it has {known[0]} to {known[-1]}, and `cwnd query` lists them"
    )


def status(directory: Path, /, *, json: output.Json = False) -> int:
    """Show the progress of a sweep, from another terminal.

    Args:
        directory: Directory of `cwnd run`.
        json: Machine-readable output.
    """
    from cwnd.store import read_status as look

    found = look(directory)
    if json:
        output.document(found.to_json())
        return 0
    output.line(
        f"{found.name}: {found.done} of {found.cells} cells done,"
        f" {found.failed} failed, {found.left} left"
    )
    for writer in found.writers:
        rate = "" if writer.cells_per_s is None else f", {writer.cells_per_s:.3g} cells/s"
        eta = "" if writer.eta_s is None else f", {duration(writer.eta_s)} to go"
        output.line(
            f"writing: {writer.who}, since {writer.started}, {writer.fraction:.0%}{rate}{eta}"
        )
    if not found.writers and found.done < found.cells:
        output.line("nobody is writing; `cwnd run` goes on")
    return 0


def duration(seconds: float) -> str:
    """Formats seconds for people, such as `2 h 05 min`."""
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    if hours:
        return f"{hours} h {minutes:02d} min"
    return f"{minutes} min {rest:02d} s" if minutes else f"{rest} s"


@Parameter(name="*")
@dataclass(frozen=True)
class Depth:
    """Extent of a check, and the treatment of damage."""

    sample: int | None = None
    """Runs that are computed again; 16, or none of another version or of Linux, if not given."""
    seed: int = 0
    """Seed of the choice of these runs."""
    threads: Annotated[int | None, Parameter(name=["--threads", "-j"])] = None
    """Runs at a time; all cores if not given."""
    mend: Annotated[bool, Parameter(negative="")] = False
    """Remove damaged runs of a sweep: `cwnd run` computes them again."""
    trust: Annotated[bool, Parameter(negative=())] = False
    """Trust the code that the runs name: its hash is kept, so that it is asked for once."""


#: Extent of a check without options.
DEPTH = Depth()


def verify(
    directories: Annotated[list[Path], Parameter(negative=(), consume_multiple=True)],
    /,
    *,
    depth: Depth = DEPTH,
    json: output.Json = False,
) -> int:
    """Compare all files of results with their hashes, and compute some runs of sweeps again.

    Runs are computed again only if no file of their result is damaged.

    Exit code 1 if a file is damaged or missing, or a run that is computed again gives other values.
    Commands that read a result compare the files that they read by themselves.

    Args:
        directories: Result directories of any command of cwnd.
        depth: Extent of the check.
        json: Machine-readable output.
    """
    if not directories:
        raise InputError("which result? give its directory, as in `cwnd verify out/first`")
    found = [check_result(directory, depth, quiet=json) for directory in directories]
    if json:
        output.document({"results": found})
    return 0 if all(each["sound"] for each in found) else 1


def check_result(directory: Path, depth: Depth, *, quiet: bool) -> dict[str, Any]:
    """Verifies one result, prints the outcome unless quiet, and returns it as a JSON object."""
    from cwnd.running import verifying

    of_cells = verifying.has_cells(directory)
    found = verifying.verify(directory, **vars(depth))
    if not quiet:
        _show_verified(found, directory, of_cells=of_cells)
    return {"directory": str(directory), **_document(found)}


def _document(found: Verified) -> dict[str, Any]:
    """Formats the outcome of a check as a JSON object."""
    return {
        "sound": found.sound,
        "checked": found.checked,
        "recomputed": found.recomputed,
        "missing": found.missing,
        "mended": found.mended,
        "problems": [{"file": str(p.file), "what": p.what} for p in found.problems],
    }


def _show_verified(found: Verified, directory: Path, *, of_cells: bool) -> None:
    """Prints the outcome of a check for people."""
    for problem in found.problems:
        output.line(f"{problem.file}: {problem.what}")
    verdict = "sound" if found.sound else f"{len(found.problems)} problems"
    if not of_cells:
        output.line(f"{directory}: {found.checked} files compared with their hashes: {verdict}")
        if found.problems:
            output.line(f"run its scenario again, with `cwnd run SCENARIO -o {directory}`")
        return
    if found.missing:
        output.line(f"{found.missing} cells are not there; `cwnd run` computes them")
    output.line(
        f"{directory}: {found.checked} cells compared with their hashes,"
        f" {found.recomputed} computed again: {verdict}"
    )
    if found.mended:
        output.line(f"{found.mended} cells taken out; `cwnd run` computes them again")
    elif found.problems:
        output.line(
            "`cwnd verify --mend` takes damaged cells out, to be computed again;"
            " other files `cwnd run` writes again"
        )
