//! Layering: the dependencies that each crate may have, and the names that pure crates and generic
//! code must not mention. Length of source files.

use std::fs;
use std::path::{Path, PathBuf};

/// Each crate with the workspace crates that it may depend on, from the lowest layer up.
const ALLOWED: [(&str, &[&str]); 20] = [
    ("quantity", &[]),
    ("memory", &[]),
    ("packet", &["quantity", "memory"]),
    // Proc-macro crate of `schema`.
    ("derive", &[]),
    ("schema", &["quantity", "derive"]),
    ("cc", &["quantity", "schema", "packet"]),
    ("extension", &["quantity", "schema", "packet", "cc"]),
    ("aqm", &["quantity", "schema", "packet"]),
    ("apps", &["quantity", "schema", "packet"]),
    ("tables", &["quantity", "memory"]),
    ("tcp", &["quantity", "schema", "packet", "memory", "cc"]),
    ("scenario", &["quantity", "schema", "packet", "cc", "aqm", "apps", "tcp"]),
    ("link", &["quantity", "schema", "packet", "aqm", "tables", "scenario"]),
    (
        "sim",
        &[
            "quantity", "schema", "memory", "cc", "aqm", "apps", "tcp", "tables", "packet",
            "scenario", "link",
        ],
    ),
    ("play", &["schema", "tables", "scenario", "sim"]),
    ("router", &["quantity", "schema", "aqm", "tables", "packet", "scenario", "link"]),
    ("infer", &["quantity", "tables", "packet"]),
    // Not part of the workspace: its manifest is a workspace of its own.
    ("kernel", &[]),
    (
        "testbed",
        &[
            "quantity", "schema", "packet", "cc", "aqm", "apps", "tcp", "tables", "scenario",
            "router",
        ],
    ),
    (
        "python",
        &[
            "quantity",
            "schema",
            "cc",
            "aqm",
            "apps",
            "tcp",
            "tables",
            "packet",
            "scenario",
            "link",
            "sim",
            "router",
            "testbed",
            "infer",
            "extension",
        ],
    ),
];

/// Further crates that the tests of a crate may depend on.
const ALLOWED_IN_TESTS: [(&str, &[&str]); 2] = [
    // Tests compare the departures of router and simulator to the nanosecond, and feed packets from
    // a device to the endpoint.
    ("router", &["sim", "tcp", "cc"]),
    // Tests compare the flows that testbed and simulator start.
    ("testbed", &["sim"]),
];

/// Crates that use no clock, thread, file, environment, socket, process or hash table.
const PURE: [&str; 11] = [
    "quantity", "schema", "cc", "aqm", "apps", "tcp", "tables", "packet", "scenario", "link", "sim",
];

/// Names that a pure crate must not mention.
const IMPURE: [&str; 10] = [
    "std::time",
    "Instant",
    "SystemTime",
    "std::thread",
    "std::fs",
    "std::env",
    "std::net",
    "std::process",
    "HashMap",
    "HashSet",
];

/// Limit on the lines of a source file.
const LONGEST_FILE: usize = 550;

pub fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("the workspace").to_owned()
}

/// Returns the files below a folder that have one of these extensions, sorted. Skips hidden
/// folders, `target` and `out`; a missing folder has none.
pub fn sources(folder: &Path, extensions: &[&str]) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let Ok(entries) = fs::read_dir(folder) else { return found };
    for entry in entries {
        let path = entry.expect("a folder can be listed").path();
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        if path.is_dir() && !name.starts_with('.') && name != "target" && name != "out" {
            found.extend(sources(&path, extensions));
        } else if path.extension().is_some_and(|e| extensions.iter().any(|x| e == *x)) {
            found.push(path);
        }
    }
    found.sort();
    found
}

/// Returns each crate below `crates`: the name of its folder, which is the crate's without `cwnd-`,
/// and the folder.
pub fn crates() -> Vec<(String, PathBuf)> {
    let mut manifests = sources(&root().join("crates"), &["toml"]);
    manifests.retain(|file| file.ends_with("Cargo.toml"));
    let named = manifests.iter().map(|file| {
        let folder = file.parent().expect("a file is in a folder").to_owned();
        (folder.file_name().expect("a crate's folder").to_string_lossy().into_owned(), folder)
    });
    named.collect()
}

/// Returns the workspace crates, without `cwnd-`, that a manifest lists under these kinds of
/// dependencies.
fn needs(manifest: &toml::Table, kinds: &[&str]) -> Vec<String> {
    let mut needs = Vec::new();
    for kind in kinds {
        let Some(list) = manifest.get(*kind).and_then(toml::Value::as_table) else { continue };
        needs.extend(list.keys().filter_map(|name| name.strip_prefix("cwnd-").map(str::to_owned)));
    }
    needs
}

#[test]
fn every_crate_needs_only_those_below_it() {
    let mut wrong = Vec::new();
    let mut checked = 0;
    for (name, folder) in crates() {
        let text = fs::read_to_string(folder.join("Cargo.toml")).expect("a manifest is text");
        let manifest: toml::Table = text.parse().expect("a manifest is TOML");
        checked += 1;
        let Some((_, allowed)) = ALLOWED.iter().find(|(from, _)| *from == name) else {
            wrong.push(format!("{name} is not in the list"));
            continue;
        };
        for needed in needs(&manifest, &["dependencies", "build-dependencies"]) {
            if !allowed.contains(&needed.as_str()) {
                wrong.push(format!("{name} → {needed}"));
            }
        }
        let in_tests =
            ALLOWED_IN_TESTS.iter().find(|(of, _)| *of == name).map_or(&[][..], |(_, w)| w);
        for needed in needs(&manifest, &["dev-dependencies"]) {
            if !allowed.contains(&needed.as_str()) && !in_tests.contains(&needed.as_str()) {
                wrong.push(format!("tests of {name} → {needed}"));
            }
        }
        // Pure crates have no dependencies for one platform.
        let pure = PURE.contains(&name.as_str());
        assert!(!(pure && manifest.contains_key("target")), "{name}: dependencies of one platform");
    }
    assert!(wrong.is_empty(), "dependencies that are not allowed: {}", wrong.join(", "));
    assert!(checked >= 8, "the search found {checked} crates");
}

#[test]
fn the_allowed_dependencies_form_layers() {
    for (i, (name, allowed)) in ALLOWED.iter().enumerate() {
        for needed in *allowed {
            let below = ALLOWED[..i].iter().any(|(earlier, _)| earlier == needed);
            assert!(below, "{name} → {needed} leads up");
        }
    }
}

#[test]
fn pure_crates_mention_no_clock_no_thread_no_file_and_no_environment() {
    let mut wrong = Vec::new();
    for name in PURE {
        let files = sources(&root().join("crates").join(name).join("src"), &["rs"]);
        assert!(!files.is_empty(), "{name} has sources");
        for file in files {
            let text = fs::read_to_string(&file).expect("a source file is text");
            for (i, line) in text.lines().enumerate() {
                let code = line.split("//").next().unwrap_or_default();
                wrong.extend(
                    IMPURE
                        .iter()
                        .filter(|word| code.contains(**word))
                        .map(|word| format!("{}:{}: {word}", file.display(), i + 1)),
                );
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn no_source_file_is_too_long_to_read() {
    let mut wrong = Vec::new();
    let mut files = 0;
    for folder in ["crates", "tests", "fuzz", "python", "benches", "scripts"] {
        for file in sources(&root().join(folder), &["rs", "py"]) {
            files += 1;
            let lines = fs::read_to_string(&file).expect("a source file is text").lines().count();
            if lines > LONGEST_FILE {
                wrong.push(format!("{}: {lines} lines", file.display()));
            }
        }
    }
    assert!(files > 50, "the search found {files} files");
    assert!(wrong.is_empty(), "over {LONGEST_FILE} lines: {}", wrong.join(", "));
}

/// Files that may name ABE, by the start of their path: controllers, their kernel variants with
/// the programs that load them, the queue preset of ABE's paper, and keys and pages that give ABE
/// as an example.
const KNOW_ABE: [&str; 7] = [
    "cc/src/",
    "linux/kernel/",
    "aqm/src/pie.rs",
    "scenario/src/flow_keys.rs",
    "scenario/src/reference.rs",
    "scenario/src/run.rs",
    "linux/testbed/src/programs.rs",
];

#[test]
fn generic_code_knows_no_mechanism_by_name() {
    let crates = root().join("crates");
    let mut wrong = Vec::new();
    for file in sources(&crates, &["rs"]) {
        let inside = file.strip_prefix(&crates).expect("it was found there").display().to_string();
        let is_test = !inside.contains("/src/") || inside.ends_with("/tests.rs");
        if KNOW_ABE.iter().any(|home| inside.starts_with(home)) || is_test {
            continue;
        }
        let text = fs::read_to_string(&file).expect("a source file is text");
        let code = text.split("#[cfg(test)]\nmod ").next().unwrap_or_default();
        for (i, line) in code.lines().enumerate() {
            let line = line.split("//").next().unwrap_or_default();
            let words = line.split(|c: char| !c.is_alphanumeric() && c != '_');
            if words.into_iter().any(|w| w == "ABE" || w.starts_with("abe") || w == "beta_ecn") {
                wrong.push(format!("{inside}:{}: {}", i + 1, line.trim()));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
