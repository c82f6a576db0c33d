"""`cwnd topology import`: directions, attributes of edges, lost nodes, and files that are large."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from cwnd.errors import InputError
from cwnd.topology import Attribute, Defaults
from cwnd.topology.importing import graph_of

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
    # It had taken more than a minute.
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
