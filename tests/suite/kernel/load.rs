//! BMCC in the kernel: the window against crates/cc after each event of simulated flows, the
//! estimate against crates/tcp after each packet, and the parsing of the option.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use cwnd_cc::record::{Call, Entry};
use cwnd_cc::{Cause, Phase, Signal};
use cwnd_packet::{CongestionHeader, Echo, Ecn, Endpoints, Experiment, Options, Tcp};
use cwnd_quantity::{Rng, Time};
use cwnd_tcp::{Body, Carried, EchoPolicy as _, Flags, LoadEcho, Segment};

use super::{MICROSECOND, digits, host, recorded, run_program};

/// Returns `struct settings` of bmcc.bpf.c; those for receivers are zero.
fn settings(paced: bool, rests: u32, on_loss: u32, multiplies_first: bool) -> Vec<u32> {
    let billionths = |part: f64| (part * 1e9 + 0.5) as u32;
    let mut settings = vec![200_000];
    settings.extend([0.35, 1.0, 0.875, 0.65, 0.15, 0.75, 1.2].map(billionths));
    settings.extend([
        500_000,
        u32::from(multiplies_first),
        rests,
        on_loss,
        u32::from(paced),
        0,
        0,
        0,
        0,
    ]);
    settings
}

fn program() -> PathBuf {
    host("load", &[])
}

/// Number of events of each kind.
#[derive(Clone, Copy, Debug, Default)]
struct Seen {
    acks: usize,
    echoes: usize,
    decreases: usize,
    losses: usize,
    timeouts: usize,
    pauses: usize,
    /// Largest difference of the windows in bytes, and as a fraction of the window.
    bytes: f64,
    part: f64,
}

/// Writes one input line of the program, as described in `host/load.c`.
fn line(entry: &Entry, out: &mut String) {
    let path = &entry.path;
    let mut place = -1;
    let (event, acked) = match entry.call {
        Call::Ack(ack) => {
            if let Echo::Load { value, .. } = ack.echo {
                place = i32::from(value);
            }
            ('a', ack.acked_bytes)
        }
        Call::Signal(Signal::Reduce(Cause::Loss)) => ('l', 0),
        Call::Signal(Signal::Timeout { reduces, .. }) => ('t', if reduces { 1 } else { 2 }),
        Call::Signal(Signal::Idle { .. }) => ('i', 0),
        // The pause is shorter than the timeout, so nothing follows from it.
        Call::Signal(Signal::Resume { .. }) => ('r', 0),
        Call::Signal(other) => panic!("{other:?} is new"),
    };
    let state = match path.phase {
        Phase::Open | Phase::Cwr => 0,
        Phase::Recovery => 3,
        Phase::Loss => 4,
    };
    let now = path.now.0 / MICROSECOND;
    let srtt = path.srtt.map_or(0, |srtt| (srtt.0 * 8 + MICROSECOND / 2) / MICROSECOND);
    let (limited, una, next) = (u8::from(path.cwnd_limited), path.delivered, path.sent);
    let flight = path.flight_size;
    writeln!(out, "{event} {now} {state} {limited} {una} {next} {flight} {srtt} {acked} {place}")
        .expect("a String");
}

const fn is_load(entry: &Entry) -> bool {
    matches!(entry.call, Call::Signal(Signal::Reduce(Cause::Load)))
}

/// Replays a run in the kernel's C and compares windows. They are bytes in floating point in
/// crates/cc, and units of 2⁻²⁴ segments here, so differences accumulate.
fn assert_close(program: &Path, settings: &[u32], text: &str) -> Seen {
    let (start, mss, record) = recorded(text, true);
    // A kernel sender without any report acts as Reno. "New flows initially estimate η₀" (§ III a),
    // so it gets that first.
    let mut events = format!("{} {mss}\na 0 0 0 0 0 0 0 0 0\n", start.cwnd / u64::from(mss));
    for entry in record.iter().filter(|entry| !is_load(entry)) {
        line(entry, &mut events);
    }
    let output = run_program(program, &[&[SENDER], settings].concat(), &events);
    let mut seen = Seen::default();
    let mut lines = output.lines().skip(1);
    let mut theirs = "nothing";
    for (index, entry) in record.iter().enumerate() {
        match entry.call {
            Call::Ack(ack) => {
                seen.acks += 1;
                seen.echoes += usize::from(ack.echo != Echo::None);
            }
            Call::Signal(Signal::Reduce(Cause::Load)) => seen.decreases += 1,
            Call::Signal(Signal::Reduce(_)) => seen.losses += 1,
            Call::Signal(Signal::Timeout { .. }) => seen.timeouts += 1,
            Call::Signal(_) => seen.pauses += 1,
        }
        // The kernel decides on a decrease for load by itself, in the ACK that reports the load.
        if !is_load(entry) {
            theirs = lines.next().unwrap_or("nothing");
        }
        if record.get(index + 1).is_some_and(is_load) {
            continue;
        }
        let at = || format!("{theirs}, after event {index}, {seen:?}: {entry:?}");
        let numbers: Vec<u64> = theirs.split(' ').filter_map(|word| word.parse().ok()).collect();
        let &[cwnd, ssthresh, exact] = &numbers[..] else { panic!("{}", at()) };
        let ours = entry.window.cwnd as f64;
        let bytes = exact as f64 * f64::from(mss) / f64::from(1 << 24);
        let apart = (bytes - ours).abs();
        assert!(apart < 2.0 + ours * TOLERANCE, "{}", at());
        // From the next ACK on, the kernel's window is the integer part.
        if matches!(entry.call, Call::Ack(_)) {
            assert_eq!(cwnd, (exact >> 24).max(1), "{}", at());
            let threshold = entry.window.ssthresh as f64 / f64::from(mss);
            let apart = (ssthresh as f64 - threshold).abs();
            assert!(apart < 1.0 + threshold * TOLERANCE, "{}", at());
        }
        seen.bytes = seen.bytes.max(apart);
        seen.part = seen.part.max(apart / ours);
    }
    seen
}

/// Relative tolerance of a window: factors and times are truncated, and a difference persists to
/// the next event.
const TOLERANCE: f64 = 2e-5;

fn flow(controller: &str, rtt: &str, queue: &str, more: &str, own: &str) -> String {
    format!(
        r#"
        [run]
        duration = "60 s"
        sample = "none"
        [dumbbell]
        rate = "12 Mbit/s"
        meter = "adpm"
        reverse_meter = "adpm"
        queue = {queue}
        {more}
        [flow.main]
        {own}
        rtt = "{rtt}"
        controller = {controller}
        endpoint.preset = "linux"
        endpoint.ecn = true
        endpoint.echo = "load"
        # The kernel's goes by what is acknowledged cumulatively.
        endpoint.grow_by = "acknowledged"
        "#
    )
}

#[test]
fn bmcc_of_the_kernel_is_bmcc_of_the_simulator() {
    let program = program();
    let deep = r#"{ kind = "fifo", limit = "400 packets" }"#;
    let short = r#"{ kind = "fifo", limit = "20 packets" }"#;
    let others = r#"
        [flow.other]
        controller = "bmcc"
        rtt = "90 ms"
        start = "7 s"
        endpoint = { preset = "linux", ecn = true, echo = "load" }
        [flow.two]
        start = "20 s"
        controller = "bmcc"
        rtt = "30 ms"
        endpoint = { preset = "linux", ecn = true, echo = "load" }"#;
    let no_rack = super::NO_RACK;
    let mut all = Seen::default();
    for (paced, rests, on_loss, first) in
        [(true, 0, 0, true), (false, 1, 2, true), (true, 0, 1, false)]
    {
        let settings = settings(paced, rests, on_loss, first);
        let controller = format!(
            r#"{{ kind = "bmcc", preset = "paper", paced = {paced}, rests = "{}", on_loss = "{}",
                 multiplies_first = {first} }}"#,
            ["both", "longer"][rests as usize],
            ["if-overload", "repair", "decrease"][on_loss as usize],
        )
        .replace('\n', " ");
        for (queue, rtt, more, own, beside) in [
            (deep, "20 ms", "", "", ""),
            (deep, "80 ms", "", "", others),
            (deep, "400 ms", "", "", ""),
            (short, "120 ms", "", "", others),
            (deep, "60 ms", "loss = 0.005", "", others),
            (deep, "60 ms", "loss = 0.03", no_rack, ""),
            (short, "40 ms", "loss = 0.15", no_rack, ""),
            (deep, "60 ms", "", super::TRANSFERS, others),
        ] {
            let text = flow(&controller, rtt, queue, more, own) + beside;
            let seen = assert_close(&program, &settings, &text);
            eprintln!("{controller} {rtt} {more}: {seen:?}");
            all = Seen {
                acks: all.acks + seen.acks,
                echoes: all.echoes + seen.echoes,
                decreases: all.decreases + seen.decreases,
                losses: all.losses + seen.losses,
                timeouts: all.timeouts + seen.timeouts,
                pauses: all.pauses + seen.pauses,
                bytes: all.bytes.max(seen.bytes),
                part: all.part.max(seen.part),
            };
        }
    }
    eprintln!("bmcc: {all:?}");
    assert!(all.acks > 300_000 && all.echoes > 20_000 && all.decreases > 400, "{all:?}");
    assert!(all.losses > 100 && all.timeouts > 50 && all.pauses > 20, "{all:?}");
}

/// Random packets of all kinds with ACKs between them, for each reporting schedule.
#[test]
fn the_estimate_of_the_kernel_is_that_of_the_simulator() {
    let program = program();
    for (carried, word) in [(Carried::Spaced, 0), (Carried::Changed, 1), (Carried::Every, 2)] {
        let mut policy = LoadEcho::new(carried);
        // Reference that reports its estimate whether or not an ACK carries it.
        let mut estimate = LoadEcho::new(Carried::Every);
        let mut rng = Rng::named(7, "estimate");
        let (mut events, mut expected) = (String::new(), String::new());
        let data = |ecn, id| Segment {
            seq: 0,
            ts: Time::ZERO,
            len: 1448,
            wire: 1500,
            flags: Flags::default(),
            ecn,
            body: Body::Data { header: CongestionHeader::Id(id), again: false },
        };
        // The first packet is one that may report: before it there is no ACK of data.
        policy.on_data(Time::ZERO, &data(Ecn::Ect0, 1));
        estimate.on_data(Time::ZERO, &data(Ecn::Ect0, 1));
        writeln!(events, "d 2 1").expect("a String");
        writeln!(expected, "0 0").expect("a String");
        for _ in 0..50_000 {
            if rng.below(2) == 0 {
                let echo = policy.take();
                writeln!(events, "a").expect("a String");
                let tells = u8::from(echo != Echo::None);
                writeln!(expected, "{} {tells}", place(&mut estimate)).expect("a String");
                continue;
            }
            let (ecn, bits) = match rng.below(100) {
                0..10 => (Ecn::NotEct, 0),
                10..54 => (Ecn::Ect1, 1),
                54..98 => (Ecn::Ect0, 2),
                _ => (Ecn::Ce, 3),
            };
            let id = rng.below(1 << 16) as u16;
            policy.on_data(Time::ZERO, &data(ecn, id));
            estimate.on_data(Time::ZERO, &data(ecn, id));
            writeln!(events, "d {bits} {id}").expect("a String");
            writeln!(expected, "{} 0", place(&mut estimate)).expect("a String");
        }
        let output = run_program(&program, &[RECEIVER, word], &events);
        for (index, (ours, theirs)) in expected.lines().zip(output.lines()).enumerate() {
            assert_eq!(ours, theirs, "{carried:?}, event {index}");
        }
        assert_eq!(output.lines().count(), expected.lines().count());
    }
}

fn place(estimate: &mut LoadEcho) -> u16 {
    match estimate.take() {
        Echo::Load { value, .. } => value,
        other => panic!("{other:?}"),
    }
}

/// Parses a list of options by RFC 9293 § 3.1; reports a load option of the wrong length as
/// malformed.
fn expected(mut options: &[u8]) -> String {
    loop {
        match options {
            // The load option has four bytes, so fewer hold none.
            [] | [0, ..] | [_] | [_, _] | [_, _, _] => return "none".to_owned(),
            [1, rest @ ..] => options = rest,
            [253, 4, high, low, ..] => return u16::from_be_bytes([*high, *low]).to_string(),
            [253, ..] => return "malformed".to_owned(),
            [_, length, ..] => match options.get(usize::from(*length).max(2)..) {
                Some(rest) if *length >= 2 => options = rest,
                _ => return "none".to_owned(),
            },
        }
    }
}

/// ACKs of crates/packet, with or without timestamps and SACK blocks, cut short, and with one byte
/// changed.
#[test]
fn the_kernel_reads_the_options_that_the_wire_writes() {
    let ends = Endpoints {
        source: [10, 0, 0, 1],
        source_port: 5001,
        destination: [192, 0, 2, 200],
        destination_port: 443,
    };
    let mut all: Vec<Vec<u8>> = Vec::new();
    for (timestamps, blocks) in [(None, 0), (Some((7, 9)), 0), (Some((1, 2)), 2), (None, 3)] {
        let mut sack = [(0, 0); 3];
        sack.iter_mut().take(blocks).zip(1..).for_each(|(block, n)| *block = (n * 9, n * 9 + 5));
        for place in [0_u16, 253, 0xfd04, 0x01fd, u16::MAX] {
            let experiment = Some(Experiment::new(253, &place.to_be_bytes()));
            let options = Options { timestamps, sack, experiment, ..Options::default() };
            let packet = Tcp { options, ..Tcp::default() }.headers(ends).bytes;
            let whole = packet[40..].to_vec();
            assert_eq!(expected(&whole), place.to_string(), "{whole:02x?}");
            for at in 0..whole.len() {
                for byte in [0, 1, 2, 3, 4, 5, 40, 253, 254, 255] {
                    let mut other = whole.clone();
                    other[at] = byte;
                    all.push(other);
                }
            }
            all.extend((0..whole.len()).step_by(4).map(|end| whole[..end].to_vec()));
            all.push(whole);
        }
    }
    let output = run_program(&program(), &[OPTIONS], &digits(&all));
    let mut found = [0; 3];
    for (options, theirs) in all.iter().zip(output.lines()) {
        let ours = expected(options);
        assert_eq!(ours, theirs, "{options:02x?}");
        found[["none", "malformed"].iter().position(|kind| *kind == ours).unwrap_or(2)] += 1;
    }
    assert_eq!(found.iter().sum::<usize>(), output.lines().count());
    assert!(found.iter().all(|&count| count > 50), "{found:?}");
}

/// Functions of `host/load.c`.
const SENDER: u32 = 0;
const RECEIVER: u32 = 1;
const OPTIONS: u32 = 2;
