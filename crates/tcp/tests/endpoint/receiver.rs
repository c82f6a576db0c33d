//! Timing and contents of ACKs: RFC 5681 § 4.2, RFC 2018 § 4, RFC 7323 § 4.3. Echoes of marks and
//! of routers' headers: nothing is lost or reported twice where ACKs are delayed, held or
//! compressed.

use cwnd_packet::{CongestionHeader, Echo, Ecn};
use cwnd_quantity::{Bytes, Duration, Rate, Time};
use cwnd_schema::Share;
use cwnd_tcp::{AckRule, Body, EchoKind, Flags, Params, Receiver, Recovery, Segment};
use proptest::prelude::*;

use super::{MSS, at_ms, config, data, ms, simple};

fn receiver(params: Params) -> Receiver {
    Receiver::new(config(params))
}

/// Delivers segment `k`; returns the acknowledgement number in segments, if there is an ACK.
fn arrive(r: &mut Receiver, now: Time, k: u64) -> Option<u64> {
    r.on_segment(now, &data(k * MSS, MSS, now)).map(|ack| ack.seq / MSS)
}

#[test]
fn every_nth_segment_is_acknowledged() {
    for n in [1, 2, 3, 8] {
        let mut r = receiver(simple().with(|p| p.acks.ack_every = n));
        for k in 0..40 {
            let ack = arrive(&mut r, at_ms(k), k);
            let due = (k + 1) % u64::from(n) == 0;
            assert_eq!(ack, due.then_some(k + 1), "every {n}th");
        }
    }
}

#[test]
fn a_delayed_ack_waits_for_its_timer_and_no_longer() {
    let mut r = receiver(simple().with(|p| {
        p.acks.ack_every = 2;
        p.acks.ack_delay = ms(40);
    }));
    assert_eq!(arrive(&mut r, at_ms(10), 0), None);
    assert_eq!(r.next_timer(), at_ms(50));
    assert_eq!(r.on_timer(at_ms(49)), None);
    assert_eq!(r.on_timer(at_ms(50)).map(|ack| ack.seq), Some(MSS));
    assert_eq!(r.next_timer(), Time::NEVER);
    // The count of segments restarts after an ACK.
    assert_eq!(arrive(&mut r, at_ms(60), 1), None);
    assert_eq!(arrive(&mut r, at_ms(61), 2), Some(3));
    assert_eq!(r.next_timer(), Time::NEVER);
}

#[test]
fn later_segments_do_not_put_the_delayed_ack_off() {
    let mut r = receiver(simple().with(|p| {
        p.acks.ack_every = 10;
        p.acks.ack_delay = ms(40);
    }));
    for k in 0..4 {
        arrive(&mut r, at_ms(10 * k), k);
    }
    assert_eq!(r.next_timer(), at_ms(40));
}

/// RFC 5681 § 4.2: an immediate ACK for a gap, for its filling, and for a duplicate.
#[test]
fn gaps_their_filling_and_duplicates_are_acknowledged_at_once() {
    let mut r = receiver(simple().with(|p| p.acks.ack_every = 4));
    assert_eq!(arrive(&mut r, at_ms(0), 0), None);
    assert_eq!(arrive(&mut r, at_ms(1), 2), Some(1), "a gap");
    assert_eq!(arrive(&mut r, at_ms(2), 4), Some(1), "another");
    assert_eq!(arrive(&mut r, at_ms(3), 2), Some(1), "a duplicate above the gap");
    assert_eq!(arrive(&mut r, at_ms(4), 1), Some(3), "filled in part");
    assert_eq!(arrive(&mut r, at_ms(5), 3), Some(5), "filled");
    assert_eq!(arrive(&mut r, at_ms(6), 1), Some(5), "a duplicate below");
    assert_eq!(arrive(&mut r, at_ms(7), 5), None, "in order again");
    assert_eq!(r.counters().delivered_bytes, 6 * MSS);
}

#[test]
fn a_segment_that_overlaps_what_is_there_delivers_only_what_is_new() {
    let mut r = receiver(simple());
    r.on_segment(at_ms(0), &data(0, 1000, at_ms(0)));
    r.on_segment(at_ms(1), &data(3000, 1000, at_ms(1)));
    let ack = r.on_segment(at_ms(2), &data(500, 3000, at_ms(2))).unwrap();
    assert_eq!(ack.seq, 4000);
    assert_eq!(r.counters().delivered_bytes, 4000);
}

/// Receiver of segments of 500 B that has received the first 5000 B, as in the examples of RFC 2018
/// § 4.
fn at_5000() -> Receiver {
    let mut r = receiver(simple().with(|p| p.packets.mss = Bytes(500)));
    for k in 0..10 {
        r.on_segment(at_ms(k), &data(500 * k, 500, at_ms(k)));
    }
    r
}

/// Acknowledgement number and SACK blocks, as pairs of edges.
fn told(ack: &Segment) -> (u64, Vec<(u64, u64)>) {
    let edges = |b: &cwnd_tcp::SackBlock| (b.start(ack.seq), b.end(ack.seq));
    (ack.seq, ack.sack().iter().filter(|b| b.len > 0).map(edges).collect())
}

fn arrive_500(r: &mut Receiver, seq: u64) -> (u64, Vec<(u64, u64)>) {
    told(&r.on_segment(at_ms(20), &data(seq, 500, at_ms(20))).unwrap())
}

/// RFC 2018 § 4, case 2.
#[test]
fn when_the_first_of_eight_is_lost_one_block_grows() {
    let mut r = at_5000();
    for k in 1..8 {
        assert_eq!(arrive_500(&mut r, 5000 + 500 * k), (5000, vec![(5500, 6000 + 500 * (k - 1))]));
    }
}

/// RFC 2018 § 4, case 3: the second, fourth, sixth and eighth segments are lost; then the fourth
/// arrives, then the second.
#[test]
fn sack_blocks_come_most_recent_first() {
    let mut r = at_5000();
    assert_eq!(arrive_500(&mut r, 5000), (5500, vec![]));
    assert_eq!(arrive_500(&mut r, 6000), (5500, vec![(6000, 6500)]));
    assert_eq!(arrive_500(&mut r, 7000), (5500, vec![(7000, 7500), (6000, 6500)]));
    let three = vec![(8000, 8500), (7000, 7500), (6000, 6500)];
    assert_eq!(arrive_500(&mut r, 8000), (5500, three));
    assert_eq!(arrive_500(&mut r, 6500), (5500, vec![(6000, 7500), (8000, 8500)]));
    assert_eq!(arrive_500(&mut r, 5500), (7500, vec![(8000, 8500)]));
}

#[test]
fn of_four_blocks_the_three_most_recent_are_told() {
    let mut r = at_5000();
    for seq in [5500, 7000, 8000, 9000] {
        arrive_500(&mut r, seq);
    }
    // The oldest block grows and becomes the most recent; the second oldest is left out.
    let expected = vec![(5500, 6500), (9000, 9500), (8000, 8500)];
    assert_eq!(arrive_500(&mut r, 6000), (5000, expected));
}

#[test]
fn without_sack_no_blocks_are_told() {
    let mut r = receiver(simple().with(|p| p.recovery.recovery = Recovery::NewReno));
    let ack = r.on_segment(at_ms(0), &data(MSS, MSS, at_ms(0))).unwrap();
    assert_eq!(told(&ack), (0, vec![]));
}

/// Delivers segment `k` with a timestamp; returns the acknowledgement number in segments and the
/// echo.
fn echoed(r: &mut Receiver, k: u64, ts: u64) -> Option<(u64, u64)> {
    r.on_segment(at_ms(100), &data(k * MSS, MSS, Time(ts))).map(|ack| (ack.seq / MSS, ack.ts.0))
}

/// RFC 7323 § 4.3 (A): the delay of the ACK is part of the round trip.
#[test]
fn a_delayed_ack_echoes_the_earliest_segment_it_acknowledges() {
    let mut r = receiver(simple().with(|p| p.acks.ack_every = 3));
    assert_eq!(echoed(&mut r, 0, 1), None);
    assert_eq!(echoed(&mut r, 1, 2), None);
    assert_eq!(echoed(&mut r, 2, 3), Some((3, 1)));
    assert_eq!(echoed(&mut r, 3, 4), None);
    let ack = r.on_timer(at_ms(300)).unwrap();
    assert_eq!((ack.seq / MSS, ack.ts.0), (4, 4));
}

/// The table of RFC 7323 § 4.3: A, then C, B, E, D with an ACK each.
#[test]
fn a_gap_echoes_the_last_segment_that_advanced_the_window() {
    let mut r = receiver(simple());
    assert_eq!(echoed(&mut r, 0, 1), Some((1, 1)));
    assert_eq!(echoed(&mut r, 2, 3), Some((1, 1)));
    assert_eq!(echoed(&mut r, 1, 2), Some((3, 2)));
    assert_eq!(echoed(&mut r, 4, 5), Some((3, 2)));
    assert_eq!(echoed(&mut r, 3, 4), Some((5, 4)));
}

/// RFC 7323 § 4.3 (2): TS.Recent is updated only if TSval ≥ TS.Recent.
#[test]
fn what_was_sent_before_what_was_echoed_is_not_echoed() {
    let mut r = receiver(simple());
    // Segment 0 was retransmitted at 9 and overtook segment 1, sent at 5.
    assert_eq!(echoed(&mut r, 0, 9), Some((1, 9)));
    assert_eq!(echoed(&mut r, 1, 5), Some((2, 9)));
    assert_eq!(echoed(&mut r, 2, 10), Some((3, 10)));
}

/// RFC 7323 § 5.3 R2: timestamps of segments outside the window are ignored.
#[test]
fn a_late_duplicate_does_not_set_the_echo_back() {
    let mut r = receiver(simple().with(|p| p.acks.ack_every = 2));
    assert_eq!(echoed(&mut r, 0, 9), None);
    // The original of the segment retransmitted at 9 arrives late.
    assert_eq!(echoed(&mut r, 0, 5), Some((1, 9)));
    assert_eq!(
        echoed(&mut r, 0, 12),
        Some((1, 9)),
        "a duplicate is not new, however late it was sent"
    );
}

#[test]
fn acks_are_counted_and_advertise_the_window() {
    let mut r = receiver(simple().with(|p| p.windows.receive_window = Bytes(12_345)));
    for k in 0..5 {
        let ack = r.on_segment(at_ms(k), &data(k * MSS, MSS, at_ms(k))).unwrap();
        assert!(matches!(ack.body, Body::Ack { window: 12_345, .. }));
        assert_eq!(ack.ecn, Ecn::NotEct, "RFC 3168 § 6.1.4");
    }
    let c = r.counters();
    assert_eq!((c.acks_sent, c.segments, c.wire_bytes), (5, 5, 5 * 1040));
}

#[test]
fn an_ack_delay_of_zero_acknowledges_in_the_same_instant() {
    let mut r = receiver(simple().with(|p| {
        p.acks.ack_every = 2;
        p.acks.ack_delay = Duration::ZERO;
    }));
    assert_eq!(arrive(&mut r, at_ms(5), 0), None);
    assert_eq!(r.next_timer(), at_ms(5));
    assert!(r.on_timer(at_ms(5)).is_some());
}

/// Linux's receiver at 4 segments/ms over a round trip of 100 ms, after its window has grown; all
/// below `LOST` has arrived.
fn linux() -> Receiver {
    let policy = AckRule::Quick;
    let mut r = receiver(simple().with(|p| {
        p.acks.ack_policy = policy;
        p.acks.ack_every = 2;
        p.acks.ack_delay = ms(40);
    }));
    for k in 0..LOST {
        let _ = arrive_late(&mut r, k);
    }
    r
}

const LOST: u64 = 30_000;

fn at_quarter(k: u64) -> Time {
    at_ms(1000) + Duration::from_micros(250 * k)
}

/// Delivers segment `k`, 50 ms after it was sent. Returns time and first SACK block, in segments
/// from [`LOST`] on, of the ACKs due until then and now.
fn arrive_late(r: &mut Receiver, k: u64) -> Vec<(Time, (u64, u64))> {
    let now = at_quarter(k);
    let mut acks = Vec::new();
    let due = r.next_timer();
    if due <= now {
        acks.extend(r.on_timer(due).map(|ack| (due, ack)));
    }
    let segment = data(k * MSS, MSS, Time(now.0 - 50_000_000));
    acks.extend(r.on_segment(now, &segment).map(|ack| (now, ack)));
    let newest = |ack: &Segment| {
        let number = |byte: u64| (byte / MSS).saturating_sub(LOST);
        let first = ack.sack()[0];
        (number(first.start(ack.seq)), number(first.end(ack.seq)))
    };
    acks.iter().map(|(at, ack)| (*at, newest(ack))).collect()
}

/// tcp_input.c, `__tcp_ack_snd_check`: `TCP_FASTRETRANS_THRESH` duplicate ACKs are sent at once,
/// then one when the timer of 1 ms with its slack of 0.1 ms expires.
#[test]
fn behind_a_hole_linux_acknowledges_three_segments_and_then_once_a_millisecond() {
    let mut r = linux();
    let acks: Vec<_> = (1..=15).flat_map(|k| arrive_late(&mut r, LOST + k)).collect();
    let later = |k| at_quarter(LOST + k) + Duration::from_micros(1100);
    assert_eq!(
        acks,
        [
            (at_quarter(LOST + 1), (1, 2)),
            (at_quarter(LOST + 2), (1, 3)),
            (at_quarter(LOST + 3), (1, 4)),
            (later(4), (1, 9)),
            (later(9), (1, 14)),
        ]
    );
    // The segment that fills the hole is acknowledged at once, and no timer is left.
    let now = at_quarter(LOST + 15);
    let ack = r.on_segment(now, &data(LOST * MSS, MSS, now)).unwrap();
    assert_eq!(ack.seq / MSS, LOST + 16);
    assert_eq!(r.next_timer(), Time::NEVER);
}

/// tcp_input.c, `tcp_sack_new_ofo_skb`: compressed ACKs are sent before a third block displaces the
/// first.
#[test]
fn a_third_block_sends_what_waits() {
    let mut r = linux();
    let acks: Vec<_> = [1, 2, 3, 4, 6].iter().flat_map(|k| arrive_late(&mut r, LOST + k)).collect();
    assert_eq!(acks.len(), 3, "the fourth waits, and so does a second block");
    let third = arrive_late(&mut r, LOST + 8);
    assert_eq!(third, [(at_quarter(LOST + 8), (6, 7))], "without the third");
    assert_eq!(r.next_timer(), at_quarter(LOST + 8) + Duration::from_micros(1100));
}

/// Without SACK the sender must count each duplicate ACK.
#[test]
fn without_sack_linux_acknowledges_every_segment_behind_a_hole() {
    let policy = AckRule::Quick;
    let mut r = receiver(simple().with(|p| {
        p.acks.ack_policy = policy;
        p.recovery.recovery = Recovery::NewReno;
    }));
    for k in 0..LOST {
        let _ = arrive_late(&mut r, k);
    }
    for k in 1..20 {
        let now = at_quarter(LOST + k);
        let segment = data((LOST + k) * MSS, MSS, Time(now.0 - 50_000_000));
        assert_eq!(r.on_segment(now, &segment).map(|ack| ack.seq / MSS), Some(LOST), "{k}");
    }
}

fn echoing(echo: EchoKind, params: Params) -> Receiver {
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
fn echoes_of(r: &mut Receiver, arrivals: &[Segment]) -> Vec<Option<Echo>> {
    (0..).zip(arrivals).map(|(i, s)| r.on_segment(at_ms(i), s).map(|a| echo(&a))).collect()
}

#[test]
fn a_delayed_ack_tells_the_sum_of_all_that_it_is_for_by_number_or_by_timer() {
    let mut r = echoing(EchoKind::Sum, delayed());
    let arrivals = [xcp(300, 0), xcp(-100, 1), xcp(7, 2)];
    assert_eq!(echoes_of(&mut r, &arrivals), [None, Some(Echo::Delta(200)), None]);
    assert_eq!(r.on_timer(at_ms(42)).map(|ack| echo(&ack)), Some(Echo::Delta(7)));
    assert_eq!(echoes_of(&mut r, &[xcp(0, 3), xcp(0, 4)]), [None, Some(Echo::Delta(0))], "once");
}

#[test]
fn a_delayed_ack_tells_the_newest_rate() {
    let rcp = |mbit, k| with(CongestionHeader::Rcp { rate: Rate::from_mbit(mbit), rtt_us: 0 }, k);
    let mut r = echoing(EchoKind::Last, delayed());
    let rate = |mbit| Some(Echo::Rate(Rate::from_mbit(mbit).into()));
    let arrivals = [rcp(9, 0), rcp(5, 1), rcp(6, 2), rcp(8, 3)];
    assert_eq!(echoes_of(&mut r, &arrivals), [None, rate(5), None, rate(8)]);
}

/// RFC 9768 § 3.2: the counter is cumulative, so that a lost ACK loses no mark. Duplicates count,
/// too.
#[test]
fn marks_are_counted_through_delayed_acks() {
    let mut r = echoing(EchoKind::CeCount, delayed());
    let arrivals = [Ecn::Ce, Ecn::Ce, Ecn::Ect0, Ecn::Ce].into_iter().zip(0..);
    let mut arrivals: Vec<Segment> = arrivals.map(|(ecn, k)| with_ecn(ecn, k)).collect();
    arrivals.push(arrivals[3]);
    let count = |packets| Some(Echo::Ce { packets });
    assert_eq!(echoes_of(&mut r, &arrivals), [None, count(2), None, count(3), count(4)]);
    assert_eq!(r.counters().ce_segments, 4);
}

#[test]
fn a_change_of_the_ecn_field_is_told_at_once_and_the_same_value_waits() {
    let mut r = echoing(EchoKind::Changes, delayed());
    let fields = [Ecn::Ect0, Ecn::Ce, Ecn::Ce, Ecn::Ce, Ecn::Ect0];
    let arrivals: Vec<Segment> = fields.into_iter().zip(0..).map(|(e, k)| with_ecn(e, k)).collect();
    let load = |ecn: Ecn, changes| Some(Echo::Load { value: ecn as u16, bits: 2, changes });
    let expected = [None, load(Ecn::Ce, 1), None, load(Ecn::Ce, 1), load(Ecn::Ect0, 2)];
    assert_eq!(echoes_of(&mut r, &arrivals), expected);
}

/// Only the classic policy sets ECE (RFC 3168 § 6.1.3). Of the others tested here, `changes` and
/// `ce-count` report marks in their echo.
#[test]
fn only_the_classic_policy_sets_ece_and_it_echoes_nothing_else() {
    for kind in [EchoKind::Sum, EchoKind::Last, EchoKind::Changes, EchoKind::CeCount] {
        let mut r = echoing(kind, simple());
        let ack = r.on_segment(at_ms(0), &with_ecn(Ecn::Ce, 0)).unwrap();
        assert!(!ack.flags.has(Flags::ECE), "{kind:?}");
    }
    let mut r = echoing(EchoKind::Classic, delayed());
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
    let mut r = echoing(EchoKind::Changes, params);
    let mut now = at_ms(1000);
    // From 5 on every second segment, so that each lies behind another hole.
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
        let mut r = echoing(EchoKind::Sum, params);
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
