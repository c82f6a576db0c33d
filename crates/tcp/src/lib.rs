//! A TCP endpoint without input or output: segments and time go in, segments and timers come out.
#![forbid(unsafe_code)]

mod byte_counts;
mod config;
mod controller_rtt;
mod counters;
mod delays;
mod delivery_rate;
mod echo;
mod echo_policy;
mod frto;
mod load_echo;
mod loss_detection;
mod params;
mod plan;
mod probing;
mod prr;
pub mod quic;
mod rack;
mod receiver;
mod rtt;
mod seen;
mod segment;
mod sender;
mod sent_segments;
mod signed;
mod spurious;
mod squid;
mod stack;
mod tail_loss_probe;
mod tso;
mod validation;
#[cfg(test)]
mod vectors;

pub use byte_counts::ByteCounts;
pub use config::Config;
pub use counters::{ReceiverCounters, SenderCounters, TIMEOUT_RANKS};
pub use delays::Delays;
pub use echo::{DynEcho, EchoKind, EchoPolicy};
pub use load_echo::{Carried, LoadEcho};
pub use params::{
    AckRule, BackoffUntil, EchoAtOne, FlightSize, LossRule, PARTS, Params, Part, QuenchAnswer,
    QuenchCheck, Recovery, RttArithmetic,
};
pub use probing::{Params as ProbingParams, WindowProbe};
pub use prr::PrrRule;
pub use receiver::Receiver;
pub use receiver::misbehaviour::Params as CheatParams;
pub use seen::{Params as TimingParams, RttEvery, RttFrom};
pub use segment::{
    Body, Flags, MAX_SACK_BLOCKS, QUENCH_WIRE, Quoted, SackBlock, SackBlocks, Segment,
};
pub use sender::{GaveUp, Handshake, Sender, TcpInfo};
pub use signed::{OnForged, Params as SignatureParams};
pub use spurious::Params as SpuriousParams;
pub use squid::Params as SquidParams;
pub use tso::{Params as TsoParams, TsoSizing};
pub use validation::{LimitedBy, Params as ValidationParams, RestartWindow};
