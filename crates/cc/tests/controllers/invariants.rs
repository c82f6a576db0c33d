//! Invariants of every controller with every preset, under any sequence of events; bounds on the
//! growth of Copa's window.

use cwnd_cc::{
    AckSample, Cause, Controller, ControllerParams, GrowthPermission, Path, Phase, Request, Signal,
    Start,
};
use cwnd_packet::Echo;
use cwnd_quantity::Duration;
use cwnd_schema::{ParamsChoice, Value};
use proptest::prelude::*;

use crate::{MSS, Script, avoiding, params, start, text};

#[derive(Clone, Copy, Debug)]
enum Event {
    Ack { segments_tenths: u64, ece: bool, limited: bool, rtt_us: u64, echo: Option<u16> },
    Signal(Signal),
    Phase(Phase),
    Wait { us: u64 },
}

/// Echo of what routers write: a code point, or any estimate.
fn echo() -> impl Strategy<Value = Option<u16>> {
    prop::option::of(prop_oneof![0..4_u16, any::<u16>()])
}

fn event() -> impl Strategy<Value = Event> {
    prop_oneof![
        12 => (1..80_u64, any::<bool>(), prop::bool::weighted(0.9), 100..2_000_000_u64, echo())
            .prop_map(|(segments_tenths, ece, limited, rtt_us, echo)| {
                Event::Ack { segments_tenths, ece, limited, rtt_us, echo }
            }),
        1 => Just(Event::Signal(Signal::Reduce(Cause::Loss))),
        1 => Just(Event::Signal(Signal::Reduce(Cause::Ecn))),
        1 => Just(Event::Signal(Signal::Reduce(Cause::Delay))),
        1 => Just(Event::Signal(Signal::Reduce(Cause::Load))),
        1 => (1..4_u32).prop_map(|nth| Event::Signal(Signal::Timeout { nth, reduces: nth == 1 })),
        1 => Just(Event::Signal(Signal::Idle { idle: Duration::from_secs(2), keep: None })),
        2 => prop::sample::select(vec![Phase::Open, Phase::Cwr, Phase::Recovery, Phase::Loss])
            .prop_map(Event::Phase),
        4 => (0..3_000_000_u64).prop_map(|us| Event::Wait { us }),
    ]
}

fn controllers() -> Vec<ControllerParams> {
    let mut all = Vec::new();
    for kind in ControllerParams::KINDS {
        let plain = ControllerParams::of_kind(kind.name).unwrap();
        let presets = plain.params().presets().iter().map(|preset| Some(preset.name));
        for preset in presets.chain([None]) {
            let mut p = plain.clone();
            assert!(preset.is_none_or(|preset| p.params_mut().apply_preset(preset)));
            if p.params().get("slow_start").is_none() {
                all.push(p);
                continue;
            }
            for slow_start in ["standard", "hystart++"] {
                p.params_mut().set("slow_start", &Value::Text(slow_start.into())).unwrap();
                all.push(p.clone());
            }
        }
    }
    all
}

proptest! {
    #[test]
    fn the_window_keeps_its_bounds_and_no_congestion_signal_raises_it(
        events in prop::collection::vec(event(), 1..300),
        mss in prop_oneof![Just(1_u32), Just(536), Just(1448), Just(65_535)],
        initial in 1..50_u64,
        bound in 1..500_u64,
        flight_percent in 0..200_u64,
        delayed_acks in any::<bool>(),
    ) {
        let size = u64::from(mss);
        let start = Start {
            mss,
            initial_window: initial * size,
            initial_ssthresh: u64::MAX,
            max_window: bound * size,
            delayed_acks,
        };
        for params in controllers() {
            let mut c = params.build(&start);
            let mut path = Path { mss, cwnd_limited: true, ..Path::default() };
            for event in &events {
                let before = c.window();
                path.flight_size = before.cwnd * flight_percent / 100;
                match *event {
                    Event::Ack { segments_tenths, ece, limited, rtt_us, echo } => {
                        let rtt = Duration::from_micros(rtt_us);
                        path.srtt = Some(rtt);
                        path.rtt = Some(rtt);
                        path.min_rtt = Some(path.min_rtt.map_or(rtt, |m| m.min(rtt)));
                        path.cwnd_limited = limited;
                        path.round += u64::from(segments_tenths % 7 == 0);
                        let acked_bytes = (segments_tenths * size / 10).max(1);
                        path.delivered += acked_bytes;
                        let grow = GrowthPermission::for_ack(&path, ece);
                        let rtt = Some(rtt);
                        let load = |value| Echo::Load { value, bits: 16, changes: 0 };
                        let echo = echo.map_or(Echo::None, load);
                        let rest = AckSample::default();
                        let ack = AckSample { acked_bytes, rtt, ece, echo, grow, ..rest };
                        let asks = c.on_ack(&path, &ack);
                        if !params.info().lowers_on_acks() {
                            prop_assert_eq!(asks, Request::Nothing);
                            let cwnd = c.window().cwnd;
                            prop_assert!(cwnd >= before.cwnd, "an ACK lowered the window");
                            let echo_counts = ece && path.phase != Phase::Loss;
                            if echo_counts || !limited || path.phase == Phase::Recovery {
                                prop_assert_eq!(c.window(), before);
                            }
                        }
                    }
                    Event::Signal(signal) => {
                        c.on_signal(&path, signal);
                        let cwnd = c.window().cwnd;
                        prop_assert!(cwnd <= before.cwnd, "{signal:?} raised the window");
                    }
                    Event::Phase(phase) => path.phase = phase,
                    Event::Wait { us } => path.now += Duration::from_micros(us),
                }
                let after = c.window();
                prop_assert!(after.cwnd >= size, "{after:?} after {event:?}");
                prop_assert!(after.cwnd <= bound * size, "{after:?} after {event:?}");
                prop_assert!(after.ssthresh >= 2 * size, "{after:?} after {event:?}");
            }
        }
    }
}

/// Grown by some rounds, reduced by a loss and taken back: the window of the next rounds is that of
/// a controller that was not reduced. Linux's CUBIC keeps its plateau and Vegas begins its round
/// anew (both have `tcp_reno_undo_cwnd`): their windows are compared at once only.
#[test]
fn a_reduction_that_is_taken_back_leaves_the_growth_as_it_was() {
    // A new kind need not be listed; none of these may lose its undo.
    const WITH_UNDO: [&str; 11] = [
        "newreno",
        "cubic",
        "htcp",
        "vegas",
        "dctcp",
        "delay-aimd",
        "fast",
        "ledbat",
        "bmcc",
        "bbr",
        "rcp",
    ];
    for params in controllers() {
        for start in [start(10), avoiding(10)] {
            let mut s = Script::new(&params, &start);
            for _ in 0..3 {
                s.path.round += 1;
                s.path.now += Duration::from_millis(100);
                let window = s.window().cwnd;
                s.ack(window);
            }
            let mut other = s.clone();
            let before = s.controller.clone();
            s.signal(Signal::Reduce(Cause::Loss));
            let reduced = s.window();
            s.controller.undo(before, s.path.now, false);
            if s.window() == reduced && reduced != other.window() {
                assert!(!WITH_UNDO.contains(&params.kind()), "{params:?} lost its undo");
                // Nor may the transport do anything else to its window.
                s.controller.add_in_flight(MSS);
                s.controller.raise_threshold(u64::MAX);
                assert_eq!(s.window(), reduced, "{params:?} gives its window, and has no undo");
                continue;
            }
            assert_eq!(s.window().cwnd, other.window().cwnd, "{params:?}");
            assert!(s.window().ssthresh >= other.window().ssthresh, "{params:?}");
            let is_linux = params.params().get("growth") == Some(Value::Text("linux".to_owned()));
            if is_linux || params.kind() == "vegas" {
                continue;
            }
            for _ in 0..3 {
                for s in [&mut s, &mut other] {
                    s.path.round += 1;
                    s.path.now += Duration::from_millis(100);
                    let window = s.window().cwnd;
                    s.ack(window);
                }
                assert_eq!(s.window().cwnd, other.window().cwnd, "{params:?}");
            }
        }
    }
}

/// The retransmission that a timeout sends fills a hole below data that was SACKed long before.
#[test]
fn an_ack_of_a_thousand_segments_doubles_a_window_of_one() {
    let mut copa = Script::new(&params("copa", &[]), &start(10));
    copa.round();
    copa.signal(Signal::Timeout { nth: 1, reduces: true });
    copa.path.phase = Phase::Loss;
    copa.ack(1000 * MSS);
    assert_eq!(copa.cwnd(), 2.0);
}

/// The velocity doubles for as long as the queue stays empty. The paper keeps it for the rest of a
/// window once the target is passed; it then moves the window by at most an eighth.
#[test]
fn a_velocity_that_is_kept_for_a_window_moves_it_by_an_eighth() {
    let bounded = Start { max_window: 2000 * MSS, ..start(100) };
    let mut copa = Script::new(&params("copa", &[("preset", text("paper"))]), &bounded);
    let mut rounds = |rtt_ms, rounds| {
        copa.path.srtt = Some(Duration::from_millis(rtt_ms));
        let mut most = 0.0_f64;
        for _ in 0..rounds {
            copa.path.sent = copa.path.delivered + copa.window().cwnd;
            let before = copa.cwnd();
            copa.round();
            most = most.max(copa.cwnd() / before);
        }
        most
    };
    // Slow start ends with the second call; then the queue is empty.
    rounds(100, 1);
    rounds(200, 6);
    let most = rounds(100, 25);
    assert!((1.06..1.13).contains(&most), "{most}");
}
