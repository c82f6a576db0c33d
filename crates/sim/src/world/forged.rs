//! Source quenches that no router sent: what an attacker does to a connection (RFC 5927 § 3).

use super::World;
use cwnd_tcp::{Body, Flags, Segment};
use cwnd_units::Ecn;

impl World {
    /// A forged source quench reaches the sender of the flow with this number in results, now; false if there is none that is open.
    /// `quoted` is the sequence number that it quotes, less that of the connection's first byte; `None` for an attacker on the
    /// path, who sees a right one. No link carries it: attackers may be anywhere. The activity counts `quenches_forged`.
    pub fn forge_quench(&mut self, number: u32, quoted: Option<u32>, marked: bool) -> bool {
        let found = self.flows.iter_mut().find(|flow| flow.number == number);
        let Some(flow) = found.filter(|flow| flow.sender.is_established()) else { return false };
        self.network.count_forged();
        let una = flow.sender.acknowledged();
        // Hosts compare 32 bits; here numbers don't wrap.
        let beyond = quoted.map_or(0, |quoted| quoted.wrapping_sub(una as u32));
        let data = Segment {
            seq: una + u64::from(beyond),
            ts: self.now,
            len: 0,
            wire: 0,
            flags: Flags::default(),
            ecn: Ecn::NotEct,
            body: Body::DATA,
        };
        let before = flow.sender.counters().quenches;
        flow.sender.on_segment(self.now, &data.quench(marked, 0, 0));
        if flow.sender.counters().quenches > before {
            let id = flow.id;
            self.drive_sender(id);
        }
        true
    }
}
