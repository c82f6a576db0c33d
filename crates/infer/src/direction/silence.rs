//! Silences of a sender, and their classification by the segments that follow.

use cwnd_quantity::{Duration, Time};

use super::{Half, MOST_EVENTS};
use crate::captured_bytes::Fresh;
use crate::clock::{Heard, Rtt, Sent};
use crate::direction::receiver_state::Said;
use crate::event::{Event, Evidence, GAP, Kind, Probe, What, is_long};

/// Round trips after a timeout for which the RTO may stay backed off.
const HELD: u64 = 10;
/// Latest time of a tail loss probe, beyond two round trips.
const PROBED: Duration = Duration::from_millis(260);

/// A silence whose kind depends on the segments that follow.
#[derive(Clone, Debug)]
pub struct Open {
    event: Event,
    /// Segments that arrived together with the one that ended it, including that one.
    burst: u32,
    /// `true` if the segment that ended it is of full size.
    full: bool,
    /// `true` if the last segment before it was full and had no PSH, although others have.
    more: bool,
    /// `true` if only a FIN ended it.
    close: bool,
    /// `true` if a retransmission of the first hole ended it after a stall; `false` if new data
    /// did.
    stall: bool,
    /// `true` if the sender had waited for longer than RTTs vary.
    idle: bool,
    /// `true` if it had waited for so long that only its timer can have ended the silence.
    long: bool,
    /// `true` if an ACK had shown that the segment was sent before.
    announced: bool,
    /// `true` if the segment may have been sent before the last arrival.
    unexplained: bool,
}

/// A data segment that arrived, with the state at its arrival.
#[derive(Clone, Copy, Debug)]
pub struct Arrival {
    pub at: Time,
    pub start: u64,
    pub end: u64,
    /// Relation of its bytes to those captured before.
    pub fresh: Fresh,
    /// Highest position before it.
    pub high_before: u64,
    /// Position of the first hole before it, or the highest position.
    pub next_before: u64,
    /// Packets that its sender had received, if timestamps show them.
    pub heard: Option<Heard>,
    /// `true` if an earlier arrival was sent later.
    pub overtaken: bool,
    pub data: u32,
    pub push: bool,
}

impl Half {
    /// Finds the silence that an arrival ends, and updates RTT and recovery.
    pub(super) fn arrived(&mut self, it: &Arrival) {
        self.follow(it);
        let Some(last) = self.last else { return };
        let silent = it.at.since(last);
        let new = matches!(it.fresh, Fresh::Next | Fresh::Beyond);
        // New data may respond to a request: then the silence began with the request.
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

    /// Tracks recoveries and tail loss probes.
    fn recover(&mut self, it: &Arrival, rule: bool) {
        let again = matches!(it.fresh, Fresh::Fills | Fresh::Nothing);
        let lost = self.surplus(it).is_some_and(|packets| packets > 0) || it.start < self.announced;
        let heard = self.last_heard(it);
        // Beyond a hole it is a probe only if it was sent before, with the missing segments.
        let sent = it.fresh != Fresh::Beyond || lost;
        let alone = it.end >= it.high_before && sent && !heard.holes;
        let waited = it.at.since(heard.at).saturating_sub(self.rtt.smoothed);
        // No stack has such short timeouts.
        let short = waited < GAP && waited > self.rtt.smoothed * 3 / 2;
        let tail = alone && short && it.data > 0 && (it.fresh == Fresh::Nothing || lost);
        let late = rule && lost && self.was_idle(self.idle(it));
        // During a recovery only a timeout begins another one.
        let recovering = heard.acked < self.recovers && !late;
        if again && !it.overtaken {
            self.announce_lost(it, heard);
        }
        if it.overtaken || !(again || late || tail) || recovering {
            // Segments lost behind the one that a timeout repeated come one by one.
            if self.behind && self.recovers > it.start && it.fresh == Fresh::Next && !it.overtaken {
                self.recovers = self.recovers.max(it.end + u64::from(!it.push));
            }
            self.knew = heard.acked;
            return;
        }
        self.tails += u32::from(tail);
        // A recovery by a probe ends when more than the probe is acknowledged (Linux), and so does
        // one with more data behind it. A single missing packet was sent by the first timer,
        // however late.
        let first = waited < self.rtt.smoothed * 2 + PROBED || (late && self.missing == Some(1));
        let probed = alone && it.fresh != Fresh::Nothing && first;
        self.behind = alone && !it.push;
        // Missing packets may be the end of the data sent, unless that end arrived.
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

    /// Finds data lost at the end of what was sent: after a timeout, more packets are missing than
    /// its timers sent. They were lost together with the data that a probe repeated, and are sent
    /// again next.
    fn announce_lost(&mut self, it: &Arrival, heard: Said) {
        let this = |event: &&Event| event.ended == it.at && event.kind == Kind::Timeout;
        let Some((event, missing)) = self.events.last().filter(this).zip(self.missing) else {
            return;
        };
        // The most timeouts that fit: each twice as long as the one before, the first as short as
        // any stack's.
        let (mut timeouts, mut timer) = (0, GAP + self.rtt.smoothed);
        let mut left = event.waited + event.waited / 16;
        while left >= timer {
            (timeouts, left, timer) = (timeouts + 1, left - timer, timer * 2);
        }
        // The first of them repeated a probe at most. ACKs of requests and the immediate repair of
        // a hole are packets, too.
        let since = |at: Option<Time>| u32::from(at > self.last);
        let acknowledged = since(self.answers.asked) + since(self.answers.repeated);
        if missing > timeouts.max(1) + u32::from(heard.holes) + acknowledged {
            self.announced = self.announced.max(it.end.max(it.high_before) + 1);
        }
    }

    /// Returns the number of missing packets outside the hole that this segment shows.
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

    /// Returns the silence as a timeout if the client had to repeat its request, since the server
    /// received none of it. Then the server did not receive the ACK in it either, and its timer
    /// went on.
    fn unheard(&self, it: &Arrival) -> Option<Event> {
        let (last, heard) = (self.last?, it.heard?.last);
        let repeated = self.answers.repeated.is_some_and(|at| at > last && heard.until >= at);
        // Data known as sent were sent after the request was received, together with its ACK.
        let answered = it.start < self.announced;
        let missing = self.missing.filter(|&packets| packets > 0)?;
        let waited = heard.until.since(last) + self.rtt.smoothed;
        // Another ACK besides the request may have been received.
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

    /// Returns the last packet of the receiver that the sender had received when it sent this.
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

    /// Returns the relation of this silence to a tail loss probe.
    fn probe(&self, it: &Arrival) -> Probe {
        let heard = self.last_heard(it);
        let more = u64::from(self.unexplained > 0);
        // Lost before the last arrival, with more still missing: a recovery sent it again, and it
        // was lost again.
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

    /// Finds stalls: a retransmission of the first hole came late, while other segments came in
    /// time. The wait is the time that the sender's timer took.
    fn look_for_stall(&mut self, it: &Arrival, began: Time) {
        let event = Event { rule: false, ..self.event(it, began) };
        if it.start > it.next_before {
            return;
        }
        // Linux's timer may have started with the lost segment, a round trip before the ACK of
        // earlier data.
        let sent = event.waited + self.rtt.smoothed;
        if is_long(event.waited, self.rtt.smoothed) {
            self.begin(event, it, true);
        } else if event.idle > self.rtt.smoothed && is_long(sent, self.rtt.smoothed) {
            self.begin(Event { waited: sent, ..event }, it, true);
        }
    }

    /// Finds timeouts whose segment had arrived although later data came since: the ACK was lost,
    /// and the application wrote more while the sender's timer ran.
    fn look_for_late(&mut self, it: &Arrival, began: Time) {
        // A probe would have repeated the last segment.
        let first = self.last_heard(it).acked == it.start && it.end < it.high_before;
        let event = Event { rule: false, ..self.event(it, began) };
        let long =
            is_long(event.waited, self.rtt.smoothed) && is_long(event.idle, self.rtt.smoothed);
        if first && long && it.heard.is_some() && !it.overtaken {
            self.found(Event { kind: Kind::Timeout, evidence: Evidence::Repeated, ..event });
        }
    }

    /// Classifies a silence that ended with a filled hole or with repeated data.
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
            // RFC 8985 § 7.3: a probe sends the last segment, a timeout the first unacknowledged
            // one.
            _ if it.end == it.high_before && heard.is_some_and(|h| h.acked < it.start) => {
                (Kind::Probe, Evidence::Tail)
            }
            _ => (Kind::Timeout, Evidence::Repeated),
        };
        self.found(Event { kind, evidence, ..event });
    }

    /// Classifies a silence that ended with new data, or keeps it open.
    fn silence_before_new(&mut self, it: &Arrival, began: Time) {
        let answers = &self.answers;
        let event = self.event(it, began);
        // The window was closed, or it opened so late that the data could not come earlier.
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

    /// Returns the silence that an arrival ends, not classified yet.
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

    /// `true` if the sender knew of the first hole and retransmitted it at once, after the last
    /// arrival. That holds for a young hole, and for Linux, which repairs each hole that it knows
    /// (RFC 8985).
    fn was_repaired(&self, it: &Arrival) -> bool {
        let heard = self.last_heard(it);
        let after = self.last.is_some_and(|last| heard.at >= last) && self.unexplained == 0;
        heard.holes && (self.is_young() || (after && self.identifications.is_linux()))
    }

    /// `true` if the first hole appeared so late that its immediate retransmission would have come
    /// after the last arrival.
    fn is_young(&self) -> bool {
        let round = self.rtt.smoothed * 5 / 4;
        self.holed.zip(self.last).is_some_and(|(holed, last)| last.since(holed) < round)
    }

    /// `true` if the last packet that the sender had received was a repeated request.
    fn is_repeated(&self, it: &Arrival) -> bool {
        let (asked, again) = (self.answers.asked, self.answers.repeated);
        let heard = self.last_heard(it).at;
        asked.zip(again).is_some_and(|(asked, again)| again > asked && heard >= again)
    }

    /// `true` if the previous timeout sent the same segment: the sender has received nothing new
    /// since.
    fn is_again(&self, it: &Arrival) -> bool {
        self.timeout.is_some_and(|(start, _, again)| again && start == it.start)
    }

    /// Returns for how long the sender had received nothing when it sent this packet: the time
    /// since the last packet left for it, less the round trip that a response takes.
    fn idle(&self, it: &Arrival) -> Duration {
        it.at.since(self.last_heard(it).at).saturating_sub(self.rtt.smoothed)
    }

    /// `true` if `idle` is longer than RTTs vary.
    fn was_idle(&self, idle: Duration) -> bool {
        let Rtt { smoothed, variation, .. } = self.rtt;
        idle > (variation * 4).max(smoothed / 16).max(Duration::from_millis(5))
    }

    /// Returns the time from the start of the sender's timer (RFC 6298 § 5) to its retransmission.
    /// The ACK of new data that starts it takes half a round trip to the sender, the retransmission
    /// the other half.
    fn waited(&self, it: &Arrival, began: Time) -> Duration {
        if let Some((_, at, _)) = self.timeout.filter(|(start, ..)| *start == it.start) {
            return it.at.since(at);
        }
        let stirred = match it.heard {
            // Unless the data are new, the timer counts from the repeated request: the first one
            // may be lost.
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

    /// Opens a silence whose kind depends on the segments that follow.
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

    /// Counts the segments that came together after an open silence; judges it once a later one
    /// comes.
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

    /// Classifies an open silence. `clocked` is `true` if the next segment responded to the ACK of
    /// the one after the silence.
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

    /// Records a classified silence.
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
