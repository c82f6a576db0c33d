//! Parameters and role of the endpoint for a script, or the construct that makes the script
//! unplayable.

use cwnd_cc::ControllerParams;
use cwnd_quantity::Bytes;
use cwnd_schema::Params as _;
use cwnd_tcp::{Params, Recovery};

use super::language::{Call, Event, Packet, Script, TcpOption, What};
use super::settings::{READS, Settings, Stack, WRITES, of_freebsd};

/// Role of the tested end: a client opens the connection, a server accepts it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    Server,
    Client,
}

/// Settings for playing a script.
#[derive(Debug)]
pub struct Session {
    pub role: Role,
    pub params: Params,
    pub controller: ControllerParams,
    /// Tolerance of times, nanoseconds; 4 ms unless the script states it.
    pub tolerance: u64,
    /// Window scale of arriving segments, bits.
    pub window_scale: u32,
    /// Number of events played. Later ones close the connection without data, which the endpoint
    /// does not model.
    pub played: usize,
}

/// Construct that makes a script unplayable, and its line.
#[derive(Debug, PartialEq)]
pub struct Unplayable {
    pub line: usize,
    pub construct: String,
}

fn beyond<T>(line: usize, construct: impl Into<String>) -> Result<T, Unplayable> {
    Err(Unplayable { line, construct: construct.into() })
}

const IPV4_AND_TCP_LEN: u64 = 40;
const TIMESTAMPS_LEN: u64 = 12;
/// Largest window scale (RFC 7323 § 2.3).
const LARGEST_SCALE: u64 = 14;

/// Derives the session of a script. `open` returns the content of a file that a command names.
/// `stack` overrides the stack that the script sets up.
pub fn prepare(
    script: &Script,
    open: &dyn Fn(&str) -> Option<String>,
    stack: Option<Stack>,
) -> Result<Session, Unplayable> {
    let mut settings = Settings::new(stack.unwrap_or_else(|| stack_of(script)));
    let mut tolerance = 4_000_000;
    let mut ipv6 = false;
    for (name, value) in &script.options {
        let number = value.parse::<u64>();
        match (name.as_str(), number) {
            ("tolerance_usecs", Ok(us)) => tolerance = us * 1000,
            ("mtu", Ok(mtu)) => settings.mtu = mtu,
            ("ip_version", _) => ipv6 = value.starts_with("ipv6"),
            // Addresses, names of values, behaviour of packetdrill's own peer, and segmentation.
            (
                "local_ip" | "remote_ip" | "gateway_ip" | "netmask_ip" | "define" | "mss"
                | "send_omit_free" | "tcp_ts_tick_usecs" | "strict_segments",
                _,
            ) => {}
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
    let mut params = settings.params.clone();
    let timestamps = settings.timestamps && offers(|o| matches!(o, TcpOption::Timestamps(..)));
    if !(settings.sack && offers(|o| *o == TcpOption::SackOk)) {
        params.recovery.recovery = Recovery::NewReno;
        params.prr.prr = false;
        params.spurious.timeout_frto = false;
    }
    let scale = number(|o| if let TcpOption::WindowScale(bits) = o { Some(*bits) } else { None });
    // RFC 9293 § 3.7.1: without the option a segment has 536 bytes.
    let their_mss =
        number(|o| if let TcpOption::Mss(mss) = o { Some(*mss) } else { None }).unwrap_or(536);
    let headers = IPV4_AND_TCP_LEN + if ipv6 { 20 } else { 0 };
    let stamp = if timestamps { TIMESTAMPS_LEN } else { 0 };
    let ours = settings.mtu.saturating_sub(headers).max(1);
    let ours = settings.largest_segment.map_or(ours, |bytes| bytes.min(ours));
    params.packets.mss = Bytes(their_mss.min(ours).saturating_sub(stamp));
    params.packets.header = Bytes(headers + stamp);
    // Values above 2 negotiate accurate ECN, if both ends support it.
    let accurate = settings.ecn > 2
        && match role {
            Role::Server => their_syn.has('A'),
            Role::Client => syn.has('A') && (their_syn.has('A') || their_syn.has('W')),
        };
    if accurate {
        return beyond(1, "AccECN");
    }
    // RFC 3168 § 6.1.1: a SYN with both flags requests ECN, a SYN-ACK with ECE alone accepts it.
    params.ecn.ecn = match role {
        Role::Server => settings.ecn > 0 && their_syn.has('E') && their_syn.has('W'),
        Role::Client => syn.has('E') && their_syn.has('E') && !their_syn.has('W'),
    };
    params.connection.handshake = role == Role::Client;
    params.check().or_else(|e| beyond(1, format!("{}: {}", e.key, e.message)))?;
    let controller = settings.controller().or_else(|what| beyond(1, what))?;
    let window_scale =
        if settings.window_scaling { scale.unwrap_or(0).min(LARGEST_SCALE) as u32 } else { 0 };
    Ok(Session { role, params, controller, tolerance, window_scale, played })
}

/// Returns the stack that a script's commands set up: FreeBSD if one names a setting of it.
fn stack_of(script: &Script) -> Stack {
    let early = script.commands.iter().map(|(_, command)| command);
    let late = script.events.iter().filter_map(|event| match &event.what {
        What::Command(command) => Some(command),
        _ => None,
    });
    let freebsd = early.chain(late).any(|command| command.split_whitespace().any(of_freebsd));
    if freebsd { Stack::FreeBsd } else { Stack::Linux }
}

/// `true` if an event closes the connection, not the listening socket, or is a FIN or RST.
/// `SHUT_RD` sends nothing to the peer.
fn closes(script: &Script, what: &What) -> bool {
    match what {
        What::Call(call) if matches!(call.name.as_str(), "close" | "shutdown") => {
            let is_connection = |other: &Call| match other.name.as_str() {
                "accept" => other.result == call.arg(0),
                "connect" => other.arg(0) == call.arg(0),
                _ => false,
            };
            let reads_no_more = call.arg(1) == "SHUT_RD";
            !reads_no_more
                && script
                    .events
                    .iter()
                    .any(|event| matches!(&event.what, What::Call(other) if is_connection(other)))
        }
        What::In(packet) | What::Out(packet) => packet.has('F') || packet.has('R'),
        _ => false,
    }
}

/// Returns the number of events before the connection is closed; an error if later ones cannot be
/// left out, or nothing before them is compared.
fn played(script: &Script) -> Result<usize, Unplayable> {
    let end = script.events.iter().position(|e| closes(script, &e.what));
    let end = end.unwrap_or(script.events.len());
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
    if script.events[..end].iter().any(is_compared) {
        return Ok(end);
    }
    beyond(script.events.get(end).map_or(1, |e| e.line), "nothing but opening and closing")
}

/// `true` if an event is more than opening or closing: data, an assertion, or a query of the
/// socket.
fn is_compared(event: &Event) -> bool {
    match &event.what {
        What::In(packet) | What::Out(packet) => packet.bytes() > 0,
        What::Code(code) => code.contains("assert"),
        What::Call(call) => match call.name.as_str() {
            "getsockopt" => call.arg(2) == "TCP_MAXSEG",
            "ioctl" => true,
            name => call.moved() > 0 && (READS.contains(&name) || WRITES.contains(&name)),
        },
        _ => false,
    }
}

/// Returns the role, the SYN of the tested end and that of the script.
fn handshake(script: &Script) -> Result<(Role, &Packet, &Packet), Unplayable> {
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

/// Checks that the endpoint can exchange such a segment; the error names the construct.
fn readable(packet: &Packet) -> Result<(), String> {
    if packet.has('S') && packet.bytes() > 0 {
        return Err("data in a SYN".to_owned());
    }
    if !packet.has('S') && (!packet.has('.') || packet.ack.is_none()) {
        return Err("a segment without ACK".to_owned());
    }
    let known = if packet.has('S') { "S.PEWA" } else { "S.PEW" };
    if let Some(flag) = packet.flags.chars().find(|flag| !known.contains(*flag)) {
        return Err(format!("the flag {flag}"));
    }
    for option in packet.said() {
        if let TcpOption::Other(name) = option {
            return Err(format!("the option {name}"));
        }
    }
    Ok(())
}
