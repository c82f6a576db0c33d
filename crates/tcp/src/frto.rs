//! F-RTO: what a timeout was, by the ACKs that follow it (RFC 5682 § 2 and § 3; Linux `tcp_process_loss`).

use cwnd_packet::{Range, Ranges};

/// F-RTO with SACK (RFC 5682 § 3.1; Linux `tcp_process_loss`) or without (§ 2.1), from a timeout
/// until it is known what it was.
///
/// Cost, with n ranges outstanding: a timeout O(n log n), a retransmission and an ACK amortised
/// O(log n).
#[derive(Clone, Debug)]
pub struct Frto {
    /// Bytes that were outstanding at the timeout, went once until now and have not arrived.
    originals: Ranges,
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
    pub fn new(
        again: impl Iterator<Item = (u64, u64)>,
        una: u64,
        high: u64,
        sacked: &Ranges,
    ) -> Self {
        let mut originals = Ranges::default();
        originals.insert(una, high);
        let arrived = sacked.descending().map(|range| (range.start, range.end));
        for (start, end) in again.chain(arrived) {
            originals.remove(start, end);
        }
        Self { originals, answers: false }
    }

    /// Whether new data goes in place of what is lost.
    pub const fn sends_new(&self) -> bool {
        self.answers
    }

    /// Drops originals that go again: their arrival tells nothing from now on. All below `una` is
    /// acknowledged.
    pub fn on_retransmission(&mut self, range: Range, una: u64) {
        self.originals.remove(range.start, range.end);
        self.originals.remove_below(una);
    }

    /// An ACK came with these SACK blocks; all below `una` is acknowledged.
    pub fn on_ack(
        &mut self,
        told: Told,
        una: u64,
        blocks: impl Iterator<Item = Range>,
        sacked: &Ranges,
    ) -> Verdict {
        let original = self.has_arrived(una, blocks, sacked);
        self.originals.remove_below(una);
        let verdict = decide(told, original && !told.again);
        // Only that ACK is answered by new data: the next lets what is lost go again.
        self.answers = verdict == Verdict::SendNew;
        verdict
    }

    /// `true` if any of the originals has arrived. A block may hold bytes that `sacked` leaves
    /// out, such as parts of segments.
    fn has_arrived(
        &self,
        una: u64,
        mut blocks: impl Iterator<Item = Range>,
        sacked: &Ranges,
    ) -> bool {
        let acknowledged = self.originals.lowest().is_some_and(|range| range.start < una);
        acknowledged
            || blocks.any(|block| {
                let mut at = block.start;
                while let Some(part) = self.originals.first_in(at, block.end) {
                    if sacked.overlaps(part.start, part.end) {
                        return true;
                    }
                    at = part.end;
                }
                false
            })
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
