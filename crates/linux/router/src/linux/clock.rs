use cwnd_quantity::Time;
use rustix::time::{ClockId, Timespec, clock_gettime};

/// Returns the time of the machine's monotonic clock.
#[must_use]
pub fn monotonic() -> Time {
    nanoseconds(clock_gettime(ClockId::Monotonic))
}

/// Returns the time of day since 1970, as used in captures.
#[must_use]
pub fn time_of_day() -> Time {
    nanoseconds(clock_gettime(ClockId::Realtime))
}

/// Returns the processor time used by the calling thread.
pub fn thread_time() -> Time {
    nanoseconds(clock_gettime(ClockId::ThreadCPUTime))
}

const fn nanoseconds(t: Timespec) -> Time {
    Time(t.tv_sec as u64 * 1_000_000_000 + t.tv_nsec as u64)
}

/// Monotonic clock that starts at zero.
#[derive(Clone, Copy, Debug)]
pub struct Clock {
    started: Time,
}

impl Clock {
    pub fn start() -> Self {
        Self { started: monotonic() }
    }

    /// Returns its start on the machine's monotonic clock.
    pub const fn started(self) -> Time {
        self.started
    }

    #[inline]
    pub fn now(self) -> Time {
        Time(monotonic().since(self.started).0)
    }
}
