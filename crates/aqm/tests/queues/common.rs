//! A packet, a context that remembers, and a link to put queues before.

use cwnd_aqm::{Context, Packet, Qdisc, Reason};
use cwnd_packet::Ecn;
use cwnd_quantity::{Duration, LinkFacts, Rate, Time};

/// A packet of which only what queues look at is there, and a number to tell it by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pkt {
    pub id: u64,
    pub flow: u64,
    pub size: u32,
    pub ecn: Ecn,
}

impl Pkt {
    /// A full packet of a flow that does not speak ECN.
    pub fn plain(id: u64) -> Self {
        Self { id, flow: 1, size: 1500, ecn: Ecn::NotEct }
    }

    /// A full packet of a flow that does.
    pub fn ect(id: u64) -> Self {
        Self { ecn: Ecn::Ect0, ..Self::plain(id) }
    }

    pub fn of_size(self, size: u32) -> Self {
        Self { size, ..self }
    }

    pub fn of_flow(self, flow: u64) -> Self {
        Self { flow, ..self }
    }
}

impl Packet for Pkt {
    fn wire_bytes(&self) -> u32 {
        self.size
    }
    fn flow_hash(&self) -> u64 {
        self.flow
    }
}

/// Remembers all drops and marks.
#[derive(Default)]
pub struct Log {
    pub drops: Vec<(Time, Pkt, Reason)>,
    pub marks: Vec<(Time, Pkt, Reason)>,
    /// Marks of packets that were marked when they came.
    pub marked_again: u64,
}

impl Context<Pkt> for Log {
    fn ecn(&self, packet: &Pkt) -> Ecn {
        packet.ecn
    }
    fn set_ecn(&mut self, packet: &mut Pkt, ecn: Ecn) {
        packet.ecn = ecn;
    }
    fn dropped(&mut self, now: Time, packet: &Pkt, reason: Reason) {
        self.drops.push((now, *packet, reason));
    }
    fn marked(&mut self, now: Time, packet: &Pkt, reason: Reason, already: bool) {
        assert_eq!(packet.ecn, Ecn::Ce, "a marked packet carries CE");
        self.marks.push((now, *packet, reason));
        self.marked_again += u64::from(already);
    }
}

/// 10 Mbit/s, 100 ms: a bandwidth-delay product of 125 kB, 1.2 ms for a full packet.
pub fn link() -> LinkFacts {
    LinkFacts { rate: Rate::from_mbit(10), bdp_rtt: Duration::from_millis(100) }
}

pub fn ms(n: u64) -> Time {
    Time(n * 1_000_000)
}

/// Puts in packets `ids`, all at `now`.
pub fn fill(
    queue: &mut impl Qdisc<Pkt>,
    now: Time,
    log: &mut Log,
    packets: impl Iterator<Item = Pkt>,
) {
    for packet in packets {
        queue.enqueue(now, packet, log);
    }
}
