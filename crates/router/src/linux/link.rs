//! A place behind an emulated link: a network namespace of its own, whose only way out is a router.

use std::fs;
use std::io::{self, ErrorKind};
use std::net::Ipv4Addr;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixListener};

use crate::capture::Capture;
use crate::config::Config;
use crate::linux::namespace::Namespace;
use crate::linux::nat::Nat;
use crate::linux::netlink::Netlink;
use crate::linux::run::{Running, start};
use crate::linux::tun::Tun;
use crate::report::Report;

/// A place behind a link. Nothing of it is left when it is dropped, or its process ends in whatever way: namespace, devices
/// and translation have no name of their own and go with their files.
#[derive(Debug)]
pub struct Link {
    caller: Namespace,
    behind: Namespace,
    router: Running,
    addresses: Addresses,
    way_out: io::Result<Nat>,
}

/// The two ends of a link. No other link of the same network namespace has these.
#[derive(Debug)]
pub struct Addresses {
    /// At the caller's end.
    pub caller: Ipv4Addr,
    /// Behind the link.
    pub behind: Ipv4Addr,
    number: u32,
    /// Whoever holds this name in the network namespace has the number.
    _reserved: UnixListener,
}

impl Link {
    /// Makes a link from the calling thread's network namespace. Side A of the router is behind the link.
    ///
    /// # Errors
    /// Without `/dev/net/tun` (`NotFound`) or the right to administer the network and the system (`PermissionDenied`).
    pub fn new(config: Config, capture: Option<Capture>) -> io::Result<Self> {
        let caller = Namespace::current()?;
        let addresses = Addresses::reserve()?;
        let Addresses { caller: here, behind: there, .. } = addresses;
        let outer = Tun::open("cwnd%d")?;
        outer.add_address(here, there)?;
        let behind = Namespace::fresh()?;
        let inner = behind.inside(|| {
            let mut control = Netlink::route()?;
            let loopback = control.interface("lo")?;
            control.bring_up(loopback, None, None)?;
            let inner = Tun::open("cwnd%d")?;
            inner.add_address(there, here)?;
            inner.add_route((Ipv4Addr::UNSPECIFIED, 0), Some(here))?;
            // For links in this link. Where it can't be set, they say so.
            let _ = fs::write(FORWARDING, "1");
            Ok(inner)
        })?;
        let way_out = open_way_out(&addresses);
        let router = start(config, inner, outer, capture)?;
        Ok(Self { caller, behind, router, addresses, way_out })
    }

    /// Moves the calling thread behind the link: what it starts is there, too.
    ///
    /// # Errors
    /// Without the right to administer the system.
    pub fn enter(&self) -> io::Result<()> {
        self.behind.enter()
    }

    /// Moves the calling thread back to where the link was made.
    ///
    /// # Errors
    /// Without the right to administer the system.
    pub fn leave(&self) -> io::Result<()> {
        self.caller.enter()
    }

    /// Its two ends.
    #[must_use]
    pub const fn addresses(&self) -> &Addresses {
        &self.addresses
    }

    /// Why what is beyond the caller's machine can't be reached; `None` if it can.
    #[must_use]
    pub fn confined(&self) -> Option<String> {
        self.way_out.as_ref().err().map(ToString::to_string)
    }

    /// Whether the router has ended by itself: only an error does that.
    #[must_use]
    pub fn has_ended(&self) -> bool {
        self.router.has_ended()
    }

    /// Ends the link.
    ///
    /// # Errors
    /// What ended the router before, or those of the capture's output.
    pub fn finish(self) -> io::Result<Report> {
        self.router.stop()
    }
}

impl Addresses {
    /// Takes two addresses that nothing in this network namespace has or routes to.
    fn reserve() -> io::Result<Self> {
        let taken = Netlink::route()?.taken()?;
        let is_free = |block: u32| {
            taken.iter().all(|&(address, prefix)| {
                // A default route covers everything and means nothing.
                let shift = 32 - u32::from(prefix).min(BLOCK_PREFIX);
                prefix == 0 || address.to_bits() >> shift != block >> shift
            })
        };
        for number in 0..BLOCKS {
            let block = FIRST.to_bits() + number * 4;
            if !is_free(block) {
                continue;
            }
            let name = SocketAddr::from_abstract_name(format!("cwnd-link-{number}"))?;
            match UnixListener::bind_addr(&name) {
                Ok(reserved) => {
                    return Ok(Self {
                        caller: Ipv4Addr::from_bits(block + 1),
                        behind: Ipv4Addr::from_bits(block + 2),
                        number,
                        _reserved: reserved,
                    });
                }
                Err(error) if error.kind() == ErrorKind::AddrInUse => {}
                Err(error) => return Err(error),
            }
        }
        Err(io::Error::new(ErrorKind::AddrInUse, "all addresses for links are taken"))
    }
}

/// Lets packets from behind the link go on from the caller's network namespace.
fn open_way_out(addresses: &Addresses) -> io::Result<Nat> {
    if fs::read_to_string(FORWARDING)?.trim() != "1" {
        let text = "net.ipv4.ip_forward is 0, and is left as it is; `sysctl -w net.ipv4.ip_forward=1` opens the way";
        return Err(io::Error::new(ErrorKind::PermissionDenied, text));
    }
    Nat::hide(addresses.behind, &format!("cwnd_link_{}", addresses.number)).map_err(|error| {
        io::Error::new(error.kind(), format!("nf_tables does not translate addresses: {error}"))
    })
}

/// Set aside for measurements of devices (RFC 2544 § C.2.2, RFC 6890): 198.18.0.0/15, in blocks of four.
const FIRST: Ipv4Addr = Ipv4Addr::new(198, 18, 0, 0);
const BLOCKS: u32 = 1 << (30 - 15);
const BLOCK_PREFIX: u32 = 30;
/// Whether the calling thread's network namespace forwards packets.
const FORWARDING: &str = "/proc/sys/net/ipv4/ip_forward";
