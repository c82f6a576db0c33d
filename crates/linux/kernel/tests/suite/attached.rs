//! Programs at interfaces and control groups are detached when their loader ends.

use std::process::Command;

use crate::kernel_objects::eventually;
use crate::machine::{self, Held, program, run, unique};

/// Runs a script in its own network and mount namespaces; returns its output.
pub fn in_a_namespace(script: &str) -> String {
    let output = Command::new("unshare").args(["-n", "-m", "sh", "-ec", script]).output().unwrap();
    let said = String::from_utf8(output.stdout).unwrap();
    assert!(output.status.success(), "{said}{}", String::from_utf8_lossy(&output.stderr));
    said
}

#[test]
fn a_program_at_an_interface_goes_with_whoever_holds_it() {
    let Some(_root) = machine::root_with_btf() else { return };
    if !machine::interface_links() {
        return machine::skipped("the kernel has no links for interfaces (before 6.6)");
    }
    let name = unique("at");
    // An invalid quench is counted by each attached program.
    let script = format!(
        "ip link set lo up
         {0} hold becn_reno --name {name} --interface lo > ready & holder=$!
         until test -s ready; do kill -0 $holder; sleep 0.02; done
         python3 -c '{SEND}'
         {0} status {name} --json
         kill -9 $holder; wait $holder 2>/dev/null || true
         python3 -c '{SEND}'",
        program()
    );
    let folder = std::env::temp_dir().join(unique("at"));
    std::fs::create_dir_all(&folder).unwrap();
    let said = in_a_namespace(&format!("cd {}\n{script}", folder.display()));
    assert!(said.contains(r#""malformed":1"#), "{said}");
    assert!(
        eventually(|| machine::card(&name).is_none()),
        "its card is gone, so nothing has it: {said}"
    );
    std::fs::remove_dir_all(folder).unwrap();
}

/// Python script that sends an ICMP source quench without a quoted packet.
pub const SEND: &str = r#"
import socket
raw = socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_ICMP)
raw.sendto(bytes([4, 0, 0xfb, 0xff, 0, 0, 0, 0]), ("127.0.0.1", 0))
import time; time.sleep(0.1)
"#;

#[test]
fn what_is_pinned_at_an_interface_stays_until_it_is_unloaded() {
    let Some(_root) = machine::root_with_btf() else { return };
    if !machine::interface_links() {
        return machine::skipped("the kernel has no links for interfaces (before 6.6)");
    }
    let name = unique("pin");
    let said = in_a_namespace(&format!(
        "mount -t bpf bpf /sys/fs/bpf
         ip link set lo up
         {0} load becn_cubic --name {name} --interface lo --pin
         python3 -c '{SEND}'
         {0} status {name} --json
         {0} unload {name}
         test ! -e /sys/fs/bpf/cwnd
         ! {0} unload {name} 2> /dev/null",
        program()
    ));
    assert!(said.contains(r#""malformed":1"#) && said.contains(r#""pinned":true"#), "{said}");
    assert!(said.contains(&format!("{name} is unloaded")), "{said}");
}

#[test]
fn what_has_no_table_is_loaded_pinned_and_unloaded_like_the_rest() {
    let Some(_root) = machine::root_with_btf() else { return };
    let _all = machine::all_processes();
    let name = unique("group");
    let held = Held::new("tcpstar", &name, &["--backoff-after", "3", "--whole-host"]);
    assert_eq!(held.ready["backoff_after"], 3);
    assert_eq!(held.now()["registered"], true);
    for (controller, taken) in [("tcpstar", &*name), ("abe_reno", &name), ("tcpstar", "cubic")] {
        let again = run(&["hold", controller, "--name", taken]);
        assert_eq!(again.code, 1, "{}", again.err);
        assert!(again.err.contains(&format!("named {taken} already")), "{}", again.err);
    }
    let said = run(&["unload", &name]);
    assert!(said.err.contains(&format!("kill {}", held.pid())), "{}", said.err);
    held.kill();
    assert!(eventually(|| !run(&["status"]).out.contains(&name)));
    let said = in_a_namespace(&format!(
        "mount -t bpf bpf /sys/fs/bpf
         {0} load tcpstar --name {name} --whole-host --pin
         {0} status {name} --json
         {0} unload {name}
         ! {0} status {name} 2> /dev/null",
        program()
    ));
    assert!(said.contains(r#""pinned":true"#), "{said}");
}

/// bmcc and tcpstar would change options and timeouts of unrelated connections.
#[test]
fn nothing_is_for_every_connection_of_the_host_unless_that_is_said() {
    let Some(_root) = machine::root_with_btf() else { return };
    for controller in ["bmcc", "tcpstar"] {
        let name = unique("whole");
        for any in [&[][..], &["--address", "0.0.0.0"]] {
            for command in ["load", "hold"] {
                let said = run(&[&[command, controller, "--name", &name], any].concat());
                assert_eq!(said.code, 2, "{}", said.err);
                assert!(said.err.contains("every connection of this host"), "{}", said.err);
                assert!(said.err.contains("--cgroup") && said.err.contains("--whole-host"));
            }
        }
        assert!(machine::card(&name).is_none());
        Held::new(controller, &name, &["--own-namespace"]).end();
    }
}

/// With a wrong checksum no ACK would arrive. Only a server can cheat: neither the third ACK of a
/// client nor a SYN-ACK may carry a false echo.
#[test]
fn a_receiver_that_cheats_rewrites_what_it_echoes_and_leaves_checksums_right() {
    let Some(_root) = machine::root_with_btf() else { return };
    let name = unique("stamps");
    let hold = format!("far: {} hold cheat_stamps --name {name} --interface far", program());
    let path = ["--seconds", "2", "--rtt-ms", "20", "--mbit", "10", "--hold", &hold];
    let told = machine::flow_with("reno", &path.map(str::to_owned));
    eprintln!("{told}");
    assert_eq!(
        (&told["held"]["subtract"], &told["held"]["address"]),
        (&100.into(), &"0.0.0.0".into())
    );
    let sent = told["flows"][0]["sent"].as_u64().unwrap();
    assert!(sent > 1_500_000, "{told}");
    // One ACK for two segments that arrived.
    let rewritten = machine::count(&told["held"], "rewritten");
    assert!(rewritten > 400, "{told}");
    assert_eq!(machine::count(&told["held"], "failed"), 0, "{told}");
    let nowhere = run(&["load", "cheat_stamps", "--name", &unique("none")]);
    assert_eq!(nowhere.code, 2, "{}", nowhere.err);
    let other = run(&["load", "cheat_stamps", "--interface", "lo", "--address", "here"]);
    assert_eq!(other.code, 2, "{}", other.err);
}
