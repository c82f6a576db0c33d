"""The package as others see it."""

from __future__ import annotations

import importlib.metadata
import json
import subprocess
import sys
import tomllib
from pathlib import Path

import jsonschema
import pytest
from conftest import ROOT, SHORT, SWEEP

import cwnd
from cwnd import _core

SHIPPED = sorted([*ROOT.glob("scenarios/*.toml"), *ROOT.glob("benches/scenarios/*.toml")])


def test_the_version_is_the_same_everywhere():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    cargo = tomllib.loads((ROOT / "Cargo.toml").read_text())["workspace"]["package"]
    assert cwnd.__version__ == _core.__version__ == project["version"] == cargo["version"]
    assert importlib.metadata.version("cwnd") == cwnd.__version__


def test_all_public_names_are_there():
    for name in cwnd.__all__:
        assert getattr(cwnd, name) is not None
    assert set(cwnd.__all__) <= set(dir(cwnd))
    with pytest.raises(AttributeError):
        _ = cwnd.nonsense  # type: ignore[attr-defined]


def test_help_does_not_wait_for_polars():
    code = (
        "import sys, cwnd.cli\n"
        "try: cwnd.cli.main(['--help'])\n"
        "except SystemExit: pass\n"
        "assert not {'polars', 'vl_convert', 'numpy'} & set(sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, check=False, text=True)
    assert done.returncode == 0, done.stderr


def schema() -> dict[str, object]:
    generated: dict[str, object] = json.loads(cwnd.json_schema())
    return generated


def test_the_schema_is_a_schema():
    jsonschema.Draft202012Validator.check_schema(schema())


@pytest.mark.parametrize("path", SHIPPED, ids=lambda path: path.name)
def test_shipped_scenarios_conform_to_the_schema(path: Path):
    jsonschema.validate(tomllib.loads(path.read_text()), schema())


@pytest.mark.parametrize("path", SHIPPED, ids=lambda path: path.name)
def test_shipped_scenarios_are_valid_and_raise_no_warning(path: Path):
    assert cwnd.check(path) == []


def test_scenarios_of_these_tests_conform_to_the_schema():
    for text in (SHORT, SWEEP):
        jsonschema.validate(tomllib.loads(text), schema())


@pytest.mark.parametrize(
    ("right", "wrong"),
    [
        ("rtt =", "rrt ="),
        ('"2 s"', "2"),
        ("ecn = true", 'ecn = "yes"'),
        ('"codel"', '"coddle"'),
    ],
)
def test_the_schema_refuses_what_the_reader_refuses(right: str, wrong: str):
    text = SHORT.replace(right, wrong)
    assert text != SHORT
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(tomllib.loads(text), schema())
    with pytest.raises(cwnd.ScenarioError):
        _core.parse(text, name="wrong.toml")


def test_the_reference_names_every_key_of_the_schema():
    reference = cwnd.reference_markdown()
    properties = schema()["properties"]
    assert isinstance(properties, dict)
    for key in properties:
        assert key in reference
