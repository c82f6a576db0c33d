//! Custom application: objects on one connection, each written after the previous one has arrived.

use cwnd_apps::{Actions, Application};
use cwnd_quantity::{Duration, Rng, Time};

/// Writes the next object a pause after one has arrived; the last one closes the connection.
#[derive(Debug)]
pub struct ObjectSequence {
    left: u64,
    written: u64,
    delivered: u64,
}

/// Size of an object in bytes.
pub const OBJECT: u64 = 20_000;
/// Time from the arrival of an object to the writing of the next.
pub const PAUSE: Duration = Duration::from_millis(100);

impl ObjectSequence {
    /// Creates an application that sends `count` objects, at least one.
    pub fn new(count: u64) -> Self {
        Self { left: count, written: 0, delivered: 0 }
    }

    fn next(&mut self) -> Actions {
        self.left -= 1;
        self.written += OBJECT;
        let what = Actions::write(OBJECT);
        if self.left == 0 { what.and_finish() } else { what.and_await_delivered(self.written) }
    }
}

impl Application for ObjectSequence {
    fn start(&mut self, _now: Time, _rng: &mut Rng) -> Actions {
        self.next()
    }
    fn on_delivered(&mut self, now: Time, total: u64, _rng: &mut Rng) -> Actions {
        assert_eq!(total, self.written, "it hears of whole objects");
        self.delivered += 1;
        Actions::wake(now + PAUSE)
    }
    fn on_timer(&mut self, _now: Time, _rng: &mut Rng) -> Actions {
        self.next()
    }
    fn count(&self, each: &mut dyn FnMut(&'static str, u64)) {
        each("objects", self.written / OBJECT);
        each("objects_heard", self.delivered);
    }
}
