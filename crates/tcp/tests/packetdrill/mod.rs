//! Player of packetdrill files from a directory that the user names, on the endpoint with preset
//! `linux` or `freebsd`.
//!
//! Run it by `make packetdrill DIR=…`, or by `CWND_PACKETDRILL=DIR cargo test -p cwnd-tcp --test
//! suite packetdrill:: -- --nocapture`. README.md beside this file describes the subset of the
//! language and what is compared.

mod code;
mod language;
mod player;
mod player_tests;
mod session;
mod settings;

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use language::read;
use player::{Compared, Divergence, play};
use session::{Role, Unplayable, prepare};
use settings::Stack;

/// Result of a script.
#[derive(Debug, PartialEq)]
pub enum Outcome {
    Passes(Compared),
    Diverges(Divergence),
    Unplayable(Unplayable),
}

/// Plays the text of a script; `open` returns the files that it names. `stack` overrides the
/// stack that the script sets up.
pub fn outcome(text: &str, open: &dyn Fn(&str) -> Option<String>, stack: Option<Stack>) -> Outcome {
    let script = match read(text) {
        Ok(script) => script,
        Err(construct) => return Outcome::Unplayable(Unplayable { line: 0, construct }),
    };
    let session = match prepare(&script, open, stack) {
        Err(beyond) => return Outcome::Unplayable(beyond),
        Ok(session) => session,
    };
    let opening = if session.role == Role::Client { 2 } else { 1 };
    match play(&script, &session) {
        Ok(compared) if compared.held == 0 && compared.segments <= opening => {
            let construct = "nothing but opening is compared".to_owned();
            Outcome::Unplayable(Unplayable { line: 1, construct })
        }
        Ok(compared) => Outcome::Passes(compared),
        Err(divergence) => Outcome::Diverges(divergence),
    }
}

/// Finds all `.pkt` files below a directory, in order.
fn scripts(directory: &Path, found: &mut Vec<PathBuf>) {
    let mut entries: Vec<PathBuf> =
        std::fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path()).collect();
    entries.sort();
    for path in entries {
        if path.is_dir() {
            scripts(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "pkt") {
            found.push(path);
        }
    }
}

/// Reads a file that a script names, from its directory or one of the three above.
fn open(script: &Path, name: &str) -> Option<String> {
    let name = name.trim_start_matches("./");
    let beside = script.parent()?.ancestors().take(4);
    beside.map(|above| above.join(name)).find_map(|path| std::fs::read_to_string(path).ok())
}

/// Formats the results as a table by name, with a line of totals.
fn table(rows: &BTreeMap<String, Outcome>) -> String {
    let mut table = String::from("script\toutcome\tline\twhat\n");
    let (mut passes, mut diverges, mut held, mut segments) = (0, 0, 0, 0);
    let mut unknown = 0;
    for (name, outcome) in rows {
        let _ = match outcome {
            Outcome::Passes(compared) => {
                passes += 1;
                held += compared.held;
                segments += compared.segments;
                unknown += compared.unknown.values().sum::<usize>();
                let mut what =
                    format!("{} segments, {} assertions", compared.segments, compared.held);
                if !compared.unknown.is_empty() {
                    let names = compared.unknown.iter().map(|(name, n)| format!("{name} {n}×"));
                    let names = names.collect::<Vec<_>>().join(", ");
                    let _ = write!(what, "; not checked: {names}");
                }
                writeln!(table, "{name}\tpasses\t\t{what}")
            }
            Outcome::Diverges(Divergence { line, expected, seen }) => {
                diverges += 1;
                writeln!(table, "{name}\tdiverges\t{line}\texpected {expected}; seen {seen}")
            }
            Outcome::Unplayable(Unplayable { line, construct }) => {
                writeln!(table, "{name}\tnot expressible\t{line}\t{construct}")
            }
        };
    }
    let expressible = passes + diverges;
    let _ = writeln!(
        table,
        "{} scripts: {expressible} expressible, of which {passes} pass and {diverges} diverge; \
         those that pass compared {segments} segments and {held} assertions, \
         and could not check {unknown}",
        rows.len(),
    );
    table
}

#[test]
fn scripts_of_a_directory_are_played() {
    let Some(directory) = std::env::var_os("CWND_PACKETDRILL") else {
        return eprintln!("skipped packetdrill: CWND_PACKETDRILL names no directory of scripts");
    };
    let stack = std::env::var_os("CWND_PACKETDRILL_STACK")
        .map(|name| name.to_str().and_then(Stack::of).expect("a stack is `linux` or `freebsd`"));
    let directory = PathBuf::from(directory);
    let mut files = Vec::new();
    scripts(&directory, &mut files);
    assert!(!files.is_empty(), "no .pkt file below {}", directory.display());
    let rows = files.iter().map(|path| {
        let name = path.strip_prefix(&directory).unwrap().display().to_string();
        let text = String::from_utf8_lossy(&std::fs::read(path).unwrap()).into_owned();
        (name, outcome(&text, &|wanted| open(path, wanted), stack))
    });
    let table = table(&rows.collect());
    println!("{table}");
}
