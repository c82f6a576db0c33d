//! Loss detection rules. Rules by sequence numbers are stateless; the state of RACK is a part of
//! the sender.

use cwnd_packet::{Range, Ranges};

use crate::params::{LossRule, Params, Recovery};

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

/// Rule of RFC 6675 (§ 4, IsLost): a byte is lost with `dup_thresh` discontiguous SACKed ranges
/// above it, or more than (`dup_thresh` − 1)·MSS SACKed bytes.
#[derive(Clone, Copy, Debug)]
pub struct Rfc6675 {
    dup_thresh: u32,
    /// Most SACKed bytes above a byte that is not lost.
    bytes: u64,
}

impl Rfc6675 {
    pub const fn new(dup_thresh: u32, mss: u64) -> Self {
        Self { dup_thresh, bytes: (dup_thresh - 1) as u64 * mss }
    }

    /// Returns the lost edge: all bytes below it are lost unless SACKed; 0 if none is.
    pub fn edge(self, sacked: &Ranges) -> u64 {
        let (mut ranges, mut bytes) = (0, 0);
        // From the highest range down, by one look-up each: mostly the first is enough.
        let mut range = sacked.highest();
        while let Some(Range { start, end }) = range {
            (ranges, bytes) = (ranges + 1, bytes + (end - start));
            if ranges >= self.dup_thresh || bytes > self.bytes {
                return start;
            }
            range = sacked.below(start);
        }
        0
    }
}

/// Rule of FACK, forward acknowledgement (Mathis & Mahdavi 1996): a byte is lost if it lies
/// `distance` or more below the highest SACKed byte, however much is SACKed in between.
#[derive(Clone, Copy, Debug)]
pub struct Fack {
    distance: u64,
}

impl Fack {
    pub const fn new(dup_thresh: u32, mss: u64) -> Self {
        Self { distance: dup_thresh as u64 * mss }
    }

    /// Returns the lost edge: all bytes below it are lost unless SACKed.
    pub fn edge(self, sacked: &Ranges) -> u64 {
        sacked.highest().map_or(0, |top| top.end.saturating_sub(self.distance))
    }
}

/// Rule by order, as in Linux before RACK-TLP (tcp_input.c until 4.x, `tcp_mark_lost_retrans`) and
/// in ns-2's TCP-Linux (scoreboard1.cc); RFC 6675 leaves lost retransmissions to the timer. A
/// retransmission is lost once data first sent after it is SACKed, or once one sent more than
/// `max_gap` retransmissions later arrives.
#[derive(Clone, Copy, Debug)]
pub struct LossByOrder {
    max_gap: u32,
}

/// A retransmission in flight.
#[derive(Clone, Copy, Debug)]
pub struct InFlight {
    /// Number of the retransmission, in order of transmission.
    pub number: u64,
    /// One past the highest byte sent before the retransmission.
    pub sent_up_to: u64,
}

/// State of the arrivals.
#[derive(Clone, Copy, Debug)]
pub struct Arrived {
    /// One past the highest SACKed byte; SND.UNA if nothing is SACKed.
    pub top: u64,
    /// The highest number of a retransmission that arrived.
    pub number: Option<u64>,
}

impl LossByOrder {
    /// Returns the rule for lost retransmissions; `None` if RACK or the timer finds them.
    pub fn of(params: &Params) -> Option<Self> {
        let Params { detection, recovery, .. } = params;
        let by_order = detection.loss_rule != LossRule::Rack;
        let finds = detection.lost_retransmissions && recovery.recovery == Recovery::Sack;
        (finds && by_order).then(|| Self::new(detection.dup_thresh))
    }

    pub const fn new(dup_thresh: u32) -> Self {
        Self { max_gap: dup_thresh }
    }

    /// `true` if a retransmission is lost, given the arrivals.
    pub fn is_lost(self, sent: InFlight, arrived: Arrived) -> bool {
        let last = sent.number + u64::from(self.max_gap);
        arrived.top > sent.sent_up_to || arrived.number.is_some_and(|number| number > last)
    }
}
