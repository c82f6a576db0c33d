"""What a topology is before it is a scenario: nodes with places, links with rates and delays."""

from __future__ import annotations

from collections import Counter, deque
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable


@dataclass(frozen=True)
class Node:
    """A node; its name is that of the scenario."""

    name: str
    #: To the right, or degrees of longitude; none if nobody said where it is.
    x: float | None = None
    #: Up, or degrees of latitude.
    y: float | None = None
    #: What of its weight in a gravity model the file says; of no unit.
    weight: float | None = None


@dataclass(frozen=True)
class Link:
    """A link, there and back with the same settings unless it is one-way."""

    source: str
    target: str
    rate_bit_s: float
    delay_s: float
    one_way: bool = False
    #: The queue, as TOML.
    queue: str = '"fifo"'


@dataclass(frozen=True)
class Graph:
    """Nodes and links, and what is to be said of how they came about."""

    name: str
    nodes: list[Node]
    links: list[Link]
    #: What is probably not meant, for people: each a sentence.
    warnings: list[str] = field(default_factory=list)
    #: What else to write at the top of the scenario: each a sentence.
    remarks: list[str] = field(default_factory=list)

    def link_names(self) -> list[str]:
        """A name for each link: `SOURCE-TARGET`, counted where there are several."""
        return unique(f"{link.source}-{link.target}" for link in self.links)

    def capacities(self) -> dict[str, float]:
        """For each node the sum of the rates of the links that leave it, in bit/s."""
        total = {node.name: 0.0 for node in self.nodes}
        for link in self.links:
            total[link.source] += link.rate_bit_s
            if not link.one_way:
                total[link.target] += link.rate_bit_s
        return total

    def directed(self) -> list[tuple[str, str, Link]]:
        """The links by direction, in the order in which a scenario has them."""
        both = []
        for link in self.links:
            both.append((link.source, link.target, link))
            if not link.one_way:
                both.append((link.target, link.source, link))
        return both


def unique(names: Iterable[str]) -> list[str]:
    """These names, the second of a kind with ` (2)` behind it, and so on."""
    found = list(names)
    taken, counts, made = set(found), Counter[str](), []
    for name in found:
        counts[name] += 1
        own = name
        while counts[name] > 1:
            own = f"{name} ({counts[name]})"
            if own not in taken:
                taken.add(own)
                break
            counts[name] += 1
        made.append(own)
    return made


def parts(nodes: Iterable[str], links: Iterable[tuple[str, str]]) -> list[list[str]]:
    """The connected parts, the largest first, whatever the direction of the links."""
    around: dict[str, list[str]] = {node: [] for node in nodes}
    for source, target in links:
        around[source].append(target)
        around[target].append(source)
    seen: set[str] = set()
    found = []
    for first in around:
        if first in seen:
            continue
        seen.add(first)
        part, open_nodes = [first], deque([first])
        while open_nodes:
            for node in around[open_nodes.popleft()]:
                if node not in seen:
                    seen.add(node)
                    part.append(node)
                    open_nodes.append(node)
        found.append(part)
    return sorted(found, key=len, reverse=True)
