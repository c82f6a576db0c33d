//! RCP's router: one rate for all flows, found anew every few milliseconds from what comes and what waits; each packet takes the least
//! rate of the routers on its way to its sender.
//!
//! Dukkipati, Kobayashi, Zhang-Shen, McKeown, *Processor sharing flows in the Internet*, IWQoS 2005, § 3; what it leaves open as the authors'
//! ns-2 code (`rcp.cc`) has it. Rates are bytes a second.

use cwnd_packet::{Ability, Contract, Declares, Guidance, Header};
use cwnd_quantity::{Duration, LinkFacts, Rate, Rng, Time};
use cwnd_schema::{PresetOf, Presets, RegistryEntry, Schema};

use crate::capacity::Capacity;
use crate::meter::{Meter, MeterInfo};
use crate::qdisc::{Backlog, Context, Packet};

/// Name and description in scenarios.
pub const ENTRY: RegistryEntry =
    RegistryEntry::new("rcp", "Tells all senders one rate (Dukkipati et al. 2005).");

/// RCP's router (Dukkipati et al. 2005).
#[derive(Clone, Debug, PartialEq, Schema)]
#[schema(presets)]
pub struct Params {
    /// α: the part of the spare rate that is given in an average round trip.
    #[default(0.4, "the authors' ns-2 scripts: 0.4, elsewhere 0.1")]
    #[bounds(above 0.0; "no spare rate would ever be given")]
    pub alpha: f64,
    /// β: the part of what waits that is taken back in an average round trip.
    #[default(1.0, "the authors' ns-2 scripts: 1")]
    #[bounds(from 0.0; "a negative one gives more the more waits")]
    pub beta: f64,
    /// γ: the part of the link's rate that is aimed at.
    #[default(1.0, "Dukkipati et al. 2005 § 3: the whole link")]
    #[bounds(above 0.0, up_to 1.0; "it is a part of the link's rate")]
    pub gamma: f64,
    /// Capacity that the router assumes for the link.
    #[flatten(Capacity::default())]
    pub capacity: Capacity,
    /// The rate is found anew so often, or once an average round trip where that is shorter.
    #[default(Duration::from_millis(10), "the authors' ns-2 code: 10 ms")]
    #[bounds(above Duration::ZERO; "time would never pass, write 10 ms")]
    pub update: Duration,
    /// The first rate, as a part of the link's.
    #[default(0.05, "the authors' ns-2 code: 0.05")]
    #[bounds(above 0.0, up_to 1.0; "it is a part of the link's rate")]
    pub first_rate: f64,
    /// The average round trip before any packet told of one.
    #[default(Duration::from_millis(200), "the authors' ns-2 code: 200 ms")]
    #[bounds(above Duration::ZERO; "no rate changes in a round trip of no time, write 200 ms")]
    pub first_rtt: Duration,
    /// The least rate, in packets of 1000 B in an average round trip.
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
    fn build<P: Packet>(&self, link: &LinkFacts, _: Rng) -> Option<Box<dyn Meter<P>>> {
        Some(Box::new(Rcp::new(self, link)))
    }
}

impl Declares for Params {
    fn contract(&self) -> Contract {
        Contract::new()
            .provides(Ability::WritesRcp)
            .wants(Ability::SendsRcp, "the meter tells nobody")
    }
}

/// The packets that `least_packets` counts, bytes.
const PACKET: f64 = 1000.0;
/// No interval is shorter, whatever senders tell of their round trips.
const LEAST_INTERVAL: Duration = Duration::from_micros(10);

/// The state of one link's router.
#[derive(Clone, Debug)]
pub struct Rcp {
    params: Params,
    /// What it believes the link to carry, bytes a second.
    capacity: f64,
    /// R, bytes a second.
    rate: f64,
    /// d: the moving average of round trips, seconds.
    rtt: f64,
    began: Time,
    ends: Time,
    /// What came in this interval, bytes, and what of its last packets counts for the next.
    arrived: f64,
    spilled: f64,
    told: Told,
    /// The last mean of round trips in an interval in which packets told of some, seconds.
    last_mean: f64,
    counters: Counters,
}

/// What the packets of an interval told of their round trips.
#[derive(Clone, Copy, Debug, Default)]
struct Told {
    bytes: f64,
    /// Σ rtt·s, second bytes.
    weighted: f64,
}

#[derive(Clone, Copy, Debug, Default)]
struct Counters {
    updates: u64,
    headers: u64,
    lowered: u64,
}

impl Rcp {
    /// The router of this link.
    #[must_use]
    pub fn new(params: &Params, link: &LinkFacts) -> Self {
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
            spilled: 0.0,
            told: Told::default(),
            last_mean: 0.0,
            counters: Counters::default(),
        };
        made.ends = made.began + made.interval();
        made
    }

    /// T = min(T₀, d).
    fn interval(&self) -> Duration {
        Duration::from_secs_f64(self.rtt).min(self.params.update).max(LEAST_INTERVAL)
    }

    /// d, from the mean of the packets in the interval. A longer one counts for the part of it that has passed, a shorter one
    /// for less: more of the packets are those of flows with short round trips.
    fn average(&mut self, took: f64) {
        if self.told.bytes > 0.0 {
            self.last_mean = self.told.weighted / self.told.bytes;
        }
        let mean = self.last_mean;
        let gain = if mean >= self.rtt {
            took / self.rtt
        } else {
            self.rate / self.capacity * (mean / self.rtt) * (took / self.rtt)
        };
        self.rtt += gain.min(1.0) * (mean - self.rtt);
    }

    /// § 3: R ← R (1 + (T / d) (α (γ C − y) − β q / d) / (γ C)).
    fn update(&mut self, now: Time, waiting: u64) {
        let took = now.since(self.began).as_secs_f64();
        self.average(took);
        let params = &self.params;
        let aim = params.gamma * self.capacity;
        let input = self.arrived / took;
        let queue = waiting as f64 / self.rtt;
        let change = params.alpha * (aim - input) - params.beta * queue;
        let next = self.rate * (1.0 + took / self.rtt * change / aim);
        let least = (params.least_packets * PACKET / self.rtt).min(aim);
        self.rate = next.max(least).min(aim);
        self.arrived = self.spilled;
        self.spilled = 0.0;
        self.told = Told::default();
        self.began = now;
        self.ends = now + self.interval();
        self.counters.updates += 1;
    }
}

impl<P: Packet> Meter<P> for Rcp {
    fn arrives(&mut self, now: Time, packet: &mut P, _: Backlog, context: &mut dyn Context<P>) {
        let size = f64::from(packet.wire_bytes());
        // A packet comes during the time that it takes; what is beyond the interval's end counts for the next.
        let lasts = size / self.capacity;
        let left = self.ends.since(now).as_secs_f64();
        let beyond = (size * (lasts - left) / lasts).max(0.0);
        self.arrived += size - beyond;
        self.spilled += beyond;
        let Some(Header::Rcp { rtt_us, .. }) = context.header(packet) else { return };
        if *rtt_us > 0 {
            self.told.bytes += size;
            self.told.weighted += size * f64::from(*rtt_us) / 1e6;
        }
    }

    fn leaves(&mut self, _: Time, packet: &mut P, _: Backlog, context: &mut dyn Context<P>) {
        let Some(Header::Rcp { rate, .. }) = context.header(packet) else { return };
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
