"""`cwnd run` as a user types it, and `--check`, which runs everything twice."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING

import polars as pl
import pytest
from conftest import QUENCHED, ROOT, SHORT, SWEEP

import cwnd
from cwnd import _core
from cwnd.files import checksums
from cwnd.running import cells

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from conftest import Cli


def files(directory: Path) -> dict[str, bytes]:
    return {
        str(file.relative_to(directory)): file.read_bytes()
        for file in sorted(directory.rglob("*"))
        if file.is_file() and file.parent.name != "activity"
    }


def test_a_run_ends_with_a_table_and_the_names_of_its_plots(cli: Cli):
    answer = cli("run", "short.toml")

    assert answer.code == 0, answer.err
    assert "goodput" in answer.out
    lines = answer.out.splitlines()
    plots = [line for line in lines if line.endswith(".svg")]
    assert plots == ["out/short/plots/qdelay.svg", "out/short/plots/timeseries.svg"]
    assert all((cli.directory / plot).stat().st_size > 0 for plot in plots)
    assert lines[-1] == "out/short"


def test_a_result_directory_describes_itself(cli: Cli):
    assert cli("run", "short.toml", "--seed", 7, "--set", "flow.main.rtt=30 ms").code == 0

    out = cli.directory / "out" / "short"
    assert (out / "scenario.toml").read_text() == SHORT
    manifest = json.loads((out / "manifest.json").read_text())
    assert manifest["format"] == "cwnd-result"
    assert manifest["seeds"] == [7]
    assert manifest["seed_override"] == 7
    assert manifest["overrides"] == ["flow.main.rtt=30 ms"]
    assert manifest["activity"]
    # When, where and how long is beside it.
    assert manifest["machine"] == {}
    loaded = cwnd.load(out).manifest
    assert loaded.machine["cores"] >= 1
    assert loaded.cpu_s > 0
    assert loaded.scenario_file == "../../short.toml"
    flows = pl.read_parquet(out / "flows.parquet")
    assert flows["rtt_base_us"].to_list() == [pytest.approx(30_000)]
    assert not list(out.glob(".*"))


def test_the_resolved_cell_runs_again_to_the_same_records(cli: Cli):
    assert cli("run", "sweep.toml", "-o", "first", "--no-plots").code == 0
    runs = pl.read_parquet(cli.directory / "first" / "runs.parquet")
    assert runs["cell_id"].n_unique() == 18
    last = runs.row(-1, named=True)
    text = cli("cell", "first", 17).out
    assert cli("cell", "first", last["run_id"]).out == text == last["resolved"]
    assert cli("cell", "first", 17, "--json").json == {
        "run_id": last["run_id"],
        "resolved": text,
    }

    assert cli("run", cli.write("one.toml", text), "-o", "again", "--no-plots").code == 0

    again = pl.read_parquet(cli.directory / "again" / "runs.parquet")
    assert again["digest"].to_list() == [last["digest"]]
    assert again["cell_id"].to_list() == [last["cell_id"]]


@pytest.mark.parametrize("run", [18, "0017-000000000000"])
def test_a_run_that_a_result_has_not_is_an_input_error(saved: Cli, run: object):
    answer = saved("cell", "sweep", run)
    assert answer.code == 2
    assert f"sweep: no run {run}; it has " in answer.err


def test_threads_do_not_change_a_byte(cli: Cli):
    assert cli("run", "sweep.toml", "--threads", 1, "-o", "one").code == 0
    assert cli("run", "sweep.toml", "--threads", 2, "-o", "two").code == 0

    one, two = files(cli.directory / "one"), files(cli.directory / "two")
    assert one == two
    assert "series.parquet" in one
    assert "plots/sweep.svg" in one
    manifests = [cwnd.load(cli.directory / name).manifest for name in ("one", "two")]
    assert [each.threads for each in manifests] == [1, 2]


def test_another_seed_gives_other_records(cli: Cli):
    documents = [
        cli("run", "short.toml", "--no-plots", "--json", "--seed", seed).json for seed in (1, 2, 1)
    ]

    records = [each["results"][0]["manifest"]["records_sha256"] for each in documents]
    assert records[0] == records[2]
    assert records[0] != records[1]


def test_json_is_one_document_and_nothing_else(cli: Cli):
    answer = cli("run", "sweep.toml", "short.toml", "--json")

    assert answer.code == 0, answer.err
    assert answer.err == ""
    first, second = answer.json["results"]
    assert (first["name"], second["name"]) == ("sweep", "short")
    assert first["directory"] == "out/sweep"
    assert len(first["summary"]) == 6
    assert all(row["n"] == 3 for row in first["summary"])
    assert all(row["goodput_bit_s_ci95"] > 0 for row in first["summary"])
    assert all((cli.directory / plot).exists() for plot in first["plots"])


def test_the_table_of_a_sweep_has_a_row_for_each_point(cli: Cli):
    answer = cli("run", "sweep.toml", "--no-plots")

    rows = [line for line in answer.out.splitlines() if line.lstrip().startswith("NewReno")]
    assert len(rows) == 6
    assert all("±" in row for row in rows)
    assert "18 runs" in answer.out
    assert "3 seeds" in answer.out


def test_quiet_says_only_where_the_result_is(cli: Cli):
    answer = cli("run", "short.toml", "--quiet", "--no-plots", "-o", "here")

    assert answer.code == 0
    assert "goodput" not in answer.out
    assert answer.out.splitlines()[-1] == "here"
    assert answer.err == ""


def test_no_plots_leaves_out_the_plots(cli: Cli):
    assert cli("run", "short.toml", "--no-plots").code == 0
    assert not (cli.directory / "out" / "short" / "plots").exists()


def test_groups_of_flows_have_a_table_of_their_own(cli: Cli):
    cli.write("two.toml", SHORT + '\n[flow.late]\ncount = 2\nrtt = "30 ms"\nstart = "1 s"\n')

    answer = cli("run", "two.toml", "--no-plots")

    assert "main (1)" in answer.out
    assert "late (2)" in answer.out


def test_a_mechanism_that_never_acted_is_said_so(cli: Cli):
    # A window of 6 kB stays below the BDP of 25 kB: the queue never marks.
    text = SHORT.replace("ecn = true", 'ecn = true, max_window = "6 kB"')
    cli.write("idle.toml", text)

    answer = cli("run", "idle.toml", "--no-plots")

    assert "note: ABE never acted" in answer.out
    assert "note: codel never acted" in answer.out
    notes = cli("run", "idle.toml", "--no-plots", "--json").json["results"][0]["notes"]
    assert len(notes) == 2


def test_source_quenches_that_do_nothing_are_said_so(cli: Cli):
    cli.write("nobody-sends.toml", QUENCHED.replace('messenger = "quench"', ""))
    cli.write(
        "nobody-hears.toml",
        QUENCHED.replace('endpoint = { preset = "becn"', "endpoint = { ecn = true"),
    )
    cli.write("both.toml", QUENCHED)

    def notes(name: str) -> list[str]:
        arguments = ("--no-plots", "--json", "--set", "run.duration=20 s", "-o", f"of-{name}")
        return cli("run", name, *arguments).json["results"][0]["notes"]

    assert [note for note in notes("nobody-sends.toml") if "quench" in note] == [
        "source quenches never acted: none came to `main` (in this run)"
    ]
    (unheard,) = notes("nobody-hears.toml")
    assert unheard.endswith(
        " source quenches of `bottleneck` changed nothing: no flow obeys them (in this run)"
    )
    assert notes("both.toml") == []


def test_a_backoff_for_delay_that_never_acted_is_said_so(cli: Cli):
    link = '[run]\nduration = "5 s"\n[dumbbell]\nrate = "10 Mbit/s"\n'
    link += 'queue = { kind = "fifo", limit = "400 packets" }\n'
    ends = 'endpoint = { max_window = "6 kB" }\n'
    flow = '[flow.%s]\nrtt = "40 ms"\ncontroller = %s\n'
    adaptive = '{ kind = "cubic", adaptive_delta = 0.8 }'
    cli.write("idle.toml", link + flow % ("shy", '"delay-aimd"') + ends)
    cli.write("lone.toml", link + flow % ("lone", adaptive) + ends)
    cli.write("busy.toml", link + flow % ("busy", '"delay-aimd"'))

    never = "never acted: no window of `"
    assert f"note: backoff for delay {never}shy`" in cli("run", "idle.toml", "--no-plots").out
    assert f"note: adaptive backoff {never}lone`" in cli("run", "lone.toml", "--no-plots").out
    assert "never acted" not in cli("run", "busy.toml", "--no-plots").out


@pytest.mark.parametrize(
    ("kind", "echo", "meter", "silence"),
    [
        ("bmcc", "load", "adpm", "no ACK told of a load"),
        ("mlcp", "level", "mlcp", "no ACK told of a load"),
        ("xcp", "sum", "xcp", "no ACK told of a window"),
        ("rcp", "last", "rcp", "no ACK told of a rate"),
    ],
)
def test_routers_that_steer_and_are_not_heard_are_said_so(
    cli: Cli, kind: str, echo: str, meter: str, silence: str
):
    deaf = "option_loss = 1.0\n"
    text = f'''[run]
duration = "5 s"
[dumbbell]
rate = "10 Mbit/s"
meter = "{meter}"
reverse_meter = "{meter}"
%s[flow.main]
rtt = "40 ms"
controller = "{kind}"
endpoint = {{ ecn = true, echo = "{echo}" }}
'''
    cli.write("deaf.toml", text % deaf)
    cli.write("hears.toml", text % "")
    told = cli("run", "deaf.toml", "--no-plots").out
    assert f"never acted for `main`: {silence}" in told
    # That no window is reduced by ECN is no fault of theirs.
    assert "never acted" not in cli("run", "hears.toml", "--no-plots").out


def test_a_mechanism_that_acted_is_not_blamed(cli: Cli):
    document = cli("run", "short.toml", "--no-plots", "--json", "--set", "run.duration=20 s").json

    assert document["results"][0]["summary"][0]["reductions_ecn"] > 0
    assert document["results"][0]["notes"] == []


def test_seeds_that_change_nothing_are_said_so(cli: Cli):
    fixed = SHORT.replace('start = "uniform(0 ms, 100 ms)"', "")
    cli.write("fixed.toml", f"{fixed}\n[sweep]\nrepeat = 2\n")

    assert "all seeds gave the same records" in cli("run", "fixed.toml", "--no-plots").out
    assert "all seeds gave" not in cli("run", "sweep.toml", "--no-plots").out


def test_a_silent_arm_of_a_sweep_is_named(cli: Cli):
    axis = '[sweep.axis.ecn]\npath = "flow.main.endpoint.max_window"\n'
    cli.write(
        "arms.toml", f'{SHORT}\n{axis}values = ["none", "6 kB"]\nlabels = ["free", "small"]\n'
    )

    answer = cli("run", "arms.toml", "--no-plots", "--set", "run.duration=20 s")

    assert "(at ecn small)" in answer.out
    assert "(at ecn free)" not in answer.out


def test_a_new_result_replaces_the_old_one(cli: Cli):
    assert cli("run", "short.toml", "--seed", 1).code == 0
    assert cli("run", "short.toml", "--seed", 2, "--no-plots").code == 0

    out = cli.directory / "out" / "short"
    assert json.loads((out / "manifest.json").read_text())["seeds"] == [2]
    assert not (out / "plots").exists()
    # Nor is there a log of runs that are not there any more.
    assert len(list((out / "activity").glob("*.jsonl"))) == 1
    assert [path.name for path in out.parent.iterdir()] == ["short"]


@pytest.mark.parametrize("name", ["../other", "..", ".", "a b/c", "/tmp/elsewhere", ""])
def test_a_result_never_leaves_the_output_directory(cli: Cli, name: str):
    cli.write("odd.toml", SHORT.replace('"short"', f'"{name}"'))

    answer = cli("run", "odd.toml", "--no-plots")

    assert answer.code == 2
    assert "odd.toml:2:" in answer.err
    assert not (cli.directory / "out").exists()


def test_a_file_may_have_any_name(cli: Cli):
    cli.write("my file (2).toml", SHORT.replace('name = "short"', ""))

    answer = cli("run", "my file (2).toml", "--no-plots")

    assert answer.code == 0, answer.err
    assert len(list((cli.directory / "out").glob("*/manifest.json"))) == 1


def test_a_sweep_axis_may_have_the_name_of_a_column(cli: Cli):
    cli.write("axis.toml", SWEEP.replace("axis.arm", "axis.controller"))

    answer = cli("run", "axis.toml", "--no-plots", "--json")

    assert answer.code == 0, answer.err
    flows = pl.read_parquet(cli.directory / "out" / "sweep" / "flows.parquet")
    assert set(flows["axis_controller"]) == {"NewReno", "NewReno+ABE"}
    assert set(flows["controller"]) == {"newreno"}


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
        code: Sequence[str] = ()

        def check(self, control: _core.Control, classes: Sequence[type]) -> _core.Result:
            raise _core.Diverged("event 7 at 12 ns: …")

    with pytest.raises(cwnd.DivergedError, match="run seed=1: event 7 at 12 ns"):
        cells.Checked()(Diverging(), _core.Control())  # type: ignore[arg-type]


def test_captures_of_a_checked_run_are_refused(cli: Cli):
    answer = cli("run", "short.toml", "--check", "--pcap", "all")
    assert answer.code == 2
    assert "a checked run is two runs at once" in answer.err
