//! A queue and the transmitter behind it.

use std::collections::VecDeque;

use cwnd_aqm::{AnyQdisc, Backlog, Observer, Qdisc, Reason};
use cwnd_trace::Histogram;
use cwnd_units::{Duration, Rate, Serialiser, Time};

use crate::counters::Counters;
use crate::slots::Slots;

/// What a line must know of a packet besides what its queue must: few words, which name the rest where it waits.
pub trait Packet: cwnd_aqm::Packet + Copy {
    /// Whether it carries payload.
    fn has_payload(&self) -> bool;
}

/// A queue discipline and the line it feeds: one packet is on the line, the others wait.
#[derive(Debug)]
pub struct Line<P> {
    queue: AnyQdisc<P>,
    pace: Pace,
    /// Rates to come, the next one last.
    changes: Vec<(Time, Rate)>,
    on_line: Option<P>,
    /// What the device below the queue has taken in advance, at most `device_room` packets.
    device: VecDeque<P>,
    device_room: usize,
    /// When the line will be free, or has its next opportunity; `Time::NEVER` when idle.
    free_at: Time,
    counters: Counters,
    qdelay: Histogram,
    last_sojourn: Option<Duration>,
    /// Until when the backlog is counted into `counters`' areas.
    area_until: Time,
    /// What the queue decided, for those who ask; `None` when nobody does.
    verdicts: Option<Vec<Verdict<P>>>,
}

/// What a queue decided about a packet.
#[derive(Clone, Copy, Debug)]
pub struct Verdict<P> {
    /// The packet, as it goes on or ended. What it names stays where it waited until the next packet is put there.
    pub packet: P,
    /// Whether it was marked; else it was dropped.
    pub marked: bool,
    /// Why.
    pub reason: Reason,
}

/// How the transmitter gets its time.
#[derive(Debug)]
pub enum Pace {
    /// A rate.
    Rate(Serialiser),
    /// Slots in which a fixed number of bytes may pass; `left` of the packet on the line are still to go.
    Slots {
        /// The trace.
        slots: Slots,
        /// Bytes of the packet on the line that have not been sent.
        left: u32,
    },
}

/// Counts what the queue decides, keeps it if it is asked to, and tells who has the packets.
struct Watch<'a, P, O> {
    counters: &'a mut Counters,
    verdicts: &'a mut Option<Vec<Verdict<P>>>,
    told: &'a mut O,
}

impl<P: Packet, O: Observer<P>> Observer<P> for Watch<'_, P, O> {
    #[inline]
    fn dropped(&mut self, now: Time, packet: &P, reason: Reason) {
        self.counters.drops[reason as usize] += 1;
        if let Some(verdicts) = self.verdicts {
            verdicts.push(Verdict { packet: *packet, marked: false, reason });
        }
        self.told.dropped(now, packet, reason);
    }

    #[inline]
    fn marked(&mut self, now: Time, packet: &P, reason: Reason) {
        self.counters.marks[reason as usize] += 1;
        if let Some(verdicts) = self.verdicts {
            verdicts.push(Verdict { packet: *packet, marked: true, reason });
        }
        self.told.marked(now, packet, reason);
    }
}

impl<P: Packet> Line<P> {
    /// An idle line with an empty queue.
    pub fn new(queue: AnyQdisc<P>, pace: Pace) -> Self {
        Self {
            queue,
            pace,
            changes: Vec::new(),
            on_line: None,
            device: VecDeque::new(),
            device_room: 0,
            free_at: Time::NEVER,
            counters: Counters::default(),
            qdelay: Histogram::default(),
            last_sojourn: None,
            area_until: Time::ZERO,
            verdicts: None,
        }
    }

    /// The same line below which a device takes up to `packets` from the queue in advance.
    pub fn with_device_queue(self, packets: u32) -> Self {
        Self { device_room: packets as usize, ..self }
    }

    /// The same line that changes its rate at these instants, which are in order of time.
    pub fn with_changes(self, changes: &[(Time, Rate)]) -> Self {
        Self { changes: changes.iter().rev().copied().collect(), ..self }
    }

    /// A packet comes. If the line was idle, returns when it wants [`Line::on_free`].
    #[inline]
    pub fn arrive(&mut self, now: Time, packet: P, told: &mut impl Observer<P>) -> Option<Time> {
        self.counters.arrived += 1;
        self.count_backlog(now);
        let mut watch = Watch { counters: &mut self.counters, verdicts: &mut self.verdicts, told };
        self.queue.enqueue(now, packet, &mut watch);
        if self.free_at != Time::NEVER {
            self.fill_device(now, told);
            return None;
        }
        match &mut self.pace {
            Pace::Rate(serialiser) => serialiser.idle(),
            Pace::Slots { slots, .. } => {
                if self.queue.backlog().packets > 0 {
                    self.free_at = slots.at_or_after(now);
                }
                return self.wanted();
            }
        }
        self.begin_next(now, told);
        self.wanted()
    }

    /// The line may be free: gives the packet that has been sent. An early call (the rate changed) gives nothing.
    #[inline]
    pub fn on_free(&mut self, now: Time, told: &mut impl Observer<P>) -> Option<P> {
        if now != self.free_at {
            return None;
        }
        if let Pace::Slots { .. } = self.pace {
            return self.use_slot(now, told);
        }
        let sent = self.on_line.take();
        if let Some(packet) = sent {
            self.counters.leaves(&packet);
        }
        self.count_backlog(now);
        self.begin_next(now, told);
        sent
    }

    /// When the line will be free, or has its next opportunity; `Time::NEVER` when idle.
    #[inline]
    pub const fn free_at(&self) -> Time {
        self.free_at
    }

    /// When [`Line::on_free`] wants to be called next, after it was.
    #[inline]
    pub fn wanted(&self) -> Option<Time> {
        (self.free_at != Time::NEVER).then_some(self.free_at)
    }

    #[inline]
    fn begin_next(&mut self, now: Time, told: &mut impl Observer<P>) {
        self.free_at = match (self.next_packet(now, told), &mut self.pace) {
            (Some(packet), Pace::Rate(serialiser)) => {
                let ends = now + serialiser.next(packet.wire_bytes());
                self.on_line = Some(packet);
                ends
            }
            _ => Time::NEVER,
        };
    }

    /// What the line sends next; the device takes another in its place.
    #[inline]
    fn next_packet(&mut self, now: Time, told: &mut impl Observer<P>) -> Option<P> {
        if self.device_room == 0 {
            return self.take_from_queue(now, told);
        }
        let next = self.device.pop_front().or_else(|| self.take_from_queue(now, told));
        self.fill_device(now, told);
        next
    }

    #[inline]
    fn fill_device(&mut self, now: Time, told: &mut impl Observer<P>) {
        while self.device.len() < self.device_room
            && let Some(packet) = self.take_from_queue(now, told)
        {
            self.device.push_back(packet);
        }
    }

    #[inline]
    fn take_from_queue(&mut self, now: Time, told: &mut impl Observer<P>) -> Option<P> {
        let mut watch = Watch { counters: &mut self.counters, verdicts: &mut self.verdicts, told };
        let (packet, since) = self.queue.dequeue(now, &mut watch)?;
        let sojourn = now.since(since);
        self.qdelay.add(sojourn);
        self.last_sojourn = Some(sojourn);
        Some(packet)
    }

    /// One slot of a trace: at most one packet leaves in a call; while bytes of the slot remain the line stays free at
    /// once, and what cannot be used is lost.
    fn use_slot(&mut self, now: Time, told: &mut impl Observer<P>) -> Option<P> {
        self.count_backlog(now);
        let mut sent = None;
        loop {
            if self.on_line.is_none() {
                let next = self.next_packet(now, told);
                if let (Some(packet), Pace::Slots { left, .. }) = (&next, &mut self.pace) {
                    *left = packet.wire_bytes();
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
                // Another packet fits this slot: come back at the same instant for it.
                break;
            }
            *left -= slots.take(*left);
            if *left > 0 {
                self.free_at = slots.after();
                break;
            }
            sent = self.on_line.take();
            if let Some(packet) = sent {
                self.counters.leaves(&packet);
            }
        }
        sent
    }

    /// Brings the integrals of the backlog up to `now`; called before the backlog changes.
    #[inline]
    fn count_backlog(&mut self, now: Time) {
        let Backlog { packets, bytes } = self.queue.backlog();
        if packets > 0 {
            let span = u128::from(now.since(self.area_until).0);
            self.counters.packet_time += u128::from(packets) * span;
            self.counters.byte_time += u128::from(bytes) * span;
        }
        self.area_until = now;
    }

    /// When the rate changes next.
    #[inline]
    pub fn next_change(&self) -> Option<Time> {
        self.changes.last().map(|&(at, _)| at)
    }

    /// The rate changes, as was to come next; what remains of the packet on the line goes at the new rate. Returns when
    /// [`Line::on_free`] is wanted if that changed.
    pub fn on_change(&mut self, now: Time) -> Option<Time> {
        let (_, rate) = self.changes.pop()?;
        let Pace::Rate(serialiser) = &mut self.pace else { return None };
        let old = serialiser.rate();
        *serialiser = Serialiser::new(rate);
        if self.free_at == Time::NEVER {
            return None;
        }
        let left = u128::from(self.free_at.since(now).0) * u128::from(old.0) / u128::from(rate.0);
        self.free_at = now + Duration(u64::try_from(left).unwrap_or(u64::MAX));
        Some(self.free_at)
    }

    /// Periodic work of the queue discipline.
    pub fn on_timer(&mut self, now: Time) {
        self.queue.on_timer(now);
    }

    /// When the queue discipline wants its periodic work.
    #[inline]
    pub fn next_timer(&self) -> Option<Time> {
        self.queue.next_timer()
    }

    /// From now on what the queue decides is kept for [`Line::verdicts`], until [`Line::forget_verdicts`].
    pub fn keep_verdicts(&mut self) {
        self.verdicts.get_or_insert_default();
    }

    /// What the queue decided since it was last forgotten, in order; as many as like may read it.
    pub fn verdicts(&self) -> &[Verdict<P>] {
        self.verdicts.as_deref().unwrap_or_default()
    }

    /// Everybody has read the verdicts.
    pub fn forget_verdicts(&mut self) {
        self.verdicts.iter_mut().for_each(Vec::clear);
    }

    /// Packets waiting in the queue.
    pub fn backlog(&self) -> Backlog {
        self.queue.backlog()
    }

    /// Packets in the queue, in the device and on the line.
    pub fn held(&self) -> u64 {
        self.queue.backlog().packets + self.device.len() as u64 + u64::from(self.on_line.is_some())
    }

    /// What it counted until `now`.
    pub fn counters(&mut self, now: Time) -> Counters {
        self.count_backlog(now);
        self.counters
    }

    /// Distribution of the queueing delay since [`Line::begin_counting`].
    pub const fn qdelay(&self) -> &Histogram {
        &self.qdelay
    }

    /// The warm-up is over: the distribution of delays begins anew.
    pub fn begin_counting(&mut self) {
        self.qdelay.clear();
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

#[cfg(test)]
mod tests {
    use cwnd_aqm::{QueueParams, fifo};
    use cwnd_units::{Ecn, LinkFacts, QueueSize, Rng};

    use super::*;

    /// A data packet of this number and size.
    #[derive(Clone, Copy, Debug)]
    struct Numbered(u32, u16);

    impl cwnd_aqm::Packet for Numbered {
        fn wire_bytes(&self) -> u32 {
            u32::from(self.1)
        }

        fn ecn(&self) -> Ecn {
            Ecn::NotEct
        }

        fn set_ce(&mut self) {}

        fn flow_hash(&self) -> u64 {
            0
        }
    }

    impl Packet for Numbered {
        fn has_payload(&self) -> bool {
            true
        }
    }

    /// Notes which packets it was told of.
    #[derive(Default)]
    struct Told(Vec<u32>);

    impl Observer<Numbered> for Told {
        fn dropped(&mut self, _now: Time, packet: &Numbered, _reason: Reason) {
            self.0.push(packet.0);
        }

        fn marked(&mut self, _now: Time, _packet: &Numbered, _reason: Reason) {}
    }

    fn fifo(packets: u64) -> AnyQdisc<Numbered> {
        let facts = LinkFacts { rate: Rate::from_mbit(1), bdp_rtt: Duration::ZERO };
        QueueParams::Fifo(fifo::Params { limit: QueueSize::Packets(packets) })
            .build(&facts, Rng::named(0, "test"))
    }

    fn line(rate: Rate) -> Line<Numbered> {
        Line::new(fifo(u64::MAX), Pace::Rate(Serialiser::new(rate)))
    }

    fn slots(at_ms: &[u64]) -> Line<Numbered> {
        Line::new(fifo(u64::MAX), Pace::Slots { slots: Slots::new(at_ms.to_vec()), left: 0 })
    }

    fn arrive(line: &mut Line<Numbered>, now: Time, packet: Numbered) -> Option<Time> {
        line.arrive(now, packet, &mut Told::default())
    }

    /// Calls the line whenever it wants, and notes what it sends: number and time in ns.
    fn drain(line: &mut Line<Numbered>, first: Option<Time>) -> Vec<(u32, u64)> {
        let mut sent = Vec::new();
        let mut next = first;
        while let Some(now) = next {
            sent.extend(line.on_free(now, &mut Told::default()).map(|p| (p.0, now.0)));
            next = line.wanted();
        }
        sent
    }

    #[test]
    fn a_packet_on_the_line_goes_on_at_the_new_rate() {
        // 1000 B at 8 kbit/s take 1 s. After a quarter of it: the rest at twice the rate, or at a quarter of it.
        const S: u64 = 1_000_000_000;
        for (rate, expected) in [(16_000, S / 4 + 3 * S / 8), (2_000, S / 4 + 3 * S)] {
            let mut line = line(Rate(8_000)).with_changes(&[(Time(S / 4), Rate(rate))]);
            let old = arrive(&mut line, Time::ZERO, Numbered(0, 1000)).unwrap();
            assert_eq!(old, Time(S));
            arrive(&mut line, Time::ZERO, Numbered(1, 1000));
            let new = line.on_change(Time(S / 4)).unwrap();
            assert_eq!(new, Time(expected));
            if old < new {
                assert!(
                    line.on_free(old, &mut Told::default()).is_none(),
                    "the old appointment is void"
                );
            }
            let whole = 8000 * S / rate;
            assert_eq!(drain(&mut line, Some(new)), [(0, expected), (1, expected + whole)]);
        }
    }

    #[test]
    fn a_rate_that_changes_while_nothing_is_sent_holds_for_the_next_packet() {
        let mut line = line(Rate(8_000)).with_changes(&[(Time(5), Rate(8_000_000))]);
        assert_eq!(line.next_change(), Some(Time(5)));
        assert_eq!(line.on_change(Time(5)), None);
        assert_eq!(line.next_change(), None);
        assert_eq!(arrive(&mut line, Time(10), Numbered(0, 1000)), Some(Time(1_000_010)));
    }

    #[test]
    fn queueing_delay_ends_where_transmission_begins() {
        let mut line = line(Rate::from_mbit(8));
        let first = arrive(&mut line, Time::ZERO, Numbered(0, 1000));
        arrive(&mut line, Time(400_000), Numbered(1, 1000));
        assert_eq!(line.backlog(), Backlog { packets: 1, bytes: 1000 });
        assert_eq!(line.held(), 2);
        drain(&mut line, first);
        assert_eq!(line.last_sojourn(), Some(Duration(600_000)));
        assert_eq!(line.qdelay().max(), Some(Duration(600_000)));
        let counters = line.counters(Time(9_000_000));
        assert_eq!((counters.packet_time, counters.byte_time), (600_000, 600_000_000));
    }

    #[test]
    fn a_device_queue_takes_packets_that_the_discipline_then_neither_holds_nor_delays() {
        let mut line = line(Rate::from_mbit(8)).with_device_queue(1);
        let mut first = None;
        for i in 0..3 {
            first = first.or(arrive(&mut line, Time::ZERO, Numbered(i, 1000)));
        }
        assert_eq!((line.backlog().packets, line.held()), (1, 3));
        assert_eq!(line.last_sojourn(), Some(Duration::ZERO));
        let sent = drain(&mut line, first);
        assert_eq!(sent, [(0, 1_000_000), (1, 2_000_000), (2, 3_000_000)]);
        // The third went into the device when the second left it for the line.
        assert_eq!(line.last_sojourn(), Some(Duration(1_000_000)));
        assert_eq!(line.held(), 0);
    }

    #[test]
    fn a_slot_of_a_trace_carries_1500_bytes_of_whatever_waits() {
        let ms = |n: u64| n * 1_000_000;
        let mut line = slots(&[1, 2, 2, 5]);
        // 700 + 700 + 100 B fill the slot at 1 ms; of 3200 B, 1500 pass in each of the two at 2 ms, 200 at 5 ms, where
        // 1200 B follow; the rest of that slot is lost.
        let mut first = None;
        for (i, wire) in [700, 700, 100, 3200, 1200].into_iter().enumerate() {
            first = first.or(arrive(&mut line, Time(3), Numbered(i as u32, wire)));
        }
        let sent = drain(&mut line, first);
        assert_eq!(sent, [(0, ms(1)), (1, ms(1)), (2, ms(1)), (3, ms(5)), (4, ms(5))]);
        // The next comes when the trace has begun again.
        let next = arrive(&mut line, Time(ms(5) + 1), Numbered(9, 1));
        assert_eq!(next, Some(Time(ms(6))));
    }

    #[test]
    fn a_full_slot_leaves_the_next_packet_to_the_next_slot() {
        let ms = |n: u64| n * 1_000_000;
        let mut line = slots(&[3]);
        let mut first = None;
        for i in 0..3 {
            first = first.or(arrive(&mut line, Time::ZERO, Numbered(i, 1500)));
        }
        assert_eq!(drain(&mut line, first), [(0, ms(3)), (1, ms(6)), (2, ms(9))]);
    }

    #[test]
    fn a_verdict_can_be_read_by_several_until_it_is_forgotten() {
        let mut line = Line::new(fifo(1), Pace::Rate(Serialiser::new(Rate::from_mbit(8))));
        let mut told = Told::default();
        let mut come = |line: &mut Line<Numbered>, numbers: core::ops::Range<u32>| {
            numbers.for_each(|n| {
                line.arrive(Time::ZERO, Numbered(n, 1000), &mut told);
            });
        };
        // One goes, one waits, one is too many before anybody asks for verdicts.
        come(&mut line, 0..3);
        assert!(line.verdicts().is_empty());
        line.keep_verdicts();
        come(&mut line, 3..5);
        for _reader in 0..2 {
            let read: Vec<_> =
                line.verdicts().iter().map(|v| (v.packet.0, v.marked, v.reason)).collect();
            assert_eq!(read, [(3, false, Reason::Overlimit), (4, false, Reason::Overlimit)]);
        }
        line.forget_verdicts();
        assert!(line.verdicts().is_empty());
        assert_eq!(line.counters(Time::ZERO).drops[Reason::Overlimit as usize], 3);
        assert_eq!(told.0, [2, 3, 4]);
    }

    proptest::proptest! {
        #[test]
        fn a_busy_line_sends_in_order_and_in_exactly_its_time(
            rate in 10_000u64..400_000_000_000, sizes in proptest::collection::vec(1u16..=9000, 1..60)
        ) {
            let mut line = line(Rate(rate));
            let mut first = None;
            for (i, &wire) in sizes.iter().enumerate() {
                first = first.or(arrive(&mut line, Time(77), Numbered(i as u32, wire)));
            }
            let sent = drain(&mut line, first);
            let mut bits = 0_u128;
            for (i, &wire) in sizes.iter().enumerate() {
                bits += u128::from(wire) * 8;
                let expected = 77 + (bits * 1_000_000_000 / u128::from(rate)) as u64;
                proptest::prop_assert_eq!(sent[i], (i as u32, expected));
            }
            let counters = line.counters(Time::NEVER);
            proptest::prop_assert_eq!(u128::from(counters.delivered_bytes) * 8, bits);
            proptest::prop_assert_eq!(counters.delivered_data, sizes.len() as u64);
        }
    }
}
