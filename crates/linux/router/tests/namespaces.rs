//! A router between two network namespaces of the kernel. The tests are skipped with a message if
//! that is not permitted.
#![cfg(target_os = "linux")]

mod captured;

/// Connections of Linux through the router.
mod connections {
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
        world
            .a
            .inside(|| std::fs::write("/proc/sys/net/ipv4/tcp_ecn", "1"))
            .expect("it can be set");
        transfer(&world, 5_000_000).expect("the transfer works");
        let report = world.end();
        let there = &report.directions[0];
        assert!(there.marks(codel::REASON) > 5, "{} marks", there.marks(codel::REASON));
        // Packets without data are not ECN-capable: a SYN (RFC 3168 § 6.1.1) or a pure ACK
        // (§ 6.1.4) may be dropped.
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
            let listener =
                world.b.inside(|| TcpListener::bind((B, port))).expect("the port is free");
            let started = cwnd_router::linux::monotonic();
            world.a.inside(|| TcpStream::connect((B, port))).expect("it connects");
            drop(listener);
            cwnd_router::linux::monotonic().since(started)
        };
        // A busy machine adds to the time of one connection or another.
        let shortest = |port| (0..5).map(|_| connect(port)).min().expect("five connections");
        let (near, far) = (shortest(5002), shortest(5001));
        assert!(near >= Duration::from_millis(10) && near < Duration::from_millis(30), "{near}");
        assert!(far >= Duration::from_millis(50) && far < Duration::from_millis(70), "{far}");
        world.end();
    }

    #[test]
    fn a_tun_device_is_gone_with_its_file() {
        let Ok(namespace) = Namespace::fresh() else {
            return eprintln!("skipped: no namespaces here");
        };
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
}

/// Source quenches of a router to real hosts about their packets, as Linux receives them.
mod source_quenches {
    use std::collections::BTreeSet;
    use std::io::{self, Write as _};
    use std::net::{Ipv4Addr, SocketAddrV4, TcpListener, TcpStream, UdpSocket};
    use std::os::fd::OwnedFd;
    use std::thread;
    use std::time::Duration as Wall;

    use cwnd_aqm::{MessengerParams, MeterParams, QueueParams, codel};
    use cwnd_packet::ReceivedQuench;
    use cwnd_quantity::{Duration, Rate};
    use cwnd_router::{Capture, Config, Direction, Namespace, Point, Report, Running, Tun, start};
    use cwnd_schema::{ParamsChoice, Value};
    use rustix::io::Errno;
    use rustix::net::sockopt::set_ip_tos;
    use rustix::net::{
        AddressFamily, RecvFlags, SocketFlags, SocketType, ipproto, recv, socket_with,
    };

    use crate::captured::{Kept, of_interface};

    const A: Ipv4Addr = Ipv4Addr::new(10, 80, 0, 1);
    const B: Ipv4Addr = Ipv4Addr::new(10, 80, 0, 2);
    const PORT: u16 = 5001;

    /// Two namespaces with a router between them, and a socket that receives all ICMP at A.
    struct World {
        a: Namespace,
        b: Namespace,
        icmp: OwnedFd,
        router: Running,
    }

    impl World {
        /// Creates the namespaces; `None`, with a message, if that is not permitted here.
        fn new(test: &str, there: Direction) -> Option<Self> {
            Self::with_capture(test, there, None)
        }

        fn with_capture(test: &str, there: Direction, kept: Option<Kept>) -> Option<Self> {
            match Self::build(there, kept) {
                Ok(world) => Some(world),
                Err(error) => {
                    eprintln!("skipped {test}: no namespaces with TUN devices here ({error})");
                    None
                }
            }
        }

        fn build(there: Direction, kept: Option<Kept>) -> io::Result<Self> {
            let (a, b) = (Namespace::fresh()?, Namespace::fresh()?);
            let device = |ns: &Namespace, own, peer| {
                ns.inside(|| {
                    let tun = Tun::open("cwnd0")?;
                    tun.add_address(own, peer)?;
                    // No route leads to the router's address, so that reverse path filtering would
                    // drop its messages.
                    for of in ["all", "cwnd0"] {
                        std::fs::write(format!("/proc/sys/net/ipv4/conf/{of}/rp_filter"), "0")?;
                    }
                    std::fs::write("/proc/sys/net/ipv4/tcp_ecn", "1")?;
                    Ok(tun)
                })
            };
            let (at_a, at_b) = (device(&a, A, B)?, device(&b, B, A)?);
            let icmp = a.inside(|| {
                let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
                Ok(socket_with(AddressFamily::INET, SocketType::RAW, flags, Some(ipproto::ICMP))?)
            })?;
            let config = Config::new(there, Direction::unlimited("back"));
            let capture = kept
                .map(|kept| Capture::new(Box::new(kept), "test", &config.directions, Point::Line));
            let router = start(config, at_a, at_b, capture.transpose()?)?;
            Ok(Self { a, b, icmp, router })
        }

        /// Returns the ICMP packets that have arrived at A.
        fn heard(&self) -> Vec<Vec<u8>> {
            let mut bytes = [0; 2048];
            let mut heard = Vec::new();
            loop {
                match recv(&self.icmp, &mut bytes[..], RecvFlags::empty()) {
                    Ok((length, _)) => heard.push(bytes[..length].to_vec()),
                    Err(Errno::AGAIN) => return heard,
                    Err(error) => panic!("{error}"),
                }
            }
        }

        /// Returns a counter of ICMP by Linux at A.
        fn counted(&self, name: &str) -> u64 {
            let snmp = self.a.inside(|| std::fs::read_to_string("/proc/thread-self/net/snmp"));
            let snmp = snmp.expect("Linux tells");
            let mut lines = snmp.lines().filter_map(|line| line.strip_prefix("Icmp: "));
            let (names, counts) = (lines.next().expect("names"), lines.next().expect("counts"));
            let place = names.split(' ').position(|n| n == name).expect("there is such a count");
            counts.split(' ').nth(place).and_then(|n| n.parse().ok()).expect("a number")
        }

        fn end(self) -> Report {
            self.router.stop().expect("the router runs")
        }
    }

    fn quench(set: &[(&str, Value)]) -> MessengerParams {
        let mut quench = MessengerParams::of_kind("quench").expect("it is registered");
        for (name, value) in set {
            quench.params_mut().set(name, value).expect("it is a parameter");
        }
        quench
    }

    fn limited(queue: &str) -> Direction {
        let queue = QueueParams::of_kind(queue).expect("it is registered");
        Direction::limited("there", Rate::from_mbit(10), queue, Duration::from_millis(10))
    }

    /// Sends datagrams with payloads of these sizes and this TOS; returns the source port.
    fn send(world: &World, tos: u8, sizes: &[usize]) -> u16 {
        let socket = world.a.inside(|| UdpSocket::bind((A, 0))).expect("a socket");
        set_ip_tos(&socket, tos).expect("it can be set");
        for &size in sizes {
            socket.send_to(&vec![0; size], SocketAddrV4::new(B, PORT)).expect("it is sent");
        }
        socket.local_addr().expect("it has one").port()
    }

    /// Sends this many bytes from A to B over TCP.
    fn transfer(world: &World, bytes: usize) {
        thread::scope(|scope| {
            let listener =
                world.b.inside(|| TcpListener::bind((B, PORT))).expect("the port is free");
            let receiver = scope.spawn(move || {
                let (mut stream, _) = listener.accept()?;
                io::copy(&mut stream, &mut io::sink())
            });
            world
                .a
                .inside(|| TcpStream::connect((B, PORT))?.write_all(&vec![0; bytes]))
                .expect("all is written");
            assert_eq!(receiver.join().expect("no panic").expect("all is read"), bytes as u64);
        });
    }

    /// Waits until all packets sent have passed.
    fn wait() {
        thread::sleep(Wall::from_millis(150));
    }

    const ECT0: u8 = 0b10;

    #[test]
    fn linux_hears_a_quench_about_each_ecn_capable_packet_that_was_marked_and_of_no_other() {
        let name =
            "linux_hears_a_quench_about_each_ecn_capable_packet_that_was_marked_and_of_no_other";
        let mut meter = MeterParams::of_kind("step").expect("it is registered");
        meter.params_mut().set("threshold", &Value::Text("1 B".to_owned())).expect("it is one");
        let there = Direction { meter, messenger: quench(&[]), ..limited("fifo") };
        let Some(world) = World::new(name, there) else { return };
        let port = send(&world, ECT0, &[100, 200, 300, 400, 1000]);
        send(&world, 0, &[100; 7]);
        wait();
        // No socket listens at B: Linux there sends an ICMP error, which is no quench and about
        // which no quench is sent.
        let heard: Vec<ReceivedQuench> =
            world.heard().iter().filter_map(|packet| ReceivedQuench::read(packet)).collect();
        assert_eq!(heard.len(), 5, "{heard:?}");
        for quench in &heard {
            assert_eq!(quench.router, [192, 0, 0, 8]);
            assert!(quench.marked && quench.level == 0);
            let about = quench.quoted;
            assert_eq!((about.source, about.source_port), (A.octets(), port));
            assert_eq!((about.destination, about.destination_port), (B.octets(), PORT));
        }
        // Linux accepts the checksums, and otherwise ignores quenches (RFC 6633).
        assert_eq!(world.counted("InSrcQuenchs"), 5);
        assert_eq!(world.counted("InCsumErrors"), 0);
        let report = world.end();
        assert_eq!(report.directions[0].quenches, 5);
        assert_eq!(report.counted().get("quenches_sent"), Some(5));
        assert_eq!(report.directions[0].undelivered + report.directions[1].undelivered, 0);
    }

    #[test]
    fn linux_hears_of_drops_as_often_as_the_limit_allows() {
        let name = "linux_hears_of_drops_as_often_as_the_limit_allows";
        let mut there = limited("fifo");
        there
            .queue
            .params_mut()
            .set("limit", &Value::Text("2 packets".to_owned()))
            .expect("a limit");
        there.messenger = quench(&[
            ("ect_only", Value::Bool(false)),
            ("interval", Value::Text("1 s".to_owned())),
        ]);
        let Some(world) = World::new(name, there) else { return };
        send(&world, 0, &[1400; 40]);
        wait();
        let heard: Vec<ReceivedQuench> =
            world.heard().iter().filter_map(|packet| ReceivedQuench::read(packet)).collect();
        assert_eq!(heard.len(), 1);
        assert!(!heard[0].marked);
        let report = world.end();
        let dropped = report.directions[0].total.link.drops.total();
        assert!(dropped > 10, "{dropped}");
        let counted = report.counted();
        assert_eq!(counted.get("quenches_withheld"), Some(dropped - 1));
        assert_eq!(counted.get("quenches_sent"), Some(1));
    }

    #[test]
    fn a_connection_of_linux_is_told_of_each_mark_and_goes_on_as_if_it_were_not() {
        let name = "a_connection_of_linux_is_told_of_each_mark_and_goes_on_as_if_it_were_not";
        let there = Direction { messenger: quench(&[]), ..limited("codel") };
        let kept = Kept::default();
        let Some(world) = World::with_capture(name, there, Some(kept.clone())) else { return };
        transfer(&world, 3_000_000);
        wait();
        let heard = world.heard();
        let told = world.counted("InSrcQuenchs");
        let report = world.end();
        let marks = report.directions[0].marks(codel::REASON);
        assert!(marks > 5, "{marks}");
        assert_eq!((told, report.directions[0].quenches), (marks, marks));
        let quenches = heard.iter().filter_map(|packet| ReceivedQuench::read(packet));
        assert!(quenches.clone().all(|q| q.marked && q.quoted.destination_port == PORT));
        assert!(quenches.clone().all(|q| q.sequence.is_some()));
        assert_eq!(quenches.count() as u64, marks);
        // A capture contains the messages among packets to A; each quotes a packet captured as
        // marked.
        let marked: BTreeSet<[u8; 4]> = of_interface(0, &kept.packets())
            .iter()
            .filter(|caught| caught.comment == "marked: codel")
            .filter_map(|caught| caught.headers[24..28].try_into().ok())
            .collect();
        let told = of_interface(1, &kept.packets());
        let told: Vec<ReceivedQuench> =
            told.iter().filter_map(|caught| ReceivedQuench::read(&caught.headers)).collect();
        assert_eq!(told.len() as u64, marks);
        for quench in told {
            let number = quench.sequence.expect("of a segment").to_be_bytes();
            assert!(marked.contains(&number), "{quench:?}");
        }
    }

    #[test]
    fn linux_counts_the_packets_of_a_connection_in_identifications_that_adpm_reads_or_writes() {
        for (which, counts) in [("packet", true), ("drawn", false)] {
            let name = "linux_counts_the_packets_of_a_connection_in_their_identifications";
            let mut meter = MeterParams::of_kind("adpm").expect("it is registered");
            let value = Value::Text(which.to_owned());
            meter.params_mut().set("identification", &value).expect("it is one of them");
            let there = Direction { meter, ..limited("fifo") };
            let kept = Kept::default();
            let Some(world) = World::with_capture(name, there, Some(kept.clone())) else { return };
            transfer(&world, 3_000_000);
            let report = world.end();
            let sent = of_interface(0, &kept.packets());
            let data: Vec<&[u8]> =
                sent.iter().filter(|c| c.headers.len() > 200).map(|c| &c.headers[..]).collect();
            assert!(data.len() > 2000, "{}", data.len());
            let id = |packet: &[u8]| u16::from_be_bytes([packet[4], packet[5]]);
            // Linux forbids fragmentation (path MTU discovery), and still numbers the packets.
            assert!(data.iter().all(|packet| packet[6] & 0x40 != 0));
            let next =
                data.windows(2).filter(|two| id(two[1]) == id(two[0]).wrapping_add(1)).count();
            if counts {
                assert!(next as f64 > 0.95 * data.len() as f64, "{next} of {}", data.len());
            } else {
                assert!(next < 20, "{next} of {}", data.len());
            }
            // The link was full, but only some packets say so, as their thresholds differ.
            let of = |ecn: u8| data.iter().filter(|packet| packet[1] & 0b11 == ecn).count();
            let [low, high] = [of(0b10), of(0b01)];
            assert!(low > 200 && high > 200, "{which}: {low}, {high}");
            assert_eq!(
                report.directions[1].undelivered, 0,
                "Linux takes them: checksums are right"
            );
            let counted = report.counted().get("packets_identified").unwrap_or(0);
            assert_eq!(counted > 0, !counts, "{which}: {counted}");
        }
    }
}
