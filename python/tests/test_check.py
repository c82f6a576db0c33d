"""`cwnd run --check`: everything twice; and the steps of this build against the pinned ones."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING

import pytest
from conftest import ROOT

import cwnd
from cwnd import _core
from cwnd.files import checksums
from cwnd.running import simulating

if TYPE_CHECKING:
    from conftest import Cli


def pinned() -> dict[str, str]:
    """The scenarios whose steps the Rust tests, built for debugging, have pinned."""
    source = (ROOT / "tests" / "suite" / "determinism.rs").read_text(encoding="utf-8")
    found = re.findall(r'\(\s*"(\w+)",\s*r#"(.*?)"#,?\s*\)', source, re.DOTALL)
    return dict(found)


def test_the_extension_takes_the_same_steps_as_the_build_for_debugging():
    golden = (ROOT / "tests" / "golden" / "steps.txt").read_text(encoding="utf-8")
    expected = [line.split()[:2] for line in golden.splitlines() if not line.startswith("#")]
    scenarios = pinned()
    assert [name for name, _ in expected] == list(scenarios)
    assert len(scenarios) >= 3

    for name, hash_ in expected:
        [cell] = _core.parse(scenarios[name], name=name).cells
        result = cell.check()
        assert result.steps_hash == hash_, (
            f"{name}: compare `cargo run --example steps -- FILE` with and without --release"
        )
        assert result.digest == cell.run().digest


def test_a_checked_result_is_the_result_and_says_how_it_came_to_be(cli: Cli):
    assert cli("run", "sweep.toml", "-o", "plain", "--no-plots").code == 0
    answer = cli("run", "sweep.toml", "-o", "checked", "--no-plots", "--check")
    assert answer.code == 0, answer.err
    assert "checked: a second run took the same steps" in answer.out

    plain, checked = (
        json.loads((cli.directory / name / "manifest.json").read_text())
        for name in ("plain", "checked")
    )
    assert checked["records_sha256"] == plain["records_sha256"]
    assert plain["steps_hashes"] is None
    hashes = checked["steps_hashes"]
    assert len(hashes) == 18
    assert all(re.fullmatch("[0-9a-f]{16}", each) for each in hashes)
    # Another seed, other draws; the two arms differ from the first ECN-echo on.
    assert len(set(hashes)) == 18

    again = cli("run", "sweep.toml", "-o", "again", "--no-plots", "--check", "-j", 1)
    assert again.code == 0
    manifest = json.loads((cli.directory / "again" / "manifest.json").read_text())
    assert manifest["steps_hashes"] == hashes


def test_a_result_from_before_there_were_checks_can_be_read(cli: Cli):
    assert cli("run", "short.toml", "--no-plots").code == 0
    file = cli.directory / "out" / "short" / "manifest.json"
    manifest = json.loads(file.read_text())
    del manifest["steps_hashes"]
    file.write_text(json.dumps(manifest))
    checksums.write(file.parent)
    assert cwnd.Run.load(file.parent).manifest.steps_hashes is None


def test_a_difference_is_an_error_that_shows_the_first_event():
    class Diverging:
        id = "seed=1"

        def check(self, control: _core.Control) -> _core.Result:
            raise _core.Diverged("event 7 at 12 ns: …")

    with pytest.raises(cwnd.DivergedError, match="run seed=1: event 7 at 12 ns"):
        simulating.Checked()(Diverging(), _core.Control())  # type: ignore[arg-type]


def test_captures_of_a_checked_run_are_refused(cli: Cli):
    answer = cli("run", "short.toml", "--check", "--pcap", "all")
    assert answer.code == 2
    assert "a checked run is two runs at once" in answer.err
