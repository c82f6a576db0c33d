//! QUIC recovery (RFC 9002) compared with that of quinn-proto, an independent QUIC stack: both see
//! the same packets, ACK frames and timers over random paths. After each event their losses,
//! smoothed RTTs, windows and timers are compared. Both use the same controller, so that equal
//! windows mean equal events.

mod closed_loop;
mod controller;
mod crypto;
mod frames;
mod lockstep;
mod path;
mod peers;
mod scripts;
mod vectors;

use std::collections::BTreeMap;
use std::sync::Arc;

use cwnd_tcp::quic::Params;
use lockstep::{Clause, Outcome};
use path::Family;

/// Patterns of each family.
const SEEDS: u64 = 45;

/// Patterns with a difference, and its clause; all others are equal to their end.
const DIFFERENT: [(Family, Clause, &[u64]); 3] = [
    (Family::Bursts, Clause::MinRtt, &[1, 5, 6, 9, 15, 20, 29, 33, 36, 38]),
    (Family::Bursts, Clause::SkippedNumber, &[43]),
    (Family::Tail, Clause::MinRtt, &[30, 36, 43]),
];

fn outcomes(params: &Params) -> BTreeMap<(Family, u64), Outcome> {
    let run = |family| {
        let of_seed = move |seed| ((family, seed), lockstep::run(family, seed, params));
        (0..SEEDS).map(of_seed)
    };
    Family::ALL.into_iter().flat_map(run).collect()
}

#[test]
fn losses_timers_and_windows_are_those_of_quinn_but_for_two_clauses() {
    let mut expected = BTreeMap::new();
    for (family, clause, seeds) in DIFFERENT {
        expected.extend(seeds.iter().map(|&seed| ((family, seed), Some(clause))));
    }
    let outcomes = outcomes(&Params::default());
    let mut found = BTreeMap::new();
    for (&pattern, outcome) in &outcomes {
        if let Some((_, values, clause)) = &outcome.difference {
            // Shown if the test fails.
            println!("{pattern:?}: {values}, {clause:?}");
            found.insert(pattern, *clause);
        }
    }
    assert_eq!(found, expected, "each difference is traced to its clause");
    // The patterns contain enough events, and few timers are hidden by quinn's pacing timer.
    let sum = |of: fn(&Outcome) -> u64| outcomes.values().map(of).sum::<u64>();
    assert!(sum(|of| of.lost) > 8000 && sum(|of| of.marks) > 1000);
    assert!(sum(|of| of.probe_timeouts) > 800 && sum(|of| of.persistent) > 60);
    assert!(sum(|of| of.hidden) * 6 < sum(|of| of.events));
}

#[test]
fn other_thresholds_differ() {
    let default = Params::default();
    for (params, least) in [
        (Params { packet_threshold: 4, ..default.clone() }, 200),
        (Params { time_threshold: 1.2, ..default.clone() }, 100),
        (Params { max_ack_delay: default.max_ack_delay * 2, ..default.clone() }, 140),
    ] {
        let outcomes = outcomes(&params);
        let different = outcomes.values().filter(|outcome| outcome.difference.is_some()).count();
        assert!(different >= least, "{different} with {params:?}");
    }
}

/// Compares the durations of transfers in which each side makes its own decisions, over the same
/// patterns.
///
/// They differ for two reasons. First, quinn stays below its window, which RFC 9002 § 7 allows to
/// fill: of the least window, two datagrams, it uses one. With that rule the sender under test
/// would take 0.96 to 1.02 of quinn's time, but 0.89 (Tail) and 0.85 (Reordering). Second, quinn
/// sends ten packets at once, which are reordered more often than spaced ones.
#[test]
fn transfers_take_about_as_long_as_those_of_quinn() {
    let theirs = outcomes(&Params::default());
    let params = Arc::new(Params::default());
    for family in Family::ALL {
        let mut logarithms = 0.0;
        for seed in 0..SEEDS {
            let own = closed_loop::run(family, seed, &params);
            let theirs = theirs[&(family, seed)].took;
            logarithms += (own.as_secs_f64() / theirs.as_secs_f64()).ln();
        }
        let ratio = (logarithms / SEEDS as f64).exp();
        assert!((0.65..1.2).contains(&ratio), "{family:?}: {ratio:.3} of quinn's time");
    }
}
