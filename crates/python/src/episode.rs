//! Episodes of reinforcement learning: runs that stop after each step, so that agents outside set
//! the windows of flow groups.

use std::io;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::mpsc::{Sender, SyncSender, channel, sync_channel};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::thread;

use cwnd_cc::{AckSample, Controller, Path, RateSample, Request, Signal, Start, Window};
use cwnd_packet::{Contract, Echo, HasContract};
use cwnd_quantity::{Duration, Time};
use cwnd_scenario::{FlowGroup, Scenario};
use cwnd_sim::World;
use cwnd_tables::Records;
use pyo3::exceptions::{PyRuntimeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyByteArray;

use crate::run::Result;
use crate::scenario::Cell;

/// Number of facts that an agent observes.
const FACTS: usize = 8;
/// Upper bounds of what an agent observes: throughput (Mbit/s), lost and marked bytes (shares),
/// RTT, least RTT (s), data in flight, window (segments), length of the step (s).
pub const OBSERVATION_BOUNDS: [f32; FACTS] = [1e6, 1.0, 1.0, 1e3, 1e3, 1e7, 1e7, 1e3];

/// Largest window of an agent in bandwidth-delay products, unless the endpoint has `max_window`: an
/// agent that still explores would otherwise send without bound.
const MAX_WINDOW_BDP: f64 = 10.0;
/// Least value of that bound, and its value if no link has a rate, segments.
const MAX_WINDOW_SEGMENTS: (f64, f64) = (100.0, 10_000.0);
/// Shortest step, of paths without propagation.
const SHORTEST_STEP: Duration = Duration::from_millis(1);

/// A controller whose window is set from outside, between steps.
#[derive(Clone, Debug)]
struct AgentController {
    agent: Arc<Agent>,
    /// Bytes that the rate sample of this ACK reports.
    newly_delivered: u64,
    /// Count of CE in the last ACK with one.
    ce_packets: u32,
}

impl AgentController {
    const fn new(agent: Arc<Agent>) -> Self {
        Self { agent, newly_delivered: 0, ce_packets: 0 }
    }

    /// Bytes that this ACK reports as marked: by a count of packets with CE, or else by ECE.
    fn newly_marked(&mut self, path: &Path, ack: &AckSample, delivered: u64) -> u64 {
        let Echo::Ce { packets } = ack.echo else {
            return if ack.ece { delivered } else { 0 };
        };
        let more = packets.wrapping_sub(self.ce_packets);
        // The count of an ACK that was overtaken is smaller than the last one.
        if more > u32::MAX / 2 {
            return 0;
        }
        self.ce_packets = packets;
        u64::from(more) * u64::from(path.mss)
    }
}

/// Window of a group's connections, and what their ACKs report.
#[derive(Debug)]
struct Agent {
    /// Payload bytes of each connection.
    window: AtomicU64,
    seen: Mutex<Seen>,
}

/// Sums over the ACKs of a step, and values of the last ACK.
#[derive(Clone, Copy, Debug, Default)]
struct Seen {
    delivered: u64,
    lost: u64,
    acks: u64,
    marked: u64,
    rtts: u64,
    rtt_sum: Duration,
    in_flight_sum: u64,
    /// Mean over the last step that had samples.
    rtt: Duration,
    srtt: Option<Duration>,
    min_rtt: Option<Duration>,
    in_flight: f64,
}

/// Window of an agent in segments, and its bounds.
#[derive(Clone, Copy, Debug)]
struct Bounded {
    segments: f64,
    most: f64,
    mss: f64,
}

impl Agent {
    fn seen(&self) -> MutexGuard<'_, Seen> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl HasContract for AgentController {
    fn contract(&self) -> Contract {
        Contract::default()
    }
}

impl Controller for AgentController {
    fn on_ack(&mut self, path: &Path, ack: &AckSample) -> Request {
        let delivered = core::mem::take(&mut self.newly_delivered);
        let marked = self.newly_marked(path, ack, delivered);
        let mut seen = self.agent.seen();
        seen.delivered += delivered;
        seen.marked += marked;
        seen.lost += ack.newly_lost;
        seen.acks += 1;
        if let Some(rtt) = ack.rtt {
            seen.rtts += 1;
            seen.rtt_sum += rtt;
        }
        seen.srtt = path.srtt.or(seen.srtt);
        seen.min_rtt = [path.min_rtt, seen.min_rtt].into_iter().flatten().min();
        Request::Nothing
    }

    fn on_signal(&mut self, _: &Path, _: Signal) {}

    fn window(&self) -> Window {
        Window { cwnd: self.agent.window.load(Ordering::Relaxed), ssthresh: u64::MAX }
    }

    /// The window alone bounds what is sent during recovery, without proportional rate reduction.
    fn is_rate_based(&self) -> bool {
        true
    }

    fn on_rate(&mut self, sample: &RateSample) {
        self.newly_delivered = sample.newly_delivered;
        self.agent.seen().in_flight_sum += sample.in_flight;
    }
}

impl Seen {
    /// Returns what the agent observes of a step, and begins the next one.
    fn take(&mut self, window: Bounded, step: Duration) -> [f32; FACTS] {
        let share = |part: u64, of: u64| if of == 0 { 0.0 } else { part as f64 / of as f64 };
        self.rtt = self.rtt_sum.0.checked_div(self.rtts).map_or(self.rtt, Duration);
        if self.acks > 0 {
            self.in_flight = share(self.in_flight_sum, self.acks) / window.mss;
        }
        let seconds = step.as_secs_f64();
        let facts = [
            if seconds > 0.0 { self.delivered as f64 * 8e-6 / seconds } else { 0.0 },
            share(self.lost, self.lost + self.delivered),
            share(self.marked, self.delivered),
            self.rtt.as_secs_f64(),
            self.min_rtt.unwrap_or(Duration::ZERO).as_secs_f64(),
            self.in_flight,
            window.segments,
            seconds,
        ];
        let Self { rtt, srtt, min_rtt, in_flight, .. } = *self;
        *self = Self { rtt, srtt, min_rtt, in_flight, ..Self::default() };
        let mut bounded = OBSERVATION_BOUNDS;
        for (most, fact) in bounded.iter_mut().zip(facts) {
            *most = most.min(fact as f32);
        }
        bounded
    }
}

/// A run that stops after each step.
#[derive(Debug)]
struct Steps {
    world: World,
    agents: Vec<(Arc<Agent>, Bounded)>,
    /// Length of a step; `None` is the longest smoothed RTT of the agents.
    step: Option<Duration>,
    /// Round trip without queues, for steps before the first RTT sample.
    first_rtt: Duration,
    at: Time,
    end: Time,
    is_over: bool,
    is_finished: bool,
}

impl Steps {
    fn new(scenario: Scenario, names: &[String], step: Option<Duration>) -> PyResult<Self> {
        let scenario = Arc::new(scenario);
        let mut world = World::new(Arc::clone(&scenario));
        let mut agents = Vec::with_capacity(names.len());
        let mut first_rtt = SHORTEST_STEP;
        for name in names {
            let group = scenario.flows.iter().find(|group| group.name == *name);
            let group = group.filter(|group| group.connects() && group.quic.is_none());
            let no_tcp = || PyValueError::new_err(format!("flow.{name} has no connections of TCP"));
            let group = group.ok_or_else(no_tcp)?;
            let agent = Arc::new(Agent { window: AtomicU64::new(0), seen: Mutex::default() });
            let rtt = longest_rtt(&scenario, group);
            first_rtt = first_rtt.max(rtt);
            // The first call takes what connections of the group start with.
            let start = Arc::new(Mutex::new(None));
            let (of_agent, of_start) = (Arc::clone(&agent), Arc::clone(&start));
            world.replace_controllers(name, move |start| {
                *of_start.lock().unwrap_or_else(PoisonError::into_inner) = Some(*start);
                AgentController::new(Arc::clone(&of_agent))
            });
            let start = start.lock().unwrap_or_else(PoisonError::into_inner).take();
            let start = start.ok_or_else(no_tcp)?;
            let window = Bounded::new(&start, bdp(&scenario, group, rtt));
            agent.window.store(window.bytes(), Ordering::Relaxed);
            agents.push((agent, window));
        }
        let end = Time(scenario.run.duration.0);
        Ok(Self {
            world,
            agents,
            step,
            first_rtt,
            at: Time::ZERO,
            end,
            is_over: false,
            is_finished: false,
        })
    }

    /// Multiplies the windows by 2 to the power of the actions, runs a step, and writes what the
    /// agents observe.
    fn advance(&mut self, actions: &[f64], observed: &mut [f32]) {
        for ((agent, window), action) in self.agents.iter_mut().zip(actions) {
            let changed = window.segments * libm::exp2(action.clamp(-1.0, 1.0));
            window.segments = changed.clamp(1.0, window.most);
            agent.window.store(window.bytes(), Ordering::Relaxed);
        }
        let srtt = self.agents.iter().filter_map(|(agent, _)| agent.seen().srtt).max();
        let step = self.step.or(srtt).unwrap_or(self.first_rtt).max(Duration(1));
        let until = (self.at + step).min(self.end);
        self.is_over = !self.world.advance(until);
        let step = until.since(self.at);
        self.at = until;
        self.observe(step, observed);
    }

    fn finish(&mut self) -> PyResult<Records> {
        if self.is_finished {
            return Err(PyValueError::new_err("the records of the episode were taken before"));
        }
        (self.is_over, self.is_finished) = (true, true);
        self.world.advance(self.end);
        Ok(self.world.finish())
    }

    fn observe(&self, step: Duration, observed: &mut [f32]) {
        for ((agent, window), place) in self.agents.iter().zip(observed.chunks_mut(FACTS)) {
            place.copy_from_slice(&agent.seen().take(*window, step));
        }
    }
}

impl Bounded {
    fn new(start: &Start, bdp: Option<f64>) -> Self {
        let mss = f64::from(start.mss);
        let (least, without_rate) = MAX_WINDOW_SEGMENTS;
        let of_path = bdp.map_or(without_rate, |bdp| (MAX_WINDOW_BDP * bdp / mss).max(least));
        let given = (start.max_window < u64::MAX).then_some(start.max_window as f64 / mss);
        let most = given.unwrap_or(of_path).max(1.0);
        Self { segments: (start.initial_window as f64 / mss).clamp(1.0, most), most, mss }
    }

    fn bytes(self) -> u64 {
        (self.segments * self.mss) as u64
    }
}

/// Longest round trip of a group without queues.
fn longest_rtt(scenario: &Scenario, group: &FlowGroup) -> Duration {
    let of_links = group.paths.iter().map(|path| scenario.propagation(path)).max();
    of_links.unwrap_or(Duration::ZERO) + group.edge_rtt.mean()
}

/// Bandwidth-delay product of the group's fastest path, bytes; `None` if it has no rate.
fn bdp(scenario: &Scenario, group: &FlowGroup, rtt: Duration) -> Option<f64> {
    let slowest = |route: &[usize]| {
        let links = route.iter().filter_map(|&link| scenario.links[link].rate.highest_bit_s());
        links.chain(group.edge_rate.map(|rate| rate.0 as f64)).reduce(f64::min)
    };
    let fastest = group.paths.iter().filter_map(|path| slowest(&path.route)).reduce(f64::max);
    fastest.map(|rate| rate / 8.0 * rtt.as_secs_f64())
}

/// A run whose agents set the windows of flow groups between steps.
#[pyclass(frozen, module = "cwnd._core")]
#[derive(Debug)]
pub struct Episode {
    agents: usize,
    steps: Arc<Mutex<Steps>>,
}

impl Episode {
    fn steps(&self) -> MutexGuard<'_, Steps> {
        locked(&self.steps)
    }

    /// Checks that a step can follow: one number for each agent, and the run not over.
    fn check(&self, actions: &[f64]) -> PyResult<()> {
        let error = |text: String| Err(PyValueError::new_err(text));
        if actions.len() != self.agents {
            return error(format!(
                "{} agents take as many actions, not {}",
                self.agents,
                actions.len()
            ));
        }
        if let Some(action) = actions.iter().find(|action| action.is_nan()) {
            return error(format!("an action is a number from -1 to 1, not {action}"));
        }
        if self.steps().is_over {
            return error("the episode is over: call `reset`".to_owned());
        }
        Ok(())
    }
}

#[pymethods]
impl Episode {
    /// Builds the run with another seed. `agents` are names of flow groups, `step_s` is the length
    /// of a step in seconds, `None` for a round trip.
    #[new]
    #[pyo3(signature = (cell, agents, *, seed, step_s=None))]
    fn new(
        py: Python<'_>,
        cell: &Cell,
        agents: Vec<String>,
        seed: u64,
        step_s: Option<f64>,
    ) -> PyResult<Self> {
        let mut scenario = cell.scenario().clone();
        scenario.run.seed = seed;
        let step = step_s.map(Duration::from_secs_f64);
        let steps = py.detach(|| Steps::new(scenario, &agents, step))?;
        Ok(Self { agents: agents.len(), steps: Arc::new(Mutex::new(steps)) })
    }

    /// Runs a step; returns what the agents observe as single-precision numbers, agent by agent,
    /// and `True` if the run is over.
    fn step<'py>(
        &self,
        py: Python<'py>,
        actions: Vec<f64>,
    ) -> PyResult<(Bound<'py, PyByteArray>, bool)> {
        self.check(&actions)?;
        let mut observed = vec![0.0; self.agents * FACTS];
        let is_over = py.detach(|| {
            let mut steps = self.steps();
            steps.advance(&actions, &mut observed);
            steps.is_over
        });
        Ok((bytes(py, &observed)?, is_over))
    }

    /// Returns what the agents observe before the first step.
    fn observe<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyByteArray>> {
        let mut observed = vec![0.0; self.agents * FACTS];
        self.steps().observe(Duration::ZERO, &mut observed);
        bytes(py, &observed)
    }

    /// Runs to the end with the windows as they are; returns the records of the run. Call it once:
    /// the records are taken.
    fn finish(&self, py: Python<'_>) -> PyResult<Result> {
        py.detach(|| self.steps().finish()).map(Result::new)
    }
}

fn locked(steps: &Mutex<Steps>) -> MutexGuard<'_, Steps> {
    steps.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A step of several episodes of one agent, which threads share.
#[derive(Debug)]
struct SharedStep {
    episodes: Vec<Arc<Mutex<Steps>>>,
    actions: Vec<f64>,
    /// Observation of each agent, and `true` if its run is over.
    done: Vec<OnceLock<([f32; FACTS], bool)>>,
    /// Index of the next episode that a thread takes.
    next: AtomicUsize,
    /// Number of episodes that are not done.
    left: AtomicUsize,
    /// Receives a message when all are done.
    finished: SyncSender<()>,
}

/// Counts an episode as done when it is dropped, after a panic, too: nobody waits for it then.
struct Counted<'a>(&'a SharedStep);

impl Drop for Counted<'_> {
    fn drop(&mut self) {
        if self.0.left.fetch_sub(1, Ordering::AcqRel) == 1 {
            // The channel has room for this one message.
            let _ = self.0.finished.try_send(());
        }
    }
}

impl SharedStep {
    /// Steps episodes until none is left.
    fn work(&self) {
        loop {
            let n = self.next.fetch_add(1, Ordering::Relaxed);
            let Some(episode) = self.episodes.get(n) else { break };
            let _counted = Counted(self);
            let mut steps = locked(episode);
            let mut observed = [0.0; FACTS];
            steps.advance(&self.actions[n..=n], &mut observed);
            let _is_first = self.done[n].set((observed, steps.is_over));
        }
    }
}

/// Threads that step episodes of one agent together. They wait between steps: a thread that is
/// started for each step often runs only when the others are done.
#[pyclass(frozen, module = "cwnd._core")]
#[derive(Debug)]
pub struct Stepper {
    threads: usize,
    workers: Mutex<Workers>,
}

/// The threads beside the caller's, of this process.
#[derive(Debug)]
struct Workers {
    process: u32,
    senders: Vec<Sender<Arc<SharedStep>>>,
}

impl Workers {
    fn new(threads: usize) -> io::Result<Self> {
        let senders = (1..threads).map(|_| {
            let (sender, receiver) = channel::<Arc<SharedStep>>();
            thread::Builder::new().spawn(move || receiver.iter().for_each(|step| step.work()))?;
            Ok(sender)
        });
        Ok(Self { process: std::process::id(), senders: senders.collect::<io::Result<_>>()? })
    }
}

impl Stepper {
    /// Returns the threads; a process that was forked starts its own.
    fn workers(&self) -> io::Result<MutexGuard<'_, Workers>> {
        let mut workers = self.workers.lock().unwrap_or_else(PoisonError::into_inner);
        if workers.process != std::process::id() {
            // Those of the parent may have locked their channels, so that nothing can drop these.
            core::mem::forget(core::mem::replace(&mut *workers, Workers::new(self.threads)?));
        }
        Ok(workers)
    }
}

#[pymethods]
impl Stepper {
    #[new]
    fn new(threads: usize) -> PyResult<Self> {
        Ok(Self { threads, workers: Mutex::new(Workers::new(threads)?) })
    }

    /// Runs a step of each episode; returns what [`Episode::step`] does, episode by episode.
    fn step<'py>(
        &self,
        py: Python<'py>,
        episodes: Vec<Bound<'py, Episode>>,
        actions: Vec<f64>,
    ) -> PyResult<(Bound<'py, PyByteArray>, Vec<bool>)> {
        let count = episodes.len();
        if actions.len() != count {
            let text = format!("{count} episodes take as many actions, not {}", actions.len());
            return Err(PyValueError::new_err(text));
        }
        for (episode, action) in episodes.iter().zip(&actions) {
            episode.get().check(core::slice::from_ref(action))?;
        }
        let (finished, all_done) = sync_channel(1);
        let step = Arc::new(SharedStep {
            episodes: episodes.iter().map(|episode| Arc::clone(&episode.get().steps)).collect(),
            actions,
            done: (0..count).map(|_| OnceLock::new()).collect(),
            next: AtomicUsize::new(0),
            left: AtomicUsize::new(count),
            finished,
        });
        for worker in self.workers()?.senders.iter().take(count.saturating_sub(1)) {
            // A thread that has panicked is gone; the others do its work.
            let _ = worker.send(Arc::clone(&step));
        }
        let shared = Arc::clone(&step);
        py.detach(move || {
            shared.work();
            if count > 0 {
                let _is_sent = all_done.recv();
            }
        });
        let done: Option<Vec<_>> = step.done.iter().map(|done| done.get().copied()).collect();
        let done = done.ok_or_else(|| PyRuntimeError::new_err("the step of an episode failed"))?;
        let (observed, over): (Vec<_>, Vec<_>) = done.into_iter().unzip();
        Ok((bytes(py, observed.as_flattened())?, over))
    }
}

/// Numbers as bytes in the order of this machine, which NumPy reads without a copy.
fn bytes<'py>(py: Python<'py>, numbers: &[f32]) -> PyResult<Bound<'py, PyByteArray>> {
    PyByteArray::new_with(py, size_of_val(numbers), |bytes| {
        for (place, number) in bytes.chunks_exact_mut(size_of::<f32>()).zip(numbers) {
            place.copy_from_slice(&number.to_ne_bytes());
        }
        Ok(())
    })
}
