//! Interface to the Linux kernel: TUN devices, network namespaces, netlink, the loop in real time,
//! and a link that consists of them.

mod dns_relay;
mod link_namespace;
pub mod netlink;
pub mod privileged;
mod run;
mod tun;
mod unprivileged;

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use crate::capture::Capture;
use crate::config::Config;
use crate::report::Report;

pub use dns_relay::{DnsRelay, RelayedServer, refusal, servers_in, system_servers};
pub use link_namespace::{Addresses, Devices, Ends, LinkNamespace, Namespace, Nat};
pub use netlink::{Interface, Netlink, Route};
pub use run::{Running, Stop, monotonic, realtime, run, start};
pub use tun::Tun;
pub use unprivileged::{
    CommandResult, PrivilegedProcess, RunOptions, UnprivilegedLink, create_file,
};

/// A link with the namespace behind it. Nothing remains when it is dropped, or when its process
/// ends, once no process is left in the namespace.
#[derive(Debug)]
pub struct Link {
    place: LinkNamespace,
    router: Running,
    names: Option<DnsRelay>,
}

impl Link {
    /// Creates a link from the calling thread's network namespace. Side A of the router is behind
    /// the link.
    ///
    /// # Errors
    /// Without `/dev/net/tun` (`NotFound`), or without the right to administer the network and the
    /// system (`PermissionDenied`).
    pub fn new(config: Config, capture: Option<Capture>) -> io::Result<Self> {
        let (place, Devices { inner, outer }) = LinkNamespace::make()?;
        let router = start(config, inner, outer, capture)?;
        Ok(Self { place, router, names: None })
    }

    /// Relays DNS queries from behind the link to these servers, over the link. They go on from the
    /// caller's end to the same servers as seen from there, or all of them to `to`. Without `to`,
    /// only servers on a loopback address are relayed: others are reached like any other host.
    ///
    /// # Errors
    /// If its sockets cannot be opened or its threads cannot be started.
    pub fn relay_names(&mut self, servers: &[IpAddr], to: Option<SocketAddr>) -> io::Result<()> {
        self.names = DnsRelay::relay(servers, to, &self.place)?;
        Ok(())
    }

    /// Moves the calling thread into the namespace behind the link; processes that it starts are
    /// there, too.
    ///
    /// # Errors
    /// Without the right to administer the system.
    pub fn enter(&self) -> io::Result<()> {
        self.place.behind.enter()
    }

    /// Returns the IPv4 addresses of both ends.
    #[must_use]
    pub const fn ends(&self) -> Ends<Ipv4Addr> {
        self.place.ends()
    }

    /// Returns the IPv6 addresses of both ends; `None` if they could not be added, as on a machine
    /// without IPv6.
    #[must_use]
    pub fn ends6(&self) -> Option<Ends<Ipv6Addr>> {
        self.place.ends6()
    }

    /// Returns why hosts beyond the caller's machine cannot be reached over IPv6; `None` if they
    /// can.
    #[must_use]
    pub fn unreachable_reason6(&self) -> Option<String> {
        self.place.unreachable_reason6()
    }

    /// Ends the link, and returns the router's report.
    ///
    /// # Errors
    /// The error that ended the router before, or those of the capture's output.
    pub fn finish(self) -> io::Result<Report> {
        drop(self.names);
        self.router.stop()
    }
}
