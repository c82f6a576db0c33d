//! Flows of the real kernel whose backoff depends on the round-trip time.

use crate::machine::{self, Held, count, unique};

/// At 4 Mbit/s, 60 ms are 30 kB of queue. The queue is unlimited, so that nothing else ends growth.
/// The receiver delays ACKs by up to 40 ms, which is below the threshold.
const DEEP: &str = "--seconds 9 --rtt-ms 40 --mbit 4";

#[test]
fn delay_aimd_keeps_the_queue_at_its_threshold() {
    let Some(_root) = machine::root_with_btf() else { return };
    let name = unique("aimd");
    let held = Held::new("delay_aimd", &name, &["--threshold", "60"]);
    assert_eq!(held.ready["threshold"], 60.0);
    let [path, reno] = machine::flows([(&name, DEEP), ("reno", DEEP)]);
    let end = held.end();
    eprintln!("{path} {end}, Reno {reno}");
    assert!(count(&end, "delay") >= 3, "{end}");
    // Delay ends slow start, too.
    assert!(count(&end, "delay_in_slow_start") >= 1, "{end}");
    assert_eq!(count(&end, "loss") + count(&end, "ecn"), 0, "{end}");
    // The sender may react a round trip later, in which the window grows by a segment; delayed ACKs
    // add two segments.
    let queue = path["late_queue"].as_u64().unwrap();
    assert!((20_000..50_000).contains(&queue), "{path}");
    assert!(reno["late_queue"].as_u64().unwrap() > 2 * queue, "{reno}");
    assert!(path["flows"][0]["sent"].as_u64().unwrap() > 3_000_000, "it uses the link: {path}");
}

/// The fraction that a reduction leaves depends on the queue's share of the round-trip time.
#[test]
fn adaptive_backoff_leaves_what_empties_the_queue() {
    let Some(_root) = machine::root_with_btf() else { return };
    let [deep, short] = ["--drop-above 40000", "--drop-above 5000"]
        .map(|queue| format!("--seconds 9 --rtt-ms 40 --mbit 4 {queue}"));
    for controller in ["adaptive_reno", "adaptive_cubic"] {
        let names = [unique("deep"), unique("short")];
        let held = names.clone().map(|name| Held::new(controller, &name, &[]));
        machine::flows([(&names[0], &deep), (&names[1], &short)]);
        let parts = held.map(|held| {
            let end = held.end();
            assert!(count(&end, "adapted") >= 2, "{controller}: {end}");
            count(&end, "adapted_permille") / count(&end, "adapted")
        });
        eprintln!("{controller}: {parts:?} permille of the window stay");
        // 40 kB are 80 ms beside 40 ms of path: 0.8 · 40/120; 5 kB are 10 ms: 0.8 · 40/50. A loss
        // that is detected when the queue is half empty leaves more.
        assert!(parts[0] < 550 && parts[0] + 100 < parts[1], "{controller}: {parts:?}");
    }
}
