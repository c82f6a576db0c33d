//! QUIC loss recovery (RFC 9002): one packet number space on one path, after the handshake.

mod ack_body;
mod ack_policy;
mod config;
mod congestion;
mod loss;
mod probe_timer;
mod receiver;
mod recovery;
mod rtt;
mod sender;
mod wire;

use cwnd_packet::{Ability, Contract, HasContract};
use cwnd_quantity::{Bytes, Duration};
use cwnd_schema::{Invalid, Schema, key};

pub use ack_body::AckBody;
pub use config::Config;
pub use congestion::{Congestion, Moment};
pub use loss::SentPacket;
pub use receiver::{Ack, MAX_ACK_RANGES, Receiver};
pub use recovery::{Expired, Recovery};
pub use sender::{Packet, Sender, Sizes};
pub use wire::PACKET_OVERHEAD;

/// Parameters of both ends of a QUIC connection, apart from the congestion controller.
#[derive(Clone, Debug, PartialEq, Schema)]
#[schema(presets, check = Self::consistent)]
pub struct Params {
    /// UDP payload of a full packet, in which the window is counted. 33 B of it are QUIC's headers
    /// and tag. Serves experiments on closed forms and on paths of other packet sizes.
    #[default(Bytes(1472), "1500 B Ethernet − 20 B IPv4 − 8 B UDP; RFC 9000 § 14.3: discovery")]
    #[bounds(
        from Bytes(1200), up_to Bytes(65_507);
        "RFC 9000 § 14: QUIC needs a path for 1200 B, and UDP takes 65507 B"
    )]
    pub max_datagram_size: Bytes,
    /// Headers below QUIC, on the wire. Serves experiments over IPv6 or in tunnels.
    #[default(Bytes(28), "IPv4 20 B + UDP 8 B")]
    #[bounds(up_to Bytes(1_000))]
    pub header: Bytes,
    /// First congestion window, in full packets. Serves experiments on short transfers.
    #[default(10, "RFC 9002 § 7.2: ten, and at most 14,720 B or two if packets are larger")]
    #[bounds(from 1; "with a window of 0 packets nothing is ever sent")]
    pub initial_window: u32,
    /// Slow-start threshold at the start; none is as large as can be. Serves experiments on saw
    /// teeth and closed forms, which begin without slow start.
    #[default(None, "RFC 9002 § 7.3.1, appendix B.3: infinite")]
    pub initial_ssthresh: Option<Bytes>,
    /// The congestion window never grows past this; none is no bound. Serves experiments on flows
    /// that a window limits, as by flow control.
    #[default(None, "RFC 9002 has none")]
    #[bounds(from Bytes(1))]
    pub max_window: Option<Bytes>,
    /// `true` if packets are sent with ECT(0) and reports of CE reduce the window. Serves
    /// experiments on marks in place of losses.
    #[default(false, "RFC 9000 § 13.4: for each endpoint to choose; off as of TCP")]
    pub ecn: bool,
    /// Distance in packet numbers from a packet to a later acknowledged one at which it counts as
    /// lost.
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

impl Params {
    /// Checks values together.
    fn consistent(&self) -> Result<(), Invalid> {
        if self.header.0 + self.max_datagram_size.0 > 65_535 {
            let message = "a packet takes at most 65535 bytes on the wire: `max_datagram_size` + \
                           `header` is more";
            let key = key!(Self: max_datagram_size);
            return Err(Invalid { key, message: message.to_owned() });
        }
        Ok(())
    }

    /// Returns the sizes of the packets.
    #[must_use]
    pub const fn sizes(&self) -> Sizes {
        let payload = self.max_datagram_size.0 as u32 - PACKET_OVERHEAD;
        Sizes { payload, overhead: PACKET_OVERHEAD }
    }
}

/// Declares the abilities of QUIC endpoints. Every QUIC receiver reports counts of CE (RFC 9000 §
/// 19.3.2), which act only with `ecn`. Other feedback, headers of controllers and delivery rates
/// are not provided.
impl HasContract for Params {
    fn contract(&self) -> Contract {
        let why = "ECN never acts";
        Contract::new()
            .provides(Ability::Pacing)
            // RFC 9002 § 5: each ACK of a newest packet gives a sample, less the receiver's delay.
            .provides(Ability::Timestamps)
            .when(self.ack_eliciting_threshold == 0, |c| c.provides(Ability::PromptRtt))
            .when(self.ecn, |c| {
                let c = c.provides(Ability::Ect).provides(Ability::ObeysEce);
                c.wants(Ability::Marks, why)
            })
    }
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
