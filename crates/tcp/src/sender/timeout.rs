//! The retransmission timer and its expiry: RFC 6298 § 5, RFC 5681 § 3.1, and RFC 9293 § 3.8.3,
//! which says when to give up. The persist timer: zero-window probes, and probes of a receive
//! window smaller than a segment (RFC 9293 § 3.8.6).

use cwnd_cc::{Backoff, Controller as _, RtoPolicy, Signal};
use cwnd_packet::{CongestionHeader, Ecn, Range};
use cwnd_quantity::{Duration, Time};

use super::{Connection, Sender};
use crate::counters::TIMEOUT_RANKS;
use crate::params::{BackoffUntil, Recovery, WindowProbe};
use crate::segment::{Body, Flags, Segment};
use crate::sent_segments::Recent;

/// The retransmission timer, its backoff and its consecutive expiries. It also clocks zero-window
/// probes.
#[derive(Clone, Copy, Debug)]
pub(super) struct RtoTimer {
    /// Time of expiry; `Time::NEVER` if the timer is off.
    deadline: Time,
    /// Time of the first of the consecutive expiries in `expired`.
    since: Time,
    /// Expiries that count for the backoff, since an RTT sample or another event ended the last one
    /// (Karn's algorithm).
    backoff: u32,
    /// Consecutive expiries since the last ACK of new data or undo of a timeout: the `nth` of
    /// [`cwnd_cc::Signal::Timeout`].
    expired: u32,
}

impl RtoTimer {
    pub const OFF: Self = Self { deadline: Time::NEVER, since: Time::ZERO, backoff: 0, expired: 0 };

    #[inline]
    pub const fn deadline(&self) -> Time {
        self.deadline
    }

    #[inline]
    pub fn is_off(&self) -> bool {
        self.deadline == Time::NEVER
    }

    #[inline]
    pub const fn stop(&mut self) {
        self.deadline = Time::NEVER;
    }

    #[inline]
    pub const fn set(&mut self, deadline: Time) {
        self.deadline = deadline;
    }

    /// Counts an expiry for data; the caller then calls [`RtoTimer::back_off`].
    pub const fn count_expiry(&mut self, now: Time) {
        if self.expired == 0 {
            self.since = now;
        }
        self.expired += 1;
    }

    /// Counts an expiry for the backoff, or removes the backoff if the timeout `stays`.
    pub const fn back_off(&mut self, stays: bool) {
        self.backoff = if stays { 0 } else { self.backoff + 1 };
    }

    #[inline]
    pub const fn expired(&self) -> u32 {
        self.expired
    }

    /// Time since the first of the consecutive expiries.
    pub fn expired_for(&self, now: Time) -> Duration {
        now.since(self.since)
    }

    /// Ends the series of consecutive expiries of the retransmission timer.
    pub const fn end_expiries(&mut self) {
        self.expired = 0;
    }

    #[inline]
    pub const fn backs_off(&self) -> bool {
        self.backoff > 0
    }

    pub const fn end_backoff(&mut self) {
        self.backoff = 0;
    }

    /// Timeout with backoff, given SRTT and RTTVAR.
    #[inline]
    pub fn timeout(&self, policy: &RtoPolicy, estimate: Option<(Duration, Duration)>) -> Duration {
        if self.expired > self.backoff {
            return self.timeout_that_stayed(policy, estimate);
        }
        policy.armed(estimate, self.backoff)
    }

    /// Timeout with backoff after expiries that did not double it because little was outstanding;
    /// these count among the n of TCP*(n).
    #[cold]
    fn timeout_that_stayed(
        &self,
        policy: &RtoPolicy,
        estimate: Option<(Duration, Duration)>,
    ) -> Duration {
        let backoff_after = policy.backoff_after.saturating_sub(self.expired - self.backoff);
        RtoPolicy { backoff_after, ..*policy }.armed(estimate, self.backoff)
    }

    /// Timeout with backoff before any RTT sample; consecutive expiries do not count.
    pub fn before_samples(&self, policy: &RtoPolicy) -> Duration {
        policy.armed(None, self.backoff)
    }
}

/// Stage at which a connection was given up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GaveUp {
    /// In the handshake: no SYN was answered.
    Syn,
    /// After too many consecutive expiries for data, or too long a time of them (R2).
    Data,
}

impl Sender {
    pub(super) fn on_syn_timeout(&mut self, tries: u32) {
        self.counters.syn_timeouts += 1;
        self.rto.back_off(false);
        self.rto.stop();
        self.connection = if tries > self.config.params.connection.syn_retries {
            Connection::Failed(GaveUp::Syn)
        } else {
            Connection::SynSent { sent: false, tries }
        };
    }

    /// Processes an expiry for data (RFC 6298 § 5.4–5.6; RFC 5681 § 3.1, end).
    pub(super) fn on_timeout(&mut self, now: Time) {
        self.rto.count_expiry(now);
        self.rto.back_off(self.is_thin());
        let expired = self.rto.expired();
        let rank = (expired as usize - 1).min(TIMEOUT_RANKS - 1);
        self.counters.timeouts[rank] += 1;
        if self.reached_r2(now) {
            self.connection = Connection::Failed(GaveUp::Data);
            self.rto.stop();
            self.pacer.set_holds(false);
            return;
        }
        let mut path = self.path(now);
        // Departs from RFC 5681 § 2, whose FlightSize is all that is not cumulatively acknowledged.
        // While SACK recovery waits for a lost retransmission, new data is sent and SACKed, and
        // that sum grows up to the receive window. Without SACK, after an earlier timeout, it still
        // includes the window that was given up for lost. RFC 6675's pipe is what FlightSize meant.
        path.flight_size = self.in_flight();
        let was_reduced = self.was_reduced();
        // RFC 5681 § 3.1: the threshold stays if the timer retransmitted the segment before.
        let reduces = expired == 1 && !was_reduced;
        self.save_timeout_undo_state(now, was_reduced);
        let starts_frto = self.begins_frto();
        self.cc.on_signal(&path, Signal::Timeout { nth: expired, reduces });
        self.ecn.set_cwr(self.config.params.says_cwr());
        self.end_spacing(now);
        self.begin_loss_state(now);
        if starts_frto {
            self.begin_frto();
        }
        self.ecn.set_next_ece_counts(self.config.params.ecn.ecn_after_timeout);
        self.rto.set(now + self.rto());
    }

    /// `true` if R2 of RFC 9293 § 3.8.3 is reached, as a count of expiries or as a time. (Linux
    /// also checks a time only at an expiry.)
    fn reached_r2(&self, now: Time) -> bool {
        let params = &self.config.params;
        params.connection.data_retries.is_some_and(|most| self.rto.expired() > most)
            || params
                .connection
                .data_retry_time
                .is_some_and(|most| self.rto.expired_for(now) >= most)
    }

    /// `true` if the window was already reduced for what is outstanding and
    /// `timeout_keeps_threshold` is set (Linux `tcp_enter_loss`: `high_seq` is above `snd_una`). An
    /// expiry after progress in the repair of the last one reduces again.
    fn was_reduced(&self) -> bool {
        self.config.params.recovery.timeout_keeps_threshold
            && self.recovery.was_reduced(self.seq.una())
    }

    /// `true` if the timeout does not back off because little is outstanding (Linux
    /// `tcp_stream_is_thin`): with `rto_thin_linear`, or with bounded backoff during its n. Linux
    /// also requires that the flow has left its initial slow start, which a timeout ensures.
    fn is_thin(&self) -> bool {
        let outstanding = self.seq.outstanding().div_ceil(self.config.mss);
        let params = &self.config.params;
        let bounded = params.rto.rto_backoff == Backoff::Bounded;
        (params.rto.rto_thin_linear
            || bounded && self.rto.expired() <= params.rto.rto_backoff_after)
            && outstanding < THIN_SEGMENTS
            && self.rto.expired() <= THIN_EXPIRIES
    }

    /// Ends the backoff after an RTT sample by an ACK of all below `ack`, if `rto_backoff_until`
    /// allows.
    #[cold]
    pub(super) fn end_of_backoff(&mut self, ack: u64) {
        let ends = match self.config.params.rto.rto_backoff_until {
            BackoffUntil::Sample | BackoffUntil::Ack => true,
            // Without timestamps only such a segment gives a sample.
            BackoffUntil::SentOnce => {
                !self.config.params.rtt.timestamps
                    || self.config.plan.times_each
                    || self.rtt.is_timed_over(ack)
            }
        };
        if ends {
            self.rto.end_backoff();
        }
    }

    /// Ends the row of consecutive expiries after an ACK of new data, and with
    /// [`BackoffUntil::Ack`] the backoff.
    #[cold]
    pub(super) fn end_of_expiries(&mut self) {
        self.rto.end_expiries();
        if self.config.params.rto.rto_backoff_until == BackoffUntil::Ack {
            self.rto.end_backoff();
        }
    }

    /// Marks all outstanding data lost at a timeout, to be sent again as the window allows. With
    /// RACK what was sent within the last round trip stays in flight, apart from the first segment
    /// (RFC 8985 § 6.3; Linux `tcp_timeout_mark_lost`).
    pub(super) fn begin_loss_state(&mut self, now: Time) {
        self.recovery.begin_loss(self.seq.high());
        self.loss.cancel_probe();
        self.loss.stop();
        self.seq.end_limited();
        self.rtt.on_retransmission();
        // Retransmissions found lost before now are sent again with the rest.
        self.sent.take_lost_retransmission();
        if self.config.params.recovery.recovery == Recovery::Sack {
            // Departs from RFC 2018 § 8: SACK information is discarded only if the receiver is seen
            // to renege (RFC 6675 § 5.1).
            let reneged = self.sent.reneged(self.seq.una());
            if reneged {
                self.sent.restart(self.seq.una());
            }
            let first = self.seq.una() + self.config.mss.min(self.seq.outstanding());
            let old = self.loss.old_data(&self.sent, now).filter(|_| !reneged);
            let mss = self.config.mss;
            let recent = old.map(|(rtt, old)| Recent { now, rtt, old: old.max(first), mss });
            let stays = recent.is_some();
            self.sent.on_timeout(self.seq.una(), self.seq.high(), recent);
            if stays {
                // The window admits the first segment beside the data left in flight (Linux
                // `tcp_enter_loss`).
                self.cc.add_in_flight(self.in_flight());
            }
        } else if self.marks_without_sack() {
            self.sent.on_ack(self.seq.una(), None);
            self.sent.on_timeout(self.seq.una(), self.seq.high(), None);
        } else {
            self.sent.note_lost(self.seq.outstanding());
            self.seq.go_back();
        }
    }

    /// Retransmission timeout for data, with backoff.
    pub(super) fn rto(&self) -> Duration {
        match self.rtt.estimate() {
            None => self.rto_before_samples(),
            estimate => self.rto.timeout(&self.config.rto, estimate),
        }
    }

    /// Retransmission timeout before any RTT sample, also after a lost SYN (RFC 6298 § 5.7).
    // Not inlined: the counter lies in a cache line that few segments read.
    #[cold]
    #[inline(never)]
    fn rto_before_samples(&self) -> Duration {
        let policy = &self.config.rto;
        if self.counters.syn_timeouts == 0 {
            return self.rto.timeout(policy, None);
        }
        let initial = policy.initial.max(self.config.params.rto.rto_after_syn_loss);
        self.rto.before_samples(&RtoPolicy { initial, ..*policy })
    }

    /// Retransmission timeout of a SYN, with backoff.
    pub(super) fn syn_rto(&self) -> Duration {
        self.rto.before_samples(&self.config.syn_rto)
    }
}

/// Segments outstanding below which a stream is thin (Linux `tcp_stream_is_thin`).
const THIN_SEGMENTS: u64 = 4;
/// Consecutive expiries of a thin stream without backoff (Linux `TCP_THIN_LINEAR_RETRIES`).
const THIN_EXPIRIES: u32 = 6;

/// State of zero-window probing. It is used only while nothing but a probe is outstanding: earlier
/// data has the retransmission timer, and its retransmissions probe the window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Off,
    /// The timer runs until the next probe.
    Waiting,
    /// The next segment is a probe.
    Due,
}

/// The persist timer (RFC 9293 § 3.8.6.1): probes of a closed receive window.
#[derive(Clone, Copy, Debug)]
pub(super) struct PersistTimer {
    state: State,
    /// Probes since the window closed, at most 255: the interval reaches its bound long before.
    probes: u8,
}

impl PersistTimer {
    pub const OFF: Self = Self { state: State::Off, probes: 0 };

    #[inline]
    pub fn is_off(self) -> bool {
        self.state == State::Off
    }

    /// `true` if the next segment is a probe.
    #[inline]
    pub fn is_due(self) -> bool {
        self.state == State::Due
    }

    /// Starts the wait for the first probe.
    pub const fn start(&mut self) {
        self.state = State::Waiting;
    }

    /// Processes an expiry. The next segment is a probe if the receive window holds data back
    /// (`waits`).
    pub const fn on_expiry(&mut self, waits: bool) {
        self.state = if waits { State::Due } else { State::Off };
    }

    /// Counts a probe that is sent, and starts the wait for the next.
    pub const fn on_probe(&mut self) {
        self.state = State::Waiting;
        self.probes = self.probes.saturating_add(1);
    }

    /// Processes an ACK: the window has room for a segment (`open`), or data is acknowledged
    /// (`advances`). With `partly_open` the window is smaller than a segment: the next wait is the
    /// override timeout, without backoff.
    pub const fn on_ack(&mut self, open: bool, advances: bool, partly_open: bool) {
        if open || partly_open {
            self.probes = 0;
        }
        if open || advances {
            self.state = State::Off;
        }
    }

    /// Doublings of the interval between probes.
    pub const fn doublings(self) -> u32 {
        self.probes as u32
    }
}

impl Sender {
    /// Starts the persist timer if nothing is outstanding; the receive window holds all data back.
    /// The first probe follows after one RTO (RFC 9293 § 3.8.6.1, SHLD-29).
    #[cold]
    pub(super) fn start_persist_timer(&mut self, now: Time) {
        if self.seq.high() == self.seq.una() && self.persist.is_off() {
            // Ends a recovery that is held after all data is acknowledged: probes are sent before
            // new data could end it.
            self.recovery.end();
            self.persist.start();
            self.rto.set(now + self.probe_interval());
        }
    }

    pub(super) const fn on_persist_timeout(&mut self) {
        self.rto.stop();
        self.persist.on_expiry(self.seq.una() < self.seq.app_end());
    }

    /// Sends a window probe: the byte at SND.UNA, or as many bytes as a window smaller than a
    /// segment accepts (§ 3.8.6.2.1 (4), the override timeout). With `window_probe = "before"` a
    /// probe of a closed window has no data, except at the first byte.
    #[cold]
    pub(super) fn send_probe(&mut self, now: Time) -> Segment {
        self.persist.on_probe();
        self.rto.set(now + self.probe_interval());
        let before = self.config.params.probing.window_probe == WindowProbe::Before;
        if before && self.seq.rwnd() == 0 && self.seq.una() > 0 {
            return self.empty_probe(now);
        }
        let len =
            self.seq.rwnd().clamp(1, self.config.mss.min(self.seq.app_end() - self.seq.una()));
        let before = self.seq.high();
        let again = before > self.seq.una();
        self.seq.on_probe(len);
        // Karn's algorithm: it is ambiguous which probe an ACK answers.
        self.rtt.on_retransmission();
        self.pacer.on_sent(now);
        let wire = len as u16 + self.config.header;
        self.counters.segments_sent += 1;
        self.counters.wire_bytes_sent += u64::from(wire);
        self.counters.window_probes += 1;
        if again {
            self.counters.retransmissions += 1;
            let range = Range { start: self.seq.una(), end: (self.seq.una() + len).min(before) };
            self.sent.count_retransmission(range, self.seq.una());
        }
        Segment {
            seq: self.seq.una(),
            ts: self.rtt.stamp(now),
            len: len as u32,
            wire,
            // RFC 3168 § 6.1.6: neither ECT nor CWR, as the loss of a probe is not detected.
            flags: Flags::default(),
            ecn: Ecn::NotEct,
            body: Body::Data { header: CongestionHeader::None, again },
        }
    }

    /// Sends a probe without data, numbered below SND.UNA, which the receiver must answer
    /// (§ 3.10.7.4).
    ///
    /// It does not count as a transmission for the idle time (Linux `tcp_ack_update_window`).
    fn empty_probe(&mut self, now: Time) -> Segment {
        let wire = self.config.header;
        self.counters.segments_sent += 1;
        self.counters.wire_bytes_sent += u64::from(wire);
        self.counters.window_probes += 1;
        Segment {
            seq: self.seq.una() - 1,
            ts: self.rtt.stamp(now),
            len: 0,
            wire,
            flags: Flags::default(),
            ecn: Ecn::NotEct,
            body: Body::Data { header: CongestionHeader::None, again: false },
        }
    }

    /// Processes an ACK while the persist timer is in use, with SND.WND up to date. Returns `true`
    /// if the ACK needs no further processing.
    #[cold]
    pub(super) fn on_ack_of_probe(&mut self, now: Time, ack: u64) -> bool {
        let advances = ack > self.seq.una();
        let open =
            self.seq.rwnd() >= self.config.mss.min(self.seq.app_end().saturating_sub(ack)).max(1);
        self.persist.on_ack(open, advances, advances && self.seq.rwnd() > 0);
        if open && !advances {
            // Data of the probe that the receiver did not accept is sent again, in a whole segment.
            if self.seq.high() > self.seq.una() {
                let range = Range { start: self.seq.una(), end: self.seq.high() };
                self.sent.count_retransmission(range, self.seq.una());
            }
            self.seq.take_probe_back();
            self.rto.stop();
        } else if !advances && self.config.params.probing.probe_answer_restarts {
            self.rto.set(now + self.probe_interval());
        }
        // RFC 5681 § 2: an ACK of a probe is no duplicate.
        !advances
    }

    /// Interval to the next probe, which backs off like the RTO (SHLD-30).
    fn probe_interval(&self) -> Duration {
        let policy = self.config.rto;
        debug_assert!(self.recovery.is_open());
        policy.timeout(policy.base(self.rtt.estimate()), self.persist.doublings())
    }
}
