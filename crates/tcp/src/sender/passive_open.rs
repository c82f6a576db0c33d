//! Passive open: the sender of the end that did not send the SYN.

use cwnd_quantity::Time;

use super::{Connection, Sender};

/// Facts about a handshake that a server has when the first segment after it arrives.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Handshake {
    /// Number of SYN-ACKs sent; zero if the connection began without a handshake.
    pub syn_acks: u32,
    /// Time of the last SYN-ACK.
    pub last: Time,
}

impl Sender {
    /// Establishes a connection that the other end opened, at its first segment after the
    /// handshake.
    pub fn accept(&mut self, now: Time, handshake: Handshake) {
        self.connection = Connection::Established;
        match handshake.syn_acks {
            0 => {}
            1 => {
                // RFC 6298 § 2.2: the SYN-ACK and its answer give the first RTT sample.
                let seen = self.rtt.controller_view();
                let measured = self.add_rtt_sample(now, handshake.last);
                self.rtt.on_handshake(now, (handshake.last, true), seen, Some(measured));
            }
            // Karn's algorithm: it is ambiguous which SYN-ACK was answered. RFC 5681 § 3.1: after a
            // lost SYN or SYN-ACK the initial window is one segment.
            _ => self.cc = self.config.controller_after_syn_loss(),
        }
    }
}
