//! RACK's reordering window (RFC 8985 § 6.2): once data was seen to come out of order, what is missing below the highest arrival is lost only
//! when a part of the least round trip has passed, too.

use std::collections::VecDeque;

use cwnd_units::{Duration, Time};

/// When data went that is outstanding, since some came late.
#[derive(Clone, Debug)]
pub struct Late {
    /// Of what is below this there are no notes.
    from: u64,
    /// The ends of what went, in their order, and when; what went at one time is one.
    sent: VecDeque<(u64, Time)>,
    /// One past the highest byte that arrived, and how long its round trip took.
    top: u64,
    rtt: Duration,
}

impl Late {
    /// Notes begin with what is sent from byte `high` on; arrivals reach up to `top`.
    pub const fn new(high: u64, top: u64) -> Self {
        Self { from: high, sent: VecDeque::new(), top, rtt: Duration::ZERO }
    }

    /// Data up to `end` goes for the first time.
    pub fn on_sent(&mut self, end: u64, now: Time) {
        match self.sent.back_mut() {
            Some((last, at)) if *at == now => *last = end,
            _ => self.sent.push_back((end, now)),
        }
    }

    /// All below `una` has arrived, and something up to `top` (RFC 8985 § 6.2, step 2).
    pub fn on_arrival(&mut self, now: Time, una: u64, top: u64) {
        if top > self.top {
            self.top = top;
            let i = self.sent.partition_point(|&(end, _)| end < top);
            if let Some(&(_, at)) = self.sent.get(i).filter(|_| top > self.from) {
                self.rtt = now.since(at);
            }
        }
        while let Some(&(end, _)) = self.sent.front().filter(|&&(end, _)| end <= una) {
            self.from = end;
            self.sent.pop_front();
        }
    }

    /// Up to where what is missing is lost by now, and when more is (RFC 8985 § 6.2, step 5); `Time::NEVER` if nothing waits.
    pub fn due(&self, now: Time, window: Duration) -> (u64, Time) {
        let wait = self.rtt + window;
        let i = self.sent.partition_point(|&(_, at)| at + wait <= now);
        let from = if i == 0 { self.from } else { self.sent[i - 1].0 };
        self.sent.get(i).map_or((u64::MAX, Time::NEVER), |&(_, at)| (from, at + wait))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn ms(ms: u64) -> Time {
        Time(ms * 1_000_000)
    }

    /// By hand: segments of 1000 bytes leave each millisecond, a round trip takes 40 ms, the window is 10 ms.
    #[test]
    fn what_is_missing_waits_for_the_window() {
        let mut late = Late::new(0, 0);
        for n in 0..20 {
            late.on_sent((n + 1) * 1000, ms(n));
        }
        late.on_arrival(ms(45), 3000, 6000);
        let window = Duration::from_millis(10);
        assert_eq!(late.due(ms(45), window), (3000, ms(53)), "the fourth went at 3 ms");
        assert_eq!(late.due(ms(53), window), (4000, ms(54)));
        assert_eq!(late.due(ms(100), window), (u64::MAX, Time::NEVER));
    }

    #[test]
    fn what_went_before_the_notes_does_not_wait() {
        let mut late = Late::new(5000, 4000);
        late.on_sent(6000, ms(7));
        late.on_sent(7000, ms(7));
        late.on_arrival(ms(41), 0, 5000);
        assert_eq!(late.due(ms(41), Duration::from_millis(10)).0, u64::MAX);
        late.on_arrival(ms(47), 0, 7000);
        assert_eq!(late.due(ms(47), Duration::from_millis(10)), (5000, ms(57)));
    }
}
