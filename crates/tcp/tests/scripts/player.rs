//! Player of a script against a sender or a receiver, in virtual time and with the script's
//! tolerance, if any.

use std::collections::VecDeque;
use std::fmt::Write as _;
use std::sync::Arc;

use cwnd_cc::{Cause, Phase};
use cwnd_packet::{Echo, Ecn};
use cwnd_quantity::{Duration, Time};
use cwnd_tcp::{Body, Config, Flags, Receiver, SackBlock, SackBlocks, Segment, Sender};

use super::script::{Event, Line, Packet, Role, Script, When, read_span};

/// Plays the script; an error names the line, the expected and the seen, and contains the
/// transcript.
pub fn play(script: &Script) -> Result<(), String> {
    let mut player = Player::new(script);
    let last = script.lines.last().map_or(0, |line| line.number);
    for line in &script.lines {
        player.line(line).map_err(|e| player.report(line.number, &e))?;
    }
    player.nothing_is_left().map_err(|e| player.report(last, &e))
}

enum End {
    Sender(Box<Sender>),
    Receiver(Box<Receiver>),
}

struct Player {
    end: End,
    mss: u64,
    header: u64,
    now: Time,
    /// Segments sent that no line has expected yet.
    out: VecDeque<(Time, Segment)>,
    /// All segments that the sender sent, for the echo of their timestamps.
    sent: Vec<(Time, Segment)>,
    /// Tolerance of the times of segments sent.
    tolerance: Duration,
    /// Receive window that ACKs carry until a line changes it.
    window: u32,
    transcript: String,
}

impl Player {
    fn new(script: &Script) -> Self {
        let params = &script.params;
        let config = Arc::new(Config::new(params.clone(), script.controller.clone()));
        let end = match script.role {
            Role::Sender => {
                let mut sender = Sender::new(config);
                sender.open();
                End::Sender(Box::new(sender))
            }
            Role::Receiver => End::Receiver(Box::new(Receiver::new(config))),
        };
        let mut player = Self {
            end,
            mss: params.packets.mss.0,
            header: params.packets.header.0,
            now: Time::ZERO,
            out: VecDeque::new(),
            sent: Vec::new(),
            tolerance: script.tolerance,
            window: u32::try_from(params.windows.receive_window.0).unwrap_or(u32::MAX),
            transcript: String::new(),
        };
        player.transmit();
        player
    }

    fn line(&mut self, line: &Line) -> Result<(), String> {
        let (then, latest) = match line.when {
            When::After(from, to) => (self.now + from, self.now + to),
            When::At(from, to) => (Time::ZERO + from, Time::ZERO + to),
        };
        if latest < self.now {
            return Err(format!("it is {} already", self.now));
        }
        match &line.event {
            Event::Out(expected) => {
                let earliest = Time(then.0.saturating_sub(self.tolerance.0));
                return self.expect((earliest, latest + self.tolerance), expected);
            }
            Event::Quiet => {
                // Includes the time `then` itself.
                self.run_until(Time(then.0 + 1));
                self.nothing_is_left()?;
                self.now = then;
                return Ok(());
            }
            _ => {}
        }
        self.run_until(then);
        self.nothing_is_left()?;
        self.now = then;
        match &line.event {
            Event::Write(bytes) => self.sender()?.write(*bytes),
            Event::Stop => self.sender()?.stop_writing(),
            Event::In(packet) => self.arrive(packet)?,
            Event::Check(facts) => {
                for (name, expected) in facts {
                    self.check(name, expected)?;
                }
            }
            Event::Out(_) | Event::Quiet => {}
        }
        self.transmit();
        Ok(())
    }

    fn sender(&mut self) -> Result<&mut Sender, String> {
        match &mut self.end {
            End::Sender(sender) => Ok(sender),
            End::Receiver(_) => Err("a receiver does not do that".to_owned()),
        }
    }

    fn next_timer(&self) -> Time {
        match &self.end {
            End::Sender(sender) => sender.next_timer(),
            End::Receiver(receiver) => receiver.next_timer(),
        }
    }

    /// Lets the timers expire that are due before `then`, until a segment is sent.
    fn run_until(&mut self, then: Time) {
        while self.out.is_empty() && self.next_timer() < then {
            self.now = self.now.max(self.next_timer());
            let ack = match &mut self.end {
                End::Sender(sender) => {
                    sender.on_timer(self.now);
                    None
                }
                End::Receiver(receiver) => receiver.on_timer(self.now),
            };
            self.out.extend(ack.map(|ack| (self.now, ack)));
            self.transmit();
        }
    }

    fn transmit(&mut self) {
        let End::Sender(sender) = &mut self.end else { return };
        while let Some(segment) = sender.poll_transmit(self.now) {
            self.out.push_back((self.now, segment));
            self.sent.push((self.now, segment));
        }
    }

    fn nothing_is_left(&self) -> Result<(), String> {
        match self.out.front() {
            None => Ok(()),
            Some((at, segment)) => {
                Err(format!("not expected: at {at} `> {}`", told(segment, self.receives())))
            }
        }
    }

    const fn receives(&self) -> bool {
        matches!(self.end, End::Receiver(_))
    }

    fn arrive(&mut self, packet: &Packet) -> Result<(), String> {
        let segment = self.segment(packet)?;
        let told = told(&segment, !self.receives());
        self.note('<', &told);
        let now = self.now;
        match &mut self.end {
            End::Sender(sender) => {
                sender.on_segment(now, &segment);
            }
            End::Receiver(receiver) => {
                let ack = receiver.on_segment(now, &segment);
                self.out.extend(ack.map(|ack| (now, ack)));
            }
        }
        Ok(())
    }

    /// Builds the segment that a script delivers.
    fn segment(&mut self, packet: &Packet) -> Result<Segment, String> {
        let mut flags = Flags::default();
        for (flag, on) in [
            (Flags::SYN, packet.syn),
            (Flags::ECE, packet.ece),
            (Flags::CWR, packet.cwr),
            (Flags::PSH, packet.psh),
        ] {
            flags = if on { flags.with(flag) } else { flags };
        }
        let mut segment = Segment {
            seq: 0,
            ts: packet.ts.map_or(self.now, |ts| Time::ZERO + ts),
            len: 0,
            wire: 40,
            flags,
            ecn: packet.ecn,
            body: Body::DATA,
        };
        if let Some((seq, marked, level)) = packet.quench {
            segment = Segment { seq, ..segment }.quench(marked, level, 0);
        } else if let Some(ack) = packet.ack {
            segment.seq = ack;
            self.window = packet.window.unwrap_or(self.window);
            let mut sack = SackBlocks::default();
            if packet.ts.is_none() {
                segment.ts = self.echo(ack);
            }
            if packet.ranges.len() > sack.len() {
                return Err("there is room for three SACK blocks".to_owned());
            }
            for (slot, range) in sack.iter_mut().zip(&packet.ranges) {
                *slot = SackBlock::of(ack, range.start, range.end);
            }
            segment.body = Body::Ack { window: self.window, echo: Echo::None, sack };
        } else if let [range] = packet.ranges.as_slice() {
            segment.seq = range.start;
            segment.len = (range.end - range.start) as u32;
            segment.wire = (u64::from(segment.len) + self.header) as u16;
        } else if !packet.syn {
            return Err("one segment arrives at a time".to_owned());
        }
        Ok(segment)
    }

    /// Returns the timestamp of the last transmission of the byte below an ACK's number: the echo
    /// of a receiver without holes.
    fn echo(&self, ack: u64) -> Time {
        let covers = |s: &Segment| s.seq < ack && ack <= s.end() || s.len == 0 && ack == 0;
        self.sent.iter().rev().find(|(_, s)| covers(s)).map_or(self.now, |(_, s)| s.ts)
    }

    /// Expects the next segments sent to be these, within the range of times; the time of the last
    /// of them becomes the current time.
    fn expect(&mut self, when: (Time, Time), packet: &Packet) -> Result<(), String> {
        let (earliest, latest) = when;
        let asked = if earliest == latest {
            format!("at {latest}")
        } else {
            format!("from {earliest} to {latest}")
        };
        let receives = self.receives();
        let expected = packet_lines(packet, self.mss, receives);
        for wanted in expected {
            self.run_until(Time(latest.0 + 1));
            let Some((at, segment)) = self.out.pop_front() else {
                self.now = latest;
                return Err(format!("expected {asked} `> {wanted}`\n     got nothing"));
            };
            self.now = at;
            let mut got = told(&segment, receives);
            if receives {
                // Fields that a script omits are not compared.
                if packet.window.is_some()
                    && let Body::Ack { window, .. } = segment.body
                {
                    let _ = write!(got, " win {window}");
                }
                if packet.ts.is_some() {
                    let _ = write!(got, " ecr {}", span(segment.ts));
                }
            } else {
                let header = u64::from(segment.wire) - u64::from(segment.len);
                if header != self.header {
                    return Err(format!("a header of {header} bytes"));
                }
            }
            self.note('>', &got);
            if at < earliest || at > latest || got != wanted {
                return Err(format!("expected {asked} `> {wanted}`\n     got at {at} `> {got}`"));
            }
        }
        Ok(())
    }

    fn check(&self, name: &str, expected: &str) -> Result<(), String> {
        let got = match &self.end {
            End::Sender(sender) => sender_fact(sender, name),
            End::Receiver(receiver) => receiver_fact(receiver, name),
        }
        .ok_or_else(|| format!("`{name}` is nothing to look at"))?;
        let got = match got {
            Fact::Number(n) => n.to_string(),
            Fact::Word(word) => word.to_owned(),
            Fact::Span(None) => "none".to_owned(),
            Fact::Span(Some(d)) if expected != "none" => {
                if read_span(expected)? == d {
                    return Ok(());
                }
                d.to_string()
            }
            Fact::Span(Some(d)) => d.to_string(),
        };
        if got == expected {
            return Ok(());
        }
        Err(format!("expected {name} {expected}\n     got {name} {got}"))
    }

    fn note(&mut self, arrow: char, what: &str) {
        let ms = self.now.0 as f64 / 1e6;
        let _ = writeln!(self.transcript, "{ms:>12.3} ms {arrow} {what}");
    }

    fn report(&self, line: usize, what: &str) -> String {
        let mut left = String::new();
        for (at, segment) in &self.out {
            let _ = writeln!(left, "      then {at} > {}", told(segment, self.receives()));
        }
        format!("{line}: {what}\nuntil then:\n{}{left}", self.transcript)
    }
}

enum Fact {
    Number(u64),
    Word(&'static str),
    Span(Option<Duration>),
}

fn sender_fact(s: &Sender, name: &str) -> Option<Fact> {
    let word = |yes: bool| Fact::Word(if yes { "yes" } else { "no" });
    let counters = s.counters();
    Some(match name {
        "cwnd" => Fact::Number(s.window().cwnd),
        "ssthresh" if s.window().ssthresh == u64::MAX => Fact::Word("inf"),
        "ssthresh" => Fact::Number(s.window().ssthresh),
        "state" => Fact::Word(match s.phase() {
            Phase::Open => "open",
            Phase::Cwr => "cwr",
            Phase::Recovery => "recovery",
            Phase::Loss => "loss",
        }),
        "linux_cwnd" => Fact::Number(s.tcp_info().cwnd?),
        "sacked" => Fact::Number(s.tcp_info().sacked),
        "lost" => Fact::Number(s.tcp_info().lost?),
        "again" => Fact::Number(s.tcp_info().retrans?),
        "pipe" => Fact::Number(s.in_flight()),
        "una" => Fact::Number(s.acknowledged()),
        "srtt" => Fact::Span(s.rtt_estimate().map(|(srtt, _)| srtt)),
        "rttvar" => Fact::Span(s.rtt_estimate().map(|(_, rttvar)| rttvar)),
        "rto" => Fact::Span(Some(s.current_rto())),
        "seen" => Fact::Span(s.rtt_seen()),
        "least" => Fact::Span(s.min_rtt_seen()),
        "forged" => Fact::Number(s.forged_echoes()),
        "timer" => Fact::Span(armed(s.next_timer())),
        "established" => word(s.is_established()),
        "failed" => word(s.has_failed()),
        "drained" => word(s.is_drained()),
        "retransmissions" => Fact::Number(counters.retransmissions),
        "probes" => Fact::Number(counters.window_probes),
        "tail_probes" => Fact::Number(counters.tail_probes),
        "timeouts" => Fact::Number(counters.timeouts.iter().sum()),
        "reductions" => {
            let [loss, ecn] = [Cause::Loss, Cause::Ecn].map(|cause| counters.reductions_for(cause));
            Fact::Number(loss + ecn + counters.reductions_for_quenches())
        }
        _ => return None,
    })
}

fn receiver_fact(r: &Receiver, name: &str) -> Option<Fact> {
    Some(match name {
        "delivered" => Fact::Number(r.counters().delivered_bytes),
        "timer" => Fact::Span(armed(r.next_timer())),
        "marks" => Fact::Number(r.counters().ce_segments),
        _ => return None,
    })
}

/// Converts a timer to the time since the start; `None` if it is off.
fn armed(timer: Time) -> Option<Duration> {
    (timer != Time::NEVER).then(|| timer.since(Time::ZERO))
}

/// Formats the segments that a line expects; a range longer than a segment is several consecutive
/// segments.
fn packet_lines(packet: &Packet, mss: u64, receives: bool) -> Vec<String> {
    if receives {
        let mut line = String::new();
        if packet.syn {
            line.push_str("syn ");
        }
        let _ = write!(line, "ack {}", packet.ack.unwrap_or_default());
        let blocks = packet.ranges.iter().map(|r| (r.start, r.end));
        tell_ack(&mut line, blocks, packet.ece, packet.ecn);
        if let Some(window) = packet.window {
            let _ = write!(line, " win {window}");
        }
        if let Some(ts) = packet.ts {
            let _ = write!(line, " ecr {}", span(Time::ZERO + ts));
        }
        return vec![line];
    }
    if packet.syn {
        return vec!["syn".to_owned()];
    }
    let mut lines = Vec::new();
    for range in &packet.ranges {
        // An empty range is a segment, too.
        for start in (range.start..range.end.max(range.start + 1)).step_by(mss as usize) {
            let end = range.end.min(start + mss);
            let mut line = format!("{start}:{end}");
            tell_data(&mut line, packet.ecn, packet.cwr, packet.psh);
            lines.push(line);
        }
    }
    lines
}

/// Formats a segment as in a script.
fn told(segment: &Segment, is_ack: bool) -> String {
    let flag = |flag| segment.flags.has(flag);
    let mut line = String::new();
    if let Body::Quench { marked, level, .. } = segment.body {
        let how = if marked { "marked" } else { "dropped" };
        return format!("quench {} {how} level {level}", segment.seq);
    }
    if flag(Flags::SYN) {
        line.push_str("syn");
        if !is_ack {
            return line;
        }
        line.push(' ');
    }
    if is_ack {
        let _ = write!(line, "ack {}", segment.seq);
        let blocks = segment.sack().into_iter().filter(|b| b.len > 0);
        let blocks = blocks.map(|b| (b.start(segment.seq), b.end(segment.seq)));
        tell_ack(&mut line, blocks, flag(Flags::ECE), segment.ecn);
    } else {
        let _ = write!(line, "{}:{}", segment.seq, segment.end());
        tell_data(&mut line, segment.ecn, flag(Flags::CWR), flag(Flags::PSH));
    }
    line
}

fn tell_ack(line: &mut String, blocks: impl Iterator<Item = (u64, u64)>, ece: bool, ecn: Ecn) {
    for (n, (start, end)) in blocks.enumerate() {
        let sack = if n == 0 { " sack" } else { "" };
        let _ = write!(line, "{sack} {start}:{end}");
    }
    if ece {
        line.push_str(" ece");
    }
    tell_ecn(line, ecn);
}

fn tell_data(line: &mut String, ecn: Ecn, cwr: bool, psh: bool) {
    tell_ecn(line, ecn);
    if cwr {
        line.push_str(" cwr");
    }
    if psh {
        line.push_str(" psh");
    }
}

fn tell_ecn(line: &mut String, ecn: Ecn) {
    line.push_str(match ecn {
        Ecn::NotEct => "",
        Ecn::Ect0 => " ect0",
        Ecn::Ect1 => " ect1",
        Ecn::Ce => " ce",
    });
}

fn span(at: Time) -> Duration {
    at.since(Time::ZERO)
}
