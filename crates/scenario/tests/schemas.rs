//! Versions of the file format and their defaults.

use cwnd_cc::ControllerParams;
use cwnd_scenario::{Document, Noise, Outline, Scenario};
use cwnd_schema::{Params as _, ParamsChoice as _};

const NO_FILES: &dyn Fn(&str) -> Result<String, String> = &|name| Err(format!("no file `{name}`"));

const REST: &str = r#"
[run]
duration = "10 s"
[dumbbell]
rate = "10 Mbit/s"
[flow.main]
rtt = "100 ms"
"#;

fn outline(text: &str) -> Outline {
    match Document::parse("test.toml", text, NO_FILES).and_then(|d| d.outline()) {
        Ok(outline) => outline,
        Err(diagnostics) => panic!("{diagnostics}"),
    }
}

fn scenario(text: &str) -> Scenario {
    outline(text).cells().remove(0).scenario
}

#[test]
fn schema_1_has_no_noise_and_rfc_6675() {
    let found = scenario(&format!("schema = 1{REST}"));
    assert_eq!((found.schema, found.run.noise), (1, Noise::None));
    assert_eq!(found.flows[0].endpoint, cwnd_tcp::Params::default());
    assert_eq!(Some(&found.flows[0].controller), ControllerParams::of_kind("newreno").as_ref());
    assert_eq!(scenario(REST), found, "a file that names no schema has the first");
}

#[test]
fn schema_2_has_noise_of_the_path_and_linux() {
    let found = scenario(&format!("schema = 2{REST}"));
    assert_eq!((found.schema, found.run.noise), (2, Noise::Path));
    let mut linux = cwnd_tcp::Params::default();
    linux.apply_preset("linux");
    // Keys without effect have their defaults.
    linux.idle().iter().for_each(|idle| linux.reset(idle.key));
    assert_eq!(found.flows[0].endpoint, linux);
    let stack = found.flows[0].stack.as_ref().expect("a stack");
    assert_eq!((stack.parts.base, stack.controller), ("linux", Some("linux")));
}

#[test]
fn schema_2_with_the_defaults_of_schema_1_runs_the_same() {
    let old = scenario(&format!("schema = 1{REST}"));
    let rest = REST.replace("[dumbbell]", "noise = \"none\"\n[dumbbell]");
    let mut new = scenario(&format!("schema = 2{rest}stack = \"rfc6675\"\n"));
    assert!(new.flows[0].stack.take().is_some());
    assert_eq!(Scenario { schema: 1, ..new }, old);
}

/// Resolved text of schema 1, which must not change: the ids of stored results depend on it.
#[test]
fn a_file_of_schema_1_resolves_without_keys_of_schema_2() {
    let resolved = outline(REST).cells().remove(0).resolved_toml;
    assert!(resolved.starts_with("schema = 1\n"), "{resolved}");
    for key in ["noise", "stack", "preset"] {
        let has = resolved.lines().any(|line| line.starts_with(&format!("{key} =")));
        assert!(!has, "{resolved}");
    }
    assert!(!resolved.contains('#'), "{resolved}");
}

#[test]
fn a_resolved_file_states_its_schema_and_gives_itself_again() {
    for schema in [1, 2] {
        let first = outline(&format!("schema = {schema}{REST}")).cells().remove(0);
        assert!(first.resolved_toml.starts_with(&format!("schema = {schema}\n")));
        let again = outline(&first.resolved_toml).cells().remove(0);
        assert_eq!(again.scenario, first.scenario);
        assert_eq!(again.resolved_toml, first.resolved_toml);
    }
}

#[test]
fn a_file_of_schema_1_has_one_note_about_the_defaults_of_schema_2() {
    let swept = format!(
        "schema = 1{REST}[sweep.axis.rtt]\npath = \"flow.main.rtt\"\nvalues = [\"10 ms\", \"20 \
        ms\"]\n"
    );
    for text in [REST, &format!("schema = 1{REST}"), &swept] {
        let outline = outline(text);
        assert!(outline.warnings.is_empty(), "{}", outline.warnings);
        let notes: Vec<_> = outline.notes.iter().collect();
        assert_eq!(notes.len(), 1, "{}", outline.notes);
        assert_eq!((notes[0].key.as_str(), notes[0].line), ("schema", 1));
        for told in ["noise = \"path\"", "stack = \"linux\""] {
            assert!(notes[0].message.contains(told), "{}", notes[0].message);
        }
        assert!(notes[0].help.as_ref().is_some_and(|help| help.contains("schema = 2")));
    }
    assert!(outline(&format!("schema = 2{REST}")).notes.is_empty());
}
