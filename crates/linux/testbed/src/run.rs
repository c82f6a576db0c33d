//! A run: two namespaces, a router between them, and what they saw.

use std::fmt;
use std::io;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;

use cwnd_quantity::{Bytes, Duration, Time};
use cwnd_router::linux::netlink::Netlink;
use cwnd_router::linux::{monotonic, realtime};
use cwnd_router::{Capture, Config, Direction, Endpoint, Namespace, Output, Report, Stop, Tun};
use cwnd_scenario::Scenario;
use cwnd_tables::Records;
use serde_json::Value;

use crate::calibrate::{self, Calibration, Probe};
use crate::clock::Clock;
use crate::error::Error;
use crate::facts::{self, Done, SideFacts};
use crate::held::Held;
use crate::host::{Hosts, Seen};
use crate::kernel::{Counted, End};
use crate::lab;
use crate::namespace::{self, RouteTo};
use crate::plan;
use crate::records::records;
use crate::refuse::refusals;
use crate::rights::lacks;
use crate::timeouts;
use crate::world::{Side, World};

/// How a run is done.
#[derive(Clone, Debug)]
pub struct Options {
    /// The program that loads controllers of our own; `None` if there is none.
    pub kernel_helper: Option<PathBuf>,
    /// Whether the router is measured before.
    pub calibrate: bool,
}

/// A capture file that a run writes, as the simulator would.
pub struct CaptureFile {
    /// Where it goes.
    pub to: Output,
    /// The links whose packets it has, by their place in the scenario.
    pub links: Vec<usize>,
}

impl fmt::Debug for CaptureFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CaptureFile").field("links", &self.links).finish_non_exhaustive()
    }
}

/// What a run gave.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// The simulator's tables.
    pub records: Records,
    /// What else is known of it: kernel, settings, calibration, router, whether it is valid and if not why.
    pub facts: Value,
}

/// Runs a scenario on this machine's kernel, in real time; `go_on` is asked several times a second and told how far it is. What
/// `captures` hold when a run is stopped stays there.
///
/// # Errors
/// If the scenario asks for what Linux can't provide, the machine lacks something, a capture can't be written, or the run was
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
    let helper = options.kernel_helper.as_deref();
    let held = scenario
        .flows
        .iter()
        .map(|group| Held::of(group, helper))
        .collect::<Result<Vec<Held>, Error>>()?;
    let names = held.iter().map(|held| held.controller.name.clone()).collect();
    let world = World::new(scenario.clone(), plan::flows(scenario), names);
    let config = config(&world);
    let capture = capture(scenario, &config, captures).map_err(Error::at("a capture file"))?;
    let done = between_namespaces((&world, &held), options, (&config, capture), go_on)?;
    let counts: Vec<Option<Counted>> = held.iter().map(|held| held.controller.counts()).collect();
    let records = records(&world, &done.seen, &done.report, &counts);
    let bounded = timeouts::told(held.iter().filter_map(|held| held.bounds.as_ref()));
    let facts = facts::facts(&world, &done, &bounded);
    Ok(Outcome { records, facts })
}

/// A side that is ready.
struct Ready {
    tun: Tun,
    probe: Probe,
}

/// The router of a run, and what is captured in it.
type Routed<'a> = (&'a Config, Option<Capture>);

fn between_namespaces(
    (world, held): (&World, &[Held]),
    options: &Options,
    routed: Routed<'_>,
    go_on: &mut dyn FnMut(Time) -> bool,
) -> Result<Done, Error> {
    thread::scope(|scope| {
        let mut sides = Vec::new();
        for side in Side::BOTH {
            let (tell, told) = channel();
            let (begin, begun) = channel();
            let thread = thread::Builder::new()
                .name(format!("cwnd-{side:?}"))
                .spawn_scoped(scope, move || live(world, held, side, (&tell, &begun)))
                .map_err(Error::at("a thread"))?;
            sides.push((thread, told, begin));
        }
        let mut ready = Vec::new();
        for (_, told, _) in &sides {
            match told.recv() {
                Ok(side) => ready.push(side),
                // It ended with an error, which its thread has.
                Err(_) => break,
            }
        }
        let outcome = match <[Ready; 2]>::try_from(ready) {
            Ok(ready) => Some(router(world, options, routed, &ready, &sides_begin(&sides), go_on)),
            Err(_) => None,
        };
        world.stop();
        let mut ended = Vec::new();
        for (thread, _, begin) in sides {
            drop(begin);
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
    thread::ScopedJoinHandle<'s, Result<(Seen, SideFacts), Error>>,
    Receiver<Ready>,
    Sender<Clock>,
);

fn sides_begin(sides: &[SideThread<'_>]) -> Vec<Sender<Clock>> {
    sides.iter().map(|(_, _, begin)| begin.clone()).collect()
}

/// Runs the router, first for the calibration, then for the run; the sides begin with it.
fn router(
    world: &World,
    options: &Options,
    (config, capture): Routed<'_>,
    [left, right]: &[Ready; 2],
    begin: &[Sender<Clock>],
    go_on: &mut dyn FnMut(Time) -> bool,
) -> Result<(Report, Option<Calibration>), Error> {
    let calibration = options
        .calibrate
        .then(|| calibrate(config, world.packet(), [left, right], go_on))
        .transpose()?;
    let end = world.scenario.run.duration;
    let stop = Stop::new().map_err(Error::at("the router"))?;
    thread::scope(|scope| {
        let router = thread::Builder::new()
            .name("cwnd-router".to_owned())
            .spawn_scoped(scope, || cwnd_router::run(config, &left.tun, &right.tun, &stop, capture))
            .map_err(Error::at("the router's thread"))?;
        let clock = Clock::starting_at(monotonic().0);
        for side in begin {
            // A side that has ended says why by itself.
            let _ = side.send(clock);
        }
        let mut cancelled = false;
        while clock.now() < Time(end.0) && !router.is_finished() {
            let left = Time(end.0).since(clock.now());
            thread::sleep(core::time::Duration::from_nanos(left.0.min(LOOK.0)));
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

/// Measures the router from a thread that does not wait for others.
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
            thread::sleep(LOOK_IN_CALIBRATION);
            stopped.fetch_or(!go_on(Time::ZERO), Ordering::Relaxed);
        }
        measuring.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    });
    if stopped.into_inner() {
        return Err(Error::Cancelled);
    }
    measured.map_err(Error::at("the calibration"))
}

/// The life of a side, in a thread and a namespace of its own.
fn live(
    world: &World,
    held: &[Held],
    side: Side,
    (tell, begun): (&Sender<Ready>, &Receiver<Clock>),
) -> Result<(Seen, SideFacts), Error> {
    let at = |what: &str| Error::at(&format!("{side:?} side: {what}"));
    Namespace::fresh().and_then(|own| own.enter()).map_err(at("a network namespace"))?;
    let sysctls = set_sysctls(world).map_err(at("its settings"))?;
    let tun = Tun::open("cwnd0").map_err(at("a TUN device"))?;
    set_addresses(world, side, tun.name()).map_err(at("its addresses"))?;
    for (g, (group, held)) in world.scenario.flows.iter().zip(held).enumerate() {
        let way = &group.ways[0];
        for (end, node) in [(End::Sender, way.from), (End::Receiver, way.to)] {
            if Side::of_node(node) == side {
                held.meets(end, tun.name(), side.address(g))?;
            }
        }
    }
    let probe = Probe::open(side).map_err(at("its probe"))?;
    let hosts = Hosts::open(world, side).map_err(at("its hosts"))?;
    let mut seen = Seen::default();
    if tell.send(Ready { tun, probe }).is_ok()
        && let Ok(clock) = begun.recv()
    {
        // Applications that are late would be seen in the ACKs; without the right to it they are what they are. Not before: a
        // thread that sets a namespace up tries again and again where another has the kernel's lock, and one with this
        // priority would keep that other from ever giving it back.
        realtime(HOSTS_PRIORITY);
        seen = hosts.run(clock).map_err(at("its sockets"))?;
    }
    Ok((seen, SideFacts { sysctls, counters: namespace::tcp_counters() }))
}

fn set_sysctls(world: &World) -> io::Result<Vec<(String, String)>> {
    for (name, value) in SETTINGS {
        namespace::set_sysctl(name, value)?;
    }
    for (name, value) in lab::chunks(&world.scenario) {
        namespace::set_sysctl(name, &value)?;
    }
    let timestamps = world.scenario.flows.iter().all(|g| g.endpoint.rtt.timestamps);
    namespace::set_sysctl("net.ipv4.tcp_timestamps", if timestamps { "1" } else { "0" })?;
    let read = |name: &&str| Some(((*name).to_owned(), namespace::sysctl(name)?));
    Ok(RECORDED.iter().filter_map(read).collect())
}

fn set_addresses(world: &World, side: Side, device: &str) -> io::Result<()> {
    let mut netlink = Netlink::route()?;
    let (own, lo) = (netlink.interface(device)?, netlink.interface("lo")?);
    netlink.bring_up(lo, None, None)?;
    netlink.bring_up(own, Some(world.packet().0 as u32), Some(DEVICE_QUEUE))?;
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
            ecn: endpoint.ecn.ecn && Side::of_node(group.ways[0].from) == side,
            initial_window: (endpoint.windows.initial_window != kernels.windows.initial_window)
                .then_some(endpoint.windows.initial_window),
            rto_min_ms: (endpoint.rto.rto_min != kernels.rto.rto_min)
                .then_some((endpoint.rto.rto_min.0 / 1_000_000) as u32),
            quick_acks: endpoint.acks.ack_every == 1 && Side::of_node(group.ways[0].to) == side,
        };
        namespace::add_route(&mut netlink, own, &route)?;
    }
    Ok(())
}

fn kernels_endpoint() -> cwnd_tcp::Params {
    let mut params = cwnd_tcp::Params::default();
    cwnd_schema::Params::apply_preset(&mut params, crate::refuse::PRESET);
    params
}

/// The router of a scenario: its links in the order of the sides, and what flows have on top of their delay.
fn config(world: &World) -> Config {
    let scenario = &world.scenario;
    let mut directions = [0, 1].map(|i| Direction::of_link(&scenario.links[i]));
    for (i, flow) in world.flows.iter().enumerate() {
        // Half before the receiver, half after it, as in the simulator.
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
    let mut config = Config::new(directions[0].clone(), directions[1].clone());
    config.seed = scenario.run.seed;
    config.warmup = scenario.run.warmup;
    config.sample = scenario.run.sample.map(|_| world.interval());
    // Next to the time that a packet takes, what a thread takes to wake up is nothing, and looking at the clock instead would
    // take the processor from the runs beside this one.
    let fastest = scenario.links.iter().filter_map(|link| link.rate.highest_bit_s());
    if fastest.fold(0.0, f64::max) <= SPIN_FROM_BIT_S {
        config.pacing.spin = Duration::ZERO;
    }
    config
}

/// What is captured of the router's links, in the time of the run; of packets the headers, as in the simulator.
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

/// Above this a packet of 1500 B takes less than 120 µs.
const SPIN_FROM_BIT_S: f64 = 100e6;

/// Above all that is not real-time, below the router's.
const HOSTS_PRIORITY: u8 = 40;
/// How often it is asked whether to go on.
const LOOK: Duration = Duration::from_millis(50);
const LOOK_IN_CALIBRATION: core::time::Duration = core::time::Duration::from_millis(10);
/// Packets that wait for the router to take them; more than any window here, so that no second bottleneck is there.
const DEVICE_QUEUE: u32 = 20_000;
/// What is set; all else is as a new namespace has it.
const SETTINGS: [(&str, &str); 6] = [
    // No route leads to the address in whose name the router's messages come.
    ("net.ipv4.conf.all.rp_filter", "0"),
    ("net.ipv4.conf.default.rp_filter", "0"),
    // Buffers that never limit a window: 16 MiB.
    ("net.ipv4.tcp_rmem", "4096 131072 16777216"),
    ("net.ipv4.tcp_wmem", "4096 16384 16777216"),
    // A connection learns nothing from the one before it.
    ("net.ipv4.tcp_no_metrics_save", "1"),
    // ECN is asked for by route and granted to whoever asks.
    ("net.ipv4.tcp_ecn", "2"),
];
/// What is read back and kept with the results.
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
