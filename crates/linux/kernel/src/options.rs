//! Options of the command line.

use std::path::PathBuf;

use clap::Args;

use crate::error::Error;
use crate::family::{self, Controller, NAMESPACE};
use crate::load::Plan;
use crate::own::Own;
use crate::{machine, name, settings};

/// A controller and its options.
#[derive(Args)]
pub struct Request {
    #[arg(required_unless_present = "object")]
    controller: Option<Controller>,
    /// An object file of eBPF with a `tcp_congestion_ops`, in place of a controller of this
    /// program; `cwnd kernel load my.bpf.c` compiles one.
    #[arg(long, conflicts_with = "controller")]
    object: Option<PathBuf>,
    /// The controller among several of the object file, by the name in its table.
    #[arg(long, requires = "object")]
    table: Option<String>,
    /// Value of a `const volatile` variable of the object file; several may be given.
    #[arg(long, value_name = "NAME=NUMBER", requires = "object")]
    set: Vec<String>,
    #[command(flatten)]
    options: Options,
}

#[derive(Args, Default)]
struct Options {
    /// Name that sockets ask for, at most 15 bytes [default: the controller's name].
    #[arg(long)]
    name: Option<String>,
    /// abe_*: part of the window that stays after an ECN-echo [default: 0.8 for Reno, 0.85 for
    /// CUBIC].
    #[arg(long)]
    beta_ecn: Option<String>,
    /// abe_*: phases in which it answers an ECN-echo: congestion avoidance only (RFC 8511), or also
    /// slow start, which the ECN-echo ends (its paper) [default: avoidance].
    #[arg(long, value_parser = family::MODES)]
    mode: Option<String>,
    /// abe_*: effect of a loss in a window that an ECN-echo has reduced: none (as in Linux), or the
    /// reduction of a loss alone [default: once].
    #[arg(long, value_parser = family::LOSS_AFTER_ECN)]
    loss_after_ecn: Option<String>,
    /// adaptive_*, delay_aimd: δ; a reduction leaves δ · minRTT / RTT of the window [default: 0.8].
    #[arg(long)]
    delta: Option<String>,
    /// delay_aimd: queueing delay above which it backs off, ms [default: 50].
    #[arg(long)]
    threshold: Option<String>,
    /// delay_aimd: the least window that a backoff for delay leaves, segments [default: 2].
    #[arg(long)]
    least_window: Option<String>,
    /// adaptive_*, delay_aimd: source of RTT samples: the newest segment that an ACK acknowledges
    /// or its SACK blocks report, as in the kernel; the oldest; or the timestamp that it echoes
    /// [default: sack].
    #[arg(long, value_parser = family::RTT_FROM)]
    rtt_from: Option<String>,
    /// becn_*: an interface at which source quenches arrive; cheat_stamps: one at which segments
    /// leave; several may be given.
    #[arg(long)]
    interface: Vec<String>,
    /// becn_*: part of the window that stays after a source quench about a marked packet [default:
    /// 0.5].
    #[arg(long)]
    beta_quench: Option<String>,
    /// becn_*: quenches after which the window rests for a round trip: those about marked packets,
    /// none, all [default: marked].
    #[arg(long, value_parser = family::RESTS)]
    rest: Option<String>,
    /// becn_*: wrong guesses in a round trip after which no quench is believed in the rest of it; 0
    /// is no limit [default: 10].
    #[arg(long)]
    guesses: Option<String>,
    /// bmcc: t_p, the interval in which routers measure, ms [default: 200].
    #[arg(long)]
    interval: Option<String>,
    /// bmcc: κ₂, the speed at which multiplicative increase approaches a load of 1 [default: 0.35].
    #[arg(long)]
    mi_step: Option<String>,
    /// bmcc: α, segments by which the window grows in a round trip of t_p [default: 1].
    #[arg(long)]
    alpha: Option<String>,
    /// bmcc: part of the window that stays at a load of 1 [default: 0.875].
    #[arg(long)]
    beta_most: Option<String>,
    /// bmcc: part of the window that stays at a load of u [default: 0.65].
    #[arg(long)]
    beta_least: Option<String>,
    /// bmcc: η₀ of the routers [default: 0.15].
    #[arg(long)]
    least: Option<String>,
    /// bmcc: η of the routers; below it the window is multiplied [default: 0.75].
    #[arg(long)]
    high: Option<String>,
    /// bmcc: u of the routers [default: 1.2].
    #[arg(long)]
    most: Option<String>,
    /// bmcc: cap of the round-trip time in multiplicative increase, ms [default: 500].
    #[arg(long)]
    mi_rtt_most: Option<String>,
    /// bmcc: a new flow multiplies until the estimate first is 1 [default: true].
    #[arg(long, value_parser = family::NO_YES)]
    multiplies_first: Option<String>,
    /// bmcc: minimum time between two decreases: t_p and then a round trip that only adds, or the
    /// longer of the two [default: both].
    #[arg(long, value_parser = family::PAUSES)]
    rests: Option<String>,
    /// bmcc: rule by which a loss that is repaired without a timeout decreases the window [default:
    /// if-overload].
    #[arg(long, value_parser = family::ON_LOSS)]
    on_loss: Option<String>,
    /// bmcc: packets are paced at a window per round trip [default: true].
    #[arg(long, value_parser = family::NO_YES)]
    paced: Option<String>,
    /// bmcc: ACKs in which receivers send their estimate: spaced, once, in all [default: load].
    #[arg(long, value_parser = family::ECHOES)]
    echo: Option<String>,
    /// tcpstar: n, expiries in a row after which the timeout doubles; 6 is TCP*(∞) [default: 6].
    #[arg(long)]
    backoff_after: Option<String>,
    /// tcpstar: the same for SYNs, which the kernel itself repeats four times without backoff
    /// [default: as backoff-after].
    #[arg(long)]
    syn_backoff_after: Option<String>,
    /// cheat_stamps: amount that is subtracted from the timestamps that segments echo, ms [default:
    /// 100].
    #[arg(long)]
    subtract: Option<String>,
    /// bmcc, tcpstar: control group (version 2) of the processes whose connections it affects
    /// [default: all, if a namespace or an address is given].
    #[arg(long)]
    cgroup: Option<PathBuf>,
    /// bmcc, tcpstar: only connections of this command's network namespace; for bmcc, only those of
    /// receivers.
    #[arg(long)]
    own_namespace: bool,
    /// tcpstar: only connections with this local IPv4 address; bmcc: only those of receivers;
    /// cheat_stamps: only segments from it [default: 0.0.0.0, any].
    #[arg(long)]
    address: Option<String>,
    /// bmcc, tcpstar: every connection of the host, in all namespaces; without this one of
    /// --cgroup, --own-namespace and --address must be given.
    #[arg(long, conflicts_with_all = ["cgroup", "own_namespace", "address"])]
    whole_host: bool,
    /// All but tcpstar and cheat_stamps: let sockets that select it before their handshake
    /// negotiate ECN regardless of net.ipv4.tcp_ecn; they then send all their packets as
    /// ECN-capable.
    #[arg(long)]
    request_ecn: bool,
    /// All but tcpstar and cheat_stamps: let any user's sockets select it.
    #[arg(long)]
    any_user: bool,
    /// Register it as kernels before 6.4 do.
    #[arg(long, hide = true)]
    without_link: bool,
}

impl Request {
    /// Creates the request for a controller with default options.
    #[must_use]
    pub fn of(controller: Controller) -> Self {
        Self {
            controller: Some(controller),
            object: None,
            table: None,
            set: Vec::new(),
            options: Options::default(),
        }
    }

    /// Returns the plan to load the controller on this machine.
    ///
    /// # Errors
    /// Fails for an invalid name or value, for options that the controller does not have, and if
    /// the machine cannot load it.
    pub fn plan(&self) -> Result<Plan, Error> {
        let Self { controller, object, table, set, options } = self;
        let controller = controller.unwrap_or(Controller::Own);
        let own = object.as_deref().map(|file| Own::read(file, table.as_deref(), set));
        let own = own.transpose()?;
        let name = match (&options.name, &own) {
            (Some(name), _) => name.clone(),
            (None, Some(own)) => own.name()?,
            (None, None) => controller.name().to_owned(),
        };
        if !name::fits(&name) {
            return Err(Error::Name(name));
        }
        options.fit(controller)?;
        let mut given = options.settings();
        if options.own_namespace {
            let cookie = machine::namespace_cookie()?;
            let halves = [cookie as u32, (cookie >> 32) as u32];
            given.extend(NAMESPACE.into_iter().zip(halves.map(|half| half.to_string())));
        }
        let settings = settings::read(controller, &given, machine::hz())?;
        machine::check_privileges()?;
        Ok(Plan {
            controller,
            own,
            name,
            settings,
            request_ecn: options.request_ecn,
            any_user: options.any_user,
            interfaces: options.interface.clone(),
            group: options.cgroup.clone(),
            whole_host: options.whole_host,
            without_link: options.without_link,
            kernel: machine::kernel()?,
        })
    }
}

impl Options {
    /// Checks that the options that are no settings are valid for the controller.
    fn fit(&self, controller: Controller) -> Result<(), Error> {
        let has = controller.family().attachment.options();
        for (given, option) in [
            (!self.interface.is_empty(), "--interface"),
            (self.cgroup.is_some(), "--cgroup"),
            (self.own_namespace, "--own-namespace"),
            (self.whole_host, "--whole-host"),
            (self.request_ecn, "--request-ecn"),
            (self.any_user, "--any-user"),
        ] {
            if given && !has.contains(&option) {
                let option = option.to_owned();
                return Err(Error::NotApplicable { controller, option });
            }
        }
        Ok(())
    }

    /// Returns the settings that were given, by name.
    fn settings(&self) -> Vec<(&'static str, String)> {
        let all = [
            ("beta_ecn", &self.beta_ecn),
            ("mode", &self.mode),
            ("loss_after_ecn", &self.loss_after_ecn),
            ("delta", &self.delta),
            ("threshold", &self.threshold),
            ("least_window", &self.least_window),
            ("beta_quench", &self.beta_quench),
            ("rest", &self.rest),
            ("guesses", &self.guesses),
            ("interval", &self.interval),
            ("mi_step", &self.mi_step),
            ("alpha", &self.alpha),
            ("beta_most", &self.beta_most),
            ("beta_least", &self.beta_least),
            ("least", &self.least),
            ("high", &self.high),
            ("most", &self.most),
            ("mi_rtt_most", &self.mi_rtt_most),
            ("multiplies_first", &self.multiplies_first),
            ("rests", &self.rests),
            ("on_loss", &self.on_loss),
            ("paced", &self.paced),
            ("echo", &self.echo),
            ("backoff_after", &self.backoff_after),
            ("syn_backoff_after", &self.syn_backoff_after),
            ("address", &self.address),
            ("rtt_from", &self.rtt_from),
            ("subtract", &self.subtract),
        ];
        let given = |(name, text): (_, &Option<String>)| Some((name, text.clone()?));
        all.into_iter().filter_map(given).collect()
    }
}
