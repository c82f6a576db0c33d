//! When segments went, as the sender notes it where RACK does not: one a round trip (RFC 6298 § 3), or, without SACK, each.

use cwnd_quantity::Time;

use super::Sender;
use crate::late::Late;

/// What is timed.
#[derive(Clone, Debug)]
pub(super) enum Timed {
    Nothing,
    /// One segment, by its end.
    One {
        end: u64,
        sent: Time,
    },
    /// Each.
    Each(Box<Late>),
}

impl Timed {
    /// Nothing is timed yet, `each` that goes will be.
    pub fn new(each: bool) -> Self {
        if each { Self::Each(Box::default()) } else { Self::Nothing }
    }

    /// Whether each segment is.
    pub const fn notes_each(&self) -> bool {
        matches!(self, Self::Each(_))
    }

    /// Data of `[seq, end)` goes for the first time.
    #[cold]
    pub fn on_sent(&mut self, seq: u64, end: u64, now: Time, mss: u64) {
        match self {
            Self::Nothing => *self = Self::One { end, sent: now },
            Self::One { .. } => {}
            Self::Each(notes) => notes.on_sent(seq, end, now, mss),
        }
    }

    /// Data goes again: one that is timed may no longer be told from its repetition (Karn & Partridge 1987).
    pub fn forget(&mut self) {
        if !self.notes_each() {
            *self = Self::Nothing;
        }
    }

    /// Whether an ACK is of one that went once.
    pub const fn is_over(&self, ack: u64) -> bool {
        match self {
            Self::Nothing => false,
            Self::One { end, .. } => ack >= *end,
            Self::Each(_) => true,
        }
    }
}

impl Sender {
    /// All below `ack` is acknowledged: when the first of it went, if each is noted and none of it went again (Linux, `tcp_clean_rtx_queue`).
    pub(super) fn first_of(&mut self, now: Time, ack: u64) -> Option<Time> {
        let again = self.retransmit_counts.any_in(self.una, ack);
        let Timed::Each(notes) = &mut self.timed else { return None };
        notes.on_in_order(now, ack).filter(|_| !again)
    }
}
