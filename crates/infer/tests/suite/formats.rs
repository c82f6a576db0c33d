//! File formats and link-layer types give the same result for the same connection; other files are
//! errors.

use std::io::Write as _;

use crate::conversation::{Conversation, frame, header, read, silences};
use cwnd_infer::{CaptureError, Error, Inference, Input, Limits};
use proptest::prelude::*;

fn conversation(v6: bool) -> Conversation {
    let mut conversation = Conversation::empty();
    conversation.v6 = v6;
    conversation.open();
    conversation.hole_filled_after_timeout();
    conversation
}

fn is_found(file: &[u8], how: &str) {
    let found = read(file).unwrap_or_else(|error| panic!("{how}: {error}"));
    let expected = [("timeout".to_owned(), "filled_hole".to_owned())];
    assert_eq!(silences(&found), expected, "{how}");
    assert_eq!(found.counts.get("tcp_segments"), found.counts.get("frames"), "{how}");
}

fn file(
    magic: u32,
    link: u32,
    tick_ns: u64,
    conversation: &Conversation,
    before: &[u8],
) -> Vec<u8> {
    let mut file = header(magic, link);
    for (at, packet) in &conversation.packets {
        let bytes = [before, packet].concat();
        file.extend(frame(*at, tick_ns, &bytes, bytes.len()));
    }
    file
}

const NANOSECONDS: u32 = 0xa1b2_3c4d;
const MICROSECONDS: u32 = 0xa1b2_c3d4;

#[test]
fn every_link_header_is_passed() {
    for (v6, protocol) in [(false, [0x08, 0x00]), (true, [0x86, 0xdd])] {
        let conversation = conversation(v6);
        let with = |before: &[u8]| [before, &protocol].concat();
        let headers: [(&str, u32, Vec<u8>); 11] = [
            ("Ethernet", 1, with(&[0; 12])),
            ("802.1Q", 1, with(&[&[0; 12][..], &[0x81, 0, 0, 5]].concat())),
            ("QinQ", 1, with(&[&[0; 12][..], &[0x88, 0xa8, 0, 5, 0x81, 0, 0, 6]].concat())),
            ("SLL", 113, with(&[0; 14])),
            ("SLL2", 276, [&protocol[..], &[0; 18]].concat()),
            ("null", 0, vec![2, 0, 0, 0]),
            ("loop", 108, vec![0, 0, 0, 2]),
            ("raw", 101, vec![]),
            ("raw of BSD", 12, vec![]),
            ("raw of OpenBSD", 14, vec![]),
            ("IP by version", if v6 { 229 } else { 228 }, vec![]),
        ];
        for (name, link, before) in headers {
            is_found(&file(NANOSECONDS, link, 1, &conversation, &before), name);
        }
    }
}

#[test]
fn extension_headers_of_ipv6_are_passed() {
    let mut conversation = conversation(true);
    for (_, packet) in &mut conversation.packets {
        // Hop-by-hop options of eight bytes before TCP.
        let length = u16::from_be_bytes([packet[4], packet[5]]) + 8;
        packet[4..6].copy_from_slice(&length.to_be_bytes());
        packet[6] = 0;
        packet.splice(40..40, [6, 0, 1, 4, 0, 0, 0, 0]);
    }
    is_found(&conversation.pcap(), "hop-by-hop options");
}

#[test]
fn both_resolutions_and_both_orders_of_bytes_are_read() {
    let conversation = conversation(false);
    is_found(&file(MICROSECONDS, 101, 1000, &conversation, &[]), "microseconds");
    for (magic, tick) in [(NANOSECONDS, 1), (MICROSECONDS, 1000)] {
        let mut swapped = file(magic, 101, tick, &conversation, &[]);
        let mut at = 0;
        let mut swap = |from: usize, to: usize| swapped[from..to].reverse();
        for (from, to) in [(0, 4), (4, 6), (6, 8), (8, 12), (12, 16), (16, 20), (20, 24)] {
            swap(from, to);
        }
        at += 24;
        for (_, packet) in &conversation.packets {
            (0..4).for_each(|word| swap(at + 4 * word, at + 4 * word + 4));
            at += 16 + packet.len();
        }
        is_found(&swapped, "the other order");
    }
}

/// Returns a pcapng file whose clock has 10^`power` ticks per second.
fn pcapng(conversation: &Conversation, power: u8) -> Vec<u8> {
    let block = |kind: u32, body: &[u8]| {
        let length = (body.len() as u32 + 12).to_le_bytes();
        [&kind.to_le_bytes()[..], &length, body, &length].concat()
    };
    let mut section = 0x1a2b_3c4d_u32.to_le_bytes().to_vec();
    section.extend([1, 0, 0, 0]);
    section.extend([0xff; 8]);
    let mut file = block(0x0a0d_0d0a, &section);
    let interface = [101, 0, 0, 0, 0, 0, 0, 0, 9, 0, 1, 0, power, 0, 0, 0, 0, 0, 0, 0];
    file.extend(block(1, &interface));
    for (at, packet) in &conversation.packets {
        let ticks = (at * 10_f64.powi(i32::from(power) - 3)) as u64;
        let mut body = vec![0; 4];
        body.extend(((ticks >> 32) as u32).to_le_bytes());
        body.extend((ticks as u32).to_le_bytes());
        body.extend((packet.len() as u32).to_le_bytes());
        body.extend((packet.len() as u32).to_le_bytes());
        body.extend(packet);
        body.resize(body.len().next_multiple_of(4), 0);
        file.extend(block(6, &body));
    }
    file
}

#[test]
fn pcapng_is_read_whatever_its_clock() {
    for power in [6, 9, 4] {
        is_found(&pcapng(&conversation(false), power), "pcapng");
    }
    // Another section begins with its own interfaces.
    let twice = [pcapng(&conversation(false), 6), pcapng(&Conversation::empty(), 9)].concat();
    is_found(&twice, "two sections");
}

/// Returns a Zstandard frame.
fn zstd(plain: &[u8]) -> Vec<u8> {
    ruzstd::encoding::compress_to_vec(plain, ruzstd::encoding::CompressionLevel::Fastest)
}

#[test]
fn packed_files_are_known_by_how_they_begin() {
    let plain = conversation(false).pcap();
    let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    gzip.write_all(&plain).expect("memory takes it");
    is_found(&gzip.finish().expect("memory takes it"), "gzip");
    is_found(&zstd(&plain), "zstd");
    // `zstd` appends frames, and other programs leave skippable frames between them.
    let skippable = [&[0x50, 0x2a, 0x4d, 0x18, 3, 0, 0, 0][..], b"abc"].concat();
    let (first, second) = plain.split_at(plain.len() / 2);
    is_found(&[zstd(first), skippable, zstd(second)].concat(), "two frames");
}

#[test]
fn a_zstandard_frame_with_a_flipped_bit_is_an_error_or_the_same() {
    let whole = zstd(&conversation(false).pcap());
    let expected = format!("{:?}", read(&whole).expect("it is a capture"));
    // Offsets behind the magic number and the frame header.
    for at in 18..whole.len() {
        let mut damaged = whole.clone();
        damaged[at] ^= 1 << (at % 8);
        match read(&damaged) {
            Err(Error::Capture { .. }) => {}
            // Padding bits of a stream, and offsets with two encodings, may change without effect.
            found => assert_eq!(format!("{:?}", found.expect("it is whole")), expected, "{at}"),
        }
    }
    let plain = conversation(false).pcap();
    let (first, second) = plain.split_at(plain.len() / 2);
    let mut frames = [zstd(first), zstd(second)].concat();
    *frames.last_mut().expect("it is not empty") ^= 1;
    let Err(Error::Capture { error: CaptureError::Read(error), .. }) = read(&frames) else {
        panic!("the second frame is damaged");
    };
    assert_eq!(error.kind(), std::io::ErrorKind::InvalidData);
}

#[test]
fn headers_are_enough() {
    let mut file = header(NANOSECONDS, 101);
    let conversation = conversation(false);
    for (at, packet) in &conversation.packets {
        file.extend(frame(*at, 1, &packet[..packet.len().min(52)], packet.len()));
    }
    is_found(&file, "a snapshot length of 52 bytes");
}

#[test]
fn what_is_no_capture_says_so() {
    let refused = |file: &[u8]| match read(file) {
        Err(Error::Capture { error, .. }) => error.to_string(),
        other => panic!("{other:?}"),
    };
    assert_eq!(refused(b""), CaptureError::Empty.to_string());
    assert_eq!(refused(b"#!/bin/sh, or any other text"), CaptureError::Unknown.to_string());
    assert_eq!(refused(&header(NANOSECONDS, 101)[..20]), CaptureError::Header.to_string());
    let mut damaged = conversation(false).pcap();
    let second = 24 + 16 + conversation(false).packets[0].1.len();
    damaged[second + 8..second + 12].copy_from_slice(&u32::MAX.to_le_bytes());
    let told = refused(&damaged);
    assert!(told.contains(&format!("byte {second}")), "{told}");
    let mut unpacked = zstd(&conversation(false).pcap());
    unpacked.truncate(60);
    assert!(matches!(read(&unpacked), Err(Error::Capture { error: CaptureError::Read(_), .. })));
}

#[test]
fn a_capture_that_was_killed_is_read_as_far_as_it_goes() {
    let mut file = conversation(false).pcap();
    file.truncate(file.len() - 5);
    let found = read(&file).expect("it begins well");
    assert_eq!(found.counts.get("files_cut_off"), Some(1));
    assert_eq!(silences(&found).len(), 1);
}

#[test]
fn what_is_no_segment_is_counted() {
    let conversation = conversation(false);
    let packet = &conversation.packets[4].1;
    let changed = |at: usize, to: u8| {
        let mut packet = packet.clone();
        packet[at] = to;
        packet
    };
    let mut file = conversation.pcap();
    // UDP, a fragment, a TCP header of four words, half a header.
    for bytes in [changed(9, 17), changed(6, 0x20), changed(32, 0x40)] {
        file.extend(frame(500.0, 1, &bytes, bytes.len()));
    }
    file.extend(frame(500.0, 1, &packet[..30], packet.len()));
    let found = read(&file).expect("it is a capture");
    for name in ["not_tcp", "ip_fragments", "malformed", "headers_cut_off"] {
        assert_eq!(found.counts.get(name), Some(1), "{name}");
    }
    let other = file_of_unknown_link(&conversation);
    assert_eq!(other.counts.get("unknown_link_type"), other.counts.get("frames"));
}

fn file_of_unknown_link(conversation: &Conversation) -> cwnd_infer::Found {
    read(&file(NANOSECONDS, 147, 1, conversation, &[])).expect("it is a capture")
}

#[test]
fn of_too_many_connections_the_quiet_ones_are_given_up() {
    let mut file = header(NANOSECONDS, 101);
    for port in 1..=100_u16 {
        for (at, packet) in &conversation(false).packets[..2] {
            let mut packet = packet.clone();
            // The client's port is the first in packets from the client.
            let place = if packet[20..22] == 80_u16.to_be_bytes() { 22 } else { 20 };
            packet[place..place + 2].copy_from_slice(&port.to_be_bytes());
            file.extend(frame(*at + f64::from(port) * 1000.0, 1, &packet, packet.len()));
        }
    }
    let mut inference = Inference::new(Limits { connections: 16, ..Limits::default() });
    inference.read(&[Input::of("many", &file)], || true).expect("it is a capture");
    let found = inference.finish();
    assert_eq!(found.connections.len(), 100);
    let given_up = found.counts.get("connections_given_up").expect("it is counted");
    assert!((84..100).contains(&given_up), "{given_up}");
}

#[test]
fn a_reader_that_is_told_to_stop_stops() {
    let mut file = header(NANOSECONDS, 101);
    let conversation = conversation(false);
    for i in 0..40_000 {
        let packet = &conversation.packets[3].1;
        file.extend(frame(f64::from(i), 1, packet, packet.len()));
    }
    let inputs = [Input::of("long", &file)];
    let stopped = Inference::new(Limits::default()).read(&inputs, || false);
    assert!(matches!(stopped, Err(Error::Cancelled)));
}

proptest! {
    /// Replaces any byte of a capture by any value, and cuts its end off.
    #[test]
    fn damage_is_an_error_or_counted(at in 0_usize..4000, to: u8, cut in 0_usize..4000) {
        for mut file in [conversation(false).pcap(), pcapng(&conversation(false), 6)] {
            let place = at % file.len();
            file[place] = to;
            file.truncate(file.len() - cut % file.len());
            let _ = read(&file);
        }
    }
}
