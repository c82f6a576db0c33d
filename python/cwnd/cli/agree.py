"""Command `cwnd agree`: a scenario in the simulator and on Linux, compared."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from cwnd.cli import output

if TYPE_CHECKING:
    from rich.table import Table

    from cwnd.running import OnProgress
    from cwnd.study.agreement import Agreement, Gain, Row

#: Exit code if simulator and Linux differ beyond the tolerances, or a run on Linux is invalid.
DISAGREE = 1


def agree(
    file: Path,
    /,
    *,
    output_dir: Annotated[Path | None, Parameter(name=["--output", "-o"])] = None,
    seed: int | None = None,
    set_: Annotated[
        list[str],
        Parameter(name="--set", negative=(), consume_multiple=False),
    ] = [],  # noqa: B006 - cyclopts shows an empty list as no default
    threads: Annotated[int | None, Parameter(name=["--threads", "-j"])] = None,
    up_to: int | None = None,
    metric: Annotated[list[str], Parameter(negative=(), consume_multiple=False)] = [],  # noqa: B006
    group: str | None = None,
    relative_to: str | None = None,
    trust: Annotated[bool, Parameter(negative=())] = False,
    quiet: Annotated[bool, Parameter(name=["--quiet", "-q"], negative=())] = False,
    latex: output.Latex = False,
    json: output.Json = False,
) -> int:
    """Run a scenario in the simulator and on this machine's Linux, and compare them.

    Both results stay in the directory with a table and a figure. Existing runs are not repeated.
    The exit code is 0 if goodput is within 10 % and timeouts within 25 % or one a run at 19 of 20
    points, the gain of an arm over its base ("Reno+ABE" over "Reno", or over the label that its
    axis names in `over`) is within 5 percentage points, and every run on Linux was valid; else 1.
    Where all flows are transfers that end, their mean completion time replaces goodput. Several
    groups of flows are also compared separately, and each counts as a point.

    Args:
        file: Scenario file.
        output_dir: Directory of the comparison, out/agree/NAME if not given.
        seed: Replaces the scenario's seed.
        set_: Replaces a value: PATH=VALUE, as in "flow.main.rtt=200 ms"; may be given again.
        threads: Runs on Linux at a time, in real time; as many as the machine can route for if not
            given.
        up_to: Runs in simulator and on Linux at points where the scenario's own runs scatter too
            much for a verdict: where half of the 95 % confidence interval of a difference is wider
            than its tolerance. These points are shown again, with all of their runs.
        metric: Metric that is shown, by its column in summary.csv; may be given again.
        group: Only this group of flows; "*" for all flows together.
        relative_to: Group that goodput_ratio compares with; the first if not given.
        trust: Trust the code that the scenario names: its hash is kept, so that it is asked for
            once.
        quiet: No progress and no table.
        latex: Tables for LaTeX.
        json: Machine-readable output.
    """
    del latex  # `main` reads it
    from cwnd.results import metrics
    from cwnd.running import plans
    from cwnd.study.agreement import COMPARED
    from cwnd.study.agreement import agree as run_both

    plan = plans.plan(file, seed=seed, overrides=set_)
    target = output_dir or Path("out") / "agree" / plan.scenario.name
    output.interrupt_message = "what was finished is safe, and the same command goes on"
    chosen = tuple(metrics.metric(name).column for name in metric) or COMPARED

    def bars(name: str) -> AbstractContextManager[OnProgress]:
        from cwnd.running import bar

        return bar(f"{plan.scenario.name}, {name}", output.stderr())

    def silent(_name: str) -> AbstractContextManager[OnProgress]:
        return nullcontext(lambda *_: None)

    found = run_both(
        file,
        target,
        seed=seed,
        overrides=set_,
        threads=threads,
        up_to=up_to,
        progress=silent if quiet or json else bars,
        metrics=chosen,
        group=group,
        relative_to=relative_to,
        trust=trust,
    )
    if json:
        output.document(found.to_json())
    else:
        if not quiet:
            output.show(_rows(found))
            if found.gains:
                output.show(_gains(found))
            if found.repeated is not None:
                output.line("Of the points whose runs scatter too far to tell, all runs:")
                output.show(_rows(found.repeated))
                if found.repeated.gains:
                    output.show(_gains(found.repeated))
        _show_verdict(found)
    return 0 if found.holds else DISAGREE


def _show_verdict(found: Agreement) -> None:
    from cwnd.study.agreement import COMPLETION, GOODPUT

    points = "points, each group by itself" if found.grouped else "points"
    for metric, what in ((GOODPUT, "goodput"), (COMPLETION, "completion time")):
        if rows := [row for row in found.deciding if row.metric == metric]:
            output.line(f"{what} within 10 % at {_within(rows)} {points}")
    if rows := found.deciding_timeouts:
        output.line(f"timeouts within 25 % or one a run at {_within(rows)} {points}")
    if found.gains:
        within = sum(gain.holds for gain in found.deciding_gains)
        output.line(
            f"{_gains_heading(found)} within 5 percentage points at {within} of {len(found.gains)}"
        )
    invalid = found.world.get("invalid_runs", 0)
    if invalid:
        output.warn(f"{invalid} runs on Linux are not valid: {found.world['flaws'][0]}")
    output.line(str(found.directory))


def _within(rows: list[Row]) -> str:
    return f"{sum(bool(row.holds) for row in rows)} of {len(rows)}"


def _gains_heading(found: Agreement) -> str:
    """Heading of the gains, with the additions of the arms to their bases, such as "ABE"."""
    return f"gain of {', '.join(dict.fromkeys(gain.additions for gain in found.gains))}"


def _point(row: Row | Gain, *, grouped: bool) -> list[str]:
    from cwnd.results import ALL

    group = "all flows" if row.group == ALL else row.group
    return [*row.point.values(), *([group] if grouped else [])]


def _rows(found: Agreement) -> Table:
    from rich import box
    from rich.table import Table

    from cwnd.results import METRICS, MetricUnit

    grouped = found.grouped
    axes = [*(found.rows[0].point if found.rows else []), *(["group"] if grouped else [])]
    table = Table(
        box=box.SIMPLE_HEAD,
        pad_edge=False,
        caption="± 95 % confidence over seeds; difference: Linux − simulator",
        caption_style="dim",
    )
    for axis in axes:
        table.add_column(axis, no_wrap=True)
    table.add_column("metric", no_wrap=True)
    for heading in ("simulator", "Linux", "difference", "tolerance", ""):
        table.add_column(heading, justify="right", no_wrap=True)
    shown = {
        name: MetricUnit.of(
            METRICS[name],
            [m for r in found.rows if r.metric == name for m in (r.simulator.mean, r.linux.mean)],
        )
        for name in dict.fromkeys(row.metric for row in found.rows)
    }
    previous: list[str] = []
    for row in found.rows:
        point = _point(row, grouped=grouped)
        if previous and point != previous:
            table.add_section()
        repeated = point == previous
        previous = point
        unit = shown[row.metric]
        name = f"{unit.metric.label} ({unit.unit})" if unit.unit else unit.metric.label
        relative = row.relative
        table.add_row(
            *([""] * len(point) if repeated else point),
            name,
            unit.text(row.simulator.mean, row.simulator.half_width),
            unit.text(row.linux.mean, row.linux.half_width),
            "" if relative is None else f"{100 * relative:+.1f} %",
            _tolerance(row),
            _verdict(holds=row.holds),
        )
    return table


def _tolerance(row: Row) -> str:
    if row.tolerance is None:
        return ""
    return f"{100 * row.tolerance:g} %" + (f" or {row.least:g}" if row.least else "")


def _gains(found: Agreement) -> Table:
    from rich import box
    from rich.table import Table

    from cwnd.study.agreement import GAIN_TOLERANCE

    table = Table(
        box=box.SIMPLE_HEAD,
        pad_edge=False,
        title=_gains_heading(found).capitalize(),
        title_justify="left",
    )
    grouped = found.grouped
    for axis in (*found.gains[0].point, *(["group"] if grouped else [])):
        table.add_column(axis, no_wrap=True)
    table.add_column("over", no_wrap=True)
    for heading in ("simulator", "Linux", "difference", "tolerance", ""):
        table.add_column(heading, justify="right", no_wrap=True)
    for gain in found.gains:
        table.add_row(
            *_point(gain, grouped=grouped),
            gain.base,
            f"{gain.simulator.mean:+.1f} %",
            f"{gain.linux.mean:+.1f} %",
            f"{gain.difference.mean:+.1f} pp",
            f"{GAIN_TOLERANCE:g} pp",
            _verdict(holds=gain.holds),
        )
    return table


def _verdict(*, holds: bool | None) -> str:
    if holds is None:
        return ""
    return "[green]agree[/]" if holds else "[red]differ[/]"
