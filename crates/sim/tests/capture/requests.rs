//! Connections that their clients open, in captures.

use std::collections::BTreeMap;

use cwnd_tables::Records;

use crate::files::{Caught, capture, number, read};

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
