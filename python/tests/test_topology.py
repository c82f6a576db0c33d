"""Graphs that are made and read, their traffic, and the ways through them."""

from __future__ import annotations

import math
import os
import random
from itertools import pairwise
from pathlib import Path

import networkx as nx
import polars as pl
import pytest
from conftest import SHORT, Cli
from hypothesis import given, settings
from hypothesis import strategies as st

import cwnd
from cwnd import _core, plots
from cwnd.errors import InputError
from cwnd.plots.graph import LOSS, UTILISATION, map_of
from cwnd.topology import (
    Defaults,
    Graph,
    Hot,
    Link,
    Node,
    gravity,
    hot,
    node_positions,
    read_graph,
    red,
    scenario,
)
from cwnd.topology.graph import components, unique
from cwnd.topology.importing import FIBRE_M_S, graph_of, great_circle_m, speed
from cwnd.topology.matrix import loads, total_for
from cwnd.topology.writing import Traffic, rate_text, time_text

_KEYS = """<?xml version="1.0" encoding="utf-8"?>
<graphml xmlns="http://graphml.graphdrawing.org/xmlns">
  <key attr.name="LinkSpeedRaw" attr.type="double" for="edge" id="d36" />
  <key attr.name="LinkSpeed" attr.type="string" for="edge" id="d34" />
  <key attr.name="LinkSpeedUnits" attr.type="string" for="edge" id="d33" />
  <key attr.name="LinkLabel" attr.type="string" for="edge" id="d35" />
  <key attr.name="label" attr.type="string" for="node" id="d32" />
  <key attr.name="Longitude" attr.type="double" for="node" id="d31" />
  <key attr.name="Latitude" attr.type="double" for="node" id="d27" />
"""
#: A graph in the form of the Internet Topology Zoo, with the oddities of its files.
GRAPHML = (
    _KEYS
    + """  <graph edgedefault="undirected">
    <node id="0"><data key="d32">Bern</data>
      <data key="d31">7.45</data><data key="d27">46.95</data></node>
    <node id="1"><data key="d32">Basel</data>
      <data key="d31">7.59</data><data key="d27">47.56</data></node>
    <node id="2"><data key="d32">Basel</data>
      <data key="d31">7.60</data><data key="d27">47.55</data></node>
    <node id="3"><data key="d32">Hub</data></node>
    <node id="4"><data key="d32">Island</data>
      <data key="d31">1</data><data key="d27">95</data></node>
    <edge source="0" target="1"><data key="d36">10000000000.0</data></edge>
    <edge source="1" target="0"><data key="d36">10000000000.0</data></edge>
    <edge source="1" target="2"><data key="d34">2.5</data><data key="d33">G</data></edge>
    <edge source="2" target="3"><data key="d35">10-20Gbps</data></edge>
    <edge source="0" target="0" />
  </graph>
</graphml>
"""
)
GML = """graph [
  directed 0
  Network "Small"
  node [ id 0 label "A" Longitude 0.0 Latitude 0.0 Population 3 ]
  node [ id 1 label "B" Longitude 1.0 Latitude 0.0 Population 1 ]
  node [ id 2 label "C" Longitude 1.0 Latitude 1.0 ]
  edge [ source 0 target 1 LinkSpeedRaw 1000000.0 ]
  edge [ source 0 target 1 LinkSpeedRaw 1000000.0 ]
  edge [ source 1 target 2 LinkLabel "5 Mbit/s" ]
]
"""


def row(*rates: float) -> Graph:
    """Nodes a, b, … in a row, each link of 1 ms."""
    names = "abcdefgh"[: len(rates) + 1]
    links = [Link(a, b, rate, 0.001) for (a, b), rate in zip(pairwise(names), rates, strict=True)]
    return Graph("row", [Node(name) for name in names], links)


def network(graph: Graph) -> nx.Graph:
    made = nx.Graph()
    made.add_nodes_from(node.name for node in graph.nodes)
    made.add_edges_from((link.source, link.target) for link in graph.links)
    return made


@pytest.mark.parametrize("nodes", [10, 11, 13, 30, 67, 200, 1000])
def test_a_hot_graph_is_sparse_in_the_middle_and_heavy_at_the_edge(nodes: int):
    graph, servers, clients = hot(Hot(nodes=nodes, seed=nodes))
    made = network(graph)
    assert len(graph.nodes) == made.number_of_nodes() == nodes
    assert nx.is_connected(made)
    assert len(graph.links) == made.number_of_edges()
    core = [node for node in made if node.startswith("core")]
    gateways = [node for node in made if node.startswith("gw")]
    edges = [*servers, *clients]
    assert len(core) + len(gateways) + len(edges) == nodes
    assert nx.is_connected(made.subgraph(core))
    assert all(made.degree[node] == 1 for node in edges)
    assert len(servers) == max(1, min(len(edges) - 1, round(0.1 * len(edges))))
    # What HOT is about: no triangles, hubs at the edge, unlike ones beside each other.
    assert not any(nx.triangles(made).values())
    if nodes >= 67:
        assert 2.0 < 2 * len(graph.links) / nodes < 2.2
        assert nx.degree_assortativity_coefficient(made) < -0.1
        most = max(made.degree[node] for node in gateways)
        assert most > max(made.degree[node] for node in core)
        assert most >= 3 * min(made.degree[node] for node in gateways)
    rates = {link.target: link.rate_bit_s for link in graph.links}
    assert all(rates[server] == 100e6 for server in servers)
    assert all(1e6 <= rates[client] <= 10e6 for client in clients)


def test_the_67_nodes_of_the_paper():
    graph, servers, clients = hot(Hot())
    assert (len(servers), len(clients)) == (6, 49)
    assert {link.delay_s for link in graph.links} == {0.010}
    assert sum(link.rate_bit_s == 10e9 for link in graph.links) == 15


def test_clients_rates_are_uniform():
    graph, _, clients = hot(Hot(nodes=5000))
    rates = [link.rate_bit_s for link in graph.links if link.target in set(clients)]
    mean = sum(rates) / len(rates)
    # Deviation of the mean of so many uniform draws: 9 Mbit/s / √12 / √4300.
    assert abs(mean - 5.5e6) < 4 * 9e6 / math.sqrt(12 * len(rates))


def test_the_same_seed_gives_the_same_file(cli: Cli):
    texts = []
    for name, seed in (("a.toml", 3), ("b.toml", 3), ("c.toml", 4)):
        answer = cli("topology", "hot", "--seed", seed, "--peers", 5, "-o", name)
        assert answer.code == 0, answer.err
        texts.append((cli.directory / name).read_text())
    assert texts[0] == texts[1] != texts[2]
    assert texts[0].startswith("# Made by `cwnd topology hot --seed 3 --peers 5` of cwnd ")


def test_a_hot_scenario_runs_with_the_load_that_was_asked_for(cli: Cli):
    asked = ("topology", "hot", "--load", "0.3", "--size", "20 kB", "-o", "hot.toml")
    assert cli(*asked).code == 0
    assert cli("run", "hot.toml", "-o", "out", "--quiet", "--set", "run.duration=20 s").code == 0
    run = cwnd.load(cli.directory / "out")
    sent = run.flows["delivered_bytes"]
    _, _, clients = hot(Hot())
    graph, _, _ = hot(Hot())
    rates = {link.target: link.rate_bit_s for link in graph.links}
    offered = 0.3 * sum(rates[client] for client in clients)
    # A Poisson number of transfers: 20 s of them are about 10,000, a deviation of 1 %.
    assert abs(8 * sent.sum() / 20 / offered - 1) < 0.06


def test_peers_are_others_and_as_many_as_asked(cli: Cli):
    assert cli("topology", "hot", "--peers", 5, "-o", "hot.toml").code == 0
    text = (cli.directory / "hot.toml").read_text()
    drawn = []
    for seed in (1, 2):
        cell = _core.parse(text, name="hot", overrides=[f"run.seed={seed}"]).cells[0]
        flow = _core.read_toml(cell.resolved, name="resolved")["flow"]["p2p"]
        assert flow["count"] == len(flow["pairs"]) == 5 * 49
        to: dict[str, set[str]] = {}
        for pair in flow["pairs"]:
            to.setdefault(pair["to"], set()).add(pair["from"])
        assert len(to) == 49
        assert all(len(others) == 5 and client not in others for client, others in to.items())
        drawn.append(to)
    assert drawn[0] != drawn[1], "each seed draws its own"


def test_the_configurations_of_figure_11_are_two_files(cli: Cli):
    asked = ("topology", "hot", "--http", "--backoffs", "--size", "mondal-trace-2")
    assert cli(*asked, "-o", "http.toml").code == 0
    assert cli(*asked, "--peers", 5, "-o", "both.toml").code == 0
    for name, groups in (("http.toml", ["http"]), ("both.toml", ["http", "p2p"])):
        text = (cli.directory / name).read_text()
        cells = _core.parse(text, name=name, overrides=['run.duration="5 s"']).cells
        assert [cell.axes for cell in cells] == [{"stack": "TCP"}, {"stack": "TCP*(inf)"}]
        for cell, backoff in zip(cells, ("exponential", "off"), strict=True):
            flows = _core.read_toml(cell.resolved, name="resolved")["flow"]
            assert list(flows) == groups
            assert {flow["endpoint"]["rto_backoff"] for flow in flows.values()} == {backoff}
            assert flows["http"]["workload"]["kind"] == "web"
        # What servers send is 0.15 of all clients' rates; the slowest client has a 49th of it.
        graph, _, clients = hot(Hot())
        rates = [link.rate_bit_s for link in graph.links if link.target in set(clients)]
        load = 0.15 * sum(rates) / len(rates) / min(rates)
        assert flows["http"]["arrivals"]["load"] == pytest.approx(load, rel=1e-5)
        assert pl.DataFrame(cells[0].run().requests).height > 100


def test_red_has_the_thresholds_of_ns2():
    # 10 Mbit/s are 2500 packets of 500 B a second; 5 ms of them are 12.5.
    made = _core.read_toml("q = " + red(10e6, 0.010), name="q")["q"]
    assert (made["min_th"], made["max_th"], made["limit"]) == ("3125 B", "9375 B", "37500 B")
    assert made["w_q"] == pytest.approx(1 - math.exp(-1 / 2500), rel=1e-12)
    # Never below five packets; a long link has a longer RTT.
    slow = _core.read_toml("q = " + red(1e6, 0.100), name="q")["q"]
    assert (slow["min_th"], slow["max_th"]) == ("2500 B", "7500 B")
    assert slow["w_q"] == pytest.approx(1 - math.exp(-1 / (10 * 3 * (0.1 + 1 / 250) * 250)))


def test_a_file_of_the_topology_zoo_is_read_with_all_that_is_odd_in_it(tmp_path: Path):
    file = tmp_path / "odd.graphml"
    file.write_text(GRAPHML)
    graph = read_graph(file, Defaults(rate_bit_s=155e6, delay_s=0.002, largest_part=True))
    assert [node.name for node in graph.nodes] == ["Bern", "Basel", "Basel (2)", "Hub"]
    links = {(link.source, link.target): link for link in graph.links}
    assert links["Bern", "Basel"].rate_bit_s == 20e9
    assert links["Basel", "Basel (2)"].rate_bit_s == 2.5e9
    assert links["Basel (2)", "Hub"].rate_bit_s == 155e6
    assert links["Basel (2)", "Hub"].delay_s == 0.002
    # 68.6 km as the crow flies.
    assert links["Bern", "Basel"].delay_s == pytest.approx(68.6e3 / FIBRE_M_S, abs=2e-6)
    assert graph.warnings == [
        "nodes whose label another has, renamed: 1 (Basel (2))",
        "nodes without coordinates: 1 (Hub)",
        "nodes whose coordinates are nowhere on earth: 1 (Island)",
        "links beside another between the same nodes, added to it: 1 (Bern-Basel)",
        "links from a node to itself, left out: 1 (Bern-Bern)",
        "links without a capacity, taken as 155 Mbit/s: 1 (Basel (2)-Hub)",
        "links without a length, taken as 2 ms: 1 (Basel (2)-Hub)",
        "nodes that are not connected to the largest part, left out: 1 (Island)",
    ]


def test_gml_with_links_that_are_there_twice_is_read(tmp_path: Path):
    file = tmp_path / "small.GML"
    file.write_text(GML)
    graph = read_graph(file, Defaults(scale=0.5, weight="Population"))
    assert [(link.source, link.target, link.rate_bit_s) for link in graph.links] == [
        ("A", "B", 1e6),
        ("B", "C", 2.5e6),
    ]
    assert [node.weight for node in graph.nodes] == [3.0, 1.0, 0.0]
    # A degree of the equator: 111.195 km.
    assert graph.links[0].delay_s == pytest.approx(111.195e3 / FIBRE_M_S, abs=1e-6)


@pytest.mark.parametrize(
    ("data", "wanted"),
    [
        ({"LinkSpeedRaw": 1e9, "LinkSpeed": "10", "LinkSpeedUnits": "G"}, 1e9),
        ({"LinkSpeedRaw": "nan", "LinkSpeed": "10", "LinkSpeedUnits": "G"}, 10e9),
        ({"LinkSpeedRaw": -5, "LinkLabel": "155 Mbps"}, 155e6),
        ({"LinkSpeed": "34", "LinkSpeedUnits": "M"}, 34e6),
        ({"LinkSpeed": "34"}, None),
        ({"LinkLabel": "2.5Gbit/s"}, 2.5e9),
        ({"LinkLabel": "10-20Gbps"}, None),
        ({"LinkLabel": "0 Gbps"}, None),
        ({"LinkLabel": "DWDM"}, None),
        ({"LinkSpeedRaw": 1e300, "LinkLabel": "1 Gbps"}, 1e9),
        ({}, None),
    ],
)
def test_capacities_are_read_from_what_files_have(data: dict[str, object], wanted: float | None):
    assert speed(data) == wanted


def test_great_circles():
    assert great_circle_m(0, 0, 180, 0) == pytest.approx(math.pi * 6_371_008.8)
    assert great_circle_m(7, 90, 100, 90) == pytest.approx(0, abs=1e-6)
    # London to New York, as tables have it.
    assert great_circle_m(-0.1278, 51.5074, -74.006, 40.7128) == pytest.approx(5570e3, rel=0.002)


@settings(max_examples=60)
@given(st.integers(0, 2**32), st.sampled_from([GRAPHML, GML]))
def test_damaged_files_are_read_or_refused(seed: int, text: str):
    draw = random.Random(seed)
    pieces = ["", "]", "<", '"', "nan", "1e999", "-1", "graph [", "\0", "é", "source 0", "&x;"]
    for _ in range(draw.randint(1, 4)):
        at = draw.randrange(len(text))
        text = text[:at] + draw.choice(pieces) + text[at + draw.choice([0, 1, 7, 40]) :]
    name = "a.graphml" if "<" in text[:20] else "a.gml"
    try:
        graph = graph_of(text, Path(name), Defaults(largest_part=True))
        matrix = gravity(graph)
    except InputError:
        return
    group = Traffic("all", pairs=list(matrix.pairs), sizes="7 kB", offered_bit_s=1e6)
    _core.parse(scenario(graph, [group], made_by="a test", duration="1 s"), name="made")


def test_a_gravity_model_is_the_product_of_weights():
    matrix = gravity(row(1e6, 3e6))
    # Capacities 1, 4, 3: 2 (1·4 + 1·3 + 4·3) = 38.
    wanted = {("a", "b"): 4, ("a", "c"): 3, ("b", "c"): 12}
    for source, target, share in matrix.pairs:
        assert share == pytest.approx(wanted[min(source, target), max(source, target)] / 38)
    assert sum(share for *_, share in matrix.pairs) == pytest.approx(1)
    assert len(gravity(row(1e6, 3e6), {"a": 2.0, "c": 1.0}).pairs) == 2
    with pytest.raises(InputError, match="two nodes with a weight"):
        gravity(row(1e6), {"a": 1.0})


def test_weights_of_any_size_have_shares():
    matrix = gravity(row(1e6, 1e6), {"a": 1e300, "b": 1e300, "c": 1e-300})
    assert [share for *_, share in matrix.pairs] == [0.5, 0.5]


def test_the_total_uses_the_busiest_link_to_the_load():
    graph = row(10e6, 2e6)
    pairs = [("a", "c", 0.25), ("a", "b", 0.75)]
    assert loads(graph, pairs) == {("a", "b"): 1.0, ("b", "c"): 0.25}
    # b–c carries a quarter over a fifth of the rate.
    matrix = gravity(graph).__class__(pairs)
    assert total_for(graph, matrix, 0.5) == pytest.approx(0.5 * 8e6)


@pytest.mark.parametrize("load", ["1e308", "inf", "nan", "0", "-1", "101"])
def test_a_load_is_a_part_that_can_be(cli: Cli, load: str):
    cli.write("small.gml", GML)
    for asked in (("hot",), ("import", "small.gml")):
        answer = cli("topology", *asked, f"--load={load}", "-o", "made.toml")
        assert answer.code == 2
        assert "above 0 and at most 100" in answer.err


def test_labels_and_numbers_that_are_long_are_cut(cli: Cli):
    long = "x" * 1_000_000
    cli.write("long.gml", GML.replace('"A"', f'"{long}"'))
    answer = cli("topology", "import", "long.gml", "-o", "made.toml")
    assert answer.code == 0, answer.err
    assert "nodes whose label has more than 100 characters, cut: 1" in answer.err
    assert len(answer.err) < 1000
    answer = cli("topology", "hot", "--nodes", "9" * 400, "-o", "made.toml")
    assert answer.code == 2
    assert "(401 characters)" in answer.err
    assert len(answer.err) < 500


def test_import_writes_a_scenario_that_says_how_it_was_made(cli: Cli):
    cli.write("odd.graphml", GRAPHML)
    cli.write("m.csv", "from,to,rate\nBern,Hub,2 Gbit/s\nHub,Basel,1 Gbit/s\n")
    asked = ("topology", "import", "odd.graphml", "--matrix", "m.csv", "--scale", "0.001")
    answer = cli(*asked, "--target-delay", "5 ms", "--largest-part", "-o", "odd.toml")
    assert answer.code == 0, answer.err
    assert answer.err.count("warning: ") == 8
    text = (cli.directory / "odd.toml").read_text()
    assert text.startswith(
        "# Made by `cwnd topology import odd.graphml --matrix m.csv --scale 0.001"
    )
    assert text.count("# Warning: ") == 8
    # 3 Gbit/s in small are 3 Mbit/s; 7 kB every 18.7 ms.
    assert f'interval = "{time_text(8 * 7000 / 3e6)}"' in text
    answer = cli("run", "odd.toml", "-o", "out", "--set", "run.duration=2 s", "--json")
    assert answer.code == 0, answer.err
    asked = ("topology", "import", "odd.graphml", "--largest-part")
    flows = cli(*asked, "--flows", 7, "-o", "f.toml", "--json")
    assert (flows.json["nodes"], flows.json["links"], len(flows.json["warnings"])) == (4, 6, 8)
    assert cli("check", "f.toml").code == 0


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("import", "none.gml"), "none.gml: no such file"),
        (("import", "a.txt"), "a.txt: GraphML (.graphml) and GML (.gml) can be imported"),
        (("import", "bad.graphml"), "bad.graphml: no graphml that can be read"),
        (("import", "bad.gml"), "bad.gml: no gml that can be read"),
        (("import", "entity.graphml"), "entities"),
        (("import", "empty.gml"), "the graph has no nodes"),
        (("import", "good.gml", "--rate", "5"), "--rate '5'"),
        (("import", "good.gml", "--scale", "0"), "--scale 0"),
        (("import", "good.gml", "--scale", "1e300"), "--scale 1e+300 makes a link of"),
        (("import", "good.gml", "--load", "-1"), "--load -1"),
        (("import", "good.gml", "--load", "1", "--total", "1 Mbit/s"), "keep one"),
        (("import", "good.gml", "--gravity", "Height"), "no node has a number above zero"),
        (("import", "good.gml", "--flows", "0"), "--flows 0"),
        (("hot", "--nodes", "9"), "--nodes 9: from 10"),
        (("hot", "--servers", "1"), "--servers 1"),
        (("hot", "--peers", "49"), "--peers 49: of 49 clients up to 48"),
        (("hot", "--slowest-client", "20 Mbit/s"), "swap the two"),
        (("hot", "--size", "many"), "--size 'many'"),
        (("hot", "--load", "0"), "--load 0"),
        (("hot", "-o", "."), "a directory is in the way"),
    ],
)
def test_what_is_wrong_is_one_error(arguments: tuple[str, ...], said: str, cli: Cli):
    cli.write("good.gml", GML)
    cli.write("bad.graphml", "<graphml><graph>")
    cli.write("bad.gml", "graph [ node [ id 0")
    cli.write("empty.gml", "graph [\n]\n")
    cli.write(
        "entity.graphml", GRAPHML.replace("<graphml", '<!DOCTYPE x [<!ENTITY a "b">]><graphml', 1)
    )
    answer = cli("topology", *arguments)
    assert answer.code == 2
    assert said in answer.err.replace("\n", " ")
    assert answer.err.count("error") == 1


def test_our_ways_are_those_of_networkx_on_random_graphs():
    draw = random.Random(7)
    for _ in range(12):
        nodes = draw.randint(4, 25)
        made = nx.DiGraph()
        ring = [(i, (i + 1) % nodes) for i in range(nodes)]
        chords = [(draw.randrange(nodes), draw.randrange(nodes)) for _ in range(2 * nodes)]
        for source, target in dict.fromkeys([*ring, *chords]):
            if source != target:
                # Few different delays, so that ties are common.
                made.add_edge(source, target, delay=draw.randint(0, 5))
        links = "".join(
            f'[link."{a}-{b}"]\nfrom = "n{a}"\nto = "n{b}"\nrate = "1 Mbit/s"\n'
            f'queue = {{ kind = "fifo", limit = "9 packets" }}\ndelay = "{delay} ms"\n'
            for a, b, delay in made.edges(data="delay")
        )
        ends = [draw.sample(range(nodes), 2) for _ in range(8)]
        flows = "".join(
            f'[flow.f{i}]\nfrom = "n{a}"\nto = "n{b}"\n' for i, (a, b) in enumerate(ends)
        )
        text = f'[run]\nduration = "1 s"\n{links}{flows}'
        resolved = _core.parse(text, name="random").cell(0).resolved
        found = _core.read_toml(resolved, name="resolved")["flow"]

        def cost(_a: int, _b: int, edge: dict[str, int]) -> int:
            return 1000 * edge["delay"] + 1

        for i, (a, b) in enumerate(ends):
            for key, start, end in (("route", a, b), ("reverse_route", b, a)):
                hops = [tuple(map(int, name.split("-"))) for name in found[f"f{i}"][key]]
                assert hops[0][0] == start
                assert hops[-1][1] == end
                assert all(x[1] == y[0] for x, y in pairwise(hops))
                ours = sum(1000 * made.edges[hop]["delay"] + 1 for hop in hops)
                assert ours == nx.shortest_path_length(made, start, end, weight=cost)


def test_places_are_given_or_found_and_the_same_each_time():
    nodes, links = list("abcde"), [("a", "b"), ("b", "c"), ("c", "d"), ("d", "a"), ("a", "e")]
    found = node_positions(nodes, links, {})
    assert found == node_positions(nodes, links, {})
    assert set(found) == set(nodes)
    assert len(set(found.values())) == 5
    for xy in found.values():
        assert all(-1e-9 <= value <= 1 + 1e-9 for value in xy)
    given = node_positions(nodes, links, {"a": (-10.0, 50.0), "b": (10.0, 50.0), "c": (10.0, 40.0)})
    assert (given["b"], given["c"]) == ((1.0, 0.5), (1.0, 0.0)) or given["b"][0] > given["a"][0]
    assert len(node_positions([f"n{i}" for i in range(600)], [("n0", "n1")], {})) == 600


def test_names_are_unique_and_parts_are_found():
    assert unique(["a", "a", "b", "a", "a (2)"]) == ["a", "a (3)", "b", "a (4)", "a (2)"]
    assert components("abcde", [("d", "e"), ("b", "a"), ("e", "c")]) == [
        ["c", "e", "d"],
        ["a", "b"],
    ]


@given(st.integers(1, 10**13), st.integers(0, 10**13))
def test_quantities_are_written_as_they_are_read(rate: int, ns: int):
    assert _core.read_quantity("rate", rate_text(rate)) == rate
    assert _core.read_quantity("time", time_text(ns / 1e9)) == pytest.approx(ns / 1e9, abs=2e-9)


def test_a_graph_is_drawn_by_both_painters_and_in_the_report(cli: Cli):
    cli("topology", "hot", "--nodes", 20, "--load", "0.9", "-o", "hot.toml")
    more = '\n[sweep]\nrepeat = 2\n[sweep.axis.load]\npath = "flow.http.count"\nvalues = [1, 2]\n'
    file = cli.directory / "hot.toml"
    file.write_text(file.read_text() + more)
    asked = ("run", "hot.toml", "-o", "out", "--quiet", "--set", "run.duration=3 s")
    assert cli(*asked).code == 0
    answer = cli("plot", "out", "--kind", "graph", "--at", "load=2")
    assert answer.code == 0, answer.err
    assert (cli.directory / "out/plots/graph.png").stat().st_size > 5000
    run = cwnd.load(cli.directory / "out")
    drawn = map_of(run, {"load": "2"})
    second = run.links.filter(pl.col("load") == "2").group_by("link")
    used = dict(second.agg(pl.col("utilisation").mean()).iter_rows())
    assert {link.name for link in drawn.links} == set(map(str, used))
    for quantity in (UTILISATION, LOSS):
        banded = [link for i in range(5) for link in drawn.band(quantity, i)]
        assert sorted(link.name for link in banded) == sorted(link.name for link in drawn.links)
    for link in drawn.links:
        assert link.utilisation == pytest.approx(used[link.name])
    svg = plots.draw(run, "graph").svg()
    assert "Utilisation" in svg
    assert "senders" in svg
    assert cli("report", "out", "-o", "page.html").code == 0
    page = (cli.directory / "page.html").read_text()
    assert 'id="r1-graph"' in page
    assert "core1 → core2" in page or "core1 \\u2192 core2" in page


def test_a_dumbbell_has_no_graph(cli: Cli):
    cli.write("short.toml", SHORT)
    assert cli("run", "short.toml", "-o", "out", "--quiet").code == 0
    answer = cli("plot", "out", "--kind", "graph")
    assert answer.code == 2
    assert "a dumbbell has no graph to draw" in answer.err


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("root:x:0:0\n", "line 1, column 5: nothing that GML has begins there"),
        ("secret root\n", "line 1, column 8: expected an int, float, string or '['"),
        ("graph [ node [ id 0 ] %root\n]\n", "line 1, column 23: nothing that"),
        ("graph [\n node [ id 0 ]\n node root\n]\n", "line 3, column 7: expected an int"),
    ],
)
def test_an_error_in_a_graph_says_where_and_shows_nothing(text: str, said: str):
    with pytest.raises(InputError) as refused:
        graph_of(text, Path("a.gml"), Defaults())
    assert said in str(refused.value)
    assert "root" not in str(refused.value)


def test_a_pipe_or_a_device_is_not_replaced(cli: Cli):
    cli.write("good.gml", GML)
    os.mkfifo(cli.directory / "pipe.toml")
    answer = cli("topology", "import", "good.gml", "-o", "pipe.toml")
    assert answer.code == 2
    assert "pipe.toml: a device or a pipe is in the way" in answer.err.replace("\n", " ")
    assert (cli.directory / "pipe.toml").is_fifo()
