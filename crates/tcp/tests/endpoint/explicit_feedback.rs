//! Tests of explicit feedback: headers of routers reach a controller from the SYN on, and a changed
//! rate applies at once.

use std::sync::Arc;

use cwnd_cc::ControllerParams;
use cwnd_packet::{CongestionHeader, Echo};
use cwnd_quantity::{Bytes, Duration, Rate, Time};
use cwnd_schema::ParamsChoice as _;
use cwnd_tcp::{Body, Config, EchoKind, Flags, Params, Receiver, Segment, Sender};

use crate::common::{at_ms, simple};

const ASKS: CongestionHeader = CongestionHeader::Rcp { rate: Rate(u64::MAX), rtt_us: 0 };

/// A sender with RCP and unlimited data, and its receiver.
fn ends(params: Params) -> (Sender, Receiver) {
    let rcp = ControllerParams::of_kind("rcp").unwrap();
    let params = params.with(|p| {
        p.acks.echo = EchoKind::Last;
        p.windows.initial_window = 4;
    });
    let config = Arc::new(Config::new(params, rcp));
    let mut sender = Sender::new(Arc::clone(&config));
    sender.write(1 << 30);
    sender.open();
    (sender, Receiver::new(config))
}

/// Writes a router's rate into a packet with an RCP header.
fn answered(segment: Segment, rate: Rate) -> Segment {
    let Body::Data { header: CongestionHeader::Rcp { rtt_us, .. }, again } = segment.body else {
        panic!("{segment:?} asks nobody")
    };
    Segment {
        body: Body::Data { header: CongestionHeader::Rcp { rate, rtt_us }, again },
        ..segment
    }
}

fn acked(to: u64, rate: Rate, now: Time) -> Segment {
    let body =
        Body::Ack { window: 1 << 30, echo: Echo::Rate(rate.into()), sack: Default::default() };
    let (flags, ecn) = (Flags::default(), cwnd_packet::Ecn::NotEct);
    Segment { seq: to, ts: now, len: 0, wire: 40, flags, ecn, body }
}

#[test]
fn a_syn_asks_routers_and_data_goes_at_their_rate_at_once() {
    let (mut sender, mut receiver) = ends(simple().with(|p| p.connection.handshake = true));
    let syn = sender.poll_transmit(Time::ZERO).unwrap();
    assert_eq!((syn.flags, syn.header()), (Flags::SYN, Some(ASKS)));
    let rate = Rate::from_mbit(8);
    let reply = receiver.on_segment(at_ms(50), &answered(syn, rate)).unwrap();
    let Body::Ack { echo, .. } = reply.body else { panic!("{reply:?}") };
    assert_eq!((reply.flags, echo), (Flags::SYN, Echo::Rate(rate.into())));
    sender.on_segment(at_ms(100), &reply);
    let first = sender.poll_transmit(at_ms(100)).unwrap();
    assert_eq!(
        first.header(),
        Some(CongestionHeader::Rcp { rate: Rate(u64::MAX), rtt_us: 100_000 })
    );
    assert_eq!(sender.poll_transmit(at_ms(100)), None, "it is paced");
    let gap = rate.time_for(Bytes(u64::from(first.wire)));
    assert_eq!(sender.next_timer(), at_ms(100) + gap);
    assert!(sender.poll_transmit(at_ms(100) + gap).is_some());
}

#[test]
fn a_syn_that_asks_nothing_is_answered_by_nothing() {
    let (mut sender, mut receiver) = ends(simple().with(|p| p.connection.handshake = true));
    let syn = sender.poll_transmit(Time::ZERO).unwrap();
    let reply = receiver.on_segment(at_ms(50), &Segment { body: Body::DATA, ..syn }).unwrap();
    assert!(matches!(reply.body, Body::Ack { echo: Echo::None, .. }), "{reply:?}");
    sender.on_segment(at_ms(100), &reply);
    // The first window is sent unpaced, as no router has given a rate.
    for _ in 0..4 {
        assert!(sender.poll_transmit(at_ms(100)).is_some());
    }
    assert_eq!(sender.poll_transmit(at_ms(100)), None);
}

#[test]
fn a_rate_that_changes_holds_for_the_packet_that_waits() {
    for (mbit, wait_us) in [(1, 8_320), (2, 4_160), (8, 1_040), (100, 500)] {
        let (mut sender, _) = ends(simple().with(|p| p.connection.handshake = false));
        assert!(sender.poll_transmit(Time::ZERO).is_some());
        sender.on_segment(at_ms(100), &acked(1000, Rate::from_mbit(2), Time::ZERO));
        let sent = sender.poll_transmit(at_ms(100)).unwrap();
        assert_eq!(sent.wire, 1040);
        assert_eq!(sender.poll_transmit(at_ms(100)), None);
        // Half a millisecond later another rate arrives: the gap counts from the last packet.
        let heard = at_ms(100) + Duration::from_micros(500);
        sender.on_segment(heard, &acked(2000, Rate::from_mbit(mbit), Time::ZERO));
        let due = at_ms(100) + Duration::from_micros(wait_us);
        if due > heard {
            assert_eq!(sender.poll_transmit(heard), None, "{mbit}");
            assert_eq!(sender.next_timer(), due, "{mbit}");
        }
        assert!(sender.poll_transmit(due).is_some(), "{mbit}");
    }
}

#[test]
fn a_rate_below_a_segment_in_a_timeout_is_no_idle_time() {
    let (mut sender, _) = ends(simple().with(|p| {
        p.connection.handshake = false;
        p.validation.idle_restart = true;
    }));
    for _ in 0..4 {
        assert!(sender.poll_transmit(Time::ZERO).is_some());
    }
    // 1040 B take 4.16 s.
    let rate = Rate(2_000);
    sender.on_segment(at_ms(100), &acked(4000, rate, Time::ZERO));
    for nth in 0..5 {
        let now = at_ms(100 + 4160 * nth);
        assert!(sender.poll_transmit(now).is_some(), "{nth}");
        assert_eq!(sender.poll_transmit(now), None, "{nth}");
        let heard = now + Duration::from_millis(100);
        sender.on_segment(heard, &acked(5000 + 1000 * nth, rate, now));
        assert_eq!(sender.poll_transmit(heard), None, "{nth}");
        assert_eq!(sender.next_timer(), at_ms(100 + 4160 * (nth + 1)), "{nth}");
    }
}
