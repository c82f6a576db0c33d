"""Results of commands that make no runs: drawn and compared by kind."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import polars as pl
import pytest
from conftest import Cli

import cwnd
from cwnd.files import checksums
from cwnd.results import INFER, LINK
from cwnd.store import pack

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
        documents = {"link.json": (OLD / "link" / "link.json").read_bytes()}
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
    answer = cli("report", links / "one", OLD / "infer", OLD / "run", "-o", "page.html")

    assert answer.code == 0, answer.err
    page = (cli.directory / "page.html").read_text()
    drawn = json.loads(page.split('id="figures-data">')[1].split("</script>")[0])
    assert {"r1-link", "r2-infer", "r3-timeseries"} <= drawn.keys()
    assert "dropped_pkts" in page
    assert "consecutive_share" in page
