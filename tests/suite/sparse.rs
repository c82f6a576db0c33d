//! Sampled rows: the run does not change, and the sums keep everything without a row.

use cwnd_tables::{ColumnData, Records, Table};
use proptest::prelude::*;

use crate::common::{at, column, run};
use crate::random::any_scenario;

/// Writes a full link with clients who open connections, some of which give up.
fn clients(record: &str) -> String {
    format!(
        r#"
        [run]
        duration = "60 s"
        warmup = "5 s"
        sample = "none"
        {record}
        [dumbbell]
        rate = "2 Mbit/s"
        queue = {{ kind = "fifo", limit = "30 packets" }}
        [flow.web]
        rtt = "uniform(10 ms, 100 ms)"
        workload = {{ kind = "web", interval = "30 ms", size = "pareto(1.2, 7 kB)" }}
        endpoint = {{ syn_retries = 1, rto_initial = "200 ms" }}
        [flow.bulk]
        rtt = "40 ms"
    "#
    )
}

fn labels(table: &Table, name: &str) -> Vec<String> {
    match table.column(name) {
        Some(ColumnData::Name { codes, labels }) => {
            codes.iter().map(|code| labels[code.0 as usize].clone()).collect()
        }
        other => panic!("{other:?}"),
    }
}

/// Returns the sketch of one kind of durations: for each bucket its midpoint, upper bound, count,
/// sum and maximum.
fn sketched(records: &Records, what: &str) -> Vec<[f64; 5]> {
    let table = &records.sketches;
    let columns = ["from_s", "to_s", "count", "sum_s", "longest_s"].map(|c| column(table, c));
    let kinds = labels(table, "what");
    (0..table.len())
        .filter(|&i| kinds[i] == what)
        .map(|i| {
            let [from, to, count, sum, longest] = [0, 1, 2, 3, 4].map(|c| columns[c][i]);
            [(from + to) / 2.0, to, count, sum, longest]
        })
        .collect()
}

/// Returns the results that must not depend on the rows recorded.
fn apart_from_rows(records: &Records) -> impl PartialEq + std::fmt::Debug + use<> {
    let acted: Vec<(String, u64)> =
        records.activity.iter().map(|(name, count)| (name.to_owned(), count)).collect();
    let links = records.links.clone();
    (acted, links, records.events, records.delivered_data_packets, records.request_count)
}

#[test]
fn what_has_a_row_changes_nothing_of_the_run() {
    let all = run(&clients(""));
    for record in ["requests = \"none\"", "flows = \"none\"", "requests = 0.1\nflows = 0.1"] {
        let some = run(&clients(&format!("[record]\n{record}")));
        assert_eq!(apart_from_rows(&some), apart_from_rows(&all), "{record}");
    }
    assert!(all.sketches.is_empty() && all.unrecorded.is_empty());
    let same = run(&clients("[record]\nrequests = \"all\"\nflows = 1.0"));
    assert_eq!(same.digest(), all.digest());
}

#[test]
fn sketches_have_every_request_and_every_flow_that_ended() {
    let all = run(&clients(""));
    let none = run(&clients("[record]\nrequests = \"none\"\nflows = \"none\""));
    assert!(none.requests.is_empty());
    assert_eq!(labels(&none.flows, "group"), ["bulk"], "what does not arrive has a row");
    let outcomes = labels(&all.requests, "outcome");
    for what in ["answered", "open", "rejected"] {
        let buckets = sketched(&none, what);
        let known = outcomes.iter().filter(|o| *o == what).count();
        assert!(known > 0, "no request was {what}");
        assert_eq!(buckets.iter().map(|b| b[2]).sum::<f64>(), known as f64, "{what}");
    }
    let times: [(&str, Vec<f64>); 2] = [
        ("answered", column(&all.requests, "response_s")),
        ("completed", column(&all.flows, "fct_s")),
    ];
    for (what, mut exact) in times {
        exact.retain(|t| !t.is_nan());
        exact.sort_by(f64::total_cmp);
        let buckets = sketched(&none, what);
        let sum: f64 = buckets.iter().map(|b| b[3]).sum();
        assert!((sum - exact.iter().sum::<f64>()).abs() < 1e-6 * sum, "{what}");
        assert_eq!(buckets.iter().map(|b| b[4]).fold(0.0, f64::max), exact[exact.len() - 1]);
        for q in [0.01, 0.5, 0.9, 0.99, 0.999] {
            let rank = (q * exact.len() as f64).ceil();
            let mut seen = 0.0;
            let found = buckets.iter().find(|b| {
                seen += b[2];
                seen >= rank
            });
            let (found, exact) = (found.expect("there are as many")[0], exact[rank as usize - 1]);
            assert!(
                (found / exact - 1.0).abs() < 1.0 / 256.0 + 1e-6,
                "{what} {q}: {found} {exact}"
            );
        }
    }
}

#[test]
fn rows_are_drawn_with_the_probability_that_is_asked_for() {
    let all = run(&clients(""));
    for share in [0.02, 0.2, 0.5] {
        let some = run(&clients(&format!("[record]\nrequests = {share}\nflows = {share}")));
        let arrived = all.flows.len() as f64 - 1.0;
        for (rows, of) in [
            (some.requests.len() as f64, all.requests.len() as f64),
            (some.flows.len() as f64 - 1.0, arrived),
        ] {
            // Four standard deviations of a binomial number.
            let spread = 4.0 * (of * share * (1.0 - share)).sqrt();
            assert!((rows - share * of).abs() < spread, "{share}: {rows} of {of}");
        }
        // Recorded rows are rows of the full table.
        let full = column(&all.requests, "response_s");
        let drawn = column(&some.requests, "response_s");
        assert!(drawn.iter().filter(|t| !t.is_nan()).all(|t| full.contains(t)));
        let (ids, kept) = (column(&all.flows, "flow_id"), column(&some.flows, "flow_id"));
        assert!(kept.iter().all(|id| ids.contains(id)));
    }
}

#[test]
fn a_seed_draws_the_same_rows_again_and_another_seed_others() {
    let text = clients("[record]\nrequests = 0.1\nflows = 0.1");
    assert_eq!(run(&text).digest(), run(&text).digest());
    let other = text.replace("sample =", "seed = 2\nsample =");
    assert_ne!(column(&run(&text).flows, "start_s"), column(&run(&other).flows, "start_s"));
}

/// Columns of flows that `unrecorded` sums.
const SUMMED: [&str; 14] = [
    "delivered_bytes",
    "bytes_received",
    "segments_sent",
    "retrans",
    "ce_received",
    "rto_count",
    "cwnd_reductions_loss",
    "cwnd_reductions_ecn",
    "cwnd_reductions_quench",
    "cwnd_reductions_delay",
    "rto_under_way",
    "duplicates",
    "goodput_bit_s",
    "fct_s",
];

fn total(records: &Records, name: &str) -> f64 {
    column(&records.flows, name).into_iter().filter(|x| !x.is_nan()).sum()
}

#[test]
fn flows_without_a_row_are_in_the_sums() {
    let all = run(&clients(""));
    for share in ["\"none\"", "0.3"] {
        let some = run(&clients(&format!("[record]\nflows = {share}")));
        assert_eq!(some.unrecorded.len(), 1, "bulk has all its rows");
        let rows = some.flows.len() as f64 + at(&some.unrecorded, 0, "flows");
        assert_eq!(rows, all.flows.len() as f64);
        for name in SUMMED {
            let found = total(&some, name) + at(&some.unrecorded, 0, name);
            let expected = total(&all, name);
            assert!((found - expected).abs() <= 1e-9 * expected.abs(), "{name}: {found}");
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn in_any_world_rows_and_what_has_none_come_to_the_same(
        text in any_scenario(),
        share in 0.0..1.0f64,
    ) {
        let all = run(&text);
        let some = run(&format!("[record]\nrequests = {share}\nflows = {share}\n{text}"));
        prop_assert_eq!(apart_from_rows(&some), apart_from_rows(&all));
        for name in SUMMED {
            let rest: f64 = column(&some.unrecorded, name).iter().sum();
            let (found, expected) = (total(&some, name) + rest, total(&all, name));
            let error = (found - expected).abs();
            prop_assert!(error <= 1e-9 * expected.abs(), "{}: {} {}", name, found, expected);
        }
    }
}
