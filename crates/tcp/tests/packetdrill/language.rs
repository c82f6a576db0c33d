//! Syntax tree of packetdrill scripts, for the subset that is read.

use std::ops::Range;

/// A script: settings, initial commands, and events.
#[derive(Debug, Default, PartialEq)]
pub struct Script {
    /// `--name=value` lines.
    pub options: Vec<(String, String)>,
    /// Shell commands before the first event, with their line numbers.
    pub commands: Vec<(usize, String)>,
    pub events: Vec<Event>,
}

/// A timed event.
#[derive(Debug, PartialEq)]
pub struct Event {
    pub line: usize,
    pub when: When,
    /// `true` for a blocking call, whose end time the script gives, too.
    pub blocks: bool,
    pub what: What,
}

/// Time of an event in nanoseconds; a single time is an empty range.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum When {
    /// `*`: at any time.
    Any,
    /// Range since the start of the script.
    At(u64, u64),
    /// Range since the previous event.
    After(u64, u64),
}

#[derive(Debug, PartialEq)]
pub enum What {
    Call(Call),
    In(Packet),
    Out(Packet),
    /// `` `…` ``: a shell command.
    Command(String),
    /// `%{ … }%`: Python.
    Code(String),
    /// A construct outside the subset, by name.
    Other(String),
}

/// `name(args) = result`.
#[derive(Debug, Default, PartialEq)]
pub struct Call {
    pub name: String,
    pub args: Vec<String>,
    /// First word of the result: a number, `-1` or `...`.
    pub result: String,
    /// Name of the error; empty without one.
    pub error: String,
}

impl Call {
    /// Returns the nth argument; empty if it is missing.
    pub fn arg(&self, n: usize) -> &str {
        self.args.get(n).map_or("", String::as_str)
    }

    /// Returns the bytes that the call transferred; 0 if it failed.
    pub fn moved(&self) -> u64 {
        self.result.parse().unwrap_or(0)
    }
}

/// A TCP segment. Numbers count from the first SYN of each end.
#[derive(Debug, Default, PartialEq)]
pub struct Packet {
    /// IP ECN field, if the script states it.
    pub ecn: Option<String>,
    /// Letters of the flags; `.` is ACK.
    pub flags: String,
    pub payload: Range<u64>,
    pub ack: Option<u64>,
    pub window: Option<u64>,
    /// Options; `None` for `<...>`, which matches any.
    pub options: Option<Vec<TcpOption>>,
}

impl Packet {
    pub fn has(&self, flag: char) -> bool {
        self.flags.contains(flag)
    }

    pub fn bytes(&self) -> u64 {
        self.payload.end - self.payload.start
    }

    /// Returns the options that the script states.
    pub fn said(&self) -> &[TcpOption] {
        self.options.as_deref().unwrap_or_default()
    }

    pub fn sack(&self) -> &[Range<u64>] {
        let blocks = self.said().iter().find_map(|option| match option {
            TcpOption::Sack(blocks) => Some(blocks.as_slice()),
            _ => None,
        });
        blocks.unwrap_or_default()
    }

    /// Returns TSval and TSecr, if there are timestamps.
    pub fn timestamps(&self) -> Option<(u64, u64)> {
        self.said().iter().find_map(|option| match option {
            TcpOption::Timestamps(val, ecr) => Some((*val, *ecr)),
            _ => None,
        })
    }
}

#[derive(Clone, Debug, PartialEq)]
pub enum TcpOption {
    Mss(u64),
    SackOk,
    Sack(Vec<Range<u64>>),
    Timestamps(u64, u64),
    WindowScale(u64),
    /// `nop` and `eol`.
    Padding,
    Other(String),
}
