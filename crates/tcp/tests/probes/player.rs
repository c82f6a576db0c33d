//! Player of probes: passes the endpoint the kernel's inputs, and compares segments and state after
//! each event.

use std::ops::Range;
use std::sync::Arc;

use cwnd_cc::{ControllerParams, Phase};
use cwnd_packet::{Echo, Ecn};
use cwnd_quantity::{Bytes, Duration, Time};
use cwnd_schema::{Params as _, ParamsChoice as _};
use cwnd_tcp::{Body, Config, Flags, Params, Recovery, SackBlock, SackBlocks, Segment, Sender};

use super::{Ack, Echoed, Event, MSS, Probe, SentRun, State, What};

/// A difference between the endpoint and the kernel.
#[derive(Debug, PartialEq)]
pub struct Difference {
    /// Number of the event, from 1.
    pub event: usize,
    pub told: String,
    pub of: String,
    pub kernel: String,
    pub endpoint: String,
}

/// Tick of the recorded kernel (HZ = 250), ms: its timers expire up to a tick late, and its timeout
/// counts ticks.
const TICK_MS: f64 = 4.0;
/// Lateness of timers of more than 64 ticks, as a fraction of their wait (kernel/time/timer.c).
const WHEEL: f64 = 1.0 / 8.0;
/// Lateness of a process that waits for a packet or a time, ms.
const WAKING_MS: f64 = 1.5;

/// Plays a probe for each offset of its start from the kernel's tick, in ms, until nothing differs:
/// the recording lacks the offset. Returns the differences of the first run if all runs differ.
pub fn play(probe: &Probe) -> Vec<Difference> {
    let mut places =
        (0..TICK_MS as u64).map(|ms| play_from(probe, Time::ZERO + Duration::from_millis(ms)));
    let first = places.next().unwrap_or_default();
    if first.is_empty() || places.any(|found| found.is_empty()) { Vec::new() } else { first }
}

/// Plays a probe from the time `began` to its end, or to the first difference in segments or window
/// state. The first difference in times is reported, too, and does not end the run.
fn play_from(probe: &Probe, began: Time) -> Vec<Difference> {
    let mut host = Host::new(probe, began);
    let mut found: Vec<Difference> = Vec::new();
    for (number, event) in (1..).zip(&probe.events) {
        let told = |(of, kernel, endpoint): Differs| Difference {
            event: number,
            told: format!("+{} {}", event.after_ms, event.told),
            of: of.to_owned(),
            kernel,
            endpoint,
        };
        if let Err(differs) = host.event(event) {
            found.push(told(differs));
            break;
        }
        if found.is_empty() {
            found.extend(host.times(&event.state).err().map(told));
        }
    }
    found
}

/// Quantity that differs, its value in the kernel, and in the endpoint.
type Differs = (&'static str, String, String);

struct Host {
    sender: Sender,
    now: Time,
    /// Segments sent and not compared yet.
    out: Vec<SentRun>,
    syn_sent: Time,
    /// Byte range of each segment of new data.
    segments: Vec<Range<u64>>,
    /// Byte range and timestamp of each data segment sent.
    copies: Vec<(Range<u64>, Time)>,
    /// The kernel's retransmission timeout after the last event, ms.
    rto: f64,
}

impl Host {
    fn new(probe: &Probe, began: Time) -> Self {
        let mut params = Params::default();
        params.apply_preset("linux");
        params.packets.mss = Bytes(MSS);
        params.rtt.timestamps = probe.timestamps;
        params.packets.header = Bytes(if probe.timestamps { 52 } else { 40 });
        params.ecn.ecn = probe.ecn;
        params.rto.rto_granularity = Duration::from_millis(TICK_MS as u64);
        if !probe.sack {
            params.recovery.recovery = Recovery::NewReno;
        }
        let kind = if probe.cc == "reno" { "newreno" } else { &probe.cc };
        let mut controller = ControllerParams::of_kind(kind).unwrap();
        controller.params_mut().apply_preset("linux");
        if let ControllerParams::Cubic(cubic) = &mut controller {
            cubic.tick = Duration::from_millis(TICK_MS as u64);
        }
        let mut sender = Sender::new(Arc::new(Config::new(params, controller)));
        sender.open();
        let mut host = Self {
            sender,
            now: began,
            out: Vec::new(),
            syn_sent: Time::ZERO,
            segments: Vec::new(),
            copies: Vec::new(),
            rto: 0.0,
        };
        host.transmit();
        host
    }

    fn event(&mut self, event: &Event) -> Result<(), Differs> {
        let after = Duration((event.after_ms * 1e6) as u64);
        if event.what == What::Timer {
            self.wait(event.after_ms)?;
        } else {
            let then = self.now + after;
            // A timer due within this time before the event may be late, as the kernel's was.
            let late = Duration(((2.0 * TICK_MS + WAKING_MS) * 1e6) as u64);
            while self.out.is_empty() && self.sender.next_timer() + late < then {
                self.expire();
            }
            if !self.out.is_empty() {
                let early = then.since(self.now).0 as f64 / 1e6;
                let seen = format!("{} {early:.1} ms before this", shown(&self.out));
                return Err(("left", "nothing by itself".to_owned(), seen));
            }
            self.now = then;
            match &event.what {
                What::SynAck => self.arrive(&Ack::syn(), Flags::SYN),
                What::Write(bytes) => self.sender.write(*bytes),
                What::Ack(ack) => {
                    self.arrive(ack, if ack.ece { Flags::ECE } else { Flags::default() });
                }
                What::Pause | What::Timer => {}
            }
            self.transmit();
        }
        let left = std::mem::take(&mut self.out);
        if left != event.left {
            return Err(("left", shown(&event.left), shown(&left)));
        }
        self.rto = event.state.rto;
        self.compare(&event.state)
    }

    /// Lets a timer of the endpoint expire at the time of the kernel's transmission, within the
    /// lateness of the kernel's timers.
    fn wait(&mut self, after_ms: f64) -> Result<(), Differs> {
        let began = self.now;
        let then = began + Duration((after_ms * 1e6) as u64);
        let late = WAKING_MS + TICK_MS + WHEEL * self.rto.max(after_ms);
        let latest = then + Duration(((WAKING_MS + TICK_MS) * 1e6) as u64);
        let since = |at: Time| at.since(began).0 as f64 / 1e6;
        while self.out.is_empty() {
            let due = self.sender.next_timer();
            if due > latest {
                let next = match due {
                    Time::NEVER => "no timer runs".to_owned(),
                    _ => format!("the timer is due after {:.1} ms", since(due)),
                };
                return Err(("left", format!("something after {after_ms} ms"), next));
            }
            let early = since(due) + late < after_ms;
            self.now = if early { self.now.max(due) } else { then.max(due) };
            self.sender.on_timer(self.now);
            self.transmit();
            if early && !self.out.is_empty() {
                let seen = format!("{} after {:.1} ms", shown(&self.out), since(due));
                return Err(("left", format!("nothing before {after_ms} ms"), seen));
            }
        }
        Ok(())
    }

    fn expire(&mut self) {
        self.now = self.now.max(self.sender.next_timer());
        self.sender.on_timer(self.now);
        self.transmit();
    }

    fn transmit(&mut self) {
        while let Some(segment) = self.sender.poll_transmit(self.now) {
            if segment.flags.has(Flags::SYN) {
                self.syn_sent = self.now;
                continue;
            }
            let bytes = segment.seq..segment.end();
            if bytes.is_empty() {
                let probe = SentRun { bytes: 0..0, cwr: false, capable: false, probes: true };
                self.out.push(probe);
                continue;
            }
            if self.segments.last().is_none_or(|last| last.end <= bytes.start) {
                self.segments.push(bytes.clone());
            }
            self.copies.push((bytes.clone(), segment.ts));
            let capable = segment.ecn == Ecn::Ect0;
            let cwr = segment.flags.has(Flags::CWR);
            match self.out.last_mut() {
                Some(last)
                    if last.bytes.end == bytes.start
                        && (last.cwr, last.capable) == (cwr, capable) =>
                {
                    last.bytes.end = bytes.end;
                }
                _ => self.out.push(SentRun { bytes, cwr, capable, probes: false }),
            }
        }
    }

    fn arrive(&mut self, ack: &Ack, flags: Flags) {
        let mut sack = SackBlocks::default();
        for (slot, block) in sack.iter_mut().zip(&ack.sack) {
            // A block below the ACK is a D-SACK (RFC 2883 § 4).
            *slot = SackBlock {
                offset: (block.start as i64 - ack.number as i64) as _,
                len: (block.end - block.start) as u32,
            };
        }
        let ts = if flags.has(Flags::SYN) { self.syn_sent } else { self.echoed(ack) };
        let segment = Segment {
            seq: ack.number,
            ts,
            len: 0,
            wire: 40,
            flags,
            ecn: Ecn::NotEct,
            body: Body::Ack { window: ack.window as u32, echo: Echo::None, sack },
        };
        self.sender.on_segment(self.now, &segment);
    }

    /// Returns the time that an ACK echoes; without timestamps the last send time of the data newly
    /// acknowledged, as in Linux's own log, else of the byte below its number.
    fn echoed(&self, ack: &Ack) -> Time {
        match ack.echo {
            Echoed::Syn => self.syn_sent,
            Echoed::Copy(byte, nth) => {
                let mut copies = self.copies.iter().filter(|(bytes, _)| bytes.contains(&byte));
                let last = copies.clone().next_back();
                copies.nth(nth - 1).or(last).map_or(self.syn_sent, |(_, at)| *at)
            }
            Echoed::None => {
                let una = self.sender.acknowledged();
                let newly = |bytes: &Range<u64>| bytes.start < ack.number && bytes.end > una;
                let covers =
                    |bytes: &Range<u64>| bytes.start < ack.number && ack.number <= bytes.end;
                let mut last_first = self.copies.iter().rev();
                let found = last_first.clone().find(|(bytes, _)| newly(bytes));
                let found = found.or_else(|| last_first.find(|(bytes, _)| covers(bytes)));
                found.map_or(self.syn_sent, |(_, at)| *at)
            }
        }
    }

    fn compare(&self, kernel: &State) -> Result<(), Differs> {
        let ours = self.state();
        let same = |of, kernel: String, endpoint: String| {
            if kernel == endpoint { Ok(()) } else { Err((of, kernel, endpoint)) }
        };
        // The endpoint has no state Disorder, between a first duplicate and a loss.
        let phase = if kernel.phase == "disorder" { "open" } else { &kernel.phase };
        same("ca_state", phase.to_owned(), ours.phase)?;
        let shown = self.sender.tcp_info();
        let known = |of, kernel: u64, shown: Option<u64>| {
            same(of, kernel.to_string(), shown.unwrap_or(kernel).to_string())
        };
        known("cwnd", kernel.cwnd, shown.cwnd)?;
        known("sacked", kernel.sacked, Some(shown.sacked))?;
        known("lost", kernel.lost, shown.lost)?;
        known("retrans", kernel.retrans, shown.retrans)?;
        let infinite =
            |segments: Option<u64>| segments.map_or("none".to_owned(), |n| n.to_string());
        same("ssthresh", infinite(kernel.ssthresh), infinite(ours.ssthresh))?;
        same("unacked", kernel.unacked.to_string(), ours.unacked.to_string())?;
        same("total_retrans", kernel.total.to_string(), ours.total.to_string())
    }

    fn times(&self, kernel: &State) -> Result<(), Differs> {
        let ours = self.state();
        let near = |of, kernel: f64, endpoint: f64, slack: f64| {
            let is_near = (kernel - endpoint).abs() <= slack;
            if is_near {
                Ok(())
            } else {
                Err((of, format!("{kernel} ms"), format!("{endpoint:.1} ms")))
            }
        };
        near("rtt", kernel.rtt, ours.rtt, WAKING_MS + 0.02 * kernel.rtt)?;
        near("rto", kernel.rto, ours.rto, 2.0 * TICK_MS + 0.02 * kernel.rto)
    }

    fn state(&self) -> State {
        let mss = self.sender.mss();
        let window = self.sender.window();
        let ms = |span: Duration| span.0 as f64 / 1e6;
        let (rtt, rttvar) = self.sender.rtt_estimate().unwrap_or_default();
        let una = self.sender.acknowledged();
        State {
            phase: match self.sender.phase() {
                Phase::Open => "open",
                Phase::Cwr => "cwr",
                Phase::Recovery => "recovery",
                Phase::Loss => "loss",
            }
            .to_owned(),
            cwnd: 0,
            ssthresh: (window.ssthresh != u64::MAX).then(|| window.ssthresh / mss),
            unacked: self.segments.iter().filter(|bytes| bytes.end > una).count() as u64,
            sacked: 0,
            lost: 0,
            retrans: 0,
            total: self.sender.counters().retransmissions,
            rto: ms(self.sender.current_rto()),
            rtt: ms(rtt),
            rttvar: ms(rttvar),
        }
    }
}

impl Ack {
    /// The SYN-ACK, whose window is not scaled.
    fn syn() -> Self {
        Self { number: 0, sack: Vec::new(), echo: Echoed::Syn, ece: false, window: 65_535 }
    }
}

fn shown(left: &[SentRun]) -> String {
    if left.is_empty() {
        return "nothing".to_owned();
    }
    let told = left.iter().map(|part| {
        if part.probes {
            return "probe".to_owned();
        }
        let flags =
            format!("{}{}", if part.cwr { "w" } else { "" }, if part.capable { "e" } else { "" });
        let segments = |bytes: u64| bytes as f64 / MSS as f64;
        format!("{}:{}{flags}", segments(part.bytes.start), segments(part.bytes.end))
    });
    told.collect::<Vec<_>>().join(" ")
}
