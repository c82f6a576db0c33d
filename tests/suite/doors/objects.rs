//! An application in one file: objects on one connection, each written when the one before has arrived.

use cwnd_apps::{Application, Do};
use cwnd_quantity::{Duration, Rng, Time};

/// The next object is written when one has arrived, after a pause; the last one ends the connection.
#[derive(Debug)]
pub struct Objects {
    left: u64,
    written: u64,
    heard: u64,
}

/// Bytes of each.
pub const OBJECT: u64 = 20_000;
/// From the arrival of one to the writing of the next.
pub const PAUSE: Duration = Duration::from_millis(100);

impl Objects {
    /// So many of them; at least one.
    pub fn new(count: u64) -> Self {
        Self { left: count, written: 0, heard: 0 }
    }

    fn next(&mut self) -> Do {
        self.left -= 1;
        self.written += OBJECT;
        let what = Do::write(OBJECT);
        if self.left == 0 { what.and_finish() } else { what.and_hear_delivered(self.written) }
    }
}

impl Application for Objects {
    fn start(&mut self, _now: Time, _rng: &mut Rng) -> Do {
        self.next()
    }
    fn on_delivered(&mut self, now: Time, total: u64, _rng: &mut Rng) -> Do {
        assert_eq!(total, self.written, "it hears of whole objects");
        self.heard += 1;
        Do::wake(now + PAUSE)
    }
    fn on_timer(&mut self, _now: Time, _rng: &mut Rng) -> Do {
        self.next()
    }
    fn count(&self, each: &mut dyn FnMut(&'static str, u64)) {
        each("objects", self.written / OBJECT);
        each("objects_heard", self.heard);
    }
}
