//! Configuration of a router: its two directions, pacing and limits.

use core::net::{IpAddr, Ipv4Addr};
use std::collections::BTreeMap;

use cwnd_aqm::{MessengerParams, MeterParams, QueueParams};
use cwnd_link::Settings;
use cwnd_packet::{Ability, HasContract as _};
use cwnd_quantity::{Duration, Rate};
use cwnd_scenario::{Impairments, Link, LinkRate};
use cwnd_schema::ParamsChoice as _;

use crate::packet::Endpoint;

/// One of the two sides of a router.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// Side at which the first direction starts.
    A,
    /// Side at which the first direction ends.
    B,
}

impl Side {
    /// Both sides.
    pub const BOTH: [Self; 2] = [Self::A, Self::B];

    /// Returns the opposite side.
    #[must_use]
    pub const fn other(self) -> Self {
        match self {
            Self::A => Self::B,
            Self::B => Self::A,
        }
    }
}

/// Configuration of a router between two sides, A and B.
#[derive(Clone, Debug, PartialEq)]
pub struct Config {
    /// Settings of both directions, from A to B and from B to A.
    pub directions: [Direction; 2],
    /// Seed of every random stream.
    pub seed: u64,
    /// Source address of the router's ICMP messages.
    pub address: Ipv4Addr,
    /// Time from the start that the report's differences and queueing delays leave out. Totals and
    /// the time series include it.
    pub warmup: Duration,
    /// Interval of the time series; `None` records none.
    pub sample: Option<Duration>,
    /// Number of rows of a direction's time series from which every other one is removed, and the
    /// interval doubled: runs of any length then take the same memory. It is even.
    pub max_samples: usize,
    /// Scheduling of the real-time loop.
    pub pacing: Pacing,
    /// Limits beyond which a run is invalid.
    pub limits: Limits,
}

/// One direction: a queue, a line with a rate, and propagation, like a link of a scenario.
#[derive(Clone, Debug, PartialEq)]
pub struct Direction {
    /// Name, which also names its random streams, as in the simulator.
    pub name: String,
    /// Rate of the line.
    pub rate: LinkRate,
    /// Queue before the line. Queue, meter and messenger have no effect if the rate is unlimited.
    pub queue: QueueParams,
    /// Meter, which writes into packets in addition to the queue.
    pub meter: MeterParams,
    /// Messenger, which reports decisions of the queue to the sources of packets.
    pub messenger: MessengerParams,
    /// Only source that may receive such reports; `None` is all. Packets may come from networks
    /// that the user is not responsible for.
    pub message_target: Option<Ipv4Addr>,
    /// Packets that the device below the queue holds besides the one it sends.
    pub device_queue: u32,
    /// `true` if packets without data are served before those in the queue.
    pub acks_first: bool,
    /// Round-trip time that sizes in BDP refer to.
    pub bdp_rtt: Duration,
    /// One-way propagation delay.
    pub delay: Duration,
    /// Additional one-way delay between link and receiver, by the sender's endpoint. Data waits for
    /// it behind the link, and an ACK before the queue. Port zero stands for all ports of an
    /// address.
    pub flow_delays: BTreeMap<Endpoint, Duration>,
    /// Impairments of packets on the link.
    pub impairments: Impairments,
    /// Sources whose data packets have a distribution of the queueing delay of their own, by its
    /// number.
    pub watched: BTreeMap<IpAddr, u32>,
}

/// Scheduling of the real-time loop.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pacing {
    /// `true` to request a real-time priority; without the right to it, the loop keeps its
    /// priority.
    pub realtime: bool,
    /// Processor to run on; `None` leaves the choice to the kernel.
    pub cpu: Option<usize>,
    /// Time before a deadline at which the loop stops sleeping and polls the clock.
    pub spin: Duration,
}

/// Limits on the router's lag; beyond them, a run is reported as invalid.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Limits {
    /// Highest allowed 99th percentile of lateness: from when a packet is due to when it is sent.
    pub lateness_p99: Duration,
    /// Least allowed fraction of the time for which the loop waits for work.
    pub idle: f64,
}

impl Config {
    /// Creates a configuration with these directions and defaults for the rest.
    #[must_use]
    pub fn new(a_to_b: Direction, b_to_a: Direction) -> Self {
        Self {
            directions: [a_to_b, b_to_a],
            seed: 1,
            address: NO_ADDRESS,
            warmup: Duration::ZERO,
            sample: None,
            max_samples: usize::MAX,
            pacing: Pacing::default(),
            limits: Limits::default(),
        }
    }
}

impl Direction {
    /// Creates a direction without queue, rate and delay, which passes packets at once.
    #[must_use]
    pub fn unlimited(name: &str) -> Self {
        Self {
            name: name.to_owned(),
            rate: LinkRate::Unlimited,
            queue: QueueParams::default(),
            meter: MeterParams::default(),
            messenger: MessengerParams::default(),
            message_target: None,
            device_queue: 0,
            acks_first: false,
            bdp_rtt: Duration::ZERO,
            delay: Duration::ZERO,
            flow_delays: BTreeMap::new(),
            impairments: Impairments::default(),
            watched: BTreeMap::new(),
        }
    }

    /// Creates a direction with a constant rate, whose `bdp_rtt` is twice the delay.
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

    /// Returns a message if the meter writes headers that only simulated packets have.
    #[must_use]
    pub fn meter_without_effect(&self) -> Option<String> {
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
                joined(&others),
            )
        })
    }

    /// Creates the direction that corresponds to a link of a scenario, without delays of flows and
    /// with messages to all sources.
    #[must_use]
    pub fn of_link(link: &Link) -> Self {
        Self {
            name: link.name.clone(),
            rate: link.rate.clone(),
            queue: link.queue.clone(),
            meter: link.meter.clone(),
            messenger: link.messenger.clone(),
            message_target: None,
            device_queue: link.device_queue,
            acks_first: link.acks_first,
            bdp_rtt: link.bdp_rtt,
            delay: link.delay,
            flow_delays: BTreeMap::new(),
            impairments: link.impairments.clone(),
            watched: BTreeMap::new(),
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
            acks_first: of.acks_first,
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

/// Default spin, measured with `examples/blast.rs`. At 1 Gbit/s, more of it costs a processor;
/// without it, packets are 4 µs late.
const SPIN: Duration = Duration::from_micros(5);
/// Default limit of lateness: the time of 1500 B at 12 Mbit/s. Queueing delays are of this order.
const LATENESS_P99: Duration = Duration::from_millis(1);
/// Default limit of idle time: a loop that is always busy cannot prove that it kept up.
const IDLE: f64 = 0.02;
/// Source address of ICMP messages from hosts without an IPv4 address (RFC 7600; `INADDR_DUMMY` in
/// Linux).
const NO_ADDRESS: Ipv4Addr = Ipv4Addr::new(192, 0, 0, 8);
/// Abilities of meters that write headers which no operating system sends.
const IN_OPTIONS: [Ability; 3] = [Ability::WritesXcp, Ability::WritesRcp, Ability::WritesLevel];

/// Joins names as `a, b and c`; `no meters` if there are none.
fn joined(names: &[String]) -> String {
    match names.split_last() {
        Some((last, [])) => last.clone(),
        Some((last, others)) => format!("{} and {last}", others.join(", ")),
        None => "no meters".to_owned(),
    }
}
