//! A queue and the transmitter behind it: what the simulator's lines do, to packets that have bytes.

use std::collections::VecDeque;

use cwnd_aqm::{AnyQdisc, Backlog, Observer, Qdisc, Reason};
use cwnd_link::Slots;
use cwnd_scenario::LinkRate;
use cwnd_trace::Histogram;
use cwnd_units::{Duration, LinkFacts, Rate, Serialiser, Streams, Time};

use crate::capture::Capture;
use crate::config::Direction;
use crate::pool::{Packet, Pool};
use crate::report::Counters;

/// A queue discipline and the line it feeds: one packet is on the line, the others wait.
#[derive(Debug)]
pub struct Line {
    queue: AnyQdisc<Packet>,
    pace: Pace,
    /// Rates to come, the next one last.
    changes: Vec<(Time, Rate)>,
    on_line: Option<Packet>,
    device: VecDeque<Packet>,
    device_room: usize,
    /// When the line will be free, or has its next opportunity; `Time::NEVER` when idle.
    free_at: Time,
    qdelay: Histogram,
    last_sojourn: Option<Duration>,
    area_until: Time,
}

#[derive(Debug)]
enum Pace {
    Rate(Serialiser),
    Slots { slots: Slots, left: u32 },
}

/// What a line works on: its counters, the bytes of its packets, and who else is told.
pub struct Around<'a> {
    pub counters: &'a mut Counters,
    pub pool: &'a mut Pool,
    pub capture: Option<&'a mut Capture>,
    /// Index of the direction, for the capture.
    pub lane: usize,
}

impl Observer<Packet> for Around<'_> {
    #[inline]
    fn dropped(&mut self, now: Time, packet: &Packet, reason: Reason) {
        self.counters.drops[reason as usize] += 1;
        if let Some(capture) = &mut self.capture {
            capture.dropped(self.lane, now, self.pool.bytes(packet.buffer), reason);
        }
        self.pool.remove(packet.buffer);
    }

    #[inline]
    fn marked(&mut self, _now: Time, packet: &Packet, reason: Reason) {
        self.counters.marks[reason as usize] += 1;
        self.pool.mark(packet.buffer, reason);
    }
}

impl Line {
    /// An idle line with an empty queue; `None` where the rate is unlimited.
    pub fn new(of: &Direction, random: &Streams) -> Option<Self> {
        let rng = random.named(&format!("link.{}.queue", of.name));
        let (pace, rate, changes) = match &of.rate {
            LinkRate::Unlimited => return None,
            LinkRate::Steps { initial, changes } => {
                let changes = changes.iter().rev().copied().collect();
                (Pace::Rate(Serialiser::new(*initial)), *initial, changes)
            }
            LinkRate::Trace(at_ms) => {
                let slots = Slots::new(at_ms.clone());
                let rate = Rate((slots.mean_bit_s() as u64).max(1));
                (Pace::Slots { slots, left: 0 }, rate, Vec::new())
            }
        };
        let queue = of.queue.build(&LinkFacts { rate, bdp_rtt: of.bdp_rtt }, rng);
        Some(Self {
            queue,
            pace,
            changes,
            on_line: None,
            device: VecDeque::new(),
            device_room: of.device_queue as usize,
            free_at: Time::NEVER,
            qdelay: Histogram::default(),
            last_sojourn: None,
            area_until: Time::ZERO,
        })
    }

    /// A packet comes.
    #[inline]
    pub fn arrive(&mut self, now: Time, packet: Packet, around: &mut Around<'_>) {
        self.count_backlog(now, around.counters);
        self.queue.enqueue(now, packet, around);
        if self.free_at != Time::NEVER {
            self.fill_device(now, around);
            return;
        }
        match &mut self.pace {
            Pace::Rate(serialiser) => {
                serialiser.idle();
                self.begin_next(now, around);
            }
            Pace::Slots { slots, .. } => {
                if self.queue.backlog().packets > 0 {
                    self.free_at = slots.at_or_after(now);
                }
            }
        }
    }

    /// When the line itself has something to do: a packet has been sent, the queue's clock ticks, the rate changes.
    #[inline]
    pub fn next(&self) -> Time {
        let timer = self.queue.next_timer().unwrap_or(Time::NEVER);
        self.free_at.min(timer).min(self.next_change())
    }

    /// When the line is free next.
    #[inline]
    pub const fn free_at(&self) -> Time {
        self.free_at
    }

    /// Does the periodic work of the queue up to `now`, or up to what else comes before, in one call.
    pub fn set_clock(&mut self, now: Time) {
        self.queue.on_timer(now.min(self.free_at).min(self.next_change()));
    }

    #[inline]
    fn next_change(&self) -> Time {
        self.changes.last().map_or(Time::NEVER, |&(at, _)| at)
    }

    /// Does one thing that is due now; gives the packet that has been sent, if one has.
    #[inline]
    pub fn advance(&mut self, now: Time, around: &mut Around<'_>) -> Option<Packet> {
        if self.free_at <= now {
            return self.on_free(now, around);
        }
        if self.next_change() <= now {
            self.change_rate(now);
        } else {
            self.queue.on_timer(now);
        }
        None
    }

    #[inline]
    fn on_free(&mut self, now: Time, around: &mut Around<'_>) -> Option<Packet> {
        if let Pace::Slots { .. } = self.pace {
            return self.use_slot(now, around);
        }
        let sent = self.on_line.take();
        self.count_backlog(now, around.counters);
        self.begin_next(now, around);
        sent
    }

    #[inline]
    fn begin_next(&mut self, now: Time, around: &mut Around<'_>) {
        self.free_at = match (self.next_packet(now, around), &mut self.pace) {
            (Some(packet), Pace::Rate(serialiser)) => {
                let ends = now + serialiser.next(cwnd_aqm::Packet::wire_bytes(&packet));
                self.on_line = Some(packet);
                ends
            }
            _ => Time::NEVER,
        };
    }

    #[inline]
    fn next_packet(&mut self, now: Time, around: &mut Around<'_>) -> Option<Packet> {
        if self.device_room == 0 {
            return self.take_from_queue(now, around);
        }
        let next = self.device.pop_front().or_else(|| self.take_from_queue(now, around));
        self.fill_device(now, around);
        next
    }

    #[inline]
    fn fill_device(&mut self, now: Time, around: &mut Around<'_>) {
        while self.device.len() < self.device_room
            && let Some(packet) = self.take_from_queue(now, around)
        {
            self.device.push_back(packet);
        }
    }

    #[inline]
    fn take_from_queue(&mut self, now: Time, around: &mut Around<'_>) -> Option<Packet> {
        let (packet, since) = self.queue.dequeue(now, around)?;
        let sojourn = now.since(since);
        self.qdelay.add(sojourn);
        self.last_sojourn = Some(sojourn);
        Some(packet)
    }

    /// One slot of a trace: at most one packet leaves in a call; what cannot be used of a slot is lost.
    fn use_slot(&mut self, now: Time, around: &mut Around<'_>) -> Option<Packet> {
        self.count_backlog(now, around.counters);
        let mut sent = None;
        loop {
            if self.on_line.is_none() {
                let next = self.next_packet(now, around);
                if let (Some(packet), Pace::Slots { left, .. }) = (&next, &mut self.pace) {
                    *left = cwnd_aqm::Packet::wire_bytes(packet);
                }
                self.on_line = next;
            }
            let Pace::Slots { slots, left } = &mut self.pace else { return None };
            if self.on_line.is_none() {
                slots.discard();
                self.free_at = Time::NEVER;
                break;
            }
            if sent.is_some() && slots.remaining() > 0 {
                break;
            }
            *left -= slots.take(*left);
            if *left > 0 {
                self.free_at = slots.after();
                break;
            }
            sent = self.on_line.take();
        }
        sent
    }

    /// What remains of the packet on the line goes at the new rate.
    fn change_rate(&mut self, now: Time) {
        let Some((_, rate)) = self.changes.pop() else { return };
        let Pace::Rate(serialiser) = &mut self.pace else { return };
        let old = serialiser.rate();
        *serialiser = Serialiser::new(rate);
        if self.free_at != Time::NEVER {
            let left =
                u128::from(self.free_at.since(now).0) * u128::from(old.0) / u128::from(rate.0);
            self.free_at = now + Duration(u64::try_from(left).unwrap_or(u64::MAX));
        }
    }

    /// Brings the integrals of the backlog up to `now`; called before the backlog changes.
    #[inline]
    pub fn count_backlog(&mut self, now: Time, counters: &mut Counters) {
        let Backlog { packets, bytes } = self.queue.backlog();
        if packets > 0 {
            let span = u128::from(now.since(self.area_until).0);
            counters.packet_time += u128::from(packets) * span;
            counters.byte_time += u128::from(bytes) * span;
        }
        self.area_until = now;
    }

    /// The warm-up is over: the distribution of delays begins anew.
    pub fn begin_counting(&mut self) {
        self.qdelay.clear();
    }

    /// What waits.
    pub fn backlog(&self) -> Backlog {
        self.queue.backlog()
    }

    /// Packets in the queue, in the device and on the line.
    pub fn held(&self) -> u64 {
        self.backlog().packets + self.device.len() as u64 + u64::from(self.on_line.is_some())
    }

    /// Distribution of the queueing delay.
    pub const fn qdelay(&self) -> &Histogram {
        &self.qdelay
    }

    /// Queueing delay of the last packet that left the queue.
    pub const fn last_sojourn(&self) -> Option<Duration> {
        self.last_sojourn
    }

    /// Drop or mark probability of the queue discipline, if it has one.
    pub fn probability(&self) -> Option<f64> {
        self.queue.probability()
    }
}
