//! The program `cwnd-kernel`: its output and exit codes, and that it leaves nothing behind.

use std::process::Command;
use std::thread::sleep;
use std::time::Duration;

use crate::machine::{self, Held, program, registered, run, unique};

#[test]
fn without_root_it_says_so_and_returns_three() {
    if !rustix::process::geteuid().is_root() {
        let refused = run(&["load", "abe_reno"]);
        assert_eq!(refused.code, 3);
        return;
    }
    for command in
        [&["load", "abe_reno"][..], &["hold", "abe_cubic"], &["status"], &["unload", "x"]]
    {
        let output = Command::new("setpriv")
            .args(["--reuid", "65534", "--regid", "65534", "--clear-groups", "--inh-caps=-all"])
            .arg(machine::program_for_anyone())
            .args(command)
            .output()
            .unwrap();
        let said = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(3), "{command:?}: {said}");
        assert!(said.contains("needs root") && said.contains("= help: run it as root"), "{said}");
    }
}

#[test]
fn what_is_no_name_no_value_and_no_option_is_a_usage_error() {
    for (wrong, said) in [
        (&["--name", "sixteen__letters"][..], "1 to 15"),
        (&["--name", "../x"], "no name"),
        (&["--beta-ecn", "1"], "between 0 and 1"),
        (&["--beta-ecn", "much"], "between 0 and 1"),
    ] {
        let mut arguments = vec!["load", "abe_reno"];
        arguments.extend(wrong);
        let refused = run(&arguments);
        assert_eq!(refused.code, 2, "{wrong:?}");
        assert!(refused.err.contains(said), "{wrong:?}: {}", refused.err);
    }
    assert_eq!(run(&["load", "bbr"]).code, 2);
    for (controller, option, has) in
        [("tcpstar", "--any-user", "--cgroup"), ("becn_reno", "--mode=always", "--interface")]
    {
        let refused = run(&["load", controller, option]);
        assert_eq!(refused.code, 2, "{controller} {option}");
        let option = option.split('=').next().unwrap();
        assert!(refused.err.contains(&format!("{controller} has no {option}")), "{}", refused.err);
        assert!(refused.err.contains(has), "{}", refused.err);
    }
}

#[test]
fn two_run_side_by_side_and_a_taken_name_is_refused() {
    let Some(_root) = machine::root_with_btf() else { return };
    let (one, two) = (unique("one"), unique("two"));
    let first = Held::new("abe_reno", &one, &[]);
    let second = Held::new("abe_reno", &two, &[]);
    assert!(registered(&one) && registered(&two));
    let refused = run(&["hold", "abe_cubic", "--name", &one]);
    assert_eq!(refused.code, 1);
    assert!(refused.err.contains(&format!("named {one} already")), "{}", refused.err);
    assert_eq!(run(&["hold", "abe_cubic", "--name", "cubic"]).code, 1);
    let end = first.end();
    assert_eq!(end["event"], "end");
    assert!(!registered(&one) && registered(&two));
    second.end();
    assert!(!registered(&two));
}

#[test]
fn a_controller_that_is_held_goes_with_whoever_holds_it() {
    let Some(_root) = machine::root_with_btf() else { return };
    let name = unique("killed");
    if !machine::links() {
        return machine::skipped("the kernel registers tables without links (before 6.4)");
    }
    let held = Held::new("abe_reno", &name, &[]);
    assert_eq!(held.ready["by_link"], true);
    let said = run(&["unload", &name]);
    assert_eq!(said.code, 1);
    assert!(said.err.contains(&format!("kill {}", held.pid())), "{}", said.err);
    held.kill();
    assert!(gone(&name), "after kill -9");

    // A shell that starts it and is killed: the holder itself gets no signal.
    let name = unique("orphan");
    let script = format!("{} hold abe_reno --name {name} > /dev/null & wait", program());
    let mut shell = Command::new("sh").args(["-c", &script]).spawn().unwrap();
    for _ in 0..200 {
        if registered(&name) {
            break;
        }
        sleep(Duration::from_millis(10));
    }
    assert!(registered(&name));
    shell.kill().unwrap();
    shell.wait().unwrap();
    assert!(gone(&name), "after its parent's end");
}

#[test]
fn a_pinned_controller_stays_until_it_is_unloaded() {
    let Some(_root) = machine::root_with_btf() else { return };
    if !machine::links() {
        return machine::skipped("without links there is nothing to pin (before 6.4)");
    }
    let name = unique("pinned");
    // In a mount namespace with its own BPF file system.
    let script = format!(
        "set -e; mount -t bpf bpf /sys/fs/bpf
         {0} load abe_cubic --name {name} --pin
         grep -qw {name} /proc/sys/net/ipv4/tcp_available_congestion_control
         {0} status {name}
         {0} unload {name}
         ! grep -qw {name} /proc/sys/net/ipv4/tcp_available_congestion_control
         ! {0} unload {name}
         test ! -e /sys/fs/bpf/cwnd",
        program()
    );
    let output = Command::new("unshare").args(["-m", "sh", "-c", &script]).output().unwrap();
    let said = String::from_utf8(output.stdout).unwrap();
    assert!(output.status.success(), "{said}{}", String::from_utf8_lossy(&output.stderr));
    for part in
        [&format!("pinned at /sys/fs/bpf/cwnd/{name}"), "0.85", &format!("{name} is unloaded")]
    {
        assert!(said.contains(part), "{part}: {said}");
    }
}

#[test]
fn without_a_bpf_file_system_there_is_no_pin() {
    let Some(_root) = machine::root_with_btf() else { return };
    if !machine::links() {
        return machine::skipped("without links there is nothing to pin (before 6.4)");
    }
    let name = unique("nowhere");
    let script = format!("umount -q /sys/fs/bpf; {} load abe_reno --name {name} --pin", program());
    let output = Command::new("unshare").args(["-m", "sh", "-c", &script]).output().unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(3), "{said}");
    assert!(said.contains("mount -t bpf bpf /sys/fs/bpf"), "{said}");
    assert!(!registered(&name));
}

/// Kernels from 6.1 to 6.3: `load --pin` needs no file system.
#[test]
fn without_links_what_is_pinned_stays_all_the_same() {
    let Some(_root) = machine::root_with_btf() else { return };
    let name = unique("kept");
    let said = run(&["load", "abe_cubic", "--name", &name, "--pin", "--without-link"]);
    assert_eq!(said.code, 0, "{}", said.err);
    assert!(said.out.contains(&format!("{name} is loaded, until it is unloaded")), "{}", said.out);
    assert!(registered(&name));
    assert_eq!(run(&["unload", &name]).code, 0);
    assert!(!registered(&name));
}

#[test]
fn check_has_the_verifier_look_and_leaves_nothing() {
    let Some(_root) = machine::root_with_btf() else { return };
    let said = run(&["check", "--verbose"]);
    assert_eq!(said.code, 0, "{}", said.err);
    assert!(said.err.contains("abe_reno") && said.err.contains("abe_cubic"), "{}", said.err);
    assert!(!registered("abe_cubic"));
}

/// Kernels from 6.1 to 6.3 register without a link: the table stays when its loader is killed, and
/// `unload` removes it.
#[test]
fn a_table_without_a_link_is_found_and_unloaded() {
    let Some(_root) = machine::root_with_btf() else { return };
    let name = unique("table");
    let held = Held::new("abe_cubic", &name, &["--without-link"]);
    assert_eq!(held.ready["by_link"], false);
    assert_eq!(run(&["unload", &name]).code, 1, "its holder lives");
    held.kill();
    assert!(registered(&name));
    let done = run(&["unload", &name]);
    assert_eq!(done.code, 0, "{}", done.err);
    assert!(!registered(&name));

    let held = Held::new("abe_cubic", &name, &["--without-link"]);
    held.end();
    assert!(!registered(&name), "SIGTERM takes it out");
}

/// `true` once the kernel has dropped a table, at most 2 s after the last reference to its link.
fn gone(name: &str) -> bool {
    (0..200).any(|_| {
        sleep(Duration::from_millis(10));
        !registered(name)
    })
}
