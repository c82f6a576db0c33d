//! Probes: recorded inputs and reactions of Linux 6.18 (scripts/record_probes.py), compared with
//! the endpoint, preset `linux`.
//!
//! `cargo test -p cwnd-tcp --test suite probes:: -- --nocapture` prints the table. The page
//! crates/tcp/tests/packetdrill/README.md says what is compared.
//!
//! The parser reads the recording; the head of that file, which scripts/record_probes.py writes,
//! describes the format.

mod player;

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::ops::Range;

use player::{Difference, play};

/// Number of probes that are equal; it must not fall.
const EQUAL: usize = 380;

const LINUX: &str = include_str!("linux-6.18.txt");

/// Formats the number of equal probes by family, then each probe that differs.
fn table(rows: &[(String, Vec<Difference>)]) -> String {
    let mut families: BTreeMap<&str, (usize, usize)> = BTreeMap::new();
    for (name, differences) in rows {
        let family = name.split('/').next().unwrap_or(name);
        let (equal, all) = families.entry(family).or_default();
        *equal += usize::from(differences.is_empty());
        *all += 1;
    }
    let mut table = String::new();
    for (family, (equal, all)) in families {
        let _ = writeln!(table, "{family}: {equal} of {all}");
    }
    let equal = rows.iter().filter(|(_, differences)| differences.is_empty()).count();
    let _ = writeln!(table, "equal: {equal} of {}", rows.len());
    let mut by_cause: BTreeMap<&str, String> = BTreeMap::new();
    for (name, differences) in rows.iter().filter(|(_, differences)| !differences.is_empty()) {
        let cause = cause(name);
        let cause = cause.unwrap_or_else(|| panic!("causes.txt does not say why {name} differs"));
        let told = by_cause.entry(cause).or_default();
        for Difference { event, told: happened, of, kernel, endpoint } in differences {
            let _ = writeln!(
                told,
                "  {name}: event {event}, {happened}: {of}: Linux {kernel}, here {endpoint}"
            );
        }
    }
    for (cause, told) in by_cause {
        let _ = write!(table, "{cause}\n{told}");
    }
    table
}

const CAUSES: &str = include_str!("causes.txt");

/// Returns the known cause of a probe's difference.
fn cause(name: &str) -> Option<&'static str> {
    let lines = CAUSES.lines().filter(|line| !line.starts_with('#'));
    let mut causes = lines.filter_map(|line| line.split_once(": "));
    causes.find(|(beginning, _)| name.starts_with(beginning)).map(|(_, cause)| cause)
}

const GOLDEN: &str = include_str!("differences.txt");

/// Compares the table with the golden file; `UPDATE=1` rewrites it.
#[test]
fn what_the_endpoint_does_about_the_probes_is_known() {
    let probes = read(LINUX).unwrap();
    let rows: Vec<_> = probes.iter().map(|probe| (probe.name.clone(), play(probe))).collect();
    let table = table(&rows);
    if std::env::var_os("UPDATE").is_some() {
        let golden = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/probes/differences.txt");
        std::fs::write(golden, &table).unwrap();
    } else {
        assert_eq!(table, GOLDEN, "UPDATE=1 writes crates/tcp/tests/probes/differences.txt anew");
    }
    assert!(probes.len() >= 170, "only {} probes", probes.len());
    let equal = rows.iter().filter(|(_, differences)| differences.is_empty()).count();
    assert!(equal >= EQUAL, "only {equal} of {} are equal", probes.len());
}

/// A recorded probe.
#[derive(Debug)]
pub struct Probe {
    pub name: String,
    pub cc: String,
    pub sack: bool,
    pub timestamps: bool,
    pub ecn: bool,
    pub events: Vec<Event>,
}

/// An event at a time after the previous one (ms), the segments sent then, and the state after it.
#[derive(Debug)]
pub struct Event {
    pub after_ms: f64,
    pub what: What,
    pub told: String,
    pub left: Vec<SentRun>,
    pub state: State,
}

#[derive(Debug, PartialEq)]
pub enum What {
    SynAck,
    Write(u64),
    Ack(Ack),
    Pause,
    /// A transmission by the kernel's timers.
    Timer,
}

#[derive(Debug, PartialEq)]
pub struct Ack {
    pub number: u64,
    pub sack: Vec<Range<u64>>,
    pub echo: Echoed,
    pub ece: bool,
    pub window: u64,
}

/// Segment whose timestamp an ACK echoes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Echoed {
    /// No timestamps.
    None,
    Syn,
    /// The nth transmission of this byte.
    Copy(u64, usize),
}

/// Consecutive segments with the same flags.
#[derive(Clone, Debug, PartialEq)]
pub struct SentRun {
    pub bytes: Range<u64>,
    pub cwr: bool,
    pub capable: bool,
    /// `true` for a probe of a closed window.
    pub probes: bool,
}

/// Fields of `tcp_info`, in segments and ms.
#[derive(Clone, Debug, PartialEq)]
pub struct State {
    pub phase: String,
    pub cwnd: u64,
    pub ssthresh: Option<u64>,
    pub unacked: u64,
    pub sacked: u64,
    pub lost: u64,
    pub retrans: u64,
    pub total: u64,
    pub rto: f64,
    pub rtt: f64,
    pub rttvar: f64,
}

/// Size of a segment, the unit of data in the recording, bytes.
pub const MSS: u64 = 1000;

/// Receive window of the peer unless a probe states it, bytes.
pub const WINDOW: u64 = 500_000;

/// Reads all probes of a file.
pub fn read(text: &str) -> Result<Vec<Probe>, String> {
    let mut probes: Vec<Probe> = Vec::new();
    for (number, line) in (1..).zip(text.lines()) {
        let wrong = |why: &str| format!("{number}: {why}: {line}");
        if line.starts_with('#') {
            continue;
        }
        if let Some(head) = line.strip_prefix("probe ") {
            let words: Vec<&str> = head.split(' ').collect();
            let [name, cc, agreed @ ..] = words.as_slice() else { return Err(wrong("no name")) };
            probes.push(Probe {
                name: (*name).to_owned(),
                cc: (*cc).to_owned(),
                sack: agreed.contains(&"sack"),
                timestamps: agreed.contains(&"ts"),
                ecn: agreed.contains(&"ecn"),
                events: Vec::new(),
            });
            continue;
        }
        let probe = probes.last_mut().ok_or_else(|| wrong("an event of no probe"))?;
        let event = event(line, probe).ok_or_else(|| wrong("no event"))?;
        probe.events.push(event);
    }
    Ok(probes)
}

fn event(line: &str, probe: &Probe) -> Option<Event> {
    let parts: Vec<&str> = line.strip_prefix('+')?.split('|').collect();
    let [happened, left, state] = parts.as_slice() else { return None };
    let (after, told) = happened.split_once(' ')?;
    let words: Vec<&str> = told.split(' ').collect();
    let what = match words.as_slice() {
        ["synack"] => What::SynAck,
        ["write", count] => What::Write(bytes(count)?),
        ["ack", number, rest @ ..] => What::Ack(ack(bytes(number)?, rest, probe.timestamps)?),
        ["pause"] => What::Pause,
        ["timer"] => What::Timer,
        _ => return None,
    };
    Some(Event {
        after_ms: after.parse().ok()?,
        what,
        told: told.to_owned(),
        left: left.split_whitespace().map(segments).collect::<Option<_>>()?,
        state: state_of(state, probe.events.last())?,
    })
}

fn ack(number: u64, words: &[&str], timestamps: bool) -> Option<Ack> {
    let usual = if timestamps { Echoed::Copy(number.saturating_sub(MSS), 1) } else { Echoed::None };
    let mut ack = Ack { number, sack: Vec::new(), echo: usual, ece: false, window: WINDOW };
    let mut rest = words.iter().peekable();
    while let Some(&word) = rest.next() {
        match word {
            "sack" => {
                while let Some(block) = rest.next_if(|word| word.contains(':')) {
                    ack.sack.push(range(block)?);
                }
            }
            "echo" => ack.echo = echo(rest.next()?)?,
            "ece" => ack.ece = true,
            "win" => ack.window = rest.next()?.parse().ok()?,
            _ => return None,
        }
    }
    Some(ack)
}

fn echo(word: &str) -> Option<Echoed> {
    if word == "syn" {
        return Some(Echoed::Syn);
    }
    let (segment, nth) = word.split_once('#')?;
    Some(Echoed::Copy(bytes(segment)?, nth.parse().ok()?))
}

/// Parses a number of segments as bytes.
fn bytes(word: &str) -> Option<u64> {
    Some((word.parse::<f64>().ok()? * MSS as f64).round() as u64)
}

fn range(word: &str) -> Option<Range<u64>> {
    let (start, end) = word.split_once(':')?;
    Some(bytes(start)?..bytes(end)?)
}

fn segments(word: &str) -> Option<SentRun> {
    if word == "probe" {
        return Some(SentRun { bytes: 0..0, cwr: false, capable: false, probes: true });
    }
    let bytes = range(word.trim_end_matches(['w', 'e']))?;
    Some(SentRun { bytes, cwr: word.contains('w'), capable: word.contains('e'), probes: false })
}

fn state_of(text: &str, before: Option<&Event>) -> Option<State> {
    let (phase, numbers) = match text.split_once(' ')? {
        (word, rest) if word.starts_with(char::is_alphabetic) => (word, rest),
        _ => (before?.state.phase.as_str(), text),
    };
    let words: Vec<&str> = numbers.split(' ').collect();
    let [cwnd, ssthresh, unacked, rto, rtt, rttvar, counts @ ..] = words.as_slice() else {
        return None;
    };
    let count = |n: usize| counts.get(n).map_or(Some(0), |word| word.parse().ok());
    Some(State {
        phase: phase.to_owned(),
        cwnd: cwnd.parse().ok()?,
        ssthresh: if *ssthresh == "-" { None } else { Some(ssthresh.parse().ok()?) },
        unacked: unacked.parse().ok()?,
        sacked: count(3)?,
        lost: count(2)?,
        retrans: count(1)?,
        total: count(0)?,
        rto: rto.parse().ok()?,
        rtt: rtt.parse().ok()?,
        rttvar: rttvar.parse().ok()?,
    })
}
