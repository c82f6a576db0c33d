//! Language of packetdrill scripts, as far as it is read.

use std::ops::Range;

/// A script: settings, what is run before it, and what happens.
#[derive(Debug, Default, PartialEq)]
pub struct Script {
    /// `--name=value` lines.
    pub options: Vec<(String, String)>,
    /// Shell commands before the first event, with their line.
    pub commands: Vec<(usize, String)>,
    pub events: Vec<Event>,
}

/// What happens at a time.
#[derive(Debug, PartialEq)]
pub struct Event {
    pub line: usize,
    pub when: When,
    /// A call that blocks: its end is written, too.
    pub blocks: bool,
    pub what: What,
}

/// When, in nanoseconds; a single time is a range of no length.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum When {
    /// `*`: whenever it comes.
    Any,
    /// Since the start.
    At(u64, u64),
    /// Since the event before.
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
    /// What is not read, by name.
    Other(String),
}

/// `name(args) = result`.
#[derive(Debug, Default, PartialEq)]
pub struct Call {
    pub name: String,
    pub args: Vec<String>,
    /// Its first word: a number, `-1` or `...`.
    pub result: String,
    /// The error's name; empty if it is none.
    pub error: String,
}

impl Call {
    /// An argument; what is not there is empty.
    pub fn arg(&self, n: usize) -> &str {
        self.args.get(n).map_or("", String::as_str)
    }

    /// The bytes that it moved: none, if it failed.
    pub fn moved(&self) -> u64 {
        self.result.parse().unwrap_or(0)
    }
}

/// A TCP segment. Numbers count from the first SYN of each end.
#[derive(Debug, Default, PartialEq)]
pub struct Packet {
    /// The IP ECN field, if it is said.
    pub ecn: Option<String>,
    /// The letters of its flags; `.` is ACK.
    pub flags: String,
    pub payload: Range<u64>,
    pub ack: Option<u64>,
    pub window: Option<u64>,
    /// `None` for `<...>`: any.
    pub options: Option<Vec<TcpOption>>,
}

impl Packet {
    pub fn has(&self, flag: char) -> bool {
        self.flags.contains(flag)
    }

    pub fn bytes(&self) -> u64 {
        self.payload.end - self.payload.start
    }

    /// The options that are said.
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

    /// TSval and TSecr.
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
