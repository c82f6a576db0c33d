//! Copa: the window moves towards a rate of 1 / (δ · queueing delay), so that each flow keeps about
//! 1/δ packets in the queue.
//!
//! Arun, Balakrishnan, *Copa: practical delay-based congestion control for the Internet*, NSDI
//! 2018; sections are of this paper. Details that it leaves open follow its authors' programs
//! (genericCC, ccp_copa) or mvfst, as the parameters' sources say.

use alloc::boxed::Box;
use alloc::collections::VecDeque;
use alloc::sync::Arc;

use cwnd_packet::{Ability, Contract, HasContract};
use cwnd_quantity::{Duration, Rate, Time};
use cwnd_schema::{Choice, PresetOf, Presets, RegistryEntry, Schema};

use crate::controller::{
    AckSample, Cause, Controller, GrowthPermission, Path, Request, Signal, Start, Window,
    min_ssthresh,
};
use crate::dynamic::{ControllerInfo, DynController};

/// Round-trip time that the queueing delay is computed from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Choice)]
pub enum DelayOf {
    /// RTTstanding, the least of a short time, so that bursts of ACKs show no delay (§ 2.1).
    #[name("standing")]
    Standing,
    /// The newest (mvfst).
    #[name("newest")]
    Newest,
}

/// Name and description in scenarios.
pub const ENTRY: RegistryEntry = RegistryEntry::new(
    "copa",
    "Copa: steers towards a rate of 1 / (δ · queueing delay) (Arun & Balakrishnan 2018).",
);

/// Copa.
#[derive(Clone, Debug, PartialEq, Schema)]
#[schema(presets)]
pub struct Params {
    /// δ: a flow aims at 1/δ packets in the queue.
    #[default(0.5, "Arun & Balakrishnan 2018 § 2.2: 0.5; mvfst Copa.h: 0.05")]
    #[bounds(above 0.0; "the queue would have no bound")]
    pub delta: f64,
    /// `true` if it competes while the queue is not seen nearly empty: 1/δ then grows like the
    /// window of a loss-based flow.
    #[default(true, "Arun & Balakrishnan 2018 § 2.2; not in mvfst")]
    pub competitive: bool,
    /// Round trips without a nearly empty queue after which it competes.
    #[default(
        8,
        "venkatarun95/ccp_copa rtt_window.rs: 8; Arun & Balakrishnan 2018 § 2.2: 5, as long as the \
        queue takes to go up and down"
    )]
    #[bounds(from 1, up_to 1000; "it counts round trips")]
    pub empty_rounds: u32,
    /// Round trips over which RTTmax is the largest RTT.
    #[default(8, "venkatarun95/ccp_copa rtt_window.rs: 8; Arun & Balakrishnan 2018 § 2.2: 4")]
    #[bounds(from 1, up_to 1000; "it counts round trips")]
    pub swing_rounds: u32,
    /// The queue is nearly empty while the delay is below this part of RTTmax − RTTmin.
    #[default(0.1, "Arun & Balakrishnan 2018 § 2.2: 10 %")]
    #[bounds(above 0.0, below 1.0; "it is a part")]
    pub nearly_empty: f64,
    /// Time over which RTTmin is the least RTT.
    #[default(Duration::from_secs(10), "Arun & Balakrishnan 2018 § 2.1: 10 s")]
    #[bounds(above Duration::ZERO; "it would be the newest RTT")]
    pub min_rtt_window: Duration,
    /// Time over which RTTstanding is the least RTT, as a part of the smoothed RTT.
    #[default(0.5, "Arun & Balakrishnan 2018 § 2.1: srtt / 2")]
    #[bounds(above 0.0; "it is a time")]
    pub standing: f64,
    /// Round-trip time that the queueing delay is computed from.
    #[default(DelayOf::Standing, "Arun & Balakrishnan 2018 § 2.1")]
    pub delay_of: DelayOf,
    /// The velocity doubles once the direction has stayed for so many round trips.
    #[default(3, "Arun & Balakrishnan 2018 § 2.1: 3")]
    #[bounds(from 1, up_to 1000; "it counts round trips")]
    pub doubles_after: u32,
    /// Round trips from one check of direction and velocity to the next.
    #[default(
        2,
        "venkatarun95/ccp_copa lib.rs: 2; Arun & Balakrishnan 2018 § 2.1 and mvfst: 1, with which \
        it may swing for good"
    )]
    #[bounds(from 1, up_to 1000; "it counts round trips")]
    pub velocity_rounds: u32,
    /// `true` if a velocity above 1 is reset to 1 as soon as the window is to turn; otherwise at
    /// the next check (`velocity_rounds`).
    #[default(
        true,
        "venkatarun95/ccp_copa lib.rs, mvfst Copa.cpp; Arun & Balakrishnan 2018 § 2.1: once a \
        window"
    )]
    pub turns_at_once: bool,
    /// Pacing rate as a multiple of window / RTTstanding; none sends as ACKs arrive.
    #[default(Some(2.0), "Arun & Balakrishnan 2018 § 2.1: 2")]
    #[bounds(from 1.0; "the window would never be used")]
    pub pacing_gain: Option<f64>,
    /// Part of the window that stays after a loss that is repaired without a timeout; none is all
    /// of it.
    #[default(
        None,
        "Arun & Balakrishnan 2018 § 2.2: losses change δ alone, and that only where it competes"
    )]
    #[bounds(above 0.0, below 1.0; "it is the part of the window that stays")]
    pub loss_beta: Option<f64>,
    /// Part of the window that stays after an ECN-echo or a source quench.
    #[default(0.5, "none in Arun & Balakrishnan 2018; RFC 3168 § 6.1.2: half")]
    #[bounds(above 0.0, below 1.0; "it is the part of the window that stays")]
    pub ecn_beta: f64,
}

impl Presets for Params {
    const PRESETS: &'static [PresetOf<Self>] = &[
        PresetOf::new(
            "ccp",
            "Arun & Balakrishnan 2018, with the numbers of round trips of the authors' later \
             program (ccp_copa); the default.",
            Self::default,
        ),
        PresetOf::new("paper", "The paper to the letter.", || Self {
            empty_rounds: 5,
            swing_rounds: 4,
            velocity_rounds: 1,
            turns_at_once: false,
            ..Self::default()
        }),
        PresetOf::new(
            "default-mode",
            "The default mode alone, which gives way to flows that fill buffers.",
            || Self { competitive: false, ..Self::default() },
        ),
        PresetOf::new(
            "mvfst",
            "mvfst (Copa.cpp): δ of 0.05, the newest RTT, no competition.",
            || Self {
                delta: 0.05,
                competitive: false,
                delay_of: DelayOf::Newest,
                velocity_rounds: 1,
                ..Self::default()
            },
        ),
    ];
}

impl ControllerInfo for Params {
    fn build(&self, start: &Start) -> Box<dyn DynController> {
        Box::new(Copa::new(self, start))
    }

    fn lowers_on_acks(&self) -> bool {
        true
    }
}

impl HasContract for Params {
    fn contract(&self) -> Contract {
        Contract::new()
            .wants(Ability::Timestamps, "the delay of one packet in each window is all it hears of")
            .when(self.pacing_gain.is_some(), |c| {
                c.wants(Ability::Pacing, "its bursts are taken for a queue")
            })
    }
}

/// Copa's state for one connection. Windows are bytes in floating point, so that fractions of a
/// byte add up.
#[derive(Clone, Debug)]
pub struct Copa {
    cwnd: f64,
    /// `true` in slow start, which has no threshold: it ends once λ exceeds λt, or at a loss or
    /// mark.
    slow_start: bool,
    rtts: Rtts,
    velocity: Velocity,
    competitive_mode: CompetitiveMode,
    pacing: Option<Rate>,
    counters: Counters,
    constants: Arc<Constants>,
}

/// Constants of a connection.
#[derive(Debug)]
struct Constants {
    params: Params,
    initial_window: f64,
    max_window: f64,
    min_ssthresh: u64,
}

#[derive(Clone, Copy, Debug, Default)]
struct Counters {
    competitions: u64,
    competing_rounds: u64,
}

/// RTT filters of § 2.1 and 2.2.
#[derive(Clone, Debug, Default)]
struct Rtts {
    min: WindowedFilter<Duration>,
    standing: WindowedFilter<Duration>,
    /// Least and largest RTT that show if the queue was nearly empty (§ 2.2).
    recent: WindowedFilter<Duration>,
    max: WindowedFilter<Duration>,
}

/// Least or largest value measured within a time window; keeps only the measurements that no newer
/// one equals or exceeds.
#[derive(Clone, Debug, Default)]
struct WindowedFilter<T> {
    samples: VecDeque<(Time, T)>,
}

impl<T: Copy> WindowedFilter<T> {
    /// Adds a value measured now and drops values older than `window`. `exceeds` returns `true` if
    /// its first argument makes the second useless.
    fn update(&mut self, now: Time, value: T, window: Duration, exceeds: impl Fn(T, T) -> bool) {
        while self.samples.back().is_some_and(|&(_, kept)| exceeds(value, kept)) {
            self.samples.pop_back();
        }
        self.samples.push_back((now, value));
        while self.samples.front().is_some_and(|&(at, _)| now.since(at) > window) {
            self.samples.pop_front();
        }
    }

    /// Returns the value that no other in the window exceeds, as of the last update; `None` before
    /// the first.
    fn best(&self) -> Option<T> {
        self.samples.front().map(|&(_, value)| value)
    }
}

/// Size and direction of the steps (§ 2.1).
#[derive(Clone, Copy, Debug)]
struct Velocity {
    /// v, the factor on the step of one round trip.
    value: f64,
    /// Direction of the window at the last check, or after a turn since; `None` if it did not move.
    up: Option<bool>,
    /// Round trips since `up` changed.
    rounds_in_direction: u32,
    /// Round trips since the last check of direction and velocity, or since a later reset
    /// ([`Velocity::begin`]).
    unchecked_rounds: u32,
    /// Payload bytes sent when the round trip began: it is over once more than that is
    /// acknowledged.
    from: u64,
    /// Window at that check or reset, bytes.
    window: f64,
}

impl Velocity {
    const fn begin(from: u64, window: f64) -> Self {
        Self { value: 1.0, up: None, rounds_in_direction: 0, unchecked_rounds: 0, from, window }
    }

    /// Ends a round trip, in which a velocity of 1 moves the window by `unit` bytes.
    fn end_round(&mut self, window: f64, unit: f64, params: &Params) {
        self.unchecked_rounds += 1;
        if self.unchecked_rounds < params.velocity_rounds {
            return;
        }
        let rounds = core::mem::take(&mut self.unchecked_rounds);
        let up = (window != self.window).then_some(window > self.window);
        if up.is_some() && up == self.up {
            self.rounds_in_direction = self.rounds_in_direction.saturating_add(rounds);
            let next = self.value * 2.0;
            // Departs from § 2.1, where v has no bound. Without `turns_at_once`, v is kept for a
            // whole window after the target was passed.
            let within = if params.turns_at_once {
                next <= MAX_VELOCITY
            } else {
                next * unit <= MAX_KEPT_STEP * window
            };
            if self.rounds_in_direction >= params.doubles_after && within {
                self.value = next;
            }
        } else {
            self.value = 1.0;
            self.rounds_in_direction = 0;
        }
        self.up = up;
        self.window = window;
    }
}

/// The competitive mode (§ 2.2).
#[derive(Clone, Copy, Debug)]
struct CompetitiveMode {
    /// Time of the first RTT, or of the first after an idle time.
    since: Option<Time>,
    /// 1/δ while it competes; `None` in the default mode.
    inverse: Option<f64>,
    /// `true` if a loss lowered 1/δ in this round trip.
    lost: bool,
}

impl Copa {
    /// Creates the controller of a new connection.
    #[must_use]
    pub fn new(params: &Params, start: &Start) -> Self {
        let cwnd = start.initial_cwnd() as f64;
        Self {
            cwnd,
            slow_start: true,
            rtts: Rtts::default(),
            velocity: Velocity::begin(0, cwnd),
            competitive_mode: CompetitiveMode { since: None, inverse: None, lost: false },
            pacing: None,
            counters: Counters::default(),
            constants: Arc::new(Constants {
                params: params.clone(),
                initial_window: cwnd,
                max_window: start.max_window() as f64,
                min_ssthresh: min_ssthresh(start.mss),
            }),
        }
    }

    /// Returns the window in whole bytes.
    fn bytes(&self) -> u64 {
        self.cwnd as u64
    }

    fn take_rtt(&mut self, path: &Path, rtt: Duration) {
        let params = &self.constants.params;
        let srtt = path.srtt.unwrap_or(rtt);
        let standing = Duration((params.standing * srtt.0 as f64) as u64);
        self.rtts.min.update(path.now, rtt, params.min_rtt_window, |new, old| new <= old);
        self.rtts.standing.update(path.now, rtt, standing, |new, old| new <= old);
        if params.competitive {
            let rounds = srtt.saturating_mul(params.empty_rounds.into());
            self.rtts.recent.update(path.now, rtt, rounds, |new, old| new <= old);
            let longest = srtt.saturating_mul(params.swing_rounds.into());
            self.rtts.max.update(path.now, rtt, longest, |new, old| new >= old);
        }
    }

    /// Chooses the mode (§ 2.2): it competes if the queue has not been nearly empty recently.
    fn choose_mode(&mut self, path: &Path, min_rtt: Duration) {
        let params = &self.constants.params;
        let above =
            |best: Option<Duration>| best.map_or(Duration::ZERO, |b| b.saturating_sub(min_rtt));
        let waited = above(self.rtts.recent.best());
        let swing = above(self.rtts.max.best()).0 as f64;
        let empty = waited == Duration::ZERO || (waited.0 as f64) < params.nearly_empty * swing;
        let since = *self.competitive_mode.since.get_or_insert(path.now);
        let srtt = path.srtt.unwrap_or(Duration::ZERO);
        let short = path.now.since(since) <= srtt.saturating_mul(params.empty_rounds.into());
        if empty || short {
            self.competitive_mode.inverse = None;
            self.competitive_mode.lost = false;
        } else if self.competitive_mode.inverse.is_none() {
            self.competitive_mode.inverse = Some(1.0 / params.delta);
            self.counters.competitions += 1;
        }
    }

    /// Returns 1/δ of the current mode, in segments.
    fn inverse_delta(&self) -> f64 {
        self.competitive_mode.inverse.unwrap_or(1.0 / self.constants.params.delta)
    }

    /// Ends the round trip if more is acknowledged than was sent when it began.
    fn end_round(&mut self, path: &Path) {
        if path.delivered <= self.velocity.from {
            return;
        }
        let unit = self.inverse_delta() * f64::from(path.mss);
        self.velocity.end_round(self.cwnd, unit, &self.constants.params);
        self.velocity.from = path.sent;
        if let Some(inverse) = &mut self.competitive_mode.inverse {
            self.counters.competing_rounds += 1;
            if !core::mem::take(&mut self.competitive_mode.lost) {
                *inverse += 1.0;
            }
        }
    }

    /// Moves the window for the bytes acknowledged (§ 2.1, steps 2 and 3).
    fn step(&mut self, path: &Path, ack: &AckSample, queueing_delay: Duration, standing: Duration) {
        if !self.slow_start {
            self.end_round(path);
        }
        let mss = f64::from(path.mss);
        let inverse = self.inverse_delta();
        // λ = cwnd / RTTstanding ≤ λt = 1 / (δ · dq), in segments.
        let up = self.cwnd / mss * queueing_delay.0 as f64 <= inverse * standing.0 as f64;
        if self.slow_start && up {
            if ack.grow == GrowthPermission::Yes {
                // § 2.1: the window doubles once per round trip. Bytes acknowledged beyond the
                // window were sent before a timeout.
                let acked = (ack.acked_bytes as f64).min(self.cwnd);
                self.cwnd = (self.cwnd + acked).min(self.constants.max_window);
            }
            return;
        }
        if self.slow_start {
            self.leave_slow_start(path);
        }
        let turns = self.constants.params.turns_at_once && self.velocity.value > 1.0;
        if turns && self.velocity.up != Some(up) {
            self.velocity = Velocity { up: Some(up), ..Velocity::begin(path.sent, self.cwnd) };
        }
        let step = self.velocity.value * inverse * mss * ack.acked_bytes as f64 / self.cwnd;
        if up && ack.grow == GrowthPermission::Yes {
            self.cwnd = (self.cwnd + step).min(self.constants.max_window);
        } else if !up {
            let min_cwnd = (min_ssthresh(path.mss) as f64).min(self.cwnd);
            self.cwnd = (self.cwnd - step).max(min_cwnd);
        }
    }

    fn leave_slow_start(&mut self, path: &Path) {
        self.slow_start = false;
        self.velocity = Velocity::begin(path.sent, self.cwnd);
    }

    /// Answers a loss or a mark. While it competes, 1/δ is halved as NewReno's window is, but not
    /// below that of the default mode. `beta` is the part of the window that stays, if it shrinks.
    fn reduce(&mut self, path: &Path, beta: Option<f64>) {
        let min_inverse = 1.0 / self.constants.params.delta;
        if let Some(inverse) = &mut self.competitive_mode.inverse {
            *inverse = (*inverse / 2.0).max(min_inverse);
            self.competitive_mode.lost = true;
        }
        if self.slow_start {
            self.leave_slow_start(path);
        }
        if let Some(beta) = beta {
            let min_cwnd = (min_ssthresh(path.mss) as f64).min(self.cwnd);
            self.cwnd = (beta * self.cwnd).max(min_cwnd);
            self.velocity = Velocity::begin(path.sent, self.cwnd);
        }
    }

    fn set_pacing_rate(&mut self, standing: Duration) {
        self.pacing = self.constants.params.pacing_gain.map(|gain| {
            let bits = 8.0 * gain * self.cwnd * 1e9 / standing.0.max(1) as f64;
            Rate((bits as u64).max(1))
        });
    }
}

impl Controller for Copa {
    fn on_ack(&mut self, path: &Path, ack: &AckSample) -> Request {
        if let Some(rtt) = ack.rtt {
            self.take_rtt(path, rtt);
        }
        let (Some(min_rtt), Some(standing)) = (self.rtts.min.best(), self.rtts.standing.best())
        else {
            return Request::Nothing;
        };
        let of = match self.constants.params.delay_of {
            DelayOf::Standing => standing,
            DelayOf::Newest => ack.rtt.or(path.rtt).unwrap_or(standing),
        };
        let queueing_delay = of.saturating_sub(min_rtt);
        if self.constants.params.competitive && ack.rtt.is_some() {
            self.choose_mode(path, min_rtt);
        }
        if ack.acked_bytes > 0 {
            self.step(path, ack, queueing_delay, standing);
        }
        self.set_pacing_rate(standing);
        Request::Nothing
    }

    fn on_signal(&mut self, path: &Path, signal: Signal) {
        match signal {
            Signal::Reduce(Cause::Loss) => self.reduce(path, self.constants.params.loss_beta),
            Signal::Reduce(_) => self.reduce(path, Some(self.constants.params.ecn_beta)),
            Signal::Timeout { reduces, .. } => {
                if reduces {
                    self.reduce(path, None);
                }
                // RFC 5681 § 3.1: one segment, then slow start as for a new connection.
                self.cwnd = f64::from(path.mss).min(self.constants.max_window);
                self.slow_start = true;
            }
            Signal::Resume { .. } => {}
            // RFC 5681 § 4.1: the restart window is min(IW, cwnd).
            Signal::Idle { .. } => {
                self.cwnd = self.cwnd.min(self.constants.initial_window);
                self.velocity = Velocity::begin(path.sent, self.cwnd);
                self.competitive_mode.since = None;
            }
        }
    }

    fn window(&self) -> Window {
        // If a loss does not reduce the window, recovery ends with the window as it is.
        let ssthresh =
            if self.slow_start { u64::MAX } else { self.bytes().max(self.constants.min_ssthresh) };
        Window { cwnd: self.bytes(), ssthresh }
    }

    fn pacing(&self) -> Option<Rate> {
        self.pacing
    }

    fn min_rtt(&self) -> Option<Duration> {
        self.rtts.min.best()
    }

    fn count(&self, each: &mut dyn FnMut(&'static str, u64)) {
        each("competitions", self.counters.competitions);
        each("competing_rounds", self.counters.competing_rounds);
    }
}

/// Largest velocity: it moves any window in one step.
const MAX_VELOCITY: f64 = (1_u64 << 40) as f64;

/// Largest part of the window that a kept velocity moves it by in a round trip. With a quarter, one
/// flow over 100 Mbit/s and 40 to 100 ms uses 89 to 100 % of the link; with a half 79 %, with all
/// of it 40 %.
const MAX_KEPT_STEP: f64 = 0.125;
