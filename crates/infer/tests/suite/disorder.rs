//! Captures with packets twice, out of order, or in several files give the clean capture's tables.

use crate::conversation::{
    Conversation, MSS, frame, header, numbers, of_connection, read, read_all,
};
use cwnd_infer::{Error, Found, Input};
use cwnd_tables::Table;

type Packet = (f64, Vec<u8>);

/// Packets of a long flight, a hole, duplicates, two timeouts, and another flight.
fn conversation(v6: bool, counts: bool, timestamps: bool) -> Conversation {
    let mut conversation = Conversation::empty();
    (conversation.v6, conversation.identifications, conversation.timestamps) =
        (v6, counts, timestamps);
    conversation.open();
    conversation.flight(101.0, 0, 1500);
    for i in 1..5 {
        let at = 300.0 + f64::from(i) * 0.1;
        conversation.server(at, (1500 + i) * MSS, MSS);
        conversation.client(at + 0.01, 0, 1500 * MSS);
    }
    conversation.server(620.0, 1500 * MSS, MSS);
    conversation.client(620.01, 0, 1505 * MSS);
    conversation.flight(670.0, 1505, 20);
    conversation.server(1300.0, 1524 * MSS, MSS);
    conversation.client(1300.01, 0, 1525 * MSS);
    conversation.flight(1350.0, 1525, 1500);
    conversation
}

fn every_talk() -> Vec<Conversation> {
    [(false, true, true), (false, false, true), (false, false, false), (true, false, true)]
        .map(|(v6, counts, timestamps)| conversation(v6, counts, timestamps))
        .to_vec()
}

fn pcap<'a>(packets: impl IntoIterator<Item = &'a Packet>) -> Vec<u8> {
    let frames = packets.into_iter().flat_map(|(at, bytes)| frame(*at, 1, bytes, bytes.len()));
    header(0xa1b2_3c4d, 101).into_iter().chain(frames).collect()
}

fn found<'a>(packets: impl IntoIterator<Item = &'a Packet>) -> Found {
    read(&pcap(packets)).expect("it is a capture")
}

/// Returns both tables without the names of files.
fn tables(found: &Found) -> [Table; 2] {
    let mut connections = found.connections.clone();
    connections.columns.retain(|column| column.name != "file");
    [connections, found.silences.clone()]
}

fn count(found: &Found, name: &str) -> u64 {
    found.counts.get(name).expect("it is counted")
}

fn copy((at, bytes): &Packet, later_ms: f64) -> Packet {
    (at + later_ms, bytes.clone())
}

/// Returns a packet as captured at a mirror port one hop further on.
fn hop(packet: &Packet) -> Packet {
    let (at, mut bytes) = copy(packet, 0.02);
    if bytes[0] >> 4 == 4 {
        bytes[8] -= 1;
        bytes[10] = bytes[10].wrapping_add(1);
    } else {
        bytes[7] -= 1;
    }
    (at, bytes)
}

fn directions(packets: &[Packet]) -> [Vec<Packet>; 2] {
    let (_, first) = &packets[0];
    let ends = if first[0] >> 4 == 4 { 12..16 } else { 8..24 };
    let (a, b) = packets.iter().cloned().partition(|(_, p)| p[ends.clone()] == first[ends.clone()]);
    [a, b]
}

#[test]
fn packets_that_were_captured_twice_count_once() {
    for conversation in every_talk() {
        let clean = conversation.found();
        assert!(of_connection(&clean, "timeouts") >= 2.0);
        for (every, again) in [(1, 0.003), (3, 0.003), (1, 0.0)] {
            let twice = conversation.packets.iter().enumerate().flat_map(|(i, packet)| {
                let copies = 1 + usize::from(i % every == 0);
                (0..copies).map(move |n| copy(packet, n as f64 * again))
            });
            let twice: Vec<Packet> = twice.collect();
            let found = found(&twice);
            assert_eq!(tables(&found), tables(&clean), "one of {every}, {again} ms later");
            let doubled = conversation.packets.len().div_ceil(every) as u64;
            assert_eq!(count(&found, "duplicates"), doubled);
            assert_eq!(count(&found, "tcp_segments"), conversation.packets.len() as u64);
        }
        let mirrored: Vec<Packet> =
            conversation.packets.iter().flat_map(|p| [p.clone(), hop(p)]).collect();
        assert_eq!(tables(&found(&mirrored)), tables(&clean), "a mirror port one hop further");
    }
}

#[test]
fn packets_out_of_order_are_sorted() {
    for conversation in every_talk() {
        let groups = conversation.packets.chunks(4).flat_map(|group| group.iter().rev());
        let found = found(groups);
        assert_eq!(tables(&found), tables(&conversation.found()));
        assert!(count(&found, "reordered") > 1000);
        assert_eq!(count(&found, "steps_back"), 0);
    }
}

#[test]
fn packets_of_one_time_are_ordered_by_what_they_acknowledge() {
    let mut conversation = conversation(false, false, true);
    for (at, _) in &mut conversation.packets {
        *at = (*at * 10.0).floor() / 10.0;
    }
    let groups = conversation.packets.chunks(4).flat_map(|group| group.iter().rev());
    assert_eq!(tables(&found(groups)), tables(&conversation.found()));
}

#[test]
fn directions_one_after_the_other_are_merged() {
    for conversation in every_talk() {
        let [a, b] = directions(&conversation.packets);
        for order in [[&a, &b], [&b, &a]] {
            let found = found(order.into_iter().flatten());
            assert_eq!(tables(&found), tables(&conversation.found()));
            assert_eq!(count(&found, "steps_back"), 1);
        }
    }
}

#[test]
fn several_files_are_merged_in_whatever_order_they_are_given() {
    for conversation in every_talk() {
        let rotated: Vec<Vec<Packet>> =
            conversation.packets.chunks(100).map(<[Packet]>::to_vec).collect();
        assert!(rotated.len() > 16, "more than are open at once");
        for mut several in [directions(&conversation.packets).to_vec(), rotated] {
            for _ in 0..2 {
                let files: Vec<Vec<u8>> = several.iter().map(pcap).collect();
                let inputs: Vec<_> = files.iter().map(|file| Input::of("run/a", file)).collect();
                let found = read_all(&inputs).expect("they are captures");
                assert_eq!(tables(&found), tables(&conversation.found()));
                several.reverse();
            }
        }
    }
}

#[test]
fn a_file_that_is_closed_and_read_again_is_sorted_as_one_that_stays_open() {
    let mut conversation = Conversation::new(20);
    // An ACK and data that it does not acknowledge have the same time; later packets are out of
    // order.
    conversation.packets.swap(5, 6);
    conversation.packets[5].0 = conversation.packets[6].0;
    conversation.packets.swap(20, 21);
    let (file, empty) = (conversation.pcap(), header(0xa1b2_3c4d, 101));
    let with_empty_files = |files: usize| {
        let mut inputs = vec![Input::of("run/a", &file)];
        inputs.extend((0..files).map(|i| Input::of(format!("run/{i}"), &empty)));
        read_all(&inputs).expect("they are captures")
    };
    let open = with_empty_files(0);
    assert_eq!(count(&open, "reordered"), 1);
    let closed = with_empty_files(20);
    assert_eq!(count(&closed, "reordered"), 1);
    assert_eq!(tables(&closed), tables(&open));
}

#[test]
fn runs_whose_clocks_begin_at_zero_are_told_apart_by_their_directories() {
    let file = conversation(false, false, true).pcap();
    let connections = |names: [&str; 2]| {
        let found = read_all(&names.map(|name| Input::of(name, &file))).expect("they are captures");
        found.connections.len()
    };
    assert_eq!(connections(["out/0001/near.pcapng", "out/0002/near.pcapng"]), 2);
    assert_eq!(connections(["out/0001/near.pcapng", "out/0001/copy.pcapng"]), 1);
    let here = std::env::current_dir().expect("there is a directory").join("far.pcapng");
    let names = ["near.pcapng", "./far.pcapng", here.to_str().expect("a name in UTF-8")];
    assert_eq!(connections([names[0], names[1]]), 1);
    assert_eq!(connections([names[0], names[2]]), 1);
    // A clock that was set, to 1 January 2026.
    let mut real = conversation(false, false, true);
    real.packets.iter_mut().for_each(|(at, _)| *at += 1_767_225_600_000.0);
    let real = real.pcap();
    let inputs = ["monday/a.pcap", "tuesday/a.pcap"].map(|name| Input::of(name, &real));
    assert_eq!(read_all(&inputs).expect("they are captures").connections.len(), 1);
}

/// Returns data that the server sends twice, `later` ms apart.
fn sent_twice(counts: bool, later: f64) -> Conversation {
    let mut conversation = Conversation::empty();
    conversation.identifications = counts;
    conversation.timestamps = false;
    conversation.open();
    conversation.flight(101.0, 0, 4);
    conversation.server(150.0, 4 * MSS, MSS);
    conversation.server(150.0 + later, 4 * MSS, MSS);
    conversation.client(150.1 + later, 0, 5 * MSS);
    conversation
}

#[test]
fn data_that_were_sent_again_are_no_duplicates() {
    // A retransmission has another identification, however soon it comes. Without identifications
    // it may come 60 µs later: after a timeout the simulator's sender did so, within a tick of its
    // timestamps.
    for (counts, later) in [(true, 0.005), (true, 60.0), (false, 60.0), (false, 0.06)] {
        let conversation = sent_twice(counts, later);
        let found = conversation.found();
        assert_eq!(count(&found, "duplicates"), 0, "{later} ms later");
        assert_eq!(of_connection(&found, "repeated"), 1.0, "{later} ms later");
        let twice: Vec<Packet> =
            conversation.packets.iter().flat_map(|p| [p.clone(), copy(p, 0.003)]).collect();
        let doubled = read(&pcap(&twice)).expect("it is a capture");
        assert_eq!(tables(&doubled), tables(&found), "{later} ms later, captured twice");
    }
    let soon = sent_twice(false, 0.005).found();
    assert_eq!(count(&soon, "duplicates"), 1, "neither identification nor time tell");
}

#[test]
fn duplicate_acknowledgements_are_no_duplicates() {
    let mut conversation = Conversation::empty();
    conversation.timestamps = false;
    conversation.open();
    for i in 1..4 {
        let at = 101.0 + f64::from(i) * 0.001;
        conversation.server(at, i * MSS, MSS);
        conversation.client(at + 0.0005, 0, 0);
    }
    let found = conversation.found();
    assert_eq!(count(&found, "duplicates"), 0);
    assert_eq!(of_connection(&found, "packets"), conversation.packets.len() as f64);
}

#[test]
fn a_capture_in_too_many_parts_is_refused() {
    let [a, b] = directions(&conversation(false, false, true).packets);
    let parts = (0..9).flat_map(|_| [&a, &b]).flatten();
    let Err(error @ Error::Disordered { .. }) = read(&pcap(parts)) else {
        panic!("it is out of order");
    };
    let told = error.to_string();
    assert!(told.contains("conversation: time goes back 16 times"), "{told}");
    assert!(told.contains("reordercap"), "{told}");
}

#[test]
fn marks_and_their_echoes_are_counted() {
    let mut conversation = Conversation::empty();
    conversation.open();
    conversation.flight(101.0, 0, 8);
    let server = |bytes: &[u8]| bytes[20..22] == 80_u16.to_be_bytes();
    let (mut marked, mut echoed, mut answered) = (0, 0, 0);
    for (place, (_, bytes)) in conversation.packets.iter_mut().enumerate() {
        let syn = bytes[33] & 2 != 0;
        if server(bytes) {
            bytes[1] = u8::from(!syn) * if place % 3 == 0 { 3 } else { 2 };
            marked += u64::from(bytes[1] == 3);
            let cwr = !syn && place % 4 == 0;
            answered += u64::from(cwr);
            bytes[33] |= if syn { 0x40 } else { 0x80 * u8::from(cwr) };
        } else if place % 5 == 0 || syn {
            bytes[33] |= if syn { 0xc0 } else { 0x40 };
            echoed += u64::from(!syn);
        }
    }
    let found = conversation.found();
    let is = |column: &str| numbers(&found.connections, column)[0] as u64;
    assert!(marked > 1 && echoed > 1 && answered > 1);
    let counted = ["ecn", "ect", "ce", "ece", "cwr"].map(is);
    assert_eq!(counted, [1, 8, marked, echoed, answered]);
    assert_eq!(is("server_packets"), 9);
    let plain = Conversation::new(8).found();
    let none = ["ecn", "ect", "ce", "ece", "cwr"].map(|column| of_connection(&plain, column));
    assert_eq!(none, [0.0; 5]);
}
