//! Sets the identifiers of simulator and testbed, which results carry, for the extension's build:
//! `CWND_ENGINE` and `CWND_TESTBED` are the version and a hash of the code that decides a result.

#[path = "engine_id.rs"]
mod engine_id;

use std::path::{Path, PathBuf};
use std::{env, fs, io};

/// Crates, and a folder of one, whose code decides the result of a simulated run.
const ENGINE: [&str; 13] = [
    "quantity",
    "packet",
    "schema",
    "schema/derive",
    "cc",
    "aqm",
    "apps",
    "tcp",
    "tables",
    "scenario",
    "link",
    "sim",
    // What passes between the simulator and a user's code.
    "python/src/code",
];
/// Crates whose code, besides the kernel, decides the result of a run on Linux.
const TESTBED: [&str; 11] = [
    "quantity",
    "packet",
    "schema",
    "schema/derive",
    "aqm",
    "apps",
    "tables",
    "scenario",
    "link",
    "linux/router",
    "linux/testbed",
];
fn main() -> io::Result<()> {
    println!("cargo::rustc-env=CWND_ENGINE={}", version(&ENGINE)?);
    println!("cargo::rustc-env=CWND_TESTBED={}", version(&TESTBED)?);
    Ok(())
}

/// Returns the version of the package, and a hash of the sources of some crates and of `Cargo.lock`
/// if there is one.
fn version(of: &[&str]) -> io::Result<String> {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let mut files = Vec::new();
    for name in of {
        let (folder, sources) = (crates.join(name), crates.join(name).join("src"));
        collect(if sources.exists() { &sources } else { &folder }, "rs", &mut files)?;
    }
    let mut sources = files.iter().map(fs::read_to_string).collect::<io::Result<Vec<_>>>()?;
    // The kernel around a controller in C.
    let mut models = Vec::new();
    for extension in ["c", "h"] {
        collect(&crates.join("../python/cwnd/c"), extension, &mut models)?;
    }
    for path in models {
        sources.push(format!("{:?}", fs::read_to_string(path)?));
    }
    // Versions of dependencies decide results, too: a root or a power comes from one of them.
    let lock = crates.join("../Cargo.lock");
    if lock.exists() {
        println!("cargo::rerun-if-changed={}", lock.display());
        // As a string literal it is a token.
        sources.push(format!("{:?}", fs::read_to_string(lock)?));
    }
    let id = engine_id::identify(sources.iter().map(String::as_str)).map_err(|number| {
        let file = files.get(number).map_or("Cargo.lock".into(), |file| file.to_string_lossy());
        io::Error::other(format!("{file} is not Rust"))
    })?;
    Ok(format!("{}+{id}", env!("CARGO_PKG_VERSION")))
}

/// Collects the files below a directory with an extension, in order of their names.
fn collect(directory: &Path, extension: &str, files: &mut Vec<PathBuf>) -> io::Result<()> {
    println!("cargo::rerun-if-changed={}", directory.display());
    let mut entries = fs::read_dir(directory)?
        .map(|entry| entry.map(|e| e.path()))
        .collect::<io::Result<Vec<_>>>()?;
    entries.sort();
    for path in entries {
        if path.is_dir() {
            collect(&path, extension, files)?;
        } else if path.extension().is_some_and(|e| e == extension) {
            files.push(path);
        }
    }
    Ok(())
}
