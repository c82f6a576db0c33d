"""Graphs before they become scenarios: nodes, links, and positions of nodes in figures."""

from __future__ import annotations

from collections import Counter, deque
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence


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
    #: Queue of the link, as the TOML value of its key `queue`.
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


#: Number of nodes below which networkx's `spring_layout` is used, whose time is quadratic.
_SPRINGS = 500
_SEED = 1


def node_positions(
    nodes: Sequence[str],
    links: Sequence[tuple[str, str]],
    given: dict[str, tuple[float, float]],
) -> dict[str, tuple[float, float]]:
    """Positions of nodes, from 0 to 1 in the longer direction; deterministic for a graph.

    Args:
        nodes: Names, at least one.
        links: Pairs of names.
        given: Positions in any unit. Nodes without one are placed near the mean of their
            neighbours, or in the middle if they have none; if no node has one, networkx computes
            the layout.
    """
    if not given:
        return _fitted(_found(nodes, links))
    neighbours: dict[str, list[str]] = {node: [] for node in nodes}
    for source, target in links:
        neighbours[source].append(target)
        neighbours[target].append(source)
    known = {node: given[node] for node in nodes if node in given}
    while len(known) < len(neighbours):
        new: dict[str, tuple[float, float]] = {}
        for node in nodes:
            placed = [known[other] for other in neighbours[node] if other in known]
            if node not in known and placed:
                # A small offset separates two leaves of one node.
                offset = 0.02 * (len(new) % 5 + 1)
                x, y = (sum(part) / len(placed) for part in zip(*placed, strict=True))
                new[node] = (x + offset, y - offset)
        if not new:
            middle = tuple(sum(part) / len(known) for part in zip(*known.values(), strict=True))
            new = {node: (middle[0], middle[1]) for node in nodes if node not in known}
        known |= new
    return _fitted(known)


def _found(
    nodes: Sequence[str], links: Sequence[tuple[str, str]]
) -> dict[str, tuple[float, float]]:
    import networkx as nx

    graph = nx.Graph()
    graph.add_nodes_from(nodes)
    graph.add_edges_from(links)
    if len(nodes) < _SPRINGS:
        # Starting from a circle, the force-directed layout is the same on all machines.
        start = nx.circular_layout(graph)
        laid = nx.spring_layout(graph, pos=start, iterations=200, seed=_SEED)
    else:
        laid = nx.forceatlas2_layout(graph, max_iter=50, seed=_SEED)
    return {node: (float(x), float(y)) for node, (x, y) in laid.items()}


def _fitted(found: dict[str, tuple[float, float]]) -> dict[str, tuple[float, float]]:
    xs, ys = zip(*found.values(), strict=True)
    size = max(max(xs) - min(xs), max(ys) - min(ys)) or 1.0
    return {node: ((x - min(xs)) / size, (y - min(ys)) / size) for node, (x, y) in found.items()}
