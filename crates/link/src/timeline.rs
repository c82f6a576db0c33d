//! Changes over time: steps of a value, and the slots of a trace.

use cwnd_quantity::{Duration, Rate, Time};

/// Values that take effect at given times, once or periodically.
#[derive(Debug)]
pub struct Timeline<T> {
    /// Steps in order of time, all within the period.
    steps: Vec<(Time, T)>,
    period: Option<Duration>,
    /// Number of steps taken in the current period.
    taken: usize,
    /// Start of the current period.
    period_start: Time,
}

impl<T: Copy> Timeline<T> {
    /// Creates a timeline of which no step is taken.
    #[must_use]
    pub fn new(steps: Vec<(Time, T)>, period: Option<Duration>) -> Self {
        Self { steps, period, taken: 0, period_start: Time::ZERO }
    }

    /// Time of the next step; `None` without steps, and after the last one without a period.
    #[inline]
    #[must_use]
    pub fn next(&self) -> Option<Time> {
        if let Some((at, _)) = self.steps.get(self.taken) {
            return Some(self.period_start + at.since(Time::ZERO));
        }
        let (first, _) = self.steps.first()?;
        Some(self.period_start + self.period? + first.since(Time::ZERO))
    }

    /// Takes the next step and returns its value; `None` if no step is left.
    pub fn take(&mut self) -> Option<T> {
        if self.taken == self.steps.len() {
            self.period_start += self.period?;
            self.taken = 0;
        }
        let (_, value) = *self.steps.get(self.taken)?;
        self.taken += 1;
        Some(value)
    }

    /// Takes all steps up to `now`; returns the value of the last one, or `None` without any.
    #[cold]
    pub(crate) fn catch_up(&mut self, now: Time) -> Option<T> {
        let mut value = None;
        if let Some(period) = self.period
            && now.since(self.period_start) >= period
        {
            let passed = now.since(self.period_start).0;
            self.period_start += Duration(passed - passed % period.0);
            self.taken = 0;
            value = self.steps.last().map(|(_, last)| *last);
        }
        while self.next().is_some_and(|at| at <= now) {
            value = self.take();
        }
        value
    }
}

/// A mahimahi trace: 1500 bytes may pass at each listed millisecond; the trace repeats after its
/// last entry.
#[derive(Clone, Debug)]
pub struct Slots {
    /// Slot times in milliseconds: sorted, not empty. The last one is above zero and is the period.
    at_ms: Vec<u64>,
    /// Number of the next slot, counted over all repetitions.
    next: u64,
    /// Unused bytes of the current slot.
    remaining: u32,
}

/// Bytes of one slot, the packet that one line of a trace stands for (mm-link(1)).
pub const SLOT_BYTES: u32 = 1500;
const NS_PER_MS: u64 = 1_000_000;

impl Slots {
    /// Creates the slots of a trace, from its beginning.
    pub const fn new(at_ms: Vec<u64>) -> Self {
        Self { at_ms, next: 0, remaining: 0 }
    }

    fn period_ms(&self) -> u64 {
        self.at_ms.last().copied().unwrap_or(1).max(1)
    }

    /// Time of slot number `n`.
    fn time_of(&self, n: u64) -> Time {
        let per_period = self.at_ms.len() as u64;
        let ms = (n / per_period) * self.period_ms() + self.at_ms[(n % per_period) as usize];
        Time(ms.saturating_mul(NS_PER_MS))
    }

    /// Makes the first unused slot at or after `now` the current one and returns its time; earlier
    /// slots are lost.
    pub fn at_or_after(&mut self, now: Time) -> Time {
        let per_period = self.at_ms.len() as u64;
        let ms = now.0.div_ceil(NS_PER_MS);
        let periods = ms / self.period_ms();
        // The last slot of a period falls on the period's end, so the search starts one period
        // earlier.
        let from = periods.saturating_sub(1) * per_period;
        let mut n = from.max(self.next);
        while self.time_of(n) < now {
            n += 1;
        }
        self.use_slot(n)
    }

    /// Makes the next slot the current one and returns its time, which may be the same instant.
    pub fn after(&mut self) -> Time {
        self.use_slot(self.next)
    }

    const fn start(&mut self) {
        self.remaining = SLOT_BYTES;
    }

    fn use_slot(&mut self, n: u64) -> Time {
        self.next = n + 1;
        self.start();
        self.time_of(n)
    }

    /// Bytes that may still pass in the current slot.
    pub const fn remaining(&self) -> u32 {
        self.remaining
    }

    /// Takes up to `bytes` from the current slot; returns the number taken.
    pub fn take(&mut self, bytes: u32) -> u32 {
        let taken = bytes.min(self.remaining);
        self.remaining -= taken;
        taken
    }

    /// Discards the rest of the current slot, as no packet waits.
    pub const fn discard(&mut self) {
        self.remaining = 0;
    }

    /// Number of slots before `t`.
    fn before(&self, t: Time) -> u64 {
        let ms = t.0.div_ceil(NS_PER_MS);
        let (periods, rest) = (ms / self.period_ms(), ms % self.period_ms());
        let within = |ms: u64| self.at_ms.partition_point(|&at| at < ms) as u64;
        // The last slot of a period falls on the period's end: that of the previous period may lie
        // at `t` or later.
        match periods.checked_sub(1) {
            None => within(rest),
            Some(whole) => {
                whole * self.at_ms.len() as u64 + within(self.period_ms() + rest) + within(rest)
            }
        }
    }

    /// Bytes that may pass before `t`.
    pub fn bytes_before(&self, t: Time) -> u64 {
        self.before(t) * u64::from(SLOT_BYTES)
    }

    /// Mean rate between two instants in bits per second; `None` if no time lies between them.
    pub fn mean_bit_s_between(&self, from: Time, to: Time) -> Option<f64> {
        let slots = self.before(to) - self.before(from).min(self.before(to));
        let seconds = to.since(from).as_secs_f64();
        (seconds > 0.0).then(|| slots as f64 * f64::from(SLOT_BYTES) * 8.0 / seconds)
    }

    /// Mean rate of a whole period in bits per second.
    pub fn mean_bit_s(&self) -> f64 {
        self.at_ms.len() as f64 * f64::from(SLOT_BYTES) * 8.0 * 1000.0 / self.period_ms() as f64
    }

    /// Mean rate of a whole period, at least 1 bit/s.
    pub fn mean_rate(&self) -> Rate {
        Rate((self.mean_bit_s() as u64).max(1))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_trace_repeats_after_its_last_slot() {
        let mut slots = Slots::new(vec![2, 2, 5]);
        let ms = |t: Time| t.0 / NS_PER_MS;
        let times: Vec<u64> = (0..7).map(|_| ms(slots.after())).collect();
        assert_eq!(times, [2, 2, 5, 7, 7, 10, 12]);
        assert_eq!(slots.mean_bit_s(), 3.0 * 12_000.0 / 0.005);
    }

    #[test]
    fn the_mean_rate_of_a_part_of_a_trace_is_that_of_the_slots_in_it() {
        for at_ms in [vec![2, 2, 5], vec![0, 3], vec![1], vec![0, 0, 7, 7]] {
            let times: Vec<u64> = {
                let mut slots = Slots::new(at_ms.clone());
                (0..60).map(|_| slots.after().0).collect()
            };
            let slots = Slots::new(at_ms.clone());
            for from in (0..20_000_000).step_by(500_000) {
                let to = from + 7_500_000;
                let inside = times.iter().filter(|&&t| from <= t && t < to).count();
                let found = slots.mean_bit_s_between(Time(from), Time(to)).unwrap();
                let expected = inside as f64 * 12_000.0 / 0.0075;
                assert!((found - expected).abs() < 1e-6, "{at_ms:?} from {from}: {found}");
            }
        }
    }

    #[test]
    fn slots_that_nobody_waited_for_are_lost() {
        let mut slots = Slots::new(vec![2, 2, 5]);
        assert_eq!(slots.at_or_after(Time(5_000_001)), Time(7_000_000));
        assert_eq!(slots.at_or_after(Time(7_000_000)), Time(7_000_000), "the second of the two");
        assert_eq!(slots.at_or_after(Time(7_000_000)), Time(10_000_000));
        assert_eq!(slots.at_or_after(Time(1_000_000_000_000)), Time(1_000_000_000_000));
    }
}
