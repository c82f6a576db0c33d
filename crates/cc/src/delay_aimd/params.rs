//! Parameters of delay-based AIMD and its presets.

use alloc::borrow::ToOwned as _;

use cwnd_quantity::Duration;
use cwnd_schema::{Choice, Invalid, PresetOf, Presets, Schema, key};

use crate::increase::{HTcpIncrease, SubMssGrowth, SubMssWindow};
use crate::slow_start::GrowthRules;

/// Round-trip time that the queueing delay τ is computed from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Choice)]
pub enum Filter {
    /// The newest: one late packet is enough (§ 3.3.1).
    #[name("newest")]
    Newest,
    /// An exponentially weighted mean (§ 3.3.4 leaves the filter open).
    #[name("mean")]
    Mean,
    /// The least of this round trip and the previous one: delays that only some packets see do not
    /// count.
    #[name("least")]
    Least,
}

/// Additive increase α without `alpha_factor`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Choice)]
pub enum Additive {
    /// One segment a round trip.
    #[name("reno")]
    Reno,
    /// One segment after cwnd + 1 ACKs, in windows of whole segments (Linux 2.6,
    /// `tcp_reno_cong_avoid`).
    #[name("linux-2.6")]
    Linux26,
    /// H-TCP's increase, which rises with the time since the last backoff.
    #[name("h-tcp")]
    HTcp,
}

/// Delay-based AIMD.
#[derive(Clone, Debug, PartialEq, Schema)]
#[schema(presets, check = Self::consistent)]
pub struct Params {
    /// τ0: the window backs off once packets wait longer.
    #[default(Duration::from_millis(50), "McCullagh 2008 § 2.3.2: 50 ms")]
    #[bounds(above Duration::ZERO; "a threshold of zero backs off whenever a packet waits")]
    pub threshold: Duration,
    /// δ: a backoff leaves δ · minRTT / RTT of the window.
    #[default(0.8, "McCullagh 2008 § 2.3.2 eq. 2.6: e.g. 0.8")]
    #[bounds(above 0.0, up_to 1.0; "with more than 1 the queue would never empty")]
    pub delta: f64,
    /// Round-trip time that the queueing delay is computed from.
    #[default(Filter::Newest, "McCullagh 2008 § 3.3.1: one packet above the threshold is enough")]
    pub filter: Filter,
    /// Weight of the newest RTT in the filter `mean`.
    #[default(0.125, "none in the thesis; RFC 6298 § 2.3 smooths by 1/8")]
    #[bounds(above 0.0, up_to 1.0; "it is a weight")]
    #[idle(self.filter != Filter::Mean, "without `filter = \"mean\"`")]
    pub filter_weight: f64,
    /// `true` if each packet that waited longer than τ0 takes γ segments off the window, before the
    /// filtered delay exceeds τ0.
    #[default(false, "McCullagh 2008 § 3.3.4; off in eq. 2.5")]
    pub per_packet: bool,
    /// γ of `per_packet`, in segments; none is 1 − δ · minRTT / RTT. It has no effect without
    /// `per_packet`.
    #[default(None, "McCullagh 2008 § 3.3.4: one natural choice is 1 − β")]
    #[bounds(above 0.0; "it is what a late packet costs")]
    #[idle(!self.per_packet, "without `per_packet`")]
    pub gamma: Option<f64>,
    /// Part of the window that stays after a loss; none is as after a delay.
    #[default(None, "McCullagh 2008 eq. 2.5: the same β")]
    #[bounds(above 0.0, below 1.0; "it is the part of the window that stays")]
    pub loss_beta: Option<f64>,
    /// n of α = n (1 − β), segments per round trip, with the β of the last backoff. None is α by
    /// `increase`; n = 2 is as fast as Reno if β is a half.
    #[default(None, "McCullagh 2008 § 4.3.2 eq. 4.9; § 2.3.2: Reno's in the thesis")]
    #[bounds(above 0.0; "it is a gain")]
    pub alpha_factor: Option<f64>,
    /// Additive increase α without `alpha_factor`: 1 as in Reno, Reno's as Linux 2.6 counts it (a
    /// segment after cwnd + 1 ACKs, in windows of whole segments), or H-TCP's, 2 (1 − β) (1 + 10 (Δ
    /// − Δ_L) + ((Δ − Δ_L) / 2)²). Δ is the time since the last backoff, in seconds.
    #[default(
        Additive::Reno,
        "McCullagh 2008 § 2.3.2: Reno's in the thesis, H-TCP's (Leith & Shorten 2004) as first \
        suggested"
    )]
    #[idle(self.alpha_factor.is_some(), "with `alpha_factor`")]
    pub increase: Additive,
    /// Δ_L and RTT scaling of H-TCP's increase; no effect with Reno's.
    #[flatten(HTcpIncrease::default())]
    pub since: HTcpIncrease,
    /// Least window that a backoff for delay leaves, in segments; at least 2 where receivers delay
    /// ACKs and `allow_delayed_acks` is set.
    #[default(1, "McCullagh 2008 § 3.4.3: 1; § 3.4.5: 2 with delayed ACKs")]
    #[bounds(from 1; "a window of no segment never sends again")]
    pub least_window: u32,
    /// `true` if it allows for receivers that delay ACKs (`ack_every` above 1). It then sees the
    /// round-trip time of the newest segment of an ACK, and none of an ACK of one segment alone. A
    /// delay leaves two segments at the least. It has no effect with `below_one`.
    #[default(
        true,
        "McCullagh 2008 § 3.4.5 and 5.2: the ACK of a lone segment waits for the receiver's timer, \
        which is as long as τ0"
    )]
    #[idle(self.below.allowed(), "with `below_one`")]
    pub allow_delayed_acks: bool,
    /// Value of minRTT from the first reduction on (at most the newest RTT), whatever was measured
    /// before: a wrong value, to see how it is corrected. It falls with every RTT that is less.
    /// None is the least RTT measured.
    #[default(None, "McCullagh 2008 § 4.3, Fig. 4.1 to 4.3")]
    #[bounds(above Duration::ZERO; "no round trip takes no time")]
    pub initial_min_rtt: Option<Duration>,
    /// Rules for windows below one segment.
    #[flatten(SubMssWindow::default())]
    pub below: SubMssWindow,
    /// Growth in slow start and in the round trip after a reduction.
    #[flatten(GrowthRules::default())]
    pub growing: GrowthRules,
}

impl Presets for Params {
    const PRESETS: &'static [PresetOf<Self>] = &[
        PresetOf::new(
            "thesis",
            "The thesis, chapters 2 to 4; the default where the stack has none.",
            Self::default,
        ),
        PresetOf::new(
            "delayed-acks",
            "With delayed ACKs (§ 3.4.5): a delay leaves two segments, and the endpoint says what \
             a round-trip time is of.",
            || Self { least_window: 2, allow_delayed_acks: false, ..Self::default() },
        ),
        PresetOf::new(
            "linux",
            "As `cwnd-kernel` has it: two segments at the least, and Linux's growth, where every \
             segment counts and nothing grows while a reduction for a loss or a mark is under \
             way.",
            || Self {
                least_window: 2,
                allow_delayed_acks: false,
                growing: GrowthRules {
                    abc_limit: None,
                    abc_limit_after_timeout: None,
                    grow_in_cwr: false,
                    ..GrowthRules::default()
                },
                ..Self::default()
            },
        ),
        PresetOf::new(
            "fair",
            "Equal mean windows whatever the round trip (§ 4.3.2): α = 2 (1 − β).",
            || Self { alpha_factor: Some(2.0), ..Self::default() },
        ),
        PresetOf::new(
            "per-packet",
            "Each late packet counts, and the full backoff follows a mean (§ 3.3.4).",
            || Self { per_packet: true, filter: Filter::Mean, ..Self::default() },
        ),
        PresetOf::new(
            "h-tcp",
            "H-TCP's increase: what a loss or a delay left unused on a long fat path is back \
             sooner.",
            || Self { increase: Additive::HTcp, ..Self::default() },
        ),
        PresetOf::new(
            "below-one",
            "Below one segment it paces, so that any number of flows fits (§ 3.4.3 suggests it).",
            || Self {
                below: SubMssWindow { below_one: SubMssGrowth::PerAck, ..SubMssWindow::default() },
                ..Self::default()
            },
        ),
    ];
}

impl Params {
    /// Checks values together.
    fn consistent(&self) -> Result<(), Invalid> {
        let fixed = match self.increase {
            Additive::Reno => None,
            Additive::Linux26 => Some("it adds one segment"),
            Additive::HTcp => Some("H-TCP's has 2 (1 − β) in it"),
        };
        if let (Some(fixed), Some(_)) = (fixed, self.alpha_factor) {
            return Err(Invalid {
                key: key!(Self: increase),
                message: format!("{fixed}: leave `alpha_factor` out"),
            });
        }
        if self.below.allowed() && self.increase == Additive::Linux26 {
            return Err(Invalid {
                key: key!(Self: below.below_one),
                message: "`increase = \"linux-2.6\"` has windows of whole segments".to_owned(),
            });
        }
        if self.below.allowed() && self.least_window > 1 {
            return Err(Invalid {
                key: key!(Self: below.below_one),
                message: "`least_window` keeps the window above one segment: leave it at 1"
                    .to_owned(),
            });
        }
        Ok(())
    }

    /// `true` if it ignores ACKs that the receiver may have delayed.
    pub(super) fn ignores_delayed_acks(&self) -> bool {
        self.allow_delayed_acks && !self.below.allowed()
    }
}
