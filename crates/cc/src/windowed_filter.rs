//! Least or largest of the values measured within a time window.

use std::collections::VecDeque;

use cwnd_quantity::{Duration, Time};

/// Recent measurements that may still be the best: only those that no newer one exceeds.
#[derive(Clone, Debug, Default)]
pub(crate) struct WindowedFilter<T> {
    samples: VecDeque<(Time, T)>,
}

impl<T: Copy> WindowedFilter<T> {
    /// Adds a value measured now and drops values older than `window`. `exceeds` returns `true` if
    /// its first argument makes the second useless.
    pub(crate) fn update(
        &mut self,
        now: Time,
        value: T,
        window: Duration,
        exceeds: impl Fn(T, T) -> bool,
    ) {
        while self.samples.back().is_some_and(|&(_, kept)| exceeds(value, kept)) {
            self.samples.pop_back();
        }
        self.samples.push_back((now, value));
        while self.samples.front().is_some_and(|&(at, _)| now.since(at) > window) {
            self.samples.pop_front();
        }
    }

    /// Returns the value that no other in the window exceeds, as of the last update; `None` before
    /// the first.
    pub(crate) fn best(&self) -> Option<T> {
        self.samples.front().map(|&(_, value)| value)
    }
}
