//! Readings of NewReno: the standards', papers' and other stacks' senders as values of its keys.

use cwnd_schema::{PresetOf, Presets};

use super::Params;
use crate::counting::Increase;
use crate::decrease::{Base, EcnInSlowStart, RestAfterQuench, Rounding, Rule};
use crate::slow_start::{GrowthRules, SlowStart};

impl Presets for Params {
    const PRESETS: &'static [PresetOf<Self>] = &[
        PresetOf::new(
            "rfc",
            "RFC 5681 and RFC 3168: ECN as loss; the default where the stack has none.",
            Self::default,
        ),
        PresetOf::new("rfc9406", "The same with HyStart++ (RFC 9406).", || Self {
            growing: GrowthRules { slow_start: SlowStart::HyStart, ..GrowthRules::default() },
            ..Self::default()
        }),
        PresetOf::new(
            "rfc9002",
            "NewReno of QUIC (RFC 9002 § 7.3, appendix B): half of the window, and growth by all \
             that is acknowledged.",
            || Self {
                rule: Rule { base: Base::Cwnd, ..Rule::default() },
                growing: GrowthRules {
                    abc_limit: None,
                    abc_limit_after_timeout: None,
                    ..GrowthRules::default()
                },
                ..Self::default()
            },
        ),
        PresetOf::new(
            "abe",
            "ABE as RFC 8511 says: 0.8 of what is in flight, in congestion avoidance only.",
            || Self { rule: Rule { beta_ecn: Some(0.8), ..Rule::default() }, ..Self::default() },
        ),
        PresetOf::new(
            "paper",
            "ABE as its paper evaluates it: 0.8 of the window, also where an ECN-echo ends slow \
             start.",
            || {
                Self::reading(Rule {
                    beta_ecn: Some(0.8),
                    base: Base::Cwnd,
                    ecn_in_slow_start: EcnInSlowStart::BetaEcn,
                    ..Rule::default()
                })
            },
        ),
        PresetOf::new(
            "freebsd",
            "FreeBSD with ABE on (cc_newreno.c): 0.8 of the window in every phase, in whole \
             segments; the window rests in the round trip after it.",
            || Self {
                rule: Rule {
                    beta_ecn: Some(0.8),
                    base: Base::Cwnd,
                    ecn_in_slow_start: EcnInSlowStart::BetaEcn,
                    rounding: Rounding::Segments,
                    ..Rule::default()
                },
                // newreno_cong_signal: at least two segments.
                least_window_ecn: 2,
                // newreno_ack_received: only `!IN_RECOVERY`, which TF_CONGRECOVERY is, too.
                growing: GrowthRules { grow_in_cwr: false, ..GrowthRules::default() },
                ..Self::default()
            },
        ),
        PresetOf::new(
            "ns-3",
            "ns-3's TcpNewReno with UseAbe: 0.7 of what is in flight in every phase.",
            || {
                Self::reading(Rule {
                    beta_ecn: Some(0.7),
                    ecn_in_slow_start: EcnInSlowStart::BetaEcn,
                    ..Rule::default()
                })
            },
        ),
        PresetOf::new(
            "ns-3-linux-reno",
            "ns-3's TcpLinuxReno with UseAbe: 0.7 of the window in every phase.",
            || {
                Self::reading(Rule {
                    beta_ecn: Some(0.7),
                    base: Base::Cwnd,
                    ecn_in_slow_start: EcnInSlowStart::BetaEcn,
                    ..Rule::default()
                })
            },
        ),
        PresetOf::new(
            "linux",
            "Linux 6.18 (tcp_cong.c), which has no ABE: half of the window in whole segments, \
             every segment counts, and nothing grows while an ECN-echo is answered.",
            || Self {
                rule: Rule { base: Base::Cwnd, rounding: Rounding::Segments, ..Rule::default() },
                growing: GrowthRules {
                    abc_limit: None,
                    abc_limit_after_timeout: None,
                    grow_in_cwr: false,
                    ..GrowthRules::default()
                },
                keep_count: true,
                least_window_ecn: 2,
                ..Self::default()
            },
        ),
        PresetOf::new(
            "neqo",
            "neqo's NewReno (new_reno.rs): half of the window; its ABE is for CUBIC only.",
            || Self::reading(Rule { base: Base::Cwnd, ..Rule::default() }),
        ),
        PresetOf::new(
            "quicly",
            "quicly's Reno (cc-pico.c): half of the window; its ABE is for CUBIC and its own \
             controllers only.",
            || Self::reading(Rule { base: Base::Cwnd, ..Rule::default() }),
        ),
        PresetOf::new(
            "pytcp",
            "PyTCP's Reno (tcp__cwnd.py): 0.85 of what is in flight in every phase.",
            || {
                Self::reading(Rule {
                    beta_ecn: Some(0.85),
                    ecn_in_slow_start: EcnInSlowStart::BetaEcn,
                    ..Rule::default()
                })
            },
        ),
        PresetOf::new(
            "adaptive-backoff",
            "Adaptive backoff (McCullagh 2008 § 4.2, 4.3): 0.8 · minRTT / RTT of the window.",
            || {
                Self::reading(Rule {
                    adaptive_delta: Some(0.8),
                    base: Base::Cwnd,
                    ..Rule::default()
                })
            },
        ),
        PresetOf::new(
            "becn",
            "BECN's sender (BECN § IV-B): half of the window for a source quench, and for a marked \
             packet no growth in the round trip after it; growth by ACKs and a window of one \
             segment at the least, as ns-2.",
            || Self::becn(RestAfterQuench::Marked),
        ),
        PresetOf::new(
            "becn-1998",
            "BECN's sender of 1998 (draft-salim-jhsbnns-ecn-00): the same, but it grows with the \
             next ACK.",
            || Self::becn(RestAfterQuench::Never),
        ),
    ];
}

impl Params {
    /// BECN's sender, which is ns-2's NewReno.
    fn becn(rest_after_quench: RestAfterQuench) -> Self {
        Self {
            rule: Rule { base: Base::Cwnd, rest_after_quench, ..Rule::default() },
            increase: Increase::PerAck,
            least_window: 1,
            ..Self::default()
        }
    }

    /// The RFCs' NewReno with another rule of decrease, whose program keeps two segments.
    fn reading(rule: Rule) -> Self {
        Self { rule, least_window_ecn: 2, ..Self::default() }
    }
}
