//! Tells the extension which simulator it holds: `CWND_ENGINE` is the version and a hash of all sources that decide
//! what a run gives; `CWND_TESTBED` is the same for runs on Linux.

use std::path::{Path, PathBuf};
use std::{env, fs, io};

/// The crates whose code decides what a run gives.
const ENGINE: [&str; 12] = [
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
];
/// The crates whose code decides what a run on Linux gives, besides the kernel.
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
/// Hexadecimal digits of the hash that tell two builds apart.
const DIGITS: usize = 12;

fn main() -> io::Result<()> {
    println!("cargo::rustc-env=CWND_ENGINE={}", version(&ENGINE)?);
    println!("cargo::rustc-env=CWND_TESTBED={}", version(&TESTBED)?);
    Ok(())
}

/// The version, and a hash of the sources of some crates.
fn version(of: &[&str]) -> io::Result<String> {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let mut files = Vec::new();
    for name in of {
        collect(&crates.join(name).join("src"), &mut files)?;
    }
    // Versions of dependencies: a root or a power comes from one of them.
    let lock = crates.join("../Cargo.lock");
    if lock.exists() {
        println!("cargo::rerun-if-changed={}", lock.display());
        files.push(lock);
    }
    let mut hash = Fnv::new();
    for file in &files {
        let name = file.strip_prefix(&crates).unwrap_or(file).to_string_lossy();
        hash.add(name.as_bytes());
        hash.add(&fs::read(file)?);
    }
    let digits = hash.digits();
    Ok(format!("{}+{}", env!("CARGO_PKG_VERSION"), &digits[..DIGITS]))
}

/// The files below a directory, in order of their names.
fn collect(directory: &Path, files: &mut Vec<PathBuf>) -> io::Result<()> {
    println!("cargo::rerun-if-changed={}", directory.display());
    let mut entries = fs::read_dir(directory)?
        .map(|entry| entry.map(|e| e.path()))
        .collect::<io::Result<Vec<_>>>()?;
    entries.sort();
    for path in entries {
        if path.is_dir() {
            collect(&path, files)?;
        } else if path.extension().is_some_and(|e| e == "rs") {
            files.push(path);
        }
    }
    Ok(())
}

/// 128 bits of FNV-1a; each part ends with its length, so that no two lists of parts are one text.
struct Fnv(u128);

impl Fnv {
    const fn new() -> Self {
        Self(0x6c62_272e_07bb_0142_62b8_2175_6295_c58d)
    }

    fn add(&mut self, bytes: &[u8]) {
        const PRIME: u128 = 0x0000_0000_0100_0000_0000_0000_0000_013b;
        let length = (bytes.len() as u64).to_le_bytes();
        for &byte in bytes.iter().chain(&length) {
            self.0 = (self.0 ^ u128::from(byte)).wrapping_mul(PRIME);
        }
    }

    fn digits(&self) -> String {
        format!("{:032x}", self.0)
    }
}
