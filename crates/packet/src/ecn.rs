/// ECN field of the IP header (RFC 3168 § 5), with its values on the wire.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(u8)]
pub enum Ecn {
    /// Not ECN-capable: only a drop signals congestion.
    #[default]
    NotEct = 0b00,
    /// ECN-capable transport, code point ECT(1).
    Ect1 = 0b01,
    /// ECN-capable transport, code point ECT(0).
    Ect0 = 0b10,
    /// Congestion experienced.
    Ce = 0b11,
}

impl Ecn {
    /// Returns the code point in the lower two bits of a traffic class, or of IPv4's TOS byte.
    #[inline]
    #[must_use]
    pub const fn of_traffic_class(traffic_class: u8) -> Self {
        match traffic_class & 0b11 {
            0b00 => Self::NotEct,
            0b01 => Self::Ect1,
            0b10 => Self::Ect0,
            _ => Self::Ce,
        }
    }

    /// `true` if a queue may mark this packet instead of dropping it (RFC 3168 § 5).
    #[inline]
    #[must_use]
    pub const fn is_ect(self) -> bool {
        !matches!(self, Self::NotEct)
    }
}
