use cwnd_scenario::Document;

use super::*;

fn refused(changes: &[(&str, &str)]) -> Vec<String> {
    told(changes).into_iter().map(|refusal| refusal.key.join(".")).collect()
}

fn told(changes: &[(&str, &str)]) -> Vec<Refusal> {
    let mut text = r#"
        [run]
        duration = "5 s"
        [dumbbell]
        rate = "10 Mbit/s"
        [flow.main]
        rtt = "50 ms"
        controller = { kind = "newreno", preset = "linux" }
        endpoint = { preset = "linux" }
    "#
    .to_owned();
    for (old, new) in changes {
        assert!(text.contains(old), "{old}");
        text = text.replace(old, new);
    }
    let document = Document::parse("t", &text, &|_: &str| Ok(String::new())).unwrap();
    let scenario = document.plan().unwrap().cells[0].scenario.clone();
    refusals(&scenario)
}

const CONTROLLER: &str = r#"{ kind = "newreno", preset = "linux" }"#;
const ENDPOINT: &str = r#"{ preset = "linux" }"#;
const ENDPOINT_LINE: &str = r#"endpoint = { preset = "linux" }"#;

#[test]
fn what_the_kernel_has_is_not_refused() {
    assert!(refused(&[]).is_empty());
    assert!(refused(&[(CONTROLLER, r#"{ kind = "cubic", preset = "linux" }"#)]).is_empty());
    let abe =
        r#"{ kind = "cubic", preset = "linux", beta_ecn = 0.85, ecn_in_slow_start = "beta-ecn" }"#;
    let set = "{ preset = 'linux', ecn = true, initial_window = 4, mss = '1000 B', \
               rto_min = '300 ms', ack_every = 1 }";
    assert!(refused(&[(CONTROLLER, abe), (ENDPOINT, set)]).is_empty());
    let delay = r#"{ kind = "delay-aimd", preset = "linux", threshold = "20 ms", delta = 0.7 }"#;
    assert!(refused(&[(CONTROLLER, delay)]).is_empty());
    let adaptive = r#"{ kind = "cubic", preset = "linux", adaptive_delta = 0.8 }"#;
    assert!(refused(&[(CONTROLLER, adaptive)]).is_empty());
    let own = r#"{ kind = "c", path = "own.bpf.c", gain = 2 }"#;
    assert!(refused(&[(CONTROLLER, own)]).is_empty());
    // Its receivers have it as well, and echo marks by it.
    let marked = r#"{ preset = "linux", ecn = true, echo = "changes" }"#;
    assert!(refused(&[(CONTROLLER, own), (ENDPOINT, marked)]).is_empty());
    assert_eq!(refused(&[(ENDPOINT, marked)]), ["flow.main.endpoint.echo"]);
    let python = r#"{ kind = "python", path = "own.py", class = "Own" }"#;
    assert_eq!(refused(&[(CONTROLLER, python)]), ["flow.main.controller"]);
}

#[test]
fn the_defaults_of_the_newest_schema_are_not_refused() {
    let newest = ("[run]", "schema = 2\n        [run]");
    let controller = r#"controller = { kind = "newreno", preset = "linux" }"#;
    for kind in ["newreno", "cubic", "bbr"] {
        let named = format!("controller = \"{kind}\"");
        for endpoint in ["", r#"endpoint = { ecn = true }"#, r#"endpoint = { mss = "1000 B" }"#] {
            let changes = [newest, (controller, &named), (ENDPOINT_LINE, endpoint)];
            assert_eq!(refused(&changes), [""; 0], "{kind} {endpoint}");
        }
    }
    let idle = r#"endpoint = { preset = "linux", timestamps = false }"#;
    let why = refused(&[newest, (ENDPOINT_LINE, idle)]);
    assert_eq!(why, ["flow.main.endpoint.timestamps"]);
}

#[test]
fn what_linux_has_for_laboratories_is_not_refused_and_what_is_near_it_is() {
    let told = r#"{ kind = "cubic", preset = "linux", adaptive_delta = 0.8 }"#;
    let key = |more: &str, controller: &str| {
        let endpoint = format!(r#"{{ preset = "linux", {more} }}"#);
        let found = refused(&[(CONTROLLER, controller), (ENDPOINT, &endpoint)]);
        found.first().map(|key| key.trim_start_matches("flow.main.endpoint.").to_owned())
    };
    for (more, kernels_own, of_ours) in [
        (r#"rtt_from = "sack""#, None, None),
        (r#"rtt_from = "oldest""#, Some("rtt_from"), None),
        (r#"rtt_from = "newest""#, Some("rtt_from"), Some("rtt_from")),
        ("rtt_from_notes = false", Some("rtt_from_notes"), None),
        (r#"cheat_timestamps = "100 ms""#, None, None),
        (r#"cheat_timestamps = "500 us""#, Some("cheat_timestamps"), Some("cheat_timestamps")),
        ("cheat_ack_division = 2", Some("cheat_ack_division"), Some("cheat_ack_division")),
        ("tso_win_divisor = 1", None, None),
        (r#"tso = "64 kB", tso_sizing = "rate-unpaced""#, None, None),
        (r#"tso = "64 kB", tso_defer = "1 ms""#, None, None),
        (r#"tso = "64 kB""#, Some("tso"), Some("tso")),
    ] {
        assert_eq!(key(more, CONTROLLER).as_deref(), kernels_own, "{more}");
        assert_eq!(key(more, told).as_deref(), of_ours, "{more}");
    }
}

const RATE: &str = r#"rate = "10 Mbit/s""#;

#[test]
fn the_router_sends_quenches_and_a_controller_that_hears_them_obeys() {
    let told_of =
        format!("{RATE}\nmessenger = \"quench\"\nqueue = {{ kind = \"red\", ecn = true }}");
    assert!(refused(&[(RATE, &told_of)]).is_empty(), "who does not hear them does not matter");
    let becn = r#"{ kind = "newreno", preset = "linux", beta_quench = 0.5 }"#;
    let obeys = r#"{ preset = "linux", ecn = true, obey_quench = true }"#;
    assert!(refused(&[(RATE, &told_of), (CONTROLLER, becn), (ENDPOINT, obeys)]).is_empty());
    assert_eq!(refused(&[(CONTROLLER, becn)]), ["flow.main.endpoint.obey_quench"]);
    let found = told(&[(ENDPOINT, obeys)]);
    assert_eq!(found[0].key.join("."), "flow.main.endpoint.obey_quench", "nobody would hear them");
    let both = r#"{ kind = "cubic", preset = "linux", beta_quench = 0.5, beta_ecn = 0.85 }"#;
    let found = told(&[(CONTROLLER, both), (ENDPOINT, obeys)]);
    assert_eq!(found[0].message, "no controller of `cwnd-kernel` does both: ABE and BECN");
}

#[test]
fn timeouts_are_those_that_a_program_may_bound() {
    let with = |keys: &str| ENDPOINT.replace(" }", &format!(", {keys} }}"));
    let timeouts = |keys: &str| refused(&[(ENDPOINT, &with(keys))]);
    for keys in [
        r#"rto_backoff = "after""#,
        r#"rto_backoff = "off""#,
        r#"rto_backoff = "after", rto_backoff_after = 0"#,
        r#"rto_backoff = "bounded", rto_backoff_after = 6, syn_backoff_after = 6"#,
        r#"rto_backoff = "bounded", rto_backoff_after = 5, syn_backoff_after = "none""#,
    ] {
        assert!(timeouts(keys).is_empty(), "{keys}: {:?}", timeouts(keys));
    }
    for (keys, key) in [
        (r#"rto_backoff = "after", rto_backoff_after = 256"#, "rto_backoff_after"),
        (r#"rto_backoff = "after", rto_backoff_rounds = 6"#, "rto_backoff_rounds"),
        (r#"rto_backoff = "after", syn_backoff_after = 3"#, "syn_backoff_after"),
        (r#"rto_backoff = "after", syn_backoff_after = "none""#, "syn_backoff_after"),
        (r#"syn_backoff_after = 5"#, "syn_backoff_after"),
        (r#"rto_thin_linear = true"#, "rto_thin_linear"),
    ] {
        assert_eq!(timeouts(keys), [format!("flow.main.endpoint.{key}")], "{keys}");
    }
    let found = told(&[(ENDPOINT, &with(r#"rto_backoff = "after", syn_backoff_after = 1"#))]);
    let help = found[0].help.as_deref();
    assert_eq!(help, Some("write `syn_backoff_after = 4`"), "SYNs of TCP*(3)");
}

#[test]
fn meters_that_write_ip_headers_are_there_and_others_are_refused_by_name() {
    for meter in ["step", "vcp", "adpm"] {
        let with = format!("{RATE}\nmeter = \"{meter}\"\nreverse_meter = \"{meter}\"");
        assert!(refused(&[(RATE, &with)]).is_empty(), "{meter}");
    }
    for meter in ["xcp", "rcp", "mlcp"] {
        let with = format!("{RATE}\nreverse_meter = \"{meter}\"");
        let found = told(&[(RATE, &with)]);
        assert_eq!(found[0].key.join("."), "dumbbell.reverse_meter");
        assert!(found[0].message.contains(meter), "{}", found[0].message);
    }
}

#[test]
fn bmcc_runs_with_a_receiver_that_tells_loads_and_what_only_the_simulator_has_is_named() {
    let meters = format!("{RATE}\nmeter = \"adpm\"\nreverse_meter = \"adpm\"");
    let with = |controller: &str, endpoint: &str| {
        refused(&[(RATE, &meters), (CONTROLLER, controller), (ENDPOINT, endpoint)])
    };
    let tells = r#"{ preset = "linux", ecn = true, echo = "load" }"#;
    assert!(with(r#""bmcc""#, tells).is_empty());
    let all = "{ kind = 'bmcc', interval = '100 ms', paced = false, on_loss = 'repair', \
               mi_rtt_most = 'none' }";
    let once = r#"{ preset = "linux", ecn = true, echo = "load-changed" }"#;
    assert!(with(all, once).is_empty());
    for (key, value) in [("apply", "round-trip"), ("ids", "constant"), ("growth_rtt", "min")] {
        let found = with(&format!(r#"{{ kind = "bmcc", {key} = "{value}" }}"#), tells);
        assert_eq!(found, [format!("flow.main.controller.{key}")]);
    }
    // Only receivers of such a controller echo loads.
    assert_eq!(refused(&[(ENDPOINT, tells)]), ["flow.main.endpoint.echo"]);
    let meters = format!("{RATE}\nmeter = \"vcp\"\nreverse_meter = \"vcp\"");
    let tells = r#"{ preset = "linux", ecn = true, echo = "changes" }"#;
    let found = told(&[(RATE, &meters), (CONTROLLER, r#""vcp""#), (ENDPOINT, tells)]);
    assert!(found.iter().any(|f| f.message == "Linux has no controller `vcp`"), "{found:?}");
}

#[test]
fn each_parameter_that_the_kernel_has_otherwise_is_named() {
    let cubic = r#"{ kind = "cubic", preset = "linux", c = 0.3, fast_convergence = false }"#;
    let found = refused(&[(CONTROLLER, cubic)]);
    assert_eq!(found, ["flow.main.controller.c", "flow.main.controller.fast_convergence"]);
    let found = refused(&[(ENDPOINT, r#"{ preset = "linux", prr = false, ack_every = 4 }"#)]);
    assert_eq!(found, ["flow.main.endpoint.prr", "flow.main.endpoint.ack_every"]);
    // Only mechanisms of `cwnd-kernel` may differ.
    let wrong =
        r#"{ kind = "newreno", preset = "linux", adaptive_delta = 0.8, initial_min_rtt = "1 s" }"#;
    let found = told(&[(CONTROLLER, wrong)]);
    assert_eq!(found[0].key.join("."), "flow.main.controller.initial_min_rtt");
    let help = found[0].help.as_deref().unwrap();
    assert!(help.contains("adaptive_delta = 0.8 }") && help.contains("adaptive backoff"), "{help}");
    let found = told(&[(CONTROLLER, r#""fast""#)]);
    assert_eq!(found[0].message, "Linux has no controller `fast`");
    let found = told(&[(CONTROLLER, r#"{ kind = "delay-aimd", filter = "mean" }"#)]);
    let help = found[0].help.as_deref().unwrap();
    assert!(help.contains(r#"`controller = { kind = "delay-aimd", preset = "linux""#), "{help}");
    let rfc = refused(&[(ENDPOINT, r#"{ preset = "rfc" }"#)]);
    assert_eq!(rfc, ["flow.main.endpoint"]);
}

#[test]
fn a_remedy_is_not_refused_and_leaves_out_nothing_that_linux_can_do() {
    let remedy = |changes: &[(&str, &str)]| {
        let help = told(changes)[0].help.clone().unwrap();
        let (_, text) = help.split_once('`').unwrap();
        text.split_once('`').unwrap().0.to_owned()
    };
    let before = format!("controller = {CONTROLLER}");
    for (abe, written) in [
        (r#"{ kind = "cubic", preset = "abe" }"#, "beta_ecn = 0.85"),
        (r#"{ kind = "cubic", preset = "abe", beta_ecn = 0.7 }"#, "beta_ecn = 0.7"),
        (r#"{ kind = "newreno", preset = "paper" }"#, r#"ecn_in_slow_start = "beta-ecn""#),
        (r#"{ kind = "cubic", c = 0.3 }"#, r#"preset = "linux" }"#),
    ] {
        let remedy = remedy(&[(CONTROLLER, abe)]);
        assert!(remedy.contains(written), "{remedy}");
        assert!(refused(&[(&before, &remedy)]).is_empty(), "{remedy}");
    }
    let endpoint = r#"{ ecn = true, mss = "1000 B" }"#;
    let remedy = remedy(&[(ENDPOINT, endpoint)]);
    // The minimum RTO is the RFC's, which a route can set.
    let all = r#"endpoint = { preset = "linux", mss = "1 kB", ecn = true, rto_min = "1 s" }"#;
    assert_eq!(remedy, all);
    assert!(refused(&[(&format!("endpoint = {ENDPOINT}"), &remedy)]).is_empty());
}

#[test]
fn attackers_middleboxes_and_line_rates_of_hosts_are_refused() {
    let rate = r#"rate = "10 Mbit/s""#;
    let edge = r#"rate = "10 Mbit/s"
        edge_rate = "100 Mbit/s""#;
    assert_eq!(refused(&[(rate, edge)]), ["dumbbell.edge_rate"]);
    let tampered = r#"rate = "10 Mbit/s"
        option_damage = 0.1"#;
    assert_eq!(refused(&[(rate, tampered)]), ["dumbbell.option_damage"]);
    let attacked = r#"endpoint = { preset = "linux" }
        attacker = "quench""#;
    assert_eq!(refused(&[(ENDPOINT_LINE, attacked)]), ["flow.main.attacker"]);
}

#[test]
fn datagrams_fit_the_mtu_and_have_room_for_their_send_time() {
    let group = |size: &str, more: &str| {
        let workload = format!(r#"{{ kind = "udp", rate = "1 Mbit/s", size = "{size}"{more} }}"#);
        format!("[flow.call]\nrtt = \"50 ms\"\nworkload = {workload}\n[flow.main]")
    };
    let beside = |mss: &str, size: &str| {
        let endpoint = format!(r#"{{ preset = "linux", mss = "{mss}" }}"#);
        told(&[("[flow.main]", &group(size, "")), (ENDPOINT, &endpoint)])
    };
    let headers = |mss: &str| beside(mss, "9 kB")[0].message.clone();
    assert!(headers("1000 B").starts_with("datagrams of 9000 B exceed the MTU of both hosts"));
    // Segments of 1000 B have 52 B of headers.
    for (mss, size, fits) in [
        ("1000 B", "44 B", true),
        ("1000 B", "43 B", false),
        ("1000 B", "1052 B", true),
        ("1000 B", "1053 B", false),
        ("1448 B", "1500 B", true),
    ] {
        let found = beside(mss, size);
        let keys: Vec<String> = found.iter().map(|refusal| refusal.key.join(".")).collect();
        let expected: &[&str] = if fits { &[] } else { &["flow.call.workload.size"] };
        assert_eq!(keys, expected, "{mss} {size}");
    }
    let on_off = group("1000 B", r#", arrivals = "poisson", on = "1 s", off = "1 s""#);
    assert!(refused(&[("[flow.main]", &on_off)]).is_empty());
    let alone = r#"workload = { kind = "udp", rate = "1 Mbit/s", size = "1501 B" }"#;
    let bulk = format!("controller = {CONTROLLER}\n        {ENDPOINT_LINE}");
    assert_eq!(refused(&[(&bulk, alone)]), ["flow.main.workload.size"]);
}

#[test]
fn a_rate_that_only_a_later_step_has_is_refused_too() {
    let rate = r#"rate = "10 Mbit/s""#;
    let steps = r#"rate = { initial = "10 Mbit/s", steps = [{ at = "1 s", rate = "20 Gbit/s" }] }"#;
    let found = told(&[(rate, steps)]);
    assert_eq!(found[0].key, ["dumbbell", "rate"]);
    assert_eq!(found[0].message, "no router in user space forwards 20 Gbit/s");
    let slow = steps.replace("20 Gbit/s", "20 Mbit/s");
    assert!(refused(&[(rate, &slow)]).is_empty());
}

#[test]
fn linux_has_no_quic() {
    let quic = [(CONTROLLER, "\"cubic\""), (ENDPOINT_LINE, "stack = \"quic\"")];
    let found = told(&quic);
    assert_eq!(refused(&quic), ["flow.main.stack"]);
    assert!(found[0].message.starts_with("Linux has no `quic`"), "{}", found[0].message);
}

#[test]
fn the_remedy_for_an_endpoint_names_the_parts_of_its_stack() {
    let newest = ("[run]", "schema = 2\n        [run]");
    let help = |controller: &str, stack: &str, more: &str| {
        let lines = format!("stack = {stack}\n{more}");
        let found = told(&[newest, (CONTROLLER, controller), (ENDPOINT_LINE, &lines)]);
        assert!(!found.is_empty(), "{lines}");
        found[0].help.clone().unwrap()
    };
    let whole = "`endpoint = { preset = \"linux\", ecn = true }` is TCP as Linux has it";
    let ecn = "endpoint = { ecn = true, timestamps = false }";
    assert_eq!(help(CONTROLLER, "\"linux\"", ecn), whole);
    let less = r#"{ base = "linux", without = ["prr"] }"#;
    let expected = format!("`stack = \"linux\"` with {whole}");
    assert_eq!(help(CONTROLLER, less, "endpoint = { ecn = true }"), expected);
    let told = r#"{ kind = "cubic", preset = "linux", adaptive_delta = 0.8 }"#;
    let less = r#"{ base = "linux", without = ["prr", "own-rtt-notes"] }"#;
    let expected = "`stack = { base = \"linux\", without = [\"own-rtt-notes\"] }` with \
                    `endpoint = { preset = \"linux\" }` is TCP as Linux can have it";
    assert_eq!(help(told, less, ""), expected);
}
