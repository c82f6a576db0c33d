"""Positions of a graph's nodes in figures."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

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
