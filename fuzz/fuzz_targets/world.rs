//! Fuzz target of the simulator: small worlds with any links, routes, queues, impairments, flows
//! and timers. Each audit finds every packet in exactly one place.

#![cfg_attr(not(test), no_main)]

#[cfg(test)]
use super::{bytes, feedback_schemes, parts};
#[cfg(not(test))]
#[path = "../bytes.rs"]
mod bytes;
#[cfg(not(test))]
#[path = "../../tests/suite/feedback_schemes.rs"]
mod feedback_schemes;
#[cfg(not(test))]
#[path = "../../tests/suite/custom_parts/parts.rs"]
mod parts;

use std::fmt::Write as _;
use std::sync::Arc;

use cwnd_aqm::{MessengerParams, MeterParams, QueueParams};
use cwnd_cc::ControllerParams;
use cwnd_packet::HasContract;
use cwnd_quantity::Duration;
use cwnd_scenario::Document;
use cwnd_schema::ParamsChoice;
use cwnd_sim::World;

use bytes::Bytes;
use feedback_schemes::FEEDBACK_SCHEMES;
use parts::{DelayBackoff, FairShareMeter, FeedbackSender, MarkEveryNth, ObjectSequence, SumEcho};

/// Least byte that selects a kind of a registry; smaller ones select a row of this file. So a new
/// kind changes only the worlds of inputs that have such a byte.
const REGISTERED: u8 = 240;
const NODES: [&str; 4] = ["a", "b", "c", "d"];
const QUEUES: [&str; 6] = [
    "\"fifo\"",
    "{ kind = \"fifo\", limit = \"2 packets\" }",
    "{ kind = \"codel\", ecn = true }",
    "{ kind = \"pie\", ecn = true, limit = \"20 packets\" }",
    "{ kind = \"red\", ecn = true }",
    "\"fq-codel\"",
];
const RATES: [&str; 5] = [
    "rate = \"1 Mbit/s\"",
    "rate = \"10 Mbit/s\"",
    "rate = \"1 Gbit/s\"",
    "rate = { initial = \"2 Mbit/s\", steps = [{ at = \"5 ms\", rate = \"20 Mbit/s\" }] }",
    "rate = { trace_ms = [0, 0, 1, 3] }",
];
const FAULTS: [&str; 11] = [
    "",
    "loss = 0.05",
    "jitter = \"1 ms\"",
    "delay_steps = [{ at = \"5 ms\", added = \"3 ms\" }, { at = \"9 ms\", added = \"0 ms\" }]",
    "reorder = 0.2\nreorder_delay = \"2 ms\"",
    "meter = { kind = \"step\", threshold = \"2 packets\" }",
    "meter = { kind = \"xcp\", first_interval = \"3 ms\" }",
    "meter = { kind = \"rcp\", first_rtt = \"3 ms\", update = \"1 ms\" }",
    "messenger = { kind = \"quench\", ect_only = false }",
    "messenger = { kind = \"quench\", levels = \"1 packet, 2 kB, 5 ms\" }",
    "jitter = \"lognormal(1 ms, 1)\"\njitter_correlation = \"3 ms\"",
];
const CONTROLLERS: [&str; 5] = [
    "\"newreno\"",
    "\"cubic\"",
    "{ kind = \"newreno\", preset = \"abe\" }",
    "{ kind = \"newreno\", preset = \"becn\", beta_quench = \"0.8, 0.6\" }",
    "{ kind = \"cubic\", slow_start = \"hystart++\" }",
];
/// Meter of all links, controller and endpoint of all flows, for worlds with explicit feedback: the
/// last digit of the seed selects a row, or none from 6 on. Seeds from [`REGISTERED`] on select a
/// row of [`FEEDBACK_SCHEMES`] instead.
const EXPLICIT_FEEDBACK: [[&str; 3]; 6] = [
    ["xcp", "xcp", "{ echo = \"sum\" }"],
    ["rcp", "rcp", "{ echo = \"last\" }"],
    ["vcp", "vcp", "{ ecn = true, echo = \"changes\" }"],
    ["mlcp", "mlcp", "{ echo = \"level\" }"],
    ["adpm", "bmcc", "{ ecn = true, echo = \"load\" }"],
    ["step", "dctcp", "{ ecn = true, echo = \"changes\" }"],
];
const ENDPOINTS: [&str; 10] = [
    "\"rfc\"",
    "{ preset = \"linux\", ecn = true }",
    "\"ns2\"",
    "\"becn\"",
    "{ preset = \"squid\", quench_check = \"none\" }",
    "{ rtt_from = \"sack\", rtt_lone_acks = false, rtt_clock = \"1 ms\", record_delays = true }",
    "{ tso = \"20 kB\", tso_defer = \"5 ms\", cheat_ack_division = 3, \
     cheat_timestamps = \"100 ms\", cheat_hidden_delay = \"all\" }",
    "{ tso = \"64 kB\", tso_sizing = \"rate\", cheat_optimistic_acks = \"5 ms\", \
     timestamp_signature = 4, on_forged = \"reduce\" }",
    "{ recovery = \"tahoe\", rto_min = \"1 ms\", handshake = true }",
    "{ rto_min = \"1 ms\", rto_initial = \"1 ms\", rto_backoff = \"off\", data_retries = 1, \
     syn_retries = 1 }",
];
const WORKLOADS: [&str; 12] = [
    "",
    "stop = \"20 ms\"",
    "workload = { kind = \"bytes\", size = \"20 kB\" }",
    "workload = { kind = \"poisson\", interval = \"2 ms\", size = \"exponential(3 kB)\" }",
    "workload = { kind = \"on-off\", size = \"5 kB\", off = \"exponential(4 ms)\" }",
    "workload = { kind = \"udp\", rate = \"1 Mbit/s\" }",
    "workload = { kind = \"web\", interval = \"2 ms\", size = \"exponential(3 kB)\", objects = 2 }",
    "workload = { kind = \"web\", pages = \"none\", request = \"4 kB\", size = \"2 kB\", \
     server_time = \"1 ms\", reading = \"exponential(3 ms)\" }",
    "workload = { kind = \"web\", interval = \"9 ms\", connections = \"object\", parallel = 2, \
     pages = 2, objects = \"exponential(3)\", size = \"2 kB\" }",
    "attacker = { kind = \"quench\", rate = 2e4 }",
    "attacker = { kind = \"quench\", knows = \"packets\", marked = false, rate = 5e3, \
     start = \"3 ms\" }\n\
     workload = { kind = \"poisson\", interval = \"2 ms\", size = \"exponential(3 kB)\" }",
    "arrivals = { kind = \"closed\", pause = \"exponential(2 ms)\" }\n\
     workload = { kind = \"bytes\", size = \"exponential(3 kB)\" }",
];
/// Numbers of flows of a group: few, or enough for a calendar of events (more than 512).
const COUNTS: [u32; 6] = [1, 1, 2, 5, 40, 600];
/// Limit on the steps of a world; more take longer and find little else.
const MOST_STEPS: u32 = 2000;
/// Number of steps from one audit to the next; a prime, so that no periodic fault is missed.
const AUDIT: u32 = 211;

/// Returns each kind of a registry that has no strict requirements, plain and with each preset.
fn registered<T: ParamsChoice + HasContract>() -> Vec<String> {
    let mut all = Vec::new();
    for kind in T::KINDS {
        let plain = T::of_kind(kind.name).expect("it is registered");
        if plain.contract().requirements.iter().any(|requirement| requirement.required) {
            continue;
        }
        all.push(format!("\"{}\"", kind.name));
        let presets = plain.params().presets().iter();
        all.extend(
            presets.map(|p| format!("{{ kind = \"{}\", preset = \"{}\" }}", kind.name, p.name)),
        );
    }
    all
}

/// Draws one of the rows, or a registered kind.
fn row(bytes: &mut Bytes<'_>, rows: &[&str], registered: impl FnOnce() -> Vec<String>) -> String {
    match bytes.byte() {
        REGISTERED.. => {
            let mut all = registered();
            all.swap_remove(bytes.below(all.len()))
        }
        byte => rows[usize::from(byte) % rows.len()].to_owned(),
    }
}

/// Returns each meter and messenger without strict requirements, as a line of a link.
fn beside_links() -> Vec<String> {
    let meters = registered::<MeterParams>().into_iter().map(|kind| format!("meter = {kind}"));
    let messengers = registered::<MessengerParams>();
    meters.chain(messengers.into_iter().map(|kind| format!("messenger = {kind}"))).collect()
}

/// Returns meter, controller and endpoint of a world with explicit feedback; `None` without it.
fn steering(seed: u8) -> Option<[String; 3]> {
    if let Some(place) = seed.checked_sub(REGISTERED) {
        let scheme = FEEDBACK_SCHEMES[usize::from(place) % FEEDBACK_SCHEMES.len()];
        let endpoint = format!("{{ ecn = true, echo = \"{}\" }}", scheme.echo);
        return Some([scheme.meter.to_owned(), scheme.controller.to_owned(), endpoint]);
    }
    EXPLICIT_FEEDBACK.get(usize::from(seed % 10)).map(|row| row.map(str::to_owned))
}

/// Returns further lines of a link: its fault, and the meter of a world with explicit feedback,
/// which replaces a fault that is a meter.
fn beside(fault: &str, feedback: Option<&[String; 3]>) -> String {
    match feedback {
        Some([meter, ..]) if fault.contains("meter") => format!("meter = \"{meter}\""),
        Some([meter, ..]) => format!("meter = \"{meter}\"\n{fault}"),
        None => fault.to_owned(),
    }
}

fn scenario(bytes: &mut Bytes<'_>) -> String {
    let seed = bytes.byte();
    let feedback = steering(seed);
    let mut text = format!("[run]\nduration = \"40 ms\"\nsample = \"7 ms\"\nseed = {seed}\n");
    for i in 0..1 + bytes.below(4) {
        // The first link connects `a` and `b` in both directions; further ones make a graph.
        let (from, to) = match i {
            0 => ("a", "b"),
            _ => (bytes.pick(&NODES), bytes.pick(&NODES)),
        };
        writeln!(
            text,
            "[link.l{i}]\nfrom = \"{from}\"\nto = \"{to}\"\nduplex = {}\n{}\ndelay = \"{} us\"\n\
             queue = {}\n{}",
            i == 0 || bytes.flag(),
            bytes.pick(&RATES),
            1 + bytes.short() % 5000,
            row(bytes, &QUEUES, registered::<QueueParams>),
            beside(&row(bytes, &FAULTS, beside_links), feedback.as_ref()),
        )
        .expect("a text takes it");
    }
    let mut room = 600;
    for i in 0..1 + bytes.below(3) {
        let (from, to) =
            if bytes.flag() { (bytes.pick(&NODES), bytes.pick(&NODES)) } else { ("a", "b") };
        let count = bytes.pick(&COUNTS).min(room);
        room -= count.min(room - 1);
        let route = if bytes.flag() { "route = [\"l0\"]\n" } else { "" };
        let workload = bytes.pick(&WORKLOADS);
        let sender = if workload.contains("udp") {
            String::new()
        } else {
            let controller = row(bytes, &CONTROLLERS, registered::<ControllerParams>);
            let endpoint = bytes.pick(&ENDPOINTS);
            match &feedback {
                Some([_, kind, echoes]) => {
                    format!("controller = \"{kind}\"\nendpoint = {echoes}\n")
                }
                None => format!("controller = {controller}\nendpoint = {endpoint}\n"),
            }
        };
        writeln!(
            text,
            "[flow.f{i}]\nfrom = \"{from}\"\nto = \"{to}\"\n{route}count = {count}\n\
             start = \"{} us\"\nspacing = \"{} us\"\nedge_rtt = \"uniform(0 ms, {} us)\"\n\
             {sender}{workload}",
            bytes.byte(),
            bytes.below(20),
            1 + bytes.short() % 9000,
        )
        .expect("a text takes it");
    }
    text
}

/// Installs custom parts in some of the worlds, even if their requirements are not met.
fn own_parts(world: &mut World, bytes: &mut Bytes<'_>) {
    let chosen = bytes.byte();
    if chosen & 1 != 0 {
        world.replace_queue("l0", |_, _| MarkEveryNth::new(7, 12));
    }
    if chosen & 2 != 0 {
        world.add_meter("l0", FairShareMeter::new(Duration::from_millis(3)));
    }
    if chosen & 16 != 0 {
        world.replace_applications("f0", || Box::new(ObjectSequence::new(3)));
    }
    match chosen >> 2 & 3 {
        0 => {}
        1 => {
            world.replace_controllers("f0", |start| {
                DelayBackoff::new(start, Duration::from_millis(2))
            });
        }
        _ => {
            world.replace_controllers("f0", FeedbackSender::new);
            world.replace_echo("f0", SumEcho::default());
        }
    }
}

pub fn run(data: &[u8]) {
    let text = scenario(&mut Bytes::new(data));
    let files = |_: &str| Err("there is no file".to_owned());
    // Invalid worlds, such as those in which a flow has no path, are refused with an error.
    let outline = match Document::parse("world.toml", &text, &files).and_then(|d| d.outline()) {
        Ok(outline) => outline,
        Err(problems) => return assert!(problems.has_errors()),
    };
    let cell = outline.cell(0).expect("a scenario has a run");
    let mut world = World::new(Arc::new(cell.scenario));
    own_parts(&mut world, &mut Bytes::new(data.get(..2).unwrap_or_default()));
    let mut last = world.now();
    for step in 1..=MOST_STEPS {
        if !world.step() {
            break;
        }
        assert!(world.now() >= last, "time goes back\n{text}");
        last = world.now();
        if step % AUDIT == 0 {
            assert_eq!(world.audit(), Ok(()), "{text}");
        }
    }
    assert_eq!(world.audit(), Ok(()), "{text}");
}

#[cfg(not(test))]
libfuzzer_sys::fuzz_target!(|data: &[u8]| run(data));

/// Short inputs give scenarios that can be run; otherwise the target might test refusals only.
#[cfg(test)]
#[test]
fn some_of_these_worlds_can_be_run() {
    for data in [&[][..], &[1], &[0, 0, 3, 0, 9, 4, 2], &[REGISTERED]] {
        let text = scenario(&mut Bytes::new(data));
        let files = |_: &str| Err(String::new());
        if let Err(problems) =
            Document::parse("world.toml", &text, &files).and_then(|d| d.outline())
        {
            panic!("{problems}");
        }
    }
}
