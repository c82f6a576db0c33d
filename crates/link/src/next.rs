//! For those who keep no calendar of events: a line that is asked what is due next.

use cwnd_aqm::Context;
use cwnd_quantity::Time;

use crate::line::Line;
use crate::packet::Packet;

impl<P: Packet> Line<P> {
    /// When it has something to do: a packet has been sent, the queue's clock ticks, the rate changes.
    #[inline]
    pub fn next(&self) -> Time {
        self.free_at().min(self.next_timer().unwrap_or(Time::NEVER)).min(self.change_at())
    }

    /// Does one thing that is due now, which is what [`Line::next`] said; gives the packet that has been sent, if one has.
    #[inline]
    pub fn advance(&mut self, now: Time, told: &mut impl Context<P>) -> Option<P> {
        if self.free_at() <= now {
            return self.on_free(now, told);
        }
        if self.change_at() <= now {
            self.on_change(now);
        } else {
            self.on_timer(now);
        }
        None
    }

    /// Does the periodic work of the queue up to `now`, or up to what else comes before, in one call.
    pub fn set_clock(&mut self, now: Time) {
        self.on_timer(now.min(self.free_at()).min(self.change_at()));
    }

    #[inline]
    fn change_at(&self) -> Time {
        self.next_change().unwrap_or(Time::NEVER)
    }
}
