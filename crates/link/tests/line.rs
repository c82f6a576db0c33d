//! A line with packets of a number and a size: departure times and counters.

use std::sync::{Arc, Mutex};

use cwnd_aqm::{AnyQdisc, Backlog, Context, Meter, Outcome, QueueParams, Reason, fifo};
use cwnd_link::{Line, Pace, Packet, Reader, Slots, Timeline};
use cwnd_packet::Ecn;
use cwnd_quantity::{Duration, LinkProperties, QueueSize, Rate, Rng, Serialiser, Time};

/// A data packet with a number and a size in bytes.
#[derive(Clone, Copy, Debug)]
struct Numbered(u32, u16);

impl cwnd_aqm::Packet for Numbered {
    fn wire_bytes(&self) -> u32 {
        u32::from(self.1)
    }

    fn flow_hash(&self) -> u64 {
        0
    }
}

impl Packet for Numbered {
    fn has_payload(&self) -> bool {
        true
    }
}

/// A context that records the numbers of dropped packets.
#[derive(Default)]
struct RecordingContext(Vec<u32>);

impl Context<Numbered> for RecordingContext {
    fn ecn(&self, _packet: &Numbered) -> Ecn {
        Ecn::NotEct
    }

    fn set_ecn(&mut self, _packet: &mut Numbered, _ecn: Ecn) {}

    fn dropped(&mut self, _now: Time, packet: &Numbered, _reason: Reason) {
        self.0.push(packet.0);
    }

    fn marked(&mut self, _: Time, _: &Numbered, _: Reason, _: bool) {}
}

fn fifo(packets: u64) -> AnyQdisc<Numbered> {
    let facts = LinkProperties { rate: Rate::from_mbit(1), bdp_rtt: Duration::ZERO };
    QueueParams::Fifo(fifo::Params { limit: QueueSize::Packets(packets) })
        .build(&facts, Rng::named(0, "test"))
}

fn line(rate: Rate) -> Line<Numbered> {
    Line::new(fifo(u64::MAX), Pace::Rate(Serialiser::new(rate)))
}

fn slots(at_ms: &[u64]) -> Line<Numbered> {
    Line::new(fifo(u64::MAX), Pace::Slots { slots: Slots::new(at_ms.to_vec()), left: 0 })
}

fn once(at: Time, rate: Rate) -> Timeline<Rate> {
    Timeline::new(vec![(at, rate)], None)
}

fn arrive(line: &mut Line<Numbered>, now: Time, packet: Numbered) -> Option<Time> {
    line.arrive(now, packet, &mut RecordingContext::default())
}

/// Calls the line at each time that it wants; returns number and time in ns of each packet sent.
fn drain(line: &mut Line<Numbered>, first: Option<Time>) -> Vec<(u32, u64)> {
    let mut sent = Vec::new();
    let mut next = first;
    while let Some(now) = next {
        sent.extend(line.on_free(now, &mut RecordingContext::default()).map(|p| (p.0, now.0)));
        next = line.next_free();
    }
    sent
}

#[test]
fn a_packet_on_the_line_goes_on_at_the_new_rate() {
    // 1000 B at 8 kbit/s take 1 s. After a quarter, the rest is sent at twice the rate, or at a
    // quarter of it.
    const S: u64 = 1_000_000_000;
    for (rate, expected) in [(16_000, S / 4 + 3 * S / 8), (2_000, S / 4 + 3 * S)] {
        let mut line = line(Rate(8_000)).with_changes(once(Time(S / 4), Rate(rate)));
        let old = arrive(&mut line, Time::ZERO, Numbered(0, 1000)).unwrap();
        assert_eq!(old, Time(S));
        arrive(&mut line, Time::ZERO, Numbered(1, 1000));
        let new = line.on_change(Time(S / 4)).unwrap();
        assert_eq!(new, Time(expected));
        if old < new {
            assert!(
                line.on_free(old, &mut RecordingContext::default()).is_none(),
                "the old appointment is void"
            );
        }
        let whole = 8000 * S / rate;
        assert_eq!(drain(&mut line, Some(new)), [(0, expected), (1, expected + whole)]);
    }
}

#[test]
fn a_rate_that_changes_while_nothing_is_sent_holds_for_the_next_packet() {
    let mut line = line(Rate(8_000)).with_changes(once(Time(5), Rate(8_000_000)));
    assert_eq!(line.next_change(), Some(Time(5)));
    assert_eq!(line.on_change(Time(5)), None);
    assert_eq!(line.next_change(), None);
    assert_eq!(arrive(&mut line, Time(10), Numbered(0, 1000)), Some(Time(1_000_010)));
}

#[test]
fn rates_that_repeat_come_again_after_their_period() {
    let steps = vec![(Time(0), Rate(1)), (Time(5), Rate(2)), (Time(7), Rate(3))];
    let mut line = line(Rate(1)).with_changes(Timeline::new(steps, Some(Duration(10))));
    let changes: Vec<u64> = (0..7)
        .map(|_| {
            let at = line.next_change().unwrap();
            line.on_change(at);
            at.0
        })
        .collect();
    assert_eq!(changes, [0, 5, 7, 10, 15, 17, 20]);
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
    // The third packet entered the device when the second one left it for the line.
    assert_eq!(line.last_sojourn(), Some(Duration(1_000_000)));
    assert_eq!(line.held(), 0);
}

#[test]
fn a_slot_of_a_trace_carries_1500_bytes_of_whatever_waits() {
    let ms = |n: u64| n * 1_000_000;
    let mut line = slots(&[1, 2, 2, 5]);
    // 700 + 700 + 100 B fill the slot at 1 ms. Of 3200 B, 1500 pass in each of the two slots at 2
    // ms and 200 at 5 ms. 1200 B follow there, and the rest of that slot is lost.
    let mut first = None;
    for (i, wire) in [700, 700, 100, 3200, 1200].into_iter().enumerate() {
        first = first.or(arrive(&mut line, Time(3), Numbered(i as u32, wire)));
    }
    let sent = drain(&mut line, first);
    assert_eq!(sent, [(0, ms(1)), (1, ms(1)), (2, ms(1)), (3, ms(5)), (4, ms(5))]);
    // The next slot is the first one of the trace's second period.
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

/// Calls of a meter: method, number of the packet or rate in Mbit/s, time in µs, packets waiting.
type Heard = Arc<Mutex<Vec<(&'static str, u32, u64, u64)>>>;

/// A meter that records its calls and has one timer.
#[derive(Debug)]
struct Notes(Heard, Option<Time>);

impl Notes {
    fn add(&self, what: &'static str, number: u32, now: Time, waiting: u64) {
        let of = (what, number, now.0 / 1000, waiting);
        self.0.lock().expect("nobody panicked with it").push(of);
    }
}

impl Meter<Numbered> for Notes {
    fn arrives(
        &mut self,
        now: Time,
        of: &mut Numbered,
        waiting: Backlog,
        _: &mut dyn Context<Numbered>,
    ) {
        self.add("arrives", of.0, now, waiting.packets);
    }
    fn leaves(
        &mut self,
        now: Time,
        of: &mut Numbered,
        waiting: Backlog,
        _: &mut dyn Context<Numbered>,
    ) {
        self.add("leaves", of.0, now, waiting.packets);
    }
    fn on_rate(&mut self, now: Time, rate: Rate) {
        self.add("rate", (rate.0 / 1_000_000) as u32, now, 0);
    }
    fn next_timer(&self) -> Option<Time> {
        self.1
    }
    fn on_timer(&mut self, now: Time, waiting: Backlog) {
        self.add("timer", 0, now, waiting.packets);
        self.1 = None;
    }
}

#[test]
fn a_meter_is_told_of_arrivals_departures_rates_and_its_timer() {
    let heard = Heard::default();
    let meter = |at| Box::new(Notes(Arc::clone(&heard), at));
    // 1000 B at 8 Mbit/s take 1 ms; the queue has room for two packets.
    let mut line = Line::new(fifo(2), Pace::Rate(Serialiser::new(Rate::from_mbit(8))))
        .with_changes(once(Time(1_500_000), Rate::from_mbit(4)))
        .with_meter(meter(Some(Time(300_000))));
    for n in 0..4 {
        arrive(&mut line, Time(100_000), Numbered(n, 1000));
    }
    while line.next() != Time::NEVER {
        line.advance(line.next(), &mut RecordingContext::default());
    }
    let expected = [
        ("rate", 8, 0, 0),
        ("arrives", 0, 100, 0),
        ("leaves", 0, 100, 0),
        ("arrives", 1, 100, 0),
        ("arrives", 2, 100, 1),
        // The queue is full.
        ("arrives", 3, 100, 2),
        ("timer", 0, 300, 2),
        ("leaves", 1, 1100, 1),
        ("rate", 4, 1500, 0),
        // 0.6 ms were left at the old rate.
        ("leaves", 2, 2700, 0),
    ];
    assert_eq!(*heard.lock().expect("nobody panicked with it"), expected);
    assert_eq!(line.counters(Time(9_000_000)).drops.of(Reason::OVERLIMIT), 1);
    // Packets that the device dequeues have left the queue. The second meter precedes the first.
    heard.lock().expect("nobody panicked with it").clear();
    let mut line = slots(&[3]).with_device_queue(1);
    line = line.with_meter(meter(None)).with_meter(meter(None));
    arrive(&mut line, Time(0), Numbered(5, 700));
    arrive(&mut line, Time(0), Numbered(6, 700));
    let heard: Vec<_> = heard.lock().unwrap().iter().map(|of| (of.0, of.1, of.3)).collect();
    let both = |of| [of, of];
    let expected =
        [("rate", 4, 0), ("arrives", 5, 0), ("arrives", 6, 1), ("leaves", 5, 1)].map(both);
    assert_eq!(heard, expected.concat());
}

#[test]
fn each_reader_of_verdicts_has_its_own_position_and_misses_nothing() {
    let mut line = Line::new(fifo(1), Pace::Rate(Serialiser::new(Rate::from_mbit(8))));
    let mut told = RecordingContext::default();
    let mut come = |line: &mut Line<Numbered>, numbers: core::ops::Range<u32>| {
        numbers.for_each(|n| {
            line.arrive(Time(u64::from(n)), Numbered(n, 1000), &mut told);
        });
    };
    let read = |line: &mut Line<Numbered>, reader: Reader, most: usize| -> Vec<u32> {
        let verdicts = core::iter::from_fn(|| line.read(reader)).take(most);
        verdicts
            .map(|of| {
                assert_eq!((of.what, of.reason), (Outcome::Dropped, Reason::OVERLIMIT));
                assert_eq!(of.at, Time(u64::from(of.packet.0)));
                of.packet.0
            })
            .collect()
    };
    // One packet is in transmission, one waits, and one is dropped before there is a reader.
    come(&mut line, 0..3);
    let quick = line.reader();
    assert!(line.read(quick).is_none());
    come(&mut line, 3..6);
    assert_eq!(read(&mut line, quick, 2), [3, 4]);
    // The second reader comes after three verdicts and reads nothing for a long time.
    let slow = line.reader();
    come(&mut line, 6..2006);
    assert_eq!(read(&mut line, quick, usize::MAX), (5..2006).collect::<Vec<_>>());
    assert!(line.read(quick).is_none());
    assert_eq!(read(&mut line, slow, 1), [6]);
    come(&mut line, 2006..2007);
    assert_eq!(read(&mut line, slow, usize::MAX), (7..2007).collect::<Vec<_>>());
    assert_eq!(read(&mut line, quick, usize::MAX), [2006]);
    assert_eq!(line.counters(Time::ZERO).drops.of(Reason::OVERLIMIT), 2005);
    assert_eq!(told.0, (2..2007).collect::<Vec<_>>());
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
