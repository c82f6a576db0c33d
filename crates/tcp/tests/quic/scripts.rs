//! Tests by the scripts of `scripts/`: packets that arrive at an end and packets that it sends,
//! with times to the nanosecond.
//!
//! The first line names the clause, as `# RFC` or `# draft`, and the behaviour. The second line is
//! `sender` or `receiver` with settings: `key=value` of [`Params`], and for senders `rtt=100ms`,
//! the round trip of the handshake. Packets have 1000 stream bytes and nothing else.
//!
//! A line begins with its time: `+5ms` after the line before, `@2s` after the start, or `*` for the
//! same instant. Its event is one of these:
//! - `write 5000`: the application writes so many bytes.
//! - `> 0..9 0:10000`: these packets leave, and none before them; `< 3 3000:4000 ce` arrives.
//! - `< ack 5..9 0..3 delay 5ms ce 1` arrives; `> ack 0..1 delay 5ms` leaves.
//! - `quiet`: nothing leaves until now, this instant included.
//! - `cwnd 5000 srtt 100ms flight 3000 acked 2000`: these facts of a sender hold.
//!
//! Replays of `vectors/quic-*.json`, which `tests/reference/quic.py` computes from RFC 9002.

use std::path::Path;
use std::sync::Arc;

use cwnd_quantity::{Duration, Time, parse_duration};
use cwnd_schema::{Params as _, Value};
use cwnd_tcp::quic::{
    AckFrame, AckRange, Expired, Packet, Params, Receiver, Recovery, Sender, SentPacket, Sizes,
};
use serde_json::Value as Json;

use super::{MDS, new_reno};

type Outcome<T> = Result<T, String>;

/// Stream bytes of a packet.
const SIZE: u32 = 1000;

enum End {
    Sender(Box<Sender>),
    Receiver(Receiver),
}

/// The tested end, and the packets that it sent.
struct Player {
    end: End,
    now: Time,
    /// Time and text of each packet sent that no line has expected yet.
    left: Vec<(Time, String)>,
}

impl Player {
    fn new(settings: &[&str]) -> Outcome<Self> {
        let (&role, settings) = settings.split_first().ok_or("an end is missing")?;
        let (mut params, mut rtt) = (Params::default(), None);
        for setting in settings {
            let (key, value) = setting.split_once('=').ok_or("a setting is `key=value`")?;
            if key == "rtt" {
                rtt = Some(span(value)?);
                continue;
            }
            let text = || Value::Text(value.to_owned());
            let value = value.parse().map_or_else(|_| text(), Value::Integer);
            params.set(key, &value).map_err(|error| format!("{key}: {error}"))?;
        }
        let params = Arc::new(params);
        let end = match role {
            "sender" => {
                let sizes = Sizes { payload: SIZE, overhead: 0 };
                let mut sender = Box::new(Sender::new(&params, new_reno(SIZE), sizes));
                rtt.into_iter().for_each(|rtt| sender.on_handshake_rtt(Time::ZERO, rtt));
                End::Sender(sender)
            }
            "receiver" => End::Receiver(Receiver::new(params)),
            _ => return Err(format!("no end is a {role}")),
        };
        Ok(Self { end, now: Time::ZERO, left: Vec::new() })
    }

    /// Advances time to `until`, and sends the packets due by then.
    fn advance(&mut self, until: Time) {
        loop {
            self.drain();
            let next = match &self.end {
                End::Sender(sender) => sender.next_timer(),
                End::Receiver(receiver) => receiver.next_timer(),
            };
            if next > until {
                break;
            }
            self.now = self.now.max(next);
            if let End::Sender(sender) = &mut self.end {
                sender.on_timer(self.now);
            }
        }
        self.now = until;
    }

    /// Records all packets sent now.
    fn drain(&mut self) {
        match &mut self.end {
            End::Sender(sender) => {
                while let Some(packet) = sender.poll_transmit(self.now) {
                    let Packet { number, start, len, .. } = packet;
                    let end = start + u64::from(len);
                    self.left.push((self.now, format!("{number} {start}:{end}")));
                }
            }
            End::Receiver(receiver) => {
                if let Some(ack) = receiver.poll_ack(self.now) {
                    self.left.push((self.now, written(&ack.frame())));
                }
            }
        }
    }

    fn line(&mut self, when: Time, event: &[&str]) -> Outcome<()> {
        // An arrival at the time of a timer is processed before the timer.
        let arrives = matches!(event, ["<" | "write", ..]);
        self.advance(if arrives { Time(when.0.saturating_sub(1)) } else { when });
        self.now = when;
        match event {
            ["write", bytes] => match &mut self.end {
                End::Sender(sender) => sender.write(whole(bytes)?),
                End::Receiver(_) => return Err("a receiver writes nothing".to_owned()),
            },
            ["<", packet @ ..] => self.arrive(packet)?,
            [">", packet @ ..] => return self.expect(packet),
            ["quiet"] => {}
            facts => facts.chunks(2).try_for_each(|fact| self.check(fact))?,
        }
        if arrives {
            self.drain();
        } else if let [(at, first), ..] = &self.left[..] {
            return Err(format!("`{first}` left at {at}, which no line expects"));
        }
        Ok(())
    }

    fn arrive(&mut self, words: &[&str]) -> Outcome<()> {
        if let [(at, first), ..] = &self.left[..] {
            return Err(format!("`{first}` left at {at}, which no line expects"));
        }
        match (&mut self.end, words) {
            (End::Sender(sender), ["ack", words @ ..]) => {
                let (mut ranges, mut delay, mut ce) = (Vec::new(), Duration::ZERO, 0);
                let mut words = words.iter();
                while let Some(&word) = words.next() {
                    match word {
                        "delay" => delay = span(words.next().ok_or("a delay is missing")?)?,
                        "ce" => ce = whole(words.next().ok_or("a count is missing")?)?,
                        range => ranges.push(numbers(range)?),
                    }
                }
                sender.on_ack(self.now, &AckFrame { ranges: &ranges, delay, ce });
            }
            (End::Receiver(receiver), [number, data, mark @ ..]) => {
                for (number, start) in packets(number, data)? {
                    let packet = Packet { number, start, len: SIZE, bytes: SIZE, again: false };
                    receiver.on_packet(self.now, &packet, mark == ["ce"]);
                }
            }
            _ => return Err(format!("`{}` cannot arrive here", words.join(" "))),
        }
        Ok(())
    }

    fn expect(&mut self, words: &[&str]) -> Outcome<()> {
        let expected: Vec<String> = match words {
            ["ack", ..] => vec![words.join(" ")],
            [number, data] => packets(number, data)?
                .into_iter()
                .map(|(number, start)| format!("{number} {start}:{}", start + u64::from(SIZE)))
                .collect(),
            _ => return Err("what leaves is an `ack`, or numbers and data".to_owned()),
        };
        for expected in expected {
            let found = if self.left.is_empty() { None } else { Some(self.left.remove(0)) };
            if found != Some((self.now, expected.clone())) {
                return Err(format!("`{expected}` at {} is expected, not {found:?}", self.now));
            }
        }
        Ok(())
    }

    fn check(&self, fact: &[&str]) -> Outcome<()> {
        let &[name, value] = fact else { return Err(format!("`{fact:?}` is no fact")) };
        let End::Sender(sender) = &self.end else { return Err("facts are of senders".to_owned()) };
        let (found, expected) = match name {
            "cwnd" => (sender.window(), whole(value)?),
            "flight" => (sender.recovery().bytes_in_flight(), whole(value)?),
            "acked" => (sender.acknowledged(), whole(value)?),
            "srtt" => (sender.recovery().smoothed_rtt().unwrap_or_default().0, span(value)?.0),
            _ => return Err(format!("no fact is called {name}")),
        };
        if found == expected { Ok(()) } else { Err(format!("{name} is {found}, not {expected}")) }
    }
}

fn whole(text: &str) -> Outcome<u64> {
    text.parse().map_err(|_| format!("`{text}` is not a number"))
}

fn span(text: &str) -> Outcome<Duration> {
    parse_duration(text).map_err(|error| format!("{text}: {error}"))
}

fn numbers(text: &str) -> Outcome<AckRange> {
    let (first, last) = text.split_once("..").unwrap_or((text, text));
    Ok(AckRange { first: whole(first)?, last: whole(last)? })
}

/// Parses packets, as number and first byte of each.
fn packets(range: &str, data: &str) -> Outcome<Vec<(u64, u64)>> {
    let AckRange { first, last } = numbers(range)?;
    let (start, end) = data.split_once(':').ok_or("data is `0:1000`")?;
    let start = whole(start)?;
    if whole(end)? - start != (last - first + 1) * u64::from(SIZE) {
        return Err(format!("{data} is not of packets {range}"));
    }
    Ok((first..=last).zip((start..).step_by(SIZE as usize)).collect())
}

/// Formats an ACK as in scripts.
fn written(ack: &AckFrame<'_>) -> String {
    let one = |range: &AckRange| match range {
        AckRange { first, last } if first == last => format!("{first}"),
        AckRange { first, last } => format!("{first}..{last}"),
    };
    let ranges: Vec<String> = ack.ranges.iter().map(one).collect();
    let mut words = format!("ack {}", ranges.join(" "));
    if ack.delay > Duration::ZERO {
        words += &format!(" delay {}", ack.delay.to_string().replace(' ', ""));
    }
    if ack.ce > 0 {
        words += &format!(" ce {}", ack.ce);
    }
    words
}

fn play(text: &str) -> Outcome<()> {
    let mut lines = (1..).zip(text.lines());
    if lines
        .next()
        .is_none_or(|(_, line)| !line.starts_with("# RFC ") && !line.starts_with("# draft"))
    {
        return Err("1: the first line names the clause".to_owned());
    }
    let (_, settings) = lines.next().ok_or("2: an end is missing")?;
    let mut player = Player::new(&settings.split_whitespace().collect::<Vec<_>>())?;
    let mut when = Time::ZERO;
    for (number, line) in lines {
        let at = |error: String| format!("{number}: {error}");
        let words: Vec<&str> = line.split('#').next().unwrap_or("").split_whitespace().collect();
        let Some((&time, event)) = words.split_first() else { continue };
        when = match (time, time.strip_prefix('+'), time.strip_prefix('@')) {
            ("*", ..) => when,
            (_, Some(after), _) => when + span(after).map_err(at)?,
            (.., Some(instant)) => Time::ZERO + span(instant).map_err(at)?,
            _ => return Err(at(format!("`{time}` is no time"))),
        };
        player.line(when, event).map_err(at)?;
    }
    if player.left.is_empty() { Ok(()) } else { Err(format!("{:?} left at last", player.left)) }
}

#[test]
fn every_script_plays() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/quic/scripts");
    let mut names: Vec<_> = std::fs::read_dir(folder)
        .expect("there is a folder")
        .map(|entry| entry.expect("it can be read").path())
        .collect();
    names.sort();
    let mut errors = Vec::new();
    for name in &names {
        let text = std::fs::read_to_string(name).expect("it is text");
        if let Err(error) = play(&text) {
            errors.push(format!("{}:{error}", name.display()));
        }
    }
    assert!(errors.is_empty(), "{}", errors.join("\n"));
    assert!(names.len() > 15, "{}", names.len());
}

#[path = "../../../../tests/vector_files.rs"]
mod vector_files;

fn number(value: &Json) -> u64 {
    value.as_u64().expect("it is a whole number")
}

fn list(value: &Json) -> &[Json] {
    value.as_array().expect("it is a list")
}

/// Replays a file; returns the number of events.
fn replay(file: &Json) -> usize {
    let mut events = 0;
    for case in list(&file["cases"]) {
        let p = &case["parameters"];
        let params = Params {
            packet_threshold: number(&p["packet_threshold"]) as u32,
            time_threshold: p["time_threshold"].as_f64().expect("it is a number"),
            initial_rtt: Duration(number(&p["initial_rtt_ns"])),
            max_ack_delay: Duration(number(&p["max_ack_delay_ns"])),
            ..Params::default()
        };
        let mut recovery = Recovery::new(&params, new_reno(MDS), MDS);
        for event in list(&case["events"]) {
            apply(&mut recovery, event);
            check(&recovery, event, &file["tolerance"], &case["name"]);
            events += 1;
        }
    }
    events
}

fn apply(recovery: &mut Recovery, event: &Json) {
    let now = Time(number(&event["now_ns"]));
    match event["event"].as_str() {
        Some("sent") => recovery.on_sent(SentPacket {
            number: number(&event["number"]),
            at: now,
            bytes: number(&event["bytes"]) as u32,
            ack_eliciting: event["ack_eliciting"] == true,
            start: 0,
            len: 0,
        }),
        Some("ack") => {
            let range = |pair: &Json| AckRange { first: number(&pair[0]), last: number(&pair[1]) };
            let ranges: Vec<_> = list(&event["ranges"]).iter().map(range).collect();
            let (delay, ce) = (Duration(number(&event["delay_ns"])), number(&event["ce"]));
            recovery.on_ack(now, &AckFrame { ranges: &ranges, delay, ce }, false);
            assert_eq!(recovery.is_persistent(), event["persistent"] == true, "{event}");
        }
        _ => {
            let probe = if event["probe"] == true { Expired::Probe } else { Expired::Loss };
            assert_eq!(recovery.on_timer(now), probe, "{event}");
        }
    }
}

fn check(recovery: &Recovery, event: &Json, tolerance: &Json, name: &Json) {
    let at = || format!("{name}: {event}");
    let near = |own: Option<u64>, key: &str, doublings: u32| {
        let allowed = number(&tolerance[key]) << doublings;
        match (own, event[key].as_u64()) {
            (Some(own), Some(theirs)) => own.abs_diff(theirs) <= allowed,
            (own, theirs) => own == theirs,
        }
    };
    if event["event"] != "sent" {
        let lost: Vec<u64> = recovery.lost().iter().map(|packet| packet.number).collect();
        let theirs: Vec<u64> = list(&event["lost"]).iter().map(number).collect();
        assert_eq!(lost, theirs, "{}", at());
    }
    let doublings = recovery.probe_timeouts();
    assert_eq!(u64::from(doublings), number(&event["pto_count"]), "{}", at());
    assert_eq!(recovery.bytes_in_flight(), number(&event["in_flight"]), "{}", at());
    let start = recovery.congestion().recovery_start().map(|start| start.0);
    assert_eq!(start, event["recovery_ns"].as_u64(), "{}", at());
    assert_eq!(recovery.min_rtt().unwrap_or_default().0, number(&event["min_rtt_ns"]), "{}", at());
    assert!(near(recovery.smoothed_rtt().map(|rtt| rtt.0), "srtt_ns", 0), "{}", at());
    let deadline = Some(recovery.next_timer().0).filter(|&at| at != Time::NEVER.0);
    assert!(near(deadline, "deadline_ns", doublings), "{deadline:?}, {}", at());
}

#[test]
fn loss_detection_is_that_of_rfc_9002() {
    let files = vector_files::of_kind("quic");
    let events: Vec<usize> = files.iter().map(replay).collect();
    assert!(events.iter().sum::<usize>() > 1500, "{events:?}");
}
