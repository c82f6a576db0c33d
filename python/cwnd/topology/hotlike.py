"""Graphs like that of Fig. 10 of TCP*: heuristically optimal topologies, few hubs and many edges.

Li, Alderson, Willinger & Doyle (SIGCOMM 2004) build router graphs as providers do. Routers trade
ports for bandwidth. The core is therefore a sparse mesh of few links each, and high degrees occur
where customers are aggregated. Orbis (Mahadevan et al., SIGCOMM 2007) scales such a graph so that
degrees keep their correlations. The graph of Fig. 10 itself is not published; this module generates
graphs of the same kind, by the rules below.
"""

from __future__ import annotations

import math
import random
from dataclasses import dataclass
from typing import TYPE_CHECKING

from cwnd.errors import InputError
from cwnd.topology.graph import Graph, Link, Node
from cwnd.topology.writing import red

if TYPE_CHECKING:
    from collections.abc import Callable

#: Minimum number of core routers: in a smaller ring, opposite nodes are neighbours.
_MIN_CORE = 4
#: Minimum number of nodes: the ring, a gateway for each of its nodes, and two edge nodes.
MIN_NODES = 10
#: Maximum number of nodes; routing tables of more destinations would be impractical.
MAX_NODES = 20_000
#: Links beyond those of a tree, per node: one of the ring, one of each gateway with two links.
_REDUNDANT = 0.055


@dataclass(frozen=True)
class Hot:
    """Parameters of the graph, with the values of Fig. 10 and section 5.3 of TCP*."""

    nodes: int = 67
    seed: int = 1
    #: Fraction of the edge nodes that are servers.
    servers: float = 0.1
    core_bit_s: float = 10e9
    server_bit_s: float = 100e6
    slowest_client_bit_s: float = 1e6
    fastest_client_bit_s: float = 10e6
    delay_s: float = 0.010
    #: Target delay of RED.
    target_s: float = 0.005


def hot(asked: Hot) -> tuple[Graph, list[str], list[str]]:
    """Generates a HOT-like graph; returns it, the names of its servers, and those of its clients.

    - The core is a ring of about √n/2 routers, at least four.
    - About n^¾/3 gateways, at least four, are attached to it, evenly. A few of them have a second
      link to the router two hops further in the ring. Cycles are thus rare as in HOT, and none is a
      triangle.
    - All other nodes are edge nodes with one link. After one for each, gateway r gets them with a
      weight of 1/√r: degrees are heavy-tailed at the edge and low in the core.
    - A random part of the edge nodes are servers; the others are clients, whose links have rates
      drawn uniformly and rounded to kbit/s.

    All random numbers are from Python's `random.Random(seed).random()`, which is the same in all
    versions.

    Raises:
        InputError: A number is out of range.
    """
    _check(asked)
    draw = random.Random(asked.seed).random  # noqa: S311 - a graph, no secret
    n = asked.nodes
    core = max(_MIN_CORE, round(math.sqrt(n) / 2))
    gateways = max(_MIN_CORE, round(n**0.75 / 3))
    edges = n - core - gateways
    if edges < 2:  # noqa: PLR2004 - a server and a client
        core, gateways, edges = _MIN_CORE, n - _MIN_CORE - 2, 2
    # Core router of each gateway: gateways are distributed evenly around the ring.
    home = [gateway * core // gateways for gateway in range(gateways)]
    second = min(gateways, max(0, round(_REDUNDANT * n) - 1))
    twice = set(_drawn(draw, gateways, second))
    # Weights are assigned to gateways in random order, which spreads the largest ones over the
    # ring.
    ranks = _drawn(draw, gateways, gateways)
    weights = [0.0] * gateways
    for rank, gateway in enumerate(ranks):
        weights[gateway] = 1 / math.sqrt(rank + 1)
    at = _spread(draw, edges, weights)
    servers = set(_drawn(draw, edges, max(1, min(edges - 1, round(asked.servers * edges)))))

    nodes = _placed(core, gateways, home, at)
    trunk = red(asked.core_bit_s, asked.delay_s, asked.target_s)

    def between(source: str, target: str) -> Link:
        return Link(source, target, asked.core_bit_s, asked.delay_s, queue=trunk)

    links = [between(f"core{i + 1}", f"core{(i + 1) % core + 1}") for i in range(core)]
    for gateway, router in enumerate(home):
        links.append(between(f"core{router + 1}", f"gw{gateway + 1}"))
        if gateway in twice:
            links.append(between(f"core{(router + 2) % core + 1}", f"gw{gateway + 1}"))
    names: dict[bool, list[str]] = {True: [], False: []}
    span = asked.fastest_client_bit_s - asked.slowest_client_bit_s
    for edge, gateway in enumerate(at):
        serves = edge in servers
        name = f"{'server' if serves else 'client'}{len(names[serves]) + 1}"
        names[serves].append(name)
        rate = asked.server_bit_s
        if not serves:
            rate = round(asked.slowest_client_bit_s + draw() * span, -3)
        queue = red(rate, asked.delay_s, asked.target_s)
        links.append(Link(f"gw{gateway + 1}", name, rate, asked.delay_s, queue=queue))
        place = nodes[core + gateways + edge]
        nodes[core + gateways + edge] = Node(name, place.x, place.y)
    about = (
        f"{n} nodes: a ring of {core} core routers, {gateways} gateways of which {second} have two"
        f" links, {len(names[True])} servers, {len(names[False])} clients."
    )
    return Graph(f"hot-{n}", nodes, links, remarks=[about]), names[True], names[False]


def _check(asked: Hot) -> None:
    if not MIN_NODES <= asked.nodes <= MAX_NODES:
        raise InputError(f"--nodes {asked.nodes}: from {MIN_NODES} to {MAX_NODES} can be made")
    if asked.seed < 0:
        raise InputError(f"--seed {asked.seed}: a seed is a whole number from 0")
    if not 0 < asked.servers < 1:
        raise InputError(f"--servers {asked.servers:g}: a part of the edge nodes, between 0 and 1")
    if asked.slowest_client_bit_s > asked.fastest_client_bit_s:
        raise InputError("the slowest client is faster than the fastest: swap the two rates")
    if asked.target_s <= 0:
        raise InputError("a target delay of no time has no thresholds; give one, as in '5 ms'")


def _drawn(draw: Callable[[], float], of: int, count: int) -> list[int]:
    """Draws `count` distinct numbers below `of`, in random order."""
    left = list(range(of))
    return [left.pop(int(draw() * len(left))) for _ in range(count)]


def _spread(draw: Callable[[], float], count: int, weights: list[float]) -> list[int]:
    """Draws the gateways of `count` edge nodes, in the order of the gateways.

    Each gateway gets one first, as far as they suffice: a gateway without edge nodes is useless.
    """
    total = [0] * len(weights)
    for gateway in range(min(count, len(weights))):
        total[gateway] += 1
    for _ in range(count - sum(total)):
        point = draw() * sum(weights)
        gateway = 0
        while gateway < len(weights) - 1 and point >= weights[gateway]:
            point -= weights[gateway]
            gateway += 1
        total[gateway] += 1
    return [gateway for gateway, many in enumerate(total) for _ in range(many)]


def _placed(core: int, gateways: int, home: list[int], at: list[int]) -> list[Node]:
    """Places nodes on concentric rings: core, gateways, and edge nodes near their gateways."""
    room = [1.0 + at.count(gateway) for gateway in range(gateways)]
    angles, turned = [], 0.0
    for gateway in range(gateways):
        angles.append(2 * math.pi * (turned + room[gateway] / 2) / sum(room))
        turned += room[gateway]

    def around(angle: float, radius: float) -> tuple[float, float]:
        return round(radius * math.cos(angle), 4), round(radius * math.sin(angle), 4)

    nodes = []
    for router in range(core):
        own = [angles[gateway] for gateway in range(gateways) if home[gateway] == router]
        nodes.append(Node(f"core{router + 1}", *around(sum(own) / len(own), 1.0)))
    nodes += [
        Node(f"gw{gateway + 1}", *around(angles[gateway], 2.0)) for gateway in range(gateways)
    ]
    done = [0] * gateways
    for edge, gateway in enumerate(at):
        many, wide = at.count(gateway), 2 * math.pi * (room[gateway] - 1) / sum(room)
        angle = angles[gateway] + wide * ((done[gateway] + 0.5) / many - 0.5)
        # Alternate radii keep the dots from touching.
        nodes.append(Node(f"edge{edge + 1}", *around(angle, 3.0 + 0.35 * (done[gateway] % 2))))
        done[gateway] += 1
    return nodes
