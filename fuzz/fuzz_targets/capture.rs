//! Fuzz target of the capture analysis: any bytes are a capture or an error, and its counters are
//! consistent.

#![cfg_attr(not(test), no_main)]

use cwnd_infer::{Inference, Input, Limits};
use cwnd_tables::{ColumnData, Table};

pub fn run(data: &[u8]) {
    // The first byte limits the number of connections that are tracked.
    let Some((&first, file)) = data.split_first() else { return };
    let limits = Limits { connections: usize::from(first % 8) + 1, ..Limits::default() };
    let mut inference = Inference::new(limits).measuring_path();
    let _ = inference.read(&[Input::of("fuzz", file)], || true);
    let found = inference.finish();
    let count = |name: &str| found.counts.get(name).expect("it is counted");
    let left_out = [
        "unknown_link_type",
        "not_tcp",
        "ip_fragments",
        "headers_cut_off",
        "malformed",
        "duplicates",
    ];
    let segments = count("tcp_segments");
    assert_eq!(segments + left_out.iter().map(|name| count(name)).sum::<u64>(), count("frames"));
    let packets = sum(&found.connections, "packets");
    assert!(packets <= segments, "{packets} packets of {segments}");
    for (silences, kind) in [("silences", "timeout"), ("pauses", "pause"), ("probes", "probe")] {
        let in_connections = sum(&found.connections, silences);
        let rows = of_kind(&found.silences, kind);
        assert_eq!(in_connections, rows, "{kind}");
    }
}

fn sum(table: &Table, column: &str) -> u64 {
    match table.column(column) {
        Some(ColumnData::U64(values)) => values.iter().sum(),
        other => panic!("{column}: {other:?}"),
    }
}

fn of_kind(table: &Table, kind: &str) -> u64 {
    let codes = |column: &str| match table.column(column) {
        Some(ColumnData::Name { codes, labels }) => {
            codes.iter().map(|code| labels[code.0 as usize].clone()).collect::<Vec<_>>()
        }
        other => panic!("{column}: {other:?}"),
    };
    codes("kind").iter().zip(codes("what")).filter(|(k, what)| *k == kind && what == "data").count()
        as u64
}

#[cfg(not(test))]
libfuzzer_sys::fuzz_target!(|data: &[u8]| run(data));
