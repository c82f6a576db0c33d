//! CUBIC as kernels count it, against their sources' arithmetic by hand.

use cwnd_cc::{Cause, Controller as _, Phase, Signal};
use cwnd_quantity::Duration;
use cwnd_schema::Value;

use crate::script::{MSS, Script, avoiding, params, text};

/// A window in congestion avoidance that was just reduced, RTT 20 ms; `steps` sends ACKs a
/// millisecond apart.
fn reduced(preset: &str, segments: u64) -> Script {
    let p = params("cubic", &[("preset", text(preset))]);
    let mut s = Script::with_rtt(&p, &avoiding(segments), Duration::from_millis(20));
    s.ack(MSS);
    s.signal(Signal::Reduce(Cause::Loss));
    s
}

/// Sends `acks` ACKs and returns the number of each that raises the window, with the new window.
fn steps(s: &mut Script, acks: u32) -> Vec<(u32, f64)> {
    let mut seen = Vec::new();
    for number in 1..=acks {
        let before = s.cwnd();
        s.path.now += Duration::from_millis(1);
        s.ack(MSS);
        if s.cwnd() > before {
            seen.push((number, s.cwnd()));
        }
    }
    seen
}

/// A loss leaves 20 · 717 / 1024 = 14 of 20 segments; K is ∛(6 · 2⁴⁰ / 410) = 2524 / 1024 s. At the
/// first ACK t = 20: the function is 410 · 2504³ / 2⁴⁰ = 5.8 below 20, truncated to 5, so the
/// target is 15 and needs 14 ACKs. At 15 the target is no larger, which needs 1500 ACKs. Reno gains
/// a segment every 15 · 15 / 8 = 28 ACKs since the reduction, and is checked 32 ms after the last
/// check. With the 47th ACK it has 15, with the 79th 16. That needs 15 ACKs, which have long been
/// counted.
#[test]
fn linux_truncates_its_target_and_looks_at_renos_window_32_times_a_second() {
    let mut s = reduced("linux", 20);
    assert_eq!(s.cwnd(), 14.0);
    assert_eq!(steps(&mut s, 80), [(14, 15.0), (79, 16.0)]);
}

/// A loss leaves 20 · 819 / 1024 = 15 of 20 segments, which is the threshold: the first ACK belongs
/// to slow start. At 16 the function is 410 · 2185³ / 2⁴⁰ = 3.9 below 20, truncated to 3, which
/// needs 16 ACKs. The ratio of segments to ACKs, 31/16, makes that 8, and Linux waits for one more.
#[test]
fn linux_2_6_22_starts_slowly_at_the_threshold_and_takes_an_ack_for_nearly_two_segments() {
    let mut s = reduced("linux-2.6.22", 20);
    assert_eq!(s.cwnd(), 15.0);
    assert_eq!(steps(&mut s, 10), [(1, 16.0), (10, 17.0)]);
}

/// A loss leaves 14 of 20 segments, as in 6.18, and that is the threshold: the first ACK belongs to
/// slow start. At 15, K is ∛(5 · 2⁴⁰ / 410) = 2375 / 1024 s, and the function is 410 · 2355³ / 2⁴⁰
/// = 4.9 below 20, truncated to 4. That needs 15 segments, which the ratio makes 7 ACKs, and Linux
/// waits for one more. At 16 the target is no larger. Reno gains a segment every 16 · 15 / 8 = 30
/// ACKs, and is checked 32 ms after the last check. With the 42nd ACK it has 16, with the 74th 17.
/// That needs 8 ACKs, which have long been counted.
#[test]
fn linux_3_17_goes_one_segment_past_the_threshold_and_waits_for_an_ack_more() {
    let mut s = reduced("linux-3.17", 20);
    assert_eq!(s.cwnd(), 14.0);
    assert_eq!(steps(&mut s, 80), [(1, 15.0), (9, 16.0), (74, 17.0)]);
}

/// Before a reduction of 100 segments to 70. K is ∛(30 / 0.4) = 4.2 s, and the function is 0.4 ·
/// 4.1³ = 27.9 below 100, truncated to 27: 70 / 3 = 23 ACKs are needed.
fn reduced_in_ns_3() -> Script {
    let p = params("cubic", &[("preset", text("ns-3")), ("reno_friendly", Value::Bool(false))]);
    Script::new(&p, &avoiding(100))
}

/// Returns the number of ACKs until the window grows.
fn acks_for_a_segment(s: &mut Script) -> u32 {
    let before = s.cwnd();
    let mut acks = 0;
    while s.cwnd() == before {
        s.ack(MSS);
        acks += 1;
    }
    acks
}

#[test]
fn ns_3_keeps_what_it_counted_when_the_window_is_reduced() {
    let mut s = reduced_in_ns_3();
    s.signal(Signal::Reduce(Cause::Loss));
    assert_eq!(acks_for_a_segment(&mut s), 23);

    let mut s = reduced_in_ns_3();
    for _ in 0..19 {
        s.ack(MSS);
    }
    assert_eq!(s.cwnd(), 100.0);
    s.signal(Signal::Reduce(Cause::Loss));
    assert_eq!(acks_for_a_segment(&mut s), 23 - 19);
}

#[test]
fn ns_3_counts_the_ack_that_ends_recovery() {
    let mut s = reduced_in_ns_3();
    s.signal(Signal::Reduce(Cause::Loss));
    s.path.phase = Phase::Recovery;
    s.ack(3 * MSS);
    s.ack(10 * MSS);
    s.path.phase = Phase::Open;
    assert_eq!(acks_for_a_segment(&mut s), 23 - 10);
}

/// Before a first loss the least growth is a twentieth: 20 ACKs make 20 segments 21. A reduction
/// counts as a loss even if it is undone. The plateau is then 20, the function is there after 20
/// ms, and 2000 ACKs are needed.
#[test]
fn in_linux_the_plateau_of_a_reduction_that_is_taken_back_stays() {
    let p = params("cubic", &[("preset", text("linux"))]);
    let new = || Script::with_rtt(&p, &avoiding(20), Duration::from_millis(20));
    assert_eq!(steps(&mut new(), 30), [(20, 21.0)]);
    let mut s = new();
    let before = s.controller.clone();
    s.signal(Signal::Reduce(Cause::Loss));
    assert_eq!(s.cwnd(), 14.0);
    s.controller.undo(before, s.path.now, false);
    assert_eq!(s.cwnd(), 20.0);
    assert_eq!(steps(&mut s, 30), []);
}

/// RFC 9438 § 4.9: an undo restores the whole state.
#[test]
fn by_the_rfc_a_reduction_that_is_taken_back_leaves_nothing_behind() {
    let mut s = Script::with_rtt(&params("cubic", &[]), &avoiding(20), Duration::from_millis(20));
    let mut other =
        Script::with_rtt(&params("cubic", &[]), &avoiding(20), Duration::from_millis(20));
    let before = s.controller.clone();
    s.signal(Signal::Reduce(Cause::Loss));
    s.controller.undo(before, s.path.now, false);
    assert_eq!(steps(&mut s, 30), steps(&mut other, 30));
}

/// A window that grew beyond its former size stays, and only the threshold is restored.
#[test]
fn what_grew_since_is_not_taken_back() {
    for kind in ["cubic", "newreno"] {
        let p = params(kind, &[("preset", text("linux"))]);
        let mut s = Script::with_rtt(&p, &avoiding(20), Duration::from_millis(20));
        s.controller.add_in_flight(5 * MSS);
        let before = s.controller.clone();
        s.signal(Signal::Reduce(Cause::Loss));
        s.controller.add_in_flight(20 * MSS);
        let larger = s.window().cwnd;
        s.controller.undo(before, s.path.now, false);
        assert_eq!(s.window().cwnd, larger, "{kind}");
        assert!(larger > 25 * MSS, "{kind}");
    }
}
