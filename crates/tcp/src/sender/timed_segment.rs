//! RTT measurement by one segment per round trip (RFC 6298 § 3), and Karn's algorithm.

use cwnd_quantity::Time;

use super::Sender;

/// The timed segment, if there is one.
#[derive(Clone, Copy, Debug)]
pub(super) struct TimedSegment {
    /// End of the timed segment; zero if none is timed, and [`OFF`] if none ever is.
    end: u64,
    sent: Time,
}

const OFF: u64 = u64::MAX;

impl TimedSegment {
    /// No timed segment yet; with `times` false there never is one.
    pub const fn new(times: bool) -> Self {
        Self { end: if times { 0 } else { OFF }, sent: Time::ZERO }
    }

    /// Times a segment that ends at `end` and is sent for the first time, if none is timed.
    pub const fn on_sent(&mut self, end: u64, now: Time) {
        if self.end == 0 {
            *self = Self { end, sent: now };
        }
    }

    /// Stops timing after a retransmission, as an ACK may be for either transmission (Karn &
    /// Partridge 1987).
    pub const fn forget(&mut self) {
        if self.end != OFF {
            self.end = 0;
        }
    }

    /// Takes the send time of the timed segment if `ack` acknowledges it.
    pub fn take(&mut self, ack: u64) -> Option<Time> {
        self.is_over(ack).then(|| {
            self.end = 0;
            self.sent
        })
    }

    /// `true` if `ack` acknowledges the timed segment.
    pub const fn is_over(self, ack: u64) -> bool {
        self.end > 0 && ack >= self.end
    }
}

impl Sender {
    /// Send time of the first segment below `ack`, from the log of send times; `None` if any of the
    /// acknowledged data was retransmitted (Linux `tcp_clean_rtx_queue`).
    pub(super) fn first_send_time(&mut self, ack: u64) -> Option<Time> {
        let (first, _) = self.sent.take_in_order(ack);
        first.filter(|_| !self.sent.any_retransmitted(self.seq.una(), ack))
    }
}
