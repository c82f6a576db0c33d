//! QUIC loss recovery (RFC 9002): one packet number space on one path, after the handshake. This
//! module has the parameters, the configuration of a group, and the conversion of packets and ACK
//! frames to segments and back (RFC 9000 § 17.3, § 19).

mod ack_frame;
mod congestion;
mod loss;
mod receiver;
mod recovery;
mod sender;

use std::sync::Arc;

use cwnd_cc::{AnyController, Controller as _, ControllerParams, DynController, Start};
use cwnd_packet::{Ability, Contract, Ecn, HasContract};
use cwnd_quantity::{Bytes, Duration, Time};
use cwnd_schema::{Invalid, Schema, key};

use crate::segment::{Body, Flags, Segment};

pub use ack_frame::{Ack, AckBody, AckFrame, AckRange, MAX_ACK_RANGES};
pub use congestion::{Congestion, Moment};
pub use loss::SentPacket;
pub use receiver::Receiver;
pub use recovery::{Expired, Recovery};
pub use sender::{Packet, Sender, Sizes};

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
            // RFC 9002 § 5.1: each ACK that newly acknowledges its largest number gives a sample.
            .provides(Ability::Timestamps)
            .when(self.ack_eliciting_threshold == 0, |c| c.provides(Ability::PromptRtt))
            .when(self.ecn, |c| {
                let c = c.provides(Ability::Ect).provides(Ability::ObeysEce);
                c.wants(Ability::Marks, why)
            })
    }
}

/// Parameters of a group's connections, and the controller that each begins with.
#[derive(Clone, Debug)]
pub struct Config {
    params: Arc<Params>,
    controller: AnyController,
}

impl Config {
    /// Creates the configuration with a controller of a registered kind.
    #[must_use]
    pub fn new(params: Params, controller: &ControllerParams) -> Self {
        let controller = controller.build(&start_of(&params));
        Self { params: Arc::new(params), controller }
    }

    /// Returns the configuration with a user-defined controller, which `make` creates.
    #[must_use]
    pub fn with_controller(self, make: impl Fn(&Start) -> Box<dyn DynController>) -> Self {
        Self { controller: AnyController::Boxed(make(&self.start())), ..self }
    }

    /// Returns the controller's requirement that no QUIC sender meets, as the predicate of a
    /// sentence; `None` without.
    #[must_use]
    pub fn lacks(&self) -> Option<&'static str> {
        if self.controller.is_rate_based() {
            Some("steers by delivery rates, of which a QUIC sender takes no samples")
        } else if self.controller.spacing().is_some() {
            Some("has windows below one packet, and RFC 9002 § 7.2 has two at the least")
        } else {
            None
        }
    }

    /// Returns the parameters that both ends share.
    #[must_use]
    pub const fn params(&self) -> &Arc<Params> {
        &self.params
    }

    /// Returns the sizes and windows that a controller begins with.
    #[must_use]
    pub fn start(&self) -> Start {
        start_of(&self.params)
    }

    /// Returns the controller of a new connection.
    fn new_controller(&self) -> AnyController {
        self.controller.clone()
    }
}

/// Start of a controller (RFC 9002 § 7.2).
fn start_of(params: &Params) -> Start {
    let mds = params.max_datagram_size.0;
    Start {
        mss: mds as u32,
        initial_window: u64::from(params.initial_window) * mds,
        initial_ssthresh: params.initial_ssthresh.map_or(u64::MAX, |bytes| bytes.0),
        max_window: params.max_window.map_or(u64::MAX, |bytes| bytes.0),
        delayed_acks: params.ack_eliciting_threshold > 0,
    }
}

/// Timer granularity (RFC 9002 § 6.1.2: kGranularity).
const GRANULARITY: Duration = Duration::from_millis(1);

/// Bytes of a packet around its frames: first byte, connection ID of 8 B, packet number of 2 B and
/// tag of 16 B (RFC 9000 § 17.3.1, RFC 9001 § 5.3).
const SHORT_HEADER: u32 = 1 + 8 + 2 + 16;
/// Bytes of a packet that are not stream data: besides its header those of a STREAM frame without
/// length, with type, stream ID of 1 B and offset of 4 B (RFC 9000 § 19.8).
pub const PACKET_OVERHEAD: u32 = SHORT_HEADER + 1 + 1 + 4;

impl Packet {
    /// Returns the datagram with this packet, ECT(0) with `ecn`.
    #[must_use]
    pub fn segment(&self, now: Time, params: &Params) -> Segment {
        Segment {
            seq: self.start,
            ts: now,
            len: self.len,
            wire: params.header.0 as u16 + self.bytes as u16,
            flags: Flags(0),
            ecn: if params.ecn { Ecn::Ect0 } else { Ecn::NotEct },
            body: Body::Quic { number: self.number, again: self.again },
        }
    }

    /// Returns the packet of a datagram; `None` unless it is a QUIC packet with stream data.
    #[must_use]
    pub fn of(segment: &Segment, params: &Params) -> Option<Self> {
        let Body::Quic { number, again } = segment.body else { return None };
        let bytes = u32::from(segment.wire) - params.header.0 as u32;
        Some(Self { number, start: segment.seq, len: segment.len, bytes, again })
    }
}

impl Ack {
    /// Returns the datagram with this frame alone, not ECN-capable.
    #[must_use]
    pub fn segment(&self, now: Time, params: &Params) -> Segment {
        let frame = self.frame();
        let largest = frame.ranges.first().map_or(0, |range| range.last);
        let body = AckBody::of(frame.ranges, frame.delay, frame.ce);
        let bytes = SHORT_HEADER + body.bytes(largest, params.ecn);
        Segment {
            seq: largest,
            ts: now,
            len: 0,
            wire: params.header.0 as u16 + bytes as u16,
            flags: Flags(0),
            ecn: Ecn::NotEct,
            body: Body::QuicAck(body),
        }
    }

    /// Returns the ACK frame of a datagram; `None` if it has none.
    #[must_use]
    pub fn of(segment: &Segment) -> Option<Self> {
        let Body::QuicAck(body) = segment.body else { return None };
        Some(body.ack(segment.seq))
    }
}

/// Start of a controller on a path that takes datagrams of `mds` bytes (RFC 9002 § 7.2).
#[cfg(test)]
fn start(mds: u32) -> Start {
    Start {
        mss: mds,
        initial_window: 10 * u64::from(mds),
        initial_ssthresh: u64::MAX,
        max_window: u64::MAX,
        delayed_acks: true,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_packet_fills_an_ethernet_frame_and_comes_back_from_its_segment() {
        let packet = Packet { number: 7, start: 500, len: 1439, bytes: 1472, again: false };
        let params = Params::default();
        let segment = packet.segment(Time(3), &params);
        assert_eq!((segment.wire, params.sizes().payload), (1500, 1439));
        assert_eq!((Packet::of(&segment, &params), Ack::of(&segment)), (Some(packet), None));
    }
}
