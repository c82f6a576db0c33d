"""Figure of the time since the start of the first timer against consecutive timeouts."""

from __future__ import annotations

import polars as pl

from cwnd.figures import Line, Panel, Picture, line_style

#: Limit of the exponential backoff: 2⁶ times the first timeout (TCP*(n), footnote 5).
_MAX_DOUBLINGS = 6
#: Number of consecutive timeouts that the axis shows; longer rows are rare and would compress it.
_MAX_ROUNDS = 7


def picture(silences: pl.DataFrame) -> Picture | None:
    """Draws time since the start of the first timer against consecutive timeouts.

    The time is in units of the row's first timeout, as inferred from round-trip times. References
    show a timeout that doubles and one that stays constant.

    `silences` is the table of that name. The result is `None` without timeouts.
    """
    rounds = _rounds(silences)
    if rounds.is_empty():
        return None
    last = min(int(rounds["round"].max() or 1), _MAX_ROUNDS)  # type: ignore[arg-type]
    points = rounds.filter(pl.col("round") <= last)
    at = [float(each) for each in range(1, last + 1)]
    doubled = [sum(2.0 ** min(i, _MAX_DOUBLINGS) for i in range(int(n))) for n in at]
    references = (("doubled each time", doubled), ("as long as the first", at))
    lines = [
        Line(
            at,
            list(y),
            colour=line_style.colour(index),
            dashes=line_style.dashes(index),
            label=name,
        )
        for index, (name, y) in enumerate(references)
    ]
    by_round = points.group_by("round").agg(
        pl.col("times").median().alias("median"),
        pl.col("times").quantile(0.1).alias("low"),
        pl.col("times").quantile(0.9).alias("high"),
        pl.len(),
    )
    by_round = by_round.sort("round")
    lines.append(
        Line(
            by_round["round"].cast(pl.Float64).to_list(),
            by_round["median"].to_list(),
            colour=line_style.colour(2),
            joined=False,
            marker=line_style.marker(0),
            label="median of the capture, 10 to 90 %",
            band=(by_round["low"].to_list(), by_round["high"].to_list()),
        )
    )
    ticks = [(x, f"{int(x)} ({n})") for x, n in zip(at, _counts(by_round, last), strict=True)]
    panel = Panel(
        lines,
        x_label="Timeouts in a row (how many silences)",
        y_label="Time waited / first timeout",
        y_limits=(0, None),
        ticks=ticks,
    )
    return Picture([panel], height=3.2)


def _counts(by_round: pl.DataFrame, last: int) -> list[int]:
    counts = dict(by_round.select("round", "len").iter_rows())
    return [counts.get(n, 0) for n in range(1, last + 1)]


def _rounds(silences: pl.DataFrame) -> pl.DataFrame:
    """Computes the number of consecutive timeouts and the elapsed time at each silence's end.

    The time is in units of the row's first timeout.
    """
    timeouts = silences.filter(
        (pl.col("kind") == "timeout") & (pl.col("what") == "data") & (pl.col("rto_ms") > 0)
    )
    rows = timeouts.with_columns(
        (pl.col("round") == 1).cum_sum().alias("row"),
        (pl.col("round") - 1 + pl.col("timeouts")).alias("last"),
    )
    return rows.select(
        pl.col("last").alias("round"),
        (pl.col("waited_ms").cum_sum().over("row") / pl.col("rto_ms").first().over("row")).alias(
            "times"
        ),
    )
