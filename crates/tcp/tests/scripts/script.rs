//! Parser of scripts; README.md describes the format.

use std::ops::Range;

use cwnd_cc::ControllerParams;
use cwnd_packet::Ecn;
use cwnd_quantity::{Bytes, Duration, parse_duration};
use cwnd_schema::{Params as _, ParamsChoice as _, Value};
use cwnd_tcp::Params;

/// A script: the tested end, its settings, and the events.
pub struct Script {
    pub role: Role,
    pub params: Params,
    pub controller: ControllerParams,
    /// Tolerance of the times of segments sent.
    pub tolerance: Duration,
    pub lines: Vec<Line>,
}

/// Tested end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    Sender,
    Receiver,
}

/// One timed line.
pub struct Line {
    pub number: usize,
    pub when: When,
    pub event: Event,
}

/// Earliest and latest time; a single time is both.
#[derive(Clone, Copy)]
pub enum When {
    /// Time after the previous line.
    After(Duration, Duration),
    /// Time after the start.
    At(Duration, Duration),
}

impl When {
    const fn is_range(self) -> bool {
        let (Self::After(from, to) | Self::At(from, to)) = self;
        from.0 < to.0
    }
}

pub enum Event {
    /// The application writes this number of bytes.
    Write(u64),
    /// The application stops writing.
    Stop,
    /// A segment arrives.
    In(Packet),
    /// These segments are sent, and no others before them.
    Out(Packet),
    /// Nothing is sent up to and including this time.
    Quiet,
    /// Each of these facts holds.
    Check(Vec<(String, String)>),
}

/// A segment in a script, or several data segments that differ only in their numbers.
#[derive(Clone, Default)]
pub struct Packet {
    pub syn: bool,
    pub ack: Option<u64>,
    /// Byte ranges of data, or SACK blocks of an ACK.
    pub ranges: Vec<Range<u64>>,
    pub ece: bool,
    pub cwr: bool,
    pub psh: bool,
    pub ecn: Ecn,
    pub window: Option<u32>,
    /// TSval of data, TSecr of an ACK: time since the start.
    pub ts: Option<Duration>,
    /// Source quench: the quoted number, `true` if that packet was marked, and the level.
    pub quench: Option<(u64, bool, u8)>,
}

/// Base parameters of scripts: defaults with round sizes, no handshake, an exact clock and an ACK
/// for each segment.
fn base() -> Params {
    Params::default().with(|p| {
        p.packets.mss = Bytes(1000);
        p.packets.header = Bytes(40);
        p.packets.ack_size = Bytes(40);
        p.connection.handshake = false;
        p.rtt.clock = Duration(1);
        p.acks.ack_every = 1;
    })
}

impl Script {
    /// Reads a whole script.
    pub fn parse(text: &str) -> Result<Self, String> {
        if !text.starts_with("# ") {
            return Err("1: the first line must say what is shown, by which clause".to_owned());
        }
        let mut script = Self {
            role: Role::Sender,
            params: base(),
            controller: ControllerParams::of_kind("newreno").ok_or("no newreno")?,
            tolerance: Duration::ZERO,
            lines: Vec::new(),
        };
        for (number, line) in (1..).zip(text.lines()) {
            script.read_line(number, line).map_err(|e| format!("{number}: {e}"))?;
        }
        script.params.check().map_err(|e| format!("{}: {}", e.key, e.message))?;
        if script.lines.is_empty() { Err("nothing happens".to_owned()) } else { Ok(script) }
    }

    fn read_line(&mut self, number: usize, line: &str) -> Result<(), String> {
        let line = line.split('#').next().unwrap_or_default();
        let words: Vec<&str> = line.split_whitespace().collect();
        match words.as_slice() {
            [] => {}
            ["sender", settings @ ..] => {
                self.role = Role::Sender;
                set_all(&mut self.params, settings)?;
            }
            ["receiver", settings @ ..] => {
                self.role = Role::Receiver;
                set_all(&mut self.params, settings)?;
            }
            ["controller", kind, settings @ ..] => {
                self.controller =
                    ControllerParams::of_kind(kind).ok_or_else(|| format!("no `{kind}`"))?;
                set_all(self.controller.params_mut(), settings)?;
            }
            ["tolerance", span] => self.tolerance = read_span(span)?,
            [when, event @ ..] => {
                let (when, event) = (read_when(when)?, read_event(event)?);
                if when.is_range() && !matches!(event, Event::Out(_)) {
                    return Err("only what leaves may do so between two times".to_owned());
                }
                self.lines.push(Line { number, when, event });
            }
        }
        Ok(())
    }
}

/// Applies settings as in scenarios: `key=value`, or the name of a preset.
fn set_all(params: &mut dyn cwnd_schema::Params, settings: &[&str]) -> Result<(), String> {
    for setting in settings {
        let Some((key, value)) = setting.split_once('=') else {
            if params.apply_preset(setting) {
                continue;
            }
            return Err(format!("no preset `{setting}`"));
        };
        params.set(key, &read_value(value)).map_err(|e| format!("{key}: {e}"))?;
    }
    Ok(())
}

fn read_value(text: &str) -> Value {
    match text {
        "true" => Value::Bool(true),
        "false" => Value::Bool(false),
        _ => text
            .parse()
            .map(Value::Integer)
            .or_else(|_| text.parse().map(Value::Float))
            .unwrap_or_else(|_| Value::Text(text.to_owned())),
    }
}

fn read_when(word: &str) -> Result<When, String> {
    let range = |text: &str| {
        let (from, to) = text.split_once('~').unwrap_or((text, text));
        let (from, to) = (read_span(from)?, read_span(to)?);
        if from > to { Err(format!("{text} ends before it begins")) } else { Ok((from, to)) }
    };
    match (word, word.strip_prefix('+'), word.strip_prefix('@')) {
        ("*", ..) => Ok(When::After(Duration::ZERO, Duration::ZERO)),
        (_, Some(span), _) => range(span).map(|(from, to)| When::After(from, to)),
        (.., Some(instant)) => range(instant).map(|(from, to)| When::At(from, to)),
        _ => Err(format!("a time is `+100ms`, `@2s`, `+100ms~104ms` or `*`, not `{word}`")),
    }
}

/// Parses a time span; 0 needs no unit.
pub fn read_span(text: &str) -> Result<Duration, String> {
    if text == "0" {
        return Ok(Duration::ZERO);
    }
    parse_duration(text).map_err(|e| format!("{text}: {e}"))
}

fn read_event(words: &[&str]) -> Result<Event, String> {
    match words {
        ["write", n] => Ok(Event::Write(read_number(n)?)),
        ["stop"] => Ok(Event::Stop),
        ["quiet"] => Ok(Event::Quiet),
        ["<", packet @ ..] => Ok(Event::In(read_packet(packet)?)),
        [">", packet @ ..] => Ok(Event::Out(read_packet(packet)?)),
        [_, ..] if words.len().is_multiple_of(2) => Ok(Event::Check(
            words.chunks(2).map(|pair| (pair[0].to_owned(), pair[1].to_owned())).collect(),
        )),
        _ => Err(format!("not an event: `{}`", words.join(" "))),
    }
}

fn read_packet(words: &[&str]) -> Result<Packet, String> {
    if let ["quench", number, how, level @ ..] = words {
        return read_quench(number, how, level);
    }
    let mut packet = Packet::default();
    let mut rest = words.iter();
    while let Some(&word) = rest.next() {
        let mut argument = || rest.next().copied().ok_or_else(|| format!("`{word}` of what?"));
        match word {
            "syn" => packet.syn = true,
            "ack" => packet.ack = Some(read_number(argument()?)?),
            "win" => {
                let window = read_number(argument()?)?;
                packet.window = Some(u32::try_from(window).map_err(|e| e.to_string())?);
            }
            "ts" | "ecr" => packet.ts = Some(read_span(argument()?)?),
            "sack" => {}
            "ece" => packet.ece = true,
            "cwr" => packet.cwr = true,
            "psh" => packet.psh = true,
            "ect0" => packet.ecn = Ecn::Ect0,
            "ce" => packet.ecn = Ecn::Ce,
            _ => packet.ranges.push(read_range(word)?),
        }
    }
    if packet.ack.is_none() && packet.ranges.is_empty() && !packet.syn {
        return Err("a segment is data (`0:1000`), an `ack` or a `syn`".to_owned());
    }
    Ok(packet)
}

fn read_quench(number: &str, how: &str, level: &[&str]) -> Result<Packet, String> {
    let marked = match how {
        "marked" => true,
        "dropped" => false,
        _ => return Err(format!("a quench is about a packet `marked` or `dropped`, not `{how}`")),
    };
    let level = match level {
        [] => 0,
        ["level", level] => level.parse().map_err(|_| format!("`{level}` is no level"))?,
        _ => return Err(format!("what is `{}`?", level.join(" "))),
    };
    Ok(Packet { quench: Some((read_number(number)?, marked, level)), ..Packet::default() })
}

fn read_range(word: &str) -> Result<Range<u64>, String> {
    let (start, end) = word.split_once(':').ok_or_else(|| format!("what is `{word}`?"))?;
    let range = read_number(start)?..read_number(end)?;
    if range.start > range.end { Err(format!("{word} ends before it begins")) } else { Ok(range) }
}

fn read_number(text: &str) -> Result<u64, String> {
    text.parse().map_err(|_| format!("`{text}` is not a number"))
}
