//! CUBIC (RFC 9438): after a reduction the window returns to its old size along a cubic function of
//! time, stays near it, and then probes beyond. Section numbers without a document are of RFC 9438.

use alloc::boxed::Box;

mod linux;
mod params;

pub use params::{FastConvergencePoint, Growth, Params};

use alloc::sync::Arc;

use cwnd_quantity::{Duration, Time};
use cwnd_schema::RegistryEntry;

use crate::controller::{
    AckSample, Cause, Controller, Path, Request, Signal, Start, Window, WindowMut, min_ssthresh,
    restore_window,
};
use crate::decrease::{ABE, ADAPTIVE, BECN, Decrease, Factors, GrowthHold};
use crate::dynamic::{ControllerInfo, DynController, Mechanism};
use crate::min_rtt::with_min_rtt_estimate;
use crate::slow_start::{Credit, SlowStartState};
use linux::LinuxGrowth;

/// Name and description in scenarios.
pub const ENTRY: RegistryEntry = RegistryEntry::new(
    "cubic",
    "CUBIC: growth by a cubic function of the time since the last reduction (RFC 9438).",
);

impl ControllerInfo for Params {
    fn build(&self, start: &Start) -> Box<dyn DynController> {
        with_min_rtt_estimate(&self.rule, Cubic::new(self, start))
    }

    fn lowers_on_acks(&self) -> bool {
        false
    }

    fn mechanisms(&self) -> &'static [Mechanism] {
        &[ABE, ADAPTIVE, BECN]
    }

    fn linux_name(&self) -> Option<&'static str> {
        Some("cubic")
    }
}

/// CUBIC's state for one connection. Windows are bytes in floating point, so that fractions of a
/// byte add up.
#[derive(Clone, Debug)]
pub struct Cubic {
    cwnd: f64,
    ssthresh: u64,
    slow_start: SlowStartState,
    avoidance: Avoidance,
    initial_window: u64,
    max_window: u64,
    decrease: Arc<dyn Decrease>,
    credit: Credit,
    grow_in_cwr: bool,
    hold: GrowthHold,
    ecn_new_stage: bool,
    slow_start_end: SlowStartEnd,
}

/// Growth in congestion avoidance: by the RFC, or by counting segments as kernels do.
#[derive(Clone, Debug)]
enum Avoidance {
    Rfc9438(Rfc9438Growth),
    Linux(LinuxGrowth),
}

/// End of slow start near its threshold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum SlowStartEnd {
    /// Ends there; what is left of an ACK counts for congestion avoidance.
    Exact,
    /// Ends at or above it: an ACK counts as a whole (ns-3).
    Passed,
    /// Continues while the window equals the threshold (Linux 2.6.22): one segment more after each
    /// reduction.
    Exceeded,
    /// As `Exceeded`, but at most one segment beyond; what is left of the ACK is lost (Linux 3.17).
    OneBeyond,
}

impl Cubic {
    /// Creates the controller of a new connection.
    #[must_use]
    pub fn new(params: &Params, start: &Start) -> Self {
        Self {
            cwnd: start.initial_cwnd() as f64,
            ssthresh: start.initial_ssthresh(),
            slow_start: SlowStartState::new(params.growing.slow_start),
            avoidance: match LinuxGrowth::new(params) {
                Some(linux) => Avoidance::Linux(linux),
                None => Avoidance::Rfc9438(Rfc9438Growth::new(params)),
            },
            initial_window: start.initial_cwnd(),
            max_window: start.max_window(),
            decrease: Arc::new(Factors::new(&params.rule)),
            credit: match params.growth {
                Growth::Linux2622 => Credit::Ack,
                Growth::Fluid | Growth::Linux | Growth::Linux317 | Growth::Ns3 => {
                    Credit::bytes(&params.growing)
                }
            },
            grow_in_cwr: params.growing.grow_in_cwr,
            hold: GrowthHold::new(params.growing.grow_in_cwr),
            ecn_new_stage: params.ecn_new_stage,
            slow_start_end: match params.growth {
                Growth::Fluid | Growth::Linux => SlowStartEnd::Exact,
                Growth::Ns3 => SlowStartEnd::Passed,
                Growth::Linux2622 => SlowStartEnd::Exceeded,
                Growth::Linux317 => SlowStartEnd::OneBeyond,
            },
        }
    }

    /// Returns the controller with another decrease rule, before the connection begins. Its growth
    /// still follows the factors of its parameters.
    #[must_use]
    pub fn with_decrease(self, rule: impl Decrease + 'static) -> Self {
        Self { decrease: Arc::new(rule), ..self }
    }

    /// Returns the window in whole bytes.
    #[inline]
    fn bytes(&self) -> u64 {
        // Converted to a signed number first: x86-64 before AVX-512 has no direct conversion to
        // unsigned.
        (self.cwnd as i64).cast_unsigned()
    }

    #[inline]
    fn in_slow_start(&self) -> bool {
        let window = self.bytes();
        window < self.ssthresh
            || window == self.ssthresh
                && matches!(self.slow_start_end, SlowStartEnd::Exceeded | SlowStartEnd::OneBeyond)
    }

    /// Grows in slow start; returns the bytes left for congestion avoidance once the threshold is
    /// reached (in Linux 3.17 none) or HyStart ends it, which takes the delay only if
    /// `delay_counts`.
    #[inline]
    fn slow_start(&mut self, path: &Path, ack: &AckSample, delay_counts: bool) -> u64 {
        let sample = AckSample { rtt: ack.rtt.filter(|_| delay_counts), ..*ack };
        let growth = self.slow_start.on_ack(path, &sample, self.bytes(), self.credit);
        if growth.exit {
            self.ssthresh = self.bytes();
            self.slow_start.on_exit();
            return growth.bytes;
        }
        let step = match self.slow_start_end {
            SlowStartEnd::Exact => growth.bytes.min(self.ssthresh - self.bytes()),
            SlowStartEnd::Passed | SlowStartEnd::Exceeded => growth.bytes,
            SlowStartEnd::OneBeyond => {
                let max_cwnd = self.ssthresh.saturating_add(u64::from(path.mss));
                growth.bytes.min(max_cwnd - self.bytes())
            }
        };
        self.cwnd += step as f64;
        self.clamp_window();
        if self.bytes() >= self.ssthresh {
            self.slow_start.on_exit();
        }
        if self.slow_start_end == SlowStartEnd::OneBeyond { 0 } else { growth.bytes - step }
    }

    /// Reduces the window (§ 4.6). For a loss, and for other causes with `ecn_new_stage`, starts a
    /// new stage with fast convergence (§ 4.7).
    fn reduce(&mut self, path: &Path, cause: Cause) {
        let cwnd = self.bytes();
        let stage = self.slow_start.stage(cwnd < self.ssthresh);
        let reduced = self.decrease.reduced(path, cwnd, stage, cause);
        let min_cwnd = match (cause, &self.avoidance) {
            // Kernels set the window to the threshold, whatever the cause, so two segments are the
            // least.
            (Cause::Loss, _) | (_, Avoidance::Linux(_)) => min_ssthresh(path.mss),
            (_, Avoidance::Rfc9438(_)) => u64::from(path.mss),
        };
        // A window that is already below `min_cwnd` must not be raised to it.
        let after = self.cwnd.min(reduced.max(min_cwnd) as f64);
        self.ssthresh = reduced.max(min_ssthresh(path.mss));
        if cause == Cause::Loss || self.ecn_new_stage {
            match &mut self.avoidance {
                Avoidance::Rfc9438(rfc9438) => rfc9438.reduce(self.cwnd, after, cause),
                Avoidance::Linux(linux) => {
                    let mss = u64::from(path.mss);
                    linux.reduce(cwnd / mss, after as u64 / mss, cause);
                }
            }
        }
        self.cwnd = after;
        self.hold.begin(self.decrease.rest(path, cause), self.grow_in_cwr);
        self.slow_start.on_congestion();
    }

    #[inline]
    fn clamp_window(&mut self) {
        self.cwnd = self.cwnd.min(self.max_window as f64);
    }
}

impl Controller for Cubic {
    fn on_ack(&mut self, path: &Path, ack: &AckSample) -> Request {
        if ack.acked_bytes == 0 {
            return Request::Nothing;
        }
        let mut delay_counts = true;
        match &mut self.avoidance {
            Avoidance::Rfc9438(rfc9438) => {
                if !path.cwnd_limited {
                    rfc9438.unused(path.now);
                }
            }
            Avoidance::Linux(linux) => delay_counts = linux.on_ack(path, ack),
        }
        if !self.hold.allows(path.now, ack.grow) {
            return Request::Nothing;
        }
        let left = if self.in_slow_start() {
            let left = self.slow_start(path, ack, delay_counts);
            if left == 0 {
                return Request::Nothing;
            }
            left
        } else {
            ack.acked_bytes
        };
        match &mut self.avoidance {
            Avoidance::Rfc9438(rfc9438) => self.cwnd = rfc9438.grown(path, self.cwnd, left),
            Avoidance::Linux(linux) => {
                let mss = f64::from(path.mss);
                let growth = linux.growth(path, (self.cwnd / mss) as u64, left);
                self.cwnd += growth as f64 * mss;
            }
        }
        self.clamp_window();
        Request::Nothing
    }

    fn on_signal(&mut self, path: &Path, signal: Signal) {
        match signal {
            Signal::Reduce(cause) => self.reduce(path, cause),
            Signal::Timeout { reduces, .. } => {
                // § 4.8: as Reno, but with β. A segment that was already retransmitted keeps the
                // threshold (RFC 5681 § 3.1).
                if reduces {
                    self.reduce(path, Cause::Loss);
                }
                self.cwnd = f64::from(path.mss);
                self.clamp_window();
                match &mut self.avoidance {
                    Avoidance::Rfc9438(rfc9438) => rfc9438.on_timeout(),
                    Avoidance::Linux(linux) => linux.on_timeout(),
                }
                self.slow_start.on_timeout(path);
            }
            // RFC 5681 § 4.1: the restart window is min(IW, cwnd).
            Signal::Idle { keep, .. } => {
                let left = keep.map_or(self.initial_window, |keep| keep.cwnd);
                self.cwnd = self.cwnd.min(left as f64);
                self.ssthresh = keep.map_or(self.ssthresh, |keep| keep.ssthresh);
                if let Avoidance::Rfc9438(rfc9438) = &mut self.avoidance {
                    rfc9438.on_idle();
                }
            }
            Signal::Resume { since } => {
                if let Avoidance::Linux(linux) = &mut self.avoidance {
                    linux.on_resume(path.now, since);
                }
            }
        }
    }

    /// Undoes a reduction (§ 4.9): restores all of the state `before`, or nothing if the window is
    /// larger now. With `growth = "linux"` window and threshold become the larger ones
    /// (`tcp_undo_cwnd_reduction`), and the stage of the curve and its maximum stay as they are.
    /// HyStart goes on in its round, or after a timeout from its new start.
    fn undo(&mut self, mut before: Self, now: Time, after_timeout: bool) {
        let delay_min = match &self.avoidance {
            Avoidance::Linux(linux) if linux.keeps_state_on_undo() => linux.delay_min(),
            _ => {
                if self.bytes() <= before.bytes() {
                    *self = before;
                }
                return;
            }
        };
        restore_window(self, &mut before);
        self.hold = before.hold;
        self.slow_start.undo(before.slow_start, now, after_timeout, delay_min);
    }

    /// Takes an RTT from SACK, for HyStart and the least delay; only `growth = "linux"` uses it
    /// (`cubictcp_acked`).
    fn on_sack_rtt(&mut self, path: &Path, rtt: Duration) {
        let Avoidance::Linux(linux) = &mut self.avoidance else { return };
        let sample = AckSample { rtt: Some(rtt), ..AckSample::default() };
        let delay_counts = linux.keeps_state_on_undo() && linux.on_ack(path, &sample);
        if delay_counts
            && self.in_slow_start()
            && self.slow_start.on_sack_rtt(path, rtt, self.bytes())
        {
            self.ssthresh = self.bytes();
            self.slow_start.on_exit();
        }
    }

    fn window_mut(&mut self) -> Option<WindowMut<'_>> {
        let (cwnd, ssthresh) = (&mut self.cwnd, &mut self.ssthresh);
        Some(WindowMut { cwnd, ssthresh, max_window: self.max_window as f64 })
    }

    #[inline]
    fn window(&self) -> Window {
        Window { cwnd: self.bytes(), ssthresh: self.ssthresh }
    }
}

/// Growth in congestion avoidance by the RFC. Windows are bytes in floating point, so that
/// fractions of a byte add up. Only IEEE basic operations and one portable cube root are used:
/// every machine computes the same.
#[derive(Clone, Debug)]
struct Rfc9438Growth {
    /// Window just before the last reduction, bytes, lowered by fast convergence (§ 4.1.2). Zero
    /// before the first and after a timeout; the first window of a stage that begins at or above
    /// it.
    w_max: f64,
    /// Window just before the last reduction that ended a stage, bytes (§ 4.1.2). Zero before the
    /// first, so that Reno gains one segment per round trip as in § 4.10.
    cwnd_prior: f64,
    epoch: Option<Epoch>,
    /// α of § 4.3 since the last reduction.
    alpha: f64,
    alpha_loss: f64,
    alpha_ecn: f64,
    beta: f64,
    c: f64,
    fast_convergence: Option<FastConvergencePoint>,
    reno_friendly: bool,
    reno_catches_up: bool,
}

/// A stage of congestion avoidance, ended by a reduction, a timeout or an idle time.
#[derive(Clone, Copy, Debug)]
struct Epoch {
    /// Start, shifted by the time in which the window was not in use.
    start: Time,
    /// Time from which the window has not been in use.
    unused_since: Option<Time>,
    /// Plateau of the function, bytes.
    w_max: f64,
    /// Time from the start to the plateau, s.
    k: f64,
    /// Estimate of Reno's window, bytes (§ 4.3).
    w_est: f64,
}

impl Rfc9438Growth {
    fn new(params: &Params) -> Self {
        let alpha_loss = 3.0 * (1.0 - params.rule.beta) / (1.0 + params.rule.beta);
        Self {
            w_max: 0.0,
            cwnd_prior: 0.0,
            epoch: None,
            alpha: alpha_loss,
            alpha_loss,
            alpha_ecn: params.alpha_ecn.unwrap_or(alpha_loss),
            beta: params.rule.beta,
            c: params.c,
            fast_convergence: params.fast_convergence.then_some(params.fast_convergence_point),
            reno_friendly: params.reno_friendly,
            reno_catches_up: params.reno_catches_up,
        }
    }

    /// Notes that the window is not in use.
    #[inline]
    fn unused(&mut self, now: Time) {
        if let Some(epoch) = &mut self.epoch {
            epoch.unused_since.get_or_insert(now);
        }
    }

    /// Returns the window after an ACK of `acked` bytes.
    fn grown(&mut self, path: &Path, cwnd: f64, acked: u64) -> f64 {
        let mss = f64::from(path.mss);
        let steepness = self.c * mss;
        // At most a window of data counts, so that one ACK never carries the window past its
        // target.
        let acked = (acked as f64).min(cwnd);
        let mut epoch = match self.epoch {
            Some(epoch) => epoch,
            None => self.begin_epoch(path.now, cwnd, steepness),
        };
        if let Some(since) = epoch.unused_since.take() {
            // "The elapsed time t in Figure 1 MUST NOT include periods during which cwnd has not
            // been updated" (§ 4.2, § 5.8).
            epoch.start += path.now.since(since);
        }
        let t = path.now.since(epoch.start).as_secs_f64();

        // § 4.3: Reno's growth, but slower below the old window, to make up for the smaller
        // reduction.
        if self.reno_friendly {
            let caught_up = self.reno_catches_up && epoch.w_est >= self.cwnd_prior;
            let alpha = if caught_up { 1.0 } else { self.alpha };
            epoch.w_est += alpha * acked / cwnd * mss;
        }
        let grown = if self.reno_friendly && epoch.window(t, steepness) < epoch.w_est {
            // Departs from § 4.3, which sets the window to W_est. The window may already be ahead,
            // as it aims at W_cubic a round trip from now, and an ACK never lowers it.
            cwnd.max(epoch.w_est)
        } else {
            // § 4.2, Fig. 1, and § 4.4–4.5.
            let rtt = path.srtt.map_or(0.0, Duration::as_secs_f64);
            let target = epoch.window(t + rtt, steepness).clamp(cwnd, MAX_TARGET * cwnd);
            // Departs from § 4.4, which grows "for each received new ACK". Growth here counts
            // acknowledged segments, as § 4.3 does, so that delayed ACKs do not halve it.
            cwnd + (target - cwnd) / cwnd * acked
        };
        self.epoch = Some(epoch);
        grown
    }

    /// Begins a stage of congestion avoidance (§ 4.2).
    fn begin_epoch(&mut self, now: Time, cwnd: f64, steepness: f64) -> Epoch {
        let (w_max, k) = if self.w_max > cwnd {
            (self.w_max, libm::cbrt((self.w_max - cwnd) / steepness))
        } else {
            // The plateau is here after a timeout (§ 4.8), or after a slow start that ended without
            // a loss (§ 4.10). It is also here if a β_ecn above (1 + β) / 2 leaves the window above
            // the maximum that fast convergence lowered. The RFC, with its one β, does not cover
            // that case.
            self.w_max = cwnd;
            (cwnd, 0.0)
        };
        Epoch { start: now, unused_since: None, w_max, k, w_est: cwnd }
    }

    /// Ends the stage by a reduction, with fast convergence (§ 4.7).
    fn reduce(&mut self, before: f64, after: f64, cause: Cause) {
        self.cwnd_prior = before;
        self.w_max = match self.fast_convergence {
            Some(point) if before < self.w_max => match point {
                FastConvergencePoint::Beta => before * (1.0 + self.beta) / 2.0,
                FastConvergencePoint::Midpoint => (before + after) / 2.0,
            },
            _ => before,
        };
        self.alpha = match cause {
            // By the cause, even if `beta_initial` or a factor for quenches was used.
            Cause::Loss | Cause::Delay | Cause::Quench { marked: false, .. } => self.alpha_loss,
            Cause::Ecn | Cause::Load | Cause::Quench { marked: true, .. } => self.alpha_ecn,
        };
        self.epoch = None;
    }

    /// Forgets the maximum after a timeout (§ 4.8).
    fn on_timeout(&mut self) {
        self.w_max = 0.0;
        self.epoch = None;
    }

    /// Starts a new stage after an idle time.
    fn on_idle(&mut self) {
        self.epoch = None;
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

/// Largest target per round trip, as a multiple of the window (§ 4.2).
const MAX_TARGET: f64 = 1.5;
