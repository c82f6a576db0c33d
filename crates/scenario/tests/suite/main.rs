//! Tests of scenario files: plans, diagnostics, stored texts and ids.

mod diagnostics;
mod fixpoint;
mod paths;
mod plan;
mod stacks;
mod stored;

/// Callback for scenarios that name no file.
const NO_FILES: &dyn Fn(&str) -> Result<String, String> = &|name| Err(format!("no file `{name}`"));

/// Small scenario, without its line `schema`.
const SMALL: &str = r#"
[run]
duration = "10 s"
[dumbbell]
rate = "10 Mbit/s"
[flow.main]
rtt = "100 ms"
"#;
