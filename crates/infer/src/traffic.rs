//! Measurements of the path for a scenario: delivery rates, and losses by queueing delay.
//!
//! The data of the far end, the *server*, are counted as they arrive, behind the bottleneck. Those
//! of the near end are counted as acknowledgements report them, cumulatively or by SACK, and as
//! they were captured: connections with different round-trip times have ACKs at more than the
//! bottleneck's rate, and senders have bursts.

use std::collections::VecDeque;

use cwnd_packet::Ranges;
use cwnd_quantity::{Duration, Time};

use crate::connection::Connection;
use crate::direction::{Novelty, Placed};
use crate::headers::{Segment, flag};
use crate::rows::{QueueRows, RateRows};

/// Deliveries and time that a window of the delivery rate has at least. Fewer deliveries have an
/// error of their size; shorter times are those of interrupts and of merged packets.
const WINDOW: (usize, Duration) = (16, Duration::from_millis(2));
/// Maximum number of deliveries in a window; more are as many as 2 ms have at 100 Gbit/s.
const MAX_WINDOW: usize = 1 << 14;
/// Largest delivery that one acknowledgement reports, bytes; a larger number is a fault.
const MAX_DELIVERY: u64 = 1 << 24;
/// Width of the classes of rates: 1 %.
const RATE_CLASS: f64 = 0.01;
/// Lowest rate that is distinguished, bit/s, and number of classes, up to 10 Tbit/s.
const RATES: (f64, usize) = (1e3, 2303);
/// Width of the classes of queueing delays: 5 %.
const DELAY_CLASS: f64 = 0.05;
/// Delay up to which classes are of similar width, and number of classes, up to 80 s.
const DELAYS: (Duration, usize) = (Duration::from_micros(10), 320);
/// Time for which the longest queueing delay of a connection is that of all: they share the
/// bottleneck, and some of them never met an empty queue.
const HOLD: Duration = Duration::from_millis(100);

/// Measurements of data in one direction.
#[derive(Clone, Debug)]
struct Direction {
    /// Time of a delivery, and the bytes delivered by then, of the deliveries in the window.
    window: VecDeque<(Time, u64)>,
    delivered: u64,
    /// Bytes by the rate of the window that they ended.
    rates: Vec<u64>,
    /// Longest queueing delay of late, and its time.
    queue: (Time, Duration),
    /// Segments, and lost segments, by queueing delay.
    queues: Vec<(u64, u64)>,
}

impl Direction {
    fn new() -> Self {
        Self {
            window: VecDeque::new(),
            delivered: 0,
            rates: vec![0; RATES.1],
            queue: (Time::ZERO, Duration::ZERO),
            queues: vec![(0, 0); DELAYS.1],
        }
    }

    fn deliver(&mut self, at: Time, bytes: u64) {
        let (deliveries, span) = WINDOW;
        self.delivered += bytes;
        self.window.push_back((at, self.delivered));
        let long = |start: &(Time, u64)| at.since(start.0) >= span;
        while self.window.len() > MAX_WINDOW
            || (self.window.len() > deliveries + 1 && self.window.get(1).is_some_and(long))
        {
            self.window.pop_front();
        }
        if self.window.len() > deliveries
            && let Some(&start) = self.window.front().filter(|start| long(start))
        {
            let bits = 8.0 * (self.delivered - start.1) as f64;
            let class = (bits / at.since(start.0).as_secs_f64() / RATES.0).ln() / RATE_CLASS;
            self.rates[(class.max(0.0) as usize).min(RATES.1 - 1)] += bytes;
        }
    }

    /// Counts packets sent and lost of a connection with this queueing delay.
    fn send(&mut self, at: Time, delay: Duration, packets: (u64, u64)) {
        if delay >= self.queue.1 || at.since(self.queue.0) > HOLD {
            self.queue = (at, delay);
        }
        let delay = self.queue.1;
        let class = (delay.0 as f64 / DELAYS.0.0 as f64).ln_1p() / DELAY_CLASS;
        let (segments, lost) = &mut self.queues[(class as usize).min(DELAYS.1 - 1)];
        *segments += packets.0;
        *lost += packets.1;
    }
}

/// Measurements of all connections of a capture.
#[derive(Debug)]
pub struct Traffic {
    server: Direction,
    client: Direction,
    /// Data of the client as captured, before or behind the bottleneck.
    client_data: Direction,
    /// Bytes of the client that were acknowledged, by place of the open connection.
    acknowledged: Vec<Ranges>,
}

impl Default for Traffic {
    fn default() -> Self {
        let [server, client, client_data] = [(); 3].map(|()| Direction::new());
        Self { server, client, client_data, acknowledged: Vec::new() }
    }
}

impl Traffic {
    /// Forgets the connection at a place, since another one begins there.
    pub fn open(&mut self, place: usize) {
        self.acknowledged.resize(self.acknowledged.len().max(place + 1), Ranges::new());
        self.acknowledged[place] = Ranges::new();
    }

    /// Processes a segment `of` a connection that was processed there.
    pub fn on_segment(
        &mut self,
        place: usize,
        of: &Connection,
        segment: &Segment,
        placed: Option<Placed>,
    ) {
        let server = of.server();
        let far = &of.directions[server];
        let by_server = segment.from == of.ends[server];
        let from = &of.directions[usize::from(segment.from != of.ends[0])];
        let full = u64::from(from.full_segment().max(1));
        if by_server {
            self.on_ack(place, of, segment, 1 - server);
        }
        let Some(Placed { start, end, novelty, missing }) = placed else { return };
        // A network card may have merged packets.
        let packets = (end - start).div_ceil(full).max(1);
        let bytes = u64::from(segment.length) + packets * u64::from(segment.headers);
        let holes = if novelty == Novelty::BeyondHole { missing.div_ceil(full) } else { 0 };
        if by_server {
            self.server.deliver(segment.at, bytes);
            if far.rtt.is_known() {
                self.server.send(segment.at, far.rtt.last - far.rtt.min, (packets, holes));
            }
            return;
        }
        self.client_data.deliver(segment.at, bytes);
        let (last, least) = far.ack_rtt;
        if least > Duration::ZERO {
            // The queue may be on either side of the capture. The last sample is of data about a
            // round trip earlier, as the loss of data sent again.
            let least = if far.rtt.is_known() { least.min(far.rtt.min) } else { least };
            let near =
                if from.rtt.is_known() { from.rtt.last - from.rtt.min } else { Duration::ZERO };
            let again = if novelty == Novelty::Duplicate { packets } else { holes };
            self.client.send(segment.at, last - least + near, (packets, again));
        }
    }

    /// Counts the bytes of the client that an acknowledgement reports for the first time.
    fn on_ack(&mut self, place: usize, of: &Connection, segment: &Segment, client: usize) {
        let sender = &of.directions[client];
        let Some(acked) = sender.position(segment.ack).filter(|_| segment.has(flag::ACK)) else {
            return;
        };
        let known = &mut self.acknowledged[place];
        let mut bytes = if acked > 0 { known.insert(0, acked).1 } else { 0 };
        for &(start, past) in segment.blocks.iter().flatten() {
            let range = sender.position(start).zip(sender.position(past));
            if let Some((start, past)) = range.filter(|&(start, past)| start < past) {
                bytes += known.insert(start, past).1;
            }
        }
        if (1..=MAX_DELIVERY).contains(&bytes) {
            let packets = bytes.div_ceil(u64::from(sender.full_segment().max(1)));
            self.client.deliver(segment.at, bytes + packets * u64::from(segment.headers));
        }
    }

    /// Adds the measurements of another capture.
    pub fn add(&mut self, other: &Self) {
        let own = [&mut self.server, &mut self.client, &mut self.client_data];
        for (sum, more) in own.into_iter().zip([&other.server, &other.client, &other.client_data]) {
            sum.rates.iter_mut().zip(&more.rates).for_each(|(sum, more)| *sum += more);
            for (sum, more) in sum.queues.iter_mut().zip(&more.queues) {
                *sum = (sum.0 + more.0, sum.1 + more.1);
            }
        }
    }

    /// Adds the rows of all classes with data to tables.
    pub fn write(&self, rates: &mut RateRows, queues: &mut QueueRows) {
        let ways = [
            (true, true, &self.server),
            (false, false, &self.client),
            (false, true, &self.client_data),
        ];
        for (by_server, data, direction) in ways {
            for (class, &bytes) in direction.rates.iter().enumerate().filter(|(_, b)| **b > 0) {
                let rate = RATES.0 * ((class as f64 + 0.5) * RATE_CLASS).exp();
                rates.push(by_server, data, rate, bytes);
            }
            for (class, &(segments, lost)) in direction.queues.iter().enumerate() {
                if segments > 0 {
                    let middle = ((class as f64 + 0.5) * DELAY_CLASS).exp_m1();
                    queues.push(by_server, DELAYS.0.as_secs_f64() * 1e3 * middle, segments, lost);
                }
            }
        }
    }
}
