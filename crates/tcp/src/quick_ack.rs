//! When Linux's receiver acknowledges a segment at once (tcp_input.c, tcp.c): in the first round trips, while its
//! receive window grows, after a mark, and where the sender says that it has no more to send now.

use cwnd_units::{Duration, Time, param_enum};

use crate::segment::{Flags, Segment};

param_enum! {
    /// When ACKs are not delayed.
    pub enum AckPolicy {
        /// On a gap, its filling, or a duplicate only (RFC 5681 § 4.2).
        Rfc5681 = "rfc5681",
        /// Also at the start, while the receive window grows, after the first mark, with CWR, and at the end of each
        /// burst of the sender's (PSH).
        Linux = "linux",
    }
}

/// The counter of quick ACKs (`icsk_ack.quick`), and the growth of the receive window that feeds it.
#[derive(Clone, Copy, Debug)]
pub struct QuickAcks {
    left: u32,
    /// What the window may be already (`rcv_ssthresh`), and what the buffer lets it be (`window_clamp`).
    allowed: u64,
    clamp: u64,
    /// The most that the application read in a round trip (`rcvq_space`).
    space: u64,
    /// Where and when the current measurement of it began.
    from: u64,
    since: Time,
    /// The least one-way delay seen.
    least_delay: Duration,
}

impl QuickAcks {
    pub const fn new(mss: u64) -> Self {
        Self {
            left: FIRST_QUICK_ACKS,
            allowed: FIRST_WINDOW,
            clamp: FIRST_WINDOW,
            space: FIRST_SPACE * mss,
            from: 0,
            since: Time::ZERO,
            least_delay: Duration::MAX,
        }
    }

    /// A data segment was taken in, up to `rcv_nxt`; `first_mark` begins an episode of marks. Says whether an ACK goes
    /// at once.
    pub fn on_segment(
        &mut self,
        now: Time,
        segment: &Segment,
        rcv_nxt: u64,
        first_mark: bool,
    ) -> bool {
        if first_mark {
            self.left = self.left.max(QUICK_ACKS_OF_A_MARK);
        }
        if self.allowed < self.clamp {
            self.allowed = (self.allowed + GROWTH * u64::from(segment.len)).min(self.clamp);
            self.left |= 1;
        }
        let at_once = self.left > 0
            || segment.flags.has(Flags::PSH)
            || segment.flags.has(Flags::CWR) && segment.len > 0;
        self.on_read(now, now.since(segment.ts), rcv_nxt);
        at_once
    }

    pub const fn on_ack_sent(&mut self) {
        self.left = self.left.saturating_sub(1);
    }

    /// The application reads at once; each round trip in which it read more than in any before makes the buffer twice
    /// that, and more if it grew by much (`tcp_rcv_space_adjust`, `tcp_rcvbuf_grow`).
    ///
    /// Departs from Linux, which learns the round trip from its own timestamps: the way back is taken to last as long
    /// as the least way here.
    fn on_read(&mut self, now: Time, delay: Duration, rcv_nxt: u64) {
        self.least_delay = self.least_delay.min(delay);
        if now.since(self.since) < delay + self.least_delay {
            return;
        }
        let read = rcv_nxt - self.from;
        if read > self.space {
            let doubled = 2 * read;
            // Counts are of a round trip: far below 2^32, so that the product fits.
            let growth = doubled * (read - self.space) / self.space;
            self.clamp = self.clamp.max(doubled + 2 * growth);
            self.space = read;
        }
        self.from = rcv_nxt;
        self.since = now;
    }
}

// Linux, include/net/tcp.h and net/ipv4/tcp_input.c.
/// ACKs at once when a connection begins (`TCP_MAX_QUICKACKS`).
const FIRST_QUICK_ACKS: u32 = 16;
/// ACKs at once after the first mark of an episode (`tcp_ecn_check_ce`).
const QUICK_ACKS_OF_A_MARK: u32 = 2;
/// First receive window: half of the default buffer (`tcp_rmem`), bytes.
const FIRST_WINDOW: u64 = 65_536;
/// What is taken to be read in a round trip at first, in segments (`tcp_init_buffer_space`).
const FIRST_SPACE: u64 = 10;
/// Bytes that the window grows for each byte that arrives (`tcp_grow_window`).
const GROWTH: u64 = 2;

#[cfg(test)]
mod tests {
    use cwnd_units::Ecn;

    use super::*;

    const MSS: u64 = 1000;

    fn segment(seq: u64, sent: Time, flags: Flags) -> Segment {
        Segment {
            seq,
            ts: sent,
            len: MSS as u32,
            window: 0,
            feedback: 0,
            wire: 1040,
            flags,
            ecn: Ecn::Ect0,
            sack: Default::default(),
        }
    }

    /// Segments a millisecond apart, 10 ms on the way; says which are acknowledged at once, where every second is
    /// acknowledged anyway.
    fn quick(acks: &mut QuickAcks, from: u64, count: u64) -> u64 {
        (from..from + count)
            .filter(|n| {
                let now = Time(n * 1_000_000) + Duration::from_millis(10);
                let at = segment(n * MSS, Time(n * 1_000_000), Flags::default());
                let at_once = acks.on_segment(now, &at, (n + 1) * MSS, false);
                if at_once {
                    acks.on_ack_sent();
                }
                at_once
            })
            .count() as u64
    }

    /// 20 segments a round trip of 20 ms. At 20 ms eleven have been read where ten were taken for granted, which gives
    /// no more than the first window; at 40 ms, with segment 30, twenty: 40 000 + 2 · (40 000 · 9/11) = 105 454 B, which is
    /// 39 918 B above 65 536 B and takes 20 segments of 2000 B. Later round trips bring no more.
    #[test]
    fn sixteen_acks_go_at_once_and_then_one_for_each_segment_while_the_window_grows() {
        let mut acks = QuickAcks::new(MSS);
        assert_eq!(quick(&mut acks, 0, 16), 16);
        assert_eq!(quick(&mut acks, 16, 15), 0);
        assert_eq!(quick(&mut acks, 31, 20), 20);
        assert_eq!(quick(&mut acks, 51, 200), 0);
    }

    #[test]
    fn a_mark_gives_two_and_a_push_one() {
        let mut acks = QuickAcks::new(MSS);
        assert_eq!(quick(&mut acks, 0, 300), 16 + 20);
        let mut at_once = |n: u64, flags, mark| {
            let sent = Time(n * 1_000_000);
            let now = sent + Duration::from_millis(10);
            let yes = acks.on_segment(now, &segment(n * MSS, sent, flags), (n + 1) * MSS, mark);
            if yes {
                acks.on_ack_sent();
            }
            yes
        };
        assert!(at_once(300, Flags::default(), true));
        assert!(at_once(301, Flags::default(), false));
        assert!(!at_once(302, Flags::default(), false));
        assert!(at_once(303, Flags::PSH, false));
        assert!(at_once(304, Flags::CWR, false));
        assert!(!at_once(305, Flags::default(), false));
    }
}
