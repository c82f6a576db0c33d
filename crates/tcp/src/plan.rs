//! Choices of senders that follow from the parameters and the controller of a group, made once so
//! that they cost nothing per packet.

use cwnd_cc::{AnyController, Controller as _};

use crate::cwnd_validation::LimitedBy;
use crate::loss_detection::{Detection, LossByOrder};
use crate::params::{BackoffUntil, GrowBy, LossRule, Params, Recovery};
use crate::rtt_source::{RttEvery, RttFrom};

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
    /// PRR, growth by delivered data or at the end of a recovery, recoveries that end with a
    /// reduction for another cause, a shorter timeout after reneging, PSH bursts, cwnd validation
    /// beyond the last transmission, and `controller_rtt`.
    pub plain: bool,
    /// Source of the RTT samples that the controller sees, and `true` if ACKs of one segment count.
    pub rtt_source: (RttFrom, bool),
    /// `true` if senders keep a [`ControllerRtt`](crate::controller_rtt::ControllerRtt): the
    /// controller's RTT samples are not those of the retransmission timer, delivery rates steer it,
    /// delays are recorded, or timestamps are signed.
    pub controller_rtt: bool,
    /// `true` if the send time of each segment is logged although there is no SACK.
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
// that it follows. Only `recovers_in_loss` and `timeouts_by_dsack` have a key that turns them off.

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
    /// `true` if a lost retransmission begins a recovery while a timeout is repaired (Linux
    /// `tcp_fastretrans_alert`, `FLAG_LOST_RETRANS`).
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
    /// (RFC 6675 § 5.1 with SACK; Linux `tcp_clean_rtx_queue`, `tcp_rearm_rto`).
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
