//! Compiles the programs of `bpf`, which the loader contains, and those of the tests. Needs clang,
//! llvm-strip and libbpf's headers (Debian: clang llvm libbpf-dev).

use std::path::PathBuf;
use std::process::Command;
use std::{env, fs};

/// Options of clang. The CPU is one that 6.1 knows; no path of this machine is in an object.
const OPTIONS: &str = "-target bpf -mcpu=v2 -O2 -g -Wall -Wextra -Werror -Wno-unused-parameter \
                       -Ibpf -fdebug-compilation-dir=.";

fn main() {
    if let Err(message) = compile() {
        // Cargo shows these alone, and fails. After a failed exit it would show all output.
        for line in message.lines() {
            println!("cargo::error={line}");
        }
    }
}

/// Compiles all programs into `OUT_DIR`. The error is a message for the user.
fn compile() -> Result<(), String> {
    let clang = tool("CLANG", "clang");
    let version = run(Command::new(&clang).arg("-dumpversion"))?;
    let mut strip = tool("LLVM_STRIP", "llvm-strip");
    if run(Command::new(&strip).arg("--version")).is_err() {
        // Debian names it after its version only.
        strip = format!("llvm-strip-{}", version.split('.').next().unwrap_or_default());
    }
    let out = PathBuf::from(variable("OUT_DIR").ok_or("cargo sets no OUT_DIR")?);
    println!("cargo::rerun-if-changed=bpf");
    for directory in ["bpf", "tests/suite"] {
        for name in programs(directory)? {
            let source = format!("{directory}/{name}.bpf.c");
            let object = out.join(format!("{name}.bpf.o"));
            println!("cargo::rerun-if-changed={source}");
            let mut compiler = Command::new(&clang);
            compiler.args(OPTIONS.split(' '));
            compiler.arg(concat!("-ffile-prefix-map=", env!("CARGO_MANIFEST_DIR"), "=."));
            run(compiler.args(["-c", &source, "-o"]).arg(&object))?;
            // The kernel reads types from .BTF; the rest of -g is not for it.
            run(Command::new(&strip).arg("--strip-debug").arg(&object))?;
        }
    }
    Ok(())
}

/// Returns the names of the programs in a directory of this crate.
fn programs(directory: &str) -> Result<Vec<String>, String> {
    let entries = fs::read_dir(directory).map_err(|error| format!("{directory}: {error}"))?;
    let names = entries.filter_map(|entry| entry.ok()?.file_name().into_string().ok());
    Ok(names.filter_map(|name| Some(name.strip_suffix(".bpf.c")?.to_owned())).collect())
}

/// Returns the name of a tool, which a variable of the environment can replace.
fn tool(name: &str, default: &str) -> String {
    println!("cargo::rerun-if-env-changed={name}");
    variable(name).unwrap_or_else(|| default.to_owned())
}

/// Returns a variable of the environment, unless it is empty.
#[expect(clippy::disallowed_methods, reason = "a build script has no other arguments")]
fn variable(name: &str) -> Option<String> {
    env::var(name).ok().filter(|value| !value.is_empty())
}

/// Runs a command and returns its output. The error is what the command reports.
fn run(command: &mut Command) -> Result<String, String> {
    let name = command.get_program().to_string_lossy().into_owned();
    let output = command.output().map_err(|error| {
        format!("{name}: {error}; the controllers need it: apt install clang llvm libbpf-dev")
    })?;
    if output.status.success() {
        return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
    }
    let errors = String::from_utf8_lossy(&output.stderr);
    Err(format!("{name} failed ({})\n{errors}", output.status))
}
