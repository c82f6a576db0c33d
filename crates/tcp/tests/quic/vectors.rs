//! Replays of `vectors/quic-*.json`, which `tests/reference/quic.py` computes from RFC 9002.

use cwnd_quantity::{Duration, Time};
use cwnd_tcp::quic::{AckFrame, AckRange, Expired, Params, Recovery, SentPacket};
use serde_json::Value as Json;

use crate::controller::{MDS, new_reno};

#[path = "../../../../tests/vector_files.rs"]
mod vector_files;

fn number(value: &Json) -> u64 {
    value.as_u64().expect("it is a whole number")
}

fn list(value: &Json) -> &[Json] {
    value.as_array().expect("it is a list")
}

/// Replays a file; returns the number of events.
fn replay(file: &Json) -> usize {
    let mut events = 0;
    for case in list(&file["cases"]) {
        let p = &case["parameters"];
        let params = Params {
            packet_threshold: number(&p["packet_threshold"]) as u32,
            time_threshold: p["time_threshold"].as_f64().expect("it is a number"),
            initial_rtt: Duration(number(&p["initial_rtt_ns"])),
            max_ack_delay: Duration(number(&p["max_ack_delay_ns"])),
            ..Params::default()
        };
        let mut recovery = Recovery::new(&params, new_reno(MDS), MDS);
        for event in list(&case["events"]) {
            apply(&mut recovery, event);
            check(&recovery, event, &file["tolerance"], &case["name"]);
            events += 1;
        }
    }
    events
}

fn apply(recovery: &mut Recovery, event: &Json) {
    let now = Time(number(&event["now_ns"]));
    match event["event"].as_str() {
        Some("sent") => recovery.on_sent(SentPacket {
            number: number(&event["number"]),
            at: now,
            bytes: number(&event["bytes"]) as u32,
            ack_eliciting: event["ack_eliciting"] == true,
            start: 0,
            len: 0,
        }),
        Some("ack") => {
            let range = |pair: &Json| AckRange { first: number(&pair[0]), last: number(&pair[1]) };
            let ranges: Vec<_> = list(&event["ranges"]).iter().map(range).collect();
            let (delay, ce) = (Duration(number(&event["delay_ns"])), number(&event["ce"]));
            recovery.on_ack(now, &AckFrame { ranges: &ranges, delay, ce }, false);
            assert_eq!(recovery.is_persistent(), event["persistent"] == true, "{event}");
        }
        _ => {
            let probe = if event["probe"] == true { Expired::Probe } else { Expired::Loss };
            assert_eq!(recovery.on_timer(now), probe, "{event}");
        }
    }
}

fn check(recovery: &Recovery, event: &Json, tolerance: &Json, name: &Json) {
    let at = || format!("{name}: {event}");
    let near = |own: Option<u64>, key: &str, doublings: u32| {
        let allowed = number(&tolerance[key]) << doublings;
        match (own, event[key].as_u64()) {
            (Some(own), Some(theirs)) => own.abs_diff(theirs) <= allowed,
            (own, theirs) => own == theirs,
        }
    };
    if event["event"] != "sent" {
        let lost: Vec<u64> = recovery.lost().iter().map(|packet| packet.number).collect();
        let theirs: Vec<u64> = list(&event["lost"]).iter().map(number).collect();
        assert_eq!(lost, theirs, "{}", at());
    }
    let doublings = recovery.probe_timeouts();
    assert_eq!(u64::from(doublings), number(&event["pto_count"]), "{}", at());
    assert_eq!(recovery.bytes_in_flight(), number(&event["in_flight"]), "{}", at());
    let start = recovery.congestion().recovery_start().map(|start| start.0);
    assert_eq!(start, event["recovery_ns"].as_u64(), "{}", at());
    assert_eq!(recovery.min_rtt().unwrap_or_default().0, number(&event["min_rtt_ns"]), "{}", at());
    assert!(near(recovery.smoothed_rtt().map(|rtt| rtt.0), "srtt_ns", 0), "{}", at());
    let deadline = Some(recovery.next_timer().0).filter(|&at| at != Time::NEVER.0);
    assert!(near(deadline, "deadline_ns", doublings), "{deadline:?}, {}", at());
}

#[test]
fn loss_detection_is_that_of_rfc_9002() {
    let files = vector_files::of_kind("quic");
    let events: Vec<usize> = files.iter().map(replay).collect();
    assert!(events.iter().sum::<usize>() > 1500, "{events:?}");
}
