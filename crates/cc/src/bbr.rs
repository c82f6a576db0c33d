//! BBR, version 1: sends at the bandwidth that it found, and keeps at most twice as much in flight as that carries in a round trip without queues.
//!
//! draft-cardwell-iccrg-bbr-congestion-control-00: sections, and names in capitals or after "BBR.", are its. Cardwell et al., *BBR:
//! congestion-based congestion control*, ACM Queue 14 (5), 2016. Bandwidths are those of [`RateSample`].

mod params;
mod surplus;

use std::collections::VecDeque;
use std::sync::Arc;

use cwnd_packet::Header;
use cwnd_quantity::{Duration, Rate, Time};
use cwnd_schema::RegistryEntry;

use crate::controller::{
    AckSample, Controller, Departing, Path, Phase, RateSample, Request, Signal, Start, Window,
};
use crate::dynamic::DynController;
use crate::info::ControllerInfo;
pub use params::Params;
use surplus::Surplus;

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

/// The controller. Windows are bytes, bandwidths bytes a nanosecond, as floating point.
#[derive(Clone, Debug)]
pub struct Bbr {
    cwnd: f64,
    state: State,
    bandwidth: Bandwidth,
    rtprop: RtProp,
    filled: Filled,
    surplus: Surplus,
    recovery: Recovery,
    /// BBR.idle_restart.
    idle: bool,
    /// What was delivered when a probe for the least RTT began, and up to what the segments are its doing that go.
    slowed: Option<(u64, u64)>,
    /// BBR.pacing_rate, bytes a nanosecond.
    pace: Option<f64>,
    /// What the ACK told that it hears of next.
    heard: Option<RateSample>,
    counters: Counters,
    law: Arc<Law>,
}

/// What stays the same.
#[derive(Debug)]
struct Law {
    params: Params,
    mss: f64,
    initial_window: f64,
    max_window: f64,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum State {
    Startup,
    Drain,
    /// The phase of the cycle, and when it began.
    ProbeBw {
        phase: usize,
        since: Time,
    },
    /// Once no more than the least window is in flight: when it may end, and whether a round trip has passed.
    ProbeRtt {
        until: Option<Time>,
        round_done: bool,
    },
}

/// BBR.BtlBw, and the round trips that it counts by.
#[derive(Clone, Debug, Default)]
struct Bandwidth {
    /// By round trip, only what nothing newer exceeds.
    kept: VecDeque<(u64, f64)>,
    round: u64,
    /// BBR.next_round_delivered.
    next: u64,
}

/// BBR.RTprop and BBR.rtprop_stamp.
#[derive(Clone, Copy, Debug, Default)]
struct RtProp {
    least: Option<Duration>,
    at: Time,
}

/// BBR.full_bw, BBR.full_bw_count and BBR.filled_pipe.
#[derive(Clone, Copy, Debug, Default)]
struct Filled {
    bandwidth: f64,
    rounds: u32,
    yes: bool,
}

/// What the window does about losses (§ 4.2.3.4).
#[derive(Clone, Copy, Debug, Default)]
struct Recovery {
    /// What the transport was doing at the last ACK.
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

    /// BBRUpdateRound: whether a round trip begins with this ACK.
    fn begins_round(&mut self, sample: &RateSample) -> bool {
        let begins = sample.prior.is_some_and(|prior| prior >= self.next);
        if begins {
            self.next = sample.total;
            self.round += 1;
        }
        begins
    }

    /// BBRUpdateBtlBw; samples that the application limited count only if they are larger.
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
    /// A controller at the start of its connection.
    #[must_use]
    pub fn new(params: &Params, start: &Start) -> Self {
        let cwnd = start.initial_cwnd() as f64;
        Self {
            cwnd,
            state: State::Startup,
            bandwidth: Bandwidth::default(),
            rtprop: RtProp::default(),
            filled: Filled::default(),
            surplus: Surplus::default(),
            recovery: Recovery::default(),
            idle: false,
            slowed: None,
            pace: None,
            heard: None,
            counters: Counters::default(),
            law: Arc::new(Law {
                params: params.clone(),
                mss: f64::from(start.mss),
                initial_window: cwnd,
                max_window: start.max_window() as f64,
            }),
        }
    }

    /// BBRMinPipeCwnd.
    fn least(&self) -> f64 {
        (f64::from(self.law.params.least_window) * self.law.mss).min(self.law.max_window)
    }

    /// BBR.pacing_gain.
    fn gain(&self) -> f64 {
        let params = &self.law.params;
        match self.state {
            State::Startup => params.startup_gain,
            State::Drain => 1.0 / params.startup_gain,
            State::ProbeBw { phase: 0, .. } => params.probe_gain,
            State::ProbeBw { phase: 1, .. } => params.drain_gain,
            State::ProbeBw { .. } | State::ProbeRtt { .. } => 1.0,
        }
    }

    /// BBRSetSendQuantum (§ 4.2.2). Segments go one by one here; what is in flight has room for it all the same.
    fn quantum(&self) -> f64 {
        let mss = self.law.mss;
        match self.pace.unwrap_or(0.0) {
            pace if pace < SLOW => mss,
            pace if pace < FAST => 2.0 * mss,
            pace => (1e6 * pace).min(LARGEST_QUANTUM),
        }
    }

    /// BBRInflight (§ 4.2.3.2): so many bandwidth-delay products, and three quanta.
    fn inflight(&self, gain: f64) -> f64 {
        self.rtprop.least.map_or(self.law.initial_window, |least| {
            gain * self.bandwidth.best() * least.0 as f64 + 3.0 * self.quantum()
        })
    }

    /// The bandwidth that an ACK tells. What a probe for the least RTT slowed is limited as by the application (§ 4.3.5).
    fn take_bandwidth(&mut self, sample: &RateSample) -> (bool, bool) {
        let begins = self.bandwidth.begins_round(sample);
        let prior = sample.prior.unwrap_or(sample.total);
        let slowed = self.slowed.is_some_and(|(from, to)| (from..=to).contains(&prior));
        let limited = sample.app_limited || slowed;
        if let Some(took) = sample.interval {
            let rate = (sample.total - prior) as f64 / took.0 as f64;
            self.bandwidth.take(rate, limited, self.law.params.bandwidth_rounds);
        }
        (begins, limited)
    }

    /// BBREnterProbeBW: any phase but the one that takes a queue away. The draft draws it; here the time stands for a draw.
    fn enter_probe_bw(&mut self, now: Time) {
        let drawn = (now.0 / 1000 % (PHASES as u64 - 1)) as usize;
        let phase = if drawn == 0 { 0 } else { drawn + 1 };
        self.state = State::ProbeBw { phase, since: now };
        self.counters.probes += u64::from(phase == 0);
    }

    /// BBRCheckCyclePhase (§ 4.3.4.3); `before` is what was in flight before the ACK.
    fn check_cycle(&mut self, now: Time, before: f64, lost: bool) {
        let State::ProbeBw { phase, since } = self.state else { return };
        let full = self.rtprop.least.is_some_and(|least| now.since(since) > least);
        let next = match phase {
            0 => full && (lost || before >= self.inflight(self.law.params.probe_gain)),
            1 => full || before <= self.inflight(1.0),
            _ => full,
        };
        if next {
            let phase = (phase + 1) % PHASES;
            self.state = State::ProbeBw { phase, since: now };
            self.counters.probes += u64::from(phase == 0);
        }
    }

    /// BBRCheckFullPipe (§ 4.3.2.2), once a round trip.
    fn check_full_pipe(&mut self) {
        let best = self.bandwidth.best();
        let filled = &mut self.filled;
        if filled.yes {
            return;
        }
        if best >= filled.bandwidth * FULL_GROWTH {
            (filled.bandwidth, filled.rounds) = (best, 0);
            return;
        }
        filled.rounds += 1;
        filled.yes = filled.rounds >= FULL_ROUNDS;
    }

    /// BBRCheckDrain (§ 4.3.3).
    fn check_drain(&mut self, now: Time, in_flight: f64) {
        if self.state == State::Startup && self.filled.yes {
            self.state = State::Drain;
        }
        if self.state == State::Drain && in_flight <= self.inflight(1.0) {
            self.enter_probe_bw(now);
        }
    }

    /// BBRUpdateRTprop (§ 4.1.2.3); whether the least RTT is too old.
    fn take_rtt(&mut self, now: Time, rtt: Option<Duration>) -> bool {
        let params = &self.law.params;
        let expired =
            self.rtprop.least.is_some() && now.since(self.rtprop.at) > params.min_rtt_window;
        let lower = |rtt: Duration| match self.rtprop.least {
            Some(least) => rtt < least || rtt == least && params.equal_refreshes,
            None => true,
        };
        if let Some(rtt) = rtt.filter(|&rtt| expired || lower(rtt)) {
            self.rtprop = RtProp { least: Some(rtt), at: now };
        }
        expired
    }

    /// BBRCheckProbeRTT (§ 4.3.5).
    fn check_probe_rtt(&mut self, now: Time, sample: &RateSample, expired: bool, begins: bool) {
        if expired && !self.idle && !matches!(self.state, State::ProbeRtt { .. }) {
            self.save_window();
            self.state = State::ProbeRtt { until: None, round_done: false };
            self.slowed = Some((sample.total, 0));
            self.counters.rtt_probes += 1;
        }
        let State::ProbeRtt { until, round_done } = self.state else { return };
        if let Some((_, to)) = &mut self.slowed {
            *to = sample.total + sample.in_flight;
        }
        match until {
            None if sample.in_flight as f64 <= self.least() => {
                let until = Some(now + self.law.params.probe_rtt);
                self.bandwidth.next = sample.total;
                self.state = State::ProbeRtt { until, round_done: false };
            }
            Some(until) if (round_done || begins) && now > until => {
                self.rtprop.at = now;
                self.restore_window();
                if self.filled.yes {
                    self.enter_probe_bw(now);
                } else {
                    self.state = State::Startup;
                }
            }
            Some(_) => self.state = State::ProbeRtt { until, round_done: round_done || begins },
            None => {}
        }
    }

    /// BBRSaveCwnd.
    fn save_window(&mut self) {
        let whole = matches!(self.recovery.phase, Phase::Open | Phase::Cwr)
            && !matches!(self.state, State::ProbeRtt { .. });
        let before = if whole { 0.0 } else { self.recovery.prior };
        self.recovery.prior = self.cwnd.max(before);
    }

    /// BBRRestoreCwnd.
    fn restore_window(&mut self) {
        self.cwnd = self.cwnd.max(self.recovery.prior).min(self.law.max_window);
    }

    /// BBRModulateCwndForRecovery (§ 4.2.3.4).
    fn modulate(&mut self, phase: Phase, sample: &RateSample, lost: u64, begins: bool) {
        let repairs = |phase| matches!(phase, Phase::Recovery | Phase::Loss);
        let stays = (sample.in_flight + sample.newly) as f64;
        let before = self.recovery.phase;
        if phase == Phase::Recovery && before != Phase::Recovery {
            self.save_window();
            self.recovery.conserves = true;
            self.bandwidth.next = sample.total;
            self.cwnd = stays.max(self.law.mss);
        } else if !repairs(phase) && repairs(before) {
            self.recovery.conserves = false;
            self.restore_window();
        } else if phase == Phase::Recovery && begins {
            self.recovery.conserves = false;
        }
        self.recovery.phase = phase;
        if lost > 0 && repairs(phase) {
            self.cwnd = (self.cwnd - lost as f64).max(self.law.mss);
        }
        if self.recovery.conserves {
            self.cwnd = self.cwnd.max(stays);
        }
    }

    /// BBRSetCwnd (§ 4.2.3.6).
    fn set_window(&mut self, phase: Phase, sample: &RateSample, lost: u64, begins: bool) {
        let params = &self.law.params;
        let gain = match self.state {
            State::Startup | State::Drain => params.startup_gain,
            State::ProbeBw { .. } => params.cwnd_gain,
            State::ProbeRtt { .. } => 1.0,
        };
        let surplus = if self.filled.yes { self.surplus.most(self.bandwidth.best()) } else { 0.0 };
        let target = self.inflight(gain) + params.surplus_gain * surplus;
        self.modulate(phase, sample, lost, begins);
        if !self.recovery.conserves {
            let grown = self.cwnd + sample.newly as f64;
            if self.filled.yes {
                self.cwnd = grown.min(target);
            } else if self.cwnd < target || (sample.total as f64) < self.law.initial_window {
                self.cwnd = grown;
            }
            self.cwnd = self.cwnd.max(self.least());
        }
        if matches!(self.state, State::ProbeRtt { .. }) {
            self.cwnd = self.cwnd.min(self.least());
        }
        self.cwnd = self.cwnd.clamp(self.law.mss.min(self.law.max_window), self.law.max_window);
    }

    /// BBRSetPacingRate (§ 4.2.1): it does not fall before the pipe is full.
    fn set_pace(&mut self, gain: f64) {
        let rate = gain * self.bandwidth.best() * (1.0 - self.law.params.pacing_margin);
        if rate > 0.0 && (self.filled.yes || self.pace.is_none_or(|now| rate > now)) {
            self.pace = Some(rate);
        }
    }
}

impl Controller for Bbr {
    fn on_rate(&mut self, sample: &RateSample) {
        self.heard = Some(*sample);
    }

    fn by_rate(&self) -> bool {
        true
    }

    /// Data goes.
    fn stamp(&mut self, data: &Departing) -> Header {
        if data.sent == 0 {
            return Header::None;
        }
        if self.pace.is_none() {
            // BBRInitPacingRate, BBRInit: the first window in an RTT, or in a millisecond.
            let rtt = data.rtts.srtt().unwrap_or(Duration::from_millis(1)).0.max(1) as f64;
            self.pace = Some(self.law.params.startup_gain * self.law.initial_window / rtt);
            self.rtprop = RtProp { least: data.rtts.min_rtt(), at: data.now };
            self.surplus.restart(data.now);
        }
        // BBRHandleRestartFromIdle (§ 4.3.4.4): what goes is all that is in flight.
        if (data.sent - data.delivered) as f64 <= self.law.mss {
            self.idle = true;
            self.surplus.restart(data.now);
            if matches!(self.state, State::ProbeBw { .. }) {
                self.set_pace(1.0);
            }
        }
        Header::None
    }

    fn on_ack(&mut self, path: &Path, ack: &AckSample) -> Request {
        let Some(sample) = self.heard.take() else { return Request::Nothing };
        let (begins, limited) = self.take_bandwidth(&sample);
        self.surplus.take(path.now, &sample, begins, self.bandwidth.best(), self.cwnd);
        let before = sample.in_flight + sample.newly + ack.newly_lost;
        self.check_cycle(path.now, before as f64, ack.newly_lost > 0);
        if begins && !limited {
            self.check_full_pipe();
        }
        self.check_drain(path.now, sample.in_flight as f64);
        let expired = self.take_rtt(path.now, sample.rtt);
        self.check_probe_rtt(path.now, &sample, expired, begins);
        if sample.newly > 0 {
            self.idle = false;
        }
        self.set_pace(self.gain());
        self.set_window(path.phase, &sample, ack.newly_lost, begins);
        Request::Nothing
    }

    fn on_signal(&mut self, _: &Path, signal: Signal) {
        match signal {
            // § 4.2.3.4: a segment, and then as ACKs let the window grow.
            Signal::Timeout { .. } => {
                self.save_window();
                self.recovery.phase = Phase::Loss;
                self.recovery.conserves = false;
                self.cwnd = self.law.mss.min(self.law.max_window);
            }
            // The window follows the losses ACK by ACK. Marks and idle times change nothing (§ 4.3.4.4).
            Signal::Reduce(_) | Signal::Idle { .. } | Signal::Resume { .. } => {}
        }
    }

    /// The pipe may be less full than its losses said (Linux, `bbr_undo_cwnd`); the window comes
    /// back as the recovery ends.
    fn undo(&mut self, _: Self, now: Time, _: bool) {
        self.filled = Filled { bandwidth: 0.0, rounds: 0, ..self.filled };
        self.surplus.restart(now);
    }

    fn add_in_flight(&mut self, bytes: u64) {
        self.cwnd = (self.cwnd + bytes as f64).min(self.law.max_window);
    }

    fn window(&self) -> Window {
        // It has no threshold.
        Window { cwnd: self.cwnd as u64, ssthresh: u64::MAX }
    }

    fn pacing(&self) -> Option<Rate> {
        self.pace.map(|pace| Rate(((8e9 * pace) as u64).max(1)))
    }

    fn min_rtt(&self) -> Option<Duration> {
        self.rtprop.least
    }

    fn count(&self, each: &mut dyn FnMut(&'static str, u64)) {
        each("bandwidth_probes", self.counters.probes);
        each("rtt_probes", self.counters.rtt_probes);
    }
}

/// BBRGainCycleLen: more, less, and six times as much (§ 4.3.4.1).
const PHASES: usize = 8;
/// By how much BBR.BtlBw must grow in a round trip, and in how many it need not before the pipe is full (§ 4.3.2.2).
const FULL_GROWTH: f64 = 1.25;
const FULL_ROUNDS: u32 = 3;
/// Paces of 1.2 and 24 Mbit/s, in bytes a nanosecond, and the largest quantum, bytes (§ 4.2.2).
const SLOW: f64 = 1.2e6 / 8e9;
const FAST: f64 = 24e6 / 8e9;
const LARGEST_QUANTUM: f64 = 64.0 * 1024.0;
