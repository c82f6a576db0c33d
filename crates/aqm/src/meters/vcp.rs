//! VCP's router: each packet leaves with the highest of three loads of the links on its path.
//!
//! Xia, Subramanian, Stoica, Kalyanaraman, *One more bit is enough*, SIGCOMM 2005, § 3.2. Details
//! that it leaves open follow its authors' program for ns-2 (`vcp-queue.cc`).

use alloc::borrow::ToOwned as _;
use alloc::boxed::Box;

use cwnd_packet::{Ability, Contract, Ecn, Guidance, HasContract};
use cwnd_quantity::{LinkProperties, Rate, Rng, Time};
use cwnd_schema::{Invalid, PresetOf, Presets, RegistryEntry, Schema, key};

use crate::load::{self, LoadFactor};
use crate::meters::{Meter, MeterInfo};
use crate::qdisc::{Backlog, Context, Packet, Reason};

/// Reason of a CE mark by this meter: a load factor of `over` or more.
pub const OVERLOAD: Reason = Reason::named("overload");

/// Name and description in scenarios.
pub const ENTRY: RegistryEntry =
    RegistryEntry::new("vcp", "Low, high or overload, in the two bits of ECN (Xia et al. 2005).");

/// Low, high or overload, in the two bits of ECN.
#[derive(Clone, Debug, PartialEq, Schema)]
#[schema(presets, check = Self::consistent)]
pub struct Params {
    /// Measurement of the load factor.
    #[flatten(
        load::Params { target: 0.98, queue_weight: 0.5, queue_gain: 0.25,..load::Params::default() }
    )]
    pub load: load::Params,
    /// Load factor from which on the load is high.
    #[default(0.8, "Xia et al. 2005 § 3.1: 0.8")]
    #[bounds(above 0.0; "a load factor is above 0")]
    pub high: f64,
    /// Load factor from which on there is overload.
    #[default(1.0, "Xia et al. 2005 § 3.1: 1")]
    #[bounds(above 0.0; "a load factor is above 0")]
    pub over: f64,
}

impl Presets for Params {
    const PRESETS: &'static [PresetOf<Self>] = &[
        PresetOf::new("paper", "Xia et al. 2005; the default.", Self::default),
        PresetOf::new(
            "ns2",
            "Their program for ns-2: whole per cent, plus one, of 95 % of the capacity.",
            || Self {
                load: load::Params { target: 0.95, ..Self::default().load },
                high: 0.79,
                over: 0.99,
            },
        ),
    ];
}

impl Params {
    /// Checks values together.
    fn consistent(&self) -> Result<(), Invalid> {
        if self.high > self.over {
            return Err(Invalid {
                key: key!(Self: high),
                message: "`high` is above `over`: no load would be high".to_owned(),
            });
        }
        Ok(())
    }
}

impl MeterInfo for Params {
    fn build<P: Packet>(&self, _: &LinkProperties, _: Rng) -> Option<Box<dyn Meter<P>>> {
        Some(Box::new(Vcp::new(self)))
    }
}

impl HasContract for Params {
    fn contract(&self) -> Contract {
        let why = "the meter never writes";
        Contract::new()
            .provides(Ability::WritesLoad)
            .provides(Ability::Marks)
            .wants(Ability::Ect, why)
    }
}

/// Raises the load in packets to that of the last interval.
#[derive(Debug)]
pub struct Vcp {
    load: LoadFactor,
    high: f64,
    over: f64,
    /// Load of the last interval.
    now: Load,
    /// Number of intervals with low load, high load and overload.
    intervals: [u64; 3],
}

/// Three loads, carried as ECT(0), ECT(1) and CE.
///
/// Departs from § 3.1, where low is (01) and high is (10). Senders of RFC 3168 start with ECT(0),
/// and nothing reads the two bits as a number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Load {
    Low,
    High,
    Over,
}

impl Load {
    const fn of(ecn: Ecn) -> Option<Self> {
        match ecn {
            Ecn::NotEct => None,
            Ecn::Ect0 => Some(Self::Low),
            Ecn::Ect1 => Some(Self::High),
            Ecn::Ce => Some(Self::Over),
        }
    }
}

impl Vcp {
    /// Creates a meter.
    #[must_use]
    pub fn new(params: &Params) -> Self {
        Self {
            load: LoadFactor::new(&params.load),
            high: params.high,
            over: params.over,
            now: Load::Low,
            intervals: [0; 3],
        }
    }
}

impl<P: Packet> Meter<P> for Vcp {
    fn arrives(&mut self, _: Time, packet: &mut P, _: Backlog, _: &mut dyn Context<P>) {
        self.load.arrives(packet.wire_bytes());
    }

    // "A more congested link overwrites" (§ 3.1): the most loaded link on the path prevails.
    fn leaves(&mut self, now: Time, packet: &mut P, _: Backlog, context: &mut dyn Context<P>) {
        if self.now == Load::Low {
            return;
        }
        let Some(carried) = Load::of(context.ecn(packet)).filter(|carried| *carried <= self.now)
        else {
            return;
        };
        match self.now {
            Load::Over => {
                context.set_ecn(packet, Ecn::Ce);
                context.marked(now, packet, OVERLOAD, carried == Load::Over);
            }
            _ if carried < self.now => context.set_ecn(packet, Ecn::Ect1),
            _ => {}
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
        self.now = match self.load.factor() {
            f if f < self.high => Load::Low,
            f if f < self.over => Load::High,
            _ => Load::Over,
        };
        self.intervals[self.now as usize] += 1;
    }

    fn guidance(&self) -> Option<Guidance> {
        Some(Guidance::Load(self.load.factor()))
    }

    fn count(&self, each: &mut dyn FnMut(&'static str, u64)) {
        let [low, high, over] = self.intervals;
        each("load_intervals_low", low);
        each("load_intervals_high", high);
        each("load_intervals_over", over);
    }
}
