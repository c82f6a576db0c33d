//! Optional handling of ACKs below SND.UNA, and of receivers that renege on SACKed data (RFC 2018
//! § 8).

use cwnd_cc::Controller as _;
use cwnd_quantity::{Duration, Time};

use super::Sender;
use crate::params::Recovery;
use crate::segment::SackBlocks;

/// Minimum time that a receiver that seems to renege has before the timeout (Linux
/// `tcp_check_sack_reneging`).
const MIN_RENEGING_TIMEOUT: Duration = Duration::from_millis(10);

impl Sender {
    /// Processes the SACK blocks of an ACK below SND.UNA, with `sack_in_old_acks`. Proportional
    /// rate reduction may send as many bytes as the blocks remove from the pipe, and its window
    /// stays (Linux `tcp_ack`, `old_ack`).
    #[cold]
    pub(super) fn on_old_ack(&mut self, now: Time, ack: u64, blocks: &SackBlocks) {
        let params = &self.config.params;
        if !params.recovery.sack_in_old_acks
            || params.recovery.recovery != Recovery::Sack
            || self.seq.high() == self.seq.una()
        {
            return;
        }
        let before = self.sent.pipe(self.seq.una(), self.seq.nxt());
        let window = self.cc.window().cwnd;
        let new = if self.loss.has_rack() {
            self.process_sacks_by_rack(now, blocks, ack, self.sent.top(self.seq.una()))
        } else {
            self.sent.on_sack_above(blocks, ack, self.seq.una(), self.seq.high())
        };
        self.loss.on_ack();
        if new == 0 {
            return;
        }
        self.log_sacked(blocks, ack, new);
        if self.recovery.is_in_frto() {
            self.on_ack_in_frto(now, 0, true, (blocks, ack));
        }
        self.detect_losses(now);
        self.sent.take_lost_retransmission();
        if self.recovery.is_open() && self.sent.is_lost(self.seq.una()) {
            // Proportional rate reduction begins with the next ACK; the fast retransmit is allowed
            // already.
            self.enter_recovery(now);
            let pipe = self.sent.pipe(self.seq.una(), self.seq.nxt());
            let more = window.saturating_sub(pipe + self.config.mss);
            self.allow_in_recovery(more);
            return;
        }
        let left = before.saturating_sub(self.sent.pipe(self.seq.una(), self.seq.nxt()));
        self.allow_in_recovery(left);
    }

    /// Raises the quota of proportional rate reduction by `left` bytes, for an ACK that it does not
    /// count.
    fn allow_in_recovery(&mut self, left: u64) {
        if let Some(prr) = self.recovery.prr_mut() {
            prr.allow_more(left);
        }
    }

    /// Shortens the retransmission timer after an ACK up to data that was SACKed before: the
    /// receiver seems to renege (RFC 2018 § 8). Half a round trip is left for an ACK that shows
    /// otherwise.
    #[cold]
    pub(super) fn shorten_rto_for_reneging(&mut self, now: Time) {
        let half = self.rtt.srtt().map_or(Duration::ZERO, |srtt| Duration(srtt.0 / 2));
        self.rto.set(now + half.max(MIN_RENEGING_TIMEOUT));
    }
}
