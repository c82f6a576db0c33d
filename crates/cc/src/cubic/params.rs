//! The parameters of CUBIC, and what the presets set.

use cwnd_quantity::{Contract, Declares, Duration, Levels, param_enum, params};

use crate::decrease::{Base, EcnInSlowStart, RestAfterQuench, Rounding, Rule};
use crate::slow_start::{Growing, SlowStart};

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

param_enum! {
    /// How growth is counted in congestion avoidance.
    pub enum Growth {
        /// Parts of a byte for every ACK (RFC 9438 § 4.2 to 4.5).
        Fluid = "fluid",
        /// As Linux 6.18: a whole segment after so many acknowledged segments, which are computed in integers for where
        /// the cubic function will be after the smallest RTT; Reno's window counts acknowledgements, too.
        Linux = "linux",
        /// As Linux 2.6.22, which ns-2.35 holds: counts ACKs, and takes each for 31/16 segments where it is for one.
        Linux2622 = "linux-2.6.22",
        /// As Linux 3.17: counts ACKs and how many segments one is for on average, and grows after one more than it needs;
        /// slow start goes a segment past its threshold after each reduction.
        Linux317 = "linux-3.17",
        /// As ns-3: like `linux`, in real time; what was counted is kept when the window is reduced.
        Ns3 = "ns-3",
    }
}

params! {
    /// CUBIC.
    pub struct Params {
        /// How much a reduction leaves.
        #[flatten(
            beta: "RFC 9438 § 4.6",
            beta_ecn: "RFC 9438 § 4.6: as for a loss",
            base: "RFC 9438 § 4.6",
            rounding: "RFC 9438 does not round",
        )]
        pub rule: Rule = rfc(),
        /// C: how steep the cubic function is, in segments per second cubed.
        #[source("RFC 9438 § 5.1")]
        #[bounds(above 0.0; "it scales the growth")]
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
        #[bounds(above 0.0; "it is a gain")]
        pub alpha_ecn: Option<f64> = None,
        /// Whether an ECN reduction begins a new stage of the curve; without, W_max, t and Reno's window go on as if
        /// nothing had been reduced, and bring the window back.
        #[source("RFC 9438 § 4.2 and 4.6: at any congestion event")]
        pub ecn_new_stage: bool = true,
        /// How growth is counted in congestion avoidance.
        #[source("RFC 9438 § 4.2 to 4.5")]
        pub growth: Growth = Growth::Fluid,
        /// With a `growth` of Linux: a tick of the kernel's clock, in which it counts time.
        #[source("Linux, HZ: a choice of the build, 250 where none is made (kernel/Kconfig.hz); 1000 in ns-2's TCP-Linux")]
        #[bounds(from Duration::from_millis(1), up_to Duration::from_millis(10))]
        pub tick: Duration = Duration::from_millis(1),
        /// How it grows in slow start, and after an ECN-echo.
        #[flatten(slow_start: "RFC 9438 § 4.10 leaves it open")]
        pub growing: Growing = Growing::default(),
    }
    presets {
        /// RFC 9438: ECN as loss; the default where the stack has none.
        "rfc" => Self::default(),
        /// The same with HyStart++ (RFC 9406).
        "rfc9406" => Self {
            growing: Growing { slow_start: SlowStart::HyStart, ..Growing::default() },
            ..Self::default()
        },
        /// ABE as RFC 8511 says: 0.85 of what is in flight, in congestion avoidance only.
        "abe" => Self::reading(Rule { beta_ecn: Some(0.85), ..rfc() }),
        /// ABE as its paper evaluates it: 0.85 of the window, also where an ECN-echo ends slow start; no fast
        /// convergence.
        "paper" => Self { fast_convergence: false, ..Self::reading(abe_in_every_phase()) },
        /// FreeBSD (cc_cubic.c), which has no ABE for CUBIC: 0.7 of the window, half at the end of the first slow start.
        "freebsd" => Self::reading(Rule { base: Base::Cwnd, beta_initial: Some(0.5), ..rfc() }),
        /// ns-3's TcpCubic with UseAbe: 0.85 of the window in every phase, in whole segments; growth as it counts.
        "ns-3" => Self {
            rule: Rule { rounding: Rounding::Segments, ..abe_in_every_phase() },
            growth: Growth::Ns3,
            ..Self::kernel(0.7)
        },
        /// Linux 6.18 (tcp_cubic.c), which has no ABE: 717/1024 of the window in whole segments; growth as it counts; HyStart.
        "linux" => Self {
            growing: Growing { slow_start: SlowStart::Classic, ..linux() },
            ..Self::kernel(717.0 / 1024.0)
        },
        /// Linux 3.17, on which ABE was evaluated: as `linux`, but growth as it counted then, and the HyStart of that time.
        "linux-3.17" => Self {
            growth: Growth::Linux317,
            growing: Growing { slow_start: SlowStart::Classic317, ..linux() },
            ..Self::kernel(717.0 / 1024.0)
        },
        /// Linux 2.6.22, the CUBIC of ns-2.35: 819/1024 of the window in whole segments; growth as it counts.
        "linux-2.6.22" => Self { growth: Growth::Linux2622, ..Self::kernel(819.0 / 1024.0) },
        /// neqo (cubic.rs): 0.85 of the window in every phase.
        "neqo" => Self::reading(abe_in_every_phase()),
        /// quicly (cc-pico.c): 0.85 of the window, half at the end of the first slow start; α and fast convergence
        /// follow the factor that was used.
        "quicly" => Self {
            fast_convergence_point: FastConvergencePoint::Midpoint,
            alpha_ecn: Some(QUICLY_ALPHA_ECN),
            ..Self::reading(Rule { beta_initial: Some(0.5), ..abe_in_every_phase() })
        },
        /// PyTCP (tcp__session.py): 0.85 of what is in flight in every phase; the curve goes on as if nothing had
        /// been reduced.
        "pytcp" => Self {
            ecn_new_stage: false,
            ..Self::reading(Rule { base: Base::FlightSize, ..abe_in_every_phase() })
        },
        /// Adaptive backoff (McCullagh 2008 § 4.2) for CUBIC: 0.8 · minRTT / RTT of the window; how fast it grows stays.
        "adaptive-backoff" => Self::reading(Rule {
            adaptive_delta: Some(0.8),
            base: Base::Cwnd,
            ..rfc()
        }),
        /// BECN § IV-B for CUBIC: half of the window for a source quench about a marked packet, and no growth in the round trip
        /// after it.
        "becn" => Self::reading(becn(RestAfterQuench::Marked)),
        /// The same of 1998 (draft-salim-jhsbnns-ecn-00): it grows with the next ACK.
        "becn-1998" => Self::reading(becn(RestAfterQuench::Never)),
    }
    idle |p| {
        [fast_convergence_point] if !p.fast_convergence => "without `fast_convergence`",
        [reno_catches_up, alpha_ecn] if !p.reno_friendly => "without `reno_friendly`",
        [tick] if matches!(p.growth, Growth::Fluid | Growth::Ns3)
            => "without a `growth` of Linux",
    }
}

impl Declares for Params {
    fn contract(&self) -> Contract {
        self.rule.contract()
    }
}

impl Params {
    /// The RFC's CUBIC with another rule of decrease.
    fn reading(rule: Rule) -> Self {
        Self { rule, ..Self::default() }
    }

    /// What Linux and ns-3 have in common: whole segments of the window itself, counted growth, none while an ECN-echo is
    /// answered.
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

/// ABE of the window, wherever an ECN-echo comes.
fn abe_in_every_phase() -> Rule {
    Rule {
        beta_ecn: Some(0.85),
        base: Base::Cwnd,
        ecn_in_slow_start: EcnInSlowStart::BetaEcn,
        ..rfc()
    }
}

/// Half of the window for a quench, wherever it comes.
fn becn(rest_after_quench: RestAfterQuench) -> Rule {
    Rule {
        beta_quench: Levels::of(&[0.5]),
        rest_after_quench,
        base: Base::Cwnd,
        ecn_in_slow_start: EcnInSlowStart::BetaEcn,
        ..rfc()
    }
}

/// Growth as kernels have it: every segment counts, and an ECN-echo stops it for a round trip.
fn frozen() -> Growing {
    Growing { abc_limit: None, grow_in_cwr: false, ..Growing::default() }
}

/// The same in Linux, which makes no difference after a timeout.
fn linux() -> Growing {
    Growing { abc_limit_after_timeout: None, ..frozen() }
}

/// quicly's α after an ECN reduction: equal to a Reno that keeps 0.8 on ECN, (1 + 0.8)(1 − 0.85) / ((1 − 0.8)(1 + 0.85)).
const QUICLY_ALPHA_ECN: f64 = (1.0 + 0.8) * (1.0 - 0.85) / ((1.0 - 0.8) * (1.0 + 0.85));
