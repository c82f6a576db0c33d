//! ACK frames: as they are read, as owned values, and as bodies of segments with their size (RFC
//! 9000 § 16, § 19.3).

use cwnd_quantity::Duration;

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

/// Ranges that an ACK reports at most (RFC 9000 § 13.2.3 leaves the number to the receiver).
pub const MAX_ACK_RANGES: usize = 7;

/// An ACK frame with its ranges, as an owned value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ack {
    pub(super) ranges: [AckRange; MAX_ACK_RANGES],
    pub(super) count: u8,
    pub(super) delay: Duration,
    pub(super) ce: u64,
}

impl Ack {
    /// Returns the frame, which borrows the ranges.
    #[must_use]
    pub fn frame(&self) -> AckFrame<'_> {
        let ranges = &self.ranges[..usize::from(self.count)];
        AckFrame { ranges, delay: self.delay, ce: self.ce }
    }
}

/// Unit of ACK Delay (RFC 9000 § 18.2: `ack_delay_exponent` 3).
const ACK_DELAY_UNIT: Duration = Duration::from_micros(1 << 3);
/// Ranges after the first one.
const MORE: usize = MAX_ACK_RANGES - 1;

/// An ACK frame but for its largest number (RFC 9000 § 19.3).
///
/// A gap or a length that two bytes cannot hold ends the ranges: a receiver may leave ranges out
/// (RFC 9000 § 13.2.3).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AckBody {
    /// ACK Delay, in units of 8 µs, rounded down.
    delay: u32,
    /// Packets received with CE.
    ce: u32,
    /// First ACK Range: packets acknowledged below the largest.
    first: u32,
    /// Further ranges downwards: Gap + 1 (the packets missing between), or 0 for none, and ACK
    /// Range Length (§ 19.3.1).
    more: [(u16, u16); MORE],
}

impl AckBody {
    pub(super) fn of(ranges: &[AckRange], delay: Duration, ce: u64) -> Self {
        let small = |number: u64| u32::try_from(number).unwrap_or(u32::MAX);
        let first = ranges.first().map_or(0, |range| small(range.last - range.first));
        let mut body = Self {
            delay: small(delay.0 / ACK_DELAY_UNIT.0),
            ce: small(ce),
            first,
            more: [(0, 0); MORE],
        };
        for (pair, more) in ranges.windows(2).zip(&mut body.more) {
            let gap = u16::try_from(pair[0].first - pair[1].last - 1);
            let len = u16::try_from(pair[1].last - pair[1].first);
            let (Ok(gap), Ok(len)) = (gap, len) else { break };
            *more = (gap, len);
        }
        body
    }

    /// Packets received with CE, in the ECN Counts (§ 19.3.2).
    #[must_use]
    pub const fn ce_count(&self) -> u32 {
        self.ce
    }

    /// Returns the ranges after the first one, as in the field.
    fn more(&self) -> impl Iterator<Item = (u16, u16)> {
        self.more.into_iter().take_while(|&(gap, _)| gap > 0)
    }

    /// Returns the ACK frame with the largest number `largest`.
    pub(super) fn ack(&self, largest: u64) -> Ack {
        let mut range = AckRange { first: largest - u64::from(self.first), last: largest };
        let mut ranges = [range; MAX_ACK_RANGES];
        let mut count = 1;
        for ((gap, len), slot) in self.more().zip(&mut ranges[1..]) {
            let last = range.first - u64::from(gap) - 1;
            range = AckRange { first: last - u64::from(len), last };
            *slot = range;
            count += 1;
        }
        Ack { ranges, count, delay: ACK_DELAY_UNIT * u64::from(self.delay), ce: u64::from(self.ce) }
    }

    /// Returns the bytes of the frame; with `ecn` it has the three ECN counts (§ 19.3.2).
    pub(super) fn bytes(&self, largest: u64, ecn: bool) -> u32 {
        let more = self.more().map(|(gap, len)| varint(u64::from(gap) - 1) + varint(len.into()));
        let count = self.more().count() as u64;
        let fixed = [largest, u64::from(self.delay), count, u64::from(self.first)].map(varint);
        // The count of ECT(0) is not known: at most the packets received, largest + 1.
        let counts = if ecn { varint(largest + 1) + varint(0) + varint(self.ce.into()) } else { 0 };
        1 + fixed.iter().sum::<u32>() + more.sum::<u32>() + counts
    }
}

/// Bytes of a variable-length integer (§ 16).
const fn varint(value: u64) -> u32 {
    match value {
        0..0x40 => 1,
        0x40..0x4000 => 2,
        0x4000..0x4000_0000 => 4,
        _ => 8,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ranges(of: &[(u64, u64)]) -> Vec<AckRange> {
        of.iter().map(|&(first, last)| AckRange { first, last }).collect()
    }

    #[test]
    fn a_frame_keeps_its_ranges_and_loses_less_than_8_us_of_its_delay() {
        let sent = ranges(&[(990, 1000), (900, 980), (7, 7), (0, 5)]);
        let ack = AckBody::of(&sent, Duration(25_007_999), 3).ack(1000);
        assert_eq!(ack.frame().ranges, sent);
        assert_eq!((ack.frame().delay, ack.frame().ce), (Duration(25_000_000), 3));
    }

    #[test]
    fn a_gap_that_is_too_wide_ends_the_ranges() {
        let sent = ranges(&[(100_000, 100_003), (99_000, 99_100), (5, 9), (0, 1)]);
        let ack = AckBody::of(&sent, Duration::ZERO, 0).ack(100_003);
        assert_eq!(ack.frame().ranges, &sent[..2]);
    }

    #[test]
    fn the_size_is_that_of_the_frame() {
        // § 19.3: type, largest 1000 (2 B), delay 3125 (2 B), count, first range 10; gap 8 and
        // length 80 (2 B).
        let body = AckBody::of(&ranges(&[(990, 1000), (900, 980)]), Duration(25_000_000), 0);
        assert_eq!(body.bytes(1000, false), 1 + 2 + 2 + 1 + 1 + 1 + 2);
        assert_eq!(body.bytes(1000, true), 10 + 2 + 1 + 1);
    }
}
