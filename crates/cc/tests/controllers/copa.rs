//! Copa: bounds on the growth of its window.

use cwnd_cc::{Phase, Signal, Start};
use cwnd_quantity::Duration;

use crate::script::{MSS, Script, params, start, text};

/// The retransmission that a timeout sends fills a hole below data that was SACKed long before.
#[test]
fn an_ack_of_a_thousand_segments_doubles_a_window_of_one() {
    let mut copa = Script::new(&params("copa", &[]), &start(10));
    copa.round();
    copa.signal(Signal::Timeout { nth: 1, reduces: true });
    copa.path.phase = Phase::Loss;
    copa.ack(1000 * MSS);
    assert_eq!(copa.cwnd(), 2.0);
}

/// The velocity doubles for as long as the queue stays empty. The paper keeps it for the rest of a
/// window once the target is passed; it then moves the window by at most an eighth.
#[test]
fn a_velocity_that_is_kept_for_a_window_moves_it_by_an_eighth() {
    let bounded = Start { max_window: 2000 * MSS, ..start(100) };
    let mut copa = Script::new(&params("copa", &[("preset", text("paper"))]), &bounded);
    let mut rounds = |rtt_ms, rounds| {
        copa.path.srtt = Some(Duration::from_millis(rtt_ms));
        let mut most = 0.0_f64;
        for _ in 0..rounds {
            copa.path.sent = copa.path.delivered + copa.window().cwnd;
            let before = copa.cwnd();
            copa.round();
            most = most.max(copa.cwnd() / before);
        }
        most
    };
    // Slow start ends with the second call; then the queue is empty.
    rounds(100, 1);
    rounds(200, 6);
    let most = rounds(100, 25);
    assert!((1.06..1.13).contains(&most), "{most}");
}
