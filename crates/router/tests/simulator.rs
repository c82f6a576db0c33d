//! The router against the simulator: what came to a simulated link, given to the engine, leaves it at the same nanosecond
//! with the same bytes, marks and drops.

use std::io::{self, Write};
use std::sync::{Arc, Mutex};

use cwnd_router::{Capture, Config, Direction, Engine, Point, Report, Side, Work};
use cwnd_scenario::{Document, Scenario};
use cwnd_sim::World;
use cwnd_trace::{ColumnData, Records, Table};
use cwnd_units::Time;
use pcap_file::pcapng::blocks::enhanced_packet::EnhancedPacketOption;
use pcap_file::pcapng::{Block, PcapNgReader};

/// Rates without common divisors, so that nothing happens at the same instant by design; no handshake, since a simulated SYN
/// is as long as any other header.
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

/// An output that the test keeps.
#[derive(Clone, Default)]
struct Kept(Arc<Mutex<Vec<u8>>>);

impl Write for Kept {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().expect("nobody panicked with it").extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// A captured packet: its headers, and what was said of it.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Caught {
    at: Time,
    headers: Vec<u8>,
    length: usize,
    comment: String,
}

impl Kept {
    fn packets(&self) -> Vec<Caught> {
        let bytes = self.0.lock().expect("nobody panicked with it").clone();
        let mut reader = PcapNgReader::new(&bytes[..]).expect("a pcapng file");
        let mut caught = Vec::new();
        while let Some(block) = reader.next_block() {
            if let Block::EnhancedPacket(packet) = block.expect("a block") {
                let comment = packet.options.iter().find_map(|option| match option {
                    EnhancedPacketOption::Comment(text) => Some(text.to_string()),
                    _ => None,
                });
                caught.push(Caught {
                    at: Time(packet.timestamp.as_nanos() as u64),
                    headers: packet.data.to_vec(),
                    length: packet.original_len as usize,
                    comment: comment.unwrap_or_default(),
                });
            }
        }
        caught
    }
}

fn scenario(text: &str) -> Arc<Scenario> {
    let plan = Document::parse("test.toml", text, &|_| Ok("1\n2\n2\n7\n9\n".to_owned()))
        .and_then(|d| d.plan())
        .unwrap_or_else(|diagnostics| panic!("{diagnostics}"));
    Arc::new(plan.cells[0].scenario.clone())
}

const LINKS: [&str; 3] = ["access", "bottleneck", "exit"];

/// Simulates; what came to the bottleneck, what left it or was dropped, and what arrived behind it.
fn simulate(scenario: &Arc<Scenario>) -> (Records, [Vec<Caught>; 3]) {
    let mut world = World::new(Arc::clone(scenario));
    let kept = LINKS.map(|name| {
        let kept = Kept::default();
        let link = scenario.links.iter().position(|l| l.name == name).expect("it is there");
        world.capture(&[link], Box::new(kept.clone())).expect("memory takes it");
        kept
    });
    let records = world.run(|_| true).expect("nothing stops it");
    (records, kept.map(|k| k.packets()))
}

/// Gives the engine what came to the bottleneck; its own capture, and what arrived behind it.
fn route(scenario: &Scenario, came: &[Caught], point: Point) -> (Report, Vec<Caught>, Vec<Caught>) {
    let link = scenario.links.iter().find(|l| l.name == "bottleneck").expect("it is there");
    let mut config = Config::new(Direction::of_link(link), Direction::unlimited("back"));
    config.seed = scenario.run.seed;
    config.warmup = scenario.run.warmup;
    config.sample = scenario.run.sample;
    let kept = Kept::default();
    let capture =
        Capture::new(Box::new(kept.clone()), "test", &config.directions, point).expect("memory");
    let mut engine = Engine::new(&config).with_capture(capture);
    let mut arrived = Vec::new();
    let mut drain = |engine: &mut Engine, until: Time| {
        // At its own pace, which may be late: whenever the next packet comes in.
        while let Some((due, bytes)) = engine.depart(until, Side::B) {
            let (length, headers) = (bytes.len(), bytes[..bytes.len().min(60)].to_vec());
            arrived.push(Caught { at: due, headers, length, comment: String::new() });
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
    (report, kept.packets(), arrived)
}

/// The same packet, but for payload, which the simulator does not write out.
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

/// Values of one row of a table of links, as text, but for number and name, and for what only a simulator knows.
fn row(table: &Table, row: usize) -> Vec<(&'static str, String)> {
    let value = |data: &ColumnData| match data {
        ColumnData::U64(v) => v[row].to_string(),
        ColumnData::F64(v) => format!("{:?}", v[row]),
        ColumnData::OptionalF64(v) => format!("{:?}", v.get(row)),
        other => panic!("{other:?}"),
    };
    let numbers =
        table.columns.iter().filter(|c| !c.rare && !["link_id", "link"].contains(&c.name));
    numbers.map(|c| (c.name, value(&c.data))).collect()
}

/// Runs both on a bottleneck; `decisions` of each kind are wanted, so that there is something to compare.
fn both(bottleneck: &str, decisions: &[&str]) {
    let scenario = scenario(&text(bottleneck));
    let (records, [came, left, beyond]) = simulate(&scenario);
    assert!(came.len() > 3000, "{} packets came", came.len());
    let (report, captured, arrived) = route(&scenario, &came, Point::Line);
    compare("left", &captured, &left);
    for (routed, simulated) in captured.iter().zip(&left) {
        assert_eq!(routed.comment, simulated.comment);
    }
    compare("arrived", &arrived, &beyond);
    for wanted in decisions {
        let found = captured.iter().filter(|c| c.comment == *wanted).count();
        assert!(found > 3, "{wanted}: {found}");
    }
    let bottleneck =
        scenario.links.iter().position(|l| l.name == "bottleneck").expect("it is there");
    assert_eq!(row(&report.links(), 0), row(&records.links, bottleneck));
    let of_link = |table: &Table, id: u32| -> Vec<_> {
        let Some(ColumnData::U32(ids)) = table.column("link_id") else { panic!("no numbers") };
        (0..ids.len()).filter(|&i| ids[i] == id).map(|i| row(table, i)).collect()
    };
    let (routed, simulated) =
        (of_link(&report.samples, 0), of_link(&records.link_series, bottleneck as u32));
    assert!(simulated.len() >= 80, "{} samples", simulated.len());
    for (r, s) in routed.iter().zip(&simulated) {
        assert_eq!(r, s);
    }
    assert_eq!(routed.len(), simulated.len());
    assert!(report.qdelay().len() > 10);
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
        "rate = { initial = '9973 kbit/s', steps = [{ at = '2.0001 s', rate = '2 Mbit/s' }, { at = '5 s', rate = '13 Mbit/s' }] }\n\
         delay = '3 ms'\nqueue = 'codel'",
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
        "rate = '9973 kbit/s'\ndelay = '3 ms'\nqueue = 'codel'\nloss = 0.002\nloss_every = 701\njitter = '2 ms'\n\
         reorder = 0.01\nreorder_delay = '4 ms'\ndevice_queue = 3",
        &["dropped: link_loss"],
    );
}

#[test]
fn jitter_that_hangs_together_and_recorded_delays_that_begin_anew() {
    both(
        "rate = '9973 kbit/s'\ndelay = '3 ms'\nqueue = 'codel'\njitter = 'lognormal(2 ms, 0.7)'\njitter_correlation = '11 ms'\n\
         delay_steps = [{ at = '10 ms', added = '3 ms' }, { at = '700 ms', added = '1 ms' }]\ndelay_steps_period = '903 ms'",
        &[],
    );
}

#[test]
fn a_capture_at_an_end_has_what_its_host_sends_or_receives() {
    let scenario = scenario(&text(
        "rate = '9973 kbit/s'\ndelay = '3 ms'\nqueue = { kind = 'fifo', limit = '30 packets' }\nloss = 0.01",
    ));
    let (_, [came, ..]) = simulate(&scenario);
    let (_, at_a, arrived) = route(&scenario, &came, Point::At(Side::A));
    compare("sent", &at_a, &came);
    let (_, at_b, _) = route(&scenario, &came, Point::At(Side::B));
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
    let (_, [came, left, _]) = simulate(&scenario);
    let link = scenario.links.iter().find(|l| l.name == "bottleneck").expect("it is there");
    let directions = [Direction::of_link(link), Direction::of_link(link)];
    let mut capture = Capture::of_headers();
    // Both, the first, the second.
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
        // One side is looked after at each packet, the other now and then: all that it did meanwhile is told at once.
        engine.arrive(packet.at, Side::A, &bytes);
        engine.arrive(packet.at, Side::B, &bytes);
        while engine.depart(packet.at, Side::B).is_some() {}
    }
    engine.finish(Time(scenario.run.duration.0), Work::default()).expect("memory takes it");
    let [both, forth, back] = files.map(|file| file.packets());
    assert_eq!(both.len(), forth.len() + back.len());
    assert!(both.is_sorted_by_key(|packet| packet.at));
    // Each direction is what it is alone, and of packets the headers are kept.
    for file in [forth, back] {
        let same = |(routed, simulated): (&Caught, &Caught)| {
            (routed.at, &routed.headers, routed.length, &routed.comment)
                == (simulated.at, &simulated.headers, simulated.length, &simulated.comment)
        };
        assert!(file.iter().zip(&left).all(same));
        assert_eq!(file.len(), left.len());
    }
}
