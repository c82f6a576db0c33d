//! BECN in whole scenarios: the lead of quenches over ECN echoes, and the effect of forged
//! quenches. The README of `cwnd-aqm` must contain the tables that are computed here.

use std::fmt::Write as _;

use cwnd_quantity::Rng;
use cwnd_sim::World;
use cwnd_tables::Records;

use crate::common::{activity, at, column, run, scenario};

const PAGE: &str = include_str!("../../crates/aqm/README.md");

/// Asserts that the page contains these rows.
fn is_on_the_page(table: &str) {
    for row in table.lines() {
        assert!(PAGE.contains(row), "crates/aqm/README.md has not\n{table}");
    }
}

/// Writes a path with a one-way delay of 100 ms, `before_ms` of it before the bottleneck.
fn path(before_ms: u64, messenger: &str, endpoint: &str) -> String {
    let access = |name: &str, from: &str, to: &str, ms: u64, more: &str| {
        format!(
            "[link.{name}]\nfrom = \"{from}\"\nto = \"{to}\"\ndelay = \"{ms} ms\"\n{more}\n\
             [link.{name}-back]\nfrom = \"{to}\"\nto = \"{from}\"\ndelay = \"{ms} ms\"\n\
             rate = \"none\"\n"
        )
    };
    let bottleneck = format!(
        "rate = \"10 Mbit/s\"\n\
         {messenger}queue = {{ kind = \"red\", w_q = 1.0, min_th = \"19 packets\", \
         max_th = \"20 packets\", gentle = false, forced = \"mark\" }}"
    );
    format!(
        "[run]\nduration = \"3 s\"\nsample = \"100 us\"\n{}{}[flow.main]\nfrom = \"a\"\n\
         to = \"c\"\ncontroller = {{ kind = \"newreno\", preset = \"becn\" }}\n\
         endpoint = {{ preset = \"ns2\", ecn = true, initial_window = 10, {endpoint} }}\n",
        access("in", "a", "r", before_ms, "rate = \"none\""),
        access("out", "r", "c", 100 - before_ms, &bottleneck),
    )
}

/// Returns the time of the first reduction of ssthresh, ms.
fn first_reduction(text: &str) -> f64 {
    let records = run(text);
    let series = &records.flow_series;
    let (times, thresholds) = (column(series, "time_s"), column(series, "snd_ssthresh_pkts"));
    let fell = thresholds.iter().position(|&t| t < 1000.0).expect("it is reduced");
    times[fell] * 1000.0
}

/// The lead is (1 − x) · R + q: x is the part of the path before the bottleneck, R = 200 ms, q the
/// queueing delay at the first mark. Then 20 packets of 1000 B wait and one is being sent: with the
/// marked packet's own transmission, q is 16.8 to 17.6 ms.
#[test]
fn a_quench_comes_sooner_than_an_echo_by_what_lies_behind_the_bottleneck_and_the_queue() {
    let mut table = String::new();
    for (before, closed_form) in [(0, 217.2), (25, 167.2), (50, 117.2), (75, 67.2), (100, 17.2)] {
        let quench =
            path(before, "messenger = \"quench\"\n", "obey_ece = false, obey_quench = true");
        let echo = path(before, "", "obey_ece = true");
        let sooner = first_reduction(&echo) - first_reduction(&quench);
        // Half of the range of q, and two sampling intervals.
        assert!((sooner - closed_form).abs() < 0.4 + 0.2, "{before}: {sooner} of {closed_form}");
        let x = f64::from(before as u32) / 100.0;
        writeln!(table, "| {x:.2} | {closed_form:.1} ms | {sooner:.1} ms |").unwrap();
    }
    is_on_the_page(&table);
}

/// Runs a flow for 10 s with these keys of an attacker, if any, and of the endpoint.
fn attacked(attacker: &str, endpoint: &str) -> Records {
    let text = format!(
        "[run]\nduration = \"10 s\"\n[dumbbell]\nrate = \"10 Mbit/s\"\n\
         queue = {{ kind = \"fifo\", limit = \"1 BDP\" }}\n\
         [flow.main]\nrtt = \"100 ms\"\ncontroller = {{ kind = \"newreno\", preset = \"becn\" }}\n\
         endpoint = {{ obey_quench = true, ack_every = 1{endpoint} }}\n{attacker}"
    );
    let mut world = World::new(scenario(&text));
    while world.step() {}
    assert_eq!(world.audit(), Ok(()));
    world.finish()
}

/// Returns the key of an attacker who forges a million quenches a second with this knowledge.
fn knows(what: &str) -> String {
    format!("attacker = {{ kind = \"quench\", rate = 1e6, knows = \"{what}\" }}\n")
}

#[test]
fn forged_quenches_do_what_the_page_says() {
    let mut table = String::new();
    let mut goodput = Vec::new();
    for (who, what, attacker, endpoint) in [
        ("nobody", "`in-flight`, 10 guesses", "", ""),
        ("blind: one of 64512 ports", "`in-flight`, 10 guesses", "addresses", ""),
        ("", "`none`", "addresses", ", quench_check = \"none\""),
        ("knows the ports", "`in-flight`, 10 guesses", "ports", ""),
        ("", "`in-flight`, any guesses", "ports", ", quench_max_guesses = \"none\""),
        ("", "`none`", "ports", ", quench_check = \"none\""),
        ("on the path", "`in-flight`, 10 guesses", "packets", ""),
    ] {
        let attack = if attacker.is_empty() { String::new() } else { knows(attacker) };
        let records = attacked(&attack, endpoint);
        let flow = |name: &str| at(&records.flows, 0, name);
        let (believed, reduced) = (flow("quenches"), flow("cwnd_reductions_quench"));
        let mbit = flow("goodput_bit_s") / 1e6;
        goodput.push(mbit);
        // At most one reduction in each of the hundred round trips.
        assert!(reduced <= believed && reduced <= 100.0, "{who} {what}: {reduced}");
        if !attacker.is_empty() {
            let forged = activity(&records, "quenches_forged") as f64;
            assert_eq!(believed + flow("quenches_refused"), forged, "{who} {what}");
        }
        writeln!(table, "| {who} | {what} | {believed} | {reduced} | {mbit:.2} Mbit/s |").unwrap();
    }
    // An attacker that the check stops has no effect at all.
    assert_eq!(goodput[1], goodput[0]);
    assert_eq!(goodput[3], goodput[0]);
    // The others slow the flow down, but none stops it: one segment a round trip is 0.12 Mbit/s.
    assert!(goodput[2..].iter().all(|&mbit| mbit > 0.1), "{goodput:?}");
    assert!(goodput[6] < 0.2, "{goodput:?}");
    is_on_the_page(&table);
}

/// An attack lasts from its start to its end, on each connection that is open, including later
/// arrivals.
#[test]
fn an_attacker_keeps_to_its_time_and_to_open_connections() {
    let attack = |more: &str| {
        format!("attacker = {{ kind = \"quench\", rate = 1000.0, knows = \"packets\"{more} }}\n")
    };
    let forged = |records: &Records| activity(records, "quenches_forged");
    assert_eq!(forged(&attacked(&attack(""), "")), 9999 - 100, "none before the handshake is over");
    assert_eq!(forged(&attacked(&attack(", start = \"2 s\", stop = \"3 s\""), "")), 999);
    // 100 kB take some round trips; after that the connection is closed and no longer attacked.
    let short = "workload = { kind = \"bytes\", size = \"100 kB\" }\n";
    let records = attacked(&(attack("") + short), ", handshake = false");
    let (took, came) = (at(&records.flows, 0, "fct_s"), forged(&records) as f64);
    assert!((came / 1000.0 - took).abs() < 0.15, "{came} in {took} s");
    let arriving = "workload = { kind = \"poisson\", interval = \"500 ms\", size = \"50 kB\" }\n";
    let records = attacked(&(attack("") + arriving), "");
    let quenched = column(&records.flows, "quenches").iter().filter(|&&n| n > 0.0).count();
    assert!(quenched > 10 && quenched + 2 >= records.flows.len(), "{quenched}");
}

/// A window of W bytes covers W of the 2³² sequence numbers. Without a limit to guesses, that is
/// the hit rate of an attacker who knows the ports.
#[test]
fn guesses_hit_as_often_as_the_window_is_wide() {
    let text = "[run]\nduration = \"10 s\"\n[dumbbell]\nrate = \"10 Mbit/s\"\n[flow.main]\n\
                rtt = \"100 ms\"\n\
                endpoint = { quench_max_guesses = \"none\", max_window = \"100 kB\" }\n";
    let mut world = World::new(scenario(text));
    let mut rng = Rng::named(2, "attacker");
    // The window is full from 2 s on.
    while world.step() && world.now().0 < 2_000_000_000 {}
    let guesses = 3_000_000;
    for _ in 0..guesses {
        assert!(world.forge_quench(0, Some(rng.bits() as u32), false));
    }
    let hits = world.messages_to(0).expect("the flow is there") as f64;
    let expected = f64::from(guesses) * 100_000.0 / 4_294_967_296.0;
    assert!((hits - expected).abs() < 4.0 * expected.sqrt(), "{hits} of {expected}");
}
