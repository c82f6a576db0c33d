//! First process of COMMAND's PID namespace, and the process that becomes COMMAND. The first starts
//! COMMAND, supervises it and its descendants, and reports its end. Before COMMAND starts, it drops
//! all rights that COMMAND does not have. If it ends, or either process that it reports to does,
//! all processes of the namespace end.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{self, ErrorKind, Read, Seek, Write};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};
use std::time::Duration as Wall;

use cwnd_quantity::{Duration, Time};
use nix::sys::signal::{SigSet, Signal as NixSignal};
use nix::sys::signalfd::{SfdFlags, SignalFd};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{MemfdFlags, Mode, memfd_create};
use rustix::io::Errno;
use rustix::mount::{MountFlags, MountPropagationFlags, mount, mount_change};
use rustix::process::{
    Pid, Signal, WaitOptions, fchdir, getpid, ioctl_tiocsctty, kill_process, kill_process_group,
    set_parent_process_death_signal, setsid, umask, wait,
};
use rustix::stdio::{dup2_stderr, dup2_stdin, dup2_stdout};
use rustix::termios::tcsetpgrp;
use rustix::thread::UnshareFlags;

use crate::linux::link_namespace::Connections;
use crate::linux::privileged::message::{Answer, Channel, Inside, Message};
use crate::linux::privileged::rights::{User, give_up, give_up_for_now, lower_limits};
use crate::linux::privileged::{Program, ROLE_COMMAND, own_channel, unshare_namespace};
use crate::linux::run::monotonic;

/// Report about COMMAND.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// COMMAND ended, with this exit code as given by a shell, and its descendants were killed.
    Ended(i32),
    /// COMMAND was stopped by this signal.
    Stopped(i32),
    /// Its connections have ended, or have made no progress for the patience of the request.
    Quiet,
}

/// Request of the caller concerning COMMAND.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// Sends a signal to COMMAND.
    Signal(i32),
    /// Sends a signal to COMMAND's process group, as its terminal would.
    SignalAll(i32),
    /// Continues COMMAND.
    Continue,
    /// Puts COMMAND into the foreground of its terminal, and continues it.
    Foreground,
}

/// Message that lets COMMAND start.
pub const GO: &[u8] = b"go";

impl Event {
    /// Encodes the report about COMMAND.
    pub fn to_bytes(self) -> [u8; 5] {
        match self {
            Self::Ended(code) => pack(1, code),
            Self::Stopped(signal) => pack(2, signal),
            Self::Quiet => pack(3, 0),
        }
    }

    /// Decodes a report; `None` if it is malformed.
    pub fn of_bytes(bytes: &[u8]) -> Option<Self> {
        match unpack(bytes)? {
            (1, code) => Some(Self::Ended(code)),
            (2, signal) => Some(Self::Stopped(signal)),
            (3, 0) => Some(Self::Quiet),
            _ => None,
        }
    }
}

impl Order {
    /// Encodes the request concerning COMMAND.
    pub fn to_bytes(self) -> [u8; 5] {
        match self {
            Self::Signal(number) => pack(1, number),
            Self::SignalAll(number) => pack(2, number),
            Self::Continue => pack(3, 0),
            Self::Foreground => pack(4, 0),
        }
    }

    /// Decodes a request; `None` if it is malformed.
    pub fn of_bytes(bytes: &[u8]) -> Option<Self> {
        match unpack(bytes)? {
            (1, number) => Some(Self::Signal(number)),
            (2, number) => Some(Self::SignalAll(number)),
            (3, 0) => Some(Self::Continue),
            (4, 0) => Some(Self::Foreground),
            _ => None,
        }
    }
}

fn pack(kind: u8, number: i32) -> [u8; 5] {
    let [a, b, c, d] = number.to_ne_bytes();
    [kind, a, b, c, d]
}

fn unpack(bytes: &[u8]) -> Option<(u8, i32)> {
    let [kind, number @ ..] = *<&[u8; 5]>::try_from(bytes).ok()?;
    Some((kind, i32::from_ne_bytes(number)))
}

/// Prepares the namespace, drops rights, and supervises COMMAND until the caller or keeper is gone.
pub fn supervise(program: &Program) -> io::Result<u8> {
    let keeper = own_channel()?;
    let Some(message) = keeper.receive()? else { return Ok(1) };
    let prepared = prepare(message);
    let answer = match &prepared {
        Ok((_, own_proc)) => Answer::Started { own_proc: *own_proc },
        Err(error) => Answer::failed(error),
    };
    keeper.send(&answer.to_bytes(), &[])?;
    let (mut supervisor, _) = prepared?;
    if keeper.receive()?.is_none_or(|message| message.bytes != GO) {
        return Ok(1);
    }
    supervisor.start(program)?;
    supervisor.run_to_end(&keeper)?;
    Ok(0)
}

/// State of COMMAND's parent.
struct Supervisor {
    /// Channel to the process that requested COMMAND.
    caller: Channel,
    /// File with the program to execute.
    spec: OwnedFd,
    stdio: Vec<OwnedFd>,
    terminal: Option<OwnedFd>,
    foreground: bool,
    patience: Duration,
    children: SignalFd,
    command: Option<Pid>,
    exit_code: i32,
}

/// Does all that needs rights, and drops them. Returns `true` if a separate `/proc` is mounted.
fn prepare(message: Message) -> io::Result<(Supervisor, bool)> {
    let Inside { user, group, groups, start } = Inside::of_bytes(&message.bytes)?;
    if message.descriptors.len() != start.descriptors() {
        return Err(ErrorKind::InvalidData.into());
    }
    let mut descriptors = message.descriptors.into_iter();
    let mut next = || descriptors.next().ok_or(ErrorKind::InvalidData);
    let (caller, spec) = (Channel::of(next()?), next()?);
    let stdio = vec![next()?, next()?, next()?];
    let terminal = if start.terminal { Some(next()?) } else { None };
    let directory = if start.directory { Some(next()?) } else { None };

    let own_proc = mount_proc().is_ok();
    lower_limits(&start.limits)?;
    umask(Mode::from_raw_mode(start.umask.into()));
    let user = User { id: user, group, groups };
    if !user.is_root() {
        if start.allow_sudo { give_up_for_now(&user) } else { give_up(&user) }?;
    }
    // A change of user resets both.
    set_parent_process_death_signal(Some(Signal::KILL))?;
    rustix::process::set_dumpable_behavior(rustix::process::DumpableBehavior::NotDumpable)?;
    setsid()?;
    if let Some(terminal) = &terminal {
        ioctl_tiocsctty(terminal)?;
    }
    if let Some(directory) = directory {
        fchdir(directory)?;
    }
    let mut children = SigSet::empty();
    children.add(NixSignal::SIGCHLD);
    children.thread_block()?;
    let children = SignalFd::with_flags(&children, SfdFlags::SFD_NONBLOCK | SfdFlags::SFD_CLOEXEC)?;
    let supervisor = Supervisor {
        caller,
        spec,
        stdio,
        terminal,
        foreground: start.foreground,
        patience: Duration::from_millis(start.patience_ms.into()),
        children,
        command: None,
        exit_code: 1,
    };
    Ok((supervisor, own_proc))
}

/// Mounts a `/proc` with the processes of this PID namespace, in a separate mount namespace.
fn mount_proc() -> io::Result<()> {
    unshare_namespace(UnshareFlags::NEWNS)?;
    mount_change("/", MountPropagationFlags::PRIVATE | MountPropagationFlags::REC)?;
    let flags = MountFlags::NOSUID | MountFlags::NODEV | MountFlags::NOEXEC;
    Ok(mount("proc", "/proc", "proc", flags, None)?)
}

impl Supervisor {
    /// Starts COMMAND in its own process group: if its terminal stops the group, this process keeps
    /// running.
    fn start(&mut self, program: &Program) -> io::Result<()> {
        let (ours, theirs) = Channel::pair()?;
        let mut stage = program.role(ROLE_COMMAND);
        stage.stdin(theirs.into_socket()).stdout(Stdio::null()).stderr(Stdio::null());
        let child = stage.process_group(0).spawn()?;
        self.command = Pid::from_raw(child.id() as i32);
        // SIGCHLD reports its end, together with that of all other children.
        drop(child);
        let foreground = self.terminal.as_ref().filter(|_| self.foreground);
        let passed = [&self.spec].into_iter().chain(&self.stdio).chain(foreground);
        let passed: Vec<BorrowedFd<'_>> = passed.map(AsFd::as_fd).collect();
        ours.send(&[0], &passed)?;
        self.stdio.clear();
        Ok(())
    }

    /// Supervises COMMAND until its end, then its descendants and connections.
    fn run_to_end(&mut self, keeper: &Channel) -> io::Result<()> {
        while let Some(command) = self.command {
            if !self.wait(keeper, None)? {
                return Ok(());
            }
            self.reap(command)?;
        }
        if !self.kill_descendants(keeper)? {
            return Ok(());
        }
        self.linger(keeper)
    }

    /// Waits for an event, and carries out a request. Returns `false` if the caller or keeper is
    /// gone.
    fn wait(&self, keeper: &Channel, most: Option<Wall>) -> io::Result<bool> {
        let most = most.map(|most| Timespec {
            tv_sec: most.as_secs() as i64,
            tv_nsec: most.subsec_nanos().into(),
        });
        let watch = |fd| PollFd::from_borrowed_fd(fd, PollFlags::IN);
        let mut watched =
            [watch(self.caller.as_fd()), watch(keeper.as_fd()), watch(self.children.as_fd())];
        match poll(&mut watched, most.as_ref()) {
            Ok(_) | Err(Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
        let [caller, keeper, _] = watched.map(|each| !each.revents().is_empty());
        if keeper {
            return Ok(false);
        }
        while let Ok(Some(_)) = self.children.read_signal() {}
        if caller {
            let Some(message) = self.caller.receive()? else { return Ok(false) };
            if let Some(order) = Order::of_bytes(&message.bytes) {
                self.execute(order);
            }
        }
        Ok(true)
    }

    /// Carries out a request of the caller.
    fn execute(&self, order: Order) {
        let Some(command) = self.command else { return };
        // COMMAND may have ended; then there is no process to signal.
        let _ = match order {
            Order::Signal(number) => {
                Signal::from_named_raw(number).map_or(Ok(()), |s| kill_process(command, s))
            }
            Order::SignalAll(number) => {
                Signal::from_named_raw(number).map_or(Ok(()), |s| kill_process_group(command, s))
            }
            Order::Continue => kill_process_group(command, Signal::CONT),
            Order::Foreground => {
                if let Some(terminal) = &self.terminal {
                    let _ = give_terminal(terminal, command);
                }
                kill_process_group(command, Signal::CONT)
            }
        };
    }

    /// Handles all children with a changed status.
    fn reap(&mut self, command: Pid) -> io::Result<()> {
        loop {
            match wait(WaitOptions::NOHANG | WaitOptions::UNTRACED) {
                Ok(Some((pid, status))) if pid == command => {
                    if let Some(signal) = status.stopping_signal() {
                        self.report(Event::Stopped(signal));
                        continue;
                    }
                    self.command = None;
                    let signalled = status.terminating_signal().map(|signal| SIGNALLED + signal);
                    self.exit_code = status.exit_status().or(signalled).unwrap_or(1);
                }
                Ok(Some(_)) | Err(Errno::INTR) => {}
                Ok(None) | Err(Errno::CHILD) => return Ok(()),
                Err(error) => return Err(error.into()),
            }
        }
    }

    /// Kills what COMMAND left running, then reports its exit code. Returns `false` if the caller
    /// or keeper is gone.
    fn kill_descendants(&mut self, keeper: &Channel) -> io::Result<bool> {
        let until = monotonic() + LONGEST_END;
        // There may be no process left, or only such as gained rights; those end with this process.
        let _ = nix::sys::signal::kill(nix::unistd::Pid::from_raw(-1), NixSignal::SIGKILL);
        loop {
            match wait(WaitOptions::NOHANG) {
                Ok(Some(_)) | Err(Errno::INTR) => {}
                Ok(None) if monotonic() < until => {
                    if !self.wait(keeper, Some(POLL_INTERVAL))? {
                        return Ok(false);
                    }
                }
                Ok(None) | Err(_) => break,
            }
        }
        // Closing the terminal here ends the caller's reading after their last output.
        self.terminal = None;
        self.report(Event::Ended(self.exit_code));
        Ok(true)
    }

    /// Waits until all connections have ended, or have made no progress for the patience, and
    /// reports it. Then keeps the network namespace until the caller or keeper is gone.
    fn linger(&self, keeper: &Channel) -> io::Result<()> {
        let mut connections = Connections::here()?;
        let mut before = Vec::new();
        let mut until = Time::ZERO;
        loop {
            let unfinished = connections.unfinished()?;
            let now = monotonic();
            if unfinished != before {
                until = now + self.patience;
                before = unfinished;
            }
            if before.is_empty() || now >= until {
                break;
            }
            if !self.wait(keeper, Some(POLL_INTERVAL))? {
                return Ok(());
            }
        }
        self.report(Event::Quiet);
        // The network namespace exists as long as a process is in it.
        while self.wait(keeper, None)? {}
        Ok(())
    }

    fn report(&self, event: Event) {
        // A caller that is gone needs no report.
        let _ = self.caller.send(&event.to_bytes(), &[]);
    }
}

/// Gives a terminal to a process group of this session. SIGTTOU, which would stop a background
/// process, is blocked.
pub fn give_terminal(terminal: &OwnedFd, group: Pid) -> io::Result<()> {
    let mut stopped = SigSet::empty();
    stopped.add(NixSignal::SIGTTOU);
    stopped.thread_block()?;
    let given = tcsetpgrp(terminal, group);
    stopped.thread_unblock()?;
    Ok(given?)
}

/// Program to execute. No privileged process reads it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Spec {
    /// Program and arguments.
    pub command: Vec<OsString>,
    /// Complete environment.
    pub environment: Vec<(OsString, OsString)>,
}

impl Spec {
    /// Writes it to an anonymous file in memory.
    ///
    /// # Errors
    /// Those of the kernel; `InvalidInput` if a string contains a zero byte.
    pub fn to_file(&self) -> io::Result<OwnedFd> {
        let mut bytes = Vec::new();
        let mut put = |text: &OsStr| {
            if text.as_bytes().contains(&0) {
                return Err(io::Error::from(ErrorKind::InvalidInput));
            }
            bytes.extend_from_slice(text.as_bytes());
            bytes.push(0);
            Ok(())
        };
        put(OsStr::new(&self.command.len().to_string()))?;
        for word in &self.command {
            put(word)?;
        }
        for (name, value) in &self.environment {
            put(name)?;
            put(value)?;
        }
        let mut file = File::from(memfd_create("cwnd-command", MemfdFlags::CLOEXEC)?);
        file.write_all(&bytes)?;
        Ok(file.into())
    }

    /// Reads a file that [`Spec::to_file`] wrote.
    ///
    /// # Errors
    /// Those of the kernel; `InvalidData` if the file has another format.
    pub fn of_file(file: OwnedFd) -> io::Result<Self> {
        let mut file = File::from(file);
        let mut bytes = Vec::new();
        file.rewind()?;
        file.read_to_end(&mut bytes)?;
        let mut words =
            bytes.split(|&byte| byte == 0).map(|word| OsString::from_vec(word.to_vec()));
        let mut next = || words.next().ok_or(ErrorKind::InvalidData);
        let count = next()?.to_str().and_then(|count| count.parse().ok());
        let count: usize = count.ok_or(ErrorKind::InvalidData)?;
        let command = (0..count).map(|_| next()).collect::<Result<_, _>>()?;
        let mut environment = Vec::new();
        while let Ok(name) = next() {
            // The last string is followed by a zero byte, hence by an empty string.
            let Ok(value) = next() else { break };
            environment.push((name, value));
        }
        Ok(Self { command, environment })
    }
}

/// Executes COMMAND in place of this process. If that fails, prints the reason and returns the exit
/// code as a shell does.
pub fn become_command() -> io::Result<u8> {
    let message = own_channel()?.receive()?.ok_or(ErrorKind::UnexpectedEof)?;
    let mut descriptors = message.descriptors.into_iter();
    let mut next = || descriptors.next().ok_or(ErrorKind::InvalidData);
    let spec = Spec::of_file(next()?)?;
    let stdio = [next()?, next()?, next()?];
    if let Ok(terminal) = next() {
        give_terminal(&terminal, getpid())?;
    }
    dup2_stdin(&stdio[0])?;
    dup2_stdout(&stdio[1])?;
    dup2_stderr(&stdio[2])?;
    drop(stdio);
    // COMMAND's parent blocks the signal by which it waits for children, and blocked signals are
    // inherited.
    SigSet::all().thread_unblock()?;
    let [program, arguments @ ..] = &spec.command[..] else {
        return Err(ErrorKind::InvalidData.into());
    };
    let error = Command::new(program).args(arguments).env_clear().envs(spec.environment).exec();
    let text = error.to_string();
    let (code, reason) = match error.kind() {
        ErrorKind::NotFound => (NOT_FOUND, "command not found".to_owned()),
        _ => (NOT_EXECUTABLE, text.split(" (os error").next().unwrap_or_default().to_lowercase()),
    };
    // Standard error may be closed.
    let _ = writeln!(io::stderr(), "cwnd link: {}: {reason}", program.display());
    Ok(code)
}

/// Offset of exit codes that shells give to processes ended by a signal.
const SIGNALLED: i32 = 128;
const POLL_INTERVAL: Wall = Wall::from_millis(5);
/// Time within which killed processes end.
const LONGEST_END: Duration = Duration::from_secs(1);

/// Exit codes of shells for a command that does not exist or cannot be executed.
const NOT_FOUND: u8 = 127;
const NOT_EXECUTABLE: u8 = 126;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_executed_comes_out_of_its_file_as_it_went_in() {
        let spec = Spec {
            command: ["sh", "", "-c", "exit 7\n"].map(OsString::from).to_vec(),
            environment: vec![("A".into(), "".into()), ("B".into(), "x=y".into())],
        };
        assert_eq!(Spec::of_file(spec.to_file().expect("memory")).expect("as written"), spec);
        let zero = Spec { command: vec!["a\0b".into()], environment: Vec::new() };
        assert!(zero.to_file().is_err());
    }
}
