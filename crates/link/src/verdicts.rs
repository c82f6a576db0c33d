use std::collections::VecDeque;

use cwnd_aqm::Verdict;

/// One of those who read a line's verdicts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reader(usize);

/// What a queue decided, in order, for as many readers as like. Each has its own position; the ring grows to hold what the
/// slowest has not read, so that nobody misses anything.
#[derive(Debug)]
pub(crate) struct Verdicts<P> {
    kept: VecDeque<Verdict<P>>,
    /// How many there were before the first that is kept.
    passed: u64,
    /// How many each reader has read, counted from the first of all.
    read: Vec<u64>,
}

impl<P: Copy> Verdicts<P> {
    /// A ring that nobody reads yet.
    pub const fn new() -> Self {
        Self { kept: VecDeque::new(), passed: 0, read: Vec::new() }
    }

    /// The queue decides.
    pub fn push(&mut self, verdict: Verdict<P>) {
        self.kept.push_back(verdict);
    }

    /// Another reader, of what comes from now on.
    pub fn reader(&mut self) -> Reader {
        self.read.push(self.passed + self.kept.len() as u64);
        Reader(self.read.len() - 1)
    }

    /// Whether there is something that not all have read.
    pub fn has_news(&self) -> bool {
        !self.kept.is_empty()
    }

    /// The next verdict for this reader.
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
