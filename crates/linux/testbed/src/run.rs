//! A run on Linux: two namespaces with a router between them.

use std::fmt;
use std::io;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;

use cwnd_cc::ControllerParams;
use cwnd_quantity::{Bytes, Duration, Time};
use cwnd_router::linux::netlink::Netlink;
use cwnd_router::linux::{monotonic, realtime};
use cwnd_router::{Capture, Config, Direction, Endpoint, Namespace, Output, Report, Stop, Tun};
use cwnd_scenario::Scenario;
use cwnd_tables::Records;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use serde_json::Value;

use crate::calibrate::{self, Calibration, Probe};
use crate::error::{Error, lacks};
use crate::host::{Hosts, SideObservations};
use crate::kernel::{Counted, End, KernelState, bounds_report};
use crate::namespace::{self, RouteTo};
use crate::programs;
use crate::records::{Done, SideFacts, facts, records};
use crate::unsupported::refusals;
use crate::world::{Clock, Side, World, flows, mtu};

/// Options of a run.
#[derive(Clone, Debug)]
pub struct Options {
    /// Path of `cwnd-kernel`; `None` if it is not installed.
    pub kernel_helper: Option<PathBuf>,
    /// Compiled objects of the groups whose controller is in C, in the order of groups.
    pub objects: Vec<PathBuf>,
    /// `true` to measure the router before the run.
    pub calibrate: bool,
}

/// A capture file written by a run, with the same format as the simulator's.
pub struct CaptureFile {
    /// Destination of the file.
    pub to: Output,
    /// Indices of the captured links in the scenario.
    pub links: Vec<usize>,
}

impl fmt::Debug for CaptureFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CaptureFile").field("links", &self.links).finish_non_exhaustive()
    }
}

/// Result of a run.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// Result, in the simulator's tables.
    pub records: Records,
    /// Facts for the manifest: kernel, settings, calibration, router, validity and its flaws.
    pub facts: Value,
}

/// Runs a scenario on this machine's kernel, in real time. Calls `go_on` several times per second
/// with the time reached (zero during calibration), and stops if it returns `false`. Captures of a
/// stopped run keep their content.
///
/// # Errors
/// If the scenario has keys that Linux cannot provide, or the machine lacks a requirement; if a
/// program is not loaded, a capture cannot be written or a system call fails, or if the run was
/// stopped.
pub fn run(
    scenario: &Scenario,
    options: &Options,
    captures: Vec<CaptureFile>,
    go_on: &mut dyn FnMut(Time) -> bool,
) -> Result<Outcome, Error> {
    let refused = refusals(scenario);
    if !refused.is_empty() {
        return Err(Error::Refused(refused));
    }
    lacks()?;
    raise_open_files().map_err(Error::at("the limit on open files"))?;
    let helper = options.kernel_helper.as_deref();
    let mut objects = options.objects.iter();
    let kernel_states = scenario
        .flows
        .iter()
        .map(|group| {
            let is_code = matches!(group.controller, ControllerParams::C(_));
            let object = if is_code { objects.next() } else { None };
            KernelState::of(group, helper, object.map(PathBuf::as_path))
        })
        .collect::<Result<Vec<KernelState>, Error>>()?;
    let names =
        kernel_states.iter().map(|kernel_states| kernel_states.controller.name.clone()).collect();
    let world = World::new(scenario.clone(), flows(scenario), names);
    let config = config(&world);
    let capture = capture(scenario, &config, captures).map_err(Error::at("a capture file"))?;
    let done = between_namespaces((&world, &kernel_states), options, (&config, capture), go_on)?;
    let counts: Vec<Option<Counted>> =
        kernel_states.iter().map(|kernel_states| kernel_states.controller.counts()).collect();
    let records = records(&world, &done.seen, &done.report, &counts);
    let bounded = bounds_report(
        kernel_states.iter().filter_map(|kernel_states| kernel_states.bounds.as_ref()),
    );
    let facts = facts(&world, &done, &bounded);
    Ok(Outcome { records, facts })
}

/// Raises the soft limit on open files to the hard one, as each flow has its own sockets.
fn raise_open_files() -> io::Result<()> {
    let Rlimit { maximum, .. } = getrlimit(Resource::Nofile);
    Ok(setrlimit(Resource::Nofile, Rlimit { current: maximum, maximum })?)
}

/// Device and probe of a side that is ready.
struct Ready {
    tun: Tun,
    probe: Probe,
}

/// Configuration of the router, and its capture.
type Routed<'a> = (&'a Config, Option<Capture>);

/// Runs both sides in threads with their own namespaces, and the router between them.
fn between_namespaces(
    (world, kernel_states): (&World, &[KernelState]),
    options: &Options,
    routed: Routed<'_>,
    go_on: &mut dyn FnMut(Time) -> bool,
) -> Result<Done, Error> {
    thread::scope(|scope| {
        let mut sides = Vec::new();
        for side in Side::BOTH {
            let (ready_sender, ready_receiver) = channel();
            let (start, started) = channel();
            let thread = thread::Builder::new()
                .name(format!("cwnd-{side:?}"))
                .spawn_scoped(scope, move || {
                    run_side(world, kernel_states, side, (&ready_sender, &started))
                })
                .map_err(Error::at("a thread"))?;
            sides.push((thread, ready_receiver, start));
        }
        let mut ready = Vec::new();
        for (_, ready_receiver, _) in &sides {
            match ready_receiver.recv() {
                Ok(side) => ready.push(side),
                // The side failed; its thread returns the error.
                Err(_) => break,
            }
        }
        let outcome = match <[Ready; 2]>::try_from(ready) {
            Ok(ready) => {
                Some(router(world, options, routed, &ready, &start_senders(&sides), go_on))
            }
            Err(_) => None,
        };
        world.stop();
        let mut ended = Vec::new();
        for (thread, _, start) in sides {
            drop(start);
            ended.push(thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))?);
        }
        let (Some(outcome), Ok([left, right])) = (outcome, <[_; 2]>::try_from(ended)) else {
            return Err(Error::Lacking("a side of the testbed did not start".to_owned()));
        };
        let (report, calibration) = outcome?;
        let (seen, facts) = ([left.0, right.0], [left.1, right.1]);
        Ok(Done { report, seen, sides: facts, calibration })
    })
}

type SideThread<'s> = (
    thread::ScopedJoinHandle<'s, Result<(SideObservations, SideFacts), Error>>,
    Receiver<Ready>,
    Sender<Clock>,
);

fn start_senders(sides: &[SideThread<'_>]) -> Vec<Sender<Clock>> {
    sides.iter().map(|(_, _, start)| start.clone()).collect()
}

/// Runs the router, first for calibration, then for the run, with which the sides start.
fn router(
    world: &World,
    options: &Options,
    (config, capture): Routed<'_>,
    [left, right]: &[Ready; 2],
    start: &[Sender<Clock>],
    go_on: &mut dyn FnMut(Time) -> bool,
) -> Result<(Report, Option<Calibration>), Error> {
    let calibration = options
        .calibrate
        .then(|| calibrate(config, mtu(&world.scenario), [left, right], go_on))
        .transpose()?;
    let end = world.scenario.run.duration;
    let stop = Stop::new().map_err(Error::at("the router"))?;
    thread::scope(|scope| {
        let router = thread::Builder::new()
            .name("cwnd-router".to_owned())
            .spawn_scoped(scope, || cwnd_router::run(config, &left.tun, &right.tun, &stop, capture))
            .map_err(Error::at("the router's thread"))?;
        let clock = Clock::starting_at(monotonic().0);
        for side in start {
            // A side that has ended returns its error itself.
            let _ = side.send(clock);
        }
        let mut cancelled = false;
        while clock.now() < Time(end.0) && !router.is_finished() {
            let left = Time(end.0).since(clock.now());
            thread::sleep(core::time::Duration::from_nanos(left.0.min(POLL_INTERVAL.0)));
            if !go_on(clock.now()) {
                cancelled = true;
                break;
            }
        }
        stop.stop();
        let report = router.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        if cancelled {
            return Err(Error::Cancelled);
        }
        Ok((report.map_err(Error::at("the router"))?, calibration))
    })
}

/// Measures the router on a thread with real-time priority, while this one calls `go_on`.
fn calibrate(
    config: &Config,
    largest: Bytes,
    [left, right]: [&Ready; 2],
    go_on: &mut dyn FnMut(Time) -> bool,
) -> Result<Calibration, Error> {
    let stopped = AtomicBool::new(false);
    let measured = thread::scope(|scope| {
        let measuring = thread::Builder::new().spawn_scoped(scope, || {
            realtime(HOSTS_PRIORITY);
            let (tuns, probes) = ([&left.tun, &right.tun], [&left.probe, &right.probe]);
            calibrate::calibrate(config, largest, tuns, probes, &stopped)
        })?;
        while !measuring.is_finished() {
            thread::sleep(CALIBRATION_POLL_INTERVAL);
            stopped.fetch_or(!go_on(Time::ZERO), Ordering::Relaxed);
        }
        measuring.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    });
    if stopped.into_inner() {
        return Err(Error::Cancelled);
    }
    measured.map_err(Error::at("the calibration"))
}

/// Runs a side in its own thread and namespace.
fn run_side(
    world: &World,
    kernel_states: &[KernelState],
    side: Side,
    (ready_sender, started): (&Sender<Ready>, &Receiver<Clock>),
) -> Result<(SideObservations, SideFacts), Error> {
    let at = |what: &str| Error::at(&format!("{side:?} side: {what}"));
    Namespace::fresh().and_then(|own| own.enter()).map_err(at("a network namespace"))?;
    let sysctls = set_sysctls(world).map_err(at("its settings"))?;
    let tun = Tun::open("cwnd0").map_err(at("a TUN device"))?;
    set_addresses(world, side, tun.name()).map_err(at("its addresses"))?;
    for (g, (group, kernel_state)) in world.scenario.flows.iter().zip(kernel_states).enumerate() {
        let way = &group.paths[0];
        for (end, node) in [(End::Sender, way.from), (End::Receiver, way.to)] {
            if Side::of_node(node) == side {
                kernel_state.load_at(end, tun.name(), side.address(g))?;
            }
        }
    }
    let probe = Probe::open(side).map_err(at("its probe"))?;
    let hosts = Hosts::open(world, side).map_err(at("its hosts"))?;
    let mut seen = SideObservations::default();
    if ready_sender.send(Ready { tun, probe }).is_ok()
        && let Ok(clock) = started.recv()
    {
        // Delays of applications would appear in ACKs; without the right, priority stays as it is.
        // Not during setup: threads that set up namespaces retry while another holds a kernel lock,
        // and a retrying thread with priority could keep the holder from running.
        realtime(HOSTS_PRIORITY);
        seen = hosts.run(clock).map_err(at("its sockets"))?;
    }
    Ok((seen, SideFacts { sysctls, counters: namespace::tcp_counters() }))
}

/// Sets the sysctls of the calling thread's namespace; returns those recorded with the results.
fn set_sysctls(world: &World) -> io::Result<Vec<(String, String)>> {
    for (name, value) in SETTINGS {
        namespace::set_sysctl(name, value)?;
    }
    for (name, value) in programs::tso_sysctls(&world.scenario) {
        namespace::set_sysctl(name, &value)?;
    }
    let timestamps = world.scenario.connections().all(|g| g.endpoint.rtt.timestamps);
    namespace::set_sysctl("net.ipv4.tcp_timestamps", if timestamps { "1" } else { "0" })?;
    let read = |name: &&str| Some(((*name).to_owned(), namespace::sysctl(name)?));
    Ok(RECORDED.iter().filter_map(read).collect())
}

/// Adds addresses and routes of all groups to a side's device.
fn set_addresses(world: &World, side: Side, device: &str) -> io::Result<()> {
    let mut netlink = Netlink::route()?;
    let (own, lo) = (netlink.interface(device)?, netlink.interface("lo")?);
    netlink.bring_up(lo, None, None)?;
    netlink.bring_up(own, Some(mtu(&world.scenario).0 as u32), Some(DEVICE_QUEUE))?;
    let other = match side {
        Side::Left => Side::Right,
        Side::Right => Side::Left,
    };
    for (g, group) in world.scenario.flows.iter().enumerate() {
        let kernels = kernels_endpoint();
        let endpoint = &group.endpoint;
        let address = side.address(g).into();
        netlink.add_address(own, address, address)?;
        let route = RouteTo {
            destination: other.address(g),
            source: side.address(g),
            ecn: endpoint.ecn.ecn && Side::of_node(group.paths[0].from) == side,
            initial_window: (endpoint.windows.initial_window != kernels.windows.initial_window)
                .then_some(endpoint.windows.initial_window),
            rto_min_ms: (endpoint.rto.rto_min != kernels.rto.rto_min)
                .then_some((endpoint.rto.rto_min.0 / 1_000_000) as u32),
            quick_acks: endpoint.acks.ack_every == 1 && Side::of_node(group.paths[0].to) == side,
        };
        namespace::add_route(&mut netlink, own, &route)?;
    }
    Ok(())
}

/// Returns the endpoint parameters of the preset `linux`.
fn kernels_endpoint() -> cwnd_tcp::Params {
    let mut params = cwnd_tcp::Params::default();
    cwnd_schema::Params::apply_preset(&mut params, crate::unsupported::PRESET);
    params
}

/// Returns the router's configuration: the scenario's links in the order of the sides, and
/// additional delays of flows.
fn config(world: &World) -> Config {
    let scenario = &world.scenario;
    let mut directions = [0, 1].map(|i| Direction::of_link(&scenario.links[i]));
    for (i, flow) in world.flows.iter().enumerate() {
        // Half of the delay is before the receiver, half behind it, as in the simulator.
        let half = flow.edge_rtt / 2;
        let varies = scenario.has_own_delays(&scenario.flows[flow.group]);
        let sender = world.sender(i);
        let end = Endpoint {
            address: (*sender.ip()).into(),
            port: if varies { sender.port() } else { 0 },
        };
        for (direction, delay) in directions.iter_mut().zip([half, flow.edge_rtt - half]) {
            direction.flow_delays.insert(end, delay);
        }
    }
    for (direction, side) in directions.iter_mut().zip(Side::BOTH) {
        let groups = (0..).zip(&scenario.flows);
        direction.watched = groups.map(|(g, _)| (side.address(g as usize).into(), g)).collect();
    }
    let mut config = Config::new(directions[0].clone(), directions[1].clone());
    config.seed = scenario.run.seed;
    config.warmup = scenario.run.warmup;
    config.sample = scenario.run.sample.map(|_| world.interval());
    // The time of a thread to wake up is negligible compared with that of a packet, and polling the
    // clock would take the processor from parallel runs.
    let fastest = scenario.links.iter().filter_map(|link| link.rate.highest_bit_s());
    if fastest.fold(0.0, f64::max) <= SPIN_FROM_BIT_S {
        config.pacing.spin = Duration::ZERO;
    }
    config
}

/// Creates the capture of the router's links, in the run's time and with headers only, as in the
/// simulator.
fn capture(
    scenario: &Scenario,
    config: &Config,
    files: Vec<CaptureFile>,
) -> io::Result<Option<Capture>> {
    if files.is_empty() {
        return Ok(None);
    }
    let about = format!("{}, seed {}, on Linux", scenario.name, scenario.run.seed);
    let described: Vec<String> = scenario
        .links
        .iter()
        .map(|link| {
            let (from, to) = (&scenario.nodes[link.from], &scenario.nodes[link.to]);
            format!("link of the testbed from {from} to {to}")
        })
        .collect();
    let mut capture = Capture::of_headers();
    for file in files {
        let links = file.links.iter();
        let seen = links.map(|&i| (i, &config.directions[i], described[i].as_str()));
        capture.add(file.to, &about, seen)?;
    }
    Ok(Some(capture))
}

/// Rate above which the router polls the clock: a packet of 1500 B takes less than 120 µs.
const SPIN_FROM_BIT_S: f64 = 100e6;

/// Real-time priority of hosts, below the router's.
const HOSTS_PRIORITY: u8 = 40;
/// Intervals between calls of `go_on`.
const POLL_INTERVAL: Duration = Duration::from_millis(50);
const CALIBRATION_POLL_INTERVAL: core::time::Duration = core::time::Duration::from_millis(10);
/// Length of the devices' queues in packets: above any window of 1500 B packets, so that they are
/// no second bottleneck.
const DEVICE_QUEUE: u32 = 20_000;
/// Sysctls that are the same in all runs. `set_sysctls` also sets those for timestamps and TSO; all
/// others have the defaults of a new namespace.
const SETTINGS: [(&str, &str); 6] = [
    // No route leads to the source address of the router's messages.
    ("net.ipv4.conf.all.rp_filter", "0"),
    ("net.ipv4.conf.default.rp_filter", "0"),
    // Buffers of up to 16 MiB.
    ("net.ipv4.tcp_rmem", "4096 131072 16777216"),
    ("net.ipv4.tcp_wmem", "4096 16384 16777216"),
    // A connection learns nothing from an earlier one.
    ("net.ipv4.tcp_no_metrics_save", "1"),
    // ECN is requested by route and accepted from any peer.
    ("net.ipv4.tcp_ecn", "2"),
];
/// Sysctls that are read back and kept with the results.
const RECORDED: [&str; 19] = [
    "net.ipv4.tcp_congestion_control",
    "net.ipv4.tcp_ecn",
    "net.ipv4.tcp_rmem",
    "net.ipv4.tcp_wmem",
    "net.ipv4.tcp_no_metrics_save",
    "net.ipv4.tcp_timestamps",
    "net.ipv4.tcp_sack",
    "net.ipv4.tcp_window_scaling",
    "net.ipv4.tcp_recovery",
    "net.ipv4.tcp_early_retrans",
    "net.ipv4.tcp_frto",
    "net.ipv4.tcp_autocorking",
    "net.ipv4.tcp_slow_start_after_idle",
    "net.ipv4.tcp_limit_output_bytes",
    "net.ipv4.tcp_min_tso_segs",
    "net.ipv4.tcp_tso_rtt_log",
    "net.ipv4.tcp_tso_win_divisor",
    "net.ipv4.tcp_moderate_rcvbuf",
    "net.core.default_qdisc",
];
