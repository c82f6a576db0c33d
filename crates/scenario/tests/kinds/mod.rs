//! Placeholders for the lists of kinds in messages, which grow with each new kind.

use std::collections::BTreeMap;

use cwnd_scenario::KindInfo;

/// Replaces each list of all kinds of a part, or of all kinds with a key, by a placeholder.
pub fn named(text: &str) -> String {
    let parts = cwnd_scenario::kinds();
    let lines = text.split('\n').map(|line| {
        all(line, &parts).or_else(|| having_a_key(line, &parts)).unwrap_or_else(|| line.to_owned())
    });
    lines.collect::<Vec<_>>().join("\n")
}

/// Replaces the list at the end of a line, if it has all kinds of a part.
fn all(line: &str, parts: &BTreeMap<&str, Vec<KindInfo>>) -> Option<String> {
    parts.iter().find_map(|(part, kinds)| {
        let start = line.strip_suffix(&list(kinds.iter()))?.strip_suffix("there are ")?;
        Some(format!("{start}there are (every {part})"))
    })
}

/// Replaces the list in a line such as "unknown key `a` in the queue `b`: it is a key of `c`, `d`".
fn having_a_key(line: &str, parts: &BTreeMap<&str, Vec<KindInfo>>) -> Option<String> {
    let (start, listed) = line.split_once("it is a key of ")?;
    let (key, place) = start.split_once("unknown key `")?.1.split_once("` in the ")?;
    let (part, _) = place.split_once(' ')?;
    let kinds = parts.get(part)?.iter().filter(|(.., keys)| keys.contains(&key));
    (listed == list(kinds)).then(|| format!("{start}it is a key of (every {part} with `{key}`)"))
}

fn list<'a>(kinds: impl Iterator<Item = &'a KindInfo>) -> String {
    kinds.map(|(name, ..)| format!("`{name}`")).collect::<Vec<_>>().join(", ")
}
