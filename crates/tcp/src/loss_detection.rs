//! Rules by which senders find losses. Those by sequence numbers have no state; that of RACK is a
//! part of the sender.

mod fack;
mod overtaken;
mod rfc6675;

use crate::params::{LossRule, Params, Recovery};
pub use fack::Fack;
pub use overtaken::{Arrived, InFlight, Overtaken};
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

impl Overtaken {
    /// The rule for retransmissions; `None` if the timer finds those that are lost, or RACK.
    pub fn of(params: &Params) -> Option<Self> {
        let Params { detection, recovery, .. } = params;
        let by_order = detection.loss_rule != LossRule::Rack;
        let finds = detection.lost_retransmissions && recovery.recovery == Recovery::Sack;
        (finds && by_order).then(|| Self::new(detection.dup_thresh))
    }
}

impl Detection {
    /// `true` if the sender keeps the state of RACK-TLP (RFC 8985).
    pub const fn is_rack(self) -> bool {
        matches!(self, Self::Rack)
    }

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
