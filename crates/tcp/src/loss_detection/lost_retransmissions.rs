//! Detection of lost retransmissions by their order, as in Linux before RACK-TLP (tcp_input.c until
//! 4.x, `tcp_mark_lost_retrans`) and in ns-2's TCP-Linux (scoreboard1.cc). RFC 6675 leaves them to
//! the timer.

/// Rule by order: a retransmission is lost once data first sent after it is SACKed, or once one
/// sent more than `max_gap` retransmissions later arrives.
#[derive(Clone, Copy, Debug)]
pub struct LossByOrder {
    max_gap: u32,
}

/// A retransmission in flight.
#[derive(Clone, Copy, Debug)]
pub struct InFlight {
    /// Number of the retransmission, in order of transmission.
    pub number: u64,
    /// One past the highest byte sent before the retransmission.
    pub sent_up_to: u64,
}

/// State of the arrivals.
#[derive(Clone, Copy, Debug)]
pub struct Arrived {
    /// One past the highest SACKed byte; SND.UNA if nothing is SACKed.
    pub top: u64,
    /// The highest number of a retransmission that arrived.
    pub number: Option<u64>,
}

impl LossByOrder {
    pub const fn new(dup_thresh: u32) -> Self {
        Self { max_gap: dup_thresh }
    }

    /// `true` if a retransmission is lost, given the arrivals.
    pub fn is_lost(self, sent: InFlight, arrived: Arrived) -> bool {
        let last = sent.number + u64::from(self.max_gap);
        arrived.top > sent.sent_up_to || arrived.number.is_some_and(|number| number > last)
    }
}
