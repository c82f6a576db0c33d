//! Waits for a signal, or for the end of the process that started this one.

use std::io::Read as _;
use std::os::unix::net::UnixStream;

use rustix::event::{PollFd, PollFlags, poll};
use rustix::process::{PidfdFlags, getppid, pidfd_open};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};

use crate::error::Error;

/// Sources of the end of a hold. Created before anything is loaded, so that no signal is missed.
#[derive(Debug)]
pub struct End {
    signals: UnixStream,
    parent: Option<rustix::fd::OwnedFd>,
}

impl End {
    /// Installs the signal handlers and watches the parent.
    ///
    /// # Errors
    /// Fails if no more files can be opened.
    pub fn new() -> Result<Self, Error> {
        let (signals, write) = UnixStream::pair()?;
        for signal in [SIGTERM, SIGINT, SIGHUP] {
            signal_hook::low_level::pipe::register(signal, write.try_clone()?)?;
        }
        // Not PR_SET_PDEATHSIG, which is sent when the parent's *thread* ends.
        let parent = getppid().and_then(|parent| pidfd_open(parent, PidfdFlags::empty()).ok());
        Ok(Self { signals, parent })
    }

    /// Waits for the first signal or the end of the parent.
    ///
    /// # Errors
    /// Fails if the wait fails.
    pub fn wait(mut self) -> Result<(), Error> {
        loop {
            let mut watched = vec![PollFd::new(&self.signals, PollFlags::IN)];
            if let Some(parent) = &self.parent {
                watched.push(PollFd::new(parent, PollFlags::IN));
            }
            match poll(&mut watched, None) {
                Ok(_) => break,
                Err(rustix::io::Errno::INTR) => {}
                Err(error) => return Err(std::io::Error::from(error).into()),
            }
        }
        self.signals.set_nonblocking(true)?;
        let _ = self.signals.read(&mut [0; 8]);
        Ok(())
    }
}
