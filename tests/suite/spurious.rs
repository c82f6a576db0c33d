//! Spurious timeouts: the path is longer for a while, and nothing is lost (RFC 5682, RFC 3522, RFC
//! 4015).

use cwnd_tables::Records;

use crate::common::{activity, at, run};

/// Runs Reno of Linux over 50 Mbit/s and 100 ms. Six times the path is a second longer for a
/// second, so that no packet arrives meanwhile.
fn reno(endpoint: &str) -> Records {
    run(&format!(
        r#"
        [run]
        duration = "60 s"
        sample = "none"
        [dumbbell]
        rate = "50 Mbit/s"
        queue = {{ kind = "fifo", limit = "1 BDP" }}
        bdp_rtt = "100 ms"
        delay_steps = [{{ at = "5 s", added = "1 s" }}, {{ at = "6 s", added = "0 ms" }}]
        delay_steps_period = "10 s"
        [flow.main]
        rtt = "100 ms"
        controller = {{ kind = "newreno", preset = "linux" }}
        endpoint = {endpoint}
        "#
    ))
}

fn mbit_s(records: &Records) -> f64 {
    at(&records.flows, 0, "goodput_bit_s") / 1e6
}

/// Linux 6.18 carries 33.3 Mbit/s: it undoes each of the six.
#[test]
fn a_second_without_arrivals_costs_linux_no_window() {
    let records = reno(r#""linux""#);
    assert!((mbit_s(&records) - 33.3).abs() < 2.0, "{} Mbit/s", mbit_s(&records));
    assert_eq!(activity(&records, "timeouts_undone"), 6);
    // F-RTO or Eifel alone detects all of them.
    for off in ["timeout_frto", "timeout_eifel"] {
        let records = reno(&format!(r#"{{ preset = "linux", {off} = false }}"#));
        assert_eq!(activity(&records, "timeouts_undone"), 6, "without {off}");
    }
}

/// Without both, each timeout halves the window, and late packets are retransmitted.
#[test]
fn without_a_way_to_see_it_each_is_taken_for_a_loss() {
    let records =
        reno(r#"{ preset = "linux", timeout_frto = false, timeout_eifel = false, dsack = false }"#);
    assert!(mbit_s(&records) < 24.0, "{} Mbit/s", mbit_s(&records));
    assert!(records.activity.get("timeouts_undone").is_none());
    let again = activity(&records, "retransmissions");
    assert!(again > 2 * activity(&reno(r#""linux""#), "retransmissions"), "{again}");
}
