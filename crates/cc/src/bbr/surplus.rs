//! By how much ACKs are ahead of the bandwidth now and then, as where several come together (Linux 6.18, `bbr_update_ack_aggregation`).

use cwnd_quantity::{Duration, Time};

use crate::controller::RateSample;

/// What was delivered beyond what the bandwidth explains; bytes.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Surplus {
    /// The largest of these round trips and of those before them.
    most: [f64; 2],
    /// How many of these there were.
    rounds: u32,
    /// Since when it is counted, and what was delivered since.
    since: Time,
    delivered: f64,
}

impl Surplus {
    /// The count begins anew.
    pub(super) const fn restart(&mut self, now: Time) {
        self.since = now;
        self.delivered = 0.0;
    }

    /// An ACK came, while the bandwidth was so many bytes a nanosecond.
    pub(super) fn take(
        &mut self,
        now: Time,
        sample: &RateSample,
        begins: bool,
        bandwidth: f64,
        cwnd: f64,
    ) {
        if sample.newly == 0 || sample.interval.is_none() {
            return;
        }
        if begins {
            self.rounds += 1;
            if self.rounds >= ROUNDS {
                self.rounds = 0;
                self.most = [0.0, self.most[0]];
            }
        }
        let mut expected = bandwidth * now.since(self.since).0 as f64;
        if self.delivered - expected < AHEAD {
            self.restart(now);
            expected = 0.0;
        }
        self.delivered += sample.newly as f64;
        self.most[0] = self.most[0].max((self.delivered - expected).min(cwnd));
    }

    /// The largest of five to ten round trips, and no more than the bandwidth carries in 100 ms.
    pub(super) fn most(&self, bandwidth: f64) -> f64 {
        self.most[0].max(self.most[1]).min(bandwidth * LONGEST.0 as f64)
    }
}

/// What is ahead by less, in bytes, is not.
const AHEAD: f64 = 0.5;
/// `bbr_extra_acked_win_rtts`.
const ROUNDS: u32 = 5;
/// `bbr_extra_acked_max_us`.
const LONGEST: Duration = Duration::from_millis(100);
