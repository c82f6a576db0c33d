//! Round-trip times that the controller sees where they are not those that set the timer.

use cwnd_cc::{Cause, Controller as _};
use cwnd_packet::{Echo, Range};
use cwnd_quantity::{Duration, Time};

use super::Sender;
use crate::controller_rtt::Sample;
use crate::delays::Delays;
use crate::rtt::At;
use crate::segment::{Body, SackBlocks, Segment};

impl Sender {
    /// A segment went; its timestamp.
    #[inline(never)]
    pub(super) fn time_sent(&mut self, now: Time, range: Range, again: bool) -> Time {
        let delivered = self.delivered();
        if let Some(rates) = self.rtt.rates_mut() {
            let note = rates.on_sent(now, delivered, !again && range.start == self.seq.una());
            self.sent.note_rate(range, note, again);
        }
        self.rtt.stamp(now)
    }

    /// Send time of the segment that an echo is of. An echo of one that was never sent reduces the
    /// window, where that is asked for.
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

    /// Echoes of timestamps that it never sent.
    #[must_use]
    pub fn forged_echoes(&self) -> u64 {
        self.rtt.forged()
    }

    /// The blocks of an ACK reported so many new bytes.
    pub(super) fn time_sacked(&mut self, blocks: &SackBlocks, ack: u64, new: u64) {
        if !self.config.plan.controller_rtt {
            return;
        }
        // Below the cumulative ACK are duplicates (RFC 2883 § 4).
        let told = blocks.iter().take_while(|block| block.len > 0);
        let told = told.filter(|block| block.offset >= 0);
        let ranges = told.map(|block| Range { start: block.start(ack), end: block.end(ack) });
        self.sent.note_sacked(ranges, new);
    }

    /// The RTT that a new ACK tells: exact, and as the clock measures it; from when what it
    /// acknowledges `went`, if that is remembered.
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
        } else if self.config.params.rtt.timestamps {
            segment.ts
        } else {
            let Some(sent) = self.rtt.take_timed(ack) else { return (None, None) };
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

    /// The same as [`Sender::measure`], but for what the controller sees.
    #[inline(never)]
    pub(super) fn measure_apart(
        &mut self,
        now: Time,
        segment: &Segment,
        ack: u64,
    ) -> (Option<Duration>, Option<Duration>) {
        let seen = self.rtt.seen();
        let (exact, measured) = match self.verify(now, segment.ts) {
            Some(ts) => self.measure(now, &Segment { ts, ..*segment }, ack, None),
            None => (None, None),
        };
        self.rtt.restore_seen(seen);
        self.sent.forget_times_below(ack);
        let arrivals = self.sent.take_arrivals();
        let echo = match segment.body {
            Body::Ack { echo, .. } => echo,
            _ => Echo::None,
        };
        let timer = exact.zip(measured);
        let numbers = (ack, self.seq.high());
        let sample = self.rtt.on_ack_apart(now, numbers, arrivals, (timer, echo));
        self.tell_rate(now);
        sample.unzip()
    }

    /// Payload bytes that the receiver has reported (draft-cheng-iccrg-delivery-rate-estimation-00:
    /// C.delivered).
    fn delivered(&self) -> u64 {
        self.seq.una() + self.sent.sacked_bytes()
    }

    /// A controller that steers by delivery rates hears what the ACK told of them, before it hears
    /// of the ACK.
    pub(super) fn tell_rate(&mut self, now: Time) {
        let (delivered, in_flight) = (self.delivered(), self.in_flight());
        // § 3.4: there is nothing more to send, and the window would let it go.
        let idle = self.seq.nxt() >= self.seq.app_end() && in_flight < self.cc.window().cwnd;
        let Some(rates) = self.rtt.rates_mut() else { return };
        let sample = rates.on_ack(now, self.sent.take_newest(), delivered, in_flight, idle);
        self.cc.on_rate(&sample);
    }

    /// A duplicate ACK may give a sample, too.
    pub(super) fn see_sacked(&mut self, now: Time) -> Option<Sample> {
        if !self.config.plan.controller_rtt {
            return None;
        }
        let numbers = (self.seq.una(), self.seq.high());
        self.rtt.on_duplicate(now, numbers, self.sent.take_sacked())
    }

    /// A SYN-ACK came: when the SYN went that it is for, if that can be known.
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

    /// The round-trip times that its controller saw, where that is noted (`note_delays`).
    #[must_use]
    pub fn delays(&self) -> Option<&Delays> {
        let noted = self.config.params.timing.note_delays;
        self.rtt.delays().filter(|_| noted)
    }

    /// The newest round-trip time that its controller saw.
    #[must_use]
    pub fn rtt_seen(&self) -> Option<Duration> {
        self.rtt.last()
    }

    /// The least of them.
    #[must_use]
    pub fn least_rtt_seen(&self) -> Option<Duration> {
        self.rtt.min()
    }

    /// Counting begins: of what was seen before only the least round-trip time counts.
    pub fn begin_counting(&mut self) {
        self.rtt.begin_counting();
    }
}
