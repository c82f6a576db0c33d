//! What one end of a connection sends, as it is seen from near the other.

use cwnd_units::{Duration, Time};

use crate::clock::{Echoes, Heard, Rtt, Sent, Source};
use crate::event::{Event, Evidence, Kind, What, is_long};
use crate::headers::{Segment, flag};
use crate::identification::Identifications;
use crate::ranges::{Fresh, Ranges};

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
/// Round trips within which a timeout that had grown may still be as long.
const HELD: u64 = 10;
/// No acknowledgement waits longer (RFC 9293 § 3.8.6.3).
const MOST_DELAY: Duration = Duration::from_millis(500);
/// Packets among which is the last that the sender heard, where no timestamps tell.
const RECENT: usize = 8;
/// Segments whose longest wait is a round trip, if there was no handshake.
const FIRST_FLIGHTS: u64 = 16;
/// Sequence numbers begin here, so that those before the first are positive.
const ORIGIN: u64 = 1 << 33;

/// A silence whose meaning what follows will tell.
#[derive(Clone, Debug)]
struct Open {
    event: Event,
    /// Segments that came with the first.
    burst: u32,
    /// The first was as long as segments get.
    full: bool,
    /// The last before the silence was, and had no PSH though others have.
    more: bool,
    /// Only a FIN came.
    close: bool,
    /// The retransmission of the first hole after a stall, else data that are new.
    stall: bool,
    /// The sender had waited, as far as round-trip times tell.
    idle: bool,
    /// What identifications say: packets between, or none.
    between: Option<bool>,
}

/// What the end that receives said last.
#[derive(Clone, Debug, Default)]
struct Answers {
    acked: u64,
    advanced: Time,
    /// When it last sent data, a request maybe.
    asked: Option<Time>,
    /// Since when the window lets something through, or not.
    closed: bool,
    opened: Option<Time>,
    /// When it sent its last packets, the newest first.
    recent: [Time; RECENT],
    /// When the first data came that it has not acknowledged, and how long that takes as a rule.
    owes: Option<Time>,
    delay: Duration,
}

/// Counts of what came.
#[derive(Clone, Copy, Debug, Default)]
pub struct Counts {
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
    /// What was found.
    pub events: Vec<Event>,
}

/// One direction of data.
#[derive(Clone, Debug)]
pub struct Half {
    seen: Option<Ranges>,
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
    /// Round-trip times in a row that were not believed.
    strange: u32,
    /// The round trip from here to the sender and back.
    pub rtt: Rtt,
    open: Option<Open>,
    /// Where the last timeout's segment began, and when it came.
    timeout: Option<(u64, Time)>,
    /// What was found so far.
    pub events: Vec<Event>,
    /// Counts of what came.
    pub counts: Counts,
}

/// An arrival, and what is known of it.
#[derive(Clone, Copy, Debug)]
struct Arrival {
    at: Time,
    start: u64,
    end: u64,
    fresh: Fresh,
    high_before: u64,
    next_before: u64,
    heard: Option<Heard>,
    /// Packets were sent between the last one and this, or not.
    between: Option<bool>,
    data: u32,
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
    /// This end sent a segment.
    pub fn sent(&mut self, segment: &Segment) {
        let heard = segment.timestamps.and_then(|(_, echo)| {
            segment.has(flag::ACK).then(|| self.echoes.heard(echo, segment.at)).flatten()
        });
        let between = self.identifications.between(segment, self.mss);
        if let Some(scale) = segment.scale {
            self.scale = Some(scale);
        }
        if segment.has(flag::SYN) {
            self.syn(segment);
            return;
        }
        if segment.space() == 0 || segment.has(flag::RST) {
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
        self.arrived(&Arrival {
            at,
            start,
            end,
            fresh,
            high_before,
            next_before,
            heard,
            between,
            data,
        });
        let whole = self.seen.as_ref().is_some_and(|seen| !seen.has_holes());
        if fresh == Fresh::Next && whole && self.answers.owes.is_none() {
            self.answers.owes = Some(at);
        }
        self.pushes |= push;
        (self.last_push, self.last_full) = (push, data >= self.mss);
        self.last = Some(at);
    }

    fn syn(&mut self, segment: &Segment) {
        let first = ORIGIN + u64::from(segment.seq);
        if self.seen.is_none() {
            self.seen = Some(Ranges::from(first + 1 + u64::from(segment.length)));
            self.first = first + 1;
            self.answers.acked = first + 1;
            self.answers.advanced = segment.at;
        }
        self.counts.segments += 1;
        self.last = Some(segment.at);
    }

    /// Where a segment is in the stream; `None` if it cannot be of this stream.
    fn place(&mut self, segment: &Segment) -> Option<(u64, u64)> {
        let seen = self.seen.get_or_insert_with(|| {
            self.first = ORIGIN + u64::from(segment.seq);
            Ranges::from(self.first)
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

    fn arrived(&mut self, it: &Arrival) {
        self.follow(it);
        let Some(last) = self.last else { return };
        let silent = it.at.since(last);
        let new = matches!(it.fresh, Fresh::Next | Fresh::Beyond);
        // New data may answer a request: the server was silent since that.
        let began = if new { last.max(self.answers.asked.unwrap_or(last)) } else { last };
        let gap = it.at.since(began);
        let rule = is_long(gap, self.rtt.smoothed);
        if !new && it.fresh == Fresh::Fills && !rule {
            self.look_for_stall(it, began);
        } else if rule && new {
            self.silence_before_new(it, began);
        } else if rule {
            self.silence_before_old(it, began);
        }
        self.measure(it, silent, rule);
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
                self.rtt.sample(sample, Source::Timestamps);
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
                self.rtt.sample(since, Source::Flights);
            }
        }
    }

    /// A retransmission of the first hole that came late though others came in time: S is how long the sender's timer took.
    fn look_for_stall(&mut self, it: &Arrival, began: Time) {
        let event = Event { rule: false, ..self.event(it, began) };
        if it.start <= it.next_before && is_long(event.waited, self.rtt.smoothed) {
            self.begin(event, it, true);
        }
    }

    fn silence_before_old(&mut self, it: &Arrival, began: Time) {
        let heard = it.heard.map(|heard| heard.last);
        let event = self.event(it, began);
        let (kind, evidence) = match it.fresh {
            _ if !self.was_idle(event.idle) => {
                let first = it.fresh == Fresh::Fills && it.start <= it.next_before;
                (if first { Kind::Ambiguous } else { Kind::Recovery }, Evidence::Clocked)
            }
            Fresh::Fills if it.start <= it.next_before => (Kind::Timeout, Evidence::Filled),
            Fresh::Fills => (Kind::Recovery, Evidence::LaterHole),
            // RFC 8985 § 7.3: a probe sends the last segment, a timeout the first that is not acknowledged.
            _ if it.end == it.high_before && heard.is_some_and(|h| h.acked < it.start) => {
                (Kind::Probe, Evidence::Tail)
            }
            _ => (Kind::Timeout, Evidence::Repeated),
        };
        self.found(Event { kind, evidence, ..event });
    }

    fn silence_before_new(&mut self, it: &Arrival, began: Time) {
        let answers = &self.answers;
        let event = self.event(it, began);
        // The window was closed, or opened so late that the data came when they could.
        let late = answers.opened.is_some_and(|at| !is_long(it.at.since(at), self.rtt.smoothed));
        if answers.closed || late {
            self.found(Event { kind: Kind::Window, evidence: Evidence::Window, ..event });
        } else if !self.was_idle(event.idle) {
            self.found(Event { kind: Kind::Client, evidence: Evidence::Clocked, ..event });
        } else if it.fresh == Fresh::Beyond {
            self.found(Event { kind: Kind::Pause, evidence: Evidence::Beyond, ..event });
        } else {
            self.begin(event, it, false);
        }
    }

    fn event(&self, it: &Arrival, began: Time) -> Event {
        Event {
            began,
            ended: it.at,
            rtt: self.rtt.smoothed,
            variation: self.rtt.variation,
            delay: self.answers.delay,
            held: it.heard.is_none()
                && self.timeout.is_some_and(|(_, at)| {
                    it.at.since(at) < self.rtt.smoothed * HELD + self.waited(it, began)
                }),
            waited: self.waited(it, began),
            asked: self.answers.asked.is_some_and(|asked| asked >= self.answers.advanced),
            idle: self.idle(it),
            offset: it.start.saturating_sub(self.first),
            rule: true,
            what: What::Data,
            kind: Kind::Ambiguous,
            evidence: Evidence::None,
            again: self.is_again(it),
            before: 0,
            timeouts: 1,
            rto: Duration::ZERO,
        }
    }

    /// The same segment as after the timeout before: the sender heard of nothing new.
    fn is_again(&self, it: &Arrival) -> bool {
        self.timeout.is_some_and(|(start, _)| start == it.start)
    }

    /// How long the sender had heard nothing: what answers an acknowledgement comes a round trip after that went.
    fn idle(&self, it: &Arrival) -> Duration {
        let rtt = self.rtt.smoothed;
        let heard = match it.heard {
            Some(heard) => heard.last.until,
            None => {
                let on_time = |sent: &&Time| it.at.since(**sent) >= rtt * 9 / 10;
                *self.answers.recent.iter().find(on_time).unwrap_or(&it.at)
            }
        };
        it.at.since(heard).saturating_sub(rtt)
    }

    /// What is within the noise of round-trip times is no waiting.
    fn was_idle(&self, idle: Duration) -> bool {
        let Rtt { smoothed, variation, .. } = self.rtt;
        idle > (variation * 4).max(smoothed / 16).max(Duration::from_millis(5))
    }

    /// From when the sender's timer began (RFC 6298 § 5) to when it sent this, as far as it can be seen: the timer begins anew
    /// when new data are acknowledged, and that is half a round trip away, as the retransmission is.
    fn waited(&self, it: &Arrival, began: Time) -> Duration {
        if let Some((_, at)) = self.timeout.filter(|_| self.is_again(it)) {
            return it.at.since(at);
        }
        let stirred = match it.heard {
            Some(Heard { last: Sent { stirred, .. }, .. }) => stirred,
            None if it.fresh == Fresh::Nothing => began,
            None => self.answers.advanced.max(self.answers.asked.unwrap_or(Time::ZERO)),
        };
        it.at.since(stirred).saturating_sub(self.rtt.smoothed)
    }

    fn begin(&mut self, event: Event, it: &Arrival, stall: bool) {
        self.open = Some(Open {
            event,
            burst: it.data.div_ceil(self.mss.max(1)),
            full: it.data >= self.mss && it.data > 0,
            more: self.last_full && self.pushes && !self.last_push,
            close: it.data == 0,
            stall,
            idle: self.was_idle(event.idle),
            between: it.between,
        });
    }

    /// What came after a silence tells what it was.
    fn follow(&mut self, it: &Arrival) {
        let Some(mut open) = self.open.take() else { return };
        let since = it.at.since(open.event.ended);
        if since <= self.rtt.smoothed / 2 {
            open.burst += it.data.div_ceil(self.mss.max(1)).max(1);
            self.open = Some(open);
            return;
        }
        let clocked = !self.was_idle(self.idle(it));
        self.judge(&open, clocked);
    }

    /// `clocked`: the next segment answered the acknowledgement of the one after the silence.
    fn judge(&mut self, open: &Open, clocked: bool) {
        let alone = open.burst <= 1;
        let (kind, evidence) = match open.between {
            _ if open.stall && !alone => return,
            _ if open.stall && open.idle => (Kind::Timeout, Evidence::Stalled),
            _ if open.stall => (Kind::Ambiguous, Evidence::Stalled),
            Some(true) => (Kind::Timeout, Evidence::Identification),
            Some(false) => (Kind::Pause, Evidence::NothingSent),
            None if open.close => (Kind::Pause, Evidence::Close),
            None if !alone => (Kind::Pause, Evidence::Burst),
            None if open.full && clocked => (Kind::Timeout, Evidence::SlowStart),
            None if open.more => (Kind::Timeout, Evidence::MoreToSend),
            None if open.full => (Kind::Ambiguous, Evidence::Single),
            None => (Kind::Ambiguous, Evidence::None),
        };
        self.found(Event { kind, evidence, ..open.event });
    }

    fn found(&mut self, event: Event) {
        if event.kind == Kind::Timeout {
            self.timeout = Some((event.offset + self.first, event.ended));
        }
        if self.events.len() < MOST_EVENTS {
            self.events.push(event);
        } else {
            self.counts.forgotten += 1;
        }
    }

    /// The end that receives sent a segment; `scale` is that of its windows.
    pub fn answered(&mut self, segment: &Segment, scale: Option<u8>) {
        let Self { seen, answers, .. } = self;
        if let Some(mss) = segment.mss.filter(|&mss| mss > TIMESTAMPS) {
            let taken = if segment.timestamps.is_some() { TIMESTAMPS } else { 0 };
            self.most = u32::from(mss - taken);
        }
        if segment.space() > 0 && !segment.has(flag::SYN) {
            answers.asked = Some(segment.at);
        }
        if let Some(seen) = seen
            && segment.has(flag::ACK)
        {
            let ahead = segment.ack.wrapping_sub(seen.high() as u32).cast_signed();
            let acked = seen.high().saturating_add_signed(i64::from(ahead));
            if acked > answers.acked && acked <= seen.high() + FARTHEST {
                (answers.acked, answers.advanced) = (acked, segment.at);
                if let Some(since) = answers.owes.take() {
                    let late = segment.at.since(since).min(MOST_DELAY);
                    answers.delay = match answers.delay {
                        Duration::ZERO => late,
                        delay => Duration(delay.0 / 8 * 7 + late.0 / 8),
                    };
                }
                // What was acknowledged arrived, captured or not.
                seen.acknowledged(acked);
            }
            let window = u64::from(segment.window) << scale.unwrap_or(0);
            let tight = scale.is_some() && acked + window < seen.high() + u64::from(self.mss);
            let closed = !segment.has(flag::SYN) && (segment.window == 0 || tight);
            if answers.closed && !closed {
                answers.opened = Some(segment.at);
            }
            answers.closed = closed;
            if let [Some((start, end)), other] = segment.blocks {
                let below = |a: u32, b: u32| a.wrapping_sub(b).cast_signed() < 0;
                let inside = other.is_some_and(|(a, b)| !below(start, a) && !below(b, end));
                self.counts.dsacks += u64::from(below(start, segment.ack) || inside);
            }
        }
        self.answers.recent.copy_within(..RECENT - 1, 1);
        self.answers.recent[0] = segment.at;
        if let Some((value, _)) = segment.timestamps {
            let stirred = self.answers.advanced.max(self.answers.asked.unwrap_or(Time::ZERO));
            self.echoes.sent(value, segment.at, self.answers.acked, stirred);
        }
    }

    /// The connection is over.
    pub fn end(&mut self) {
        self.counts.forgotten += self.seen.as_ref().map_or(0, Ranges::forgotten);
        if let Some(open) = self.open.take() {
            self.judge(&open, false);
        }
        // What came before there was a round-trip time is looked at with the one that was found since.
        for event in self.events.iter_mut().filter(|event| event.rtt == Duration::ZERO) {
            (event.rtt, event.variation) = (self.rtt.min, self.rtt.min / 2);
        }
    }

    /// What was found: no more packets come.
    pub fn into_kept(mut self) -> Kept {
        self.events.shrink_to_fit();
        Kept { rtt: self.rtt, counts: self.counts, events: self.events }
    }

    /// Scale of the windows that this end advertises.
    pub const fn scale(&self) -> Option<u8> {
        self.scale
    }
}
