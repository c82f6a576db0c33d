//! RTT estimation for the retransmission timer (RFC 6298 § 2), and the RTT that a controller sees.

use cwnd_cc::RoundTrips;
use cwnd_quantity::Duration;
use cwnd_schema::Choice;

/// Arithmetic of the round-trip time estimator.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Choice)]
pub enum RttArithmetic {
    /// Exactly (RFC 6298 § 2).
    #[name("exact")]
    Exact,
    /// In integers: SRTT in eighths and RTTVAR in quarters of a tick of `clock`, each step cut off
    /// (Jacobson & Karels 1988, appendix A). RTTVAR then never falls below three quarters of a
    /// tick, or half a tick while every sample is one tick.
    #[name("ticks")]
    Ticks,
    /// In whole microseconds: RTTVAR is the largest mean deviation of a window of data, falls by a
    /// quarter of the difference a window, and four of it are `rto_variation_min` at least. A
    /// shorter round trip raises the deviation by an eighth of what a longer one would (Linux,
    /// `tcp_rtt_estimator`).
    #[name("linux")]
    WindowedDeviation,
}

/// Smoothed round-trip time and its variation (RFC 6298 § 2), and latest and minimum RTT of the
/// controller.
#[derive(Clone, Debug, Default)]
pub struct RttEstimator {
    estimate: Option<(Duration, Duration)>,
    view: ControllerView,
    integer: Option<Box<Integer>>,
}

/// Progress of a connection when an RTT sample was taken.
#[derive(Clone, Copy, Debug, Default)]
pub struct At {
    /// SND.UNA, with the ACK that gave the sample included.
    pub una: u64,
    /// SND.MAX.
    pub sent: u64,
}

/// Minimum and latest RTT that a controller sees; they may differ from the timer's samples.
#[derive(Clone, Copy, Debug)]
pub struct ControllerView {
    /// Minimum sample; `Duration::MAX` before the first.
    min: Duration,
    /// Latest sample.
    last: Duration,
}

impl Default for ControllerView {
    fn default() -> Self {
        Self { min: Duration::MAX, last: Duration::ZERO }
    }
}

/// State of integer arithmetic.
#[derive(Clone, Debug)]
enum Integer {
    Ticks(Ticks),
    Windowed(Windowed),
}

/// The estimate of [`RttEstimator::windowed_deviation`], in microseconds.
#[derive(Clone, Debug)]
struct Windowed {
    /// RTTVAR is never below a quarter of this (`tcp_rto_min`).
    floor: u64,
    /// SRTT in eighths (`srtt_us`).
    eighths: u64,
    /// The mean deviation in quarters (`mdev_us`).
    mdev: u64,
    /// Maximum mean deviation of the window, at least the floor (`mdev_max_us`).
    mdev_max: u64,
    /// RTTVAR in quarters (`rttvar_us`).
    rttvar: u64,
    /// The window is over once more than this is acknowledged (`rtt_seq`).
    until: u64,
}

/// The estimate of [`RttEstimator::in_ticks`].
#[derive(Clone, Debug)]
struct Ticks {
    tick: Duration,
    /// SRTT in eighths of a tick.
    eighths: u64,
    /// RTTVAR in quarters of a tick.
    quarters: u64,
}

impl RoundTrips for RttEstimator {
    fn srtt(&self) -> Option<Duration> {
        self.srtt()
    }
    fn min_rtt(&self) -> Option<Duration> {
        self.min()
    }
    fn rtt(&self) -> Option<Duration> {
        self.last()
    }
}

impl RttEstimator {
    /// Creates an estimator in ticks, as in Jacobson & Karels 1988, appendix A; in exact arithmetic
    /// if `tick` is zero.
    #[must_use]
    pub fn in_ticks(tick: Duration) -> Self {
        let ticks = || Box::new(Integer::Ticks(Ticks { tick, eighths: 0, quarters: 0 }));
        Self { integer: (tick > Duration::ZERO).then(ticks), ..Self::default() }
    }

    /// Creates an estimator with Linux's arithmetic (tcp_input.c, `tcp_rtt_estimator`): 4 RTTVAR
    /// are at least `floor`.
    #[must_use]
    pub fn windowed_deviation(floor: Duration) -> Self {
        let floor = floor.0 / MICROSECOND;
        let windowed = Windowed { floor, eighths: 0, mdev: 0, mdev_max: 0, rttvar: 0, until: 0 };
        Self { integer: Some(Box::new(Integer::Windowed(windowed))), ..Self::default() }
    }

    /// Returns SRTT and RTTVAR; `None` before the first sample. In ticks SRTT is cut off to whole
    /// ticks, and with Linux's arithmetic to whole microseconds.
    #[inline]
    pub const fn estimate(&self) -> Option<(Duration, Duration)> {
        self.estimate
    }

    /// Returns SRTT; `None` before the first sample. In ticks it keeps its eighths of a tick,
    /// unlike that of [`RttEstimator::estimate`].
    #[inline]
    pub fn srtt(&self) -> Option<Duration> {
        let (srtt, _) = self.estimate?;
        match self.integer.as_deref() {
            Some(Integer::Ticks(ticks)) => Some(Duration(ticks.eighths * ticks.tick.0 / 8)),
            Some(Integer::Windowed(_)) | None => Some(srtt),
        }
    }

    /// Returns the minimum RTT that the controller saw; `None` before the first.
    #[inline]
    pub fn min(&self) -> Option<Duration> {
        (self.view.min != Duration::MAX).then_some(self.view.min)
    }

    /// Returns the latest RTT that the controller saw; `None` before the first.
    #[inline]
    pub fn last(&self) -> Option<Duration> {
        (self.view.min != Duration::MAX).then_some(self.view.last)
    }

    /// Returns the RTT that a controller sees, for a later [`RttEstimator::set_controller_view`].
    pub const fn controller_view(&self) -> ControllerView {
        self.view
    }

    /// Restores the RTT that a controller sees.
    pub const fn set_controller_view(&mut self, seen: ControllerView) {
        self.view = seen;
    }

    /// Adds a sample for the controller alone.
    #[inline]
    pub fn add_controller_sample(&mut self, r: Duration) {
        self.view = ControllerView { min: self.view.min.min(r), last: r };
    }

    /// Adds a sample R for the timer and the controller, with the connection's progress `at`.
    ///
    /// Departs from RFC 7323 § 4.2, by which samples weigh less if a round trip gives many: with
    /// timestamps each ACK counts in full (as in Linux and FreeBSD), so that the estimate forgets
    /// within a round trip.
    #[inline]
    pub fn sample(&mut self, r: Duration, at: At) {
        self.add_controller_sample(r);
        if let Some(integer) = &mut self.integer {
            self.estimate = Some(integer.sample(r, at, self.estimate.is_none()));
            return;
        }
        self.estimate = Some(match self.estimate {
            // (2.2) SRTT ← R, RTTVAR ← R/2
            None => (r, r / 2),
            // (2.3) RTTVAR ← ¾·RTTVAR + ¼·|SRTT − R|, then SRTT ← ⅞·SRTT + ⅛·R
            Some((srtt, rttvar)) => {
                let deviation = srtt.0.abs_diff(r.0);
                (Duration((srtt.0 * 7 + r.0) / 8), Duration((rttvar.0 * 3 + deviation) / 4))
            }
        });
    }
}

impl Integer {
    /// Adds a sample. Returns SRTT and RTTVAR.
    #[inline(never)]
    fn sample(&mut self, r: Duration, at: At, first: bool) -> (Duration, Duration) {
        match self {
            Self::Ticks(ticks) => ticks.sample(r, first),
            Self::Windowed(windowed) => windowed.sample(r, at, first),
        }
    }
}

impl Windowed {
    /// Adds a sample as in tcp_input.c, `tcp_rtt_estimator`: RTTVAR is the largest deviation of a
    /// window of data, and falls by a quarter of the difference at the end of one without any as
    /// large. Returns SRTT and RTTVAR.
    fn sample(&mut self, r: Duration, at: At, first: bool) -> (Duration, Duration) {
        let m = r.0 / MICROSECOND;
        if first {
            (self.eighths, self.mdev) = (8 * m, 2 * m);
            self.rttvar = self.mdev.max(self.floor);
            self.mdev_max = self.rttvar;
            self.until = at.sent;
        } else {
            let mean = self.eighths / 8;
            let (error, quarter) = (m.abs_diff(mean), self.mdev / 4);
            self.eighths = self.eighths + m - mean;
            self.mdev = match error.checked_sub(quarter) {
                // A shorter RTT raises the deviation by an eighth of what a longer one would.
                Some(more) if m < mean => self.mdev + more / 8,
                Some(more) => self.mdev + more,
                None => self.mdev - (quarter - error),
            };
            if self.mdev > self.mdev_max {
                self.mdev_max = self.mdev;
                self.rttvar = self.rttvar.max(self.mdev_max);
            }
            if at.una > self.until {
                self.rttvar -= self.rttvar.saturating_sub(self.mdev_max) / 4;
                self.until = at.sent;
                self.mdev_max = self.floor;
            }
        }
        self.eighths = self.eighths.max(1);
        // A quarter of a microsecond is whole nanoseconds.
        (Duration(self.eighths / 8 * MICROSECOND), Duration(self.rttvar * (MICROSECOND / 4)))
    }
}

impl Ticks {
    /// Adds a sample as in Jacobson & Karels 1988, appendix A: sa += m − ⌊sa/8⌋, sv += |m − ⌊sa/8⌋|
    /// − ⌊sv/4⌋, neither below one; m is at least one tick. Returns SRTT and RTTVAR.
    fn sample(&mut self, r: Duration, first: bool) -> (Duration, Duration) {
        let m = (r.0 / self.tick.0).max(1);
        if first {
            (self.eighths, self.quarters) = (8 * m, 2 * m);
        } else {
            let mean = self.eighths / 8;
            self.eighths = (self.eighths + m - mean).max(1);
            self.quarters = (self.quarters + m.abs_diff(mean) - self.quarters / 4).max(1);
        }
        let tick = self.tick.0;
        (Duration(self.eighths / 8 * tick), Duration((self.quarters * tick).div_ceil(4)))
    }
}

const MICROSECOND: u64 = 1000;

#[cfg(test)]
mod tests {
    use super::*;

    const ANY: At = At { una: 0, sent: 0 };

    #[test]
    fn samples_are_smoothed_as_rfc_6298_says() {
        let ms = Duration::from_millis;
        let mut rtt = RttEstimator::default();
        rtt.sample(ms(100), ANY);
        assert_eq!(rtt.estimate(), Some((ms(100), ms(50))));
        rtt.sample(ms(180), ANY);
        // RTTVAR = ¾·50 + ¼·80 = 57.5; SRTT = ⅞·100 + ⅛·180 = 110
        assert_eq!(rtt.estimate(), Some((ms(110), Duration::from_micros(57_500))));
        assert_eq!(rtt.min(), Some(ms(100)));
    }

    #[test]
    fn in_ticks_the_variation_never_falls_below_three_quarters_of_a_tick() {
        let ms = Duration::from_millis;
        let mut rtt = RttEstimator::in_ticks(ms(100));
        // sa = 16, sv = 4; then m − ⌊16/8⌋ = 1: sa = 17, sv = 4 + 1 − 1 = 4. From there m = 2 each
        // time: sv = 3 and stays.
        rtt.sample(ms(200), ANY);
        assert_eq!(rtt.estimate(), Some((ms(200), ms(100))));
        rtt.sample(ms(300), ANY);
        assert_eq!(rtt.estimate(), Some((ms(200), ms(100))));
        assert_eq!(rtt.srtt(), Some(Duration::from_micros(212_500)));
        for _ in 0..100 {
            rtt.sample(ms(200), ANY);
        }
        assert_eq!(rtt.estimate(), Some((ms(200), ms(75))));
    }

    /// `tcp_rtt_estimator` by hand: a sample of 40 ms gives an mdev of 80 ms (four deviations), one
    /// of 100 ms adds 60 − 80 / 4 ms. With samples near SRTT RTTVAR then falls by a quarter of its
    /// excess, at the end of a window only.
    #[test]
    fn as_linux_counts_the_variation_falls_once_a_window() {
        let ms = Duration::from_millis;
        let mut rtt = RttEstimator::windowed_deviation(ms(20));
        let four = |rtt: &RttEstimator| rtt.estimate().unwrap().1 * 4;
        rtt.sample(ms(40), ANY);
        assert_eq!((rtt.srtt(), four(&rtt)), (Some(ms(40)), ms(80)));
        rtt.sample(ms(100), At { una: 1, sent: 10 });
        // mdev = 80 + (60 − 20) = 120.
        assert_eq!(four(&rtt), ms(120));
        for una in 2..=10 {
            rtt.sample(ms(47), At { una, sent: 20 });
            assert_eq!(four(&rtt), ms(120), "{una}");
        }
        rtt.sample(ms(47), At { una: 11, sent: 21 });
        assert!(four(&rtt) < ms(120) && four(&rtt) >= ms(95), "{}", four(&rtt));
    }
}
