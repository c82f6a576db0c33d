//! Stacks: one name for the presets of endpoint and controller.

use cwnd_cc::ControllerParams;
use cwnd_scenario::{Cell, Document, Outline};
use cwnd_schema::{Params, ParamsChoice as _, Value};
use cwnd_tcp::{LossRule, PrrRule, Recovery};

use crate::NO_FILES;

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

/// Flow groups with `stack = "quic"`.
mod quic {
    use cwnd_scenario::{Cell, Document};

    use crate::NO_FILES;

    fn read(flow: &str) -> Result<Cell, String> {
        let text = format!(
            "schema = 2\n[run]\nduration = \"10 s\"\n[dumbbell]\nrate = \"10 Mbit/s\"\n\
             [flow.main]\nrtt = \"100 ms\"\n{flow}\n"
        );
        let cells =
            Document::parse("test.toml", &text, NO_FILES).and_then(|document| document.cells());
        cells.map(|mut cells| cells.remove(0)).map_err(|diagnostics| diagnostics.to_string())
    }

    /// Returns the error message for a flow that is refused.
    fn refused(flow: &str) -> String {
        read(&format!("stack = \"quic\"\n{flow}")).map(|_| ()).expect_err(flow)
    }

    #[test]
    fn the_stack_has_keys_of_its_own_and_resolves_to_itself() {
        let flow = "stack = \"quic\"\nendpoint = { max_ack_delay = \"10 ms\", ecn = true }\n\
                controller = \"newreno\"";
        let cell = read(&flow.replace(", ecn = true", "")).expect("it is right");
        let quic = cell.scenario.flows[0].quic.as_ref().expect("it is QUIC");
        assert_eq!(quic.max_ack_delay.as_secs_f64(), 0.010);
        let resolved = &cell.resolved_toml;
        for line in [
            "stack = \"quic\"",
            "preset = \"rfc9002\"  # of the stack",
            "preset = \"quic\"  # of the stack",
            "max_ack_delay = \"10 ms\"  # in place of the preset's",
            "packet_threshold = 3",
        ] {
            assert!(resolved.contains(line), "{line}:\n{resolved}");
        }
        assert!(!resolved.contains("rto_min"), "{resolved}");
        let again = Document::parse("again.toml", resolved, NO_FILES).unwrap().cells().unwrap();
        assert_eq!(&again[0].resolved_toml, resolved);
        assert_eq!(again[0].scenario, cell.scenario);
    }

    /// Transfer of 100 full packets of QUIC, each with 33 B of QUIC header and tag and 28 B of UDP
    /// and IP headers. Their bits take 0.24 s at half of 10 Mbit/s, and no SYN comes before them.
    #[test]
    fn a_load_counts_packets_of_the_stack() {
        let flow = "stack = \"quic\"\nworkload = { kind = \"bytes\", size = \"143900 B\" }\n\
                arrivals = { kind = \"poisson\", load = 0.5 }";
        let cell = read(flow).expect("it is right");
        assert!(cell.resolved_toml.contains("interval = \"240 ms\""), "{}", cell.resolved_toml);
    }

    #[test]
    fn keys_of_tcp_are_refused_with_the_key_in_their_place() {
        let more = cwnd_tcp::quic::PACKET_OVERHEAD;
        let larger = format!("write `max_datagram_size` in its place, {more} B more");
        for (key, remedy) in [
            ("mss = \"1000 B\"", larger.as_str()),
            ("ack_every = 1", "write `ack_eliciting_threshold` in its place, one less"),
            ("rto_min = \"1 s\"", "remove it, or take a stack of TCP"),
            ("timestamps = true", "remove it, or take a stack of TCP"),
            ("recovery = \"sack\"", "remove it, or take a stack of TCP"),
        ] {
            let message = refused(&format!("endpoint = {{ {key} }}"));
            let name = key.split(' ').next().unwrap_or(key);
            let expected =
                format!("unknown key `{name}` in the endpoint: it is a key of TCP; {remedy}");
            assert!(message.contains(&expected), "{message}");
        }
        let message = read("endpoint = { packet_threshold = 4 }").expect_err("it is TCP");
        assert!(message.contains("it is a key of the stack `quic`"), "{message}");
        assert!(refused("endpoint = \"linux\"").contains("quic"));
    }

    #[test]
    fn parts_workloads_and_controllers_that_need_tcp_are_refused() {
        let parts =
            read("stack = { base = \"quic\", without = [\"rack\"] }").expect_err("no parts");
        assert!(
            parts.contains("the stack `quic` has no parts, and `rack` is one of TCP"),
            "{parts}"
        );
        for (flow, expected) in [
            ("controller = \"bbr\"", "`bbr` steers by delivery rates"),
            ("controller = \"dctcp\"", "take another controller, or a stack of TCP"),
            (
                "workload = { kind = \"web\", size = \"10 kB\" }",
                "clients of `web` ask on a connection of TCP, not of `quic`",
            ),
            ("attacker = \"quench\"", "senders of `quic` ignore source quenches"),
            ("endpoint = { max_datagram_size = \"1000 B\" }", "QUIC needs a path for 1200 B"),
            ("endpoint = { packet_threshold = 2 }", "a threshold below 3 should not be used"),
        ] {
            let message = refused(flow);
            assert!(message.contains(expected), "{flow}:\n{message}");
        }
    }
}

/// Versions of the file format and their defaults.
mod schemas {
    use cwnd_cc::ControllerParams;
    use cwnd_scenario::{Document, Noise, Outline, Scenario};
    use cwnd_schema::{Params as _, ParamsChoice as _};

    use crate::{NO_FILES, SMALL};

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
        let found = scenario(&format!("schema = 1{SMALL}"));
        assert_eq!((found.schema, found.run.noise), (1, Noise::None));
        assert_eq!(found.flows[0].endpoint, cwnd_tcp::Params::default());
        assert_eq!(Some(&found.flows[0].controller), ControllerParams::of_kind("newreno").as_ref());
        assert_eq!(scenario(SMALL), found, "a file that names no schema has the first");
    }

    #[test]
    fn schema_2_has_noise_of_the_path_and_linux() {
        let found = scenario(&format!("schema = 2{SMALL}"));
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
        let old = scenario(&format!("schema = 1{SMALL}"));
        let rest = SMALL.replace("[dumbbell]", "noise = \"none\"\n[dumbbell]");
        let mut new = scenario(&format!("schema = 2{rest}stack = \"rfc6675\"\n"));
        assert!(new.flows[0].stack.take().is_some());
        assert_eq!(Scenario { schema: 1, ..new }, old);
    }

    /// Resolved text of schema 1, which must not change: the ids of stored results depend on it.
    #[test]
    fn a_file_of_schema_1_resolves_without_keys_of_schema_2() {
        let resolved = outline(SMALL).cells().remove(0).resolved_toml;
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
            let first = outline(&format!("schema = {schema}{SMALL}")).cells().remove(0);
            assert!(first.resolved_toml.starts_with(&format!("schema = {schema}\n")));
            let again = outline(&first.resolved_toml).cells().remove(0);
            assert_eq!(again.scenario, first.scenario);
            assert_eq!(again.resolved_toml, first.resolved_toml);
        }
    }

    #[test]
    fn a_file_of_schema_1_has_one_note_about_the_defaults_of_schema_2() {
        let swept = format!(
            "schema = 1{SMALL}[sweep.axis.rtt]\npath = \"flow.main.rtt\"\n\
             values = [\"10 ms\", \"20 ms\"]\n"
        );
        for text in [SMALL, &format!("schema = 1{SMALL}"), &swept] {
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
        assert!(outline(&format!("schema = 2{SMALL}")).notes.is_empty());
    }
}
