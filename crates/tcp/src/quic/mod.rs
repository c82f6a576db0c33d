//! QUIC loss recovery (RFC 9002): one packet number space on one path, after the handshake.

mod ack_policy;
mod congestion;
mod loss;
mod probe_timer;
mod receiver;
mod recovery;
mod rtt;
mod sender;

use cwnd_quantity::Duration;
use cwnd_schema::Schema;

pub use congestion::{Congestion, Moment};
pub use loss::SentPacket;
pub use receiver::{Ack, MAX_ACK_RANGES, Receiver};
pub use recovery::{Expired, Recovery};
pub use sender::{Packet, Sender, Sizes};

/// Parameters of a QUIC connection.
#[derive(Clone, Debug, PartialEq, Schema)]
pub struct Params {
    /// Packets that must be acknowledged beyond one before it counts as lost.
    #[default(3, "RFC 9002 § 6.1.1: kPacketThreshold")]
    #[bounds(from 3; "RFC 9002 § 6.1.1: a threshold below 3 should not be used")]
    pub packet_threshold: u32,
    /// Multiple of the RTT after which an earlier packet counts as lost.
    #[default(1.125, "RFC 9002 § 6.1.2: kTimeThreshold")]
    #[bounds(from 1.0; "what is younger than a round trip may still arrive")]
    pub time_threshold: f64,
    /// RTT assumed before the first sample.
    #[default(Duration::from_millis(333), "RFC 9002 § 6.2.2: kInitialRtt")]
    #[bounds(above Duration::ZERO; "no round trip takes no time")]
    pub initial_rtt: Duration,
    /// Longest time for which the receiver holds back an ACK.
    #[default(Duration::from_millis(25), "RFC 9000 § 18.2: max_ack_delay")]
    pub max_ack_delay: Duration,
    /// Packets in order that the receiver leaves without an ACK; one more is acknowledged at once.
    #[default(1, "RFC 9000 § 13.2.2: an ACK after at least two packets")]
    pub ack_eliciting_threshold: u32,
    /// Distance to the oldest missing packet that makes the receiver acknowledge at once; 1 is any
    /// packet out of order, 0 none.
    #[default(1, "RFC 9000 § 13.2.1; draft-ietf-quic-ack-frequency § 6.2")]
    pub reordering_threshold: u32,
}

/// Timer granularity (RFC 9002 § 6.1.2: kGranularity).
const GRANULARITY: Duration = Duration::from_millis(1);

/// Packet numbers of an ACK range, both ends included (RFC 9000 § 19.3.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AckRange {
    /// Smallest number.
    pub first: u64,
    /// Largest number.
    pub last: u64,
}

/// An ACK frame (RFC 9000 § 19.3).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AckFrame<'a> {
    /// Ranges from the highest down; the first ends with the largest number acknowledged.
    pub ranges: &'a [AckRange],
    /// Time for which the receiver held back the ACK of the largest number.
    pub delay: Duration,
    /// Packets received with the CE codepoint since the start.
    pub ce: u64,
}

/// Start of a controller on a path that takes datagrams of `mds` bytes (RFC 9002 § 7.2).
#[cfg(test)]
fn start(mds: u32) -> cwnd_cc::Start {
    cwnd_cc::Start {
        mss: mds,
        initial_window: 10 * u64::from(mds),
        initial_ssthresh: u64::MAX,
        max_window: u64::MAX,
        delayed_acks: true,
    }
}
