//! What NewReno and CUBIC share about decrease and about when not to grow: β for loss, β for ECN, and of what.

use cwnd_units::{Invalid, param_enum};

use crate::controller::{AckSample, Path, Phase};

param_enum! {
    /// What β multiplies.
    pub enum Base {
        /// What is in flight (RFC 5681 eq. 4).
        FlightSize = "flight-size",
        /// The congestion window, as Linux, FreeBSD and the QUIC stacks do.
        Cwnd = "cwnd",
    }
}

param_enum! {
    /// Which β answers an ECN-echo that ends slow start.
    pub enum EcnInSlowStart {
        /// β, as for a loss (RFC 8511 § 3).
        Beta = "beta",
        /// β_ecn, as in congestion avoidance (ABE § III).
        BetaEcn = "beta-ecn",
    }
}

param_enum! {
    /// To what a reduced window is rounded down.
    pub enum Rounding {
        /// Bytes.
        Bytes = "bytes",
        /// Whole segments, as in FreeBSD's `cc_newreno.c` and in stacks that count the window in segments.
        Segments = "segments",
    }
}

/// What called for a reduction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Cause {
    /// A loss or a timeout.
    Loss,
    /// An ECN-echo.
    Ecn,
}

/// The decrease rule, ready to use: β as exact parts of a billion.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Decrease {
    beta: u64,
    beta_ecn: u64,
    base: Base,
    ecn_in_slow_start: EcnInSlowStart,
    rounding: Rounding,
}

impl Decrease {
    pub(crate) fn new(
        beta: f64,
        beta_ecn: Option<f64>,
        base: Base,
        ecn_in_slow_start: EcnInSlowStart,
        rounding: Rounding,
    ) -> Self {
        let parts = |b: f64| (b * PARTS as f64 + 0.5) as u64;
        Self {
            beta: parts(beta),
            beta_ecn: parts(beta_ecn.unwrap_or(beta)),
            base,
            ecn_in_slow_start,
            rounding,
        }
    }

    /// β · base, before any lower bound (RFC 5681 eq. 4, RFC 9438 § 4.6).
    pub(crate) fn reduced(&self, path: &Path, cwnd: u64, in_slow_start: bool, cause: Cause) -> u64 {
        let base = match self.base {
            Base::FlightSize => path.flight_size,
            Base::Cwnd => cwnd,
        };
        let beta = match (cause, in_slow_start, self.ecn_in_slow_start) {
            (Cause::Loss, ..) | (Cause::Ecn, true, EcnInSlowStart::Beta) => self.beta,
            (Cause::Ecn, ..) => self.beta_ecn,
        };
        // β < 1, so the product is below `base` and fits again.
        let reduced = (u128::from(base) * u128::from(beta) / u128::from(PARTS)) as u64;
        match self.rounding {
            Rounding::Bytes => reduced,
            Rounding::Segments => reduced - reduced % u64::from(path.mss),
        }
    }
}

/// The least slow-start threshold, bytes (RFC 5681 eq. 4).
pub(crate) const fn min_ssthresh(mss: u32) -> u64 {
    2 * mss as u64
}

/// Whether this ACK may raise the window at all.
#[inline]
pub(crate) fn may_grow(path: &Path, ack: &AckSample, grow_in_cwr: bool) -> bool {
    // Only a window that was the limit has been tried (RFC 7661 § 4.3, RFC 9438 § 5.8), and no ACK that carries
    // ECE raises it (RFC 3168 § 6.1.2).
    path.cwnd_limited
        && !ack.ece
        && match path.phase {
            Phase::Open | Phase::Loss => true,
            Phase::Cwr => grow_in_cwr,
            Phase::Recovery => false,
        }
}

/// Looks at both factors.
pub(crate) fn check_betas(beta: f64, beta_ecn: Option<f64>) -> Result<(), Invalid> {
    let inside = |b: f64| b > 0.0 && b < 1.0;
    let message = |name: &str, b: f64| {
        format!("{name} is the part of the window that stays and lies between 0 and 1, not {b}")
    };
    if !inside(beta) {
        return Err(Invalid { key: "beta", message: message("`beta`", beta) });
    }
    match beta_ecn {
        Some(b) if !inside(b) => {
            Err(Invalid { key: "beta_ecn", message: message("`beta_ecn`", b) })
        }
        _ => Ok(()),
    }
}

/// Denominator of the stored factors, so that 0.8 of a window is exact.
const PARTS: u64 = 1_000_000_000;
