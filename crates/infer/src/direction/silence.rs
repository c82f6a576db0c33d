//! Silences of a sender, and their classification by the segments that follow.

use cwnd_quantity::{Duration, Time};

use super::{DirectionState, MAX_EVENTS};
use crate::captured_bytes::Novelty;
use crate::clock::{EchoInfo, Rtt, Sent};
use crate::direction::end_states::ReceiverPacket;
use crate::event::{Event, Evidence, GAP, Kind, Probe, SegmentKind, is_long};

/// Round trips after a timeout for which the RTO may stay backed off.
const BACKED_OFF_ROUNDS: u64 = 10;
/// Latest time of a tail loss probe, beyond two round trips.
const MAX_PROBE_DELAY: Duration = Duration::from_millis(260);

/// A silence whose kind depends on the segments that follow.
#[derive(Clone, Debug)]
pub struct OpenSilence {
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
    /// `true` if an ACK, or missing packets, had shown that the segment was sent before.
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
    pub novelty: Novelty,
    /// Highest position before it arrived.
    pub high_before: u64,
    /// Position of the first hole before it arrived, or the highest position.
    pub next_before: u64,
    /// Packets that its sender had received, if timestamps show them.
    pub echo_info: Option<EchoInfo>,
    /// `true` if an earlier arrival was sent later.
    pub overtaken: bool,
    pub data: u32,
    pub push: bool,
}

impl DirectionState {
    /// Finds the silence that an arrival ends, and updates RTT and recovery.
    pub(super) fn on_arrival(&mut self, it: &Arrival) {
        self.follow(it);
        let Some(last) = self.last else { return };
        let silent = it.at.since(last);
        let new = matches!(it.novelty, Novelty::InOrder | Novelty::BeyondHole);
        // New data may respond to a request: then the silence began with the request.
        let began = if new { last.max(self.receiver.last_request.unwrap_or(last)) } else { last };
        let gap = it.at.since(began);
        let rule = is_long(gap, self.rtt.smoothed);
        if !new && it.novelty == Novelty::FillsHole && !rule {
            self.find_stall(it, began);
        } else if it.novelty == Novelty::Duplicate && !rule {
            self.find_late_timeout(it, began);
        } else if rule && new {
            self.silence_before_new(it, began);
        } else if rule {
            self.silence_before_old(it, began);
        }
        self.measure(it, silent, rule);
        self.track_recovery(it, rule);
    }

    /// Tracks recoveries and tail loss probes.
    fn track_recovery(&mut self, it: &Arrival, rule: bool) {
        let again = matches!(it.novelty, Novelty::FillsHole | Novelty::Duplicate);
        let lost = self.surplus(it).is_some_and(|packets| packets > 0)
            || it.start < self.highest_announced;
        let received = self.last_received(it);
        // Beyond a hole it is a probe only if it was sent before, with the missing segments.
        let sent = it.novelty != Novelty::BeyondHole || lost;
        let alone = it.end >= it.high_before && sent && !received.holes;
        let waited = it.at.since(received.at).saturating_sub(self.rtt.smoothed);
        // No stack has such short timeouts.
        let short = waited < GAP && waited > self.rtt.smoothed * 3 / 2;
        let tail = alone && short && it.data > 0 && (it.novelty == Novelty::Duplicate || lost);
        let late = rule && lost && self.was_idle(self.idle(it));
        // During a recovery only a timeout begins another one.
        let recovering = received.acked < self.recovery_end && !late;
        if again && !it.overtaken {
            self.announce_lost(it, received);
        }
        if it.overtaken || !(again || late || tail) || recovering {
            // Segments lost behind the one that a timeout repeated come one by one.
            if self.more_behind
                && self.recovery_end > it.start
                && it.novelty == Novelty::InOrder
                && !it.overtaken
            {
                self.recovery_end = self.recovery_end.max(it.end + u64::from(!it.push));
            }
            self.known_acked = received.acked;
            return;
        }
        self.tail_probes += u32::from(tail);
        // A recovery by a probe ends when more than the probe is acknowledged (Linux), and so does
        // one with more data behind it. A single missing packet was sent by the first timer,
        // however late.
        let first = waited < self.rtt.smoothed * 2 + MAX_PROBE_DELAY
            || (late && self.missing_packets == Some(1));
        let probed = alone && it.novelty != Novelty::Duplicate && first;
        self.more_behind = alone && !it.push;
        // Missing packets may be the end of the data sent, unless that end arrived.
        let ended = if it.end >= it.high_before {
            it.push && it.data < self.mss
        } else {
            self.last_push && !self.last_full
        };
        let tail = !ended && self.unexplained_packets + self.missing_packets.unwrap_or(0) > 0;
        let beyond = u64::from(probed || self.more_behind || tail);
        self.recovery_end = it.high_before.max(it.end) + beyond;
        self.known_acked = received.acked;
    }

    /// Finds data lost at the end of what was sent: after a timeout, more packets are missing than
    /// its timers sent. They were lost together with the data that a probe repeated, and are sent
    /// again next.
    fn announce_lost(&mut self, it: &Arrival, received: ReceiverPacket) {
        let this = |event: &&Event| event.ended == it.at && event.kind == Kind::Timeout;
        let Some((event, missing)) = self.events.last().filter(this).zip(self.missing_packets)
        else {
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
        let acknowledged = since(self.receiver.last_request) + since(self.receiver.last_repeat);
        if missing > timeouts.max(1) + u32::from(received.holes) + acknowledged {
            self.highest_announced = self.highest_announced.max(it.end.max(it.high_before) + 1);
        }
    }

    /// Returns the number of missing packets outside the hole that this segment shows.
    fn surplus(&self, it: &Arrival) -> Option<u32> {
        let hole = match it.novelty {
            Novelty::BeyondHole => {
                let beyond = it.end.saturating_sub(it.high_before);
                beyond.div_ceil(u64::from(self.mss.max(1))).saturating_sub(1)
            }
            _ => 0,
        };
        self.missing_packets
            .map(|missing| missing.saturating_sub(hole.min(u64::from(u32::MAX)) as u32))
    }

    /// Returns the silence as a timeout if the client had to repeat its request, since the first
    /// one was lost. Then the server did not receive the ACK in it either, and its timer went on.
    fn lost_request(&self, it: &Arrival) -> Option<Event> {
        let (last, received) = (self.last?, it.echo_info?.last);
        let repeated =
            self.receiver.last_repeat.is_some_and(|at| at > last && received.last_at >= at);
        // Data known as sent were sent after the request was received, together with its ACK.
        let answered = it.start < self.highest_announced;
        let missing = self.missing_packets.filter(|&packets| packets > 0)?;
        let waited = received.last_at.since(last) + self.rtt.smoothed;
        // Another ACK besides the request may have been received.
        let twice = self.receiver.packets > 1;
        if !repeated
            || answered
            || twice
            || self.known_acked >= it.start
            || !is_long(waited, self.rtt.smoothed)
        {
            return None;
        }
        let event = Event { waited, idle: Duration::ZERO, ..self.event(it, last) };
        let offset = self.known_acked.saturating_sub(self.first);
        let kind = (Kind::Timeout, Evidence::Unheard);
        Some(Event {
            offset,
            missing: Some(missing),
            new: true,
            pushed: true,
            probe: if self.known_acked < self.recovery_end { Probe::No } else { Probe::Only },
            kind: kind.0,
            evidence: kind.1,
            ..event
        })
    }

    /// Returns the last packet of the receiver that the sender had received when it sent this.
    fn last_received(&self, it: &Arrival) -> ReceiverPacket {
        match it.echo_info {
            Some(EchoInfo { last: Sent { last_at, acked, holes, .. }, .. }) => {
                ReceiverPacket { at: last_at, acked, holes }
            }
            None => {
                let on_time =
                    |packet: &&ReceiverPacket| it.at.since(packet.at) >= self.rtt.smoothed * 9 / 10;
                let known = self.receiver.recent.iter().find(on_time).copied();
                known.unwrap_or(ReceiverPacket { at: it.at, ..self.receiver.recent[0] })
            }
        }
    }

    /// Returns the relation of this silence to a tail loss probe.
    fn probe(&self, it: &Arrival) -> Probe {
        let received = self.last_received(it);
        let more = u64::from(self.unexplained_packets > 0);
        // Lost before the last arrival, with more still missing: a recovery sent it again, and it
        // was lost again.
        let twice = more > 0
            && it.novelty == Novelty::InOrder
            && self.missing_packets.is_some_and(|missing| missing > 0);
        if twice || received.holes || received.acked < self.recovery_end + more || self.is_again(it)
        {
            Probe::No
        } else if it.end < it.high_before.max(self.highest_announced)
            || it.novelty == Novelty::BeyondHole
            || (self.pushes
                && !it.push
                && it.data >= self.mss
                && self.missing_packets.is_some_and(|missing| missing > 1))
        {
            Probe::Before
        } else if received.acked >= it.start {
            Probe::Only
        } else {
            Probe::Last
        }
    }

    /// Finds stalls: a retransmission of the first hole came late, while other segments came in
    /// time. The wait is the time that the sender's timer took.
    fn find_stall(&mut self, it: &Arrival, began: Time) {
        let event = Event { rule: false, ..self.event(it, began) };
        if it.start > it.next_before {
            return;
        }
        // Linux's timer may have started with the lost segment, a round trip before the ACK of
        // earlier data.
        let sent = event.waited + self.rtt.smoothed;
        if is_long(event.waited, self.rtt.smoothed) {
            self.open_silence(event, it, true);
        } else if event.idle > self.rtt.smoothed && is_long(sent, self.rtt.smoothed) {
            self.open_silence(Event { waited: sent, ..event }, it, true);
        }
    }

    /// Finds timeouts whose segment had arrived although later data came since: the ACK was lost,
    /// and the application wrote more while the sender's timer ran.
    fn find_late_timeout(&mut self, it: &Arrival, began: Time) {
        // A probe would have repeated the last segment.
        let first = self.last_received(it).acked == it.start && it.end < it.high_before;
        let event = Event { rule: false, ..self.event(it, began) };
        let long =
            is_long(event.waited, self.rtt.smoothed) && is_long(event.idle, self.rtt.smoothed);
        if first && long && it.echo_info.is_some() && !it.overtaken {
            self.record(Event { kind: Kind::Timeout, evidence: Evidence::Repeated, ..event });
        }
    }

    /// Classifies a silence that ended with a filled hole or with repeated data.
    fn silence_before_old(&mut self, it: &Arrival, began: Time) {
        let received = it.echo_info.map(|received| received.last);
        let event = self.event(it, began);
        let (kind, evidence) = match it.novelty {
            _ if !self.was_idle(event.idle) => {
                let first = it.novelty == Novelty::FillsHole && it.start <= it.next_before;
                (if first { Kind::Ambiguous } else { Kind::Recovery }, Evidence::Clocked)
            }
            Novelty::FillsHole if it.start <= it.next_before => (Kind::Timeout, Evidence::Filled),
            Novelty::FillsHole => (Kind::Recovery, Evidence::LaterHole),
            // RFC 8985 § 7.3: a probe sends the last segment, a timeout the first unacknowledged
            // one.
            _ if it.end == it.high_before && received.is_some_and(|h| h.acked < it.start) => {
                (Kind::Probe, Evidence::Tail)
            }
            _ => (Kind::Timeout, Evidence::Repeated),
        };
        self.record(Event { kind, evidence, ..event });
    }

    /// Classifies a silence that ended with new data, or keeps it open.
    fn silence_before_new(&mut self, it: &Arrival, began: Time) {
        let receiver = &self.receiver;
        let event = self.event(it, began);
        // The window was closed, or it opened so late that the data could not come earlier.
        let late =
            receiver.window_opened.is_some_and(|at| !is_long(it.at.since(at), self.rtt.smoothed));
        if receiver.closed || late {
            self.record(Event { kind: Kind::Window, evidence: Evidence::Window, ..event });
        } else if let Some(lost_request) =
            self.lost_request(it).filter(|_| it.novelty == Novelty::InOrder)
        {
            self.record(lost_request);
        } else if !self.was_idle(event.idle) && it.start >= self.highest_announced {
            self.record(Event { kind: Kind::Client, evidence: Evidence::Clocked, ..event });
        } else if it.novelty == Novelty::BeyondHole || it.start > it.next_before {
            self.record(Event { kind: Kind::Pause, evidence: Evidence::Beyond, ..event });
        } else {
            self.open_silence(event, it, false);
        }
    }

    /// Returns the silence that an arrival ends, not classified yet.
    fn event(&self, it: &Arrival, began: Time) -> Event {
        Event {
            began,
            ended: it.at,
            rtt: self.rtt.smoothed,
            variation: self.rtt.variation,
            rttvar_linux: self.rtt.rttvar_linux,
            queueing_delay: self.rtt.smoothed.saturating_sub(self.rtt.min),
            linux: self.sender_timers.timer(),
            delay: self.receiver.delay,
            backed_off: it.echo_info.is_none()
                && self.timeout.is_some_and(|(_, at, again)| {
                    again
                        && it.at.since(at)
                            < self.rtt.smoothed * BACKED_OFF_ROUNDS + self.waited(it, began)
                }),
            waited: self.waited(it, began),
            after_request: self
                .receiver
                .last_request
                .is_some_and(|asked| asked >= self.receiver.advanced),
            request_repeated: self.is_repeated(it),
            pushed: it.push || it.data < self.mss,
            all_acked: it.novelty == Novelty::InOrder && self.last_received(it).acked >= it.start,
            idle: self.idle(it),
            probe: self.probe(it),
            missing: self.missing_packets,
            new: it.novelty == Novelty::InOrder
                && (self.unexplained_packets == 0 || self.missing_packets != Some(0)),
            repair_lost: it.novelty == Novelty::FillsHole && self.was_repaired(it),
            offset: it.start.saturating_sub(self.first),
            rule: true,
            what: if it.data > 0 { SegmentKind::Data } else { SegmentKind::Fin },
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
        let received = self.last_received(it);
        let after =
            self.last.is_some_and(|last| received.at >= last) && self.unexplained_packets == 0;
        received.holes && (self.is_young() || (after && self.identifications.is_linux()))
    }

    /// `true` if the first hole appeared so late that its immediate retransmission would have come
    /// after the last arrival.
    fn is_young(&self) -> bool {
        let round = self.rtt.smoothed * 5 / 4;
        self.hole_since.zip(self.last).is_some_and(|(holed, last)| last.since(holed) < round)
    }

    /// `true` if the last packet that the sender had received was a repeated request.
    fn is_repeated(&self, it: &Arrival) -> bool {
        let (asked, again) = (self.receiver.last_request, self.receiver.last_repeat);
        let received = self.last_received(it).at;
        asked.zip(again).is_some_and(|(asked, again)| again > asked && received >= again)
    }

    /// `true` if the previous timeout sent the same segment: the sender has received nothing new
    /// since.
    fn is_again(&self, it: &Arrival) -> bool {
        self.timeout.is_some_and(|(start, _, again)| again && start == it.start)
    }

    /// Returns for how long the sender had received nothing when it sent this packet: the time
    /// since the last packet left for it, less the round trip that a response takes.
    fn idle(&self, it: &Arrival) -> Duration {
        it.at.since(self.last_received(it).at).saturating_sub(self.rtt.smoothed)
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
        let timer_started = match it.echo_info {
            // Unless the data are new, the timer counts from the repeated request: the first one
            // may be lost.
            Some(EchoInfo { last: Sent { last_at, .. }, .. })
                if it.novelty != Novelty::InOrder && self.is_repeated(it) =>
            {
                last_at
            }
            Some(EchoInfo { last: Sent { timer_started, .. }, .. }) => timer_started,
            None if it.novelty == Novelty::Duplicate => began,
            None => self.receiver.advanced.max(self.receiver.last_request.unwrap_or(Time::ZERO)),
        };
        it.at.since(timer_started).saturating_sub(self.rtt.smoothed)
    }

    /// Opens a silence whose kind depends on the segments that follow.
    fn open_silence(&mut self, event: Event, it: &Arrival, stall: bool) {
        self.open_silence = Some(OpenSilence {
            event,
            burst: it.data.div_ceil(self.mss.max(1)),
            full: it.data >= self.mss && it.data > 0,
            more: self.last_full && self.pushes && !self.last_push,
            close: it.data == 0,
            stall,
            idle: self.was_idle(event.idle),
            long: is_long(event.idle, self.rtt.smoothed),
            announced: it.start < self.highest_announced,
            unexplained: self.unexplained_packets > 0,
        });
    }

    /// Counts the segments that came together after an open silence; classifies it once a later one
    /// comes.
    fn follow(&mut self, it: &Arrival) {
        let Some(mut open) = self.open_silence.take() else { return };
        let since = it.at.since(open.event.ended);
        if since <= self.rtt.smoothed / 2 {
            open.burst += it.data.div_ceil(self.mss.max(1)).max(1);
            self.open_silence = Some(open);
            return;
        }
        let clocked = !self.was_idle(self.idle(it));
        self.classify(&open, clocked);
    }

    /// Classifies an open silence. `clocked` is `true` if the next segment responded to the ACK of
    /// the one after the silence. A stall that several segments ended is dropped, unless only a
    /// timer can have ended it.
    pub(super) fn classify(&mut self, open: &OpenSilence, clocked: bool) {
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
        self.record(Event { kind, evidence, ..open.event });
    }

    /// Records a classified silence; only counts it if there are too many.
    fn record(&mut self, event: Event) {
        if matches!(event.kind, Kind::Timeout | Kind::Ambiguous | Kind::Pause) {
            let again = event.kind == Kind::Timeout;
            self.timeout = Some((event.offset + self.first, event.ended, again));
        }
        if self.events.len() < MAX_EVENTS {
            self.events.push(event);
        } else {
            self.counts.forgotten += 1;
        }
    }
}
