//! Kinds of silences of a sender, and the evidence for them.

use cwnd_quantity::{Duration, Time};

/// The paper's rule: a gap of more than 200 ms … (TCP*(n), § 2.4, footnote 3).
pub const GAP: Duration = Duration::from_millis(200);
/// … that is more than 1.2 times the round-trip time as well, as a fraction.
pub const TIMES_RTT: (u64, u64) = (6, 5);

/// Whether a span is longer than both.
#[inline]
pub fn is_long(span: Duration, rtt: Duration) -> bool {
    span > GAP && span > rtt * TIMES_RTT.0 / TIMES_RTT.1
}

/// What it was.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// The retransmission timer of the sender expired.
    Timeout,
    /// A timeout and a pause of the application look the same here.
    Ambiguous,
    /// The application had nothing to send.
    Pause,
    /// The sender probed for a loss at the tail of what it had sent (RFC 8985 § 7).
    Probe,
    /// Loss recovery that took that long, without a timeout.
    Recovery,
    /// The receiver's window was closed.
    Window,
    /// The client was late, not the server: it delayed an acknowledgement.
    Client,
}

impl Kind {
    /// As in the tables.
    pub const NAMES: [&'static str; 7] =
        ["timeout", "ambiguous", "pause", "probe", "recovery", "window", "client"];
}

/// What told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Evidence {
    /// The segment after it filled the first hole.
    Filled,
    /// The segment after it had arrived before.
    Repeated,
    /// The segment after it filled the first hole, the sender had waited, and sent nothing else for a round trip.
    Stalled,
    /// IPv4 identifications say that packets were sent meanwhile.
    Identification,
    /// IPv4 identifications say that none was sent meanwhile.
    NothingSent,
    /// One full segment after it, and the next when that was acknowledged: a window of one.
    SlowStart,
    /// One full segment after it; with the length of this server's timeouts, it is one.
    Single,
    /// The segment before it was full and without PSH: the sender had more to send.
    MoreToSend,
    /// Several segments at once after it: a window that no timeout leaves.
    Burst,
    /// What came after it was beyond a hole.
    Beyond,
    /// Nothing but a FIN came after it.
    Close,
    /// The receiver's window was closed.
    Window,
    /// The last segment came again though earlier ones were not acknowledged to the sender.
    Tail,
    /// A hole was filled that is not the first.
    LaterHole,
    /// The sender answered an acknowledgement that had just come.
    Clocked,
    /// The silence was shorter than timeouts of this server are.
    TooShort,
    /// SYN or SYN-ACK came again.
    Handshake,
    /// An acknowledgement had said that it was sent before.
    Announced,
    /// Packets are missing, and the client had to repeat its request: what it had acknowledged was not heard.
    Unheard,
    /// After the time of a tail loss probe, from a sender that sends such.
    Probed,
    /// Nothing tells.
    None,
}

impl Evidence {
    /// As in the tables.
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

/// What was sent again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum What {
    /// Data.
    Data,
    /// A SYN.
    Syn,
    /// A SYN-ACK.
    SynAck,
    /// A FIN without data.
    Fin,
}

impl What {
    /// As in the tables.
    pub const NAMES: [&'static str; 4] = ["data", "syn", "syn_ack", "fin"];
}

/// What a silence was to a tail loss probe (RFC 8985 § 7).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Probe {
    /// The sender was in recovery, knew of a hole, or had sent one before: its timer is the next to expire.
    No,
    /// It would have sent one in it, and what came after it is none: not the last segment that was sent.
    Before,
    /// What came after it may be the probe of the only segment that was not acknowledged.
    Only,
    /// … or of the last of several.
    Last,
}

/// What the timers of a sender go by; zero if that is not known.
#[derive(Clone, Copy, Debug, Default)]
pub struct Timer {
    /// SRTT.
    pub smoothed: Duration,
    /// The retransmission timeout.
    pub timeout: Duration,
    /// No data had been acknowledged yet: the handshake is all that it knew.
    pub first: bool,
}

/// A silence of a sender, and what came after it.
#[derive(Clone, Copy, Debug)]
pub struct Event {
    /// The last segment before.
    pub began: Time,
    /// The first after.
    pub ended: Time,
    /// SRTT and RTTVAR before.
    pub rtt: Duration,
    /// See `rtt`.
    pub variation: Duration,
    /// RTTVAR as Linux has it: it falls but once a round trip.
    pub lasting: Duration,
    /// How much longer that round trip was than the shortest: what waits in a queue is gone after a silence.
    pub queued: Duration,
    /// The sender's timers if they are Linux's.
    pub linux: Timer,
    /// How long acknowledgements waited at the receiver, which the sender's round-trip times have besides.
    pub delay: Duration,
    /// Without timestamps, a timeout stays as long as it had grown until something is acknowledged that was sent once (Karn's
    /// rule; RFC 6298 § 5.7): another timeout was so near before it that this may be so.
    pub held: bool,
    /// How long the sender's timers took together, as far as it can be seen.
    pub waited: Duration,
    /// What it had heard last was a request: when it answered and began a timer is not known.
    pub asked: bool,
    /// That request had been sent before, and again: it may have been heard only then.
    pub repeated: bool,
    /// What came after it has PSH, or is shorter than others.
    pub pushed: bool,
    /// All before it had been acknowledged: when it was written is not known.
    pub written: bool,
    /// How long the sender had heard nothing when it sent that segment.
    pub idle: Duration,
    /// What it was to a tail loss probe, if the sender sends such.
    pub probe: Probe,
    /// Packets that the sender sent in it and that never came, where it counts its packets.
    pub missing: Option<u32>,
    /// What came after it had not come before, nor anything beyond it.
    pub new: bool,
    /// The sender had heard of the hole just before, and sent it again at once, as RFC 8985 has it: that was lost, too.
    pub twice: bool,
    /// Where the segment after it begins in the stream; its first byte is 0.
    pub offset: u64,
    /// The paper's rule calls it a timeout.
    pub rule: bool,
    /// What came after it.
    pub what: What,
    /// What it was.
    pub kind: Kind,
    /// What told.
    pub evidence: Evidence,
    /// The sender had heard nothing new since the timeout before.
    pub again: bool,
    /// Timeouts in a row before it, with those that left no trace of their own.
    pub before: u32,
    /// Timeouts in it: more than one if retransmissions were lost, too.
    pub timeouts: u32,
    /// The timeout that the row began with, as it was inferred.
    pub rto: Duration,
}
