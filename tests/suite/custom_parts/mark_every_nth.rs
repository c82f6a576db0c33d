//! Custom queue: drop-tail that marks each packet whose number is a multiple of `n`, or drops it if
//! it is not ECN-capable.

use std::collections::VecDeque;

use cwnd_aqm::{Backlog, Context, Packet, Qdisc, Reason, congested};
use cwnd_packet::{Ability, Contract, HasContract};
use cwnd_quantity::Time;

const NTH: Reason = Reason::named("toy_nth");

#[derive(Debug)]
pub struct MarkEveryNth<P> {
    n: u64,
    capacity: u64,
    arrived: u64,
    waiting: VecDeque<(P, Time)>,
    bytes: u64,
}

impl<P> MarkEveryNth<P> {
    pub const fn new(n: u64, capacity: u64) -> Self {
        Self { n, capacity, arrived: 0, waiting: VecDeque::new(), bytes: 0 }
    }
}

impl<P> HasContract for MarkEveryNth<P> {
    fn contract(&self) -> Contract {
        Contract::new().provides(Ability::Marks)
    }
}

impl<P: Packet> Qdisc<P> for MarkEveryNth<P> {
    fn enqueue(&mut self, now: Time, mut packet: P, context: &mut impl Context<P>) {
        self.arrived += 1;
        if self.waiting.len() as u64 >= self.capacity {
            return context.dropped(now, &packet, Reason::OVERLIMIT);
        }
        if self.arrived.is_multiple_of(self.n) && !congested(now, &mut packet, true, NTH, context) {
            return;
        }
        self.bytes += u64::from(packet.wire_bytes());
        self.waiting.push_back((packet, now));
    }

    fn dequeue(&mut self, _: Time, _: &mut impl Context<P>) -> Option<(P, Time)> {
        let (packet, since) = self.waiting.pop_front()?;
        self.bytes -= u64::from(packet.wire_bytes());
        Some((packet, since))
    }

    fn backlog(&self) -> Backlog {
        Backlog { packets: self.waiting.len() as u64, bytes: self.bytes }
    }

    fn count(&self, each: &mut dyn FnMut(&'static str, u64)) {
        each("toy_nth_came", self.arrived);
    }
}
