//! Parameters of CUBIC and its presets.

use cwnd_packet::{Contract, HasContract};
use cwnd_quantity::{Duration, Levels};
use cwnd_schema::{Choice, PresetOf, Presets, Schema};

use crate::decrease::{Base, EcnInSlowStart, RestAfterQuench, Rounding, Rule};
use crate::slow_start::{GrowthRules, SlowStart};

/// Window to which fast convergence lowers the maximum.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Choice)]
pub enum FastConvergencePoint {
    /// (1 + β) / 2 of the window before the reduction, whatever factor reduced it (RFC 9438 § 4.7).
    #[name("beta")]
    Beta,
    /// Halfway between the windows before and after the reduction: the same after a loss; after an
    /// ECN reduction with a larger factor it stays above the window.
    #[name("midpoint")]
    Midpoint,
}

/// Counting of the growth in congestion avoidance.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Choice)]
pub enum Growth {
    /// Parts of a byte for every ACK (RFC 9438 § 4.2 to 4.5).
    #[name("fluid")]
    Fluid,
    /// As Linux 6.18: a whole segment after so many acknowledged segments, which are computed in
    /// integers for where the cubic function will be after the smallest RTT; Reno's window counts
    /// acknowledgements, too.
    #[name("linux")]
    Linux,
    /// As Linux 2.6.22, which ns-2.35 holds: counts ACKs, and takes each for 31/16 segments where
    /// it is for one.
    #[name("linux-2.6.22")]
    Linux2622,
    /// As Linux 3.17: counts ACKs and how many segments one is for on average, and grows after one
    /// more than it needs; slow start goes a segment past its threshold after each reduction.
    #[name("linux-3.17")]
    Linux317,
    /// As ns-3: like `linux`, but with times as real numbers and the smoothed RTT; what was counted
    /// is kept when the window is reduced.
    #[name("ns-3")]
    Ns3,
}

/// CUBIC.
#[derive(Clone, Debug, PartialEq, Schema)]
#[schema(presets)]
#[idle([reno_catches_up, alpha_ecn], !self.reno_friendly, "without `reno_friendly`")]
pub struct Params {
    /// Rule of decrease: the window that a reduction leaves.
    #[flatten(
        rfc(),
        beta = "RFC 9438 § 4.6",
        beta_ecn = "RFC 9438 § 4.6: as for a loss",
        base = "RFC 9438 § 4.6",
        rounding = "RFC 9438 does not round"
    )]
    pub rule: Rule,
    /// C: how steep the cubic function is, in segments per second cubed.
    #[default(0.4, "RFC 9438 § 5.1")]
    #[bounds(above 0.0; "it scales the growth")]
    pub c: f64,
    /// `true` if a flow reduced before it regains its last maximum lowers that maximum, to free
    /// bandwidth for newcomers.
    #[default(true, "RFC 9438 § 4.7")]
    pub fast_convergence: bool,
    /// Window to which fast convergence lowers the maximum.
    #[default(FastConvergencePoint::Beta, "RFC 9438 § 4.7")]
    #[idle(!self.fast_convergence, "without `fast_convergence`")]
    pub fast_convergence_point: FastConvergencePoint,
    /// `true` if the window is at least as large as Reno's would be, where Reno is faster.
    #[default(true, "RFC 9438 § 4.3")]
    pub reno_friendly: bool,
    /// `true` if the estimate of Reno's window gains a whole segment each round trip once it is
    /// back at the window before the reduction.
    #[default(true, "RFC 9438 § 4.3; RFC 8312 § 4.2, and so Linux and ns-3, go on with α")]
    pub reno_catches_up: bool,
    /// α: gain of the estimate of Reno's window per round trip after an ECN reduction, in segments;
    /// none is 3 (1 − β) / (1 + β), as after a loss.
    #[default(None, "RFC 9438 § 4.3 knows one β")]
    #[bounds(above 0.0; "it is a gain")]
    pub alpha_ecn: Option<f64>,
    /// `true` if a reduction for ECN, or for any other cause but a loss, begins a new stage of the
    /// curve. Otherwise W_max, t and Reno's window go on as if nothing had been reduced, and bring
    /// the window back.
    #[default(true, "RFC 9438 § 4.2 and 4.6: at any congestion event")]
    pub ecn_new_stage: bool,
    /// Counting of the growth in congestion avoidance.
    #[default(Growth::Fluid, "RFC 9438 § 4.2 to 4.5")]
    pub growth: Growth,
    /// With a `growth` of Linux: a tick of the kernel's clock, in which it counts time.
    #[default(
        Duration::from_millis(1),
        "Linux, HZ: a choice of the build, 250 where none is made (kernel/Kconfig.hz); 1000 in \
        ns-2's TCP-Linux"
    )]
    #[bounds(from Duration::from_millis(1), up_to Duration::from_millis(10))]
    #[idle(matches!(self.growth, Growth::Fluid | Growth::Ns3), "without a `growth` of Linux")]
    pub tick: Duration,
    /// Growth in slow start and after an ECN-echo.
    #[flatten(GrowthRules::default(), slow_start = "RFC 9438 § 4.10 leaves it open")]
    pub growing: GrowthRules,
}

impl Presets for Params {
    const PRESETS: &'static [PresetOf<Self>] = &[
        PresetOf::new(
            "rfc",
            "RFC 9438: ECN as loss; the default where the stack has none.",
            Self::default,
        ),
        PresetOf::new("rfc9406", "The same with HyStart++ (RFC 9406).", || Self {
            growing: GrowthRules { slow_start: SlowStart::HyStart, ..GrowthRules::default() },
            ..Self::default()
        }),
        PresetOf::new(
            "abe",
            "ABE as RFC 8511 says: 0.85 of what is in flight, in congestion avoidance only.",
            || Self::reading(Rule { beta_ecn: Some(0.85), ..rfc() }),
        ),
        PresetOf::new(
            "paper",
            "ABE as its paper evaluates it: 0.85 of the window, also where an ECN-echo ends slow \
             start; no fast convergence.",
            || Self { fast_convergence: false, ..Self::reading(abe_in_every_phase()) },
        ),
        PresetOf::new(
            "freebsd",
            "FreeBSD (cc_cubic.c), which has no ABE for CUBIC: 0.7 of the window, half at the end \
             of the first slow start.",
            || Self::reading(Rule { base: Base::Cwnd, beta_initial: Some(0.5), ..rfc() }),
        ),
        PresetOf::new(
            "ns-3",
            "ns-3's TcpCubic with UseAbe: 0.85 of the window in every phase, in whole segments; \
             growth as it counts.",
            || Self {
                rule: Rule { rounding: Rounding::Segments, ..abe_in_every_phase() },
                growth: Growth::Ns3,
                ..Self::kernel(0.7)
            },
        ),
        PresetOf::new(
            "linux",
            "Linux 6.18 (tcp_cubic.c), which has no ABE: 717/1024 of the window in whole segments; \
             growth as it counts; HyStart.",
            || Self {
                growing: GrowthRules { slow_start: SlowStart::Classic, ..linux() },
                ..Self::kernel(717.0 / 1024.0)
            },
        ),
        PresetOf::new(
            "linux-3.17",
            "Linux 3.17, on which ABE was evaluated: as `linux`, but growth as it counted then, \
             and the HyStart of that time.",
            || Self {
                growth: Growth::Linux317,
                growing: GrowthRules { slow_start: SlowStart::Classic317, ..linux() },
                ..Self::kernel(717.0 / 1024.0)
            },
        ),
        PresetOf::new(
            "linux-2.6.22",
            "Linux 2.6.22, the CUBIC of ns-2.35: 819/1024 of the window in whole segments; growth \
             as it counts.",
            || Self { growth: Growth::Linux2622, ..Self::kernel(819.0 / 1024.0) },
        ),
        PresetOf::new("neqo", "neqo (cubic.rs): 0.85 of the window in every phase.", || {
            Self::reading(abe_in_every_phase())
        }),
        PresetOf::new(
            "quicly",
            "quicly (cc-pico.c): 0.85 of the window, half at the end of the first slow start; α \
             and fast convergence follow the factor that was used.",
            || Self {
                fast_convergence_point: FastConvergencePoint::Midpoint,
                alpha_ecn: Some(QUICLY_ALPHA_ECN),
                ..Self::reading(Rule { beta_initial: Some(0.5), ..abe_in_every_phase() })
            },
        ),
        PresetOf::new(
            "pytcp",
            "PyTCP (tcp__session.py): 0.85 of what is in flight in every phase; the curve goes on \
             as if nothing had been reduced.",
            || Self {
                ecn_new_stage: false,
                ..Self::reading(Rule { base: Base::FlightSize, ..abe_in_every_phase() })
            },
        ),
        PresetOf::new(
            "adaptive-backoff",
            "Adaptive backoff (McCullagh 2008 § 4.2) for CUBIC: 0.8 · minRTT / RTT of the window; \
             how fast it grows stays.",
            || Self::reading(Rule { adaptive_delta: Some(0.8), base: Base::Cwnd, ..rfc() }),
        ),
        PresetOf::new(
            "becn",
            "BECN § IV-B for CUBIC: half of the window for a source quench about a marked packet, \
             and no growth in the round trip after it.",
            || Self::reading(becn(RestAfterQuench::Marked)),
        ),
        PresetOf::new(
            "becn-1998",
            "The same of 1998 (draft-salim-jhsbnns-ecn-00): it grows with the next ACK.",
            || Self::reading(becn(RestAfterQuench::Never)),
        ),
    ];
}

impl HasContract for Params {
    fn contract(&self) -> Contract {
        self.rule.contract()
    }
}

impl Params {
    /// The RFC's CUBIC with another decrease rule.
    fn reading(rule: Rule) -> Self {
        Self { rule, ..Self::default() }
    }

    /// Settings that Linux and ns-3 share: whole segments of the window itself, counted growth, and
    /// no growth while an ECN-echo is answered.
    fn kernel(beta: f64) -> Self {
        Self {
            rule: Rule { beta, base: Base::Cwnd, rounding: Rounding::Segments, ..rfc() },
            reno_catches_up: false,
            growth: Growth::Linux,
            growing: frozen(),
            ..Self::default()
        }
    }
}

/// The rule of RFC 9438 § 4.6.
fn rfc() -> Rule {
    Rule { beta: 0.7, ..Rule::default() }
}

/// ABE on the window, in slow start too.
fn abe_in_every_phase() -> Rule {
    Rule {
        beta_ecn: Some(0.85),
        base: Base::Cwnd,
        ecn_in_slow_start: EcnInSlowStart::BetaEcn,
        ..rfc()
    }
}

/// Half of the window for a quench, in slow start too.
fn becn(rest_after_quench: RestAfterQuench) -> Rule {
    Rule {
        beta_quench: Levels::of(&[0.5]),
        rest_after_quench,
        base: Base::Cwnd,
        ecn_in_slow_start: EcnInSlowStart::BetaEcn,
        ..rfc()
    }
}

/// Growth rules of kernels: every segment counts, and an ECN-echo stops growth for a round trip.
fn frozen() -> GrowthRules {
    GrowthRules { abc_limit: None, grow_in_cwr: false, ..GrowthRules::default() }
}

/// The same in Linux, which sets no other limit after a timeout.
fn linux() -> GrowthRules {
    GrowthRules { abc_limit_after_timeout: None, ..frozen() }
}

/// quicly's α after an ECN reduction: that of a Reno that keeps 0.8 on ECN, (1 + 0.8)(1 − 0.85) /
/// ((1 − 0.8)(1 + 0.85)).
const QUICLY_ALPHA_ECN: f64 = (1.0 + 0.8) * (1.0 - 0.85) / ((1.0 - 0.8) * (1.0 + 0.85));
