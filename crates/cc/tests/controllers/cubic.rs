//! CUBIC against the equations and tables of RFC 9438, and as kernels count it against their
//! sources' arithmetic by hand.

use cwnd_cc::{Cause, Controller as _, Phase, Signal, Start};
use cwnd_quantity::Duration;
use cwnd_schema::Value;

use crate::{MSS, Script, avoiding, params, start, text};

/// Window that starts at `cwnd_epoch` and moves in each round trip R to its target W_cubic(t + R).
/// It solves R · w'(t) = W_cubic(t + R) − w(t), with § 4.2, Fig. 1 and 2, in segments and seconds.
fn closed_form(t: f64, rtt: f64, w_max: f64, cwnd_epoch: f64) -> f64 {
    let k = ((w_max - cwnd_epoch) / 0.4).powf(1.0 / 3.0);
    let steady = |t: f64| {
        let x = t + rtt - k;
        w_max
            + 0.4 * (x.powi(3) - 3.0 * rtt * x.powi(2) + 6.0 * rtt.powi(2) * x - 6.0 * rtt.powi(3))
    };
    steady(t) + (cwnd_epoch - steady(0.0)) * (-t / rtt).exp()
}

/// Compares the window with the closed form for some seconds. The ACKs of a round trip are those of
/// the window a round trip ago, which the closed form neglects: one part in a thousand.
fn follows(s: &mut Script, seconds: u64, w_max: f64, cwnd_epoch: f64) {
    let (begin, rtt) = (s.path.now, s.path.srtt.unwrap().as_secs_f64());
    while s.path.now.since(begin) < Duration::from_secs(seconds) {
        s.round();
        let t = s.path.now.since(begin).as_secs_f64();
        let closed = closed_form(t, rtt, w_max, cwnd_epoch);
        assert!((s.cwnd() / closed - 1.0).abs() < 1e-3, "at {t} s {}, not {closed}", s.cwnd());
    }
}

#[test]
fn the_window_follows_the_cubic_function_to_its_plateau_and_beyond() {
    for (w_max, rtt_ms) in [(1000.0, 100), (5000.0, 50), (300.0, 200)] {
        let p = params("cubic", &[]);
        let rtt = Duration::from_millis(rtt_ms);
        let mut s = Script::with_rtt(&p, &avoiding(w_max as u64), rtt);
        s.signal(Signal::Reduce(Cause::Loss));
        assert_eq!(s.cwnd(), 0.7 * w_max);
        // K = cbrt(0.3 W / 0.4): 9.1, 15.5 and 6.1 s.
        follows(&mut s, 25, w_max, 0.7 * w_max);
        assert!(s.cwnd() > w_max);
    }
}

/// § 4.2, Fig. 2: the window is back after K seconds.
#[test]
fn the_plateau_is_reached_after_k_seconds() {
    let mut s = Script::new(&params("cubic", &[]), &avoiding(1000));
    s.signal(Signal::Reduce(Cause::Loss));
    let k = (0.3_f64 * 1000.0 / 0.4).cbrt();
    while s.path.now.as_secs_f64() < k - 0.2 {
        s.round();
        assert!(s.cwnd() < 1000.0);
    }
    while s.path.now.as_secs_f64() < k + 0.2 {
        s.round();
    }
    assert!((s.cwnd() - 1000.0).abs() < 0.05, "{}", s.cwnd());
}

#[test]
fn delayed_acks_do_not_slow_the_growth() {
    let mut s = Script::new(&params("cubic", &[]), &avoiding(1000));
    s.ack_every = 2;
    s.signal(Signal::Reduce(Cause::Loss));
    follows(&mut s, 20, 1000.0, 700.0);
}

/// § 4.3: AIMD(α = 3 (1 − β) / (1 + β), β) up to the old window, one segment per round trip beyond.
#[test]
fn the_reno_friendly_window_gains_alpha_and_then_one() {
    // 100 segments at 2 ms: the cubic function takes K = 4.2 s, Reno's window 57 round trips, 0.11
    // s.
    let rtt = Duration::from_millis(2);
    let mut s = Script::with_rtt(&params("cubic", &[]), &avoiding(100), rtt);
    s.signal(Signal::Reduce(Cause::Loss));
    let alpha = 3.0 * 0.3 / 1.7;
    let mut closed = 70.0;
    for round in 0..100 {
        let before = s.cwnd();
        let acked = s.round() as f64;
        // A round acknowledges whole segments, of a window that grows within it: Σ α / cwnd, first
        // order.
        let gain = if before < 100.0 { alpha } else { 1.0 };
        closed += gain * acked / (before + gain / 2.0);
        assert!((s.cwnd() - closed).abs() < 0.5, "round {round}: {} against {closed}", s.cwnd());
    }
    assert!(s.cwnd() > 140.0, "{}", s.cwnd());
}

/// RFC 8312 § 4.2, Linux and ns-3: the gain stays α.
#[test]
fn the_reno_friendly_window_may_go_on_with_alpha() {
    let p = params("cubic", &[("reno_catches_up", Value::Bool(false))]);
    let mut s = Script::with_rtt(&p, &avoiding(100), Duration::from_millis(2));
    s.signal(Signal::Reduce(Cause::Loss));
    for _ in 0..100 {
        s.round();
    }
    // 70 segments plus α per round trip: 123, where catching up gives more than 140.
    let expected = 70.0 + 100.0 * 3.0 * 0.3 / 1.7;
    assert!((s.cwnd() - expected).abs() < 0.5, "{} against {expected}", s.cwnd());
}

/// quicly: the gain follows the factor that was used, so that an ECN reduction has its own.
#[test]
fn the_gain_after_an_ecn_reduction_may_be_its_own() {
    for (signal, gain) in
        [(Signal::Reduce(Cause::Ecn), 0.73), (Signal::Reduce(Cause::Loss), 3.0 * 0.3 / 1.7)]
    {
        let rtt = Duration::from_millis(2);
        let p = params("cubic", &[("alpha_ecn", Value::Float(0.73))]);
        let mut s = Script::with_rtt(&p, &avoiding(1000), rtt);
        s.signal(signal);
        let before = s.cwnd();
        for _ in 0..20 {
            s.round();
        }
        assert!((s.cwnd() - before - 20.0 * gain).abs() < 0.05, "{} for {gain}", s.cwnd() - before);
    }
}

/// PyTCP: W_max, t and W_est belong to the last loss, so the first ACK after an ECN reduction sets
/// the window to W_est again (§ 4.3).
#[test]
fn without_a_new_stage_an_ecn_reduction_is_undone_by_the_next_ack() {
    let rtt = Duration::from_millis(2);
    for (new_stage, goes_on) in [(false, true), (true, false)] {
        let p = params("cubic", &[("ecn_new_stage", Value::Bool(new_stage))]);
        let mut s = Script::with_rtt(&p, &avoiding(100), rtt);
        s.signal(Signal::Reduce(Cause::Loss));
        for _ in 0..10 {
            s.round();
        }
        let before = s.cwnd();
        s.signal(Signal::Reduce(Cause::Ecn));
        assert!((s.cwnd() - 0.7 * before).abs() < 0.5);
        s.round();
        let gain = 3.0 * 0.3 / 1.7;
        let expected = if goes_on { before + gain } else { 0.7 * before + gain };
        assert!((s.cwnd() - expected).abs() < 0.7, "{} against {expected}", s.cwnd());
    }
}

#[test]
fn the_reno_friendly_region_can_be_switched_off() {
    let rtt = Duration::from_millis(2);
    let p = params("cubic", &[("reno_friendly", Value::Bool(false))]);
    let mut s = Script::with_rtt(&p, &avoiding(100), rtt);
    s.signal(Signal::Reduce(Cause::Loss));
    follows(&mut s, 6, 100.0, 70.0);
}

/// § 5: mean = (C (3 + β) / (4 (1 − β)))^¼ · RTT^¾ / p^¾, for a loss after every 1/p segments.
#[test]
fn the_mean_window_under_regular_loss_is_that_of_the_response_function() {
    // (RTT in ms, 1/p), where Table 1 and 2 of § 5.1 have CUBIC above Reno.
    for (rtt_ms, spacing) in [(100, 100_000_u64), (100, 1_000_000), (10, 10_000_000)] {
        let off = [("fast_convergence", Value::Bool(false))];
        let rtt = Duration::from_millis(rtt_ms);
        let factor = (0.4_f64 * 3.7 / (4.0 * 0.3)).powf(0.25);
        let closed = factor * (rtt.as_secs_f64() * spacing as f64).powf(0.75);
        // The start is the model's peak. CUBIC moves so little near its plateau that from elsewhere
        // it would take hundreds of losses.
        let peak = closed * 4.0 / 3.7;
        let mut s = Script::with_rtt(&params("cubic", &off), &avoiding(peak as u64), rtt);
        s.signal(Signal::Reduce(Cause::Loss));
        let mean = s.mean_window_at_loss_spacing(spacing, 6);
        assert!((mean / closed - 1.0).abs() < 0.02, "{rtt_ms} ms: {mean} against {closed}");
        let peak_now = s.cwnd() / 0.7;
        assert!((peak_now / peak - 1.0).abs() < 0.02, "{rtt_ms} ms: peak {peak_now}, not {peak}");
    }
}

/// § 5.1, Table 1 and 2: where Reno is faster, CUBIC has Reno's mean, sqrt(3 / (2 p)).
#[test]
fn the_mean_window_on_a_short_path_is_renos() {
    for (rtt_ms, spacing) in [(10, 1_000_u64), (10, 10_000), (1, 100_000)] {
        let off = [("fast_convergence", Value::Bool(false))];
        let rtt = Duration::from_millis(rtt_ms);
        let mut s = Script::with_rtt(&params("cubic", &off), &avoiding(50), rtt);
        let mean = s.mean_window_at_loss_spacing(spacing, 60);
        let reno = (1.5 * spacing as f64).sqrt();
        assert!(
            (mean / reno - 1.0).abs() < 0.03,
            "{rtt_ms} ms, 1/{spacing}: {mean} against {reno}"
        );
    }
}

/// § 4.7: after a reduction below the last maximum, the next maximum is (1 + β) / 2 of the window.
#[test]
fn fast_convergence_lowers_the_plateau() {
    for (on, w_max) in [(true, 0.85 * 700.0), (false, 700.0)] {
        let p = params("cubic", &[("fast_convergence", Value::Bool(on))]);
        let mut s = Script::new(&p, &avoiding(1000));
        s.signal(Signal::Reduce(Cause::Loss));
        s.signal(Signal::Reduce(Cause::Loss));
        assert_eq!(s.cwnd(), 490.0);
        follows(&mut s, 15, w_max, 490.0);
    }
}

/// With β_ecn 0.85, (1 + β) / 2 of the window is what is left of it: the plateau is reached at
/// once. Halfway between the windows before and after is 0.925.
#[test]
fn fast_convergence_after_an_ecn_reduction_depends_on_its_reading() {
    for (point, w_max) in [("beta", 722.5), ("midpoint", 0.925 * 850.0)] {
        let p = params(
            "cubic",
            &[
                ("beta_ecn", Value::Float(0.85)),
                ("fast_convergence_point", text(point)),
                ("reno_friendly", Value::Bool(false)),
            ],
        );
        let mut s = Script::new(&p, &avoiding(1000));
        s.signal(Signal::Reduce(Cause::Ecn));
        assert_eq!(s.cwnd(), 850.0);
        s.signal(Signal::Reduce(Cause::Ecn));
        assert_eq!(s.cwnd(), 722.5);
        follows(&mut s, 12, w_max, 722.5);
    }
}

/// § 4.8: the window is one segment, ssthresh uses β, and the plateau is where slow start ends: K =
/// 0.
#[test]
fn after_a_timeout_the_plateau_is_where_slow_start_ends() {
    let mut s = Script::new(&params("cubic", &[]), &avoiding(1000));
    s.signal(Signal::Timeout { nth: 1, reduces: true });
    assert_eq!((s.cwnd(), s.ssthresh()), (1.0, 700.0));
    s.signal(Signal::Timeout { nth: 2, reduces: false });
    assert_eq!((s.cwnd(), s.ssthresh()), (1.0, 700.0));
    while s.cwnd() < 700.0 {
        s.ack(MSS);
    }
    assert_eq!(s.cwnd(), 700.0);
    let begin = s.path.now;
    for _ in 0..80 {
        s.round();
        let t = s.path.now.since(begin).as_secs_f64();
        let low = 700.0 + 0.4 * (t - 0.1).powi(3);
        // Reno's window gains α, 0.53 segments per round trip.
        let high = 700.0 + (0.4 * (t + 0.1).powi(3)).max(t / 0.1 * 0.53) + 0.01;
        assert!(low <= s.cwnd() && s.cwnd() <= high, "at {t} s {}", s.cwnd());
    }
}

/// § 4.10: after a slow start that ended without a loss there is no maximum yet; the plateau is
/// there, and Reno's gain is one.
#[test]
fn a_slow_start_that_ends_without_a_loss_begins_at_the_plateau() {
    let at = Start { initial_ssthresh: 200 * MSS, ..start(200) };
    let mut s = Script::new(&params("cubic", &[]), &at);
    for round in 1..=5 {
        s.round();
        assert!((s.cwnd() - 200.0 - f64::from(round)).abs() < 0.1, "{}", s.cwnd());
    }
}

/// § 4.2 and § 5.8: the time in which the window was not in use is not part of t.
#[test]
fn time_without_use_of_the_window_does_not_count() {
    let p = params("cubic", &[]);
    let mut used = Script::new(&p, &avoiding(1000));
    let mut paused = Script::new(&p, &avoiding(1000));
    for s in [&mut used, &mut paused] {
        s.signal(Signal::Reduce(Cause::Loss));
        for _ in 0..30 {
            s.round();
        }
    }
    paused.path.cwnd_limited = false;
    paused.ack(MSS);
    paused.path.now += Duration::from_secs(10);
    paused.ack(MSS);
    paused.path.cwnd_limited = true;
    assert_eq!(paused.window(), used.window());
    for _ in 0..100 {
        used.round();
        paused.round();
        // The pause ends with the first ACK that may grow the window, so it includes the wait for
        // that ACK, 0.1 ms.
        let difference = used.window().cwnd.abs_diff(paused.window().cwnd);
        assert!(difference < 10, "{difference} B after 10 s without use");
    }
}

/// § 4.2: the target is at most one and a half windows.
#[test]
fn the_window_grows_by_at_most_half_in_a_round_trip() {
    let p = params("cubic", &[("c", Value::Float(1e9))]);
    let mut s = Script::new(&p, &avoiding(1000));
    s.signal(Signal::Reduce(Cause::Loss));
    s.round();
    s.round();
    for _ in 0..10 {
        let before = s.cwnd();
        let acked = s.round() as i32;
        // Half a segment for each segment acknowledged, of a window that grows meanwhile.
        let bound = before + 0.5 * f64::from(acked);
        assert!(s.cwnd() <= bound + 1e-3, "{before} to {}", s.cwnd());
        assert!(s.cwnd() > 1.49 * before);
    }
}

/// § 4.6: on an ECN-echo the window may fall to one segment, but the threshold not below two; on a
/// loss neither falls below two.
#[test]
fn an_ecn_echo_may_leave_a_single_segment() {
    for (signal, first, second) in
        [(Signal::Reduce(Cause::Ecn), 1.4, 1.0), (Signal::Reduce(Cause::Loss), 2.0, 2.0)]
    {
        let mut s = Script::new(&params("cubic", &[]), &avoiding(2));
        s.signal(signal);
        assert_eq!((s.cwnd(), s.ssthresh()), (first, 2.0));
        s.signal(signal);
        assert_eq!((s.cwnd(), s.ssthresh()), (second, 2.0));
    }
}

#[test]
fn nothing_grows_in_recovery_nor_on_an_echo() {
    let mut s = Script::new(&params("cubic", &[]), &avoiding(1000));
    s.signal(Signal::Reduce(Cause::Loss));
    s.path.phase = Phase::Recovery;
    s.path.now += Duration::from_secs(5);
    s.ack(MSS);
    assert_eq!(s.cwnd(), 700.0);
    // The stage begins after recovery: the five seconds are not part of t.
    s.path.phase = Phase::Open;
    follows(&mut s, 3, 1000.0, 700.0);
    let before = s.window();
    s.ack_with(MSS, true);
    assert_eq!(s.window(), before);
}

/// The gain of Reno's estimated window belongs to the factor that reduced the window: for a delay,
/// that of a loss.
#[test]
fn growth_after_a_reduction_follows_the_factor_that_was_used() {
    let after = |cause: Cause| {
        let p =
            params("cubic", &[("beta_ecn", Value::Float(0.85)), ("alpha_ecn", Value::Float(3.0))]);
        let mut s = Script::new(&p, &avoiding(40));
        s.signal(Signal::Reduce(cause));
        for _ in 0..6 {
            s.round();
        }
        s.window().cwnd
    };
    let (loss, ecn) = (after(Cause::Loss), after(Cause::Ecn));
    assert!(ecn > loss);
    assert_eq!(after(Cause::Delay), loss);
    assert_eq!(after(Cause::Quench { marked: false, level: 0 }), loss);
    assert_eq!(after(Cause::Quench { marked: true, level: 0 }), ecn);
    assert_eq!(after(Cause::Load), ecn);
}

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
