//! Clock of a run: CLOCK_MONOTONIC in nanoseconds.

use cwnd_quantity::Time;
use rustix::time::{ClockId, clock_gettime};

/// Time since the start of a run.
#[derive(Clone, Copy, Debug)]
pub struct Clock {
    start_ns: u64,
}

/// Returns CLOCK_MONOTONIC in nanoseconds.
pub fn monotonic_ns() -> u64 {
    let now = clock_gettime(ClockId::Monotonic);
    now.tv_sec.cast_unsigned() * 1_000_000_000 + now.tv_nsec.cast_unsigned()
}

impl Clock {
    /// Creates the clock of a run that starts at this instant.
    pub const fn starting_at(start_ns: u64) -> Self {
        Self { start_ns }
    }

    /// Returns the time since the start; zero before it.
    pub fn now(&self) -> Time {
        Time(monotonic_ns().saturating_sub(self.start_ns))
    }
}

/// Sleeps until an instant of CLOCK_MONOTONIC.
pub fn sleep_until(instant_ns: u64) {
    let left = instant_ns.saturating_sub(monotonic_ns());
    std::thread::sleep(core::time::Duration::from_nanos(left));
}
