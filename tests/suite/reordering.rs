//! Reordered packets that are not lost (RFC 8985 § 6.2, RFC 3522, RFC 4015).

use cwnd_tables::Records;

use crate::common::{activity, at, run};

/// Runs CUBIC of Linux, without parts of its stack, over 20 Mbit/s and 40 ms; a fraction of the
/// packets is `late` ms late.
fn cubic(part: f64, late: u64, without: &str) -> Records {
    run(&format!(
        r#"
        [run]
        duration = "30 s"
        sample = "none"
        [dumbbell]
        rate = "20 Mbit/s"
        queue = {{ kind = "fifo", limit = "1 BDP" }}
        bdp_rtt = "40 ms"
        reorder = {part}
        reorder_delay = "{late} ms"
        [flow.main]
        rtt = "40 ms"
        controller = {{ kind = "cubic", preset = "linux" }}
        stack = {{ base = "linux", without = {without} }}
        "#
    ))
}

/// Linux 6.18 carries 19.3 Mbit/s if one packet in a thousand is 5 ms late, and if one in a hundred
/// is.
#[test]
fn a_tenth_of_a_round_trip_late_costs_linux_nothing() {
    for part in [0.001, 0.01] {
        let records = cubic(part, 5, "[]");
        let mbit_s = at(&records.flows, 0, "goodput_bit_s") / 1e6;
        assert!((mbit_s - 19.3).abs() < 0.2, "{part}: {mbit_s} Mbit/s");
        assert!(activity(&records, "loss_reductions_undone") > 0, "{part}");
        // Without a rule for reordering each late packet is taken for lost.
        let records = cubic(part, 5, r#"["rack"]"#);
        let mbit_s = at(&records.flows, 0, "goodput_bit_s") / 1e6;
        assert!(mbit_s < 14.0, "{part}: {mbit_s} Mbit/s");
    }
}

/// On a path without reordering no reduction is undone.
#[test]
fn losses_alone_are_never_taken_back() {
    let records = cubic(0.0, 5, "[]");
    assert!(activity(&records, "loss_reductions") > 5);
    // The activity omits this counter if it is zero.
    assert!(records.activity.get("loss_reductions_undone").is_none());
}

/// Linux 6.18 carries 19.1 Mbit/s if one packet in a hundred is 20 ms late, twice the initial
/// reordering window: DSACK widens it.
#[test]
fn half_a_round_trip_late_widens_the_window_of_linux() {
    let records = cubic(0.01, 20, "[]");
    let mbit_s = at(&records.flows, 0, "goodput_bit_s") / 1e6;
    assert!((mbit_s - 19.1).abs() < 0.4, "{mbit_s} Mbit/s");
    let widened = activity(&records, "retransmissions");
    // A receiver without DSACK leaves the window as it is: late packets are retransmitted, 492
    // times on Linux in 30 s, and the timestamp echo undoes each reduction.
    let records = cubic(0.01, 20, r#"["dsack"]"#);
    let mbit_s = at(&records.flows, 0, "goodput_bit_s") / 1e6;
    assert!((mbit_s - 19.0).abs() < 0.4, "{mbit_s} Mbit/s");
    let again = activity(&records, "retransmissions");
    assert!(
        again > 300 && again > 5 * widened,
        "{again} with the first window, {widened} with wider ones"
    );
}

/// Transfers of 15 kB at 2 % loss: eleven segments, whose tail loss no later segment reveals. Linux
/// probes for it; RFC 6675 waits for the timer more than five times as often.
#[test]
fn short_transfers_hardly_ever_wait_for_the_timer() {
    let timeouts = |without: &str| {
        let records = run(&format!(
            r#"
            [run]
            duration = "60 s"
            sample = "none"
            [dumbbell]
            rate = "20 Mbit/s"
            queue = {{ kind = "fifo", limit = "1 BDP" }}
            bdp_rtt = "40 ms"
            loss = 0.02
            [flow.main]
            count = 10
            rtt = "40 ms"
            controller = {{ kind = "cubic", preset = "linux" }}
            stack = {{ base = "linux", without = {without} }}
            workload = {{ kind = "poisson", interval = "1 s", size = "15 kB" }}
            "#
        ));
        (activity(&records, "timeouts"), records.flows.len())
    };
    let (with, flows) = timeouts("[]");
    let (without, _) = timeouts(r#"["rack"]"#);
    // The rest are lost retransmissions with nothing sent after them.
    assert!(flows > 500 && 50 * with < flows as u64, "{with} of {flows}");
    assert!(without > 5 * with, "{with} with, {without} without");
}
