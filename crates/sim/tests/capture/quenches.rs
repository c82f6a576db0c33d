//! Routers' messages in captures.

use std::sync::Arc;

use cwnd_aqm::{Backlog, Context, Messenger, Verdict};
use cwnd_packet::{Ability, Contract, HasContract, ReceivedQuench};
use cwnd_sim::World;

use crate::files::{Caught, read, scenario};
use crate::kept::Kept;

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
