"""Runs of a scenario in memory, checked runs, and captured runs with their files."""

from __future__ import annotations

import re
import time
from contextlib import nullcontext
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from cwnd.errors import InputError
from cwnd.machine import cpu_time_s, machine
from cwnd.running import plans, runner
from cwnd.running.cells import (
    Captured,
    Captures,
    Checked,
    Outcome,
    PendingCells,
    SenderLogs,
    name_cells,
)
from cwnd.running.code import check_trust, given_classes
from cwnd.running.environments import SIMULATOR, environment_named
from cwnd.running.processes import computed
from cwnd.running.progress import bar
from cwnd.store import PART_ROWS, BatchBuilder, CellIndex, assemble, content

if TYPE_CHECKING:
    import os
    from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
    from typing import TypeAlias

    from cwnd import _core
    from cwnd.results import Run
    from cwnd.running.cells import Work
    from cwnd.running.code import GivenClass
    from cwnd.running.environments import Environment
    from cwnd.running.plans import Overrides, Plan, ScenarioLike
    from cwnd.running.progress import OnProgress
    from cwnd.store import MemoryBatch

#: Links to capture, as the command line names them: `"bottleneck"`, `"there+back"`, `"all"`, or a
#: list.
LinksLike: TypeAlias = "str | Sequence[str]"

#: Flow groups whose senders are logged: `"main"`, `"main,cross"`, `"all"`, or a list.
GroupsLike: TypeAlias = "str | Sequence[str]"

#: Word for all links, each in a file of its own, or all flow groups.
ALL = "all"
#: Separator of links that share a file.
LINK_SEPARATOR = "+"
#: Separator of files.
FILE_SEPARATOR = ","
SUFFIX = ".pcapng"


def captures(
    wanted: LinksLike, cells: Iterable[_core.Cell], directory: str | os.PathLike[str]
) -> Captures:
    """Parses the links to capture into files.

    Raises:
        InputError: A link is missing in at least one run.
    """
    common = _common([cell.links for cell in cells])
    files: dict[str, list[str]] = {}
    for text in _named(wanted, common):
        group = _group(text, common)
        if group not in files.values():
            files[_unique(LINK_SEPARATOR.join(group), SUFFIX, files)] = group
    return Captures(files, Path(directory))


def _common(every: Sequence[Sequence[str]]) -> list[str]:
    # A sweep normally changes no set of links or groups; if it does, only common ones are recorded.
    return [name for name in every[0] if all(name in names for names in every)]


def _named(wanted: str | Sequence[str], names: list[str]) -> Iterator[str]:
    for text in [wanted] if isinstance(wanted, str) else wanted:
        if text in names:  # a name that holds one of the separators
            yield text
            continue
        for part in (part.strip() for part in text.split(FILE_SEPARATOR)):
            yield from names if part == ALL and names else [part]


def _known(names: list[str]) -> str:
    return f"there are {', '.join(names)}, or `{ALL}` of them" if names else "none is in all runs"


def _group(text: str, links: list[str]) -> list[str]:
    if text in links:
        return [text]
    group = [name.strip() for name in text.split(LINK_SEPARATOR)]
    for name in group:
        if name not in links:
            raise InputError(f"there is no link `{name}` to capture; {_known(links)}")
    return list(dict.fromkeys(group))


def _unique(text: str, suffix: str, taken: Collection[str]) -> str:
    # Names of links and groups may hold any character, those of files may not.
    stem = re.sub(r"[^A-Za-z0-9._+-]", "_", text).lstrip(".") or "_"
    name, number = stem + suffix, 2
    while name in taken:
        name, number = f"{stem}-{number}{suffix}", number + 1
    return name


def sender_logs(
    wanted: GroupsLike,
    cells: Iterable[_core.Cell],
    directory: str | os.PathLike[str],
    environment: Environment,
) -> SenderLogs:
    """Parses the flow groups whose senders are logged.

    Raises:
        InputError: A group is missing in at least one run, or has no connections; or the senders
            are not the simulator's.
    """
    if environment is not SIMULATOR:
        raise InputError(
            "only simulated senders have logs: leave out `--qlog`, or `--on`; a kernel's packets"
            " are for `--pcap`"
        )
    common = _common([cell.senders for cell in cells])
    stems: dict[str, str] = {}
    for group in _named(wanted, common):
        if group not in common:
            raise InputError(
                f"there is no flow group `{group}` of connections to log; {_known(common)}"
            )
        if group not in stems:
            stems[group] = _unique(group, "", stems.values())
    return SenderLogs(list(stems.items()), Path(directory))


def run(
    scenario: ScenarioLike,
    *,
    seed: int | None = None,
    set: Overrides | None = None,  # noqa: A002 - named as the option of the command line
    threads: int | None = None,
    progress: bool | OnProgress = False,
    pcap: LinksLike = (),
    pcap_dir: str | os.PathLike[str] = "pcap",
    qlog: GroupsLike = (),
    qlog_dir: str | os.PathLike[str] = "qlog",
    check: bool = False,
    on: str | None = None,
    trust: bool = False,
    controllers: Mapping[str, type] | None = None,
    queues: Mapping[str, type] | None = None,
    workloads: Mapping[str, type] | None = None,
) -> Run:
    """Simulates a scenario, with all cells of its sweep and all its seeds.

    Ctrl-C, or any other exception, stops all runs. Runs on Linux are in real time and not
    repeatable: Ctrl-C keeps the finished ones, and the partial captures of the others.

    Args:
        scenario: Path of a scenario file, or a `cwnd.Scenario`.
        seed: Replaces the scenario's seed.
        set: Replaces values: `{"flow.main.rtt": "200 ms"}` or `["flow.main.rtt=200 ms"]`.
        threads: Runs at a time; if not given all cores, or on Linux as many as they can route. It
            never changes a simulated result.
        progress: `True` shows a bar on stderr; a function is called with a `Progress`.
        pcap: Links whose packets are written to capture files: `"bottleneck"`, `"all"`, or
            `"there+back"` for both in one file.
        pcap_dir: Directory of the capture files; each run has its own in it.
        qlog: Flow groups whose senders are logged in qlog, a file for each connection: `"main"`,
            `"main,cross"` or `"all"`.
        qlog_dir: Directory of the logs; each run has its own in it.
        check: Simulates everything twice, step by step, and compares every event and every random
            draw. The manifest gets the hashes of all steps, to compare builds and machines by.
        on: `"linux"` runs it with real endpoints on this machine's kernel, in real time; as root.
        trust: Trusts the code that the scenario names from now on.
        controllers: Classes for kinds of controllers that the scenario names: with
            `{"mine": Mine}` it may say `controller = { kind = "mine", gain = 2.0 }`. They run in
            this process, one run at a time, and need no trust. Ctrl-C waits at most 5 s for a call.
            Only the text of the class distinguishes runs, not what it refers to.
        queues: Classes for kinds of queues.
        workloads: Classes for kinds of workloads.

    Raises:
        ScenarioError: The scenario cannot be run; the error shows where and why.
        InputError: The file cannot be read, an argument is malformed, there is no such link or
            group, `check` is combined with `pcap`, `qlog` or `on`, or `qlog` with `on`.
        CwndError: A run on Linux failed.
        MachineError: This machine lacks something that `on` needs.
        DivergedError: With `check`: two runs differ; the error shows the first event that does.
        OSError: A capture file or log cannot be written.
    """
    given = given_classes(controller=controllers, queue=queues, workload=workloads)
    plan = plans.plan(scenario, seed=seed, overrides=set or (), given=given)
    files = captures(pcap, plan.points, pcap_dir) if pcap else None
    environment = environment_named(on)
    logs = sender_logs(qlog, plan.points, qlog_dir, environment) if qlog else None
    check_code(plan, trust=trust)
    work = work_of(environment, check=check, files=files, logs=logs, given=plan.given)
    shown = bar(plan.scenario.name) if progress is True else nullcontext(progress or None)
    with shown as on_progress:
        return _simulate(plan, environment, work or environment.run, threads, on_progress)


def check_code(plan: Plan, *, trust: bool) -> None:
    """Refuses code of a plan that is neither given nor trusted.

    Raises:
        InputError: Code is not trusted, a given class is not named, or only a part is given.
    """
    files = {source.name for source in plan.code}
    unused = [each.file for each in plan.given if each.file not in files]
    if unused:
        raise InputError(f"{plan.source.name} names none of {', '.join(unused)}")
    if plan.given and len(files) > len(plan.given):
        raise InputError("code of files and classes of this process do not run together")
    if not plan.given:
        check_trust(plan.code, plan.source.name, trust=trust)


def work_of(
    environment: Environment,
    *,
    check: bool,
    files: Captures | None,
    logs: SenderLogs | None,
    given: Sequence[GivenClass] = (),
) -> Work | None:
    """Returns the function that runs checked, captured or logged cells; `None` for ordinary runs.

    Raises:
        InputError: The run would be checked and recorded at once, or checked on Linux.
    """
    if check and (files or logs):
        raise InputError("a checked run is two runs at once: write captures and logs with another")
    if check and environment is not SIMULATOR:
        raise InputError("a checked run is the simulator's: real time does not come again")
    if check:
        return Checked(given)
    if given:
        environment = replace(SIMULATOR, given=tuple(given))
    if files or logs:
        return Captured(environment, files, logs)
    return environment.run if given else None


def _simulate(
    plan: Plan,
    environment: Environment,
    work: Work,
    threads: int | None,
    on_progress: OnProgress | None,
) -> Run:
    environment.check(plan.scenario)
    workers = min(environment.threads(plan.scenario, threads), plan.runs)
    started_at = datetime.now(UTC).isoformat(timespec="seconds")
    began, cpu_s = time.perf_counter(), cpu_time_s()
    simulated = environment is SIMULATOR
    if plan.given:
        workers = 1  # Python runs one thread at a time
    if plan.code and not plan.given and simulated:
        found, elapsed = _in_processes(plan, work, workers, on_progress)
    else:
        with runner.running(plan.scenario, work, workers, on_progress, in_order=simulated) as made:
            results, elapsed = made
            found = list(_collect_batches(results, environment))
    if not elapsed.cpu_s:
        # Routers and hosts have threads of their own, and code has processes.
        elapsed.cpu_s = cpu_time_s() - cpu_s
    result = assemble(name_cells(plan, environment.engine), CellIndex.of(found, ""))
    result.manifest = replace(
        result.manifest,
        started_at=started_at,
        wall_s=elapsed.ended - began,
        cpu_s=elapsed.cpu_s,
        threads=workers,
        machine=machine(),
        steps_hashes=work.of_runs(plan.runs) if isinstance(work, Checked) else None,
    )
    return result


def _in_processes(
    plan: Plan, work: Work, workers: int, on_progress: OnProgress | None
) -> tuple[list[MemoryBatch], runner.Elapsed]:
    """Runs all cells of a plan with code in processes."""
    pending = PendingCells(plan.scenario, list(range(plan.runs)))
    found: list[MemoryBatch] = []
    for outcome in computed(pending, workers, on_progress, work):
        if isinstance(outcome, Outcome):
            assert outcome.failure is not None
            raise outcome.failure.exception()
        found.append(outcome)
    return found, runner.Elapsed(ended=time.perf_counter())


def _collect_batches(
    results: Iterator[tuple[_core.Cell, _core.Result]], environment: Environment
) -> Iterator[MemoryBatch]:
    """Collects runs into parts of about `PART_ROWS` rows; finished runs on Linux survive Ctrl-C."""
    finished = BatchBuilder(environment.engine)
    any_finished = False
    try:
        for cell, result in results:
            finished.add(content(cell.resolved), cell, result)
            any_finished = True
            if finished.table_rows >= PART_ROWS:
                yield finished.take()
    except KeyboardInterrupt:
        if environment is SIMULATOR or not any_finished:
            raise
    if len(finished):
        yield finished.take()
