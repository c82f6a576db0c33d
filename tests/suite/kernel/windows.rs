//! Window-based controllers in the kernel against the simulator: ABE, adaptive backoff, delay-based
//! AIMD and BECN, with the parsing of quenches; and compensation for skipped calls.

use std::fmt::Write as _;

use cwnd_packet::{Ecn, Endpoints, Headers, ReceivedQuench, SourceQuench, Tcp, Udp};

use super::{
    HZ, NO_RACK, PATHS, Replay, Seen, assert_same, compiled, cubic, digits, flow, host, line,
    recorded, reno, run_program,
};

/// Settings of ABE's program.
fn abe_settings(beta_ecn: u32, always: bool, deepen: bool) -> Vec<u32> {
    vec![beta_ecn, u32::from(always), u32::from(deepen), HZ]
}

fn assert_same_on(
    paths: &[(&str, &str, &str, &str)],
    controller: &str,
    beta_ecn: f64,
    of: fn(&str) -> String,
) -> Seen {
    let program = compiled(controller, &[]);
    let mut all = Seen::default();
    for (mode, always) in [("beta", false), ("beta-ecn", true)] {
        let parts = (beta_ecn * 1e9 + 0.5) as u32;
        let settings = abe_settings(parts, always, false);
        let replay =
            Replay { program: program.clone(), settings, fractional: false, duplicates: false };
        let rule = format!("beta_ecn = {beta_ecn}, ecn_in_slow_start = \"{mode}\"");
        for (queue, rtt, more, own) in paths {
            all = all.and(assert_same(&replay, &flow(&of(&rule), rtt, queue, more, own)));
        }
    }
    eprintln!("{controller} with {beta_ecn}: {all:?}");
    assert!(all.acks > 100_000 && all.ecn > 50 && all.losses > 50 && all.timeouts > 0, "{all:?}");
    all
}

#[test]
fn abe_reno_of_the_kernel_is_newreno_of_the_simulator() {
    for beta_ecn in [0.5, 0.8] {
        // The two differ by design in two cases that are left out. An ACK for several windows, as
        // occurs with the smallest windows after timeouts, adds one segment (RFC 3465 § 2.1), in
        // the kernel several. Also, the simulator resets the count towards the next segment at the
        // end of slow start, so after idle periods they differ by a fraction of a segment.
        assert_same_on(&PATHS[..7], "abe_reno", beta_ecn, reno);
    }
}

#[test]
fn abe_cubic_of_the_kernel_is_cubic_of_the_simulator() {
    for beta_ecn in [717.0 / 1024.0, 0.85] {
        let seen = assert_same_on(&PATHS, "abe_cubic", beta_ecn, cubic);
        assert!(seen.timeouts > 50 && seen.idle > 5 && seen.hystart > 5, "{seen:?}");
    }
}

/// Returns windows and thresholds after each event of a script, as `cwnd ssthresh`, and the
/// counters.
fn script(replay: &Replay, start: &str, events: &[&str]) -> (Vec<String>, String) {
    let mut text = format!("{start} 1000000\n");
    for (index, event) in events.iter().enumerate() {
        let time = 10_000 * (index + 1);
        let (kind, state) = event.split_once(' ').expect("an event and a state");
        writeln!(text, "{kind} {time} {state} 1 1 1 0 1 40000").expect("a String");
    }
    let mut lines: Vec<String> =
        run_program(&replay.program, &replay.settings, &text).lines().map(str::to_owned).collect();
    let counters = lines.pop().expect("the counters");
    (lines, counters)
}

const OPEN: &str = "a 0";

#[test]
fn in_the_kernel_the_state_tells_ecn_from_loss() {
    let program = compiled("abe_reno", &[]);
    let [avoidance, always, deepen] =
        [(false, false), (true, false), (false, true)].map(|(always, deepen)| Replay {
            program: program.clone(),
            settings: abe_settings(800_000_000, always, deepen),
            fractional: false,
            duplicates: false,
        });
    for (replay, start, events, windows, counters) in [
        // 0.8 of the window in congestion avoidance.
        (&avoidance, "100 50", &["e 0"][..], &["80 80"][..], "ecn 1 loss 0"),
        (&avoidance, "100 50", &["l 0"], &["50 50"], "ecn 0 loss 1"),
        // Half in slow start, or the factor of the paper.
        (&avoidance, "100 999", &["e 0"], &["50 50"], "ecn 1 loss 0"),
        (&always, "100 999", &["e 0"], &["80 80"], "ecn 1 loss 0"),
        // A loss in the same window: no further reduction, or down to what the loss alone would
        // have left.
        (&avoidance, "100 50", &["e 0", "l 2"], &["80 80", "80 80"], "ecn 1 loss 0"),
        (&deepen, "100 50", &["e 0", "l 2"], &["80 80", "50 50"], "ecn 1 loss 0"),
        // In the next window a loss counts as usual.
        (&deepen, "100 50", &["e 0", OPEN, "l 0"], &["80 80", "80 80", "40 40"], "ecn 1 loss 1"),
        // A drop in the sender's own queue is not a mark, even if the ACK before carried ECE.
        (&always, "100 50", &["c 0"], &["50 50"], "ecn 0 loss 0 timeout 0 local 1"),
        (&always, "100 50", &["e 0", "c 2"], &["80 80", "40 40"], "ecn 1 loss 0 timeout 0 local 1"),
        (&always, "100 50", &["t 0"], &["1 50"], "ecn 0 loss 0 timeout 1"),
        // The threshold is at least two segments (RFC 5681 eq. 4).
        (&always, "2 2", &["e 0"], &["2 2"], "ecn 1"),
    ] {
        let (found, counted) = script(replay, start, events);
        assert_eq!(found, windows, "{start} {events:?}");
        assert!(counted.starts_with(counters), "{start} {events:?}: {counted}");
    }
    let (_, counted) = script(&deepen, "100 50", &["e 0", "l 2"]);
    assert!(counted.contains("loss_after_ecn 1"), "{counted}");
    let (_, counted) = script(&always, "100 999", &["e 0"]);
    assert!(counted.contains("ecn_in_slow_start 1"), "{counted}");
}

/// δ in units of 10⁻⁹.
const DELTA: u32 = 800_000_000;
/// RTT source of the kernel program (bpf/rtt_source.h).
const SACK: u32 = 0;

fn assert_adaptive(
    controller: &str,
    paths: &[(&str, &str, &str, &str)],
    of: fn(&str) -> String,
) -> Seen {
    // RTT known to the transport at a signal, which it learned from duplicate ACKs.
    let hear = "-DHEAR(rtt)=rtts_hear(&((struct adaptive *)sk.private)->rtts, rtt)";
    let program = compiled(controller, &[hear]);
    let replay =
        Replay { program, settings: vec![DELTA, HZ, SACK], fractional: false, duplicates: false };
    let mut all = Seen::default();
    for (queue, rtt, more, own) in paths {
        let text = flow(&of("adaptive_delta = 0.8"), rtt, queue, more, own);
        all = all.and(assert_same(&replay, &text));
    }
    eprintln!("{controller}: {all:?}");
    assert!(all.acks > 100_000 && all.ecn > 30 && all.losses > 30 && all.timeouts > 0, "{all:?}");
    all
}

/// The paths of ABE's comparison; the same exceptions apply.
#[test]
fn adaptive_reno_of_the_kernel_is_newreno_with_adaptive_backoff() {
    assert_adaptive("adaptive_reno", &PATHS[..7], reno);
}

#[test]
fn adaptive_cubic_of_the_kernel_is_cubic_with_adaptive_backoff() {
    let seen = assert_adaptive("adaptive_cubic", &PATHS, cubic);
    assert!(seen.timeouts > 20 && seen.idle > 5 && seen.hystart > 3, "{seen:?}");
}

/// Queues longer and shorter than the threshold, random losses that RACK or the timer finds, and
/// other flows whose queue delays this one.
#[test]
fn delay_aimd_of_the_kernel_is_delay_aimd_of_the_simulator() {
    let exact = "-DEXACT=((struct state *)sk.private)->window";
    let hear = "-DHEAR(rtt)=rtts_hear(&((struct state *)sk.private)->rtts, rtt)";
    let program = compiled("delay_aimd", &[exact, hear]);
    let deep = r#"{ kind = "fifo", limit = "400 packets" }"#;
    let short = r#"{ kind = "fifo", limit = "30 packets" }"#;
    let others = r#"
        [flow.other]
        controller = "newreno"
        rtt = "90 ms"
        [flow.two]
        start = "20 s"
        controller = "newreno"
        rtt = "30 ms""#;
    let mut all = Seen::default();
    for (threshold_ms, least) in [(20, 2), (50, 1)] {
        let settings = vec![threshold_ms * 1000, DELTA, least, SACK];
        let replay =
            Replay { program: program.clone(), settings, fractional: true, duplicates: false };
        let controller = format!(
            "{{ kind = 'delay-aimd', preset = 'thesis', threshold = '{threshold_ms} ms', \
             least_window = {least}, allow_delayed_acks = false, abc_limit = 'none', \
             abc_limit_after_timeout = 'none' }}"
        );
        for (queue, rtt, more, own) in [
            (deep, "40 ms", "", ""),
            (deep, "120 ms", "", ""),
            (deep, "200 ms", "loss = 0.002", ""),
            (short, "60 ms", "", ""),
            (deep, "40 ms", "loss = 0.03", ""),
            (deep, "40 ms", "loss = 0.03", NO_RACK),
            (deep, "40 ms", "loss = 0.15", NO_RACK),
        ] {
            all = all.and(assert_same(&replay, &flow(&controller, rtt, queue, more, own)));
        }
        let beside = flow(&controller, "60 ms", deep, "", "") + others;
        all = all.and(assert_same(&replay, &beside));
    }
    eprintln!("delay_aimd: {all:?}");
    assert!(
        all.acks > 100_000 && all.delay > 100 && all.losses > 50 && all.timeouts > 10,
        "{all:?}"
    );
    assert!(all.spared > 0, "{all:?}");
}

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

/// Paths with drops that ACKs report, and timeouts.
const SKIPPED_PATHS: [(&str, &str, &str); 3] = [
    (r#"{ kind = "fifo", limit = "60 packets" }"#, "", ""),
    (r#"{ kind = "codel" }"#, "loss = 0.01", ""),
    (r#"{ kind = "codel" }"#, "loss = 0.05", NO_RACK),
];

/// Kernels may skip a controller's programs (bpf/skipped_calls.h). Each reduction is skipped here,
/// and the next ACK compensates for it.
#[test]
fn what_the_kernel_did_not_tell_is_made_up_for_with_the_next_ack() {
    let halves = 500_000_000;
    let delta = 800_000_000;
    for (name, defines, settings) in [
        ("abe_reno", &[][..], &[halves, 0, 0, HZ][..]),
        ("abe_cubic", &[], &[halves, 0, 0, HZ]),
        ("adaptive_reno", &[], &[delta, HZ, 0]),
        ("adaptive_cubic", &[], &[delta, HZ, 0]),
        ("delay_aimd", &[], &[50_000, delta, 2, 0]),
        ("becn_reno", &["-DQUENCHES"], &[halves, 0, 10, HZ]),
        ("becn_cubic", &["-DQUENCHES"], &[halves, 0, 10, HZ]),
    ] {
        let program = compiled(name, &[&["-DUNTOLD"], defines].concat());
        let mut all = 0;
        for (queue, more, own) in SKIPPED_PATHS {
            let of = if name.ends_with("cubic") { cubic } else { reno };
            let text = flow(&of("beta = 0.5"), "60 ms", queue, more, own);
            let (start, mss, record) = recorded(&text, true);
            let mss = u64::from(mss);
            let mut events = format!("{} {} 60000\n", start.cwnd / mss, i32::MAX);
            for entry in &record {
                line(entry, entry.window.cwnd, &mut events);
            }
            let output = run_program(&program, settings, &events);
            let apart = output.lines().find(|line| line.starts_with("apart"));
            assert_eq!(apart, None, "{name}");
            let mut last = output.lines().rev();
            let counters = last.next().expect("the counters");
            let made_up = last.next().and_then(|line| line.strip_prefix("made up for "));
            let made_up: u64 = made_up.and_then(|number| number.parse().ok()).expect("a number");
            assert!(counters.contains(&format!("untold {made_up} ")), "{name}: {counters}");
            all += made_up;
        }
        eprintln!("{name}: {all}");
        assert!(all > 30, "{name}: {all}");
    }
}
