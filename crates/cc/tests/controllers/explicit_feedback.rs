//! Controllers that routers steer: their response to an echo, and the headers that they write.

use cwnd_cc::{AckSample, Cause, Controller, OutgoingData, Path, Signal, Start, rcp, xcp};
use cwnd_packet::{CongestionHeader, Echo};
use cwnd_quantity::{Duration, Rate};

use crate::script::{MSS, start};

fn path() -> Path {
    let ms = Duration::from_millis;
    let (srtt, rtt) = (Some(ms(100)), Some(ms(120)));
    Path { mss: MSS as u32, srtt, rtt, cwnd_limited: true, ..Path::default() }
}

fn outgoing(path: &Path) -> OutgoingData<'_> {
    OutgoingData { now: path.now, mss: path.mss, delivered: 0, sent: 0, rtts: path }
}

fn ack(acked: u64, echo: Echo) -> AckSample {
    AckSample { acked_bytes: acked, echo, ..AckSample::default() }
}

#[test]
fn xcp_adds_what_routers_say_down_to_a_segment() {
    let mut c = xcp::Xcp::new(&xcp::Params::default(), &start(10));
    for (delta, cwnd) in [(700, 10_700), (-1_200, 9_500), (0, 9_500), (i32::MIN, 1_000), (1, 1_001)]
    {
        let _ = c.on_ack(&path(), &ack(MSS, Echo::Delta(delta)));
        assert_eq!(c.window().cwnd, cwnd, "{delta}");
    }
    // An ACK without feedback changes nothing.
    let _ = c.on_ack(&path(), &ack(5 * MSS, Echo::None));
    assert_eq!(c.window().cwnd, 1_001);
}

#[test]
fn xcp_takes_less_but_no_more_where_the_window_is_not_the_limit() {
    let mut c = xcp::Xcp::new(&xcp::Params::default(), &start(10));
    let unused = Path { cwnd_limited: false, ..path() };
    for (delta, cwnd) in [(700, 10_000), (-1_200, 8_800)] {
        let _ = c.on_ack(&unused, &ack(MSS, Echo::Delta(delta)));
        assert_eq!(c.window().cwnd, cwnd);
    }
}

#[test]
fn xcp_hears_duplicates_and_ns2s_does_not() {
    for (params, cwnd) in [(xcp::Params::default(), 10_300), (ns2(), 10_000)] {
        let mut c = xcp::Xcp::new(&params, &start(10));
        let _ = c.on_ack(&path(), &ack(0, Echo::Delta(300)));
        assert_eq!(c.window().cwnd, cwnd);
    }
}

fn ns2() -> xcp::Params {
    let mut params = xcp::Params::default();
    assert!(cwnd_schema::Params::apply_preset(&mut params, "ns2"));
    params
}

#[test]
fn xcp_answers_losses_as_tcp_does_and_grows_by_feedback_alone() {
    let mut c = xcp::Xcp::new(&xcp::Params::default(), &start(10));
    c.on_signal(&path(), Signal::Reduce(Cause::Loss));
    assert_eq!((c.window().cwnd, c.window().ssthresh), (5_000, 5_000));
    c.on_signal(&path(), Signal::Timeout { nth: 1, reduces: true });
    assert_eq!((c.window().cwnd, c.window().ssthresh), (1_000, 2_500));
    c.on_signal(&path(), Signal::Timeout { nth: 2, reduces: false });
    assert_eq!((c.window().cwnd, c.window().ssthresh), (1_000, 2_500));
    let _ = c.on_ack(&path(), &ack(MSS, Echo::Delta(0)));
    assert_eq!(c.window().cwnd, 1_000, "there is no slow start");
}

#[test]
fn xcp_writes_its_window_its_round_trip_and_what_it_wants() {
    let bounded = Start { max_window: 25_000, ..start(10) };
    let mut c = xcp::Xcp::new(&xcp::Params::default(), &bounded);
    let _ = c.on_ack(&path(), &ack(MSS, Echo::Delta(500)));
    // (25000 − 10500) / 10 packets.
    let header = CongestionHeader::Xcp { cwnd: 10_500, rtt_us: 100_000, delta: 1_450 };
    assert_eq!(c.stamp(&outgoing(&path())), header);
    let mut c = xcp::Xcp::new(&ns2(), &start(10));
    let _ = c.on_ack(&path(), &ack(MSS, Echo::Delta(500)));
    let header = CongestionHeader::Xcp { cwnd: 10_000, rtt_us: 0, delta: i32::MAX };
    assert_eq!(c.stamp(&outgoing(&Path { srtt: None, ..path() })), header);
}

#[test]
fn rcp_sends_at_the_newest_rate_and_losses_change_nothing() {
    let mut c = rcp::Rcp::new(&rcp::Params::default(), &start(10));
    assert_eq!((c.pacing(), c.window().cwnd), (None, 10_000));
    for mbit in [8, 2, 80] {
        let rate = Rate::from_mbit(mbit);
        let _ = c.on_ack(&path(), &ack(0, Echo::Rate(rate.into())));
        assert_eq!(c.pacing(), Some(rate));
        // Four round trips of 100 ms.
        assert_eq!(c.window().cwnd, mbit * 50_000);
    }
    c.on_signal(&path(), Signal::Reduce(Cause::Loss));
    c.on_signal(&path(), Signal::Timeout { nth: 1, reduces: true });
    assert_eq!((c.pacing(), c.window().cwnd), (Some(Rate::from_mbit(80)), 4_000_000));
    c.on_signal(&path(), Signal::Idle { idle: Duration::from_secs(2), keep: None });
    assert_eq!((c.pacing(), c.window().cwnd), (None, 10_000));
}

#[test]
fn rcp_of_a_rate_below_a_packet_in_a_round_trip_may_have_two_outstanding() {
    let mut c = rcp::Rcp::new(&rcp::Params::default(), &start(10));
    for bits in [0, 1, 7_999] {
        let _ = c.on_ack(&path(), &ack(MSS, Echo::Rate(Rate(bits).into())));
        assert_eq!((c.pacing(), c.window().cwnd), (Some(Rate(bits.max(1))), 2_000));
    }
}

#[test]
fn rcp_asks_for_any_rate_and_tells_the_newest_round_trip() {
    let mut c = rcp::Rcp::new(&rcp::Params::default(), &start(10));
    let header = CongestionHeader::Rcp { rate: Rate(u64::MAX), rtt_us: 120_000 };
    assert_eq!(c.stamp(&outgoing(&path())), header);
}
