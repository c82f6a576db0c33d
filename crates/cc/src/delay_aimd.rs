//! Delay-based AIMD: additive increase, and a backoff once the queueing delay exceeds a threshold,
//! by as much as empties the queue.
//!
//! McCullagh, *Exploring Delay-Based TCP Congestion Control*, M.Sc. thesis, NUI Maynooth 2008;
//! section and equation numbers are of this thesis. First in Leith, Heffner, Shorten, McCullagh,
//! *Delay-based AIMD congestion control*, PFLDnet 2007.

use alloc::boxed::Box;
use alloc::sync::Arc;

use cwnd_packet::{Ability, Contract, HasContract};
use cwnd_quantity::{Duration, Time};
use cwnd_schema::{RegistryEntry, key};

use crate::controller::{
    AckSample, Cause, Controller, Path, Phase, Request, Signal, Start, Window, WindowMut,
    min_ssthresh, restore_window,
};
use crate::dynamic::{ActionCount, ControllerInfo, DynController, Mechanism};
use crate::increase::{SinceReduction, spacing};
use crate::min_rtt::MinRtt;
use crate::slow_start::{Credit, SlowStartState};

mod params;

pub use params::{Additive, Filter, Params};

/// Name and description in scenarios.
pub const ENTRY: RegistryEntry = RegistryEntry::new(
    "delay-aimd",
    "Delay-based AIMD: backs off once packets wait longer than a threshold (McCullagh 2008).",
);

/// Backoff for delay, which every such controller has.
const BACKOFF: Mechanism = Mechanism {
    name: "backoff for delay",
    key: Some(key!(Params: threshold)),
    base: None,
    counted_in: ActionCount::Column("cwnd_reductions_delay"),
};

impl ControllerInfo for Params {
    fn build(&self, start: &Start) -> Box<dyn DynController> {
        Box::new(DelayAimd::new(self, start))
    }

    fn lowers_on_acks(&self) -> bool {
        true
    }

    fn mechanisms(&self) -> &'static [Mechanism] {
        &[BACKOFF]
    }
}

impl HasContract for Params {
    fn contract(&self) -> Contract {
        let contract = Contract::new().wants(
            Ability::Timestamps,
            "the delay of one packet in each window is all it hears of",
        );
        let held = "ACKs that receivers hold back look like a queue";
        contract
            .when(!self.ignores_delayed_acks(), |c| c.wants(Ability::PromptRtt, held))
            .when(self.below.allowed(), |c| {
                c.needs(Ability::Pacing, "would send a segment a round trip at the least")
            })
    }
}

/// Delay-based AIMD's state for one connection. Windows are bytes in floating point, so that
/// fractions of a byte add up.
#[derive(Clone, Debug)]
pub struct DelayAimd {
    cwnd: f64,
    ssthresh: u64,
    /// `true` if congestion avoidance applies even below the threshold: a backoff for delay may
    /// leave less than the threshold's least value.
    in_avoidance: bool,
    slow_start: SlowStartState,
    min_rtt: MinRtt,
    filtered: FilteredRtt,
    /// `true` if τ > τ0 at the last sample, with `per_packet` also if they were equal; `false`
    /// after an ACK that may be delayed and does not count.
    above_threshold: bool,
    /// α, segments per round trip.
    alpha: f64,
    /// ACKs towards the next segment of growth, if `increase` counts them (Linux 2.6,
    /// `snd_cwnd_cnt`).
    cwnd_count: u64,
    /// Time of the last backoff or timeout, for H-TCP's increase.
    since: SinceReduction,
    /// β of the last backoff, for H-TCP's increase.
    beta: f64,
    /// `true` if the last reduction was for delay: Linux's controller then stays in the state
    /// "open" and continues to grow.
    by_delay: bool,
    /// S_γ: bytes that late packets took off the window since the last backoff for delay, or
    /// timeout.
    removed: f64,
    /// ACKs of late packets that reduced the window by γ.
    late_acks: u64,
    /// Newest RTT, which sets the gap between segments of a window below one segment.
    rtt: Duration,
    /// ACKs that found a window below one segment.
    acks_below_one: u64,
    constants: Arc<Constants>,
}

/// Constants of a connection.
#[derive(Debug)]
struct Constants {
    params: Params,
    mss: f64,
    initial_window: f64,
    max_window: f64,
    /// Least window that a backoff for delay leaves, segments; with `below_one` also one for a
    /// loss.
    min_window: f64,
    /// `true` if the transport gives no sample for an ACK that the receiver may have delayed.
    ignores_delayed_acks: bool,
    credit: Credit,
}

/// RTT after its filter.
#[derive(Clone, Copy, Debug)]
enum FilteredRtt {
    Newest,
    /// Exponentially weighted mean, nanoseconds.
    Mean {
        weight: f64,
        mean: Option<f64>,
    },
    Least {
        round: u64,
        this: Duration,
        last: Duration,
    },
}

impl FilteredRtt {
    fn new(params: &Params) -> Self {
        match params.filter {
            Filter::Newest => Self::Newest,
            Filter::Mean => Self::Mean { weight: params.filter_weight, mean: None },
            Filter::Least => Self::Least { round: 0, this: Duration::MAX, last: Duration::MAX },
        }
    }

    /// Takes a sample; returns the filtered RTT in nanoseconds.
    fn take(&mut self, round: u64, rtt: Duration) -> f64 {
        match self {
            Self::Newest => rtt.0 as f64,
            Self::Mean { weight, mean } => {
                let newest = rtt.0 as f64;
                let next = mean.map_or(newest, |mean| mean + *weight * (newest - mean));
                *mean = Some(next);
                next
            }
            Self::Least { round: at, this, last } => {
                if round != *at {
                    (*at, *last, *this) = (round, *this, Duration::MAX);
                }
                *this = (*this).min(rtt);
                (*this).min(*last).0 as f64
            }
        }
    }
}

impl DelayAimd {
    /// Creates the controller of a new connection.
    #[must_use]
    pub fn new(params: &Params, start: &Start) -> Self {
        let ignores_delayed_acks = start.delayed_acks && params.ignores_delayed_acks();
        Self {
            cwnd: start.initial_cwnd() as f64,
            ssthresh: start.initial_ssthresh(),
            in_avoidance: false,
            slow_start: SlowStartState::new(params.growing.slow_start),
            min_rtt: MinRtt::new(params.initial_min_rtt),
            filtered: FilteredRtt::new(params),
            above_threshold: false,
            alpha: 1.0,
            cwnd_count: 0,
            since: SinceReduction::default(),
            beta: 0.5,
            by_delay: false,
            removed: 0.0,
            late_acks: 0,
            rtt: Duration::ZERO,
            acks_below_one: 0,
            constants: Arc::new(Constants {
                params: params.clone(),
                mss: f64::from(start.mss),
                initial_window: start.initial_cwnd() as f64,
                max_window: start.max_window() as f64,
                min_window: if params.below.allowed() {
                    params.below.below_one_least
                } else {
                    f64::from(params.least_window.max(1 + u32::from(ignores_delayed_acks)))
                },
                ignores_delayed_acks,
                credit: Credit::bytes(&params.growing),
            }),
        }
    }

    /// Returns the window in whole bytes.
    fn bytes(&self) -> u64 {
        self.cwnd as u64
    }

    /// Returns the window in segments.
    fn segments(&self) -> f64 {
        self.cwnd / self.constants.mss
    }

    fn in_slow_start(&self) -> bool {
        !self.in_avoidance && self.bytes() < self.ssthresh
    }

    /// Returns β = δ · minRTT / RTT (eq. 2.6); δ before the first measurement.
    fn beta(&self, rtt: Option<Duration>) -> f64 {
        self.constants.params.delta * self.min_rtt.ratio_to(rtt).unwrap_or(1.0)
    }

    /// Takes an ACK's sample; returns `true` if this packet itself waited longer than τ0.
    fn take_sample(&mut self, path: &Path, ack: &AckSample) -> bool {
        self.min_rtt.on_ack(path, ack);
        // A lone segment after a late one gives no sample. The window may then grow to two
        // segments, whose ACK gives one.
        self.above_threshold &= !(self.constants.ignores_delayed_acks && ack.rtt.is_none());
        let (Some(rtt), Some(min_rtt)) = (ack.rtt, self.min_rtt.get()) else { return false };
        self.rtt = rtt;
        let threshold = self.constants.params.threshold.0 as f64;
        let waited = self.filtered.take(path.round, rtt) - min_rtt.0 as f64;
        // Eq. 2.5 has τ > τ0, § 3.3.4 τ ≥ τ0.
        self.above_threshold =
            waited > threshold || (self.constants.params.per_packet && waited == threshold);
        rtt.saturating_sub(min_rtt) > self.constants.params.threshold
    }

    /// Reduces the window for late packets: cwnd ← cwnd − γ for each segment acknowledged
    /// (§ 3.3.4).
    fn subtract_gamma(&mut self, path: &Path, ack: &AckSample) {
        let segments = ack.acked_bytes as f64 / f64::from(path.mss);
        let gamma = self.constants.params.gamma.unwrap_or_else(|| 1.0 - self.beta(ack.rtt));
        let after = self.cwnd - gamma * segments * f64::from(path.mss);
        let after = after.max(self.min_window(path)).min(self.cwnd);
        self.removed += self.cwnd - after;
        self.cwnd = after;
        self.in_avoidance = true;
        self.late_acks += 1;
    }

    /// Returns the least window that a backoff for delay leaves, bytes; with `below_one` also the
    /// one that a loss leaves.
    fn min_window(&self, path: &Path) -> f64 {
        self.constants.min_window * f64::from(path.mss)
    }

    /// Adds an ACK's increase to a window below one segment.
    fn grow_below_one(&mut self, ack: &AckSample) {
        let acked = ack.acked_bytes as f64 / self.constants.mss;
        let gain = self.constants.params.below.gain(self.segments(), self.alpha, acked);
        self.cwnd = (self.cwnd + gain * self.constants.mss).min(self.constants.max_window);
    }

    /// Grows in congestion avoidance by an ACK of `acked` bytes.
    fn grow_in_avoidance(&mut self, path: &Path, acked: u64) {
        let mss = f64::from(path.mss);
        let gain = if self.counts_acks() {
            // tcp_reno_cong_avoid: the ACK after a full count adds a segment.
            let full = self.cwnd_count >= (self.cwnd / mss) as u64;
            self.cwnd_count = if full { 0 } else { self.cwnd_count + 1 };
            if full { mss } else { 0.0 }
        } else {
            // cwnd + α / cwnd for each segment acknowledged, windows in segments.
            self.alpha * mss * acked as f64 / self.cwnd
        };
        self.cwnd = (self.cwnd + gain).min(self.constants.max_window);
    }

    /// `true` if growth counts ACKs, and windows are whole segments.
    fn counts_acks(&self) -> bool {
        self.constants.params.increase == Additive::Linux26
    }

    fn reduce(&mut self, path: &Path, cause: Cause) {
        let by_delay = self.beta(path.rtt);
        let (beta, min_cwnd, window) = match cause {
            // min[β (cwnd + S_γ), cwnd] (§ 3.3.4); S_γ is zero in eq. 2.5.
            Cause::Delay => (by_delay, self.min_window(path), self.cwnd + self.removed),
            // "Loss backoff … unchanged" (§ 3.4.5): RFC 5681 eq. 4 leaves two segments, unless the
            // window may be below one.
            _ => {
                let beta = self.constants.params.loss_beta.unwrap_or(by_delay);
                let two = min_ssthresh(path.mss) as f64;
                let min_cwnd =
                    if self.constants.params.below.allowed() { self.min_window(path) } else { two };
                (beta, min_cwnd, self.cwnd)
            }
        };
        let mut reduced = beta * window;
        if self.counts_acks() {
            let mss = f64::from(path.mss);
            reduced = libm::floor(reduced / mss) * mss;
        }
        self.cwnd_count = 0;
        // A window that is already below `min_cwnd` must not be raised to it.
        self.cwnd = self.cwnd.min(reduced.max(min_cwnd));
        self.ssthresh = (reduced as u64).max(min_ssthresh(path.mss));
        self.by_delay = cause == Cause::Delay;
        if self.by_delay {
            self.removed = 0.0;
        }
        if let Some(n) = self.constants.params.alpha_factor {
            // Eq. 4.9.
            self.alpha = n * (1.0 - beta);
        }
        self.beta = beta;
        self.since.reduced(path.now);
        self.in_avoidance = true;
        self.slow_start.on_congestion();
    }

    /// Grows in slow start; returns the bytes left for congestion avoidance once the threshold is
    /// reached.
    fn slow_start(&mut self, path: &Path, ack: &AckSample) -> u64 {
        let Constants { credit, max_window, .. } = *self.constants;
        let growth = self.slow_start.on_ack(path, ack, self.bytes(), credit);
        self.slow_start.grow(growth, &mut self.cwnd, &mut self.ssthresh, max_window)
    }
}

impl Controller for DelayAimd {
    fn ignores_delayed_acks(&self) -> bool {
        self.constants.ignores_delayed_acks
    }

    fn on_ack(&mut self, path: &Path, ack: &AckSample) -> Request {
        if ack.acked_bytes == 0 {
            return Request::Nothing;
        }
        let packet_was_late = self.take_sample(path, ack);
        self.acks_below_one += u64::from(self.cwnd < self.constants.mss);
        if self.constants.params.increase == Additive::HTcp {
            let min_rtt = self.min_rtt.get();
            self.alpha =
                self.since.alpha(&self.constants.params.since, path.now, min_rtt, self.beta);
        }
        // Eq. 2.5: above the threshold it backs off and does not grow.
        if self.above_threshold {
            return Request::Reduce(Cause::Delay);
        }
        // Only in the open phase: a full backoff has already answered the delay of data sent before
        // it.
        if packet_was_late && self.constants.params.per_packet && path.phase == Phase::Open {
            self.subtract_gamma(path, ack);
        }
        if !ack.grow.allows(self.by_delay || self.constants.params.growing.grow_in_cwr) {
            return Request::Nothing;
        }
        if self.cwnd < self.constants.mss {
            self.grow_below_one(ack);
            return Request::Nothing;
        }
        let left = if self.in_slow_start() { self.slow_start(path, ack) } else { ack.acked_bytes };
        if left > 0 {
            self.grow_in_avoidance(path, left);
        }
        Request::Nothing
    }

    fn on_signal(&mut self, path: &Path, signal: Signal) {
        self.min_rtt.on_signal(path, signal);
        match signal {
            Signal::Reduce(cause) => self.reduce(path, cause),
            Signal::Timeout { reduces, .. } => {
                // A segment that was already retransmitted keeps the threshold (RFC 5681 § 3.1).
                if reduces {
                    self.reduce(path, Cause::Loss);
                }
                // Each expiry is a congestion event.
                self.since.reduced(path.now);
                // A window below one segment is not raised to it, and grows on from its value.
                self.in_avoidance = self.cwnd < self.constants.mss;
                self.cwnd = self.cwnd.min(self.constants.mss);
                self.cwnd_count = 0;
                self.removed = 0.0;
                self.slow_start.on_timeout(path);
            }
            // RFC 5681 § 4.1: the restart window is min(IW, cwnd).
            Signal::Idle { keep, .. } => {
                let left = keep.map_or(self.constants.initial_window, |keep| keep.cwnd as f64);
                self.cwnd = self.cwnd.min(left);
                self.ssthresh = keep.map_or(self.ssthresh, |keep| keep.ssthresh);
                self.in_avoidance = false;
            }
            Signal::Resume { .. } => {}
        }
    }

    /// Restores also α, β, the last backoff and slow start of the time before the reduction.
    fn undo(&mut self, mut before: Self, now: Time, after_timeout: bool) {
        restore_window(self, &mut before);
        (self.alpha, self.beta, self.since) = (before.alpha, before.beta, before.since);
        (self.in_avoidance, self.by_delay, self.removed) =
            (before.in_avoidance, before.by_delay, before.removed);
        self.slow_start.undo(before.slow_start, now, after_timeout, None);
    }

    fn window_mut(&mut self) -> Option<WindowMut<'_>> {
        let (cwnd, ssthresh) = (&mut self.cwnd, &mut self.ssthresh);
        Some(WindowMut { cwnd, ssthresh, max_window: self.constants.max_window })
    }

    fn window(&self) -> Window {
        // A window below one segment still permits one segment; `spacing` delays the next.
        Window { cwnd: self.bytes().max(self.constants.mss as u64), ssthresh: self.ssthresh }
    }

    fn spacing(&self) -> Option<Duration> {
        self.constants.params.below.allowed().then(|| spacing(self.segments(), self.rtt))
    }

    fn min_rtt(&self) -> Option<Duration> {
        self.min_rtt.get()
    }

    fn count(&self, each: &mut dyn FnMut(&'static str, u64)) {
        each("late_acks", self.late_acks);
        each("acks_below_one_segment", self.acks_below_one);
    }
}
