//! Meters that write headers: the vectors of `vectors/`, and invariants under any input. Step
//! marking beside queues, where only the backlog at arrival decides, and the decisions that lead to
//! a source quench.

use cwnd_aqm::messengers::quench;
use cwnd_aqm::meters::step;
use cwnd_aqm::{
    AnyQdisc, Backlog, Context, Messenger, MessengerParams, Meter, MeterParams, Outcome, Packet,
    Qdisc as _, QueueParams, Reason, Verdict, red,
};
use cwnd_packet::{CongestionHeader, Ecn};
use cwnd_quantity::{Bytes, Duration, Levels, LinkProperties, QueueSize, Rate, Rng, Streams, Time};
use cwnd_schema::{Params as _, ParamsChoice, Value};
use proptest::prelude::*;
use serde_json::Value as Json;

use crate::{Log, Pkt, link, ms};

/// A packet with a header, or without room for one.
#[derive(Clone, Copy, Debug)]
struct Carrier {
    size: u32,
    header: Option<CongestionHeader>,
}

impl Packet for Carrier {
    fn wire_bytes(&self) -> u32 {
        self.size
    }
    fn flow_hash(&self) -> u64 {
        0
    }
}

/// Context with headers only, which fails on a mark or a drop.
struct Headers;

impl Context<Carrier> for Headers {
    fn ecn(&self, _: &Carrier) -> Ecn {
        Ecn::NotEct
    }
    fn set_ecn(&mut self, _: &mut Carrier, ecn: Ecn) {
        panic!("{ecn:?} was set");
    }
    fn header<'a>(&'a mut self, packet: &'a mut Carrier) -> Option<&'a mut CongestionHeader> {
        packet.header.as_mut()
    }
    fn dropped(&mut self, _: Time, _: &Carrier, reason: Reason) {
        panic!("dropped for {reason:?}");
    }
    fn marked(&mut self, _: Time, _: &Carrier, reason: Reason, _: bool) {
        panic!("marked for {reason:?}");
    }
}

/// A meter, and the backlog of the queue beside it.
struct Beside {
    meter: Box<dyn Meter<Carrier>>,
    waiting: Backlog,
}

impl Beside {
    fn new(params: &MeterParams, rate: Rate) -> Self {
        let link = LinkProperties { rate, bdp_rtt: Duration::from_millis(100) };
        let meter = params.build(&link, Rng::named(1, "meter")).expect("a kind that is one");
        Self { meter, waiting: Backlog::default() }
    }

    fn arrives(&mut self, now: Time, packet: &mut Carrier) {
        self.meter.arrives(now, packet, self.waiting, &mut Headers);
        self.waiting.packets += 1;
        self.waiting.bytes += u64::from(packet.size);
    }

    fn leaves(&mut self, now: Time, packet: &mut Carrier) {
        self.waiting.packets -= 1;
        self.waiting.bytes -= u64::from(packet.size);
        self.meter.leaves(now, packet, self.waiting, &mut Headers);
    }

    fn run_timers(&mut self, until: Time) {
        while let Some(at) = self.meter.next_timer().filter(|&at| at <= until) {
            self.meter.on_timer(at, self.waiting);
            assert!(self.meter.next_timer().is_none_or(|next| next > at), "its clock goes forward");
        }
    }
}

fn params(case: &Json) -> MeterParams {
    let mut params = MeterParams::of_kind(case["meter"].as_str().unwrap()).expect("a kind");
    let preset = case["preset"].as_str();
    if let Some(preset) = preset {
        assert!(params.params_mut().apply_preset(preset), "{preset}");
    }
    for (name, value) in case["parameters"].as_object().unwrap() {
        let (name, value) = match (name.strip_suffix("_ns"), value) {
            (Some(name), Json::Number(ns)) => {
                (name, Value::Text(Duration(ns.as_u64().unwrap()).to_string()))
            }
            (None, Json::Number(n)) => (name.as_str(), Value::Float(n.as_f64().unwrap())),
            (None, Json::String(text)) => (name.as_str(), Value::Text(text.clone())),
            other => panic!("{other:?}"),
        };
        if preset.is_some() {
            assert_eq!(params.params().get(name), Some(value), "{name}");
        } else {
            params.params_mut().set(name, &value).unwrap();
        }
    }
    params.params().check().unwrap();
    params
}

fn header(json: &Json) -> Option<CongestionHeader> {
    let number = |i: usize| json[i].as_i64().unwrap();
    Some(match json.as_array()?.len() {
        3 => CongestionHeader::Xcp {
            cwnd: number(0) as u32,
            rtt_us: number(1) as u32,
            delta: number(2) as i32,
        },
        2 => CongestionHeader::Rcp {
            rate: Rate(json[0].as_u64().unwrap()),
            rtt_us: number(1) as u32,
        },
        other => panic!("{other}"),
    })
}

/// `true` if a header has the vector's window change, or its rate to a billionth and 1 bit/s.
fn is_expected(header: Option<CongestionHeader>, expected: &Json) -> bool {
    match header {
        Some(CongestionHeader::Xcp { delta, .. }) => expected.as_i64() == Some(i64::from(delta)),
        Some(CongestionHeader::Rcp { rate, .. }) => {
            let (ours, theirs) = (rate.0 as f64, expected.as_f64().unwrap());
            (ours - theirs).abs() <= 1.0 + 1e-9 * theirs
        }
        _ => expected.is_null(),
    }
}

/// Replays all cases of a file on links of `1 / believed` times the rate, whose routers assume the
/// part `believed` of it.
fn replay(text: &str, believed: f64) {
    let file: Json = serde_json::from_str(text).unwrap();
    for case in file["cases"].as_array().unwrap() {
        let rate = Rate((case["rate_bit_per_s"].as_u64().unwrap() as f64 / believed) as u64);
        let mut params = params(case);
        params.params_mut().set("assumed_capacity", &Value::Float(believed)).unwrap();
        let mut beside = Beside::new(&params, rate);
        let mut packets = Vec::new();
        for (number, row) in case["events"].as_array().unwrap().iter().enumerate() {
            let at = format!("{}, event {number}: {row}", case["name"]);
            let number = |i: usize| row[i].as_u64().unwrap();
            let now = Time(number(1));
            match row[0].as_str().unwrap() {
                "arrive" => {
                    let mut packet = Carrier { size: number(3) as u32, header: header(&row[5]) };
                    beside.waiting.bytes = number(4);
                    beside.arrives(now, &mut packet);
                    packets.push(packet);
                }
                "leave" => {
                    let mut packet: Carrier = packets[number(2) as usize];
                    beside.waiting.bytes = number(3) + u64::from(packet.size);
                    beside.leaves(now, &mut packet);
                    assert!(is_expected(packet.header, &row[4]), "{packet:?}, {at}");
                }
                "timer" => {
                    assert_eq!(beside.meter.next_timer(), Some(now), "{at}");
                    beside.waiting.bytes = number(2);
                    beside.run_timers(now);
                }
                other => panic!("{other}"),
            }
        }
    }
}

#[test]
fn xcp_is_that_of_katabi_handley_and_rohrs() {
    replay(include_str!("../../../../vectors/xcp.json"), 1.0);
}

#[test]
fn rcp_is_that_of_dukkipati_and_others() {
    replay(include_str!("../../../../vectors/rcp.json"), 1.0);
}

#[test]
fn a_router_that_believes_in_half_of_its_link_does_as_one_of_half_the_rate() {
    replay(include_str!("../../../../vectors/xcp.json"), 0.5);
    replay(include_str!("../../../../vectors/rcp.json"), 0.5);
}

fn any_header() -> impl Strategy<Value = Option<CongestionHeader>> {
    let cwnd = prop_oneof![3 => 1_000..100_000_u32, 1 => any::<u32>()];
    let rtt = prop_oneof![1 => Just(0), 3 => 1_000..300_000_u32, 1 => any::<u32>()];
    let delta = prop_oneof![3 => Just(i32::MAX), 2 => -2_000..2_000, 1 => any::<i32>()];
    prop_oneof![
        1 => Just(None),
        1 => Just(Some(CongestionHeader::None)),
        6 => (cwnd, rtt, delta)
            .prop_map(|(cwnd, rtt_us, delta)| Some(CongestionHeader::Xcp { cwnd, rtt_us, delta })),
    ]
}

proptest! {
    /// Whatever senders write, the rate stays above zero and at most the link's, and no header's
    /// rate rises.
    #[test]
    fn rcp_offers_no_more_than_the_link_and_never_nothing(
        steps in prop::collection::vec(
            (any::<u32>(), any::<u64>(), 40..1_501_u32, 0..20_000_u64, any::<bool>()),
            1..300,
        ),
        preset in any::<bool>(),
    ) {
        let mut params = MeterParams::of_kind("rcp").unwrap();
        prop_assert!(!preset || params.params_mut().apply_preset("ns2"));
        let link = Rate::from_mbit(10);
        let mut beside = Beside::new(&params, link);
        let (mut now, mut waiting) = (Time::ZERO, std::collections::VecDeque::new());
        for (rtt_us, asked, size, wait_us, leaves) in steps {
            now += Duration::from_micros(wait_us);
            beside.run_timers(now);
            let header = Some(CongestionHeader::Rcp { rate: Rate(asked), rtt_us });
            let mut packet = Carrier { size, header };
            beside.arrives(now, &mut packet);
            waiting.push_back((asked, packet));
            if !leaves {
                continue;
            }
            let (asked, mut packet) = waiting.pop_front().expect("one has come");
            beside.leaves(now, &mut packet);
            let Some(CongestionHeader::Rcp { rate, .. }) = packet.header else {
                panic!("it has one")
            };
            prop_assert!(rate.0 <= asked && rate.0 <= link.0);
            prop_assert!(rate.0 >= 1 || asked == 0);
        }
    }

    /// Whatever senders write, even false values, no router gives more than those before it. A
    /// packet gets at most what efficiency and shuffling give in a round trip. Other headers stay
    /// unchanged.
    #[test]
    fn xcp_gives_no_more_than_there_is_and_never_more_than_was_left(
        steps in prop::collection::vec(
            (any_header(), 40..1_501_u32, 0..20_000_u64, any::<bool>()),
            1..300,
        ),
        preset in any::<bool>(),
    ) {
        let mut params = MeterParams::of_kind("xcp").unwrap();
        prop_assert!(!preset || params.params_mut().apply_preset("ns2"));
        let rate = Rate::from_mbit(10);
        let mut beside = Beside::new(&params, rate);
        let (mut now, mut waiting) = (Time::ZERO, std::collections::VecDeque::new());
        for (header, size, wait_us, leaves) in steps {
            now += Duration::from_micros(wait_us);
            beside.run_timers(now);
            let mut packet = Carrier { size, header };
            beside.arrives(now, &mut packet);
            waiting.push_back(packet);
            if !leaves {
                continue;
            }
            let before = waiting.pop_front().expect("one has come");
            let mut after = before;
            beside.leaves(now, &mut after);
            match (before.header, after.header) {
                (
                    Some(CongestionHeader::Xcp { cwnd, rtt_us, delta: left }),
                    Some(CongestionHeader::Xcp { cwnd: same, rtt_us: rtt, delta }),
                ) => {
                    prop_assert_eq!((cwnd, rtt_us), (same, rtt));
                    prop_assert!(delta <= left);
                    // At most α C + γ y per round trip, and the rest of a byte. The arrivals are at
                    // most one packet per step.
                    let most = 0.4 * 1.25e6 + 0.1 * 300.0 * 1500.0 / 0.001;
                    prop_assert!(f64::from(delta) <= most * f64::from(rtt) / 1e6 + 1.0);
                }
                (before, after) => prop_assert_eq!(before, after),
            }
        }
    }

    /// Flows that apply all feedback, from any windows: their rates become equal, the link is busy,
    /// and no long queue remains.
    #[test]
    fn xcp_brings_windows_to_equal_rates_and_the_link_to_its_capacity(
        windows in prop::collection::vec(1_500.0..120_000.0_f64, 2..8),
    ) {
        let rate = Rate::from_mbit(10);
        let mut beside = Beside::new(&MeterParams::of_kind("xcp").unwrap(), rate);
        let rtt_us = 50_000;
        let rtt = f64::from(rtt_us) / 1e6;
        let mut windows = windows;
        let mut due = vec![0.0_f64; windows.len()];
        // A fluid model: each flow is paced at cwnd / RTT and gets feedback a round trip later. The
        // line serves bytes.
        let mut feedback = std::collections::VecDeque::<(f64, usize, i32)>::new();
        let mut free = 0.0_f64;
        let mut waiting = std::collections::VecDeque::<(f64, usize, Carrier)>::new();
        let mut sent = 0.0;
        let seconds = 20.0;
        loop {
            let due_by_flow = due.iter().copied().enumerate();
            let (i, at) = due_by_flow.min_by(|a, b| a.1.total_cmp(&b.1)).unwrap();
            if at > seconds {
                break;
            }
            while let Some((left, flow, size)) = waiting.front().copied().filter(|w| w.0 <= at) {
                waiting.pop_front();
                let mut packet: Carrier = size;
                let now = Time((left * 1e9) as u64);
                beside.run_timers(now);
                beside.leaves(now, &mut packet);
                let Some(CongestionHeader::Xcp { delta, .. }) = packet.header else {
                    panic!("it has one")
                };
                feedback.push_back((left + rtt, flow, delta));
            }
            while let Some((_, flow, delta)) = feedback.front().copied().filter(|t| t.0 <= at) {
                feedback.pop_front();
                windows[flow] = (windows[flow] + f64::from(delta)).max(1000.0);
            }
            let now = Time((at * 1e9) as u64);
            beside.run_timers(now);
            let cwnd = windows[i] as u32;
            let header = Some(CongestionHeader::Xcp { cwnd, rtt_us, delta: i32::MAX });
            let mut packet = Carrier { size: 1000, header };
            beside.arrives(now, &mut packet);
            free = free.max(at) + 1000.0 * 8.0 / rate.0 as f64;
            waiting.push_back((free, i, packet));
            due[i] = at + 1000.0 / (windows[i] / rtt);
            if at > seconds / 2.0 {
                sent += 1000.0;
            }
        }
        // Windows are those of this moment; the utilization is over the second half of the run.
        let share = windows.iter().sum::<f64>() / windows.len() as f64;
        for window in &windows {
            prop_assert!((window / share - 1.0).abs() < 0.05, "{windows:?} of {share}");
        }
        let busy = sent / (1.25e6 * seconds / 2.0);
        prop_assert!((0.99..1.01).contains(&busy), "{busy}");
        prop_assert!(beside.waiting.bytes < 20_000, "{:?}", beside.waiting);
    }
}

fn beside(queue: &str, threshold: QueueSize) -> AnyQdisc<Pkt> {
    let random = Streams::new(1);
    let queue = QueueParams::of_kind(queue).unwrap().build(&link(), random.named("queue"));
    let meter = MeterParams::Step(step::Params { threshold });
    queue.with_meter(meter.build(&link(), random.named("meter")).unwrap())
}

proptest! {
    /// RFC 8257 § 3.1: CE if the queue is longer than K on arrival, the packet itself counted.
    #[test]
    fn a_packet_is_marked_where_it_makes_what_waits_longer_than_the_threshold(
        steps in prop::collection::vec((0u32..3, 40u32..1501, any::<bool>()), 1..400),
        packets in 0u64..20,
        bytes in prop::option::of(0u64..20_000),
    ) {
        let threshold = bytes.map_or(QueueSize::Packets(packets), |b| QueueSize::Bytes(Bytes(b)));
        let mut queue = beside("fifo", threshold);
        let mut log = Log::default();
        let (mut waiting, mut expected) = (std::collections::VecDeque::new(), Vec::new());
        for (id, (what, size, capable)) in (0..).zip(steps) {
            let now = Time(id * 1000);
            if what == 0 {
                let left = queue.dequeue(now, &mut log).map(|(p, _)| p.id);
                prop_assert_eq!(left, waiting.pop_front().map(|(id, _)| id));
                continue;
            }
            let packet = if capable { Pkt::ect(id) } else { Pkt::plain(id) }.of_size(size);
            let held: u64 = waiting.iter().map(|&(_, size)| u64::from(size)).sum();
            let above = match bytes {
                Some(most) => held + u64::from(size) > most,
                None => waiting.len() as u64 + 1 > packets,
            };
            if above && capable {
                expected.push(id);
            }
            queue.enqueue(now, packet, &mut log);
            if log.drops.last().is_none_or(|(_, dropped, _)| dropped.id != id) {
                waiting.push_back((id, size));
            }
        }
        let marked: Vec<u64> = log.marks.iter().map(|(_, packet, _)| packet.id).collect();
        prop_assert_eq!(marked, expected);
        prop_assert!(log.marks.iter().all(|(.., reason)| *reason == step::STEP));
    }
}

proptest! {
    /// The switch of DCTCP's paper § 3.1, which is RED with both thresholds at K and no average,
    /// marks as the step does.
    #[test]
    fn red_with_equal_thresholds_and_no_average_marks_as_the_step(
        arrives in prop::collection::vec(any::<bool>(), 1..400),
        packets in 1u64..20,
    ) {
        let threshold = QueueSize::Packets(packets);
        let (min_th, max_th) = (threshold, threshold);
        let params = red::Params { min_th, max_th, w_q: 1.0, ..Default::default() };
        let red = QueueParams::Red(params).build(&link(), Streams::new(1).named("red"));
        let marked = |mut queue: AnyQdisc<Pkt>| {
            let mut log = Log::default();
            for (id, arrives) in (0..).zip(&arrives) {
                match arrives {
                    true => queue.enqueue(Time(id * 1000), Pkt::ect(id), &mut log),
                    false => drop(queue.dequeue(Time(id * 1000), &mut log)),
                }
            }
            (log.marks.iter().map(|(_, packet, _)| packet.id).collect::<Vec<_>>(), log.drops.len())
        };
        prop_assert_eq!(marked(red), marked(beside("fifo", threshold)));
    }
}

#[test]
fn a_threshold_in_time_or_bdp_is_what_the_link_sends_in_it() {
    // 10 ms at 10 Mbit/s are 12.5 kB, as is a tenth of the 125 kB: eight full packets fit, the
    // ninth does not.
    for threshold in [QueueSize::Time(Duration::from_millis(10)), QueueSize::MilliBdp(100)] {
        for kind in ["fifo", "codel", "fq-codel"] {
            let (mut queue, mut log) = (beside(kind, threshold), Log::default());
            for id in 0..12 {
                queue.enqueue(Time::ZERO, Pkt::ect(id), &mut log);
            }
            let marked: Vec<u64> = log.marks.iter().map(|(_, packet, _)| packet.id).collect();
            assert_eq!(marked, [8, 9, 10, 11], "{kind}");
            assert_eq!(log.drops, []);
        }
    }
}

const LINK: LinkProperties =
    LinkProperties { rate: Rate::from_mbit(8), bdp_rtt: Duration::from_millis(100) };
const EMPTY: Backlog = Backlog { packets: 0, bytes: 0 };

fn messenger(params: quench::Params) -> Box<dyn Messenger<Pkt>> {
    MessengerParams::Quench(params).build(&LINK).unwrap()
}

fn verdict(at: Time, ecn: Ecn, what: Outcome) -> Verdict<Pkt> {
    let packet = Pkt { ecn, ..Pkt::plain(1) };
    Verdict { at, packet, what, reason: Reason::OVERLIMIT }
}

const NEW_MARK: Outcome = Outcome::Marked { already: false };

/// The three cases of BECN § IV-A, and those that it does not cover.
#[test]
fn sources_hear_of_new_marks_and_of_drops_of_capable_packets() {
    let mut becn = messenger(quench::Params::default());
    let mut every = messenger(quench::Params { ect_only: false, ..quench::Params::default() });
    for (ecn, what, reported, all_reported) in [
        (Ecn::Ce, NEW_MARK, true, true),
        (Ecn::Ce, Outcome::Marked { already: true }, false, false),
        (Ecn::Ect0, Outcome::Dropped, true, true),
        (Ecn::Ect1, Outcome::Dropped, true, true),
        (Ecn::Ce, Outcome::Dropped, true, true),
        (Ecn::NotEct, Outcome::Dropped, false, true),
    ] {
        let verdict = verdict(ms(1), ecn, what);
        let [reported, all_reported] =
            [reported, all_reported].map(|reported| reported.then_some(0));
        assert_eq!(becn.on_verdict(&verdict, EMPTY, &Log::default()), reported, "{ecn:?} {what:?}");
        assert_eq!(
            every.on_verdict(&verdict, EMPTY, &Log::default()),
            all_reported,
            "{ecn:?} {what:?}"
        );
    }
}

/// RFC 1812 § 4.3.2.8: a router can limit the rate of its source quenches.
#[test]
fn no_two_messages_leave_within_the_interval_and_what_is_withheld_is_counted() {
    let interval = Some(Duration::from_millis(10));
    let mut messenger = messenger(quench::Params { interval, ..quench::Params::default() });
    let reported: Vec<u64> = (0..50)
        .filter(|&at| {
            let verdict = verdict(ms(at), Ecn::Ce, NEW_MARK);
            messenger.on_verdict(&verdict, EMPTY, &Log::default()).is_some()
        })
        .collect();
    assert_eq!(reported, [0, 10, 20, 30, 40]);
    let mut counted = Vec::new();
    messenger.count(&mut |name, count| counted.push((name, count)));
    assert_eq!(counted, [("quenches_withheld", 45)]);
}

/// Multi-level BECN: each length that the queue has reached is one level more, in any unit.
#[test]
fn a_message_says_how_many_lengths_the_queue_has_reached() {
    // 8 Mbit/s: 5 ms are 5000 B.
    let sizes = [
        QueueSize::Packets(4),
        QueueSize::Time(Duration::from_millis(5)),
        QueueSize::Bytes(Bytes(20_000)),
    ];
    let levels = Levels::of(&sizes);
    let mut mecn = messenger(quench::Params { levels, ..quench::Params::default() });
    let mut level = |packets, bytes| {
        let queued = Backlog { packets, bytes };
        mecn.on_verdict(&verdict(ms(1), Ecn::Ce, NEW_MARK), queued, &Log::default())
    };
    assert_eq!(level(3, 4999), Some(0));
    assert_eq!(level(4, 4999), Some(1));
    assert_eq!(level(5, 5000), Some(2));
    assert_eq!(level(30, 30_000), Some(3));
    let many = Levels::of(&[QueueSize::Packets(1); 8]);
    let error = quench::Params { levels: many, ..quench::Params::default() }.check().unwrap_err();
    assert_eq!(error.key, "levels");
}
