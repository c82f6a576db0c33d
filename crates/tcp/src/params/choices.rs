//! What an endpoint may be asked for, by name.

use cwnd_quantity::param_enum;

param_enum! {
    /// What a sender does about a hole in what was acknowledged.
    pub enum Recovery {
        /// Fast retransmit, then slow start from one segment (4.3BSD-Tahoe).
        Tahoe = "tahoe",
        /// Fast recovery that ends with the first new ACK (RFC 2581).
        Reno = "reno",
        /// Fast recovery that stays through partial ACKs (RFC 6582).
        NewReno = "newreno",
        /// Selective acknowledgements (RFC 2018) with the scoreboard of RFC 6675.
        Sack = "sack",
    }
}

param_enum! {
    /// What a controller is told is in flight.
    pub enum FlightSize {
        /// All that is not acknowledged cumulatively (RFC 5681 § 2), without what limited transmit sent (§ 3.2).
        Outstanding = "outstanding",
        /// What is presumed in the network once the ACK is taken in: RFC 6675's pipe, without what was SACKed or lost.
        Pipe = "pipe",
    }
}

param_enum! {
    /// How SACK tells that a segment was lost.
    pub enum LossRule {
        /// `dup_thresh` segments above it were SACKed (RFC 6675 § 4).
        Rfc6675 = "rfc6675",
        /// The highest SACKed segment is `dup_thresh` or more above it: forward acknowledgement (Mathis & Mahdavi 1996).
        Fack = "fack",
        /// It went so long before something that arrived as the last arrival took, and a reordering window more (RFC 8985 § 6.2). With SACK the
        /// window is a quarter of the least round-trip time, and nothing in recovery and once `dup_thresh` segments are SACKed, unless data
        /// was seen to come out of its order. What is still lost at the end of a recovery begins the next. With `lost_retransmissions` the same
        /// holds for what went again. With `timestamps`, NewReno and CUBIC take a reduction back when the original came late (RFC 4015).
        Rack = "rack",
    }
}

param_enum! {
    /// What SACK recovery takes to be in the network, and which holes it fills.
    pub enum PipeRule {
        /// What was neither SACKed nor lost, and what was sent again; holes are filled once they are lost (RFC 6675 § 4).
        Rfc6675 = "rfc6675",
        /// What was outstanding, less a segment for each ACK and another for each partial one, more each that goes: what was lost stays in
        /// it until a partial ACK. Holes are filled as soon as anything above them is SACKed, and the tail is not rescued (Fall & Floyd 1996).
        Sack1 = "sack1",
        /// RFC 6675's, but what was sent again stays in it until the cumulative acknowledgement, though it was SACKed (ns-3).
        Ns3 = "ns-3",
    }
}

param_enum! {
    /// What ends the backoff of the retransmission timer.
    pub enum BackoffUntil {
        /// A valid RTT sample: of a segment that went once, or by its echoed timestamp (Karn & Partridge 1991; RFC 6298 § 5).
        Sample = "sample",
        /// The acknowledgement of a segment that went once, whatever timestamps say.
        SentOnce = "sent-once",
        /// Any acknowledgement of new data.
        Ack = "ack",
    }
}

param_enum! {
    /// What a sender does about an ECN-echo when its window cannot become smaller.
    pub enum EchoAtOne {
        /// It goes on with a segment a round trip (Linux).
        Sends = "sends",
        /// It sends the next segment when the retransmission timer has run from the echo (RFC 3168 § 6.1.2).
        Waits = "waits",
        /// It waits, and every echo in a row that finds exactly one segment, but the first, doubles the time (ns-2's tcp.cc, ecn).
        BacksOff = "backs-off",
    }
}

param_enum! {
    /// What a sender does about a source quench.
    pub enum QuenchAnswer {
        /// Its controller makes the window smaller, at most once a round trip (BECN § IV-B).
        Reduce = "reduce",
        /// It pauses between packets (RFC 1016, SQuID); the window stays.
        Pause = "pause",
    }
}

param_enum! {
    /// Which source quenches a sender believes.
    pub enum QuenchCheck {
        /// Those that quote data that is outstanding (RFC 5927 § 4.1).
        InFlight = "in-flight",
        /// All.
        None = "none",
    }
}
