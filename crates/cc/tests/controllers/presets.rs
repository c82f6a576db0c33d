//! The versions of ABE as a table: the threshold that each signal leaves, in each stage.

use cwnd_cc::{Cause, ControllerParams, Signal};
use cwnd_packet::{Ability, HasContract as _};
use cwnd_quantity::Duration;
use cwnd_schema::Value;

use crate::script::{MSS, Script, avoiding, params, start, text};

/// Window in segments, odd and different from `FLIGHT`, so that base and rounding show.
const CWND: u64 = 101;
/// Data in flight, segments.
const FLIGHT: u64 = 81;

#[derive(Clone, Copy)]
enum Stage {
    First,
    Later,
    Avoidance,
}

/// Returns a controller with a window of 101 segments in the stage.
fn at(kind: &str, preset: &str, stage: Stage) -> Script {
    let p = params(kind, &[("preset", text(preset)), ("slow_start", text("standard"))]);
    let s = match stage {
        Stage::First => Script::new(&p, &start(CWND)),
        Stage::Avoidance => Script::new(&p, &avoiding(CWND)),
        Stage::Later => {
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

fn threshold_after(kind: &str, preset: &str, stage: Stage, signal: Signal) -> f64 {
    let mut s = at(kind, preset, stage);
    s.signal_in_flight(signal, FLIGHT * MSS);
    assert_eq!(s.window().cwnd, s.window().ssthresh);
    s.ssthresh()
}

/// Thresholds in segments after a loss and an ECN-echo in: the first slow start, a later one,
/// congestion avoidance.
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
        for (stage, row) in [Stage::First, Stage::Later, Stage::Avoidance].into_iter().zip(expected)
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
    use cwnd_cc::{ControllerParams, Mechanism};
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
