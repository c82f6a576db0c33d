//! Transmission: the choice of the next segment (RFC 5681 § 3, RFC 6675 § 4–5), and its sending.

use cwnd_cc::{Controller as _, DepartureTiming, OutgoingData, Signal};
use cwnd_packet::{CongestionHeader, Ecn, Range};
use cwnd_quantity::Time;

use super::{Connection, Sender};
use crate::cwnd_validation::{RestartWindow, halved, initial_with_threshold};
use crate::params::{QuenchAnswer, Recovery};
use crate::segment::{Body, Flags, Segment};
use crate::sent_segments::Retransmission;

/// A segment that may be sent now.
#[derive(Clone, Copy)]
pub(super) struct Choice {
    pub(super) seq: u64,
    pub(super) len: u64,
    /// A retransmission that leaves HighRxt alone (RFC 6675 § 4, NextSeg rule 4; RFC 8985 § 7.3).
    pub(super) rescue: bool,
}

impl Choice {
    const fn of(seq: u64, len: u64) -> Self {
        Self { seq, len, rescue: false }
    }
}

impl Sender {
    /// Returns the next segment to send at `now`; `None` if none may be sent.
    pub fn poll_transmit(&mut self, now: Time) -> Option<Segment> {
        let mut sent = None;
        self.transmit(now, |segment| sent.insert(segment));
        sent
    }

    /// Sends the next segment at `now` into the place that `put` gives it, where the controller
    /// writes its header for routers. Returns `true` if there was one, and another may follow at
    /// once.
    ///
    /// A header written before the segment has its place would be copied in wide loads that wait
    /// for the narrow stores before them.
    // Always inlined, although it has other callers: it is called for every packet. So is what it
    // calls for each.
    #[inline(always)]
    pub fn transmit<'a>(
        &mut self,
        now: Time,
        put: impl FnOnce(Segment) -> &'a mut Segment,
    ) -> bool {
        if self.connection != Connection::Established || self.persist.is_due() {
            let segment = self.send_control(now);
            return segment.map(put).is_some();
        }
        let mut paused_since = None;
        if self.seq.high() == self.seq.una()
            && self.seq.nxt() < self.seq.app_end()
            && self.persist.is_off()
        {
            paused_since = Some(self.pacer.last_sent());
            self.restart_after_idle(now);
        }
        if self.pacer.check(now) && self.still_paced(now) {
            return false;
        }
        let choice = match self.recovery.is_open() {
            true => self.choose_new_data(now),
            false => self.choose_in_recovery(now),
        };
        let Some(choice) = choice else {
            if self.config.plan.plain {
                return false;
            }
            if self.validation.tracks_round() {
                self.validate_cwnd();
            }
            let probe = if self.loss.is_probe_due() { self.send_tail_probe(now) } else { None };
            let Some(segment) = probe else { return false };
            return !self.departs(now, put(segment));
        };
        if let Some(since) = paused_since {
            self.resume(now, since);
        }
        let segment = put(self.send(now, choice));
        !self.departs(now, segment)
    }

    /// Lets the controller shape a segment that is sent. Returns `true` if pacing holds the next
    /// back.
    #[inline(always)]
    fn departs(&mut self, now: Time, segment: &mut Segment) -> bool {
        self.cc.shapes_departures() && self.shape_departure(now, segment)
    }

    /// Sends a window probe, or the SYN if it was not sent.
    #[cold]
    #[inline(never)]
    fn send_control(&mut self, now: Time) -> Option<Segment> {
        match self.connection {
            Connection::Established => Some(self.send_probe(now)),
            Connection::SynSent { sent: false, tries } => Some(self.send_syn(now, tries)),
            _ => None,
        }
    }

    /// `true` if pacing still holds at `now`, recomputed from the controller's current rate or
    /// spacing.
    #[inline(never)]
    fn still_paced(&mut self, now: Time) -> bool {
        if self.pacer.paces_anew()
            && let Some(rate) = self.cc.pacing()
        {
            self.pacer.pace_anew(rate);
        } else {
            self.space_from_last();
        }
        self.pacer.check(now)
    }

    fn send_syn(&mut self, now: Time, tries: u32) -> Segment {
        self.connection = Connection::SynSent { sent: true, tries: tries + 1 };
        self.pacer.on_sent(now);
        self.rto.set(now + self.syn_rto());
        // The header of a SYN requests feedback from routers, so that data has an answer when it
        // starts (Dukkipati et al. 2005 § 3).
        let (mss, delivered, sent) = (self.config.mss as u32, self.seq.una(), self.seq.high());
        let data = OutgoingData { now, mss, delivered, sent, rtts: self.rtt.estimator() };
        let header = self.cc.stamp(&data);
        Segment {
            seq: 0,
            ts: self.rtt.stamp(now),
            len: 0,
            wire: self.config.ack_wire,
            flags: Flags::SYN,
            ecn: Ecn::NotEct,
            body: Body::Data { header, again: false },
        }
    }

    /// Restarts the window after an idle time longer than the timeout (RFC 5681 § 4.1, RFC 2861).
    fn restart_after_idle(&mut self, now: Time) {
        let idle = now.since(self.pacer.last_sent());
        // Time that pacing waits is not idle.
        if self.config.params.validation.idle_restart
            && self.seq.high() > 0
            && idle > self.rto()
            && !self.is_spaced()
        {
            let path = self.path(now);
            let params = &self.config.params;
            let initial = u64::from(params.windows.initial_window) * self.config.mss;
            let keep = match params.validation.restart_window {
                RestartWindow::Initial => None,
                RestartWindow::Halved => {
                    Some(halved(self.cc.window(), idle, self.rto(), initial, self.config.mss))
                }
                RestartWindow::Threshold => Some(initial_with_threshold(self.cc.window(), initial)),
            };
            self.cc.on_signal(&path, Signal::Idle { idle, keep });
            self.pacer.on_sent(now);
        }
    }

    /// Signals the controller that sending resumes with nothing outstanding; the last transmission
    /// was at `since`.
    #[cold]
    fn resume(&mut self, now: Time, since: Time) {
        if self.seq.high() > 0 && since < now {
            self.cc.on_signal(&self.path(now), Signal::Resume { since });
        }
    }

    /// Chooses new data within the receive window, as cwnd, PRR or limited transmit allows; or old
    /// data again after a timeout without SACK went back.
    #[inline(always)]
    fn choose_new_data(&mut self, now: Time) -> Option<Choice> {
        let len = self.config.mss.min(self.seq.unsent());
        if len == 0 {
            self.validation.set_limited(false);
            return None;
        }
        let flight = self.seq.flight();
        if flight + len > self.seq.rwnd() {
            self.validation.set_limited(false);
            self.start_persist_timer(now);
            return None;
        }
        let choice = Choice::of(self.seq.nxt(), len);
        if let Some(prr) = self.recovery.cwr() {
            self.validation.set_limited(!prr.allows(len));
            return prr.allows(len).then_some(choice);
        }
        let cwnd = self.cc.window().cwnd;
        if flight + len <= cwnd {
            let goes = self.config.params.tso.tso.is_none() || self.tso_allows(now);
            return goes.then_some(choice);
        }
        if (self.recovery.dupacks() > 0 || !self.sent.is_empty())
            && self.limited_transmit_allows(flight, len, cwnd)
        {
            self.seq.add_limited(len);
            return Some(choice);
        }
        self.validation.set_limited(true);
        None
    }

    /// `true` if limited transmit allows a segment: one for each of the first two duplicate ACKs
    /// (RFC 3042) or, after reordering, for more of them; with SACK as far as the pipe allows (RFC
    /// 6675 § 5 (3)).
    fn limited_transmit_allows(&self, flight: u64, len: u64, cwnd: u64) -> bool {
        let params = &self.config.params;
        if !params.recovery.limited_transmit {
            return false;
        }
        if params.recovery.recovery == Recovery::Sack {
            return self.sent.pipe(self.seq.una(), self.seq.nxt()) + len <= cwnd;
        }
        let most = self.recovery.limited_duplicates();
        let extra = u64::from(self.recovery.dupacks().min(most)) * self.config.mss;
        flight + len <= cwnd + extra
    }

    #[inline(always)]
    fn choose_in_recovery(&mut self, now: Time) -> Option<Choice> {
        let sack = self.config.params.recovery.recovery == Recovery::Sack;
        if !sack && self.seq.una() == self.seq.high() {
            return self.choose_in_held_state(now);
        }
        match self.recovery.take_fast_retransmit(self.config.mss) {
            None => {}
            Some(false) => {
                self.validation.set_limited(true);
                return None;
            }
            Some(true) => return self.retransmission(self.seq.una(), self.seq.high()),
        }
        // A window that holds data back below sets it again.
        self.validation.set_limited(false);
        if self.recovery.is_in_frto() {
            self.choose_in_frto()
        } else if sack || self.has_marked_without_sack() {
            self.choose_by_scoreboard()
        } else {
            self.choose_by_inflated_window()
        }
    }

    /// Chooses data in a recovery that is held with all acknowledged ([`Sender::held_above`]), as
    /// if it were over.
    #[cold]
    fn choose_in_held_state(&mut self, now: Time) -> Option<Choice> {
        self.choose_new_data(now)
    }

    /// Retransmission of at most one segment from `seq`, not past `end`, nor past a receive window
    /// that shrank (RFC 9293 § 3.8.6). A closed window does not hold back the first outstanding
    /// segment, which probes it (Linux `__tcp_retransmit_skb`).
    pub(super) fn retransmission(&self, seq: u64, end: u64) -> Option<Choice> {
        let mss = self.config.mss;
        let most = match (self.seq.una() + self.seq.rwnd()).saturating_sub(seq) {
            0 if seq == self.seq.una() => mss,
            room => room.min(mss),
        };
        (most > 0).then(|| Choice::of(seq, most.min(end - seq)))
    }

    /// Chooses data under the inflated window (RFC 5681 § 3.2 (4)–(5)), and after a timeout in slow
    /// start over what went back.
    fn choose_by_inflated_window(&mut self) -> Option<Choice> {
        let len = self.config.mss.min(self.seq.app_end().max(self.seq.high()) - self.seq.nxt());
        if len == 0 {
            return None;
        }
        if let Some(prr) = self.recovery.fast_prr() {
            let fits = self.seq.flight() + len <= self.seq.rwnd();
            self.validation.set_limited(!prr.allows(len));
            return (fits && prr.allows(len)).then_some(Choice::of(self.seq.nxt(), len));
        }
        let inflation = self.recovery.inflation();
        let window = self.cc.window().cwnd.saturating_add_signed(inflation).max(self.config.mss);
        let in_flight = self.seq.flight() + len;
        self.validation.set_limited(in_flight > window);
        // RFC 9293 § 3.8.6 (SHLD-16, MAY-7): a window that shrank does not hold back the first
        // outstanding segment, which probes it.
        let fits = in_flight <= self.seq.rwnd()
            || self.seq.nxt() == self.seq.una() && self.seq.high() > self.seq.una();
        (in_flight <= window && fits).then_some(Choice::of(self.seq.nxt(), len))
    }

    /// Chooses data by NextSeg (RFC 6675 § 4), under cwnd − pipe (§ 5 (C)) or under PRR.
    #[inline]
    fn choose_by_scoreboard(&mut self) -> Option<Choice> {
        let counts = self.recovery.is_fast() && self.config.params.counts_pipe();
        let mut lost = self.sent.next_lost(self.seq.una());
        lost = lost.filter(|_| self.sent.may_repair(self.seq.una()));
        if counts {
            lost = lost.or_else(|| self.sent.next_hole());
        }
        let choice = if let Some(hole) = lost {
            self.retransmission(hole.start, hole.end)?
        } else {
            self.unsent().or_else(|| self.choose_rescue())?
        };
        let pipe = if counts { self.recovery.inflated() } else { self.in_flight() };
        let allowed = match self.recovery.fast_prr() {
            Some(prr) => prr.allows(choice.len),
            None => pipe + choice.len <= self.cc.window().cwnd || self.bypasses_cwnd(choice),
        };
        self.validation.set_limited(!allowed);
        allowed.then_some(choice)
    }

    /// `true` if a timeout sends this segment whatever the window (RFC 6298 § 5.4). That is the
    /// earliest one, as the controller's window may have no room beside data that the timeout left
    /// in flight.
    fn bypasses_cwnd(&self, choice: Choice) -> bool {
        self.recovery.is_loss() && self.rto.expired() > 0 && choice.seq == self.seq.una()
    }

    /// Chooses data during F-RTO: new data after the first new ACK (RFC 5682 § 3.1, step 2b). F-RTO
    /// ends if none was sent and none can be.
    #[cold]
    fn choose_in_frto(&mut self) -> Option<Choice> {
        if !self.recovery.sends_new_in_frto() {
            return self.choose_by_scoreboard();
        }
        let new = self.unsent();
        let pipe = self.in_flight();
        let allowed = new.filter(|new| pipe + new.len <= self.cc.window().cwnd);
        if allowed.is_none() && self.ends_frto() {
            return self.choose_by_scoreboard();
        }
        self.validation.set_limited(new.is_some() && allowed.is_none());
        allowed
    }

    /// NextSeg rule 2 (RFC 6675 § 4): new data within the receive window.
    pub(super) fn unsent(&self) -> Option<Choice> {
        let len = self.config.mss.min(self.seq.unsent());
        let fits = self.seq.flight() + len <= self.seq.rwnd();
        (len > 0 && fits).then_some(Choice::of(self.seq.nxt(), len))
    }

    /// NextSeg rules 3 and 4 (RFC 6675 § 4), in fast recovery only: holes not yet known lost, then
    /// one rescue of the highest data.
    fn choose_rescue(&self) -> Option<Choice> {
        let params = &self.config.params;
        if !self.recovery.is_fast() || !params.recovery.rescue_holes || params.counts_pipe() {
            return None;
        }
        if let Some(hole) = self.sent.next_hole() {
            return self.retransmission(hole.start, hole.end);
        }
        // Rule 4. Departs from RFC 6675 § 4: the rescue is for a lost tail, so a hole below the
        // highest SACKed byte, which was retransmitted already, is not sent a third time.
        let tail = self.sent.top(self.seq.una());
        if !self.recovery.may_rescue(self.seq.una()) || tail >= self.seq.high() {
            return None;
        }
        let seq = self.seq.high().saturating_sub(self.config.mss).max(tail);
        self.retransmission(seq, self.seq.high()).map(|choice| Choice { rescue: true, ..choice })
    }

    #[inline(always)]
    pub(super) fn send(&mut self, now: Time, choice: Choice) -> Segment {
        let Choice { seq, len, .. } = choice;
        let end = seq + len;
        let again = seq < self.seq.high();
        let mut flags = Flags::default();
        let mut ecn = Ecn::NotEct;
        if again {
            self.counters.retransmissions += 1;
            if self.config.ecn_retransmissions {
                ecn = self.ecn_field(&mut flags);
            }
            // Karn's algorithm: an ACK of the timed segment may be for its retransmission.
            self.rtt.on_retransmission();
        } else {
            // RFC 3168 § 6.1.5: ECT on new data only.
            ecn = self.ecn_field(&mut flags);
            if self.config.params.acks.push_bursts && self.ends_burst(now) {
                flags = flags.with(Flags::PSH);
            }
        }
        self.record_sent(now, choice, again);
        let ts = if !self.config.plan.controller_rtt {
            now
        } else {
            self.stamp_and_log(now, Range { start: seq, end }, again)
        };
        self.counters.segments_sent += 1;
        let wire = len as u16 + self.config.header;
        self.counters.wire_bytes_sent += u64::from(wire);
        self.pacer.on_sent(now);
        let restarts = self.config.plan.rto_restart.at_retransmission_of_first;
        if self.rto.is_off() || restarts && again && seq == self.seq.una() {
            self.rto.set(now + self.rto());
        }
        if self.config.params.quench.quench_answer == QuenchAnswer::Pause
            && !self.quenches.is_empty()
        {
            self.pause_after_sending(now);
        }
        let body = Body::Data { header: CongestionHeader::None, again };
        Segment { seq, ts, len: len as u32, wire, flags, ecn, body }
    }

    /// Lets the controller pace or space the next segment and write its header for routers. Returns
    /// `true` if pacing holds the next back.
    #[inline(never)]
    fn shape_departure(&mut self, now: Time, segment: &mut Segment) -> bool {
        let (mss, delivered, sent) = (self.config.mss as u32, self.seq.una(), self.seq.high());
        let data = OutgoingData { now, mss, delivered, sent, rtts: self.rtt.estimator() };
        let wire = segment.wire;
        let Body::Data { header, .. } = &mut segment.body else { return false };
        let DepartureTiming { pacing, spacing } = self.cc.on_departure(&data, header);
        if let Some(rate) = pacing {
            // A pacing rate that follows from delivery rates is of payload, as they are.
            let size = if self.config.by_rate() { wire - self.config.header } else { wire };
            let anew = if self.config.steering.paces_anew { wire } else { 0 };
            self.pacer.pace(now, rate, size, anew);
        } else if let Some(spacing) = spacing {
            self.space(now, spacing);
        }
        self.pacer.check(now)
    }

    /// ECN field of a segment, which carries CWR if that is pending (RFC 3168 § 6.1.2).
    #[inline]
    fn ecn_field(&mut self, flags: &mut Flags) -> Ecn {
        if !self.config.params.ecn.ecn {
            return Ecn::NotEct;
        }
        if self.ecn.take_cwr() {
            *flags = flags.with(Flags::CWR);
        }
        Ecn::Ect0
    }

    /// Updates sequence variables, scoreboard, PRR and undo for a segment that is sent.
    #[inline(always)]
    fn record_sent(&mut self, now: Time, choice: Choice, again: bool) {
        let end = choice.seq + choice.len;
        self.recovery.on_sent(choice.len, choice.rescue, || self.config.params.counts_pipe());
        let sack = self.config.params.recovery.recovery == Recovery::Sack;
        let marks = again && (sack || self.has_marked_without_sack());
        if again {
            self.sent.on_retransmission_sent(Retransmission {
                range: Range { start: choice.seq, end },
                una: self.seq.una(),
                high: self.seq.high(),
                marked: (marks && !choice.rescue).then_some(now),
            });
        }
        if marks {
            if !choice.rescue {
                self.undo.on_retransmission();
                if let Some((frto, _)) = self.recovery.frto_mut() {
                    let again = Range { start: choice.seq, end };
                    frto.on_retransmission(again, self.seq.una());
                }
            }
        } else if choice.seq == self.seq.nxt() {
            self.seq.on_sent(end);
            if self.config.plan.logs_new_data && !again {
                self.record_first_transmission(now, choice.seq, end);
            }
        }
    }
}
