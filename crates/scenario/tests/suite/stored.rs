//! Stored texts: JSON Schema, reference, ids and resolved scenarios; validity of what is shipped.

use std::fs;
use std::path::Path;

/// Compares the stored file at path `name` in the repository with `text`; `UPDATE=1` writes it
/// first.
pub fn check(name: &str, text: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(name);
    let text = format!("{}\n", text.trim_end());
    #[expect(clippy::disallowed_methods, reason = "a test that refreshes files asks to be told so")]
    let update = std::env::var("UPDATE").is_ok_and(|v| v == "1");
    if update {
        fs::create_dir_all(path.parent().expect("the file is in a folder")).expect("a folder");
        fs::write(&path, &text).expect("the checkout can be written");
    }
    let stored = fs::read_to_string(&path).unwrap_or_default();
    assert!(
        stored == text,
        "{name} is stale; if the change is intended, refresh it with\n\
         UPDATE=1 cargo test -p cwnd-scenario --no-fail-fast\n{}",
        first_difference(&stored, &text)
    );
}

/// Describes the first line that differs, in both texts.
fn first_difference(stored: &str, text: &str) -> String {
    let equal = stored.lines().zip(text.lines()).take_while(|(old, new)| old == new).count();
    let [old, new] =
        [stored, text].map(|text| text.lines().nth(equal).unwrap_or("(end of the file)"));
    format!("line {}\n  stored: {old}\n  found:  {new}", equal + 1)
}

#[test]
fn the_scenario_reference_is_fresh() {
    check("docs/reference/scenario.md", &cwnd_scenario::reference_markdown(&[]));
}

/// Stability of ids and resolved texts, by which stored results are found.
mod ids {
    use std::fmt::Write as _;
    use std::fs;
    use std::path::{Path, PathBuf};

    use cwnd_scenario::{Document, Plan};

    const FOLDERS: [&str; 3] = ["benches/scenarios", "python/cwnd/studies", "scenarios"];

    fn root() -> PathBuf {
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
    }

    /// Returns the paths of the scenarios below a folder, sorted.
    fn scenarios(folder: &Path) -> Vec<PathBuf> {
        let mut found = Vec::new();
        for entry in fs::read_dir(folder).expect("the folder is there") {
            let path = entry.expect("an entry").path();
            if path.is_dir() {
                found.extend(scenarios(&path));
            } else if path.extension().is_some_and(|e| e == "toml")
                && path.file_name().is_some_and(|name| name != "study.toml")
            {
                found.push(path);
            }
        }
        found.sort();
        found
    }

    /// Returns the plan of a file; files that it names are found beside it.
    fn plan(path: &Path) -> Plan {
        let text = fs::read_to_string(path).expect("a text");
        let name = path.file_name().and_then(|n| n.to_str()).expect("a name");
        let folder = path.parent().expect("a file is in a folder");
        let read = |file: &str| fs::read_to_string(folder.join(file)).map_err(|e| e.to_string());
        match Document::parse(name, &text, &read).and_then(|d| d.plan()) {
            Ok(plan) => plan,
            Err(diagnostics) => panic!("{}: {diagnostics}", path.display()),
        }
    }

    /// Returns a hash over the ids of all cells, in order.
    fn hash(plan: &Plan) -> String {
        const PRIME: u128 = 0x0000_0000_0100_0000_0000_0000_0000_013b;
        let ids = plan.cells.iter().map(|c| u128::from_str_radix(&c.id, 16).expect("hexadecimal"));
        format!("{:032x}", ids.fold(0, |hash: u128, id| (hash ^ id).wrapping_mul(PRIME)))
    }

    #[test]
    fn the_ids_of_all_shipped_cells_stay() {
        let mut text = String::new();
        for folder in FOLDERS {
            for path in scenarios(&root().join(folder)) {
                let plan = plan(&path);
                let name = path.strip_prefix(root()).expect("it is below the root").display();
                writeln!(text, "{name} {} {}", plan.cells.len(), hash(&plan)).expect("a string");
            }
        }
        assert!(text.lines().count() > 100);
        super::check("crates/scenario/tests/ids.snap", &text);
    }

    #[test]
    fn resolved_texts_stay() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/resolved");
        let files = scenarios(&folder);
        assert!(files.len() >= 6);
        for path in files {
            let plan = plan(&path);
            let name = path.file_name().and_then(|n| n.to_str()).expect("a name");
            assert!(!plan.cells.is_empty());
            let texts: Vec<&str> = plan.cells.iter().map(|c| c.resolved_toml.as_str()).collect();
            let stored = format!("crates/scenario/tests/resolved/{name}.snap");
            super::check(&stored, &texts.join("\n"));
        }
    }
}

/// Validity of the scenarios that come with cwnd.
mod shipped {
    use std::collections::BTreeSet;
    use std::fs;
    use std::path::{Path, PathBuf};

    use cwnd_scenario::{Document, Plan};

    use crate::NO_FILES;

    fn files(folder: &str) -> Vec<PathBuf> {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(folder);
        let mut files: Vec<PathBuf> = fs::read_dir(folder)
            .expect("the folder is there")
            .map(|entry| entry.expect("an entry").path())
            .filter(|path| path.extension().is_some_and(|e| e == "toml"))
            .collect();
        files.sort();
        files
    }

    fn plan(path: &Path) -> Plan {
        let text = fs::read_to_string(path).expect("a text");
        let name = path.file_name().and_then(|n| n.to_str()).expect("a name");
        match Document::parse(name, &text, NO_FILES).and_then(|d| d.plan()) {
            Ok(plan) => plan,
            Err(diagnostics) => panic!("{diagnostics}"),
        }
    }

    #[test]
    fn every_shipped_scenario_can_be_run_without_a_warning() {
        let all: Vec<PathBuf> =
            files("scenarios").into_iter().chain(files("benches/scenarios")).collect();
        assert!(all.len() >= 8, "{all:?}");
        for path in &all {
            let plan = plan(path);
            assert!(plan.warnings.is_empty(), "{}", plan.warnings);
            assert!(!plan.description.is_empty(), "{}", path.display());
            let ids: BTreeSet<&str> = plan.cells.iter().map(|c| c.id.as_str()).collect();
            assert_eq!(
                ids.len(),
                plan.cells.len(),
                "no two cells of {} are the same",
                path.display()
            );
        }
    }

    #[test]
    fn every_resolved_cell_of_the_shipped_scenarios_gives_itself_again() {
        for path in files("scenarios").iter().chain(&files("benches/scenarios")) {
            for cell in plan(path).cells {
                let again = Document::parse("again.toml", &cell.resolved_toml, NO_FILES)
                    .and_then(|d| d.cells())
                    .map(|mut cells| cells.remove(0));
                let again = match again {
                    Ok(again) => again,
                    Err(diagnostics) => panic!("{diagnostics}"),
                };
                assert_eq!(again.scenario, cell.scenario);
                assert_eq!(again.resolved_toml, cell.resolved_toml);
            }
        }
    }

    #[test]
    fn the_arms_of_the_main_scenario_differ_in_what_they_are_about() {
        let plan = plan(&files("scenarios")[0]);
        assert_eq!(plan.name, "abe-codel-pie");
        assert_eq!(plan.axes, ["queue", "rtt", "arm"]);
        assert_eq!(plan.cells.len(), 2 * 3 * 4 * 5);
        let resolved = |queue: &str, arm: &str| {
            let cell = plan.cells.iter().find(|cell| {
                cell.axes[0].label == queue
                    && cell.axes[1].label == "100 ms"
                    && cell.axes[2].label == arm
            });
            cell.expect("such a cell").resolved_toml.clone()
        };
        for (base, abe) in [("NewReno", "NewReno+ABE"), ("CUBIC", "CUBIC+ABE")] {
            let (base, abe) = (resolved("CoDel", base), resolved("CoDel", abe));
            // The base has `beta_ecn = "none"`: its `ecn_in_slow_start` has no effect and is left
            // out.
            let lines = |text: &str| -> Vec<String> {
                let of_ecn = |line: &&str| !line.starts_with("ecn_in_slow_start = ");
                text.lines().filter(of_ecn).map(str::to_owned).collect()
            };
            let (base, abe) = (lines(&base), lines(&abe));
            let differing: Vec<(&String, &String)> =
                base.iter().zip(&abe).filter(|(a, b)| a != b).collect();
            assert_eq!(differing.len(), 1, "only beta_ecn: {differing:?}");
            assert!(differing[0].0.starts_with("beta_ecn = "));
        }
    }
}

/// Former names of keys: files may still use them, and results stored with them are read.
mod former_names {
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
        let expected =
            "`note_delays` is the former name of `record_delays`, which is given as well";
        assert_eq!(messages, [expected]);
    }
}
