//! Captures, read back by independent libraries and compared with the counters of the simulation.

mod files;
mod kept;
mod quenches;
mod requests;

use std::collections::BTreeMap;
use std::io::{self, Write};

use cwnd_sim::World;
use etherparse::{NetSlice, SlicedPacket, TransportSlice};

use crate::files::{BOTTLENECK, Caught, LOSSES, capture, number, read, scenario};

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
