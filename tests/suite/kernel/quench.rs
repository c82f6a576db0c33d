//! BECN in the kernel: the effect of a quench on the window, and the parsing of quenches.

use cwnd_packet::{Ecn, Endpoints, Headers, ReceivedQuench, SourceQuench, Tcp, Udp};

use super::{
    HZ, NO_RACK, Replay, Seen, assert_same, compiled, cubic, digits, flow, host, reno, run_program,
};

/// Queues that mark or drop, with a messenger.
const QUEUES: [(&str, &str); 4] = [
    (r#"{ kind = "codel", ecn = true }"#, "60 ms"),
    // It marks before HyStart ends slow start, so the effect of a quench in slow start is tested,
    // too.
    (r#"{ kind = "red", w_q = 0.02 }"#, "100 ms"),
    (r#"{ kind = "red", preset = "becn" }"#, "100 ms"),
    (r#"{ kind = "fifo", limit = "60 packets" }"#, "60 ms"),
];

fn assert_becn(controller: &str, of: fn(&str) -> String) {
    let program = compiled(controller, &["-DQUENCHES"]);
    let mut all = Seen::default();
    for (rest, word) in [("marked", 0), ("never", 1), ("always", 2)] {
        let settings = vec![500_000_000, word, 10, HZ];
        let replay =
            Replay { program: program.clone(), settings, fractional: false, duplicates: false };
        let rule =
            format!(r#"beta_quench = 0.5, rest_after_quench = "{rest}", quench_rest = "window""#);
        // Marks are not echoed, so only after a quench does the window grow in the following round
        // trip, as its rest allows.
        let controller = of(&rule).replace("grow_in_cwr = false", "grow_in_cwr = true");
        for (queue, rtt) in QUEUES {
            for (faults, own) in [("", ""), ("loss = 0.005", ""), ("loss = 0.03", NO_RACK)] {
                let more = format!("messenger = \"quench\"\n{faults}");
                let own = format!("{own}\nendpoint.obey_quench = true\nendpoint.echo = \"none\"");
                let text = flow(&controller, rtt, queue, &more, &own);
                all = all.and(assert_same(&replay, &text));
            }
        }
    }
    eprintln!("{controller}: {all:?}");
    assert!(all.acks > 100_000 && all.quenches > 100 && all.losses > 50, "{all:?}");
    assert!(all.timeouts > 0 && all.ecn == 0, "{all:?}");
}

#[test]
fn becn_reno_of_the_kernel_is_newreno_that_obeys_quenches() {
    assert_becn("becn_reno", reno);
}

#[test]
fn becn_cubic_of_the_kernel_is_cubic_that_obeys_quenches() {
    assert_becn("becn_cubic", |rule| cubic(&format!("{rule}, grow_in_cwr = true")));
}

const ENDS: Endpoints = Endpoints {
    source: [10, 0, 0, 1],
    source_port: 5001,
    destination: [192, 0, 2, 200],
    destination_port: 443,
};

fn quench(about: &Headers, marked: bool, level: u8) -> Vec<u8> {
    quench_from([10, 0, 0, 9], about, marked, level)
}

fn quench_from(router: [u8; 4], about: &Headers, marked: bool, level: u8) -> Vec<u8> {
    SourceQuench { quoted: &about.bytes, marked, level }.headers(router, ENDS.source).bytes
}

/// Returns the fields of a quench of a TCP packet as crates/packet parses it, in the output format
/// of the C program; `no` for anything else.
fn expected(packet: &[u8]) -> String {
    match ReceivedQuench::read(packet) {
        Some(ReceivedQuench { marked, level, quoted: about, sequence: Some(sequence), .. }) => {
            format!(
                "{} {} {} {} {sequence} {}",
                u32::from_be_bytes(about.source),
                about.source_port,
                u32::from_be_bytes(about.destination),
                about.destination_port,
                u8::from(marked) << 7 | level,
            )
        }
        _ => "no".to_owned(),
    }
}

/// Quenches of crates/packet, whole, cut short, with any bit flipped, about another host's packet,
/// or about UDP.
#[test]
fn the_kernel_reads_the_quenches_that_the_wire_reads() {
    let about = |sequence, ends| {
        Tcp { sequence, ecn: Ecn::Ect0, payload: 1448, wanted_length: 1500, ..Tcp::default() }
            .headers(ends)
    };
    let mut packets = Vec::new();
    for (sequence, marked, level) in [(0, true, 0), (u32::MAX, false, 7), (1 << 31, true, 2)] {
        let whole = quench(&about(sequence, ENDS), marked, level);
        for bit in 0..whole.len() * 8 {
            let mut wrong = whole.clone();
            wrong[bit / 8] ^= 1 << (bit % 8);
            packets.push(wrong);
        }
        packets.extend((0..whole.len()).map(|end| whole[..end].to_vec()));
        packets.push([whole.as_slice(), &[1, 2, 3]].concat());
        packets.push(whole);
    }
    let strange = Endpoints { source: [10, 0, 0, 7], ..ENDS };
    packets.push(quench(&about(1, strange), true, 0));
    packets.push(quench(
        &Udp { ecn: Ecn::Ect0, payload: 1000, wanted_length: 1028 }.headers(ENDS),
        true,
        0,
    ));

    // None of these addresses can be a router's, except the last two.
    for router in [
        [0, 0, 0, 0],
        [0, 9, 9, 9],
        [127, 0, 0, 1],
        [224, 0, 0, 1],
        [239, 255, 255, 255],
        [240, 0, 0, 1],
        [255, 255, 255, 255],
        [1, 0, 0, 1],
        [223, 255, 255, 254],
    ] {
        packets.push(quench_from(router, &about(1, ENDS), true, 0));
    }

    let output = run_program(&host("quench", &[]), &[], &digits(&packets));
    assert_eq!(output.lines().count(), packets.len());
    let mut believed = 0;
    for (packet, theirs) in packets.iter().zip(output.lines()) {
        let ours = expected(packet);
        believed += usize::from(ours != "no");
        assert_eq!(ours, theirs, "{packet:02x?}");
    }
    assert_eq!(
        believed, 8,
        "three whole ones, what follows a packet is not looked at, and two routers"
    );
}
