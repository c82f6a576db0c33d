//! TCP*(n) in the kernel: timeouts against the policy of crates/cc as far as the kernel supports
//! it, and its behaviour otherwise. Misbehaving receivers that alter timestamp echoes, and the
//! sender's choice of RTT source.

use std::fmt::Write as _;

use cwnd_cc::{Backoff, RtoPolicy};
use cwnd_packet::{Endpoints, Options, Tcp};
use cwnd_quantity::{Divisor, Duration};

use super::{HZ, digits, host, run_program};

/// Returns the timeouts of consecutive expiries, ms.
fn policy(backoff: Backoff, after: u32, base_ms: u64, expiries: u32) -> Vec<u64> {
    let ms = Duration::from_millis;
    let policy = RtoPolicy {
        min: ms(200),
        initial: ms(1000),
        max: ms(120_000),
        granularity: Divisor::new(ms(1).0),
        variation_min: ms(200),
        slop: Duration::ZERO,
        backoff,
        backoff_after: after,
        backoff_rounds: None,
    };
    (0..expiries).map(|k| policy.timeout(ms(base_ms), k).0 / 1_000_000).collect()
}

#[test]
fn tcpstar_of_the_kernel_is_the_policy_of_the_simulator_as_far_as_it_goes() {
    let program = host("timer", &[]);
    let mut compared = 0;
    for after in 1..=8 {
        let mut connections = Vec::new();
        for base_ms in [200, 240, 700, 999, 1000, 1001, 1500, 3000, 100_000] {
            connections.extend([false, true].map(|thin| (base_ms, thin)));
        }
        let mut text = String::new();
        for (base_ms, thin) in &connections {
            writeln!(text, "{base_ms} {} 0 12", u8::from(*thin)).expect("a String");
        }
        let output = run_program(&program, &[after, HZ, 0], &text);
        assert_eq!(output.lines().count(), connections.len());
        for ((base_ms, thin), line) in connections.iter().zip(output.lines()) {
            let (timeouts, after_it) = line.split_once(" : ").expect("both");
            let timeouts: Vec<u64> =
                timeouts.split(' ').map(|number| number.parse().expect("ms")).collect();
            // A thin stream backs off linearly for six expiries, and a base of 1 s or more is its
            // own bound.
            let exact = *base_ms >= 1000 || *thin && after <= 6;
            if exact {
                let policy = policy(Backoff::After, after, *base_ms, 12);
                assert_eq!(timeouts, policy, "TCP*({after}), {base_ms} ms");
                compared += 1;
            } else if !thin {
                let policy = policy(Backoff::Bounded, after, *base_ms, 12);
                assert_eq!(timeouts, policy, "bounded, {after}, {base_ms} ms");
            }
            // Once a round trip is measured, all settings are the kernel's again.
            assert_eq!(after_it, "120000 0 0");
        }
    }
    assert_eq!(compared, 8 * 10 + 6 * 4);
    // A SYN's timeout has its own n, or that of data; the kernel's four linear timeouts of a SYN
    // remain in any case.
    for (after, syn_after) in [(1, 0), (6, 0), (6, 4), (1, 7), (3, 5)] {
        let output = run_program(&program, &[after, HZ, syn_after], "1000 0 1 10");
        let (timeouts, _) = output.split_once(" : ").expect("both");
        let after = if syn_after == 0 { after } else { syn_after };
        let expected: Vec<String> =
            policy(Backoff::After, after.max(4), 1000, 10).iter().map(u64::to_string).collect();
        assert_eq!(timeouts, expected.join(" "), "SYNs, {after}");
    }
}

const ENDS: Endpoints = Endpoints {
    source: [198, 18, 0, 2],
    source_port: 5001,
    destination: [198, 18, 0, 1],
    destination_port: 10_000,
};
const ACK: u8 = 0x10;
const SYN: u8 = 0x02;
/// Offset subtracted from echoes, ms.
const TICKS: u32 = 100;

fn segment(flags: u8, echo: u32, blocks: usize, payload: u16) -> Tcp {
    let mut sack = <[(u32, u32); cwnd_packet::MAX_SACK_BLOCKS]>::default();
    for (n, block) in (1..).zip(sack.iter_mut().take(blocks)) {
        *block = (n * 10_000, n * 10_000 + 1448);
    }
    let timestamps = Some((0x0102_0304, echo));
    let options = Options { timestamps, sack, ..Options::default() };
    Tcp { sequence: 7, acknowledgment: 9, flags, options, payload, ..Tcp::default() }
}

/// Returns the packets after the program, and its counts of rewritten and failed ones.
fn rewritten(source: u32, packets: &[Vec<u8>]) -> (Vec<Vec<u8>>, String) {
    let output = run_program(&host("stamps", &[]), &[TICKS, source], &digits(packets));
    let mut lines: Vec<&str> = output.lines().collect();
    let counts = lines.pop().expect("counts come last").to_owned();
    let byte = |hex: &[u8]| {
        u8::from_str_radix(core::str::from_utf8(hex).expect("text"), 16).expect("two digits")
    };
    let packets = lines.iter().map(|line| line.as_bytes().chunks(2).map(byte).collect()).collect();
    (packets, counts)
}

/// Checksums of rewritten packets equal those that crates/packet computes for such a segment.
#[test]
fn an_echo_becomes_older_and_the_checksum_is_right() {
    let mut packets = Vec::new();
    let mut expected = Vec::new();
    let echoes = [1, 99, 101, 100_000, 0x0001_0000, 0x7fff_ffff, 0x8000_0000, u32::MAX];
    for echo in echoes {
        for blocks in 0..=2 {
            for payload in [0, 1, 1448] {
                packets.push(segment(ACK, echo, blocks, payload).headers(ENDS).bytes);
                let less = segment(ACK, echo.wrapping_sub(TICKS), blocks, payload);
                expected.push(less.headers(ENDS).bytes);
            }
        }
    }
    let (left, counts) = rewritten(0, &packets);
    assert_eq!(left, expected);
    assert_eq!(counts, format!("{} 0", packets.len()));
    let source = u32::from_be_bytes(ENDS.source);
    assert_eq!(rewritten(source, &packets).0, expected);
    assert_eq!(rewritten(source + 1, &packets), (packets, "0 0".to_owned()), "another's");
}

/// The option may begin at any byte: an echo that straddles 16-bit words enters the checksum with
/// swapped bytes.
#[test]
fn an_echo_across_words_of_the_checksum_is_rewritten_too() {
    let whole = segment(ACK, 0x0a0b_0c0d, 0, 0).headers(ENDS).bytes;
    // Two no-operations and the option: one of them moves behind it.
    let mut moved = whole.clone();
    let options = 40..52;
    assert_eq!(moved[40..43], [1, 1, 8]);
    moved[options.clone()].rotate_left(1);
    let fixed = with_checksum(moved);
    let (left, counts) = rewritten(0, &[fixed.clone(), whole]);
    assert_eq!(counts, "2 0");
    let mut expected = fixed;
    expected[47..51].copy_from_slice(&(0x0a0b_0c0d - TICKS).to_be_bytes());
    assert_eq!(left[0], with_checksum(expected));
}

#[test]
fn nothing_else_is_touched() {
    let ack = segment(ACK, 5000, 1, 0);
    let none = Tcp { options: Options::default(), ..ack };
    let mut packets = vec![
        segment(SYN | ACK, 5000, 0, 0).headers(ENDS).bytes,
        segment(0, 5000, 0, 0).headers(ENDS).bytes,
        // No echo, and one that would become zero.
        segment(ACK, 0, 0, 0).headers(ENDS).bytes,
        segment(ACK, TICKS, 0, 0).headers(ENDS).bytes,
        none.headers(ENDS).bytes,
    ];
    let whole = ack.headers(ENDS).bytes;
    let changed = |at: usize, to: u8| {
        let mut packet = whole.clone();
        packet[at] = to;
        packet
    };
    // Another protocol, a later fragment, another version, options that end early or have no valid
    // length, and a header that is too short.
    packets.extend([
        changed(9, 17),
        changed(7, 1),
        changed(0, 0x65),
        changed(40, 0),
        changed(43, 0),
        changed(43, 9),
        changed(32, 0x40),
    ]);
    // Packets cut short.
    packets.extend((0..44).map(|end| whole[..end].to_vec()));
    let (left, counts) = rewritten(0, &packets);
    assert_eq!(left, packets);
    assert_eq!(counts, "0 0");
}

/// Sets the checksum by RFC 1071 over the pseudo header and a segment without payload.
fn with_checksum(mut packet: Vec<u8>) -> Vec<u8> {
    packet[36..38].fill(0);
    let length = (packet.len() - 20) as u32;
    let words = packet[12..].chunks(2).map(|pair| u32::from(pair[0]) << 8 | u32::from(pair[1]));
    let mut sum: u32 = words.sum::<u32>() + 6 + length;
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    packet[36..38].copy_from_slice(&(!(sum as u16)).to_be_bytes());
    packet
}

/// ACKs of segments sent once, of retransmissions, and of data reported only by SACK.
#[test]
fn the_oldest_segment_is_what_the_smoothed_round_trip_heard() {
    let [sack, oldest, timestamps] = [0, 1, 2];
    let program = host("rtt_source", &[]);
    for handshake in [0, 20_000] {
        let mut text = format!("{handshake}\n");
        let mut acks = Vec::new();
        let mut state = 1_u64;
        for n in 0..2000 {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            let old = 1000 + (state >> 40) as i32 % 200_000;
            let new = old - old.min((state >> 32) as i32 & 0x3ff);
            // (segments, oldest, newest, echo) as the kernel reports them.
            let ack = match n % 7 {
                5 => (1, -1, -1, old / 1000 * 1000),
                6 => (0, old, new, -1),
                few => (1 + few / 2, old, new, (old + 500) / 1000 * 1000),
            };
            writeln!(text, "{} {} {} {}", ack.0, ack.1, ack.2, ack.3).expect("a String");
            acks.push(ack);
        }
        let seen = |from| -> Vec<i32> {
            run_program(&program, &[from], &text).lines().map(|l| l.parse().unwrap()).collect()
        };
        let all = |of: fn(&(i32, i32, i32, i32)) -> i32| acks.iter().map(of).collect::<Vec<_>>();
        assert_eq!(seen(sack), all(|ack| ack.2));
        assert_eq!(seen(oldest), all(|ack| ack.1));
        assert_eq!(seen(timestamps), all(|ack| if ack.0 > 0 { ack.3 } else { -1 }));
    }
}
