//! The engine in real time, between two devices.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};

use cwnd_quantity::{Duration, Time};
use rustix::event::{EventfdFlags, PollFd, PollFlags, Timespec, eventfd, poll};
use rustix::io::Errno;
use rustix::thread::{CpuSet, sched_setaffinity, set_current_timer_slack};
use thread_priority::{
    RealtimeThreadSchedulePolicy, ThreadPriority, ThreadPriorityValue, ThreadSchedulePolicy,
    set_thread_priority_and_policy, thread_native_id,
};

use crate::capture::Capture;
use crate::config::{Config, Pacing, Side};
use crate::engine::Engine;
use crate::linux::clock::{Clock, thread_time, time_of_day};
use crate::linux::tun::Tun;
use crate::report::{Report, Work};

/// Stops a running router, from any thread.
#[derive(Clone, Debug)]
pub struct Stop(Arc<Signal>);

#[derive(Debug)]
struct Signal {
    asked: AtomicBool,
    /// Whether the router has got its priority, and runs.
    runs: AtomicBool,
    /// Whether the router holds no packet.
    empty: AtomicBool,
    /// Wakes the router up.
    event: OwnedFd,
}

impl Stop {
    /// Nobody has asked yet.
    ///
    /// # Errors
    /// If the process has too many files open.
    pub fn new() -> io::Result<Self> {
        let event = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?;
        Ok(Self(Arc::new(Signal {
            asked: AtomicBool::new(false),
            runs: AtomicBool::new(false),
            empty: AtomicBool::new(true),
            event,
        })))
    }

    /// The router is to end soon.
    pub fn stop(&self) {
        self.0.asked.store(true, Ordering::Release);
        // A counter that can't take another 1 wakes the router as well.
        let _ = rustix::io::write(&self.0.event, &1_u64.to_ne_bytes());
    }

    /// Whether somebody has asked.
    pub(crate) fn asked(&self) -> bool {
        self.0.asked.load(Ordering::Acquire)
    }
}

/// Can be read once somebody has asked.
impl AsFd for Stop {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.event.as_fd()
    }
}

/// A router on a thread of its own.
#[derive(Debug)]
pub struct Running {
    stop: Stop,
    thread: JoinHandle<io::Result<Report>>,
}

/// Starts a router on a thread of its own; `a` and `b` are its sides.
///
/// # Errors
/// If no thread can be started.
pub fn start(config: Config, a: Tun, b: Tun, capture: Option<Capture>) -> io::Result<Running> {
    let stop = Stop::new()?;
    let theirs = stop.clone();
    let thread = thread::Builder::new()
        .name("cwnd-router".to_owned())
        .spawn(move || run(&config, &a, &b, &theirs, capture))?;
    Ok(Running { stop, thread })
}

impl Running {
    /// Ends the router; the devices are gone afterwards.
    ///
    /// # Errors
    /// What ended the router before, or those of the capture's output.
    pub fn stop(self) -> io::Result<Report> {
        self.stop.stop();
        self.thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    }

    /// Waits until it has the priority that it gets, or has ended.
    pub fn wait_until_it_runs(&self) {
        while !self.stop.0.runs.load(Ordering::Acquire) && !self.has_ended() {
            thread::sleep(BETWEEN_LOOKS);
        }
    }

    /// Whether it holds no packet: none that waits and none that is on its way.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.stop.0.empty.load(Ordering::Acquire)
    }

    /// Whether it has ended by itself: only an error does that.
    #[must_use]
    pub fn has_ended(&self) -> bool {
        self.thread.is_finished()
    }
}

/// Runs a router on this thread until it is stopped. The thread keeps the priority and processor that were asked for.
///
/// # Errors
/// Those of the devices, and of the capture's output.
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
    let mut engine = Engine::new(config);
    let clock = Clock::start();
    if let Some(mut capture) = capture {
        capture.begins(time_of_day);
        engine = engine.with_capture(capture);
    }
    let mut shell = Shell {
        engine,
        devices: [a, b],
        clock,
        spin: config.pacing.spin,
        work: Work { scheduling, started: clock.started(), ..Work::default() },
        scratch: vec![0; LARGEST_READ],
    };
    shell.run(stop)?;
    let end = clock.now();
    let after = [a.dropped().ok(), b.dropped().ok()];
    let mut work = shell.work;
    work.cpu = thread_time().since(cpu_before);
    work.lost_before = [0, 1].map(|i| Some(after[i]?.saturating_sub(before[i]?)));
    shell.engine.finish(end, work)
}

/// Gets the thread what it can; says how it is scheduled.
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

/// Asks for a real-time priority for the calling thread, from 0 to 99; whether it was granted.
pub fn realtime(priority: u8) -> bool {
    let fifo = ThreadSchedulePolicy::Realtime(RealtimeThreadSchedulePolicy::Fifo);
    let priority = ThreadPriorityValue::try_from(priority).map(ThreadPriority::Crossplatform);
    priority.is_ok_and(|p| set_thread_priority_and_policy(thread_native_id(), p, fifo).is_ok())
}

struct Shell<'a> {
    engine: Engine,
    devices: [&'a Tun; 2],
    clock: Clock,
    spin: Duration,
    work: Work,
    scratch: Vec<u8>,
}

impl Shell<'_> {
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

    /// Sends what is due; says how many packets that were.
    fn send_due(&mut self) -> io::Result<u32> {
        let mut sent = 0;
        for side in Side::BOTH {
            let lane = side.other() as usize;
            loop {
                let now = self.clock.now();
                let Some((due, bytes)) = self.engine.depart(now, side) else { break };
                self.work.lateness[lane].add(now.since(due));
                sent += 1;
                match rustix::io::write(self.devices[side as usize], bytes) {
                    Ok(_) => {}
                    // The device is down, or the kernel has no memory or no use for the packet.
                    Err(Errno::IO | Errno::NOBUFS | Errno::NOMEM | Errno::AGAIN | Errno::INVAL) => {
                        self.work.undelivered[lane] += 1;
                    }
                    Err(Errno::INTR) => self.work.undelivered[lane] += 1,
                    Err(error) => return Err(error.into()),
                }
            }
        }
        Ok(sent)
    }

    /// Reads what has come, but not so much that something else is late; says how many packets that were.
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

    /// Sleeps until something comes, or almost until `next`.
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

/// Of the range from 0 to 99: above all that is not real-time, below what the kernel itself needs.
pub const PRIORITY: u8 = 50;
/// Packets read from one device before the other's turn.
const BATCH: u32 = 16;
/// The largest packet that there can be, in bytes (RFC 791 § 3.1).
const LARGEST_READ: usize = 65_535;
/// A router without anything to do looks up this often.
const LONGEST_SLEEP: Duration = Duration::from_secs(1);
/// A thread starts in less than a millisecond.
const BETWEEN_LOOKS: std::time::Duration = std::time::Duration::from_micros(100);
const NS_PER_S: u64 = 1_000_000_000;
