use cwnd_packet::{Echo, Ecn, Header};
use cwnd_quantity::Time;

use crate::quic::AckBody;

/// TCP header flags; the values are those of the header's flag byte (RFC 9293 § 3.1, RFC 3168 § 6.1).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Flags(pub u8);

impl Flags {
    /// Opens a connection.
    pub const SYN: Self = Self(0x02);
    /// Push: the sender has no more to send just now.
    pub const PSH: Self = Self(0x08);
    /// The acknowledgement number counts: in headers; of a segment its body says so.
    pub const ACK: Self = Self(0x10);
    /// ECN-echo.
    pub const ECE: Self = Self(0x40);
    /// Congestion window reduced.
    pub const CWR: Self = Self(0x80);

    /// Whether all flags of `other` are set.
    #[inline]
    #[must_use]
    pub const fn has(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }

    /// These flags and those of `other`.
    #[inline]
    #[must_use]
    pub const fn with(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }
}

/// A SACK block, relative to the acknowledgement number of its segment so that three fit a small packet.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SackBlock {
    /// First byte of the block minus the acknowledgement number: below zero in a first block that tells of a duplicate (RFC 2883 § 4).
    pub offset: i32,
    /// Bytes in the block; zero is no block.
    pub len: u32,
}

impl SackBlock {
    /// The block of `[start, end)` beside this acknowledgement number. Numbers are compared within 2 GiB (RFC 7323 § 2.3 has windows of half that).
    #[inline]
    #[must_use]
    pub const fn of(ack: u64, start: u64, end: u64) -> Self {
        Self { offset: start.wrapping_sub(ack) as i32, len: (end - start) as u32 }
    }

    /// Its first byte.
    #[inline]
    #[must_use]
    pub const fn start(&self, ack: u64) -> u64 {
        ack.saturating_add_signed(self.offset as i64)
    }

    /// One past its last byte.
    #[inline]
    #[must_use]
    pub const fn end(&self, ack: u64) -> u64 {
        self.start(ack) + self.len as u64
    }
}

/// How many SACK blocks fit beside timestamps in the options of one segment (RFC 2018 § 3).
pub const MAX_SACK_BLOCKS: usize = 3;

/// A packet of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Segment {
    /// Data: number of the first payload byte. ACK: number of the next byte expected. A router's message: number of the
    /// first byte of the packet that it is about.
    pub seq: u64,
    /// Data: when it was sent (TSval). ACK: the echo (TSecr). A router's message: the TSval of the packet that it is about.
    pub ts: Time,
    /// Payload bytes.
    pub len: u32,
    /// Size on the wire, headers included.
    pub wire: u16,
    /// Header flags, but for the ACK flag: it says what [`Segment::body`] says.
    pub flags: Flags,
    /// IP ECN field.
    pub ecn: Ecn,
    /// What kind of packet it is, with what only such packets have.
    pub body: Body,
}

/// The kinds of packets that hosts take. Connections carry data one way, so that none is two of them.
// Acknowledgements stand last: one comparison tells them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Body {
    /// Data, or the SYN before it.
    Data {
        /// What routers and the ends write for each other.
        header: Header,
        /// The simulator's note that these bytes were sent before: no algorithm reads it, only statistics do.
        again: bool,
    },
    /// A router's message to the sender of a packet that met congestion: an ICMP source quench (RFC 792).
    Quench {
        /// Whether that packet was marked and went on; else it was dropped.
        marked: bool,
        /// How bad the router says it is, from 0: multi-level BECN.
        level: u8,
        /// Number of the router's node.
        router: u32,
        /// What it quotes of that packet besides number and TSval.
        about: Quoted,
    },
    /// A QUIC packet with stream data from byte [`Segment::seq`] on (RFC 9000 § 17.3.1).
    Quic {
        /// Packet number.
        number: u64,
        /// `true` if its stream data was sent before: as of [`Body::Data`].
        again: bool,
    },
    /// An acknowledgement.
    Ack {
        /// Receive window in bytes.
        window: u32,
        /// Feedback of routers that the data carried.
        echo: Echo,
        /// SACK blocks, the most recent first.
        sack: SackBlocks,
    },
    /// A QUIC packet with an ACK frame, whose largest number is [`Segment::seq`] (RFC 9000 § 19.3).
    QuicAck(AckBody),
}

/// What a router's message quotes of a packet: its IP header and the first eight bytes after it (RFC 792).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Quoted {
    /// Payload bytes.
    pub len: u32,
    /// Size on the wire, headers included.
    pub wire: u16,
    /// Header flags.
    pub flags: Flags,
    /// IP ECN field, as the packet goes on or was when it was dropped.
    pub ecn: Ecn,
}

/// The SACK blocks of a segment; those of no length are none.
pub type SackBlocks = [SackBlock; MAX_SACK_BLOCKS];

impl Body {
    /// Data that is sent for the first time and has nothing for routers.
    pub const DATA: Self = Self::Data { header: Header::None, again: false };

    /// An acknowledgement without SACK blocks that echoes nothing.
    #[inline]
    #[must_use]
    pub const fn ack(window: u32) -> Self {
        let sack = [SackBlock { offset: 0, len: 0 }; MAX_SACK_BLOCKS];
        Self::Ack { window, echo: Echo::None, sack }
    }
}

impl Segment {
    /// `true` for an acknowledgement, of TCP or QUIC.
    #[inline]
    #[must_use]
    pub const fn is_ack(&self) -> bool {
        matches!(self.body, Body::Ack { .. } | Body::QuicAck(_))
    }

    /// The message of a router about this packet: a source quench.
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

    /// Whether it is data that was sent before.
    #[inline]
    #[must_use]
    pub const fn is_retransmission(&self) -> bool {
        matches!(self.body, Body::Data { again: true, .. } | Body::Quic { again: true, .. })
    }

    /// What data carries for routers; none for other packets.
    #[inline]
    #[must_use]
    pub const fn header(&self) -> Option<Header> {
        match self.body {
            Body::Data { header, .. } => Some(header),
            Body::Ack { .. } | Body::Quench { .. } | Body::Quic { .. } | Body::QuicAck(_) => None,
        }
    }

    /// Its SACK blocks; of what is no ACK empty ones.
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

    /// One past the last payload byte.
    #[inline]
    #[must_use]
    pub const fn end(&self) -> u64 {
        self.seq + self.len as u64
    }
}

/// Bytes of a source quench: an IPv4 header, eight of ICMP, the IPv4 header that is quoted, and eight bytes behind it (RFC 792).
pub const QUENCH_WIRE: u16 = 20 + 8 + 20 + 8;

const _: () = assert!(size_of::<Segment>() == 64, "a segment fills one cache line");
