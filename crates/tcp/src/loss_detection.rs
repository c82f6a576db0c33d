//! Loss detection rules. Rules by sequence numbers are stateless; the state of RACK is a part of
//! the sender.

mod fack;
mod lost_retransmissions;
mod rfc6675;

use crate::params::{LossRule, Params, Recovery};
pub use fack::Fack;
pub use lost_retransmissions::{Arrived, InFlight, LossByOrder};
pub use rfc6675::Rfc6675;

/// Loss detection rule of the senders of a group.
#[derive(Clone, Copy, Debug)]
pub enum Detection {
    /// By duplicate ACKs (RFC 5681 § 3.2), without SACK.
    DupAck,
    /// By the data SACKed above a byte (RFC 6675 § 4).
    Rfc6675(Rfc6675),
    /// By the distance to the highest SACKed byte (FACK).
    Fack(Fack),
    /// By send times, with state in the sender (RACK, RFC 8985 § 6).
    Rack,
}

impl LossByOrder {
    /// Returns the rule for lost retransmissions; `None` if RACK or the timer finds them.
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
