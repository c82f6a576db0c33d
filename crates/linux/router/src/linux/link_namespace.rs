//! Network namespaces, and the one behind an emulated link, with a TUN device at each end of the
//! link. Its creation needs root's rights, keeping it does not. Source address translation for
//! packets from behind a link to hosts beyond this machine (nf_tables).

use std::fs;
use std::io::{self, ErrorKind};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::os::fd::{AsFd, OwnedFd};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixListener};
use std::thread;

use rustix::fs::{Mode, OFlags, open};
use rustix::net::netlink::{self, SOCK_DIAG};
use rustix::thread::{LinkNameSpaceType, UnshareFlags, move_into_link_name_space};

use crate::linux::netlink::{
    ACK, CREATE, DUMP, NESTED, Netlink, Request, Route, octets, push_attribute,
};
use crate::linux::tun::Tun;

/// A network namespace behind a link, without the router. Nothing remains when it is dropped or its
/// process ends, once no process is left in the namespace. The namespace has no name, and a socket
/// owns the address translation: both end with their descriptors.
#[derive(Debug)]
pub struct LinkNamespace {
    /// Namespace in which the link was created, the caller's.
    pub caller: Namespace,
    /// Namespace behind the link.
    pub behind: Namespace,
    addresses: Addresses,
    nat: io::Result<Nat>,
    /// Error for which the link has no IPv6 addresses.
    ipv6: io::Result<()>,
    nat6: io::Result<Nat>,
}

/// Both TUN devices of a link.
#[derive(Debug)]
pub struct Devices {
    /// Device in the namespace behind the link.
    pub inner: Tun,
    /// Device in the caller's namespace.
    pub outer: Tun,
}

/// Values for both ends of a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ends<A> {
    /// Caller's end.
    pub caller: A,
    /// End behind the link.
    pub behind: A,
}

/// Addresses of a link; no other link of the same network namespace has them.
#[derive(Debug)]
pub struct Addresses {
    v4: Ends<Ipv4Addr>,
    v6: Ends<Ipv6Addr>,
    number: u16,
    /// Socket in the network namespace whose name reserves the number.
    _reserved: UnixListener,
}

impl LinkNamespace {
    /// Creates a namespace behind a link from the calling thread's network namespace.
    ///
    /// # Errors
    /// Without `/dev/net/tun` (`NotFound`), without the right to administer the network and the
    /// system (`PermissionDenied`), or if all addresses for links are taken (`AddrInUse`).
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
            // For links within this link. If it cannot be set, they report it.
            let _ = fs::write(FORWARDING, "1");
            let _ = fs::write(FORWARDING6, "1");
            let inner = Tun::open("cwnd%d")?;
            inner.add_address(v4.behind, v4.caller)?;
            inner.add_route(&Route { gateway: Some(v4.caller.into()), ..Route::to(ANY, 0) })?;
            Ok(inner)
        })?;
        let table = format!("cwnd_link_{number}");
        let nat = open_nat(v4.behind.into(), &table);
        let ipv6 = check_ipv6()
            .and_then(|()| outer.add_address(v6.caller, v6.behind))
            .and_then(|()| behind.inside(|| inner.add_address(v6.behind, v6.caller)));
        let nat6 = match &ipv6 {
            Ok(()) => open_nat(v6.behind.into(), &table),
            Err(error) => Err(io::Error::new(error.kind(), error.to_string())),
        };
        if nat6.is_ok() {
            // No route if nothing beyond is reachable: programs prefer IPv6 if they see a route
            // (RFC 6724 § 6).
            inner.add_route(&Route::to(ANY6, 0))?;
        }
        let place = Self { caller, behind, addresses, nat, ipv6, nat6 };
        Ok((place, Devices { inner, outer }))
    }

    /// Returns the IPv4 addresses of both ends.
    #[must_use]
    pub const fn ends(&self) -> Ends<Ipv4Addr> {
        self.addresses.v4
    }

    /// Returns the IPv6 addresses of both ends; `None` if they could not be added, as on a machine
    /// without IPv6.
    #[must_use]
    pub fn ends6(&self) -> Option<Ends<Ipv6Addr>> {
        self.ipv6.is_ok().then_some(self.addresses.v6)
    }

    /// Returns why hosts beyond the caller's machine cannot be reached; `None` if they can.
    #[must_use]
    pub fn unreachable_reason(&self) -> Option<String> {
        self.nat.as_ref().err().map(ToString::to_string)
    }

    /// Returns why hosts beyond the caller's machine cannot be reached over IPv6; `None` if they
    /// can.
    #[must_use]
    pub fn unreachable_reason6(&self) -> Option<String> {
        self.nat6.as_ref().err().map(ToString::to_string)
    }
}

impl Addresses {
    /// Reserves addresses that nothing in this network namespace uses, routes to, or still sends
    /// to. Late segments of a connection over an earlier link would otherwise reach this one.
    fn reserve() -> io::Result<Self> {
        let mut taken = Netlink::route()?.taken()?;
        taken.extend(peers_of_unfinished()?);
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

/// Returns the peers of unfinished connections in the calling thread's network namespace, as
/// prefixes of one address.
fn peers_of_unfinished() -> io::Result<impl Iterator<Item = (IpAddr, u8)>> {
    let unfinished = match Connections::here().and_then(|mut all| all.unfinished()) {
        // The kernel may lack the module (CONFIG_INET_DIAG).
        Err(error) if error.kind() == ErrorKind::NotFound => Vec::new(),
        found => found?,
    };
    let peers = unfinished.into_iter().filter_map(|connection| connection.peer);
    Ok(peers.map(|peer| (peer, if peer.is_ipv4() { 32 } else { 128 })))
}

/// `true` if a prefix in use overlaps a block. The shortest prefixes are default routes and do not
/// count: VPNs route the whole Internet as two halves.
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

/// Returns an error if new devices in the calling thread's network namespace have no IPv6.
fn check_ipv6() -> io::Result<()> {
    let disabled = fs::read_to_string(DISABLED6)
        .map_err(|_| io::Error::new(ErrorKind::Unsupported, "this machine has no IPv6"))?;
    if disabled.trim() == "0" {
        return Ok(());
    }
    Err(io::Error::new(ErrorKind::Unsupported, "net.ipv6.conf.default.disable_ipv6 is 1"))
}

/// Translates addresses of packets from behind the link, if the caller's namespace forwards
/// packets.
fn open_nat(behind: IpAddr, table: &str) -> io::Result<Nat> {
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

/// Reader of the TCP connections of a network namespace. Some are not closed when their program
/// ends. If their namespace were removed, their peers would wait in vain, and later segments would
/// reach the next user of the addresses.
#[derive(Debug)]
pub struct Connections(Netlink);

impl Connections {
    /// Opens a socket in the calling thread's network namespace.
    ///
    /// # Errors
    /// Those of the kernel.
    pub fn here() -> io::Result<Self> {
        Ok(Self(Netlink::open(Some(SOCK_DIAG))?))
    }

    /// Returns the connections that may still send or receive: all sockets but those in TIME_WAIT,
    /// CLOSE and LISTEN.
    ///
    /// # Errors
    /// Those of the kernel.
    pub fn unfinished(&mut self) -> io::Result<Vec<OpenConnection>> {
        let mut found = Vec::new();
        for family in [AF_INET, AF_INET6] {
            // `struct inet_diag_req_v2`.
            let request = Request::new(SOCK_DIAG_BY_FAMILY, DUMP)
                .put(&[family, IPPROTO_TCP, 0, 0])
                .number(!(1 << TIME_WAIT | 1 << CLOSE | 1 << LISTEN))
                .put(&[0; SOCKET_ID]);
            found.extend(self.0.request(&[request])?.into_iter().map(|(_, body)| {
                // Parts of `struct inet_diag_msg` without timers, which change all the time.
                let parts =
                    [body.get(..2), body.get(4..4 + SOCKET_ID), body.get(QUEUES..QUEUES + 8)];
                OpenConnection {
                    peer: peer_in(&body),
                    state: parts.into_iter().flatten().flatten().copied().collect(),
                }
            }));
        }
        Ok(found)
    }
}

/// A connection that may still send or receive.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OpenConnection {
    /// Address of its peer, if the kernel reports it.
    pub peer: Option<IpAddr>,
    /// State that changes as it makes progress: address family, TCP state, ends, and lengths of its
    /// queues.
    pub state: Vec<u8>,
}

/// Returns the peer's address in a `struct inet_diag_msg`.
fn peer_in(body: &[u8]) -> Option<IpAddr> {
    let address: [u8; 16] = *body.get(PEER..)?.first_chunk()?;
    match *body.first()? {
        AF_INET => address.first_chunk::<4>().map(|&octets| octets.into()),
        _ => Some(Ipv6Addr::from(address).to_canonical()),
    }
}

/// First address of links, in blocks of four: 198.18.0.0/15 is reserved for benchmarks of devices
/// (RFC 2544 § C.2.2, RFC 6890).
const FIRST: Ipv4Addr = Ipv4Addr::new(198, 18, 0, 0);
const BLOCKS: u16 = 1 << (30 - 15);
const BLOCK_PREFIX: u8 = 30;
/// First IPv6 address of links, in blocks of 2⁶⁴: 2001:2::/48 is reserved for benchmarks (RFC 5180
/// § 8, RFC 6890).
const FIRST6: Ipv6Addr = Ipv6Addr::new(0x2001, 2, 0, 0, 0, 0, 0, 0);
const BLOCK6_PREFIX: u8 = 64;
/// Shortest prefixes that count as used; shorter ones are default routes.
const NARROW: u8 = 8;
const NARROW6: u8 = 16;
/// Destinations of default routes.
const ANY: IpAddr = IpAddr::V4(Ipv4Addr::UNSPECIFIED);
const ANY6: IpAddr = IpAddr::V6(Ipv6Addr::UNSPECIFIED);
/// Files that are 1 if the network namespace of the calling thread forwards packets.
const FORWARDING: &str = "/proc/sys/net/ipv4/ip_forward";
const FORWARDING6: &str = "/proc/sys/net/ipv6/conf/all/forwarding";
/// File that is 1 if new devices there have no IPv6.
const DISABLED6: &str = "/proc/sys/net/ipv6/conf/default/disable_ipv6";

/// Constants of linux/sock_diag.h and linux/inet_diag.h.
const SOCK_DIAG_BY_FAMILY: u16 = 20;
const AF_INET: u8 = 2;
const AF_INET6: u8 = 10;
const IPPROTO_TCP: u8 = 6;
const SOCKET_ID: usize = 48;
/// Offset of the peer's address in `struct inet_diag_msg`.
const PEER: usize = 24;
/// Offset of the queue lengths in `struct inet_diag_msg`.
const QUEUES: usize = 56;
/// TCP states of net/tcp_states.h.
const TIME_WAIT: u32 = 6;
const CLOSE: u32 = 7;
const LISTEN: u32 = 10;

/// A table of nf_tables that translates a source address to those of this machine. Its socket owns
/// it: the kernel removes the table when the socket is closed, however the process ends.
#[derive(Debug)]
pub struct Nat {
    _socket: Netlink,
}

impl Nat {
    /// Translates `address` with a table of this name in the calling thread's network namespace.
    ///
    /// # Errors
    /// Those of the kernel: without nf_tables or translation (`EOPNOTSUPP`, `ENOENT`), or without
    /// ownership of tables (before Linux 5.12: `EINVAL`).
    pub fn hide(address: IpAddr, table: &str) -> io::Result<Self> {
        let mut socket = Netlink::open(Some(netlink::NETFILTER))?;
        let table = terminated(table);
        let family = if address.is_ipv4() { FAMILY_IPV4 } else { FAMILY_IPV6 };
        let message = |kind: u16, flags: u16| {
            Request::new(SUBSYSTEM << 8 | kind, flags).put(&generic_header(family, 0))
        };
        let requests = [
            Request::new(BATCH_BEGIN, 0).put(&generic_header(0, SUBSYSTEM)),
            message(NEWTABLE, ACK | CREATE)
                .attribute(TABLE_NAME, &table)
                .attribute(TABLE_FLAGS, &TABLE_OWNED.to_be_bytes()),
            message(NEWCHAIN, ACK | CREATE)
                .attribute(CHAIN_TABLE, &table)
                .attribute(CHAIN_NAME, CHAIN)
                .attribute(CHAIN_HOOK | NESTED, &hook())
                .attribute(CHAIN_TYPE, b"nat\0"),
            message(NEWRULE, ACK | CREATE | APPEND)
                .attribute(RULE_TABLE, &table)
                .attribute(RULE_CHAIN, CHAIN)
                .attribute(RULE_EXPRESSIONS | NESTED, &expressions(address)),
            Request::new(BATCH_END, 0).put(&generic_header(0, SUBSYSTEM)),
        ];
        socket.request(&requests)?;
        Ok(Self { _socket: socket })
    }
}

/// `struct nfgenmsg`: family, version, resource.
const fn generic_header(family: u8, resource: u16) -> [u8; 4] {
    let [high, low] = resource.to_be_bytes();
    [family, 0, high, low]
}

/// Encodes the hook after routing, at the priority of source translation.
fn hook() -> Vec<u8> {
    let mut hook = Vec::new();
    push_attribute(&mut hook, HOOK_NUMBER, &HOOK_POSTROUTING.to_be_bytes());
    push_attribute(&mut hook, HOOK_PRIORITY, &PRIORITY_SOURCE_NAT.to_be_bytes());
    hook
}

/// Encodes the rule `ip saddr ADDRESS masquerade`, or the same with `ip6`.
fn expressions(address: IpAddr) -> Vec<u8> {
    let source = if address.is_ipv4() { SOURCE_OFFSET } else { SOURCE_OFFSET_V6 };
    let address = octets(address);
    let mut load = Vec::new();
    for (kind, value) in [
        (PAYLOAD_INTO, REGISTER_1),
        (PAYLOAD_BASE, NETWORK_HEADER),
        (PAYLOAD_OFFSET, source),
        (PAYLOAD_LENGTH, address.len() as u32),
    ] {
        push_attribute(&mut load, kind, &value.to_be_bytes());
    }
    let mut value = Vec::new();
    push_attribute(&mut value, DATA_VALUE, &address);
    let mut compare = Vec::new();
    push_attribute(&mut compare, COMPARE_FROM, &REGISTER_1.to_be_bytes());
    push_attribute(&mut compare, COMPARE_HOW, &EQUAL.to_be_bytes());
    push_attribute(&mut compare, COMPARE_WITH | NESTED, &value);
    let mut list = Vec::new();
    for (name, data) in
        [(&b"payload\0"[..], Some(load)), (b"cmp\0", Some(compare)), (b"masq\0", None)]
    {
        let mut expression = Vec::new();
        push_attribute(&mut expression, EXPRESSION_NAME, name);
        if let Some(data) = data {
            push_attribute(&mut expression, EXPRESSION_DATA | NESTED, &data);
        }
        push_attribute(&mut list, LIST_ELEMENT | NESTED, &expression);
    }
    list
}

fn terminated(text: &str) -> Vec<u8> {
    let mut bytes = text.as_bytes().to_vec();
    bytes.push(0);
    bytes
}

/// Constants of linux/netfilter/nfnetlink.h, linux/netfilter.h and linux/netlink.h.
const BATCH_BEGIN: u16 = 0x10;
const BATCH_END: u16 = 0x11;
const SUBSYSTEM: u16 = 10;
const FAMILY_IPV4: u8 = 2;
const FAMILY_IPV6: u8 = 10;
const APPEND: u16 = 0x800;
/// Constants of linux/netfilter/nf_tables.h, linux/netfilter.h and linux/netfilter_ipv4.h; `CHAIN`
/// is the name of this table's chain.
const NEWTABLE: u16 = 0;
const NEWCHAIN: u16 = 3;
const NEWRULE: u16 = 6;
const TABLE_NAME: u16 = 1;
const TABLE_FLAGS: u16 = 2;
/// Flag that lets the socket own the table.
const TABLE_OWNED: u32 = 0x2;
const CHAIN_TABLE: u16 = 1;
const CHAIN_NAME: u16 = 3;
const CHAIN_HOOK: u16 = 4;
const CHAIN_TYPE: u16 = 7;
const CHAIN: &[u8] = b"out\0";
const HOOK_NUMBER: u16 = 1;
const HOOK_PRIORITY: u16 = 2;
const HOOK_POSTROUTING: u32 = 4;
const PRIORITY_SOURCE_NAT: u32 = 100;
const RULE_TABLE: u16 = 1;
const RULE_CHAIN: u16 = 2;
const RULE_EXPRESSIONS: u16 = 4;
const LIST_ELEMENT: u16 = 1;
const EXPRESSION_NAME: u16 = 1;
const EXPRESSION_DATA: u16 = 2;
const PAYLOAD_INTO: u16 = 1;
const PAYLOAD_BASE: u16 = 2;
const PAYLOAD_OFFSET: u16 = 3;
const PAYLOAD_LENGTH: u16 = 4;
const REGISTER_1: u32 = 1;
const NETWORK_HEADER: u32 = 1;
/// Offset of the source address in IPv4 (RFC 791 § 3.1) and IPv6 headers (RFC 8200 § 3), bytes.
const SOURCE_OFFSET: u32 = 12;
const SOURCE_OFFSET_V6: u32 = 8;
const COMPARE_FROM: u16 = 1;
const COMPARE_HOW: u16 = 2;
const COMPARE_WITH: u16 = 3;
const EQUAL: u32 = 0;
const DATA_VALUE: u16 = 1;
