//! CUBIC's growth as kernels count it: the window is a whole number of segments, and one is added
//! after a computed number of acknowledgements. Integers where Linux has them, so that truncation
//! is the same.

use cwnd_quantity::{Duration, Time};

use super::params::{FastConvergencePoint, Growth, Params};
use crate::controller::{AckSample, Cause, Path, Phase};

/// Growth in congestion avoidance, counted in segments.
#[derive(Clone, Debug)]
pub(super) struct LinuxGrowth {
    stack: Stack,
    /// Acknowledgements towards the next segment of growth: segments, or ACKs in Linux 2.6.22 and
    /// 3.17 (`snd_cwnd_cnt`, ns-3's `m_cWndCnt`).
    cwnd_count: u64,
    /// Acknowledgements that add one segment to the window (`cnt`).
    needed: u64,
    /// Window before the last reduction, segments, lowered by fast convergence (`last_max_cwnd`).
    /// Zero before the first, and in Linux after a timeout.
    last_max: u64,
    /// Window just before the last reduction, segments, not lowered.
    prior: u64,
    epoch: Option<Epoch>,
    /// Least RTT since the last timeout; in ns-3 the least srtt (`delay_min`). Samples right after
    /// the start of a stage do not count.
    delay_min: Option<Duration>,
    /// Time of the last computation of the cubic function, in ticks, and the window that it was
    /// for; `None` in ns-3.
    computed: Option<(u64, u64)>,
    /// Segments per ACK, times 16, smoothed as in Linux 2.6.22 (`delayed_ack`).
    ack_ratio: u64,
    /// Tick of the kernel's clock, ns.
    tick_ns: u64,
    /// Acknowledged bytes that do not yet make a whole segment.
    remainder: u64,
    /// Bytes acknowledged by the last ACK of a recovery, which ns-3 counts on leaving it.
    ended_recovery: u64,
    /// Windows of acknowledgements in which Reno gains a segment, times 8 (`beta_scale`).
    reno_scale: u64,
    reno_scale_loss: u64,
    reno_scale_ecn: u64,
    beta: f64,
    c: f64,
    fast_convergence: Option<FastConvergencePoint>,
    reno_friendly: bool,
    reno_catches_up: bool,
}

/// Implementation whose counting is followed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stack {
    /// Linux 6.18, net/ipv4/tcp_cubic.c and tcp_cong.c.
    Linux,
    /// Linux 2.6.22, as in ns-2.35's tcp/linux.
    Linux2622,
    /// Linux 3.17.
    Linux317,
    /// ns-3.44, src/internet/model/tcp-cubic.cc.
    Ns3,
}

/// A stage of congestion avoidance, ended by a reduction or a timeout.
#[derive(Clone, Copy, Debug)]
struct Epoch {
    start: Time,
    /// Plateau, segments (`bic_origin_point`).
    origin: u64,
    /// Time from the start to the plateau (`bic_K`): seconds in ns-3, whole 1/1024 s in Linux.
    k: f64,
    /// Segments or ACKs acknowledged that have not yet raised Reno's window (`ack_cnt`).
    acks: u64,
    /// Estimate of Reno's window, segments (`tcp_cwnd`).
    reno: u64,
}

impl LinuxGrowth {
    /// Creates the state; `None` if `growth` is the RFC's.
    pub(super) fn new(params: &Params) -> Option<Self> {
        let stack = match params.growth {
            Growth::Fluid => return None,
            Growth::Linux => Stack::Linux,
            Growth::Linux2622 => Stack::Linux2622,
            Growth::Linux317 => Stack::Linux317,
            Growth::Ns3 => Stack::Ns3,
        };
        let reno_scale = reno_scale(stack, params.rule.beta);
        Some(Self {
            stack,
            cwnd_count: 0,
            needed: 1,
            last_max: 0,
            prior: 0,
            epoch: None,
            delay_min: None,
            computed: None,
            ack_ratio: FIRST_ACK_RATIO,
            tick_ns: params.tick.0.max(1),
            remainder: 0,
            ended_recovery: 0,
            reno_scale,
            reno_scale_loss: reno_scale,
            reno_scale_ecn: params.alpha_ecn.map_or(reno_scale, |alpha| (8.0 / alpha) as u64),
            beta: params.rule.beta,
            c: params.c,
            fast_convergence: params.fast_convergence.then_some(params.fast_convergence_point),
            reno_friendly: params.reno_friendly,
            reno_catches_up: params.reno_catches_up,
        })
    }

    /// Takes an ACK's delay and counts, whether the window may grow or not. Returns `true` if
    /// HyStart may judge its delay.
    #[inline]
    pub(super) fn on_ack(&mut self, path: &Path, ack: &AckSample) -> bool {
        let (delay, guard) = match self.stack {
            // "Discard delay samples right after fast recovery": a second in Linux, 10 ms in ns-3.
            Stack::Linux | Stack::Linux2622 | Stack::Linux317 => (ack.rtt, Duration::from_secs(1)),
            Stack::Ns3 => (path.srtt, Duration::from_millis(10)),
        };
        let settled = self.epoch.is_none_or(|epoch| path.now.since(epoch.start) >= guard);
        if let Some(delay) = delay
            && settled
            && self.delay_min.is_none_or(|min| delay < min)
        {
            self.delay_min = Some(delay);
        }
        if self.stack == Stack::Ns3 {
            // ns-3 leaves recovery first and then grows by all that the ACK acknowledges, most of a
            // window. Here the end of recovery is seen one ACK later.
            self.ended_recovery = match path.phase {
                Phase::Recovery => ack.acked_bytes,
                Phase::Open => {
                    self.remainder += self.ended_recovery;
                    0
                }
                Phase::Cwr | Phase::Loss => 0,
            };
        }
        if self.counts_acks() && path.phase == Phase::Open {
            // A sixteenth at a time, truncated. Where every ACK is for one segment, the ratio
            // settles at 31/16, not 1, and the window grows nearly twice as fast as the cubic
            // function says.
            let segments = ack.acked_bytes / u64::from(path.mss);
            if segments > 0 {
                self.ack_ratio = self.ack_ratio - self.ack_ratio / 16 + segments;
            }
        }
        settled || self.stack != Stack::Linux
    }

    /// `true` if the curve's state survives an undo: Linux 6.18 restores only window and threshold
    /// (`tcp_undo_cwnd_reduction`).
    pub(super) fn keeps_state_on_undo(&self) -> bool {
        self.stack == Stack::Linux
    }

    /// Returns the least RTT.
    pub(super) const fn delay_min(&self) -> Option<Duration> {
        self.delay_min
    }

    /// Returns the segments by which an ACK of `acked` bytes raises a window of `cwnd` segments.
    pub(super) fn growth(&mut self, path: &Path, cwnd: u64, acked: u64) -> u64 {
        let mss = u64::from(path.mss);
        self.remainder += acked;
        let segments = self.remainder / mss;
        self.remainder %= mss;
        match self.stack {
            Stack::Linux => {
                self.compute(path.now, cwnd, segments);
                let mut growth = 0;
                // A count that was kept while `needed` was larger is worth one segment, not
                // several.
                if self.cwnd_count >= self.needed {
                    self.cwnd_count = 0;
                    growth += 1;
                }
                self.cwnd_count += segments;
                growth += self.cwnd_count / self.needed;
                self.cwnd_count %= self.needed;
                growth
            }
            Stack::Linux2622 | Stack::Linux317 => {
                // These count ACKs, however much they acknowledge, and wait for one more than
                // needed.
                self.compute(path.now, cwnd, 1);
                if self.cwnd_count < self.needed {
                    self.cwnd_count += 1;
                    return 0;
                }
                self.cwnd_count = 0;
                1
            }
            Stack::Ns3 => {
                if segments == 0 {
                    return 0;
                }
                // A count made while `needed` was larger stays, also through reductions. Once
                // `needed` falls, every ACK adds a segment until the count is used up.
                self.cwnd_count += segments;
                self.compute(path.now, cwnd, segments);
                if self.cwnd_count < self.needed {
                    return 0;
                }
                self.cwnd_count -= self.needed;
                1
            }
        }
    }

    /// Updates `needed` (`bictcp_update`, ns-3's `Update`).
    fn compute(&mut self, now: Time, cwnd: u64, acked: u64) {
        let cwnd = cwnd.clamp(1, MAX_SEGMENTS);
        let mut epoch = match self.epoch {
            Some(epoch) => Epoch { acks: epoch.acks + acked, ..epoch },
            None => self.begin_epoch(now, cwnd, acked),
        };
        let mut curve = true;
        if self.stack != Stack::Ns3 {
            let tick = now.0 / self.tick_ns;
            if let Some((at, of)) = self.computed {
                // At most 32 times a second while the window stays the same, also for the first
                // after a reduction.
                if of == cwnd && tick - at <= SECOND_NS / self.tick_ns / 32 {
                    if self.epoch.is_some() {
                        self.epoch = Some(epoch);
                    }
                    return;
                }
                // And in Linux 6.18 the cubic function at most once a tick within a stage.
                curve = !(self.stack == Stack::Linux && self.epoch.is_some() && tick == at);
            }
            if curve {
                self.computed = Some((tick, cwnd));
            }
        }
        if curve {
            self.needed = self.needed_by_curve(now, cwnd, &epoch);
        }
        if self.reno_friendly {
            let caught_up = self.reno_catches_up && epoch.reno >= self.prior;
            let scale = if caught_up { 8 } else { self.reno_scale };
            let gain_after = (cwnd * scale / 8).max(1);
            let gains = epoch.acks.saturating_sub(1) / gain_after;
            epoch.acks -= gains * gain_after;
            epoch.reno += gains;
            if epoch.reno > cwnd {
                self.needed = self.needed.min(cwnd / (epoch.reno - cwnd));
            }
        }
        self.needed = match self.stack {
            // Growth of at most half a window per round trip.
            Stack::Linux | Stack::Ns3 => self.needed.max(2),
            Stack::Linux2622 | Stack::Linux317 => (self.needed * 16 / self.ack_ratio).max(1),
        };
        self.epoch = Some(epoch);
    }

    /// `true` if growth counts ACKs, not segments acknowledged.
    const fn counts_acks(&self) -> bool {
        matches!(self.stack, Stack::Linux2622 | Stack::Linux317)
    }

    /// Returns the acknowledgements that make a segment by the cubic function.
    fn needed_by_curve(&self, now: Time, cwnd: u64, epoch: &Epoch) -> u64 {
        let (target, convex) = self.target(now, epoch);
        let mut needed = match target.checked_sub(cwnd) {
            None | Some(0) => 100 * cwnd,
            Some(above) => cwnd / above,
        };
        match self.stack {
            // Before the first reduction, and in Linux from a timeout to the next reduction, growth
            // is at least a twentieth per round trip.
            Stack::Linux | Stack::Linux317 | Stack::Ns3 => {
                if self.last_max == 0 {
                    needed = needed.min(20);
                }
            }
            Stack::Linux2622 => {
                // Beyond the plateau at most 16 segments per 100 ms.
                if let Some(delay) = self.delay_min
                    && convex
                {
                    needed = needed.max(cwnd * 100 / 16 / millis(delay));
                }
                // Before the first reduction, and from a timeout to the next reduction, the curve
                // asks for a segment per 50 acknowledged; Reno's estimate may ask for more.
                if self.last_max == 0 {
                    needed = 50;
                }
            }
        }
        needed
    }

    /// Returns the cubic function's value one least RTT from now, segments, and `true` if that is
    /// beyond the plateau.
    fn target(&self, now: Time, epoch: &Epoch) -> (u64, bool) {
        let delay = self.delay_min.unwrap_or(Duration::ZERO);
        if self.stack == Stack::Ns3 {
            let t = now.since(epoch.start).as_secs_f64() + delay.as_secs_f64();
            let x = (t - epoch.k).abs();
            let distance = (self.c * (x * x * x)) as u64;
            return moved(epoch.origin, distance, t >= epoch.k);
        }
        // Times are in 1/1024 s, from whole ticks; C is in 1/1024.
        let delay = match self.stack {
            Stack::Linux => delay.0.div_ceil(self.tick_ns),
            Stack::Linux2622 | Stack::Linux317 | Stack::Ns3 => delay.0 / self.tick_ns,
        };
        let ticks = now.0 / self.tick_ns - epoch.start.0 / self.tick_ns + delay;
        let t = ticks * 1024 / (SECOND_NS / self.tick_ns);
        let k = epoch.k as u64;
        let x = u128::from(t.abs_diff(k).min(MAX_SEGMENTS));
        let c = u128::from(self.c_in_1024ths());
        let distance = u64::try_from((c * x * x * x) >> 40).unwrap_or(u64::MAX);
        moved(epoch.origin, distance, t >= k)
    }

    fn begin_epoch(&self, now: Time, cwnd: u64, acked: u64) -> Epoch {
        let (origin, k) = match self.last_max.checked_sub(cwnd) {
            None | Some(0) => (cwnd, 0.0),
            Some(below) if self.stack == Stack::Ns3 => {
                (self.last_max, libm::cbrt(below as f64 / self.c))
            }
            Some(below) => {
                // Departs from the kernel, whose root of the same number is off by 0.2 % on
                // average.
                let cube = below.saturating_mul((1 << 40) / self.c_in_1024ths());
                (self.last_max, libm::floor(libm::cbrt(cube as f64)))
            }
        };
        Epoch { start: now, origin, k, acks: acked, reno: cwnd }
    }

    fn c_in_1024ths(&self) -> u64 {
        ((self.c * 1024.0 + 0.5) as u64).clamp(1, u64::from(u32::MAX))
    }

    /// Ends the stage by a reduction from `before` to `after` segments.
    pub(super) fn reduce(&mut self, before: u64, after: u64, cause: Cause) {
        self.prior = before;
        self.last_max = match self.fast_convergence {
            Some(point) if before < self.last_max => match point {
                FastConvergencePoint::Beta => (before as f64 * (1.0 + self.beta) / 2.0) as u64,
                FastConvergencePoint::Midpoint => u64::midpoint(before, after),
            },
            _ => before,
        };
        self.reno_scale = match cause {
            // By the cause, even if `beta_initial` or a factor for quenches was used.
            Cause::Loss | Cause::Delay | Cause::Quench { marked: false, .. } => {
                self.reno_scale_loss
            }
            Cause::Ecn | Cause::Load | Cause::Quench { marked: true, .. } => self.reno_scale_ecn,
        };
        self.epoch = None;
        if self.stack != Stack::Ns3 {
            self.cwnd_count = 0;
        }
    }

    /// Resets almost everything after an expiry of the retransmission timer (`bictcp_reset`); in
    /// ns-3 only the stage and the least delay (`CubicReset`).
    pub(super) fn on_timeout(&mut self) {
        self.epoch = None;
        self.delay_min = None;
        if self.stack != Stack::Ns3 {
            self.last_max = 0;
            self.cwnd_count = 0;
            self.computed = None;
            self.ack_ratio = FIRST_ACK_RATIO;
        }
    }

    /// Shifts the stage past a pause in which nothing was outstanding. Linux adds the ticks since
    /// data was last sent (`cubictcp_cwnd_event`); the others do not notice a pause.
    pub(super) fn on_resume(&mut self, now: Time, since: Time) {
        if self.stack == Stack::Linux
            && let Some(epoch) = &mut self.epoch
        {
            let ticks = now.0 / self.tick_ns - since.0 / self.tick_ns;
            let pause = Duration(ticks * self.tick_ns);
            epoch.start = (epoch.start + pause).min(now);
        }
    }
}

/// Returns the windows of acknowledgements in which Reno gains a segment, times 8: 8 (1 + β) / (3
/// (1 − β)), truncated as each stack does.
fn reno_scale(stack: Stack, beta: f64) -> u64 {
    if stack == Stack::Ns3 {
        return (8.0 * (1024.0 + beta * 1024.0) / 3.0 / (1024.0 - beta * 1024.0)) as u64;
    }
    let beta = ((beta * 1024.0 + 0.5) as u64).min(1023);
    8 * (1024 + beta) / 3 / (1024 - beta)
}

fn moved(origin: u64, distance: u64, beyond: bool) -> (u64, bool) {
    let to = if beyond { origin.saturating_add(distance) } else { origin.saturating_sub(distance) };
    (to, beyond)
}

/// Converts to whole milliseconds, at least one.
fn millis(delay: Duration) -> u64 {
    (delay.as_nanos() / 1_000_000).max(1)
}

const SECOND_NS: u64 = 1_000_000_000;
/// Upper bound for segments and for times in 1/1024 s, so that products fit. (2³² segments are 6
/// TB.)
const MAX_SEGMENTS: u64 = 1 << 32;
/// Linux 2.6.22 starts with two segments per ACK.
const FIRST_ACK_RATIO: u64 = 2 * 16;
