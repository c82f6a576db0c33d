//! ACK aggregation: data acknowledged ahead of the bandwidth estimate, as when several ACKs arrive
//! together (Linux 6.18, `bbr_update_ack_aggregation`).

use cwnd_quantity::{Duration, Time};

use crate::controller::RateSample;

/// Data delivered beyond what the bandwidth explains, bytes.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct AckAggregation {
    /// Largest excess in the current period of round trips, and in the one before.
    max_excess: [f64; 2],
    /// Round trips in the current period.
    rounds: u32,
    /// Start of the current measurement.
    since: Time,
    /// Bytes delivered since then.
    delivered: f64,
}

impl AckAggregation {
    /// Starts a new measurement.
    pub(super) const fn restart(&mut self, now: Time) {
        self.since = now;
        self.delivered = 0.0;
    }

    /// Takes the rate sample of an ACK; `begins` if a round trip begins, `bandwidth` in bytes per
    /// nanosecond. The excess is at most `cwnd`, bytes.
    pub(super) fn take(
        &mut self,
        now: Time,
        sample: &RateSample,
        begins: bool,
        bandwidth: f64,
        cwnd: f64,
    ) {
        if sample.newly_delivered == 0 || sample.interval.is_none() {
            return;
        }
        if begins {
            self.rounds += 1;
            if self.rounds >= PERIOD_ROUNDS {
                self.rounds = 0;
                self.max_excess = [0.0, self.max_excess[0]];
            }
        }
        let mut expected = bandwidth * now.since(self.since).0 as f64;
        if self.delivered - expected < MIN_EXCESS {
            self.restart(now);
            expected = 0.0;
        }
        self.delivered += sample.newly_delivered as f64;
        self.max_excess[0] = self.max_excess[0].max((self.delivered - expected).min(cwnd));
    }

    /// Returns the largest excess of the last five to ten round trips, at most what the bandwidth
    /// carries in 100 ms.
    pub(super) fn largest(&self, bandwidth: f64) -> f64 {
        self.max_excess[0].max(self.max_excess[1]).min(bandwidth * MAX_EXCESS_TIME.0 as f64)
    }
}

/// Excess, in bytes, below which a new measurement starts.
const MIN_EXCESS: f64 = 0.5;
/// Round trips in a period (`bbr_extra_acked_win_rtts`).
const PERIOD_ROUNDS: u32 = 5;
/// Upper bound of the excess, as a time at the bandwidth (`bbr_extra_acked_max_us`).
const MAX_EXCESS_TIME: Duration = Duration::from_millis(100);
