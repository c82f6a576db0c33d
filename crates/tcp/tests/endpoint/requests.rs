//! Requests of controllers and routers to the transport, and events that a controller sees: every
//! ACK, a reduction a window whatever the cause, headers from the SYN on, pacing by a rate that may
//! change at once.

use std::sync::{Arc, Mutex};

use cwnd_cc::{
    AckSample, Cause, Controller, ControllerParams, DynController, GrowthPermission, OutgoingData,
    Path, Phase, Request, Signal, Start, Window,
};
use cwnd_packet::{CongestionHeader, Echo};
use cwnd_quantity::{Bytes, Duration, Rate, Time};
use cwnd_schema::ParamsChoice as _;
use cwnd_tcp::{Body, Config, EchoKind, Flags, Params, Receiver, Recovery, Segment, Sender};

use super::{Hand, MSS, at_ms, data, ms, newreno, preset, simple};

/// A controller whose window only signals change. It makes the configured requests, and records the
/// events that it receives.
#[derive(Clone, Debug, Default)]
struct Toy {
    cwnd: u64,
    asks: Option<Cause>,
    header: CongestionHeader,
    pacing: Option<Rate>,
    heard: Arc<Mutex<Heard>>,
}

#[derive(Debug, Default)]
struct Heard {
    acks: Vec<(Path, AckSample)>,
    signals: Vec<Signal>,
}

impl Controller for Toy {
    fn on_ack(&mut self, path: &Path, ack: &AckSample) -> Request {
        self.heard.lock().unwrap().acks.push((*path, *ack));
        self.asks.map_or(Request::Nothing, Request::Reduce)
    }

    fn on_signal(&mut self, path: &Path, signal: Signal) {
        self.heard.lock().unwrap().signals.push(signal);
        self.cwnd = (self.cwnd * 3 / 4).max(u64::from(path.mss));
    }

    fn window(&self) -> Window {
        Window { cwnd: self.cwnd, ssthresh: self.cwnd }
    }

    fn stamp(&mut self, _: &OutgoingData) -> CongestionHeader {
        self.header
    }

    fn pacing(&self) -> Option<Rate> {
        self.pacing
    }
}

fn hand(params: Params, toy: Toy) -> (Hand, Arc<Mutex<Heard>>) {
    let toy = Toy { cwnd: 12 * MSS, ..toy };
    let heard = Arc::clone(&toy.heard);
    let mut h = Hand::new(params);
    let make = move |_: &Start| -> Box<dyn DynController> { Box::new(toy.clone()) };
    let config = Config::new(h.params.clone(), newreno(&[])).with_controller(make);
    let mut sender = Sender::new(Arc::new(config));
    sender.write(1 << 40);
    sender.open();
    h.sender = sender;
    h.sends();
    (h, heard)
}

fn asking() -> Toy {
    asking_for(Cause::Delay)
}

fn asking_for(cause: Cause) -> Toy {
    Toy { asks: Some(cause), ..Toy::default() }
}

fn signals(heard: &Mutex<Heard>) -> Vec<Signal> {
    heard.lock().unwrap().signals.clone()
}

const DELAY: Signal = Signal::Reduce(Cause::Delay);

#[test]
fn a_reduction_is_granted_once_a_window_of_what_was_sent() {
    let (mut h, heard) = hand(simple(), asking());
    h.ack(1);
    assert_eq!((signals(&heard), h.sender.phase()), (vec![DELAY], Phase::Cwr));
    // Segments 0 to 11 were in flight; segment 12 was not sent then, as the window is 9.
    for k in 2..=12 {
        h.ack(k);
        assert_eq!(signals(&heard).len(), 1, "segment {k} was out when the window was reduced");
    }
    h.ack(13);
    assert_eq!(signals(&heard), [DELAY, DELAY]);
    assert_eq!(h.sender.counters().reductions_for(Cause::Delay), 2);
    assert_eq!(h.sender.counters().reductions_for(Cause::Loss), 0);
}

fn of_linux() -> Params {
    preset("linux").with(|p| {
        p.ecn.ecn = true;
        p.connection.handshake = false;
        p.packets.mss = simple().packets.mss;
        p.packets.header = simple().packets.header;
    })
}

#[test]
fn it_is_spread_and_announced_as_one_for_a_mark_is() {
    let (mut h, heard) = hand(of_linux(), asking_for(Cause::Ecn));
    // PRR: 9 of the 12 in flight may stay, so 3 of 4 ACKs send a segment.
    let sent: Vec<usize> = (1..=12).map(|k| h.ack(k).len()).collect();
    assert_eq!(sent.iter().sum::<usize>(), 9, "{sent:?}");
    assert!(sent.iter().all(|&n| n <= 1), "no pause, no burst: {sent:?}");
    assert_eq!((signals(&heard), h.sender.phase()), (vec![Signal::Reduce(Cause::Ecn)], Phase::Cwr));
    assert_eq!(h.sender.counters().reductions_for(Cause::Ecn), 1);
    assert_eq!(h.sender.counters().reductions.iter().sum::<u64>(), 1);
    let (mut h, _) = hand(simple().with(|p| p.ecn.ecn = true), asking());
    let mut flags = Vec::new();
    for k in 1..=6 {
        h.ack(k);
        flags.extend(h.last.iter().map(|s| s.flags));
    }
    assert_eq!(flags.iter().filter(|f| f.has(Flags::CWR)).count(), 1);
    assert!(flags[0].has(Flags::CWR), "the first new data after it");
}

/// Linux has no such causes: its controllers set the window themselves.
#[test]
fn what_linux_knows_no_cause_for_is_at_once() {
    for cause in [Cause::Delay, Cause::Load, Cause::Quench { marked: true, level: 0 }] {
        let (mut h, heard) = hand(of_linux(), asking_for(cause));
        let sent: Vec<usize> = (1..=12).map(|k| h.ack(k).len()).collect();
        assert_eq!(sent, [0, 0, 0, 1, 1, 1, 1, 1, 1, 1, 1, 1], "{cause:?}");
        assert_eq!((signals(&heard), h.sender.phase()), (vec![Signal::Reduce(cause)], Phase::Open));
        assert_eq!(h.sender.counters().reductions_for(cause), 1, "{cause:?}");
    }
}

#[test]
fn a_loss_in_a_window_that_was_reduced_for_delay_reduces_nothing_more() {
    for recovery in [Recovery::Sack, Recovery::NewReno] {
        let (mut h, heard) = hand(simple().with(|p| p.recovery.recovery = recovery), asking());
        h.ack(1);
        for nth in 1..=4 {
            h.duplicate(1, nth);
        }
        assert_eq!(h.sender.phase(), Phase::Recovery, "{recovery:?}");
        assert_eq!(signals(&heard), [DELAY], "{recovery:?}");
        assert_eq!(h.sender.counters().losses_in_cwr, 1);
    }
}

#[test]
fn nothing_is_granted_while_losses_are_repaired() {
    let (mut h, heard) = hand(simple(), asking());
    h.expire();
    h.ack(1);
    assert_eq!(h.sender.phase(), Phase::Loss);
    assert_eq!(signals(&heard), [Signal::Timeout { nth: 1, reduces: true }]);
}

#[test]
fn every_ack_is_heard_with_what_it_told() {
    let (mut h, heard) = hand(simple(), Toy::default());
    h.ack(2);
    h.sack(2, &[(3, 4)]);
    h.sack(2, &[(3, 5)]);
    h.sack(2, &[(3, 6)]);
    h.ack_ece(7);
    let heard = heard.lock().unwrap();
    let told: Vec<_> = heard.acks.iter().map(|(_, a)| (a.acked_bytes, a.newly_sacked)).collect();
    assert_eq!(told, [(2000, 0), (0, 1000), (0, 1000), (0, 1000), (5000, 0)]);
    let lost: Vec<_> = heard.acks.iter().map(|(_, a)| a.newly_lost).collect();
    assert_eq!(lost, [0, 0, 0, 1000, 0]);
    let grow: Vec<_> = heard.acks.iter().map(|(_, a)| a.grow).collect();
    assert_eq!(
        grow,
        [
            GrowthPermission::Yes,
            GrowthPermission::No,
            GrowthPermission::No,
            GrowthPermission::No,
            GrowthPermission::No
        ]
    );
    let (path, ack) = heard.acks[0];
    assert_eq!(
        (path.rtt, ack.rtt, path.delivered, path.sent),
        (Some(ms(100)), Some(ms(100)), 2000, 12_000)
    );
}

#[test]
fn what_is_lost_is_told_once_without_sack_too() {
    let (mut h, heard) =
        hand(simple().with(|p| p.recovery.recovery = Recovery::NewReno), Toy::default());
    for _ in 0..5 {
        h.ack(0);
    }
    h.ack(4);
    h.ack(14);
    let heard = heard.lock().unwrap();
    let lost: Vec<_> = heard.acks.iter().map(|(_, a)| a.newly_lost).filter(|&b| b > 0).collect();
    assert_eq!(lost, [1000, 1000], "the fast retransmit, and the hole behind a partial ACK");
}

#[test]
fn headers_go_with_data_and_pacing_spreads_it() {
    let header = CongestionHeader::Xcp { cwnd: 12_000, rtt_us: 100_000, delta: -7 };
    // A segment of 1040 B takes 1.04 ms.
    let pacing = Some(Rate::from_mbit(8));
    let (mut h, _) = hand(simple(), Toy { header, pacing, ..Toy::default() });
    assert_eq!(h.last.len(), 1);
    assert_eq!(h.last[0].header(), Some(header));
    let mut at = h.now;
    for _ in 0..5 {
        let next = h.sender.next_timer();
        assert_eq!(next.since(at), Rate::from_mbit(8).time_for(Bytes(1040)));
        (h.now, at) = (next, next);
        assert_eq!(h.sends().len(), 1);
    }
}

fn quench(seq: u64, marked: bool) -> Segment {
    data(seq, 0, Time::ZERO).quench(marked, 0, 0)
}

#[test]
fn a_quench_counts_once_a_round_trip_with_marks_and_losses() {
    let params = simple().with(|p| {
        p.ecn.ecn = true;
        p.quench.obey_quench = true;
    });
    let (mut h, heard) = hand(params, Toy::default());
    h.ack(1);
    h.sender.on_segment(h.now, &quench(5000, true));
    h.sender.on_segment(h.now, &quench(6000, false));
    h.ack_ece(2);
    for nth in 1..=4 {
        h.duplicate(2, nth);
    }
    assert_eq!(signals(&heard), [Signal::Reduce(Cause::Quench { marked: true, level: 0 })]);
    assert_eq!((h.sender.counters().quenches, h.sender.counters().losses_in_cwr), (2, 1));
}

#[test]
fn a_quench_about_what_is_not_outstanding_is_ignored_and_so_is_every_one_by_default() {
    let (mut h, heard) = hand(simple().with(|p| p.quench.obey_quench = true), Toy::default());
    h.ack(3);
    for seq in [0, 2999, 15_000, u64::MAX] {
        h.sender.on_segment(h.now, &quench(seq, false));
    }
    assert_eq!((signals(&heard), h.sender.counters().quenches), (vec![], 0));
    let (mut h, heard) = hand(simple(), Toy::default());
    h.sender.on_segment(h.now, &quench(1000, false));
    assert_eq!((signals(&heard), h.sender.counters().quenches), (vec![], 1), "RFC 6633 § 3");
}

#[test]
fn who_does_not_obey_ece_grows_on_it_and_hears_its_echo() {
    let (mut h, heard) = hand(
        simple().with(|p| {
            p.ecn.ecn = true;
            p.ecn.obey_ece = false;
        }),
        Toy::default(),
    );
    let ack = Body::Ack { window: 1 << 30, echo: Echo::Delta(5), sack: Default::default() };
    let ack = Segment { body: ack, flags: Flags::ECE, ..data(1000, 0, h.now) };
    h.sender.on_segment(h.now, &ack);
    let heard = heard.lock().unwrap();
    let (_, sample) = heard.acks[0];
    assert_eq!(
        (sample.ece, sample.grow, sample.echo),
        (true, GrowthPermission::Yes, Echo::Delta(5))
    );
    assert_eq!(heard.signals, []);
}

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
