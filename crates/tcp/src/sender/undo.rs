//! State that a reduction for a loss that was none is taken back to (RFC 4015 § 3.2; Linux
//! `tcp_undo_cwnd_reduction`), and the evidence for it: Eifel (RFC 3522) and D-SACK (RFC 3708).

use cwnd_cc::AnyController;
use cwnd_quantity::Time;

/// State before the last reduction for a loss, if that may be taken back.
///
/// Cost: O(1) an ACK, as retransmissions are counted, not listed. An undo itself costs O(n) in the
/// retransmissions in flight, and lets SACKed ranges be counted once more
/// ([`crate::sent_segments::SentSegments::undo`]); it happens once a recovery at most.
#[derive(Clone, Debug, Default)]
pub(super) struct Undo(Option<Box<UndoState>>);

#[derive(Clone, Debug)]
struct UndoState {
    /// Time when the first segment that was taken for lost went again (RFC 3522 § 3.2,
    /// RetransmitTS); at zero no echo is older.
    at: Time,
    /// The controller as it was; `None` where the window is not taken back.
    cc: Option<AnyController>,
    /// Start of what was outstanding then (Linux, `undo_marker`).
    from: u64,
    /// Retransmissions on their way then, and since, less those that arrived twice; none before the
    /// first (Linux, `undo_retrans`).
    again: Option<u64>,
}

impl Undo {
    /// A reduction follows, of a window of data from `from` on; its first retransmission goes at
    /// `at`, and so many others are in flight.
    pub fn remember(&mut self, at: Time, cc: AnyController, from: u64, in_flight: u64) {
        let again = (in_flight > 0).then_some(in_flight);
        self.0 = Some(Box::new(UndoState { at, cc: Some(cc), from, again }));
    }

    /// Nothing is taken back any more.
    pub fn forget(&mut self) {
        self.0 = None;
    }

    /// `true` if there is nothing to take back.
    #[inline]
    pub const fn is_none(&self) -> bool {
        self.0.is_none()
    }

    /// The controller as it was, unless its window stays; then there is nothing more to take back.
    pub fn take(&mut self) -> Option<AnyController> {
        self.0.take()?.cc
    }

    /// Eifel: `true` if what let an ACK go with this echo is older than the retransmission (RFC
    /// 3522 § 3.2, step 4; Linux `tcp_packet_delayed`).
    pub fn is_younger_than(&self, echo: Time) -> bool {
        self.0.as_ref().is_some_and(|before| echo < before.at)
    }

    /// From now on echoes tell nothing.
    pub fn end_of_echoes(&mut self) {
        if let Some(before) = &mut self.0 {
            before.at = Time::ZERO;
        }
    }

    /// A segment goes again.
    #[inline]
    pub fn on_retransmission(&mut self) {
        if let Some(before) = &mut self.0 {
            *before.again.get_or_insert(0) += 1;
        }
    }

    /// D-SACK: so many segments up to `end` arrived twice.
    pub fn arrived_twice(&mut self, end: u64, segments: u64) {
        let Some(before) = self.0.as_mut().filter(|before| end > before.from) else { return };
        if let Some(again) = &mut before.again {
            *again = again.saturating_sub(segments);
        }
    }

    /// D-SACK: `true` if all that went again had arrived.
    pub fn all_arrived(&self) -> bool {
        self.0.as_ref().is_some_and(|before| before.again == Some(0))
    }

    /// There is congestion, whatever was lost: the window stays.
    pub fn keep_reduction(&mut self) {
        if let Some(before) = &mut self.0 {
            before.cc = None;
        }
    }
}
