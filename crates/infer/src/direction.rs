//! Data that one end of a connection, the sender, sends, as seen from near the other end, the
//! receiver.

use cwnd_packet::Ecn;
use cwnd_quantity::{Duration, Time};

use crate::captured_bytes::CapturedBytes;
pub use crate::captured_bytes::Novelty;
use crate::clock::{EchoInfo, Echoes, Rtt, Source};
use crate::event::{Event, GAP, is_long};
use crate::headers::{Identifications, Segment, flag, precedes};

mod end_states;
mod silence;

use end_states::{ReceiverState, SenderTimers};
use silence::{Arrival, OpenSilence};

/// Maximum number of silences kept for a direction; the rest is only counted.
const MAX_EVENTS: usize = 4096;
/// Largest window (RFC 7323 § 2.3): a segment beyond it does not belong to the connection.
const MAX_WINDOW: u64 = 1 << 30;
/// MSS assumed if the other end's SYN had none, that of Ethernet, bytes.
const DEFAULT_MSS: u32 = 1460;
/// Length of the timestamps option in each segment, bytes.
const TIMESTAMPS_LENGTH: u16 = 12;
/// Consecutive outlying RTT samples that are rejected; the next one is accepted.
const MAX_REJECTED: u32 = 2;
/// Maximum delay of an acknowledgement (RFC 9293 § 3.8.6.3).
const MAX_ACK_DELAY: Duration = Duration::from_millis(500);
/// First segments among which the longest wait is taken for the RTT, if neither timestamps nor the
/// handshake gave a sample.
const FIRST_FLIGHTS: u64 = 16;
/// Initial timeout, after which a SYN-ACK is sent again (RFC 6298 § 2.1).
const INITIAL_RTO: Duration = Duration::from_secs(1);
/// Offset of unwrapped sequence numbers, which keeps those before the first one positive.
const ORIGIN: u64 = 1 << 33;

/// Counts of packets of one end.
#[derive(Clone, Copy, Debug, Default)]
pub struct Counts {
    /// Packets of any kind.
    pub packets: u64,
    /// Packets with ECT or CE (RFC 3168 § 5).
    pub ect: u64,
    /// Packets with CE.
    pub ce: u64,
    /// Packets with ECE (RFC 3168 § 6.1.3), without SYNs.
    pub ece: u64,
    /// Packets with CWR, without SYNs.
    pub cwr: u64,
    /// Segments with data, SYN or FIN, without probes and those out of window.
    pub segments: u64,
    /// Payload bytes of these segments, SYNs apart.
    pub bytes: u64,
    /// Capture times of the first and the last of these segments, SYNs apart; zero before.
    pub first: Time,
    /// See `first`.
    pub last: Time,
    /// Segments from below the highest position that had not arrived in whole before.
    pub filled: u64,
    /// Segments whose bytes had all arrived before.
    pub repeated: u64,
    /// Segments outside any possible window.
    pub out_of_window: u64,
    /// Keep-alives and probes of a closed window.
    pub probes: u64,
    /// D-SACK blocks sent by the receiver (RFC 2883).
    pub dsacks: u64,
    /// Silences and byte ranges not recorded, because there were too many.
    pub forgotten: u64,
}

/// Place of a segment in its stream, in bytes from the first one.
#[derive(Clone, Copy, Debug)]
pub struct Placed {
    /// Position of its first byte.
    pub start: u64,
    /// Position behind its last byte, or FIN.
    pub end: u64,
    /// Relation to the bytes captured before.
    pub novelty: Novelty,
    /// Bytes missing between the highest position before and its first byte.
    pub missing: u64,
}

/// Results of one direction of a finished connection.
#[derive(Clone, Debug)]
pub struct DirectionSummary {
    /// RTT between the capture point and the sender.
    pub rtt: Rtt,
    /// Counts of the sender's packets.
    pub counts: Counts,
    /// Tail loss probes seen that came too early to be timeouts.
    pub tail_probes: u32,
    /// `true` if IPv4 identifications suggest that the sender is Linux.
    pub linux: bool,
    /// SRTT of the sender as it is if the sender is Linux; zero if not known.
    pub smoothed: Duration,
    /// Least time from the capture point to the sender and back, from all samples; zero if not
    /// known.
    pub rtt_min: Duration,
    /// Bytes of the stream from the first one captured to the highest, acknowledged or captured.
    pub stream_bytes: u64,
    /// Silences found.
    pub events: Vec<Event>,
}

/// State of one direction of an open connection.
#[derive(Clone, Debug)]
pub struct DirectionState {
    captured: Option<CapturedBytes>,
    /// Position of the first byte of the stream, or of the first byte captured.
    first: u64,
    /// Longest segment seen, as one packet, bytes.
    mss: u32,
    /// Longest segment that the receiver accepts, bytes. A longer one was merged by a network card.
    max_segment: u32,
    /// Window scale of this end.
    scale: Option<u8>,
    /// Arrival of the last segment with data, SYN or FIN.
    last: Option<Time>,
    /// `true` if the last segment that ended at the highest position was of full size.
    last_full: bool,
    /// `true` if that segment had PSH.
    last_push: bool,
    /// `true` once a segment had PSH.
    pushes: bool,
    identifications: Identifications,
    receiver: ReceiverState,
    echoes: Echoes,
    /// Replayed retransmission timer of the sender.
    sender_timers: SenderTimers,
    /// Packets sent since the last data that did not arrive; `None` if the sender does not number
    /// packets.
    missing_packets: Option<u32>,
    /// Earlier missing packets that no hole explains: they may have been the end of the data sent.
    unexplained_packets: u32,
    /// Highest position sent, according to the sequence numbers of the sender's pure ACKs, or to
    /// missing packets.
    highest_announced: u64,
    /// Start of the period with holes; zero once a retransmission arrived in it.
    hole_since: Option<Time>,
    /// Newest TSval of the sender.
    newest_tsval: Option<u32>,
    /// Position that the sender knew to be acknowledged when it last sent.
    known_acked: u64,
    /// Position whose acknowledgement ends the current recovery.
    recovery_end: u64,
    /// `true` if more data followed the segment whose retransmission began that recovery.
    more_behind: bool,
    /// Number of segments at the end of the data that came again earlier than any timeout: tail
    /// loss probes.
    tail_probes: u32,
    /// Consecutive RTT samples that were rejected.
    rejected_samples: u32,
    /// RTT between the capture point and the sender.
    pub rtt: Rtt,
    /// Last and least time from a TSval to its first echo in a pure ACK of the sender; zero before.
    pub ack_rtt: (Duration, Duration),
    /// Silence whose kind depends on the segments that follow.
    open_silence: Option<OpenSilence>,
    /// Start and arrival of the segment that ended the last silence that was a timeout, a pause or
    /// ambiguous; `true` if it was a timeout.
    timeout: Option<(u64, Time, bool)>,
    /// Silences found so far.
    pub events: Vec<Event>,
    /// Counts of the sender's packets.
    pub counts: Counts,
}

impl Default for DirectionState {
    fn default() -> Self {
        Self {
            captured: None,
            first: ORIGIN,
            mss: 0,
            max_segment: DEFAULT_MSS,
            scale: None,
            last: None,
            last_full: false,
            last_push: false,
            pushes: false,
            identifications: Identifications::default(),
            receiver: ReceiverState::default(),
            echoes: Echoes::default(),
            sender_timers: SenderTimers::default(),
            missing_packets: None,
            unexplained_packets: 0,
            highest_announced: 0,
            hole_since: None,
            newest_tsval: None,
            known_acked: 0,
            recovery_end: 0,
            more_behind: false,
            tail_probes: 0,
            rejected_samples: 0,
            rtt: Rtt::default(),
            ack_rtt: (Duration::ZERO, Duration::ZERO),
            open_silence: None,
            timeout: None,
            events: Vec::new(),
            counts: Counts::default(),
        }
    }
}

impl DirectionState {
    /// Counts a packet of this end.
    #[inline]
    pub fn count(&mut self, segment: &Segment) {
        self.counts.packets += 1;
        self.counts.ect += u64::from(segment.ecn.is_ect());
        self.counts.ce += u64::from(segment.ecn == Ecn::Ce);
        // The flags of a SYN negotiate ECN, and report no mark (RFC 3168 § 6.1.1).
        let says = |flags: u8| u64::from(segment.has(flags) && !segment.has(flag::SYN));
        self.counts.ece += says(flag::ECE);
        self.counts.cwr += says(flag::CWR);
    }

    /// Processes a segment that this end sent. Returns the place of data or a FIN, unless they are
    /// a probe or out of window.
    pub fn on_sender_segment(&mut self, segment: &Segment) -> Option<Placed> {
        self.count_missing(segment);
        let echo_info = self.on_echoed_timestamp(segment);
        if let Some(scale) = segment.scale {
            self.scale = Some(scale);
        }
        // A pure ACK counts as sent at once, however long its sample. Data may have waited for the
        // application and a SYN-ACK for its timer: only a short sample of theirs can be the first.
        let most = if segment.has(flag::SYN) { INITIAL_RTO } else { GAP };
        let prompt = |sample: &Duration| segment.space() == 0 || *sample < most;
        let sample = echo_info.and_then(|echo_info| echo_info.sample).filter(prompt);
        if segment.space() == 0
            && let Some(sample) = sample
        {
            let least = if self.ack_rtt.1 == Duration::ZERO { sample } else { self.ack_rtt.1 };
            self.ack_rtt = (sample, least.min(sample));
        }
        if let Some(sample) = sample.filter(|_| !self.rtt.is_known() && !segment.has(flag::RST)) {
            self.rtt.sample(segment.at, sample, Source::Timestamps);
        }
        if segment.has(flag::SYN) {
            self.on_syn(segment);
            return None;
        }
        if segment.has(flag::RST) {
            return None;
        }
        if segment.space() == 0 {
            self.note_announced(segment);
            return None;
        }
        let (start, end) = self.stream_range(segment)?;
        if self.is_probe(segment, start, end) {
            self.counts.probes += 1;
            return None;
        }
        let captured = self.captured.as_mut()?;
        let (high_before, next_before) = (captured.high(), captured.next());
        let novelty = captured.add(start, end);
        self.counts.segments += 1;
        self.counts.bytes += u64::from(segment.length);
        self.counts.last = segment.at;
        if self.counts.first == Time::ZERO {
            self.counts.first = segment.at;
        }
        self.counts.filled += u64::from(novelty == Novelty::FillsHole);
        self.counts.repeated += u64::from(novelty == Novelty::Duplicate);
        self.mss = self.mss.max(segment.length.min(self.max_segment));
        let (at, data, push) = (segment.at, segment.length, segment.has(flag::PSH));
        let stamp = segment.timestamps.map(|(value, _)| value);
        let overtaken = stamp.zip(self.newest_tsval).is_some_and(|(a, b)| precedes(a, b));
        if !overtaken {
            self.newest_tsval = stamp;
        }
        self.on_data(&Arrival {
            at,
            start,
            end,
            novelty,
            high_before,
            next_before,
            echo_info,
            overtaken,
            data,
            push,
        });
        Some(Placed {
            start: start.saturating_sub(self.first),
            end: end.saturating_sub(self.first),
            novelty,
            missing: start.saturating_sub(high_before),
        })
    }

    /// Returns the position of a sequence number that the receiver reports, in bytes from the first
    /// one; `None` if no data and no SYN of this end was captured.
    pub fn position(&self, number: u32) -> Option<u64> {
        let high = self.captured.as_ref()?.high();
        let ahead = number.wrapping_sub(high as u32).cast_signed();
        Some(high.saturating_add_signed(i64::from(ahead)).saturating_sub(self.first))
    }

    /// Processes the arrival of data or FIN, and updates the state for the next one.
    fn on_data(&mut self, it: &Arrival) {
        self.on_arrival(it);
        let Arrival { at, end, novelty, high_before, data, push, .. } = *it;
        self.sender_timers.on_arrival(
            at,
            end,
            matches!(novelty, Novelty::FillsHole | Novelty::Duplicate),
        );
        self.receiver.packets = 0;
        let late = self.last.is_some_and(|last| is_long(at.since(last), self.rtt.smoothed));
        self.explain_missing(
            novelty,
            end.saturating_sub(high_before),
            late,
            push && data < self.mss,
        );
        let whole = self.captured.as_ref().is_some_and(|captured| !captured.has_holes());
        self.hole_since = match novelty {
            _ if whole => None,
            // The sender was repairing holes before: the retransmission of the first one would be
            // older.
            Novelty::FillsHole | Novelty::Duplicate => Some(Time::ZERO),
            Novelty::InOrder | Novelty::BeyondHole => self.hole_since.or(Some(at)),
        };
        if novelty == Novelty::InOrder && whole && self.receiver.unacked_since.is_none() {
            self.receiver.unacked_since = Some(at);
        }
        self.pushes |= push;
        if end >= high_before {
            (self.last_push, self.last_full) = (push, data >= self.mss);
        }
        self.last = Some(at);
    }

    /// Reads from the echoed timestamp which packets the sender had received; `None` without
    /// timestamps, or if the echo precedes all packets remembered.
    fn on_echoed_timestamp(&mut self, segment: &Segment) -> Option<EchoInfo> {
        let (value, echo) = segment.timestamps.filter(|_| segment.has(flag::ACK))?;
        let Self { echoes, sender_timers, captured, receiver, .. } = self;
        receiver.acked_by_sender = Some(segment.ack);
        // A D-SACK (RFC 2883 § 4) reports the repeated request as a duplicate: the first one was
        // received.
        if segment.blocks[0].is_some_and(|(start, _)| precedes(start, segment.ack)) {
            receiver.last_repeat = None;
        }
        // A request that was repeated, and then answered at once, had not been received before.
        let again = receiver
            .last_repeat
            .filter(|&again| receiver.last_request.is_some_and(|asked| asked < again));
        let clocked = |again: &Time| {
            let since = segment.at.since(*again);
            since >= self.rtt.min * 15 / 16
                && since <= self.rtt.smoothed * 9 / 8 + Duration::from_millis(2)
        };
        let ahead = captured
            .as_ref()
            .map_or(0, |captured| segment.seq.wrapping_sub(captured.high() as u32));
        let hole = if ahead.cast_signed() > 0 { ahead.div_ceil(self.mss.max(1)) } else { 0 };
        if let Some(again) = again.filter(clocked)
            && self.missing_packets.unwrap_or(0) > hole
        {
            sender_timers.lost_before(Time(again.0.saturating_sub(1)));
        }
        let (round, before) = (self.rtt.smoothed, sender_timers.newest());
        let sent = captured.as_ref().map_or(0, CapturedBytes::high);
        let echo_info = echoes
            .on_echo(echo, segment.at, |packet| sender_timers.on_received(packet, round, sent));
        if sender_timers.newest() == before
            && !self.newest_tsval.is_some_and(|newest| precedes(value, newest))
        {
            sender_timers.on_old_echo(Time(segment.at.0.saturating_sub((round * 9 / 8).0)));
        }
        echo_info
    }

    /// Attributes missing packets to the hole that shows them, to retransmissions, or to the end of
    /// the data sent.
    fn explain_missing(&mut self, novelty: Novelty, beyond: u64, late: bool, end: bool) {
        let missing = self.missing_packets.replace(0).unwrap_or(0);
        self.unexplained_packets = match novelty {
            // This segment may be one of the missing ones, but not their last.
            Novelty::InOrder if !end => self.unexplained_packets.saturating_sub(1),
            Novelty::InOrder => 0,
            Novelty::BeyondHole => {
                let hole = beyond.div_ceil(u64::from(self.mss.max(1))).saturating_sub(1);
                self.unexplained_packets
                    .saturating_add(missing.saturating_sub(hole.min(u64::from(u32::MAX)) as u32))
            }
            // Packets lost during a long silence were retransmissions.
            Novelty::FillsHole | Novelty::Duplicate if late => self.unexplained_packets,
            Novelty::FillsHole | Novelty::Duplicate => {
                self.unexplained_packets.saturating_add(missing)
            }
        };
    }

    /// Notes the sequence number of a pure ACK: all data before it were sent.
    fn note_announced(&mut self, segment: &Segment) {
        let Some(captured) = &self.captured else { return };
        let ahead = segment.seq.wrapping_sub(captured.high() as u32).cast_signed();
        if ahead > 0 && u64::from(ahead.unsigned_abs()) < MAX_WINDOW {
            self.highest_announced = captured.high() + u64::from(ahead.unsigned_abs());
        }
    }

    /// Counts packets that were sent in between and did not arrive, by their identifications.
    fn count_missing(&mut self, segment: &Segment) {
        // A Linux sender numbers packets from the handshake on. Before its first ACK, which
        // acknowledges the request, it sent nothing.
        if self.identifications.begins() && segment.space() == 0 && segment.blocks[0].is_none() {
            self.missing_packets = Some(0);
            self.identifications.between(segment, self.mss);
            return;
        }
        // The first long segment may be of the full size.
        let longest = self.mss.max(segment.length.min(self.max_segment));
        let between = self.identifications.between(segment, longest);
        self.missing_packets =
            self.missing_packets.zip(between).map(|(sum, more)| sum + u32::from(more));
    }

    /// Starts the stream at a SYN or SYN-ACK.
    fn on_syn(&mut self, segment: &Segment) {
        let first = ORIGIN + u64::from(segment.seq);
        if self.captured.is_none() {
            self.captured = Some(CapturedBytes::from(first + 1 + u64::from(segment.length)));
            self.first = first + 1;
            self.receiver.acked = first + 1;
            self.receiver.advanced = segment.at;
        }
        self.sender_timers.on_arrival(segment.at, self.first, self.last.is_some());
        self.counts.segments += 1;
        self.last = Some(segment.at);
    }

    /// Returns the range of a segment in the stream; `None` if it cannot belong to the stream.
    fn stream_range(&mut self, segment: &Segment) -> Option<(u64, u64)> {
        let captured = self.captured.get_or_insert_with(|| {
            self.first = ORIGIN + u64::from(segment.seq);
            CapturedBytes::from(self.first)
        });
        let ahead = segment.seq.wrapping_sub(captured.high() as u32).cast_signed();
        let start = captured.high().saturating_add_signed(i64::from(ahead));
        let end = start + u64::from(segment.space());
        if end > captured.next().max(self.receiver.acked) + MAX_WINDOW
            || end + MAX_WINDOW < captured.next()
        {
            self.counts.out_of_window += 1;
            return None;
        }
        Some((start, end))
    }

    /// `true` for keep-alives (RFC 9293 § 3.8.4), which repeat an acknowledged byte after a
    /// silence, and for probes of a closed window (§ 3.8.6.1), which send one byte.
    fn is_probe(&self, segment: &Segment, start: u64, end: u64) -> bool {
        let Some(captured) = &self.captured else { return false };
        let tiny = segment.length <= 1 && !segment.has(flag::FIN);
        let keep_alive =
            end == self.receiver.acked && end == captured.high() && !captured.has_holes();
        let long_ago =
            self.last.is_some_and(|last| is_long(segment.at.since(last), self.rtt.smoothed));
        tiny && ((keep_alive && long_ago) || (self.receiver.closed && start >= captured.next()))
    }

    /// Adds an RTT sample if the sender waited for nothing else, by timestamps if there are any.
    fn measure(&mut self, it: &Arrival, silent: Duration, rule: bool) {
        if rule {
            return;
        }
        if let Some(sample) = it.echo_info.and_then(|echo_info| echo_info.sample) {
            // A wait for something else inflates the sample; the sender is then silent for most of
            // it.
            let Rtt { smoothed, variation, .. } = self.rtt;
            let usual = smoothed + (variation * 4).max(smoothed / 2);
            let strange = self.rtt.is_known() && silent > sample / 2 && sample > usual;
            self.rejected_samples = if strange { self.rejected_samples + 1 } else { 0 };
            if !strange || self.rejected_samples > MAX_REJECTED {
                self.rtt.sample(it.at, sample, Source::Timestamps);
            }
        } else if it.echo_info.is_none()
            && it.novelty == Novelty::InOrder
            && it.start <= self.receiver.acked
        {
            // Without timestamps: all data were acknowledged, and the next data came a round trip
            // later.
            let since = it.at.since(
                self.receiver.advanced.max(self.receiver.last_request.unwrap_or(Time::ZERO)),
            );
            if self.counts.segments <= FIRST_FLIGHTS && self.rtt.source <= Source::Flights {
                self.rtt.at_least(since);
                return;
            }
            let likely = !self.rtt.is_known()
                || (since > self.rtt.smoothed / 2 && since < self.rtt.smoothed * 2);
            if likely {
                self.rtt.sample(it.at, since, Source::Flights);
            }
        }
    }

    /// Ends the connection: classifies a silence that is still open.
    pub fn end(&mut self) {
        self.counts.forgotten += self.captured.as_ref().map_or(0, CapturedBytes::forgotten);
        if let Some(open) = self.open_silence.take() {
            self.classify(&open, false);
        }
        // Silences before the first RTT sample use the minimum RTT found since.
        for event in self.events.iter_mut().filter(|event| event.rtt == Duration::ZERO) {
            (event.rtt, event.variation) = (self.rtt.min, self.rtt.min / 2);
            event.rttvar_linux = event.variation;
        }
    }

    /// Returns the results; no more packets come.
    pub fn into_summary(mut self) -> DirectionSummary {
        self.events.shrink_to_fit();
        let known = [self.rtt.min, self.ack_rtt.1].into_iter().filter(|&rtt| rtt > Duration::ZERO);
        DirectionSummary {
            rtt_min: known.min().unwrap_or(Duration::ZERO),
            rtt: self.rtt,
            counts: self.counts,
            tail_probes: self.tail_probes,
            linux: self.identifications.is_linux(),
            smoothed: self.sender_timers.timer().smoothed,
            stream_bytes: self.captured.map_or(0, |captured| captured.high() - self.first),
            events: self.events,
        }
    }

    /// Returns the length of the longest segment seen as one packet, bytes; 0 before.
    pub const fn full_segment(&self) -> u32 {
        self.mss
    }

    /// Returns the window scale of this end.
    pub const fn scale(&self) -> Option<u8> {
        self.scale
    }
}
