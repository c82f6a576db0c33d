//! Diagnostics: of broken files, compared with stored texts; of thousands of errors; of keys and
//! parts without effect, in all runs of a sweep or in some.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use cwnd_scenario::{Diagnostics, Document, KindInfo, MAX_SHOWN, Plan, Severity};
use cwnd_schema::file::read_toml;

use crate::{NO_FILES, stored};

/// Contents of the files that the broken scenarios name.
const FILES: &dyn Fn(&str) -> Result<String, String> = &|name| match name {
    "good.trace" => Ok("1\n2\n3\n".to_owned()),
    "three.txt" => Ok("1 2 3\n".to_owned()),
    "sizes.txt" => Ok("0 0\n5000 20\n20000000 99\n".to_owned()),
    "good.csv" => Ok("bytes,probability\n40,0\n1000,1\n".to_owned()),
    "bad-arrivals.csv" => Ok("time_s,size_bytes\n1,30000\n2,many\n".to_owned()),
    "bad.csv" => Ok("bytes,probability\n40,0.5\n1000,0.4\n".to_owned()),
    "bad-delays.csv" => Ok("time_s,added_ms\n0,10\n2,20\n1,30\n".to_owned()),
    "bad.trace" => Ok("1\ntwo\n".to_owned()),
    _ => Err("no such file".to_owned()),
};

/// Line of a broken scenario after which its diagnostics follow as a comment.
const EXPECTED: &str = "\n# Expected:\n";

fn diagnostics(name: &str, text: &str) -> Diagnostics {
    match Document::parse(name, text, FILES).and_then(|d| d.plan()) {
        Ok(plan) => plan.warnings,
        Err(diagnostics) => diagnostics,
    }
}

#[test]
fn every_broken_file_says_what_is_wrong_with_it() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/errors");
    let mut files: Vec<_> = fs::read_dir(&folder)
        .expect("the folder is there")
        .map(|entry| entry.expect("an entry").path())
        .filter(|path| path.extension().is_some_and(|e| e == "toml"))
        .collect();
    files.sort();
    assert!(files.len() >= 25);
    for path in files {
        let name = path.file_name().and_then(|n| n.to_str()).expect("a name");
        let text = fs::read_to_string(&path).expect("a text");
        let scenario = text.split_once(EXPECTED).map_or(text.as_str(), |(scenario, _)| scenario);
        let diagnostics = diagnostics(name, scenario);
        assert!(!diagnostics.is_empty(), "{name} is not broken");
        let shown = named(&diagnostics.render(false));
        let comment: String =
            shown.lines().map(|line| format!("{}\n", format!("# {line}").trim_end())).collect();
        let stored = format!("crates/scenario/tests/errors/{name}");
        stored::check(&stored, &format!("{scenario}{EXPECTED}{comment}"));
    }
}

#[test]
fn of_a_line_at_most_80_characters_are_quoted() {
    let long = "x".repeat(10_000);
    for text in [
        format!("schema = 2\nname = \"{long}\"\n"),
        format!("schema = 2\n{long} = 1\n"),
        format!("[run]\nduration = [{}]\n", "\"1 s\", ".repeat(5_000)),
        format!("[run]{} bad = 1\n", " ".repeat(5_000)),
        format!("[run]\nduration = \"1 s\" # {long}\nsample = \"ä{}\"\n", "ü".repeat(5_000)),
    ] {
        let shown = diagnostics("long.toml", &text).render(false);
        let quoted = shown.lines().filter_map(|line| {
            let (number, quote) = line.split_once(" | ")?;
            number.trim().parse::<u32>().is_ok().then_some(quote)
        });
        let lengths: Vec<usize> = quoted.map(|quote| quote.chars().count()).collect();
        assert!(!lengths.is_empty() && lengths.iter().all(|&n| n <= 80), "{lengths:?}\n{shown}");
    }
}

/// Replaces each list of all kinds of a part, or of all kinds with a key, by a placeholder.
pub fn named(text: &str) -> String {
    let parts = cwnd_scenario::kinds();
    let lines = text.split('\n').map(|line| {
        all(line, &parts).or_else(|| having_a_key(line, &parts)).unwrap_or_else(|| line.to_owned())
    });
    lines.collect::<Vec<_>>().join("\n")
}

/// Replaces the list at the end of a line, if it has all kinds of a part.
fn all(line: &str, parts: &BTreeMap<&str, Vec<KindInfo>>) -> Option<String> {
    parts.iter().find_map(|(part, kinds)| {
        let start = line.strip_suffix(&list(kinds.iter()))?.strip_suffix("there are ")?;
        Some(format!("{start}there are (every {part})"))
    })
}

/// Replaces the list in a line such as "unknown key `a` in the queue `b`: it is a key of `c`, `d`".
fn having_a_key(line: &str, parts: &BTreeMap<&str, Vec<KindInfo>>) -> Option<String> {
    let (start, listed) = line.split_once("it is a key of ")?;
    let (key, place) = start.split_once("unknown key `")?.1.split_once("` in the ")?;
    let (part, _) = place.split_once(' ')?;
    let kinds = parts.get(part)?.iter().filter(|(.., keys)| keys.contains(&key));
    (listed == list(kinds)).then(|| format!("{start}it is a key of (every {part} with `{key}`)"))
}

fn list<'a>(kinds: impl Iterator<Item = &'a KindInfo>) -> String {
    kinds.map(|(name, ..)| format!("`{name}`")).collect::<Vec<_>>().join(", ")
}

fn wrong(text: &str, overrides: &[&str]) -> Diagnostics {
    let files = |_: &str| Err("no such file".to_owned());
    let document = Document::parse("wrong.toml", text, &files);
    let planned = document.and_then(|d| d.with_overrides(overrides)).and_then(|d| d.plan());
    planned.map(|plan| plan.warnings).expect_err("it is wrong")
}

/// Writes a scenario whose link has `count` rate steps, each with an error.
fn steps(count: usize, between: &str) -> String {
    let mut text = "[run]\nduration = \"1 s\"\n[dumbbell]\nqueue = \"codel\"\n\
                    [flow.main]\nrtt = \"1 ms\"\n\
                    [dumbbell.rate]\ninitial = \"1 Mbit/s\"\nsteps = ["
        .to_owned();
    for i in 0..count {
        write!(text, "{{ at = {i}, rate = \"5 Mbit/s\" }},{between}").expect("a text takes it");
    }
    text + "]\n"
}

#[test]
fn fifty_errors_are_shown_and_the_rest_is_counted() {
    for count in [4_000, 100_000] {
        let told = wrong(&steps(count, "\n"), &[]);
        assert_eq!((told.total(), told.iter().count()), (count, MAX_SHOWN));
        let shown = told.render(false);
        assert_eq!(shown.matches("error: ").count(), MAX_SHOWN);
        let rest = format!("note: {} more errors are not shown", count - MAX_SHOWN);
        assert!(shown.ends_with(&rest), "{}", &shown[shown.len() - 100..]);
        assert!(shown.len() < 20_000, "{} bytes", shown.len());
        // The errors shown are the first ones.
        let lines: Vec<usize> = told.iter().map(|d| d.line).collect();
        assert!(lines.iter().copied().eq(9..9 + MAX_SHOWN), "{lines:?}");
    }
}

#[test]
fn errors_of_one_long_line_are_shown_with_what_is_near() {
    let text = steps(100_000, " ");
    let told = wrong(&text, &[]);
    let shown = told.render(false);
    assert!(shown.len() < 100_000, "{} bytes", shown.len());
    let last = told.iter().last().expect("an error");
    let column = text.lines().nth(8).expect("a line")[..last.column].len();
    assert!(shown.contains(&format!("wrong.toml:9:{column}\n")), "{shown}");
    assert!(shown.contains("at = 49, rate"));
}

#[test]
fn what_stops_the_run_is_shown_before_what_does_not() {
    let mut text =
        "[run]\nduration = \"1 s\"\n[dumbbell]\nrate = \"1 Mbit/s\"\nqueue = \"fifo\"\n".to_owned();
    for i in 0..60 {
        write!(text, "[flow.f{i}]\nrtt = \"1 ms\"\nendpoint = {{ ecn = true }}\n").unwrap();
    }
    let warned = Document::parse("a.toml", &text, &|_| Err(String::new()))
        .and_then(|d| d.plan())
        .expect("it can be run")
        .warnings;
    assert_eq!((warned.total(), warned.iter().count()), (60, MAX_SHOWN));
    assert_eq!(warned.rest().as_deref(), Some("10 more warnings are not shown"));
    let wrong = wrong(&text, &["flow.f59.start=\"9 s\"", "flow.f0.start=\"9 s\""]);
    let errors = wrong.iter().filter(|d| d.severity == Severity::Error).count();
    assert_eq!((errors, wrong.has_errors()), (2, true));
}

/// A message may quote a value, and a path a name; neither makes the output as long as the file.
#[test]
fn long_values_and_names_are_shown_in_part() {
    let long = "x".repeat(1 << 20);
    let mut text = format!("[run]\nduration = \"{long}\"\n[flow.{long}]\n");
    for i in 0..1000 {
        writeln!(text, "unknown{i} = 1").unwrap();
    }
    let shown = wrong(&text, &[]).render(false);
    assert!(shown.len() < 200_000, "{} bytes", shown.len());
}

#[test]
fn errors_of_other_shapes_take_no_longer() {
    let lines = |line: &dyn Fn(usize) -> String| (0..50_000).map(line).collect::<String>();
    for text in [
        lines(&|i| format!("[flow.f{i}]\nrrt = \"1 ms\"\n")),
        lines(&|i| format!("[link.l{i}]\nfrom = \"a{i}\"\nto = \"b{i}\"\n")),
        lines(&|i| format!("unknown{i} = {i}\n")),
        lines(&|_| "= 1\n".to_owned()),
        lines(&|i| format!("k{i} = nan\n")),
        format!("[sweep.axis.a]\npath = \"run.seed\"\nvalues = [{}]", lines(&|i| format!("{i},"))),
        format!("[sweep.axis.a]\npath = [{}]", lines(&|i| format!("\"run.s{i}\","))),
    ] {
        let told = wrong(&text, &[]);
        assert!(told.iter().count() <= MAX_SHOWN);
        assert!(told.render(false).len() < 50_000);
    }
}

#[test]
fn toml_that_is_no_scenario_is_told_of_alike() {
    let text = "k = nan\n[t]\n".to_owned() + &"= 1\n".repeat(4_000);
    let told = read_toml("study.toml", &text).expect_err("it is wrong");
    assert!(told.total() >= 4_000 && told.iter().count() == MAX_SHOWN);
}

#[test]
fn an_override_has_a_bound() {
    let value = "x".repeat(2 << 20);
    let told = wrong(&steps(0, ""), &[&format!("flow.main.rtt={value}")]);
    let shown = told.render(false);
    assert!(shown.contains("2097166 bytes: at most 1048576"), "{shown}");
    assert!(shown.contains("--set") && shown.len() < 1000, "{shown}");
}

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
