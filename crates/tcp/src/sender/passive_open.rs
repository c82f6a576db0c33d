//! A sender at the end that did not open the connection.

use cwnd_quantity::Time;

use super::{Connection, Sender};

/// A handshake as a server knows it when the first segment behind it arrives.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Handshake {
    /// Number of SYN-ACKs sent; none if the connection began without a handshake.
    pub syn_acks: u32,
    /// Time of the last of them.
    pub last: Time,
}

impl Sender {
    /// The other end opened the connection and shows now, with the first segment behind the
    /// handshake, that it is open.
    pub fn accept(&mut self, now: Time, handshake: Handshake) {
        self.connection = Connection::Established;
        match handshake.syn_acks {
            0 => {}
            1 => {
                // RFC 6298 § 2.2: the SYN-ACK and what answers it are a round trip.
                let seen = self.rtt.seen();
                let measured = self.take_rtt(now, handshake.last);
                self.rtt.on_handshake(now, (handshake.last, true), seen, Some(measured));
            }
            // Karn: which of them was answered is not known. RFC 5681 § 3.1: after a lost SYN or
            // SYN-ACK the initial window is one segment.
            _ => self.cc = self.config.controller_after_syn_loss(),
        }
    }
}
