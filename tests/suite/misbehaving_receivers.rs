//! Misbehaving receivers, and the harm to other senders (Savage et al. 1999).

use cwnd_sim::World;

use crate::common::{column, scenario};

/// Runs two flows over 10 Mbit/s, 5 ms and 50 kB, one with a misbehaving receiver. Returns its
/// share of the goodput.
fn share_of_cheat(both: &str, cheat: &str) -> f64 {
    let text = format!(
        r#"
        [run]
        duration = "120 s"
        warmup = "20 s"
        [dumbbell]
        rate = "10 Mbit/s"
        queue = {{ kind = "fifo", limit = "50 kB" }}
        [flow.cheat]
        rtt = "5 ms"
        {both}, {cheat} }}
        [flow.honest]
        rtt = "5 ms"
        start = "100 ms"
        {both} }}
    "#
    );
    let mut world = World::new(scenario(&text));
    let records = world.run(|_| true).expect("nothing stops it");
    let goodput = column(&records.flows, "goodput_bit_s");
    assert_eq!(column(&records.flows, "forged_echoes"), [0.0, 0.0]);
    goodput[0] / (goodput[0] + goodput[1])
}

/// ACK division speeds up a window that grows by ACKs, not one that grows by bytes (RFC 3465 §
/// 2.1).
#[test]
fn divided_acks_gain_where_acks_are_counted_and_not_where_bytes_are() {
    let share = |increase: &str| {
        let both = format!(
            "controller = {{ kind = \"newreno\", increase = \"{increase}\" }}\n\
             endpoint = {{ clock = \"1 ms\""
        );
        share_of_cheat(&both, "cheat_ack_division = 10")
    };
    assert!(share("per-ack") > 0.65, "{}", share("per-ack"));
    assert!((share("abc") - 0.5).abs() < 0.1, "{}", share("abc"));
}

/// Savage et al. 1999 § 3.3: optimistic ACKs conceal losses, and the flow takes nearly all.
#[test]
fn acks_ahead_of_what_arrives_take_nearly_all() {
    let both = "endpoint = { clock = \"1 ms\", max_window = \"150 kB\"";
    let share = share_of_cheat(both, "cheat_optimistic_acks = \"20 ms\"");
    assert!(share > 0.8, "{share}");
}
