//! The segment that is timed, one a round trip (RFC 6298 § 3), and Karn's algorithm.

use cwnd_quantity::Time;

use super::Sender;

/// A segment that is timed, if any is.
#[derive(Clone, Copy, Debug)]
pub(super) struct TimedSegment {
    /// Its end; zero if none is timed, and [`OFF`] if none ever is.
    end: u64,
    sent: Time,
}

const OFF: u64 = u64::MAX;

impl TimedSegment {
    /// No segment is timed yet; none will be unless it `times` one a round trip.
    pub const fn new(times: bool) -> Self {
        Self { end: if times { 0 } else { OFF }, sent: Time::ZERO }
    }

    /// A segment that ends at `end` goes for the first time.
    pub const fn on_sent(&mut self, end: u64, now: Time) {
        if self.end == 0 {
            *self = Self { end, sent: now };
        }
    }

    /// Data goes again: the segment may no longer be told from its repetition (Karn & Partridge
    /// 1987).
    pub const fn forget(&mut self) {
        if self.end != OFF {
            self.end = 0;
        }
    }

    /// Send time of the segment, which is timed no more, if an ACK acknowledges it.
    pub fn take(&mut self, ack: u64) -> Option<Time> {
        self.is_over(ack).then(|| {
            self.end = 0;
            self.sent
        })
    }

    /// `true` if an ACK acknowledges the segment.
    pub const fn is_over(self, ack: u64) -> bool {
        self.end > 0 && ack >= self.end
    }
}

impl Sender {
    /// All below `ack` is acknowledged: when the first of it went, if that is noted and none of it
    /// went again (Linux, `tcp_clean_rtx_queue`).
    pub(super) fn first_of(&mut self, ack: u64) -> Option<Time> {
        let (first, _) = self.sent.take_in_order(ack);
        first.filter(|_| !self.sent.any_again(self.seq.una(), ack))
    }
}
