//! Configuration of a router.

use core::net::Ipv4Addr;
use std::collections::BTreeMap;

use cwnd_aqm::{MessengerParams, MeterParams, QueueParams};
use cwnd_link::Settings;
use cwnd_packet::{Ability, Declares as _};
use cwnd_quantity::{Duration, Rate};
use cwnd_scenario::{Impairments, Link, LinkRate};
use cwnd_schema::ParamsChoice as _;

use crate::packet::Endpoint;

/// One of the two sides of a router.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// Where the first direction starts.
    A,
    /// Where it ends.
    B,
}

impl Side {
    /// Both.
    pub const BOTH: [Self; 2] = [Self::A, Self::B];

    /// The other one.
    #[must_use]
    pub const fn other(self) -> Self {
        match self {
            Self::A => Self::B,
            Self::B => Self::A,
        }
    }
}

/// A router between two sides, A and B.
#[derive(Clone, Debug, PartialEq)]
pub struct Config {
    /// From A to B, and from B to A.
    pub directions: [Direction; 2],
    /// Seed of every random stream.
    pub seed: u64,
    /// In whose name its messages go.
    pub address: Ipv4Addr,
    /// Cut from the start before anything is counted.
    pub warmup: Duration,
    /// Interval of the time series; `None` records none.
    pub sample: Option<Duration>,
    /// How the loop runs.
    pub pacing: Pacing,
    /// When a run is no longer what was asked for.
    pub limits: Limits,
}

/// One direction: queue, then line rate, then propagation, as a link of a scenario.
#[derive(Clone, Debug, PartialEq)]
pub struct Direction {
    /// Name, which also names its random streams as the simulator does.
    pub name: String,
    /// How fast it sends.
    pub rate: LinkRate,
    /// What waits before it; of no effect where the rate is unlimited.
    pub queue: QueueParams,
    /// What writes into its packets beside the queue.
    pub meter: MeterParams,
    /// What tells the sources of its packets what the queue decides.
    pub messenger: MessengerParams,
    /// The one source that it may tell; `None` is all. Networks that packets come from may be none of ours.
    pub told: Option<Ipv4Addr>,
    /// Packets that the device below the queue holds besides the one it sends.
    pub device_queue: u32,
    /// The round-trip time that sizes in BDP refer to.
    pub bdp_rtt: Duration,
    /// One-way propagation delay.
    pub delay: Duration,
    /// How far receivers are beyond the link, by the ends of their senders: data waits so long behind the link, and an ACK before
    /// its queue. An end with port zero is all ports of its address.
    pub flow_delays: BTreeMap<Endpoint, Duration>,
    /// What goes wrong on it.
    pub impairments: Impairments,
}

/// How the real-time loop gets its time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pacing {
    /// Whether to ask for a real-time priority; without the right to it the loop runs at what it has.
    pub realtime: bool,
    /// The processor to stay on; `None` leaves it to the kernel.
    pub cpu: Option<usize>,
    /// How long before a deadline the loop stops sleeping and looks at the clock instead.
    pub spin: Duration,
}

/// What a router may fall behind by; beyond it the run is reported as invalid.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Limits {
    /// 99th percentile of the time from when a packet was due to when it was sent.
    pub lateness_p99: Duration,
    /// Least share of the time in which the loop waited for something to do.
    pub idle: f64,
}

impl Config {
    /// A router with these directions, and the defaults for the rest.
    #[must_use]
    pub fn new(a_to_b: Direction, b_to_a: Direction) -> Self {
        Self {
            directions: [a_to_b, b_to_a],
            seed: 1,
            address: NO_ADDRESS,
            warmup: Duration::ZERO,
            sample: None,
            pacing: Pacing::default(),
            limits: Limits::default(),
        }
    }
}

impl Direction {
    /// No queue, no rate, no delay: what comes goes on.
    #[must_use]
    pub fn unlimited(name: &str) -> Self {
        Self {
            name: name.to_owned(),
            rate: LinkRate::Unlimited,
            queue: QueueParams::default(),
            meter: MeterParams::default(),
            messenger: MessengerParams::default(),
            told: None,
            device_queue: 0,
            bdp_rtt: Duration::ZERO,
            delay: Duration::ZERO,
            flow_delays: BTreeMap::new(),
            impairments: Impairments::default(),
        }
    }

    /// A direction with a constant rate.
    #[must_use]
    pub fn limited(name: &str, rate: Rate, queue: QueueParams, delay: Duration) -> Self {
        Self {
            rate: LinkRate::constant(rate),
            queue,
            delay,
            bdp_rtt: delay * 2,
            ..Self::unlimited(name)
        }
    }

    /// Why its meter would do nothing, if that is so: it fills headers that simulated packets have, and real ones have not.
    #[must_use]
    pub fn unfilled(&self) -> Option<String> {
        let in_options = |meter: &MeterParams| {
            meter.contract().provides.iter().any(|ability| IN_OPTIONS.contains(ability))
        };
        in_options(&self.meter).then(|| {
            let all = MeterParams::KINDS.iter().filter_map(|kind| MeterParams::of_kind(kind.name));
            let others = all.filter(|meter| !meter.contract().provides.is_empty());
            let others: Vec<_> = others.filter(|meter| !in_options(meter)).collect();
            let others: Vec<String> = others.iter().map(|m| format!("`{}`", m.kind())).collect();
            format!(
                "packets of real hosts have no header that `{}` could fill; {} write the ECN field",
                self.meter.kind(),
                listed(&others),
            )
        })
    }

    /// What a scenario says of a link.
    #[must_use]
    pub fn of_link(link: &Link) -> Self {
        Self {
            name: link.name.clone(),
            rate: link.rate.clone(),
            queue: link.queue.clone(),
            meter: link.meter.clone(),
            messenger: link.messenger.clone(),
            told: None,
            device_queue: link.device_queue,
            bdp_rtt: link.bdp_rtt,
            delay: link.delay,
            flow_delays: BTreeMap::new(),
            impairments: link.impairments.clone(),
        }
    }
}

impl<'a> From<&'a Direction> for Settings<'a> {
    fn from(of: &'a Direction) -> Self {
        Self {
            name: &of.name,
            rate: &of.rate,
            queue: &of.queue,
            meter: &of.meter,
            device_queue: of.device_queue,
            bdp_rtt: of.bdp_rtt,
            impairments: &of.impairments,
        }
    }
}

impl Default for Pacing {
    fn default() -> Self {
        Self { realtime: true, cpu: None, spin: SPIN }
    }
}

impl Default for Limits {
    fn default() -> Self {
        Self { lateness_p99: LATENESS_P99, idle: IDLE }
    }
}

/// Measured with `examples/blast.rs`: at 1 Gbit/s more of it costs a processor, without it packets are 4 µs late.
const SPIN: Duration = Duration::from_micros(5);
/// A serialisation time of 1500 B at 12 Mbit/s: what a queue's delay is measured against is of this order.
const LATENESS_P99: Duration = Duration::from_millis(1);
/// Who is busy all the time can't know what it would have done with more.
const IDLE: f64 = 0.02;
/// Who sends ICMP messages and has no IPv4 address of its own sends them in the name of this one (RFC 7600; Linux has it as INADDR_DUMMY).
const NO_ADDRESS: Ipv4Addr = Ipv4Addr::new(192, 0, 0, 8);
/// What routers write in options of TCP: no system sends these.
const IN_OPTIONS: [Ability; 3] = [Ability::WritesXcp, Ability::WritesRcp, Ability::WritesLevel];

/// `a, b and c`.
fn listed(names: &[String]) -> String {
    match names.split_last() {
        Some((last, [])) => last.clone(),
        Some((last, others)) => format!("{} and {last}", others.join(", ")),
        None => "no meters".to_owned(),
    }
}
