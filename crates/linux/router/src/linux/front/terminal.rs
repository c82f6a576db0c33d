//! A terminal for COMMAND alone: what it says to it reaches the user's terminal, but it can't make it say anything.

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

/// COMMAND's terminal, and the user's.
#[derive(Debug)]
pub struct Terminal {
    users: OwnedFd,
    ours: OwnedFd,
    /// COMMAND's end, until it has it.
    theirs: Option<OwnedFd>,
    conversation: bool,
    /// Whether what the user types goes to COMMAND.
    reads: bool,
    /// How the user's terminal was before.
    before: Option<Termios>,
    typed: Vec<u8>,
}

impl Terminal {
    /// One in place of this process's; `None` if its standard input and outputs are none.
    ///
    /// # Errors
    /// If there is no more room for terminals.
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

    /// Whether input and output are both the user's. Otherwise another program may talk to the user meanwhile, and COMMAND
    /// gets the terminal when it asks for it.
    pub const fn is_conversation(&self) -> bool {
        self.conversation
    }

    /// What COMMAND gets for a descriptor of ours.
    pub fn instead_of<'a>(&'a self, own: BorrowedFd<'a>) -> BorrowedFd<'a> {
        self.theirs().filter(|_| isatty(own)).unwrap_or(own)
    }

    /// COMMAND's end.
    pub fn theirs(&self) -> Option<BorrowedFd<'_>> {
        self.theirs.as_ref().map(AsFd::as_fd)
    }

    /// COMMAND has its end.
    pub fn begin(&mut self) -> io::Result<()> {
        self.theirs = None;
        if self.conversation {
            // Who is in the background gets it later.
            self.reads = true;
            self.resume();
        }
        Ok(())
    }

    /// Gives COMMAND what the user types; whether this process may.
    pub fn take_over(&mut self) -> io::Result<bool> {
        self.reads = self.is_foreground();
        self.resume();
        Ok(self.reads)
    }

    /// As the user's terminal was before.
    pub fn pause(&mut self) {
        if let Some(before) = &self.before
            && self.is_foreground()
        {
            // One that is gone can't be set.
            let _ = tcsetattr(&self.users, OptionalActions::Drain, before);
        }
    }

    /// Has the user's terminal pass on each key as it is, if it is ours to set.
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

    /// Makes COMMAND's terminal as large as the user's.
    pub fn resize(&self) {
        if let Ok(size) = tcgetwinsize(&self.users) {
            let _ = tcsetwinsize(&self.ours, size);
        }
    }

    fn is_foreground(&self) -> bool {
        tcgetpgrp(&self.users).is_ok_and(|group| group == getpgrp())
    }

    /// What to wait for: COMMAND's end, the user's.
    pub fn watched(&self) -> [PollFd<'_>; 2] {
        let write = if self.typed.is_empty() { PollFlags::empty() } else { PollFlags::OUT };
        let reads = self.reads && self.typed.is_empty() && self.is_foreground();
        let read = if reads { PollFlags::IN } else { PollFlags::empty() };
        [
            PollFd::from_borrowed_fd(self.ours.as_fd(), PollFlags::IN | write),
            PollFd::from_borrowed_fd(self.users.as_fd(), read),
        ]
    }

    /// Carries what is there both ways, given what came of waiting.
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

    /// Shows what COMMAND wrote; whether there was something.
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

    /// COMMAND has ended: shows the rest of what it wrote.
    pub fn end(self) {
        let mut looks = 0;
        while looks < LOOKS {
            if self.show() {
                continue;
            }
            let mut watched = [PollFd::from_borrowed_fd(self.ours.as_fd(), PollFlags::IN)];
            let wait = super::timespec(super::SHORT_LOOK);
            match rustix::event::poll(&mut watched, Some(&wait)) {
                // Nobody has the other end any more, and nothing is left.
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

/// What is carried at a time, in bytes.
const ROOM: usize = 1 << 14;
/// Whoever gained rights may hold COMMAND's terminal: nobody waits long for more from there.
const LOOKS: u32 = 20;
