//! A window that grows and shrinks as the load of the most loaded link says: what the controllers of that family share.

use cwnd_quantity::{Duration, Rate, Time};

use crate::controller::{AckSample, Grow, Path, Phase, Start, Window, min_ssthresh};
use crate::info::{Acts, Mechanism};

/// The part of a paced window that is in flight where the window is what holds.
const USED: f64 = 0.75;

/// The window, in bytes, held as floating point so that parts of a byte add up.
#[derive(Clone, Debug)]
pub(crate) struct Guided {
    cwnd: f64,
    /// Up to here the window doubles each round trip after a timeout.
    repair: f64,
    initial: f64,
    most: f64,
    /// The last growth: its factor for each byte, and for which ξ and T/t_p.
    factor: (f64, f64, f64),
}

impl Guided {
    pub(crate) fn new(start: &Start) -> Self {
        let initial = start.initial_cwnd() as f64;
        Self {
            cwnd: initial,
            repair: 0.0,
            initial,
            most: start.max_window() as f64,
            factor: (0.0, 0.0, 0.0),
        }
    }

    fn grow(&mut self, bytes: f64) {
        self.cwnd = (self.cwnd + bytes).min(self.most);
    }

    /// Bytes acknowledged, a window at the most: more is not of one round trip, as what a repair
    /// completes was sent before.
    fn counted(&self, acked: u64) -> f64 {
        (acked as f64).min(self.cwnd)
    }

    /// Multiplicative increase: (1 + ξ)^exponent in what would be a round trip, spread over what it acknowledges.
    /// While a timeout is repaired it is no faster than slow start.
    pub(crate) fn multiply(&mut self, path: &Path, acked: u64, xi: f64, exponent: f64) {
        if self.factor.1.to_bits() != xi.to_bits() || self.factor.2.to_bits() != exponent.to_bits()
        {
            self.factor = (libm::pow(1.0 + xi, exponent) - 1.0, xi, exponent);
        }
        let most = if path.phase == Phase::Loss { 1.0 } else { f64::MAX };
        self.grow(self.factor.0.min(most) * self.counted(acked));
    }

    /// Additive increase: so many segments in what would be a round trip.
    pub(crate) fn add(&mut self, path: &Path, acked: u64, segments: f64) {
        self.grow(segments * f64::from(path.mss) * self.counted(acked) / self.cwnd);
    }

    /// As slow start does.
    pub(crate) fn repair(&mut self, acked: u64) {
        self.grow(self.counted(acked));
    }

    /// Whether the window is still below what it was before a timeout.
    pub(crate) fn is_repairing(&self) -> bool {
        self.cwnd < self.repair
    }

    /// This part of it stays, one segment at the least.
    pub(crate) fn keep(&mut self, path: &Path, part: f64) {
        self.cwnd = (self.cwnd * part).max(f64::from(path.mss)).min(self.cwnd);
    }

    /// One segment; the window doubles each round trip until it is as large as this part of what it was.
    pub(crate) fn start_again(&mut self, path: &Path, part: f64, first: bool) {
        // A segment that was sent again already keeps the goal (RFC 5681 § 3.1).
        if first {
            self.repair = self.cwnd.max(self.repair) * part;
        }
        self.cwnd = f64::from(path.mss).min(self.cwnd);
    }

    /// RFC 5681 § 4.1: the restart window is min(IW, cwnd).
    pub(crate) fn after_idle(&mut self) {
        self.cwnd = self.cwnd.min(self.initial);
        self.repair = 0.0;
    }

    /// There is no slow start: the threshold is what proportional rate reduction goes to.
    pub(crate) fn window(&self, mss: u64) -> Window {
        let cwnd = self.cwnd as u64;
        let goal = if self.is_repairing() { self.repair as u64 } else { cwnd };
        Window { cwnd, ssthresh: goal.max(min_ssthresh(mss as u32)) }
    }

    /// `true` if the window may grow for this ACK. Pacing holds a packet back where the window
    /// would have let it go, so a paced window of which the most is in flight counts as used. While
    /// a timeout is repaired an ECN-echo is old ([`Grow::of`]).
    pub(crate) fn may_grow(&self, path: &Path, ack: &AckSample, paced: bool) -> bool {
        let grows = match path.phase {
            Phase::Open | Phase::Cwr => !ack.ece,
            Phase::Loss => true,
            Phase::Recovery => false,
        };
        let used = path.flight_size as f64 >= USED * self.cwnd;
        ack.grow != Grow::No || paced && grows && used && ack.acked_bytes > 0
    }

    /// The rate of a window in a round trip. A window below two segments is not paced: its ACKs are
    /// a round trip apart already, and the pacer, which charges headers to a rate of payload, would
    /// be slower and let the retransmission timer expire.
    pub(crate) fn pace(&self, mss: u64, rtt: Duration) -> Option<Rate> {
        let bits = self.cwnd * 8.0;
        let rate = Rate((bits / rtt.as_secs_f64().max(1e-9)) as u64).max(Rate(1));
        (self.cwnd >= 2.0 * mss as f64).then_some(rate)
    }

    pub(crate) const fn bytes(&self) -> f64 {
        self.cwnd
    }
}

/// What follows a decrease: the window rests, and then grows by addition only (VCP: Xia et al. 2005 § 3.3).
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Pause {
    rests: Time,
    adds: Time,
}

impl Pause {
    /// A decrease now: how long the window rests, and how long it then only adds.
    pub(crate) fn begin(now: Time, rests: Duration, adds: Duration) -> Self {
        Self { rests: now + rests, adds: now + rests + adds }
    }

    pub(crate) fn rests(self, now: Time) -> bool {
        now < self.rests
    }

    /// Whether it rests or only adds: what it hears may still be of before the decrease.
    pub(crate) fn lasts(self, now: Time) -> bool {
        now < self.adds
    }
}

/// What the load did to a window: ACKs, and decreases.
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

/// Load factors steer a window, as these counters tell.
pub(crate) const fn load_factors(names: &'static [&'static str]) -> Mechanism {
    let silence = "no ACK told of a load that changed how a window grows";
    Mechanism::of_kind("load factors", Acts::Counters { names, silence })
}

/// T / t_p: the smoothed round-trip time in intervals of the router's; `most` bounds the former.
pub(crate) fn intervals(path: &Path, interval: Duration, most: Option<Duration>) -> f64 {
    let rtt = path.srtt.unwrap_or(interval);
    let rtt = most.map_or(rtt, |most| rtt.min(most));
    rtt.0 as f64 / interval.0 as f64
}
