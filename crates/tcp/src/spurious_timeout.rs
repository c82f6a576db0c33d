//! Spurious timeouts: the timer was early and nothing was lost. F-RTO detects them by the ACKs that
//! follow (RFC 5682 § 2 and § 3; Linux `tcp_process_loss`), Eifel by timestamps (RFC 3522).

use cwnd_packet::{Range, Ranges};
use cwnd_schema::Schema;

/// Response to spurious timeouts.
#[derive(Clone, Debug, PartialEq, Schema)]
pub struct Params {
    /// `true` if new data follows the first retransmission of a timeout, so that ACKs show if
    /// anything was lost (F-RTO). If nothing was lost, the sender undoes the timeout. Without SACK
    /// this needs `loss_rule = "rack"` and `recovery = "newreno"`.
    #[default(
        false,
        "RFC 5682 § 2 and § 3, which RFC 6298 does not ask for; Linux: yes (tcp_frto)"
    )]
    #[part("frto")]
    pub timeout_frto: bool,
    /// `true` if the sender undoes a timeout when the first new ACK echoes a timestamp older than
    /// the retransmission (Eifel). No effect without `timestamps`, or if they are signed. Without
    /// SACK this needs `loss_rule = "rack"` and `recovery = "newreno"`.
    #[default(
        false,
        "RFC 3522 and RFC 4015, which RFC 6298 does not ask for; Linux: yes (tcp_try_undo_loss)"
    )]
    #[part("eifel")]
    pub timeout_eifel: bool,
}

/// State of F-RTO with SACK (RFC 5682 § 3.1; Linux `tcp_process_loss`) or without (§ 2.1), from a
/// timeout until its verdict.
///
/// Cost, with n ranges outstanding: a timeout O(n log n), a retransmission and an ACK amortised
/// O(log n).
#[derive(Clone, Debug)]
pub struct Frto {
    /// Bytes outstanding at the timeout that were sent once until now, less those SACKed before it
    /// and those acknowledged since.
    originals: Ranges,
    /// `true` if the last ACK was the first new one, so that new data is sent.
    sends_new_next: bool,
}

/// Facts of an ACK of new data, of an ACK that reports new data by SACK, or without SACK of a
/// duplicate.
#[derive(Clone, Copy, Debug)]
pub struct AckFacts {
    /// `true` if the ACK acknowledges new data.
    pub advances: bool,
    /// `true` if the ACK reports new data by SACK, or is a duplicate without SACK.
    pub sacks: bool,
    /// `true` if the ACK is no evidence that data sent once arrived: without SACK, if it
    /// acknowledges any retransmitted data.
    pub acks_retransmission: bool,
    /// `true` if the ACK acknowledges all that was outstanding at the timeout.
    pub recovers: bool,
    /// `true` if new data was sent since the timeout.
    pub new_sent: bool,
    /// `true` if more new data waits, and the receiver has room for it.
    pub new_waits: bool,
}

/// Verdict that follows from an ACK.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Nothing yet.
    Open,
    /// New data is sent next, and no retransmission.
    SendNew,
    /// The timeout was spurious.
    Spurious,
    /// Some data was lost: the repair of the timeout continues as usual.
    Lost,
}

impl Frto {
    /// Starts F-RTO at a timeout with data from `una` to `high` outstanding, some of it `sacked`;
    /// `retransmitted` are the ranges that were retransmitted before, or are now.
    pub fn new(
        retransmitted: impl Iterator<Item = (u64, u64)>,
        una: u64,
        high: u64,
        sacked: &Ranges,
    ) -> Self {
        let mut originals = Ranges::default();
        originals.insert(una, high);
        let arrived = sacked.descending().map(|range| (range.start, range.end));
        for (start, end) in retransmitted.chain(arrived) {
            originals.remove(start, end);
        }
        Self { originals, sends_new_next: false }
    }

    /// `true` if new data is sent next in place of retransmissions.
    pub const fn sends_new(&self) -> bool {
        self.sends_new_next
    }

    /// Drops originals that are retransmitted: their arrival is no evidence from now on. All below
    /// `una` is acknowledged.
    pub fn on_retransmission(&mut self, range: Range, una: u64) {
        self.originals.remove(range.start, range.end);
        self.originals.remove_below(una);
    }

    /// Processes an ACK with these SACK blocks; all below `una` is acknowledged.
    pub fn on_ack(
        &mut self,
        ack: AckFacts,
        una: u64,
        blocks: impl Iterator<Item = Range>,
        sacked: &Ranges,
    ) -> Verdict {
        let original = self.has_arrived(una, blocks, sacked);
        self.originals.remove_below(una);
        let verdict = decide(ack, original && !ack.acks_retransmission);
        // Only that ACK is answered by new data: after the next, lost data is retransmitted.
        self.sends_new_next = verdict == Verdict::SendNew;
        verdict
    }

    /// `true` if any of the originals has arrived. A block may include bytes that `sacked` leaves
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

/// Verdict by RFC 5682 § 3.1, steps 2 and 3; `original` if data arrived that was sent once, before
/// the timeout.
fn decide(ack: AckFacts, original: bool) -> Verdict {
    if original {
        // Step 3b; Linux examines the first ACK, too.
        return Verdict::Spurious;
    }
    if ack.new_sent {
        // Step 3a: a duplicate ACK, or a SACK of new data alone, shows that data was lost.
        return if ack.sacks { Verdict::Lost } else { Verdict::Open };
    }
    match (ack.advances && !ack.recovers, ack.new_waits) {
        // Step 2a.
        (false, _) => Verdict::Open,
        // Step 2b.
        (true, true) => Verdict::SendNew,
        (true, false) => Verdict::Lost,
    }
}
