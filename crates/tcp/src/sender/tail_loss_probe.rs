//! The tail loss probe (RFC 8985 § 7): where no ACK comes for two round trips, a segment goes whose
//! ACK tells what was lost.

use cwnd_cc::{Cause, Controller as _, Path, Signal};
use cwnd_packet::Range;
use cwnd_quantity::{Duration, Time};

use super::Sender;
use super::rack::MORE_TICKS;
use super::transmit::Choice;
use crate::segment::Segment;

impl Sender {
    /// Data went, or some was acknowledged: from now on the tail is waited for (RFC 8985 § 7.2;
    /// Linux, `tcp_schedule_loss_probe`).
    #[inline(always)]
    pub(super) fn wait_for_the_tail(&mut self, now: Time, acknowledged: bool) {
        if !self.config.params.detection.tail_loss_probe {
            return;
        }
        let tail_set = (!acknowledged && self.seq.outstanding() > self.config.mss).then_some(now);
        if self.loss.sets_probe(tail_set) {
            self.set_probe_timer(now, acknowledged);
        }
    }

    // Apart, as it does nothing for most segments of an instant.
    #[inline(never)]
    fn set_probe_timer(&mut self, now: Time, acknowledged: bool) {
        let (params, outstanding) = (&self.config.params, self.seq.outstanding());
        let open = self.recovery.is_open() && self.sent.is_empty();
        if !open || outstanding == 0 || !self.persist.is_off() {
            self.loss.stop_probe();
            return;
        }
        let wait = self.rtt.srtt().map_or(params.rto.rto_initial, |srtt| {
            // A single segment may wait for a delayed ACK.
            let ticks = Duration(MORE_TICKS * params.rto.rto_granularity.0);
            let more = if outstanding <= self.config.mss { params.rto.rto_min } else { ticks };
            srtt + srtt + more
        });
        let mut probe = now + wait;
        // The timeout counts from when the first outstanding segment went last
        // (`tcp_rto_delta_us`).
        let went =
            || self.sent.resent_at(self.seq.una()).or_else(|| self.sent.sent_at(self.seq.una()));
        let first = if acknowledged { None } else { went() }.unwrap_or(now);
        if first + self.config.rto.least(self.rtt.estimate()) < probe {
            let expires = first + self.rto();
            if expires > now {
                probe = probe.min(expires);
            } else {
                // One that is over bounds nothing, and its timer waits for the tail now: Linux has
                // one for both.
                let tick = self.config.params.rto.rto_granularity.max(Duration(1));
                self.rto.set(self.rto.deadline().max(probe + tick));
            }
        }
        self.loss.set_probe(probe);
    }

    /// No ACK came: a probe goes next, unless there was one since the last progress (RFC 8985 §
    /// 7.3; `tcp_send_loss_probe`).
    pub(super) fn probe_the_tail(&mut self, now: Time) {
        let (rto, tick) = (self.rto(), self.config.params.rto.rto_granularity);
        let fits = self.tail_probe().is_some();
        let goes = self.loss.on_probe_timer(self.seq.high() > self.seq.una() && fits);
        // What a probe finds lost has a whole timeout, and without one the timeout goes on
        // (`tcp_rearm_rto`).
        let from = self.sent.sent_at(self.seq.una()).filter(|_| !goes).unwrap_or(now);
        self.rto.set((from + rto).max(now + tick.max(Duration(1))));
    }

    /// New data if the receiver has room, whatever the congestion window says, or the last segment
    /// once more if its window, which may have shrunk, still holds that.
    fn tail_probe(&self) -> Option<Choice> {
        let last = self.sent.last_segment()?.max(self.seq.una());
        let again = || self.retransmission(last, self.seq.high());
        self.unsent().or_else(|| again().map(|last| Choice { rescue: true, ..last }))
    }

    /// Nothing else may go now: the probe, if it is due.
    #[cold]
    pub(super) fn send_tail_probe(&mut self, now: Time) -> Option<Segment> {
        if !self.loss.take_probe_due() || !self.recovery.is_open() {
            return None;
        }
        let choice = self.tail_probe()?;
        // It goes by a timer of its own, and what was set for the next holds.
        let deadline = self.rto.deadline();
        let segment = self.send(now, choice);
        self.rto.set(deadline);
        self.counters.tail_probes += 1;
        let again = Range { start: choice.seq, end: choice.seq + choice.len };
        self.loss.on_probe_sent(self.seq.high(), choice.rescue.then_some((again, now)));
        Some(segment)
    }

    /// An ACK came after a probe (RFC 8985 § 7.4); `duplicate` if it tells nothing.
    #[cold]
    pub(super) fn judge_probe(&mut self, now: Time, flight_size: u64, duplicate: bool) {
        let una = self.seq.una();
        let repaired = self.loss.judge_probe(una, duplicate);
        if repaired == Some(true) && !self.cc.by_rate() {
            // The probe made a loss good that nobody else saw (RFC 8985 § 7.4.2): one reduction,
            // and nothing to repair.
            let path = Path { flight_size, ..self.path(now) };
            self.cc.on_signal(&path, Signal::Reduce(Cause::Loss));
            self.note_loss_reduction();
        }
    }
}
