"""Graphs to simulate on: generated or read from files, with traffic, as scenario files."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cwnd.lazy import lazy_exports

if TYPE_CHECKING:
    from cwnd.topology.graph import Graph, Link, Node, node_positions
    from cwnd.topology.hotlike import Hot, hot
    from cwnd.topology.importing import Attribute, Defaults, read_graph
    from cwnd.topology.matrix import Matrix, gravity, read_matrix, total_for
    from cwnd.topology.writing import Traffic, quantity, red, scenario

__all__ = [
    "Attribute",
    "Defaults",
    "Graph",
    "Hot",
    "Link",
    "Matrix",
    "Node",
    "Traffic",
    "gravity",
    "hot",
    "node_positions",
    "quantity",
    "read_graph",
    "read_matrix",
    "red",
    "scenario",
    "total_for",
]

__getattr__, __dir__ = lazy_exports(
    __name__,
    {
        "graph": "Graph Link Node node_positions",
        "hotlike": "Hot hot",
        "importing": "Attribute Defaults read_graph",
        "matrix": "Matrix gravity read_matrix total_for",
        "writing": "Traffic quantity scenario red",
    },
)
