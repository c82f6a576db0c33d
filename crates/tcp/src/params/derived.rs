//! Values derived from parameters: contract and policies of timers.

use cwnd_cc::{Backoff, RtoPolicy};
use cwnd_packet::{Ability, Contract, HasContract};
use cwnd_quantity::Divisor;

use super::{Params, PipeRule, Recovery};
use crate::echo::EchoKind;
use crate::rtt_source::RttFrom;

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

impl Params {
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
