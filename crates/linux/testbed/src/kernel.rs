//! State of the kernel for the groups of a scenario besides their sockets: congestion controllers,
//! bounds of timeouts (TCP*(n) with any controller) and misbehaving receivers. Programs of
//! `cwnd-kernel` are loaded for the run.

use std::io::{BufRead as _, BufReader, Read as _};
use std::net::Ipv4Addr;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};

use cwnd_cc::{ControllerParams, c};
use cwnd_scenario::FlowGroup;
use cwnd_schema::{Params as _, ParamsChoice as _, Value as Setting};
use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketFlags, SocketType, socket_with, sockopt};
use serde_json::{Value, json};

use crate::error::Error;
use crate::programs::{self, FeedbackSource};
use crate::unsupported::Timeouts;

/// Kernel state of one group.
#[derive(Debug)]
pub struct KernelState {
    /// Controller that its sockets request.
    pub controller: Controller,
    /// Program that bounds its timeouts, if they differ from the kernel's.
    pub bounds: Option<Bounds>,
    /// Program that makes its receivers misbehave, if they do.
    misbehaviour: Option<Loaded>,
}

impl KernelState {
    /// Loads what needs no namespace, and prepares the rest.
    ///
    /// `object` is compiled from the code of its controller, if that is in C.
    pub fn of(
        group: &FlowGroup,
        program: Option<&Path>,
        object: Option<&Path>,
    ) -> Result<Self, Error> {
        if !group.connects() {
            let controller = Controller { name: group.controller_label(), loaded_controller: None };
            return Ok(Self { controller, bounds: None, misbehaviour: None });
        }
        Ok(Self {
            controller: match (&group.controller, object) {
                (ControllerParams::C(params), Some(object)) => {
                    Controller::of_code(params, object, program)?
                }
                _ => Controller::of(group, program)?,
            },
            bounds: Bounds::of(group, program)?,
            misbehaviour: programs::misbehaviour_arguments(&group.endpoint)
                .map(|words| Loaded::new(words, LoadPlace::ReceiversInterface, program))
                .transpose()?,
        })
    }

    /// Loads what belongs to this end of the group's connections, in the calling thread's
    /// namespace.
    pub fn load_at(&self, end: End, interface: &str, address: Ipv4Addr) -> Result<(), Error> {
        let bounds = self.bounds.as_ref().map(|bounds| &bounds.loaded);
        let mut all =
            [self.controller.loaded(), bounds, self.misbehaviour.as_ref()].into_iter().flatten();
        all.try_for_each(|loaded| loaded.load_at(end, interface, address))
    }
}

/// Counters that any controller of `cwnd-kernel` may have.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Window reductions for ECN-echoes; 0 if the controller reads load factors from them.
    pub ecn: u64,
    /// Window reductions for losses.
    pub loss: u64,
    /// Window reductions for delay; `None` if the controller has none.
    pub delay: Option<u64>,
    /// Window reductions for source quenches; `None` if the controller has none.
    pub quench: Option<u64>,
    /// Source quenches accepted; `None` if the controller receives none.
    pub believed: Option<u64>,
    /// Source quenches refused; `None` if the controller receives none.
    pub refused: Option<u64>,
}

/// All counters of a controller of `cwnd-kernel`.
#[derive(Clone, Debug, Default)]
pub struct Counted {
    /// Common counters.
    pub counts: Counts,
    /// Counters of the mechanism, by their names in the simulator.
    pub named: Vec<(&'static str, u64)>,
}

/// Controller of a group.
#[derive(Debug)]
pub struct Controller {
    /// Name that sockets request.
    pub name: String,
    /// Loaded program, if `cwnd-kernel` loads the controller.
    loaded_controller: Option<LoadedController>,
}

/// A controller of `cwnd-kernel`.
#[derive(Debug)]
struct LoadedController {
    loaded: Loaded,
    /// `true` if an ECN-echo reduces its window.
    reduces_for_ecn: bool,
    /// Names of the mechanism's counters.
    counters: &'static [&'static str],
}

/// State that `cwnd-kernel` keeps in the kernel while its process runs.
#[derive(Debug)]
pub struct Loaded {
    program: PathBuf,
    name: String,
    arguments: Vec<String>,
    place: LoadPlace,
    helper: OnceLock<Helper>,
}

/// Place where the process is started, and its options that describe the place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LoadPlace {
    /// Any namespace, immediately.
    Anywhere,
    /// Senders' namespace, with their interface.
    SendersInterface,
    /// Senders' namespace, with their address.
    SendersAddress,
    /// Receivers' namespace, with their interface and address.
    ReceiversInterface,
    /// Receivers' namespace, with their address.
    ReceiversAddress,
}

/// An end of a group's connections.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// End that sends data.
    Sender,
    /// End that receives data.
    Receiver,
}

/// Process of `cwnd-kernel`, which keeps the state while it runs.
#[derive(Debug)]
struct Helper {
    process: Child,
    /// Standard input; the process ends when it is closed.
    _input: Option<ChildStdin>,
}

/// Number of programs loaded by this process, for unique names.
static NUMBER: AtomicU32 = AtomicU32::new(0);

/// Returns the arguments of `cwnd-kernel` for a group's controller; `None` if it requires none.
pub fn kernel_helper_arguments(group: &FlowGroup) -> Option<Vec<String>> {
    let program = programs::required(&group.controller).next()?;
    let mut words = vec!["hold".to_owned()];
    words.extend(program.words(&group.controller));
    if program.uses_rtt {
        words.extend(programs::rtt_arguments(&group.endpoint));
    }
    if program.feedback == FeedbackSource::Receiver
        && let Some(Setting::Text(echo)) = group.endpoint.get("echo")
    {
        words.extend(["--echo".to_owned(), echo]);
    }
    Some(words)
}

impl Loaded {
    /// Prepares a program under a unique name. It is started now if any place will do, otherwise by
    /// [`Loaded::load_at`]. `program` is the path of `cwnd-kernel`, without which this fails.
    pub fn new(
        mut arguments: Vec<String>,
        place: LoadPlace,
        program: Option<&Path>,
    ) -> Result<Self, Error> {
        let program = program.ok_or(Error::NoKernelHelper)?.to_owned();
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let name = format!("cw{:x}_{number:x}", std::process::id());
        arguments.extend(["--name".to_owned(), name.clone()]);
        let loaded = Self { program, name, arguments, place, helper: OnceLock::new() };
        if place == LoadPlace::Anywhere {
            loaded.start(&[])?;
        }
        Ok(loaded)
    }

    /// Starts the program if this end of the connections, in the calling thread's namespace, is its
    /// place.
    pub fn load_at(&self, end: End, interface: &str, address: Ipv4Addr) -> Result<(), Error> {
        let address = &address.to_string()[..];
        let here: &[&str] = match (self.place, end) {
            (LoadPlace::SendersInterface, End::Sender) => &["--interface", interface],
            (LoadPlace::ReceiversInterface, End::Receiver) => {
                &["--interface", interface, "--address", address]
            }
            (LoadPlace::SendersAddress, End::Sender)
            | (LoadPlace::ReceiversAddress, End::Receiver) => {
                &["--own-namespace", "--address", address]
            }
            _ => return Ok(()),
        };
        self.start(here)
    }

    /// Starts the process, which loads the program in the calling thread's namespace.
    fn start(&self, more: &[&str]) -> Result<(), Error> {
        let failed = |why: String| Error::KernelHelper(self.program.display().to_string(), why);
        let mut process = Command::new(&self.program)
            .args(&self.arguments)
            .args(more)
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
        let mut helper = Helper { process, _input: input };
        if serde_json::from_str::<Value>(&line).is_err() {
            let mut said = String::new();
            if let Some(errors) = &mut helper.process.stderr {
                errors.read_to_string(&mut said).map_err(|e| failed(e.to_string()))?;
            }
            return Err(failed(said.trim().to_owned()));
        }
        // A second process ends at once.
        drop(self.helper.set(helper));
        Ok(())
    }

    /// Returns the program's entry in `cwnd-kernel status`; `None` if it cannot be read.
    pub fn status(&self) -> Option<Value> {
        let output = Command::new(&self.program).args(["status", "--json"]).output().ok()?;
        let said: Value = serde_json::from_slice(&output.stdout).ok()?;
        let statuses = said.get("controllers").unwrap_or(&said).as_array()?;
        let status = statuses
            .iter()
            .find(|status| status.get("name").and_then(Value::as_str) == Some(&self.name))?;
        Some(status.clone())
    }
}

/// Checks that the kernel has a controller. Requesting it for a socket loads its module, if there
/// is one.
fn has(name: &str) -> Result<(), Error> {
    let asked = format!("a socket for the congestion controller {name}");
    let socket = socket_with(AddressFamily::INET, SocketType::STREAM, SocketFlags::CLOEXEC, None)
        .map_err(|error| Error::System(asked.clone(), error.into()))?;
    match sockopt::set_tcp_congestion(&socket, name) {
        Err(Errno::NOENT) => {
            let available = std::fs::read_to_string(AVAILABLE).unwrap_or_default();
            Err(Error::Lacking(lacking(name, &available)))
        }
        done => done.map_err(|error| Error::System(asked, error.into())),
    }
}

const AVAILABLE: &str = "/proc/sys/net/ipv4/tcp_available_congestion_control";

/// Returns a message about a missing controller and how to get it.
fn lacking(name: &str, available: &str) -> String {
    let there = available.split_whitespace().collect::<Vec<_>>().join(", ");
    format!(
        "this kernel has no congestion controller `{name}`, but {there}: \
         `modprobe tcp_{name}` adds it to a kernel that was built with CONFIG_TCP_CONG_{}=m; \
         or run it in the simulator",
        name.to_uppercase()
    )
}

impl Controller {
    /// Provides a group's controller: the kernel's, or one that `program` loads now or once its
    /// place exists.
    pub fn of(group: &FlowGroup, program: Option<&Path>) -> Result<Self, Error> {
        let required = programs::required(&group.controller).next();
        let (Some(of), Some(arguments)) = (required, kernel_helper_arguments(group)) else {
            // A kind that Linux lacks was refused before.
            let name = group.controller.info().linux_name().unwrap_or(group.controller.kind());
            has(name)?;
            return Ok(Self { name: name.to_owned(), loaded_controller: None });
        };
        let place = match of.feedback {
            FeedbackSource::Acks => LoadPlace::Anywhere,
            FeedbackSource::Interface => LoadPlace::SendersInterface,
            FeedbackSource::Receiver => LoadPlace::ReceiversAddress,
        };
        let loaded = Loaded::new(arguments, place, program)?;
        // Echoes of a load are no reason to reduce the window.
        let reduces_for_ecn = of.feedback != FeedbackSource::Receiver;
        let loaded_controller = LoadedController { reduces_for_ecn, counters: of.counters, loaded };
        Ok(Self {
            name: loaded_controller.loaded.name.clone(),
            loaded_controller: Some(loaded_controller),
        })
    }

    /// Loads a controller in C.
    fn of_code(params: &c::Params, object: &Path, program: Option<&Path>) -> Result<Self, Error> {
        let words = programs::code_arguments(params, object);
        let loaded =
            Loaded::new(words, LoadPlace::Anywhere, program).map_err(|error| match error {
                Error::KernelHelper(_, why) => {
                    let why = why.trim_start_matches("error: ").to_owned();
                    Error::Code(params.path.name.clone(), why)
                }
                other => other,
            })?;
        let name = loaded.name.clone();
        let loaded_controller = LoadedController { reduces_for_ecn: true, counters: &[], loaded };
        Ok(Self { name, loaded_controller: Some(loaded_controller) })
    }

    /// Returns the loaded program, if the controller is one of `cwnd-kernel`.
    pub fn loaded(&self) -> Option<&Loaded> {
        self.loaded_controller.as_ref().map(|loaded_controller| &loaded_controller.loaded)
    }

    /// Returns the counters so far; `None` for a controller of the kernel, or if they cannot be
    /// read.
    pub fn counts(&self) -> Option<Counted> {
        let loaded_controller = self.loaded_controller.as_ref()?;
        let status = loaded_controller.loaded.status()?;
        let count = |name: &str| status.get("counters")?.get(name)?.as_u64();
        let sum = |names: &[&str]| names.iter().map(|name| count(name)).sum::<Option<u64>>();
        let named = loaded_controller
            .counters
            .iter()
            .filter_map(|name| Some((*name, count(name)?)))
            .collect();
        let counts = Counts {
            ecn: if loaded_controller.reduces_for_ecn { count("ecn")? } else { 0 },
            loss: count("loss")?,
            delay: count("delay"),
            quench: sum(&["quench_marked", "quench_dropped"]),
            believed: count("quenches"),
            refused: sum(&["outside", "deaf"]),
        };
        Some(Counted { counts, named })
    }
}

impl Drop for Helper {
    fn drop(&mut self) {
        // It may have ended already.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// Bounds of a group's timeouts.
#[derive(Debug)]
pub struct Bounds {
    requested: Timeouts,
    group: String,
    /// Program that sets them.
    pub loaded: Loaded,
}

/// Effect of the bounds in a run.
#[derive(Clone, Debug, Default)]
pub struct BoundsReport {
    /// Requested values and counters of each group, for the manifest.
    pub facts: Vec<Value>,
    /// Notes on timers that never expired and on differences from TCP*(n).
    pub notes: Vec<String>,
    /// Reasons why the run is invalid.
    pub flaws: Vec<String>,
}

impl Bounds {
    /// Prepares the program for a group's timeouts, which is loaded in the senders' namespace.
    /// `None` if they are the kernel's.
    pub fn of(group: &FlowGroup, program: Option<&Path>) -> Result<Option<Self>, Error> {
        let Some(requested) = Timeouts::of(&group.endpoint) else { return Ok(None) };
        let (after, syns) = (requested.after.to_string(), requested.syn_after.to_string());
        let words = ["hold", "tcpstar", "--backoff-after", &after, "--syn-backoff-after", &syns];
        let words = words.map(str::to_owned).to_vec();
        let loaded = Loaded::new(words, LoadPlace::SendersAddress, program)?;
        Ok(Some(Self { requested, group: group.name.clone(), loaded }))
    }
}

/// Returns the effect of all groups' programs; call it while they run.
pub fn bounds_report<'a>(all: impl Iterator<Item = &'a Bounds>) -> BoundsReport {
    let mut found = BoundsReport::default();
    for bounds in all {
        let status = bounds.loaded.status().unwrap_or_default();
        let counters = status.get("counters").cloned().unwrap_or_default();
        let count = |name: &str| counters.get(name).and_then(Value::as_u64).unwrap_or(0);
        let (group, n) = (&bounds.group, bounds.requested.after);
        if count("refused") > 0 {
            found.flaws.push(format!(
                "flow.{group}: the kernel has no bound for timeouts (TCP_RTO_MAX_MS, since 6.15)"
            ));
        }
        if count("timeouts") == 0 {
            found.notes.push(format!("flow.{group}: no timer expired, so TCP*({n}) never acted"));
        } else if bounds.requested.exactly && count("bounded_above") > 0 {
            found.notes.push(format!(
                "flow.{group}: of TCP*({n}) Linux does what `rto_backoff = \"bounded\"` says: \
                 timeouts below 1 s double up to 1 s, \
                 unless fewer than four segments are outstanding"
            ));
        }
        found.facts.push(json!({
            "group": group,
            "backoff_after": n,
            "syn_backoff_after": bounds.requested.syn_after,
            "counters": counters,
        }));
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_controller_that_the_kernel_has_not_is_named_with_those_that_it_has() {
        assert_eq!(
            lacking("htcp", "reno bbr cubic\n"),
            "this kernel has no congestion controller `htcp`, but reno, bbr, cubic: \
             `modprobe tcp_htcp` adds it to a kernel that was built with CONFIG_TCP_CONG_HTCP=m; \
             or run it in the simulator"
        );
        // Every kernel has Reno.
        assert!(has("reno").is_ok());
        let Err(Error::Lacking(message)) = has("no_such_thing") else { panic!() };
        assert!(message.contains("`no_such_thing`, but") && message.contains("reno"), "{message}");
    }
}
