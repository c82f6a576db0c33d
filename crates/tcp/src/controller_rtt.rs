//! A sender's own notes of when each segment went, and what its controller sees of them.

use cwnd_packet::Echo;
use cwnd_quantity::{Divisor, Duration, Time};

use crate::config::Config;
use crate::delays::Delays;
use crate::delivery_rate::Rates;
use crate::seen::{RttEvery, RttFrom};
use crate::sent_segments::{Arrivals, Notes};
use crate::signed::{OnForged, Signer};

/// Segments that give samples, by their send times.
///
/// Cost: O(1).
#[derive(Clone, Debug)]
pub struct ControllerRtt {
    from: RttFrom,
    clock: Divisor,
    /// `true` if ACKs of one segment count.
    lone: bool,
    by_window: bool,
    /// With one sample a window: what must be acknowledged before the next.
    next_from: u64,
    /// State of one-way delays.
    one_way: OneWay,
    /// Delivery rates, for a controller that steers by them.
    rates: Option<Rates>,
    /// The samples, for results.
    delays: Delays,
    /// Signs the timestamps that go, and how many echoes were never sent.
    signer: Signer,
    forged: u64,
}

/// Round trips as they would be if only data waited (RFC 6817 § 2.4.2: delays above the least, of
/// clocks that need not agree).
#[derive(Clone, Copy, Debug, Default)]
struct OneWay {
    /// The least round trip.
    least: Option<Duration>,
    /// The first one-way delay, and the least since, less the first; µs.
    first: Option<u32>,
    least_us: i32,
}

impl OneWay {
    /// A round trip was measured.
    fn took(&mut self, rtt: Option<Duration>) {
        self.least = rtt.into_iter().chain(self.least).min();
    }

    /// An ACK told how long data took.
    fn told(&mut self, echo: Echo) -> Option<Sample> {
        let Echo::Delay { us } = echo else { return None };
        let above = us.wrapping_sub(*self.first.get_or_insert(us)).cast_signed();
        self.least_us = self.least_us.min(above);
        let waited = Duration::from_micros(u64::from(above.abs_diff(self.least_us)));
        let seen = self.least? + waited;
        Some((seen, seen))
    }
}

/// A sample: exact, for statistics, and as the clock measures it.
pub type Sample = (Duration, Duration);

impl ControllerRtt {
    /// `None` if the controller sees what the timer does, which costs nothing.
    pub fn new(config: &Config) -> Option<Box<Self>> {
        let params = &config.params;
        let own = &params.timing;
        let (from, lone) = config.plan.rtt_source;
        config.plan.controller_rtt.then(|| {
            Box::new(Self {
                from,
                clock: Divisor::new(own.rtt_clock.0),
                lone,
                by_window: own.rtt_every == RttEvery::Window,
                next_from: 0,
                one_way: OneWay::default(),
                rates: config.by_rate().then(Rates::default),
                delays: Delays::default(),
                signer: config.signer(),
                forged: 0,
            })
        })
    }

    /// Notes that it needs of each segment.
    pub fn notes(&self) -> Notes {
        Notes {
            rtt: self.from != RttFrom::Timer || !self.lone,
            rtt_from_sack: self.from == RttFrom::Sack,
            rates: self.rates.is_some(),
        }
    }

    /// An ACK acknowledges these segments, where all up to `high` was sent; the timer's own sample
    /// is given, and what the ACK echoes. Returns the sample that the controller sees.
    pub fn on_ack(
        &mut self,
        now: Time,
        (ack, high): (u64, u64),
        of: Arrivals,
        timer: Option<Sample>,
        echo: Echo,
    ) -> Option<Sample> {
        let once = |sent: Option<Time>| sent.filter(|_| !of.again);
        let sample = match self.from {
            RttFrom::Timer => timer,
            RttFrom::Oldest => self.of(now, once(of.oldest)),
            RttFrom::Newest => self.of(now, once(of.newest)),
            RttFrom::Sack => self.of(now, of.sacked.or(once(of.newest))),
            RttFrom::OneWay => {
                let took = self.of(now, once(of.newest));
                self.one_way.took(took.map(|(_, measured)| measured));
                self.one_way.told(echo)
            }
        };
        let counts = self.lone || of.segments != 1 || of.sacked.is_some();
        self.take(ack, high, sample.filter(|_| counts))
    }

    /// An ACK acknowledged nothing new, and may have reported a segment that went at `sacked`.
    /// Returns the sample that the controller sees.
    pub fn on_duplicate(
        &mut self,
        now: Time,
        (una, high): (u64, u64),
        sacked: Option<Time>,
    ) -> Option<Sample> {
        let sample = self.of(now, sacked);
        self.take(una, high, sample)
    }

    /// The handshake took a round trip from `sent`; of a SYN that was sent again only timestamps
    /// know which was answered.
    pub fn on_handshake(
        &mut self,
        now: Time,
        sent: Time,
        timer: Option<Duration>,
        once: bool,
    ) -> Option<Duration> {
        let measured = match self.from {
            RttFrom::Timer => timer,
            _ => self.of(now, once.then_some(sent)).map(|(_, measured)| measured),
        }?;
        self.one_way.took(Some(measured));
        self.delays.add(measured, 0);
        Some(measured)
    }

    /// Delivery rates, for a controller that steers by them.
    pub const fn rates_mut(&mut self) -> Option<&mut Rates> {
        self.rates.as_mut()
    }

    /// The samples that the controller saw.
    pub const fn delays(&self) -> &Delays {
        &self.delays
    }

    /// The timestamp of a segment that goes now.
    pub fn stamp(&self, now: Time) -> Time {
        self.signer.sign(now)
    }

    /// Send time of the segment that an echo is of; `None` if there was none.
    pub fn verify(&mut self, echo: Time) -> Option<Time> {
        let sent = self.signer.verify(echo);
        self.forged += u64::from(sent.is_none());
        sent
    }

    /// `true` if an echo that was never sent reduces the window.
    pub fn punishes(&self) -> bool {
        self.signer.on_forged == OnForged::Reduce
    }

    /// Echoes that were never sent.
    pub const fn forged(&self) -> u64 {
        self.forged
    }

    /// Counting begins.
    pub const fn begin_counting(&mut self) {
        self.delays.begin_counting();
    }

    fn of(&self, now: Time, sent: Option<Time>) -> Option<Sample> {
        let sent = sent?;
        let tick = |at: Time| at.0 - self.clock.divide(at.0).1;
        let measured = Duration((tick(now) - tick(sent)).max(self.clock.get()));
        Some((now.since(sent), measured))
    }

    /// One sample a window, if that is all that the controller sees.
    fn take(&mut self, una: u64, high: u64, sample: Option<Sample>) -> Option<Sample> {
        let (exact, measured) = sample?;
        if self.by_window && una < self.next_from {
            return None;
        }
        self.next_from = high;
        self.delays.add(measured, 0);
        Some((exact, measured))
    }
}
