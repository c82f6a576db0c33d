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

use std::path::Path;
use std::sync::Arc;

use cwnd_quantity::{Duration, Time, parse_duration};
use cwnd_schema::{Params as _, Value};
use cwnd_tcp::quic::{AckFrame, AckRange, Packet, Params, Receiver, Sender, Sizes};

use crate::controller::new_reno;

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

    /// Advances time to `until`, and sends the packets due then.
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
