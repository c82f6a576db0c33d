"""What lies where in the directory of a result."""

from __future__ import annotations

MANIFEST = "manifest.json"
SCENARIO = "scenario.toml"
CELLS = "cells"
PLOTS = "plots"
PCAP = "pcap"
SUMMARY = "summary.csv"
#: What a sweep has instead of a manifest.
DATASET = "dataset.json"
#: Tables with a row for each run, flow or link.
ROWS = ("runs", "flows", "links")
#: Tables that grow with time: samples, distributions, a row for each request, and what stands for
#: requests and flows that have no row.
SAMPLES = ("series", "link_series", "qdelay", "requests", "sketches", "unrecorded")
#: The data frames of a result, each in a Parquet file of its name.
TABLES = (*ROWS, *SAMPLES)
