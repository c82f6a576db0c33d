//! Choices that follow once from the parameters and the controller of a group, so that packets do
//! not make them.

use cwnd_cc::{AnyController, Controller as _};

use crate::loss_detection::{Detection, Overtaken};
use crate::params::{BackoffUntil, GrowBy, LossRule, Params, Recovery};
use crate::seen::{RttEvery, RttFrom};
use crate::validation::LimitedBy;

/// Properties of a controller's kind that packets would otherwise ask for.
#[derive(Clone, Copy, Debug)]
pub struct Steering {
    /// [`cwnd_cc::Controller::paces_anew`].
    pub paces_anew: bool,
    /// [`cwnd_cc::Controller::by_rate`].
    pub by_rate: bool,
    /// `true` if there is a [`cwnd_cc::Controller::spacing`].
    pub spaces: bool,
    /// [`cwnd_cc::Controller::ignores_held_acks`].
    pub ignores_held_acks: bool,
    /// [`cwnd_cc::Controller::reads_ecn_field`].
    pub reads_ecn_field: bool,
}

impl Steering {
    pub fn of(controller: &AnyController) -> Self {
        Self {
            paces_anew: controller.paces_anew(),
            by_rate: controller.by_rate(),
            spaces: controller.spacing().is_some(),
            ignores_held_acks: controller.ignores_held_acks(),
            reads_ecn_field: controller.reads_ecn_field(),
        }
    }
}

/// Choices of a sender.
#[derive(Clone, Copy, Debug)]
pub struct Plan {
    /// Rule by which losses are found.
    pub detection: Detection,
    /// Rule by which lost retransmissions are found, unless that is by time.
    pub overtaken: Option<Overtaken>,
    /// `true` if losses are found as [`LossRule::Rack`] says.
    pub by_time: bool,
    /// `true` if senders do what the RFCs ask of all, and nothing that only some stacks do: find
    /// losses by time or retransmissions that are lost, take reductions back or spread them, grow
    /// by what SACK reports or as a recovery ends, end one with its reduction, shorten the timeout
    /// when SACKed data is thrown away, watch bursts and how much of the window is used, or time
    /// segments for the controller.
    pub plain: bool,
    /// Round-trip times that the controller sees, and `true` if ACKs of one segment count.
    pub rtt_source: (RttFrom, bool),
    /// `true` if these are not the samples of the retransmission timer.
    pub controller_rtt: bool,
    /// `true` if each segment is timed though there is no SACK.
    pub times_each: bool,
    /// `true` if one segment a round trip is timed: without timestamps, where the times of others
    /// are not noted, or where only such a segment ends a backoff.
    pub times_one: bool,
    /// `true` if anything is noted of new data that goes.
    pub notes_new: bool,
}

impl Plan {
    pub fn of(params: &Params, steering: &Steering) -> Self {
        let by_time = params.detection.loss_rule == LossRule::Rack;
        let (from, lone) = rtt_source(params, steering);
        let apart = from != RttFrom::Timer || !lone;
        let own = &params.timing;
        let controller_rtt = apart
            || own.rtt_every == RttEvery::Window
            || own.note_delays
            || steering.by_rate
            || params.signature.timestamp_signature != 0;
        let sack = params.recovery.recovery == Recovery::Sack;
        let noted = by_time && params.rtt.rtt_from_notes;
        let times_each = noted && !sack;
        let once = params.rto.rto_backoff_until == BackoffUntil::SentOnce;
        let times_one = !times_each && (once || !params.rtt.timestamps && !noted);
        Self {
            detection: Detection::of(params),
            overtaken: Overtaken::of(params),
            by_time,
            plain: is_plain(params) && !controller_rtt,
            rtt_source: (from, lone),
            controller_rtt,
            times_each,
            times_one,
            notes_new: times_one || noted || by_time && sack || apart || steering.by_rate,
        }
    }
}

/// Round-trip times that the controller sees: only those that no delayed ACK makes longer, if it
/// asks for that.
fn rtt_source(params: &Params, steering: &Steering) -> (RttFrom, bool) {
    let own = &params.timing;
    let prompt = params.acks.ack_every > 1 && steering.ignores_held_acks;
    match own.rtt_from {
        RttFrom::Timer if prompt => (RttFrom::Newest, false),
        from @ (RttFrom::Newest | RttFrom::Sack) if prompt => (from, false),
        from => (from, own.rtt_lone_acks || params.acks.ack_every == 1),
    }
}

fn is_plain(params: &Params) -> bool {
    let takes_back = params.spurious.timeout_frto || params.spurious.timeout_eifel;
    let by_time =
        params.detection.loss_rule == LossRule::Rack || params.detection.lost_retransmissions;
    let grows = params.validation.grow_by == GrowBy::Delivered || params.validation.grow_on_exit;
    let ends = params.recovery.reduced_window_ends_recovery || params.recovery.reneging_hurries;
    let watches = params.validation.cwnd_limited != LimitedBy::Last || params.acks.push_bursts;
    !(takes_back || by_time || grows || ends || watches || params.prr.prr)
}
