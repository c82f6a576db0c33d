//! A queue in Python. The crate keeps its packets and carries out its decisions; whoever runs a
//! scenario loads the code and sets a [`Maker`].

use alloc::boxed::Box;
use alloc::vec::Vec;
use core::fmt;

use cwnd_packet::{Ability, Contract, Ecn, HasContract};
use cwnd_quantity::{LinkProperties, Rate, Rng, Time};
use cwnd_schema::{ClassName, Loaded, RegistryEntry, Schema};

use crate::qdisc::{Backlog, Context, Packet, Qdisc, QueueInfo, Reason, mark};

/// Name and description in scenarios.
pub const ENTRY: RegistryEntry =
    RegistryEntry::new("python", "A class in Python: a queue of one's own.");

/// Makes queues of loaded code.
pub trait Maker: fmt::Debug + Send + Sync {
    /// Makes the queue of a link.
    fn make(&self, link: &LinkProperties, rng: Rng) -> Box<dyn Decider>;
}

/// Decisions of a queue about packets that it knows by number.
pub trait Decider: fmt::Debug + Send {
    /// Takes in a packet. The packets that it drops or marks are added to `verdicts`.
    fn enqueue(&mut self, now: Time, packet: Arrived, verdicts: &mut Vec<Verdict>);
    /// Returns the number of the next packet to send, which waits; `None` sends none.
    fn dequeue(&mut self, now: Time, verdicts: &mut Vec<Verdict>) -> Option<u32>;
    /// Takes the link's rate from now on.
    fn on_rate(&mut self, now: Time, rate: Rate);
    /// As [`Qdisc::count`].
    fn count(&self, each: &mut dyn FnMut(&'static str, u64));
}

/// A packet that arrives at the queue.
#[derive(Clone, Copy, Debug)]
pub struct Arrived {
    /// Number, unique among the packets that wait.
    pub number: u32,
    /// Size on the wire, bytes.
    pub wire_bytes: u32,
    /// Hash of the flow, as [`Packet::flow_hash`].
    pub flow_hash: u64,
    /// IP ECN field.
    pub ecn: Ecn,
}

/// A packet that the queue drops or marks.
#[derive(Clone, Copy, Debug)]
pub struct Verdict {
    /// Number of the packet, which waits.
    pub number: u32,
    /// `true` to drop it, `false` to mark it with CE.
    pub drops: bool,
    /// Reason.
    pub reason: Reason,
}

/// A class with `enqueue` and `dequeue`.
#[derive(Clone, Debug, PartialEq, Schema)]
pub struct Params {
    /// Class.
    #[flatten(ClassName::default())]
    pub class: ClassName,
    /// Arguments of the constructor.
    #[loaded]
    pub loaded: Loaded<dyn Maker>,
}

impl QueueInfo for Params {
    type Queue<P> = Queue<P>;

    fn build<P: Packet>(&self, link: &LinkProperties, rng: Rng) -> Queue<P> {
        let decider = self.loaded.maker.as_ref().map(|maker| maker.make(link, rng));
        Queue {
            decider,
            waiting: Vec::new(),
            free: Vec::new(),
            backlog: Backlog::default(),
            verdicts: Vec::new(),
        }
    }

    fn reads_flow_hash(&self) -> bool {
        true
    }
}

/// Before the code is loaded it is unknown whether it marks: it may.
impl HasContract for Params {
    fn contract(&self) -> Contract {
        Contract::new().provides(Ability::Marks)
    }
}

/// A queue whose decisions are made elsewhere.
#[derive(Debug)]
pub struct Queue<P> {
    /// `None` if its code is not loaded, in scenarios that are read and not run.
    decider: Option<Box<dyn Decider>>,
    /// Packets by number, each with its time of arrival.
    waiting: Vec<Option<(P, Time)>>,
    /// Numbers that no packet has.
    free: Vec<u32>,
    backlog: Backlog,
    /// Verdicts of a call; empty between calls.
    verdicts: Vec<Verdict>,
}

impl<P: Packet> Queue<P> {
    fn insert(&mut self, now: Time, packet: P) -> u32 {
        self.backlog.packets += 1;
        self.backlog.bytes += u64::from(packet.wire_bytes());
        let number = self.free.pop().unwrap_or(self.waiting.len() as u32);
        match self.waiting.get_mut(number as usize) {
            Some(slot) => *slot = Some((packet, now)),
            None => self.waiting.push(Some((packet, now))),
        }
        number
    }

    fn remove(&mut self, number: u32) -> Option<(P, Time)> {
        let (packet, arrived) = self.waiting.get_mut(number as usize)?.take()?;
        self.free.push(number);
        self.backlog.packets -= 1;
        self.backlog.bytes -= u64::from(packet.wire_bytes());
        Some((packet, arrived))
    }

    fn carry_out(&mut self, now: Time, context: &mut impl Context<P>) {
        let mut verdicts = core::mem::take(&mut self.verdicts);
        for Verdict { number, drops, reason } in verdicts.drain(..) {
            if drops {
                if let Some((packet, _)) = self.remove(number) {
                    context.dropped(now, &packet, reason);
                }
            } else if let Some(Some((packet, _))) = self.waiting.get_mut(number as usize) {
                mark(now, packet, reason, context);
            }
        }
        self.verdicts = verdicts;
    }
}

impl<P: Packet> Qdisc<P> for Queue<P> {
    fn enqueue(&mut self, now: Time, packet: P, context: &mut impl Context<P>) {
        let (wire_bytes, flow_hash) = (packet.wire_bytes(), packet.flow_hash());
        let ecn = context.ecn(&packet);
        let number = self.insert(now, packet);
        let Some(decider) = &mut self.decider else { return };
        let arrived = Arrived { number, wire_bytes, flow_hash, ecn };
        decider.enqueue(now, arrived, &mut self.verdicts);
        self.carry_out(now, context);
    }

    fn dequeue(&mut self, now: Time, context: &mut impl Context<P>) -> Option<(P, Time)> {
        if self.backlog.packets == 0 {
            return None;
        }
        let chosen = self.decider.as_mut()?.dequeue(now, &mut self.verdicts);
        self.carry_out(now, context);
        self.remove(chosen?)
    }

    fn backlog(&self) -> Backlog {
        self.backlog
    }

    fn on_rate(&mut self, now: Time, rate: Rate) {
        if let Some(decider) = &mut self.decider {
            decider.on_rate(now, rate);
        }
    }

    fn count(&self, each: &mut dyn FnMut(&'static str, u64)) {
        if let Some(decider) = &self.decider {
            decider.count(each);
        }
    }
}
