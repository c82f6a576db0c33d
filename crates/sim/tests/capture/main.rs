//! Captures, read back by independent libraries and compared with the counters of the simulation;
//! routers' messages and connections that their clients open in them.

mod files;
mod kept;

use std::collections::{BTreeMap, VecDeque};
use std::io::{self, Write};
use std::sync::Arc;

use cwnd_aqm::{Backlog, Context, Messenger, Verdict};
use cwnd_packet::{Ability, Contract, Ecn, HasContract, ReceivedQuench};
use cwnd_quantity::Time;
use cwnd_sim::{Datagram, Endpoint, World};
use cwnd_tables::{ColumnData, Records};
use etherparse::{NetSlice, SlicedPacket, TransportSlice};

use crate::files::{BOTTLENECK, Caught, LOSSES, capture, number, read, scenario};
use crate::kept::Kept;

#[test]
fn a_link_has_as_many_packets_drops_and_reasons_as_it_counted() {
    let (records, [file]) = capture(LOSSES, [&["bottleneck"]]);
    let caught = read(&file);
    let links = &records.links;
    let with = |comment: &str| caught.iter().filter(|p| p.comment == comment).count() as u64;
    let drops = with("dropped: overlimit");
    let lost = with("dropped: link_loss");
    assert!(drops > 10 && lost > 3, "{drops} drops, {lost} lost");
    assert_eq!([drops; 2], records.packets(BOTTLENECK, "dropped", "overlimit"));
    assert_eq!([lost; 2], records.packets(BOTTLENECK, "dropped", "link_loss"));
    assert_eq!(with(""), number(links, BOTTLENECK, "delivered_total_pkts"));
    assert_eq!(with("") + drops + lost, caught.len() as u64);
    assert!(caught.iter().is_sorted_by_key(|p| p.at_ns));
}

#[test]
fn a_mark_is_a_comment_where_it_was_set_and_ce_from_there_on() {
    for (queue, reason) in [("codel", "codel"), ("pie", "pie"), ("red", "red_early")] {
        let text = LOSSES
            .replace(r#"{ kind = "fifo", limit = "20 packets" }"#, &format!("\"{queue}\""))
            .replace("loss = 0.001", "")
            .replace("count = 2", "count = 2\nendpoint = { ecn = true }");
        let (records, [before, file]) = capture(&text, [&["access"], &["bottleneck"]]);
        let caught = read(&file);
        let comment = format!("marked: {reason}");
        let marked = caught.iter().filter(|p| p.comment == comment).count() as u64;
        let [counted, _] = records.packets(BOTTLENECK, "marked", reason);
        // A packet that was marked on arrival may still wait when the run ends.
        assert!(marked > 10 && (marked..marked + 3).contains(&counted), "{marked} {counted}");
        let ce = |p: &Caught| match SlicedPacket::from_ip(&p.bytes).unwrap().net {
            Some(NetSlice::Ipv4(ip)) => ip.header().ecn().value() == 3,
            _ => panic!("no IPv4"),
        };
        assert!(caught.iter().all(|p| ce(p) == p.comment.starts_with("marked")));
        assert!(!read(&before).iter().any(ce));
    }
}

#[test]
fn what_two_links_saw_of_a_packet_is_the_same() {
    let (_, [near, far]) = capture(LOSSES, [&["access.reverse"], &["bottleneck.reverse"]]);
    let (near, mut far) = (read(&near), read(&far));
    far.retain(|packet| !packet.was_dropped());
    assert!(near.len() > 1000);
    // The last few packets have not passed the second link yet.
    assert!(far.len() - near.len() < 100);
    for (a, b) in near.iter().zip(&far) {
        assert_eq!(a.bytes, b.bytes);
        // The receiver sent it, so its header holds the receiver's clock at that time, in ms.
        let sent = u128::from(b.timestamps().0);
        let now = b.at_ns / 1_000_000;
        assert!((sent..=sent + 1).contains(&now), "{sent} {now}");
    }
}

#[test]
fn data_echoes_the_clock_of_the_newest_ack() {
    let (_, [file]) = capture(LOSSES, [&["access", "access.reverse"]]);
    let mut newest = BTreeMap::new();
    let mut echoes = 0;
    for packet in read(&file) {
        let (value, echo) = packet.timestamps();
        let tcp = packet.tcp();
        if packet.interface == 1 {
            newest.insert(tcp.destination_port(), value);
        } else if !tcp.syn() {
            let newest = newest[&tcp.source_port()];
            // Data that an ACK released may be captured at the same instant as earlier data.
            assert!(echo == newest || echo + 1 == newest, "{echo} {newest}");
            echoes += 1;
        }
    }
    assert!(echoes > 1000);
}

#[test]
fn every_packet_keeps_its_length_and_its_sums() {
    let (_, [file]) = capture(LOSSES, [&["bottleneck", "bottleneck.reverse"]]);
    for packet in read(&file) {
        let sliced = SlicedPacket::from_ip(&packet.bytes).unwrap();
        let Some(NetSlice::Ipv4(ip)) = sliced.net else { panic!("no IPv4") };
        let header = ip.header().to_header();
        assert_eq!(usize::from(header.total_len), packet.bytes.len());
        assert_eq!(header.header_checksum, header.calc_header_checksum());
        let tcp = packet.tcp();
        let sum = tcp.to_header().calc_checksum_ipv4(&header, tcp.payload()).unwrap();
        assert_eq!(tcp.checksum(), sum);
        if !tcp.payload().is_empty() {
            assert_eq!(packet.bytes.len(), tcp.payload().len() + 52);
        }
    }
}

#[test]
fn a_capture_changes_nothing_and_is_the_same_each_time() {
    let (plain, []) = capture(LOSSES, []);
    let (records, files) = capture(LOSSES, [&["access", "access.reverse"], &["bottleneck"]]);
    let (_, again) = capture(LOSSES, [&["access", "access.reverse"], &["bottleneck"]]);
    assert_eq!(plain.digest(), records.digest());
    assert_eq!(plain.events, records.events);
    assert!(files == again && files.iter().all(|f| f.len() > 100_000));
}

#[test]
fn connections_that_come_and_go_and_datagrams_are_told_apart() {
    let text = format!(
        "{LOSSES}workload = {{ kind = \"poisson\", interval = \"50 ms\", size = \"30 kB\" }}\n\
         [flow.noise]\nfrom = \"sender\"\nto = \"receiver\"\n\
         workload = {{ kind = \"udp\", rate = \"1 Mbit/s\", size = \"1000 B\" }}\n"
    );
    let (records, [file]) = capture(&text, [&["access"]]);
    let mut syns = Vec::new();
    let mut datagrams = 0;
    for packet in read(&file) {
        match SlicedPacket::from_ip(&packet.bytes).unwrap().transport {
            Some(TransportSlice::Udp(udp)) => {
                assert_eq!(usize::from(udp.length()) + 20, packet.bytes.len());
                datagrams += 1;
            }
            Some(TransportSlice::Tcp(tcp)) if tcp.syn() => syns.push(tcp.source_port()),
            _ => {}
        }
        assert!(!packet.was_dropped());
    }
    syns.sort_unstable();
    syns.dedup();
    let flows = records.flows.len() - 1;
    assert!(flows > 100 && datagrams > 100);
    // The last flow's SYN may not have left the line before the run ended.
    assert!((flows - 1..=flows).contains(&syns.len()), "{flows} {}", syns.len());
}

/// Sends these datagrams at the start; answers each that it receives with its first byte.
struct Talker(VecDeque<Datagram>);

impl Endpoint for Talker {
    fn poll_transmit(&mut self, _: Time) -> Option<Datagram> {
        self.0.pop_front()
    }
    fn on_datagram(&mut self, _: Time, Datagram { payload, .. }: Datagram) {
        if payload.len() > 1 {
            self.0.push_back(Datagram { payload: vec![payload[0]], ecn: Ecn::NotEct });
        }
    }
    fn next_timeout(&mut self) -> Option<Time> {
        None
    }
    fn on_timeout(&mut self, _: Time) {}
}

#[test]
fn datagrams_of_endpoints_from_outside_have_their_payload_in_both_directions() {
    let mut world = World::new(scenario(&LOSSES.replace("loss = 0.001\n", "")));
    let datagram = |i: u8| Datagram { payload: vec![i; 20 * usize::from(i) + 2], ecn: Ecn::Ect0 };
    assert!(world.replace_endpoints("main", move |_| {
        [Box::new(Talker((0..60).map(datagram).collect())), Box::new(Talker(VecDeque::new()))]
    }));
    let kept = Kept::default();
    world.capture(&[BOTTLENECK, BOTTLENECK + 1], Box::new(kept.clone())).expect("memory takes it");
    world.run(|_| true).expect("nothing stops it");
    let (mut counts, mut ends) = ([0; 3], BTreeMap::new());
    for packet in read(&kept.bytes()) {
        let sliced = SlicedPacket::from_ip(&packet.bytes).unwrap();
        let (Some(NetSlice::Ipv4(ip)), Some(TransportSlice::Udp(udp))) =
            (sliced.net, sliced.transport)
        else {
            panic!("no UDP over IPv4");
        };
        let (header, payload) = (ip.header().to_header(), udp.payload());
        assert_eq!(usize::from(header.total_len), payload.len() + 28);
        let sum = udp.to_header().calc_checksum_ipv4(&header, payload).unwrap();
        assert_eq!(udp.checksum(), sum);
        let back = packet.interface == 1;
        let (len, ecn) = if back { (1, 0) } else { (20 * usize::from(payload[0]) + 2, 2) };
        assert_eq!((payload, header.ecn.value()), (&vec![payload[0]; len][..], ecn));
        counts[if back { 2 } else { usize::from(packet.was_dropped()) }] += 1;
        let ports = (udp.source_port(), udp.destination_port());
        let of_client = if back { (ports.1, ports.0) } else { ports };
        *ends.entry(of_client).or_insert(0) += 1;
    }
    // All answers, and what 20 packets of queue could not take of 2 bursts of 60.
    let [passed, dropped, answers] = counts;
    assert!(dropped > 20 && passed == answers && passed + dropped == 120, "{counts:?}");
    assert_eq!(ends.len(), 2);
}

#[test]
fn a_log_of_packets_has_those_of_the_capture_beside_it_and_changes_nothing() {
    let (plain, [file]) = capture(LOSSES, [&["bottleneck"]]);
    let mut world = World::new(scenario(LOSSES));
    let kept = Kept::default();
    world.capture(&[BOTTLENECK], Box::new(kept.clone())).expect("memory takes it");
    assert!(world.log_packets(BOTTLENECK, [Time::ZERO, Time::NEVER], usize::MAX));
    let records = world.run(|_| true).expect("nothing stops it");
    assert_eq!(plain.digest(), records.digest());
    assert_eq!(kept.bytes(), file);
    let packets = world.take_packets().expect("they were logged");
    let times = |name: &str| {
        let column =
            packets.columns.iter().find(|column| column.name == name).expect("it is there");
        let ColumnData::OptionalU64(times) = &column.data else { panic!("no times") };
        let mut times: Vec<u128> = times.iter().flatten().map(u128::from).collect();
        times.sort_unstable();
        times
    };
    let caught = read(&file);
    let left = caught.iter().filter(|p| p.comment != "dropped: overlimit").map(|p| p.at_ns);
    assert_eq!(times("left_ns"), left.collect::<Vec<_>>());
    let arrived = number(&records.links, BOTTLENECK, "arrived_total_pkts");
    assert_eq!(times("arrived_ns").len() as u64, arrived);
}

#[test]
fn a_run_that_is_too_long_and_a_link_that_is_not_there_are_refused() {
    let mut world = World::new(scenario(&LOSSES.replace("10 s", "300000 s")));
    let kind = |result: io::Result<()>| result.unwrap_err().kind();
    assert_eq!(kind(world.capture(&[0], Box::new(io::sink()))), io::ErrorKind::InvalidInput);
    let mut world = World::new(scenario(LOSSES));
    assert_eq!(kind(world.capture(&[4], Box::new(io::sink()))), io::ErrorKind::InvalidInput);
}

#[test]
fn an_output_that_fails_ends_its_capture_but_not_the_run() {
    /// A disk with room for this many bytes.
    struct Full(usize);
    impl Write for Full {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0 = self.0.checked_sub(bytes.len()).ok_or(io::ErrorKind::StorageFull)?;
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }
    let mut world = World::new(scenario(LOSSES));
    world.capture(&[0], Box::new(Full(10_000))).unwrap();
    let (plain, []) = capture(LOSSES, []);
    assert_eq!(world.run(|_| true).unwrap().digest(), plain.digest());
}

/// A messenger that reports each verdict.
#[derive(Debug)]
struct ReportAll;

impl HasContract for ReportAll {
    fn contract(&self) -> Contract {
        Contract::new().provides(Ability::Quenches)
    }
}

impl<P: cwnd_aqm::Packet> Messenger<P> for ReportAll {
    fn on_verdict(&mut self, _: &Verdict<P>, _: Backlog, _: &dyn Context<P>) -> Option<u8> {
        Some(3)
    }
}

/// Captures of the link next to the senders (reverse) and of the congested link, with a flow of
/// segments and one of datagrams. `ecn` sets whether segments are ECN-capable and the queue marks.
fn told(ecn: bool) -> [Vec<u8>; 2] {
    let text = format!(
        r#"
        [run]
        duration = "5 s"
        [link.near]
        from = "sender"
        to = "middle"
        rate = "20 Mbit/s"
        delay = "2 ms"
        duplex = true
        [link.far]
        from = "router"
        to = "receiver"
        rate = "2 Mbit/s"
        queue = {{ kind = "red", w_q = 1.0, ecn = {ecn} }}
        duplex = true
        [link.between]
        from = "middle"
        to = "router"
        rate = "none"
        delay = "3 ms"
        duplex = true
        [flow.segments]
        from = "sender"
        to = "receiver"
        endpoint = {{ ecn = {ecn} }}
        [flow.datagrams]
        from = "sender"
        to = "receiver"
        workload = {{ kind = "udp", rate = "1 Mbit/s", size = "500 B", header = "28 B" }}
        "#
    );
    let scenario = scenario(&text);
    let mut world = World::new(Arc::clone(&scenario));
    let kept = ["near.reverse", "far"].map(|name| {
        let link = scenario.links.iter().position(|l| l.name == name).expect("it is there");
        let kept = Kept::default();
        world.capture(&[link], Box::new(kept.clone())).expect("memory takes it");
        kept
    });
    assert!(world.add_messenger("far", ReportAll));
    world.run(|_| true).expect("nothing stops it");
    kept.map(|kept| kept.bytes())
}

fn sum_of_words(bytes: &[u8]) -> u32 {
    let sum: u32 = bytes.chunks(2).map(|word| u32::from(word[0]) << 8 | u32::from(word[1])).sum();
    (sum & 0xffff) + (sum >> 16)
}

#[test]
fn a_routers_message_is_a_source_quench_that_quotes_the_packet_as_it_is() {
    for ecn in [false, true] {
        let [near, far] = told(ecn).map(|file| read(&file));
        let what = if ecn { "marked: red" } else { "dropped: red" };
        let mut met: Vec<&Caught> = far.iter().filter(|p| p.comment.contains("red")).collect();
        // The messages of the last half second may be missing.
        let (is_icmp, in_time) =
            (|p: &Caught| p.bytes[9] == 1, |p: &Caught| p.at_ns < 4_500_000_000);
        let said: Vec<&Caught> = near.iter().filter(|p| is_icmp(p) && in_time(p)).collect();
        assert!(said.len() > 30, "{} of {}", said.len(), met.len());
        let datagrams = said.iter().filter(|p| p.bytes[28 + 9] == 17).count();
        assert!(datagrams > 3 && datagrams < said.len(), "{datagrams} of {}", said.len());
        for message in said {
            let bytes = &message.bytes;
            // RFC 791: version and length, no ECN. RFC 792: a header of eight bytes, then 20 + 8
            // bytes of the packet.
            assert_eq!((bytes.len(), bytes[0], bytes[1]), (56, 0x45, 0));
            // `router` is the third node, `sender` the first.
            assert_eq!((&bytes[12..16], &bytes[16..20]), (&[10, 0, 0, 3][..], &[10, 0, 0, 1][..]));
            // BECN's octet: the mark bit and level 3.
            let octet = if bytes[28 + 1] & 0b11 == 3 { 0x83 } else { 3 };
            assert_eq!((&bytes[20..22], &bytes[24..28]), (&[4, 0][..], &[octet, 0, 0, 0][..]));
            let heard = ReceivedQuench::read(bytes).expect("it is one");
            assert_eq!((heard.router, heard.level, heard.marked), ([10, 0, 0, 3], 3, octet > 3));
            let number = u32::from_be_bytes([bytes[52], bytes[53], bytes[54], bytes[55]]);
            assert_eq!(heard.sequence, (heard.protocol == 6).then_some(number));
            assert_eq!(sum_of_words(&bytes[20..]), 0xffff, "RFC 1071");
            // The quoted bytes identify the packet captured at the queue, except for datagrams
            // among themselves.
            let at = met.iter().position(|p| p.bytes[..28] == bytes[28..]);
            let packet = met.remove(at.expect("it is about a packet that met congestion"));
            assert!(packet.comment.starts_with(what) || !ecn || packet.bytes[9] == 17);
            assert_eq!(
                packet.bytes[1] & 0b11,
                if packet.comment.contains("marked") { 3 } else { 0 }
            );
            // A dropped packet is captured at the drop: 3 ms of delay from there, and 56 B at 20
            // Mbit/s.
            if packet.comment.starts_with("dropped") && packet.bytes[9] == 6 {
                assert!(message.at_ns >= packet.at_ns + 3_000_000 + 22_400);
            }
        }
    }
}

#[test]
fn tshark_reads_a_source_quench() {
    let [near, _] = told(true);
    let said = read(&near).iter().filter(|p| p.bytes[9] == 1).count();
    let path = std::env::temp_dir().join(format!("cwnd-quench-{}.pcapng", std::process::id()));
    std::fs::write(&path, near).expect("it can be written");
    let fields = ["icmp.type", "icmp.code", "icmp.checksum.status", "ip.checksum.status", "ip.src"];
    let fields = fields.iter().chain(&["tcp.seq", "_ws.malformed", "frame.len"]);
    let mut tshark = std::process::Command::new("tshark");
    tshark.arg("-r").arg(&path).args(["-Y", "icmp", "-T", "fields", "-E", "separator=;"]);
    tshark.args(["-o", "ip.check_checksum:TRUE"]);
    fields.for_each(|field| {
        tshark.args(["-e", field]);
    });
    let answer = tshark.output();
    std::fs::remove_file(&path).expect("it is there");
    let Ok(answer) = answer else {
        eprintln!("skipped: tshark is not installed (apt install tshark)");
        return;
    };
    let lines = String::from_utf8(answer.stdout).expect("it is text");
    assert_eq!(lines.lines().count(), said, "{lines}");
    for line in lines.lines() {
        // Source quench, both checksums right, of the router about the sender; whole.
        let rest = line.strip_prefix("4;0;1;1,1;10.0.0.3,10.0.0.1;");
        let rest = rest.unwrap_or_else(|| panic!("{line}"));
        assert!(rest.ends_with(";;56"), "{line}");
    }
    assert!(lines.lines().any(|line| line.contains(";10000")), "numbers of bytes: {lines}");
}

/// Captures the link of a client that opens a connection and loads two pages of two objects. The
/// link behind it loses packets as `loss` says.
fn asked(loss: &str) -> (Records, Vec<Caught>) {
    let text = format!(
        r#"
        [run]
        duration = "60 s"
        [link.near]
        from = "server"
        to = "client"
        rate = "20 Mbit/s"
        duplex = true
        [link.far]
        from = "backend"
        to = "server"
        rate = "10 Mbit/s"
        delay = "20 ms"
        duplex = true
        {loss}
        [flow.web]
        from = "backend"
        to = "client"
        endpoint = {{ preset = "linux", ecn = true }}
        [flow.web.workload]
        kind = "web"
        pages = 2
        objects = 2
        size = "30 kB"
        request = "2 kB"
        reading = "1 s"
        "#
    );
    let (records, [file]) = capture(&text, [&["near", "near.reverse"]]);
    let caught = read(&file);
    (records, caught)
}

#[test]
fn who_opens_a_connection_is_who_asks_and_both_directions_count_their_own_bytes() {
    for loss in ["", "loss = 0.1"] {
        let (records, caught) = asked(loss);
        let first = &caught[0];
        let client = first.bytes[12..16].to_vec();
        assert!(first.tcp().syn() && !first.tcp().ack() && first.tcp().window_size() > 0);
        assert!(first.tcp().ece() && first.tcp().cwr(), "RFC 3168 § 6.1.1");
        assert_eq!(client, [10, 0, 0, 2], "`client` is the second node");
        assert_eq!(number(&records.flows, 0, "bytes_received"), 120_000);
        // Sequence numbers of each end, by what it sent: the first one, and the next byte.
        let mut ends: BTreeMap<bool, (u32, u32)> = BTreeMap::new();
        for packet in &caught {
            let tcp = packet.tcp();
            let of_client = packet.bytes[12..16] == client;
            let payload = packet.bytes.len() - 20 - tcp.slice()[12] as usize / 16 * 4;
            let next = tcp.sequence_number() + payload as u32 + u32::from(tcp.syn());
            let known = ends.get(&!of_client).copied();
            let end = ends.entry(of_client).or_insert((tcp.sequence_number(), next));
            if tcp.syn() {
                assert_eq!(tcp.ack(), !of_client, "the server answers");
            } else {
                assert!(
                    tcp.ack() && (tcp.sequence_number() <= end.1 || !loss.is_empty()),
                    "no byte before the one below, unless that was lost on its way here"
                );
            }
            end.1 = end.1.max(next);
            if tcp.ack() {
                // The client acknowledges only what has passed the capture; so does the server
                // without losses.
                let (start, sent) = known.expect("the other end has sent something");
                let acked = tcp.acknowledgment_number();
                assert!(
                    start < acked && (acked <= sent || !of_client && !loss.is_empty()),
                    "{acked}"
                );
            }
        }
        let bytes = |of_client| ends[&of_client].1 - ends[&of_client].0 - 1;
        assert_eq!((bytes(true), bytes(false)), (4 * 2_000, 120_000));
    }
}

#[test]
fn data_echoes_the_newest_time_that_its_sender_heard_in_both_directions() {
    let (_, caught) = asked("");
    let client = &caught[0].bytes[12..16];
    let mut newest: BTreeMap<bool, u32> = BTreeMap::new();
    let mut told = [0, 0];
    for packet in caught.iter().skip(1) {
        let of_client = packet.bytes[12..16] == *client;
        let (value, echo) = packet.timestamps();
        // The client's link is captured: it has received all that passed, except what is still on
        // that link.
        let known = newest.get(&!of_client).copied().unwrap_or(caught[0].timestamps().0);
        assert!(echo <= known, "{echo} after {known}");
        told[usize::from(of_client)] += usize::from(echo > 0);
        let of_end = newest.entry(of_client).or_insert(value);
        assert!(value >= *of_end, "clocks go forward");
        *of_end = value;
    }
    assert!(told[0] > 80 && told[1] > 20, "{told:?}");
}
