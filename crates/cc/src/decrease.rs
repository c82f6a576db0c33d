//! Decrease rules that NewReno and CUBIC share: β for loss, β for ECN, their base, and the time
//! without growth after a reduction.

use alloc::borrow::ToOwned as _;
use alloc::vec::Vec;
use core::fmt;

use cwnd_packet::{Ability, Contract, HasContract};
use cwnd_quantity::{Duration, Levels, Time};
use cwnd_schema::{Choice, Invalid, Schema, key};

use crate::controller::{Cause, GrowthPermission, Path};
use crate::dynamic::{ActionCount, Mechanism};

/// Quantity that β multiplies.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Choice)]
pub enum Base {
    /// The data in flight (RFC 5681 eq. 4).
    #[name("flight-size")]
    FlightSize,
    /// The congestion window, as Linux, FreeBSD and the QUIC stacks do.
    #[name("cwnd")]
    Cwnd,
}

/// Decrease factor for an ECN-echo that ends slow start, unless `beta_initial` applies.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Choice)]
pub enum EcnInSlowStart {
    /// β, as for a loss (RFC 8511 changes congestion avoidance only).
    #[name("beta")]
    Beta,
    /// β_ecn, as in congestion avoidance (ABE § III).
    #[name("beta-ecn")]
    BetaEcn,
}

/// Unit to which a reduced window is rounded down.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Choice)]
pub enum Rounding {
    /// Bytes.
    #[name("bytes")]
    Bytes,
    /// Whole segments, as in FreeBSD's `cc_newreno.c` and in stacks that count the window in
    /// segments.
    #[name("segments")]
    Segments,
}

/// Source quenches after which the window does not grow for a round trip.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Choice)]
pub enum RestAfterQuench {
    /// None: it grows with the next ACK (draft-salim-jhsbnns-ecn-00, 1998).
    #[name("never")]
    Never,
    /// Those about marked packets; after one about a dropped packet it grows at once (BECN § IV-B).
    #[name("marked")]
    Marked,
    /// All; BECN § IV-B found that this costs throughput.
    #[name("always")]
    Always,
}

/// Event that ends the round trip without growth after a source quench.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Choice)]
pub enum QuenchRest {
    /// The acknowledgement of all that had been sent.
    #[name("window")]
    Window,
    /// A timer: the smoothed round-trip time, as coarse as the sender's clock; before the first
    /// sample as `window`.
    #[name("srtt")]
    Srtt,
}

/// Time without growth after a reduction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rest {
    /// None: the window may grow at once.
    No,
    /// The round trip after the reduction, in which the transport is in `Phase::Cwr`.
    Window,
    /// Until this time.
    Until(Time),
}

/// Stage of the window's growth at the time of a signal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stage {
    /// The slow start of a new connection.
    FirstSlowStart,
    /// A later slow start, below a known threshold.
    SlowStart,
    /// Congestion avoidance.
    Avoidance,
}

/// A decrease rule: the parameters in which the versions of ABE, of adaptive backoff and of BECN
/// differ.
#[derive(Clone, Debug, PartialEq, Schema)]
#[schema(check = Self::consistent)]
pub struct Rule {
    /// Part of the window that stays after a loss.
    #[default(0.5, "RFC 5681 § 3.1 eq. 4")]
    #[bounds(above 0.0, below 1.0; "it is the part of the window that stays")]
    pub beta: f64,
    /// δ of adaptive backoff: after a loss δ · minRTT / RTT of the window stays, in place of
    /// `beta`, and after an ECN-echo too where `beta_ecn` is none; minRTT is the least RTT, RTT the
    /// newest. None is no adaptive backoff.
    #[default(None, "McCullagh 2008 § 4.2 eq. 4.1, e.g. 0.8; no RFC has it")]
    #[bounds(above 0.0, up_to 1.0; "with more than 1 the queue would never empty")]
    pub adaptive_delta: Option<f64>,
    /// Value of minRTT from the first reduction on (at most the newest RTT), whatever was measured
    /// before: a wrong value, to see how it is corrected. It falls with every RTT that is less.
    /// None is the least RTT measured.
    #[default(None, "McCullagh 2008 § 4.3, Fig. 4.1 to 4.3")]
    #[bounds(above Duration::ZERO; "no round trip takes no time")]
    pub initial_min_rtt: Option<Duration>,
    /// Part of the window that stays after an ECN-echo; none is `beta`.
    #[default(None, "RFC 3168 § 6.1.2: as for a loss")]
    #[bounds(above 0.0, below 1.0; "it is the part of the window that stays")]
    pub beta_ecn: Option<f64>,
    /// Part of the window that stays at the congestion signal, whatever its cause, that ends the
    /// first slow start; none is as at any other.
    #[default(None, "none in the RFCs; FreeBSD's and quicly's CUBIC halve")]
    #[bounds(above 0.0, below 1.0; "it is the part of the window that stays")]
    pub beta_initial: Option<f64>,
    /// Part of the window that stays after a source quench about a marked packet, or a part for
    /// each level of congestion that routers report, in slow start too, unless `beta_initial`
    /// applies; none is as after an ECN-echo. One about a dropped packet costs what the loss would.
    #[default(None, "BECN § IV-B: as for an ECN-echo")]
    pub beta_quench: Option<Levels<f64>>,
    /// Source quenches after which the window does not grow for a round trip.
    #[default(RestAfterQuench::Marked, "BECN § IV-B")]
    pub rest_after_quench: RestAfterQuench,
    /// Event that ends the round trip without growth after a source quench.
    #[default(
        QuenchRest::Window,
        "BECN § IV-B: the sender waits an RTT; by what it measures that is not said"
    )]
    #[idle(
        self.rest_after_quench == RestAfterQuench::Never,
        "with `rest_after_quench = \"never\"`"
    )]
    pub quench_rest: QuenchRest,
    /// Quantity that the factors multiply: the data in flight, or the window.
    #[default(Base::FlightSize, "RFC 5681 § 3.1 eq. 4")]
    pub base: Base,
    /// Decrease factor for an ECN-echo that ends slow start, unless `beta_initial` applies.
    #[default(EcnInSlowStart::Beta, "RFC 8511, abstract: in congestion avoidance")]
    #[idle(self.distinct_beta_ecn().is_none(), "without a `beta_ecn` other than `beta`")]
    pub ecn_in_slow_start: EcnInSlowStart,
    /// Unit to which a reduced window is rounded down.
    #[default(Rounding::Bytes, "RFC 5681 counts bytes")]
    pub rounding: Rounding,
}

impl HasContract for Rule {
    /// ECN is wanted if `beta_ecn` differs from `beta`, and quenches if `beta_quench` is given.
    fn contract(&self) -> Contract {
        let why = "`beta_ecn` differs from `beta` and never acts";
        Contract::new()
            .when(self.distinct_beta_ecn().is_some(), |c| {
                c.wants(Ability::Ect, why).wants(Ability::ObeysEce, why)
            })
            .when(self.beta_quench.is_some(), |c| {
                c.wants(Ability::Quenches, "`beta_quench` never acts")
                    .wants(Ability::ObeysQuench, "`beta_quench` never acts")
            })
    }
}

/// Alternative backoff with ECN: a separate decrease factor for an ECN-echo (RFC 8511).
pub(crate) const ABE: Mechanism = Mechanism {
    name: "ABE",
    key: Some(key!(Rule: beta_ecn)),
    base: Some(key!(Rule: beta)),
    counted_in: ActionCount::Column("cwnd_reductions_ecn"),
};

/// Adaptive backoff: the window that is left depends on the RTT (McCullagh 2008 ch. 4).
pub(crate) const ADAPTIVE: Mechanism = Mechanism {
    name: "adaptive backoff",
    key: Some(key!(Rule: adaptive_delta)),
    base: None,
    counted_in: ActionCount::Column("cwnd_reductions_loss"),
};

/// Separate decrease factor for a router's source quench (BECN § IV-B).
pub(crate) const BECN: Mechanism = Mechanism {
    name: "BECN",
    key: Some(key!(Rule: beta_quench)),
    base: None,
    counted_in: ActionCount::Column("cwnd_reductions_quench"),
};

impl Rule {
    /// Checks values together.
    fn consistent(&self) -> Result<(), Invalid> {
        if self.initial_min_rtt.is_some() && self.adaptive_delta.is_none() {
            return Err(Invalid {
                key: key!(Self: initial_min_rtt),
                message: "it has no effect without `adaptive_delta`, such as 0.8".to_owned(),
            });
        }
        Ok(())
    }

    /// Returns `beta_ecn` if it differs from `beta`.
    fn distinct_beta_ecn(&self) -> Option<f64> {
        self.beta_ecn.filter(|&beta_ecn| beta_ecn != self.beta)
    }
}

/// A decrease rule. Any controller with additive increase may use one; `NewReno` and `Cubic` take
/// it by `with_decrease`.
pub trait Decrease: fmt::Debug + Send + Sync {
    /// Returns the bytes that a signal leaves of a window of `cwnd` bytes, before any lower bound.
    /// The result is no more than the larger of the window and the data in flight.
    fn reduced(&self, path: &Path, cwnd: u64, stage: Stage, cause: Cause) -> u64;
    /// Returns the time without growth after a reduction for this cause. For losses the transport's
    /// recovery sets it.
    fn rest(&self, path: &Path, cause: Cause) -> Rest {
        let _ = (path, cause);
        Rest::No
    }
}

/// Decrease to δ · least RTT / newest RTT if the cause is a queueing delay and both RTTs are known,
/// the newest no shorter, and by a [`Rule`] otherwise. With δ = 1 the queue empties and the link
/// stays busy (Leith, Heffner, Shorten, McCullagh, PFLDnet 2007, § 3).
#[derive(Clone, Copy, Debug)]
pub struct DelayDecrease {
    /// δ in parts of a billion.
    delta: u64,
    fallback: Factors,
}

impl DelayDecrease {
    /// Creates a rule with this δ, clamped to 0–1.
    #[must_use]
    pub fn new(delta: f64, fallback: &Rule) -> Self {
        Self { delta: parts(delta.clamp(0.0, 1.0)), fallback: Factors::new(fallback) }
    }
}

impl Decrease for DelayDecrease {
    fn reduced(&self, path: &Path, cwnd: u64, stage: Stage, cause: Cause) -> u64 {
        match (cause, delay_factor(self.delta, path)) {
            (Cause::Delay, Some(parts)) => self.fallback.apply(path, cwnd, parts),
            _ => self.fallback.reduced(path, cwnd, stage, cause),
        }
    }

    fn rest(&self, path: &Path, cause: Cause) -> Rest {
        self.fallback.rest(path, cause)
    }
}

/// Factors of a [`Rule`], rounded to parts of a billion, ready to use.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Factors {
    beta: u64,
    /// δ of adaptive backoff; β applies where [`delay_factor`] gives none.
    delta: Option<u64>,
    /// `None` is as after a loss.
    beta_ecn: Option<u64>,
    beta_quench: Option<Levels<u64>>,
    rest_after_quench: RestAfterQuench,
    quench_rest: QuenchRest,
    beta_initial: Option<u64>,
    base: Base,
    ecn_in_slow_start: EcnInSlowStart,
    rounding: Rounding,
}

impl Factors {
    pub(crate) fn new(rule: &Rule) -> Self {
        Self {
            beta: parts(rule.beta),
            delta: rule.adaptive_delta.map(parts),
            beta_ecn: rule.beta_ecn.map(parts),
            beta_quench: rule.beta_quench.and_then(|levels| {
                let levels: Vec<u64> = levels.iter().map(parts).collect();
                Levels::of(&levels)
            }),
            rest_after_quench: rule.rest_after_quench,
            quench_rest: rule.quench_rest,
            beta_initial: rule.beta_initial.map(parts),
            base: rule.base,
            ecn_in_slow_start: rule.ecn_in_slow_start,
            rounding: rule.rounding,
        }
    }

    /// Returns so many billionths of the rule's base, bytes, rounded by the rule.
    fn apply(&self, path: &Path, cwnd: u64, parts: u64) -> u64 {
        let base = match self.base {
            Base::FlightSize => path.flight_size,
            Base::Cwnd => cwnd,
        };
        // The factor is at most 1, so the quotient fits 64 bits again.
        let reduced = (u128::from(base) * u128::from(parts) / u128::from(PARTS)) as u64;
        match self.rounding {
            Rounding::Bytes => reduced,
            Rounding::Segments => reduced - reduced % u64::from(path.mss),
        }
    }
}

impl Decrease for Factors {
    /// Factor of the stage and the cause, times the base (RFC 5681 eq. 4, RFC 9438 § 4.6).
    fn reduced(&self, path: &Path, cwnd: u64, stage: Stage, cause: Cause) -> u64 {
        let beta = self.delta.and_then(|delta| delay_factor(delta, path)).unwrap_or(self.beta);
        let beta_ecn = self.beta_ecn.unwrap_or(beta);
        let by_mark = match (stage, self.ecn_in_slow_start) {
            (Stage::FirstSlowStart | Stage::SlowStart, EcnInSlowStart::Beta) => beta,
            _ => beta_ecn,
        };
        let part = match (stage, cause, self.beta_initial) {
            (Stage::FirstSlowStart, _, Some(beta_initial)) => beta_initial,
            (_, Cause::Loss | Cause::Delay | Cause::Quench { marked: false, .. }, _) => beta,
            (_, Cause::Ecn | Cause::Load, _) => by_mark,
            // BECN § IV-B has one answer to a quench, whatever the phase.
            (_, Cause::Quench { marked: true, level }, _) => {
                self.beta_quench.and_then(|levels| levels.at(level)).unwrap_or(by_mark)
            }
        };
        self.apply(path, cwnd, part)
    }

    fn rest(&self, path: &Path, cause: Cause) -> Rest {
        let Cause::Quench { marked, .. } = cause else { return Rest::No };
        let rests = match self.rest_after_quench {
            RestAfterQuench::Never => false,
            RestAfterQuench::Marked => marked,
            RestAfterQuench::Always => true,
        };
        match (self.quench_rest, path.srtt) {
            _ if !rests => Rest::No,
            (QuenchRest::Srtt, Some(srtt)) => Rest::Until(path.now + srtt),
            (QuenchRest::Window, _) | (QuenchRest::Srtt, None) => Rest::Window,
        }
    }
}

/// δ · least RTT / newest RTT in parts of a billion, at most δ; `None` while no RTT is known, or if
/// the newest is below the least.
fn delay_factor(delta: u64, path: &Path) -> Option<u64> {
    let (min_rtt, newest) = (path.min_rtt?, path.rtt?);
    if min_rtt > newest {
        return None;
    }
    let part = u128::from(delta) * u128::from(min_rtt.0);
    // Rounded up: otherwise an exact number of bytes would lose one to a missing billionth.
    Some(part.div_ceil(u128::from(newest.0.max(1))) as u64)
}

/// Converts a factor to parts of a billion, at most one billion.
fn parts(factor: f64) -> u64 {
    (factor.min(1.0) * PARTS as f64 + 0.5) as u64
}

impl GrowthPermission {
    /// `true` if the window may grow; `in_cwr` permits growth in the round trip after a reduction.
    #[inline]
    pub(crate) const fn allows(self, in_cwr: bool) -> bool {
        match self {
            Self::No => false,
            Self::InCwr => in_cwr,
            Self::Yes => true,
        }
    }
}

/// Time in which a window does not grow although the transport permits it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct GrowthHold {
    /// `true` if it does not grow in the round trip after the last reduction.
    in_cwr: bool,
    /// Time before which it does not grow.
    until: Time,
}

impl GrowthHold {
    /// State before the first reduction, by the controller's `grow_in_cwr`.
    pub(crate) const fn new(grow_in_cwr: bool) -> Self {
        Self { in_cwr: !grow_in_cwr, until: Time::ZERO }
    }

    /// Starts the hold that follows a reduction.
    pub(crate) fn begin(&mut self, rest: Rest, grow_in_cwr: bool) {
        self.in_cwr = !grow_in_cwr || rest == Rest::Window;
        if let Rest::Until(end) = rest {
            self.until = end;
        }
    }

    /// `true` if the window grows at `now` for an ACK with this permission.
    #[inline]
    pub(crate) fn allows(self, now: Time, grow: GrowthPermission) -> bool {
        now >= self.until && grow.allows(!self.in_cwr)
    }
}

/// Denominator of the stored factors, so that 0.8 of a window is exact.
const PARTS: u64 = 1_000_000_000;
