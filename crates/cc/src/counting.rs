//! Window growth by counting bytes acknowledged (RFC 3465) or ACKs (RFC 5681 § 3.1, eq. 3).

use cwnd_schema::Choice;

use crate::controller::{Start, Window};
use crate::slow_start::{Credit, Growth, GrowthRules};

/// Quantity that growth counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Choice)]
pub enum Increase {
    /// Bytes acknowledged: appropriate byte counting (RFC 3465).
    #[name("abc")]
    Abc,
    /// ACKs: one segment each in slow start, SMSS · SMSS / cwnd each above (4.4BSD, ns-2; RFC 5681
    /// eq. 3).
    #[name("per-ack")]
    PerAck,
    /// ACKs, as "per-ack", but each step is cut off to whole bytes, at least one (ns-3's
    /// tcp-congestion-ops.cc).
    #[name("per-ack-whole-bytes")]
    PerAckWholeBytes,
}

/// Growth of a window of whole bytes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Counting {
    /// Growth that an ACK gives in slow start.
    pub(crate) credit: Credit,
    /// Bytes that the window never exceeds.
    pub(crate) max_window: u64,
    /// `true` if each step of growth is cut off to bytes.
    whole_bytes: bool,
    keep_count: bool,
}

impl Counting {
    pub(crate) fn new(
        increase: Increase,
        keep_count: bool,
        growing: &GrowthRules,
        start: &Start,
    ) -> Self {
        Self {
            credit: match increase {
                Increase::Abc => Credit::bytes(growing),
                Increase::PerAck | Increase::PerAckWholeBytes => Credit::Ack,
            },
            max_window: start.max_window(),
            whole_bytes: increase == Increase::PerAckWholeBytes,
            keep_count: keep_count && increase == Increase::Abc,
        }
    }

    /// Grows a window in slow start, by bytes no further than its threshold; returns the bytes left
    /// for congestion avoidance once that is reached. At an exit the threshold becomes the window.
    #[inline]
    pub(crate) fn in_slow_start(&self, window: &mut Window, growth: Growth) -> u64 {
        if growth.exit {
            window.ssthresh = window.cwnd;
            return growth.bytes;
        }
        let step = match self.credit {
            Credit::Bytes { .. } => growth.bytes.min(window.ssthresh - window.cwnd),
            // 4.4BSD and ns-2 step over the threshold by up to a segment.
            Credit::Ack => growth.bytes,
        };
        window.grow(step, self.max_window);
        growth.bytes - step
    }

    /// Grows a window in congestion avoidance by one segment for each window of data acknowledged.
    ///
    /// `carry` counts bytes acknowledged since the window last grew, or by ACKs the remainder of
    /// the division by the window.
    #[inline]
    pub(crate) fn in_avoidance(&self, window: &mut Window, carry: &mut u64, mss: u32, acked: u64) {
        let mss = u64::from(mss);
        let step = match self.credit {
            // RFC 3465 § 2.1: at most one segment a round trip.
            Credit::Bytes { .. } => {
                *carry += acked;
                let full = *carry >= window.cwnd;
                *carry -= if full { window.cwnd } else { 0 };
                if full { mss } else { 0 }
            }
            // RFC 5681 eq. 3, as it stands.
            Credit::Ack if self.whole_bytes => (mss * mss / window.cwnd).max(1),
            // RFC 5681 eq. 3. Its "at least one byte" is not needed: the remainder is carried.
            Credit::Ack => {
                *carry += mss * mss;
                let step = *carry / window.cwnd;
                *carry -= step * window.cwnd;
                step
            }
        };
        window.grow(step, self.max_window);
    }

    /// Returns what stays of the count where slow start ends.
    pub(crate) fn carry_after_slow_start(&self, carry: u64, cwnd: u64) -> u64 {
        // At most one window of what was counted for a larger one is left: the next ACK then adds
        // one segment (Linux, `tcp_cong_avoid_ai`).
        if self.keep_count { carry.min(cwnd) } else { 0 }
    }
}
