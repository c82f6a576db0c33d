//! BBR, version 1: sends at the bandwidth that it measured. The window aims at a multiple of the
//! bandwidth-delay product (without queues), by default two in ProbeBW, and three send quanta.
//!
//! Sections and names that begin with "BBR" are those of
//! draft-cardwell-iccrg-bbr-congestion-control-00. Cardwell et al., *BBR: congestion-based
//! congestion control*, ACM Queue 14 (5), 2016. Bandwidth samples come from [`RateSample`].

use alloc::boxed::Box;

mod ack_aggregation;
mod params;

use alloc::collections::VecDeque;
use alloc::sync::Arc;

use cwnd_packet::CongestionHeader;
use cwnd_quantity::{Duration, Rate, Time};
use cwnd_schema::RegistryEntry;

use crate::controller::{
    AckSample, Controller, OutgoingData, Path, Phase, RateSample, Request, Signal, Start, Window,
};
use crate::dynamic::{ControllerInfo, DynController};
use ack_aggregation::AckAggregation;
pub use params::Params;

/// Name and description in scenarios.
pub const ENTRY: RegistryEntry = RegistryEntry::new(
    "bbr",
    "BBR, version 1: sends at the bandwidth that it found \
     (draft-cardwell-iccrg-bbr-congestion-control-00).",
);

impl ControllerInfo for Params {
    fn build(&self, start: &Start) -> Box<dyn DynController> {
        Box::new(Bbr::new(self, start))
    }

    fn lowers_on_acks(&self) -> bool {
        true
    }

    fn linux_name(&self) -> Option<&'static str> {
        Some("bbr")
    }
}

/// BBR's state for one connection. Windows are bytes, bandwidths bytes per nanosecond, in floating
/// point.
#[derive(Clone, Debug)]
pub struct Bbr {
    cwnd: f64,
    state: State,
    bandwidth: Bandwidth,
    rtprop: RtProp,
    full_pipe: FullPipe,
    extra_acked: AckAggregation,
    recovery: Recovery,
    /// BBR.idle_restart.
    idle: bool,
    /// Delivered bytes at the start of the last ProbeRTT, and the last of those sent during it. A
    /// sample whose `prior_delivered` lies between counts as application-limited.
    probe_rtt_range: Option<(u64, u64)>,
    /// BBR.pacing_rate, bytes per nanosecond.
    pacing_rate: Option<f64>,
    /// Rate sample of the ACK whose `on_ack` follows.
    pending_sample: Option<RateSample>,
    counters: Counters,
    constants: Arc<Constants>,
}

/// Constants of a connection.
#[derive(Debug)]
struct Constants {
    params: Params,
    mss: f64,
    initial_window: f64,
    max_window: f64,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum State {
    Startup,
    Drain,
    /// Phase of the gain cycle, and its start.
    ProbeBw {
        phase: usize,
        since: Time,
    },
    /// Probe for the least RTT. Once no more than the least window is in flight, `until` is its
    /// earliest end; `round_done` is `true` after a round trip at that window.
    ProbeRtt {
        until: Option<Time>,
        round_done: bool,
    },
}

/// BBR.BtlBw, and the number of round trips.
#[derive(Clone, Debug, Default)]
struct Bandwidth {
    /// Bandwidth samples with their round trips: only those that no newer one reaches.
    kept: VecDeque<(u64, f64)>,
    round: u64,
    /// BBR.next_round_delivered.
    next: u64,
}

/// BBR.RTprop and BBR.rtprop_stamp.
#[derive(Clone, Copy, Debug, Default)]
struct RtProp {
    min_rtt: Option<Duration>,
    at: Time,
}

/// BBR.full_bw, BBR.full_bw_count and BBR.filled_pipe.
#[derive(Clone, Copy, Debug, Default)]
struct FullPipe {
    bandwidth: f64,
    rounds: u32,
    filled: bool,
}

/// State of the window during loss recovery (§ 4.2.3.4).
#[derive(Clone, Copy, Debug, Default)]
struct Recovery {
    /// Phase of the transport at the last ACK or timeout.
    phase: Phase,
    /// BBR.packet_conservation.
    conserves: bool,
    /// BBR.prior_cwnd.
    prior: f64,
}

#[derive(Clone, Copy, Debug, Default)]
struct Counters {
    probes: u64,
    rtt_probes: u64,
}

impl Bandwidth {
    fn best(&self) -> f64 {
        self.kept.front().map_or(0.0, |&(_, rate)| rate)
    }

    /// `true` if a round trip begins with this ACK (BBRUpdateRound).
    fn begins_round(&mut self, sample: &RateSample) -> bool {
        let begins = sample.prior_delivered.is_some_and(|prior| prior >= self.next);
        if begins {
            self.next = sample.total_delivered;
            self.round += 1;
        }
        begins
    }

    /// Adds a bandwidth sample (BBRUpdateBtlBw); application-limited samples count only if they are
    /// not below the maximum.
    fn take(&mut self, rate: f64, limited: bool, rounds: u32) {
        if limited && rate < self.best() {
            return;
        }
        while self.kept.back().is_some_and(|&(_, kept)| rate >= kept) {
            self.kept.pop_back();
        }
        self.kept.push_back((self.round, rate));
        while self.kept[0].0 + u64::from(rounds) <= self.round {
            self.kept.pop_front();
        }
    }
}

impl Bbr {
    /// Creates the controller of a new connection.
    #[must_use]
    pub fn new(params: &Params, start: &Start) -> Self {
        let cwnd = start.initial_cwnd() as f64;
        Self {
            cwnd,
            state: State::Startup,
            bandwidth: Bandwidth::default(),
            rtprop: RtProp::default(),
            full_pipe: FullPipe::default(),
            extra_acked: AckAggregation::default(),
            recovery: Recovery::default(),
            idle: false,
            probe_rtt_range: None,
            pacing_rate: None,
            pending_sample: None,
            counters: Counters::default(),
            constants: Arc::new(Constants {
                params: params.clone(),
                mss: f64::from(start.mss),
                initial_window: cwnd,
                max_window: start.max_window() as f64,
            }),
        }
    }

    /// Least window, bytes (BBRMinPipeCwnd).
    fn min_window(&self) -> f64 {
        (f64::from(self.constants.params.least_window) * self.constants.mss)
            .min(self.constants.max_window)
    }

    /// Returns the pacing gain of the current state (BBR.pacing_gain).
    fn pacing_gain(&self) -> f64 {
        let params = &self.constants.params;
        match self.state {
            State::Startup => params.startup_gain,
            State::Drain => 1.0 / params.startup_gain,
            State::ProbeBw { phase: 0, .. } => params.probe_gain,
            State::ProbeBw { phase: 1, .. } => params.drain_gain,
            State::ProbeBw { .. } | State::ProbeRtt { .. } => 1.0,
        }
    }

    /// Returns the send quantum, bytes (BBRSetSendQuantum, § 4.2.2). Segments are sent one by one
    /// here, but the window still has room for quanta.
    fn quantum(&self) -> f64 {
        let mss = self.constants.mss;
        match self.pacing_rate.unwrap_or(0.0) {
            pace if pace < LOW_PACING_RATE => mss,
            pace if pace < HIGH_PACING_RATE => 2.0 * mss,
            pace => (1e6 * pace).min(MAX_QUANTUM),
        }
    }

    /// Returns `gain` bandwidth-delay products plus three quanta, bytes (BBRInflight, § 4.2.3.2);
    /// before the first RTT the initial window.
    fn inflight(&self, gain: f64) -> f64 {
        self.rtprop.min_rtt.map_or(self.constants.initial_window, |min_rtt| {
            gain * self.bandwidth.best() * min_rtt.0 as f64 + 3.0 * self.quantum()
        })
    }

    /// Takes an ACK's bandwidth. Returns `true` if a round trip begins, and `true` if the sample is
    /// limited: by the application, or by a probe for the least RTT (§ 4.3.5).
    fn take_bandwidth(&mut self, sample: &RateSample) -> (bool, bool) {
        let begins = self.bandwidth.begins_round(sample);
        let prior = sample.prior_delivered.unwrap_or(sample.total_delivered);
        let in_probe_rtt =
            self.probe_rtt_range.is_some_and(|(from, to)| (from..=to).contains(&prior));
        let limited = sample.app_limited || in_probe_rtt;
        if let Some(took) = sample.interval {
            let rate = (sample.total_delivered - prior) as f64 / took.0 as f64;
            self.bandwidth.take(rate, limited, self.constants.params.bandwidth_rounds);
        }
        (begins, limited)
    }

    /// Enters ProbeBW in any phase but the one that drains the queue (BBREnterProbeBW). The draft
    /// draws it at random; here it is computed from the time.
    fn enter_probe_bw(&mut self, now: Time) {
        let drawn = (now.0 / 1000 % (PHASES as u64 - 1)) as usize;
        let phase = if drawn == 0 { 0 } else { drawn + 1 };
        self.state = State::ProbeBw { phase, since: now };
        self.counters.probes += u64::from(phase == 0);
    }

    /// Advances the gain cycle (BBRCheckCyclePhase, § 4.3.4.3); `before` is the data in flight
    /// before the ACK, bytes.
    fn check_cycle(&mut self, now: Time, before: f64, lost: bool) {
        let State::ProbeBw { phase, since } = self.state else { return };
        let full = self.rtprop.min_rtt.is_some_and(|min_rtt| now.since(since) > min_rtt);
        let next = match phase {
            0 => full && (lost || before >= self.inflight(self.constants.params.probe_gain)),
            1 => full || before <= self.inflight(1.0),
            _ => full,
        };
        if next {
            let phase = (phase + 1) % PHASES;
            self.state = State::ProbeBw { phase, since: now };
            self.counters.probes += u64::from(phase == 0);
        }
    }

    /// Checks at the start of a round trip if the pipe is full (BBRCheckFullPipe, § 4.3.2.2).
    fn check_full_pipe(&mut self) {
        let best = self.bandwidth.best();
        let full_pipe = &mut self.full_pipe;
        if full_pipe.filled {
            return;
        }
        if best >= full_pipe.bandwidth * FULL_GROWTH {
            (full_pipe.bandwidth, full_pipe.rounds) = (best, 0);
            return;
        }
        full_pipe.rounds += 1;
        full_pipe.filled = full_pipe.rounds >= FULL_ROUNDS;
    }

    /// Moves from Startup to Drain and on to ProbeBW (BBRCheckDrain, § 4.3.3).
    fn check_drain(&mut self, now: Time, in_flight: f64) {
        if self.state == State::Startup && self.full_pipe.filled {
            self.state = State::Drain;
        }
        if self.state == State::Drain && in_flight <= self.inflight(1.0) {
            self.enter_probe_bw(now);
        }
    }

    /// Updates the least RTT (BBRUpdateRTprop, § 4.1.2.3); `true` if it had expired.
    fn take_rtt(&mut self, now: Time, rtt: Option<Duration>) -> bool {
        let params = &self.constants.params;
        let expired =
            self.rtprop.min_rtt.is_some() && now.since(self.rtprop.at) > params.min_rtt_window;
        let lower = |rtt: Duration| match self.rtprop.min_rtt {
            Some(min_rtt) => rtt < min_rtt || rtt == min_rtt && params.equal_refreshes,
            None => true,
        };
        if let Some(rtt) = rtt.filter(|&rtt| expired || lower(rtt)) {
            self.rtprop = RtProp { min_rtt: Some(rtt), at: now };
        }
        expired
    }

    /// Enters, runs and leaves ProbeRTT (BBRCheckProbeRTT, § 4.3.5).
    fn check_probe_rtt(&mut self, now: Time, sample: &RateSample, expired: bool, begins: bool) {
        if expired && !self.idle && !matches!(self.state, State::ProbeRtt { .. }) {
            self.save_window();
            self.state = State::ProbeRtt { until: None, round_done: false };
            self.probe_rtt_range = Some((sample.total_delivered, 0));
            self.counters.rtt_probes += 1;
        }
        let State::ProbeRtt { until, round_done } = self.state else { return };
        if let Some((_, to)) = &mut self.probe_rtt_range {
            *to = sample.total_delivered + sample.in_flight;
        }
        match until {
            None if sample.in_flight as f64 <= self.min_window() => {
                let until = Some(now + self.constants.params.probe_rtt);
                self.bandwidth.next = sample.total_delivered;
                self.state = State::ProbeRtt { until, round_done: false };
            }
            Some(until) if (round_done || begins) && now > until => {
                self.rtprop.at = now;
                self.restore_window();
                if self.full_pipe.filled {
                    self.enter_probe_bw(now);
                } else {
                    self.state = State::Startup;
                }
            }
            Some(_) => self.state = State::ProbeRtt { until, round_done: round_done || begins },
            None => {}
        }
    }

    /// Saves the window before recovery or ProbeRTT (BBRSaveCwnd).
    fn save_window(&mut self) {
        let whole = matches!(self.recovery.phase, Phase::Open | Phase::Cwr)
            && !matches!(self.state, State::ProbeRtt { .. });
        let before = if whole { 0.0 } else { self.recovery.prior };
        self.recovery.prior = self.cwnd.max(before);
    }

    /// Restores the saved window, if it is larger (BBRRestoreCwnd).
    fn restore_window(&mut self) {
        self.cwnd = self.cwnd.max(self.recovery.prior).min(self.constants.max_window);
    }

    /// Adapts the window to losses (BBRModulateCwndForRecovery, § 4.2.3.4).
    fn modulate(&mut self, phase: Phase, sample: &RateSample, lost: u64, begins: bool) {
        let repairs = |phase| matches!(phase, Phase::Recovery | Phase::Loss);
        let stays = (sample.in_flight + sample.newly_delivered) as f64;
        let before = self.recovery.phase;
        if phase == Phase::Recovery && before != Phase::Recovery {
            self.save_window();
            self.recovery.conserves = true;
            self.bandwidth.next = sample.total_delivered;
            self.cwnd = stays.max(self.constants.mss);
        } else if !repairs(phase) && repairs(before) {
            self.recovery.conserves = false;
            self.restore_window();
        } else if phase == Phase::Recovery && begins {
            self.recovery.conserves = false;
        }
        self.recovery.phase = phase;
        if lost > 0 && repairs(phase) {
            self.cwnd = (self.cwnd - lost as f64).max(self.constants.mss);
        }
        if self.recovery.conserves {
            self.cwnd = self.cwnd.max(stays);
        }
    }

    /// Sets the window after an ACK (BBRSetCwnd, § 4.2.3.6).
    fn set_window(&mut self, phase: Phase, sample: &RateSample, lost: u64, begins: bool) {
        let params = &self.constants.params;
        let gain = match self.state {
            State::Startup | State::Drain => params.startup_gain,
            State::ProbeBw { .. } => params.cwnd_gain,
            State::ProbeRtt { .. } => 1.0,
        };
        let extra_acked = if self.full_pipe.filled {
            self.extra_acked.largest(self.bandwidth.best())
        } else {
            0.0
        };
        let target = self.inflight(gain) + params.surplus_gain * extra_acked;
        self.modulate(phase, sample, lost, begins);
        if !self.recovery.conserves {
            let grown = self.cwnd + sample.newly_delivered as f64;
            if self.full_pipe.filled {
                self.cwnd = grown.min(target);
            } else if self.cwnd < target
                || (sample.total_delivered as f64) < self.constants.initial_window
            {
                self.cwnd = grown;
            }
            self.cwnd = self.cwnd.max(self.min_window());
        }
        if matches!(self.state, State::ProbeRtt { .. }) {
            self.cwnd = self.cwnd.min(self.min_window());
        }
        self.cwnd = self
            .cwnd
            .clamp(self.constants.mss.min(self.constants.max_window), self.constants.max_window);
    }

    /// Sets the pacing rate (BBRSetPacingRate, § 4.2.1); it does not fall before the pipe is full.
    fn set_pacing_rate(&mut self, gain: f64) {
        let rate = gain * self.bandwidth.best() * (1.0 - self.constants.params.pacing_margin);
        if rate > 0.0 && (self.full_pipe.filled || self.pacing_rate.is_none_or(|now| rate > now)) {
            self.pacing_rate = Some(rate);
        }
    }
}

impl Controller for Bbr {
    fn on_rate(&mut self, sample: &RateSample) {
        self.pending_sample = Some(*sample);
    }

    fn is_rate_based(&self) -> bool {
        true
    }

    /// Sets the initial pacing rate and least RTT at the first data, and notices a restart from
    /// idle.
    fn stamp(&mut self, data: &OutgoingData) -> CongestionHeader {
        if data.sent == 0 {
            return CongestionHeader::None;
        }
        if self.pacing_rate.is_none() {
            // BBRInitPacingRate, BBRInit: the startup gain times the first window in one RTT, or in
            // a millisecond without one.
            let rtt = data.rtts.srtt().unwrap_or(Duration::from_millis(1)).0.max(1) as f64;
            self.pacing_rate =
                Some(self.constants.params.startup_gain * self.constants.initial_window / rtt);
            self.rtprop = RtProp { min_rtt: data.rtts.min_rtt(), at: data.now };
            self.extra_acked.restart(data.now);
        }
        // BBRHandleRestartFromIdle (§ 4.3.4.4): this segment is all that is in flight.
        if (data.sent - data.delivered) as f64 <= self.constants.mss {
            self.idle = true;
            self.extra_acked.restart(data.now);
            if matches!(self.state, State::ProbeBw { .. }) {
                self.set_pacing_rate(1.0);
            }
        }
        CongestionHeader::None
    }

    fn on_ack(&mut self, path: &Path, ack: &AckSample) -> Request {
        let Some(sample) = self.pending_sample.take() else { return Request::Nothing };
        let (begins, limited) = self.take_bandwidth(&sample);
        self.extra_acked.take(path.now, &sample, begins, self.bandwidth.best(), self.cwnd);
        let before = sample.in_flight + sample.newly_delivered + ack.newly_lost;
        self.check_cycle(path.now, before as f64, ack.newly_lost > 0);
        if begins && !limited {
            self.check_full_pipe();
        }
        self.check_drain(path.now, sample.in_flight as f64);
        let expired = self.take_rtt(path.now, sample.rtt);
        self.check_probe_rtt(path.now, &sample, expired, begins);
        if sample.newly_delivered > 0 {
            self.idle = false;
        }
        self.set_pacing_rate(self.pacing_gain());
        self.set_window(path.phase, &sample, ack.newly_lost, begins);
        Request::Nothing
    }

    fn on_signal(&mut self, _: &Path, signal: Signal) {
        match signal {
            // § 4.2.3.4: one segment, then growth by ACKs.
            Signal::Timeout { .. } => {
                self.save_window();
                self.recovery.phase = Phase::Loss;
                self.recovery.conserves = false;
                self.cwnd = self.constants.mss.min(self.constants.max_window);
            }
            // The window follows losses ACK by ACK. Marks change nothing, and `stamp` notices a
            // restart from idle (§ 4.3.4.4).
            Signal::Reduce(_) | Signal::Idle { .. } | Signal::Resume { .. } => {}
        }
    }

    /// Restarts the full-pipe detection if it has not ended, as the pipe may be less full than the
    /// losses suggested (Linux, `bbr_undo_cwnd`), and the measurement of ACK aggregation. The
    /// window itself is restored as recovery ends.
    fn undo(&mut self, _: Self, now: Time, _: bool) {
        self.full_pipe = FullPipe { bandwidth: 0.0, rounds: 0, ..self.full_pipe };
        self.extra_acked.restart(now);
    }

    fn add_in_flight(&mut self, bytes: u64) {
        self.cwnd = (self.cwnd + bytes as f64).min(self.constants.max_window);
    }

    fn window(&self) -> Window {
        // BBR has no slow-start threshold.
        Window { cwnd: self.cwnd as u64, ssthresh: u64::MAX }
    }

    fn pacing(&self) -> Option<Rate> {
        self.pacing_rate.map(|pace| Rate(((8e9 * pace) as u64).max(1)))
    }

    fn min_rtt(&self) -> Option<Duration> {
        self.rtprop.min_rtt
    }

    fn count(&self, each: &mut dyn FnMut(&'static str, u64)) {
        each("bandwidth_probes", self.counters.probes);
        each("rtt_probes", self.counters.rtt_probes);
    }
}

/// Phases of the gain cycle: one above 1, one below, and six at 1 (BBRGainCycleLen, § 4.3.4.1).
const PHASES: usize = 8;
/// Growth of BBR.BtlBw per round trip below which the pipe may be full (§ 4.3.2.2).
const FULL_GROWTH: f64 = 1.25;
/// Round trips with less growth after which the pipe is full (§ 4.3.2.2).
const FULL_ROUNDS: u32 = 3;
/// Pacing rate of 1.2 Mbit/s, in bytes per nanosecond, below which the quantum is one segment
/// (§ 4.2.2).
const LOW_PACING_RATE: f64 = 1.2e6 / 8e9;
/// Pacing rate of 24 Mbit/s, in bytes per nanosecond, below which the quantum is two segments.
const HIGH_PACING_RATE: f64 = 24e6 / 8e9;
/// Largest quantum, bytes (§ 4.2.2).
const MAX_QUANTUM: f64 = 64.0 * 1024.0;
