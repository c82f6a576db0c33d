//! Scenarios with thousands of errors: reading and showing them takes time linear in the size of
//! the file.

use std::fmt::Write as _;

use cwnd_scenario::{Diagnostics, Document, MAX_SHOWN, Severity};
use cwnd_schema::file::read_toml;

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
