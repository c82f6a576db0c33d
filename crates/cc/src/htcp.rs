//! H-TCP: growth rises with the time since the last loss; a loss reduces the window by what empties
//! the queue.
//!
//! Leith, Shorten, *H-TCP: TCP for high-speed and long-distance networks*, PFLDnet 2004, and
//! draft-leith-tcp-htcp-06, as implemented in Linux (`tcp_htcp.c`) and FreeBSD (`cc_htcp.c`).

use alloc::borrow::ToOwned as _;
use alloc::boxed::Box;
use alloc::sync::Arc;

use cwnd_packet::{Ability, Contract, HasContract};
use cwnd_quantity::{Duration, Time};
use cwnd_schema::{Invalid, PresetOf, Presets, RegistryEntry, Schema, key};

use crate::controller::{
    AckSample, Controller, Path, Phase, Request, Signal, Start, Window, WindowMut, min_ssthresh,
    restore_window,
};
use crate::dynamic::{ControllerInfo, DynController};
use crate::increase::{HTcpIncrease, SinceReduction};
use crate::min_rtt::MinRtt;
use crate::slow_start::{Credit, GrowthRules, SlowStartState};

/// Name and description in scenarios.
pub const ENTRY: RegistryEntry = RegistryEntry::new(
    "htcp",
    "H-TCP: the longer the last loss is ago, the faster it grows (Leith & Shorten 2004).",
);

/// H-TCP.
#[derive(Clone, Debug, PartialEq, Schema)]
#[schema(presets, check = Self::consistent)]
pub struct Params {
    /// Additive increase, by the time since the last reduction.
    #[flatten(HTcpIncrease::default())]
    pub increase: HTcpIncrease,
    /// `true` if Δ counts from the end of the recovery; otherwise from the backoff.
    #[default(
        false,
        "Leith & Shorten 2004: the backoff; Linux tcp_htcp.c, htcp_state: the return to \
        TCP_CA_Open"
    )]
    pub since_recovery: bool,
    /// The least β, also where the throughput changed and at the first backoffs.
    #[default(0.5, "Leith & Shorten 2004: 0.5; Linux BETA_MIN")]
    #[bounds(above 0.0, below 1.0; "it is the part of the window that stays")]
    pub least_beta: f64,
    /// The largest β, where the queue is short.
    #[default(0.8, "Leith & Shorten 2004: 0.8; Linux BETA_MAX: 102 / 128")]
    #[bounds(above 0.0, below 1.0; "it is the part of the window that stays")]
    pub most_beta: f64,
    /// Part by which the throughput may differ from that at the previous backoff; beyond it β is
    /// the least. None is no limit.
    #[default(Some(0.2), "Leith & Shorten 2004: 0.2; Linux use_bandwidth_switch")]
    #[bounds(above 0.0; "no two throughputs are the same")]
    pub bandwidth_switch: Option<f64>,
    /// An RTT that exceeds maxRTT by more than this does not raise it; none is no limit.
    #[default(None, "Linux tcp_htcp.c: 20 ms")]
    #[bounds(above Duration::ZERO; "maxRTT would never rise")]
    pub longest_step: Option<Duration>,
    /// Part of maxRTT − minRTT that is remembered after a backoff.
    #[default(0.95, "Linux tcp_htcp.c: 0.95")]
    #[bounds(above 0.0, up_to 1.0; "it is a part")]
    pub fading: f64,
    /// β is the least while minRTT is no more than this.
    #[default(Duration::ZERO, "Linux tcp_htcp.c: 10 ms")]
    pub short_path: Duration,
    /// δ of adaptive backoff: δ · minRTT / RTT of the window stays after a backoff, RTT the newest,
    /// whatever H-TCP's β is. None is H-TCP's β.
    #[default(None, "McCullagh 2008 § 4.2 eq. 4.1, e.g. 0.8")]
    #[bounds(above 0.0, up_to 1.0; "with more than 1 the queue would never empty")]
    pub adaptive_delta: Option<f64>,
    /// Value of minRTT from the first reduction on (at most the newest RTT), whatever was measured
    /// before: a wrong value, to see how it is corrected.
    #[default(None, "McCullagh 2008 § 4.3, Fig. 4.1 to 4.3")]
    #[bounds(above Duration::ZERO; "no round trip takes no time")]
    pub initial_min_rtt: Option<Duration>,
    /// Growth in slow start and after an ECN-echo.
    #[flatten(GrowthRules::default())]
    pub growing: GrowthRules,
}

impl Presets for Params {
    const PRESETS: &'static [PresetOf<Self>] = &[
        PresetOf::new(
            "draft",
            "Leith & Shorten 2004 and the draft; the default where the stack has none.",
            Self::default,
        ),
        PresetOf::new("linux", "Linux 6.1 (tcp_htcp.c), in real numbers.", || Self {
            increase: HTcpIncrease { rtt_scaling: true, ..HTcpIncrease::default() },
            since_recovery: true,
            most_beta: 102.0 / 128.0,
            longest_step: Some(Duration::from_millis(20)),
            short_path: Duration::from_millis(10),
            growing: GrowthRules {
                abc_limit: None,
                abc_limit_after_timeout: None,
                grow_in_cwr: false,
                ..GrowthRules::default()
            },
            ..Self::default()
        }),
        PresetOf::new(
            "adaptive-backoff",
            "Adaptive backoff (McCullagh 2008 § 4.2): 0.8 · minRTT / RTT of the window.",
            || Self { adaptive_delta: Some(0.8), ..Self::default() },
        ),
    ];
}

impl Params {
    /// Checks values together.
    fn consistent(&self) -> Result<(), Invalid> {
        if self.least_beta > self.most_beta {
            return Err(Invalid {
                key: key!(Self: least_beta),
                message: "it is above `most_beta`".to_owned(),
            });
        }
        Ok(())
    }
}

impl ControllerInfo for Params {
    fn build(&self, start: &Start) -> Box<dyn DynController> {
        Box::new(HTcp::new(self, start))
    }

    fn lowers_on_acks(&self) -> bool {
        false
    }

    fn linux_name(&self) -> Option<&'static str> {
        Some("htcp")
    }
}

impl HasContract for Params {
    fn contract(&self) -> Contract {
        Contract::new()
            .wants(Ability::Timestamps, "the RTT of one packet in each window is all it hears of")
    }
}

/// H-TCP's state for one connection. Windows are bytes in floating point, so that fractions of a
/// byte add up.
#[derive(Clone, Debug)]
pub struct HTcp {
    cwnd: f64,
    ssthresh: u64,
    slow_start: SlowStartState,
    since: SinceReduction,
    min_rtt: MinRtt,
    max_rtt: Option<Duration>,
    throughput: Throughput,
    /// β of the last backoff, from which α is computed.
    beta: f64,
    /// `true` if β may be adapted at the next backoff.
    adapts: bool,
    constants: Arc<Constants>,
}

/// Constants of a connection.
#[derive(Debug)]
struct Constants {
    params: Params,
    initial_window: f64,
    max_window: f64,
    credit: Credit,
}

/// Throughput, bytes per ns, measured round trip by round trip.
#[derive(Clone, Copy, Debug, Default)]
struct Throughput {
    /// Round trip being measured: its number, its start, and the bytes delivered before it.
    round: Option<(u64, Time, u64)>,
    /// Round trips since the last backoff.
    rounds: u32,
    smoothed: f64,
    /// Largest smoothed throughput since the last backoff; in the first three round trips the
    /// newest.
    max: f64,
    /// The same of the period before that backoff.
    previous_max: f64,
}

impl Throughput {
    /// Takes an ACK as Linux's `measure_achieved_throughput` does. From the fourth round trip on it
    /// is a mean that gives the newest a quarter, and the largest value of that mean counts.
    fn on_ack(&mut self, path: &Path) {
        if path.phase != Phase::Open {
            self.round = None;
            return;
        }
        let here = (path.round, path.now, path.delivered);
        let Some((round, begun, delivered)) = self.round else {
            self.round = Some(here);
            return;
        };
        let took = path.now.since(begun);
        if path.round == round || took == Duration::ZERO {
            return;
        }
        self.round = Some(here);
        let now = (path.delivered - delivered) as f64 / took.0 as f64;
        self.rounds = self.rounds.saturating_add(1);
        if self.rounds <= 3 {
            (self.smoothed, self.max) = (now, now);
        } else {
            self.smoothed = (3.0 * self.smoothed + now) / 4.0;
            self.max = self.max.max(self.smoothed);
        }
    }

    /// Handles a backoff; `true` if the throughput differs from that at the one before by more than
    /// the part `by`.
    fn changed(&mut self, by: f64) -> bool {
        let (max, before) = (self.max, self.previous_max);
        self.previous_max = max;
        self.rounds = 0;
        (max - before).abs() > by * before
    }
}

impl HTcp {
    /// Creates the controller of a new connection.
    #[must_use]
    pub fn new(params: &Params, start: &Start) -> Self {
        Self {
            cwnd: start.initial_cwnd() as f64,
            ssthresh: start.initial_ssthresh(),
            slow_start: SlowStartState::new(params.growing.slow_start),
            since: SinceReduction::default(),
            min_rtt: MinRtt::new(params.initial_min_rtt),
            max_rtt: None,
            throughput: Throughput::default(),
            beta: 0.5,
            adapts: false,
            constants: Arc::new(Constants {
                params: params.clone(),
                initial_window: start.initial_cwnd() as f64,
                max_window: start.max_window() as f64,
                credit: Credit::bytes(&params.growing),
            }),
        }
    }

    /// Returns the window in whole bytes.
    fn bytes(&self) -> u64 {
        self.cwnd as u64
    }

    /// Updates RTT bounds and throughput by an ACK.
    fn update_rtts(&mut self, path: &Path, ack: &AckSample) {
        self.min_rtt.on_ack(path, ack);
        self.throughput.on_ack(path);
        let (Some(rtt), Some(min_rtt), Phase::Open) = (ack.rtt, self.min_rtt.get(), path.phase)
        else {
            return;
        };
        let max_rtt = self.max_rtt.map_or(min_rtt, |max_rtt| max_rtt.max(min_rtt));
        let may = self
            .constants
            .params
            .longest_step
            .is_none_or(|step| rtt.saturating_sub(max_rtt) <= step);
        self.max_rtt = Some(if may { max_rtt.max(rtt) } else { max_rtt });
    }

    /// Returns β = minRTT / maxRTT within its bounds. It is the least if the throughput changed, at
    /// the backoff after that, and on short paths.
    fn adapted(&mut self) -> f64 {
        let params = &self.constants.params;
        if params.bandwidth_switch.is_some_and(|by| self.throughput.changed(by)) {
            self.adapts = false;
            return params.least_beta;
        }
        match (self.min_rtt.get(), self.max_rtt) {
            (Some(min_rtt), Some(max_rtt)) if self.adapts && min_rtt > params.short_path => {
                let ratio = min_rtt.0 as f64 / max_rtt.0.max(1) as f64;
                ratio.clamp(params.least_beta, params.most_beta)
            }
            _ => {
                self.adapts = true;
                params.least_beta
            }
        }
    }

    fn reduce(&mut self, path: &Path) {
        let own = self.adapted();
        let delta = self.constants.params.adaptive_delta;
        self.beta =
            delta.zip(self.min_rtt.ratio_to(path.rtt)).map_or(own, |(delta, part)| delta * part);
        if let (Some(min_rtt), Some(max_rtt)) = (self.min_rtt.get(), self.max_rtt) {
            let kept = max_rtt.saturating_sub(min_rtt).0 as f64 * self.constants.params.fading;
            self.max_rtt = Some(min_rtt + Duration(kept as u64));
        }
        let reduced = self.beta * self.cwnd;
        let min_cwnd = min_ssthresh(path.mss);
        self.ssthresh = (reduced as u64).max(min_cwnd);
        // A window that is already below `min_cwnd` must not be raised to it.
        self.cwnd = self.cwnd.min(reduced.max(min_cwnd as f64));
        self.since.reduced(path.now);
        self.slow_start.on_congestion();
    }

    /// Grows in slow start; returns the bytes left for congestion avoidance once the threshold is
    /// reached.
    fn slow_start(&mut self, path: &Path, ack: &AckSample) -> u64 {
        let Constants { credit, max_window, .. } = *self.constants;
        let growth = self.slow_start.on_ack(path, ack, self.bytes(), credit);
        self.slow_start.grow(growth, &mut self.cwnd, &mut self.ssthresh, max_window)
    }
}

impl Controller for HTcp {
    fn on_ack(&mut self, path: &Path, ack: &AckSample) -> Request {
        if ack.acked_bytes == 0 {
            return Request::Nothing;
        }
        self.update_rtts(path, ack);
        if self.constants.params.since_recovery && path.phase != Phase::Open {
            self.since.reduced(path.now);
        }
        let min_rtt = self.min_rtt.get();
        let alpha = self.since.alpha(&self.constants.params.increase, path.now, min_rtt, self.beta);
        if !ack.grow.allows(self.constants.params.growing.grow_in_cwr) {
            return Request::Nothing;
        }
        let below = self.bytes() < self.ssthresh;
        let left = if below { self.slow_start(path, ack) } else { ack.acked_bytes };
        if left > 0 {
            // cwnd + α / cwnd for each segment acknowledged, windows in segments.
            let gain = alpha * f64::from(path.mss) * left as f64 / self.cwnd;
            self.cwnd = (self.cwnd + gain).min(self.constants.max_window);
        }
        Request::Nothing
    }

    fn on_signal(&mut self, path: &Path, signal: Signal) {
        self.min_rtt.on_signal(path, signal);
        match signal {
            Signal::Reduce(_) => self.reduce(path),
            Signal::Timeout { reduces, .. } => {
                // A segment that was already retransmitted keeps the threshold (RFC 5681 § 3.1).
                if reduces {
                    self.reduce(path);
                }
                // Each expiry is a congestion event (Linux, `htcp_state`: TCP_CA_Loss). Otherwise α
                // would grow during the backoff and open the window by hundreds of segments at the
                // first ACK.
                self.since.reduced(path.now);
                self.cwnd = f64::from(path.mss).min(self.constants.max_window);
                self.slow_start.on_timeout(path);
            }
            // RFC 5681 § 4.1: the restart window is min(IW, cwnd).
            Signal::Idle { keep, .. } => {
                let left = keep.map_or(self.constants.initial_window, |keep| keep.cwnd as f64);
                self.cwnd = self.cwnd.min(left);
                self.ssthresh = keep.map_or(self.ssthresh, |keep| keep.ssthresh);
            }
            Signal::Resume { .. } => {}
        }
    }

    fn window_mut(&mut self) -> Option<WindowMut<'_>> {
        let (cwnd, ssthresh) = (&mut self.cwnd, &mut self.ssthresh);
        Some(WindowMut { cwnd, ssthresh, max_window: self.constants.max_window })
    }

    /// Restores also the time since the last reduction, the longest RTT, the throughput at the
    /// reduction before (Linux, `htcp_cwnd_undo`), and slow start.
    fn undo(&mut self, mut before: Self, now: Time, after_timeout: bool) {
        restore_window(self, &mut before);
        self.since = before.since;
        self.max_rtt = before.max_rtt;
        self.throughput.previous_max = before.throughput.previous_max;
        self.slow_start.undo(before.slow_start, now, after_timeout, None);
    }

    fn window(&self) -> Window {
        Window { cwnd: self.bytes(), ssthresh: self.ssthresh }
    }

    fn min_rtt(&self) -> Option<Duration> {
        self.min_rtt.get()
    }
}
