//! FACK: loss detection by the highest SACKed byte, forward acknowledgement (Mathis & Mahdavi
//! 1996).

use cwnd_packet::Ranges;

/// Rule of FACK: a byte is lost if it lies `distance` or more below the highest SACKed byte,
/// however much is SACKed in between.
#[derive(Clone, Copy, Debug)]
pub struct Fack {
    distance: u64,
}

impl Fack {
    pub const fn new(dup_thresh: u32, mss: u64) -> Self {
        Self { distance: dup_thresh as u64 * mss }
    }

    /// Returns the lost edge: all bytes below it are lost unless SACKed.
    pub fn edge(self, sacked: &Ranges) -> u64 {
        sacked.highest().map_or(0, |top| top.end.saturating_sub(self.distance))
    }
}
