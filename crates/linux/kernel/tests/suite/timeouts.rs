//! TCP*(n) on the real kernel: its retransmission timer while no ACK arrives.

use serde_json::Value;

use crate::machine::{self, Group, Held, count, unique};

/// Returns the timer's intervals between transmissions into a dead path, s; those before the tail
/// loss probe and between remaining data of the application are left out.
fn waits(path: &Value) -> Vec<f64> {
    let times: Vec<f64> =
        path["unheard"].as_array().unwrap().iter().map(|time| time.as_f64().unwrap()).collect();
    let gaps = times.windows(2).map(|two| two[1] - two[0]);
    // Intervals of the timer are longer than gaps within a window; the first begins with the last
    // such gap.
    gaps.filter(|gap| *gap > 0.15).collect()
}

const BULK: &str = "--seconds 13 --rtt-ms 40 --dead 5 --drop-above 30000";
const THIN: &str = "--seconds 9 --rtt-ms 40 --dead 3 --drop-above 30000 --thin 2.5";
const LONG: &str = "--seconds 14 --rtt-ms 1000 --dead 7 --mbit 2 --drop-above 60000";
/// Default bound of timeouts (`TCP_RTO_MAX_MS`), ms.
const KERNELS_BOUND: u64 = 120_000;

fn longest(path: &Value) -> f64 {
    waits(path).into_iter().fold(0.0, f64::max)
}

/// Only connections of a control group, and of groups below it, are affected. A second instance is
/// for those below, for which the first decides. Changes of either are undone.
#[test]
fn the_timeout_stays_as_far_as_the_kernel_lets_it_in_the_group_that_it_is_for() {
    let Some(_root) = machine::root_with_btf() else { return };
    let Some(group) = Group::new() else { return };
    let _all = machine::all_processes();
    let below = group.below();
    let held = Held::new("tcpstar", &unique("star"), &["--cgroup", group.path()]);
    let also = ["--backoff-after", "3", "--cgroup", below.path()];
    let also = Held::new("tcpstar", &unique("below"), &also);
    let inside = |path: &str| format!("{path} --group {}", group.path());
    let both = format!("{THIN} --group {}", below.path());
    let [bulk, thin, long, twice, own_bulk, own_thin] = machine::flows([
        ("reno", inside(BULK)),
        ("reno", inside(THIN)),
        ("reno", inside(LONG)),
        ("reno", both),
        ("reno", BULK.to_owned()),
        ("reno", THIN.to_owned()),
    ]);
    let (end, also) = (held.end(), also.end());
    let paths = [&bulk, &thin, &long, &twice, &own_bulk, &own_thin];
    let all = paths.map(|path| (waits(path), path["flows"][0]["rto_max"].clone()));
    eprintln!("{all:.2?}, {end}, {also}");
    // Both ends of a connection are in the group.
    assert_eq!((count(&end, "opened"), count(&also, "opened")), (8, 2), "{end} {also}");
    assert!(longest(&own_bulk) > 1.5 && longest(&own_thin) > 0.7, "outside: {all:.2?}");
    assert!(count(&end, "taken_back") >= 1, "{end}");
    // Thin streams: the timeout stays for six expiries, so there are seven intervals of that
    // length; a tail loss probe may precede them.
    let thin = waits(&thin);
    assert!(thin.len() >= 7 && thin[..7].iter().all(|wait| *wait < 0.35), "{thin:?}");
    if machine::bounds_timeouts() {
        assert!(count(&end, "bounded") >= 2 && count(&end, "bounded_above") >= 5, "{end}");
        assert_eq!(count(&end, "refused") + count(&also, "refused"), 0, "{end} {also}");
        // Bulk flows: the timeout doubles, up to 1 s.
        assert!((0.9..1.1).contains(&longest(&bulk)), "{:?}", waits(&bulk));
        // Timeouts above 1 s stay.
        let timers: Vec<f64> = waits(&long).into_iter().filter(|wait| *wait > 0.9).collect();
        assert!(timers.len() >= 3, "{timers:?}");
        assert!(timers.iter().all(|wait| *wait < 1.3 * timers[0]), "{timers:?}");
        // The kernel's default bound is restored once data gets through again.
        for path in [&bulk, &twice, &own_bulk] {
            assert_eq!(path["flows"][0]["rto_max"], KERNELS_BOUND, "{all:.2?}");
        }
    } else {
        machine::noted(
            "this kernel has no bound on timeouts (before 6.15): only thin streams keep theirs",
        );
        assert!(count(&end, "refused") >= 5, "{end}");
        assert!(longest(&bulk) > 1.5, "{:?}", waits(&bulk));
        assert!(longest(&long) > 1.8 * waits(&long).into_iter().find(|wait| *wait > 0.9).unwrap());
    }
}

#[test]
fn it_is_for_a_namespace_and_an_address_and_leaves_others_alone() {
    let Some(_root) = machine::root_with_btf() else { return };
    if !machine::bounds_timeouts() {
        return machine::skipped("the kernel has no TCP_RTO_MAX_MS (before 6.15)");
    }
    let of_this_namespace = Held::new("tcpstar", &unique("star"), &["--own-namespace"]);
    let path = "--seconds 9 --rtt-ms 40 --dead 4.5 --drop-above 30000";
    let with = |value: &str| {
        let mut words: Vec<String> = path.split(' ').map(str::to_owned).collect();
        words.extend(["--hold".to_owned(), value.to_owned()]);
        words
    };
    let hold = |address: &str| {
        let (program, name) = (machine::program(), unique("star"));
        format!("{program} hold tcpstar --name {name} --own-namespace --address {address}")
    };
    let runs = ["10.77.0.1", "10.77.0.9"].map(|address| with(&hold(address)));
    let [address, elsewhere] = std::thread::scope(|scope| {
        runs.map(|path| scope.spawn(move || machine::flow_with("reno", &path)))
            .map(|thread| thread.join().unwrap())
    });
    let said = of_this_namespace.end();
    assert!((0.9..1.1).contains(&longest(&address)), "{address}");
    assert!((1.5..3.6).contains(&longest(&elsewhere)), "{elsewhere}");
    assert_eq!(count(&said, "timeouts"), 0, "{said}");
    assert!(count(&address["held"], "bounded_above") >= 2, "{address}");
    assert_eq!(count(&elsewhere["held"], "opened"), 0, "{elsewhere}");
}
