//! The engine in virtual time: forged packets of an attacker, and receivers at a distance.

/// Forged packets of an attacker have no effect on packets of others: identifications and options
/// with any meter, code points with meters that write the ECN field behind a FIFO queue.
mod forged_packets {
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

    /// Returns the packets that arrive from a host, and the messages to it, next to an attacker's,
    /// with their times.
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
            // Meters that write IP headers did so.
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
                    let sent =
                        u32::from_be_bytes([bytes[24], bytes[25], bytes[26], bytes[27]]) / 1000;
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
}

/// Receivers at a distance from the router: data is delayed behind the line, and ACKs before it.
mod receivers {
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
        assert_eq!(
            left,
            [(40_000 + on_line, FROM_A.octets()), (1_000 + on_line + 80_000, B.octets())]
        );
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
}

/// Time series of runs of any length.
mod time_series {
    use cwnd_aqm::QueueParams;
    use cwnd_quantity::{Duration, Rate, Time};
    use cwnd_router::{Config, Direction, Engine, Report, Side, Work};
    use cwnd_scenario::LinkRate;
    use cwnd_tables::ColumnData;

    fn report(rate: LinkRate, length: Duration) -> Report {
        let queue = QueueParams::default();
        let there = Direction::limited("there", Rate::from_mbit(10), queue, Duration::ZERO);
        let mut config = Config::new(Direction { rate, ..there }, Direction::unlimited("back"));
        config.sample = Some(Duration::from_millis(20));
        config.max_samples = 50_000;
        let mut engine = Engine::new(&config);
        let end = Time(length.0);
        assert!(engine.depart(end, Side::B).is_none());
        engine.finish(end, Work::default()).expect("there is no capture")
    }

    /// Times in s and capacities in bytes of the first direction.
    fn rows(report: &Report) -> (Vec<f64>, Vec<u64>) {
        let column = |name| report.samples.column(name).expect("it is recorded");
        let (ColumnData::F64(times), ColumnData::OptionalU64(bytes), ColumnData::U32(links)) =
            (column("time_s"), column("capacity_bytes"), column("link_id"))
        else {
            panic!("types of columns")
        };
        let rows = times.iter().zip(bytes.iter()).zip(links).filter(|&(_, link)| *link == 0);
        rows.map(|((&time, capacity), _)| (time, capacity.expect("it has a rate"))).unzip()
    }

    #[test]
    fn a_run_of_a_day_has_as_many_rows_as_one_of_half_an_hour() {
        for (hours, interval) in [(0.25, 0.02), (0.5, 0.04), (24.0, 2.56)] {
            let length = Duration::from_secs_f64(hours * 3600.0);
            let (times, _) = rows(&report(LinkRate::constant(Rate::from_mbit(10)), length));
            assert!((25_000..50_000).contains(&times.len()) || hours < 0.5, "{}", times.len());
            for (n, time) in times.iter().enumerate() {
                assert!((time - n as f64 * interval).abs() < 1e-6, "{hours} h: {n} at {time} s");
            }
        }
    }

    #[test]
    fn the_capacity_is_that_of_the_rate_or_of_the_trace() {
        let second = Duration::from_secs(1);
        let (times, bytes) = rows(&report(LinkRate::constant(Rate::from_mbit(8)), second));
        for (time, bytes) in times.iter().zip(bytes) {
            assert!((bytes as f64 - 1e6 * time).abs() < 1.0, "{bytes} B at {time} s");
        }
        let trace = LinkRate::Trace(vec![10, 10, 30]);
        let (times, bytes) = rows(&report(trace, second));
        // Slots in [0, 20 ms), [0, 40 ms), …: those at 10 and 10, then 30, 40 and 40, 60, …
        assert_eq!(
            (&times[..3], &bytes[..4]),
            (&[0.0, 0.02, 0.04][..], &[0, 3000, 4500, 7500][..])
        );
    }
}
