//! ACKs that most stacks make nothing of: those that a later one has overtaken, and those of a
//! receiver that threw away what it had reported.

use cwnd_cc::Controller as _;
use cwnd_quantity::{Duration, Time};

use super::Sender;
use crate::params::Recovery;
use crate::segment::SackBlocks;

/// A receiver is given so long at least to make its reports good (Linux,
/// `tcp_check_sack_reneging`).
const LEAST_PATIENCE: Duration = Duration::from_millis(10);

impl Sender {
    /// An ACK below SND.UNA came: what its SACK blocks report counts, and lets as much go as it
    /// shows to have left the network (Linux, `tcp_ack`, `old_ack`, where the window of
    /// proportional rate reduction stays).
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
        let new = if self.loss.is_by_time() {
            self.take_sacks(now, blocks, ack, self.sent.top(self.seq.una()))
        } else {
            self.sent.on_sack_above(blocks, ack, self.seq.una(), self.seq.high())
        };
        self.loss.on_ack();
        if new == 0 {
            return;
        }
        self.time_sacked(blocks, ack, new);
        if self.recovery.is_in_frto() {
            self.on_ack_in_frto(now, 0, true, (blocks, ack));
        }
        self.detect_losses(now);
        self.sent.take_lost_again();
        if self.recovery.is_open() && self.sent.is_lost(self.seq.una()) {
            // The window becomes smaller with the next ACK; the fast retransmit is allowed already.
            self.enter_recovery(now);
            let pipe = self.sent.pipe(self.seq.una(), self.seq.nxt());
            let more = window.saturating_sub(pipe + self.config.mss);
            self.allow_in_recovery(more);
            return;
        }
        let left = before.saturating_sub(self.sent.pipe(self.seq.una(), self.seq.nxt()));
        self.allow_in_recovery(left);
    }

    /// Proportional rate reduction lets so much more go, by an ACK that is none to it.
    fn allow_in_recovery(&mut self, left: u64) {
        if let Some(prr) = self.recovery.prr_mut() {
            prr.allow_more(left);
        }
    }

    /// An ACK advanced to data that had been SACKed: the receiver seems to have thrown it away (RFC
    /// 2018 § 8). It has some time left to say otherwise.
    #[cold]
    pub(super) fn hurry(&mut self, now: Time) {
        let half = self.rtt.srtt().map_or(Duration::ZERO, |srtt| Duration(srtt.0 / 2));
        self.rto.set(now + half.max(LEAST_PATIENCE));
    }
}
