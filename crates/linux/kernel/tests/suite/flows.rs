//! Flows of the real kernel with the project's controllers, over a path that marks and drops.

use std::process::{Command, Stdio};
use std::thread::sleep;
use std::time::Duration;

use crate::machine::{self, Group, Held, count, program, run, unique};

const CONTROLLERS: [&str; 2] = ["abe_reno", "abe_cubic"];

#[test]
fn marks_are_answered_as_marks_and_drops_as_drops() {
    let Some(_root) = machine::root_with_btf() else { return };
    for controller in CONTROLLERS {
        let name = unique("cause");
        let held = Held::new(controller, &name, &[]);
        let marked = machine::flow(&name, "--seconds 4 --rtt-ms 30 --mark-above 20000");
        let after_marks = held.now();
        assert!(marked["marks"].as_u64().unwrap() >= 3, "{marked}");
        assert!(count(&after_marks, "ecn") >= 3, "{controller}: {after_marks}");
        assert!(count(&after_marks, "ecn") <= marked["marks"].as_u64().unwrap(), "{after_marks}");
        assert_eq!(
            count(&after_marks, "loss") + count(&after_marks, "loss_after_ecn"),
            0,
            "{after_marks}"
        );

        machine::flow(&name, "--seconds 4 --rtt-ms 30 --drop-above 30000");
        let after_drops = held.end();
        assert!(count(&after_drops, "loss") >= 3, "{controller}: {after_drops}");
        assert_eq!(count(&after_drops, "ecn"), count(&after_marks, "ecn"), "{after_drops}");
        assert_eq!((count(&after_drops, "opened"), count(&after_drops, "closed")), (2, 2));
    }
}

/// With Accurate ECN a receiver counts marks, and does not repeat ECE until it is answered.
#[test]
fn marks_that_accurate_ecn_counts_are_answered_too() {
    let Some(_root) = machine::root_with_btf() else { return };
    if !machine::accurate_ecn() {
        return machine::skipped("the kernel has no Accurate ECN");
    }
    for controller in CONTROLLERS {
        let name = unique("accurate");
        let held = Held::new(controller, &name, &[]);
        let path = machine::flow(&name, "--seconds 4 --rtt-ms 30 --mark-above 20000 --ecn 3");
        let end = held.end();
        eprintln!("{controller}: {path} {end}");
        assert_eq!(path["accurate"], true, "{path}");
        assert!(count(&end, "ecn") >= 3, "{controller}: {path} {end}");
        assert!(count(&end, "ecn") <= path["marks"].as_u64().unwrap(), "{path} {end}");
        assert_eq!(count(&end, "local") + count(&end, "loss"), 0, "{controller}: {path} {end}");
    }
}

#[test]
fn a_loss_in_a_window_that_ecn_reduced_is_told_apart() {
    let Some(_root) = machine::root_with_btf() else { return };
    for controller in CONTROLLERS {
        let name = unique("both");
        let held = Held::new(controller, &name, &["--loss-after-ecn", "deepen"]);
        let path =
            machine::flow(&name, "--seconds 5 --rtt-ms 40 --mark-above 20000 --drop-marked 2");
        let end = held.end();
        assert!(path["drops"].as_u64().unwrap() >= 1, "{path}");
        assert!(count(&end, "loss_after_ecn") >= 1, "{controller}: {end}");
        assert!(count(&end, "ecn") >= count(&end, "loss_after_ecn"), "{controller}: {end}");
    }
}

/// On a path whose queue is a fraction of the data in flight, throughput lost by a low factor is
/// not made up for.
#[test]
fn a_larger_factor_keeps_more_of_the_path() {
    let Some(_root) = machine::root_with_btf() else { return };
    // A window reduced to 0.3 takes half of this time until the next mark.
    let path = "--seconds 14 --rtt-ms 150 --mark-above 4000";
    for controller in CONTROLLERS {
        let held = ["0.3", "0.9"].map(|beta_ecn| {
            let name = unique("factor");
            let options = ["--mode", "always", "--beta-ecn", beta_ecn];
            (Held::new(controller, &name, &options), name)
        });
        // One flow sent 1.6 to 3.6 MB with 0.3 in eight runs: sums of three are compared.
        let [low, high] = [&held[0].1, &held[1].1].map(String::as_str);
        let ran = machine::flows([low, high, low, high, low, high].map(|name| (name, path)));
        for (held, _) in held {
            let ecn = count(&held.end(), "ecn");
            assert!(ecn >= 6, "{controller}: {ecn} reductions");
        }
        let sent = |first: usize| -> f64 {
            ran.iter()
                .skip(first)
                .step_by(2)
                .map(|one| one["flows"][0]["sent"].as_f64().unwrap())
                .sum()
        };
        let [little, much] = [sent(0), sent(1)];
        eprintln!("{controller}: {little} bytes with 0.3, {much} with 0.9");
        assert!(much > 1.15 * little, "{controller}: {little} {much}");
    }
}

#[test]
fn sockets_keep_a_controller_that_is_unloaded() {
    let Some(_root) = machine::root_with_btf() else { return };
    let name = unique("in_use");
    let held = Held::new("abe_reno", &name, &["--without-link"]);
    let mut flow = Command::new("unshare")
        .args(["-n", "python3", machine::PATH, &name, "--seconds", "5", "--mark-above", "20000"])
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    for _ in 0..400 {
        if held.now()["sockets"] == 1 {
            break;
        }
        sleep(Duration::from_millis(10));
    }
    assert_eq!(held.now()["sockets"], 1);
    held.kill();
    let done = run(&["unload", &name]);
    assert!(done.out.contains("1 sockets use it until they close"), "{}{}", done.out, done.err);
    let status = run(&["status"]);
    assert!(
        status.out.contains(&format!("{name} is unloaded; its sockets keep it")),
        "{}",
        status.out
    );
    assert!(flow.wait().unwrap().success(), "the flow goes on");
    // The controller goes with its last socket, and its info map with it.
    let left = (0..200).all(|_| {
        sleep(Duration::from_millis(20));
        run(&["status"]).out.contains(&name)
    });
    assert!(!left);
}

/// Path for all controllers at once, short enough for kernels in QEMU on a slow machine. It
/// sometimes marks, drops above a limit, and is quenched. It is dead for 1.2 s, for
/// timeouts.
const EACH_PATH: &str = "--seconds 7 --rtt-ms 30 --mbit 10 --mark-above 20000 --drop-above 60000 \
                    --dead 1.2 --quench marked --quench-above 20000";
const BESIDE: [(&str, &str, &str); 6] = [
    ("abe_reno", "", "ecn"),
    ("abe_cubic", "", "ecn"),
    ("adaptive_reno", "", "adapted"),
    ("adaptive_cubic", "", "adapted"),
    ("delay_aimd", "--threshold 10", "delay"),
    // CE is the highest load to it, and its receivers echo loads.
    ("bmcc", "--cgroup", "options_written"),
];

#[test]
fn each_controller_does_what_it_is_for() {
    let Some(_root) = machine::root_with_btf() else { return };
    let Some(group) = Group::new() else { return };
    let star = Held::new("tcpstar", &unique("star"), &["--cgroup", group.path()]);
    let beside = BESIDE.map(|(controller, options, counter)| {
        let name = unique(controller);
        let mut more: Vec<&str> = options.split_whitespace().collect();
        more.extend((options == "--cgroup").then(|| group.path()));
        (Held::new(controller, &name, &more), name, counter)
    });
    // Quenches are about the first flow only.
    let becn = unique("becn");
    let hold = format!("{} hold becn_cubic --name {becn} --interface near", program());
    let names: Vec<&str> = [becn.as_str()]
        .into_iter()
        .chain(beside.iter().map(|(_, name, _)| name.as_str()))
        .collect();
    let path = EACH_PATH.split(' ').chain(["--group", group.path(), "--hold", &hold]);
    let path: Vec<String> = path.map(str::to_owned).collect();
    let told = machine::flow_with(&names.join(" "), &path);
    let ends = beside.map(|(held, _, counter)| (held.end(), counter));
    let star = star.end();
    eprintln!("{told} {star}");
    for (end, counter) in &ends {
        eprintln!("{end}");
        assert!(count(end, counter) >= 1, "{counter}: {end}");
        assert_eq!(count(end, "opened"), 1, "{end}");
        assert_eq!(count(end, "closed"), 1, "{end}");
    }
    let held = &told["held"];
    assert!(count(held, "quench_marked") >= 1 && count(held, "quenches") >= 3, "{told}");
    assert_eq!(count(held, "malformed"), 0, "{told}");
    assert_eq!(count(&star, "opened"), 14, "both ends of seven connections: {star}");
    assert!(count(&star, "timeouts") >= 1 && count(&star, "taken_back") >= 1, "{star}");
    if machine::bounds_timeouts() {
        assert_eq!(count(&star, "refused"), 0, "{star}");
    } else {
        assert!(count(&star, "refused") >= 1, "{star}");
        machine::noted("no bound on timeouts (before 6.15)");
    }
}
