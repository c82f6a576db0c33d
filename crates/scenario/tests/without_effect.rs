//! Keys and stack parts without effect, in all runs of a sweep and in some.

use cwnd_scenario::{Document, Plan};

const NO_FILES: &dyn Fn(&str) -> Result<String, String> = &|name| Err(format!("no file `{name}`"));

fn document(text: &str) -> Document<'static> {
    Document::parse("test.toml", text, NO_FILES).expect("it is TOML")
}

fn plan(text: &str) -> Plan {
    document(text).plan().expect("it can be run")
}

/// Reads a file of schema 2 with these keys: returns its errors, or its notes as (key, message).
fn idle(flow: &str, sweep: &str) -> Result<Vec<(String, String)>, String> {
    let text = format!(
        "schema = 2\n[run]\nduration = \"10 s\"\n[dumbbell]\nrate = \"10 Mbit/s\"\n\
         [flow.main]\nrtt = \"100 ms\"\n{flow}\n{sweep}\n"
    );
    let outline = document(&text).outline().map_err(|errors| errors.to_string())?;
    Ok(outline.notes.iter().map(|note| (note.key.clone(), note.message.clone())).collect())
}

#[test]
fn a_key_without_effect_is_an_error_only_if_the_file_has_it_for_all_runs() {
    let axis = |path: &str, values: &str| {
        format!("[sweep.axis.a]\npath = \"flow.main.endpoint.{path}\"\nvalues = {values}\n")
    };
    let note = |key: &str, why: &str| {
        vec![(format!("flow.main.endpoint.{key}"), format!("`{key}` has no effect {why}"))]
    };
    let defer = "endpoint = { tso = \"none\", tso_defer = \"5 ms\" }";
    assert!(idle(defer, "").is_err_and(|e| e.contains("`tso_defer` has no effect without `tso`")));
    // The preset `linux-2.6.22` has another `tso_defer` than the default.
    let old = "stack = \"linux-2.6.22\"\ncontroller = { preset = \"rfc\" }";
    let found = idle(&format!("{old}\nendpoint = {{ tso = \"none\" }}"), "").unwrap();
    assert_eq!(found.len(), 1);
    assert_eq!(found[0].1, "`tso_defer` of the preset has no effect without `tso`");
    assert_eq!(idle("endpoint = \"linux\"", "").unwrap(), []);
    let off = "endpoint = { ecn = false, obey_ece = true, ecn_in_loss = false }";
    assert_eq!(idle(off, "").unwrap(), []);
    let defer = "endpoint = { tso_defer = \"5 ms\" }";
    let swept = idle(defer, &axis("tso", "[\"64 kB\", \"none\"]"));
    assert!(swept.unwrap().starts_with(&note("tso_defer", "without `tso` (at a none)")));
    let values = axis("ecn_at_one", "[\"waits\", \"sends\"]");
    let without = "without `ecn`";
    assert_eq!(idle("endpoint = { ecn = false }", &values).unwrap(), note("ecn_at_one", without));
    assert!(idle(defer, &axis("tso", "[\"none\"]")).is_err());
}

#[test]
fn a_part_without_effect_on_the_endpoint_is_named() {
    let ns2 = "stack = { base = \"ns2\", with = [\"lost-retransmissions\"] }";
    let why = "without `recovery = \"sack\"`";
    let message = format!("the part `lost-retransmissions` has no effect {why}");
    let refused = idle(ns2, "").unwrap_err();
    assert!(refused.contains(&message) && refused.contains("remove it"), "{refused}");
    let sack = format!("{ns2}\nendpoint = {{ recovery = \"sack\" }}");
    let of_part = |found: &[(String, String)]| found.iter().any(|(_, m)| m.contains("the part"));
    assert!(!of_part(&idle(&sack, "").unwrap()));
    let axis = "[sweep.axis.a]\npath = \"flow.main.endpoint.recovery\"\n\
                values = [\"sack\", \"newreno\"]\n";
    let at = ("flow.main.stack.with".to_owned(), format!("{message} (at a newreno)"));
    assert!(idle(&sack, axis).unwrap().contains(&at));
    // A part that only the preset has is not a key; it is named once.
    let of_stack = idle("stack = \"linux\"\nendpoint = { recovery = \"newreno\" }", "").unwrap();
    let rack: Vec<_> = of_stack.iter().filter(|(_, message)| message.contains("`rack`")).collect();
    assert_eq!(rack.len(), 1, "{of_stack:?}");
    assert_eq!(rack[0].0, "flow.main.endpoint");
    assert_eq!(rack[0].1, format!("the part `rack` of the stack has no effect {why}"));
}

#[test]
fn a_warning_says_at_which_points_of_a_sweep_it_holds() {
    let warned = |axes: &str| {
        let text = format!(
            "schema = 2\n[run]\nduration = \"10 s\"\n[dumbbell]\nrate = \"10 Mbit/s\"\n\
             [flow.main]\nrtt = \"100 ms\"\nendpoint = {{ ecn = true }}\n{axes}"
        );
        let warnings = plan(&text).warnings;
        warnings.iter().map(|warning| warning.message.clone()).collect::<Vec<_>>()
    };
    let fifo = "ECN never acts: no queue on the way of the data marks packets (fifo)";
    let queues = "[sweep.axis.queue]\npath = \"dumbbell.queue\"\nvalues = [\"fifo\", \"codel\"]\n";
    let rates = |n: u32| {
        let rates: Vec<String> = (1..=n).map(|i| format!("\"{i} Mbit/s\"")).collect();
        format!("[sweep.axis.rate]\npath = \"dumbbell.rate\"\nvalues = [{}]\n", rates.join(", "))
    };
    assert_eq!(warned(""), [fifo]);
    assert_eq!(warned(&rates(2)), [fifo]);
    assert_eq!(warned(queues), [format!("{fifo} (at queue fifo)")]);
    assert_eq!(warned(&(queues.to_owned() + &rates(5))), [format!("{fifo} (at queue fifo)")]);
    let pairs = "[sweep.axis.both]\npath = [\"dumbbell.queue\", \"flow.main.endpoint.ecn\"]\n\
                 values = [[\"fifo\", true], [\"fifo\", false], [\"codel\", true]]\n\
                 labels = [\"a\", \"b\", \"c\"]\n";
    assert_eq!(warned(pairs), [format!("{fifo} (at both a)")]);
    let queue_by_rate =
        "[sweep.axis.ecn]\npath = \"flow.main.endpoint.ecn\"\nvalues = [true, false]\n";
    let found = warned(&(queues.to_owned() + queue_by_rate));
    assert_eq!(found, [format!("{fifo} (at queue fifo, ecn true)")]);
    let values: Vec<String> =
        (1..=4).map(|i| format!("{{ kind = \"fifo\", limit = \"{i} packets\" }}")).collect();
    let limits = format!(
        "[sweep.axis.limit]\npath = \"dumbbell.queue\"\nvalues = [{}, \"codel\"]\n\
         labels = [\"a\", \"b\", \"c\", \"d\", \"e\"]\n",
        values.join(", ")
    );
    assert_eq!(warned(&limits), [format!("{fifo} (at 4 of the 5 values of limit)")]);
}

#[test]
fn a_resolved_file_leaves_out_keys_without_effect() {
    let text = "schema = 2\n[run]\nduration = \"10 s\"\n[dumbbell]\nrate = \"10 Mbit/s\"\n\
         queue = { kind = \"pie\", preset = \"linux-3.17\", estimator = \"timestamp\" }\n\
         [flow.main]\nrtt = \"100 ms\"\nstack = { base = \"linux\", without = [\"prr\"] }\n\
         [sweep.axis.a]\npath = \"flow.main.endpoint.ecn_at_one\"\n\
         values = [\"waits\", \"sends\"]\n";
    for cell in document(text).plan().unwrap().cells {
        let resolved = &cell.resolved_toml;
        for key in ["prr_rule", "ecn_at_one", "dq_weight"] {
            assert!(!resolved.contains(key), "{key} in {resolved}");
        }
        let again = document(resolved).plan().unwrap().cells.remove(0);
        assert_eq!(again.scenario, cell.scenario);
        assert_eq!(again.resolved_toml, *resolved);
    }
}
