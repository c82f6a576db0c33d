//! Taking back what was done about a loss that was none (RFC 4015 § 3.2; Linux
//! `tcp_undo_cwnd_reduction`).

use cwnd_cc::{AnyController, Controller as _};
use cwnd_quantity::Time;

use super::Sender;

/// State that a reduction for a loss may be taken back to.
///
/// Cost: O(1) an ACK, as retransmissions are counted, not listed. An undo itself costs O(n) in the
/// retransmissions in flight, and lets SACKed ranges be counted once more
/// ([`crate::sent_segments::SentSegments::undo`]); it happens once a recovery at most.
#[derive(Clone, Debug)]
pub(super) struct UndoState {
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

impl UndoState {
    /// `true` if what let an ACK go with this echo is older than the retransmission (RFC 3522 §
    /// 3.2, step 5; Linux `tcp_packet_delayed`).
    pub(super) fn is_younger_than(&self, echo: Time) -> bool {
        echo < self.at
    }

    /// From now on echoes tell nothing.
    pub(super) const fn end_of_echoes(&mut self) {
        self.at = Time::ZERO;
    }

    /// A segment goes again.
    pub(super) fn on_retransmission(&mut self) {
        *self.again.get_or_insert(0) += 1;
    }

    /// So many segments up to `end` arrived twice.
    pub(super) fn arrived_twice(&mut self, end: u64, segments: u64) {
        if let Some(again) = self.again.as_mut().filter(|_| end > self.from) {
            *again = again.saturating_sub(segments);
        }
    }

    /// `true` if all that went again had arrived.
    pub(super) fn all_arrived(&self) -> bool {
        self.again == Some(0)
    }
}

impl Sender {
    /// State before a reduction, where the first retransmission goes at `at`.
    pub(super) fn as_it_is(&mut self, at: Time) -> Box<UndoState> {
        let mut cc = self.cc.clone();
        if self.config.plan.by_time {
            // Linux `tcp_current_ssthresh`: three quarters of the window, in whole segments, at
            // least.
            let segments = cc.window().cwnd / self.config.mss;
            cc.raise_threshold((segments / 2 + segments / 4) * self.config.mss);
        }
        // A probe of the tail may arrive twice, too (`tcp_init_undo`).
        let probe = self.rack_tlp.as_deref().is_some_and(|tlp| tlp.probe.repeats());
        let under_way = self.sent.resent() + u64::from(probe);
        let again = (under_way > 0).then_some(under_way);
        Box::new(UndoState { at, cc: Some(cc), from: self.seq.una(), again })
    }

    /// `true` if an ACK of new data may take this back.
    #[inline]
    pub(super) fn is_judged(&self, before: &UndoState) -> bool {
        !self.recovery.is_open() || before.all_arrived()
    }

    /// `true` if echoes tell which transmission an ACK is for.
    pub(super) fn echoes_tell(&self) -> bool {
        let params = &self.config.params;
        params.timestamps && params.signature.timestamp_signature == 0
    }

    /// Nothing was lost: the window is again as it was, and so is what is outstanding.
    pub(super) fn take_back(&mut self, now: Time, before: Option<Box<UndoState>>) {
        self.take_recovery_back(now, before);
        self.sent.undo(self.seq.una());
    }

    /// The window is again as it was, and nothing is repaired any more. What is lost stays so, as
    /// what went after the recovery began may be (Linux `tcp_try_undo_recovery`,
    /// `tcp_try_undo_dsack`).
    pub(super) fn take_recovery_back(&mut self, now: Time, before: Option<Box<UndoState>>) {
        self.take_back_window(now, before);
        self.recovery.undo(0);
        self.seq.end_limited();
        if let Some(tlp) = &mut self.rack_tlp {
            // Losses are looked for anew.
            tlp.rack.look();
        }
    }

    /// The window is again as it was, unless it is larger by now (Linux, `tcp_reno_undo_cwnd`).
    pub(super) fn take_back_window(&mut self, now: Time, before: Option<Box<UndoState>>) {
        let Some(cc) = before.and_then(|before| before.cc) else { return };
        if cc.window().ssthresh > self.cc.window().ssthresh {
            // Linux `tcp_ecn_withdraw_cwr`.
            self.ecn.set_cwr(false);
        }
        self.cc.undo(cc, now, self.recovery.is_loss());
    }

    /// An ECN-echo came: there is congestion, whatever was lost, and the window stays (Linux
    /// `tcp_fastretrans_alert`, A).
    pub(super) fn keep_reduction(&mut self) {
        if let Some(before) = &mut self.undo {
            before.cc = None;
        }
    }
}
