//! Retransmission timeout: bounds and backoff.
//!
//! TCP*(n): Mondal & Kuzmanovic, *Removing Exponential Backoff from TCP*, ACM CCR 38(5), 2008,
//! § 3.1.

use cwnd_quantity::{Divisor, Duration};
use cwnd_schema::Choice;

/// Growth of the timeout with each expiry in a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Choice)]
pub enum Backoff {
    /// Doubles with every expiry (RFC 6298 § 5.5).
    #[name("exponential")]
    Exponential,
    /// Stays the same for the first `rto_backoff_after` expiries in a row, then doubles: TCP*(n).
    #[name("after")]
    After,
    /// Doubles up to 1 s, or stays if it is longer, for the first `rto_backoff_after` expiries in a
    /// row, then doubles; while fewer than four segments are outstanding it stays for up to six of
    /// them: TCP*(n) as far as Linux lets a program set it (`cwnd-kernel`'s tcpstar).
    #[name("bounded")]
    Bounded,
    /// Never grows: TCP*(∞).
    #[name("off")]
    Off,
}

/// Retransmission timeout as a configuration axis: bounds and backoff.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RtoPolicy {
    /// Lower bound (RFC 6298 § 2.4).
    pub min: Duration,
    /// Timeout before the first RTT sample (RFC 6298 § 2.1).
    pub initial: Duration,
    /// Upper bound, backoff included (RFC 6298 § 2.5).
    pub max: Duration,
    /// Clock granularity G (RFC 6298 § 2), ns.
    pub granularity: Divisor,
    /// Least distance of the timeout from SRTT: G (RFC 6298 § 2.3) or more.
    pub variation_min: Duration,
    /// Time added to the timeout after backoff; not itself backed off. A first timeout without an
    /// estimate has none.
    pub slop: Duration,
    /// Shape of the backoff.
    pub backoff: Backoff,
    /// n of TCP*(n): expiries in a row before the timeout doubles. Used by [`Backoff::After`] and
    /// [`Backoff::Bounded`].
    pub backoff_after: u32,
    /// Expiries in a row after which the timeout stops growing, doubled or not; `None` is no bound.
    pub backoff_rounds: Option<u32>,
}

impl RtoPolicy {
    /// Returns the timeout before backoff: RTO = SRTT + max(G, 4·RTTVAR), with `variation_min` for
    /// G, rounded up to the clock's granularity and bounded (RFC 6298 § 2.2–2.5). `estimate` is
    /// (SRTT, RTTVAR).
    #[inline]
    #[must_use]
    pub fn base(&self, estimate: Option<(Duration, Duration)>) -> Duration {
        let raw = match estimate {
            None => self.initial,
            Some((srtt, rttvar)) => srtt + self.variation_min.max(rttvar * 4),
        };
        // Rounding up adds less than a tick. Most timeouts are the lower bound, so this check saves
        // most divisions.
        let tick = self.granularity.get();
        if raw + Duration(tick) <= self.min {
            return self.min.min(self.max);
        }
        let rounded_up = match self.granularity.divide(raw.0) {
            (_, 0) => raw.0,
            (_, beyond) => raw.0.saturating_add(tick - beyond),
        };
        Duration(rounded_up).max(self.min).min(self.max)
    }

    /// Returns a lower bound of all timeouts with this estimate, backed off or not. It needs no
    /// division.
    #[inline]
    #[must_use]
    pub fn lower_bound(&self, estimate: Option<(Duration, Duration)>) -> Duration {
        let base = estimate.map_or(self.initial, |(srtt, _)| srtt + self.variation_min);
        base.max(self.min).min(self.max)
    }

    /// Returns the timeout after `expired` expiries in a row. From base 1, exponential gives 1, 2,
    /// 4, 8, …; TCP*(n) gives n + 1 times 1 and then 2, 4, …; off gives 1 for ever. From base 0.3
    /// s, bounded with n of 2 or more gives 0.3, 0.6, 1 up to its n, then 2, 4, ….
    ///
    /// The paper's footnote 5 ends the doubling at seven expiries in a row, counted from the first.
    /// TCP*(6) then never doubles and is TCP*(∞) (§ 3.1); `backoff_rounds` is 6 for that.
    #[inline]
    #[must_use]
    pub fn timeout(&self, base: Duration, expired: u32) -> Duration {
        if expired == 0 {
            return base.min(self.max);
        }
        let counted = expired.min(self.backoff_rounds.unwrap_or(u32::MAX));
        let doublings = match self.backoff {
            Backoff::Exponential => counted,
            Backoff::After | Backoff::Bounded => counted.saturating_sub(self.backoff_after),
            Backoff::Off => 0,
        };
        // A factor past 2^63 takes every base beyond every maximum.
        let times = |doublings| 1u64.checked_shl(doublings).unwrap_or(u64::MAX);
        let before = match self.backoff {
            Backoff::Bounded => {
                (base * times(counted.min(self.backoff_after))).min(base.max(MIN_RTO_MAX))
            }
            Backoff::Exponential | Backoff::After | Backoff::Off => base,
        };
        (before * times(doublings)).min(self.max)
    }

    /// Returns the timeout to arm: from the estimator, backed off, plus the slop. A first timeout
    /// without an estimate has no slop (FreeBSD, `tcp_newtcpcb` and `TCPT_RANGESET`).
    #[inline]
    #[must_use]
    pub fn armed(&self, estimate: Option<(Duration, Duration)>, expired: u32) -> Duration {
        if expired > 0 {
            return self.armed_after(estimate, expired);
        }
        let timeout = self.base(estimate);
        if estimate.is_none() { timeout } else { (timeout + self.slop).min(self.max) }
    }

    #[cold]
    fn armed_after(&self, estimate: Option<(Duration, Duration)>, expired: u32) -> Duration {
        let timeout = self.timeout(self.base(estimate), expired);
        (timeout + self.slop).min(self.max)
    }
}

/// Least upper bound of timeouts that Linux lets a program set (`TCP_RTO_MAX_MS`, since 6.15).
pub const MIN_RTO_MAX: Duration = Duration::from_secs(1);

#[cfg(test)]
mod tests {
    use super::*;

    fn policy(backoff: Backoff, backoff_after: u32) -> RtoPolicy {
        RtoPolicy {
            min: Duration::from_secs(1),
            initial: Duration::from_secs(3),
            max: Duration::from_secs(64),
            granularity: Divisor::new(Duration::from_millis(10).0),
            variation_min: Duration::from_millis(10),
            slop: Duration::ZERO,
            backoff,
            backoff_after,
            backoff_rounds: None,
        }
    }

    fn timeouts(p: &RtoPolicy, rounds: u32) -> Vec<u64> {
        let seconds = |k| p.timeout(Duration::from_secs(1), k).as_nanos() / 1_000_000_000;
        (0..rounds).map(seconds).collect()
    }

    fn sequence(backoff: Backoff, n: u32) -> Vec<u64> {
        timeouts(&policy(backoff, n), 7)
    }

    /// The sequences of the TCP*(n) paper's Fig. 1.
    #[test]
    fn backoff_shapes_are_those_of_tcp_star() {
        assert_eq!(sequence(Backoff::Exponential, 0), [1, 2, 4, 8, 16, 32, 64]);
        assert_eq!(sequence(Backoff::After, 0), [1, 2, 4, 8, 16, 32, 64]);
        assert_eq!(sequence(Backoff::After, 1), [1, 1, 2, 4, 8, 16, 32]);
        assert_eq!(sequence(Backoff::After, 6), [1; 7]);
        assert_eq!(sequence(Backoff::Off, 0), [1; 7]);
    }

    /// The kernel's own timer with the bound that `tcpstar` sets at each expiry: the timeout or 1
    /// s, whichever is longer.
    #[test]
    fn a_bounded_timeout_doubles_up_to_a_second_and_then_waits_for_its_n() {
        let ms = Duration::from_millis;
        let bounded = |base, n| {
            let p = RtoPolicy { min: ms(200), ..policy(Backoff::Bounded, n) };
            [0, 1, 2, 3, 4, 5, 6, 7].map(|k| p.timeout(ms(base), k).as_nanos() / 1_000_000)
        };
        assert_eq!(bounded(240, 6), [240, 480, 960, 1000, 1000, 1000, 1000, 2000]);
        assert_eq!(bounded(240, 3), [240, 480, 960, 1000, 2000, 4000, 8000, 16_000]);
        assert_eq!(bounded(240, 1), [240, 480, 960, 1920, 3840, 7680, 15_360, 30_720]);
        assert_eq!(bounded(900, 2), [900, 1000, 1000, 2000, 4000, 8000, 16_000, 32_000]);
        assert_eq!(bounded(1500, 3), [1500, 1500, 1500, 1500, 3000, 6000, 12_000, 24_000]);
        assert_eq!(bounded(240, 0), [240, 480, 960, 1920, 3840, 7680, 15_360, 30_720]);
    }

    /// The paper's footnote 5, and § 3.1: "TCP*(6), which we call TCP*(∞)".
    #[test]
    fn the_timeout_grows_no_more_at_seven_expiries_in_a_row() {
        let star = |backoff, n| {
            let max = Duration::from_secs(10_000);
            let p = RtoPolicy { backoff_rounds: Some(6), max, ..policy(backoff, n) };
            timeouts(&p, 10)
        };
        assert_eq!(star(Backoff::Exponential, 0), [1, 2, 4, 8, 16, 32, 64, 64, 64, 64]);
        assert_eq!(star(Backoff::After, 0), star(Backoff::Exponential, 0));
        assert_eq!(star(Backoff::After, 1), [1, 1, 2, 4, 8, 16, 32, 32, 32, 32]);
        assert_eq!(star(Backoff::After, 5), [1, 1, 1, 1, 1, 1, 2, 2, 2, 2]);
        assert_eq!(star(Backoff::After, 6), star(Backoff::Off, 0));
    }

    #[test]
    fn a_timeout_is_bounded_below_and_above() {
        let p = policy(Backoff::Exponential, 0);
        assert_eq!(p.base(None), Duration::from_secs(3));
        let quick = Some((Duration::from_millis(10), Duration::from_millis(1)));
        assert_eq!(p.base(quick), Duration::from_secs(1));
        assert_eq!(p.timeout(Duration::from_secs(60), 40), Duration::from_secs(64));
        let slow = Some((Duration::from_millis(1205), Duration::from_millis(100)));
        assert_eq!(p.base(slow), Duration::from_millis(1610), "rounded up to the clock");
    }

    /// FreeBSD's TCPT_RANGESET by hand. The slop is added to 1 s · 2^k from the second SYN on, and
    /// to 60 ms · 2^k from the first timeout of data on.
    #[test]
    fn the_slop_is_not_backed_off() {
        let ms = Duration::from_millis;
        let granularity = Divisor::new(ms(1).0);
        let slop = ms(200);
        let initial = ms(1000);
        let p = RtoPolicy {
            min: ms(30),
            initial,
            slop,
            granularity,
            ..policy(Backoff::Exponential, 0)
        };
        let syns = [0, 1, 2, 3].map(|k| p.armed(None, k));
        assert_eq!(syns, [ms(1000), ms(2200), ms(4200), ms(8200)]);
        let data = [0, 1, 2, 20].map(|k| p.armed(Some((ms(20), ms(10))), k));
        assert_eq!(data, [ms(260), ms(320), ms(440), ms(64_000)]);
        assert_eq!(p.armed(Some((ms(1), ms(1))), 0), ms(230), "30 ms at least");
    }
}
