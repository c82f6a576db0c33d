//! Transfers of the sender and receiver under test over the random paths, driven by their own
//! decisions.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};
use std::sync::Arc;

use cwnd_quantity::{Duration, Time};
use cwnd_tcp::quic::{Ack, Packet, Params, Receiver, Sender, Sizes};

use crate::controller::{MDS, new_reno};
use crate::lockstep::{BYTES, PACKETS};
use crate::path::{Family, Path};

/// Sizes of quinn's packets.
const SIZES: Sizes = Sizes { payload: 1162, overhead: 38 };
/// Start of each transfer.
const START: Time = Time(1_000_000_000);

enum Arrival {
    Data(Packet, bool),
    Ack(Ack),
}

/// Transfers [`BYTES`] over the pattern `seed` of a family; returns the time that it takes.
pub fn run(family: Family, seed: u64, params: &Arc<Params>) -> Duration {
    let mut path = Path::new(family, seed, START, PACKETS);
    let mut sender = Sender::new(params, new_reno(MDS), SIZES);
    let mut receiver = Receiver::new(Arc::clone(params));
    for _ in 0..3 {
        // quinn's handshake takes as many RTT samples.
        sender.on_handshake_rtt(Time::ZERO, path.delay() * 2);
    }
    sender.write(BYTES);
    let (mut arrivals, mut queue, mut order) = (BTreeMap::new(), BinaryHeap::new(), 0_u64);
    let mut now = START;
    while !sender.is_drained() {
        let mut put = |at: Option<Time>, arrival: Arrival| {
            order += 1;
            if let Some(at) = at {
                queue.push(Reverse((at, order)));
                arrivals.insert(order, arrival);
            }
        };
        while let Some(packet) = sender.poll_transmit(now) {
            let fate = path.data(now);
            put(fate.arrives, Arrival::Data(packet, fate.marked));
        }
        if let Some(ack) = receiver.poll_ack(now) {
            put(path.ack(now).arrives, Arrival::Ack(ack));
        }
        let arrival = queue.peek().map_or(Time::NEVER, |Reverse((at, _))| *at);
        let timers = sender.next_timer().min(receiver.next_timer());
        assert!(arrival.min(timers) < START + Duration::from_secs(3600), "{family:?} {seed} ends");
        now = now.max(arrival.min(timers));
        if arrival > timers {
            sender.on_timer(now);
            continue;
        }
        let Some(Reverse((_, number))) = queue.pop() else { continue };
        match arrivals.remove(&number) {
            Some(Arrival::Data(packet, marked)) => receiver.on_packet(now, &packet, marked),
            Some(Arrival::Ack(ack)) => sender.on_ack(now, &ack.frame()),
            None => {}
        }
    }
    assert_eq!((receiver.delivered(), sender.acknowledged()), (BYTES, BYTES), "{family:?} {seed}");
    now.since(START)
}
