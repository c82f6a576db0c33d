//! Packets as bytes: IPv4 with TCP, UDP or a source quench, and the capture files that hold them.
//!
//! Payload is zero bytes everywhere and is never written out: headers tell its length, checksums count it.
#![forbid(unsafe_code)]

mod icmp;
mod ip;
mod pcapng;
mod tcp;
mod udp;

pub use icmp::{HeardQuench, SourceQuench};
pub use ip::{Endpoints, Headers};
pub use pcapng::{Interface, Writer};
pub use tcp::{Experiment, MAX_SACK_BLOCKS, Options, Tcp, window_scale};
pub use udp::Udp;
