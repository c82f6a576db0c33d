//! A sending application: its socket, with a congestion controller, and the data left to write.

use std::io;
use std::net::SocketAddrV4;
use std::os::fd::OwnedFd;

use cwnd_apps::{Actions, Session};
use rustix::io::Errno;
use rustix::net::{
    AddressFamily, SendFlags, Shutdown, SocketFlags, SocketType, bind, connect, listen, send,
    shutdown, socket_with, sockopt,
};

use crate::world::World;

/// State of a sender.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// It has data to write, once it is connected.
    Writing,
    /// All data are written, but not acknowledged yet.
    Draining,
    /// It has no data until the application writes again.
    Waiting,
    /// It has closed its direction of the connection.
    Closing,
}

/// A sender of one flow.
#[derive(Debug)]
pub struct Sender {
    /// TCP socket of the sender.
    pub socket: OwnedFd,
    /// State of the sender.
    pub state: State,
    /// Application that decides which data it sends.
    pub session: Session,
    /// Bytes left to write.
    left: u64,
}

impl Sender {
    /// Opens the connection of a flow, in the calling thread's namespace.
    pub fn connect(world: &World, flow: usize) -> io::Result<Self> {
        let plan = &world.flows[flow];
        let group = &world.scenario.flows[plan.group];
        let session = Session::new(group.workload.maker()(), plan.rng.clone());
        let socket = open()?;
        sockopt::set_tcp_congestion(&socket, &world.controllers[plan.group]).map_err(|error| {
            let name = &world.controllers[plan.group];
            io::Error::new(error.kind(), format!("congestion controller {name}: {error}"))
        })?;
        bind(&socket, &world.sender(flow))?;
        match connect(&socket, &world.receiver(flow)) {
            Ok(()) | Err(Errno::INPROGRESS) => {}
            Err(error) => return Err(error.into()),
        }
        Ok(Self { socket, state: State::Waiting, session, left: 0 })
    }

    /// Writes zeros while the socket accepts them.
    pub fn write(&mut self, zeros: &[u8]) -> io::Result<()> {
        while self.state == State::Writing {
            let most = self.left.min(zeros.len() as u64) as usize;
            match send(&self.socket, &zeros[..most], SendFlags::NOSIGNAL) {
                Ok(bytes) => {
                    self.left -= bytes as u64;
                    if self.left == 0 {
                        self.state = State::Draining;
                    }
                }
                // The socket is not connected yet, or its buffer is full.
                Err(Errno::AGAIN | Errno::NOTCONN | Errno::INTR) => return Ok(()),
                Err(error) => return Err(error.into()),
            }
        }
        Ok(())
    }

    /// Adds the data that the application writes.
    pub fn take(&mut self, what: Actions) {
        self.left = self.left.saturating_add(what.write);
        if what.write > 0 {
            self.state = State::Writing;
        }
    }

    /// Closes the sending direction (FIN).
    pub fn close(&mut self) {
        self.state = State::Closing;
        // The connection may be gone already.
        let _ = shutdown(&self.socket, Shutdown::Write);
    }

    /// Returns the error of the connection, if it failed.
    pub fn error(&self) -> Option<Errno> {
        sockopt::socket_error(&self.socket).ok().and_then(Result::err)
    }
}

/// Opens a socket that accepts connections, which have its controller; the system's if not given.
pub fn bind_listener(at: SocketAddrV4, controller: Option<&str>) -> io::Result<OwnedFd> {
    let socket = open()?;
    if let Some(controller) = controller {
        sockopt::set_tcp_congestion(&socket, controller)?;
    }
    bind(&socket, &at)?;
    listen(&socket, BACKLOG)?;
    Ok(socket)
}

fn open() -> io::Result<OwnedFd> {
    let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
    let socket = socket_with(AddressFamily::INET, SocketType::STREAM, flags, None)?;
    reset_on_close(&socket)?;
    Ok(socket)
}

/// Lets close reset the connection. Otherwise unsent data would keep the namespace alive for
/// minutes after its process was killed.
pub fn reset_on_close(socket: &OwnedFd) -> io::Result<()> {
    Ok(sockopt::set_socket_linger(socket, Some(core::time::Duration::ZERO))?)
}

/// Maximum number of connections that wait to be accepted.
const BACKLOG: i32 = 4096;
