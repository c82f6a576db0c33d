"""Command `cwnd rrul`: Flent's RRUL test behind an emulated link, or simulated."""

from __future__ import annotations

from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import Group, Parameter

from cwnd.cli import output
from cwnd.cli.link import INVALID, LINK, RECORDS, SAMPLE, LinkOptions, LiveMeter, show_flaws
from cwnd.errors import InputError

if TYPE_CHECKING:
    from cwnd.link import LinkOutcome, Rrul, Settings

#: Time between two lines about the progress, in seconds, where there is no terminal.
_LINE_S = 10
#: iperf3's MAX_TIME.
_LONGEST_S = 86_400
_TEST = Parameter(group=Group("Test", sort_key=-1))


def rrul(
    *,
    options: LinkOptions = LINK,
    length: Annotated[str, _TEST] = "60s",
    simulated: Annotated[bool, Parameter(negative=()), _TEST] = False,
    pcap: Annotated[Path | None, RECORDS] = None,
    output_dir: Annotated[Path | None, Parameter(name=["--output", "-o"]), RECORDS] = None,
    force: Annotated[bool, Parameter(negative=()), RECORDS] = False,
    strict: Annotated[bool, Parameter(negative=()), RECORDS] = False,
    quiet: Annotated[bool, Parameter(name=["--quiet", "-q"], negative=()), RECORDS] = False,
    json: Annotated[output.Json, RECORDS] = False,
) -> int:
    """Measure responsiveness under load: Flent's RRUL test behind an emulated link, or simulated.

    Four TCP downloads and four uploads with the DSCPs BK, BE, CS5 and EF send for --length. UDP
    pings (BK, BE, EF) and an ICMP ping last from 5 s before to 5 s after. The programs are iperf3,
    irtt and ping, with clients behind a link as of cwnd link. TCP is CUBIC.

    With --simulated the same flows are simulated, and pings are requests on open connections, from
    3 s before.

    For example:
      cwnd rrul --rate 20Mbit/s --uplink-rate 5Mbit/s --rtt 40ms --queue fq-codel -o real
      cwnd rrul --rate 20Mbit/s --uplink-rate 5Mbit/s --rtt 40ms --queue fq-codel --simulated -o sim
      flent -p ping_cdf -o pings.svg -i real/rrul.flent.gz -i sim/rrul.flent.gz

    Args:
        options: Options of the link.
        length: Time under load, in whole seconds.
        simulated: Simulate the test.
        pcap: File for all packets of a real test, as of cwnd link.
        output_dir: Directory for rrul.json, rrul.flent.gz and rrul.svg, beside the records of
            cwnd link or, with --simulated, the result as of cwnd run.
        force: Replace a real measurement in this directory.
        strict: Exit with 1 if the run was not valid, as when the machine was too busy to forward
            packets in time.
        quiet: No table, no progress.
        json: Machine-readable output.
    """
    if (options.rate, options.trace) == (None, None):
        raise InputError("which rate? give the link one, as in `cwnd rrul --rate 20Mbit/s`")
    settings, length_s = options.settings(SAMPLE), _whole_seconds(length)
    if not simulated and length_s > _LONGEST_S:
        raise InputError(
            f"--length {length}: iperf3 sends for at most {_LONGEST_S} s; --simulated may last"
            " longer"
        )
    shown = not (quiet or json)
    if output_dir is not None:
        _check_is_ours(output_dir, simulated=simulated)
    if simulated and pcap is not None:
        raise InputError(
            "--pcap is for real packets; `cwnd run DIR/scenario.toml --pcap all` captures those of"
            " `cwnd rrul --simulated -o DIR`"
        )
    if simulated and force:
        raise InputError(
            "--force replaces real measurements; a simulated test replaces simulated ones without"
        )

    def show(outcome: LinkOutcome | None, test: Rrul) -> None:
        if json:
            link = {} if outcome is None else outcome.to_json()
            output.document({**link, "rrul": test.to_json()})
        elif not quiet:
            _show(test, outcome)
        elif strict and outcome is not None:
            show_flaws(outcome)

    if simulated:
        outcome = None
        show(None, _simulate(settings, length_s, output_dir, progress=shown))
    else:
        from cwnd.link import link_s, measure

        meter = LiveMeter(interval_s=_LINE_S, total_s=link_s(length_s))
        outcome, _ = measure(
            settings,
            length_s,
            records=output_dir,
            force=force,
            pcap=pcap,
            on_start=meter.start if shown else None,
            on_end=meter.stop,
            on_outcome=show,
        )
    if output_dir is not None and shown:
        output.line(str(output_dir))
    return INVALID if strict and outcome is not None and not outcome.summary["valid"] else 0


def _check_is_ours(place: Path, *, simulated: bool) -> None:
    """Raises `InputError` for a path with something else than a test of `cwnd rrul`.

    A simulated one replaces simulated ones only; of real ones `measure` asks for force.
    """
    from cwnd.store import RRUL

    taken = not place.is_dir() or any(place.iterdir())
    if place.exists() and taken and not (place / RRUL).exists():
        raise InputError(
            f"{place} is there and holds something else than a result of `cwnd rrul`; give another"
            " directory"
        )
    if simulated:
        from cwnd.running import executor

        executor.check_target(place)


def _whole_seconds(length: str) -> int:
    from cwnd import _core

    try:
        seconds = _core.read_quantity("time", length)
    except ValueError as error:
        raise InputError(f"--length {length}: {error}") from error
    if seconds < 1 or seconds != int(seconds):
        raise InputError(f"--length {length}: iperf3 sends for whole seconds, as in 60s")
    return int(seconds)


def _simulate(settings: Settings, length_s: int, place: Path | None, *, progress: bool) -> Rrul:
    from cwnd.files import write_atomically
    from cwnd.link import rrul_picture, simulate
    from cwnd.plots import attempt
    from cwnd.running import bar
    from cwnd.store import RRUL_FIGURE

    with bar("rrul", output.stderr()) if progress else nullcontext() as on_progress:
        run, test = simulate(settings, length_s, on_progress)
    if place is not None:
        run.save(place)
        for name, content in test.files().items():
            write_atomically(place / name, content)
        with attempt(f"figure `{RRUL_FIGURE}`", f"the result is complete in {place}"):
            from cwnd.figures import Figure

            Figure(rrul_picture(test.flent.document())).save(place / RRUL_FIGURE)
    return test


def _show(test: Rrul, outcome: LinkOutcome | None) -> None:
    from cwnd.cli.link import show_link
    from cwnd.link import rrul_tables

    if outcome is not None:
        show_link(outcome)
    for table in rrul_tables(test.to_json()):
        output.show(*table.fitting(output.stdout().width))
    output.note(test.note)
