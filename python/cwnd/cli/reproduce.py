"""Command `cwnd reproduce`: experiments and claims of a paper."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from cwnd.cli import output
from cwnd.cli.study import bars, check_threads, show
from cwnd.errors import InputError

if TYPE_CHECKING:
    from rich.table import Table

    from cwnd.study import OnLinux, Study


def reproduce(
    paper: str | None = None,
    /,
    *claims: str,
    output_dir: Annotated[Path | None, Parameter(name=["--output", "-o"])] = None,
    threads: Annotated[int | None, Parameter(name=["--threads", "-j"])] = None,
    on: str | None = None,
    quick: Annotated[bool, Parameter(negative=())] = False,
    quiet: Annotated[bool, Parameter(name=["--quiet", "-q"], negative=())] = False,
    json: output.Json = False,
) -> int:
    """Reproduce a paper: run its experiments, check its claims, draw its figures.

    Experiments whose results exist already are not run again. A claim that does not hold is shown
    as not reproduced; the command succeeds all the same.

    Args:
        paper: Name of the paper, such as abe; without one, the papers are listed.
        claims: Claims to check, such as A4; all if not given.
        output_dir: Directory of results and figures, out/reproduce/PAPER if not given.
        threads: Runs at a time; all cores if not given, or with --on linux as many as they can
            route. It never changes a simulated result.
        quick: A first answer in about a minute, by fewer seeds and shorter runs; results go to
            out/reproduce/PAPER-quick.
        on: "linux" runs the figures that real Linux can run, in the simulator and, as root and in
            real time, on Linux, and compares them; results go to out/reproduce/PAPER-linux.
        quiet: No progress.
        json: Machine-readable output.
    """
    from cwnd import study as engine
    from cwnd.running import environments

    if paper is None:
        known = [engine.paper(name) for name in engine.papers()]
        if json:
            output.document({"papers": [{"name": p.name, "title": p.title} for p in known]})
            return 0
        for each in known:
            output.line(f"{each.name}: {each.authors}: {each.title}, {each.venue}")
        output.line("`cwnd reproduce NAME --quick` gives a first answer in about a minute.")
        return 0
    check_threads(threads)
    progress = bars(quiet=quiet or json)
    if on is not None:
        environments.environment_named(on)
        if quick:
            raise InputError("`--quick` is of the simulator: runs on Linux take their time")
        on_linux = engine.reproduce_on_linux(
            paper,
            claims,
            directory=output_dir,
            threads=threads,
            progress=progress,
        )
        return _show_on_linux(on_linux, engine.paper(paper), json=json)
    default = Path("out") / "reproduce" / (f"{paper}-quick" if quick else paper)
    found = engine.run(
        engine.paper(paper),
        claims=claims,
        quick=quick,
        directory=output_dir or default,
        threads=threads,
        progress=progress,
    )
    return show(found, json=json)


def _show_on_linux(found: OnLinux, paper: Study, *, json: bool) -> int:
    if json:
        figures = [{"name": f.name, **f.agreement.to_json()} for f in found.figures]
        output.document({"figures": figures, **found.to_json()})
        return 0
    if found.outcomes:
        output.show(_table_on_linux(found, paper))
    for figure in found.figures:
        agreement = figure.agreement
        points = agreement.deciding
        within = sum(bool(row.holds) for row in points)
        output.line(f"{figure.name}: goodput within 10 % at {within} of {len(points)}")
        invalid = agreement.world.get("invalid_runs", 0)
        if invalid:
            output.warn(f"{invalid} runs are not valid: {agreement.world['flaws'][0]}")
        for file in figure.files:
            if file.suffix == ".png":
                output.line(str(file))
    return 0


def _table_on_linux(found: OnLinux, paper: Study) -> Table:
    from rich import box
    from rich.table import Table

    table = Table("claim", "what", box=box.SIMPLE_HEAD, pad_edge=False)
    for heading in ("paper", "counts", "simulator", "Linux"):
        table.add_column(heading, justify="right", no_wrap=True)
    table.add_column("on Linux", no_wrap=True)
    for claim in paper.claims:
        if claim.id not in found.outcomes:
            continue
        table.add_section()
        table.add_row(claim.id, f"[bold]{claim.text}[/]")
        for simulator, linux in found.outcomes[claim.id]:
            check = linux.check
            mark = "" if linux.holds else "[red]not reproduced[/]"
            cells = (check.stated, check.allowed, simulator.text, linux.text, mark)
            table.add_row("", check.what, *cells)
    return table
