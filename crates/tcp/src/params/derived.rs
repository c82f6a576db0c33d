//! Values that follow from parameters.

use cwnd_cc::{Backoff, RtoPolicy};
use cwnd_packet::{Ability, Contract, Declares};
use cwnd_quantity::Divisor;

use super::{Params, PipeRule, Recovery};
use crate::echo::EchoKind;
use crate::seen::RttFrom;

impl Declares for Params {
    fn contract(&self) -> Contract {
        Contract::new()
            .provides(Ability::Pacing)
            .when(self.timestamps, |c| c.provides(Ability::Timestamps))
            .when(self.ack_every == 1 || self.timing.is_prompt(), |c| {
                c.provides(Ability::PromptRtt)
            })
            .when(self.obey_quench, |c| c.provides(Ability::ObeysQuench))
            .when(self.ecn, |c| c.provides(Ability::Ect))
            .when(self.timing.rtt_from == RttFrom::OneWay, |c| {
                c.needs(Ability::EchoesDelay, "there is no round-trip time to see")
            })
            .when(self.ecn && self.obey_ece, |c| {
                let why = "ECN never acts";
                let c = c.provides(Ability::ObeysEce);
                c.wants(Ability::Marks, why).wants(Ability::EchoesEce, why)
            })
    }
}

impl Params {
    /// Policy of the retransmission timer of data.
    #[must_use]
    pub fn rto_policy(&self) -> RtoPolicy {
        RtoPolicy {
            min: self.rto_min,
            initial: self.rto_initial,
            max: self.rto_max,
            granularity: Divisor::new(self.rto_granularity.0),
            variation_min: self.rto_granularity.max(self.rto_variation_min),
            slop: self.rto_slop,
            backoff: self.rto_backoff,
            backoff_after: self.rto_backoff_after,
            backoff_rounds: self.rto_backoff_rounds,
        }
    }

    /// `true` if the first new data after a reduction carries CWR (RFC 3168 § 6.1.2). The receiver
    /// then echoes marks.
    #[must_use]
    pub fn says_cwr(&self) -> bool {
        self.ecn && self.echo != EchoKind::None
    }

    /// `true` if recovery counts the data in the network by ACKs.
    #[must_use]
    pub fn counts_pipe(&self) -> bool {
        self.pipe_rule == PipeRule::CountedByAcks && self.recovery == Recovery::Sack
    }

    /// Policy of the retransmission timer of SYNs.
    #[must_use]
    pub fn syn_rto_policy(&self) -> RtoPolicy {
        let data = self.rto_policy();
        match self.syn_backoff_after {
            Some(backoff_after) if self.rto_backoff != Backoff::Off => RtoPolicy {
                backoff: Backoff::After,
                backoff_after,
                backoff_rounds: self.syn_backoff_rounds,
                ..data
            },
            _ => data,
        }
    }
}
