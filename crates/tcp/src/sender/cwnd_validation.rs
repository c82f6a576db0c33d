//! Use of the window (RFC 7661) in the last window of data, as Linux sees it (tcp_output.c,
//! `tcp_cwnd_validate`), where it is not all the same.

use cwnd_cc::Controller as _;

use super::{FastRecovery, Sender, State};
use crate::validation::LimitedBy;

/// Use since data up to `until` was sent.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Used {
    /// `true` if the window was full at some time.
    full: bool,
    /// The most that was outstanding, if it was not, bytes.
    most: u64,
    /// The highest byte sent when this was noted.
    until: u64,
    /// The highest byte sent when nothing more could go last.
    sent: u64,
}

impl Sender {
    /// Nothing more goes now: whether the window may grow for the next ACK.
    ///
    /// Apart from the path of senders that watch no use, which it would make longer.
    #[cold]
    pub(super) fn look_at_use(&mut self) {
        let window = self.cc.window();
        if self.config.params.validation.cwnd_limited == LimitedBy::Always {
            // tcp_input.c, cc_ack_received: CCF_CWND_LIMITED.
            self.cwnd_limited = window.cwnd <= self.seq.rwnd();
            return;
        }
        let mss = self.config.mss;
        let is_full = match (&self.recovery, &self.cwr) {
            (State::Recovery(FastRecovery { prr: Some(prr), .. }), _)
            | (State::Open, Some(prr)) => !prr.allows(mss),
            // What waits for its chunk to be full waits for the window (`tcp_tso_should_defer`).
            _ => self.in_flight() + mss > window.cwnd || self.waits_for_chunk(),
        };
        let outstanding = match self.config.segments.divide(self.seq.flight()) {
            (segments, 0) => segments * mss,
            (segments, _) => (segments + 1) * mss,
        };
        let waits = self.seq.nxt() < self.seq.app_end();
        let (una, high) = (self.seq.una(), self.seq.high());
        let Some(used) = &mut self.used else { return };
        let sent = used.sent != high;
        used.sent = high;
        let full = is_full && (sent || waits);
        if (sent || full) && (una >= used.until || full || !used.full && outstanding > used.most) {
            **used = Used { full, most: outstanding, until: high, sent: high };
        }
        let below = window.cwnd < window.ssthresh && window.cwnd < 2 * used.most;
        self.cwnd_limited = used.full || below;
    }
}
