//! Named choices of an endpoint's parameters.

use cwnd_schema::Choice;

/// Response of a sender to a hole in the acknowledged data.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Choice)]
pub enum Recovery {
    /// Fast retransmit, then slow start from one segment (4.3BSD-Tahoe).
    #[name("tahoe")]
    Tahoe,
    /// Fast recovery that ends with the first new ACK (RFC 2581).
    #[name("reno")]
    Reno,
    /// Fast recovery that stays through partial ACKs (RFC 6582).
    #[name("newreno")]
    NewReno,
    /// Selective acknowledgements (RFC 2018) with the scoreboard of RFC 6675.
    #[name("sack")]
    Sack,
}

/// FlightSize that a sender reports to its controller.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Choice)]
pub enum FlightSize {
    /// All that is not acknowledged cumulatively (RFC 5681 § 2), without what limited transmit sent
    /// (§ 3.2).
    #[name("outstanding")]
    Outstanding,
    /// Data presumed in the network once the ACK is processed: RFC 6675's pipe, without SACKed or
    /// lost data.
    #[name("pipe")]
    Pipe,
}

/// Rule by which SACK shows that a segment was lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Choice)]
pub enum LossRule {
    /// `dup_thresh` segments above it were SACKed (RFC 6675 § 4).
    #[name("rfc6675")]
    Rfc6675,
    /// The highest SACKed segment is `dup_thresh` or more above it: forward acknowledgement (Mathis
    /// & Mahdavi 1996).
    #[name("fack")]
    Fack,
    /// It went so long before something that arrived as the last arrival took, and a reordering
    /// window more (RFC 8985 § 6.2). With SACK the window is a quarter of the least round-trip
    /// time, and nothing in recovery and once `dup_thresh` segments are SACKed, unless data was
    /// seen to come out of its order. What is still lost at the end of a recovery begins the next.
    /// With `lost_retransmissions` the same holds for what went again. With `timestamps`, NewReno
    /// and CUBIC take a reduction back when the original came late (RFC 4015).
    #[name("rack")]
    Rack,
}

/// Data that SACK recovery presumes in the network (pipe), and the holes that it fills.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Choice)]
pub enum PipeRule {
    /// Data neither SACKed nor lost, plus retransmissions; holes are filled once they are lost (RFC
    /// 6675 § 4).
    #[name("rfc6675")]
    Rfc6675,
    /// Outstanding data, less a segment for each ACK and another for each partial ACK, plus each
    /// segment sent. Lost data stays in it until a partial ACK. Holes are filled as soon as
    /// anything above them is SACKed, and the tail is not rescued (Fall & Floyd 1996).
    #[name("sack1")]
    CountedByAcks,
    /// RFC 6675's, but what was sent again stays in it until the cumulative acknowledgement, though
    /// it was SACKed (ns-3).
    #[name("ns-3")]
    KeepsRetransmissions,
}

/// Event that ends the backoff of the retransmission timer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Choice)]
pub enum BackoffUntil {
    /// A valid RTT sample: of a segment that went once, or by its echoed timestamp (Karn &
    /// Partridge 1991; RFC 6298 § 5).
    #[name("sample")]
    Sample,
    /// The acknowledgement of a segment that went once, whatever timestamps say.
    #[name("sent-once")]
    SentOnce,
    /// Any acknowledgement of new data.
    #[name("ack")]
    Ack,
}

/// Response of a sender to an ECN-echo when its window cannot become smaller.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Choice)]
pub enum EchoAtOne {
    /// It goes on with a segment a round trip (Linux).
    #[name("sends")]
    Sends,
    /// It sends the next segment when the retransmission timer has run from the echo (RFC 3168 §
    /// 6.1.2).
    #[name("waits")]
    Waits,
    /// It waits, and every echo in a row that finds exactly one segment, but the first, doubles the
    /// time (ns-2's tcp.cc, ecn).
    #[name("backs-off")]
    BacksOff,
}

/// Response of a sender to a source quench.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Choice)]
pub enum QuenchAnswer {
    /// Its controller makes the window smaller, at most once a round trip (BECN § IV-B).
    #[name("reduce")]
    Reduce,
    /// It pauses between packets (RFC 1016, SQuID); the window stays.
    #[name("pause")]
    Pause,
}

/// Source quenches that a sender believes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Choice)]
pub enum QuenchCheck {
    /// Those that quote data that is outstanding (RFC 5927 § 4.1).
    #[name("in-flight")]
    InFlight,
    /// All.
    #[name("none")]
    None,
}
