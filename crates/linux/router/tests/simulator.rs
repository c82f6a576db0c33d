//! Router and simulator compared. Packets that reached a simulated link are given to the engine:
//! they leave it at the same nanosecond, with the same bytes, marks and drops.

use std::collections::BTreeSet;
use std::net::Ipv4Addr;
use std::sync::Arc;

use cwnd_quantity::Time;
use cwnd_router::{Capture, Config, Direction, Engine, Point, Report, Side, Work};
use cwnd_scenario::{Document, Link, Scenario};
use cwnd_sim::World;
use cwnd_tables::{ColumnData, Records, Table};

mod captured;

use captured::{Caught, Kept, of_interface};

/// Scenario around a bottleneck. Rates have no common divisors, so that events do not coincide.
/// There is no handshake, as a simulated SYN is as long as any other header.
fn text(bottleneck: &str) -> String {
    format!(
        r#"
schema = 1
run = {{ duration = "8 s", warmup = "1 s", seed = 5, sample = "100 ms" }}

[link.access]
from = "sender"
to = "router"
rate = "487654321 bit/s"

[link.bottleneck]
from = "router"
to = "exit"
{bottleneck}

[link.exit]
from = "exit"
to = "receiver"
rate = "none"
delay = "1 ms"

[link.back]
from = "receiver"
to = "sender"
rate = "none"
delay = "17 ms"

[flow.marked]
from = "sender"
to = "receiver"
count = 3
spacing = "123457 us"
controller = {{ kind = "newreno", beta_ecn = 0.8 }}
endpoint = {{ ecn = true, handshake = false }}

[flow.plain]
from = "sender"
to = "receiver"
count = 2
spacing = "765433 us"
controller = "cubic"
endpoint = {{ ecn = false, handshake = false }}
"#
    )
}

fn scenario(text: &str) -> Arc<Scenario> {
    let plan = Document::parse("test.toml", text, &|_| Ok("1\n2\n2\n7\n9\n".to_owned()))
        .and_then(|d| d.plan())
        .unwrap_or_else(|diagnostics| panic!("{diagnostics}"));
    Arc::new(plan.cells[0].scenario.clone())
}

const LINKS: [&str; 3] = ["access", "bottleneck", "exit"];
/// Link for messages from the router to the sender.
const HOME: &str = "
[link.home]
from = 'router'
to = 'sender'
rate = 'none'
delay = '0 s'
";

fn link<'a>(scenario: &'a Scenario, name: &str) -> Option<(usize, &'a Link)> {
    scenario.links.iter().enumerate().find(|(_, link)| link.name == name)
}

fn bottleneck(scenario: &Scenario) -> (usize, &Link) {
    link(scenario, "bottleneck").expect("it is there")
}

/// Captures of a simulation: packets that reached the bottleneck, those that left it or were
/// dropped, those that arrived behind it, and messages to the sender.
struct Simulated {
    came: Vec<Caught>,
    left: Vec<Caught>,
    beyond: Vec<Caught>,
    told: Vec<Caught>,
}

fn simulate(scenario: &Arc<Scenario>) -> (Records, Simulated) {
    let mut world = World::new(Arc::clone(scenario));
    let mut keep = |name: &str| {
        let kept = Kept::default();
        if let Some((link, _)) = link(scenario, name) {
            world.capture(&[link], Box::new(kept.clone())).expect("memory takes it");
        }
        kept
    };
    let (kept, told) = (LINKS.map(&mut keep), keep("home"));
    let records = world.run(|_| true).expect("nothing stops it");
    let [came, left, beyond] = kept.each_ref().map(Kept::packets);
    (records, Simulated { came, left, beyond, told: told.packets() })
}

/// Output of the engine: its report, its capture, packets that arrived, and messages to the sender.
struct Routed {
    report: Report,
    captured: Vec<Caught>,
    arrived: Vec<Caught>,
    told: Vec<Caught>,
}

/// Gives the engine the packets that reached the bottleneck.
fn route(scenario: &Scenario, came: &[Caught], point: Point) -> Routed {
    let (_, link) = bottleneck(scenario);
    let mut config = Config::new(Direction::of_link(link), Direction::unlimited("back"));
    config.seed = scenario.run.seed;
    config.warmup = scenario.run.warmup;
    config.sample = scenario.run.sample;
    // Address of a node in the simulator's captures.
    let of_node = |node: usize| Ipv4Addr::from_bits(0x0a00_0001 + node as u32);
    config.address = of_node(link.from);
    let sender = of_node(scenario.flows[0].paths[0].from);
    config.directions[0].watched.insert(sender.into(), 0);
    let kept = Kept::default();
    let capture =
        Capture::new(Box::new(kept.clone()), "test", &config.directions, point).expect("memory");
    let mut engine = Engine::new(&config).with_capture(capture);
    let [mut arrived, mut told] = [Vec::new(), Vec::new()];
    let mut drain = |engine: &mut Engine, until: Time| {
        // The engine is called when the next packet arrives, which may be late.
        for (side, seen) in [(Side::B, &mut arrived), (Side::A, &mut told)] {
            while let Some((at, bytes)) = engine.depart(until, side) {
                let (length, headers) = (bytes.len(), bytes[..bytes.len().min(60)].to_vec());
                let (interface, comment) = (0, String::new());
                seen.push(Caught { at, interface, headers, length, comment });
            }
        }
    };
    for packet in came {
        let mut bytes = packet.headers.clone();
        bytes.resize(packet.length, 0);
        drain(&mut engine, packet.at);
        engine.arrive(packet.at, Side::A, &bytes);
    }
    let end = Time(scenario.run.duration.0);
    drain(&mut engine, Time(end.0 - 1));
    let report = engine.finish(end, Work::default()).expect("memory takes it");
    Routed { report, captured: kept.packets(), arrived, told }
}

/// `true` if two packets are equal, apart from payload, which the simulator does not write.
fn same(routed: &Caught, simulated: &Caught) -> bool {
    let n = simulated.headers.len().min(60);
    routed.at == simulated.at
        && routed.length == simulated.length
        && routed.headers[..n] == simulated.headers[..n]
}

fn compare(what: &str, routed: &[Caught], simulated: &[Caught]) {
    for (i, (r, s)) in routed.iter().zip(simulated).enumerate() {
        assert!(same(r, s), "{what}: packet {i} of {}\n{r:?}\n{s:?}", simulated.len());
    }
    assert_eq!(routed.len(), simulated.len(), "{what}");
}

/// Returns the values of a row of a table of links as text, without number and name, and without
/// columns that only the simulator fills.
fn row(table: &Table, row: usize) -> Vec<(&'static str, String)> {
    let value = |data: &ColumnData| match data {
        ColumnData::U64(v) => v[row].to_string(),
        ColumnData::F64(v) => format!("{:?}", v[row]),
        ColumnData::OptionalF64(v) => format!("{:?}", v.get(row)),
        other => panic!("{other:?}"),
    };
    let known = |rare: &str| ["quenches_total_pkts", "quenches", "load_factor"].contains(&rare);
    let numbers = table.columns.iter().filter(|c| !["link_id", "link"].contains(&c.name));
    let numbers = numbers.filter(|c| !c.rare || known(c.name));
    numbers.map(|c| (c.name, value(&c.data))).collect()
}

/// Runs both on a bottleneck, and returns their results. Each of `decisions` must occur.
fn both(link: &str, decisions: &[&str]) -> (Records, Simulated, Routed) {
    both_of(&text(link), decisions)
}

fn both_of(text: &str, decisions: &[&str]) -> (Records, Simulated, Routed) {
    let scenario = scenario(text);
    let (records, simulated) = simulate(&scenario);
    let Simulated { came, left, beyond, told } = &simulated;
    assert!(came.len() > 3000, "{} packets came", came.len());
    let routed = route(&scenario, came, Point::Line);
    let [captured, messages] = [0, 1].map(|i| of_interface(i, &routed.captured));
    compare("left", &captured, left);
    for (routed, simulated) in captured.iter().zip(left) {
        assert_eq!(routed.comment, simulated.comment);
    }
    compare("arrived", &routed.arrived, beyond);
    compare("told", &routed.told, told);
    compare("told, as it was captured", &messages, told);
    for wanted in decisions {
        let found = captured.iter().filter(|c| c.comment == *wanted).count();
        assert!(found > 3, "{wanted}: {found}");
    }
    let (of_bottleneck, _) = bottleneck(&scenario);
    let report = &routed.report;
    assert_eq!(row(&report.links(), 0), row(&records.links, of_bottleneck));
    let of_link = |table: &Table, id: u32| -> Vec<_> {
        let Some(ColumnData::U32(ids)) = table.column("link_id") else { panic!("no numbers") };
        (0..ids.len()).filter(|&i| ids[i] == id).map(|i| row(table, i)).collect()
    };
    let (r, s) = (of_link(&report.samples, 0), of_link(&records.link_series, of_bottleneck as u32));
    assert!(s.len() >= 80, "{} samples", s.len());
    for (r, s) in r.iter().zip(&s) {
        assert_eq!(r, s);
    }
    assert_eq!(r.len(), s.len());
    assert!(report.qdelay().len() > 10);
    // All packets are data of one source.
    let there = &report.directions[0];
    assert!(there.waits[0].iter().eq(there.qdelay.buckets()));
    (records, simulated, routed)
}

/// Returns a counter of the simulator, after checking that the router's is equal; zero if neither
/// has it.
fn counted(name: &str, records: &Records, routed: &Routed) -> u64 {
    let simulated = records.activity.get(name).unwrap_or(0);
    assert_eq!(routed.report.counted().get(name).unwrap_or(0), simulated, "{name}");
    simulated
}

#[test]
fn fifo() {
    both(
        "rate = '9973 kbit/s'\ndelay = '3 ms'\nqueue = { kind = 'fifo', limit = '30 packets' }",
        &["dropped: overlimit"],
    );
}

#[test]
fn codel_on_a_line_without_propagation() {
    both("rate = '9973 kbit/s'\nqueue = 'codel'", &["dropped: codel", "marked: codel"]);
}

#[test]
fn pie_with_its_clock_and_its_lots() {
    both("rate = '9973 kbit/s'\ndelay = '3 ms'\nqueue = 'pie'", &["dropped: pie", "marked: pie"]);
}

#[test]
fn red() {
    both(
        "rate = '9973 kbit/s'\ndelay = '3 ms'\nqueue = { kind = 'red', ecn = true }",
        &["dropped: red_early", "marked: red_early"],
    );
}

#[test]
fn fq_codel_with_a_flow_for_each_address_and_port() {
    both("rate = '9973 kbit/s'\ndelay = '3 ms'\nqueue = 'fq-codel'", &["marked: codel"]);
}

#[test]
fn a_rate_that_changes() {
    both(
        "rate = { initial = '9973 kbit/s', steps = [{ at = '2.0001 s', rate = '2 Mbit/s' }, \
         { at = '5 s', rate = '13 Mbit/s' }] }\ndelay = '3 ms'\nqueue = 'codel'",
        &["marked: codel"],
    );
}

#[test]
fn a_mahimahi_trace() {
    both("trace = 'some.trace'\ndelay = '3 ms'\nqueue = 'codel'", &[]);
}

#[test]
fn every_fault_of_a_link_and_a_device_below_the_queue() {
    both(
        "rate = '9973 kbit/s'\ndelay = '3 ms'\nqueue = 'codel'\nloss = 0.002\nloss_every = 701\n\
         jitter = '2 ms'\nreorder = 0.01\nreorder_delay = '4 ms'\ndevice_queue = 3",
        &["dropped: link_loss"],
    );
}

#[test]
fn jitter_that_hangs_together_and_recorded_delays_that_begin_anew() {
    both(
        "rate = '9973 kbit/s'\ndelay = '3 ms'\nqueue = 'codel'\njitter = 'lognormal(2 ms, 0.7)'\n\
         jitter_correlation = '11 ms'\n\
         delay_steps = [{ at = '10 ms', added = '3 ms' }, { at = '700 ms', added = '1 ms' }]\n\
         delay_steps_period = '903 ms'",
        &[],
    );
}

#[test]
fn source_quenches_about_marks_on_arrival() {
    let (records, ..) = both(
        &format!(
            "rate = '9973 kbit/s'\ndelay = '3 ms'\nqueue = {{ kind = 'red', ecn = true }}\n\
             messenger = 'quench'\n{HOME}"
        ),
        &["dropped: red_early", "marked: red_early"],
    );
    let sent = records.activity.get("quenches_sent");
    assert!(sent.is_some_and(|sent| sent > 20), "{sent:?}");
}

#[test]
fn source_quenches_of_several_levels_about_all_drops_and_marks_on_departure_up_to_a_limit() {
    let (records, simulated, routed) = both(
        &format!(
            "rate = '9973 kbit/s'\ndelay = '3 ms'\n\
             queue = {{ kind = 'codel', limit = '40 packets' }}\ndevice_queue = 2\n\
             messenger = {{ kind = 'quench', ect_only = false, levels = '20 kB, 30 packets', \
             interval = '3 ms' }}\n{HOME}"
        ),
        &["dropped: codel", "marked: codel", "dropped: overlimit"],
    );
    let sent = counted("quenches_sent", &records, &routed);
    assert!(sent > 20 && counted("quenches_withheld", &records, &routed) > 20);
    assert_eq!(routed.told.len() as u64, sent);
    // All kinds of messages occur: the fifth octet of the ICMP header contains the mark and the
    // level.
    let fifth: Vec<u8> = simulated.told.iter().map(|c| c.headers[24]).collect();
    for wanted in [0x80, 0x00, 0x01, 0x02] {
        assert!(fifth.contains(&wanted), "{wanted:#x}: {fifth:x?}");
    }
}

/// Returns the scenario with these flows in place of the first group, and with the meter also at
/// the fast link before the bottleneck.
fn steered(bottleneck: &str, controller: &str, endpoint: &str, meter: &str) -> String {
    let (old, rate) = (
        "controller = { kind = \"newreno\", beta_ecn = 0.8 }\n\
         endpoint = { ecn = true, handshake = false }",
        "rate = \"487654321 bit/s\"",
    );
    let text = text(bottleneck);
    assert!(text.contains(old) && text.contains(rate));
    let new = format!("controller = '{controller}'\nendpoint = {{ {endpoint} }}");
    text.replace(old, &new).replace(rate, &format!("{rate}\nmeter = {meter}"))
}

#[test]
fn vcps_meter_beside_a_queue_that_marks() {
    let text = steered(
        "rate = '9973 kbit/s'\ndelay = '3 ms'\nqueue = { kind = 'pie', ecn = true }\nmeter = 'vcp'",
        "vcp",
        "ecn = true, handshake = false, echo = 'changes'",
        "'vcp'",
    );
    let (records, simulated, routed) = both_of(&text, &["marked: overload"]);
    assert!(simulated.left.iter().any(|packet| packet.comment == "marked: pie"), "PIE marked");
    for level in ["load_intervals_low", "load_intervals_high", "load_intervals_over"] {
        // The simulator also counts the fast link's.
        let (ours, all) = (routed.report.counted().get(level), records.activity.get(level));
        assert!(ours.is_some_and(|ours| ours > 0) && ours <= all, "{level}: {ours:?}, {all:?}");
    }
    assert!(simulated.left.iter().any(|packet| packet.headers[1] & 0b11 == 0b01), "high load");
}

#[test]
fn adpm_on_identifications_that_senders_write() {
    let text = steered(
        "rate = '9973 kbit/s'\ndelay = '3 ms'\nqueue = { kind = 'codel', ecn = true }\n\
         meter = 'adpm'",
        "bmcc",
        "ecn = true, handshake = false, echo = 'load'",
        "'adpm'",
    );
    let (_, simulated, routed) = both_of(&text, &["marked: codel"]);
    let told = simulated.left.iter().filter(|packet| packet.headers[1] & 0b11 == 0b01).count();
    assert!(told > 100, "{told}");
    assert!(routed.report.counted().get("packets_below_load").is_some_and(|told| told > 100));
}

#[test]
fn adpm_on_identifications_that_it_draws() {
    let (records, simulated, routed) = both(
        "rate = '9973 kbit/s'\ndelay = '3 ms'\nqueue = { kind = 'codel', ecn = true }\n\
         meter = { kind = 'adpm', identification = 'drawn' }",
        &["marked: codel", "marked: overload"],
    );
    assert!(counted("packets_below_load", &records, &routed) > 100);
    let identified = counted("packets_identified", &records, &routed);
    assert!(identified > 1000);
    // Identifications of packets that left as ECT(0) or ECT(1) mostly differ.
    let capable = |packet: &&Caught| matches!(packet.headers[1] & 0b11, 0b01 | 0b10);
    let of = |packet: &Caught| u16::from_be_bytes([packet.headers[4], packet.headers[5]]);
    let drawn: BTreeSet<u16> = simulated.left.iter().filter(capable).map(of).collect();
    assert!(drawn.len() as f64 > 0.9 * identified as f64, "{} of {identified}", drawn.len());
}

#[test]
fn a_capture_at_an_end_has_what_its_host_sends_or_receives() {
    let scenario = scenario(&text(
        "rate = '9973 kbit/s'\ndelay = '3 ms'\nqueue = { kind = 'fifo', limit = '30 packets' }\n\
         loss = 0.01",
    ));
    let (_, Simulated { came, .. }) = simulate(&scenario);
    let Routed { captured: at_a, arrived, .. } = route(&scenario, &came, Point::At(Side::A));
    compare("sent", &at_a, &came);
    let Routed { captured: at_b, .. } = route(&scenario, &came, Point::At(Side::B));
    assert!(at_b.len() < came.len() - 30, "what is lost never comes there");
    assert_eq!(at_b.len(), arrived.len());
    for (seen, due) in at_b.iter().zip(&arrived) {
        assert!(seen.at >= due.at && seen.comment.is_empty());
        assert_eq!((seen.length, &seen.headers[..40]), (due.length, &due.headers[..40]));
    }
}

#[test]
fn a_file_with_both_directions_is_in_order_of_time_however_late_the_router_is_called() {
    let scenario = scenario(&text("rate = '9973 kbit/s'\ndelay = '3 ms'"));
    let (_, Simulated { came, left, .. }) = simulate(&scenario);
    let (_, link) = bottleneck(&scenario);
    let directions = [Direction::of_link(link), Direction::of_link(link)];
    let mut capture = Capture::of_headers();
    // Directions of each file: both, the first, the second.
    let files = [&[0, 1][..], &[0], &[1]].map(|lanes| {
        let kept = Kept::default();
        let seen = lanes.iter().map(|&lane| (lane, &directions[lane], "a direction"));
        capture.add(Box::new(kept.clone()), "test", seen).expect("memory takes it");
        kept
    });
    let [forth, back] = directions;
    let mut engine = Engine::new(&Config::new(forth, back)).with_capture(capture);
    for packet in &came {
        let mut bytes = packet.headers.clone();
        bytes.resize(packet.length, 0);
        // Packets that leave at side B are taken at each arrival, those at side A never.
        engine.arrive(packet.at, Side::A, &bytes);
        engine.arrive(packet.at, Side::B, &bytes);
        while engine.depart(packet.at, Side::B).is_some() {}
    }
    engine.finish(Time(scenario.run.duration.0), Work::default()).expect("memory takes it");
    let [both, forth, back] = files.map(|file| file.packets());
    assert_eq!(both.len(), forth.len() + back.len());
    assert!(both.is_sorted_by_key(|packet| packet.at));
    // Each file equals the capture of its direction alone, with headers only.
    for file in [forth, back] {
        let same = |(routed, simulated): (&Caught, &Caught)| {
            (routed.at, &routed.headers, routed.length, &routed.comment)
                == (simulated.at, &simulated.headers, simulated.length, &simulated.comment)
        };
        assert!(file.iter().zip(&left).all(same));
        assert_eq!(file.len(), left.len());
    }
}
