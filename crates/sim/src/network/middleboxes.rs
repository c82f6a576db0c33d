//! Packets that pass something that tampers with their options.

use cwnd_link::{Middlebox, Tampered};
use cwnd_tcp::Body;
use cwnd_units::Time;

use super::Network;
use crate::event::EventQueue;
use crate::packet::Packet;

impl Network {
    pub(super) fn add_middlebox(&mut self, middlebox: Middlebox) -> u32 {
        self.middleboxes.push(middlebox);
        self.middleboxes.len() as u32 - 1
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
            Body::Quench { .. } => {}
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
