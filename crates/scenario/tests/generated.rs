//! What is generated and checked in is what the code generates.

use std::fs;
use std::path::Path;

/// Compares a checked-in file with what it should be; `UPDATE=1` writes it.
fn fresh(name: &str, text: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(name);
    #[expect(clippy::disallowed_methods, reason = "a test that refreshes files asks to be told so")]
    let update = std::env::var("UPDATE").is_ok_and(|v| v == "1");
    if update {
        fs::create_dir_all(path.parent().expect("the file is in a folder")).expect("a folder");
        fs::write(&path, text).expect("the checkout can be written");
    }
    let checked_in = fs::read_to_string(&path).unwrap_or_default();
    assert!(
        checked_in == text,
        "{name} is stale; refresh it with `UPDATE=1 cargo test -p cwnd-scenario`"
    );
}

#[test]
fn the_json_schema_is_fresh() {
    let schema = serde_json::to_string_pretty(&cwnd_scenario::json_schema()).unwrap();
    fresh("schema/scenario.schema.json", &(schema + "\n"));
}

#[test]
fn the_scenario_reference_is_fresh() {
    fresh("docs/scenario-reference.md", &cwnd_scenario::reference_markdown());
}
