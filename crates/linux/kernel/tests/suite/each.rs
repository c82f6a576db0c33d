//! One short path for all controllers at once, short enough for kernels in QEMU on a slow machine.

use crate::machine::{self, Group, Held, count, program, unique};

/// A path that sometimes marks, drops above a limit, and is quenched. It is dead for 1.2 s, for
/// timeouts.
const PATH: &str = "--seconds 7 --rtt-ms 30 --mbit 10 --mark-above 20000 --drop-above 60000 \
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
    let path = PATH.split(' ').chain(["--group", group.path(), "--hold", &hold]);
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
