"""Probes of windows, and of what makes them grow and fall."""

from __future__ import annotations

from typing import TYPE_CHECKING

from probes.probe import Journey, Path, each, over

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from probes.connection import Connection
    from probes.probe import Probe


def slow_start() -> Iterator[Probe]:
    """Yields probes of slow start, from the first window on."""
    yield from each(
        "slow-start",
        {
            "an-ack-each": over(Path(), 80),
            "an-ack-for-two": over(Path(every=2), 120),
            "an-ack-for-four": over(Path(every=4), 160),
        },
    )
    yield from each(
        "slow-start", {"longer-round-trip": over(Path(rtt=150, every=2), 120)}, opening=150
    )
    yield from each("slow-start", {"without-timestamps": over(Path(every=2), 100)}, stamps=False)

    def whole_windows(connection: Connection) -> None:
        connection.write(200, 10)
        for upto in (10, 30, 70):
            connection.ack(50, upto)

    def uneven(connection: Connection) -> None:
        connection.write(150, 10)
        for after, upto in (
            (50, 1),
            (5, 2),
            (5, 5),
            (5, 6),
            (5, 10),
            (40, 13),
            (5, 14),
            (5, 20),
            (5, 21),
            (5, 22),
        ):
            connection.ack(after, upto)

    def parts_of_segments(connection: Connection) -> None:
        connection.write(60, 10)
        for upto in (0.5, 1, 1.5, 2.2, 3, 3.1, 5, 7.5, 8, 10):
            connection.ack(20, upto)

    yield from each(
        "slow-start",
        {"whole-windows": whole_windows, "uneven": uneven, "parts-of-segments": parts_of_segments},
    )


def avoidance() -> Iterator[Probe]:
    """Growth behind a first reduction."""
    yield from each(
        "avoidance",
        {
            "an-ack-each": over(Path(lost={(12, 1)}), 150, 90),
            "an-ack-for-two": over(Path(lost={(12, 1)}, every=2), 200, 90),
            "an-ack-for-three": over(Path(lost={(8, 1)}, every=3), 200, 90),
            "two-reductions": over(Path(lost={(8, 1), (45, 1)}, every=2), 200, 90),
        },
    )

    yield from each(
        "avoidance",
        {"long-round-trip": over(Path(rtt=150, lost={(12, 1)}, every=2), 200, 90)},
        opening=150,
    )


def ecn() -> Iterator[Probe]:
    """Marks, with losses and without."""
    yield from each(
        "ecn",
        {
            "one-mark": over(Path(marked={5}), 80, 60),
            "two-marks": over(Path(marked={5, 7}), 80, 60),
            "two-windows": over(Path(marked={5, 30}), 100, 75),
            "delayed-acks": over(Path(marked={5}, every=2), 120, 60),
            "late-mark": over(Path(marked={28}, every=2), 150, 70),
            "then-a-loss": over(Path(marked={5}, lost={(9, 1)}), 80, 60),
            "then-a-loss-later": over(Path(marked={5}, lost={(20, 1)}), 80, 60),
            "in-recovery": over(Path(marked={9}, lost={(5, 1)}), 80, 60),
            "with-timeout": over(Path(marked={5}, lost={(8, 1), (9, 1)}), 10, 60),
            "every-segment": over(Path(marked=set(range(3, 40))), 60, 60),
        },
        ecn=True,
    )

    def one_echo(connection: Connection) -> None:
        connection.write(80, 10)
        for n in range(1, 15):
            connection.ack(40 if n == 1 else 10, n, ece=n == 4)

    def duplicate_echo(connection: Connection) -> None:
        connection.write(80, 10)
        connection.ack(40, 2)
        connection.ack(10, 2, ece=True)
        for n in (3, 4, 6, 8, 10, 12):
            connection.ack(10, n, ece=n < 8)

    def needless_timeout(*, ece: bool) -> Callable[[Connection], None]:
        """Only ACKs were lost; with `ece` those that show the needless timeout have ECE, too."""

        def play(connection: Connection) -> None:
            connection.write(300, 10)
            for n in range(2, 22, 2):
                connection.ack(40 if n == 2 else 10, n)
            connection.wait()
            connection.wait()
            blocks = [(20, 21), (31, 33), (34, 38)]
            connection.ack(60, 30, blocks, echo="19#1", ece=ece)
            for upto in (*range(39, 46), *range(46, 60, 2)):
                connection.ack(10, 30, [(31, 33), (34, upto)], echo="19#1", ece=ece)

        return play

    def hole_behind_an_echo(count: int) -> Callable[[Connection], None]:
        """A hole where the reduction for an echo has sent, or let nothing go, so far."""

        def play(connection: Connection) -> None:
            connection.write(60, 10)
            connection.ack(50, 2)
            for n in range(3, 4 + count):
                connection.ack(5, n, ece=True)
            hole = 3 + count
            for n in range(hole + 2, hole + 7):
                connection.ack(5, hole, [(hole + 1, n)], ece=True)
            for n in (14, 15, 16, 18):
                connection.ack(30, n)

        return play

    cases = {
        **{f"hole-{count}-behind-an-echo": hole_behind_an_echo(count) for count in (1, 2, 3, 4)},
        "one-echo": one_echo,
        "duplicate-with-echo": duplicate_echo,
        "needless-timeout": needless_timeout(ece=False),
        "needless-timeout-with-echo": needless_timeout(ece=True),
    }
    yield from each("ecn", cases, ecn=True)


def windows() -> Iterator[Probe]:
    """Receive windows that bound, close and open."""

    def closes(connection: Connection) -> None:
        connection.write(40, 10)
        connection.ack(40, 5, window=5 * 1000)
        connection.ack(20, 8, window=2000)
        connection.ack(20, 10, window=0)
        connection.wait()
        connection.ack(20, 10, window=0)
        connection.wait()
        connection.ack(20, 10, window=30 * 1000)
        connection.ack(40, 14, window=30 * 1000)
        connection.ack(20, 20)

    def small(connection: Connection) -> None:
        connection.write(60, 10)
        for n in (2, 4, 6, 8, 10, 12, 14, 16, 18, 20):
            connection.ack(20, n, window=12 * 1000)

    def updates(connection: Connection) -> None:
        connection.write(60, 10)
        connection.ack(40, 4, window=8 * 1000)
        for window in (9, 10, 12, 20):
            connection.ack(20, 4, window=window * 1000)
        for n in (6, 8, 10, 12):
            connection.ack(20, n)

    def part_of_a_segment(connection: Connection) -> None:
        connection.write(60, 10)
        for n, window in ((2, 12_504), (4, 12_504), (6, 12_504), (8, 13_000), (10, 13_000)):
            connection.ack(20, n, window=window)

    def shrinks(connection: Connection) -> None:
        connection.write(60, 10)
        connection.ack(40, 2, window=20 * 1000)
        connection.ack(20, 4, window=4 * 1000)
        connection.ack(20, 6, window=4 * 1000)
        connection.ack(20, 10, window=4 * 1000)
        connection.ack(20, 13, window=60 * 1000)
        connection.ack(20, 14, window=60 * 1000)

    def closed_long(connection: Connection) -> None:
        connection.write(20, 10)
        connection.ack(40, 10, window=0)
        connection.wait()
        connection.wait()
        connection.wait()
        connection.ack(20, 10)
        for n in (12, 14, 16):
            connection.ack(20, n)

    def in_recovery(connection: Connection) -> None:
        connection.write(60, 10)
        connection.ack(40, 2, window=12 * 1000)
        for n in range(4, 10):
            connection.ack(10, 2, [(3, n)], window=12 * 1000)
        connection.ack(40, 9, window=12 * 1000)
        for n in (11, 13, 15):
            connection.ack(20, n, window=12 * 1000)

    yield from each(
        "window",
        {
            "closes": closes,
            "small": small,
            "updates": updates,
            "part-of-a-segment": part_of_a_segment,
            "shrinks": shrinks,
            "closed-long": closed_long,
            "small-in-recovery": in_recovery,
        },
    )


def shrunk_windows() -> Iterator[Probe]:
    """Receive windows that hold no longer what is outstanding."""

    def shrinks_on_a_tail(
        upto: int, window: int, written: int = 10, waits: int = 1
    ) -> Callable[[Connection], None]:
        """The last of what is outstanding no longer fits when it is waited for."""

        def play(connection: Connection) -> None:
            connection.write(written, 10)
            connection.ack(50, upto - 2)
            connection.ack(5, upto, window=window)
            for _ in range(waits):
                connection.wait()
            connection.ack(30, upto + 1, window=window)
            connection.ack(30, upto + 1, window=20 * 1000)
            connection.ack(30, 10, window=20 * 1000)

        return play

    def shuts_in_recovery(connection: Connection) -> None:
        connection.write(40, 10)
        connection.ack(50, 2)
        connection.ack(5, 2, [(3, 4)])
        connection.ack(5, 2, [(5, 6), (3, 4)])
        connection.ack(5, 2, [(7, 8), (5, 6), (3, 4)], window=0)
        connection.ack(5, 2, [(9, 10), (7, 8), (5, 6)], window=0)
        connection.ack(30, 4, [(9, 10), (7, 8), (5, 6)], window=0)
        connection.wait()
        connection.ack(30, 6, [(9, 10), (7, 8)], window=20 * 1000)
        connection.ack(30, 8, [(9, 10)], window=20 * 1000)
        connection.ack(30, 10, window=20 * 1000)

    yield from each(
        "window",
        {
            "shut-on-a-tail": shrinks_on_a_tail(4, 0),
            "shut-on-a-tail-and-more": shrinks_on_a_tail(4, 0, 20),
            "shut-on-the-last-two": shrinks_on_a_tail(8, 0),
            "holds-half-a-tail": shrinks_on_a_tail(4, 3000, waits=2),
            "holds-none-of-the-new": shrinks_on_a_tail(4, 6000, 20, waits=2),
            "shut-in-recovery": shuts_in_recovery,
        },
    )


def limited() -> Iterator[Probe]:
    """Applications that write little at a time."""

    def writes(sizes: list[int], apart: float, every: int = 1) -> Callable[[Connection], None]:
        def play(connection: Connection) -> None:
            journey = Journey(connection, Path(every=every), 60)
            for n, size in enumerate(sizes):
                journey.at(10 + n * apart, size)
            journey.run()

        return play

    yield from each(
        "app-limited",
        {
            "four-a-round": writes([4] * 8, 100),
            "eight-a-round": writes([8] * 6, 120),
            "ten-a-round": writes([10] * 5, 130),
            "growing": writes([2, 4, 8, 16, 20], 150),
            "then-bulk": writes([3, 3, 3, 60], 100),
            "bulk-then-little": writes([30, 2, 2, 2, 2], 170),
            "delayed-acks": writes([8] * 6, 120, every=2),
        },
    )


def idle() -> Iterator[Probe]:
    """Pauses of the application."""

    def pauses(
        pause: float, lost: set[tuple[int, int]], first: int = 20
    ) -> Callable[[Connection], None]:
        def play(connection: Connection) -> None:
            connection.write(first, 10)
            Journey(connection, Path(every=2, lost=lost), 60).run(patience=1000)
            connection.pause(pause)
            connection.write(40)
            for n in (2, 4, 6, 8, 10, 12, 14):
                connection.ack(60 if n == 2 else 10, first + n)

        return play

    for pause in (100, 300, 600, 1300):
        yield from each("idle", {f"{pause}-ms": pauses(pause, set())})
    yield from each(
        "idle",
        {f"{pause}-ms-after-a-loss": pauses(pause, {(12, 1)}, 40) for pause in (150, 700, 1500)},
    )
