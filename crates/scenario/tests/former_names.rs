//! Former names of keys: files may still use them, and results stored with them are read.

use std::collections::BTreeSet;

use cwnd_aqm::{MeterParams, QueueParams};
use cwnd_scenario::{Diagnostics, Document, Plan, Severity};
use cwnd_schema::{Field, ParamsChoice};

/// A scenario of schema 1, whose resolved text has every parameter.
const SCENARIO: &str = "
schema = 1
[run]
duration = \"1 s\"
[dumbbell]
rate = \"10 Mbit/s\"
queue = \"red\"
meter = \"xcp\"
[flow.main]
rtt = \"100 ms\"
";

fn plan(text: &str) -> Result<Plan, Diagnostics> {
    let files = |name: &str| Err(format!("there is no `{name}`"));
    Document::parse("main.toml", text, &files)?.plan()
}

/// Returns the former and the current names of the parameters that the scenario has.
fn renamed() -> BTreeSet<(&'static str, &'static str)> {
    let queue = QueueParams::of_kind("red").expect("RED is a queue");
    let meter = MeterParams::of_kind("xcp").expect("XCP has a meter");
    let of_parts = [queue.params().fields(), meter.params().fields()];
    let fields = of_parts.into_iter().flatten().chain(cwnd_tcp::Params::FIELDS);
    fields.filter_map(|field: &Field| Some((field.was?, field.name))).collect()
}

#[test]
fn a_former_name_is_read_with_a_warning_and_gives_the_same_id() {
    let first = plan(SCENARIO).expect("it is valid").cells.remove(0);
    let (mut text, renamed) = (first.resolved_toml.clone(), renamed());
    assert!(renamed.len() >= 10);
    for (was, name) in &renamed {
        assert_eq!(text.matches(&format!("\n{name} = ")).count(), 1, "{name}");
        text = text.replace(&format!("\n{name} = "), &format!("\n{was} = "));
    }
    let mut again = plan(&text).unwrap_or_else(|found| panic!("{found}"));
    let cell = again.cells.remove(0);
    assert_eq!((cell.scenario, cell.id), (first.scenario, first.id));
    assert_eq!(cell.resolved_toml, first.resolved_toml);
    for (was, name) in &renamed {
        let message = format!("`{was}` is now called `{name}`");
        let found = again.warnings.iter().filter(|warning| warning.message == message);
        assert_eq!(found.count(), 1, "{message}");
    }
}

#[test]
fn a_key_under_both_names_is_an_error() {
    let endpoint = "[flow.main.endpoint]\nnote_delays = true\nrecord_delays = false\n";
    let found = plan(&format!("{SCENARIO}{endpoint}")).expect_err("one of them is too many");
    let errors = found.iter().filter(|found| found.severity == Severity::Error);
    let messages: Vec<&str> = errors.map(|found| found.message.as_str()).collect();
    let expected = "`note_delays` is the former name of `record_delays`, which is given as well";
    assert_eq!(messages, [expected]);
}
