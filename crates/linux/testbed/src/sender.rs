//! A sending application: a socket with a controller of its own, and what it has still to write.

use std::io;
use std::net::SocketAddrV4;
use std::os::fd::OwnedFd;

use cwnd_apps::{Do, Session};
use rustix::io::Errno;
use rustix::net::{
    AddressFamily, SendFlags, Shutdown, SocketFlags, SocketType, bind, connect, listen, send,
    shutdown, socket_with, sockopt,
};

use crate::world::World;

/// What an application is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// It connects, or has more to write.
    Writing,
    /// All is written and not yet acknowledged.
    Draining,
    /// It has nothing to write for now.
    Waiting,
    /// It has told its peer that this was all.
    Closing,
}

/// A sender.
#[derive(Debug)]
pub struct Sender {
    /// Its socket.
    pub socket: OwnedFd,
    /// What it is about.
    pub state: State,
    /// The application.
    pub session: Session,
    /// Bytes still to be written.
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

    /// Writes as much as the socket takes.
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
                // Not connected yet, or full.
                Err(Errno::AGAIN | Errno::NOTCONN | Errno::INTR) => return Ok(()),
                Err(error) => return Err(error.into()),
            }
        }
        Ok(())
    }

    /// The application writes.
    pub fn take(&mut self, what: Do) {
        self.left = self.left.saturating_add(what.write);
        if what.write > 0 {
            self.state = State::Writing;
        }
    }

    /// Tells the peer that this was all.
    pub fn close(&mut self) {
        self.state = State::Closing;
        // A connection that is gone already needs no farewell.
        let _ = shutdown(&self.socket, Shutdown::Write);
    }

    /// Why the connection is gone.
    pub fn error(&self) -> Option<Errno> {
        sockopt::socket_error(&self.socket).ok().and_then(Result::err)
    }
}

/// A socket that waits for connections.
pub fn bind_listener(at: SocketAddrV4) -> io::Result<OwnedFd> {
    let socket = open()?;
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

/// A socket that is closed is gone: what the kernel would still want to send would keep the namespace alive for minutes
/// after its process was killed.
pub fn reset_on_close(socket: &OwnedFd) -> io::Result<()> {
    Ok(sockopt::set_socket_linger(socket, Some(core::time::Duration::ZERO))?)
}

/// Connections that wait to be accepted.
const BACKLOG: i32 = 4096;
