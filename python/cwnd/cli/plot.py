"""Commands `cwnd plot` and `cwnd report`: figures of a result, and an HTML page of results."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from cyclopts import Parameter

from cwnd.cli import output
from cwnd.errors import InputError
from cwnd.results import AGREE, INFER, LINK

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from cwnd.figures import Picture
    from cwnd.report import Recorded
    from cwnd.results import Run
    from cwnd.store import Records

Kind = Literal["timeseries", "windows", "qdelay", "delay", "responses", "sweep", "graph"]


def plot(
    directory: Path,
    /,
    *,
    kind: Annotated[list[Kind], Parameter(negative=(), consume_multiple=False)] = [],  # noqa: B006
    metric: Annotated[list[str], Parameter(negative=(), consume_multiple=False)] = [],  # noqa: B006
    x: str | None = None,
    lines: str | None = None,
    at: Annotated[list[str], Parameter(negative=(), consume_multiple=False)] = [],  # noqa: B006
    seed: int | None = None,
    link: str | None = None,
    group: str | None = None,
    relative_to: str | None = None,
    log: Annotated[list[Path], Parameter(negative=(), consume_multiple=False)] = [],  # noqa: B006
    output_dir: Annotated[Path | None, Parameter(name=["--output", "-o"])] = None,
    json: output.Json = False,
) -> int:
    """Draw the figures of a result, as PNG and SVG.

    Results of `cwnd link`, `cwnd infer` and `cwnd agree` have one figure each: delays, queue and
    drops of the link; waiting times of timeouts in a row; simulator and Linux. --log is for results
    of `cwnd link`, --metric for those of `cwnd agree` and, as all other options, of `cwnd run`.

    Args:
        directory: Result directory of `cwnd run`, `cwnd link`, `cwnd infer` or `cwnd agree`.
        kind: Figures to draw. If not given: the sweep alone with --metric, --x or --relative-to,
            time series alone with --at, else all that the result has data for, without "graph", the
            map of its links.
        metric: Metric of the sweep figure, or of simulator and Linux, by its column in summary.csv;
            may be given again.
        x: Axis of the sweep along x; "group" and "flow" are axes like those of the sweep.
        lines: Axis whose labels are the lines, "group" and "flow" among them. Several groups of
            flows are drawn separately.
        at: Point of the sweep that time series and graph show: AXIS=LABEL; may be given again.
        seed: Seed that time series and windows show; the first if not given.
        link: Link whose queue is shown; the busiest if not given.
        group: Only this group of flows; "*" for all flows together.
        relative_to: Group that goodput_ratio compares with; the first if not given.
        log: qlog file or capture of the program behind the link or of its peer, or directory of
            them: windows, RTTs and throughput there, on the time axis of the link; may be given
            again.
        output_dir: Directory for the files; the plots of the result if not given.
        json: Machine-readable output.
    """
    from cwnd import plots
    from cwnd.plots import layout
    from cwnd.results import known_group, metrics
    from cwnd.store import PLOTS, load, open_records

    records = open_records(directory)
    others = kind or at or (x, lines, seed, link, group, relative_to) != (None,) * 6
    if records is not None and (others or (metric and records.kind != AGREE)):
        own = {LINK: "--log, ", AGREE: "--metric, "}.get(records.kind, "")
        raise InputError(
            f"{directory}: a result of `cwnd {records.kind}` has one figure; of the options it"
            f" takes {own}-o and --json"
        )
    if log and (records is None or records.kind != LINK):
        raise InputError(f"{directory}: --log is for results of `cwnd link`")
    if records is not None:
        chosen = list(dict.fromkeys(metrics.metric(name).column for name in metric))
        _show(_draw(records, output_dir or directory / PLOTS, log, chosen), json=json)
        return 0
    run = load(directory, samples_on_disk=True)
    known_group(run, group)
    # In a figure over time, lines are flows or groups.
    apart = layout.by_flow_or_group(run, lines)
    columns = {axis.name: axis.column for axis in run.axes}
    named = point_at({axis.name: axis.labels for axis in run.axes}, at)
    point = {columns[name]: label for name, label in named.items()}
    options: dict[str, dict[str, Any]] = {
        "timeseries": {"at_point": point, "seed": seed, "link": link, "lines": apart},
        "windows": {"seed": seed, "lines": lines},
        "qdelay": {"link": link},
        "delay": {"lines": lines, "group": group},
        "responses": {"lines": lines, "group": group},
        "graph": {"at_point": point},
        "sweep": {"metrics": metric, "x": x, "lines": lines, "link": link},
    }
    for each in ("timeseries", "windows", "sweep"):
        options[each]["group"] = group
    options["sweep"]["relative_to"] = relative_to
    kinds: list[str] = list(kind)
    if not kinds:
        of_sweep = metric or x or relative_to or (lines and (plots.swept(run) or not apart))
        kinds = ["sweep"] if of_sweep else plots.default_kinds(run)
        if apart and not of_sweep:
            kinds = ["timeseries"]
        if at and "timeseries" not in kinds:
            kinds = ["timeseries"]
    if not kinds:
        raise InputError(f"{directory}: there is nothing to draw: no sweep, no samples, no packets")
    given = {**options["sweep"], "at_point": point, "seed": seed}
    for name, value in given.items():
        without: tuple[object, ...] = (None, [], {})
        taking = [each for each, taken in options.items() if taken.get(name) not in without]
        if value not in without and not {*kinds} & {*taking}:
            raise InputError(
                f"{_OPTIONS.get(name, f'--{name}')} is for --kind {', '.join(taking)}:"
                f" it has no effect on {', '.join(kinds)}"
            )
    place = output_dir or directory / PLOTS
    files = []
    for each in kinds:
        name = "-".join([each, *metric]) if each == "sweep" else each
        figure = plots.draw(run, each, **options[each])
        files += plots.save(figure, place, name)
    _show(files, json=json)
    return 0


#: Options whose parameters have other names.
_OPTIONS = {"metrics": "--metric", "relative_to": "--relative-to", "at_point": "--at"}


def _show(files: list[Path], *, json: bool) -> None:
    if json:
        output.document({"plots": [str(file) for file in files]})
    else:
        for file in files:
            output.line(str(file))


def _draw(records: Records, place: Path, log: Sequence[Path], metrics: Sequence[str]) -> list[Path]:
    """Draws the figure of a result of `cwnd link`, with logs, `cwnd infer`, or `agree`, by metric.

    Raises:
        InputError: There is nothing to draw.
    """
    from cwnd.figures import Figure
    from cwnd.plots import save

    described = picture(records, log, metrics)
    if described is None:
        raise InputError(f"{records.path}: there is nothing to draw: no packets, or no timeouts")
    return save(Figure(described), place, "-".join([_NAMES[records.kind], *metrics]))


def labels_at(axes: Mapping[str, Sequence[str]], at: list[str]) -> dict[str, list[str]]:
    """Parses options `--at AXIS=LABEL` for these axes with their labels.

    Raises:
        InputError: There is no such axis or label.
    """
    wanted: dict[str, list[str]] = {}
    for each in at:
        name, equals, label = each.partition("=")
        if not equals:
            raise InputError(f"--at takes AXIS=LABEL, not {each!r}")
        if name not in axes:
            known = ", ".join(axes) or "none"
            raise InputError(f"there is no axis `{name}`; there are {known}")
        if label not in axes[name]:
            labels = ", ".join(axes[name])
            raise InputError(f"axis `{name}` has no label `{label}`; it has {labels}")
        wanted.setdefault(name, []).append(label)
    return wanted


def point_at(axes: Mapping[str, Sequence[str]], at: list[str]) -> dict[str, str]:
    """Parses options as `labels_at`, with one label of each axis.

    Raises:
        InputError: There is no such axis or label, or several of one axis are given.
    """
    wanted = labels_at(axes, at)
    for name, labels in wanted.items():
        if len(labels) > 1:
            raise InputError(f"--at takes one label of the axis `{name}`, not {', '.join(labels)}")
    return {name: label for name, (label,) in wanted.items()}


#: File names of the figures, by command.
_NAMES = {LINK: "link", INFER: "backoff", AGREE: "agreement"}
_TITLES = {
    LINK: "Over time",
    INFER: "Timeouts in a row",
    AGREE: "Simulator and Linux",
}


def picture(
    records: Records, log: Sequence[Path] = (), metrics: Sequence[str] = ()
) -> Picture | None:
    """Describes the figure of a result, with logs of a link, or of metrics of an agreement.

    The result is `None` if there is nothing to draw.
    """
    if records.kind == LINK:
        from cwnd.link import presentation, read_logs
        from cwnd.store import LINKED

        logs = read_logs(log, records.document(LINKED)) if log else None
        described = presentation.picture(records.table("link_series"), logs)
        for note in logs.notes if logs else ():
            output.note(note, output.stderr())
        return described
    if records.kind == INFER:
        from cwnd.infer import picture as backoff

        return backoff(records.table("silences"))
    from cwnd.study.agreement import figure, files

    found = files.stored(records.table("differences"), records.name, records.path)
    return figure.figure(found, metrics) if metrics or found.deciding else None


#: File name of a report without `-o`.
_REPORT = "report.html"


def report(
    directories: Annotated[list[Path], Parameter(negative=(), consume_multiple=True)],
    /,
    *,
    output_file: Annotated[Path | None, Parameter(name=["--output", "-o"])] = None,
    json: output.Json = False,
) -> int:
    """Write results as one HTML page: tables, figures to zoom and hover, origin.

    The page needs no network and no other file: it can be mailed, printed, and read on a phone.

    Args:
        directories: Result directories of `cwnd run`, `cwnd link`, `cwnd rrul`, `cwnd infer` or
            `cwnd agree`; the page shows several one below the other.
        output_file: The page, DIRECTORY/report.html if not given.
        json: Machine-readable output.
    """
    if output_file is None and len(directories) > 1:
        raise InputError("several results on one page: say where it goes, with -o FILE")
    from cwnd.report import write

    file = write(
        [part for directory in directories for part in _results(directory)],
        output_file or directories[0] / _REPORT,
    )
    if json:
        output.document({"report": str(file)})
    else:
        output.line(str(file))
    return 0


def _results(directory: Path) -> list[Run | Recorded]:
    """Opens a result; an RRUL test is a part of its own before the link or the run."""
    from cwnd.link import facts
    from cwnd.report import Recorded
    from cwnd.store import RRUL, load, open_records, open_rrul

    records = open_records(directory)
    tested = records if records and (directory / RRUL).is_file() else open_rrul(directory)
    found: list[Run | Recorded] = [] if tested is None else [_rrul(tested)]
    if records is None:
        return [*found, load(directory, samples_on_disk=True)]
    about: Sequence[tuple[str, str]] = ()
    if records.kind == INFER:
        from cwnd.infer import Capture
        from cwnd.store import INFERRED

        about = [*Capture.from_json(records.document(INFERRED)["capture"]).rows().items()]
    elif records.kind == LINK and tested is None:
        about = facts(records)
    return [*found, Recorded(records, _TITLES[records.kind], picture(records), about)]


def _rrul(tested: Records) -> Recorded:
    import gzip
    import json
    from dataclasses import replace

    from cwnd.errors import DamageError
    from cwnd.files import checksums
    from cwnd.link import facts, rrul_picture, rrul_tables
    from cwnd.report import Recorded
    from cwnd.store import RRUL, RRUL_FLENT

    test = tested.document(RRUL)
    try:
        tables = [
            replace(table, title=title)
            for title, table in zip(("Goodput", "Pings"), rrul_tables(test), strict=True)
        ]
        drawn = rrul_picture(json.loads(gzip.decompress(tested.files.data(RRUL_FLENT))))
        about = [*facts(tested), ("load", f"{test['length_s']} s"), ("note", test["note"])]
        return Recorded(tested, "Over time", drawn, about, (test["title"], tables))
    except (AttributeError, EOFError, KeyError, OSError, TypeError, ValueError) as error:
        raise DamageError(tested.path / RRUL, checksums.DAMAGED, "run `cwnd rrul` again") from error
