"""Graphs to simulate on: generated or read from files, with traffic, as scenario files."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cwnd.lazy import lazy_exports

if TYPE_CHECKING:
    from cwnd.topology.graph import Graph, Link, Node
    from cwnd.topology.hotlike import Hot, hot
    from cwnd.topology.importing import Attribute, Defaults, read_graph
    from cwnd.topology.layout import node_positions
    from cwnd.topology.matrix import Matrix, gravity, read_matrix, total_for
    from cwnd.topology.queues import red
    from cwnd.topology.writing import Traffic, quantity, scenario

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
        "graph": "Graph Link Node",
        "hotlike": "Hot hot",
        "importing": "Attribute Defaults read_graph",
        "layout": "node_positions",
        "matrix": "Matrix gravity read_matrix total_for",
        "queues": "red",
        "writing": "Traffic quantity scenario",
    },
)
