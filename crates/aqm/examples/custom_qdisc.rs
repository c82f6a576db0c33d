//! A user-defined queue discipline: last in, first out, so that an overload delays old packets and
//! not new ones. Run with `cargo run -p cwnd-aqm --example custom_qdisc`.

use cwnd_aqm::{Backlog, Context, Packet, Qdisc, Reason};
use cwnd_packet::Ecn;
use cwnd_quantity::Time;

/// Last-in, first-out queue; a full stack drops arrivals.
struct Lifo<P> {
    stack: Vec<(P, Time)>,
    limit: usize,
}

impl<P: Packet> Qdisc<P> for Lifo<P> {
    fn enqueue(&mut self, now: Time, packet: P, context: &mut impl Context<P>) {
        if self.stack.len() < self.limit {
            self.stack.push((packet, now));
        } else {
            context.dropped(now, &packet, Reason::OVERLIMIT);
        }
    }
    fn dequeue(&mut self, _now: Time, _context: &mut impl Context<P>) -> Option<(P, Time)> {
        self.stack.pop()
    }
    fn backlog(&self) -> Backlog {
        let bytes = self.stack.iter().map(|(p, _)| u64::from(p.wire_bytes())).sum();
        Backlog { packets: self.stack.len() as u64, bytes }
    }
}

struct Numbered(u32);
impl Packet for Numbered {
    fn wire_bytes(&self) -> u32 {
        1500
    }
    fn flow_hash(&self) -> u64 {
        0
    }
}

struct Print;
impl Context<Numbered> for Print {
    fn ecn(&self, _: &Numbered) -> Ecn {
        Ecn::NotEct
    }
    fn set_ecn(&mut self, _: &mut Numbered, _: Ecn) {}
    fn dropped(&mut self, now: Time, packet: &Numbered, reason: Reason) {
        println!("{now}: packet {} dropped ({})", packet.0, reason.name());
    }
    fn marked(&mut self, _: Time, _: &Numbered, _: Reason, _: bool) {}
}

fn main() {
    let mut queue = Lifo { stack: Vec::new(), limit: 3 };
    (0..5).for_each(|n| queue.enqueue(Time(1_000_000 * u64::from(n)), Numbered(n), &mut Print));
    while let Some((packet, entered)) = queue.dequeue(Time(5_000_000), &mut Print) {
        println!("packet {} sent after {}", packet.0, Time(5_000_000).since(entered));
    }
}
