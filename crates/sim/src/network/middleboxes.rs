//! Packets that pass something that tampers with their options.

use cwnd_link::{Middlebox, Tampered};
use cwnd_quantity::{Streams, Time};
use cwnd_scenario::{Link, Tampering};
use cwnd_tcp::Body;

use super::Network;
use crate::event::EventQueue;
use crate::packet::Packet;

impl Network {
    /// The middlebox behind a link, if one tampers there.
    pub(super) fn add_middlebox(&mut self, link: &Link, random: &Streams) -> Option<u32> {
        if link.tampering == Tampering::default() {
            return None;
        }
        let rng = random.named(&format!("link.{}.options", link.name));
        self.middleboxes.push(Middlebox::new(link.tampering, rng));
        Some(self.middleboxes.len() as u32 - 1)
    }

    /// A packet passes a middlebox and goes on; returns it if its next stop is a host.
    // Most networks have none: the other hops are looked at as if there were none anywhere.
    #[cold]
    #[inline(never)]
    pub(super) fn pass_middlebox(
        &mut self,
        now: Time,
        i: u32,
        packet: Packet,
        events: &mut EventQueue,
    ) -> Option<Packet> {
        let middlebox = &mut self.middleboxes[i as usize];
        match &mut self.segments.get_mut(packet.place()).body {
            Body::Data { header, .. } => middlebox.meet_header(header),
            Body::Ack { echo, .. } => middlebox.meet_echo(echo),
            Body::Quench { .. } | Body::Quic { .. } | Body::QuicAck(_) => {}
        }
        self.forward(now, packet, events)
    }

    /// What all middleboxes did.
    pub fn tampered(&self) -> Tampered {
        self.middleboxes.iter().map(Middlebox::tampered).fold(Tampered::default(), |sum, of| {
            Tampered { removed: sum.removed + of.removed, damaged: sum.damaged + of.damaged }
        })
    }
}
