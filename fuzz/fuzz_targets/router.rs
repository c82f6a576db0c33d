//! Fuzz target of the router: any settings and input at any time. Malformed packets are counted.
//! Each other packet is delivered once, or counted as dropped or held. Packets leave in the order
//! of their departure times and not before them. Only ECN fields, identifications and checksums
//! change.

#![cfg_attr(not(test), no_main)]

#[cfg(test)]
use super::bytes;
#[cfg(not(test))]
#[path = "../bytes.rs"]
mod bytes;

use std::collections::BTreeMap;

use cwnd_aqm::{MessengerParams, MeterParams, QueueParams};
use cwnd_packet::Ecn;
use cwnd_quantity::{Duration, DurationDist, Rate, Shape, Time};
use cwnd_router::{Config, Direction, Endpoint, Engine, Side, Work, parse};
use cwnd_scenario::{Impairments, LinkRate};
use cwnd_schema::{ParamsChoice, Value};

use bytes::Bytes;

/// Number of bytes at the end of a well-formed packet that hold its number.
const NUMBER: usize = 4;
/// Addresses of well-formed packets; the first has its own delay in some configurations.
const ADDRESSES: [[u8; 4]; 3] = [[10, 0, 0, 1], [10, 0, 0, 2], [192, 168, 7, 9]];

/// Draws a distribution of jitter: constant, log-normal, a mixture or exponential.
fn jitter(bytes: &mut Bytes<'_>) -> DurationDist {
    let wide = bytes.wide();
    DurationDist(match bytes.below(4) {
        0 => Shape::Constant(wide),
        1 => Shape::LogNormal(wide, f64::from(bytes.byte())),
        2 => Shape::Mix([(0.5, Shape::Constant(wide)), (0.5, Shape::Constant(0))].into()),
        _ => Shape::Exponential(wide),
    })
}

fn direction(bytes: &mut Bytes<'_>, name: &str) -> Direction {
    let kinds = QueueParams::KINDS;
    let mut queue =
        QueueParams::of_kind(kinds[bytes.below(kinds.len())].name).expect("a kind of the registry");
    let limits = ["1 packets", "7 packets", "3000 B", "1 ms", "1 BDP", "1000 packets"];
    let limit = Value::Text(bytes.pick(&limits).to_owned());
    queue.params_mut().set("limit", &limit).expect("every queue has a limit");
    if let QueueParams::Pie(pie) = &mut queue
        && bytes.flag()
    {
        pie.t_update = Duration(1 + bytes.short());
    }
    let rates = [8_000, 1_000_000, 1_000_000_000, u64::MAX / 2];
    let rate = match bytes.below(6) {
        0 => LinkRate::Unlimited,
        1 => LinkRate::Trace(vec![0, 0, 1 + bytes.short()]),
        2 => LinkRate::Steps {
            initial: Rate(bytes.pick(&rates)),
            changes: vec![(Time(bytes.wide()), Rate(bytes.pick(&rates)))],
            period: None,
        },
        _ => LinkRate::constant(Rate(bytes.pick(&rates))),
    };
    let impairments = match bytes.below(3) {
        0 => Impairments {
            loss: f64::from(bytes.byte()) / 255.0,
            loss_every: bytes.flag().then(|| u32::from(bytes.byte())),
            burst_loss: None,
            jitter: jitter(bytes),
            jitter_correlation: Duration(bytes.pick(&[0, 1, 1_000_000, u64::MAX])),
            reorder: f64::from(bytes.byte()) / 255.0,
            reorder_delay: Duration(bytes.wide()),
            delay_steps: vec![(Time(bytes.wide()), Duration(bytes.wide()))],
            delay_steps_period: bytes.flag().then(|| Duration(bytes.wide().max(1))),
        },
        _ => Impairments::default(),
    };
    let mut flow_delays = BTreeMap::new();
    if bytes.flag() {
        let end = Endpoint { address: ADDRESSES[0].into(), port: bytes.pick(&[0, 80]) };
        flow_delays.insert(end, Duration(bytes.wide()));
    }
    Direction {
        rate,
        queue,
        device_queue: bytes.below(4) as u32,
        bdp_rtt: Duration(bytes.wide()),
        delay: Duration(bytes.wide()),
        flow_delays,
        impairments,
        ..Direction::unlimited(name)
    }
}

/// Builds a packet that may be forwarded, with this number at its end.
fn packet(bytes: &mut Bytes<'_>, number: u32) -> Vec<u8> {
    let (ecn, protocol) = (bytes.byte() & 0b11, bytes.pick(&[6_u8, 17, 1, 50]));
    let payload = bytes.short() as usize % 1460;
    let (from, to) = (bytes.pick(&ADDRESSES), bytes.pick(&ADDRESSES));
    let mut content = vec![0; 24 + payload];
    content[..4].copy_from_slice(&[0, 80, 0, bytes.byte()]);
    content[12] = bytes.byte();
    let mut packet = Vec::new();
    if bytes.flag() {
        let length = (20 + content.len() + NUMBER) as u16;
        packet.extend([0x45, ecn, 0, 0, 0, 0, bytes.byte(), 0, 64, protocol, 0, 0]);
        packet[2..4].copy_from_slice(&length.to_be_bytes());
        packet.extend(from);
        packet.extend(to);
        let checksum = !sum(&packet);
        packet[10..12].copy_from_slice(&checksum.to_be_bytes());
    } else {
        packet.extend([0x60, ecn << 4, 0, 0, 0, 0, protocol, 64]);
        packet[4..6].copy_from_slice(&((content.len() + NUMBER) as u16).to_be_bytes());
        packet.resize(40, 7);
    }
    packet.extend(content);
    packet.extend(number.to_be_bytes());
    packet
}

fn sum(bytes: &[u8]) -> u16 {
    let sum: u32 = bytes.chunks(2).map(|w| u32::from(w[0]) << 8 | u32::from(w[1])).sum();
    // Adding the carry may carry once more (RFC 1071 § 1).
    let once = (sum & 0xffff) + (sum >> 16);
    ((once & 0xffff) + (once >> 16)) as u16
}

/// Asserts that two packets differ at most in a mark, ECT(1) for ECT(0) if the router writes a
/// load, the identification of ECT(0) packets that are and stay unfragmented, and the checksum.
fn same_but_for_a_mark(before: &[u8], after: &[u8], writes: Writes) {
    let (was, is) = (parse(before).expect("it came"), parse(after).expect("it left whole"));
    assert_eq!(before.len(), after.len());
    let raised = writes.load && (was.ecn, is.ecn) == (Ecn::Ect0, Ecn::Ect1);
    let marked = was.ecn.is_ect() && is.ecn == Ecn::Ce;
    assert!(was.ecn == is.ecn || marked || raised, "{:?} became {:?}", was.ecn, is.ecn);
    // Bytes that may change in IPv4: the second, identification and checksum. In IPv6: the second.
    let changed: Vec<usize> = (0..before.len()).filter(|&i| before[i] != after[i]).collect();
    let v4 = before[0] >> 4 == 4;
    // Bits after the reserved one: don't fragment is set; more fragments and the upper five bits of
    // the offset are not.
    let identified = changed.iter().any(|&i| v4 && (i == 4 || i == 5));
    assert!(
        !identified || writes.identification && was.ecn == Ecn::Ect0 && before[6] & 0x7f == 0x40
    );
    assert!(changed.iter().all(|&i| i == 1 || v4 && [4, 5, 10, 11].contains(&i)));
}

/// Fields that a router may write besides marks.
#[derive(Clone, Copy)]
struct Writes {
    load: bool,
    identification: bool,
}

/// Adds the meter and messenger, or none, that this number selects.
fn beside(direction: &mut Direction, number: u64) -> Writes {
    let kinds = MeterParams::KINDS;
    let kind = kinds[number as usize % kinds.len()].name;
    direction.meter = MeterParams::of_kind(kind).expect("a kind of the registry");
    let mut set = |key: &str, text: &str| {
        direction.meter.params_mut().set(key, &Value::Text(text.to_owned()))
    };
    // Short enough that a load is measured.
    let load = set("interval", "1 ms").is_ok();
    let number = number / kinds.len() as u64;
    let identification = number % 2 == 1 && set("identification", "drawn").is_ok();
    if number / 2 % 2 == 1 {
        let mut quench = MessengerParams::of_kind("quench").expect("a kind of the registry");
        quench.params_mut().set("ect_only", &Value::Bool(number / 4 % 2 == 1)).expect("a flag");
        direction.messenger = quench;
    }
    Writes { load, identification }
}

/// `true` if this is a source quench of the router; asserts that its checksums are valid and that
/// it goes to the source of the packet that it quotes.
fn is_message(packet: &[u8]) -> bool {
    let is = packet[0] == 0x45 && packet[9] == 1 && packet[12..16] == [192, 0, 0, 8];
    if is {
        assert_eq!((sum(&packet[..20]), sum(&packet[20..])), (0xffff, 0xffff));
        assert_eq!((packet[20], packet[21]), (4, 0));
        let quoted = &packet[28..];
        assert_eq!(packet[16..20], quoted[12..16], "it goes to the source");
        assert!(packet.len() <= 28 + usize::from(quoted[0] & 0xf) * 4 + 8);
    }
    is
}

pub fn run(data: &[u8]) {
    let mut bytes = Bytes::new(data);
    let bytes = &mut bytes;
    let mut config = Config::new(direction(bytes, "there"), direction(bytes, "back"));
    config.seed = bytes.short();
    // Selected by the seed, so that inputs of the corpora keep their meaning.
    let writes = [0, 1].map(|i| beside(&mut config.directions[i], config.seed >> (8 * i)));
    config.warmup = Duration(bytes.wide());
    let mut engine = Engine::new(&config);
    let mut now = Time::ZERO;
    let mut inside: BTreeMap<u32, (Side, Vec<u8>)> = BTreeMap::new();
    let mut last_due = [Time::ZERO; 2];
    let (mut came, mut malformed, mut left) = ([0_u64; 2], [0_u64; 2], [0_u64; 2]);
    let mut told = [0_u64; 2];
    let mut number = 0;
    while !bytes.is_empty() {
        let side = bytes.pick(&Side::BOTH);
        match bytes.below(8) {
            0 => now += Duration(bytes.wide()),
            1..=3 => {
                let packet = packet(bytes, number);
                assert!(parse(&packet).is_some(), "{packet:?} is a packet");
                engine.arrive(now, side, &packet);
                inside.insert(number, (side, packet));
                came[side as usize] += 1;
                number += 1;
            }
            4 => {
                // A packet with some bytes changed, or cut short, or empty.
                let mut packet = packet(bytes, u32::MAX);
                for _ in 0..bytes.below(4) {
                    let at = bytes.short() as usize % packet.len();
                    packet[at] ^= bytes.byte();
                }
                packet.truncate(bytes.pick(&[0, 1, 20, 40, 41, usize::MAX]));
                match parse(&packet) {
                    None => malformed[side as usize] += 1,
                    // It may still be well-formed. Its number is one that is not tracked.
                    Some(read) if packet[..read.length].ends_with(&u32::MAX.to_be_bytes()) => {
                        came[side as usize] += 1;
                    }
                    Some(_) => continue,
                }
                engine.arrive(now, side, &packet);
            }
            _ => {
                for side in Side::BOTH {
                    while let Some((due, packet)) = engine.depart(now, side) {
                        assert!(due <= now && due >= last_due[side as usize], "{due} at {now}");
                        last_due[side as usize] = due;
                        if is_message(packet) {
                            told[side as usize] += 1;
                            continue;
                        }
                        left[side.other() as usize] += 1;
                        let (_, end) = packet.split_at(packet.len() - NUMBER);
                        let number = u32::from_be_bytes(end.try_into().expect("four bytes"));
                        if number == u32::MAX {
                            continue;
                        }
                        let (from, before) =
                            inside.remove(&number).expect("it came, and left once");
                        assert_eq!(from, side.other());
                        same_but_for_a_mark(&before, packet, writes[from as usize]);
                    }
                }
                assert!(engine.next() > now, "nothing that was due is left");
            }
        }
    }
    let report = engine.finish(now, Work::default()).expect("nothing is written");
    for (i, direction) in report.directions.iter().enumerate() {
        let total = &direction.total;
        let dropped: u64 = total.link.drops.total();
        let reached = came[i] - direction.from_far_receivers;
        assert_eq!((total.link.arrived, total.malformed), (reached, malformed[i]));
        assert_eq!(total.link.arrived, total.delivered + dropped + direction.held);
        assert_eq!(total.delivered, left[i]);
        assert!(told[i] <= direction.quenches, "some may not have left");
        assert!(direction.queued <= direction.held);
    }
    assert!(report.links().len() == 2);
}

#[cfg(not(test))]
libfuzzer_sys::fuzz_target!(|data: &[u8]| run(data));
