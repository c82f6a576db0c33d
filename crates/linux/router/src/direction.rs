//! One direction of a router: delay from far receivers, queue, line, propagation, and their
//! counters.

use core::net::IpAddr;
use std::collections::BTreeMap;

use cwnd_aqm::{Outcome, Packet as _};
use cwnd_link::{Capacity, Line, Reader, Settings};
use cwnd_quantity::{Bytes, Duration, Rate, Streams, Time};
use cwnd_scenario::LinkRate;
use cwnd_tables::{Activity, Buckets, Histogram, LinkSampleRow, LinkSamples};

use crate::capture::Capture;
use crate::config::{Config, Direction};
use crate::delay::{Delay, InFlight, Receivers};
use crate::live::Live;
use crate::messages::MessengerTap;
use crate::packet::{Packet, Pool, UNWATCHED, flow_hash, parse};
use crate::report::Counters;

/// Running state of one direction. The caller supplies the time; overdue work is done as of when it
/// was due.
#[derive(Debug)]
pub struct DirectionState {
    index: usize,
    receivers: Receivers,
    /// Packets that have yet to reach the queue, as their senders are far receivers.
    from_far_receivers: InFlight,
    /// Queue and transmitter; `None` if the rate is unlimited.
    line: Option<Line<Packet>>,
    /// Position of the capture in the queue's verdicts, if there is a capture.
    reader: Option<Reader>,
    /// Messenger that reports to the sources of packets, if there is one.
    messenger_tap: Option<Box<MessengerTap>>,
    /// `true` if a capture or a messenger reads the queue's verdicts.
    is_read: bool,
    delay: Delay,
    /// Least time from the line to the exit, for which a packet needs no attention; zero with a
    /// messenger.
    lead: Duration,
    /// Highest rate of the line; `None` if not known.
    fastest: Option<Rate>,
    pool: Pool,
    watched: BTreeMap<IpAddr, u32>,
    /// Counters of the router; also of the link, if there is no line that counts.
    counters: Counters,
    /// Counters at the end of the warm-up.
    before: Option<Counters>,
    warmup: Time,
    /// `true` if the queue needs a hash of the flow.
    needs_flows: bool,
    sample: Option<Duration>,
    next_sample: Time,
    samples: Vec<LinkSampleRow>,
    max_samples: usize,
    capacity: Option<Capacity>,
    live: Live,
}

impl DirectionState {
    pub fn new(index: usize, config: &Config) -> Self {
        let of: &Direction = &config.directions[index];
        let random = Streams::new(config.seed);
        let mut line = Settings::from(of).line(&random);
        let messenger_tap =
            line.as_mut().and_then(|line| MessengerTap::new(config, of, line)).map(Box::new);
        let delay = Delay::new(of, &random);
        let mut pool = Pool::default();
        pool.watch(of.watched.len());
        Self {
            index,
            receivers: Receivers::new(of),
            from_far_receivers: InFlight::default(),
            fastest: fastest(&of.rate),
            line,
            reader: None,
            is_read: messenger_tap.is_some(),
            // A message is written at the time at which a packet leaves the queue: it cannot wait
            // for a lead.
            lead: if messenger_tap.is_some() { Duration::ZERO } else { delay.shortest() },
            messenger_tap,
            delay,
            pool,
            watched: of.watched.clone(),
            counters: Counters::default(),
            before: None,
            warmup: Time(config.warmup.0),
            needs_flows: of.queue.reads_flow_hash() && of.rate != LinkRate::Unlimited,
            sample: config.sample.filter(|&interval| interval > Duration::ZERO),
            next_sample: if config.sample.is_some() { Time::ZERO } else { Time::NEVER },
            samples: Vec::new(),
            max_samples: config.max_samples,
            capacity: Capacity::of(&of.rate),
            live: Live::default(),
        }
    }

    /// Takes arriving bytes. Those that are not a valid packet are counted and dropped.
    #[inline]
    pub fn arrive(&mut self, now: Time, bytes: &[u8], capture: Option<&mut Capture>) {
        let Some(packet) = parse(bytes) else {
            self.counters.malformed += 1;
            return;
        };
        self.counters.largest = self.counters.largest.max(packet.length as u32);
        let hash = if self.needs_flows { flow_hash(&packet) } else { 0 };
        let bytes = &bytes[..packet.length];
        let [beyond, before] =
            [packet.source, packet.destination].map(|end| self.receivers.of(end));
        let watched = match packet.has_payload {
            true => self.watched.get(&packet.source.address).copied().unwrap_or(UNWATCHED),
            false => UNWATCHED,
        };
        let packet = self.pool.put(bytes, &packet, hash, beyond, watched);
        if before > Duration::ZERO {
            self.from_far_receivers.enter(now + before, packet);
        } else {
            self.reach(now, packet, capture);
        }
    }

    /// Takes a packet that reaches the queue.
    #[inline]
    fn reach(&mut self, now: Time, packet: Packet, capture: Option<&mut Capture>) {
        match &mut self.line {
            None => {
                self.counters.link.arrived += 1;
                self.counters.link.count_departure(&packet);
                self.sent(now, packet, capture);
            }
            Some(line) => {
                line.arrive(now, packet, &mut self.pool);
                self.read_verdicts(now, capture);
            }
        }
    }

    /// Does all work that was due by `now`, in order.
    #[inline]
    pub fn advance(&mut self, now: Time, mut capture: Option<&mut Capture>) {
        let mut idle_ticks = 0;
        loop {
            let at = self.due();
            if at > now || at == Time::NEVER {
                return;
            }
            if self.next_sample_or_warmup() <= at {
                self.take_sample(at);
                continue;
            }
            if self.next_on_line() > at {
                // At equal times the line comes first, as for arriving packets.
                if let Some((_, packet)) = self.from_far_receivers.leave(at) {
                    self.reach(at, packet, capture.as_deref_mut());
                }
                continue;
            }
            let Some(line) = &mut self.line else { return };
            if idle_ticks > MAX_IDLE_TICKS {
                // The queue's clock ticks more often than anything happens: it is advanced in one
                // call.
                line.set_clock(now);
                idle_ticks = 0;
                continue;
            }
            let sent = line.advance(at, &mut self.pool);
            self.read_verdicts(at, capture.as_deref_mut());
            match sent {
                Some(packet) => {
                    idle_ticks = 0;
                    self.sent(at, packet, capture.as_deref_mut());
                }
                None => idle_ticks += 1,
            }
        }
    }

    /// Returns when [`DirectionState::advance`] next has work.
    #[inline]
    pub fn due(&self) -> Time {
        self.next_on_line().min(self.next_sample_or_warmup()).min(self.from_far_receivers.next())
    }

    #[inline]
    fn next_on_line(&self) -> Time {
        self.line.as_ref().map_or(Time::NEVER, Line::next)
    }

    /// Sets where to publish each row of the time series.
    pub fn publish(&mut self, live: &Live) {
        self.live = live.clone();
    }

    /// Starts to keep verdicts of the queue for a capture.
    pub fn keep_verdicts(&mut self) {
        if self.reader.is_none() {
            self.reader = self.line.as_mut().map(Line::reader);
            self.is_read |= self.reader.is_some();
        }
    }

    /// Passes recent verdicts of the queue to their readers, if there are any.
    #[inline]
    fn read_verdicts(&mut self, now: Time, capture: Option<&mut Capture>) {
        if self.is_read {
            self.pass_verdicts(now, capture);
        }
    }

    #[cold]
    fn pass_verdicts(&mut self, now: Time, mut capture: Option<&mut Capture>) {
        self.capture_drops(now, capture.as_deref_mut());
        let (Some(line), Some(messenger_tap)) = (&mut self.line, &mut self.messenger_tap) else {
            return;
        };
        // A message leaves at the side where packets of the opposite direction leave.
        let back = 1 - self.index;
        messenger_tap.read(now, line, &self.pool, |message| {
            if let Some(capture) = &mut capture {
                capture.passed(back, now, message, None);
            }
        });
    }

    /// Writes packets that the queue dropped to the capture.
    fn capture_drops(&mut self, now: Time, capture: Option<&mut Capture>) {
        let (Some(line), Some(reader), Some(capture)) = (&mut self.line, self.reader, capture)
        else {
            return;
        };
        while let Some(verdict) = line.read(reader) {
            if verdict.what == Outcome::Dropped {
                let buffer = verdict.packet.buffer;
                let (bytes, marked) = (self.pool.bytes(buffer), self.pool.marked(buffer));
                capture.dropped(self.index, now, bytes, marked, verdict.reason);
            }
        }
    }

    /// Moves a packet whose last byte has been sent from the line to propagation, unless an
    /// impairment loses it.
    #[inline]
    fn sent(&mut self, now: Time, packet: Packet, capture: Option<&mut Capture>) {
        let in_flight = self.delay.enter(now, packet);
        if let Some(capture) = capture {
            let bytes = self.pool.bytes(packet.buffer);
            let marked = self.pool.marked(packet.buffer);
            if in_flight {
                capture.passed(self.index, now, bytes, marked);
            } else {
                capture.dropped(self.index, now, bytes, marked, cwnd_link::LOSS);
            }
        }
        if !in_flight {
            self.pool.remove(packet.buffer);
        }
    }

    /// Returns the earliest time at which a packet may leave, as far as is known now.
    #[inline]
    pub fn next_exit(&self) -> Time {
        let line = self.line.as_ref().map_or(Time::NEVER, Line::free_at);
        let from_line = if line == Time::NEVER { line } else { line + self.lead };
        self.delay
            .in_flight
            .next()
            .min(from_line)
            .min(self.next_message())
            .min(self.next_from_far())
    }

    /// Returns the earliest time at which a packet on its way to the queue may leave.
    fn next_from_far(&self) -> Time {
        let Some((arrival, packet)) = self.from_far_receivers.first() else { return Time::NEVER };
        let bytes = Bytes(u64::from(packet.wire_bytes()));
        let on_line = self.fastest.map_or(Duration::ZERO, |rate| rate.time_for(bytes));
        arrival + on_line + self.lead
    }

    /// Removes a packet that has arrived at the other side by now. Returns when it was due, and its
    /// bytes, which are valid until the next call.
    #[inline]
    pub fn depart(&mut self, now: Time) -> Option<(Time, &[u8])> {
        let (due, packet) = self.delay.in_flight.leave(now)?;
        self.pool.remove(packet.buffer);
        let bytes = self.pool.bytes(packet.buffer);
        self.counters.delivered += 1;
        self.counters.delivered_bytes += bytes.len() as u64;
        Some((due, bytes))
    }

    /// `true` if the direction has a messenger.
    pub const fn has_messenger(&self) -> bool {
        self.messenger_tap.is_some()
    }

    /// Returns the time of the oldest message that has not left yet.
    #[inline]
    pub fn next_message(&self) -> Time {
        self.messenger_tap.as_ref().map_or(Time::NEVER, |messenger_tap| messenger_tap.next())
    }

    /// Returns the next arrival at the other side, as far as is known now.
    pub fn next_arrival(&self) -> Time {
        self.delay.in_flight.next()
    }

    /// Removes the oldest message. Returns its time, and its bytes, which are valid until the next
    /// call.
    pub fn message(&mut self) -> Option<(Time, &[u8])> {
        self.messenger_tap.as_mut()?.leave()
    }

    #[inline]
    fn next_sample_or_warmup(&self) -> Time {
        let warmup = if self.before.is_none() { self.warmup } else { Time::NEVER };
        self.next_sample.min(warmup)
    }

    /// Records counters at the end of the warm-up, or a row of the time series.
    #[cold]
    fn take_sample(&mut self, at: Time) {
        if self.before.is_none() && self.warmup <= at {
            self.before = Some(self.counted(at));
            self.line.iter_mut().for_each(Line::begin_counting);
            self.pool.watch(self.watched.len());
            return;
        }
        let counters = self.counted(at).link;
        let row = LinkSampleRow {
            quenches: self.quenches(),
            sent_bytes: Some(counters.delivered_bytes),
            capacity_bytes: self.capacity.as_mut().map(|capacity| capacity.bytes_by(at)),
            ..cwnd_link::sample(self.index as u32, at, &counters, self.line.as_ref())
        };
        self.live.publish(self.index, &row);
        self.samples.push(row);
        self.next_sample = self.sample.map_or(Time::NEVER, |interval| at + interval);
        if self.samples.len() == self.max_samples {
            // All columns but the instantaneous ones are sums so far, so that none is lost.
            let mut kept = false;
            self.samples.retain(|_| {
                kept = !kept;
                kept
            });
            self.sample = self.sample.map(|interval| interval * 2);
        }
    }

    /// Returns the number of packets in the queue, in the device and on the line.
    pub fn queued(&self) -> u64 {
        self.line.as_ref().map_or(0, Line::held)
    }

    /// Returns the number of packets that have yet to reach the queue.
    pub fn before_queue(&self) -> u64 {
        self.from_far_receivers.held()
    }

    /// Returns the number of all packets inside.
    pub fn held(&self) -> u64 {
        debug_assert_eq!(
            self.pool.held(),
            self.before_queue() + self.queued() + self.delay.in_flight.held()
        );
        self.pool.held()
    }

    /// Returns the number of messages that have not left yet.
    pub fn messages(&self) -> u64 {
        self.messenger_tap.as_ref().map_or(0, |messenger_tap| messenger_tap.held())
    }

    /// Returns the number of messages that the router has written about its packets.
    pub fn quenches(&self) -> u64 {
        self.messenger_tap.as_ref().map_or(0, |messenger_tap| messenger_tap.sent())
    }

    /// Returns the counters by now, and those at the end of the warm-up (zero before it).
    pub fn counters(&mut self, now: Time) -> (Counters, Counters) {
        (self.counted(now), self.before.clone().unwrap_or_default())
    }

    fn counted(&mut self, now: Time) -> Counters {
        let link = match &mut self.line {
            Some(line) => line.counters(now),
            None => self.counters.link.clone(),
        };
        Counters { link: link.without(self.delay.lost()), ..self.counters.clone() }
    }

    /// Returns the named counters of its queue, meter and messenger.
    pub fn counted_by_name(&self) -> Activity {
        let mut counted = Activity::default();
        if let Some(line) = &self.line {
            line.count(&mut |name, count| counted.add(name, count));
        }
        if let Some(messenger_tap) = &self.messenger_tap {
            messenger_tap.count(&mut |name, count| counted.add(name, count));
        }
        counted
    }

    /// Returns the distribution of the queueing delay after the warm-up.
    pub fn qdelay(&self) -> Histogram {
        self.line.as_ref().map(|line| line.qdelay().clone()).unwrap_or_default()
    }

    /// Returns the distributions of the queueing delay of watched packets after the warm-up.
    pub fn waits(&self) -> &[Buckets] {
        self.pool.waits()
    }

    /// Removes and returns the time series.
    pub fn take_samples(&mut self) -> LinkSamples {
        let mut samples = LinkSamples::default();
        core::mem::take(&mut self.samples).into_iter().for_each(|row| samples.push(row));
        samples
    }
}

/// Number of consecutive ticks of a queue without a packet, after which its clock is advanced in
/// one call.
const MAX_IDLE_TICKS: u32 = 1000;

/// Returns the highest rate of a line; `None` for a trace, which sends each packet at an instant,
/// and for an unlimited rate.
fn fastest(rate: &LinkRate) -> Option<Rate> {
    let known = !matches!(rate, LinkRate::Trace(_));
    known.then(|| rate.highest_bit_s().map(|rate| Rate(rate as u64))).flatten()
}
