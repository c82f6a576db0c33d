//! Fuzz target of the queues: any discipline, parameters and operations. No packet vanishes, is
//! duplicated, is marked without ECT or passes another of its flow.

#![cfg_attr(not(test), no_main)]

#[cfg(test)]
use super::bytes;
#[cfg(not(test))]
#[path = "../bytes.rs"]
mod bytes;

use std::collections::BTreeMap;

use cwnd_aqm::{AnyQdisc, Backlog, Context, Packet, Qdisc, QueueParams, Reason};
use cwnd_packet::Ecn;
use cwnd_quantity::{Duration, LinkProperties, Rate, Rng, Time};
use cwnd_schema::{ParamsChoice, Value};

use bytes::Bytes;

#[derive(Clone, Copy, Debug)]
struct Pkt {
    id: u64,
    flow: u64,
    size: u32,
    ecn: Ecn,
}

impl Packet for Pkt {
    fn wire_bytes(&self) -> u32 {
        self.size
    }
    fn flow_hash(&self) -> u64 {
        self.flow.wrapping_mul(0x9e37_79b9_7f4a_7c15)
    }
}

/// Packets inside the queue, tracked independently of the queue's own counters.
#[derive(Default)]
struct Books {
    inside: BTreeMap<u64, (Pkt, Time)>,
    marked: BTreeMap<u64, Reason>,
    last_of_flow: BTreeMap<u64, u64>,
}

impl Context<Pkt> for Books {
    fn ecn(&self, packet: &Pkt) -> Ecn {
        packet.ecn
    }

    fn set_ecn(&mut self, packet: &mut Pkt, ecn: Ecn) {
        packet.ecn = ecn;
    }

    fn dropped(&mut self, _now: Time, packet: &Pkt, _reason: Reason) {
        assert!(self.inside.remove(&packet.id).is_some(), "{packet:?} was dropped from nowhere");
    }

    fn marked(&mut self, _now: Time, packet: &Pkt, reason: Reason, already: bool) {
        let (before, _) = self.inside[&packet.id];
        assert!(before.ecn.is_ect(), "{packet:?} does not speak ECN");
        assert_eq!((packet.ecn, already), (Ecn::Ce, before.ecn == Ecn::Ce));
        assert!(self.marked.insert(packet.id, reason).is_none(), "{packet:?} was marked twice");
    }
}

impl Books {
    fn left(&mut self, packet: &Pkt, since: Time) {
        let entry = self.inside.remove(&packet.id);
        let (before, entered) = entry.unwrap_or_else(|| panic!("{packet:?} came from nowhere"));
        assert_eq!(since, entered);
        let expected = if self.marked.contains_key(&packet.id) { Ecn::Ce } else { before.ecn };
        assert_eq!((packet.ecn, packet.size), (expected, before.size));
        let last = self.last_of_flow.insert(packet.flow, packet.id);
        assert!(last.is_none_or(|last| last < packet.id), "{packet:?} passed another of its flow");
    }

    fn backlog(&self) -> Backlog {
        let bytes = self.inside.values().map(|(p, _)| u64::from(p.size)).sum();
        Backlog { packets: self.inside.len() as u64, bytes }
    }
}

/// Values that some parameter accepts.
const VALUES: &str =
    "0 s|1 ns|5 ms|20 ms|100 ms|1 h|1 packets|2 packets|60 packets|0.5 BDP|1 BDP|3000 B|64 kB|none";
const NUMBERS: [f64; 8] = [0.0, 1e-9, 0.002, 0.1, 0.5, 1.0, 7.0, 1e6];

fn params(bytes: &mut Bytes<'_>) -> Option<QueueParams> {
    let kinds = QueueParams::KINDS;
    let mut params = QueueParams::of_kind(kinds[bytes.below(kinds.len())].name)?;
    let presets = params.params().presets();
    if let Some(preset) = presets.get(bytes.below(presets.len() + 1)) {
        params.params_mut().apply_preset(preset.name);
    }
    let fields = params.params().fields();
    for _ in 0..bytes.below(6) {
        let field = &fields[bytes.below(fields.len())];
        let value = match bytes.below(4) {
            0 => Value::Integer(bytes.wide().cast_signed()),
            1 => Value::Float(bytes.pick(&NUMBERS)),
            2 => Value::Bool(bytes.flag()),
            _ => Value::Text(bytes.pick(&VALUES.split('|').collect::<Vec<_>>()).to_owned()),
        };
        // The parameter refuses a value of another kind, and keeps its own.
        params.params_mut().set(field.name, &value).ok();
    }
    params.params().check().ok()?;
    // A late call performs all updates that are due: hours of simulated time in microsecond steps
    // take hours.
    let too_often = matches!(&params, QueueParams::Pie(p) if p.t_update < Duration::from_millis(1));
    (!too_often).then_some(params)
}

pub fn run(data: &[u8]) {
    let mut bytes = Bytes::new(data);
    let Some(params) = params(&mut bytes) else { return };
    let rate = Rate((bytes.wide() * 100).max(1));
    let link = LinkProperties { rate, bdp_rtt: Duration(bytes.wide()) };
    let mut queue: AnyQdisc<Pkt> = params.build(&link, Rng::named(bytes.short(), "queue"));
    let (mut books, mut now, mut next_id) = (Books::default(), Time::ZERO, 0);
    while !bytes.is_empty() {
        match bytes.below(8) {
            0 => now += Duration(bytes.wide() >> 8),
            1 | 2 => {
                let size = (bytes.short() as u32).max(1);
                let ecn = bytes.pick(&[Ecn::NotEct, Ecn::Ect0, Ecn::Ect1, Ecn::Ce]);
                let count = 1 + bytes.below(40) as u64 * u64::from(bytes.flag());
                let flow = u64::from(bytes.byte());
                for id in next_id..next_id + count {
                    let packet = Pkt { id, flow, size, ecn };
                    books.inside.insert(id, (packet, now));
                    queue.enqueue(now, packet, &mut books);
                }
                next_id += count;
            }
            3..=5 => {
                for _ in 0..=bytes.below(20) {
                    match queue.dequeue(now, &mut books) {
                        Some((packet, since)) => books.left(&packet, since),
                        None => break,
                    }
                }
            }
            6 => {
                if let Some(due) = queue.next_timer() {
                    now = now.max(due);
                    queue.on_timer(now);
                    assert!(queue.next_timer().is_some_and(|next| next > now), "the clock stops");
                }
            }
            _ => {
                // The link serves the queue for a while, a packet per millisecond.
                for _ in 0..bytes.byte() {
                    now += Duration::from_millis(1);
                    if queue.next_timer().is_some_and(|due| due <= now) {
                        queue.on_timer(now);
                    }
                    if let Some((packet, since)) = queue.dequeue(now, &mut books) {
                        books.left(&packet, since);
                    }
                }
            }
        }
        assert_eq!(queue.backlog(), books.backlog());
        assert!(queue.probability().is_none_or(|p| (0.0..=1.0).contains(&p)));
    }
    while let Some((packet, since)) = queue.dequeue(now, &mut books) {
        books.left(&packet, since);
    }
    assert!(books.inside.is_empty(), "{} packets never came out", books.inside.len());
}

#[cfg(not(test))]
libfuzzer_sys::fuzz_target!(|data: &[u8]| run(data));
