//! Round-trip times that the controller sees where they are not those that set the timer.

use cwnd_cc::{Cause, Controller as _};
use cwnd_packet::Echo;
use cwnd_quantity::{Duration, Time};

use super::Sender;
use crate::controller_rtt::Sample;
use crate::delays::Delays;
use crate::rtt::{At, Seen};
use crate::segment::{Body, SackBlocks, Segment};
use cwnd_packet::Range;

impl Sender {
    /// A segment went; its timestamp.
    #[inline(never)]
    pub(super) fn time_sent(&mut self, now: Time, range: Range, again: bool) -> Time {
        let delivered = self.delivered();
        let Some(timing) = &mut self.controller_rtt else { return now };
        if let Some(rates) = &mut timing.rates {
            let note = rates.on_sent(now, delivered, !again && range.start == self.seq.una());
            self.sent.note_rate(range, note, again);
        }
        timing.stamp(now)
    }

    /// The timestamp of what goes now.
    pub(super) fn stamp(&self, now: Time) -> Time {
        self.controller_rtt.as_ref().map_or(now, |timing| timing.stamp(now))
    }

    /// Send time of the segment that an echo is of. An echo of one that was never sent reduces the
    /// window, where that is asked for.
    fn verify(&mut self, now: Time, echo: Time) -> Option<Time> {
        let Some(timing) = self.controller_rtt.as_mut().filter(|_| self.config.params.timestamps)
        else {
            return Some(echo);
        };
        let sent = timing.verify(echo);
        if sent.is_none() && timing.punishes() {
            self.on_request(&self.path(now), Cause::Loss);
        }
        sent
    }

    /// Echoes of timestamps that it never sent.
    #[must_use]
    pub fn forged_echoes(&self) -> u64 {
        self.controller_rtt.as_ref().map_or(0, |timing| timing.forged())
    }

    /// The blocks of an ACK reported so many new bytes.
    pub(super) fn time_sacked(&mut self, blocks: &SackBlocks, ack: u64, new: u64) {
        if self.controller_rtt.is_none() {
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
        self.rtt.set_seen(seen);
        self.sent.forget_times_below(ack);
        let arrivals = self.sent.take_arrivals();
        let Some(timing) = &mut self.controller_rtt else { return (exact, measured) };
        let echo = match segment.body {
            Body::Ack { echo, .. } => echo,
            _ => Echo::None,
        };
        let sample =
            timing.on_ack(now, (ack, self.seq.high()), arrivals, exact.zip(measured), echo);
        if let Some((_, measured)) = sample {
            self.rtt.see(measured);
        }
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
        let rates = self.controller_rtt.as_mut().and_then(|timing| timing.rates.as_mut());
        let Some(rates) = rates else { return };
        let sample = rates.on_ack(now, self.sent.take_newest(), delivered, in_flight, idle);
        self.cc.on_rate(&sample);
    }

    /// A duplicate ACK may give a sample, too.
    pub(super) fn see_sacked(&mut self, now: Time) -> Option<Sample> {
        let seen = self.controller_rtt.as_mut()?;
        let numbers = (self.seq.una(), self.seq.high());
        let sample = seen.on_duplicate(now, numbers, self.sent.take_sacked())?;
        self.rtt.see(sample.1);
        Some(sample)
    }

    /// A SYN-ACK came: when the SYN went that it is for, if that can be known.
    pub(super) fn syn_sent(&mut self, now: Time, echo: Time, once: bool) -> Option<Time> {
        if self.controller_rtt.is_none() {
            return (once || self.config.params.timestamps).then_some(echo);
        }
        let known = self.verify(now, echo);
        if self.config.params.timestamps && known.is_some() {
            return known;
        }
        once.then_some(self.pacer.last_sent())
    }

    /// The handshake took a round trip from `sent`, of which the timer made `measured`; what was
    /// `seen` before.
    pub(super) fn time_handshake(
        &mut self,
        now: Time,
        sent: Time,
        seen: Seen,
        measured: Option<Duration>,
        once: bool,
    ) {
        let Some(timing) = &mut self.controller_rtt else { return };
        self.rtt.set_seen(seen);
        if let Some(measured) = timing.on_handshake(now, sent, measured, once) {
            self.rtt.see(measured);
        }
    }

    /// The round-trip times that its controller saw, where that is noted (`note_delays`).
    #[must_use]
    pub fn delays(&self) -> Option<&Delays> {
        let noted = self.config.params.timing.note_delays;
        self.controller_rtt.as_ref().filter(|_| noted).map(|timing| timing.delays())
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
        if let Some(timing) = &mut self.controller_rtt {
            timing.begin_counting();
        }
    }
}
