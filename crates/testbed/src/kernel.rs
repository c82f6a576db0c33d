//! Which of the kernel's congestion controllers does what a group asks for; those of `cwnd-kernel` are loaded for the run.

use std::io::{BufRead as _, BufReader, Read as _};
use std::iter;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};

use cwnd_cc::ControllerParams;
use cwnd_units::ParamsChoice as _;
use serde_json::Value;

use crate::error::Error;

/// What a controller of ours counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Reductions {
    /// Windows reduced for an ECN-echo.
    pub ecn: u64,
    /// Windows reduced for a loss.
    pub loss: u64,
}

/// A controller that a group uses.
#[derive(Debug)]
pub struct Loaded {
    /// What sockets ask for.
    pub name: String,
    helper: Option<Helper>,
}

/// A process that holds a controller while it lives.
#[derive(Debug)]
struct Helper {
    program: PathBuf,
    process: Child,
    /// Closed with this, and the process ends.
    _input: Option<ChildStdin>,
}

/// Numbers the controllers of this process.
static NUMBER: AtomicU32 = AtomicU32::new(0);

/// What `cwnd-kernel` is to load for a controller; `None` if the kernel's own does it.
pub fn of_our_own(controller: &ControllerParams) -> Option<Vec<String>> {
    let words = controller.stated().on_linux()?.loaded?;
    Some(iter::once("hold".to_owned()).chain(words).collect())
}

/// Provides a controller: the kernel's own, or one that `program` loads.
pub fn load(controller: &ControllerParams, program: Option<&Path>) -> Result<Loaded, Error> {
    let Some(arguments) = of_our_own(controller) else {
        // A kind that Linux does not have was refused before.
        let name = controller.stated().on_linux().map_or(controller.kind(), |linux| linux.own);
        return Ok(Loaded { name: name.to_owned(), helper: None });
    };
    let Some(program) = program else { return Err(Error::NoKernelHelper) };
    let name = format!("cw{:x}_{:x}", std::process::id(), NUMBER.fetch_add(1, Ordering::Relaxed));
    let failed = |why: String| Error::KernelHelper(program.display().to_string(), why);
    let mut process = Command::new(program)
        .args(&arguments)
        .args(["--name", &name])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(|e| failed(e.to_string()))?;
    let input = process.stdin.take();
    let mut line = String::new();
    if let Some(output) = process.stdout.take() {
        BufReader::new(output).read_line(&mut line).map_err(|e| failed(e.to_string()))?;
    }
    let mut helper = Helper { program: program.to_owned(), process, _input: input };
    if serde_json::from_str::<Value>(&line).is_err() {
        let mut said = String::new();
        if let Some(errors) = &mut helper.process.stderr {
            errors.read_to_string(&mut said).map_err(|e| failed(e.to_string()))?;
        }
        return Err(failed(said.trim().to_owned()));
    }
    Ok(Loaded { name, helper: Some(helper) })
}

impl Loaded {
    /// What it counted so far; `None` for a controller of the kernel's own.
    pub fn reductions(&self) -> Option<Reductions> {
        let helper = self.helper.as_ref()?;
        let output = Command::new(&helper.program).args(["status", "--json"]).output().ok()?;
        let said: Value = serde_json::from_slice(&output.stdout).ok()?;
        let cards = said.get("controllers").unwrap_or(&said).as_array()?;
        let card = cards
            .iter()
            .find(|card| card.get("name").and_then(Value::as_str) == Some(&self.name))?;
        let count = |name: &str| card.get("counters")?.get(name)?.as_u64();
        Some(Reductions { ecn: count("ecn")?, loss: count("loss")? })
    }
}

impl Drop for Helper {
    fn drop(&mut self) {
        // It may have ended already.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}
