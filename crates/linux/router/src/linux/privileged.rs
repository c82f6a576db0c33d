//! Privileged process of a link, the keeper, which drops its rights before COMMAND starts.
//!
//! ```text
//! cwnd link ──Make──▶ keeper      creates namespace, devices, addresses and translation
//! (the caller) ◀──Made── (root)   passes the devices on
//!              ──Start──▶         starts COMMAND's parent in the namespace, which changes to the
//!                                 caller's user; drops its own rights
//!              ◀─Started─
//!              ◀══════════ inside ── COMMAND     signals one way, its end the other
//! ```
//! It serves only the process at the other end of its channel, and checks each request. Requests
//! have a fixed shape, a bounded length and one user. It opens no file that a request names, and
//! executes nothing but its own program.

mod inside;
mod message;
mod rights;

use std::env;
use std::fs;
use std::io::{self, ErrorKind, Read, Write};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

use rustix::event::{PollFd, PollFlags, poll};
use rustix::fs::{Mode, OFlags, open};
use rustix::net::sockopt::socket_peercred;
use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType, connect, socket_with};
use rustix::process::{Pid, Resource, Rlimit, prlimit, setsid};
use rustix::thread::{LinkNameSpaceType, UnshareFlags, move_into_link_name_space};

use crate::linux::dns_relay::Behind;
use crate::linux::link_namespace::{Devices, LinkNamespace};
use crate::linux::netlink::Netlink;
use crate::linux::run::PRIORITY;

pub use inside::{Event, Order, Spec};
pub use message::{Answer, Channel, MAX_PATIENCE_MS, Made, Make, Message, Request, Start};
pub use rights::{User, give_up, give_up_capabilities, keep_only, limits};
pub use rustix::thread::CapabilitySet;

/// Command that starts this program again in another role: an interpreter and its script.
#[derive(Clone, Debug)]
pub struct Program {
    /// Path of the interpreter.
    pub interpreter: PathBuf,
    /// Path of the script, which calls [`run_role`].
    pub script: PathBuf,
}

impl Program {
    /// Returns the command that plays a role, with an empty environment.
    #[must_use]
    pub fn role(&self, role: &str) -> Command {
        let mut command = Command::new(&self.interpreter);
        // Isolated mode: imports nothing from the caller's environment or the working directory,
        // and nothing that an installation adds to every start.
        command.args(["-I", "-S"]).arg(&self.script).arg(role).env_clear();
        command
    }
}

/// Plays a role until its end; returns its exit code. A role is the keeper, whose channel is
/// standard input, or a process that the keeper starts. It may also be a process that connects to a
/// socket of this name and starts the keeper.
///
/// # Errors
/// If the role is unknown (`InvalidInput`); those of the role, such as a closed channel.
pub fn run_role(program: &Program, role: &str) -> io::Result<u8> {
    match role {
        ROLE_PRIVILEGED => run_privileged(program).map(|()| 0),
        ROLE_INSIDE => inside::supervise(program),
        ROLE_COMMAND => inside::become_command(),
        name if name.starts_with(SOCKET_PREFIX) => answer(program, name).map(|()| 0),
        _ => Err(io::Error::new(ErrorKind::InvalidInput, "no such role")),
    }
}

/// Returns the user that called a program which changed to root, from the variables that sudo,
/// pkexec or doas set; `None` if there are none or they name root.
///
/// # Errors
/// `InvalidInput` if a variable has the name of no user; an ID is not checked.
#[expect(clippy::disallowed_methods, reason = "who called is told in no other way")]
pub fn caller() -> io::Result<Option<u32>> {
    for variable in CALLERS {
        let Ok(name) = env::var(variable) else { continue };
        let found = match name.parse() {
            Ok(number) => Some(number),
            Err(_) => nix::unistd::User::from_name(&name)?.map(|user| user.uid.as_raw()),
        };
        match found {
            Some(0) => {}
            Some(number) => return Ok(Some(number)),
            None => {
                let text = format!("{variable} is {name}: there is no such user");
                return Err(io::Error::new(ErrorKind::InvalidInput, text));
            }
        }
    }
    Ok(None)
}

/// Connects to the process that requested rights, checks that its user is the caller, and starts
/// the keeper for it.
fn answer(program: &Program, name: &str) -> io::Result<()> {
    let socket =
        socket_with(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC, None)?;
    connect(&socket, &SocketAddrUnix::new_abstract_name(name.as_bytes())?)?;
    if socket_peercred(&socket)?.uid.as_raw() != caller()?.unwrap_or(0) {
        let text = "who asks for the rights is not who was granted them";
        return Err(io::Error::new(ErrorKind::PermissionDenied, text));
    }
    let mut keeper = start_keeper(program, socket, Stdio::piped())?;
    // Once the keeper has left this session, the end of this process does not affect it.
    let mut said = [0];
    keeper.stdout.take().ok_or(ErrorKind::BrokenPipe)?.read_exact(&mut said)
}

/// Starts the keeper with its end of the channel. It writes a byte to its output when it has left
/// its session.
///
/// # Errors
/// If it cannot be started.
pub fn start_keeper(program: &Program, channel: OwnedFd, output: Stdio) -> io::Result<Child> {
    let called_by = CALLERS.into_iter().filter_map(|name| Some((name, env::var_os(name)?)));
    let mut keeper = program.role(ROLE_PRIVILEGED);
    keeper.envs(called_by).stdin(channel).stdout(output).stderr(Stdio::null()).spawn()
}

/// Returns the channel that is this process's standard input.
fn own_channel() -> io::Result<Channel> {
    Ok(Channel::of(rustix::io::fcntl_dupfd_cloexec(io::stdin(), 3)?))
}

/// Serves one caller as keeper, and reports an error to it.
fn run_privileged(program: &Program) -> io::Result<()> {
    // It may already be a session leader, in which case this fails.
    let _ = setsid();
    io::stdout().write_all(b"k")?;
    io::stdout().flush()?;
    let channel = own_channel()?;
    let told = serve(program, &channel);
    if let Err(error) = &told {
        // The requester may be gone.
        let _ = channel.send(&Answer::failed(error).to_bytes(), &[]);
    }
    told
}

/// Serves one link and one COMMAND.
fn serve(program: &Program, channel: &Channel) -> io::Result<()> {
    let peer = socket_peercred(channel)?.pid;
    let caller = caller()?;
    let Some(Message { bytes, descriptors }) = channel.receive()? else { return Ok(()) };
    let Request::Make(make) = Request::of_bytes(&bytes)? else { return Err(out_of_turn()) };
    if !descriptors.is_empty() {
        return Err(out_of_turn());
    }
    if caller.is_some_and(|caller| caller != make.user) {
        let text = "only root may run COMMAND as somebody else";
        return Err(io::Error::new(ErrorKind::PermissionDenied, text));
    }
    let user = User::of(make.user)?;
    let (place, devices) = LinkNamespace::make()?;
    if let Some(ecn) = make.ecn {
        // Values of `tcp_ecn` (ip-sysctl): 1 requests and accepts ECN, 0 does neither.
        place.behind.inside(|| fs::write(TCP_ECN, if ecn { "1" } else { "0" }))?;
    }
    // A socket opened without rights passes none to the process that receives it.
    let counts = place.behind.inside(|| {
        rights::become_on_this_thread(&user)?;
        Netlink::route()
    })?;
    let made = Answer::Made(Made {
        devices: [devices.inner.name().to_owned(), devices.outer.name().to_owned()],
        ends: place.ends(),
        ends6: place.ends6(),
        unreachable_reason: place.unreachable_reason(),
        unreachable_reason6: place.unreachable_reason6(),
    });
    let before = allow_realtime(peer, PRIORITY_LIMIT);
    let Devices { inner, outer } = devices;
    channel.send(&made.to_bytes(), &[inner.as_fd(), outer.as_fd(), counts.as_fd()])?;
    drop((inner, outer, counts));

    let Some(Message { bytes, descriptors }) = channel.receive()? else { return Ok(()) };
    if let Some(before) = before {
        allow_realtime(peer, before);
    }
    let Request::Start(start) = Request::of_bytes(&bytes)? else { return Err(out_of_turn()) };
    if descriptors.len() != start.descriptors() {
        return Err(out_of_turn());
    }
    start_command(program, channel, &place, &user, (start, descriptors))
}

/// Allows a process a real-time priority for its threads; returns its limits before, or `None` if
/// that fails.
fn allow_realtime(process: Pid, limit: Rlimit) -> Option<Rlimit> {
    // If that fails, the router reports that it runs without priority.
    prlimit(Some(process), Resource::Rtprio, limit).ok()
}

/// Starts COMMAND's parent, drops rights, and waits until the caller or the parent ends.
fn start_command(
    program: &Program,
    channel: &Channel,
    place: &LinkNamespace,
    user: &User,
    (start, descriptors): (Start, Vec<OwnedFd>),
) -> io::Result<()> {
    place.behind.enter()?;
    let relay = match &start.names[..] {
        [] => None,
        names => Some(Behind::open(names, place.ends().caller)?),
    };
    let (inside, theirs) = Channel::pair()?;
    let mut child = start_inside(program, theirs)?;
    let User { id, group, groups } = user.clone();
    let told = message::Inside { user: id, group, groups, start };
    let borrowed: Vec<BorrowedFd<'_>> = descriptors.iter().map(AsFd::as_fd).collect();
    inside.send(&told.to_bytes(), &borrowed)?;
    drop(descriptors);
    let ready = inside.receive()?.ok_or(ErrorKind::UnexpectedEof)?;
    let ready = Answer::of_bytes(&ready.bytes)?.checked()?;
    // The remaining work needs no rights: if COMMAND runs as root, the user `nobody` suffices here.
    let nobody = User { id: NOBODY, group: NOBODY, groups: Vec::new() };
    give_up(if user.is_root() { &nobody } else { user })?;
    let _relay = relay.map(Behind::serve).transpose()?;
    channel.send(&ready.to_bytes(), &[])?;
    inside.send(inside::GO, &[])?;
    wait(channel, &inside)?;
    // COMMAND's parent ends when the keeper's end of this channel closes.
    drop(inside);
    child.wait()?;
    Ok(())
}

/// Starts COMMAND's parent as the first process of a new PID namespace.
fn start_inside(program: &Program, channel: Channel) -> io::Result<Child> {
    let own = open("/proc/self/ns/pid", OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty())?;
    unshare_namespace(UnshareFlags::NEWPID)?;
    let mut inside = program.role(ROLE_INSIDE);
    let child =
        inside.stdin(channel.into_socket()).stdout(Stdio::null()).stderr(Stdio::null()).spawn()?;
    // In the other namespace no thread could be started.
    move_into_link_name_space(own.as_fd(), Some(LinkNameSpaceType::ProcessID))?;
    Ok(child)
}

/// Moves the calling thread, or its children, into new namespaces (unshare(2)).
#[expect(deprecated, reason = "what made it deprecated is sharing files no more, not namespaces")]
fn unshare_namespace(what: UnshareFlags) -> io::Result<()> {
    Ok(rustix::thread::unshare(what)?)
}

/// Waits until the other end of either channel is closed or has sent something.
fn wait(channel: &Channel, inside: &Channel) -> io::Result<()> {
    let watched = |channel| PollFd::from_borrowed_fd(channel, PollFlags::IN);
    let mut watched = [watched(channel.as_fd()), watched(inside.as_fd())];
    rustix::io::retry_on_intr(|| poll(&mut watched, None))?;
    Ok(())
}

fn out_of_turn() -> io::Error {
    io::Error::new(ErrorKind::InvalidData, "a message that is out of turn")
}

/// Names of roles.
pub const ROLE_PRIVILEGED: &str = "keep";
const ROLE_INSIDE: &str = "inside";
const ROLE_COMMAND: &str = "command";
/// First character of an abstract socket's name, which tells it from a role in [`run_role`].
pub const SOCKET_PREFIX: char = '@';
/// Variables that contain the caller, set by sudo(8), pkexec(1) and doas(1).
const CALLERS: [&str; 3] = ["SUDO_UID", "PKEXEC_UID", "DOAS_USER"];
const TCP_ECN: &str = "/proc/sys/net/ipv4/tcp_ecn";
const PRIORITY_LIMIT: Rlimit =
    Rlimit { current: Some(PRIORITY as u64), maximum: Some(PRIORITY as u64) };
/// User that owns nothing (user_namespaces(7)).
const NOBODY: u32 = 65_534;
