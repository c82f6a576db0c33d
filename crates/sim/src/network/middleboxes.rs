//! Passage of packets through middleboxes that tamper with options.

use cwnd_link::{Middlebox, MiddleboxCounters};
use cwnd_quantity::{Streams, Time};
use cwnd_scenario::{Link, Tampering};
use cwnd_tcp::Body;

use super::Network;
use crate::event::EventQueue;
use crate::packet::Packet;

impl Network {
    /// Adds the middlebox of a link; `None` if the link does not tamper with options.
    pub(super) fn add_middlebox(&mut self, link: &Link, random: &Streams) -> Option<u32> {
        if link.tampering == Tampering::default() {
            return None;
        }
        let rng = random.named(&format!("link.{}.options", link.name));
        self.middleboxes.push(Middlebox::new(link.tampering, rng));
        Some(self.middleboxes.len() as u32 - 1)
    }

    /// Passes a packet through a middlebox and on; returns it if its next hop is a host.
    // Cold: most networks have no middlebox, and the code of the other hops stays compact.
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
        match &mut self.segments.get_mut(packet.slot()).body {
            Body::Data { header, .. } => middlebox.tamper_with_header(header),
            Body::Ack { echo, .. } => middlebox.tamper_with_echo(echo),
            Body::Quench { .. } | Body::Quic { .. } | Body::QuicAck(_) => {}
        }
        self.forward(now, packet, events)
    }

    /// Numbers of options that all middleboxes removed and damaged.
    pub fn middlebox_counters(&self) -> MiddleboxCounters {
        self.middleboxes.iter().map(Middlebox::counters).fold(
            MiddleboxCounters::default(),
            |sum, of| MiddleboxCounters {
                removed: sum.removed + of.removed,
                damaged: sum.damaged + of.damaged,
            },
        )
    }
}
