//! Check mode: lockstep comparison of two runs, and pinned step hashes that every build must
//! reproduce.

use cwnd_quantity::Time;
use cwnd_sim::{CheckError, Checked, Divergence, Witness, World, compare};

use crate::common::{assert_golden, run, scenario};
use crate::determinism::PINNED;

/// Writes the same network with a given rate, constant or with a step at half time.
fn with_rate(rate: &str) -> String {
    format!(
        "[run]\nduration = \"4 s\"\nsample = \"none\"\n[dumbbell]\nrate = {rate}\n\
         queue = \"codel\"\nbdp_rtt = \"40 ms\"\nloss = 0.01\n[flow.main]\nrtt = \"40 ms\"\n"
    )
}

/// Compares two runs of one scenario.
fn check(text: &str, go_on: impl FnMut(Time) -> bool) -> Result<Checked, CheckError> {
    let [mut one, mut other] = [(); 2].map(|()| Witness::new(scenario(text)));
    compare(&mut one, &mut other, go_on)
}

fn divergence(one: &str, other: &str) -> Divergence {
    let [mut one, mut other] = [one, other].map(|text| Witness::new(scenario(text)));
    match compare(&mut one, &mut other, |_| true) {
        Err(CheckError::Diverged(divergence)) => *divergence,
        other => panic!("{other:?}"),
    }
}

#[test]
fn two_runs_of_a_scenario_take_the_same_steps_and_give_what_one_run_gives() {
    for (name, text) in PINNED {
        let checked = check(text, |_| true).expect(name);
        assert_eq!(checked.records.digest(), run(text).digest(), "{name}");
        let again = check(text, |_| true).expect(name);
        assert_eq!(checked.chain, again.chain, "{name}");
    }
}

#[test]
fn the_first_event_that_differs_is_found() {
    let constant = with_rate("\"4 Mbit/s\"");
    let stepped =
        with_rate(r#"{ initial = "4 Mbit/s", steps = [{ at = "2 s", rate = "4000001 bit/s" }] }"#);
    let found = divergence(&constant, &stepped);
    let [one, other] = found.steps.clone().map(|s| s.expect("both go on"));
    assert_eq!(one.index, other.index);
    // The runs agree until the instant of the change, which is an event.
    assert_eq!(other.at.0, 2_000_000_000);
    assert!(one.at > other.at, "nothing else happens at that instant");
    assert!(found.last_common.as_ref().is_some_and(|s| s.at < other.at));
    assert!(found.to_string().contains("at 2000000000 ns: the rate of line 0 changes"), "{found}");

    // Confirms the report: stepping both by hand, this is the first event that differs.
    let mut hands = [&constant, &stepped].map(|text| World::new(scenario(text)));
    for _ in 1..one.index {
        hands.iter_mut().for_each(|world| assert!(world.step()));
        assert_eq!(hands[0].now(), hands[1].now());
    }
    hands.iter_mut().for_each(|world| assert!(world.step()));
    assert_eq!((hands[0].now(), hands[1].now()), (one.at, other.at));
}

#[test]
fn a_draw_that_differs_is_found_before_it_has_consequences() {
    let text = with_rate("\"4 Mbit/s\"");
    let found = divergence(&text, &text.replace("[run]", "[run]\nseed = 2"));
    let [one, other] = found.steps.clone().map(|s| s.expect("both go on"));
    // The first packet that enters the bottleneck's pipe takes draws for loss, reordering and
    // jitter.
    assert_eq!((one.index, one.at), (other.index, other.at));
    let names: Vec<&str> = one.draws.iter().map(|d| &*d.stream).collect();
    assert_eq!(names, ["link.bottleneck.faults"; 3]);
    assert_eq!(one.draws.len(), other.draws.len());
    assert_ne!(one.draws, other.draws);
    assert!(found.to_string().contains("drawn: link.bottleneck.faults "), "{found}");
}

#[test]
fn a_run_that_ends_before_the_other_is_found() {
    let text = with_rate("\"4 Mbit/s\"");
    let found = divergence(&text, &text.replace("4 s", "3 s"));
    let [longer, shorter] = &found.steps;
    assert_eq!(*shorter, None);
    assert!(longer.as_ref().is_some_and(|s| s.at.0 >= 3_000_000_000));
    assert!(found.to_string().contains("the other:      the run is over"), "{found}");
}

#[test]
fn a_checked_run_can_be_called_off() {
    for until_s in [0.0, 5.0] {
        let outcome = check(PINNED[0].1, |now| now.as_secs_f64() < until_s);
        assert_eq!(outcome.err(), Some(CheckError::Cancelled));
    }
}

/// The hashes are the same in every build: this debug test and the release tests of the extension
/// read the same file. `cargo run --example steps` prints the steps of a build, to find where two
/// differ.
#[test]
fn the_steps_of_a_run_are_what_they_were() {
    let mut found = "# Hash of every step of a run: time, event, random draws.\n".to_owned();
    for (name, text) in PINNED {
        let checked = check(text, |_| true).expect(name);
        found += &format!("{name} {:016x} {} events\n", checked.chain, checked.records.events);
    }
    assert_golden("steps.txt", &found);
}
