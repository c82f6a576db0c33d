use cwnd_quantity::{Ability, Contract, Declares, Invalid, param_enum, params};

param_enum! {
    /// What the rates of eq. 2.1 and 2.2 are of.
    pub enum Rates {
        /// Both are of the window: diff = W (1 − baseRTT / RTT) (eq. 2.1 to 2.3).
        Window = "window",
        /// Both are of the window, and the rest is divided by baseRTT: diff = W (RTT / baseRTT − 1) (Linux).
        WindowOverBase = "window-over-base",
        /// Expected is of the window, Actual of what was sent in the round trip (Brakmo & Peterson).
        Sent = "sent",
        /// Expected is of what is in flight, with the next segment, Actual of what was sent in the round trip (ns-2).
        InFlight = "in-flight",
        /// Both are of what was acknowledged in the round trip (Linux 2.6.22).
        Acknowledged = "acknowledged",
    }
}

param_enum! {
    /// Which RTT a round trip has.
    pub enum RoundRtt {
        /// That of the packet whose departure began it (Brakmo & Peterson's distinguished segment).
        First = "first",
        /// The mean of all in it (ns-2).
        Mean = "mean",
        /// The least in it, which no delayed ACK makes longer (Linux).
        Least = "least",
    }
}

param_enum! {
    /// How diff is rounded before it is compared.
    pub enum Rounding {
        /// Not.
        Not = "none",
        /// To whole segments (ns-2).
        Nearest = "nearest",
        /// Down to whole segments (Linux).
        Down = "down",
        /// Up to half segments (Linux 2.6.22).
        HalvesUp = "halves-up",
    }
}

param_enum! {
    /// The window with which slow start ends for delay.
    pub enum Exit {
        /// The one that it has.
        Stay = "stay",
        /// An eighth less (ns-2).
        Eighth = "eighth",
        /// What the path holds without queues, and a segment (Linux).
        Actual = "actual",
    }
}

params! {
    /// Vegas.
    pub struct Params {
        /// α: with fewer segments in queues the window grows by a segment a round trip.
        #[source("McCullagh 2008 eq. 2.4: often 2; Linux: 2; Brakmo & Peterson 1995: 1 or 2; ns-2: 1")]
        #[bounds(from 0.0; "it is a number of segments")]
        pub alpha: f64 = 2.0,
        /// β: with more segments in queues the window shrinks by a segment a round trip.
        #[source("McCullagh 2008 eq. 2.4: often 4; Linux: 4; Brakmo & Peterson 1995: 3 or 4; ns-2: 3")]
        #[bounds(from 0.0; "it is a number of segments")]
        pub beta: f64 = 4.0,
        /// γ: with more segments in queues slow start ends.
        #[source("Linux tcp_vegas.c and ns-2 tcp-vegas.cc: 1")]
        #[bounds(from 0.0; "it is a number of segments")]
        pub gamma: f64 = 1.0,
        /// What the rates of eq. 2.1 and 2.2 are of.
        #[source("McCullagh 2008 eq. 2.1 to 2.3")]
        pub rates: Rates = Rates::Window,
        /// Which RTT a round trip has.
        #[source("Linux tcp_vegas.c; none in McCullagh 2008")]
        pub rtt: RoundRtt = RoundRtt::Least,
        /// How diff is rounded before it is compared.
        #[source("McCullagh 2008 eq. 2.3: a real number")]
        pub rounding: Rounding = Rounding::Not,
        /// Slow start doubles the window in one of so many round trips, and compares rates before it.
        #[source("Brakmo & Peterson 1995: every other; Linux: 1")]
        #[bounds(from 1, up_to 1000; "it counts round trips")]
        pub double_every: u32 = 2,
        /// The window with which slow start ends for delay.
        #[source("none in the paper; ns-2 takes an eighth off, Linux sets the window to what the path holds")]
        pub exit: Exit = Exit::Stay,
        /// Whether the segment by which the window grows is spread over the round trip; else it comes at its start.
        #[source("Brakmo & Peterson 1995: linearly during the next round trip; Linux: at once")]
        pub spread: bool = true,
        /// Whether the segment more or less is counted from the window of the round trip before.
        #[source("Linux 2.6.22 tcp_vegas.c")]
        pub from_round_before: bool = false,
        /// With fewer RTTs in a round trip the window grows as Reno's does.
        #[source("Linux tcp_vegas.c: 3, of which one is of no delayed ACK")]
        #[bounds(from 1; "without an RTT nothing can be compared")]
        pub least_samples: u32 = 1,
        /// Part of the window that stays after a loss that is repaired without a timeout.
        #[source("Linux tcp_vegas.c: as Reno; ns-2 tcp-vegas.cc: 0.75")]
        #[bounds(above 0.0, below 1.0; "it is the part of the window that stays")]
        pub loss_beta: f64 = 0.5,
        /// Part of the window that stays after an ECN-echo; none is `loss_beta`.
        #[source("RFC 3168 § 6.1.2: as for a loss; ns-2 tcp-vegas.cc: 0.5")]
        #[bounds(above 0.0, below 1.0; "it is the part of the window that stays")]
        pub ecn_beta: Option<f64> = None,
        /// L: one ACK in slow start counts for at most so many segments; none is no limit.
        #[source("RFC 3465 § 2.3")]
        #[bounds(from 1; "with a limit of 0 slow start never grows")]
        pub abc_limit: Option<u32> = Some(2),
        /// The same in the slow start after a timeout.
        #[source("RFC 3465 § 2.3; Linux has no limit (tcp_slow_start)")]
        #[bounds(from 1; "with a limit of 0 slow start never grows")]
        pub abc_limit_after_timeout: Option<u32> = Some(1),
        /// Whether the handshake's RTT counts for baseRTT: that of a packet that takes less time to send.
        #[source("ns-2.35 tcp-linux.cc; Linux and ns-2's own Vegas take data's")]
        pub base_from_handshake: bool = false,
        /// Whether baseRTT is measured anew after an idle time.
        #[source("Linux tcp_vegas.c")]
        pub forgets_when_idle: bool = false,
    }
    presets {
        /// McCullagh 2008, eq. 2.1 to 2.4, with the slow start of Brakmo & Peterson; the default
        /// where the stack has none.
        "thesis" => Self::default(),
        /// Brakmo & Peterson 1995, Vegas-1,3: rates of what was sent, RTT of the segment that began the round trip.
        "paper" => Self {
            alpha: 1.0,
            beta: 3.0,
            rates: Rates::Sent,
            rtt: RoundRtt::First,
            loss_beta: 0.75,
            ecn_beta: Some(0.5),
            ..Self::default()
        },
        /// ns-2.35 (tcp-vegas.cc).
        "ns2" => Self {
            alpha: 1.0,
            beta: 3.0,
            rates: Rates::InFlight,
            rtt: RoundRtt::Mean,
            rounding: Rounding::Nearest,
            exit: Exit::Eighth,
            loss_beta: 0.75,
            ecn_beta: Some(0.5),
            ..Self::default()
        },
        /// Linux 6.1 (tcp_vegas.c).
        "linux" => Self {
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
        },
        /// Linux 2.6.22 (tcp_vegas.c), as in ns-2.35's TCP-Linux, which counts the handshake's RTT besides.
        "linux-2.6.22" => Self {
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
    }
    check |p| {
        if p.alpha > p.beta {
            return Err(Invalid {
                key: "alpha",
                message: "α is above β: the same delay would make the window larger and smaller".to_owned(),
            });
        }
    }
}

impl Declares for Params {
    fn contract(&self) -> Contract {
        Contract::new()
            .wants(Ability::Timestamps, "the delay of one packet in each window is all it hears of")
            .when(self.rtt != RoundRtt::Least, |c| {
                c.wants(Ability::PromptRtt, "ACKs that receivers hold back look like a queue")
            })
    }
}
