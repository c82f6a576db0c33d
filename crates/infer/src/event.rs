//! Silences of a sender: their kinds, and the evidence for them.

use cwnd_quantity::{Duration, Time};

/// Gap that a silence must exceed by the paper's rule (TCP*(n), § 2.4, footnote 3).
pub const GAP: Duration = Duration::from_millis(200);
/// Multiple of the round-trip time that a silence must exceed as well, 1.2, as a fraction.
pub const TIMES_RTT: (u64, u64) = (6, 5);

/// `true` if a span exceeds both [`GAP`] and 1.2 round-trip times.
#[inline]
pub fn is_long(span: Duration, rtt: Duration) -> bool {
    span > GAP && span > rtt * TIMES_RTT.0 / TIMES_RTT.1
}

/// Cause of a silence.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// The retransmission timer of the sender expired.
    Timeout,
    /// A timeout or something else, such as a pause of the application, a tail loss probe or RACK's
    /// timer: the packets do not show which.
    Ambiguous,
    /// The application had nothing to send.
    Pause,
    /// The sender sent a tail loss probe (RFC 8985 § 7).
    Probe,
    /// Loss recovery without a timeout took that long.
    Recovery,
    /// The receiver's window was closed.
    Window,
    /// The client delayed an acknowledgement.
    Client,
}

impl Kind {
    /// Names in the column `kind`, in the order of the variants.
    pub const NAMES: [&'static str; 7] =
        ["timeout", "ambiguous", "pause", "probe", "recovery", "window", "client"];
}

/// Evidence for the kind of a silence.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Evidence {
    /// The segment after it filled the first hole.
    Filled,
    /// The segment after it had arrived before.
    Repeated,
    /// The segment after it filled the first hole, and the wait for that was as long as a timeout,
    /// though there may be no gap.
    Stalled,
    /// IPv4 identifications show that packets were sent during the silence.
    Identification,
    /// IPv4 identifications show that no packet was sent during the silence.
    NothingSent,
    /// One full segment came after it, and the next after its acknowledgement: a window of one
    /// segment.
    SlowStart,
    /// One full segment came after it. The silence counts as a timeout if its length fits this
    /// server's timeouts.
    Single,
    /// The segment before it was full and without PSH: the sender had more to send.
    MoreToSend,
    /// Several segments came at once after it: a timeout leaves no such window.
    Burst,
    /// The segment after it was beyond a hole.
    Beyond,
    /// Only a FIN came after it.
    Close,
    /// The receiver's window was closed.
    Window,
    /// The last segment came again, although the sender knew that earlier ones were unacknowledged.
    Tail,
    /// The segment after it filled a hole that is not the first.
    LaterHole,
    /// The sender responded to an acknowledgement that had just reached it.
    Clocked,
    /// The silence was shorter than timeouts of this server.
    TooShort,
    /// A SYN or SYN-ACK came again.
    Handshake,
    /// An earlier pure ACK's sequence number, or missing packets, show that the segment had been
    /// sent before.
    Announced,
    /// Packets are missing, and the client repeated its request: the ACK in the first one was lost.
    Unheard,
    /// It lasted as long as the probe timer of a sender that may send tail loss probes.
    Probed,
    /// There is no evidence.
    None,
}

impl Evidence {
    /// Names in the column `evidence`, in the order of the variants.
    pub const NAMES: [&'static str; 21] = [
        "filled_hole",
        "repeated_data",
        "stalled",
        "ip_id_jump",
        "ip_id_next",
        "slow_start",
        "single",
        "more_to_send",
        "burst",
        "beyond_hole",
        "fin_only",
        "window",
        "tail",
        "later_hole",
        "ack_clocked",
        "too_short",
        "handshake",
        "announced",
        "unheard",
        "probe_time",
        "none",
    ];
}

/// Kind of segment that ended a silence.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SegmentKind {
    /// Data.
    Data,
    /// A SYN.
    Syn,
    /// A SYN-ACK.
    SynAck,
    /// A FIN without data.
    Fin,
}

impl SegmentKind {
    /// Names in the column `what`, in the order of the variants.
    pub const NAMES: [&'static str; 4] = ["data", "syn", "syn_ack", "fin"];
}

/// Relation of a silence to a tail loss probe (RFC 8985 § 7).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Probe {
    /// No probe was due: the sender knew of a hole, or was in recovery after a loss, a timeout or a
    /// probe.
    No,
    /// A probe was due during the silence; the segment after it is none, since it is not the last
    /// one sent.
    Before,
    /// The segment after it may be the probe of the only unacknowledged segment.
    Only,
    /// The segment after it may be the probe of the last of several unacknowledged segments.
    Last,
}

/// Retransmission timer of a sender; its times are zero if not known.
#[derive(Clone, Copy, Debug, Default)]
pub struct Timer {
    /// SRTT.
    pub smoothed: Duration,
    /// Retransmission timeout.
    pub timeout: Duration,
    /// `true` if there was at most one RTT sample, usually that of the handshake.
    pub first: bool,
}

/// A silence of a sender, and the segment that ended it.
#[derive(Clone, Copy, Debug)]
pub struct Event {
    /// Arrival of the last segment before it, or the later request that it follows.
    pub began: Time,
    /// Arrival of the first segment after it.
    pub ended: Time,
    /// SRTT before it, between the capture point and the sender; the minimum RTT if samples came
    /// only later; zero without any.
    pub rtt: Duration,
    /// RTTVAR before it.
    pub variation: Duration,
    /// RTTVAR before it in the manner of Linux, which falls only once per round trip.
    pub rttvar_linux: Duration,
    /// SRTT minus the shortest round trip: queueing delay that is gone after a silence.
    pub queueing_delay: Duration,
    /// The sender's retransmission timer as it is if the sender is Linux.
    pub linux: Timer,
    /// Delay from data to its acknowledgement at the capture point, which is part of the RTT that
    /// the sender measures.
    pub delay: Duration,
    /// `true` if the RTO may still be backed off from a recent timeout. Without timestamps it stays
    /// so until a segment that was sent once is acknowledged (Karn's algorithm; RFC 6298 § 3, § 5).
    /// Always `false` if the segment has timestamps whose echo is known.
    pub backed_off: bool,
    /// Time that the sender's timers took in total, as far as it can be seen.
    pub waited: Duration,
    /// `true` if the last packet that the sender received was a request: the time of its response,
    /// and so the start of its timer, is not known.
    pub after_request: bool,
    /// `true` if that request was a repetition, and may not have been received before.
    pub request_repeated: bool,
    /// `true` if the segment after it has PSH, or is shorter than others.
    pub pushed: bool,
    /// `true` if all data before that segment had been acknowledged: the time of its write is not
    /// known.
    pub all_acked: bool,
    /// Time for which the sender had received nothing when it sent that segment.
    pub idle: Duration,
    /// Relation to a tail loss probe, if the sender sends such probes.
    pub probe: Probe,
    /// Packets sent during the silence that never arrived, if the sender numbers its packets.
    pub missing: Option<u32>,
    /// `true` if that segment had not arrived before, nor any beyond it, and was probably sent for
    /// the first time in the silence.
    pub new: bool,
    /// `true` if the sender had just learnt of the hole and had retransmitted it at once (RFC
    /// 8985): that retransmission was lost, too.
    pub repair_lost: bool,
    /// Position of that segment in the stream; the first byte is 0.
    pub offset: u64,
    /// `true` if the paper's rule calls the silence a timeout.
    pub rule: bool,
    /// Kind of the segment that ended it.
    pub what: SegmentKind,
    /// Cause of the silence.
    pub kind: Kind,
    /// Evidence for the cause.
    pub evidence: Evidence,
    /// `true` if the sender had received nothing new since the previous timeout. For a SYN or
    /// SYN-ACK: if it is not the first repeated one.
    pub again: bool,
    /// Consecutive timeouts before it, including those that left no silence of their own.
    pub before: u32,
    /// Timeouts in it: more than one if retransmissions were lost, too.
    pub timeouts: u32,
    /// Inferred RTO, before backoff; zero if the silence was never taken for a timeout of data.
    pub rto: Duration,
}
