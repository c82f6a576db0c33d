//! Vegas: once per round trip the window grows or shrinks by a segment, so that between α and β of
//! its segments wait in queues.
//!
//! Brakmo, Peterson, *TCP Vegas: end to end congestion avoidance on a global Internet*, IEEE JSAC
//! 13 (8), 1995. Equation numbers are of McCullagh, *Exploring Delay-Based TCP Congestion Control*,
//! M.Sc. thesis, NUI Maynooth 2008, § 2.3.1. Programs: Linux 6.1 `tcp_vegas.c`; that of
//! Linux 2.6.22, which ns-2.35 includes; ns-2.35's own `tcp-vegas.cc`.

use alloc::boxed::Box;

mod params;

pub use params::{Exit, Params, Rates, RoundRtt, Rounding};

use alloc::sync::Arc;

use cwnd_quantity::Duration;
use cwnd_schema::RegistryEntry;

use crate::controller::{
    AckSample, Cause, Controller, GrowthPermission, Path, Phase, Request, Signal, Start, Window,
    WindowMut, min_ssthresh,
};
use crate::dynamic::{ControllerInfo, DynController};
use crate::slow_start::limited;

/// Name and description in scenarios.
pub const ENTRY: RegistryEntry =
    RegistryEntry::new("vegas", "Vegas: keeps a few segments in queues (Brakmo & Peterson 1995).");

impl ControllerInfo for Params {
    fn build(&self, start: &Start) -> Box<dyn DynController> {
        Box::new(Vegas::new(self, start))
    }

    fn lowers_on_acks(&self) -> bool {
        true
    }

    fn linux_name(&self) -> Option<&'static str> {
        Some("vegas")
    }
}

/// Vegas' state for one connection. Windows are bytes in floating point, so that fractions of a
/// byte add up.
#[derive(Clone, Debug)]
pub struct Vegas {
    cwnd: f64,
    ssthresh: u64,
    /// baseRTT: least RTT of a data packet, with `base_from_handshake` also of the handshake.
    base: Option<Duration>,
    /// Round trip being measured; `None` from a reduction, timeout or idle time to the next ACK in
    /// the open phase.
    round: Option<Round>,
    growth: Growth,
    /// Round trips of slow start since the last in which the window doubled.
    rounds_since_doubling: u32,
    after_timeout: bool,
    counters: Counters,
    constants: Arc<Constants>,
}

/// Constants of a connection.
#[derive(Debug)]
struct Constants {
    params: Params,
    initial_window: f64,
    max_window: f64,
}

/// Number of round trips whose result was to raise, lower or keep the window.
#[derive(Clone, Copy, Debug, Default)]
struct Counters {
    more: u64,
    less: u64,
    same: u64,
}

/// Growth of the window until the round trip ends.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Growth {
    Stay,
    /// Doubling, as in slow start.
    Double,
    /// Growth by this many bytes for each byte acknowledged.
    Spread(f64),
}

/// One round trip: from a packet's departure to its acknowledgement.
#[derive(Clone, Copy, Debug)]
struct Round {
    /// Payload bytes sent when it began: it is over once more than that is acknowledged.
    from: u64,
    /// The same of the previous round trip, or without one the bytes acknowledged.
    before: u64,
    /// Window when it began, bytes.
    window: f64,
    samples: u32,
    /// Sum of the RTT samples, nanoseconds.
    sum: u64,
    min_rtt: Duration,
}

impl Round {
    const fn begin(from: u64, before: u64, window: f64) -> Self {
        Self { from, before, window, samples: 0, sum: 0, min_rtt: Duration::MAX }
    }

    fn take(&mut self, rtt: Duration) {
        self.samples += 1;
        self.sum = self.sum.saturating_add(rtt.0);
        self.min_rtt = self.min_rtt.min(rtt);
    }

    /// Returns the RTT that stands for the round trip, nanoseconds; `newest` is that of the ACK
    /// which ends it. `None` without a sample.
    fn rtt(&self, which: RoundRtt, newest: Option<Duration>) -> Option<f64> {
        match which {
            RoundRtt::First => newest.map(|rtt| rtt.0 as f64),
            _ if self.samples == 0 => None,
            RoundRtt::Mean => Some(self.sum as f64 / f64::from(self.samples)),
            RoundRtt::Least => Some(self.min_rtt.0 as f64),
        }
    }
}

/// Result of a round trip, in segments.
#[derive(Clone, Copy, Debug)]
struct RoundResult {
    /// Expected · baseRTT − Actual · baseRTT: segments that wait in queues (eq. 2.3).
    diff: f64,
    /// Actual · baseRTT: segments that the path holds without queues.
    held: f64,
}

impl Vegas {
    /// Creates the controller of a new connection.
    #[must_use]
    pub fn new(params: &Params, start: &Start) -> Self {
        let cwnd = start.initial_cwnd() as f64;
        Self {
            cwnd,
            ssthresh: start.initial_ssthresh(),
            base: None,
            round: Some(Round::begin(0, 0, cwnd)),
            // The first ACK ends a round trip, of at most one sample.
            growth: Growth::Stay,
            rounds_since_doubling: 0,
            after_timeout: false,
            counters: Counters::default(),
            constants: Arc::new(Constants {
                params: params.clone(),
                initial_window: cwnd,
                max_window: start.max_window() as f64,
            }),
        }
    }

    /// Returns the window in whole bytes.
    fn bytes(&self) -> u64 {
        self.cwnd as u64
    }

    fn in_slow_start(&self) -> bool {
        self.bytes() < self.ssthresh
    }

    /// Computes expected and actual rate and their difference (eq. 2.1 to 2.3).
    fn measure(&self, path: &Path, round: &Round, rtt: f64, base: Duration) -> RoundResult {
        let mss = f64::from(path.mss);
        // The RTT without queues cannot exceed the one just measured.
        let base = (base.0 as f64).min(rtt).max(1.0);
        let ratio = base / rtt.max(1.0);
        let window = self.cwnd / mss;
        let segments = |from: u64, to: u64| to.saturating_sub(from) as f64 / mss;
        let (expected, actual) = match self.constants.params.rates {
            Rates::Window | Rates::WindowOverBase => (window, window),
            Rates::Sent => (window, segments(round.from, path.sent)),
            Rates::InFlight => {
                // ns-2's `t_seqno_ - last_ack_`, with the segment that this ACK releases.
                (segments(path.delivered, path.sent) + 1.0, segments(round.from, path.sent))
            }
            Rates::Acknowledged => {
                let all = segments(round.before, round.from);
                (all, all)
            }
        };
        let held = actual * ratio;
        let diff = match self.constants.params.rates {
            Rates::WindowOverBase => expected * (rtt - base) / base,
            _ => expected - held,
        };
        let diff = match self.constants.params.rounding {
            Rounding::Not => diff,
            Rounding::Nearest => libm::floor(diff + 0.5),
            Rounding::Down => libm::floor(diff),
            Rounding::HalvesUp => libm::ceil(2.0 * diff) / 2.0,
        };
        RoundResult { diff, held }
    }

    /// Sets the window, or its growth in the next round trip, from the result of the last one.
    /// `may_grow` is `true` if the transport permits growth.
    fn decide(&mut self, path: &Path, round: &Round, result: RoundResult, may_grow: bool) {
        let params = &self.constants.params;
        let mss = f64::from(path.mss);
        self.growth = Growth::Stay;
        if self.in_slow_start() {
            self.rounds_since_doubling += 1;
            if self.rounds_since_doubling < params.double_every {
                return;
            }
            self.rounds_since_doubling = 0;
            if result.diff > params.gamma {
                self.leave_slow_start(path, result);
            } else {
                self.growth = Growth::Double;
            }
            return;
        }
        let from = if params.from_round_before { round.window } else { self.cwnd };
        let (alpha, beta) = (params.alpha, params.beta);
        let next = if result.diff > beta {
            self.counters.less += 1;
            from - mss
        } else if result.diff < alpha {
            self.counters.more += 1;
            from + mss
        } else {
            self.counters.same += 1;
            from
        };
        // Eq. 2.4: a segment more or less.
        if next < self.cwnd {
            self.lower_to(path, self.cwnd - mss);
        } else if next > self.cwnd && params.spread {
            self.growth = Growth::Spread(mss / self.cwnd);
        } else if next > self.cwnd && may_grow {
            self.cwnd = (self.cwnd + mss).min(self.constants.max_window);
        }
    }

    fn leave_slow_start(&mut self, path: &Path, result: RoundResult) {
        let to = match self.constants.params.exit {
            Exit::Stay => self.cwnd,
            Exit::Eighth => self.cwnd - self.cwnd / 8.0,
            Exit::Actual => (libm::floor(result.held) + 1.0) * f64::from(path.mss),
        };
        self.lower_to(path, to);
        self.after_timeout = false;
    }

    /// Lowers the window, to two segments at least, and the threshold so that slow start does not
    /// follow.
    fn lower_to(&mut self, path: &Path, window: f64) {
        self.cwnd = self.cwnd.min(window.max(min_ssthresh(path.mss) as f64));
        self.ssthresh = self.ssthresh.min(self.bytes()).max(min_ssthresh(path.mss));
    }

    /// Grows in slow start; returns the bytes left once the threshold is reached.
    fn slow_start(&mut self, path: &Path, acked: u64) -> u64 {
        let params = &self.constants.params;
        let after = params.abc_limit_after_timeout;
        let limit = if self.after_timeout { after } else { params.abc_limit };
        let bytes = limited(acked, limit, u64::from(path.mss));
        let step = bytes.min(self.ssthresh - self.bytes());
        self.cwnd = (self.cwnd + step as f64).min(self.constants.max_window);
        self.after_timeout &= self.in_slow_start();
        bytes - step
    }

    /// Grows as Reno does (RFC 5681 § 3.1), as there is nothing to compare.
    fn grow_as_reno(&mut self, path: &Path, acked: u64) {
        let left = if self.in_slow_start() { self.slow_start(path, acked) } else { acked };
        let gain = f64::from(path.mss) * left as f64 / self.cwnd;
        self.cwnd = (self.cwnd + gain).min(self.constants.max_window);
    }

    /// Returns this part of the window in whole segments, at least two, as bytes.
    fn part(&self, path: &Path, beta: f64) -> u64 {
        let mss = u64::from(path.mss);
        let reduced = (beta * self.cwnd) as u64;
        (reduced - reduced % mss).max(min_ssthresh(path.mss))
    }

    fn reduce(&mut self, path: &Path, beta: f64) {
        self.ssthresh = self.part(path, beta);
        // A window that is already below two segments must not be raised to them.
        self.cwnd = self.cwnd.min(self.ssthresh as f64);
        self.restart();
        self.after_timeout = false;
    }

    /// Discards the measurement, which does not apply to the next round trip.
    fn restart(&mut self) {
        self.round = None;
        self.growth = Growth::Stay;
        self.rounds_since_doubling = 0;
    }

    /// Begins or ends a round trip where one is due. Returns `true` if the window has already grown
    /// for this ACK, or may not.
    fn update_round(&mut self, path: &Path, ack: &AckSample) -> bool {
        let may_grow = ack.grow == GrowthPermission::Yes;
        if path.phase != Phase::Open {
            self.restart();
            if may_grow {
                self.grow_as_reno(path, ack.acked_bytes);
            }
            return true;
        }
        match self.round {
            None => {
                self.round = Some(Round::begin(path.sent, path.delivered, self.cwnd));
                false
            }
            Some(round) if path.delivered > round.from => {
                self.end_round(path, ack, &round, may_grow)
            }
            Some(_) => false,
        }
    }

    /// Ends a round trip at an ACK. Returns `true` if the window has already grown for it, or may
    /// not.
    fn end_round(&mut self, path: &Path, ack: &AckSample, round: &Round, may_grow: bool) -> bool {
        self.round = Some(Round::begin(path.sent, round.from, self.cwnd));
        let rtt = round.rtt(self.constants.params.rtt, ack.rtt);
        match (rtt, self.base) {
            (Some(rtt), Some(base)) if round.samples >= self.constants.params.least_samples => {
                let result = self.measure(path, round, rtt, base);
                self.decide(path, round, result, may_grow);
                false
            }
            _ => {
                let doubles = self.in_slow_start() && self.constants.params.double_every == 1;
                self.growth = if doubles { Growth::Double } else { Growth::Stay };
                if may_grow && (doubles || !self.in_slow_start()) {
                    self.grow_as_reno(path, ack.acked_bytes);
                }
                true
            }
        }
    }
}

impl Controller for Vegas {
    fn on_ack(&mut self, path: &Path, ack: &AckSample) -> Request {
        if ack.acked_bytes == 0 {
            return Request::Nothing;
        }
        let params = &self.constants.params;
        if let Some(rtt) = ack.rtt {
            let handshakes = path.min_rtt.filter(|_| params.base_from_handshake);
            let min_rtt = handshakes.map_or(rtt, |min_rtt| min_rtt.min(rtt));
            self.base = Some(self.base.map_or(min_rtt, |base| base.min(min_rtt)));
        }
        // ns-2 counts the ACK that ends a round trip as a sample of the next.
        let of_next = params.rtt == RoundRtt::Mean;
        if let (Some(rtt), Some(round), false) = (ack.rtt, &mut self.round, of_next) {
            round.take(rtt);
        }
        let done = self.update_round(path, ack);
        if let (Some(rtt), Some(round), true) = (ack.rtt, &mut self.round, of_next) {
            round.take(rtt);
        }
        if ack.grow == GrowthPermission::Yes && !done {
            match self.growth {
                Growth::Double if self.in_slow_start() => {
                    self.slow_start(path, ack.acked_bytes);
                }
                Growth::Stay | Growth::Double => {}
                Growth::Spread(part) => {
                    let grown = self.cwnd + part * ack.acked_bytes as f64;
                    self.cwnd = grown.min(self.constants.max_window);
                }
            }
        }
        Request::Nothing
    }

    fn on_signal(&mut self, path: &Path, signal: Signal) {
        match signal {
            Signal::Reduce(cause) => {
                let params = &self.constants.params;
                let beta = match cause {
                    Cause::Loss | Cause::Quench { marked: false, .. } => params.loss_beta,
                    _ => params.ecn_beta.unwrap_or(params.loss_beta),
                };
                self.reduce(path, beta);
            }
            Signal::Timeout { reduces, .. } => {
                // A segment that was already retransmitted keeps the threshold (RFC 5681 § 3.1).
                if reduces {
                    self.ssthresh = self.part(path, 0.5);
                }
                self.cwnd = f64::from(path.mss).min(self.constants.max_window);
                self.restart();
                self.after_timeout = true;
            }
            Signal::Resume { .. } => {}
            // RFC 5681 § 4.1: the restart window is min(IW, cwnd).
            Signal::Idle { keep, .. } => {
                let left = keep.map_or(self.constants.initial_window, |keep| keep.cwnd as f64);
                self.cwnd = self.cwnd.min(left);
                self.ssthresh = keep.map_or(self.ssthresh, |keep| keep.ssthresh);
                self.restart();
                if self.constants.params.forgets_when_idle {
                    self.base = None;
                }
            }
        }
    }

    fn window_mut(&mut self) -> Option<WindowMut<'_>> {
        let (cwnd, ssthresh) = (&mut self.cwnd, &mut self.ssthresh);
        Some(WindowMut { cwnd, ssthresh, max_window: self.constants.max_window })
    }

    fn window(&self) -> Window {
        Window { cwnd: self.bytes(), ssthresh: self.ssthresh }
    }

    fn min_rtt(&self) -> Option<Duration> {
        self.base
    }

    fn count(&self, each: &mut dyn FnMut(&'static str, u64)) {
        each("rounds_more", self.counters.more);
        each("rounds_less", self.counters.less);
        each("rounds_same", self.counters.same);
    }
}
