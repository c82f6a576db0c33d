"""All probes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from probes import growth, late, losses, oddities

if TYPE_CHECKING:
    from probes.probe import Probe


def all_probes() -> list[Probe]:
    """Returns all probes, in the order of the file."""
    found = [
        *growth.slow_start(),
        *growth.avoidance(),
        *losses.holes(),
        *losses.tails(),
        *losses.lost_again(),
        *losses.no_sack(),
        *losses.timeouts(),
        *losses.lost_in_loss(),
        *losses.in_recovery(),
        *losses.timeouts_in_part(),
        *late.reordering(),
        *late.undo(),
        *late.frto(),
        *late.after_undo(),
        *growth.ecn(),
        *growth.windows(),
        *growth.shrunk_windows(),
        *growth.limited(),
        *growth.idle(),
        *oddities.odd_acks(),
        *oddities.drawn(),
    ]
    names = [probe.name for probe in found]
    assert len(set(names)) == len(names), "two probes of one name"
    return found
