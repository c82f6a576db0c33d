//! The parameters of CUBIC, and what the presets set.

use cwnd_units::{Invalid, param_enum, params};

use crate::decrease::{Base, EcnInSlowStart, Rounding, Rule};
use crate::slow_start::SlowStart;

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
        /// Whether an ECN reduction begins a new stage of the curve; without, W_max, t and Reno's window go on as if
        /// nothing had been reduced, and bring the window back.
        #[source("RFC 9438 § 4.2 and 4.6: at any congestion event")]
        pub ecn_new_stage: bool = true,
        /// How growth is counted in congestion avoidance.
        #[source("RFC 9438 § 4.2 to 4.5")]
        pub growth: Growth = Growth::Fluid,
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
        /// ns-3's TcpCubic with UseAbe: 0.85 of the window in every phase, in whole segments; growth as it counts.
        "ns-3" => |p| {
            p.set_reading(Reading {
                rule: Rule {
                    beta_ecn: Some(0.85),
                    base: Base::Cwnd,
                    ecn_in_slow_start: EcnInSlowStart::BetaEcn,
                    rounding: Rounding::Segments,
                    ..RFC
                },
                growth: Growth::Ns3,
                ..Reading::KERNEL
            });
        }
        /// Linux 6.18 (tcp_cubic.c), which has no ABE: 717/1024 of the window in whole segments; growth as it counts; HyStart.
        "linux" => |p| {
            p.set_reading(Reading {
                rule: Rule { beta: 717.0 / 1024.0, ..KERNEL },
                growth: Growth::Linux,
                slow_start: SlowStart::Classic,
                ..Reading::KERNEL
            });
        }
        /// Linux 3.17, on which ABE was evaluated: as `linux`, but growth as it counted then, and the HyStart of that time.
        "linux-3.17" => |p| {
            p.set_reading(Reading {
                rule: Rule { beta: 717.0 / 1024.0, ..KERNEL },
                growth: Growth::Linux317,
                slow_start: SlowStart::Classic317,
                ..Reading::KERNEL
            });
        }
        /// Linux 2.6.22, the CUBIC of ns-2.35: 819/1024 of the window in whole segments; growth as it counts.
        "linux-2.6.22" => |p| {
            p.set_reading(Reading {
                rule: Rule { beta: 819.0 / 1024.0, ..KERNEL },
                growth: Growth::Linux2622,
                ..Reading::KERNEL
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
        /// PyTCP (tcp__session.py): 0.85 of what is in flight in every phase; the curve goes on as if nothing had
        /// been reduced.
        "pytcp" => |p| {
            p.set_reading(Reading {
                rule: Rule {
                    beta_ecn: Some(0.85),
                    ecn_in_slow_start: EcnInSlowStart::BetaEcn,
                    ..RFC
                },
                ecn_new_stage: false,
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
    reno_catches_up: bool,
    alpha_ecn: Option<f64>,
    ecn_new_stage: bool,
    growth: Growth,
    abc_limit: Option<u32>,
    slow_start: SlowStart,
    grow_in_cwr: bool,
}

impl Reading {
    const RFC: Self = Self {
        rule: RFC,
        fast_convergence: true,
        fast_convergence_point: FastConvergencePoint::Beta,
        reno_catches_up: true,
        alpha_ecn: None,
        ecn_new_stage: true,
        growth: Growth::Fluid,
        abc_limit: Some(2),
        slow_start: SlowStart::Standard,
        grow_in_cwr: true,
    };
    /// What Linux and ns-3 have in common.
    const KERNEL: Self = Self {
        rule: KERNEL,
        reno_catches_up: false,
        growth: Growth::Linux,
        abc_limit: None,
        grow_in_cwr: false,
        ..Self::RFC
    };
}

impl Params {
    pub(super) const fn rule(&self) -> Rule {
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
        let Reading {
            rule,
            fast_convergence,
            fast_convergence_point,
            reno_catches_up,
            alpha_ecn,
            ecn_new_stage,
            growth,
            abc_limit,
            slow_start,
            grow_in_cwr,
        } = reading;
        self.fast_convergence = fast_convergence;
        self.fast_convergence_point = fast_convergence_point;
        self.reno_catches_up = reno_catches_up;
        self.alpha_ecn = alpha_ecn;
        self.ecn_new_stage = ecn_new_stage;
        self.growth = growth;
        self.abc_limit = abc_limit;
        self.slow_start = slow_start;
        self.grow_in_cwr = grow_in_cwr;
        let Rule { beta, beta_ecn, beta_initial, base, ecn_in_slow_start, rounding } = rule;
        self.beta = beta;
        self.beta_ecn = beta_ecn;
        self.beta_initial = beta_initial;
        self.base = base;
        self.ecn_in_slow_start = ecn_in_slow_start;
        self.rounding = rounding;
    }
}

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
/// The window itself, in whole segments.
const KERNEL: Rule = Rule { base: Base::Cwnd, rounding: Rounding::Segments, ..RFC };
