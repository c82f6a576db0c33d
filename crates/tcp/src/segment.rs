use cwnd_units::{Ecn, Time};

/// TCP header flags; the values are those of the header's flag byte (RFC 9293 § 3.1, RFC 3168 § 6.1), except
/// [`Flags::RETRANSMITTED`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Flags(pub u8);

impl Flags {
    /// Opens a connection.
    pub const SYN: Self = Self(0x02);
    /// Not in the header: the simulator's note that a segment was sent before. It takes the place of RST, which this
    /// endpoint never sends; no algorithm reads it, only statistics do.
    pub const RETRANSMITTED: Self = Self(0x04);
    /// Push: the sender has no more to send just now.
    pub const PSH: Self = Self(0x08);
    /// The acknowledgement number counts.
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
    /// First byte of the block minus the acknowledgement number.
    pub offset: u32,
    /// Bytes in the block; zero is no block.
    pub len: u32,
}

/// How many SACK blocks fit beside timestamps in the options of one segment (RFC 2018 § 3).
pub const MAX_SACK_BLOCKS: usize = 3;

/// A segment: data in one direction, or an acknowledgement in the other.
///
/// Connections carry data one way; a segment with payload has no meaningful acknowledgement number and the reverse,
/// so one field serves for both.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Segment {
    /// Data: number of the first payload byte. ACK: number of the next byte expected.
    pub seq: u64,
    /// Data: when it was sent (TSval). ACK: the echo (TSecr).
    pub ts: Time,
    /// Payload bytes.
    pub len: u32,
    /// ACK: receive window in bytes.
    pub window: u32,
    /// Explicit feedback: what routers wrote into data, echoed in ACKs; zero when no router writes any.
    pub feedback: u32,
    /// Size on the wire, headers included.
    pub wire: u16,
    /// Header flags.
    pub flags: Flags,
    /// IP ECN field.
    pub ecn: Ecn,
    /// SACK blocks, the most recent first.
    pub sack: [SackBlock; MAX_SACK_BLOCKS],
}

impl Segment {
    /// Whether this is an acknowledgement.
    #[inline]
    #[must_use]
    pub const fn is_ack(&self) -> bool {
        self.flags.has(Flags::ACK)
    }

    /// One past the last payload byte.
    #[inline]
    #[must_use]
    pub const fn end(&self) -> u64 {
        self.seq + self.len as u64
    }
}
