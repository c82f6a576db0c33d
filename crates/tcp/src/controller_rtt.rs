//! RTT samples of the controller if they are not simply the timer's, delivery rates, and signed
//! timestamps.

use cwnd_packet::Echo;
use cwnd_quantity::{Divisor, Duration, Time};

use crate::config::Config;
use crate::counters::Delays;
use crate::delivery_rate::DeliveryRate;
use crate::params::{RttEvery, RttFrom};
use crate::sent_segments::{Arrivals, Notes};
use crate::signed_timestamps::{OnForged, Signer};

/// RTT samples of the controller, from the log of send times, the timer or echoed one-way delays
/// ([`RttFrom`]).
///
/// Cost: O(1).
#[derive(Clone, Debug)]
pub struct ControllerRtt {
    from: RttFrom,
    clock: Divisor,
    /// `true` if ACKs of one segment count.
    single_segment_acks: bool,
    /// `true` if a window of data gives at most one sample.
    by_window: bool,
    /// With one sample per window: SND.UNA at which the next counts.
    next_from: u64,
    /// One-way delays.
    one_way: OneWay,
    /// Delivery rates, for a controller that steers by them.
    rates: Option<DeliveryRate>,
    /// Count, sum and minimum of the samples, for results.
    delays: Delays,
    /// Signs timestamps that are sent. `forged` counts echoes with a wrong signature.
    signer: Signer,
    forged: u64,
}

/// RTT without queueing of ACKs (RFC 6817 § 2.4.2): the minimum RTT plus the one-way delay above
/// its minimum, of clocks that need not agree.
#[derive(Clone, Copy, Debug, Default)]
struct OneWay {
    /// Minimum RTT.
    min_rtt: Option<Duration>,
    /// The first one-way delay, and the minimum since relative to it; µs.
    first: Option<u32>,
    min_us: i32,
}

impl OneWay {
    /// Adds an RTT sample.
    fn on_rtt(&mut self, rtt: Option<Duration>) {
        self.min_rtt = rtt.into_iter().chain(self.min_rtt).min();
    }

    /// Adds the one-way delay that an ACK echoes. Returns the sample that follows; `None` without
    /// an echo or before the first RTT sample.
    fn on_echo(&mut self, echo: Echo) -> Option<Sample> {
        let Echo::Delay { us } = echo else { return None };
        let above = us.wrapping_sub(*self.first.get_or_insert(us)).cast_signed();
        self.min_us = self.min_us.min(above);
        let waited = Duration::from_micros(u64::from(above.abs_diff(self.min_us)));
        let seen = self.min_rtt? + waited;
        Some((seen, seen))
    }
}

/// RTT sample: exact, for statistics, and as the clock measures it.
pub type Sample = (Duration, Duration);

impl ControllerRtt {
    /// Creates the source of samples; `None` if the group's senders need none
    /// ([`Plan::controller_rtt`](crate::config::Plan::controller_rtt)).
    pub fn new(config: &Config) -> Option<Box<Self>> {
        let params = &config.params;
        let timing = &params.timing;
        let (from, single_segment_acks) = config.plan.rtt_source;
        config.plan.controller_rtt.then(|| {
            Box::new(Self {
                from,
                clock: Divisor::new(timing.rtt_clock.0),
                single_segment_acks,
                by_window: timing.rtt_every == RttEvery::Window,
                next_from: 0,
                one_way: OneWay::default(),
                rates: config.by_rate().then(DeliveryRate::default),
                delays: Delays::default(),
                signer: config.signer(),
                forged: 0,
            })
        })
    }

    /// Returns the per-segment notes that samples and rates need.
    pub fn notes(&self) -> Notes {
        Notes {
            rtt: self.from != RttFrom::Timer || !self.single_segment_acks,
            rtt_from_sack: self.from == RttFrom::Sack,
            rates: self.rates.is_some(),
        }
    }

    /// Processes an ACK of new data below `ack`, with SND.MAX at `high`; `of` is what it
    /// acknowledges, `timer` the sample of the retransmission timer. Returns the sample that the
    /// controller sees, if any. The log gives none if the ACK covers retransmitted data;
    /// [`RttFrom::Sack`] may still have one from new SACK blocks.
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
                let rtt = self.of(now, once(of.newest));
                self.one_way.on_rtt(rtt.map(|(_, measured)| measured));
                self.one_way.on_echo(echo)
            }
        };
        let counts = self.single_segment_acks || of.segments != 1 || of.sacked.is_some();
        self.take(ack, high, sample.filter(|_| counts))
    }

    /// Processes an ACK of no new data, with SND.UNA at `una` and SND.MAX at `high`, that may
    /// report a segment sent at `sacked`. Returns the sample that the controller sees, if any.
    pub fn on_duplicate(
        &mut self,
        now: Time,
        (una, high): (u64, u64),
        sacked: Option<Time>,
    ) -> Option<Sample> {
        let sample = self.of(now, sacked);
        self.take(una, high, sample)
    }

    /// Adds the handshake's round trip from `sent`, or the timer's sample if the controller sees
    /// those. After a retransmitted SYN (not `once`) only that sample, by timestamps, shows which
    /// was answered.
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
        self.one_way.on_rtt(Some(measured));
        self.delays.add(measured, 0);
        Some(measured)
    }

    /// Delivery rates, for a controller that steers by them.
    pub const fn rates_mut(&mut self) -> Option<&mut DeliveryRate> {
        self.rates.as_mut()
    }

    /// Returns count, sum and minimum of the RTTs that the controller saw, that of the handshake
    /// included.
    pub const fn delays(&self) -> &Delays {
        &self.delays
    }

    /// Returns the timestamp of a segment sent at `now`, signed if `timestamp_signature` is set.
    pub fn stamp(&self, now: Time) -> Time {
        self.signer.sign(now)
    }

    /// Returns the send time of the segment that `echo` belongs to; `None` if its signature is
    /// wrong, which is counted.
    pub fn verify(&mut self, echo: Time) -> Option<Time> {
        let sent = self.signer.verify(echo);
        self.forged += u64::from(sent.is_none());
        sent
    }

    /// `true` if an echo of a timestamp that was never sent reduces the window.
    pub fn punishes(&self) -> bool {
        self.signer.on_forged == OnForged::Reduce
    }

    /// Returns the number of echoes with a wrong signature.
    pub const fn forged(&self) -> u64 {
        self.forged
    }

    /// Starts the counting period of [`ControllerRtt::delays`].
    pub const fn begin_counting(&mut self) {
        self.delays.begin_counting();
    }

    fn of(&self, now: Time, sent: Option<Time>) -> Option<Sample> {
        let sent = sent?;
        let tick = |at: Time| at.0 - self.clock.divide(at.0).1;
        let measured = Duration((tick(now) - tick(sent)).max(self.clock.get()));
        Some((now.since(sent), measured))
    }

    /// Counts and returns a sample, at most one per window of data if `by_window`.
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
