//! Timing of ACKs: delayed ACKs (RFC 5681 § 4.2), Linux's quick ACKs, and Linux's compressed ACKs
//! behind a hole.

mod delayed_acks;
mod quick_acks;

use cwnd_quantity::{Duration, Time};

use super::reassembly::Arrival;
use crate::config::Config;
use crate::params::{AckRule, Recovery};
use crate::segment::Segment;
pub(super) use quick_acks::Accepted;
use quick_acks::QuickAcks;

/// Decides when an ACK is sent: at once, after a delay, or once for several duplicates.
#[derive(Clone, Debug)]
#[repr(C)]
pub(super) struct AckPolicy {
    /// Time at which a waiting ACK must be sent; `Time::NEVER` if none waits.
    deadline: Time,
    /// Segments received in order since the last ACK.
    segments: u32,
    /// Low 32 bits of Last.ACK.sent (RFC 7323 § 4.3), as on the wire; a window is smaller than
    /// 2^32.
    acked: u32,
    /// Linux's quick and compressed ACKs; `None` if RFC 5681 alone decides.
    quick: Option<Box<QuickAcks>>,
}

/// Decision when the ACK of a segment is sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Due {
    /// At once.
    Now,
    /// Compressed with other duplicate ACKs of the same hole, unless too few were sent or too many
    /// wait.
    Compressed,
    /// With the ACK of a later segment, or when the timer expires.
    Later,
}

impl AckPolicy {
    /// Number of first SACK blocks; a segment that touches none of them makes compressed ACKs go
    /// before it is accepted.
    pub const BLOCKS: usize = delayed_acks::BLOCKS;

    pub fn new(config: &Config) -> Self {
        let acks = &config.params.acks;
        let sack = config.params.recovery.recovery == Recovery::Sack;
        let quick = (acks.ack_policy == AckRule::Quick)
            .then(|| Box::new(QuickAcks::new(config.mss, acks.ack_delay, sack)));
        Self { deadline: Time::NEVER, segments: 0, acked: 0, quick }
    }

    /// Returns the expiry of the ACK timer; `Time::NEVER` if no ACK waits.
    #[inline]
    pub const fn deadline(&self) -> Time {
        self.deadline
    }

    /// Last.ACK.sent (RFC 7323 § 4.3): the acknowledgement number of the last ACK.
    #[inline]
    pub const fn last_ack_sent(&self, rcv_nxt: u64) -> u64 {
        rcv_nxt - (rcv_nxt as u32).wrapping_sub(self.acked) as u64
    }

    /// `true` if the receiver sends quick and compressed ACKs as Linux does.
    pub const fn is_quick(&self) -> bool {
        self.quick.is_some()
    }

    /// `true` if compressed ACKs wait.
    pub fn is_compressing(&self) -> bool {
        self.quick.as_ref().is_some_and(|quick| quick.is_compressing())
    }

    /// Records the time of the SYN-ACK.
    pub fn on_syn(&mut self, now: Time) {
        if let Some(quick) = &mut self.quick {
            quick.on_syn(now);
        }
    }

    /// Updates quick ACKs after a segment was accepted. Returns `true` if its ACK must not wait.
    #[inline]
    pub fn on_segment(
        &mut self,
        now: Time,
        segment: &Segment,
        accepted: impl FnOnce() -> Accepted,
    ) -> bool {
        self.quick.as_mut().is_some_and(|quick| quick.on_segment(now, segment, &accepted()))
    }

    /// Counts a segment in order. Returns `true` if its ACK is sent now: it is `immediate`, or the
    /// `every`th since the last ACK. Departs from RFC 5681 § 4.2 (at least every second full-sized
    /// segment): short segments count alike.
    #[inline(always)]
    pub const fn count_in_order(&mut self, immediate: bool, every: u32) -> bool {
        self.segments += 1;
        immediate || self.segments >= every
    }

    /// Decides when the ACK of the segment just accepted is sent; `immediate` if it must not wait.
    /// Every `every`th segment in order is acknowledged.
    pub fn due(&mut self, arrival: Arrival, immediate: bool, rcv_nxt: u64, every: u32) -> Due {
        match arrival {
            Arrival::InOrder if self.count_in_order(immediate, every) => Due::Now,
            Arrival::InOrder => Due::Later,
            Arrival::BehindHole if !immediate && self.may_compress(rcv_nxt) => Due::Compressed,
            // RFC 5681 § 4.2: an immediate ACK for a segment out of order, a duplicate, and one
            // that fills a gap.
            Arrival::BehindHole | Arrival::Immediate => Due::Now,
        }
    }

    /// `true` if duplicate ACKs may be compressed: with SACK, and with at most a full segment in
    /// order since the last ACK (Linux, `__tcp_ack_snd_check`).
    fn may_compress(&self, rcv_nxt: u64) -> bool {
        let quick = self.quick.as_ref();
        quick.is_some_and(|quick| quick.may_compress(rcv_nxt - self.last_ack_sent(rcv_nxt)))
    }

    /// Starts the ACK timer unless it runs: `delay` from now, or by Linux's adaptive timer.
    #[inline]
    pub fn wait(&mut self, now: Time, delay: Duration) {
        if self.deadline == Time::NEVER {
            self.deadline = self.delayed(now, delay);
        }
    }

    /// Deadline of a delayed ACK that begins to wait (RFC 9293 § 3.8.6.3).
    #[inline]
    fn delayed(&self, now: Time, delay: Duration) -> Time {
        self.quick.as_ref().map_or_else(|| now + delay, |quick| quick.deadline(now))
    }

    /// Compresses a duplicate ACK that is due. Returns `true` if it waits for others, `false` if it
    /// is sent now.
    pub fn compress(&mut self, now: Time, rcv_nxt: u64) -> bool {
        let Some(quick) = &mut self.quick else { return false };
        let waits = quick.compress(now, rcv_nxt);
        self.deadline = self.deadline.min(waits.unwrap_or(Time::NEVER));
        waits.is_some()
    }

    /// Records an ACK of all below `rcv_nxt`, and stops the ACK timer.
    #[inline]
    pub fn on_ack_sent(&mut self, rcv_nxt: u64) {
        self.segments = 0;
        self.acked = rcv_nxt as u32;
        self.deadline = Time::NEVER;
        if let Some(quick) = &mut self.quick {
            quick.on_ack_sent();
        }
    }

    /// Backs off Linux's ACK timer as it sends a delayed ACK.
    pub fn on_expiry(&mut self) {
        if let Some(quick) = &mut self.quick {
            quick.on_expiry();
        }
    }

    /// Sets the timer to now, to send the pieces of a divided ACK.
    pub const fn send_pieces(&mut self, now: Time) {
        self.deadline = now;
    }

    /// Sets the timer after a piece of a divided ACK: now if `more` follow, by the delayed-ACK
    /// timer if segments arrived since, else off.
    pub fn on_piece_sent(&mut self, now: Time, more: bool, delay: Duration) {
        self.deadline = match (more, self.segments) {
            (true, _) => now,
            (false, 0) => Time::NEVER,
            (false, _) => self.delayed(now, delay),
        };
    }
}
