"""Division of a sweep's cells among independent jobs."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from cwnd.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Iterable


@dataclass(frozen=True)
class Shard:
    """Part `number` of `count`, counted from 1."""

    number: int
    count: int

    @classmethod
    def parse(cls, text: str) -> Shard:
        """Parses a shard such as `2/8`.

        Raises:
            InputError: It is malformed, or the number exceeds the count.
        """
        found = re.fullmatch(r"(\d{1,9})/(\d{1,9})", text)
        if found is None or not 1 <= int(found[1]) <= int(found[2]):
            raise InputError(f"--shard takes I/N with I from 1 to N, as in 2/8; not {text!r}")
        return cls(int(found[1]), int(found[2]))

    def mine(self, cells: Iterable[str]) -> set[str]:
        """Selects the cells of this shard; the shards together have each cell once.

        Cells are dealt out in the order of their identifiers, which are hashes. Neighbours in the
        sweep, with similar run times, thus go to different shards.
        """
        return set(sorted(cells)[self.number - 1 :: self.count])

    def __str__(self) -> str:
        return f"{self.number}/{self.count}"
