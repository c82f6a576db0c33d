//! Fuzz target of the scenario reader: any text is a scenario or a list of errors that can be
//! rendered. The resolved file of a scenario is a scenario again.

#![cfg_attr(not(test), no_main)]

use cwnd_scenario::{Diagnostics, Document, Outline};

fn outline(text: &str, table: &str, overrides: &[&str]) -> Result<Outline, Diagnostics> {
    let files = |name: &str| match name {
        "trace" => Ok("1\n2\n5\n".to_owned()),
        "a.csv" => Ok(table.to_owned()),
        _ => Err("there is no such file".to_owned()),
    };
    Document::parse("fuzz.toml", text, &files)?.with_overrides(overrides)?.outline()
}

/// Reads the input as the text of a file. Text after a NUL is an override as of `--set`, text after
/// a byte of value one the contents of `a.csv`.
pub fn run(data: &[u8]) {
    let Ok(text) = core::str::from_utf8(data) else { return };
    let (text, table) = text.split_once('\u{1}').unwrap_or((text, ""));
    let mut parts = text.split('\0');
    let text = parts.next().unwrap_or_default();
    let overrides: Vec<&str> = parts.collect();
    let outlined = match outline(text, table, &overrides) {
        Ok(outlined) => outlined,
        Err(problems) => {
            assert!(problems.iter().next().is_some(), "a refusal without a reason");
            // Rendering takes longer than finding errors, so it runs on inputs of even length only:
            // with colours if the length is a multiple of four.
            if data.len().is_multiple_of(2) {
                assert!(!problems.render(data.len().is_multiple_of(4)).is_empty());
            }
            for problem in problems.iter().filter(|problem| problem.file == "fuzz.toml") {
                let lines = text.lines().count().max(1) + 1;
                assert!(problem.line <= lines, "line {} of {lines}", problem.line);
            }
            return;
        }
    };
    assert!(outlined.runs() > 0, "a scenario without a run");
    // One cell is enough: reading all of a sweep takes long.
    let cell = outlined.cell(data.len() % outlined.runs()).expect("there are so many");
    let again = match outline(&cell.resolved_toml, "", &[]) {
        Ok(again) => again,
        Err(problems) => panic!("{problems}\n{}", cell.resolved_toml),
    };
    assert_eq!(again.runs(), 1);
    let written = again.cell(0).expect("it has a run").resolved_toml;
    assert_eq!(written, cell.resolved_toml);
}

#[cfg(not(test))]
libfuzzer_sys::fuzz_target!(|data: &[u8]| run(data));
