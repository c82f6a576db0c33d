//! What is asked for on the command line.

use std::path::PathBuf;

use clap::Args;

use crate::error::Error;
use crate::family::{Controller, Place};
use crate::load::{self, Plan};
use crate::{machine, settings};

/// A controller, and what it is told.
#[derive(Args)]
pub struct What {
    controller: Controller,
    /// What sockets ask for, at most 15 bytes [default: the controller's name].
    #[arg(long)]
    name: Option<String>,
    /// abe_*: part of the window that stays after an ECN-echo [default: 0.8 for Reno, 0.85 for CUBIC].
    #[arg(long)]
    beta_ecn: Option<String>,
    /// abe_*: when it answers an ECN-echo: in congestion avoidance only (RFC 8511), or also where one ends slow start (its
    /// paper) [default: avoidance].
    #[arg(long, value_parser = ["avoidance", "always"])]
    mode: Option<String>,
    /// abe_*: what a loss does in a window that an ECN-echo has reduced: nothing more (as in Linux), or what it does alone
    /// [default: once].
    #[arg(long, value_parser = ["once", "deepen"])]
    loss_after_ecn: Option<String>,
    /// adaptive_*, delay_aimd: δ; a reduction leaves δ · minRTT / RTT of the window [default: 0.8].
    #[arg(long)]
    delta: Option<String>,
    /// delay_aimd: it backs off once packets wait longer, ms [default: 50].
    #[arg(long)]
    threshold: Option<String>,
    /// delay_aimd: the least window that a backoff for delay leaves, segments [default: 2].
    #[arg(long)]
    least_window: Option<String>,
    /// becn_*: an interface at which source quenches arrive; several may be given.
    #[arg(long)]
    interface: Vec<String>,
    /// becn_*: part of the window that stays after a source quench about a marked packet [default: 0.5].
    #[arg(long)]
    beta_quench: Option<String>,
    /// becn_*: after which quenches the window rests for a round trip: those about marked packets, none, all [default: marked].
    #[arg(long, value_parser = ["marked", "never", "always"])]
    rest: Option<String>,
    /// becn_*: wrong guesses in a round trip after which no quench is believed in the rest of it; 0 is no limit [default: 10].
    #[arg(long)]
    guesses: Option<String>,
    /// tcpstar: n, expiries in a row after which the timeout doubles; 6 is TCP*(∞) [default: 6].
    #[arg(long)]
    backoff_after: Option<String>,
    /// tcpstar: the group (version 2) whose processes' connections it is for [default: all].
    #[arg(long)]
    cgroup: Option<PathBuf>,
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

impl What {
    /// With all that can be left out.
    #[must_use]
    pub const fn of(controller: Controller) -> Self {
        Self {
            controller,
            name: None,
            beta_ecn: None,
            mode: None,
            loss_after_ecn: None,
            delta: None,
            threshold: None,
            least_window: None,
            interface: Vec::new(),
            beta_quench: None,
            rest: None,
            guesses: None,
            backoff_after: None,
            cgroup: None,
            request_ecn: false,
            any_user: false,
            without_link: false,
        }
    }

    /// What is asked for, on this machine.
    ///
    /// # Errors
    /// For what the controller has not, and where the machine takes none.
    pub fn plan(&self) -> Result<Plan, Error> {
        let name = self.name.as_deref().unwrap_or(self.controller.name());
        load::check_name(name)?;
        let settings = settings::read(self.controller, &self.given(), machine::hz())?;
        self.fits()?;
        machine::rights()?;
        Ok(Plan {
            controller: self.controller,
            name: name.to_owned(),
            settings,
            request_ecn: self.request_ecn,
            any_user: self.any_user,
            interfaces: self.interface.clone(),
            group: self.cgroup.clone(),
            without_link: self.without_link,
            kernel: machine::kernel()?,
        })
    }

    /// What is given is for a controller of that kind.
    fn fits(&self) -> Result<(), Error> {
        let place = self.controller.family().place;
        let table = self.request_ecn || self.any_user;
        for (given, has, option) in [
            (!self.interface.is_empty(), place == Place::TableAndInterfaces, "--interface"),
            (self.cgroup.is_some(), place == Place::Group, "--cgroup"),
            (table, place != Place::Group, "--request-ecn and no --any-user"),
        ] {
            if given && !has {
                let option = option.to_owned();
                return Err(Error::NotForIt { controller: self.controller, option });
            }
        }
        Ok(())
    }

    /// The settings that were given.
    fn given(&self) -> Vec<(&'static str, String)> {
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
            ("backoff_after", &self.backoff_after),
        ];
        let given = |(name, text): (_, &Option<String>)| Some((name, text.clone()?));
        all.into_iter().filter_map(given).collect()
    }
}
