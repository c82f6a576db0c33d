//! Window driven by the load of the most loaded link, shared by the controllers of that family.

use cwnd_quantity::{Duration, Rate, Time};

use cwnd_schema::Choice;

use crate::controller::{AckSample, GrowthPermission, Path, Phase, Start, Window, min_ssthresh};
use crate::dynamic::{ActionCount, Mechanism};

/// Round-trip time T by which a window grows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Choice)]
pub enum GrowthRtt {
    /// The smoothed round-trip time.
    #[default]
    #[name("smoothed")]
    Smoothed,
    /// The shortest round-trip time so far, that of the handshake included: nearly without queueing
    /// and transmission, so that growth does not feed on its own queue.
    #[name("min")]
    Min,
}

/// Part of a paced window that must be in flight for the window to count as the limit.
const MIN_UTILISATION: f64 = 0.75;

/// The window, bytes in floating point, so that fractions of a byte add up.
#[derive(Clone, Debug)]
pub(crate) struct LoadWindow {
    cwnd: f64,
    /// Window up to which it doubles each round trip after a timeout, bytes; zero if there is no
    /// such goal.
    repair_target: f64,
    initial: f64,
    max_window: f64,
    /// Cached growth per byte acknowledged, with the ξ and the exponent T/t_p that it was computed
    /// for.
    factor: (f64, f64, f64),
}

impl LoadWindow {
    pub(crate) fn new(start: &Start) -> Self {
        let initial = start.initial_cwnd() as f64;
        Self {
            cwnd: initial,
            repair_target: 0.0,
            initial,
            max_window: start.max_window() as f64,
            factor: (0.0, 0.0, 0.0),
        }
    }

    fn grow(&mut self, bytes: f64) {
        self.cwnd = (self.cwnd + bytes).min(self.max_window);
    }

    /// Returns the acknowledged bytes that count, at most a window. More is not of one round trip:
    /// the ACK that completes a repair covers data sent before.
    fn credited(&self, acked: u64) -> f64 {
        (acked as f64).min(self.cwnd)
    }

    /// Multiplicative increase by (1 + ξ)^exponent per round trip, spread over what it
    /// acknowledges. While a timeout is repaired, it is no faster than slow start.
    pub(crate) fn multiply(&mut self, path: &Path, acked: u64, xi: f64, exponent: f64) {
        if self.factor.1.to_bits() != xi.to_bits() || self.factor.2.to_bits() != exponent.to_bits()
        {
            self.factor = (libm::pow(1.0 + xi, exponent) - 1.0, xi, exponent);
        }
        let max = if path.phase == Phase::Loss { 1.0 } else { f64::MAX };
        self.grow(self.factor.0.min(max) * self.credited(acked));
    }

    /// Additive increase by `segments` per round trip, spread over what it acknowledges.
    pub(crate) fn add(&mut self, path: &Path, acked: u64, segments: f64) {
        self.grow(segments * f64::from(path.mss) * self.credited(acked) / self.cwnd);
    }

    /// Grows as slow start does, to repair a timeout.
    pub(crate) fn grow_in_repair(&mut self, acked: u64) {
        self.grow(self.credited(acked));
    }

    /// `true` if the window is still below its goal after a timeout.
    pub(crate) fn is_repairing(&self) -> bool {
        self.cwnd < self.repair_target
    }

    /// Reduces the window to this part of it, at least one segment.
    pub(crate) fn scale(&mut self, path: &Path, part: f64) {
        self.cwnd = (self.cwnd * part).max(f64::from(path.mss)).min(self.cwnd);
    }

    /// Restarts at one segment after a timeout. The window then doubles each round trip up to this
    /// part of its former size.
    pub(crate) fn restart_after_timeout(&mut self, path: &Path, part: f64, first: bool) {
        // A segment that was already retransmitted keeps the goal (RFC 5681 § 3.1).
        if first {
            self.repair_target = self.cwnd.max(self.repair_target) * part;
        }
        self.cwnd = f64::from(path.mss).min(self.cwnd);
    }

    /// Reduces the window after an idle time to the restart window, min(IW, cwnd) (RFC 5681 § 4.1),
    /// and drops the goal.
    pub(crate) fn after_idle(&mut self) {
        self.cwnd = self.cwnd.min(self.initial);
        self.repair_target = 0.0;
    }

    /// Returns the window. Its threshold, the target of proportional rate reduction, is the goal
    /// after a timeout, or else the window; at least two segments.
    pub(crate) fn window(&self, mss: u64) -> Window {
        let cwnd = self.cwnd as u64;
        let goal = if self.is_repairing() { self.repair_target as u64 } else { cwnd };
        Window { cwnd, ssthresh: goal.max(min_ssthresh(mss as u32)) }
    }

    /// `true` if the window may grow for this ACK. Pacing holds packets back that the window
    /// permits, so a paced window counts as used if most of it is in flight. While a timeout is
    /// repaired an ECN-echo is old ([`GrowthPermission::for_ack`]).
    pub(crate) fn may_grow(&self, path: &Path, ack: &AckSample, paced: bool) -> bool {
        let grows = match path.phase {
            Phase::Open | Phase::Cwr => !ack.ece,
            Phase::Loss => true,
            Phase::Recovery => false,
        };
        let used = path.flight_size as f64 >= MIN_UTILISATION * self.cwnd;
        ack.grow != GrowthPermission::No || paced && grows && used && ack.acked_bytes > 0
    }

    /// Returns the rate of one window per RTT; `None` for a window below two segments. Its ACKs are
    /// already a round trip apart. The pacer, which charges headers to a rate of payload, would be
    /// slower and let the retransmission timer expire.
    pub(crate) fn pacing_rate(&self, mss: u64, rtt: Duration) -> Option<Rate> {
        let bits = self.cwnd * 8.0;
        let rate = Rate((bits / rtt.as_secs_f64().max(1e-9)) as u64).max(Rate(1));
        (self.cwnd >= 2.0 * mss as f64).then_some(rate)
    }

    pub(crate) const fn bytes(&self) -> f64 {
        self.cwnd
    }
}

/// Period after a decrease: while routers still report overload, the window rests, and then grows
/// by addition (VCP: Xia et al. 2005 § 3.3).
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct DecreaseHold {
    frozen_until: Time,
    additive_until: Time,
}

impl DecreaseHold {
    /// Starts the period at a decrease: `rests` without growth, then `adds` with addition only.
    pub(crate) fn begin(now: Time, rests: Duration, adds: Duration) -> Self {
        Self { frozen_until: now + rests, additive_until: now + rests + adds }
    }

    pub(crate) fn is_frozen(self, now: Time) -> bool {
        now < self.frozen_until
    }

    /// `true` while the window rests or only adds: the load that arrives may still predate the
    /// decrease.
    pub(crate) fn is_active(self, now: Time) -> bool {
        now < self.additive_until
    }
}

/// Number of ACKs by the response to their load, and of decreases.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Counters {
    pub(crate) multiplied: u64,
    pub(crate) added: u64,
    pub(crate) rested: u64,
    pub(crate) decreased: u64,
}

impl Counters {
    pub(crate) fn count(self, each: &mut dyn FnMut(&'static str, u64)) {
        each("load_acks_multiplied", self.multiplied);
        each("load_acks_added", self.added);
        each("load_acks_rested", self.rested);
        each("load_decreases", self.decreased);
    }
}

/// Mechanism "load factors", whose actions the counters `names` show.
pub(crate) const fn load_factor_mechanism(names: &'static [&'static str]) -> Mechanism {
    let if_zero = "no ACK told of a load that changed how a window grows";
    Mechanism::of_kind("load factors", ActionCount::Counters { names, if_zero })
}

/// Returns T / t_p: the RTT in intervals of the router; `max` bounds the RTT. Before the first
/// sample the RTT counts as one interval.
pub(crate) fn rtt_in_intervals(
    path: &Path,
    of: GrowthRtt,
    interval: Duration,
    max: Option<Duration>,
) -> f64 {
    let rtt = match of {
        GrowthRtt::Smoothed => path.srtt,
        GrowthRtt::Min => path.min_rtt,
    };
    let rtt = rtt.unwrap_or(interval);
    let rtt = max.map_or(rtt, |max| rtt.min(max));
    rtt.0 as f64 / interval.0 as f64
}
