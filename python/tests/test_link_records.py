"""Options of `cwnd link`, and the scenario and records that they become."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import polars as pl
import pytest
import svgs

import cwnd
from cwnd.figures import line_style
from cwnd.link import Direction, Settings, presentation

if TYPE_CHECKING:
    from conftest import Cli

    from cwnd.running.plans import Scenario


def test_a_directory_with_something_else_in_it_is_left_alone(cli: Cli):
    other = cli.directory / "other"
    other.mkdir()
    (other / "thesis.tex").write_text("years of work")
    answer = cli("link", "-o", other, "--", "true")
    assert answer.code == 2
    assert [file.name for file in other.iterdir()] == ["thesis.tex"]


def _series(rows: dict[str, list[tuple[float, int, int | None]]]) -> pl.DataFrame:
    """Time series of a link: time in s, bytes sent, bytes of capacity."""
    columns = ("time_s", "sent_bytes", "capacity_bytes")
    return pl.concat(
        pl.DataFrame(dict(zip(columns, zip(*of, strict=True), strict=True))).with_columns(
            link=pl.lit(name),
            sojourn_us=pl.lit(1500.0),
            qlen_pkts=pl.lit(3),
            drop=pl.lit(1),
            mark=pl.lit(0),
            deq=pl.lit(9),
        )
        for name, of in rows.items()
    )


def test_the_figure_shows_throughput_within_the_capacity():
    # 1 Mbit/s of 2 for a second, then 2 of 2, and a last sample in the middle of an interval.
    down = [(0.1 * n, 12_500 * min(n, 10) + 25_000 * max(n - 10, 0), 25_000 * n) for n in range(23)]
    picture = presentation.picture(
        _series({"downlink": down, "uplink": [(0.0, 0, None), (2.2, 0, None)]})
    )
    assert picture is not None
    first, second, *_ = svgs.read(picture)
    (path,) = first.paths[line_style.colour(0)]
    drawn = [first.at(place) for place in path]
    assert {round(x, 2): round(y, 2) for x, y in drawn} == {
        0: 1,
        0.5: 1,
        1: 2,
        1.5: 2,
        2: 2,
        2.2: 2,
    }
    (edges,) = next(iter(first.bands.values()))
    assert {round(first.at(place)[1], 2) for place in edges} == {0, 2}
    assert not second.bands, "a line without a rate has no capacity"


def test_the_meter_counts_between_two_readings():
    class Fake:
        rows = ((1.0, 125_000, 0, None, 0, 0), (1.0, 1_250_000, 4, 2500.0, 7, 3))

        def live(self) -> list[tuple[float, int, int, float | None, int, int]]:
            return list(self.rows)

    fake, meter = Fake(), presentation.Meter()
    line = meter.line(fake)  # type: ignore[arg-type]
    assert line == "1 s  up 1.00 Mbit/s 0 ms  down 10.00 Mbit/s 2 ms 7 dropped 3 marked"
    assert meter.line(fake) == "", "no sample came"  # type: ignore[arg-type]
    fake.rows = ((3.0, 125_000, 0, None, 0, 0), (3.0, 1_500_000, 0, 2500.0, 7, 4))
    line = meter.line(fake)  # type: ignore[arg-type]
    assert line == "3 s  up 0.00 Mbit/s 0 ms  down 1.00 Mbit/s 0 ms 1 marked"


def test_the_point_of_a_capture_needs_its_file(cli: Cli):
    answer = cli("link", "--pcap-at", "command", "--", "true")
    assert (answer.code, "--pcap-at command: which file?" in answer.err) == (2, True)


def test_an_option_that_is_no_toml_is_named(cli: Cli):
    answer = cli("link", "--queue", '{ kind = "codel", ', "--", "true")
    assert answer.code == 2
    assert answer.err.startswith("error: --queue '{ kind = \"codel\", ': this is not TOML")


def test_options_become_the_scenario_of_both_directions():
    settings = Settings(
        downlink=Direction(rate="10 Mbit/s", queue="codel", buffer="1 BDP", loss=0.01),
        uplink=Direction(
            rate="1 Mbit/s",
            queue='{ kind = "pie", target = "10 ms" }',
            meter="vcp",
            messenger='{ kind = "quench", ect_only = false }',
        ),
        rtt="100 ms",
        ecn=False,
    )
    link = _sections(settings.scenario())["link"]
    assert link["downlink"]["queue"] == {"kind": "codel", "limit": "1 BDP", "ecn": False}
    assert link["uplink"]["queue"] == {"kind": "pie", "target": "10 ms", "ecn": False}
    assert link["uplink"]["meter"] == {"kind": "vcp"}
    assert link["uplink"]["messenger"] == {"kind": "quench", "ect_only": False}
    assert link["downlink"]["messenger"] == {"kind": "none"}
    assert (link["downlink"]["from"], link["downlink"]["to"]) == ("caller", "command")
    assert (link["downlink"]["loss"], link["uplink"]["loss"]) == (0.01, 0.0)


@pytest.mark.parametrize("ecn", [True, False, None])
def test_the_scenario_has_the_newest_defaults_and_ecn_where_it_was_asked_for(ecn: bool | None):
    direction = Direction("1 Mbit/s", queue="codel")
    settings = Settings(direction, direction, rtt="10 ms", ecn=ecn)
    sections = _sections(settings.scenario())
    assert sections["schema"] == 2
    assert sections["flow"]["command"].get("endpoint") == ({"ecn": True} if ecn else None)
    assert cwnd.check(settings.scenario()) == []


@pytest.mark.parametrize("rtt", [None, "0 ms", "1 ns", "40ms"])
def test_any_round_trip_time_is_one_of_a_scenario(rtt: str | None):
    direction = Direction(rate="10 Mbit/s")
    scenario = Settings(direction, direction, rtt=rtt).scenario()
    assert cwnd.check(scenario) == []
    bdp_rtt = "100 ms" if rtt in (None, "0 ms") else rtt
    assert _sections(scenario)["link"]["uplink"]["bdp_rtt"] == bdp_rtt


def test_the_recorded_scenario_is_as_long_as_the_run_and_goes_where_most_data_went():
    settings = Settings(Direction(rate="10 Mbit/s"), Direction(rate="1 Mbit/s"), rtt="100 ms")
    for up, down, ends in (
        (40e3, 9e6, ("caller", "command")),
        (9e5, 3e4, ("command", "caller")),
    ):
        directions = {"uplink": {"sent_bit_s": up}, "downlink": {"sent_bit_s": down}}
        sections = _sections(settings.scenario_of({"elapsed_s": 3.2, "directions": directions}))
        assert sections["run"]["duration"] == "3.200 s"
        flow = sections["flow"]["command"]
        assert (flow["from"], flow["to"], flow["edge_rtt"]) == (*ends, "0 s")
        # As in the router, half of the round trip lies behind each queue.
        assert {link["delay"] for link in sections["link"].values()} == {"0.050000000 s"}
    idle = {name: {"sent_bit_s": 0.0} for name in directions}
    shortest = settings.scenario_of({"elapsed_s": 0.0, "directions": idle})
    assert cwnd.check(shortest) == []


@pytest.mark.parametrize(
    ("options", "told"),
    [
        (("--rate", "10"), ["--rate 10: a rate needs a unit"]),
        (
            ("--rate", "1Mbit/s", "--uplink-rate", "2Mps", "--buffer", "5 pockets"),
            ["--uplink-rate 2Mps: ", "--buffer 5 pockets: "],
        ),
        (("--rate", "1Mbit/s", "--queue", '{ kind = "pie", tarket = "1 ms" }'), ["--queue {"]),
        (("--rtt", "fast"), ["--rtt fast: "]),
        (("--reorder", "0.1"), ["--reorder 0.1: "]),
    ],
)
def test_what_is_wrong_with_an_option_names_it_and_no_file(
    cli: Cli, options: tuple[str, ...], told: list[str]
):
    answer = cli("link", *options, "--", "true")
    assert answer.code == 2
    assert "the link" not in answer.err
    for each in told:
        assert answer.err.count(each) == 1


def _sections(scenario: Scenario) -> dict[str, Any]:
    import tomllib

    return tomllib.loads(scenario.to_toml())
