/// Proportional rate reduction (RFC 6937 § 3) with the slow-start reduction bound, in bytes.
#[derive(Clone, Copy, Debug)]
pub struct Prr {
    /// FlightSize at the start of recovery.
    recover_fs: u64,
    delivered: u64,
    out: u64,
    /// What may still be sent in response to the last ACK (`sndcnt`).
    quota: u64,
}

impl Prr {
    /// Recovery begins with `recover_fs` bytes outstanding; the fast retransmit itself may always go out.
    pub const fn new(recover_fs: u64, mss: u64) -> Self {
        Self {
            recover_fs: if recover_fs == 0 { 1 } else { recover_fs },
            delivered: 0,
            out: 0,
            quota: mss,
        }
    }

    /// An ACK reported `delivered` more bytes at the receiver.
    pub fn on_ack(&mut self, delivered: u64, pipe: u64, ssthresh: u64, mss: u64) {
        self.delivered += delivered;
        self.quota = if pipe > ssthresh {
            // Proportional rate reduction: CEIL(prr_delivered · ssthresh / RecoverFS) − prr_out
            let share = u128::from(self.delivered) * u128::from(ssthresh);
            let allowed = share.div_ceil(u128::from(self.recover_fs));
            u64::try_from(allowed).unwrap_or(u64::MAX).saturating_sub(self.out)
        } else {
            // PRR-SSRB
            let limit = self.delivered.saturating_sub(self.out).max(delivered) + mss;
            limit.min(ssthresh - pipe)
        };
    }

    /// Whether a segment of `len` bytes may go out now.
    pub const fn allows(&self, len: u64) -> bool {
        self.quota >= len
    }

    /// `len` bytes were sent.
    pub const fn on_sent(&mut self, len: u64) {
        self.out += len;
        self.quota = self.quota.saturating_sub(len);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A window of 20 segments of which one is lost, ssthresh 10 (RFC 6937 § 4's first example): while more than
    /// ssthresh is in flight one segment goes out for every two delivered, and then flight settles at ssthresh.
    #[test]
    fn one_segment_goes_out_for_every_two_delivered() {
        let (mss, ssthresh) = (1000, 10_000);
        let mut prr = Prr::new(20 * mss, mss);
        assert!(prr.allows(mss), "the fast retransmit");
        prr.on_sent(mss);
        let mut out = 1u64;
        // 20 outstanding − 1 lost − 3 SACKed + 1 retransmitted.
        let mut pipe = 17 * mss;
        for delivered in 1..=16u64 {
            pipe -= mss;
            let above = pipe > ssthresh;
            prr.on_ack(mss, pipe, ssthresh, mss);
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
}
