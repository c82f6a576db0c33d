"""The probes: by family, what a connection's peer and application do."""

from __future__ import annotations

import random
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from probes.connection import Connection, Options
from probes.path import Journey, Path

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

#: Of the probes that draw.
SEED = 20_261


@dataclass(frozen=True)
class Probe:
    """A name, what the ends agree on, and what happens."""

    name: str
    options: Options
    play: Callable[[Connection], None]


BOTH = ("reno", "cubic")


def all_probes() -> list[Probe]:
    """In the order of the file."""
    found = [
        *slow_start(),
        *avoidance(),
        *holes(),
        *tails(),
        *lost_again(),
        *no_sack(),
        *timeouts(),
        *in_recovery(),
        *reordering(),
        *undo(),
        *frto(),
        *ecn(),
        *windows(),
        *limited(),
        *idle(),
        *odd_acks(),
        *drawn(),
    ]
    names = [probe.name for probe in found]
    assert len(set(names)) == len(names), "two probes of one name"
    return found


def over(path: Path, written: int = 60, events: int = 45) -> Callable[[Connection], None]:
    """A bulk write over a path."""

    def play(connection: Connection) -> None:
        connection.write(written, 10)
        Journey(connection, path, events).run()

    return play


def each(family: str, cases: dict[str, Callable[[Connection], None]], **options: Any) -> Iterator[Probe]:
    """A case with each controller."""
    for case, play in cases.items():
        for cc in BOTH:
            yield Probe(f"{family}/{case}-{cc}", Options(cc=cc, **options), play)


def slow_start() -> Iterator[Probe]:
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
        for after, upto in ((50, 1), (5, 2), (5, 5), (5, 6), (5, 10), (40, 13), (5, 14), (5, 20), (5, 21), (5, 22)):
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


def holes() -> Iterator[Probe]:
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
    yield from each("holes", {"without-timestamps": over(Path(lost={(5, 1), (7, 1)}))}, stamps=False)


def tails() -> Iterator[Probe]:
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
        },
    )


def lost_again() -> Iterator[Probe]:
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
    yield from each("no-sack", {"nor-timestamps": over(Path(lost={(5, 1)}))}, sack=False, stamps=False)


def everything_from(first: int, times: int = 1) -> set[tuple[int, int]]:
    """All copies up to `times` of all segments from there on for a window."""
    return {(n, copy) for n in range(first, 60) for copy in range(1, times + 1)}


def timeouts() -> Iterator[Probe]:
    def silence(upto: int, written: int, then: list[float]) -> Callable[[Connection], None]:
        """The peer is silent until after a timeout; then its ACKs come 30 ms apart."""

        def play(connection: Connection) -> None:
            connection.write(written, 10)
            for n in range(1, upto + 1):
                connection.ack(40 if n == 1 else 10, n)
            # The probe of the tail goes first, then the timer.
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


def in_recovery() -> Iterator[Probe]:
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


def reordering() -> Iterator[Probe]:
    yield from each(
        "reordering",
        {
            f"by-{n}": over(Path(late={(6, 1): 5.0 * n + 2}), 60, 50) for n in (1, 2, 3, 4, 6, 9)
        },
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
    def recovery(last: Callable[[Connection], None], blocks: int = 8) -> Callable[[Connection], None]:
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


def frto() -> Iterator[Probe]:
    def late(acks: list[tuple[float, str | None]], sacks: bool = False) -> Callable[[Connection], None]:
        """All ACKs are late, until after the timeout; each with the echo of its original."""

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
    yield from each("f-rto", {"without-sack": late(unknown)}, sack=False)

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


def ecn() -> Iterator[Probe]:
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

    yield from each("ecn", {"one-echo": one_echo, "duplicate-with-echo": duplicate_echo}, ecn=True)


def windows() -> Iterator[Probe]:
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


def limited() -> Iterator[Probe]:
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
    def pauses(pause: float, lost: set[tuple[int, int]], first: int = 20) -> Callable[[Connection], None]:
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


def odd_acks() -> Iterator[Probe]:
    def old(connection: Connection) -> None:
        connection.write(60, 10)
        for n in (2, 4, 6):
            connection.ack(40 if n == 2 else 10, n)
        connection.ack(10, 4)
        connection.ack(10, 3)
        for n in (8, 10, 12):
            connection.ack(10, n)

    def old_with_sack(connection: Connection) -> None:
        connection.write(60, 10)
        connection.ack(40, 6)
        connection.ack(10, 4, [(8, 9)])
        connection.ack(10, 6, [(8, 10)])
        connection.ack(10, 5, [(8, 12)])
        for n in (12, 14, 16):
            connection.ack(40, n)

    def reneges(connection: Connection) -> None:
        connection.write(60, 10)
        connection.ack(40, 2)
        for n in range(4, 8):
            connection.ack(10, 2, [(3, n)])
        connection.ack(60, 3)
        connection.wait()
        for n in (4, 5, 6, 8, 10):
            connection.ack(40, n)

    def beyond(connection: Connection) -> None:
        connection.write(20, 10)
        connection.ack(40, 2)
        connection.ack(10, 15)
        connection.ack(10, 2, [(16, 18)])
        for n in (4, 6, 8, 10):
            connection.ack(10, n)

    def duplicates(connection: Connection) -> None:
        connection.write(60, 10)
        connection.ack(40, 4)
        for _ in range(5):
            connection.ack(10, 4)
        for n in (6, 8, 10, 12):
            connection.ack(20, n)

    def stretch(connection: Connection) -> None:
        connection.write(150, 10)
        for n in (10, 20, 38, 60):
            connection.ack(60, n)

    def split_blocks(connection: Connection) -> None:
        connection.write(60, 10)
        connection.ack(40, 1)
        connection.ack(10, 1, [(2.5, 4)])
        connection.ack(10, 1, [(2.5, 5.5)])
        connection.ack(10, 1, [(2, 6)])
        connection.ack(10, 1, [(2, 8)])
        for n in (8, 10, 12):
            connection.ack(40, n)

    yield from each(
        "odd-acks",
        {
            "old": old,
            "old-with-sack": old_with_sack,
            "reneges": reneges,
            "beyond-what-was-sent": beyond,
            "duplicates-without-blocks": duplicates,
            "stretch": stretch,
            "blocks-that-split-segments": split_blocks,
        },
    )


def drawn() -> Iterator[Probe]:
    """Losses, delays, marks and ACKs drawn at random."""

    def play_drawn(seed: int, loss: float, late: float, ack_loss: float, every: int) -> Callable[[Connection], None]:
        def play(connection: Connection) -> None:
            random_ = random.Random(f"{SEED}-{seed}")
            verdicts: dict[tuple[int, int], tuple[bool, float]] = {}

            def verdict(copy: tuple[int, int]) -> tuple[bool, float]:
                # By its name, so that the order in which copies go is all the same.
                if copy not in verdicts:
                    of_copy = random.Random(f"{SEED}-{seed}-{copy}")
                    is_late = of_copy.random() < late
                    verdicts[copy] = (of_copy.random() < loss, of_copy.randrange(2, 42, 5) if is_late else 0)
                return verdicts[copy]

            path = Path(
                rtt=random_.choice([40, 60, 100]),
                gap=random_.choice([4, 6]),
                every=every,
                lost_acks={n for n in range(1, 200) if random_.random() < ack_loss},
                loses=lambda copy: verdict(copy)[0],
                delays=lambda copy: verdict(copy)[1],
            )
            connection.write(random_.choice([40, 70]), 10)
            Journey(connection, path, 70).run()

        return play

    kinds = {
        "losses": (0.06, 0, 0, 1),
        "many-losses": (0.15, 0, 0, 1),
        "losses-delayed-acks": (0.06, 0, 0, 2),
        "losses-lost-acks": (0.06, 0, 0.15, 1),
        "late": (0, 0.08, 0, 1),
        "late-and-lost": (0.04, 0.06, 0, 2),
    }
    for kind, (loss, late, ack_loss, every) in kinds.items():
        for n in range(4):
            cc = BOTH[n % 2]
            play = play_drawn(n, loss, late, ack_loss, every)
            yield Probe(f"drawn/{kind}-{n + 1}-{cc}", Options(cc=cc), play)
