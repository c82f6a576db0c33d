//! Decrease rules: by parameters, by delay, and user-defined, in NewReno and CUBIC.

use cwnd_cc::cubic::{self, Cubic};
use cwnd_cc::newreno::{self, NewReno};
use cwnd_cc::{
    Cause, Controller, Decrease, DelayDecrease, Path, Rule, Signal, Stage, Start, Window,
};
use cwnd_quantity::{Duration, Levels, Time};

const MSS: u64 = 1000;
const MS: fn(u64) -> Duration = Duration::from_millis;

fn start() -> Start {
    Start {
        mss: MSS as u32,
        initial_window: 90 * MSS,
        // In congestion avoidance from the start.
        initial_ssthresh: 90 * MSS,
        max_window: u64::MAX,
        delayed_acks: false,
    }
}

/// A path with 90 segments in flight; the least RTT is 100 ms.
fn path(rtt_ms: Option<u64>) -> Path {
    Path {
        now: Time(1_000_000_000),
        mss: MSS as u32,
        flight_size: 90 * MSS,
        min_rtt: rtt_ms.map(|_| MS(100)),
        rtt: rtt_ms.map(MS),
        srtt: rtt_ms.map(MS),
        ..Path::default()
    }
}

fn rule() -> Rule {
    Rule { beta: 0.5, beta_ecn: Some(0.8), ..Rule::default() }
}

/// Reduces NewReno and CUBIC by a rule; returns both windows in segments.
fn left(rule: impl Decrease + Clone + 'static, path: &Path, cause: Cause) -> [u64; 2] {
    let reno = NewReno::new(&newreno::Params::default(), &start()).with_decrease(rule.clone());
    let cubic = Cubic::new(&cubic::Params::default(), &start()).with_decrease(rule);
    let controllers: [Box<dyn Controller>; 2] = [Box::new(reno), Box::new(cubic)];
    controllers.map(|mut c| {
        c.on_signal(path, Signal::Reduce(cause));
        let Window { cwnd, ssthresh } = c.window();
        assert_eq!(cwnd, ssthresh, "{cause:?}");
        cwnd / MSS
    })
}

/// δ · RTTmin / RTT of 90: 0.9 · 100/150 · 90 = 54; β and β_ecn for other causes.
#[test]
fn delay_leaves_delta_times_the_least_round_trip_over_the_newest() {
    let by_delay = |delta| DelayDecrease::new(delta, &rule());
    assert_eq!(left(by_delay(0.9), &path(Some(150)), Cause::Delay), [54, 54]);
    assert_eq!(left(by_delay(1.0), &path(Some(150)), Cause::Delay), [60, 60]);
    assert_eq!(left(by_delay(1.0), &path(Some(100)), Cause::Delay), [90, 90], "no queue");
    assert_eq!(left(by_delay(0.9), &path(Some(150)), Cause::Loss), [45, 45]);
    assert_eq!(left(by_delay(0.9), &path(Some(150)), Cause::Ecn), [72, 72]);
    assert_eq!(left(by_delay(0.9), &path(None), Cause::Delay), [45, 45], "no sample yet: β");
}

/// With δ = 1 the queue just empties: a window of C · RTT becomes C · RTTmin, whatever the queue
/// held.
#[test]
fn with_a_delta_of_one_what_is_left_is_the_pipe() {
    let bytes_per_ms = 3 * MSS;
    for rtt in [100, 101, 125, 150, 400, 1000] {
        let path = Path { flight_size: bytes_per_ms * rtt, ..path(Some(rtt)) };
        let rule = DelayDecrease::new(1.0, &rule());
        let left = rule.reduced(&path, path.flight_size, Stage::Avoidance, Cause::Delay);
        assert_eq!(left, bytes_per_ms * 100, "{rtt}");
    }
}

/// McCullagh 2008 eq. 4.1: with adaptive backoff a loss leaves δ · minRTT / RTT, and so does an
/// ECN-echo without `beta_ecn`. β applies before the first measurement.
#[test]
fn adaptive_backoff_answers_a_loss_by_the_round_trip() {
    let left = |beta_ecn, path: &Path, cause| {
        let rule = Rule { adaptive_delta: Some(0.9), beta_ecn, ..rule() };
        let params = newreno::Params { rule: rule.clone(), ..newreno::Params::default() };
        let mut reno = NewReno::new(&params, &start());
        let params = cubic::Params { rule, ..cubic::Params::default() };
        let mut cubic = Cubic::new(&params, &start());
        reno.on_signal(path, Signal::Reduce(cause));
        cubic.on_signal(path, Signal::Reduce(cause));
        assert_eq!(reno.window().cwnd, cubic.window().cwnd, "{cause:?}");
        reno.window().cwnd / MSS
    };
    assert_eq!(left(None, &path(Some(150)), Cause::Loss), 54);
    assert_eq!(left(None, &path(Some(150)), Cause::Ecn), 54);
    assert_eq!(left(Some(0.8), &path(Some(150)), Cause::Ecn), 72);
    assert_eq!(left(None, &path(Some(100)), Cause::Loss), 81, "an empty queue leaves δ");
    assert_eq!(left(None, &path(None), Cause::Loss), 45);
}

/// Without a special rule, a controller treats a delay and a dropped quench as a loss, and a marked
/// quench and a load as a mark (RFC 8511 in congestion avoidance).
#[test]
fn factors_answer_every_cause() {
    let params = newreno::Params { rule: rule(), ..newreno::Params::default() };
    for (cause, left) in [
        (Cause::Loss, 45),
        (Cause::Delay, 45),
        (Cause::Quench { marked: false, level: 0 }, 45),
        (Cause::Ecn, 72),
        (Cause::Quench { marked: true, level: 0 }, 72),
        (Cause::Load, 72),
    ] {
        let mut c = NewReno::new(&params, &start());
        c.on_signal(&path(Some(150)), Signal::Reduce(cause));
        assert_eq!(c.window().cwnd, left * MSS, "{cause:?}");
    }
}

/// User-defined rule: keeps a quarter of the window, in slow start all of it.
#[derive(Clone, Debug)]
struct Quarter;

impl Decrease for Quarter {
    fn reduced(&self, _: &Path, cwnd: u64, stage: Stage, _: Cause) -> u64 {
        if stage == Stage::Avoidance { cwnd / 4 } else { cwnd }
    }
}

#[test]
fn a_rule_of_ones_own_goes_into_both_and_keeps_their_bounds() {
    assert_eq!(left(Quarter, &path(None), Cause::Delay), [22, 22]);
    let mut reno = NewReno::new(&newreno::Params::default(), &start()).with_decrease(Quarter);
    for _ in 0..4 {
        reno.on_signal(&path(None), Signal::Reduce(Cause::Loss));
    }
    assert_eq!(reno.window().cwnd, 2 * MSS, "RFC 5681 eq. 4");
    let first = Start { initial_ssthresh: u64::MAX, ..start() };
    let mut reno = NewReno::new(&newreno::Params::default(), &first).with_decrease(Quarter);
    reno.on_signal(&path(None), Signal::Reduce(Cause::Loss));
    assert_eq!(reno.window().cwnd, 90 * MSS, "it is told where the window stood");
}

/// `ecn_in_slow_start` is about ECN-echoes (RFC 8511). A factor for quenches applies in slow start,
/// too, as in `cwnd-kernel`; without one a quench counts as an echo.
#[test]
fn a_factor_for_quenches_holds_in_slow_start() {
    let quench = Cause::Quench { marked: true, level: 0 };
    let first = Start { initial_ssthresh: u64::MAX, ..start() };
    for (beta_quench, cause, left) in
        [(Levels::of(&[0.5]), quench, 45), (None, quench, 63), (Levels::of(&[0.5]), Cause::Ecn, 63)]
    {
        let rule = Rule { beta: 0.7, beta_ecn: None, beta_quench, ..Rule::default() };
        let mut cubic = Cubic::new(&cubic::Params { rule, ..cubic::Params::default() }, &first);
        cubic.on_signal(&path(None), Signal::Reduce(cause));
        assert_eq!(cubic.window().cwnd, left * MSS, "{cause:?}");
    }
}
