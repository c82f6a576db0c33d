//! Loss detection by the highest SACKed data: forward acknowledgement (Mathis & Mahdavi 1996).

use cwnd_packet::Ranges;

/// Rule of FACK: data is lost that lies `distance` or more below the highest SACKed byte, however
/// much between them was SACKed.
#[derive(Clone, Copy, Debug)]
pub struct Fack {
    distance: u64,
}

impl Fack {
    pub const fn new(dup_thresh: u32, mss: u64) -> Self {
        Self { distance: dup_thresh as u64 * mss }
    }

    /// The number below which all that was not SACKed is lost.
    pub fn edge(self, sacked: &Ranges) -> u64 {
        sacked.highest().map_or(0, |top| top.end.saturating_sub(self.distance))
    }
}
