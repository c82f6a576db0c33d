//! NewReno: additive increase, multiplicative decrease (RFC 5681), with appropriate byte counting (RFC 3465) and a
//! decrease factor of its own for ECN (RFC 8511).

use std::sync::Arc;

use cwnd_quantity::{Contract, Declares, Time};
use cwnd_schema::{Choice, PresetOf, Presets, RegistryEntry, Schema};

use crate::controller::{
    AckSample, Cause, Controller, Path, Request, Signal, Start, Window, min_ssthresh,
};
use crate::decrease::{
    ABE, ADAPTIVE, Base, Decrease, EcnInSlowStart, Factors, QUENCHED, RestAfterQuench, Resting,
    Rounding, Rule,
};
use crate::dynamic::DynController;
use crate::info::{ControllerInfo, Mechanism};
use crate::min_rtt::estimating;
use crate::slow_start::{Credit, Growing, SlowStart, SlowStartState};

/// What growth counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Choice)]
pub enum Increase {
    /// Bytes acknowledged: appropriate byte counting (RFC 3465).
    #[name("abc")]
    Abc,
    /// ACKs: one segment each in slow start, SMSS · SMSS / cwnd each above (4.4BSD, ns-2; RFC 5681
    /// eq. 3).
    #[name("per-ack")]
    PerAck,
    /// ACKs, as "per-ack", but each step is cut off to whole bytes, at least one (ns-3's
    /// tcp-congestion-ops.cc).
    #[name("per-ack-whole-bytes")]
    PerAckWholeBytes,
}

/// Name and description in scenarios.
pub const ENTRY: RegistryEntry = RegistryEntry::new(
    "newreno",
    "NewReno: additive increase, multiplicative decrease (RFC 5681).",
);

/// NewReno.
#[derive(Clone, Debug, PartialEq, Schema)]
#[schema(presets)]
pub struct Params {
    /// How much a reduction leaves.
    #[flatten(Rule::default())]
    pub rule: Rule,
    /// Least window that a reduction leaves, in segments, but for an ECN-echo; the threshold is
    /// never below two (RFC 5681 eq. 4).
    #[default(2, "RFC 5681 § 3.1 eq. 4: 2; ns-2 has 1 (tcp.cc, slowdown)")]
    #[bounds(from 1; "a window of no segment never sends again")]
    pub least_window: u32,
    /// Least window that an ECN-echo leaves, in segments.
    #[default(
        1,
        "RFC 3168 § 6.1.2: 1, and the next echo waits for the timer (`ecn_at_one`); Linux, FreeBSD \
        and ns-3 have 2"
    )]
    #[bounds(from 1; "a window of no segment never sends again")]
    pub least_window_ecn: u32,
    /// What growth counts: bytes or ACKs.
    #[default(Increase::Abc, "RFC 5681 § 3.1 recommends RFC 3465")]
    pub increase: Increase,
    /// Whether what was counted towards the next segment of growth is kept where slow start begins
    /// in between, as after a pause; nothing where ACKs are counted.
    #[default(false, "RFC 3465 § 2.1 leaves it open; Linux: yes (snd_cwnd_cnt)")]
    #[idle(self.increase != Increase::Abc, "without `increase = \"abc\"`")]
    pub keep_count: bool,
    /// How it grows in slow start, and after an ECN-echo.
    #[flatten(Growing::default())]
    pub growing: Growing,
}

impl Presets for Params {
    const PRESETS: &'static [PresetOf<Self>] = &[
        PresetOf::new(
            "rfc",
            "RFC 5681 and RFC 3168: ECN as loss; the default where the stack has none.",
            Self::default,
        ),
        PresetOf::new("rfc9406", "The same with HyStart++ (RFC 9406).", || Self {
            growing: Growing { slow_start: SlowStart::HyStart, ..Growing::default() },
            ..Self::default()
        }),
        PresetOf::new(
            "abe",
            "ABE as RFC 8511 says: 0.8 of what is in flight, in congestion avoidance only.",
            || Self {
                least_window_ecn: 1,
                ..Self::reading(Rule { beta_ecn: Some(0.8), ..Rule::default() })
            },
        ),
        PresetOf::new(
            "paper",
            "ABE as its paper evaluates it: 0.8 of the window, also where an ECN-echo ends slow \
             start.",
            || {
                Self::reading(Rule {
                    beta_ecn: Some(0.8),
                    base: Base::Cwnd,
                    ecn_in_slow_start: EcnInSlowStart::BetaEcn,
                    ..Rule::default()
                })
            },
        ),
        PresetOf::new(
            "freebsd",
            "FreeBSD with ABE on (cc_newreno.c): 0.8 of the window in every phase, in whole \
             segments; the window rests in the round trip after it.",
            || Self {
                rule: Rule {
                    beta_ecn: Some(0.8),
                    base: Base::Cwnd,
                    ecn_in_slow_start: EcnInSlowStart::BetaEcn,
                    rounding: Rounding::Segments,
                    ..Rule::default()
                },
                // newreno_cong_signal: at least two segments.
                least_window_ecn: 2,
                // newreno_ack_received: only `!IN_RECOVERY`, which TF_CONGRECOVERY is, too.
                growing: Growing { grow_in_cwr: false, ..Growing::default() },
                ..Self::default()
            },
        ),
        PresetOf::new(
            "ns-3",
            "ns-3's TcpNewReno with UseAbe: 0.7 of what is in flight in every phase.",
            || {
                Self::reading(Rule {
                    beta_ecn: Some(0.7),
                    ecn_in_slow_start: EcnInSlowStart::BetaEcn,
                    ..Rule::default()
                })
            },
        ),
        PresetOf::new(
            "ns-3-linux-reno",
            "ns-3's TcpLinuxReno with UseAbe: 0.7 of the window in every phase.",
            || {
                Self::reading(Rule {
                    beta_ecn: Some(0.7),
                    base: Base::Cwnd,
                    ecn_in_slow_start: EcnInSlowStart::BetaEcn,
                    ..Rule::default()
                })
            },
        ),
        PresetOf::new(
            "linux",
            "Linux 6.18 (tcp_cong.c), which has no ABE: half of the window in whole segments, \
             every segment counts, and nothing grows while an ECN-echo is answered.",
            || Self {
                rule: Rule { base: Base::Cwnd, rounding: Rounding::Segments, ..Rule::default() },
                growing: Growing {
                    abc_limit: None,
                    abc_limit_after_timeout: None,
                    grow_in_cwr: false,
                    ..Growing::default()
                },
                keep_count: true,
                least_window_ecn: 2,
                ..Self::default()
            },
        ),
        PresetOf::new(
            "neqo",
            "neqo's NewReno (new_reno.rs): half of the window; its ABE is for CUBIC only.",
            || Self::reading(Rule { base: Base::Cwnd, ..Rule::default() }),
        ),
        PresetOf::new(
            "quicly",
            "quicly's Reno (cc-pico.c): half of the window; its ABE is for CUBIC and its own \
             controllers only.",
            || Self::reading(Rule { base: Base::Cwnd, ..Rule::default() }),
        ),
        PresetOf::new(
            "pytcp",
            "PyTCP's Reno (tcp__cwnd.py): 0.85 of what is in flight in every phase.",
            || {
                Self::reading(Rule {
                    beta_ecn: Some(0.85),
                    ecn_in_slow_start: EcnInSlowStart::BetaEcn,
                    ..Rule::default()
                })
            },
        ),
        PresetOf::new(
            "adaptive-backoff",
            "Adaptive backoff (McCullagh 2008 § 4.2, 4.3): 0.8 · minRTT / RTT of the window.",
            || {
                Self::reading(Rule {
                    adaptive_delta: Some(0.8),
                    base: Base::Cwnd,
                    ..Rule::default()
                })
            },
        ),
        PresetOf::new(
            "becn",
            "BECN's sender (BECN § IV-B): half of the window for a source quench, and for a marked \
             packet no growth in the round trip after it; growth by ACKs and a window of one \
             segment at the least, as ns-2.",
            || Self::becn(RestAfterQuench::Marked),
        ),
        PresetOf::new(
            "becn-1998",
            "BECN's sender of 1998 (draft-salim-jhsbnns-ecn-00): the same, but it grows with the \
             next ACK.",
            || Self::becn(RestAfterQuench::Never),
        ),
    ];
}

impl ControllerInfo for Params {
    fn build(&self, start: &Start) -> Box<dyn DynController> {
        estimating(&self.rule, NewReno::new(self, start))
    }

    fn lowers_on_acks(&self) -> bool {
        false
    }

    fn mechanisms(&self) -> &'static [Mechanism] {
        &[ABE, ADAPTIVE, QUENCHED]
    }

    fn linux_name(&self) -> Option<&'static str> {
        Some("reno")
    }
}

impl Declares for Params {
    fn contract(&self) -> Contract {
        self.rule.contract()
    }
}

impl Params {
    /// BECN's sender, which is ns-2's NewReno.
    fn becn(rest_after_quench: RestAfterQuench) -> Self {
        Self {
            rule: Rule { base: Base::Cwnd, rest_after_quench, ..Rule::default() },
            increase: Increase::PerAck,
            least_window: 1,
            ..Self::default()
        }
    }

    /// The RFCs' NewReno with another rule of decrease, whose program keeps two segments.
    fn reading(rule: Rule) -> Self {
        Self { rule, least_window_ecn: 2, ..Self::default() }
    }
}

/// The controller.
#[derive(Clone, Debug)]
pub struct NewReno {
    cwnd: u64,
    ssthresh: u64,
    /// Of growth by bytes: bytes acknowledged since the window last grew. By ACKs: remainder of the division by cwnd.
    carry: u64,
    slow_start: SlowStartState,
    resting: Resting,
    law: Arc<Law>,
}

/// What stays the same: connections of one group share it.
#[derive(Clone, Debug)]
struct Law {
    initial_window: u64,
    max_window: u64,
    decrease: Arc<dyn Decrease>,
    credit: Credit,
    grow_in_cwr: bool,
    least_window: u64,
    least_window_ecn: u64,
    /// Whether each step of growth is cut off to bytes.
    whole_bytes: bool,
    keep_count: bool,
}

impl NewReno {
    /// A controller at the start of its connection.
    #[must_use]
    pub fn new(params: &Params, start: &Start) -> Self {
        Self {
            cwnd: start.initial_cwnd(),
            ssthresh: start.initial_ssthresh(),
            carry: 0,
            slow_start: SlowStartState::new(params.growing.slow_start),
            resting: Resting::new(params.growing.grow_in_cwr),
            law: Arc::new(Law {
                initial_window: start.initial_cwnd(),
                max_window: start.max_window(),
                decrease: Arc::new(Factors::new(&params.rule)),
                credit: match params.increase {
                    Increase::Abc => Credit::bytes(&params.growing),
                    Increase::PerAck | Increase::PerAckWholeBytes => Credit::Ack,
                },
                grow_in_cwr: params.growing.grow_in_cwr,
                whole_bytes: params.increase == Increase::PerAckWholeBytes,
                keep_count: params.keep_count && params.increase == Increase::Abc,
                least_window: u64::from(params.least_window) * u64::from(start.mss),
                least_window_ecn: u64::from(params.least_window_ecn) * u64::from(start.mss),
            }),
        }
    }

    /// The same with another rule of decrease, before the connection begins.
    #[must_use]
    pub fn decreasing_by(self, rule: impl Decrease + 'static) -> Self {
        Self { law: Arc::new(Law { decrease: Arc::new(rule), ..(*self.law).clone() }), ..self }
    }

    /// Slow start; gives back the bytes that are left for congestion avoidance once the threshold is reached.
    #[inline]
    fn slow_start(&mut self, path: &Path, ack: &AckSample) -> u64 {
        let growth = self.slow_start.on_ack(path, ack, self.cwnd, self.law.credit);
        if growth.exit {
            self.ssthresh = self.cwnd;
            self.leave_slow_start();
            return growth.bytes;
        }
        let room = self.ssthresh - self.cwnd;
        let step = match self.law.credit {
            Credit::Bytes { .. } => growth.bytes.min(room),
            // 4.4BSD and ns-2 step over the threshold by up to a segment.
            Credit::Ack => growth.bytes,
        };
        self.cwnd = (self.cwnd + step).min(self.law.max_window);
        if self.cwnd >= self.ssthresh {
            self.leave_slow_start();
        }
        growth.bytes - step
    }

    fn leave_slow_start(&mut self) {
        self.slow_start.on_exit();
        // Of what was counted for a larger window a segment is left (Linux, `tcp_cong_avoid_ai`).
        self.carry = if self.law.keep_count { self.carry.min(self.cwnd) } else { 0 };
    }

    /// Congestion avoidance: one segment for each window of data acknowledged.
    #[inline]
    fn avoid(&mut self, mss: u64, acked: u64) {
        match self.law.credit {
            // RFC 3465 § 2.1: at most one segment a round trip.
            Credit::Bytes { .. } => {
                self.carry += acked;
                if self.carry >= self.cwnd {
                    self.carry -= self.cwnd;
                    self.cwnd += mss;
                }
            }
            // RFC 5681 eq. 3, as it stands.
            Credit::Ack if self.law.whole_bytes => self.cwnd += (mss * mss / self.cwnd).max(1),
            // RFC 5681 eq. 3. Its "at least one byte" is not needed: the remainder is carried.
            Credit::Ack => {
                self.carry += mss * mss;
                let step = self.carry / self.cwnd;
                self.carry -= step * self.cwnd;
                self.cwnd += step;
            }
        }
        self.cwnd = self.cwnd.min(self.law.max_window);
    }

    fn reduce(&mut self, path: &Path, cause: Cause) {
        let stage = self.slow_start.stage(self.cwnd < self.ssthresh);
        let reduced = self.law.decrease.reduced(path, self.cwnd, stage, cause);
        let least = match cause {
            Cause::Ecn => self.law.least_window_ecn,
            _ => self.law.least_window,
        };
        self.leave(path, reduced, least);
        self.resting.begin(self.law.decrease.rest(path, cause), self.law.grow_in_cwr);
    }

    /// A congestion signal that leaves so many bytes.
    pub(crate) fn reduce_to(&mut self, path: &Path, reduced: u64) {
        self.leave(path, reduced, self.law.least_window);
    }

    fn leave(&mut self, path: &Path, reduced: u64, least: u64) {
        self.ssthresh = reduced.max(min_ssthresh(path.mss));
        // A window below the least one must not be raised to it.
        self.cwnd = self.cwnd.min(reduced.max(least));
        self.carry = 0;
        self.slow_start.on_congestion();
    }
}

impl Controller for NewReno {
    // Inlined where each ACK comes, though it is called elsewhere, too.
    #[inline(always)]
    fn on_ack(&mut self, path: &Path, ack: &AckSample) -> Request {
        if !self.resting.allows(path.now, ack.grow) {
            return Request::Nothing;
        }
        let left = if self.cwnd < self.ssthresh {
            let left = self.slow_start(path, ack);
            if left == 0 {
                return Request::Nothing;
            }
            left
        } else {
            ack.acked_bytes
        };
        self.avoid(u64::from(path.mss), left);
        Request::Nothing
    }

    fn on_signal(&mut self, path: &Path, signal: Signal) {
        match signal {
            Signal::Reduce(cause) => self.reduce(path, cause),
            Signal::Timeout { reduces, .. } => {
                // A segment that was sent again already keeps the threshold (RFC 5681 § 3.1).
                if reduces {
                    self.reduce(path, Cause::Loss);
                }
                self.cwnd = u64::from(path.mss).min(self.law.max_window);
                self.carry = 0;
                self.slow_start.on_timeout(path);
            }
            // RFC 5681 § 4.1: the restart window is min(IW, cwnd).
            Signal::Idle { keep: None, .. } => self.cwnd = self.cwnd.min(self.law.initial_window),
            Signal::Idle { keep: Some(keep), .. } => {
                self.cwnd = self.cwnd.min(keep.cwnd);
                self.ssthresh = keep.ssthresh;
            }
            Signal::Resume { .. } => {}
        }
    }

    /// The larger of both windows and of both thresholds; what was counted since counts (Linux,
    /// `tcp_undo_cwnd_reduction`).
    fn undo(&mut self, before: Self, _: Time, _: bool) {
        if self.cwnd <= before.cwnd {
            *self = Self { carry: self.carry, ..before };
        } else {
            self.ssthresh = self.ssthresh.max(before.ssthresh);
        }
    }

    fn raise_threshold(&mut self, least: u64) {
        self.ssthresh = self.ssthresh.max(least);
    }

    fn add_in_flight(&mut self, bytes: u64) {
        self.cwnd = (self.cwnd + bytes).min(self.law.max_window);
    }

    #[inline]
    fn window(&self) -> Window {
        Window { cwnd: self.cwnd, ssthresh: self.ssthresh }
    }
}
