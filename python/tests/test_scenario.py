"""Scenarios built in Python are the same as files."""

from __future__ import annotations

import tomllib
from pathlib import Path

import numpy as np
import pytest
from conftest import SHORT, SWEEP
from hypothesis import given
from hypothesis import strategies as st

import cwnd
from cwnd.errors import InputError
from cwnd.running.plans import Source, override_list


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
