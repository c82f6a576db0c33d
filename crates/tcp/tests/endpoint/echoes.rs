//! Echoes of marks and of routers' headers in ACKs: nothing is lost or reported twice where ACKs
//! are delayed, held or compressed.

use cwnd_packet::{CongestionHeader, Echo, Ecn};
use cwnd_quantity::{Duration, Rate, Time};
use cwnd_schema::Share;
use cwnd_tcp::{AckRule, Body, EchoKind, Flags, Params, Receiver, Segment};
use proptest::prelude::*;

use crate::common::{MSS, at_ms, config, data, ms, simple};

fn receiver(echo: EchoKind, params: Params) -> Receiver {
    Receiver::new(config(params.with(|p| p.acks.echo = echo)))
}

/// Parameters with an ACK for two segments, delayed by up to 40 ms.
fn delayed() -> Params {
    simple().with(|p| {
        p.acks.ack_every = 2;
        p.acks.ack_delay = ms(40);
    })
}

fn with(header: CongestionHeader, k: u64) -> Segment {
    Segment { body: Body::Data { header, again: false }, ..data(k * MSS, MSS, at_ms(k)) }
}

fn xcp(delta: i32, k: u64) -> Segment {
    with(CongestionHeader::Xcp { cwnd: 10_000, rtt_us: 100_000, delta }, k)
}

fn with_ecn(ecn: Ecn, k: u64) -> Segment {
    Segment { ecn, ..data(k * MSS, MSS, at_ms(k)) }
}

fn echo(ack: &Segment) -> Echo {
    match ack.body {
        Body::Ack { echo, .. } => echo,
        _ => panic!("it is no ACK of TCP"),
    }
}

fn delta(ack: &Segment) -> i64 {
    match echo(ack) {
        Echo::Delta(delta) => i64::from(delta),
        other => panic!("{other:?} is no sum"),
    }
}

/// Echoes of the ACKs for segments that arrive 1 ms apart; `None` for a segment without an ACK.
fn told(r: &mut Receiver, arrivals: &[Segment]) -> Vec<Option<Echo>> {
    (0..).zip(arrivals).map(|(i, s)| r.on_segment(at_ms(i), s).map(|a| echo(&a))).collect()
}

#[test]
fn a_delayed_ack_tells_the_sum_of_all_that_it_is_for_by_number_or_by_timer() {
    let mut r = receiver(EchoKind::Sum, delayed());
    let arrivals = [xcp(300, 0), xcp(-100, 1), xcp(7, 2)];
    assert_eq!(told(&mut r, &arrivals), [None, Some(Echo::Delta(200)), None]);
    assert_eq!(r.on_timer(at_ms(42)).map(|ack| echo(&ack)), Some(Echo::Delta(7)));
    assert_eq!(told(&mut r, &[xcp(0, 3), xcp(0, 4)]), [None, Some(Echo::Delta(0))], "once");
}

#[test]
fn a_delayed_ack_tells_the_newest_rate() {
    let rcp = |mbit, k| with(CongestionHeader::Rcp { rate: Rate::from_mbit(mbit), rtt_us: 0 }, k);
    let mut r = receiver(EchoKind::Last, delayed());
    let rate = |mbit| Some(Echo::Rate(Rate::from_mbit(mbit).into()));
    let arrivals = [rcp(9, 0), rcp(5, 1), rcp(6, 2), rcp(8, 3)];
    assert_eq!(told(&mut r, &arrivals), [None, rate(5), None, rate(8)]);
}

/// RFC 9768 § 3.2: the counter is cumulative, so that a lost ACK loses no mark. Duplicates count,
/// too.
#[test]
fn marks_are_counted_through_delayed_acks() {
    let mut r = receiver(EchoKind::CeCount, delayed());
    let arrivals = [Ecn::Ce, Ecn::Ce, Ecn::Ect0, Ecn::Ce].into_iter().zip(0..);
    let mut arrivals: Vec<Segment> = arrivals.map(|(ecn, k)| with_ecn(ecn, k)).collect();
    arrivals.push(arrivals[3]);
    let count = |packets| Some(Echo::Ce { packets });
    assert_eq!(told(&mut r, &arrivals), [None, count(2), None, count(3), count(4)]);
    assert_eq!(r.counters().ce_segments, 4);
}

#[test]
fn a_change_of_the_ecn_field_is_told_at_once_and_the_same_value_waits() {
    let mut r = receiver(EchoKind::Changes, delayed());
    let fields = [Ecn::Ect0, Ecn::Ce, Ecn::Ce, Ecn::Ce, Ecn::Ect0];
    let arrivals: Vec<Segment> = fields.into_iter().zip(0..).map(|(e, k)| with_ecn(e, k)).collect();
    let load = |ecn: Ecn, changes| Some(Echo::Load { value: ecn as u16, bits: 2, changes });
    let expected = [None, load(Ecn::Ce, 1), None, load(Ecn::Ce, 1), load(Ecn::Ect0, 2)];
    assert_eq!(told(&mut r, &arrivals), expected);
}

/// Only the classic policy sets ECE (RFC 3168 § 6.1.3). Of the others, `changes` and `ce-count`
/// report marks in their echo.
#[test]
fn only_the_classic_policy_sets_ece_and_it_echoes_nothing_else() {
    for kind in [EchoKind::Sum, EchoKind::Last, EchoKind::Changes, EchoKind::CeCount] {
        let mut r = receiver(kind, simple());
        let ack = r.on_segment(at_ms(0), &with_ecn(Ecn::Ce, 0)).unwrap();
        assert!(!ack.flags.has(Flags::ECE), "{kind:?}");
    }
    let mut r = receiver(EchoKind::Classic, delayed());
    assert_eq!(r.on_segment(at_ms(0), &with_ecn(Ecn::Ce, 0)), None);
    // ECE lasts until CWR: the ACK for two segments echoes the mark of the first, and so does the
    // next ACK.
    for k in [1, 3] {
        let ack = r.on_segment(at_ms(k), &xcp(5, k)).or_else(|| r.on_timer(at_ms(k + 100)));
        let ack = ack.unwrap();
        assert!(ack.flags.has(Flags::ECE));
        assert_eq!(echo(&ack), Echo::None);
    }
    let cwr = Segment { flags: Flags::CWR, ..data(4 * MSS, MSS, at_ms(4)) };
    let ack = r.on_segment(at_ms(4), &cwr).or_else(|| r.on_timer(at_ms(200))).unwrap();
    assert!(!ack.flags.has(Flags::ECE));
}

#[test]
fn an_ack_that_goes_ahead_of_compressed_ones_hides_the_load_as_they_do() {
    let params = simple().with(|p| {
        p.acks.ack_policy = AckRule::Quick;
        p.cheat.cheat_load = Share(1.0);
    });
    let mut r = receiver(EchoKind::Changes, params);
    let mut now = at_ms(1000);
    // Every second segment, so that each lies behind another hole.
    for k in (0..4).chain((5..60).step_by(2)) {
        let segment = Segment { ts: now, ..with_ecn(Ecn::Ce, k) };
        if let Some(ack) = r.on_segment(now, &segment) {
            assert!(matches!(echo(&ack), Echo::Load { value: 0, .. }), "{k}: {:?}", echo(&ack));
        }
        now += Duration::from_micros(10);
    }
}

/// Pauses: short against Linux's compression of ACKs, or up to 60 ms, longer than the delay of
/// ACKs.
fn pause() -> impl Strategy<Value = Duration> {
    prop_oneof![(0u64..200).prop_map(Duration::from_micros), (0u64..60).prop_map(ms)]
}

proptest! {
    /// For arrivals in any order, with any gaps, duplicates and pauses, the sum of the echoes
    /// equals the sum of the feedback that arrived.
    #[test]
    fn sums_are_conserved_by_every_way_of_holding_acks_back(
        arrivals in prop::collection::vec((0u64..60, -1000i32..1000, pause()), 1..200),
        ack_every in 1u32..5,
        linux in any::<bool>(),
    ) {
        let ack_policy = if linux { AckRule::Quick } else { AckRule::Rfc5681 };
        let params = simple().with(|p| {
            p.acks.ack_policy = ack_policy;
            p.acks.ack_every = ack_every;
            p.acks.ack_delay = ms(40);
        });
        let mut r = receiver(EchoKind::Sum, params);
        let (mut now, mut came, mut told) = (at_ms(1000), 0, 0);
        for (k, feedback, pause) in arrivals {
            while r.next_timer() <= now {
                let at = r.next_timer();
                told += r.on_timer(at).map_or(0, |ack| delta(&ack));
            }
            came += i64::from(feedback);
            let segment = Segment { ts: now, ..xcp(feedback, k) };
            told += r.on_segment(now, &segment).map_or(0, |ack| delta(&ack));
            now += pause;
        }
        while r.next_timer() != Time::NEVER {
            let at = r.next_timer();
            told += r.on_timer(at).map_or(0, |ack| delta(&ack));
        }
        // Feedback that no ACK has carried yet waits for the next one.
        let last = Segment { ts: now, ..xcp(0, 59) };
        while let Some(ack) = r.on_segment(now, &last).or_else(|| r.on_timer(r.next_timer())) {
            let more = delta(&ack);
            told += more;
            if more == 0 {
                break;
            }
        }
        prop_assert_eq!(told, came);
    }
}
