//! DNS servers and IPv6 hosts reached from behind a link. Every test has its own network namespace;
//! the tests are skipped with a message if that is not permitted.
#![cfg(target_os = "linux")]

use std::fs;
use std::io::{self, Read, Write};
use std::net::{
    IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpListener, TcpStream, ToSocketAddrs, UdpSocket,
};
use std::thread;
use std::time::Duration as Wall;

use cwnd_aqm::{QueueParams, codel};
use cwnd_quantity::{Duration, Rate};
use cwnd_router::linux::{Ends, Netlink, Route, monotonic};
use cwnd_router::{Config, Direction, Link, Namespace, Report, Running, Tun, start};
use cwnd_schema::ParamsChoice;

/// Address of systemd-resolved.
const STUB: Ipv4Addr = Ipv4Addr::new(127, 0, 0, 53);
/// Addresses of the first link in a network namespace.
const FIRST: Ends<Ipv4Addr> =
    Ends { caller: Ipv4Addr::new(198, 18, 0, 1), behind: Ipv4Addr::new(198, 18, 0, 2) };
const ONE_WAY: Duration = Duration::from_millis(20);

/// A simulated machine, and a link on it.
struct World {
    machine: Namespace,
    link: Link,
}

impl World {
    /// Prepares a machine and creates a link on it; `None`, with a message, if that is not
    /// permitted here.
    fn new(
        test: &str,
        config: Config,
        prepare: impl FnOnce() -> io::Result<()> + Send,
    ) -> Option<Self> {
        let built = Namespace::fresh().and_then(|machine| {
            let link = machine.inside(|| {
                let mut control = Netlink::route()?;
                let loopback = control.interface("lo")?;
                control.bring_up(loopback, None, None)?;
                prepare()?;
                Link::new(config, None)
            })?;
            Ok(Self { machine, link })
        });
        match built {
            Ok(world) => Some(world),
            Err(error) => {
                eprintln!("skipped {test}: no links here ({error})");
                None
            }
        }
    }

    /// Does `work` on a thread behind the link.
    fn behind<T: Send>(&self, work: impl FnOnce() -> T + Send) -> T {
        thread::scope(|scope| {
            let thread = scope.spawn(|| {
                self.link.enter().expect("it may");
                work()
            });
            thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        })
    }

    /// Starts a DNS server on the machine, which returns each query with the response flag and
    /// `word`.
    fn resolver(&self, at: SocketAddr, word: &'static [u8]) {
        let (udp, tcp) = self
            .machine
            .inside(|| Ok((UdpSocket::bind(at)?, TcpListener::bind(at)?)))
            .expect("nobody else is here");
        begin(move || {
            let mut query = [0; 512];
            while let Ok((length, client)) = udp.recv_from(&mut query) {
                let _ = udp.send_to(&answer(&query[..length], word), client);
            }
        });
        begin(move || {
            while let Ok((mut client, _)) = tcp.accept() {
                let mut length = [0; 2];
                while client.read_exact(&mut length).is_ok() {
                    let mut query = vec![0; usize::from(u16::from_be_bytes(length))];
                    client.read_exact(&mut query).expect("a whole query");
                    let answer = answer(&query, word);
                    client.write_all(&(answer.len() as u16).to_be_bytes()).expect("it listens");
                    client.write_all(&answer).expect("it listens");
                }
            }
        });
    }

    fn end(self) -> Report {
        self.link.finish().expect("the router runs")
    }
}

fn answer(query: &[u8], word: &[u8]) -> Vec<u8> {
    let mut answer = query.to_vec();
    answer[2] |= 0x80;
    answer.extend(word);
    answer
}

/// Returns a query for the address of `a`: ID, flags, counts, question (RFC 1035 § 4.1).
fn query(number: u8) -> Vec<u8> {
    let mut query = vec![0, number, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0];
    query.extend([1, b'a', 0, 0, 1, 0, 1]);
    query
}

/// Sends queries over UDP all at once; returns the answers sorted by ID, and the time they took.
fn ask(server: SocketAddr, count: u8) -> (Vec<Vec<u8>>, Duration) {
    let began = monotonic();
    let socket = UdpSocket::bind(("0.0.0.0", 0)).expect("a free port");
    socket.set_read_timeout(Some(Wall::from_secs(3))).expect("it can be set");
    socket.connect(server).expect("there is a way");
    for number in 0..count {
        socket.send(&query(number)).expect("somebody listens");
    }
    let mut answers: Vec<Vec<u8>> = (0..count)
        .map(|_| {
            let mut answer = [0; 512];
            let length = socket.recv(&mut answer).expect("an answer");
            answer[..length].to_vec()
        })
        .collect();
    let took = monotonic().since(began);
    answers.sort();
    (answers, took)
}

/// Sends two queries over one TCP connection (RFC 7766 § 6.2.1).
fn ask_connected(server: SocketAddr) -> io::Result<Vec<Vec<u8>>> {
    let mut stream = TcpStream::connect(server)?;
    let mut answers = Vec::new();
    for number in 0..2 {
        let query = query(number);
        stream.write_all(&(query.len() as u16).to_be_bytes())?;
        stream.write_all(&query)?;
        let mut length = [0; 2];
        stream.read_exact(&mut length)?;
        let mut answer = vec![0; usize::from(u16::from_be_bytes(length))];
        stream.read_exact(&mut answer)?;
        answers.push(answer);
    }
    Ok(answers)
}

fn delayed() -> Config {
    let direction = |name| Direction { delay: ONE_WAY, ..Direction::unlimited(name) };
    Config::new(direction("up"), direction("down"))
}

fn at(address: impl Into<IpAddr>, port: u16) -> SocketAddr {
    SocketAddr::new(address.into(), port)
}

/// Does `work` on another thread.
fn begin<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> thread::JoinHandle<T> {
    thread::Builder::new().spawn(work).expect("a thread more")
}

/// Connects within 3 s.
fn connect(to: impl ToSocketAddrs) -> io::Result<TcpStream> {
    let to = to.to_socket_addrs()?.next().expect("an address");
    TcpStream::connect_timeout(&to, Wall::from_secs(3))
}

#[test]
fn a_resolver_on_loopback_answers_behind_the_link_and_over_it() {
    let name = "a_resolver_on_loopback_answers_behind_the_link_and_over_it";
    let Some(mut world) = World::new(name, delayed(), || Ok(())) else { return };
    world.resolver(at(STUB, 53), b"stub");
    // The second server is not on a loopback address, and is not relayed.
    let servers = [STUB.into(), Ipv4Addr::new(192, 0, 2, 1).into()];
    world.link.relay_names(&servers, None).expect("there are sockets");
    world.behind(|| {
        let (answers, took) = ask(at(STUB, 53), 100);
        let expected: Vec<_> = (0..100).map(|n| answer(&query(n), b"stub")).collect();
        assert_eq!(answers, expected);
        assert!(took >= ONE_WAY * 2 && took < Duration::from_secs(1), "{took}");
        let connected = ask_connected(at(STUB, 53)).expect("it is answered");
        assert_eq!(connected, expected[..2]);
    });
    let report = world.end();
    assert!(report.directions[0].total.link.arrived > 100, "queries took the link");
}

#[test]
fn where_no_resolver_listens_the_answer_is_a_failure_at_once() {
    let name = "where_no_resolver_listens_the_answer_is_a_failure_at_once";
    let Some(mut world) = World::new(name, delayed(), || Ok(())) else { return };
    world.link.relay_names(&[STUB.into()], None).expect("there are sockets");
    world.behind(|| {
        let (answers, took) = ask(at(STUB, 53), 1);
        // The query with the response flag and code 2 (RFC 1035 § 4.1.1).
        assert_eq!(answers[0][..4], [0, 0, 0x81, 2]);
        assert_eq!(answers[0][4..], query(0)[4..]);
        assert!(took < Duration::from_millis(500), "{took}");
        assert!(ask_connected(at(STUB, 53)).is_err());
    });
    world.end();
}

#[test]
fn a_server_that_was_asked_for_answers_for_all_that_the_system_names() {
    let name = "a_server_that_was_asked_for_answers_for_all_that_the_system_names";
    let Some(mut world) = World::new(name, delayed(), || Ok(())) else { return };
    let chosen = at(Ipv6Addr::LOCALHOST, 5353);
    world.resolver(chosen, b"chosen");
    let far = Ipv4Addr::new(192, 0, 2, 1);
    world.link.relay_names(&[STUB.into(), far.into()], Some(chosen)).expect("there are sockets");
    world.behind(|| {
        for server in [at(STUB, 53), at(far, 53)] {
            assert_eq!(ask(server, 1).0, [answer(&query(0), b"chosen")]);
        }
    });
    world.end();
}

#[test]
fn a_connection_that_is_open_does_not_keep_a_link_from_its_end() {
    let name = "a_connection_that_is_open_does_not_keep_a_link_from_its_end";
    let Some(mut world) = World::new(name, delayed(), || Ok(())) else { return };
    world.resolver(at(STUB, 53), b"stub");
    world.link.relay_names(&[STUB.into()], None).expect("there are sockets");
    let mut open = world.behind(|| {
        let mut stream = connect(at(STUB, 53)).expect("it is taken");
        stream.write_all(&[0]).expect("it is taken");
        stream
    });
    let began = monotonic();
    world.end();
    assert!(monotonic().since(began) < Duration::from_secs(2));
    open.set_read_timeout(Some(Wall::from_secs(5))).expect("it can be set");
    assert_eq!(open.read(&mut [0]).unwrap_or(0), 0, "it has ended");
}

#[test]
fn whom_a_connection_of_an_earlier_link_still_sends_to_is_nobody_in_the_next() {
    let name = "whom_a_connection_of_an_earlier_link_still_sends_to_is_nobody_in_the_next";
    let Some(world) = World::new(name, delayed(), || Ok(())) else { return };
    let World { machine, link } = world;
    let listener = machine.inside(|| TcpListener::bind((FIRST.caller, 5001))).expect("free");
    let meet = |link: &Link| {
        let asking = thread::scope(|scope| {
            let caller = scope.spawn(|| {
                link.enter().expect("it may");
                connect((FIRST.caller, 5001)).expect("there is a way")
            });
            caller.join().expect("no panic")
        });
        let (answering, from) = listener.accept().expect("somebody came");
        (asking, answering, from.ip())
    };
    let (asking, mut answering, first) = meet(&link);
    assert_eq!(first, FIRST.behind);
    drop(asking);
    link.finish().expect("the router runs");
    answering.write_all(&[0; 1000]).expect("it does not know that nobody listens");
    let again = || machine.inside(|| Link::new(delayed(), None)).expect("as before");
    let next = again();
    assert_ne!(next.ends().behind, FIRST.behind);
    assert_eq!(next.finish().expect("the router runs").directions[0].total.link.arrived, 0);
    // With unsent data, close sends a RST and leaves no connection.
    rustix::net::sockopt::set_socket_linger(&answering, Some(Wall::ZERO)).expect("it can be set");
    drop(answering);
    assert_eq!(again().ends().behind, FIRST.behind);
}

#[test]
fn a_transfer_over_ipv6_is_marked_like_any_other() {
    let name = "a_transfer_over_ipv6_is_marked_like_any_other";
    let queue = QueueParams::of_kind("codel").expect("there is such a queue");
    let direction = |name| {
        Direction::limited(name, Rate::from_mbit(10), queue.clone(), Duration::from_millis(5))
    };
    let config = Config::new(direction("up"), direction("down"));
    let Some(world) = World::new(name, config, || Ok(())) else { return };
    let Some(ends) = world.link.ends6() else { return eprintln!("skipped {name}: no IPv6 here") };
    let listener = world.machine.inside(|| TcpListener::bind((ends.caller, 5001))).expect("free");
    let receiver = begin(move || {
        let (mut stream, from) = listener.accept().expect("somebody comes");
        (from.ip(), io::copy(&mut stream, &mut io::sink()).expect("it says something"))
    });
    world.behind(|| {
        fs::write("/proc/sys/net/ipv4/tcp_ecn", "1").expect("it can be set");
        let mut stream = connect((ends.caller, 5001)).expect("there is a way");
        stream.write_all(&vec![0; 4_000_000]).expect("it listens");
    });
    assert_eq!(receiver.join().expect("no panic"), (ends.behind.into(), 4_000_000));
    let report = world.end();
    let up = &report.directions[0];
    assert!(up.marks(codel::REASON) > 5, "{} marks", up.marks(codel::REASON));
    assert!(up.drops(codel::REASON) <= 1, "what is no data is not ECN-capable");
    assert_eq!((up.total.malformed, up.undelivered, up.total.largest), (0, 0, 1500));
}

#[test]
fn nothing_crosses_a_link_that_nobody_sends() {
    let name = "nothing_crosses_a_link_that_nobody_sends";
    for forwards in ["0", "1"] {
        let prepare = || fs::write("/proc/sys/net/ipv6/conf/all/forwarding", forwards);
        let Some(world) = World::new(name, delayed(), prepare) else { return };
        // Multicast listener reports come within 1 s (RFC 9777 § 9.11), as do router solicitations
        // (RFC 4861 § 10).
        thread::sleep(Wall::from_millis(2500));
        let report = world.end();
        let came = report.directions.each_ref().map(|d| (d.total.link.arrived, d.total.malformed));
        assert_eq!(came, [(0, 0); 2], "where forwarding is {forwards}");
    }
}

/// A second machine, at the other end of a wire.
struct Beyond {
    world: Namespace,
    _wire: Running,
}

const NEAR: Ipv6Addr = Ipv6Addr::new(0x2001, 0xdb8, 1, 0, 0, 0, 0, 1);
const FAR: Ipv6Addr = Ipv6Addr::new(0x2001, 0xdb8, 1, 0, 0, 0, 0, 2);

impl Beyond {
    /// Connects the calling thread's machine to it.
    fn wired() -> io::Result<Self> {
        let world = Namespace::fresh()?;
        let near = Tun::open("wire%d")?;
        near.add_address(NEAR, FAR)?;
        near.add_route(&Route::to(Ipv6Addr::UNSPECIFIED.into(), 0))?;
        let far = world.inside(|| {
            let far = Tun::open("wire%d")?;
            far.add_address(FAR, NEAR)?;
            Ok(far)
        })?;
        let config = Config::new(Direction::unlimited("out"), Direction::unlimited("back"));
        Ok(Self { world, _wire: start(config, near, far, None)? })
    }
}

#[test]
fn what_is_beyond_a_machine_that_forwards_ipv6_sees_the_machine() {
    let name = "what_is_beyond_a_machine_that_forwards_ipv6_sees_the_machine";
    let mut beyond = None;
    let prepare = || {
        fs::write("/proc/sys/net/ipv6/conf/all/forwarding", "1")?;
        beyond = Some(Beyond::wired()?);
        Ok(())
    };
    let Some(world) = World::new(name, delayed(), prepare) else { return };
    if let Some(why) = world.link.unreachable_reason6().filter(|why| why.contains("nf_tables")) {
        return eprintln!("skipped {name}: {why}");
    }
    assert_eq!(world.link.unreachable_reason6(), None);
    let beyond = beyond.expect("it was made");
    let listener = beyond.world.inside(|| TcpListener::bind((FAR, 80))).expect("free");
    let server = begin(move || listener.accept().expect("somebody comes").1.ip());
    world.behind(|| connect((FAR, 80)).map(drop)).expect("there is a way");
    assert_eq!(server.join().expect("no panic"), IpAddr::from(NEAR));
    world.end();
}

#[test]
fn where_ipv6_goes_no_further_a_program_is_told_at_once() {
    let name = "where_ipv6_goes_no_further_a_program_is_told_at_once";
    let mut beyond = None;
    let prepare = || {
        beyond = Some(Beyond::wired()?);
        Ok(())
    };
    let Some(world) = World::new(name, delayed(), prepare) else { return };
    let Some(_) = world.link.ends6() else { return eprintln!("skipped {name}: no IPv6 here") };
    let why = world.link.unreachable_reason6().expect("nobody has made it forward");
    assert!(why.contains("net.ipv6.conf.all.forwarding"), "{why}");
    let failed = world.behind(|| connect((FAR, 80))).expect_err("there is no way");
    assert_eq!(failed.kind(), io::ErrorKind::NetworkUnreachable);
    world.end();
}

#[test]
fn a_link_has_addresses_although_a_vpn_routes_the_whole_internet() {
    let name = "a_link_has_addresses_although_a_vpn_routes_the_whole_internet";
    let prepare = || {
        let vpn = Tun::open("vpn%d")?;
        vpn.add_address(Ipv4Addr::new(10, 8, 0, 2), Ipv4Addr::new(10, 8, 0, 1))?;
        for half in [Ipv4Addr::new(0, 0, 0, 0), Ipv4Addr::new(128, 0, 0, 0)] {
            vpn.add_route(&Route::to(half.into(), 1))?;
        }
        // A route covers the first addresses.
        vpn.add_route(&Route::to(Ipv4Addr::new(198, 18, 0, 0).into(), 24))?;
        std::mem::forget(vpn);
        Ok(())
    };
    let Some(world) = World::new(name, delayed(), prepare) else { return };
    assert_eq!(world.link.ends().caller, Ipv4Addr::new(198, 18, 1, 1));
    world.end();
}
