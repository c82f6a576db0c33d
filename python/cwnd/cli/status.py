"""Command `cwnd status`: progress of a sweep."""

from __future__ import annotations

from pathlib import Path

from cwnd.cli import output


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
