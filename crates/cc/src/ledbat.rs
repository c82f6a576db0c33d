//! LEDBAT++ and LEDBAT: background traffic that keeps the delay it adds near a target and yields to
//! others.
//!
//! draft-irtf-iccrg-ledbat-plus-plus (sections are of its version -01), and RFC 6817 where the
//! draft builds on it.

use alloc::boxed::Box;
use alloc::collections::VecDeque;
use alloc::sync::Arc;

use cwnd_packet::{Ability, Contract, HasContract};
use cwnd_quantity::{Duration, Time};
use cwnd_schema::{Choice, PresetOf, Presets, RegistryEntry, Schema};

use crate::controller::{
    AckSample, Cause, Controller, GrowthPermission, Path, Phase, Request, Signal, Start, Window,
    WindowMut, min_ssthresh, restore_window,
};
use crate::dynamic::{ControllerInfo, DynController};

/// Response of the window to the delay.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Choice)]
pub enum Response {
    /// It grows by GAIN segments a round trip below the target, and above it shrinks by a part of
    /// itself (§ 4.3).
    #[name("multiplicative")]
    Multiplicative,
    /// It grows or shrinks by GAIN segments a round trip times the part of the target that is left
    /// or exceeded (RFC 6817 § 2.4.2).
    #[name("linear")]
    Linear,
}

/// Name and description in scenarios.
pub const ENTRY: RegistryEntry = RegistryEntry::new(
    "ledbat",
    "LEDBAT++ (also `ledbat++`): background traffic that keeps the delay it adds near a target \
     (draft-irtf-iccrg-ledbat-plus-plus).",
)
.alias(&["ledbat++"]);

/// LEDBAT++ and LEDBAT.
#[derive(Clone, Debug, PartialEq, Schema)]
#[schema(presets)]
pub struct Params {
    /// Queueing delay that it aims at.
    #[default(
        Duration::from_millis(60),
        "draft-irtf-iccrg-ledbat-plus-plus § 4.5: 60 ms; RFC 6817 § 2.5: 100 ms at most"
    )]
    #[bounds(above Duration::ZERO; "it would always be too late")]
    pub target: Duration,
    /// Response of the window to the delay.
    #[default(Response::Multiplicative, "draft-irtf-iccrg-ledbat-plus-plus § 4.3")]
    pub response: Response,
    /// N of GAIN = 1 / min(N, ⌈2 · target / base delay⌉), by which it grows, also in slow start;
    /// none is GAIN = 1.
    #[default(Some(16), "draft-irtf-iccrg-ledbat-plus-plus § 4.2: 16; RFC 6817 § 2.5: GAIN is 1")]
    #[bounds(from 1; "it divides")]
    pub slowest: Option<u32>,
    /// Constant of the multiplicative decrease: a window W loses Constant · W · (delay / target −
    /// 1) in a round trip.
    #[default(1.0, "draft-irtf-iccrg-ledbat-plus-plus § 4.3: 1")]
    #[bounds(above 0.0; "it would never give way")]
    pub constant: f64,
    /// Largest part of the window that a round trip may take off.
    #[default(0.5, "draft-irtf-iccrg-ledbat-plus-plus § 4.3: W / 2")]
    #[bounds(above 0.0, below 1.0; "it is a part of the window, and some must stay")]
    pub most_decrease: f64,
    /// Part of the target at which the first slow start ends; none is no slow start.
    #[default(Some(0.75), "draft-irtf-iccrg-ledbat-plus-plus § 4.1: 3/4")]
    #[bounds(above 0.0; "it would end at once")]
    pub slow_start_exit: Option<f64>,
    /// Time from the end of a slowdown to the next, in durations of the one that ended; none is no
    /// slowdowns.
    #[default(
        Some(9),
        "draft-irtf-iccrg-ledbat-plus-plus § 4.4: 9, so that they cost a tenth at most"
    )]
    #[bounds(from 1; "it would do nothing else")]
    pub slowdown_interval: Option<u32>,
    /// Round trips for which a slowdown keeps the least window; the first slowdown begins as many
    /// after slow start.
    #[default(2, "draft-irtf-iccrg-ledbat-plus-plus § 4.4: 2")]
    #[bounds(from 1, up_to 1000; "it counts round trips")]
    pub slowdown_rounds: u32,
    /// Least window, segments; also the upper bound of the first window.
    #[default(
        2,
        "draft-irtf-iccrg-ledbat-plus-plus § 4.1, 4.4: 2; RFC 6817 § 2.5: INIT_CWND and MIN_CWND \
        are 2"
    )]
    #[bounds(from 2; "ACKs of a single segment may be delayed")]
    pub least_window: u32,
    /// Minutes with samples for which the base delay is remembered.
    #[default(10, "RFC 6817 § 2.5: BASE_HISTORY is 10")]
    #[bounds(from 1, up_to 1000; "it counts minutes")]
    pub base_history: u32,
    /// Number of newest samples whose least is the current delay.
    #[default(4, "RFC 6817 § 2.5: CURRENT_FILTER is 4")]
    #[bounds(from 1, up_to 1000; "it counts samples")]
    pub current_filter: u32,
    /// Segments by which the window may exceed the data in flight; none is no limit.
    #[default(None, "RFC 6817 § 2.5: ALLOWED_INCREASE is 1; none in the draft of LEDBAT++")]
    #[bounds(from 1; "it could not grow")]
    pub allowed_increase: Option<u32>,
    /// Part of the window that stays after a loss or an ECN-echo.
    #[default(0.5, "RFC 6817 § 2.4.2: halved, once a round trip; RFC 3168 § 6.1.2")]
    #[bounds(above 0.0, below 1.0; "it is the part of the window that stays")]
    pub loss_beta: f64,
}

impl Presets for Params {
    const PRESETS: &'static [PresetOf<Self>] = &[
        PresetOf::new("ledbat++", "draft-irtf-iccrg-ledbat-plus-plus; the default.", Self::default),
        PresetOf::new(
            "rfc6817",
            "RFC 6817, without slow start. It measures one way: `endpoint = { rtt_from = \
             \"one-way\", echo = \"delay\" }`.",
            || Self {
                target: Duration::from_millis(100),
                response: Response::Linear,
                slowest: None,
                slow_start_exit: None,
                slowdown_interval: None,
                allowed_increase: Some(1),
                ..Self::default()
            },
        ),
    ];
}

impl ControllerInfo for Params {
    fn build(&self, start: &Start) -> Box<dyn DynController> {
        Box::new(Ledbat::new(self, start))
    }

    fn lowers_on_acks(&self) -> bool {
        true
    }
}

impl HasContract for Params {
    fn contract(&self) -> Contract {
        Contract::new()
            .wants(Ability::Timestamps, "the delay of one packet in each window is all it hears of")
    }
}

/// LEDBAT's state for one connection. Windows are bytes in floating point, so that fractions of a
/// byte add up.
#[derive(Clone, Debug)]
pub struct Ledbat {
    cwnd: f64,
    ssthresh: u64,
    stage: Stage,
    /// Earliest start of the next slowdown; `None` if none is scheduled.
    next_slowdown: Option<Time>,
    delays: Delays,
    slowdowns: u64,
    constants: Arc<Constants>,
}

/// Constants of a connection.
#[derive(Debug)]
struct Constants {
    params: Params,
    max_window: f64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    /// The first slow start, which delay ends.
    FirstSlowStart,
    /// Slow start up to the threshold, whatever the delay: the rest of a slowdown that began at
    /// that time, or the growth after a timeout or an idle time.
    Regrowth { slowdown: Option<Time> },
    /// The window follows the delay.
    Avoidance,
    /// A slowdown keeps the least window; `threshold` is the window to return to, bytes.
    Slowdown { since: Time, until: Time, threshold: u64 },
}

/// Base and current delay (RFC 6817 § 2.4.2).
#[derive(Clone, Debug, Default)]
struct Delays {
    /// Least delay of each minute that had a sample, the newest last.
    minutes: VecDeque<Duration>,
    /// Number of the newest minute.
    minute: u64,
    newest: VecDeque<Duration>,
}

impl Delays {
    fn take(&mut self, now: Time, delay: Duration, params: &Params) {
        let minute = now.0 / Duration::from_secs(60).0;
        match self.minutes.back_mut() {
            Some(min) if minute == self.minute => *min = delay.min(*min),
            _ => self.minutes.push_back(delay),
        }
        self.minute = minute;
        self.newest.push_back(delay);
        for (kept, max) in
            [(&mut self.minutes, params.base_history), (&mut self.newest, params.current_filter)]
        {
            if kept.len() > max as usize {
                kept.pop_front();
            }
        }
    }

    fn base(&self) -> Option<Duration> {
        self.minutes.iter().min().copied()
    }

    /// Returns the queueing delay, zero before the first measurement.
    fn queueing(&self) -> Duration {
        match (self.newest.iter().min(), self.base()) {
            (Some(current), Some(base)) => current.saturating_sub(base),
            _ => Duration::ZERO,
        }
    }
}

impl Ledbat {
    /// Creates the controller of a new connection.
    #[must_use]
    pub fn new(params: &Params, start: &Start) -> Self {
        let min_window = u64::from(params.least_window) * u64::from(start.mss);
        let slow_start = params.slow_start_exit.is_some();
        Self {
            cwnd: start.initial_cwnd().min(min_window) as f64,
            ssthresh: start.initial_ssthresh(),
            stage: if slow_start { Stage::FirstSlowStart } else { Stage::Avoidance },
            next_slowdown: None,
            delays: Delays::default(),
            slowdowns: 0,
            constants: Arc::new(Constants {
                params: params.clone(),
                max_window: start.max_window() as f64,
            }),
        }
    }

    /// Returns the window in whole bytes.
    fn bytes(&self) -> u64 {
        self.cwnd as u64
    }

    fn min_window(&self, path: &Path) -> f64 {
        f64::from(self.constants.params.least_window) * f64::from(path.mss)
    }

    /// Returns GAIN (§ 4.2).
    fn gain(&self) -> f64 {
        let params = &self.constants.params;
        let Some(slowest) = params.slowest else { return 1.0 };
        let base = self.delays.base().unwrap_or(Duration::ZERO).0.max(1);
        let divisor = params.target.0.saturating_mul(2).div_ceil(base).min(u64::from(slowest));
        1.0 / divisor.max(1) as f64
    }

    /// Adds the bytes acknowledged times GAIN, up to the threshold (§ 4.1). Returns `true` if the
    /// threshold is reached to within a byte.
    fn slow_start(&mut self, acked: u64) -> bool {
        let grown = self.cwnd + self.gain() * acked as f64;
        let threshold = self.ssthresh as f64;
        let reached = threshold - grown < 1.0;
        self.cwnd = if reached { threshold } else { grown }.min(self.constants.max_window);
        reached
    }

    /// Ends slow start and schedules the next slowdown (§ 4.4): `slowdown_interval` times the
    /// duration of the slowdown that ends, if one does. Otherwise one that is scheduled stays, or
    /// the next comes after `slowdown_rounds`.
    fn enter_avoidance(&mut self, path: &Path, slowdown: Option<Time>) {
        self.stage = Stage::Avoidance;
        let params = &self.constants.params;
        self.next_slowdown =
            params.slowdown_interval.map(|interval| match (slowdown, self.next_slowdown) {
                (Some(since), _) => {
                    path.now + path.now.since(since).saturating_mul(interval.into())
                }
                (None, Some(next)) => next,
                (None, None) => path.now + self.rounds(path),
            });
    }

    fn rounds(&self, path: &Path) -> Duration {
        let srtt = path.srtt.unwrap_or(Duration::ZERO);
        srtt.saturating_mul(self.constants.params.slowdown_rounds.into())
    }

    /// Starts a slowdown (§ 4.4); `threshold` keeps the window.
    fn slow_down(&mut self, path: &Path) {
        let threshold = self.bytes().max(min_ssthresh(path.mss));
        self.stage =
            Stage::Slowdown { since: path.now, until: path.now + self.rounds(path), threshold };
        self.cwnd = self.cwnd.min(self.min_window(path));
        // Recovery from losses of earlier data must not send more than the least window either.
        self.ssthresh = self.min_window(path) as u64;
        self.next_slowdown = None;
        self.slowdowns += 1;
    }

    /// Moves the window by the delay, for the bytes acknowledged.
    fn adjust_window(&mut self, path: &Path, ack: &AckSample) {
        let may_grow = ack.grow == GrowthPermission::Yes;
        let may_shrink = path.phase == Phase::Open;
        let params = &self.constants.params;
        let mss = f64::from(path.mss);
        let target = params.target.0 as f64;
        let waited = self.delays.queueing().0 as f64;
        let growth = self.gain() * mss / self.cwnd;
        // For each byte acknowledged: a window of bytes is a round trip.
        let change = match params.response {
            // RFC 6817 § 2.4.2.
            Response::Linear => growth * (target - waited) / target,
            Response::Multiplicative if waited <= target => growth,
            Response::Multiplicative => {
                (growth - params.constant * (waited / target - 1.0)).max(-params.most_decrease)
            }
        };
        if !(if change > 0.0 { may_grow } else { may_shrink }) {
            return;
        }
        let mut changed = self.cwnd + change * ack.acked_bytes as f64;
        if let Some(more) = params.allowed_increase {
            changed = changed.min(path.flight_size as f64 + f64::from(more) * mss);
        }
        let min_window = self.min_window(path);
        // A window that a timeout left is raised to the least only where it may grow.
        let floor = if may_grow { min_window } else { min_window.min(self.cwnd) };
        self.cwnd = changed.max(floor).min(self.constants.max_window);
    }

    /// Returns the window in bytes that a loss leaves of `of`, at least two segments.
    fn part(&self, path: &Path, of: f64) -> u64 {
        ((self.constants.params.loss_beta * of) as u64).max(min_ssthresh(path.mss))
    }

    fn reduce(&mut self, path: &Path) {
        // The loss is of earlier data, and the window is already the least: only the threshold is
        // reduced.
        if let Stage::Slowdown { threshold, since, until } = self.stage {
            let threshold = self.part(path, threshold as f64);
            self.stage = Stage::Slowdown { threshold, since, until };
            return;
        }
        self.ssthresh = self.part(path, self.cwnd);
        // A window that is already below two segments must not be raised to them.
        self.cwnd = self.cwnd.min(self.ssthresh as f64);
        let slowdown = match self.stage {
            Stage::Regrowth { slowdown } => slowdown,
            _ => None,
        };
        self.enter_avoidance(path, slowdown);
    }

    /// Regrows the window after a timeout or an idle time up to the threshold, if slow start is
    /// configured.
    fn regrow(&mut self) {
        if let Stage::Slowdown { threshold, .. } = self.stage {
            self.ssthresh = threshold;
        }
        let slow_start = self.constants.params.slow_start_exit.is_some();
        self.stage = if slow_start { Stage::Regrowth { slowdown: None } } else { Stage::Avoidance };
    }
}

impl Controller for Ledbat {
    fn on_ack(&mut self, path: &Path, ack: &AckSample) -> Request {
        if let Some(delay) = ack.rtt {
            self.delays.take(path.now, delay, &self.constants.params);
        }
        if ack.acked_bytes == 0 {
            return Request::Nothing;
        }
        if self.stage == Stage::FirstSlowStart {
            let exit = self.constants.params.slow_start_exit.unwrap_or(0.0);
            let late =
                self.delays.queueing().0 as f64 > exit * self.constants.params.target.0 as f64;
            if late || self.bytes() >= self.ssthresh {
                self.ssthresh = self.ssthresh.min(self.bytes().max(min_ssthresh(path.mss)));
                self.enter_avoidance(path, None);
            }
        }
        let open = path.phase == Phase::Open;
        match self.stage {
            Stage::Slowdown { since, until, threshold } if path.now >= until => {
                self.ssthresh = threshold;
                self.stage = Stage::Regrowth { slowdown: Some(since) };
            }
            Stage::Avoidance if open && self.next_slowdown.is_some_and(|next| path.now >= next) => {
                self.slow_down(path);
            }
            _ => {}
        }
        match self.stage {
            Stage::Slowdown { .. } => {}
            Stage::Avoidance => self.adjust_window(path, ack),
            Stage::FirstSlowStart | Stage::Regrowth { .. } if ack.grow != GrowthPermission::Yes => {
            }
            Stage::FirstSlowStart => {
                if self.slow_start(ack.acked_bytes) {
                    self.enter_avoidance(path, None);
                }
            }
            Stage::Regrowth { slowdown } => {
                if self.slow_start(ack.acked_bytes) {
                    self.enter_avoidance(path, slowdown);
                }
            }
        }
        Request::Nothing
    }

    fn on_signal(&mut self, path: &Path, signal: Signal) {
        match signal {
            Signal::Reduce(Cause::Delay | Cause::Load) => {}
            Signal::Reduce(_) => self.reduce(path),
            Signal::Timeout { reduces, .. } => {
                let before = match self.stage {
                    Stage::Slowdown { threshold, .. } => threshold as f64,
                    _ => self.cwnd,
                };
                self.regrow();
                // A segment that was already retransmitted keeps the threshold (RFC 5681 § 3.1).
                if reduces {
                    self.ssthresh = self.part(path, before);
                }
                // RFC 6817 § 2.4.2: one segment.
                self.cwnd = f64::from(path.mss).min(self.constants.max_window);
            }
            Signal::Resume { .. } => {}
            // RFC 5681 § 4.1: the restart window is min(IW, cwnd).
            Signal::Idle { .. } => {
                self.cwnd = self.cwnd.min(self.min_window(path));
                // The first slow start continues.
                if self.stage != Stage::FirstSlowStart {
                    self.regrow();
                }
            }
        }
    }

    /// Restores also the stage and the next slowdown: the reduction may have ended slow start.
    fn undo(&mut self, mut before: Self, _: Time, _: bool) {
        restore_window(self, &mut before);
        (self.stage, self.next_slowdown) = (before.stage, before.next_slowdown);
    }

    fn window_mut(&mut self) -> Option<WindowMut<'_>> {
        let (cwnd, ssthresh) = (&mut self.cwnd, &mut self.ssthresh);
        Some(WindowMut { cwnd, ssthresh, max_window: self.constants.max_window })
    }

    fn window(&self) -> Window {
        Window { cwnd: self.bytes(), ssthresh: self.ssthresh }
    }

    fn min_rtt(&self) -> Option<Duration> {
        self.delays.base()
    }

    fn count(&self, each: &mut dyn FnMut(&'static str, u64)) {
        each("slowdowns", self.slowdowns);
    }
}
