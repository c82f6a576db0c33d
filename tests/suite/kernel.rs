//! The controllers for the kernel are those of crates/cc: what the simulator told a controller of ours is told to the C of
//! crates/kernel, compiled for this machine, and the window and the threshold are compared after every event.
//!
//! The kernel counts segments, ticks of a millisecond (here) and microseconds. So packets take whole microseconds in these
//! scenarios, and a window is a whole number of segments, which with presets that round to segments it is anyway.

use std::fmt::Write as _;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use cwnd_cc::Cause;
use cwnd_cc::record::{Entry, Told};
use cwnd_cc::{Phase, Signal, Window};
use cwnd_sim::World;

use crate::common::scenario;

/// 1500 bytes take 1 ms.
const RATE: &str = "12 Mbit/s";
const MICROSECOND: u64 = 1000;
/// Of the kernel's clock.
const TICK: u64 = 1000 * MICROSECOND;

/// The controller's program, and what it is told besides the events.
#[derive(Clone, Copy)]
struct Settings<'a> {
    program: &'a Path,
    beta_ecn: u32,
    always: bool,
    deepen: bool,
}

/// How often what happened in a run.
#[derive(Clone, Copy, Debug, Default)]
struct Seen {
    acks: usize,
    ecn: usize,
    losses: usize,
    timeouts: usize,
    idle: usize,
    hystart: usize,
}

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../crates/kernel/bpf")
}

/// The controller's C as a program of this machine. Each test has a file of its own: what another runs cannot be written.
fn compiled(controller: &str) -> PathBuf {
    let thread = std::thread::current();
    let test = thread.name().unwrap_or("main").replace("::", ".");
    let program = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("{test}.{controller}"));
    let done = Command::new("cc")
        .args(["-std=gnu11", "-O1", "-Wall", "-Werror", "-Wno-unused", "-Wno-unknown-pragmas"])
        .arg(format!("-DCONTROLLER={controller}"))
        .arg("-I")
        .arg(folder())
        .arg(folder().join("host/replay.c"))
        .arg("-o")
        .arg(&program)
        .status()
        .expect("there is a C compiler where Rust links");
    assert!(done.success(), "{controller} does not compile");
    program
}

/// What one flow's controller was told in a scenario.
fn recorded(text: &str) -> (Window, u32, Vec<Entry>) {
    let mut world = World::new(scenario(text));
    world.record_controllers();
    let first = |world: &World| {
        use cwnd_cc::Controller as _;
        world.controllers().next().expect("there is a flow").window()
    };
    let start = first(&world);
    while world.step() {}
    let mut record = world.controllers().next().expect("there is a flow").record().to_vec();
    // The kernel's controllers hear of what is newly acknowledged only.
    record.retain(|entry| !matches!(entry.told, Told::Ack(ack) if ack.acked_bytes == 0));
    let mss = record[0].path.mss;
    (start, mss, record)
}

/// One line for the program: `host/replay.c` says what is in it; `cwnd` is the window until then.
fn line(entry: &Entry, cwnd: u64, out: &mut String) {
    let path = &entry.path;
    let mss = u64::from(path.mss);
    let (event, acked, rtt) = match entry.told {
        Told::Ack(ack) => {
            let rtt = ack.rtt.map_or(-1, |rtt| (rtt.0 / MICROSECOND) as i64);
            ('a', ack.acked_bytes / mss, rtt)
        }
        Told::Signal(Signal::Reduce(Cause::Loss)) => ('l', 0, -1),
        Told::Signal(Signal::Reduce(Cause::Ecn)) => ('e', 0, -1),
        Told::Signal(Signal::Timeout { reduces, .. }) => ('t', if reduces { 1 } else { 2 }, -1),
        // What the transport leaves of the window after it was idle.
        Told::Signal(Signal::Idle { .. }) => {
            let Window { cwnd, ssthresh } = entry.window;
            ('w', cwnd / mss, (ssthresh / mss).min(i32::MAX as u64) as i64)
        }
        Told::Signal(Signal::Resume { since }) => {
            // The kernel counts ticks of a millisecond.
            let ticks = path.now.0 / TICK - since.0 / TICK;
            ('p', ticks, -1)
        }
        Told::Signal(other) => panic!("{other:?} is new"),
    };
    // An ACK with ECE raises no window: the kernel is in CWR by then.
    let echo = matches!(entry.told, Told::Ack(ack) if ack.ece);
    let state = match path.phase {
        Phase::Open if echo => 2,
        Phase::Open => 0,
        Phase::Cwr => 2,
        Phase::Recovery => 3,
        Phase::Loss => 4,
    };
    // FlightSize is what was outstanding before the ACK.
    let acked_bytes = if let Told::Ack(ack) = entry.told { ack.acked_bytes } else { 0 };
    let before = path.delivered - acked_bytes;
    let next = (before + path.flight_size) / mss;
    // The kernel paces slow start at twice the window a round trip.
    let rate = path.srtt.map_or(0, |srtt| 2 * cwnd * 1_000_000_000 / srtt.0.max(1));
    let (now, una) = (path.now.0 / MICROSECOND, path.delivered / mss);
    let limited = u8::from(path.cwnd_limited);
    writeln!(out, "{event} {now} {state} {limited} {una} {next} {rate} {acked} {rtt}")
        .expect("a String");
}

/// What the program answers.
fn told(settings: &Settings<'_>, events: &str) -> String {
    let flag = |on: bool| u8::from(on).to_string();
    let mut child = Command::new(settings.program)
        .args([settings.beta_ecn.to_string(), flag(settings.always), flag(settings.deepen)])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("it was compiled");
    let mut input = child.stdin.take().expect("piped");
    let output = std::thread::scope(|scope| {
        scope.spawn(move || input.write_all(events.as_bytes()).expect("it reads all"));
        child.wait_with_output().expect("it ends")
    });
    String::from_utf8(output.stdout).expect("numbers")
}

/// Tells both the same; gives back what happened.
fn assert_same(settings: &Settings<'_>, text: &str) -> Seen {
    let (start, mss, record) = recorded(text);
    let segments = |bytes: u64| (bytes / u64::from(mss)).min(u64::from(i32::MAX as u32));
    let mut events = format!("{} {}\n", segments(start.cwnd), segments(start.ssthresh));
    let mut cwnd = start.cwnd;
    for entry in &record {
        line(entry, cwnd, &mut events);
        cwnd = entry.window.cwnd;
    }
    let output = told(settings, &events);
    let mut seen = Seen::default();
    let mut before = start.ssthresh;
    let mut lines = output.lines();
    for (index, entry) in record.iter().enumerate() {
        match entry.told {
            Told::Ack(_) => seen.acks += 1,
            Told::Signal(Signal::Reduce(Cause::Ecn)) => seen.ecn += 1,
            Told::Signal(Signal::Reduce(Cause::Loss)) => seen.losses += 1,
            Told::Signal(Signal::Timeout { .. }) => seen.timeouts += 1,
            Told::Signal(_) => seen.idle += 1,
        }
        // Only an end of slow start by HyStart moves the threshold with an ACK.
        let moved = entry.window.ssthresh != before;
        seen.hystart += usize::from(moved && matches!(entry.told, Told::Ack(_)));
        before = entry.window.ssthresh;
        let theirs = lines.next().unwrap_or("nothing");
        let ours = format!("{} {}", segments(entry.window.cwnd), segments(entry.window.ssthresh));
        assert_eq!(entry.window.cwnd % u64::from(mss), 0, "event {index}: {entry:?}");
        assert_eq!(ours, theirs, "cwnd and ssthresh after event {index}, {seen:?}: {entry:?}");
    }
    seen
}

/// A flow over a queue, with a controller, and lines for its path and for itself.
fn flow(controller: &str, rtt: &str, queue: &str, more: &str, own: &str) -> String {
    format!(
        r#"
        [run]
        duration = "60 s"
        sample = "none"
        [dumbbell]
        rate = "{RATE}"
        reverse_rate = "none"
        queue = {queue}
        {more}
        [flow.main]
        {own}
        rtt = "{rtt}"
        controller = {controller}
        endpoint.preset = "linux"
        endpoint.ecn = true
        "#
    )
}

const CODEL: &str = r#"{ kind = "codel" }"#;

fn reno(beta_ecn: f64, in_slow_start: &str) -> String {
    // Linux's Reno: of the window, in segments; slow start counts all that is acknowledged.
    format!(
        r#"{{ kind = "newreno", beta_ecn = {beta_ecn}, base = "cwnd", rounding = "segments", abc_limit = "none",
             abc_limit_after_timeout = "none", grow_in_cwr = false, ecn_in_slow_start = "{in_slow_start}" }}"#
    )
    .replace('\n', " ")
}

fn cubic(beta_ecn: f64, in_slow_start: &str) -> String {
    format!(
        r#"{{ kind = "cubic", preset = "linux", beta_ecn = {beta_ecn}, ecn_in_slow_start = "{in_slow_start}" }}"#
    )
}

/// Marks, drops at the queue, drops by chance that RACK or the timer must find, silence.
const PATHS: [(&str, &str, &str, &str); 9] = [
    (CODEL, "60 ms", "", ""),
    (CODEL, "200 ms", "", ""),
    (r#"{ kind = "fifo", limit = "60 packets" }"#, "60 ms", "", ""),
    (CODEL, "40 ms", "loss = 0.002", ""),
    (CODEL, "40 ms", "loss = 0.03", ""),
    (CODEL, "40 ms", "loss = 0.03", NO_RACK),
    (CODEL, "100 ms", r#"jitter = "1 ms""#, ""),
    (CODEL, "40 ms", "loss = 0.15", ""),
    (CODEL, "60 ms", "", TRANSFERS),
];
/// What RACK and its probes would repair is left to the timer: tails, and retransmissions that were lost.
const NO_RACK: &str = "endpoint.loss_rule = \"rfc6675\"\nendpoint.lost_retransmissions = false";
/// Whole segments, and pauses longer than the timeout.
const TRANSFERS: &str = r#"workload = { kind = "on-off", size = "4344000 B", off = "2 s" }"#;

fn assert_same_on(
    paths: &[(&str, &str, &str, &str)],
    controller: &str,
    beta_ecn: f64,
    of: fn(f64, &str) -> String,
) -> Seen {
    let program = compiled(controller);
    let mut all = Seen::default();
    for (mode, always) in [("beta", false), ("beta-ecn", true)] {
        let parts = (beta_ecn * 1e9 + 0.5) as u32;
        let settings = Settings { program: &program, beta_ecn: parts, always, deepen: false };
        for (queue, rtt, more, own) in paths {
            all =
                all.and(assert_same(&settings, &flow(&of(beta_ecn, mode), rtt, queue, more, own)));
        }
    }
    eprintln!("{controller} with {beta_ecn}: {all:?}");
    assert!(all.acks > 100_000 && all.ecn > 50 && all.losses > 50 && all.timeouts > 0, "{all:?}");
    all
}

#[test]
fn abe_reno_of_the_kernel_is_newreno_of_the_simulator() {
    for beta_ecn in [0.5, 0.8] {
        // Where the two are apart by design: an ACK for several windows, which the smallest windows after timeouts see, adds
        // one segment (RFC 3465 § 2.1), in the kernel several; and what was counted towards the next segment is forgotten
        // when a slow start ends, so after silence they are a part of a segment apart.
        assert_same_on(&PATHS[..7], "abe_reno", beta_ecn, reno);
    }
}

#[test]
fn abe_cubic_of_the_kernel_is_cubic_of_the_simulator() {
    for beta_ecn in [717.0 / 1024.0, 0.85] {
        let seen = assert_same_on(&PATHS, "abe_cubic", beta_ecn, cubic);
        assert!(seen.timeouts > 50 && seen.idle > 5 && seen.hystart > 5, "{seen:?}");
    }
}

impl Seen {
    fn and(self, other: Self) -> Self {
        Self {
            acks: self.acks + other.acks,
            ecn: self.ecn + other.ecn,
            losses: self.losses + other.losses,
            timeouts: self.timeouts + other.timeouts,
            idle: self.idle + other.idle,
            hystart: self.hystart + other.hystart,
        }
    }
}

/// Windows and thresholds after each event of a script, as `cwnd ssthresh`, and the counters.
fn script(settings: &Settings<'_>, start: &str, events: &[&str]) -> (Vec<String>, String) {
    let mut text = format!("{start}\n");
    for (index, event) in events.iter().enumerate() {
        let time = 10_000 * (index + 1);
        let (kind, state) = event.split_once(' ').expect("an event and a state");
        writeln!(text, "{kind} {time} {state} 1 1 1 0 1 40000").expect("a String");
    }
    let mut lines: Vec<String> = told(settings, &text).lines().map(str::to_owned).collect();
    let counters = lines.pop().expect("the counters");
    (lines, counters)
}

const OPEN: &str = "a 0";

#[test]
fn in_the_kernel_the_state_tells_ecn_from_loss() {
    let program = &compiled("abe_reno");
    let avoidance = Settings { program, beta_ecn: 800_000_000, always: false, deepen: false };
    let always = Settings { always: true, ..avoidance };
    let deepen = Settings { deepen: true, ..avoidance };
    for (settings, start, events, windows, counters) in [
        // 0.8 of the window in congestion avoidance.
        (&avoidance, "100 50", &["e 0"][..], &["80 80"][..], "ecn 1 loss 0"),
        (&avoidance, "100 50", &["l 0"], &["50 50"], "ecn 0 loss 1"),
        // In slow start half, or as its paper has it.
        (&avoidance, "100 999", &["e 0"], &["50 50"], "ecn 1 loss 0"),
        (&always, "100 999", &["e 0"], &["80 80"], "ecn 1 loss 0"),
        // A loss in the same window: nothing more, or what it would have left alone.
        (&avoidance, "100 50", &["e 0", "l 2"], &["80 80", "80 80"], "ecn 1 loss 0"),
        (&deepen, "100 50", &["e 0", "l 2"], &["80 80", "50 50"], "ecn 1 loss 0"),
        // In the next window it counts as always.
        (&deepen, "100 50", &["e 0", OPEN, "l 0"], &["80 80", "80 80", "40 40"], "ecn 1 loss 1"),
        // The sender's own queue is no mark, even where the ACK before carried ECE.
        (&always, "100 50", &["c 0"], &["50 50"], "ecn 0 loss 0 timeout 0 local 1"),
        (&always, "100 50", &["e 0", "c 2"], &["80 80", "40 40"], "ecn 1 loss 0 timeout 0 local 1"),
        (&always, "100 50", &["t 0"], &["1 50"], "ecn 0 loss 0 timeout 1"),
        // No threshold below two segments (RFC 5681 eq. 4).
        (&always, "2 2", &["e 0"], &["2 2"], "ecn 1"),
    ] {
        let (found, counted) = script(settings, start, events);
        assert_eq!(found, windows, "{start} {events:?}");
        assert!(counted.starts_with(counters), "{start} {events:?}: {counted}");
    }
    let (_, counted) = script(&deepen, "100 50", &["e 0", "l 2"]);
    assert!(counted.contains("loss_after_ecn 1"), "{counted}");
    let (_, counted) = script(&always, "100 999", &["e 0"]);
    assert!(counted.contains("ecn_in_slow_start 1"), "{counted}");
}
