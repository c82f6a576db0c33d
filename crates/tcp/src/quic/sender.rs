//! Sender of a QUIC connection: one stream, whose lost data is retransmitted under new packet
//! numbers (RFC 9000 § 13.3), with pacing and window of RFC 9002 § 7.

use cwnd_cc::{AnyController, Controller as _};
use cwnd_packet::Ranges;
use cwnd_quantity::{Bytes, Duration, Rate, Time};

use super::{AckFrame, Config, Expired, Params, Recovery, SentPacket};
use crate::counters::{SenderCounters, TIMEOUT_RANKS};
use crate::sender::pacer::Pacer;

/// Sizes of packets, bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sizes {
    /// Stream bytes of a full packet.
    pub payload: u32,
    /// Header, frame header and tag of a packet: UDP payload that is not of the stream.
    pub overhead: u32,
}

/// A packet to send.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Packet {
    /// Packet number.
    pub number: u64,
    /// First stream byte.
    pub start: u64,
    /// Stream bytes.
    pub len: u32,
    /// UDP payload, bytes.
    pub bytes: u32,
    /// `true` if its stream bytes were sent before.
    pub again: bool,
}

/// Sender of a stream.
///
/// Call [`Sender::write`], [`Sender::on_ack`], and [`Sender::on_timer`] at or after
/// [`Sender::next_timer`]. After each of them, call [`Sender::poll_transmit`] until it returns
/// `None`.
#[derive(Clone, Debug)]
pub struct Sender {
    sizes: Sizes,
    recovery: Recovery,
    pacer: Pacer,
    /// Time up to which the pacing rate is spent, in nanoseconds; the time from it to now is
    /// credit. A connection begins with the credit of one burst.
    paid_until: i64,
    /// Next packet number.
    number: u64,
    /// Next stream byte that was never sent.
    next: u64,
    /// One past the last stream byte that the application wrote.
    end: u64,
    /// Stream bytes acknowledged.
    acked: Ranges,
    /// Stream bytes lost, and neither retransmitted nor acknowledged since.
    lost: Ranges,
    /// `true` if the application, not window or pacing, limits transmission (§ 7.8).
    limited: bool,
    /// Counters except the reductions of the window, which [`Congestion`](super::Congestion) keeps.
    counters: SenderCounters,
    /// Number of times that persistent congestion was established.
    persistent: u64,
}

/// N of § 7.7: the rate exceeds a window a round trip by a quarter.
const PACING: (u128, u128) = (5, 4);
/// Packets of a burst (§ 7.7: the initial window that § 7.2 recommends, whatever `initial_window`
/// is).
const BURST: u32 = 10;

impl Sender {
    /// Creates a sender after its handshake.
    #[must_use]
    pub fn new(params: &Params, controller: AnyController, sizes: Sizes) -> Self {
        Self {
            sizes,
            recovery: Recovery::new(params, controller, sizes.payload + sizes.overhead),
            pacer: Pacer::OFF,
            paid_until: i64::MIN,
            number: 0,
            next: 0,
            end: 0,
            acked: Ranges::default(),
            lost: Ranges::default(),
            limited: true,
            counters: SenderCounters::default(),
            persistent: 0,
        }
    }

    /// Creates a sender with the configuration of a group of connections.
    #[must_use]
    pub fn of(config: &Config) -> Self {
        Self::new(&config.params, config.new_controller(), config.params.sizes())
    }

    /// Adds `bytes` written by the application.
    pub const fn write(&mut self, bytes: u64) {
        self.end = self.end.saturating_add(bytes);
    }

    /// Discards data that the application wrote and no packet carries yet.
    pub const fn stop_writing(&mut self) {
        self.end = self.next;
    }

    /// Adds an RTT sample of the handshake.
    pub fn on_handshake_rtt(&mut self, now: Time, rtt: Duration) {
        self.recovery.on_handshake_rtt(now, rtt);
    }

    /// Processes an ACK frame.
    pub fn on_ack(&mut self, now: Time, ack: &AckFrame<'_>) {
        let marked = ack.ce > self.recovery.congestion().ce();
        self.recovery.on_ack(now, ack, self.limited);
        self.counters.ece_acks += u64::from(marked && !self.recovery.acked().is_empty());
        self.persistent += u64::from(self.recovery.is_persistent());
        for packet in self.recovery.acked().iter().filter(|packet| packet.len > 0) {
            let end = packet.start + u64::from(packet.len);
            self.acked.insert(packet.start, end);
            self.lost.remove(packet.start, end);
        }
        self.take_lost();
    }

    /// Processes an expired timer, if one is due.
    pub fn on_timer(&mut self, now: Time) {
        match self.recovery.on_timer(now) {
            Expired::Nothing => {}
            Expired::Loss => self.take_lost(),
            Expired::Probe => {
                let nth = self.recovery.probe_timeouts() as usize;
                self.counters.timeouts[nth.min(TIMEOUT_RANKS) - 1] += 1;
            }
        }
    }

    /// Returns the time at which [`Sender::on_timer`] or [`Sender::poll_transmit`] is due;
    /// `Time::NEVER` if no timer runs.
    #[must_use]
    pub fn next_timer(&self) -> Time {
        let recovery = self.recovery.next_timer();
        if self.pacer.holds() { recovery.min(self.pacer.until()) } else { recovery }
    }

    /// Returns the next packet to send, if there is data and window and pacing allow it. Probes
    /// need only data to send or to repeat.
    pub fn poll_transmit(&mut self, now: Time) -> Option<Packet> {
        self.pacer.set_holds(false);
        let probe = self.recovery.probes() > 0;
        let Some((start, len)) = self.choose(probe) else {
            // The window counts as used only if no further full packet fits.
            let full = u64::from(self.sizes.payload + self.sizes.overhead);
            self.limited = self.recovery.bytes_in_flight() + full <= self.window();
            return None;
        };
        let bytes = len + self.sizes.overhead;
        self.limited = false;
        // § 7.5: the window does not limit probes.
        let fits = self.recovery.bytes_in_flight() + u64::from(bytes) <= self.window();
        if !fits && !probe || self.is_paced(now, bytes, probe) {
            return None;
        }
        let end = start + u64::from(len);
        self.lost.remove(start, end);
        let again = start < self.next;
        self.next = self.next.max(end);
        let number = self.number;
        self.number += 1;
        let packet = SentPacket { number, at: now, bytes, ack_eliciting: true, start, len };
        self.recovery.on_sent(packet);
        self.counters.segments_sent += 1;
        self.counters.retransmissions += u64::from(again);
        Some(Packet { number, start, len, bytes, again })
    }

    /// Returns the congestion window, bytes.
    #[must_use]
    pub fn window(&self) -> u64 {
        self.recovery.congestion().window()
    }

    /// Returns the bytes of a full packet, the unit of the window (`max_datagram_size`).
    #[must_use]
    pub const fn max_datagram_size(&self) -> u32 {
        self.sizes.payload + self.sizes.overhead
    }

    /// Returns loss detection, RTT and window.
    #[must_use]
    pub const fn recovery(&self) -> &Recovery {
        &self.recovery
    }

    /// Returns the counters over the whole run: their timeouts are PTOs, `ece_acks` the ACKs of new
    /// packets that report more CE marks, and `wire_bytes_sent` stays 0.
    #[must_use]
    pub fn counters(&self) -> SenderCounters {
        let reductions = self.recovery.congestion().reductions();
        SenderCounters { reductions, ..self.counters }
    }

    /// Returns the number of times that persistent congestion was established (§ 7.6).
    #[must_use]
    pub const fn persistent_congestion(&self) -> u64 {
        self.persistent
    }

    /// Returns the number of stream bytes acknowledged from the start without a gap.
    #[must_use]
    pub fn acknowledged(&self) -> u64 {
        self.acked.containing(0).map_or(0, |range| range.end)
    }

    /// `true` if all data written is acknowledged.
    #[must_use]
    pub fn is_drained(&self) -> bool {
        self.acknowledged() >= self.end
    }

    /// `true` if the application, not window or pacing, limits transmission (§ 7.8).
    #[must_use]
    pub const fn is_application_limited(&self) -> bool {
        self.limited
    }

    /// Chooses the stream bytes to send next: lost data, then new data, then for a probe the oldest
    /// outstanding packet (§ 6.2.4).
    fn choose(&self, probe: bool) -> Option<(u64, u32)> {
        let most = u64::from(self.sizes.payload);
        if let Some(lost) = self.lost.lowest() {
            return Some((lost.start, (lost.end - lost.start).min(most) as u32));
        }
        if self.next < self.end {
            return Some((self.next, (self.end - self.next).min(most) as u32));
        }
        let oldest = if probe { self.recovery.outstanding().next() } else { None };
        oldest.map(|packet| (packet.start, packet.len))
    }

    /// Queues the data of lost packets, less the bytes that other packets delivered.
    fn take_lost(&mut self) {
        for packet in self.recovery.lost() {
            let (mut from, end) = (packet.start, packet.start + u64::from(packet.len));
            while let Some(missing) = self.acked.hole_from(from, end) {
                self.lost.insert(missing.start, missing.end);
                from = missing.end;
            }
        }
    }

    /// Charges a packet to the pacing rate, unless it must wait: then it returns `true`, and the
    /// pacer holds until the packet is due.
    ///
    /// The rate is the controller's, or 5/4 of a window a round trip. A burst may have [`BURST`]
    /// packets (§ 7.7). Without a rate, before the first RTT sample, no packet waits. Probes are
    /// charged as well, but never wait.
    fn is_paced(&mut self, now: Time, bytes: u32, probe: bool) -> bool {
        let rate = self.recovery.congestion().controller().pacing().or_else(|| {
            let round_trip = u128::from(self.recovery.smoothed_rtt()?.0.max(1));
            let bits = u128::from(self.window()) * 8 * 1_000_000_000 * PACING.0;
            Some(Rate(u64::try_from(bits / (round_trip * PACING.1)).unwrap_or(u64::MAX).max(1)))
        });
        let Some(rate) = rate else { return false };
        let time_of = |bytes: u32| rate.time_for(Bytes(u64::from(bytes))).0.cast_signed();
        let burst = time_of(BURST * (self.sizes.payload + self.sizes.overhead));
        let due = self.paid_until.max(now.0.cast_signed() - burst) + time_of(bytes);
        self.pacer.hold_until(Time(due.max(0).cast_unsigned()));
        let waits = self.pacer.check(now) && !probe;
        if !waits {
            self.paid_until = due;
        }
        waits
    }
}

#[cfg(test)]
mod tests {
    use cwnd_cc::ControllerParams;

    use super::*;
    use crate::quic::{AckRange, start};

    const SIZES: Sizes = Sizes { payload: 1000, overhead: 50 };

    fn sender(bytes: u64) -> Sender {
        let controller = ControllerParams::default().build(&start(1050));
        let mut sender = Sender::new(&Params::default(), controller, SIZES);
        sender.on_handshake_rtt(Time(0), Duration::from_millis(100));
        sender.write(bytes);
        sender
    }

    fn all(sender: &mut Sender, ms: u64) -> Vec<Packet> {
        core::iter::from_fn(|| sender.poll_transmit(Time(ms * 1_000_000))).collect()
    }

    fn ack(sender: &mut Sender, ms: u64, first: u64, last: u64) {
        let ranges = [AckRange { first, last }];
        let frame = AckFrame { ranges: &ranges, delay: Duration::ZERO, ce: 0 };
        sender.on_ack(Time(ms * 1_000_000), &frame);
    }

    #[test]
    fn the_window_is_filled_and_lost_data_goes_first_under_a_new_number() {
        let mut sender = sender(20_000);
        assert_eq!(all(&mut sender, 0).len(), 10);
        ack(&mut sender, 100, 1, 9);
        let packets = all(&mut sender, 100);
        let again = Packet { number: 10, start: 0, len: 1000, bytes: 1050, again: true };
        assert_eq!(packets[0], again);
        assert!(packets[1..].iter().all(|packet| !packet.again && packet.start >= 10_000));
        assert_eq!(sender.acknowledged(), 0);
    }

    #[test]
    fn beyond_a_burst_packets_are_spaced_by_four_fifths_of_a_round_trip_a_window() {
        let mut sender = sender(100_000);
        all(&mut sender, 0);
        ack(&mut sender, 10, 0, 9);
        // A window of 12 packets a smoothed round trip of 88.75 ms, and a quarter more: 5.9 ms.
        assert_eq!((all(&mut sender, 10).len(), sender.window()), (1, 12 * 1050));
        let next = sender.next_timer().0 - 2 * 5_916_667;
        assert!(next < 10, "{next}");
    }

    #[test]
    fn two_probes_go_beyond_a_full_window_with_new_data_or_the_oldest() {
        let mut full = sender(20_000);
        all(&mut full, 0);
        let timer = full.next_timer();
        full.on_timer(timer);
        let probes: Vec<_> = core::iter::from_fn(|| full.poll_transmit(timer)).collect();
        assert_eq!(probes.iter().map(|p| p.start).collect::<Vec<_>>(), [10_000, 11_000]);
        let mut tail = sender(1500);
        all(&mut tail, 0);
        tail.on_timer(timer);
        let probes: Vec<_> = core::iter::from_fn(|| tail.poll_transmit(timer)).collect();
        assert_eq!(probes.iter().map(|p| (p.start, p.again)).collect::<Vec<_>>(), [(0, true); 2]);
        // A copy that arrives leaves nothing to send again when the first is declared lost.
        ack(&mut tail, timer.0 / 1_000_000 + 100, 1, 3);
        assert!(tail.is_drained() && all(&mut tail, 2000).is_empty());
    }
}
