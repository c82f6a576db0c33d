//! RTT samples of the retransmission timer, and of the controller if those differ.

use cwnd_cc::{Cause, Controller as _};
use cwnd_packet::{Echo, Range};
use cwnd_quantity::{Duration, Time};

use super::Sender;
use crate::controller_rtt::Sample;
use crate::counters::Delays;
use crate::rtt::At;
use crate::segment::{Body, SackBlocks, Segment};

impl Sender {
    /// Notes the state at a transmission for delivery rates, if the controller uses them. Returns
    /// the segment's timestamp.
    #[inline(never)]
    pub(super) fn stamp_and_log(&mut self, now: Time, range: Range, again: bool) -> Time {
        let delivered = self.delivered();
        if let Some(rates) = self.rtt.rates_mut() {
            let note = rates.on_sent(now, delivered, !again && range.start == self.seq.una());
            self.sent.record_send_state(range, note, again);
        }
        self.rtt.stamp(now)
    }

    /// Send time of the segment that `echo` belongs to. An echo of a timestamp that was never sent
    /// reduces the window if parameters ask for it.
    fn verify(&mut self, now: Time, echo: Time) -> Option<Time> {
        if !self.config.params.rtt.timestamps {
            return Some(echo);
        }
        let sent = self.rtt.verify(echo);
        if sent.is_none() && self.rtt.punishes() {
            self.on_request(&self.path(now), Cause::Loss);
        }
        sent
    }

    /// Number of echoes of timestamps that were never sent.
    #[must_use]
    pub fn forged_echoes(&self) -> u64 {
        self.rtt.forged()
    }

    /// Notes the arrival of `new` bytes that SACK blocks newly report.
    pub(super) fn log_sacked(&mut self, blocks: &SackBlocks, ack: u64, new: u64) {
        if !self.config.plan.controller_rtt {
            return;
        }
        // Blocks below the cumulative ACK are D-SACKs (RFC 2883 § 4).
        let reported = blocks.iter().take_while(|block| block.len > 0);
        let reported = reported.filter(|block| block.offset >= 0);
        let ranges = reported.map(|block| Range { start: block.start(ack), end: block.end(ack) });
        self.sent.note_sacked(ranges, new);
    }

    /// Adds the RTT sample of an ACK of new data to the estimator; it may end a backoff. Returns
    /// the sample: exact, and as the clock measures it; `None` if the ACK gives none. `first_sent`
    /// is the send time of the acknowledged data from the log, if that has one.
    #[inline(always)]
    pub(super) fn measure(
        &mut self,
        now: Time,
        segment: &Segment,
        ack: u64,
        first_sent: Option<Time>,
    ) -> (Option<Duration>, Option<Duration>) {
        let sent = if let Some(first_sent) = first_sent {
            first_sent
        } else if self.config.params.rtt.timestamps {
            segment.ts
        } else {
            let Some(sent) = self.rtt.take_timed(ack) else { return (None, None) };
            sent
        };
        let measured = self.add_rtt_sample(now, sent);
        if self.rto.backs_off() {
            self.end_of_backoff(ack);
        }
        (Some(now.since(sent)), Some(measured))
    }

    /// Send time of the first segment below `ack`, from the log of send times; `None` if any of the
    /// acknowledged data was retransmitted (Linux `tcp_clean_rtx_queue`).
    pub(super) fn first_send_time(&mut self, ack: u64) -> Option<Time> {
        let (first, _) = self.sent.take_in_order(ack);
        first.filter(|_| !self.sent.any_retransmitted(self.seq.una(), ack))
    }

    pub(super) fn add_rtt_sample(&mut self, now: Time, sent: Time) -> Duration {
        let r = self.config.measured(sent.0, now.0);
        self.rtt.sample(r, At { una: self.seq.una(), sent: self.seq.high() });
        r
    }

    /// Measures the RTT by an ACK of new data, like [`Sender::measure`]. Returns the controller's
    /// sample.
    #[inline(never)]
    pub(super) fn measure_for_controller(
        &mut self,
        now: Time,
        segment: &Segment,
        ack: u64,
    ) -> (Option<Duration>, Option<Duration>) {
        let seen = self.rtt.controller_view();
        let (exact, measured) = match self.verify(now, segment.ts) {
            Some(ts) => self.measure(now, &Segment { ts, ..*segment }, ack, None),
            None => (None, None),
        };
        self.rtt.restore_controller_view(seen);
        self.sent.forget_times_below(ack);
        let arrivals = self.sent.take_arrivals();
        let echo = match segment.body {
            Body::Ack { echo, .. } => echo,
            _ => Echo::None,
        };
        let timer = exact.zip(measured);
        let numbers = (ack, self.seq.high());
        let sample = self.rtt.on_ack_apart(now, numbers, arrivals, (timer, echo));
        self.report_delivery_rate(now);
        sample.unzip()
    }

    /// Payload bytes that the receiver has reported (draft-cheng-iccrg-delivery-rate-estimation-00:
    /// C.delivered).
    fn delivered(&self) -> u64 {
        self.seq.una() + self.sent.sacked_bytes()
    }

    /// Reports a delivery rate sample to a controller that uses them, before it sees the ACK.
    pub(super) fn report_delivery_rate(&mut self, now: Time) {
        let (delivered, in_flight) = (self.delivered(), self.in_flight());
        // § 3.4: application-limited, as nothing waits and the window has room.
        let idle = self.seq.nxt() >= self.seq.app_end() && in_flight < self.cc.window().cwnd;
        let Some(rates) = self.rtt.rates_mut() else { return };
        let sample = rates.on_ack(now, self.sent.take_newest(), delivered, in_flight, idle);
        self.cc.on_rate(&sample);
    }

    /// RTT sample of the controller by a duplicate ACK, if it gives one.
    pub(super) fn sacked_rtt_sample(&mut self, now: Time) -> Option<Sample> {
        if !self.config.plan.controller_rtt {
            return None;
        }
        let numbers = (self.seq.una(), self.seq.high());
        self.rtt.on_duplicate(now, numbers, self.sent.take_sacked())
    }

    /// Send time of the SYN that a SYN-ACK answers; `None` if that is ambiguous.
    pub(super) fn syn_sent(&mut self, now: Time, echo: Time, once: bool) -> Option<Time> {
        if !self.config.plan.controller_rtt {
            return (once || self.config.params.rtt.timestamps).then_some(echo);
        }
        let known = self.verify(now, echo);
        if self.config.params.rtt.timestamps && known.is_some() {
            return known;
        }
        once.then_some(self.pacer.last_sent())
    }

    /// RTT samples that the controller saw, if they are kept (`record_delays`).
    #[must_use]
    pub fn delays(&self) -> Option<&Delays> {
        let noted = self.config.params.timing.record_delays;
        self.rtt.delays().filter(|_| noted)
    }

    /// Latest RTT that the controller saw.
    #[must_use]
    pub fn rtt_seen(&self) -> Option<Duration> {
        self.rtt.last()
    }

    /// Minimum RTT that the controller saw.
    #[must_use]
    pub fn min_rtt_seen(&self) -> Option<Duration> {
        self.rtt.min()
    }

    /// Starts the counting period: of earlier samples only the minimum RTT counts.
    pub fn begin_counting(&mut self) {
        self.rtt.begin_counting();
    }
}
