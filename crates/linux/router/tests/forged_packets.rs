//! Forged packets of an attacker have no effect on packets of others: identifications and options
//! with any meter, code points with meters that write the ECN field behind a FIFO queue.

use cwnd_aqm::{MessengerParams, MeterParams, QueueParams};
use cwnd_packet::{Ecn, Endpoints, Experiment, Options, Tcp};
use cwnd_quantity::{Duration, Rate, Rng, Time};
use cwnd_router::{Config, Direction, Engine, Side};
use cwnd_schema::{ParamsChoice, Value};

const HOST: Endpoints = Endpoints {
    source: [10, 81, 0, 1],
    source_port: 49_152,
    destination: [198, 51, 100, 7],
    destination_port: 443,
};
const STRANGER: Endpoints = Endpoints { source: [203, 0, 113, 9], ..HOST };

/// Fields that an attacker forges.
#[derive(Clone, Copy)]
enum Forges {
    /// Nothing.
    Nothing,
    /// Identifications: the same in all packets, or random ones.
    Identifications(Option<u16>),
    /// Code points of a load that no router measured.
    CodePoints,
    /// Options with headers of explicit feedback, as in simulated packets.
    Options,
}

fn packet(of: Endpoints, number: u16, ecn: Ecn, experiment: Option<Experiment>) -> Vec<u8> {
    // All packets have the same length.
    let tcp = Tcp {
        sequence: u32::from(number) * 1000,
        flags: 0x10,
        window: 1000,
        options: Options { experiment, ..Options::default() },
        ecn,
        identification: number,
        payload: 960,
        wanted_length: 1020,
        ..Tcp::default()
    };
    let headers = tcp.headers(of);
    let mut bytes = headers.bytes;
    bytes.resize(headers.total.into(), 0);
    assert_eq!(bytes.len(), 1020);
    bytes
}

fn router(queue: &str, meter: &str, identification: Option<&str>) -> Engine {
    let mut meter = MeterParams::of_kind(meter).expect("it is registered");
    if let Some(which) = identification {
        let which = Value::Text(which.to_owned());
        meter.params_mut().set("identification", &which).expect("it is one of them");
    }
    let queue = QueueParams::of_kind(queue).expect("it is registered");
    let there = Direction {
        meter,
        messenger: MessengerParams::of_kind("quench").expect("it is registered"),
        ..Direction::limited("there", Rate::from_mbit(10), queue, Duration::from_millis(3))
    };
    Engine::new(&Config::new(there, Direction::unlimited("back")))
}

/// Returns the packets that arrive from a host, and the messages to it, next to an attacker's, with
/// their times.
fn beside(mut router: Engine, forges: Forges) -> Vec<(Time, Vec<u8>)> {
    let (mut rng, mut lots) = (Rng::named(1, "arrivals"), Rng::named(2, "forged"));
    let (mut now, mut seen) = (Time::ZERO, Vec::new());
    let mut drain = |router: &mut Engine, now| {
        for side in [Side::A, Side::B] {
            while let Some((at, bytes)) = router.depart(now, side) {
                // A packet from the host, or a message to it.
                if bytes[12..16] == HOST.source || bytes[16..20] == HOST.source {
                    seen.push((at, bytes.to_vec()));
                }
            }
        }
    };
    for number in 0..6000_u16 {
        // Load slightly above the capacity of the link.
        now += Duration::from_micros(500 + rng.below(540));
        drain(&mut router, now);
        let bytes = if rng.chance(0.5) {
            packet(HOST, number, Ecn::Ect0, None)
        } else {
            let (draw, plain) = (lots.bits(), packet(STRANGER, number, Ecn::Ect0, None));
            match forges {
                Forges::Nothing => plain,
                Forges::Identifications(id) => {
                    packet(STRANGER, id.unwrap_or(draw as u16), Ecn::Ect0, None)
                }
                Forges::CodePoints => {
                    let ecn = [Ecn::NotEct, Ecn::Ect0, Ecn::Ect1, Ecn::Ce][draw as usize % 4];
                    packet(STRANGER, number, ecn, None)
                }
                Forges::Options => {
                    let name = *[b"XC", b"RC", b"ML"][draw as usize % 3];
                    let behind = [&name[..], &draw.to_be_bytes()].concat();
                    packet(STRANGER, number, Ecn::Ect0, Some(Experiment::new(254, &behind)))
                }
            }
        };
        router.arrive(now, Side::A, &bytes);
    }
    drain(&mut router, now + Duration::from_secs(1));
    assert!(seen.len() > 2000, "{}", seen.len());
    seen
}

/// Fields that an attacker may forge without an effect on others.
const WITHOUT_EFFECT: [Forges; 3] =
    [Forges::Identifications(None), Forges::Identifications(Some(0)), Forges::Options];

#[test]
fn identifications_and_options_of_a_stranger_change_nothing_of_a_hosts_packets() {
    for (queue, meter, identification) in [
        ("fifo", "adpm", Some("packet")),
        ("codel", "adpm", Some("drawn")),
        ("fifo", "vcp", None),
        ("codel", "vcp", None),
        ("fifo", "xcp", None),
        ("fifo", "rcp", None),
        ("fifo", "mlcp", None),
    ] {
        let fresh = || router(queue, meter, identification);
        let honest = beside(fresh(), Forges::Nothing);
        for forges in WITHOUT_EFFECT {
            assert!(beside(fresh(), forges) == honest, "{queue}, {meter}, {identification:?}");
        }
        // Meters that write IP headers did so in each case.
        if ["adpm", "vcp"].contains(&meter) {
            let told = honest.iter().filter(|(_, b)| b[1] & 0b11 != 0b10 && b[9] == 6);
            assert!(told.count() > 100, "{queue}, {meter}");
        }
    }
}

#[test]
fn code_points_of_a_stranger_change_nothing_where_packets_are_not_dropped_for_them() {
    for (meter, identification) in [("adpm", Some("packet")), ("vcp", None)] {
        let fresh = || router("fifo", meter, identification);
        let honest = beside(fresh(), Forges::Nothing);
        assert!(beside(fresh(), Forges::CodePoints) == honest, "{meter}");
    }
}

#[test]
fn what_another_queue_marked_stays_marked_and_what_is_not_capable_stays_so() {
    for (meter, identification) in
        [("adpm", Some("packet")), ("adpm", Some("drawn")), ("vcp", None)]
    {
        let mut router = router("fifo", meter, identification);
        let mut now = Time::ZERO;
        let (mut low, mut loaded) = (0, 0);
        for number in 0..8000_u16 {
            // The link is almost idle first, then slightly overloaded.
            now += Duration::from_micros(if number < 1000 { 5000 } else { 780 });
            while let Some((_, bytes)) = router.depart(now, Side::B) {
                let sent = u32::from_be_bytes([bytes[24], bytes[25], bytes[26], bytes[27]]) / 1000;
                let ecn = bytes[1] & 0b11;
                match sent % 3 {
                    0 => assert_eq!(ecn, 0b11, "CE stays, {meter}"),
                    1 => assert_eq!(ecn, 0b00, "not capable, {meter}"),
                    _ if ecn == 0b10 => low += 1,
                    _ => loaded += 1,
                }
            }
            let ecn = [Ecn::Ce, Ecn::NotEct, Ecn::Ect0][usize::from(number % 3)];
            router.arrive(now, Side::A, &packet(HOST, number, ecn, None));
        }
        assert!(low > 300 && loaded > 300, "{meter}: {low}, {loaded}");
    }
}
