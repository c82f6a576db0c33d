"""Dividing the cells of a sweep between jobs that know nothing of each other."""

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
        """Reads `2/8`."""
        found = re.fullmatch(r"(\d{1,9})/(\d{1,9})", text)
        if found is None or not 1 <= int(found[1]) <= int(found[2]):
            raise InputError(f"--shard takes I/N with I from 1 to N, as in 2/8; not {text!r}")
        return cls(int(found[1]), int(found[2]))

    def mine(self, cells: Iterable[str]) -> set[str]:
        """Its cells; those of all shards together are all, each once.

        Cells are dealt out by their names, which are hashes: neighbours in the sweep, which take as
        long as each other, go to different shards.
        """
        return set(sorted(cells)[self.number - 1 :: self.count])

    def __str__(self) -> str:
        return f"{self.number}/{self.count}"
