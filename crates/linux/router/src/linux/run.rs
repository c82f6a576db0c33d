//! Real-time loop that runs the engine between two devices, and its clock.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};

use cwnd_quantity::{Duration, Time};
use rustix::event::{EventfdFlags, PollFd, PollFlags, Timespec, eventfd, poll};
use rustix::io::Errno;
use rustix::thread::{CpuSet, sched_setaffinity, set_current_timer_slack};
use rustix::time::{ClockId, clock_gettime};
use thread_priority::{
    RealtimeThreadSchedulePolicy, ThreadPriority, ThreadPriorityValue, ThreadSchedulePolicy,
    set_thread_priority_and_policy, thread_native_id,
};

use crate::capture::Capture;
use crate::config::{Config, Pacing, Side};
use crate::engine::Engine;
use crate::linux::tun::Tun;
use crate::live::Live;
use crate::report::{Report, Work};

/// Handle that stops a running router or DNS relay from any thread.
#[derive(Clone, Debug)]
pub struct Stop(Arc<Signal>);

#[derive(Debug)]
struct Signal {
    asked: AtomicBool,
    /// `true` once the router has its priority and runs.
    runs: AtomicBool,
    /// `true` if the last turn of the loop moved no packet and the router holds none.
    empty: AtomicBool,
    /// Last rows of the time series.
    live: Live,
    /// Event counter that wakes the router.
    event: OwnedFd,
}

impl Stop {
    /// Creates a handle without a request to stop.
    ///
    /// # Errors
    /// If the process has too many open files.
    pub fn new() -> io::Result<Self> {
        let event = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?;
        Ok(Self(Arc::new(Signal {
            asked: AtomicBool::new(false),
            runs: AtomicBool::new(false),
            empty: AtomicBool::new(true),
            live: Live::default(),
            event,
        })))
    }

    /// Requests the router to end.
    pub fn stop(&self) {
        self.0.asked.store(true, Ordering::Release);
        // A counter that cannot be increased wakes the router as well.
        let _ = rustix::io::write(&self.0.event, &1_u64.to_ne_bytes());
    }

    /// `true` once a stop was requested.
    pub(crate) fn asked(&self) -> bool {
        self.0.asked.load(Ordering::Acquire)
    }
}

/// Descriptor that is readable once a stop was requested.
impl AsFd for Stop {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.event.as_fd()
    }
}

/// A router on its own thread.
#[derive(Debug)]
pub struct Running {
    stop: Stop,
    thread: JoinHandle<io::Result<Report>>,
}

/// Starts a router on its own thread; `a` and `b` are the devices of its sides.
///
/// # Errors
/// If no thread can be started, or if the process has too many open files.
pub fn start(config: Config, a: Tun, b: Tun, capture: Option<Capture>) -> io::Result<Running> {
    let stop = Stop::new()?;
    let theirs = stop.clone();
    let thread = thread::Builder::new()
        .name("cwnd-router".to_owned())
        .spawn(move || run(&config, &a, &b, &theirs, capture))?;
    Ok(Running { stop, thread })
}

impl Running {
    /// Ends the router, closes its devices, and returns its report.
    ///
    /// # Errors
    /// The error that ended the router before, or those of the capture's output.
    pub fn stop(self) -> io::Result<Report> {
        self.stop.stop();
        self.thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    }

    /// Waits until the router has its final priority, or has ended.
    pub fn wait_until_it_runs(&self) {
        while !self.stop.0.runs.load(Ordering::Acquire) && !self.has_ended() {
            thread::sleep(POLL_INTERVAL);
        }
    }

    /// `true` if the router holds no packet, neither queued nor under way, and moved none in the
    /// last turn of its loop.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.stop.0.empty.load(Ordering::Acquire)
    }

    /// Returns the last rows of the time series, which the router goes on to replace.
    #[must_use]
    pub fn live(&self) -> Live {
        self.stop.0.live.clone()
    }

    /// `true` if the router has ended, by itself only after an error or a panic.
    #[must_use]
    pub fn has_ended(&self) -> bool {
        self.thread.is_finished()
    }
}

/// Runs a router on this thread until it is stopped. The thread keeps the priority and processor
/// that were requested.
///
/// # Errors
/// `InvalidInput` if the system has no such processor; those of the devices and of the capture's
/// output.
pub fn run(
    config: &Config,
    a: &Tun,
    b: &Tun,
    stop: &Stop,
    capture: Option<Capture>,
) -> io::Result<Report> {
    let scheduling = prepare(&config.pacing)?;
    stop.0.runs.store(true, Ordering::Release);
    let before = [a.dropped().ok(), b.dropped().ok()];
    let cpu_before = thread_time();
    let mut engine = Engine::new(config).with_live(&stop.0.live);
    let (clock, began) = (Clock::start(), time_of_day());
    if let Some(mut capture) = capture {
        capture.begins(began);
        engine = engine.with_capture(capture);
    }
    let mut real_time = RealTimeLoop {
        engine,
        devices: [a, b],
        clock,
        spin: config.pacing.spin,
        work: Work { scheduling, started: clock.started(), began, ..Work::default() },
        scratch: vec![0; LARGEST_READ],
    };
    real_time.run(stop)?;
    let end = clock.now();
    let after = [a.dropped().ok(), b.dropped().ok()];
    let mut work = real_time.work;
    work.cpu = thread_time().since(cpu_before);
    work.lost_before = [0, 1].map(|i| Some(after[i]?.saturating_sub(before[i]?)));
    real_time.engine.finish(end, work)
}

/// Sets timer slack, processor and priority of the thread; returns its scheduling policy.
fn prepare(pacing: &Pacing) -> io::Result<&'static str> {
    set_current_timer_slack(core::num::NonZeroU64::new(1))?;
    if let Some(cpu) = pacing.cpu {
        let mut set = CpuSet::new();
        if cpu >= CpuSet::MAX_CPU {
            return Err(io::Error::from(io::ErrorKind::InvalidInput));
        }
        set.set(cpu);
        sched_setaffinity(None, &set)?;
    }
    Ok(if pacing.realtime && realtime(PRIORITY) { "fifo" } else { "normal" })
}

/// Requests a real-time priority from 0 to 99 for the calling thread; returns `true` if it was
/// granted.
pub fn realtime(priority: u8) -> bool {
    let fifo = ThreadSchedulePolicy::Realtime(RealtimeThreadSchedulePolicy::Fifo);
    let priority = ThreadPriorityValue::try_from(priority).map(ThreadPriority::Crossplatform);
    priority.is_ok_and(|p| set_thread_priority_and_policy(thread_native_id(), p, fifo).is_ok())
}

/// State of the real-time loop: the engine with its devices and clock.
struct RealTimeLoop<'a> {
    engine: Engine,
    devices: [&'a Tun; 2],
    clock: Clock,
    spin: Duration,
    work: Work,
    scratch: Vec<u8>,
}

impl RealTimeLoop<'_> {
    fn run(&mut self, stop: &Stop) -> io::Result<()> {
        while !stop.asked() {
            let began = self.clock.now();
            let sent = self.send_due()?;
            let received = self.receive()?;
            let now = self.clock.now();
            if sent + received > 0 {
                self.work.longest_turn = self.work.longest_turn.max(now.since(began));
                stop.0.empty.store(false, Ordering::Release);
                continue;
            }
            stop.0.empty.store(self.engine.held() == 0, Ordering::Release);
            let next = self.engine.next();
            if next > now + self.spin {
                self.sleep(now, next, stop)?;
            }
            self.work.idle += self.clock.now().since(began);
        }
        Ok(())
    }

    /// Sends due packets; returns their number.
    fn send_due(&mut self) -> io::Result<u32> {
        let mut sent = 0;
        for side in Side::BOTH {
            let direction = side.other() as usize;
            loop {
                let now = self.clock.now();
                let Some((due, bytes)) = self.engine.depart(now, side) else { break };
                self.work.lateness[direction].add(now.since(due));
                sent += 1;
                match rustix::io::write(self.devices[side as usize], bytes) {
                    Ok(_) => {}
                    // The device is down, or the kernel lacks memory or rejects the packet.
                    Err(Errno::IO | Errno::NOBUFS | Errno::NOMEM | Errno::AGAIN | Errno::INVAL) => {
                        self.work.undelivered[direction] += 1;
                    }
                    Err(Errno::INTR) => self.work.undelivered[direction] += 1,
                    Err(error) => return Err(error.into()),
                }
            }
        }
        Ok(sent)
    }

    /// Reads arrived packets, a bounded number so that nothing else is delayed; returns their
    /// number.
    fn receive(&mut self) -> io::Result<u32> {
        let mut received = 0;
        for side in Side::BOTH {
            for _ in 0..BATCH {
                match rustix::io::read(self.devices[side as usize], &mut *self.scratch) {
                    Ok(length) => {
                        received += 1;
                        let now = self.clock.now();
                        self.engine.arrive(now, side, &self.scratch[..length]);
                    }
                    // A device that is down has nothing to read.
                    Err(Errno::AGAIN | Errno::INTR | Errno::IO) => break,
                    Err(error) => return Err(error.into()),
                }
            }
        }
        Ok(received)
    }

    /// Sleeps until `spin` before `next`, for [`LONGEST_SLEEP`] at most; an arriving packet or a
    /// request to stop ends it.
    fn sleep(&mut self, now: Time, next: Time, stop: &Stop) -> io::Result<()> {
        let until = Time(next.0 - self.spin.0);
        let wait = until.since(now).min(LONGEST_SLEEP);
        let timeout =
            Timespec { tv_sec: (wait.0 / NS_PER_S) as i64, tv_nsec: (wait.0 % NS_PER_S) as _ };
        let mut watched = [
            PollFd::from_borrowed_fd(self.devices[0].as_fd(), PollFlags::IN),
            PollFd::from_borrowed_fd(self.devices[1].as_fd(), PollFlags::IN),
            PollFd::from_borrowed_fd(stop.as_fd(), PollFlags::IN),
        ];
        match poll(&mut watched, Some(&timeout)) {
            Ok(0) => {
                let overslept = self.clock.now().since(now + wait);
                self.work.longest_turn = self.work.longest_turn.max(overslept);
                Ok(())
            }
            Ok(_) | Err(Errno::INTR) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }
}

/// Returns the time of the machine's monotonic clock.
#[must_use]
pub fn monotonic() -> Time {
    nanoseconds(clock_gettime(ClockId::Monotonic))
}

/// Returns the time of day since 1970, as used in captures.
#[must_use]
pub fn time_of_day() -> Time {
    nanoseconds(clock_gettime(ClockId::Realtime))
}

/// Returns the processor time used by the calling thread.
pub fn thread_time() -> Time {
    nanoseconds(clock_gettime(ClockId::ThreadCPUTime))
}

const fn nanoseconds(t: Timespec) -> Time {
    Time(t.tv_sec as u64 * 1_000_000_000 + t.tv_nsec as u64)
}

/// Monotonic clock that starts at zero.
#[derive(Clone, Copy, Debug)]
pub struct Clock {
    started: Time,
}

impl Clock {
    pub fn start() -> Self {
        Self { started: monotonic() }
    }

    /// Returns its start on the machine's monotonic clock.
    pub const fn started(self) -> Time {
        self.started
    }

    #[inline]
    pub fn now(self) -> Time {
        Time(monotonic().since(self.started).0)
    }
}

/// Priority from 0 to 99: above all threads that are not real-time, below those of the kernel that
/// have the highest priority.
pub const PRIORITY: u8 = 50;
/// Maximum number of packets read from one device before the other's turn.
const BATCH: u32 = 16;
/// Size of the largest packet, bytes (RFC 791 § 3.1).
const LARGEST_READ: usize = 65_535;
/// Longest sleep of the loop.
const LONGEST_SLEEP: Duration = Duration::from_secs(1);
/// Interval of checks that the thread has started, which takes less than a millisecond.
const POLL_INTERVAL: std::time::Duration = std::time::Duration::from_micros(100);
const NS_PER_S: u64 = 1_000_000_000;
