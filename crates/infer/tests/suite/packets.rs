//! Packets of one connection: positions across the wrap of sequence numbers, copies, reused ports.

use cwnd_infer::headers::Host;
use cwnd_infer::{Input, Packets, Selection};
use cwnd_quantity::{Duration, Time};
use cwnd_tables::ColumnData;

use crate::conversation::{Conversation, MSS, PacketOptions, frame, header, names};

fn packets(file: &[u8], times_ms: (f64, f64)) -> Packets {
    let time = |ms: f64| Time::ZERO + Duration::from_secs_f64(ms / 1e3);
    let host = |address: [u8; 4], port| Host::new(address.into(), port);
    let selection = Selection {
        client: host([10, 0, 0, 1], 40_000),
        server: host([192, 0, 2, 1], 80),
        times: (time(times_ms.0), time(times_ms.1)),
        file: 0,
    };
    Packets::read(&[Input::of("conversation", file)], selection, || true).expect("it is a capture")
}

fn optional(packets: &Packets, column: &str) -> Vec<Option<u64>> {
    match packets.table.column(column) {
        Some(ColumnData::OptionalU64(values)) => {
            (0..packets.table.len()).map(|row| values.get(row)).collect()
        }
        other => panic!("{column}: {other:?}"),
    }
}

fn data(packets: &Packets) -> Vec<(u64, u64, String)> {
    let (start, past) = (optional(packets, "start"), optional(packets, "past"));
    let ends = names(&packets.table, "end");
    let novelty = names(&packets.table, "novelty");
    (0..packets.table.len())
        .filter(|&row| ends[row] == "server")
        .filter_map(|row| Some((start[row]?, past[row]?, novelty[row].clone())))
        .collect()
}

/// A flight across 2³², a hole with a D-SACK, and its retransmission, from a time on.
fn conversation(from: f64) -> Conversation {
    let mut conversation = Conversation::empty();
    let say = |syn| PacketOptions { syn, ..PacketOptions::default() };
    conversation.client_says(from, 0, 0, say(true));
    conversation.server_says(from + 50.0, 0, 0, say(true));
    conversation.client(from + 50.1, 100, 0);
    conversation.flight(from + 101.0, 0, 20);
    conversation.server(from + 120.0, 21 * MSS, MSS);
    let block = PacketOptions { dsack: Some((21 * MSS, 22 * MSS)), ..PacketOptions::default() };
    conversation.client_says(from + 120.1, 0, 20 * MSS, block);
    conversation.server(from + 180.0, 20 * MSS, MSS);
    conversation.client(from + 180.1, 0, 22 * MSS);
    conversation
}

#[test]
fn positions_grow_across_the_wrap_of_sequence_numbers() {
    let found = packets(&conversation(0.0).pcap(), (0.0, 1000.0));
    let mss = u64::from(MSS);
    let mut wanted: Vec<_> =
        (0..20).map(|i| (i * mss, (i + 1) * mss, "in_order".to_owned())).collect();
    wanted.push((21 * mss, 22 * mss, "beyond_hole".to_owned()));
    wanted.push((20 * mss, 21 * mss, "fills_hole".to_owned()));
    assert_eq!(data(&found), wanted);
    // The last three acknowledgements of the client.
    let acked: Vec<u64> = optional(&found, "acked").into_iter().flatten().collect();
    assert_eq!(acked.last(), Some(&(22 * mss)));
    assert!(acked.iter().all(|&acked| acked <= 22 * mss), "{acked:?}");
    let block = optional(&found, "sack_start").into_iter().flatten().next();
    assert_eq!(block, Some(21 * mss));
    assert_eq!(optional(&found, "sack_past").into_iter().flatten().next(), Some(22 * mss));
    let windows: Vec<u64> = optional(&found, "window").into_iter().flatten().collect();
    assert_eq!(windows.last(), Some(&(22 * mss + 60_000)));
    assert_eq!(found.omitted, 0);
}

#[test]
fn copies_are_left_out_and_a_reused_port_begins_another_connection() {
    let both = [conversation(0.0), conversation(20_000.0)];
    let frames = |twice: bool| {
        let packets = both.iter().flat_map(|conversation| &conversation.packets);
        packets.flat_map(move |(at, bytes)| {
            let once = frame(*at, 1, bytes, bytes.len());
            let copy = if twice { frame(*at + 0.001, 1, bytes, bytes.len()) } else { Vec::new() };
            [once, copy].concat()
        })
    };
    let file =
        |twice| header(0xa1b2_3c4d, 101).into_iter().chain(frames(twice)).collect::<Vec<_>>();
    let one = packets(&file(false), (0.0, 10_000.0));
    assert_eq!(one.table.len(), both[0].packets.len());
    for (times, twice) in [((20_000.0, 30_000.0), false), ((20_000.0, 30_000.0), true)] {
        let second = packets(&file(twice), times);
        assert_eq!(data(&second), data(&one));
        assert_eq!(second.table.len(), both[1].packets.len());
    }
    // Nothing of another connection.
    assert_eq!(packets(&file(false), (15_000.0, 16_000.0)).table.len(), 0);
}
