//! Unprivileged process of `cwnd link`, which the user sees: it runs the router and waits for
//! COMMAND. It needs no rights; a privileged keeper passes on the descriptors whose creation
//! required them.

mod terminal;

use std::ffi::OsString;
use std::fs::File;
use std::io::{self, ErrorKind};
use std::net::{IpAddr, SocketAddr};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::Path;
use std::process::{Command, Stdio};

use cwnd_quantity::Duration;
use nix::sys::signal::{SigSet, Signal as Named};
use nix::sys::signalfd::{SfdFlags, SignalFd};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{Mode, OFlags, open};
use rustix::io::Errno;
use rustix::net::sockopt::socket_peercred;
use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType};
use rustix::process::Signal;

use crate::capture::Capture;
use crate::config::Config;
use crate::linux::dns_relay::{AtCaller, RelayedServer};
use crate::linux::link_namespace::Devices;
use crate::linux::netlink::Netlink;
use crate::linux::privileged::{
    Answer, Channel, Event, MAX_PATIENCE_MS, Made, Make, Order, Program, Request, SOCKET_PREFIX,
    Spec, Start, limits, start_keeper,
};
use crate::linux::run::{Running, monotonic, start};
use crate::linux::tun::Tun;
use crate::linux::unprivileged::terminal::Terminal;
use crate::live::Live;
use crate::report::Report;

/// Channel to the privileged process, the keeper.
#[derive(Debug)]
pub struct PrivilegedProcess(Channel);

impl PrivilegedProcess {
    /// Starts a keeper with the rights of this process.
    ///
    /// # Errors
    /// If it cannot be started.
    pub fn start(program: &Program) -> io::Result<Self> {
        let (ours, theirs) = Channel::pair()?;
        // The keeper ends when the channel closes. Its exit status is left to whoever reaps the
        // children of this process.
        drop(start_keeper(program, theirs.into_socket(), Stdio::null())?);
        Ok(Self(ours))
    }

    /// Starts a keeper through a command that grants rights, such as sudo(8). `say` receives the
    /// whole command before it runs. `name` must be hard to guess.
    ///
    /// # Errors
    /// `PermissionDenied` if the command fails, which has then printed the reason itself;
    /// `InvalidInput` if `granting` is empty; those of the kernel.
    pub fn ask(
        granting: &[OsString],
        program: &Program,
        name: &str,
        say: impl FnOnce(&Command),
    ) -> io::Result<Self> {
        let name = format!("{SOCKET_PREFIX}{name}");
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        let (family, kind) = (AddressFamily::UNIX, SocketType::SEQPACKET);
        let socket = rustix::net::socket_with(family, kind, flags, None)?;
        rustix::net::bind(&socket, &SocketAddrUnix::new_abstract_name(name.as_bytes())?)?;
        rustix::net::listen(&socket, 8)?;
        let [grants, options @ ..] = granting else { return Err(ErrorKind::InvalidInput.into()) };
        let keeper = program.role(&name);
        let mut command = Command::new(grants);
        command.args(options).arg(keeper.get_program()).args(keeper.get_args());
        say(&command);
        if !command.status()?.success() {
            return Err(ErrorKind::PermissionDenied.into());
        }
        // Other processes may connect as well: only root has the requested rights.
        loop {
            let socket = rustix::net::accept_with(&socket, SocketFlags::CLOEXEC)?;
            if socket_peercred(&socket)?.uid.is_root() {
                return Ok(Self(Channel::of(socket)));
            }
        }
    }

    fn ask_for(
        &self,
        request: &Request,
        descriptors: &[BorrowedFd<'_>],
    ) -> io::Result<(Answer, Vec<OwnedFd>)> {
        // If the keeper has ended, its last message can still be read.
        let sent = self.0.send(&request.to_bytes(), descriptors);
        let Some(message) = self.0.receive()? else {
            sent?;
            return Err(io::Error::other("the process that keeps the rights has ended"));
        };
        Ok((Answer::of_bytes(&message.bytes)?.checked()?, message.descriptors))
    }

    fn make(&self, make: Make) -> io::Result<(Made, Devices)> {
        let (answer, descriptors) = self.ask_for(&Request::Make(make), &[])?;
        let (Answer::Made(made), Ok([inner, outer, counts])) =
            (answer, <[OwnedFd; 3]>::try_from(descriptors))
        else {
            return Err(ErrorKind::InvalidData.into());
        };
        let [inside, outside] = made.devices.clone();
        let inner = Tun::passed(inner, inside, Netlink::passed(counts))?;
        let outer = Tun::passed(outer, outside, Netlink::route()?)?;
        Ok((made, Devices { inner, outer }))
    }
}

/// Creates a file, or truncates an existing one. The file itself may be no symbolic link: in a
/// directory that others can write, it could lead anywhere.
///
/// # Errors
/// Those of the kernel.
pub fn create_file(path: &Path) -> io::Result<File> {
    let flags =
        OFlags::WRONLY | OFlags::CREATE | OFlags::TRUNC | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    match open(path, flags, Mode::from_raw_mode(0o666)) {
        Ok(file) => Ok(file.into()),
        Err(Errno::LOOP) => Err(io::Error::other("it is a symbolic link; give the file itself")),
        Err(error) => Err(error.into()),
    }
}

/// A link whose rights belong to another process, the keeper.
#[derive(Debug)]
pub struct UnprivilegedLink {
    keeper: PrivilegedProcess,
    made: Made,
    router: Running,
    names: Option<AtCaller>,
    relayed: Vec<RelayedServer>,
    signals: Signals,
    patience: Duration,
}

/// Options with which COMMAND is run.
#[derive(Clone, Copy, Debug, Default)]
pub struct RunOptions {
    /// `true` if COMMAND may gain rights through set-user-ID programs.
    pub allow_sudo: bool,
    /// `true` if its standard output goes to standard error.
    pub output_to_errors: bool,
}

/// Result of COMMAND.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CommandResult {
    /// Exit code, as a shell gives it.
    pub code: i32,
    /// `true` if COMMAND had its own `/proc`.
    pub own_proc: bool,
}

impl UnprivilegedLink {
    /// Lets the keeper create the namespace behind the link, and runs the router, whose side A is
    /// behind the link. DNS queries to loopback addresses among `servers` go on to these as seen
    /// from this machine, or those to all `servers` to `dns`. The link receives this process's
    /// signals until it is dropped; call this from the main thread.
    ///
    /// # Errors
    /// Those of the keeper: without `/dev/net/tun` (`NotFound`) or the rights (`PermissionDenied`).
    pub fn make(
        keeper: PrivilegedProcess,
        make: Make,
        mut config: Config,
        capture: Option<Capture>,
        (servers, dns): (&[IpAddr], Option<SocketAddr>),
    ) -> io::Result<Self> {
        let rtt = config.directions[0].delay + config.directions[1].delay;
        let patience = (rtt * PATIENCE_RTTS).max(MIN_PATIENCE);
        let patience = patience.min(Duration::from_millis(MAX_PATIENCE_MS.into()));
        let (made, Devices { inner, outer }) = keeper.make(make)?;
        let signals = Signals::block()?;
        // No source quench leaves this machine (RFC 6633).
        let [up, down] = &mut config.directions;
        (up.message_target, down.message_target) = (Some(made.ends.behind), Some(made.ends.caller));
        let (names, relayed) = AtCaller::open(servers, dns, made.ends)?.unzip();
        let router = start(config, inner, outer, capture)?;
        router.wait_until_it_runs();
        let relayed = relayed.unwrap_or_default();
        Ok(Self { keeper, made, router, names, relayed, signals, patience })
    }

    /// Returns the facts about the namespace behind the link.
    #[must_use]
    pub const fn made(&self) -> &Made {
        &self.made
    }

    /// Runs COMMAND, and waits for its end, and until its connections have ended or are silent.
    ///
    /// # Errors
    /// If COMMAND cannot be started, or if the router or the keeper ends before it, which kills it.
    pub fn run(&mut self, spec: &Spec, options: RunOptions) -> io::Result<CommandResult> {
        let (ours, theirs) = Channel::pair()?;
        let mut terminal = Terminal::of_this_process()?;
        let directory =
            open(".", OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty());
        // If this user may not open the directory, COMMAND runs in the one in which the keeper
        // began.
        let directory = directory.ok();
        let umask = rustix::process::umask(Mode::empty());
        rustix::process::umask(umask);
        let request = Start {
            allow_sudo: options.allow_sudo,
            terminal: terminal.is_some(),
            foreground: terminal.as_ref().is_some_and(Terminal::is_conversation),
            directory: directory.is_some(),
            umask: umask.bits() as u16 & 0o777,
            patience_ms: (self.patience.as_nanos() / NS_PER_MS) as u32,
            names: self.relayed.clone(),
            limits: limits(),
        };
        let file = spec.to_file()?;
        let (input, output, errors) = (io::stdin(), io::stdout(), io::stderr());
        let own = [input.as_fd(), output.as_fd(), errors.as_fd()];
        let [input, output, errors] =
            own.map(|own| terminal.as_ref().map_or(own, |terminal| terminal.instead_of(own)));
        let output = if options.output_to_errors { errors } else { output };
        let mut passed = vec![theirs.as_fd(), file.as_fd(), input, output, errors];
        passed.extend(terminal.as_ref().and_then(Terminal::theirs));
        passed.extend(directory.as_ref().map(AsFd::as_fd));
        let (answer, _) = self.keeper.ask_for(&Request::Start(request), &passed)?;
        let Answer::Started { own_proc } = answer else {
            return Err(ErrorKind::InvalidData.into());
        };
        drop(theirs);
        if let Some(terminal) = &mut terminal {
            terminal.begin()?;
        }
        let code = self.supervise(&ours, &mut terminal)?;
        // COMMAND's parent sees that its caller is gone, and the keeper sees that the parent is
        // gone.
        drop(ours);
        let _ = wait_for(self.keeper.0.as_fd(), LONGEST_END);
        Ok(CommandResult { code, own_proc })
    }

    /// Supervises COMMAND until its end, and until its connections have ended or are silent or an
    /// interrupt arrives; returns its exit code.
    fn supervise(&self, inside: &Channel, terminal: &mut Option<Terminal>) -> io::Result<i32> {
        let mut ended = None;
        let mut quiet_until = None;
        loop {
            if self.router.has_ended() {
                let _ = inside.send(&Order::Signal(Signal::KILL.as_raw()).to_bytes(), &[]);
                return Err(io::Error::other("the router has ended; COMMAND was killed"));
            }
            if let (Some(code), Some(until)) = (ended, quiet_until)
                && (self.router.is_empty() || monotonic() >= until)
            {
                return Ok(code);
            }
            let most = if quiet_until.is_some() { SHORT_POLL_INTERVAL } else { LONG_POLL_INTERVAL };
            let [told, signalled] =
                self.wait(inside, terminal.as_mut().filter(|_| ended.is_none()), most)?;
            if signalled {
                for number in self.signals.pending() {
                    if ended.is_some() && Signal::from_named_raw(number) == Some(Signal::INT) {
                        // An interrupt after COMMAND's end ends the wait for its connections.
                        return Ok(ended.unwrap_or_default());
                    }
                    self.pass_on(number, inside, terminal);
                }
            }
            if !told {
                continue;
            }
            let Some(message) = inside.receive().ok().flatten() else {
                return ended.ok_or_else(|| {
                    io::Error::other("a process of the link was killed, and COMMAND with it")
                });
            };
            match Event::of_bytes(&message.bytes) {
                Some(Event::Ended(code)) => {
                    ended = Some(code);
                    if let Some(terminal) = terminal.take() {
                        terminal.end();
                    }
                }
                Some(Event::Quiet) => quiet_until = Some(monotonic() + self.patience),
                Some(Event::Stopped(signal)) => self.stop_with_it(signal, inside, terminal)?,
                None => return Err(ErrorKind::InvalidData.into()),
            }
        }
    }

    /// Waits for events, and copies data between the terminals. Returns `true` for a message from
    /// COMMAND's parent, and for a signal.
    fn wait(
        &self,
        inside: &Channel,
        terminal: Option<&mut Terminal>,
        most: Duration,
    ) -> io::Result<[bool; 2]> {
        let watch = |fd| PollFd::from_borrowed_fd(fd, PollFlags::IN);
        let ready = {
            let mut watched = vec![watch(inside.as_fd()), watch(self.signals.0.as_fd())];
            if let Some(terminal) = &terminal {
                watched.extend(terminal.watched());
            }
            match poll(&mut watched, Some(&timespec(most))) {
                Ok(_) => {}
                Err(Errno::INTR) => return Ok([false; 2]),
                Err(error) => return Err(error.into()),
            }
            watched.iter().map(PollFd::revents).collect::<Vec<_>>()
        };
        if let Some(terminal) = terminal {
            terminal.carry(&ready[2..]);
        }
        Ok([!ready[0].is_empty(), !ready[1].is_empty()])
    }

    /// Passes a signal of this process on to COMMAND, except SIGWINCH and SIGCONT, which adjust the
    /// terminal.
    fn pass_on(&self, number: i32, inside: &Channel, terminal: &mut Option<Terminal>) {
        let order = match Signal::from_named_raw(number) {
            Some(Signal::WINCH) => {
                if let Some(terminal) = terminal {
                    terminal.resize();
                }
                return;
            }
            Some(Signal::CONT) => {
                if let Some(terminal) = terminal {
                    terminal.resume();
                }
                return;
            }
            // A terminal sends these to the whole foreground group.
            Some(Signal::INT | Signal::QUIT | Signal::TSTP) => Order::SignalAll(number),
            _ => Order::Signal(number),
        };
        // COMMAND may have just ended.
        let _ = inside.send(&order.to_bytes(), &[]);
    }

    /// Reacts to a stop of COMMAND: passes it the terminal that it waits for, or stops this
    /// process, too, for the shell that started it.
    fn stop_with_it(
        &self,
        signal: i32,
        inside: &Channel,
        terminal: &mut Option<Terminal>,
    ) -> io::Result<()> {
        let signal = Signal::from_named_raw(signal);
        let wants_terminal = matches!(signal, Some(Signal::TTIN | Signal::TTOU));
        if wants_terminal && let Some(terminal) = terminal {
            if !terminal.take_over()? {
                // Another process has the terminal. The shell continues this process when it is its
                // turn.
                self.signals.stop(if signal == Some(Signal::TTIN) {
                    Named::SIGTTIN
                } else {
                    Named::SIGTTOU
                })?;
                terminal.take_over()?;
            }
            let _ = inside.send(&Order::Foreground.to_bytes(), &[]);
        } else if terminal.is_some() || signal == Some(Signal::TSTP) {
            if let Some(terminal) = terminal {
                terminal.pause();
            }
            self.signals.stop(Named::SIGTSTP)?;
            if let Some(terminal) = terminal {
                terminal.resume();
            }
            let _ = inside.send(&Order::Continue.to_bytes(), &[]);
        }
        Ok(())
    }

    /// Returns the last rows of the time series, which the router goes on to replace.
    #[must_use]
    pub fn live(&self) -> Live {
        self.router.live()
    }

    /// Ends the router, and returns its report.
    ///
    /// # Errors
    /// The error that ended the router before, or those of the capture's output.
    pub fn finish(self) -> io::Result<Report> {
        let Self { names, router, .. } = self;
        drop(names);
        router.stop()
    }
}

/// Signals to this process that are blocked and read from a descriptor until it is dropped. Threads
/// started in the meantime receive none of them.
#[derive(Debug)]
struct Signals(SignalFd);

impl Signals {
    fn block() -> io::Result<Self> {
        let set = Self::set();
        set.thread_block()?;
        Ok(Self(SignalFd::with_flags(&set, SfdFlags::SFD_NONBLOCK | SfdFlags::SFD_CLOEXEC)?))
    }

    fn set() -> SigSet {
        BLOCKED_SIGNALS.into_iter().collect()
    }

    fn pending(&self) -> Vec<i32> {
        let mut numbers = Vec::new();
        while let Ok(Some(signal)) = self.0.read_signal() {
            numbers.push(signal.ssi_signo as i32);
        }
        numbers
    }

    /// Stops the process group of this process until a shell continues it. Without a shell it is
    /// not stopped.
    fn stop(&self, signal: Named) -> io::Result<()> {
        let set: SigSet = [signal].into_iter().collect();
        nix::sys::signal::kill(nix::unistd::Pid::from_raw(0), signal)?;
        set.thread_unblock()?;
        set.thread_block()?;
        Ok(())
    }
}

impl Drop for Signals {
    fn drop(&mut self) {
        self.pending();
        // An error at the end cannot be handled.
        let _ = Self::set().thread_unblock();
    }
}

/// Waits until a descriptor is readable or its other end is closed, for `most` at most.
fn wait_for(fd: BorrowedFd<'_>, most: Duration) -> io::Result<()> {
    let until = monotonic() + most;
    loop {
        let rest = until.since(monotonic());
        match poll(&mut [PollFd::from_borrowed_fd(fd, PollFlags::IN)], Some(&timespec(rest))) {
            Err(Errno::INTR) if monotonic() < until => {}
            Err(error) => return Err(error.into()),
            Ok(_) => return Ok(()),
        }
    }
}

fn timespec(d: Duration) -> Timespec {
    Timespec { tv_sec: (d.as_nanos() / NS_PER_S) as i64, tv_nsec: (d.as_nanos() % NS_PER_S) as _ }
}

/// Signals that are blocked, and handled or passed on.
const BLOCKED_SIGNALS: [Named; 11] = [
    Named::SIGINT,
    Named::SIGQUIT,
    Named::SIGTERM,
    Named::SIGHUP,
    Named::SIGUSR1,
    Named::SIGUSR2,
    Named::SIGWINCH,
    Named::SIGCONT,
    Named::SIGTSTP,
    Named::SIGTTIN,
    Named::SIGTTOU,
];
/// Round trips for which connections may be silent after COMMAND's end. A lost segment is sent
/// again after one, its copy after two more, and queues extend both.
const PATIENCE_RTTS: u64 = 10;
/// Lower bound of that time: five minimum retransmission timeouts of Linux (200 ms).
const MIN_PATIENCE: Duration = Duration::from_secs(1);
/// Intervals at which the router is checked: for its end, and after COMMAND's for being empty.
const LONG_POLL_INTERVAL: Duration = Duration::from_secs(1);
const SHORT_POLL_INTERVAL: Duration = Duration::from_millis(2);
/// Time within which the processes of a link end.
const LONGEST_END: Duration = Duration::from_secs(5);
const NS_PER_S: u64 = 1_000_000_000;
const NS_PER_MS: u64 = 1_000_000;
