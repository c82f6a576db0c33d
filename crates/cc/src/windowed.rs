//! The least or largest of what was measured within a time.

use std::collections::VecDeque;

use cwnd_quantity::{Duration, Time};

/// What was measured of late, as far as it may still count: only what nothing newer exceeds.
#[derive(Clone, Debug, Default)]
pub(crate) struct Windowed<T> {
    kept: VecDeque<(Time, T)>,
}

impl<T: Copy> Windowed<T> {
    /// A value that was measured now; what is older than `window` counts no more. `exceeds` says whether its first argument makes the
    /// second of no use.
    pub(crate) fn take(
        &mut self,
        now: Time,
        value: T,
        window: Duration,
        exceeds: impl Fn(T, T) -> bool,
    ) {
        while self.kept.back().is_some_and(|&(_, kept)| exceeds(value, kept)) {
            self.kept.pop_back();
        }
        self.kept.push_back((now, value));
        while self.kept.front().is_some_and(|&(at, _)| now.since(at) > window) {
            self.kept.pop_front();
        }
    }

    /// The one that nothing exceeds.
    pub(crate) fn best(&self) -> Option<T> {
        self.kept.front().map(|&(_, value)| value)
    }
}
