//! What NewReno and CUBIC share about decrease and about when not to grow: β for loss, β for ECN, and of what.

use cwnd_units::{Ability, Contract, Declares, param_enum, params};

use crate::controller::{Cause, Grow, Path};
use crate::kind::{Mechanism, OnLinux};

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
        /// β, as for a loss (RFC 8511 changes congestion avoidance only).
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

/// Where the window stood when a signal came.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stage {
    /// The slow start of a new connection.
    FirstSlowStart,
    /// A later slow start, below a known threshold.
    SlowStart,
    /// Congestion avoidance.
    Avoidance,
}

params! {
    /// A reading of the decrease rule: the parameters by which the readings of ABE differ.
    pub struct Rule {
        /// Part of the window that stays after a loss.
        #[source("RFC 5681 § 3.1 eq. 4")]
        #[bounds(above 0.0, below 1.0; "it is the part of the window that stays")]
        pub beta: f64 = 0.5,
        /// Part of the window that stays after an ECN-echo; none is `beta`.
        #[source("RFC 3168 § 6.1.2: as for a loss")]
        #[bounds(above 0.0, below 1.0; "it is the part of the window that stays")]
        pub beta_ecn: Option<f64> = None,
        /// Part of the window that stays at the signal, loss or ECN-echo, that ends the first slow start; none is as
        /// at any other.
        #[source("none in the RFCs; FreeBSD's and quicly's CUBIC halve")]
        #[bounds(above 0.0, below 1.0; "it is the part of the window that stays")]
        pub beta_initial: Option<f64> = None,
        /// What the factors multiply: what is in flight, or the window.
        #[source("RFC 5681 § 3.1 eq. 4")]
        pub base: Base = Base::FlightSize,
        /// Which factor answers an ECN-echo that ends slow start.
        #[source("RFC 8511, abstract: in congestion avoidance")]
        pub ecn_in_slow_start: EcnInSlowStart = EcnInSlowStart::Beta,
        /// To what a reduced window is rounded down.
        #[source("RFC 5681 counts bytes")]
        pub rounding: Rounding = Rounding::Bytes,
    }
}

impl Declares for Rule {
    /// A factor of its own for ECN asks for ECN.
    fn contract(&self) -> Contract {
        let own = self.beta_ecn.is_some_and(|beta_ecn| beta_ecn != self.beta);
        let why = "`beta_ecn` differs from `beta` and never acts";
        Contract::new().when(own, |c| c.wants(Ability::Ect, why).wants(Ability::ObeysEce, why))
    }
}

/// Alternative backoff with ECN: an answer of its own to an ECN-echo (RFC 8511).
pub(crate) const ABE: Mechanism = Mechanism {
    name: "ABE",
    key: "beta_ecn",
    base: "beta",
    parameters: &["beta_ecn", "ecn_in_slow_start"],
    acts_in: "cwnd_reductions_ecn",
};

impl Rule {
    /// How Linux has it: in a controller of its own, or in one of `cwnd-kernel` where ABE is asked for.
    pub(crate) fn on_linux(&self, own: &'static str, with_abe: &str) -> OnLinux {
        let loaded = self.beta_ecn.filter(|&b| b != self.beta).map(|beta_ecn| {
            let mode = match self.ecn_in_slow_start {
                EcnInSlowStart::Beta => "avoidance",
                EcnInSlowStart::BetaEcn => "always",
            };
            let words = [with_abe, "--beta-ecn", &beta_ecn.to_string(), "--mode", mode];
            words.map(str::to_owned).to_vec()
        });
        OnLinux { own, loaded }
    }
}

/// The decrease rule, ready to use: factors as exact parts of a billion.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Decrease {
    beta: u64,
    beta_ecn: u64,
    beta_initial: Option<u64>,
    base: Base,
    ecn_in_slow_start: EcnInSlowStart,
    rounding: Rounding,
}

impl Decrease {
    pub(crate) fn new(rule: &Rule) -> Self {
        let parts = |b: f64| (b * PARTS as f64 + 0.5) as u64;
        Self {
            beta: parts(rule.beta),
            beta_ecn: parts(rule.beta_ecn.unwrap_or(rule.beta)),
            beta_initial: rule.beta_initial.map(parts),
            base: rule.base,
            ecn_in_slow_start: rule.ecn_in_slow_start,
            rounding: rule.rounding,
        }
    }

    /// β · base, before any lower bound (RFC 5681 eq. 4, RFC 9438 § 4.6).
    pub(crate) fn reduced(&self, path: &Path, cwnd: u64, stage: Stage, cause: Cause) -> u64 {
        let base = match self.base {
            Base::FlightSize => path.flight_size,
            Base::Cwnd => cwnd,
        };
        let beta = match (stage, cause, self.beta_initial) {
            (Stage::FirstSlowStart, _, Some(beta_initial)) => beta_initial,
            (_, Cause::Loss | Cause::Delay | Cause::Quench { marked: false }, _) => self.beta,
            (Stage::Avoidance, Cause::Ecn | Cause::Quench { marked: true } | Cause::Load, _) => {
                self.beta_ecn
            }
            (
                Stage::FirstSlowStart | Stage::SlowStart,
                Cause::Ecn | Cause::Quench { marked: true } | Cause::Load,
                _,
            ) => match self.ecn_in_slow_start {
                EcnInSlowStart::Beta => self.beta,
                EcnInSlowStart::BetaEcn => self.beta_ecn,
            },
        };
        // β < 1, so the product is below `base` and fits again.
        let reduced = (u128::from(base) * u128::from(beta) / u128::from(PARTS)) as u64;
        match self.rounding {
            Rounding::Bytes => reduced,
            Rounding::Segments => reduced - reduced % u64::from(path.mss),
        }
    }
}

impl Grow {
    /// Whether the window grows, given whether it does in the round trip after a reduction.
    #[inline]
    pub(crate) const fn allows(self, in_cwr: bool) -> bool {
        match self {
            Self::No => false,
            Self::InCwr => in_cwr,
            Self::Yes => true,
        }
    }
}

/// Denominator of the stored factors, so that 0.8 of a window is exact.
const PARTS: u64 = 1_000_000_000;
