"""Results in memory: data frames of runs, metrics, notes, tables.

Groups of flows are an axis; `*` is all flows. `Metric.of` states what a metric describes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from cwnd.lazy import lazy_exports

if TYPE_CHECKING:
    from cwnd.results.comparing import (
        Comparison,
        Difference,
        Point,
        by_point,
        compare,
        difference_at,
        of_seeds,
    )
    from cwnd.results.conditions import Condition, Verdict
    from cwnd.results.data import Data, LazyTables, Resolved
    from cwnd.results.flent import FlentData, flent_data, until_end
    from cwnd.results.idle import limit_packets
    from cwnd.results.manifest import (
        AGREE,
        FORMAT,
        FORMAT_VERSION,
        INFER,
        LINK,
        RUN,
        Axis,
        Header,
        Manifest,
        described,
        sha256,
    )
    from cwnd.results.merging import RESULT, merged
    from cwnd.results.metrics import (
        ALL,
        METRICS,
        RESERVED,
        By,
        Metric,
        groups,
        known_group,
        main_link,
        metric,
        values_of,
        without_unit,
    )
    from cwnd.results.responses import (
        Distribution,
        counts_of,
        counts_of_times,
        distribution,
        survival,
    )
    from cwnd.results.run import Run
    from cwnd.results.stats import Estimate, interval_ends, welch
    from cwnd.results.summaries import all_and_groups, summarise, summary
    from cwnd.results.table import (
        COLUMNS,
        IN_FIGURES,
        OF_DATAGRAMS,
        OF_REQUESTS,
        MetricUnit,
        Spread,
        TextTable,
        describe_spreads,
        group_table,
        number,
        result_table,
        spreads,
        summary_table,
    )
    from cwnd.results.unsampled import row_counts, rows_metadata

__all__ = [
    "AGREE",
    "ALL",
    "COLUMNS",
    "FORMAT",
    "FORMAT_VERSION",
    "INFER",
    "IN_FIGURES",
    "LINK",
    "METRICS",
    "OF_DATAGRAMS",
    "OF_REQUESTS",
    "RESERVED",
    "RESULT",
    "RUN",
    "Axis",
    "By",
    "Comparison",
    "Condition",
    "Data",
    "Difference",
    "Distribution",
    "Estimate",
    "FlentData",
    "Header",
    "LazyTables",
    "Manifest",
    "Metric",
    "MetricUnit",
    "Point",
    "Resolved",
    "Run",
    "Spread",
    "TextTable",
    "Verdict",
    "all_and_groups",
    "by_point",
    "compare",
    "counts_of",
    "counts_of_times",
    "describe_spreads",
    "described",
    "difference_at",
    "distribution",
    "flent_data",
    "group_table",
    "groups",
    "interval_ends",
    "known_group",
    "limit_packets",
    "main_link",
    "merged",
    "metric",
    "number",
    "of_seeds",
    "result_table",
    "row_counts",
    "rows_metadata",
    "sha256",
    "spreads",
    "summarise",
    "summary",
    "summary_table",
    "survival",
    "until_end",
    "values_of",
    "welch",
    "without_unit",
]

__getattr__, __dir__ = lazy_exports(
    __name__,
    {
        "comparing": "Comparison Difference Point by_point compare difference_at of_seeds",
        "conditions": "Condition Verdict",
        "data": "Data LazyTables Resolved",
        "flent": "FlentData flent_data until_end",
        "idle": "limit_packets",
        "manifest": (
            "AGREE Axis FORMAT FORMAT_VERSION Header INFER LINK Manifest RUN described sha256"
        ),
        "merging": "RESULT merged",
        "metrics": (
            "ALL By METRICS Metric RESERVED groups known_group main_link metric values_of "
            "without_unit"
        ),
        "responses": "Distribution counts_of counts_of_times distribution survival",
        "run": "Run",
        "stats": "Estimate interval_ends welch",
        "summaries": "all_and_groups summarise summary",
        "table": (
            "COLUMNS MetricUnit OF_DATAGRAMS OF_REQUESTS TextTable group_table number result_table "
            "summary_table IN_FIGURES Spread describe_spreads spreads"
        ),
        "unsampled": "row_counts rows_metadata",
    },
)
