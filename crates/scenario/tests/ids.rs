//! Stability of ids and resolved texts, by which stored results are found.

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

use cwnd_scenario::{Document, Plan};

mod stored;

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
    stored::check("crates/scenario/tests/ids.snap", &text);
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
        stored::check(&stored, &texts.join("\n"));
    }
}
