//! Diagnostics of broken scenario files, compared with stored texts.

use std::fs;
use std::path::Path;

use cwnd_scenario::{Diagnostics, Document};

mod kinds;
mod stored;

/// Contents of the files that the broken scenarios name.
const FILES: &dyn Fn(&str) -> Result<String, String> = &|name| match name {
    "good.trace" => Ok("1\n2\n3\n".to_owned()),
    "three.txt" => Ok("1 2 3\n".to_owned()),
    "sizes.txt" => Ok("0 0\n5000 20\n20000000 99\n".to_owned()),
    "good.csv" => Ok("bytes,probability\n40,0\n1000,1\n".to_owned()),
    "bad-arrivals.csv" => Ok("time_s,size_bytes\n1,30000\n2,many\n".to_owned()),
    "bad.csv" => Ok("bytes,probability\n40,0.5\n1000,0.4\n".to_owned()),
    "bad-delays.csv" => Ok("time_s,added_ms\n0,10\n2,20\n1,30\n".to_owned()),
    "bad.trace" => Ok("1\ntwo\n".to_owned()),
    _ => Err("no such file".to_owned()),
};

/// Line of a broken scenario after which its diagnostics follow as a comment.
const EXPECTED: &str = "\n# Expected:\n";

fn diagnostics(name: &str, text: &str) -> Diagnostics {
    match Document::parse(name, text, FILES).and_then(|d| d.plan()) {
        Ok(plan) => plan.warnings,
        Err(diagnostics) => diagnostics,
    }
}

#[test]
fn every_broken_file_says_what_is_wrong_with_it() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/errors");
    let mut files: Vec<_> = fs::read_dir(&folder)
        .expect("the folder is there")
        .map(|entry| entry.expect("an entry").path())
        .filter(|path| path.extension().is_some_and(|e| e == "toml"))
        .collect();
    files.sort();
    assert!(files.len() >= 25);
    for path in files {
        let name = path.file_name().and_then(|n| n.to_str()).expect("a name");
        let text = fs::read_to_string(&path).expect("a text");
        let scenario = text.split_once(EXPECTED).map_or(text.as_str(), |(scenario, _)| scenario);
        let diagnostics = diagnostics(name, scenario);
        assert!(!diagnostics.is_empty(), "{name} is not broken");
        let shown = kinds::named(&diagnostics.render(false));
        let comment: String =
            shown.lines().map(|line| format!("{}\n", format!("# {line}").trim_end())).collect();
        let stored = format!("crates/scenario/tests/errors/{name}");
        stored::check(&stored, &format!("{scenario}{EXPECTED}{comment}"));
    }
}

#[test]
fn of_a_line_at_most_80_characters_are_quoted() {
    let long = "x".repeat(10_000);
    for text in [
        format!("schema = 2\nname = \"{long}\"\n"),
        format!("schema = 2\n{long} = 1\n"),
        format!("[run]\nduration = [{}]\n", "\"1 s\", ".repeat(5_000)),
        format!("[run]{} bad = 1\n", " ".repeat(5_000)),
        format!("[run]\nduration = \"1 s\" # {long}\nsample = \"ä{}\"\n", "ü".repeat(5_000)),
    ] {
        let shown = diagnostics("long.toml", &text).render(false);
        let quoted = shown.lines().filter_map(|line| {
            let (number, quote) = line.split_once(" | ")?;
            number.trim().parse::<u32>().is_ok().then_some(quote)
        });
        let lengths: Vec<usize> = quoted.map(|quote| quote.chars().count()).collect();
        assert!(!lengths.is_empty() && lengths.iter().all(|&n| n <= 80), "{lengths:?}\n{shown}");
    }
}
