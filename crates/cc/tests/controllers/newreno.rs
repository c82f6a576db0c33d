//! NewReno against RFC 5681, RFC 3465 and the closed forms of AIMD.

use cwnd_cc::{Cause, Phase, Signal, Start, Window};
use cwnd_quantity::Duration;
use cwnd_schema::Value;

use crate::{MSS, Script, avoiding, params, start, text};

#[test]
fn slow_start_doubles_the_window_each_round_trip() {
    let mut s = Script::new(&params("newreno", &[]), &start(2));
    for segments in [4.0, 8.0, 16.0, 32.0] {
        s.round();
        assert_eq!(s.cwnd(), segments);
    }
}

/// RFC 3465 § 2.2 and § 2.3: with an ACK for every second segment, L = 1 grows by half per round
/// trip and L = 2 doubles.
#[test]
fn the_abc_limit_decides_what_delayed_acks_cost_slow_start() {
    for (limit, segments) in [(1, 30.0), (2, 40.0), (8, 40.0)] {
        let p = params("newreno", &[("abc_limit", Value::Integer(limit))]);
        let mut s = Script::new(&p, &start(20));
        s.ack_every = 2;
        s.round();
        assert_eq!(s.cwnd(), segments, "L = {limit}");
    }
    let mut s = Script::new(&params("newreno", &[("increase", text("per-ack"))]), &start(20));
    s.ack_every = 2;
    s.round();
    assert_eq!(s.cwnd(), 30.0, "a segment for each ACK");
}

/// RFC 3465 § 2.1: cwnd bytes acknowledged add one segment, to the byte.
#[test]
fn avoidance_adds_a_segment_when_a_window_of_bytes_is_acknowledged() {
    let mut s = Script::new(&params("newreno", &[]), &avoiding(10));
    for window in 10..60 {
        for _ in 0..window * 10 - 1 {
            s.ack(100);
            assert_eq!(s.window().cwnd, window * MSS);
        }
        s.ack(100);
        assert_eq!(s.window().cwnd, (window + 1) * MSS);
    }
}

#[test]
fn bytes_beyond_a_window_count_towards_the_next_segment() {
    let mut s = Script::new(&params("newreno", &[]), &avoiding(10));
    s.ack(9 * MSS);
    s.ack(3 * MSS);
    assert_eq!(s.cwnd(), 11.0, "twelve acknowledged, ten used");
    s.ack(9 * MSS);
    assert_eq!(s.cwnd(), 12.0, "two and nine are eleven");
}

/// Linux, tcp_cong_avoid_ai, by hand: seven segments were counted in avoidance, so the third after
/// a pause is the tenth. Without `keep_count` the seven are forgotten.
#[test]
fn what_was_counted_before_a_pause_is_kept_where_linux_does() {
    for (keep, segments) in [(true, 11.0), (false, 10.0)] {
        let p = params("newreno", &[("keep_count", Value::Bool(keep))]);
        let mut s = Script::new(&p, &avoiding(10));
        s.ack(7 * MSS);
        let keep = Window { cwnd: 9 * MSS, ssthresh: 10 * MSS };
        s.signal(Signal::Idle { idle: Duration::from_secs(1), keep: Some(keep) });
        s.ack(MSS);
        assert_eq!(s.cwnd(), 10.0, "slow start");
        s.ack(3 * MSS);
        assert_eq!(s.cwnd(), segments);
    }
}

/// A count above the smaller window is worth one segment.
#[test]
fn what_was_counted_for_a_large_window_opens_a_small_one_once() {
    let p = params("newreno", &[("keep_count", Value::Bool(true))]);
    let mut s = Script::new(&p, &avoiding(40));
    s.ack(39 * MSS);
    let keep = Window { cwnd: 9 * MSS, ssthresh: 10 * MSS };
    s.signal(Signal::Idle { idle: Duration::from_secs(1), keep: Some(keep) });
    s.ack(MSS);
    let windows = [1, 1, 8, 1, 1].map(|segments| {
        s.ack(segments * MSS);
        s.cwnd()
    });
    // The first of the ACKs opens the window, and counts. 1 + 1 + 8 are below 11, and the next is
    // the eleventh.
    assert_eq!(windows, [11.0, 11.0, 11.0, 12.0, 12.0]);
}

/// RFC 5681 eq. 3 as a differential equation: dW/dn = 1/W, so W² grows by 2 for each ACK.
#[test]
fn growth_by_acks_follows_the_square_root() {
    let p = params("newreno", &[("increase", text("per-ack"))]);
    let mut s = Script::new(&p, &avoiding(10));
    for n in 1..=100_000_u32 {
        s.ack(MSS);
        let closed = (100.0 + 2.0 * f64::from(n)).sqrt();
        assert!((s.cwnd() / closed - 1.0).abs() < 0.01, "{n} ACKs: {} against {closed}", s.cwnd());
    }
}

/// RFC 9438 § 4.3: AVG_AIMD(α, β) = sqrt(α (1 + β) / (2 (1 − β) p)).
#[test]
fn the_mean_window_under_regular_loss_is_that_of_aimd() {
    for beta in [0.5, 0.7, 0.8, 0.9] {
        for spacing in [100_000_u64, 200_000] {
            let p = params("newreno", &[("beta", Value::Float(beta))]);
            let mut s = Script::new(&p, &avoiding(100));
            let mean = s.mean_window_at_loss_spacing(spacing, 60);
            let closed = (spacing as f64 * (1.0 + beta) / (2.0 * (1.0 - beta))).sqrt();
            assert!((mean / closed - 1.0).abs() < 0.01, "β {beta}: {mean} against {closed}");
        }
    }
}

#[test]
fn a_loss_halves_what_is_in_flight_and_never_below_two_segments() {
    let mut s = Script::new(&params("newreno", &[]), &avoiding(40));
    s.signal_in_flight(Signal::Reduce(Cause::Loss), 30 * MSS);
    assert_eq!(s.window(), Window { cwnd: 15 * MSS, ssthresh: 15 * MSS });
    s.signal_in_flight(Signal::Reduce(Cause::Loss), MSS);
    assert_eq!(s.window(), Window { cwnd: 2 * MSS, ssthresh: 2 * MSS });
}

/// RFC 5681 § 3.1: ssthresh is kept when a retransmitted segment times out.
#[test]
fn a_second_timeout_of_the_same_segment_keeps_the_threshold() {
    let mut s = Script::new(&params("newreno", &[]), &avoiding(40));
    s.signal(Signal::Timeout { nth: 1, reduces: true });
    assert_eq!(s.window(), Window { cwnd: MSS, ssthresh: 20 * MSS });
    s.signal(Signal::Timeout { nth: 2, reduces: false });
    assert_eq!(s.window(), Window { cwnd: MSS, ssthresh: 20 * MSS });
}

/// RFC 3465 § 2.3: L is one segment in the slow start that follows a timeout.
#[test]
fn slow_start_after_a_timeout_counts_at_most_a_segment_for_each_ack() {
    let mut s = Script::new(&params("newreno", &[]), &avoiding(40));
    s.signal(Signal::Timeout { nth: 1, reduces: true });
    s.path.phase = Phase::Loss;
    s.ack(10 * MSS);
    assert_eq!(s.cwnd(), 2.0);
    // Up to the threshold, 20 segments; from there it is avoidance.
    for _ in 0..18 {
        s.ack(2 * MSS);
    }
    assert_eq!(s.window(), Window { cwnd: 20 * MSS, ssthresh: 20 * MSS });
    s.ack(19 * MSS);
    assert_eq!(s.cwnd(), 20.0);
    s.ack(MSS);
    assert_eq!(s.cwnd(), 21.0);
}

#[test]
fn what_is_left_of_an_ack_at_the_threshold_counts_in_avoidance() {
    let at = Start { initial_ssthresh: 11 * MSS, ..start(10) };
    let mut s = Script::new(&params("newreno", &[]), &at);
    s.ack(2 * MSS);
    assert_eq!(s.cwnd(), 11.0, "one segment of two");
    s.ack(10 * MSS - 1);
    assert_eq!(s.cwnd(), 11.0);
    s.ack(1);
    assert_eq!(s.cwnd(), 12.0, "the other counted towards these eleven");
}

#[test]
fn nothing_grows_in_recovery_nor_when_unused_nor_on_an_echo() {
    for start in [start(10), avoiding(10)] {
        let mut s = Script::new(&params("newreno", &[]), &start);
        for _ in 0..20 {
            s.ack_with(MSS, true);
        }
        assert_eq!(s.cwnd(), 10.0, "RFC 3168 § 6.1.2");
        s.path.cwnd_limited = false;
        s.round();
        assert_eq!(s.cwnd(), 10.0, "RFC 7661");
        s.path.cwnd_limited = true;
        s.path.phase = Phase::Recovery;
        s.round();
        assert_eq!(s.cwnd(), 10.0, "RFC 5681 § 3.2");
        s.path.phase = Phase::Open;
        s.round();
        assert!(s.cwnd() > 10.0);
    }
}

#[test]
fn growth_in_the_round_trip_of_a_reduction_is_a_choice() {
    for (grow, segments) in [(true, 11.0), (false, 10.0)] {
        let p = params("newreno", &[("grow_in_cwr", Value::Bool(grow))]);
        let mut s = Script::new(&p, &avoiding(20));
        s.signal(Signal::Reduce(Cause::Ecn));
        s.path.phase = Phase::Cwr;
        s.round();
        assert_eq!(s.cwnd(), segments);
    }
}

/// RFC 5681 § 4.1: the restart window is min(IW, cwnd), and ssthresh is kept.
#[test]
fn an_idle_connection_restarts_from_its_initial_window() {
    let mut s = Script::new(&params("newreno", &[]), &start(10));
    s.round();
    s.round();
    s.signal(Signal::Reduce(Cause::Loss));
    assert_eq!(s.window(), Window { cwnd: 20 * MSS, ssthresh: 20 * MSS });
    s.signal(Signal::Idle { idle: Duration::from_secs(5), keep: None });
    assert_eq!(s.window(), Window { cwnd: 10 * MSS, ssthresh: 20 * MSS });
    s.round();
    assert_eq!(s.cwnd(), 20.0);
}

#[test]
fn the_window_stops_at_its_largest() {
    for at in [start(10), avoiding(10)] {
        let at = Start { max_window: 15 * MSS, ..at };
        let mut s = Script::new(&params("newreno", &[]), &at);
        for _ in 0..20 {
            s.round();
        }
        assert_eq!(s.cwnd(), 15.0);
    }
}

/// RFC 9406: a rising RTT turns doubling into growth by a quarter, and five round trips later into
/// avoidance.
#[test]
fn hystart_leaves_slow_start_when_the_rtt_rises() {
    let mut s = Script::new(&params("newreno", &[("slow_start", text("hystart++"))]), &start(10));
    s.round();
    s.round();
    assert_eq!(s.cwnd(), 40.0);
    // The queue builds: 20 ms more. The first eight ACKs of the round still grow by a segment.
    s.path.srtt = Some(Duration::from_millis(120));
    s.round();
    assert_eq!(s.cwnd(), 40.0 + 8.0 + 32.0 / 4.0);
    for _ in 0..4 {
        s.round();
        assert_eq!(s.window().ssthresh, u64::MAX, "conservative slow start");
    }
    s.round();
    // 56, 70, 87.5, 109.25, 136.5: a quarter more for each whole segment acknowledged.
    assert_eq!(s.window().ssthresh, 136_500);
    let before = s.cwnd();
    s.round();
    assert!(s.cwnd() - before <= 1.0, "avoidance");
}

/// RFC 9406 § 4.3: L is 8 for a sender that does not pace.
#[test]
fn hystart_counts_at_most_eight_segments_of_an_ack() {
    let mut s = Script::new(&params("newreno", &[("slow_start", text("hystart++"))]), &start(50));
    s.ack(5 * MSS);
    assert_eq!(s.cwnd(), 55.0);
    s.ack(20 * MSS);
    assert_eq!(s.cwnd(), 63.0);
}

/// RFC 9406 § 4.3: only the first slow start; a later one ends at a known threshold.
#[test]
fn hystart_is_for_the_first_slow_start_only() {
    for kind in ["newreno", "cubic"] {
        let p = params(kind, &[("slow_start", text("hystart++"))]);
        let mut s = Script::new(&p, &start(10));
        s.round();
        s.path.srtt = Some(Duration::from_millis(120));
        while s.window().ssthresh == u64::MAX {
            s.round();
        }
        let threshold = s.ssthresh();
        s.signal(Signal::Idle { idle: Duration::from_secs(9), keep: None });
        assert_eq!(s.cwnd(), 10.0);
        s.round();
        assert_eq!(s.cwnd(), 20.0);
        s.path.srtt = Some(Duration::from_millis(200));
        s.round();
        assert_eq!(
            (s.cwnd(), s.ssthresh()),
            (40.0, threshold),
            "{kind}: a risen RTT does not matter"
        );
    }
}

#[test]
fn parameters_out_of_range_are_refused_by_name() {
    use cwnd_schema::ParamsChoice;
    for kind in ["newreno", "cubic"] {
        for (name, value) in [
            ("beta", Value::Float(1.0)),
            ("beta", Value::Float(0.0)),
            ("beta_ecn", Value::Float(1.5)),
            ("beta_initial", Value::Float(-0.1)),
            ("abc_limit", Value::Integer(0)),
        ] {
            let mut p = cwnd_cc::ControllerParams::of_kind(kind).unwrap();
            let refused = p.params_mut().set(name, &value).unwrap_err().0;
            assert!(refused.contains("out of range"), "{kind} {name}: {refused}");
        }
    }
}
