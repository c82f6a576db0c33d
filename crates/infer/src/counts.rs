//! Counts of the blocks and packets read from captures, and of those left out.

use std::ops::AddAssign;

use crate::capture::More;
use crate::headers::{Segment, Skip};

/// Kind of counted block, packet or event of reading.
#[derive(Clone, Copy, Debug)]
pub enum Count {
    Frames,
    Segments,
    Link,
    Other,
    Fragments,
    Short,
    Malformed,
    Untimed,
    Dropped,
    CutOff,
    Duplicates,
    Reordered,
    StepsBack,
}

impl Count {
    /// Names of the counts in the result, in the order of the variants.
    pub const NAMES: [&'static str; 13] = [
        "frames",
        "tcp_segments",
        "unknown_link_type",
        "not_tcp",
        "ip_fragments",
        "headers_cut_off",
        "malformed",
        "without_time",
        "dropped_on_link",
        "files_cut_off",
        "duplicates",
        "reordered",
        "steps_back",
    ];
}

/// Value of each [`Count`], in the order of the variants.
#[derive(Clone, Copy, Debug, Default)]
pub struct Counts(pub [u64; Count::NAMES.len()]);

impl Counts {
    /// Adds `more` to a count.
    pub const fn add(&mut self, count: Count, more: u64) {
        self.0[count as usize] += more;
    }

    /// Counts a block, and the frame that it holds, if any.
    pub fn block(&mut self, block: More, frame: Option<&Result<Segment, Skip>>) {
        if let Some(frame) = frame {
            self.add(Count::Frames, 1);
            let read = match frame {
                Ok(_) => Count::Segments,
                Err(Skip::Link) => Count::Link,
                Err(Skip::Other) => Count::Other,
                Err(Skip::Fragment) => Count::Fragments,
                Err(Skip::Short) => Count::Short,
                Err(Skip::Malformed) => Count::Malformed,
            };
            self.add(read, 1);
        }
        match block {
            More::Untimed => self.add(Count::Untimed, 1),
            More::Dropped => self.add(Count::Dropped, 1),
            More::CutOff => self.add(Count::CutOff, 1),
            More::Frame | More::Other | More::End => {}
        }
    }
}

impl AddAssign for Counts {
    fn add_assign(&mut self, more: Self) {
        self.0.iter_mut().zip(more.0).for_each(|(count, more)| *count += more);
    }
}
