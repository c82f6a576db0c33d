//! TCP and QUIC endpoints that do no I/O: segments and the current time go in, segments and the
//! times of timers come out.
//!
//! # Sender
//! [`Sender`] is composed of parts (`sender`): `LossRecovery`, `LossDetector`, `Undo`, `RttSource`,
//! `CwndValidation`, `Tso` and others. A part owns its state, its fields are private to its module,
//! and its methods take and return facts; no part sees the sender. `impl Sender` passes facts
//! between the parts, calls the controller and counts. `SentSegments` is the one record of
//! outstanding data: loss detection, RTTs, delivery rates and counts of retransmissions read it.
//! `LossDetector::detect` calls `SentSegments::mark_lost_by_time`, which marks losses by RACK.
//! The RTT that the controller sees may differ from the timer's (`RttSource`).
//!
//! # Receiver
//! [`Receiver`] is composed likewise: `Reassembly` takes data in and gives SACK blocks, `AckPolicy`
//! decides which ACKs wait (delayed, quick, compressed), and `Feedback` fills in the rest: ECE,
//! timestamps, D-SACK, echoes of routers' headers. Without quick ACKs and extras of `Feedback` it
//! acknowledges data out of order at once and does not ask `AckPolicy`.
//!
//! # Stacks and parameters
//! `stack` alone knows stacks by name: a stack is a set of parts and values. [`Params`] groups the
//! parameters of an endpoint by part; scenarios see flat keys. `Plan` (`config`) derives once for a
//! group of flows what its parameters and its controller imply, so that packets do not; it names
//! behaviours that `loss_rule = "rack"` brings beyond RFC 8985.
//!
//! # Memory
//! Fields of flow, sender and receiver are in order of use, by cache lines; constant assertions
//! check the offsets. A new field belongs behind those that packets read. Rare state is boxed: a
//! sender without RACK or TSO holds `None` in its place.
//!
//! # QUIC
//! The ends of QUIC ([`quic`]) are state machines of their own: packet numbers in place of bytes,
//! one PTO in place of RTO and tail loss probe. They share `RttEstimator`, `Ranges`, `Pacer` and
//! the controllers with TCP.
#![forbid(unsafe_code)]

mod byte_counts;
mod config;
mod controller_rtt;
mod counters;
mod cwnd_validation;
mod delivery_rate;
mod echo;
mod loss_detection;
mod params;
mod prr;
pub mod quic;
mod rack;
mod receiver;
mod rtt;
mod segment;
mod sender;
mod sent_segments;
mod signed_timestamps;
mod spurious_timeout;
mod stack;
#[cfg(test)]
mod vectors;

pub use byte_counts::ByteCounts;
pub use config::Config;
pub use counters::{Delays, ReceiverCounters, SenderCounters, TIMEOUT_RANKS};
pub use cwnd_validation::{LimitedBy, Params as ValidationParams, RestartWindow};
pub use echo::{Carried, DynEcho, EchoKind, EchoPolicy, LoadEcho};
pub use params::{
    AckRule, BackoffUntil, EchoAtOne, FlightSize, LossRule, PARTS, Params, Part, ProbingParams,
    QuenchAnswer, QuenchCheck, Recovery, RttArithmetic, RttEvery, RttFrom, SquidParams,
    TimingParams, TsoParams, TsoSizing, WindowProbe,
};
pub use prr::PrrRule;
pub use receiver::Receiver;
pub use receiver::misbehaviour::Params as CheatParams;
pub use segment::{
    Body, Flags, MAX_SACK_BLOCKS, QUENCH_WIRE, Quoted, SackBlock, SackBlocks, Segment,
};
pub use sender::{GaveUp, Handshake, Sender, TcpInfo};
pub use signed_timestamps::{OnForged, Params as SignatureParams};
pub use spurious_timeout::Params as SpuriousParams;

// Its consumer in Rust is a doctest.
#[cfg(doctest)]
#[doc = include_str!("../../../vectors/README.md")]
struct VectorsReadme;
