//! Data that one end of a connection, the sender, sends, as seen from near the other end, the
//! receiver.

use cwnd_packet::Ecn;
use cwnd_quantity::{Duration, Time};

use crate::captured_bytes::{Fresh, Seen};
use crate::clock::{Echoes, Heard, Rtt, Source};
use crate::event::{Event, GAP, is_long};
use crate::headers::{Segment, flag, precedes};
use crate::identification::Identifications;

mod receiver_state;
mod sender_timers;
mod silence;

use receiver_state::Answers;
use sender_timers::Theirs;
use silence::{Arrival, Open};

/// Maximum number of silences kept for a direction; the rest is only counted.
const MOST_EVENTS: usize = 4096;
/// Largest window (RFC 7323 § 2.3): a segment beyond it does not belong to the connection.
const FARTHEST: u64 = 1 << 30;
/// MSS assumed if the other end's SYN had none, that of Ethernet, bytes.
const USUAL_MSS: u32 = 1460;
/// Length of the timestamps option in each segment, bytes.
const TIMESTAMPS: u16 = 12;
/// Consecutive outlying RTT samples that are rejected; the next one is accepted.
const STRANGE: u32 = 2;
/// Maximum delay of an acknowledgement (RFC 9293 § 3.8.6.3).
const MOST_DELAY: Duration = Duration::from_millis(500);
/// First segments among which the longest wait is taken for the RTT, if no handshake was captured.
const FIRST_FLIGHTS: u64 = 16;
/// Initial timeout, after which a SYN-ACK is sent again (RFC 6298 § 2.1).
const INITIAL: Duration = Duration::from_secs(1);
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
    /// Segments with data, SYN or FIN.
    pub segments: u64,
    /// Payload bytes of these segments.
    pub bytes: u64,
    /// Capture time of the last of these segments.
    pub last: Time,
    /// Segments that filled a hole.
    pub filled: u64,
    /// Segments whose bytes had all arrived before.
    pub repeated: u64,
    /// Segments outside any possible window.
    pub strange: u64,
    /// Keep-alives and probes of a closed window.
    pub probes: u64,
    /// D-SACK blocks sent by the receiver (RFC 2883).
    pub dsacks: u64,
    /// Silences and byte ranges not recorded, because there were too many.
    pub forgotten: u64,
}

/// Results of one direction of a finished connection.
#[derive(Clone, Debug)]
pub struct Kept {
    /// RTT between the capture point and the sender.
    pub rtt: Rtt,
    /// Counts of the sender's packets.
    pub counts: Counts,
    /// Tail loss probes seen that came too early to be timeouts.
    pub tails: u32,
    /// `true` if IPv4 identifications show that the sender is Linux.
    pub linux: bool,
    /// SRTT of the sender if it is Linux; zero if not known.
    pub smoothed: Duration,
    /// Silences found.
    pub events: Vec<Event>,
}

/// State of one direction of an open connection.
#[derive(Clone, Debug)]
pub struct Half {
    seen: Option<Seen>,
    /// Position of the first byte of the stream, or of the first byte captured.
    first: u64,
    /// Longest segment seen, as one packet, bytes.
    mss: u32,
    /// Longest segment that the receiver accepts, bytes. A longer one was merged by a network card.
    most: u32,
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
    answers: Answers,
    echoes: Echoes,
    /// Replayed retransmission timer of the sender.
    theirs: Theirs,
    /// Packets sent since the last data that did not arrive; `None` if the sender does not number
    /// packets.
    missing: Option<u32>,
    /// Earlier missing packets that no hole explains: they may have been the end of the data sent.
    unexplained: u32,
    /// Highest position sent, according to the sequence numbers of the sender's pure ACKs.
    announced: u64,
    /// Start of the period with holes; zero once a retransmission arrived in it.
    holed: Option<Time>,
    /// Newest TSval of the sender.
    stamp: Option<u32>,
    /// Position that the sender knew to be acknowledged when it last sent.
    knew: u64,
    /// Position whose acknowledgement ends the current recovery.
    recovers: u64,
    /// `true` if more data followed the segment whose retransmission began that recovery.
    behind: bool,
    /// Number of segments at the end of the data that came again earlier than any timeout: tail
    /// loss probes.
    tails: u32,
    /// Consecutive RTT samples that were rejected.
    strange: u32,
    /// RTT between the capture point and the sender.
    pub rtt: Rtt,
    /// Silence whose kind depends on the segments that follow.
    open: Option<Open>,
    /// Start and arrival of the segment that ended the last silence; `true` if that was a timeout.
    timeout: Option<(u64, Time, bool)>,
    /// Silences found so far.
    pub events: Vec<Event>,
    /// Counts of the sender's packets.
    pub counts: Counts,
}

impl Default for Half {
    fn default() -> Self {
        Self {
            seen: None,
            first: ORIGIN,
            mss: 0,
            most: USUAL_MSS,
            scale: None,
            last: None,
            last_full: false,
            last_push: false,
            pushes: false,
            identifications: Identifications::default(),
            answers: Answers::default(),
            echoes: Echoes::default(),
            theirs: Theirs::default(),
            missing: None,
            unexplained: 0,
            announced: 0,
            holed: None,
            stamp: None,
            knew: 0,
            recovers: 0,
            behind: false,
            tails: 0,
            strange: 0,
            rtt: Rtt::default(),
            open: None,
            timeout: None,
            events: Vec::new(),
            counts: Counts::default(),
        }
    }
}

impl Half {
    /// Counts a packet of this end.
    #[inline]
    pub fn count(&mut self, segment: &Segment) {
        self.counts.packets += 1;
        self.counts.ect += u64::from(segment.ecn.is_ect());
        self.counts.ce += u64::from(segment.ecn == Ecn::Ce);
        self.counts.ece += u64::from(segment.has(flag::ECE) && !segment.has(flag::SYN));
    }

    /// Processes a segment that this end sent.
    pub fn sent(&mut self, segment: &Segment) {
        self.count_missing(segment);
        let heard = self.hear(segment);
        if let Some(scale) = segment.scale {
            self.scale = Some(scale);
        }
        // An ACK is sent at once. Data may have waited for the application and a SYN-ACK for its
        // timer, so that only short samples of theirs are RTTs.
        let most = if segment.has(flag::SYN) { INITIAL } else { GAP };
        let prompt = |sample: &Duration| segment.space() == 0 || *sample < most;
        let sample = heard.and_then(|heard| heard.sample).filter(prompt);
        if let Some(sample) = sample.filter(|_| !self.rtt.is_known() && !segment.has(flag::RST)) {
            self.rtt.sample(segment.at, sample, Source::Timestamps);
        }
        if segment.has(flag::SYN) {
            self.syn(segment);
            return;
        }
        if segment.has(flag::RST) {
            return;
        }
        if segment.space() == 0 {
            self.announce(segment);
            return;
        }
        let Some((start, end)) = self.place(segment) else { return };
        if self.is_probe(segment, start, end) {
            self.counts.probes += 1;
            return;
        }
        let Some(seen) = &mut self.seen else { return };
        let (high_before, next_before) = (seen.high(), seen.next());
        let fresh = seen.add(start, end);
        self.counts.segments += 1;
        self.counts.bytes += u64::from(segment.length);
        self.counts.last = segment.at;
        self.counts.filled += u64::from(fresh == Fresh::Fills);
        self.counts.repeated += u64::from(fresh == Fresh::Nothing);
        self.mss = self.mss.max(segment.length.min(self.most));
        let (at, data, push) = (segment.at, segment.length, segment.has(flag::PSH));
        let stamp = segment.timestamps.map(|(value, _)| value);
        let overtaken = stamp.zip(self.stamp).is_some_and(|(a, b)| precedes(a, b));
        if !overtaken {
            self.stamp = stamp;
        }
        self.arrived(&Arrival {
            at,
            start,
            end,
            fresh,
            high_before,
            next_before,
            heard,
            overtaken,
            data,
            push,
        });
        self.theirs.came(at, end, matches!(fresh, Fresh::Fills | Fresh::Nothing));
        self.answers.packets = 0;
        let late = self.last.is_some_and(|last| is_long(at.since(last), self.rtt.smoothed));
        self.explain_missing(fresh, end.saturating_sub(high_before), late, push && data < self.mss);
        let whole = self.seen.as_ref().is_some_and(|seen| !seen.has_holes());
        self.holed = match fresh {
            _ if whole => None,
            // The sender was repairing holes before: the retransmission of the first one would be
            // older.
            Fresh::Fills | Fresh::Nothing => Some(Time::ZERO),
            Fresh::Next | Fresh::Beyond => self.holed.or(Some(at)),
        };
        if fresh == Fresh::Next && whole && self.answers.owes.is_none() {
            self.answers.owes = Some(at);
        }
        self.pushes |= push;
        if end >= high_before {
            (self.last_push, self.last_full) = (push, data >= self.mss);
        }
        self.last = Some(at);
    }

    /// Reads from the echoed timestamp which packets the sender had received.
    fn hear(&mut self, segment: &Segment) -> Option<Heard> {
        let (value, echo) = segment.timestamps.filter(|_| segment.has(flag::ACK))?;
        let Self { echoes, theirs, seen, answers, .. } = self;
        answers.taken = Some(segment.ack);
        // A D-SACK (RFC 2883 § 4) reports the repeated request as a duplicate: the first one was
        // received.
        if segment.blocks[0].is_some_and(|(start, _)| precedes(start, segment.ack)) {
            answers.repeated = None;
        }
        // A request that was repeated, and then answered at once, had not been received before.
        let again =
            answers.repeated.filter(|&again| answers.asked.is_some_and(|asked| asked < again));
        let clocked = |again: &Time| {
            let since = segment.at.since(*again);
            since >= self.rtt.min * 15 / 16
                && since <= self.rtt.smoothed * 9 / 8 + Duration::from_millis(2)
        };
        let ahead = seen.as_ref().map_or(0, |seen| segment.seq.wrapping_sub(seen.high() as u32));
        let hole = if ahead.cast_signed() > 0 { ahead.div_ceil(self.mss.max(1)) } else { 0 };
        if let Some(again) = again.filter(clocked)
            && self.missing.unwrap_or(0) > hole
        {
            theirs.unheard(Time(again.0.saturating_sub(1)));
        }
        let (round, before) = (self.rtt.smoothed, theirs.newest());
        let sent = seen.as_ref().map_or(0, Seen::high);
        let heard = echoes.heard(echo, segment.at, |said| theirs.hears(said, round, sent));
        if theirs.newest() == before && !self.stamp.is_some_and(|newest| precedes(value, newest)) {
            theirs.silent(Time(segment.at.0.saturating_sub((round * 9 / 8).0)));
        }
        heard
    }

    /// Attributes missing packets to the hole that shows them, to retransmissions, or to the end of
    /// the data sent.
    fn explain_missing(&mut self, fresh: Fresh, beyond: u64, late: bool, end: bool) {
        let missing = self.missing.replace(0).unwrap_or(0);
        self.unexplained = match fresh {
            // This segment may be one of the missing ones, but not their last.
            Fresh::Next if !end => self.unexplained.saturating_sub(1),
            Fresh::Next => 0,
            Fresh::Beyond => {
                let hole = beyond.div_ceil(u64::from(self.mss.max(1))).saturating_sub(1);
                self.unexplained
                    .saturating_add(missing.saturating_sub(hole.min(u64::from(u32::MAX)) as u32))
            }
            // Packets lost during a long silence were retransmissions.
            Fresh::Fills | Fresh::Nothing if late => self.unexplained,
            Fresh::Fills | Fresh::Nothing => self.unexplained.saturating_add(missing),
        };
    }

    /// Notes the sequence number of a pure ACK: all data before it were sent.
    fn announce(&mut self, segment: &Segment) {
        let Some(seen) = &self.seen else { return };
        let ahead = segment.seq.wrapping_sub(seen.high() as u32).cast_signed();
        if ahead > 0 && u64::from(ahead.unsigned_abs()) < FARTHEST {
            self.announced = seen.high() + u64::from(ahead.unsigned_abs());
        }
    }

    /// Counts packets that were sent in between and did not arrive, by their identifications.
    fn count_missing(&mut self, segment: &Segment) {
        // A Linux sender numbers packets from the handshake on. Before its first ACK, which
        // acknowledges the request, it sent nothing.
        if self.identifications.begins() && segment.space() == 0 && segment.blocks[0].is_none() {
            self.missing = Some(0);
            self.identifications.between(segment, self.mss);
            return;
        }
        // The first long segment may be of the full size.
        let longest = self.mss.max(segment.length.min(self.most));
        let between = self.identifications.between(segment, longest);
        self.missing = self.missing.zip(between).map(|(sum, more)| sum + u32::from(more));
    }

    /// Starts the stream at a SYN or SYN-ACK.
    fn syn(&mut self, segment: &Segment) {
        let first = ORIGIN + u64::from(segment.seq);
        if self.seen.is_none() {
            self.seen = Some(Seen::from(first + 1 + u64::from(segment.length)));
            self.first = first + 1;
            self.answers.acked = first + 1;
            self.answers.advanced = segment.at;
        }
        self.theirs.came(segment.at, self.first, self.last.is_some());
        self.counts.segments += 1;
        self.last = Some(segment.at);
    }

    /// Returns the range of a segment in the stream; `None` if it cannot belong to the stream.
    fn place(&mut self, segment: &Segment) -> Option<(u64, u64)> {
        let seen = self.seen.get_or_insert_with(|| {
            self.first = ORIGIN + u64::from(segment.seq);
            Seen::from(self.first)
        });
        let ahead = segment.seq.wrapping_sub(seen.high() as u32).cast_signed();
        let start = seen.high().saturating_add_signed(i64::from(ahead));
        let end = start + u64::from(segment.space());
        if end > seen.next().max(self.answers.acked) + FARTHEST || end + FARTHEST < seen.next() {
            self.counts.strange += 1;
            return None;
        }
        Some((start, end))
    }

    /// `true` for keep-alives (RFC 9293 § 3.8.4), which repeat an acknowledged byte, and for probes
    /// of a closed window (§ 3.8.6.1), which send one byte.
    fn is_probe(&self, segment: &Segment, start: u64, end: u64) -> bool {
        let Some(seen) = &self.seen else { return false };
        let tiny = segment.length <= 1 && !segment.has(flag::FIN);
        let keep_alive = end == self.answers.acked && end == seen.high() && !seen.has_holes();
        let long_ago =
            self.last.is_some_and(|last| is_long(segment.at.since(last), self.rtt.smoothed));
        tiny && ((keep_alive && long_ago) || (self.answers.closed && start >= seen.next()))
    }

    /// Adds an RTT sample if the sender waited for nothing else.
    fn measure(&mut self, it: &Arrival, silent: Duration, rule: bool) {
        if rule {
            return;
        }
        if let Some(sample) = it.heard.and_then(|heard| heard.sample) {
            // A wait for something else inflates the sample; the sender is then silent for most of
            // it.
            let Rtt { smoothed, variation, .. } = self.rtt;
            let usual = smoothed + (variation * 4).max(smoothed / 2);
            let strange = self.rtt.is_known() && silent > sample / 2 && sample > usual;
            self.strange = if strange { self.strange + 1 } else { 0 };
            if !strange || self.strange > STRANGE {
                self.rtt.sample(it.at, sample, Source::Timestamps);
            }
        } else if it.heard.is_none() && it.fresh == Fresh::Next && it.start <= self.answers.acked {
            // Without timestamps: all data were acknowledged, and the next data came a round trip
            // later.
            let since =
                it.at.since(self.answers.advanced.max(self.answers.asked.unwrap_or(Time::ZERO)));
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

    /// Ends the connection: judges a silence that is still open.
    pub fn end(&mut self) {
        self.counts.forgotten += self.seen.as_ref().map_or(0, Seen::forgotten);
        if let Some(open) = self.open.take() {
            self.judge(&open, false);
        }
        // Silences before the first RTT sample use the minimum RTT found since.
        for event in self.events.iter_mut().filter(|event| event.rtt == Duration::ZERO) {
            (event.rtt, event.variation) = (self.rtt.min, self.rtt.min / 2);
            event.lasting = event.variation;
        }
    }

    /// Returns the results; no more packets come.
    pub fn into_kept(mut self) -> Kept {
        self.events.shrink_to_fit();
        Kept {
            rtt: self.rtt,
            counts: self.counts,
            tails: self.tails,
            linux: self.identifications.is_linux(),
            smoothed: self.theirs.timer().smoothed,
            events: self.events,
        }
    }

    /// Returns the window scale of this end.
    pub const fn scale(&self) -> Option<u8> {
        self.scale
    }
}
