use cwnd_quantity::{Rng, Time};

use crate::application::{Actions, Application as _, Continuation};
use crate::workloads::AnyApplication;

/// An application in progress on a flow: the bytes that it has written and the events that it waits
/// for.
///
/// The owner of the flow calls the methods and carries out what they return. The check for each
/// packet is one comparison.
// The last field is read for each packet and adjoins fields of the flow that are read then, too.
#[derive(Debug)]
#[repr(C)]
pub struct Session {
    /// Number of delivered bytes that the application waits for; `u64::MAX` without one.
    wanted: u64,
    /// Bytes written; for datagrams, their payload.
    written: u64,
    /// Bytes of all requests.
    requested: u64,
    /// Size of the transfer in bytes; `u64::MAX` before its last write, and without end.
    size: u64,
    /// Time of the application's timer; `Time::NEVER` without one.
    timer_at: Time,
    wants_acked: bool,
    /// `true` from a request until the server has all of it.
    request_is_due: bool,
    rng: Rng,
    app: AnyApplication,
    /// Number of bytes below which deliveries have no effect: the lesser of `wanted` and `size`
    /// among those not reported yet; 0 after [`Session::await_next`].
    threshold: u64,
}

impl Session {
    /// Offset of the fields that each packet reads, in bytes.
    pub const READ_FROM: usize = core::mem::offset_of!(Self, threshold);
}

/// Effect of a delivery.
#[derive(Clone, Copy, Debug)]
pub struct Delivery {
    /// `true` if the transfer is complete.
    pub finished: bool,
    /// `true` if it reached the bytes that the application waits for.
    pub wanted: bool,
    /// Decision of the application.
    pub what: Actions,
}

impl Session {
    /// Creates the session of an application that has not started; it draws from `rng`.
    #[must_use]
    pub const fn new(app: AnyApplication, rng: Rng) -> Self {
        Self {
            threshold: u64::MAX,
            wanted: u64::MAX,
            written: 0,
            requested: 0,
            request_is_due: false,
            size: u64::MAX,
            timer_at: Time::NEVER,
            wants_acked: false,
            rng,
            app,
        }
    }

    /// Replaces the application, before the start.
    pub fn replace(&mut self, app: AnyApplication) {
        self.app = app;
    }

    /// Size of the transfer in bytes; `None` before its last write, and without end.
    #[must_use]
    pub fn size(&self) -> Option<u64> {
        (self.size != u64::MAX).then_some(self.size)
    }

    /// Bytes written; for datagrams, their payload.
    #[must_use]
    pub const fn written(&self) -> u64 {
        self.written
    }

    /// `true` from a request until the server has all of it.
    #[must_use]
    pub const fn request_is_due(&self) -> bool {
        self.request_is_due
    }

    /// Bytes of all requests.
    #[must_use]
    pub const fn requested(&self) -> u64 {
        self.requested
    }

    /// `true` if the delivery of `total` bytes has an effect.
    #[inline]
    #[must_use]
    pub const fn reaches_threshold(&self, total: u64) -> bool {
        total >= self.threshold
    }

    /// Field that [`Session::reaches_threshold`] reads, for prefetching.
    #[inline]
    #[must_use]
    pub const fn threshold(&self) -> &u64 {
        &self.threshold
    }

    /// Passes each named counter of the application to `each`.
    pub fn count(&self, each: &mut dyn FnMut(&'static str, u64)) {
        self.app.count(each);
    }

    /// Starts the application.
    pub fn start(&mut self, now: Time) -> Actions {
        let what = self.app.start(now, &mut self.rng);
        self.note(what)
    }

    /// Wakes the application if its timer is due; `None` if it is not.
    pub fn timer(&mut self, now: Time) -> Option<Actions> {
        if now < self.timer_at || self.timer_at == Time::NEVER {
            return None;
        }
        self.timer_at = Time::NEVER;
        let what = self.app.on_timer(now, &mut self.rng);
        Some(self.note(what))
    }

    /// Reports that all written bytes are acknowledged; `None` if the application does not wait for
    /// this.
    pub fn acked(&mut self, now: Time) -> Option<Actions> {
        if !self.wants_acked {
            return None;
        }
        self.wants_acked = false;
        let what = self.app.on_acked(now, self.written, &mut self.rng);
        Some(self.note(what))
    }

    /// Reports that the server has all requests, of `total` bytes.
    pub fn request_delivered(&mut self, now: Time, total: u64) -> Actions {
        self.request_is_due = false;
        let what = self.app.on_request(now, total, &mut self.rng);
        self.note(what)
    }

    /// Makes the next delivery of any size have an effect: it acknowledges the last request.
    pub const fn await_next(&mut self) {
        self.threshold = 0;
    }

    /// Reports the delivery of `total` bytes, which [has an effect](Self::reaches_threshold).
    #[cold]
    pub fn delivered(&mut self, now: Time, total: u64) -> Delivery {
        let finished = total >= self.size;
        let wanted = total >= self.wanted;
        // Each threshold is reported once.
        self.threshold = if finished { u64::MAX } else { self.size };
        if !wanted {
            self.threshold = self.threshold.min(self.wanted);
            return Delivery { finished, wanted, what: Actions::NOTHING };
        }
        self.wanted = u64::MAX;
        let what = self.app.on_delivered(now, total, &mut self.rng);
        Delivery { finished, wanted, what: self.note(what) }
    }

    fn note(&mut self, mut what: Actions) -> Actions {
        if self.size != u64::MAX {
            // No write or request follows the last write.
            (what.write, what.request) = (0, 0);
        }
        self.requested = self.requested.saturating_add(what.request);
        self.request_is_due |= what.request > 0;
        self.written = self.written.saturating_add(what.write);
        match what.then {
            Continuation::More => {}
            Continuation::Last => {
                self.size = self.written;
                self.threshold = self.threshold.min(self.size);
            }
            Continuation::Stop => self.timer_at = Time::NEVER,
        }
        if let Some(at) = what.wake {
            self.timer_at = at;
        }
        if let Some(total) = what.delivered {
            self.wanted = total;
            self.threshold = self.threshold.min(total);
        }
        self.wants_acked |= what.acked;
        what
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::application::Application;

    /// An application with a prepared list of actions.
    #[derive(Debug)]
    struct Script(Vec<Actions>);

    impl Application for Script {
        fn start(&mut self, _now: Time, _rng: &mut Rng) -> Actions {
            self.0.remove(0)
        }
        fn on_delivered(&mut self, _now: Time, _total: u64, _rng: &mut Rng) -> Actions {
            self.0.remove(0)
        }
        fn on_acked(&mut self, _now: Time, _total: u64, _rng: &mut Rng) -> Actions {
            self.0.remove(0)
        }
        fn on_timer(&mut self, _now: Time, _rng: &mut Rng) -> Actions {
            self.0.remove(0)
        }
    }

    fn started(script: &[Actions]) -> Session {
        let app = AnyApplication::Boxed(Box::new(Script(script.to_vec())));
        let mut session = Session::new(app, Rng::named(1, "script"));
        let _ = session.start(Time(0));
        session
    }

    #[test]
    fn an_application_hears_only_what_it_asked_for_and_once() {
        let mut session = started(&[Actions::write(10).and_await_delivered(4), Actions::NOTHING]);
        assert!(!session.reaches_threshold(3));
        assert!(session.reaches_threshold(4));
        assert!(!session.delivered(Time(1), 5).finished);
        assert!(!session.reaches_threshold(10), "it is not a transfer with an end");
        assert_eq!(session.acked(Time(2)), None);
        assert_eq!(session.timer(Time(3)), None);
    }

    #[test]
    fn a_later_alarm_takes_the_place_of_an_earlier_one() {
        let script =
            [Actions::wake(Time(5)).and_await_acked(), Actions::wake(Time(9)), Actions::write(1)];
        let mut session = started(&script);
        assert_eq!(session.acked(Time(1)), Some(Actions::wake(Time(9))));
        assert_eq!(session.timer(Time(5)), None, "what it wanted before");
        assert_eq!(session.timer(Time(9)), Some(Actions::write(1)));
        assert_eq!(session.timer(Time(9)), None, "it was woken");
    }

    #[test]
    fn a_transfer_ends_with_its_last_byte_and_nothing_comes_after_it() {
        let last = Actions::write(6).and_finish().and_await_delivered(20);
        let mut session =
            started(&[Actions::write(4).and_await_delivered(4), last, Actions::write(1)]);
        assert_eq!(session.size(), None);
        let _ = session.delivered(Time(1), 4);
        assert_eq!(session.size(), Some(10));
        assert!(!session.reaches_threshold(9));
        let heard = session.delivered(Time(2), 10);
        assert!(heard.finished && heard.what == Actions::NOTHING);
        assert_eq!(session.delivered(Time(3), 20).what.write, 0);
    }
}
