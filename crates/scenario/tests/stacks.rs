//! Stacks: one name for the presets of endpoint and controller.

use cwnd_cc::ControllerParams;
use cwnd_scenario::{Cell, Document, Outline};
use cwnd_schema::{Params, ParamsChoice as _, Value};
use cwnd_tcp::{LossRule, PrrRule, Recovery};

const NO_FILES: &dyn Fn(&str) -> Result<String, String> = &|name| Err(format!("no file `{name}`"));

fn outline(flow: &str) -> Outline {
    outline_of("", flow)
}

fn text(top: &str, links: &str, flow: &str) -> String {
    format!(
        "{top}\n[run]\nduration = \"10 s\"\n[dumbbell]\nrate = \"10 Mbit/s\"\n{links}\n\
         [flow.main]\nrtt = \"100 ms\"\n{flow}\n"
    )
}

fn outline_of(links: &str, flow: &str) -> Outline {
    let document = Document::parse("test.toml", &text("", links, flow), NO_FILES);
    match document.and_then(|document| document.outline()) {
        Ok(outline) => outline,
        Err(diagnostics) => panic!("{diagnostics}"),
    }
}

fn cell(flow: &str) -> Cell {
    outline(flow).cells().remove(0)
}

fn one(text: &str) -> Cell {
    let document = Document::parse("test.toml", text, NO_FILES);
    match document.and_then(|document| document.cells()) {
        Ok(mut cells) => cells.remove(0),
        Err(diagnostics) => panic!("{diagnostics}"),
    }
}

fn endpoint(preset: &str) -> cwnd_tcp::Params {
    let mut params = cwnd_tcp::Params::default();
    assert!(params.apply_preset(preset), "{preset}");
    params
}

fn controller(kind: &str, preset: &str) -> ControllerParams {
    let mut chosen = ControllerParams::of_kind(kind).expect("a kind");
    assert!(chosen.params_mut().apply_preset(preset), "{kind} {preset}");
    chosen
}

#[test]
fn a_stack_is_the_presets_of_endpoint_and_controller() {
    for (stack, of_newreno, of_cubic) in [
        ("linux", "linux", "linux"),
        ("rfc6675", "rfc", "rfc"),
        ("freebsd", "freebsd", "freebsd"),
        ("freebsd-rack", "freebsd", "freebsd"),
        ("becn", "becn", "becn"),
        ("squid", "becn", "becn"),
    ] {
        for (kind, preset) in [("newreno", of_newreno), ("cubic", of_cubic)] {
            let found = cell(&format!("stack = \"{stack}\"\ncontroller = \"{kind}\"")).scenario;
            assert_eq!(found.flows[0].endpoint, endpoint(stack), "{stack}");
            assert_eq!(found.flows[0].controller, controller(kind, preset), "{stack}");
        }
    }
    let found = cell("stack = \"linux\"").scenario;
    assert_eq!(found.flows[0].controller, controller("newreno", "linux"), "of the default kind");
}

/// In schema 1 the name `rfc` stood for the stack of RFC 6675.
#[test]
fn the_standards_track_of_a_file_is_that_of_its_schema() {
    let of_schema = |schema, flow| one(&text(&format!("schema = {schema}"), "", flow)).scenario;
    for flow in ["stack = \"rfc\"", "endpoint = \"rfc\"", "endpoint = { preset = \"rfc\" }"] {
        for (schema, preset) in [(1, "rfc6675"), (2, "rfc")] {
            let found = of_schema(schema, flow);
            assert_eq!(found.flows[0].endpoint, endpoint(preset), "{flow} in schema {schema}");
        }
    }
    let found = of_schema(2, "stack = \"rfc\"\ncontroller = \"cubic\"");
    assert_eq!(found.flows[0].controller, controller("cubic", "rfc9406"), "HyStart++");
}

#[test]
fn presets_and_parameters_beside_a_stack_win() {
    let found = cell(
        "stack = \"linux\"\nendpoint = { preset = \"freebsd\", ecn = true }\n\
         controller = { kind = \"cubic\", preset = \"abe\", c = 0.5 }",
    );
    let flow = &found.scenario.flows[0];
    assert_eq!(flow.endpoint, endpoint("freebsd").with(|p| p.ecn.ecn = true));
    let mut abe = controller("cubic", "abe");
    abe.params_mut().set("c", &Value::Float(0.5)).expect("a parameter of CUBIC");
    assert_eq!(flow.controller, abe);
    let over = cell("stack = \"linux\"\nendpoint = { ecn = true }\ncontroller = { beta = 0.6 }");
    let flow = &over.scenario.flows[0];
    assert_eq!(flow.endpoint, endpoint("linux").with(|p| p.ecn.ecn = true));
    let mut slower = controller("newreno", "linux");
    slower.params_mut().set("beta", &Value::Float(0.6)).expect("a parameter of NewReno");
    assert_eq!(flow.controller, slower);
}

/// Removes parts of `linux` one at a time, and compares by the keys that each part sets.
#[test]
fn a_stack_without_a_part_is_its_preset_without_the_parts_keys() {
    for (part, keys) in [
        ("quick-acks", &["ack_policy"][..]),
        ("lost-retransmissions", &["lost_retransmissions"]),
        ("rack", &["loss_rule", "tail_loss_probe", "whole_segments"]),
        ("prr", &["prr", "prr_on_ecn"]),
        ("dsack", &["dsack"]),
    ] {
        let flow = format!(
            "endpoint = {{ ecn = true }}\nstack = {{ base = \"linux\", without = [\"{part}\"] }}"
        );
        let found = one(&text("schema = 2", "", &flow));
        let mut expected = endpoint("linux").with(|p| p.ecn.ecn = true);
        keys.iter().for_each(|key| expected.reset(key));
        expected.idle().iter().for_each(|idle| expected.reset(idle.key));
        assert_eq!(found.scenario.flows[0].endpoint, expected, "{part}");
        assert_eq!(one(&found.resolved_toml).resolved_toml, found.resolved_toml);
        let others = found.resolved_toml.matches("# in place of the preset's").count();
        assert_eq!(others, 1, "`ecn` alone is not of the stack:\n{}", found.resolved_toml);
    }
}

#[test]
fn a_stack_with_a_part_is_its_preset_with_the_parts_keys() {
    let by_parts = cell("stack = { base = \"rfc6675\", with = [\"dsack\", \"tlp\", \"rack\"] }");
    let mut expected = endpoint("rfc6675");
    for (key, value) in [
        ("loss_rule", Value::Text("rack".to_owned())),
        ("tail_loss_probe", Value::Bool(true)),
        ("dsack", Value::Bool(true)),
    ] {
        expected.set(key, &value).expect("a parameter");
    }
    assert_eq!(by_parts.scenario.flows[0].endpoint, expected);
    let line =
        "stack = { base = \"rfc6675\", without = [], with = [\"rack\", \"tlp\", \"dsack\"] }";
    assert!(
        by_parts.resolved_toml.lines().any(|found| found == line),
        "{}",
        by_parts.resolved_toml
    );
    let base = cell("stack = { base = \"linux\" }");
    assert_eq!(base.resolved_toml, cell("stack = \"linux\"").resolved_toml, "a short form");
}

/// Stack `ns2` recovers by NewReno unless a key says otherwise, and both parts need SACK.
#[test]
fn a_part_may_need_a_key_of_the_endpoint() {
    let parts = "stack = { base = \"ns2\", with = [\"fack\", \"lost-retransmissions\"] }";
    let found = cell(&format!("{parts}\nendpoint = {{ recovery = \"sack\" }}"));
    let expected = endpoint("ns2").with(|p| {
        p.recovery.recovery = Recovery::Sack;
        p.detection.loss_rule = LossRule::Fack;
        p.detection.lost_retransmissions = true;
    });
    assert_eq!(found.scenario.flows[0].endpoint, expected);
}

/// Removals apply before additions.
#[test]
fn a_part_may_replace_another() {
    let found =
        cell("stack = { base = \"linux\", without = [\"prr\"], with = [\"prr\", \"prr-on-ecn\"] }");
    let expected = endpoint("linux").with(|p| p.prr.prr_rule = PrrRule::Rfc9937);
    assert_eq!(found.scenario.flows[0].endpoint, expected);
}

/// Files of schema 1, and texts resolved by earlier versions, still give the same runs.
#[test]
fn a_file_of_schema_1_keeps_what_parts_set_by_now() {
    let first = cell("endpoint = { preset = \"linux\", dsack = false }");
    assert_eq!(first.scenario.flows[0].endpoint, endpoint("linux").with(|p| p.acks.dsack = false));
    let again = one(&first.resolved_toml);
    assert_eq!(again.scenario, first.scenario);
    let found = outline("endpoint = { preset = \"linux\", dsack = false, timeout_frto = false }");
    let note = found.notes.iter().find(|note| note.key == "flow.main.endpoint").expect("a note");
    let message = "schema 2 sets by parts of a stack: `dsack`, `timeout_frto`";
    let remedy = "write `stack = { base = \"linux\", without = [\"dsack\", \"frto\"] }`";
    assert_eq!((note.message.as_str(), note.help.as_deref()), (message, Some(remedy)));
}

#[test]
fn an_axis_leads_into_a_stack() {
    let found = outline(
        "stack = \"linux\"\n[sweep.axis.without]\npath = \"flow.main.stack.without\"\n\
         values = [[], [\"prr\"]]\nlabels = [\"nothing\", \"PRR\"]",
    );
    let prr: Vec<bool> =
        found.cells().iter().map(|c| c.scenario.flows[0].endpoint.prr.prr).collect();
    assert_eq!(prr, [true, false]);
}

#[test]
fn the_resolved_file_says_where_values_came_from() {
    let found = cell(
        "stack = \"linux\"\nendpoint = { ecn = true }\n\
         controller = { kind = \"newreno\", preset = \"abe\" }",
    );
    let lines: Vec<&str> = found.resolved_toml.lines().collect();
    for line in [
        "stack = \"linux\"",
        "preset = \"abe\"  # in place of the stack's",
        "beta_ecn = 0.8",
        "preset = \"linux\"  # of the stack",
        "ecn = true  # in place of the preset's",
        "clock = \"1 us\"",
    ] {
        assert!(lines.contains(&line), "{line} is not in\n{}", found.resolved_toml);
    }
    let again = one(&found.resolved_toml);
    assert_eq!(again.scenario, found.scenario);
    assert_eq!(again.resolved_toml, found.resolved_toml);
}

fn notes(flow: &str) -> Vec<String> {
    notes_of(&outline(flow))
}

fn notes_of(outline: &Outline) -> Vec<String> {
    assert!(outline.warnings.is_empty(), "{}", outline.warnings);
    outline.notes.iter().filter(|note| note.key != "schema").map(|n| n.message.clone()).collect()
}

#[test]
fn a_controller_without_a_preset_for_the_stack_keeps_its_defaults_and_says_so_once() {
    let found = cell("stack = \"linux\"\ncontroller = \"copa\"").scenario;
    let copa = ControllerParams::of_kind("copa").expect("a kind");
    assert_eq!(found.flows[0].controller, copa);
    let both = "stack = \"linux\"\ncontroller = \"copa\"\n[flow.other]\nrtt = \"50 ms\"\nstack = \
    \"linux\"\ncontroller = \"copa\"";
    let expected = "`copa` has no preset for the stack `linux`: it keeps its own defaults";
    assert_eq!(notes(both), [expected]);
    assert!(notes("controller = \"copa\"").is_empty(), "nobody asked for a stack");
    assert!(
        notes("stack = \"rfc\"\ncontroller = \"copa\"").is_empty(),
        "its paper is the standard"
    );
    assert!(
        notes("stack = \"linux\"\ncontroller = { kind = \"copa\", preset = \"mvfst\" }").is_empty()
    );
    assert!(notes("stack = \"linux\"\ncontroller = \"cubic\"").is_empty());
}

#[test]
fn presets_for_linux_that_linux_has_not_are_named_as_the_kernel_variants_they_are() {
    let meters = "meter = \"adpm\"\nreverse_meter = \"adpm\"";
    for (kind, links, endpoint) in [
        ("delay-aimd", "", "endpoint = { ack_every = 1 }"),
        ("bmcc", meters, "endpoint = { ecn = true, echo = \"load\" }"),
    ] {
        let flow = format!("stack = \"linux\"\ncontroller = \"{kind}\"\n{endpoint}");
        let told = notes_of(&outline_of(links, &flow));
        assert_eq!(told.len(), 1, "{told:?}");
        assert!(told[0].contains(kind) && told[0].contains("`cwnd-kernel`"), "{told:?}");
    }
}

#[test]
fn a_stack_can_be_set_and_swept() {
    let document = Document::parse("test.toml", &text("", "", ""), NO_FILES).expect("TOML");
    let set = document.with_overrides(&["flow.*.stack=linux"]).expect("a key");
    assert_eq!(set.cells().expect("a scenario")[0].scenario.flows[0].endpoint, endpoint("linux"));
    let axis = "[sweep.axis.stack]\npath = \"flow.main.stack\"\nvalues = [\"linux\", \"rfc6675\"]";
    let cells = outline(axis).cells();
    assert_eq!(cells[0].axes[0].label, "linux");
    assert_eq!(cells[0].scenario.flows[0].endpoint, endpoint("linux"));
    assert_eq!(cells[1].scenario.flows[0].endpoint, endpoint("rfc6675"));
}
