//! One direction of a router: queue, line, propagation, and what was counted there.

use cwnd_aqm::{QueueParams, Reason};
use cwnd_scenario::LinkRate;
use cwnd_trace::{Histogram, LinkSampleRow, LinkSamples, Name};
use cwnd_units::{Duration, Streams, Time};

use crate::capture::Capture;
use crate::config::{Config, Direction};
use crate::delay::Delay;
use crate::line::{Around, Line};
use crate::packet::{flow_hash, parse};
use crate::pool::{Packet, Pool};
use crate::report::Counters;

/// One direction at work. Its clock is what it is told: what was due earlier is done as of when it was due.
#[derive(Debug)]
pub struct Lane {
    index: usize,
    line: Option<Line>,
    delay: Delay,
    pool: Pool,
    counters: Counters,
    /// What was counted before the end of the warm-up.
    before: Option<Counters>,
    warmup: Time,
    /// Whether the queue tells flows apart.
    needs_flows: bool,
    sample: Option<Duration>,
    next_sample: Time,
    samples: LinkSamples,
}

impl Lane {
    pub fn new(index: usize, config: &Config) -> Self {
        let of: &Direction = &config.directions[index];
        let random = Streams::new(config.seed);
        Self {
            index,
            line: Line::new(of, &random),
            delay: Delay::new(of, &random),
            pool: Pool::default(),
            counters: Counters::default(),
            before: None,
            warmup: Time(config.warmup.0),
            needs_flows: matches!(of.queue, QueueParams::FqCoDel(_))
                && of.rate != LinkRate::Unlimited,
            sample: config.sample.filter(|&interval| interval > Duration::ZERO),
            next_sample: if config.sample.is_some() { Time::ZERO } else { Time::NEVER },
            samples: LinkSamples::default(),
        }
    }

    /// Bytes come in. What is no packet is counted and goes no further.
    #[inline]
    pub fn arrive(&mut self, now: Time, bytes: &[u8], capture: Option<&mut Capture>) {
        let Some(packet) = parse(bytes) else {
            self.counters.malformed += 1;
            return;
        };
        self.counters.arrived += 1;
        self.counters.largest = self.counters.largest.max(packet.length as u32);
        let hash = if self.needs_flows { flow_hash(&packet) } else { 0 };
        let bytes = &bytes[..packet.length];
        let packet = self.pool.put(bytes, packet.ecn, hash);
        match &mut self.line {
            None => self.sent(now, packet, capture),
            Some(line) => {
                let mut around = Around {
                    counters: &mut self.counters,
                    pool: &mut self.pool,
                    capture,
                    lane: self.index,
                };
                line.arrive(now, packet, &mut around);
            }
        }
    }

    /// Does everything that was due until `now`, in order.
    #[inline]
    pub fn advance(&mut self, now: Time, mut capture: Option<&mut Capture>) {
        let mut idle_ticks = 0;
        loop {
            let line = self.line.as_ref().map_or(Time::NEVER, Line::next);
            let at = line.min(self.next_note());
            if at > now || at == Time::NEVER {
                return;
            }
            if self.next_note() <= at {
                self.take_note(at);
                continue;
            }
            let Some(line) = &mut self.line else { return };
            let mut around = Around {
                counters: &mut self.counters,
                pool: &mut self.pool,
                capture: capture.as_deref_mut(),
                lane: self.index,
            };
            if idle_ticks > MOST_TICKS {
                // The queue's clock ticks faster than anything happens: it catches up in one call, or as far as it will.
                line.set_clock(now);
                idle_ticks = 0;
                continue;
            }
            match line.advance(at, &mut around) {
                Some(packet) => {
                    idle_ticks = 0;
                    self.sent(at, packet, capture.as_deref_mut());
                }
                None => idle_ticks += 1,
            }
        }
    }

    /// The last byte of a packet has left the line.
    #[inline]
    fn sent(&mut self, now: Time, packet: Packet, capture: Option<&mut Capture>) {
        let bytes = self.pool.bytes(packet.buffer);
        self.counters.sent_bytes += bytes.len() as u64;
        let under_way = self.delay.enter(now, packet.buffer, bytes);
        let has_payload = parse(bytes).is_some_and(|p| p.has_payload);
        if let Some(capture) = capture {
            if under_way {
                capture.passed(self.index, now, bytes, self.pool.marked(packet.buffer));
            } else {
                capture.dropped(self.index, now, bytes, Reason::LinkLoss);
            }
        }
        if under_way {
            self.counters.sent += 1;
            self.counters.sent_data += u64::from(has_payload);
        } else {
            self.counters.drops[Reason::LinkLoss as usize] += 1;
            self.pool.remove(packet.buffer);
        }
    }

    /// When a packet leaves next, as far as is known now: an earlier call gives nothing.
    #[inline]
    pub fn next_exit(&self) -> Time {
        let line = self.line.as_ref().map_or(Time::NEVER, Line::free_at);
        let from_line = if line == Time::NEVER { line } else { line + self.delay.shortest() };
        self.delay.next().min(from_line)
    }

    /// A packet that has arrived at the other end by now: when it was due, and its bytes until the next call.
    #[inline]
    pub fn depart(&mut self, now: Time) -> Option<(Time, &[u8])> {
        let (due, buffer) = self.delay.leave(now)?;
        self.pool.remove(buffer);
        let bytes = self.pool.bytes(buffer);
        self.counters.delivered += 1;
        self.counters.delivered_bytes += bytes.len() as u64;
        Some((due, bytes))
    }

    #[inline]
    fn next_note(&self) -> Time {
        let warmup = if self.before.is_none() { self.warmup } else { Time::NEVER };
        self.next_sample.min(warmup)
    }

    /// The end of the warm-up, or a row of the time series.
    #[cold]
    fn take_note(&mut self, at: Time) {
        if self.before.is_none() && self.warmup <= at {
            if let Some(line) = &mut self.line {
                line.count_backlog(at, &mut self.counters);
                line.begin_counting();
            }
            self.before = Some(self.counters);
            return;
        }
        let line = self.line.as_ref();
        let backlog = line.map(Line::backlog).unwrap_or_default();
        self.samples.push(LinkSampleRow {
            time_s: at.as_secs_f64(),
            link_id: self.index as u32,
            link: Name(self.index as u32),
            qlen_pkts: backlog.packets,
            qlen_bytes: backlog.bytes,
            sojourn_us: line.and_then(Line::last_sojourn).map(|d| d.0 as f64 / 1000.0),
            enq: self.counters.arrived,
            deq: self.counters.sent,
            drop: self.counters.drops.iter().sum(),
            mark: self.counters.marks.iter().sum(),
            aqm_prob: line.and_then(Line::probability),
        });
        self.next_sample = self.sample.map_or(Time::NEVER, |interval| at + interval);
    }

    /// Packets in the queue, in the device and on the line.
    pub fn queued(&self) -> u64 {
        self.line.as_ref().map_or(0, Line::held)
    }

    /// All packets inside.
    pub fn held(&self) -> u64 {
        debug_assert_eq!(self.pool.held(), self.queued() + self.delay.held());
        self.pool.held()
    }

    /// What was counted until now, and until the end of the warm-up.
    pub fn counters(&mut self, now: Time) -> (Counters, Counters) {
        if let Some(line) = &mut self.line {
            line.count_backlog(now, &mut self.counters);
        }
        (self.counters, self.before.unwrap_or_default())
    }

    /// Distribution of the queueing delay after the warm-up.
    pub fn qdelay(&self) -> Histogram {
        self.line.as_ref().map(|line| line.qdelay().clone()).unwrap_or_default()
    }

    /// Takes the time series.
    pub fn take_samples(&mut self) -> LinkSamples {
        core::mem::take(&mut self.samples)
    }
}

/// So often in a row a line may do something without sending a packet, before its queue's clock is set in one call.
const MOST_TICKS: u32 = 1000;
