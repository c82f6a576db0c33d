"""Command `cwnd reproduce`: experiments and claims of a paper."""

from __future__ import annotations

from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from cwnd.cli import output
from cwnd.errors import InputError

if TYPE_CHECKING:
    from contextlib import AbstractContextManager

    from rich.table import Table

    from cwnd.reproduce import OnLinux, Paper, Reproduction
    from cwnd.running import OnProgress


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
        threads: Runs at a time; all cores if not given. It never changes the result.
        quick: A first answer in about a minute, by fewer seeds and shorter runs; results go to
            out/reproduce/PAPER-quick.
        on: "linux" runs the figures that real Linux can run, in the simulator and, as root and in
            real time, on Linux, and compares them; results go to out/reproduce/PAPER-linux.
        quiet: No progress.
        json: Machine-readable output.
    """
    from cwnd import reproduce as engine
    from cwnd.running import environments

    if paper is None:
        known = [engine.paper(name) for name in engine.papers()]
        if json:
            output.document({"papers": [{"name": p.name, "title": p.title} for p in known]})
            return 0
        for each in known:
            output.line(f"{each.name}: {each.authors}: {each.title}, {each.venue}")
        return 0
    if threads is not None and threads < 1:
        raise InputError(f"runs need at least one thread, not {threads}")

    def bars(name: str) -> AbstractContextManager[OnProgress]:
        from cwnd.running import bar

        return bar(name, output.stderr())

    def silent(_name: str) -> AbstractContextManager[OnProgress]:
        return nullcontext(lambda *_: None)

    if on is not None:
        environments.environment_named(on)
        if quick:
            raise InputError("`--quick` is of the simulator: runs on Linux take their time")
        on_linux = engine.reproduce_on_linux(
            paper,
            claims,
            directory=output_dir,
            threads=threads,
            progress=silent if quiet or json else bars,
        )
        return _show_on_linux(on_linux, engine.paper(paper), json=json)
    found = engine.reproduce(
        paper,
        claims,
        quick=quick,
        directory=output_dir,
        threads=threads,
        progress=silent if quiet or json else bars,
    )
    if json:
        output.document(found.to_json())
        return 0
    output.show(_table(found))
    for file in found.figures:
        if file.suffix == ".png":
            output.line(str(file))
    output.line(str(found.directory))
    return 0


def _show_on_linux(found: OnLinux, paper: Paper, *, json: bool) -> int:
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


def _table_on_linux(found: OnLinux, paper: Paper) -> Table:
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


def _table(found: Reproduction) -> Table:
    from rich import box
    from rich.table import Table

    table = Table(
        "claim",
        "what",
        box=box.SIMPLE_HEAD,
        pad_edge=False,
        caption=(
            "ours: mean ± 95 % confidence over seeds; bounds hold in every run"
            + ("; a quick look: fewer seeds than it takes to judge" if found.quick else "")
        ),
        caption_style="dim",
    )
    for heading in ("paper", "counts", "ours (95 % CI)"):
        table.add_column(heading, justify="right", no_wrap=True)
    table.add_column("verdict", no_wrap=True)
    for claim in found.paper.claims:
        outcomes = found.outcomes.get(claim.id)
        if outcomes is None:
            continue
        verdict = "[green]reproduced[/]" if found.holds(claim) else "[red]not reproduced[/]"
        table.add_section()
        table.add_row(claim.id, f"[bold]{claim.text}[/]", "", "", "", verdict)
        for outcome in outcomes:
            mark = "" if outcome.holds else "[red]not reproduced[/]"
            check = outcome.check
            table.add_row("", check.what, check.stated, check.allowed, outcome.text, mark)
    return table
