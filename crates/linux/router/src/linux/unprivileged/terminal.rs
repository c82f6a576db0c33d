//! Pseudo-terminal for COMMAND: its output reaches the user's terminal, but it cannot insert input
//! there.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::event::{PollFd, PollFlags};
use rustix::fs::{Mode, OFlags, fcntl_getfl, fcntl_setfl, open};
use rustix::io::Errno;
use rustix::process::getpgrp;
use rustix::pty::{OpenptFlags, grantpt, ioctl_tiocgptpeer, openpt, unlockpt};
use rustix::termios::{
    OptionalActions, Termios, isatty, tcgetattr, tcgetpgrp, tcgetwinsize, tcsetattr, tcsetwinsize,
};

/// The user's terminal, and the pseudo-terminal of COMMAND.
#[derive(Debug)]
pub struct Terminal {
    users: OwnedFd,
    ours: OwnedFd,
    /// COMMAND's end of the pseudo-terminal, until it is passed on.
    theirs: Option<OwnedFd>,
    conversation: bool,
    /// `true` if the user's input goes to COMMAND.
    reads: bool,
    /// Settings of the user's terminal before.
    before: Option<Termios>,
    typed: Vec<u8>,
}

impl Terminal {
    /// Creates a pseudo-terminal; `None` if no standard stream of this process is a terminal.
    ///
    /// # Errors
    /// If the system has no more pseudo-terminals.
    pub fn of_this_process() -> io::Result<Option<Self>> {
        let (input, output, errors) = (io::stdin(), io::stdout(), io::stderr());
        let own = [input.as_fd(), output.as_fd(), errors.as_fd()];
        let Some(one) = own.into_iter().find(|own| isatty(own)) else { return Ok(None) };
        let users =
            open("/dev/tty", OFlags::RDWR | OFlags::NOCTTY | OFlags::CLOEXEC, Mode::empty());
        let users = users.map_or_else(|_| one.try_clone_to_owned(), Ok)?;
        let ours = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC)?;
        grantpt(&ours)?;
        unlockpt(&ours)?;
        let flags = OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC;
        let theirs = ioctl_tiocgptpeer(&ours, flags)?;
        fcntl_setfl(&ours, fcntl_getfl(&ours)? | OFlags::NONBLOCK)?;
        tcsetattr(&theirs, OptionalActions::Now, &tcgetattr(&users)?)?;
        let terminal = Self {
            users,
            ours,
            theirs: Some(theirs),
            conversation: isatty(own[0]) && isatty(own[1]),
            reads: false,
            before: None,
            typed: Vec::new(),
        };
        terminal.resize();
        Ok(Some(terminal))
    }

    /// `true` if standard input and output are both terminals. Otherwise another program may read
    /// from the user meanwhile, and COMMAND gets the terminal when it requests it.
    pub const fn is_conversation(&self) -> bool {
        self.conversation
    }

    /// Returns the descriptor that COMMAND gets in place of one of ours.
    pub fn instead_of<'a>(&'a self, own: BorrowedFd<'a>) -> BorrowedFd<'a> {
        self.theirs().filter(|_| isatty(own)).unwrap_or(own)
    }

    /// Returns COMMAND's end of the pseudo-terminal, if it was not passed on yet.
    pub fn theirs(&self) -> Option<BorrowedFd<'_>> {
        self.theirs.as_ref().map(AsFd::as_fd)
    }

    /// Closes COMMAND's end here once COMMAND has it, and in a conversation starts to read from the
    /// user.
    pub fn begin(&mut self) -> io::Result<()> {
        self.theirs = None;
        if self.conversation {
            // A process in the background gets the terminal later.
            self.reads = true;
            self.resume();
        }
        Ok(())
    }

    /// Passes the user's input to COMMAND if this process is in the foreground; returns `true`
    /// if it is.
    pub fn take_over(&mut self) -> io::Result<bool> {
        self.reads = self.is_foreground();
        self.resume();
        Ok(self.reads)
    }

    /// Restores the settings of the user's terminal, if this process is in the foreground.
    pub fn pause(&mut self) {
        if let Some(before) = &self.before
            && self.is_foreground()
        {
            // A terminal that is gone cannot be set.
            let _ = tcsetattr(&self.users, OptionalActions::Drain, before);
        }
    }

    /// Sets the user's terminal to raw mode, if this process is in the foreground and reads from
    /// it.
    pub fn resume(&mut self) {
        if !self.reads || !self.is_foreground() {
            return;
        }
        if let Ok(now) = tcgetattr(&self.users) {
            let mut raw = now.clone();
            self.before.get_or_insert(now);
            raw.make_raw();
            let _ = tcsetattr(&self.users, OptionalActions::Drain, &raw);
        }
        self.resize();
    }

    /// Sets COMMAND's terminal to the size of the user's.
    pub fn resize(&self) {
        if let Ok(size) = tcgetwinsize(&self.users) {
            let _ = tcsetwinsize(&self.ours, size);
        }
    }

    fn is_foreground(&self) -> bool {
        tcgetpgrp(&self.users).is_ok_and(|group| group == getpgrp())
    }

    /// Returns the descriptors to poll: COMMAND's terminal, then the user's.
    pub fn watched(&self) -> [PollFd<'_>; 2] {
        let write = if self.typed.is_empty() { PollFlags::empty() } else { PollFlags::OUT };
        let reads = self.reads && self.typed.is_empty() && self.is_foreground();
        let read = if reads { PollFlags::IN } else { PollFlags::empty() };
        [
            PollFd::from_borrowed_fd(self.ours.as_fd(), PollFlags::IN | write),
            PollFd::from_borrowed_fd(self.users.as_fd(), read),
        ]
    }

    /// Copies available data in both directions, given the result of polling.
    pub fn carry(&mut self, ready: &[PollFlags]) {
        let &[ours, users] = ready else { return };
        if ours.intersects(PollFlags::IN | PollFlags::HUP) {
            self.show();
        }
        if users.intersects(PollFlags::IN | PollFlags::HUP) && self.reads {
            let mut typed = [0; ROOM];
            match rustix::io::read(&self.users, &mut typed) {
                Ok(0) | Err(Errno::IO) => self.reads = false,
                Ok(length) => self.typed.extend_from_slice(&typed[..length]),
                Err(_) => {}
            }
        }
        if !self.typed.is_empty()
            && let Ok(length) = rustix::io::write(&self.ours, &self.typed)
        {
            self.typed.drain(..length);
        }
    }

    /// Writes COMMAND's output to the user's terminal; returns `true` if there was any.
    fn show(&self) -> bool {
        let mut said = [0; ROOM];
        let Ok(length @ 1..) = rustix::io::read(&self.ours, &mut said) else { return false };
        let mut rest = &said[..length];
        while !rest.is_empty() {
            match rustix::io::write(&self.users, rest) {
                Ok(written) => rest = &rest[written..],
                Err(Errno::INTR) => {}
                // The user's terminal is gone.
                Err(_) => break,
            }
        }
        true
    }

    /// Writes the rest of COMMAND's output after its end.
    pub fn end(self) {
        let mut looks = 0;
        while looks < LOOKS {
            if self.show() {
                continue;
            }
            let mut watched = [PollFd::from_borrowed_fd(self.ours.as_fd(), PollFlags::IN)];
            let wait = super::timespec(super::SHORT_POLL_INTERVAL);
            match rustix::event::poll(&mut watched, Some(&wait)) {
                // The other end is closed, and no output is left.
                Ok(1) if !watched[0].revents().contains(PollFlags::IN) => break,
                _ => looks += 1,
            }
        }
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        self.pause();
    }
}

/// Bytes copied at a time.
const ROOM: usize = 1 << 14;
/// Number of waits for more output at the end: a process that gained rights may still hold
/// COMMAND's terminal.
const LOOKS: u32 = 20;
