"""Timeouts that `cwnd infer` finds in captures at the clients, beside the actual ones (§ 2.4).

Each run is simulated once more, with identical packets, and captured; its flow table is the ground
truth.
"""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Literal, TypeAlias

import polars as pl

from cwnd.figures import Panel, Picture, line_style
from cwnd.infer import infer
from cwnd.running import run as simulate
from cwnd.study import ONE_PANEL, at, curve, labels

if TYPE_CHECKING:
    from cwnd.results import Run
    from cwnd.study import Point, Results

#: Links whose packets the clients receive and send.
_AT_CLIENTS = "near+near.reverse"
#: Port of the first flow in captures.
_PORT = 49152
#: Maximum number of consecutive timeouts in the figure, as longer rows are rare.
_ROUNDS = 7
#: Interval of the samples that show when timers expire.
_SAMPLE = "5 ms"
_KEYS = ("connections", "silences", "expiries")

#: Names of the ways to tell timeouts: the paper's rule alone, or all evidence of `cwnd infer`.
By: TypeAlias = Literal["rule", "evidence"]


def recall(results: Results, figure: str, of: Point, by: By = "rule") -> list[float]:
    """Recall: share of the timeouts that were found, for each seed.

    By the rule a silence stands for all timeouts in it, since the paper does not say how many its
    tool counts. By evidence it stands for as many as were inferred.
    """
    rows = _scored(results[figure], of, by)
    return rows.select(pl.col("right") / pl.col("expired")).to_series().to_list()


def precision(results: Results, figure: str, of: Point, by: By = "rule") -> list[float]:
    """Precision: share of the found timeouts that were there, for each seed.

    By the rule it is the share of the silences with a timeout.
    """
    rows = _scored(results[figure], of, by)
    return rows.select(pl.col("true") / pl.col("found")).to_series().to_list()


def consecutive(results: Results, figure: str, of: Point, by: By = "rule") -> list[float]:
    """Share of the connections that were rightly said to have two timeouts in a row, or not."""
    rows = at(results[figure], _found(results[figure])["connections"], of)
    column = "rule_consecutive" if by == "rule" else "consecutive"
    right = (pl.col(column) > 1) == (pl.col("rto_nth_2") > 0)
    return rows.group_by("seed").agg(right.mean()).sort("seed")[column].to_list()


def growth(results: Results, figure: str, of: Point, stated: list[str]) -> list[float]:
    """Share of the connections with an inferred backoff for which it is one of `stated`."""
    rows = at(results[figure], _found(results[figure])["connections"], of)
    rows = rows.filter(pl.col("backoff").is_in(["doubled", "constant", "late"]))
    right = pl.col("backoff").is_in(stated).mean()
    return rows.group_by("seed").agg(right).sort("seed")["backoff"].to_list()


def inference(run: Run) -> Picture:
    """Time since the first timer started against consecutive timeouts, in units of the first one.

    The values are those at the clients: medians with the 10th to the 90th percentile, beside the
    values for doubling and for no backoff.
    """
    rounds = range(1, _ROUNDS + 1)
    expected = (
        ("doubled each time", [2.0**n - 1 for n in rounds]),
        ("as long as the first", [float(n) for n in rounds]),
    )
    drawn = [curve(rounds, times, n, label=name) for n, (name, times) in enumerate(expected)]
    silences = _found(run)["silences"].filter((pl.col("timeouts") > 0) & (pl.col("rto_ms") > 0))
    for index, n in enumerate(labels(run, "n")):
        seen = _rows_of_timeouts(at(run, silences, {"n": n}))
        ends = seen["low"].to_list(), seen["high"].to_list()
        how = {"marker": line_style.marker(index), "joined": False, "interval": ends}
        drawn.append(curve(seen["round"], seen["median"], index, label=f"{n}, seen", **how))
    panel = Panel(
        drawn,
        x_label="Timeouts in a row",
        y_label="Time waited / first timeout",
        y_log=True,
        y_ticks=[(2.0**n, f"{2**n}") for n in range(8)],
    )
    return Picture([panel], *ONE_PANEL)


def _scored(run: Run, of: Point, by: By) -> pl.DataFrame:
    """Timeouts and found ones for each seed.

    Columns: `expired` timeouts, and of these the `right` ones; `found` ones, and of these `true`.
    """
    found = _found(run)
    silences = at(run, found["silences"], of).filter(
        pl.col("rule") == 1 if by == "rule" else pl.col("timeouts") > 0
    )
    expiries = at(run, found["expiries"], of)
    there = pl.col("expired").fill_null(0)
    counted = matched(silences, expiries).with_columns(
        right=there if by == "rule" else pl.min_horizontal(there, "timeouts"),
        true=(there > 0).cast(pl.Int64) if by == "rule" else pl.min_horizontal(there, "timeouts"),
        found=pl.lit(1) if by == "rule" else pl.col("timeouts"),
    )
    sums = counted.group_by("seed").agg(pl.col("right", "true", "found").sum())
    return expiries.group_by("seed").len("expired").join(sums, on="seed").sort("seed")


def matched(silences: pl.DataFrame, expiries: pl.DataFrame) -> pl.DataFrame:
    """Silences with the number of timers that `expired` in each; null for none.

    A timer counts in the first silence of its connection that ends after its expiry, if that began
    before. So no false timeout is offset by a missed one elsewhere.
    """
    keys = ["run_id", "server_port"]
    rows = silences.sort("ended_s").with_row_index("silence")
    inside = (
        expiries.sort("expired_s")
        .join_asof(
            rows.select(*keys, "silence", "began_s", "ended_s"),
            left_on="expired_s",
            right_on="ended_s",
            by=keys,
            strategy="forward",
            check_sortedness=False,
        )
        .filter(pl.col("began_s") <= pl.col("expired_s"))
    )
    return rows.join(inside.group_by("silence").len("expired"), on="silence", how="left")


def _rows_of_timeouts(silences: pl.DataFrame) -> pl.DataFrame:
    rows = silences.with_columns((pl.col("round") == 1).cum_sum().alias("row"))
    times = pl.col("waited_ms").cum_sum().over("row") / pl.col("rto_ms").first().over("row")
    rows = rows.select((pl.col("round") - 1 + pl.col("timeouts")).alias("round"), times.alias("t"))
    seen = (
        rows.filter(pl.col("round") <= _ROUNDS)
        .group_by("round")
        .agg(
            pl.col("t").quantile(0.1).alias("low"),
            pl.col("t").median().alias("median"),
            pl.col("t").quantile(0.9).alias("high"),
        )
    )
    return seen.sort("round")


def _found(run: Run) -> dict[str, pl.DataFrame]:
    """Findings in the captures of all runs, with the ground truth, cached in the result."""
    if not all(("inference", key) in run.derived for key in _KEYS):
        found = [_of_one(run, index) for index in range(run.runs.height)]
        for key, frames in zip(_KEYS, zip(*found, strict=True), strict=True):
            run.derived["inference", key] = pl.concat(frames)
    return {key: run.derived["inference", key] for key in _KEYS}


def _of_one(run: Run, index: int) -> tuple[pl.DataFrame, pl.DataFrame, pl.DataFrame]:
    keys = run.runs[index].select("run_id", *run.key_columns)
    with tempfile.TemporaryDirectory() as scratch:
        file = Path(scratch) / "run.toml"
        file.write_text(run.resolved[index], encoding="utf-8")
        again = simulate(file, set={"run.sample": _SAMPLE}, pcap=_AT_CLIENTS, pcap_dir=scratch)
        (capture,) = Path(scratch).glob("*/*.pcapng")
        found = infer(capture)
    port = (pl.col("flow_id").cast(pl.Int64) + _PORT).alias("server_port")
    expiries = _expiries(again)
    # Connections of which not all expiries show are left out; so far there were none.
    there = (
        again.flows.select("flow_id", port, "rto_nth_2", "rto_count")
        .join(expiries.group_by("flow_id").len("seen"), on="flow_id", how="left")
        .filter(pl.col("rto_count") == pl.col("seen").fill_null(0))
        .select("flow_id", "server_port", "rto_nth_2")
    )
    connections = there.join(
        found.connections.select(
            pl.col("server_port").cast(pl.Int64),
            "connection",
            "rule_consecutive",
            "consecutive",
            pl.col("backoff").cast(pl.String),
        ),
        on="server_port",
        how="left",
    )
    return tuple(
        keys.join(frame, how="cross")
        for frame in (
            connections.with_columns(pl.col("rule_consecutive", "consecutive").fill_null(0)),
            _silences(found.silences.join(connections, on="connection", maintain_order="left")),
            expiries.join(there, on="flow_id").select("server_port", "expired_s"),
        )
    )  # type: ignore[return-value]


def _silences(rows: pl.DataFrame) -> pl.DataFrame:
    """Silences in the data, each from where its timers may have expired to its end."""
    rows = rows.filter(pl.col("what").cast(pl.String) == "data")
    # A hole may be filled without a gap; then its timers began that long before.
    ms = pl.max_horizontal("gap_ms", pl.col("waited_ms") + pl.col("rtt_ms"))
    began = pl.when(pl.col("timeouts") > 0).then(pl.col("ended_s") - ms / 1e3)
    return rows.select(
        "server_port",
        "rule",
        "round",
        pl.col("timeouts").cast(pl.Int64),
        "waited_ms",
        "rto_ms",
        pl.min_horizontal(began, "began_s").alias("began_s"),
        "ended_s",
    )


def _expiries(run: Run) -> pl.DataFrame:
    """Expiries of the timers of data, by `flow_id`, at their times `expired_s`.

    An expiry leaves a window of one segment, and retransmits one. Other retransmissions are sent by
    larger windows.
    """
    retransmitted = pl.col("retrans").cast(pl.Int64).diff().over("flow_id")
    return (
        run.series.sort("flow_id", "time_s")
        .with_columns(sent=retransmitted)
        .filter((pl.col("sent") > 0) & (pl.col("snd_cwnd_pkts") <= 1.0))
        .select("flow_id", expired_s="time_s")
    )
