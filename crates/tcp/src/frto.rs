//! F-RTO: what a timeout was, by the ACKs that follow it (RFC 5682 § 2 and § 3; Linux `tcp_process_loss`).

use crate::ranges::{Range, Ranges};
use crate::scoreboard::Scoreboard;

/// F-RTO with SACK (RFC 5682 § 3.1; Linux `tcp_process_loss`) or without (§ 2.1), from a timeout until it is known what it was.
#[derive(Clone, Debug)]
pub struct Frto {
    /// What was outstanding at the timeout and went once until now, in order.
    originals: Vec<Range>,
    /// How much of that was not reported yet, bytes.
    missing: u64,
    /// Whether the last ACK was the first new one, so that new data goes.
    answers: bool,
}

/// What an ACK told that acknowledges or reports something new.
#[derive(Clone, Copy, Debug)]
pub struct Told {
    /// Whether it acknowledges new data.
    pub advances: bool,
    /// Whether it reports new data by SACK, or without that is a duplicate.
    pub sacks: bool,
    /// Whether it cannot tell that data arrived that went once: without SACK, if it acknowledges any that went again.
    pub again: bool,
    /// Whether it acknowledges all that was outstanding at the timeout.
    pub recovers: bool,
    /// Whether data that had never gone before went since the timeout.
    pub new_went: bool,
    /// Whether more of such waits, and the receiver has room for it.
    pub new_waits: bool,
}

/// What follows from an ACK.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Nothing yet.
    Open,
    /// New data is to go, and nothing again.
    SendNew,
    /// The timeout was spurious.
    Spurious,
    /// Something was lost: recovery goes on as usual.
    Lost,
}

impl Frto {
    /// The timer has expired with all from `una` to `high` outstanding; `again` went more than once, or goes again now.
    pub fn new(again: &[(u64, u64)], una: u64, high: u64, scoreboard: &Scoreboard) -> Self {
        let mut repeated = Ranges::default();
        for &(start, end) in again {
            repeated.insert(start, end);
        }
        let mut originals = Vec::new();
        let mut from = una;
        while let Some(once) = repeated.hole_from(from, high) {
            originals.push(once);
            from = once.end;
        }
        let mut frto = Self { originals, missing: 0, answers: false };
        frto.missing = frto.count(una, scoreboard);
        frto
    }

    /// Whether new data goes in place of what is lost.
    pub const fn sends_new(&self) -> bool {
        self.answers
    }

    /// What went once at the timeout goes again: if it arrives now, that tells nothing.
    pub fn on_retransmission(&mut self, range: Range, una: u64, scoreboard: &Scoreboard) {
        let cut = |original: &Range| {
            let before = Range { start: original.start, end: original.end.min(range.start) };
            let behind = Range { start: original.start.max(range.end), end: original.end };
            [before, behind]
        };
        let left = self.originals.iter().flat_map(cut).filter(|part| part.start < part.end);
        self.originals = left.collect();
        self.missing = self.count(una, scoreboard);
    }

    /// An ACK came; all below `una` is acknowledged.
    pub fn on_ack(&mut self, told: Told, una: u64, scoreboard: &Scoreboard) -> Verdict {
        let missing = self.count(una, scoreboard);
        let original = missing < self.missing;
        self.missing = missing;
        let verdict = decide(told, original && !told.again);
        // Only that ACK is answered by new data: the next lets what is lost go again.
        self.answers = verdict == Verdict::SendNew;
        verdict
    }

    fn count(&self, una: u64, scoreboard: &Scoreboard) -> u64 {
        self.originals.iter().map(|&range| scoreboard.missing(una, range)).sum()
    }
}

/// RFC 5682 § 3.1, steps 2 and 3; `original` says whether data arrived that went once, before the timeout.
fn decide(told: Told, original: bool) -> Verdict {
    if original {
        // Step 3b; Linux looks at the first ACK, too.
        return Verdict::Spurious;
    }
    if told.new_went {
        // Step 3a: the new data arrived before what was sent before it.
        return if told.sacks { Verdict::Lost } else { Verdict::Open };
    }
    match (told.advances && !told.recovers, told.new_waits) {
        // Step 2a.
        (false, _) => Verdict::Open,
        // Step 2b.
        (true, true) => Verdict::SendNew,
        (true, false) => Verdict::Lost,
    }
}
