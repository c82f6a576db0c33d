//! Data that one end of a connection sends, as it is seen from near the other.

use cwnd_packet::Ecn;
use cwnd_quantity::{Duration, Time};

use crate::clock::{Echoes, Heard, Rtt, Source};
use crate::event::{Event, GAP, is_long};
use crate::headers::{Segment, flag, precedes};
use crate::identification::Identifications;
use crate::seen::{Fresh, Seen};

mod answers;
mod silence;
mod theirs;

use answers::Answers;
use silence::{Arrival, Open};
use theirs::Theirs;

/// What a connection remembers at most; the rest is counted.
const MOST_EVENTS: usize = 4096;
/// No window is larger (RFC 7323 § 2.3): a segment further on is not of this connection.
const FARTHEST: u64 = 1 << 30;
/// An Ethernet's, where no SYN said another.
const USUAL_MSS: u32 = 1460;
/// What timestamps take of each segment.
const TIMESTAMPS: u16 = 12;
/// Round-trip times far from the others are believed after so many in a row.
const STRANGE: u32 = 2;
/// No acknowledgement waits longer (RFC 9293 § 3.8.6.3).
const MOST_DELAY: Duration = Duration::from_millis(500);
/// Segments whose longest wait is a round trip, if there was no handshake.
const FIRST_FLIGHTS: u64 = 16;
/// After this a SYN-ACK goes again (RFC 6298 § 2.1).
const INITIAL: Duration = Duration::from_secs(1);
/// Sequence numbers begin here, so that those before the first are positive.
const ORIGIN: u64 = 1 << 33;

/// Counts of what came.
#[derive(Clone, Copy, Debug, Default)]
pub struct Counts {
    /// Packets of any kind.
    pub packets: u64,
    /// Packets that may be marked, and that were (RFC 3168 § 5).
    pub ect: u64,
    /// See `ect`.
    pub ce: u64,
    /// Packets that say that a mark came (RFC 3168 § 6.1.3), without SYNs.
    pub ece: u64,
    /// Segments with data, SYN or FIN.
    pub segments: u64,
    /// Their data.
    pub bytes: u64,
    /// When the last of them came.
    pub last: Time,
    /// Segments that filled a hole.
    pub filled: u64,
    /// Segments that had arrived before.
    pub repeated: u64,
    /// Segments that cannot be of this connection.
    pub strange: u64,
    /// Keep-alives and probes of a closed window.
    pub probes: u64,
    /// DSACK blocks of the receiver (RFC 2883).
    pub dsacks: u64,
    /// Events that were not remembered.
    pub forgotten: u64,
}

/// What is kept of a direction whose connection is over.
#[derive(Clone, Debug)]
pub struct Kept {
    /// The round trip from here to the sender and back.
    pub rtt: Rtt,
    /// Counts of what came.
    pub counts: Counts,
    /// Tail loss probes that came too soon for timeouts.
    pub tails: u32,
    /// It is Linux, by its identifications.
    pub linux: bool,
    /// SRTT of the sender if it is Linux; zero if it is not known.
    pub smoothed: Duration,
    /// What was found.
    pub events: Vec<Event>,
}

/// One direction of data.
#[derive(Clone, Debug)]
pub struct Half {
    seen: Option<Seen>,
    /// The first byte, or the first that was seen.
    first: u64,
    /// The longest segment, as one packet.
    mss: u32,
    /// What the other end takes: a longer one was put together by a network card.
    most: u32,
    /// Scale of the windows that this end advertises.
    scale: Option<u8>,
    last: Option<Time>,
    last_full: bool,
    last_push: bool,
    pushes: bool,
    identifications: Identifications,
    answers: Answers,
    echoes: Echoes,
    theirs: Theirs,
    /// Packets that the sender sent since its last data and that never came; `None` if it does not count them.
    missing: Option<u32>,
    /// Of those before, what no hole explains, since all had come: it may have been the end of what was sent.
    unexplained: u32,
    /// Up to where it had sent, as its acknowledgements say.
    announced: u64,
    /// Since when there are holes.
    holed: Option<Time>,
    /// Its newest timestamp.
    stamp: Option<u32>,
    /// What it knew to have arrived when it last sent.
    knew: u64,
    /// Where the recovery ends that it is in: what it had sent by then must be acknowledged.
    recovers: u64,
    /// Whether more was behind what it sent again then.
    behind: bool,
    /// Segments that came again sooner than after any timeout, with nothing beyond them: tail loss probes.
    tails: u32,
    /// Round-trip times in a row that were not believed.
    strange: u32,
    /// The round trip from here to the sender and back.
    pub rtt: Rtt,
    open: Option<Open>,
    /// Where the segment began that came last after a silence, when it came, and whether it was sent again.
    timeout: Option<(u64, Time, bool)>,
    /// What was found so far.
    pub events: Vec<Event>,
    /// Counts of what came.
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

    /// This end sent a segment.
    pub fn sent(&mut self, segment: &Segment) {
        self.count_missing(segment);
        let heard = self.hear(segment);
        if let Some(scale) = segment.scale {
            self.scale = Some(scale);
        }
        // Data may have waited for long, and a SYN-ACK for its timer; acknowledgements don't.
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
            // What the sender sent again of the first hole went before.
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

    /// What a segment says that its sender had heard.
    fn hear(&mut self, segment: &Segment) -> Option<Heard> {
        let (value, echo) = segment.timestamps.filter(|_| segment.has(flag::ACK))?;
        let Self { echoes, theirs, seen, answers, .. } = self;
        answers.taken = Some(segment.ack);
        // It says that the request came twice (RFC 2883 § 4): it had heard it before.
        if segment.blocks[0].is_some_and(|(start, _)| precedes(start, segment.ack)) {
            answers.repeated = None;
        }
        // A request that came again and was answered at once had not been heard before.
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

    /// What is missing is the hole that shows it, retransmissions, or what lay behind all that came.
    fn explain_missing(&mut self, fresh: Fresh, beyond: u64, late: bool, end: bool) {
        let missing = self.missing.replace(0).unwrap_or(0);
        self.unexplained = match fresh {
            // It was one of them, maybe, but not their last.
            Fresh::Next if !end => self.unexplained.saturating_sub(1),
            Fresh::Next => 0,
            Fresh::Beyond => {
                let hole = beyond.div_ceil(u64::from(self.mss.max(1))).saturating_sub(1);
                self.unexplained
                    .saturating_add(missing.saturating_sub(hole.min(u64::from(u32::MAX)) as u32))
            }
            // In a long silence they were retransmissions.
            Fresh::Fills | Fresh::Nothing if late => self.unexplained,
            Fresh::Fills | Fresh::Nothing => self.unexplained.saturating_add(missing),
        };
    }

    /// An acknowledgement bears the number of what comes next: what lies before was sent.
    fn announce(&mut self, segment: &Segment) {
        let Some(seen) = &self.seen else { return };
        let ahead = segment.seq.wrapping_sub(seen.high() as u32).cast_signed();
        if ahead > 0 && u64::from(ahead.unsigned_abs()) < FARTHEST {
            self.announced = seen.high() + u64::from(ahead.unsigned_abs());
        }
    }

    /// Identifications count what was sent between.
    fn count_missing(&mut self, segment: &Segment) {
        // Who counts from the handshake on sent nothing before its first acknowledgement, which is that of a request.
        if self.identifications.begins() && segment.space() == 0 && segment.blocks[0].is_none() {
            self.missing = Some(0);
            self.identifications.between(segment, self.mss);
            return;
        }
        // The first that is long may be as long as segments get.
        let longest = self.mss.max(segment.length.min(self.most));
        let between = self.identifications.between(segment, longest);
        self.missing = self.missing.zip(between).map(|(sum, more)| sum + u32::from(more));
    }

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

    /// Where a segment is in the stream; `None` if it cannot be of this stream.
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

    /// Keep-alives (RFC 9293 § 3.8.4) repeat a byte that was acknowledged; probes of a closed window (§ 3.8.6.1) send one.
    fn is_probe(&self, segment: &Segment, start: u64, end: u64) -> bool {
        let Some(seen) = &self.seen else { return false };
        let tiny = segment.length <= 1 && !segment.has(flag::FIN);
        let keep_alive = end == self.answers.acked && end == seen.high() && !seen.has_holes();
        let long_ago =
            self.last.is_some_and(|last| is_long(segment.at.since(last), self.rtt.smoothed));
        tiny && ((keep_alive && long_ago) || (self.answers.closed && start >= seen.next()))
    }

    /// Takes round-trip times where the sender did not wait for anything else.
    fn measure(&mut self, it: &Arrival, silent: Duration, rule: bool) {
        if rule {
            return;
        }
        if let Some(sample) = it.heard.and_then(|heard| heard.sample) {
            // A sender that waits for something else makes samples long, and is silent for that long.
            let Rtt { smoothed, variation, .. } = self.rtt;
            let usual = smoothed + (variation * 4).max(smoothed / 2);
            let strange = self.rtt.is_known() && silent > sample / 2 && sample > usual;
            self.strange = if strange { self.strange + 1 } else { 0 };
            if !strange || self.strange > STRANGE {
                self.rtt.sample(it.at, sample, Source::Timestamps);
            }
        } else if it.heard.is_none() && it.fresh == Fresh::Next && it.start <= self.answers.acked {
            // Without timestamps: all was acknowledged, and the next data came a round trip later.
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

    /// The connection is over.
    pub fn end(&mut self) {
        self.counts.forgotten += self.seen.as_ref().map_or(0, Seen::forgotten);
        if let Some(open) = self.open.take() {
            self.judge(&open, false);
        }
        // What came before there was a round-trip time is looked at with the one that was found since.
        for event in self.events.iter_mut().filter(|event| event.rtt == Duration::ZERO) {
            (event.rtt, event.variation) = (self.rtt.min, self.rtt.min / 2);
            event.lasting = event.variation;
        }
    }

    /// What was found: no more packets come.
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

    /// Scale of the windows that this end advertises.
    pub const fn scale(&self) -> Option<u8> {
        self.scale
    }
}
