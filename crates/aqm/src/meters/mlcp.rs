//! MLCP's router: packets leave with the highest of sixteen load levels of the links on their path.
//!
//! Qazi, Znati, *On the design of load factor based congestion control protocols for
//! next-generation networks*, INFOCOM 2008. Only its abstract was available. The load factor is
//! that of BMCC by the same author (Qazi, Andrew, Znati 2009, § II-A), and `cwnd_packet::mlcp`
//! defines the loads of the levels.

use alloc::borrow::ToOwned as _;
use alloc::boxed::Box;

use cwnd_packet::{
    Ability, CongestionHeader, Contract, Guidance, HasContract,
    mlcp::{HIGH, Scale},
};
use cwnd_quantity::{LinkProperties, Rate, Rng, Time};
use cwnd_schema::{Invalid, RegistryEntry, Schema, key};

use crate::load::{self, LoadFactor};
use crate::meters::{Meter, MeterInfo};
use crate::qdisc::{Backlog, Context, Packet};

/// Name and description in scenarios.
pub const ENTRY: RegistryEntry =
    RegistryEntry::new("mlcp", "A level of load, in four bits of a header (MLCP).");

/// A level of load in four bits.
#[derive(Clone, Debug, PartialEq, Schema)]
#[schema(check = Self::consistent)]
pub struct Params {
    /// Measurement of the load factor.
    #[flatten(load::Params::default())]
    pub load: load::Params,
    /// η₀: the lowest level is all that is below.
    #[default(0.15, "BMCC § II-D.2: 0.15")]
    #[bounds(above 0.0, below 1.0; "it is a load below `high`")]
    pub least: f64,
    /// η: below it the load is low, with seven levels from `least` on; from it on the load is high,
    /// which is one level.
    #[default(0.75, "BMCC § II-D.2: 0.75")]
    #[bounds(above 0.0, below 1.0; "it is between idle and full")]
    pub high: f64,
    /// u: overload has six levels from 1 to this, and one more.
    #[default(1.2, "BMCC § II-D.3: 1.2")]
    #[bounds(above 1.0; "it is an overload")]
    pub most: f64,
}

impl Params {
    /// Checks values together.
    fn consistent(&self) -> Result<(), Invalid> {
        if self.least > self.high {
            return Err(Invalid {
                key: key!(Self: least),
                message: "`least` is above `high`: no level could be between them".to_owned(),
            });
        }
        Ok(())
    }
}

impl MeterInfo for Params {
    fn build<P: Packet>(&self, _: &LinkProperties, _: Rng) -> Option<Box<dyn Meter<P>>> {
        Some(Box::new(Mlcp::new(self)))
    }
}

impl HasContract for Params {
    fn contract(&self) -> Contract {
        Contract::new()
            .provides(Ability::WritesLevel)
            .wants(Ability::SendsLevel, "the meter tells nobody")
    }
}

/// Raises the level in packets to that of the last interval.
#[derive(Debug)]
pub struct Mlcp {
    load: LoadFactor,
    scale: Scale,
    /// Level of the last interval.
    now: u8,
    /// Number of intervals with low load, high load and overload.
    intervals: [u64; 3],
    raised: u64,
}

impl Mlcp {
    /// Creates a meter.
    #[must_use]
    pub fn new(params: &Params) -> Self {
        Self {
            load: LoadFactor::new(&params.load),
            scale: Scale { min: params.least, high: params.high, max: params.most },
            now: 0,
            intervals: [0; 3],
            raised: 0,
        }
    }
}

impl<P: Packet> Meter<P> for Mlcp {
    fn arrives(&mut self, _: Time, packet: &mut P, _: Backlog, _: &mut dyn Context<P>) {
        self.load.arrives(packet.wire_bytes());
    }

    // The most loaded link on the path prevails.
    fn leaves(&mut self, _: Time, packet: &mut P, _: Backlog, context: &mut dyn Context<P>) {
        let Some(CongestionHeader::Level(carried)) = context.header(packet) else { return };
        if *carried < self.now {
            *carried = self.now;
            self.raised += 1;
        }
    }

    fn on_rate(&mut self, now: Time, rate: Rate) {
        self.load.on_rate(now, rate);
    }

    fn next_timer(&self) -> Option<Time> {
        Some(self.load.next_timer())
    }

    fn on_timer(&mut self, now: Time, backlog: Backlog) {
        if !self.load.on_timer(now, backlog) {
            return;
        }
        self.now = self.scale.level(self.load.factor());
        let kind = usize::from(self.now >= HIGH) + usize::from(self.now > HIGH);
        self.intervals[kind] += 1;
    }

    fn guidance(&self) -> Option<Guidance> {
        Some(Guidance::Load(self.load.factor()))
    }

    fn count(&self, each: &mut dyn FnMut(&'static str, u64)) {
        let [low, high, over] = self.intervals;
        each("load_intervals_low", low);
        each("load_intervals_high", high);
        each("load_intervals_over", over);
        each("levels_raised", self.raised);
    }
}
