//! Calls into a user's code, and the limit of their time.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::thread;
use std::time::Duration;

/// Time after which a call counts as endless, s.
pub const LIMIT_S: u64 = 5;
/// Interval between checks of a call. Time in which the process is stopped does not count.
const CHECK_INTERVAL: Duration = Duration::from_secs(1);

/// Counts the begins and ends of the calls of one thread, so that the number is odd during one.
#[derive(Debug, Default)]
pub struct Calls(AtomicU64);

/// A thread that watches calls; it ends when this is dropped.
#[derive(Debug)]
pub struct Watch {
    _is_alive: Sender<()>,
}

impl Calls {
    /// Calls into the code.
    #[inline]
    pub fn during<T>(&self, call: impl FnOnce() -> T) -> T {
        self.count();
        let returned = call();
        self.count();
        returned
    }

    /// Counts without an atomic addition, as no other thread does.
    #[inline]
    fn count(&self) {
        self.0.store(self.0.load(Ordering::Relaxed).wrapping_add(1), Ordering::Relaxed);
    }

    /// `true` if this is still the number of begins and ends.
    pub fn is_at(&self, number: u64) -> bool {
        self.0.load(Ordering::Relaxed) == number
    }

    /// Starts a thread that calls `end` with the number of begins and ends each time a call has
    /// lasted too long.
    ///
    /// # Errors
    /// If there can be no thread.
    pub fn watch(self: &Arc<Self>, end: impl Fn(u64) + Send + 'static) -> io::Result<Watch> {
        let calls = Arc::clone(self);
        let (is_alive, ended) = channel();
        thread::Builder::new().spawn(move || {
            let (mut last, mut checks) = (0, 0);
            while ended.recv_timeout(CHECK_INTERVAL) == Err(RecvTimeoutError::Timeout) {
                let now = calls.0.load(Ordering::Relaxed);
                checks = if now == last && now % 2 == 1 { checks + 1 } else { 0 };
                last = now;
                if checks == LIMIT_S {
                    checks = 0;
                    end(now);
                }
            }
        })?;
        Ok(Watch { _is_alive: is_alive })
    }
}
