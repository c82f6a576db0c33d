//! Fuzz target of the endpoint: sender and receiver over a path that reorders, drops, duplicates
//! and forges segments.

#![cfg_attr(not(test), no_main)]

#[cfg(test)]
use super::bytes;
#[cfg(not(test))]
#[path = "../bytes.rs"]
mod bytes;

use std::sync::Arc;

use cwnd_cc::ControllerParams;
use cwnd_packet::{Echo, Ecn};
use cwnd_quantity::{Duration, Time};
use cwnd_schema::{Params as _, ParamsChoice, Value};
use cwnd_tcp::{
    Body, CheatParams, Config, Flags, Params, Receiver, SackBlock, SackBlocks, Segment, Sender,
};

use bytes::Bytes;

const ENDPOINT: [(&str, &[&str]); 30] = [
    ("recovery", &["tahoe", "reno", "newreno", "sack"]),
    ("mss", &["1 B", "100 B", "1000 B", "9000 B"]),
    ("receive_window", &["9000 B", "30 kB", "1 MB", "4000 MB"]),
    ("initial_ssthresh", &["none", "1 B", "5000 B"]),
    ("max_window", &["none", "9000 B", "20 kB"]),
    ("clock", &["1 ns", "1 ms", "100 ms"]),
    ("ack_delay", &["0 s", "40 ms", "500 ms"]),
    ("rto_min", &["0 s", "1 ms", "1 s"]),
    ("rto_backoff", &["exponential", "after", "off"]),
    ("rto_initial", &["1 s", "100 ms"]),
    ("header", &["0 B", "52 B"]),
    ("rto_granularity", &["1 ns", "100 ms"]),
    ("rto_backoff_until", &["sample", "sent-once", "ack"]),
    ("rto_after_syn_loss", &["0 s", "3 s"]),
    ("data_retry_time", &["none", "1 ns", "100 s"]),
    ("quench_answer", &["reduce", "pause"]),
    ("quench_check", &["in-flight", "none"]),
    ("echo", &["classic", "none", "changes", "load", "load-changed", "load-every"]),
    ("rtt_from", &["timer", "oldest", "newest", "sack"]),
    ("rtt_clock", &["1 ns", "1 us", "100 ms"]),
    ("rtt_every", &["ack", "window"]),
    ("tso", &["none", "1 B", "5000 B", "64 kB"]),
    ("tso_defer", &["none", "0 s", "5 ms"]),
    ("tso_sizing", &["full", "rate", "rate-unpaced"]),
    ("cheat_timestamps", &["0 s", "100 ms"]),
    ("cheat_hidden_delay", &["none", "all"]),
    ("cheat_optimistic_acks", &["0 s", "50 ms"]),
    ("on_forged", &["ignore", "reduce"]),
    ("cwnd_limited", &["last", "round"]),
    ("restart_window", &["initial", "halved"]),
];
const SWITCHES: [&str; 11] = [
    "handshake",
    "timestamps",
    "ecn",
    "limited_transmit",
    "idle_restart",
    "prr",
    "rto_thin_linear",
    "obey_quench",
    "rtt_lone_acks",
    "record_delays",
    "dsack",
];
const COUNTS: [&str; 11] = [
    "initial_window",
    "dup_thresh",
    "ack_every",
    "syn_retries",
    "data_retries",
    "rto_backoff_after",
    "rto_backoff_rounds",
    "syn_backoff_after",
    "syn_backoff_rounds",
    "tso_win_divisor",
    "cheat_ack_division",
];

fn config(bytes: &mut Bytes<'_>) -> Option<Config> {
    let mut params = Params::default();
    let preset = bytes.below(7);
    if let Some(preset) = params.presets().get(preset) {
        params.apply_preset(preset.name);
    }
    for _ in 0..bytes.below(8) {
        match bytes.below(3) {
            0 => {
                let (name, values) = bytes.pick(&ENDPOINT);
                let value = Value::Text(bytes.pick(values).to_owned());
                params.set(name, &value).unwrap_or_else(|e| panic!("{name}: {e}"));
            }
            1 => {
                let name = bytes.pick(&SWITCHES);
                params.set(name, &Value::Bool(bytes.flag())).expect("a switch");
            }
            _ => {
                let (name, count) = (bytes.pick(&COUNTS), bytes.pick(&[1, 2, 3, 7, 200]));
                params.set(name, &Value::Integer(count)).expect("a count");
            }
        }
    }
    if bytes.below(8) == 7 {
        params.set("timestamp_signature", &Value::Integer(4)).expect("so many bits");
    }
    params.check().ok()?;
    let kinds = ControllerParams::KINDS;
    let mut controller = ControllerParams::of_kind(kinds[bytes.below(kinds.len())].name)?;
    let presets = controller.params().presets();
    if let Some(preset) = presets.get(bytes.below(presets.len() + 1)) {
        controller.params_mut().apply_preset(preset.name);
    }
    // Some kinds have no choice of slow start.
    if bytes.flag() && controller.params().get("slow_start").is_some() {
        let hystart = Value::Text("hystart++".to_owned());
        controller.params_mut().set("slow_start", &hystart).expect("a slow start");
    }
    Some(Config::new(params, controller))
}

struct Path {
    sender: Sender,
    receiver: Receiver,
    mss: u64,
    window: u64,
    now: Time,
    data: Vec<Segment>,
    acks: Vec<Segment>,
    /// Sequence number after the highest byte sent; `written` is the number of bytes written.
    sent_end: u64,
    written: u64,
    /// Data received without a gap; `sacked_ranges` are the ranges beyond. Tracked independently
    /// of the receiver.
    contiguous: u64,
    sacked_ranges: Vec<(u64, u64)>,
    /// `true` if the receiver got a forged data segment. `forged_acks` is `true` if the sender got
    /// a forged ACK or the receiver is dishonest.
    forged_data: bool,
    forged_acks: bool,
    /// `true` if the receiver acknowledges honestly.
    honest: bool,
    /// `true` if the first SACK block may report a duplicate (DSACK).
    may_report_dsack: bool,
}

/// Limit on segments in flight in each direction; later ones are dropped.
const MAX_IN_FLIGHT: usize = 4000;
/// Number of bytes beyond the reach of any run; shifted left by 20, the same for nanoseconds.
const HORIZON: u64 = 1 << 40;

impl Path {
    fn new(config: Config, written: u64) -> Self {
        let (mss, window) = (config.params.packets.mss.0, config.params.windows.receive_window.0);
        let honest = config.params.cheat == CheatParams::default();
        let may_report_dsack = config.params.acks.dsack;
        let config = Arc::new(config);
        let mut sender = Sender::new(Arc::clone(&config));
        sender.write(written);
        sender.open();
        Self {
            sender,
            receiver: Receiver::new(config),
            mss,
            window,
            now: Time::ZERO,
            data: Vec::new(),
            acks: Vec::new(),
            sent_end: 0,
            written,
            contiguous: 0,
            sacked_ranges: Vec::new(),
            forged_data: false,
            forged_acks: !honest,
            honest,
            may_report_dsack,
        }
    }

    /// Sends all segments that the sender may send now.
    fn transmit(&mut self) {
        for n in 0.. {
            let Some(segment) = self.sender.poll_transmit(self.now) else { break };
            assert!(n <= 2 * self.written.min(HORIZON) + 2, "poll_transmit does not end");
            assert!(segment.end() <= self.written, "{segment:?} was never written");
            assert!(u64::from(segment.len) <= self.mss);
            if !self.forged_acks {
                assert!(segment.end() <= self.sender.acknowledged() + self.window);
            }
            self.sent_end = self.sent_end.max(segment.end());
            if self.data.len() < MAX_IN_FLIGHT {
                self.data.push(segment);
            }
        }
    }

    fn deliver_data(&mut self, segment: &Segment) {
        let in_order = segment.seq == self.contiguous && self.sacked_ranges.is_empty();
        let in_window = in_order || segment.end() <= self.contiguous + self.window;
        if segment.len > 0 && in_window && !segment.flags.has(Flags::SYN) {
            self.sacked_ranges.push((segment.seq, segment.end()));
            self.sacked_ranges.sort_unstable();
            self.sacked_ranges.retain(|&(from, to)| {
                let joins = from <= self.contiguous;
                if joins {
                    self.contiguous = self.contiguous.max(to);
                }
                !joins
            });
        }
        let ack = self.receiver.on_segment(self.now, segment);
        self.take_ack(ack);
        if self.honest {
            assert_eq!(self.receiver.counters().delivered_bytes, self.contiguous);
        }
    }

    fn take_ack(&mut self, ack: Option<Segment>) {
        let Some(ack) = ack else { return };
        if !self.honest {
            self.acks.push(ack);
            return self.acks.truncate(MAX_IN_FLIGHT);
        }
        assert_eq!(ack.seq, self.contiguous, "an ACK for what has not arrived");
        for block in ack.sack().iter().filter(|block| block.len > 0) {
            let (from, to) = (block.start(ack.seq), block.end(ack.seq));
            if self.may_report_dsack && from < ack.seq {
                assert!(to <= ack.seq, "a duplicate goes no further than what arrived");
                continue;
            }
            assert!(from > ack.seq, "a SACK block that the ACK itself covers");
            let mut reached = from;
            for &(start, end) in &self.sacked_ranges {
                if start <= reached {
                    reached = reached.max(end);
                }
            }
            assert!(reached >= to, "a SACK block for what has not arrived: {from}..{to}");
        }
        if self.acks.len() < MAX_IN_FLIGHT {
            self.acks.push(ack);
        }
    }

    fn deliver_ack(&mut self, ack: &Segment) {
        self.sender.on_segment(self.now, ack);
        self.transmit();
    }

    /// Advances to the next timer of either end and fires it; does nothing without a timer.
    fn expire(&mut self) {
        let next = self.sender.next_timer().min(self.receiver.next_timer());
        if next == Time::NEVER || next.0 > HORIZON << 20 {
            return;
        }
        self.now = self.now.max(next);
        if self.receiver.next_timer() <= self.now {
            let ack = self.receiver.on_timer(self.now);
            self.take_ack(ack);
        }
        self.sender.on_timer(self.now);
        self.transmit();
    }

    fn check(&self) {
        let (sender, una) = (&self.sender, self.sender.acknowledged());
        assert!(sender.window().cwnd >= self.mss, "a window below one segment");
        assert!(una <= self.sent_end);
        assert!(sender.min_rtt_seen() <= sender.rtt_seen(), "the least is more than the newest");
        assert!(self.forged_acks || una <= self.contiguous);
        assert!(self.forged_data || self.contiguous <= self.sent_end);
        if !sender.is_drained() && !sender.has_failed() {
            assert_ne!(sender.next_timer(), Time::NEVER, "data to send and no timer");
        }
        // Each byte is in flight at most twice: the original, and a retransmission made without a
        // loss.
        assert!(sender.in_flight() <= 2 * (self.sent_end - una));
    }
}

fn forged(bytes: &mut Bytes<'_>, is_ack: bool, around: u64, now: Time) -> Segment {
    let offset = bytes.wide();
    let seq = if bytes.flag() { around + offset } else { around.saturating_sub(offset) };
    let mut sack = SackBlocks::default();
    for block in sack.iter_mut().take(bytes.below(4)) {
        *block = SackBlock { offset: bytes.wide() as i32, len: bytes.wide() as u32 };
    }
    let ts = Time(now.0.saturating_sub(bytes.wide()));
    let len = bytes.short() as u32;
    let window = bytes.wide() as u32;
    let ack = Body::Ack { window, echo: Echo::None, sack };
    Segment {
        seq,
        ts,
        len,
        wire: bytes.short() as u16,
        flags: Flags(bytes.byte()),
        ecn: bytes.pick(&[Ecn::NotEct, Ecn::Ect0, Ecn::Ect1, Ecn::Ce]),
        body: if is_ack { ack } else { Body::DATA },
    }
}

pub fn run(data: &[u8]) {
    let mut bytes = Bytes::new(data);
    let Some(config) = config(&mut bytes) else { return };
    let written = bytes.wide().min(300 * config.params.packets.mss.0);
    let mut path = Path::new(config, written);
    path.transmit();
    while !bytes.is_empty() {
        match bytes.below(13) {
            0 => path.now += Duration(bytes.wide()),
            1 => path.expire(),
            // Delivers some segments in order, each a little later.
            2 | 3 => {
                for _ in 0..=bytes.below(30).min(path.data.len()) {
                    if path.data.is_empty() {
                        break;
                    }
                    path.now += Duration(100_000);
                    let segment = path.data.remove(0);
                    path.deliver_data(&segment);
                }
            }
            4 | 5 => {
                for _ in 0..=bytes.below(30).min(path.acks.len()) {
                    if path.acks.is_empty() {
                        break;
                    }
                    path.now += Duration(100_000);
                    let ack = path.acks.remove(0);
                    path.deliver_ack(&ack);
                    path.check();
                }
            }
            // Drops, marks, duplicates or reorders one segment in flight.
            6 if !path.data.is_empty() => {
                let i = bytes.below(path.data.len());
                match bytes.below(4) {
                    0 => drop(path.data.remove(i)),
                    1 if path.data[i].ecn.is_ect() => path.data[i].ecn = Ecn::Ce,
                    2 => path.data.push(path.data[i]),
                    _ => {
                        let segment = path.data.remove(i);
                        path.deliver_data(&segment);
                    }
                }
            }
            7 if !path.acks.is_empty() => {
                let i = bytes.below(path.acks.len());
                match bytes.below(3) {
                    0 => drop(path.acks.remove(i)),
                    1 => path.acks.push(path.acks[i]),
                    _ => {
                        let ack = path.acks.remove(i);
                        path.deliver_ack(&ack);
                    }
                }
            }
            8 => path.data.clear(),
            9 => {
                path.forged_data = true;
                let segment = forged(&mut bytes, false, path.contiguous, path.now);
                path.deliver_data(&segment);
            }
            10 => {
                path.forged_acks = true;
                let ack = forged(&mut bytes, true, path.sender.acknowledged(), path.now);
                path.deliver_ack(&ack);
            }
            12 => {
                let forged = forged(&mut bytes, true, path.sender.acknowledged(), path.now);
                let quench = forged.quench(bytes.flag(), bytes.byte(), 0);
                path.deliver_ack(&quench);
            }
            11 if bytes.flag() => {
                path.sender.stop_writing();
                path.written = path.sent_end;
            }
            _ => {}
        }
        path.check();
    }
}

#[cfg(not(test))]
libfuzzer_sys::fuzz_target!(|data: &[u8]| run(data));
