//! Keys without effect (`#[idle]`): no value of such a key changes the run.

use std::sync::Arc;

use cwnd_aqm::QueueParams;
use cwnd_cc::ControllerParams;
use cwnd_scenario::Scenario;
use cwnd_schema::{Params, ParamsChoice, Value, ValueType};
use cwnd_sim::World;
use cwnd_tcp::Params as Endpoint;

use crate::common::{is_long, scenario};

/// Losses, marks, quenches, reordering, pauses and short connections on one path.
const PATH: &str = r#"
    [run]
    duration = "12 s"
    sample = "none"
    [dumbbell]
    rate = "2 Mbit/s"
    queue = { kind = "red", limit = "30 packets" }
    messenger = "quench"
    loss = 0.03
    reorder = 0.01
    reorder_delay = "30 ms"
    [flow.bulk]
    rtt = "60 ms"
    [flow.pauses]
    rtt = "40 ms"
    workload = { kind = "on-off", size = "exponential(60 kB)", off = "exponential(2 s)" }
    [flow.short]
    rtt = "100 ms"
    workload = { kind = "poisson", interval = "500 ms", size = "exponential(20 kB)" }
"#;

fn digest(scenario: &Scenario) -> String {
    let records = World::new(Arc::new(scenario.clone())).run(|_| true).expect("nothing stops it");
    records.digest()
}

/// Returns other values for a parameter, including some out of its bounds.
fn others(kind: ValueType, now: &Value) -> Vec<Value> {
    let texts = |texts: &[&str]| texts.iter().map(|text| Value::Text((*text).to_owned())).collect();
    let found: Vec<Value> = match kind {
        ValueType::Bool => vec![Value::Bool(true), Value::Bool(false)],
        ValueType::Choice(names) => texts(names),
        ValueType::Integer => vec![Value::Integer(1), Value::Integer(9)],
        ValueType::Number => vec![Value::Float(0.25), Value::Float(0.6)],
        ValueType::Duration => texts(&["3 ms", "150 ms", "2 s"]),
        ValueType::Bytes => texts(&["3 kB", "200 kB"]),
        ValueType::Optional(inner) => return others(*inner, now),
        other => panic!("no other values of {other:?}"),
    };
    found.into_iter().filter(|value| value != now).collect()
}

/// Accessor of all parts of one type in a scenario.
type Part = fn(&mut Scenario) -> Vec<&mut dyn Params>;

fn endpoints(scenario: &mut Scenario) -> Vec<&mut dyn Params> {
    scenario.flows.iter_mut().map(|group| &mut group.endpoint as &mut dyn Params).collect()
}

fn controllers(scenario: &mut Scenario) -> Vec<&mut dyn Params> {
    scenario.flows.iter_mut().map(|group| group.controller.params_mut()).collect()
}

fn queue(scenario: &mut Scenario) -> Vec<&mut dyn Params> {
    vec![scenario.links[0].queue.params_mut()]
}

/// Sets a parameter in all parts of a type; `false` if one refuses the value or is then invalid.
fn set(scenario: &mut Scenario, part: Part, key: &str, value: &Value) -> bool {
    part(scenario).into_iter().all(|p| p.set(key, value).is_ok() && p.check().is_ok())
}

/// Runs a scenario with other values of each key that should have no effect; values that change the
/// run go to `acting`. Returns the number of runs.
fn runs_of(base: &Scenario, part: Part, name: &str, acting: &mut Vec<String>) -> usize {
    let mut params_of = base.clone();
    let params = part(&mut params_of).swap_remove(0);
    let idle = params.idle();
    if idle.is_empty() {
        return 0;
    }
    let plain = digest(base);
    let mut runs = 0;
    for key in idle.iter().map(|idle| idle.key) {
        let field = params.fields().iter().find(|field| field.name == key).expect("it is there");
        let now = params.get(key).expect("it is there");
        for value in others(field.value_type, &now) {
            let mut with = base.clone();
            if set(&mut with, part, key, &value) {
                runs += 1;
                if digest(&with) != plain {
                    acting.push(format!("{name}: {key} = {value:?}"));
                }
            }
        }
    }
    runs
}

fn text(text: &str) -> Value {
    Value::Text(text.to_owned())
}

#[test]
fn idle_keys_of_endpoints_change_nothing() {
    let off = Value::Bool(false);
    let changes = [
        ("ecn", off.clone()),
        ("obey_quench", off.clone()),
        ("obey_ece", off.clone()),
        ("prr", off.clone()),
        ("recovery", text("newreno")),
        ("recovery", text("reno")),
        ("loss_rule", text("rfc6675")),
        ("lost_retransmissions", off.clone()),
        ("timestamps", off.clone()),
        ("ack_policy", text("rfc5681")),
        ("quench_check", text("none")),
        ("rto_backoff", text("off")),
        ("rto_backoff", text("after")),
        ("handshake", off.clone()),
        ("syn_backoff_after", text("none")),
        ("idle_restart", off),
    ];
    let short = ["linux", "rfc", "freebsd"];
    let presets = Endpoint::default().presets().iter().map(|preset| preset.name);
    let (mut runs, mut acting) = (0, Vec::new());
    for preset in presets.filter(|name| is_long() || short.contains(name)) {
        for (key, value) in &changes {
            let mut base = (*scenario(PATH)).clone();
            for group in &mut base.flows {
                assert!(group.endpoint.apply_preset(preset));
                group.endpoint.ecn.ecn = true;
                group.endpoint.quench.obey_quench = true;
            }
            if set(&mut base, endpoints, key, value) {
                let name = format!("{preset}, {key} = {value:?}");
                runs += runs_of(&base, endpoints, &name, &mut acting);
            }
        }
    }
    assert!(acting.is_empty(), "{acting:#?}");
    assert!(runs > 500, "{runs}");
}

#[test]
fn idle_keys_of_controllers_change_nothing() {
    let changes = [
        ("beta", Value::Float(0.6)),
        ("rest_after_quench", text("never")),
        ("fast_convergence", Value::Bool(false)),
        ("reno_friendly", Value::Bool(false)),
        ("alpha_factor", Value::Float(2.0)),
        ("below_one", text("per-ack")),
    ];
    let (mut runs, mut acting) = (0, Vec::new());
    for kind in ControllerParams::KINDS {
        let plain = ControllerParams::of_kind(kind.name).expect("it is registered");
        for preset in plain.params().presets() {
            for (key, value) in &changes {
                let mut base = (*scenario(PATH)).clone();
                for group in &mut base.flows {
                    group.controller.clone_from(&plain);
                    group.controller.params_mut().apply_preset(preset.name);
                    group.endpoint.ecn.ecn = true;
                    group.endpoint.quench.obey_quench = true;
                }
                if set(&mut base, controllers, key, value) {
                    let name = format!("{}, {}, {key} = {value:?}", kind.name, preset.name);
                    runs += runs_of(&base, controllers, &name, &mut acting);
                }
            }
        }
    }
    assert!(acting.is_empty(), "{acting:#?}");
    assert!(runs > 100, "{runs}");
}

#[test]
fn idle_keys_of_queues_change_nothing() {
    let changes = [("ecn", Value::Bool(false)), ("max_th", text("5 packets"))];
    let (mut runs, mut acting) = (0, Vec::new());
    for kind in QueueParams::KINDS {
        for (key, value) in &changes {
            let mut base = (*scenario(PATH)).clone();
            base.links[0].queue = QueueParams::of_kind(kind.name).expect("it is registered");
            endpoints(&mut base)[0].set("ecn", &Value::Bool(true)).expect("it is a parameter");
            if set(&mut base, queue, key, value) {
                let name = format!("{}, {key} = {value:?}", kind.name);
                runs += runs_of(&base, queue, &name, &mut acting);
            }
        }
    }
    assert!(acting.is_empty(), "{acting:#?}");
    assert!(runs > 10, "{runs}");
}

/// Resolved files omit keys without effect, and read back to the same values.
#[test]
fn resets_leave_nothing_to_reset() {
    for preset in Endpoint::default().presets() {
        let mut params = Endpoint::default();
        assert!(params.apply_preset(preset.name));
        params.idle().iter().for_each(|idle| params.reset(idle.key));
        let still = params.idle();
        let not_default = still.iter().filter(|idle| !params.is_default(idle.key));
        assert_eq!(not_default.count(), 0, "{}", preset.name);
    }
}
