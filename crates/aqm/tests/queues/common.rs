//! Test packets, a context that records drops and marks, and a link.

use cwnd_aqm::{Context, Packet, Qdisc, Reason};
use cwnd_packet::Ecn;
use cwnd_quantity::{Duration, LinkProperties, Rate, Time};

/// A packet with the fields that queues read, and a number to identify it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pkt {
    pub id: u64,
    pub flow: u64,
    pub size: u32,
    pub ecn: Ecn,
}

impl Pkt {
    /// Returns a full packet of a flow without ECN.
    pub fn plain(id: u64) -> Self {
        Self { id, flow: 1, size: 1500, ecn: Ecn::NotEct }
    }

    /// Returns a full packet of an ECN-capable flow.
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

/// Context that records all drops and marks.
#[derive(Default)]
pub struct Log {
    pub drops: Vec<(Time, Pkt, Reason)>,
    pub marks: Vec<(Time, Pkt, Reason)>,
    /// Number of marks on packets that were already marked on arrival.
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

/// Returns a link of 10 Mbit/s and 100 ms: a bandwidth-delay product of 125 kB, 1.2 ms for a full
/// packet.
pub fn link() -> LinkProperties {
    LinkProperties { rate: Rate::from_mbit(10), bdp_rtt: Duration::from_millis(100) }
}

pub fn ms(n: u64) -> Time {
    Time(n * 1_000_000)
}

/// Enqueues `packets`, all at `now`.
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
