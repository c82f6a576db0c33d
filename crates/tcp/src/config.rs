//! Configuration of a group of connections, and the choices of its senders that follow from their
//! parameters and controller. Both are derived once, so that they cost nothing per packet.

use core::fmt;
use std::sync::Arc;

use cwnd_cc::{AnyController, Controller as _, ControllerParams, DynController, RtoPolicy, Start};
use cwnd_quantity::{Divisor, Duration};

use crate::cwnd_validation::LimitedBy;
use crate::echo::DynEcho;
use crate::loss_detection::{Detection, LossByOrder};
use crate::params::{BackoffUntil, GrowBy, LossRule, Params, Recovery, RttEvery, RttFrom};
use crate::signed_timestamps::Signer;

/// Configuration of a group of connections: parameters, first controller, and values derived from
/// them once.
#[derive(Clone, Debug)]
pub struct Config {
    /// The parameters as given.
    pub params: Params,
    /// Parameters of each connection's congestion controller, unless the user defines one.
    pub controller: ControllerParams,
    /// The controller in its initial state; each connection gets a clone, which shares immutable
    /// data with the others.
    first_controller: AnyController,
    /// Factory of user-defined controllers, in place of `controller`; `None` without.
    custom_controller: Option<ControllerFactory>,
    /// A user-defined echo policy, in place of the parameters'.
    custom_echo: Option<Box<dyn DynEcho>>,
    /// Payload of a full segment, bytes.
    pub(crate) mss: u64,
    /// Divisor by `mss`.
    pub(crate) segments: Divisor,
    /// Header bytes of a data segment on the wire.
    pub(crate) header: u16,
    /// Wire size of a SYN, or of an ACK without the option of an echo, bytes.
    pub(crate) ack_wire: u16,
    pub(crate) receive_window: u32,
    /// Resolution of the timestamp clock, at least one nanosecond.
    clock: Divisor,
    /// `true` if retransmissions are ECN-capable: by parameter, or as the controller reads the ECN
    /// field of all data. No effect without `ecn`.
    pub(crate) ecn_retransmissions: bool,
    pub(crate) steering: Steering,
    pub(crate) plan: Plan,
    pub(crate) rto: RtoPolicy,
    pub(crate) syn_rto: RtoPolicy,
}

/// Factory of controllers, shared by clones of the configuration.
#[derive(Clone)]
struct ControllerFactory(Arc<Make>);
type Make = dyn Fn(&Start) -> Box<dyn DynController> + Send + Sync;

impl fmt::Debug for ControllerFactory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ControllerFactory")
    }
}

impl Config {
    /// Derives the values that endpoints need; `params` must have passed their check.
    #[must_use]
    pub fn new(params: Params, controller: ControllerParams) -> Self {
        let small = |bytes: u64| u16::try_from(bytes).unwrap_or(u16::MAX);
        let start = start(&params, params.windows.initial_window);
        let first_controller = controller.build(&start);
        let steering = Steering::of(&first_controller);
        Self {
            mss: params.packets.mss.0,
            segments: Divisor::new(params.packets.mss.0),
            header: small(params.packets.header.0),
            ack_wire: small(params.packets.ack_size.0),
            receive_window: u32::try_from(params.windows.receive_window.0).unwrap_or(u32::MAX),
            rto: params.rto_policy(),
            syn_rto: params.syn_rto_policy(),
            clock: Divisor::new(params.rtt.clock.0),
            ecn_retransmissions: params.ecn.ecn_retransmissions || steering.reads_ecn_field,
            steering,
            plan: Plan::of(&params, &steering),
            first_controller,
            custom_controller: None,
            custom_echo: None,
            params,
            controller,
        }
    }

    /// Returns the configuration with user-defined controllers, which `make` creates.
    #[must_use]
    pub fn with_controller(
        self,
        make: impl Fn(&Start) -> Box<dyn DynController> + Send + Sync + 'static,
    ) -> Self {
        let first_controller = AnyController::Boxed(make(&self.start()));
        let steering = Steering::of(&first_controller);
        let ecn_retransmissions = self.params.ecn.ecn_retransmissions || steering.reads_ecn_field;
        let custom_controller = Some(ControllerFactory(Arc::new(make)));
        let plan = Plan::of(&self.params, &steering);
        Self { first_controller, steering, plan, custom_controller, ecn_retransmissions, ..self }
    }

    /// Returns the configuration with a user-defined echo policy; each receiver begins with a
    /// clone.
    #[must_use]
    pub fn with_echo(self, policy: Box<dyn DynEcho>) -> Self {
        Self { custom_echo: Some(policy), ..self }
    }

    /// Returns the echo policy of a new receiver; `None` for classic ECE.
    pub(crate) fn new_echo(&self) -> Option<Box<dyn DynEcho>> {
        let custom = self.custom_echo.as_ref().map(|policy| policy.boxed_clone());
        custom.or_else(|| self.params.acks.echo.policy())
    }

    /// Returns the sizes and windows that a controller begins with.
    #[must_use]
    pub fn start(&self) -> Start {
        start(&self.params, self.params.windows.initial_window)
    }

    /// Returns the controller of a new connection.
    pub(crate) fn new_controller(&self) -> AnyController {
        self.first_controller.clone()
    }

    /// `true` if the controller steers by delivery rates.
    pub(crate) fn by_rate(&self) -> bool {
        self.steering.by_rate
    }

    /// Returns the controller of a connection whose SYN or SYN-ACK was lost: its initial window is
    /// one segment (RFC 5681 § 3.1), its threshold `ssthresh_after_syn_loss` if that is set.
    pub(crate) fn controller_after_syn_loss(&self) -> AnyController {
        let mut start = start(&self.params, 1);
        if let Some(ssthresh) = self.params.windows.ssthresh_after_syn_loss {
            start.initial_ssthresh = ssthresh.0;
        }
        match &self.custom_controller {
            Some(ControllerFactory(make)) => AnyController::Boxed(make(&start)),
            None => self.controller.build(&start),
        }
    }

    /// Returns the signer of timestamps.
    pub(crate) const fn signer(&self) -> Signer {
        Signer::new(&self.params.signature, self.clock)
    }

    /// Rounds a time in nanoseconds down to a tick of the timestamp clock.
    #[inline]
    pub(crate) const fn tick(&self, ns: u64) -> u64 {
        ns - self.clock.divide(ns).1
    }

    /// Returns an RTT as the timestamp clock measures it, at least one tick: both ends are rounded
    /// down.
    #[inline]
    pub(crate) fn measured(&self, from: u64, to: u64) -> Duration {
        Duration((self.tick(to) - self.tick(from)).max(self.clock.get()))
    }
}

/// Start of a controller with an initial window of this many segments.
fn start(params: &Params, initial_segments: u32) -> Start {
    Start {
        mss: params.packets.mss.0 as u32,
        initial_window: u64::from(initial_segments) * params.packets.mss.0,
        initial_ssthresh: params.windows.initial_ssthresh.map_or(u64::MAX, |s| s.0),
        max_window: params.windows.max_window.map_or(u64::MAX, |w| w.0),
        delayed_acks: params.acks.ack_every > 1,
    }
}

/// Properties of a controller's type that would otherwise be queried per packet.
#[derive(Clone, Copy, Debug)]
pub struct Steering {
    /// [`cwnd_cc::Controller::rate_applies_at_once`].
    pub paces_anew: bool,
    /// [`cwnd_cc::Controller::is_rate_based`].
    pub by_rate: bool,
    /// `true` if there is a [`cwnd_cc::Controller::spacing`].
    pub spaces: bool,
    /// [`cwnd_cc::Controller::ignores_delayed_acks`].
    pub ignores_held_acks: bool,
    /// [`cwnd_cc::Controller::reads_ecn_field`].
    pub reads_ecn_field: bool,
}

impl Steering {
    pub fn of(controller: &AnyController) -> Self {
        Self {
            paces_anew: controller.rate_applies_at_once(),
            by_rate: controller.is_rate_based(),
            spaces: controller.spacing().is_some(),
            ignores_held_acks: controller.ignores_delayed_acks(),
            reads_ecn_field: controller.reads_ecn_field(),
        }
    }
}

/// Choices of the senders of a group.
#[derive(Clone, Copy, Debug)]
pub struct Plan {
    /// Rule that detects losses.
    pub detection: Detection,
    /// Rule that detects lost retransmissions by their order; `None` if RACK or the timer does, and
    /// without SACK.
    pub lost_retransmission_rule: Option<LossByOrder>,
    /// `true` if senders have none of these: RACK, detection of lost retransmissions, F-RTO, Eifel,
    /// PRR, growth by delivered data or at the end of a recovery, `reduced_window_ends_recovery`,
    /// `reneging_shortens_rto`, `push_bursts`, a `cwnd_limited` other than `last`, and
    /// `controller_rtt`.
    pub plain: bool,
    /// Source of the RTT samples that the controller sees, and `true` if ACKs of one segment count.
    pub rtt_source: (RttFrom, bool),
    /// `true` if senders keep a [`ControllerRtt`](crate::controller_rtt::ControllerRtt): the
    /// controller's RTT samples are not those of the retransmission timer, delivery rates steer it,
    /// delays are recorded, or timestamps are signed.
    pub controller_rtt: bool,
    /// `true` if the timer's samples come from a log of send times although there is no SACK.
    pub times_each: bool,
    /// `true` if one segment per round trip is timed, unless `times_each`: without timestamps and
    /// without a log of send times, or if only such a segment ends a backoff.
    pub times_one: bool,
    /// `true` if new data is timed or its send time logged as it is sent.
    pub logs_new_data: bool,
    /// Loss handling without SACK.
    pub sackless: SacklessPlan,
    /// Fast recovery.
    pub recovery: RecoveryPlan,
    /// Undo of reductions for losses that were none.
    pub undo: UndoPlan,
    /// Restarts of the retransmission timer.
    pub rto_restart: RtoRestartPlan,
}

// Behaviours that `loss_rule = "rack"` brings beside RACK itself, each with the function of Linux
// that it follows. Of these, `recovers_in_loss` and `timeouts_by_dsack` also need a key.

/// Loss handling of a sender without SACK.
#[derive(Clone, Copy, Debug)]
pub struct SacklessPlan {
    /// `true` if duplicate ACKs count as segments that arrived, and a timeout marks segments lost
    /// in place of going back (Linux `tcp_add_reno_sack`, `tcp_timeout_mark_lost`).
    pub marks_losses: bool,
    /// `true` if a recovery with proportional rate reduction is held at its recovery point even if
    /// nothing is outstanding (Linux `tcp_is_non_sack_preventing_reopen`).
    pub holds_when_idle: bool,
}

/// Fast recovery beyond RFC 6582 and RFC 6675.
#[derive(Clone, Copy, Debug)]
pub struct RecoveryPlan {
    /// `true` if a recovery leaves retransmissions alone that are in flight as it begins (Linux
    /// `tcp_xmit_retransmit_queue`, `TCPCB_SACKED_RETRANS`).
    pub keeps_retransmissions: bool,
    /// `true` if the fast retransmit waits for the quota of a proportional rate reduction that has
    /// sent (Linux `tcp_cwnd_reduction`, `prr_out`).
    pub fast_retransmit_waits: bool,
    /// `true` if a lost retransmission, or any loss that the reordering timer finds, begins a
    /// recovery while a timeout is repaired (Linux `tcp_fastretrans_alert`, `FLAG_LOST_RETRANS`).
    pub recovers_in_loss: bool,
}

/// Undo of reductions beyond RFC 3522 and RFC 5682.
#[derive(Clone, Copy, Debug)]
pub struct UndoPlan {
    /// `true` if the reduction of a fast recovery may be undone (RFC 4015 § 3.4; Linux
    /// `tcp_init_undo`, `tcp_try_undo_recovery`).
    pub recoveries: bool,
    /// `true` if a timeout is undone once D-SACKs report all its retransmissions (RFC 3708 § 3;
    /// Linux `tcp_try_undo_loss`, `undo_retrans`).
    pub timeouts_by_dsack: bool,
    /// `true` if every echo in the repair of a timeout is examined, not the first alone as in RFC
    /// 3522 § 3.2 (Linux `tcp_process_loss`).
    pub examines_each_echo: bool,
    /// `true` if an undo restores a threshold of at least three quarters of the window (Linux
    /// `tcp_current_ssthresh`).
    pub raises_ssthresh: bool,
}

/// Restarts of the retransmission timer beyond RFC 6298 § 5.
#[derive(Clone, Copy, Debug)]
pub struct RtoRestartPlan {
    /// `true` if each partial ACK restarts the timer, not the first alone as in RFC 6582 § 3.2 (3)
    /// (RFC 6675 § 6 with SACK; Linux `tcp_clean_rtx_queue`, `tcp_rearm_rto`).
    pub at_each_partial_ack: bool,
    /// `true` if a retransmission of the first outstanding segment restarts the timer (Linux
    /// `tcp_xmit_retransmit_queue`, `rearm_timer`).
    pub at_retransmission_of_first: bool,
}

impl Plan {
    pub fn of(params: &Params, steering: &Steering) -> Self {
        let rack = params.detection.loss_rule == LossRule::Rack;
        let (from, single_segment_acks) = rtt_source(params, steering);
        let differs = from != RttFrom::Timer || !single_segment_acks;
        let timing = &params.timing;
        let controller_rtt = differs
            || timing.rtt_every == RttEvery::Window
            || timing.record_delays
            || steering.by_rate
            || params.signature.timestamp_signature != 0;
        let sack = params.recovery.recovery == Recovery::Sack;
        let logged = rack && params.rtt.rtt_from_notes;
        let times_each = logged && !sack;
        let newreno = params.recovery.recovery == Recovery::NewReno;
        let once = params.rto.rto_backoff_until == BackoffUntil::SentOnce;
        let times_one = !times_each && (once || !params.rtt.timestamps && !logged);
        Self {
            detection: Detection::of(params),
            lost_retransmission_rule: LossByOrder::of(params),
            plain: is_plain(params) && !controller_rtt,
            rtt_source: (from, single_segment_acks),
            controller_rtt,
            times_each,
            times_one,
            logs_new_data: times_one || logged || rack && sack || differs || steering.by_rate,
            sackless: SacklessPlan { marks_losses: rack && newreno, holds_when_idle: rack },
            recovery: RecoveryPlan {
                keeps_retransmissions: rack,
                fast_retransmit_waits: rack && sack,
                recovers_in_loss: rack && params.recovery.recovers_in_loss,
            },
            undo: UndoPlan {
                recoveries: rack && (sack || newreno),
                timeouts_by_dsack: rack && params.acks.dsack,
                examines_each_echo: rack,
                raises_ssthresh: rack,
            },
            rto_restart: RtoRestartPlan {
                at_each_partial_ack: rack || !newreno,
                at_retransmission_of_first: rack,
            },
        }
    }
}

/// Returns the source of the controller's RTT samples, and `true` if ACKs of one segment count. If
/// ACKs are delayed and the controller ignores delayed ones, the newest segment replaces the timer
/// as source, and ACKs of one segment do not count; the sources `oldest` and `one-way` stay as set.
fn rtt_source(params: &Params, steering: &Steering) -> (RttFrom, bool) {
    let timing = &params.timing;
    let prompt = params.acks.ack_every > 1 && steering.ignores_held_acks;
    match timing.rtt_from {
        RttFrom::Timer if prompt => (RttFrom::Newest, false),
        from @ (RttFrom::Newest | RttFrom::Sack) if prompt => (from, false),
        from => (from, timing.rtt_lone_acks || params.acks.ack_every == 1),
    }
}

fn is_plain(params: &Params) -> bool {
    let undoes = params.spurious.timeout_frto || params.spurious.timeout_eifel;
    let by_time =
        params.detection.loss_rule == LossRule::Rack || params.detection.lost_retransmissions;
    let grows = params.validation.grow_by == GrowBy::Delivered || params.validation.grow_on_exit;
    let ends =
        params.recovery.reduced_window_ends_recovery || params.recovery.reneging_shortens_rto;
    let validates = params.validation.cwnd_limited != LimitedBy::Last || params.acks.push_bursts;
    !(undoes || by_time || grows || ends || validates || params.prr.prr)
}
