"""Graphs that `cwnd topology import` reads, traffic matrices, and what is wrong with them."""

from __future__ import annotations

import time
import tracemalloc
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from cwnd.errors import InputError
from cwnd.topology import Attribute, Defaults, Graph, Link, Node, read_matrix
from cwnd.topology.importing import graph_of
from cwnd.topology.matrix import loads

if TYPE_CHECKING:
    from conftest import Cli

    from cwnd.topology import Graph


#: Each edge stands once, as in files of the Topology Zoo that say that they are directed.
DIGRAPH = """graph [
  directed 1
  node [ id 0 name "Bern" ]
  node [ id 1 name "Basel" ]
  node [ id 2 name "Chur" ]
  edge [ source 0 target 1 bandwidth 100 delay 5 ]
  edge [ source 1 target 2 bandwidth 100 delay 7 ]
]
"""
REVERSE = "  edge [ source 1 target 0 bandwidth 40 delay 5 ]\n]\n"
BOTH = DIGRAPH[:-2] + REVERSE


def read(text: str, **settings: object) -> Graph:
    return graph_of(text, Path("a.gml"), Defaults(**settings))  # type: ignore[arg-type]


def directions(graph: Graph) -> list[tuple[str, str]]:
    return [(source, target) for source, target, _ in graph.directed()]


def test_edges_of_a_directed_graph_without_any_reverse_count_both_ways():
    graph = read(DIGRAPH)

    assert directions(graph) == [
        ("Bern", "Basel"),
        ("Basel", "Bern"),
        ("Basel", "Chur"),
        ("Chur", "Basel"),
    ]
    assert graph.warnings[0].startswith("directed graph in which no edge has its reverse: 2 edges")


def test_edges_of_a_directed_graph_with_every_reverse_are_one_way():
    text = BOTH.replace("  edge [ source 1 target 2 bandwidth 100 delay 7 ]\n", "")
    graph = read(text, largest_part=True, rate_from=Attribute("bandwidth", "rate", "Mbit/s"))

    assert directions(graph) == [("Bern", "Basel"), ("Basel", "Bern")]
    assert [link.rate_bit_s for link in graph.links] == [100e6, 40e6]
    assert not any("directed graph" in warning for warning in graph.warnings)


def test_a_reverse_of_some_edges_needs_an_option():
    with pytest.raises(InputError) as error:
        read(BOTH)
    said = str(error.value)
    assert "a.gml: the graph is directed, and 1 of 3 edges have no reverse" in said
    assert "Basel-Chur" in said
    assert "--both-ways" in said
    assert "--one-way" in said

    both = read(BOTH, both_ways=True, rate_from=Attribute("bandwidth", "rate", "Mbit/s"))
    assert len(directions(both)) == 4
    # An edge and its reverse are no parallel links.
    rates = {(a, b): link.rate_bit_s for a, b, link in both.directed()}
    assert rates["Bern", "Basel"] == 100e6
    assert rates["Basel", "Bern"] == 40e6
    one = read(BOTH, both_ways=False, largest_part=True)
    assert directions(one) == [("Bern", "Basel"), ("Basel", "Bern")]
    assert one.warnings[-1].startswith("nodes that don't reach the largest part and back")


def test_more_than_a_tenth_of_the_nodes_is_not_lost_without_a_word():
    with pytest.raises(InputError, match=r"1 of 3 nodes are outside.*--both-ways.*--largest-part"):
        read(BOTH, both_ways=False)
    nodes = "".join(f'  node [ id {i} label "n{i}" ]\n' for i in range(10))
    edges = "".join(f"  edge [ source {i} target {i + 1} ]\n" for i in range(8))
    ten = f"graph [\n{nodes}{edges}]\n"
    # One of ten is a tenth; two are more.
    assert len(read(ten).nodes) == 9
    with pytest.raises(InputError, match=r"2 of 10 nodes .*n8.*--largest-part"):
        read(ten.replace("  edge [ source 7 target 8 ]\n", ""))


def test_attributes_of_edges_are_rates_and_delays():
    rate, delay = Attribute("bandwidth", "rate", "Mbit/s"), Attribute("delay", "time", "ms")
    graph = read(DIGRAPH, rate_from=rate, delay_from=delay)

    assert [(link.rate_bit_s, link.delay_s) for link in graph.links] == [
        (100e6, 0.005),
        (100e6, 0.007),
    ]
    assert not any("without a" in warning and "links" in warning for warning in graph.warnings)
    units = DIGRAPH.replace("bandwidth 100", 'bandwidth "2 Gbit/s"')
    assert read(units, rate_from=Attribute("bandwidth", "rate")).links[0].rate_bit_s == 2e9
    # What one edge lacks is the default.
    lacking = DIGRAPH.replace(" bandwidth 100 delay 7", "")
    graph = read(lacking, rate_from=rate, delay_from=delay)
    assert [(link.rate_bit_s, link.delay_s) for link in graph.links][1] == (1e9, 0.005)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--both-ways", "--one-way"], "--both-ways and --one-way exclude each other"),
        (["--one-way"], "--both-ways takes edges without a reverse both ways"),
        (["--rate-attribute", "speed"], "attributes of edges: bandwidth, delay"),
        (["--rate-attribute", "bandwidth"], "bandwidth 100 has no unit"),
        (["--delay-attribute", "delay"], "--delay-unit ms"),
        (["--rate-unit", "Mbit/s"], "name it with --rate-attribute"),
        (["--rate-attribute", "bandwidth", "--rate-unit", "ms"], "--rate-unit '1 ms'"),
    ],
)
def test_what_is_wrong_with_directions_and_attributes_is_named(
    arguments: list[str], said: str, cli: Cli
):
    cli.write("a.gml", DIGRAPH)
    answer = cli("topology", "import", "a.gml", *arguments)

    assert answer.code == 2
    assert said in " ".join(answer.err.split())


def test_an_undirected_graph_has_no_direction_to_take():
    with pytest.raises(InputError, match="--one-way: the graph is undirected"):
        read(DIGRAPH.replace("directed 1", "directed 0"), both_ways=False)


def test_the_command_says_that_edges_count_both_ways(cli: Cli):
    cli.write("a.gml", DIGRAPH)
    answer = cli(
        *("topology", "import", "a.gml", "--rate-attribute", "bandwidth", "--rate-unit", "Mbit/s"),
        *("--delay-attribute", "delay", "--delay-unit", "ms", "--json"),
    )

    assert answer.code == 0, answer.err
    assert answer.json["links"] == 4
    assert "count both ways" in answer.json["warnings"][0]
    assert "count both ways" in (cli.directory / "a.toml").read_text()


def test_gml_with_much_white_space_is_read_in_linear_time():
    space = "\n" * 300_000
    began = time.monotonic()
    with pytest.raises(InputError):
        read(f"multigraph{space}")
    graph = read(DIGRAPH.replace("directed 1", f"directed 1{space}multigraph{space}1{space}"))
    # It once took more than a minute.
    assert time.monotonic() - began < 10
    assert len(graph.nodes) == 3


def test_a_label_that_is_the_number_zero_names_its_node():
    text = "graph [ node [ id 7 label 0 ] node [ id 8 name 0 ] edge [ source 7 target 8 ] ]"
    assert [node.name for node in read(text.replace("name 0", "name 5")).nodes] == ["0", "5"]
    text = text.replace("label 0", 'label ""')
    assert [node.name for node in read(text).nodes] == ["7", "0"]


def test_a_label_that_says_multigraph_is_a_label():
    text = DIGRAPH.replace('name "Chur"', 'label "multigraph 1"')
    again = text.replace("  edge", "  edge [ source 0 target 1 ]\n  edge", 1)

    assert any("beside another" in warning for warning in read(again).warnings)


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
