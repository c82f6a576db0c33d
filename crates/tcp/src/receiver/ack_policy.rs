//! Timing of ACKs: delayed ACKs (RFC 5681 § 4.2), Linux's quick ACKs, and Linux's compressed ACKs
//! behind a hole.

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
    pub const BLOCKS: usize = BLOCKS;

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

/// Adaptive wait of delayed ACKs, in ticks (`icsk_ack.ato`). It doubles after each ACK that it
/// sends, follows the pauses between segments, and is bounded by a round trip longer than the first
/// wait. All of it counts whole ticks of the kernel's clock. The rounding matters: an ACK that
/// waited delays the next segment, and that pause is measured in turn.
#[derive(Clone, Copy, Debug)]
pub struct AckTimer {
    /// First wait in ticks (`TCP_ATO_MIN`, `TCP_DELACK_MIN`). It is the least one, too, unless the
    /// timeout is shorter; if it is odd, the least is a tick less, as its half is rounded down.
    min_wait: u32,
    wait: u32,
}

impl AckTimer {
    pub fn new(min_wait: Duration) -> Self {
        let min_wait = ticks(min_wait);
        Self { min_wait, wait: min_wait }
    }

    /// Resets the wait when quick ACKs end or begin (`tcp_dec_quickack_mode`,
    /// `tcp_enter_quickack_mode`).
    pub const fn reset(&mut self) {
        self.wait = self.min_wait;
    }

    /// Adapts the wait to the pause since `last`, the arrival of the previous segment in order.
    /// `timeout` is the receiver's own retransmission timeout, an upper bound
    /// (`tcp_event_data_recv`).
    pub fn on_segment(&mut self, last: Time, now: Time, timeout: impl FnOnce() -> Duration) {
        let half = self.min_wait / 2;
        // A pause of at most `half` ticks crosses at most `half` tick boundaries, so the divisions
        // are skipped.
        let is_short = now.since(last).0 <= TICK.0 * u64::from(half);
        let pause = if is_short { 0 } else { now.0 / TICK.0 - last.0 / TICK.0 };
        let pause = u32::try_from(pause).unwrap_or(u32::MAX);
        if pause <= half {
            self.wait = self.wait / 2 + half;
        } else if pause < self.wait {
            self.wait = (self.wait / 2 + pause).min(ticks(timeout()));
        }
    }

    /// Doubles the wait, up to `timeout`, after the timer sent an ACK (`tcp_delack_timer_handler`).
    pub fn on_expiry(&mut self, timeout: Duration) {
        self.wait = self.wait.saturating_mul(2).min(ticks(timeout));
    }

    /// Deadline of an ACK that begins to wait now, after a handshake with a round trip of `rtt`
    /// (`tcp_send_delayed_ack`).
    ///
    /// A timer never expires early: the tick that has begun does not count (kernel/time/timer.c,
    /// `calc_index`).
    pub fn deadline(&self, now: Time, rtt: Duration) -> Time {
        let wait = self.wait.min(ticks(rtt).min(MAX_WAIT).max(self.min_wait));
        Time((now.0 / TICK.0 + u64::from(wait) + 1) * TICK.0)
    }
}

/// Converts a duration to ticks, rounded up (`usecs_to_jiffies`).
fn ticks(time: Duration) -> u32 {
    u32::try_from(time.0.div_ceil(TICK.0)).unwrap_or(u32::MAX)
}

/// Tick of a kernel at 250 Hz, like Debian's.
const TICK: Duration = Duration::from_millis(4);
/// `tcp_delack_max` in ticks: the least timeout of 200 ms less a tick.
const MAX_WAIT: u32 = 49;

/// Counts of duplicate ACKs sent and compressed (tcp_input.c, `__tcp_ack_snd_check` and
/// `tcp_sack_new_ofo_skb`): after the first duplicates, one ACK reports the arrivals of up to a
/// millisecond.
#[derive(Clone, Copy, Debug)]
pub struct CompressedAcks {
    /// Duplicate ACKs that wait to be sent as one (`compressed_ack`).
    waiting: u32,
    /// Duplicate ACKs sent at once (`dup_ack_counter`), and their acknowledgement number.
    sent: u32,
    of: u64,
}

impl CompressedAcks {
    pub const fn new() -> Self {
        Self { waiting: 0, sent: 0, of: 0 }
    }

    /// Counts the ACK of a segment behind a hole at `rcv_nxt`. Returns `true` if it is sent at
    /// once; else it waits.
    pub const fn sends_at_once(&mut self, rcv_nxt: u64) -> bool {
        if self.waiting >= MAX_WAITING {
            return true;
        }
        if self.of != rcv_nxt {
            self.of = rcv_nxt;
            self.sent = 0;
        }
        if self.sent < FIRST_DUPLICATES {
            self.sent += 1;
            return true;
        }
        self.waiting += 1;
        false
    }

    pub const fn is_waiting(&self) -> bool {
        self.waiting > 0
    }

    pub const fn on_ack_sent(&mut self) {
        self.waiting = 0;
    }
}

/// Time for which the first compressed ACK waits, from the round-trip time.
pub fn compression_delay(rtt: Duration) -> Duration {
    MAX_DELAY.min(Duration(rtt.0 / RTT_DIVISOR)) + SLACK
}

/// Number of first SACK blocks one of which must touch a new segment. Else the waiting ACK is sent
/// first, so that a lost ACK loses little information (`TCP_SACK_BLOCKS_EXPECTED`).
pub const BLOCKS: usize = 2;

// Linux 6.18, net/ipv4/tcp_ipv4.c (tcp_sk_init) and Documentation/networking/ip-sysctl.rst.
/// Duplicate ACKs sent at once, for the sender's fast retransmit (`TCP_FASTRETRANS_THRESH`).
const FIRST_DUPLICATES: u32 = 3;
/// Duplicate ACKs that may wait (`tcp_comp_sack_nr`).
const MAX_WAITING: u32 = 44;
/// Longest wait (`tcp_comp_sack_delay_ns`), and its bound as a fraction of a round trip.
const MAX_DELAY: Duration = Duration::from_millis(1);
const RTT_DIVISOR: u64 = 20;
/// Slack of the timer (`tcp_comp_sack_slack_ns`); it expires that late when nothing else wakes the
/// host.
const SLACK: Duration = Duration::from_micros(100);

#[cfg(test)]
mod tests {
    use super::*;

    const fn ms(count: u64) -> Duration {
        Duration::from_millis(count)
    }

    /// Wait in ms of an ACK that begins to wait at a tick boundary, without the tick that has
    /// begun.
    fn wait(timer: &AckTimer, rtt: u64) -> u64 {
        (timer.deadline(Time(8_000_000), ms(rtt)).0 - 8_000_000) / 1_000_000 - 4
    }

    /// By hand: 40, 80, 160 ms, and at most the timeout of 300 ms; no ACK waits for more than 196
    /// ms, or a round trip of 100 ms.
    #[test]
    fn each_ack_that_the_timer_sends_doubles_the_wait() {
        let mut timer = AckTimer::new(ms(40));
        let waits = [(); 5].map(|()| {
            let waits = (timer.wait * 4, wait(&timer, 400), wait(&timer, 100), wait(&timer, 5));
            timer.on_expiry(ms(300));
            waits
        });
        let last = (300, 196, 100, 40);
        assert_eq!(waits, [(40, 40, 40, 40), (80, 80, 80, 40), (160, 160, 100, 40), last, last]);
    }

    /// By hand, in ticks: a pause of 7 gives 10 / 2 + 7, the next ones approach 14; a pause of 20
    /// changes nothing; pauses of up to 5 bring the wait back to 10.
    #[test]
    fn pauses_shorter_than_the_wait_move_it() {
        let mut timer = AckTimer::new(ms(40));
        let mut at = Time::ZERO;
        let mut after = |pause: u64| {
            let last = at;
            at = last + ms(4 * pause);
            timer.on_segment(last, at, || ms(300));
            timer.wait
        };
        assert_eq!([7, 7, 20].map(&mut after), [12, 13, 13]);
        assert_eq!([12, 5, 0, 1, 1, 1].map(&mut after), [18, 14, 12, 11, 10, 10]);
    }

    /// A pause of 38.8 ms spans nine or ten ticks, and ten are not below the wait of ten.
    #[test]
    fn pauses_count_ticks_that_begin() {
        for (last, ticks) in [(3_900_000, 10), (100_000, 14)] {
            let mut timer = AckTimer::new(ms(40));
            timer.on_segment(Time(last), Time(last + 38_800_000), || ms(300));
            assert_eq!(timer.wait, ticks);
        }
    }

    /// A timer does not expire early: ACKs that begin to wait within one tick are sent at the same
    /// instant.
    #[test]
    fn an_ack_waits_for_whole_ticks() {
        let timer = AckTimer::new(ms(40));
        for now in [8_000_000, 9_000_000, 11_999_999] {
            assert_eq!(timer.deadline(Time(now), ms(100)), Time(52_000_000));
        }
    }

    #[test]
    fn the_wait_ends_at_the_timeout() {
        let mut timer = AckTimer::new(ms(40));
        timer.on_expiry(ms(72));
        timer.on_segment(Time::ZERO, Time(68_000_000), || ms(72));
        assert_eq!(timer.wait, 18);
    }

    #[test]
    fn three_duplicates_go_then_44_wait_and_each_advance_begins_anew() {
        let mut acks = CompressedAcks::new();
        let sent_at_once = (0..50).filter(|_| acks.sends_at_once(1000)).count();
        assert_eq!(sent_at_once, 3 + (50 - 3 - 44));
        acks.on_ack_sent();
        assert!(!acks.is_waiting());
        assert!(!acks.sends_at_once(1000), "the same hole: it waits again");
        assert!(acks.sends_at_once(2000), "another hole");
    }

    #[test]
    fn a_twentieth_of_the_round_trip_and_no_more_than_a_millisecond() {
        assert_eq!(compression_delay(Duration::from_millis(10)), Duration::from_micros(500 + 100));
        assert_eq!(
            compression_delay(Duration::from_millis(100)),
            Duration::from_micros(1000 + 100)
        );
    }
}
