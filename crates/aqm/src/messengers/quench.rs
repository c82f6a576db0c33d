//! Source quenches: the source of a packet that the queue marks, or drops, is told at once (BECN § IV-A).

use cwnd_units::{Ability, Contract, Declares, Duration, Time, params};

use crate::messenger::{Messenger, Outcome, Verdict};
use crate::qdisc::Context;

params! {
    /// An ICMP source quench (RFC 792) for what the queue decides about data; one bit says whether the packet was marked or
    /// dropped.
    pub struct Params {
        /// Whether only sources of ECN-capable packets are told.
        #[source("BECN § IV-A: if the ECT bit is set; RFC 792 tells all")]
        pub ect_only: bool = true,
        /// No two messages leave the router in less time than this; what falls between is not told.
        #[source("BECN § IV-A has no limit; RFC 1812 § 4.3.2.8 wants one")]
        pub interval: Option<Duration> = None,
    }
}

impl Declares for Params {
    fn contract(&self) -> Contract {
        Contract::new()
            .provides(Ability::Quenches)
            .wants(Ability::ObeysQuench, "source quenches change nothing")
    }
}

/// Tells of marks, but of none that came with CE, and of drops.
#[derive(Debug)]
pub struct Quench {
    ect_only: bool,
    interval: Duration,
    /// When the next may leave.
    free: Time,
    withheld: u64,
}

impl Quench {
    /// A messenger with these parameters.
    #[must_use]
    pub fn new(params: &Params) -> Self {
        let Params { ect_only, interval } = *params;
        let interval = interval.unwrap_or(Duration::ZERO);
        Self { ect_only, interval, free: Time::ZERO, withheld: 0 }
    }
}

impl<P> Messenger<P> for Quench {
    fn tells(&mut self, verdict: &Verdict<P>, context: &dyn Context<P>) -> bool {
        let told = match verdict.what {
            // BECN § IV-A: "if packet is not already marked".
            Outcome::Marked { already } => !already,
            Outcome::Dropped => !self.ect_only || context.ecn(&verdict.packet).is_ect(),
        };
        if !told {
            return false;
        }
        if verdict.at < self.free {
            self.withheld += 1;
            return false;
        }
        self.free = verdict.at + self.interval;
        true
    }

    fn count(&self, each: &mut dyn FnMut(&'static str, u64)) {
        each("quenches_withheld", self.withheld);
    }
}
