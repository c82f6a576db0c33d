//! Taking back what was done about a loss that was none (RFC 4015 § 3.2; Linux `tcp_undo_cwnd_reduction`).

use cwnd_cc::AnyController;
use cwnd_units::Time;

use super::{Sender, State};

/// What a reduction for a loss may be taken back to.
#[derive(Clone, Debug)]
pub(super) struct Before {
    /// When the first segment that was taken for lost went again (RFC 3522 § 3.2, RetransmitTS); at zero no echo is older.
    at: Time,
    /// The controller as it was; `None` where the window is not taken back.
    cc: Option<AnyController>,
}

impl Before {
    /// Whether what let an ACK go with this echo is older than the retransmission (RFC 3522 § 3.2, step 5; Linux `tcp_packet_delayed`).
    pub(super) fn is_younger_than(&self, echo: Time) -> bool {
        echo < self.at
    }
}

impl Sender {
    /// What there is now, before a reduction, where the first retransmission goes at `at`.
    ///
    /// Controllers with more than a window have counts of their own, and take nothing back.
    pub(super) fn as_it_is(&mut self, at: Time) -> Box<Before> {
        let plain = self.cc.beyond_window().is_none();
        Box::new(Before { at, cc: plain.then(|| self.cc.clone()) })
    }

    /// Whether echoes tell which transmission an ACK is for.
    pub(super) fn echoes_tell(&self) -> bool {
        let params = &self.config.params;
        params.timestamps && params.signature.timestamp_signature == 0
    }

    /// Nothing was lost: the window is again as it was, and so is what is outstanding.
    pub(super) fn take_back(&mut self, before: Option<Box<Before>>) {
        if let Some(cc) = before.and_then(|before| before.cc) {
            self.cc = cc;
            // Linux `tcp_ecn_withdraw_cwr`.
            self.cwr_pending = false;
        }
        self.recovery = State::Open;
        self.dupacks = 0;
        self.limited_sent = 0;
        self.scoreboard.find_again(self.una);
    }

    /// An ECN-echo came: there is congestion, whatever was lost, and the window stays (Linux `tcp_fastretrans_alert`, A).
    pub(super) fn keep_reduction(&mut self) {
        if let Some(before) = &mut self.before {
            before.cc = None;
        }
    }
}
