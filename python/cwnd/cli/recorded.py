"""Figures of results of `cwnd link`, `cwnd infer` and `cwnd agree`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cwnd.results import AGREE, INFER, LINK

if TYPE_CHECKING:
    from cwnd.figures import Picture
    from cwnd.store import Records

#: File names of the figures, by command.
NAMES = {LINK: "link", INFER: "backoff", AGREE: "agreement"}
TITLES = {
    LINK: "Over time",
    INFER: "Timeouts in a row",
    AGREE: "Simulator and Linux",
}


def picture(records: Records) -> Picture | None:
    """Describes the figure of a result; `None` if there is nothing to draw."""
    if records.kind == LINK:
        from cwnd.link import presentation as link

        return link.picture(records.table("link_series"))
    if records.kind == INFER:
        from cwnd.infer import picture as backoff

        return backoff(records.table("silences"))
    from cwnd.study.agreement import figure, files

    found = files.stored(records.table("differences"), records.name, records.path)
    return figure.figure(found) if found.deciding else None
