"""Traffic matrices: read from a table, or computed by a gravity model."""

from __future__ import annotations

import csv
import difflib
import io
import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from cwnd import _core
from cwnd.errors import InputError, explain

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from cwnd.topology.graph import Graph

#: Maximum number of pairs of a group of flows.
MAX_PAIRS = 1_000_000
#: Minimum share of a pair; a smaller one is refused.
_MIN_SHARE = 1e-12
#: Maximum number of pairs that a scenario file can hold.
_MAX_WRITTEN = 150_000


@dataclass(frozen=True)
class Matrix:
    """Shares of the traffic by sender and receiver."""

    #: Sender, receiver and share; shares are above zero and dimensionless.
    pairs: list[tuple[str, str, float]]
    #: Rate that all pairs together offer, in bit/s; `None` if only shares are known.
    total_bit_s: float | None = None
    warnings: list[str] = field(default_factory=list)


def read_matrix(file: Path, graph: Graph) -> Matrix:
    """Reads a table with the columns `from`, `to`, and `rate` or `share`.

    Args:
        file: CSV whose first line has the names. Rates have units, as in `5 Mbit/s`; shares none.
        graph: Graph whose nodes the table refers to.

    Raises:
        InputError: Something is wrong; the message names the file, and the line if there is one.
    """
    try:
        text = _core.read_text(file)
    except (OSError, ValueError) as error:
        why = explain(error) if isinstance(error, OSError) else f"{file}: {error}"
        raise InputError(f"{why}; give a table of from,to,rate") from error
    rows = csv.reader(io.StringIO(text.removeprefix("\ufeff"), newline=""), strict=True)
    try:
        return _read(rows, file, {node.name for node in graph.nodes})
    except csv.Error as error:
        raise InputError(f"{file}:{rows.line_num}: no CSV: {error}") from error


def _read(rows: csv._reader, file: Path, known: set[str]) -> Matrix:  # type: ignore[name-defined]
    header: list[str] = next(rows, [])
    columns, measure = _columns(header, file)
    pairs: dict[tuple[str, str], tuple[float, int]] = {}
    idle = inside = 0
    for row in rows:
        line = rows.line_num
        if not any(cell.strip() for cell in row):
            continue
        if len(row) != len(header):
            named = len(header)
            raise InputError(f"{file}:{line}: {len(row)} values, and the first line names {named}")
        cells = {name: row[at].strip() for name, at in columns.items()}
        # The cell's text is not shown: the wrong file may have been given, and it may be secret.
        where = {name: f"{file}:{line}: column {at + 1} (`{name}`)" for name, at in columns.items()}
        for end in ("from", "to"):
            _known(cells[end], known, where[end])
        amount = _amount(cells[measure], measure, where[measure])
        pair = (cells["from"], cells["to"])
        if amount == 0:
            idle += 1
        elif pair[0] == pair[1]:
            inside += 1
        elif pair in pairs:
            raise InputError(
                f"{file}:{line}: the pair stands in line {pairs[pair][1]} already; write it once,"
                " with the sum"
            )
        else:
            pairs[pair] = (amount, line)
    if not pairs:
        raise InputError(f"{file}: no traffic: write lines such as `a,b,5 Mbit/s` below the names")
    warnings = [f"{idle} pairs without traffic are left out"] if idle else []
    warnings += [f"{inside} nodes' traffic to themselves crosses no link"] if inside else []
    _check_count(len(pairs))
    amounts = [amount for amount, _ in pairs.values()]
    # Amounts are relative to the largest, so that no sum overflows.
    largest = max(amounts)
    parts = [amount / largest for amount in amounts]
    total = math.fsum(parts)
    shares = [(*pair, part / total) for pair, part in zip(pairs, parts, strict=True)]
    if min(parts) / total < _MIN_SHARE:
        raise InputError(f"{file}: a share is less than {_MIN_SHARE:g} of all: leave it out")
    return Matrix(shares, total * largest if measure == "rate" else None, warnings)


def _columns(header: list[str], file: Path) -> tuple[dict[str, int], str]:
    names = [name.strip().lower() for name in header]
    columns: tuple[str, ...] = ("from", "to", "rate", "share")
    found = {name: names.index(name) for name in columns if name in names}
    measures = [name for name in columns[2:] if name in found]
    if not {"from", "to"} <= found.keys() or len(measures) != 1:
        raise InputError(
            f"{file}:1: the first line names the columns `from`, `to`, and either `rate` or"
            " `share`; this one does not"
        )
    return found, measures[0]


def _known(name: str, known: set[str], where: str) -> None:
    if name in known:
        return
    near = difflib.get_close_matches(name, known, 1)
    hint = f"; did you mean `{near[0]}`?" if near else ""
    raise InputError(f"{where}: no node of the graph has this name{hint}")


def _amount(text: str, measure: str, where: str) -> float:
    if measure == "rate":
        # A zero needs no unit.
        try:
            return 0.0 if text == "0" else _core.read_quantity("rate", text)
        except ValueError:
            raise InputError(f"{where}: not a rate such as 5 Mbit/s") from None
    try:
        share = float(text)
    except ValueError:
        share = math.nan
    if not 0 <= share < math.inf:
        raise InputError(f"{where}: not a number from 0")
    return share


def gravity(graph: Graph, weights: Mapping[str, float] | None = None) -> Matrix:
    """Computes shares in proportion to the product of the two nodes' weights.

    The default weight of a node is the sum of the rates of links that leave it, as an estimate of
    the traffic that may enter there (Roughan, SIGCOMM CCR 35(5), 2005). Zhang et al. (SIGMETRICS
    2003) use measured traffic instead.

    Args:
        graph: At least two of its nodes must have a weight above zero.
        weights: Weights by node, in place of the default.

    Raises:
        InputError: Fewer have one, or there are too many pairs for a scenario file.
    """
    weights = graph.capacities() if weights is None else weights
    largest = max(weights.values(), default=0.0) or 1.0
    heavy = {name: weight / largest for name, weight in weights.items() if weight / largest > 0}
    if len(heavy) < 2:  # noqa: PLR2004 - a pair
        raise InputError("a gravity model needs two nodes with a weight above zero")
    _check_count(len(heavy) * (len(heavy) - 1))
    total = math.fsum(heavy.values()) ** 2 - math.fsum(w * w for w in heavy.values())
    return Matrix(
        [
            (source, target, heavy[source] * heavy[target] / total)
            for source in heavy
            for target in heavy
            if source != target
        ]
    )


def _check_count(pairs: int) -> None:
    if pairs > _MAX_WRITTEN:
        raise InputError(
            f"{pairs} pairs of nodes are more than a scenario file holds ({_MAX_WRITTEN}): give a"
            " matrix of those with the most traffic"
        )


def loads(graph: Graph, pairs: list[tuple[str, str, float]]) -> dict[tuple[str, str], float]:
    """Share of all traffic on each direction of a link, by shortest-path routing.

    Paths minimise the delay, then the number of links, as in a simulation. Of paths that are equal
    in both, networkx chooses one, which may differ from the simulation's.

    Raises:
        InputError: A pair has no path.
    """
    import networkx as nx

    network = nx.DiGraph()
    for source, target, link in graph.directed():
        # Weights are whole nanoseconds, plus 10⁻⁶ ns for each link.
        weight = round(link.delay_s * 1e9) * 10**6 + 1
        old = network.get_edge_data(source, target)
        if old is None or weight < old["weight"]:
            network.add_edge(source, target, weight=weight)
    by_source: dict[str, dict[str, float]] = {}
    for source, target, share in pairs:
        to = by_source.setdefault(source, {})
        to[target] = to.get(target, 0.0) + share
    carried: dict[tuple[str, str], float] = {}
    for source, shares in by_source.items():
        before, away = nx.dijkstra_predecessor_and_distance(network, source)
        lost = next((target for target in shares if target not in away), None)
        if lost is not None:
            raise InputError(f"no links lead from `{source}` to `{lost}`")
        # From the farthest node inwards, traffic to a node and through it is added to its last
        # link.
        through = dict.fromkeys(away, 0.0) | shares
        for node in reversed(away):
            if node != source and through[node]:
                hop = (before[node][0], node)
                carried[hop] = carried.get(hop, 0.0) + through[node]
                through[hop[0]] += through[node]
    return carried


def total_for(graph: Graph, matrix: Matrix, load: float) -> float:
    """Rate in bit/s that all pairs together offer if the busiest link's utilisation is `load`."""
    fastest: dict[tuple[str, str], float] = {}
    for source, target, link in graph.directed():
        fastest[source, target] = max(link.rate_bit_s, fastest.get((source, target), 0.0))
    carried = loads(graph, matrix.pairs)
    return load / max(part / fastest[hop] for hop, part in carried.items())
