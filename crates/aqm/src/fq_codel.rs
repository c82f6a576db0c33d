//! FQ-CoDel (RFC 8290): flows are hashed to queues and served by deficit round robin with priority
//! for new ones. Each queue has its own CoDel.

use alloc::vec::Vec;

use cwnd_packet::{Ability, Contract, HasContract};
use cwnd_quantity::{Bytes, Duration, LinkProperties, QueueLimit, QueueSize, Rng, Time};
use cwnd_schema::{Invalid, RegistryEntry, Schema};

use crate::codel::{CoDel, ControlLaw, check_delays};
use crate::qdisc::{Backlog, Context, Packet, Qdisc, QueueInfo, Reason, Store};

/// Name and description in scenarios.
pub const ENTRY: RegistryEntry =
    RegistryEntry::new("fq-codel", "Fair queueing with CoDel in each queue (RFC 8290).");

/// FQ-CoDel (RFC 8290).
#[derive(Clone, Debug, PartialEq, Schema)]
#[schema(check = Self::consistent)]
pub struct Params {
    /// Number of queues that flows are hashed to.
    #[default(1024, "RFC 8290 § 5.2.5: 1024")]
    #[bounds(from 1, up_to MAX_FLOWS)]
    pub flows: u32,
    /// Bytes that a queue may send in its turn.
    #[default(Bytes(1514), "RFC 8290 § 5.2.4: 1514 B, a full Ethernet frame")]
    #[bounds(
        from Bytes(1), up_to Bytes(MAX_QUANTUM);
        "with no turn the scheduler never sends, with a larger one it does not share"
    )]
    pub quantum: Bytes,
    /// Maximum backlog of all queues together.
    #[default(QueueSize::Packets(10_240), "RFC 8290 § 5.2.3: 10240 packets")]
    pub limit: QueueSize,
    /// CoDel's acceptable standing delay, in each queue.
    #[default(Duration::from_millis(5), "RFC 8290 § 5.2.2: 5 ms")]
    pub target: Duration,
    /// Time for which the sojourn time must stay above the target.
    #[default(Duration::from_millis(100), "RFC 8290 § 5.2.1: 100 ms")]
    #[bounds(above Duration::ZERO; "no time is left to observe the delay, write 100 ms")]
    pub interval: Duration,
    /// A queue up to this long never counts as standing; the largest packet seen, if that is
    /// larger.
    #[default(Bytes(1500), "RFC 8289 § 5.3 MAXPACKET: the interface MTU, here that of Ethernet")]
    pub mtu: Bytes,
    /// `true` if ECN-capable packets are marked instead of dropped.
    #[default(true, "RFC 8290 § 5.2.6: ECN is on by default")]
    pub ecn: bool,
}

impl Params {
    /// Checks values together.
    fn consistent(&self) -> Result<(), Invalid> {
        check_delays(self.target, self.interval)?;
        Ok(())
    }
}

impl QueueInfo for Params {
    type Queue<P> = FqCoDel<P>;

    fn build<P: Packet>(&self, link: &LinkProperties, rng: Rng) -> FqCoDel<P> {
        FqCoDel::new(self, link, rng)
    }

    fn reads_flow_hash(&self) -> bool {
        true
    }
}

impl HasContract for Params {
    fn contract(&self) -> Contract {
        Contract::new().when(self.ecn, |c| c.provides(Ability::Marks))
    }
}

/// One queue, with its place in the schedule.
#[derive(Debug)]
struct Flow<P> {
    store: Store<P>,
    codel: CoDel,
    /// Bytes that it may still send in this turn; negative after a packet larger than what was
    /// left.
    deficit: i64,
    /// Next queue in its list.
    next: u32,
    /// `true` if it is in a list.
    listed: bool,
}

/// A first-in, first-out list of queues, linked through [`Flow::next`].
#[derive(Clone, Copy, Debug)]
struct List {
    head: u32,
    tail: u32,
}

impl List {
    const EMPTY: Self = Self { head: NIL, tail: NIL };

    fn push<P>(&mut self, flows: &mut [Flow<P>], index: u32) {
        flows[index as usize].next = NIL;
        if self.head == NIL {
            self.head = index;
        } else {
            flows[self.tail as usize].next = index;
        }
        self.tail = index;
    }

    /// Removes the head; the list must not be empty.
    fn pop<P>(&mut self, flows: &[Flow<P>]) {
        self.head = flows[self.head as usize].next;
    }
}

/// FQ-CoDel's state for one link.
#[derive(Debug)]
pub struct FqCoDel<P> {
    law: ControlLaw,
    quantum: i64,
    max: Backlog,
    /// Random value that keeps flows from colliding alike in every queue of a path.
    perturbation: u64,
    flows: Vec<Flow<P>>,
    /// Queues that became active, until they empty or use up their first quantum: served first.
    new: List,
    old: List,
    backlog: Backlog,
}

impl<P: Packet> FqCoDel<P> {
    /// Creates empty queues for a link; `rng` gives the perturbation of the hash (RFC 8290 § 4.1).
    #[must_use]
    pub fn new(params: &Params, link: &LinkProperties, mut rng: Rng) -> Self {
        let max = match params.limit.resolve(link) {
            QueueLimit::Packets(packets) => Backlog { packets, bytes: u64::MAX },
            QueueLimit::Bytes(bytes) => Backlog { packets: u64::MAX, bytes },
        };
        let flows = (0..params.flows.clamp(1, MAX_FLOWS))
            .map(|_| Flow {
                store: Store::unlimited(),
                codel: CoDel::default(),
                deficit: 0,
                next: NIL,
                listed: false,
            })
            .collect();
        let quantum = params.quantum.0.clamp(1, MAX_QUANTUM);
        Self {
            law: ControlLaw {
                target: params.target,
                interval: params.interval,
                mtu: params.mtu.0,
                ecn: params.ecn,
            },
            quantum: quantum.cast_signed(),
            max,
            perturbation: rng.bits(),
            flows,
            new: List::EMPTY,
            old: List::EMPTY,
            backlog: Backlog::default(),
        }
    }

    /// Returns the queue index of a flow (RFC 8290 § 4.1): a perturbed hash, scaled to the number
    /// of queues without a division.
    #[inline]
    fn bucket(&self, hash: u64) -> u32 {
        let mixed = mix(hash ^ self.perturbation);
        let scaled = (u128::from(mixed) * self.flows.len() as u128) >> u64::BITS;
        // The result is below the number of queues, which is a `u32`.
        scaled as u32
    }

    /// Drops half of the packets of the queue with the most bytes, at most 64, from its head (RFC
    /// 8290 § 4.1), so that one search over all queues serves many packets of an overload.
    #[cold]
    fn drop_from_largest(&mut self, now: Time, context: &mut impl Context<P>) {
        let Some(largest) =
            self.flows.iter_mut().max_by_key(|f| (f.store.bytes(), f.store.backlog().packets))
        else {
            return;
        };
        let half = largest.store.backlog().packets.div_ceil(2);
        for _ in 0..half.min(DROP_BATCH) {
            let Some((packet, _)) = largest.store.pop() else { break };
            self.backlog.packets -= 1;
            self.backlog.bytes -= u64::from(packet.wire_bytes());
            context.dropped(now, &packet, Reason::OVERLIMIT);
        }
    }
}

impl<P: Packet> Qdisc<P> for FqCoDel<P> {
    #[inline]
    fn enqueue(&mut self, now: Time, packet: P, context: &mut impl Context<P>) {
        let size = packet.wire_bytes();
        self.law.on_packet_size(size);
        let index = self.bucket(packet.flow_hash());
        let flow = &mut self.flows[index as usize];
        flow.store.push(now, packet);
        self.backlog.packets += 1;
        self.backlog.bytes += u64::from(size);
        if !flow.listed {
            // RFC 8290 § 4.1: a queue that was not active is new and gets a full quantum.
            flow.listed = true;
            flow.deficit = self.quantum;
            self.new.push(&mut self.flows, index);
        }
        while self.backlog.packets > self.max.packets || self.backlog.bytes > self.max.bytes {
            self.drop_from_largest(now, context);
        }
    }

    #[inline]
    fn dequeue(&mut self, now: Time, context: &mut impl Context<P>) -> Option<(P, Time)> {
        // RFC 8290 § 4.2.
        loop {
            let from_new = self.new.head != NIL;
            let list = if from_new { &mut self.new } else { &mut self.old };
            let index = list.head;
            if index == NIL {
                return None;
            }
            let flow = &mut self.flows[index as usize];
            if flow.deficit <= 0 {
                flow.deficit += self.quantum;
                list.pop(&self.flows);
                self.old.push(&mut self.flows, index);
                continue;
            }
            let before = flow.store.backlog();
            let sent = flow.codel.dequeue(now, &self.law, &mut flow.store, context);
            let after = flow.store.backlog();
            self.backlog.packets -= before.packets - after.packets;
            self.backlog.bytes -= before.bytes - after.bytes;
            if let Some((packet, entered)) = sent {
                flow.deficit -= i64::from(packet.wire_bytes());
                return Some((packet, entered));
            }
            // An empty new queue moves to the old ones, so that it cannot starve them by leaving
            // and returning.
            list.pop(&self.flows);
            if from_new {
                self.old.push(&mut self.flows, index);
            } else {
                self.flows[index as usize].listed = false;
            }
        }
    }

    #[inline]
    fn backlog(&self) -> Backlog {
        self.backlog
    }
}

/// Finalizer of SplitMix64 (Steele, Lea & Flood 2014): every bit of the hash affects every bit of
/// the result.
#[inline]
fn mix(mut z: u64) -> u64 {
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

/// End of a list.
const NIL: u32 = u32::MAX;
/// Largest number of packets dropped per search (RFC 8290 § 4.1: 64).
const DROP_BATCH: u64 = 64;
/// Largest number of queues (Linux sch_fq_codel: 65536).
const MAX_FLOWS: u32 = 1 << 16;
/// Largest quantum, bytes: far above a packet, far below an overflow.
const MAX_QUANTUM: u64 = 1 << 30;
