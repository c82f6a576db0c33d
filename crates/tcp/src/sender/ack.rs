//! What an acknowledgement does: RFC 5681 § 3.2, RFC 6582, RFC 6675 § 5, RFC 3168 § 6.1.2, RFC 6298 § 5.

use cwnd_cc::{AckSample, Controller as _, Grow, Path, Phase, Request};
use cwnd_quantity::{Duration, Echo, Time};

use super::rack::Judged;
use super::{Connection, Sender, State};
use crate::params::{BackoffUntil, GrowBy, LossRule, Params, Recovery};
use crate::prr::PrrAck;
use crate::rtt::At;
use crate::segment::{Body, Flags, SackBlocks, Segment};
use crate::validation::LimitedBy;

impl Sender {
    /// A segment arrived from the receiver. Returns the exact round-trip time it measured, for statistics (the
    /// estimator uses it as the configured clock sees it).
    pub fn on_segment(&mut self, now: Time, segment: &Segment) -> Option<Duration> {
        let (window, echo, sack) = match &segment.body {
            Body::Ack { window, echo, sack } => (window, echo, sack),
            Body::Quench { marked, level, .. } => {
                self.on_quench(now, segment.seq, *marked, *level);
                return None;
            }
            Body::Data { .. } => return None,
        };
        match self.connection {
            Connection::Established if self.plain => {
                self.on_ack::<true>(now, segment, *window, *echo, sack)
            }
            Connection::Established => self.on_ack::<false>(now, segment, *window, *echo, sack),
            Connection::SynSent { tries, .. } if segment.flags.has(Flags::SYN) => {
                self.seq.set_rwnd(u64::from(*window));
                Some(self.on_syn_ack(now, segment, tries, *echo))
            }
            _ => None,
        }
    }

    fn on_syn_ack(&mut self, now: Time, segment: &Segment, tries: u32, echo: Echo) -> Duration {
        self.connection = Connection::Established;
        self.rto.stop();
        let exact = now.since(segment.ts);
        let seen = self.rtt.seen();
        // Departs from RFC 6298 § 5.7, which wants 3 s after a lost SYN: the echoed timestamp is a valid sample of
        // which SYN was answered, and the timeout follows from it (as in Linux).
        let sent = self.syn_sent(now, segment.ts, tries == 1);
        let measured = sent.map(|sent| self.take_rtt(now, sent));
        self.time_handshake(now, self.pacer.last_sent(), seen, measured, tries == 1);
        if tries > 1 {
            // RFC 6298 § 5.7: the timeout is set anew, not doubled further. Karn & Partridge 1987 make no difference between a SYN
            // and other segments.
            if self.config.params.rto_backoff_until != BackoffUntil::SentOnce {
                self.rto.end_backoff();
            }
            self.cc = self.config.controller_after_syn_loss();
        }
        if echo != Echo::None {
            let path = self.path(now);
            self.tell_duplicate(&path, AckSample { rtt: measured, echo, ..AckSample::default() });
        }
        exact
    }

    /// Whether senders with these parameters do what the RFCs ask of all, and nothing that only some stacks do: find losses by time or
    /// retransmissions that are lost, take reductions back or spread them, grow by what SACK tells or as a recovery ends, end one with its
    /// reduction, shorten the timeout when SACKed data is thrown away, watch bursts and how much of the window is used.
    pub(super) fn is_plain(params: &Params) -> bool {
        let takes_back = params.spurious.timeout_frto || params.spurious.timeout_eifel;
        let by_time = params.loss_rule == LossRule::Rack || params.lost_retransmissions;
        let grows = params.grow_by == GrowBy::Delivered || params.grow_on_exit;
        let ends = params.reduced_window_ends_recovery || params.reneging_hurries;
        let watches = params.validation.cwnd_limited != LimitedBy::Last || params.push_bursts;
        !(takes_back || by_time || grows || ends || watches || params.prr)
    }

    /// An acknowledgement. With `PLAIN` nothing is asked of what a plain sender never does ([`Sender::is_plain`]).
    #[inline(always)]
    fn on_ack<const PLAIN: bool>(
        &mut self,
        now: Time,
        segment: &Segment,
        window: u32,
        echo: Echo,
        blocks: &SackBlocks,
    ) -> Option<Duration> {
        let told = segment.seq;
        if told < self.seq.una() || told > self.seq.high() || segment.flags.has(Flags::SYN) {
            if told < self.seq.una() && has_any(blocks) {
                self.on_old_ack(now, told, blocks);
            }
            return None;
        }
        let mut window = u64::from(window);
        let (mut ack, mut top) = (told, 0);
        debug_assert!(
            !PLAIN || self.before.is_none() && self.cwr.is_none() && self.rack_tlp.is_none()
        );
        let rack = !PLAIN && self.by_time;
        let delivered_counts = !PLAIN && self.config.params.grow_by == GrowBy::Delivered;
        if rack {
            top = self.sent.top(self.seq.una());
            ack = self.whole(told);
            window += told - ack;
        }
        // RFC 5681 § 2 (e): what changes the window is no duplicate.
        let window_changed = self.seq.rwnd() != window;
        self.seq.set_rwnd(window);
        if !self.persist.is_off() && self.on_ack_of_probe(now, ack) {
            return None;
        }
        let sack = self.config.params.recovery == Recovery::Sack;
        let has_blocks = has_any(blocks) && sack;
        // Departs from RFC 5681 § 2 as [`Sender::on_timeout`] does: what a timeout gave up for
        // lost is not in flight.
        let pipe_in_loss = matches!(self.recovery, State::Loss { .. }).then(|| self.in_flight());
        let newly_sacked = match has_blocks {
            true if rack => self.take_sacks(now, blocks, told, top),
            true => self.sent.on_sack(blocks, ack, self.seq.high()),
            false => 0,
        };
        if !PLAIN && newly_sacked > 0 {
            self.time_sacked(blocks, told, newly_sacked);
        }
        // What was so before this ACK took effect.
        let (flight_size, mut phase) = (self.flight_size(), self.phase());
        let pipe = pipe_in_loss.unwrap_or(flight_size);
        let acked = ack - self.seq.una();
        if let State::Recovery(r) = &mut self.recovery
            && self.config.params.counts_pipe()
        {
            // A partial ACK tells of a retransmission and of what it stood for (Fall & Floyd 1996 § 3.4; tcp-sack1.cc, recv).
            let left = if acked > 0 { 2 } else { 1 };
            r.inflation -= left * self.config.mss as i64;
        }
        // RFC 6937 § 3, DeliveredData: what was reported by SACK before does not count again.
        let mut delivered = acked + newly_sacked;
        if rack
            && has_blocks
            && let Some(tlp) = &mut self.rack_tlp
        {
            delivered += core::mem::take(&mut tlp.told);
        }
        let (mut lost, mut looks, mut went) = (false, false, None);
        let mut judged = Judged::Nothing;
        let mut exact_rtt = None;
        let (mut sacked_rtt, mut grows_by) = (None, 0);
        let ece = segment.flags.has(Flags::ECE);
        if ece {
            self.on_echo(now, ack);
        }

        if acked > 0 {
            if rack {
                (looks, went) = self.take_ack(now, ack, top, segment.ts);
            }
            self.seq.on_ack(ack);
            if sack {
                delivered -= self.sent.on_ack(ack);
            }
            let counts = if delivered_counts { self.new_of(acked, delivered) } else { acked };
            if !PLAIN && !sack {
                if self.config.params.prr {
                    delivered = self.new_of(acked, delivered);
                }
                if self.marks_without_sack() {
                    self.take_ack_without_sack(acked);
                }
            }
            let mut late = false;
            match &self.before {
                _ if PLAIN => {}
                None => {}
                Some(_) if !sack => late = self.is_late_original(segment.ts),
                Some(before) if self.is_judged(before) => {
                    judged = self.judge(now, segment.ts, ack - acked);
                    lost = judged == Judged::Lost;
                }
                Some(_) => {}
            }
            if !PLAIN && self.is_in_frto() && !late {
                self.on_ack_in_frto(now, acked, newly_sacked > 0, (blocks, told));
            }
            let (exact, measured) = if PLAIN || self.timing.is_none() {
                self.measure(now, segment, ack, went)
            } else {
                self.measure_apart(now, segment, ack)
            };
            exact_rtt = exact;
            if self.rto.expired() > 0 {
                self.end_of_expiries();
            }
            if ack >= self.round_end {
                self.round += 1;
                self.round_end = self.seq.high();
            }
            if !PLAIN && self.cwr.is_some() && ack > self.reduced_until {
                self.cwr = None;
            }
            let frozen = ece && (self.ecn.waits_at_one() || self.obeys_echo_in_loss());
            self.on_new_ack::<PLAIN>(now, acked, late);
            if late {
                self.take_back_late(now, ack - acked);
            }
            if !PLAIN && self.config.params.reneging_hurries && self.sent.reneged(ack) {
                self.hurry(now);
                looks = false;
            }
            if !PLAIN && self.config.params.grow_on_exit {
                phase = self.phase();
            }
            if (delivered_counts && newly_sacked > 0 || looks) && judged != Judged::Open {
                lost |= self.detect_losses(now);
            }
            if delivered_counts && (self.is_still_short() || self.loses_in_loss()) {
                phase = Phase::Recovery;
            }
            if frozen && self.ecn.waits_at_one() && self.in_flight() == 0 {
                self.wait_at_one(now);
            }
            let path = Path {
                now,
                mss: self.config.mss as u32,
                srtt: self.rtt.srtt(),
                min_rtt: self.rtt.min(),
                rtt: self.rtt.last(),
                flight_size: pipe,
                delivered: ack,
                sent: self.seq.high(),
                phase,
                cwnd_limited: self.cwnd_limited,
                round: self.round,
            };
            let obeyed = ece && self.config.params.obey_ece;
            let sample = AckSample {
                acked_bytes: counts,
                newly_sacked,
                newly_lost: self.sent.take_newly_lost(),
                rtt: measured,
                ece,
                echo,
                grow: if frozen { Grow::No } else { Grow::of(&path, obeyed) },
            };
            let request = self.cc.dispatch_ack(path, sample);
            if let Request::Reduce(cause) = request {
                self.on_request(&Path { flight_size, phase, ..self.path(now) }, cause);
            }
        } else if !sack
            && self.seq.high() > self.seq.una()
            && !window_changed
            && (PLAIN || !self.marks_without_sack() || self.take_duplicate_without_sack(now))
        {
            self.on_duplicate(now);
            if !PLAIN && self.config.params.prr {
                // Each duplicate tells of a segment (Linux, `tcp_add_reno_sack`).
                delivered = self.config.mss;
            }
        }

        if newly_sacked > 0 {
            if !PLAIN && acked == 0 {
                if self.is_in_frto() {
                    self.on_ack_in_frto(now, 0, true, (blocks, told));
                }
                self.end_with_the_reduction();
            }
            // New SACK information makes a duplicate, whether or not the ACK also advances (RFC 6675 § 2).
            self.on_duplicate(now);
            if judged != Judged::Open {
                lost |= self.detect_losses(now);
            }
            if !PLAIN && acked == 0 {
                (exact_rtt, sacked_rtt) = self.see_sacked(now).unzip();
                if delivered_counts {
                    grows_by = self.grow_by_sacked(newly_sacked);
                }
            }
            // RFC 6675 § 5 (2), also where the last recovery retransmitted it: it was sent after that one's reduction.
            if matches!(self.recovery, State::Open) && self.sent.is_short(self.seq.una()) {
                self.enter_recovery(now);
            }
        }
        if rack {
            let told = newly_sacked > 0 || window_changed || told > ack;
            lost |= self.after_ack(now, flight_size, acked > 0, told);
        }
        if !PLAIN && delivered > 0 {
            if self.sent.take_lost_again() {
                lost = true;
                self.lose_again(now);
            }
            self.update_prr(delivered, acked > 0 && !lost);
        }
        if acked == 0 && (grows_by > 0 || self.cc.hears_duplicates()) {
            let path = Path { flight_size, ..self.path(now) };
            let rtt = sacked_rtt;
            let grow = if grows_by > 0 {
                Grow::of(&path, ece && self.config.params.obey_ece)
            } else {
                Grow::No
            };
            let sample = AckSample {
                acked_bytes: grows_by,
                newly_sacked,
                rtt,
                ece,
                echo,
                grow,
                ..AckSample::default()
            };
            self.tell_duplicate(&path, sample);
        }
        exact_rtt
    }

    /// The controller hears of an ACK that acknowledges nothing new, or of what a SYN was answered.
    #[inline(never)]
    fn tell_duplicate(&mut self, path: &Path, mut sample: AckSample) {
        sample.newly_lost = self.sent.take_newly_lost();
        self.tell_rate(path.now);
        if let Request::Reduce(cause) = self.cc.on_ack(path, &sample) {
            self.on_request(path, cause);
        }
    }

    /// The RTT that a new ACK tells: exact, and as the clock measures it; from when what it acknowledges `went`, if that is remembered.
    #[inline(always)]
    pub(super) fn measure(
        &mut self,
        now: Time,
        segment: &Segment,
        ack: u64,
        went: Option<Time>,
    ) -> (Option<Duration>, Option<Duration>) {
        let sent = if let Some(went) = went {
            went
        } else if self.config.params.timestamps {
            segment.ts
        } else {
            let Some(sent) = self.timed.take(ack) else { return (None, None) };
            sent
        };
        let measured = self.take_rtt(now, sent);
        if self.rto.backs_off() {
            self.end_of_backoff(ack);
        }
        (Some(now.since(sent)), Some(measured))
    }

    pub(super) fn take_rtt(&mut self, now: Time, sent: Time) -> Duration {
        let r = self.config.measured(sent.0, now.0);
        self.rtt.sample(r, At { una: self.seq.una(), sent: self.seq.high() });
        r
    }

    /// RFC 6298 § 5.2–5.3, and what each state makes of new data acknowledged; `late` if the ACK
    /// shows that a timeout was needless.
    #[inline(always)]
    fn on_new_ack<const PLAIN: bool>(&mut self, now: Time, acked: u64, late: bool) {
        let mut restart_timer = true;
        let above = if PLAIN { 0 } else { self.held_above(self.seq.una()) };
        let spread = !PLAIN && self.spreads_without_sack();
        match &mut self.recovery {
            State::Open => {
                self.dupacks = 0;
                self.seq.end_limited();
            }
            State::Loss { recover, .. } => {
                let told = if self.seq.una() >= *recover { self.dupacks } else { 0 };
                self.dupacks = 0;
                if self.seq.una() >= *recover + above {
                    self.last_recover = Some(*recover);
                    self.recovery = State::Open;
                }
                // Linux takes a timeout back first, and looks no further (`tcp_process_loss`).
                if told > 0 && !late {
                    self.on_end_of_loss(now, acked, told);
                }
            }
            State::Recovery(r) => {
                let reno = self.config.params.recovery == Recovery::Reno;
                if self.seq.una() >= r.recover + above || reno {
                    self.last_recover = Some(r.recover);
                    self.recovery = State::Open;
                    self.dupacks = 0;
                    self.seq.end_limited();
                    self.after_recovery();
                } else if self.seq.una() == r.recover {
                    r.inflation = 0;
                    r.retransmit_now = false;
                } else {
                    // RFC 6582 § 3.2 (3), the impatient variant; Linux restarts it each time
                    // (`tcp_clean_rtx_queue`).
                    restart_timer = !r.partial_seen || self.by_time;
                    r.partial_seen = true;
                    if self.config.params.recovery == Recovery::NewReno {
                        // RFC 6582 § 3.2 (3): retransmit the next hole, deflate by what was acknowledged, add back one.
                        r.retransmit_now = true;
                        self.sent.note_lost(self.config.mss);
                        let mss = self.config.mss;
                        r.inflation -= acked as i64;
                        if acked >= mss {
                            r.inflation += mss as i64;
                        }
                        if spread {
                            // `tcp_remove_reno_sacks`
                            r.inflation = r.inflation.max(0);
                        }
                    } else {
                        // With SACK every advance shows that retransmissions arrive (RFC 6675 § 5.1).
                        restart_timer = true;
                    }
                }
            }
        }
        if self.seq.una() == self.seq.high() {
            self.rto.stop();
        } else if restart_timer {
            self.rto.set(now + self.rto());
        }
    }

    fn on_duplicate(&mut self, now: Time) {
        let mss = self.config.mss as i64;
        match &mut self.recovery {
            State::Open => {
                self.dupacks += 1;
                let enough = self.dupacks >= self.duplicates_needed() && self.rack_tlp.is_none();
                if enough && self.may_enter_recovery() {
                    self.enter_recovery(now);
                }
            }
            State::Recovery(r) if self.config.params.recovery != Recovery::Sack => {
                r.inflation += mss;
            }
            State::Recovery(_) | State::Loss { .. } => {}
        }
    }

    pub(super) fn detect_losses(&mut self, now: Time) -> bool {
        if self.rack_tlp.is_some() {
            return self.detect_by_time(now);
        }
        let (params, mss) = (&self.config.params, self.config.mss);
        self.sent.detect_losses(params, self.seq.una(), mss)
    }

    /// What an ACK of so many bytes tells for the first time. Without SACK each duplicate told of a segment (Linux, `tcp_add_reno_sack`).
    fn new_of(&self, acked: u64, delivered: u64) -> u64 {
        if self.config.params.recovery == Recovery::Sack {
            // An ACK that advances is no duplicate, even if the receiver had thrown away what it reported.
            return delivered.max(1);
        }
        let mss = self.config.mss;
        let told = match &self.recovery {
            State::Recovery(r) => r.inflation.max(0).unsigned_abs(),
            _ => u64::from(self.dupacks) * mss,
        };
        acked.saturating_sub(told).max(mss.min(acked))
    }

    /// Whether a recovery has ended and more is known to be lost: Linux begins the next one with the same ACK
    /// (`tcp_time_to_recover`).
    pub(super) fn is_still_short(&self) -> bool {
        matches!(self.recovery, State::Open)
            && self.seq.una() < self.seq.high()
            && self.sent.is_short(self.seq.una())
    }

    /// So much arrived: what a reduction that is spread may send by that.
    #[inline(always)]
    pub(super) fn update_prr(&mut self, delivered: u64, safe: bool) {
        let spreads = match &self.recovery {
            State::Recovery(r) => r.prr.is_some(),
            State::Open => self.cwr.is_some(),
            State::Loss { .. } => false,
        };
        if spreads {
            self.spread(delivered, safe);
        }
    }

    fn spread(&mut self, delivered: u64, mut safe: bool) {
        let pipe = if self.config.params.recovery == Recovery::Sack {
            self.sent.pipe(self.seq.una(), self.seq.nxt())
        } else {
            // The hole is lost until it goes again, as the ACK tells (`tcp_newreno_mark_lost`).
            let waits = self.hole_waits();
            safe &= !waits;
            self.in_flight().saturating_sub(if waits { self.config.mss } else { 0 })
        };
        let prr = match &mut self.recovery {
            State::Recovery(r) => r.prr.as_mut(),
            _ => self.cwr.as_mut(),
        };
        if let Some(prr) = prr {
            let ssthresh = self.cc.window().ssthresh;
            prr.on_ack(PrrAck { delivered, pipe, safe }, ssthresh, self.config.mss);
        }
    }
}

const fn has_any(blocks: &SackBlocks) -> bool {
    blocks[0].len > 0
}
