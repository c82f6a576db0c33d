//! XCP's router: once per average round trip it computes the change in the rate of all flows
//! together, and the share of it that each packet carries to its sender.
//!
//! Katabi, Handley, Rohrs, *Congestion control for high bandwidth-delay product networks*, SIGCOMM
//! 2002, § 3.4 and 3.5. Residual feedback and the persistent queue follow draft-falk-xcp-spec-03
//! § 4.2 and ns-2.35 (`xcpq.cc`). Rates are bytes per second.

use alloc::borrow::ToOwned as _;
use alloc::boxed::Box;

use cwnd_packet::{Ability, CongestionHeader, Contract, Guidance, HasContract};
use cwnd_quantity::{Duration, LinkProperties, Rate, Rng, Time};
use cwnd_schema::{Choice, Invalid, PresetOf, Presets, RegistryEntry, Schema, key};

use crate::load::Capacity;
use crate::meters::{Meter, MeterInfo};
use crate::qdisc::{Backlog, Context, Packet};

/// Event at which a router samples its queue length to find the persistent queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Choice)]
pub enum QueueSeen {
    /// Backlog that an arriving packet finds: zero while the link keeps up.
    #[name("arriving")]
    Arriving,
    /// Backlog when a packet is about to leave: at least that packet.
    #[name("leaving")]
    Leaving,
}

/// Name and description in scenarios.
pub const ENTRY: RegistryEntry = RegistryEntry::new(
    "xcp",
    "Tells each sender by how much its window shall change (Katabi, Handley, Rohrs 2002).",
);

/// XCP's router (Katabi, Handley, Rohrs 2002).
#[derive(Clone, Debug, PartialEq, Schema)]
#[schema(presets, check = Self::consistent)]
pub struct Params {
    /// α: part of the spare rate that is given to all flows together per average round trip.
    #[default(0.4, "Katabi et al. 2002 § 3.5 and Theorem 1: 0.4")]
    #[bounds(above 0.0; "no spare rate would ever be given")]
    pub alpha: f64,
    /// β: part of the persistent queue that is taken back per average round trip.
    #[default(0.226, "Katabi et al. 2002 § 3.5 and Theorem 1: 0.226")]
    #[bounds(from 0.0; "a negative one gives more the longer the queue is")]
    pub beta: f64,
    /// γ: least part of the traffic that is taken and given anew, so that the rates of flows become
    /// equal.
    #[default(0.1, "Katabi et al. 2002 § 3.5.2: 0.1")]
    #[bounds(from 0.0, up_to 1.0; "it is a part of the traffic")]
    pub gamma: f64,
    /// Capacity that the router assumes for the link.
    #[flatten(Capacity::default())]
    pub capacity: Capacity,
    /// Event at which the router samples the queue length to find the persistent queue.
    #[default(
        QueueSeen::Arriving,
        "Katabi et al. 2002 § 3.5.1: the minimum queue seen by an arriving packet"
    )]
    pub queue_seen: QueueSeen,
    /// Time over which the persistent queue is the least queue, as a part of a round trip without
    /// queues.
    #[default(1.0, "Katabi et al. 2002 § 3.5.1: a propagation delay")]
    #[bounds(above 0.0, up_to 10.0; "time would never pass, or hardly")]
    pub queue_interval: f64,
    /// Control interval while no packet carries a round trip.
    #[default(Duration::from_millis(50), "left open by Katabi et al.; ns-2.35: 50 ms")]
    #[bounds(above Duration::ZERO; "time would never pass, write 50 ms")]
    pub first_interval: Duration,
    /// Shortest control interval; that of the persistent queue is at least twice as long.
    #[default(Duration::from_millis(1), "left open by Katabi et al.; ns-2.35: 1 ms and 2 ms")]
    #[bounds(above Duration::ZERO; "time would never pass, write 1 ms")]
    pub least_interval: Duration,
    /// Upper bound of a round trip in the average.
    #[default(Duration::from_secs(1), "left open by Katabi et al.; ns-2.35: 1 s")]
    #[bounds(above Duration::ZERO; "time would never pass, write 1 s")]
    pub most_rtt: Duration,
}

impl Presets for Params {
    const PRESETS: &'static [PresetOf<Self>] = &[PresetOf::new(
        "ns2",
        "ns-2.35 (xcpq.cc): the persistent queue is the least one that a packet leaves in half \
             a round trip.",
        || Self { queue_seen: QueueSeen::Leaving, queue_interval: 0.5, ..Self::default() },
    )];
}

impl Params {
    /// Checks values together.
    fn consistent(&self) -> Result<(), Invalid> {
        if self.most_rtt < self.least_interval {
            return Err(Invalid {
                key: key!(Self: most_rtt),
                message: "`most_rtt` is below `least_interval`: no interval would be both"
                    .to_owned(),
            });
        }
        Ok(())
    }
}

impl MeterInfo for Params {
    fn build<P: Packet>(&self, link: &LinkProperties, _: Rng) -> Option<Box<dyn Meter<P>>> {
        Some(Box::new(Xcp::new(self, link)))
    }
}

impl HasContract for Params {
    fn contract(&self) -> Contract {
        Contract::new()
            .provides(Ability::WritesXcp)
            .wants(Ability::SendsXcp, "the meter tells nobody")
    }
}

/// State of XCP's router at one link.
#[derive(Clone, Debug)]
pub struct Xcp {
    params: Params,
    /// Assumed capacity of the link, bytes per second.
    capacity: f64,
    /// Average round trip, seconds.
    mean_rtt: f64,
    /// Start of this control interval.
    began: Time,
    /// End of this control interval.
    ends: Time,
    /// Bytes that arrived in this interval, of any packets.
    arrived: u64,
    /// Σ rtt·s/cwnd over its packets that carried a round trip, seconds: packet size / throughput.
    inverse: f64,
    /// The same sum with each packet's round trip as a factor.
    inverse_by_rtt: f64,
    queue: PersistentQueue,
    /// Rate that may still be given in this interval, and the part for each second of rtt·s/cwnd.
    positive: FeedbackPool,
    /// Rate that may still be taken in this interval, and the part for each byte.
    negative: FeedbackPool,
    /// φ / d, bytes per second.
    phi: f64,
    /// Fraction of a byte left over from the last header.
    residue: f64,
    counters: Counters,
}

/// Rate distributed in an interval, bytes per second, in equal parts while any is left.
#[derive(Clone, Copy, Debug, Default)]
struct FeedbackPool {
    left: f64,
    each: f64,
}

impl FeedbackPool {
    fn new(all: f64, parts: f64) -> Self {
        if parts > 0.0 { Self { left: all, each: all / parts } } else { Self::default() }
    }

    fn of(&self, parts: f64) -> f64 {
        (self.each * parts).min(self.left)
    }

    fn spend(&mut self, some: f64) {
        self.left = (self.left - some).max(0.0);
    }
}

/// Queue that does not drain within a round trip, bytes.
#[derive(Clone, Copy, Debug, Default)]
struct PersistentQueue {
    bytes: u64,
    /// Least backlog since the last update, bytes.
    min_bytes: u64,
    ends: Time,
}

#[derive(Clone, Copy, Debug, Default)]
struct Counters {
    intervals: u64,
    given: u64,
    taken: u64,
    headers: u64,
}

impl Xcp {
    /// Creates the router of a link.
    #[must_use]
    pub fn new(params: &Params, link: &LinkProperties) -> Self {
        let first = Time::ZERO + params.first_interval;
        Self {
            params: params.clone(),
            capacity: params.capacity.of(link.rate),
            mean_rtt: params.first_interval.as_secs_f64(),
            began: Time::ZERO,
            ends: first,
            arrived: 0,
            inverse: 0.0,
            inverse_by_rtt: 0.0,
            queue: PersistentQueue { ends: first, ..PersistentQueue::default() },
            positive: FeedbackPool::default(),
            negative: FeedbackPool::default(),
            phi: 0.0,
            residue: 0.0,
            counters: Counters::default(),
        }
    }

    /// Computes what is given and taken in the interval that begins now, from the arrivals of the
    /// last one.
    fn control(&mut self, now: Time) {
        let params = &self.params;
        let took = now.since(self.began).as_secs_f64();
        // § 3.2: the average over flows, from their headers. A flow's packets carry rtt²·s/cwnd and
        // rtt·s/cwnd; over an interval the latter have the same sum for each flow, whatever its
        // rate.
        self.mean_rtt = if self.inverse > 0.0 {
            self.inverse_by_rtt / self.inverse
        } else {
            params.first_interval.as_secs_f64()
        };
        (self.positive, self.negative) = if self.arrived > 0 {
            let input = self.arrived as f64 / took;
            // § 3.5.1: φ = α d S − β Q, here per second of d.
            let queue = self.queue.bytes as f64 / self.mean_rtt;
            let phi = params.alpha * (self.capacity - input) - params.beta * queue;
            // § 3.5.2: h = max(0, γ y − |φ|), taken from flows in proportion to their rates and
            // given to all in equal parts.
            self.phi = phi;
            let shuffled = (params.gamma * input - phi.abs()).max(0.0);
            // ξp = (h + max(φ, 0)) / Σ rtt·s/cwnd, ξn = (h + max(−φ, 0)) / Σ s.
            (
                FeedbackPool::new(shuffled + phi.max(0.0), self.inverse),
                FeedbackPool::new(shuffled + (-phi).max(0.0), self.arrived as f64),
            )
        } else {
            self.phi = 0.0;
            Default::default()
        };
        self.arrived = 0;
        self.inverse = 0.0;
        self.inverse_by_rtt = 0.0;
        self.began = now;
        let interval = Duration::from_secs_f64(self.mean_rtt).max(params.least_interval);
        self.ends = now + interval;
        self.counters.intervals += 1;
    }

    /// Updates the persistent queue, "the minimum queue seen by an arriving packet during the last
    /// propagation delay" (§ 3.5.1).
    fn update_persistent_queue(&mut self, now: Time, waiting: u64) {
        self.queue.bytes = self.queue.min_bytes.min(waiting);
        self.queue.min_bytes = waiting;
        let propagation = self.mean_rtt - waiting as f64 / self.capacity;
        let interval = (propagation * self.params.queue_interval).max(0.0);
        let min_interval = self.params.least_interval * 2;
        self.queue.ends = now + Duration::from_secs_f64(interval).max(min_interval);
    }

    /// Returns the change of the sender's window that the packet carries on, bytes; `before` is
    /// what it carried on arrival.
    fn feedback(&mut self, size: f64, cwnd: u32, rtt_us: u32, before: i32) -> i32 {
        let rtt = seconds(rtt_us);
        if rtt == 0.0 {
            // § 3.1: the sender knows no RTT yet. Both of its parts are zero.
            return before.min(0);
        }
        let mut gives = self.positive.of(inverse(size, cwnd, rtt));
        let mut takes = self.negative.of(size);
        let ours = gives - takes;
        let (wanted, left) = (ours * rtt + self.residue, f64::from(before));
        let feedback = if left >= ours * rtt {
            // The header has whole bytes; the rest, up to one byte, is carried to the next packet.
            let feedback = libm::floor(wanted).min(left);
            self.residue = (wanted - feedback).min(1.0);
            feedback as i32
        } else {
            // draft-falk-xcp-spec-03 § 4.2.3: another router, or the sender, requests less. What it
            // leaves of the share given here stays for other flows. What it takes beyond counts as
            // taken here.
            let before = left / rtt;
            takes = (takes + (ours - before)).min(self.negative.left);
            gives = (before + takes).max(0.0);
            left as i32
        };
        self.positive.spend(gives);
        self.negative.spend(takes);
        feedback
    }
}

impl<P: Packet> Meter<P> for Xcp {
    fn arrives(&mut self, _: Time, packet: &mut P, backlog: Backlog, context: &mut dyn Context<P>) {
        let size = packet.wire_bytes();
        self.arrived += u64::from(size);
        if self.params.queue_seen == QueueSeen::Arriving {
            self.queue.min_bytes = self.queue.min_bytes.min(backlog.bytes);
        }
        let Some(CongestionHeader::Xcp { cwnd, rtt_us, .. }) = context.header(packet) else {
            return;
        };
        let rtt = seconds(*rtt_us);
        let inverse = inverse(f64::from(size), *cwnd, rtt);
        self.inverse += inverse;
        self.inverse_by_rtt += inverse * rtt.min(self.params.most_rtt.as_secs_f64());
    }

    fn leaves(&mut self, _: Time, packet: &mut P, stays: Backlog, context: &mut dyn Context<P>) {
        let size = packet.wire_bytes();
        if self.params.queue_seen == QueueSeen::Leaving {
            self.queue.min_bytes = self.queue.min_bytes.min(stays.bytes + u64::from(size));
        }
        let Some(CongestionHeader::Xcp { cwnd, rtt_us, delta }) = context.header(packet) else {
            return;
        };
        *delta = self.feedback(f64::from(size), *cwnd, *rtt_us, *delta);
        self.counters.headers += 1;
        let bytes = u64::from(delta.unsigned_abs());
        if *delta > 0 {
            self.counters.given += bytes;
        } else {
            self.counters.taken += bytes;
        }
    }

    fn on_rate(&mut self, _: Time, rate: Rate) {
        self.capacity = self.params.capacity.of(rate);
    }

    fn next_timer(&self) -> Option<Time> {
        Some(self.ends.min(self.queue.ends))
    }

    fn on_timer(&mut self, now: Time, backlog: Backlog) {
        if now >= self.queue.ends {
            self.update_persistent_queue(now, backlog.bytes);
        }
        if now >= self.ends {
            self.control(now);
        }
    }

    fn guidance(&self) -> Option<Guidance> {
        Some(Guidance::Aggregate(self.phi * 8.0))
    }

    fn count(&self, each: &mut dyn FnMut(&'static str, u64)) {
        each("xcp_intervals", self.counters.intervals);
        each("xcp_headers", self.counters.headers);
        each("xcp_given_bytes", self.counters.given);
        each("xcp_taken_bytes", self.counters.taken);
    }
}

/// Returns rtt·s/cwnd, seconds.
fn inverse(size: f64, cwnd: u32, rtt: f64) -> f64 {
    rtt * size / f64::from(cwnd.max(1))
}

fn seconds(us: u32) -> f64 {
    f64::from(us) / 1e6
}
