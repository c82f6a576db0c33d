"""All probes, and those of ACKs that are odd or drawn at random."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING

from probes import growth, late, losses
from probes.connection import Options
from probes.probe import BOTH, Journey, Path, Probe, each

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from probes.connection import Connection


#: Seed of random draws.
SEED = 20_261


def odd_acks() -> Iterator[Probe]:
    """ACKs that are old, split segments, renege, or acknowledge much."""

    def old(connection: Connection) -> None:
        connection.write(60, 10)
        for n in (2, 4, 6):
            connection.ack(40 if n == 2 else 10, n)
        connection.ack(10, 4)
        connection.ack(10, 3)
        for n in (8, 10, 12):
            connection.ack(10, n)

    def old_with_sack(rtt: float) -> Callable[[Connection], None]:
        """Retransmissions are acknowledged after 40 ms: sooner than any round trip, or later."""

        def play(connection: Connection) -> None:
            connection.write(60, 10)
            connection.ack(rtt, 6)
            connection.ack(10, 4, [(8, 9)])
            connection.ack(10, 6, [(8, 10)])
            connection.ack(10, 5, [(8, 12)])
            for n in (12, 14, 16):
                connection.ack(40, n)

        return play

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
            "old-with-sack": old_with_sack(36),
            "old-with-sack-soon": old_with_sack(42),
            "reneges": reneges,
            "beyond-what-was-sent": beyond,
            "duplicates-without-blocks": duplicates,
            "stretch": stretch,
            "blocks-that-split-segments": split_blocks,
        },
    )


def drawn() -> Iterator[Probe]:
    """Losses and delays of segments, and losses of ACKs, drawn at random."""

    def play_drawn(
        seed: int, loss: float, late: float, ack_loss: float, every: int
    ) -> Callable[[Connection], None]:
        def play(connection: Connection) -> None:
            random_ = random.Random(f"{SEED}-{seed}")
            verdicts: dict[tuple[int, int], tuple[bool, float]] = {}

            def verdict(copy: tuple[int, int]) -> tuple[bool, float]:
                # Seeded by the copy, so that the order in which copies are sent changes nothing.
                if copy not in verdicts:
                    of_copy = random.Random(f"{SEED}-{seed}-{copy}")
                    is_late = of_copy.random() < late
                    verdicts[copy] = (
                        of_copy.random() < loss,
                        of_copy.randrange(2, 42, 5) if is_late else 0,
                    )
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
    for kind, (loss, lateness, ack_loss, every) in kinds.items():
        for n in range(4):
            cc = BOTH[n % 2]
            play = play_drawn(n, loss, lateness, ack_loss, every)
            yield Probe(f"drawn/{kind}-{n + 1}-{cc}", Options(cc=cc), play)


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
        *odd_acks(),
        *drawn(),
    ]
    names = [probe.name for probe in found]
    assert len(set(names)) == len(names), "two probes of one name"
    return found
