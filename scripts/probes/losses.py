"""Probes of what was lost: once, again, at the end, with SACK and without, and of timeouts."""

from __future__ import annotations

from typing import TYPE_CHECKING

from probes.probe import Path, each, over

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from probes.connection import Connection
    from probes.probe import Probe


def holes() -> Iterator[Probe]:
    """Losses of many shapes in a window."""
    shapes: dict[str, set[int]] = {
        "one-first": {0},
        "one": {5},
        "one-late-in-window": {16},
        "two-adjacent": {5, 6},
        "two-apart": {5, 8},
        "three-adjacent": {6, 7, 8},
        "three-apart": {5, 8, 11},
        "every-second": {4, 6, 8, 10, 12},
        "every-third": {3, 6, 9, 12, 15, 18},
        "half-a-window": {10, 11, 12, 13, 14},
        "first-and-last": {0, 9},
        "most": {2, 3, 4, 5, 6, 8, 9},
    }
    yield from each(
        "holes",
        {name: over(Path(lost={(n, 1) for n in shape})) for name, shape in shapes.items()},
    )
    yield from each(
        "holes",
        {
            "one-delayed-acks": over(Path(lost={(5, 1)}, every=2)),
            "two-windows": over(Path(lost={(5, 1), (24, 1)}), 80, 70),
            "acks-lost": over(Path(lost={(5, 1), (8, 1)}, lost_acks={7, 8, 10, 13})),
            "acks-mostly-lost": over(Path(lost={(6, 1)}, lost_acks={7, 8, 9, 10, 12, 13, 14})),
        },
    )
    yield from each(
        "holes", {"without-timestamps": over(Path(lost={(5, 1), (7, 1)}))}, stamps=False
    )


def tails() -> Iterator[Probe]:
    """Losses and delays at the end of what is written."""
    yield from each(
        "tail",
        {
            "last": over(Path(lost={(9, 1)}), 10),
            "last-two": over(Path(lost={(8, 1), (9, 1)}), 10),
            "last-three": over(Path(lost={(7, 1), (8, 1), (9, 1)}), 10),
            "last-and-a-hole": over(Path(lost={(5, 1), (9, 1)}), 10),
            "last-of-many": over(Path(lost={(19, 1)}), 20),
            "all-but-one": over(Path(lost={(n, 1) for n in range(1, 10)}), 10),
            "third-last": over(Path(lost={(7, 1)}), 10),
            "second-last": over(Path(lost={(8, 1)}), 10),
            "one-segment": over(Path(lost={(0, 1)}), 1),
            "two-segments": over(Path(lost={(1, 1)}), 2),
            "delayed-ack": over(Path(every=2, delay=100), 5),
            "last-two-late": over(Path(late={(6, 1): 400, (7, 1): 400}), 8, 60),
        },
    )


def lost_again() -> Iterator[Probe]:
    """Retransmissions that are lost in turn."""
    yield from each(
        "lost-again",
        {
            "once": over(Path(lost={(5, 1), (5, 2)}), 80, 60),
            "twice": over(Path(lost={(5, 1), (5, 2), (5, 3)}), 80, 60),
            "one-of-two": over(Path(lost={(5, 1), (7, 1), (5, 2)}), 80, 60),
            "the-later-of-two": over(Path(lost={(5, 1), (7, 1), (7, 2)}), 80, 60),
            "both": over(Path(lost={(5, 1), (7, 1), (5, 2), (7, 2)}), 80, 60),
            "and-nothing-new": over(Path(lost={(5, 1), (5, 2)}), 14, 60),
        },
    )


def no_sack() -> Iterator[Probe]:
    """Peers without SACK."""
    yield from each(
        "no-sack",
        {
            "one": over(Path(lost={(5, 1)})),
            "two-adjacent": over(Path(lost={(5, 1), (6, 1)})),
            "two-apart": over(Path(lost={(4, 1), (8, 1)})),
            "three": over(Path(lost={(3, 1), (6, 1), (9, 1)})),
            "tail": over(Path(lost={(8, 1), (9, 1)}), 10),
            "lost-again": over(Path(lost={(5, 1), (5, 2)})),
            "late-by-two": over(Path(late={(5, 1): 12})),
            "late-by-five": over(Path(late={(5, 1): 27})),
        },
        sack=False,
    )

    def undone(duplicates: int, upto: int) -> Callable[[Connection], None]:
        """The original of segment 2 comes behind so many duplicates, with all below `upto`."""

        def play(connection: Connection) -> None:
            connection.write(60, 10)
            connection.ack(50, 2)
            for _ in range(duplicates):
                connection.ack(5, 2)
            connection.ack(10, upto, echo="2#1")
            for n in range(upto + 1, upto + 8):
                connection.ack(30, n)

        return play

    late = {"undone-in-part": undone(3, 4), "undone": undone(5, 9), "undone-whole": undone(3, 12)}
    yield from each("no-sack", late, sack=False)
    without_timestamps = {
        "nor-timestamps": over(Path(lost={(5, 1)})),
        "nor-timestamps-late-by-three": over(Path(late={(5, 1): 16.6}), 60, 50),
        "nor-timestamps-late-by-six": over(Path(late={(5, 1): 32.2}), 60, 50),
    }
    yield from each("no-sack", without_timestamps, sack=False, stamps=False)


def everything_from(first: int, times: int = 1) -> set[tuple[int, int]]:
    """Copies 1 to `times` of the segments from `first` to 59."""
    return {(n, copy) for n in range(first, 60) for copy in range(1, times + 1)}


def timeouts() -> Iterator[Probe]:
    """Timeouts, once and in a row."""

    def silence(upto: int, written: int, then: list[int]) -> Callable[[Connection], None]:
        """The peer is silent until after a timeout; then its ACKs come 30 ms apart."""

        def play(connection: Connection) -> None:
            connection.write(written, 10)
            for n in range(1, upto + 1):
                connection.ack(40 if n == 1 else 10, n)
            # With SACK the tail loss probe goes first, then the timer; without, the timer twice.
            connection.wait()
            connection.wait()
            for n in then:
                connection.ack(30, n)

        return play

    def in_a_row(count: int) -> Callable[[Connection], None]:
        def play(connection: Connection) -> None:
            connection.write(20, 10)
            connection.ack(40, 2)
            for _ in range(count):
                connection.wait()
            for n in (3, 4, 6, 8, 10, 12):
                connection.ack(30, n)

        return play

    yield from each(
        "timeout",
        {
            "all-lost": silence(0, 30, [1, 2, 3, 5, 7, 9, 10]),
            "after-four": silence(4, 30, [5, 6, 8, 10, 12, 14]),
            "after-ten": silence(10, 60, [11, 12, 13, 15, 17, 19, 21, 25]),
            "delayed-acks-after": silence(4, 40, [6, 8, 10, 12, 14, 18]),
            "one-big-ack-after": silence(4, 40, [18, 20]),
            "two-in-a-row": in_a_row(3),
            "three-in-a-row": in_a_row(4),
            "four-in-a-row": in_a_row(5),
            "real": over(Path(lost=everything_from(6, 1) | {(6, 2)}), 20, 60),
            "with-sacks-before": over(Path(lost={(3, 1), (3, 2), (4, 1), (4, 2), (3, 3)}), 12, 60),
        },
    )
    yield from each("timeout", {"without-timestamps": silence(4, 30, [5, 6, 8, 10])}, stamps=False)
    yield from each("timeout", {"without-sack": silence(4, 30, [5, 6, 8, 10, 14])}, sack=False)


def lost_in_loss() -> Iterator[Probe]:
    """Retransmissions of a timeout that are lost in turn."""
    window = everything_from(6)
    yield from each(
        "lost-in-loss",
        {
            "second": over(Path(lost=window | {(7, 2)}), 40, 60),
            "third": over(Path(lost=window | {(8, 2)}), 40, 60),
            "fifth": over(Path(lost=window | {(10, 2)}), 40, 60),
            "two": over(Path(lost=window | {(9, 2), (11, 2)}), 40, 60),
            "three-in-a-row": over(Path(lost=window | {(8, 2), (9, 2), (10, 2)}), 40, 60),
            "one-after-another": over(Path(lost=window | {(7, 2), (13, 2)}), 40, 80),
            "twice": over(Path(lost=window | {(8, 2), (8, 3)}), 40, 80),
            "of-a-large-window": over(
                Path(lost={(n, 1) for n in range(30, 60)} | {(48, 2)}), 80, 110
            ),
            "delayed-acks": over(Path(lost=window | {(9, 2)}, every=2), 40, 60),
            "with-sacks-before": over(
                Path(lost={(n, copy) for n in (3, 4, 5, 6, 7) for copy in (1, 2)} | {(5, 3)}),
                12,
                80,
            ),
        },
    )


def in_recovery() -> Iterator[Probe]:
    """Timeouts while a loss is repaired."""

    def silent(connection: Connection) -> None:
        connection.write(60, 10)
        connection.ack(50, 2)
        for n in range(4, 10):
            connection.ack(5, 2, [(3, n)])
        connection.wait()
        connection.wait()
        connection.ack(40, 3, [(3, 9)])
        for n in (9, 10, 12, 14, 16):
            connection.ack(30, n)

    def partial_then_silent(connection: Connection) -> None:
        connection.write(60, 10)
        connection.ack(50, 2)
        for n in range(6, 11):
            connection.ack(5, 2, [(5, n), (3, 4)])
        connection.ack(60, 4, [(5, 10)])
        connection.wait()
        connection.wait()
        for n in (10, 11, 12, 14):
            connection.ack(30, n)

    def without_sack(connection: Connection) -> None:
        connection.write(60, 10)
        connection.ack(50, 2)
        for _ in range(5):
            connection.ack(5, 2)
        connection.wait()
        for n in (3, 6, 9, 12, 14):
            connection.ack(30, n)

    cases = {"silent": silent, "partial-then-silent": partial_then_silent}
    yield from each("timeout-in-recovery", cases)
    yield from each("timeout-in-recovery", {"without-sack": without_sack}, sack=False)


def timeouts_in_part() -> Iterator[Probe]:
    """Timeouts shortly after something else went."""

    def written(
        pauses: list[float], then: Callable[[Connection], None]
    ) -> Callable[[Connection], None]:
        """The last two segments and their probe are lost; after each pause three are written."""

        def play(connection: Connection) -> None:
            connection.write(10, 10)
            connection.ack(50, 8)
            connection.wait()
            for pause in pauses:
                connection.pause(pause)
                connection.write(3)
            connection.wait()
            then(connection)

        return play

    def all_arrive(connection: Connection) -> None:
        connection.ack(28, 8, [(10, 13)])
        connection.ack(30, 9, [(10, 13)])
        connection.ack(40, 13)
        connection.write(10, 10)
        connection.ack(50, 15)

    def lost_too(connection: Connection) -> None:
        connection.ack(50, 9)
        connection.ack(50, 10)
        connection.wait()
        connection.ack(50, 13)

    def some_arrive(connection: Connection) -> None:
        connection.ack(24, 8, [(13, 16)])
        connection.ack(30, 9, [(13, 16)])
        connection.ack(30, 10, [(13, 16)])
        connection.ack(30, 16)

    yield from each(
        "timeout-in-part",
        {
            "new-data-arrives": written([215], all_arrive),
            "new-data-lost": written([215], lost_too),
            "under-way-arrives": written([90], all_arrive),
            "under-way-lost": written([90], lost_too),
            "part-under-way-arrives": written([35, 55], some_arrive),
            "part-under-way-lost": written([35, 55], lost_too),
        },
    )
