//! Meters beside queues, and a custom queue, on links of a scenario's world.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};

use cwnd_aqm::{Backlog, Context, Meter, Packet, Qdisc, QueueParams, Reason, mark};
use cwnd_packet::{CongestionHeader, Contract, Ecn, HasContract};
use cwnd_quantity::{Duration, Rate, Time};
use cwnd_schema::ParamsChoice as _;
use cwnd_sim::World;
use cwnd_tables::Records;

use crate::common::{BOTTLENECK, activity, at, column, run, run_audited, scenario};

/// Observations of a test meter.
#[derive(Clone, Debug, Default)]
struct MeterLog {
    arrived: u64,
    arrived_bytes: u64,
    left: u64,
    left_bytes: u64,
    ticks: Vec<(Time, Backlog)>,
    rates: Vec<(Time, Rate)>,
}

/// Meter that counts packets and bytes, and records its timer.
#[derive(Debug)]
struct Load {
    log: Arc<Mutex<MeterLog>>,
    interval: Duration,
    next: Time,
}

impl Load {
    fn new(interval: Duration) -> (Self, Arc<Mutex<MeterLog>>) {
        let log = Arc::<Mutex<MeterLog>>::default();
        (Self { log: Arc::clone(&log), interval, next: Time::ZERO + interval }, log)
    }

    fn record(&self, what: impl FnOnce(&mut MeterLog)) {
        what(&mut self.log.lock().expect("nobody panicked with it"));
    }
}

impl HasContract for Load {
    fn contract(&self) -> Contract {
        Contract::new()
    }
}

impl<P: Packet> Meter<P> for Load {
    fn arrives(&mut self, _: Time, packet: &mut P, _: Backlog, _: &mut dyn Context<P>) {
        self.record(|log| {
            log.arrived += 1;
            log.arrived_bytes += u64::from(packet.wire_bytes());
        });
    }
    fn leaves(&mut self, _: Time, packet: &mut P, _: Backlog, _: &mut dyn Context<P>) {
        self.record(|log| {
            log.left += 1;
            log.left_bytes += u64::from(packet.wire_bytes());
        });
    }
    fn on_rate(&mut self, now: Time, rate: Rate) {
        self.record(|log| log.rates.push((now, rate)));
    }
    fn next_timer(&self) -> Option<Time> {
        Some(self.next)
    }
    fn on_timer(&mut self, now: Time, backlog: Backlog) {
        self.record(|log| log.ticks.push((now, backlog)));
        self.next = now + self.interval;
    }
}

/// Runs a scenario with a test meter on each of these links; returns the records and observations.
fn metered<const N: usize>(text: &str, links: [&str; N]) -> (Records, [MeterLog; N]) {
    let mut world = World::new(scenario(text));
    let log = links.map(|link| {
        let (meter, log) = Load::new(Duration::from_millis(10));
        assert!(world.add_meter(link, meter), "{link}");
        log
    });
    let records = run_audited(world);
    (records, log.map(|log| log.lock().expect("nobody panicked with it").clone()))
}

fn bulk(rate: &str, queue: &str, ecn: bool) -> String {
    format!(
        r#"
        [run]
        duration = "20 s"
        sample = "1 s"
        [dumbbell]
        rate = {rate}
        queue = "{queue}"
        [flow.main]
        count = 3
        rtt = "50 ms"
        endpoint = {{ ecn = {ecn} }}
        "#
    )
}

#[test]
fn what_a_meter_counts_is_rate_times_utilisation_beside_every_queue() {
    for queue in QueueParams::KINDS.iter().map(|kind| kind.name) {
        let text = bulk("\"10 Mbit/s\"", queue, queue == "pie");
        let (records, [log]) = metered(&text, ["bottleneck"]);
        let link = |name: &str| at(&records.links, BOTTLENECK, name);
        let sent = link("utilisation") * 10e6 * 20.0 / 8.0;
        let counted = log.left_bytes as f64;
        // A packet leaves the queue when its first bit is sent, so one packet may be on the link at
        // the end.
        assert!((sent - 0.5..=sent + 1500.5).contains(&counted), "{queue}: {counted} B, {sent} B");
        assert!(sent > 0.6 * 25e6, "{queue}: {sent}");
        assert_eq!(log.arrived as f64, link("arrived_total_pkts"), "{queue}");
        let gone = link("dropped_total_pkts") + link("delivered_total_pkts");
        assert_eq!(link("arrived_total_pkts"), gone + link("queued_pkts"), "{queue}");
        let ticks: Vec<Time> = log.ticks.iter().map(|&(at, _)| at).collect();
        let due: Vec<Time> = (1..2000).map(|n| Time(n * 10_000_000)).collect();
        assert_eq!(ticks, due, "{queue}");
        let waited = log.ticks.iter().map(|(_, b)| b.packets as f64).sum::<f64>() / 1999.0;
        let mean = link("qlen_mean_pkts");
        assert!((waited - mean).abs() < 0.1 * mean + 0.5, "{queue}: {waited}, {mean}");
    }
}

#[test]
fn a_meter_hears_of_every_rate() {
    let steps = "{ initial = \"8 Mbit/s\", steps = [{ at = \"5 s\", rate = \"2 Mbit/s\" }, \
                 { at = \"15 s\", rate = \"20 Mbit/s\" }] }";
    let (records, [log]) = metered(&bulk(steps, "red", false), ["bottleneck"]);
    let s = |n: u64| Time(n * 1_000_000_000);
    let [a, b, c] = [8, 2, 20].map(Rate::from_mbit);
    assert_eq!(log.rates, [(s(0), a), (s(5), b), (s(15), c)]);
    // 8 · 5 + 2 · 10 + 20 · 5 Mbit in 20 s.
    assert_eq!(at(&records.links, BOTTLENECK, "rate_bit_s"), 8e6);
    let trace = bulk("{ trace_ms = [1, 3, 4] }", "fifo", false);
    let (_, [log]) = metered(&trace, ["bottleneck"]);
    assert_eq!(log.rates, [(s(0), Rate::from_mbit(9))], "the mean: 3 · 12,000 bits in 4 ms");
}

#[test]
fn a_meter_that_writes_nothing_changes_nothing() {
    for queue in QueueParams::KINDS.iter().map(|kind| kind.name) {
        for rate in ["\"6 Mbit/s\"", "{ trace_ms = [1, 2, 2, 7] }"] {
            let text = bulk(rate, queue, true);
            let (records, _) = metered(&text, ["bottleneck", "reverse"]);
            assert_eq!(records.digest(), run(&text).digest(), "{queue} {rate}");
        }
    }
}

/// With threshold K the queue of a sender that halves its window varies between K/2 − BDP/2 and K,
/// as with drop-tail and room for K (ABE, eq. 1): with K above the BDP the link never idles.
#[test]
fn a_step_that_a_scenario_names_keeps_the_queue_where_drop_tail_would_keep_it() {
    // The BDP is 125 kB, 20 Mbit/s times 50 ms; 1.5 BDP queue for 75 ms.
    let text = r#"
        [run]
        duration = "60 s"
        warmup = "10 s"
        sample = "10 ms"
        [dumbbell]
        rate = "20 Mbit/s"
        queue = { kind = "fifo", limit = "4 BDP" }
        meter = { kind = "step", threshold = "1.5 BDP" }
        [flow.main]
        rtt = "50 ms"
        endpoint = { ecn = true, ack_every = 1 }
    "#;
    let records = run(text);
    let link = |name: &str| at(&records.links, BOTTLENECK, name);
    assert!(link("utilisation") > 0.9999, "{}", link("utilisation"));
    assert_eq!(link("dropped_pkts"), 0.0);
    // A window of 313 kB grows by a segment in a round trip; the packet being sent is not in the
    // queue.
    let segment_us = 600.0;
    let most = link("qdelay_max_us");
    assert!((75_000.0 - segment_us..75_000.0 + 3.0 * segment_us).contains(&most), "{most} us");
    // After halving, a quarter of a BDP remains.
    let series = &records.link_series;
    let of = column(series, "link_id").into_iter().zip(column(series, "time_s"));
    let here = of.zip(column(series, "qlen_bytes"));
    let least = here.filter(|((link, s), _)| *link == BOTTLENECK as f64 && *s > 10.0);
    let least = least.map(|(_, bytes)| bytes).fold(f64::INFINITY, f64::min);
    assert!((least - 0.25 * 125_000.0).abs() < 3.0 * 1500.0, "{least} B");
    let [_, marks] = records.packets(BOTTLENECK, "marked", "step");
    assert!(marks > 0);
    assert_eq!(marks as f64, link("marked_total_pkts"));
    // Without it the same flow fills the whole buffer.
    let plain = run(&text.replace("meter = { kind = \"step\", threshold = \"1.5 BDP\" }", ""));
    assert!(at(&plain.links, BOTTLENECK, "qdelay_max_us") > 190_000.0);
}

/// Meter that writes a serial number into data packets, marks each fiftieth, and makes the others
/// not ECN-capable.
#[derive(Debug)]
struct Writer(u16);

impl HasContract for Writer {
    fn contract(&self) -> Contract {
        Contract::new()
    }
}

impl<P: Packet> Meter<P> for Writer {
    fn arrives(&mut self, now: Time, packet: &mut P, _: Backlog, context: &mut dyn Context<P>) {
        let Some(header) = context.header(packet) else { return };
        assert_eq!(*header, CongestionHeader::None);
        self.0 += 1;
        *header = CongestionHeader::Id(self.0);
        let ecn = if self.0.is_multiple_of(50) { Ecn::Ect1 } else { Ecn::NotEct };
        context.set_ecn(packet, ecn);
        assert_eq!(mark(now, packet, Reason::named("toy_meter"), context), ecn == Ecn::Ect1);
    }
    fn count(&self, each: &mut dyn FnMut(&'static str, u64)) {
        each("toy_headers", u64::from(self.0));
        each("toy_never", 0);
    }
}

/// Meter downstream that records these numbers, and whether packets are marked.
#[derive(Debug)]
struct Reader(Arc<Mutex<Vec<(u16, Ecn)>>>);

impl HasContract for Reader {
    fn contract(&self) -> Contract {
        Contract::new()
    }
}

impl<P: Packet> Meter<P> for Reader {
    fn leaves(&mut self, _: Time, packet: &mut P, _: Backlog, context: &mut dyn Context<P>) {
        let ecn = context.ecn(packet);
        let Some(&mut CongestionHeader::Id(id)) = context.header(packet) else {
            panic!("it was written")
        };
        self.0.lock().expect("nobody panicked with it").push((id, ecn));
    }
}

#[test]
fn what_a_meter_writes_is_read_down_the_path_and_by_the_receiver() {
    let mut world = World::new(scenario(
        r#"
        [run]
        duration = "20 s"
        [link.first]
        from = "a"
        to = "b"
        rate = "8 Mbit/s"
        delay = "5 ms"
        duplex = true
        [link.second]
        from = "b"
        to = "c"
        rate = "4 Mbit/s"
        delay = "5 ms"
        queue = { kind = "codel", limit = "20 packets" }
        duplex = true
        [link.pure-delay]
        from = "c"
        to = "a"
        rate = "none"
        delay = "1 ms"
        [flow.main]
        from = "a"
        to = "c"
        endpoint = { ecn = true }
        "#,
    ));
    let read = Arc::<Mutex<Vec<_>>>::default();
    assert!(world.add_meter("first", Writer(0)));
    assert!(world.add_meter("second", Reader(Arc::clone(&read))));
    assert!(!world.add_meter("third", Writer(0)), "there is none");
    assert!(!world.add_meter("pure-delay", Writer(0)), "nothing waits there");
    let records = run_audited(world);
    let read = read.lock().expect("nobody panicked with it");
    assert!(read.len() > 1000);
    assert!(read.windows(2).all(|pair| pair[0].0 < pair[1].0), "in order");
    assert!(read.iter().all(|&(id, ecn)| (ecn == Ecn::Ce) == (id % 50 == 0)));
    // CoDel marked none of them, as the others are not ECN-capable: the receiver's marks are this
    // meter's.
    let marked = at(&records.links, 0, "marked_total_pkts");
    let came = read.iter().filter(|(_, ecn)| *ecn == Ecn::Ce).count() as f64;
    assert!((came..=came + 30.0).contains(&marked), "{marked} marked, {came} came");
    let [_, own] = records.packets(0, "marked", "toy_meter");
    assert_eq!(own as f64, marked, "by the meter's own reason");
    assert_eq!(activity(&records, "queue_marks") as f64, marked);
    assert_eq!(activity(&records, "toy_headers") / 50, own);
    assert_eq!(records.activity.get("toy_never"), None, "what never happened is no news");
    let received = activity(&records, "ce_received") as f64;
    assert!((came - 5.0..=came).contains(&received), "{received} of {came} reached the receiver");
    assert!(at(&records.flows, 0, "cwnd_reductions_ecn") > 10.0);
}

/// Drop-tail, reimplemented.
#[derive(Debug)]
struct Plain<P> {
    waiting: VecDeque<(P, Time)>,
    room: usize,
}

impl<P> HasContract for Plain<P> {
    fn contract(&self) -> Contract {
        Contract::new()
    }
}

impl<P: Packet> Qdisc<P> for Plain<P> {
    fn enqueue(&mut self, now: Time, packet: P, context: &mut impl Context<P>) {
        if self.waiting.len() < self.room {
            self.waiting.push_back((packet, now));
        } else {
            context.dropped(now, &packet, Reason::OVERLIMIT);
        }
    }
    fn dequeue(&mut self, _: Time, _: &mut impl Context<P>) -> Option<(P, Time)> {
        self.waiting.pop_front()
    }
    fn backlog(&self) -> Backlog {
        let bytes = self.waiting.iter().map(|(packet, _)| u64::from(packet.wire_bytes())).sum();
        Backlog { packets: self.waiting.len() as u64, bytes }
    }
}

#[test]
fn a_queue_of_ones_own_takes_the_place_of_any_kind() {
    let text = |queue: &str| {
        let text = bulk("\"10 Mbit/s\"", "KIND", false);
        text.replace("\"KIND\"", queue)
    };
    let expected = run(&text("{ kind = \"fifo\", limit = \"30 packets\" }"));
    assert!(expected.packets(BOTTLENECK, "dropped", "overlimit")[0] > 10);
    // The timer that PIE had set fires without effect.
    for kind in ["\"fifo\"", "\"pie\""] {
        let mut world = World::new(scenario(&text(kind)));
        assert!(world.replace_queue("bottleneck", |facts, _| {
            assert_eq!(facts.rate, Rate::from_mbit(10));
            Plain { waiting: VecDeque::new(), room: 30 }
        }));
        let (meter, log) = Load::new(Duration::from_millis(7));
        assert!(world.add_meter("bottleneck", meter));
        assert_eq!(run_audited(world).digest(), expected.digest(), "{kind}");
        assert_eq!(log.lock().expect("nobody panicked with it").ticks.len(), 20_000 / 7);
    }
    assert!(
        !World::new(scenario(&text("\"fifo\"")))
            .replace_queue("none", |_, _| Plain { waiting: VecDeque::new(), room: 1 })
    );
}
