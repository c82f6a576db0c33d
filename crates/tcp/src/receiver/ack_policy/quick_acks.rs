//! ACKs that Linux's receiver sends at once (tcp_input.c, tcp.c): in the first round trips, while
//! its receive window grows, after a mark, and where the sender says that it has no more to send
//! now.

use cwnd_packet::Ecn;
use cwnd_quantity::{Duration, Time};

use super::ack_timer::AckTimer;
use super::compressed_acks::{self, CompressedAcks};
use crate::segment::{Flags, Segment};

/// Count of quick ACKs (`icsk_ack.quick`), and the growth of the receive window that feeds it.
// Two cache lines, which each segment reads.
#[derive(Clone, Copy, Debug)]
#[repr(align(64))]
pub struct QuickAcks {
    left: u32,
    /// Duplicate ACKs that wait.
    compressed: CompressedAcks,
    /// `true` if they may: there is SACK.
    compresses: bool,
    timer: AckTimer,
    /// `true` once data was ECN-capable: a segment that is not then counts as a retransmission.
    seen_ect: bool,
    mss: u64,
    /// Window that is allowed already (`rcv_ssthresh`), and what the buffer has room for
    /// (`window_clamp`).
    allowed: u64,
    clamp: u64,
    /// The most that the application read in a round trip (`rcvq_space`).
    space: u64,
    /// Number and time at which the current measurement of it began.
    from: u64,
    since: Time,
    /// The round trip as the receiver sees it (`rcv_rtt_est`); none before the first sample.
    rtt: Option<Duration>,
    /// The least one-way delay seen.
    least_delay: Duration,
    /// Time of the SYN-ACK, and the delay of its way back.
    opened: Time,
    way_back: Duration,
    /// Time of the last data in order (`lrcvtime`).
    last_data: Time,
}

/// A data segment as the receiver took it in.
#[derive(Clone, Copy, Debug)]
pub struct Taken {
    /// Next byte expected now.
    pub rcv_nxt: u64,
    /// One past the highest byte that arrived.
    pub highest: u64,
    /// `true` if it brought nothing new.
    pub duplicate: bool,
    /// `true` if it begins an episode of marks.
    pub first_mark: bool,
}

impl QuickAcks {
    /// ACKs are delayed by `delay` at first; duplicates may wait with `compresses`.
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
            least_delay: Duration::MAX,
            opened: Time::NEVER,
            way_back: Duration::MAX,
            last_data: Time::NEVER,
        }
    }

    pub const fn on_syn(&mut self, now: Time) {
        self.opened = now;
    }

    /// A data segment was taken in. Returns `true` if its ACK goes at once.
    pub fn on_segment(&mut self, now: Time, segment: &Segment, taken: &Taken) -> bool {
        self.least_delay = self.least_delay.min(now.since(segment.ts));
        if self.rtt.is_none() {
            // Data follows the last ACK of the handshake, with which the first measurement begins.
            self.since = now;
            if self.opened < segment.ts {
                self.way_back = segment.ts.since(self.opened);
            }
        }
        self.count(now, segment, taken);
        let at_once = self.left > 0
            || segment.flags.has(Flags::PSH)
            || segment.flags.has(Flags::CWR) && segment.len > 0;
        self.take_rtt(now, segment.ts);
        if taken.rcv_nxt < taken.highest {
            // What waits behind a hole needs room, too (`tcp_data_queue_ofo`).
            self.make_room(2 * self.space + (taken.highest - taken.rcv_nxt));
        }
        self.on_read(now, taken.rcv_nxt);
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

    /// Deadline of an ACK that begins to wait for a second segment.
    pub fn deadline(&self, now: Time) -> Time {
        self.timer.deadline(now, self.handshake())
    }

    /// The timer sends the ACK that waited.
    pub fn on_expiry(&mut self) {
        if !self.compressed.is_waiting() {
            self.timer.on_expiry(timeout(self.handshake()));
        }
    }

    /// `true` if duplicate ACKs wait.
    pub const fn is_compressing(&self) -> bool {
        self.compressed.is_waiting()
    }

    /// `true` if a duplicate ACK may wait with so many bytes in order that no ACK has reported:
    /// without SACK, or with more than a full segment, it goes (`__tcp_ack_snd_check`).
    pub const fn may_compress(&self, unacked: u64) -> bool {
        self.compresses && unacked <= self.mss
    }

    /// A duplicate ACK of all below `rcv_nxt` is due. Returns the time until which it waits,
    /// `Time::NEVER` if another one has set it; `None` if it goes at once.
    pub fn compress(&mut self, now: Time, rcv_nxt: u64) -> Option<Time> {
        let first = !self.compressed.is_waiting();
        if self.compressed.goes_at_once(rcv_nxt) {
            return None;
        }
        Some(if first { now + self.compression() } else { Time::NEVER })
    }

    /// Time that a duplicate ACK waits for others.
    fn compression(&self) -> Duration {
        let handshake = self.handshake();
        compressed_acks::delay(self.rtt.map_or(handshake, |rtt| rtt.min(handshake)))
    }

    /// The round trip that the handshake measured.
    fn handshake(&self) -> Duration {
        self.least_delay + self.way_back.min(self.least_delay)
    }

    /// Grants quick ACKs, and keeps those that there are (`tcp_event_data_recv`,
    /// `tcp_data_queue`).
    fn count(&mut self, now: Time, segment: &Segment, taken: &Taken) {
        if taken.duplicate {
            self.left = self.left.max(FIRST_QUICK_ACKS);
            self.timer.reset();
            return;
        }
        if segment.end() <= taken.rcv_nxt {
            self.on_data(now);
        }
        let capable = segment.ecn != Ecn::NotEct;
        if taken.first_mark || self.seen_ect && !capable {
            self.left = self.left.max(QUICK_ACKS_OF_A_MARK);
            self.timer.reset();
        }
        self.seen_ect |= capable;
        // What is not read yet takes its room (`tcp_space`): this segment, or all behind a hole.
        let unread = (taken.highest - taken.rcv_nxt).max(self.mss);
        let room = self.clamp.saturating_sub(unread);
        if self.allowed < room && segment.len >= LEAST_TO_GROW {
            let growth = GROWTH * self.mss.max(u64::from(segment.len));
            self.allowed = (self.allowed + growth).min(room);
            self.left |= 1;
        }
    }

    /// What came is in order, or filled a hole.
    fn on_data(&mut self, now: Time) {
        if self.last_data != Time::NEVER {
            let handshake = self.handshake();
            self.timer.on_segment(self.last_data, now, || timeout(handshake));
            let pause = now.since(self.last_data);
            // No timeout is shorter: most pauses need none to be compared with.
            if pause > LEAST_TIMEOUT && pause > timeout(handshake) {
                self.left = self.left.max(FIRST_QUICK_ACKS);
            }
        }
        self.last_data = now;
    }

    /// Falls at once, rises by an eighth (`tcp_rcv_rtt_update`).
    ///
    /// Departs from Linux, which learns it from its own timestamps: the way back is assumed to last
    /// as long as in the handshake, or as the least way here.
    fn take_rtt(&mut self, now: Time, sent: Time) {
        // Timestamps are of whole milliseconds (`tcp_rtt_tsopt_us`).
        let asked = sent.0.saturating_sub(self.way_back.min(self.least_delay).0);
        let sample = Duration::from_millis((now.0 / TICK.0).saturating_sub(asked / TICK.0).max(1));
        self.rtt = Some(match self.rtt {
            Some(rtt) if rtt < sample => Duration(rtt.0 - rtt.0 / 8 + sample.0 / 8),
            _ => sample,
        });
    }

    /// The application reads at once; each round trip in which it read more than in any before
    /// makes the buffer twice that, and more if it grew by much (`tcp_rcv_space_adjust`,
    /// `tcp_rcvbuf_grow`).
    fn on_read(&mut self, now: Time, rcv_nxt: u64) {
        if self.rtt.is_none_or(|rtt| now.since(self.since) < rtt) {
            return;
        }
        let read = rcv_nxt - self.from;
        if read > self.space {
            let doubled = 2 * read;
            // Counts are of a round trip: far below 2^32, so that the product fits.
            let growth = doubled * (read - self.space) / self.space;
            self.space = read;
            self.make_room(doubled + 2 * growth);
        }
        self.from = rcv_nxt;
        self.since = now;
    }

    const fn make_room(&mut self, window: u64) {
        let most = in_window(LARGEST_BUFFER);
        let window = if window < most { window } else { most };
        if window > self.clamp {
            self.clamp = window;
        }
    }
}

/// The receiver's own retransmission timeout, which it has from the handshake.
fn timeout(handshake: Duration) -> Duration {
    handshake + (handshake + handshake).max(LEAST_TIMEOUT)
}

/// The window that a buffer of so many bytes allows: memory holds headers and gaps, too
/// (`scaling_ratio`).
const fn in_window(buffer: u64) -> u64 {
    buffer * SEGMENT_IN_MEMORY / 256
}

// Linux, include/net/tcp.h, net/ipv4/tcp_input.c and tcp_output.c.
/// ACKs at once when a connection begins, after an idle time and after a duplicate
/// (`TCP_MAX_QUICKACKS`).
const FIRST_QUICK_ACKS: u32 = 16;
/// ACKs at once after the first mark of an episode (`tcp_data_ecn_check`).
const QUICK_ACKS_OF_A_MARK: u32 = 2;
/// First receive window, bytes: the whole segments below this (`tcp_select_initial_window`).
const FIRST_WINDOW: u64 = 65_535;
/// First and largest receive buffer, bytes (`tcp_rmem`).
const FIRST_BUFFER: u64 = 131_072;
const LARGEST_BUFFER: u64 = 33_554_432;
/// Payload in 256 bytes of buffer: a full segment of 1448 B lies in 2304 B (2 KiB and its
/// descriptor).
const SEGMENT_IN_MEMORY: u64 = 160;
/// Segments that are assumed to be read in a round trip at first (`tcp_init_buffer_space`).
const FIRST_SPACE: u64 = 10;
/// Segments that the window grows for each that arrives, unless it is short (`tcp_grow_window`).
const GROWTH: u64 = 2;
const LEAST_TO_GROW: u32 = 128;
/// The clock of timestamps (`TCP_TS_HZ`).
const TICK: Duration = Duration::from_millis(1);
/// `TCP_RTO_MIN`.
const LEAST_TIMEOUT: Duration = Duration::from_millis(200);

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

    fn taken(segments: u64, first_mark: bool) -> Taken {
        let rcv_nxt = segments * MSS;
        Taken { rcv_nxt, highest: rcv_nxt, duplicate: false, first_mark }
    }

    /// Segment n is sent n ms after the first second, and 10 ms on its way.
    fn arrives(acks: &mut QuickAcks, n: u64, flags: Flags, first_mark: bool) -> bool {
        let sent = Time((1000 + n) * 1_000_000);
        let at = segment(n * MSS, sent, flags);
        let now = sent + Duration::from_millis(10);
        let at_once = acks.on_segment(now, &at, &taken(n + 1, first_mark));
        if at_once {
            acks.on_ack_sent();
        }
        at_once
    }

    /// Number of ACKs at once among so many segments.
    fn quick(acks: &mut QuickAcks, from: u64, count: u64) -> usize {
        (from..from + count).filter(|&n| arrives(acks, n, Flags::default(), false)).count()
    }

    /// The window may grow from 65 000 B, the segments in 64 KiB, to 81 920 B less the segment that
    /// is not read yet: 8 segments of 2000 B, each of which keeps the sixteen. 20 ms after the
    /// first segment 21 were read where ten were assumed: 42 000 + 2 · (42 000 · 11/10) =
    /// 134 400 B, less a segment 52 480 B more, which 27 segments fill; of the sixteen two are left
    /// then. Later round trips bring no more.
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
        let again = Taken { duplicate: true, ..taken(300, false) };
        let now = sent + Duration::from_millis(10);
        assert!(acks.on_segment(now, &segment(5 * MSS, sent, Flags::default()), &again));
        acks.on_ack_sent();
        assert_eq!(quick(&mut acks, 301, 100), 15);
    }

    /// The first segment is there, after 50 ms on its way: so a round trip is 100 ms.
    fn begun() -> (QuickAcks, Segment, Time) {
        let mut acks = QuickAcks::new(MSS, Duration::from_millis(40), true);
        let sent = Time(1_000_000_000);
        let (first, now) = (segment(0, sent, Flags::default()), sent + Duration::from_millis(50));
        let _ = acks.on_segment(now, &first, &taken(1, false));
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
        // The tick that has begun has two milliseconds left.
        assert_eq!(waits, [42, 82, 102, 102].map(Duration::from_millis));
    }

    #[test]
    fn acks_at_once_bring_the_timer_back() {
        let (mut acks, first, now) = begun();
        let expire = |acks: &mut QuickAcks| {
            acks.on_expiry();
            assert_eq!(acks.deadline(now).since(now), Duration::from_millis(82));
        };
        // The last that goes at once, one more for the window that grew; before that it stays.
        expire(&mut acks);
        for _ in 0..=FIRST_QUICK_ACKS {
            assert_eq!(acks.deadline(now).since(now), Duration::from_millis(82));
            acks.on_ack_sent();
        }
        assert_eq!(acks.deadline(now).since(now), Duration::from_millis(42));
        expire(&mut acks);
        acks.on_ack_sent();
        assert_eq!(acks.deadline(now).since(now), Duration::from_millis(82));
        let again = Taken { duplicate: true, ..taken(1, false) };
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
                let at_once = acks.on_segment(now, &at, &taken(301 + n, false));
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
        assert!(acks.on_segment(sent + Duration::from_millis(10), &plain, &taken(301, false)));
        acks.on_ack_sent();
        assert_eq!(quick(&mut acks, 301, 100), 1);
    }

    /// As much as was read in a round trip twice, and what waits: 21 000 · 2 + 200 000 B.
    #[test]
    fn what_waits_behind_a_hole_needs_room() {
        let mut acks = QuickAcks::new(MSS, Duration::from_millis(40), true);
        quick(&mut acks, 0, 300);
        let sent = Time(1_300_000_000);
        let far = Taken { highest: 500 * MSS, ..taken(300, false) };
        let now = sent + Duration::from_millis(10);
        let _ = acks.on_segment(now, &segment(499 * MSS, sent, Flags::default()), &far);
        // From 133 400 B to 242 000 B less the segment that is not read.
        assert_eq!(quick(&mut acks, 301, 100), 54);
    }
}
