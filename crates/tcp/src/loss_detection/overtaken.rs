//! Loss detection of retransmissions by their order, as Linux had it before RACK-TLP (tcp_input.c
//! until 4.x, `tcp_mark_lost_retrans`) and ns-2's TCP-Linux has it (scoreboard1.cc). RFC 6675
//! leaves them to the timer.

/// Rule by order: a retransmission is lost once data that first went after it was SACKed, or once
/// one arrived that went more than `apart` retransmissions after it.
#[derive(Clone, Copy, Debug)]
pub struct Overtaken {
    apart: u32,
}

/// A retransmission in flight.
#[derive(Clone, Copy, Debug)]
pub struct InFlight {
    /// Its number, in order of transmission.
    pub number: u64,
    /// One past the highest byte that had been sent when it went.
    pub sent_up_to: u64,
}

/// Data that arrived.
#[derive(Clone, Copy, Debug)]
pub struct Arrived {
    /// One past the highest byte that was SACKed.
    pub top: u64,
    /// The highest number of a retransmission.
    pub number: Option<u64>,
}

impl Overtaken {
    pub const fn new(dup_thresh: u32) -> Self {
        Self { apart: dup_thresh }
    }

    /// `true` if a retransmission is lost, by what arrived.
    pub fn is_lost(self, sent: InFlight, arrived: Arrived) -> bool {
        let last = sent.number + u64::from(self.apart);
        arrived.top > sent.sent_up_to || arrived.number.is_some_and(|number| number > last)
    }
}
