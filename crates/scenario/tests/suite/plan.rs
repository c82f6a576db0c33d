//! Plans: from the text of a file to its cells.

use cwnd_quantity::{Duration, Rate, Time};
use cwnd_scenario::{Cell, Document, LinkRate, Plan};
use cwnd_schema::{ParamsChoice, Value};

use crate::diagnostics::named;
use crate::{NO_FILES, SMALL, stored};

fn plan(text: &str) -> Plan {
    match Document::parse("test.toml", text, NO_FILES).and_then(|d| d.plan()) {
        Ok(plan) => plan,
        Err(diagnostics) => panic!("{diagnostics}"),
    }
}

#[test]
fn three_keys_make_a_scenario() {
    let plan = plan(SMALL);
    assert_eq!(plan.name, "test");
    assert_eq!(plan.cells.len(), 1);
    let scenario = &plan.cells[0].scenario;
    assert_eq!(scenario.run.duration, Duration::from_secs(10));
    assert_eq!(scenario.nodes, ["left", "right"]);
    assert_eq!(scenario.links[0].name, "bottleneck");
    assert_eq!(scenario.links[0].rate, LinkRate::constant(Rate::from_mbit(10)));
    assert_eq!(scenario.links[0].bdp_rtt, Duration::from_millis(100));
    assert_eq!(scenario.flows[0].paths[0].route, [0]);
    assert_eq!(scenario.flows[0].paths[0].reverse, [1]);
    assert_eq!(scenario.flows[0].edge_rtt.mean(), Duration::from_millis(100));
    assert_eq!(scenario.flows[0].controller.kind(), "newreno");
    assert_eq!(scenario.flows[0].workload.kind(), "bulk");
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
fn keys_that_came_later_change_ids_only_where_they_change_the_run() {
    let of = |dumbbell: &str, growth: &str| {
        let text = SMALL.replace("[dumbbell]", &format!("[dumbbell]\n{dumbbell}"));
        let controller = format!(
            "endpoint = {{ ecn = true, echo = \"load\" }}\n\
             controller = {{ kind = \"bmcc\"{growth} }}"
        );
        let meters = "[dumbbell]\nmeter = \"adpm\"\nreverse_meter = \"adpm\"";
        plan(&format!("{}\n{controller}", text.replace("[dumbbell]", meters))).cells.remove(0)
    };
    let plain = of("", "");
    assert_eq!(of("acks_first = false", ", growth_rtt = \"smoothed\"").id, plain.id);
    let in_steps = |step: &str| {
        let text = SMALL.replace("[flow.main]", &format!("[flow.main]\ncount = 3\n{step}"));
        plan(&text).cells.remove(0)
    };
    let stepped = in_steps("rtt_step = \"30 ms\"");
    assert_eq!(in_steps("rtt_step = \"0 ms\"").id, in_steps("").id);
    assert_ne!(stepped.id, in_steps("").id);
    assert_eq!(stepped.scenario.links[0].bdp_rtt, Duration::from_millis(130));
    let changed = [of("acks_first = true", ""), of("", ", growth_rtt = \"min\""), stepped];
    for changed in changed {
        assert_ne!(changed.id, plain.id);
        let again = plan_of_resolved(&changed);
        assert_eq!((&again.scenario, &again.id), (&changed.scenario, &changed.id));
    }
    assert!(of("acks_first = true", "").scenario.links.iter().all(|link| link.acks_first));
}

/// Reads a cell's resolved file again.
fn plan_of_resolved(cell: &Cell) -> Cell {
    plan(&cell.resolved_toml).cells.remove(0)
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

fn document(text: &str) -> Document<'static> {
    match Document::parse("test.toml", text, NO_FILES) {
        Ok(document) => document,
        Err(diagnostics) => panic!("{diagnostics}"),
    }
}

fn overridden(overrides: &[&str]) -> Result<Plan, String> {
    document(SMALL)
        .with_overrides(overrides)
        .and_then(|d| d.plan())
        .map_err(|diagnostics| diagnostics.to_string())
}

#[test]
fn an_override_is_toml_or_else_a_bare_string() {
    let plan = overridden(&[
        "flow.main.rtt=200 ms",
        "flow.main.count=3",
        "flow.main.endpoint.ecn=true",
        "dumbbell.queue = { kind = \"codel\", target = \"10 ms\" }",
        "dumbbell.rate=\"20 Mbit/s\"",
        "name=other",
    ])
    .unwrap();
    assert_eq!(plan.name, "other");
    let scenario = &plan.cells[0].scenario;
    assert_eq!(scenario.flows[0].edge_rtt.to_string(), "200 ms");
    assert_eq!(scenario.flows[0].count, 3);
    assert!(scenario.flows[0].endpoint.ecn.ecn);
    assert_eq!(scenario.links[0].queue.kind(), "codel");
    let target = scenario.links[0].queue.params().get("target");
    assert_eq!(target, Some(Value::Text("10 ms".to_owned())));
    assert_eq!(scenario.links[1].rate, LinkRate::constant(Rate::from_mbit(20)));
}

#[test]
fn a_later_override_goes_over_an_earlier_one() {
    let plan = overridden(&["flow.main.controller=cubic", "flow.main.controller.beta=0.6"]);
    let plan = plan.unwrap();
    let controller = &plan.cells[0].scenario.flows[0].controller;
    assert_eq!(controller.kind(), "cubic");
    assert_eq!(controller.params().get("beta"), Some(Value::Float(0.6)));
}

#[test]
fn a_bad_override_says_so_on_its_own_line() {
    let bad = [
        "flow.mian.rtt=200 ms",
        "flow.main.rt=200 ms",
        "flow.main.rtt=200 sec",
        "flow.main.rtt",
        "flow.main.rtt=",
        "flow..rtt=1 ms",
        "flow.main.rtt.mean=1 ms",
        "dumbbell.queue={ kind = ",
        "flow.main.controller=cubik",
        "flow.main.controller={ kind = \"cubic\", beta_enc = 0.8 }",
        "bumbbell.rate=1 Mbit/s",
    ];
    let told: Vec<String> = bad.iter().map(|o| overridden(&[o]).unwrap_err()).collect();
    let stored = "crates/scenario/tests/errors/overrides.snap";
    stored::check(stored, &named(&told.join("\n\n")));
}

#[test]
fn the_seed_of_the_command_line_goes_over_that_of_the_file() {
    let cells = document(SMALL).with_seed(42).and_then(|d| d.cells());
    let cells = cells.expect("a good seed");
    assert_eq!(cells[0].seed, 42);
    assert_eq!(cells[0].scenario.run.seed, 42);
    assert!(cells[0].resolved_toml.contains("\nseed = 42\n"));
    let too_large = document(SMALL).with_seed(u64::MAX).map(|_| ()).unwrap_err();
    assert!(too_large.to_string().contains("2^63"));
}

const SWEPT: &str = r#"
[run]
duration = "10 s"
seed = 7
[dumbbell]
rate = "10 Mbit/s"
[flow.main]
[sweep]
repeat = 2
[sweep.axis.rtt]
path = "flow.main.rtt"
values = ["100 ms", "0.2 s"]
[sweep.axis.arm]
path = "flow.main.controller"
values = ["newreno", { kind = "newreno", preset = "abe" }, { kind = "cubic", beta_ecn = 0.85 }]
[sweep.axis.load]
path = ["flow.main.count", "dumbbell.rate"]
values = [[1, "10 Mbit/s"], [10, "100 Mbit/s"]]
"#;

#[test]
fn a_sweep_is_every_combination_with_every_seed() {
    let text = SWEPT.replace("[flow.main]", "[flow.main]\nendpoint = { ecn = true }");
    let text = text.replace("[flow.main]", "queue = \"codel\"\n[flow.main]");
    let plan = plan(&text);
    assert_eq!(plan.axes, ["rtt", "arm", "load"]);
    assert_eq!(plan.cells.len(), 2 * 3 * 2 * 2);
    assert!(plan.warnings.is_empty(), "{}", plan.warnings);
    let line = |cell: &Cell| {
        let labels: Vec<&str> = cell.axes.iter().map(|a| a.label.as_str()).collect();
        format!("{} {} seed {}", cell.index, labels.join(" | "), cell.seed)
    };
    let lines: Vec<String> = plan.cells.iter().take(7).map(line).collect();
    assert_eq!(
        lines,
        [
            "0 100 ms | newreno | 1, 10 Mbit/s seed 7",
            "1 100 ms | newreno | 1, 10 Mbit/s seed 8",
            "2 100 ms | newreno | 10, 100 Mbit/s seed 7",
            "3 100 ms | newreno | 10, 100 Mbit/s seed 8",
            "4 100 ms | newreno abe | 1, 10 Mbit/s seed 7",
            "5 100 ms | newreno abe | 1, 10 Mbit/s seed 8",
            "6 100 ms | newreno abe | 10, 100 Mbit/s seed 7",
        ]
    );
    let last = &plan.cells[23];
    assert_eq!(last.axes[1].label, "cubic beta_ecn=0.85");
    assert_eq!(last.scenario.flows[0].count, 10);
    assert_eq!(last.scenario.links[0].rate, LinkRate::constant(Rate::from_mbit(100)));
    assert_eq!(last.scenario.flows[0].edge_rtt.to_string(), "200 ms");
}

#[test]
fn an_axis_sets_a_key_in_every_group() {
    let text = r#"
[run]
duration = "10 s"
[dumbbell]
rate = "10 Mbit/s"
[flow.a]
[flow.b]
[sweep.axis.rtt]
path = "flow.*.rtt"
values = ["100 ms", "200 ms"]
"#;
    let cells = plan(text).cells;
    let rtts: Vec<String> = cells
        .iter()
        .flat_map(|cell| cell.scenario.flows.iter().map(|flow| flow.edge_rtt.to_string()))
        .collect();
    assert_eq!(rtts, ["100 ms", "100 ms", "200 ms", "200 ms"]);
    let written = text.replace("\"flow.*.rtt\"", "[\"flow.a.rtt\", \"flow.b.rtt\"]");
    let written = written
        .replace("[\"100 ms\", \"200 ms\"]", r#"[["100 ms", "100 ms"], ["200 ms", "200 ms"]]"#);
    let written = plan(&written).cells;
    assert_eq!(cells[1].id, written[1].id, "the cell is the same, however the axis is written");
    assert_eq!(written[1].axes[0].label, "200 ms", "what all paths have is named once");
    let twice = text.replace(
        "[sweep.axis.rtt]",
        "[sweep.axis.one]\npath = \"flow.b.rtt\"\nvalues = [\"1 s\"]\n[sweep.axis.rtt]",
    );
    let error = document(&twice).plan().map(|_| ()).unwrap_err().to_string();
    assert!(error.contains("varied twice"), "{error}");
    let nothing = text.replace("flow.*.rtt", "link.*.delay");
    let error = document(&nothing).plan().map(|_| ()).unwrap_err().to_string();
    assert!(error.contains("`link.*.delay` matches nothing"), "{error}");
}

#[test]
fn every_group_is_set_from_the_command_line() {
    let text = "[run]\nduration = \"10 s\"\n[dumbbell]\nrate = \"10 Mbit/s\"\n[flow.a]\n[flow.b]\n";
    let set = document(text).with_overrides(&["flow.*.rtt = 30 ms"]).unwrap();
    let flows = set.plan().unwrap().cells[0].scenario.flows.clone();
    assert!(flows.iter().all(|flow| flow.edge_rtt.to_string() == "30 ms"));
    let error = document(text).with_overrides(&["link.*.rate=1 Mbit/s"]).map(|_| ()).unwrap_err();
    assert!(error.to_string().contains("matches nothing"), "{error}");
}

#[test]
fn an_axis_of_quantities_has_values_in_si_units() {
    let plan = plan(SWEPT);
    let axis = |cell: usize, axis: usize| {
        let at = &plan.cells[cell].axes[axis];
        (at.value, at.unit)
    };
    assert_eq!(axis(0, 0), (Some(0.1), Some("s")));
    assert_eq!(axis(23, 0), (Some(0.2), Some("s")));
    assert_eq!(axis(0, 1), (None, None), "controllers are no quantities");
    assert_eq!(axis(23, 2), (Some(10.0), None), "the first of an axis's paths counts");
    let values = |list: &str| {
        let text = SMALL.to_owned()
            + &format!("[sweep.axis.x]\npath = \"dumbbell.queue.limit\"\nvalues = [{list}]");
        let cells = self::plan(&text).cells;
        cells.iter().map(|c| (c.axes[0].value, c.axes[0].unit)).collect::<Vec<_>>()
    };
    assert_eq!(
        values("\"1 BDP\", \"0.5 BDP\""),
        [(Some(1.0), Some("BDP")), (Some(0.5), Some("BDP"))]
    );
    assert_eq!(
        values("\"64 kB\", \"1 MB\""),
        [(Some(64_000.0), Some("B")), (Some(1_000_000.0), Some("B"))]
    );
    assert_eq!(values("\"64 kB\", \"10 packets\""), [(None, None), (None, None)], "mixed units");
}

#[test]
fn an_axis_may_lead_into_the_value_of_another() {
    let text = SMALL.to_owned()
        + r#"
[sweep.axis.beta]
path = "flow.main.controller.beta"
values = [0.5, 0.6]
[sweep.axis.controller]
path = "flow.main.controller"
values = ["newreno", "cubic"]
"#;
    let seen: Vec<(&str, Option<Value>)> = Vec::new();
    let plan = plan(&text);
    let seen = plan.cells.iter().fold(seen, |mut seen, cell| {
        let controller = &cell.scenario.flows[0].controller;
        seen.push((controller.kind(), controller.params().get("beta")));
        seen
    });
    let beta = |b| Some(Value::Float(b));
    assert_eq!(
        seen,
        [
            ("newreno", beta(0.5)),
            ("cubic", beta(0.5)),
            ("newreno", beta(0.6)),
            ("cubic", beta(0.6))
        ]
    );
}

#[test]
fn a_graph_has_routes_both_ways_and_the_bdp_of_its_longest_flow() {
    let plan = plan(
        r#"
[run]
duration = "10 s"
[link.ab]
from = "a"
to = "b"
rate = "10 Mbit/s"
delay = "10 ms"
duplex = true
[link.bc]
from = "b"
to = "c"
rate = "none"
delay = "20 ms"
duplex = true
[flow.long]
from = "a"
to = "c"
edge_rtt = "4 ms"
[flow.short]
from = "b"
to = "a"
"#,
    );
    let scenario = &plan.cells[0].scenario;
    assert_eq!(scenario.nodes, ["a", "b", "c"]);
    let names: Vec<&str> = scenario.links.iter().map(|l| l.name.as_str()).collect();
    assert_eq!(names, ["ab", "ab.reverse", "bc", "bc.reverse"]);
    assert_eq!(scenario.links[3].rate, LinkRate::Unlimited);
    assert_eq!(scenario.flows[0].paths[0].route, [0, 2]);
    assert_eq!(scenario.flows[0].paths[0].reverse, [3, 1]);
    assert_eq!(scenario.flows[1].paths[0].route, [1]);
    assert_eq!(scenario.links[0].bdp_rtt, Duration::from_millis(64));
}

#[test]
fn a_kind_has_its_other_name_in_files_and_its_own_in_what_is_resolved() {
    let named = |controller: &str| {
        let plan = overridden(&[&format!("flow.main.controller={controller}")]).unwrap();
        plan.cells[0].resolved_toml.clone()
    };
    assert_eq!(named("ledbat++"), named("ledbat"));
    assert_eq!(named("{ kind = \"ledbat++\" }"), named("ledbat"));
}

#[test]
fn an_axis_may_be_given_other_values_than_the_table_in_the_file() {
    let text = format!(
        "{}\n[sweep.axis.queue]\npath = \"dumbbell.queue\"\nvalues = [{{ kind = \"red\", w_q = 0.1 \
        }}, \"fifo\"]\n",
        SMALL.replace("[dumbbell]\n", "[dumbbell]\nqueue = { kind = \"red\", w_q = 0.1 }\n")
    );
    let narrowed = document(&text).with_overrides(&["sweep.axis.queue.values=[\"codel\"]"]);
    assert_eq!(narrowed.and_then(|d| d.plan()).unwrap().cells.len(), 1);
    let lost = document(&text).with_overrides(&["dumbbell.queue.w_q=0.2"]);
    assert!(lost.and_then(|d| d.plan()).unwrap_err().to_string().contains("has no effect"));
}

#[test]
fn what_an_axis_replaces_inside_a_shorthand_is_an_error_if_the_command_line_sets_it() {
    let axis = |path: &str, values: &str| {
        format!("{SMALL}\n[sweep.axis.a]\npath = \"{path}\"\nvalues = {values}\n")
    };
    for (path, values, set) in [
        ("dumbbell.queue.kind", "[\"codel\", \"pie\"]", "dumbbell.queue=red"),
        ("dumbbell.queue.kind", "[\"codel\", \"pie\"]", "dumbbell.queue.kind=red"),
        ("flow.*.controller.kind", "[\"cubic\", \"bbr\"]", "flow.main.controller=vegas"),
    ] {
        let set = document(&axis(path, values)).with_overrides(&[set]);
        let lost = set.and_then(|d| d.plan()).unwrap_err().to_string();
        assert!(lost.contains("has no effect"), "{lost}");
    }
    let kept = document(&axis("dumbbell.queue.limit", "[\"10 packets\", \"20 packets\"]"));
    let kept = kept.with_overrides(&["dumbbell.queue=red"]);
    assert_eq!(kept.and_then(|d| d.plan()).unwrap().cells.len(), 2);
}

#[test]
fn a_kind_that_an_axis_replaces_is_where_the_sweep_starts() {
    let queues = [
        "queue = \"fifo\"",
        "queue = { kind = \"fifo\" }",
        "queue = { kind = \"red\", w_q = 0.1, max_p = 0.2 }",
    ];
    for queue in queues {
        let text = format!(
            "{}\n[sweep.axis.queue]\npath = \"dumbbell.queue\"\nvalues = [\"codel\", {{ kind = \
             \"red\", w_q = 0.1 }}, {{ kind = \"red\", max_p = 0.2 }}]\n",
            SMALL.replace("[dumbbell]\n", &format!("[dumbbell]\n{queue}\n"))
        );
        assert_eq!(plan(&text).cells.len(), 3, "{queue}");
    }
}

#[test]
fn burst_loss_is_written_out_with_what_netem_has_by_default() {
    let text = SMALL.replace("[dumbbell]\n", "[dumbbell]\nburst_loss = { p = 0.01, r = 0.25 }\n");
    let cell = plan(&text).cells.remove(0);
    assert!(cell.resolved_toml.contains("burst_loss = { p = 0.01, r = 0.25, h = 0.0, k = 1.0 }"));
    assert_eq!(plan(&cell.resolved_toml).cells[0].scenario, cell.scenario);
}

#[test]
fn a_trace_of_rates_is_written_out_as_steps_with_a_period() {
    let files: &dyn Fn(&str) -> Result<String, String> = &|_| Ok("0.5 4.2\n1 0.8\n".to_owned());
    let text = SMALL.replace("rate = \"10 Mbit/s\"", "rate = { trace = \"recorded.txt\" }");
    let cell = Document::parse("t.toml", &text, files).and_then(|d| d.cells()).unwrap().remove(0);
    assert!(cell.resolved_toml.contains(
        "rate = { initial = \"4.2 Mbit/s\", steps = [{ at = \"500 ms\", rate = \"800 kbit/s\" }], \
        period = \"1 s\" }"
    ));
    assert_eq!(plan(&cell.resolved_toml).cells[0].scenario, cell.scenario);
}

#[test]
fn a_trace_is_read_once_and_written_out() {
    let files: &dyn Fn(&str) -> Result<String, String> = &|name| match name {
        "lte.trace" => Ok("0\n3\n3\n9\n".to_owned()),
        _ => Err("no such file".to_owned()),
    };
    let text = SMALL.replace("rate = \"10 Mbit/s\"", "trace = \"lte.trace\"");
    let cells = Document::parse("t.toml", &text, files).and_then(|d| d.cells());
    let cell = cells.expect("a good trace").remove(0);
    assert_eq!(cell.scenario.links[0].rate, LinkRate::Trace(vec![0, 3, 3, 9]));
    assert!(cell.resolved_toml.contains("rate = { trace_ms = [0, 3, 3, 9] }"));
    assert_eq!(plan(&cell.resolved_toml).cells[0].scenario, cell.scenario, "without the file");
}

#[test]
fn a_diagnostic_is_data_too() {
    let text = SMALL.replace("rtt", "rtd");
    let diagnostics = document(&text).plan().unwrap_err();
    let all: Vec<_> = diagnostics
        .iter()
        .map(|d| (d.file.as_str(), d.line, d.column, d.key.as_str(), d.severity.name()))
        .collect();
    assert_eq!(all, [("test.toml", 7, 1, "flow.main.rtd", "error")]);
    assert!(diagnostics.has_errors());
    assert!(diagnostics.render(true).contains("\u{1b}["), "colour on request");
    assert!(!diagnostics.render(false).contains('\u{1b}'));
}

#[test]
fn a_cell_that_is_made_alone_is_that_of_the_plan() {
    let text = format!(
        "{SMALL}\n[sweep]\nrepeat = 3\n[sweep.axis.rtt]\npath = \"flow.main.rtt\"\n\
         values = [\"10 ms\", \"20 ms\"]\n"
    );
    let outline = document(&text).outline().expect("a good sweep");
    let cells = plan(&text).cells;

    assert_eq!((outline.runs(), outline.repeat()), (6, 3));
    for (index, cell) in cells.iter().enumerate().rev() {
        let alone = outline.cell(index).expect("a cell of the plan");
        assert_eq!((&alone.id, alone.seed, alone.index), (&cell.id, cell.seed, index));
        assert_eq!((&alone.scenario, &alone.axes), (&cell.scenario, &cell.axes));
        assert_eq!(outline.duration(index), cell.scenario.run.duration);
    }
    assert!(outline.cell(6).is_none());
    assert_eq!(outline.axes[0].labels, ["10 ms", "20 ms"]);
    assert_eq!(outline.axes[0].values, Some(vec![0.01, 0.02]));
    assert_eq!(outline.axes[0].unit, Some("s"));
}

#[test]
fn an_axis_says_which_labels_are_counted_over_which() {
    let text = format!(
        "{SMALL}\n[sweep.axis.arm]\npath = \"flow.main.count\"\nvalues = [1, 2, 3]\n\
         labels = [\"a\", \"b\", \"c\"]\nover = {{ c = [\"a\", \"b\"], b = \"a\" }}\n\
         [sweep.axis.rtt]\npath = \"flow.main.rtt\"\nvalues = [\"10 ms\"]\n"
    );
    let axes = document(&text).outline().expect("a good sweep").axes;
    let over: Vec<(&str, Vec<&str>)> = axes[0]
        .over
        .iter()
        .map(|(label, bases)| (label.as_str(), bases.iter().map(String::as_str).collect()))
        .collect();
    assert_eq!(over, [("c", vec!["a", "b"]), ("b", vec!["a"])]);
    assert!(axes[1].over.is_empty());
}
