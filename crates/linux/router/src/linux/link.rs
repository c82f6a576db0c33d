//! A place behind an emulated link, and its router, in one process that has the rights for all of it.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use crate::capture::Capture;
use crate::config::Config;
use crate::linux::names::Names;
use crate::linux::place::{Devices, Ends, Place};
use crate::linux::run::{Running, start};
use crate::report::Report;

/// A place behind a link. Nothing of it is left when it is dropped, or its process ends in whatever way.
#[derive(Debug)]
pub struct Link {
    place: Place,
    router: Running,
    names: Option<Names>,
}

impl Link {
    /// Makes a link from the calling thread's network namespace. Side A of the router is behind the link.
    ///
    /// # Errors
    /// Without `/dev/net/tun` (`NotFound`) or the right to administer the network and the system (`PermissionDenied`).
    pub fn new(config: Config, capture: Option<Capture>) -> io::Result<Self> {
        let (place, Devices { inner, outer }) = Place::make()?;
        let router = start(config, inner, outer, capture)?;
        Ok(Self { place, router, names: None })
    }

    /// Queries for names that programs behind the link send to these servers go over it, and on from the caller's end: to the
    /// same servers, as they are seen from there, or all of them to `to`. Without `to`, this is done for servers on a
    /// loopback address: others can be reached, or not, like everything else.
    ///
    /// # Errors
    /// If there are no sockets for it.
    pub fn relay_names(&mut self, servers: &[IpAddr], to: Option<SocketAddr>) -> io::Result<()> {
        self.names = Names::relay(servers, to, &self.place)?;
        Ok(())
    }

    /// Moves the calling thread behind the link: what it starts is there, too.
    ///
    /// # Errors
    /// Without the right to administer the system.
    pub fn enter(&self) -> io::Result<()> {
        self.place.behind.enter()
    }

    /// Its two ends.
    #[must_use]
    pub const fn ends(&self) -> Ends<Ipv4Addr> {
        self.place.ends()
    }

    /// The same for IPv6; `None` where the caller's machine has none.
    #[must_use]
    pub fn ends6(&self) -> Option<Ends<Ipv6Addr>> {
        self.place.ends6()
    }

    /// Why what is beyond the caller's machine can't be reached over IPv6; `None` if it can.
    #[must_use]
    pub fn confined6(&self) -> Option<String> {
        self.place.confined6()
    }

    /// Ends the link.
    ///
    /// # Errors
    /// What ended the router before, or those of the capture's output.
    pub fn finish(self) -> io::Result<Report> {
        drop(self.names);
        self.router.stop()
    }
}
