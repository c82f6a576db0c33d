"""Command `cwnd compare`: differences of two results."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from cwnd.cli import output
from cwnd.errors import InputError

if TYPE_CHECKING:
    from rich.table import Table

    from cwnd.results import Comparison, Difference, MetricUnit, Verdict
    from cwnd.store import Records

#: Exit code for a regression.
FAILED = 1


def compare(
    before: Path,
    after: Path,
    /,
    *,
    metric: Annotated[list[str], Parameter(negative=(), consume_multiple=False)] = [],  # noqa: B006
    link: str | None = None,
    group: str | None = None,
    relative_to: str | None = None,
    fail_if: Annotated[
        list[str],
        Parameter(negative=(), consume_multiple=False),
    ] = [],  # noqa: B006
    strict: Annotated[bool, Parameter(negative=())] = False,
    json: output.Json = False,
) -> int:
    """Compare two results, metric by metric.

    Points of the sweep that both have are compared. Where both have the same seeds, the difference
    is taken seed by seed, so that the variation common to a seed cancels; else by Welch's method.
    Where there are several groups of flows, each that both have is compared, too.

    Of two results of `cwnd link` the numbers of each direction are compared, of `cwnd infer` the
    shares of connections with timeouts, of `cwnd agree` the differences between simulator and
    Linux.

    The exit code is 1 if a condition of --fail-if is met. It is decided at each point, for all
    flows and for each group that is compared, by the 95 % interval of the change: a regression lies
    beyond the bound with its whole interval, and so does not with one that reaches back over it,
    which is reported as undecided. With one seed the change itself decides.

    Args:
        before: Result directory of `cwnd run`, `cwnd link`, `cwnd infer` or `cwnd agree`.
        after: Result directory that is compared with it.
        metric: Metric by its column in summary.csv; may be given again.
        link: Link whose queue is compared; the busiest if not given.
        group: Only this group of flows; "*" for all flows together.
        relative_to: Group that goodput_ratio compares with; the first that both have if not given.
        fail_if: Change that is a regression, as in "goodput < -5 %", "qdelay_p95 > +2 ms" or
            "drop_ratio > +0.5 pp" (percentage points); may be given again.
        strict: Fail also if a condition is undecided, a run is missing or was not valid, or the
            second result lacks a point or group.
        json: Machine-readable output.
    """
    from cwnd.results import COLUMNS, OF_REQUESTS, Condition, metrics
    from cwnd.results import compare as compare_results
    from cwnd.store import load, open_records

    records = [open_records(each) for each in (before, after)]
    if any(records):
        if metric or (link, group, relative_to) != (None, None, None):
            raise InputError("the options of `cwnd compare` are for results of `cwnd run`")
        return _compare_records(before, after, records, fail_if, strict=strict, json=json)
    conditions = [Condition.parse(text, lambda n: metrics.metric(n).column) for text in fail_if]
    chosen = [metrics.metric(name).column for name in metric]
    usual = (*COLUMNS, "goodput_share", "goodput_ratio", *OF_REQUESTS)
    default = tuple(metrics.METRICS) if json else usual
    old, new = (load(each, samples_on_disk=True) for each in (before, after))
    compared = dict.fromkeys([*(chosen or default), *(each.metric for each in conditions)])
    found = compare_results(
        old, new, tuple(compared), link, group, relative_to=relative_to, conditions=conditions
    )
    flaws = [
        *(f"{place}: {note}" for place, run in ((before, old), (after, new)) for note in run.flaws),
        *_lacking(found),
    ]
    failed = _fails(found.verdicts, flaws, strict=strict)
    if json:
        output.document({**found.to_json(), "flaws": flaws, "failed": failed})
    else:
        same = found.before == found.after
        _show(found, (str(before), str(after)) if same else (found.before, found.after))
        _show_verdicts(found.verdicts, flaws if strict else [])
    return FAILED if failed else 0


def _lacking(found: Comparison) -> list[str]:
    """Sentences about points and groups that only the first result has."""
    points = [_place(point) for point in found.only_before]
    return [
        *(f"only the first result has {point}" for point in points),
        *(f"only the first result has a group {name}" for name in found.groups_only_before),
    ]


def _fails(verdicts: list[Verdict], flaws: list[str], *, strict: bool) -> bool:
    undecided = any(verdict.outcome == "undecided" for verdict in verdicts)
    return any(each.fails for each in verdicts) or (strict and (bool(flaws) or undecided))


def _place(point: dict[str, str]) -> str:
    return ", ".join(f"{name} {value}" for name, value in point.items())


def _show_verdicts(verdicts: list[Verdict], flaws: list[str]) -> None:
    """Prints the comparisons that a condition fails or leaves open, and counts the others."""
    from cwnd.results import ALL

    for text in dict.fromkeys(each.condition.text for each in verdicts):
        of_text = [each for each in verdicts if each.condition.text == text]
        for each in of_text:
            place = [_place(each.point), "" if each.group == ALL else each.group]
            at = ", ".join(filter(None, place))
            if each.outcome != "kept":
                colour = "red" if each.fails else "yellow"
                line = f"{text}{f' at {at}' if at else ''}: {each.text()}"
                output.labelled(each.outcome, line, colour)
        kept = [each for each in of_text if each.outcome == "kept"]
        if kept:
            only = kept[0].text() if len(of_text) == 1 else ""
            count = only or f"{len(kept)} of {len(of_text)} comparisons"
            output.labelled("kept", f"{text}: {count}", "green")
    if any(each.half_width is None and each.change is not None for each in verdicts):
        output.note("a single run has no interval: the change itself decides")
    if any(each.outcome == "undecided" for each in verdicts):
        output.note("undecided: the interval reaches over the bound; more seeds make it narrower")
    for flaw in flaws:
        output.labelled("invalid", flaw, "red")


def _compare_records(
    before: Path,
    after: Path,
    records: list[Records | None],
    fail_if: list[str],
    *,
    strict: bool,
    json: bool,
) -> int:
    from rich import box
    from rich.table import Table

    from cwnd.store import compare_records, judge_records

    old, new = records
    if old is None or new is None:
        (other,) = (each for each in records if each is not None)
        raise InputError(
            f"{other.path} is a result of `cwnd {other.kind}`, and the other one is not;"
            " results of the same command can be compared"
        )
    pairs = compare_records(old, new)
    verdicts = judge_records(pairs, fail_if)
    flaws = [f"{each.path}: {flaw}" for each in (old, new) for flaw in each.flaws()]
    failed = _fails(verdicts, flaws, strict=strict)
    code = FAILED if failed else 0
    if json:
        output.document(
            {
                "kind": old.kind,
                "pairs": [pair.to_json() for pair in pairs],
                "verdicts": [verdict.to_json() for verdict in verdicts],
                "flaws": flaws,
                "failed": failed,
            }
        )
        return code
    table = Table("of", "quantity", box=box.SIMPLE_HEAD, pad_edge=False)
    for heading in (str(before), str(after), "difference"):
        table.add_column(heading, justify="right", no_wrap=True)
    previous = None
    for pair in pairs:
        if not pair.before and not pair.after:
            continue
        if previous not in (None, pair.of):
            table.add_section()
        previous = pair.of
        numbers = (pair.before, pair.after, pair.difference)
        table.add_row(pair.of, pair.quantity, *("–" if n is None else f"{n:.6g}" for n in numbers))
    output.show(table)
    _show_verdicts(verdicts, flaws if strict else [])
    return code


def _show(found: Comparison, names: tuple[str, str]) -> None:
    from cwnd.results import METRICS, MetricUnit

    if found.changes:
        output.show(_changes(found, names))
    else:
        output.line("The scenarios do not differ, apart from seeds.")
    if found.identical:
        output.line("The records are the same, byte for byte.")
    shown = {
        name: MetricUnit.of(
            METRICS[name],
            [
                m
                for d in found.differences
                if d.metric == name
                for m in (d.before.mean, d.after.mean)
            ],
        )
        for name in dict.fromkeys(d.metric for d in found.differences)
    }
    output.show(_differences(found, names, shown))
    for text, points in (("first", found.only_before), ("second", found.only_after)):
        for point in points:
            output.note(f"only the {text} result has {_place(point)}")
    of_groups = (("first", found.groups_only_before), ("second", found.groups_only_after))
    for text, names_of_groups in of_groups:
        for name in names_of_groups:
            output.note(f"only the {text} result has a group {name}")


def _changes(found: Comparison, names: tuple[str, str]) -> Table:
    from rich import box
    from rich.table import Table

    table = Table("setting", *names, box=box.SIMPLE_HEAD, pad_edge=False)
    for change in found.changes:
        before, after = _setting(change.before), _setting(change.after)
        is_text = before == after  # below the name of a file
        table.add_row(change.path, before, f"{after}, another text" if is_text else after)
    return table


def _setting(value: object) -> str:
    """Formats a value; a source file by its name, which is above its text."""
    return "–" if value is None else str(value).partition("\n")[0]


def _differences(found: Comparison, names: tuple[str, str], shown: dict[str, MetricUnit]) -> Table:
    from rich import box
    from rich.table import Table

    from cwnd.results import ALL

    axes = list(found.differences[0].point) if found.differences else []
    paired = all(difference.paired for difference in found.differences)
    how = "paired by seed" if paired else "Welch"
    ratio = any(difference.metric == "goodput_ratio" for difference in found.differences)
    to = f"; per flow, relative to {found.relative_to}" if ratio else ""
    table = Table(
        box=box.SIMPLE_HEAD,
        pad_edge=False,
        caption=f"± 95 % confidence; differences {how}; * leaves zero out{to}",
        caption_style="dim",
    )
    grouped = any(difference.group != ALL for difference in found.differences)
    for axis in (*axes, *(["group"] if grouped else [])):
        table.add_column(axis, no_wrap=True)
    table.add_column("metric", no_wrap=True)
    for heading in (*names, "difference", ""):
        table.add_column(heading, justify="right", no_wrap=True)
    # Sections separate points, or values of the outermost axis if each point has a single line.
    single = len(shown) == 1
    previous: list[str] = []
    for difference in found.differences:
        of_group = "all flows" if difference.group == ALL else difference.group
        point = [*difference.point.values(), *([of_group] if grouped else [])]
        block = point[:1] if single else point
        if previous and block != previous:
            table.add_section()
        previous = block
        table.add_row(*point, *_row(difference, shown[difference.metric]))
    return table


def _row(found: Difference, shown: MetricUnit) -> list[str]:
    name = f"{shown.metric.label} ({shown.unit})" if shown.unit else shown.metric.label
    before, after, difference = found.before, found.after, found.difference
    percent = ""
    if before.mean:
        percent = f"{100 * difference.mean / abs(before.mean):+.1f} %"
    change = shown.text(difference.mean, difference.half_width)
    sign = "+" if difference.mean > 0 else ""
    return [
        name,
        shown.text(before.mean, before.half_width),
        shown.text(after.mean, after.half_width),
        f"{sign}{change}{' *' if found.clear else '  '}",
        percent,
    ]
