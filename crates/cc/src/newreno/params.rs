//! Parameters of NewReno, and readings of it: the senders of standards, papers and other stacks as
//! values of its keys.

use alloc::boxed::Box;
use alloc::sync::Arc;

use cwnd_packet::{Contract, HasContract};
use cwnd_schema::{PresetOf, Presets, RegistryEntry, Schema};

use super::NewReno;
use crate::controller::{Cause, Start};
use crate::decrease::{
    ABE, ADAPTIVE, BECN, Base, Decrease, EcnInSlowStart, Factors, RestAfterQuench, Rounding, Rule,
};
use crate::dynamic::{ControllerInfo, DynController, Mechanism};
use crate::increase::{Counting, Increase};
use crate::min_rtt::with_min_rtt_estimate;
use crate::slow_start::{GrowthRules, SlowStart};

/// Name and description in scenarios.
pub const ENTRY: RegistryEntry = RegistryEntry::new(
    "newreno",
    "NewReno: additive increase, multiplicative decrease (RFC 5681).",
);

/// NewReno.
#[derive(Clone, Debug, PartialEq, Schema)]
#[schema(presets)]
pub struct Params {
    /// Rule of decrease: the window that a reduction leaves.
    #[flatten(Rule::default())]
    pub rule: Rule,
    /// Least window that a reduction leaves, in segments, but for an ECN-echo; the threshold is
    /// never below two (RFC 5681 eq. 4).
    #[default(2, "RFC 5681 § 3.1 eq. 4: 2; ns-2 has 1 (tcp.cc, slowdown)")]
    #[bounds(from 1; "a window of no segment never sends again")]
    pub least_window: u32,
    /// Least window that an ECN-echo leaves, in segments.
    #[default(
        1,
        "RFC 3168 § 6.1.2: 1, and the next echo waits for the timer (`ecn_at_one`); Linux, FreeBSD \
        and ns-3 have 2"
    )]
    #[bounds(from 1; "a window of no segment never sends again")]
    pub least_window_ecn: u32,
    /// Quantity that growth counts: bytes or ACKs.
    #[default(Increase::Abc, "RFC 5681 § 3.1 recommends RFC 3465")]
    pub increase: Increase,
    /// `true` if the count towards the next segment of growth is kept across a slow start in
    /// between, as after a pause; a reduction clears it. It has no effect where ACKs are counted.
    #[default(false, "RFC 3465 § 2.1 leaves it open; Linux: yes (snd_cwnd_cnt)")]
    #[idle(self.increase != Increase::Abc, "without `increase = \"abc\"`")]
    pub keep_count: bool,
    /// Growth in slow start and after an ECN-echo.
    #[flatten(GrowthRules::default())]
    pub growing: GrowthRules,
}

impl ControllerInfo for Params {
    fn build(&self, start: &Start) -> Box<dyn DynController> {
        with_min_rtt_estimate(&self.rule, NewReno::new(self, start))
    }

    fn lowers_on_acks(&self) -> bool {
        false
    }

    fn mechanisms(&self) -> &'static [Mechanism] {
        &[ABE, ADAPTIVE, BECN]
    }

    fn linux_name(&self) -> Option<&'static str> {
        Some("reno")
    }
}

impl HasContract for Params {
    fn contract(&self) -> Contract {
        self.rule.contract()
    }
}

/// Constants of a controller, shared by the connections of a group.
#[derive(Clone, Debug)]
pub(super) struct Constants {
    pub(super) counting: Counting,
    pub(super) decrease: Arc<dyn Decrease>,
    pub(super) grow_in_cwr: bool,
    /// Window after a pause, bytes (RFC 5681's IW).
    pub(super) initial_window: u64,
    least_window: u64,
    least_window_ecn: u64,
}

impl Constants {
    pub(super) fn new(params: &Params, start: &Start) -> Self {
        let segments = |n: u32| u64::from(n) * u64::from(start.mss);
        Self {
            counting: Counting::new(params.increase, params.keep_count, &params.growing, start),
            decrease: Arc::new(Factors::new(&params.rule)),
            grow_in_cwr: params.growing.grow_in_cwr,
            initial_window: start.initial_cwnd(),
            least_window: segments(params.least_window),
            least_window_ecn: segments(params.least_window_ecn),
        }
    }

    /// Least window that a reduction for this cause leaves, bytes.
    pub(super) const fn min_window(&self, cause: Cause) -> u64 {
        match cause {
            Cause::Ecn => self.least_window_ecn,
            _ => self.least_window,
        }
    }
}

impl NewReno {
    /// Returns the controller with another rule of decrease, before its connection begins.
    #[must_use]
    pub fn with_decrease(self, rule: impl Decrease + 'static) -> Self {
        let decrease = Arc::new(rule);
        Self { constants: Arc::new(Constants { decrease, ..(*self.constants).clone() }), ..self }
    }
}

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

    /// The RFCs' NewReno with another rule of decrease, and two segments as its least window.
    fn reading(rule: Rule) -> Self {
        Self { rule, least_window_ecn: 2, ..Self::default() }
    }
}
