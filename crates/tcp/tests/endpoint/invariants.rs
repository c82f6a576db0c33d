//! Properties of both ends that hold on any path.

use std::cell::Cell;
use std::rc::Rc;
use std::sync::Arc;

use cwnd_cc::{Backoff, ControllerParams};
use cwnd_quantity::{Bytes, Duration, Rng, Time};
use cwnd_schema::{Params as _, ParamsChoice};
use cwnd_tcp::{Config, LossRule, PARTS, Params, QuenchAnswer, QuenchCheck, Recovery, Segment};
use proptest::prelude::*;
use proptest::sample::select;

use super::{Fate, Script, World, config, data, ms, preset, simple};

/// Impairments of a path: losses, marks, late and duplicated segments in percent, and a burst of
/// losses.
#[derive(Clone, Copy, Debug)]
struct Trouble {
    loss: u64,
    mark: u64,
    late: u64,
    twice: u64,
    /// First segment and length of a burst, in which first transmissions are lost.
    burst: (u64, u64),
}

fn trouble() -> impl Strategy<Value = Trouble> {
    (0u64..30, 0u64..30, 0u64..20, 0u64..10, (0u64..80, 0u64..30))
        .prop_map(|(loss, mark, late, twice, burst)| Trouble { loss, mark, late, twice, burst })
}

fn script(trouble: Trouble, seed: u64, name: &str) -> Script {
    let mut rng = Rng::named(seed, name);
    Box::new(move |k, nth| {
        let (from, count) = trouble.burst;
        if nth == 1 && (from..from + count).contains(&k) {
            return Fate::Drop;
        }
        let lot = rng.below(100);
        let late = Duration(rng.below(300_000_000));
        let bounds = [trouble.loss, trouble.mark, trouble.late, trouble.twice];
        let fates = [Fate::Drop, Fate::Mark, Fate::Delay(late), Fate::Twice(late)];
        let mut below = 0;
        for (bound, fate) in bounds.into_iter().zip(fates) {
            below += bound;
            if lot < below {
                return fate;
            }
        }
        Fate::Deliver
    })
}

/// Draws an endpoint's parameters, with some parts removed and others added.
fn params() -> impl Strategy<Value = Params> {
    let drawn = proptest::collection::vec(prop::bool::weighted(0.15), PARTS.len());
    let none = Just(vec![false; PARTS.len()]);
    (endpoint(), prop_oneof![none, drawn]).prop_map(|(params, drawn)| {
        params.with(|p| {
            let drawn = PARTS.iter().zip(drawn).filter(|(_, is_drawn)| *is_drawn);
            // [`World`] does not accept window probes numbered below the window.
            let parts =
                drawn.map(|(part, _)| part).filter(|part| part.name != "zero-window-probes");
            parts.for_each(|part| {
                if part.is_in(p) {
                    part.take_from(p);
                } else {
                    part.add_to(p);
                }
            });
            let recovers = matches!(p.recovery.recovery, Recovery::Sack | Recovery::NewReno);
            p.prr.prr &= recovers;
        })
    })
}

fn endpoint() -> impl Strategy<Value = Params> {
    let recovery = prop_oneof![
        Just((Recovery::Tahoe, false, LossRule::Rfc6675, false)),
        Just((Recovery::Reno, false, LossRule::Rfc6675, false)),
        Just((Recovery::NewReno, false, LossRule::Rfc6675, false)),
        Just(LINUX_WITHOUT_SACK),
        Just((Recovery::Sack, false, LossRule::Rfc6675, false)),
        Just((Recovery::Sack, true, LossRule::Rfc6675, false)),
        Just((Recovery::Sack, false, LossRule::Rack, true)),
        Just((Recovery::Sack, true, LossRule::Rack, true)),
        Just((Recovery::Sack, true, LossRule::Fack, true)),
        Just(FREEBSD),
    ];
    let backoff = prop_oneof![
        Just(Backoff::Exponential),
        Just(Backoff::After),
        Just(Backoff::Bounded),
        Just(Backoff::Off)
    ];
    let switches = (any::<bool>(), any::<bool>(), any::<bool>(), any::<bool>());
    let windows = (1u32..30, prop_oneof![Just(1u64 << 30), 1_000u64..30_000]);
    let clock = prop_oneof![Just(Duration(1)), Just(ms(10)), Just(ms(100))];
    (recovery, backoff, switches, windows, 1u32..5, 1u32..5, clock).prop_map(
        |(
            (recovery, prr, loss_rule, lost_retransmissions),
            rto_backoff,
            (timestamps, handshake, limited_transmit, ecn),
            (initial_window, receive_window),
            ack_every,
            dup_thresh,
            clock,
        )| {
            match (recovery, prr, loss_rule, lost_retransmissions) {
                FREEBSD => of_preset("freebsd"),
                LINUX_WITHOUT_SACK => of_preset("linux"),
                _ => simple(),
            }
            .with(|p| {
                p.recovery.recovery = recovery;
                p.prr.prr = prr;
                p.detection.loss_rule = loss_rule;
                p.detection.lost_retransmissions = lost_retransmissions;
                p.rto.rto_backoff = rto_backoff;
                p.rtt.timestamps = timestamps;
                p.connection.handshake = handshake;
                p.recovery.limited_transmit = limited_transmit;
                p.ecn.ecn = ecn;
                p.windows.initial_window = initial_window;
                p.windows.receive_window = Bytes(receive_window);
                p.acks.ack_every = ack_every;
                p.detection.dup_thresh = dup_thresh;
                p.rtt.clock = clock;
                p.connection.syn_retries = 60;
                p.rto.rto_min = ms(200);
            })
        },
    )
}

/// The drawn combination that stands for preset `freebsd` as a whole.
const FREEBSD: (Recovery, bool, LossRule, bool) = (Recovery::Sack, true, LossRule::Rfc6675, true);

/// The drawn combination that stands for preset `linux` without SACK.
const LINUX_WITHOUT_SACK: (Recovery, bool, LossRule, bool) =
    (Recovery::NewReno, true, LossRule::Rack, true);

/// Parameters of a preset, for an endpoint that does not give up.
fn of_preset(name: &str) -> Params {
    preset(name).with(|p| {
        p.packets = simple().packets;
        // [`World`] does not accept window probes numbered below the window.
        p.probing = Default::default();
        p.connection.data_retries = None;
        p.connection.data_retry_time = None;
    })
}

/// Draws the parameters of a preset.
fn stack() -> impl Strategy<Value = Params> {
    prop_oneof![Just("linux"), Just("freebsd"), Just("ns2")].prop_map(of_preset)
}

fn controller() -> impl Strategy<Value = ControllerParams> {
    let any = select(ControllerParams::KINDS).prop_map(|kind| kind.name);
    // The controllers of most connections are drawn more often.
    prop_oneof![Just("newreno"), Just("cubic"), any]
        .prop_map(|kind| ControllerParams::of_kind(kind).expect("it is registered"))
}

/// Presets that answer source quenches, and one that does not.
const QUENCHED: [&str; 3] = ["rfc", "becn", "becn-1998"];

/// Draws a kind of controller that has all of these presets.
fn with_presets(presets: &'static [&str]) -> impl Strategy<Value = &'static str> {
    let has = |kind: &&str, preset: &&str| {
        let params = ControllerParams::of_kind(kind).expect("it is registered");
        params.params().presets().iter().any(|known| known.name == *preset)
    };
    let kinds = ControllerParams::KINDS.iter().map(|kind| kind.name);
    select(kinds.filter(|kind| presets.iter().all(|p| has(kind, p))).collect::<Vec<_>>())
}

/// Draws source quenches that quote data outstanding now, earlier, later or never; some are
/// repeated at once, some much later.
fn quenches(share: u64, seed: u64) -> Box<dyn FnMut(u64) -> Vec<Segment>> {
    let mut rng = Rng::named(seed, "quenches");
    let mut old: Vec<Segment> = Vec::new();
    Box::new(move |una| {
        let mut now = Vec::new();
        if rng.below(100) >= share {
            return now;
        }
        let near = (una + rng.below(20_000)).saturating_sub(5000);
        let about = if rng.chance(0.2) { rng.bits() >> 1 } else { near };
        let (marked, level) = (rng.chance(0.5), rng.below(256) as u8);
        let quench = data(about, 1000, Time::ZERO).quench(marked, level, 0);
        now.extend(core::iter::repeat_n(quench, 1 + rng.below(4) as usize));
        old.push(quench);
        if rng.chance(0.3) {
            now.push(old[rng.below(old.len() as u64) as usize]);
        }
        now
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2000, ..ProptestConfig::default() })]

    /// Every byte is delivered once and in order, and the invariants of `World::check` and
    /// `World::land` hold throughout.
    #[test]
    fn every_transfer_completes(
        params in params(),
        controller in controller(),
        bytes in 1u64..150_000,
        data in trouble(),
        acks in trouble(),
        seed in any::<u64>(),
        spacing in 0u64..2_000_000,
    ) {
        params.check().unwrap();
        let mut w = World::new(Arc::new(Config::new(params, controller)), bytes, ms(50));
        w.spacing = Duration(spacing);
        w.data_fate = script(data, seed, "data");
        w.ack_fate = script(Trouble { mark: 0, ..acks }, seed, "acks");
        w.run();
        prop_assert!(w.sender.is_drained());
        prop_assert_eq!(w.sender.acknowledged(), bytes);
        prop_assert_eq!(w.receiver.counters().delivered_bytes, bytes);
        prop_assert_eq!(w.sender.in_flight(), 0);
        let c = w.sender.counters();
        let data_segments = w.sent.iter().filter(|s| s.segment.len > 0);
        prop_assert_eq!(c.segments_sent, data_segments.clone().count() as u64);
        let wire_bytes: u64 = data_segments.map(|s| u64::from(s.segment.wire)).sum();
        prop_assert_eq!(c.wire_bytes_sent, wire_bytes);
        prop_assert_eq!(c.retransmissions, c.segments_sent - bytes.div_ceil(1000));
    }

    /// A receive window that opens, closes and shrinks at random stalls no transfer (RFC 9293 §
    /// 3.8.6, MUST-34 to -37).
    #[test]
    fn no_receive_window_stalls_a_transfer(
        params in params(),
        bytes in 1u64..60_000,
        data in trouble(),
        acks in trouble(),
        closed in 0u64..80,
        seed in any::<u64>(),
    ) {
        let params = params.with(|p| {
            p.connection.handshake = false;
            p.windows.receive_window = Bytes(1 << 30);
        });
        let mut w = World::new(config(params), bytes, ms(50));
        w.data_fate = script(data, seed, "data");
        w.ack_fate = script(Trouble { mark: 0, ..acks }, seed, "acks");
        let mut rng = Rng::named(seed, "windows");
        w.ack_windows = Some(Box::new(move || {
            let lot = rng.below(100);
            let most = if lot.is_multiple_of(2) { 1500 } else { 20_000 };
            if lot < closed { 0 } else { rng.below(most) as u32 }
        }));
        w.run();
        prop_assert!(w.sender.is_drained());
        prop_assert_eq!(w.sender.in_flight(), 0);
        prop_assert_eq!(w.receiver.counters().delivered_bytes, bytes);
    }

    /// Valid, wrong, repeated, late or forged quenches stall no transfer, close no window and
    /// reduce none twice (`World::quench`), whatever the response.
    #[test]
    fn no_quench_stalls_a_transfer(
        params in params(),
        kind in with_presets(&QUENCHED),
        preset in select(&QUENCHED),
        answer in prop_oneof![Just(QuenchAnswer::Reduce), Just(QuenchAnswer::Pause)],
        check in prop_oneof![Just(QuenchCheck::InFlight), Just(QuenchCheck::None)],
        (guesses, obeyed) in (prop::option::of(0u32..20), any::<bool>()),
        bytes in 1u64..60_000,
        (data, acks) in (trouble(), trouble()),
        share in 0u64..100,
        seed in any::<u64>(),
    ) {
        let handshake = params.connection.handshake;
        let params = params.with(|p| {
            p.quench.obey_quench = obeyed;
            p.quench.quench_answer = answer;
            p.quench.quench_check = check;
            p.quench.quench_max_guesses = guesses;
        });
        let mut controller = ControllerParams::of_kind(kind).unwrap();
        prop_assert!(controller.params_mut().apply_preset(preset));
        let mut w = World::new(Arc::new(Config::new(params, controller)), bytes, ms(50));
        w.data_fate = script(data, seed, "data");
        w.ack_fate = script(Trouble { mark: 0, ..acks }, seed, "acks");
        let came = Rc::new(Cell::new(0));
        let (mut some, count) = (quenches(share, seed), Rc::clone(&came));
        w.quenches = Some(Box::new(move |una| {
            let now = some(una);
            count.set(count.get() + now.len() as u64);
            now
        }));
        w.run();
        prop_assert!(w.sender.is_drained());
        prop_assert_eq!(w.receiver.counters().delivered_bytes, bytes);
        let c = w.sender.counters();
        // Each quench that reaches an open connection is accepted or refused; only accepted ones
        // have an effect.
        prop_assert!(c.quenches + c.quenches_refused <= came.get());
        prop_assert!(handshake || c.quenches + c.quenches_refused == came.get());
        let most = if obeyed { c.quenches } else { 0 };
        prop_assert!(c.reductions_for_quenches() + c.quench_pauses <= most);
        prop_assert!(check == QuenchCheck::InFlight || c.quenches_refused == 0);
    }

    /// A controller receives the same events from the registry and as a user-defined one behind a
    /// pointer: the same segments are sent at the same times.
    #[test]
    fn a_controller_of_the_registry_does_the_same_as_a_users_own(
        params in prop_oneof![params(), stack()],
        controller in controller(),
        preset in any::<prop::sample::Index>(),
        (data, acks) in (trouble(), trouble()),
        seed in any::<u64>(),
    ) {
        let mut controller = controller;
        let presets = controller.params().presets();
        if !presets.is_empty() {
            controller.params_mut().apply_preset(preset.get(presets).name);
        }
        let sent = |config: Config| {
            let mut w = World::new(Arc::new(config), 150_000, ms(50));
            w.data_fate = script(data, seed, "data");
            w.ack_fate = script(Trouble { mark: 0, ..acks }, seed, "acks");
            w.run();
            let at = w.sent.iter().map(|s| (s.at, s.segment.seq, s.segment.len, s.segment.ecn));
            (at.collect::<Vec<_>>(), w.finished, *w.sender.counters())
        };
        let own = controller.clone();
        let users = Config::new(params.clone(), controller.clone())
            .with_controller(move |start| Box::new(own.build(start)));
        let (registered, users) = (sent(Config::new(params, controller)), sent(users));
        prop_assert_eq!(registered.0, users.0);
        prop_assert_eq!((registered.1, registered.2), (users.1, users.2));
    }

    /// Two runs with one seed send the same segments at the same times.
    #[test]
    fn a_run_repeats_itself(params in params(), data in trouble(), seed in any::<u64>()) {
        let run = || {
            let mut w = World::segments(params.clone(), 60, ms(50));
            w.data_fate = script(data, seed, "data");
            w.run();
            w.sent.iter().map(|s| (s.at, s.segment)).collect::<Vec<_>>()
        };
        prop_assert_eq!(run(), run());
    }
}
