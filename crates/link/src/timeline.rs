use cwnd_quantity::{Duration, Time};

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
