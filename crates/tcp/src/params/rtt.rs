//! RTT samples and their estimator (RFC 6298 § 2, RFC 7323 § 4), and the round-trip times that a
//! controller sees (McCullagh 2008, chapter 5). An echoed timestamp is that of the oldest segment
//! acknowledged, so its RTT includes the time for which the receiver delayed the ACK. The sender's
//! own log has the send time of each segment.

use cwnd_quantity::Duration;
use cwnd_schema::{Choice, Schema};

use crate::rtt::RttArithmetic;

/// RTT samples and their estimator.
#[derive(Clone, Debug, PartialEq, Schema)]
pub struct Params {
    /// `true` if segments carry timestamps, so that every ACK of new data gives an RTT sample; off,
    /// the sender times one segment a round trip. Serves experiments on spurious timeouts, and
    /// delay-based control by one sample a round trip.
    #[default(true, "RFC 7323 § 4")]
    pub timestamps: bool,
    /// Resolution of the timestamp clock and of RTT samples. Serves experiments on delay-based
    /// control with coarse clocks (BMCC, ns-2).
    #[default(Duration::from_millis(1), "RFC 7323 § 5.4: 1 ms is typical")]
    pub clock: Duration,
    /// Arithmetic of SRTT and RTTVAR. Serves comparisons of timers with ns-2 and with kernels.
    #[default(
        RttArithmetic::Exact,
        "RFC 6298 § 2; 4.4BSD and ns-2 count ticks (ns-2 tcp.cc, rtt_update); Linux: linux"
    )]
    pub rtt_arithmetic: RttArithmetic,
    /// `true` if RTT samples come from the sender's own log of send times, including those of
    /// SACKed segments. A sample is of newly acknowledged data that was sent once; otherwise the
    /// echoed timestamp gives it. No effect without `loss_rule = "rack"`.
    #[default(false, "RFC 7323 § 4.1: what ACKs echo; Linux: yes (tcp_ack_update_rtt)")]
    #[part("own-rtt-notes")]
    pub rtt_from_notes: bool,
}

/// Source of the round-trip times that a controller sees.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Choice)]
pub enum RttFrom {
    /// Samples of the retransmission timer: by echoed timestamps, those of the oldest segment
    /// acknowledged (RFC 7323 § 4.3); by the log with `rtt_from_notes`; without either, of one
    /// segment a round trip.
    #[name("timer")]
    Timer,
    /// The sender's own log: send time of the oldest segment acknowledged (Linux 2.6.22 and
    /// 2.6.23).
    #[name("oldest")]
    Oldest,
    /// The sender's own log: send time of the newest segment acknowledged, which triggered the ACK
    /// (Linux since 2.6.24).
    #[name("newest")]
    Newest,
    /// The same, but for an ACK with SACK blocks the newest segment that they newly report (Linux
    /// 6.18).
    #[name("sack")]
    Sack,
    /// One-way delay of data that its receiver reports (`echo = "delay"`), less its minimum, plus
    /// the least round trip. Queues on the path of ACKs are not seen.
    #[name("one-way")]
    OneWay,
}

/// Frequency of the round-trip times that a controller sees.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Choice)]
pub enum RttEvery {
    /// With each ACK that gives one.
    #[name("ack")]
    Ack,
    /// Once a window: the next sample follows once all data outstanding at the last sample is
    /// acknowledged (Jacobson 1988).
    #[name("window")]
    Window,
}

/// Round-trip times that a controller sees. The samples of the retransmission timer stay the same.
#[derive(Clone, Debug, PartialEq, Schema)]
pub struct TimingParams {
    /// Source of the round-trip times that the controller sees: the sample of an ACK, the latest
    /// and the minimum. The sender's own notes give none for retransmitted data (Karn & Partridge
    /// 1987). Serves experiments on the meaning of a round-trip time (delay-based AIMD, Vegas,
    /// LEDBAT).
    #[default(
        RttFrom::Timer,
        "RFC 7323 § 4.3; McCullagh 2008 § 5.1, 5.2: Linux 2.6.22 and 2.6.24; Linux 6.18 \
        (tcp_clean_rtx_queue); RFC 6817 § 2.4 for one way"
    )]
    pub rtt_from: RttFrom,
    /// Resolution of the clock of the sender's own notes; timestamps have `clock`. Serves
    /// experiments on delay-based control by ticks of old kernels.
    #[default(
        Duration::from_micros(1),
        "Linux since 2.6.22: ktime; before it ticks of 1 to 10 ms"
    )]
    #[bounds(from Duration(1), up_to Duration::from_secs(1))]
    pub rtt_clock: Duration,
    /// Frequency of the round-trip times that the controller sees. Serves experiments on
    /// delay-based control by one sample a window, as of stacks from 1988 on.
    #[default(RttEvery::Ack, "RFC 7323 § 4.1: with each ACK")]
    pub rtt_every: RttEvery,
    /// `true` if an ACK of a single segment gives a round-trip time. Where ACKs are delayed
    /// (`ack_every` above 1), the delayed-ACK timer sends most of these ACKs. With `ack_every = 1`
    /// they always count. Serves experiments on noise of delayed ACKs in delay-based control
    /// (delay-based AIMD).
    #[default(
        true,
        "McCullagh 2008 § 5.2 ignores them; Linux leaves it to controllers (pkts_acked)"
    )]
    pub rtt_lone_acks: bool,
    /// `true` if results contain the queueing delay as the sender saw it and as it was: columns
    /// `qdelay_seen_us` and `qdelay_true_us` of flows. Serves experiments on errors of the queueing
    /// delay that a sender sees (delay-based AIMD).
    #[default(false, "McCullagh 2008 § 5.2 compares them")]
    #[was("note_delays")]
    pub record_delays: bool,
}

impl TimingParams {
    /// `true` if this source excludes the time for which the receiver delays ACKs.
    pub(crate) const fn is_prompt(&self) -> bool {
        let newest = matches!(self.rtt_from, RttFrom::Newest | RttFrom::Sack);
        newest && !self.rtt_lone_acks || matches!(self.rtt_from, RttFrom::OneWay)
    }
}
