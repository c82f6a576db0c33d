//! Kernel controllers against those of crates/cc. The C of crates/linux/kernel, compiled for this
//! machine, gets the events of a simulated controller; window and threshold are compared after each
//! event.
//!
//! The kernel counts segments, ticks of a millisecond (here) and microseconds. So packets take
//! whole microseconds in these scenarios. A window is a whole number of segments, as it is with
//! presets that round to segments. Delay-based AIMD has fractions of a segment, which its C reports
//! as well.

mod load;
mod transport;
mod windows;

use std::fmt::Write as _;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use cwnd_cc::Cause;
use cwnd_cc::record::{Call, Entry};
use cwnd_cc::{Phase, Signal, Window};
use cwnd_sim::World;

use crate::common::scenario;

/// A packet of 1500 bytes takes 1 ms.
const RATE: &str = "12 Mbit/s";
const MICROSECOND: u64 = 1000;
/// Tick of the kernel's clock, ns.
const TICK: u64 = 1000 * MICROSECOND;
/// Ticks per second.
const HZ: u32 = 1000;

/// A controller's program and its settings.
struct Replay {
    program: PathBuf,
    /// `struct settings` of its family, as 32-bit words.
    settings: Vec<u32>,
    /// `true` if it reports fractions of a segment.
    fractional: bool,
    /// `true` if it gets duplicate ACKs as well.
    duplicates: bool,
}

/// Number of events of each kind in a run; `idle` counts all signals without a field of their own.
#[derive(Clone, Copy, Debug, Default)]
struct Seen {
    acks: usize,
    ecn: usize,
    losses: usize,
    timeouts: usize,
    idle: usize,
    hystart: usize,
    delay: usize,
    quenches: usize,
    /// Losses in a window that was already reduced, which the controller does not see.
    spared: usize,
}

/// Compiles a controller's C to a program for this machine.
fn compiled(controller: &str, defines: &[&str]) -> PathBuf {
    host("replay", &[&[&*format!("-DCONTROLLER={controller}")], defines].concat())
}

/// Compiles a program of `crates/linux/kernel/bpf/host` for this machine. Each test has its own
/// file, because a running program cannot be overwritten.
fn host(name: &str, defines: &[&str]) -> PathBuf {
    let thread = std::thread::current();
    let test = thread.name().unwrap_or("main").replace("::", ".");
    let program = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("{test}.{name}"));
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../crates/linux/kernel/bpf");
    let source = folder.join(format!("host/{name}.c"));
    let done = Command::new("cc")
        .args(["-std=gnu11", "-O1", "-Wall", "-Werror", "-Wno-unused", "-Wno-unknown-pragmas"])
        .args(defines)
        .arg("-I")
        .arg(&folder)
        .arg(&source)
        .arg("-o")
        .arg(&program)
        .status()
        .expect("there is a C compiler where Rust links");
    assert!(done.success(), "{} {defines:?} does not compile", source.display());
    program
}

/// Formats each item as a line of hexadecimal digits.
fn digits<B: AsRef<[u8]>>(all: &[B]) -> String {
    let mut text = String::new();
    for bytes in all {
        bytes.as_ref().iter().for_each(|byte| write!(text, "{byte:02x}").expect("a String"));
        text.push('\n');
    }
    text
}

/// Returns initial window, MSS and recorded events of the first flow's controller in a scenario.
fn recorded(text: &str, duplicates: bool) -> (Window, u32, Vec<Entry>) {
    let mut world = World::new(scenario(text));
    world.record_controllers();
    let first = |world: &World| {
        use cwnd_cc::Controller as _;
        world.controllers().next().expect("there is a flow").window()
    };
    let start = first(&world);
    while world.step() {}
    let mut record = world.controllers().next().expect("there is a flow").record().to_vec();
    // Most kernel controllers react only to newly acknowledged data.
    record.retain(|entry| {
        duplicates || !matches!(entry.call, Call::Ack(ack) if ack.acked_bytes == 0)
    });
    let mss = record[0].path.mss;
    (start, mss, record)
}

/// Writes one input line of the program, as described in `host/replay.c`; `cwnd` is the window
/// before the event.
fn line(entry: &Entry, cwnd: u64, out: &mut String) {
    let path = &entry.path;
    let mss = u64::from(path.mss);
    let newest = path.rtt.map_or(-1, |rtt| (rtt.0 / MICROSECOND) as i64);
    let (event, acked, rtt) = match entry.call {
        Call::Ack(ack) => {
            let rtt = ack.rtt.map_or(-1, |rtt| (rtt.0 / MICROSECOND) as i64);
            (if ack.acked_bytes > 0 { 'a' } else { 'd' }, ack.acked_bytes / mss, rtt)
        }
        Call::Signal(Signal::Reduce(Cause::Loss)) => ('l', 0, newest),
        Call::Signal(Signal::Reduce(Cause::Ecn)) => ('e', 0, newest),
        Call::Signal(Signal::Reduce(Cause::Quench { marked, level })) => {
            // Encoding of crates/packet.
            ('q', u64::from(u8::from(marked) << 7 | level), -1)
        }
        Call::Signal(Signal::Timeout { reduces, .. }) => ('t', if reduces { 1 } else { 2 }, newest),
        // Window that the transport leaves after an idle period.
        Call::Signal(Signal::Idle { .. }) => {
            let Window { cwnd, ssthresh } = entry.window;
            ('w', cwnd / mss, (ssthresh / mss).min(i32::MAX as u64) as i64)
        }
        Call::Signal(Signal::Resume { since }) => {
            // The kernel counts ticks of a millisecond.
            let ticks = path.now.0 / TICK - since.0 / TICK;
            ('p', ticks, -1)
        }
        Call::Signal(other) => panic!("{other:?} is new"),
    };
    // An ACK with ECE grows no window: the kernel is in CWR by then.
    let echo = matches!(entry.call, Call::Ack(ack) if ack.ece);
    let state = match path.phase {
        Phase::Open if echo => 2,
        Phase::Open => 0,
        Phase::Cwr => 2,
        Phase::Recovery => 3,
        Phase::Loss => 4,
    };
    let next = path.sent / mss;
    // The kernel paces slow start at twice the window per round trip.
    let rate = path.srtt.map_or(0, |srtt| 2 * cwnd * 1_000_000_000 / srtt.0.max(1));
    let (now, una) = (path.now.0 / MICROSECOND, path.delivered / mss);
    let limited = u8::from(path.cwnd_limited);
    writeln!(out, "{event} {now} {state} {limited} {una} {next} {rate} {acked} {rtt}")
        .expect("a String");
}

/// Runs a program with these settings and returns its output.
fn run_program(program: &Path, settings: &[u32], events: &str) -> String {
    let mut child = Command::new(program)
        .args(settings.iter().map(u32::to_string))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("it was compiled");
    let mut input = child.stdin.take().expect("piped");
    let output = std::thread::scope(|scope| {
        scope.spawn(move || input.write_all(events.as_bytes()).expect("it reads all"));
        child.wait_with_output().expect("it ends")
    });
    String::from_utf8(output.stdout).expect("text")
}

/// Replays a run in the kernel's C and asserts that both agree after each event. Returns the counts
/// of events.
fn assert_same(replay: &Replay, text: &str) -> Seen {
    let (start, mss, record) = recorded(text, replay.duplicates);
    let segments = |bytes: u64| (bytes / u64::from(mss)).min(u64::from(i32::MAX as u32));
    // RTT of the handshake, which is less than that of any data packet.
    let least = record[0].path.min_rtt.map_or(u64::from(u32::MAX), |rtt| rtt.0 / MICROSECOND);
    let mut events = format!("{} {} {least}\n", segments(start.cwnd), segments(start.ssthresh));
    let mut cwnd = start.cwnd;
    for entry in record.iter().filter(|entry| !is_delay(entry)) {
        line(entry, cwnd, &mut events);
        cwnd = entry.window.cwnd;
    }
    let output = run_program(&replay.program, &replay.settings, &events);
    let mut seen = Seen::default();
    let mut before = start;
    // `true` while losses are repaired; and the kernel's threshold, for a loss that the controller
    // did not see.
    let (mut repairing, mut spared) = (false, None);
    let mut lines = output.lines();
    let mut theirs = "nothing";
    for (index, entry) in record.iter().enumerate() {
        seen.count(&entry.call);
        // An ACK moves the threshold only if HyStart ends slow start.
        let moved = entry.window.ssthresh != before.ssthresh;
        seen.hystart += usize::from(moved && matches!(entry.call, Call::Ack(_)));
        repairing |= matches!(entry.call, Call::Signal(Signal::Reduce(Cause::Loss)));
        let is_ack = matches!(entry.call, Call::Ack(ack) if ack.acked_bytes > 0);
        if is_ack && entry.path.phase == Phase::Recovery && !repairing {
            // The window stays the same; the kernel asks for a threshold all the same and gets this
            // one.
            (repairing, spared) = (true, Some(before.cwnd.max(2 * u64::from(mss))));
            seen.spared += 1;
        }
        repairing &= !is_ack || entry.path.phase != Phase::Open;
        if moved || matches!(entry.call, Call::Signal(_)) {
            spared = None;
        }
        let at = || format!("after event {index}, {seen:?}: {entry:?}");
        // The kernel decides on a backoff for delay by itself, in the ACK that reports the delay.
        if !is_delay(entry) {
            theirs = lines.next().unwrap_or("nothing");
        }
        before = entry.window;
        if record.get(index + 1).is_some_and(is_delay) {
            continue;
        }
        let threshold = spared.unwrap_or(entry.window.ssthresh);
        if replay.fractional {
            assert_close(theirs, entry.window.cwnd, threshold, mss, &at);
        } else {
            let ours = format!("{} {}", segments(entry.window.cwnd), segments(threshold));
            assert_eq!(entry.window.cwnd % u64::from(mss), 0, "{}", at());
            assert_eq!(ours, theirs, "cwnd and ssthresh {}", at());
        }
    }
    seen
}

const fn is_delay(entry: &Entry) -> bool {
    matches!(entry.call, Call::Signal(Signal::Reduce(Cause::Delay)))
}

/// Compares a window with fractions. The kernel reports it in units of 2⁻²⁴ segments, the simulator
/// in whole bytes truncated from floating point: they differ by less than two bytes. The kernel's
/// window is the integer part.
fn assert_close(theirs: &str, cwnd: u64, ssthresh: u64, mss: u32, at: &dyn Fn() -> String) {
    let numbers: Vec<u64> = theirs.split(' ').filter_map(|word| word.parse().ok()).collect();
    let &[window, threshold, exact] = &numbers[..] else { panic!("{theirs} {}", at()) };
    assert_eq!(window, exact >> 24, "{}", at());
    let bytes = exact as f64 * f64::from(mss) / f64::from(1 << 24);
    assert!((bytes - cwnd as f64).abs() < 2.0, "{bytes} bytes and {cwnd} {}", at());
    let whole = |bytes: u64| (bytes / u64::from(mss)).min(u64::from(i32::MAX as u32));
    let range = whole(ssthresh.saturating_sub(2))..=whole(ssthresh.saturating_add(2));
    assert!(range.contains(&threshold), "{threshold} and {ssthresh} bytes {}", at());
}

/// Writes a flow over a queue with a controller; `more` has keys of its path, `own` those of its
/// group.
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

/// Returns Linux's Reno with a rule: relative to the window, in segments; slow start counts all
/// acknowledged data.
fn reno(rule: &str) -> String {
    format!(
        r#"{{ kind = "newreno", preset = "rfc", {rule}, base = "cwnd", rounding = "segments",
             abc_limit = "none", abc_limit_after_timeout = "none", grow_in_cwr = false }}"#
    )
    .replace('\n', " ")
}

fn cubic(rule: &str) -> String {
    format!(r#"{{ kind = "cubic", preset = "linux", {rule} }}"#)
}

/// Paths with marks, drops at the queue, random losses that RACK or the timer must find, jitter,
/// and idle periods: queue, RTT, further keys of the path and keys of the group.
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
/// Without RACK and its probes, the timer repairs tail losses and lost retransmissions.
const NO_RACK: &str = r#"stack = { base = "linux", without = ["rack", "lost-retransmissions"] }"#;
/// Transfers of whole segments, with pauses longer than the timeout.
const TRANSFERS: &str = r#"workload = { kind = "on-off", size = "4344000 B", off = "2 s" }"#;

impl Seen {
    fn count(&mut self, call: &Call) {
        match call {
            Call::Ack(ack) => self.acks += usize::from(ack.acked_bytes > 0),
            Call::Signal(Signal::Reduce(Cause::Ecn)) => self.ecn += 1,
            Call::Signal(Signal::Reduce(Cause::Loss)) => self.losses += 1,
            Call::Signal(Signal::Reduce(Cause::Delay)) => self.delay += 1,
            Call::Signal(Signal::Reduce(Cause::Quench { .. })) => self.quenches += 1,
            Call::Signal(Signal::Timeout { .. }) => self.timeouts += 1,
            Call::Signal(_) => self.idle += 1,
        }
    }

    fn and(self, other: Self) -> Self {
        Self {
            acks: self.acks + other.acks,
            ecn: self.ecn + other.ecn,
            losses: self.losses + other.losses,
            timeouts: self.timeouts + other.timeouts,
            idle: self.idle + other.idle,
            hystart: self.hystart + other.hystart,
            delay: self.delay + other.delay,
            quenches: self.quenches + other.quenches,
            spared: self.spared + other.spared,
        }
    }
}
