//! Layout of what passes between the simulator and compiled controllers: the structures of
//! `python/cwnd/c/controller.h`, whose comments describe their members.
#![expect(missing_docs, reason = "the header describes the members")]

use core::ffi::{c_char, c_void};
use core::sync::atomic::AtomicU32;

use cwnd_cc::{
    AckSample, Cause, GrowthPermission, Path, Phase, RateSample, Request, Signal, Start, Window,
};
use cwnd_packet::{Echo, Ecn};
use cwnd_quantity::{Duration, Time};

/// Version of the tables, `CWND_CONTROLLER_VERSION`.
pub const VERSION: u32 = 2;
/// `CWND_NONE`: no such time, size or rate.
pub const NONE: u64 = u64::MAX;
/// `CWND_BY_RATE`.
pub const BY_RATE: u32 = 1;
/// `CWND_READS_ECN`.
pub const READS_ECN: u32 = 2;

/// `struct cwnd_controller`. A pointer to it is valid while its object is loaded.
#[repr(C)]
#[derive(Debug)]
pub struct Table {
    pub version: u32,
    /// Follows from the parameters of the controllers that start from now on.
    pub traits: AtomicU32,
    pub name: *const c_char,
    pub kind: *const c_void,
    pub start: unsafe extern "C" fn(*const c_void, *const NativeStart) -> *mut c_void,
    pub copy: unsafe extern "C" fn(*const c_void) -> *mut c_void,
    pub end: unsafe extern "C" fn(*mut c_void),
    pub on_ack: unsafe extern "C" fn(*mut c_void, *const NativePath, *const NativeAck) -> u32,
    pub on_signal: unsafe extern "C" fn(*mut c_void, *const NativePath, *const NativeSignal),
    pub on_rate: unsafe extern "C" fn(*mut c_void, *const NativeRate),
    pub on_sack_rtt: unsafe extern "C" fn(*mut c_void, *const NativePath, u64),
    pub undo: unsafe extern "C" fn(*mut c_void, *const c_void, u64, u32),
    pub window: unsafe extern "C" fn(*const c_void, *mut NativeWindow),
    pub set_window: unsafe extern "C" fn(*mut c_void, *const NativeWindow),
    pub count: Option<unsafe extern "C" fn(*const c_void, CountOne, *mut c_void)>,
}

/// Function that takes one counter.
pub type CountOne = unsafe extern "C" fn(*mut c_void, *const c_char, u64);

#[expect(unsafe_code, reason = "its pointers are to data that does not change, or is locked")]
unsafe impl Send for Table {}
#[expect(unsafe_code, reason = "its pointers are to data that does not change, or is locked")]
unsafe impl Sync for Table {}

/// `struct cwnd_start`.
#[repr(C)]
#[derive(Debug)]
pub struct NativeStart {
    pub initial_window: u64,
    pub initial_ssthresh: u64,
    pub max_window: u64,
    pub mss: u32,
    pub delayed_acks: u32,
}

/// `struct cwnd_path`.
#[repr(C)]
#[derive(Debug)]
pub struct NativePath {
    pub now: u64,
    pub srtt: u64,
    pub min_rtt: u64,
    pub rtt: u64,
    pub flight_size: u64,
    pub delivered: u64,
    pub sent: u64,
    pub round: u64,
    pub mss: u32,
    pub phase: u8,
    pub cwnd_limited: u8,
}

/// `struct cwnd_ack`.
#[repr(C)]
#[derive(Debug)]
pub struct NativeAck {
    pub acked: u64,
    pub newly_sacked: u64,
    pub newly_lost: u64,
    pub rtt: u64,
    pub ece: u8,
    pub grow: u8,
    pub marked: u8,
}

/// `struct cwnd_rate`.
#[repr(C)]
#[derive(Debug)]
pub struct NativeRate {
    pub newly_delivered: u64,
    pub total_delivered: u64,
    pub prior_delivered: u64,
    pub interval: u64,
    pub rtt: u64,
    pub in_flight: u64,
    pub app_limited: u8,
}

/// `struct cwnd_signal`.
#[repr(C)]
#[derive(Debug, Default)]
pub struct NativeSignal {
    pub idle: u64,
    pub keep_window: u64,
    pub keep_ssthresh: u64,
    pub since: u64,
    pub event: u8,
    pub cause: u8,
    pub reduces: u8,
    pub quench_marked: u8,
    pub quench_level: u8,
    pub nth: u32,
}

/// `struct cwnd_window`.
#[repr(C)]
#[derive(Debug)]
pub struct NativeWindow {
    pub window: u64,
    pub ssthresh: u64,
    pub pacing: u64,
}

fn or_none(span: Option<Duration>) -> u64 {
    span.map_or(NONE, |span| span.0)
}

fn known(number: u64) -> Option<u64> {
    (number != NONE).then_some(number)
}

/// Returns the number of a cause.
#[must_use]
pub const fn cause(cause: Cause) -> u32 {
    match cause {
        Cause::Loss => 1,
        Cause::Ecn => 2,
        Cause::Delay => 3,
        Cause::Quench { .. } => 4,
        Cause::Load => 5,
    }
}

/// Returns the request that the number of a cause stands for.
pub const fn requested(number: u32) -> Request {
    match number {
        1 => Request::Reduce(Cause::Loss),
        2 => Request::Reduce(Cause::Ecn),
        3 => Request::Reduce(Cause::Delay),
        5 => Request::Reduce(Cause::Load),
        _ => Request::Nothing,
    }
}

impl From<&Start> for NativeStart {
    fn from(start: &Start) -> Self {
        Self {
            initial_window: start.initial_window,
            initial_ssthresh: start.initial_ssthresh,
            max_window: start.max_window,
            mss: start.mss,
            delayed_acks: u32::from(start.delayed_acks),
        }
    }
}

impl From<&NativeStart> for Start {
    fn from(start: &NativeStart) -> Self {
        Self {
            mss: start.mss,
            initial_window: start.initial_window,
            initial_ssthresh: start.initial_ssthresh,
            max_window: start.max_window,
            delayed_acks: start.delayed_acks != 0,
        }
    }
}

impl From<&Path> for NativePath {
    fn from(path: &Path) -> Self {
        Self {
            now: path.now.0,
            srtt: or_none(path.srtt),
            min_rtt: or_none(path.min_rtt),
            rtt: or_none(path.rtt),
            flight_size: path.flight_size,
            delivered: path.delivered,
            sent: path.sent,
            round: path.round,
            mss: path.mss,
            phase: match path.phase {
                Phase::Open => 0,
                Phase::Cwr => 1,
                Phase::Recovery => 2,
                Phase::Loss => 3,
            },
            cwnd_limited: u8::from(path.cwnd_limited),
        }
    }
}

impl From<&AckSample> for NativeAck {
    fn from(ack: &AckSample) -> Self {
        Self {
            acked: ack.acked_bytes,
            newly_sacked: ack.newly_sacked,
            newly_lost: ack.newly_lost,
            rtt: or_none(ack.rtt),
            ece: u8::from(ack.ece),
            grow: match ack.grow {
                GrowthPermission::No => 0,
                GrowthPermission::InCwr => 1,
                GrowthPermission::Yes => 2,
            },
            marked: u8::from(cwnd_cc::dctcp::is_marked(ack.echo)),
        }
    }
}

impl From<&RateSample> for NativeRate {
    fn from(rate: &RateSample) -> Self {
        Self {
            newly_delivered: rate.newly_delivered,
            total_delivered: rate.total_delivered,
            prior_delivered: rate.prior_delivered.unwrap_or(NONE),
            interval: or_none(rate.interval),
            rtt: or_none(rate.rtt),
            in_flight: rate.in_flight,
            app_limited: u8::from(rate.app_limited),
        }
    }
}

impl NativeSignal {
    /// Converts a signal; `None` for kinds that the version does not have.
    pub fn of(signal: Signal) -> Option<Self> {
        let native = match signal {
            Signal::Reduce(reason) => {
                let (marked, level) = match reason {
                    Cause::Quench { marked, level } => (marked, level),
                    _ => (false, 0),
                };
                Self {
                    event: 0,
                    cause: cause(reason) as u8,
                    quench_marked: u8::from(marked),
                    quench_level: level,
                    ..Self::default()
                }
            }
            Signal::Timeout { nth, reduces } => {
                Self { event: 1, nth, reduces: u8::from(reduces), ..Self::default() }
            }
            Signal::Idle { idle, keep } => Self {
                event: 2,
                idle: idle.0,
                keep_window: keep.map_or(NONE, |keep| keep.cwnd),
                keep_ssthresh: keep.map_or(NONE, |keep| keep.ssthresh),
                ..Self::default()
            },
            Signal::Resume { since } => Self { event: 3, since: since.0, ..Self::default() },
            _ => return None,
        };
        Some(native)
    }
}

impl From<&NativePath> for Path {
    fn from(path: &NativePath) -> Self {
        Self {
            now: Time(path.now),
            mss: path.mss,
            srtt: known(path.srtt).map(Duration),
            min_rtt: known(path.min_rtt).map(Duration),
            rtt: known(path.rtt).map(Duration),
            flight_size: path.flight_size,
            delivered: path.delivered,
            sent: path.sent,
            phase: match path.phase {
                0 => Phase::Open,
                1 => Phase::Cwr,
                2 => Phase::Recovery,
                _ => Phase::Loss,
            },
            cwnd_limited: path.cwnd_limited != 0,
            round: path.round,
        }
    }
}

impl From<&NativeAck> for AckSample {
    fn from(ack: &NativeAck) -> Self {
        // DCTCP's echo, the only one that passes.
        let marked = Echo::Load { value: Ecn::Ce as u16, bits: 2, changes: 0 };
        Self {
            acked_bytes: ack.acked,
            newly_sacked: ack.newly_sacked,
            newly_lost: ack.newly_lost,
            rtt: known(ack.rtt).map(Duration),
            ece: ack.ece != 0,
            echo: if ack.marked != 0 { marked } else { Echo::None },
            grow: match ack.grow {
                0 => GrowthPermission::No,
                1 => GrowthPermission::InCwr,
                _ => GrowthPermission::Yes,
            },
        }
    }
}

impl From<&NativeRate> for RateSample {
    fn from(rate: &NativeRate) -> Self {
        Self {
            newly_delivered: rate.newly_delivered,
            total_delivered: rate.total_delivered,
            prior_delivered: known(rate.prior_delivered),
            interval: known(rate.interval).map(Duration),
            rtt: known(rate.rtt).map(Duration),
            in_flight: rate.in_flight,
            app_limited: rate.app_limited != 0,
        }
    }
}

impl From<&NativeSignal> for Signal {
    fn from(signal: &NativeSignal) -> Self {
        match signal.event {
            0 => Self::Reduce(match signal.cause {
                1 => Cause::Loss,
                2 => Cause::Ecn,
                3 => Cause::Delay,
                4 => {
                    Cause::Quench { marked: signal.quench_marked != 0, level: signal.quench_level }
                }
                _ => Cause::Load,
            }),
            1 => Self::Timeout { nth: signal.nth, reduces: signal.reduces != 0 },
            2 => Self::Idle {
                idle: Duration(signal.idle),
                keep: known(signal.keep_window)
                    .map(|cwnd| Window { cwnd, ssthresh: signal.keep_ssthresh }),
            },
            _ => Self::Resume { since: Time(signal.since) },
        }
    }
}
