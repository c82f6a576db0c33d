//! CUBIC's growth by RFC 9438: the window is a real number, and every ACK moves it.

use cwnd_quantity::{Duration, Time};

use super::params::{FastConvergencePoint, Params};
use crate::controller::{Cause, Path};

/// Growth in congestion avoidance. Windows are bytes in floating point, so that fractions of a byte
/// add up. Only IEEE basic operations and one portable cube root are used: every machine computes
/// the same.
#[derive(Clone, Debug)]
pub(super) struct Rfc9438Growth {
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
    pub(super) fn new(params: &Params) -> Self {
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
    pub(super) fn unused(&mut self, now: Time) {
        if let Some(epoch) = &mut self.epoch {
            epoch.unused_since.get_or_insert(now);
        }
    }

    /// Returns the window after an ACK of `acked` bytes.
    pub(super) fn grown(&mut self, path: &Path, cwnd: f64, acked: u64) -> f64 {
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
    pub(super) fn reduce(&mut self, before: f64, after: f64, cause: Cause) {
        self.cwnd_prior = before;
        self.w_max = match self.fast_convergence {
            Some(point) if before < self.w_max => match point {
                FastConvergencePoint::Beta => before * (1.0 + self.beta) / 2.0,
                FastConvergencePoint::Midpoint => (before + after) / 2.0,
            },
            _ => before,
        };
        self.alpha = match cause {
            // The α that belongs to the decrease factor that was used.
            Cause::Loss | Cause::Delay | Cause::Quench { marked: false, .. } => self.alpha_loss,
            Cause::Ecn | Cause::Load | Cause::Quench { marked: true, .. } => self.alpha_ecn,
        };
        self.epoch = None;
    }

    /// Forgets the maximum after a timeout (§ 4.8).
    pub(super) fn on_timeout(&mut self) {
        self.w_max = 0.0;
        self.epoch = None;
    }

    /// Starts a new stage after an idle time.
    pub(super) fn on_idle(&mut self) {
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
