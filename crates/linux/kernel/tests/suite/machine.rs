//! Requirements of the tests on the machine, and the messages if one is missing; kernel objects of
//! a loaded controller, and those left after it.

use std::collections::BTreeSet;
use std::env;
use std::fs;
use std::io::{BufRead as _, BufReader, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread::sleep;
use std::time::Duration;

use libbpf_rs::query::{
    LinkInfoIter, LinkTypeInfo, MapInfoIter, ProgInfoIter, ProgInfoQueryOptions, ProgramInfo,
};
use libbpf_rs::{Link, MapCore as _, MapFlags, MapHandle, MapType, Object, ObjectBuilder};
use rustix::time::{ClockId, clock_getres};
use serde_json::Value;

/// Proof that controllers can be loaded on this machine.
pub struct Root;

/// Returns `None` and prints the reason if controllers cannot be loaded.
pub fn root_with_btf() -> Option<Root> {
    let why = if !rustix::process::geteuid().is_root() {
        "not root"
    } else if !Path::new("/sys/kernel/btf/vmlinux").exists() {
        "the kernel has no BTF"
    } else if !Path::new("/dev/net/tun").exists() {
        "no /dev/net/tun"
    } else {
        return Some(Root);
    };
    skipped(why);
    None
}

/// Prints that this test was skipped, and the reason.
pub fn skipped(why: &str) {
    say("skipped", why);
}

/// Prints a property of this kernel that the test found and accepts.
pub fn noted(what: &str) {
    say("noted", what);
}

fn say(kind: &str, what: &str) {
    let thread = std::thread::current();
    // Not `eprintln!`, whose output is shown for failed tests only.
    let mut terminal = std::io::stderr();
    writeln!(terminal, "{kind}: {}: {what}", thread.name().unwrap_or("a test")).unwrap();
}

/// Runs a flow of each controller over the path of path.py; returns its JSON.
pub fn flow(controllers: &str, path: &str) -> Value {
    let path: Vec<String> = path.split(' ').map(str::to_owned).collect();
    flow_with(controllers, &path)
}

/// Runs a flow with options that may contain spaces.
pub fn flow_with(controllers: &str, path: &[String]) -> Value {
    let output = Command::new("unshare")
        .args(["-n", "python3", PATH])
        .args(controllers.split(' '))
        .args(path)
        .stderr(Stdio::inherit())
        .output()
        .unwrap();
    assert!(output.status.success(), "{path:?}");
    serde_json::from_slice(&output.stdout).unwrap()
}

/// Runs several paths at once, each in real time.
pub fn flows<P: AsRef<str> + Send, const N: usize>(flows: [(&str, P); N]) -> [Value; N] {
    std::thread::scope(|scope| {
        flows
            .map(|(controller, path)| scope.spawn(move || flow(controller, path.as_ref())))
            .map(|thread| thread.join().unwrap())
    })
}

/// `true` if the kernel registers tables by links. Decided by its version, as the program under
/// test goes by its types.
pub fn links() -> bool {
    version() >= (6, 4)
}

/// `true` if links hold programs at interfaces, by the kernel's version.
pub fn interface_links() -> bool {
    version() >= (6, 6)
}

/// `true` if a socket can bound its timeout (`TCP_RTO_MAX_MS`), by the kernel's version.
pub fn bounds_timeouts() -> bool {
    version() >= (6, 15)
}

/// Takes a lock between tests that load a program for all processes, and tests that rely on the
/// absence of one.
pub fn all_processes() -> MutexGuard<'static, ()> {
    static ALL: Mutex<()> = Mutex::new(());
    ALL.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A cgroup v2 group of one test, removed when dropped.
pub struct Group(PathBuf);

impl Group {
    /// Creates a group. Returns `None` and prints the reason if no hierarchy is mounted.
    pub fn new() -> Option<Self> {
        let mounts = fs::read_to_string("/proc/self/mounts").unwrap();
        let root = mounts.lines().find_map(|line| {
            let mut words = line.split(' ').skip(1);
            let path = words.next()?;
            (words.next()? == "cgroup2").then(|| PathBuf::from(path))
        });
        let Some(root) = root else {
            skipped("no control groups of version 2 are mounted");
            return None;
        };
        let path = root.join(unique("group"));
        fs::create_dir(&path).unwrap();
        Some(Self(path))
    }

    /// Creates a group below this one.
    pub fn below(&self) -> Self {
        let path = self.0.join("below");
        fs::create_dir(&path).unwrap();
        Self(path)
    }

    pub fn path(&self) -> &str {
        self.0.to_str().unwrap()
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        // The last processes may just be ending.
        for _ in 0..100 {
            if fs::remove_dir(&self.0).is_ok() {
                break;
            }
            sleep(Duration::from_millis(20));
        }
    }
}

/// Returns a counter of a controller.
pub fn count(event: &Value, what: &str) -> u64 {
    event["counters"][what].as_u64().unwrap()
}

/// `true` if the kernel has a member for first transmissions, by its version.
pub fn first_transmission() -> bool {
    version() >= (7, 1)
}

/// `true` if the kernel's CUBIC begins rounds of HyStart in small windows, too: fixed in 6.14
/// (commit 25c1a9ca53db). Older kernels may have the fix from a stable release or a distribution.
pub fn small_rounds() -> bool {
    version() >= (6, 14)
}

/// `true` if the kernel supports Accurate ECN (RFC 9768): `net.ipv4.tcp_ecn` of a new namespace
/// accepts a 3.
pub fn accurate_ecn() -> bool {
    let write = "echo 3 > /proc/sys/net/ipv4/tcp_ecn";
    let mut shell = Command::new("unshare");
    shell.args(["-n", "sh", "-c", write]).stderr(Stdio::null()).status().unwrap().success()
}

fn version() -> (u32, u32) {
    let release = fs::read_to_string("/proc/sys/kernel/osrelease").unwrap();
    let mut numbers = release.split('.').map(|part| part.parse().unwrap());
    (numbers.next().unwrap(), numbers.next().unwrap())
}

/// Loads and registers a compiled controller of the tests under a name, for as long as both results
/// live.
pub fn load_controller(source: &str, name: &str) -> (Object, Link) {
    let object: &[u8] = match source {
        "shadow" => include_bytes!(concat!(env!("OUT_DIR"), "/shadow.bpf.o")),
        "untold" => include_bytes!(concat!(env!("OUT_DIR"), "/untold.bpf.o")),
        _ => panic!("no program of the tests: {source}"),
    };
    let mut open = ObjectBuilder::default().open_memory(object).unwrap();
    for mut map in open.maps_mut() {
        if map.map_type() == MapType::StructOps {
            let table = map.initial_value_mut().unwrap();
            table[..16].fill(0);
            table[..name.len()].copy_from_slice(name.as_bytes());
            // Clears the same member as the loader; bpf/kernel.h describes both.
            table[if first_transmission() { 24..32 } else { 32..40 }].fill(0);
            if !links() {
                map.set_map_flags(map.map_flags() & !F_LINK).unwrap();
            }
        } else if source == "shadow" && map.name().to_string_lossy().ends_with("rodata.settings") {
            map.initial_value_mut().unwrap()[12..16].copy_from_slice(&hz().to_ne_bytes());
        }
    }
    let mut object = open.load().unwrap();
    let link = object
        .maps_mut()
        .find(|map| map.map_type() == MapType::StructOps)
        .map(|mut map| map.attach_struct_ops().unwrap())
        .unwrap();
    (object, link)
}

/// Returns the words of the object's `struct tally`.
pub fn tally(object: &Object) -> Vec<u64> {
    let map = object.maps().find(|m| m.name().to_string_lossy().ends_with("bss.tally")).unwrap();
    let bytes = map.lookup(&0_u32.to_ne_bytes(), MapFlags::ANY).unwrap().unwrap();
    bytes.chunks_exact(8).map(|chunk| u64::from_ne_bytes(chunk.try_into().unwrap())).collect()
}

/// Flag `BPF_F_LINK`.
const F_LINK: u32 = 1 << 13;

/// Returns the kernel's ticks per second.
pub fn hz() -> u32 {
    let tick = clock_getres(ClockId::MonotonicCoarse);
    u32::try_from((1_000_000_000 + tick.tv_nsec / 2) / tick.tv_nsec).unwrap()
}

/// Path of the script that runs flows over an emulated path.
pub const PATH: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/suite/path.py");

/// Returns the path of the program under test.
pub fn program() -> &'static str {
    env!("CARGO_BIN_EXE_cwnd-kernel")
}

/// Copies the program to a place where every user may run it.
pub fn program_for_anyone() -> PathBuf {
    let copy = env::temp_dir().join(unique("program"));
    fs::copy(program(), &copy).unwrap();
    copy
}

/// Returns a name that no other test or run uses.
pub fn unique(what: &str) -> String {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    let serial = NEXT.fetch_add(1, Ordering::Relaxed);
    let name = format!("{:x}_{serial}_{what}", std::process::id());
    name[..name.len().min(15)].to_owned()
}

/// `true` if the kernel has a controller of that name.
pub fn registered(name: &str) -> bool {
    let names = fs::read_to_string("/proc/sys/net/ipv4/tcp_available_congestion_control").unwrap();
    names.split_whitespace().any(|one| one == name)
}

/// Exit code and output of the program.
pub struct Output {
    pub code: i32,
    pub out: String,
    pub err: String,
}

/// Returns the info map (`cwnd_card`) of the controller of that name.
pub fn card_map(name: &str) -> Option<MapHandle> {
    MapInfoIter::default()
        .filter(|info| info.name == "cwnd_card")
        .filter_map(|info| MapHandle::from_map_id(info.id).ok())
        .find(|map| {
            let card = map.lookup(&0_u32.to_ne_bytes(), MapFlags::ANY).ok().flatten();
            card.is_some_and(|card| card.starts_with(name.as_bytes()) && card[name.len()] == 0)
        })
}

/// Returns the `status` of a controller, if it is loaded.
pub fn card(name: &str) -> Option<Value> {
    let rows: Value = serde_json::from_str(&run(&["status", name, "--json"]).out).unwrap();
    rows.get(0).cloned()
}

/// Kills a process with SIGKILL.
pub fn kill(pid: u64) {
    let pid = rustix::process::Pid::from_raw(i32::try_from(pid).unwrap()).unwrap();
    rustix::process::kill_process(pid, rustix::process::Signal::KILL).unwrap();
}

/// Runs the program to its end.
pub fn run(arguments: &[&str]) -> Output {
    let output = Command::new(program()).args(arguments).output().unwrap();
    Output {
        code: output.status.code().unwrap(),
        out: String::from_utf8(output.stdout).unwrap(),
        err: String::from_utf8(output.stderr).unwrap(),
    }
}

/// A running `cwnd-kernel hold`.
pub struct Held {
    child: Child,
    lines: BufReader<ChildStdout>,
    name: String,
    /// First line of its output.
    pub ready: Value,
}

impl Held {
    /// Starts it and waits until the controller is loaded.
    pub fn new(controller: &str, name: &str, more: &[&str]) -> Self {
        let mut child = Command::new(program())
            .args(["hold", controller, "--name", name])
            .args(more)
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap());
        let ready = read(&mut lines);
        assert_eq!(ready["event"], "ready");
        Self { child, lines, name: name.to_owned(), ready }
    }

    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Returns its current `status`.
    pub fn now(&self) -> Value {
        card(&self.name).unwrap()
    }

    /// Ends it by SIGTERM, as programs do; returns its last line.
    pub fn end(mut self) -> Value {
        let pid = rustix::process::Pid::from_child(&self.child);
        rustix::process::kill_process(pid, rustix::process::Signal::TERM).unwrap();
        let end = read(&mut self.lines);
        assert!(self.child.wait().unwrap().success());
        end
    }

    /// Kills it with SIGKILL.
    pub fn kill(mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        // A failed test leaves nothing behind.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn read(lines: &mut BufReader<ChildStdout>) -> Value {
    let mut line = String::new();
    lines.read_line(&mut line).unwrap();
    serde_json::from_str(&line).unwrap_or_else(|e| panic!("{e}: {line:?}"))
}

/// Objects by their ids, which the kernel does not reuse soon.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct KernelObjects {
    programs: BTreeSet<u32>,
    maps: BTreeSet<u32>,
    /// Links of tables, interfaces and groups, which run the programs.
    links: BTreeSet<u32>,
}

impl KernelObjects {
    /// Finds the objects of a controller: the programs with its info map, the maps that only they
    /// use, its table, and the links of both.
    pub fn of(name: &str) -> Self {
        let Some(map) = card_map(name) else { return Self::default() };
        let card = map.lookup(&0_u32.to_ne_bytes(), MapFlags::ANY).unwrap().unwrap();
        let map = map.info().unwrap().info.id;
        let at = table_at();
        let table = u32::from_ne_bytes(card[at..at + 4].try_into().unwrap());
        let with_maps = ProgInfoQueryOptions::default().include_map_ids(true);
        let (ours, others): (Vec<_>, Vec<_>) =
            ProgInfoIter::with_query_opts(with_maps).partition(|info| info.map_ids.contains(&map));
        let maps_of =
            |all: &[ProgramInfo]| all.iter().flat_map(|info| info.map_ids.clone()).collect();
        let (all, shared): (BTreeSet<u32>, BTreeSet<u32>) = (maps_of(&ours), maps_of(&others));
        let programs: BTreeSet<u32> = ours.iter().map(|info| info.id).collect();
        let links = LinkInfoIter::default().filter(|link| match &link.info {
            LinkTypeInfo::StructOps(registers) => registers.map_id == table,
            _ => programs.contains(&link.prog_id),
        });
        let links = links.map(|link| link.id).collect();
        let mut maps = &all - &shared;
        maps.extend((table != 0).then_some(table));
        Self { programs, maps, links }
    }

    pub fn is_some(&self) -> bool {
        !self.programs.is_empty()
    }

    pub fn links(&self) -> usize {
        self.links.len()
    }

    /// `true` if no link runs its programs any more, within a few seconds; then only its sockets
    /// do.
    pub fn are_called_by_nobody(&self) -> bool {
        eventually(|| LinkInfoIter::default().all(|link| !self.links.contains(&link.id)))
    }

    /// `true` if none of its objects is left, within a few seconds.
    pub fn are_gone(&self) -> bool {
        eventually(|| {
            ProgInfoIter::default().all(|info| !self.programs.contains(&info.id))
                && MapInfoIter::default().all(|info| !self.maps.contains(&info.id))
                && LinkInfoIter::default().all(|link| !self.links.contains(&link.id))
        })
    }
}

/// Waits up to five seconds for a condition: the kernel frees objects with a delay.
pub fn eventually(mut so: impl FnMut() -> bool) -> bool {
    (0..250).any(|_| {
        let now = so();
        if !now {
            sleep(Duration::from_millis(20));
        }
        now
    })
}

/// Returns the offset in an info map of the id of the table's map (bpf/info_map.h).
fn table_at() -> usize {
    16 + 16 + 4 * setting_words() + 4 + 4
}

/// Returns the offset of the version, which follows the id of the table's map.
pub fn version_at() -> usize {
    table_at() + 4
}

fn setting_words() -> usize {
    let card = include_str!("../../bpf/info_map.h");
    let words = card.lines().find_map(|line| line.strip_prefix("#define SETTING_WORDS "));
    words.unwrap().trim().parse().unwrap()
}
