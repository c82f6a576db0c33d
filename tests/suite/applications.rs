//! Applications: a custom one, every registered kind in a run, and flows between
//! several nodes. Arrival processes of connections, and the load that they offer.

use cwnd_apps::{Actions, Application, Transport, WorkloadParams};
use cwnd_quantity::{Rng, Time};
use cwnd_scenario::Document;
use cwnd_schema::ParamsChoice as _;
use cwnd_sim::World;
use cwnd_tables::Records;
use proptest::strategy::{Strategy as _, ValueTree as _};
use proptest::test_runner::TestRunner;

use crate::common::{activity, at, column, run, run_audited, scenario};
use crate::custom_parts::parts::{OBJECT, ObjectSequence};
use crate::random::of_kind;

/// An application that writes without limit and stops once a number of bytes is delivered.
#[derive(Debug)]
struct Enough(u64);

impl Application for Enough {
    fn start(&mut self, _now: Time, _rng: &mut Rng) -> Actions {
        Actions::write(1 << 40).and_await_delivered(self.0)
    }
    fn on_delivered(&mut self, _now: Time, _total: u64, _rng: &mut Rng) -> Actions {
        Actions::stop()
    }
}

const ALONE: &str = r#"
    [run]
    duration = "20 s"
    [dumbbell]
    rate = "10 Mbit/s"
    [flow.own]
    rtt = "50 ms"
"#;

#[test]
fn an_application_of_ones_own_writes_what_follows_when_it_hears_that_something_arrived() {
    let mut world = World::new(scenario(ALONE));
    assert!(world.replace_applications("own", || Box::new(ObjectSequence::new(5))));
    assert!(!world.replace_applications("nobody", || Box::new(Enough(1))));
    let records = run_audited(world);
    assert_eq!(activity(&records, "objects_heard"), 4, "of all but the last");
    assert_eq!(activity(&records, "objects"), 5, "told by the application's own name");
    assert_eq!(at(&records.flows, 0, "size_bytes"), 5.0 * OBJECT as f64);
    assert_eq!(at(&records.flows, 0, "bytes_received"), 5.0 * OBJECT as f64);
    // Handshake, four pauses, and at least half a round trip for each object.
    let fct = at(&records.flows, 0, "fct_s");
    assert!((0.05 + 0.4 + 5.0 * 0.025..2.0).contains(&fct), "{fct}");
}

#[test]
fn an_application_that_stops_sends_nothing_more() {
    let mut world = World::new(scenario(ALONE));
    assert!(world.replace_applications("own", || Box::new(Enough(1_000_000))));
    let records = run_audited(world);
    let received = at(&records.flows, 0, "bytes_received");
    // Data in flight at the stop still arrives: a round trip and a full queue of 1 BDP, with a
    // factor of two to spare.
    assert!((1e6..1e6 + 4.0 * 62_500.0).contains(&received), "{received}");
    assert!(at(&records.flows, 0, "duration_s") < 3.0);
}

#[test]
fn every_registered_kind_sends_and_keeps_the_books() {
    for kind in WorkloadParams::KINDS {
        let mut runner = TestRunner::default();
        let workload = of_kind(kind.name).new_tree(&mut runner).expect("a workload").current();
        let text = format!("{ALONE}{workload}\n");
        let records = run_audited(World::new(scenario(&text)));
        assert!(column(&records.flows, "bytes_received").iter().sum::<f64>() > 0.0, "{workload}");
        // A repetition gives the same bytes.
        assert_eq!(run(&text).digest(), records.digest(), "{workload}");
        let facts = WorkloadParams::of_kind(kind.name).expect("it is registered").facts();
        let has_size = !at(&records.flows, 0, "size_bytes").is_nan();
        let datagrams = matches!(facts.transport, Transport::Datagrams { .. });
        assert!(
            !(has_size && (datagrams || facts.can_be_stopped)),
            "{}: it ends by itself",
            kind.name
        );
    }
}

/// Writes a graph of links into one node. Base RTTs are 20, 40 and 60 ms from `a`, `b` and `c` to
/// `r`, and 60 and 80 ms from `b` and `c` to `a`.
fn star(ends: &str, flow: &str) -> String {
    let mut text = "[run]\nduration = \"30 s\"\nsample = \"none\"\n".to_owned();
    for (i, node) in ["a", "b", "c"].iter().enumerate() {
        let delay = 10 * (i + 1);
        text += &format!(
            "[link.{node}-r]\nfrom = \"{node}\"\nto = \"r\"\nrate = \"20 Mbit/s\"\n\
             delay = \"{delay} ms\"\nduplex = true\n"
        );
    }
    text + &format!(
        "[flow.main]\nfrom = [\"a\", \"b\", \"c\"]\nto = [\"r\", \"a\"]\n{ends}{flow}\n"
    )
}

/// Counts flows by base RTT in ms.
fn by_rtt(text: &str) -> std::collections::BTreeMap<u64, usize> {
    let records = run_audited(World::new(scenario(text)));
    let mut found = std::collections::BTreeMap::new();
    for us in column(&records.flows, "rtt_base_us") {
        *found.entry((us / 1000.0) as u64).or_default() += 1;
    }
    found
}

#[test]
fn flows_take_the_pairs_by_turns_or_draw_them() {
    // The pairs are a–r, b–r, c–r, b–a and c–a; no flow goes from a to itself.
    let turns = by_rtt(&star("ends = \"round-robin\"\n", "count = 10"));
    assert_eq!(turns.into_iter().collect::<Vec<_>>(), [(20, 2), (40, 2), (60, 4), (80, 2)]);
    let drawn = by_rtt(&star("", "count = 500\nworkload = { kind = \"bytes\", size = \"1 kB\" }"));
    // Binomial with p = 1/5, at 60 ms 2/5: the standard deviation is below 11.
    for (rtt, mean) in [(20, 100.0), (40, 100.0), (60, 200.0), (80, 100.0)] {
        let flows = drawn[&rtt] as f64;
        assert!((flows - mean).abs() < 44.0, "{flows} flows of {rtt} ms");
    }
}

#[test]
fn pairs_are_drawn_by_their_shares_or_taken_by_turns() {
    let pairs = |shares: [&str; 3], ends: &str| {
        let [a, b, c] = shares;
        let pairs = format!(
            "pairs = [{{ from = \"a\", to = \"r\"{a} }}, {{ from = \"b\", to = \"r\"{b} }}, \
             {{ from = \"b\", to = \"a\"{c} }}]\n"
        );
        let flows = "count = 600\nworkload = { kind = \"bytes\", size = \"1 kB\" }";
        let text = star(ends, flows);
        let (graph, _) = text.split_once("[flow.main]").expect("the group is last");
        by_rtt(&format!("{graph}[flow.main]\n{pairs}{ends}{flows}\n"))
    };
    let turns = pairs(["", "", ""], "ends = \"round-robin\"\n");
    assert_eq!(turns.into_iter().collect::<Vec<_>>(), [(20, 200), (40, 200), (60, 200)]);
    // Binomials with shares 3, 2 and 1 of 6; the standard deviation is below 13.
    let drawn = pairs([", share = 3", ", share = 2", ""], "");
    for (rtt, mean) in [(20, 300.0), (40, 200.0), (60, 100.0)] {
        let flows = drawn[&rtt] as f64;
        assert!((flows - mean).abs() < 50.0, "{flows} flows of {rtt} ms");
    }
}

#[test]
fn flows_that_arrive_have_ends_of_their_own_and_places_keep_their_way() {
    for edge in ["edge_rtt = \"0 ms\"", "edge_rtt = \"uniform(0 us, 1 us)\""] {
        let web = format!(
            "workload = {{ kind = \"poisson\", size = \"2 kB\", interval = \"10 ms\" }}\n{edge}"
        );
        let found = by_rtt(&star("", &web));
        assert_eq!(found.len(), 4, "{found:?}");
        assert!(found.values().all(|&flows| flows > 400), "{found:?}");
    }
}

#[test]
fn which_pair_is_drawn_changes_no_other_draw() {
    let start = "count = 20\nstart = \"uniform(0 s, 1 s)\"";
    let starts = |ends: &str| column(&run(&star(ends, start)).flows, "start_s");
    assert_eq!(starts("ends = \"random\"\n"), starts("ends = \"round-robin\"\n"));
}

fn web(seconds: u32, rate: &str, arrivals: &str) -> Records {
    run(&format!(
        r#"
        [run]
        duration = "{seconds} s"
        sample = "none"
        [dumbbell]
        rate = "{rate}"
        queue = {{ kind = "fifo", limit = "100 MB" }}
        [flow.web]
        rtt = "40 ms"
        arrivals = {{ {arrivals} }}
        workload = {{ kind = "bytes", size = "exponential(30 kB)" }}
    "#
    ))
}

/// Returns the start times of all flows, in order.
fn starts(records: &Records) -> Vec<f64> {
    let mut starts = column(&records.flows, "start_s");
    starts.sort_unstable_by(f64::total_cmp);
    starts
}

#[test]
fn the_workload_poisson_is_short_for_transfers_that_arrive() {
    let file = |keys: &str| {
        run(&format!(
            "[run]\nduration = \"20 s\"\n[dumbbell]\nrate = \"10 Mbit/s\"\n[flow.web]\ncount = 2\n\
             rtt = \"40 ms\"\n{keys}\n"
        ))
    };
    let short = file(
        r#"workload = { kind = "poisson", interval = "100 ms", size = "pareto(1.5, 30 kB)" }"#,
    );
    let long = file(
        r#"workload = { kind = "bytes", size = "pareto(1.5, 30 kB)" }
        arrivals = { kind = "poisson", interval = "100 ms" }"#,
    );
    assert!(short.flows.len() > 300);
    assert_eq!(short.digest(), long.digest());
}

#[test]
fn a_load_is_what_the_link_carries_when_nothing_is_lost() {
    for load in [0.3, 0.6] {
        let records = web(1000, "10 Mbit/s", &format!("kind = \"poisson\", load = {load}"));
        // 30 kB have 21.2 segments of 1448 B in the mean, 1 / (1 − exp(−1448/30000)), each with 52
        // B of headers, and a SYN.
        let bytes = 30_000.0 + 52.0 / (1.0 - (-1448.0_f64 / 30_000.0).exp()) + 52.0;
        let expected = load * 10e6 / (8.0 * bytes) * 1000.0;
        let flows = records.flows.len() as f64;
        assert!(
            (flows - expected).abs() < 3.0 * expected.sqrt(),
            "{flows} connections, {expected}"
        );
        // Standard deviation of a sum of n exponential sizes, n a Poisson number: √(2 / n) of it.
        let carried = column(&records.links, "utilisation")[0];
        let error = load * (2.0 / expected).sqrt();
        assert!((carried - load).abs() < 3.0 * error + 0.002, "{carried} of {load}");
    }
}

#[test]
fn several_processes_share_a_load_and_pauses_double_the_rate() {
    let count = |arrivals: &str, processes: u32| {
        let records = run(&format!(
            "[run]\nduration = \"400 s\"\nsample = \"none\"\n[dumbbell]\nrate = \"20 Mbit/s\"\n\
             [flow.web]\nrtt = \"40 ms\"\ncount = {processes}\n\
             arrivals = {{ {arrivals}, load = 0.4 }}\n\
             workload = {{ kind = \"bytes\", size = \"20 kB\" }}\n"
        ));
        starts(&records)
    };
    // 20 kB are 14 segments with 52 B of headers each, and a SYN.
    let rate = 0.4 * 20e6 / (8.0 * (20_000.0 + 14.0 * 52.0 + 52.0));
    let close = |starts: &[f64]| {
        let expected = rate * 400.0;
        assert!((starts.len() as f64 - expected).abs() < 4.0 * expected.sqrt(), "{}", starts.len());
    };
    close(&count("kind = \"poisson\"", 1));
    close(&count("kind = \"poisson\"", 7));
    let bursts = count("kind = \"on-off\", on = \"500 ms\", off = \"500 ms\"", 1);
    close(&bursts);
    // Arrivals come in the first half of each second, at twice the rate.
    assert!(bursts.iter().all(|start| start.fract() < 0.5));
}

#[test]
fn the_gaps_of_arrivals_are_exponential() {
    let starts = starts(&web(1000, "100 Mbit/s", "kind = \"poisson\", interval = \"50 ms\""));
    let mut gaps: Vec<f64> = starts.windows(2).map(|pair| pair[1] - pair[0]).collect();
    gaps.sort_unstable_by(f64::total_cmp);
    let n = gaps.len() as f64;
    let off = |(i, gap): (usize, &f64)| ((i as f64 + 0.5) / n - (1.0 - (-gap / 0.05).exp())).abs();
    let distance = gaps.iter().enumerate().map(off).fold(0.0, f64::max) * n.sqrt();
    // Kolmogorov–Smirnov test: one set of gaps in a thousand exceeds this distance.
    assert!(distance < 1.95, "{distance}");
}

#[test]
fn a_flash_crowd_has_its_rate_and_its_share_of_the_time() {
    let starts = starts(&run(r#"
        [run]
        duration = "4000 s"
        sample = "none"
        [dumbbell]
        rate = "1 Gbit/s"
        [flow.crowd]
        rtt = "10 ms"
        workload = { kind = "bytes", size = "1 kB" }
        [flow.crowd.arrivals]
        kind = "on-off"
        preset = "flash-crowd"
        interval = "50 ms"
        on = "pareto(2.5, 16 s)"
        off = "pareto(2.5, 8 s)"
    "#));
    // Twenty arrivals a second for 16 s of each 24 s. Pareto periods of shape 2.5 have a standard
    // deviation of 0.89 times their mean, and there are 167 of each kind.
    let expected = 4000.0 * 20.0 * 16.0 / 24.0;
    let found = starts.len() as f64;
    assert!((found / expected - 1.0).abs() < 0.15, "{found} of {expected}");
    let pauses = starts.windows(2).filter(|pair| pair[1] - pair[0] > 2.0).count();
    assert!((100..220).contains(&pauses), "{pauses} pauses");
}

#[test]
fn a_list_is_played_as_it_was_recorded() {
    let records = run(r#"
        [run]
        duration = "5 s"
        [link.ar]
        from = "a"
        to = "r"
        rate = "10 Mbit/s"
        delay = "1 ms"
        duplex = true
        [link.br]
        from = "b"
        to = "r"
        rate = "10 Mbit/s"
        delay = "2 ms"
        duplex = true
        [link.rc]
        from = "r"
        to = "c"
        rate = "10 Mbit/s"
        delay = "4 ms"
        duplex = true
        [link.rd]
        from = "r"
        to = "d"
        rate = "10 Mbit/s"
        delay = "8 ms"
        duplex = true
        [flow.web]
        from = ["a", "b"]
        to = ["c", "d"]
        workload = { kind = "bytes", size = "10 kB" }
        [flow.web.arrivals]
        kind = "list"
        rows = "2 s, b, c, 3 kB; 1 s, a, d, 70 kB; 1 s, b, d; 9 s, a, c, 1 kB; 3 s"
    "#);
    let (start, size, base) = (
        column(&records.flows, "start_s"),
        column(&records.flows, "size_bytes"),
        column(&records.flows, "rtt_base_us"),
    );
    let ids = column(&records.flows, "flow_id");
    let mut rows: Vec<usize> = (0..ids.len()).collect();
    rows.sort_by(|&a, &b| ids[a].total_cmp(&ids[b]));
    let told: Vec<[f64; 3]> = rows.iter().map(|&i| [start[i], size[i], base[i]]).collect();
    assert_eq!(told[..3], [[1.0, 70e3, 18e3], [1.0, 10e3, 20e3], [2.0, 3e3, 12e3]]);
    // In order of time, the fourth row gives neither size nor ends, and the fifth is after the end
    // of the run.
    assert_eq!((told.len(), told[3][0], told[3][1]), (4, 3.0, 10e3));
}

/// Runs users who fetch 20 kB and pause; `keys` are keys of their group.
fn users(count: u32, keys: &str) -> Records {
    run(&format!(
        r#"
        [run]
        duration = "500 s"
        sample = "none"
        [dumbbell]
        rate = "1 Gbit/s"
        queue = {{ kind = "fifo", limit = "100 MB" }}
        [flow.users]
        count = {count}
        rtt = "100 ms"
        {keys}
        workload = {{ kind = "bytes", size = "20 kB" }}
    "#
    ))
}

#[test]
fn users_fetch_one_file_after_the_other_at_the_rate_of_their_loop() {
    let records = users(20, r#"arrivals = { kind = "closed", pause = "exponential(700 ms)" }"#);
    let (start, took) = (column(&records.flows, "start_s"), column(&records.flows, "fct_s"));
    // SYN, ten segments, four segments: two and a half round trips to the last byte, and half of
    // one until its ACK arrives. At the start twenty files of 14 segments queue behind each other.
    let longest = 0.25 + 20.0 * 14.0 * 1500.0 * 8.0 / 1e9;
    assert!(took.iter().filter(|fct| !fct.is_nan()).all(|fct| (0.25..longest).contains(fct)));
    // Little's law: twenty users, each with a cycle of 300 ms and the pause.
    let (found, expected) = (start.len() as f64, 20.0 * 500.0 / (0.3 + 0.7));
    assert!((found - expected).abs() < 4.0 * expected.sqrt(), "{found} of {expected}");
    let at_once = |at: f64| {
        let open = |(&begin, fct): (&f64, &f64)| begin <= at && at < begin + fct + 0.05;
        start.iter().zip(&took).filter(|&each| open(each)).count()
    };
    assert!((1..5000).all(|tenth| at_once(f64::from(tenth) / 10.0) <= 20), "one at a time");
}

#[test]
fn a_user_whose_connection_is_given_up_goes_on_after_the_pause() {
    let records = run(r#"
        [run]
        duration = "60 s"
        sample = "none"
        [dumbbell]
        rate = "1 Mbit/s"
        loss = 1
        [flow.users]
        rtt = "10 ms"
        endpoint = { syn_retries = 1, rto_initial = "1 s" }
        arrivals = { kind = "closed", pause = "1 s" }
        workload = { kind = "bytes", size = "20 kB" }
    "#);
    let mut start = starts(&records);
    // A SYN, a second one after 1 s, the end of the attempt after 2 s more, then the pause.
    start.truncate(4);
    assert_eq!(start, [0.0, 4.0, 8.0, 12.0]);
}

#[test]
fn users_stop_when_they_are_told_to() {
    let keys = "stop = \"5 s\"\narrivals = { kind = \"closed\", pause = \"1 s\" }";
    let start = starts(&users(3, keys));
    assert!(start.len() == 12 && start.iter().all(|&at| at < 5.0), "{start:?}");
}

#[test]
fn nobody_waits_for_what_has_no_end() {
    let text = "[run]\nduration = \"1 s\"\n[dumbbell]\nrate = \"1 Mbit/s\"\n[flow.main]\n\
                rtt = \"1 ms\"\narrivals = { kind = \"closed\", pause = \"1 s\" }\n";
    let files = |_: &str| Err(String::new());
    let refused = Document::parse("test", text, &files).and_then(|d| d.plan()).unwrap_err();
    assert!(refused.to_string().contains("no end that another could wait for"), "{refused}");
}
