//! Any text is a scenario or a list of errors that can be shown; what is a scenario is also one when it is written out.

use cwnd_scenario::{Diagnostics, Document, Outline};

fn outline(text: &str, table: &str, overrides: &[&str]) -> Result<Outline, Diagnostics> {
    let files = |name: &str| match name {
        "trace" => Ok("1\n2\n5\n".to_owned()),
        "a.csv" => Ok(table.to_owned()),
        _ => Err("there is no such file".to_owned()),
    };
    Document::parse("fuzz.toml", text, &files)?.with_overrides(overrides)?.outline()
}

/// The text of a file; what follows a NUL is what `--set` says; what follows a byte of one is what `a.csv` holds.
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
            // To draw them takes longer than to find them: every other time, with colours or without.
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
    // Any of them, for all of a sweep take long.
    let cell = outlined.cell(data.len() % outlined.runs()).expect("there are so many");
    let again = match outline(&cell.resolved_toml, "", &[]) {
        Ok(again) => again,
        Err(problems) => panic!("{problems}\n{}", cell.resolved_toml),
    };
    assert_eq!(again.runs(), 1);
    let written = again.cell(0).expect("it has a run").resolved_toml;
    assert_eq!(written, cell.resolved_toml);
}
