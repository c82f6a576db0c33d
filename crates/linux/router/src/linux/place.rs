//! A place behind an emulated link: a network namespace of its own with a device at each end of what leads out. It is made
//! with the rights of root; what keeps it needs none.

use std::fs;
use std::io::{self, ErrorKind};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixListener};

use crate::linux::linger::Connections;
use crate::linux::namespace::Namespace;
use crate::linux::nat::Nat;
use crate::linux::netlink::{Netlink, Route};
use crate::linux::tun::Tun;

/// A place behind a link, without the router. Nothing of it is left when it is dropped, or its process ends in whatever way:
/// namespace and translation have no name of their own and go with their files.
#[derive(Debug)]
pub struct Place {
    /// Where it was made.
    pub caller: Namespace,
    /// The place itself.
    pub behind: Namespace,
    addresses: Addresses,
    way_out: io::Result<Nat>,
    /// Those of IPv6: its addresses, and the way out.
    ipv6: io::Result<()>,
    way_out6: io::Result<Nat>,
}

/// What its two devices are.
#[derive(Debug)]
pub struct Devices {
    /// In the place.
    pub inner: Tun,
    /// Where the place was made.
    pub outer: Tun,
}

/// The two ends of a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ends<A> {
    /// At the caller's end.
    pub caller: A,
    /// Behind the link.
    pub behind: A,
}

/// The addresses of a link. No other link of the same network namespace has these.
#[derive(Debug)]
pub struct Addresses {
    v4: Ends<Ipv4Addr>,
    v6: Ends<Ipv6Addr>,
    number: u16,
    /// Whoever holds this name in the network namespace has the number.
    _reserved: UnixListener,
}

impl Place {
    /// Makes a place from the calling thread's network namespace.
    ///
    /// # Errors
    /// Without `/dev/net/tun` (`NotFound`) or the right to administer the network and the system (`PermissionDenied`).
    pub fn make() -> io::Result<(Self, Devices)> {
        let caller = Namespace::current()?;
        let addresses = Addresses::reserve()?;
        let Addresses { v4, v6, number, .. } = addresses;
        let outer = Tun::open("cwnd%d")?;
        outer.add_address(v4.caller, v4.behind)?;
        let behind = Namespace::fresh()?;
        let inner = behind.inside(|| {
            let mut control = Netlink::route()?;
            let loopback = control.interface("lo")?;
            control.bring_up(loopback, None, None)?;
            // For links in this link. Where it can't be set, they say so.
            let _ = fs::write(FORWARDING, "1");
            let _ = fs::write(FORWARDING6, "1");
            let inner = Tun::open("cwnd%d")?;
            inner.add_address(v4.behind, v4.caller)?;
            inner.add_route(&Route { gateway: Some(v4.caller.into()), ..Route::to(ANY, 0) })?;
            Ok(inner)
        })?;
        let table = format!("cwnd_link_{number}");
        let way_out = open_way_out(v4.behind.into(), &table);
        let ipv6 = wants_ipv6()
            .and_then(|()| outer.add_address(v6.caller, v6.behind))
            .and_then(|()| behind.inside(|| inner.add_address(v6.behind, v6.caller)));
        let way_out6 = match &ipv6 {
            Ok(()) => open_way_out(v6.behind.into(), &table),
            Err(error) => Err(io::Error::new(error.kind(), error.to_string())),
        };
        if way_out6.is_ok() {
            // Only then: a program that knows both families tries this one first (RFC 6724 § 6).
            inner.add_route(&Route::to(ANY6, 0))?;
        }
        let place = Self { caller, behind, addresses, way_out, ipv6, way_out6 };
        Ok((place, Devices { inner, outer }))
    }

    /// Its two ends.
    #[must_use]
    pub const fn ends(&self) -> Ends<Ipv4Addr> {
        self.addresses.v4
    }

    /// The same for IPv6; `None` where the caller's machine has none.
    #[must_use]
    pub fn ends6(&self) -> Option<Ends<Ipv6Addr>> {
        self.ipv6.is_ok().then_some(self.addresses.v6)
    }

    /// Why what is beyond the caller's machine can't be reached; `None` if it can.
    #[must_use]
    pub fn confined(&self) -> Option<String> {
        self.way_out.as_ref().err().map(ToString::to_string)
    }

    /// Why it can't be reached over IPv6; `None` if it can.
    #[must_use]
    pub fn confined6(&self) -> Option<String> {
        self.way_out6.as_ref().err().map(ToString::to_string)
    }
}

impl Addresses {
    /// Takes two addresses that nothing in this network namespace has or routes to, or still sends to: what is left of a
    /// connection over an earlier link would cross this one.
    fn reserve() -> io::Result<Self> {
        let mut taken = Netlink::route()?.taken()?;
        taken.extend(spoken_to()?);
        let is_free = |block: (IpAddr, u8)| !taken.iter().any(|&other| overlap(other, block));
        for number in 0..BLOCKS {
            let block = FIRST.to_bits() + u32::from(number) * 4;
            let block6 = FIRST6.to_bits() + (u128::from(number) << (128 - BLOCK6_PREFIX));
            if !is_free((Ipv4Addr::from_bits(block).into(), BLOCK_PREFIX))
                || !is_free((Ipv6Addr::from_bits(block6).into(), BLOCK6_PREFIX))
            {
                continue;
            }
            let name = SocketAddr::from_abstract_name(format!("cwnd-link-{number}"))?;
            match UnixListener::bind_addr(&name) {
                Ok(reserved) => {
                    let [caller, behind] = [1, 2].map(|n| Ipv4Addr::from_bits(block + n));
                    let [caller6, behind6] = [1, 2].map(|n| Ipv6Addr::from_bits(block6 + n));
                    return Ok(Self {
                        v4: Ends { caller, behind },
                        v6: Ends { caller: caller6, behind: behind6 },
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

/// Whom connections of the calling thread's network namespace have something to say to, each with the length of an address.
fn spoken_to() -> io::Result<impl Iterator<Item = (IpAddr, u8)>> {
    let unfinished = match Connections::here().and_then(|mut all| all.unfinished()) {
        // A kernel may be without the module that tells (CONFIG_INET_DIAG).
        Err(error) if error.kind() == ErrorKind::NotFound => Vec::new(),
        found => found?,
    };
    let peers = unfinished.into_iter().filter_map(|connection| connection.peer);
    Ok(peers.map(|peer| (peer, if peer.is_ipv4() { 32 } else { 128 })))
}

/// Whether a prefix that is in use has addresses of a block. The widest ones are ways out, and mean no address: VPNs route
/// the whole Internet in two halves.
fn overlap(used: (IpAddr, u8), block: (IpAddr, u8)) -> bool {
    let prefix = used.1.min(block.1);
    match (used.0, block.0) {
        (IpAddr::V4(a), IpAddr::V4(b)) => {
            prefix >= NARROW && a.to_bits() >> (32 - prefix) == b.to_bits() >> (32 - prefix)
        }
        (IpAddr::V6(a), IpAddr::V6(b)) => {
            prefix >= NARROW6 && a.to_bits() >> (128 - prefix) == b.to_bits() >> (128 - prefix)
        }
        _ => false,
    }
}

/// Whether devices are to have IPv6 in the calling thread's network namespace.
fn wants_ipv6() -> io::Result<()> {
    let disabled = fs::read_to_string(DISABLED6)
        .map_err(|_| io::Error::new(ErrorKind::Unsupported, "this machine has no IPv6"))?;
    if disabled.trim() == "0" {
        return Ok(());
    }
    Err(io::Error::new(ErrorKind::Unsupported, "net.ipv6.conf.default.disable_ipv6 is 1"))
}

/// Lets packets from behind the link go on from the caller's network namespace.
fn open_way_out(behind: IpAddr, table: &str) -> io::Result<Nat> {
    let (file, name) = match behind {
        IpAddr::V4(_) => (FORWARDING, "net.ipv4.ip_forward"),
        IpAddr::V6(_) => (FORWARDING6, "net.ipv6.conf.all.forwarding"),
    };
    if fs::read_to_string(file)?.trim() != "1" {
        let text = format!("{name} is 0, and is left as it is; `sysctl -w {name}=1` opens the way");
        return Err(io::Error::new(ErrorKind::PermissionDenied, text));
    }
    Nat::hide(behind, table).map_err(|error| {
        io::Error::new(error.kind(), format!("nf_tables does not translate addresses: {error}"))
    })
}

/// Set aside for measurements of devices (RFC 2544 § C.2.2, RFC 6890): 198.18.0.0/15, in blocks of four.
const FIRST: Ipv4Addr = Ipv4Addr::new(198, 18, 0, 0);
const BLOCKS: u16 = 1 << (30 - 15);
const BLOCK_PREFIX: u8 = 30;
/// The same for IPv6 (RFC 5180 § 8, RFC 6890): 2001:2::/48, in blocks of 2⁶⁴.
const FIRST6: Ipv6Addr = Ipv6Addr::new(0x2001, 2, 0, 0, 0, 0, 0, 0);
const BLOCK6_PREFIX: u8 = 64;
/// Shorter prefixes are ways out.
const NARROW: u8 = 8;
const NARROW6: u8 = 16;
/// Prefixes of length zero: everything.
const ANY: IpAddr = IpAddr::V4(Ipv4Addr::UNSPECIFIED);
const ANY6: IpAddr = IpAddr::V6(Ipv6Addr::UNSPECIFIED);
/// Whether the calling thread's network namespace forwards packets.
const FORWARDING: &str = "/proc/sys/net/ipv4/ip_forward";
const FORWARDING6: &str = "/proc/sys/net/ipv6/conf/all/forwarding";
/// Whether new devices there have no IPv6.
const DISABLED6: &str = "/proc/sys/net/ipv6/conf/default/disable_ipv6";
