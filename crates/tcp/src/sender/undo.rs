//! State for the undo of a reduction (RFC 4015 § 3.2; Linux `tcp_undo_cwnd_reduction`), and the
//! evidence for it: Eifel (RFC 3522) and D-SACK (RFC 3708).

use cwnd_cc::AnyController;
use cwnd_quantity::Time;

/// State before the last reduction for a loss, if an undo is possible.
///
/// Cost: O(1) per ACK, as retransmissions are counted, not listed. An undo costs O(n) in the
/// retransmissions in flight, and lets SACKed ranges be counted once more
/// ([`crate::sent_segments::SentSegments::undo`]). It happens at most once per recovery.
#[derive(Clone, Debug, Default)]
pub(super) struct Undo(Option<Box<UndoState>>);

#[derive(Clone, Debug)]
struct UndoState {
    /// Time of the first retransmission (RFC 3522 § 3.2, RetransmitTS); at zero no echo is older.
    retransmit_ts: Time,
    /// Controller before the reduction; `None` if the reduction stays.
    cc: Option<AnyController>,
    /// SND.UNA at the reduction (Linux `undo_marker`).
    undo_marker: u64,
    /// Retransmissions in flight at the reduction and sent since, less those that D-SACK reports;
    /// `None` before the first (Linux `undo_retrans`).
    undo_retrans: Option<u64>,
}

impl Undo {
    /// Keeps the controller before a reduction, with SND.UNA at `undo_marker`. The first
    /// retransmission is sent at `retransmit_ts`, and `in_flight` others are in flight.
    pub fn save(
        &mut self,
        retransmit_ts: Time,
        cc: AnyController,
        undo_marker: u64,
        in_flight: u64,
    ) {
        let undo_retrans = (in_flight > 0).then_some(in_flight);
        self.0 =
            Some(Box::new(UndoState { retransmit_ts, cc: Some(cc), undo_marker, undo_retrans }));
    }

    /// Rules out an undo of the last reduction.
    pub fn forget(&mut self) {
        self.0 = None;
    }

    /// `true` if no reduction can be undone.
    #[inline]
    pub const fn is_none(&self) -> bool {
        self.0.is_none()
    }

    /// Takes the state for an undo. Returns the controller before the reduction, or `None` if the
    /// reduction stays.
    pub fn take(&mut self) -> Option<AnyController> {
        self.0.take()?.cc
    }

    /// Eifel: `true` if `echo` is older than the first retransmission (RFC 3522 § 3.2, step 4;
    /// Linux `tcp_packet_delayed`).
    pub fn precedes_retransmission(&self, echo: Time) -> bool {
        self.0.as_ref().is_some_and(|before| echo < before.retransmit_ts)
    }

    /// Ignores echoes from now on.
    pub fn ignore_echoes(&mut self) {
        if let Some(before) = &mut self.0 {
            before.retransmit_ts = Time::ZERO;
        }
    }

    /// Counts a retransmission.
    #[inline]
    pub fn on_retransmission(&mut self) {
        if let Some(before) = &mut self.0 {
            *before.undo_retrans.get_or_insert(0) += 1;
        }
    }

    /// Counts `segments` up to `end` that D-SACK reports to have arrived twice.
    pub fn on_dsack_segments(&mut self, end: u64, segments: u64) {
        let Some(before) = self.0.as_mut().filter(|before| end > before.undo_marker) else {
            return;
        };
        if let Some(undo_retrans) = &mut before.undo_retrans {
            *undo_retrans = undo_retrans.saturating_sub(segments);
        }
    }

    /// `true` if D-SACK has reported every retransmission.
    pub fn all_reported_by_dsack(&self) -> bool {
        self.0.as_ref().is_some_and(|before| before.undo_retrans == Some(0))
    }

    /// Keeps the reduction even if the losses prove spurious, as an ECN-echo shows congestion.
    pub fn keep_reduction(&mut self) {
        if let Some(before) = &mut self.0 {
            before.cc = None;
        }
    }
}
