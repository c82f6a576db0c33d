use std::collections::VecDeque;

use cwnd_aqm::Verdict;

/// Handle of a reader of a line's verdicts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reader(usize);

/// Verdicts of a queue in order, for any number of readers.
///
/// Each reader has its own position. The ring keeps all that the slowest reader has not read, so no
/// reader misses a verdict.
#[derive(Debug)]
pub(crate) struct Verdicts<P> {
    kept: VecDeque<Verdict<P>>,
    /// Number of verdicts before the first one kept.
    passed: u64,
    /// Position of each reader, counted from the first verdict of all.
    read: Vec<u64>,
}

impl<P: Copy> Verdicts<P> {
    /// Creates an empty ring without readers.
    pub const fn new() -> Self {
        Self { kept: VecDeque::new(), passed: 0, read: Vec::new() }
    }

    /// Appends a verdict.
    pub fn push(&mut self, verdict: Verdict<P>) {
        self.kept.push_back(verdict);
    }

    /// Adds a reader of the verdicts that follow.
    pub fn reader(&mut self) -> Reader {
        self.read.push(self.passed + self.kept.len() as u64);
        Reader(self.read.len() - 1)
    }

    /// `true` if some reader has not read all verdicts.
    pub fn has_news(&self) -> bool {
        !self.kept.is_empty()
    }

    /// Returns the next verdict for this reader, and drops what all readers have read.
    pub fn read(&mut self, reader: Reader) -> Option<Verdict<P>> {
        let position = self.read.get_mut(reader.0)?;
        let verdict = *self.kept.get((*position - self.passed) as usize)?;
        *position += 1;
        let slowest = self.read.iter().copied().min().unwrap_or(self.passed);
        while self.passed < slowest {
            self.kept.pop_front();
            self.passed += 1;
        }
        Some(verdict)
    }
}
