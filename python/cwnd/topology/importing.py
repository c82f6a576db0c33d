"""Import of graphs from GraphML and GML files, such as those of the Internet Topology Zoo."""

from __future__ import annotations

import math
import re
import warnings
from collections import Counter
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from cwnd import _core
from cwnd.errors import InputError, explain
from cwnd.topology.graph import Graph, Link, Node, components, unique
from cwnd.topology.writing import quantity, rate_text, time_text

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

#: Mean radius of the earth, in metres (IUGG).
_EARTH_M = 6_371_008.8
#: Speed of light in glass, two thirds of that in vacuum, in m/s.
FIBRE_M_S = 2 / 3 * 299_792_458
#: Multipliers of the unit letters of link speeds.
_LETTERS = {"K": 1e3, "M": 1e6, "G": 1e9, "T": 1e12}
#: Pattern of a speed such as `10 Gbps`, `2.5 Gbit/s` or `155M`; an ambiguous `10-20Gbps` does not
#: match.
_LABEL = re.compile(
    r"\s*(\d+(?:\.\d+)?)\s*([KMGT])(?:b|bps|b/s|bit/s|bits/s|bit|bits)?\s*", re.IGNORECASE
)
#: Number of names in a warning; further ones are counted.
_MAX_NAMED = 3
#: Number of edges' attributes that an error lists.
_MAX_LISTED = 12
#: Largest plausible rate in bit/s; a higher one is an error of the file.
_FASTEST = 1e15
#: Minimum delay of a link in seconds, that of a cable of 200 m.
_SHORTEST_S = 1e-6
#: Largest absolute latitude and longitude, in degrees.
_POLE, _TURN = 90.0, 180.0


#: Fraction of nodes outside the largest component above which the import fails.
_MAX_LOST = 0.1


@dataclass(frozen=True)
class Attribute:
    """An attribute of edges with a rate or a time."""

    name: str
    #: Kind of quantity: `rate` or `time`.
    kind: str
    #: Unit of plain numbers, such as `Mbit/s`; values with a unit need none.
    unit: str | None = None


@dataclass(frozen=True)
class Defaults:
    """Defaults for missing attributes, and options of the import."""

    rate_bit_s: float = 1e9
    delay_s: float = 0.005
    #: Factor of all capacities, which makes a backbone small enough to simulate.
    scale: float = 1.0
    #: Attribute of nodes that is their weight in a gravity model.
    weight: str | None = None
    #: Attributes of edges; `None` uses those of the Topology Zoo.
    rate_from: Attribute | None = None
    delay_from: Attribute | None = None
    #: `True` counts edges of a directed graph in both directions, `False` in one. `None` means one
    #: direction if each edge has its reverse, and both if none has.
    both_ways: bool | None = None
    #: `True` keeps the largest component, however many nodes are lost.
    largest_part: bool = False
    #: Queue of a link as TOML, from its rate in bit/s and its delay in seconds.
    queue: Callable[[float, float], str] = lambda _rate, _delay: '"fifo"'


def read_graph(file: Path, defaults: Defaults) -> Graph:
    """Reads a graph; its warnings list missing and odd attributes, each kind with its count.

    - Capacities: `rate_from`, else `LinkSpeedRaw` (bit/s), else `LinkSpeed` with
      `LinkSpeedUnits`, else a `LinkLabel` that is one speed.
    - Delays: `delay_from`, else the great circle between `Latitude` and `Longitude` of both ends,
      at two thirds of the speed of light.
    - Parallel links become one, with the sum of their rates and the delay of the last: a route
      uses only one of them, and the others would be idle.
    - Edges of a directed graph count in both directions if none has its reverse.
    - Only the largest connected component is kept.

    Raises:
        InputError: It cannot be read, is no such file, has no link, has the reverse of some edges
            and not of others, or more than a tenth of its nodes are outside the largest component.
    """
    if file.suffix.lower() not in _READERS:
        raise InputError(f"{file}: GraphML (.graphml) and GML (.gml) can be imported")
    try:
        text = _core.read_text(file)
    except (OSError, ValueError) as error:
        why = explain(error) if isinstance(error, OSError) else f"{file}: {error}"
        raise InputError(f"{why}; give a graph as GraphML or GML") from error
    return graph_of(text, file, defaults)


def graph_of(text: str, file: Path, defaults: Defaults) -> Graph:
    """Parses the text of a graph as `read_graph` does; `file` determines its name and format.

    Raises:
        InputError: As `read_graph`.
    """
    network = _parsed(text, file)
    counts = Counter[str]()
    shown: dict[str, list[str]] = {}

    def warn(what: str, name: str) -> None:
        counts[what] += 1
        shown.setdefault(what, []).append(name)

    names = _names(network, warn)
    nodes = [
        _node(names[key], data, defaults.weight, warn) for key, data in network.nodes(data=True)
    ]
    remarks = [] if defaults.scale == 1 else [f"All capacities times {defaults.scale:g}."]
    try:
        found = _links(network, names, {node.name: node for node in nodes}, defaults, warn)
        links, notes = _directions(found, defaults, directed=network.is_directed())
        kept = _connected(nodes, links, defaults, warn)
    except InputError as error:
        raise InputError(f"{file}: {error}") from error
    links = [link for link in links if link.source in kept and link.target in kept]
    if not links:
        raise InputError(f"{file}: no link between two nodes: there is nothing to send over")
    if defaults.weight is not None and not any(node.weight for node in nodes):
        raise InputError(f"{file}: no node has a number above zero as `{defaults.weight}`")
    warnings = notes + [_warning(what, count, shown[what]) for what, count in counts.items()]
    in_order = [node for node in nodes if node.name in kept]
    return Graph(_stem(file), in_order, links, warnings, remarks)


def _stem(file: Path) -> str:
    name = re.sub(r'[/\\:*?"<>|\x00-\x1f]', " ", file.stem).strip(" .")
    return name or "graph"


def _warning(what: str, count: int, names: list[str]) -> str:
    first = list(dict.fromkeys(names))
    more = f" and {len(first) - _MAX_NAMED} more" if len(first) > _MAX_NAMED else ""
    return f"{what}: {count} ({', '.join(first[:_MAX_NAMED])}{more})"


def _parsed(text: str, file: Path) -> Any:
    import networkx as nx

    kind = file.suffix[1:].lower()
    reader = _READERS[file.suffix.lower()]
    try:
        with warnings.catch_warnings():
            # The importer reports oddities itself, in terms of the user's options.
            warnings.simplefilter("ignore")
            network = reader(text)
    # networkx's readers fail in many ways on malformed files.
    except (
        *(nx.NetworkXError, SyntaxError, ValueError, KeyError, TypeError),
        *(AttributeError, IndexError, RecursionError, OverflowError),
    ) as error:
        reasons = str(error).strip().splitlines() or ["it ends too early"]
        raise InputError(f"{file}: no {kind} that can be read: {reasons[0]:.300}") from error
    if not len(network):
        raise InputError(f"{file}: the graph has no nodes")
    return network


def _graphml(text: str) -> Any:
    import networkx as nx

    if "<!DOCTYPE" in text or "<!ENTITY" in text:
        raise ValueError("it declares entities, which graphs don't need")
    return nx.parse_graphml(text, force_multigraph=True)


#: Maximum length of a label; tables and figures have no room for longer ones.
_LONGEST_LABEL = 100


#: Strings and comments of GML, which are skipped, the start of a graph, and the multigraph flag.
_GML = re.compile(r'"[^"]*"|#[^\n]*|(?P<graph>\bgraph\s*+\[)|(?P<multi>\bmultigraph\s++1\b)')


#: Flag that permits parallel links in networkx's reader.
_MULTI = " multigraph 1 "
#: Messages of networkx with the position of an error. The text of the file is not shown: the wrong
#: file may have been given, and it may be secret.
_PARSE_ERROR = re.compile(
    r"(?:cannot tokenize|(expected .+?), found) .* at \((\d+), (\d+)\)", re.DOTALL
)


def _gml(text: str) -> Any:
    import networkx as nx

    tokens = {token.lastgroup: token for token in reversed([*_GML.finditer(text)])}
    # Files with parallel links rarely declare themselves as multigraphs.
    added = tokens["graph"].end() if "graph" in tokens and "multi" not in tokens else None
    if added is not None:
        text = f"{text[:added]}{_MULTI}{text[added:]}"
    try:
        return nx.parse_gml(text, label="id")
    except nx.NetworkXError as error:
        parse_error = _PARSE_ERROR.fullmatch(str(error))
        if parse_error is None:
            raise
        line, column = int(parse_error[2]), int(parse_error[3])
        if added is not None and line == text.count("\n", 0, added) + 1:
            before = added - (text.rfind("\n", 0, added) + 1)
            column -= len(_MULTI) if column > before else 0
        why = parse_error[1] or "nothing that GML has begins there"
        raise ValueError(f"line {line}, column {column}: {why}") from None


#: Parsers, by suffix of the file.
_READERS: dict[str, Callable[[str], Any]] = {".graphml": _graphml, ".gml": _gml}


def _names(network: Any, warn: Callable[[str, str], None]) -> dict[Any, str]:
    keys = list(network.nodes)
    labels: list[str] = []
    for key in keys:
        data = network.nodes[key]
        # A label may be the number 0.
        named = (
            value for value in (data.get("label"), data.get("name")) if value not in (None, "")
        )
        text = str(next(named, key))
        text = " ".join("".join(c if c.isprintable() else " " for c in text).split())
        if len(text) > _LONGEST_LABEL:
            text = f"{text[:_LONGEST_LABEL]}…"
            warn(f"nodes whose label has more than {_LONGEST_LABEL} characters, cut", text)
        labels.append(text or f"node {len(labels)}")
    unique_names = unique(labels)
    for label, name in zip(labels, unique_names, strict=True):
        if label != name:
            warn("nodes whose label another has, renamed", name)
    return dict(zip(keys, unique_names, strict=True))


def _number(value: object) -> float | None:
    try:
        number = float(str(value))
    except ValueError:
        return None
    return number if math.isfinite(number) else None


def _node(
    name: str, data: dict[str, Any], weight: str | None, warn: Callable[[str, str], None]
) -> Node:
    y, x = _number(data.get("Latitude")), _number(data.get("Longitude"))
    if x is None or y is None:
        warn("nodes without coordinates", name)
        x = y = None
    elif abs(y) > _POLE or abs(x) > _TURN:
        warn("nodes whose coordinates are nowhere on earth", name)
        x = y = None
    heavy = None if weight is None else _number(data.get(weight)) or 0.0
    return Node(name, x, y, heavy)


def _links(
    network: Any,
    names: dict[Any, str],
    nodes: dict[str, Node],
    defaults: Defaults,
    warn: Callable[[str, str], None],
) -> list[Link]:
    """Builds a link for each pair of nodes, in the file's direction.

    Rates of parallel edges are added; the last one's delay applies.
    """
    directed = network.is_directed()
    found: dict[tuple[str, str], tuple[float, float]] = {}
    edges = list(network.edges(data=True))
    for attribute in (defaults.rate_from, defaults.delay_from):
        _has(attribute, [data for *_, data in edges])
    for source_key, target_key, data in edges:
        source, target = names[source_key], names[target_key]
        name = f"{source}-{target}"
        if source == target:
            warn("links from a node to itself, left out", name)
            continue
        rate = speed(data) if defaults.rate_from is None else _value(data, defaults.rate_from, name)
        if rate is None:
            warn(f"links without a capacity, taken as {rate_text(defaults.rate_bit_s)}", name)
            rate = defaults.rate_bit_s
        if defaults.delay_from is None:
            delay = _delay(nodes[source], nodes[target])
        else:
            delay = _value(data, defaults.delay_from, name)
        if delay is None:
            warn(f"links without a length, taken as {time_text(defaults.delay_s)}", name)
            delay = defaults.delay_s
        ends = (source, target)
        if not directed and (target, source) in found:
            ends = (target, source)
        if ends in found:
            warn("links beside another between the same nodes, added to it", name)
            rate += found[ends][0]
        found[ends] = (rate, delay)
    made = []
    for (source, target), (rate, delay) in found.items():
        scaled = max(1.0, rate * defaults.scale)
        if scaled > _FASTEST:
            raise InputError(f"--scale {defaults.scale:g} makes a link of {scaled:.3g} bit/s")
        queue = defaults.queue(scaled, delay)
        made.append(Link(source, target, scaled, delay, directed, queue))
    return made


def _has(attribute: Attribute | None, edges: list[dict[str, Any]]) -> None:
    """Checks that at least one edge has the attribute.

    Raises:
        InputError: None has it.
    """
    known = {name: None for data in edges for name in data}
    if attribute is not None and attribute.name not in known:
        names = ", ".join(list(known)[:_MAX_LISTED]) or "none"
        option = "rate" if attribute.kind == "rate" else "delay"
        raise InputError(
            f"--{option}-attribute {attribute.name}: no edge has it; attributes of edges: {names}"
        )


def _value(data: dict[str, Any], attribute: Attribute, link: str) -> float | None:
    """Reads an edge's attribute in bit/s or s; `None` if it is missing or no plausible rate.

    A time is at least `_SHORTEST_S`.

    Raises:
        InputError: The value is malformed, or has no unit.
    """
    value = data.get(attribute.name)
    if value is None:
        return None
    option, text = "rate" if attribute.kind == "rate" else "delay", str(value).strip()
    if _number(value) is not None:
        if attribute.unit is None:
            unit = "Mbit/s" if attribute.kind == "rate" else "ms"
            raise InputError(
                f"link {link}: {attribute.name} {text} has no unit: say which it is, for instance"
                f" --{option}-unit {unit}"
            )
        text = f"{text} {attribute.unit}"
    given = quantity(attribute.kind, text, f"link {link}: {attribute.name}")
    if attribute.kind == "time":
        return max(_SHORTEST_S, given)
    return given if 0 < given <= _FASTEST else None


def _directions(
    links: list[Link], defaults: Defaults, *, directed: bool
) -> tuple[list[Link], list[str]]:
    """Marks links as one-way or duplex, and returns a warning if duplex was implicit.

    Raises:
        InputError: The option contradicts the graph, or is needed because some edges lack a
            reverse.
    """
    if not directed:
        if defaults.both_ways is False:
            raise InputError("--one-way: the graph is undirected, and its edges have no direction")
        return links, []
    ends = {(link.source, link.target) for link in links}
    unpaired = [link for link in links if (link.target, link.source) not in ends]
    both_ways, notes = defaults.both_ways, []
    if both_ways is None:
        if unpaired and len(unpaired) < len(links):
            raise InputError(
                f"the graph is directed, and {len(unpaired)} of {len(links)} edges have no reverse"
                f" (such as {unpaired[0].source}-{unpaired[0].target}): --both-ways takes these"
                " both ways, --one-way as they are"
            )
        both_ways = bool(unpaired)
        if both_ways:
            notes = [
                f"directed graph in which no edge has its reverse: {len(unpaired)} edges count both"
                " ways (--one-way takes them as they are)"
            ]
    if not both_ways:
        return links, notes
    return [replace(link, one_way=(link.target, link.source) in ends) for link in links], notes


def speed(data: dict[str, Any]) -> float | None:
    """Capacity of a link in bit/s from its attributes; `None` without a usable one."""
    for rate in _speeds(data):
        if rate is not None and 0 < rate <= _FASTEST:
            return rate
    return None


def _speeds(data: dict[str, Any]) -> Iterator[float | None]:
    yield _number(data.get("LinkSpeedRaw"))
    number = _number(data.get("LinkSpeed"))
    letter = str(data.get("LinkSpeedUnits", "")).strip().upper()[:1]
    if number is not None and letter in _LETTERS:
        yield number * _LETTERS[letter]
    label = _LABEL.fullmatch(str(data.get("LinkLabel", "")))
    if label is not None:
        yield float(label[1]) * _LETTERS[label[2].upper()]


def _delay(a: Node, b: Node) -> float | None:
    if a.x is None or a.y is None or b.x is None or b.y is None:
        return None
    # Rounded to microseconds: cables are no great circles. Nodes at the same place get the minimum.
    return max(_SHORTEST_S, round(great_circle_m(a.x, a.y, b.x, b.y) / FIBRE_M_S, 6))


def great_circle_m(x1: float, y1: float, x2: float, y2: float) -> float:
    """Great-circle distance in metres (haversine) between two points in degrees."""
    lon1, lat1, lon2, lat2 = (math.radians(angle) for angle in (x1, y1, x2, y2))
    h = math.sin((lat2 - lat1) / 2) ** 2
    h += math.cos(lat1) * math.cos(lat2) * math.sin((lon2 - lon1) / 2) ** 2
    return 2 * _EARTH_M * math.asin(min(1.0, math.sqrt(h)))


def _connected(
    nodes: list[Node], links: list[Link], defaults: Defaults, warn: Callable[[str, str], None]
) -> set[str]:
    names = [node.name for node in nodes]
    if any(link.one_way for link in links):
        import networkx as nx

        network = nx.DiGraph()
        network.add_nodes_from(names)
        network.add_edges_from((link.source, link.target) for link in links)
        network.add_edges_from((link.target, link.source) for link in links if not link.one_way)
        # Acknowledgements must come back, so components are strongly connected. They follow the
        # order of the file, because the order of sets varies.
        order = {name: place for place, name in enumerate(names)}
        strong = [
            sorted(part, key=order.__getitem__)
            for part in nx.strongly_connected_components(network)
        ]
        found = sorted(strong, key=lambda part: (-len(part), order[part[0]]))
        what = "nodes that don't reach the largest part and back, left out"
        fix = "--both-ways takes edges without a reverse both ways, --largest-part leaves them out"
    else:
        found = components(names, [(link.source, link.target) for link in links])
        what = "nodes that are not connected to the largest part, left out"
        fix = "--largest-part leaves them out"
    lost = [name for part in found[1:] for name in part]
    if links and len(lost) > _MAX_LOST * len(names) and not defaults.largest_part:
        raise InputError(
            f"{len(lost)} of {len(names)} nodes are outside the largest connected part"
            f" (such as {lost[0]}): {fix}"
        )
    for name in lost:
        warn(what, name)
    return set(found[0])
