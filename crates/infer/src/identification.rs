//! IPv4 identifications, where a sender counts its packets by them, as Linux does for each connection.
//!
//! RFC 6864 lets a sender write what it likes into packets that may not be fragmented, so it's believed only after it counted
//! several packets by one.

use crate::headers::Segment;

/// Packets in a row that were counted by one before identifications are believed.
const BELIEVED: u32 = 6;
/// So many steps by less than one are made good by as many that are right.
const MOST: u32 = 64;
/// A step of more than this is a counter that others use as well, or none at all.
const FARTHEST: u16 = 256;

/// The counter of one end.
#[derive(Clone, Copy, Debug, Default)]
pub struct Identifications {
    /// What the next packet has if none is lost.
    expected: Option<u16>,
    steady: u32,
}

impl Identifications {
    /// Whether packets were sent between the last one and this: `None` if nothing can be said.
    #[inline]
    pub fn between(&mut self, segment: &Segment, mss: u32) -> Option<bool> {
        let id = segment.id?;
        // Segments that a network card put together were several packets.
        let packets = if mss == 0 { 1 } else { segment.length.div_ceil(mss).max(1) };
        let step = self.expected.map(|expected| id.wrapping_sub(expected));
        self.expected = Some(id.wrapping_add(packets as u16));
        match step? {
            0 => {
                self.steady = (self.steady + 1).min(MOST);
                (self.steady > BELIEVED).then_some(false)
            }
            step if step <= FARTHEST => {
                let believed = self.steady > BELIEVED;
                // A counter of a whole host has such steps all the time.
                self.steady -= self.steady / 4;
                believed.then_some(true)
            }
            _ => {
                self.steady = 0;
                None
            }
        }
    }
}
