//! CoDel, controlled delay (RFC 8289). It drops or marks at the head once the sojourn time has
//! stayed above the target for an interval, then at intervals that shrink with the square root of
//! the count.

use cwnd_packet::{Ability, Contract, HasContract};
use cwnd_quantity::{Bytes, Duration, LinkProperties, QueueSize, Rng, Time};
use cwnd_schema::{Invalid, RegistryEntry, Schema, key};

use crate::qdisc::{Backlog, Context, Packet, Qdisc, QueueInfo, Reason, Store, congested};

/// Reason of CoDel's drops and marks, made at dequeue.
pub const REASON: Reason = Reason::named("codel");

/// Name and description in scenarios.
pub const ENTRY: RegistryEntry = RegistryEntry::new(
    "codel",
    "Controlled delay: marks or drops at the head when the delay stays above a target (RFC 8289).",
);

/// CoDel (RFC 8289).
#[derive(Clone, Debug, PartialEq, Schema)]
#[schema(check = Self::consistent)]
pub struct Params {
    /// Acceptable standing delay: a sojourn time that stays above it for an interval is congestion.
    #[default(Duration::from_millis(5), "RFC 8289 § 4.4: 5 ms")]
    pub target: Duration,
    /// Time for which the sojourn time must stay above the target; of the order of a worst-case
    /// round-trip time.
    #[default(Duration::from_millis(100), "RFC 8289 § 4.3: 100 ms")]
    #[bounds(above Duration::ZERO; "no time is left to observe the delay, write 100 ms")]
    pub interval: Duration,
    /// Maximum backlog.
    #[default(QueueSize::Packets(1000), "Linux sch_codel: 1000 packets")]
    pub limit: QueueSize,
    /// A backlog up to this never counts as standing; the largest packet seen, if that is larger.
    #[default(Bytes(1500), "RFC 8289 § 5.3 MAXPACKET: the interface MTU, here that of Ethernet")]
    pub mtu: Bytes,
    /// `true` if ECN-capable packets are marked instead of dropped.
    #[default(true, "RFC 8289 § 4.1: drop or mark; on as in Linux fq_codel and FreeBSD")]
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
    type Queue<P> = CoDelQueue<P>;

    fn build<P: Packet>(&self, link: &LinkProperties, _: Rng) -> CoDelQueue<P> {
        CoDelQueue::new(self, link)
    }
}

impl HasContract for Params {
    fn contract(&self) -> Contract {
        Contract::new().when(self.ecn, |c| c.provides(Ability::Marks))
    }
}

/// Checks that the target is below the interval.
pub(crate) fn check_delays(target: Duration, interval: Duration) -> Result<(), Invalid> {
    if target >= interval {
        return Err(Invalid {
            key: key!(Params: target),
            message: format!(
                "the target ({target}) must be below the interval ({interval}); \
                 RFC 8289 § 4.4 advises 5 to 10 % of it"
            ),
        });
    }
    Ok(())
}

/// CoDel's targets: the parameters that its state machine reads.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ControlLaw {
    pub(crate) target: Duration,
    pub(crate) interval: Duration,
    /// Backlog that never counts as standing; grows with the largest packet seen.
    pub(crate) mtu: u64,
    pub(crate) ecn: bool,
}

impl ControlLaw {
    /// Takes the size of an arriving packet into account.
    #[inline]
    pub(crate) fn on_packet_size(&mut self, wire_bytes: u32) {
        self.mtu = self.mtu.max(u64::from(wire_bytes));
    }

    /// Returns the time of the next drop: the interval shrinks with the square root of the count
    /// (RFC 8289 § 5.6).
    pub(crate) fn next_drop(&self, from: Time, count: u32) -> Time {
        // A square root and a division of IEEE numbers give the same bits on every machine.
        let wait = self.interval.as_nanos() as f64 / libm::sqrt(f64::from(count.max(1)));
        from + Duration(wait as u64)
    }
}

/// CoDel's variables (RFC 8289 § 5.2): the state machine, apart from the queue that it drains.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct CoDel {
    /// Time from which a sojourn time above the target counts as congestion; `None` while it is
    /// below, or while no more than `mtu` waits.
    first_above: Option<Time>,
    /// Time of the next drop in the dropping state; afterwards it shows how long ago that state
    /// was.
    drop_next: Time,
    /// Drops and marks since the dropping state was entered; its first value may be above one if
    /// the last such state is recent.
    count: u32,
    /// `count` when the dropping state was entered.
    last_count: u32,
    dropping: bool,
}

/// A packet from the head of the queue; `ok_to_drop` if the delay has been too long for an
/// interval.
struct Head<P> {
    packet: P,
    entered: Time,
    ok_to_drop: bool,
}

impl CoDel {
    /// Returns the next packet to leave `store`; may mark it, and drop those before it (RFC 8289
    /// § 5.5, `dequeue`).
    #[inline]
    pub(crate) fn dequeue<P: Packet>(
        &mut self,
        now: Time,
        law: &ControlLaw,
        store: &mut Store<P>,
        context: &mut impl Context<P>,
    ) -> Option<(P, Time)> {
        let Some(head) = self.head(now, law, store) else {
            self.dropping = false;
            return None;
        };
        if !head.ok_to_drop {
            self.dropping = false;
            return Some((head.packet, head.entered));
        }
        if self.dropping {
            if now < self.drop_next {
                return Some((head.packet, head.entered));
            }
            self.drop_due(now, law, store, context, head)
        } else {
            self.enter_dropping(now, law, store, context, head)
        }
    }

    /// Takes the head of the queue and judges its delay (RFC 8289 § 5.6, `dodequeue`).
    #[inline]
    fn head<P: Packet>(
        &mut self,
        now: Time,
        law: &ControlLaw,
        store: &mut Store<P>,
    ) -> Option<Head<P>> {
        let Some((packet, entered)) = store.pop() else {
            self.first_above = None;
            return None;
        };
        // A backlog of up to one packet keeps a slow line busy and is never a standing queue
        // (RFC 8289 § 4.2, § 5.6).
        let ok_to_drop = if now.since(entered) < law.target || store.bytes() <= law.mtu {
            self.first_above = None;
            false
        } else if let Some(due) = self.first_above {
            now >= due
        } else {
            self.first_above = Some(now + law.interval);
            false
        };
        Some(Head { packet, entered, ok_to_drop })
    }

    /// Drops or marks in the dropping state once a drop is due. A large backlog may need several
    /// drops at once (RFC 8289 § 5.5).
    #[cold]
    fn drop_due<P: Packet>(
        &mut self,
        now: Time,
        law: &ControlLaw,
        store: &mut Store<P>,
        context: &mut impl Context<P>,
        mut head: Head<P>,
    ) -> Option<(P, Time)> {
        while now >= self.drop_next {
            if congested(now, &mut head.packet, law.ecn, REASON, context) {
                // The RFC's code has drops only. A marked packet is sent, so one call marks at most
                // one packet, as in Linux.
                self.count = self.count.saturating_add(1);
                self.drop_next = law.next_drop(self.drop_next, self.count);
                break;
            }
            let next = self.head(now, law, store);
            self.dropping = next.as_ref().is_some_and(|h| h.ok_to_drop);
            head = next?;
            if !self.dropping {
                break;
            }
            self.count = self.count.saturating_add(1);
            self.drop_next = law.next_drop(self.drop_next, self.count);
        }
        Some((head.packet, head.entered))
    }

    /// Drops or marks the first packet of a dropping state (RFC 8289 § 5.5).
    #[cold]
    fn enter_dropping<P: Packet>(
        &mut self,
        now: Time,
        law: &ControlLaw,
        store: &mut Store<P>,
        context: &mut impl Context<P>,
        mut head: Head<P>,
    ) -> Option<(P, Time)> {
        let sent = if congested(now, &mut head.packet, law.ecn, REASON, context) {
            Some(head)
        } else {
            self.head(now, law, store)
        };
        self.dropping = true;
        // Soon after the last dropping state, its rate is a good start: the drops that it made,
        // less those that it started with. `drop_next` is at most an interval after the last drop.
        let made = self.count.wrapping_sub(self.last_count);
        let recent = now.since(self.drop_next) < law.interval * RECENT_INTERVALS;
        self.count = if made > 1 && recent { made } else { 1 };
        self.drop_next = law.next_drop(now, self.count);
        self.last_count = self.count;
        sent.map(|h| (h.packet, h.entered))
    }
}

/// A single queue under CoDel.
#[derive(Debug)]
pub struct CoDelQueue<P> {
    law: ControlLaw,
    codel: CoDel,
    store: Store<P>,
}

impl<P: Packet> CoDelQueue<P> {
    /// Creates an empty queue for a link.
    #[must_use]
    pub fn new(params: &Params, link: &LinkProperties) -> Self {
        let law = ControlLaw {
            target: params.target,
            interval: params.interval,
            mtu: params.mtu.0,
            ecn: params.ecn,
        };
        Self { law, codel: CoDel::default(), store: Store::new(params.limit.resolve(link)) }
    }
}

impl<P: Packet> Qdisc<P> for CoDelQueue<P> {
    #[inline]
    fn enqueue(&mut self, now: Time, packet: P, context: &mut impl Context<P>) {
        self.law.on_packet_size(packet.wire_bytes());
        self.store.offer(now, packet, context);
    }

    #[inline]
    fn dequeue(&mut self, now: Time, context: &mut impl Context<P>) -> Option<(P, Time)> {
        self.codel.dequeue(now, &self.law, &mut self.store, context)
    }

    #[inline]
    fn backlog(&self) -> Backlog {
        self.store.backlog()
    }
}

/// Intervals after the time at which the next drop would have been due, within which a new dropping
/// state continues the count of the old one (RFC 8289 § 5.5).
const RECENT_INTERVALS: u64 = 16;
