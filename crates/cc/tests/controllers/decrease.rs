//! Decrease rules in NewReno and CUBIC: by parameters, by delay, user-defined, and those of the
//! presets as a table.

use cwnd_cc::cubic::{self, Cubic};
use cwnd_cc::newreno::{self, NewReno};
use cwnd_cc::{
    Cause, Controller, ControllerParams, Decrease, DelayDecrease, Path, Rule, Signal, Stage, Start,
    Window,
};
use cwnd_packet::{Ability, HasContract as _};
use cwnd_quantity::{Duration, Levels, Time};
use cwnd_schema::Value;

use crate::{MSS, Script, avoiding, params, start, text};

const MS: fn(u64) -> Duration = Duration::from_millis;

fn in_avoidance() -> Start {
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
    let reno =
        NewReno::new(&newreno::Params::default(), &in_avoidance()).with_decrease(rule.clone());
    let cubic = Cubic::new(&cubic::Params::default(), &in_avoidance()).with_decrease(rule);
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
        let mut reno = NewReno::new(&params, &in_avoidance());
        let params = cubic::Params { rule, ..cubic::Params::default() };
        let mut cubic = Cubic::new(&params, &in_avoidance());
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
        let mut c = NewReno::new(&params, &in_avoidance());
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
    let mut reno =
        NewReno::new(&newreno::Params::default(), &in_avoidance()).with_decrease(Quarter);
    for _ in 0..4 {
        reno.on_signal(&path(None), Signal::Reduce(Cause::Loss));
    }
    assert_eq!(reno.window().cwnd, 2 * MSS, "RFC 5681 eq. 4");
    let first = Start { initial_ssthresh: u64::MAX, ..in_avoidance() };
    let mut reno = NewReno::new(&newreno::Params::default(), &first).with_decrease(Quarter);
    reno.on_signal(&path(None), Signal::Reduce(Cause::Loss));
    assert_eq!(reno.window().cwnd, 90 * MSS, "it is told where the window stood");
}

/// `ecn_in_slow_start` is about ECN-echoes (RFC 8511). A factor for quenches applies in slow start,
/// too, as in `cwnd-kernel`; without one a quench counts as an echo.
#[test]
fn a_factor_for_quenches_holds_in_slow_in_avoidance() {
    let quench = Cause::Quench { marked: true, level: 0 };
    let first = Start { initial_ssthresh: u64::MAX, ..in_avoidance() };
    for (beta_quench, cause, left) in
        [(Levels::of(&[0.5]), quench, 45), (None, quench, 63), (Levels::of(&[0.5]), Cause::Ecn, 63)]
    {
        let rule = Rule { beta: 0.7, beta_ecn: None, beta_quench, ..Rule::default() };
        let mut cubic = Cubic::new(&cubic::Params { rule, ..cubic::Params::default() }, &first);
        cubic.on_signal(&path(None), Signal::Reduce(cause));
        assert_eq!(cubic.window().cwnd, left * MSS, "{cause:?}");
    }
}

/// Window in segments, odd and different from `FLIGHT`, so that base and rounding show.
const CWND: u64 = 101;
/// Data in flight, segments.
const FLIGHT: u64 = 81;

#[derive(Clone, Copy)]
enum StageAtSignal {
    First,
    Later,
    Avoidance,
}

/// Returns a controller with a window of 101 segments in the stage.
fn at(kind: &str, preset: &str, stage: StageAtSignal) -> Script {
    let p = params(kind, &[("preset", text(preset)), ("slow_start", text("standard"))]);
    let s = match stage {
        StageAtSignal::First => Script::new(&p, &start(CWND)),
        StageAtSignal::Avoidance => Script::new(&p, &avoiding(CWND)),
        StageAtSignal::Later => {
            // Doubled twice, reduced, and idle: back at the initial window, below a known
            // threshold.
            let mut s = Script::new(&p, &start(CWND));
            s.round();
            s.round();
            s.signal(Signal::Reduce(Cause::Loss));
            s.signal(Signal::Idle { idle: Duration::from_secs(9), keep: None });
            assert!(s.ssthresh() > 200.0);
            s
        }
    };
    assert_eq!(s.window().cwnd, CWND * MSS);
    s
}

fn threshold_after(kind: &str, preset: &str, stage: StageAtSignal, signal: Signal) -> f64 {
    let mut s = at(kind, preset, stage);
    s.signal_in_flight(signal, FLIGHT * MSS);
    assert_eq!(s.window().cwnd, s.window().ssthresh);
    s.ssthresh()
}

/// Kind, preset, and thresholds in segments after a loss and an ECN-echo in: the first slow start,
/// a later one, congestion avoidance.
type Row = (&'static str, &'static str, [[f64; 2]; 3]);

const TABLE: &[Row] = &[
    ("newreno", "rfc", [[40.5, 40.5], [40.5, 40.5], [40.5, 40.5]]),
    ("newreno", "rfc9406", [[40.5, 40.5], [40.5, 40.5], [40.5, 40.5]]),
    ("newreno", "rfc9002", [[50.5, 50.5], [50.5, 50.5], [50.5, 50.5]]),
    ("newreno", "abe", [[40.5, 40.5], [40.5, 40.5], [40.5, 64.8]]),
    ("newreno", "paper", [[50.5, 80.8], [50.5, 80.8], [50.5, 80.8]]),
    ("newreno", "freebsd", [[50.0, 80.0], [50.0, 80.0], [50.0, 80.0]]),
    ("newreno", "ns-3", [[40.5, 56.7], [40.5, 56.7], [40.5, 56.7]]),
    ("newreno", "ns-3-linux-reno", [[50.5, 70.7], [50.5, 70.7], [50.5, 70.7]]),
    ("newreno", "linux", [[50.0, 50.0], [50.0, 50.0], [50.0, 50.0]]),
    ("newreno", "neqo", [[50.5, 50.5], [50.5, 50.5], [50.5, 50.5]]),
    ("newreno", "quicly", [[50.5, 50.5], [50.5, 50.5], [50.5, 50.5]]),
    ("newreno", "pytcp", [[40.5, 68.85], [40.5, 68.85], [40.5, 68.85]]),
    ("newreno", "adaptive-backoff", [[50.5, 50.5], [50.5, 50.5], [50.5, 50.5]]),
    ("newreno", "becn", [[50.5, 50.5], [50.5, 50.5], [50.5, 50.5]]),
    ("newreno", "becn-1998", [[50.5, 50.5], [50.5, 50.5], [50.5, 50.5]]),
    ("cubic", "rfc", [[56.7, 56.7], [56.7, 56.7], [56.7, 56.7]]),
    ("cubic", "rfc9406", [[56.7, 56.7], [56.7, 56.7], [56.7, 56.7]]),
    ("cubic", "abe", [[56.7, 56.7], [56.7, 56.7], [56.7, 68.85]]),
    ("cubic", "paper", [[70.7, 85.85], [70.7, 85.85], [70.7, 85.85]]),
    ("cubic", "freebsd", [[50.5, 50.5], [70.7, 70.7], [70.7, 70.7]]),
    ("cubic", "ns-3", [[70.0, 85.0], [70.0, 85.0], [70.0, 85.0]]),
    ("cubic", "linux", [[70.0, 70.0], [70.0, 70.0], [70.0, 70.0]]),
    ("cubic", "linux-3.17", [[70.0, 70.0], [70.0, 70.0], [70.0, 70.0]]),
    ("cubic", "linux-2.6.22", [[80.0, 80.0], [80.0, 80.0], [80.0, 80.0]]),
    ("cubic", "neqo", [[70.7, 85.85], [70.7, 85.85], [70.7, 85.85]]),
    ("cubic", "quicly", [[50.5, 50.5], [70.7, 85.85], [70.7, 85.85]]),
    ("cubic", "pytcp", [[56.7, 68.85], [56.7, 68.85], [56.7, 68.85]]),
    ("cubic", "adaptive-backoff", [[70.7, 70.7], [70.7, 70.7], [70.7, 70.7]]),
    ("cubic", "becn", [[70.7, 70.7], [70.7, 70.7], [70.7, 70.7]]),
    ("cubic", "becn-1998", [[70.7, 70.7], [70.7, 70.7], [70.7, 70.7]]),
];

#[test]
fn every_preset_reduces_as_its_source_says() {
    for (kind, preset, expected) in TABLE {
        for (stage, row) in [StageAtSignal::First, StageAtSignal::Later, StageAtSignal::Avoidance]
            .into_iter()
            .zip(expected)
        {
            let loss = threshold_after(kind, preset, stage, Signal::Reduce(Cause::Loss));
            let ecn = threshold_after(kind, preset, stage, Signal::Reduce(Cause::Ecn));
            assert_eq!([loss, ecn], *row, "{kind}, {preset}, stage {}", stage as u8);
        }
    }
}

#[test]
fn the_table_names_every_preset() {
    for kind in ["newreno", "cubic"] {
        use cwnd_schema::ParamsChoice;
        let p = params(kind, &[]);
        let named: Vec<_> = TABLE.iter().filter(|r| r.0 == kind).map(|r| r.1).collect();
        let known: Vec<_> = p.params().presets().iter().map(|preset| preset.name).collect();
        assert_eq!(named, known);
    }
}

#[test]
fn a_preset_undoes_another() {
    for (kind, preset, _) in TABLE {
        for (_, other, _) in TABLE.iter().filter(|r| r.0 == *kind) {
            let both = params(kind, &[("preset", text(other)), ("preset", text(preset))]);
            assert_eq!(both, params(kind, &[("preset", text(preset))]), "{preset} over {other}");
        }
    }
}

fn asks_for_ecn(params: &ControllerParams) -> bool {
    params.contract().requirements.iter().any(|requirement| requirement.ability == Ability::Ect)
}

#[test]
fn only_a_factor_of_its_own_for_ecn_asks_for_ecn() {
    for (kind, preset, _) in TABLE {
        let needs = asks_for_ecn(&params(kind, &[("preset", text(preset))]));
        let differs = !matches!(
            (*kind, *preset),
            (_, "rfc" | "rfc9406" | "adaptive-backoff" | "becn" | "becn-1998")
                | ("newreno", "rfc9002" | "linux" | "neqo" | "quicly")
                | ("cubic", "freebsd" | "linux" | "linux-3.17" | "linux-2.6.22")
        );
        assert_eq!(needs, differs, "{kind}, {preset}");
    }
    assert!(!asks_for_ecn(&params("newreno", &[("beta_ecn", Value::Float(0.5))])));
    assert!(asks_for_ecn(&params("newreno", &[("beta_ecn", Value::Float(0.6))])));
}

#[test]
fn a_mechanism_is_stated_in_words_of_its_kind_and_asked_for_by_its_presets() {
    use cwnd_cc::Mechanism;
    use cwnd_schema::ParamsChoice as _;
    let mut asked = Vec::new();
    for kind in ControllerParams::KINDS {
        let fresh = || ControllerParams::of_kind(kind.name).unwrap();
        for mechanism in fresh().info().mechanisms() {
            for key in mechanism.key.into_iter().chain(mechanism.base) {
                assert!(fresh().params().get(key).is_some(), "{}: no `{key}`", kind.name);
            }
        }
        // A mechanism without a base parameter is part of the kind, except for these two, which are
        // optional.
        let rare = [Some("adaptive_delta"), Some("beta_quench")];
        let own = |m: &&Mechanism| m.base.is_none() && !rare.contains(&m.key);
        let stated = fresh();
        let own = stated.info().mechanisms().iter().filter(own).count();
        assert_eq!(fresh().asked_for().count(), own, "{}", kind.name);
        for preset in fresh().params().presets() {
            let mut params = fresh();
            assert!(params.params_mut().apply_preset(preset.name));
            let names: Vec<&str> = params.asked_for().map(|m| m.name).collect();
            if let ("newreno", [name, ..]) = (kind.name, &names[..]) {
                asked.push((preset.name, *name));
            }
        }
    }
    assert_eq!(asked[..2], [("abe", "ABE"), ("paper", "ABE")]);
    assert_eq!(asked.len(), 7);
    assert_eq!(asked[6], ("adaptive-backoff", "adaptive backoff"));
}

/// Linux 2.6, tcp_reno_cong_avoid, by hand: a window of w takes w + 1 ACKs. A backoff leaves whole
/// segments, and clears the count; RTTs without a queue leave δ = 0.8: 2.4 of 3, then 1.6 of 2.
#[test]
fn delay_aimd_counts_acks_as_linux_2_6() {
    let grown = |s: &mut Script| {
        s.ack(MSS);
        s.cwnd()
    };
    let counted = params("delay-aimd", &[("increase", text("linux-2.6"))]);
    let mut s = Script::new(&counted, &avoiding(2));
    s.path.rtt = s.path.srtt;
    assert_eq!([(); 4].map(|()| grown(&mut s)), [2.0, 2.0, 3.0, 3.0]);
    s.signal(Signal::Reduce(Cause::Delay));
    assert_eq!(s.cwnd(), 2.0);
    assert_eq!([(); 3].map(|()| grown(&mut s)), [2.0, 2.0, 3.0]);
    s.signal(Signal::Reduce(Cause::Delay));
    s.signal(Signal::Reduce(Cause::Delay));
    assert_eq!(s.cwnd(), 1.0);
    assert_eq!([(); 5].map(|()| grown(&mut s)), [1.0, 2.0, 2.0, 2.0, 3.0]);
    let mut s = Script::new(&params("delay-aimd", &[]), &avoiding(2));
    assert_eq!(grown(&mut s), 2.5, "eq. 2.5");
}
