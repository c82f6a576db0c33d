"""Results of commands that make no runs: one layout, drawn and compared by kind."""

from __future__ import annotations

import json
import re
import shutil
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import polars as pl
import pytest
from conftest import Cli

import cwnd
from cwnd import report
from cwnd.cli import plot
from cwnd.errors import DamageError, InputError
from cwnd.files import checksums
from cwnd.infer import infer
from cwnd.infer import write as write_inferred
from cwnd.link import Direction, LinkOutcome, Settings
from cwnd.link.command import Records
from cwnd.results import ALL, INFER, LINK, Estimate, number
from cwnd.running import verify
from cwnd.store import open_records, pack
from cwnd.study.agreement import Agreement, Gain, compare
from cwnd.study.agreement import write as write_agreement


def link(short: cwnd.Run, place: Path) -> None:
    about = {"valid": False, "flaws": ["too busy"], "idle": 0.01, "elapsed_s": 3.21}
    report = SimpleNamespace(
        summary=lambda: about,
        links=short.links.drop("run_id", "scenario", "seed"),
        reasons=short.reasons,
        link_series=short.link_series,
        qdelay=short.qdelay,
    )
    scenario = Settings(Direction("1 Mbit/s")).scenario()
    outcome = LinkOutcome(0, report, scenario, ["true"])  # type: ignore[arg-type]
    Records(place, force=True).save(outcome)


def inferred(short: cwnd.Run, place: Path) -> None:
    captures = place.with_name("pcap")
    cwnd.run(_scenario(short, place), pcap="all", pcap_dir=captures)
    write_inferred(infer(next(captures.glob("*/*.pcapng"))), place)


def agreement(short: cwnd.Run, place: Path) -> None:
    place.mkdir(exist_ok=True)
    scenario = _scenario(short, place)
    for world in ("simulator", "linux"):
        cwnd.sweep(scenario, place / world)
    write_agreement(compare(short, short, place))


def _scenario(run: cwnd.Run, place: Path) -> Path:
    file = place.with_name("short.toml")
    file.write_text(run.source)
    return file


WRITERS = {"link": link, "infer": inferred, "agree": agreement}
TABLES = {
    "link": {"links", "reasons", "link_series", "qdelay"},
    "infer": {"connections", "silences"},
    "agree": {"differences", "gains"},
}


@pytest.fixture(params=list(WRITERS))
def kind(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def result(kind: str, short: cwnd.Run, tmp_path: Path) -> Path:
    WRITERS[kind](short, tmp_path / kind)
    return tmp_path / kind


def test_a_manifest_names_the_tables_and_their_rows(result: Path, kind: str):
    manifest = json.loads((result / "manifest.json").read_text())
    assert (manifest["format"], manifest["kind"]) == ("cwnd-result", kind)
    assert manifest["tables"].keys() == TABLES[kind]
    for name, rows in manifest["tables"].items():
        assert pl.read_parquet(result / f"{name}.parquet").height == rows
        count = cwnd.query(result, f"select count(*) as n from {name}")
        assert count["n"].to_list() == [rows]


def test_the_page_of_a_link_says_what_it_was_and_has_units_for_people(
    short: cwnd.Run, tmp_path: Path, cli: Cli
):
    link(short, tmp_path / "link")
    answer = cli("report", tmp_path / "link", "-o", "page.html")
    assert answer.code == 0, answer.err
    page = (cli.directory / "page.html").read_text()
    words = " ".join(re.sub(r"<[^>]+>", " ", page[page.index("<body>") :]).split())
    assert (
        "command true downlink 1 Mbit/s, fifo uplink no rate, fifo RTT none duration 3.2 s" in words
    )
    assert "valid no; too busy" in words
    row = short.links.row(0, named=True)
    assert f"{row['link']} Queueing delay, median {number(row['qdelay_p50_us'] / 1e3)} ms" in words
    assert f"{row['link']} qdelay_max_us {number(row['qdelay_max_us'])}" in words


def test_a_run_names_its_tables_too(short: cwnd.Run, tmp_path: Path):
    short.save(tmp_path / "a", plots=False)
    manifest = json.loads((tmp_path / "a" / "manifest.json").read_text())
    assert manifest["kind"] == "run"
    assert manifest["tables"]["series"] == short.series.height
    assert manifest["tables"]["flows"] == 1


def test_every_file_is_compared_with_its_hash(result: Path, kind: str, cli: Cli):
    assert verify(result).sound
    for name in TABLES[kind]:
        file = result / f"{name}.parquet"
        whole = file.read_bytes()
        file.write_bytes(whole[:-1] + b"?")
        with pytest.raises(DamageError, match=f"make it again with `cwnd {kind}`"):
            cwnd.query(result, f"select * from {name}")
        assert [problem.file for problem in verify(result).problems] == [file]
        assert cli("verify", result).code == 1
        file.write_bytes(whole)


def test_a_second_result_takes_the_place_of_the_first(result: Path, kind: str, short: cwnd.Run):
    (result / "notes.md").write_text("mine")
    before = (result / "SHA256SUMS").read_text()
    (result / "SHA256SUMS").write_text("damaged")

    WRITERS[kind](short, result)

    assert verify(result).sound
    assert (result / "SHA256SUMS").read_text().count("\n") == before.count("\n")
    assert (result / "notes.md").read_text() == "mine"


def test_it_is_no_result_of_runs(result: Path, kind: str, cli: Cli):
    with pytest.raises(InputError, match=f"a result of `cwnd {kind}`, which has no runs"):
        cwnd.load(result)
    answer = cli("run", "short.toml", "-o", result, "--force")
    assert answer.code == 2
    assert f"holds a result of `cwnd {kind}`, which is not replaced" in answer.err


def test_worlds_of_a_comparison_are_verified_with_it(short: cwnd.Run, tmp_path: Path):
    agreement(short, tmp_path / "agree")
    file = tmp_path / "agree" / "linux" / "flows.parquet"
    file.write_bytes(b"")
    assert [problem.file for problem in verify(tmp_path / "agree").problems] == [file]


def test_a_comparison_is_a_table_of_points(short: cwnd.Run, tmp_path: Path):
    found = compare(short, short, tmp_path / "agree")
    (tmp_path / "agree").mkdir()
    write_agreement(Agreement("named", found.rows, [], {}, tmp_path / "agree", repeated=found))

    told = cwnd.query(
        tmp_path / "agree",
        "select repeated, simulator, difference, within from differences"
        " where metric = 'goodput_bit_s' order by repeated",
    )

    goodput = short.per_run()["goodput_bit_s"][0]
    assert told.rows() == [(False, goodput, 0.0, True), (True, goodput, 0.0, True)]


OLD = Path(__file__).parent / "data" / "v1"


@pytest.fixture
def links(tmp_path: Path) -> Path:
    """Two results of `cwnd link`: the second dropped a packet more on its way down."""
    for name, more in (("one", 0), ("two", 1)):
        place = tmp_path / name
        place.mkdir()
        tables = {
            each: pl.read_parquet(OLD / "link" / f"{each}.parquet")
            for each in ("links", "link_series", "qdelay")
        }
        down = pl.col("link").cast(pl.String) == "downlink"
        drops = pl.col("dropped_pkts") + pl.when(down).then(more).otherwise(0)
        tables["links"] = tables["links"].with_columns(drops.alias("dropped_pkts"))
        names = ("link.json", "scenario.toml")
        documents = {each: (OLD / "link" / each).read_bytes() for each in names}
        for file, content in pack(LINK, "link", tables, documents).items():
            (place / file).write_bytes(content)
    return tmp_path


def test_links_are_compared_by_direction(cli: Cli, links: Path):
    found = cli("compare", links / "one", links / "two", "--json").json

    assert found["kind"] == "link"
    changed = [pair for pair in found["pairs"] if pair["difference"]]
    assert changed == [
        {
            "of": "downlink",
            "quantity": "dropped_pkts",
            "before": 0,
            "after": 1,
            "difference": 1,
        }
    ]
    assert "dropped_pkts" in cli("compare", links / "one", links / "two").out
    for bound, code in (("> 0", 1), ("> +1", 0)):
        condition = f"dropped_pkts {bound}"
        assert cli("compare", links / "one", links / "two", "--fail-if", condition).code == code
    unknown = cli("compare", links / "one", links / "two", "--fail-if", "goodput < -5 %")
    assert unknown.code == 2
    assert "`goodput` is no number of these results; there are" in unknown.err


def test_a_real_and_a_simulated_rrul_test_are_compared_by_goodputs_and_pings(cli: Cli):
    link = ("--rate", "4Mbit/s", "--rtt", "40ms")
    assert cli("rrul", *link, "--length", "1s", "--simulated", "-o", "simulated").code == 0
    test = json.loads((cli.directory / "simulated" / "rrul.json").read_text())
    ping = next(each for each in test["pings"] if each["ping"] == "UDP EF")
    before, ping["load_p50_ms"] = ping["load_p50_ms"], ping["load_p50_ms"] + 3
    documents = {"link.json": (OLD / "link" / "link.json").read_bytes()}
    documents["rrul.json"] = json.dumps(test).encode()
    (cli.directory / "real").mkdir()
    tables = {"links": pl.read_parquet(OLD / "link" / "links.parquet")}
    for file, content in pack(LINK, "link", tables, documents).items():
        (cli.directory / "real" / file).write_bytes(content)

    found = cli("compare", "simulated", "real", "--json").json
    assert found["kind"] == "rrul"
    assert len({pair["of"] for pair in found["pairs"]}) == 8 + 5
    (changed,) = (pair for pair in found["pairs"] if pair["difference"])
    assert changed["of"] == "ping UDP EF"
    assert changed["quantity"] == "load_p50_us"
    assert changed["before"] == pytest.approx(1e3 * before)
    assert changed["difference"] == pytest.approx(3e3)
    condition = ("--fail-if", "load_p50 > +2 ms")
    assert cli("compare", "simulated", "real", *condition).code == 1
    assert cli("compare", "real", "simulated", *condition).code == 0
    # Two simulated tests, too, unless metrics of their runs are asked for.
    same = cli("compare", "simulated", "simulated", "--json").json
    assert "ping UDP EF" in {pair["of"] for pair in same["pairs"]}
    assert "Goodput" in cli("compare", "simulated", "simulated", "--metric", "goodput").out
    both = cli("compare", "real", "real", "--json").json["pairs"]
    assert {"downlink", "upload BK", "ping UDP EF"} < {pair["of"] for pair in both}

    # Another run in its place takes its numbers away.
    shutil.copytree(cli.directory / "simulated", cli.directory / "stale")
    again = ("simulated/scenario.toml", "--set", "link.*.rate=1 Mbit/s", "--no-plots", "--force")
    assert cli("run", *again, "-o", "stale").code == 0
    assert list((cli.directory / "stale").glob("rrul*")) == []
    refused = cli("compare", "stale", "real")
    assert refused.code == 2
    assert "is a result of `cwnd link`, and stale is not" in refused.err

    (cli.directory / "simulated" / "rrul.json").write_text("{}")
    damaged = cli("compare", "simulated", "real")
    assert damaged.code == 2
    assert "simulated/rrul.json: damaged" in damaged.err


def test_captures_are_compared_by_their_shares(cli: Cli, tmp_path: Path):
    document = json.loads((OLD / "infer" / "inferred.json").read_text())
    document["shares"][1]["timeout_share"] = 0.5
    tables = {
        name: pl.read_parquet(OLD / "infer" / f"{name}.parquet")
        for name in ("connections", "silences")
    }
    documents = {"inferred.json": json.dumps(document).encode()}
    for file, content in pack(INFER, "captures", tables, documents).items():
        (tmp_path / file).write_bytes(content)

    found = cli("compare", OLD / "infer", tmp_path, "--json").json

    changed = [pair for pair in found["pairs"] if pair["difference"]]
    assert [(pair["of"], pair["quantity"], pair["after"]) for pair in changed] == [
        ("with evidence", "timeout_share", 0.5)
    ]


@pytest.mark.parametrize("other", ["infer", "run"])
def test_results_of_different_commands_are_not_compared(cli: Cli, links: Path, other: str):
    answer = cli("compare", links / "one", OLD / other)
    assert answer.code == 2
    assert "results of the same command can be compared" in answer.err


def test_a_repeated_gain_replaces_the_one_over_the_same_base(tmp_path: Path):
    few, many = (Estimate(n, 1.0, 0.1, 0.1) for n in (3, 8))
    gain = Gain({}, ALL, "arm", "Reno", "Reno+ABE", few, few, few)
    repeated = replace(gain, simulator=many, linux=many)
    found = Agreement("x", [], [gain, replace(gain, base="Linux")], {}, tmp_path)
    found = replace(found, repeated=replace(found, gains=[repeated]))
    chosen = [(each.base, each.linux.n) for each in found.deciding_gains]
    assert chosen == [("Reno", 8), ("Linux", 3)]


def test_any_metric_of_an_agreement_is_drawn_on_request(short: cwnd.Run, tmp_path: Path):
    write_agreement(compare(short, short, tmp_path))
    records = open_records(tmp_path)
    assert records is not None
    bottleneck = pl.col("link") == "bottleneck"
    median_ms = short.links.filter(bottleneck)["qdelay_p50_us"].to_list()[0] / 1e3
    picture = plot.picture(records, metrics=["qdelay_p50_us"])
    assert picture is not None
    assert picture.panels[0].y_label == "Queueing delay, median, on Linux (ms)"
    equal, marks = picture.panels[0].lines
    # There is a tolerance of deciding metrics only.
    assert equal.band is None
    assert marks.x == marks.y == pytest.approx([median_ms])
    page = report.html([report.Recorded(records, "Worlds", picture)])
    assert "Linux − simulator" in page
    assert ">difference</th>" in page
    with pytest.raises(InputError, match="`jitter_us` was not compared; there are goodput_bit_s"):
        plot.picture(records, metrics=["jitter_us"])


@pytest.mark.parametrize(("kind", "name"), [("link", "link"), ("infer", "backoff")])
def test_a_figure_is_drawn_of_what_is_there(cli: Cli, kind: str, name: str):
    place = Path(shutil.copytree(OLD / kind, cli.directory / kind))

    answer = cli("plot", place, "-o", "drawn", "--json")

    assert answer.json["plots"] == [f"drawn/{name}.png", f"drawn/{name}.svg"]
    assert (cli.directory / "drawn" / f"{name}.svg").stat().st_size > 1000
    refused = cli("plot", place, "--kind", "qdelay")
    assert refused.code == 2
    assert f"a result of `cwnd {kind}` has one figure" in refused.err


def test_a_damaged_table_is_named_before_it_is_drawn(cli: Cli, links: Path):
    victim = links / "one" / "link_series.parquet"
    victim.write_bytes(victim.read_bytes()[:-1])
    answer = cli("plot", links / "one")
    assert answer.code == cwnd.DamageError.exit_code
    assert f"{victim}: damaged" in answer.err
    assert checksums.SUMS in [file.name for file in (links / "one").iterdir()]


def test_a_page_has_their_figures_and_numbers(cli: Cli, links: Path):
    answer = cli(
        "report", links / "one", OLD / "infer", OLD / "run", links / "two", "-o", "page.html"
    )

    assert answer.code == 0, answer.err
    page = (cli.directory / "page.html").read_text()
    drawn = json.loads(page.split('id="figures-data">')[1].split("</script>")[0])
    assert {"r1-link", "r2-infer", "r3-timeseries", "r4-link"} <= drawn.keys()
    assert 'id="r1-name">link one</h1>' in page
    assert 'id="r4-name">link two</h1>' in page
    assert "dropped_pkts" in page
    assert "consecutive_share" in page
    for row in ("11053 segments", "50.7 ms (10 to 90 %", "0 connections, 0 of 0 packets marked"):
        assert row in page
    assert "<dd>yes: the router waited 100% of the time</dd>" in page
