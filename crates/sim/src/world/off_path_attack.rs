//! Off-path attacks on connections: forged source quenches (RFC 5927 § 6.1).

use cwnd_apps::attackers::Message;
use cwnd_apps::{Attacker, Forged};
use cwnd_packet::Ecn;
use cwnd_quantity::{Rng, Time};
use cwnd_tcp::{Body, Flags, Segment};

use super::World;
use crate::event::{Event, FlowId};

/// An attack on one connection.
#[derive(Debug)]
pub(super) struct Attack {
    /// Connection under attack; another may take its slot.
    of: FlowId,
    attacker: Box<dyn Attacker>,
    rng: Rng,
    /// Arrival time and contents of the next forged packet.
    next: (Time, Forged),
}

impl World {
    /// Delivers a forged source quench now to the sender of the flow with this number in results.
    ///
    /// Returns `false` without such an open connection. `quoted` is the quoted sequence number,
    /// relative to the first byte of the connection; `None` for an attacker on the path, which
    /// sees a valid one. No link carries the packet. The activity counts `quenches_forged`.
    pub fn forge_quench(&mut self, number: u32, quoted: Option<u32>, marked: bool) -> bool {
        let found = self.hosts.flows.iter().find(|flow| flow.number == number);
        let Some(flow) = found.filter(|flow| flow.data.sender.is_established()) else {
            return false;
        };
        self.forge(flow.id, Forged { quoted, what: Message::Quench { marked } });
        true
    }

    /// Starts the attack on a new connection if its group has an attacker.
    #[inline]
    pub(super) fn begin_attack(&mut self, g: usize, of: FlowId, name: &str) {
        if let Some(attacker) = self.scenario.flows[g].attacker.build(self.events.now()) {
            self.begin_attack_by(attacker, of, name);
        }
    }

    #[cold]
    fn begin_attack_by(&mut self, mut attacker: Box<dyn Attacker>, of: FlowId, name: &str) {
        let mut rng = self.random.named(&format!("{name}.attacker"));
        if let Some(next) = attacker.next(&mut rng) {
            self.events.push(next.0, Event::Forged(of));
            self.workloads.attacks.insert(of.slot(), Attack { of, attacker, rng, next });
        }
    }

    /// Handles [`Event::Forged`].
    #[cold]
    #[inline(never)]
    pub(super) fn on_forged(&mut self, of: FlowId) {
        let slot = of.slot();
        let Some(attack) = self.workloads.attacks.get_mut(&slot).filter(|attack| attack.of == of)
        else {
            return;
        };
        let (_, forged) = attack.next;
        let lasts = self.hosts.flows.get(slot).is_some_and(|flow| flow.id == of && !flow.is_over());
        match attack.attacker.next(&mut attack.rng).filter(|_| lasts) {
            Some(next) => {
                attack.next = next;
                self.events.push(next.0, Event::Forged(of));
            }
            None => {
                self.workloads.attacks.remove(&slot);
            }
        }
        if lasts && self.hosts.flows[slot].data.sender.is_established() {
            self.forge(of, forged);
        }
    }

    /// Delivers a forged packet to an open connection.
    fn forge(&mut self, id: FlowId, forged: Forged) {
        self.network.count_forged();
        let flow = &mut self.hosts.flows[id.slot()];
        let una = flow.data.sender.acknowledged();
        // Hosts compare 32 bits; sequence numbers in the simulator do not wrap.
        let beyond = forged.quoted.map_or(0, |quoted| quoted.wrapping_sub(una as u32));
        let data = Segment {
            seq: una + u64::from(beyond),
            ts: self.events.now(),
            len: 0,
            wire: 0,
            flags: Flags::default(),
            ecn: Ecn::NotEct,
            body: Body::DATA,
        };
        let before = flow.data.sender.counters().quenches;
        match forged.what {
            Message::Quench { marked } => {
                flow.data.sender.on_segment(self.events.now(), &data.quench(marked, 0, 0));
            }
        }
        if flow.data.sender.counters().quenches > before {
            self.drive_sender(id);
        }
    }

    /// Time and target of each attack's next forged packet.
    pub(super) fn attacks_due(&self) -> impl Iterator<Item = (Time, FlowId)> {
        self.workloads.attacks.values().map(|attack| (attack.next.0, attack.of))
    }
}
