//! Times at which a receiver acknowledges: delayed ACKs (RFC 5681 § 4.2), and those that Linux
//! sends at once or holds back behind a hole.

mod ack_timer;
mod compressed_acks;
mod quick_acks;

use cwnd_quantity::{Duration, Time};

use super::reassembly::Arrival;
use crate::config::Config;
use crate::params::{AckRule, Recovery};
use crate::segment::Segment;
use quick_acks::QuickAcks;
pub(super) use quick_acks::Taken;

/// Decides when an ACK goes: at once, after a delay, or for several duplicates.
#[derive(Clone, Debug)]
#[repr(C)]
pub(super) struct AckPolicy {
    /// Time when a delayed ACK must go; `Time::NEVER` if none is held.
    deadline: Time,
    /// Segments received in order since the last ACK.
    segments: u32,
    /// Last.ACK.sent (RFC 7323 § 4.3), its low 32 bits as on the wire: a window spans fewer.
    acked: u32,
    /// Linux's quick and compressed ACKs; `None` if RFC 5681 alone decides.
    quick: Option<Box<QuickAcks>>,
}

/// Time at which the ACK of a segment goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Due {
    /// At once.
    Now,
    /// With those of other segments behind the same hole, unless too few or too many went before.
    Compressed,
    /// With the ACK of a later segment, or when the timer expires.
    Later,
}

impl AckPolicy {
    /// SACK blocks whose neighbourhood a segment must be in to be reported with ACKs that wait.
    pub const BLOCKS: usize = compressed_acks::BLOCKS;

    pub fn new(config: &Config) -> Self {
        let acks = &config.params.acks;
        let sack = config.params.recovery.recovery == Recovery::Sack;
        let quick = (acks.ack_policy == AckRule::Quick)
            .then(|| Box::new(QuickAcks::new(config.mss, acks.ack_delay, sack)));
        Self { deadline: Time::NEVER, segments: 0, acked: 0, quick }
    }

    /// Time at which the timer expires; `Time::NEVER` if no ACK waits.
    #[inline]
    pub const fn deadline(&self) -> Time {
        self.deadline
    }

    /// Last.ACK.sent (RFC 7323 § 4.3): the acknowledgement number of the last ACK.
    #[inline]
    pub const fn last_ack_sent(&self, rcv_nxt: u64) -> u64 {
        rcv_nxt - (rcv_nxt as u32).wrapping_sub(self.acked) as u64
    }

    /// `true` if it departs from RFC 5681 as Linux does.
    pub const fn is_quick(&self) -> bool {
        self.quick.is_some()
    }

    /// `true` if an ACK that waits reports several duplicates.
    pub fn is_compressing(&self) -> bool {
        self.quick.as_ref().is_some_and(|quick| quick.is_compressing())
    }

    /// A SYN was answered.
    pub fn on_syn(&mut self, now: Time) {
        if let Some(quick) = &mut self.quick {
            quick.on_syn(now);
        }
    }

    /// A data segment was taken in. Returns `true` if its ACK must not wait.
    #[inline]
    pub fn on_segment(
        &mut self,
        now: Time,
        segment: &Segment,
        taken: impl FnOnce() -> Taken,
    ) -> bool {
        self.quick.as_mut().is_some_and(|quick| quick.on_segment(now, segment, &taken()))
    }

    /// Counts a segment in order. Returns `true` if its ACK goes now: it must not wait, or it
    /// is the `every`th (RFC 5681 § 4.2: at least every second full-sized segment; departs from it
    /// in that short segments count alike).
    #[inline(always)]
    pub const fn count_in_order(&mut self, hurries: bool, every: u32) -> bool {
        self.segments += 1;
        hurries || self.segments >= every
    }

    /// Time of the ACK of the segment just taken in; `hurries` if it must not wait. Every `every`th
    /// segment is acknowledged.
    pub fn due(&mut self, arrival: Arrival, hurries: bool, rcv_nxt: u64, every: u32) -> Due {
        match arrival {
            Arrival::InOrder if self.count_in_order(hurries, every) => Due::Now,
            Arrival::InOrder => Due::Later,
            Arrival::BehindHole if !hurries && self.may_compress(rcv_nxt) => Due::Compressed,
            // RFC 5681 § 4.2: at once for a segment out of order, a duplicate, and one that fills
            // a gap.
            Arrival::BehindHole | Arrival::Else => Due::Now,
        }
    }

    /// `true` unless more than a full segment was delivered since the last ACK (Linux,
    /// `__tcp_ack_snd_check`).
    fn may_compress(&self, rcv_nxt: u64) -> bool {
        let quick = self.quick.as_ref();
        quick.is_some_and(|quick| quick.may_compress(rcv_nxt - self.last_ack_sent(rcv_nxt)))
    }

    /// An ACK waits until the timer expires, which `delay` sets unless pauses between segments do.
    #[inline]
    pub fn wait(&mut self, now: Time, delay: Duration) {
        if self.deadline == Time::NEVER {
            self.deadline = self.delayed(now, delay);
        }
    }

    /// Deadline of an ACK that begins to wait (RFC 9293 § 3.8.6.3).
    #[inline]
    fn delayed(&self, now: Time, delay: Duration) -> Time {
        self.quick.as_ref().map_or_else(|| now + delay, |quick| quick.deadline(now))
    }

    /// A duplicate ACK is due. Returns `true` if it waits to be sent with others.
    pub fn compress(&mut self, now: Time, rcv_nxt: u64) -> bool {
        let Some(quick) = &mut self.quick else { return false };
        let waits = quick.compress(now, rcv_nxt);
        self.deadline = self.deadline.min(waits.unwrap_or(Time::NEVER));
        waits.is_some()
    }

    /// An ACK of all below `rcv_nxt` goes: nothing waits any more.
    #[inline]
    pub fn on_ack_sent(&mut self, rcv_nxt: u64) {
        self.segments = 0;
        self.acked = rcv_nxt as u32;
        self.deadline = Time::NEVER;
        if let Some(quick) = &mut self.quick {
            quick.on_ack_sent();
        }
    }

    /// The timer sends the ACK that waited.
    pub fn on_expiry(&mut self) {
        if let Some(quick) = &mut self.quick {
            quick.on_expiry();
        }
    }

    /// An ACK was divided: the timer sends its pieces at this instant.
    pub const fn send_pieces(&mut self, now: Time) {
        self.deadline = now;
    }

    /// A piece was sent, and there are more, or segments wait that came since.
    pub fn on_piece_sent(&mut self, now: Time, more: bool, delay: Duration) {
        self.deadline = match (more, self.segments) {
            (true, _) => now,
            (false, 0) => Time::NEVER,
            (false, _) => self.delayed(now, delay),
        };
    }
}
