//! A router between two network namespaces of the kernel. The tests are skipped with a message if
//! that is not permitted.
#![cfg(target_os = "linux")]

use std::io::{self, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::thread;
use std::time::Duration as Wall;

use cwnd_aqm::{QueueParams, codel};
use cwnd_quantity::{Duration, Rate};
use cwnd_router::{Config, Direction, Endpoint, Namespace, Report, Running, Tun, start};
use cwnd_schema::ParamsChoice;

const A: Ipv4Addr = Ipv4Addr::new(10, 77, 0, 1);
const B: Ipv4Addr = Ipv4Addr::new(10, 77, 0, 2);

/// Two namespaces with a router between them.
struct World {
    a: Namespace,
    b: Namespace,
    router: Running,
}

impl World {
    /// Creates the namespaces; `None`, with a message, if that is not permitted here.
    fn new(test: &str, config: Config) -> Option<Self> {
        match Self::build(config) {
            Ok(world) => Some(world),
            Err(error) => {
                eprintln!("skipped {test}: no namespaces with TUN devices here ({error})");
                None
            }
        }
    }

    fn build(config: Config) -> io::Result<Self> {
        let (a, b) = (Namespace::fresh()?, Namespace::fresh()?);
        let device = |ns: &Namespace, own, peer| {
            ns.inside(|| {
                let tun = Tun::open("cwnd%d")?;
                tun.add_address(own, peer)?;
                Ok(tun)
            })
        };
        let (at_a, at_b) = (device(&a, A, B)?, device(&b, B, A)?);
        let router = start(config, at_a, at_b, None)?;
        Ok(Self { a, b, router })
    }

    fn end(self) -> Report {
        self.router.stop().expect("the router runs")
    }
}

fn queue(kind: &str) -> QueueParams {
    QueueParams::of_kind(kind).expect("there is such a queue")
}

fn both_ways(rate: Rate, delay: Duration, kind: &str) -> Config {
    let direction = |name| Direction::limited(name, rate, queue(kind), delay);
    Config::new(direction("there"), direction("back"))
}

/// Sends `bytes` from A to B over TCP; returns the time it took.
fn transfer(world: &World, bytes: usize) -> io::Result<Wall> {
    thread::scope(|scope| {
        let listener = world.b.inside(|| TcpListener::bind((B, 5001)))?;
        let receiver = scope.spawn(move || {
            let (mut stream, _) = listener.accept()?;
            io::copy(&mut stream, &mut io::sink())
        });
        let started = cwnd_router::linux::monotonic();
        world.a.inside(|| {
            let mut stream = TcpStream::connect((B, 5001))?;
            stream.write_all(&vec![0; bytes])
        })?;
        let received = receiver.join().expect("no panic")?;
        assert_eq!(received, bytes as u64);
        Ok(Wall::from_nanos(cwnd_router::linux::monotonic().since(started).0))
    })
}

#[test]
fn a_transfer_takes_what_its_bytes_take_at_the_rate() {
    let name = "a_transfer_takes_what_its_bytes_take_at_the_rate";
    let config = both_ways(Rate::from_mbit(20), Duration::from_millis(10), "codel");
    let Some(world) = World::new(name, config) else { return };
    let bytes = 4_000_000;
    let took = transfer(&world, bytes).expect("the transfer works").as_secs_f64();
    let report = world.end();
    // 1500 B on the line carry 1448 B of data; the handshake and slow start take time, too.
    let least = bytes as f64 * 8.0 / 20e6 * 1500.0 / 1448.0;
    assert!(took > least && took < least + 0.5, "{took} s, {least} s at least");
    let there = &report.directions[0];
    assert!(there.total.delivered_bytes as f64 > bytes as f64 * 1500.0 / 1448.0);
    assert_eq!(there.total.largest, 1500, "offloads are off");
    assert_eq!(there.total.malformed, 0);
    assert_eq!(
        there.total.link.arrived,
        there.total.delivered + there.total.link.drops.total() + there.held
    );
}

#[test]
fn codel_marks_real_connections_that_ask_for_ecn() {
    let name = "codel_marks_real_connections_that_ask_for_ecn";
    let config = both_ways(Rate::from_mbit(10), Duration::from_millis(10), "codel");
    let Some(world) = World::new(name, config) else { return };
    world.a.inside(|| std::fs::write("/proc/sys/net/ipv4/tcp_ecn", "1")).expect("it can be set");
    transfer(&world, 5_000_000).expect("the transfer works");
    let report = world.end();
    let there = &report.directions[0];
    assert!(there.marks(codel::REASON) > 5, "{} marks", there.marks(codel::REASON));
    // Packets without data are not ECN-capable: a SYN (RFC 3168 § 6.1.1) or a pure ACK (§ 6.1.4)
    // may be dropped.
    assert!(there.drops(codel::REASON) <= 1);
    assert_eq!(there.undelivered, 0, "the kernel takes every packet: checksums are right");
}

#[test]
fn every_flow_has_its_own_delay() {
    let name = "every_flow_has_its_own_delay";
    let mut config = both_ways(Rate::from_mbit(100), Duration::from_millis(5), "fifo");
    let far = Endpoint { address: B.into(), port: 5001 };
    config.directions[1].flow_delays.insert(far, Duration::from_millis(40));
    let Some(world) = World::new(name, config) else { return };
    let connect = |port: u16| {
        let listener = world.b.inside(|| TcpListener::bind((B, port))).expect("the port is free");
        let started = cwnd_router::linux::monotonic();
        world.a.inside(|| TcpStream::connect((B, port))).expect("it connects");
        drop(listener);
        cwnd_router::linux::monotonic().since(started)
    };
    let (near, far) = (connect(5002), connect(5001));
    assert!(near >= Duration::from_millis(10) && near < Duration::from_millis(30), "{near}");
    assert!(far >= Duration::from_millis(50) && far < Duration::from_millis(70), "{far}");
    world.end();
}

#[test]
fn a_tun_device_is_gone_with_its_file() {
    let Ok(namespace) = Namespace::fresh() else { return eprintln!("skipped: no namespaces here") };
    let names = || -> io::Result<Vec<String>> {
        Ok(std::fs::read_to_string("/proc/thread-self/net/dev")?
            .lines()
            .filter_map(|line| line.split_once(':').map(|(name, _)| name.trim().to_owned()))
            .collect())
    };
    let found = namespace.inside(|| {
        let tun = Tun::open("cwnd%d")?;
        let during = names()?;
        assert!(during.contains(&tun.name().to_owned()), "{during:?}");
        drop(tun);
        names()
    });
    match found {
        Ok(after) => assert_eq!(after, ["lo"]),
        Err(error) => eprintln!("skipped: no TUN devices here ({error})"),
    }
}
