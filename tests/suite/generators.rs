//! Generators of parts of random scenarios: endpoints, with any stack and parts, recovery, windows,
//! clocks and timers; and controllers with explicit feedback, which need certain meters and echoes.

use crate::feedback_schemes::{FEEDBACK_SCHEMES, FeedbackScheme};
use cwnd_cc::ControllerParams;
use cwnd_schema::{Params as _, ParamsChoice as _};
use cwnd_tcp::{PARTS, Params, Part};
use proptest::prelude::*;
use proptest::sample::select;

/// Generates the initial, largest and receive window. The latter is at most 200 kB, because a link
/// without a rate carries a window of any size at once.
fn windows() -> impl Strategy<Value = String> {
    let initial = prop_oneof![4 => Just(10), 1 => 1..3u32, 1 => 100..3000u32];
    let largest = prop_oneof![3 => Just(None), 1 => (3_000..200_000u32).prop_map(Some)];
    let ssthresh = prop_oneof![3 => Just(None), 1 => (1..400_000u32).prop_map(Some)];
    let receive = prop_oneof![2 => Just(150_000), 1 => 3_000..9_000u32, 1 => 3_000..200_000u32];
    (initial, largest, ssthresh, receive).prop_map(|(initial, largest, ssthresh, receive)| {
        let some = |key: &str, n: Option<u32>| {
            n.map(|n| format!(", {key} = \"{n} B\"")).unwrap_or_default()
        };
        format!(
            "initial_window = {initial}, receive_window = \"{receive} B\"{}{}",
            some("max_window", largest),
            some("initial_ssthresh", ssthresh)
        )
    })
}

/// Generates retransmission timers: backoff, minimum RTO and clock. Also the receiver's ACK delay.
pub fn timer() -> impl Strategy<Value = String> {
    let backoff = select(vec!["exponential", "after", "off"]);
    (backoff, 1..6u32, 1..1000u32, 0..4u32, 1..400u32, beside_the_backoff()).prop_map(
        |(backoff, after, min, clock, delay, more)| {
            format!(
                "rto_backoff = \"{backoff}\", rto_backoff_after = {after}, rto_min = \"{min} ms\", \
                 clock = \"{} us\", ack_delay = \"{delay} ms\"{more}",
                10_u32.pow(clock * 2).min(100_000)
            )
        },
    )
}

/// Generates conditions that end the backoff, and limits on retries.
fn beside_the_backoff() -> impl Strategy<Value = String> {
    let until = select(vec!["sample", "sent-once", "ack"]);
    let retries = prop_oneof![2 => Just(None), 1 => (0..4u32).prop_map(Some)];
    (until, any::<[bool; 2]>(), 0..9u32, 0..4u32, retries).prop_map(
        |(until, [thin, bounded], rounds, syns, retries)| {
            let some =
                |key: &str, n: Option<u32>| n.map(|n| format!(", {key} = {n}")).unwrap_or_default();
            format!(
                ", rto_backoff_until = \"{until}\", rto_thin_linear = {thin}{}{}{}",
                some("rto_backoff_rounds", bounded.then_some(rounds)),
                some("syn_backoff_after", bounded.then_some(syns)),
                some("data_retries", retries),
            )
        },
    )
}

/// Generates a timer with a minimum RTO of 100 to 999 ms and a maximum of 4 s. It gives up no data,
/// and a SYN only after 60 retries.
pub fn persistent_timer() -> impl Strategy<Value = String> {
    (100..1000u32).prop_map(|min| {
        format!(
            "rto_min = \"{min} ms\", rto_max = \"4 s\", syn_retries = 60, \
             data_retries = \"none\", data_retry_time = \"none\""
        )
    })
}

/// Generates RTT sources, TSO settings and misbehaving receivers; usually none of these.
fn rtt_and_tso() -> impl Strategy<Value = String> {
    let tso = (
        select(vec!["none", "1 B", "20 kB", "64 kB"]),
        select(vec!["none", "5 ms"]),
        1..5u32,
        select(vec!["full", "rate", "rate-unpaced"]),
    );
    let cheats = (0..2u32, select(vec!["none", "all"]), 1..4u32);
    let from = select(vec!["timer", "oldest", "newest", "sack"]);
    let every = select(vec!["ack", "window"]);
    let some = (from, every, any::<[bool; 2]>(), 0..6u32, tso, cheats);
    let some = some.prop_map(|(from, every, [lone, note], clock, tso, cheats)| {
        let (tso, defer, part, sizing) = tso;
        let (ms, hides, divides) = cheats;
        format!(
            ", rtt_from = \"{from}\", rtt_every = \"{every}\", rtt_lone_acks = {lone}, \
             record_delays = {note}, rtt_clock = \"{} us\", tso = \"{tso}\", \
             tso_defer = \"{defer}\", tso_win_divisor = {part}, tso_sizing = \"{sizing}\", \
             cheat_timestamps = \"{} ms\", cheat_hidden_delay = \"{hides}\", \
             cheat_ack_division = {divides}",
            10_u32.pow(clock),
            ms * 100
        )
    });
    prop_oneof![2 => Just(String::new()), 1 => some]
}

/// Generates a stack, unchanged or with parts removed and added: its key, and its endpoint.
fn changed_stack() -> impl Strategy<Value = (String, Params)> {
    // `rfc` is left out, because schema 1 reads it as `rfc6675`.
    let presets = Params::default().presets().iter().map(|preset| preset.name);
    let bases: Vec<&'static str> = presets.filter(|name| *name != "rfc").collect();
    let is_drawn = prop::bool::weighted(0.2);
    let parts = proptest::collection::vec(is_drawn, PARTS.len());
    let changed = (select(bases), parts).prop_map(|(base, drawn)| with_parts(base, &drawn));
    let plain = with_parts("rfc6675", &[false; PARTS.len()]);
    prop_oneof![1 => Just(plain), 3 => changed]
}

/// Removes the drawn parts that a stack has, and adds those that it lacks and that remain in effect
/// once all are added. Returns the key `stack` and the endpoint.
fn with_parts(base: &str, drawn: &[bool]) -> (String, Params) {
    let mut params = Params::default();
    assert!(params.apply_preset(base), "{base}");
    let drawn = PARTS.iter().zip(drawn).filter(|(_, is_drawn)| **is_drawn).map(|(part, _)| part);
    let (without, mut with): (Vec<&Part>, Vec<&Part>) = drawn.partition(|part| part.is_in(&params));
    without.iter().for_each(|part| part.take_from(&mut params));
    let mut all = params.clone();
    with.iter().for_each(|part| part.add_to(&mut all));
    with.retain(|part| part.is_in(&all));
    with.iter().for_each(|part| part.add_to(&mut params));
    let names =
        |parts: &[&Part]| format!("{:?}", parts.iter().map(|part| part.name).collect::<Vec<_>>());
    let (without, with) = (names(&without), names(&with));
    let text = format!("stack = {{ base = \"{base}\", without = {without}, with = {with} }}\n");
    (text, params)
}

/// Generates the key `stack` of a group.
pub fn stack() -> impl Strategy<Value = String> {
    changed_stack().prop_map(|(stack, _)| stack)
}

/// Generates the keys `stack` and `endpoint` of a group.
pub fn endpoint(timer: BoxedStrategy<String>) -> impl Strategy<Value = String> {
    let timer =
        (timer, rtt_and_tso()).prop_map(|(timer, rtt_and_tso)| timer + &rtt_and_tso).boxed();
    let recovery = select(vec!["tahoe", "reno", "newreno", "sack"]);
    let switches = any::<[bool; 5]>();
    let sizes = (1..5u32, 100..3000u32);
    let free = (changed_stack(), recovery, switches, sizes, windows(), timer.clone()).prop_map(
        |((stack, params), recovery, switches, (ack_every, mss), windows, timer)| {
            let [ecn, timestamps, handshake, limited, quenched] = switches;
            let recovery = match recovery {
                "tahoe" | "reno" if params.prr.prr => "newreno",
                other => other,
            };
            format!(
                "{stack}endpoint = {{ recovery = \"{recovery}\", ecn = {ecn}, \
                 timestamps = {timestamps}, handshake = {handshake}, \
                 limited_transmit = {limited}, ack_every = {ack_every}, mss = \"{mss} B\", \
                 obey_quench = {quenched}, {windows}, {timer} }}"
            )
        },
    );
    let plain = (stack(), any::<bool>(), timer).prop_map(|(stack, ecn, timer)| {
        format!("{stack}endpoint = {{ ecn = {ecn}, receive_window = \"150 kB\", {timer} }}")
    });
    prop_oneof![2 => free, 1 => plain]
}

/// A scheme of explicit feedback with the choices that vary from scenario to scenario.
#[derive(Clone, Copy, Debug)]
pub struct FeedbackGroup {
    scheme: FeedbackScheme,
    preset: Option<&'static str>,
    handshake: bool,
}

/// Generates explicit feedback in some scenarios; most have none.
pub fn feedback_group() -> impl Strategy<Value = Option<FeedbackGroup>> {
    let some = select(FEEDBACK_SCHEMES.clone()).prop_flat_map(|scheme| {
        let kind = ControllerParams::of_kind(scheme.controller).expect("it is registered");
        let mut presets = vec![None];
        presets.extend(kind.params().presets().iter().map(|preset| Some(preset.name)));
        (select(presets), any::<bool>()).prop_map(move |(preset, handshake)| FeedbackGroup {
            scheme,
            preset,
            handshake,
        })
    });
    prop_oneof![3 => Just(None), 2 => some.prop_map(Some)]
}

impl FeedbackGroup {
    /// Returns the meter keys of a dumbbell.
    pub fn beside(&self) -> String {
        format!("meter = \"{0}\"\nreverse_meter = \"{0}\"\n", self.scheme.meter)
    }

    /// Returns the keys of senders and receivers; `timer` has the timer's keys of the endpoint.
    pub fn sender(&self, timer: &str) -> String {
        let Self { scheme: FeedbackScheme { controller, echo, .. }, preset, handshake } = self;
        let preset = preset.map_or_else(String::new, |name| format!(", preset = \"{name}\""));
        format!(
            "controller = {{ kind = \"{controller}\"{preset} }}\n\
             endpoint = {{ ecn = true, echo = \"{echo}\", receive_window = \"150 kB\", \
             handshake = {handshake}, {timer} }}\n"
        )
    }
}

/// A controller with one of its presets, and the feedback that it needs, if any.
#[derive(Clone, Copy, Debug)]
pub struct ControllerPreset {
    kind: &'static str,
    preset: Option<&'static str>,
    scheme: Option<FeedbackScheme>,
}

/// Returns each controller with each of its presets; one without presets, alone.
pub fn controller_presets() -> Vec<ControllerPreset> {
    let mut all = Vec::new();
    for kind in ControllerParams::KINDS.iter().map(|kind| kind.name) {
        let params = ControllerParams::of_kind(kind).expect("it is registered");
        let scheme = FEEDBACK_SCHEMES.iter().copied().find(|scheme| scheme.controller == kind);
        let presets: Vec<_> = params.params().presets().iter().map(|p| Some(p.name)).collect();
        let presets = if presets.is_empty() { vec![None] } else { presets };
        all.extend(presets.into_iter().map(|preset| ControllerPreset { kind, preset, scheme }));
    }
    all
}

impl ControllerPreset {
    /// Returns the names of controller and preset, such as `copa mvfst`.
    pub fn name(&self) -> String {
        let words = [Some(self.kind), self.preset];
        words.into_iter().flatten().collect::<Vec<_>>().join(" ")
    }

    /// Returns the kind of the controller.
    pub const fn kind(&self) -> &'static str {
        self.kind
    }

    /// `true` if the controller needs explicit feedback.
    pub fn needs_feedback(&self) -> bool {
        self.scheme.is_some()
    }

    /// Returns the meter keys of a dumbbell; empty without explicit feedback.
    pub fn beside(&self) -> String {
        self.scheme.map_or_else(String::new, |scheme| {
            format!("meter = \"{0}\"\nreverse_meter = \"{0}\"\n", scheme.meter)
        })
    }

    /// Returns controller and endpoint of a group; `endpoint` has further keys of the endpoint.
    pub fn sender(&self, endpoint: &str) -> String {
        let preset = self.preset.map_or_else(String::new, |name| format!(", preset = \"{name}\""));
        let feedback = self
            .scheme
            .map_or_else(String::new, |scheme| format!(", ecn = true, echo = \"{}\"", scheme.echo));
        format!(
            "controller = {{ kind = \"{}\"{preset} }}\nendpoint = {{ {endpoint}{feedback} }}\n",
            self.kind
        )
    }
}

#[test]
fn every_controller_with_explicit_feedback_has_a_meter_and_an_echo() {
    let schemes: Vec<_> =
        FEEDBACK_SCHEMES.iter().map(|g| (g.controller, g.meter, g.echo)).collect();
    assert!(schemes.contains(&("xcp", "xcp", "sum")), "{schemes:?}");
    assert!(schemes.contains(&("bmcc", "adpm", "load-every")), "{schemes:?}");
    assert!(schemes.contains(&("dctcp", "step", "changes")), "{schemes:?}");
}
