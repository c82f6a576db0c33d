//! IPv4 identifications, where a sender counts its packets by them, as Linux does for each connection.
//!
//! RFC 6864 lets a sender write what it likes into packets that may not be fragmented, so it's believed only after it counted
//! several packets by one.

use crate::headers::{Segment, flag};

/// Packets that were counted by one before it is believed that some were sent between two. That none was is believed at
/// once: who writes what it likes there does not write the next number.
const BELIEVED: u32 = 1;
/// Each of those makes good for two steps that are longer, of so many.
const MAKES_GOOD: u32 = 2;
const MOST: u32 = 64;
/// A step of more than this is a counter that others use as well, or none at all.
const FARTHEST: u16 = 256;

/// The counter of one end.
#[derive(Clone, Copy, Debug, Default)]
pub struct Identifications {
    /// What the next packet has if none is lost.
    expected: Option<u16>,
    steady: u32,
    /// It wrote zero into its SYN-ACK, as Linux does, and what comes then is counted.
    zero: bool,
}

impl Identifications {
    /// It counts its packets, and none came yet.
    pub const fn begins(&self) -> bool {
        self.zero && self.expected.is_none()
    }

    /// It writes zero into its SYN-ACK and counts what comes then, as Linux does, and no other stack that is known here.
    pub const fn is_linux(&self) -> bool {
        self.zero
    }

    /// How many packets were sent between the last one and this: `None` if nothing can be said.
    #[inline]
    pub fn between(&mut self, segment: &Segment, mss: u32) -> Option<u16> {
        let id = segment.id?;
        if segment.has(flag::SYN) && segment.has(flag::ACK) {
            (self.zero, self.expected) = (id == 0, None);
            return None;
        }
        // Who always writes zero does not count.
        self.zero &= self.expected.is_some() || id != 0;
        // Segments that a network card put together were several packets.
        let packets = if mss == 0 { 1 } else { segment.length.div_ceil(mss).max(1) };
        let step = self.expected.map(|expected| id.wrapping_sub(expected));
        // A packet that was overtaken says nothing.
        if step.is_some_and(|step| step.wrapping_neg() <= FARTHEST && step != 0) {
            return None;
        }
        self.expected = Some(id.wrapping_add(packets as u16));
        match step? {
            0 => {
                self.steady = (self.steady + MAKES_GOOD).min(MOST);
                Some(0)
            }
            step if step <= FARTHEST => {
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
