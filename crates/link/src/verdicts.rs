use std::collections::VecDeque;

use cwnd_aqm::Verdict;

/// Handle of a reader of a line's verdicts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reader(usize);

/// Log of the verdicts of a queue in order, for any number of readers.
///
/// Each reader has its own position. The log keeps all that the slowest reader has not read, so no
/// reader misses a verdict.
#[derive(Debug)]
pub(crate) struct VerdictLog<P> {
    unread: VecDeque<Verdict<P>>,
    /// Number of verdicts before the first one unread.
    discarded: u64,
    /// Position of each reader, counted from the first verdict of all.
    positions: Vec<u64>,
}

impl<P: Copy> VerdictLog<P> {
    /// Creates an empty log without readers.
    pub const fn new() -> Self {
        Self { unread: VecDeque::new(), discarded: 0, positions: Vec::new() }
    }

    /// Appends a verdict.
    pub fn push(&mut self, verdict: Verdict<P>) {
        self.unread.push_back(verdict);
    }

    /// Adds a reader of the verdicts that follow.
    pub fn reader(&mut self) -> Reader {
        self.positions.push(self.discarded + self.unread.len() as u64);
        Reader(self.positions.len() - 1)
    }

    /// `true` if some reader has not read all verdicts.
    pub fn has_unread(&self) -> bool {
        !self.unread.is_empty()
    }

    /// Returns the next verdict for this reader, and drops what all readers have read; `None` if it
    /// has read all.
    pub fn read(&mut self, reader: Reader) -> Option<Verdict<P>> {
        let position = self.positions.get_mut(reader.0)?;
        let verdict = *self.unread.get((*position - self.discarded) as usize)?;
        *position += 1;
        let slowest = self.positions.iter().copied().min().unwrap_or(self.discarded);
        while self.discarded < slowest {
            self.unread.pop_front();
            self.discarded += 1;
        }
        Some(verdict)
    }
}
