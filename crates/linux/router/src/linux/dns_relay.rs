//! Relay of DNS queries from behind a link. A server on a loopback address (systemd-resolved,
//! dnsmasq) cannot be reached from another namespace. The relay listens at that address behind the
//! link and forwards queries over it to the caller's end, and from there to the server. It changes
//! no query, and answers one itself only if the server cannot be reached.

use std::fs;
use std::io::{self, ErrorKind};
use std::net::{IpAddr, Ipv4Addr, Shutdown, SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::os::fd::AsFd;
use std::thread::{self, JoinHandle};
use std::time::Duration as Wall;

use cwnd_quantity::{Duration, Time};
use rustix::event::{PollFd, PollFlags, poll};

use crate::linux::link_namespace::{Ends, LinkNamespace};
use crate::linux::netlink::Netlink;
use crate::linux::run::{Stop, monotonic};

/// DNS relay that runs until it is dropped.
#[derive(Debug)]
pub struct DnsRelay {
    _behind: Relay,
    _at_caller: Relay,
}

impl DnsRelay {
    /// Relays queries from behind a link through the caller's end. Without `to`, only those to
    /// `servers` on a loopback address are relayed, to the same servers; with `to`, those to any of
    /// `servers` go to `to`. At most eight servers are served; `None` if there are none.
    ///
    /// # Errors
    /// If its sockets cannot be opened or its threads cannot be started.
    pub fn relay(
        servers: &[IpAddr],
        to: Option<SocketAddr>,
        place: &LinkNamespace,
    ) -> io::Result<Option<Self>> {
        let Some((at_caller, names)) =
            place.caller.inside(|| AtCaller::open(servers, to, place.ends()))?
        else {
            return Ok(None);
        };
        let behind = place.behind.inside(|| Behind::open(&names, place.ends().caller)?.serve())?;
        Ok(Some(Self { _behind: behind, _at_caller: at_caller.0 }))
    }
}

/// A DNS server that programs behind a link use, and the ports at the caller's end that lead to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RelayedServer {
    /// Address that programs use.
    pub server: IpAddr,
    /// UDP port at the caller's end.
    pub udp: u16,
    /// TCP port at the caller's end.
    pub tcp: u16,
}

/// Part of the relay at the caller's end, which needs no rights. It runs until it is dropped.
#[derive(Debug)]
pub struct AtCaller(Relay);

impl AtCaller {
    /// Listens at the caller's end for the servers on a loopback address, or for all of them if
    /// queries go to `to`; `None` if there are none. At most eight are served. Works in the calling
    /// thread's network namespace.
    ///
    /// # Errors
    /// If its sockets cannot be opened or its thread cannot be started.
    pub fn open(
        servers: &[IpAddr],
        to: Option<SocketAddr>,
        ends: Ends<Ipv4Addr>,
    ) -> io::Result<Option<(Self, Vec<RelayedServer>)>> {
        let is_ours = |server: &&IpAddr| to.is_some() || server.is_loopback();
        let servers: Vec<IpAddr> =
            servers.iter().filter(is_ours).copied().take(MAX_SERVERS).collect();
        if servers.is_empty() {
            return Ok(None);
        }
        let sockets_at = |server: &IpAddr| {
            let to = to.unwrap_or_else(|| SocketAddr::new(*server, PORT));
            let sockets_at = SocketAddr::from((ends.caller, 0));
            ListenSockets::open(sockets_at, Upstream { udp: to, tcp: to }, Some(ends.behind.into()))
        };
        let relay = Relay::start(servers.iter().map(sockets_at).collect::<io::Result<_>>()?)?;
        let names = servers.iter().zip(&relay.addresses).map(|(&server, at)| RelayedServer {
            server,
            udp: at.udp.port(),
            tcp: at.tcp.port(),
        });
        let names = names.collect();
        Ok(Some((Self(relay), names)))
    }
}

/// Part of the relay behind the link. To listen there needs rights, to forward queries does not.
#[derive(Debug)]
pub struct Behind(Vec<ListenSockets>);

impl Behind {
    /// Listens at the servers' addresses in the calling thread's network namespace. Addresses other
    /// than loopback are added to its loopback device.
    ///
    /// # Errors
    /// Without the right to administer that network, or if an address cannot be bound.
    pub fn open(names: &[RelayedServer], caller: Ipv4Addr) -> io::Result<Self> {
        let mut control = Netlink::route()?;
        let loopback = control.interface("lo")?;
        let sockets_at = |name: &RelayedServer| {
            if !name.server.is_loopback() {
                control.add_address(loopback, name.server, name.server)?;
            }
            let next = |port| SocketAddr::from((caller, port));
            let next = Upstream { udp: next(name.udp), tcp: next(name.tcp) };
            ListenSockets::open(SocketAddr::new(name.server, PORT), next, None)
        };
        Ok(Self(names.iter().map(sockets_at).collect::<io::Result<_>>()?))
    }

    /// Forwards queries, from the calling thread's network namespace, until the relay is dropped.
    ///
    /// # Errors
    /// If no thread can be started.
    pub fn serve(self) -> io::Result<Relay> {
        Relay::start(self.0)
    }
}

/// Returns the DNS servers of this system (`/etc/resolv.conf`); this host if the file lists none or
/// cannot be read.
#[must_use]
pub fn system_servers() -> Vec<IpAddr> {
    servers_in(&fs::read_to_string("/etc/resolv.conf").unwrap_or_default())
}

/// Destinations of queries from a listening address.
#[derive(Clone, Copy, Debug)]
struct Upstream {
    udp: SocketAddr,
    tcp: SocketAddr,
}

/// Sockets that receive queries, by UDP and TCP (RFC 1035 § 4.2).
#[derive(Debug)]
struct ListenSockets {
    udp: UdpSocket,
    tcp: TcpListener,
    next: Upstream,
    /// Only permitted client; `None` permits all.
    from: Option<IpAddr>,
}

impl ListenSockets {
    fn open(at: SocketAddr, next: Upstream, from: Option<IpAddr>) -> io::Result<Self> {
        let (udp, tcp) = (UdpSocket::bind(at)?, TcpListener::bind(at)?);
        udp.set_nonblocking(true)?;
        tcp.set_nonblocking(true)?;
        Ok(Self { udp, tcp, next, from })
    }

    fn admits(&self, client: SocketAddr) -> bool {
        self.from.is_none_or(|from| from == client.ip())
    }
}

/// Thread that forwards queries in the network namespace of the thread that starts it.
#[derive(Debug)]
pub struct Relay {
    /// Local addresses of its sockets.
    addresses: Vec<Upstream>,
    stop: Stop,
    thread: Option<JoinHandle<()>>,
}

impl Relay {
    fn start(listening: Vec<ListenSockets>) -> io::Result<Self> {
        let address = |sockets_at: &ListenSockets| {
            Ok(Upstream { udp: sockets_at.udp.local_addr()?, tcp: sockets_at.tcp.local_addr()? })
        };
        let addresses = listening.iter().map(address).collect::<io::Result<_>>()?;
        let stop = Stop::new()?;
        let mut worker = RelayWorker {
            listening,
            stop: stop.clone(),
            queries: Vec::new(),
            connections: Vec::new(),
        };
        let builder = thread::Builder::new().name("cwnd-names".to_owned());
        let thread = builder.spawn(move || worker.serve())?;
        Ok(Self { addresses, stop, thread: Some(thread) })
    }
}

impl Drop for Relay {
    fn drop(&mut self) {
        self.stop.stop();
        if let Some(thread) = self.thread.take() {
            // The thread returns nothing, whatever its end.
            let _ = thread.join();
        }
    }
}

/// State of a relay's thread.
struct RelayWorker {
    listening: Vec<ListenSockets>,
    stop: Stop,
    queries: Vec<Query>,
    /// Client's socket of each TCP connection, whose shutdown ends the connection.
    connections: Vec<(TcpStream, JoinHandle<()>)>,
}

/// UDP query that awaits its response.
struct Query {
    /// Connected socket, which receives only from the server.
    upstream: UdpSocket,
    client: SocketAddr,
    sockets_at: usize,
    text: Vec<u8>,
    until: Time,
}

impl RelayWorker {
    fn serve(&mut self) {
        while !self.stop.asked() {
            let Ok(ready) = self.wait() else { break };
            let (listening, queries) = ready.split_at(self.listening.len() * 2);
            // Backwards, because a removal moves the later ones.
            for (i, _) in queries.iter().enumerate().rev().filter(|&(_, &ready)| ready) {
                self.answer(i);
            }
            for (i, sockets_at) in listening.chunks(2).enumerate() {
                if sockets_at[0] {
                    self.take_queries(i);
                }
                if sockets_at[1] {
                    self.accept(i);
                }
            }
        }
        for (client, _) in &self.connections {
            let _ = client.shutdown(Shutdown::Both);
        }
    }

    /// Waits for events. Returns for each pair of sockets two flags, UDP then TCP, followed by one
    /// for each query.
    fn wait(&self) -> io::Result<Vec<bool>> {
        let mut sockets = Vec::new();
        for sockets_at in &self.listening {
            sockets.extend([sockets_at.udp.as_fd(), sockets_at.tcp.as_fd()]);
        }
        sockets.extend(self.queries.iter().map(|query| query.upstream.as_fd()));
        sockets.push(self.stop.as_fd());
        let mut watched: Vec<PollFd<'_>> =
            sockets.iter().map(|socket| PollFd::new(socket, PollFlags::IN)).collect();
        rustix::io::retry_on_intr(|| poll(&mut watched, None))?;
        watched.pop();
        Ok(watched.iter().map(|socket| !socket.revents().is_empty()).collect())
    }

    /// Forwards the UDP queries that wait at a pair of sockets.
    fn take_queries(&mut self, i: usize) {
        let now = monotonic();
        self.queries.retain(|query| query.until > now);
        let mut buffer = [0; LARGEST];
        for _ in 0..MAX_QUERIES {
            let sockets_at = &self.listening[i];
            let Ok((length, client)) = sockets_at.udp.recv_from(&mut buffer) else { break };
            if !sockets_at.admits(client) {
                continue;
            }
            let text = buffer[..length].to_vec();
            match ask(sockets_at.next.udp, &text) {
                Ok(upstream) => {
                    if self.queries.len() == MAX_QUERIES {
                        self.queries.remove(0);
                    }
                    let until = now + PATIENCE;
                    self.queries.push(Query { upstream, client, sockets_at: i, text, until });
                }
                Err(_) => refuse(&sockets_at.udp, client, &text),
            }
        }
    }

    /// Sends a server's response, or a failure, to the client of a query.
    fn answer(&mut self, i: usize) {
        let mut buffer = [0; LARGEST];
        let query = &self.queries[i];
        let sockets_at = &self.listening[query.sockets_at].udp;
        match query.upstream.recv(&mut buffer) {
            Ok(length) => drop(sockets_at.send_to(&buffer[..length], query.client)),
            Err(error) if error.kind() == ErrorKind::WouldBlock => return,
            Err(_) => refuse(sockets_at, query.client, &query.text),
        }
        self.queries.remove(i);
    }

    /// Accepts a TCP connection, and relays it on its own thread.
    fn accept(&mut self, i: usize) {
        self.connections.retain(|(_, thread)| !thread.is_finished());
        let Ok((client, address)) = self.listening[i].tcp.accept() else { return };
        if self.connections.len() == MAX_CONNECTIONS || !self.listening[i].admits(address) {
            return;
        }
        let to = self.listening[i].next.tcp;
        let Ok(end) = client.try_clone() else { return };
        let thread = thread::Builder::new().spawn(move || {
            // A client whose server cannot be reached sees the end of its connection.
            let _ = carry(&client, to);
            let _ = client.shutdown(Shutdown::Both);
        });
        if let Ok(thread) = thread {
            self.connections.push((end, thread));
        }
    }
}

/// Sends a query from its own socket, whose port is chosen by the kernel (RFC 5452 § 4.5).
fn ask(server: SocketAddr, text: &[u8]) -> io::Result<UdpSocket> {
    let any: IpAddr = if server.is_ipv4() { [0; 4].into() } else { [0; 16].into() };
    let socket = UdpSocket::bind((any, 0))?;
    socket.set_nonblocking(true)?;
    socket.connect(server)?;
    socket.send(text)?;
    Ok(socket)
}

/// Answers a query with "server failure".
fn refuse(sockets_at: &UdpSocket, client: SocketAddr, query: &[u8]) {
    if let Some(answer) = refusal(query) {
        // A client that is gone repeats no query.
        let _ = sockets_at.send_to(&answer, client);
    }
}

/// Copies data in both directions. A direction ends when its source closes, or when an end makes no
/// progress for [`PATIENCE_TCP`].
fn carry(client: &TcpStream, to: SocketAddr) -> io::Result<()> {
    let server = TcpStream::connect_timeout(&to, PATIENCE_TCP)?;
    client.set_nonblocking(false)?;
    for end in [client, &server] {
        end.set_read_timeout(Some(PATIENCE_TCP))?;
        end.set_write_timeout(Some(PATIENCE_TCP))?;
        end.set_nodelay(true)?;
    }
    let pass = |mut from: &TcpStream, mut to: &TcpStream| {
        let passed = io::copy(&mut from, &mut to);
        let _ = to.shutdown(Shutdown::Write);
        passed
    };
    thread::scope(|scope| {
        thread::Builder::new().spawn_scoped(scope, || pass(client, &server))?;
        pass(&server, client)
    })?;
    Ok(())
}

/// Returns the servers listed in a file (resolv.conf(5)), each once; this host if it lists none.
/// Addresses with a zone, such as `fe80::1%eth0`, are left out: they are not valid on another link.
#[must_use]
pub fn servers_in(file: &str) -> Vec<IpAddr> {
    let named: Vec<&str> = file
        .lines()
        .filter_map(|line| {
            let mut words = line.split_ascii_whitespace();
            words.next().filter(|&word| word == "nameserver").and_then(|_| words.next())
        })
        .collect();
    if named.is_empty() {
        return vec![Ipv4Addr::LOCALHOST.into()];
    }
    let mut servers: Vec<IpAddr> = Vec::new();
    for server in named.iter().filter_map(|name| name.parse().ok()) {
        if !servers.contains(&server) {
            servers.push(server);
        }
    }
    servers
}

/// Returns the response "server failure" to a query (RFC 1035 § 4.1.1), after which a client asks
/// the next server at once; `None` if the query is too short.
#[must_use]
pub fn refusal(query: &[u8]) -> Option<Vec<u8>> {
    let mut answer = query.to_vec();
    let flags = answer.get_mut(2..4)?;
    flags[0] |= IS_RESPONSE;
    flags[1] = flags[1] & !CODE | SERVER_FAILURE;
    Some(answer)
}

/// Flags of a DNS message (RFC 1035 § 4.1.1).
const IS_RESPONSE: u8 = 0x80;
const CODE: u8 = 0x0f;
const SERVER_FAILURE: u8 = 2;

/// Port of DNS (RFC 1035 § 4.2).
const PORT: u16 = 53;
/// Maximum number of relayed servers; the C library uses at most three (resolv.conf(5), MAXNS).
pub const MAX_SERVERS: usize = 8;
/// Largest UDP datagram, bytes.
const LARGEST: usize = 65_535;
/// Maximum numbers of pending queries and of connections. Beyond them, the oldest query is dropped,
/// and a new connection is closed.
const MAX_QUERIES: usize = 256;
const MAX_CONNECTIONS: usize = 64;
/// Time for which a query or connection waits: clients repeat a query after 5 s (resolv.conf(5),
/// `timeout`).
const PATIENCE: Duration = Duration::from_secs(10);
const PATIENCE_TCP: Wall = Wall::from_secs(10);

#[cfg(test)]
mod tests {
    use super::*;

    fn named(file: &str) -> Vec<String> {
        servers_in(file).iter().map(ToString::to_string).collect()
    }

    #[test]
    fn servers_are_those_of_the_file_in_its_order() {
        let file = "# nameserver 192.0.2.1\nsearch example.org\nnameserver 127.0.0.53\n\
                    nameserver ::1\noptions edns0 trust-ad\nnameserver\t10.0.0.1 # ours\n\
                    nameserver ::1\n";
        assert_eq!(named(file), ["127.0.0.53", "::1", "10.0.0.1"]);
    }

    #[test]
    fn a_file_without_servers_means_this_host() {
        assert_eq!(named(""), ["127.0.0.1"]);
        assert_eq!(named("search example.org\n"), ["127.0.0.1"]);
    }

    #[test]
    fn an_address_of_a_single_link_is_no_server_elsewhere() {
        assert_eq!(named("nameserver fe80::1%eth0\n"), [""; 0]);
    }
}
