//! Quick ACKs of Linux's receiver (tcp_input.c, tcp.c): ACKs sent at once in the first round trips,
//! while the receive window grows, after a mark, a duplicate or a long pause, and at the end of the
//! sender's bursts (PSH).

use cwnd_packet::Ecn;
use cwnd_quantity::{Duration, Time};

use super::{AckTimer, CompressedAcks, compression_delay};
use crate::segment::{Flags, Segment};

/// Count of quick ACKs (`icsk_ack.quick`), and the growth of the receive window that feeds it.
// Two cache lines, which each segment reads: hence the alignment.
#[derive(Clone, Copy, Debug)]
#[repr(align(64))]
pub struct QuickAcks {
    left: u32,
    /// Duplicate ACKs that wait (ACK compression).
    compressed: CompressedAcks,
    /// `true` if duplicate ACKs may be compressed, which needs SACK.
    compresses: bool,
    timer: AckTimer,
    /// `true` once data was ECN-capable: a segment without ECT then counts as a retransmission.
    seen_ect: bool,
    mss: u64,
    /// Window that may be advertised (`rcv_ssthresh`), and the window that the buffer holds
    /// (`window_clamp`), in bytes.
    allowed: u64,
    clamp: u64,
    /// Most bytes that the application read in a round trip (`rcvq_space`).
    space: u64,
    /// Sequence number and time at which the current measurement of `space` began.
    from: u64,
    since: Time,
    /// Round-trip time estimated by the receiver (`rcv_rtt_est`); `None` before the first sample.
    rtt: Option<Duration>,
    /// Least one-way delay of data.
    min_delay: Duration,
    /// Time of the SYN-ACK, and the delay on the path of ACKs that it measured.
    syn_ack_at: Time,
    ack_path_delay: Duration,
    /// Arrival time of the last data in order (`lrcvtime`).
    last_data: Time,
}

/// State of the receiver after it accepted a data segment.
#[derive(Clone, Copy, Debug)]
pub struct Accepted {
    /// Next byte expected after the segment.
    pub rcv_nxt: u64,
    /// One past the highest byte received.
    pub highest: u64,
    /// `true` if the segment ended at or below the next byte expected before it.
    pub duplicate: bool,
    /// `true` if the segment's mark begins an episode of ECE.
    pub first_mark: bool,
}

impl QuickAcks {
    /// Creates the state at the start of a connection: ACKs are delayed by `delay` at first, and
    /// `compresses` allows compressed ACKs.
    pub fn new(mss: u64, delay: Duration, compresses: bool) -> Self {
        Self {
            left: FIRST_QUICK_ACKS,
            compressed: CompressedAcks::new(),
            compresses,
            timer: AckTimer::new(delay),
            seen_ect: false,
            mss,
            allowed: FIRST_WINDOW / mss * mss,
            clamp: in_window(FIRST_BUFFER),
            space: FIRST_SPACE * mss,
            from: 0,
            since: Time::ZERO,
            rtt: None,
            min_delay: Duration::MAX,
            syn_ack_at: Time::NEVER,
            ack_path_delay: Duration::MAX,
            last_data: Time::NEVER,
        }
    }

    pub const fn on_syn(&mut self, now: Time) {
        self.syn_ack_at = now;
    }

    /// Updates counts, estimates and window after a segment was accepted. Returns `true` if its ACK
    /// is sent at once.
    pub fn on_segment(&mut self, now: Time, segment: &Segment, accepted: &Accepted) -> bool {
        self.min_delay = self.min_delay.min(now.since(segment.ts));
        if self.rtt.is_none() {
            // The first measurement begins with the last ACK of the handshake, which data follows.
            self.since = now;
            if self.syn_ack_at < segment.ts {
                self.ack_path_delay = segment.ts.since(self.syn_ack_at);
            }
        }
        self.count(now, segment, accepted);
        let at_once = self.left > 0
            || segment.flags.has(Flags::PSH)
            || segment.flags.has(Flags::CWR) && segment.len > 0;
        self.take_rtt(now, segment.ts);
        if accepted.rcv_nxt < accepted.highest {
            // Data behind a hole occupies the buffer, too (`tcp_data_queue_ofo`).
            self.make_room(2 * self.space + (accepted.highest - accepted.rcv_nxt));
        }
        self.on_read(now, accepted.rcv_nxt);
        at_once
    }

    pub const fn on_ack_sent(&mut self) {
        if self.left > 0 {
            self.left -= 1;
            if self.left == 0 {
                self.timer.reset();
            }
        }
        self.compressed.on_ack_sent();
    }

    /// Deadline of a delayed ACK that begins to wait now.
    pub fn deadline(&self, now: Time) -> Time {
        self.timer.deadline(now, self.handshake())
    }

    /// Backs off the timer as it sends a delayed ACK; compressed ACKs leave it alone.
    pub fn on_expiry(&mut self) {
        if !self.compressed.is_waiting() {
            self.timer.on_expiry(timeout(self.handshake()));
        }
    }

    /// `true` if compressed ACKs wait.
    pub const fn is_compressing(&self) -> bool {
        self.compressed.is_waiting()
    }

    /// `true` if a duplicate ACK may wait while `unacked` bytes in order are not acknowledged: with
    /// SACK and at most a full segment (`__tcp_ack_snd_check`).
    pub const fn may_compress(&self, unacked: u64) -> bool {
        self.compresses && unacked <= self.mss
    }

    /// Compresses a duplicate ACK of all below `rcv_nxt`. Returns the time until which it waits,
    /// `Time::NEVER` if an earlier one set the timer; `None` if it is sent at once.
    pub fn compress(&mut self, now: Time, rcv_nxt: u64) -> Option<Time> {
        let first = !self.compressed.is_waiting();
        if self.compressed.sends_at_once(rcv_nxt) {
            return None;
        }
        Some(if first { now + self.compression() } else { Time::NEVER })
    }

    /// Time for which the first compressed ACK waits.
    fn compression(&self) -> Duration {
        let handshake = self.handshake();
        compression_delay(self.rtt.map_or(handshake, |rtt| rtt.min(handshake)))
    }

    /// Round-trip time of the handshake: least one-way delay of data plus the delay on the path of
    /// ACKs, at most as much again.
    fn handshake(&self) -> Duration {
        self.min_delay + self.ack_path_delay.min(self.min_delay)
    }

    /// Grants quick ACKs for a duplicate, a mark, a retransmission or a larger window
    /// (`tcp_event_data_recv`, `tcp_data_queue`).
    fn count(&mut self, now: Time, segment: &Segment, accepted: &Accepted) {
        if accepted.duplicate {
            self.left = self.left.max(FIRST_QUICK_ACKS);
            self.timer.reset();
            return;
        }
        if segment.end() <= accepted.rcv_nxt {
            self.on_data(now);
        }
        let capable = segment.ecn != Ecn::NotEct;
        if accepted.first_mark || self.seen_ect && !capable {
            self.left = self.left.max(QUICK_ACKS_OF_A_MARK);
            self.timer.reset();
        }
        self.seen_ect |= capable;
        // Unread data occupies the buffer (`tcp_space`): this segment, or all behind a hole.
        let unread = (accepted.highest - accepted.rcv_nxt).max(self.mss);
        let room = self.clamp.saturating_sub(unread);
        if self.allowed < room && segment.len >= MIN_TO_GROW {
            let growth = GROWTH * self.mss.max(u64::from(segment.len));
            self.allowed = (self.allowed + growth).min(room);
            // As `icsk_ack.quick |= 1`: at least the ACK of this segment is sent at once.
            self.left |= 1;
        }
    }

    /// Adapts the ACK timer to data in order, and grants quick ACKs after a pause longer than the
    /// timeout.
    fn on_data(&mut self, now: Time) {
        if self.last_data != Time::NEVER {
            let handshake = self.handshake();
            self.timer.on_segment(self.last_data, now, || timeout(handshake));
            let pause = now.since(self.last_data);
            // The least timeout is compared first, so that most pauses skip computing the timeout.
            if pause > MIN_RTO && pause > timeout(handshake) {
                self.left = self.left.max(FIRST_QUICK_ACKS);
            }
        }
        self.last_data = now;
    }

    /// Updates the receiver's RTT estimate: it falls at once and rises by an eighth of the
    /// difference (`tcp_rcv_rtt_update`).
    ///
    /// Departs from Linux, which reads its own echoed timestamps: the delay on the path of ACKs is
    /// taken from the handshake, at most the least one-way delay of data.
    fn take_rtt(&mut self, now: Time, sent: Time) {
        // Linux's timestamps have a resolution of 1 ms (`tcp_rtt_tsopt_us`).
        let requested = sent.0.saturating_sub(self.ack_path_delay.min(self.min_delay).0);
        let sample =
            Duration::from_millis((now.0 / TICK.0).saturating_sub(requested / TICK.0).max(1));
        self.rtt = Some(match self.rtt {
            Some(rtt) if rtt < sample => Duration(rtt.0 - rtt.0 / 8 + sample.0 / 8),
            _ => sample,
        });
    }

    /// Grows the buffer once a round trip: to twice the bytes read, and more after fast growth, if
    /// the application read more than in any round trip before (`tcp_rcv_space_adjust`,
    /// `tcp_rcvbuf_grow`). The application reads at once.
    fn on_read(&mut self, now: Time, rcv_nxt: u64) {
        if self.rtt.is_none_or(|rtt| now.since(self.since) < rtt) {
            return;
        }
        let read = rcv_nxt - self.from;
        if read > self.space {
            let doubled = 2 * read;
            // Both factors are bytes of a round trip, far below 2^32: the product fits in 64 bits.
            let growth = doubled * (read - self.space) / self.space;
            self.space = read;
            self.make_room(doubled + 2 * growth);
        }
        self.from = rcv_nxt;
        self.since = now;
    }

    const fn make_room(&mut self, window: u64) {
        let max_window = in_window(LARGEST_BUFFER);
        let window = if window < max_window { window } else { max_window };
        if window > self.clamp {
            self.clamp = window;
        }
    }
}

/// The receiver's own retransmission timeout, from the round-trip time of the handshake.
fn timeout(handshake: Duration) -> Duration {
    handshake + (handshake + handshake).max(MIN_RTO)
}

/// Window in bytes that a buffer of `buffer` bytes allows, less the memory of headers and padding
/// (`scaling_ratio`).
const fn in_window(buffer: u64) -> u64 {
    buffer * SEGMENT_IN_MEMORY / 256
}

// Linux, include/net/tcp.h, net/ipv4/tcp_input.c and tcp_output.c.
/// Quick ACKs at the start of a connection, after an idle time and after a duplicate
/// (`TCP_MAX_QUICKACKS`).
const FIRST_QUICK_ACKS: u32 = 16;
/// Quick ACKs after the first mark of an episode, and after a segment without ECT among others
/// (`tcp_data_ecn_check`).
const QUICK_ACKS_OF_A_MARK: u32 = 2;
/// Bound of the first receive window, bytes; the window is rounded down to whole segments
/// (`tcp_select_initial_window`).
const FIRST_WINDOW: u64 = 65_535;
/// First and largest receive buffer, bytes (`tcp_rmem`).
const FIRST_BUFFER: u64 = 131_072;
const LARGEST_BUFFER: u64 = 33_554_432;
/// Payload bytes in 256 bytes of buffer: a full segment of 1448 B occupies 2304 B (2 KiB and its
/// descriptor).
const SEGMENT_IN_MEMORY: u64 = 160;
/// Segments assumed to be read in the first round trip (`tcp_init_buffer_space`).
const FIRST_SPACE: u64 = 10;
/// Segments by which the window grows for each segment of at least `MIN_TO_GROW` bytes
/// (`tcp_grow_window`).
const GROWTH: u64 = 2;
const MIN_TO_GROW: u32 = 128;
/// Resolution of Linux's timestamp clock (`TCP_TS_HZ`).
const TICK: Duration = Duration::from_millis(1);
/// `TCP_RTO_MIN`.
const MIN_RTO: Duration = Duration::from_millis(200);

#[cfg(test)]
mod tests {
    use cwnd_packet::Ecn;

    use super::*;
    use crate::segment::Body;

    const MSS: u64 = 1000;

    fn segment(seq: u64, sent: Time, flags: Flags) -> Segment {
        Segment {
            seq,
            ts: sent,
            len: MSS as u32,
            wire: 1040,
            flags,
            ecn: Ecn::Ect0,
            body: Body::DATA,
        }
    }

    fn accepted(segments: u64, first_mark: bool) -> Accepted {
        let rcv_nxt = segments * MSS;
        Accepted { rcv_nxt, highest: rcv_nxt, duplicate: false, first_mark }
    }

    /// Delivers segment n, sent at 1 s + n ms with a delay of 10 ms; returns `true` if its ACK is
    /// sent at once.
    fn arrives(acks: &mut QuickAcks, n: u64, flags: Flags, first_mark: bool) -> bool {
        let sent = Time((1000 + n) * 1_000_000);
        let at = segment(n * MSS, sent, flags);
        let now = sent + Duration::from_millis(10);
        let at_once = acks.on_segment(now, &at, &accepted(n + 1, first_mark));
        if at_once {
            acks.on_ack_sent();
        }
        at_once
    }

    /// Number of quick ACKs among `count` segments.
    fn quick(acks: &mut QuickAcks, from: u64, count: u64) -> usize {
        (from..from + count).filter(|&n| arrives(acks, n, Flags::default(), false)).count()
    }

    /// By hand: the window may grow from 65 000 B, the whole segments in 64 KiB, to 81 920 B less
    /// one unread segment. That is 8 segments of 2000 B each, which use up none of the sixteen
    /// quick ACKs. After 20 ms, 21 segments were read where ten were assumed: 42 000 + 2 · (42 000
    /// · 11/10) = 134 400 B, less a segment 52 480 B more, which 27 segments fill. Two of the
    /// sixteen are left then, and later round trips grant none.
    #[test]
    fn sixteen_acks_go_at_once_and_one_for_each_segment_while_the_window_grows() {
        let mut acks = QuickAcks::new(MSS, Duration::from_millis(40), true);
        assert_eq!(quick(&mut acks, 0, 21), 8 + 13);
        assert_eq!(quick(&mut acks, 21, 27 + 2), 27 + 2);
        assert_eq!(quick(&mut acks, 50, 200), 0);
    }

    #[test]
    fn a_mark_gives_two_and_a_push_one() {
        let mut acks = QuickAcks::new(MSS, Duration::from_millis(40), true);
        quick(&mut acks, 0, 300);
        assert!(arrives(&mut acks, 300, Flags::default(), true));
        assert!(arrives(&mut acks, 301, Flags::default(), false));
        assert!(!arrives(&mut acks, 302, Flags::default(), false));
        assert!(arrives(&mut acks, 303, Flags::PSH, false));
        assert!(arrives(&mut acks, 304, Flags::CWR, false));
        assert!(!arrives(&mut acks, 305, Flags::default(), false));
    }

    #[test]
    fn a_duplicate_gives_sixteen() {
        let mut acks = QuickAcks::new(MSS, Duration::from_millis(40), true);
        quick(&mut acks, 0, 300);
        let sent = Time(1_300_000_000);
        let again = Accepted { duplicate: true, ..accepted(300, false) };
        let now = sent + Duration::from_millis(10);
        assert!(acks.on_segment(now, &segment(5 * MSS, sent, Flags::default()), &again));
        acks.on_ack_sent();
        assert_eq!(quick(&mut acks, 301, 100), 15);
    }

    /// State after a first segment with a one-way delay of 50 ms, so that a round trip is 100 ms.
    fn begun() -> (QuickAcks, Segment, Time) {
        let mut acks = QuickAcks::new(MSS, Duration::from_millis(40), true);
        let sent = Time(1_000_000_000);
        let (first, now) = (segment(0, sent, Flags::default()), sent + Duration::from_millis(50));
        let _ = acks.on_segment(now, &first, &accepted(1, false));
        (acks, first, now)
    }

    #[test]
    fn the_timer_waits_longer_each_time_and_a_round_trip_at_most() {
        let (mut acks, _, now) = begun();
        let waits = [(); 4].map(|()| {
            let wait = acks.deadline(now).since(now);
            acks.on_expiry();
            wait
        });
        // Plus 2 ms, the rest of the tick that has begun.
        assert_eq!(waits, [42, 82, 102, 102].map(Duration::from_millis));
    }

    #[test]
    fn acks_at_once_bring_the_timer_back() {
        let (mut acks, first, now) = begun();
        let expire = |acks: &mut QuickAcks| {
            acks.on_expiry();
            assert_eq!(acks.deadline(now).since(now), Duration::from_millis(82));
        };
        // The last quick ACK resets the timer: sixteen, and one more for the growth of the window.
        expire(&mut acks);
        for _ in 0..=FIRST_QUICK_ACKS {
            assert_eq!(acks.deadline(now).since(now), Duration::from_millis(82));
            acks.on_ack_sent();
        }
        assert_eq!(acks.deadline(now).since(now), Duration::from_millis(42));
        expire(&mut acks);
        acks.on_ack_sent();
        assert_eq!(acks.deadline(now).since(now), Duration::from_millis(82));
        let again = Accepted { duplicate: true, ..accepted(1, false) };
        let _ = acks.on_segment(now, &first, &again);
        assert_eq!(acks.deadline(now).since(now), Duration::from_millis(42));
    }

    /// A round trip of 20 ms has a timeout of 220 ms.
    #[test]
    fn a_silence_longer_than_the_timeout_gives_sixteen() {
        for (silence_ms, quick_acks) in [(220, 0), (221, 16)] {
            let mut acks = QuickAcks::new(MSS, Duration::from_millis(40), true);
            quick(&mut acks, 0, 300);
            let first = Time((1299 + silence_ms) * 1_000_000);
            let count = (0..100).filter(|&n| {
                let sent = first + Duration::from_millis(n);
                let at = segment((300 + n) * MSS, sent, Flags::default());
                let now = sent + Duration::from_millis(10);
                let at_once = acks.on_segment(now, &at, &accepted(301 + n, false));
                if at_once {
                    acks.on_ack_sent();
                }
                at_once
            });
            assert_eq!(count.count(), quick_acks, "{silence_ms} ms");
        }
    }

    #[test]
    fn a_segment_without_ect_among_others_is_a_retransmission_and_gives_two() {
        let mut acks = QuickAcks::new(MSS, Duration::from_millis(40), true);
        quick(&mut acks, 0, 300);
        let sent = Time(1_300_000_000);
        let plain = Segment { ecn: Ecn::NotEct, ..segment(300 * MSS, sent, Flags::default()) };
        assert!(acks.on_segment(sent + Duration::from_millis(10), &plain, &accepted(301, false)));
        acks.on_ack_sent();
        assert_eq!(quick(&mut acks, 301, 100), 1);
    }

    /// Room for twice the bytes read in a round trip and the data that waits: 21 000 · 2 + 200 000
    /// B.
    #[test]
    fn what_waits_behind_a_hole_needs_room() {
        let mut acks = QuickAcks::new(MSS, Duration::from_millis(40), true);
        quick(&mut acks, 0, 300);
        let sent = Time(1_300_000_000);
        let far = Accepted { highest: 500 * MSS, ..accepted(300, false) };
        let now = sent + Duration::from_millis(10);
        let _ = acks.on_segment(now, &segment(499 * MSS, sent, Flags::default()), &far);
        // The window grows from 133 400 B to 242 000 B less one unread segment.
        assert_eq!(quick(&mut acks, 301, 100), 54);
    }
}
