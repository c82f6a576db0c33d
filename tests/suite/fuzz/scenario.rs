//! Any text is a scenario or a list of errors that can be shown; what is a scenario is also one when it is written out.

use cwnd_scenario::{Diagnostics, Document, Plan};

fn plan(text: &str, overrides: &[&str]) -> Result<Plan, Diagnostics> {
    let files = |name: &str| match name {
        "trace" => Ok("1\n2\n5\n".to_owned()),
        _ => Err("there is no such file".to_owned()),
    };
    Document::parse("fuzz.toml", text, &files)?.with_overrides(overrides)?.plan()
}

/// The text of a file; what follows a NUL is what `--set` says.
pub fn run(data: &[u8]) {
    let Ok(text) = core::str::from_utf8(data) else { return };
    let mut parts = text.split('\0');
    let text = parts.next().unwrap_or_default();
    let overrides: Vec<&str> = parts.collect();
    let plan = match plan(text, &overrides) {
        Ok(plan) => plan,
        Err(problems) => {
            assert!(problems.iter().next().is_some(), "a refusal without a reason");
            assert!(!problems.render(false).is_empty() && !problems.render(true).is_empty());
            for problem in problems.iter().filter(|problem| problem.file == "fuzz.toml") {
                let lines = text.lines().count().max(1) + 1;
                assert!(problem.line <= lines, "line {} of {lines}", problem.line);
            }
            return;
        }
    };
    assert!(!plan.cells.is_empty(), "a scenario without a run");
    for cell in plan.cells.iter().take(3) {
        let again = match self::plan(&cell.resolved_toml, &[]) {
            Ok(again) => again,
            Err(problems) => panic!("{problems}\n{}", cell.resolved_toml),
        };
        assert_eq!(again.cells.len(), 1);
        assert_eq!(again.cells[0].resolved_toml, cell.resolved_toml);
    }
}
