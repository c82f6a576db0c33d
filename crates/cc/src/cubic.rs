//! CUBIC (RFC 9438): after a reduction the window returns to its old size along a cubic function of time, rests
//! there, and goes on to probe beyond. Section numbers without a document are of RFC 9438.

use cwnd_units::{Duration, Invalid, Time, param_enum, params};

use crate::controller::{AckSample, Controller, Path, Signal, Start, Window};
use crate::decrease::{
    Base, Cause, Decrease, EcnInSlowStart, Rounding, Rule, may_grow, min_ssthresh,
};
use crate::slow_start::{Credit, SlowStart, SlowStartState};

param_enum! {
    /// To where fast convergence lowers the maximum.
    pub enum FastConvergencePoint {
        /// (1 + β) / 2 of the window before the reduction, whatever factor reduced it (RFC 9438 § 4.7).
        Beta = "beta",
        /// Halfway between the windows before and after the reduction: the same after a loss; after an ECN reduction
        /// with a larger factor it stays above the window.
        Midpoint = "midpoint",
    }
}

params! {
    /// CUBIC.
    pub struct Params {
        /// Part of the window that stays after a loss.
        #[source("RFC 9438 § 4.6")]
        pub beta: f64 = 0.7,
        /// Part of the window that stays after an ECN-echo; none is `beta`.
        #[source("RFC 9438 § 4.6: as for a loss")]
        pub beta_ecn: Option<f64> = None,
        /// Part of the window that stays at the signal, loss or ECN-echo, that ends the first slow start; none is as
        /// at any other.
        #[source("none in the RFCs; FreeBSD's and quicly's CUBIC halve")]
        pub beta_initial: Option<f64> = None,
        /// What the factors multiply: what is in flight, or the window.
        #[source("RFC 9438 § 4.6")]
        pub base: Base = Base::FlightSize,
        /// Which factor answers an ECN-echo that ends slow start.
        #[source("RFC 8511, abstract: in congestion avoidance")]
        pub ecn_in_slow_start: EcnInSlowStart = EcnInSlowStart::Beta,
        /// To what a reduced window is rounded down.
        #[source("RFC 9438 does not round")]
        pub rounding: Rounding = Rounding::Bytes,
        /// C: how steep the cubic function is, in segments per second cubed.
        #[source("RFC 9438 § 5.1")]
        pub c: f64 = 0.4,
        /// Whether a flow that is reduced below its last maximum gives up some of it for newcomers.
        #[source("RFC 9438 § 4.7")]
        pub fast_convergence: bool = true,
        /// To where fast convergence lowers the maximum.
        #[source("RFC 9438 § 4.7")]
        pub fast_convergence_point: FastConvergencePoint = FastConvergencePoint::Beta,
        /// Whether the window is at least what Reno would have where Reno is the faster.
        #[source("RFC 9438 § 4.3")]
        pub reno_friendly: bool = true,
        /// Whether Reno's window is taken to gain a whole segment each round trip once it is back at the old window.
        #[source("RFC 9438 § 4.3; RFC 8312 § 4.2, and so Linux and ns-3, go on with α")]
        pub reno_catches_up: bool = true,
        /// α: what Reno's window is taken to gain each round trip after an ECN reduction, in segments; none is
        /// 3 (1 − β) / (1 + β), as after a loss.
        #[source("RFC 9438 § 4.3 knows one β")]
        pub alpha_ecn: Option<f64> = None,
        /// L: one ACK in slow start counts for at most so many segments; none is no limit. After a timeout it is 1,
        /// with HyStart++ 8.
        #[source("RFC 3465 § 2.3")]
        pub abc_limit: Option<u32> = Some(2),
        /// How the first slow start ends.
        #[source("RFC 9438 § 4.10 leaves it open")]
        pub slow_start: SlowStart = SlowStart::Standard,
        /// Whether the window grows in the round trip after an ECN reduction, on ACKs without ECE; Linux freezes it.
        #[source("RFC 3168 § 6.1.2 excludes only ACKs with ECE")]
        pub grow_in_cwr: bool = true,
    }
    presets {
        /// RFC 9438: ECN as loss; the default.
        "rfc" => |p| { p.set_reading(Reading::RFC); }
        /// ABE as RFC 8511 says: 0.85 of what is in flight, in congestion avoidance only.
        "abe" => |p| {
            p.set_reading(Reading { rule: Rule { beta_ecn: Some(0.85), ..RFC }, ..Reading::RFC });
        }
        /// ABE as its paper evaluates it: 0.85 of the window, also where an ECN-echo ends slow start; no fast
        /// convergence.
        "paper" => |p| {
            p.set_reading(Reading {
                rule: Rule {
                    beta_ecn: Some(0.85),
                    base: Base::Cwnd,
                    ecn_in_slow_start: EcnInSlowStart::BetaEcn,
                    ..RFC
                },
                fast_convergence: false,
                ..Reading::RFC
            });
        }
        /// FreeBSD (cc_cubic.c), which has no ABE for CUBIC: 0.7 of the window, half at the end of the first slow start.
        "freebsd" => |p| {
            p.set_reading(Reading {
                rule: Rule { base: Base::Cwnd, beta_initial: Some(0.5), ..RFC },
                ..Reading::RFC
            });
        }
        /// ns-3's TcpCubic with UseAbe: 0.85 of the window in every phase, in whole segments.
        "ns-3" => |p| {
            p.set_reading(Reading {
                rule: Rule {
                    beta_ecn: Some(0.85),
                    base: Base::Cwnd,
                    ecn_in_slow_start: EcnInSlowStart::BetaEcn,
                    rounding: Rounding::Segments,
                    ..RFC
                },
                ..Reading::RFC
            });
        }
        /// neqo (cubic.rs): 0.85 of the window in every phase.
        "neqo" => |p| {
            p.set_reading(Reading {
                rule: Rule {
                    beta_ecn: Some(0.85),
                    base: Base::Cwnd,
                    ecn_in_slow_start: EcnInSlowStart::BetaEcn,
                    ..RFC
                },
                ..Reading::RFC
            });
        }
        /// quicly (cc-pico.c): 0.85 of the window, half at the end of the first slow start; α and fast convergence
        /// follow the factor that was used.
        "quicly" => |p| {
            p.set_reading(Reading {
                rule: Rule {
                    beta_ecn: Some(0.85),
                    beta_initial: Some(0.5),
                    base: Base::Cwnd,
                    ecn_in_slow_start: EcnInSlowStart::BetaEcn,
                    ..RFC
                },
                fast_convergence_point: FastConvergencePoint::Midpoint,
                alpha_ecn: Some(QUICLY_ALPHA_ECN),
                ..Reading::RFC
            });
        }
    }
    check |p| {
        p.rule().check()?;
        if p.abc_limit == Some(0) {
            return Err(Invalid { key: "abc_limit", message: "with a limit of 0 slow start never grows; 1 is the least".to_owned() });
        }
        if p.alpha_ecn.is_some_and(|a| a <= 0.0) {
            return Err(Invalid { key: "alpha_ecn", message: "`alpha_ecn` is a gain and is above 0".to_owned() });
        }
        if p.c <= 0.0 {
            return Err(Invalid { key: "c", message: format!("`c` scales the growth and is above 0, not {}", p.c) });
        }
    }
}

/// What the presets set.
#[derive(Clone, Copy, Debug)]
struct Reading {
    rule: Rule,
    fast_convergence: bool,
    fast_convergence_point: FastConvergencePoint,
    alpha_ecn: Option<f64>,
}

impl Reading {
    const RFC: Self = Self {
        rule: RFC,
        fast_convergence: true,
        fast_convergence_point: FastConvergencePoint::Beta,
        alpha_ecn: None,
    };
}

impl Params {
    const fn rule(&self) -> Rule {
        Rule {
            beta: self.beta,
            beta_ecn: self.beta_ecn,
            beta_initial: self.beta_initial,
            base: self.base,
            ecn_in_slow_start: self.ecn_in_slow_start,
            rounding: self.rounding,
        }
    }

    const fn set_reading(&mut self, reading: Reading) {
        let Reading { rule, fast_convergence, fast_convergence_point, alpha_ecn } = reading;
        self.fast_convergence = fast_convergence;
        self.fast_convergence_point = fast_convergence_point;
        self.alpha_ecn = alpha_ecn;
        let Rule { beta, beta_ecn, beta_initial, base, ecn_in_slow_start, rounding } = rule;
        self.beta = beta;
        self.beta_ecn = beta_ecn;
        self.beta_initial = beta_initial;
        self.base = base;
        self.ecn_in_slow_start = ecn_in_slow_start;
        self.rounding = rounding;
    }
}

/// The controller. Windows are bytes, held as floating point so that parts of a byte add up; IEEE basic operations
/// and one portable cube root, so every machine computes the same.
#[derive(Clone, Debug)]
pub struct Cubic {
    cwnd: f64,
    ssthresh: u64,
    /// The window just before the last reduction, lowered by fast convergence (§ 4.1.2); zero when there is none.
    w_max: f64,
    /// The window when ssthresh was last set (§ 4.1.2). Zero before, which as in § 4.10 leaves Reno a gain of one.
    cwnd_prior: f64,
    epoch: Option<Epoch>,
    slow_start: SlowStartState,
    initial_window: u64,
    max_window: u64,
    decrease: Decrease,
    credit: Credit,
    /// α of § 4.3 after the last reduction.
    alpha: f64,
    alpha_loss: f64,
    alpha_ecn: f64,
    beta: f64,
    c: f64,
    fast_convergence: Option<FastConvergencePoint>,
    reno_friendly: bool,
    reno_catches_up: bool,
    grow_in_cwr: bool,
}

/// A stage of congestion avoidance.
#[derive(Clone, Copy, Debug)]
struct Epoch {
    /// When it began, moved on by the time that the window was not in use.
    start: Time,
    /// Since when the window has not been in use.
    unused_since: Option<Time>,
    /// The plateau of the function, bytes.
    w_max: f64,
    /// Time from the start to the plateau, s.
    k: f64,
    /// What Reno would have, bytes (§ 4.3).
    w_est: f64,
}

impl Cubic {
    /// A controller at the start of its connection.
    #[must_use]
    pub fn new(params: &Params, start: &Start) -> Self {
        let alpha_loss = 3.0 * (1.0 - params.beta) / (1.0 + params.beta);
        Self {
            cwnd: start.initial_cwnd() as f64,
            ssthresh: start.initial_ssthresh(),
            w_max: 0.0,
            cwnd_prior: 0.0,
            epoch: None,
            slow_start: SlowStartState::new(params.slow_start),
            initial_window: start.initial_cwnd(),
            max_window: start.max_window(),
            decrease: Decrease::new(&params.rule()),
            credit: Credit::Bytes { limit: params.abc_limit },
            alpha: alpha_loss,
            alpha_loss,
            alpha_ecn: params.alpha_ecn.unwrap_or(alpha_loss),
            beta: params.beta,
            c: params.c,
            fast_convergence: params.fast_convergence.then_some(params.fast_convergence_point),
            reno_friendly: params.reno_friendly,
            reno_catches_up: params.reno_catches_up,
            grow_in_cwr: params.grow_in_cwr,
        }
    }

    /// The window in whole bytes.
    #[inline]
    fn bytes(&self) -> u64 {
        self.cwnd as u64
    }

    /// Slow start; gives back the bytes that are left for congestion avoidance once the threshold is reached.
    #[inline]
    fn slow_start(&mut self, path: &Path, ack: &AckSample) -> u64 {
        let growth = self.slow_start.on_ack(path, ack, self.credit);
        if growth.exit {
            self.ssthresh = self.bytes();
            self.slow_start.on_exit();
            return growth.bytes;
        }
        let step = growth.bytes.min(self.ssthresh - self.bytes());
        self.cwnd += step as f64;
        self.bound();
        if self.bytes() >= self.ssthresh {
            self.slow_start.on_exit();
        }
        growth.bytes - step
    }

    /// Congestion avoidance.
    fn avoid(&mut self, path: &Path, acked: u64) {
        let mss = f64::from(path.mss);
        let steepness = self.c * mss;
        // No more than a window of data counts, so one ACK never carries the window past its target.
        let acked = (acked as f64).min(self.cwnd);
        let mut epoch = match self.epoch {
            Some(epoch) => epoch,
            None => self.begin_epoch(path.now, steepness),
        };
        if let Some(since) = epoch.unused_since.take() {
            // "The elapsed time t MUST NOT include periods during which cwnd has not been updated" (§ 4.2, § 5.8).
            epoch.start += path.now.since(since);
        }
        let t = path.now.since(epoch.start).as_secs_f64();

        // § 4.3: like Reno from here on, but slower while below the old window to make up for the smaller reduction.
        if self.reno_friendly {
            let caught_up = self.reno_catches_up && epoch.w_est >= self.cwnd_prior;
            let alpha = if caught_up { 1.0 } else { self.alpha };
            epoch.w_est += alpha * acked / self.cwnd * mss;
        }
        if self.reno_friendly && epoch.window(t, steepness) < epoch.w_est {
            // Departs from § 4.3, which sets the window to W_est: it may already be ahead, as it aims at W_cubic a round
            // trip from now, and an ACK never lowers it.
            self.cwnd = self.cwnd.max(epoch.w_est);
        } else {
            // § 4.2, Fig. 1, and § 4.4–4.5.
            let rtt = path.srtt.map_or(0.0, Duration::as_secs_f64);
            let target = epoch.window(t + rtt, steepness).clamp(self.cwnd, MAX_TARGET * self.cwnd);
            // Departs from § 4.4, which grows "for each received new ACK": for each segment acknowledged, as § 4.3
            // counts them, so that delayed ACKs do not halve the growth.
            self.cwnd += (target - self.cwnd) / self.cwnd * acked;
        }
        self.epoch = Some(epoch);
        self.bound();
    }

    /// A stage of congestion avoidance begins (§ 4.2).
    fn begin_epoch(&mut self, now: Time, steepness: f64) -> Epoch {
        let (w_max, k) = if self.w_max > self.cwnd {
            (self.w_max, libm::cbrt((self.w_max - self.cwnd) / steepness))
        } else {
            // After a timeout (§ 4.8), or a slow start that ended without a loss (§ 4.10), the plateau is here. So it
            // is where a β_ecn above (1 + β) / 2 leaves the window above what fast convergence made of the maximum;
            // the RFC, whose β is one, does not say.
            self.w_max = self.cwnd;
            (self.cwnd, 0.0)
        };
        Epoch { start: now, unused_since: None, w_max, k, w_est: self.cwnd }
    }

    /// § 4.6 and § 4.7.
    fn reduce(&mut self, path: &Path, cause: Cause) {
        let cwnd = self.bytes();
        let stage = self.slow_start.stage(cwnd < self.ssthresh);
        let reduced = self.decrease.reduced(path, cwnd, stage, cause);
        let least = match cause {
            Cause::Loss => min_ssthresh(path.mss),
            Cause::Ecn => u64::from(path.mss),
        };
        // A window below the least is not raised to it.
        let after = self.cwnd.min(reduced.max(least) as f64);
        self.ssthresh = reduced.max(min_ssthresh(path.mss));
        self.cwnd_prior = self.cwnd;
        self.w_max = match self.fast_convergence {
            Some(point) if self.cwnd < self.w_max => match point {
                FastConvergencePoint::Beta => self.cwnd * (1.0 + self.beta) / 2.0,
                FastConvergencePoint::Midpoint => (self.cwnd + after) / 2.0,
            },
            _ => self.cwnd,
        };
        self.cwnd = after;
        self.alpha = match cause {
            Cause::Loss => self.alpha_loss,
            Cause::Ecn => self.alpha_ecn,
        };
        self.epoch = None;
        self.slow_start.on_congestion();
    }

    #[inline]
    fn bound(&mut self) {
        self.cwnd = self.cwnd.min(self.max_window as f64);
    }
}

impl Epoch {
    /// W_cubic(t) = C (t − K)³ + W_max (§ 4.2, Fig. 1).
    #[inline]
    fn window(&self, t: f64, steepness: f64) -> f64 {
        let x = t - self.k;
        steepness * (x * x * x) + self.w_max
    }
}

impl Controller for Cubic {
    fn on_ack(&mut self, path: &Path, ack: &AckSample) {
        if !path.cwnd_limited
            && let Some(epoch) = &mut self.epoch
        {
            epoch.unused_since.get_or_insert(path.now);
        }
        if !may_grow(path, ack, self.grow_in_cwr) {
            return;
        }
        let left = if self.bytes() < self.ssthresh {
            let left = self.slow_start(path, ack);
            if left == 0 {
                return;
            }
            left
        } else {
            ack.acked_bytes
        };
        self.avoid(path, left);
    }

    fn on_signal(&mut self, path: &Path, signal: Signal) {
        match signal {
            Signal::Loss => self.reduce(path, Cause::Loss),
            Signal::EcnEcho => self.reduce(path, Cause::Ecn),
            Signal::Timeout { nth } => {
                // § 4.8: as Reno, but with β; a segment that was sent again already keeps the threshold (RFC 5681 § 3.1).
                if nth <= 1 {
                    self.reduce(path, Cause::Loss);
                }
                self.w_max = 0.0;
                self.cwnd = f64::from(path.mss);
                self.bound();
                self.epoch = None;
                self.slow_start.on_timeout();
            }
            // RFC 5681 § 4.1: the restart window is min(IW, cwnd). What follows is a new stage.
            Signal::Idle { .. } => {
                self.cwnd = self.cwnd.min(self.initial_window as f64);
                self.epoch = None;
            }
        }
    }

    #[inline]
    fn window(&self) -> Window {
        Window { cwnd: self.bytes(), ssthresh: self.ssthresh }
    }
}

/// The window aims at no more than this many times itself a round trip (§ 4.2).
const MAX_TARGET: f64 = 1.5;
/// quicly's α after an ECN reduction: equal to a Reno that keeps 0.8 on ECN, (1 + 0.8)(1 − 0.85) / ((1 − 0.8)(1 + 0.85)).
const QUICLY_ALPHA_ECN: f64 = (1.0 + 0.8) * (1.0 - 0.85) / ((1.0 - 0.8) * (1.0 + 0.85));
/// The rule of RFC 9438 § 4.6.
const RFC: Rule = Rule {
    beta: 0.7,
    beta_ecn: None,
    beta_initial: None,
    base: Base::FlightSize,
    ecn_in_slow_start: EcnInSlowStart::Beta,
    rounding: Rounding::Bytes,
};
