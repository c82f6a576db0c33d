//! Language of packetdrill scripts: the syntax tree of the subset that is read, and its parser. A
//! construct outside the subset becomes an event with its name, which is reported as the reason why
//! a script cannot be played.

use std::ops::Range;

use winnow::Result;
use winnow::ascii::{digit1, multispace1, space0, space1};
use winnow::combinator::{
    alt, delimited, dispatch, fail, opt, peek, preceded, repeat, separated, terminated,
};
use winnow::prelude::*;
use winnow::token::{any, take_till, take_until, take_while};

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

/// Reads a whole file. An error names the line, unless a comment does not end.
pub fn read(text: &str) -> core::result::Result<Script, String> {
    let mut rest = text;
    let mut script = Script::default();
    let line = |rest: &str| 1 + text[..text.len() - rest.len()].matches('\n').count();
    loop {
        gap.parse_next(&mut rest).map_err(|_| "a comment does not end".to_owned())?;
        if rest.is_empty() {
            return Ok(script);
        }
        let at = line(rest);
        let wrong = |_| format!("{at}: not read: `{}`", first_line(text, at));
        if rest.starts_with("--") {
            script.options.push(setting.parse_next(&mut rest).map_err(wrong)?);
        } else if rest.starts_with('`') {
            script.commands.push((at, command.parse_next(&mut rest).map_err(wrong)?));
        } else {
            let ((when, blocks), what) =
                (terminated(time, gap), what).parse_next(&mut rest).map_err(wrong)?;
            script.events.push(Event { line: at, when, blocks, what });
        }
    }
}

fn first_line(text: &str, line: usize) -> &str {
    text.lines().nth(line - 1).unwrap_or_default().trim()
}

/// Skips white space and comments.
fn gap(input: &mut &str) -> Result<()> {
    let to_line_end = || take_till(0.., '\n');
    repeat(
        0..,
        alt((
            multispace1.void(),
            ("//", to_line_end()).void(),
            ('#', to_line_end()).void(),
            ("/*", take_until(0.., "*/"), "*/").void(),
        )),
    )
    .parse_next(input)
}

fn setting(input: &mut &str) -> Result<(String, String)> {
    let name = preceded("--", take_while(1.., ('a'..='z', 'A'..='Z', '0'..='9', '_')));
    let value = opt(preceded('=', take_till(0.., [' ', '\t', '\n', '`'])));
    let (name, value) = (name, value).parse_next(input)?;
    Ok((name.to_owned(), value.unwrap_or_default().to_owned()))
}

fn command(input: &mut &str) -> Result<String> {
    delimited('`', take_until(0.., "`"), '`').map(str::to_owned).parse_next(input)
}

fn code(input: &mut &str) -> Result<String> {
    delimited("%{", take_until(0.., "}%"), "}%").map(str::to_owned).parse_next(input)
}

/// Parses the time of an event; `true` if it is a blocking call with an end time.
fn time(input: &mut &str) -> Result<(When, bool)> {
    let until = || opt(preceded((space0, '~', space0, opt('+')), seconds));
    // The end time of a blocking call is read but not used.
    let end_of_call = opt((space0, "...", space0, opt('+'), seconds)).map(|end| end.is_some());
    let pair = |(from, to): (u64, Option<u64>)| (from, to.unwrap_or(from));
    let when = alt((
        '*'.value(When::Any),
        preceded(('+', space0), (seconds, until()))
            .map(pair)
            .map(|(from, to)| When::After(from, to)),
        (seconds, until()).map(pair).map(|(from, to)| When::At(from, to)),
    ));
    (when, end_of_call).parse_next(input)
}

/// Parses seconds with up to nine decimals, as nanoseconds.
fn seconds(input: &mut &str) -> Result<u64> {
    let text =
        alt(((digit1, '.', digit1).take(), ('.', digit1).take(), digit1)).parse_next(input)?;
    let (whole, part) = text.split_once('.').unwrap_or((text, ""));
    let number = |digits: &str| digits.parse::<u64>().unwrap_or(0);
    let nanos: String = part.chars().chain("000000000".chars()).take(9).collect();
    Ok(number(whole).saturating_mul(1_000_000_000).saturating_add(number(&nanos)))
}

fn what(input: &mut &str) -> Result<What> {
    dispatch! {peek(any);
        '`' => command.map(What::Command),
        '%' => code.map(What::Code),
        '<' => preceded(('<', space0), packet_or_other)
            .map(|p| p.map_or_else(What::Other, What::In)),
        '>' => preceded(('>', space0), packet_or_other)
            .map(|p| p.map_or_else(What::Other, What::Out)),
        'a'..='z' | '_' => call.map(What::Call),
        _ => fail,
    }
    .parse_next(input)
}

/// Parses a TCP segment up to the end of its line, or the name of another construct.
fn packet_or_other(input: &mut &str) -> Result<core::result::Result<Packet, String>> {
    let line = take_till(0.., '\n').parse_next(input)?;
    let mut rest = line;
    let Ok(packet) = packet.parse_next(&mut rest) else {
        let word = line.split_whitespace().next().unwrap_or_default();
        let named = match word {
            "icmp" | "udp" | "ipv4" | "ipv6" | "gre" | "mpls" | "raw" => word,
            _ if line.contains("[") && !line.trim_start().starts_with('[') => {
                "a packet that asks for more"
            }
            _ => "a packet",
        };
        return Ok(Err(named.to_owned()));
    };
    let _ = gap.parse_next(&mut rest);
    Ok(if rest.is_empty() { Ok(packet) } else { Err(format!("a packet with `{}`", rest.trim())) })
}

fn packet(input: &mut &str) -> Result<Packet> {
    let word = || take_while(1.., ('a'..='z', '0'..='9'));
    let field = delimited('[', word(), (']', space0));
    let old_field = delimited('(', word(), (')', space0));
    let ecn = opt(alt((field, old_field))).parse_next(input)?;
    let flags = take_while(1.., ('A'..='Z', '.', '-', '0'..='9')).parse_next(input)?;
    let payload = preceded(space0, payload).parse_next(input)?;
    let ack = opt(preceded((space0, "ack", space0), number)).parse_next(input)?;
    let window = opt(preceded((space0, "win", space0), number)).parse_next(input)?;
    let options = opt(preceded(space0, options)).parse_next(input)?;
    Ok(Packet {
        ecn: ecn.map(str::to_owned),
        flags: flags.to_owned(),
        payload,
        ack,
        window,
        options: options.unwrap_or_else(|| Some(Vec::new())),
    })
}

/// Parses `1:1001(1000)`; the length in brackets must match.
fn payload(input: &mut &str) -> Result<Range<u64>> {
    let (start, end, len) =
        (number, preceded(':', number), delimited('(', number, ')')).parse_next(input)?;
    if end.checked_sub(start) == Some(len) { Ok(start..end) } else { fail.parse_next(input) }
}

/// Parses `<…>`; `None` stands for `<...>`.
fn options(input: &mut &str) -> Result<Option<Vec<TcpOption>>> {
    let comma = || (space0, ',', space0);
    delimited(
        ('<', space0),
        alt(("...".value(None), separated(0.., option, comma()).map(Some))),
        (space0, '>'),
    )
    .parse_next(input)
}

fn option(input: &mut &str) -> Result<TcpOption> {
    let block = || (number, preceded(':', number)).map(|(start, end)| start..end);
    alt((
        preceded(("mss", space0), number).map(TcpOption::Mss),
        "sackOK".value(TcpOption::SackOk),
        preceded(
            ("sack", space0),
            separated(1.., block(), alt(((space0, ',', space0).void(), space1.void()))),
        )
        .map(TcpOption::Sack),
        (
            preceded(("TS", space0, "val", space0), number),
            preceded((space0, "ecr", space0), number),
        )
            .map(|(val, ecr)| TcpOption::Timestamps(val, ecr)),
        preceded(("wscale", space0), number).map(TcpOption::WindowScale),
        alt(("nop", "NOP", "eol", "EOL")).value(TcpOption::Padding),
        take_till(1.., [',', '>']).map(|text: &str| {
            TcpOption::Other(text.split_whitespace().next().unwrap_or_default().to_owned())
        }),
    ))
    .parse_next(input)
}

fn number(input: &mut &str) -> Result<u64> {
    digit1.parse_to().parse_next(input)
}

fn call(input: &mut &str) -> Result<Call> {
    let name = take_while(1.., ('a'..='z', '0'..='9', '_')).parse_next(input)?;
    let args = preceded(space0, in_brackets).parse_next(input)?;
    let word = || take_till(1.., [' ', '\t', '\n']);
    let result = opt(preceded((gap, '=', space0), word())).parse_next(input)?;
    let error = opt(preceded(space0, take_while(1.., ('A'..='Z', '0'..='9')))).parse_next(input)?;
    // The rest is the error's description, or output of the call.
    take_till(0.., '\n').parse_next(input)?;
    Ok(Call {
        name: name.to_owned(),
        args: split(args),
        result: result.unwrap_or_default().to_owned(),
        error: error.unwrap_or_default().to_owned(),
    })
}

/// Parses the text between matching brackets.
fn in_brackets<'a>(input: &mut &'a str) -> Result<&'a str> {
    let text = *input;
    let mut depth = 0_usize;
    for (at, c) in text.char_indices() {
        match c {
            '(' => depth += 1,
            ')' => depth = depth.saturating_sub(1),
            _ => {}
        }
        if depth == 0 {
            *input = &text[at + 1..];
            return if at == 0 { fail.parse_next(input) } else { Ok(&text[1..at]) };
        }
    }
    fail.parse_next(input)
}

/// Splits arguments at commas outside brackets of any kind.
fn split(args: &str) -> Vec<String> {
    let mut parts = vec![String::new()];
    let mut depth = 0_i32;
    for c in args.chars() {
        match c {
            '(' | '[' | '{' => depth += 1,
            ')' | ']' | '}' => depth -= 1,
            _ => {}
        }
        if c == ',' && depth == 0 {
            parts.push(String::new());
        } else if let Some(part) = parts.last_mut() {
            part.push(c);
        }
    }
    parts.iter().map(|part| part.trim().to_owned()).collect()
}
