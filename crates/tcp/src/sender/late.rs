//! Data that came late and was taken for lost: how that is seen (RFC 3522), taken back (RFC 4015), and not done again (RFC 8985 § 6.2).

use cwnd_cc::AnyController;
use cwnd_units::{Duration, Time};

use super::{Sender, State};
use crate::late::Late;
use crate::params::Recovery;

/// What a reduction for a loss may be taken back to.
#[derive(Clone, Debug)]
pub(super) struct Before {
    /// When the first segment that was taken for lost went again (RFC 3522 § 3.2, RetransmitTS).
    at: Time,
    /// The controller as it was.
    cc: AnyController,
}

impl Sender {
    /// A recovery begins, and its first segment goes again: what to come back to if that arrives all the same.
    ///
    /// Controllers with more than a window have counts of their own, and take nothing back.
    pub(super) fn remember(&mut self, now: Time) -> Option<Box<Before>> {
        let params = &self.config.params;
        let told = params.timestamps && params.signature.timestamp_signature == 0;
        let sack = params.recovery == Recovery::Sack;
        let plain = self.rack && sack && told && self.cc.beyond_window().is_none();
        plain.then(|| Box::new(Before { at: now, cc: self.cc.clone() }))
    }

    /// The first ACK of a recovery that acknowledges new data, with the timestamp that it echoes: if what let it go is older than the
    /// retransmission, the original came late (RFC 3522 § 3.2, steps 4 to 6; Linux `tcp_packet_delayed`). Then the window is again as it
    /// was (RFC 4015 § 3.2; `tcp_undo_cwnd_reduction`), and from now on what is missing has time.
    #[cold]
    pub(super) fn judge(&mut self, echo: Time) {
        let Some(before) = self.before.take() else { return };
        if echo >= before.at || !matches!(self.recovery, State::Recovery(_)) {
            return;
        }
        self.cc = before.cc;
        self.recovery = State::Open;
        self.dupacks = 0;
        self.limited_sent = 0;
        self.counters.undone += 1;
        self.scoreboard.find_again(self.una);
        if self.late.is_none() {
            let top = self.scoreboard.top(self.una);
            self.late = Some(Box::new(Late::new(self.high, top)));
        }
    }

    /// What is lost by now, where data has come late before.
    #[cold]
    pub(super) fn detect_late(&mut self, now: Time) -> bool {
        let window = self.reordering_window();
        let top = self.scoreboard.top(self.una);
        let Some(late) = &mut self.late else { return false };
        late.on_arrival(now, self.una, top);
        let (edge, next) = late.due(now, window);
        let found = self.scoreboard.detect_below(edge, self.una);
        self.late_deadline =
            if self.scoreboard.waits_above(edge, self.una) { next } else { Time::NEVER };
        found
    }

    /// RFC 8985 § 6.2, step 4: a quarter of the least round trip, and no more than the smoothed one.
    fn reordering_window(&self) -> Duration {
        let least = self.rtt.min().unwrap_or(Duration::ZERO);
        Duration(least.0 / 4).min(self.rtt.srtt().unwrap_or(least))
    }

    /// The reordering window is over for something that is missing.
    #[cold]
    pub(super) fn on_late(&mut self, now: Time) {
        self.late_deadline = Time::NEVER;
        if self.detect_late(now)
            && matches!(self.recovery, State::Open)
            && self.scoreboard.is_lost(self.una)
        {
            self.enter_recovery(now);
        }
    }
}
