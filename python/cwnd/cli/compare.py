"""Command `cwnd compare`: differences of results."""

from __future__ import annotations

from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from cwnd.cli import output
from cwnd.errors import InputError

if TYPE_CHECKING:
    from rich.table import Table

    from cwnd.results import Comparison, Difference, MetricUnit, Verdict
    from cwnd.store import Pair, Records

#: Exit code for a regression.
FAILED = 1
#: Maximum number of settings in the table of those that differ.
_MOST_SETTINGS = 30
#: Characters of the longest value that a table of settings shows.
_LONGEST_SETTING = 60
#: Ends of the names of figures.
_FIGURES = (".svg", ".png", ".pdf")


def compare(
    before: Path,
    after: Path,
    /,
    *more: Path,
    metric: Annotated[list[str], Parameter(negative=(), consume_multiple=False)] = [],  # noqa: B006
    link: str | None = None,
    group: str | None = None,
    relative_to: str | None = None,
    fail_if: Annotated[
        list[str],
        Parameter(negative=(), consume_multiple=False),
    ] = [],  # noqa: B006
    strict: Annotated[bool, Parameter(negative=())] = False,
    output_file: Annotated[Path | None, Parameter(name=["--output", "-o"])] = None,
    latex: output.Latex = False,
    json: output.Json = False,
) -> int:
    """Compare results, metric by metric, each with the first.

    Points of the sweep that both have are compared. Where both have the same seeds, the difference
    is taken seed by seed, so that the variation common to a seed cancels; else by Welch's method.
    Where there are several groups of flows, each that both have is compared, too.

    Of results of `cwnd link` the numbers of each direction are compared, of `cwnd rrul` also
    goodputs and pings, even of a real test with a simulated one (with --metric, simulated ones are
    compared as runs); of `cwnd infer` the shares of connections with timeouts, of `cwnd agree` the
    differences between simulator and Linux.

    The exit code is 1 if a condition of --fail-if is met. It is decided at each point, for all
    flows and for each group that is compared, by the 95 % interval of the change: a regression lies
    beyond the bound with its whole interval, and so does not with one that reaches back over it,
    which is reported as undecided. With one seed the change itself decides.

    Args:
        before: Result directory of `cwnd run`, `link`, `rrul`, `infer` or `agree`.
        after: Result directory that is compared with it.
        more: Further ones, each compared with the first.
        metric: Metric by its column in summary.csv; may be given again.
        link: Link whose queue is compared; the busiest if not given.
        group: Only this group of flows; "*" for all flows together.
        relative_to: Group that goodput_ratio compares with; the first that both have if not given.
        fail_if: Change that is a regression, as in "goodput < -5 %", "qdelay_p95 > +2 ms" or
            "drop_ratio > +0.5 pp" (percentage points); may be given again.
        strict: Fail also if a condition is undecided, a run is missing or was not valid, or another
            result lacks a point or group of the first.
        output_file: Figure of the metrics of all results of `cwnd run`, .svg, .png or .pdf.
        latex: Tables for LaTeX.
        json: Machine-readable output.
    """
    del latex  # `main` reads it
    from cwnd.results import COLUMNS, OF_DATAGRAMS, OF_REQUESTS, Condition, metrics
    from cwnd.results import compare as compare_results
    from cwnd.store import load, open_records, open_rrul

    if output_file is not None:
        _check_figure(output_file)
    directories = [before, after, *more]
    of_runs = metric or (link, group, relative_to, output_file) != (None,) * 4
    records = [open_records(each) for each in directories]
    tests = [
        found or open_rrul(directory) for directory, found in zip(directories, records, strict=True)
    ]
    if any(records) or (all(tests) and not of_runs):
        records = tests
        if of_runs:
            options = "--metric, --link, --group, --relative-to and --output"
            raise InputError(f"{options} are for results of `cwnd run`")
        return _compare_records(directories, records, fail_if, strict=strict, json=json)
    conditions = [Condition.parse(text, lambda n: metrics.metric(n).column) for text in fail_if]
    chosen = [metrics.metric(name).column for name in metric]
    runs = [load(each, samples_on_disk=True) for each in directories]
    datagrams = OF_DATAGRAMS if any(metrics.has_datagrams(run) for run in runs) else ()
    usual = (*COLUMNS, *datagrams, "goodput_share", "goodput_ratio", *OF_REQUESTS)
    default = tuple(metrics.METRICS) if json else usual
    compared = tuple(dict.fromkeys([*(chosen or default), *(each.metric for each in conditions)]))
    found = [
        compare_results(
            runs[0], new, compared, link, group, relative_to=relative_to, conditions=conditions
        )
        for new in runs[1:]
    ]
    names = _names(directories, [run.name for run in runs])
    several = len(found) > 1
    flaws = [
        f"{place}: {note}"
        for place, run in zip(directories, runs, strict=True)
        for note in run.flaws
    ]
    lacking = [_lacking(each, names[0], name) for name, each in zip(names[1:], found, strict=True)]
    flaws += [text for of_other, _ in lacking for text in of_other]
    verdicts = [verdict for each in found for verdict in each.verdicts]
    failed = _fails(verdicts, flaws, strict=strict)
    if json:
        if output_file is not None:
            raise InputError("--json writes one document: leave out --output, or call it again")
        document = {"comparisons": [each.to_json() for each in found]}
        document = document if several else found[0].to_json()
        output.document({**document, "flaws": flaws, "failed": failed})
        return FAILED if failed else 0
    _show(found, names, asked={*chosen, *(each.metric for each in conditions)})
    for name, each in zip(names[1:], found, strict=True):
        if several and each.verdicts:
            output.line(f"{name}:")
        _show_verdicts(each.verdicts)
    _show_flaws(flaws if strict else [])
    if output_file is not None:
        from cwnd import plots
        from cwnd.figures import Figure

        picture = plots.compare(
            dict(zip(names, runs, strict=True)),
            metrics=chosen,
            link=link,
            group=group,
            relative_to=relative_to,
        )
        output.line(str(Figure(picture).save(output_file)))
    return FAILED if failed else 0


def _names(directories: list[Path], names: list[str]) -> list[str]:
    """Returns different names of results: of the scenarios, or else of the directories."""
    found = names if len(set(names)) == len(names) else [str(each) for each in directories]
    if len(set(found)) == len(found):
        return found
    return [f"{name} ({number})" for number, name in enumerate(found, 1)]


def _check_figure(file: Path) -> None:
    """Refuses a figure that could not be written."""
    if file.suffix not in _FIGURES:
        raise InputError(
            f"--output {file}: the figure is {', '.join(_FIGURES[:-1])} or {_FIGURES[-1]}"
        )
    if not file.parent.is_dir() or file.is_dir():
        what = "it is a folder" if file.is_dir() else f"there is no folder {file.parent}"
        raise InputError(f"--output {file}: {what}")


def _lacking(found: Comparison, first: str, other: str) -> tuple[list[str], list[str]]:
    """Sentences about points and groups that one result lacks, of the other result first."""

    def sentences(name: str, points: list[dict[str, str]], groups: list[str]) -> list[str]:
        places = [*map(_place, points), *(f"the group {group}" for group in groups)]
        return [f"{name} lacks {place}" for place in places]

    return (
        sentences(other, found.only_before, found.groups_only_before),
        sentences(first, found.only_after, found.groups_only_after),
    )


def _fails(verdicts: list[Verdict], flaws: list[str], *, strict: bool) -> bool:
    undecided = any(verdict.outcome == "undecided" for verdict in verdicts)
    return any(each.fails for each in verdicts) or (strict and (bool(flaws) or undecided))


def _place(point: dict[str, str]) -> str:
    return ", ".join(f"{name} {value}" for name, value in point.items())


def _show_verdicts(verdicts: list[Verdict]) -> None:
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


def _show_flaws(flaws: list[str]) -> None:
    for flaw in flaws:
        output.labelled("invalid", flaw, "red")


def _compare_records(
    directories: list[Path],
    records: list[Records | None],
    fail_if: list[str],
    *,
    strict: bool,
    json: bool,
) -> int:
    from cwnd.results import RUN
    from cwnd.store import compare_records, judge_records

    known = [each for each in records if each is not None]
    if len(known) < len(records):
        other = next(d for d, each in zip(directories, records, strict=True) if each is None)
        raise InputError(
            f"{known[0].path} is a result of `{known[0].command}`, and {other} is not;"
            " results of the same command can be compared"
        )
    found = [compare_records(known[0], each) for each in known[1:]]
    verdicts = [judge_records(pairs, fail_if) for pairs in found]
    flaws = [f"{each.path}: {flaw}" for each in known for flaw in each.flaws()]
    failed = _fails([each for some in verdicts for each in some], flaws, strict=strict)
    code = FAILED if failed else 0
    if json:
        documents = [
            {"pairs": [p.to_json() for p in pairs], "verdicts": [v.to_json() for v in judged]}
            for pairs, judged in zip(found, verdicts, strict=True)
        ]
        document = {"comparisons": documents} if len(documents) > 1 else documents[0]
        # A simulated test, and what it is compared with.
        kind = "rrul" if RUN in (each.kind for each in known) else known[0].kind
        output.document({"kind": kind, **document, "flaws": flaws, "failed": failed})
        return code
    output.show(_pairs(directories, found))
    for directory, judged in zip(directories[1:], verdicts, strict=True):
        if len(found) > 1 and judged:
            output.line(f"{directory}:")
        _show_verdicts(judged)
    _show_flaws(flaws if strict else [])
    return code


def _pairs(directories: list[Path], found: list[list[Pair]]) -> Table:
    from rich import box
    from rich.table import Table
    from rich.text import Text

    table = Table("of", "quantity", box=box.SIMPLE_HEAD, pad_edge=False)
    differ = [[str(directory), "difference"] for directory in directories[1:]]
    for heading in (str(directories[0]), *chain(*differ)):
        table.add_column(Text(heading), justify="right", no_wrap=True)
    keys = dict.fromkeys((pair.of, pair.quantity) for pairs in found for pair in pairs)
    by_key = [{(pair.of, pair.quantity): pair for pair in pairs} for pairs in found]
    previous = None
    for key in keys:
        pairs = [each.get(key) for each in by_key]
        before = next(pair.before for pair in pairs if pair is not None)
        numbers = [before]
        for pair in pairs:
            numbers += [None, None] if pair is None else [pair.after, pair.difference]
        if not any(numbers):
            continue
        of, quantity = key
        if previous not in (None, of):
            table.add_section()
        previous = of
        cells = ("–" if n is None else f"{n:.6g}" for n in numbers)
        table.add_row(*map(Text, (of, quantity, *cells)))
    return table


def _show(found: list[Comparison], names: list[str], asked: set[str]) -> None:
    several = len(found) > 1
    changes = dict.fromkeys(change.path for each in found for change in each.changes)
    if changes:
        output.show(_changes(found, names, list(changes)))
    else:
        output.line("The scenarios do not differ, apart from seeds.")
    for name, each in zip(names[1:], found, strict=True):
        if each.identical:
            of = f" of {names[0]} and {name}" if several else ""
            output.line(f"The records{of} are the same, byte for byte.")
    if any(each.differences for each in found):
        output.show(_differences(found, names, asked))
    else:
        output.note("the results share no value of these metrics: a queue has no groups of flows")
    for name, each in zip(names[1:], found, strict=True):
        for texts in _lacking(each, names[0], name):
            for text in texts:
                output.note(text)


def _changes(found: list[Comparison], names: list[str], paths: list[str]) -> Table:
    from rich import box
    from rich.table import Table
    from rich.text import Text

    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for heading in ("setting", *names):
        table.add_column(Text(heading))
    by_path = [{change.path: change for change in each.changes} for each in found]
    for path in paths[:_MOST_SETTINGS]:
        changes = [each.get(path) for each in by_path]
        before = next(_setting(change.before) for change in changes if change is not None)
        row = [before]
        for change in changes:
            after = before if change is None else _setting(change.after)
            # Below the name of a file is its text.
            row.append(
                f"{after}, another text" if change is not None and after == before else after
            )
        table.add_row(*map(Text, (path, *row)))
    left_out = len(paths) - _MOST_SETTINGS
    if left_out > 0:
        table.caption = f"{left_out} more settings differ; --json has all"
    return table


def _setting(value: object) -> str:
    """Formats a value; a source file by its name, which is above its text, others cut."""
    text = "–" if value is None else str(value).partition("\n")[0]
    return text if len(text) <= _LONGEST_SETTING else f"{text[:_LONGEST_SETTING]} …"


def _differences(found: list[Comparison], names: list[str], asked: set[str]) -> Table:
    """Formats the differences; metrics that are zero in all results only if they were asked for."""
    from rich import box
    from rich.table import Table
    from rich.text import Text

    from cwnd.results import ALL

    every = [difference for each in found for difference in each.differences]
    shown = _units(every)
    axes = list(every[0].point) if every else []
    hows = {"paired by seed" if difference.paired else "Welch" for difference in every}
    references = dict.fromkeys(
        str(each.relative_to)
        for each in found
        for difference in each.differences
        if difference.metric == "goodput_ratio"
    )
    to = f"; per flow, relative to {', '.join(references)}" if references else ""
    table = Table(
        box=box.SIMPLE_HEAD,
        pad_edge=False,
        caption=f"± 95 % confidence; differences {', '.join(sorted(hows)) or 'none'};"
        f" * leaves zero out{to}",
        caption_style="dim",
    )
    grouped = any(difference.group != ALL for difference in every)
    for axis in (*axes, *(["group"] if grouped else [])):
        table.add_column(Text(axis), no_wrap=True)
    table.add_column("metric", no_wrap=True)
    more = [[name, "difference", ""] for name in names[1:]]
    for heading in (names[0], *chain(*more)):
        table.add_column(Text(heading), justify="right", no_wrap=True)
    rows: dict[tuple[str, ...], list[Difference | None]] = {}
    for index, each in enumerate(found):
        for difference in each.differences:
            key = (*difference.point.values(), difference.group, difference.metric)
            rows.setdefault(key, [None] * len(found))[index] = difference
    # Sections separate points, or values of the outermost axis if each point has a single line.
    single = len(shown) == 1
    previous: tuple[str, ...] = ()
    left_out: set[str] = set()
    for (*labels, group, metric), differences in rows.items():
        means = (e.mean for each in differences if each for e in (each.before, each.after) if e)
        if metric not in asked and not any(means):
            left_out.add(metric)
            continue
        of_group = "all flows" if group == ALL else group
        point = (*labels, *((of_group,) if grouped else ()))
        block = point[:1] if single else point
        if previous and block != previous:
            table.add_section()
        previous = block
        table.add_row(*map(Text, (*point, *_row(differences, shown[metric]))))
    if left_out:
        table.caption = f"{table.caption}; without what is 0 in all"
    return table


def _units(differences: list[Difference]) -> dict[str, MetricUnit]:
    from cwnd.results import METRICS, MetricUnit

    means: dict[str, list[float | None]] = {}
    for each in differences:
        means.setdefault(each.metric, []).extend((each.before.mean, each.after.mean))
    return {metric: MetricUnit.of(METRICS[metric], some) for metric, some in means.items()}


def _row(found: list[Difference | None], shown: MetricUnit) -> list[str]:
    name = f"{shown.metric.label} ({shown.unit})" if shown.unit else shown.metric.label
    before = next(each.before for each in found if each is not None)
    row = [name, shown.text(before.mean, before.half_width)]
    for each in found:
        if each is None:
            row += ["–", "", ""]
            continue
        change = shown.text(each.difference.mean, each.difference.half_width)
        sign = "+" if each.difference.mean > 0 else ""
        percent = f"{100 * each.difference.mean / abs(before.mean):+.1f} %" if before.mean else ""
        row += [
            shown.text(each.after.mean, each.after.half_width),
            f"{sign}{change}{' *' if each.clear else '  '}",
            percent,
        ]
    return row
