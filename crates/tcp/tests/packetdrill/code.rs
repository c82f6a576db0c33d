//! Interpreter of the Python between `%{` and `}%`: comparisons of numbers in assertions, and
//! assignments of numbers to names. Names are fields of Linux's `struct tcp_info` that the endpoint
//! knows, constants, and assigned names.

use std::collections::BTreeMap;
use std::ops::Range;

use cwnd_cc::Phase;
use cwnd_quantity::Duration;
use cwnd_tcp::{Receiver, Sender};
use winnow::Result;
use winnow::ascii::{digit1, float, hex_digit1, space0};
use winnow::combinator::{alt, delimited, not, opt, peek, preceded, repeat, terminated};
use winnow::prelude::*;
use winnow::token::{one_of, take_while};

/// Result of an assertion.
#[derive(Debug, PartialEq)]
pub enum Verdict {
    Holds,
    /// The assertion's condition, and the value of its left side.
    Fails(String, String),
    /// A name that the endpoint does not know, or an assertion that is not understood.
    Unknown(String),
}

/// Numbers that scripts assigned to names.
#[derive(Default)]
pub struct Names(BTreeMap<String, f64>);

/// Constants that packetdrill defines. The endpoint does not distinguish the states Disorder and
/// Open.
const CONSTANTS: [(&str, f64); 5] = [
    ("TCP_CA_Open", 0.0),
    ("TCP_CA_Disorder", 0.0),
    ("TCP_CA_CWR", 2.0),
    ("TCP_CA_Recovery", 3.0),
    ("TCP_CA_Loss", 4.0),
];

impl Names {
    /// Runs a block and returns the verdicts on its assertions; `fact` returns the endpoint's value
    /// of a name. Other statements than assertions and assignments are skipped.
    pub fn run(&mut self, code: &str, fact: impl Fn(&str) -> Option<f64>) -> Vec<Verdict> {
        let mut verdicts = Vec::new();
        for statement in statements(code) {
            if let Ok((name, value)) = assignment.parse(statement.as_str()) {
                let value = value.value(&|name: &str| self.look_up(name, &fact));
                if let Ok(value) = value {
                    self.0.insert(name.to_owned(), value);
                }
            } else if let Some(asserted) = statement.strip_prefix("assert") {
                verdicts.push(self.judge(asserted.trim(), &fact));
            }
        }
        verdicts
    }

    fn look_up(&self, name: &str, fact: &impl Fn(&str) -> Option<f64>) -> Option<f64> {
        let constant = CONSTANTS.iter().find(|(known, _)| *known == name).map(|(_, value)| *value);
        constant.or_else(|| self.0.get(name).copied()).or_else(|| fact(name))
    }

    fn judge(&self, asserted: &str, fact: &impl Fn(&str) -> Option<f64>) -> Verdict {
        let mut rest = asserted;
        let parsed: Result<Vec<Compared>> = comparisons.parse_next(&mut rest);
        // A comma begins the message for a failure.
        let ends = rest.trim_start();
        let Ok(compared) = parsed else { return Verdict::Unknown(asserted.to_owned()) };
        if !ends.is_empty() && !ends.starts_with(',') {
            return Verdict::Unknown(asserted.to_owned());
        }
        for Compared { left, right, how } in compared {
            let find = |name: &str| self.look_up(name, fact);
            let (left, right) = match (left.value(&find), right.value(&find)) {
                (Ok(left), Ok(right)) => (left, right),
                (Err(name), _) | (_, Err(name)) => return Verdict::Unknown(name),
            };
            if !how.holds(left, right) {
                let wanted = asserted[..asserted.len() - rest.len()].trim();
                return Verdict::Fails(wanted.to_owned(), left.to_string());
            }
        }
        Verdict::Holds
    }
}

/// Splits code into statements, at line ends and semicolons outside brackets and quotes; drops
/// comments.
fn statements(code: &str) -> Vec<String> {
    let mut found = vec![String::new()];
    let (mut depth, mut quote, mut comment) = (0_i32, None, false);
    for c in code.chars() {
        comment &= c != '\n';
        match (quote, c) {
            _ if comment => continue,
            (None, '#') => {
                comment = true;
                continue;
            }
            (None, '\'' | '"') => quote = Some(c),
            (Some(q), _) if q == c => quote = None,
            (None, '(' | '[' | '{') => depth += 1,
            (None, ')' | ']' | '}') => depth -= 1,
            (None, '\n' | ';') if depth == 0 => {
                found.push(String::new());
                continue;
            }
            _ => {}
        }
        if let Some(last) = found.last_mut() {
            last.push(c);
        }
    }
    found.iter().map(|s| s.trim().to_owned()).filter(|s| !s.is_empty()).collect()
}

#[derive(Debug)]
enum Expression {
    Number(f64),
    Name(String),
    Of(Box<(Self, char, Self)>),
}

impl Expression {
    /// Returns the value, or the name that is unknown.
    fn value(&self, find: &impl Fn(&str) -> Option<f64>) -> core::result::Result<f64, String> {
        match self {
            Self::Number(n) => Ok(*n),
            Self::Name(name) => find(name).ok_or_else(|| name.clone()),
            Self::Of(parts) => {
                let (left, sign, right) = &**parts;
                let (left, right) = (left.value(find)?, right.value(find)?);
                Ok(match sign {
                    '+' => left + right,
                    '-' => left - right,
                    '*' => left * right,
                    _ => left / right,
                })
            }
        }
    }
}

struct Compared {
    left: Expression,
    how: How,
    right: Expression,
}

#[derive(Clone, Copy)]
enum How {
    Equal,
    Unequal,
    Less,
    LessOrEqual,
    More,
    MoreOrEqual,
}

impl How {
    fn holds(self, left: f64, right: f64) -> bool {
        match self {
            Self::Equal => left.to_bits() == right.to_bits(),
            Self::Unequal => left.to_bits() != right.to_bits(),
            Self::Less => left < right,
            Self::LessOrEqual => left <= right,
            Self::More => left > right,
            Self::MoreOrEqual => left >= right,
        }
    }
}

fn assignment<'a>(input: &mut &'a str) -> Result<(&'a str, Expression)> {
    (terminated(name, (space0, '=', not('='), space0)), sum).parse_next(input)
}

/// Parses comparisons joined by `and`; `a < b < c` is two.
fn comparisons(input: &mut &str) -> Result<Vec<Compared>> {
    let mut all = Vec::new();
    loop {
        let wrapped = opt(delimited('(', comparisons, (space0, ')'))).parse_next(input)?;
        all.extend(match wrapped {
            Some(inner) => inner,
            None => chain.parse_next(input)?,
        });
        if opt((space0, "and", space0)).parse_next(input)?.is_none() {
            return Ok(all);
        }
    }
}

fn chain(input: &mut &str) -> Result<Vec<Compared>> {
    let first = sum.parse_next(input)?;
    let others: Vec<(How, Expression, &str)> = repeat(
        1..,
        (delimited(space0, how, space0), sum.with_taken()).map(|(how, (e, text))| (how, e, text)),
    )
    .parse_next(input)?;
    let mut left = first;
    let mut all = Vec::new();
    for (how, right, mut text) in others {
        // The expression between two comparisons belongs to both.
        let again = sum.parse_next(&mut text)?;
        all.push(Compared { left, how, right });
        left = again;
    }
    Ok(all)
}

fn how(input: &mut &str) -> Result<How> {
    alt((
        "==".value(How::Equal),
        "!=".value(How::Unequal),
        "<=".value(How::LessOrEqual),
        ">=".value(How::MoreOrEqual),
        '<'.value(How::Less),
        '>'.value(How::More),
    ))
    .parse_next(input)
}

fn sum(input: &mut &str) -> Result<Expression> {
    let first = product.parse_next(input)?;
    let more: Vec<(char, Expression)> =
        repeat(0.., (delimited(space0, one_of(['+', '-']), space0), product)).parse_next(input)?;
    Ok(joined(first, more))
}

fn product(input: &mut &str) -> Result<Expression> {
    let first = atom.parse_next(input)?;
    let more: Vec<(char, Expression)> =
        repeat(0.., (delimited(space0, one_of(['*', '/']), space0), atom)).parse_next(input)?;
    Ok(joined(first, more))
}

fn joined(first: Expression, more: Vec<(char, Expression)>) -> Expression {
    more.into_iter()
        .fold(first, |left, (sign, right)| Expression::Of(Box::new((left, sign, right))))
}

fn atom(input: &mut &str) -> Result<Expression> {
    alt((
        preceded("0x", hex_digit1)
            .verify_map(|digits| u32::from_str_radix(digits, 16).ok())
            .map(|n| Expression::Number(f64::from(n))),
        preceded(peek(digit1), float).map(Expression::Number),
        delimited('(', sum, (space0, ')')),
        terminated(name, not(one_of(['(', '[', '.'])))
            .map(|name| Expression::Name(name.to_owned())),
    ))
    .parse_next(input)
}

fn name<'a>(input: &mut &'a str) -> Result<&'a str> {
    (one_of(('a'..='z', 'A'..='Z', '_')), take_while(0.., ('a'..='z', 'A'..='Z', '0'..='9', '_')))
        .take()
        .parse_next(input)
}

pub struct TcpInfoFields<'a> {
    pub sender: &'a Sender,
    pub receiver: &'a Receiver,
    pub written: u64,
    /// Byte range of each segment of new data.
    pub segments: &'a [Range<u64>],
}

impl TcpInfoFields<'_> {
    /// Bytes written and not sent.
    pub fn not_sent(&self) -> u64 {
        let sent = self.segments.last().map_or(0, |bytes| bytes.end - 1);
        self.written - sent
    }

    pub fn of(&self, name: &str) -> Option<f64> {
        let (mss, sender) = (self.sender.mss(), self.sender);
        let micros = |span: Duration| (span.0 / 1000) as f64;
        Some(match name {
            "tcpi_snd_cwnd" => sender.tcp_info().cwnd? as f64,
            "tcpi_sacked" => sender.tcp_info().sacked as f64,
            "tcpi_lost" => sender.tcp_info().lost? as f64,
            "tcpi_retrans" => sender.tcp_info().retrans? as f64,
            "tcpi_snd_ssthresh" => match sender.window().ssthresh {
                // TCP_INFINITE_SSTHRESH
                u64::MAX => f64::from(i32::MAX),
                bytes => (bytes / mss) as f64,
            },
            "tcpi_ca_state" => match sender.phase() {
                Phase::Open => 0.0,
                Phase::Cwr => 2.0,
                Phase::Recovery => 3.0,
                Phase::Loss => 4.0,
            },
            "tcpi_unacked" => {
                let acked = sender.acknowledged() + 1;
                self.segments.iter().filter(|bytes| bytes.end > acked).count() as f64
            }
            "tcpi_rtt" => micros(sender.rtt_estimate()?.0),
            "tcpi_rttvar" => micros(sender.rtt_estimate()?.1),
            "tcpi_min_rtt" => micros(sender.min_rtt_seen()?),
            "tcpi_rto" => micros(sender.current_rto()),
            "tcpi_snd_mss" => mss as f64,
            "tcpi_total_retrans" => sender.counters().retransmissions as f64,
            "tcpi_bytes_acked" => sender.acknowledged() as f64,
            "tcpi_bytes_received" => self.receiver.piggyback_ack(u64::MAX).seq as f64,
            "tcpi_notsent_bytes" => self.not_sent() as f64,
            _ => return None,
        })
    }
}
