"""The algorithm vectors: fresh, valid, and what their README says of them."""

from __future__ import annotations

import importlib
import json
import re
import sys
from itertools import product

import jsonschema
import pytest
from conftest import ROOT

from cwnd import _core

VECTORS = ROOT / "vectors"
REFERENCE = ROOT / "tests" / "reference"


@pytest.fixture(scope="module")
def reference():
    sys.path.insert(0, str(REFERENCE))
    try:
        yield importlib.import_module
    finally:
        sys.path.remove(str(REFERENCE))


def vectors(name):
    """A file, with the rows of its `columns` made objects."""
    file = json.loads((VECTORS / f"{name}.json").read_text(encoding="utf-8"))
    if columns := file.get("columns"):
        for case in file["cases"]:
            case["events"] = [
                {"event": kind, **named(columns, kind, row)} for kind, *row in case["events"]
            ]
    return file


def named(columns, kind, row):
    """The values of a row by name; one whose column has columns of its own is a row, too."""
    assert len(row) <= len(columns[kind])
    return {
        key: named(columns, key, value) if key in columns and isinstance(value, list) else value
        for key, value in zip(columns[kind], row, strict=False)
        if value is not None
    }


def names():
    return sorted(path.stem for path in VECTORS.glob("*.json") if path.stem != "schema")


@pytest.mark.parametrize("name", names())
def test_the_vectors_are_what_the_reference_computes(reference, name):
    written = (VECTORS / f"{name}.json").read_text(encoding="utf-8")
    assert reference("generate").text(name) == written, "run make vectors"


def test_there_is_a_file_for_each_algorithm(reference):
    assert names() == sorted(reference("generate").FILES)


@pytest.mark.parametrize("name", names())
def test_the_vectors_fit_their_schema(name):
    schema = json.loads((VECTORS / "schema.json").read_text(encoding="utf-8"))
    written = json.loads((VECTORS / f"{name}.json").read_text(encoding="utf-8"))
    jsonschema.validate(fewer(written), schema, cls=jsonschema.Draft202012Validator)
    if "columns" in written:
        event = jsonschema.Draft202012Validator(schema["$defs"][written["kind"]])
        for case in fewer(vectors(name))["cases"]:
            for fields in case["events"]:
                event.validate(fields)


def fewer(file):
    """Keeps one event of each kind in a case: the rest are alike, and many."""
    for case in file["cases"]:
        kinds = {}
        for event in case["events"]:
            kinds.setdefault(event[0] if isinstance(event, list) else event["event"], event)
        case["events"] = list(kinds.values())
    return file


def test_every_verdict_of_every_queue_is_there(reference):
    files = reference("generate").FILES
    for name in (name for name, (kind, *_) in files.items() if kind == "queue"):
        cases = vectors(name)["cases"]
        found = {hit for case in cases for event in case["events"] for hit in hits(event)}
        reasons = {reason for _, reason in found} - {"overlimit"}
        source = ROOT / "crates" / "aqm" / "src" / f"{name.replace('-', '_')}.rs"
        named = re.findall(r'Reason::named\("(\w+)"\)', source.read_text(encoding="utf-8"))
        assert reasons >= set(named), name
        marks = any(case["parameters"].get("ecn") for case in cases)
        verdicts = ("drop", "mark") if marks else ("drop",)
        assert reasons, name
        assert found == {("drop", "overlimit"), *product(verdicts, reasons)}, name


def hits(event):
    """Verdicts and reasons of an event of a queue."""
    told = {"enqueue": 6, "dequeue": 3}.get(event[0])
    return [tuple(hit[1:]) for hit in event[told]] if told else []


def test_cases_of_controllers_name_one_that_there_is(reference):
    there_are = {name for name, *_ in _core.kinds()["controller"]}
    files = reference("generate").FILES
    for name in (name for name, (kind, *_) in files.items() if kind == "controller"):
        otherwise = name.removesuffix("-sender")
        named = {case.get("controller", otherwise) for case in vectors(name)["cases"]}
        assert named <= there_are, name


def test_the_readme_has_a_row_for_each_file():
    readme = (VECTORS / "README.md").read_text(encoding="utf-8")
    rows = "\n".join(line for line in readme.splitlines() if line.startswith("|"))
    assert [name for name in names() if f"`{name}.json`" not in rows] == []


def test_each_file_is_replayed_by_a_test_of_rust():
    sources = [path.read_text(encoding="utf-8") for path in (ROOT / "crates").rglob("*.rs")]
    # Some tests replay all files of a kind.
    of_kind = {n: f'vector_files::of_kind("{vectors(n)["kind"]}")' for n in names()}
    calls = {n: (f"/vectors/{n}.json", of_kind[n]) for n in names()}
    assert [
        n for n in names() if not any(call in text for text in sources for call in calls[n])
    ] == []


def test_a_decision_that_hangs_on_the_last_digits_is_refused(reference):
    exact = reference("exact")
    a = exact.real("0.1")
    assert exact.less(a, exact.real("0.1000001"))
    assert not exact.less(a, a)
    with pytest.raises(exact.AmbiguousError):
        exact.less(a, exact.real("0.10000000001"))
    with pytest.raises(exact.AmbiguousError):
        exact.floor(exact.real("14479.9999999"))
