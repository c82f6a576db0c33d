//! Validity of the scenarios that come with cwnd.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use cwnd_scenario::{Document, Plan};

const NO_FILES: &dyn Fn(&str) -> Result<String, String> = &|name| Err(format!("no file `{name}`"));

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
        assert_eq!(ids.len(), plan.cells.len(), "no two cells of {} are the same", path.display());
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
        // The base has `beta_ecn = "none"`: its `ecn_in_slow_start` has no effect and is left out.
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
