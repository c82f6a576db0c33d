//! Flows of the real kernel controlled by load factors, which receivers estimate and echo.

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
