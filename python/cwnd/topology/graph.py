"""Graphs before they become scenarios: nodes with positions, links with rates and delays."""

from __future__ import annotations

from collections import Counter, deque
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable


@dataclass(frozen=True)
class Node:
    """A node, under its name in the scenario."""

    name: str
    #: Position to the right, or longitude in degrees; `None` if unknown.
    x: float | None = None
    #: Position upwards, or latitude in degrees.
    y: float | None = None
    #: Weight in a gravity model, dimensionless; `None` if the file has none.
    weight: float | None = None


@dataclass(frozen=True)
class Link:
    """A link; unless it is one-way, both directions have the same settings."""

    source: str
    target: str
    rate_bit_s: float
    delay_s: float
    one_way: bool = False
    #: Queue of the scenario, as TOML.
    queue: str = '"fifo"'


@dataclass(frozen=True)
class Graph:
    """Nodes and links, with remarks on their origin."""

    name: str
    nodes: list[Node]
    links: list[Link]
    #: Warnings for the user, each a sentence.
    warnings: list[str] = field(default_factory=list)
    #: Further comments at the top of the scenario, each a sentence.
    remarks: list[str] = field(default_factory=list)

    def link_names(self) -> list[str]:
        """Names of the links: `SOURCE-TARGET`, numbered if several have the same ends."""
        return unique(f"{link.source}-{link.target}" for link in self.links)

    def capacities(self) -> dict[str, float]:
        """Sum of the rates of the links that leave each node, in bit/s."""
        total = {node.name: 0.0 for node in self.nodes}
        for link in self.links:
            total[link.source] += link.rate_bit_s
            if not link.one_way:
                total[link.target] += link.rate_bit_s
        return total

    def directed(self) -> list[tuple[str, str, Link]]:
        """Links by direction, in the order of a scenario."""
        both = []
        for link in self.links:
            both.append((link.source, link.target, link))
            if not link.one_way:
                both.append((link.target, link.source, link))
        return both


def unique(names: Iterable[str]) -> list[str]:
    """Makes names unique: the second of equal names gets the suffix ` (2)`, and so on."""
    found = list(names)
    taken, counts, made = set(found), Counter[str](), []
    for name in found:
        counts[name] += 1
        numbered = name
        while counts[name] > 1:
            numbered = f"{name} ({counts[name]})"
            if numbered not in taken:
                taken.add(numbered)
                break
            counts[name] += 1
        made.append(numbered)
    return made


def components(nodes: Iterable[str], links: Iterable[tuple[str, str]]) -> list[list[str]]:
    """Connected components, the largest first, ignoring the direction of links."""
    neighbours: dict[str, list[str]] = {node: [] for node in nodes}
    for source, target in links:
        neighbours[source].append(target)
        neighbours[target].append(source)
    visited: set[str] = set()
    found = []
    for first in neighbours:
        if first in visited:
            continue
        visited.add(first)
        part, open_nodes = [first], deque([first])
        while open_nodes:
            for node in neighbours[open_nodes.popleft()]:
                if node not in visited:
                    visited.add(node)
                    part.append(node)
                    open_nodes.append(node)
        found.append(part)
    return sorted(found, key=len, reverse=True)
