//! RCP's router: one rate for all flows, updated every few milliseconds from arrivals and backlog.
//! Each packet carries the least rate of the routers on its path.
//!
//! Dukkipati, Kobayashi, Zhang-Shen, McKeown, *Processor sharing flows in the Internet*, IWQoS
//! 2005, § 3. Details that it leaves open follow the authors' ns-2 code (`rcp.cc`). Rates are bytes
//! per second.

use alloc::boxed::Box;

use cwnd_packet::{Ability, CongestionHeader, Contract, Guidance, HasContract};
use cwnd_quantity::{Duration, LinkProperties, Rate, Rng, Time};
use cwnd_schema::{PresetOf, Presets, RegistryEntry, Schema};

use crate::load::Capacity;
use crate::meters::{Meter, MeterInfo};
use crate::qdisc::{Backlog, Context, Packet};

/// Name and description in scenarios.
pub const ENTRY: RegistryEntry =
    RegistryEntry::new("rcp", "Tells all senders one rate (Dukkipati et al. 2005).");

/// RCP's router (Dukkipati et al. 2005).
#[derive(Clone, Debug, PartialEq, Schema)]
#[schema(presets)]
pub struct Params {
    /// α: part of the spare rate that is given per average round trip.
    #[default(0.4, "the authors' ns-2 scripts: 0.4, elsewhere 0.1")]
    #[bounds(above 0.0; "no spare rate would ever be given")]
    pub alpha: f64,
    /// β: part of the backlog that is taken back per average round trip.
    #[default(1.0, "the authors' ns-2 scripts: 1")]
    #[bounds(from 0.0; "a negative one gives more the more waits")]
    pub beta: f64,
    /// γ: part of the link's rate that is aimed at.
    #[default(1.0, "Dukkipati et al. 2005 § 3: the whole link")]
    #[bounds(above 0.0, up_to 1.0; "it is a part of the link's rate")]
    pub gamma: f64,
    /// Capacity that the router assumes for the link.
    #[flatten(Capacity::default())]
    pub capacity: Capacity,
    /// Interval between updates of the rate; an average round trip, if that is shorter.
    #[default(Duration::from_millis(10), "the authors' ns-2 code: 10 ms")]
    #[bounds(above Duration::ZERO; "time would never pass, write 10 ms")]
    pub update: Duration,
    /// First rate, as a part of the link's.
    #[default(0.05, "the authors' ns-2 code: 0.05")]
    #[bounds(above 0.0, up_to 1.0; "it is a part of the link's rate")]
    pub first_rate: f64,
    /// Average round trip before any packet carried one.
    #[default(Duration::from_millis(200), "the authors' ns-2 code: 200 ms")]
    #[bounds(above Duration::ZERO; "no rate changes in a round trip of no time, write 200 ms")]
    pub first_rtt: Duration,
    /// Least rate, in packets of 1000 B per average round trip.
    #[default(0.01, "the authors' ns-2 code: 0.01")]
    #[bounds(above 0.0; "a rate of nothing never grows")]
    pub least_packets: f64,
}

impl Presets for Params {
    const PRESETS: &'static [PresetOf<Self>] =
        &[PresetOf::new("ns2", "What was recorded with the authors' ns-2 code: β as α.", || {
            Self { beta: 0.4, ..Self::default() }
        })];
}

impl MeterInfo for Params {
    fn build<P: Packet>(&self, link: &LinkProperties, _: Rng) -> Option<Box<dyn Meter<P>>> {
        Some(Box::new(Rcp::new(self, link)))
    }
}

impl HasContract for Params {
    fn contract(&self) -> Contract {
        Contract::new()
            .provides(Ability::WritesRcp)
            .wants(Ability::SendsRcp, "the meter tells nobody")
    }
}

/// Size of the packets that `least_packets` counts, bytes.
const PACKET: f64 = 1000.0;
/// Shortest interval, whatever round trips senders report.
const MIN_INTERVAL: Duration = Duration::from_micros(10);

/// State of RCP's router at one link.
#[derive(Clone, Debug)]
pub struct Rcp {
    params: Params,
    /// Assumed capacity of the link, bytes per second.
    capacity: f64,
    /// R, bytes per second.
    rate: f64,
    /// d: moving average of round trips, seconds.
    rtt: f64,
    /// Start of this interval.
    began: Time,
    /// End of this interval.
    ends: Time,
    /// Bytes that arrived in this interval.
    arrived: f64,
    /// Bytes of its last packets that count for the next interval.
    overhang: f64,
    rtts: RttSum,
    /// Mean round trip of the last interval in which packets carried some, seconds.
    last_mean: f64,
    counters: Counters,
}

/// Round trips that the packets of an interval carried.
#[derive(Clone, Copy, Debug, Default)]
struct RttSum {
    /// Σ s over packets that carried a round trip, bytes.
    bytes: f64,
    /// Σ rtt·s, seconds times bytes.
    weighted: f64,
}

#[derive(Clone, Copy, Debug, Default)]
struct Counters {
    updates: u64,
    headers: u64,
    lowered: u64,
}

impl Rcp {
    /// Creates the router of a link.
    #[must_use]
    pub fn new(params: &Params, link: &LinkProperties) -> Self {
        let capacity = params.capacity.of(link.rate);
        let rtt = params.first_rtt.as_secs_f64();
        let mut made = Self {
            params: params.clone(),
            capacity,
            rate: capacity * params.first_rate,
            rtt,
            began: Time::ZERO,
            ends: Time::ZERO,
            arrived: 0.0,
            overhang: 0.0,
            rtts: RttSum::default(),
            last_mean: 0.0,
            counters: Counters::default(),
        };
        made.ends = made.began + made.interval();
        made
    }

    /// Returns T = min(T₀, d), at least 10 µs.
    fn interval(&self) -> Duration {
        Duration::from_secs_f64(self.rtt).min(self.params.update).max(MIN_INTERVAL)
    }

    /// Updates d from the mean over the packets of the interval. A mean above d has the weight T /
    /// d. A lower one has less, as flows with short round trips send more of the packets.
    fn average(&mut self, took: f64) {
        if self.rtts.bytes > 0.0 {
            self.last_mean = self.rtts.weighted / self.rtts.bytes;
        }
        let mean = self.last_mean;
        let gain = if mean >= self.rtt {
            took / self.rtt
        } else {
            self.rate / self.capacity * (mean / self.rtt) * (took / self.rtt)
        };
        self.rtt += gain.min(1.0) * (mean - self.rtt);
    }

    /// Updates the rate (§ 3): R ← R (1 + (T / d) (α (γ C − y) − β q / d) / (γ C)).
    fn update(&mut self, now: Time, waiting: u64) {
        let took = now.since(self.began).as_secs_f64();
        self.average(took);
        let params = &self.params;
        let aim = params.gamma * self.capacity;
        let input = self.arrived / took;
        let queue = waiting as f64 / self.rtt;
        let change = params.alpha * (aim - input) - params.beta * queue;
        let next = self.rate * (1.0 + took / self.rtt * change / aim);
        let min_rate = (params.least_packets * PACKET / self.rtt).min(aim);
        self.rate = next.max(min_rate).min(aim);
        self.arrived = self.overhang;
        self.overhang = 0.0;
        self.rtts = RttSum::default();
        self.began = now;
        self.ends = now + self.interval();
        self.counters.updates += 1;
    }
}

impl<P: Packet> Meter<P> for Rcp {
    fn arrives(&mut self, now: Time, packet: &mut P, _: Backlog, context: &mut dyn Context<P>) {
        let size = f64::from(packet.wire_bytes());
        // A packet arrives during its transmission time; the part beyond the interval's end counts
        // for the next.
        let lasts = size / self.capacity;
        let left = self.ends.since(now).as_secs_f64();
        let beyond = (size * (lasts - left) / lasts).max(0.0);
        self.arrived += size - beyond;
        self.overhang += beyond;
        let Some(CongestionHeader::Rcp { rtt_us, .. }) = context.header(packet) else { return };
        if *rtt_us > 0 {
            self.rtts.bytes += size;
            self.rtts.weighted += size * f64::from(*rtt_us) / 1e6;
        }
    }

    fn leaves(&mut self, _: Time, packet: &mut P, _: Backlog, context: &mut dyn Context<P>) {
        let Some(CongestionHeader::Rcp { rate, .. }) = context.header(packet) else { return };
        let ours = Rate(((self.rate * 8.0) as u64).max(1));
        self.counters.headers += 1;
        if ours < *rate {
            *rate = ours;
            self.counters.lowered += 1;
        }
    }

    fn on_rate(&mut self, _: Time, rate: Rate) {
        self.capacity = self.params.capacity.of(rate);
        self.rate = self.rate.min(self.params.gamma * self.capacity);
    }

    fn next_timer(&self) -> Option<Time> {
        Some(self.ends)
    }

    fn on_timer(&mut self, now: Time, backlog: Backlog) {
        if now >= self.ends {
            self.update(now, backlog.bytes);
        }
    }

    fn guidance(&self) -> Option<Guidance> {
        Some(Guidance::Rate(Rate((self.rate * 8.0) as u64)))
    }

    fn count(&self, each: &mut dyn FnMut(&'static str, u64)) {
        each("rcp_updates", self.counters.updates);
        each("rcp_headers", self.counters.headers);
        each("rcp_lowered", self.counters.lowered);
    }
}
