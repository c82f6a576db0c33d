use alloc::borrow::ToOwned as _;

use cwnd_packet::{Ability, Contract, HasContract};
use cwnd_schema::{Choice, Invalid, PresetOf, Presets, Schema, key};

/// Quantities that the rates of eq. 2.1 and 2.2 are computed from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Choice)]
pub enum Rates {
    /// Both use the window: diff = W (1 − baseRTT / RTT) (eq. 2.1 to 2.3).
    #[name("window")]
    Window,
    /// Both use the window, and the rest is divided by baseRTT: diff = W (RTT / baseRTT − 1)
    /// (Linux).
    #[name("window-over-base")]
    WindowOverBase,
    /// Expected uses the window, Actual the data sent in the round trip (Brakmo & Peterson).
    #[name("sent")]
    Sent,
    /// Expected uses the data in flight, with the next segment, Actual the data sent in the round
    /// trip (ns-2).
    #[name("in-flight")]
    InFlight,
    /// Both use the data acknowledged in the round trip (Linux 2.6.22).
    #[name("acknowledged")]
    Acknowledged,
}

/// RTT that represents a round trip.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Choice)]
pub enum RoundRtt {
    /// RTT of the packet whose departure began it (Brakmo & Peterson's distinguished segment).
    #[name("first")]
    First,
    /// Mean of all RTTs in it (ns-2).
    #[name("mean")]
    Mean,
    /// Least RTT in it, which no delayed ACK makes longer (Linux).
    #[name("least")]
    Least,
}

/// Rounding of diff before it is compared with α, β and γ.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Choice)]
pub enum Rounding {
    /// No rounding.
    #[name("none")]
    Not,
    /// To whole segments (ns-2).
    #[name("nearest")]
    Nearest,
    /// Down to whole segments (Linux).
    #[name("down")]
    Down,
    /// Up to half segments (Linux 2.6.22).
    #[name("halves-up")]
    HalvesUp,
}

/// Window with which slow start ends by delay.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Choice)]
pub enum Exit {
    /// The window as it is.
    #[name("stay")]
    Stay,
    /// An eighth less (ns-2).
    #[name("eighth")]
    Eighth,
    /// The segments that the path holds without queues, and one more (Linux).
    #[name("actual")]
    Actual,
}

/// Vegas.
#[derive(Clone, Debug, PartialEq, Schema)]
#[schema(presets, check = Self::consistent)]
pub struct Params {
    /// α: with fewer segments in queues the window grows by a segment a round trip.
    #[default(
        2.0,
        "McCullagh 2008 eq. 2.4: often 2; Linux: 2; Brakmo & Peterson 1995: 1 or 2; ns-2: 1"
    )]
    #[bounds(from 0.0; "it is a number of segments")]
    pub alpha: f64,
    /// β: with more segments in queues the window shrinks by a segment a round trip.
    #[default(
        4.0,
        "McCullagh 2008 eq. 2.4: often 4; Linux: 4; Brakmo & Peterson 1995: 3 or 4; ns-2: 3"
    )]
    #[bounds(from 0.0; "it is a number of segments")]
    pub beta: f64,
    /// γ: with more segments in queues slow start ends.
    #[default(1.0, "Linux tcp_vegas.c and ns-2 tcp-vegas.cc: 1")]
    #[bounds(from 0.0; "it is a number of segments")]
    pub gamma: f64,
    /// Quantities that the rates of eq. 2.1 and 2.2 are computed from.
    #[default(Rates::Window, "McCullagh 2008 eq. 2.1 to 2.3")]
    pub rates: Rates,
    /// RTT that represents a round trip.
    #[default(RoundRtt::Least, "Linux tcp_vegas.c; none in McCullagh 2008")]
    pub rtt: RoundRtt,
    /// Rounding of diff before it is compared with α, β and γ.
    #[default(Rounding::Not, "McCullagh 2008 eq. 2.3: a real number")]
    pub rounding: Rounding,
    /// Slow start doubles the window in one of so many round trips, and compares rates before it.
    #[default(2, "Brakmo & Peterson 1995: every other; Linux: 1")]
    #[bounds(from 1, up_to 1000; "it counts round trips")]
    pub double_every: u32,
    /// Window with which slow start ends by delay.
    #[default(
        Exit::Stay,
        "none in the paper; ns-2 takes an eighth off, Linux sets the window to what the path holds"
    )]
    pub exit: Exit,
    /// `true` if the segment by which the window grows is spread over the round trip; otherwise it
    /// is added at the start.
    #[default(true, "Brakmo & Peterson 1995: linearly during the next round trip; Linux: at once")]
    pub spread: bool,
    /// `true` if the segment more or less is counted from the window of the previous round trip.
    #[default(false, "Linux 2.6.22 tcp_vegas.c")]
    pub from_round_before: bool,
    /// Least number of RTTs in a round trip; with fewer the window grows as Reno's does, in slow
    /// start only if `double_every` is 1.
    #[default(1, "Linux tcp_vegas.c: 3, of which one is of no delayed ACK")]
    #[bounds(from 1; "without an RTT nothing can be compared")]
    pub least_samples: u32,
    /// Part of the window that stays after a loss that is repaired without a timeout.
    #[default(0.5, "Linux tcp_vegas.c: as Reno; ns-2 tcp-vegas.cc: 0.75")]
    #[bounds(above 0.0, below 1.0; "it is the part of the window that stays")]
    pub loss_beta: f64,
    /// Part of the window that stays after an ECN-echo; none is `loss_beta`.
    #[default(None, "RFC 3168 § 6.1.2: as for a loss; ns-2 tcp-vegas.cc: 0.5")]
    #[bounds(above 0.0, below 1.0; "it is the part of the window that stays")]
    pub ecn_beta: Option<f64>,
    /// L: one ACK in slow start counts for at most so many segments; none is no limit.
    #[default(Some(2), "RFC 3465 § 2.3")]
    #[bounds(from 1; "with a limit of 0 slow start never grows")]
    pub abc_limit: Option<u32>,
    /// The same in the slow start after a timeout.
    #[default(Some(1), "RFC 3465 § 2.3; Linux has no limit (tcp_slow_start)")]
    #[bounds(from 1; "with a limit of 0 slow start never grows")]
    pub abc_limit_after_timeout: Option<u32>,
    /// `true` if the handshake's RTT counts for baseRTT; its packets take less time to send.
    #[default(false, "ns-2.35 tcp-linux.cc; Linux and ns-2's own Vegas take data's")]
    pub base_from_handshake: bool,
    /// `true` if baseRTT is measured anew after an idle time.
    #[default(false, "Linux tcp_vegas.c")]
    pub forgets_when_idle: bool,
}

impl Presets for Params {
    const PRESETS: &'static [PresetOf<Self>] = &[
        PresetOf::new(
            "thesis",
            "McCullagh 2008, eq. 2.1 to 2.4, with the slow start of Brakmo & Peterson; the default \
             where the stack has none.",
            Self::default,
        ),
        PresetOf::new(
            "paper",
            "Brakmo & Peterson 1995, Vegas-1,3: rates of what was sent, RTT of the segment that \
             began the round trip.",
            || Self {
                alpha: 1.0,
                beta: 3.0,
                rates: Rates::Sent,
                rtt: RoundRtt::First,
                loss_beta: 0.75,
                ecn_beta: Some(0.5),
                ..Self::default()
            },
        ),
        PresetOf::new("ns2", "ns-2.35 (tcp-vegas.cc).", || Self {
            alpha: 1.0,
            beta: 3.0,
            rates: Rates::InFlight,
            rtt: RoundRtt::Mean,
            rounding: Rounding::Nearest,
            exit: Exit::Eighth,
            loss_beta: 0.75,
            ecn_beta: Some(0.5),
            ..Self::default()
        }),
        PresetOf::new("linux", "Linux 6.1 (tcp_vegas.c).", || Self {
            rates: Rates::WindowOverBase,
            rounding: Rounding::Down,
            double_every: 1,
            exit: Exit::Actual,
            spread: false,
            least_samples: 3,
            abc_limit: None,
            abc_limit_after_timeout: None,
            forgets_when_idle: true,
            ..Self::default()
        }),
        PresetOf::new(
            "linux-2.6.22",
            "Linux 2.6.22 (tcp_vegas.c), as in ns-2.35's TCP-Linux, which counts the handshake's \
             RTT besides.",
            || Self {
                rates: Rates::Acknowledged,
                rounding: Rounding::HalvesUp,
                double_every: 1,
                exit: Exit::Actual,
                spread: false,
                from_round_before: true,
                least_samples: 3,
                abc_limit: Some(1),
                forgets_when_idle: true,
                ..Self::default()
            },
        ),
    ];
}

impl Params {
    /// Checks values together.
    fn consistent(&self) -> Result<(), Invalid> {
        if self.alpha > self.beta {
            return Err(Invalid {
                key: key!(Self: alpha),
                message: "α is above β: the same delay would make the window larger and smaller"
                    .to_owned(),
            });
        }
        Ok(())
    }
}

impl HasContract for Params {
    fn contract(&self) -> Contract {
        Contract::new()
            .wants(Ability::Timestamps, "the delay of one packet in each window is all it hears of")
            .when(self.rtt != RoundRtt::Least, |c| {
                c.wants(Ability::PromptRtt, "ACKs that receivers hold back look like a queue")
            })
    }
}
