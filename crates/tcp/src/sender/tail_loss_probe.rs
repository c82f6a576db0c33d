//! The tail loss probe (RFC 8985 § 7): after two round trips without an ACK one segment is sent
//! whose ACK shows losses at the tail.

use cwnd_cc::{Cause, Controller as _, Path, Signal};
use cwnd_packet::Range;
use cwnd_quantity::{Duration, Time};

use super::Sender;
use super::rack::MORE_TICKS;
use super::transmit::Choice;
use crate::segment::Segment;

impl Sender {
    /// Sets the probe timer after data was sent, or with `acknowledged` after an ACK (RFC 8985
    /// § 7.2; Linux `tcp_schedule_loss_probe`).
    #[inline(always)]
    pub(super) fn schedule_tail_loss_probe(&mut self, now: Time, acknowledged: bool) {
        if !self.config.params.detection.tail_loss_probe {
            return;
        }
        let tail_set = (!acknowledged && self.seq.outstanding() > self.config.mss).then_some(now);
        if self.loss.sets_probe(tail_set) {
            self.set_probe_timer(now, acknowledged);
        }
    }

    // Not inlined: for most segments of an instant there is nothing to do.
    #[inline(never)]
    fn set_probe_timer(&mut self, now: Time, acknowledged: bool) {
        let (params, outstanding) = (&self.config.params, self.seq.outstanding());
        let open = self.recovery.is_open() && self.sent.is_empty();
        if !open || outstanding == 0 || !self.persist.is_off() {
            self.loss.stop_probe();
            return;
        }
        let wait = self.rtt.srtt().map_or(params.rto.rto_initial, |srtt| {
            // The ACK of a single segment may be delayed.
            let ticks = Duration(MORE_TICKS * params.rto.rto_granularity.0);
            let more = if outstanding <= self.config.mss { params.rto.rto_min } else { ticks };
            srtt + srtt + more
        });
        let mut probe = now + wait;
        // The RTO runs from the last transmission of the first outstanding segment
        // (`tcp_rto_delta_us`).
        let last_sent = || {
            self.sent.retransmitted_at(self.seq.una()).or_else(|| self.sent.sent_at(self.seq.una()))
        };
        let first = if acknowledged { None } else { last_sent() }.unwrap_or(now);
        if first + self.config.rto.lower_bound(self.rtt.estimate()) < probe {
            let expires = first + self.rto();
            if expires > now {
                probe = probe.min(expires);
            } else {
                // An RTO that is over is no bound. Its timer then waits for the probe, as Linux has
                // one timer for both.
                let tick = self.config.params.rto.rto_granularity.max(Duration(1));
                self.rto.set(self.rto.deadline().max(probe + tick));
            }
        }
        self.loss.set_probe(probe);
    }

    /// Processes an expiry of the probe timer: a probe follows if a segment may be sent, unless one
    /// was sent since the last progress (RFC 8985 § 7.3; `tcp_send_loss_probe`).
    pub(super) fn on_tail_loss_timer(&mut self, now: Time) {
        let (rto, tick) = (self.rto(), self.config.params.rto.rto_granularity);
        let fits = self.tail_probe().is_some();
        let sends = self.loss.on_probe_timer(self.seq.high() > self.seq.una() && fits);
        // Losses that a probe finds get a whole timeout. Without a probe the timeout continues
        // (`tcp_rearm_rto`).
        let from = self.sent.sent_at(self.seq.una()).filter(|_| !sends).unwrap_or(now);
        self.rto.set((from + rto).max(now + tick.max(Duration(1))));
    }

    /// Segment of a probe: new data if the receiver has room, whatever the congestion window.
    /// Otherwise the last segment again, if the receive window, which may have shrunk, still
    /// includes it.
    fn tail_probe(&self) -> Option<Choice> {
        let last = self.sent.last_segment()?.max(self.seq.una());
        let again = || self.retransmission(last, self.seq.high());
        self.unsent().or_else(|| again().map(|last| Choice { rescue: true, ..last }))
    }

    /// Sends the probe if it is due and no recovery is under way; nothing else may be sent now.
    #[cold]
    pub(super) fn send_tail_probe(&mut self, now: Time) -> Option<Segment> {
        if !self.loss.take_probe_due() || !self.recovery.is_open() {
            return None;
        }
        let choice = self.tail_probe()?;
        // The probe has its own timer and leaves the RTO as it was set.
        let deadline = self.rto.deadline();
        let segment = self.send(now, choice);
        self.rto.set(deadline);
        self.counters.tail_probes += 1;
        let again = Range { start: choice.seq, end: choice.seq + choice.len };
        self.loss.on_probe_sent(self.seq.high(), choice.rescue.then_some((again, now)));
        Some(segment)
    }

    /// Processes an ACK after a probe (RFC 8985 § 7.4); `duplicate` if it reports nothing new.
    #[cold]
    pub(super) fn end_probe(&mut self, now: Time, flight_size: u64, duplicate: bool) {
        let una = self.seq.una();
        let repaired = self.loss.probe_outcome(una, duplicate);
        if repaired == Some(true) && !self.cc.is_rate_based() {
            // The probe repaired a loss that nothing else detected (RFC 8985 § 7.4.2): one
            // reduction, and nothing to retransmit.
            let path = Path { flight_size, ..self.path(now) };
            self.cc.on_signal(&path, Signal::Reduce(Cause::Loss));
            self.count_loss_reduction();
        }
    }
}
