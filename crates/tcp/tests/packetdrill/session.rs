//! What a script asks of the endpoint: its parameters and its role, or by which construct it cannot be played.

use cwnd_cc::ControllerParams;
use cwnd_tcp::{LossRule, Params, Recovery};
use cwnd_units::{Bytes, Duration, Params as _, ParamsChoice as _};

use crate::language::{Call, Packet, Script, TcpOption, What};

/// Which end opens the connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    Server,
    Client,
}

/// How to play a script.
#[derive(Debug)]
pub struct Session {
    pub role: Role,
    pub params: Params,
    pub controller: ControllerParams,
    /// By how much times may be off, nanoseconds.
    pub tolerance: u64,
    /// By how many bits windows that arrive are shifted.
    pub window_scale: u32,
    /// How many events are played: those behind are a closing without data, which the endpoint has none of.
    pub played: usize,
}

/// Why a script cannot be played.
#[derive(Debug, PartialEq)]
pub struct Beyond {
    pub line: usize,
    pub construct: String,
}

fn beyond<T>(line: usize, construct: impl Into<String>) -> Result<T, Beyond> {
    Err(Beyond { line, construct: construct.into() })
}

/// What commands and socket options set.
struct Settings {
    params: Params,
    controller: String,
    sack: bool,
    timestamps: bool,
    window_scaling: bool,
    ecn: u32,
    mtu: u64,
}

/// Settings of the kernel without an effect on what the endpoint models, or on what is compared.
const WITHOUT_EFFECT: &[&str] = &[
    "tcp_adv_win_scale",
    "tcp_autocorking",
    "tcp_backlog_ack_defer",
    "tcp_dsack",
    "tcp_early_retrans",
    "tcp_ecn_option",
    "tcp_fack",
    "tcp_fastopen",
    "tcp_fastopen_key",
    "tcp_limit_output_bytes",
    "tcp_min_tso_segs",
    "tcp_moderate_rcvbuf",
    "tcp_no_metrics_save",
    "tcp_pacing_ca_ratio",
    "tcp_pacing_ss_ratio",
    "tcp_rmem",
    "tcp_synack_retries",
    "tcp_syncookies",
    "tcp_tso_win_divisor",
    "tcp_wmem",
];

/// Options of sockets without an effect on what is compared.
const OPTIONS_WITHOUT_EFFECT: &[&str] = &[
    "IP_FREEBIND",
    "IP_MTU_DISCOVER",
    "IP_TOS",
    "SO_MARK",
    "SO_PRIORITY",
    "SO_REUSEADDR",
    "SO_REUSEPORT",
    "SO_SNDBUF",
    "TCP_NODELAY",
];

/// Calls that give the endpoint nothing to do: it reads at once, and has one connection.
const CALLS_WITHOUT_EFFECT: &[&str] = &[
    "accept", "bind", "close", "connect", "fcntl", "listen", "poll", "read", "recv", "recvfrom",
    "shutdown",
];

const IPV4_AND_TCP_LEN: u64 = 40;
const TIMESTAMPS_LEN: u64 = 12;
/// RFC 7323 § 2.3.
const LARGEST_SCALE: u64 = 14;

/// Looks through a script. `open` gives what the file beside it holds that a command names.
pub fn prepare(script: &Script, open: &dyn Fn(&str) -> Option<String>) -> Result<Session, Beyond> {
    let mut settings = Settings {
        params: Params::default(),
        controller: "cubic".to_owned(),
        sack: true,
        timestamps: true,
        window_scaling: true,
        ecn: 2,
        mtu: 1500,
    };
    settings.params.apply_preset("linux");
    let mut tolerance = 4_000_000;
    let mut ipv6 = false;
    for (name, value) in &script.options {
        let number = value.parse::<u64>();
        match (name.as_str(), number) {
            ("tolerance_usecs", Ok(us)) => tolerance = us * 1000,
            ("mtu", Ok(mtu)) => settings.mtu = mtu,
            ("ip_version", _) => ipv6 = value.starts_with("ipv6"),
            ("local_ip" | "remote_ip" | "tcp_ts_tick_usecs" | "strict_segments", _) => {}
            _ => return beyond(1, format!("--{name}")),
        }
    }
    for (line, command) in &script.commands {
        settings.command(command, open).or_else(|what| beyond(*line, what))?;
    }
    let played = played(script)?;
    for event in &script.events[..played] {
        let seen = match &event.what {
            What::Call(call) => settings.call(call),
            What::Command(command) => settings.command(command, open),
            What::Other(name) => Err(name.clone()),
            What::In(packet) | What::Out(packet) => readable(packet),
            What::Code(_) => Ok(()),
        };
        seen.or_else(|what| beyond(event.line, what))?;
    }
    let (role, syn, their_syn) = handshake(script)?;
    let offers = |wanted: fn(&TcpOption) -> bool| their_syn.said().iter().any(wanted);
    let number = |wanted: fn(&TcpOption) -> Option<u64>| their_syn.said().iter().find_map(wanted);
    let mut params = settings.params;
    let timestamps = settings.timestamps && offers(|o| matches!(o, TcpOption::Timestamps(..)));
    if !(settings.sack && offers(|o| *o == TcpOption::SackOk)) {
        params.recovery = Recovery::NewReno;
        params.prr = false;
        params.spurious.timeout_frto = false;
    }
    let scale = number(|o| if let TcpOption::WindowScale(bits) = o { Some(*bits) } else { None });
    // RFC 9293 § 3.7.1: without the option a segment has 536 bytes.
    let their_mss =
        number(|o| if let TcpOption::Mss(mss) = o { Some(*mss) } else { None }).unwrap_or(536);
    let headers = IPV4_AND_TCP_LEN + if ipv6 { 20 } else { 0 };
    let stamp = if timestamps { TIMESTAMPS_LEN } else { 0 };
    params.mss =
        Bytes(their_mss.min(settings.mtu.saturating_sub(headers).max(1)).saturating_sub(stamp));
    params.header = Bytes(headers + stamp);
    // RFC 3168 § 6.1.1: a SYN with both flags asks, a SYN-ACK with ECE alone agrees.
    params.ecn = match role {
        Role::Server => settings.ecn > 0 && their_syn.has('E') && their_syn.has('W'),
        Role::Client => {
            settings.ecn == 1 && syn.has('E') && their_syn.has('E') && !their_syn.has('W')
        }
    };
    params.handshake = role == Role::Client;
    params.check().or_else(|e| beyond(1, format!("{}: {}", e.key, e.message)))?;
    let Some(mut controller) = ControllerParams::of_kind(&settings.controller) else {
        return beyond(1, format!("congestion control {}", settings.controller));
    };
    controller.params_mut().apply_preset("linux");
    let window_scale =
        if settings.window_scaling { scale.unwrap_or(0).min(LARGEST_SCALE) as u32 } else { 0 };
    Ok(Session { role, params, controller, tolerance, window_scale, played })
}

/// How many events there are before the connection is closed, and that nothing but closing follows.
fn played(script: &Script) -> Result<usize, Beyond> {
    let closes = |what: &What| match what {
        What::Call(call) => matches!(call.name.as_str(), "close" | "shutdown"),
        What::In(packet) | What::Out(packet) => packet.has('F') || packet.has('R'),
        _ => false,
    };
    let end = script.events.iter().position(|e| closes(&e.what)).unwrap_or(script.events.len());
    for event in &script.events[end..] {
        match &event.what {
            What::In(packet) | What::Out(packet) if packet.bytes() > 0 => {
                return beyond(event.line, "data beside or behind a FIN or RST");
            }
            What::In(packet) | What::Out(packet) if packet.has('S') => {
                return beyond(event.line, "a second connection");
            }
            What::Code(code) if code.contains("assert") => {
                return beyond(event.line, "an assertion behind a FIN or RST");
            }
            What::Other(name) => return beyond(event.line, name.clone()),
            _ => {}
        }
    }
    let data =
        |what: &What| matches!(what, What::In(packet) | What::Out(packet) if packet.bytes() > 0);
    if script.events[..end].iter().any(|event| data(&event.what)) {
        return Ok(end);
    }
    beyond(script.events.get(end).map_or(1, |e| e.line), "nothing but opening and closing")
}

/// The role, the SYN of the tested end and that of the script.
fn handshake(script: &Script) -> Result<(Role, &Packet, &Packet), Beyond> {
    let mut syns = script.events.iter().filter_map(|event| match &event.what {
        What::In(packet) if packet.has('S') => Some((event.line, true, packet)),
        What::Out(packet) if packet.has('S') => Some((event.line, false, packet)),
        _ => None,
    });
    let first = syns.next();
    let (role, (line, ours), theirs) = match (first, syns.next()) {
        (Some((_, true, theirs)), Some((line, false, ours))) => {
            (Role::Server, (line, ours), theirs)
        }
        (Some((line, false, ours)), Some((_, true, theirs))) => {
            (Role::Client, (line, ours), theirs)
        }
        (Some((line, ..)), Some(_)) => return beyond(line, "a SYN that is repeated"),
        (first, _) => {
            return beyond(first.map_or(1, |(line, ..)| line), "no connection that opens");
        }
    };
    if let Some((line, ..)) = syns.next() {
        return beyond(line, "a SYN that is repeated, or a second connection");
    }
    if ours.has('.') == theirs.has('.') {
        return beyond(line, "both ends open");
    }
    Ok((role, ours, theirs))
}

/// Whether a segment is one that hosts of the endpoint exchange.
fn readable(packet: &Packet) -> Result<(), String> {
    if packet.has('S') && packet.bytes() > 0 {
        return Err("data in a SYN".to_owned());
    }
    if !packet.has('S') && !packet.has('.') {
        return Err("a segment without ACK".to_owned());
    }
    if let Some(flag) = packet.flags.chars().find(|flag| !"S.PEW".contains(*flag)) {
        return Err(format!("the flag {flag}"));
    }
    for option in packet.said() {
        if let TcpOption::Other(name) = option {
            return Err(format!("the option {name}"));
        }
    }
    Ok(())
}

impl Settings {
    fn call(&mut self, call: &Call) -> Result<(), String> {
        let arg = |n: usize| call.args.get(n).map_or("", String::as_str);
        match call.name.as_str() {
            "socket" if arg(1) != "SOCK_STREAM" => Err(arg(1).to_owned()),
            "socket" => Ok(()),
            "setsockopt" => self.socket_option(arg(2), arg(3)),
            "write" | "send" | "sendto" => {
                let flags = if call.name == "write" { "0" } else { arg(3) };
                match flags
                    .split('|')
                    .map(str::trim)
                    .find(|flag| !["0", "MSG_NOSIGNAL", "MSG_DONTWAIT"].contains(flag))
                {
                    Some(flag) => Err(flag.to_owned()),
                    None => Ok(()),
                }
            }
            name if CALLS_WITHOUT_EFFECT.contains(&name) => Ok(()),
            // What it tells is not compared.
            "getsockopt" => Ok(()),
            name => Err(format!("{name}()")),
        }
    }

    fn socket_option(&mut self, name: &str, value: &str) -> Result<(), String> {
        match name {
            "TCP_CONGESTION" => self.congestion_control(value.trim_matches(['[', ']', '"'])),
            _ if OPTIONS_WITHOUT_EFFECT.contains(&name) => Ok(()),
            _ => Err(name.to_owned()),
        }
    }

    fn congestion_control(&mut self, name: &str) -> Result<(), String> {
        let kind = match name {
            "reno" => "newreno",
            "cubic" => "cubic",
            _ => return Err(format!("congestion control {name}")),
        };
        kind.clone_into(&mut self.controller);
        Ok(())
    }

    fn command(
        &mut self,
        command: &str,
        open: &dyn Fn(&str) -> Option<String>,
    ) -> Result<(), String> {
        for line in command.replace("\\\n", " ").lines() {
            let mut line = line.split('#').next().unwrap_or_default().trim().to_owned();
            for redirection in ["&> /dev/null", "2>&1", "> /dev/null"] {
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
                    self.sysctl(name.trim_start_matches("net.ipv4."), value)?;
                }
                Ok(())
            }
            [tool, ..] if tool.ends_with("set_sysctls.py") => {
                for (name, value) in assigned {
                    self.sysctl(name.trim_start_matches("/proc/sys/net/ipv4/"), value)?;
                }
                Ok(())
            }
            [file] if file.ends_with("defaults.sh") => {
                let text = open(file).ok_or_else(|| format!("{file}, which is not there"))?;
                self.command(&text, &|_| None)
            }
            [file] if file.contains("sysctl_restore") => Ok(()),
            ["ip", "tcp_metrics", ..] | ["set", "-e"] => Ok(()),
            ["ip", "route", ..] => {
                let after = words.iter().position(|word| *word == "initcwnd");
                let segments = after.and_then(|at| words.get(at + 1)).and_then(|n| n.parse().ok());
                self.params.initial_window = segments.ok_or("ip route without initcwnd")?;
                Ok(())
            }
            // HyStart by delay and by trains, as it is unless something else is said.
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

    fn sysctl(&mut self, name: &str, value: &str) -> Result<(), String> {
        let number: Option<u32> = value.parse().ok();
        let on = number.is_some_and(|n| n > 0);
        match (name, number) {
            ("tcp_sack", _) => self.sack = on,
            ("tcp_timestamps", _) => self.timestamps = on,
            ("tcp_window_scaling", _) => self.window_scaling = on,
            ("tcp_slow_start_after_idle", _) => self.params.idle_restart = on,
            ("tcp_frto", _) => self.params.spurious.timeout_frto = on,
            ("tcp_ecn", Some(mode @ 0..=2)) => self.ecn = mode,
            ("tcp_reordering", Some(segments)) => self.params.dup_thresh = segments,
            ("tcp_recovery", Some(0)) => self.params.loss_rule = LossRule::Rfc6675,
            ("tcp_recovery", Some(1)) => self.params.loss_rule = LossRule::Rack,
            ("tcp_syn_retries", Some(times)) => self.params.syn_retries = times,
            ("tcp_rto_min_us", Some(us)) => {
                self.params.rto_min = Duration::from_micros(us.into());
                self.params.rto_variation_min = self.params.rto_min;
            }
            ("tcp_notsent_lowat", Some(u32::MAX)) | ("tcp_mtu_probing", Some(0)) => {}
            ("tcp_congestion_control", _) => return self.congestion_control(value),
            _ if WITHOUT_EFFECT.contains(&name) => {}
            _ => return Err(format!("sysctl {name}={value}")),
        }
        Ok(())
    }
}

/// `name=value` of a command; a value in quotes may have blanks, and of one that the shell computes the first word is enough.
fn settings_in(line: &str) -> impl Iterator<Item = (&str, &str)> {
    let words = line.split_whitespace().filter(|word| word.starts_with("net."));
    words
        .filter_map(|word| word.split_once('='))
        .map(|(name, value)| (name, value.trim_matches('"')))
}
