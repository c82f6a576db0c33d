//! Tests of the disciplines through their trait, in one binary, so that helpers are shared and the
//! link step is paid once. Here are their packets, a context that records drops and marks, and a
//! link.
#![expect(clippy::unwrap_used, reason = "a panic is how a test fails")]

mod codel;
mod invariants;
mod load;
mod meters;
mod pie;
mod red;
mod vectors;

use cwnd_aqm::{Context, Packet, Qdisc, Reason};
use cwnd_packet::Ecn;
use cwnd_quantity::{Duration, LinkProperties, Rate, Time};

/// A packet with the fields that queues read, and a number to identify it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Pkt {
    id: u64,
    flow: u64,
    size: u32,
    ecn: Ecn,
}

impl Pkt {
    /// Returns a full packet of a flow without ECN.
    fn plain(id: u64) -> Self {
        Self { id, flow: 1, size: 1500, ecn: Ecn::NotEct }
    }

    /// Returns a full packet of an ECN-capable flow.
    fn ect(id: u64) -> Self {
        Self { ecn: Ecn::Ect0, ..Self::plain(id) }
    }

    fn of_size(self, size: u32) -> Self {
        Self { size, ..self }
    }

    fn of_flow(self, flow: u64) -> Self {
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
struct Log {
    drops: Vec<(Time, Pkt, Reason)>,
    marks: Vec<(Time, Pkt, Reason)>,
    /// Number of marks on packets that were already marked on arrival.
    marked_again: u64,
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
fn link() -> LinkProperties {
    LinkProperties { rate: Rate::from_mbit(10), bdp_rtt: Duration::from_millis(100) }
}

fn ms(n: u64) -> Time {
    Time(n * 1_000_000)
}

/// Enqueues `packets`, all at `now`.
fn fill(queue: &mut impl Qdisc<Pkt>, now: Time, log: &mut Log, packets: impl Iterator<Item = Pkt>) {
    for packet in packets {
        queue.enqueue(now, packet, log);
    }
}
