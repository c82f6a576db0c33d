"""Commands `cwnd study`, `cwnd study run`, `check` and `page`, and `cwnd reproduce`."""

from __future__ import annotations

from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import App, Parameter

from cwnd.cli import output
from cwnd.errors import InputError

if TYPE_CHECKING:
    from contextlib import AbstractContextManager

    from rich.table import Table

    from cwnd.running import OnProgress
    from cwnd.study import Bars, OnLinux, Result, Study, Verdict

study = App(name="study", default_parameter=Parameter(show_default=False), help_format="plaintext")

Directory = Annotated[Path | None, Parameter(name=["--output", "-o"])]
Threads = Annotated[int | None, Parameter(name=["--threads", "-j"])]
Quiet = Annotated[bool, Parameter(name=["--quiet", "-q"], negative=())]


@study.default
def list_studies(*, json: output.Json = False) -> int:
    """List studies: measurements with their scenarios, tables, figures and claims.

    Args:
        json: Machine-readable output.
    """
    from cwnd import study as engine

    known = {name: engine.study(name) for name in engine.studies()}
    if json:
        found = [
            {"name": name, "title": each.title, "question": each.question}
            for name, each in known.items()
        ]
        output.document({"studies": found})
        return 0
    for name, each in known.items():
        output.line(f"{name}: {each.title}{f' – {each.question}' if each.question else ''}")
    output.line("`cwnd study run NAME` runs one, `cwnd study check NAME` repeats a part of it;")
    output.line("NAME may be the path of a folder of yours.")
    return 0


@study.command
def run(
    name: str,
    /,
    *experiments: str,
    output_dir: Directory = None,
    threads: Threads = None,
    on: str | None = None,
    quick: Annotated[bool, Parameter(negative=())] = False,
    sample: Annotated[bool, Parameter(negative=())] = False,
    record: str | None = None,
    quiet: Quiet = False,
    json: output.Json = False,
) -> int:
    """Run a study's experiments, print its tables and claims, draw its figures.

    Experiments whose results exist already are not run again.

    Args:
        name: Name of the study, such as delay-noise, or path of its folder.
        experiments: Experiments to run; all if not given.
        output_dir: Directory of results and figures, out/study/NAME if not given.
        threads: Runs at a time; all cores if not given, or with --on linux as many as they can
            route. It never changes a simulated result.
        on: "linux" runs the experiments that real Linux can run, as root and in real time; with
            --record both worlds of a comparison.
        quick: A first answer by fewer seeds and shorter runs.
        sample: The part of the experiments that `cwnd study check` repeats.
        record: Measures this record of the study again, on a machine that is prepared for it.
        quiet: No progress.
        json: Machine-readable output.
    """
    from cwnd import study as engine

    check_threads(threads)
    chosen = engine.study(name)
    if record is not None:
        output.line(str(engine.record(chosen, record, on=on)))
        return 0
    found = engine.run(
        chosen,
        experiments,
        quick=quick,
        sample=sample,
        on=on,
        directory=output_dir,
        threads=threads,
        progress=bars(quiet=quiet or json),
    )
    return show(found, json=json)


@study.command
def check(
    name: str,
    /,
    *,
    output_dir: Directory = None,
    threads: Threads = None,
    quiet: Quiet = False,
    json: output.Json = False,
) -> int:
    """Repeat a part of a study, and compare with its page and records.

    Fails with the lines that differ. Else it names the repeated experiments, and those without a
    sample.

    Args:
        name: Name of the study, or path of its folder.
        output_dir: Directory of results, out/study/NAME-sample if not given.
        threads: Runs at a time; all cores if not given.
        quiet: No progress.
        json: Machine-readable output.
    """
    from cwnd import study as engine

    check_threads(threads)
    chosen = engine.study(name)
    progress = bars(quiet=quiet or json)
    faults = engine.check(chosen, directory=output_dir, threads=threads, progress=progress)
    if json:
        output.document({"study": chosen.name, "faults": faults})
        return 1 if faults else 0
    for fault in faults:
        output.line(fault)
    if not faults:
        output.line(_checked(chosen))
    return 1 if faults else 0


def _checked(study: Study) -> str:
    """Names what a check without faults has repeated, and what it has not."""
    from cwnd.study import runner

    samples = {
        name: study.experiment(name).sample is not None for name in runner.all_experiments(study)
    }
    repeated = ", ".join(name for name, has in samples.items() if has)
    left = ", ".join(name for name, has in samples.items() if not has)
    products = [
        f"{len(some)} {kind}{'s' * (len(some) != 1)}"
        for kind, some in (("table", study.tables), ("record", study.records))
        if some
    ]
    return (
        f"{study.name} is as its page says"
        + (f" ({', '.join(products)})" if products else "")
        + f"; repeated: {repeated or 'none'}"
        + (f"; without a sample: {left}" if left else "")
    )


@study.command
def page(
    name: str,
    /,
    *,
    output_dir: Directory = None,
    threads: Threads = None,
    quiet: Quiet = False,
    json: output.Json = False,
) -> int:
    """Run a study and write its page's tables, its records and images into its folder.

    Args:
        name: Name of the study, or path of its folder.
        output_dir: Directory of results, out/study/NAME if not given.
        threads: Runs at a time; all cores if not given.
        quiet: No progress.
        json: Machine-readable output.
    """
    from cwnd import study as engine

    check_threads(threads)
    progress = bars(quiet=quiet or json)
    chosen = engine.study(name)
    files = engine.write(chosen, directory=output_dir, threads=threads, progress=progress)
    if json:
        output.document({"study": chosen.name, "files": [str(file) for file in files]})
    for file in () if json else files:
        output.line(str(file))
    return 0


def check_threads(threads: int | None) -> None:
    """Refuses a number of threads below one.

    Raises:
        InputError: The number is below one.
    """
    if threads is not None and threads < 1:
        raise InputError(f"runs need at least one thread, not {threads}")


def bars(*, quiet: bool) -> Bars:
    """Returns the function that makes an experiment's progress bar, none if `quiet`.

    It also sets the message after Ctrl-C, as finished runs are kept from then on.
    """
    output.interrupt_message = "what was finished is safe, and the same command goes on"

    def shown(name: str) -> AbstractContextManager[OnProgress]:
        from cwnd.running import bar

        return bar(name, output.stderr())

    def silent(_name: str) -> AbstractContextManager[OnProgress]:
        return nullcontext(lambda *_: None)

    return silent if quiet else shown


def show(found: Result, *, json: bool) -> int:
    """Prints tables, claims, PNG files of figures and the directory, or all but files as JSON.

    Returns 1 if a figure could not be drawn, else 0.
    """
    if json:
        output.document(found.to_json())
        return 1 if found.undrawn else 0
    for name, lines in found.tables.items():
        output.line(f"{name}:")
        for text in lines:
            output.line(text)
    if found.outcomes:
        output.show(_claims(found))
        counts = found.counts
        text = f"{counts.headline} of {counts.numbers} numbers hold"
        if found.study.has_readings and not found.quick:
            text += (
                f", {counts.readings} with other readings of the paper,"
                f" {counts.departures} with departures from its text"
            )
        output.line(text)
        if found.quick and found.study.minutes:
            output.line(f"the whole takes about {found.study.minutes:g} minutes on two cores")
    for file in found.figures:
        if file.suffix == ".png":
            output.line(str(file))
    output.line(str(found.directory))
    return 1 if found.undrawn else 0


def _claims(found: Result) -> Table:
    from rich import box
    from rich.table import Table

    table = Table(
        "claim",
        "what",
        box=box.SIMPLE_HEAD,
        pad_edge=False,
        caption=(
            "ours: mean ± 95 % confidence over seeds; an interval too wide to tell is undecided"
            + ("; a quick look: fewer seeds than it takes to judge" if found.quick else "")
        ),
        caption_style="dim",
    )
    for heading in ("paper", "counts", "ours (95 % CI)"):
        table.add_column(heading, justify="right", no_wrap=True)
    table.add_column("verdict", no_wrap=True)
    for claim in found.study.claims:
        outcomes = found.outcomes.get(claim.id)
        if outcomes is None:
            continue
        table.add_section()
        verdict = _coloured(found.verdict(claim))
        table.add_row(claim.id, f"[bold]{claim.text}[/]", "", "", "", verdict)
        for outcome in outcomes:
            check = outcome.check
            cells = (check.what, check.stated, check.allowed, outcome.text)
            table.add_row(check.id, *cells, _coloured(outcome.verdict))
            for reading, each in outcome.readings:
                if each.ours is not None:
                    name = f"  {'departs' if reading.departs else 'reading'}: {reading.name}"
                    table.add_row("", name, "", "", each.text, _coloured(each.verdict))
    return table


def _coloured(verdict: Verdict) -> str:
    colour = {"holds": "green", "contradicted": "red"}.get(verdict, "yellow")
    return f"[{colour}]{verdict}[/]"


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

    Experiments whose results exist already are not run again. A claim holds, holds in part, is
    contradicted or undecided; the command succeeds all the same.

    Args:
        paper: Name of the paper, such as abe; without one, the papers are listed.
        claims: Claims to check, such as A4; all if not given.
        output_dir: Directory of results and figures, out/reproduce/PAPER if not given.
        threads: Runs at a time; all cores if not given, or with --on linux as many as they can
            route. It never changes a simulated result.
        quick: A first answer in less than a minute, by fewer seeds and shorter runs; results go to
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
        output.line("`cwnd reproduce NAME --quick` gives a first answer in less than a minute.")
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
            cells = (check.stated, check.allowed, simulator.text, linux.text)
            table.add_row(check.id, check.what, *cells, _coloured(linux.verdict))
    return table
