//! BMCC's router: marks each packet by comparing the load factor with the threshold that the
//! packet's identification stands for.
//!
//! Qazi, Andrew, Znati, *Congestion control using efficient explicit feedback*, 2009, § II; Andrew,
//! Hanly, Chan, Cui, *Adaptive deterministic packet marking*, IEEE Comm. Letters 10 (11), 2006.

use alloc::borrow::ToOwned as _;
use alloc::boxed::Box;

use cwnd_packet::{
    Ability, CongestionHeader, Contract, Ecn, Guidance, HasContract,
    adpm::{Scale, THRESHOLDS, hash},
};
use cwnd_quantity::{LinkProperties, Rate, Rng, Time};
use cwnd_schema::{Choice, Invalid, PresetOf, Presets, RegistryEntry, Schema, key};

use crate::load::{self, LoadFactor};
use crate::meters::{Meter, MeterInfo};
use crate::qdisc::{Backlog, Context, Packet, Reason};

/// Reason of a CE mark by this meter: a load factor of u or more.
pub const OVERLOAD: Reason = Reason::named("overload");

/// Packet identification that stands for a threshold.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Choice)]
pub enum Identification {
    /// The one that the packet came with.
    #[name("packet")]
    Packet,
    /// One that the meter draws at random and writes into ECN-capable packets that carry no load
    /// yet, for senders whose own has no meaning. Only the first meter on a path may draw. A sender
    /// could influence a counter, but not random values.
    #[name("drawn")]
    Drawn,
}

/// Name and description in scenarios.
pub const ENTRY: RegistryEntry = RegistryEntry::new(
    "adpm",
    "Whether the load factor is above the threshold that a packet stands for (BMCC).",
);

/// Adaptive deterministic packet marking of the load factor.
#[derive(Clone, Debug, PartialEq, Schema)]
#[schema(presets, check = Self::consistent)]
pub struct Params {
    /// Measurement of the load factor.
    #[flatten(load::Params::default())]
    pub load: load::Params,
    /// η₀: smaller load factors are not distinguished.
    #[default(0.15, "BMCC § II-D.2: 0.15")]
    #[bounds(above 0.0, below 1.0; "it is a load below `high`")]
    pub least: f64,
    /// η: a quarter of the thresholds lies between `least` and this, a quarter between this and 1.
    #[default(0.75, "BMCC § II-D.2: 0.75")]
    #[bounds(above 0.0, below 1.0; "it is between idle and full")]
    pub high: f64,
    /// u: half of the thresholds lies between 1 and this; with a load factor of this or more all
    /// packets leave with CE.
    #[default(1.2, "BMCC § II-D.3: 1.2")]
    #[bounds(above 1.0; "it is an overload")]
    pub most: f64,
    /// Packet identification that stands for a threshold.
    #[default(Identification::Packet, "BMCC § II-B: that of the IP header")]
    pub identification: Identification,
}

impl Presets for Params {
    const PRESETS: &'static [PresetOf<Self>] =
        &[PresetOf::new("paper", "Qazi, Andrew, Znati 2009; the default.", Self::default)];
}

impl Params {
    /// Checks values together.
    fn consistent(&self) -> Result<(), Invalid> {
        if self.least > self.high {
            return Err(Invalid {
                key: key!(Self: least),
                message: "`least` is above `high`: no threshold could be between them".to_owned(),
            });
        }
        Ok(())
    }
}

impl MeterInfo for Params {
    fn build<P: Packet>(&self, _: &LinkProperties, rng: Rng) -> Option<Box<dyn Meter<P>>> {
        Some(Box::new(Adpm::new(self, rng)))
    }
}

impl HasContract for Params {
    fn contract(&self) -> Contract {
        Contract::new()
            .provides(Ability::WritesBounds)
            .provides(Ability::Marks)
            .wants(Ability::Ect, "the meter never writes")
            .when(self.identification == Identification::Packet, |c| {
                c.wants(Ability::SendsId, "the meter tells nothing but overload")
            })
    }
}

/// Comparison of the last interval's load with the thresholds of packets.
#[derive(Debug)]
pub struct Adpm {
    load: LoadFactor,
    scale: Scale,
    /// Random numbers for identifications; `None` if packets keep their own.
    rng: Option<Rng>,
    /// Number of thresholds that the load exceeds.
    thresholds_exceeded: u32,
    intervals: u64,
    over: u64,
    beyond: u64,
    marked_below_load: u64,
    identified: u64,
}

impl Adpm {
    /// Creates a meter that draws from `rng`.
    #[must_use]
    pub fn new(params: &Params, rng: Rng) -> Self {
        Self {
            load: LoadFactor::new(&params.load),
            scale: Scale { min: params.least, high: params.high, max: params.most },
            rng: (params.identification == Identification::Drawn).then_some(rng),
            thresholds_exceeded: 0,
            intervals: 0,
            over: 0,
            beyond: 0,
            marked_below_load: 0,
            identified: 0,
        }
    }

    /// Draws an identification for a packet that carries no load yet.
    #[cold]
    fn identify<P>(&mut self, packet: &mut P, context: &mut dyn Context<P>) {
        if let Some(rng) = &mut self.rng
            && context.ecn(packet) == Ecn::Ect0
            && context.set_identification(packet, rng.bits() as u16)
        {
            self.identified += 1;
        }
    }
}

impl<P: Packet> Meter<P> for Adpm {
    fn arrives(&mut self, _: Time, packet: &mut P, _: Backlog, _: &mut dyn Context<P>) {
        self.load.arrives(packet.wire_bytes());
    }

    // § II-B. The most loaded link on the path prevails: (01) is never reset and (11) never
    // changed, whichever router wrote it.
    fn leaves(&mut self, now: Time, packet: &mut P, _: Backlog, context: &mut dyn Context<P>) {
        if self.rng.is_some() {
            self.identify(packet, context);
        }
        if self.thresholds_exceeded == 0 {
            return;
        }
        if self.thresholds_exceeded == THRESHOLDS {
            let before = context.ecn(packet);
            if before.is_ect() {
                context.set_ecn(packet, Ecn::Ce);
                context.marked(now, packet, OVERLOAD, before == Ecn::Ce);
            }
            return;
        }
        // The threshold is checked first: most packets stand for one above the load, or are ACKs.
        let Some(&mut CongestionHeader::Id(id)) = context.header(packet) else { return };
        if u32::from(hash(id)) < self.thresholds_exceeded && context.ecn(packet) == Ecn::Ect0 {
            self.marked_below_load += 1;
            context.set_ecn(packet, Ecn::Ect1);
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
        self.thresholds_exceeded = self.scale.above(self.load.factor());
        self.intervals += 1;
        self.over += u64::from(self.load.factor() >= 1.0);
        self.beyond += u64::from(self.thresholds_exceeded == THRESHOLDS);
    }

    fn guidance(&self) -> Option<Guidance> {
        Some(Guidance::Load(self.load.factor()))
    }

    fn count(&self, each: &mut dyn FnMut(&'static str, u64)) {
        each("load_intervals", self.intervals);
        each("load_intervals_over", self.over);
        each("load_intervals_beyond", self.beyond);
        each("packets_below_load", self.marked_below_load);
        each("packets_identified", self.identified);
    }
}
