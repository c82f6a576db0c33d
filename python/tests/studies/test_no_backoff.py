"""TCP without backoff: the numbers say what the page says."""

from __future__ import annotations

import re

import polars as pl
import pytest
from conftest import ROOT

from cwnd.studies.questions.no_backoff.measures import GAIN, MAPS, QUANTITIES, TIMESTAMPS

FOLDER = ROOT / "python/cwnd/studies/questions/no_backoff"
BARE, STAMPED = TIMESTAMPS


@pytest.fixture(scope="module")
def maps():
    rows = pl.read_csv(FOLDER / "results.csv", infer_schema_length=None)
    return {each.name: rows.filter(map=each.name) for each in MAPS}


def test_values_quoted_in_the_text_are_of_the_records(maps):
    known = set()
    for rows in maps.values():
        for row in rows.to_dicts():
            for name, (_, digits) in QUANTITIES.items():
                sign = "+" if name.endswith("change") else ""
                mean = f"{row[name]:{sign}.{digits}f}".replace("-", "−")
                known.add(f"{mean} ± {row[f'{name}_ci']:.{digits}f}")
    quoted = re.findall(r"[+−]?[\d.]+ ± [\d.]+\d", (FOLDER / "page.md").read_text("utf-8"))
    assert len(quoted) > 10
    assert set(quoted) <= known


def test_it_loses_where_path_and_buffer_take_longer_than_the_first_timeout(maps):
    timers = maps["timers"].filter(pl.col("timestamps") == BARE)
    for row in timers.iter_rows(named=True):
        first = {"100 ms": 0.1, "300 ms": 0.3, "1 s": 1.0, "3 s": 3.0}[row["y"].split(", ")[1]]
        # RTTs of 80 to 120 ms, a full buffer of multiples of 100 ms.
        longest = 0.12 + 0.1 * float(row["x"])
        change, width = row[GAIN], row[f"{GAIN}_ci"]
        assert (change + width < -3) == (longest > first), row
        assert (change - width > 0) == (longest < first), row


def test_timestamps_end_most_of_it(maps):
    def costs(timestamps: str) -> float:
        rows = maps["queue"].filter(
            pl.col("timestamps") == timestamps, pl.col(GAIN) + pl.col(f"{GAIN}_ci") < 0
        )
        return rows[GAIN].sum()

    assert costs(BARE) < 3 * costs(STAMPED) < 0


def test_pauses_cost_little_and_random_loss_makes_it_win(maps):
    gaps = maps["gaps"]
    assert gaps[GAIN].min() > -5
    assert gaps["spurious_tcp"].median() > 80
    lossy = maps["loss"].filter(pl.col("x") == "30")
    assert (lossy[GAIN] - lossy[f"{GAIN}_ci"] > 0).all()
    slight = maps["loss"].filter(pl.col("x").is_in(["1", "2", "5"]), pl.col("timestamps") == BARE)
    assert (slight[GAIN] + slight[f"{GAIN}_ci"] < 0).all()


def test_what_stacks_have_takes_most_of_the_cost_and_of_the_gain(maps):
    def change(name: str, x: str, y: str) -> float:
        return maps[name].filter(x=x, y=y, timestamps=BARE)[GAIN].item()

    # Without any of it the points are those of the maps before.
    for name, y, others in (("queue", "10", "1.2"), ("gaps", "10", "50"), ("loss", "20", "50")):
        assert change(f"repair-{name}", "RFC 6298", y) == change(name, y, others)
    # F-RTO ends most of what pauses cost, and little where the first packets wait.
    assert change("repair-gaps", "F-RTO", "10") > change("repair-gaps", "RFC 6298", "10") / 3
    assert change("repair-queue", "F-RTO", "10") < 0.8 * change("repair-queue", "RFC 6298", "10")
    assert change("repair-queue", "RACK-TLP", "10") > change("repair-queue", "RFC 6298", "10") / 4
    assert change("repair-loss", "RACK-TLP", "20") < change("repair-loss", "RFC 6298", "20") / 4


def test_many_users_alone_are_no_problem(maps):
    many = maps["users"].filter(pl.col("x") == "10000")
    assert (many[GAIN] - many[f"{GAIN}_ci"] > 0).all()
