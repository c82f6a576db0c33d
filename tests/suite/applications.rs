//! Applications: a custom one in one file, every registered kind in a run, and flows between
//! several nodes.

use cwnd_apps::{Actions, Application, Transport, WorkloadParams};
use cwnd_quantity::{Rng, Time};
use cwnd_schema::ParamsChoice as _;
use cwnd_sim::World;
use proptest::strategy::{Strategy as _, ValueTree as _};
use proptest::test_runner::TestRunner;

use crate::common::{activity, at, column, run, run_audited, scenario};
use crate::custom_parts::object_sequence::{OBJECT, ObjectSequence};
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
