//! Loss recovery of a connection: sent packets, RTT, timers and window (RFC 9002 appendix A).

use cwnd_cc::AnyController;
use cwnd_quantity::{Duration, Time};

use super::congestion::{Congestion, Moment};
use super::loss::{Persistence, SentPackets, Thresholds};
use super::{AckFrame, GRANULARITY, Params, SentPacket};
use crate::rtt::{At, RttEstimator};

/// PTOs that persistent congestion lasts (§ 7.6.1: kPersistentCongestionThreshold).
const PERSISTENT_CONGESTION_THRESHOLD: u64 = 3;

/// Loss recovery and congestion control of a connection after its handshake.
///
/// Call [`Recovery::on_sent`] for each packet, [`Recovery::on_ack`] for each ACK frame, and
/// [`Recovery::on_timer`] at or after [`Recovery::next_timer`].
#[derive(Clone, Debug)]
pub struct Recovery {
    params: Params,
    packets: SentPackets,
    rtt: Rtt,
    probe_timer: ProbeTimer,
    congestion: Congestion,
    /// Packets that the last ACK or timer newly acknowledged, and packets that it declared lost.
    acked: Vec<SentPacket>,
    lost: Vec<SentPacket>,
    /// `true` if that event established persistent congestion.
    persistent: bool,
    /// RTT sample of that event.
    sample: Option<Duration>,
}

/// Result of a timer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Expired {
    /// No timer was due.
    Nothing,
    /// Packets are lost by their age (§ 6.1.2).
    Loss,
    /// A PTO expired: probes are due (§ 6.2.4).
    Probe,
}

impl Recovery {
    /// Creates the state of a new connection with datagrams of `mds` bytes.
    #[must_use]
    pub fn new(params: &Params, controller: AnyController, mds: u32) -> Self {
        Self {
            params: params.clone(),
            packets: SentPackets::new(),
            rtt: Rtt::new(params),
            probe_timer: ProbeTimer::default(),
            congestion: Congestion::new(controller, mds),
            acked: Vec::new(),
            lost: Vec::new(),
            persistent: false,
            sample: None,
        }
    }

    /// Records a sent packet (§ A.5).
    pub fn on_sent(&mut self, packet: SentPacket) {
        self.packets.on_sent(packet);
        self.congestion.on_sent(packet.bytes);
        if packet.ack_eliciting {
            self.probe_timer.on_sent();
        }
    }

    /// Adds an RTT sample of the handshake, which has no ACK delay (§ 5.3).
    pub fn on_handshake_rtt(&mut self, now: Time, rtt: Duration) {
        self.rtt.update(now, rtt, Duration::ZERO);
    }

    /// Processes an ACK frame (OnAckReceived, § A.7); `limited` if the window was underused (§
    /// 7.8). Afterwards [`Recovery::acked`] and [`Recovery::lost`] hold the packets of this ACK.
    /// Without a newly acknowledged packet neither RTT nor window nor timers change.
    pub fn on_ack(&mut self, now: Time, ack: &AckFrame<'_>, limited: bool) {
        let in_flight = self.packets.bytes_in_flight();
        self.begin();
        self.packets.on_ack(ack.ranges, &mut self.acked);
        let Some(&newest) = self.acked.first() else { return };
        // § 5.1: a sample needs a newly acknowledged largest number, and a new packet that elicits
        // ACKs.
        let largest = ack.ranges.first().is_some_and(|range| range.last == newest.number);
        if largest && self.acked.iter().any(|packet| packet.ack_eliciting) {
            let delay = ack.delay.min(self.params.max_ack_delay);
            let latest = now.since(newest.at);
            self.rtt.update(now, latest, delay);
            self.sample = Some(latest);
        }
        let at = self.moment(now, in_flight);
        self.congestion.on_ecn(&at, ack.ce, newest.at);
        self.detect(&at, true);
        if self.persistent {
            self.rtt.forget_min();
        }
        self.congestion.on_acked(&at, &self.acked, limited);
        self.probe_timer.on_ack();
    }

    /// Processes an expired timer (OnLossDetectionTimeout, § A.9). Afterwards [`Recovery::lost`]
    /// holds the packets that it declared lost.
    pub fn on_timer(&mut self, now: Time) -> Expired {
        self.begin();
        if now < self.next_timer() {
            return Expired::Nothing;
        }
        if self.packets.loss_time() == Time::NEVER {
            self.probe_timer.on_expiry();
            return Expired::Probe;
        }
        let at = self.moment(now, self.packets.bytes_in_flight());
        self.detect(&at, false);
        Expired::Loss
    }

    /// Returns the time at which [`Recovery::on_timer`] is due (§ A.8); `Time::NEVER` if no timer
    /// runs.
    #[must_use]
    pub fn next_timer(&self) -> Time {
        match (self.packets.loss_time(), self.packets.last_eliciting()) {
            (Time::NEVER, Some(last)) => self.probe_timer.deadline(last, self.probe_timeout()),
            (loss_time, _) => loss_time,
        }
    }

    /// Returns the packets that the last event newly acknowledged, the largest number first.
    #[must_use]
    pub fn acked(&self) -> &[SentPacket] {
        &self.acked
    }

    /// Returns the packets that the last event declared lost, the smallest number first.
    #[must_use]
    pub fn lost(&self) -> &[SentPacket] {
        &self.lost
    }

    /// `true` if the last event, an ACK, established persistent congestion (§ 7.6).
    #[must_use]
    pub const fn is_persistent(&self) -> bool {
        self.persistent
    }

    /// Returns the outstanding packets, the oldest first.
    pub fn outstanding(&self) -> impl Iterator<Item = &SentPacket> {
        self.packets.outstanding()
    }

    /// Returns the bytes in flight.
    #[must_use]
    pub const fn bytes_in_flight(&self) -> u64 {
        self.packets.bytes_in_flight()
    }

    /// Returns the number of probes that may be sent regardless of the window (§ 7.5).
    #[must_use]
    pub const fn probes(&self) -> u8 {
        self.probe_timer.probes()
    }

    /// Returns the number of PTOs in a row.
    #[must_use]
    pub const fn probe_timeouts(&self) -> u32 {
        self.probe_timer.count()
    }

    /// Returns smoothed_rtt; `None` before the first sample.
    #[must_use]
    pub fn smoothed_rtt(&self) -> Option<Duration> {
        self.rtt.smoothed()
    }

    /// Returns smoothed_rtt and rttvar; `None` before the first sample.
    #[must_use]
    pub fn rtt_estimate(&self) -> Option<(Duration, Duration)> {
        self.rtt.estimate()
    }

    /// Returns the RTT sample of the last event (§ 5.1), which includes the ACK delay; `None` if it
    /// gave none.
    #[must_use]
    pub const fn sample(&self) -> Option<Duration> {
        self.sample
    }

    /// Returns min_rtt; `None` before the first sample.
    #[must_use]
    pub fn min_rtt(&self) -> Option<Duration> {
        self.rtt.min()
    }

    /// Returns the window and its controller.
    #[must_use]
    pub const fn congestion(&self) -> &Congestion {
        &self.congestion
    }

    /// Returns the PTO without backoff (§ 6.2.1).
    #[must_use]
    pub fn probe_timeout(&self) -> Duration {
        self.rtt.probe_base() + self.params.max_ack_delay
    }

    /// Clears the results of the previous event.
    fn begin(&mut self) {
        self.acked.clear();
        self.lost.clear();
        self.persistent = false;
        self.sample = None;
    }

    /// Detects losses and reports them to the controller. They establish persistent congestion
    /// only after an ACK (§ 7.6.2).
    fn detect(&mut self, at: &Moment, by_ack: bool) {
        let factor = self.params.time_threshold;
        // § 6.1.2; IEEE multiplication is the same on every machine.
        let delay = Duration((self.rtt.larger().0 as f64 * factor) as u64).max(GRANULARITY);
        let thresholds = Thresholds { packets: u64::from(self.params.packet_threshold), delay };
        let persistence = Persistence {
            duration: self.probe_timeout() * PERSISTENT_CONGESTION_THRESHOLD,
            first_sample: self.rtt.first_sample(),
        };
        let persistent = self.packets.detect(at.now, thresholds, persistence, &mut self.lost);
        self.persistent = persistent && by_ack;
        let last = self.lost.iter().rev().find(|packet| packet.bytes > 0).map(|lost| lost.at);
        if let Some(last) = last {
            self.congestion.on_lost(at, last, self.persistent);
        }
    }

    fn moment(&self, now: Time, in_flight: u64) -> Moment {
        Moment {
            now,
            smoothed: self.rtt.smoothed(),
            min: self.rtt.min(),
            latest: self.rtt.latest(),
            in_flight,
        }
    }
}

/// RTT estimate of a path.
#[derive(Clone, Debug)]
struct Rtt {
    estimator: RttEstimator,
    /// Smallest sample since the start or since persistent congestion (§ 5.2); `Duration::MAX`
    /// before the first.
    min: Duration,
    initial: Duration,
    /// Time of the first sample; `Time::NEVER` before it.
    first_sample: Time,
}

impl Rtt {
    pub fn new(params: &Params) -> Self {
        Self {
            estimator: RttEstimator::default(),
            min: Duration::MAX,
            initial: params.initial_rtt,
            first_sample: Time::NEVER,
        }
    }

    /// Adds a sample, of which the receiver reports `ack_delay`, at most max_ack_delay, as its own
    /// delay (§ 5.3; UpdateRtt, § A.7).
    ///
    /// The estimator is RFC 6298's, with samples less the ACK delay unless that falls below
    /// min_rtt.
    pub fn update(&mut self, now: Time, latest: Duration, ack_delay: Duration) {
        self.first_sample = self.first_sample.min(now);
        self.min = self.min.min(latest);
        // § 5.3: "only if the resulting RTT sample would be at least min_rtt".
        let explained = latest >= self.min + ack_delay;
        let adjusted = if explained { latest - ack_delay } else { latest };
        self.estimator.sample(adjusted, At::default());
        self.estimator.add_controller_sample(latest);
    }

    /// Resets min_rtt to the latest sample, after persistent congestion (§ 5.2).
    pub fn forget_min(&mut self) {
        self.min = self.latest().unwrap_or(Duration::MAX);
    }

    pub const fn first_sample(&self) -> Time {
        self.first_sample
    }

    /// Returns min_rtt; `None` before the first sample.
    pub fn min(&self) -> Option<Duration> {
        (self.min != Duration::MAX).then_some(self.min)
    }

    /// Returns latest_rtt; `None` before the first sample.
    pub fn latest(&self) -> Option<Duration> {
        self.estimator.last()
    }

    /// Returns smoothed_rtt; `None` before the first sample.
    pub fn smoothed(&self) -> Option<Duration> {
        self.estimator.srtt()
    }

    /// Returns smoothed_rtt and rttvar; `None` before the first sample.
    pub fn estimate(&self) -> Option<(Duration, Duration)> {
        self.estimator.estimate()
    }

    /// Returns the larger of smoothed_rtt and latest_rtt (§ 6.1.2); the initial RTT before the
    /// first sample.
    pub fn larger(&self) -> Duration {
        let smoothed = self.smoothed().unwrap_or(self.initial);
        smoothed.max(self.latest().unwrap_or(self.initial))
    }

    /// Returns smoothed_rtt + max(4 · rttvar, kGranularity), the PTO without max_ack_delay (§
    /// 6.2.1). Before the first sample they are the initial RTT and half of it (§ 6.2.2).
    pub fn probe_base(&self) -> Duration {
        let first = (self.initial, self.initial / 2);
        let (smoothed, variation) = self.estimator.estimate().unwrap_or(first);
        smoothed + (variation * 4).max(GRANULARITY)
    }
}

/// Backoff and probes of the probe timeout (PTO).
#[derive(Clone, Copy, Debug, Default)]
struct ProbeTimer {
    /// PTOs in a row (pto_count).
    count: u32,
    /// Probes that may still be sent, regardless of the window.
    probes: u8,
}

/// Probes of one PTO (§ 6.2.4: one, and at most two).
const PROBES: u8 = 2;

impl ProbeTimer {
    /// Returns the number of PTOs in a row.
    pub const fn count(self) -> u32 {
        self.count
    }

    /// Returns the number of probes that may still be sent, regardless of the window.
    pub const fn probes(self) -> u8 {
        self.probes
    }

    /// Returns the time of the next PTO, if the last packet that elicits an ACK was sent at `last`
    /// (§ A.8); `period` is the PTO without backoff.
    pub fn deadline(self, last: Time, period: Duration) -> Time {
        last + period * 1_u64.checked_shl(self.count).unwrap_or(u64::MAX)
    }

    /// Counts an expired PTO, and allows its probes (§ A.9).
    pub const fn on_expiry(&mut self) {
        self.count = self.count.saturating_add(1);
        self.probes = PROBES;
    }

    /// Counts a packet that elicits an ACK as a probe, if one is due.
    pub const fn on_sent(&mut self) {
        self.probes = self.probes.saturating_sub(1);
    }

    /// Ends the backoff, at an ACK of a new packet (§ 6.2.1, § A.7). Probes that are due stay due.
    pub const fn on_ack(&mut self) {
        self.count = 0;
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use cwnd_cc::ControllerParams;
    use proptest::prelude::*;

    use super::*;
    use crate::quic::{AckRange, start};

    const MDS: u32 = 1200;

    fn recovery() -> Recovery {
        Recovery::new(&Params::default(), ControllerParams::default().build(&start(MDS)), MDS)
    }

    /// Checks that the packets reported by the last event were outstanding, and removes them.
    fn settle(recovery: &Recovery, outstanding: &mut BTreeSet<u64>) -> Result<(), TestCaseError> {
        for packet in recovery.acked().iter().chain(recovery.lost()) {
            prop_assert!(outstanding.remove(&packet.number), "{} twice", packet.number);
        }
        Ok(())
    }

    proptest! {
        /// Each packet is acknowledged or lost once, whatever ACKs say. A timer runs as long as a
        /// packet that elicits an ACK is outstanding.
        #[test]
        fn packets_leave_once_and_a_timer_runs_until_they_have(
            ops in prop::collection::vec((0_u8..8, 0_u64..40, 0_u64..6, 1_u64..80_000_000), 1..200),
        ) {
            let (mut recovery, mut outstanding) = (recovery(), BTreeSet::new());
            let (mut now, mut number) = (Time(1), 0_u64);
            for (op, back, len, pause) in ops {
                match op {
                    0..=3 => {
                        // Some numbers are skipped, and some packets elicit no ACK.
                        number += 1 + u64::from(back == 0);
                        let ack_eliciting = back != 1;
                        let bytes = if ack_eliciting { MDS } else { 0 };
                        let (at, start, len) = (now, 0, 0);
                        let packet = SentPacket { number, at, bytes, ack_eliciting, start, len };
                        recovery.on_sent(packet);
                        outstanding.insert(number);
                    }
                    4..=6 => {
                        // Some ACKs report packets that were never sent.
                        let last = (number + 2).saturating_sub(back);
                        let first = last.saturating_sub(len);
                        let below = AckRange { first: 0, last: first.saturating_sub(len + 2) };
                        let ranges = [AckRange { first, last }, below];
                        let (delay, ce) = (Duration(pause), back / 8);
                        recovery.on_ack(now, &AckFrame { ranges: &ranges, delay, ce }, len == 0);
                    }
                    _ => {
                        let due = recovery.next_timer();
                        let late = if due == Time::NEVER { now } else { now.max(due) };
                        prop_assert_eq!(recovery.on_timer(late) == Expired::Nothing, due > late);
                        now = late;
                    }
                }
                if op > 3 {
                    settle(&recovery, &mut outstanding)?;
                }
                let left: Vec<&SentPacket> = recovery.outstanding().collect();
                let numbers = left.iter().map(|packet| packet.number);
                prop_assert!(numbers.eq(outstanding.iter().copied()));
                let bytes: u64 = left.iter().map(|packet| u64::from(packet.bytes)).sum();
                prop_assert_eq!(recovery.bytes_in_flight(), bytes);
                let waits = left.iter().any(|packet| packet.ack_eliciting);
                prop_assert!(!waits || recovery.next_timer() < Time::NEVER);
                prop_assert!(recovery.congestion().window() >= 2 * u64::from(MDS));
                now += Duration(pause);
                // About two years: a few PTOs later the deadline exceeds 64 bits of nanoseconds.
                if now > Time(1 << 56) {
                    break;
                }
            }
        }
    }

    const MS: fn(u64) -> Duration = Duration::from_millis;

    #[test]
    fn the_receivers_delay_is_taken_off_unless_that_falls_below_the_least() {
        let mut rtt = Rtt::new(&Params::default());
        assert_eq!(rtt.probe_base(), MS(999), "§ 6.2.2: 333 ms and 4 · 166.5 ms");
        rtt.update(Time(1), MS(100), MS(20));
        assert_eq!(rtt.smoothed(), Some(MS(100)), "§ 5.3: the first sample is the least");
        rtt.update(Time(2), MS(116), MS(16));
        assert_eq!(rtt.smoothed(), Some(MS(100)));
        rtt.update(Time(3), MS(108), MS(16));
        assert_eq!(rtt.smoothed(), Some(MS(101)), "92 ms would be below 100 ms");
        assert_eq!((rtt.min(), rtt.larger()), (Some(MS(100)), MS(108)));
        rtt.forget_min();
        assert_eq!((rtt.min(), rtt.first_sample()), (Some(MS(108)), Time(1)));
    }

    #[test]
    fn each_expiry_doubles_the_timeout_and_an_acknowledgement_ends_that() {
        let mut timer = ProbeTimer::default();
        let at = |timer: ProbeTimer| timer.deadline(Time(5), Duration(100)).0;
        assert_eq!(at(timer), 105);
        timer.on_expiry();
        timer.on_expiry();
        assert_eq!((at(timer), timer.probes()), (405, 2));
        timer.on_sent();
        timer.on_ack();
        assert_eq!((at(timer), timer.probes(), timer.count()), (105, 1, 0));
        (0..70).for_each(|_| timer.on_expiry());
        assert_eq!(timer.deadline(Time(5), Duration(100)), Time::NEVER);
    }
}
