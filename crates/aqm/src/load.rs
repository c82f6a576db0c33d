//! Load factor of a link: demand divided by capacity, in successive intervals; and a router's
//! assumption about the capacity.
//!
//! Qazi, Andrew, Znati, *Congestion control using efficient explicit feedback*, 2009, § II-A eq. 1.
//! Xia, Subramanian, Stoica, Kalyanaraman, *One more bit is enough*, SIGCOMM 2005, § 3.2, have the
//! same with other numbers.

use cwnd_quantity::{Duration, Rate, Time};
use cwnd_schema::Schema;

use crate::qdisc::Backlog;

/// Parameters of the load-factor measurement.
#[derive(Clone, Debug, PartialEq, Schema)]
pub struct Params {
    /// t_p: duration of one measurement.
    #[default(
        Duration::from_millis(200),
        "BMCC § II-D.1: 200 ms; VCP (Xia et al. 2005): t_ρ, 200 ms"
    )]
    #[bounds(from Duration::from_micros(1); "it is a time in which packets arrive")]
    pub interval: Duration,
    /// γ: the load factor is 1 at this part of the capacity.
    #[default(1.0, "BMCC eq. 10: 1; VCP: 0.98, its program 0.95")]
    #[bounds(above 0.0, up_to 1.0; "it is a part of the capacity")]
    pub target: f64,
    /// Capacity that the router assumes for the link.
    #[flatten(Capacity::default())]
    pub capacity: Capacity,
    /// κ: part of the mean queue that counts as traffic.
    #[default(0.75, "BMCC § II-A: 0.75; VCP: 0.5")]
    #[bounds(from 0.0; "it is a part of the queue")]
    pub queue_weight: f64,
    /// Weight of one interval's queue in the mean queue.
    #[default(0.125, "BMCC § II-A: a time constant of 8 intervals; VCP's program: 0.25")]
    #[bounds(above 0.0, up_to 1.0; "it is a part of the difference")]
    pub queue_gain: f64,
    /// Number of samples of the queue length in an interval.
    #[default(20, "VCP's program: each 10 ms of 200 ms; BMCC leaves it open")]
    #[bounds(from 1, up_to 1000; "it counts looks")]
    pub queue_samples: u32,
}

/// Measurement of one link's load factor.
#[derive(Debug)]
pub struct LoadFactor {
    params: Params,
    /// λ: bytes that arrived in this interval.
    arrived: u64,
    /// Sum of the backlogs sampled in this interval, bytes.
    backlog_sum: u64,
    /// Samples of the backlog in this interval.
    samples_taken: u32,
    /// q_av, bytes.
    queue: f64,
    /// Bits that the link could carry in this interval until `since`.
    capacity: f64,
    /// Rate of the link from `since` on.
    rate: Rate,
    since: Time,
    /// Time at which the interval should have begun; timer calls may be late.
    due: Time,
    next: Time,
    factor: f64,
}

impl LoadFactor {
    /// Creates a measurement from time zero on; the load is 0 until the first interval is over, and
    /// the link's rate is 0 until [`LoadFactor::on_rate`].
    #[must_use]
    pub fn new(params: &Params) -> Self {
        let mut new = Self {
            params: params.clone(),
            arrived: 0,
            backlog_sum: 0,
            samples_taken: 0,
            queue: 0.0,
            capacity: 0.0,
            rate: Rate(0),
            since: Time::ZERO,
            due: Time::ZERO,
            next: Time::ZERO,
            factor: 0.0,
        };
        new.next = new.sample_time(1);
        new
    }

    /// Returns f of the last interval.
    #[must_use]
    pub const fn factor(&self) -> f64 {
        self.factor
    }

    /// Counts an arriving packet, whether or not the queue takes it.
    #[inline]
    pub fn arrives(&mut self, bytes: u32) {
        self.arrived += u64::from(bytes);
    }

    /// Sets the link's rate from now on.
    pub fn on_rate(&mut self, now: Time, rate: Rate) {
        self.advance_capacity(now);
        self.rate = rate;
    }

    /// Returns the time of the next [`LoadFactor::on_timer`].
    #[must_use]
    pub const fn next_timer(&self) -> Time {
        self.next
    }

    /// Samples the backlog; `true` if an interval is over and the factor is new.
    pub fn on_timer(&mut self, now: Time, backlog: Backlog) -> bool {
        self.backlog_sum = self.backlog_sum.saturating_add(backlog.bytes);
        self.samples_taken += 1;
        let interval = self.params.interval;
        let over = now >= self.due + interval;
        if over {
            self.end(now);
            // A late caller misses samples and intervals, but stays aligned to them.
            self.due = self.due + interval * (now.since(self.due).0 / interval.0);
        }
        let samples = u64::from(self.params.queue_samples);
        let passed = u128::from(now.since(self.due).0) * u128::from(samples);
        self.next = self.sample_time((passed / u128::from(interval.0)) as u64 + 1);
        while self.next <= now {
            self.next += Duration(1);
        }
        over
    }

    /// Returns the time of the `nth` sample in the interval.
    fn sample_time(&self, nth: u64) -> Time {
        let samples = u128::from(self.params.queue_samples);
        let after = u128::from(self.params.interval.0) * u128::from(nth) / samples;
        self.due + Duration(after as u64)
    }

    fn advance_capacity(&mut self, now: Time) {
        self.capacity += self.rate.0 as f64 * now.since(self.since).as_secs_f64();
        self.since = now;
    }

    /// Computes eq. 1, over the time that has actually passed.
    fn end(&mut self, now: Time) {
        self.advance_capacity(now);
        let mean = self.backlog_sum as f64 / f64::from(self.samples_taken);
        self.queue += self.params.queue_gain * (mean - self.queue);
        let bits = 8.0 * (self.arrived as f64 + self.params.queue_weight * self.queue);
        let capacity = self.params.target * self.capacity * self.params.capacity.assumed_capacity;
        // A link without capacity and without traffic has no load, rather than 0 / 0.
        self.factor = if bits > 0.0 { bits / capacity } else { 0.0 };
        (self.arrived, self.backlog_sum, self.samples_taken, self.capacity) = (0, 0, 0, 0.0);
    }
}

/// Capacity that a router assumes for its link.
#[derive(Clone, Debug, PartialEq, Schema)]
pub struct Capacity {
    /// The capacity that the router believes in, as a part of the link's.
    #[default(1.0, "none in the papers, whose routers know it: 1")]
    #[bounds(above 0.0; "a link of no capacity carries nothing")]
    #[was("believed")]
    pub assumed_capacity: f64,
}

impl Capacity {
    /// Returns the assumed capacity of a link of this rate, bytes per second; more than zero also
    /// if the link is down, as it is a divisor.
    pub(crate) fn of(&self, rate: Rate) -> f64 {
        self.assumed_capacity * (rate.0 as f64 / 8.0).max(1.0)
    }
}
