//! State of a sender as qlog has it: metrics of recovery, and the state of congestion control.

use cwnd_cc::{Cause, Controller as _, Phase, Window};
use cwnd_quantity::{Duration, Time};
use cwnd_tcp::{Sender, SenderCounters, quic};

use crate::qlog::records::{Ms, Object};

/// Values of `recovery:metrics_updated`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Metrics {
    smoothed_rtt: Option<Duration>,
    rtt_variance: Option<Duration>,
    min_rtt: Option<Duration>,
    latest_rtt: Option<Duration>,
    /// Timeouts in a row: PTOs of QUIC, expiries of TCP's retransmission timer.
    pto_count: Option<u32>,
    /// Window and bytes in flight in the unit of the window: payload of TCP, packets of QUIC.
    congestion_window: Option<u64>,
    bytes_in_flight: Option<u64>,
    /// `None` while it is infinite.
    ssthresh: Option<u64>,
}

impl Metrics {
    /// Metrics of a TCP sender.
    pub fn of_tcp(now: Time, sender: &Sender) -> Self {
        let path = sender.path(now);
        let Window { cwnd, ssthresh, .. } = sender.window();
        let estimate = sender.rtt_estimate();
        Self {
            smoothed_rtt: estimate.map(|(smoothed, _)| smoothed),
            rtt_variance: estimate.map(|(_, variance)| variance),
            min_rtt: path.min_rtt,
            latest_rtt: path.rtt,
            pto_count: Some(sender.timeouts_in_a_row()),
            congestion_window: Some(cwnd),
            bytes_in_flight: Some(sender.in_flight()),
            ssthresh: (ssthresh != u64::MAX).then_some(ssthresh),
        }
    }

    /// Metrics of a QUIC sender, whose latest sample may be older than its last event.
    pub fn of_quic(sender: &quic::Sender, before: &Self) -> Self {
        let recovery = sender.recovery();
        let ssthresh = recovery.congestion().controller().window().ssthresh;
        let estimate = recovery.rtt_estimate();
        Self {
            smoothed_rtt: estimate.map(|(smoothed, _)| smoothed),
            rtt_variance: estimate.map(|(_, variance)| variance),
            min_rtt: recovery.min_rtt(),
            latest_rtt: recovery.sample().or(before.latest_rtt),
            pto_count: Some(recovery.probe_timeouts()),
            congestion_window: Some(sender.window()),
            bytes_in_flight: Some(recovery.bytes_in_flight()),
            ssthresh: (ssthresh != u64::MAX).then_some(ssthresh),
        }
    }

    /// Writes the values that differ from those before.
    pub fn write_changes(&self, before: &Self, to: &mut Object<'_>) {
        let times = [
            ("smoothed_rtt", self.smoothed_rtt, before.smoothed_rtt),
            ("min_rtt", self.min_rtt, before.min_rtt),
            ("latest_rtt", self.latest_rtt, before.latest_rtt),
            ("rtt_variance", self.rtt_variance, before.rtt_variance),
        ];
        for (name, now, _) in times.into_iter().filter(|(_, now, before)| now != before) {
            now.into_iter().for_each(|now| to.field(name, Ms::from(now)));
        }
        let (count, count_before) =
            (self.pto_count.map(u64::from), before.pto_count.map(u64::from));
        let numbers = [
            ("pto_count", count, count_before),
            ("congestion_window", self.congestion_window, before.congestion_window),
            ("bytes_in_flight", self.bytes_in_flight, before.bytes_in_flight),
            // It is infinite again after an undone reduction.
            ("ssthresh", self.ssthresh.or(before.ssthresh.and(Some(u64::MAX))), before.ssthresh),
        ];
        for (name, now, _) in numbers.into_iter().filter(|(_, now, before)| now != before) {
            now.into_iter().for_each(|now| to.field(name, now));
        }
    }
}

/// State of congestion control in `recovery:congestion_state_updated`, and what led to it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CongestionState {
    /// Name of the state; empty before the first.
    pub name: &'static str,
    /// Reductions for ECN, and times that persistent congestion was established.
    pub causes: [u64; 2],
}

/// Names of what led to a state, by the place in [`CongestionState::causes`].
const TRIGGERS: [&str; 2] = ["ECN", "persistent_congestion"];

impl CongestionState {
    /// State of a TCP sender.
    pub fn of_tcp(sender: &Sender) -> Self {
        let window = sender.window();
        let idle = !sender.has_unsent_data() && sender.in_flight() + sender.mss() <= window.cwnd;
        // A rate-based controller has no ssthresh that would end slow start.
        let starts = !sender.controller().is_rate_based() && window.cwnd < window.ssthresh;
        Self::new([sender.phase() != Phase::Open, idle, starts], sender.counters(), 0)
    }

    /// State of a QUIC sender.
    pub fn of_quic(sender: &quic::Sender) -> Self {
        let congestion = sender.recovery().congestion();
        let (recovers, idle) = (congestion.is_recovering(), sender.is_application_limited());
        let starts = sender.window() < congestion.controller().window().ssthresh;
        Self::new([recovers, idle, starts], &sender.counters(), sender.persistent_congestion())
    }

    fn new(states: [bool; 3], counters: &SenderCounters, persistent: u64) -> Self {
        let name = match states {
            [true, ..] => "recovery",
            [_, true, _] => "application_limited",
            [.., true] => "slow_start",
            _ => "congestion_avoidance",
        };
        Self { name, causes: [counters.reductions_for(Cause::Ecn), persistent] }
    }

    /// Cause of the change from the state before, if qlog has a name for it.
    pub fn trigger(&self, before: &Self) -> Option<&'static str> {
        let causes = self.causes.iter().zip(before.causes).zip(TRIGGERS);
        causes.filter(|((now, before), _)| *now > before).map(|(_, trigger)| trigger).next()
    }
}
