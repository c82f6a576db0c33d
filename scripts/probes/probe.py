"""Probes, and the building blocks of most of them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from probes.connection import Connection, Options
from probes.path import Journey, Path

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping


@dataclass(frozen=True)
class Probe:
    """A name, what the ends agree on, and what happens."""

    name: str
    options: Options
    play: Callable[[Connection], None]


#: A probe is played with each controller that the endpoint has, too.
BOTH = ("reno", "cubic")


def over(path: Path, written: int = 60, events: int = 45) -> Callable[[Connection], None]:
    """A bulk write over a path."""

    def play(connection: Connection) -> None:
        connection.write(written, 10)
        Journey(connection, path, events).run()

    return play


def each(
    family: str, cases: Mapping[str, Callable[[Connection], None]], **options: Any
) -> Iterator[Probe]:
    """Yields each case with each controller."""
    for case, play in cases.items():
        for cc in BOTH:
            yield Probe(f"{family}/{case}-{cc}", Options(cc=cc, **options), play)
