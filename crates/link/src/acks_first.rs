//! Priority of packets without payload over those with.

use std::collections::VecDeque;

use cwnd_aqm::{AnyQdisc, Backlog, Context, Qdisc, Reason};
use cwnd_packet::Guidance;
use cwnd_quantity::{Rate, Time};

use crate::counters::Packet;

/// Most packets without payload that wait: Linux's usual device queue (txqueuelen).
const MAX_ACKS: usize = 1000;

/// A queue discipline for packets with payload. Those without wait in a first-in, first-out queue
/// that is served before it.
///
/// VCP's program for ns-2 has such routers (`drop-tail2.cc`). Departs from it: one limit covers
/// both of its queues. Here the discipline's limit covers packets with payload alone.
#[derive(Debug)]
pub(crate) struct AcksFirst<P> {
    acks: VecDeque<(Time, P)>,
    ack_bytes: u64,
    queue: AnyQdisc<P>,
}

impl<P> AcksFirst<P> {
    /// Puts an empty queue for packets without payload before `queue`.
    pub(crate) fn new(queue: AnyQdisc<P>) -> Self {
        Self { acks: VecDeque::new(), ack_bytes: 0, queue }
    }
}

impl<P: Packet> Qdisc<P> for AcksFirst<P> {
    fn enqueue(&mut self, now: Time, packet: P, context: &mut impl Context<P>) {
        if packet.has_payload() {
            self.queue.enqueue(now, packet, context);
        } else if self.acks.len() < MAX_ACKS {
            self.ack_bytes += u64::from(packet.wire_bytes());
            self.acks.push_back((now, packet));
        } else {
            context.dropped(now, &packet, Reason::OVERLIMIT);
        }
    }

    fn dequeue(&mut self, now: Time, context: &mut impl Context<P>) -> Option<(P, Time)> {
        let Some((entered, ack)) = self.acks.pop_front() else {
            return self.queue.dequeue(now, context);
        };
        self.ack_bytes -= u64::from(ack.wire_bytes());
        Some((ack, entered))
    }

    fn backlog(&self) -> Backlog {
        let Backlog { packets, bytes } = self.queue.backlog();
        Backlog { packets: packets + self.acks.len() as u64, bytes: bytes + self.ack_bytes }
    }

    fn next_timer(&self) -> Option<Time> {
        self.queue.next_timer()
    }

    fn on_timer(&mut self, now: Time) {
        self.queue.on_timer(now);
    }

    fn on_rate(&mut self, now: Time, rate: Rate) {
        self.queue.on_rate(now, rate);
    }

    fn probability(&self) -> Option<f64> {
        self.queue.probability()
    }

    fn state(&self) -> Option<f64> {
        self.queue.state()
    }

    fn guidance(&self) -> Option<Guidance> {
        self.queue.guidance()
    }

    fn count(&self, each: &mut dyn FnMut(&'static str, u64)) {
        self.queue.count(each);
    }
}

#[cfg(test)]
mod tests {
    use cwnd_aqm::{QueueParams, fifo};
    use cwnd_packet::Ecn;
    use cwnd_quantity::{LinkProperties, QueueSize, Rng};

    use super::*;

    /// A packet of 1000 B with data, or an ACK of 40 B, with a number.
    #[derive(Clone, Copy, Debug, PartialEq)]
    enum Numbered {
        Data(u32),
        Ack(u32),
    }

    use Numbered::{Ack, Data};

    impl cwnd_aqm::Packet for Numbered {
        fn wire_bytes(&self) -> u32 {
            if self.has_payload() { 1000 } else { 40 }
        }
        fn flow_hash(&self) -> u64 {
            0
        }
    }

    impl Packet for Numbered {
        fn has_payload(&self) -> bool {
            matches!(self, Data(_))
        }
    }

    /// A context that records dropped packets.
    struct Drops(Vec<Numbered>);

    impl Context<Numbered> for Drops {
        fn ecn(&self, _: &Numbered) -> Ecn {
            Ecn::NotEct
        }
        fn set_ecn(&mut self, _: &mut Numbered, _: Ecn) {}
        fn dropped(&mut self, _: Time, packet: &Numbered, _: Reason) {
            self.0.push(*packet);
        }
        fn marked(&mut self, _: Time, _: &Numbered, _: Reason, _: bool) {}
    }

    fn queue(packets: u64) -> AcksFirst<Numbered> {
        let facts = LinkProperties { rate: Rate::from_mbit(1), bdp_rtt: Default::default() };
        let fifo = QueueParams::Fifo(fifo::Params { limit: QueueSize::Packets(packets) });
        AcksFirst::new(fifo.build(&facts, Rng::named(0, "test")))
    }

    #[test]
    fn acks_pass_data_that_waits_and_keep_their_order() {
        let (mut queue, mut drops) = (queue(10), Drops(Vec::new()));
        for (at, packet) in [Data(0), Ack(1), Data(2), Ack(3)].into_iter().enumerate() {
            queue.enqueue(Time(at as u64), packet, &mut drops);
        }
        assert_eq!(queue.backlog(), Backlog { packets: 4, bytes: 2080 });
        let mut left = Vec::new();
        while let Some((packet, Time(entered))) = queue.dequeue(Time(9), &mut drops) {
            left.push((packet, entered));
        }
        assert_eq!(left, [(Ack(1), 1), (Ack(3), 3), (Data(0), 0), (Data(2), 2)]);
        assert_eq!(queue.backlog(), Backlog::default());
        assert_eq!(drops.0, []);
    }

    #[test]
    fn data_that_fills_the_queue_leaves_acks_their_own_limit() {
        let (mut queue, mut drops) = (queue(1), Drops(Vec::new()));
        queue.enqueue(Time(0), Data(0), &mut drops);
        queue.enqueue(Time(0), Data(1), &mut drops);
        for n in 0..=MAX_ACKS as u32 {
            queue.enqueue(Time(0), Ack(n), &mut drops);
        }
        assert_eq!(drops.0, [Data(1), Ack(MAX_ACKS as u32)]);
    }
}
