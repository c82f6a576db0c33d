"""Scenarios built in Python, versions of the format, and the JSON Schema against the reader."""

from __future__ import annotations

import json
import math
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import jsonschema
import numpy as np
import pytest
from conftest import NEEDED, SHORT, SWEEP
from hypothesis import given
from hypothesis import strategies as st

import cwnd
from cwnd import _core
from cwnd.errors import InputError
from cwnd.running.plans import Source, override_list

if TYPE_CHECKING:
    from conftest import Cli


def built(**changes: object) -> cwnd.Scenario:
    sections: dict[str, object] = {
        "name": "short",
        "run": {"duration": "2 s", "sample": "50 ms"},
        "dumbbell": {"rate": "10 Mbit/s", "queue": "codel"},
        "flow": {
            "main": {
                "rtt": "20 ms",
                "start": "uniform(0 ms, 100 ms)",
                "controller": {"kind": "newreno", "preset": "abe"},
                "endpoint": {"ecn": True},
            }
        },
    }
    return cwnd.Scenario(**(sections | changes))  # type: ignore[arg-type]


def test_a_scenario_built_in_python_is_the_file():
    assert tomllib.loads(built().to_toml()) == tomllib.loads(SHORT)


def test_it_runs_to_the_same_records(short: cwnd.Run):
    assert cwnd.run(built()).manifest.records_sha256 == short.manifest.records_sha256


def test_a_sweep_is_built_the_same_way(sweep: cwnd.Run):
    axes = {
        "arm": {
            "path": "flow.main.controller",
            "values": [{"kind": "newreno"}, {"kind": "newreno", "preset": "abe"}],
            "labels": ["NewReno", "NewReno+ABE"],
        },
        "rtt": {"path": "flow.main.rtt", "values": ("10 ms", "20 ms", "40 ms")},
    }
    scenario = built(name="sweep", sweep={"repeat": np.int64(3), "axis": axes})
    assert tomllib.loads(scenario.to_toml()) == tomllib.loads(SWEEP)
    assert cwnd.run(scenario).manifest.records_sha256 == sweep.manifest.records_sha256


def test_its_errors_are_those_of_a_file():
    with pytest.raises(cwnd.ScenarioError, match="beta_ecn") as caught:
        cwnd.run(
            built(flow={"main": {"rtt": "20 ms", "controller": {"kind": "newreno", "beta_enc": 1}}})
        )
    assert caught.value.diagnostics[0]["file"] == "<python>"


def test_none_stands_for_the_text_none():
    assert '"none"' in built(run={"duration": "2 s", "sample": None}).to_toml()
    assert cwnd.run(built(run={"duration": "2 s", "sample": None})).series.height == 0


def test_what_toml_cannot_hold_is_refused_with_its_place():
    with pytest.raises(TypeError, match=r"flow\.main\.start"):
        built(flow={"main": {"start": object()}})


def test_overrides_of_a_mapping_are_those_of_the_command_line(scenarios: Path):
    short = scenarios / "short.toml"
    changed = cwnd.run(short, set={"flow.main.rtt": "30 ms", "flow.main.endpoint.ecn": False})
    listed = cwnd.run(short, set=["flow.main.rtt=30 ms", "flow.main.endpoint.ecn=false"])
    assert changed.manifest.records_sha256 == listed.manifest.records_sha256
    assert changed.flows["rtt_base_us"].to_list() == [pytest.approx(30_000)]


toml_values = st.recursive(
    st.booleans()
    | st.integers(min_value=-(2**63), max_value=2**63 - 1)
    | st.floats(allow_nan=False)
    | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=6,
)


@given(toml_values)
def test_an_override_is_one_toml_value(value: object):
    (override,) = override_list({"a.b": value})
    path, _, text = override.partition("=")
    assert path == "a.b"
    assert tomllib.loads(f"v = {text}")["v"] == value


@pytest.mark.parametrize("override", ["flow.main.rtt", "=3", " = 3"])
def test_an_override_without_path_or_value_is_refused(override: str):
    with pytest.raises(InputError, match="PATH=VALUE"):
        override_list([override])


def test_one_string_is_no_list_of_overrides(scenarios: Path):
    with pytest.raises(TypeError, match="path=value"):
        cwnd.run(scenarios / "short.toml", set="flow.main.rtt=30 ms")


@pytest.mark.parametrize("seed", [-1, 2**63])
def test_a_seed_fits_a_toml_integer(scenarios: Path, seed: int):
    with pytest.raises(InputError, match="a seed is"):
        cwnd.run(scenarios / "short.toml", seed=seed)


def test_a_path_with_a_nul_is_an_input_error():
    with pytest.raises(InputError):
        Source.of("a\0b")


def test_check_returns_warnings_and_raises_errors(scenarios: Path):
    assert cwnd.check(scenarios / "short.toml") == []
    warnings = cwnd.check(scenarios / "short.toml", set={"flow.main.endpoint.ecn": False})
    assert [each["severity"] for each in warnings] == ["warning"]
    with pytest.raises(cwnd.ScenarioError):
        cwnd.check(scenarios / "short.toml", set={"run.duration": "-1 s"})


def test_an_override_that_an_axis_replaces_at_every_point_is_refused(scenarios: Path):
    for changes in (
        {"flow.main.controller.beta_ecn": 0.9},
        {"flow.main.controller": {"kind": "newreno", "beta_ecn": 0.9}},
        {"flow.main": {"rtt": "50 ms", "controller": {"kind": "newreno", "beta_ecn": 0.9}}},
    ):
        with pytest.raises(cwnd.ScenarioError, match=r"the axis `arm` sets `flow\.main\.contr"):
            cwnd.check(scenarios / "sweep.toml", set=changes)
    cwnd.check(scenarios / "sweep.toml", set=["dumbbell.rate=8 Mbit/s"])
    cwnd.check(scenarios / "sweep.toml", set=['sweep.axis.rtt.values=["50 ms"]'])


def test_an_override_is_refused_where_an_axis_sets_that_key_of_every_group(tmp_path: Path):
    of_all = tmp_path / "all.toml"
    of_all.write_text(SWEEP.replace('"flow.main.rtt"', '"flow.*.rtt"'))
    with pytest.raises(cwnd.ScenarioError, match=r"the axis `rtt` sets `flow\.main\.rtt`"):
        cwnd.check(of_all, set={"flow.main.rtt": "1 s"})
    cwnd.check(of_all, set={"flow.*.count": 2})


SECOND = SHORT.replace("schema = 1", "schema = 2")


@pytest.mark.parametrize("command", [["check"], ["run", "--no-plots", "-o", "out"]])
def test_a_file_of_schema_1_has_one_note_with_its_place(cli: Cli, command: list[str]) -> None:
    answer = cli(*command, "short.toml")
    assert answer.code == 0, answer.err
    (told,) = [line for line in answer.err.splitlines() if line.startswith("note")]
    assert told.startswith("note: short.toml:1:10: a file of schema 1")
    assert "write `schema = 2`" in told
    cli.write("second.toml", SECOND)
    assert "note" not in cli(*command, "second.toml").err


def test_quiet_runs_have_no_notes(cli: Cli) -> None:
    answer = cli("run", "short.toml", "--quiet", "--no-plots")
    assert answer.code == 0, answer.err
    assert "note" not in answer.err


def test_check_lists_notes_beside_its_diagnostics(cli: Cli) -> None:
    (found,) = cli("check", "short.toml", "--json").json["files"]
    assert (found["diagnostics"], found["total"]) == ([], 0)
    (note,) = found["notes"]
    assert (note["severity"], note["key"], note["line"]) == ("note", "schema", 1)


def test_a_scenario_built_in_python_may_have_schema_2() -> None:
    run = cwnd.run(
        cwnd.Scenario(
            schema=2,
            run={"duration": "1 s"},
            dumbbell={"rate": "10 Mbit/s"},
            flow={"main": {"rtt": "40 ms"}},
        )
    )
    lines = run.resolved[0].splitlines()
    assert lines[0] == "schema = 2"
    assert {'noise = "path"', 'stack = "linux"', 'preset = "linux"  # of the stack'} <= set(lines)
    rtt_us = run.flows["rtt_base_us"].item()
    assert rtt_us != 40_000
    assert 39_800 <= rtt_us <= 40_200


def test_the_resolved_file_of_schema_2_runs_again_to_the_same_records(cli: Cli) -> None:
    cli.write("second.toml", SECOND.replace("preset", "beta_ecn = 0.8, preset"))
    first = cwnd.run(cli.directory / "second.toml")
    cli.write("again.toml", first.resolved[0])
    again = cwnd.run(cli.directory / "again.toml")
    assert again.resolved[0] == first.resolved[0]
    assert again.manifest.records_sha256 == first.manifest.records_sha256


SCHEMA: dict[str, Any] = json.loads(cwnd.json_schema())
VALIDATOR = jsonschema.Draft202012Validator(SCHEMA)
#: Required keys of a table of each kind.
GIVEN = {
    "bytes": {"size": "1 MB"},
    "on-off": {"size": "1 MB", "off": "1 s"},
    "poisson": {"size": "1 MB", "interval": "1 s"},
    "udp": {"size": "1 kB", "rate": "1 Mbit/s"},
    "web": {"size": "1 MB"},
}
COMPANIONS = {
    "udp.on": {"off": "1 s"},
    "udp.off": {"on": "1 s"},
    "dumbbell.reorder": {"reorder_delay": "1 ms"},
    "endpoint.rtt_from": {"echo": "delay"},
    # Of two bounds the other one is out of the way.
    "vegas.alpha": {"beta": 1e300},
    "vegas.beta": {"alpha": 0},
    "htcp.least_beta": {"most_beta": math.nextafter(1.0, 0.0)},
    "htcp.most_beta": {"least_beta": 5e-324},
    "bmcc.least": {"high": math.nextafter(1.0, 0.0)},
    "bmcc.high": {"least": 5e-324},
    "bmcc.beta_least": {"beta_most": math.nextafter(1.0, 0.0)},
    "bmcc.beta_most": {"beta_least": 5e-324},
    "mlcp.least": {"high": math.nextafter(1.0, 0.0)},
    "mlcp.high": {"least": 5e-324},
    "mlcp.beta_least": {"beta_most": math.nextafter(1.0, 0.0)},
    "mlcp.beta_most": {"beta_least": 5e-324},
}
#: Path of each section whose plain keys are tested.
SECTIONS = {
    "run": ["run"],
    "dumbbell": ["dumbbell"],
    "flow-dumbbell": ["flow", "main"],
    "sweep": ["sweep"],
}
#: Values of every type, at the ends of what integers, floats and quantities hold.
VALUES: list[Any] = [
    *(True, False, "none", "nonsense", "", [1], {}),
    *(-(2**63), -1, 0, 1, 2, 3, 10_000_000, 10_000_001, 2**31, 2**32 - 1, 2**32, 2**53, 2**63 - 1),
    *(-1.0, -0.5, 5e-324, 0.5, 1.5, 2.5, 1e-300),
    *("0 s", "1 ns", "100 ms", "5", "-1 ms", "1 ms 2", "0 B", "1 B", "1 kB", "64 KiB", "5 TB"),
    *("1 bit/s", "10 Mbit/s", "10 packets", "1 BDP", "uniform(1 ms, 2 ms)", "pareto(2, 30 kB)"),
]


def resolve(schema: dict[str, Any]) -> dict[str, Any]:
    """A schema in place of a reference to it."""
    reference = schema.get("$ref")
    return SCHEMA["$defs"][reference.removeprefix("#/$defs/")] if reference else schema


def leaves(schema: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """All forms that a value may have, each by itself."""
    found = {**resolve(schema), **{k: v for k, v in schema.items() if k != "$ref"}}
    for form in found.get("anyOf", []):
        yield from leaves(form)
    if "anyOf" not in found:
        yield found


def is_plain(schema: dict[str, Any]) -> bool:
    """`True` if a schema accepts values only, no table and no list."""
    return all(
        leaf.get("type") not in ("object", "array", None) or "enum" in leaf or "const" in leaf
        for leaf in leaves(schema)
    )


def places() -> Iterator[tuple[str, list[str], dict[str, Any], str, dict[str, Any]]]:
    """A name, where the table stands, what it holds besides, the key and its schema."""
    homes = {
        "queue": ["dumbbell", "queue"],
        "controller": ["flow", "main", "controller"],
        "workload": ["flow", "main", "workload"],
        "endpoint": ["flow", "main", "endpoint"],
    }
    for name, home in homes.items():
        for table in SCHEMA["$defs"][name]["anyOf"]:
            properties = table.get("properties", {})
            owner, stand = name, home
            if "packet_threshold" in properties:
                owner, stand = "quic", ["flow", "quic", "endpoint"]
            kind = properties.get("kind", {}).get("const")
            besides = {"kind": kind, **GIVEN.get(kind, {})} if kind else {}
            if table.get("additionalProperties"):  # files of code
                continue
            for key, schema in properties.items():
                if key not in ("kind", "preset"):
                    yield f"{kind or owner}.{key}", stand, besides, key, schema
    for name, home in SECTIONS.items():
        for key, schema in SCHEMA["$defs"][name]["properties"].items():
            # A trace is a file.
            if is_plain(schema) and key != "trace":
                yield f"{name}.{key}", home, {}, key, schema


PLACES = list(places())


def document(home: list[str], besides: dict[str, Any], key: str, *value: object) -> dict[str, Any]:
    """A scenario with this value, or without it."""
    root: dict[str, Any] = {
        "run": {"duration": "10 s", "sample": "none"},
        "dumbbell": {"rate": "10 Mbit/s"},
        "flow": {"main": {"rtt": "100 ms"}},
    }
    if "quic" in home:
        root["flow"] = {"quic": {"rtt": "100 ms", "stack": "quic"}}
    if besides.get("kind") in NEEDED:
        meter, echo = NEEDED[besides["kind"]]
        root["dumbbell"]["meter"] = meter
        root["flow"]["main"]["endpoint"] = {"ecn": True, "echo": echo}
    table = root
    for part in home:
        table = table.setdefault(part, {})
    table.update(besides)
    table.update(COMPANIONS.get(f"{besides.get('kind', home[-1])}.{key}", {}))
    if besides.get("kind") == "udp" and value in ((), ("none",)):
        table.pop("on" if key == "off" else "off", None)
    table.pop(key, None)
    if value:
        table[key] = value[0]
    elif key in besides or (key in ("duration", "rate", "rtt") and home[-1] != "controller"):
        table[key] = besides.get(key, {"duration": "10 s", "rtt": "100 ms"}.get(key, "10 Mbit/s"))
    return root


def toml(value: object) -> str:
    """A value in one line of TOML."""
    if isinstance(value, dict):
        return "{ " + ", ".join(f"{key} = {toml(v)}" for key, v in value.items()) + " }"
    if isinstance(value, list):
        return "[" + ", ".join(map(toml, value)) + "]"
    return repr(value) if isinstance(value, float) else json.dumps(value, ensure_ascii=False)


def read(root: dict[str, Any]) -> str:
    """Returns the errors of the reader on a scenario, or an empty string."""
    text = "\n".join(f"{key} = {toml(value)}" for key, value in root.items())
    assert tomllib.loads(text) == root
    try:
        _core.parse(text, name="a.toml")
    except _core.ScenarioError as error:
        return str(error)
    return ""


def is_a_quantity(value: object) -> bool:
    """`True` for a number with a unit or a distribution, of whose size the schema knows little."""
    return (isinstance(value, str) and value[:1].isdigit()) or str(value).endswith(")")


def agree(home: list[str], besides: dict[str, Any], key: str, value: object) -> None:
    root = document(home, besides, key, value)
    valid, told = VALIDATOR.is_valid(root), read(root)
    if valid and told and is_a_quantity(value):
        return
    assert valid == (not told), f"{key} = {value!r}: the schema says {valid}, the reader {told!r}"


@pytest.mark.parametrize(
    ("home", "besides", "key", "schema"), [p[1:] for p in PLACES], ids=[p[0] for p in PLACES]
)
def test_schema_and_reader_accept_and_refuse_the_same(
    home: list[str], besides: dict[str, Any], key: str, schema: dict[str, Any]
):
    edges = []
    for leaf in leaves(schema):
        for edge in ("minimum", "exclusiveMinimum", "maximum", "exclusiveMaximum"):
            if (at := leaf.get(edge)) is not None:
                one = 1 if leaf["type"] == "integer" else 0.25
                near = (
                    ()
                    if leaf["type"] == "integer"
                    else (math.nextafter(at, -9), math.nextafter(at, 9))
                )
                edges += [at, at - one, at + one, *near]
        edges += leaf.get("enum", [])
    for value in [*VALUES, *edges]:
        agree(home, besides, key, value)
    absent = document(home, besides, key)
    assert VALIDATOR.is_valid(absent)
    assert not read(absent), "what is absent has its default, or was given"


NUMBERS = [
    p for p in PLACES if any(leaf.get("type") in ("integer", "number") for leaf in leaves(p[4]))
]


@given(
    st.sampled_from(NUMBERS),
    st.integers(-(2**63), 2**63 - 1)
    | st.integers(-3, 3)
    | st.floats(allow_nan=False, allow_infinity=False).filter(lambda x: not x.is_integer())
    | st.floats(-0.5, 1.5).filter(lambda x: not x.is_integer()),
)
def test_schema_and_reader_agree_on_any_number(place: Any, value: float):
    _, home, besides, key, _ = place
    agree(home, besides, key, value)


def test_every_kind_of_parameter_is_looked_at():
    names = {name for name, *_ in PLACES}
    assert {
        "newreno.abc_limit",
        "cubic.c",
        "red.max_p",
        "udp.size",
        "endpoint.ack_every",
        "run.until_fair",
        "sweep.repeat",
    } <= names
    assert len(names) > 100
    assert len(NUMBERS) > 20
    bounded = [
        name
        for name, *_, schema in PLACES
        if any("exclusiveMinimum" in leaf for leaf in leaves(schema))
    ]
    assert "cubic.beta_ecn" in bounded
