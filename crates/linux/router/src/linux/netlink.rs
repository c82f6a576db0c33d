//! Netlink requests about interfaces, addresses and routes (rtnetlink(7)), without external tools;
//! socket and encoding of requests to other netlink families.

use std::io;
use std::net::IpAddr;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::net::{
    AddressFamily, Protocol, RecvFlags, SendFlags, SocketFlags, SocketType, netdevice, recv, send,
    socket_with,
};

/// A netlink socket. It serves the network namespace in which it was opened.
#[derive(Debug)]
pub struct Netlink {
    socket: OwnedFd,
    sequence: u32,
}

impl AsFd for Netlink {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

/// Index of a network interface.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Interface(pub u32);

/// Type and body of a reply, without the message header.
pub type Answer = (u16, Vec<u8>);

impl Netlink {
    /// Opens a socket to rtnetlink in the calling thread's network namespace.
    ///
    /// # Errors
    /// Those of the kernel.
    pub fn route() -> io::Result<Self> {
        Self::open(None)
    }

    /// Opens a socket to a netlink family (`None` is rtnetlink) in the calling thread's network
    /// namespace.
    ///
    /// # Errors
    /// Those of the kernel.
    pub fn open(family: Option<Protocol>) -> io::Result<Self> {
        let (kind, flags) = (SocketType::RAW, SocketFlags::CLOEXEC);
        let socket = socket_with(AddressFamily::NETLINK, kind, flags, family)?;
        Ok(Self { socket, sequence: 0 })
    }

    /// Wraps a socket that another process opened and passed on.
    #[must_use]
    pub const fn passed(socket: OwnedFd) -> Self {
        Self { socket, sequence: 0 }
    }

    /// Sends requests in one datagram, and waits until those with [`ACK`] or [`DUMP`] are complete.
    /// Returns the replies other than acknowledgements.
    ///
    /// # Errors
    /// Those of the kernel: the first error among the replies, or that of the socket.
    pub fn request(&mut self, requests: &[Request]) -> io::Result<Vec<Answer>> {
        let mut bytes = Vec::new();
        let mut replies = Replies::default();
        for request in requests {
            self.sequence += 1;
            request.write(self.sequence, &mut bytes);
            if request.flags & ACK != 0 || request.flags & DUMP == DUMP {
                replies.pending.push(self.sequence);
            }
        }
        send(&self.socket, &bytes, SendFlags::empty())?;
        let mut buffer = vec![0; ANSWER_ROOM];
        while !replies.pending.is_empty() {
            let (length, _) = recv(&self.socket, &mut buffer, RecvFlags::empty())?;
            replies.read(&buffer[..length])?;
        }
        Ok(replies.answers)
    }

    /// Returns the interface with this name.
    ///
    /// # Errors
    /// If there is none.
    pub fn interface(&self, name: &str) -> io::Result<Interface> {
        Ok(Interface(netdevice::name_to_index(&self.socket, name)?))
    }

    /// Brings an interface up, and sets its MTU in bytes and its queue length in packets if given.
    ///
    /// # Errors
    /// Those of the kernel.
    pub fn bring_up(
        &mut self,
        interface: Interface,
        mtu: Option<u32>,
        queue_packets: Option<u32>,
    ) -> io::Result<()> {
        let mut request = Request::new(RTM_NEWLINK, ACK).put(&[0; 4]).number(interface.0);
        request = request.number(IFF_UP).number(IFF_UP);
        if let Some(mtu) = mtu {
            request = request.attribute(IFLA_MTU, &mtu.to_ne_bytes());
        }
        if let Some(packets) = queue_packets {
            request = request.attribute(IFLA_TXQLEN, &packets.to_ne_bytes());
        }
        self.request(&[request]).map(drop)
    }

    /// Clears the multicast flag of an interface, so that the kernel joins no group through it, and
    /// sets its MTU.
    ///
    /// # Errors
    /// Those of the kernel.
    pub fn without_groups(&mut self, interface: Interface, mtu: u32) -> io::Result<()> {
        let request = Request::new(RTM_NEWLINK, ACK).put(&[0; 4]).number(interface.0);
        let request = request.number(0).number(IFF_MULTICAST);
        self.request(&[request.attribute(IFLA_MTU, &mtu.to_ne_bytes())]).map(drop)
    }

    /// Adds an address to an interface, with its peer's address of the same family.
    ///
    /// # Errors
    /// Those of the kernel.
    pub fn add_address(
        &mut self,
        interface: Interface,
        own: IpAddr,
        peer: IpAddr,
    ) -> io::Result<()> {
        // No other host can have the address: duplicate address detection is skipped (RFC 4862 §
        // 5.4).
        let flags = if own.is_ipv6() { IFA_F_NODAD } else { 0 };
        let request = Request::new(RTM_NEWADDR, ACK | CREATE | EXCL)
            .put(&[family(own), whole(own), flags, 0])
            .number(interface.0)
            .attribute(IFA_LOCAL, &octets(own))
            .attribute(IFA_ADDRESS, &octets(peer));
        self.request(&[request]).map(drop)
    }

    /// Adds a route through an interface.
    ///
    /// # Errors
    /// Those of the kernel.
    pub fn add_route(&mut self, interface: Interface, route: &Route) -> io::Result<()> {
        let (to, prefix) = route.to;
        let scope = if route.gateway.is_some() { SCOPE_UNIVERSE } else { SCOPE_LINK };
        let mut request = Request::new(RTM_NEWROUTE, ACK | CREATE | EXCL)
            .put(&[family(to), prefix, 0, 0, TABLE_MAIN, PROTOCOL_BOOT, scope, UNICAST])
            .number(0)
            .attribute(RTA_OIF, &interface.0.to_ne_bytes());
        for (kind, address) in [
            (RTA_DST, (prefix > 0).then_some(to)),
            (RTA_GATEWAY, route.gateway),
            (RTA_PREFSRC, route.source),
        ] {
            if let Some(address) = address {
                request = request.attribute(kind, &octets(address));
            }
        }
        if !route.metrics.is_empty() {
            request = request.attribute(RTA_METRICS | NESTED, &route.metrics);
        }
        self.request(&[request]).map(drop)
    }

    /// `true` if the kernel accepts packets to an address; a new IPv6 address may not work at once.
    ///
    /// # Errors
    /// Those of the kernel.
    pub fn takes(&mut self, address: IpAddr) -> io::Result<bool> {
        let request = Request::new(RTM_GETROUTE, ACK)
            .put(&[family(address), whole(address), 0, 0])
            .put(&[0; 8])
            .attribute(RTA_DST, &octets(address));
        match self.request(&[request]) {
            Ok(found) => Ok(found.iter().any(|(_, body)| body.get(ROUTE_TYPE) == Some(&LOCAL))),
            Err(error) if error.kind() == io::ErrorKind::NetworkUnreachable => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// Returns the number of packets that an interface dropped instead of sending them.
    ///
    /// # Errors
    /// Those of the kernel; if the reply lacks the number.
    pub fn dropped(&mut self, interface: Interface) -> io::Result<u64> {
        let request = Request::new(RTM_GETLINK, ACK).put(&[0; 4]).number(interface.0).put(&[0; 8]);
        self.request(&[request])?
            .iter()
            .filter(|(kind, _)| *kind == RTM_NEWLINK)
            .find_map(|(_, body)| dropped_in(body))
            .ok_or_else(|| io::Error::other("the kernel has no statistics of the interface"))
    }

    /// Returns addresses in use and destinations of routes other than default routes, of both
    /// families, with their prefix lengths.
    ///
    /// # Errors
    /// Those of the kernel.
    pub fn taken(&mut self) -> io::Result<Vec<(IpAddr, u8)>> {
        let mut taken = Vec::new();
        // The kernel performs one dump at a time on a socket.
        for family in [AF_INET, AF_INET6] {
            let addresses = Request::new(RTM_GETADDR, DUMP).put(&[family, 0, 0, 0]).number(0);
            let routes = Request::new(RTM_GETROUTE, DUMP).put(&[family, 0, 0, 0]).put(&[0; 8]);
            for (request, header, kind) in
                [(addresses, ADDRESS_HEADER, IFA_ADDRESS), (routes, ROUTE_HEADER, RTA_DST)]
            {
                for (_, body) in self.request(&[request])? {
                    taken.extend(prefix_in(&body, family, header, kind));
                }
            }
        }
        Ok(taken)
    }
}

/// Replies to requests received so far.
#[derive(Clone, Debug, Default)]
pub struct Replies {
    /// Sequence numbers of requests without an acknowledgement, or without the end of their dump.
    pub pending: Vec<u32>,
    /// Replies other than acknowledgements.
    pub answers: Vec<Answer>,
}

impl Replies {
    /// Reads a datagram of consecutive messages, up to the first malformed one.
    ///
    /// # Errors
    /// The first error that the kernel reports.
    pub fn read(&mut self, mut bytes: &[u8]) -> io::Result<()> {
        while let Some((kind, sequence, body, after)) = split(bytes) {
            bytes = after;
            match kind {
                ERROR => {
                    let code = body.first_chunk().map_or(0, |b| i32::from_ne_bytes(*b));
                    if code != 0 {
                        return Err(io::Error::from_raw_os_error(code.saturating_neg()));
                    }
                    self.pending.retain(|&s| s != sequence);
                }
                DONE => self.pending.retain(|&s| s != sequence),
                _ => self.answers.push((kind, body.to_vec())),
            }
        }
        Ok(())
    }
}

/// Returns the number of packets that an interface dropped when sending, if a reply contains it.
#[must_use]
pub fn dropped_in(answer: &[u8]) -> Option<u64> {
    let statistics = attribute(answer.get(LINK_HEADER..)?, IFLA_STATS64)?;
    statistics.get(TX_DROPPED * 8..)?.first_chunk().map(|b| u64::from_ne_bytes(*b))
}

/// Returns the prefix in a reply about an address or a route, if it is of this family.
fn prefix_in(answer: &[u8], family: u8, header: usize, kind: u16) -> Option<(IpAddr, u8)> {
    // A kernel without IPv6 replies with all families that it has.
    let &[of, prefix] = answer.first_chunk::<2>()?;
    let found = attribute(answer.get(header..)?, kind).and_then(address)?;
    (of == family && found.is_ipv4() == (family == AF_INET)).then_some((found, prefix))
}

/// Returns all prefixes in a reply about an address or a route of any family.
#[must_use]
pub fn prefixes_in(answer: &[u8]) -> Vec<(IpAddr, u8)> {
    let kinds = [(ADDRESS_HEADER, IFA_ADDRESS), (ROUTE_HEADER, RTA_DST)];
    let families = kinds.into_iter().flat_map(|kind| [AF_INET, AF_INET6].map(|of| (of, kind)));
    families.filter_map(|(of, (header, kind))| prefix_in(answer, of, header, kind)).collect()
}

/// A route to a prefix.
#[derive(Clone, Debug)]
pub struct Route {
    /// First address of the prefix, and its length.
    pub to: (IpAddr, u8),
    /// Next hop, unless the destination is reached directly.
    pub gateway: Option<IpAddr>,
    /// Source address of packets, unless it is the interface's.
    pub source: Option<IpAddr>,
    /// Encoded metrics for connections: `RTAX_…` attributes.
    pub metrics: Vec<u8>,
}

impl Route {
    /// Creates a route to a prefix, without gateway, source or metrics.
    #[must_use]
    pub const fn to(address: IpAddr, prefix: u8) -> Self {
        Self { to: (address, prefix), gateway: None, source: None, metrics: Vec::new() }
    }

    /// Creates a route to one address.
    #[must_use]
    pub const fn to_host(address: IpAddr) -> Self {
        Self::to(address, whole(address))
    }
}

/// Returns the prefix length of a single address.
const fn whole(address: IpAddr) -> u8 {
    if address.is_ipv4() { 32 } else { 128 }
}

const fn family(address: IpAddr) -> u8 {
    if address.is_ipv4() { AF_INET } else { AF_INET6 }
}

/// Returns the bytes of an address in network byte order.
pub fn octets(address: IpAddr) -> Vec<u8> {
    match address {
        IpAddr::V4(address) => address.octets().to_vec(),
        IpAddr::V6(address) => address.octets().to_vec(),
    }
}

fn address(octets: &[u8]) -> Option<IpAddr> {
    if let Ok(octets) = <[u8; 4]>::try_from(octets) {
        return Some(octets.into());
    }
    <[u8; 16]>::try_from(octets).ok().map(IpAddr::from)
}

/// A request to the kernel.
#[derive(Clone, Debug)]
pub struct Request {
    kind: u16,
    flags: u16,
    body: Vec<u8>,
}

impl Request {
    /// Creates a request of this type, with these flags and `NLM_F_REQUEST`.
    #[must_use]
    pub const fn new(kind: u16, flags: u16) -> Self {
        Self { kind, flags: REQUEST | flags, body: Vec::new() }
    }

    /// Appends bytes to the body.
    #[must_use]
    pub fn put(mut self, bytes: &[u8]) -> Self {
        self.body.extend_from_slice(bytes);
        self
    }

    /// Appends a number to the body in native byte order.
    #[must_use]
    pub fn number(self, n: u32) -> Self {
        self.put(&n.to_ne_bytes())
    }

    /// Appends an attribute to the body.
    #[must_use]
    pub fn attribute(mut self, kind: u16, value: &[u8]) -> Self {
        push_attribute(&mut self.body, kind, value);
        self
    }

    fn write(&self, sequence: u32, to: &mut Vec<u8>) {
        let length = MESSAGE_HEADER + self.body.len();
        to.extend_from_slice(&(length as u32).to_ne_bytes());
        to.extend_from_slice(&self.kind.to_ne_bytes());
        to.extend_from_slice(&self.flags.to_ne_bytes());
        to.extend_from_slice(&sequence.to_ne_bytes());
        to.extend_from_slice(&0_u32.to_ne_bytes());
        to.extend_from_slice(&self.body);
        to.resize(to.len().next_multiple_of(ALIGN), 0);
    }
}

/// Appends an attribute to a list, which may be the value of another attribute.
pub fn push_attribute(to: &mut Vec<u8>, kind: u16, value: &[u8]) {
    let length = (ATTRIBUTE_HEADER + value.len()) as u16;
    to.extend_from_slice(&length.to_ne_bytes());
    to.extend_from_slice(&kind.to_ne_bytes());
    to.extend_from_slice(value);
    to.resize(to.len().next_multiple_of(ALIGN), 0);
}

/// Returns the value of the first attribute of this type in a list.
#[must_use]
pub fn attribute(mut list: &[u8], kind: u16) -> Option<&[u8]> {
    loop {
        let length = usize::from(u16::from_ne_bytes([*list.first()?, *list.get(1)?]));
        let found = u16::from_ne_bytes([*list.get(2)?, *list.get(3)?]) & ATTRIBUTE_KIND;
        let value = list.get(ATTRIBUTE_HEADER..length)?;
        if found == kind {
            return Some(value);
        }
        list = list.get(length.next_multiple_of(ALIGN)..)?;
    }
}

/// Splits off the first message: returns its type, sequence number and body, and the rest.
fn split(bytes: &[u8]) -> Option<(u16, u32, &[u8], &[u8])> {
    let header = bytes.first_chunk::<MESSAGE_HEADER>()?;
    let word = |at: usize| {
        u32::from_ne_bytes([header[at], header[at + 1], header[at + 2], header[at + 3]])
    };
    let length = word(0) as usize;
    let body = bytes.get(MESSAGE_HEADER..length)?;
    let after = bytes.get(length.next_multiple_of(ALIGN)..).unwrap_or_default();
    Some((u16::from_ne_bytes([header[4], header[5]]), word(8), body, after))
}

/// Flags and types of messages (linux/netlink.h).
const REQUEST: u16 = 0x1;
/// Flag that requests an acknowledgement.
pub const ACK: u16 = 0x4;
/// Flag that requests all objects.
pub const DUMP: u16 = 0x300;
/// Flag that requires that the object does not exist.
pub const EXCL: u16 = 0x200;
/// Flag that creates the object if it does not exist.
pub const CREATE: u16 = 0x400;
const ERROR: u16 = 2;
const DONE: u16 = 3;
/// Mask of an attribute's type, whose upper bits are flags.
const ATTRIBUTE_KIND: u16 = 0x3fff;
/// Flag of an attribute that contains attributes.
pub const NESTED: u16 = 0x8000;
/// Sizes and alignment, bytes.
const MESSAGE_HEADER: usize = 16;
const ATTRIBUTE_HEADER: usize = 4;
const ALIGN: usize = 4;
const ANSWER_ROOM: usize = 1 << 16;

/// Constants of linux/rtnetlink.h.
const RTM_NEWLINK: u16 = 16;
const RTM_GETLINK: u16 = 18;
const RTM_NEWADDR: u16 = 20;
const RTM_GETADDR: u16 = 22;
const RTM_NEWROUTE: u16 = 24;
const RTM_GETROUTE: u16 = 26;
const RTA_DST: u16 = 1;
const RTA_OIF: u16 = 4;
const RTA_GATEWAY: u16 = 5;
const RTA_PREFSRC: u16 = 7;
const RTA_METRICS: u16 = 8;
const TABLE_MAIN: u8 = 254;
const PROTOCOL_BOOT: u8 = 3;
const SCOPE_UNIVERSE: u8 = 0;
const SCOPE_LINK: u8 = 253;
const UNICAST: u8 = 1;
const LOCAL: u8 = 2;
/// Offset of the route type in `struct rtmsg`.
const ROUTE_TYPE: usize = 7;
/// Constants of linux/if_link.h, linux/if_addr.h and net/if.h.
const IFLA_MTU: u16 = 4;
const IFLA_TXQLEN: u16 = 13;
const IFLA_STATS64: u16 = 23;
const IFA_ADDRESS: u16 = 1;
const IFA_LOCAL: u16 = 2;
const IFF_UP: u32 = 0x1;
const IFF_MULTICAST: u32 = 0x1000;
/// Flag that skips duplicate address detection.
const IFA_F_NODAD: u8 = 0x02;
/// Address families (linux/socket.h).
const AF_INET: u8 = 2;
const AF_INET6: u8 = 10;
/// Index of `tx_dropped` in `struct rtnl_link_stats64`.
const TX_DROPPED: usize = 7;
/// Sizes of `struct ifinfomsg`, `struct ifaddrmsg` and `struct rtmsg`, bytes.
const LINK_HEADER: usize = 16;
const ADDRESS_HEADER: usize = 8;
const ROUTE_HEADER: usize = 12;
