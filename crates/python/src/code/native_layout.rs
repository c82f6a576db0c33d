//! Layout of what passes to compiled controllers: the structures of `python/cwnd/c/controller.h`,
//! whose comments describe their members.

use cwnd_cc::{AckSample, Cause, GrowthPermission, Path, Phase, RateSample, Signal};
use cwnd_quantity::Duration;

/// `CWND_NONE`: no such time, size or rate.
pub const NONE: u64 = u64::MAX;

/// `struct cwnd_start`.
#[repr(C)]
pub struct NativeStart {
    pub initial_window: u64,
    pub initial_ssthresh: u64,
    pub max_window: u64,
    pub mss: u32,
    pub delayed_acks: u32,
}

/// `struct cwnd_path`.
#[repr(C)]
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
#[derive(Default)]
pub struct NativeSignal {
    pub idle: u64,
    pub keep_window: u64,
    pub keep_ssthresh: u64,
    pub since: u64,
    pub event: u8,
    pub cause: u8,
    pub reduces: u8,
    pub nth: u32,
}

/// `struct cwnd_window`.
#[repr(C)]
pub struct NativeWindow {
    pub window: u64,
    pub ssthresh: u64,
    pub pacing: u64,
}

fn or_none(span: Option<Duration>) -> u64 {
    span.map_or(NONE, |span| span.0)
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
            Signal::Reduce(cause) => {
                let cause = match cause {
                    Cause::Loss => 1,
                    Cause::Ecn => 2,
                    Cause::Delay => 3,
                    Cause::Quench { .. } => 4,
                    Cause::Load => 5,
                };
                Self { event: 0, cause, ..Self::default() }
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
