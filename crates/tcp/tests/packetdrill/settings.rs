//! Settings by commands and socket options, and lists of settings and calls that change nothing
//! compared.

use cwnd_cc::ControllerParams;
use cwnd_quantity::{Bytes, Duration};
use cwnd_schema::{Params as _, ParamsChoice as _};
use cwnd_tcp::{LossRule, Params};

use super::language::Call;

/// TCP stack of a script.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stack {
    Linux,
    FreeBsd,
}

impl Stack {
    pub fn of(name: &str) -> Option<Self> {
        match name {
            "linux" => Some(Self::Linux),
            "freebsd" => Some(Self::FreeBsd),
            _ => None,
        }
    }

    const fn preset(self) -> &'static str {
        match self {
            Self::Linux => "linux",
            Self::FreeBsd => "freebsd",
        }
    }
}

/// Settings made by commands and socket options.
pub struct Settings {
    pub params: Params,
    pub controller: String,
    pub sack: bool,
    pub timestamps: bool,
    pub window_scaling: bool,
    pub ecn: u32,
    pub mtu: u64,
    /// Largest payload of a segment by the socket option `TCP_MAXSEG`, bytes.
    pub largest_segment: Option<u64>,
    /// Stack that is played; Linux ignores settings of FreeBSD.
    stack: Stack,
}

/// Settings of Linux without an effect on what the endpoint models, or on what is compared.
const WITHOUT_EFFECT: &[&str] = &[
    "tcp_adv_win_scale",
    "tcp_autocorking",
    "tcp_backlog_ack_defer",
    "tcp_base_mss",
    "tcp_ecn_fallback",
    "tcp_ecn_option",
    "tcp_ecn_option_beacon",
    "tcp_fack",
    "tcp_fastopen",
    "tcp_fastopen_blackhole_timeout_sec",
    "tcp_fastopen_key",
    "tcp_limit_output_bytes",
    "tcp_min_tso_segs",
    "tcp_moderate_rcvbuf",
    "tcp_no_metrics_save",
    "tcp_notsent_lowat",
    "tcp_pacing_ca_ratio",
    "tcp_pacing_ss_ratio",
    "tcp_rmem",
    "tcp_synack_retries",
    "tcp_syncookies",
    "tcp_tso_win_divisor",
    "tcp_wmem",
];

/// Settings of FreeBSD without an effect: host cache, buffers, opening, closing and keep-alive.
const FREEBSD_WITHOUT_EFFECT: &[&str] = &[
    "kern.ipc.maxsockbuf",
    "net.inet.tcp.blackhole",
    "net.inet.tcp.drop_synfin",
    "net.inet.tcp.ecn.maxretries",
    "net.inet.tcp.fastopen.client_enable",
    "net.inet.tcp.hostcache.purgenow",
    "net.inet.tcp.icmp_may_rst",
    "net.inet.tcp.insecure_rst",
    "net.inet.tcp.insecure_syn",
    "net.inet.tcp.keepcnt",
    "net.inet.tcp.keepidle",
    "net.inet.tcp.keepinit",
    "net.inet.tcp.keepintvl",
    "net.inet.tcp.rexmit_drop_options",
    "net.inet.tcp.sendspace",
    "net.inet.tcp.syncookies",
    "net.inet.tcp.syncookies_only",
    "net.inet.tcp.tolerate_missing_ts",
];

/// Options of sockets without an effect on what is compared.
const OPTIONS_WITHOUT_EFFECT: &[&str] = &[
    "IP_FREEBIND",
    "IP_MTU_DISCOVER",
    "IP_RECVERR",
    "IP_TOS",
    "SO_LINGER",
    "SO_MARK",
    "SO_PRIORITY",
    "SO_REUSEADDR",
    "SO_REUSEPORT",
    "SO_SNDBUF",
    "SO_TIMESTAMPING",
    "SO_ZEROCOPY",
    // Without a cookie or data in a SYN, which are reported separately, it has no effect.
    "TCP_FASTOPEN",
    "TCP_INQ",
    "TCP_NODELAY",
    "TCP_NOTSENT_LOWAT",
];

/// Calls that change no setting. Of them only `connect` acts on the endpoint, which has one
/// connection and accepts data at once.
const CALLS_WITHOUT_EFFECT: &[&str] = &[
    "accept",
    "bind",
    "close",
    "connect",
    "epoll_create",
    "epoll_create1",
    "epoll_ctl",
    "epoll_wait",
    "fcntl",
    "listen",
    "open",
    "pipe",
    "poll",
    "shutdown",
];

/// Calls that send, and calls that read.
pub const WRITES: &[&str] = &["send", "sendfile", "sendmsg", "sendto", "write", "writev"];
pub const READS: &[&str] = &["read", "readv", "recv", "recvfrom", "recvmsg"];

/// Returns the flags of a call that sends or reads.
pub fn flags(call: &Call) -> impl Iterator<Item = &str> {
    let flags = match call.name.as_str() {
        "recvmsg" | "sendmsg" => call.arg(2),
        "recv" | "recvfrom" | "send" | "sendto" => call.arg(3),
        _ => "0",
    };
    flags.split('|').map(str::trim).filter(|flag| *flag != "0")
}

impl Settings {
    /// Creates the default settings of a stack.
    pub fn new(stack: Stack) -> Self {
        let mut params = Params::default();
        params.apply_preset(stack.preset());
        Self {
            params,
            controller: "cubic".to_owned(),
            sack: true,
            timestamps: true,
            window_scaling: true,
            ecn: 2,
            mtu: 1500,
            largest_segment: None,
            stack,
        }
    }

    pub fn call(&mut self, call: &Call) -> Result<(), String> {
        let allowed: &[&str] = match call.name.as_str() {
            "socket" if call.arg(1).starts_with("SOCK_STREAM") => return Ok(()),
            "socket" => return Err(call.arg(1).to_owned()),
            "setsockopt" => return self.socket_option(call.arg(2), call.arg(3)),
            "ioctl" => &[],
            name if WRITES.contains(&name) => &["MSG_NOSIGNAL", "MSG_DONTWAIT", "MSG_ZEROCOPY"],
            name if READS.contains(&name) => {
                &["MSG_DONTWAIT", "MSG_ERRQUEUE", "MSG_PEEK", "MSG_WAITALL"]
            }
            // Its result is compared, or counted as not checked.
            "getsockopt" => return Ok(()),
            name if CALLS_WITHOUT_EFFECT.contains(&name) => return Ok(()),
            name => return Err(format!("{name}()")),
        };
        match flags(call).find(|flag| !allowed.contains(flag)) {
            Some(flag) => Err(flag.to_owned()),
            None => Ok(()),
        }
    }

    fn socket_option(&mut self, name: &str, value: &str) -> Result<(), String> {
        let value = value.trim_matches(['[', ']', '"']);
        match (name, value.parse()) {
            ("TCP_CONGESTION", _) => self.congestion_control(value),
            ("TCP_MAXSEG", Ok(bytes)) => {
                self.largest_segment = Some(bytes);
                Ok(())
            }
            ("TCP_SYNCNT", Ok(times)) => {
                self.params.connection.syn_retries = u32::try_from(times).unwrap_or(u32::MAX);
                Ok(())
            }
            _ if OPTIONS_WITHOUT_EFFECT.contains(&name) => Ok(()),
            _ => Err(name.to_owned()),
        }
    }

    fn congestion_control(&mut self, name: &str) -> Result<(), String> {
        let kind = match name {
            "reno" | "newreno" => "newreno",
            "cubic" => "cubic",
            _ => return Err(format!("congestion control {name}")),
        };
        kind.clone_into(&mut self.controller);
        Ok(())
    }

    pub fn command(
        &mut self,
        command: &str,
        open: &dyn Fn(&str) -> Option<String>,
    ) -> Result<(), String> {
        for line in command.replace("\\\n", " ").lines() {
            let mut line = line.split('#').next().unwrap_or_default().trim().to_owned();
            for redirection in ["&> /dev/null", "2>&1", "2>/dev/null", "> /dev/null"] {
                line = line.replace(redirection, "");
            }
            for part in line.split([';', '&', '|']).map(str::trim).filter(|part| !part.is_empty()) {
                self.run(part, open)?;
            }
        }
        Ok(())
    }

    fn run(&mut self, line: &str, open: &dyn Fn(&str) -> Option<String>) -> Result<(), String> {
        let words: Vec<&str> = line.split_whitespace().collect();
        let assigned = words.iter().filter_map(|word| word.split_once('='));
        match words.as_slice() {
            ["sysctl", ..] => {
                for (name, value) in settings_in(line) {
                    self.sysctl(name, value)?;
                }
                Ok(())
            }
            [tool, ..] if tool.ends_with("set_sysctls.py") => {
                for (name, value) in assigned {
                    self.linux_sysctl(name.trim_start_matches("/proc/sys/net/ipv4/"), value)?;
                }
                Ok(())
            }
            [file] if file.ends_with("defaults.sh") => {
                let text = open(file).ok_or_else(|| format!("{file}, which is not there"))?;
                self.command(&text, &|_| None)
            }
            [file] if file.contains("sysctl_restore") => Ok(()),
            ["ip", "tcp_metrics", ..] | ["set", "-e"] => Ok(()),
            // Segmentation offload to the network card is not compared.
            ["ethtool", "-K", ..] => Ok(()),
            ["ip", "route", ..] | ["ip", "-6", "route", ..] => self.route(&words),
            // HyStart by delay and by ACK trains, which is the default.
            ["echo", "3", ">", file] if file.ends_with("tcp_cubic/parameters/hystart_detect") => {
                Ok(())
            }
            ["tc", "qdisc", ..] if words.contains(&"limit") => {
                Err("a queue that drops at the sender".to_owned())
            }
            ["tc", "qdisc", ..] => Ok(()),
            ["ip", what, ..] => Err(format!("ip {what}")),
            [first, ..] => Err(format!("the command {first}")),
            [] => Ok(()),
        }
    }

    /// Applies `initcwnd` and `mtu` of `ip route`; without either it is an error.
    fn route(&mut self, words: &[&str]) -> Result<(), String> {
        let number = |name: &str| {
            let after = words.iter().position(|word| *word == name)?;
            words[after + 1..].iter().find(|word| **word != "lock")?.parse::<u64>().ok()
        };
        // The advertised MSS (`advmss`) does not bound the segments sent.
        let (window, mtu) = (number("initcwnd"), number("mtu"));
        if window.or(mtu).is_none() {
            return Err("ip route without initcwnd or mtu".to_owned());
        }
        if let Some(segments) = window {
            self.params.windows.initial_window = u32::try_from(segments).unwrap_or(u32::MAX);
        }
        self.mtu = mtu.unwrap_or(self.mtu);
        Ok(())
    }

    fn sysctl(&mut self, name: &str, value: &str) -> Result<(), String> {
        let name = name.replace('/', ".");
        match name.strip_prefix("net.ipv4.") {
            Some(name) => self.linux_sysctl(name, value),
            None if self.stack == Stack::Linux && of_freebsd(&name) => Ok(()),
            None => self.freebsd_sysctl(&name, value),
        }
    }

    fn linux_sysctl(&mut self, name: &str, value: &str) -> Result<(), String> {
        let number: Option<u32> = value.parse().ok();
        let on = number.is_some_and(|n| n > 0);
        match (name, number) {
            ("tcp_sack", _) => self.sack = on,
            ("tcp_timestamps", _) => self.timestamps = on,
            ("tcp_window_scaling", _) => self.window_scaling = on,
            ("tcp_slow_start_after_idle", _) => self.params.validation.idle_restart = on,
            ("tcp_ecn", Some(mode @ 0..=5)) => self.ecn = mode,
            ("tcp_reordering", Some(segments)) => self.params.detection.dup_thresh = segments,
            ("tcp_recovery", Some(0)) => self.params.detection.loss_rule = LossRule::Rfc6675,
            ("tcp_recovery", Some(1)) => self.params.detection.loss_rule = LossRule::Rack,
            ("tcp_syn_retries", Some(times)) => self.params.connection.syn_retries = times,
            ("tcp_rto_min_us", Some(us)) => {
                self.params.rto.rto_min = Duration::from_micros(us.into());
                self.params.rto.rto_variation_min = self.params.rto.rto_min;
            }
            ("tcp_rto_max_ms", Some(ms)) => {
                self.params.rto.rto_max = Duration::from_millis(ms.into())
            }
            ("tcp_mtu_probing", Some(0)) => {}
            ("tcp_dsack", _) => self.params.acks.dsack = on,
            ("tcp_early_retrans", _) => self.params.detection.tail_loss_probe = on,
            ("tcp_frto", _) => self.params.spurious.timeout_frto = on,
            ("tcp_congestion_control", _) => return self.congestion_control(value),
            _ if WITHOUT_EFFECT.contains(&name) => {}
            _ => return Err(format!("sysctl {name}={value}")),
        }
        Ok(())
    }

    fn freebsd_sysctl(&mut self, name: &str, value: &str) -> Result<(), String> {
        let number: Option<u64> = value.parse().ok();
        match (name, number) {
            ("net.inet.tcp.sack.enable", Some(on)) => self.sack = on > 0,
            ("net.inet.tcp.rfc1323", Some(on)) => {
                (self.timestamps, self.window_scaling) = (on > 0, on > 0);
            }
            // The values 1 (request) and 2 (accept only) mean the same as in Linux.
            ("net.inet.tcp.ecn.enable", Some(mode @ 0..=2)) => self.ecn = mode as u32,
            ("net.inet.tcp.recvspace", Some(bytes @ 1..)) => {
                self.params.windows.receive_window = Bytes(bytes);
            }
            ("net.inet.tcp.delacktime", Some(ms)) => {
                self.params.acks.ack_delay = Duration::from_millis(ms);
            }
            ("net.inet.tcp.rexmit_slop", Some(ms)) => {
                self.params.rto.rto_slop = Duration::from_millis(ms);
            }
            ("net.inet.tcp.rexmit_initial", Some(ms)) => {
                self.params.rto.rto_initial = Duration::from_millis(ms);
            }
            _ if FREEBSD_WITHOUT_EFFECT.contains(&name) => {}
            _ => return Err(format!("sysctl {name}={value}")),
        }
        Ok(())
    }

    /// Returns the controller with the stack's preset.
    pub fn controller(&self) -> Result<ControllerParams, String> {
        let kind = &self.controller;
        let mut controller =
            ControllerParams::of_kind(kind).ok_or_else(|| format!("congestion control {kind}"))?;
        controller.params_mut().apply_preset(self.stack.preset());
        Ok(controller)
    }
}

/// `true` if only FreeBSD has a setting of this name.
pub fn of_freebsd(name: &str) -> bool {
    ["kern.", "net.inet.", "net.inet6."].iter().any(|tree| name.starts_with(tree))
}

/// Finds each `name=value` of a command. Of a value in quotes only the first word is read.
fn settings_in(line: &str) -> impl Iterator<Item = (&str, &str)> {
    let words = line.split_whitespace().filter(|word| word.contains('='));
    words
        .filter_map(|word| word.split_once('='))
        .map(|(name, value)| (name, value.trim_matches('"')))
}
