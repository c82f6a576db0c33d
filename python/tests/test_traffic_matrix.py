"""Traffic matrices that are read from tables, and what is wrong with them."""

from __future__ import annotations

import tracemalloc
from itertools import pairwise
from typing import TYPE_CHECKING

import pytest

from cwnd.errors import InputError
from cwnd.topology import Graph, Link, Node, read_matrix
from cwnd.topology.matrix import loads

if TYPE_CHECKING:
    from pathlib import Path

#: Three nodes in a row.
ROW = Graph(
    "row",
    [Node(name) for name in "abc"],
    [Link("a", "b", 1e6, 0.001), Link("b", "c", 1e6, 0.001)],
)


def test_a_matrix_is_read_from_a_table(tmp_path: Path):
    file = tmp_path / "m.csv"
    file.write_text("To, from ,rate\nb,a,3 Mbit/s\n\na,b,1 Mbit/s\nc,a,0\na,a,1 kbit/s\n")
    matrix = read_matrix(file, ROW)
    assert matrix.pairs == [("a", "b", 0.75), ("b", "a", 0.25)]
    assert matrix.total_bit_s == 4e6
    assert matrix.warnings == [
        "1 pairs without traffic are left out",
        "1 nodes' traffic to themselves crosses no link",
    ]
    file.write_text("from,to,share\na,b,1\nb,c,3\n")
    assert read_matrix(file, ROW).pairs == [("a", "b", 0.25), ("b", "c", 0.75)]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", r"m\.csv:1: the first line names the columns"),
        ("from,to\na,b\n", r"m\.csv:1: .*this one does not"),
        ("from,to,rate,share\n", r"m\.csv:1: "),
        ("from,to,rate\n", r"m\.csv: no traffic"),
        ("from,to,rate\na,b,5\n", r"m\.csv:2: column 3 \(`rate`\): not a rate such as"),
        ("from,to,rate\na,b,-5 Mbit/s\n", r"m\.csv:2: column 3 \(`rate`\)"),
        ("from,to,share\na,b,1\nb,c,-1\n", r"m\.csv:3: column 3 \(`share`\): not a number from"),
        ("from,to,share\na,b,nan\n", r"m\.csv:2: column 3 \(`share`\)"),
        ("from,to,share\na,b,1\nb,a,1e-300\n", r"m\.csv: a share is less than 1e-12 of all"),
        ("from,to,share\na,bb,1\n", r"m\.csv:2: column 2 \(`to`\): no node .*did you mean `b`"),
        ("from,to,share\na,b,1\na,b,2\n", r"m\.csv:3: the pair stands in line 2 already"),
        ("from,to,share\na,b\n", r"m\.csv:2: 2 values, and the first line names 3"),
        ("from,to,share\na,b,1,9\n", r"m\.csv:2: 4 values, and the first line names 3"),
        ('from,to,share\na,"b,1\n', r"m\.csv:\d: no CSV"),
    ],
)
def test_what_is_wrong_in_a_matrix_is_named_with_its_line(text: str, said: str, tmp_path: Path):
    file = tmp_path / "m.csv"
    file.write_text(text)
    with pytest.raises(InputError, match=said):
        read_matrix(file, ROW)


def test_an_error_shows_nothing_of_a_matrix(tmp_path: Path):
    file = tmp_path / "m.csv"
    for text in (
        "SECRET,x,y\n",
        "from,to,share\nSECRET,b,1\n",
        "from,to,share\na,b,SECRET\n",
        "from,to,rate\na,b,SECRET\n",
    ):
        file.write_text(text)
        with pytest.raises(InputError) as raised:
            read_matrix(file, ROW)
        assert "SECRET" not in str(raised.value)


def test_shares_may_be_as_large_as_numbers_are(tmp_path: Path):
    file = tmp_path / "m.csv"
    file.write_text("from,to,share\na,b,1e308\nb,a,1e308\n")
    assert read_matrix(file, ROW).pairs == [("a", "b", 0.5), ("b", "a", 0.5)]


def test_loads_take_memory_in_proportion_to_the_graph():
    nodes = [f"n{i}" for i in range(4_000)]
    links = [Link(*ends, 1e6, 0.001) for ends in pairwise(nodes)]
    row = Graph("long row", [Node(name) for name in nodes], links)
    tracemalloc.start()
    carried = loads(row, [(nodes[0], nodes[-1], 0.5), (nodes[0], nodes[1], 0.25)])
    _, peak_bytes = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert carried[nodes[0], nodes[1]] == 0.75
    assert carried[nodes[1], nodes[2]] == carried[nodes[-2], nodes[-1]] == 0.5
    assert len(carried) == len(links)
    # All ways written out are 8 million nodes.
    assert peak_bytes < 20e6
