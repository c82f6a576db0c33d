//! Programs at interfaces and control groups are detached when their loader ends. Users of a
//! controller, and others beside it, when its loader, interface or namespace goes.

use std::fs;
use std::process::Command;

use libbpf_rs::{MapCore as _, MapFlags, MapHandle, MapType, libbpf_sys};

use crate::machine::{
    self, Group, Held, KernelObjects, eventually, program, registered, run, unique, version_at,
};

/// Kills the holder with SIGKILL while a flow uses the controller. The flow continues, only its
/// socket keeps the controller, and all objects go with the socket.
#[test]
fn a_flow_goes_on_when_the_loader_is_killed_and_with_it_goes_the_rest() {
    let Some(_root) = machine::root_with_btf() else { return };
    let by_link = machine::links() && machine::interface_links();
    let kinds = ["adaptive_cubic", "delay_aimd", "becn_reno", "becn_cubic"];
    std::thread::scope(|scope| {
        for controller in kinds {
            scope.spawn(move || {
                let name = unique(controller);
                let hold = format!("{} hold {controller} --name {name}", program());
                // In the flow's namespace, which has the interface.
                let hold =
                    if controller.starts_with("becn") { hold + " --interface near" } else { hold };
                let path = "--seconds 5 --rtt-ms 30 --drop-above 60000 --hold".split(' ');
                let path: Vec<String> = path.map(str::to_owned).chain([hold]).collect();
                let flow = scope.spawn({
                    let name = name.clone();
                    move || machine::flow_with(&name, &path)
                });
                let card = || machine::card(&name).filter(|card| card["sockets"] == 1);
                assert!(eventually(|| card().is_some()), "{name} has a socket");
                let remains = KernelObjects::of(&name);
                assert!(remains.is_some(), "{name}: {remains:?}");
                machine::kill(card().unwrap()["pid"].as_u64().unwrap());
                if by_link {
                    assert!(
                        remains.links() > 0 && remains.are_called_by_nobody(),
                        "{name}: {remains:?}"
                    );
                    assert!(eventually(|| !registered(&name)), "{name}");
                    assert_eq!(card().unwrap()["registered"], false, "its socket has it still");
                } else if registered(&name) {
                    assert_eq!(run(&["unload", &name]).code, 0, "{name}");
                }
                let told = flow.join().unwrap();
                eprintln!("{name}: {told}");
                assert!(told["held"].is_null(), "it was killed: {told}");
                assert!(told["after_hold"].as_u64().unwrap() > 100_000, "{name}: {told}");
                // A classifier went with its interface, whose namespace has ended.
                assert!(remains.are_gone(), "{name}: {remains:?}");
            });
        }
    });
}

#[test]
fn what_a_group_was_told_ends_with_its_loader() {
    let Some(_root) = machine::root_with_btf() else { return };
    let Some(group) = Group::new() else { return };
    let name = unique("star");
    let held = Held::new("tcpstar", &name, &["--cgroup", group.path()]);
    let remains = KernelObjects::of(&name);
    assert!(remains.is_some() && remains.links() == 1, "{remains:?}");
    let path = format!("--seconds 3 --rtt-ms 30 --mbit 4 --group {}", group.path());
    let told = std::thread::scope(|scope| {
        let flow = scope.spawn(|| machine::flow("reno", &path));
        assert!(eventually(|| held.now()["sockets"] == 2));
        held.kill();
        assert!(remains.are_called_by_nobody() && remains.are_gone(), "{remains:?}");
        flow.join().unwrap()
    });
    assert!(told["flows"][0]["sent"].as_u64().unwrap() > 800_000, "{told}");
    // The group may be removed first, too.
    let name = unique("star");
    let held = Held::new("tcpstar", &name, &["--cgroup", group.path()]);
    let remains = KernelObjects::of(&name);
    drop(group);
    assert_eq!(held.end()["counters"]["opened"], 0);
    assert!(remains.are_gone(), "{remains:?}");
}

/// Each program sees all packets, and none hides them from others, whichever loader ends. Without
/// links, the classifier of a killed loader is removed by the next loader.
#[test]
fn several_at_an_interface_do_not_see_each_other() {
    let Some(_root) = machine::root_with_btf() else { return };
    for how in ["", "--without-link"] {
        let names = ["one", "two", "three"].map(unique);
        let [one, two, three] = &names;
        let hold = |name: &str, controller: &str| {
            format!(
                "{} hold {controller} --name {name} --interface lo {how} > {name} & {controller}=$!
                 until test -s {name}; do kill -0 ${controller}; sleep 0.02; done",
                program()
            )
        };
        let send = format!("python3 -c '{SEND}'");
        let folder = std::env::temp_dir().join(unique("several"));
        fs::create_dir_all(&folder).unwrap();
        let said = in_a_namespace(&format!(
            "cd {folder}
             ip link set lo up
             {first}
             {second}
             {send}
             kill -9 $becn_reno; wait $becn_reno 2> /dev/null || true
             {send}
             {third}
             {send}
             kill $becn_cubic $becn_reno
             wait $becn_cubic; wait $becn_reno
             cat {two} {three}",
            folder = folder.display(),
            first = hold(one, "becn_reno"),
            second = hold(two, "becn_cubic"),
            third = hold(three, "becn_reno"),
        ));
        let lines: Vec<&str> = said.lines().collect();
        eprintln!("{how} {said}");
        let counted = |line: &str, name: &str| -> u64 {
            let end: serde_json::Value = serde_json::from_str(line).unwrap();
            assert_eq!(end["name"], name, "{said}");
            machine::count(&end, "malformed")
        };
        let ends: Vec<&str> =
            lines.iter().copied().filter(|l| l.contains(r#""event":"end""#)).collect();
        assert_eq!((counted(ends[0], two), counted(ends[1], three)), (3, 1), "{said}");
        if registered(one) {
            // A table that was registered without a link; its classifier is gone already.
            assert_eq!(run(&["unload", one]).code, 0);
        }
        for name in &names {
            assert!(eventually(|| machine::card(name).is_none()), "{name} is left: {said}");
        }
        fs::remove_dir_all(folder).unwrap();
    }
}

/// The programs end with the interface. Their holder runs on, and releases them as usual.
#[test]
fn an_interface_and_a_namespace_may_go_before_what_is_at_them() {
    let Some(_root) = machine::root_with_btf() else { return };
    let [held, pinned, left] = ["held", "pin", "left"].map(unique);
    let folder = std::env::temp_dir().join(unique("gone"));
    fs::create_dir_all(&folder).unwrap();
    let pin = if machine::interface_links() {
        format!("{} load becn_cubic --name {pinned} --interface away --pin", program())
    } else {
        "true".to_owned()
    };
    let said = in_a_namespace(&format!(
        "cd {folder}
         mount -t bpf bpf /sys/fs/bpf
         ip tuntap add dev away mode tun
         ip link set away up
         {program} hold becn_reno --name {held} --interface away > held & holder=$!
         until test -s held; do kill -0 $holder; sleep 0.02; done
         {pin}
         ip link del away
         {program} status {held} --json
         kill $holder; wait $holder
         cat held",
        folder = folder.display(),
        program = program(),
    ));
    assert!(said.contains(r#""event":"end""#) && said.contains(r#""registered":true"#), "{said}");
    assert!(eventually(|| machine::card(&held).is_none()), "{said}");
    if machine::interface_links() {
        // The mount namespace has ended, and with it the file system and its pins.
        assert!(eventually(|| machine::card(&pinned).is_none()), "{said}");
        let said = in_a_namespace(&format!(
            "mount -t bpf bpf /sys/fs/bpf
             unshare -n sh -ec 'ip link set lo up
                 {0} load becn_reno --name {left} --interface lo --pin'
             {0} status {left} --json
             {0} unload {left}
             test ! -e /sys/fs/bpf/cwnd",
            program()
        ));
        assert!(said.contains(r#""pinned":true"#) && said.contains("is unloaded"), "{said}");
        assert!(eventually(|| machine::card(&left).is_none()), "{said}");
    }
    fs::remove_dir_all(folder).unwrap();
}

/// Controllers of an older or newer `cwnd-kernel`, with another layout of info maps, are reported
/// as such. Their pins can be removed all the same.
#[test]
fn what_another_version_pinned_can_be_unloaded() {
    let Some(_root) = machine::root_with_btf() else { return };
    if !machine::interface_links() {
        return machine::skipped("the kernel has no links for interfaces (before 6.6)");
    }
    for (controller, more) in
        [("abe_reno", ""), ("becn_cubic", "--interface lo"), ("tcpstar", "--own-namespace")]
    {
        let name = unique("older");
        let group = Group::new();
        let more = match &group {
            Some(group) if controller == "tcpstar" => format!("--cgroup {}", group.path()),
            _ => more.to_owned(),
        };
        let remains = format!("/tmp/{}", unique("changed"));
        let changed = std::thread::scope(|scope| {
            let change = scope.spawn(|| {
                assert!(eventually(|| fs::exists(format!("{remains}.loaded")).unwrap()));
                let remains_of = KernelObjects::of(&name);
                age_card(&name);
                fs::write(format!("{remains}.aged"), "").unwrap();
                remains_of
            });
            let said = in_a_namespace(&format!(
                "mount -t bpf bpf /sys/fs/bpf
                 ip link set lo up
                 {0} load {controller} --name {name} {more} --pin
                 touch {remains}.loaded
                 until test -e {remains}.aged; do sleep 0.02; done
                 {0} status
                 {0} status {name} 2>&1 || true
                 {0} status --json
                 ! {0} hold {controller} --name {name} {more} 2>&1
                 {0} unload {name}
                 ! {0} unload {name} 2>&1",
                program()
            ));
            eprintln!("{said}");
            let other = format!("{name} was loaded by another version of this program");
            assert!(said.matches(&other).count() >= 2, "{said}");
            assert!(said.contains(&format!("something named {name} already")), "{said}");
            assert!(said.contains(&format!("{name} is unloaded")), "{said}");
            change.join().unwrap()
        });
        assert!(changed.is_some() && changed.are_gone(), "{changed:?}");
        for end in ["loaded", "aged"] {
            fs::remove_file(format!("{remains}.{end}")).unwrap();
        }
    }
}

/// Changes the version in the info map of that controller to another than this program's.
fn age_card(name: &str) {
    let map = machine::card_map(name).unwrap();
    let key = 0_u32.to_ne_bytes();
    let mut card = map.lookup(&key, MapFlags::ANY).unwrap().unwrap();
    let at = version_at();
    card[at..at + 4].copy_from_slice(&1_u32.to_ne_bytes());
    map.update(&key, &card, MapFlags::ANY).unwrap();
}

/// Maps that have an info map's name, but not its layout, are ignored.
#[test]
fn maps_of_others_are_no_cards() {
    let Some(_root) = machine::root_with_btf() else { return };
    let options = libbpf_sys::bpf_map_create_opts {
        sz: size_of::<libbpf_sys::bpf_map_create_opts>() as libbpf_sys::size_t,
        ..Default::default()
    };
    let _map = [4, 40, 208].map(|bytes| {
        MapHandle::create(MapType::Array, Some("cwnd_card"), 4, bytes, 1, &options).unwrap()
    });
    let said = run(&["status", "--json"]);
    assert_eq!(said.code, 0, "{}", said.err);
    assert!(!Command::new(program()).args(["unload", &unique("none")]).status().unwrap().success());
}

/// Runs a script in its own network and mount namespaces; returns its output.
fn in_a_namespace(script: &str) -> String {
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
    fs::create_dir_all(&folder).unwrap();
    let said = in_a_namespace(&format!("cd {}\n{script}", folder.display()));
    assert!(said.contains(r#""malformed":1"#), "{said}");
    assert!(
        eventually(|| machine::card(&name).is_none()),
        "its card is gone, so nothing has it: {said}"
    );
    fs::remove_dir_all(folder).unwrap();
}

/// Python script that sends an ICMP source quench without a quoted packet.
const SEND: &str = r#"
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
