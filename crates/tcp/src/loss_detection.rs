//! Rules by which senders find losses. Those by sequence numbers have no state; that of RACK is a
//! part of the sender.

mod fack;
mod rfc6675;

use crate::params::{LossRule, Params, Recovery};
pub use fack::Fack;
pub use rfc6675::Rfc6675;

/// Rule by which the senders of a group find losses.
#[derive(Clone, Copy, Debug)]
pub enum Detection {
    /// Duplicate ACKs alone (RFC 5681 § 3.2): there is no SACK.
    DupAck,
    /// Data SACKed above.
    Rfc6675(Rfc6675),
    /// The highest SACKed data.
    Fack(Fack),
    /// Time, by the state that a sender keeps (RFC 8985 § 6).
    Rack,
}

impl Detection {
    pub fn of(params: &Params) -> Self {
        let (dup_thresh, mss) = (params.detection.dup_thresh, params.packets.mss.0);
        match params.detection.loss_rule {
            _ if params.recovery.recovery != Recovery::Sack => Self::DupAck,
            LossRule::Rfc6675 => Self::Rfc6675(Rfc6675::new(dup_thresh, mss)),
            LossRule::Fack => Self::Fack(Fack::new(dup_thresh, mss)),
            LossRule::Rack => Self::Rack,
        }
    }
}
