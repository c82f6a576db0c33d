//! Parameters of both ends of a connection, grouped by the part that they belong to.

use cwnd_cc::{Backoff, RtoPolicy};
use cwnd_packet::{Ability, Contract, HasContract};
use cwnd_quantity::{Divisor, Duration};
use cwnd_schema::{Invalid, Schema, key};

pub mod acks;
pub mod connection;
pub mod detection;
pub mod ecn;
mod parts;
pub mod quench;
pub mod recovery;
pub mod rto;
pub mod rtt;

use crate::cwnd_validation;
pub use crate::cwnd_validation::GrowBy;
use crate::echo::EchoKind;
use crate::prr;
use crate::receiver::misbehaviour;
pub use crate::rtt::RttArithmetic;
use crate::signed_timestamps;
use crate::spurious_timeout;
pub use acks::AckRule;
pub use connection::{ProbingParams, TsoParams, TsoSizing, WindowProbe};
pub use detection::{LossRule, PipeRule};
pub use ecn::EchoAtOne;
pub use parts::{PARTS, Part};
pub use quench::{QuenchAnswer, QuenchCheck, SquidParams};
pub use recovery::{FlightSize, Recovery};
pub use rto::BackoffUntil;
pub use rtt::{RttEvery, RttFrom, TimingParams};

/// Parameters of both ends of a connection, apart from the congestion controller.
#[derive(Clone, Debug, PartialEq, Schema)]
#[schema(presets, check = Self::consistent)]
#[order(flight_size after prr_on_ecn)]
#[order(rescue_holes to limited_transmit after whole_segments)]
#[order(grow_by to grow_on_exit after limited_transmit)]
#[order(push_bursts after cheat_load)]
#[order(echo after squid_period)]
#[order(ecn_retransmissions to ecn_in_recovery after echo)]
#[order(reduced_window_ends_recovery to loss_reduces_again after ecn_in_recovery)]
#[order(ecn_at_one after loss_reduces_again)]
#[order(rtt_arithmetic to rtt_from_notes after rto_slop)]
#[order(timeout_keeps_threshold after rtt_from_notes)]
#[order(rto_backoff to rto_after_syn_loss after timeout_eifel)]
#[order(idle_restart after rto_after_syn_loss)]
#[idle(
    [lost_retransmissions_reduce],
    !self.detection.lost_retransmissions,
    "without the part `lost-retransmissions`"
)]
#[idle(
    [
        pipe_rule, rescue_holes, lost_retransmissions, lost_retransmissions_reduce,
        sack_in_old_acks, reneging_shortens_rto, dsack
    ],
    self.recovery.recovery != Recovery::Sack,
    "without `recovery = \"sack\"`"
)]
#[idle(
    [tail_loss_probe, whole_segments, recovers_in_loss, rtt_from_notes],
    self.recovery.recovery != Recovery::Sack,
    "without `recovery = \"sack\"`"
)]
#[idle(
    [tail_loss_probe, whole_segments, recovers_in_loss, rtt_from_notes],
    self.detection.loss_rule != LossRule::Rack,
    "without the part `rack`"
)]
#[idle([timeout_eifel], !self.rtt.timestamps, "without `timestamps`")]
#[idle(
    [
        syn_retries, ssthresh_after_syn_loss, syn_backoff_after, syn_backoff_rounds,
        rto_after_syn_loss
    ],
    !self.connection.handshake,
    "without `handshake`"
)]
#[idle([syn_backoff_rounds], self.rto.syn_backoff_after.is_none(), "without `syn_backoff_after`")]
pub struct Params {
    /// Sizes of packets.
    #[flatten(connection::Packets::default())]
    pub packets: connection::Packets,
    /// Windows at the start, and their bounds.
    #[flatten(connection::Windows::default())]
    pub windows: connection::Windows,
    /// Beginning of a connection, and its end when nothing arrives.
    #[flatten(connection::Params::default())]
    pub connection: connection::Params,
    /// Recovery from losses.
    #[flatten(recovery::Params::default())]
    pub recovery: recovery::Params,
    /// Proportional rate reduction.
    #[flatten(prr::Params::default())]
    pub prr: prr::Params,
    /// Detection of losses.
    #[flatten(detection::Params::default())]
    pub detection: detection::Params,
    /// RTT samples and their estimator.
    #[flatten(rtt::Params::default())]
    pub rtt: rtt::Params,
    /// Round-trip times that a controller sees.
    #[flatten(TimingParams::default())]
    pub timing: TimingParams,
    /// Timestamps that cannot be forged.
    #[flatten(signed_timestamps::Params::default())]
    pub signature: signed_timestamps::Params,
    /// ACKs and their feedback.
    #[flatten(acks::Params::default())]
    pub acks: acks::Params,
    /// Misbehaviour of the receiver.
    #[flatten(misbehaviour::Params::default())]
    pub cheat: misbehaviour::Params,
    /// Segmentation offload.
    #[flatten(TsoParams::default())]
    pub tso: TsoParams,
    /// A sender's part of ECN.
    #[flatten(ecn::Params::default())]
    pub ecn: ecn::Params,
    /// Response to source quenches.
    #[flatten(quench::Params::default())]
    pub quench: quench::Params,
    /// Retransmission timer and its backoff.
    #[flatten(rto::Params::default())]
    pub rto: rto::Params,
    /// Response to spurious timeouts.
    #[flatten(spurious_timeout::Params::default())]
    pub spurious: spurious_timeout::Params,
    /// Probing of a closed receive window.
    #[flatten(ProbingParams::default())]
    pub probing: ProbingParams,
    /// Growth and validation of the congestion window.
    #[flatten(cwnd_validation::Params::default())]
    pub validation: cwnd_validation::Params,
}

impl Params {
    /// Returns the parameters changed by `set`.
    #[must_use]
    pub fn with(mut self, set: impl FnOnce(&mut Self)) -> Self {
        set(&mut self);
        self
    }

    /// Checks values together; returns the first contradiction with its key.
    fn consistent(&self) -> Result<(), Invalid> {
        let invalid = |key, message: &str| Err(Invalid { key, message: message.to_owned() });
        if self.packets.header.0 + self.packets.mss.0 > 65_535 {
            return invalid(
                key!(Self: packets.mss),
                "a packet takes at most 65535 bytes on the wire: `mss` + `header` is more",
            );
        }
        if self.windows.receive_window.0 < self.packets.mss.0 {
            return invalid(
                key!(Self: windows.receive_window),
                "the receive window must hold at least one segment (`mss`)",
            );
        }
        if self.windows.max_window.is_some_and(|w| w.0 < self.packets.mss.0) {
            return invalid(
                key!(Self: windows.max_window),
                "the largest window must hold at least one segment (`mss`)",
            );
        }
        if self.prr.prr && !matches!(self.recovery.recovery, Recovery::Sack | Recovery::NewReno) {
            return invalid(
                key!(Self: recovery.recovery),
                "`recovery = \"tahoe\"` and `\"reno\"` need a stack without the part `prr`",
            );
        }
        if self.signature.timestamp_signature > 0 && !self.rtt.timestamps {
            return invalid(
                key!(Self: signature.timestamp_signature),
                "there is nothing to sign without `timestamps`",
            );
        }
        if self.rto.rto_min > self.rto.rto_max || self.rto.rto_initial > self.rto.rto_max {
            return invalid(
                key!(Self: rto.rto_max),
                "the largest timeout is below the smallest or the initial one",
            );
        }
        if self.rto.rto_min == Duration::ZERO && self.rto.rto_granularity == Duration::ZERO {
            return invalid(
                key!(Self: rto.rto_min),
                "a timeout of zero expires for ever; give `rto_min` or `rto_granularity`",
            );
        }
        Ok(())
    }

    /// Returns the policy of the retransmission timer of data.
    #[must_use]
    pub fn rto_policy(&self) -> RtoPolicy {
        RtoPolicy {
            min: self.rto.rto_min,
            initial: self.rto.rto_initial,
            max: self.rto.rto_max,
            granularity: Divisor::new(self.rto.rto_granularity.0),
            variation_min: self.rto.rto_granularity.max(self.rto.rto_variation_min),
            slop: self.rto.rto_slop,
            backoff: self.rto.rto_backoff,
            backoff_after: self.rto.rto_backoff_after,
            backoff_rounds: self.rto.rto_backoff_rounds,
        }
    }

    /// `true` if the first ECN-capable segment after a reduction carries CWR (RFC 3168 § 6.1.2):
    /// with `ecn`, unless `echo` is none.
    #[must_use]
    pub fn says_cwr(&self) -> bool {
        self.ecn.ecn && self.acks.echo != EchoKind::None
    }

    /// `true` if recovery counts the data in the network by ACKs (`pipe_rule = "sack1"`, with SACK
    /// only).
    #[must_use]
    pub fn counts_pipe(&self) -> bool {
        self.detection.pipe_rule == PipeRule::CountedByAcks
            && self.recovery.recovery == Recovery::Sack
    }

    /// Returns the policy of the retransmission timer of SYNs.
    #[must_use]
    pub fn syn_rto_policy(&self) -> RtoPolicy {
        let data = self.rto_policy();
        match self.rto.syn_backoff_after {
            Some(backoff_after) if self.rto.rto_backoff != Backoff::Off => RtoPolicy {
                backoff: Backoff::After,
                backoff_after,
                backoff_rounds: self.rto.syn_backoff_rounds,
                ..data
            },
            _ => data,
        }
    }
}

impl HasContract for Params {
    fn contract(&self) -> Contract {
        Contract::new()
            .provides(Ability::Pacing)
            .when(self.rtt.timestamps, |c| c.provides(Ability::Timestamps))
            .when(self.acks.ack_every == 1 || self.timing.is_prompt(), |c| {
                c.provides(Ability::PromptRtt)
            })
            .when(self.quench.obey_quench, |c| c.provides(Ability::ObeysQuench))
            .when(self.ecn.ecn, |c| c.provides(Ability::Ect))
            .when(self.timing.rtt_from == RttFrom::OneWay, |c| {
                c.needs(Ability::EchoesDelay, "there is no round-trip time to see")
            })
            .when(self.ecn.ecn && self.ecn.obey_ece, |c| {
                let why = "ECN never acts";
                let c = c.provides(Ability::ObeysEce);
                c.wants(Ability::Marks, why).wants(Ability::EchoesEce, why)
            })
    }
}
