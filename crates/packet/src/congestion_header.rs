use alloc::vec::Vec;

use cwnd_quantity::Rate;

/// Congestion header of a data packet: fields that senders and routers write for each other, beyond
/// those that every packet carries.
///
/// Senders write it, routers may change it, and the receiver may answer it with an [`Echo`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum CongestionHeader {
    /// No congestion header.
    #[default]
    None,
    /// Identification of the IP header (RFC 791), where a mechanism uses it: ADPM derives a
    /// threshold from it.
    Id(u16),
    /// Load level in four bits (MLCP: Qazi & Znati 2008): the highest of all links passed so far.
    Level(u8),
    /// XCP's congestion header (Katabi, Handley, Rohrs 2002, § 3.1).
    Xcp {
        /// `H_cwnd`: the sender's window, bytes.
        cwnd: u32,
        /// `H_rtt`: the sender's round-trip time, µs; zero before the first sample.
        rtt_us: u32,
        /// `H_feedback`: requested change of the window, bytes.
        delta: i32,
    },
    /// RCP's congestion header (Dukkipati et al. 2005, § 3).
    Rcp {
        /// Lowest rate that a router on the path offers.
        rate: Rate,
        /// The sender's round-trip time, µs; zero before the first sample.
        rtt_us: u32,
    },
}

/// Congestion feedback at one instant, as a router gives it or a sender receives it; for time
/// series.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Guidance {
    /// Load factor: offered load divided by capacity.
    Load(f64),
    /// Rate offered to each flow.
    Rate(Rate),
    /// Feedback that a router distributes: requested change of the aggregate rate of all flows per
    /// control interval, bit/s.
    Aggregate(f64),
    /// Feedback that reached a sender: requested change of its window, bytes.
    Window(i32),
}

/// Feedback in an ACK: on what routers wrote into the data, or on its one-way delay.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Echo {
    /// No field of its own; ECE echoes marks.
    #[default]
    None,
    /// Sum of XCP's `H_feedback` since the last ACK, bytes.
    Delta(i32),
    /// RCP's rate in the newest data that has one.
    Rate(Rate48),
    /// ADPM's load estimate, a load level or an ECN code point, with a counter of its changes.
    Load {
        /// The value, in units of the mechanism.
        value: u16,
        /// Width of the value in an ACK, bits.
        bits: u8,
        /// Changes so far, modulo 256; a gap shows that lost ACKs carried other values.
        changes: u8,
    },
    /// Data packets that have arrived with CE so far.
    Ce {
        /// Count of packets, modulo 2³².
        packets: u32,
    },
    /// One-way delay of the newest data, by the clocks of both ends (RFC 6817 § 2.3).
    Delay {
        /// Delay in µs, modulo 2³².
        us: u32,
    },
}

/// Kinds of the experimental TCP options (RFC 4727): that of [`Echo::Load`], and that of
/// options with an experiment identifier.
const ESTIMATE: u8 = 253;
const WITH_IDENTIFIER: u8 = 254;
/// Experiment identifiers of the options of kind 254 (RFC 6994 § 3).
const XCP: [u8; 2] = *b"XC";
const RCP: [u8; 2] = *b"RC";
const LEVEL: [u8; 2] = *b"ML";

impl CongestionHeader {
    /// Returns the header as a TCP option: its kind and its data; `None` if it has no option.
    #[must_use]
    pub fn option(self) -> Option<(u8, Vec<u8>)> {
        let behind = match self {
            Self::None | Self::Id(_) => return None,
            Self::Level(level) => [&LEVEL[..], &[level]].concat(),
            Self::Xcp { cwnd, rtt_us, delta } => {
                let fields = [cwnd.to_be_bytes(), rtt_us.to_be_bytes(), delta.to_be_bytes()];
                [&XCP[..], &fields.concat()].concat()
            }
            Self::Rcp { rate, rtt_us } => {
                [&RCP[..], &Rate48::from(rate).0, &rtt_us.to_be_bytes()].concat()
            }
        };
        Some((WITH_IDENTIFIER, behind))
    }

    /// Returns the number of bits in the numeric fields of its option; 0 without an option.
    #[must_use]
    pub const fn option_bits(self) -> u32 {
        match self {
            Self::None | Self::Id(_) => 0,
            Self::Level(_) => 4,
            Self::Xcp { .. } => 3 * u32::BITS,
            Self::Rcp { .. } => RATE_BITS + u32::BITS,
        }
    }

    /// Returns the header with one of its [`Self::option_bits`] bits inverted, numbered from 0.
    ///
    /// Requires `bit` to be below their number.
    #[must_use]
    pub fn with_flipped(self, bit: u32) -> Self {
        debug_assert!(bit < self.option_bits(), "no bit of the option");
        let flag = 1 << (bit % u32::BITS);
        match self {
            Self::None | Self::Id(_) => self,
            Self::Level(level) => Self::Level(level ^ 1 << bit),
            Self::Xcp { cwnd, rtt_us, delta } => match bit / u32::BITS {
                0 => Self::Xcp { cwnd, rtt_us, delta: delta ^ flag as i32 },
                1 => Self::Xcp { cwnd, rtt_us: rtt_us ^ flag, delta },
                _ => Self::Xcp { cwnd: cwnd ^ flag, rtt_us, delta },
            },
            Self::Rcp { rate, rtt_us } => match bit.checked_sub(RATE_BITS) {
                None => Self::Rcp { rate: Rate48::from(rate).with_flipped(bit).into(), rtt_us },
                Some(bit) => Self::Rcp { rate, rtt_us: rtt_us ^ 1 << bit },
            },
        }
    }
}

impl Echo {
    /// Returns the echo as a TCP option: its kind and its data; `None` if it has no option.
    #[must_use]
    pub fn option(self) -> Option<(u8, Vec<u8>)> {
        match self {
            Self::Delta(delta) => {
                Some((WITH_IDENTIFIER, [&XCP[..], &delta.to_be_bytes()].concat()))
            }
            Self::Rate(rate) => Some((WITH_IDENTIFIER, [&RCP[..], &rate.0].concat())),
            // The four bytes that the option takes in a simulated ACK leave no room for an
            // identifier.
            Self::Load { value, .. } => Some((ESTIMATE, value.to_be_bytes().to_vec())),
            Self::None | Self::Ce { .. } | Self::Delay { .. } => None,
        }
    }

    /// Returns the number of bits in the numeric fields of its option; 0 without an option.
    #[must_use]
    pub const fn option_bits(self) -> u32 {
        match self {
            Self::None | Self::Ce { .. } | Self::Delay { .. } => 0,
            Self::Delta(_) => i32::BITS,
            Self::Rate(_) => RATE_BITS,
            Self::Load { bits, .. } => bits as u32,
        }
    }

    /// Returns the echo with one of its [`Self::option_bits`] bits inverted, numbered from 0.
    ///
    /// Requires `bit` to be below their number.
    #[must_use]
    pub fn with_flipped(self, bit: u32) -> Self {
        debug_assert!(bit < self.option_bits(), "no bit of the option");
        match self {
            Self::None | Self::Ce { .. } | Self::Delay { .. } => self,
            Self::Delta(delta) => Self::Delta(delta ^ 1 << bit),
            Self::Rate(rate) => Self::Rate(rate.with_flipped(bit)),
            Self::Load { value, bits, changes } => {
                Self::Load { value: value ^ 1 << bit, bits, changes }
            }
        }
    }
}

/// A rate in six bytes, bit/s; higher rates saturate at 281 Tbit/s.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rate48([u8; 6]);

const RATE_BITS: u32 = 48;

impl Rate48 {
    /// Returns the rate with one bit inverted; bit 0 is the least significant.
    #[must_use]
    pub const fn with_flipped(self, bit: u32) -> Self {
        let Self(mut bytes) = self;
        bytes[5 - bit as usize / 8] ^= 1 << (bit % 8);
        Self(bytes)
    }
}

impl From<Rate> for Rate48 {
    fn from(rate: Rate) -> Self {
        let [_, _, bytes @ ..] = rate.0.min((1 << 48) - 1).to_be_bytes();
        Self(bytes)
    }
}

impl From<Rate48> for Rate {
    /// Returns the rate; zero becomes 1 bit/s, the lowest rate.
    fn from(rate: Rate48) -> Self {
        let [a, b, c, d, e, f] = rate.0;
        Self(u64::from_be_bytes([0, 0, a, b, c, d, e, f]).max(1))
    }
}

const _: () = assert!(size_of::<CongestionHeader>() == 16 && size_of::<Echo>() == 8);

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the number of bits in which the data of two options differs.
    fn distance(a: Option<(u8, Vec<u8>)>, b: Option<(u8, Vec<u8>)>) -> u32 {
        let ((kind, a), (same, b)) = (a.expect("an option"), b.expect("an option"));
        assert_eq!((kind, a.len()), (same, b.len()));
        a.iter().zip(&b).map(|(a, b)| (a ^ b).count_ones()).sum()
    }

    #[test]
    fn each_bit_of_an_option_can_be_flipped_by_itself() {
        let rate = Rate(10_000_000_019);
        for header in [
            CongestionHeader::Level(9),
            CongestionHeader::Xcp { cwnd: 14_600, rtt_us: 80_000, delta: -77 },
            CongestionHeader::Rcp { rate, rtt_us: 80_000 },
        ] {
            let mut seen = std::collections::BTreeSet::new();
            for bit in 0..header.option_bits() {
                let flipped = header.with_flipped(bit);
                assert_eq!(distance(header.option(), flipped.option()), 1, "{header:?} {bit}");
                assert!(seen.insert(flipped.option()), "{header:?} {bit}");
                assert_eq!(flipped.with_flipped(bit), header);
            }
        }
        let estimate = Echo::Load { value: 40_000, bits: 16, changes: 3 };
        let level = Echo::Load { value: 9, bits: 4, changes: 3 };
        for echo in [Echo::Delta(-77), Echo::Rate(rate.into()), estimate, level] {
            for bit in 0..echo.option_bits() {
                let flipped = echo.with_flipped(bit);
                if let Echo::Load { value, bits, .. } = flipped {
                    assert_eq!(u32::from(value) >> bits, 0, "{echo:?} {bit}");
                }
                assert_eq!(distance(echo.option(), flipped.option()), 1, "{echo:?} {bit}");
                assert_eq!(flipped.with_flipped(bit), echo);
            }
        }
    }

    #[test]
    fn what_has_no_option_has_no_bits_to_flip() {
        for header in [CongestionHeader::None, CongestionHeader::Id(7), CongestionHeader::Level(1)]
        {
            assert_eq!(header.option_bits() > 0, header.option().is_some());
        }
        for echo in [Echo::None, Echo::Ce { packets: 1 }, Echo::Delay { us: 1 }, Echo::Delta(0)] {
            assert_eq!(echo.option_bits() > 0, echo.option().is_some());
        }
    }

    #[test]
    fn six_bytes_hold_a_rate_to_the_bit_or_the_most_they_can() {
        for bits in [1, 255, 256, 100_000, 10_000_000_019, (1 << 48) - 1] {
            assert_eq!(Rate::from(Rate48::from(Rate(bits))), Rate(bits));
        }
        assert_eq!(Rate::from(Rate48::from(Rate(u64::MAX))), Rate((1 << 48) - 1));
        assert_eq!(Rate::from(Rate48::from(Rate(0))), Rate(1));
    }
}
