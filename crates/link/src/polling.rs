//! Polling interface of a line, for owners without an event queue.

use cwnd_aqm::Context;
use cwnd_quantity::Time;

use crate::line::Line;
use crate::packet::Packet;

impl<P: Packet> Line<P> {
    /// Time of the next action: end of a transmission, queue timer or rate change; `Time::NEVER`
    /// without one.
    #[inline]
    pub fn next(&self) -> Time {
        self.free_at().min(self.next_timer().unwrap_or(Time::NEVER)).min(self.change_at())
    }

    /// Does the action due at [`Line::next`], which must be `now`; returns the packet sent, if one
    /// was.
    #[inline]
    pub fn advance(&mut self, now: Time, context: &mut impl Context<P>) -> Option<P> {
        if self.free_at() <= now {
            return self.on_free(now, context);
        }
        if self.change_at() <= now {
            self.on_change(now);
        } else {
            self.on_timer(now);
        }
        None
    }

    /// Does the queue's periodic work up to `now`, or up to an earlier action of another kind, in
    /// one call.
    pub fn set_clock(&mut self, now: Time) {
        self.on_timer(now.min(self.free_at()).min(self.change_at()));
    }

    #[inline]
    fn change_at(&self) -> Time {
        self.next_change().unwrap_or(Time::NEVER)
    }
}
