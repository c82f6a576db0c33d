//! TCP*(n) on the real kernel: what its timer does while nothing comes back.

use serde_json::Value;

use crate::machine::{self, Held, count, unique};

/// Times between what was sent into a dead path, seconds: the probe of the tail and what the application still had left out.
fn waits(path: &Value) -> Vec<f64> {
    let times: Vec<f64> =
        path["unheard"].as_array().unwrap().iter().map(|time| time.as_f64().unwrap()).collect();
    let gaps = times.windows(2).map(|two| two[1] - two[0]);
    // The timer's are longer than any gap within a window; the first begins with the last such.
    gaps.filter(|gap| *gap > 0.15).collect()
}

#[test]
fn the_timeout_stays_as_far_as_the_kernel_lets_it() {
    let Some(_root) = machine::root_with_btf() else { return };
    if !machine::bounds_timeouts() {
        return machine::skipped("the kernel has no TCP_RTO_MAX_MS (before 6.15)");
    }
    // The kernel's own first: the program is for all processes.
    let bulk = "--seconds 13 --rtt-ms 40 --dead 5 --drop-above 30000";
    let thin = "--seconds 9 --rtt-ms 40 --dead 3 --drop-above 30000 --thin 2.5";
    let long = "--seconds 14 --rtt-ms 1000 --dead 7 --mbit 2 --drop-above 60000";
    let before = machine::flows([("reno", bulk), ("reno", thin)]);
    let name = unique("star");
    let held = Held::new("tcpstar", &name, &[]);
    let after = machine::flows([("reno", bulk), ("reno", thin), ("reno", long)]);
    let end = held.end();
    let [own, star] =
        [&before[..], &after[..]].map(|runs| runs.iter().map(waits).collect::<Vec<_>>());
    eprintln!("{own:.2?} became {star:.2?}, {end}");
    assert!(count(&end, "bounded") >= 2 && count(&end, "bounded_above") >= 5, "{end}");
    assert!(count(&end, "taken_back") >= 1, "{end}");
    assert_eq!(count(&end, "refused"), 0, "{end}");
    let longest = |path: &Value| waits(path).into_iter().fold(0.0, f64::max);
    // Bulk: doubles, to 1 s.
    assert!(longest(&before[0]) > 1.5, "{:?}", waits(&before[0]));
    assert!((0.9..1.1).contains(&longest(&after[0])), "{:?}", waits(&after[0]));
    // Thin: stays for six expiries, so there are seven timeouts of that length; a probe of the tail may come before.
    assert!(longest(&before[1]) > 0.7, "{:?}", waits(&before[1]));
    let thin = waits(&after[1]);
    assert!(thin.len() >= 7 && thin[..7].iter().all(|wait| *wait < 0.35), "{thin:?}");
    // More than 1 s: stays.
    let timers: Vec<f64> = waits(&after[2]).into_iter().filter(|wait| *wait > 0.9).collect();
    assert!(timers.len() >= 3, "{timers:?}");
    assert!(timers.iter().all(|wait| *wait < 1.3 * timers[0]), "{timers:?}");
}
