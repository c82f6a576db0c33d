//! Timeouts inferred from captures at the receiver, against the sender's actual timeouts.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::sync::Arc;

use cwnd_cc::Signal;
use cwnd_cc::record::Call;
use cwnd_infer::{Found, Inference, Input, Limits};
use cwnd_sim::World;
use cwnd_tables::{ColumnData, Table};

use crate::architecture::root;
use crate::common::{Kept, assert_golden, column, scenario};

/// A combination of loss process and sender.
struct Case {
    name: &'static str,
    rate: &'static str,
    delay: &'static str,
    path: &'static str,
    endpoint: &'static str,
    /// Backoff that consecutive timeouts should be found to have used.
    backoff: &'static str,
    /// `true` if timeouts in silences classified as ambiguous are left out of the score: Linux also
    /// repairs lost retransmissions by RACK, after a similar delay.
    ambiguous: bool,
}

const FIFO: &str = r#"queue = { kind = "fifo", limit = "10 packets" }"#;
const RED: &str = r#"queue = { kind = "red", limit = "30 packets" }"#;
const LOSS: &str = "loss = 0.1";
const LINUX: &str = r#"preset = "linux""#;
const NONE: &str = r#"rto_backoff = "off""#;
const AFTER: &str = r#"rto_backoff = "after", rto_backoff_after = 2"#;

impl Case {
    const fn slow(name: &'static str, path: &'static str, endpoint: &'static str) -> Self {
        Self {
            name,
            rate: "1 Mbit/s",
            delay: "50 ms",
            path,
            endpoint,
            backoff: "doubled",
            ambiguous: false,
        }
    }

    const fn fast(name: &'static str, path: &'static str, endpoint: &'static str) -> Self {
        Self { rate: "20 Mbit/s", ..Self::slow(name, path, endpoint) }
    }

    const fn not_doubled(self) -> Self {
        Self { backoff: "constant", ..self }
    }

    fn text(&self, seed: u64) -> String {
        let Self { rate, delay, path, endpoint, .. } = self;
        let changes = [
            (r#"duration = "40 s", seed = 5"#, format!(r#"duration = "120 s", seed = {seed}"#)),
            (r#"rate = "20 Mbit/s""#, format!(r#"rate = "{rate}""#)),
            (r#"delay = "50 ms""#, format!(r#"delay = "{delay}""#)),
            ("loss = 0.1", (*path).to_owned()),
            ("count = 10", "count = 20".to_owned()),
            ("endpoint = {}", format!("endpoint = {{ {endpoint} }}")),
        ];
        changes.iter().fold(SCENARIO.to_owned(), |text, (from, to)| {
            assert_eq!(text.matches(from).count(), 1, "{from}");
            text.replace(from, to)
        })
    }
}

/// Scenario shared with the Python test.
const SCENARIO: &str = include_str!("at_receiver.toml");

const CASES: [Case; 11] = [
    Case::slow("FIFO", FIFO, ""),
    Case::slow("FIFO, no backoff", FIFO, NONE).not_doubled(),
    Case { delay: "90 ms", ambiguous: true, ..Case::slow("FIFO, Linux", FIFO, LINUX) },
    Case::slow("RED", RED, ""),
    Case::fast("random loss", LOSS, ""),
    Case::fast("random loss, Linux", LOSS, LINUX),
    Case::fast("random loss, no backoff", LOSS, NONE).not_doubled(),
    Case::fast("random loss, TCP*(2)", LOSS, AFTER).not_doubled(),
    Case::fast("random loss, no timestamps", LOSS, "timestamps = false"),
    Case { delay: "100 ms", ..Case::fast("5 % loss, Linux", "loss = 0.05", LINUX) },
    Case { delay: "100 ms", ..Case::fast("8 % loss, Linux", "loss = 0.08", LINUX) },
];
const SEEDS: [u64; 2] = [1, 2];

/// Position of a timeout: flow, and first unacknowledged byte.
type Place = (u64, u64);

/// Number of timeouts by position.
type Timeouts = BTreeMap<Place, u64>;

/// First source port of senders in captures of the simulator.
const PORT: u64 = 49152;

/// Returns the timeouts of senders, the inferred ones, and the whole inference. The first two leave
/// out flows with an incomplete record and timeouts of a flow's first data.
fn truth_and_found(case: &Case, seed: u64) -> (Timeouts, Timeouts, Found) {
    let scenario = scenario(&case.text(seed));
    let link = |name| scenario.links.iter().position(|link| link.name == name);
    let links = ["near", "near.reverse"].map(|name| link(name).expect("it is there"));
    let mut world = World::new(Arc::clone(&scenario));
    let kept = Kept::default();
    world.capture(&links, Box::new(kept.clone())).expect("memory takes it");
    world.record_controllers();
    while world.step() {}
    let mut timeouts = Vec::new();
    for (flow, controller) in (0..).zip(world.controllers()) {
        for entry in controller.record() {
            if let Call::Signal(Signal::Timeout { .. }) = entry.call {
                timeouts.push((flow, entry.path.now.as_secs_f64(), entry.path.delivered));
            }
        }
    }
    // A controller recreated after a lost SYN has no record, so its flow is left out.
    let records = world.finish();
    let mut known = BTreeSet::new();
    let counted = column(&records.flows, "rto_count");
    for (flow, count) in column(&records.flows, "flow_id").into_iter().zip(&counted) {
        let recorded = timeouts.iter().filter(|(of, ..)| *of == flow as u64).count();
        if recorded as f64 == *count {
            known.insert(flow as u64);
        }
    }
    assert!(known.len() * 2 >= counted.len(), "{}: {} flows", case.name, known.len());

    let capture = kept.bytes();
    let mut inference = Inference::new(Limits::default());
    inference.read(&[Input::of("capture", &capture)], || true).expect("it is a capture");
    let found = inference.finish();
    let last = column(&found.connections, "server_last_s");
    let last: BTreeMap<u64, f64> = flows(&found).into_iter().zip(last).collect();
    let mut truth = BTreeMap::new();
    for (flow, at, first) in timeouts {
        // A loss that was not repaired at the end of the run left no trace. Neither did the loss of
        // a sender's first data if that data ends the handshake, as in the simulator.
        let seen = first > 0 && last.get(&flow).is_some_and(|&last| at < last);
        if seen && known.contains(&flow) {
            *truth.entry((flow, first)).or_default() += 1;
        }
    }
    let mut inferred = of_kind(&found, "timeout");
    inferred.retain(|(flow, first), _| known.contains(flow) && *first > 0);
    (truth, inferred, found)
}

/// Returns the flow of each connection, by its port.
fn flows(found: &Found) -> Vec<u64> {
    column(&found.connections, "server_port").iter().map(|port| *port as u64 - PORT).collect()
}

fn names(table: &Table, column: &str) -> Vec<String> {
    match table.column(column) {
        Some(ColumnData::Name { codes, labels }) => {
            codes.iter().map(|code| labels[code.0 as usize].clone()).collect()
        }
        other => panic!("{column}: {other:?}"),
    }
}

/// Returns the silences of data of a kind by position, each with its number of timeouts.
fn of_kind(found: &Found, kind: &str) -> Timeouts {
    let (table, flows) = (&found.silences, flows(found));
    let (offsets, what) = (column(table, "offset"), names(table, "what"));
    let (connections, kinds) = (column(table, "connection"), names(table, "kind"));
    let mut places = BTreeMap::new();
    for (row, count) in column(table, "timeouts").into_iter().enumerate() {
        if kinds[row] == kind && what[row] == "data" {
            let place = (flows[connections[row] as usize], offsets[row] as u64);
            *places.entry(place).or_default() += count as u64;
        }
    }
    places
}

/// Counts of correct classifications, of actual ones and of claimed ones.
#[derive(Default)]
struct Score {
    right: u64,
    there: u64,
    said: u64,
}

impl Score {
    fn add(&mut self, right: u64, there: u64, said: u64) {
        self.right += right;
        self.there += there;
        self.said += said;
    }

    fn recall(&self) -> f64 {
        self.right as f64 / self.there as f64
    }

    fn precision(&self) -> f64 {
        self.right as f64 / self.said as f64
    }
}

/// Results of one case over all seeds.
#[derive(Default)]
struct Outcome {
    /// Scores for silences with a timeout, for timeouts including hidden ones, and for connections
    /// with two in a row.
    scores: [Score; 3],
    /// Number of silences with a timeout that are left out, as they are classified as ambiguous.
    ambiguous: u64,
    /// Connections whose backoff was identified correctly, and those for which one was claimed.
    grew: (u64, u64),
}

fn outcome(case: &Case) -> Outcome {
    let mut outcome = Outcome::default();
    let [silences, timeouts, rows] = &mut outcome.scores;
    for seed in SEEDS {
        let (mut truth, inferred, found) = truth_and_found(case, seed);
        if case.ambiguous {
            let before = truth.len();
            let ambiguous = of_kind(&found, "ambiguous");
            truth.retain(|place, _| inferred.contains_key(place) || !ambiguous.contains_key(place));
            outcome.ambiguous += (before - truth.len()) as u64;
        }
        let both = truth.keys().filter(|place| inferred.contains_key(place)).count();
        silences.add(both as u64, truth.len() as u64, inferred.len() as u64);
        let right =
            |(place, n): (&Place, &u64)| (*n).min(inferred.get(place).copied().unwrap_or(0));
        let all = |timeouts: &Timeouts| timeouts.values().sum();
        timeouts.add(truth.iter().map(right).sum(), all(&truth), all(&inferred));
        let in_a_row = |timeouts: &Timeouts| -> BTreeSet<u64> {
            timeouts.iter().filter(|(_, n)| **n > 1).map(|((flow, _), _)| *flow).collect()
        };
        let (there, said) = (in_a_row(&truth), in_a_row(&inferred));
        let right = there.intersection(&said).count();
        rows.add(right as u64, there.len() as u64, said.len() as u64);
        for backoff in names(&found.connections, "backoff") {
            outcome.grew.0 += u64::from(backoff == case.backoff);
            outcome.grew.1 += u64::from(!["none", "unclear"].contains(&backoff.as_str()));
        }
    }
    outcome
}

/// Mondal & Kuzmanovic, § 2.4, on captures with ground truth: recall and precision of each class.
#[test]
fn inferred_timeouts_are_those_that_happened() {
    let mut table = format!(
        "{:26}{:>24}{:>24}{:>24}{:>11}\n{:26}{}{:>11}\n",
        "",
        "silences with a timeout",
        "timeouts",
        "flows with two in a row",
        "growth",
        "",
        "   there recall precision".repeat(3).replace("   there", "  there"),
        "right/said"
    );
    let mut wrong = Vec::new();
    for case in &CASES {
        let Outcome { scores, ambiguous, grew: (right, said) } = outcome(case);
        write!(table, "{:26}", case.name).expect("a text grows");
        for (score, what) in scores.iter().zip(["silences", "timeouts", "rows"]) {
            let (recall, precision) = (score.recall(), score.precision());
            let there = score.there;
            write!(table, "{there:>7}{recall:>7.3}{precision:>10.3}").expect("a text grows");
            if recall < 0.95 || precision < 0.95 {
                wrong.push(format!("{}, {what}: {recall:.3} {precision:.3}", case.name));
            }
        }
        write!(table, "{:>11}", format!("{right}/{said}")).expect("a text grows");
        if ambiguous > 0 {
            write!(table, "  and {ambiguous} said to be ambiguous").expect("a text grows");
        }
        table.push('\n');
        if right * 20 < said * 19 {
            wrong.push(format!("{}: {right} of {said} grew so", case.name));
        }
    }
    assert!(wrong.is_empty(), "{}\n{table}", wrong.join("\n"));
    assert_golden("infer.txt", &table);
    let page =
        std::fs::read_to_string(root().join("crates/infer/README.md")).expect("there is a page");
    assert!(
        page.contains(&table),
        "crates/infer/README.md has another table than tests/golden/infer.txt"
    );
}
