//! From a file's text to cells.

use cwnd_scenario::{Document, LinkRate, Plan, Workload};
use cwnd_units::{Duration, ParamsChoice, Rate, Time};

const NO_FILES: &dyn Fn(&str) -> Result<String, String> = &|name| Err(format!("no file `{name}`"));

fn plan(text: &str) -> Plan {
    match Document::parse("test.toml", text, NO_FILES).and_then(|d| d.plan()) {
        Ok(plan) => plan,
        Err(diagnostics) => panic!("{diagnostics}"),
    }
}

const SMALL: &str = r#"
[run]
duration = "10 s"
[dumbbell]
rate = "10 Mbit/s"
[flow.main]
rtt = "100 ms"
"#;

#[test]
fn three_keys_make_a_scenario() {
    let plan = plan(SMALL);
    assert_eq!(plan.name, "test");
    assert_eq!(plan.cells.len(), 1);
    let scenario = &plan.cells[0].scenario;
    assert_eq!(scenario.run.duration, Duration::from_secs(10));
    assert_eq!(scenario.nodes, ["left", "right"]);
    assert_eq!(scenario.links[0].name, "bottleneck");
    assert_eq!(
        scenario.links[0].rate,
        LinkRate::Steps { initial: Rate::from_mbit(10), changes: vec![] }
    );
    assert_eq!(scenario.links[0].bdp_rtt, Duration::from_millis(100));
    assert_eq!(scenario.flows[0].route, [0]);
    assert_eq!(scenario.flows[0].reverse, [1]);
    assert_eq!(scenario.flows[0].edge_rtt.mean(), Duration::from_millis(100));
    assert_eq!(scenario.flows[0].controller.kind(), "newreno");
    assert_eq!(scenario.flows[0].workload, Workload::Bulk);
}

#[test]
fn a_dumbbell_takes_its_delay_out_of_the_rtt() {
    let text = SMALL.replace("[dumbbell]", "[dumbbell]\ndelay = \"15 ms\"");
    let scenario = &plan(&text).cells[0].scenario;
    assert_eq!(scenario.links[0].delay, Duration::from_millis(15));
    assert_eq!(scenario.links[1].delay, Duration::from_millis(15));
    assert_eq!(scenario.flows[0].edge_rtt.to_string(), "70 ms");
    assert_eq!(scenario.links[0].bdp_rtt, Duration::from_millis(100));
    let text = text.replace("\"100 ms\"", "\"uniform(30 ms, 50 ms)\"");
    let scenario = &plan(&text).cells[0].scenario;
    assert_eq!(scenario.flows[0].edge_rtt.to_string(), "uniform(0 ns, 20 ms)");
    assert_eq!(scenario.links[0].bdp_rtt, Duration::from_millis(40));
}

#[test]
fn the_resolved_file_gives_itself_again() {
    let text = SMALL.replace(
        "rate = \"10 Mbit/s\"",
        r#"rate = { initial = "10 Mbit/s", steps = [{ at = "5 s", rate = "5 Mbit/s" }] }"#,
    );
    let first = plan(&text).cells.remove(0);
    let again = plan(&first.resolved_toml).cells.remove(0);
    assert_eq!(again.scenario, first.scenario);
    assert_eq!(again.resolved_toml, first.resolved_toml);
    assert_eq!(again.id, first.id);
    let LinkRate::Steps { changes, .. } = &first.scenario.links[1].rate else { panic!() };
    assert_eq!(changes, &[(Time(5_000_000_000), Rate::from_mbit(5))], "the way back is as fast");
}
