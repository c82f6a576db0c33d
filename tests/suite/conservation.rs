//! Invariants of every scenario at every instant, checked on random scenarios.
//!
//! Every run of the tests draws a few hundred of them; with `LONG` in the environment (`make
//! test-long`) it draws more than ten thousand for each property.

use std::fmt::Debug;
use std::io::Write as _;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Instant;

use cwnd_scenario::Document;
use cwnd_sim::World;
use cwnd_tables::Records;
use proptest::prelude::*;
use proptest::strategy::ValueTree as _;
use proptest::test_runner::{TestCaseResult, TestRunner};

use crate::common::{column, is_long, run, run_audited, scenario};
use crate::random::{any_scenario, transfers};

/// Number of scenarios drawn for each property.
const CASES: u32 = 200;
const CASES_IN_LONG_MODE: u32 = 10_500;

fn cases() -> u32 {
    if is_long() { CASES_IN_LONG_MODE } else { CASES }
}

/// Checks a property on this many scenarios; reports their number and the time taken in the long
/// mode.
#[expect(clippy::disallowed_methods, reason = "people want to know how long it took")]
fn for_all<T: Debug>(
    what: &str,
    cases: u32,
    drawn: impl Strategy<Value = T>,
    property: impl Fn(T) -> TestCaseResult,
) {
    let began = Instant::now();
    let config = ProptestConfig { cases, ..ProptestConfig::with_source_file(file!()) };
    if let Err(failure) = TestRunner::new(config).run(&drawn, property) {
        panic!("{failure}");
    }
    report(what, cases, began);
}

/// Writes directly to stderr, which the test harness does not capture.
fn report(what: &str, cases: u32, began: Instant) {
    if cases >= CASES_IN_LONG_MODE {
        let seconds = began.elapsed().as_secs_f64();
        writeln!(std::io::stderr(), "{what}: {cases} scenarios in {seconds:.0} s").ok();
    }
}

/// `true` if receivers hide queueing delay, so that RTTs may be below those of an empty path.
fn conceals(text: &str) -> bool {
    text.contains("cheat_hidden_delay = \"all\"")
}

/// Checks the identities and bounds that hold for the tables of every run.
fn check_records(records: &Records, conceals: bool) {
    let link = |name: &str| column(&records.links, name);
    let (arrived, delivered) = (link("arrived_total_pkts"), link("delivered_total_pkts"));
    let (dropped, marked) = (link("dropped_total_pkts"), link("marked_total_pkts"));
    let queued = link("queued_pkts");
    // Packets of a link by verdict, 0 for dropped and 1 for marked: after the warm-up, and in all.
    let by_reason = |i: usize, verdict: f64| {
        let of = column(&records.reasons, "link_id").into_iter().enumerate();
        let is = column(&records.reasons, "verdict");
        let rows: Vec<_> = of.filter(|&(row, id)| id == i as f64 && is[row] == verdict).collect();
        ["packets", "total_packets"].map(|counts| {
            let counts = column(&records.reasons, counts);
            rows.iter().map(|&(row, _)| counts[row]).sum::<f64>()
        })
    };
    for i in 0..records.links.len() {
        assert_eq!(arrived[i], delivered[i] + dropped[i] + queued[i], "link {i}");
        assert_eq!([link("dropped_pkts")[i], dropped[i]], by_reason(i, 0.0), "link {i}");
        assert_eq!([link("marked_pkts")[i], marked[i]], by_reason(i, 1.0), "link {i}");
        for (part, whole) in [
            ("arrived_pkts", &arrived),
            ("delivered_pkts", &delivered),
            ("dropped_pkts", &dropped),
            ("marked_pkts", &marked),
            ("delivered_data_pkts", &link("delivered_pkts")),
            ("dead_pkts", &delivered),
            ("duplicate_pkts", &delivered),
        ] {
            assert!(link(part)[i] <= whole[i], "link {i}: {part}");
        }
        let utilisation = link("utilisation")[i];
        let seconds = 0.5;
        // The packet that is being sent when counting begins counts in full.
        let one_packet = 3052.0 * 8.0 / (link("rate_bit_s")[i] * seconds);
        assert!(utilisation.is_nan() || utilisation <= 1.0 + one_packet, "{utilisation}");
    }
    let (kind, packets) = (column(&records.delays, "what"), column(&records.delays, "packets"));
    let waited = kind.iter().zip(packets).filter(|of| *of.0 == 0.0).map(|of| of.1).sum::<f64>();
    assert!(waited <= records.delivered_data_packets as f64, "only packets that arrived waited");
    let flow = |name: &str| column(&records.flows, name);
    let (size, received, fct) = (flow("size_bytes"), flow("bytes_received"), flow("fct_s"));
    let (min, base) = (flow("rtt_min_us"), flow("rtt_base_us"));
    for i in 0..records.flows.len() {
        assert!(fct[i].is_nan() || received[i] == size[i], "flow {i} has what it was sent");
        assert!(size[i].is_nan() || received[i] <= size[i], "flow {i} has no more");
        // A receiver that hides queueing delay makes RTTs shorter.
        let honest = min[i].is_nan() || min[i] >= base[i];
        assert!(honest || conceals, "flow {i}: {} under {}", min[i], base[i]);
        assert!(flow("delivered_bytes")[i] <= received[i]);
        let not_lost = flow("rto_under_way")[i] + flow("rto_ack_late")[i] + flow("rto_ack_lost")[i];
        // Each accepted quench reduces the window at most once.
        assert!(flow("cwnd_reductions_quench")[i] <= flow("quenches")[i], "flow {i}");
        let all = flow("rto_count")[i] + flow("rto_syn")[i] + flow("rto_request")[i];
        assert!(not_lost <= all, "flow {i}: {not_lost}");
    }
}

/// Number of events from one audit to the next.
///
/// The first 300 events are audited one by one. Then the interval is 7 in the long mode, so that no
/// periodic fault is missed. Otherwise it grows with the run: an audit visits all flows and pending
/// events, and in one scenario in some thousands audits took minutes.
fn audit_interval(events: u64) -> u64 {
    match events {
        0..300 => 1,
        _ if is_long() => 7,
        _ => (events / 512).max(7),
    }
}

#[test]
fn every_packet_that_was_sent_is_somewhere_once_at_every_instant_and_nothing_stalls() {
    for_all("conservation, windows, timers, time", cases(), any_scenario(), |text| {
        let mut world = World::new(scenario(&text));
        let mut last = world.now();
        let (mut events, mut next_audit) = (0_u64, 0);
        while world.step() {
            prop_assert!(world.now() >= last, "time goes forward");
            last = world.now();
            events += 1;
            if events >= next_audit {
                prop_assert_eq!(world.audit(), Ok(()));
                next_audit = events + audit_interval(events);
            }
        }
        check_records(&world.finish(), conceals(&text));
        Ok(())
    });
}

/// Linux also compares the start of the highest SACKed segment with the acknowledged data
/// (`tcp_check_sack_reordering`).
#[test]
fn behind_a_divided_ack_a_sacked_segment_is_not_late() {
    let records = run_audited(World::new(scenario(
        r#"
        [run]
        duration = "2 s"
        warmup = "0 ms"
        seed = 916965553
        sample = "90 ms"
        [dumbbell]
        rate = "4303 kbit/s"
        queue = { kind = "fifo", limit = "16 packets" }
        reverse_rate = "2123 kbit/s"
        reverse_queue = { kind = "fifo", limit = "1 packets" }
        edge_rate = "none"
        bdp_rtt = "50 ms"
        [flow.g0]
        rtt = "uniform(2 ms, 22 ms)"
        start = "33 ms"
        controller = { kind = "delay-aimd", preset = "below-one" }
        stack = { base = "freebsd-rack", with = ["rate-halving", "reneging"] }
        workload = { kind = "bytes", size = "pareto(1.3, 29 kB)" }
        [flow.g0.endpoint]
        ecn = false
        receive_window = "150 kB"
        rto_backoff = "exponential"
        rto_backoff_after = 1
        rto_min = "375 ms"
        rto_thin_linear = false
        rto_backoff_until = "sample"
        rtt_from = "timer"
        clock = "1 us"
        ack_delay = "25 ms"
        rtt_every = "ack"
        rtt_lone_acks = false
        record_delays = false
        rtt_clock = "1 us"
        tso = "20 kB"
        tso_defer = "none"
        tso_win_divisor = 1
        tso_sizing = "full"
        cheat_timestamps = "100 ms"
        cheat_hidden_delay = "all"
        cheat_ack_division = 3
        [flow.g0.arrivals]
        kind = "on-off"
        interval = "11 ms"
        on = "pareto(1.5, 281 ms)"
        off = "uniform(0 ms, 107 ms)"
        "#,
    )));
    assert!(records.delivered_data_packets > 0);
}

/// Tahoe goes back to an ACK that divides a segment; the retransmission then does not end at the
/// highest sequence number sent.
#[test]
fn of_a_segment_with_old_and_new_bytes_only_the_old_ones_were_sent_before() {
    let mut world = World::new(scenario(
        r#"
        [run]
        duration = "2 s"
        [link.there]
        from = "a"
        to = "b"
        rate = "1277 kbit/s"
        delay = "15 ms"
        duplex = true
        queue = { kind = "fifo", limit = "6 packets" }
        loss_every = 8
        [flow.main]
        from = "a"
        to = "b"
        workload = { kind = "on-off", size = "exponential(6 kB)", off = "1 ms" }
        endpoint.recovery = "tahoe"
        endpoint.timestamps = false
        endpoint.ack_every = 4
        endpoint.mss = "684 B"
        endpoint.cheat_ack_division = 3
        endpoint.initial_window = 10
        endpoint.rto_min = "1 ms"
    "#,
    ));
    while world.step() {
        assert_eq!(world.audit(), Ok(()));
    }
}

/// Linux delays ACKs of reordered data: sending one starts the timer of those that follow.
#[test]
fn an_ack_that_goes_leaves_no_timer_of_the_next_ones_unset() {
    for seed in 1..=5 {
        let mut world = World::new(scenario(&format!(
            r#"
            [run]
            duration = "2 s"
            seed = {seed}
            [dumbbell]
            rate = "20 Mbit/s"
            jitter = "7 ms"
            reorder = 0.07
            reorder_delay = "7 ms"
            [flow.main]
            count = 2
            rtt = "10 ms"
            endpoint = {{ preset = "linux", cheat_ack_division = 3 }}
        "#
        )));
        while world.step() {
            assert_eq!(world.audit(), Ok(()));
        }
    }
}

/// The ACK that ends a recovery may echo a mark and deliver nothing new, if all data is already
/// SACKed or covered by divided ACKs. Linux then keeps its window.
#[test]
fn an_echo_in_an_ack_that_delivers_nothing_lets_the_next_segment_go() {
    for seed in 1..=40 {
        let mut world = World::new(scenario(&format!(
            r#"
            [run]
            duration = "5 s"
            seed = {seed}
            [dumbbell]
            rate = "1 Mbit/s"
            queue = {{ kind = "fifo", limit = "6 packets" }}
            meter = "vcp"
            loss = 0.05
            jitter = "6 ms"
            [flow.main]
            rtt = "10 ms"
            count = 3
            endpoint = {{ preset = "linux", ecn = true, cheat_ack_division = 2 }}
            workload = {{ kind = "on-off", size = "5 kB", off = "10 ms" }}
        "#
        )));
        while world.step() {
            assert_eq!(world.audit(), Ok(()), "seed {seed}");
        }
    }
}

#[test]
fn every_transfer_ends_when_it_has_the_time() {
    for_all("transfers that end", cases(), transfers(), |text| {
        let mut world = World::new(scenario(&text));
        while world.step() {}
        prop_assert_eq!(world.audit(), Ok(()));
        let records = world.finish();
        check_records(&records, conceals(&text));
        let (size, received) =
            (column(&records.flows, "size_bytes"), column(&records.flows, "bytes_received"));
        for (i, fct) in column(&records.flows, "fct_s").into_iter().enumerate() {
            prop_assert!(!fct.is_nan(), "flow {} has {} of {} bytes", i, received[i], size[i]);
            prop_assert_eq!(received[i], size[i]);
        }
        prop_assert!(column(&records.links, "queued_pkts").iter().all(|&q| q == 0.0));
        Ok(())
    });
}

/// Returns the digests of all these scenarios, run by a pool of `threads` threads.
fn digests(texts: &[String], threads: usize) -> Vec<String> {
    let next = AtomicUsize::new(0);
    let found = Mutex::new(vec![String::new(); texts.len()]);
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                while let Some((i, text)) = {
                    let i = next.fetch_add(1, Ordering::Relaxed);
                    texts.get(i).map(|text| (i, text))
                } {
                    let digest = run(text).digest();
                    found.lock().expect("no thread failed")[i] = digest;
                }
            });
        }
    });
    found.into_inner().expect("no thread failed")
}

#[test]
#[expect(clippy::disallowed_methods, reason = "people want to know how long it took")]
fn the_same_seed_gives_the_same_bytes_whatever_the_number_of_threads() {
    let began = Instant::now();
    let mut runner = TestRunner::new(ProptestConfig::default());
    let texts: Vec<String> = (0..cases())
        .map(|_| any_scenario().new_tree(&mut runner).expect("a scenario").current())
        .collect();
    let alone = digests(&texts, 1);
    for (i, other) in digests(&texts, 5).iter().enumerate() {
        assert_eq!(*other, alone[i], "{}", texts[i]);
    }
    let different: std::collections::BTreeSet<&String> = alone.iter().collect();
    assert!(different.len() > texts.len() / 2, "most scenarios differ");
    report("the same bytes on 1 and 5 threads", cases(), began);
}

#[test]
fn the_scenarios_to_start_from_keep_their_packets() {
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../scenarios");
    let read = |name: &str| {
        std::fs::read_to_string(folder.join(name)).map_err(|error| format!("{name}: {error}"))
    };
    let mut files = 0;
    for entry in std::fs::read_dir(&folder).expect("there are scenarios") {
        let name =
            entry.expect("a folder can be listed").file_name().to_string_lossy().into_owned();
        if !name.ends_with(".toml") {
            continue;
        }
        files += 1;
        let text = read(&name).expect("a scenario is text");
        let plan = Document::parse(&name, &text, &read).and_then(|d| d.plan());
        let mut cells = plan.unwrap_or_else(|problems| panic!("{problems}")).cells;
        let mut world = World::new(Arc::new(cells.swap_remove(0).scenario));
        let mut events = 0_u64;
        while world.step() {
            events += 1;
            if events.is_multiple_of(1009) {
                assert_eq!(world.audit(), Ok(()), "{name}");
            }
        }
        check_records(&world.finish(), conceals(&text));
    }
    assert!(files >= 5, "{files} scenarios");
}
