//! Proportional rate reduction (RFC 6937, RFC 9937) and the rules of Linux, FreeBSD and ns-2.

use cwnd_schema::{Choice, Schema};

/// Specification that proportional rate reduction follows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Choice)]
pub enum PrrRule {
    /// RFC 6937: once no more than ssthresh is in flight, a segment more than was delivered
    /// (PRR-SSRB).
    #[name("rfc6937")]
    Rfc6937,
    /// RFC 9937: sends a segment more than was delivered only while recovery makes good progress
    /// (SafeACK). Data SACKed before the recovery is no part of RecoverFS.
    #[name("rfc9937")]
    Rfc9937,
    /// RFC 9937 as in Linux: in whole segments, in proportion to the window instead of the data in
    /// flight.
    #[name("linux")]
    WholeSegments,
    /// RFC 6937 as in FreeBSD: the share is rounded up to whole segments, and includes the fast
    /// retransmit.
    #[name("freebsd")]
    RoundedUp,
    /// Rate halving, as in ns-2's TCP-Linux: one segment for every two delivered until at most
    /// ssthresh is in flight, whatever the factor. Then the window limits.
    #[name("halving")]
    RateHalving,
}

/// Proportional rate reduction.
#[derive(Clone, Debug, PartialEq, Schema)]
pub struct Params {
    /// `true` if proportional rate reduction (RFC 6937) spreads the reduction over the recovery;
    /// needs `recovery` sack or newreno.
    #[default(false, "RFC 6937")]
    #[part("prr")]
    pub prr: bool,
    /// Specification that proportional rate reduction follows.
    #[default(PrrRule::Rfc6937, "RFC 6937; Linux has what became RFC 9937")]
    #[idle(!self.prr, "without the part `prr`")]
    #[part("prr")]
    pub prr_rule: PrrRule,
    /// Proportional rate reduction for ECN-echoes, too: with `prr` it spreads the reduction over a
    /// round trip, as Linux does (`TCP_CA_CWR`). Also without `prr`, a reduction that a controller
    /// makes by itself (quench, delay, load) then ends no recovery early, one for a quench sends no
    /// CWR, and with `grow_on_exit` an ECN-echo of the ACK that ends a recovery counts.
    #[default(false, "RFC 3168 § 6.1.2 reduces at once")]
    #[part("prr-on-ecn")]
    pub prr_on_ecn: bool,
}

/// Proportional rate reduction (RFC 6937 § 3, RFC 9937 § 6), in bytes.
#[derive(Clone, Copy, Debug)]
pub struct Prr {
    rule: PrrRule,
    /// Data that the reduction is in proportion to (RecoverFS).
    recover_fs: u64,
    delivered: u64,
    out: u64,
    /// Bytes that may still be sent in response to the last ACK (`SndCnt`).
    quota: u64,
    /// `true` if a fast retransmit starts the reduction; FreeBSD's rule clears it once that is
    /// counted.
    fast_retransmit: bool,
}

/// Facts of an ACK for proportional rate reduction.
#[derive(Clone, Copy, Debug)]
pub struct PrrAck {
    /// Bytes that the ACK reports delivered, cumulatively or by SACK (DeliveredData).
    pub delivered: u64,
    /// Bytes in flight.
    pub pipe: u64,
    /// `true` if the ACK advances and reports no further loss (RFC 9937 § 6, SafeACK).
    pub safe: bool,
}

impl Prr {
    /// Starts a reduction from `recover_fs` bytes, at least 1; the fast retransmit may be sent at
    /// once.
    pub const fn new(rule: PrrRule, recover_fs: u64, mss: u64) -> Self {
        Self {
            rule,
            recover_fs: if recover_fs == 0 { 1 } else { recover_fs },
            delivered: 0,
            out: 0,
            quota: mss,
            fast_retransmit: true,
        }
    }

    /// Starts a reduction without losses. The first quota is a segment; under Linux's rule it is
    /// `room`, the bytes that the window before the reduction leaves.
    pub const fn without_loss(rule: PrrRule, recover_fs: u64, mss: u64, room: u64) -> Self {
        let mut prr = Self::new(rule, recover_fs, mss);
        prr.fast_retransmit = false;
        if matches!(rule, PrrRule::WholeSegments) {
            // The quota stays until an ACK delivers something (`tcp_cwnd_reduction`).
            prr.quota = room;
        }
        prr
    }

    /// Updates the quota after an ACK that reports deliveries.
    pub fn on_ack(&mut self, ack: PrrAck, ssthresh: u64, mss: u64) {
        let PrrAck { delivered, pipe, safe } = ack;
        self.delivered += delivered;
        if self.rule == PrrRule::RateHalving {
            // tcp-linux.cc, send_much: one segment for the first ACK and for every second after it,
            // or all that fits.
            let half = self.delivered.div_ceil(2 * mss) * mss;
            self.quota = half.saturating_sub(self.out).max(ssthresh.saturating_sub(pipe));
            return;
        }
        if self.rule == PrrRule::RoundedUp {
            self.quota = self.rounded_up(ack, ssthresh, mss);
            return;
        }
        let in_segments = self.rule == PrrRule::WholeSegments;
        let rfc9937 = self.rule == PrrRule::Rfc9937;
        if rfc9937 && self.fast_retransmit && self.delivered == delivered {
            // RFC 9937 § 6: data that the first ACK delivers is part of RecoverFS.
            self.recover_fs += delivered;
        }
        self.quota = if pipe > ssthresh {
            // CEIL(prr_delivered · ssthresh / RecoverFS) − prr_out. Linux counts segments
            // (tcp_input.c, `tcp_cwnd_reduction`): the ceiling is one of segments.
            let unit = if in_segments { mss } else { 1 };
            let allowed = share(self.delivered, ssthresh, self.recover_fs.saturating_mul(unit));
            allowed.saturating_mul(unit).saturating_sub(self.out)
        } else {
            // PRR-SSRB; without the additional segment it is PRR-CRB.
            let more = if safe || !(in_segments || rfc9937) { mss } else { 0 };
            let limit = self.delivered.saturating_sub(self.out).max(delivered) + more;
            limit.min(ssthresh - pipe)
        };
        if in_segments && self.out == 0 || rfc9937 && self.out == 0 && self.quota == 0 {
            // RFC 9937 § 6: the fast retransmit may be sent even if the sums allow nothing.
            self.quota = self.quota.max(mss);
        }
    }

    /// Quota by FreeBSD's tcp_input.c, `tcp_do_prr_ack`: `snd_cnt` in whole segments. The ACK that
    /// starts a recovery counts as a segment and sends the fast retransmit (`tcp_do_segment`:
    /// `prr_delivered = maxseg`).
    ///
    /// Departs from it: a SACK that splits a hole, which is FreeBSD's sign of further loss
    /// (`SACK_NEWLOSS`), adds the segment, too.
    fn rounded_up(&mut self, ack: PrrAck, ssthresh: u64, mss: u64) -> u64 {
        if core::mem::replace(&mut self.fast_retransmit, false) {
            self.delivered = mss;
            return mss;
        }
        let bytes = if ack.pipe >= ssthresh {
            let share = share(self.delivered, ssthresh, self.recover_fs);
            // A rest below a segment counts as one.
            share.saturating_sub(self.out).div_ceil(mss).saturating_mul(mss)
        } else {
            let limit = self.delivered.saturating_sub(self.out).max(ack.delivered) + mss;
            limit.min(ssthresh - ack.pipe)
        };
        bytes / mss * mss
    }

    /// `true` once anything was sent, the fast retransmit included.
    pub const fn has_sent(&self) -> bool {
        self.out > 0
    }

    /// Bytes that may be sent now.
    pub const fn quota(&self) -> u64 {
        self.quota
    }

    /// `true` if a segment of `len` bytes may be sent now.
    pub const fn allows(&self, len: u64) -> bool {
        self.quota >= len
    }

    /// Raises the quota by `bytes`, for an event that [`Prr::on_ack`] does not count.
    pub const fn allow_more(&mut self, bytes: u64) {
        self.quota = self.quota.saturating_add(bytes);
    }

    /// Counts `len` bytes that were sent.
    pub const fn on_sent(&mut self, len: u64) {
        self.out += len;
        self.quota = self.quota.saturating_sub(len);
    }
}

/// Share of the reduced window, ⌈delivered · ssthresh / recover_fs⌉, in 64 bits where they hold the
/// product.
fn share(delivered: u64, ssthresh: u64, recover_fs: u64) -> u64 {
    match delivered.checked_mul(ssthresh) {
        Some(product) => product.div_ceil(recover_fs),
        None => {
            let product = u128::from(delivered) * u128::from(ssthresh);
            u64::try_from(product.div_ceil(u128::from(recover_fs))).unwrap_or(u64::MAX)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// By hand: from 20 segments to 16, none lost. A segment is sent for the ACKs 1, 3, 5 and 7, so
    /// that the pipe shrinks by one for two ACKs. With the eighth ACK 16 are left, and from then on
    /// a segment is sent for each.
    #[test]
    fn rate_halving_sends_for_every_second_ack_until_it_is_down() {
        let (mss, ssthresh) = (1000, 16_000);
        let mut prr = Prr::new(PrrRule::RateHalving, 20 * mss, mss);
        let mut pipe = 20 * mss;
        let mut went = Vec::new();
        for number in 1..=12 {
            pipe -= mss;
            prr.on_ack(PrrAck { delivered: mss, pipe, safe: true }, ssthresh, mss);
            while prr.allows(mss) {
                prr.on_sent(mss);
                pipe += mss;
                went.push(number);
            }
        }
        assert_eq!(went, [1, 3, 5, 7, 9, 10, 11, 12]);
        assert_eq!(pipe, ssthresh);
    }

    /// A window of 20 segments of which one is lost, ssthresh 10 (RFC 6937 § 3.1, first example):
    /// while more than ssthresh is in flight one segment goes out for every two delivered, and then
    /// flight settles at ssthresh.
    #[test]
    fn one_segment_goes_out_for_every_two_delivered() {
        let (mss, ssthresh) = (1000, 10_000);
        let mut prr = Prr::new(PrrRule::Rfc6937, 20 * mss, mss);
        assert!(prr.allows(mss), "the fast retransmit");
        prr.on_sent(mss);
        let mut out = 1u64;
        // 20 outstanding − 1 lost − 3 SACKed + 1 retransmitted.
        let mut pipe = 17 * mss;
        for delivered in 1..=16u64 {
            pipe -= mss;
            let above = pipe > ssthresh;
            prr.on_ack(PrrAck { delivered: mss, pipe, safe: true }, ssthresh, mss);
            while prr.allows(mss) {
                prr.on_sent(mss);
                pipe += mss;
                out += 1;
            }
            if above {
                assert_eq!(
                    out,
                    (delivered / 2).max(1),
                    "after {delivered} delivered, whole segments"
                );
            }
        }
        assert_eq!(pipe, ssthresh);
    }

    /// RFC 9937 § 6 by hand: 20 segments outstanding, 3 of them SACKed, the last by the ACK that
    /// begins the recovery: RecoverFS is 18. One more segment is allowed only after a SafeACK, and
    /// one at first, the fast retransmit, if the sums allow nothing.
    #[test]
    fn rfc_9937_leaves_out_what_was_sacked_before() {
        let mss = 1000;
        let mut prr = Prr::new(PrrRule::Rfc9937, 17 * mss, mss);
        let ack = |pipe, safe| PrrAck { delivered: mss, pipe: pipe * mss, safe };
        prr.on_ack(ack(16, false), 9 * mss, mss);
        assert_eq!(prr.quota(), mss / 2, "CEIL(1000 · 9000 / 18000)");
        prr.on_ack(ack(15, false), 9 * mss, mss);
        assert_eq!(prr.quota(), mss);
        prr.on_sent(mss);
        for (safe, quota) in [(false, 2 * mss), (true, 3 * mss)] {
            let mut prr = prr;
            prr.on_ack(ack(4, safe), 9 * mss, mss);
            assert_eq!(prr.quota(), quota, "{safe}");
        }
        let mut late = Prr::new(PrrRule::Rfc9937, 3 * mss, mss);
        late.on_ack(PrrAck { delivered: 0, pipe: 3 * mss, safe: false }, 2 * mss, mss);
        assert_eq!(late.quota(), mss, "nothing went and nothing may: the fast retransmit");
    }

    /// tcp_cwnd_reduction by hand: ssthresh 7 of a window of 10. CEIL(7 n / 10) − out is 1 for the
    /// ACKs of segments 1, 2, 3, 5, 6, 8 and 9, and 0 for the others.
    #[test]
    fn linux_rounds_the_share_up_to_whole_segments() {
        let mss = 1000;
        let mut prr = Prr::new(PrrRule::WholeSegments, 10 * mss, mss);
        let sent: Vec<u64> = (1..=10)
            .map(|_| {
                prr.on_ack(PrrAck { delivered: mss, pipe: 9 * mss, safe: true }, 7 * mss, mss);
                let mut n = 0;
                while prr.allows(mss) {
                    prr.on_sent(mss);
                    n += 1;
                }
                n
            })
            .collect();
        assert_eq!(sent, [1, 1, 1, 0, 1, 1, 0, 1, 1, 0]);
    }

    /// tcp_do_prr_ack by hand: ssthresh 5 of 10 outstanding. The fast retransmit is the first of
    /// CEIL(n / 2), so every second ACK after it sends a segment, the second of them first.
    #[test]
    fn freebsd_counts_the_fast_retransmit_and_rounds_up() {
        let mss = 1000;
        let mut prr = Prr::new(PrrRule::RoundedUp, 10 * mss, mss);
        let sent: Vec<u64> = (0..9)
            .map(|_| {
                prr.on_ack(PrrAck { delivered: mss, pipe: 9 * mss, safe: true }, 5 * mss, mss);
                let n = prr.quota() / mss;
                (0..n).for_each(|_| prr.on_sent(mss));
                n
            })
            .collect();
        assert_eq!(sent, [1, 0, 1, 0, 1, 0, 1, 0, 1]);
        // A share of 1500 B is two segments; without a loss the first ACK counts, too.
        let mut prr = Prr::without_loss(PrrRule::RoundedUp, 10 * mss, mss, 0);
        prr.on_ack(PrrAck { delivered: 2 * mss, pipe: 9 * mss, safe: true }, 7500, mss);
        assert_eq!(prr.quota(), 2 * mss);
        // Below the threshold a segment more than was delivered, in whole segments.
        let mut prr = Prr::without_loss(PrrRule::RoundedUp, 10 * mss, mss, 0);
        prr.on_ack(PrrAck { delivered: mss, pipe: 2 * mss, safe: false }, 4500, mss);
        assert_eq!(prr.quota(), 2 * mss);
    }

    #[test]
    fn linux_sends_a_segment_more_than_was_delivered_only_after_a_safe_ack() {
        let mss = 1000;
        for (safe, segments) in [(true, 3), (false, 2)] {
            let mut prr = Prr::new(PrrRule::WholeSegments, 20 * mss, mss);
            prr.on_sent(mss);
            prr.on_ack(PrrAck { delivered: 2 * mss, pipe: 4 * mss, safe }, 10 * mss, mss);
            assert!(prr.allows(segments * mss), "{safe}");
            assert!(!prr.allows(segments * mss + 1), "{safe}");
        }
    }
}
