"""What runs came to: their tables, the numbers of them, their files."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cwnd.lazy import offers

if TYPE_CHECKING:
    from cwnd.results.cell import cell_id, content, heading, named
    from cwnd.results.comparing import (
        Comparison,
        Difference,
        Point,
        by_point,
        compare,
        difference_at,
        of_seeds,
    )
    from cwnd.results.data import OnDisk, Resolved
    from cwnd.results.layout import (
        ACTIVITY,
        AGREEMENT,
        CELL_ID,
        DATASET,
        ERRORS,
        FACTS,
        INFERRED,
        JOURNAL,
        LINKED,
        LOCK,
        MANIFEST,
        MARK,
        PCAP,
        PLOTS,
        REASONS,
        RESOLVED,
        ROWS,
        SAMPLES,
        SCENARIO,
        SUMMARY,
        TABLES,
    )
    from cwnd.results.manifest import (
        AGREE,
        INFER,
        LINK,
        RUN,
        Axis,
        Header,
        Manifest,
        described,
        sha256,
    )
    from cwnd.results.metrics import (
        ALL,
        METRICS,
        RESERVED,
        By,
        Metric,
        all_and_groups,
        groups,
        known_group,
        main_link,
        metric,
        summarise,
        values_of,
    )
    from cwnd.results.reasons import reasons_of
    from cwnd.results.records import Pair, Records, compare_records, numbers, open_records, pack
    from cwnd.results.responses import (
        Distribution,
        counts_of,
        counts_of_times,
        distribution,
        survival,
    )
    from cwnd.results.run import Run
    from cwnd.results.spread import IN_FIGURES, Spread, about_spreads, spreads
    from cwnd.results.stats import Estimate, interval_ends, welch, welch_difference
    from cwnd.results.table import (
        COLUMNS,
        OF_REQUESTS,
        Sheet,
        Shown,
        group_sheet,
        number,
        result_sheet,
        sheet_of,
    )
    from cwnd.results.unrecorded import rows_metadata

__all__ = [
    "ACTIVITY",
    "AGREE",
    "AGREEMENT",
    "ALL",
    "CELL_ID",
    "COLUMNS",
    "DATASET",
    "ERRORS",
    "FACTS",
    "INFER",
    "INFERRED",
    "IN_FIGURES",
    "JOURNAL",
    "LINK",
    "LINKED",
    "LOCK",
    "MANIFEST",
    "MARK",
    "METRICS",
    "OF_REQUESTS",
    "PCAP",
    "PLOTS",
    "REASONS",
    "RESERVED",
    "RESOLVED",
    "ROWS",
    "RUN",
    "SAMPLES",
    "SCENARIO",
    "SUMMARY",
    "TABLES",
    "Axis",
    "By",
    "Comparison",
    "Difference",
    "Distribution",
    "Estimate",
    "Header",
    "Manifest",
    "Metric",
    "OnDisk",
    "Pair",
    "Point",
    "Records",
    "Resolved",
    "Run",
    "Sheet",
    "Shown",
    "Spread",
    "about_spreads",
    "all_and_groups",
    "by_point",
    "cell_id",
    "compare",
    "compare_records",
    "content",
    "counts_of",
    "counts_of_times",
    "described",
    "difference_at",
    "distribution",
    "group_sheet",
    "groups",
    "heading",
    "interval_ends",
    "known_group",
    "main_link",
    "metric",
    "named",
    "number",
    "numbers",
    "of_seeds",
    "open_records",
    "pack",
    "reasons_of",
    "result_sheet",
    "rows_metadata",
    "sha256",
    "sheet_of",
    "spreads",
    "summarise",
    "survival",
    "values_of",
    "welch",
    "welch_difference",
]

__getattr__, __dir__ = offers(
    __name__,
    {
        "cell": "cell_id content heading named",
        "comparing": "Comparison Difference Point by_point compare difference_at of_seeds",
        "data": "OnDisk Resolved",
        "layout": (
            "ACTIVITY AGREEMENT CELL_ID DATASET ERRORS FACTS INFERRED JOURNAL LINKED LOCK"
            " MANIFEST MARK PCAP PLOTS REASONS RESOLVED ROWS SAMPLES SCENARIO SUMMARY TABLES"
        ),
        "manifest": "AGREE Axis Header INFER LINK Manifest RUN described sha256",
        "metrics": (
            "ALL By METRICS Metric RESERVED all_and_groups groups known_group main_link metric"
            " summarise values_of"
        ),
        "reasons": "reasons_of",
        "records": "Pair Records compare_records numbers open_records pack",
        "responses": "Distribution counts_of counts_of_times distribution survival",
        "run": "Run",
        "spread": "IN_FIGURES Spread about_spreads spreads",
        "stats": "Estimate interval_ends welch welch_difference",
        "table": "COLUMNS OF_REQUESTS Sheet Shown group_sheet number result_sheet sheet_of",
        "unrecorded": "rows_metadata",
    },
)
