//! Silences of the end that sends, and what they turn out to be.

use cwnd_quantity::{Duration, Time};

use super::{Half, MOST_EVENTS};
use crate::clock::{Heard, Rtt, Sent};
use crate::event::{Event, Evidence, GAP, Kind, Probe, What, is_long};
use crate::half::answers::Said;
use crate::seen::Fresh;

/// Round trips within which a timeout that had grown may still be as long.
const HELD: u64 = 10;
/// No tail loss probe comes later than this after two round-trip times.
const PROBED: Duration = Duration::from_millis(260);

/// A silence whose meaning what follows will tell.
#[derive(Clone, Debug)]
pub struct Open {
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
    /// … and for so long that only its timer can have ended it.
    long: bool,
    /// It was known to have been sent before.
    announced: bool,
    /// It may have been sent before what came last.
    unexplained: bool,
}

/// An arrival, and what is known of it.
#[derive(Clone, Copy, Debug)]
pub struct Arrival {
    pub at: Time,
    pub start: u64,
    pub end: u64,
    pub fresh: Fresh,
    pub high_before: u64,
    pub next_before: u64,
    pub heard: Option<Heard>,
    /// It was sent before what came before it.
    pub overtaken: bool,
    pub data: u32,
    pub push: bool,
}

impl Half {
    pub(super) fn arrived(&mut self, it: &Arrival) {
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
        } else if it.fresh == Fresh::Nothing && !rule {
            self.look_for_late(it, began);
        } else if rule && new {
            self.silence_before_new(it, began);
        } else if rule {
            self.silence_before_old(it, began);
        }
        self.measure(it, silent, rule);
        self.recover(it, rule);
    }

    /// Notes that the sender sends again: in recovery, or as a probe.
    fn recover(&mut self, it: &Arrival, rule: bool) {
        let again = matches!(it.fresh, Fresh::Fills | Fresh::Nothing);
        let lost = self.surplus(it).is_some_and(|packets| packets > 0) || it.start < self.announced;
        let heard = self.last_heard(it);
        // Beyond a hole it is a probe if it had been sent with what is missing there.
        let sent = it.fresh != Fresh::Beyond || lost;
        let alone = it.end >= it.high_before && sent && !heard.holes;
        let waited = it.at.since(heard.at).saturating_sub(self.rtt.smoothed);
        // No stack has timeouts that are this short.
        let short = waited < GAP && waited > self.rtt.smoothed * 3 / 2;
        let tail = alone && short && it.data > 0 && (it.fresh == Fresh::Nothing || lost);
        let late = rule && lost && self.was_idle(self.idle(it));
        // In a recovery nothing but a timeout begins another.
        let recovering = heard.acked < self.recovers && !late;
        if again && !it.overtaken {
            self.announce_lost(it, heard);
        }
        if it.overtaken || !(again || late || tail) || recovering {
            // What was lost behind the segment that a timeout repeated comes one by one.
            if self.behind && self.recovers > it.start && it.fresh == Fresh::Next && !it.overtaken {
                self.recovers = self.recovers.max(it.end + u64::from(!it.push));
            }
            self.knew = heard.acked;
            return;
        }
        self.tails += u32::from(tail);
        // A probe that repaired a loss is over when more than it is acknowledged (Linux); so is a recovery if there was more.
        // Of a single packet that is missing it was the first timer, however late.
        let first = waited < self.rtt.smoothed * 2 + PROBED || (late && self.missing == Some(1));
        let probed = alone && it.fresh != Fresh::Nothing && first;
        self.behind = alone && !it.push;
        // What is missing may be the end of what had been sent, unless that came.
        let ended = if it.end >= it.high_before {
            it.push && it.data < self.mss
        } else {
            self.last_push && !self.last_full
        };
        let tail = !ended && self.unexplained + self.missing.unwrap_or(0) > 0;
        let beyond = u64::from(probed || self.behind || tail);
        self.recovers = it.high_before.max(it.end) + beyond;
        self.knew = heard.acked;
    }

    /// After a timeout more packets are missing than its timers sent: they were the end of what had been sent, lost with what a
    /// probe repeated of it, and what follows comes again.
    fn announce_lost(&mut self, it: &Arrival, heard: Said) {
        let this = |event: &&Event| event.ended == it.at && event.kind == Kind::Timeout;
        let Some((event, missing)) = self.events.last().filter(this).zip(self.missing) else {
            return;
        };
        // As many as fit, each twice as long as the one before, and no shorter than any stack's.
        let (mut timeouts, mut timer) = (0, GAP + self.rtt.smoothed);
        let mut left = event.waited + event.waited / 16;
        while left >= timer {
            (timeouts, left, timer) = (timeouts + 1, left - timer, timer * 2);
        }
        // The first of them repeated a probe at most; requests were acknowledged besides, and a hole repaired at once.
        let since = |at: Option<Time>| u32::from(at > self.last);
        let acknowledged = since(self.answers.asked) + since(self.answers.repeated);
        if missing > timeouts.max(1) + u32::from(heard.holes) + acknowledged {
            self.announced = self.announced.max(it.end.max(it.high_before) + 1);
        }
    }

    /// Packets that are missing, without those of a hole that this shows.
    fn surplus(&self, it: &Arrival) -> Option<u32> {
        let hole = match it.fresh {
            Fresh::Beyond => {
                let beyond = it.end.saturating_sub(it.high_before);
                beyond.div_ceil(u64::from(self.mss.max(1))).saturating_sub(1)
            }
            _ => 0,
        };
        self.missing.map(|missing| missing.saturating_sub(hole.min(u64::from(u32::MAX)) as u32))
    }

    /// The client had to repeat its request, since nothing of it was heard: nor was what it had acknowledged, and the
    /// server's timer went on.
    fn unheard(&self, it: &Arrival) -> Option<Event> {
        let (last, heard) = (self.last?, it.heard?.last);
        let repeated = self.answers.repeated.is_some_and(|at| at > last && heard.until >= at);
        // What was announced was sent since the request had been heard, with what it acknowledged.
        let answered = it.start < self.announced;
        let missing = self.missing.filter(|&packets| packets > 0)?;
        let waited = heard.until.since(last) + self.rtt.smoothed;
        // An acknowledgement besides the request may have been heard all the same.
        let twice = self.answers.packets > 1;
        if !repeated
            || answered
            || twice
            || self.knew >= it.start
            || !is_long(waited, self.rtt.smoothed)
        {
            return None;
        }
        let event = Event { waited, idle: Duration::ZERO, ..self.event(it, last) };
        let offset = self.knew.saturating_sub(self.first);
        let kind = (Kind::Timeout, Evidence::Unheard);
        Some(Event {
            offset,
            missing: Some(missing),
            new: true,
            pushed: true,
            probe: if self.knew < self.recovers { Probe::No } else { Probe::Only },
            kind: kind.0,
            evidence: kind.1,
            ..event
        })
    }

    /// The last packet of the other end that the sender had heard when it sent this.
    fn last_heard(&self, it: &Arrival) -> Said {
        match it.heard {
            Some(Heard { last: Sent { until, acked, holes, .. }, .. }) => {
                Said { at: until, acked, holes }
            }
            None => {
                let on_time = |said: &&Said| it.at.since(said.at) >= self.rtt.smoothed * 9 / 10;
                let known = self.answers.recent.iter().find(on_time).copied();
                known.unwrap_or(Said { at: it.at, ..self.answers.recent[0] })
            }
        }
    }

    /// What a tail loss probe had to do with a silence that ended so.
    fn probe(&self, it: &Arrival) -> Probe {
        let heard = self.last_heard(it);
        let more = u64::from(self.unexplained > 0);
        // What was lost before the last arrival and is not all: it was sent again in a recovery, and lost again.
        let twice =
            more > 0 && it.fresh == Fresh::Next && self.missing.is_some_and(|missing| missing > 0);
        if twice || heard.holes || heard.acked < self.recovers + more || self.is_again(it) {
            Probe::No
        } else if it.end < it.high_before.max(self.announced)
            || it.fresh == Fresh::Beyond
            || (self.pushes
                && !it.push
                && it.data >= self.mss
                && self.missing.is_some_and(|missing| missing > 1))
        {
            Probe::Before
        } else if heard.acked >= it.start {
            Probe::Only
        } else {
            Probe::Last
        }
    }

    /// A retransmission of the first hole that came late though others came in time: S is how long the sender's timer took.
    fn look_for_stall(&mut self, it: &Arrival, began: Time) {
        let event = Event { rule: false, ..self.event(it, began) };
        if it.start > it.next_before {
            return;
        }
        // Linux's timer may count from when the hole was sent, a round trip before what acknowledged what lay before it.
        let sent = event.waited + self.rtt.smoothed;
        if is_long(event.waited, self.rtt.smoothed) {
            self.begin(event, it, true);
        } else if event.idle > self.rtt.smoothed && is_long(sent, self.rtt.smoothed) {
            self.begin(Event { waited: sent, ..event }, it, true);
        }
    }

    /// What had arrived comes again although more came since: its acknowledgement was lost, and while the sender's timer ran the
    /// application wrote more.
    fn look_for_late(&mut self, it: &Arrival, began: Time) {
        // A probe would have sent the last segment.
        let first = self.last_heard(it).acked == it.start && it.end < it.high_before;
        let event = Event { rule: false, ..self.event(it, began) };
        let long =
            is_long(event.waited, self.rtt.smoothed) && is_long(event.idle, self.rtt.smoothed);
        if first && long && it.heard.is_some() && !it.overtaken {
            self.found(Event { kind: Kind::Timeout, evidence: Evidence::Repeated, ..event });
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
        } else if let Some(unheard) = self.unheard(it).filter(|_| it.fresh == Fresh::Next) {
            self.found(unheard);
        } else if !self.was_idle(event.idle) && it.start >= self.announced {
            self.found(Event { kind: Kind::Client, evidence: Evidence::Clocked, ..event });
        } else if it.fresh == Fresh::Beyond || it.start > it.next_before {
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
            lasting: self.rtt.lasting,
            queued: self.rtt.smoothed.saturating_sub(self.rtt.min),
            linux: self.theirs.timer(),
            delay: self.answers.delay,
            held: it.heard.is_none()
                && self.timeout.is_some_and(|(_, at, again)| {
                    again && it.at.since(at) < self.rtt.smoothed * HELD + self.waited(it, began)
                }),
            waited: self.waited(it, began),
            asked: self.answers.asked.is_some_and(|asked| asked >= self.answers.advanced),
            repeated: self.is_repeated(it),
            pushed: it.push || it.data < self.mss,
            written: it.fresh == Fresh::Next && self.last_heard(it).acked >= it.start,
            idle: self.idle(it),
            probe: self.probe(it),
            missing: self.missing,
            new: it.fresh == Fresh::Next && (self.unexplained == 0 || self.missing != Some(0)),
            twice: it.fresh == Fresh::Fills && self.was_repaired(it),
            offset: it.start.saturating_sub(self.first),
            rule: true,
            what: if it.data > 0 { What::Data } else { What::Fin },
            kind: Kind::Ambiguous,
            evidence: Evidence::None,
            again: self.is_again(it),
            before: 0,
            timeouts: 1,
            rto: Duration::ZERO,
        }
    }

    /// The sender had heard of the first hole, and sent it again at once, after all that came: the hole was seen only then, or what
    /// is missing before has other reasons, and Linux repairs what it hears of (RFC 8985).
    fn was_repaired(&self, it: &Arrival) -> bool {
        let heard = self.last_heard(it);
        let after = self.last.is_some_and(|last| heard.at >= last) && self.unexplained == 0;
        heard.holes && (self.is_young() || (after && self.identifications.is_linux()))
    }

    /// The first hole was seen so late that what the sender sent again at once would have come after all that came.
    fn is_young(&self) -> bool {
        let round = self.rtt.smoothed * 5 / 4;
        self.holed.zip(self.last).is_some_and(|(holed, last)| last.since(holed) < round)
    }

    /// What the sender had heard last was a request that had been sent before.
    fn is_repeated(&self, it: &Arrival) -> bool {
        let (asked, again) = (self.answers.asked, self.answers.repeated);
        let heard = self.last_heard(it).at;
        asked.zip(again).is_some_and(|(asked, again)| again > asked && heard >= again)
    }

    /// The same segment as after the timeout before: the sender heard of nothing new.
    fn is_again(&self, it: &Arrival) -> bool {
        self.timeout.is_some_and(|(start, _, again)| again && start == it.start)
    }

    /// How long the sender had heard nothing: what answers an acknowledgement comes a round trip after that went.
    fn idle(&self, it: &Arrival) -> Duration {
        it.at.since(self.last_heard(it).at).saturating_sub(self.rtt.smoothed)
    }

    /// What is within the noise of round-trip times is no waiting.
    fn was_idle(&self, idle: Duration) -> bool {
        let Rtt { smoothed, variation, .. } = self.rtt;
        idle > (variation * 4).max(smoothed / 16).max(Duration::from_millis(5))
    }

    /// From when the sender's timer began (RFC 6298 § 5) to when it sent this, as far as it can be seen: the timer begins anew
    /// when new data are acknowledged, and that is half a round trip away, as the retransmission is.
    fn waited(&self, it: &Arrival, began: Time) -> Duration {
        if let Some((_, at, _)) = self.timeout.filter(|(start, ..)| *start == it.start) {
            return it.at.since(at);
        }
        let stirred = match it.heard {
            // What had been sent when the request was heard again was sent then.
            Some(Heard { last: Sent { until, .. }, .. })
                if it.fresh != Fresh::Next && self.is_repeated(it) =>
            {
                until
            }
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
            long: is_long(event.idle, self.rtt.smoothed),
            announced: it.start < self.announced,
            unexplained: self.unexplained > 0,
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
    pub(super) fn judge(&mut self, open: &Open, clocked: bool) {
        let alone = open.burst <= 1;
        let (kind, evidence) = match open.event.missing.map(|packets| packets > 0) {
            _ if open.stall && !alone && !open.long => return,
            _ if open.stall && open.idle => (Kind::Timeout, Evidence::Stalled),
            _ if open.stall => (Kind::Ambiguous, Evidence::Stalled),
            _ if open.announced => (Kind::Timeout, Evidence::Announced),
            Some(true) => (Kind::Timeout, Evidence::Identification),
            Some(false) if !open.unexplained => (Kind::Pause, Evidence::NothingSent),
            _ if open.close => (Kind::Pause, Evidence::Close),
            _ if !alone => (Kind::Pause, Evidence::Burst),
            _ if open.full && clocked => (Kind::Timeout, Evidence::SlowStart),
            _ if open.more => (Kind::Timeout, Evidence::MoreToSend),
            _ if open.full => (Kind::Ambiguous, Evidence::Single),
            _ => (Kind::Ambiguous, Evidence::None),
        };
        self.found(Event { kind, evidence, ..open.event });
    }

    fn found(&mut self, event: Event) {
        if matches!(event.kind, Kind::Timeout | Kind::Ambiguous | Kind::Pause) {
            let again = event.kind == Kind::Timeout;
            self.timeout = Some((event.offset + self.first, event.ended, again));
        }
        if self.events.len() < MOST_EVENTS {
            self.events.push(event);
        } else {
            self.counts.forgotten += 1;
        }
    }
}
