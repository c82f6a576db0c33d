//! The example controller against what the RFCs demand of every controller.

use cwnd_cc::{AckSample, Cause, Controller as _, GrowthPermission, Path, Request, Signal};

#[expect(dead_code, reason = "the example's own main is not called")]
#[path = "../../examples/custom_controller.rs"]
mod example;

use example::Scalable;

const MSS: u64 = 1000;

fn path(segments: u64) -> Path {
    Path { mss: MSS as u32, flight_size: segments * MSS, cwnd_limited: true, ..Path::default() }
}

fn of(segments: u64) -> Scalable {
    Scalable { cwnd: (segments * MSS) as f64, ssthresh: f64::INFINITY }
}

/// Runs one round trip: all of the window is acknowledged.
fn round(c: &mut Scalable) {
    let acked_bytes = c.window().cwnd;
    let ack = AckSample { acked_bytes, grow: GrowthPermission::Yes, ..AckSample::default() };
    assert_eq!(c.on_ack(&path(acked_bytes / MSS), &ack), Request::Nothing);
}

/// RFC 5681 § 3.1, eq. 4: max(FlightSize / 2, 2 · SMSS), once for a segment that times out
/// repeatedly; the window is one segment.
#[test]
fn a_timeout_leaves_half_of_what_was_in_flight_as_the_threshold() {
    let mut c = of(80);
    c.on_signal(&path(64), Signal::Timeout { nth: 1, reduces: true });
    assert_eq!((c.window().cwnd, c.window().ssthresh), (MSS, 32 * MSS));
    c.on_signal(&path(1), Signal::Timeout { nth: 2, reduces: false });
    assert_eq!((c.window().cwnd, c.window().ssthresh), (MSS, 32 * MSS));
    let mut c = of(3);
    c.on_signal(&path(3), Signal::Timeout { nth: 1, reduces: true });
    assert_eq!(c.window().ssthresh, 2 * MSS);
}

/// Slow start doubles from 1 to 32 segments in five round trips, then Kelly's rule adds a hundredth
/// in each: after n more 32 · 1.01^n.
#[test]
fn it_comes_back_from_a_timeout_by_slow_start() {
    let mut c = of(64);
    c.on_signal(&path(64), Signal::Timeout { nth: 1, reduces: true });
    for _ in 0..100 {
        round(&mut c);
    }
    let segments = c.window().cwnd as f64 / MSS as f64;
    let expected = 32.0 * 1.01_f64.powi(95);
    assert!((segments / expected - 1.0).abs() < 0.001, "{segments} is not {expected}");
}

#[test]
fn a_reduction_leaves_seven_eighths_and_at_least_two_segments_as_the_threshold() {
    for cause in [Cause::Loss, Cause::Ecn, Cause::Delay] {
        let mut c = of(80);
        c.on_signal(&path(80), Signal::Reduce(cause));
        assert_eq!((c.window().cwnd, c.window().ssthresh), (70 * MSS, 70 * MSS));
    }
    let mut c = of(1);
    c.on_signal(&path(1), Signal::Reduce(Cause::Loss));
    assert_eq!((c.window().cwnd, c.window().ssthresh), (MSS, 2 * MSS));
}
