//! Segments: the packets of TCP and QUIC connections, and source quenches.

use cwnd_packet::{CongestionHeader, Echo, Ecn};
use cwnd_quantity::Time;

use crate::quic::AckBody;

/// TCP header flags, as in the header's flag byte (RFC 9293 § 3.1, RFC 3168 § 6.1).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Flags(pub u8);

impl Flags {
    /// Synchronise: opens a connection.
    pub const SYN: Self = Self(0x02);
    /// Push: here only at the end of a burst of several segments (`push_bursts`).
    pub const PSH: Self = Self(0x08);
    /// Acknowledgement field significant. Only in headers: a segment's [`Segment::body`] gives it.
    pub const ACK: Self = Self(0x10);
    /// ECN-echo.
    pub const ECE: Self = Self(0x40);
    /// Congestion window reduced.
    pub const CWR: Self = Self(0x80);

    /// `true` if all flags of `other` are set.
    #[inline]
    #[must_use]
    pub const fn has(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }

    /// Returns the union of both sets of flags.
    #[inline]
    #[must_use]
    pub const fn with(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }
}

/// A SACK block, relative to the acknowledgement number of its segment, so that a [`Segment`] with
/// three blocks fits a cache line.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SackBlock {
    /// First byte of the block less the acknowledgement number; negative in a D-SACK block of data
    /// below that number (RFC 2883 § 4).
    pub offset: i32,
    /// Bytes in the block; zero means no block.
    pub len: u32,
}

impl SackBlock {
    /// Creates the block of `[start, end)` beside this acknowledgement number. Their distance must
    /// be below 2 GiB (RFC 7323 § 2.3 has windows of half that).
    #[inline]
    #[must_use]
    pub const fn of(ack: u64, start: u64, end: u64) -> Self {
        Self { offset: start.wrapping_sub(ack) as i32, len: (end - start) as u32 }
    }

    /// Returns the first byte of the block.
    #[inline]
    #[must_use]
    pub const fn start(&self, ack: u64) -> u64 {
        ack.saturating_add_signed(self.offset as i64)
    }

    /// Returns one past the last byte of the block.
    #[inline]
    #[must_use]
    pub const fn end(&self, ack: u64) -> u64 {
        self.start(ack) + self.len as u64
    }
}

/// Number of SACK blocks that fit beside timestamps in the options of one segment (RFC 2018 § 3).
pub const MAX_SACK_BLOCKS: usize = 3;

/// A packet of a connection: TCP segment, QUIC packet or source quench.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Segment {
    /// Data: number of the first payload byte. ACK: number of the next byte expected, or of QUIC
    /// the largest packet number. Source quench: number of the first byte of the packet that it is
    /// about.
    pub seq: u64,
    /// Data: send time (TSval), or that time signed ([`SignatureParams`](crate::SignatureParams)).
    /// ACK: echoed time (TSecr); of QUIC the send time. Source quench: TSval of the packet that it
    /// is about.
    pub ts: Time,
    /// Payload bytes.
    pub len: u32,
    /// Bytes on the wire, headers included.
    pub wire: u16,
    /// Header flags except ACK, which follows from [`Segment::body`].
    pub flags: Flags,
    /// IP ECN field.
    pub ecn: Ecn,
    /// Kind of the packet, with the fields of that kind.
    pub body: Body,
}

/// Kinds of packets that hosts receive. A packet has one kind: the ACK that data carries is a
/// segment apart ([`Receiver::piggyback_ack`](crate::Receiver::piggyback_ack)).
// Acknowledgements come last, so that one comparison of the discriminant finds them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Body {
    /// Data, or the SYN before it.
    Data {
        /// Header for explicit feedback, which the sender writes and routers change.
        header: CongestionHeader,
        /// `true` if the first of these bytes was sent before. Only statistics read it, no
        /// algorithm does.
        again: bool,
    },
    /// An ICMP source quench (RFC 792): a router's message to the sender of a packet that met
    /// congestion.
    Quench {
        /// `true` if that packet was marked and forwarded, `false` if it was dropped.
        marked: bool,
        /// Level of congestion, from 0 (multi-level BECN).
        level: u8,
        /// Number of the router's node.
        router: u32,
        /// Facts of that packet, besides number and TSval.
        about: Quoted,
    },
    /// A QUIC packet with stream data from byte [`Segment::seq`] on (RFC 9000 § 17.3.1).
    Quic {
        /// Packet number.
        number: u64,
        /// `true` if its stream data was sent before, as in [`Body::Data`].
        again: bool,
    },
    /// An acknowledgement.
    Ack {
        /// Receive window in bytes.
        window: u32,
        /// Feedback by the receiver's echo policy: marks, headers of routers or delays.
        echo: Echo,
        /// SACK blocks, the most recent first; a D-SACK block goes before them.
        sack: SackBlocks,
    },
    /// A QUIC packet with an ACK frame, whose largest number is [`Segment::seq`] (RFC 9000 § 19.3).
    QuicAck(AckBody),
}

/// Facts of the packet that a source quench is about. From them captures rebuild its IP header and
/// the first eight bytes after it, which the quench quotes (RFC 792).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Quoted {
    /// Payload bytes.
    pub len: u32,
    /// Bytes on the wire, headers included.
    pub wire: u16,
    /// Header flags.
    pub flags: Flags,
    /// IP ECN field of the packet as it is forwarded, or as it was when dropped.
    pub ecn: Ecn,
}

/// SACK blocks of a segment; blocks of length zero are unused.
pub type SackBlocks = [SackBlock; MAX_SACK_BLOCKS];

impl Body {
    /// Data that is sent for the first time, without a header for routers.
    pub const DATA: Self = Self::Data { header: CongestionHeader::None, again: false };

    /// Creates an acknowledgement without SACK blocks and echo.
    #[inline]
    #[must_use]
    pub const fn ack(window: u32) -> Self {
        let sack = [SackBlock { offset: 0, len: 0 }; MAX_SACK_BLOCKS];
        Self::Ack { window, echo: Echo::None, sack }
    }
}

impl Segment {
    /// `true` for an acknowledgement of TCP or QUIC.
    #[inline]
    #[must_use]
    pub const fn is_ack(&self) -> bool {
        matches!(self.body, Body::Ack { .. } | Body::QuicAck(_))
    }

    /// Creates the source quench of a router about this packet.
    #[must_use]
    pub const fn quench(&self, marked: bool, level: u8, router: u32) -> Self {
        let Self { len, wire, flags, ecn, .. } = *self;
        Self {
            seq: self.seq,
            ts: self.ts,
            len: 0,
            wire: QUENCH_WIRE,
            flags: Flags(0),
            ecn: Ecn::NotEct,
            body: Body::Quench { marked, level, router, about: Quoted { len, wire, flags, ecn } },
        }
    }

    /// `true` for data that was sent before, of TCP or QUIC.
    #[inline]
    #[must_use]
    pub const fn is_retransmission(&self) -> bool {
        matches!(self.body, Body::Data { again: true, .. } | Body::Quic { again: true, .. })
    }

    /// Returns the header for routers of TCP data; `None` for other packets.
    #[inline]
    #[must_use]
    pub const fn header(&self) -> Option<CongestionHeader> {
        match self.body {
            Body::Data { header, .. } => Some(header),
            Body::Ack { .. } | Body::Quench { .. } | Body::Quic { .. } | Body::QuicAck(_) => None,
        }
    }

    /// Returns the SACK blocks; empty ones unless this is a TCP ACK.
    #[inline]
    #[must_use]
    pub const fn sack(&self) -> SackBlocks {
        match self.body {
            Body::Ack { sack, .. } => sack,
            Body::Data { .. } | Body::Quench { .. } | Body::Quic { .. } | Body::QuicAck(_) => {
                [SackBlock { offset: 0, len: 0 }; MAX_SACK_BLOCKS]
            }
        }
    }

    /// Returns one past the last payload byte.
    #[inline]
    #[must_use]
    pub const fn end(&self) -> u64 {
        self.seq + self.len as u64
    }
}

/// Bytes of a source quench: IPv4 header, ICMP header of 8 B, and the quoted IPv4 header with 8 B
/// after it (RFC 792).
pub const QUENCH_WIRE: u16 = 20 + 8 + 20 + 8;

#[cfg(target_pointer_width = "64")]
const _: () = assert!(size_of::<Segment>() == 64, "a segment fills one cache line");
