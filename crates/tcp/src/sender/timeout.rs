//! Expiry of the retransmission timer: RFC 6298 § 5.4–5.7, RFC 5681 § 3.1, and RFC
//! 9293 § 3.8.3, which says when to give up.

use cwnd_cc::{Backoff, Controller as _, RtoPolicy, Signal};
use cwnd_quantity::{Duration, Time};

use super::{Connection, Sender};
use crate::counters::TIMEOUT_RANKS;
use crate::params::{BackoffUntil, Recovery};
use crate::sent_segments::Young;

/// The point at which a connection was given up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GaveUp {
    /// Before it was open: no SYN was answered.
    Syn,
    /// At data that was sent again and again.
    Data,
}

impl Sender {
    pub(super) fn on_syn_timeout(&mut self, tries: u32) {
        self.counters.syn_timeouts += 1;
        self.rto.back_off(false);
        self.rto.stop();
        self.connection = if tries > self.config.params.connection.syn_retries {
            Connection::Failed(GaveUp::Syn)
        } else {
            Connection::SynSent { sent: false, tries }
        };
    }

    /// RFC 6298 § 5.4–5.6 and RFC 5681 § 3.1, end.
    pub(super) fn on_timeout(&mut self, now: Time) {
        self.rto.count_expiry(now);
        self.rto.back_off(self.is_thin());
        let expired = self.rto.expired();
        let rank = (expired as usize - 1).min(TIMEOUT_RANKS - 1);
        self.counters.timeouts[rank] += 1;
        if self.has_tried_enough(now) {
            self.connection = Connection::Failed(GaveUp::Data);
            self.rto.stop();
            self.pacer.set_holds(false);
            return;
        }
        let mut path = self.path(now);
        // Departs from RFC 5681 § 2, whose FlightSize is all that is not cumulatively acknowledged:
        // while SACK recovery waits for a lost retransmission, new data goes on being sent and
        // SACKed, and that sum grows without bound; without SACK, after an earlier timeout, it
        // still holds the window that was given up for lost. What RFC 6675 calls pipe is what
        // FlightSize meant.
        path.flight_size = self.in_flight();
        let was_reduced = self.was_reduced();
        // RFC 5681 § 3.1: what was sent again already keeps the threshold.
        let reduces = expired == 1 && !was_reduced;
        self.remember_timeout(now, was_reduced);
        let is_looked_at = self.begins_frto();
        self.cc.on_signal(&path, Signal::Timeout { nth: expired, reduces });
        self.ecn.set_cwr(self.config.params.says_cwr());
        self.end_spacing(now);
        self.begin_loss_state(now);
        if is_looked_at {
            self.begin_frto();
        }
        self.ecn.set_first_counts(self.config.params.ecn.ecn_after_timeout);
        self.rto.set(now + self.rto());
    }

    /// R2 of RFC 9293 § 3.8.3, as a count and as a time. (Where R2 is a time, Linux sees that it is
    /// over at an expiry, too.)
    fn has_tried_enough(&self, now: Time) -> bool {
        let params = &self.config.params;
        params.connection.data_retries.is_some_and(|most| self.rto.expired() > most)
            || params
                .connection
                .data_retry_time
                .is_some_and(|most| self.rto.expired_for(now) >= most)
    }

    /// `true` if the window was reduced for what is outstanding, and that is enough (tcp_input.c,
    /// `tcp_enter_loss`: `high_seq` is above `snd_una`). An expiry after progress of the last one's
    /// repair reduces again.
    fn was_reduced(&self) -> bool {
        self.config.params.recovery.timeout_keeps_threshold
            && self.recovery.was_reduced(self.seq.una())
    }

    /// `true` if the timeout stays because little is outstanding (Linux, `tcp_stream_is_thin`). No
    /// flow is in its first slow start after a timeout, so that is not asked.
    fn is_thin(&self) -> bool {
        let outstanding = self.seq.outstanding().div_ceil(self.config.mss);
        let params = &self.config.params;
        let bounded = params.rto.rto_backoff == Backoff::Bounded;
        (params.rto.rto_thin_linear
            || bounded && self.rto.expired() <= params.rto.rto_backoff_after)
            && outstanding < THIN_SEGMENTS
            && self.rto.expired() <= THIN_EXPIRIES
    }

    /// A valid sample came with an ACK of all below `ack`.
    #[cold]
    pub(super) fn end_of_backoff(&mut self, ack: u64) {
        let ends = match self.config.params.rto.rto_backoff_until {
            BackoffUntil::Sample | BackoffUntil::Ack => true,
            // Without timestamps there was no sample but for such a segment.
            BackoffUntil::SentOnce => {
                !self.config.params.rtt.timestamps
                    || self.config.plan.times_each
                    || self.rtt.is_timed_over(ack)
            }
        };
        if ends {
            self.rto.end_backoff();
        }
    }

    /// New data is acknowledged: what expires next is the first in a row.
    #[cold]
    pub(super) fn end_of_expiries(&mut self) {
        self.rto.end_expiries();
        if self.config.params.rto.rto_backoff_until == BackoffUntil::Ack {
            self.rto.end_backoff();
        }
    }

    /// Everything outstanding counts as lost and is sent again as the window allows. With RACK what
    /// went within the last round trip does not, but for the first segment (RFC 8985 § 6.3; Linux,
    /// `tcp_timeout_mark_lost`).
    pub(super) fn begin_loss_state(&mut self, now: Time) {
        self.recovery.begin_loss(self.seq.high());
        self.loss.forget_probe();
        self.loss.stop();
        self.seq.end_limited();
        self.rtt.on_retransmission();
        // What was lost again before now goes again with all else.
        self.sent.take_lost_again();
        if self.config.params.recovery.recovery == Recovery::Sack {
            // Departs from RFC 2018 § 8: what was SACKed is forgotten only if it is seen to be gone
            // (RFC 6675 § 5.1).
            let reneged = self.sent.reneged(self.seq.una());
            if reneged {
                self.sent.restart(self.seq.una());
            }
            let first = self.seq.una() + self.config.mss.min(self.seq.outstanding());
            let old = self.loss.old(&self.sent, now).filter(|_| !reneged);
            let mss = self.config.mss;
            let young = old.map(|(rtt, old)| Young { now, rtt, old: old.max(first), mss });
            let stays = young.is_some();
            self.sent.on_timeout(self.seq.una(), self.seq.high(), young);
            if stays {
                // The window lets the first segment go beside it (`tcp_enter_loss`).
                self.cc.add_in_flight(self.in_flight());
            }
        } else if self.marks_without_sack() {
            self.sent.on_ack(self.seq.una(), None);
            self.sent.on_timeout(self.seq.una(), self.seq.high(), None);
        } else {
            self.sent.note_lost(self.seq.outstanding());
            self.seq.go_back();
        }
    }

    /// The timeout of data now, backoff included.
    pub(super) fn rto(&self) -> Duration {
        match self.rtt.estimate() {
            None => self.rto_before_samples(),
            estimate => self.rto.timeout(&self.config.rto, estimate),
        }
    }

    /// The same without samples, perhaps after a SYN was lost (RFC 6298 § 5.7).
    // Apart: the counter lies in a cache line that few segments read.
    #[cold]
    #[inline(never)]
    fn rto_before_samples(&self) -> Duration {
        let policy = &self.config.rto;
        if self.counters.syn_timeouts == 0 {
            return self.rto.timeout(policy, None);
        }
        let initial = policy.initial.max(self.config.params.rto.rto_after_syn_loss);
        self.rto.before_samples(&RtoPolicy { initial, ..*policy })
    }

    /// That of a SYN.
    pub(super) fn syn_rto(&self) -> Duration {
        self.rto.before_samples(&self.config.syn_rto)
    }
}

/// Fewer segments outstanding are a thin stream (Linux, `tcp_stream_is_thin`).
const THIN_SEGMENTS: u64 = 4;
/// For so many expiries in a row its timeout stays (Linux, `TCP_THIN_LINEAR_RETRIES`).
const THIN_EXPIRIES: u32 = 6;
