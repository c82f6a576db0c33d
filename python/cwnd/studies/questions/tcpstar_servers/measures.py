"""Tables, figure and page of what real servers and clients came to with TCP*(n).

`scripts/tcpstar_linux.py` leaves the runs; `scripts/tcpstar_page.py` writes from them, or from as
many as there are, runs.csv, curves.csv, README.md and the figure. Where an arm has none of a world
the tables keep what they have of it. The simulator's are of the seeds that Linux ran.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import polars as pl

from cwnd.figures import Figure, Line, Panel, Picture, line_style
from tcpstar_cases import CASES, FOLDER, RESULTS, STARS, Case, bursts, traces

if TYPE_CHECKING:
    from pathlib import Path

#: World, as the tables name it → the file with its requests.
WORLDS = {"Linux": "linux.json", "simulator": "after.parquet", "as Linux can": "bounded.parquet"}
#: The same worlds, in the order of the table of bursts.
RATIOS = ("Linux", "as Linux can", "simulator")
DASHES = dict(zip(RATIOS, line_style.DASHES, strict=False))
#: Shares of requests that are answered later: what a curve is drawn from.
LEVELS = [10 ** (-exponent / 15) for exponent in range(46)]
#: Quantiles of the table.
QUANTILES = (0.5, 0.9, 0.99, 0.999)


def waits(file: Path) -> tuple[pl.Series, dict[str, Any]]:
    """Returns response times, s, null for requests without an answer; and facts about the run."""
    if file.suffix == ".parquet":
        return pl.read_parquet(file)["response_s"], {"valid": True}
    told = json.loads(file.read_text(encoding="utf-8"))
    answers = pl.DataFrame(
        told["answers"], schema=["start_s", "size", "response_s", "late_s"], orient="row"
    )
    response = pl.when(pl.col("response_s") > 0).then("response_s")
    waited = answers.select(response.alias("response_s"))["response_s"]
    rest = pl.Series("response_s", [None] * (told["asked"] - len(waited)), dtype=pl.Float64)
    down = told["directions"]["downlink"]
    known = {
        "valid": told["link"]["valid"],
        "drops": sum(down["drops"].values()),
        "delivered_pkts": down["delivered_pkts"],
        "late_p99_s": answers["late_s"].quantile(0.99),
        **{name: (told["tcpstar"] or {}).get(name) for name in ("timeouts", "bounded")},
        "to_1_s": (told["tcpstar"] or {}).get("bounded_above"),
    }
    return waited.append(rest), known


def beyond(waited: pl.Series, share: float) -> float | None:
    """Least response time of the slowest `share` of requests, s; infinite without an answer."""
    return waited.fill_null(float("inf")).quantile(1 - share, "higher")


def collect() -> None:
    """The tables, from what there is; runs that are not there stay as the tables have them."""
    known, drawn = (_kept(name) for name in ("runs.csv", "curves.csv"))
    runs, curves = [], []
    for case in CASES:
        for star in case.stars:
            n, seeds = STARS[star], []
            for world, ending in WORLDS.items():
                where = {"case": case.name, "n": n, "world": world}
                there: list[dict[str, Any]] = []
                pooled = []
                for seed in range(1, case.seeds + 1):
                    # Without TCP*(n) there is one simulator.
                    file = RESULTS / case.name / f"{n}-{seed}-{ending}"
                    file = (
                        file if n or world == "Linux" else file.with_name(f"0-{seed}-after.parquet")
                    )
                    if file.exists() and (world == "Linux" or seed in seeds):
                        waited, more = waits(file)
                        pooled.append(waited)
                        there.append(_row(case, where, seed, waited) | more)
                if not pooled:
                    there = _of(known, where)
                    curves += _of(drawn, where)
                else:
                    waited = pl.concat(pooled)
                    curves += [where | {"share": p, "s": beyond(waited, p)} for p in LEVELS]
                runs += there
                if world == "Linux":
                    # The simulator is beside Linux with the same requests.
                    seeds = [row["seed"] for row in there]
    FOLDER.mkdir(exist_ok=True)
    pl.DataFrame(runs, infer_schema_length=None).write_csv(FOLDER / "runs.csv", float_precision=4)
    pl.DataFrame(curves, infer_schema_length=None).write_csv(
        FOLDER / "curves.csv", float_precision=5
    )


def _row(case: Case, where: dict[str, Any], seed: int, waited: pl.Series) -> dict[str, Any]:
    """Returns the row of a run: counts, mean and quantiles of response times."""
    row = {"claim": case.claim, **where, "seed": seed, "asked": len(waited)}
    row |= {"answered": len(waited) - waited.null_count(), "mean_s": waited.mean()}
    return row | {f"p{100 * q:g}_s": beyond(waited, 1 - q) for q in QUANTILES}


def _kept(name: str) -> list[dict[str, Any]]:
    """The rows of a table, if there is one."""
    file = FOLDER / name
    return pl.read_csv(file, infer_schema_length=None).to_dicts() if file.exists() else []


def _of(rows: list[dict[str, Any]], where: dict[str, Any]) -> list[dict[str, Any]]:
    return [row for row in rows if all(row[name] == value for name, value in where.items())]


def _mean(runs: pl.DataFrame, column: str, **of: object) -> float | None:
    found = runs.filter(**of)[column].mean()
    return found if isinstance(found, float) else None


def _shown(value: float | None) -> str:
    return "–" if value is None else f"{value:.3g}"


def _table_of_traces(runs: pl.DataFrame) -> str:
    rows = [
        "| trace | arm | runs | answers a run | median, s | 90 % | 99 % | 99.9 % | dropped |",
        "|---|---|---:|---:|---:|---:|---:|---:|---:|",
    ]
    for case in traces():
        for star, n in STARS.items():
            of = runs.filter(case=case.name, n=n, world="Linux")
            if of.is_empty():
                continue
            cells = []
            for q in QUANTILES:
                both = (
                    _mean(runs, f"p{100 * q:g}_s", case=case.name, n=n, world=world)
                    for world in ("simulator", "Linux")
                )
                cells.append(" → ".join(map(_shown, both)))
            drops = of["drops"].sum() / (of["drops"].sum() + of["delivered_pkts"].sum())
            rows.append(
                f"| {'I' * int(case.name[-1])} | {star} | {of.height} |"
                f" {of['answered'].mean():.0f} |"
                f" {' | '.join(cells)} | {100 * drops:.0f} % |"
            )
    return "\n".join(rows)


def _table_of_bursts(runs: pl.DataFrame) -> str:
    rows = [
        "| on and off for | TCP | TCP\\*(∞) | Linux: TCP ÷ TCP\\*(∞) | as Linux can | simulator |",
        "|---|---:|---:|---:|---:|---:|",
    ]
    for case in bursts():
        ratios, shown = [], []
        for world in RATIOS:
            pair = [
                _mean(runs, "p99_s", case=case.name, n=n, world=world)
                for n in (0, STARS["TCP*(∞)"])
            ]
            shown.append(pair)
            ratios.append(pair[0] / pair[1] if pair[0] and pair[1] else None)
        if shown[0][0] is None:
            continue
        period = float(case.name.removeprefix("period-"))
        cells = [f"{period:g} s", *(f"{_shown(value)} s" for value in shown[0])]
        rows.append(f"| {' | '.join([*cells, *map(_shown, ratios)])} |")
    return "\n".join(rows)


def page() -> str:
    """The page, by its template and the tables beside it."""
    runs = pl.read_csv(FOLDER / "runs.csv")
    text = (FOLDER / "template.md").read_text(encoding="utf-8")
    text = text.replace("{traces}", _table_of_traces(runs))
    return text.replace("{bursts}", _table_of_bursts(runs))


def picture() -> Picture:
    """Response times of the traces, and the 99th percentile where connections come in bursts."""
    curves, runs = pl.read_csv(FOLDER / "curves.csv"), pl.read_csv(FOLDER / "runs.csv")
    curves = curves.filter(pl.col("s").is_finite())
    panels = []
    for case in traces():
        lines = []
        for index, (star, n) in enumerate(STARS.items()):
            for world, label in (("Linux", star), ("simulator", None)):
                of = curves.filter(case=case.name, n=n, world=world)
                line = Line(of["s"].to_list(), of["share"].to_list(), line_style.colour(index))
                line.dashes, line.label = DASHES[world], label
                lines.append(line)
        panel = Panel(lines, x_log=True, y_log=True, y_label="share that waits longer")
        panel.x_label = f"response time, s (Trace {'I' * int(case.name[-1])})"
        panels.append(panel)
    panels.append(_bursts(runs))
    return Picture(panels, 5.4, columns=2, shared_x="none", shared_y="none")


def _bursts(runs: pl.DataFrame) -> Panel:
    """The 99th percentile where connections come in bursts; dashes are those of the traces."""
    periods = [float(case.name.removeprefix("period-")) for case in bursts()]
    lines = []
    for index, world in enumerate(RATIOS):
        how = {"dashes": DASHES[world], "marker": line_style.marker(index)}
        lines.append(Line([], [], "#777777", label=world, **how))
        # TCP has no such bounds.
        for star in ("TCP*(∞)",) if world == "as Linux can" else ("TCP", "TCP*(∞)"):
            of = runs.filter(claim="T5", n=STARS[star], world=world)
            found = dict(of.group_by("case").agg(pl.col("p99_s").mean()).iter_rows())
            values = [found.get(case.name) for case in bursts()]
            lines.append(Line(periods, values, line_style.colour(list(STARS).index(star)), **how))
    panel = Panel(lines, x_log=True, y_limits=(0, None), y_label="99th percentile, s")
    panel.x_label = "on and off for so many seconds (Trace I)"
    return panel


def main() -> None:
    """Writes all of it."""
    if RESULTS.exists():
        collect()
    Figure(picture()).save(FOLDER / "web.png")
    (FOLDER / "README.md").write_text(page(), encoding="utf-8")


if __name__ == "__main__":
    main()
