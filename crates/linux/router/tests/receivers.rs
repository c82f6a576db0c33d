//! Receivers at a distance from the router: data is delayed behind the line, and ACKs before it.

use core::net::Ipv4Addr;

use cwnd_aqm::{QueueParams, fifo};
use cwnd_packet::{Endpoints, Tcp};
use cwnd_quantity::{Duration, Rate, Time};
use cwnd_router::{Config, Direction, Endpoint, Engine, Side, Work};

const FAR: Duration = Duration::from_millis(40);
/// Senders on both sides, and the address that receives from A.
const A: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 1);
const FROM_A: Ipv4Addr = Ipv4Addr::new(10, 1, 0, 1);
const B: Ipv4Addr = Ipv4Addr::new(10, 1, 0, 2);

/// Returns an engine with lines of 1 Mbit/s, on which a byte takes 8 µs.
fn engine() -> Engine {
    let fifo = || QueueParams::Fifo(fifo::Params::default());
    let line = |name| Direction::limited(name, Rate::from_mbit(1), fifo(), Duration::ZERO);
    let mut config = Config::new(line("there"), line("back"));
    for direction in &mut config.directions {
        direction.flow_delays.insert(Endpoint { address: A.into(), port: 5001 }, FAR);
        direction.flow_delays.insert(Endpoint::any_port(B.into()), FAR * 2);
    }
    Engine::new(&config)
}

/// Returns a packet of 40 bytes, headers only.
fn packet(source: (Ipv4Addr, u16), destination: (Ipv4Addr, u16)) -> Vec<u8> {
    let ends = Endpoints {
        source: source.0.octets(),
        source_port: source.1,
        destination: destination.0.octets(),
        destination_port: destination.1,
    };
    let headers = Tcp::default().headers(ends);
    headers.bytes[..].to_vec()
}

/// Returns the times at which packets leave at a side, in µs, and their sources. The engine is
/// called whenever it is due.
fn leaves(engine: &mut Engine, at: Side) -> Vec<(u64, [u8; 4])> {
    let mut left = Vec::new();
    while engine.next() != Time::NEVER {
        let now = engine.next();
        for side in Side::BOTH {
            while let Some((due, bytes)) = engine.depart(now, side) {
                assert_eq!(due, now, "it is never late");
                if side == at {
                    left.push((due.0 / 1000, bytes[12..16].try_into().expect("four bytes")));
                }
            }
        }
        assert!(engine.next() > now, "it goes on");
    }
    left
}

#[test]
fn data_waits_behind_the_line_and_acks_before_it() {
    let on_line = packet((A, 5001), (FROM_A, 80)).len() as u64 * 8;
    let mut data = engine();
    data.arrive(Time::ZERO, Side::A, &packet((A, 5001), (FROM_A, 80)));
    assert_eq!(leaves(&mut data, Side::B), [(on_line + 40_000, A.octets())]);

    // The ACK arrives first, but the later packet is on the line before it.
    let mut acks = engine();
    acks.arrive(Time::ZERO, Side::B, &packet((FROM_A, 80), (A, 5001)));
    acks.arrive(Time(1_000_000), Side::B, &packet((B, 80), (A, 9)));
    assert_eq!(acks.held(), 2);
    let left = leaves(&mut acks, Side::A);
    assert_eq!(left, [(40_000 + on_line, FROM_A.octets()), (1_000 + on_line + 80_000, B.octets())]);
    assert_eq!(acks.held(), 0);
}

#[test]
fn what_comes_from_far_queues_behind_what_came_before() {
    let on_line = packet((B, 1), (A, 9)).len() as u64 * 8;
    let mut engine = engine();
    engine.arrive(Time::ZERO, Side::B, &packet((FROM_A, 80), (A, 5001)));
    // A packet without delay, which arrives just before the ACK reaches the queue.
    let now = Time(40_000_000 - 1);
    engine.arrive(now, Side::B, &packet((FROM_A, 81), (A, 9)));
    let left: Vec<u64> = leaves(&mut engine, Side::A).into_iter().map(|(at, _)| at).collect();
    assert_eq!(left, [39_999 + on_line, 39_999 + 2 * on_line]);
}

#[test]
fn what_has_not_reached_the_queue_has_not_arrived() {
    let mut engine = engine();
    engine.arrive(Time::ZERO, Side::B, &packet((FROM_A, 80), (A, 5001)));
    let report = engine.finish(Time(10_000_000), Work::default()).expect("nothing is written");
    let back = &report.directions[1];
    assert_eq!((back.from_far_receivers, back.held, back.total.link.arrived), (1, 0, 0));
}
