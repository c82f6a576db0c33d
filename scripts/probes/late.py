"""Probes of what was late: reordering, needless recoveries and timeouts."""

from __future__ import annotations

from typing import TYPE_CHECKING

from probes.probe import Path, each, over

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from probes.connection import Connection
    from probes.probe import Probe


def reordering() -> Iterator[Probe]:
    """Segments that come late."""
    yield from each(
        "reordering",
        {f"by-{n}": over(Path(late={(6, 1): 5.0 * n + 2}), 60, 50) for n in (1, 2, 3, 4, 6, 9)},
    )
    yield from each(
        "reordering",
        {
            "two-late": over(Path(late={(5, 1): 17, (6, 1): 17}), 60, 50),
            "twice": over(Path(late={(5, 1): 22, (25, 1): 22}), 90, 75),
            "thrice": over(Path(late={(5, 1): 22, (25, 1): 12, (45, 1): 22}), 120, 95),
            "and-lost": over(Path(late={(5, 1): 22}, lost={(24, 1)}), 90, 75),
            "without-dsack": over(Path(late={(5, 1): 32}, dsack=False), 60, 50),
            "late-behind-a-loss": over(Path(lost={(4, 1)}, late={(7, 1): 17}), 60, 50),
        },
    )
    yield from each(
        "reordering",
        {"without-timestamps": over(Path(late={(5, 1): 22}), 60, 50)},
        stamps=False,
    )


def undo() -> Iterator[Probe]:
    """Recoveries that were needless, or were not."""

    def recovery(
        last: Callable[[Connection], None], blocks: int = 8
    ) -> Callable[[Connection], None]:
        """Segment 2 seems lost and goes again; then what `last` says."""

        def play(connection: Connection) -> None:
            connection.write(60, 10)
            connection.ack(50, 2)
            for n in range(4, blocks):
                connection.ack(5, 2, [(3, n)])
            last(connection)
            for n in (12, 14, 16):
                connection.ack(30, n)

        return play

    def by_echo(connection: Connection) -> None:
        connection.ack(10, 7, echo="2#1")

    def real(connection: Connection) -> None:
        connection.ack(50, 7, echo="2#2")

    def by_dsack(connection: Connection) -> None:
        connection.ack(30, 7, echo="2#2")
        connection.ack(20, 7, [(2, 3)])

    def dsack_at_once(connection: Connection) -> None:
        connection.ack(50, 7, [(2, 3)], echo="2#2")

    def whole_at_once(connection: Connection) -> None:
        connection.ack(10, 10, echo="2#1")

    yield from each(
        "undo",
        {
            "by-echo": recovery(by_echo),
            "none": recovery(real),
            "by-dsack": recovery(by_dsack),
            "dsack-at-once": recovery(dsack_at_once),
            "whole-window-at-once": recovery(whole_at_once),
        },
    )
    yield from each("undo", {"by-dsack-without-timestamps": recovery(by_dsack)}, stamps=False)

    def held_open(*, dsack: bool) -> Callable[[Connection], None]:
        """2 is late and 4 under way again when more is missing; the next ACK delivers nothing."""

        def play(connection: Connection) -> None:
            connection.write(60, 10)
            connection.ack(50, 2)
            connection.ack(5, 2, [(3, 4)])
            for n in range(6, 13):
                connection.ack(5, 2, [(5, n), (3, 4)])
            blocks: list[tuple[float, float]] = [(15, 16), (5, 12)]
            connection.ack(20, 4, blocks, echo="2#1")
            connection.ack(12, 4, [(2, 3), *blocks] if dsack else blocks)
            connection.ack(12, 4, blocks)
            connection.ack(30, 12, blocks[:1])
            connection.ack(30, 16)

        return play

    yield from each(
        "undo",
        {"held-open": held_open(dsack=False), "held-open-by-dsack": held_open(dsack=True)},
    )
    # The window is far above the threshold of the reduction before.
    long_after = over(Path(lost={(8, 1)}, late={(150, 1): 50}, gap=7), 230, 180)
    yield from each("undo", {"in-avoidance": long_after})


def frto() -> Iterator[Probe]:
    """Timeouts that were needless."""

    def late(
        acks: list[tuple[float, str | None]], sacks: bool = False
    ) -> Callable[[Connection], None]:
        """ACKs from the third on come after the timeout, each with the echo that `acks` names."""

        def play(connection: Connection) -> None:
            connection.write(40, 10)
            connection.ack(50, 1)
            connection.ack(5, 2)
            connection.wait()
            connection.wait()
            for upto, echo in acks:
                connection.ack(10, upto, [(3, upto + 2)] if sacks else None, echo=echo)
            for n in (14, 15, 17):
                connection.ack(30, n)

        return play

    originals: list[tuple[float, str | None]] = [(n, f"{n - 1}#1") for n in range(3, 9)]
    unknown: list[tuple[float, str | None]] = [(n, None) for n in range(3, 9)]
    first_again: list[tuple[float, str | None]] = [(3, "2#2"), (4, "3#1"), (5, "4#1"), (6, "5#1")]
    cases = {
        "originals-late": late(originals),
        "originals-late-last-echo": late(unknown),
        "first-again-then-originals": late(first_again),
        "one-ack-for-all": late([(12, "2#1")]),
    }
    yield from each("f-rto", cases)
    yield from each("f-rto", {"without-timestamps": late(unknown)}, stamps=False)
    without_sack = {
        "without-sack": late(unknown),
        "without-sack-one-ack-for-all": late([(12, "2#1")]),
        "without-sack-one-late": late([(3, "2#1")]),
    }
    yield from each("f-rto", without_sack, sack=False)

    def dsacked_at_once(upto: int, written: int = 40) -> Callable[[Connection], None]:
        """The ACK of the retransmission reports by D-SACK that the original had arrived."""

        def play(connection: Connection) -> None:
            connection.write(written, 10)
            connection.ack(50, 1)
            connection.ack(5, 2)
            connection.wait()
            connection.wait()
            connection.ack(10, upto, [(2, 3)], echo="2#2")
            for n in (6, 8, 10, 12):
                connection.ack(20, n)

        return play

    at_once = {
        "dsack-at-once": dsacked_at_once(3),
        "dsack-at-once-and-more": dsacked_at_once(5),
        "dsack-at-once-beside-a-probe": dsacked_at_once(3, 12),
    }
    yield from each("f-rto", at_once)

    def dsacked(connection: Connection) -> None:
        connection.write(40, 10)
        connection.ack(50, 2)
        connection.wait()
        connection.wait()
        connection.ack(10, 5, echo="2#1")
        connection.ack(30, 6, [(2, 3)])
        for n in (12, 14, 15):
            connection.ack(30, n)

    yield from each("f-rto", {"dsack-after": dsacked})


def after_undo() -> Iterator[Probe]:
    """Growth of the window after an undone reduction."""
    yield from each(
        "after-undo",
        {
            "all-late": over(Path(late={(n, 1): 400 for n in range(6, 18)}), 120, 95),
            "all-late-delayed-acks": over(
                Path(late={(n, 1): 400 for n in range(8, 22)}, every=2), 160, 90
            ),
            "late-behind-a-reduction": over(
                Path(lost={(8, 1)}, late={(45, 1): 50}, gap=7), 150, 100
            ),
            "one-of-two-late": over(Path(lost={(9, 1)}, late={(6, 1): 42}, gap=6), 80, 60),
            "two-windows-late": over(Path(late={(6, 1): 32, (36, 1): 52}, gap=6), 130, 100),
        },
    )

    def early_timer(connection: Connection) -> None:
        connection.write(150, 10)
        connection.ack(50, 1)
        connection.ack(5, 2)
        connection.wait()
        connection.wait()
        for n in range(3, 90):
            connection.ack(5.2, n, echo=f"{n - 1}#1")

    yield from each("after-undo", {"early-timer": early_timer})
    yield from each(
        "after-undo",
        {
            "by-dsack": over(Path(late={(12, 1): 42}), 120, 95),
            "by-dsack-behind-a-reduction": over(
                Path(lost={(8, 1)}, late={(45, 1): 50}, gap=7), 150, 100
            ),
        },
        stamps=False,
    )
