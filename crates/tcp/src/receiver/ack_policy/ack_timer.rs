//! Delayed-ACK timer of Linux (`icsk_ack.ato`): longer after each ACK that the timer had to send,
//! by the pauses between segments, and for a round trip at most. All of it counts ticks of the
//! kernel's clock, and that decides whether an ACK that waited comes back as a pause: the segment
//! that it let go is as late as it was.

use cwnd_quantity::{Duration, Time};

/// The wait of delayed ACKs, in ticks.
#[derive(Clone, Copy, Debug)]
pub struct AckTimer {
    /// Least wait in ticks: the first, and that after short pauses (`TCP_ATO_MIN`,
    /// `TCP_DELACK_MIN`).
    least: u32,
    wait: u32,
}

impl AckTimer {
    pub fn new(least: Duration) -> Self {
        let least = ticks(least);
        Self { least, wait: least }
    }

    /// ACKs went at once, or do from now on (`tcp_dec_quickack_mode`, `tcp_enter_quickack_mode`).
    pub const fn reset(&mut self) {
        self.wait = self.least;
    }

    /// A segment came in order; the one before at `last`. `timeout` is the receiver's own
    /// (`tcp_event_data_recv`).
    pub fn on_segment(&mut self, last: Time, now: Time, timeout: impl FnOnce() -> Duration) {
        let half = self.least / 2;
        // Within a time of so many ticks no more begin: nothing need be divided.
        let is_short = now.since(last).0 <= TICK.0 * u64::from(half);
        let pause = if is_short { 0 } else { now.0 / TICK.0 - last.0 / TICK.0 };
        let pause = u32::try_from(pause).unwrap_or(u32::MAX);
        if pause <= half {
            self.wait = self.wait / 2 + half;
        } else if pause < self.wait {
            self.wait = (self.wait / 2 + pause).min(ticks(timeout()));
        }
    }

    /// It sent an ACK for which no second segment came (`tcp_delack_timer_handler`).
    pub fn on_expiry(&mut self, timeout: Duration) {
        self.wait = self.wait.saturating_mul(2).min(ticks(timeout));
    }

    /// Deadline of an ACK that begins to wait now, after a handshake with a round trip of `rtt`
    /// (`tcp_send_delayed_ack`).
    ///
    /// A timer never expires early: the tick that has begun does not count (kernel/time/timer.c,
    /// `calc_index`).
    pub fn deadline(&self, now: Time, rtt: Duration) -> Time {
        let wait = self.wait.min(ticks(rtt).min(LONGEST).max(self.least));
        Time((now.0 / TICK.0 + u64::from(wait) + 1) * TICK.0)
    }
}

/// Whole ticks, the last of which need not be over (`usecs_to_jiffies`).
fn ticks(time: Duration) -> u32 {
    u32::try_from(time.0.div_ceil(TICK.0)).unwrap_or(u32::MAX)
}

/// The clock of a kernel at 250 Hz, as Debian's and that of the runs of docs/agreement are.
const TICK: Duration = Duration::from_millis(4);
/// `tcp_delack_max`: the least timeout of 200 ms less a tick.
const LONGEST: u32 = 49;

#[cfg(test)]
mod tests {
    use super::*;

    const fn ms(count: u64) -> Duration {
        Duration::from_millis(count)
    }

    /// Wait of an ACK that begins to wait with a tick, ms; one of these is the tick that has begun.
    fn wait(timer: &AckTimer, rtt: u64) -> u64 {
        (timer.deadline(Time(8_000_000), ms(rtt)).0 - 8_000_000) / 1_000_000 - 4
    }

    /// By hand: 40, 80, 160 ms, and no more than the timeout of 300; no ACK waits for more than 196
    /// ms, or a round trip of 100.
    #[test]
    fn each_ack_that_the_timer_sends_doubles_the_wait() {
        let mut timer = AckTimer::new(ms(40));
        let waits = [(); 5].map(|()| {
            let waits = (timer.wait * 4, wait(&timer, 400), wait(&timer, 100), wait(&timer, 5));
            timer.on_expiry(ms(300));
            waits
        });
        let last = (300, 196, 100, 40);
        assert_eq!(waits, [(40, 40, 40, 40), (80, 80, 80, 40), (160, 160, 100, 40), last, last]);
    }

    /// By hand, in ticks: pauses of 7 are 10 / 2 + 7 and so on, towards 14; one of 20 says nothing;
    /// of up to 5 it goes back to 10.
    #[test]
    fn pauses_shorter_than_the_wait_move_it() {
        let mut timer = AckTimer::new(ms(40));
        let mut at = Time::ZERO;
        let mut after = |pause: u64| {
            let last = at;
            at = last + ms(4 * pause);
            timer.on_segment(last, at, || ms(300));
            timer.wait
        };
        assert_eq!([7, 7, 20].map(&mut after), [12, 13, 13]);
        assert_eq!([12, 5, 0, 1, 1, 1].map(&mut after), [18, 14, 12, 11, 10, 10]);
    }

    /// A pause of 38.8 ms is nine or ten ticks, and ten are not below the wait of ten.
    #[test]
    fn pauses_count_ticks_that_begin() {
        for (last, ticks) in [(3_900_000, 10), (100_000, 14)] {
            let mut timer = AckTimer::new(ms(40));
            timer.on_segment(Time(last), Time(last + 38_800_000), || ms(300));
            assert_eq!(timer.wait, ticks);
        }
    }

    /// A timer does not expire early: within a tick all go at the same instant.
    #[test]
    fn an_ack_waits_for_whole_ticks() {
        let timer = AckTimer::new(ms(40));
        for now in [8_000_000, 9_000_000, 11_999_999] {
            assert_eq!(timer.deadline(Time(now), ms(100)), Time(52_000_000));
        }
    }

    #[test]
    fn the_wait_ends_at_the_timeout() {
        let mut timer = AckTimer::new(ms(40));
        timer.on_expiry(ms(72));
        timer.on_segment(Time::ZERO, Time(68_000_000), || ms(72));
        assert_eq!(timer.wait, 18);
    }
}
