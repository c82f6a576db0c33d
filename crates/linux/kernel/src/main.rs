//! `cwnd-kernel`: congestion controllers in the Linux kernel, for operators and for the testbed.

mod attach;
mod error;
mod family;
mod info_map;
mod load;
mod log;
mod machine;
mod name;
mod options;
mod own;
mod settings;

use std::io::{IsTerminal as _, Read as _, Write as _};
use std::os::unix::net::UnixStream;
use std::process::ExitCode;

use clap::{Parser, Subcommand};
use libbpf_rs::PrintLevel;
use rustix::event::{PollFd, PollFlags, poll};
use rustix::process::{PidfdFlags, getppid, pidfd_open};
use serde_json::{Value, json};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};

use error::Error;
use family::{Controller, Kind};
use info_map::ControllerInfo;
use load::Loaded;
use options::Request;

/// Prints a line as std's macro, which panics if the reader has closed the pipe.
macro_rules! println {
    ($($text:tt)*) => { drop(writeln!(std::io::stdout(), $($text)*)) };
}

/// Prints a text; see `println`.
macro_rules! print {
    ($($text:tt)*) => { drop(write!(std::io::stdout(), $($text)*)) };
}

/// Loads congestion controllers into the Linux kernel: Reno and CUBIC with ABE (RFC 8511), with
/// adaptive backoff, or with source quenches (BECN); delay-based AIMD; BMCC; and timeouts that do
/// not back off at first (TCP*(n)). For laboratories a receiver that cheats about timestamps, too.
///
/// A loaded controller is used by nothing until a socket, a route or a sysctl names it.
#[derive(Parser)]
#[command(version, after_help = EXIT_CODES)]
struct Cli {
    #[command(subcommand)]
    command: Command,
    /// Show all output of libbpf and the kernel's verifier.
    #[arg(long, global = true)]
    verbose: bool,
}

#[derive(Subcommand)]
enum Command {
    /// Load a controller for as long as this command runs, or with --pin until `unload`.
    Load {
        #[command(flatten)]
        request: Request,
        /// Keep it in the kernel after this command ends.
        #[arg(long)]
        pin: bool,
    },
    /// Load a controller for a program. Prints one line of JSON when it is loaded, and one with its
    /// counters at the end. It ends with SIGTERM or with the program that started it.
    Hold {
        #[command(flatten)]
        request: Request,
    },
    /// Show the loaded controllers, how many sockets use each, and their counters.
    Status {
        /// Only the controller of this name.
        name: Option<String>,
        /// Machine-readable output.
        #[arg(long)]
        json: bool,
    },
    /// Take a pinned controller out of the kernel; sockets that use it keep it until they close.
    Unload {
        /// Name of the controller.
        name: String,
    },
    /// Check that this machine can load controllers.
    Check,
}

fn main() -> ExitCode {
    let cli = Cli::parse();
    let print = if cli.verbose { log::print } else { log::keep };
    libbpf_rs::set_print(Some((PrintLevel::Debug, print)));
    match run(&cli.command) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            if matches!(error, Error::Refused { .. }) {
                log::warnings().iter().for_each(|line| eprintln!("  {line}"));
            }
            if let Some(hint) = error.hint() {
                eprintln!("  = help: {hint}");
            }
            ExitCode::from(error.exit_code())
        }
    }
}

fn run(command: &Command) -> Result<(), Error> {
    match command {
        Command::Load { request, pin: false } => hold(request, false),
        Command::Load { request, pin: true } => pin(request),
        Command::Hold { request } => hold(request, true),
        Command::Status { name, json } => status(name.as_deref(), *json),
        Command::Unload { name } => unload(name),
        Command::Check => check(),
    }
}

fn hold(request: &Request, as_json: bool) -> Result<(), Error> {
    let plan = request.plan()?;
    let end = End::new()?;
    let loaded = Loaded::new(&plan)?;
    if as_json {
        line(&ready(&loaded)?)?;
    } else {
        println!("{} is loaded; it goes when this command ends (Ctrl-C)", plan.name);
    }
    end.wait()?;
    let controller_info = loaded.controller_info()?;
    drop(loaded);
    match controller_info {
        Some(controller_info) if as_json => line(&event("end", &controller_info)),
        Some(controller_info) => {
            println!();
            table(&[controller_info]);
            Ok(())
        }
        None => Ok(()),
    }
}

fn ready(loaded: &Loaded) -> Result<Value, Error> {
    let controller_info = loaded.controller_info()?.ok_or_else(|| Error::Refused {
        what: "to read a card".to_owned(),
        why: "its layout is another".to_owned(),
    })?;
    let mut value = event("ready", &controller_info);
    value["by_link"] = json!(loaded.by_link);
    value["kernel"] = json!(machine::release());
    Ok(value)
}

fn event(name: &str, controller_info: &ControllerInfo) -> Value {
    let mut value = controller_info.json();
    value["event"] = json!(name);
    value
}

/// Prints one line of JSON and flushes it. A reader that has closed the pipe is no error.
fn line(value: &Value) -> Result<(), Error> {
    let mut out = std::io::stdout().lock();
    match writeln!(out, "{value}").and_then(|()| out.flush()) {
        Err(error) if error.kind() == std::io::ErrorKind::BrokenPipe => Ok(()),
        other => Ok(other?),
    }
}

fn pin(request: &Request) -> Result<(), Error> {
    let plan = request.plan()?;
    if plan.by_link() {
        load::bpffs()?;
    }
    let kept = Loaded::new(&plan)?.pin(&plan.name)?;
    match kept {
        Some(path) => println!("{} is loaded, and pinned at {}", plan.name, path.display()),
        None => println!("{} is loaded, until it is unloaded", plan.name),
    }
    println!("to back out: cwnd-kernel unload {}", plan.name);
    Ok(())
}

fn status(name: Option<&str>, as_json: bool) -> Result<(), Error> {
    machine::check_privileges()?;
    let names = machine::controllers()?;
    let infos: Vec<ControllerInfo> = info_map::all()?
        .into_iter()
        .filter(|controller_info| name.is_none_or(|name| controller_info.name == name))
        .collect();
    let others: Vec<String> = info_map::of_other_versions()
        .into_iter()
        .filter(|other| name.is_none_or(|name| other == name))
        .collect();
    if as_json {
        let others = others.iter().map(|name| json!({ "name": name, "other_version": true }));
        let rows: Vec<Value> = infos
            .iter()
            .map(|controller_info| {
                let mut row = controller_info.json();
                row["registered"] =
                    json!(controller_info.table == 0 || names.contains(&controller_info.name));
                row["pinned"] = json!(load::pin_path(&controller_info.name).exists());
                row
            })
            .chain(others)
            .collect();
        return line(&json!(rows));
    }
    for other in &others {
        println!("{}", Error::OtherVersion(other.clone()));
    }
    if infos.is_empty() {
        return match name {
            _ if !others.is_empty() => Ok(()),
            Some(name) => Err(Error::Unknown(name.to_owned())),
            None => {
                println!(
                    "no controller of this program is loaded; the kernel has {}",
                    names.join(", ")
                );
                Ok(())
            }
        };
    }
    table(&infos);
    for controller_info in infos.iter().filter(|controller_info| {
        controller_info.table != 0 && !names.contains(&controller_info.name)
    }) {
        let kept = match controller_info.sockets() {
            Some(0) => {
                "nothing uses it; a killed loader left it at an interface, \
                 until the next comes there"
            }
            _ => "its sockets keep it until they close",
        };
        println!("{} is unloaded; {kept}", controller_info.name);
    }
    Ok(())
}

fn unload(name: &str) -> Result<(), Error> {
    machine::check_privileges()?;
    match load::unload(name)?.and_then(|controller_info| controller_info.sockets()) {
        Some(sockets @ 1..) => {
            println!("{name} is unloaded; {sockets} sockets use it until they close");
        }
        _ => println!("{name} is unloaded"),
    }
    Ok(())
}

/// Checks that the kernel accepts the programs, by loading them. They are unloaded at once, and no
/// name is registered.
fn check() -> Result<(), Error> {
    for controller in Controller::all() {
        Request::of(*controller).plan()?.programs()?;
    }
    Ok(())
}

/// Prints one table for each family among the controllers.
fn table(infos: &[ControllerInfo]) {
    let mut left: Vec<&ControllerInfo> = infos.iter().collect();
    let mut first = true;
    while let Some(controller_info) = left.first() {
        let family = controller_info.controller.family();
        let (these, others): (Vec<&ControllerInfo>, Vec<&ControllerInfo>) =
            left.iter().partition(|controller_info| controller_info.controller.family() == family);
        if !first {
            println!();
        }
        first = false;
        family_table(&these);
        left = others;
    }
    if std::io::stdout().is_terminal() {
        println!(
            "reductions by cause; columns: docs/how-to/kernel.md; local: the sender's own queue"
        );
    }
}

fn family_table(infos: &[&ControllerInfo]) {
    let columns = infos
        .first()
        .map_or(&[][..], |controller_info| controller_info.controller.family().columns);
    print!("{:<15} {:<14} {:>7}", "name", "controller", "sockets");
    for (title, _) in columns {
        print!(" {title:>8}");
    }
    println!("  settings");
    for controller_info in infos {
        print!(
            "{:<15} {:<14} {:>7}",
            controller_info.name,
            controller_info.controller.name(),
            controller_info.sockets().map_or("-".to_owned(), |sockets| sockets.to_string())
        );
        for (_, counter) in columns {
            print!(" {:>8}", controller_info.count(counter));
        }
        println!("  {}", settings_text(controller_info));
    }
}

/// Returns the settings of a controller in the form of options.
fn settings_text(controller_info: &ControllerInfo) -> String {
    let settings =
        controller_info.controller.family().settings.iter().zip(controller_info.settings);
    if let Some(variables) = controller_info.variables() {
        return variables;
    }
    let words = settings.filter(|(setting, _)| setting.kind.has_option());
    let words = words.map(|(setting, word)| match settings::to_json(setting, word) {
        Value::String(text) if setting.kind != Kind::Address => text,
        Value::String(text) => format!("{} {text}", setting.name),
        other => format!("{} {other}", setting.name),
    });
    words.collect::<Vec<_>>().join(", ")
}

/// Sources of the end of a hold. Created before anything is loaded, so that no signal is missed.
#[derive(Debug)]
struct End {
    signals: UnixStream,
    parent: Option<rustix::fd::OwnedFd>,
}

impl End {
    /// Installs the signal handlers and watches the parent.
    ///
    /// # Errors
    /// Fails if no more files can be opened.
    fn new() -> Result<Self, Error> {
        let (signals, write) = UnixStream::pair()?;
        for signal in [SIGTERM, SIGINT, SIGHUP] {
            signal_hook::low_level::pipe::register(signal, write.try_clone()?)?;
        }
        // Not PR_SET_PDEATHSIG, which is sent when the parent's *thread* ends.
        let parent = getppid().and_then(|parent| pidfd_open(parent, PidfdFlags::empty()).ok());
        Ok(Self { signals, parent })
    }

    /// Waits for the first signal or the end of the parent.
    ///
    /// # Errors
    /// Fails if the wait fails.
    fn wait(mut self) -> Result<(), Error> {
        loop {
            let mut watched = vec![PollFd::new(&self.signals, PollFlags::IN)];
            if let Some(parent) = &self.parent {
                watched.push(PollFd::new(parent, PollFlags::IN));
            }
            match poll(&mut watched, None) {
                Ok(_) => break,
                Err(rustix::io::Errno::INTR) => {}
                Err(error) => return Err(std::io::Error::from(error).into()),
            }
        }
        self.signals.set_nonblocking(true)?;
        let _ = self.signals.read(&mut [0; 8]);
        Ok(())
    }
}

const EXIT_CODES: &str = "Exit codes: 0 ok, 1 failed, 2 usage, 3 the machine lacks something.";
