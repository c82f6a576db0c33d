use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::thread;

use rustix::fs::{Mode, OFlags, open};
use rustix::thread::{LinkNameSpaceType, UnshareFlags, move_into_link_name_space};

/// Unnamed network namespace. It exists as long as a descriptor, a process or a socket of it.
#[derive(Debug)]
pub struct Namespace(OwnedFd);

impl Namespace {
    /// Returns the calling thread's namespace.
    ///
    /// # Errors
    /// Without `/proc`.
    pub fn current() -> io::Result<Self> {
        let flags = OFlags::RDONLY | OFlags::CLOEXEC;
        Ok(Self(open("/proc/thread-self/ns/net", flags, Mode::empty())?))
    }

    /// Creates a namespace with only a loopback device, which is down. The calling thread does not
    /// move.
    ///
    /// # Errors
    /// Without the right to administer the system.
    pub fn fresh() -> io::Result<Self> {
        on_a_thread(|| {
            leave_network()?;
            Self::current()
        })
    }

    /// Moves the calling thread into the namespace.
    ///
    /// # Errors
    /// Without the right to administer the system.
    pub fn enter(&self) -> io::Result<()> {
        move_into_link_name_space(self.0.as_fd(), Some(LinkNameSpaceType::Network))?;
        Ok(())
    }

    /// Does `work` in the namespace, on a separate thread.
    ///
    /// # Errors
    /// Without the right to administer the system; those of `work`.
    pub fn inside<T: Send>(&self, work: impl FnOnce() -> io::Result<T> + Send) -> io::Result<T> {
        on_a_thread(|| {
            self.enter()?;
            work()
        })
    }
}

impl AsFd for Namespace {
    fn as_fd(&self) -> std::os::fd::BorrowedFd<'_> {
        self.0.as_fd()
    }
}

#[expect(deprecated, reason = "what made it deprecated is sharing files no more, not the network")]
fn leave_network() -> io::Result<()> {
    Ok(rustix::thread::unshare(UnshareFlags::NEWNET)?)
}

fn on_a_thread<T: Send>(work: impl FnOnce() -> io::Result<T> + Send) -> io::Result<T> {
    thread::scope(|scope| {
        let thread = thread::Builder::new().spawn_scoped(scope, work)?;
        thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    })
}
