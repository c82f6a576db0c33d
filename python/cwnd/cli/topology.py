"""Commands `cwnd topology hot` and `cwnd topology import`."""

from __future__ import annotations

import shlex
import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import App, Parameter

from cwnd.cli import output
from cwnd.errors import InputError

if TYPE_CHECKING:
    from cwnd.topology import Attribute, Graph, Matrix, Traffic

topology = App(
    name="topology", default_parameter=Parameter(show_default=False), help_format="plaintext"
)

Output = Annotated[Path | None, Parameter(name=["--output", "-o"])]
#: Sizes of transfers: heavy-tailed, with the mean of TCP* § 3.2.
_SIZE = "pareto(1.2, 7 kB)"
#: Largest offered load, relative to the capacity; a higher one is taken for an error.
_MAX_LOAD = 100


@topology.command
def hot(
    *,
    nodes: int = 67,
    seed: int = 1,
    servers: float = 0.1,
    core_rate: str = "10 Gbit/s",
    server_rate: str = "100 Mbit/s",
    slowest_client: str = "1 Mbit/s",
    fastest_client: str = "10 Mbit/s",
    delay: str = "10 ms",
    target_delay: str = "5 ms",
    load: float = 0.15,
    size: str = _SIZE,
    http: bool = False,
    peers: int = 0,
    backoffs: bool = False,
    duration: str = "60 s",
    output_file: Output = None,
    json: output.Json = False,
) -> int:
    """Make a HOT-like graph with clients, servers and traffic, as a scenario file.

    A ring of core routers, gateways, and edge nodes with one link each, whose number at a gateway
    is heavy-tailed, like the graph that TCP* takes from Orbis for its Fig. 10. The same seed gives
    the same file.

    Args:
        nodes: Number of nodes, 67 if not given.
        seed: Seed of the graph; the run has its own.
        servers: Part of the edge nodes that are servers, 0.1 if not given.
        core_rate: Rate of links between routers, "10 Gbit/s" if not given.
        server_rate: Rate of servers' links, "100 Mbit/s" if not given.
        slowest_client: Clients' links are drawn uniformly from this, "1 Mbit/s" if not given, …
        fastest_client: … to this, "10 Mbit/s" if not given.
        delay: Delay of each link, "10 ms" if not given.
        target_delay: RED's target delay, from which its thresholds follow; "5 ms" if not given.
        load: Rate that servers offer, as a part of all clients' rates, 0.15 if not given.
        size: Sizes of transfers, "pareto(1.2, 7 kB)" if not given.
        http: Clients open the connections and ask; otherwise servers open them.
        peers: Other clients from which each client downloads without end, drawn by a run's seed.
        backoffs: Make a sweep of TCP and TCP*(inf), which never backs off.
        duration: Duration of the run, "60 s" if not given.
        output_file: Scenario file; hot-NODES.toml if not given.
        json: Machine-readable output.
    """
    from cwnd.topology import Hot, Traffic, quantity
    from cwnd.topology import hot as make

    _check_load(load, "a part of all clients' rates")
    asked = Hot(
        nodes=nodes,
        seed=seed,
        servers=servers,
        core_bit_s=quantity("rate", core_rate, "--core-rate"),
        server_bit_s=quantity("rate", server_rate, "--server-rate"),
        slowest_client_bit_s=quantity("rate", slowest_client, "--slowest-client"),
        fastest_client_bit_s=quantity("rate", fastest_client, "--fastest-client"),
        delay_s=quantity("time", delay, "--delay"),
        target_s=quantity("time", target_delay, "--target-delay"),
    )
    graph, serving, clients = make(asked)
    rates = {link.target: link.rate_bit_s for link in graph.links}
    offered = load * sum(rates[client] for client in clients)
    # Clients are equally popular, so that the slowest one has the highest load.
    asked_load = offered / len(clients) / min(rates[client] for client in clients)
    web = Traffic("http", senders=serving, receivers=clients, sizes=size, offered_bit_s=offered)
    groups = [replace(web, asked_load=asked_load) if http else web]
    if peers:
        if not 0 < peers < len(clients):
            most = len(clients) - 1
            raise InputError(f"--peers {peers}: of {len(clients)} clients up to {most}")
        groups.append(Traffic("p2p", senders=clients, receivers=clients, peers=peers))
    return _write(graph, groups, duration, output_file, json=json, backoffs=backoffs)


@topology.command(name="import")
def import_(
    file: Path,
    /,
    *,
    matrix: Path | None = None,
    gravity: str = "capacity",
    total: str | None = None,
    load: float | None = None,
    flows: int | None = None,
    size: str = _SIZE,
    rate: str = "1 Gbit/s",
    rate_attribute: str | None = None,
    rate_unit: str | None = None,
    delay: str = "5 ms",
    delay_attribute: str | None = None,
    delay_unit: str | None = None,
    both_ways: Annotated[bool, Parameter(negative=())] = False,
    one_way: Annotated[bool, Parameter(negative=())] = False,
    largest_part: Annotated[bool, Parameter(negative=())] = False,
    scale: float = 1.0,
    target_delay: str | None = None,
    duration: str = "60 s",
    output_file: Output = None,
    json: output.Json = False,
) -> int:
    """Make a scenario of a GraphML or GML file, such as those of the Internet Topology Zoo.

    Delays are those of light in glass over great circles between the coordinates of nodes. Missing
    and duplicate entries of the file are reported with their counts, and written into the scenario.

    Args:
        file: NAME.graphml or NAME.gml.
        matrix: Traffic matrix: CSV with the columns from, to, and rate or share.
        gravity: Without a matrix, the nodes' weights in a gravity model: "capacity", the sum of
            their links' rates, or an attribute of the file, as in "Population".
        total: Rate that all senders together offer, as in "500 Mbit/s".
        load: … or the part to which the busiest link is used, 0.5 if neither is given and the
            matrix has no rates.
        flows: This many lasting flows instead of transfers that arrive at random.
        size: Sizes of transfers, "pareto(1.2, 7 kB)" if not given.
        rate: Rate of links whose capacity is not known, "1 Gbit/s" if not given.
        rate_attribute: Attribute of edges that is their capacity, as in "bandwidth"; without, those
            of the Topology Zoo.
        rate_unit: Unit of its numbers, as in "Mbit/s".
        delay: Delay of links whose length is not known, "5 ms" if not given.
        delay_attribute: Attribute of edges that is their delay; without, it follows from
            coordinates.
        delay_unit: Unit of its numbers, as in "ms".
        both_ways: Edges of a directed graph that have no reverse count in both directions.
        one_way: Edges of a directed graph count in one direction; if neither is given, in one if
            each has its reverse, in both if none has.
        largest_part: Keep the largest connected part, even if more than a tenth of the nodes are
            lost.
        scale: Multiplies all capacities: 0.001 makes a backbone small enough to simulate.
        target_delay: Queues are RED with thresholds for this delay, as in "5 ms"; FIFO of one BDP
            if not given.
        duration: Duration of the run, "60 s" if not given.
        output_file: Scenario file; NAME.toml in this directory if not given.
        json: Machine-readable output.
    """
    from cwnd.topology import Defaults, Traffic, quantity, read_graph, red, total_for

    if both_ways and one_way:
        raise InputError("--both-ways and --one-way exclude each other: keep one")

    if not 0 < scale < float("inf"):
        raise InputError(f"--scale {scale:g}: a factor above 0")
    if flows is not None and not 1 <= flows <= 10_000_000:  # noqa: PLR2004
        raise InputError(f"--flows {flows}: from 1 to 10000000 can be simulated")
    more: dict[str, Any] = {}
    if target_delay is not None:
        target_s = quantity("time", target_delay, "--target-delay")
        if target_s <= 0:
            raise InputError("--target-delay: a delay above zero, as in '5 ms'")
        more["queue"] = lambda bit_s, delay_s: red(bit_s, delay_s, target_s)
    defaults = Defaults(
        rate_bit_s=quantity("rate", rate, "--rate"),
        delay_s=quantity("time", delay, "--delay"),
        scale=scale,
        weight=None if gravity == "capacity" or matrix is not None else gravity,
        rate_from=_attribute("rate", rate_attribute, rate_unit),
        delay_from=_attribute("delay", delay_attribute, delay_unit),
        both_ways=both_ways if both_ways or one_way else None,
        largest_part=largest_part,
        **more,
    )
    graph = read_graph(file, defaults)
    sent = _matrix(graph, matrix, gravity)
    graph.warnings.extend(sent.warnings)
    pairs = [(source, target, share) for source, target, share in sent.pairs]
    if flows is not None:
        groups = [Traffic("matrix", pairs=pairs, flows=flows)]
        return _write(graph, groups, duration, output_file, json=json)
    given = [name for name, value in (("--total", total), ("--load", load)) if value is not None]
    given += ["the matrix"] if sent.total_bit_s is not None else []
    if len(given) > 1:
        raise InputError(f"{' and '.join(given)} both say how much is sent: keep one")
    if sent.total_bit_s is not None:
        offered = sent.total_bit_s * scale
    elif total is not None:
        offered = quantity("rate", total, "--total")
    else:
        load = 0.5 if load is None else load
        _check_load(load, "a part of the busiest link")
        offered = total_for(graph, sent, load)
    groups = [Traffic("matrix", pairs=pairs, sizes=size, offered_bit_s=offered)]
    return _write(graph, groups, duration, output_file, json=json)


def _check_load(load: float, what: str) -> None:
    if not 0 < load <= _MAX_LOAD:
        raise InputError(f"--load {load:g}: {what}, above 0 and at most {_MAX_LOAD}")


def _attribute(option: str, name: str | None, unit: str | None) -> Attribute | None:
    from cwnd.topology import Attribute, quantity

    if name is None:
        if unit is not None:
            raise InputError(
                f"--{option}-unit {unit}: of which attribute? name it with --{option}-attribute"
            )
        return None
    kind = "rate" if option == "rate" else "time"
    if unit is not None:
        quantity(kind, f"1 {unit}", f"--{option}-unit")
    return Attribute(name, kind, unit)


def _matrix(graph: Graph, file: Path | None, gravity: str) -> Matrix:
    from cwnd import topology as made

    if file is not None:
        return made.read_matrix(file, graph)
    if gravity == "capacity":
        return made.gravity(graph)
    return made.gravity(graph, {node.name: node.weight or 0.0 for node in graph.nodes})


def _write(
    graph: Graph,
    groups: list[Traffic],
    duration: str,
    file: Path | None,
    *,
    json: bool,
    backoffs: bool = False,
) -> int:
    from cwnd import _core
    from cwnd.files import write_atomically
    from cwnd.topology import scenario

    file = file or Path(f"{graph.name}.toml")
    if file.is_dir():
        raise InputError(f"{file}: a directory is in the way; name a file with -o")
    made_by = shlex.join(["cwnd", *_arguments()])
    text = scenario(graph, groups, made_by=made_by, duration=duration, backoffs=backoffs)
    # The written scenario is parsed first, so that errors appear here and not at its first run.
    _core.parse(text, name=str(file))
    file.parent.mkdir(parents=True, exist_ok=True)
    write_atomically(file, text.encode())
    links = len(graph.directed())
    if json:
        output.document(
            {
                "file": str(file),
                "nodes": len(graph.nodes),
                "links": links,
                "warnings": graph.warnings,
            }
        )
        return 0
    for warning in graph.warnings:
        output.warn(warning)
    output.line(f"{file}: {len(graph.nodes)} nodes, {links} links")
    return 0


def _arguments() -> list[str]:
    """Returns the command line without `--output` and `--json`, which do not change a scenario."""
    words, kept = list(sys.argv[1:]), []
    while words:
        word = words.pop(0)
        if word in ("-o", "--output"):
            words[:1] = []
        elif not word.startswith(("--output=", "-o=")) and word != "--json":
            kept.append(word)
    return kept
