//! Line: a queue and its transmitter, its polling interface, and a log of the queue's verdicts.

use core::fmt;
use std::collections::VecDeque;

use cwnd_aqm::{AnyQdisc, Backlog, Context, Meter, Outcome, Qdisc, Reason, Verdict};
use cwnd_packet::{CongestionHeader, Ecn, Guidance};
use cwnd_quantity::{Duration, Rate, Serialiser, Time};
use cwnd_tables::Histogram;

use crate::counters::{Counters, Packet};
use crate::timeline::{Slots, Timeline};

/// A queue discipline and the transmitter that it feeds: one packet is in transmission, the others
/// wait in the queue or in the device below it.
#[derive(Debug)]
pub struct Line<P> {
    queue: AnyQdisc<P>,
    pace: Pace,
    /// Rate changes to come.
    changes: Timeline<Rate>,
    in_transmission: Option<P>,
    /// Packets that the device below the queue has dequeued in advance, at most `device_limit`.
    device: VecDeque<P>,
    device_limit: usize,
    /// End of the current transmission, or time of the next sending opportunity; `Time::NEVER` when
    /// idle.
    free_at: Time,
    counters: Counters,
    qdelay: Histogram,
    last_sojourn: Option<Duration>,
    /// Time up to which `counters` integrate the backlog.
    integrated_until: Time,
    /// Verdicts of the queue for readers; `None` without readers.
    verdicts: Option<VerdictLog<P>>,
}

/// Timing of the transmitter.
#[derive(Debug)]
pub enum Pace {
    /// Transmission at a bit rate.
    Rate(Serialiser),
    /// Transmission in the slots of a trace, each of a fixed number of bytes.
    Slots {
        /// Slots of the trace.
        slots: Slots,
        /// Unsent bytes of the packet in transmission.
        left: u32,
    },
}

/// Context for the queue that counts verdicts, keeps them for readers, and forwards all calls to
/// the owner of the packets.
struct VerdictRecorder<'a, P, O> {
    counters: &'a mut Counters,
    verdicts: &'a mut Option<VerdictLog<P>>,
    context: &'a mut O,
}

impl<P: Packet, O: Context<P>> Context<P> for VerdictRecorder<'_, P, O> {
    #[inline]
    fn ecn(&self, packet: &P) -> Ecn {
        self.context.ecn(packet)
    }

    #[inline]
    fn set_ecn(&mut self, packet: &mut P, ecn: Ecn) {
        self.context.set_ecn(packet, ecn);
    }

    #[inline]
    fn header<'a>(&'a mut self, packet: &'a mut P) -> Option<&'a mut CongestionHeader> {
        self.context.header(packet)
    }

    fn set_identification(&mut self, packet: &mut P, identification: u16) -> bool {
        self.context.set_identification(packet, identification)
    }

    #[inline]
    fn dropped(&mut self, now: Time, packet: &P, reason: Reason) {
        self.counters.drops.add(reason, 1);
        if let Some(verdicts) = self.verdicts {
            let (at, what) = (now, Outcome::Dropped);
            verdicts.push(Verdict { at, packet: *packet, what, reason });
        }
        self.context.dropped(now, packet, reason);
    }

    #[inline]
    fn marked(&mut self, now: Time, packet: &P, reason: Reason, already: bool) {
        self.counters.marks.add(reason, 1);
        if let Some(verdicts) = self.verdicts {
            let (at, what) = (now, Outcome::Marked { already });
            verdicts.push(Verdict { at, packet: *packet, what, reason });
        }
        self.context.marked(now, packet, reason, already);
    }
}

impl<P: Packet> Line<P> {
    /// Creates an idle line with an empty queue.
    pub fn new(queue: AnyQdisc<P>, pace: Pace) -> Self {
        Self {
            queue,
            pace,
            changes: Timeline::new(Vec::new(), None),
            in_transmission: None,
            device: VecDeque::new(),
            device_limit: 0,
            free_at: Time::NEVER,
            counters: Counters::default(),
            qdelay: Histogram::default(),
            last_sojourn: None,
            integrated_until: Time::ZERO,
            verdicts: None,
        }
    }

    /// Adds a device that dequeues up to `packets` packets in advance.
    pub fn with_device_queue(self, packets: u32) -> Self {
        Self { device_limit: packets as usize, ..self }
    }

    /// Sets the rate changes.
    pub fn with_changes(self, changes: Timeline<Rate>) -> Self {
        Self { changes, ..self }
    }

    /// Adds a meter at the queue; of several, the last one added sees arrivals first and
    /// departures last.
    #[must_use]
    pub fn with_meter(self, mut meter: Box<dyn Meter<P>>) -> Self
    where
        P: fmt::Debug + Send + 'static,
    {
        let rate = match &self.pace {
            Pace::Rate(serialiser) => serialiser.rate(),
            Pace::Slots { slots, .. } => slots.mean_rate(),
        };
        meter.on_rate(Time::ZERO, rate);
        Self { queue: self.queue.with_meter(meter), ..self }
    }

    /// Replaces the queue, while no packet waits.
    #[must_use]
    pub fn with_queue(self, queue: AnyQdisc<P>) -> Self {
        debug_assert_eq!(self.held(), 0, "a queue is replaced before packets come");
        Self { queue, ..self }
    }

    /// Takes in a packet. Returns the time for the call of [`Line::on_free`] if the line was idle
    /// and the queue has not dropped the packet.
    #[inline]
    pub fn arrive(&mut self, now: Time, packet: P, context: &mut impl Context<P>) -> Option<Time> {
        self.counters.arrived += 1;
        self.count_backlog(now);
        let mut recorder =
            VerdictRecorder { counters: &mut self.counters, verdicts: &mut self.verdicts, context };
        self.queue.enqueue(now, packet, &mut recorder);
        if self.free_at != Time::NEVER {
            self.fill_device(now, context);
            return None;
        }
        match &mut self.pace {
            Pace::Rate(serialiser) => serialiser.reset(),
            Pace::Slots { slots, .. } => {
                if self.queue.backlog().packets > 0 {
                    self.free_at = slots.at_or_after(now);
                }
                return self.next_free();
            }
        }
        self.begin_next(now, context);
        self.next_free()
    }

    /// Ends the transmission due at `now`; returns the packet sent. Returns `None` if the rate has
    /// changed since the call was scheduled, so that `now` is not [`Line::free_at`], and if a slot
    /// of a trace completes no packet.
    #[inline]
    pub fn on_free(&mut self, now: Time, context: &mut impl Context<P>) -> Option<P> {
        if now != self.free_at {
            return None;
        }
        if let Pace::Slots { .. } = self.pace {
            return self.use_slot(now, context);
        }
        let sent = self.in_transmission.take();
        if let Some(packet) = sent {
            self.counters.count_departure(&packet);
        }
        self.count_backlog(now);
        self.begin_next(now, context);
        sent
    }

    /// End of the current transmission, or time of the next sending opportunity; `Time::NEVER` when
    /// idle.
    #[inline]
    pub const fn free_at(&self) -> Time {
        self.free_at
    }

    /// Time for the next call of [`Line::on_free`]; `None` when idle.
    #[inline]
    pub fn next_free(&self) -> Option<Time> {
        (self.free_at != Time::NEVER).then_some(self.free_at)
    }

    #[inline]
    fn begin_next(&mut self, now: Time, context: &mut impl Context<P>) {
        self.free_at = match (self.next_packet(now, context), &mut self.pace) {
            (Some(packet), Pace::Rate(serialiser)) => {
                let ends = now + serialiser.next(packet.wire_bytes());
                self.in_transmission = Some(packet);
                ends
            }
            _ => Time::NEVER,
        };
    }

    /// Takes the packet to transmit next; the device then dequeues others up to its limit.
    #[inline]
    fn next_packet(&mut self, now: Time, context: &mut impl Context<P>) -> Option<P> {
        if self.device_limit == 0 {
            return self.take_from_queue(now, context);
        }
        let next = self.device.pop_front().or_else(|| self.take_from_queue(now, context));
        self.fill_device(now, context);
        next
    }

    #[inline]
    fn fill_device(&mut self, now: Time, context: &mut impl Context<P>) {
        while self.device.len() < self.device_limit
            && let Some(packet) = self.take_from_queue(now, context)
        {
            self.device.push_back(packet);
        }
    }

    #[inline]
    fn take_from_queue(&mut self, now: Time, context: &mut impl Context<P>) -> Option<P> {
        let mut recorder =
            VerdictRecorder { counters: &mut self.counters, verdicts: &mut self.verdicts, context };
        let (packet, since) = self.queue.dequeue(now, &mut recorder)?;
        let sojourn = now.since(since);
        self.qdelay.add(sojourn);
        self.last_sojourn = Some(sojourn);
        context.waited(&packet, sojourn);
        Some(packet)
    }

    /// Uses one slot of a trace.
    ///
    /// At most one packet leaves per call: while bytes of the slot remain, the line is free again
    /// at the same instant. Bytes that no packet can use are lost.
    fn use_slot(&mut self, now: Time, context: &mut impl Context<P>) -> Option<P> {
        self.count_backlog(now);
        let mut sent = None;
        loop {
            if self.in_transmission.is_none() {
                let next = self.next_packet(now, context);
                if let (Some(packet), Pace::Slots { left, .. }) = (&next, &mut self.pace) {
                    *left = packet.wire_bytes();
                }
                self.in_transmission = next;
            }
            let Pace::Slots { slots, left } = &mut self.pace else { return None };
            if self.in_transmission.is_none() {
                slots.discard();
                self.free_at = Time::NEVER;
                break;
            }
            if sent.is_some() && slots.remaining() > 0 {
                // Another packet may fit this slot: the next call is at the same instant.
                break;
            }
            *left -= slots.take(*left);
            if *left > 0 {
                self.free_at = slots.after();
                break;
            }
            sent = self.in_transmission.take();
            if let Some(packet) = sent {
                self.counters.count_departure(&packet);
            }
        }
        sent
    }

    /// Integrates the backlog up to `now`; must be called before the backlog changes.
    #[inline]
    fn count_backlog(&mut self, now: Time) {
        let Backlog { packets, bytes } = self.queue.backlog();
        if packets > 0 {
            let span = u128::from(now.since(self.integrated_until).0);
            self.counters.packet_time += u128::from(packets) * span;
            self.counters.byte_time += u128::from(bytes) * span;
        }
        self.integrated_until = now;
    }

    /// Time of the next rate change; `None` without one.
    #[inline]
    pub fn next_change(&self) -> Option<Time> {
        self.changes.next()
    }

    /// Takes the next rate change, to which the rest of the packet in transmission is rescaled.
    /// Returns the new time for [`Line::on_free`] if a transmission is going on.
    pub fn on_change(&mut self, now: Time) -> Option<Time> {
        let rate = self.changes.take()?;
        let Pace::Rate(serialiser) = &mut self.pace else { return None };
        let old = serialiser.rate();
        *serialiser = Serialiser::new(rate);
        self.queue.on_rate(now, rate);
        if self.free_at == Time::NEVER {
            return None;
        }
        let left = u128::from(self.free_at.since(now).0) * u128::from(old.0) / u128::from(rate.0);
        self.free_at = now + Duration(u64::try_from(left).unwrap_or(u64::MAX));
        Some(self.free_at)
    }

    /// Does the periodic work of the queue discipline.
    pub fn on_timer(&mut self, now: Time) {
        self.queue.on_timer(now);
    }

    /// Time of the queue discipline's next periodic work; `None` without one.
    #[inline]
    pub fn next_timer(&self) -> Option<Time> {
        self.queue.next_timer()
    }

    /// Adds a reader of the queue's verdicts from now on.
    pub fn reader(&mut self) -> Reader {
        self.verdicts.get_or_insert_with(VerdictLog::new).reader()
    }

    /// `true` if some reader has not read all verdicts of the queue.
    pub fn has_unread(&self) -> bool {
        self.verdicts.as_ref().is_some_and(VerdictLog::has_unread)
    }

    /// Returns the next verdict that this reader has not read, or `None`; unread verdicts are kept.
    pub fn read(&mut self, reader: Reader) -> Option<Verdict<P>> {
        self.verdicts.as_mut()?.read(reader)
    }

    /// Packets and bytes waiting in the queue.
    pub fn backlog(&self) -> Backlog {
        self.queue.backlog()
    }

    /// Number of packets in the queue, in the device and in transmission.
    pub fn held(&self) -> u64 {
        self.queue.backlog().packets
            + self.device.len() as u64
            + u64::from(self.in_transmission.is_some())
    }

    /// Passes each further named counter of the queue, besides drops and marks, to `each`.
    pub fn count(&self, each: &mut dyn FnMut(&'static str, u64)) {
        self.queue.count(each);
    }

    /// Counters until `now`.
    pub fn counters(&mut self, now: Time) -> Counters {
        self.count_backlog(now);
        self.counters.clone()
    }

    /// Distribution of the queueing delay since the start, or the last [`Line::begin_counting`].
    pub const fn qdelay(&self) -> &Histogram {
        &self.qdelay
    }

    /// Restarts the distribution of the queueing delay at the end of the warm-up.
    pub fn begin_counting(&mut self) {
        self.qdelay.clear();
    }

    /// Queueing delay of the last packet dequeued; `None` before the first.
    pub const fn last_sojourn(&self) -> Option<Duration> {
        self.last_sojourn
    }

    /// Drop or mark probability of the queue discipline, if it has one.
    pub fn probability(&self) -> Option<f64> {
        self.queue.probability()
    }

    /// Feedback that a meter at the queue gives to senders; `None` without such a meter.
    pub fn guidance(&self) -> Option<Guidance> {
        self.queue.guidance()
    }
}

/// Polling interface, for owners without an event queue.
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

/// Handle of a reader of a line's verdicts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reader(usize);

/// Log of the verdicts of a queue in order, for any number of readers.
///
/// Each reader has its own position. The log keeps all that the slowest reader has not read, so no
/// reader misses a verdict.
#[derive(Debug)]
pub(crate) struct VerdictLog<P> {
    unread: VecDeque<Verdict<P>>,
    /// Number of verdicts before the first one unread.
    discarded: u64,
    /// Position of each reader, counted from the first verdict of all.
    positions: Vec<u64>,
}

impl<P: Copy> VerdictLog<P> {
    /// Creates an empty log without readers.
    pub const fn new() -> Self {
        Self { unread: VecDeque::new(), discarded: 0, positions: Vec::new() }
    }

    /// Appends a verdict.
    pub fn push(&mut self, verdict: Verdict<P>) {
        self.unread.push_back(verdict);
    }

    /// Adds a reader of the verdicts that follow.
    pub fn reader(&mut self) -> Reader {
        self.positions.push(self.discarded + self.unread.len() as u64);
        Reader(self.positions.len() - 1)
    }

    /// `true` if some reader has not read all verdicts.
    pub fn has_unread(&self) -> bool {
        !self.unread.is_empty()
    }

    /// Returns the next verdict for this reader, and drops what all readers have read; `None` if it
    /// has read all.
    pub fn read(&mut self, reader: Reader) -> Option<Verdict<P>> {
        let position = self.positions.get_mut(reader.0)?;
        let verdict = *self.unread.get((*position - self.discarded) as usize)?;
        *position += 1;
        let slowest = self.positions.iter().copied().min().unwrap_or(self.discarded);
        while self.discarded < slowest {
            self.unread.pop_front();
            self.discarded += 1;
        }
        Some(verdict)
    }
}
