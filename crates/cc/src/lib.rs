//! Congestion controllers, slow starts and retransmission-timeout policies, one file each.
//!
//! **The transport owns facts, the controller owns policy, and its only outputs are cwnd, ssthresh and a pacing rate.**
//! A transport calls [`Controller::on_ack`] for every ACK and [`Controller::on_signal`] for what is rare. Whether an ACK lets
//! the window grow, and that it is reduced at most once a window of data whoever asks for it, is the transport's work, done
//! once for all.
#![forbid(unsafe_code)]

pub mod bbr;
mod below_one;
pub mod bmcc;
mod controller;
pub mod copa;
pub mod cubic;
pub mod dctcp;
mod decrease;
pub mod delay_aimd;
pub mod fast;
mod guided;
pub mod htcp;
mod hystart;
mod hystart_classic;
mod kind;
pub mod ledbat;
mod min_rtt;
pub mod mlcp;
pub mod newreno;
pub mod rcp;
#[cfg(feature = "record")]
pub mod record;
mod registry;
mod rto;
mod since_reduction;
mod slow_start;
pub mod vcp;
pub mod vegas;
mod windowed;
pub mod xcp;

pub use below_one::{Below, BelowOne};
pub use controller::{
    AckSample, Cause, Controller, Departing, Grow, Leave, Path, Phase, RateSample, Request,
    RoundTrips, Signal, Start, Window, WindowMut,
};
pub use decrease::{
    Base, ByDelay, Decrease, EcnInSlowStart, QuenchRest, Rest, RestAfterQuench, Rounding, Rule,
    Stage,
};
pub use kind::{Acts, Hears, Kind, Mechanism, OnLinux};
pub use registry::{AnyController, ControllerParams, OwnController};
pub use rto::{Backoff, RtoPolicy};
pub use since_reduction::Increase;
pub use slow_start::{Growing, SlowStart};
