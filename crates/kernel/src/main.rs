//! `cwnd-kernel`: ABE in the Linux kernel, for operators and for the testbed.

mod card;
mod error;
mod load;
mod machine;
mod name;
mod wait;

use std::io::{IsTerminal as _, Write as _};
use std::process::ExitCode;
use std::sync::Mutex;

use clap::{Args, Parser, Subcommand, ValueEnum};
use libbpf_rs::PrintLevel;
use serde_json::{Value, json};

use card::{Card, Settings};
use error::Error;
use load::{Controller, Loaded, Plan};
use wait::End;

/// Loads congestion controllers into the Linux kernel: Reno and CUBIC with ABE (RFC 8511).
///
/// A loaded controller is used by nothing until a socket, a route or a sysctl names it.
#[derive(Parser)]
#[command(version, after_help = EXIT_CODES)]
struct Cli {
    #[command(subcommand)]
    command: Command,
    /// What libbpf and the kernel's verifier say.
    #[arg(long, global = true)]
    verbose: bool,
}

#[derive(Subcommand)]
enum Command {
    /// Load a controller for as long as this command runs, or with --pin until `unload`.
    Load {
        #[command(flatten)]
        what: What,
        /// Leave it in the kernel.
        #[arg(long)]
        pin: bool,
    },
    /// Load a controller for a program: one line of JSON when it is there, one with its counters at the end, which comes
    /// with SIGTERM or with the end of the program that started this.
    Hold {
        #[command(flatten)]
        what: What,
    },
    /// Show what is loaded, how many sockets use it, and what it counted.
    Status {
        /// Only this one.
        name: Option<String>,
        /// Machine-readable output.
        #[arg(long)]
        json: bool,
    },
    /// Take a pinned controller out of the kernel; sockets that use it keep it until they close.
    Unload {
        /// Its name.
        name: String,
    },
    /// Look whether this machine can load controllers.
    Check,
}

#[derive(Args)]
struct What {
    controller: Controller,
    /// What sockets ask for, at most 15 bytes [default: the controller's name].
    #[arg(long)]
    name: Option<String>,
    /// Part of the window that stays after an ECN-echo [default: 0.8 for Reno, 0.85 for CUBIC].
    #[arg(long)]
    beta_ecn: Option<String>,
    /// When it answers an ECN-echo: in congestion avoidance only (RFC 8511), or also where one ends slow start (its paper).
    #[arg(long, value_enum, default_value_t = Mode::Avoidance)]
    mode: Mode,
    /// What a loss does in a window that an ECN-echo has reduced: nothing more (as in Linux), or what it does alone.
    #[arg(long, value_enum, default_value_t = LossAfterEcn::Once)]
    loss_after_ecn: LossAfterEcn,
    /// Let its sockets negotiate ECN whatever net.ipv4.tcp_ecn says; they then send all their packets as ECN-capable.
    #[arg(long)]
    request_ecn: bool,
    /// Let any user's sockets choose it.
    #[arg(long)]
    any_user: bool,
    /// Register it as kernels before 6.4 do.
    #[arg(long, hide = true)]
    without_link: bool,
}

#[derive(Clone, Copy, ValueEnum)]
enum Mode {
    Avoidance,
    Always,
}

#[derive(Clone, Copy, ValueEnum)]
enum LossAfterEcn {
    Once,
    Deepen,
}

impl What {
    /// With all that can be left out.
    const fn of(controller: Controller) -> Self {
        Self {
            controller,
            name: None,
            beta_ecn: None,
            mode: Mode::Avoidance,
            loss_after_ecn: LossAfterEcn::Once,
            request_ecn: false,
            any_user: false,
            without_link: false,
        }
    }

    /// What is asked for, on this machine.
    fn plan(&self) -> Result<Plan, Error> {
        load::check_name(self.name.as_deref().unwrap_or(self.controller.name()))?;
        let beta = self.beta_ecn.as_deref().unwrap_or(self.controller.beta_ecn());
        let beta_ecn = billionths(beta)?;
        machine::rights()?;
        Ok(Plan {
            controller: self.controller,
            name: self.name.clone().unwrap_or_else(|| self.controller.name().to_owned()),
            settings: Settings {
                beta_ecn,
                always: matches!(self.mode, Mode::Always),
                deepen: matches!(self.loss_after_ecn, LossAfterEcn::Deepen),
                hz: machine::hz(),
            },
            request_ecn: self.request_ecn,
            any_user: self.any_user,
            without_link: self.without_link,
            kernel: machine::kernel()?,
        })
    }
}

/// As crates/cc rounds its factors.
fn billionths(text: &str) -> Result<u32, Error> {
    match text.parse::<f64>() {
        Ok(beta) if beta > 0.0 && beta < 1.0 => Ok((beta * 1e9 + 0.5) as u32),
        _ => Err(Error::Factor(text.to_owned())),
    }
}

fn main() -> ExitCode {
    let cli = Cli::parse();
    let print = if cli.verbose { show } else { keep };
    libbpf_rs::set_print(Some((PrintLevel::Debug, print)));
    match run(&cli.command) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            if matches!(error, Error::Refused { .. })
                && let Ok(said) = SAID.lock()
            {
                for line in said.iter() {
                    eprintln!("  {line}");
                }
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
        Command::Load { what, pin: false } => hold(what, false),
        Command::Load { what, pin: true } => pin(what),
        Command::Hold { what } => hold(what, true),
        Command::Status { name, json } => status(name.as_deref(), *json),
        Command::Unload { name } => unload(name),
        Command::Check => check(),
    }
}

fn hold(what: &What, as_json: bool) -> Result<(), Error> {
    let plan = what.plan()?;
    let end = End::new()?;
    let loaded = Loaded::new(&plan)?;
    if as_json {
        line(&ready(&loaded)?)?;
    } else {
        println!("{} is loaded; it goes when this command ends (Ctrl-C)", plan.name);
    }
    end.wait()?;
    let card = loaded.card()?;
    drop(loaded);
    match card {
        Some(card) if as_json => line(&event("end", &card)),
        Some(card) => {
            println!();
            table(&[card]);
            Ok(())
        }
        None => Ok(()),
    }
}

fn ready(loaded: &Loaded) -> Result<Value, Error> {
    let card = loaded.card()?.ok_or_else(|| Error::Refused {
        what: "to read a card".to_owned(),
        why: "its layout is another".to_owned(),
    })?;
    let mut value = event("ready", &card);
    value["by_link"] = json!(loaded.by_link);
    value["kernel"] = json!(machine::release());
    Ok(value)
}

fn event(name: &str, card: &Card) -> Value {
    let mut value = card.json();
    value["event"] = json!(name);
    value
}

/// One line at once, whoever reads.
fn line(value: &Value) -> Result<(), Error> {
    let mut out = std::io::stdout().lock();
    match writeln!(out, "{value}").and_then(|()| out.flush()) {
        Err(error) if error.kind() == std::io::ErrorKind::BrokenPipe => Ok(()),
        other => Ok(other?),
    }
}

fn pin(what: &What) -> Result<(), Error> {
    let plan = what.plan()?;
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
    machine::rights()?;
    let names = machine::controllers()?;
    let cards: Vec<Card> =
        card::all()?.into_iter().filter(|card| name.is_none_or(|name| card.name == name)).collect();
    if as_json {
        let rows: Vec<Value> = cards
            .iter()
            .map(|card| {
                let mut row = card.json();
                row["registered"] = json!(names.contains(&card.name));
                row["pinned"] = json!(load::pin_path(&card.name).exists());
                row
            })
            .collect();
        return line(&json!(rows));
    }
    if cards.is_empty() {
        return match name {
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
    table(&cards);
    for card in cards.iter().filter(|card| !names.contains(&card.name)) {
        println!("{} is unloaded; its sockets keep it until they close", card.name);
    }
    Ok(())
}

fn table(cards: &[Card]) {
    println!(
        "{:<15} {:<10} {:>6} {:<9} {:>8} {:>8} {:>8} {:>8} {:>8} {:>8}",
        "name",
        "controller",
        "β_ecn",
        "mode",
        "sockets",
        "ECN",
        "loss",
        "after",
        "timeout",
        "local"
    );
    for card in cards {
        let c = &card.counters;
        println!(
            "{:<15} {:<10} {:>6} {:<9} {:>8} {:>8} {:>8} {:>8} {:>8} {:>8}",
            card.name,
            card.controller,
            f64::from(card.settings.beta_ecn) / 1e9,
            if card.settings.always { "always" } else { "avoidance" },
            card.sockets(),
            c.ecn,
            c.loss,
            c.loss_after_ecn,
            c.timeout,
            c.local,
        );
    }
    if std::io::stdout().is_terminal() {
        println!(
            "reductions by cause; after: losses in windows that ECN had reduced; local: the sender's own queue"
        );
    }
}

fn unload(name: &str) -> Result<(), Error> {
    machine::rights()?;
    match load::unload(name)? {
        Some(card) if card.sockets() > 0 => {
            println!("{name} is unloaded; {} sockets use it until they close", card.sockets());
        }
        _ => println!("{name} is unloaded"),
    }
    Ok(())
}

/// The kernel says whether it takes programs only by taking them; they go again at once, and no name is registered.
fn check() -> Result<(), Error> {
    for controller in Controller::value_variants() {
        What::of(*controller).plan()?.programs()?;
    }
    Ok(())
}

/// The last that libbpf said, for an error that only it can explain.
static SAID: Mutex<Vec<String>> = Mutex::new(Vec::new());

fn keep(level: PrintLevel, text: String) {
    if level == PrintLevel::Warn
        && let Ok(mut said) = SAID.lock()
    {
        said.extend(text.lines().map(str::to_owned));
        let extra = said.len().saturating_sub(LINES_KEPT);
        said.drain(..extra);
    }
}

fn show(_: PrintLevel, text: String) {
    eprint!("{text}");
}

/// The end of a verifier's log says why.
const LINES_KEPT: usize = 12;
const EXIT_CODES: &str = "Exit codes: 0 ok, 1 failed, 2 usage, 3 the machine lacks something.";
