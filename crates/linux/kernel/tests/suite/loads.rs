//! Flows of the real kernel controlled by load factors, which receivers estimate and echo, or with
//! a backoff that depends on the round-trip time.

use serde_json::Value;

use crate::machine::{self, Group, Held, count, run, unique};

/// Runs a flow over the path of path.py, with its processes in their own control group. Returns the
/// output of path.py, and the last line of `hold`; `None` if no groups are mounted.
fn flow(path: &str, options: &[&str]) -> Option<(Value, Value)> {
    let group = Group::new()?;
    let name = unique("bmcc");
    let held = Held::new("bmcc", &name, &[&["--cgroup", group.path()], options].concat());
    let told = machine::flow(&name, &format!("{path} --group {}", group.path()));
    Some((told, held.end()))
}

fn flows<const N: usize>(flows: [(&str, &[&str]); N]) -> Option<[(Value, Value); N]> {
    let told = std::thread::scope(|scope| {
        let threads = flows.map(|(path, options)| scope.spawn(move || flow(path, options)));
        threads.map(|thread| thread.join().unwrap())
    });
    // All or none: only the machine can lack something.
    let told: Option<Vec<_>> = told.into_iter().collect();
    told.and_then(|told| told.try_into().ok())
}

#[test]
fn a_window_goes_as_the_load_says_that_two_bits_of_many_packets_tell() {
    let Some(_root) = machine::root_with_btf() else { return };
    let path = "--mbit 10 --rtt-ms 40 --seconds";
    let low = format!("{path} 3 --loads 0:0.6");
    // The first estimate of 1 or more ends the start; then the window adds, and rests after a
    // decrease.
    let turns = format!("{path} 5 --loads 0:0.6,2:1.1,3:0.9");
    // From u on all packets have CE, which the kernel also takes for a mark of RFC 3168.
    let beyond = format!("{path} 3 --loads 0:0.9,0.5:1.5");
    // An attacker who does not see the connection must guess where its window is.
    let stranger = format!("{low} --stranger");
    let every = &["--echo", "load-every"];
    let Some([low, turns, beyond, stranger]) =
        flows([(&low, &[]), (&turns, &[]), (&beyond, every), (&stranger, &[])])
    else {
        return;
    };
    let (_, counted) = &stranger;
    assert!(count(counted, "outside") > 100 && count(counted, "marks") == 0, "{counted}");
    assert_eq!(count(counted, "load_decreases"), 0, "{counted}");
    for (path, counted) in [&low, &turns, &beyond] {
        eprintln!("{path} {counted}");
        for never in ["malformed", "outside", "loss", "timeout"] {
            assert_eq!(count(counted, never), 0, "{never}: {counted}");
        }
        assert!(count(counted, "load_acks_heard") > 10, "{counted}");
        // The last ACK may be in flight when the router ends.
        let heard = path["options"].as_u64().unwrap();
        let written = count(counted, "options_written");
        assert!((heard..=heard + 2).contains(&written), "{written}, the router saw {heard}");
        // Linux increments identifications, so each packet selects another threshold.
        let packets = count(counted, "told");
        assert!(path["places"].as_u64().unwrap() * 100 >= packets * 98, "{path} {counted}");
    }
    let (path, counted) = &low;
    assert!(count(counted, "load_acks_multiplied") > 50 && count(counted, "marks") == 0);
    assert_eq!(count(counted, "load_acks_added") + count(counted, "load_decreases"), 0);
    // The window grows by 1.23 ^ (40 / 200) in each of more than forty round trips.
    assert!(path["flows"][0]["cwnd"].as_u64().unwrap() > 40, "{path}");
    let acks = path["acks"].as_u64().unwrap();
    assert!(path["options"].as_u64().unwrap() * 3 < acks, "not each ACK tells: {path}");

    let (_, counted) = &turns;
    for some in ["load_acks_multiplied", "load_acks_added", "load_acks_rested", "load_decreases"] {
        assert!(count(counted, some) >= 1, "{some}: {counted}");
    }

    // The window falls to one segment. The next decrease follows after t_p and a round trip.
    let (path, counted) = &beyond;
    assert!(count(counted, "marks") > 20 && count(counted, "ecn") >= 1, "{counted}");
    assert!((3..=14).contains(&count(counted, "load_decreases")), "{counted}");
    assert!(path["flows"][0]["cwnd"].as_u64().unwrap() <= 20, "{path}");
    assert!(path["options"].as_u64().unwrap() * 10 >= path["acks"].as_u64().unwrap() * 9, "{path}");
}

/// Without estimates, for any reason, the window grows as Reno's does, and an echo of CE halves it.
#[test]
fn who_hears_no_load_does_not_multiply() {
    let Some(_root) = machine::root_with_btf() else { return };
    let forged = |kind: &str| {
        format!("--mbit 10 --rtt-ms 40 --seconds 3 --loads 0:0.3,2:1.5 --option {kind}")
    };
    let [none, length, ahead] = ["none", "length", "ahead"].map(forged);
    let Some(told) = flows([(&none, &[]), (&length, &[]), (&ahead, &[])]) else { return };
    for ((path, counted), refused) in told.iter().zip([None, Some("malformed"), Some("outside")]) {
        eprintln!("{path} {counted}");
        assert_eq!(count(counted, "load_acks_heard"), 0, "{counted}");
        assert_eq!(count(counted, "load_acks_multiplied"), 0, "{counted}");
        assert!(count(counted, "load_acks_unguided") > 20, "{counted}");
        assert!(count(counted, "load_decreases") >= 1, "an echo of CE: {counted}");
        assert!(path["flows"][0]["cwnd"].as_u64().unwrap() < 60, "{path}");
        if let Some(refused) = refused {
            assert!(count(counted, refused) > 3, "{refused}: {counted}");
        }
    }
}

#[test]
fn bmcc_takes_what_there_is_and_no_more() {
    for (options, told) in [
        (&["--most", "0.9"][..], "--most is above 1"),
        (&["--least", "0.8"], "--least is at most --high"),
        (&["--interface", "lo"], "bmcc has no --interface"),
        (&["--address", "::1"], "an IPv4 address"),
        (&["--echo", "none"], "load-changed"),
        (&["--whole-host", "--own-namespace"], "cannot be used with"),
    ] {
        let said = run(&[&["load", "bmcc", "--name", &unique("none")], options].concat());
        assert_eq!(said.code, 2, "{}", said.err);
        assert!(said.err.contains(told), "{}", said.err);
    }
    let other = run(&["load", "abe_reno", "--address", "198.18.0.1"]);
    assert_eq!(other.code, 2, "{}", other.err);
}

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
