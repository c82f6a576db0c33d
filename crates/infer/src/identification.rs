//! Number of packets sent in between, from IPv4 identifications of senders that number their
//! packets, as Linux does for each connection.
//!
//! RFC 6864 lets a sender write any value into packets that may not be fragmented. The field is
//! therefore believed only after two consecutive values, or if the SYN-ACK shows Linux.

use crate::headers::{Segment, flag};

/// Score from which larger steps count as missing packets, unless the sender is Linux. A step of
/// one is believed at once: a sender that writes arbitrary values rarely writes the next number.
const BELIEVED: u32 = 1;
/// Points that a step of one adds to the score; each larger step takes one away.
const MAKES_GOOD: u32 = 2;
const MOST: u32 = 64;
/// Largest step that counts as missing packets. A larger one shows a counter shared with others, or
/// none.
const MAX_WINDOW: u16 = 256;

/// State of one sender's identifications.
#[derive(Clone, Copy, Debug, Default)]
pub struct Identifications {
    /// Identification of the next packet if none is lost.
    expected: Option<u16>,
    steady: u32,
    /// `true` if the SYN-ACK had zero, as from Linux, and later packets so far are numbered.
    zero: bool,
}

impl Identifications {
    /// `true` if the sender numbers its packets like Linux, and none of them has come yet.
    pub const fn begins(&self) -> bool {
        self.zero && self.expected.is_none()
    }

    /// `true` if the sender wrote zero into its SYN-ACK and later packets so far are numbered.
    /// Among the stacks known here only Linux does.
    pub const fn is_linux(&self) -> bool {
        self.zero
    }

    /// Returns the number of packets sent between the last one and this; `None` if unknown. A
    /// segment longer than `mss` was several packets; `mss` is 0 if not known.
    #[inline]
    pub fn between(&mut self, segment: &Segment, mss: u32) -> Option<u16> {
        let id = segment.id?;
        if segment.has(flag::SYN) && segment.has(flag::ACK) {
            (self.zero, self.expected) = (id == 0, None);
            return None;
        }
        // A sender that always writes zero does not number its packets.
        self.zero &= self.expected.is_some() || id != 0;
        // A segment merged by a network card was several packets.
        let packets = if mss == 0 { 1 } else { segment.length.div_ceil(mss).max(1) };
        let step = self.expected.map(|expected| id.wrapping_sub(expected));
        // A reordered packet shows nothing.
        if step.is_some_and(|step| step.wrapping_neg() <= MAX_WINDOW && step != 0) {
            return None;
        }
        self.expected = Some(id.wrapping_add(packets as u16));
        match step? {
            0 => {
                self.steady = (self.steady + MAKES_GOOD).min(MOST);
                Some(0)
            }
            step if step <= MAX_WINDOW => {
                let believed = self.zero || self.steady >= BELIEVED;
                // A counter of a whole host has such steps all the time.
                self.steady = self.steady.saturating_sub(1);
                believed.then_some(step)
            }
            _ => {
                (self.steady, self.zero) = (0, false);
                None
            }
        }
    }
}
