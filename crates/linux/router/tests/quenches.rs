//! Forged source quenches as real packets: an attacker's raw socket, Linux, a TUN device, and the
//! simulator's packet reader and sender. The tests are skipped with a message if that is not
//! permitted.
#![cfg(target_os = "linux")]

use std::io;
use std::net::{Ipv4Addr, SocketAddrV4};
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::thread;
use std::time::Duration as Wall;

use cwnd_aqm::{MessengerParams, MeterParams, QueueParams};
use cwnd_cc::ControllerParams;
use cwnd_packet::{Ecn, Endpoints, Headers, Options, ReceivedQuench, SourceQuench, Tcp};
use cwnd_quantity::{Bytes, Duration, Rate, Rng, Time};
use cwnd_router::{Config as Router, Direction, Engine, Namespace, Side, Tun};
use cwnd_schema::{ParamsChoice, Value};
use cwnd_tcp::{Body, Config, Flags, Params, Segment, Sender};
use rustix::io::Errno;
use rustix::net::{AddressFamily, SendFlags, SocketType, ipproto, sendto, socket};

/// Addresses of the attacker and of the attacked host.
const ATTACKER: Ipv4Addr = Ipv4Addr::new(10, 79, 0, 1);
const HOST: Ipv4Addr = Ipv4Addr::new(10, 79, 0, 2);
/// Address of the attacker towards the host's peer, and the peer's.
const ATTACKER_TOO: Ipv4Addr = Ipv4Addr::new(198, 51, 100, 1);
const PEER: Ipv4Addr = Ipv4Addr::new(198, 51, 100, 7);
/// Router that forged quenches name as their source.
const ROUTER: [u8; 4] = [192, 0, 2, 1];
/// Attacked connection.
const CONNECTION: Endpoints = Endpoints {
    source: HOST.octets(),
    source_port: 49_152,
    destination: PEER.octets(),
    destination_port: 443,
};
/// Sequence number of the first byte.
const ISN: u32 = 0xffff_f000;
const NOW: Time = Time(1_000_000_000);

/// An attacker and the attacked sender.
struct World {
    raw: OwnedFd,
    tun: Tun,
    sender: Sender,
    /// Packets that are no quench about the attacked connection.
    others: u64,
    /// Packets sent through a router.
    sent: u64,
}

impl World {
    /// Creates the attacker's namespace; `None`, with a message, if that is not permitted here.
    fn new(test: &str) -> Option<Self> {
        let made = Namespace::fresh().and_then(|ns| {
            ns.inside(|| {
                let tun = Tun::open("cwnd%d")?;
                tun.add_address(ATTACKER, HOST)?;
                tun.add_address(ATTACKER_TOO, PEER)?;
                // Raw sockets of this protocol take packets with their IP headers.
                let raw = socket(AddressFamily::INET, SocketType::RAW, Some(ipproto::RAW))?;
                Ok((raw, tun))
            })
        });
        match made {
            Ok((raw, tun)) => Some(Self { raw, tun, sender: sender(), others: 0, sent: 0 }),
            Err(error) => {
                eprintln!("skipped {test}: no namespaces with TUN devices here ({error})");
                None
            }
        }
    }

    /// Sends a packet of the attacker to the host.
    fn send(&mut self, packet: &[u8]) {
        let bytes = self.pass(packet, HOST);
        self.take(&bytes);
    }

    /// Sends a packet of the attacker to the peer, through a router that marks it and reports to
    /// its source, which may be the host.
    fn send_through(&mut self, router: &mut Engine, packet: &[u8]) {
        let bytes = self.pass(packet, PEER);
        self.sent += 1;
        let now = Time::ZERO + Duration::from_millis(1) * self.sent;
        router.arrive(now, Side::A, &bytes);
        let then = now + Duration::from_micros(900);
        assert!(router.depart(then, Side::B).is_some(), "it goes on");
        let (at, told) = router.depart(then, Side::A).expect("its source is told");
        assert!(at >= now && at <= then);
        let told = told.to_vec();
        assert_eq!(router.depart(then, Side::A), None, "once");
        self.take(&told);
    }

    /// Has Linux send a packet, and returns what leaves through the TUN device.
    fn pass(&mut self, packet: &[u8], to: Ipv4Addr) -> Vec<u8> {
        let to = SocketAddrV4::new(to, 0);
        let sent = sendto(&self.raw, packet, SendFlags::empty(), &to).expect("it is sent");
        assert_eq!(sent, packet.len());
        let mut bytes = vec![0; 2048];
        let length = read(&self.tun, &mut bytes).expect("Linux passes it on");
        bytes.truncate(length);
        bytes
    }

    /// Reads a packet as the host does, and passes a quench about the connection to its sender.
    fn take(&mut self, bytes: &[u8]) {
        let heard = ReceivedQuench::read(bytes).filter(|heard| heard.quoted == CONNECTION);
        let Some((heard, number)) = heard.and_then(|heard| Some((heard, heard.sequence?))) else {
            self.others += 1;
            return;
        };
        let una = self.sender.acknowledged();
        let beyond = number.wrapping_sub(ISN).wrapping_sub(una as u32);
        let about = Segment {
            seq: una + u64::from(beyond),
            ts: NOW,
            len: 0,
            wire: 0,
            flags: Flags::default(),
            ecn: Ecn::NotEct,
            body: Body::DATA,
        };
        self.sender.on_segment(NOW, &about.quench(heard.marked, heard.level, 0));
    }

    /// Returns the numbers of accepted and refused quenches, of reductions, and of other packets.
    fn counts(&self) -> [u64; 4] {
        let c = self.sender.counters();
        [c.quenches, c.quenches_refused, c.reductions_for_quenches(), self.others]
    }
}

/// Reads a packet, which Linux sends at once or a little later.
fn read(tun: &Tun, bytes: &mut [u8]) -> io::Result<usize> {
    for _ in 0..1000 {
        match rustix::io::read(tun, &mut *bytes) {
            Err(Errno::AGAIN) => thread::sleep(Wall::from_millis(1)),
            other => return Ok(other?),
        }
    }
    Err(io::ErrorKind::TimedOut.into())
}

/// Returns a sender with ten segments of 1000 B outstanding.
fn sender() -> Sender {
    let mut params = Params::default();
    params.packets.mss = Bytes(1000);
    params.connection.handshake = false;
    params.quench.obey_quench = true;
    let mut controller = ControllerParams::of_kind("newreno").expect("it is registered");
    assert!(controller.params_mut().apply_preset("becn"));
    let mut sender = Sender::new(Arc::new(Config::new(params, controller)));
    sender.write(1_000_000);
    sender.open();
    let out = core::iter::from_fn(|| sender.poll_transmit(Time::ZERO)).count();
    assert_eq!(out, 10);
    sender
}

/// Returns the headers of an ECN-capable segment of this connection.
fn segment(of: Endpoints, sequence: u32) -> Headers {
    let segment = Tcp {
        sequence,
        acknowledgment: 0,
        flags: 0x10,
        window: 1000,
        options: Options {
            mss: None,
            sack_permitted: false,
            window_scale: None,
            timestamps: None,
            sack: [(0, 0); 3],
            experiment: None,
        },
        ecn: Ecn::Ect0,
        identification: 0,
        payload: 1000,
        wanted_length: 1040,
    };
    segment.headers(of)
}

/// Returns a whole segment.
fn data(of: Endpoints, sequence: u32) -> Vec<u8> {
    let Headers { mut bytes, total } = segment(of, sequence);
    bytes.resize(total.into(), 0);
    bytes
}

/// Returns a quench as sent by a router that marked a segment of this connection.
fn quench(of: Endpoints, sequence: u32) -> Vec<u8> {
    let about = segment(of, sequence);
    SourceQuench { quoted: &about.bytes, marked: true, level: 0 }
        .headers(ROUTER, HOST.octets())
        .bytes
}

/// Returns a router that marks every ECN-capable packet and reports to its source.
fn router() -> Engine {
    router_that_tells(None)
}

/// Returns such a router that reports only to this source, if one is given.
fn router_that_tells(told: Option<Ipv4Addr>) -> Engine {
    let mut meter = MeterParams::of_kind("step").expect("it is registered");
    let all = Value::Text("1 B".to_owned());
    meter.params_mut().set("threshold", &all).expect("a threshold");
    let fifo = QueueParams::of_kind("fifo").expect("it is registered");
    let there = Direction {
        meter,
        messenger: MessengerParams::of_kind("quench").expect("it is registered"),
        message_target: told,
        ..Direction::limited("there", Rate::from_mbit(100), fifo, Duration::ZERO)
    };
    Engine::new(&Router::new(there.clone(), Direction { name: "back".to_owned(), ..there }))
}

const MANY: u64 = 20_000;

#[test]
fn who_guesses_ports_and_numbers_reaches_no_connection() {
    let Some(mut world) = World::new("a blind attacker") else { return };
    let mut rng = Rng::named(1, "blind");
    for _ in 0..MANY {
        let source_port = 1024 + rng.below(64_512) as u16;
        world.send(&quench(Endpoints { source_port, ..CONNECTION }, rng.bits() as u32));
    }
    let [believed, refused, reduced, others] = world.counts();
    assert_eq!((believed, reduced), (0, 0));
    assert_eq!(others + refused, MANY);
    // One port of 64,512 is right.
    assert!(refused < 5, "{refused}");
}

#[test]
fn who_guesses_numbers_is_not_believed() {
    let Some(mut world) = World::new("an attacker who knows the ports") else { return };
    let mut rng = Rng::named(2, "ports");
    for _ in 0..MANY {
        world.send(&quench(CONNECTION, rng.bits() as u32));
    }
    assert_eq!(world.counts(), [0, MANY, 0, 0]);
    // The refused guesses also make the connection ignore quenches for this round trip: a right one
    // has no effect.
    world.send(&quench(CONNECTION, ISN));
    assert_eq!(world.counts(), [0, MANY + 1, 0, 0]);
}

#[test]
fn who_sees_the_packets_is_believed_and_reduces_the_window_once_in_a_round_trip() {
    let Some(mut world) = World::new("an attacker on the path") else { return };
    for n in 0..MANY {
        // Any of the outstanding segments, across the wrap of sequence numbers.
        world.send(&quench(CONNECTION, ISN.wrapping_add((n % 10_000) as u32)));
    }
    assert_eq!(world.counts(), [MANY, 0, 1, 0]);
    assert_eq!(world.sender.window().cwnd, 5000);
}

#[test]
fn what_is_damaged_or_about_others_changes_nothing() {
    let Some(mut world) = World::new("damaged quenches") else { return };
    let right = quench(CONNECTION, ISN);
    // Linux writes the header's checksum and length, and the identification if it is zero. Only
    // bits behind the header are flipped.
    for bit in 20 * 8..right.len() * 8 {
        let mut wrong = right.clone();
        wrong[bit / 8] ^= 1 << (bit % 8);
        world.send(&wrong);
    }
    world.send(&quench(Endpoints { source: [10, 79, 0, 3], ..CONNECTION }, ISN));
    let sent = (right.len() as u64 - 20) * 8 + 1;
    assert_eq!(world.counts(), [0, 0, 0, sent]);
    world.send(&right);
    assert_eq!(world.counts(), [1, 0, 1, sent]);
}

#[test]
fn who_forges_data_has_the_router_tell_a_host_what_it_does_not_believe() {
    let Some(mut world) = World::new("an attacker who has a router send") else { return };
    let (mut router, mut rng) = (router(), Rng::named(3, "reflected"));
    for _ in 0..MANY {
        let source_port = 1024 + rng.below(64_512) as u16;
        let forged = Endpoints { source_port, ..CONNECTION };
        world.send_through(&mut router, &data(forged, rng.bits() as u32));
    }
    let [believed, refused, reduced, others] = world.counts();
    assert_eq!((believed, reduced, others + refused), (0, 0, MANY));
    assert!(refused < 5, "{refused}");
    for _ in 0..MANY {
        world.send_through(&mut router, &data(CONNECTION, rng.bits() as u32));
    }
    assert_eq!(world.counts(), [0, refused + MANY, 0, others]);
    assert_eq!(world.sender.window().cwnd, 10_000);
}

#[test]
fn who_forges_data_from_where_a_host_is_not_reaches_nobody_there() {
    let (mut router, at) = (router(), Time::ZERO + Duration::from_millis(1));
    // The attacker knows the connection, but is on the peer's side of the router.
    router.arrive(at, Side::B, &data(CONNECTION, ISN));
    let then = at + Duration::from_millis(1);
    let (_, passed) = router.depart(then, Side::A).expect("it goes on");
    assert_eq!(ReceivedQuench::read(passed), None);
    assert_eq!(router.depart(then, Side::A), None, "the host's side is told nothing");
    let (_, told) = router.depart(then, Side::B).expect("the side that it came from is");
    assert_eq!(ReceivedQuench::read(told).map(|heard| heard.quoted), Some(CONNECTION));
}

#[test]
fn who_is_none_of_ours_is_told_nothing() {
    for (told, is_told) in [(None, true), (Some(HOST), true), (Some(ATTACKER), false)] {
        let (mut router, at) = (router_that_tells(told), Time::ZERO + Duration::from_millis(1));
        router.arrive(at, Side::A, &data(CONNECTION, ISN));
        let then = at + Duration::from_millis(1);
        assert!(router.depart(then, Side::B).is_some(), "it goes on");
        assert_eq!(router.depart(then, Side::A).is_some(), is_told, "{told:?}");
    }
}
